"""Graphs from other programs: causal-learn, Tetrad's text, dagitty's text; part of ``convert``.

Each knows which variables are latent. None knows groups: latents that share all their edges, and have an observed
child, are put together, which is what a group is (Def. 2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from unmeasured.errors import GraphError
from unmeasured.graphs.cpdag import CPDAG, DAG
from unmeasured.graphs.protocols import Groups
from unmeasured.graphs.variables import Variables

Edge = tuple[str, str, str]  # one variable, the mark between, the other


def from_causallearn(graph: Any) -> DAG | CPDAG:
    """A graph from a causal-learn ``GeneralGraph``; nodes of ``NodeType.LATENT`` are latent.

    Raises
    ------
    GraphError
        When an edge has a circle or two arrows: a PAG is no CPDAG.
    """
    marks = {("TAIL", "ARROW"): "-->", ("ARROW", "TAIL"): "<--", ("TAIL", "TAIL"): "---", ("ARROW", "ARROW"): "<->"}
    edges = [
        (
            edge.get_node1().get_name(),
            marks.get((edge.get_endpoint1().name, edge.get_endpoint2().name), "o-o"),
            edge.get_node2().get_name(),
        )
        for edge in graph.get_graph_edges()
    ]
    nodes = graph.get_nodes()
    latents = [node.get_name() for node in nodes if node.get_node_type().name == "LATENT"]
    return _graph([node.get_name() for node in nodes], latents, edges)


def from_tetrad(text: str) -> DAG | CPDAG:
    r"""A graph from text as Tetrad saves it; ``i --> j`` reads i → j, ``(i)`` in the list of nodes is latent.

    >>> from_tetrad("Graph Nodes:\n(g);x;y\n\nGraph Edges:\n1. g --> x\n2. g --> y").latents
    ('g',)
    """
    match = re.search(r"Graph Nodes:\s*\n(.*?)\n\s*\n\s*Graph Edges:[^\n]*\n?(.*)", text, flags=re.S)
    if match is None:
        raise GraphError("This is not Tetrad's text, which has the lines 'Graph Nodes:' and 'Graph Edges:'.")
    nodes = [node.strip() for node in re.split(r"[;,\n]", match[1]) if node.strip()]
    edges = []
    for line in match[2].split("\n\n")[0].splitlines():
        words = re.sub(r"^\s*\d+\.\s*", "", line).split()
        if words and len(words) < 3:
            raise GraphError(f"The edge {line.strip()!r} cannot be read; it looks like '1. x --> y'.")
        edges += [(words[0], words[1], words[2])] if words else []
    return _graph([node.strip("()") for node in nodes], [node[1:-1] for node in nodes if node.startswith("(")], edges)


# A name with or without quotes, the attributes after it, an arrow, braces, or a statement such as bb="0,0,1,1".
_DAGITTY = re.compile(
    r"""(?P<name>"(?:[^"\\]|\\.)*"|[^\s\[\]{};"=<>@-]+) | (?P<attributes>\[[^\]]*\])
      | (?P<arrow><->|->|<-|--|@-[@>-]|[<-]-@) | (?P<brace>[{}])
      | (?P<value>=\s*(?:"[^"]*"|[^\s;]+)) | (?P<skip>[\s;]+|/\*.*?\*/|\#[^\n]*) | (?P<other>.)""",
    re.X | re.S,
)
_MARKS = {"->": "-->", "<-": "<--", "--": "---"}


def from_dagitty(text: str) -> DAG | CPDAG:
    """A graph from dagitty's text; ``i -> j`` reads i → j, ``[latent]`` marks a latent.

    Chains (``a -> b <- c``) and sets (``a -> { b c }``) are understood, other attributes are passed over.

    >>> from_dagitty("dag { g [latent] ; g -> { x y } ; x [pos=0] }").edges
    (('g', 'x'), ('g', 'y'))
    """
    begin = re.match(r"\s*(dag|pdag)\b[^{]*\{(.*)\}\s*$", text, flags=re.S)
    if begin is None:
        raise GraphError("This is not dagitty's text for a graph of ours: it begins with 'dag {' or 'pdag {'.")
    names: dict[str, bool] = {}
    edges: list[Edge] = []
    for chain in _chains(begin[2], names):
        for (left, _), (right, mark) in pairwise(chain):
            edges += [(a, mark, b) for a, b in product(left, right)]
    return _graph(list(names), [name for name, latent in names.items() if latent], edges)


def _chains(body: str, names: dict[str, bool]) -> Iterator[list[tuple[list[str], str]]]:
    """Sets of variables with the mark that stands before each; ``names`` gets every name and whether it is latent."""
    chain: list[tuple[list[str], str]] = []
    mark, inside = "", False
    for match in _DAGITTY.finditer(body):
        kind, piece = str(match.lastgroup), match.group()
        if kind == "other":
            raise GraphError(f"dagitty's text cannot be read at {body[match.start() : match.start() + 20]!r}.")
        if kind == "arrow":
            mark = _MARKS.get(piece, piece)
        elif kind == "brace":
            inside = piece == "{"
            if inside and not mark:
                yield chain
            if inside:
                chain, mark = _extended(chain, mark)
        elif kind == "attributes" and chain and chain[-1][0]:
            names[chain[-1][0][-1]] |= "latent" in re.split(r"[\s,\[\]]+", piece)
        elif kind == "value" and chain:
            names.pop(chain[-1][0].pop(), None)  # bb="...": a setting of the picture, not a variable
        elif kind == "name":
            name = re.sub(r"\\(.)", r"\1", piece[1:-1]) if piece.startswith('"') else piece
            names.setdefault(name, False)
            if not inside and not mark:
                yield chain
            if not inside:
                chain, mark = _extended(chain, mark)
            chain[-1][0].append(name)
    yield chain


def _extended(chain: list[tuple[list[str], str]], mark: str) -> tuple[list[tuple[list[str], str]], str]:
    """The chain with an empty set at its end, or a new chain where no mark leads on."""
    return ([*chain, ([], mark)] if mark else [([], "")]), ""


def _graph(names: Sequence[str], latents: Iterable[str], edges: Iterable[Edge]) -> DAG | CPDAG:
    variables = Variables.of(names, latents)
    adjacency = np.zeros((len(variables), len(variables)), dtype=np.uint8)
    open_ = False
    for a, mark, b in edges:
        i, j = variables.index(a), variables.index(b)
        if mark not in ("-->", "<--", "---"):
            raise GraphError(
                f"The edge {a} {mark} {b} belongs to another kind of graph; ours have i --> j and i --- j. Two arrows "
                "stand for a common cause: add it as a latent."
            )
        adjacency[i, j] |= mark != "<--"
        adjacency[j, i] |= mark != "-->"
        open_ |= mark == "---"
    if not open_:
        return DAG(variables, adjacency)
    return CPDAG(variables, adjacency, _groups(variables, adjacency))


def _groups(variables: Variables, adjacency: Any) -> Groups:
    observed = ~np.array(variables.latent, dtype=bool)
    together: dict[Any, list[str]] = {}
    for name in variables.latents:
        i = variables.index(name)
        alike = (adjacency[i].tobytes(), adjacency[:, i].tobytes())
        together.setdefault(alike if adjacency[i, observed].any() else name, []).append(name)
    return tuple(tuple(group) for group in together.values())
