"""What is done to a table before it is analysed: columns chosen, codes taken for missing answers, items reversed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np
import pandas as pd

from unmeasured.data.tables import Table, tally_of
from unmeasured.errors import DataError, listing, nearest

# Whole numbers of at most so many values are answers on a scale, whose ends the items share.
_LONGEST_SCALE = 20


@dataclass(frozen=True)
class Prepared:
    """A table and what was done to it."""

    frame: pd.DataFrame | Table
    na: tuple[float, ...] = ()
    reversed_items: Mapping[str, float] = field(default_factory=dict)  # what an answer is taken from
    notes: tuple[str, ...] = ()


def chosen_columns(patterns: Iterable[str], known: Sequence[str], what: str = "column") -> list[str]:
    """Columns by name, pattern (``q*``) or range (``O1:N5``), in the order of the table.

    Parameters
    ----------
    patterns
        Each may hold several, with commas between them. A name that has a colon, a star or a comma itself is taken as
        it is.
    known
        The columns there are.

    Raises
    ------
    DataError
        For one that is no column and matches none, or a range whose ends are in the other order.

    Examples
    --------
    >>> chosen_columns(["q*,age"], ["id", "age", "q1", "q2"])
    ['age', 'q1', 'q2']
    >>> chosen_columns(["O1:C2"], ["id", "O1", "O2", "C1", "C2", "E1"])
    ['O1', 'O2', 'C1', 'C2']
    """
    wanted: set[str] = set()
    for given in patterns:
        parts = [given] if given in known else [part.strip() for part in given.split(",")]
        for part in parts:
            wanted.update(_matching(part, known, what))
    return [name for name in known if name in wanted]


def _matching(part: str, known: Sequence[str], what: str) -> list[str]:
    if part in known:
        return [part]
    first, colon, last = (end.strip() for end in part.partition(":"))
    if colon and first in known and last in known:
        i, j = known.index(first), known.index(last)
        if i > j:
            raise DataError(
                f"The range {part!r} runs backwards: {last!r} stands before {first!r}. Write {last}:{first}."
            )
        return list(known[i : j + 1])
    found = [name for name in known if fnmatchcase(name, part)]
    if not found:
        missing = next((end for end in (first, last) if colon and end not in known), part)
        hint = nearest(missing, known) or "."
        raise DataError(f"No {what} is called {missing!r}, nor matches it{hint} The file has {listing(known)}.")
    return found


def prepared(
    frame: pd.DataFrame | Table,
    *,
    columns: Iterable[str] = (),
    exclude: Iterable[str] = (),
    na: Iterable[float] = (),
    reverse: Iterable[str] = (),
    totals: Mapping[str, float] | None = None,
) -> Prepared:
    """The table with columns chosen, codes for missing answers taken out, and items reversed.

    An item is reversed by taking answers from the sum of the ends of the scale: the smallest and the largest answer of
    all columns chosen that hold a few whole numbers, or else its own. ``totals`` has that sum for items that were
    reversed before, in the rows of a model: it is used as it is.

    Examples
    --------
    >>> rows = pd.DataFrame({"id": [1, 2, 3], "q1": [1, 5, 9], "q2": [2, 4, 4]})
    >>> made = prepared(rows, exclude=["id"], na=[9], reverse=["q2"])
    >>> made.frame.to_dict("list")
    {'q1': [1.0, 5.0, nan], 'q2': [4, 2, 2]}
    >>> made.notes[1]
    "Reversed, answers taken from 6: 'q2'."
    """
    known = [str(name) for name in frame.columns]
    kept = chosen_columns(columns, known) if (columns := list(columns)) else known
    left_out = set(chosen_columns(exclude, known, "column to exclude"))
    kept = [name for name in kept if name not in left_out]
    if not kept:
        raise DataError(f"No column is left: all of {listing(known)} are excluded.")
    codes = tuple(float(code) for code in na)
    if isinstance(frame, Table):
        return _prepared_table(replace(frame.select(kept), na=codes), list(reverse), totals or {})
    labels = frame.attrs
    table = frame.set_axis(known, axis=1)[kept].copy()
    notes = []
    if codes:
        count = _take_out(table, codes)
        spelled = _spelled(codes)
        notes.append(f"Taken as missing: {count} answer{'s' * (count != 1)} with the code {spelled}.")
    sums: dict[str, float] = {}
    if reverse := list(reverse):
        items = chosen_columns(reverse, kept, "column that is analysed")
        sums = _sums_of_ends(table, items) | {x: total for x, total in (totals or {}).items() if x in items}
        for name, total in sums.items():
            table[name] = total - table[name] if total != int(total) else int(total) - table[name]
        notes += _reversals(sums)
    table.attrs = dict(labels)
    if keyed := set(labels.get("reverse_keyed") or ()):
        table.attrs["reverse_keyed"] = [name for name in kept if (name in keyed) != (name in sums)]
    return Prepared(table, codes, sums, tuple(notes))


def _prepared_table(table: Table, reverse: Sequence[str], totals: Mapping[str, float]) -> Prepared:
    """A table that is read in blocks: codes are taken out and items reversed while it is read."""
    notes = [f"Taken as missing: answers with the code {_spelled(table.na)}."] if table.na else []
    sums: dict[str, float] = {}
    if reverse:
        items = chosen_columns(reverse, table.columns, "column that is analysed")
        # Which answers there are is known only after a first pass.
        tally = tally_of(table, None, listwise=False)
        scale = [j for j in range(len(tally.names)) if tally.has_whole_values(j)]
        ends = (min(tally.low[scale]), max(tally.high[scale])) if scale else (0.0, 0.0)
        for name in items:
            j = tally.names.index(name)
            low, high = ends if j in scale else (tally.low[j], tally.high[j])
            sums[name] = totals.get(name, float(low + high))
        notes += _reversals(sums)
    return Prepared(replace(table, reversed_items=sums), table.na, sums, tuple(notes))


def _spelled(codes: Iterable[float]) -> str:
    return ", ".join(f"{code:g}" for code in codes)


def _reversals(sums: Mapping[str, float]) -> list[str]:
    return [
        f"Reversed, answers taken from {total:g}: {listing([x for x in sums if sums[x] == total], 20)}."
        for total in sorted(set(sums.values()))
    ]


def _take_out(table: pd.DataFrame, codes: tuple[float, ...]) -> int:
    """Make the codes missing values, in place; how many there were."""
    count = 0
    for name in table.columns:
        column = table[name]
        if pd.api.types.is_numeric_dtype(column.dtype):
            is_code = column.isin(codes)
            if is_code.any():
                count += int(is_code.sum())
                table[name] = column.mask(is_code)
    return count


def _sums_of_ends(table: pd.DataFrame, items: Sequence[str]) -> dict[str, float]:
    wrong = [name for name in items if not pd.api.types.is_numeric_dtype(table[name].dtype)]
    if wrong:
        raise DataError(f"Only columns of numbers can be reversed; {listing(wrong)} hold something else.")
    scale = [name for name in table.columns if _is_scale(table[name])]
    ends = [(float(table[name].min()), float(table[name].max())) for name in scale]
    low, high = (min(a for a, _ in ends), max(b for _, b in ends)) if ends else (0.0, 0.0)
    return {
        name: low + high if name in scale else float(table[name].min()) + float(table[name].max()) for name in items
    }


def _is_scale(column: pd.Series) -> bool:
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return False
    values = np.unique(column.dropna().to_numpy(dtype=float))
    return 1 < len(values) <= _LONGEST_SCALE and bool((values == np.round(values)).all())
