"""Calls made side by side, on whatever ``joblib.parallel_config`` says, and handed back as they are finished.

No process outlives the one that started it: a worker whose parent was killed ends itself (:class:`Watched`), and after
Ctrl-C the workers are ended before the interruption goes on.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import resource_tracker
from typing import Any, Generic, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.backend import resource_tracker as loky_tracker
from joblib.parallel import LokyBackend, get_active_backend
from tqdm import tqdm

T = TypeVar("T")
R = TypeVar("R")

# How often a worker looks whether its parent is still there, in seconds.
_WATCH = 1.0


def as_finished(function: Callable[[T], R], items: Sequence[T], n_jobs: int | None) -> Generator[R]:
    """Results in the order they are done, one item at a time to each worker; close it to stop early.

    So nothing that is finished waits for a batch to fill, and is lost with it.

    >>> sorted(as_finished(abs, [-3, -1, -2], n_jobs=1))
    [1, 2, 3]
    """
    watched = Watched(function, os.getpid())
    if n_jobs is not None and n_jobs > 1:
        n_jobs = max(min(int(n_jobs), len(items)), 1)  # more would have nothing to do
    if get_active_backend()[0].supports_return_generator:
        parallel = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
        results: Any = iter(())
        try:
            with _deaf_children(effective_n_jobs(n_jobs)):
                results = parallel(delayed(watched)(item) for item in items)  # starts the workers
            with closing(results) as done:
                yield from done
        except KeyboardInterrupt:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib says that work was cancelled, which was asked for
                del results
                end_workers()
            raise
        return
    # Ray's backend hands back lists only: a few items at a time, and these are lost together if it stops.
    parallel, size = Parallel(n_jobs=n_jobs, batch_size=1), 4 * effective_n_jobs(n_jobs or -1)
    for a in range(0, len(items), size):
        yield from parallel(delayed(watched)(item) for item in items[a : a + size])


@contextmanager
def _deaf_children(n_jobs: int) -> Iterator[None]:
    """Workers started inside never hear Ctrl-C, which they could not handle while they load; this process does, after.

    They inherit the mask of signals. The trackers of resources, which start with the first worker, would take the mask
    off again: they are started before.
    """
    if n_jobs == 1 or not hasattr(signal, "pthread_sigmask") or not isinstance(get_active_backend()[0], LokyBackend):
        yield
        return
    resource_tracker.ensure_running()
    loky_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True)
class Watched(Generic[T, R]):
    """A function that, called in a child of the process ``parent``, makes the child end when that one is gone."""

    function: Callable[[T], R]
    parent: int

    def __call__(self, item: T) -> R:
        """Call the function; the first call in a child starts the watch."""
        # On a cluster the caller is not the parent, and whoever started the worker ends it.
        if os.getppid() == self.parent and threading.current_thread() is threading.main_thread():
            _watch(self.parent)
        return self.function(item)


@cache
def _watch(parent: int) -> None:
    # Ctrl-C goes to all processes of a terminal. The parent handles it and ends its workers, which need not react.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A lock for threads will do for bars nobody sees; one for processes would be left behind when this one is ended.
    tqdm.set_lock(threading.RLock())
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when it has another parent: the system gives orphans to one."""
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)


def end_workers() -> None:
    """End the processes that joblib keeps for later calls, and clean up after them."""
    # Reused as it is: to make another one, joblib would wait for work that is under way, and might wait forever.
    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)
