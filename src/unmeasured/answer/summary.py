"""The answer as text for a terminal and as HTML for a notebook; both from the same tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

import pandas as pd

from unmeasured.answer.words import (
    cautions,
    direction_in_words,
    indices_in_words,
    node,
    number,
    probability,
    what_is_identified,
)

if TYPE_CHECKING:
    from unmeasured.answer.result import Result

_WIDTH = 88


def text_summary(result: Result) -> str:
    """The whole answer as text."""
    return "\n".join(
        [
            title(result),
            "=" * _WIDTH,
            *wrap(_sizes(result), _WIDTH),
            *_section("Fit of the model", _fit_lines(result)),
            *_section("What measures what: standardised loadings (standard errors)", _measurement_lines(result)),
            *_section("Paths between latents", _path_lines(result)),
            *_section("What the data tell, and what not", _bullets(what_is_identified(result))),
            *_section("Remarks", _bullets(cautions(result))),
        ]
    )


def title(result: Result) -> str:
    """What was found, in one line."""
    graph = result.graph
    found = f"{len(graph.latents)} latent variable{'s' * (len(graph.latents) != 1)}"
    found += f" in {len(graph.groups)} groups" if len(graph.groups) != len(graph.latents) else ""
    return f"{result.method or 'Result'}: {found} behind {len(graph.observed)} observed variables"


def _sizes(result: Result) -> str:
    fit = result.sem
    n = "a population covariance" if math.isinf(fit.sample.n) else f"N = {fit.sample.n:g}"
    return f"{n}; {fit.dimension.explain()}"


def _section(heading: str, lines: Iterable[str]) -> list[str]:
    lines = list(lines)
    return ["", heading, "-" * _WIDTH, *lines] if lines else []


def _bullets(sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        yield from wrap(sentence, _WIDTH, initial_indent="- ", subsequent_indent="  ")


def _columns(rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """Rows of cells as lines; ``align`` has ``<`` or ``>`` for each column."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(align))]
    lines = ["  ".join(f"{c:{a}{w}}" for c, a, w in zip(row, align, widths, strict=True)) for row in rows]
    return [line.rstrip() for line in lines]


def _fit_lines(result: Result) -> list[str]:
    return _columns(indices_in_words(result.sem), "<<<")


# What measures what -----------------------------------------------------------------------------------------


def _measurement_lines(result: Result) -> Iterator[str]:
    for k, group in enumerate(result.graph.groups):
        if k:
            yield ""
        yield from wrap(_heading(result, group), _WIDTH, subsequent_indent="    ")
        yield from _columns(list(_loading_rows(result, group)), "<" + ">" * (2 * len(group)) + ">" + "<")
    alone = [x for x in result.graph.observed if not any(x in items for items in result.indicators.values())]
    if alone:
        yield from [""] if result.graph.groups else []
        yield from wrap(f"Measures nothing: {', '.join(alone)}", _WIDTH, subsequent_indent="    ")


def _heading(result: Result, group: tuple[str, ...]) -> str:
    hint = [result.suggested_names[name] for name in group if name not in result.named]
    proposed = f" (suggested name: {', '.join(hint)})" if hint else ""
    # The R2 of a latent in a group of several depends on the rotation, so it says nothing.
    explained = f"; R2 {result.r2[group[0]]:.2f}" if len(group) == 1 and group[0] in result.r2 else ""
    return node(group) + proposed + explained


def _loading_rows(result: Result, group: tuple[str, ...]) -> Iterator[list[str]]:
    table = {(row["latent"], row["indicator"]): row for row in result.loadings.to_dict(orient="records")}
    yield ["    ", *(cell for name in group for cell in (name, "")), "R2", ""]
    for x in result.indicators[group]:
        cells = [f"    {x}"]
        for name in group:
            row = table[name, x]
            cells += ["0", "(set)"] if row["fixed"] else [number(row["std"]), _bracketed(row["std_se"])]
        others = [node(other) for other, items in result.indicators.items() if x in items and other != group]
        yield [*cells, number(result.r2[x], 2), f"also measures {', '.join(others)}" if others else ""]


def _bracketed(value: float) -> str:
    return "" if math.isnan(value) else f"({value:.3f})"


# Paths ------------------------------------------------------------------------------------------------------


def _path_lines(result: Result) -> list[str]:
    paths = result.latent_paths
    if not len(paths):
        return ["none"] if len(result.graph.groups) > 1 else []
    rows = [["path", "estimate", "s.e.", "z", "p", "standardised", "", "direction"]]
    for row in paths.to_dict(orient="records"):
        arrow = "→" if row["directed"] else "–"
        told = direction_in_words(result, row["source"], row["target"])
        plain = [number(row["est"]), number(row["se"]), number(row["z"], 2), probability(row["pvalue"])]
        standardised = [number(row["std"]), _bracketed(row["std_se"])]
        rows.append([f"{row['source']} {arrow} {row['target']}", *plain, *standardised, told])
    return _columns(rows, "<>>>>>><")


# HTML -------------------------------------------------------------------------------------------------------


def html_summary(result: Result) -> str:
    """The whole answer as HTML: tables with the same figures and sentences as the text."""
    fit = pd.DataFrame(indices_in_words(result.sem), columns=["index", "value", "in words"])
    loadings = result.loadings[["latent", "indicator", "std", "std_se", "est", "se", "fixed"]]
    loadings = loadings.assign(R2=[result.r2[x] for x in loadings["indicator"]])
    paths = result.latent_paths[["source", "target", "std", "std_se", "est", "se", "pvalue", "directed"]]
    sections = [
        ("Fit of the model", _html_table(fit)),
        ("What measures what", _html_table(loadings)),
        ("Paths between latents", _html_table(paths)),
        ("What the data tell, and what not", _html_list(what_is_identified(result))),
        ("Remarks", _html_list(cautions(result))),
    ]
    body = "".join(f"<h4>{escape(heading)}</h4>{content}" for heading, content in sections if content)
    return f"<div><h3>{escape(title(result))}</h3>{body}</div>"


def _html_table(frame: pd.DataFrame) -> str:
    return frame.to_html(index=False, border=0, na_rep="", float_format="{:.3f}".format) if len(frame) else ""


def _html_list(sentences: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""
