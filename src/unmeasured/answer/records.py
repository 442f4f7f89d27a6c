"""A result as JSON, and back: graph, estimates, what the data were, options, version.

The part under "solution" is what the answer is rebuilt from, to the last digit; "parameters" and "indices" say the same
for readers that are not this package.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from unmeasured.answer.runners import RunnerUp
from unmeasured.data.sample import Sample
from unmeasured.errors import UnmeasuredError, listing
from unmeasured.graphs import CPDAG, DAG
from unmeasured.graphs import from_json as graph_from_json
from unmeasured.precheck import Finding
from unmeasured.sem.fit import Fit
from unmeasured.sem.measures import Misfit, Robust, ScaledTest
from unmeasured.sem.parameters import pattern_of
from unmeasured.sem.solve import Problem, Solution

if TYPE_CHECKING:
    from unmeasured.answer.result import Result

FORMAT = 1
_NEEDED = ("graph", "member", "sample", "solution", "remarks", "method", "options", "named", "count")
_ARRAYS = ("x", "history", "lower")
_ROBUST_INDICES = ("chi2_scaled", "pvalue_scaled", "rmsea_robust", "cfi_robust", "tli_robust")
_ROBUST_NUMBERS = ("test", "baseline", "misfit", "baseline_misfit")
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
        "options": dict(result.options),
        "named": result.named,
        "graph": json.loads(result.graph.to_json()),
        "member": json.loads(result.member.to_json()),
        "sample": {"names": sample.names, "n": sample.n, "cov": sample.cov.tolist()},
        "solution": solution,
        "count": fit.count,
        "remarks": result.remarks,
        "check": [asdict(finding) for finding in result.check.findings],
        "runners": [{**vars(runner), "graph": json.loads(runner.graph.to_json())} for runner in result.runners],
        "indices": {name: getattr(fit, name) for name in _INDICES},
        "robust": _robust_record(result),
        "parameters": result.parameters.to_dict(orient="records"),
    }
    return json.dumps(_spelled(record), ensure_ascii=False, allow_nan=False)


def from_json(text: str) -> dict[str, Any]:
    """The fields of the result behind JSON text; the parts for other readers are left out."""
    record = _checked(text)
    try:
        graph, sem = _graph_and_fit(record)
        runners = tuple(_runner(entry) for entry in record.get("runners", ()))  # unknown to earlier versions
        robust = _robust(record.get("robust"))
    except UnmeasuredError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise UnmeasuredError(
            f"This result in JSON is damaged ({error!r}). Give the text that to_json wrote."
        ) from None
    fields = {key: record[key] for key in ("method", "options")}
    # Records written before there was a check have none.
    fields["findings"] = tuple(Finding(**finding) for finding in record.get("check", []))
    return {"graph": graph, "sem": sem, "runners": runners, "robust": robust, **fields} | {
        key: tuple(record[key]) for key in ("remarks", "named")
    }


def _robust_record(result: Result) -> dict[str, Any] | None:
    """Robust statistics need rows, which are not kept; so they are."""
    robust = result.fit.robust
    if robust is None:
        return None
    n_free = result.fit.model.n_free
    kept = {name: asdict(getattr(robust, name)) for name in _ROBUST_NUMBERS}
    words = {name: getattr(robust, name) for name in ("estimator", "correction", "reason")}
    indices = {name: getattr(result.reported, name) for name in _ROBUST_INDICES}
    return {**words, **kept, **indices, "acov": robust.acov[:n_free, :n_free].tolist()}


def _robust(record: dict[str, Any] | None) -> Robust | None:
    if record is None:  # not needed, or unknown to earlier versions
        return None
    numbers = {name: {key: float(value) for key, value in record[name].items()} for name in _ROBUST_NUMBERS}
    return Robust(
        record["estimator"],
        record["correction"],
        np.array(record["acov"], dtype=float),
        ScaledTest(**numbers["test"]),
        ScaledTest(**numbers["baseline"]),
        Misfit(**numbers["misfit"]),
        Misfit(**numbers["baseline_misfit"]),
        record["reason"],
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
    cov = np.array(record["sample"]["cov"], dtype=float)
    cov.setflags(write=False)
    sample = Sample(tuple(record["sample"]["names"]), cov, float(record["sample"]["n"]))
    stored: dict[str, Any] = dict(record["solution"])
    stored |= {key: np.array([float(v) for v in stored[key]]) for key in _ARRAYS}
    stored |= {key: float(stored[key]) for key in ("discrepancy", "promised")}
    solution = Solution(**stored | {"vanished": tuple(stored["vanished"])})
    return graph, Fit(member, sample, Problem.of(pattern_of(member), sample), solution, record["count"])


def _checked(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise UnmeasuredError(f"This is not JSON: {error}. Give the text that to_json wrote.") from None
    kind = record.get("kind") if isinstance(record, dict) else None
    if kind != "result":
        raise UnmeasuredError(f'A result in JSON has "kind": "result"; got {kind!r}. A graph is read by from_json.')
    if record.get("format") != FORMAT:
        raise UnmeasuredError(
            f"This package reads results of format {FORMAT}; got {record.get('format')!r}, written by version "
            f"{record.get('version')!r}. Read it with that version."
        )
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
