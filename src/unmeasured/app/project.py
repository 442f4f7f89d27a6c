"""One piece of work from data to an edited model; everything the page shows is in :meth:`Project.state`.

A project knows nothing of the web. What it is given from outside is checked here: names of columns against the data,
options against what there is, and no text is ever taken for the name of a file.
"""

from __future__ import annotations

import inspect
import io
import json
import math
import threading
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import unmeasured as um
from unmeasured.answer.drawing import picture_of
from unmeasured.data.sample import labels_of
from unmeasured.errors import listing
from unmeasured.report.html import diagram_data, html_page
from unmeasured.report.lead import lead
from unmeasured.report.run import About, Run, versions

TEXT_FILES = (".csv", ".tsv", ".txt", ".dat")
STATISTICS_FILES = (".sav", ".zsav", ".por", ".dta")
OTHER_FILES = (".xlsx", ".parquet")
FILES = (*TEXT_FILES, *STATISTICS_FILES, *OTHER_FILES)
PROJECT = ".unmeasured"
_PARTS = ("project.json", "data", "result.json", "stability.json")
_COR = ("auto", "pearson", "polychoric", "spearman-normal")
_MISSING = ("ml", "listwise", "pairwise")
_INDICES = ("chi2", "df", "pvalue", "rmsea", "cfi", "tli", "srmr", "aic", "bic")
_MOST_UNDONE = 200


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
    is_ordinal: bool = False  # said by the user; others are looked at
    is_reversed: bool = False
    codes: list[float] = field(default_factory=list)  # values that mean "missing"


@dataclass(frozen=True)
class Model:
    """A graph that is edited: its latents and its edges."""

    latents: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    what: str = ""  # what was done to get here


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
        self.options |= {"time_limit": None, "tolerance": None}  # None: auto
        self.knowledge: dict[str, Any] = {}
        self.run: Run | None = None
        self.stability: um.Stability | None = None
        self.models: list[Model] = []
        self.at = 0
        self._sample: um.Sample | None = None
        self._fits: dict[Model, um.Fit] = {}

    # Data -------------------------------------------------------------------------------------------------

    def open_file(self, name: str, content: bytes) -> None:
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
        try:
            frame = um.read(path, blocks=False)
        except um.UnmeasuredError as error:
            path.unlink()
            # The name the user knows, not that of our copy.
            raise um.DataError(str(error).replace(str(path), name).replace(path.name, name)) from None
        self._reset()
        self.name, self.file = name, _kept(path)
        self._take(frame)

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
        self.columns = [Column(name, "", True, 0, 0, None, None) for name in matrix.columns]

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
            role = str(entry.get("role", old.role))
            if role not in roles():
                raise um.DataError(f"A column is one of {listing(roles())}; got {role!r}.")
            if role != "omit" and not old.is_number:
                raise um.DataError(f"{old.name!r} holds text, so it cannot be {role}.")
            codes = [_number(code, f"A missing code of {old.name!r}") for code in entry.get("codes", old.codes)]
            ordinal, opposite = (bool(entry.get(key, getattr(old, key))) for key in ("is_ordinal", "is_reversed"))
            changed.append(replace(old, role=role, codes=codes, is_ordinal=ordinal, is_reversed=opposite))
        by_name = {column.name: column for column in changed}
        new = [by_name.get(column.name, column) for column in self.columns]
        checked = self._checked_options(options)
        if [asdict(c) for c in new] != [asdict(c) for c in self.columns] or checked != self.options:
            self.columns, self.options = new, checked
            self._sample = None
            self._forget_result()

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

    def sample(self) -> um.Sample:
        """The data as chosen."""
        if self._sample is not None:
            return self._sample
        if self.frame is None and self.matrix is None:
            raise um.DataError("There are no data yet. Open a file, paste a matrix, or choose a bundled data set.")
        used = self.used
        if len(used) < 2:
            raise um.DataError("Choose at least two columns.")
        if self.matrix is not None:
            square = self.matrix.loc[used, used].copy()
            signs = np.array([-1.0 if column.is_reversed else 1.0 for column in self.columns if column.name in used])
            self._sample = um.as_sample(cov=square * np.outer(signs, signs), n_samples=self.n)
        else:
            self._sample = um.as_sample(self.rows(), cor=self.options["cor"], missing=self.options["missing"])
        return self._sample

    def rows(self) -> pd.DataFrame:
        """The chosen columns: codes of missing values taken out, reversed items put right, ordinal ones marked."""
        assert self.frame is not None
        rows = self.frame[self.used].copy()
        for column in self.columns:
            if column.name not in rows:
                continue
            values = rows[column.name]
            if column.codes:
                values = values.where(~values.isin(column.codes))
            if column.is_reversed:
                values = values.max() + values.min() - values
            if column.is_ordinal and self.options["cor"] == "auto":
                values = pd.Categorical(values, ordered=True)  # type: ignore[assignment]
            rows[column.name] = values
        rows.attrs = dict(self.frame.attrs)
        return rows

    def check(self) -> dict[str, Any]:
        """What is to be said of the data before a search."""
        sample = self.sample()
        findings = [{"topic": f.topic, "ok": f.ok, "text": f.text} for f in um.check(sample).findings]
        kinds = dict(zip(sample.names, sample.kinds, strict=False))
        return {"findings": findings, "remarks": [str(r) for r in sample.remarks], "kinds": kinds}

    def know(self, given: Mapping[str, Any]) -> None:
        """What is known before the search: groups of items by name, tiers of groups."""
        groups = {str(name): [str(x) for x in items] for name, items in dict(given.get("groups", {})).items() if items}
        unknown = {x for items in groups.values() for x in items} - set(self.named("item"))
        if unknown:
            raise um.ModelError(f"These are no items of the search: {listing(sorted(unknown))}.")
        tiers = [[str(name) for name in tier if str(name) in groups] for tier in given.get("tiers", [])]
        kept: dict[str, Any] = {"groups": groups, "tiers": [tier for tier in tiers if tier]}
        um.Knowledge(**kept)  # refuses what cannot be
        if kept != self.knowledge:
            self.knowledge = kept
            self._forget_result()

    def search_options(self) -> dict[str, Any]:
        """The arguments of the search."""
        options = {key: self.options[key] for key in ("max_group_size", "penalty", "time_limit")}
        options["tolerance"] = "auto" if self.options["tolerance"] is None else self.options["tolerance"]
        for role, key in (("covariate", "covariates"), ("outcome", "outcomes")):
            if role in roles() and self.named(role):
                options[key] = tuple(self.named(role))
        if self.knowledge.get("groups"):
            options["knowledge"] = um.Knowledge(**self.knowledge)
        return options

    # Results ----------------------------------------------------------------------------------------------

    def _forget_result(self) -> None:
        self.run, self.stability, self.models, self.at, self._fits = None, None, [], 0, {}

    def found(self, record: str, notes: Sequence[str], seconds: float) -> None:
        """Keep what a search found."""
        self._forget_result()
        rows = None if self.frame is None else len(self.frame)
        about = About(self.name, self.name, notes=tuple(notes), seconds=seconds, versions=versions(), rows=rows)
        self.run = Run(um.Result.from_json(record), about)
        result = self.run.result
        self.models = [Model(result.graph.latents, tuple(result.member.edges), "as found")]

    @property
    def result(self) -> um.Result:
        """What was found."""
        if self.run is None:
            raise um.UnmeasuredError("There is no result yet. Start a search first.")
        return self.run.result

    def report(self) -> str:
        """The report of the model at hand: the one found, or the one edited."""
        run = self.run
        if run is None:
            raise um.UnmeasuredError("There is no result yet. Start a search first.")
        if self.at:
            run = replace(run, result=self.current())
        return html_page(run, self.stability if not self.at else None)

    def current(self) -> um.Result:
        """The model at hand as a result."""
        if not self.at:
            return self.result
        dag = self._dag(self.models[self.at])
        return um.Result(dag.cpdag(), self._fit(self.models[self.at]), method="edited by hand", named=dag.latents)

    # Edits ------------------------------------------------------------------------------------------------

    def edit(self, action: Mapping[str, Any]) -> None:
        """Change the model at hand and fit it; undo leads back."""
        if not self.models:
            raise um.UnmeasuredError("There is no model to edit yet. Start a search first.")
        new = _edited(self.models[self.at], action, self.result.graph.observed)
        self._fit(new)  # refuses what cannot be fitted, before anything is kept
        self.models = [*self.models[: self.at + 1], new][-_MOST_UNDONE:]
        self.at = len(self.models) - 1

    def move(self, by: int) -> None:
        """Undo (-1) or redo (1)."""
        self.at = min(max(self.at + by, 0), max(len(self.models) - 1, 0))

    def _dag(self, model: Model) -> um.DAG:
        return um.DAG.from_edges(
            model.edges, latents=model.latents, names=(*model.latents, *self.result.graph.observed)
        )

    def _fit(self, model: Model) -> um.Fit:
        if model not in self._fits:
            found = self.models and model == self.models[0]
            self._fits[model] = self.result.sem if found else um.fit(self._dag(model), self.result.sem.sample)
        return self._fits[model]

    # What the page shows ----------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything about the project, as JSON."""
        state: dict[str, Any] = {
            "name": self.name,
            "columns": [asdict(column) for column in self.columns],
            "options": self.options,
            "knowledge": self.knowledge,
            "roles": list(roles()),
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
        assert self.run is not None
        n = self.run.about.rows or round(self.result.sem.sample.n)
        sentences = lead(self.result, f"{n:,} observations", self.stability)
        return {"lead": sentences, "has_stability": self.stability is not None, "indices": _indices(self.result.sem)}

    def _edit_state(self) -> dict[str, Any]:
        model = self.models[self.at]
        fit, found = self._fit(model), self.models[0]
        std = {(row["source"], row["target"]): row["std"] for row in _coefficients(fit)}
        renamed = dict(zip(found.latents, model.latents)) if len(found.latents) == len(model.latents) else {}
        before = {(renamed.get(a, a), renamed.get(b, b)) for a, b in found.edges}
        picture = picture_of(self.result, "full", min_loading=0.0)
        place = {node.id: (node.x, node.y) for node in picture.nodes}
        routes = [(renamed.get(e.source, e.source), renamed.get(e.target, e.target), e.points) for e in picture.edges]
        return {
            "latents": list(model.latents),
            "observed": list(self.result.graph.observed),
            "edges": [{"source": a, "target": b, "std": std.get((a, b))} for a, b in model.edges],
            "places": {renamed.get(name, name): at for name, at in place.items()},
            "routes": [{"source": a, "target": b, "points": points[1:-1]} for a, b, points in routes],
            "found": _indices(self._fit(found)),
            "now": _indices(fit),
            "added": sorted(set(model.edges) - before),
            "removed": sorted(before - set(model.edges)),
            "what": model.what,
            "can_undo": self.at > 0,
            "can_redo": self.at < len(self.models) - 1,
            "status": fit.status,
        }

    def diagram(self) -> dict[str, Any]:
        """The diagram of the model at hand, for the page's script."""
        return diagram_data(self.current(), self.stability if not self.at else None)

    # One file ---------------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """The project as one file."""
        record = {
            "kind": "project", "format": 1, "name": self.name, "n": self.n, "is_matrix": self.matrix is not None,
            "columns": [asdict(c) for c in self.columns], "options": self.options, "knowledge": self.knowledge,
            "models": [asdict(m) for m in self.models], "at": self.at,
            "ending": self.file.suffix if self.file else "",
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
        return out.getvalue()

    def _open_project(self, content: bytes) -> None:
        parts = _unpacked(content)
        other = Project(self.folder)
        try:
            record = json.loads(parts["project.json"])
            if record.get("kind") != "project" or record.get("format") != 1:
                raise ValueError("of another kind or version")
            name = "matrix.txt" if record["is_matrix"] else f"data{_known_ending(record['ending'])}"
            path = self._new_file(name, parts["data"])
            other.name, other.file = str(record["name"]), path
            if record["is_matrix"]:
                other._take_matrix(um.read_matrix(path), float(record["n"]))
            else:
                other._take(um.read(path, blocks=False))
            columns = [{key: entry[key] for key in ("name", "role", "is_ordinal", "is_reversed", "codes")}
                       for entry in record["columns"]]  # fmt: skip
            other.choose(columns, record["options"])
            if record["knowledge"]:
                other.know(record["knowledge"])
            if "result.json" in parts:
                other.run = Run.from_json(parts["result.json"].decode("utf-8"))
                if "stability.json" in parts:
                    other.stability = um.Stability.from_json(parts["stability.json"].decode("utf-8"))
                other.models = [_model(entry) for entry in record["models"]]
                other.at = min(max(int(record["at"]), 0), len(other.models) - 1)
                other._fit(other.models[other.at])
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            if isinstance(error, um.UnmeasuredError):
                raise
            raise um.DataError(f"This project is damaged ({error}). Open the file as it was saved.") from None
        other.file = _kept(path)
        for key, value in vars(other).items():
            if key not in ("lock", "folder"):
                setattr(self, key, value)


# Pieces -----------------------------------------------------------------------------------------------------


def _kept(path: Path) -> Path:
    """The file of a project that was read, in the place of the last one's."""
    return path.replace(path.parent.parent / path.name)


def roles() -> tuple[str, ...]:
    """What a column can be in the search that is installed."""
    known = inspect.signature(um.LGES).parameters
    more = (("covariate", "covariates"), ("outcome", "outcomes"))
    return ("item", *(role for role, option in more if option in known), "omit")


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


def _indices(fit: um.Fit) -> dict[str, Any]:
    return {name: getattr(fit, name) for name in _INDICES} | {"proper": bool(fit.converged and fit.admissible)}


def _coefficients(fit: um.Fit) -> list[dict[str, Any]]:
    rows = fit.parameters[fit.parameters["op"].isin(["=~", "~"])]
    ends = [(a, b) if op == "=~" else (b, a) for a, op, b in zip(rows["lhs"], rows["op"], rows["rhs"])]
    return [{"source": a, "target": b, "std": float(s)} for (a, b), s in zip(ends, rows["std"])]


def _edited(model: Model, action: Mapping[str, Any], observed: Sequence[str]) -> Model:
    kind = action.get("kind")
    source, target = str(action.get("source", "")), str(action.get("target", ""))
    nodes = {*model.latents, *observed}
    if kind in ("add", "remove"):
        for name in (source, target):
            if name not in nodes:
                raise um.GraphError(f"The model has no variable {name!r}.")
        if kind == "remove":
            if (source, target) not in model.edges:
                raise um.GraphError(f"The model has no edge {source} → {target}.")
            kept = tuple(edge for edge in model.edges if edge != (source, target))
            return Model(model.latents, kept, f"without {source} → {target}")
        if source == target or (source, target) in model.edges:
            raise um.GraphError(f"{source} → {target} is no new edge between two variables.")
        if source in observed and target in observed:
            raise um.GraphError("Edges between two observed variables are not drawn here; give them a latent.")
        return Model(model.latents, (*model.edges, (source, target)), f"with {source} → {target}")
    name = str(action.get("name", "")).strip()
    if kind in ("rename", "new") and (not name or len(name) > 80):
        raise um.GraphError("A name has 1 to 80 letters.")
    if kind in ("rename", "new") and name in nodes:
        raise um.GraphError(f"{name!r} is taken already.")
    if kind == "rename" and source in model.latents:
        swap = {source: name}
        edges = tuple((swap.get(a, a), swap.get(b, b)) for a, b in model.edges)
        return Model(tuple(swap.get(x, x) for x in model.latents), edges, f"{source} is called {name}")
    if kind == "new":
        items = [str(x) for x in action.get("items", []) if str(x) in observed]
        if len(items) < 2:
            raise um.GraphError("A new latent needs at least two indicators. Select them first.")
        return Model((*model.latents, name), (*model.edges, *((name, x) for x in items)), f"with a latent {name}")
    if kind == "drop" and source in model.latents:
        edges = tuple(edge for edge in model.edges if source not in edge)
        return Model(tuple(x for x in model.latents if x != source), edges, f"without {source}")
    raise um.GraphError(f"There is no such edit: {str(kind)!r} of {source!r}.")


def _model(entry: Mapping[str, Any]) -> Model:
    edges = tuple((str(a), str(b)) for a, b in entry["edges"])
    return Model(tuple(str(x) for x in entry["latents"]), edges, str(entry["what"]))


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
            if not set(entries) <= set(_PARTS) or sum(e.file_size for e in entries.values()) > _MOST_UNPACKED:
                raise um.DataError("This is no project that was saved here: it has other parts, or is too large.")
            return {name: archive.read(name) for name in entries}
    # RuntimeError: an archive that is encrypted, or packed in a way that Python does not know.
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as error:
        raise um.DataError(f"This is no project that was saved here ({error}).") from None
