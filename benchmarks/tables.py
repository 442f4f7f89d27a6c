"""Tables, made from records alone: means with standard errors, medians of times, beside the paper's figures.

The experiment says which records count and how the table is laid out; every figure is read from the records. A
record of an older version of the package counts until there is a newer one of the same task. A cell with fewer
results than were planned says how many it has and cannot be called the best while another cell has more: what
failed may have been the harder part.

Runs on one graph with several seeds are not independent, so standard errors are clustered by graph
(:func:`clustered_error`). A dagger marks what was made by an earlier state of its method's code.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from benchmarks import paper
from benchmarks.experiment import Experiment, Layout, Method
from benchmarks.measures import MEASURES, OURS, Measure
from benchmarks.run_records import Record, Task, latest

NOTHING = "-"
DAGGER = "†"
AXIS_TITLES = {
    "n_observed": "observed",
    "n_samples": "N",
    "method": "method",
    "family": "graphs",
    "data": "model",
    "categories": "categories",
    "missing": "missing",
}
Row: TypeAlias = int | str  # a number of samples or variables, a family of graphs, a data set, what was done to rows
MOST_REASONS = 3  # reasons of failure printed for each method


@dataclass(frozen=True)
class Cell:
    """What the runs of a cell come to.

    Attributes
    ----------
    value
        Mean over runs, or for times the median.
    error
        Standard error of a mean, clustered by graph; nan for medians, and where there is one graph only.
    n, n_planned
        How many runs had a result, of how many.
    range
        Least and most, for medians.
    n_old
        How many of the results were made by an earlier state of the method's code.
    """

    value: float
    error: float
    n: int
    n_planned: int
    range: tuple[float, float] | None = None
    n_old: int = 0

    def text(self, measure: Measure, *, mark: bool = True) -> str:
        """``0.96 (0.01)``, with ``[18 of 20]`` where results are missing; ``0.2 (0.1 to 3.5)`` for a median."""
        if not self.n:
            return NOTHING
        brackets = ""
        if self.range is not None and self.n > 1:
            brackets = " ({} to {})".format(*(measure.text(end) for end in self.range))
        elif not math.isnan(self.error):
            brackets = f" ({measure.text(self.error)})"
        missing = f" [{self.n} of {self.n_planned}]" if self.n < self.n_planned else ""
        return f"{measure.text(self.value, self.n)}{brackets}{missing}{DAGGER if mark and self.n_old else ''}"

    @property
    def bars(self) -> tuple[float, float]:
        """How far its bar in a figure reaches down and up: a standard error, or to the least and the most."""
        if self.range is not None:
            return self.value - self.range[0], self.range[1] - self.value
        return (0.0, 0.0) if math.isnan(self.error) else (self.error, self.error)


def clustered_error(values: Sequence[float], graphs: Sequence[str]) -> float:
    """Standard error of the mean of runs that are independent between graphs, but not on the same graph.

    With e_i the deviation of run i from the mean of all n, and G graphs, the variance of the mean is estimated by::

        G / (G - 1) · (1 / n²) · sum over graphs of (sum of e_i over the runs on that graph)²

    since cross products of runs on different graphs have mean zero and those of runs on the same graph do not. It is
    what is called cluster-robust, with the usual correction for few clusters; with as many runs on each graph it is
    the standard deviation of the graphs' means over the root of G, with one run on each the usual standard error. On
    one graph there is nothing to tell it by: nan.

    >>> clustered_error([1.0, 1.0, 3.0, 3.0], ["a", "a", "b", "b"])
    1.0
    """
    sums: dict[str, list[float]] = defaultdict(list)
    mean = statistics.fmean(values) if values else math.nan
    for value, graph in zip(values, graphs, strict=True):
        sums[graph].append(value - mean)
    if len(sums) < 2:
        return math.nan
    # Summed exactly, so that the order of records does not matter.
    total = math.fsum(math.fsum(part) ** 2 for part in sums.values())
    return math.sqrt(len(sums) / (len(sums) - 1) * total) / len(values)


@dataclass(frozen=True)
class Entry:
    """What is printed in a cell, and whether it is the best of its row or column."""

    text: str
    is_best: bool = False


@dataclass(frozen=True)
class Block:
    """One grid of a table: a caption, titles of the columns, and rows that begin with their own title."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]

    def text(self) -> str:
        """Columns of plain text; a star marks the best."""
        return _with_caption(self.caption, "", _aligned([self.header, *(_marked(row, "{} *") for row in self.rows)]))

    def markdown(self) -> str:
        """A Markdown table; the best is bold."""
        lines = [_piped(self.header), _piped(["---"] * len(self.header))]
        lines += [_piped(_marked(row, "**{}**")) for row in self.rows]
        return _with_caption(f"**{self.caption}**" if self.caption else "", "\n", lines)


@dataclass(frozen=True)
class Table:
    """A whole table: title, grids, and the remarks without which the figures mislead."""

    title: str
    blocks: tuple[Block, ...]
    notes: tuple[str, ...]

    def text(self) -> str:
        """For a terminal."""
        return "\n\n".join([self.title, *(block.text() for block in self.blocks), "\n".join(self.notes)])

    def markdown(self) -> str:
        """For a README."""
        notes = "\n".join(f"- {note}" for note in self.notes)
        return "\n\n".join([f"### {self.title}", *(block.markdown() for block in self.blocks), notes])


def make_table(experiment: Experiment, records: Iterable[Record]) -> Table:
    """The table of an experiment from its records."""
    tasks = [assignment.task for assignment in experiment.assignments]
    held = latest(records)
    planned = {task.key for task in tasks}
    used = [record for key, record in held.items() if key in planned]
    cells = Cells(experiment, tasks, used)
    make = {"method": _rows_of_methods, "data": _blocks_of_data}.get(experiment.layout.rows, _columns_of_methods)
    notes = [*_notes(experiment, tasks, used, len(held) - len(used)), *_exponents(cells)]
    return Table(experiment.title, tuple(make(cells)), tuple(notes))


def cells_of(experiment: Experiment, records: Iterable[Record]) -> Cells:
    """The cells of an experiment, for those who draw them."""
    tasks = [assignment.task for assignment in experiment.assignments]
    planned = {task.key for task in tasks}
    return Cells(experiment, tasks, [record for key, record in latest(records).items() if key in planned])


# ---------------------------------------------------------------------------------------------------- cells


class Cells:
    """The cells of an experiment by row, method and measure."""

    def __init__(self, experiment: Experiment, tasks: Sequence[Task], records: Sequence[Record]) -> None:
        self.layout: Layout = experiment.layout
        self.methods: tuple[Method, ...] = experiment.methods
        self._planned = Counter((self.row_of(task), task.method) for task in tasks)
        self._records: dict[tuple[Row, str], list[Record]] = defaultdict(list)
        for record in records:  # in any order: the means and deviations below are summed exactly
            if record.outcome.failure is None:
                self._records[self.row_of(record.task), record.task.method].append(record)
        self._ours = {
            _place(r.task): r.outcome.seconds for (_, name), rs in self._records.items() if name == OURS for r in rs
        }
        rows = dict.fromkeys(row for row, _ in self._planned)
        self.rows: list[Row] = sorted(rows, key=lambda row: row if isinstance(row, int) else 0)  # words as they come

    def row_of(self, task: Task) -> Row:
        """The row a task falls in; in a table of methods all have the same, the sample size."""
        match self.layout.rows:
            case "family":
                return task.graph.rpartition("-")[0]
            case "data":
                return task.graph
            case "categories":
                return "not cut" if task.categories is None else f"five, {task.categories}"
            case "missing":
                return f"{task.missing:.0%}" if task.missing else "nothing"
            case "n_observed":
                return task.n_observed
            case _:
                return task.n_samples

    def is_planned(self, row: Row, method: Method) -> bool:
        """Whether a method has runs in a row."""
        return self._planned[row, method.label] > 0

    def is_old(self, method: Method) -> bool:
        """Whether all results of a method were made by an earlier state of its code."""
        made = [r for (_, label), records in self._records.items() if label == method.label for r in records]
        return bool(made) and not any(record.is_of_today for record in made)

    def label(self, method: Method) -> str:
        """The name of a method, with a dagger if all its results are of an earlier state."""
        return method.label + (DAGGER if self.is_old(method) else "")

    def cell(self, row: Row, method: Method, measure: Measure) -> Cell:
        """Mean and standard error of a measure, or its median and range."""
        found = [
            (value, record)
            for record in self._records.get((row, method.label), [])
            if (value := self._figure(record, measure)) is not None
        ]
        values, n_planned = [value for value, _ in found], self._planned[row, method.label]
        n_old = sum(not record.is_of_today for _, record in found)
        if not values:
            return Cell(math.nan, math.nan, 0, n_planned)
        if measure.is_median:
            ends = (min(values), max(values))
            return Cell(statistics.median(values), math.nan, len(values), n_planned, ends, n_old)
        error = clustered_error(values, [record.task.graph for _, record in found])
        return Cell(statistics.fmean(values), error, len(values), n_planned, None, n_old)

    def runs(self, row: Row, method: str) -> tuple[Record, ...]:
        """The runs of a cell that have a result."""
        return tuple(self._records.get((row, method), ()))

    def seconds_by_size(self, method: Method) -> dict[int, float]:
        """Median seconds by the number of observed variables."""
        found = {row: self.cell(row, method, MEASURES["seconds"]).value for row in self.rows if isinstance(row, int)}
        return {size: seconds for size, seconds in found.items() if seconds > 0}

    def _figure(self, record: Record, measure: Measure) -> float | None:
        """The figure of a run; times are against our run on the same graph, seed and sample size."""
        if measure.name == "times":
            ours = self._ours.get(_place(record.task))
            return None if not ours else record.outcome.seconds / ours
        figure = getattr(record.outcome, measure.name)
        return None if figure is None else float(figure)

    def published(self, row: Row, method: str, measure: Measure) -> Entry:
        """The paper's figure for a cell."""
        if self.layout.paper is None:
            return Entry(NOTHING)
        figure = paper.cell(self.layout.paper, method, row, measure.name)
        return Entry(figure.text if figure else NOTHING)


def _place(task: Task) -> tuple[Any, ...]:
    """What two runs share that are compared with one another."""
    return task.graph, task.seed, task.n_samples, task.categories, task.missing


def _entries(cells: Sequence[Cell], measure: Measure, marked: Sequence[bool]) -> list[Entry]:
    """Cells as printed. Those with all their runs, or as many as any, compete; what prints like the best is best.

    ``marked`` says of each whether a dagger stands at the name of its method already.
    """
    most = max((cell.n for cell in cells), default=0)
    fair = [cell.n > 0 and cell.n in (cell.n_planned, most) for cell in cells]
    rounded = [float(measure.text(cell.value)) if is_fair else math.nan for cell, is_fair in zip(cells, fair)]
    competing = [value for value in rounded if not math.isnan(value)]
    best = math.nan
    if measure.larger_is_better is not None and len(competing) > 1:
        best = max(competing) if measure.larger_is_better else min(competing)
    return [
        Entry(cell.text(measure, mark=not is_marked), value == best)
        for cell, value, is_marked in zip(cells, rounded, marked, strict=True)
    ]


def _columns_of_methods(cells: Cells) -> list[Block]:
    """A grid for each measure; a row for each size, a column for each method, then the paper's columns."""
    theirs = tuple(dict.fromkeys(m.paper for m in cells.methods if m.paper is not None))
    marked = [cells.is_old(method) for method in cells.methods]
    blocks = []
    for measure in (MEASURES[name] for name in cells.layout.measures):
        shown = [
            name for name in theirs if any(cells.published(row, name, measure).text != NOTHING for row in cells.rows)
        ]
        header = [AXIS_TITLES[cells.layout.rows], *map(cells.label, cells.methods), *(f"paper: {x}" for x in shown)]
        rows = [
            (
                Entry(str(row)),
                *_entries([cells.cell(row, method, measure) for method in cells.methods], measure, marked),
                *(cells.published(row, name, measure) for name in shown),
            )
            for row in cells.rows
        ]
        blocks.append(Block(measure.caption, tuple(header), tuple(rows)))
    return blocks


def _rows_of_methods(cells: Cells) -> list[Block]:
    """One grid; a row for each method, a column for each measure, the paper's beside it."""
    return [_grid("", cells.rows[0], cells.methods, cells)]


def _blocks_of_data(cells: Cells) -> list[Block]:
    """Such a grid for each data set, with the methods that were to run on it."""
    return [
        _grid(str(row), row, [m for m in cells.methods if cells.is_planned(row, m)], cells, AXIS_TITLES["data"])
        for row in cells.rows
    ]


def _grid(caption: str, row: Row, methods: Sequence[Method], cells: Cells, title: str = AXIS_TITLES["method"]) -> Block:
    header, columns = [title], [[Entry(cells.label(m)) for m in methods]]
    marked = [cells.is_old(m) for m in methods]
    for measure in (MEASURES[name] for name in cells.layout.measures):
        found = [cells.cell(row, m, measure) for m in methods]
        header.append(measure.heading if any(cell.n > 1 for cell in found) else measure.title)
        columns.append(_entries(found, measure, marked))
        theirs = [cells.published(row, m.paper or "", measure) for m in methods]
        if any(entry.text != NOTHING for entry in theirs):
            header.append("paper")
            columns.append(theirs)
    return Block(caption, tuple(header), tuple(zip(*columns)))


# ---------------------------------------------------------------------------------------------------- notes


def _notes(experiment: Experiment, tasks: Sequence[Task], used: Sequence[Record], n_left_out: int) -> list[str]:
    real = experiment.layout.rows == "data"
    what = "The bundled correlation matrices" if real else "Mean (standard error, clustered by graph)"
    seed = "" if real else f", experiment seed {experiment.seed}"
    notes = [f"{what}: {_count(used, tasks, 'data sets' if real else 'graphs')}{seed}."]
    if used:
        notes.append(_provenance(used))
    if experiment.layout.paper and not real:
        notes.append(
            "The paper's figures are for graphs of its own, which are not published, and for its own machine; ours are "
            "for graphs of the same kind. Its SHD is our `SHD, the paper's way`."
        )
    notes += _alike(
        (m.label, f"run on rows with {m.noise} noise.")
        for m in experiment.methods
        if m.noise not in (None, experiment.noise)
    )
    notes += _limits(experiment, tasks)
    notes += _old(used)
    notes += _failures(used)
    if n_left_out:
        notes.append(f"Left out: {n_left_out} other records of the file, of runs this table does not have.")
    return notes


def _count(used: Sequence[Record], tasks: Sequence[Task], of: str) -> str:
    graphs, seeds = {task.graph for task in tasks}, {task.seed for task in tasks}
    each = f"{len(seeds)} seeds" if len(seeds) > 1 else "one seed"
    where = "" if of == "data sets" else f", {each} each"
    return f"{len(used)} of {len(tasks)} runs on {len(graphs)} {of}{where}"


def _provenance(used: Sequence[Record]) -> str:
    """Programs, machine, days."""
    where = [record.circumstances for record in used]
    dates = sorted({c.date for c in where})
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    jobs = _joined(str(c.n_jobs) for c in where)
    return (
        f"unmeasured {_joined(c.version for c in where)}, Python {_joined(c.python for c in where)}, numpy "
        f"{_joined(c.numpy for c in where)}; {_joined(c.machine for c in where)}; runs at once: {jobs}; {days}."
    )


def _old(used: Sequence[Record]) -> list[str]:
    """What a dagger means, and how many runs of a method it stands for where that is not all."""
    made = Counter(record.task.method for record in used)
    old = Counter(record.task.method for record in used if not record.is_of_today)
    if not old:
        return []
    some = "; ".join(f"{method}: {n} of {made[method]} runs" for method, n in old.items() if n < made[method])
    return [
        f"{DAGGER} Made by an earlier state of the method's code{f' ({some})' if some else ''}: runs may not repeat. "
        "`--renew` makes them again."
    ]


def _limits(experiment: Experiment, tasks: Sequence[Task]) -> list[str]:
    largest = max(task.n_observed for task in tasks)
    sizes = {task.n_observed for task in tasks}
    methods = experiment.methods
    return [
        *_alike(
            (m.label, f"{', '.join(map(str, m.n_observed))} observed variables only.")
            for m in methods
            if m.n_observed is not None and set(m.n_observed) < sizes
        ),
        *_alike(
            (m.label, f"not run beyond {m.max_observed} observed variables.")
            for m in methods
            if m.max_observed is not None and m.max_observed < largest
        ),
        *_alike(
            (m.label, f"{'seeds' if len(m.seeds) > 1 else 'seed'} {', '.join(map(str, m.seeds))} only.")
            for m in methods
            if m.seeds is not None and set(m.seeds) < set(experiment.seeds)
        ),
    ]


def _alike(said: Iterable[tuple[str, str]]) -> list[str]:
    """A note for each thing that is said of methods, and who they are."""
    methods: dict[str, list[str]] = {}
    for method, what in said:
        methods.setdefault(what, []).append(method)
    return [f"{'; '.join(labels)}: {what}" for what, labels in methods.items()]


def _exponents(cells: Cells) -> list[str]:
    """How seconds grow with the number of observed variables, where the table asks for it."""
    if not cells.layout.exponent:
        return []
    notes = []
    for method in cells.methods:
        known = cells.seconds_by_size(method)
        if len(known) > 2:
            notes.append(
                f"{method.label}: seconds grow as the number of observed variables to the power "
                f"{growth(known):.2f}, fitted on the logarithms of {min(known)} to {max(known)}."
            )
    return notes


def growth(seconds: Mapping[int, float]) -> float:
    """The exponent of a power law through median seconds by size: the least-squares slope of the logarithms.

    >>> round(growth({10: 2.0, 20: 16.0, 40: 128.0}), 6)
    3.0
    """
    slope, _ = statistics.linear_regression(list(map(math.log, seconds)), list(map(math.log, seconds.values())))
    return slope


def _failures(used: Sequence[Record]) -> list[str]:
    """For each method with failures, how many and the reasons, most frequent first."""
    made = Counter(record.task.method for record in used)
    reasons: dict[str, Counter[str]] = {}
    for record in sorted(used, key=lambda record: record.task.key):
        if record.outcome.failure is not None:
            reasons.setdefault(record.task.method, Counter())[record.outcome.failure] += 1
    return [_failure_note(method, made[method], counts) for method, counts in reasons.items()]


def _failure_note(method: str, n_made: int, reasons: Mapping[str, int]) -> str:
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    shown = "; ".join(f"{n} times: {reason}" if n > 1 else reason for reason, n in ordered[:MOST_REASONS])
    more = f" And {len(ordered) - MOST_REASONS} other reasons." if len(ordered) > MOST_REASONS else ""
    return f"{method}: {sum(reasons.values())} of {n_made} runs failed; {shown}{more}"


def _joined(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))


# --------------------------------------------------------------------------------------------------- layout


def _marked(row: Sequence[Entry], mark: str) -> list[str]:
    return [mark.format(entry.text) if entry.is_best else entry.text for entry in row]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["   ".join(part.ljust(width) for part, width in zip(row, widths)).rstrip() for row in rows]


def _piped(parts: Sequence[str]) -> str:
    return "| " + " | ".join(part.replace("|", "\\|") for part in parts) + " |"


def _with_caption(caption: str, gap: str, lines: Sequence[str]) -> str:
    return "\n".join([caption + gap, *lines] if caption else lines)
