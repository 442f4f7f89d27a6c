"""Running an experiment: what the file does not hold yet is run and appended, record by record.

A run that is stopped, or killed, loses at most what was under way. Started again it goes on where it was and
ends with the same records, apart from seconds and the like.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from pathlib import Path

from joblib.externals.loky.process_executor import BrokenProcessPool
from tqdm import tqdm

from benchmarks.apart import perform_apart
from benchmarks.attempt import STOPPED, circumstances, installed_version, perform
from benchmarks.experiment import Assignment, Experiment
from benchmarks.run_records import Outcome, Record, Task, append_record, latest, open_records, prune
from unmeasured.errors import UnmeasuredError
from unmeasured.parallel import as_finished

logger = logging.getLogger(__name__)

FOLDER = Path("benchmarks") / "records"


class Stopped(KeyboardInterrupt):
    """The user ended a run; the text says how far it came and how to go on."""


@dataclass(frozen=True)
class Tally:
    """How a run went: runs planned, made just now, and failed among all that are planned."""

    n_planned: int
    n_new: int
    n_failed: int


def default_path(name: str) -> Path:
    """Where the records of an experiment go, under the working directory.

    >>> default_path("table4").as_posix()
    'benchmarks/records/table4.jsonl'
    """
    return FOLDER / f"{name}.jsonl"


def run(
    experiment: Experiment,
    path: Path,
    *,
    n_jobs: int = 1,
    retry_failed: bool = False,
    renew: bool = False,
    progress: bool = True,
) -> Tally:
    """Make the runs of an experiment that its file does not hold, and append them to it.

    Parameters
    ----------
    path
        The file of records, made where there is none.
    n_jobs
        Runs at once, each in a process of its own, or where ``joblib.parallel_config`` says; -1 for one per core. One
        runs in this process.
    retry_failed
        Make runs again that failed, such as those of a method that was not installed.
    renew
        Make runs again whose method's code has changed since (those a table marks), and drop the records they replace.
    progress
        Show a bar.

    Raises
    ------
    Stopped
        On Ctrl-C, a KeyboardInterrupt with a sentence.
    """
    if n_jobs < 1 and n_jobs != -1:
        raise UnmeasuredError(f"n_jobs is the number of runs at once, or -1 for one per core; got {n_jobs}.")
    done = _done(open_records(path), retry_failed, renew)
    left = [a for a in experiment.assignments if (a.task.key, installed_version()) not in done]
    _warn_of_other_code(
        [done[key] for a in experiment.assignments if (key := (a.task.key, installed_version())) in done]
    )
    n_planned, n_new = len(experiment.assignments), 0
    with tqdm(total=n_planned, initial=n_planned - len(left), unit="run", disable=not progress) as bar:
        try:
            for record in _all_made(experiment, left, list(done.values()), n_jobs, bar):
                append_record(path, record)
                n_new += 1
                bar.update()
        except KeyboardInterrupt:
            n_done = n_planned - len(left) + n_new
            raise Stopped(
                f"Stopped with {n_done} of {n_planned} runs done, in {str(path)!r}; "
                "the same command goes on from there."
            ) from None
    if renew:
        prune(path)
    return _tally(experiment, open_records(path), n_new)


def _done(records: Sequence[Record], retry_failed: bool, renew: bool) -> dict[tuple[str, str], Record]:
    """What need not be run again; of several records of a task and version the last one speaks."""
    last = {record.done_key: record for record in records}
    return {
        key: record
        for key, record in last.items()
        if not (retry_failed and record.outcome.failure) and not (renew and not record.is_of_today)
    }


def _warn_of_other_code(kept: Sequence[Record]) -> None:
    others = sum(not record.is_of_today for record in kept)
    if others:
        logger.warning(
            "%d of the runs kept were made by an earlier state of their method's code; --renew makes them again.",
            others,
        )


def _all_made(
    experiment: Experiment, left: Sequence[Assignment], done: Sequence[Record], n_jobs: int, bar: tqdm[None]
) -> Iterator[Record]:
    """Records as they are finished; where methods give up, one run, or with several at once one size, at a time."""
    if not experiment.give_up:
        yield from _made(left, n_jobs, bar)
        return
    known = list(done)
    parts = [list(group) for _, group in groupby(left, key=lambda a: a.task.n_observed)]
    for assignments in parts if n_jobs != 1 else ([assignment] for assignment in left):
        hopeless = [a for a in assignments if _given_up_at(a.task, known) is not None]
        tried = [a for a in assignments if a not in hopeless]
        for record in chain((_not_tried(a.task, known, n_jobs) for a in hopeless), _made(tried, n_jobs, bar)):
            known.append(record)
            yield record


def _given_up_at(task: Task, known: Sequence[Record]) -> int | None:
    """The size of graphs, none larger, at which the method of a task passed its time limit, if it did."""
    sizes = [
        record.task.n_observed
        for record in known
        if record.task.method == task.method and (record.outcome.failure or "").startswith(STOPPED)
    ]
    return min((size for size in sizes if size <= task.n_observed), default=None)


def _not_tried(task: Task, known: Sequence[Record], n_jobs: int) -> Record:
    size = _given_up_at(task, known)
    return Record(
        task, circumstances(task, n_jobs), Outcome(0.0, failure=f"Not tried: too slow at {size} observed variables.")
    )


def _made(assignments: Sequence[Assignment], n_jobs: int, bar: tqdm[None]) -> Iterator[Record]:
    """Records as they are finished."""
    if n_jobs == 1:
        for assignment in assignments:
            bar.set_postfix_str(assignment.task.method)
            yield _performed(assignment, n_jobs)
        return
    with contextlib.closing(as_finished(partial(_perform_in_worker, n_jobs=n_jobs), assignments, n_jobs)) as records:
        try:
            for record in records:
                bar.set_postfix_str(record.task.method)
                yield record
        except BrokenProcessPool as error:
            reason = str(error).split(".")[0]
            raise UnmeasuredError(
                f"A process that was making runs died ({reason}). The runs before it are kept; the same "
                "command goes on from there, with n_jobs=1 if memory ran out."
            ) from None


def _perform_in_worker(assignment: Assignment, n_jobs: int) -> Record:
    if threading.current_thread() is threading.main_thread():  # workers of a cluster may run tasks in another
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers itself
    return _performed(assignment, n_jobs)


def _performed(assignment: Assignment, n_jobs: int) -> Record:
    return perform_apart(assignment, n_jobs) if assignment.apart else perform(assignment, n_jobs)


def _tally(experiment: Experiment, records: Sequence[Record], n_new: int) -> Tally:
    held = latest(records)
    outcomes = [held[a.task.key].outcome for a in experiment.assignments if a.task.key in held]
    return Tally(len(experiment.assignments), n_new, sum(outcome.failure is not None for outcome in outcomes))
