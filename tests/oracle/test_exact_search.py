"""Exact search against the theorem (population in, true class out) and against itself without any bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unmeasured as um
from unmeasured.estimators.exact import ExactSearch


def random_truth(rng, n):
    """A random factor model over n observed variables: any number of groups, sizes, common children."""
    sizes = [1] * int(rng.integers(1, n // 2 + 1))
    while n >= 2 * (sum(sizes) + 1) and rng.random() < 0.5:
        sizes[int(rng.integers(len(sizes)))] += 1
    spare = n - 2 * sum(sizes)
    n_common = int(rng.integers(0, min(spare, 2) + 1)) if len(sizes) > 1 else 0
    return um.simulate.random_gnfm(
        group_sizes=sizes, n_observed=n, n_common_children=n_common, max_parent_groups=3, rng=rng
    )


@pytest.mark.parametrize("trial", range(24))
@pytest.mark.parametrize("setting", ["paper", "realistic"])
def test_population_in_true_class_out(trial, setting):
    """Corollary 1: of the classes that fit, the true one alone has the smallest dimension."""
    rng = np.random.default_rng([trial, setting == "paper"])
    truth = random_truth(rng, 4 + trial % 4)
    if setting == "paper":
        parameters = um.simulate.paper_parameters(truth, rng, min_abs=0.5)
    else:
        parameters = um.simulate.realistic_parameters(truth, rng)
    search = ExactSearch(n_best=2).fit_cov(parameters.cov(), math.inf, names=parameters.observed)
    assert search.proven_
    assert um.metrics.compare(truth, search.graph_).shd == 0
    assert search.score_ == -um.dimension(truth)
    assert search.runners_up_[0].difference >= 1  # no tie


@pytest.mark.parametrize("seed", range(6))
def test_bounding_loses_nothing(seed):
    """The ten best classes are those found by fitting all 52."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        rows = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5))  # data of no factor model
    else:
        rows = um.simulate.sample(um.simulate.paper_parameters(random_truth(rng, 5), rng), 300, rng=rng)
    bounded, full = ExactSearch().fit(rows), ExactSearch()
    full._bounding = False
    full.fit(rows)
    assert (full.n_fitted_, full.n_bounded_, full.proven_) == (52, 0, True)
    assert bounded.n_fitted_ < 52
    scores = [[search.score_, *(runner.score for runner in search.runners_up_)] for search in (bounded, full)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    if full.runners_up_[0].difference > 1e-3:
        assert bounded.graph_ == full.graph_


def test_bounding_loses_nothing_with_six_variables():
    rng = np.random.default_rng(3)
    truth = um.simulate.random_gnfm(group_sizes=(2, 1), n_observed=6, rng=rng)
    rows = um.simulate.sample(um.simulate.paper_parameters(truth, rng), 1000, rng=rng)
    bounded, full = ExactSearch().fit(rows), ExactSearch()
    full._bounding = False
    full.fit(rows)
    assert full.n_fitted_ == 458
    assert bounded.n_fitted_ < 100
    assert bounded.graph_ == full.graph_
    assert [r.score for r in bounded.runners_up_] == pytest.approx([r.score for r in full.runners_up_], abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_no_class_beats_the_best_not_even_the_truth(seed):
    """N = 1000, the paper's coefficients."""
    rng = np.random.default_rng(seed)
    truth = random_truth(rng, 6 + seed % 2)
    rows = um.simulate.sample(um.simulate.paper_parameters(truth, rng), 1000, rng=rng)
    search = ExactSearch().fit(rows)
    assert search.proven_
    assert search.score_ >= -0.5 * um.fit(truth, rows).bic - 1e-5
