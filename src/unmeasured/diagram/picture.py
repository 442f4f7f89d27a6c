"""A path diagram as values: nodes with a place and a size, edges with a route and a place for their label.

The conventions are those of the field::

      ( latent )   an ellipse                 ──►  a cause and its effect
      [observed]   a box                      ───  an edge whose direction is not identified
     {(L1) (L2)}   a group of latents that    - -  a negative coefficient
                   only rotation sets apart   thicker: stronger
                                              ◄∙∙►  a residual correlation of two observed variables

Everything is in points, x to the right and y downwards. A page and a picture file draw the same values. The route of an
edge is a list of points; between two of them runs an S-shaped curve that leaves and arrives along the direction of the
drawing (to the right, or downwards), so that a step without sideways change is a straight line::

      ●───╮                          C  (middle, start)  (middle, end)
          ╰───●───────►
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

NodeKind = Literal["latent", "observed", "group"]
EdgeKind = Literal["loading", "path", "pair"]
View = Literal["auto", "full", "latents"]
Flow = Literal["right", "down"]

Point = tuple[float, float]

FONT = 10.0
LABEL_FONT = 8.5
LINE = 1.2  # from one line of text to the next, in sizes of its font
_WIDE_LATENT, _WIDE_ITEM = 16, 22  # letters on a line


@dataclass(frozen=True, slots=True)
class Node:
    """A variable, or a group of several latents, around its centre."""

    id: str
    kind: NodeKind
    lines: tuple[str, ...]  # the label
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    colour: int = -1  # which colour of the palette; -1: none
    shared: bool = False  # an indicator of several groups
    parent: str = ""  # the group a latent is drawn inside of
    home: str = ""  # the latent or group an indicator is drawn beside
    notes: tuple[str, ...] = ()  # small text below the label, such as R2 or the strongest indicators
    hint: str = ""  # what a reader who points at it wants to know
    side: Literal["", "left", "right"] = ""  # a covariate stands at the left, an outcome at the right

    def at(self, x: float, y: float) -> Node:
        """The same node elsewhere."""
        return replace(self, x=x, y=y)


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow, a line where the direction is not identified, or a residual pair with a head at both ends."""

    source: str
    target: str
    kind: EdgeKind
    directed: bool
    label: str
    strength: float  # from 0 to 1: the absolute standardised coefficient
    negative: bool = False
    colour: int = -1
    hint: str = ""
    main: bool = False  # the strongest loading of an indicator: no threshold takes that away
    points: tuple[Point, ...] = ()
    label_at: Point = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of the legend: a small sample and what it means, its left end at ``x``."""

    sample: Literal["latent", "observed", "shared", "group", "arrow", "line", "negative", "strong", "pair"]
    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Slot:
    """A cell of a column: a node, or the passage of an edge; with its size and place along and across the drawing."""

    node: str  # its id; empty where an edge passes
    label: bool  # whether the label of the edge stands here
    long: float
    wide: float
    along: float
    across: float


@dataclass(frozen=True, slots=True)
class Grid:
    """How a connected part of a picture is laid out, for a page that lays it out again with some edges hidden."""

    slots: tuple[Slot, ...]
    columns: tuple[tuple[int, ...], ...]  # slots in their order
    lines: tuple[tuple[int, int, str, str], ...]  # two slots of neighbouring columns, source and target of their edge
    x: float
    y: float
    shelf: int  # parts of one shelf stand side by side


@dataclass(frozen=True, slots=True)
class Picture:
    """Nodes and edges of one view, the legend, and the size of the sheet."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float
    flow: Flow = "right"
    legend: tuple[Key, ...] = ()
    remark: tuple[str, ...] = ()  # what is not drawn, below the legend
    remark_y: float = 0.0
    grids: tuple[Grid, ...] = ()

    def node(self, name: str) -> Node:
        """The node with that id."""
        return next(node for node in self.nodes if node.id == name)


# Text -------------------------------------------------------------------------------------------------------


def text_width(text: str, size: float = FONT) -> float:
    """About how wide a text is in a sans-serif font; no font is asked, so that layouts repeat everywhere.

    >>> text_width("mmm") > text_width("iii")
    True
    """
    return size * sum(_advance(c) for c in text)


def _advance(c: str) -> float:
    if c in "iljtfrI.,:;'|! ()":
        return 0.38
    if c in "mwMW@%":
        return 0.98
    if c in "−+=≠<>~":
        return 0.85
    if _is_wide(c):
        return 1.1
    return 0.70 if c.isupper() else 0.63


def _is_wide(c: str) -> bool:
    """Whether a sign is as wide as two letters, as those of Chinese, Japanese and Korean are."""
    return unicodedata.east_asian_width(c) in ("W", "F")


def _letters(text: str) -> int:
    return sum(1 + _is_wide(c) for c in text)


def wrapped(text: str, wide: int = _WIDE_LATENT) -> tuple[str, ...]:
    """A label on as many lines as it needs, broken where words end; a word is never cut.

    >>> wrapped("speed"), wrapped("emotional_exhaustion"), wrapped("How often do you feel tired at work?", 20)
    (('speed',), ('emotional_', 'exhaustion'), ('How often do you', 'feel tired at work?'))
    >>> wrapped("仕事で疲れていますか", 12)
    ('仕事で疲れて', 'いますか')
    """
    if _letters(text) <= wide:
        return (text,)
    # Words with the mark that ends them; a capital or a number after a small letter begins a word too.
    words = re.findall(r"[^\s_.\-/]*?(?:[\s_.\-/]+|(?<=[a-z])(?=[A-Z0-9])|$)", text)
    # Wide signs are words of their own: a line may end at any of them.
    words = [part for word in words for part in (word if any(map(_is_wide, word)) else (word,))]
    lines = [""]
    for word in filter(None, words):
        if lines[-1] and _letters((lines[-1] + word).rstrip()) > wide:
            lines.append("")
        lines[-1] += word
    return tuple(line.strip() for line in lines if line.strip()) or (text,)


def wrapped_item(text: str) -> tuple[str, ...]:
    """The label of an observed variable, which has a wider box."""
    return wrapped(text, _WIDE_ITEM)


def cut(text: str, longest: int = 40) -> str:
    """A text for the margin of a chart: whole if it is not too long, else its first words.

    >>> cut("tired"), cut("How often do you feel tired?", 12)
    ('tired', 'How often…')
    """
    if len(text) <= longest:
        return text
    start = re.match(rf".{{1,{longest - 1}}}(?<=[\w?!)])(?!\w)", text)  # up to the end of a word
    return f"{start[0] if start else text[: longest - 1]}…"


def coefficient(value: float) -> str:
    """A standardised coefficient as the field prints it.

    >>> coefficient(0.684), coefficient(-0.29), coefficient(1.02), coefficient(0.001)
    ('.68', '−.29', '1.02', '.00')
    """
    if math.isnan(value):
        return ""
    digits = f"{abs(value):.2f}"
    return ("−" if value < 0 and float(digits) else "") + digits.removeprefix("0")


def label_size(label: str) -> tuple[float, float]:
    """Width and height of the label of an edge, with the free space around it."""
    return (text_width(label, LABEL_FONT) + 6.0, LABEL_FONT + 4.0) if label else (0.0, 0.0)


# Geometry ---------------------------------------------------------------------------------------------------


def bends(points: Sequence[Point], flow: Flow) -> list[tuple[Point, Point, Point, Point]]:
    """The route of an edge as cubic curves: beginning, two control points, end."""
    pieces = []
    for (x0, y0), (x1, y1) in pairwise(points):
        if flow == "right":
            middle = (x0 + x1) / 2
            pieces.append(((x0, y0), (middle, y0), (middle, y1), (x1, y1)))
        else:
            middle = (y0 + y1) / 2
            pieces.append(((x0, y0), (x0, middle), (x1, middle), (x1, y1)))
    return pieces


def sampled(points: Sequence[Point], flow: Flow, pieces: int = 12) -> list[Point]:
    """Points along a route."""
    line = [points[0]]
    for a, b, c, d in bends(points, flow):
        for k in range(1, pieces + 1):
            t = k / pieces
            weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3
            corners = (a, b, c, d)
            line.append(
                (sum(w * p[0] for w, p in zip(weights, corners)), sum(w * p[1] for w, p in zip(weights, corners)))
            )
    return line


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an arrow: where its line ends, and its three corners, the tip first."""

    foot: Point
    corners: tuple[Point, Point, Point]


def arrow_head(points: Sequence[Point], flow: Flow, width: float) -> Head:
    """The head of an arrow with a line of that width; routes arrive along the direction of the drawing."""
    (x0, y0), (x, y) = points[-2], points[-1]
    length, half = 6.0 + 1.2 * width, 2.2 + 0.9 * width
    if flow == "right":
        dx, dy = math.copysign(1.0, x - x0), 0.0
    else:
        dx, dy = 0.0, math.copysign(1.0, y - y0)
    bx, by = x - length * dx, y - length * dy
    foot = x - 0.8 * length * dx, y - 0.8 * length * dy
    return Head(foot, ((x, y), (bx - half * dy, by + half * dx), (bx + half * dy, by - half * dx)))


def arrow_heads(edge: Edge, flow: Flow, width: float) -> tuple[list[Head], list[Point]]:
    """The heads of an edge with a line of that width, and its route without the parts under them.

    A cause has one, a residual pair two, and an edge whose direction is not identified none.
    """
    route, heads = list(edge.points), []
    if edge.directed or edge.kind == "pair":
        heads.append(arrow_head(edge.points, flow, width))
        route[-1] = heads[-1].foot
    if edge.kind == "pair":
        heads.append(arrow_head(edge.points[::-1], flow, width))
        route[0] = heads[-1].foot
    return heads, route
