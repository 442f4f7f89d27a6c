"""Calls made side by side, on whatever ``joblib.parallel_config`` says, and handed back as they are finished."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

T = TypeVar("T")
R = TypeVar("R")


def as_finished(function: Callable[[T], R], items: Sequence[T], n_jobs: int | None) -> Generator[R]:
    """Results in the order they are done, one item at a time to each worker; close it to stop early.

    So nothing that is finished waits for a batch to fill, and is lost with it.

    >>> sorted(as_finished(abs, [-3, -1, -2], n_jobs=1))
    [1, 2, 3]
    """
    if get_active_backend()[0].supports_return_generator:
        parallel = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
        with closing(parallel(delayed(function)(item) for item in items)) as done:
            yield from done
        return
    # Ray's backend hands back lists only: a few items at a time, and these are lost together if it stops.
    parallel, size = Parallel(n_jobs=n_jobs, batch_size=1), 4 * effective_n_jobs(n_jobs or -1)
    for a in range(0, len(items), size):
        yield from parallel(delayed(function)(item) for item in items[a : a + size])
