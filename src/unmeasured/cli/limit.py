"""Sentences of the command line on a time limit: where the time went, and how much would be needed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import unmeasured as um
from unmeasured.search.clock import slowness_since

if TYPE_CHECKING:
    import pandas as pd

    from unmeasured.data.prepare import Prepared

T = TypeVar("T")

# Rows that tell how long the moments of all rows would take.
_MOST_TRIED = 16_000
# Bytes of a file that are read in a second, on one core of 2.8 GHz: text, workbooks, other kinds.
_PER_SECOND = {".xlsx": 4e5, ".xlsm": 4e5, ".sav": 2e7, ".zsav": 5e6, ".dta": 5e7, ".por": 5e6, ".parquet": 5e6}
_TEXT_PER_SECOND = 2e7


@dataclass
class Times:
    """Seconds of the stages of a command, in their order; ``made``: the rows, as soon as they are there."""

    began: float
    cpu: float = 0.0  # processor time then
    stages: dict[str, float] = field(default_factory=dict)
    made: Prepared | None = None
    _last: float = 0.0

    def __post_init__(self) -> None:
        self._last = self.began

    def end(self, stage: str) -> None:
        """Note that a stage ends here."""
        now = time.monotonic()
        self.stages[stage] = self.stages.get(stage, 0.0) + now - self._last
        self._last = now

    def in_words(self, limit: float) -> str:
        """One sentence: how long the command took, and on what.

        >>> times = Times(time.monotonic() - 3.0)
        >>> times.end("loading libraries")
        >>> times.in_words(2.0)
        'Time: 3.0 s with a limit of 2 s: loading libraries 3.0 s, which no limit shortens.'
        """
        total = sum(self.stages.values())
        parts = [f"{stage} {seconds:.1f} s" for stage, seconds in self.stages.items()]
        parts[0] += ", which no limit shortens" if total > limit else ""
        return f"Time: {total:.1f} s with a limit of {limit:g} s: {'; '.join(parts)}."


def too_short(times: Times, limit: float, file: Any, sample_of: Callable[[Prepared], Any]) -> str:
    """Say that the time was over before there was anything to search, and how much reading alone would take."""
    spent, made = time.monotonic() - times.began, times.made
    if made is None or isinstance(made.frame, um.Table):
        doing = f"while {file.name} was being read"
    else:
        n, p = made.frame.shape
        doing = f"while the correlations of {n:,} rows and {p} variables were being computed"
    loading = next(iter(times.stages.values()), 0.0)
    seconds = None
    slowness = slowness_since(times.began, times.cpu)
    with suppress(um.UnmeasuredError):  # in a few of the rows a variable may never change
        seconds = slowness * (_reading_seconds(file) if made is None else _moment_seconds(made, sample_of))
    needed = (
        "How long it would take is not known."
        if seconds is None
        else f"Reading and correlations would take about {_rounded(seconds)} s, after {loading:.1f} s for loading "
        f"libraries; the search comes after that."
    )
    return (
        f"The time limit of {limit:g} s was over after {spent:.1f} s, {doing}: nothing was searched. {needed} Give "
        "--time-limit more, or use fewer rows or columns."
    )


def _rounded(seconds: float) -> str:
    """Two digits at most.

    >>> _rounded(0.234), _rounded(61.3), _rounded(153.0)
    ('0.2', '61', '150')
    """
    return f"{max(seconds, 0.1):.1f}" if seconds < 10 else f"{float(f'{seconds:.2g}'):.0f}"


def _reading_seconds(file: Any) -> float:
    from unmeasured.data.files.unpack import unpacks_to

    return float(unpacks_to(file, 2e8) / _PER_SECOND.get(file.suffix.lower(), _TEXT_PER_SECOND))


def _moment_seconds(made: Prepared, sample_of: Callable[[Prepared], Any]) -> float:
    """Extrapolate from the processor time of two small parts of the rows."""
    frame = made.frame
    if isinstance(frame, um.Table):
        return _table_seconds(made, frame, sample_of)
    n = len(frame)
    most = min(_MOST_TRIED, n)
    _, fewer, more = (
        _seconds_of(replace(made, frame=_spread(frame, rows)), sample_of)
        for rows in (most // 8, most // 2, most)  # the first loads what is loaded once
    )
    slope = max((more - fewer) / (most - most // 2), 0.2 * more / most)
    return more + slope * (n - most)


def _table_seconds(made: Prepared, table: um.Table, sample_of: Callable[[Prepared], Any]) -> float:
    """Extrapolate from the first block of a table that is read in blocks."""
    began = time.process_time()
    block = next(table.blocks())
    reading = time.process_time() - began
    n = table.n_rows or table.n_rows_about
    part = replace(made, frame=block)
    return n / len(block) * (reading + _seconds_of(part, sample_of))


def with_one_thread(work: Callable[[], T]) -> T:
    """Do work with one thread of numeric libraries: more wait for one another where other programs have the cores."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        return work()


def _spread(frame: pd.DataFrame, n: int) -> pd.DataFrame:
    return frame.iloc[np.linspace(0, len(frame) - 1, n).astype(int)]


def _seconds_of(part: Prepared, sample_of: Callable[[Prepared], Any]) -> float:
    began = time.process_time()
    with_one_thread(lambda: sample_of(part))
    return time.process_time() - began
