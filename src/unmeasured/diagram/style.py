"""Colours, line widths and dashes: one style for screens that colour-blind readers can use too, one for print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unmeasured.diagram.picture import Edge, Node

Style = Literal["colour", "print"]
Look = Literal["colour", "print", "dark"]  # the page has one more, for dark screens

# Paul Tol's "muted" scheme (2021), nine colours that all common kinds of colour vision tell apart, and three more that
# are as far from these and from each other: at least 15 units of CIELAB for every kind. A thirteenth group begins anew.
PALETTE = (
    "#332288", "#CC6677", "#117733", "#DDCC77", "#88CCEE", "#AA4499", "#44AA99", "#999933", "#882255",
    "#8E78FF", "#5B2C00", "#8007ED",
)  # fmt: skip
_CONTRAST = 3.0
_INK, _NEGATIVE, _SHARED = "#222222", "#B23A00", "#ECECEC"
_SOFT, _SOFT_DARK = "#555555", "#B4B8C0"
_DARK, _LIGHT, _DARK_NEGATIVE, _DARK_SHARED = "#16181D", "#E4E4E4", "#FF9A66", "#33363D"


@dataclass(frozen=True, slots=True)
class Paint:
    """How a node or an edge looks."""

    stroke: str
    fill: str = "none"
    width: float = 1.0
    dashed: bool = False
    dotted: bool = False


def node_paint(node: Node, style: Look) -> Paint:
    """A latent is tinted with the colour of its group, an indicator of several is grey; print has grey only."""
    if style == "dark":
        return _dark_node(node)
    colour = PALETTE[node.colour % len(PALETTE)] if node.colour >= 0 and style == "colour" else _INK
    stroke = _seen(_mixed(colour, "#000000", 0.2))
    if node.kind == "group":
        return Paint(stroke, _mixed(colour, "#FFFFFF", 0.9), 1.0, dashed=True)
    if node.kind == "observed":
        return Paint(stroke, _SHARED if node.shared else "#FFFFFF", 1.0)
    fill = _mixed(colour, "#FFFFFF", 0.75) if style == "colour" else "#FFFFFF"
    return Paint(stroke, fill, 1.4)


def _dark_node(node: Node) -> Paint:
    colour = PALETTE[node.colour % len(PALETTE)] if node.colour >= 0 else _LIGHT
    stroke = _mixed(colour, "#FFFFFF", 0.45)
    if node.kind == "group":
        return Paint(stroke, _mixed(colour, _DARK, 0.88), 1.0, dashed=True)
    if node.kind == "observed":
        return Paint(stroke, _DARK_SHARED if node.shared else _DARK, 1.0)
    return Paint(stroke, _mixed(colour, _DARK, 0.65), 1.4)


def edge_paint(edge: Edge, style: Look) -> Paint:
    """Width says how strong, dashes that it is negative; loadings have the colour of their group, pairs are dotted."""
    if edge.kind == "pair":
        return Paint(_SOFT_DARK if style == "dark" else _SOFT, width=1.1, dotted=True)
    width = 0.7 + 2.4 * min(edge.strength, 1.0)
    if style == "print":
        return Paint(_INK if edge.kind == "path" else "#555555", width=width, dashed=edge.negative)
    dark = style == "dark"
    if edge.kind == "path" or edge.colour < 0:
        ink, negative = (_LIGHT, _DARK_NEGATIVE) if dark else (_INK, _NEGATIVE)
        return Paint(negative if edge.negative else ink, width=width, dashed=edge.negative)
    colour = PALETTE[edge.colour % len(PALETTE)]
    if dark:
        return Paint(_mixed(colour, "#FFFFFF", 0.4), width=width, dashed=edge.negative)
    # Weak loadings step back: there may be many of them.
    colour = _mixed(colour, "#000000", 0.15)
    stroke = _seen(_mixed(colour, "#FFFFFF", 0.35 * (1.0 - edge.strength)))
    return Paint(stroke, width=width, dashed=edge.negative)


def _seen(colour: str) -> str:
    """A colour, darkened as far as lines on white need it: a contrast of 3 to 1 (WCAG 2.2, 1.4.11).

    >>> _seen("#117733"), _seen("#DDCC77")
    ('#117733', '#A19557')
    """
    return next(dark for part in range(100) if _contrast(dark := _mixed(colour, "#000000", part / 100)) >= _CONTRAST)


def _contrast(colour: str) -> float:
    """With white, by the relative luminance of WCAG."""
    parts = [channel / 255 for channel in _channels(colour)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 1.05 / (sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear)) + 0.05)


def _mixed(colour: str, other: str, part: float) -> str:
    """A colour with that part of another.

    >>> _mixed("#000000", "#FFFFFF", 0.5)
    '#808080'
    """
    pairs = zip(_channels(colour), _channels(other))
    return "#" + "".join(f"{round(a * (1 - part) + b * part):02X}" for a, b in pairs)


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
