"""The answer as text for a terminal and as HTML for a notebook; both from the same rows of cells."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

from unmeasured import apa
from unmeasured.results.interpretation import (
    DOUBTFUL,
    PAIRS_HEADING,
    before_the_search,
    cautions,
    direction_in_words,
    fit_in_words,
    html_list,
    levels_in_words,
    node,
    number,
    paths_beyond_one,
    paths_heading,
    verdict,
    what_is_identified,
)

if TYPE_CHECKING:
    from unmeasured.results.result import Result

_WIDTH = 88
_GLUE = "\N{NO-BREAK SPACE}"


def text_summary(result: Result) -> str:
    """The whole answer as text."""
    return "\n".join(
        [
            *wrap(result.stopped, _WIDTH),
            *wrap(verdict(result), _WIDTH),
            title(result),
            "=" * _WIDTH,
            *wrap(_sizes(result), _WIDTH),
            *_section("Levels to read", levels_in_words(result)),
            *_section("Fit of the model", _fit_lines(result)),
            *_section("What measures what: standardised loadings (standard errors)", _measurement_lines(result)),
            *_section(paths_heading(result), _path_lines(result)),
            *_section("Direct effects of covariates on indicators", _direct_lines(result)),
            *_section(PAIRS_HEADING, _pair_lines(result)),
            *_section("What is identified, and what is not", _bullets(what_is_identified(result))),
            *_section("Suitability of the data", _bullets(before_the_search(result))),
            *_section("Remarks", _bullets(cautions(result))),
        ]
    )


def title(result: Result) -> str:
    """What was found, in one line."""
    graph = result.graph
    n_above = sum(level > 0 for level in graph.levels.values())
    n_latents, n_groups = len(graph.latents) - n_above, len(graph.latent_groups) - n_above
    found = f"{n_latents} latent variable{'s' * (n_latents != 1)}"
    found += f" in {n_groups} groups" if n_groups != n_latents else ""
    found += f", and {n_above} above them," if n_above else ""
    variables = graph.variables
    others = [
        f"{len(names)} {what}{'s' * (len(names) != 1)}"
        for what, names in (("covariate", variables.covariates), ("outcome", variables.outcomes))
        if names
    ]
    behind = f"{len(variables.indicators)} {'indicators' if others else 'observed variables'}"
    return f"{result.method or 'Result'}: {found} behind {behind}{', with ' * bool(others)}{' and '.join(others)}"


def _sizes(result: Result) -> str:
    fit = result.sem
    if math.isinf(fit.sample.n):
        return f"a population covariance; {fit.dimension.explain()}"
    n = f"N = {fit.n_samples:.1f}".removesuffix(".0")
    if fit.full is not None:
        n += f" (the search counted incomplete rows as {fit.sample.n:.1f})"
    return f"{n}; {fit.dimension.explain()}"


def _section(heading: str, lines: Iterable[str]) -> list[str]:
    lines = list(lines)
    return ["", heading, "-" * _WIDTH, *lines] if lines else []


def _bullets(sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        lines = wrap(_glued(sentence), _WIDTH, initial_indent="- ", subsequent_indent="  ")
        yield from (line.replace(_GLUE, " ") for line in lines)


def _glued(sentence: str) -> str:
    """The sentence with edges and groups that no end of a line tears apart."""
    return re.sub(r" [–→] |(?<=,) (?=[^{}]*\})", lambda match: match[0].replace(" ", _GLUE), sentence)


def _columns(rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """Rows of cells as lines; ``align`` has ``<`` or ``>`` for each column."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(align))]
    lines = ["  ".join(f"{c:{a}{w}}" for c, a, w in zip(row, align, widths, strict=True)) for row in rows]
    return [line.rstrip() for line in lines]


def _fit_lines(result: Result) -> list[str]:
    return _columns(fit_in_words(result), "<<<")


# What measures what -----------------------------------------------------------------------------------------


def _measurement_lines(result: Result) -> Iterator[str]:
    for k, group in enumerate(result.graph.latent_groups):
        if k:
            yield ""
        yield from wrap(_heading(result, group), _WIDTH, subsequent_indent="    ")
        rows = [[f"    {first}", *rest] for first, *rest in _loading_rows(result, group)]
        yield from _columns(rows, _loading_align(group))
    alone = _alone(result)
    if alone:
        yield from [""] if result.graph.latent_groups else []
        yield from wrap(alone, _WIDTH, subsequent_indent="    ")


def _loading_align(group: tuple[str, ...]) -> str:
    return "<" + ">" * (2 * len(group)) + ">" + "<"


def _alone(result: Result) -> str:
    """The variables that measure no latent; nothing where there are none."""
    alone = [
        x for x in result.graph.variables.indicators if not any(x in items for items in result.indicators.values())
    ]
    return f"{', '.join(alone)} {'load' if len(alone) > 1 else 'loads'} on no latent" if alone else ""


def _heading(result: Result, group: tuple[str, ...]) -> str:
    hint = [result.suggested_names[name] for name in group if name not in result.named_latents]
    proposed = f" (suggested name: {', '.join(hint)})" if hint else ""
    # The R2 of a latent in a group of several depends on the rotation, so it says nothing.
    explained = f"; R2 {result.r2[group[0]]:.2f}" if len(group) == 1 and group[0] in result.r2 else ""
    return node(group) + proposed + explained


def _loading_rows(result: Result, group: tuple[str, ...]) -> Iterator[list[str]]:
    table = {(row["latent"], row["indicator"]): row for row in result.loadings.to_dict(orient="records")}
    yield ["", *(cell for name in group for cell in (name, "")), "R2", ""]
    for x in result.indicators[group]:
        cells = [x]
        for name in group:
            row = table[name, x]
            cells += ["0", "(set)"] if row["fixed"] else [number(row["std"]), _bracketed(row["std_se"])]
        others = [node(other) for other, items in result.indicators.items() if x in items and other != group]
        yield [*cells, number(result.r2[x], 2), f"also measures {', '.join(others)}" if others else ""]


def _bracketed(value: float) -> str:
    return "" if math.isnan(value) else f"({value:.3f})"


# Paths ------------------------------------------------------------------------------------------------------


def _path_lines(result: Result) -> list[str]:
    rows = _path_rows(result)
    if len(rows) == 1:
        return ["none"] if len(result.graph.latent_groups) > 1 else []
    return _columns(rows, _PATH_ALIGN)


_PATH_ALIGN = "<>>>>>><"


def _path_rows(result: Result) -> list[list[str]]:
    """A row of headings, and one for each path."""
    rows = [["path", "estimate", "s.e.", "z", "p", "standardised", "", "direction"]]
    steep = paths_beyond_one(result)
    for row in result.latent_paths.to_dict(orient="records"):
        arrow = "→" if row["directed"] else "–"
        told = direction_in_words(result, row["source"], row["target"])
        plain = [number(row["est"]), number(row["se"]), number(row["z"], 2), apa.p_value(row["pvalue"])]
        standardised = [number(row["std"]), _bracketed(row["std_se"])]
        told += f"; {DOUBTFUL}" if (row["source"], row["target"]) in steep else ""
        rows.append([f"{row['source']} {arrow} {row['target']}", *plain, *standardised, told])
    return rows


_DIRECT_ALIGN = "<>>>>>>"


def _direct_lines(result: Result) -> list[str]:
    rows = _direct_rows(result)
    return _columns(rows, _DIRECT_ALIGN) if len(rows) > 1 else []


def _direct_rows(result: Result) -> list[list[str]]:
    """A row of headings, and one for each direct effect of a covariate on an indicator."""
    rows = [["effect", "estimate", "s.e.", "z", "p", "standardised", ""]]
    for row in result.direct_effects.to_dict(orient="records"):
        plain = [number(row["est"]), number(row["se"]), number(row["z"], 2), apa.p_value(row["pvalue"])]
        rows.append([f"{row['covariate']} → {row['item']}", *plain, number(row["std"]), _bracketed(row["std_se"])])
    return rows


_PAIR_ALIGN = "<>>>"


def _pair_lines(result: Result) -> list[str]:
    rows = _pair_rows(result)
    return _columns(rows, _PAIR_ALIGN) if len(rows) > 1 else []


def _pair_rows(result: Result) -> list[list[str]]:
    """A row of headings, and one for each pair of items."""
    rows = [["pair", "residual correlation", "", "p"]]
    for row in result.local_dependence.to_dict(orient="records"):
        figures = [number(row["std"]), _bracketed(row["std_se"]), apa.p_value(row["pvalue"])]
        rows.append([f"{row['item_1']} ~~ {row['item_2']}", *figures])
    return rows


# HTML -------------------------------------------------------------------------------------------------------


def html_summary(result: Result) -> str:
    """The whole answer as HTML: the figures and sentences of the text, in tables."""
    fit = [["index", "value", "in words"], *(list(row) for row in fit_in_words(result))]
    sections = [
        ("Levels to read", html_list(levels_in_words(result))),
        ("Fit of the model", _html_table(fit, "<<<")),
        ("What measures what: standardised loadings (standard errors)", _html_measurement(result)),
        (paths_heading(result), _html_table(_path_rows(result), _PATH_ALIGN)),
        ("Direct effects of covariates on indicators", _html_table(_direct_rows(result), _DIRECT_ALIGN)),
        (PAIRS_HEADING, _html_table(_pair_rows(result), _PAIR_ALIGN)),
        ("What is identified, and what is not", html_list(what_is_identified(result))),
        ("Suitability of the data", html_list(before_the_search(result))),
        ("Remarks", html_list(cautions(result))),
    ]
    body = "".join(f"<h4>{escape(heading)}</h4>{content}" for heading, content in sections if content)
    first = [line for line in (result.stopped, verdict(result)) if line]
    stopped = "".join(f"<p><strong>{escape(line)}</strong></p>" for line in first)
    return f"<div>{stopped}<h3>{escape(title(result))}</h3><p>{escape(_sizes(result))}</p>{body}</div>"


def _html_measurement(result: Result) -> str:
    parts = [
        f"<p><strong>{escape(_heading(result, group))}</strong></p>"
        + _html_table(list(_loading_rows(result, group)), _loading_align(group))
        for group in result.graph.latent_groups
    ]
    alone = _alone(result)
    return "".join(parts) + (f"<p>{escape(alone)}</p>" if alone else "")


def _html_table(rows: Sequence[Sequence[str]], align: str) -> str:
    """A table whose first row is its head; nothing where it has no other."""
    if len(rows) < 2:
        return ""
    head, *body = ("".join(_html_cells(row, align, "td" if k else "th")) for k, row in enumerate(rows))
    lines = "".join(f"<tr>{row}</tr>" for row in body)
    return f'<table style="margin-left:0"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>'


def _html_cells(row: Sequence[str], align: str, tag: str) -> Iterator[str]:
    for cell, side in zip(row, align, strict=True):
        # Notebooks have a style of their own for tables, which puts every figure and word to the right.
        style = f"text-align:{'left' if side == '<' else 'right'};padding:1px 8px"
        yield f'<{tag} style="{style}">{escape(cell)}</{tag}>'
