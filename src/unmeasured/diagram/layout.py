"""Where everything goes: a layout made for measurement models.

The full view has two columns of indicators at the outside, each latent just inside of its own, and the paths between
latents in the middle, where nothing else is::

      [x1]◄─╮                          ╭─►[x7]
      [x2]◄─( L1 )──────────────►( L3 )──►[x8]        causes above their effects
      [x3]◄─╯      ╲              ╱    ╰─►[x9]
      [x4]◄─╮       ╲            ╱
      [x5]◄─( L2 )◄──╯──────────╯                     few crossings: sides and order are searched for
      [x6]◄─╯

The view of the latents alone has one row for each causal layer. In both, places are found by exchanging what is there
until nothing gets better; the cost counts crossings, lines through nodes, arrows that point up, and length. Nothing is
drawn at random, so the same result gives the same picture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.diagram.picture import LABEL_FONT, Edge, Node, Picture, Point, curve, on_curve, text_width

Place = TypeVar("Place")

_STEP = 26.0  # from one indicator to the next
_GAP = 20.0  # between the indicators of two groups
_FAN = 104.0  # from a latent to its indicators
_MARGIN = 14.0
_NOTE = 34.0  # room for R2 beside a box
_INSIDE = 8.0  # from the rim of a group to its latents
_MANY = 14  # indicators of a lonely latent that would make too long a column
_ROW, _SLOT = 62.0, 76.0  # between rows of latents, and half the least distance within a row
_PIECES = 24  # a curve is looked at in so many
_BENDS = (0.0, 0.1, -0.1, 0.2, -0.2, 0.3, -0.3)  # to try for a loading that crosses the sheet
_LABEL_PLACES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73, 0.2, 0.8, 0.14, 0.86)


@dataclass(frozen=True)
class Block:
    """A latent, or a group of several, and the indicators that are drawn beside it."""

    node: Node
    inside: tuple[Node, ...]  # the latents of a group of several
    items: tuple[Node, ...]
    layer: int

    @property
    def height(self) -> float:
        """What it takes in a column."""
        return max(_STEP * len(self.items), self.node.height + 8.0)


# The full view ----------------------------------------------------------------------------------------------


def full_layout(blocks: Sequence[Block], loose: Sequence[Node], edges: Sequence[Edge]) -> Picture:
    """Indicators in two columns, latents inside of them, paths in the middle; ``loose`` nodes in rows below."""
    sides = _sides(blocks, edges)
    nodes = _placed(blocks, sides, edges) if blocks else {}
    width = max((n.x + n.width / 2 for n in nodes.values()), default=2 * _MARGIN) + _MARGIN
    width += _NOTE if any(n.note for n in nodes.values()) else 0.0
    height = max((n.y + n.height / 2 for n in nodes.values()), default=0.0) + _MARGIN
    for node in _in_rows(loose, max(width, 420.0), height):
        nodes[node.id] = node
        width, height = max(width, node.x + node.width / 2 + _MARGIN), node.y + node.height / 2 + _MARGIN
    own = {(block.node.id, item.id) for block in blocks for item in block.items}
    bent = _bent_across([_bent_along(edge, nodes) for edge in edges], own, nodes)
    return Picture(tuple(nodes.values()), tuple(_labelled(bent, own, nodes)), width, height)


Sides = tuple[tuple[int, ...], ...]  # which blocks stand in each column, from top to bottom


def _sides(blocks: Sequence[Block], edges: Sequence[Edge]) -> Sides:
    """Two columns of blocks, found by moving one block or exchanging two until the cost falls no more."""
    if len(blocks) < 2:
        return ((), tuple(range(len(blocks))))
    left: list[int] = []
    right: list[int] = []
    for b in sorted(range(len(blocks)), key=lambda b: (blocks[b].layer, b)):
        shorter = left if sum(blocks[i].height for i in left) <= sum(blocks[i].height for i in right) else right
        shorter.append(b)
    links = _links(blocks, edges)
    return _descent((tuple(left), tuple(right)), _rearranged, lambda sides: _cost_of_sides(sides, blocks, links))


def _rearranged(sides: Sides) -> Iterator[Sides]:
    """Every way to move one block somewhere else or exchange two."""
    blocks = [b for side in sides for b in side]
    for b in blocks:
        without = [tuple(i for i in side if i != b) for side in sides]
        for s, side in enumerate(without):
            for place in range(len(side) + 1):
                moved = (*side[:place], b, *side[place:])
                yield tuple(moved if t == s else other for t, other in enumerate(without))
    for a, b in combinations(blocks, 2):
        swap = {a: b, b: a}
        yield tuple(tuple(swap.get(i, i) for i in side) for side in sides)


def _links(blocks: Sequence[Block], edges: Sequence[Edge]) -> list[tuple[int, int, float, bool]]:
    """What pulls two blocks together: paths, and common children; with a weight, and whether first causes second."""
    home = {item.id: b for b, block in enumerate(blocks) for item in block.items}
    home |= {block.node.id: b for b, block in enumerate(blocks)}
    links: dict[tuple[int, int, bool], float] = {}
    for edge in edges:
        if edge.source in home and edge.target in home and home[edge.source] != home[edge.target]:
            key = home[edge.source], home[edge.target], edge.kind == "path"
            links[key] = links.get(key, 0.0) + (1.0 if edge.kind == "path" else 0.7)
    return [(a, b, weight, path) for (a, b, path), weight in links.items()]


def _cost_of_sides(sides: Sides, blocks: Sequence[Block], links: Sequence[tuple[int, int, float, bool]]) -> float:
    place: dict[int, Point] = {}
    heights = []
    for s, side in enumerate(sides):
        y = 0.0
        for b in side:
            place[b] = (300.0 * s, y + blocks[b].height / 2)
            y += blocks[b].height + _GAP
        heights.append(y)
    cost = 4.0 * max(heights) / _STEP
    lines: list[tuple[Point, Point, float]] = []
    for first, second, weight, path in links:
        (xa, ya), (xb, yb) = place[first], place[second]
        cost += weight * abs(ya - yb) / 100.0
        if xa == xb:  # along a column a line has to curve past whatever stands between
            between = sum(min(ya, yb) < place[c][1] < max(ya, yb) for c in sides[int(xa > 0)])
            cost += weight * (0.8 + 1.2 * between)
        if path and ya > yb + 1.0:
            cost += 0.6
        lines.append((place[first], place[second], weight))
    return cost + 1.5 * sum(v * w for (a, b, v), (c, d, w) in combinations(lines, 2) if _cross(a, b, c, d))


def _placed(blocks: Sequence[Block], sides: Sides, edges: Sequence[Edge]) -> dict[str, Node]:
    """Coordinates for two columns; the shorter one is spread to the height of the longer."""
    noted = _NOTE if any(item.note for block in blocks for item in block.items) else 0.0
    boxes = [max((item.width for b in side for item in blocks[b].items), default=0.0) for side in sides]
    ovals = [max((blocks[b].node.width for b in side), default=0.0) for side in sides]
    n_paths = sum(edge.kind == "path" for edge in edges)
    middle = min(120.0 + 14.0 * n_paths, 330.0) if sides[0] and sides[1] else 0.0
    outer = _MARGIN + noted + boxes[0] / 2
    left = outer + boxes[0] / 2 + _FAN + ovals[0] / 2 if sides[0] else _MARGIN + ovals[1] / 2
    right = left + ovals[0] / 2 + middle + ovals[1] / 2 if sides[0] else left
    column = [(left, outer), (right, right + ovals[1] / 2 + _FAN + boxes[1] / 2)]
    if len(blocks) == 1 and len(blocks[0].items) > _MANY:
        return _on_both_sides(blocks[0])
    if not sides[0] and sides[1]:
        column[1] = _beside_arcs(blocks, column[1], edges)
    total = max(sum(blocks[b].height + _GAP for b in side) for side in sides) - _GAP
    nodes: dict[str, Node] = {}
    for side, (x, x_items) in zip(sides, column):
        spare = total - sum(blocks[b].height for b in side)
        gap = spare / (len(side) + 1) if len(side) and spare > _GAP * (len(side) + 1) else _GAP
        y = _MARGIN + (gap if gap > _GAP else (spare - _GAP * (len(side) - 1)) / 2)
        for b in side:
            nodes |= _block_at(blocks[b], x, x_items, y, nodes, edges)
            y += blocks[b].height + gap
    # Boxes of a column have one width, so that all arrows end on one line.
    width = {item.id: box for side, box in zip(sides, boxes) for b in side for item in blocks[b].items}
    return {name: replace(node, width=width.get(name, node.width)) for name, node in nodes.items()}


def _beside_arcs(blocks: Sequence[Block], column: Point, edges: Sequence[Edge]) -> Point:
    """A lone column needs room at its left for the arcs between its latents."""
    room = 90.0 if len(blocks) > 1 and any(edge.kind == "path" for edge in edges) else 0.0
    return column[0] + room, column[1] + room


def _on_both_sides(block: Block) -> dict[str, Node]:
    """One latent with many indicators: half of them on either side."""
    half = (len(block.items) + 1) // 2
    width = max(item.width for item in block.items)
    block = replace(block, items=tuple(replace(item, width=width) for item in block.items))
    noted = _NOTE if any(item.note for item in block.items) else 0.0
    outer = _MARGIN + noted + width / 2
    centre = outer + width / 2 + _FAN + 20.0 + block.node.width / 2
    first = _block_at(replace(block, items=block.items[:half]), centre, outer, _MARGIN, {}, ())
    second = _block_at(replace(block, items=block.items[half:]), centre, 2 * centre - outer, _MARGIN, {}, ())
    return second | first


def _block_at(
    block: Block, x: float, x_items: float, top: float, placed: Mapping[str, Node], edges: Sequence[Edge]
) -> dict[str, Node]:
    middle = top + block.height / 2
    nodes = {block.node.id: block.node.at(x, middle)}
    inner = sum(node.height for node in block.inside) + _INSIDE * (len(block.inside) - 1)
    y = middle - inner / 2
    for node in block.inside:
        nodes[node.id] = node.at(x, y + node.height / 2)
        y += node.height + _INSIDE
    first = middle - _STEP * (len(block.items) - 1) / 2
    for k, item in enumerate(_toward_others(block, placed, edges)):
        nodes[item.id] = item.at(x_items, first + _STEP * k)
    return nodes


def _toward_others(block: Block, placed: Mapping[str, Node], edges: Sequence[Edge]) -> list[Node]:
    """Indicators that other groups share stand on the side of those: above if these are placed already, else below."""
    above = {e.target for e in edges if e.kind == "loading" and e.source in placed}
    others = {e.target for e in edges if e.kind == "loading" and e.source != block.node.id}
    return sorted(block.items, key=lambda item: 0 if item.id in above else 2 if item.id in others else 1)


def _in_rows(nodes: Sequence[Node], width: float, top: float) -> Iterator[Node]:
    """Nodes that belong nowhere, in rows from left to right."""
    x, y = _MARGIN, top + _STEP / 2 if top > _MARGIN else _MARGIN + _STEP / 2
    for node in nodes:
        if x > _MARGIN and x + node.width > width - _MARGIN:
            x, y = _MARGIN, y + _STEP
        yield node.at(x + node.width / 2, y)
        x += node.width + 10.0


def _bent_along(edge: Edge, nodes: Mapping[str, Node]) -> Edge:
    """Paths along a column curve into the middle, past the latents in between; all others are straight."""
    a, b = nodes[edge.source], nodes[edge.target]
    if edge.kind != "path" or abs(a.x - b.x) > 1.0 or a.y == b.y:
        return edge
    length = abs(a.y - b.y)
    bulge = max(a.width, b.width) / 2 + 6.0 + 0.13 * length
    # Half of the control point's distance is the curve's own; the left column bends to the right.
    centre = (min(n.x for n in nodes.values()) + max(n.x for n in nodes.values())) / 2
    direction = 1.0 if a.x < centre else -1.0
    return replace(edge, bend=math.copysign(2.0 * bulge / length, direction * (a.y - b.y)))


def _bent_across(edges: Sequence[Edge], own: set[tuple[str, str]], nodes: Mapping[str, Node]) -> list[Edge]:
    """Loadings from afar curve where they would run over a node, or along a path."""
    paths = [edge for edge in edges if edge.kind == "path"]
    far = [edge for edge in edges if edge.kind == "loading" and (edge.source, edge.target) not in own]
    return _bent_where(edges, set(far), paths, nodes)


def _bent_where(
    edges: Sequence[Edge], movable: set[Edge], fixed: Sequence[Edge], nodes: Mapping[str, Node]
) -> list[Edge]:
    """The movable edges with the bend that keeps them off nodes, off the fixed edges and on the sheet."""
    lines = [_points(curve(nodes[e.source], nodes[e.target], e)) for e in fixed]
    paths = np.array(lines, dtype=float).reshape(len(lines), _PIECES + 1, 2)
    boxes = np.array([_box(n.x, n.y, n.width + 4.0, n.height + 4.0) for n in nodes.values()])
    sheet = np.concatenate([boxes[:, :2].min(axis=0) - 8.0, boxes[:, 2:].max(axis=0) + 8.0])
    result = []
    for edge in edges:
        if edge in movable:
            bends = (replace(edge, bend=bend) for bend in _BENDS)
            others = boxes[[name not in (edge.source, edge.target) for name in nodes]]
            edge = min(bends, key=lambda e: _obstructed(e, nodes, others, paths, sheet))
        result.append(edge)
    return result


def _obstructed(edge: Edge, nodes: Mapping[str, Node], boxes: Floats, paths: Floats, sheet: Floats) -> float:
    """How much of an edge runs over boxes (k, 4), along paths (m, pieces, 2) or off the sheet; straight is best."""
    points = np.array(_points(curve(nodes[edge.source], nodes[edge.target], edge))[1:-1])[:, None]
    inside = (points >= boxes[:, :2]).all(axis=-1) & (points <= boxes[:, 2:]).all(axis=-1)
    near = (((points[:, :, None] - paths) ** 2).sum(axis=-1) < 81.0).any(axis=-1)
    off = ((points < sheet[:2]) | (points > sheet[2:])).any(axis=-1)
    return 5.0 * abs(edge.bend) + 3.0 * float(inside.sum()) + float(near.sum()) + 50.0 * float(off.sum())


def _points(line: tuple[Point, Point, Point]) -> list[Point]:
    return [on_curve(line, k / _PIECES) for k in range(_PIECES + 1)]


# The latents alone ------------------------------------------------------------------------------------------


def latent_layout(blocks: Sequence[Block], edges: Sequence[Edge]) -> Picture:
    """A row for each causal layer; within it, places that keep lines apart."""
    if not blocks:
        return Picture((), (), 2 * _MARGIN, 2 * _MARGIN)
    rows = _rows(blocks, edges)
    slots = 2 * max([*(len(row) for row in rows), min(len(blocks), 4)])
    start = tuple(slot for row in rows for slot in _spread(len(row), slots))
    order = [b for row in rows for b in row]
    level = {b: r for r, row in enumerate(rows) for b in row}
    links = [(a, b) for a, b, _, path in _links(blocks, edges) if path]

    tall = [max(blocks[b].node.height for b in row) for row in rows]
    row_y = [sum(tall[:r]) + tall[r] / 2 + _ROW * r for r in range(len(rows))]
    size = {b: (blocks[b].node.width / 2 + 8.0, blocks[b].node.height / 2 + 6.0) for b in order}

    def centre(places: tuple[int, ...]) -> dict[int, Point]:
        return {b: (_SLOT * places[i], row_y[level[b]]) for i, b in enumerate(order)}

    # The lattice is small: many exchanges, each cheap.
    best = _descent(
        start,
        lambda places: _shifted(places, slots, [level[b] for b in order]),
        lambda places: _cost_of_rows(centre(places), size, links),
    )
    at = centre(best)
    shift_x = _MARGIN - min(at[b][0] - blocks[b].node.width / 2 for b in at)
    shift_y = _MARGIN - min(at[b][1] - blocks[b].node.height / 2 for b in at)
    nodes: dict[str, Node] = {}
    for b, (x, y) in at.items():
        bare = replace(blocks[b], items=())
        nodes |= _block_at(bare, x + shift_x, 0.0, y + shift_y - bare.height / 2, {}, ())
    width = max(n.x + n.width / 2 for n in nodes.values()) + _MARGIN
    height = max(n.y + n.height / 2 for n in nodes.values()) + _MARGIN
    # Rows leave little choice: a line that still runs over a latent goes around it.
    whole = {name: node for name, node in nodes.items() if not node.parent}
    bent = _bent_where(edges, set(edges), (), whole)
    return Picture(tuple(nodes.values()), tuple(_labelled(bent, set(), nodes)), width, height)


def _rows(blocks: Sequence[Block], edges: Sequence[Edge]) -> list[list[int]]:
    """Blocks by layer; a layer that is too wide for a sheet goes on in the next row, as do blocks without paths."""
    linked = {end for edge in edges for end in (edge.source, edge.target)}
    layers: dict[float, list[int]] = {}
    for b, block in enumerate(blocks):
        layers.setdefault(block.layer if block.node.id in linked else math.inf, []).append(b)
    rows = []
    for key in sorted(layers):
        members = layers[key]
        n_rows = math.ceil(len(members) / 5)
        size = math.ceil(len(members) / n_rows)
        rows += [members[i : i + size] for i in range(0, len(members), size)]
    return rows


def _spread(n: int, slots: int) -> list[int]:
    """Even places for n nodes in a row.

    >>> _spread(2, 8)
    [2, 6]
    """
    return [round(slots * (2 * i + 1) / (2 * n)) for i in range(n)]


def _shifted(places: tuple[int, ...], slots: int, level: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every way to put one node elsewhere in its row, or exchange two of a row; two slots are the least distance."""
    for i, old in enumerate(places):
        beside = [p for j, p in enumerate(places) if j != i and level[j] == level[i]]
        for slot in range(slots + 1):
            if slot != old and all(abs(slot - p) >= 2 for p in beside):
                yield (*places[:i], slot, *places[i + 1 :])
    for i, j in combinations(range(len(places)), 2):
        if level[i] == level[j]:
            swapped = list(places)
            swapped[i], swapped[j] = swapped[j], swapped[i]
            yield tuple(swapped)


def _cost_of_rows(at: Mapping[int, Point], size: Mapping[int, Point], links: Sequence[tuple[int, int]]) -> float:
    cost = 0.0
    for a, b in links:
        cost += math.dist(at[a], at[b]) / 400.0
        cost += sum(6.0 * _passes(at[a], at[b], point, size[c]) for c, point in at.items() if c not in (a, b))
    cost += sum(1.0 for (a, b), (c, d) in combinations(links, 2) if _cross(at[a], at[b], at[c], at[d]))
    middle = sum(x for x, _ in at.values()) / len(at)
    return cost + sum(abs(x - middle) for x, _ in at.values()) / 2000.0


def _passes(start: Point, end: Point, centre: Point, radii: Point) -> bool:
    """Whether a straight line runs over an ellipse."""
    # In units of its radii the ellipse is a circle of radius one.
    (x0, y0), (x1, y1) = (((x - centre[0]) / radii[0], (y - centre[1]) / radii[1]) for x, y in (start, end))
    dx, dy = x1 - x0, y1 - y0
    t = min(max(-(x0 * dx + y0 * dy) / (dx * dx + dy * dy), 0.0), 1.0)
    return math.hypot(x0 + t * dx, y0 + t * dy) < 1.0


# What both views share --------------------------------------------------------------------------------------


def _descent(start: Place, neighbours: Callable[[Place], Iterable[Place]], cost: Callable[[Place], float]) -> Place:
    """Steepest descent: the best neighbour for as long as it is better."""
    best, value = start, cost(start)
    while True:
        found, lower = min(
            ((other, cost(other)) for other in neighbours(best)), key=lambda p: p[1], default=(best, value)
        )
        if lower >= value - 1e-9:
            return best
        best, value = found, lower


def _cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether two straight lines cross; lines that share an end do not.

    >>> _cross((0, 0), (1, 1), (0, 1), (1, 0)), _cross((0, 0), (1, 1), (0, 0), (1, 0))
    (True, False)
    """
    if a in (c, d) or b in (c, d):
        return False

    def turn(p: Point, q: Point, r: Point) -> float:
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return turn(a, b, c) * turn(a, b, d) < 0 and turn(c, d, a) * turn(c, d, b) < 0


_COVERS = 100.0  # a label over another or over a node; over a line it costs 1
Box = tuple[float, float, float, float]  # left, top, right, bottom


def _labelled(edges: Sequence[Edge], own: set[tuple[str, str]], nodes: Mapping[str, Node]) -> list[Edge]:
    """A place on each edge for its label: ``own`` loadings beside their box, the others where least is covered.

    A loading from afar whose figure would cover another stays without: pictures are read, tables looked up.
    """
    lines = [curve(nodes[edge.source], nodes[edge.target], edge) for edge in edges]
    points = [_points(line) for line in lines]
    taken = [_box(node.x, node.y, node.width, node.height) for node in nodes.values() if not node.parent]
    rank = [0 if (edge.source, edge.target) in own else 1 if edge.kind == "path" else 2 for edge in edges]
    result = list(edges)
    # Paths next, and weak loadings last: they are the first to lose their figure.
    for i in sorted(range(len(edges)), key=lambda i: (rank[i], -edges[i].strength)):
        edge, line = edges[i], lines[i]
        if rank[i] == 0:
            at = 1.0 - (text_width(edge.label, LABEL_FONT) / 2 + 15.0) / max(abs(line[2][0] - line[0][0]), 1.0)
        else:
            others = [points[j] for j in range(len(edges)) if j != i and rank[j]]
            at, cost = min(
                ((t, _covered(edge, line, t, taken, others)) for t in _LABEL_PLACES), key=lambda choice: choice[1]
            )
            if rank[i] == 2 and cost >= _COVERS:
                result[i] = replace(edge, label="")
                continue
        result[i] = replace(edge, at=min(max(at, 0.14), 0.9))
        taken.append(_label_box(edge, on_curve(line, result[i].at)))
    return result


def _covered(
    edge: Edge,
    line: tuple[Point, Point, Point],
    t: float,
    taken: Sequence[Box],
    others: Sequence[Sequence[Point]],
) -> float:
    """What a label would cover at that place; the middle is preferred."""
    box = _label_box(edge, on_curve(line, t))
    cost = _COVERS * sum(_overlap(box, other) for other in taken) + abs(t - 0.5)
    return cost + sum(any(_inside(point, box) for point in other) for other in others)


def _label_box(edge: Edge, at: Point) -> Box:
    return _box(*at, text_width(edge.label, LABEL_FONT) + 4.0, LABEL_FONT + 5.0)


def _box(x: float, y: float, width: float, height: float) -> Box:
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _inside(point: Point, box: Box) -> bool:
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]
