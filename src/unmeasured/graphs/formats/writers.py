"""A graph in other programs' encodings; :mod:`unmeasured.graphs.formats.convert` has the table of them."""

from __future__ import annotations

import json
import re
from importlib import import_module
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, get_args

import networkx as nx

from unmeasured.errors import GraphError, listing
from unmeasured.graphs.protocols import Writable

if TYPE_CHECKING:
    import pandas as pd

Direction = Literal["row to column", "column to row"]


def to_adjacency(graph: Writable, *, direction: Direction) -> pd.DataFrame:
    """The adjacency matrix as a data frame with names on both axes.

    Parameters
    ----------
    graph : DAG or CPDAG
        The graph to write; an undirected edge is 1 both ways.
    direction : {"row to column", "column to row"}
        Whether a 1 means that the row causes the column, or the column the row. There is no default, as both
        conventions are common and a transposed graph looks like a graph.

    Examples
    --------
    >>> from unmeasured.graphs import DAG
    >>> dag = DAG.from_edges([("g", "x")], latents=["g"])
    >>> to_adjacency(dag, direction="row to column").loc["g", "x"]
    np.uint8(1)
    """
    import pandas as pd

    matrix = graph.adjacency if is_row_to_column(direction) else graph.adjacency.T
    names = list(graph.names)
    return pd.DataFrame(matrix.copy(), index=names, columns=names)


def is_row_to_column(direction: str) -> bool:
    if direction not in get_args(Direction):
        known = " or ".join(repr(choice) for choice in get_args(Direction))
        raise GraphError(
            f"direction must be {known}; got {direction!r}. "
            "It says whether a 1 in the matrix means that the row causes the column or the reverse."
        )
    return direction == "row to column"


def to_networkx(graph: Writable) -> nx.DiGraph[str]:
    """A networkx ``DiGraph``; arc ``(i, j)`` reads i → j.

    Nodes carry ``role="latent"``, ``"observed"``, ``"covariate"`` or ``"outcome"``, arcs ``directed``. An undirected
    edge of a CPDAG becomes two arcs, one each way, both with ``directed=False``; the latents of a CPDAG also carry
    ``group``, the number of their group, and edges directed by knowledge from outside ``known=True``.
    ``graph.graph["kind"]`` is ``"dag"`` or ``"cpdag"``.

    >>> from unmeasured.graphs import DAG
    >>> g = to_networkx(DAG.from_edges([("g", "x1"), ("g", "x2")], latents=["g"]))
    >>> g.nodes["g"]["role"], list(g.edges)
    ('latent', [('g', 'x1'), ('g', 'x2')])
    """
    result = nx.DiGraph(kind="cpdag" if graph.is_class else "dag")
    for name in graph.names:
        result.add_node(name, role=graph.variables.role(name))
    if graph.is_class:
        for number, group in enumerate(graph.latent_groups):
            for name in group:
                result.nodes[name]["group"] = number
    directed, undirected = graph.directed_edges, graph.undirected_edges
    result.add_edges_from(directed, directed=True)
    result.add_edges_from(undirected, directed=False)
    result.add_edges_from(((b, a) for a, b in undirected), directed=False)
    for a, b in graph.known:
        result.edges[a, b]["known"] = True
    return result


def to_graphml(graph: Writable) -> str:
    """GraphML text, edge source → target, with the attributes of :func:`to_networkx`."""
    return "\n".join(nx.generate_graphml(to_networkx(graph)))


def to_gml(graph: Writable) -> str:
    """GML text, edge source → target, with the attributes of :func:`to_networkx`; DoWhy and igraph read it.

    GML has numbers and no truth values, so ``directed`` is 1 or 0; :func:`from_networkx` reads both.
    """
    plain = to_networkx(graph)
    for *_, data in plain.edges(data=True):
        data.update({key: int(value) for key, value in data.items()})
    return "\n".join(nx.generate_gml(plain))


def to_dot(graph: Writable) -> str:
    """Graphviz text; ``i -> j`` reads i → j, ``dir=none`` marks an undirected edge.

    Latents are ellipses and observed variables boxes, as in path diagrams; covariates come first and outcomes last,
    each with a ``class`` that says so.

    >>> from unmeasured.graphs import DAG
    >>> print(to_dot(DAG.from_edges([("g", "x")], latents=["g"])))
    digraph {
      "g" [shape=ellipse];
      "x" [shape=box];
      "g" -> "x";
    }
    """
    directed, undirected = graph.directed_edges, graph.undirected_edges
    variables = graph.variables
    lines = [
        f"{_quoted(name)} [shape={'ellipse' if latent else 'box'}{_dot_class(variables.role(name))}];"
        for name, latent in zip(graph.names, variables.latent)
    ]
    for rank, names in (("source", variables.covariates), ("sink", variables.outcomes)):
        lines += [f"{{rank={rank}; {' '.join(_quoted(name) + ';' for name in names)}}}"] if names else []
    lines += [f"{_quoted(a)} -> {_quoted(b)};" for a, b in directed]
    lines += [f"{_quoted(a)} -> {_quoted(b)} [dir=none];" for a, b in undirected]
    return "\n".join(["digraph {", *("  " + line for line in lines), "}"])


def _dot_class(role: str) -> str:
    return f", class={role}" if role in ("covariate", "outcome") else ""


def to_dagitty(graph: Writable) -> str:
    """Text for dagitty; ``i -> j`` reads i → j, ``i -- j`` is an undirected edge of a ``pdag``.

    Covariates are marked ``exposure``, and every two of them covary (``i <-> j``); outcomes are marked ``outcome``.

    >>> from unmeasured.graphs import DAG
    >>> print(to_dagitty(DAG.from_edges([("g", "x")], latents=["g"])))
    dag {
      g [latent]
      x
      g -> x
    }
    """
    directed, undirected = graph.directed_edges, graph.undirected_edges
    marks = {"latent": " [latent]", "covariate": " [exposure]", "outcome": " [outcome]", "observed": ""}
    lines = [_dagitty_name(name) + marks[graph.variables.role(name)] for name in graph.names]
    lines += [f"{_dagitty_name(a)} <-> {_dagitty_name(b)}" for a, b in combinations(graph.variables.covariates, 2)]
    lines += [f"{_dagitty_name(a)} -> {_dagitty_name(b)}" for a, b in directed]
    lines += [f"{_dagitty_name(a)} -- {_dagitty_name(b)}" for a, b in undirected]
    kind = "pdag" if undirected else "dag"
    return "\n".join([f"{kind} {{", *("  " + line for line in lines), "}"])


def to_tetrad(graph: Writable) -> str:
    """Text as Tetrad saves graphs; ``i --> j`` reads i → j, ``i --- j`` is undirected, ``(i)`` is latent.

    Raises
    ------
    GraphError
        When a name has a space, a comma, a semicolon, or a bracket, which mean something else in this format.

    Examples
    --------
    >>> from unmeasured.graphs import DAG
    >>> print(to_tetrad(DAG.from_edges([("g", "x"), ("g", "y")], latents=["g"])))
    Graph Nodes:
    (g);x;y
    <BLANKLINE>
    Graph Edges:
    1. g --> x
    2. g --> y
    """
    wrong = [name for name in graph.names if re.search(r"[\s,;()\[\]]", name)]
    if wrong:
        raise GraphError(f"Tetrad's text cannot hold these names: {listing(wrong)}. Take out spaces, commas, brackets.")
    directed, undirected = graph.directed_edges, graph.undirected_edges
    nodes = [f"({name})" if latent else name for name, latent in zip(graph.names, graph.variables.latent)]
    edges = [f"{a} --> {b}" for a, b in directed] + [f"{a} --- {b}" for a, b in undirected]
    numbered = [f"{i}. {edge}" for i, edge in enumerate(edges, start=1)]
    return "\n".join(["Graph Nodes:", ";".join(nodes), "", "Graph Edges:", *numbered])


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _dagitty_name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else _quoted(name)


def to_causallearn(graph: Writable) -> Any:
    """A causal-learn ``GeneralGraph``; ``G.graph[j, i] = 1`` and ``G.graph[i, j] = -1`` read i → j.

    An undirected edge is -1 both ways. Latents have ``NodeType.LATENT``.

    Raises
    ------
    ImportError
        When causal-learn is not installed.
    """
    edge, endpoint = _from_causallearn("Edge"), _from_causallearn("Endpoint")
    general_graph, graph_node = _from_causallearn("GeneralGraph"), _from_causallearn("GraphNode")
    nodes = {name: graph_node(name) for name in graph.names}
    for name in graph.latents:
        nodes[name].set_node_type(_from_causallearn("NodeType").LATENT)
    result = general_graph(list(nodes.values()))
    directed, undirected = graph.directed_edges, graph.undirected_edges
    for a, b in directed:
        result.add_edge(edge(nodes[a], nodes[b], endpoint.TAIL, endpoint.ARROW))
    for a, b in undirected:
        result.add_edge(edge(nodes[a], nodes[b], endpoint.TAIL, endpoint.TAIL))
    return result


def _from_causallearn(name: str) -> Any:
    """A class of causal-learn, which keeps each in a module of its own name; imported only when asked for."""
    try:
        return getattr(import_module(f"causallearn.graph.{name}"), name)
    except ImportError as error:
        raise ImportError(
            "to_causallearn needs the package causal-learn, which is not installed. Run: pip install causal-learn"
        ) from error


def to_json(graph: Writable) -> str:
    """JSON text; a pair ``[i, j]`` under "directed" reads i → j. :func:`from_json` undoes it.

    >>> from unmeasured.graphs import DAG, from_json
    >>> from_json(to_json(DAG.from_edges([("g", "x")], latents=["g"]))).edges
    (('g', 'x'),)
    """
    directed, undirected = graph.directed_edges, graph.undirected_edges
    record: dict[str, Any] = {
        "kind": "cpdag" if graph.is_class else "dag",
        "variables": [{"name": name, "role": graph.variables.role(name)} for name in graph.names],
        "directed": directed,
    }
    if graph.is_class:
        record |= {"undirected": undirected, "latent_groups": graph.latent_groups}
        record |= {"known": graph.known} if graph.known else {}
    record |= {"pairs": graph.variables.pairs} if graph.variables.pairs else {}
    return json.dumps(record, ensure_ascii=False)
