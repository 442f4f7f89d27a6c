"""What must hold for any two graphs."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from unmeasured.graphs import CPDAG, DAG, markov_class
from unmeasured.metrics import compare
from unmeasured.simulate import random_gnfm

seeds = st.integers(0, 2**32 - 1)


@st.composite
def graphs(draw: st.DrawFn, n_observed: int = 8, max_latents: int = 4) -> DAG:
    """A GNFM over X1, ..., X8."""
    n_latents = draw(st.integers(1, max_latents))
    n_common = draw(st.integers(0, min(1, n_observed - 2 * n_latents))) if n_latents > 1 else 0
    n_groups = draw(st.integers(max(1 + n_common, -(-n_latents // 3)), n_latents))
    return random_gnfm(
        n_latents=n_latents,
        n_groups=n_groups,
        n_observed=n_observed,
        n_common_children=n_common,
        density=draw(st.sampled_from([0.0, 0.5, 1.0])),
        rng=draw(seeds),
    )


def relabelled(dag: DAG, seed: int) -> DAG:
    """The same graph with its latents renamed and all variables in a new order."""
    rng = np.random.default_rng(seed)
    fresh = {str(name): f"H{k}" for k, name in enumerate(rng.permutation(dag.latents))}
    names = [fresh.get(str(name), str(name)) for name in rng.permutation(dag.names)]
    edges = [(fresh.get(a, a), fresh.get(b, b)) for a, b in dag.edges]
    return DAG.from_edges(edges, latents=list(fresh.values()), names=names)


def marks(graph: CPDAG) -> dict[tuple[str, str], tuple[int, int]]:
    """The mark of each adjacent pair, seen from both ends."""
    A, names = graph.adjacency, graph.names
    both = [(i, j) for i in range(len(names)) for j in range(len(names)) if A[i, j] or A[j, i]]
    return {(names[i], names[j]): (int(A[i, j]), int(A[j, i])) for i, j in both}


def by_brute_force(truth: DAG, estimate: DAG) -> tuple[float, int, int]:
    """F1, shd and shd_paper by the definition: one permutation after the other, names and dictionaries."""
    m = max(len(truth.latents), len(estimate.latents))
    true = [*truth.latents, *(f"no true latent {k}" for k in range(m - len(truth.latents)))]
    found = [*estimate.latents, *(f"no latent found {k}" for k in range(m - len(estimate.latents)))]
    results = []
    for images in permutations(true):
        rename = dict(zip(found, images))
        counts = []
        for make in (DAG.cpdag, markov_class):
            ours = marks(make(truth))
            theirs = {tuple(rename.get(n, n) for n in pair): mark for pair, mark in marks(make(estimate)).items()}
            pairs = combinations(sorted({*true, *truth.observed}), 2)
            shared, differ = 0, 0
            for pair in pairs:
                shared += pair in ours and pair in theirs
                differ += ours.get(pair, (0, 0)) != theirs.get(pair, (0, 0))
            counts.append((shared, differ))
        results.append((counts[0][0], counts[0][1], counts[1][1]))
    most = max(shared for shared, _, _ in results)
    f1 = 2 * most / (len(truth.edges) + len(estimate.edges))
    shd, shd_paper = (min(row[k] for row in results if row[0] == most) for k in (1, 2))
    return f1, shd, shd_paper


@given(graphs(), seeds)
@settings(max_examples=examples(60), deadline=None)
def test_a_graph_agrees_with_itself_whatever_its_latents_are_called(dag: DAG, seed: int) -> None:
    result = compare(dag, relabelled(dag, seed))
    assert (result.f1, result.precision, result.recall) == (1, 1, 1)
    assert (result.shd, result.shd_paper) == (0, 0)
    assert result.latents_matched == result.n_latents_true == result.n_latents_found


@given(graphs(), graphs(), seeds)
@settings(max_examples=examples(40), deadline=None)
def test_names_and_order_of_latents_do_not_matter(truth: DAG, estimate: DAG, seed: int) -> None:
    plain, renamed = (
        compare(truth, estimate),
        compare(relabelled(truth, seed), relabelled(estimate, seed + 1)),
    )
    for name in ("f1", "precision", "recall", "shd", "shd_paper"):
        assert getattr(plain, name) == getattr(renamed, name)


@given(graphs(), graphs())
@settings(max_examples=examples(40), deadline=None)
def test_equal_to_brute_force(truth: DAG, estimate: DAG) -> None:
    result = compare(truth, estimate)
    assert (result.f1, result.shd, result.shd_paper) == by_brute_force(truth, estimate)


@given(graphs(), graphs())
@settings(max_examples=examples(40), deadline=None)
def test_swapping_the_two_graphs_swaps_precision_and_recall(truth: DAG, estimate: DAG) -> None:
    there, back = compare(truth, estimate), compare(estimate, truth)
    assert (there.f1, there.shd, there.shd_paper) == (back.f1, back.shd, back.shd_paper)
    assert (there.precision, there.recall) == (back.recall, back.precision)


@given(graphs(), graphs())
@settings(max_examples=examples(40), deadline=None)
def test_distances_are_at_least_the_skeletons_difference(truth: DAG, estimate: DAG) -> None:
    result = compare(truth, estimate)
    shared = round(result.recall * len(truth.edges))
    skeleton = len(truth.edges) + len(estimate.edges) - 2 * shared
    assert min(result.shd, result.shd_paper) >= skeleton
    assert 0 <= result.f1 <= 1
