"""Other encodings, in and out; the only place that knows them, and each function names its reading direction.

================ =============================== =======================================================
encoding         i → j                           i – j (a CPDAG only)
================ =============================== =======================================================
ours             ``A[i, j] = 1, A[j, i] = 0``    ``A[i, j] = A[j, i] = 1``
networkx         arc ``(i, j)``                  arcs ``(i, j)`` and ``(j, i)`` with ``directed=False``
lavaan           ``i =~ j`` or ``j ~ i``         one of the two directions, with a comment
dot              ``i -> j``                      ``i -> j [dir=none]``
dagitty          ``i -> j``                      ``i -- j`` in a ``pdag``
semopy           as lavaan                       as lavaan
GraphML, GML     arc ``i → j``, as networkx      two arcs with ``directed=False``, as networkx
causal-learn     ``G[j, i] = 1, G[i, j] = -1``   ``G[i, j] = G[j, i] = -1``
Tetrad           ``i --> j``                     ``i --- j``
JSON             ``[i, j]`` under "directed"     ``[i, j]`` under "undirected"
================ =============================== =======================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, get_args

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from unmeasured.errors import GraphError, listing
from unmeasured.files import parsed_json
from unmeasured.graphs.bitsets import Adjacency
from unmeasured.graphs.cpdag import CPDAG
from unmeasured.graphs.dag import DAG
from unmeasured.graphs.lavaan_text import to_lavaan, to_semopy
from unmeasured.graphs.readers import from_causallearn, from_dagitty, from_tetrad
from unmeasured.graphs.variables import Variables

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Direction",
    "from_adjacency",
    "from_causallearn",
    "from_dagitty",
    "from_json",
    "from_networkx",
    "from_tetrad",
    "to_adjacency",
    "to_causallearn",
    "to_dagitty",
    "to_dot",
    "to_gml",
    "to_graphml",
    "to_json",
    "to_lavaan",
    "to_networkx",
    "to_semopy",
    "to_tetrad",
]

Direction = Literal["row to column", "column to row"]
_ROLES = ("latent", "observed", "covariate", "outcome")


def _edges(graph: DAG | CPDAG) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Directed edges as (cause, effect), and undirected ones, each once."""
    if isinstance(graph, CPDAG):
        return graph.directed_edges, graph.undirected_edges
    return graph.edges, ()


# --- matrices -------------------------------------------------------------------------------------------


def to_adjacency(graph: DAG | CPDAG, *, direction: Direction) -> pd.DataFrame:
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
    >>> dag = DAG.from_edges([("g", "x")], latents=["g"])
    >>> to_adjacency(dag, direction="row to column").loc["g", "x"]
    np.uint8(1)
    """
    import pandas as pd

    matrix = graph.adjacency if _is_row_to_column(direction) else graph.adjacency.T
    names = list(graph.names)
    return pd.DataFrame(matrix.copy(), index=names, columns=names)


def from_adjacency(
    matrix: ArrayLike, names: Sequence[str], latents: Sequence[str] = (), *, direction: Direction
) -> DAG:
    """A DAG from a matrix of 0 and 1 whose reading direction is spelled out.

    Parameters
    ----------
    matrix : (d, d)
        0 and 1; for weights pass ``weights != 0``.
    names : sequence of str
        The variables, in the order of the matrix.
    latents : sequence of str
        Which of them are latent.
    direction : {"row to column", "column to row"}
        Whether a 1 means that the row causes the column (ours), or the column the row (as in LiNGAM and much
        of the SEM literature). There is no default.

    Examples
    --------
    >>> from_adjacency([[0, 1], [0, 0]], ["a", "b"], direction="row to column").edges
    (('a', 'b'),)
    >>> from_adjacency([[0, 1], [0, 0]], ["a", "b"], direction="column to row").edges
    (('b', 'a'),)
    """
    given = np.asarray(matrix)
    return DAG(Variables.of(names, latents), given if _is_row_to_column(direction) else given.T)


def _is_row_to_column(direction: str) -> bool:
    if direction not in get_args(Direction):
        known = " or ".join(repr(choice) for choice in get_args(Direction))
        raise GraphError(
            f"direction must be {known}; got {direction!r}. "
            "It says whether a 1 in the matrix means that the row causes the column or the reverse."
        )
    return direction == "row to column"


# --- networkx and GraphML -------------------------------------------------------------------------------


def to_networkx(graph: DAG | CPDAG) -> nx.DiGraph[str]:
    """A networkx ``DiGraph``; arc ``(i, j)`` reads i → j.

    Nodes carry ``role="latent"``, ``"observed"``, ``"covariate"`` or ``"outcome"``, arcs ``directed``. An undirected
    edge of a CPDAG becomes two arcs, one each way, both with ``directed=False``; the latents of a CPDAG also carry
    ``group``, the number of their group, and edges directed by knowledge from outside ``known=True``.
    ``graph.graph["kind"]`` is ``"dag"`` or ``"cpdag"``.

    >>> g = to_networkx(DAG.from_edges([("g", "x1"), ("g", "x2")], latents=["g"]))
    >>> g.nodes["g"]["role"], list(g.edges)
    ('latent', [('g', 'x1'), ('g', 'x2')])
    """
    result = nx.DiGraph(kind="cpdag" if isinstance(graph, CPDAG) else "dag")
    for name in graph.names:
        result.add_node(name, role=graph.variables.role(name))
    if isinstance(graph, CPDAG):
        for number, group in enumerate(graph.groups):
            for name in group:
                result.nodes[name]["group"] = number
    directed, undirected = _edges(graph)
    result.add_edges_from(directed, directed=True)
    result.add_edges_from(undirected, directed=False)
    result.add_edges_from(((b, a) for a, b in undirected), directed=False)
    for a, b in graph.known if isinstance(graph, CPDAG) else ():
        result.edges[a, b]["known"] = True
    return result


def from_networkx(graph: nx.DiGraph[str], *, latents: Sequence[str] | None = None) -> DAG | CPDAG:
    """A graph from a networkx ``DiGraph``; arc ``(i, j)`` reads i → j.

    Parameters
    ----------
    graph : networkx.DiGraph
        Nodes are strings. A graph with ``kind="cpdag"``, or with an arc ``directed=False``, becomes a CPDAG.
    latents : sequence of str, optional
        Which nodes are latent. Left out: those with ``role="latent"``.

    Examples
    --------
    >>> import networkx as nx
    >>> from_networkx(nx.DiGraph([("g", "x"), ("g", "y")]), latents=["g"]).latents
    ('g',)
    """
    if not graph.is_directed():
        raise GraphError("A networkx graph must be directed to become a DAG; got an undirected one. Use DiGraph.")
    if latents is None:
        latents = [name for name, data in graph.nodes(data=True) if _role(name, data) == "latent"]
    others = {
        role: [name for name, data in graph.nodes(data=True) if _role(name, data) == role]
        for role in ("covariate", "outcome")
    }
    variables = Variables.of(list(graph.nodes), latents, others["covariate"], others["outcome"])
    adjacency = np.zeros((len(variables), len(variables)), dtype=np.uint8)
    loose = []
    for source, target, data in graph.edges(data=True):
        adjacency[variables.index(source), variables.index(target)] = 1
        if not data.get("directed", True):
            loose.append((source, target))
    for source, target in loose:
        if not graph.has_edge(target, source):
            raise GraphError(
                f"The arc {source} → {target} has directed=False but there is no arc {target} → {source}; "
                "an undirected edge is two arcs."
            )
    if not loose and graph.graph.get("kind") != "cpdag":
        return DAG(variables, adjacency)
    known = tuple((a, b) for a, b, data in graph.edges(data=True) if data.get("known"))
    return CPDAG(variables, adjacency, _groups_of_nodes(graph, variables), known)


def _role(name: str, data: dict[str, Any]) -> str:
    role = data.get("role", "observed")
    if role not in _ROLES:
        raise GraphError(f"The role of {name!r} must be 'latent', 'observed', 'covariate' or 'outcome'; got {role!r}.")
    return str(role)


def _groups_of_nodes(graph: nx.DiGraph[str], variables: Variables) -> tuple[tuple[str, ...], ...]:
    """Latents with the same ``group`` attribute together; one without it stands alone."""
    together: dict[Any, list[str]] = {}
    for name in variables.latents:
        together.setdefault(graph.nodes[name].get("group", ("alone", name)), []).append(name)
    return tuple(tuple(group) for group in together.values())


def to_graphml(graph: DAG | CPDAG) -> str:
    """GraphML text, edge source → target, with the attributes of :func:`to_networkx`."""
    return "\n".join(nx.generate_graphml(to_networkx(graph)))


def to_gml(graph: DAG | CPDAG) -> str:
    """GML text, edge source → target, with the attributes of :func:`to_networkx`; DoWhy and igraph read it.

    GML has numbers and no truth values, so ``directed`` is 1 or 0; :func:`from_networkx` reads both.
    """
    plain = to_networkx(graph)
    for *_, data in plain.edges(data=True):
        data.update({key: int(value) for key, value in data.items()})
    return "\n".join(nx.generate_gml(plain))


# --- drawing and other programs -------------------------------------------------------------------------


def to_dot(graph: DAG | CPDAG) -> str:
    """Graphviz text; ``i -> j`` reads i → j, ``dir=none`` marks an undirected edge.

    Latents are ellipses and observed variables boxes, as in path diagrams; covariates come first and outcomes last,
    each with a ``class`` that says so.

    >>> print(to_dot(DAG.from_edges([("g", "x")], latents=["g"])))
    digraph {
      "g" [shape=ellipse];
      "x" [shape=box];
      "g" -> "x";
    }
    """
    directed, undirected = _edges(graph)
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


def to_dagitty(graph: DAG | CPDAG) -> str:
    """Text for dagitty; ``i -> j`` reads i → j, ``i -- j`` is an undirected edge of a ``pdag``.

    Covariates are marked ``exposure``, and every two of them covary (``i <-> j``); outcomes are marked ``outcome``.

    >>> print(to_dagitty(DAG.from_edges([("g", "x")], latents=["g"])))
    dag {
      g [latent]
      x
      g -> x
    }
    """
    directed, undirected = _edges(graph)
    marks = {"latent": " [latent]", "covariate": " [exposure]", "outcome": " [outcome]", "observed": ""}
    lines = [_dagitty_name(name) + marks[graph.variables.role(name)] for name in graph.names]
    lines += [f"{_dagitty_name(a)} <-> {_dagitty_name(b)}" for a, b in combinations(graph.variables.covariates, 2)]
    lines += [f"{_dagitty_name(a)} -> {_dagitty_name(b)}" for a, b in directed]
    lines += [f"{_dagitty_name(a)} -- {_dagitty_name(b)}" for a, b in undirected]
    kind = "pdag" if undirected else "dag"
    return "\n".join([f"{kind} {{", *("  " + line for line in lines), "}"])


def to_tetrad(graph: DAG | CPDAG) -> str:
    """Text as Tetrad saves graphs; ``i --> j`` reads i → j, ``i --- j`` is undirected, ``(i)`` is latent.

    Raises
    ------
    GraphError
        When a name has a space, a comma, a semicolon, or a bracket, which mean something else in this format.

    Examples
    --------
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
    directed, undirected = _edges(graph)
    nodes = [f"({name})" if latent else name for name, latent in zip(graph.names, graph.variables.latent)]
    edges = [f"{a} --> {b}" for a, b in directed] + [f"{a} --- {b}" for a, b in undirected]
    numbered = [f"{i}. {edge}" for i, edge in enumerate(edges, start=1)]
    return "\n".join(["Graph Nodes:", ";".join(nodes), "", "Graph Edges:", *numbered])


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _dagitty_name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else _quoted(name)


def to_causallearn(graph: DAG | CPDAG) -> Any:
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
    directed, undirected = _edges(graph)
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


# --- JSON -----------------------------------------------------------------------------------------------


def to_json(graph: DAG | CPDAG) -> str:
    """JSON text; a pair ``[i, j]`` under "directed" reads i → j. :func:`from_json` undoes it.

    >>> from_json(to_json(DAG.from_edges([("g", "x")], latents=["g"]))).edges
    (('g', 'x'),)
    """
    directed, undirected = _edges(graph)
    record: dict[str, Any] = {
        "kind": "cpdag" if isinstance(graph, CPDAG) else "dag",
        "variables": [{"name": name, "role": graph.variables.role(name)} for name in graph.names],
        "directed": directed,
    }
    if isinstance(graph, CPDAG):
        record |= {"undirected": undirected, "groups": graph.groups}
        record |= {"known": graph.known} if graph.known else {}
    return json.dumps(record, ensure_ascii=False)


def from_json(text: str) -> DAG | CPDAG:
    """The graph written by :func:`to_json`; a pair ``[i, j]`` under "directed" reads i → j."""
    record = _json_record(text)
    rows = record["variables"]
    of = {role: [row["name"] for row in rows if _role(row["name"], row) == role] for role in _ROLES}
    names = [row["name"] for row in rows]
    variables = Variables.of(names, of["latent"], of["covariate"], of["outcome"])
    if record["kind"] == "dag":
        return DAG(variables, _matrix(variables, record["directed"]))
    back = [(b, a) for a, b in record["undirected"]]
    adjacency = _matrix(variables, [*record["directed"], *record["undirected"], *back])
    groups = tuple(tuple(group) for group in record["groups"])
    return CPDAG(variables, adjacency, groups, tuple((a, b) for a, b in record.get("known", ())))


def _json_record(text: str) -> dict[str, Any]:
    try:
        record = parsed_json(text)
    except ValueError as error:
        raise GraphError(f"This is not JSON: {error}. Give the text that to_json wrote.") from None
    kind = record.get("kind") if isinstance(record, dict) else None
    if kind not in ("dag", "cpdag"):
        raise GraphError(f'A graph in JSON has "kind": "dag" or "cpdag"; got {kind!r}.')
    needed = ["variables", "directed"] + (["undirected", "groups"] if kind == "cpdag" else [])
    missing = [key for key in needed if key not in record]
    if missing:
        raise GraphError(f"A {kind} in JSON needs the keys {listing(needed)}; missing: {listing(missing)}.")
    return dict(record)


def _matrix(variables: Variables, edges: Iterable[Sequence[str]]) -> Adjacency:
    adjacency = np.zeros((len(variables), len(variables)), dtype=np.uint8)
    for source, target in edges:
        adjacency[variables.index(source), variables.index(target)] = 1
    return adjacency
