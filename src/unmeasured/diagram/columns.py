"""Columns of a layered drawing: which node stands in which, and where lines pass.

Latents, and observed variables that take part in paths, stand in odd columns, causes before their effects; indicators
and the labels of paths stand in the even columns between them. A line that passes a column has a cell of its own there.

A hierarchy becomes tiers: latents that measure another stand in one column, behind all latents that others measure. A
residual pair of two indicators in one column goes by its label in the next column outwards, as a brace does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import linprog

from unmeasured.diagram.order import Line, crossings, ordered
from unmeasured.diagram.picture import Edge, Node

_MANY = 14  # indicators of a lone latent that make too long a column
_MOST_MOVED = 16  # latents of a part for which other layers are tried one by one
_TRIED = 0.15  # effort of an order that is only compared with others


@dataclass(frozen=True)
class Block:
    """A latent, or a group of several, and the indicators that are drawn beside it."""

    node: Node
    inside: tuple[Node, ...] = ()  # the latents of a group of several
    items: tuple[Node, ...] = ()


# Parts that no line joins -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Graph:
    blocks: tuple[Block, ...]
    observed: tuple[Node, ...]  # with edges among themselves, or covariates and outcomes
    edges: tuple[Edge, ...]


def components(blocks: Sequence[Block], loose: Sequence[Node], edges: Sequence[Edge]) -> list[Graph]:
    """Return the parts that no line joins; a covariate or an outcome without any is put on its side of the largest."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for block in blocks:
        for item in block.items:
            parent[root(item.id)] = root(block.node.id)
    for edge in edges:
        parent[root(edge.source)] = root(edge.target)
    if blocks:
        sizes = Counter(
            root(name) for name in (*(x.id for b in blocks for x in (b.node, *b.items)), *(node.id for node in loose))
        )
        largest = max((root(block.node.id) for block in blocks), key=lambda name: sizes[name])
        for node in loose:
            if node.side and sizes[root(node.id)] == 1:
                parent[root(node.id)] = largest
    graphs: dict[str, tuple[list[Block], list[Node], list[Edge]]] = {}
    for block in blocks:
        graphs.setdefault(root(block.node.id), ([], [], []))[0].append(block)
    for node in loose:
        graphs.setdefault(root(node.id), ([], [], []))[1].append(node)
    for edge in edges:
        graphs[root(edge.source)][2].append(edge)
    return [Graph(tuple(b), tuple(n), tuple(e)) for b, n, e in graphs.values()]


# Columns of one part ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """What stands in a column: a node, or a line that passes, with its label or without."""

    column: int
    node: Node | None = None
    label: str = ""


@dataclass(frozen=True)
class Plan:
    """Cells in ordered columns, and the lines between neighbouring cells with the edges they belong to."""

    cells: list[Cell]
    columns: list[list[int]]
    lines: dict[Line, int]

    @property
    def cost(self) -> tuple[int, int]:
        return crossings(self.columns, list(self.lines)), len(self.cells)


def planned(graph: Graph) -> Plan:
    """The plan with the fewest crossings that layers, sides and single moves between layers lead to."""
    core = [*(block.node for block in graph.blocks), *graph.observed]
    names, side = [node.id for node in core], {node.id: node.side for node in core}
    inner = [e for e in graph.edges if e.kind != "pair" and e.source in side and e.target in side]
    arcs = [(e.source, e.target) for e in inner]
    tiers = _tiers([(e.source, e.target) for e in inner if e.kind == "loading"])
    home = {item.id: block.node.id for block in graph.blocks for item in block.items}
    # Latents that share indicators without a path between them: side by side, or one before the other with what they
    # share in between.
    links = [
        (home[e.target], e.source)
        for e in graph.edges
        if e.target in home and e.source in side and home[e.target] != e.source
    ]
    first = _layers(names, arcs, links, side, tiers)
    if first is None:  # a path from below to above leaves no order for tiers
        tiers = []
        first = _layers(names, arcs, links, side)
    assert first is not None  # arcs have no cycle
    apart = _layers(names, [*arcs, *_as_arcs(links, arcs, first)], [], side, tiers)
    layers = [first, *([apart] if apart not in (None, first) else [])]
    arcs += [(above, name) for tier in tiers for above in tier.above for name in tier.names]
    fixed = {name for tier in tiers for name in tier.names}
    plans = [
        (_plan(graph, layer, sides, effort=_TRIED), layer, k)
        for layer in layers
        for k, sides in enumerate(_sides(graph, layer))
    ]
    best, layer, k = min(plans, key=lambda entry: entry[0].cost)
    # A latent that may stand in several layers takes the one with the fewest crossings.
    improved = best.cost[0] > 0 and len(core) <= _MOST_MOVED
    while improved:
        improved = False
        for name in names:
            for other in [] if name in fixed else _other_layers(name, layer, arcs, side):
                moved = layer | {name: other}
                choices = _sides(graph, moved)
                plan = _plan(graph, moved, choices[min(k, len(choices) - 1)], effort=_TRIED)
                if plan.cost < best.cost:
                    best, layer, improved = plan, moved, True
    return _plan(graph, layer, _sides(graph, layer)[min(k, len(_sides(graph, layer)) - 1)], effort=1.0, start=best)


@dataclass(frozen=True)
class _Tier:
    """Latents that measure others, to stand in one column, and the latents with such below them, to stand before."""

    names: tuple[str, ...]
    above: tuple[str, ...]


def _tiers(measures: Sequence[tuple[str, str]]) -> list[_Tier]:
    """The tiers of a hierarchy, from above downwards.

    >>> [tier.names for tier in _tiers([("g", "A"), ("g", "B"), ("A", "a"), ("A", "b")])]
    [('A', 'B'), ('a', 'b')]
    """
    depth = dict.fromkeys((name for edge in measures for name in edge), 0)
    for _ in depth:  # as many rounds as a chain of all of them would need
        for above, below in measures:
            depth[below] = max(depth[below], depth[above] + 1)
    parents = dict.fromkeys(above for above, _ in measures)
    return [
        _Tier(tuple(n for n, d in depth.items() if d == k), tuple(n for n in parents if depth[n] == k - 1))
        for k in range(1, max(depth.values(), default=0) + 1)
    ]


def _as_arcs(
    links: Sequence[tuple[str, str]], arcs: Sequence[tuple[str, str]], layer: Mapping[str, int]
) -> list[tuple[str, str]]:
    """Links in the direction of the layers, or of their names within a layer: no cycle comes of that."""
    known = {*arcs, *((b, a) for a, b in arcs)}
    free = [(a, b) for a, b in dict.fromkeys(links) if (a, b) not in known]
    return [(a, b) if (layer[a], a) < (layer[b], b) else (b, a) for a, b in free]


def _other_layers(
    name: str, layer: Mapping[str, int], arcs: Sequence[tuple[str, str]], side: Mapping[str, str]
) -> list[int]:
    """The layers next to its own that a node may stand in as well."""
    if side[name]:
        return []
    low = max([layer[a] + 1 for a, b in arcs if b == name], default=0)
    high = min([layer[b] - 1 for a, b in arcs if a == name], default=max(layer.values()))
    return [k for k in (layer[name] - 1, layer[name] + 1) if low <= k <= high]


def _sides(graph: Graph, layer: Mapping[str, int]) -> list[dict[str, int]]:
    """For each block, whether its indicators stand before it (-1) or after it (1)."""
    last = max(layer.values(), default=0)
    ends = {b.node.id: 1 if last == 0 or layer[b.node.id] else -1 for b in graph.blocks}
    # Latents in the middle go to the side with fewer indicators so far.
    count: dict[int, int] = {}
    even = dict(ends)
    for block in sorted(graph.blocks, key=lambda b: (0 < layer[b.node.id] < last, -len(b.items))):
        name, at = block.node.id, 2 * layer[block.node.id]
        if 0 < at < 2 * last:
            even[name] = min((1, -1), key=lambda s: (count.get(at + s, 0), -s))
        count[at + even[name]] = count.get(at + even[name], 0) + len(block.items)
    return [ends, even] if even != ends else [ends]


def _plan(
    graph: Graph,
    layer: Mapping[str, int],
    sides: Mapping[str, int],
    effort: float = 0.0,
    start: Plan | None = None,
) -> Plan:
    at = _item_columns(graph, {name: 2 * k + 1 for name, k in layer.items()}, sides)
    hubs = _hubs(graph, at)
    if min(hubs.values(), default=0) < 0:
        at, hubs = {name: c + 2 for name, c in at.items()}, {e: c + 2 for e, c in hubs.items()}
    cells: list[Cell] = []
    cell_of: dict[str, int] = {}
    core = [*(block.node for block in graph.blocks), *graph.observed]
    for node in [*core, *(item for block in graph.blocks for item in block.items)]:
        cell_of[node.id] = len(cells)
        cells.append(Cell(at[node.id], node))
    lines: dict[Line, int] = {}
    for e, edge in enumerate(graph.edges):
        a, b = sorted((edge.source, edge.target), key=lambda name: at[name])
        if e in hubs:
            hub = len(cells)
            cells.append(Cell(hubs[e], None, edge.label))
            lines |= {(cell_of[x], hub) if hubs[e] > at[a] else (hub, cell_of[x]): e for x in (a, b)}
            continue
        passed = range(at[a] + 1, at[b])
        # The label of a path stands in the even column nearest to the middle; that of a pair where it can.
        even = [c for c in passed if c % 2 == 0] or ([*passed] if edge.kind == "pair" else [])
        middle = min(even, key=lambda c: abs(2 * c - at[a] - at[b])) if even and edge.kind != "loading" else -1
        chain = [cell_of[a], *range(len(cells), len(cells) + len(passed)), cell_of[b]]
        cells += [Cell(c, None, edge.label if c == middle else "") for c in passed]
        lines |= dict.fromkeys(pairwise(chain), e)
    columns: list[list[int]] = [[] for _ in range(max((*at.values(), *hubs.values())) + 1)]
    for c, cell in enumerate(cells):
        columns[cell.column].append(c)
    order = ordered(columns, list(lines), effort, start.columns if start else None)
    return Plan(cells, _alike_as_given(order, list(lines), cells), lines)


def _hubs(graph: Graph, at: Mapping[str, int]) -> dict[int, int]:
    """For each pair of indicators in one column, the column of its label: the next one away from their latent."""
    home = {item.id: at[block.node.id] for block in graph.blocks for item in block.items}
    return {
        e: at[edge.source] + (1 if home.get(edge.source, -1) < at[edge.source] else -1)
        for e, edge in enumerate(graph.edges)
        if edge.kind == "pair" and at[edge.source] == at[edge.target]
    }


def _alike_as_given(columns: list[list[int]], lines: Sequence[Line], cells: Sequence[Cell]) -> list[list[int]]:
    """Nodes of a column with the same neighbours, such as indicators of one latent, in the order given."""
    beside: dict[int, list[int]] = {}
    for a, b in lines:
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    result = []
    for column in columns:
        alike: dict[tuple[int, ...], list[int]] = {}
        for c in column:
            if cells[c].node is not None:
                alike.setdefault(tuple(sorted(beside.get(c, ()))), []).append(c)
        given = {key: iter(sorted(same)) for key, same in alike.items()}
        result.append([c if cells[c].node is None else next(given[tuple(sorted(beside.get(c, ())))]) for c in column])
    return result


def _item_columns(graph: Graph, column: Mapping[str, int], sides: Mapping[str, int]) -> dict[str, int]:
    """The column of every node: an indicator stands beside its latent, on the side of the others it loads on."""
    at, n_core = dict(column), len(graph.blocks) + len(graph.observed)
    others: dict[str, list[int]] = {}
    for edge in graph.edges:
        for one, other in ((edge.source, edge.target), (edge.target, edge.source)):
            if other in column:
                others.setdefault(one, []).append(column[other])
    taken: dict[int, int] = {}
    for block in graph.blocks:
        here, preferred = column[block.node.id], column[block.node.id] + sides[block.node.id]
        for k, item in enumerate(block.items):
            shared = len(others.get(item.id, ())) > 1
            if n_core == 1 and len(block.items) > _MANY and 2 * k >= len(block.items):
                at[item.id] = here - 1
                continue
            # In a tie the side with fewer shared ones: two latents with four common indicators cross least with two
            # of these on either side.
            cost = {
                c: (sum(abs(c - o) for o in others.get(item.id, ())), taken.get(c, 0) if shared else 0, c != preferred)
                for c in (here - 1, here + 1)
            }
            at[item.id] = min(cost, key=lambda c: cost[c])
            taken[at[item.id]] = taken.get(at[item.id], 0) + shared
    return at


def _layers(
    names: Sequence[str],
    arcs: Sequence[tuple[str, str]],
    links: Sequence[tuple[str, str]],
    side: Mapping[str, str],
    tiers: Sequence[_Tier] = (),
) -> dict[str, int] | None:
    """Layers with every cause before its effects and the least total length; None where tiers do not allow any.

    ``links`` pull two together that have no order. Constraints are differences, so the solution is in whole numbers.

    >>> _layers(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")], [], {})
    {'a': 0, 'b': 1, 'c': 2}
    """
    index = {name: k for k, name in enumerate(names)}
    n = len(names)
    arcs = [(a, b) for a, b in dict.fromkeys(arcs) if a != b]
    left = [name for name in names if side.get(name) == "left"]
    right = [name for name in names if side.get(name) == "right"]
    middle = [name for name in names if not side.get(name)]
    arcs += [(a, b) for a in left for b in middle] + [(a, b) for a in middle for b in right]
    arcs += [
        (above, name) for tier in tiers for above in tier.above for name in tier.names if (above, name) not in arcs
    ]
    rows, limits, cost = [], [], np.zeros(n + len(links))
    for a, b in arcs:
        row = np.zeros(n + len(links))
        row[index[a]], row[index[b]] = 1.0, -1.0
        rows.append(row)
        limits.append(-1.0)
        cost[index[b]] += 1.0
        cost[index[a]] -= 1.0
    for k, (a, b) in enumerate(links):
        cost[n + k] = 1.0
        for sign in (1.0, -1.0):
            row = np.zeros(n + len(links))
            row[index[a]], row[index[b]], row[n + k] = sign, -sign, -1.0
            rows.append(row)
            limits.append(0.0)
    for a, b in (pair for tier in tiers for pair in pairwise(tier.names)):
        for sign in (1.0, -1.0):
            row = np.zeros(n + len(links))
            row[index[a]], row[index[b]] = sign, -sign
            rows.append(row)
            limits.append(0.0)
    if not rows:
        return dict.fromkeys(names, 0)
    solved = linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=[(0.0, None)] * len(cost), method="highs-ds")
    if solved.x is None:
        return None
    least = min(round(v) for v in solved.x[:n])
    return {name: round(solved.x[index[name]]) - least for name in names}
