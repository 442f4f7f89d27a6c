"""Clusters of many variables by rank constraints with their nearest others: against full canonical correlations."""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import combinations

import numpy as np
import pytest

import unmeasured as um
from unmeasured.errors import Stopped
from unmeasured.search.budget import BUDGET
from unmeasured.search.measurement.local_clusters import LocalRanks, clusters_alone
from unmeasured.search.measurement.proposals import Clustering, RankGains, find_clusters

STRICT = BUDGET.chance_rates[0]


def simulated(dag: um.DAG, n_samples: int, seed: int) -> um.Sample:
    rng = np.random.default_rng(seed)
    return um.as_sample(um.simulate.sample(um.simulate.realistic_parameters(dag, rng), n_samples, rng=rng))


def separate(sizes: tuple[int, ...], items: int, n_samples: int = 2000, seed: int = 0) -> um.Sample:
    """Groups without edges between them, so many indicators each."""
    graph = um.simulate.random_gnfm(group_sizes=sizes, n_observed=items * len(sizes), density=0.0, rng=seed)
    return simulated(graph, n_samples, seed)


@pytest.mark.parametrize("k", [0, 1, 2])
def test_what_a_constraint_costs_is_half_the_log_of_what_small_correlations_leave(k: int) -> None:
    """Against canonical correlations by singular values, where all others are near enough to be looked at."""
    graph = um.simulate.random_gnfm(group_sizes=(1, 2, 1), n_observed=14, density=1.0, rng=4)
    sample = simulated(graph, 5000, 4)
    ranks = LocalRanks(sample)
    subset = [0, 1, 5, 9]
    others = [j for j in range(14) if j not in subset]
    assert ranks._related[subset][:, others].any(axis=0).all()  # nothing is left out
    roots = [np.linalg.cholesky(sample.corr[np.ix_(at, at)]) for at in (subset, others)]
    between = np.linalg.solve(roots[0], sample.corr[np.ix_(subset, others)])
    rho = np.linalg.svd(np.linalg.solve(roots[1], between.T), compute_uv=False)
    (shortfall,), (n_others,) = ranks._shortfalls(np.array([subset]), k)
    assert n_others == len(others)
    assert shortfall == pytest.approx(-0.5 * np.log(1 - rho[k:] ** 2).sum(), abs=1e-10)
    codimension = (4 - k) * (10 - k)
    worth = 0.5 * (codimension + 2.0 * math.sqrt(2.0 * codimension) + 2.0)
    (gain,) = ranks.gains(np.array([subset]), k, 2.0)
    assert gain == pytest.approx(worth - (5000 - 0.5 * 15) * shortfall, rel=1e-9)


def test_true_constraints_pass_and_wrong_ones_fail_with_few_rows_a_variable() -> None:
    """200 variables, 400 rows."""
    rng = np.random.default_rng(6)
    rows = np.repeat(rng.normal(size=(400, 40)), 5, axis=1) + rng.normal(size=(400, 200))
    within = np.array([[5 * g + i, 5 * g + j] for g in range(40) for i, j in combinations(range(5), 2)])
    across = np.array([[5 * g, 5 * g + 5] for g in range(39)])
    ranks = LocalRanks(um.as_sample(rows))
    assert (ranks.gains(within, 1, STRICT) > 0.0).mean() > 0.98
    assert (ranks.gains(across, 1, STRICT) > 0.0).mean() < 0.02


def test_others_that_may_be_unrelated_say_nothing() -> None:
    """The largest of hundreds of correlations by chance would count as evidence against a latent that stands alone."""
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(2000, 400))
    alone = rng.normal(size=(2000, 1)) + rng.normal(size=(2000, 3))
    ranks = LocalRanks(um.as_sample(np.column_stack([alone, noise])))
    pairs = np.array(list(combinations(range(3), 2)))
    _, n_others = ranks._shortfalls(pairs, 1)
    assert n_others.tolist() == [1, 1, 1]
    assert (ranks.gains(pairs, 1, STRICT) > 0.0).all()
    assert (1, (0, 1, 2)) in list(ranks.clusters(range(403), STRICT, 3))


@pytest.mark.parametrize("sizes", [(1,) * 8, (2,) * 6, (1, 2, 1, 2, 1, 2)])
def test_groups_without_edges_come_out(sizes: tuple[int, ...]) -> None:
    """Groups of two too, of which pairs with nearly proportional loadings pass as indicators of one latent."""
    sample = separate(sizes, 6, seed=2)
    graph = um.simulate.random_gnfm(group_sizes=sizes, n_observed=6 * len(sizes), density=0.0, rng=2)
    by_parents: dict[frozenset[str], set[str]] = {}
    for name in graph.observed:
        by_parents.setdefault(frozenset(graph.parents(name)), set()).add(name)
    truth = {(len(parents), frozenset(items)) for parents, items in by_parents.items()}
    found = {
        (k, frozenset(sample.names[j] for j in items))
        for k, items in LocalRanks(sample).clusters(range(len(sample.names)), STRICT, 3)
    }
    assert len(found & truth) >= len(truth) - 1


def test_sets_that_chance_explains_are_seldom_mixed() -> None:
    """With 90 variables BIC's penalty lets almost any set pass."""
    graph = um.simulate.random_gnfm(group_sizes=(1,) * 18, n_observed=90, density=0.2, rng=5)
    sample = simulated(graph, 2000, 5)
    parent = [graph.parents(name)[0] for name in sample.names]
    by_penalty, _ = find_clusters(RankGains(sample, 0.5 * math.log(2000)), range(90), Clustering(1.0), 1)
    by_test = list(LocalRanks(sample).clusters(range(90), STRICT, 1))

    def n_mixed(clusters: list[tuple[int, tuple[int, ...]]]) -> int:
        return sum(len(items) for _, items in clusters if len({parent[j] for j in items}) > 1)

    assert n_mixed(by_penalty) > 60
    assert n_mixed(by_test) == 0
    assert sum(len(items) for _, items in by_test) >= 80


def test_clusters_are_disjoint_and_large_enough_whatever_the_order_of_columns() -> None:
    sample = separate((1, 2, 1), 6, n_samples=300, seed=7)
    clusters = list(LocalRanks(sample).clusters(range(18), STRICT, 3))
    taken = [j for _, items in clusters for j in items]
    assert len(taken) == len(set(taken))
    assert all(len(items) >= 2 * k for k, items in clusters)
    model = clusters_alone(sample.names, clusters)
    assert model.is_valid
    turned = sample.select(sample.names[::-1])
    again = list(LocalRanks(turned).clusters(range(18), STRICT, 3))
    named = [{(k, frozenset(s.names[j] for j in at)) for k, at in c} for s, c in ((sample, clusters), (turned, again))]
    assert named[0] == named[1]


def test_clusters_found_before_the_time_is_over_are_kept() -> None:
    sample = separate((1,) * 8, 6)
    n_checks = 0

    def check() -> None:
        nonlocal n_checks
        n_checks += 1
        if n_checks > 25:
            raise Stopped

    found = []
    clusters = LocalRanks(sample, check).clusters(range(48), STRICT, 3)
    with suppress(Stopped):
        while True:
            found.append(next(clusters))
    assert 0 < len(found) < 8
