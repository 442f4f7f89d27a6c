"""The path of penalties: dimensions never rise with the penalty, and each step is best among all by its own penalty."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.validation.penalty_path import PenaltyPath


@pytest.fixture(scope="module")
def path() -> PenaltyPath:
    data = um.datasets.load("holzinger_swineford")
    return um.penalty_path(um.as_sample(cov=data.frame(), n_samples=data.n_samples))


def test_there_are_twelve_steps_from_bic_to_that_of_fifty_samples(path: PenaltyPath) -> None:
    table = path.table
    assert len(table) == 12
    assert table["penalty"][0] == 1.0
    assert table["equivalent_n"][0] == pytest.approx(301, rel=1e-6)
    assert table["equivalent_n"].iloc[-1] == pytest.approx(50, rel=1e-6)
    assert table["penalty"].iloc[-1] == pytest.approx(math.log(50) / 50 * 301 / math.log(301))


def test_dimensions_never_rise_with_the_penalty(path: PenaltyPath) -> None:
    assert (np.diff(path.table["dimension"]) <= 0).all()


def test_no_step_would_rather_have_the_model_of_another(path: PenaltyPath) -> None:
    from unmeasured.validation.penalty_path import _prior

    n = path.steps[0].fit.sample.n
    for step in path.steps:
        penalty = 0.5 * step.penalty * math.log(n)
        values = [-0.5 * r.fit.chi2 - _prior(r.graph) - penalty * int(r.fit.dimension) for r in path.steps]
        own = -0.5 * step.fit.chi2 - _prior(step.graph) - penalty * int(step.fit.dimension)
        assert own == pytest.approx(max(values), abs=0.05)


def test_the_first_step_is_no_worse_than_the_search_itself(path: PenaltyPath) -> None:
    search = um.LGES().fit(path.steps[0].fit.sample)
    assert path.steps[0].fit.bic <= search.sem_.bic + 1.0


def test_a_step_is_suggested_with_a_reason_and_edges_have_a_life(path: PenaltyPath, tmp_path) -> None:
    assert path.reason in str(path)
    step = path.steps[path.suggested]
    assert f"{step.penalty:.3g} is the sparsest that fits acceptably (RMSEA {step.fit.rmsea:.3f}" in path.reason
    shapes = path.table[["latents", "latent_groups"]].apply(tuple, axis=1)
    assert (shapes == shapes[path.suggested]).sum() >= max(shapes.value_counts()) - 1
    assert path.edges["share_of_steps"].is_monotonic_decreasing
    assert path.edges["share_of_steps"].between(0, 1).all()
    whole = path.edges[path.edges["share_of_steps"] == 1.0]
    assert (whole["max_penalty"] == path.steps[-1].penalty).all()
    path.write(tmp_path)
    assert len(pd.read_csv(tmp_path / "path.csv")) == 12
    assert len(list(tmp_path.glob("step-*.json"))) == 12


def test_what_is_no_path_is_refused() -> None:
    sample = um.as_sample(cov=np.eye(4) * 0.5 + 0.5, n_samples=100)
    with pytest.raises(um.UnmeasuredError, match="penalties are positive numbers"):
        um.penalty_path(sample, [0.0, 1.0])
    with pytest.raises(um.DataError, match="In a population no penalty matters"):
        um.penalty_path(um.as_sample(cov=np.eye(4) * 0.5 + 0.5, n_samples=math.inf))
    with pytest.raises(um.UnmeasuredError, match="not fitted yet"):
        um.penalty_path(um.LGES())
