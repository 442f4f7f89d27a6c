"""A graph without latents is the answer where it explains more, and only there."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unmeasured as um
from small_graphs import all_dags
from unmeasured.search.observed import best_rival


@pytest.mark.parametrize("seed", range(4))
def test_the_rival_is_the_best_of_all_graphs(seed):
    rows = um.simulate.sample(um.simulate.random_dag(n_observed=4, density=0.6, rng=seed), 200, rng=seed)
    sample = um.as_sample(rows)
    price = 0.5 * (math.log(200) + math.log(6))
    dags = [
        um.DAG.from_edges([(sample.names[i], sample.names[j]) for i, j in np.argwhere(A)], names=sample.names)
        for A in all_dags(4)
    ]
    fits = um.fit_many(dags, sample)
    best = max(-0.5 * fit.chi2 - price * len(dag.edges) for dag, fit in zip(dags, fits, strict=True))
    assert best_rival(sample, 1.0).value == pytest.approx(best - 2.0 * math.log(200), abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_where_nothing_is_hidden_no_latent_is_invented(seed):
    truth = um.simulate.random_dag(n_observed=8, density=0.35, rng=seed)
    found = um.LGES().fit(um.simulate.sample(truth, 1000, rng=seed))
    assert found.graph_.latents == ()
    assert found.remarks_[0].startswith(("No latents are reported", "No factor model"))


@pytest.mark.parametrize("n_samples", [100, 1000])
def test_latents_that_are_there_stay(n_samples):
    """Small models, where a graph among observed variables is nearly as short."""
    for seed, (n_latents, n_observed) in enumerate([(1, 4), (1, 5), (2, 6), (2, 8), (3, 9)]):
        truth = um.simulate.random_one_factor(n_latents=n_latents, n_observed=n_observed, rng=seed)
        rows = um.simulate.sample(um.simulate.realistic_parameters(truth, rng=seed), n_samples, rng=seed)
        assert um.LGES().fit(rows).graph_.latents


def test_many_rows_reject_every_model_and_latents_stay_with_a_remark():
    data = um.datasets.load("big_five")
    items = [name for name in data.frame().columns if name[0] in "NE"]
    found = um.LGES(max_group_size=1, tolerance=0).fit_cov(data.frame().loc[items, items], data.n_samples)
    assert found.sem_.rmsea <= 0.08
    assert found.graph_.latents
    assert any(remark.startswith("A graph of the observed variables without latents") for remark in found.remarks_)
