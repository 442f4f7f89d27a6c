"""d-separation and generic ranks against networkx and against exact ranks at random parameters."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from graphs_zoo import group_collider, latent_chain, one_factor, shared_child, two_group_chain
from small_graphs import all_dags, exact_covariance, exact_rank, random_dag
from unmeasured.errors import GraphError
from unmeasured.graphs import DAG, Variables, generic_rank, is_d_separated


def _named(matrix: np.ndarray, latents: int = 0) -> DAG:
    names = [f"v{i}" for i in range(len(matrix))]
    return DAG(Variables.of(names, names[:latents]), matrix)


def test_generic_rank_is_the_rank_at_random_parameters() -> None:
    rng = np.random.default_rng(17)
    seen = set()
    for _ in range(300):
        d = int(rng.integers(4, 11))
        dag = _named(random_dag(rng, d, float(rng.uniform(0.15, 0.6))), latents=d // 3)
        covariance = exact_covariance(dag.adjacency, rng)
        for _ in range(4):
            rows = rng.choice(d, int(rng.integers(1, d)), replace=False)
            columns = rng.choice(d, int(rng.integers(1, d)), replace=False)  # may overlap with the rows
            expected = exact_rank([[covariance[i][j] for j in columns] for i in rows])
            found = generic_rank(dag, [dag.names[i] for i in rows], [dag.names[j] for j in columns])
            assert found == expected
            seen.add(found < min(len(rows), len(columns)))
    assert seen == {True, False}  # both full and deficient ranks were met


def test_generic_rank_between_observed_variables_only() -> None:
    rng = np.random.default_rng(23)
    deficient = 0
    for _ in range(100):
        latents, observed = int(rng.integers(1, 4)), 8
        matrix = np.zeros((latents + observed, latents + observed), dtype=np.uint8)
        matrix[:latents, :latents] = random_dag(rng, latents, 0.5)
        matrix[:latents, latents:] = rng.random((latents, observed)) < 0.6
        dag = _named(matrix, latents)
        covariance = exact_covariance(matrix, rng)
        order = rng.permutation(np.arange(latents, latents + observed))
        rows, columns = order[:4], order[4:]
        expected = exact_rank([[covariance[i][j] for j in columns] for i in rows])
        assert generic_rank(dag, [dag.names[i] for i in rows], [dag.names[j] for j in columns]) == expected
        deficient += expected < 4
    assert deficient > 50


def test_a_group_is_a_bottleneck_of_its_size() -> None:
    assert generic_rank(one_factor, ["x1", "x2"], ["x3", "x4"]) == 1
    assert generic_rank(two_group_chain, ["x3", "x4", "x5"], ["x1", "x2", "x6"]) == 2
    assert generic_rank(two_group_chain, ["x1", "x2"], ["x3", "x4", "x5", "x6"]) == 1
    assert generic_rank(shared_child, ["x1", "x2"], ["x4", "x5"]) == 0
    assert generic_rank(shared_child, ["x1", "x4"], ["x7", "x2"]) == 2
    assert generic_rank(group_collider, ["x1", "x3"], ["x2", "x4"]) == 2


def test_generic_rank_takes_a_single_name_and_empty_sets() -> None:
    assert generic_rank(one_factor, "x1", "x2") == 1
    assert generic_rank(one_factor, [], ["x2"]) == 0
    with pytest.raises(GraphError, match="No variable 'x9'"):
        generic_rank(one_factor, "x9", "x2")


def test_d_separation_agrees_with_networkx() -> None:
    rng = np.random.default_rng(29)
    answers = []
    for _ in range(150):
        d = int(rng.integers(3, 10))
        dag = _named(random_dag(rng, d, float(rng.uniform(0.1, 0.5))), latents=d // 3)
        graph = dag.to_networkx()
        for _ in range(4):
            label = rng.integers(0, 4, d)
            a, b, given = ({dag.names[i] for i in np.flatnonzero(label == k)} for k in range(3))
            if a and b:
                answers.append(is_d_separated(dag, a, b, given))
                assert answers[-1] == nx.is_d_separator(graph, a, b, given)
    assert 20 < sum(answers) < len(answers) - 20


def test_d_separation_is_a_vanishing_partial_covariance() -> None:
    # Cov(a, b | S) vanishes exactly when Cov(a S, b S) has no more than rank |S|
    rng = np.random.default_rng(31)
    for matrix in (*all_dags(3), *(random_dag(rng, 5, 0.4) for _ in range(25))):
        dag, covariance = _named(matrix), exact_covariance(matrix, rng)
        for a, b in combinations(range(len(matrix)), 2):
            others = [k for k in range(len(matrix)) if k not in (a, b)]
            for given in (c for r in range(len(others) + 1) for c in combinations(others, r)):
                minor = [[covariance[i][j] for j in (b, *given)] for i in (a, *given)]
                vanishes = exact_rank(minor) == len(given)
                names = [dag.names[k] for k in given]
                assert is_d_separated(dag, dag.names[a], dag.names[b], names) == vanishes


def test_d_separation_through_latents() -> None:
    assert is_d_separated(latent_chain, "x1", "x9", "L2")
    assert not is_d_separated(latent_chain, "x1", "x9", "x5")
    assert is_d_separated(shared_child, "L1", "L2")
    assert not is_d_separated(shared_child, "L1", "L2", "x7")


def test_overlapping_sets_are_refused() -> None:
    with pytest.raises(GraphError, match="'x1' is in both a and given; d-separation is about disjoint sets"):
        is_d_separated(one_factor, ["x1", "x2"], "x3", ["g", "x1"])
