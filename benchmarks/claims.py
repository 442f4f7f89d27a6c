"""Figures of the documentation that come from records: sections made from templates, like the page of benchmarks.

A template in ``benchmarks/`` is the text of one section, with places such as ``{{ series("table1", "LGES (bic)") }}``;
:func:`sections` says which template belongs to which section of which page. Figures made by an earlier state of the
code carry a dagger, as they do in the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from benchmarks import experiment, paper
from benchmarks.measures import MEASURES, OURS
from benchmarks.run_records import read_records
from benchmarks.studies import Study, read_studies
from benchmarks.tables import DAGGER, Cell, Cells, Row, cells_of, growth
from unmeasured.errors import UnmeasuredError

# Page, heading of the section, template.
SECTIONS = (
    ("README.md", "## Evidence", "evidence.md"),
    ("docs/scaling.md", "## Figures", "scaling-figures.md"),
    ("docs/knowledge.md", "## Evaluation", "knowledge-worth.md"),
)


def sections(root: Path) -> Iterator[tuple[Path, str]]:
    """The pages of a copy of the repository that hold figures, with these sections made anew."""
    for page, heading, template in SECTIONS:
        source = root / "benchmarks" / template
        if source.exists() and (root / page).exists():
            text = (root / page).read_text(encoding="utf-8")
            made = filled(source.read_text(encoding="utf-8"), root / "benchmarks" / "records")
            yield root / page, with_section(text, heading, made, page)


def with_section(text: str, heading: str, section: str, page: str = "The page") -> str:
    r"""A page with the text below a heading, up to the next of its level, replaced.

    >>> with_section("# A\n\n## B\n\nold\n\n## C\n", "## B", "new")
    '# A\n\n## B\n\nnew\n\n## C\n'
    """
    level = heading.split(" ")[0]
    place = re.compile(rf"^{re.escape(heading)}\n(.*?)(?=^{level} |\Z)", flags=re.MULTILINE | re.DOTALL)
    if not place.search(text):
        raise UnmeasuredError(f"{page} has no section {heading!r}.")
    end = "\n\n" if place.search(text).end() < len(text) else "\n"  # type: ignore[union-attr]
    return place.sub(lambda _: f"{heading}\n\n{section.strip()}{end}", text, count=1)


def filled(template: str, records: Path) -> str:
    """A template with its places filled from the records of a folder."""
    figures = Figures(records)
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    names = (
        "series",
        "ends",
        "figure",
        "each",
        "mark",
        "median",
        "times",
        "published",
        "study",
        "size",
        "errors",
        "power",
    )
    try:
        return environment.from_string(template).render({name: getattr(figures, name) for name in names})
    except jinja2.TemplateError as error:
        raise UnmeasuredError(f"The template cannot be filled: {error}.") from None


class Figures:
    """What templates can ask of the records of a folder."""

    def __init__(self, records: Path) -> None:
        self._records = records
        self._cells = cache(self._read)

    def _read(self, name: str) -> Cells:
        return cells_of(experiment.load(name), read_records(self._records / f"{name}.jsonl"))

    def _cell(self, name: str, method: str, row: Row | None, measure: str) -> Cell:
        cells = self._cells(name)
        known = [m for m in cells.methods if m.label == method]
        if not known:
            raise UnmeasuredError(f"Experiment {name!r} has no method {method!r}.")
        cell = cells.cell(cells.rows[0] if row is None else row, known[0], MEASURES[measure])
        if not cell.n:
            raise UnmeasuredError(f"There are no records of {method!r} in {name!r} for {row!r} and {measure}.")
        return cell

    def figure(self, name: str, method: str, row: Row, measure: str = "f1", digits: int = 2) -> str:
        """One cell: a mean, or the median of a time; its mark is left to :meth:`mark`."""
        return short(self._cell(name, method, row, measure).value, digits)

    def mark(self, name: str, *methods: str) -> str:
        """A dagger where records of these methods were made by an earlier state of their code."""
        cells = self._cells(name)
        runs = [run for row in cells.rows for method in methods for run in cells.runs(row, method)]
        return "" if all(run.is_of_today for run in runs) else DAGGER

    def series(self, name: str, method: str, measure: str = "f1", digits: int = 2) -> str:
        """The cells of all rows, one after the other."""
        cells = [self._cell(name, method, row, measure) for row in self._cells(name).rows]
        return " ".join(short(cell.value, digits) for cell in cells) + _mark(cells)

    def ends(self, name: str, method: str, measure: str = "f1", digits: int = 2) -> str:
        """The cells of the first and the last row."""
        rows = self._cells(name).rows
        cells = [self._cell(name, method, row, measure) for row in (rows[0], rows[-1])]
        return " and ".join(short(cell.value, digits) for cell in cells) + _mark(cells)

    def errors(self, name: str, method: str, measure: str = "f1", digits: int = 3) -> str:
        """The smallest and the largest standard error of a method's cells."""
        errors = [self._cell(name, method, row, measure).error for row in self._cells(name).rows]
        return f"{short(min(errors), digits)} to {short(max(errors), digits)}"

    def each(self, name: str, method: str, row: Row, measure: str) -> list[str]:
        """The figures of all runs of a cell, in the order of graphs and seeds; their mark is left to :meth:`mark`."""
        runs = sorted(self._cells(name).runs(row, method), key=lambda record: (record.task.graph, record.task.seed))
        return [_by_size(getattr(run.outcome, measure), measure) for run in runs]

    def median(self, name: str, method: str, row: Row | None = None) -> str:
        """Median seconds."""
        cell = self._cell(name, method, row, "seconds")
        return f"{cell.value:.2g}" + (DAGGER if cell.n_old else "")

    def times(self, name: str, method: str) -> str:
        """Median over graphs of how many times the seconds of LGES() a method takes."""
        cell, ours = self._cell(name, method, None, "times"), self._cell(name, OURS, None, "times")
        return MEASURES["times"].text(cell.value) + (DAGGER if cell.n_old or ours.n_old else "")

    def power(self, name: str, method: str) -> str:
        """The power of the number of variables that seconds grow with."""
        cells = self._cells(name)
        return f"{growth(cells.seconds_by_size(next(m for m in cells.methods if m.label == method))):.1f}"

    def published(self, table: str, method: str, measure: str = "f1") -> str:
        """The paper's figures of a method, over the rows of its table."""
        found = [cell for (name, _, what), cell in paper.TABLES[table].items() if (name, what) == (method, measure)]
        return " ".join(short(cell.mean, 2) for cell in found if cell.mean is not None)

    def study(self, name: str) -> _Told:
        """The figures of a study without a table."""
        kept = read_studies(self._records / "studies.json")
        if name not in kept:
            raise UnmeasuredError(f"There are no figures of the study {name!r}.")
        return _Told(kept[name])

    def size(self, name: str) -> str:
        """How many variables the graphs of an experiment have, latents included."""
        sizes = [len(structure.dag.names) for structure in experiment.load(name).graphs.structures() if structure.dag]
        return f"{min(sizes)} to {max(sizes)}"


class _Told:
    """A study's figures as attributes, and its mark."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self.mark = "" if study.is_of_today else DAGGER
        self.command = study.command

    def __getattr__(self, name: str) -> Any:
        try:
            return self._study.figures[name]
        except KeyError:
            raise UnmeasuredError(f"The study of {self._study.command!r} has no figure {name!r}.") from None

    def short(self, name: str, digits: int = 3) -> str:
        """A figure between 0 and 1, as articles print it."""
        return short(getattr(self, name), digits)


def short(value: float, digits: int) -> str:
    """A figure without the zero before its point.

    >>> short(0.904, 2), short(1.0, 2), short(12.4, 0)
    ('.90', '1.00', '12')
    """
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if 0 <= value < 1 and digits else text


def _mark(cells: list[Cell]) -> str:
    return DAGGER if any(cell.n_old for cell in cells) else ""


def _by_size(value: float, measure: str) -> str:
    if measure in ("seconds", "peak_mib"):
        return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
    return short(value, MEASURES[measure].digits)
