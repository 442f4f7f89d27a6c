"""A result as JSON, and back: graph, estimates, what the data were, options, version.

The part under "solution" is what the answer is rebuilt from, to the last digit; "parameters" and "indices" say the same
for readers that are not this package.
"""

from __future__ import annotations

import base64
import json
import math
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.data.matrices import checked_cov
from unmeasured.data.moments import margins
from unmeasured.data.rows import checked_names
from unmeasured.data.sample import Kind, Sample
from unmeasured.errors import UnmeasuredError, listing
from unmeasured.files import parsed_json
from unmeasured.graphs import CPDAG, DAG
from unmeasured.graphs import from_json as graph_from_json
from unmeasured.kernels import likelihood as kernels
from unmeasured.knowledge.known import Knowledge
from unmeasured.models.fit import Count, Fit
from unmeasured.models.full import FullInformation
from unmeasured.models.measures import Misfit, Robust, ScaledTest
from unmeasured.models.parameters import pattern_of
from unmeasured.models.solve import Problem, Solution
from unmeasured.remarks import Remark, Severity, severity_of
from unmeasured.results.earlier_formats import FORMAT, present_result
from unmeasured.results.rotation import rotated
from unmeasured.search.data_check import Finding
from unmeasured.search.discovery import RunnerUp
from unmeasured.search.item_partitions import ItemPartition

if TYPE_CHECKING:
    from unmeasured.results.result import Result

_DAMAGED = "This result in JSON is damaged"
_ENDS = (kernels.CONVERGED, kernels.STEP_LIMIT, kernels.STALLED, kernels.BAD_START)
_LARGEST = 1e50  # estimates of variables of unit variance
T = TypeVar("T")
_NEEDED = ("graph", "member", "sample", "solution", "remarks", "method", "options", "named_latents", "count")
_ARRAYS = ("x", "history", "lower")
_ROBUST_INDICES = ("chi2_scaled", "pvalue_scaled", "rmsea_robust", "cfi_robust", "tli_robust")
_ROBUST_NUMBERS = ("test", "baseline", "misfit", "baseline_misfit")
_FULL_NUMBERS = ("n", "chi2", "baseline_chi2", "loglik", "srmr")
_INDICES = ("chi2", "df", "pvalue", "rmsea", "cfi", "tli", "srmr", "aic", "bic", "loglik")


def to_json(result: Result) -> str:
    """The result as JSON text."""
    from unmeasured import __version__

    sample, fit = result.sem.sample, result.sem
    solution = asdict(fit.solution) | {key: getattr(fit.solution, key).tolist() for key in _ARRAYS}
    del solution["pace"]  # a fit that is told of has come to its end
    record = {
        "kind": "result",
        "format": FORMAT,
        "version": __version__,
        "method": result.method,
        "options": {key: _option(value) for key, value in result.options.items()},
        "named_latents": result.named_latents,
        "sign_indicators": dict(result.sign_indicators),
        "of_groups": dict(result.of_groups),
        "item_partitions": [
            {
                "latents": level.latents,
                "agreement": _or_none(level.agreement),
                "agreement_se": _or_none(level.agreement_se),
            }
            for level in result.stored_partitions
        ],
        "selected_partition": result.selected_partition,
        "estimation_note": result.estimation_note,
        "graph": json.loads(result.graph.to_json()),
        "member": json.loads(result.member.to_json()),
        "sample": {
            "names": sample.names,
            "n": sample.n,
            "cov": sample.cov.tolist(),
            "mean": None if sample.mean is None else sample.mean.tolist(),
            "kinds": sample.kinds,
            "margins": margins.to_record(margins.margins_of(sample)),
            "labels": dict(sample.labels),
            "reverse_keyed": sample.reverse_keyed,
        },
        "solution": solution,
        "count": fit.count,
        "remarks": result.remarks,
        "severities": [int(severity_of(remark)) for remark in result.remarks],
        "stopped": result.stopped,
        "check": [asdict(finding) for finding in result.check.findings],
        "runners": [{**vars(runner), "graph": json.loads(runner.graph.to_json())} for runner in result.runners],
        "indices": {name: getattr(fit, name) for name in _INDICES},
        "robust": _robust_record(result),
        "full_information": _full_record(result),
        "parameters": result.parameters.to_dict(orient="records"),
    }
    return json.dumps(_spelled(record), ensure_ascii=False, allow_nan=False)


def from_json(text: str) -> dict[str, Any]:
    """The fields of the result behind JSON text; the parts for other readers are left out."""
    record = _checked(text)
    try:
        graph, sem = _graph_and_fit(record)
        return {
            "graph": graph,
            "sem": sem,
            "runners": tuple(_runner(entry) for entry in record.get("runners", ())),  # unknown to earlier versions
            "method": checked_type(str, record["method"]),
            "options": _options(record["options"]),
            "findings": tuple(_finding(entry) for entry in record.get("check", ())),  # likewise
            "remarks": _remarks(record),
            "named_latents": tuple(checked_type(str, name) for name in record["named_latents"]),
            "stopped": checked_type(str, record.get("stopped", "")),  # likewise
            "sign_indicators": _sign_indicators(record.get("sign_indicators", {}), graph),  # likewise
            "of_groups": _of_groups(record.get("of_groups", {})),  # likewise
            **_partitions(record, graph),  # likewise
            "estimation_note": checked_type(str, record.get("estimation_note", "")),  # likewise
            "robust": _robust(record, graph, sem),  # likewise
            "acov": _acov_of_rows(record.get("full_information")),  # likewise
        }
    except UnmeasuredError as error:
        raise UnmeasuredError(f"{_DAMAGED}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UnmeasuredError(f"{_DAMAGED} ({fault_in_words(error)}). Give the text that to_json wrote.") from None


def fault_in_words(error: Exception) -> str:
    """What is wrong with a part of a file, as a reader of the file would say it.

    >>> fault_in_words(KeyError("names")), fault_in_words(TypeError("5 is no dict"))
    ("'names' is missing", '5 is no dict')
    """
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def checked_type(kind: type[T], value: Any) -> T:
    """The value, which must be of that kind."""
    if not isinstance(value, kind):
        raise TypeError(f"{value!r:.60} is no {kind.__name__}")
    return value


def _option(value: Any) -> Any:
    """Return an option as JSON has it; of knowledge, the statements that were made."""
    if not isinstance(value, Knowledge):
        return value
    return {entry.name: getattr(value, entry.name) for entry in fields(value) if getattr(value, entry.name)}


def _options(stored: Any) -> dict[str, Any]:
    """Return the options of a search; earlier versions wrote of knowledge how many statements there were."""
    options = dict(checked_type(dict, stored))
    if isinstance(options.get("knowledge"), dict):
        options["knowledge"] = Knowledge(**options["knowledge"])
    return options


def _finding(entry: Any) -> Finding:
    return Finding(checked_type(str, entry["topic"]), checked_type(bool, entry["ok"]), checked_type(str, entry["text"]))


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _partitions(record: dict[str, Any], graph: CPDAG) -> dict[str, Any]:
    """Return the item partitions of an answer and the number of the one that is reported first."""
    levels = []
    for entry in checked_type(list, record.get("item_partitions", [])):
        latents = tuple(checked_type(str, name) for name in entry["latents"])
        items = graph.variables.indicators
        if len(latents) != len(items):
            raise ValueError('an entry of "item_partitions" has not one latent for each observed variable')
        figures = [math.nan if entry.get(key) is None else float(entry[key]) for key in ("agreement", "agreement_se")]
        levels.append(ItemPartition(items, latents, *figures))
    selected_partition = checked_type(int, record.get("selected_partition", 0))
    if not 0 <= selected_partition < max(len(levels), 1):
        raise ValueError('"selected_partition" is the number of no item partition')
    return {"stored_partitions": tuple(levels), "selected_partition": selected_partition}


def _sign_indicators(stored: Any, graph: CPDAG) -> dict[str, str]:
    sign_indicators = {name: checked_type(str, item) for name, item in checked_type(dict, stored).items()}
    if not set(sign_indicators) <= set(graph.latents) or not set(sign_indicators.values()) <= set(graph.names):
        raise ValueError('"sign_indicators" is not of latents and variables of the graph')
    return sign_indicators


def _of_groups(stored: Any) -> dict[str, float]:
    """The test of the structure in groups of people, where there are some."""
    found = {str(key): float(value) for key, value in checked_type(dict, stored).items()}
    if found and set(found) != {"chi2", "df", "pvalue"}:
        raise ValueError('"of_groups" is not "chi2", "df" and "pvalue"')
    return found


def _remarks(record: dict[str, Any]) -> tuple[str, ...]:
    """The remarks with their severities, which earlier versions did not write."""
    severities = record.get("severities", [Severity.NOTE] * len(record["remarks"]))
    remarks = [checked_type(str, text) for text in record["remarks"]]
    return tuple(Remark(text, Severity(level)) for text, level in zip(remarks, severities, strict=True))


def _robust_record(result: Result) -> dict[str, Any] | None:
    """Robust statistics need rows, which are not kept; so they are."""
    robust = result.fit.robust
    if robust is None:
        return None
    n_free = result.fit.problem.pattern.n_free
    kept = {name: asdict(getattr(robust, name)) for name in _ROBUST_NUMBERS}
    words = {name: getattr(robust, name) for name in ("estimator", "correction", "reason")}
    indices = {name: getattr(result.reported, name) for name in _ROBUST_INDICES}
    return {**words, **kept, **indices, "acov": _packed(robust.acov[:n_free, :n_free])}


def _full_record(result: Result) -> dict[str, Any] | None:
    """What the likelihood of incomplete rows has given, and the covariance of estimates that follows from it."""
    full = result.sem.full
    if full is None:
        return None
    kept = {key: getattr(full, key) for key in _FULL_NUMBERS} | {"mean": full.mean.tolist()}
    acov = result.fit._acov
    return kept | {
        "acov": None if acov is None else _packed(acov[: result.fit.model.n_free, : result.fit.model.n_free])
    }


def _full(stored: Any, n: int) -> FullInformation | None:
    if stored is None:  # no value was missing, or unknown to earlier versions
        return None
    record = checked_type(dict, stored)
    mean = np.array([float(value) for value in record["mean"]])
    if mean.shape != (n,) or not np.isfinite(mean).all():
        raise ValueError(f'"mean" under "full_information" is not {n} numbers')
    n_rows, chi2, baseline, loglik, srmr = (float(record[key]) for key in _FULL_NUMBERS)
    return FullInformation(n_rows, mean, chi2, baseline, loglik, srmr)


def _acov_of_rows(stored: Any) -> Floats | None:
    """The covariance of estimates from the likelihood of incomplete rows, as it was kept."""
    if stored is None or stored["acov"] is None:
        return None
    packed = stored["acov"]
    # A triangle of n (n + 1) / 2 numbers of 8 bytes each.
    size = math.isqrt(len(base64.b64decode(packed, validate=True)) // 4) if isinstance(packed, str) else len(packed)
    acov = _unpacked(packed, size)
    if acov.shape != (size, size) or not np.isfinite(acov).all():
        raise ValueError('"acov" under "full_information" is no square matrix of numbers')
    return acov


# Up to so many parameters the covariance of estimates is written as numbers; 1,900 of them would take 80 MB.
_MOST_AS_NUMBERS = 300


def _packed(acov: Floats) -> list[list[float]] | str:
    """A covariance of estimates as rows of numbers; a large one as its lower triangle in base64, which is exact."""
    if len(acov) <= _MOST_AS_NUMBERS:
        return [[float(x) for x in row] for row in acov]
    return base64.b64encode(acov[np.tril_indices(len(acov))].astype("<f8").tobytes()).decode("ascii")


def _unpacked(stored: Any, n_free: int) -> Floats:
    """The covariance of estimates behind either form."""
    if not isinstance(stored, str):
        return np.array(stored, dtype=float)
    triangle = np.frombuffer(base64.b64decode(stored, validate=True), dtype="<f8")
    lower = np.tril_indices(n_free)
    if len(triangle) != len(lower[0]):
        raise ValueError(f'"acov" under "robust" is no matrix for {n_free} parameters')
    acov = np.empty((n_free, n_free))
    acov[lower] = acov.T[lower] = triangle
    return acov


def _robust(result: dict[str, Any], graph: CPDAG, sem: Fit) -> Robust | None:
    """Robust statistics of the fit whose rotation is fixed, the one that is reported: it has fewer parameters."""
    if result.get("robust") is None:  # not needed, or unknown to earlier versions
        return None
    record = checked_type(dict, result["robust"])
    n_free = rotated(sem, graph.latent_groups)[0].problem.pattern.n_free
    acov = _unpacked(record["acov"], n_free)
    if acov.shape != (n_free, n_free) or not np.isfinite(acov).all():
        raise ValueError(f'"acov" under "robust" is no matrix of numbers for {n_free} parameters')
    numbers = {name: {key: float(value) for key, value in record[name].items()} for name in _ROBUST_NUMBERS}
    return Robust(
        checked_type(str, record["estimator"]),
        checked_type(str, record["correction"]),
        acov,
        ScaledTest(**numbers["test"]),
        ScaledTest(**numbers["baseline"]),
        Misfit(**numbers["misfit"]),
        Misfit(**numbers["baseline_misfit"]),
        checked_type(str, record["reason"]),
    )


def _runner(entry: dict[str, Any]) -> RunnerUp:
    graph = graph_from_json(json.dumps(entry["graph"]))
    if not isinstance(graph, CPDAG):
        raise UnmeasuredError("A runner-up of a result is a cpdag. Give the text that to_json wrote.")
    return RunnerUp(graph, float(entry["score"]), float(entry["difference"]), int(entry["dimension"]))


def _graph_and_fit(record: dict[str, Any]) -> tuple[CPDAG, Fit]:
    graph, member = (graph_from_json(json.dumps(record[key])) for key in ("graph", "member"))
    if not isinstance(graph, CPDAG) or not isinstance(member, DAG):
        raise UnmeasuredError('In a result "graph" is a cpdag and "member" a dag. Give the text that to_json wrote.')
    if set(graph.variables.names) != set(member.variables.names) or graph.latents != member.latents:
        raise UnmeasuredError('"graph" and "member" are of different variables. Give the text that to_json wrote.')
    sample = _sample(record["sample"], member)
    problem = Problem.of(pattern_of(member), sample)
    if record["count"] not in get_args(Count):
        raise ValueError(f'"count" is {record["count"]!r:.60}')
    full = _full(record.get("full_information"), len(sample.names))  # unknown to earlier versions
    return graph, Fit(member, sample, problem, _solution(record["solution"], problem), record["count"], full=full)


def _sample(stored: Any, member: DAG) -> Sample:
    """The sample, its covariance checked as any that comes in."""
    checked_names([checked_type(str, name) for name in member.names], len(member.names))
    names = tuple(checked_type(str, name) for name in stored["names"])
    if sorted(names) != sorted(member.observed):
        raise ValueError('the names under "sample" are not the observed variables of the graph')
    cov, n = np.array(stored["cov"], dtype=float), float(stored["n"])
    if cov.shape != (len(names), len(names)) or not np.isfinite(cov).all():
        raise ValueError(f'"cov" is no matrix of numbers for {len(names)} variables')
    if not n > 1:
        raise ValueError(f'"n" is {n}')
    checked_cov(cov, names)
    cov.setflags(write=False)
    # Earlier versions kept neither means nor kinds nor labels.
    mean, kinds = stored.get("mean"), tuple(stored.get("kinds", ()))
    if mean is not None:
        mean = np.array([float(value) for value in mean])
        if mean.shape != (len(names),) or not np.isfinite(mean).all():
            raise ValueError(f'"mean" is not {len(names)} numbers')
    if kinds and (len(kinds) != len(names) or not set(kinds) <= set(get_args(Kind))):
        raise ValueError(f'"kinds" is {kinds!r:.60}')
    labels = {name: checked_type(str, text) for name, text in checked_type(dict, stored.get("labels", {})).items()}
    reverse_keyed = tuple(checked_type(str, name) for name in stored.get("reverse_keyed", ()))  # likewise
    return Sample(
        names,
        cov,
        n,
        mean,
        kinds,
        labels=labels,
        reverse_keyed=reverse_keyed,
        margins=_margins(stored.get("margins", {}), names),
        covariates=member.variables.covariates,
        outcomes=member.variables.outcomes,
    )


def _margins(stored: Any, names: tuple[str, ...]) -> dict[str, margins.Margin]:
    found = margins.from_record(checked_type(dict, stored))
    for name, margin in found.items():
        values, scores = margin.values, margin.scores
        lengths = len(values) - len(scores) == (1 if margin.kind == "ordinal" else 0)
        if name not in names or margin.kind not in get_args(margins.MarginKind) or not (len(values) and lengths):
            raise ValueError(f'"margins" of {name!r:.60} are damaged')
        if not (np.isfinite(values).all() and (np.diff(values) > 0).all() and (np.diff(scores) >= 0).all()):
            raise ValueError(f'"margins" of {name!r:.60} are not in order')
    return found


def _solution(stored: Any, problem: Problem) -> Solution:
    x, history, lower = (np.array([float(v) for v in stored[key]]) for key in _ARRAYS)
    n = problem.pattern.n_free
    if x.shape != (n,) or lower.shape != (n,) or not (np.abs(x) < _LARGEST).all():
        raise ValueError(f'"x" and "lower" under "solution" are not {n} numbers each')
    if not (x[problem.pattern.is_variance] > 0).all():
        raise ValueError('a variance under "solution" is not positive')
    if stored["end"] not in _ENDS or not 0 <= checked_type(int, stored["steps"]) < 1_000_000:
        raise ValueError(f'"end" under "solution" is {stored["end"]!r:.60}, "steps" {stored["steps"]!r:.60}')
    return Solution(
        x=x,
        discrepancy=float(stored["discrepancy"]),
        end=checked_type(int, stored["end"]),
        steps=checked_type(int, stored["steps"]),
        predicted_gain=float(stored["predicted_gain"]),
        history=history,
        lower=lower,
        n_starts=checked_type(int, stored["n_starts"]),
        zero_variance_latents=tuple(checked_type(str, name) for name in stored["zero_variance_latents"]),
    )


def _checked(text: str) -> dict[str, Any]:
    try:
        record = parsed_json(text)
    except ValueError as error:
        raise UnmeasuredError(f"This is not JSON: {error}. Give the text that to_json wrote.") from None
    kind = record.get("kind") if isinstance(record, dict) else None
    if kind != "result":
        raise UnmeasuredError(f'A result in JSON has "kind": "result"; got {kind!r}. A graph is read by from_json.')
    if record.get("format") not in (1, FORMAT):
        raise UnmeasuredError(
            f"This package reads results up to format {FORMAT}; got {record.get('format')!r}, written by version "
            f"{record.get('version')!r}. Read it with that version."
        )
    record = present_result(record)
    missing = [key for key in _NEEDED if key not in record]
    if missing:
        raise UnmeasuredError(f"A result in JSON needs the keys {listing(_NEEDED)}; missing: {listing(missing)}.")
    return dict(record)


def _spelled(value: Any) -> Any:
    """JSON has no infinity and no missing number: they are spelled as words, which ``float`` reads back."""
    if isinstance(value, dict):
        return {str(key): _spelled(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
