"""The counter-example to Theorem 2 as printed: what data can tell is a class over latent groups."""

from __future__ import annotations

import numpy as np
import pytest

import unmeasured as um
from unmeasured.graphs import is_markov_equivalent

CHILDREN = [("L1", "x1"), ("L1", "x2"), ("L1", "x3")] + [(g, f"x{i}") for g in ("L2", "L3") for i in range(4, 9)]
# L1 -> {L2, L3}: no v-structure at a latent         {L2, L3} -> L1: one, since L2 and L3 are not adjacent
FORWARD = um.DAG.from_edges([*CHILDREN, ("L1", "L2"), ("L1", "L3")], latents=["L1", "L2", "L3"])
BACKWARD = um.DAG.from_edges([*CHILDREN, ("L2", "L1"), ("L3", "L1")], latents=["L1", "L2", "L3"])


def test_both_are_factor_models_with_the_same_groups():
    assert um.graphs.is_gnfm(FORWARD)
    assert um.graphs.is_gnfm(BACKWARD)
    assert FORWARD.latent_groups == BACKWARD.latent_groups == (("L1",), ("L2", "L3"))


def test_they_are_not_markov_equivalent_as_plain_graphs():
    assert not is_markov_equivalent(FORWARD, BACKWARD)


@pytest.mark.parametrize("seed", range(10))
def test_yet_no_data_can_tell_them_apart(seed):
    rng = np.random.default_rng(seed)
    rows = um.simulate.sample(FORWARD if seed % 2 else BACKWARD, 300, rng=rng)
    forward, backward = um.fit(FORWARD, rows), um.fit(BACKWARD, rows)
    assert forward.loglik == pytest.approx(backward.loglik, abs=1e-5)
    assert um.dimension(FORWARD) == um.dimension(BACKWARD)


def test_so_they_are_one_class():
    assert FORWARD.cpdag() == BACKWARD.cpdag()
    same = um.metrics.compare(FORWARD, BACKWARD)
    assert (same.shd, same.f1) == (0, 1.0)
    assert same.shd_paper > 0
