"""Hierarchies and minor factors: correlations follow from the loadings, the population RMSEA is what was asked."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured import simulate


def test_a_hierarchy_has_the_correlations_its_loadings_say():
    model = simulate.hierarchy(n_traits=3, n_facets=3, n_items=4, loading=0.8, between=0.3, rng=1)
    R, at = model.full_cov(), {name: i for i, name in enumerate(model.names)}
    assert np.allclose(np.diag(R), 1.0)
    assert all(R[at[a], at[b]] == pytest.approx(0.3) for a, b in (("T1", "T2"), ("T1", "T3"), ("T2", "T3")))
    assert R[at["F1"], at["F2"]] == pytest.approx(0.64)
    assert R[at["F1"], at["F4"]] == pytest.approx(0.64 * 0.3)
    a, b = R[at["F1"], at["X1"]], R[at["F2"], at["X5"]]
    assert 0.6 <= a <= 0.8
    assert R[at["X1"], at["X5"]] == pytest.approx(0.64 * a * b)
    assert len(model.observed) == 36
    assert simulate.population_rmsea(model.dag, model) == pytest.approx(0.0, abs=1e-5)
    rows = simulate.sample(model, 20_000, rng=0)
    assert np.corrcoef(rows[["X1", "X5"]].T)[0, 1] == pytest.approx(0.64 * a * b, abs=0.03)


def test_independent_traits_have_no_edges():
    dag = simulate.hierarchy(between=0.0, rng=0).dag
    assert not any(a.startswith("T") and b.startswith("T") for a, b in dag.edges)


@pytest.mark.parametrize("rmsea", [0.02, 0.05, 0.08])
def test_minor_factors_are_off_the_model_by_what_was_asked(rmsea):
    model = simulate.minor_factors(n_factors=3, n_items=5, rmsea=rmsea, rng=2)
    major = simulate.major_part(model.dag)
    assert major.latents == ("F1", "F2", "F3")
    # By hand: the discrepancy of a fit to the population covariance.
    S = model.cov()
    fitted = um.fit(major, cov=pd.DataFrame(S, model.observed, model.observed), n_samples=10**6)
    Sigma = fitted.implied_cov * 1e6 / (1e6 - 1)
    F = np.linalg.slogdet(Sigma)[1] - np.linalg.slogdet(S)[1] + float((np.linalg.inv(Sigma) * S).sum()) - len(S)
    assert math.sqrt(F / fitted.df) == pytest.approx(rmsea, abs=1e-4)
    assert math.sqrt(fitted.chi2 / 1e6 / fitted.df) == pytest.approx(rmsea, abs=1e-5)
    assert len(model.dag.latents) == 53
    assert np.allclose(np.diag(S), 1.0)


def test_minor_factors_get_smaller():
    F = simulate.minor_factors(n_factors=2, n_items=10, n_minor=50, rng=0)
    at = {name: i for i, name in enumerate(F.names)}
    size = [np.linalg.norm(F.F[at[f"M{k}"]]) for k in (1, 10, 50)]
    assert size[0] > 3 * size[1] > 9 * size[2]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: simulate.hierarchy(n_traits=0, rng=0), "n_traits"),
        (lambda: simulate.hierarchy(loading=1.2, rng=0), "Loadings are between 0 and 1"),
        (lambda: simulate.hierarchy(between=1.0, rng=0), "between is a correlation"),
        (lambda: simulate.minor_factors(rmsea=0.0, rng=0), "rmsea is above 0"),
        (lambda: simulate.minor_factors(rmsea=0.9, rng=0), "cannot give an RMSEA of 0.9"),
        (lambda: simulate.minor_factors(decay=1.0, rng=0), "between and decay"),
        (lambda: simulate.minor_factors(item_loadings=(0.9, 0.5), rng=0), "item_loadings"),
    ],
)
def test_mistakes_are_sentences(call, words):
    with pytest.raises(um.UnmeasuredError, match=words):
        call()
