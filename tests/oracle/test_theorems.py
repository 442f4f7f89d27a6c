"""The paper's lemmas and theorems as executable statements on random models."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import unmeasured as um
from benchmarks.consistency import consistency, population, random_truth
from unmeasured.data.sample import Sample
from unmeasured.graphs.separation import generic_rank
from unmeasured.search.paper.phase1 import run_phase1
from unmeasured.search.paper.state import initial_state
from unmeasured.search.score import LikelihoodScore


def population_sample(parameters):
    return Sample.from_cov(parameters.cov(), math.inf, parameters.observed)


@pytest.mark.parametrize("seed", range(12))
def test_lemma_1_the_initial_state_can_generate_every_factor_model(seed):
    parameters = random_truth(np.random.default_rng(seed), (4, 11))
    score = LikelihoodScore(population_sample(parameters))
    state = initial_state(parameters.observed)
    assert score([state])[0] == pytest.approx(0.0, abs=1e-9)
    assert len(state.latents) >= len(parameters.dag.latents)


@pytest.mark.parametrize("seed", range(12))
def test_lemma_2_phase_1_finds_the_measurement_model(seed):
    parameters = random_truth(np.random.default_rng(100 + seed), (4, 11))
    score = LikelihoodScore(population_sample(parameters))
    found, leftover, _ = run_phase1(initial_state(parameters.observed), score, 1e-9)
    truth = parameters.dag
    # Every variable has the same siblings: the groups of indicators agree, and so do their sizes.
    ours = {x: frozenset(found.cpdag.member().parents(x)) for x in truth.observed}
    theirs = {x: frozenset(truth.parents(x)) for x in truth.observed}
    for a, b in itertools.combinations(truth.observed, 2):
        assert (ours[a] == ours[b]) == (theirs[a] == theirs[b])
        assert len(ours[a] & ours[b]) == len(theirs[a] & theirs[b])
    assert len(found.latents) == len(truth.latents)
    assert set(leftover) <= {truth.observed.index(x) for x in truth.observed if len(theirs[x]) == len(truth.latents)}


def test_theorem_3_population_in_true_class_out():
    """Sixty graphs of up to 12 variables here; 300 of up to 20 by `python -m benchmarks population`."""
    search = um.LGES(criterion="delta")
    result = consistency(lambda p, rng: population(search, p), n_graphs=60, seed=17, n_observed=(4, 12))
    assert result.n_right == 60, str(result)


def rank_constraints(dag, size=3):
    """All generic ranks between disjoint sets of observed variables up to a size: the constraints that exist."""
    observed = dag.observed
    ranks = {}
    for a, b in itertools.product(range(1, size + 1), repeat=2):
        for A in itertools.combinations(observed, a):
            rest = [x for x in observed if x not in A]
            for B in itertools.combinations(rest, b):
                ranks[A, B] = generic_rank(dag, A, B)
    return ranks


def test_theorem_2_equal_constraints_mean_the_same_class():
    """Random pairs of factor models on six variables: equal rank constraints exactly where the class is equal."""
    rng = np.random.default_rng(8)
    seen = {}
    for _ in range(60):
        sizes = [[1, 1, 1], [1, 1], [1], [2, 1], [3]][rng.integers(5)]
        common = int(rng.integers(0, 2)) if len(sizes) > 1 and 2 * sum(sizes) < 6 else 0
        dag = um.simulate.random_gnfm(group_sizes=sizes, n_observed=6, n_common_children=common, rng=rng)
        # Latents and items are numbered as drawn; shuffle the items so that equal classes meet in many guises.
        new = dict(zip(dag.observed, rng.permutation(dag.observed).tolist(), strict=True))
        dag = um.DAG.from_edges(
            [(new.get(a, a), new.get(b, b)) for a, b in dag.edges],
            latents=dag.latents,
            names=(*dag.latents, *sorted(dag.observed)),
        )
        key = tuple(sorted(rank_constraints(dag).items()))
        for other_key, other in seen.items():
            same_class = um.metrics.compare(dag, other).shd == 0
            assert (key == other_key) == same_class, (dag.edges, other.edges)
        seen.setdefault(key, dag)
    assert len(seen) > 20


@pytest.mark.parametrize("seed", range(6))
def test_theorem_1_best_likelihood_and_least_dimension_is_the_truth(seed):
    """Of the truth and its neighbours, those with perfect fit and least dimension have the truth's constraints."""
    rng = np.random.default_rng(seed)
    parameters = random_truth(rng, (6, 7))
    truth = parameters.dag
    neighbours = [truth]
    for latent, x in itertools.product(truth.latents, truth.observed):
        edges = set(truth.edges) ^ {(latent, x)}
        neighbours.append(um.DAG.from_edges(sorted(edges), latents=truth.latents, names=truth.names))
    fits = um.fit_many(neighbours, population_sample(parameters))
    perfect = [f for f in fits if f.solution.discrepancy < 1e-8]
    least = min(int(f.dimension) for f in perfect)
    assert least == um.dimension(truth)
    for f in perfect:
        if int(f.dimension) == least:
            assert rank_constraints(f.graph, 2) == rank_constraints(truth, 2)
