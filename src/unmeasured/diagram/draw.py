"""A picture on paper: matplotlib draws it, no other program is needed.

A :class:`Drawing` is a matplotlib figure that belongs to no window. ``savefig`` writes SVG, PDF and PNG by the
ending of the name, and a notebook shows it by itself.
"""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO, StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyBboxPatch, Patch, PathPatch, Polygon, Rectangle
from matplotlib.path import Path

from unmeasured.diagram.picture import (
    FONT,
    LABEL_FONT,
    LINE,
    Edge,
    Flow,
    Key,
    Node,
    Picture,
    arrow_heads,
    bends,
    label_size,
)
from unmeasured.diagram.style import Paint, Style, edge_paint, node_paint
from unmeasured.errors import UnmeasuredError

_POINTS_PER_INCH = 72.0
_FACE = "DejaVu Sans"  # the one font that comes with matplotlib
_DASHES = (0, (4, 2.2))
_DOTS = (0, (1.1, 1.7))


class Drawing(Figure):
    """A figure that shows itself in a notebook and can be written to a file."""

    def _repr_png_(self) -> bytes:
        out = BytesIO()
        self.savefig(out, format="png", dpi=110)
        return out.getvalue()

    def to_svg(self) -> str:
        """The picture as SVG text, letters as letters."""
        out = StringIO()
        # The fixed salt and the missing date make equal pictures equal files.
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "unmeasured"}):
            self.savefig(out, format="svg", metadata={"Date": None})
        return out.getvalue()


def draw(
    picture: Picture,
    *,
    style: Style = "colour",
    width: float | None = None,
) -> Drawing:
    """Draw a picture.

    Parameters
    ----------
    style : "colour" or "print"
        Colours that colour-blind readers tell apart, or black and white.
    width : float, optional
        Of the figure, in inches; letters and lines shrink or grow with it. Left out: letters of 10 points.
    """
    if style not in ("colour", "print"):
        raise UnmeasuredError(f"style must be 'colour' or 'print'; got {style!r}.")
    scale = 1.0 if width is None else width * _POINTS_PER_INCH / picture.width
    size = picture.width * scale / _POINTS_PER_INCH, picture.height * scale / _POINTS_PER_INCH
    figure = Drawing(figsize=size)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, picture.width), ylim=(picture.height, 0.0))
    axes.set_axis_off()
    # Rims of groups below, then lines, then nodes, then figures on the lines.
    for node in sorted(picture.nodes, key=lambda n: n.kind != "group"):
        _draw_node(axes, node, node_paint(node, style), scale)
    for edge in picture.edges:
        _draw_edge(axes, edge, picture.flow, edge_paint(edge, style), scale)
    for key in picture.legend:
        _draw_key(axes, key, style, scale)
    for k, line in enumerate(picture.remark):
        y = picture.remark_y + LABEL_FONT * LINE * k
        _text(axes, 14.0, y, line, LABEL_FONT * scale, ha="left", zorder=4)
    return figure


def _draw_node(axes: Axes, node: Node, paint: Paint, scale: float) -> None:
    look: dict[str, Any] = {
        "facecolor": paint.fill,
        "edgecolor": paint.stroke,
        "linewidth": paint.width * scale,
        "linestyle": _DASHES if paint.dashed else "solid",
        "zorder": 1 if node.kind == "group" else 3,
    }
    axes.add_patch(_shape(node, look))
    if node.kind == "group":
        y = node.y + node.height / 2 - 9.0 - LABEL_FONT * LINE * len(node.notes)
        for k, line in enumerate(node.notes):
            _text(axes, node.x, y + LABEL_FONT * LINE * (k + 0.5), line, LABEL_FONT * scale, ha="center", zorder=4)
        return
    y = node.y - (FONT * LINE * len(node.lines) + LABEL_FONT * LINE * len(node.notes)) / 2
    for lines, size in ((node.lines, FONT), (node.notes, LABEL_FONT)):
        for line in lines:
            _text(axes, node.x, y + size * LINE / 2, line, size * scale, ha="center", zorder=4)
            y += size * LINE


def _shape(node: Node, look: dict[str, Any]) -> Patch:
    corner = node.x - node.width / 2, node.y - node.height / 2
    if node.kind == "latent":
        return Ellipse((node.x, node.y), node.width, node.height, **look)
    if node.kind == "group":
        return FancyBboxPatch(
            corner, node.width, node.height, boxstyle=f"round,pad=0,rounding_size={min(12.0, node.height / 3)}", **look
        )
    return Rectangle(corner, node.width, node.height, **look)


def _draw_edge(axes: Axes, edge: Edge, flow: Flow, paint: Paint, scale: float) -> None:
    heads, route = arrow_heads(edge, flow, paint.width)
    look: dict[str, Any] = {"color": paint.stroke, "zorder": 2}
    pieces = bends(route, flow)
    path = Path(
        [route[0], *(point for piece in pieces for point in piece[1:])],
        [Path.MOVETO, *(Path.CURVE4 for piece in pieces for _ in piece[1:])],
    )
    dashes = _DOTS if paint.dotted else _DASHES if paint.dashed else "solid"
    axes.add_patch(PathPatch(path, fill=False, linewidth=paint.width * scale, linestyle=dashes, **look))
    for head in heads:
        axes.add_patch(Polygon(head.corners, closed=True, linewidth=0.0, **look))
    if edge.label:
        (x, y), (wide, tall) = edge.label_at, label_size(edge.label)
        wide += 2.0
        # A little free space at both ends: a minus sign that touches a dashed line would pass as one of its dashes.
        patch = Rectangle((x - wide / 2, y - tall / 2), wide, tall, facecolor="white", linewidth=0.0, zorder=4)
        axes.add_patch(patch)
        _text(axes, x, y, edge.label, LABEL_FONT * scale, ha="center", zorder=5)


def _draw_key(axes: Axes, key: Key, style: Style, scale: float) -> None:
    """An entry of the legend: a sample of 20 points, and its words."""
    x, y = key.x + 10.0, key.y
    if key.sample in ("latent", "observed", "shared", "group"):
        shape: Any = "observed" if key.sample == "shared" else key.sample
        node = Node(key.text, shape, (), 20.0, 11.0, x, y, shared=key.sample == "shared")
        _draw_node(axes, node, node_paint(node, style), scale)
    else:
        kind: Any = "pair" if key.sample == "pair" else "path"
        strength = 0.9 if key.sample == "strong" else 0.25
        edge = Edge("", "", kind, key.sample == "arrow", "", strength, key.sample == "negative")
        edge = replace(edge, points=((x - 10.0, y), (x + 10.0, y)))
        _draw_edge(axes, edge, "right", edge_paint(edge, style), scale)
    _text(axes, key.x + 26.0, y, key.text, LABEL_FONT * scale, ha="left", zorder=4)


def _text(axes: Axes, x: float, y: float, text: str, size: float, **look: Any) -> None:
    # A name such as "x_$1" is text, not mathematics.
    axes.text(x, y, text, fontsize=size, va="center_baseline", family=_FACE, parse_math=False, **look)
