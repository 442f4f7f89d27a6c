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

from collections.abc import Iterable, Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from unmeasured.errors import GraphError, listing
from unmeasured.files import parsed_json
from unmeasured.graphs.bitsets import Adjacency
from unmeasured.graphs.cpdag import CPDAG, DAG
from unmeasured.graphs.formats.lavaan_text import to_lavaan, to_semopy
from unmeasured.graphs.formats.readers import from_causallearn, from_dagitty, from_tetrad
from unmeasured.graphs.formats.writers import (
    Direction,
    is_row_to_column,
    to_adjacency,
    to_causallearn,
    to_dagitty,
    to_dot,
    to_gml,
    to_graphml,
    to_json,
    to_networkx,
    to_tetrad,
)
from unmeasured.graphs.variables import Variables

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

_ROLES = ("latent", "observed", "covariate", "outcome")


# --- matrices -------------------------------------------------------------------------------------------


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
    return DAG(Variables.of(names, latents), given if is_row_to_column(direction) else given.T)


# --- networkx and GraphML -------------------------------------------------------------------------------


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


# --- JSON -----------------------------------------------------------------------------------------------

_RENAMED = {"groups": "latent_groups"}  # a key in files of version 0.2: the present key


def from_json(text: str) -> DAG | CPDAG:
    """The graph written by :func:`to_json`; a pair ``[i, j]`` under "directed" reads i → j."""
    record = _json_record(text)
    rows = record["variables"]
    of = {role: [row["name"] for row in rows if _role(row["name"], row) == role] for role in _ROLES}
    names = [row["name"] for row in rows]
    variables = Variables.of(names, of["latent"], of["covariate"], of["outcome"])
    if record.get("pairs"):
        variables = variables.with_pairs((a, b) for a, b in record["pairs"])
    if record["kind"] == "dag":
        return DAG(variables, _matrix(variables, record["directed"]))
    back = [(b, a) for a, b in record["undirected"]]
    adjacency = _matrix(variables, [*record["directed"], *record["undirected"], *back])
    groups = tuple(tuple(group) for group in record["latent_groups"])
    return CPDAG(variables, adjacency, groups, tuple((a, b) for a, b in record.get("known", ())))


def _json_record(text: str) -> dict[str, Any]:
    try:
        record = parsed_json(text)
    except ValueError as error:
        raise GraphError(f"This is not JSON: {error}. Give the text that to_json wrote.") from None
    kind = record.get("kind") if isinstance(record, dict) else None
    if kind not in ("dag", "cpdag"):
        raise GraphError(f'A graph in JSON has "kind": "dag" or "cpdag"; got {kind!r}.')
    record = {_RENAMED.get(key, key): value for key, value in record.items()}
    needed = ["variables", "directed"] + (["undirected", "latent_groups"] if kind == "cpdag" else [])
    missing = [key for key in needed if key not in record]
    if missing:
        raise GraphError(f"A {kind} in JSON needs the keys {listing(needed)}; missing: {listing(missing)}.")
    return dict(record)


def _matrix(variables: Variables, edges: Iterable[Sequence[str]]) -> Adjacency:
    adjacency = np.zeros((len(variables), len(variables)), dtype=np.uint8)
    for source, target in edges:
        adjacency[variables.index(source), variables.index(target)] = 1
    return adjacency
