"""Searches in a process of their own: they report while they run, can be stopped with the best so far, and killed.

::

    Worker (here)  ── task ──►  _main (there)  ── "text", "model", "done", "failed" ──►  listener (a thread here)
                   ── stop ──►  interrupts the search, which answers with the best so far
"""

from __future__ import annotations

import _thread
import math
import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from tqdm import tqdm

import unmeasured as um
from unmeasured.app.results import group_record
from unmeasured.app.words import in_the_page, remark_in_the_page
from unmeasured.graphs import cpdag_of
from unmeasured.output.report.groups import Shared
from unmeasured.output.report.run import Run, run_of
from unmeasured.search.climb import watched
from unmeasured.search.latent_graph.edges import Connected
from unmeasured.search.score import Fitted

Message = dict[str, Any]
# A model is drawn this many times a second at most while the search runs.
_PER_SECOND = 2.0


class Worker:
    """A process that waits for a task; ``listener`` is called from a thread of its own with every message."""

    def __init__(self, listener: Callable[[Message], None]) -> None:
        self._listener = listener
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_main, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether it can take a task."""
        return self._process.is_alive()

    def run(self, task: Mapping[str, Any]) -> None:
        """Begin a task."""
        self._ours.send(dict(task))

    def stop(self) -> None:
        """End the task with the best so far."""
        with suppress(OSError):
            self._ours.send({"task": "stop"})

    def kill(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()

    def _listen(self) -> None:
        while True:
            try:
                message = self._ours.recv()
            except (EOFError, OSError):
                self._listener({"kind": "gone"})
                return
            self._listener(message)


# In the other process ---------------------------------------------------------------------------------------


def _main(connection: Connection) -> None:
    """Take tasks for as long as there is somebody at the other side."""
    tasks: list[Message] = []
    ready = threading.Condition()
    busy = threading.Event()

    def listen() -> None:
        while True:
            try:
                message = connection.recv()
            except (EOFError, OSError):
                os._exit(0)  # whoever started this process is gone, and nobody waits for an answer
            if message["task"] == "stop":
                if busy.is_set():
                    _thread.interrupt_main()
                continue
            with ready:
                tasks.append(message)
                ready.notify()

    threading.Thread(target=listen, daemon=True).start()
    said = _Line(connection)
    os.environ["COLUMNS"] = "140"  # of the line that says how far a search is, which is cut to a terminal's width
    sys.stderr = _Screen(said)
    warnings.simplefilter("ignore")  # they would stand in the line on progress; what matters to users is a remark
    tqdm.set_lock(threading.RLock())  # the lock it makes by itself outlives a process that is ended
    kept: dict[str, Any] = {}
    while True:
        try:
            with ready:
                while not tasks:
                    ready.wait(0.2)
                task = tasks.pop(0)
            busy.set()
            _work(task, said, kept)
        except KeyboardInterrupt:
            tasks.clear()  # one that waited for this process to be ready
            said.send({"kind": "failed", "sentence": "Stopped before there was an answer."})
        finally:
            busy.clear()


def _work(task: Message, connection: _Line, kept: dict[str, Any]) -> None:
    try:
        if task["task"] == "search":
            _search(task, connection, kept)
        elif task["task"] == "stability":
            _stability(task, connection, kept)
        else:
            _prepare()
    except um.UnmeasuredError as error:
        connection.send({"kind": "failed", "sentence": in_the_page(str(error))})
    except MemoryError:
        connection.send({"kind": "failed", "sentence": "There is not enough memory for this search."})


def _prepare() -> None:
    """Have compiled code ready; after an installation that takes about a minute."""
    from unmeasured.search.warm import compile_kernels

    compile_kernels()


def _search(task: Message, connection: _Line, kept: dict[str, Any]) -> None:
    sample, options = task["sample"], task["options"]
    connection.send({"kind": "text", "text": "preparing"})
    _prepare()
    begun = time.perf_counter()
    with watched(_Watch(connection)):
        search = um.LGES(verbose=True, **options).fit(sample)
    seconds = time.perf_counter() - begun
    connection.send({"kind": "text", "text": "the search is done; its fit is being looked at"})
    kept["search"] = search.set_params(verbose=False)
    run = run_of(search, about=replace(task["about"], seconds=seconds))
    plain = um.LGES(**options)
    remarks = tuple(map(remark_in_the_page, run.result.remarks))
    result = replace(run.result, method=" ".join(repr(plain).split()), options=plain.get_params(), remarks=remarks)
    result = result.rename()
    run, people = replace(run, result=result), None
    if sample.groups and result.graph.latents and not result.stopped:
        connection.send({"kind": "text", "text": "comparing the groups"})
        run, people = _compared(search, run, sample)
    connection.send({"kind": "done", "task": "search", "run": run.to_json(), "people": people})


def _compared(search: um.LGES, run: Run, sample: um.Sample) -> tuple[Run, dict[str, Any]]:
    """The run with what groups of people share of what was found, and the estimates of each group."""
    rows = pd.DataFrame(sample.rows, columns=list(sample.names))
    shared = um.invariance(run.result, rows, groups=list(sample.groups))
    names = dict(zip(search.graph_.latents, run.result.graph.latents))
    by_group = {label: found.rename(names) for label, found in search.group_results_.items()}
    return replace(run, shared=Shared.of(shared)), group_record(shared, by_group)


def _stability(task: Message, connection: _Line, kept: dict[str, Any]) -> None:
    if "search" not in kept:  # a project from a file: the search is made again
        kept["search"] = um.LGES(**task["options"]).fit(task["sample"])
    search = kept["search"]
    names = dict(zip(search.graph_.latents, task["latents"]))
    with TemporaryDirectory(prefix="unmeasured-", ignore_cleanup_errors=True) as folder:
        records = Path(folder) / "replicates.jsonl"
        try:
            stable = um.stability(search, task["replicates"], random_state=0, verbose=True, records=records)
        except KeyboardInterrupt:
            # Those that were made count.
            done = len(records.read_bytes().splitlines()) if records.exists() else 0
            if done < 2:
                raise um.UnmeasuredError("Stopped before there were two replicates.") from None
            stable = um.stability(search, done, random_state=0, records=records)
    stable = replace(stable, graph=stable.graph.rename(names))
    connection.send({"kind": "done", "task": "stability", "stability": stable.to_json()})


class _Line:
    """The way back, one message at a time: a progress bar may speak from a thread of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()

    def send(self, message: Message) -> None:
        with self._lock:
            self._connection.send(message)


class _Watch:
    """Reports the best model that a search has come to; scores of another stage of it are not compared."""

    def __init__(self, connection: _Line) -> None:
        self._connection, self._last = connection, 0.0
        self._score: object = None
        self._best = -math.inf

    def __call__(self, model: Any, score: object) -> None:
        groups = outline(model)
        if groups is None or (score is self._score and model.value < self._best):
            return
        self._score, self._best = score, model.value
        now = time.monotonic()
        if now - self._last >= 1.0 / _PER_SECOND:
            self._last = now
            self._connection.send({"kind": "model", **groups})


def outline(model: Any) -> Message | None:
    """The groups of a model of the search, the items of each, and edges between them as far as there are some."""
    if isinstance(model, Connected | Fitted):
        factors = model.model
        marks = factors.between if isinstance(model, Connected) else cpdag_of(model.arcs)
        items = [
            [name for name, mask in zip(factors.observed, factors.parents) if mask >> g & 1]
            for g in range(len(factors.sizes))
        ]
        return {"sizes": list(factors.sizes), "items": items, "edges": _edges(marks)}
    return None


def _edges(marks: Any) -> list[tuple[int, int, bool]]:
    """Edges of a class over groups: from, to, and whether they are directed; one of the two ways where not."""
    size = range(len(marks))
    return [(i, j, not marks[j, i]) for i in size for j in size if marks[i, j] and (i < j or not marks[j, i])]


class _Screen:
    """Takes what a progress bar prints and sends its last line."""

    def __init__(self, connection: _Line) -> None:
        self._connection, self._line, self._last = connection, "", 0.0

    def write(self, text: str) -> int:
        self._line = (self._line + text).replace("\n", "\r")
        *lines, self._line = self._line.split("\r")
        shown = next((line for line in [self._line, *reversed(lines)] if line.strip()), "")
        now = time.monotonic()
        if shown and now - self._last >= 0.25:
            self._last = now
            with suppress(OSError):
                self._connection.send({"kind": "text", "text": shown.strip()})
        return len(text)

    def flush(self) -> None:
        """Nothing waits here."""

    def isatty(self) -> bool:
        return False
