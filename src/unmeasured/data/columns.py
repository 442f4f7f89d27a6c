"""Columns that are not what an analysis wants: constant, identical, numbering the rows, weights, codes for missing "
"answers.

What makes the analysis impossible is refused; what only looks wrong is pointed out in a sentence and left alone,
because a guess about somebody's data that is right nine times in ten is wrong once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.data.rows import Rows
from unmeasured.data.sums import sum_remarks
from unmeasured.data.suspect_columns import role_remarks, suspects
from unmeasured.errors import DataError, listing
from unmeasured.remarks import data_problem

# Values that stand for "no answer" in questionnaires and statistical packages.
_CODES = frozenset(
    map(float, (-9999, -999, -99, -98, -97, -96, -88, -77, -66, -9, -8, -7, -6, -5, -4, -3, -2, -1, 0, 7, 8, 9, 66, 77))
) | frozenset(map(float, (88, 96, 97, 98, 99, 666, 777, 888, 996, 997, 998, 999, 7777, 8888, 9997, 9998, 9999, 99999)))
# Of each column its values and how often each is there; None where that is not known.
Margins = Sequence[tuple[Floats, Ints] | None]
# A code next to the scale (0 before 1, ..., 5) is suspect only while it is this rare.
_RARE = 0.02


def refuse_useless(rows: Rows) -> None:
    """Refuse columns that are empty, constant or identical to another, by name."""
    names, values = rows.names, rows.values
    # fmin and fmax leave missing values out, and are themselves missing where there is no value.
    least, most = (end.reduce(values, axis=0, initial=np.nan) for end in (np.fmin, np.fmax))
    refuse_constant(names, least, most)
    seen: dict[bytes, str] = {}
    for name, column in zip(names, values.T):
        twin = seen.setdefault((column + 0.0).tobytes(), name)  # + 0.0: minus zero is zero
        if twin != name:
            refuse_identical(twin, name)


def refuse_identical(twin: str, name: str) -> NoReturn:
    """Refuse two columns that hold the same."""
    raise DataError(
        f"Columns {twin!r} and {name!r} are identical: perfectly correlated, so the covariance is singular. "
        "Leave one of them out.",
        [name],
    )


def refuse_constant(names: Sequence[str], least: Floats, most: Floats) -> None:
    """Refuse columns without a value (no smallest one either), or with a single one."""
    empty = [x for x, low in zip(names, least) if np.isnan(low)]
    if empty:
        raise DataError(f"Columns {listing(empty)} hold no value at all. Leave them out.", empty)
    size = np.maximum(np.abs(least), np.abs(most))
    # Relative to the size of the numbers, so that a constant 0.1 is not saved by rounding.
    constant = [x for x, a, b, m in zip(names, least, most, size) if b / 2 - a / 2 <= 5e-13 * max(m, 1e-300)]
    if constant:
        raise DataError(f"Constant variables carry no information: {listing(constant)}. Leave them out.", constant)


def suspicions(rows: Rows, named: Sequence[str] = (), margins: Margins | None = None) -> tuple[str, ...]:
    """Sentences about columns that look like something else than a measured variable; ``named``: no indicators.

    ``margins`` has values and counts of the columns, where these rows are some of many.
    """
    margins = margins or [None] * len(rows.names)
    asked = [i for i, name in enumerate(rows.names) if name not in named]
    others = role_remarks(suspects([rows.names[i] for i in asked], rows.values[:, asked]))
    return (*others, *sum_remarks(rows.names, rows.values), *map(data_problem, _code_remarks(rows, margins)))


def _code_remarks(rows: Rows, margins: Margins) -> Iterator[str]:
    """One sentence per code, with the columns it is found in."""
    found: dict[float, list[tuple[str, int]]] = {}
    for name, column, margin in zip(rows.names, rows.values.T, margins, strict=True):
        values, counts = _counted(column[~np.isnan(column)]) if margin is None else margin
        for code in _suspected(values, counts):
            found.setdefault(code, []).append((name, int(counts[values == code][0])))
    for code, where in sorted(found.items()):
        total = sum(count for _, count in where)
        times = "once" if total == 1 else f"{total} times"
        yield (
            f"The value {code:g} looks like a code for a missing answer: it lies outside the other values of "
            f"{listing([name for name, _ in where])} ({times}). If it is one, replace it by NaN first."
        )


def suspected_codes(column: Floats) -> list[float]:
    """Values of a column that may be codes for missing answers.

    An extreme value that is one of the usual codes (0, -1, 9, 99, 999, ...) is suspect if it lies further from the
    others than they spread, or, among whole numbers of a scale of at most 20 steps, if a step is left out before it,
    or if it is 0 or -1 right below the scale and rarer than one in fifty.

    >>> suspected_codes(np.array([1, 2, 3, 4, 5, 9, 2, 3.0]))
    [9.0]
    >>> suspected_codes(np.array([0.0, 1, 2, 3, 4, 5]))
    []
    """
    return _suspected(*_counted(column))


def _counted(column: Floats) -> tuple[Floats, Ints]:
    """Different values and how often each is there; both ends are enough where neither can be a code."""
    ends = np.array([column.min(), column.max()])
    if float(ends[0]) not in _CODES and float(ends[1]) not in _CODES:
        return ends, np.ones(2, dtype=np.int64)
    values, counts = np.unique(column, return_counts=True)
    return values, counts


def _suspected(values: Floats, counts: Ints) -> list[float]:
    if float(values[0]) not in _CODES and float(values[-1]) not in _CODES:
        return []
    rare = {code for code in (0.0, -1.0) if counts[values == code].sum() <= _RARE * counts.sum()}
    found: list[float] = []
    # Codes at one end may hide those at the other, so each end has two turns; a mirror makes the top a bottom.
    for mirror in (1.0, -1.0) * 2:
        rest = np.sort(mirror * values)
        n = next((n for n in _ends(mirror * rest) if _is_suspect(rest[n:], rest[n - 1], mirror > 0, rare)), 0)
        found += (mirror * rest[:n]).tolist()
        values = mirror * rest[n:]
    return sorted(found)


def _ends(values: Floats) -> range:
    """How many values from the front may be codes together (-9 and -8): the longest such end first."""
    n = 0
    while n < len(values) - 2 and values[n] in _CODES:
        n += 1
    return range(n, 0, -1)


def _is_suspect(rest: Floats, code: float, below: bool, rare: set[float]) -> bool:
    """Whether a code stands apart from the values that follow it."""
    gap, spread = rest[0] - code, rest[-1] - rest[0]
    if gap > spread and (abs(code) > 1 or len(rest) > 3):
        return True
    if len(rest) < 3 or len(rest) > 20 or (rest != np.round(rest)).any():
        return False
    # A category that nobody chose leaves a gap as well: that before a code is wider.
    steps = np.diff(rest)
    if (steps != 1).any():
        return bool(gap > steps.max() + 1)
    return bool(gap >= 2) or bool(below and code in rare and code in (0, -1) and rest[0] in (0, 1))
