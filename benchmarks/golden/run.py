"""Cases are run: one of them, or many in processes of their own."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.golden.cases import CASES, Case
from benchmarks.golden.counts import counted
from benchmarks.golden.describe import Description, describe, steps_counted
from benchmarks.golden.record import Entry, as_stored

# Numeric libraries with one thread round alike; a core for each thread of ours leaves batches whole, so that the counts
# are those of any machine.
_LIBRARIES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ONE_THREAD = dict.fromkeys(_LIBRARIES, "1")
ONE_CORE = {"LOKY_MAX_CPU_COUNT": "1"}


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def run_case(case: Case) -> Entry:
    """Run a case and describe what it gave, with the counts; an error is described by its class and text."""
    with (
        _environment(ONE_THREAD | ONE_CORE),
        threadpool_limits(1),
        warnings.catch_warnings(record=True) as raised,
        counted() as counts,
    ):
        warnings.simplefilter("always")
        try:
            value = case.run()
            made = describe(value)
            counts.update(_own_counts(value))
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            made = Description({"error": type(error).__name__})
            made.sentences["error"] = [str(error), f"in {where.name}"]
    if raised:
        made.sentences["warnings"] = list(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in raised))
    return as_stored(made, counts)


def _own_counts(value: Any) -> dict[str, int]:
    """Return the counts that searches keep themselves, summed over the parts of a case."""
    parts = list(value.values()) if isinstance(value, Mapping) else [value]
    total: dict[str, int] = {}
    for part in parts:
        for name, count in steps_counted(part).items():
            total[name] = total.get(name, 0) + count
    return total


def run_many(cases: Sequence[Case], n_jobs: int = 2) -> Iterator[tuple[Case, Entry]]:
    """Run cases in processes with one thread each, the costly ones first; yield each when it is done."""
    from joblib import Parallel, delayed

    ordered = sorted(cases, key=lambda case: -case.cost)
    with _environment(ONE_THREAD):
        work = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
        for name, entry in work(delayed(_by_name)(case.name) for case in ordered):
            yield CASES[name], entry


def _by_name(name: str) -> tuple[str, Entry]:
    return name, run_case(CASES[name])
