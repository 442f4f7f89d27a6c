"""One run: the rows of a task, a method on them, and what came of it; a failure is a value with a sentence.

Rows depend on the experiment's seed, the graph, the seed and the sample size, and on nothing else: every method
sees the same ones. Parameters leave out the sample size, so a graph and a seed have one model at every N. Cut and holed
rows are those same rows, cut and holed.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib
import json
import logging
import os
import platform
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.experiment import Assignment
from benchmarks.real import Indices, bundled
from benchmarks.run_records import Circumstances, Outcome, Record, Task
from benchmarks.state import state_of
from unmeasured import metrics, simulate
from unmeasured.data.sample import Sample
from unmeasured.errors import UnmeasuredError
from unmeasured.graphs import CPDAG, DAG
from unmeasured.models.fit import fit
from unmeasured.search.score import prior_of

logger = logging.getLogger(__name__)

STOPPED = "Stopped at the time limit"


class TimeIsUp(BaseException):
    """The time limit of a run has passed; not an Exception, so that no method takes it for a fault of its own."""


def perform(assignment: Assignment, n_jobs: int = 1) -> Record:
    """Make a run. Whatever the method does, short of stopping the program, there is a record."""
    task = assignment.task
    data = bundled(task.graph) if assignment.truth is None else simulated_rows(task, assignment.truth)
    return Record(task, circumstances(task, n_jobs), attempt(task, assignment.truth, data, apart=assignment.apart))


def simulated_rows(task: Task, truth: DAG) -> pd.DataFrame:
    """The rows of a task, the same for every method."""
    assert task.parameters
    assert task.noise
    assert task.nonlinearity
    place = (task.experiment_seed, zlib.crc32(task.graph.encode()), task.seed)
    draw = {"paper": simulate.paper_parameters, "realistic": simulate.realistic_parameters}[task.parameters]
    parameters = draw(truth, np.random.default_rng((*place, 0)))  # 0: no sample size is 0
    rows = simulate.sample(
        parameters,
        task.n_samples,
        rng=np.random.default_rng((*place, task.n_samples)),
        noise=task.noise,
        nonlinearity=task.nonlinearity,
    )
    rows = rows if task.categories is None else simulate.cut(rows, task.categories)
    # 1: a stream of its own for the holes.
    return simulate.punch_holes(rows, task.missing, rng=np.random.default_rng((*place, task.n_samples, 1)))


def attempt(task: Task, truth: DAG | None, data: pd.DataFrame | Sample, *, apart: bool = False) -> Outcome:
    """Fit the method of a task and judge its graph, or say why there is nothing to judge.

    ``apart`` says that the process makes no other run, so that the memory it took is the method's.
    """
    clock = _Clock()
    try:
        _warm_up(task.constructor, json.dumps(dict(task.options)))
        estimator = _make(task)
        with time_limit(task.time_limit), clock:
            estimator.fit(data if isinstance(data, Sample) else data.copy())
        if task.time_limit is not None and clock.seconds > task.time_limit:
            raise TimeIsUp  # where there is no alarm, or a compiled call slept through it
        peak = peak_mib() if apart else None
        # The scores of the truth and of what was found are on the moments the method itself looked at.
        outcome = (
            _fitted(estimator, clock.seconds)
            if truth is None
            else _judged(truth, _graph_of(estimator), getattr(estimator, "sample_", data), clock.seconds)
        )
        return replace(outcome, peak_mib=peak)
    except TimeIsUp:
        return stopped(task, clock.seconds)
    except UnmeasuredError as error:
        return Outcome(clock.seconds, failure=str(error))
    except (Exception, SystemExit) as error:  # a method may fail in any way; that is a result
        return Outcome(clock.seconds, failure=f"{type(error).__name__}: {error}")


def stopped(task: Task, seconds: float) -> Outcome:
    """What there is to say of a run that took too long."""
    return Outcome(seconds, failure=f"{STOPPED} of {task.time_limit:g} seconds.")


def circumstances(task: Task, n_jobs: int) -> Circumstances:
    """With what, where and when a run of a task is made now."""
    return Circumstances(
        version=installed_version(),
        code=state_of(task.constructor),
        python=platform.python_version(),
        numpy=np.__version__,
        machine=machine(),
        n_jobs=n_jobs,
        date=today(),
    )


def machine() -> str:
    """The machine, in words."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def today() -> str:
    """The day."""
    return datetime.date.today().isoformat()


def installed_version() -> str:
    """The version of the package that makes the runs."""
    return str(importlib.import_module("unmeasured").__version__)


# -------------------------------------------------------------------------------------------------- methods


def method_named(constructor: str) -> Callable[..., Any]:
    """Return the estimator of a name: of ``unmeasured`` or ``unmeasured.peers``, or ``module:Name`` for any other.

    >>> method_named("NoSuchMethod")
    Traceback (most recent call last):
    ...
    unmeasured.errors.UnmeasuredError: 'NoSuchMethod' is not available in this installation of unmeasured ...
    """
    module, _, name = constructor.rpartition(":")
    for place in (module,) if module else ("unmeasured", "unmeasured.peers"):
        with contextlib.suppress(ImportError, AttributeError):
            found: Callable[..., Any] = getattr(importlib.import_module(place), name)
            return found
    where = f"module {module!r}" if module else f"this installation of unmeasured ({installed_version()})"
    raise UnmeasuredError(f"{name!r} is not available in {where}.")


def _make(task: Task) -> Any:
    maker = method_named(task.constructor)
    try:
        return maker(**task.options)
    except TypeError as error:
        given = ", ".join(f"{name}={value!r}" for name, value in task.options.items())
        raise UnmeasuredError(f"{task.constructor}({given}) cannot be made: {error}.") from None


@cache
def _warm_up(constructor: str, options: str) -> None:
    """Fit a method once, on two small models, so that compiling its kernels is on nobody's clock.

    Once for each process. A fault here is passed over: the run itself will meet it and say so.
    """
    # Edges between latents and groups of several have kernels of their own; some methods find none but single latents.
    pure, mixed = simulate.random_one_factor, simulate.random_gnfm
    for truth in (pure(n_latents=2, n_observed=8, rng=0), mixed(n_latents=3, n_observed=8, rng=0)):
        rows = simulate.sample(truth, 200, rng=0, parameters="realistic")
        with contextlib.suppress(Exception, SystemExit, TimeIsUp), time_limit(300.0):
            method_named(constructor)(**json.loads(options)).fit(rows)


def _graph_of(estimator: Any) -> DAG | CPDAG:
    graph = getattr(estimator, "graph_", None)
    if not isinstance(graph, DAG | CPDAG):
        raise UnmeasuredError(
            f"{type(estimator).__name__} has no graph to judge: graph_ is {type(graph).__name__}, not a CPDAG or DAG."
        )
    return graph


def _judged(truth: DAG, found: DAG | CPDAG, data: pd.DataFrame | Sample, seconds: float) -> Outcome:
    compared = metrics.compare(truth, found)
    return Outcome(
        seconds=seconds,
        f1=compared.f1,
        precision=compared.precision,
        recall=compared.recall,
        shd=compared.shd,
        shd_paper=compared.shd_paper,
        latents_true=compared.n_latents_true,
        latents_found=compared.n_latents_found,
        score_true=_score(truth, data),
        score_found=_score(found, data),
        surprise_true=prior_of(truth),
        surprise_found=prior_of(found),
    )


def _fitted(estimator: Any, seconds: float) -> Outcome:
    """On real data there is no truth, and what counts is the fit."""
    indices = getattr(estimator, "indices_", None) or Indices.of(estimator.sem_)
    found = getattr(estimator, "graph_", None)
    return Outcome(seconds, latents_found=None if found is None else len(found.latents), **indices.figures())


def _score(graph: DAG | CPDAG, data: pd.DataFrame | Sample) -> float | None:
    """BIC of a graph on the log-likelihood scale, larger is better; None where the fit did not reach an optimum."""
    try:
        fitted = fit(graph, data)
        score = -0.5 * fitted.bic
    except Exception as error:  # the score is an extra; the run stands without it
        logger.warning("A graph could not be scored: %s", error)
        return None
    return score if fitted.converged and np.isfinite(score) else None


# ------------------------------------------------------------------------------------------ memory and time


def peak_mib() -> float | None:
    """The most memory this process has held so far, in MiB; None where the system does not tell.

    >>> 10 < (peak_mib() or 11) < 1e6
    True
    """
    # Linux: getrusage would do, but a new process inherits its parent's peak there.
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    with contextlib.suppress(ImportError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 2**20 if sys.platform == "darwin" else peak / 1024  # bytes there, kibibytes elsewhere
    return None


class _Clock:
    """Seconds spent inside ``with``, also when that ends with an error."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise :class:`TimeIsUp` inside ``with`` after so many seconds, where the system has an alarm for it.

    The alarm rings between two steps of Python, not inside a compiled call, and again each second in case the first
    ring was swallowed. On Windows, and outside the main thread, there is none.
    """
    has_alarm = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or not has_alarm:
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _ring(signum: int, frame: FrameType | None) -> None:
    raise TimeIsUp
