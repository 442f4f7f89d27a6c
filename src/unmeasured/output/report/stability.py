"""The section on stability: edges drawn by frequency, tables, items that travel together, a slider."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from unmeasured.arrays import Floats
from unmeasured.diagram.picture import cut, text_width
from unmeasured.errors import UnmeasuredError
from unmeasured.graphs.outline import group_name
from unmeasured.results.result import Result
from unmeasured.validation.replicates.result import Stability

_CELL, _LABEL = 15, 9.0
_DARK = (51, 34, 136)
# Edges that come back less often are neither drawn nor listed.
_RARE = 0.05

Cell = tuple[str, float | str]


def stability_section(result: Result, stable: Stability) -> Markup:
    """The section as HTML, with its own style and script."""
    if [len(group) for group in result.graph.latent_groups] != [len(group) for group in stable.graph.latent_groups]:
        raise UnmeasuredError("The stability is of another graph than the result. Give that of the same search.")
    edges = stable.tally.edges(result.graph.latent_groups, stable.observed)
    edges = edges[edges["in_graph"] | (edges["frequency"] >= _RARE)]
    groups = stable.latent_groups.assign(group=[group_name(group) for group in result.graph.latent_groups])
    text = _template().render(
        n=len(stable.outlines),
        method=stable.method,
        failures=stable.failures,
        latents=[(count, f"{part:.0%}") for count, part in stable.n_latents.items()],
        edges=[_edge_row(row) for row in edges.to_dict(orient="records")],
        groups=[_group_row(row) for row in groups.to_dict(orient="records")],
        items=[_item_row(row) for row in stable.items.to_dict(orient="records")],
        heat_map=Markup(_heat_map(stable)),
    )
    return Markup(text)


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_part("stability.html"))


def _part(name: str) -> str:
    return files("unmeasured.output.report").joinpath("page", name).read_text("utf-8")


# Tables -----------------------------------------------------------------------------------------------------


def _edge_row(row: dict[Any, Any]) -> dict[str, Any]:
    parts = [
        _percent(row[key]) if row["kind"] == "path" else ("", -1.0) for key in ("forward", "backward", "undirected")
    ]
    words = [row["source"], row["target"], row["kind"], "yes" if row["in_graph"] else "no"]
    return {"frequency": row["frequency"], "cells": [*((w, w) for w in words), _percent(row["frequency"]), *parts]}


def _group_row(row: dict[Any, Any]) -> list[Cell]:
    figures = [_percent(row[key]) for key in ("found", "consistency", "same_size", "item_stability")]
    return [(row["group"], row["group"]), *figures]


def _item_row(row: dict[Any, Any]) -> list[Cell]:
    return [(row["item"], row["item"]), _percent(row["stability"]), _percent(row["exact"])]


def _percent(part: float) -> Cell:
    return f"{part:.0%}", round(float(part), 6)


# Pictures ---------------------------------------------------------------------------------------------------


def _heat_map(stable: Stability) -> str:
    """How often two items share a group, the lower triangle, items in the order of the groups."""
    names = stable.item_order()
    table = stable.coassignment.loc[names, names].to_numpy()
    left = max(text_width(cut(name), _LABEL) for name in names) + 8
    width, height = left + _CELL * len(names) + 20, _CELL * len(names) + left + 4
    cells = []
    for i, name in enumerate(names):
        cells.append(f'<text x="{left - 5:.0f}" y="{i * _CELL + 11}" text-anchor="end">{escape(cut(name))}</text>')
        for j, other in enumerate(names[:i]):
            cells.append(
                f'<rect x="{left + j * _CELL:.0f}" y="{i * _CELL}" width="{_CELL - 1}" height="{_CELL - 1}" '
                f'fill="{_shade(table[i, j])}"><title>{escape(f"{name}, {other}: {table[i, j]:.0%}")}</title></rect>'
            )
        # Names below the columns run downwards, so that they never meet.
        foot = f"translate({left + i * _CELL + 4:.0f},{_CELL * len(names) + 6}) rotate(90)"
        cells.append(f'<text transform="{foot}">{escape(cut(name))}</text>' if i < len(names) - 1 else "")
    said = _together_in_words(stable, names, table)
    return (
        f'<svg class="chart" role="img" aria-label="{escape(said)}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-size="{_LABEL}">{"".join(cells)}</svg>'
    )


def _together_in_words(stable: Stability, names: list[str], table: Floats) -> str:
    """What the heat map shows, for those who do not see it."""
    edges = set(stable.graph.directed_edges)
    of = [{group for group in stable.graph.latent_groups if (group[0], name) in edges} for name in names]
    i, j = np.tril_indices(len(names), -1)
    same = np.array([bool(of[a] & of[b]) for a, b in zip(i, j)], dtype=bool)
    parts = [
        f"{what} share one in {table[i, j][which].mean():.0%} of the replicates on average"
        for what, which in (("items of one group", same), ("items of different groups", ~same))
        if which.any()
    ]
    return f"How often items share a group: {'; '.join(parts)}."


def _shade(part: float) -> str:
    """From nearly white to dark, for 0 to 1.

    >>> _shade(0.0), _shade(1.0)
    ('#f7f7f7', '#332288')
    """
    return "#" + "".join(f"{round(247 + (c - 247) * float(np.clip(part, 0, 1))):02x}" for c in _DARK)
