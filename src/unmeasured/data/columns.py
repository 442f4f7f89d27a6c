"""Columns that are not what an analysis wants: constant, identical, numbering the rows, weights, codes for holes.

What makes the analysis impossible is refused; what only looks wrong is pointed out in a sentence and left alone,
because a guess about somebody's data that is right nine times in ten is wrong once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.data.rows import Rows
from unmeasured.errors import DataError, listing
from unmeasured.remarks import data_problem

_IDENTIFIER = re.compile(
    r"(?i:(^|_|\b)(id|ids|index|idx|rownames?|row|case|caseid|caseno|subject|subj|participant|respondent|nr|serial)"
    r"(_|\b|$))|[a-z](Id|ID|Nr|No)$"  # userId, VpNr
)
# weight, wt2, final_wgt, weight_final; dweight, pspwght and anweight, as surveys have them.
_WEIGHT = re.compile(r"(^|_)(p|f|a|i|s|d|w|an|psp)?(weights?|wgh?ts?|wts?)(_|\d|$)|^w$", re.IGNORECASE)
# Values that stand for "no answer" in questionnaires and statistical packages.
_CODES = frozenset(map(float, (-9999, -999, -99, -98, -9, -8, -7, -2, -1, 0, 8, 9, 88, 98, 99, 998, 999, 9999)))
# A code next to the scale (0 before 1, ..., 5) is suspect only while it is this rare.
_RARE = 0.02


def refuse_useless(rows: Rows) -> None:
    """Refuse columns that are empty, constant or identical to another, by name."""
    names, values = rows.names, rows.values
    empty = [x for x, hole in zip(names, np.asarray(rows.holes.all(axis=0))) if hole]
    if empty:
        raise DataError(f"Columns {listing(empty)} hold no value at all. Drop them.")
    least, most = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    size = np.maximum(np.abs(least), np.abs(most))
    # Relative to the size of the numbers, so that a constant 0.1 is not saved by rounding.
    constant = [x for x, a, b, m in zip(names, least, most, size) if b / 2 - a / 2 <= 5e-13 * max(m, 1e-300)]
    if constant:
        raise DataError(f"Constant variables carry no information: {listing(constant)}. Drop them.")
    seen: dict[bytes, str] = {}
    for name, column in zip(names, values.T):
        twin = seen.setdefault((column + 0.0).tobytes(), name)  # + 0.0: minus zero is zero
        if twin != name:
            raise DataError(
                f"Columns {twin!r} and {name!r} are identical: perfectly correlated, so the covariance is singular. "
                "Drop one of them."
            )


def suspicions(rows: Rows) -> tuple[str, ...]:
    """Sentences about columns that look like something else than a measured variable."""
    columns = [column[~np.isnan(column)] for column in rows.values.T]
    identifiers = [x for x, c in zip(rows.names, columns) if _numbers_rows(x, c)]
    weights = [x for x, c in zip(rows.names, columns) if _WEIGHT.search(x) and (c >= 0).all()]
    remarks = []
    if identifiers:
        remarks.append(
            f"{listing(identifiers)}: every value is a different whole number, as in a column that numbers the rows. "
            "If it does, leave it out."
        )
    if weights:
        remarks.append(
            f"{listing(weights)}: named like sampling weights. If it holds some, leave it out: weights are not used, "
            "and are no variable of the model."
        )
    return tuple(map(data_problem, (*remarks, *_code_remarks(rows, columns))))


def _numbers_rows(name: str, column: Floats) -> bool:
    whole = len(column) > 10 and bool((column == np.round(column)).all())
    if not whole or len(np.unique(column)) < len(column):
        return False
    # Numbers without a gap, in whatever order: rows that were numbered, and perhaps sorted since.
    without_gap = column.max() - column.min() == len(column) - 1
    return bool(without_gap) or bool(_IDENTIFIER.search(name))


def _code_remarks(rows: Rows, columns: list[Floats]) -> Iterator[str]:
    """One sentence per code, with the columns it is found in."""
    found: dict[float, list[tuple[str, int]]] = {}
    for name, column in zip(rows.names, columns):
        for code in suspected_codes(column):
            found.setdefault(code, []).append((name, int((column == code).sum())))
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
    if float(column.min()) not in _CODES and float(column.max()) not in _CODES:
        return []
    values = np.unique(column)
    rare = {code for code in (0.0, -1.0) if (column == code).sum() <= _RARE * len(column)}
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
    if len(rest) < 3 or len(rest) > 20 or not (np.diff(rest) == 1).all() or rest[0] != np.round(rest[0]):
        return False
    return bool(gap >= 2) or bool(below and code in rare and code in (0, -1) and rest[0] in (0, 1))
