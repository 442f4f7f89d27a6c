"""A run: a result and what a reader must know to repeat it, kept in one JSON file.

The file is the result's own JSON (:meth:`unmeasured.Result.to_json`) with one more key, "run". So
:meth:`unmeasured.Result.from_json` reads it as well, and the page can be made again from it alone.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import clone

from unmeasured.data.sample import Sample
from unmeasured.errors import SearchStopped, UnmeasuredError, listing
from unmeasured.estimators.base import Search
from unmeasured.estimators.exact import ExactSearch
from unmeasured.estimators.lges import LGES
from unmeasured.files import parsed_json
from unmeasured.graphs.outline import Outline
from unmeasured.output.report.groups import Shared
from unmeasured.results.compare import ModelComparison, compare_models
from unmeasured.results.earlier_formats import present_result
from unmeasured.results.records import checked_type, fault_in_words
from unmeasured.results.result import Result
from unmeasured.search.roles.multigroup import within_groups
from unmeasured.search.trace import Step, Trace

# What the figures depend on.
_PACKAGES = ("numpy", "scipy", "numba")
# Searches that can be made again from the options that a result keeps.
_SEARCHES: dict[str, type[Search]] = {"LGES": LGES, "ExactSearch": ExactSearch}
# Moments of the same rows, prepared in the same way, differ by less.
_SAME = 1e-6


@dataclass(frozen=True)
class About:
    """What was asked, of which data, and with what."""

    title: str = ""
    data: str = ""  # a file or a data set, in words
    source: str = ""
    notes: tuple[str, ...] = ()  # what was done to the data
    command: str = ""
    seconds: float | None = None
    made: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None  # of the data, where rows were given
    missing: float | None = None  # the share of the values of these rows that is missing
    na: tuple[float, ...] = ()  # codes for missing answers
    reversed_items: Mapping[str, float] = field(default_factory=dict)  # the sum of the ends of the scale of each
    tolerance: float | None = None  # misfit that was tolerated, as an RMSEA
    groups: str = ""  # the column of groups of people

    def with_rows(self, sample: Sample) -> About:
        """The same with the number of the rows of a sample and what is missing in them."""
        return replace(self, rows=sample.n_rows, missing=sample.share_missing)


@dataclass(frozen=True)
class Comparison:
    """Other models of the same data beside the one found: rows of the table, difference tests, notes."""

    rows: tuple[Mapping[Any, Any], ...]
    tests: tuple[Mapping[Any, Any], ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, compared: ModelComparison) -> Comparison:
        """What a report keeps of a comparison."""
        rows = compared.table.reset_index(names="model").to_dict(orient="records")
        return cls(tuple(rows), tuple(compared.tests.to_dict(orient="records")), compared.notes)


@dataclass(frozen=True)
class Run:
    """A result, how it was reached, and what it was made from."""

    result: Result
    about: About = About()
    trace: Trace = Trace()  # noqa: RUF009 (an empty tuple)
    comparison: Comparison | None = None
    exact: Result | None = None  # what the exact criterion finds, where misfit was tolerated and the answers differ
    shared: Shared | None = None  # what groups of people share, where there are groups

    def rename(self, names: Mapping[str, str]) -> Run:
        """The same run with other names for latents, everywhere."""
        shared = None if self.shared is None else self.shared.renamed(names)
        return replace(self, result=self.result.rename(names), shared=shared)

    def to_json(self) -> str:
        """The result as JSON, and the rest under "run"."""
        record = json.loads(self.result.to_json())
        compared = asdict(self.comparison) if self.comparison else None
        record["run"] = {
            "about": asdict(self.about),
            "trace": [_plain(asdict(step)) for step in self.trace],
            "comparison": compared and {key: [_plain(row) for row in rows] for key, rows in compared.items()},
            "exact": None if self.exact is None else json.loads(self.exact.to_json()),
            "groups": None if self.shared is None else self.shared.record(),
        }
        return json.dumps(record, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Run:
        """The run behind JSON text; that of a bare result is a run of which nothing else is known."""
        result = Result.from_json(text)
        kept = present_result(parsed_json(text)).get("run")
        if kept is None:
            return cls(result, About(versions=versions()))
        try:
            return cls(result, *_read(kept))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise UnmeasuredError(
                f'The part "run" of this result is damaged ({fault_in_words(error)}). Give the file as it was written.'
            ) from None


def exact_answer(search: Search, seconds: float) -> Result | None:
    """What the exact criterion finds in so many seconds, beside a fitted search that tolerated misfit.

    None where the answer is exact already, is the same, or where there is no other within that time.
    """
    if not getattr(search, "tolerance_", 0.0) or search.stopped_ or not seconds > 0:
        return None
    other = clone(search).set_params(tolerance=0, time_limit=seconds, verbose=False)
    try:
        found: Result = other.fit(search.sample_).result_
    except SearchStopped as stopped:
        if stopped.is_interrupted:
            raise KeyboardInterrupt from None
        return None
    if found.stopped.startswith("Interrupted"):
        raise KeyboardInterrupt  # the best so far is not what the exact criterion finds
    return None if found.graph == search.graph_.with_pairs(()) else found


def search_of(run: Run, sample: Sample | None = None) -> Search:
    """Return the search that a run is of, as it was after its fit, so that replicates can be drawn of its data.

    Parameters
    ----------
    run
        A result and what is known of the way to it.
    sample
        The data of the run, read again. Left out: the matrix and the number of samples that the result holds.

    Raises
    ------
    UnmeasuredError
        If the data are not those of the result, or the search cannot be made again from what a result keeps.
    """
    result, data = run.result, run.result.sem.sample
    search = _with_options_of(result)
    if sample is None and (run.shared is not None or run.about.groups):
        raise UnmeasuredError(
            "This result is of several groups of people, which its matrix does not keep apart. Give the rows as well."
        )
    if sample is not None and not _are_data_of(sample, result):
        raise UnmeasuredError(
            f"These are not the data of the result: N or the correlations of its {len(data.names)} variables differ "
            f"(N = {sample.n:g} here, {data.n:g} in the result). Give the file that was searched, prepared in the same "
            "way, or the result alone."
        )
    variables = result.graph.variables
    sample = replace(sample or data, covariates=variables.covariates, outcomes=variables.outcomes)
    tolerance = run.about.tolerance if run.about.tolerance is not None else result.options.get("tolerance", 0.0)
    if isinstance(tolerance, str):  # "auto", of a result alone: what came of it is not kept
        if not is_answer_of(search.fit(sample), run):
            raise UnmeasuredError(
                "The search came to another graph this time, so replicates of it would say nothing of this result. "
                "Search the data again."
            )
        return search
    search.graph_, search.sample_ = result.graph, sample
    if "tolerance" in search.get_params():
        search.tolerance_ = float(tolerance)
    return search


def is_answer_of(search: Search, run: Run) -> bool:
    """Whether a run has the graph that a fitted search has found, and its data."""
    if not _are_data_of(search.sample_, run.result):
        return False
    names = search.sample_.names
    found, known = (Outline.of(graph, names).to_record() for graph in (search.graph_, run.result.graph))
    return bool(found == known)


def _with_options_of(result: Result) -> Search:
    """Return an unfitted search with the options of a result."""
    name = result.method.partition("(")[0]
    options = {key: tuple(x) if isinstance(x, list) else x for key, x in result.options.items()}
    if name not in _SEARCHES:
        raise UnmeasuredError(f"Replicates of a result are for {listing(_SEARCHES)}; this one is by {name or 'hand'}.")
    if options.get("moves") or isinstance(options.get("knowledge"), str):
        raise UnmeasuredError(
            "The search used moves or knowledge that its result does not keep. Search the data again."
        )
    return _SEARCHES[name](**options)


def _are_data_of(sample: Sample, result: Result) -> bool:
    """Whether a sample has the moments that a result was estimated from; groups of people: within them."""
    data = result.sem.sample
    if set(sample.names) != set(data.names):
        return False
    if sample.groups:
        sample = within_groups(sample.by_group(result.options.get("missing", "ml")).values())
    same_n = sample.n == data.n or math.isclose(sample.n, data.n, rel_tol=_SAME)
    return same_n and bool(np.allclose(sample.select(data.names).corr, data.corr, atol=_SAME))


def run_of(
    found: Search | Result,
    *,
    about: About | None = None,
    published: Mapping[str, Any] | None = None,
    exact: Result | None = None,
) -> Run:
    """What there is to report of a fitted search, or of a result alone.

    Parameters
    ----------
    about
        What is known of the data and the question; versions, the date and what was done to the data are added.
    published
        Models to compare with, by name, as :func:`unmeasured.compare_models` takes them.
    exact
        What the exact criterion finds, where misfit was tolerated: :func:`exact_answer`.
    """
    about = about or About()
    trace = Trace()
    if isinstance(found, Search):
        if not hasattr(found, "result_"):
            raise UnmeasuredError("The search was not fitted yet, so there is nothing to report. Call its fit first.")
        about = replace(about, notes=(*about.notes, *found.sample_.remarks)).with_rows(found.sample_)
        tolerance = getattr(found, "tolerance_", None)
        about = replace(about, tolerance=None if tolerance is None else float(tolerance))
        trace = Trace(step for step in found.trace_ if isinstance(step, Step))
        found = found.result_
    elif not isinstance(found, Result):
        raise UnmeasuredError(
            f"A report is of a fitted search (um.LGES().fit(rows)) or of its result; got {type(found).__name__}."
        )
    if not isinstance(exact, Result | None):
        raise UnmeasuredError(f"exact is the result of another search of the same data; got {type(exact).__name__}.")
    about = replace(about, versions=versions(), made=about.made or f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    compared = Comparison.of(compare_models({"found": found, **published})) if published else None
    return Run(found, about, trace, compared, exact)


def versions() -> dict[str, str]:
    """What the figures were made with."""
    from unmeasured import __version__

    known = {name: version(name) for name in _PACKAGES}
    return {"unmeasured": __version__, "Python": platform.python_version(), **known}


def _plain(value: Any) -> Any:
    """JSON has no infinity and no missing number: they are spelled as words."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if hasattr(value, "item"):
        value = value.item()
    return str(value) if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value


def _read(kept: Mapping[str, Any]) -> tuple[About, Trace, Comparison | None, Result | None, Shared | None]:
    about = _about(kept["about"])
    other = kept.get("exact")  # unknown to earlier versions
    exact = None if other is None else Result.from_json(json.dumps(other))
    shared = None if kept.get("groups") is None else Shared.from_record(kept["groups"])  # likewise
    trace = Trace(_step(step) for step in kept["trace"])
    compared = kept["comparison"]
    if compared is None:
        return about, trace, None, exact, shared
    numbers = ("chi2", "pvalue", "rmsea", "cfi", "tli", "srmr", "aic", "bic")
    rows, tests = ([{**row, **_numbers(row, numbers)} for row in compared[key]] for key in ("rows", "tests"))
    return about, trace, Comparison(tuple(rows), tuple(tests), _strings(compared["notes"])), exact, shared


def _about(kept: Mapping[str, Any]) -> About:
    words = {key: checked_type(str, kept[key]) for key in ("title", "data", "source", "command", "made")}
    seconds = None if kept["seconds"] is None else float(kept["seconds"])
    versions = checked_type(dict, kept["versions"])
    return About(
        **words,
        notes=_strings(kept["notes"]),
        seconds=seconds,
        rows=None if kept.get("rows") is None else checked_type(int, kept["rows"]),  # unknown to earlier versions
        missing=None if kept.get("missing") is None else float(kept["missing"]),  # likewise
        na=tuple(float(code) for code in kept.get("na", ())),  # likewise
        reversed_items={checked_type(str, k): float(v) for k, v in kept.get("reversed_items", {}).items()},  # likewise
        tolerance=None if kept.get("tolerance") is None else float(kept["tolerance"]),  # likewise
        groups=checked_type(str, kept.get("groups", "")),  # likewise
        versions=dict(zip(_strings(versions), _strings(versions.values()), strict=True)),
    )


def _step(kept: Mapping[str, Any]) -> Step:
    words, counts = ("phase", "what", "reason"), ("n_candidates", "n_bounded", "n_fitted", "n_cached")
    values: dict[str, Any] = {key: checked_type(str, kept[key]) for key in words}
    values |= {key: checked_type(int, kept[key]) for key in counts}
    values |= _numbers(kept, ("score_before", "score_after", "tolerance"))
    return Step(**values, accepted=checked_type(bool, kept["accepted"]))


def _strings(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(checked_type(str, value) for value in values)


def _numbers(row: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, float]:
    """Those entries of a row as numbers, also where JSON had to spell them."""
    return {key: float(row[key]) for key in keys if key in row}
