"""Every export goes through the reader of the program it is for, and comes back with the same edges and roles.

lavaan has a file of its own. dagitty itself is an R package that needs a JavaScript engine; pgmpy reads its text too.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest

import unmeasured as um
from graphs_zoo import group_collider, latent_chain, shared_child, two_group_chain, two_traits, zoo
from unmeasured.graphs import from_networkx
from unmeasured.graphs.formats import convert

both = [pytest.param(g, id=f"{n}-{k}") for n, dag in zoo.items() for k, g in [("dag", dag), ("cpdag", dag.cpdag())]]


def edges_of(graph: um.DAG | um.CPDAG) -> tuple[set[tuple[str, str]], set[frozenset[str]]]:
    """Directed edges, and undirected ones as sets."""
    if isinstance(graph, um.DAG):
        return set(graph.edges), set()
    return set(graph.directed_edges), {frozenset(pair) for pair in graph.undirected_edges}


# --- networkx -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", both)
def test_networkx_reads_gml(graph: um.DAG | um.CPDAG) -> None:
    assert from_networkx(nx.parse_gml(graph.to_gml())) == graph


def test_gml_keeps_names_of_any_kind() -> None:
    dag = um.DAG.from_edges([("Größe", 'my "item"'), ("Größe", "a & b")], latents=["Größe"])
    assert from_networkx(nx.parse_gml(dag.to_gml())) == dag


# --- Graphviz -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pydot")  # it calls pyparsing by its old names
@pytest.mark.parametrize("graph", both)
def test_pydot_reads_dot(graph: um.DAG | um.CPDAG) -> None:
    pydot = pytest.importorskip("pydot", reason="pydot, the reader of DOT, is not installed")
    (read,) = pydot.graph_from_dot_data(graph.to_dot())
    shapes = {node.get_name().strip('"'): node.get_shape() for node in read.get_nodes()}
    assert shapes == {name: "ellipse" if name in graph.latents else "box" for name in graph.names}
    found = [(e.get_source().strip('"'), e.get_destination().strip('"'), e.get("dir")) for e in read.get_edges()]
    directed = {(a, b) for a, b, kind in found if kind is None}
    undirected = {frozenset((a, b)) for a, b, kind in found if kind == "none"}
    assert (directed, undirected) == edges_of(graph)


# --- dagitty --------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # pgmpy's own
@pytest.mark.parametrize("dag", zoo.values(), ids=zoo)
def test_pgmpy_reads_dagitty(dag: um.DAG) -> None:
    base = pytest.importorskip("pgmpy.base", reason="pgmpy, which reads dagitty's text, is not installed")
    read = base.DAG.from_dagitty(string=dag.to_dagitty())
    assert set(read.edges()) == set(dag.edges)
    assert set(read.nodes()) == set(dag.names)
    assert set(read.latents) == set(dag.latents)


# --- causal-learn and Tetrad ----------------------------------------------------------------------------


def causallearn_edges(graph: object) -> tuple[set[tuple[str, str]], set[frozenset[str]]]:
    directed, undirected = set(), set()
    for edge in graph.get_graph_edges():  # type: ignore[attr-defined]
        a, b = edge.get_node1().get_name(), edge.get_node2().get_name()
        ends = (edge.get_endpoint1().name, edge.get_endpoint2().name)
        if ends == ("TAIL", "TAIL"):
            undirected.add(frozenset((a, b)))
        else:
            assert set(ends) == {"TAIL", "ARROW"}
            directed.add((a, b) if ends == ("TAIL", "ARROW") else (b, a))
    return directed, undirected


@pytest.mark.parametrize("graph", both)
def test_causal_learn_has_the_same_edges_and_roles(graph: um.DAG | um.CPDAG) -> None:
    pytest.importorskip("causallearn", reason="causal-learn is not installed")
    read = graph.to_causallearn()
    assert causallearn_edges(read) == edges_of(graph)
    latent = {node.get_name() for node in read.get_nodes() if node.get_node_type().name == "LATENT"}
    assert latent == set(graph.latents)


@pytest.mark.parametrize("graph", both)
def test_causal_learn_reads_tetrads_text(graph: um.DAG | um.CPDAG, tmp_path: Path) -> None:
    module = pytest.importorskip(
        "causallearn.utils.TXT2GeneralGraph", reason="causal-learn, which reads Tetrad's text, is not installed"
    )
    text = graph.to_tetrad()
    nodes = text.splitlines()[1].split(";")
    assert [node[1:-1] for node in nodes if node.startswith("(")] == list(graph.latents)
    # Tetrad reads (L1) as a latent called L1; causal-learn's reader of the format does not know the brackets.
    (tmp_path / "graph.txt").write_text(re.sub(r"\((.*?)\)", r"\1", text))
    read = module.txt2generalgraph(str(tmp_path / "graph.txt"))
    assert [node.get_name() for node in read.get_nodes()] == list(graph.names)
    assert causallearn_edges(read) == edges_of(graph)


def test_names_tetrad_cannot_read_are_refused() -> None:
    dag = um.DAG.from_edges([("g", "my item"), ("g", "a;b")], latents=["g"])
    with pytest.raises(um.GraphError, match="Tetrad's text cannot hold these names: 'my item', 'a;b'"):
        dag.to_tetrad()


# --- and back to us -------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", both)
def test_what_we_wrote_we_read(graph: um.DAG | um.CPDAG) -> None:
    # A class without undirected edges looks like a DAG to programs that have no name for classes.
    directed = isinstance(graph, um.DAG) or not graph.undirected_edges
    expected = (graph if isinstance(graph, um.DAG) else graph.member()) if directed else graph
    assert convert.from_tetrad(graph.to_tetrad()) == expected
    assert convert.from_dagitty(graph.to_dagitty()) == expected


@pytest.mark.parametrize("graph", both)
def test_what_causal_learn_holds_we_read(graph: um.DAG | um.CPDAG) -> None:
    pytest.importorskip("causallearn", reason="causal-learn is not installed")
    directed = isinstance(graph, um.DAG) or not graph.undirected_edges
    expected = (graph if isinstance(graph, um.DAG) else graph.member()) if directed else graph
    assert convert.from_causallearn(graph.to_causallearn()) == expected


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("dag { a -> b <- c }", {("a", "b"), ("c", "b")}),
        ("dag{a->{b c};d<-a}", {("a", "b"), ("a", "c"), ("a", "d")}),
        ('dag {\nbb="0,0,1,1"\n{a b} -> c\nd\n}', {("a", "c"), ("b", "c")}),
        ('dag { "my item" -> b [beta=".3"] }', {("my item", "b")}),
        ('dag { a [exposure,pos="1,2"] /* a comment */ b a -> b }', {("a", "b")}),
        ("dag { a -> {b c} -> d }", {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")}),
    ],
)
def test_dagittys_shorthand_is_understood(text: str, edges: set[tuple[str, str]]) -> None:
    dag = convert.from_dagitty(text)
    assert isinstance(dag, um.DAG)
    assert set(dag.edges) == edges
    assert "bb" not in dag.names


def test_dagittys_latents_are_latent() -> None:
    dag = convert.from_dagitty('dag { U [latent,pos="0,0"] x [latentish] U -> x }')
    assert dag.latents == ("U",)


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (convert.from_dagitty, "digraph { a -> b }", "begins with 'dag {' or 'pdag {'"),
        (convert.from_dagitty, "dag { a <-> b }", "The edge a <-> b belongs to another kind of graph"),
        (convert.from_dagitty, "dag { a > b }", "cannot be read at '> b '"),
        (convert.from_dagitty, "dag { a -> b -> a }", "cycle"),
        (convert.from_tetrad, "a --> b", "This is not Tetrad's text"),
        (convert.from_tetrad, "Graph Nodes:\na;b\n\nGraph Edges:\n1. a o-> b\n", "The edge a o-> b belongs to another"),
        (convert.from_tetrad, "Graph Nodes:\na;b\n\nGraph Edges:\n1. a b\n", "The edge '1. a b' cannot be read"),
        (convert.from_tetrad, "Graph Nodes:\na;b\n\nGraph Edges:\n1. a --> c\n", "No variable 'c' in this graph"),
    ],
)
def test_text_that_is_no_graph_of_ours_is_refused(read: Callable[[str], object], text: str, message: str) -> None:
    with pytest.raises(um.GraphError, match=message):
        read(text)


def test_tetrad_text_with_more_after_the_edges_is_read() -> None:
    text = "Graph Nodes:\n(L);x\n\nGraph Edges:\n1. L --> x dd nl\n\nGraph Attributes:\nBIC: -3\n"
    assert convert.from_tetrad(text).latents == ("L",)


# --- semopy ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dag", [latent_chain, shared_child, two_group_chain, group_collider, two_traits])
def test_semopy_fits_the_same_model(dag: um.DAG) -> None:
    semopy = pytest.importorskip("semopy", reason="semopy is not installed")
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=3), 2000, rng=5)
    result = um.Result(dag.cpdag(), um.fit(dag, rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # semopy is older than the pandas and numpy it runs on
        model = semopy.Model(result.to_semopy())
        model.fit(rows)
        stats = semopy.calc_stats(model)
    assert int(stats["DoF"].iloc[0]) == result.fit.df
    # Its optimiser stops early: near is near enough to see that it is the same model.
    assert float(stats["chi2"].iloc[0]) == pytest.approx(result.fit.chi2, abs=0.05)


def test_semopy_cannot_scale_a_latent_without_indicators() -> None:
    edges = [("G", "L1"), ("G", "L2"), *[("L1", x) for x in "abc"], *[("L2", x) for x in "def"]]
    with pytest.raises(um.GraphError, match="semopy cannot scale 'G': no observed variable measures it"):
        um.DAG.from_edges(edges, latents=["G", "L1", "L2"]).to_semopy()


def test_only_a_member_of_the_class_stands_for_it() -> None:
    with pytest.raises(um.GraphError, match="member goes with a CPDAG and is one of its DAGs"):
        convert.to_lavaan(latent_chain, member=shared_child)
