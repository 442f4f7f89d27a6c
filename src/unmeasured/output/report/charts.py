"""Two small charts as SVG text: residual correlations as a heat map, and the score of the search by step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.diagram.picture import coefficient, cut, text_width
from unmeasured.results.result import Result
from unmeasured.search.trace import Step, Trace

_CELL = 15
_LABEL = 9.0
# Residuals up to here are small by any rule; the colours reach at least so far, lest noise looks like news.
_SMALL = 0.1
_PLUS, _MINUS = (178, 58, 0), (0, 90, 160)


def residual_correlations(result: Result) -> Floats:
    """(n, n) observed less implied correlations, in the order of the observed variables of the sample."""
    implied = result.sem.implied_cov
    sd = np.sqrt(np.diag(implied))
    return np.asarray(result.sem.sample.corr - implied / np.outer(sd, sd))


def largest_residuals(result: Result, count: int = 8) -> list[tuple[str, str, float]]:
    """The pairs whose correlation the model misses most."""
    residual, names = residual_correlations(result), result.sem.sample.names
    i, j = np.tril_indices(len(names), -1)
    order = np.argsort(-np.abs(residual[i, j]), kind="stable")[:count]
    return [(names[j[k]], names[i[k]], float(residual[i[k], j[k]])) for k in order]


def heat_map(result: Result) -> str:
    """The lower triangle of the residual correlations, variables in the order of their groups."""
    names = _by_group(result)
    position = {name: k for k, name in enumerate(result.sem.sample.names)}
    residual = residual_correlations(result)[np.ix_([position[x] for x in names], [position[x] for x in names])]
    limit = max(_SMALL, float(np.abs(residual).max(initial=0.0)))
    left = max(text_width(cut(name), _LABEL) for name in names) + 8
    width, height = left + _CELL * len(names) + 60, _CELL * len(names) + left + 4
    cells = []
    for i, name in enumerate(names):
        y = i * _CELL
        cells.append(f'<text x="{left - 5:.0f}" y="{y + 11}" text-anchor="end">{escape(cut(name))}</text>')
        for j, other in enumerate(names[:i]):
            value = residual[i, j]
            hint = escape(f"{name}, {other}: {value:+.3f}")
            cells.append(
                f'<rect x="{left + j * _CELL:.0f}" y="{y}" width="{_CELL - 1}" height="{_CELL - 1}" '
                f'fill="{_diverging(value / limit)}"><title>{hint}</title></rect>'
            )
        # Names below the columns run downwards, so that they never meet.
        x = left + i * _CELL + 4
        foot = _CELL * len(names) + 6
        if i < len(names) - 1:
            cells.append(f'<text transform="translate({x:.0f},{foot}) rotate(90)">{escape(cut(name))}</text>')
    legend, said = _legend(left + _CELL * len(names) + 8, limit), escape(_residuals_in_words(result))
    return (
        f'<svg class="chart" role="img" aria-label="{said}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-size="{_LABEL}">{"".join(cells)}{legend}</svg>'
    )


def _residuals_in_words(result: Result) -> str:
    """What the heat map shows, for those who do not see it."""
    residual = np.abs(residual_correlations(result)[np.tril_indices(len(result.sem.sample.names), -1)])
    pairs = largest_residuals(result, 1)
    if not pairs:
        return "Residual correlations: there is only one variable."
    (a, b, value), beyond = pairs[0], int((residual > _SMALL).sum())
    return (
        f"Residual correlations: {beyond} of {len(residual)} are beyond {coefficient(_SMALL)}; the largest is "
        f"{coefficient(value)}, of {a} and {b}."
    )


def _by_group(result: Result) -> list[str]:
    """Observed variables beside those of their group; each once."""
    grouped = [x for items in result.indicators.values() for x in items if x in result.graph.observed]
    return list(dict.fromkeys([*grouped, *result.graph.observed]))


def _diverging(part: float) -> str:
    """From blue over white to vermilion, for -1 to 1.

    >>> _diverging(0.0), _diverging(1.0)
    ('#ffffff', '#b23a00')
    """
    end = _PLUS if part > 0 else _MINUS
    return "#" + "".join(f"{round(255 + (c - 255) * min(abs(part), 1.0)):02x}" for c in end)


def _legend(x: float, limit: float) -> str:
    parts = []
    for k, part in enumerate((1.0, 0.5, 0.0, -0.5, -1.0)):
        y = 4 + 16 * k
        parts.append(
            f'<rect x="{x:.0f}" y="{y}" width="14" height="14" fill="{_diverging(part)}" stroke="#ccc"/>'
            f'<text x="{x + 18:.0f}" y="{y + 10}">{coefficient(part * limit)}</text>'
        )
    return "".join(parts)


# The search -------------------------------------------------------------------------------------------------


def step_charts(trace: Trace) -> list[tuple[str, str]]:
    """For each phase of several steps its name and a chart: a dot for each step, and where the search stood."""
    phases = list(dict.fromkeys(step.phase for step in trace))
    chosen = ((phase, [step for step in trace if step.phase == phase]) for phase in phases)
    return [(phase, _chart(steps)) for phase, steps in chosen if len(steps) > 1 and _scores(steps)]


def _scores(steps: Sequence[Step]) -> list[float]:
    return [value for step in steps for value in (step.score_before, step.score_after) if math.isfinite(value)]


def _chart(steps: Sequence[Step], width: float = 560.0, height: float = 170.0) -> str:
    left, right, top, bottom = 62.0, width - 10.0, 10.0, height - 26.0
    # Starts far below would flatten everything that is decided above; they are drawn on the lowest line.
    values = _scores(steps)
    high, low = max(values), float(np.quantile(values, 0.2))
    span = (high - low) or abs(high) or 1.0

    def x(k: float) -> float:
        return left + (right - left) * k / max(len(steps), 1)

    def y(value: float) -> float:
        return min(bottom, bottom - (bottom - top) * (value - low) / span)

    line = " ".join(f"{x(k):.1f},{y(value):.1f}" for k, value in _way(steps))
    dots = "".join(
        _dot(x(k), y(step.score_after), "kept" if step.accepted else "refused", f"{k}. {step}")
        for k, step in enumerate(steps, start=1)
        if math.isfinite(step.score_after)
    )
    digits = 1 if span > 1 else 4
    way = [value for _, value in _way(steps)]
    said = f"Score by step: from {way[0]:.{digits}f} to {way[-1]:.{digits}f} in {len(steps)} steps, "
    said += f"{sum(step.accepted for step in steps)} of them accepted."
    marks = "".join(
        f'<text x="{left - 6:.0f}" y="{y(value) + 3:.0f}" text-anchor="end">{value:.{digits}f}</text>'
        f'<line x1="{left:.0f}" x2="{right:.0f}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid"/>'
        for value in (low, low + span / 2, low + span)
    )
    return (
        f'<svg class="chart" role="img" aria-label="{said}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" font-size="10">{marks}<polyline points="{line}" class="way"/>{dots}'
        f'<text x="{(left + right) / 2:.0f}" y="{height - 6:.0f}" text-anchor="middle">'
        f"step 1 to {len(steps)}; larger is better</text></svg>"
    )


def _dot(x: float, y: float, look: str, hint: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="{look}"><title>{escape(hint)}</title></circle>'


def _way(steps: Sequence[Step]) -> Iterator[tuple[int, float]]:
    """Where the search stood: in one go, after each step; with several starts, the best so far."""
    kept = [step for step in steps if step.accepted]
    one_go = all(abs(a.score_after - b.score_before) < 1e-9 for a, b in pairwise(kept))
    best = steps[0].score_before
    yield 0, best
    for k, step in enumerate(steps, start=1):
        if step.accepted and math.isfinite(step.score_after):
            best = step.score_after if one_go else max(best, step.score_after)
        yield k, best
