"""Pictures of the tables, from records alone.

Accuracy against N, seconds against the number of variables, sensitivity to an option: two panels each. Bars are
standard errors, clustered by graph; of medians of seconds they reach from the least to the most. Lines carry their
names at their ends; colours are Paul Tol's, which all common kinds of colour vision tell apart, one for each family of
methods, dashed for its variants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from benchmarks import experiment, paper
from benchmarks.experiment import Experiment, Method
from benchmarks.measures import MEASURES, OURS, Measure
from benchmarks.run_records import read_records
from benchmarks.tables import DAGGER, Cells, cells_of
from unmeasured.files import write_bytes

_COLOURS = {
    "LGES": "#332288",
    "FOFC": "#CC6677",
    "RankClusters": "#117733",
    "TwoStage": "#999933",
    "RLCD": "#AA4499",
    "GIN": "#44AA99",
    "ExactSearch": "#882255",
}
_INK, _PAPER = "#222222", "#777777"
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
# Heights of labels are kept apart by this part of a panel's height.
_GAP = 0.062
# The longest label inside a panel, as a part of its width.
_WIDTH = 0.25
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _INK,
    "svg.hashsalt": "unmeasured",  # the same records give the same file
}


@dataclass(frozen=True)
class Line:
    """One curve of a panel: its points, their bars (down, up), and how it looks."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    bars: tuple[tuple[float, float], ...]
    colour: str
    dash: Any = "-"
    width: float = 1.3


def draw_all(records: Path, out: Path) -> tuple[Path, ...]:
    """Draw every picture there are records for, as SVG and PNG, and return the files."""
    out.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for name, draw in PICTURES.items():
        path = records / f"{name}.jsonl"
        found = read_records(path) if path.exists() else []
        if found:
            asked = experiment.load(name)
            cells = cells_of(asked, found)
            figure = draw(cells, asked)
            if any(map(cells.is_old, cells.methods)):
                figure.text(0.06, -0.05, f"{DAGGER} made by an earlier state of the code", fontsize=8, color=_PAPER)
            files += _saved(figure, out / f"bench-{name}")
    return tuple(files)


def pictures_of(name: str, images: Path) -> tuple[str, ...]:
    """The picture of an experiment, by the name of its file, where it has been drawn."""
    file = images / f"bench-{name}.svg"
    return (file.name,) if file.exists() else ()


def _saved(figure: Figure, stem: Path) -> Iterator[Path]:
    for suffix, extra in ((".svg", {"metadata": {"Date": None}}), (".png", {"dpi": 160})):
        path = stem.with_suffix(suffix)
        with mpl.rc_context(_STYLE):
            picture = BytesIO()
            figure.savefig(picture, format=suffix[1:], bbox_inches="tight", facecolor="white", **extra)
        write_bytes(path, picture.getvalue())
        yield path


# ------------------------------------------------------------------------------------------------- pictures


def accuracy(cells: Cells, asked: Experiment) -> Figure:
    """F1 and SHD against the number of samples, all methods."""
    figure, (left, right) = _panels(asked.title)
    theirs = _of_the_paper(cells, "f1")
    _panel(left, [*_curves(cells, "f1"), *theirs], MEASURES["f1"], "N", log_y=False)
    _panel(right, _curves(cells, "shd"), MEASURES["shd"], "N", log_y=False)
    return figure


def growth(cells: Cells, asked: Experiment) -> Figure:
    """Seconds and F1 against the number of observed variables; seconds on a logarithmic scale."""
    figure, (left, right) = _panels(asked.title)
    _panel(left, _curves(cells, "seconds"), MEASURES["seconds"], "observed variables", log_y=True)
    _panel(right, _curves(cells, "f1"), MEASURES["f1"], "observed variables", log_y=False)
    return figure


def sensitivity(option: str) -> Callable[[Cells, Experiment], Figure]:
    """F1 and SHD against the value of an option, which the methods of the experiment differ by."""

    def draw(cells: Cells, asked: Experiment) -> Figure:
        figure, panels = _panels(asked.title)
        values = {m: float(m.options[option]) for m in cells.methods}
        # Beside the paper's SHD only ours counted its way can stand.
        for axes, name in zip(panels, ("f1", "shd_paper" if cells.layout.paper else "shd")):
            lines = [_line_over(values, cells, MEASURES[name]), *_paper_over(values, cells, name)]
            _panel(axes, lines, MEASURES[name], option, log_y=False, x_values=sorted(values.values()))
        return figure

    return draw


PICTURES: Mapping[str, Callable[[Cells, Experiment], Figure]] = {
    "table1": accuracy,
    "table2-uniform": accuracy,
    "table2-leaky-relu": accuracy,
    "realistic": accuracy,
    "scaling": growth,
    "table4": growth,
    "table5": sensitivity("delta"),
    "penalty": sensitivity("penalty"),
}


# --------------------------------------------------------------------------------------------------- curves


def _curves(cells: Cells, name: str) -> list[Line]:
    """A line for each method that has results, over the rows of the table."""
    seen = {"LGES": 0}  # whose first variant is the one drawn solid and bold, wherever it stands
    lines = []
    for method in cells.methods:
        is_ours = method.label == OURS
        variant = 0 if is_ours else seen.get(method.constructor, -1) + 1
        seen[method.constructor] = max(seen.get(method.constructor, 0), variant)
        found = {row: cells.cell(row, method, MEASURES[name]) for row in cells.rows if isinstance(row, int)}
        kept = {row: cell for row, cell in found.items() if cell.n}
        if kept:
            lines.append(
                Line(
                    cells.label(method),
                    tuple(kept),
                    tuple(cell.value for cell in kept.values()),
                    tuple(cell.bars for cell in kept.values()),
                    _COLOURS.get(method.constructor, _INK),
                    _DASHES[variant % len(_DASHES)],
                    2.2 if is_ours else 1.3,
                )
            )
    return lines


def _of_the_paper(cells: Cells, measure: str) -> list[Line]:
    """The paper's own LGES."""
    table = cells.layout.paper
    if table is None or "LGES" not in paper.methods(table):
        return []
    rows = [row for row in cells.rows if isinstance(row, int)]
    found = {row: published for row in rows if (published := paper.cell(table, "LGES", row, measure))}
    return [_published_line({float(row): figure for row, figure in found.items()}, "paper, its graphs")]


def _line_over(values: Mapping[Method, float], cells: Cells, measure: Measure) -> Line:
    found = [(value, cells.cell(cells.rows[0], method, measure)) for method, value in values.items()]
    kept = [(value, cell) for value, cell in found if cell.n]
    mark = DAGGER if any(cell.n_old for _, cell in kept) else ""
    return Line(
        f"ours{mark}" if cells.layout.paper else "",
        tuple(value for value, _ in kept),
        tuple(cell.value for _, cell in kept),
        tuple(cell.bars for _, cell in kept),
        _COLOURS["LGES"],
        width=2.2,
    )


def _paper_over(values: Mapping[Method, float], cells: Cells, measure: str) -> list[Line]:
    table, row = cells.layout.paper, cells.rows[0]
    if table is None:
        return []
    found = {
        value: published
        for method, value in values.items()
        if (published := paper.cell(table, method.paper or "", row, measure))
    }
    return [_published_line(found, "paper, its graphs")]


def _published_line(figures: Mapping[float, paper.Published], label: str) -> Line:
    return Line(
        label,
        tuple(figures),
        tuple(figure.mean or 0.0 for figure in figures.values()),
        tuple((figure.error or 0.0,) * 2 for figure in figures.values()),
        _PAPER,
        _DASHES[2],
    )


# --------------------------------------------------------------------------------------------------- panels


def _panels(title: str) -> tuple[Figure, Sequence[Axes]]:
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(10, 4.2))
        panels = figure.subplots(1, 2, gridspec_kw={"wspace": 0.62, "left": 0.06, "right": 0.86, "top": 0.84})
    figure.suptitle(title, x=0.06, y=0.97, ha="left", fontsize=11, color=_INK)
    return figure, list(panels)


def _panel(
    axes: Axes,
    lines: Sequence[Line],
    measure: Measure,
    x_title: str,
    *,
    log_y: bool,
    x_values: Sequence[float] | None = None,
) -> None:
    """Curves with their standard errors over a logarithmic x, and their names to the right of their ends."""
    ticks = x_values or sorted({x for line in lines for x in line.x})
    axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for line in lines:
        axes.errorbar(
            line.x, line.y, yerr=list(zip(*line.bars)), color=line.colour, linestyle=line.dash, linewidth=line.width,
            elinewidth=0.8, marker="o", markersize=3.2, markeredgewidth=0, clip_on=False,
        )  # fmt: skip
    if measure.larger_is_better and not log_y:
        axes.set_ylim(0, 1.02)
    elif not log_y:
        axes.set_ylim(bottom=0)
    axes.set_xticks(ticks, [f"{tick:g}" if tick in _apart(ticks) else "" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel(x_title)
    axes.set_title(measure.caption, fontsize=9, loc="left", color=_INK)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    _name_lines(axes, [line for line in lines if line.label])


def _apart(ticks: Sequence[float]) -> set[float]:
    """Those of the ticks whose labels have room on a logarithmic scale: a twelfth of its length to the one before."""
    room = (ticks[-1] / ticks[0]) ** (1 / 12)
    kept = [ticks[0]]
    for tick in ticks[1:]:
        if tick >= room * kept[-1]:
            kept.append(tick)
    return set(kept)


def _name_lines(axes: Axes, lines: Sequence[Line]) -> None:
    """Labels at the lines' ends: right of the panel, or inside it where a line ends early, kept from overlapping."""
    to_panel = axes.transData + axes.transAxes.inverted()
    points = [to_panel.transform((line.x[-1], line.y[-1])) for line in lines]
    ends = [(float(x), float(y)) for x, y in points]
    # Labels of lines that end in the last third would run into those outside.
    columns = [1.05 if x > 0.65 else x + 0.03 for x, _ in ends]
    for here in _side_by_side(columns):
        for i, height in zip(here, spread([ends[i][1] for i in here], _GAP)):
            _name(axes, lines[i], *ends[i], height, columns[i])


def _side_by_side(columns: Sequence[float]) -> list[list[int]]:
    """Labels that begin so close to each other, from left to right, that they have to differ in height.

    >>> _side_by_side([0.4, 1.05, 0.55, 0.1])
    [[3], [0, 2], [1]]
    """
    order = sorted(range(len(columns)), key=lambda i: columns[i])
    sets = [order[:1]]
    for before, i in pairwise(order):
        if columns[i] - columns[before] < _WIDTH:
            sets[-1].append(i)
        else:
            sets.append([i])
    return sets


def _name(axes: Axes, line: Line, x: float, y: float, height: float, place: float) -> None:
    axes.plot(
        [x + 0.012, place], [y, height], transform=axes.transAxes, color=line.colour, linewidth=0.5, clip_on=False
    )
    axes.text(
        place + 0.01, height, line.label, transform=axes.transAxes, va="center", fontsize=8, color=line.colour,
        weight="bold" if line.width > 2 else "normal", zorder=5,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )  # fmt: skip


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Heights moved as little as a simple rule can so that no two are closer than ``gap`` and none is above 1.

    >>> spread([0.5, 0.9, 0.51], 0.1)
    [0.5, 0.9, 0.6]
    >>> spread([1.0, 1.0], 0.1)
    [0.9, 1.0]
    """
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    for below, i in pairwise(order):
        placed[i] = max(placed[i], placed[below] + gap)
    top = 1.0
    for i in reversed(order):
        placed[i] = min(placed[i], top)
        top = placed[i] - gap
    return placed
