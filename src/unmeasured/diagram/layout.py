"""Where everything goes: layers along the causal order, indicators beside their latent.

::

    column 0    1       2      3         4          5        6
    [x1]◄─╮                                               ╭─►[x7]     latents in odd columns, causes before
    [x2]◄─( L1 )───────.4────( L2 )──────.3───────( L3 )──┴─►[x8]     their effects; indicators and the labels
    [x3]◄─╯    ╰───╮          ╰──►[x5] ...     ╭──►                   of paths in the even columns between them
                   ╰────────.2─────────────────╯

Four steps, as in every layered drawing: layers (the shortest total length that puts causes first, a linear program)
and columns with a free cell for every line that passes and every label (:mod:`unmeasured.diagram.columns`), the order
within columns (:mod:`unmeasured.diagram.order`), and places (the least bent lines that leave every cell the space it
needs, a linear program as well). A line only ever runs through cells of its own and through the gaps between columns,
and a label is a cell of its line. So no line runs under a node it does not touch, no label lies on anything else, and
every label is on its own line, by construction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.optimize import isotonic_regression, linprog
from scipy.sparse import coo_array, diags_array

from unmeasured.diagram.columns import Block, Cell, Graph, Plan, components, planned
from unmeasured.diagram.order import Line
from unmeasured.diagram.picture import (
    LABEL_FONT,
    LINE,
    Edge,
    Flow,
    Grid,
    Key,
    Node,
    Picture,
    Point,
    Slot,
    label_size,
    text_width,
)

_MARGIN = 14.0
_APART = 9.0  # between two nodes of a column, at least
_APART_LINES = 5.0  # between two lines, or a line and a node
_PORTS = 10.0  # between the ends of lines at a node, where it is large enough
_PART = 14.0  # between the indicators of two latents, in addition
_GAP, _GAP_SHORT, _STEEPEST = 30.0, 9.0, 0.16  # between columns; beside labels; more where lines change much
_RIM = 9.0  # from the frame of a group to its latents
_COMPONENTS = 26.0  # between parts that no line joins
_SHEET = (1000.0, 1150.0)  # what a page shows without scrolling or shrinking
_LEGEND_ROW = 17.0
_LEAST_SCALE = 0.7  # letters of 10 points are hard to read below seven
# Cells whose places are found by a linear program, which takes a second for so many and grows faster than they do; of
# more, sweeps over the columns, so many.
_MOST_BY_LINEAR_PROGRAM, _SWEEPS = 2500, 12


def layout(
    blocks: Sequence[Block],
    loose: Sequence[Node],
    edges: Sequence[Edge],
    *,
    keys: Sequence[tuple[str, str]] = (),
    remark: str = "",
    sheet: tuple[float, float] | None = None,
    flow: Flow | None = None,
) -> Picture:
    """A picture of blocks and of observed variables without a latent.

    Parameters
    ----------
    blocks, loose, edges
        What is drawn. An edge joins nodes by their ids.
    keys, remark
        The legend: a sample and what it means; and a sentence below it.
    sheet
        Width and height in points to fit into where that is possible; left out: those of a page on a screen.
    flow : "right" or "down", optional
        The direction of causes to effects. Left out: the one that fits the sheet with larger letters.
    """
    sheet = sheet or _SHEET
    flows: Iterable[Flow] = (flow,) if flow else ("right", "down")
    plans = [(graph, planned(graph)) for graph in components(blocks, loose, edges)]
    pictures = [_drawn(plans, blocks, loose, edges, keys, remark, sheet, f) for f in flows]
    scales = [min(1.0, sheet[0] / p.width, sheet[1] / p.height) for p in pictures]
    # Covariates stand at the left and outcomes at the right unless that cannot be read on a narrow sheet.
    if any(node.side for node in loose) and (sheet == _SHEET or scales[0] >= _LEAST_SCALE):
        return pictures[0]
    return pictures[scales.index(max(scales))]


def _drawn(
    plans: Sequence[tuple[Graph, Plan]],
    blocks: Sequence[Block],
    loose: Sequence[Node],
    edges: Sequence[Edge],
    keys: Sequence[tuple[str, str]],
    remark: str,
    sheet: tuple[float, float],
    flow: Flow,
) -> Picture:
    nodes: dict[str, Node] = {}
    routed: dict[tuple[str, str], Edge] = {}
    parts = [_Part(graph, plan, flow) for graph, plan in plans]
    shelf_x = shelf_y = _MARGIN
    shelf_height = width = 0.0
    shelf, grids = 0, []
    limit = max([sheet[0] - _MARGIN, *(part.size[0] + _MARGIN for part in parts)])
    for part in sorted(parts, key=lambda part: (not part.lines, part.alone)):
        if shelf_x > _MARGIN and shelf_x + part.size[0] > limit:
            shelf_x, shelf_y = _MARGIN, shelf_y + shelf_height + _COMPONENTS
            shelf_height, shelf = 0.0, shelf + 1
        grids.append(part.grid(shelf_x, shelf_y, shelf))
        for node in part.nodes(shelf_x, shelf_y):
            nodes[node.id] = node
        for edge in part.edges(shelf_x, shelf_y):
            routed[edge.source, edge.target] = edge
        shelf_height, width = max(shelf_height, part.size[1]), max(width, shelf_x + part.size[0])
        shelf_x += part.size[0] + (12.0 if part.alone else _COMPONENTS)
    width = max(width + _MARGIN, 160.0)
    legend, bottom = _legend(keys, max(width, 330.0), shelf_y + shelf_height + 16.0)
    width = max([width, *(key.x + 26.0 + text_width(key.text, LABEL_FONT) + _MARGIN for key in legend)])
    words = _paragraph(remark, width - 2 * _MARGIN)
    height = bottom + LABEL_FONT * LINE * len(words) + _MARGIN
    edges_in_order = tuple(routed[e.source, e.target] for e in edges if (e.source, e.target) in routed)
    order = [n.id for block in blocks for n in (block.node, *block.inside, *block.items)] + [n.id for n in loose]
    placed = tuple(nodes[name] for name in order if name in nodes)
    return Picture(
        placed, edges_in_order, width, height, flow, tuple(legend), tuple(words), bottom + LABEL_FONT, tuple(grids)
    )


def _legend(keys: Sequence[tuple[str, str]], width: float, top: float) -> tuple[list[Key], float]:
    """Entries from left to right, in as many rows as they need; and where they end."""
    x, y, entries = _MARGIN, top, []
    for sample, text in keys:
        wide = 26.0 + text_width(text, LABEL_FONT) + 14.0
        if x > _MARGIN and x + wide > width:
            x, y = _MARGIN, y + _LEGEND_ROW
        entries.append(Key(sample, text, x, y))  # type: ignore[arg-type]
        x += wide
    return entries, y + (_LEGEND_ROW / 2 if keys else 0.0)


def _paragraph(text: str, width: float) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", LABEL_FONT) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


# Places of one part -----------------------------------------------------------------------------------------


class _Part:
    """A connected part of a drawing: the places of its cells, and the routes through them.

    *Along* is the direction of causes to effects, *across* the one within a column.
    """

    def __init__(self, graph: Graph, plan: Plan, flow: Flow) -> None:
        self.graph, self.flow = graph, flow
        self.alone = len(plan.cells) == 1
        self.cells, self.columns, self.lines = plan.cells, plan.columns, plan.lines
        if flow == "right":
            self.cells = self._even()
        self._refine()
        self.sizes = [self._size(cell) for cell in self.cells]
        self.across = self._across()
        self.along = self._along()
        ends = [self.across[c] + s * wide / 2 for c, (_, wide) in enumerate(self.sizes) for s in (-1, 1)]
        self.top = min(ends)
        self.length = max(self.along[c] + long / 2 for c, (long, _) in enumerate(self.sizes))
        self.breadth = max(ends) - self.top
        self.size = (self.length, self.breadth) if flow == "right" else (self.breadth, self.length)

    def _size(self, cell: Cell) -> tuple[float, float]:
        """What a cell needs along and across."""
        width, height = (cell.node.width, cell.node.height) if cell.node else label_size(cell.label)
        return (width, height) if self.flow == "right" else (height, width)

    def _even(self) -> list[Cell]:
        """The cells with boxes of one width in each column, so that all arrows end on one line."""
        boxes = [c for c in self.cells if c.node is not None and c.node.kind == "observed"]
        widest: dict[int, float] = {}
        for cell in boxes:
            widest[cell.column] = max(widest.get(cell.column, 0.0), cell.node.width if cell.node else 0.0)
        return [
            replace(c, node=replace(c.node, width=widest[c.column])) if c.node and c.node.kind == "observed" else c
            for c in self.cells
        ]

    # Labels of loadings -----------------------------------------------------------------------------------

    def _refine(self) -> None:
        """Columns for the labels of loadings, beside those of their indicators; every line that passes gets a cell.

        Cells beside a column stand in its order, so that what crosses does so on the other side of the labels.
        """
        place = {c: i for column in self.columns for i, c in enumerate(column)}
        cells, chosen = list(self.cells), []
        lines: dict[Line, int] = {}
        for k, column in enumerate(self.columns):
            chosen.append(column)
            between = [line for line in self.lines if cells[line[0]].column == k]
            ends = {line: line[0] for line in between}
            for side in (0, 1):
                wanted = {line for line in between if self._labelled_at(line, side)}
                if not wanted:
                    continue
                added = []
                for line in sorted(between, key=lambda line: (place[line[side]], place[line[1 - side]])):
                    edge = self.lines[line]
                    label = self.graph.edges[edge].label if line in wanted else ""
                    added.append(len(cells))
                    lines[ends[line], len(cells)] = edge
                    ends[line] = len(cells)
                    cells.append(Cell(-1, None, label))
                chosen.append(added)
            lines |= {(ends[line], line[1]): self.lines[line] for line in between}
        column_of = {c: k for k, column in enumerate(chosen) for c in column}
        self.cells = [replace(cell, column=column_of[c]) for c, cell in enumerate(cells)]
        self.columns, self.lines = chosen, lines

    def _labelled_at(self, line: Line, side: int) -> bool:
        """Whether the label of an edge belongs beside that end of a line: for a loading, the indicator's."""
        nodes, edge = [self.cells[c].node for c in line], self.graph.edges[self.lines[line]]
        end = nodes[side]
        if end is None or not edge.label:
            return False
        if edge.kind == "loading":
            return end.id == edge.target
        # A path between neighbouring columns has no cell for its label yet.
        return None not in nodes and side == 1

    # Places -----------------------------------------------------------------------------------------------

    def _across(self) -> list[float]:
        """Places within columns: the least total bend, weighted, with every cell in its order and apart."""
        n = len(self.cells)
        distances = [*self._straight(), *self._centred()]  # (weight, cells and factors): |sum| is kept small
        if n > _MOST_BY_LINEAR_PROGRAM:
            return self._by_sweeps(distances)
        rows: list[int] = []
        cols: list[int] = []
        values: list[float] = []
        limits: list[float] = []
        for column in self.columns:
            for a, b in pairwise(column):
                rows += [len(limits)] * 2
                cols += [a, b]
                values += [1.0, -1.0]
                limits.append(-self._apart(a, b))
        for k, (_, terms) in enumerate(distances):
            for sign in (1.0, -1.0):
                rows += [len(limits)] * (len(terms) + 1)
                cols += [*terms, n + k]
                values += [*(sign * factor for factor in terms.values()), -1.0]
                limits.append(0.0)
        if not limits:
            return [0.0] * n
        cost = np.array([0.0] * n + [weight for weight, _ in distances])
        matrix = coo_array((values, (rows, cols)), shape=(len(limits), len(cost))).tocsr()
        bounds = [(0.0, 0.0), *[(None, None)] * (n - 1), *[(0.0, None)] * len(distances)]
        solved = linprog(cost, A_ub=matrix, b_ub=limits, bounds=bounds, method="highs")
        return [float(v) for v in solved.x[:n]]

    def _by_sweeps(self, distances: Sequence[tuple[float, dict[int, float]]]) -> list[float]:
        """Nearly the same for very many cells, with squares of bends: one column after the other, there and back.

        Given the columns beside it, the best places in a column that keep its order and distances are an isotonic
        regression of the places its lines ask for.
        """
        weights = [weight for weight, _ in distances]
        rows = [k for k, (_, terms) in enumerate(distances) for _ in terms]
        cells = [c for _, terms in distances for c in terms]
        factors = [factor for _, terms in distances for factor in terms.values()]
        bends = coo_array((factors, (rows, cells)), shape=(len(distances), len(self.cells))).tocsr()
        pull = (bends.T @ diags_array(weights) @ bends).tocsr()  # at' pull at: the sum of squared bends
        weight = pull.diagonal() + 1e-9
        at = np.zeros(len(self.cells))
        columns = [
            (np.array(column), np.cumsum([0.0, *(self._apart(a, b) for a, b in pairwise(column))]), pull[column])
            for column in self.columns
            if column
        ]
        for column, offset, _ in columns:
            at[column] = offset - offset.mean()
        for sweep in range(_SWEEPS):
            for column, offset, own in columns if sweep % 2 == 0 else reversed(columns):
                wanted = at[column] - own @ at / weight[column] - offset
                at[column] = isotonic_regression(wanted, weights=weight[column]).x + offset
        return [float(v) for v in at]

    def _straight(self) -> Iterator[tuple[float, dict[int, float]]]:
        """Every line should be straight, most of all between cells of its own and beside an indicator's label."""
        for (a, b), e in self.lines.items():
            cells = self.cells[a], self.cells[b]
            bare = sum(cell.node is None for cell in cells)
            kind = self.graph.edges[e].kind
            weight = (1.0, 2.5 if kind == "loading" else 1.5, 8.0)[bare]
            if kind == "pair":
                weight = 1.0
            elif bare == 1 and any(c.label for c in cells) and any(c.node and c.node.kind == "observed" for c in cells):
                weight = 40.0
            yield weight, {a: 1.0, b: -1.0}

    def _centred(self) -> Iterator[tuple[float, dict[int, float]]]:
        """A latent should stand at the middle of its indicators."""
        where = {cell.node.id: c for c, cell in enumerate(self.cells) if cell.node is not None}
        for column in self.columns:
            fans: dict[str, list[int]] = {}
            for c in column:
                node = self.cells[c].node
                if node is not None and node.home:
                    fans.setdefault(node.home, []).append(c)
            for home, fan in fans.items():
                if len(fan) > 1 and home in where:
                    yield 3.0, {where[home]: 1.0, fan[0]: -0.5, fan[-1]: -0.5}

    def _apart(self, a: int, b: int) -> float:
        """The least distance of the centres of two neighbours in a column."""
        half = (self.sizes[a][1] + self.sizes[b][1]) / 2
        first, second = self.cells[a].node, self.cells[b].node
        if first is None or second is None:
            return half + _APART_LINES
        if first.home and first.home == second.home:
            return half + _APART_LINES
        return half + _APART + _PART

    def _along(self) -> list[float]:
        """Places of columns: wider gaps where lines change much from one to the next."""
        longest = [max((self.sizes[c][0] for c in column), default=0.0) for column in self.columns]
        steep = [0.0] * len(self.columns)
        for a, b in self.lines:
            k = self.cells[a].column
            steep[k] = max(steep[k], abs(self.across[a] - self.across[b]))
        at, where = [], 0.0
        for k, long in enumerate(longest):
            at.append(where + long / 2)
            if not self.columns[k]:
                continue
            gap = _GAP_SHORT + min(_STEEPEST * steep[k], 70.0)
            where += long + (max(gap, _GAP) if self._has_latents(k) or self._has_latents(k + 1) else gap)
        return [at[cell.column] for cell in self.cells]

    def _has_latents(self, k: int) -> bool:
        nodes = [self.cells[c].node for c in (self.columns[k] if k < len(self.columns) else ())]
        return any(node is not None and node.kind != "observed" for node in nodes)

    # What comes out ---------------------------------------------------------------------------------------

    def _point(self, along: float, across: float, x: float, y: float) -> Point:
        if self.flow == "right":
            return x + along, y + across - self.top
        return x + across - self.top, y + along

    def nodes(self, x: float, y: float) -> list[Node]:
        """The nodes with the part's corner at a place."""
        inside = {block.node.id: block.inside for block in self.graph.blocks}
        result = []
        for c, cell in enumerate(self.cells):
            if cell.node is None:
                continue
            px, py = self._point(self.along[c], self.across[c], x, y)
            result.append(cell.node.at(px, py))
            members = inside.get(cell.node.id, ())
            top = py - cell.node.height / 2 + _RIM
            for member in members:
                result.append(member.at(px, top + member.height / 2))
                top += member.height + 8.0
        return result

    def grid(self, x: float, y: float, shelf: int) -> Grid:
        """How it is laid out, for a page that does so again."""
        slots = tuple(
            Slot(cell.node.id if cell.node else "", bool(cell.label), *size, along, across - self.top)
            for cell, size, along, across in zip(self.cells, self.sizes, self.along, self.across)
        )
        ends = [(edge.source, edge.target) for edge in self.graph.edges]
        lines = tuple((a, b, *ends[e]) for (a, b), e in self.lines.items())
        return Grid(slots, tuple(map(tuple, self.columns)), lines, x, y, shelf)

    def edges(self, x: float, y: float) -> list[Edge]:
        """The edges with their routes and the places of their labels."""
        chains = self._chains()
        ports = self._ports(chains)
        halves = [max((self.sizes[c][0] for c in column), default=0.0) / 2 for column in self.columns]
        result = []
        for e, chain in chains.items():
            edge, points = self.graph.edges[e], []
            label_at = (0.0, 0.0)
            for k, c in enumerate(chain):
                cell, at, across = self.cells[c], self.along[c], self.across[c]
                half = halves[cell.column]
                if cell.node is not None:
                    (px, py), other = ports[e, c], chain[k + 1] if k == 0 else chain[k - 1]
                    # Straight on to where the column ends where others in it are wider than this node.
                    stub = at + math.copysign(half, self.along[other] - at), py
                    route = [(px, py), *([stub] if self.sizes[c][0] / 2 < half - 0.5 else [])]
                    points += [self._point(*point, x, y) for point in (route if k == 0 else route[::-1])]
                    continue
                before, after = (self.along[chain[k + step]] for step in (-1, 1))
                sign = 1.0 if at > before else -1.0
                # Where both neighbours are on one side, the line goes up to its label and back.
                ends = (-1.0, 0.0, -1.0) if (after > at) == (before > at) else (-1.0, 1.0) if half else (0.0,)
                points += [self._point(at + s * sign * half, across, x, y) for s in ends]
                if cell.label:
                    label_at = self._point(at, across, x, y)
            result.append(replace(edge, points=tuple(points), label_at=label_at))
        return result

    def _chains(self) -> dict[int, list[int]]:
        """The cells of each edge, from its source to its target."""
        where = {cell.node.id: c for c, cell in enumerate(self.cells) if cell.node is not None}
        beside: dict[int, dict[int, list[int]]] = {}
        for (a, b), e in self.lines.items():
            of_edge = beside.setdefault(e, {})
            of_edge.setdefault(a, []).append(b)
            of_edge.setdefault(b, []).append(a)
        chains = {}
        for e, neighbours in beside.items():
            chain = [where[self.graph.edges[e].source]]
            while following := [c for c in neighbours[chain[-1]] if c not in chain[-2:]]:
                chain.append(following[0])
            chains[e] = chain
        return chains

    def _ports(self, chains: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], Point]:
        """Where each edge leaves or enters its nodes, along and across: spread over the side it comes from."""
        wanted: dict[tuple[int, float], list[tuple[float, int]]] = {}
        for e, chain in chains.items():
            for c, beside in ((chain[0], chain[1]), (chain[-1], chain[-2])):
                side = 1.0 if self.along[beside] > self.along[c] else -1.0
                wanted.setdefault((c, side), []).append((self.across[beside], e))
        ports = {}
        for (c, side), entries in wanted.items():
            node, (long, wide) = self.cells[c].node, self.sizes[c]
            step = min(_PORTS, 0.72 * wide / max(len(entries), 1))
            for k, (_, e) in enumerate(sorted(entries)):
                off = step * (k - (len(entries) - 1) / 2)
                reach = long / 2
                if node is not None and node.kind == "latent":
                    reach *= math.sqrt(max(1.0 - (2.0 * off / wide) ** 2, 0.0))
                ports[e, c] = self.along[c] + side * reach, self.across[c] + off
        return ports
