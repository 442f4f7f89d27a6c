"""One piece of work from data to an edited model; everything the page shows is in :meth:`Project.state`.

A project knows nothing of the web. What it is given from outside is checked here: names of columns against the data,
options against what there is, and no text is ever taken for the name of a file.
"""

from __future__ import annotations

import io
import json
import math
import threading
import time
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import unmeasured as um
from unmeasured.app.models import Model, edited
from unmeasured.app.words import in_the_page
from unmeasured.data.files.unpack import MOST_UNPACKED, check_archive, checked_limit
from unmeasured.data.prepare import chosen_columns, prepared
from unmeasured.data.sample import labels_of
from unmeasured.errors import listing
from unmeasured.models.estimate import split_rows_by_group
from unmeasured.models.fit import Fit
from unmeasured.output.report.groups import Shared
from unmeasured.output.report.html import diagram_data, html_page
from unmeasured.output.report.lead import lead
from unmeasured.output.report.run import About, Comparison, Run
from unmeasured.results.drawing import picture_of
from unmeasured.search.data_check import Finding
from unmeasured.validation.replicates.result import Stability

TEXT_FILES = (".csv", ".tsv", ".txt", ".dat")
STATISTICS_FILES = (".sav", ".zsav", ".por", ".dta")
EXCEL_FILES = (".xlsx", ".xlsm")
FILES = (*TEXT_FILES, *STATISTICS_FILES, *EXCEL_FILES, ".parquet")
PROJECT = ".unmeasured"
ROLES = ("item", "covariate", "outcome", "group", "omit")
KINDS = ("auto", "continuous", "ordinal")
_PARTS = ("project.json", "data", "result.json", "stability.json", "groups.json")
_COR = ("auto", "pearson", "polychoric", "spearman-normal")
_MISSING = ("ml", "listwise", "pairwise")
_INDICES = ("chi2", "df", "pvalue", "rmsea", "cfi", "tli", "srmr", "aic", "bic")
_MOST_UNDONE = 200
_MOST_GROUPS = 50  # of people
_NO_NAMES = "the first line has no names of columns"  # the page's words


@dataclass
class Column:
    """A column of the data and what is to be done with it."""

    name: str
    label: str
    is_number: bool
    n_missing: int
    n_values: int
    low: float | None
    high: float | None
    role: str = "item"
    kind: str = "auto"  # or what the user says it is
    is_reversed: bool = False
    codes: list[float] = field(default_factory=list)  # values that mean "missing"


class Project:
    """Data, choices, result and edits of one browser page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self._reset()

    def _reset(self) -> None:
        self.name = ""
        self.file: Path | None = None
        self.frame: pd.DataFrame | None = None
        self.matrix: pd.DataFrame | None = None
        self.n: float = 0.0
        self.columns: list[Column] = []
        self.options: dict[str, Any] = {"cor": "auto", "missing": "ml", "max_group_size": 3, "penalty": 1.0}
        self.options |= {"time_limit": None, "tolerance": None, "n_latents": None}  # None: auto
        self.sheets: list[str] = []
        self.sheet = ""
        self.has_header = True
        self.knowledge: dict[str, Any] = {}
        self.run: Run | None = None
        self.stability: Stability | None = None
        self.people: dict[str, Any] | None = None  # estimates of groups of people, as results.group_record has them
        self.models: list[Model] = []
        self.at = 0
        self._sample: um.Sample | None = None
        self._fits: dict[Model, Fit] = {}
        self._seconds: dict[Model, float] = {}  # that each fit took
        self._results: dict[Model, um.Result] = {}  # of the last model that was edited

    # Data -------------------------------------------------------------------------------------------------

    def open_file(self, name: str, content: bytes, *, has_header: bool = True) -> None:
        """Rows, or a project that was saved; ``name`` is for people, and for its ending."""
        ending = Path(name).suffix.lower()
        if ending == PROJECT:
            self._open_project(content)
            return
        if ending not in FILES:
            raise um.DataError(
                f"Files of type {ending or 'without ending'!r} are not read here; known are {listing(FILES, 20)}, and "
                f"projects that were saved here ({PROJECT})."
            )
        if not content:
            raise um.DataError(f"{name!r} is empty.")
        path = self._new_file(f"data{ending}", content)
        other = Project(self.folder)
        other.name, other.has_header = name, has_header
        try:
            other.sheets = _sheets(path)
            other._read_first(path)
        except um.UnmeasuredError as error:
            path.unlink()
            # The name the user knows, not that of our copy; and what can be done in the page.
            text = str(error).replace(str(path), name).replace(path.name, name)
            before, line, _ = text.partition("Add a line of names")
            text = f"{before}{line}, or tick {_NO_NAMES!r} and open it again." if line else text
            raise um.DataError(text) from None
        other.file = _kept(path)
        self._become(other)

    def open_sheet(self, sheet: str) -> None:
        """Another sheet of the workbook that is open; what was chosen and found with the last one is dropped."""
        if sheet not in self.sheets or self.file is None:
            raise um.DataError(f"There is no sheet {sheet[:80]!r}. There are {listing(self.sheets) or 'none'}.")
        other = Project(self.folder)
        other.name, other.file, other.sheets, other.has_header = self.name, self.file, self.sheets, self.has_header
        other._read(self.file, sheet)
        self._become(other)

    def _read_first(self, path: Path) -> None:
        """Take the rows of a file; of a workbook, of the first sheet that can be read."""
        for sheet in self.sheets[:-1]:
            try:
                return self._read(path, sheet)
            except um.UnmeasuredError:
                continue
        return self._read(path, self.sheets[-1] if self.sheets else "")

    def _read(self, path: Path, sheet: str = "") -> None:
        """Take the rows of a file."""
        header = False if not self.has_header and path.suffix in (*TEXT_FILES, ".xlsx", ".xlsm") else None
        frame = um.read(path, header=header, sheet=sheet or 0, blocks=False)
        self.sheet = sheet
        if path.suffix in TEXT_FILES and len(frame) <= len(frame.columns) + 1 and _is_matrix(path):
            raise um.DataError(
                f"{path.name!r} holds a covariance or correlation matrix, not rows. Paste it as text in the box for a "
                "matrix, with the number of persons it was made from."
            )
        self._take(frame)

    def _become(self, other: Project) -> None:
        for key, value in vars(other).items():
            if key not in ("lock", "folder"):
                setattr(self, key, value)

    def open_matrix(self, text: str, n: float) -> None:
        """A matrix as an article prints it, and the number of samples behind it."""
        if not isinstance(n, int | float) or not n > 1:
            raise um.DataError("A matrix needs the number of samples it was made from, a number greater than 1.")
        if not text.strip():
            raise um.DataError("There is no matrix. Paste its rows, with the names of the variables above or beside.")
        # As a file: text alone could be taken for the name of one.
        path = self._new_file("matrix.txt", text.encode("utf-8", errors="replace"))
        try:
            matrix = um.read_matrix(path)
        except um.UnmeasuredError:
            path.unlink()
            raise
        self._reset()
        self.name, self.file = "a matrix that was pasted", _kept(path)
        self._take_matrix(matrix, float(n))

    def _new_file(self, name: str, content: bytes) -> Path:
        """A file to read from; the one of the project that is open is replaced only when all of it was read."""
        folder = self.folder / "new"
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_bytes(content)
        return path

    def open_dataset(self, name: str) -> None:
        """One of the bundled data sets."""
        data = um.datasets.load(name)
        path = self.folder / "matrix.txt"
        path.write_text(data.frame().to_csv(), encoding="utf-8")
        self._reset()
        self.name, self.file = data.title, path
        self._take_matrix(data.frame(), float(data.n_samples))

    def _take_matrix(self, matrix: pd.DataFrame, n: float) -> None:
        matrix.columns = matrix.index = pd.Index([str(name) for name in matrix.columns])
        self.matrix, self.n = matrix, n
        um.as_sample(cov=matrix, n_samples=n)  # refuses what is no matrix
        labels = labels_of(matrix, list(matrix.columns))
        self.columns = [Column(name, labels.get(name, ""), True, 0, 0, None, None) for name in matrix.columns]

    def _take(self, frame: pd.DataFrame) -> None:
        frame.columns = pd.Index([str(name) for name in frame.columns])
        if frame.columns.has_duplicates:
            twice = listing(frame.columns[frame.columns.duplicated()].unique())
            raise um.DataError(f"Two columns have the same name: {twice}.")
        self.frame = frame
        labels = labels_of(frame, list(frame.columns))
        self.columns = [_column(frame[name], labels.get(str(name), "")) for name in frame.columns]
        # What is probably no indicator starts outside of the search; the user decides.
        numeric = [column.name for column in self.columns if column.role == "item"]
        for suspect in _suspects(frame[numeric]) if len(numeric) > 1 else ():
            next(column for column in self.columns if column.name == suspect).role = "omit"

    # Choices ----------------------------------------------------------------------------------------------

    def choose(self, columns: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        """What each column is, and how data are treated; what was found with other choices is dropped."""
        known = {column.name: column for column in self.columns}
        changed = []
        for entry in columns:
            old = known.get(str(entry.get("name")))
            if old is None:
                raise um.DataError(f"The data have no column {str(entry.get('name'))!r}.")
            changed.append(self._chosen(old, entry))
        by_name = {column.name: column for column in changed}
        new = [by_name.get(column.name, column) for column in self.columns]
        said = [column.name for column in changed if column.role == "group"]
        if said:  # one column names the groups: the last that was chosen
            is_other = [column.role == "group" and column.name != said[-1] for column in new]
            new = [replace(column, role="omit") if other else column for column, other in zip(new, is_other)]
        checked = self._checked_options(options)
        if [asdict(c) for c in new] != [asdict(c) for c in self.columns] or checked != self.options:
            self.columns, self.options = new, checked
            self._sample = None
            self.knowledge = self._still_known()
            self._forget_result()

    def choose_many(self, pattern: str, given: Mapping[str, Any]) -> None:
        """The same for all columns that a pattern matches, such as ``q*`` or ``q1:q20``; text columns are passed by."""
        names = chosen_columns([pattern.strip() or "*"], [column.name for column in self.columns])
        able = [c.name for c in self.columns if c.name in names and (c.is_number or given.get("role") == "omit")]
        if not able:
            raise um.DataError(f"{pattern!r} matches only columns of text, which are left out or name groups.")
        self.choose([{**given, "name": name} for name in able], {})

    def _chosen(self, old: Column, entry: Mapping[str, Any]) -> Column:
        role, kind = str(entry.get("role", old.role)), str(entry.get("kind", old.kind))
        if role not in ROLES:
            raise um.DataError(f"A column is one of {listing(ROLES)}; got {role!r}.")
        if kind not in KINDS:
            raise um.DataError(f"The values of a column are one of {listing(KINDS)}; got {kind!r}.")
        if role not in ("omit", "group") and not old.is_number:
            raise um.DataError(f"{old.name!r} holds text, so it cannot be {role}.")
        if role == "group" and self.matrix is not None:
            raise um.DataError("Groups of people need rows; this is a matrix.")
        if role == "group" and not 2 <= old.n_values <= _MOST_GROUPS:
            raise um.DataError(
                f"{old.name!r} has {old.n_values} different values; groups of people are 2 to {_MOST_GROUPS}."
            )
        codes = [_number(code, f"A missing code of {old.name!r}") for code in entry.get("codes", old.codes)]
        opposite = bool(entry.get("is_reversed", old.is_reversed)) and role == "item"
        return replace(old, role=role, kind=kind, codes=codes, is_reversed=opposite)

    def _checked_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        options = dict(self.options)
        for key, allowed in (("cor", _COR), ("missing", _MISSING)):
            if key in given:
                if given[key] not in allowed:
                    raise um.DataError(f"{key} is one of {listing(allowed)}; got {given[key]!r}.")
                options[key] = given[key]
        if "max_group_size" in given:
            size = _number(given["max_group_size"], "The largest group")
            if size != int(size) or not 1 <= size <= 10:
                raise um.DataError("The largest group of latents is a whole number from 1 to 10.")
            options["max_group_size"] = int(size)
        if "penalty" in given:
            options["penalty"] = _number(given["penalty"], "The penalty")
            if not 0.1 <= options["penalty"] <= 1000:
                raise um.DataError("The penalty is a number from 0.1 to 1000.")
        if "tolerance" in given:
            misfit = given["tolerance"]
            options["tolerance"] = None if misfit in (None, "") else _number(misfit, "The tolerance")
            if options["tolerance"] is not None and not 0 <= options["tolerance"] <= 0.5:
                raise um.DataError("The tolerance is an RMSEA from 0 (none) to 0.5; leave it empty for auto.")
        if "n_latents" in given:
            count = given["n_latents"]
            options["n_latents"] = None if count in (None, "") else _number(count, "The number of latents")
            if options["n_latents"] is not None and not 1 <= options["n_latents"] == int(options["n_latents"]) <= 200:
                raise um.DataError("The number of latents is a whole number from 1 to 200; leave it empty to find it.")
        if "time_limit" in given:
            limit = given["time_limit"]
            options["time_limit"] = None if limit in (None, "") else _number(limit, "The time limit")
            if options["time_limit"] is not None and not 1 <= options["time_limit"] <= 86400:
                raise um.DataError("The time limit is a number of seconds from 1 to 86400.")
        return options

    def named(self, role: str) -> list[str]:
        """The columns with a role."""
        return [column.name for column in self.columns if column.role == role]

    @property
    def used(self) -> list[str]:
        """The columns that take part in the search."""
        return [column.name for column in self.columns if column.role in ("item", "covariate", "outcome")]

    @property
    def grouped_by(self) -> str:
        """The column that names groups of people, or nothing."""
        return next(iter(self.named("group")), "")

    def sample(self) -> um.Sample:
        """The data as chosen."""
        if self._sample is not None:
            return self._sample
        if self.frame is None and self.matrix is None:
            raise um.DataError("There are no data yet. Open a file, paste a matrix, or choose a bundled data set.")
        used = self.used
        if len(used) < 2:
            raise um.DataError("Choose at least two columns.")
        given: dict[str, Any] = {"covariates": self.named("covariate"), "outcomes": self.named("outcome")}
        if self.matrix is not None:
            square = self.matrix.loc[used, used].copy()
            signs = np.array([-1.0 if column.is_reversed else 1.0 for column in self.columns if column.name in used])
            square *= np.outer(signs, signs)
            square.attrs = dict(self.matrix.attrs)
            self._sample = um.as_sample(cov=square, n_samples=self.n, **given)
            return self._sample
        rows, about = self.rows()
        groups = self._groups()
        given |= {"cor": self.options["cor"], "missing": self.options["missing"], "groups": groups}
        sample = um.as_sample(rows, **given)
        self._sample = replace(sample, remarks=(*about.notes, *sample.remarks))
        return self._sample

    def rows(self) -> tuple[pd.DataFrame, About]:
        """The chosen columns and what was done: codes of missing values taken out, items reversed, kinds marked."""
        assert self.frame is not None
        rows = self.frame[self.used].copy()
        chosen = [column for column in self.columns if column.name in rows]
        coded: dict[str, int] = {}
        for column in chosen:
            is_code = rows[column.name].isin(column.codes)
            if is_code.any():
                rows[column.name] = rows[column.name].mask(is_code)
                coded[column.name] = int(is_code.sum())
        codes = tuple(sorted({code for column in chosen if column.name in coded for code in column.codes}))
        notes = []
        if coded:
            spelled = ", ".join(f"{code:g}" for code in codes)
            n = sum(coded.values())
            where = listing(list(coded))
            notes.append(f"Taken as missing: {n} answer{'s' * (n != 1)} with the code {spelled} in {where}.")
        items = self.named("item")
        opposite = [column.name for column in chosen if column.is_reversed]
        made = prepared(rows[items], reverse=opposite) if opposite else None
        if made is not None:
            assert isinstance(made.frame, pd.DataFrame)
            rows[items] = made.frame
            notes += made.notes
        rows.attrs = dict(self.frame.attrs)
        if self.options["cor"] == "auto":
            for column in chosen:
                if column.kind == "ordinal" and column.role != "covariate":
                    rows[column.name] = pd.Categorical(rows[column.name], ordered=True)
            rows.attrs["continuous"] = [column.name for column in chosen if column.kind == "continuous"]
        sums = {} if made is None else dict(made.reversed_items)
        return rows, About(data=self.name, notes=tuple(notes), na=codes, reversed_items=sums)

    def about(self) -> About:
        """What there is to say of the data in a report."""
        kept = About(data=self.name) if self.frame is None else self.rows()[1]
        return replace(kept, title=self.name, notes=())  # the sample has the notes among its remarks

    def _groups(self) -> list[str]:
        """The group of each row, where a column names them."""
        if not self.grouped_by or self.frame is None:
            return []
        values = self.frame[self.grouped_by]
        if pd.api.types.is_float_dtype(values) and (values.dropna() == values.dropna().round()).all():
            values = values.astype("Int64")  # 1 and 2, not 1.0 and 2.0
        return split_rows_by_group(values.to_frame(), self.grouped_by)[1]

    def check(self) -> dict[str, Any]:
        """What is to be said of the data before a search; where they cannot be analysed, every fault of them."""
        try:
            sample = self.sample()
        except um.DataError as error:
            return {
                "findings": [],
                "remarks": [],
                "column_errors": [*map(in_the_page, self._column_errors(str(error)))],
                "kinds": {},
            }
        found = [*um.check(sample).findings, *self._group_findings(sample)]
        findings = [{"topic": f.topic, "ok": f.ok, "text": in_the_page(f.text)} for f in found]
        kinds = dict(zip(sample.names, sample.kinds, strict=False))
        return {
            "findings": findings,
            "remarks": [in_the_page(r) for r in sample.remarks],
            "column_errors": [],
            "kinds": kinds,
        }

    def _column_errors(self, first: str) -> list[str]:
        """Everything that keeps the data from being analysed, not the first of it alone."""
        if self.frame is None or len(self.used) < 2:
            return [first]
        given: dict[str, Any] = {"covariates": self.named("covariate"), "outcomes": self.named("outcome")}
        given |= {key: self.options[key] for key in ("cor", "missing")}
        try:
            column_errors = list(um.check(self.rows()[0], **given).column_errors)
        except um.DataError as error:
            column_errors = str(error).split("\n")
        return column_errors or [first]

    def _group_findings(self, sample: um.Sample) -> list[Finding]:
        """Whether groups of people are large enough: fewer rows than variables have no covariance matrix."""
        if not sample.groups:
            return []
        sizes = pd.Series(sample.groups).value_counts(sort=False)
        text = f"{len(sizes)} groups of people: {', '.join(f'{label} {size}' for label, size in sizes.items())} rows."
        small = [str(label) for label, size in sizes.items() if size <= len(sample.names)]
        if small:
            text += f" {listing(small)} has no more rows than there are variables, which is too few to be estimated."
        return [Finding("groups", not small, text)]

    def know(self, given: Mapping[str, Any]) -> None:
        """What is known before the search: groups of items by name; tiers of groups, covariates and outcomes."""
        groups = {str(name): [str(x) for x in items] for name, items in dict(given.get("groups", {})).items() if items}
        unknown = {x for items in groups.values() for x in items} - set(self.named("item"))
        if unknown:
            raise um.ModelError(f"These are no items of the search: {listing(sorted(unknown))}.")
        kept = self._in_tiers(groups, given.get("tiers", []))
        self._knowledge(kept)  # refuses what cannot be
        if kept != self.knowledge:
            self.knowledge = kept
            self._forget_result()

    def _in_tiers(self, groups: Mapping[str, Sequence[str]], tiers: Sequence[Sequence[Any]]) -> dict[str, Any]:
        known = {*groups, *self.named("covariate"), *self.named("outcome")}
        kept = [[str(name) for name in tier if str(name) in known] for tier in tiers]
        return {"groups": dict(groups), "tiers": [tier for tier in kept if tier]}

    def _still_known(self) -> dict[str, Any]:
        """The knowledge without columns that are items, covariates or outcomes no more."""
        if not self.knowledge:
            return {}
        items = set(self.named("item"))
        groups = {name: [x for x in own if x in items] for name, own in self.knowledge["groups"].items()}
        return self._in_tiers({name: own for name, own in groups.items() if own}, self.knowledge["tiers"])

    def _knowledge(self, kept: Mapping[str, Any]) -> um.Knowledge | None:
        if not kept.get("groups") and not kept.get("tiers"):
            return None
        return um.Knowledge(**kept, covariates=self.named("covariate"), outcomes=self.named("outcome"))

    def search_options(self) -> dict[str, Any]:
        """The arguments of the search."""
        options = {key: self.options[key] for key in ("max_group_size", "penalty", "time_limit")}
        options["tolerance"] = "auto" if self.options["tolerance"] is None else self.options["tolerance"]
        if self.frame is not None:  # replicates of the rows are read as they were
            options |= {key: self.options[key] for key in ("cor", "missing")}
        for role, key in (("covariate", "covariates"), ("outcome", "outcomes")):
            if self.named(role):
                options[key] = tuple(self.named(role))
        if self.options["n_latents"] is not None:
            options["n_latents"] = int(self.options["n_latents"])
        known = self._knowledge(self.knowledge)
        if known is not None:
            options["knowledge"] = known
        return options

    # Results ----------------------------------------------------------------------------------------------

    def _forget_result(self) -> None:
        self.run, self.stability, self.people, self.models, self.at = None, None, None, [], 0
        self._fits, self._seconds, self._results = {}, {}, {}

    def found(self, run: str, people: Mapping[str, Any] | None = None) -> None:
        """Keep what a search found: a run, and what groups of people share, as JSON has them."""
        self._forget_result()
        self.run = Run.from_json(run)
        self.people = None if people is None else dict(people)
        self.models = [Model.of(self.run.result)]

    @property
    def result(self) -> um.Result:
        """What was found."""
        if self.run is None:
            raise um.UnmeasuredError("There is no result yet. Start a search first.")
        return self.run.result

    @property
    def is_edited(self) -> bool:
        """Whether the model at hand differs from the one found in more than names."""
        return bool(self.models) and not self.models[self.at].is_same_as(self.models[0])

    def current(self) -> um.Result:
        """The model at hand as a result."""
        found, model = self.result, self.models[self.at]
        if model not in self._results:
            self._results = {model: self._made(model, found)}
        return self._results[model]

    def _made(self, model: Model, found: um.Result) -> um.Result:
        if not self.is_edited:
            other = {old: new for old, new in model.renamed if old != new}
            return found.rename(other) if other else found
        dag = self._dag(model)
        return um.Result(dag.cpdag(), self._fit(model), method="edited by hand", named_latents=dag.latents)

    @property
    def shared(self) -> Shared | None:
        """What groups of people share of the model at hand, where there are some: not of an edited model."""
        if self.run is None or self.run.shared is None or self.is_edited:
            return None
        return self.run.shared.renamed(self.models[self.at].names)

    @property
    def marked(self) -> frozenset[tuple[str, str]]:
        """Edges that differ between groups of people."""
        return frozenset(self.shared.marked if self.shared else ())

    def current_run(self) -> Run:
        """The run of the model at hand; of one that was edited, with the model found beside it."""
        if self.run is None:
            raise um.UnmeasuredError("There is no result yet. Start a search first.")
        result = self.current()
        if not self.is_edited:
            return replace(self.run, result=result, shared=self.shared)
        compared = um.compare_models({"edited": result, "found": self.result})
        added, removed = self.models[self.at].changes(self.models[0])
        changes = "; ".join([*(f"added {x}" for x in added), *(f"removed {x}" for x in removed)])
        note = f"This model was edited by hand. Changed against the model found: {changes}."
        about = replace(self.run.about, title=f"{self.name} (edited)", notes=(note, *self.run.about.notes))
        return Run(result, about, comparison=Comparison.of(compared))

    @property
    def stability_now(self) -> Stability | None:
        """How often what is at hand comes back, where that was looked at: not for an edited model."""
        if self.stability is None or self.is_edited:
            return None
        return replace(self.stability, graph=self.stability.graph.rename(self.models[self.at].names))

    def report(self) -> str:
        """The report of the model at hand: the one found, or the one edited."""
        return html_page(self.current_run(), self.stability_now)

    # Edits ------------------------------------------------------------------------------------------------

    def edit(self, action: Mapping[str, Any]) -> None:
        """Change the model at hand and fit it; undo leads back."""
        if not self.models:
            raise um.UnmeasuredError("There is no model to edit yet. Start a search first.")
        new = edited(self.models[self.at], action, self.result.graph)
        self._fit(new)  # refuses what cannot be fitted, before anything is kept
        found, *later = self.models[: self.at + 1]
        self.models = [found, *[*later, new][-_MOST_UNDONE:]]  # the model found is always the first
        self.at = len(self.models) - 1

    def move(self, by: int) -> None:
        """Undo (-1) or redo (1)."""
        self.at = min(max(self.at + by, 0), max(len(self.models) - 1, 0))

    def _dag(self, model: Model) -> um.DAG:
        variables = self.result.graph.variables
        dag = um.DAG.from_edges(
            model.edges,
            latents=model.latents,
            names=(*model.latents, *variables.observed),
            covariates=variables.covariates,
            outcomes=variables.outcomes,
        )
        return dag.with_pairs(model.pairs) if model.pairs else dag

    def _fit(self, model: Model) -> Fit:
        if model not in self._fits:
            begun = time.perf_counter()
            is_found = bool(self.models) and model.is_same_as(self.models[0])
            self._fits[model] = self.result.sem if is_found else um.fit(self._dag(model), self.result.sem.sample)
            self._seconds[model] = 0.0 if is_found else time.perf_counter() - begun
        return self._fits[model]

    # What the page shows ----------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything about the project, as JSON."""
        state: dict[str, Any] = {
            "name": self.name,
            "columns": [asdict(column) for column in self.columns],
            "options": self.options,
            "knowledge": self.knowledge,
            "roles": [role for role in ROLES if role != "group" or self.matrix is None],
            "sheets": self.sheets,
            "sheet": self.sheet,
            "n": None,
            "is_matrix": self.matrix is not None,
        }
        if self.columns:
            state["n"] = self.n if self.matrix is not None else len(self.frame)  # type: ignore[arg-type]
        if self.run is not None:
            state["result"] = self._result_state()
            state["edit"] = self._edit_state()
        record: dict[str, Any] = spelled(state)
        return record

    def _result_state(self) -> dict[str, Any]:
        return {
            "stopped": self.result.stopped,
            "is_edited": self.is_edited,
            "has_stability": self.stability is not None,
            "has_groups": self.people is not None,
            "has_pairs": bool(self.models[self.at].pairs),
            "indices": _indices(self.result.sem),
        }

    def _edit_state(self) -> dict[str, Any]:
        model, found = self.models[self.at], self.models[0]
        fit, variables = self._fit(model), self.result.graph.variables
        names = model.names
        current = self.current()  # as all else on the page shows it: rotation and signs are the same
        std, directed = _coefficients(current.fit), set(current.graph.directed_edges)
        before = {(names.get(a, a), names.get(b, b)) for a, b in found.edges}
        picture = picture_of(self.result, "full", min_loading=0.0)
        place = {node.id: (node.x, node.y) for node in picture.nodes}
        routes = [(names.get(e.source, e.source), names.get(e.target, e.target), e.points) for e in picture.edges]
        pairs = {frozenset(pair) for pair in found.pairs}
        added, removed = model.changes(found)
        return {
            "latents": list(model.latents),
            "observed": list(variables.observed),
            "covariates": list(variables.covariates),
            "outcomes": list(variables.outcomes),
            "edges": [
                {
                    "source": a,
                    "target": b,
                    "std": std.get((a, b)),
                    "is_new": (a, b) not in before,
                    "is_directed": (a, b) in directed,
                }
                for a, b in model.edges
            ],
            "pairs": [
                {"source": a, "target": b, "std": std.get((a, b), std.get((b, a))), "is_new": {a, b} not in pairs}
                for a, b in model.pairs
            ],
            "places": {names.get(name, name): at for name, at in place.items()},
            "routes": [{"source": a, "target": b, "points": points[1:-1]} for a, b, points in routes],
            "found": _indices(self._fit(found)),
            "now": _indices(fit),
            "added": added,
            "removed": removed,
            "renamed": [f"{old} is called {new}" for old, new in model.renamed if old != new],
            "what": model.what,
            "undo": model.what if self.at > 0 else "",
            "redo": self.models[self.at + 1].what if self.at < len(self.models) - 1 else "",
            "status": fit.status,
            "milliseconds": 1000.0 * self._seconds[model],
            "labels": self.result.sem.sample.labels,
        }

    def lead(self) -> list[str]:
        """What was found, in sentences."""
        n = len(self.frame) if self.frame is not None else round(self.result.sem.sample.n)
        sentences = lead(self.current(), f"{n:,} observations", self.stability_now, self.shared)
        if not self.is_edited:
            return sentences
        now, found = self.current().sem, self.result.sem
        edited = (
            f"Edited by hand, the model has an RMSEA of {now.rmsea:.3f} ({found.rmsea:.3f} as found) and a BIC of "
            f"{now.bic:.1f} ({found.bic:.1f}); it should be confirmed with new data."
        )
        return [*sentences[:-1], edited]  # the last is on how it was found

    def diagram(self) -> dict[str, Any]:
        """The diagram of the model at hand, for the page's script; edges that differ between groups are marked."""
        return diagram_data(self.current(), self.stability_now, self.marked)

    # One file ---------------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """The project as one file."""
        record = {
            "kind": "project", "format": 2, "name": self.name, "n": self.n, "is_matrix": self.matrix is not None,
            "columns": [asdict(c) for c in self.columns], "options": self.options, "knowledge": self.knowledge,
            "models": [asdict(m) for m in self.models], "at": self.at,
            "ending": self.file.suffix if self.file else "", "sheet": self.sheet, "has_header": self.has_header,
        }  # fmt: skip
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("project.json", json.dumps(spelled(record), ensure_ascii=False))
            if self.file is not None:
                archive.writestr("data", self.file.read_bytes())
            if self.run is not None:
                archive.writestr("result.json", self.run.to_json())
            if self.stability is not None:
                archive.writestr("stability.json", self.stability.to_json())
            if self.people is not None:
                archive.writestr("groups.json", json.dumps(spelled(self.people), ensure_ascii=False))
        return out.getvalue()

    def _open_project(self, content: bytes) -> None:
        parts = _unpacked(content)
        other = Project(self.folder)
        try:
            record = json.loads(parts["project.json"])
            if record.get("kind") != "project" or record.get("format") not in (1, 2):
                raise ValueError("of another kind or version")
            name = "matrix.txt" if record["is_matrix"] else f"data{_known_ending(record['ending'])}"
            path = self._new_file(name, parts["data"])
            other.name, other.file = str(record["name"]), path
            if record["is_matrix"]:
                matrix = um.read_matrix(path)
                matrix.attrs["labels"] = {e["name"]: str(e["label"]) for e in record["columns"] if e.get("label")}
                other._take_matrix(matrix, float(record["n"]))
            else:
                other.sheets, other.has_header = _sheets(path), bool(record.get("has_header", True))
                other._read(path, str(record.get("sheet", "")) or next(iter(other.sheets), ""))
            columns = [{key: entry[key] for key in ("name", "role", "is_reversed", "codes")}
                       | {"kind": entry.get("kind", "ordinal" if entry.get("is_ordinal") else "auto")}
                       for entry in record["columns"]]  # fmt: skip
            other.choose(columns, record["options"])
            if record["knowledge"]:
                other.know(record["knowledge"])
            if "result.json" in parts:
                other.run = Run.from_json(parts["result.json"].decode("utf-8"))
                if "stability.json" in parts:
                    other.stability = Stability.from_json(parts["stability.json"].decode("utf-8"))
                if "groups.json" in parts:
                    other.people = json.loads(parts["groups.json"])
                other.models = [Model.of(other.run.result)]
                known = other.models[0].latents
                other.models += [Model.from_record(entry, known) for entry in record["models"][1:]]
                other.at = min(max(int(record["at"]), 0), len(other.models) - 1)
                other._fit(other.models[other.at])
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
            if isinstance(error, um.UnmeasuredError):
                raise
            raise um.DataError(f"This project is damaged ({error}). Open the file as it was saved.") from None
        other.file = _kept(path)
        self._become(other)


# Pieces -----------------------------------------------------------------------------------------------------


def _kept(path: Path) -> Path:
    """The file of a project that was read, in the place of the last one's."""
    return path.replace(path.parent.parent / path.name)


def _sheets(path: Path) -> list[str]:
    """The sheets of a workbook that have something on them; none of another file."""
    if path.suffix not in EXCEL_FILES:
        return []
    check_archive(path, checked_limit(MOST_UNPACKED))
    try:
        cells = pd.read_excel(path, sheet_name=None, header=None, nrows=2)
        return [str(name) for name, part in cells.items() if not part.empty]
    except (ImportError, LookupError, OSError, ValueError, zipfile.BadZipFile):
        return []  # reading it says what is wrong


def _is_matrix(path: Path) -> bool:
    """Whether a text file can be read as a matrix that is symmetric, with a positive diagonal."""
    try:
        matrix = um.read_matrix(path).to_numpy()
    except um.UnmeasuredError:
        return False
    scale = matrix.diagonal().max()
    return bool(len(matrix) > 1 and (matrix.diagonal() > 0).all() and abs(matrix - matrix.T).max() <= 1e-6 * scale)


def spelled(value: Any) -> Any:
    """JSON has no infinity and no missing number: they become null."""
    if isinstance(value, Mapping):
        return {str(key): spelled(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [spelled(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _column(values: pd.Series, label: str) -> Column:
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_complex_dtype(values)
    seen = values.dropna()
    low, high = (float(seen.min()), float(seen.max())) if is_number and len(seen) else (None, None)
    role = "item" if is_number and len(seen) and low != high else "omit"
    return Column(str(values.name), label, is_number, int(values.isna().sum()), int(seen.nunique()), low, high, role)


def _suspects(frame: pd.DataFrame) -> list[str]:
    """Columns that are probably no indicators."""
    try:
        return [suspect.name for suspect in um.as_sample(frame).suspects]
    except um.UnmeasuredError:  # said when the columns are chosen
        return []


def _number(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise um.DataError(f"{what} is a number; got {str(value)[:40]!r}.") from None
    if not math.isfinite(number):
        raise um.DataError(f"{what} is a finite number; got {number}.")
    return number


def _indices(fit: Fit) -> dict[str, Any]:
    return {name: getattr(fit, name) for name in _INDICES} | {"proper": bool(fit.converged and fit.admissible)}


def _coefficients(fit: Fit) -> dict[tuple[str, str], float]:
    """Standardised loadings and paths by cause and effect, and correlations of residuals by their items."""
    rows = fit.parameters[fit.parameters["op"].isin(["=~", "~", "~~"])]
    ends = [(b, a) if op == "~" else (a, b) for a, op, b in zip(rows["lhs"], rows["op"], rows["rhs"])]
    return {pair: float(s) for pair, s in zip(ends, rows["std"]) if pair[0] != pair[1]}


def _known_ending(ending: Any) -> str:
    if ending not in FILES:
        raise ValueError("its data are of an unknown type")
    return str(ending)


# A project is unpacked to at most this many times the largest upload.
_MOST_UNPACKED = 1 << 30


def _unpacked(content: bytes) -> dict[str, bytes]:
    """The parts of a project file; nothing is written, and no name in it is ever a path."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = {entry.filename: entry for entry in archive.infolist()}
            is_ours = set(entries) <= set(_PARTS) and sum(e.file_size for e in entries.values()) <= _MOST_UNPACKED
            parts = {name: archive.read(name) for name in entries} if is_ours else {}
    # RuntimeError: an archive that is encrypted, or packed in a way that Python does not know; ValueError: one whose
    # parts begin before the file does.
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError) as error:
        raise um.DataError(f"This is no project that was saved here ({error}).") from None
    if not is_ours:
        raise um.DataError("This is no project that was saved here: it has other parts, or is too large.")
    return parts
