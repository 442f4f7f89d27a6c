"""Random knowledge, true or false: whatever the data say, the answer agrees with it."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import unmeasured as um
from knowledge_oracle import agrees
from profiles import examples
from unmeasured.errors import ModelError
from unmeasured.search.options import Options
from unmeasured.search.pipeline import discover

# More, for once: UNMEASURED_EXAMPLES=200 pytest tests/property/test_knowledge.py
ASKED = Options(max_group_size=3, compare_without_knowledge=False)
EXAMPLES = int(os.environ.get("UNMEASURED_EXAMPLES", "20"))
COUNTS = st.sampled_from([None, None, None, 1, 2, 3, "at most 1", "at most 2", "at least 2", "at least 3"])


@cache
def rows(n_observed: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n_latents = int(rng.integers(1, n_observed // 2 + 1))
    truth = um.simulate.random_gnfm(n_latents=n_latents, n_observed=n_observed, rng=rng)
    return um.simulate.sample(um.simulate.realistic_parameters(truth, rng), 300, rng=rng)


@st.composite
def knowledge(draw: st.DrawFn, items: list[str]) -> um.Knowledge:
    some = st.lists(st.sampled_from(items), min_size=2, max_size=3, unique=True)
    names = ["f", "g", "h"][: draw(st.integers(0, 3))]
    groups = {name: draw(st.lists(st.sampled_from(items), min_size=1, max_size=3, unique=True)) for name in names}
    arrows = [f"{a} -> {b}" for a in names for b in names if a != b]
    ways = [*arrows, *(f"{a} -- {b}" for a in names for b in names if a < b)]
    size = st.sampled_from([1, 2, "at most 2"])
    try:
        return um.Knowledge(
            groups=groups,
            together=draw(st.lists(some, max_size=2)),
            apart=draw(st.lists(some, max_size=2)),
            n_latents=draw(COUNTS),
            n_groups=draw(COUNTS),
            group_size=draw(st.sampled_from([None, None, None, 1, "at most 2"])),
            sizes={name: draw(size) for name in names if draw(st.integers(0, 3)) == 0},
            tiers=[[name] for name in draw(st.permutations(names))] if draw(st.integers(0, 3)) == 0 else [],
            required=draw(st.lists(st.sampled_from(arrows), max_size=2)) if arrows else [],
            forbidden=draw(st.lists(st.sampled_from(ways), max_size=2)) if ways else [],
        )
    except ModelError:
        assume(False)
        raise


@settings(
    max_examples=examples(EXAMPLES),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(st.data())
def test_knowledge_is_never_violated(data: st.DataObject) -> None:
    sample = um.as_sample(rows(data.draw(st.integers(6, 9)), data.draw(st.integers(0, 5))))
    known = data.draw(knowledge(list(sample.names)))
    try:
        found = discover(sample, replace(ASKED, knowledge=known))
    except ModelError as error:
        assume("contradicts itself" not in str(error) and "No factor model" not in str(error))
        raise
    assert agrees(known, found.cpdag), f"{known}\n{found.cpdag}"


def test_the_oracle_can_fail() -> None:
    sample = um.as_sample(rows(8, 1))
    free = discover(sample, ASKED).cpdag
    assert not agrees(um.Knowledge(n_groups=len(free.latent_groups) + 1), free)
    with pytest.raises(ModelError):
        discover(sample, replace(ASKED, knowledge=um.Knowledge(n_latents=5)))
