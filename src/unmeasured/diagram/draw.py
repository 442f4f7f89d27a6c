"""A picture on paper: matplotlib draws it, no other program is needed.

A :class:`Drawing` is a matplotlib figure that belongs to no window. ``savefig`` writes SVG, PDF and PNG by the
ending of the name, and a notebook shows it by itself.
"""

from __future__ import annotations

from io import BytesIO, StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyBboxPatch, Patch, PathPatch, Polygon, Rectangle
from matplotlib.path import Path

from unmeasured.diagram.picture import FONT, LABEL_FONT, Edge, Node, Picture, arrow_head, curve, on_curve
from unmeasured.diagram.style import Paint, Style, edge_paint, node_paint
from unmeasured.errors import UnmeasuredError

_POINTS_PER_INCH = 72.0
_FACE = "DejaVu Sans"  # the one font that comes with matplotlib
_DASHES = (0, (4, 2.2))


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


def draw(picture: Picture, *, style: Style = "colour", width: float | None = None) -> Drawing:
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
    at = {node.id: node for node in picture.nodes}
    # Rims of groups below, then lines, then nodes, then figures on the lines.
    for node in sorted(picture.nodes, key=lambda n: n.kind != "group"):
        _draw_node(axes, node, node_paint(node, style), scale)
    for edge in picture.edges:
        _draw_edge(axes, edge, at[edge.source], at[edge.target], edge_paint(edge, style), scale)
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
    lines = [*node.lines, *([node.note] if node.note and node.kind == "latent" else [])]
    for k, line in enumerate(lines):
        y = node.y + 1.2 * FONT * (k - (len(lines) - 1) / 2)
        small = node.note and node.kind == "latent" and k == len(lines) - 1
        _text(axes, node.x, y, line, (LABEL_FONT if small else FONT) * scale, ha="center", zorder=4)
    if node.note and node.kind == "observed":
        # Beside the box, away from the arrows, which come from the middle of the sheet.
        outside = 1.0 if node.x > axes.get_xlim()[1] / 2 else -1.0
        x = node.x + outside * (node.width / 2 + 4.0)
        _text(axes, x, node.y, node.note, LABEL_FONT * scale, ha="left" if outside > 0 else "right", zorder=4)


def _shape(node: Node, look: dict[str, Any]) -> Patch:
    corner = node.x - node.width / 2, node.y - node.height / 2
    if node.kind == "latent":
        return Ellipse((node.x, node.y), node.width, node.height, **look)
    if node.kind == "group":
        return FancyBboxPatch(corner, node.width, node.height, boxstyle="round,pad=0,rounding_size=14", **look)
    return Rectangle(corner, node.width, node.height, **look)


def _draw_edge(axes: Axes, edge: Edge, source: Node, target: Node, paint: Paint, scale: float) -> None:
    points = curve(source, target, edge)
    line = arrow_head(points, paint.width) if edge.directed else None
    look: dict[str, Any] = {"color": paint.stroke, "zorder": 2}
    # The line ends where the head begins: under it, a thick or dashed line would show.
    path = Path([points[0], points[1], line.foot if line else points[2]], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
    dashes = _DASHES if paint.dashed else "solid"
    axes.add_patch(PathPatch(path, fill=False, linewidth=paint.width * scale, linestyle=dashes, **look))
    if line:
        axes.add_patch(Polygon(line.corners, closed=True, linewidth=0.0, **look))
    if edge.label:
        x, y = on_curve(points, edge.at)
        patch = {"facecolor": "white", "edgecolor": "none", "pad": 0.8 * scale, "alpha": 0.92}
        # Thin spaces: a minus sign that touches a dashed line would pass as one of its dashes.
        _text(axes, x, y, f"\u2009{edge.label}\u2009", LABEL_FONT * scale, ha="center", zorder=5, bbox=patch)


def _text(axes: Axes, x: float, y: float, text: str, size: float, **look: Any) -> None:
    # A name such as "x_$1" is text, not mathematics.
    axes.text(x, y, text, fontsize=size, va="center_baseline", family=_FACE, parse_math=False, **look)
