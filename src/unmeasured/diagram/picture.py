"""A path diagram as values: nodes with a place and a size, edges with a bend and a place for their label.

The conventions are those of the field::

      ( latent )   an ellipse                 ──►  a cause and its effect
      [observed]   a box                      ───  an edge whose direction data do not tell
     {(L1) (L2)}   a group of latents that    - -  a negative coefficient
                   only rotation sets apart   thicker: stronger

Everything is in points, x to the right and y downwards. A page and a picture file draw the same values, so the few
formulas of geometry that both need are here, and nowhere else in Python: an edge is a quadratic curve whose control
point stands off the middle of the straight line by ``bend`` times its length, cut where it meets its two nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

NodeKind = Literal["latent", "observed", "group"]
EdgeKind = Literal["loading", "path"]
View = Literal["full", "latents"]

Point = tuple[float, float]

FONT = 10.0
LABEL_FONT = 8.5
_LONGEST = 24


@dataclass(frozen=True, slots=True)
class Node:
    """A variable, or a group of several latents, around its centre."""

    id: str
    kind: NodeKind
    lines: tuple[str, ...]  # the label, one or two lines
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    colour: int = -1  # which colour of the palette; -1: none
    shared: bool = False  # an indicator of several groups
    parent: str = ""  # the group a latent is drawn inside of
    note: str = ""  # such as R2, drawn beside an observed variable and inside a latent
    hint: str = ""  # what a reader who points at it wants to know

    def at(self, x: float, y: float) -> Node:
        """The same node elsewhere."""
        return replace(self, x=x, y=y)


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow, or a line where the direction is open."""

    source: str
    target: str
    kind: EdgeKind
    directed: bool
    label: str
    strength: float  # from 0 to 1: the absolute standardised coefficient
    negative: bool = False
    colour: int = -1
    hint: str = ""
    bend: float = 0.0
    at: float = 0.5  # where the label stands, from source 0 to target 1


@dataclass(frozen=True, slots=True)
class Picture:
    """Nodes and edges of one view, and the size of the sheet."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float

    def node(self, name: str) -> Node:
        """The node with that id."""
        return next(node for node in self.nodes if node.id == name)


# Text -------------------------------------------------------------------------------------------------------


def text_width(text: str, size: float = FONT) -> float:
    """About how wide a text is in a sans-serif face; no font is asked, so that layouts repeat everywhere.

    >>> text_width("mmm") > text_width("iii")
    True
    """
    return size * sum(_advance(c) for c in text)


def _advance(c: str) -> float:
    if c in "iljtfrI.,:;'|! ()":
        return 0.38
    if c in "mwMW@%":
        return 0.95
    return 0.70 if c.isupper() else 0.63


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A long name without its middle: the beginning and the number at the end say most.

    >>> shortened("how_often_do_you_feel_tired_item12", 16)
    'how_often…item12'
    """
    if len(text) <= longest:
        return text
    end = min(longest // 2 - 1, 6)
    return f"{text[: longest - end - 1]}…{text[-end:]}"


def wrapped(text: str, wide: int = 12) -> tuple[str, ...]:
    """A label on one line, or on two cut at the mark nearest to the middle.

    >>> wrapped("speed"), wrapped("emotional_exhaustion")
    (('speed',), ('emotional_', 'exhaustion'))
    """
    cuts = [i + 1 for i, c in enumerate(text[:-1]) if c in "_ -."]
    if len(text) <= wide or not cuts:
        return (shortened(text, wide + 3),)
    cut = min(cuts, key=lambda i: abs(i - len(text) / 2))
    return shortened(text[:cut].rstrip(), wide + 3), shortened(text[cut:], wide + 3)


def coefficient(value: float) -> str:
    """A standardised coefficient as the field prints it.

    >>> coefficient(0.684), coefficient(-0.29), coefficient(1.02), coefficient(0.001)
    ('.68', '−.29', '1.02', '.00')
    """
    if math.isnan(value):
        return ""
    digits = f"{abs(value):.2f}"
    return ("−" if value < 0 and float(digits) else "") + digits.removeprefix("0")


# Geometry ---------------------------------------------------------------------------------------------------


def border(node: Node, toward: Point) -> Point:
    """Where the line from the centre of a node to a point leaves it."""
    dx, dy = toward[0] - node.x, toward[1] - node.y
    a, b = node.width / 2, node.height / 2
    if not dx and not dy:
        return node.x, node.y
    if node.kind == "latent":
        scale = 1.0 / math.hypot(dx / a, dy / b)
    else:
        scale = min(a / abs(dx) if dx else math.inf, b / abs(dy) if dy else math.inf)
    return node.x + dx * scale, node.y + dy * scale


def curve(source: Node, target: Node, edge: Edge) -> tuple[Point, Point, Point]:
    """Beginning, control point and end of an edge."""
    # A fan of loadings is easiest to follow when all its arrows end in the middle of the near side of their boxes.
    end = (target.x, target.y)
    if edge.kind == "loading" and target.kind == "observed":
        end = target.x + math.copysign(target.width / 2, source.x - target.x), target.y
    dx, dy = end[0] - source.x, end[1] - source.y
    control = source.x + dx / 2 - dy * edge.bend, source.y + dy / 2 + dx * edge.bend
    start = border(source, control)
    if end == (target.x, target.y):
        end = border(target, control)
    return start, control, end


def on_curve(points: tuple[Point, Point, Point], t: float) -> Point:
    """The point of a quadratic curve at ``t`` from 0 to 1."""
    (x0, y0), (x1, y1), (x2, y2) = points
    a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t**2
    return a * x0 + b * x1 + c * x2, a * y0 + b * y1 + c * y2


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an arrow: where its line ends, and its three corners, the tip first."""

    foot: Point
    corners: tuple[Point, Point, Point]


def arrow_head(points: tuple[Point, Point, Point], width: float) -> Head:
    """The head of an arrow with a line of that width."""
    (cx, cy), (x, y) = points[1], points[2]
    far = math.hypot(x - cx, y - cy) or 1.0
    dx, dy = (x - cx) / far, (y - cy) / far
    length, half = 6.0 + 1.2 * width, 2.2 + 0.9 * width
    bx, by = x - length * dx, y - length * dy
    foot = x - 0.8 * length * dx, y - 0.8 * length * dy
    return Head(foot, ((x, y), (bx - half * dy, by + half * dx), (bx + half * dy, by - half * dx)))
