"""Does a change of the search change its answers? Stored runs are made again and compared with what they gave.

A run is that of an experiment (:mod:`unmeasured.benchmark.experiment`): the rows of a graph, a seed and a sample size.
Of each the class, its extended BIC, its F1 and the seconds are kept in a file of lines, one run each::

    unmeasured bench same --record before.jsonl        before the change
    unmeasured bench same --against before.jsonl       after it
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from unmeasured import metrics
from unmeasured.benchmark import experiment
from unmeasured.benchmark.attempt import simulated_rows
from unmeasured.benchmark.experiment import Assignment
from unmeasured.benchmark.real import bundled
from unmeasured.data.datasets import available
from unmeasured.errors import UnmeasuredError
from unmeasured.graphs import CPDAG
from unmeasured.search.lges import LGES
from unmeasured.search.score import prior_of

TABLES = ("table1", "table2-uniform", "table2-leaky-relu", "realistic")
_METHOD = "LGES (bic)"
# Scores that differ by less are equal.
_TIE = 1e-3


@dataclass(frozen=True)
class Answer:
    """What a run gave: its class as a digest, and figures of it."""

    run: str
    table: str
    digest: str
    score: float  # extended BIC on the scale of a log-likelihood, larger is better
    f1: float | None  # None: real data, where the truth is not known
    seconds: float  # of processor time


@dataclass(frozen=True)
class Comparison:
    """Answers of two states of the code to the same runs."""

    before: Sequence[Answer]
    after: Sequence[Answer]

    def __str__(self) -> str:
        pairs: dict[str, list[tuple[Answer, Answer]]] = defaultdict(list)
        known = {answer.run: answer for answer in self.before}
        for answer in self.after:
            pairs[answer.table].append((known[answer.run], answer))
        lines = [_line(table, both) for table, both in pairs.items()]
        everything = [pair for both in pairs.values() for pair in both]
        changed = [f"  {b.run}: score {a.score:.3f} → {b.score:.3f}" for a, b in everything if a.digest != b.digest]
        return "\n".join([*lines, _line("all", everything), *changed[:40]])


def _line(table: str, pairs: Sequence[tuple[Answer, Answer]]) -> str:
    same = sum(a.digest == b.digest for a, b in pairs)
    better = sum(a.digest != b.digest and b.score > a.score + _TIE for a, b in pairs)
    equal = sum(a.digest != b.digest and abs(b.score - a.score) <= _TIE for a, b in pairs)
    good = (same + better + equal) / len(pairs)
    judged = [(a.f1, b.f1) for a, b in pairs if a.f1 is not None and b.f1 is not None]
    f1 = ""
    if judged:
        before, after = (sum(values) / len(judged) for values in zip(*judged, strict=True))
        f1 = f"; mean F1 {before:.4f} → {after:.4f}"
    slower = median(b.seconds / max(a.seconds, 1e-9) for a, b in pairs)
    return (
        f"{table}: {len(pairs)} runs, same class {same}, other class with a better score {better}, with the same score "
        f"{equal}, worse {len(pairs) - same - better - equal} ({good:.2%} not worse){f1}; median ratio of seconds "
        f"{slower:.2f}"
    )


def planned(n_runs: int | None = None) -> list[tuple[str, Assignment | None]]:
    """Names of runs and what they are; None stands for real data. With ``n_runs``, about so many, evenly spread."""
    runs: list[tuple[str, Assignment | None]] = [
        (f"{table} {a.task.graph} N={a.task.n_samples} seed={a.task.seed}", a)
        for table in TABLES
        for a in experiment.load(table).restricted([_METHOD]).assignments
    ]
    step = 1 if n_runs is None else max(len(runs) // n_runs, 1)
    return [*runs[::step], *((f"real {name}", None) for name in available())]


def answers(runs: Iterable[tuple[str, Assignment | None]]) -> Iterator[Answer]:
    """The answers of the code as it is."""
    LGES().fit(bundled("multitasking"))  # kernels are loaded on nobody's clock
    for run, assignment in runs:
        table = run.split(" ", 1)[0]
        data: Any = bundled(run.split(" ", 1)[1]) if assignment is None else _rows(assignment)
        began = time.process_time()
        search = LGES().fit(data)
        seconds = time.process_time() - began
        graph, fit = search.graph_, search.sem_
        score = -0.5 * fit.bic - prior_of(graph)
        f1 = metrics.compare(assignment.truth, graph).f1 if assignment and assignment.truth else None
        yield Answer(run, table, _digest(graph), score, f1, seconds)


def _rows(assignment: Assignment) -> pd.DataFrame:
    assert assignment.truth is not None
    return simulated_rows(assignment.task, assignment.truth)


def _digest(graph: CPDAG) -> str:
    text = f"{graph.groups}{graph.names}".encode() + graph.adjacency.tobytes()
    return hashlib.sha256(text).hexdigest()[:16]


def record(path: Path, n_runs: int | None) -> int:
    """Add the answers that a file does not have yet; how many those were."""
    known = {answer.run for answer in read(path)} if path.exists() else set()
    left = [(run, assignment) for run, assignment in planned(n_runs) if run not in known]
    with path.open("a", encoding="utf-8") as file:
        for answer in answers(left):
            file.write(json.dumps(asdict(answer)) + "\n")
            file.flush()
    return len(left)


def compare(path: Path, n_runs: int | None) -> Comparison:
    """The answers of a file beside those of the code as it is; of those of its runs that are planned."""
    before = {answer.run: answer for answer in read(path)}
    runs = [(run, assignment) for run, assignment in planned(n_runs) if run in before]
    if not runs:
        raise UnmeasuredError(f"{str(path)!r} has none of these runs; unmeasured bench same --record makes them.")
    return Comparison([before[run] for run, _ in runs], list(answers(runs)))


def read(path: Path) -> list[Answer]:
    """The answers of a file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise UnmeasuredError(f"There is no file {str(path)!r}; unmeasured bench same --record makes it.") from None
    try:
        return [Answer(**json.loads(line)) for line in lines]
    except (TypeError, ValueError) as error:
        raise UnmeasuredError(f"{str(path)!r} is not a file of answers ({error}).") from None
