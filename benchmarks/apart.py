"""A run in a process of its own: the memory it takes is its own, and it can be stopped inside a compiled call."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection

from benchmarks.attempt import circumstances, perform, stopped
from benchmarks.experiment import Assignment
from benchmarks.run_records import Outcome, Record

# Seconds past the time limit for starting Python, loading kernels and scoring the answer.
GRACE = 300.0


def perform_apart(assignment: Assignment, n_jobs: int = 1, grace: float = GRACE) -> Record:
    """Make a run in a fresh process. If that dies, or outlives its time by ``grace`` seconds, the record says so."""
    task = assignment.task
    began = time.perf_counter()
    # A forked process would begin with the memory of its parent.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(assignment, n_jobs, sender))
    process.start()
    sender.close()  # so that its end is seen if the process dies
    try:
        if receiver.poll(None if task.time_limit is None else task.time_limit + grace):
            record: Record = receiver.recv()
            return record
        return Record(task, circumstances(task, n_jobs), stopped(task, time.perf_counter() - began))
    except EOFError:
        process.join()
        reason = f"The process of the run died (exit code {process.exitcode}), as when memory runs out."
        return Record(task, circumstances(task, n_jobs), Outcome(time.perf_counter() - began, failure=reason))
    finally:
        process.kill()
        process.join()
        receiver.close()


def _send(assignment: Assignment, n_jobs: int, sender: Connection) -> None:
    sender.send(perform(assignment, n_jobs))
