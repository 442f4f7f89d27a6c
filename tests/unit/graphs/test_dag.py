from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest

from graphs_zoo import group_collider, mimic, one_factor, shared_child, two_group_chain
from small_graphs import is_acyclic
from unmeasured.errors import GraphError
from unmeasured.graphs import DAG, Variables


def test_edges_become_a_matrix_that_reads_row_to_column() -> None:
    dag = DAG.from_edges([("g", "x"), ("g", "y"), ("x", "y")], latents=["g"])
    assert dag.names == ("g", "x", "y")
    assert dag.adjacency.tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert dag.edges == (("g", "x"), ("g", "y"), ("x", "y"))
    assert dag.adjacency.dtype == np.uint8


def test_node_order_is_latents_first_then_first_appearance() -> None:
    dag = DAG.from_edges([("b", "z"), ("a", "z"), ("a", "y")], latents=["a", "b"])
    assert dag.names == ("a", "b", "z", "y")


def test_given_names_set_the_order_and_allow_isolated_nodes() -> None:
    dag = DAG.from_edges([("b", "a")], names=["a", "b", "alone"])
    assert dag.names == ("a", "b", "alone")
    assert dag.parents("alone") == ()
    assert str(DAG.from_edges([], names=["alone"])) == "no edges"


def test_neighbours_come_in_index_order() -> None:
    assert shared_child.parents("x7") == ("L1", "L2")
    assert shared_child.children("L2") == ("x4", "x5", "x6", "x7")
    assert shared_child.has_edge("L1", "x7")
    assert not shared_child.has_edge("x7", "L1")


def test_topological_order_takes_the_lowest_index_first() -> None:
    dag = DAG.from_edges([("c", "a"), ("d", "b")], names=["a", "b", "c", "d"])
    assert dag.topological_order == (2, 0, 3, 1)


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ([("L1", "L2"), ("L2", "L1")], "L1 → L2 → L1"),
        ([("L1", "L1")], "L1 → L1"),
        ([("s", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "t")], "a → b → c → a"),
    ],
)
def test_a_cycle_is_refused_and_named(edges: list[tuple[str, str]], cycle: str) -> None:
    with pytest.raises(GraphError, match=f"The graph has a cycle: {cycle}. Remove or reverse"):
        DAG.from_edges(edges)


def test_a_named_cycle_is_a_cycle_of_the_graph() -> None:
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(200):
        matrix = (rng.random((6, 6)) < 0.25).astype(np.uint8)
        names = [f"v{i}" for i in range(6)]
        try:
            DAG(Variables.of(names), matrix)
        except GraphError as error:
            refused += 1
            assert not is_acyclic(matrix)
            walk = str(error).split("cycle: ")[1].split(". Remove")[0].split(" → ")
            assert walk[0] == walk[-1]
            assert len(set(walk)) == len(walk) - 1
            assert all(matrix[names.index(a), names.index(b)] for a, b in pairwise(walk))
        else:
            assert is_acyclic(matrix)
    assert 20 < refused < 200


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0, 1]], r"2 variables need a 2 × 2 adjacency matrix; got shape \(1, 2\)"),
        ([[0, 0.3], [0, 0]], r"holds 0 and 1; got 0.3 for the edge a → b. If these are weights, pass matrix != 0"),
        ([[0, -1], [1, 0]], r"got -1 for the edge a → b"),
        ([[0, float("nan")], [0, 0]], r"got nan for the edge a → b"),
    ],
)
def test_bad_matrices_are_refused(matrix: list[list[float]], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        DAG(Variables.of(["a", "b"]), np.array(matrix))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DAG.from_edges([("a", "b", "c")]), r"An edge is a pair \(cause, effect\); got \('a', 'b', 'c'\)"),
        (lambda: DAG.from_edges(["ab"]), "An edge is a pair .*; got 'ab'"),
        (lambda: DAG.from_edges([("x1", "x22")], names=["x1", "x2"]), "No variable 'x22'.*did you mean 'x2'"),
        (lambda: DAG.from_edges([("g", "x")], latents="g"), "latents must be a list of strings"),
        (lambda: one_factor.parents("x11"), "No variable 'x11'.*did you mean 'x1'"),
    ],
)
def test_callers_mistakes_are_named(call, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        call()


def test_the_matrix_is_a_copy_and_read_only() -> None:
    matrix = np.array([[0, 1], [0, 0]], dtype=np.uint8)
    dag = DAG(Variables.of(["a", "b"]), matrix)
    matrix[0, 1] = 0
    assert dag.has_edge("a", "b")
    with pytest.raises(ValueError, match="read-only"):
        dag.adjacency[0, 1] = 0


def test_equality_is_by_value() -> None:
    again = DAG(one_factor.variables, one_factor.adjacency.astype(float))
    assert again == one_factor
    assert hash(again) == hash(one_factor)
    assert len({again, one_factor}) == 1
    assert one_factor != shared_child
    assert one_factor != "g"


@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
def test_copies_stay_equal_and_read_only(through) -> None:
    for graph in (two_group_chain, two_group_chain.cpdag()):
        again = through(graph)
        assert again == graph
        assert not again.adjacency.flags.writeable


def test_groups_are_latents_with_the_same_observed_children() -> None:
    assert group_collider.latent_groups == (("L1",), ("L2",), ("L3", "L4"))
    assert one_factor.latent_groups == (("g",),)
    assert DAG.from_edges([("a", "b")]).latent_groups == ()


def test_latents_without_observed_children_stand_alone() -> None:
    dag = DAG.from_edges([("G1", "L"), ("G2", "L"), ("L", "x")], latents=["G1", "G2", "L"])
    assert dag.latent_groups == (("G1",), ("G2",), ("L",))


def test_it_prints_something_useful() -> None:
    assert repr(one_factor) == "<DAG: 1 latent, 4 observed, 4 edges>"
    assert str(mimic) == "L → y, x\np → L\ny → z"
