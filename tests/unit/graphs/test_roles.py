"""Covariates and outcomes in graphs: what roles exclude, what they direct, and how they are written elsewhere."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

import unmeasured as um
from unmeasured.errors import GraphError
from unmeasured.graphs import Variables, class_over_groups, from_json, from_networkx
from unmeasured.graphs.orientation import v_structures

ITEMS = [("A", "a1"), ("A", "a2"), ("B", "b1"), ("B", "b2")]


def graph(*edges: tuple[str, str]) -> um.DAG:
    names = ["A", "B", "a1", "a2", "b1", "b2", "age", "sick"]
    return um.DAG.from_edges([*ITEMS, *edges], latents=["A", "B"], names=names, covariates=["age"], outcomes=["sick"])


def test_a_covariate_directs_an_edge_that_would_be_open() -> None:
    assert graph(("A", "B")).cpdag().undirected_edges == (("A", "B"),)
    told = graph(("age", "A"), ("A", "B")).cpdag()
    assert told.undirected_edges == ()
    assert ("A", "B") in told.directed_edges
    both = graph(("age", "A"), ("age", "B"), ("A", "B")).cpdag()  # a triangle tells nothing
    assert both.undirected_edges == (("A", "B"),)


def closed(A: NDArray[np.uint8], given: list[int]) -> NDArray[np.uint8]:
    """The graph with all covariates connected, which is what their free covariances mean."""
    out = A.copy()
    for a, b in combinations(given, 2):
        out[a, b] = 1
    return out


def is_acyclic(A: NDArray[np.uint8]) -> bool:
    return not np.linalg.matrix_power(A.astype(float) + np.eye(len(A)), len(A)).trace() > len(A)


@pytest.mark.parametrize("seed", range(25))
def test_the_class_is_what_all_members_share(seed: int) -> None:
    """Brute force: every acyclic way to direct the skeleton that roles allow, with the same v-structures."""
    rng = np.random.default_rng(seed)
    names = ["L1", "L2", "L3", "x1", "x2", "y1", "y2"]
    order = [3, 4, 0, 1, 2, 5, 6]
    A = np.zeros((7, 7), dtype=np.uint8)
    for i, a in enumerate(order):
        for b in order[i + 1 :]:
            A[a, b] = rng.random() < 0.45
    A[np.ix_([3, 4], [3, 4])] = 0
    variables = Variables.of(names, names[:3], covariates=["x1", "x2"], outcomes=["y1", "y2"])
    found = class_over_groups(um.DAG(variables, A), [[name] for name in names[:3]]).adjacency
    pairs = [(i, j) for i, j in combinations(range(7), 2) if A[i, j] or A[j, i]]
    members = []
    for turns in product([False, True], repeat=len(pairs)):
        other = np.zeros_like(A)
        for (i, j), turn in zip(pairs, turns, strict=True):
            other[(j, i) if turn else (i, j)] = 1
        if other[:, [3, 4]].any() or other[[5, 6], :5].any() or not is_acyclic(closed(other, [3, 4])):
            continue
        if v_structures(closed(other, [3, 4])) == v_structures(closed(A, [3, 4])):
            members.append(other)
    assert np.array_equal(np.any(members, axis=0).astype(np.uint8), found)


@pytest.mark.parametrize(
    ("edge", "message"),
    [
        (("A", "age"), "A → age points at a covariate"),
        (("sick", "A"), "sick → A: an outcome causes nothing but other outcomes"),
    ],
)
def test_edges_that_roles_exclude_are_refused(edge: tuple[str, str], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        graph(edge)


def test_roles_are_of_observed_variables_and_one_each() -> None:
    with pytest.raises(GraphError, match="'A' is latent; covariates are observed"):
        Variables.of(["A", "x"], ["A"], covariates=["A"])
    with pytest.raises(GraphError, match="a covariate or an outcome, not both"):
        Variables.of(["x"], covariates=["x"], outcomes=["x"])
    with pytest.raises(GraphError, match="No variable 'z'"):
        Variables.of(["x"], covariates=["z"])


def test_roles_come_back_from_json_and_networkx() -> None:
    dag = graph(("age", "A"), ("A", "sick"))
    assert from_json(dag.to_json()) == dag
    assert from_json(dag.cpdag().to_json()) == dag.cpdag()
    assert from_networkx(dag.to_networkx()) == dag
    renamed = dag.rename({"age": "years", "A": "mood"})
    assert renamed.variables.covariates == ("years",)
    assert renamed.variables.role("sick") == "outcome"
    assert graph() != um.DAG.from_edges(ITEMS, latents=["A", "B"], names=dag.names)


def test_other_programs_are_told_of_roles() -> None:
    dag = graph(("age", "A"), ("A", "sick"))
    dagitty, dot = dag.to_dagitty(), dag.to_dot()
    assert "age [exposure]" in dagitty
    assert "sick [outcome]" in dagitty
    assert '"age" [shape=box, class=covariate];' in dot
    assert '{rank=source; "age";}' in dot
    assert '{rank=sink; "sick";}' in dot
    assert "sick ~ A" in dag.to_lavaan()
    assert "A =~ a1 + a2\n" in dag.to_lavaan()
    assert "sick ~ A" in dag.to_semopy()


def test_a_covariate_without_an_effect_takes_part_in_the_fit() -> None:
    assert "sick ~ 0*age" in graph(("A", "sick")).to_lavaan()


def test_pure_children_are_indicators() -> None:
    dag = graph(("age", "A"), ("A", "sick"), ("age", "a2"))
    assert um.graphs.LatentGroups.of(dag).pure_children(["A"]) == ("a1", "a2")
