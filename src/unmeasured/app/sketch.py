"""A model on its way: latents with the items that load on them, drawn while a search runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unmeasured.diagram.columns import Block
from unmeasured.diagram.layout import layout
from unmeasured.diagram.picture import FONT, LABEL_FONT, LINE, Node, text_width
from unmeasured.report.html import view_data

_MOST = 12  # items named in a latent


def sketch(items: Sequence[Sequence[str]], sizes: Sequence[int]) -> dict[str, Any]:
    """The groups of a measurement model for the page's script; ``sizes`` are their numbers of latents.

    >>> drawn = sketch([["a", "b"], ["c", "d", "e"]], [1, 2])
    >>> [node["lines"] for node in drawn["model"]["nodes"]]
    [['1'], ['2 (2 latents)']]
    """
    blocks = []
    for k, (names, size) in enumerate(zip(items, sizes)):
        shown = [*names[:_MOST], *([f"+{len(names) - _MOST}"] if len(names) > _MOST else [])]
        lines = _lines(shown)
        title = f"{k + 1}" if size == 1 else f"{k + 1} ({size} latents)"
        width = max([text_width(title), *(text_width(line, LABEL_FONT) for line in lines)])
        tall = FONT * LINE + LABEL_FONT * LINE * len(lines)
        node = Node(f"{k}", "latent", (title,), 1.4 * width + 16.0, 1.4 * tall + 12.0, colour=k, notes=tuple(lines))
        blocks.append(Block(node))
    picture = layout(blocks, [], [], flow="right")
    return {"model": view_data(picture) | {"least": 0.0, "total": 0, "all": None}}


def _lines(names: Sequence[str], wide: int = 20) -> list[str]:
    lines: list[str] = []
    for name in names:
        if lines and len(lines[-1]) + len(name) + 2 <= wide:
            lines[-1] += f", {name}"
        else:
            lines.append(name)
    return lines
