from __future__ import annotations

import sys

import networkx as nx
import numpy as np
import pytest

from graphs_zoo import group_collider, latent_chain, one_factor, two_group_chain, zoo
from unmeasured.errors import GraphError
from unmeasured.graphs import CPDAG, DAG, from_adjacency, from_json, from_networkx
from unmeasured.graphs.formats import convert

everything = [
    pytest.param(g, id=f"{n}-{k}") for n, dag in zoo.items() for k, g in [("dag", dag), ("cpdag", dag.cpdag())]
]


@pytest.mark.parametrize("graph", everything)
def test_json_and_networkx_come_back_as_they_went(graph: DAG | CPDAG) -> None:
    assert from_json(graph.to_json()) == graph
    assert from_networkx(graph.to_networkx()) == graph


@pytest.mark.parametrize("graph", everything)
def test_graphml_comes_back_through_networkx(graph: DAG | CPDAG) -> None:
    assert from_networkx(nx.parse_graphml(graph.to_graphml())) == graph


def test_names_of_any_kind_survive() -> None:
    dag = DAG.from_edges([("Größe", 'my "item"'), ("Größe", "back\\slash")], latents=["Größe"])
    assert from_json(dag.to_json()) == dag
    assert from_networkx(nx.parse_graphml(dag.to_graphml())) == dag
    assert '"my \\"item\\""' in dag.to_dot()
    assert '"back\\\\slash"' in dag.to_dagitty()


# --- matrices -------------------------------------------------------------------------------------------


def test_the_direction_of_a_matrix_must_be_said() -> None:
    matrix = [[0, 1], [0, 0]]
    assert from_adjacency(matrix, ["a", "b"], direction="row to column").edges == (("a", "b"),)
    assert from_adjacency(matrix, ["a", "b"], direction="column to row").edges == (("b", "a"),)
    with pytest.raises(TypeError, match="direction"):
        from_adjacency(matrix, ["a", "b"])  # type: ignore[call-arg]
    with pytest.raises(GraphError, match="direction must be 'row to column' or 'column to row'; got 'rows'"):
        from_adjacency(matrix, ["a", "b"], direction="rows")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="direction must be"):
        convert.to_adjacency(one_factor, direction="down")  # type: ignore[arg-type]


@pytest.mark.parametrize("direction", ["row to column", "column to row"])
def test_matrices_come_back(direction: convert.Direction) -> None:
    frame = convert.to_adjacency(group_collider, direction=direction)
    assert list(frame.columns) == list(frame.index) == list(group_collider.names)
    back = from_adjacency(frame, list(frame.columns), group_collider.latents, direction=direction)
    assert back == group_collider
    reads_down = direction == "column to row"
    assert frame.loc["L3", "L1"] == reads_down
    assert frame.loc["L1", "L3"] == (not reads_down)


def test_a_frame_is_the_callers_to_change() -> None:
    frame = convert.to_adjacency(one_factor, direction="row to column")
    frame.loc["g", "x1"] = 0
    assert one_factor.has_edge("g", "x1")


def test_weights_and_cycles_in_a_matrix_are_refused() -> None:
    with pytest.raises(GraphError, match=r"got 0\.5 for the edge b → a"):
        from_adjacency([[0, 0.5], [0, 0]], ["a", "b"], direction="column to row")
    with pytest.raises(GraphError, match="cycle: a → b → a"):
        from_adjacency([[0, 1], [1, 0]], ["a", "b"], direction="row to column")


# --- networkx -------------------------------------------------------------------------------------------


def test_networkx_carries_roles_groups_and_undirected_edges() -> None:
    graph = two_group_chain.cpdag().to_networkx()
    assert graph.nodes["L2"] == {"role": "latent", "group": 1}
    assert graph.nodes["x1"] == {"role": "observed"}
    assert graph.edges["L1", "L2"] == graph.edges["L2", "L1"] == {"directed": False}
    assert graph.edges["L1", "x1"] == {"directed": True}
    assert graph.graph["kind"] == "cpdag"


def test_a_plain_networkx_graph_needs_only_its_latents() -> None:
    dag = from_networkx(nx.DiGraph([("g", "x"), ("g", "y")]), latents=["g"])
    assert isinstance(dag, DAG)
    assert (dag.latents, dag.observed) == (("g",), ("x", "y"))
    assert from_networkx(nx.DiGraph([("a", "b")])).latents == ()


def test_undirected_arcs_without_groups_make_latents_stand_alone() -> None:
    graph = latent_chain.cpdag().to_networkx()
    for name in latent_chain.latents:
        del graph.nodes[name]["group"]
    del graph.graph["kind"]
    assert from_networkx(graph) == latent_chain.cpdag()


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.Graph([("a", "b")]), "must be directed to become a DAG; got an undirected one"),
        (nx.DiGraph([(1, 2)]), "Variable names must be strings that are not empty; got 1"),
        (nx.DiGraph([("a", "b", {"directed": False})]), "arc a → b has directed=False but there is no arc b → a"),
        (nx.DiGraph([("a", "b"), ("b", "a")]), "cycle: a → b → a"),
    ],
)
def test_other_networkx_graphs_are_refused(graph: nx.Graph, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        from_networkx(graph)


def test_an_unknown_role_is_refused() -> None:
    graph = nx.DiGraph()
    graph.add_node("a", role="hidden")
    with pytest.raises(GraphError, match=r"The role of 'a' must be 'latent', 'observed', .*; got 'hidden'"):
        from_networkx(graph)


# --- text -----------------------------------------------------------------------------------------------


def test_dot_draws_latents_round_and_undirected_edges_plain() -> None:
    text = two_group_chain.cpdag().to_dot()
    assert '"L1" [shape=ellipse];' in text
    assert '"x1" [shape=box];' in text
    assert '"L1" -> "x1";' in text
    assert '"L1" -> "L2" [dir=none];' in text
    assert text.count("->") == 12


def test_dagitty_says_pdag_when_edges_are_undirected() -> None:
    assert latent_chain.to_dagitty().startswith("dag {\n  L1 [latent]\n")
    text = latent_chain.cpdag().to_dagitty()
    assert text.startswith("pdag {")
    assert "  L1 -- L2\n" in text
    assert "  L1 -> x1\n" in text
    assert group_collider.cpdag().to_dagitty().startswith("dag {")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "This is not JSON"),
        ("[]", 'has "kind": "dag" or "cpdag"; got None'),
        ('{"kind": "tree"}', "got 'tree'"),
        ('{"kind": "dag"}', "A dag in JSON needs the keys 'variables', 'directed'; missing: 'variables', 'directed'"),
        ('{"kind": "cpdag", "variables": [], "directed": []}', "missing: 'undirected', 'latent_groups'"),
        (
            '{"kind": "dag", "variables": [{"name": "x1"}], "directed": [["x1", "x2"]]}',
            "No variable 'x2' in this graph",
        ),
    ],
)
def test_json_that_is_no_graph_is_refused(text: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        from_json(text)


# --- causal-learn ---------------------------------------------------------------------------------------


def test_without_causal_learn_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "causallearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "causallearn", None)
    with pytest.raises(ImportError, match=r"needs the package causal-learn, .* pip install causal-learn"):
        one_factor.to_causallearn()


def test_causal_learn_reads_the_transposed_marks() -> None:
    pytest.importorskip("causallearn")
    graph = latent_chain.cpdag().to_causallearn()
    index = latent_chain.variables.index
    marks = graph.graph
    assert marks[index("x1"), index("L1")] == 1
    assert marks[index("L1"), index("x1")] == -1
    assert marks[index("L1"), index("L2")] == marks[index("L2"), index("L1")] == -1
    assert np.count_nonzero(marks) == 2 * (9 + 2)
    assert [n.get_node_type().name for n in graph.get_nodes()[:4]] == ["LATENT"] * 3 + ["MEASURED"]
