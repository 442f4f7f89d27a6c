"""What the package gave, in the terms of the record: the only file here that knows the attributes of the package.

A description has four parts. A renaming in the package changes this file and leaves the record as it is.

structure   text, whole numbers, truth values and lists of them, compared exactly
numbers     lists of numbers by table and row, such as ``"estimates: L1 =~ x1": [0.7, 0.05, 0.8, 0.03]``
sentences   text for readers, by topic
trace       the accepted steps of a search, each with its score
"""

from __future__ import annotations

import hashlib
import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np
import pandas as pd

import unmeasured as um
from unmeasured.estimators.base import Search
from unmeasured.metrics import Comparison
from unmeasured.models.dimension import Dimension
from unmeasured.models.fit import Fit
from unmeasured.models.measures import Measures
from unmeasured.models.multigroup import GroupFit, MeanFit
from unmeasured.models.reliability import Reliability
from unmeasured.peers.base import Peer
from unmeasured.remarks import severity_of
from unmeasured.results.compare import ModelComparison
from unmeasured.results.effects import ClassEffect, ClassEffects
from unmeasured.results.invariance import Invariance
from unmeasured.search.data_check import Check
from unmeasured.search.item_partitions import ItemPartition
from unmeasured.validation.confirmation import Confirmation
from unmeasured.validation.penalty_path import PenaltyPath
from unmeasured.validation.replicates.result import Stability

# The columns of each table of numbers; in a table that is not listed a row has one number, or columns of its own.
LEGEND: dict[str, tuple[str, ...]] = {
    "estimates": ("estimate", "standard error", "standardised", "its standard error"),
    "effects": ("estimate", "standard error", "lower", "upper", "standardised", "its standard error"),
    "class effects": ("smallest", "largest", "lower", "upper"),
    "runners-up": ("difference of BIC", "dimension"),
    "partitions": ("agreement", "standard error"),
    "steps of invariance": ("chi-square", "df", "RMSEA", "CFI", "TLI", "SRMR", "BIC", "change of CFI", "of RMSEA"),
    "differences of groups": ("chi-square", "p-value", "change", "gain in BIC"),
    "models": ("chi-square", "df", "RMSEA", "CFI", "TLI", "SRMR", "AIC", "BIC"),
    "difference tests": ("chi-square", "df", "p-value"),
    "rows left out": ("log-likelihood", "standard error", "difference", "its standard error"),
    "frequencies": ("of the edge", "forward", "backward", "undirected"),
    "items": ("stability", "and of no other"),
    "groups found": ("found", "same items", "same size", "stability of items"),
    "steps of the penalty": ("penalty", "dimension", "chi-square", "df", "RMSEA", "BIC"),
    "variables": ("R2", "sampling adequacy"),
    "reliability": ("omega", "alpha", "variance extracted"),
    "in new rows": ("standardised before", "standardised", "standard error", "p-value"),
}
_INDICES = {
    "chi-square": "chi2", "p-value": "pvalue", "RMSEA": "rmsea", "CFI": "cfi", "TLI": "tli", "SRMR": "srmr",
    "AIC": "aic", "BIC": "bic", "log-likelihood": "loglik",
}  # fmt: skip
_ROBUST = {
    "scaled chi-square": "chi2_scaled", "scaled p-value": "pvalue_scaled", "scaling factor": "scaling_factor",
    "shift": "shift", "robust RMSEA": "rmsea_robust", "robust CFI": "cfi_robust", "robust TLI": "tli_robust",
}  # fmt: skip
_MOST_VALUES = 400  # of a table of scores or residuals: more are summed up


@dataclass
class Description:
    """The four parts that describe an answer."""

    structure: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, list[float]] = field(default_factory=dict)
    sentences: dict[str, list[str]] = field(default_factory=dict)
    trace: dict[str, list[list[Any]]] = field(default_factory=dict)

    def add(self, other: Description, prefix: str = "") -> None:
        """Take in another description, its entries under a prefix."""
        for part in ("structure", "numbers", "sentences", "trace"):
            for key, value in getattr(other, part).items():
                getattr(self, part)[f"{prefix} | {key}" if prefix else key] = value


@dataclass(frozen=True)
class Text:
    """An exported text: ``is_exact`` if programs read it, so that its lines are structure and its numbers numbers."""

    text: str
    is_exact: bool = True


@singledispatch
def describe(value: Any) -> Description:
    """Describe anything that a case returns."""
    raise TypeError(f"describe.py has no description of {type(value).__name__}")


@describe.register(Mapping)
def _(value: Mapping[str, Any]) -> Description:
    made = Description()
    for name, part in value.items():
        made.add(describe(part), str(name))
    return made


@describe.register(bool)
@describe.register(int)
@describe.register(str)
@describe.register(list)
@describe.register(tuple)
def _(value: Any) -> Description:
    return Description({"value": list(value) if isinstance(value, list | tuple) else value})


@describe.register
def _(value: float) -> Description:
    return Description(numbers={"value": [value]})


@describe.register(np.ndarray)
def _(value: Any) -> Description:
    return describe(pd.DataFrame(np.atleast_2d(value)))


@describe.register
def _(value: pd.DataFrame) -> Description:
    """Describe a table of numbers, such as scores or residuals, by its rows; of a large one by moments of its columns.

    A row goes by its place: its sum, weighted by positions, stands for rows beyond the first.
    """
    values = value.to_numpy(dtype=float)
    made = Description({"shape": list(values.shape), "columns": [str(name) for name in value.columns]})
    if values.size <= _MOST_VALUES:
        names = [" ".join(map(str, row)) if isinstance(row, tuple) else str(row) for row in value.index]
        made.numbers |= {f"rows: {name}": row.tolist() for name, row in zip(names, values, strict=True)}
        return made
    made.structure["missing"] = int(np.isnan(values).sum())
    place = np.cos(np.arange(len(values)))[:, None]  # tells rows that were exchanged
    made.numbers["rows: mean"] = np.nanmean(values, axis=0).tolist()
    made.numbers["rows: sd"] = np.nanstd(values, axis=0).tolist()
    made.numbers["rows: with places"] = np.nanmean(values * place, axis=0).tolist()
    return made


@describe.register
def _(value: pd.Series) -> Description:
    return describe(value.to_frame("value"))


# Graphs -----------------------------------------------------------------------------------------------------


@describe.register(um.DAG)
@describe.register(um.CPDAG)
def _(value: um.DAG | um.CPDAG) -> Description:
    return Description(
        {
            "graph": _lines(value),
            "observed": list(value.observed),
            "latent groups": [" ".join(group) for group in value.latent_groups],
        }
    )


def _lines(graph: um.DAG | um.CPDAG) -> list[str]:
    """One line for each variable with effects, each undirected edge, each residual pair."""
    effects: dict[str, list[str]] = {}
    for cause, effect in graph.directed_edges:
        effects.setdefault(cause, []).append(effect)
    lines = [f"{cause} -> {' '.join(effects[cause])}" for cause in graph.names if cause in effects]
    lines += [f"{a} -- {b}" for a, b in graph.undirected_edges]
    lines += [f"{a} ~~ {b}" for a, b in graph.pairs]
    return lines + [f"given: {a} -> {b}" for a, b in graph.known]


def _digest(graph: um.CPDAG) -> str:
    """Ten characters that tell classes apart, whatever their latents are called.

    A latent goes by its children among the observed variables, or by those of its children.
    """
    known: dict[str, str] = {name: name for name in graph.observed}
    for _ in range(len(graph.latents) + 1):
        for group in graph.latent_groups:
            children = {b for a, b in graph.directed_edges if a == group[0]}
            items = sorted(known[x] for x in children if x in known and x not in graph.latents)
            below = sorted(known[x] for x in children if x in known and x in graph.latents)
            for latent in group:
                known[latent] = f"{{{len(group)}: {' '.join(items or below)}}}"
    edges = [f"{known[a]}>{known[b]}" for a, b in graph.directed_edges]
    edges += ["-".join(sorted((known[a], known[b]))) for a, b in graph.undirected_edges]
    return hashlib.sha256("\n".join(sorted(edges)).encode()).hexdigest()[:10]


# Fits -------------------------------------------------------------------------------------------------------


@describe.register(Fit)
@describe.register(GroupFit)
def _(value: Fit | GroupFit) -> Description:
    made = _measures(value)
    made.numbers |= _estimates(value.parameters)
    if isinstance(value, GroupFit | MeanFit):
        means = value.latent_means
        table = means.to_frame("all") if isinstance(means, pd.Series) else means
        made.numbers |= {f"latent means: {name}": row.tolist() for name, row in zip(table.index, table.to_numpy())}
    return made


def _measures(fit: Measures) -> Description:
    """Describe how a model fits."""
    made = Description(
        {
            "df": int(fit.df),
            "counted parameters": int(fit.n_counted),
            "converged": bool(fit.converged),  # type: ignore[attr-defined]
            "proper": bool(fit.admissible),  # type: ignore[attr-defined]
        },
        {f"indices: {name}": [_number(getattr(fit, key))] for name, key in _INDICES.items()},
    )
    made.numbers["indices: N"] = [_number(fit.n_samples)]
    made.numbers["indices: RMSEA interval"] = [_number(end) for end in fit.rmsea_ci]
    if fit.robust is not None:
        made.numbers |= {f"indices: {name}": [_number(getattr(fit, key))] for name, key in _ROBUST.items()}
        made.sentences["correction"] = [fit.robust.estimator, fit.robust.correction, fit.robust.reason]
    made.sentences["status"] = [str(getattr(fit, "status", ""))]
    made.sentences["notes"] = list(getattr(fit, "notes", ()))
    return made


def _estimates(table: pd.DataFrame) -> dict[str, list[float]]:
    columns = [name for name in ("est", "se", "std", "std_se") if name in table]
    groups = table["group"] if "group" in table else [""] * len(table)
    rows = zip(groups, table["lhs"], table["op"], table["rhs"], table[columns].to_numpy(dtype=float), strict=True)
    made: dict[str, list[float]] = {}
    for group, a, op, b, values in rows:
        key = f"estimates: {a} {op} {b}" + (f" [{group}]" if group else "")
        made[key] = [_number(x) for x in values]
    return made


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


# Answers of searches ----------------------------------------------------------------------------------------


@describe.register
def _(value: um.Result) -> Description:
    return _result(value)


def _result(result: um.Result) -> Description:
    graph, member = result.graph, result.member
    made = describe(graph)
    made.add(_measures(result.reported))
    latents = set(member.latents)
    structure = made.structure
    structure["latents in the fitted member"] = [f"{a} -> {b}" for a, b in member.edges if {a, b} <= latents]
    structure["height of latents"] = [f"{name} {height}" for name, height in graph.levels.items() if height]
    structure["covariates"] = list(graph.variables.covariates)
    structure["outcomes"] = list(graph.variables.outcomes)
    structure["kinds of variables"] = sorted(set(result.sem.sample.kinds))
    structure["partitions"] = [_partition(level) for level in result.item_partitions]
    structure["partition reported first"] = int(result.selected_partition)
    structure["residual pairs"] = sorted(
        f"{a} ~~ {b}" for a, b in zip(result.local_dependence["item_1"], result.local_dependence["item_2"], strict=True)
    )
    structure["proposed names"] = [f"{old}: {new}" for old, new in result.suggested_names.items()]
    structure["zeros that fix rotations"] = [
        f"{' '.join(g)}: {' '.join(x)}" for g, x in result.reference_indicators.items()
    ]
    structure["items that fix signs"] = [f"{latent}: {item}" for latent, item in result.sign_indicators.items()]
    structure["named"] = list(result.named_latents)
    structure["was stopped"] = bool(result.stopped)
    numbers = made.numbers
    numbers |= _estimates(result.parameters)
    for level in result.item_partitions:
        if not math.isnan(level.agreement):
            numbers[f"partitions: {level.n_latents} latents"] = [level.agreement, level.agreement_se]
    # Classes with equal scores may change places, so they go by what they are.
    runners = {_digest(runner.graph): runner for runner in result.runners}
    numbers |= {f"runners-up: {key}": [one.difference, float(one.dimension)] for key, one in sorted(runners.items())}
    made.sentences["remarks"] = [f"({int(severity_of(remark))}) {remark}" for remark in result.remarks]
    made.sentences["estimated in"] = [result.estimation_note] if result.estimation_note else []
    return made


def _partition(level: ItemPartition) -> str:
    """One text: each latent and its items."""
    items: dict[str, list[str]] = {}
    for item, latent in zip(level.items, level.latents, strict=True):
        items.setdefault(latent or "none", []).append(item)
    return "; ".join(f"{latent}: {' '.join(own)}" for latent, own in items.items())


def shared_items(search: Search) -> Description:
    """Describe no more of an answer than which observed variables share a latent, latents in no order."""
    latents = search.graph_.latents
    sets = {name: sorted(b for a, b in search.graph_.directed_edges if a == name) for name in latents}
    return Description({"items that share a latent": sorted(" ".join(items) for items in sets.values())})


@describe.register
def _(value: Search) -> Description:
    made = _result(value.result_)
    steps = getattr(value, "trace_", ())
    if isinstance(value, um.LGES):
        made.numbers["options: tolerance"] = [float(value.tolerance_)]
        made.trace["accepted steps"] = [[f"{x.phase}: {x.what}", x.score_after] for x in steps if x.accepted]
        if value.sample_.groups:
            for label, result in value.group_results_.items():
                made.numbers |= {f"{k} [{label}]": v for k, v in _estimates(result.parameters).items()}
    elif isinstance(value, um.ExactSearch):
        made.structure["all classes decided"] = bool(value.proven_)
        made.structure["classes"] = int(value.n_classes_)
        made.numbers["options: score"] = [float(value.score_)]
        made.trace["accepted steps"] = [[step.what, step.score] for step in steps]
    elif isinstance(value, Peer):
        clusters = getattr(value, "clusters_", ())
        made.structure["clusters"] = [" ".join(map(str, cluster)) for cluster in clusters]
        if hasattr(value, "n_factors_"):
            made.structure["number of factors"] = int(value.n_factors_)
    return made


def steps_counted(value: Any) -> dict[str, int]:
    """Return the counts that a search keeps itself; empty for anything else."""
    if isinstance(value, um.LGES):
        return {
            "steps": len(value.trace_),
            "candidates": sum(step.n_candidates for step in value.trace_),
            "candidates bounded": sum(step.n_bounded for step in value.trace_),
            "candidates fitted": sum(step.n_fitted for step in value.trace_),
        }
    if isinstance(value, um.ExactSearch):
        return {"candidates fitted": int(value.n_fitted_)}
    return {}


# What is done with answers ----------------------------------------------------------------------------------


def _rows(table: str, frame: pd.DataFrame, keys: Sequence[str], columns: Sequence[str]) -> dict[str, list[float]]:
    """Rows of a data frame as a table of numbers, named by their text columns; absent columns are left out."""
    names = [" ".join(str(x) for x in row) for row in frame[list(keys)].to_numpy()] if keys else map(str, frame.index)
    values = frame[[name for name in columns if name in frame]].to_numpy(dtype=float)
    return {f"{table}: {name}": [float(x) for x in row] for name, row in zip(names, values, strict=True)}


@describe.register
def _(value: ClassEffects) -> Description:
    table = value.table
    pairs = [f"{pair.cause} {pair.effect}: {len(pair.values)} values, {pair.informative_edge}" for pair in value.pairs]
    return Description(
        {"pairs": pairs, "members": str(value.n_members)},
        _rows("class effects", table, ("cause", "effect"), ("smallest", "largest", "lower", "upper")),
        {"effects": [pair.sentence for pair in value.pairs]},
    )


@describe.register
def _(value: ClassEffect) -> Description:
    return describe(ClassEffects((value,), math.inf))


@describe.register
def _(value: Reliability) -> Description:
    return Description(
        {"latents": list(value.table.index)},
        _rows("reliability", value.table, (), ("omega", "alpha", "ave"))
        | _rows("correlations", value.correlations, (), list(value.correlations.columns))
        | _rows("heterotrait-monotrait", value.htmt, (), list(value.htmt.columns)),
        {"reliability": list(value.sentences)},
    )


@describe.register
def _(value: Invariance) -> Description:
    columns = ("chi2", "df", "rmsea", "cfi", "tli", "srmr", "bic", "d_cfi", "d_rmsea")
    keys = ("kind", "lhs", "op", "rhs", "group")
    made = Description(
        {
            "groups": list(value.groups),
            "supported step": value.supported_step,
            "differing edges": sorted(f"{a} -> {b}" for a, b in value.noninvariant_edges),
        },
        _rows("steps of invariance", value.table, (), columns)
        | _rows("differences of groups", value.differences, keys, ("chi2", "pvalue", "change", "bic"))
        | _rows("latent means", value.latent_means, ("latent", "group"), ("mean", "se")),
        {"invariance": list(value.sentences)},
    )
    last = list(value.fits)[-1]
    made.numbers |= {f"{key} [{last}]": row for key, row in _estimates(value.fits[last].parameters).items()}
    return made


@describe.register
def _(value: Confirmation) -> Description:
    made = describe(value.result)
    made.numbers |= _rows("in new rows", value.edges, ("source", "target"), ("std_found", "std", "se", "pvalue"))
    made.structure["same signs"] = [bool(x) for x in value.edges["same_sign"]]
    made.sentences["confirmation"] = list(value.sentences)
    return made


@describe.register
def _(value: Stability) -> Description:
    edges, items, groups = value.edges, value.items, value.latent_groups
    numbers = _rows("frequencies", edges, ("source", "target"), ("frequency", "forward", "backward", "undirected"))
    numbers |= _rows("items", items, ("item",), ("stability", "exact"))
    numbers |= _rows("groups found", groups, ("group",), ("found", "consistency", "same_size", "item_stability"))
    numbers |= {f"number of latents: {k}": [float(x)] for k, x in value.n_latents.items()}
    numbers["agreement: mean"] = [float(value.agreement)]
    return Description(
        {"method": value.method, "replicates": len(value.replicates), "consensus": _lines(value.consensus())},
        numbers,
        {"stability": value.summary().splitlines(), "failures": list(value.failures)},
    )


@describe.register
def _(value: PenaltyPath) -> Description:
    table = value.table
    columns = ("penalty", "dimension", "chi2", "df", "rmsea", "bic")
    return Description(
        {"step to read first": int(value.suggested), "classes": [_digest(step.graph) for step in value.steps]},
        _rows("steps of the penalty", table, (), columns),
        {"reason": [value.reason]},
    )


@describe.register
def _(value: ModelComparison) -> Description:
    columns = ("chi2", "df", "rmsea", "cfi", "tli", "srmr", "aic", "bic")
    numbers = _rows("models", value.table, (), columns)
    numbers |= _rows("difference tests", value.tests, ("smaller", "larger"), ("chi2", "df", "pvalue"))
    if value.held_out is not None:
        left_out = ("loglik", "se", "difference", "difference_se")
        numbers |= _rows("rows left out", value.held_out, (), left_out)
    nesting = value.nesting
    nested = [f"{a} {b}: {nesting.loc[a, b]}" for a in nesting.index for b in nesting.columns]
    return Description(
        {"best first": list(value.fits), "nesting": nested, "proper": [bool(x) for x in value.table["proper"]]},
        numbers,
        {"notes": list(value.notes)},
    )


@describe.register
def _(value: Check) -> Description:
    made = Description(
        {
            "suitable": bool(value.ok),
            "latents warranted": bool(value.is_warranted),
            "answers": [f"{finding.topic}: {finding.ok}" for finding in value.findings],
            "unrelated": list(value.alone),
            "collinear": list(value.collinear),
            "columns left out": len(value.column_errors),
        },
        _rows("variables", value.table, (), ("r2", "msa")),
        {"check": [finding.text for finding in value.findings], "faults": list(value.column_errors)},
    )
    made.numbers["indices: sampling adequacy"] = [float(value.kmo)]
    made.numbers["indices: independence"] = [value.independence_chi2, float(value.independence_df)]
    if value.mardia is not None:
        made.sentences["normality"] = [str(value.mardia)]
    return made


@describe.register
def _(value: Comparison) -> Description:
    return Description(
        {"distance": int(value.shd), "matching": [f"{a}: {b}" for a, b in value.matching.items()]},
        {"indices: F1, precision, recall": [value.f1, value.precision, value.recall]},
    )


@describe.register
def _(value: Dimension) -> Description:
    return Description({"dimension": int(value)})


def differing(one: Description, other: Description) -> list[str]:
    """Return the entries that two descriptions do not share, to the last digit."""
    entries: list[str] = []
    for part in ("structure", "numbers", "sentences"):
        a, b = ({key: repr(value) for key, value in getattr(x, part).items()} for x in (one, other))
        entries += sorted(f"{part}: {key}" for key in {*a, *b} if a.get(key) != b.get(key))
    return entries


def effects(table: pd.DataFrame) -> Description:
    """Describe the table of effects in a fitted member."""
    columns = ("est", "se", "lower", "upper", "std", "std_se")
    return Description(numbers=_rows("effects", table, ("cause", "effect", "kind"), columns))


def modification_indices(table: pd.DataFrame) -> Description:
    """Describe a table of modification indices, each row by its parameter."""
    return Description(numbers=_rows("modification indices", table, ("lhs", "op", "rhs"), ("mi", "epc")))


@describe.register
def _(value: Description) -> Description:
    return value


# Exported text ----------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:[eE][-+]?\d+)?")
_DATE = re.compile(r"\b20\d\d-\d\d-\d\d( \d\d:\d\d UTC)?")
_HIDDEN = re.compile(r"<(script|style|svg)\b.*?</\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


@describe.register
def _(value: Text) -> Description:
    if not value.is_exact:
        return Description(sentences={"text": _shown(value.text)})
    lines = value.text.splitlines()
    numbers = [float(x) for x in _NUMBER.findall(value.text)]
    made = Description({"lines": [_NUMBER.sub("#", line) for line in lines]})
    if numbers:
        made.numbers["numbers: in the text"] = numbers
    return made


def _shown(text: str) -> list[str]:
    """The lines that a reader sees, without the date of the run; of a page without tags, scripts and pictures."""
    if text.lstrip().startswith("<"):
        text = html.unescape(_TAG.sub("\n", _HIDDEN.sub("", text)))
    return [_DATE.sub("DATE", line.rstrip()) for line in text.splitlines() if line.strip()]
