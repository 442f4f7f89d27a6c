"""A model on its way: latents, the items that load on them and paths between them, drawn while a search runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from unmeasured.diagram.columns import Block
from unmeasured.diagram.layout import layout
from unmeasured.diagram.picture import FONT, LABEL_FONT, LINE, Edge, Node, text_width
from unmeasured.output.report.html import view_data

_MOST = 12  # items named in a latent
_MOST_EDGES = 60  # a drawing with more takes longer than the time to the next


def sketch(
    items: Sequence[Sequence[str]], sizes: Sequence[int], edges: Sequence[tuple[int, int, bool]] = ()
) -> dict[str, Any]:
    """A model for the page's script: the items of each group of latents, their numbers, and edges between groups.

    >>> drawn = sketch([["a", "b"], ["c", "d", "e"]], [1, 2], [(0, 1, True)])
    >>> [node["lines"] for node in drawn["model"]["nodes"]]
    [['1'], ['2 (2 latents)']]
    >>> [(edge["source"], edge["target"], edge["directed"]) for edge in drawn["model"]["edges"]]
    [('0', '1', True)]
    """
    blocks, loose = [], []
    for k, (names, size) in enumerate(zip(items, sizes)):
        if len(names) == size == 1:  # a covariate or an outcome
            loose.append(Node(f"{k}", "observed", (names[0],), text_width(names[0]) + 12.0, 20.0, hint=names[0]))
            continue
        shown = [*names[:_MOST], *([f"+{len(names) - _MOST}"] if len(names) > _MOST else [])]
        lines = _lines(shown)
        title = f"{k + 1}" if size == 1 else f"{k + 1} ({size} latents)"
        width = max([text_width(title), *(text_width(line, LABEL_FONT) for line in lines)])
        tall = FONT * LINE + LABEL_FONT * LINE * len(lines)
        node = Node(f"{k}", "latent", (title,), 1.4 * width + 16.0, 1.4 * tall + 12.0, colour=k, notes=tuple(lines))
        blocks.append(Block(replace(node, hint=f"{title}: {', '.join(names)}")))
    called = [names[0] if len(names) == size == 1 else f"{k + 1}" for k, (names, size) in enumerate(zip(items, sizes))]
    paths = [
        Edge(
            f"{a}", f"{b}", "path", is_directed, "", 0.4, hint=f"{called[a]} {'→' if is_directed else '–'} {called[b]}"
        )
        for a, b, is_directed in edges[:_MOST_EDGES]
    ]
    picture = layout(blocks, loose, paths, flow="right")
    return {"model": view_data(picture) | {"least": 0.0, "total": len(paths), "all": None}}


def _lines(names: Sequence[str], wide: int = 20) -> list[str]:
    lines: list[str] = []
    for name in names:
        if lines and len(lines[-1]) + len(name) + 2 <= wide:
            lines[-1] += f", {name}"
        else:
            lines.append(name)
    return [f"{line}," for line in lines[:-1]] + lines[-1:]
