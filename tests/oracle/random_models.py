"""Models drawn at random, lavaan's answers to them and ours: one generator, one table.

::

    a batch (seed, size, features)  ->  Draft (factors, statements, options)  ->  Case  ->  lavaan's figures, stored
                                                                                   |
                                                                                   +---->  our fit, compared with them

A *feature* is one function that adds one thing to a draft (cross-loadings, groups, an estimator, ...), or returns False
where that cannot be had. Each model has one feature in turn that it must have, and others by chance, so that every
feature comes often and in many combinations. A batch is never changed once it is stored: to have more models or more
features, add functions to ``FEATURES`` and a batch to ``BATCHES``.

``python tests/oracle/random_models.py draw``
    draws all batches, lets lavaan fit them (R with lavaan, and the rows of ``../shared/data``), writes
    ``random_models.json``: model text, rows, options and lavaan's figures, no rows.
``python tests/oracle/random_models.py judge``
    fits every model with this package, writes to ``random_models_verdicts.json`` every model whose verdict is not
    *equal*, and prints the table by feature. A model that is ``different`` keeps the reason that was
    written there by hand. Run it after each change that is meant to move a verdict, and read the
    diff: a model that becomes ``different`` is a fault.
``python tests/oracle/random_models.py start``
    asks lavaan again, from our estimates, about the models to which we give a higher likelihood. Where that is where it
    ends, it had stopped at a local optimum, and these figures take the place of the first ones (``"start": "ours"``).
``python tests/oracle/random_models.py table``
    prints the row of every model: both programs' figures, largest differences, verdict.
``python tests/oracle/random_models.py rows``
    simulates ``random_models_rows.csv`` again (300 rows, made for these tests).

Verdicts: *equal*; *refused*, by an :class:`~unmeasured.errors.UnmeasuredError`; *stated*, where the fit's status or
notes say what lavaan would have done (and where they name arguments, a fit with these equals lavaan's); *different*,
without a word.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import unmeasured as um
from unmeasured.models.multigroup import GroupFit

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[2] / "shared" / "data"
STORED = HERE / "random_models.json"
VERDICTS = HERE / "random_models_verdicts.json"
SIMULATED = HERE / "random_models_rows.csv"


# Rows ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Rows to draw models over: blocks of items that belong together, covariates, groups of people."""

    name: str
    blocks: Mapping[str, tuple[str, ...]]
    covariates: tuple[str, ...] = ()
    group: str = ""
    is_ordinal: bool = False
    has_holes: bool = False
    weight: float = 1.0
    repeated: tuple[str, ...] = ()  # measures in the order of time, for growth models


def _numbered(stem: str, n: int, first: int = 1) -> tuple[str, ...]:
    return tuple(f"{stem}{k}" for k in range(first, first + n))


_BURNOUT = {
    "exhaustion": _numbered("EE", 3),
    "accomplishment": _numbered("PA", 3),
    "esteem": _numbered("SE", 3),
    "control": _numbered("ELC", 5),
    "climate": _numbered("CC", 4),
    "strain": ("RA1", "RA2", "WO1", "DP1", "DP2"),
}
_SIMULATED = {"a": _numbered("a", 4), "b": _numbered("b", 4), "c": _numbered("c", 3)}
SOURCES = (
    Source("random_models_rows", _SIMULATED, ("z1", "z2"), "g", weight=3.0, repeated=_numbered("t", 4)),
    Source("random_models_rows", {"p": _numbered("p", 4), "q": _numbered("q", 4)}, ("z1", "z2"), is_ordinal=True),
    Source(
        "holzinger_swineford",
        {"visual": _numbered("x", 3), "textual": _numbered("x", 3, 4), "speed": _numbered("x", 3, 7)},
        ("ageyr", "agemo", "sex"),
        "school",
        weight=2.0,
    ),
    Source(
        "political_democracy",
        {"dem60": _numbered("y", 4), "dem65": _numbered("y", 4, 5)},
        _numbered("x", 3),
        repeated=("y1", "y5", "y3", "y7"),
    ),
    Source("teacher_burnout", _BURNOUT, ("RC1", "WO2", "DM1"), repeated=("SE1", "SE2", "SE3", "CC3")),
    Source("teacher_burnout_10pct_missing", _BURNOUT, ("RC1", "WO2", "DM1"), has_holes=True),
    Source(
        "multitasking",
        {
            "speed": ("Speed_Number", "Speed_Letter", "Speed_Figure"),
            "error": ("Error_Number", "Error_Letter", "Error_Figure"),
            "question": _numbered("AverageQus_Par", 3),
        },
    ),
    Source("big5_25items", {x: _numbered(x, 5) for x in "OCEAN"}, is_ordinal=True),
)
_COVARIATES = {x for source in SOURCES for x in source.covariates}


@lru_cache
def rows_of(name: str) -> pd.DataFrame:
    """Rows by name, with changes: ``at 40`` (covariates have mean 40), ``gaps`` (in items), ``gaps everywhere``.

    Raises
    ------
    FileNotFoundError
        When the rows are not part of the repository and ``../shared`` is absent.
    """
    stem, *changes = name.split(", ")
    if stem == SIMULATED.stem:
        rows = pd.read_csv(SIMULATED)
    elif stem == "big5_25items":
        rows = pd.read_csv(DATA / f"{stem}.csv.gz")
        rows = rows[(rows != 0).any(axis=1)]
        rows = rows[(rows != 0).all(axis=1)][:600].reset_index(drop=True)
    else:
        rows = pd.read_csv(DATA / f"{stem}.csv")
    numeric = [x for x in rows.columns if pd.api.types.is_numeric_dtype(rows[x])]
    if "at 40" in changes:
        for x in _COVARIATES & set(numeric):
            rows[x] = rows[x] - rows[x].mean().round() + 40.0
    gaps = [x for x in numeric if "gaps everywhere" in changes or ("gaps" in changes and x not in _COVARIATES)]
    for j, x in enumerate(gaps):
        if x not in ("g", "school"):
            rows[x] = rows[x].astype(float).mask((np.arange(len(rows)) * (2 * j + 3) + j * j) % 17 == 3)
    return rows


def simulate_rows() -> pd.DataFrame:
    """Three hundred rows: skewed items a, b, c with a group, ordinal items p, q, growth t, covariates z."""
    rng = np.random.default_rng(20261119)
    n = 300
    z = np.column_stack([rng.normal(40.0, 2.0, n), rng.integers(0, 2, n)])
    g = rng.integers(0, 2, n)
    f = rng.multivariate_normal(np.zeros(3), np.full((3, 3), 0.4) + 0.6 * np.eye(3), n)
    f = f + 0.15 * (z[:, :1] - 40.0) + 0.3 * z[:, 1:] + 0.2 * g[:, None]
    columns: dict[str, Any] = {}
    for k, (stem, size) in enumerate((("a", 4), ("b", 4), ("c", 3))):
        for j in range(size):
            noise = rng.gamma(2.0, 1.0, n) / math.sqrt(2.0) - math.sqrt(2.0) if k < 2 else rng.normal(size=n)
            other = 0.25 * f[:, (k + 1) % 3] if j == 2 else 0.0
            columns[f"{stem}{j + 1}"] = np.round(3.0 + (0.9 - 0.1 * j) * f[:, k] + other + 0.7 * noise, 2)
    for k, stem in enumerate("pq"):
        for j in range(4):
            value = 0.75 * f[:, k] + 0.7 * rng.normal(size=n)
            cuts = (-0.9, -0.2, 0.5, 1.3) if j % 2 else (-0.3, 0.8)
            columns[f"{stem}{j + 1}"] = np.searchsorted(cuts, value) + 1
    level, slope = rng.normal(5.0, 1.0, n), rng.normal(0.6, 0.4, n)
    for j in range(4):
        columns[f"t{j + 1}"] = np.round(level + j * slope + rng.normal(0.0, 0.6, n), 2)
    return pd.DataFrame(
        {**columns, "z1": np.round(z[:, 0], 2), "z2": z[:, 1].astype(int), "g": np.where(g, "two", "one")}
    )


# Drafts ----------------------------------------------------------------------------------------------------


@dataclass
class Draft:
    """A model while features add to it: statements in the order they are written, options of both programs."""

    source: Source
    factors: dict[str, list[str]]
    statements: dict[tuple[str, str, str], str] = field(default_factory=dict)  # (lhs, op, rhs) -> modifiers
    definitions: list[str] = field(default_factory=list)
    ours: dict[str, Any] = field(default_factory=dict)
    theirs: dict[str, Any] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    is_replaced: bool = False  # whether its structure is not that of factors
    has_defaults: bool = False  # whether both programs follow their own defaults

    def add(self, lhs: str, op: str, rhs: str, modifier: str = "") -> bool:
        """Add a statement unless it is there, or says what another says the other way round."""
        turned = (rhs, op, lhs) if op == "~~" else (rhs, "=~" if op == "~" else "~", lhs)
        if (lhs, op, rhs) in self.statements or turned in self.statements:
            return False
        self.statements[lhs, op, rhs] = modifier
        return True

    def having(self, op: str) -> list[tuple[str, str, str]]:
        """Statements with this operator that have no modifier yet."""
        return [s for s, modifier in self.statements.items() if s[1] == op and not modifier]

    @property
    def items(self) -> list[str]:
        return list(dict.fromkeys(x for items in self.factors.values() for x in items))

    @property
    def used(self) -> set[str]:
        return {name for lhs, _, rhs in self.statements for name in (lhs, rhs)}

    def covariates(self) -> list[str]:
        """Covariates that the model uses as causes."""
        return [x for x in self.source.covariates if any(s[1] == "~" and s[2] == x for s in self.statements)]

    def text(self) -> str:
        """The model, statements of one left side and operator on one line."""
        lines: dict[tuple[str, str], list[str]] = {}
        for (lhs, op, rhs), modifier in self.statements.items():
            lines.setdefault((lhs, op), []).append(f"{modifier}{rhs}")
        return "\n".join([f"{lhs} {op} {' + '.join(terms)}" for (lhs, op), terms in lines.items()] + self.definitions)


def _factors(source: Source, rng: np.random.Generator) -> dict[str, list[str]]:
    """One to four blocks with three items or more, in the order of the data."""
    wide = [name for name, items in source.blocks.items() if len(items) >= 3]
    n = int(rng.integers(1, min(4, len(wide)) + 1)) if len(wide) > 2 else len(wide)
    chosen = {name: source.blocks[name] for name in rng.permutation(wide)[: max(n, 1 + (rng.random() < 0.7))]}
    return {
        f"f_{name}": [items[k] for k in sorted(rng.permutation(len(items))[: int(rng.integers(3, len(items) + 1))])]
        for name, items in chosen.items()
    }


# Features --------------------------------------------------------------------------------------------------

Apply = Callable[[Draft, np.random.Generator], bool]


@dataclass(frozen=True)
class Feature:
    """One thing a model may have: what adds it, the rows it needs, and how often it comes by chance."""

    name: str
    apply: Apply
    needs: Callable[[Source], bool] = lambda source: not source.is_ordinal
    chance: float = 0.08


def _add_all(d: Draft, statements: Iterable[tuple[str, str, str]], modifier: str = "") -> list[bool]:
    """Add every statement; which of them were new."""
    return [d.add(*s, modifier) for s in statements]


def _pick(rng: np.random.Generator, of: list[Any], n: int = 1) -> list[Any]:
    return [of[k] for k in rng.permutation(len(of))[:n]]


def cross_loadings(d: Draft, rng: np.random.Generator) -> bool:
    pairs = [(f, x) for f in d.factors for x in d.items if x not in d.factors[f]]
    return any(_add_all(d, ((f, "=~", x) for f, x in _pick(rng, pairs, int(rng.integers(1, 3))))))


def residual_covariances(d: Draft, rng: np.random.Generator) -> bool:
    pairs = [(x, y) for k, x in enumerate(d.items) for y in d.items[k + 1 :]]
    chosen = _pick(rng, pairs, int(rng.integers(1, 3))) if len(d.items) >= 6 else []
    return any(_add_all(d, ((x, "~~", y) for x, y in chosen)))


def second_order(d: Draft, rng: np.random.Generator) -> bool:
    if len(d.factors) < 3 or d.having("~"):
        return False
    return all(_add_all(d, (("general", "=~", f) for f in d.factors)))


def latent_regressions(d: Draft, rng: np.random.Generator) -> bool:
    names = list(d.factors)
    if len(names) < 2 or ("general", "=~", names[0]) in d.statements:
        return False
    added = [d.add(names[-1], "~", f) for f in names[: int(rng.integers(1, len(names)))]]
    if len(names) > 2 and rng.random() < 0.5:
        added.append(d.add(names[1], "~", names[0]))
    return any(added)


def covariates(d: Draft, rng: np.random.Generator) -> bool:
    free = [x for x in d.source.covariates if x not in d.items]
    if not free or not d.factors:
        return False
    causes = _pick(rng, free, int(rng.integers(1, 3)))
    targets = _pick(rng, list(d.factors), int(rng.integers(1, 3)))
    return any(_add_all(d, ((f, "~", z) for f in targets for z in causes)))


def large_means(d: Draft, rng: np.random.Generator) -> bool:
    if not d.covariates() and not covariates(d, rng):
        return False
    d.changes.append("at 40")
    return True


def outcomes(d: Draft, rng: np.random.Generator) -> bool:
    """Two observed outcomes of a factor: lavaan lets their residuals covary."""
    spare = [x for items in d.source.blocks.values() for x in items if x not in d.items]
    if len(spare) < 2 or not d.factors:
        return False
    ys = _pick(rng, spare, 2)
    return all(_add_all(d, ((y, "~", next(iter(d.factors))) for y in ys)))


def path_model(d: Draft, rng: np.random.Generator) -> bool:
    """Observed variables alone: outcomes of covariates and of one another."""
    if len(d.source.covariates) < 2 or len(d.items) < 3 or d.source.is_ordinal:
        return False
    ys, xs = _pick(rng, d.items, 3), _pick(rng, list(d.source.covariates), 2)
    d.factors, d.statements, d.is_replaced = {}, {}, True
    d.add(ys[0], "~", xs[0])
    d.add(ys[1], "~", xs[1])
    d.add(ys[1], "~", ys[0]) if rng.random() < 0.4 else d.add(ys[1], "~", xs[0])
    return d.add(ys[2], "~", ys[0]) if rng.random() < 0.5 else d.add(ys[2], "~", xs[1])


def _label(d: Draft, statements: list[tuple[str, str, str]], label: str) -> bool:
    if len(statements) < 2:
        return False
    for s in statements:
        d.statements[s] = f"{label}*"
    return True


def equal_loadings(d: Draft, rng: np.random.Generator) -> bool:
    """Equal loadings, of one factor or of several, never of first items."""
    first = {(f, "=~", items[0]) for f, items in d.factors.items()}
    free = [s for s in d.having("=~") if s not in first and s[2] in d.items]
    if rng.random() < 0.6 and free:
        free = [s for s in free if s[0] == free[0][0]]
    return _label(d, _pick(rng, free, int(rng.integers(2, 4))), "la")


def marker_label(d: Draft, rng: np.random.Generator) -> bool:
    """A label that the first item of a factor has too."""
    for f, items in d.factors.items():
        if all(d.statements.get((f, "=~", x)) == "" for x in items[:2]):
            return _label(d, [(f, "=~", x) for x in items[: int(rng.integers(2, len(items) + 1))]], "mk")
    return False


def equal_variances(d: Draft, rng: np.random.Generator) -> bool:
    pair = _pick(rng, d.items, 2)
    return len(pair) == 2 and all(_add_all(d, ((x, "~~", x) for x in pair), "va*"))


def equal_paths(d: Draft, rng: np.random.Generator) -> bool:
    if len(d.having("~")) < 2:
        (latent_regressions if rng.random() < 0.5 else covariates)(d, rng)
    return _label(d, _pick(rng, d.having("~"), 2), "pa")


def defined(d: Draft, rng: np.random.Generator) -> bool:
    free = _pick(rng, d.having("~") + [s for s in d.having("=~") if s[2] in d.items[1:]], 2)
    if len(free) < 2 or d.definitions:
        return False
    for s, label in zip(free, ("d1", "d2"), strict=True):
        d.statements[s] = f"{label}*"
    d.definitions.append(f"product := {'d1*d2' if rng.random() < 0.5 else 'd1 - 0.5*d2'}")
    return True


def fixed_loading(d: Draft, rng: np.random.Generator) -> bool:
    """A loading fixed to a number: beside the scale, or as the scale."""
    if not d.factors:
        return False
    (f,) = _pick(rng, list(d.factors))
    x, y = d.factors[f][:2]
    if d.statements.get((f, "=~", x)) or d.statements.get((f, "=~", y)):
        return False
    if rng.random() < 0.5:
        d.statements[f, "=~", x], d.statements[f, "=~", y] = "NA*", "1*"
    else:
        d.statements[f, "=~", y] = "0.8*"
    return True


def stated_means(d: Draft, rng: np.random.Generator) -> bool:
    modifier = str(rng.choice(["", "mu*"]))
    chosen = _pick(rng, d.items, 2)
    return len(chosen) == 2 and all(_add_all(d, ((x, "~", "1") for x in chosen), modifier))


def growth(d: Draft, rng: np.random.Generator) -> bool:
    """A line over time for every person: fixed loadings, latent means, no intercepts."""
    times = d.source.repeated
    if not times:
        return False
    d.factors, d.statements, d.is_replaced = {}, {}, True
    for x in times:
        d.add("level", "=~", x, "1*")
    for k, x in enumerate(times):
        d.add("slope", "=~", x, f"{k}*")
    if rng.random() < 0.6:
        d.add("level", "~", "1")
        d.add("slope", "~", "1")
        for x in times:
            d.add(x, "~", "1", "0*")
    if d.source.covariates and rng.random() < 0.5:
        d.add("slope", "~", d.source.covariates[0])
    return True


def groups(d: Draft, rng: np.random.Generator) -> bool:
    if not d.source.group or len(d.factors) > 2:
        return False
    d.ours["groups"] = d.theirs["group"] = d.source.group
    return True


def equal_across_groups(d: Draft, rng: np.random.Generator) -> bool:
    if "groups" not in d.ours and not groups(d, rng):
        return False
    kinds = ["loadings"]
    if rng.random() < 0.6:
        kinds.append("intercepts")
        if rng.random() < 0.5:
            kinds.append("residuals")
    d.ours["equal"] = d.theirs["group.equal"] = kinds
    return True


def _holes(d: Draft) -> None:
    if not d.source.has_holes and "gaps everywhere" not in d.changes:
        d.changes.append("gaps")


def full_information(d: Draft, rng: np.random.Generator) -> bool:
    if "missing" in d.ours or d.ours.get("estimator") in ("MLM", "WLSMV"):
        return False
    _holes(d)
    d.ours["missing"], d.theirs["missing"] = "fiml", "ml"
    return True


def listwise(d: Draft, rng: np.random.Generator) -> bool:
    if "missing" in d.ours:
        return False
    _holes(d)
    d.ours["missing"] = d.theirs["missing"] = "listwise"
    return True


def holes_in_covariates(d: Draft, rng: np.random.Generator) -> bool:
    if (not d.covariates() and not covariates(d, rng)) or "missing" in d.ours or "estimator" in d.ours:
        return False
    if not d.source.has_holes:
        d.changes.append("gaps everywhere")
    d.ours["missing"], d.theirs["missing"] = "fiml", "ml"
    return True


def _estimator(name: str) -> Apply:
    def apply(d: Draft, rng: np.random.Generator) -> bool:
        is_incomplete = d.source.has_holes or bool(set(d.changes) - {"at 40"})
        if "estimator" in d.ours or (name == "MLM" and is_incomplete and d.ours.get("missing") != "listwise"):
            return False
        if name == "MLM" and d.source.has_holes:
            d.ours["missing"] = d.theirs["missing"] = "listwise"
        if name == "MLR" and is_incomplete and "missing" not in d.ours:
            d.ours["missing"], d.theirs["missing"] = "fiml", "ml"
        d.ours["estimator"] = d.theirs["estimator"] = name
        return True

    return apply


def wlsmv(d: Draft, rng: np.random.Generator) -> bool:
    if {"estimator", "missing", "groups"} & set(d.ours):
        return False
    d.ours["estimator"] = d.theirs["estimator"] = "WLSMV"
    d.theirs["ordered"] = True
    return True


def wlsmv_with_covariates(d: Draft, rng: np.random.Generator) -> bool:
    """With a covariate of two values, or with others too."""
    if not d.source.covariates:
        return False
    is_binary = rng.random() < 0.6 and d.add(next(iter(d.factors)), "~", d.source.covariates[-1])
    return (is_binary or covariates(d, rng)) and wlsmv(d, rng)


def first_indicator(d: Draft, rng: np.random.Generator) -> bool:
    """Latents scaled by their first loading, in both programs."""
    d.ours["scale_latents"] = "first-indicator"
    return bool(d.factors)


def own_defaults(d: Draft, rng: np.random.Generator) -> bool:
    """Each program with its own defaults: what differs has to be said."""
    d.has_defaults = True
    d.ours.pop("scale_latents", None)
    if d.ours.get("missing") == "fiml" and rng.random() < 0.5:
        del d.ours["missing"], d.theirs["missing"]
    return True


def single_indicator(d: Draft, rng: np.random.Generator) -> bool:
    spare = [x for items in d.source.blocks.values() for x in items if x not in d.items and x not in d.used]
    if not spare or not d.factors:
        return False
    (x,) = _pick(rng, spare)
    return d.add("lone", "=~", x) and (rng.random() < 0.5 or d.add(next(iter(d.factors)), "~", "lone"))


def orthogonal(d: Draft, rng: np.random.Generator) -> bool:
    names = list(d.factors)
    if len(names) < 2 or any(s[1] == "~" and s[0] in names for s in d.statements) or "general" in d.used:
        return False
    return d.add(names[0], "~~", names[1], "0*")


def predictor_mean(d: Draft, rng: np.random.Generator) -> bool:
    """The mean, the variance, or a covariance of a predictor is stated: it is a variable of the model then."""
    if not d.covariates() and not covariates(d, rng):
        return False
    (z, *_) = d.covariates()
    return d.add(z, "~", "1") if rng.random() < 0.6 else d.add(z, "~~", z)


def matrix(d: Draft, rng: np.random.Generator) -> bool:
    """A covariance matrix in place of rows."""
    if {"estimator", "missing", "groups"} & set(d.ours) or d.source.has_holes or set(d.changes) - {"at 40"}:
        return False
    if any(rhs == "1" for _, _, rhs in d.statements):
        return False
    d.ours["cov"] = True
    return True


def _any(source: Source) -> bool:
    return not source.is_ordinal


FEATURES = {
    f.name: f
    for f in (
        # Structure first: some of these replace what is there.
        Feature("path model", path_model, lambda s: len(s.covariates) >= 2 and not s.is_ordinal, 0.03),
        Feature("growth", growth, lambda s: bool(s.repeated), 0.0),
        Feature("cross-loadings", cross_loadings, lambda s: True, 0.2),
        Feature("residual covariances", residual_covariances, lambda s: True, 0.2),
        Feature("second order", second_order, lambda s: len(s.blocks) >= 3, 0.05),
        Feature("latent regressions", latent_regressions, lambda s: True, 0.2),
        Feature("covariates", covariates, lambda s: bool(s.covariates) and not s.is_ordinal, 0.2),
        Feature("large means", large_means, lambda s: bool(s.covariates) and not s.is_ordinal),
        Feature("outcomes", outcomes, _any, 0.1),
        Feature("single indicator", single_indicator, _any, 0.05),
        Feature("orthogonal", orthogonal, lambda s: True, 0.05),
        # Constraints.
        Feature("equal loadings", equal_loadings, _any),
        Feature("marker label", marker_label, _any),
        Feature("equal variances", equal_variances, _any),
        Feature("equal paths", equal_paths, _any, 0.1),
        Feature("defined", defined, _any),
        Feature("fixed loading", fixed_loading, lambda s: True),
        Feature("stated means", stated_means, _any),
        Feature("predictor mean", predictor_mean, lambda s: bool(s.covariates) and not s.is_ordinal, 0.12),
        # Rows and estimators.
        Feature("groups", groups, lambda s: bool(s.group), 0.25),
        Feature("equal across groups", equal_across_groups, lambda s: bool(s.group), 0.06),
        Feature("full information", full_information, _any, 0.06),
        Feature("listwise", listwise, _any, 0.04),
        Feature("holes in covariates", holes_in_covariates, lambda s: bool(s.covariates) and not s.is_ordinal, 0.03),
        Feature("MLM", _estimator("MLM"), _any, 0.1),
        Feature("MLR", _estimator("MLR"), _any, 0.12),
        Feature("WLSMV", wlsmv, lambda s: s.is_ordinal, 0.0),
        Feature("WLSMV with covariates", wlsmv_with_covariates, lambda s: s.is_ordinal and bool(s.covariates), 0.0),
        Feature("matrix", matrix, _any, 0.05),
        # Defaults.
        Feature("first indicator", first_indicator, lambda s: True, 0.3),
        Feature("own defaults", own_defaults, lambda s: True, 0.15),
    )
}


@dataclass(frozen=True)
class Batch:
    """Models drawn from one seed with one list of features; stored once and for all."""

    name: str
    seed: int
    size: int
    features: tuple[str, ...]  # in turn the one that a model must have


# Features that seldom come by chance lead twice as often.
_RARE = (
    "growth", "second order", "orthogonal", "listwise", "holes in covariates", "matrix", "WLSMV with covariates",
    "single indicator", "path model",
)  # fmt: skip
BATCHES = (Batch("m", 20261119, 200, (*FEATURES, *_RARE)),)


@dataclass(frozen=True)
class Case:
    """One model: text, rows, options of both programs."""

    id: str
    features: tuple[str, ...]
    model: str
    rows: str
    ours: Mapping[str, Any]
    theirs: Mapping[str, Any]


def draw(batch: Batch, number: int, attempt: int = 0) -> Case:
    """The model with this number of a batch; other attempts are for models that lavaan does not fit."""
    lead = FEATURES[batch.features[number % len(batch.features)]]
    for again in range(1000):
        case = _try(batch, number, lead, np.random.default_rng([batch.seed, number, attempt, again]))
        if case is not None:
            return case
    raise AssertionError(f"no model has {lead.name!r}")


def _try(batch: Batch, number: int, lead: Feature, rng: np.random.Generator) -> Case | None:
    sources = [s for s in SOURCES if lead.needs(s)]
    weights = np.array([s.weight for s in sources])
    source = sources[rng.choice(len(sources), p=weights / weights.sum())]
    d = Draft(source, _factors(source, rng))
    for f, items in d.factors.items():
        for x in items:
            d.add(f, "=~", x)
    has = []
    for name in dict.fromkeys(batch.features):
        feature = FEATURES[name]
        is_wanted = feature is lead or (feature.needs(source) and rng.random() < feature.chance)
        if is_wanted and feature.apply(d, rng):
            has.append(name)
        elif feature is lead:
            return None
    if source.has_holes and "missing" not in d.ours:
        if full_information(d, rng):
            has.append("full information")
        else:
            return None
    if source.is_ordinal and "estimator" not in d.ours:
        wlsmv(d, rng)
        has.append("WLSMV")
    has = [x for x in has if not _is_gone(x, d)]
    if lead.name not in has:
        return None
    theirs = dict(d.theirs)
    ours = dict(d.ours)
    if not d.has_defaults:
        theirs["std.lv"] = d.ours.get("scale_latents") != "first-indicator"
        theirs["auto.cov.y"] = bool(rng.random() < 0.5)
        ours["correlate_outcomes"] = theirs["auto.cov.y"]
    name = ", ".join([source.name, *dict.fromkeys(d.changes)])
    return Case(f"{batch.name}{number:03d}", tuple(has), d.text(), name, ours, theirs)


def _is_gone(feature: str, d: Draft) -> bool:
    """Whether a later feature undid an earlier one."""
    if feature in ("full information", "holes in covariates"):
        return "missing" not in d.ours
    return feature == "first indicator" and "scale_latents" not in d.ours


# lavaan ----------------------------------------------------------------------------------------------------


def ask_lavaan(
    cases: list[Case], starts: Mapping[str, pd.DataFrame] | None = None
) -> tuple[dict[str, dict[str, Any]], dict[str, str], str]:
    """Figures of lavaan by case, the reasons where there are none, and the version; from estimates, where given."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        calls = []
        for case in cases:
            (place / f"{case.id}.lav").write_text(case.model + "\n", "utf-8")
            rows = place / f"{case.rows}.csv"
            if not rows.exists():
                rows_of(case.rows).to_csv(rows, index=False)
            options = {**case.theirs, **({"matrix": _used(case)} if "cov" in case.ours else {})}
            told = "".join(f", {name} = {_in_r(value)}" for name, value in options.items())
            if starts and case.id in starts:
                starts[case.id].reindex(columns=["lhs", "op", "rhs", "group", "est"]).to_csv(
                    place / f"{case.id}.start.csv", index=False
                )
            calls.append(f"answer({_in_r(case.id)}, {_in_r(case.rows)}{told})")
        (place / "calls.R").write_text("\n".join(calls) + "\n", "utf-8")
        subprocess.run(["Rscript", str(HERE / "random_models.R"), folder], check=True)
        answers, refused = {}, {}
        for case in cases:
            error = place / f"{case.id}.error"
            if error.exists():
                refused[case.id] = error.read_text("utf-8").strip()
                continue
            measures = pd.read_csv(place / f"{case.id}.measures.csv").set_index("name")["value"].dropna()
            table = pd.read_csv(place / f"{case.id}.parameters.csv", dtype=str, keep_default_na=False)
            answers[case.id] = {
                "measures": measures.to_dict(),
                "parameters": [" ".join(row) for row in table.itertuples(index=False)],
            }
        version = (
            "R ".join((place / "version.txt").read_text("utf-8").split("R version ")).replace("\n", ", ").strip(", ")
        )
    return answers, refused, f"lavaan {version}"


def _in_r(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return json.dumps(value)
    return f"c({', '.join(map(_in_r, value))})"


def _used(case: Case) -> list[str]:
    return [x for x in rows_of(case.rows).columns if re.search(rf"\b{x}\b", case.model)]


def draw_all() -> dict[str, Any]:
    """All models that lavaan fits, with its figures; a model that it does not fit is drawn again."""
    stored: dict[str, Any] = {}
    for batch in BATCHES:
        waiting = [draw(batch, number) for number in range(batch.size)]
        attempt, lost = 0, []
        while waiting:
            answers, refused, version = ask_lavaan(waiting)
            stored |= {case.id: _record(case, answers[case.id]) for case in waiting if case.id in answers}
            lost += [(case.id, refused[case.id]) for case in waiting if case.id in refused]
            attempt += 1
            waiting = [draw(batch, int(c.id.removeprefix(batch.name)), attempt) for c in waiting if c.id in refused]
        for name, reason in lost:
            print(f"drawn again: {name}: {reason.splitlines()[0][:120]}")
    head = {"program": version, "date": f"{datetime.now(UTC):%Y-%m-%d}", "script": "random_models.py, random_models.R"}
    return {**head, "models": [stored[name] for name in sorted(stored)]}


def _record(case: Case, answer: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": case.id,
        "features": case.features,
        "model": case.model,
        "rows": case.rows,
        "ours": dict(case.ours),
        "theirs": dict(case.theirs),
        **answer,
    }


# Comparison ------------------------------------------------------------------------------------------------

# What is compared, by lavaan's names: our name, and the tolerance at a value of lavaan's. Both programs end where the
# likelihood does not rise within rounding, which is far inside of these.
MEASURES: dict[str, tuple[str, Callable[[float], float]]] = {
    "df": ("df", lambda x: 0.0),
    "chisq": ("chi2", lambda x: 1e-3 * max(1.0, abs(x))),
    "chisq.scaled": ("chi2_scaled", lambda x: 1e-3 * max(1.0, abs(x))),
    # A thousandth of a log-likelihood is as much as two parameters: these have to be equal as they are printed.
    "logl": ("loglik", lambda x: 1e-2),
    "aic": ("aic", lambda x: 2e-2),
    "bic": ("bic", lambda x: 2e-2),
    **{name: (name, lambda x: 1e-3) for name in ("rmsea", "cfi", "tli", "srmr")},
    **{f"{name}.robust": (f"{name}_robust", lambda x: 1e-3) for name in ("rmsea", "cfi", "tli")},
}
# Estimates by their own precision and by that of lavaan's optimiser; errors in parts of lavaan's.
_ESTIMATE, _OF_ERROR, _ERROR, _STANDARDISED = 1e-4, 0.01, 0.01, 2e-3


@dataclass(frozen=True)
class Comparison:
    """Our fit beside lavaan's: the verdict, the figures that differ, and the sentence that states why."""

    verdict: str
    differing: tuple[str, ...] = ()
    sentence: str = ""
    figures: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # ours, lavaan's
    estimates: float = 0.0  # largest difference
    errors: float = 0.0  # largest difference, in parts of lavaan's


def call(stored: Mapping[str, Any], **more: Any) -> Any:
    """Fit a stored model with this package."""
    rows, options = rows_of(stored["rows"]), {**stored["ours"], **more}
    rows = rows.dropna(subset=options.pop("subset", []))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", um.UnmeasuredWarning)
        if options.pop("cov", False):
            used = [x for x in rows.columns if re.search(rf"\b{x}\b", stored["model"])]
            return um.fit(stored["model"], cov=rows[used].cov(), n_samples=len(rows), **options)
        named = set(re.findall(r"[\w.]+", stored["model"])) | {options.get("groups")}
        return um.fit(stored["model"], rows[[x for x in rows.columns if x in named]], **options)


def compare(stored: Mapping[str, Any], **more: Any) -> Comparison:
    """Fit a stored model, with other arguments where they are given, and compare it with lavaan's figures."""
    try:
        fit = call(stored, **more)
        found = _beside(stored, fit, is_scaled_alike="std.lv" in stored["theirs"] or "scale_latents" in more)
    except um.UnmeasuredError as error:
        return Comparison("refused", sentence=str(error))
    except (ArithmeticError, ValueError, AttributeError, LookupError, TypeError) as error:
        return Comparison("different", (type(error).__name__,), sentence=f"{type(error).__name__}: {error}")
    said = statements_of(fit)
    verdict = (
        "equal"
        if not found.differing
        else "stated"
        if _explains(stored, said, set(found.differing), more)
        else "different"
    )
    return Comparison(verdict, found.differing, " ".join(said), found.figures, found.estimates, found.errors)


def _explains(stored: Mapping[str, Any], said: list[str], differing: set[str], more: Mapping[str, Any]) -> bool:
    """Whether statements explain a difference: with the arguments that they name there is none, or none would do."""
    sentences = " ".join(said)
    if "data determine only" in sentences:  # then neither estimates nor tests that are made of them can agree
        again = compare(stored, **{**more, "count": "parameters"}) if "count" not in more else None
        if again is not None and not {"df", "chisq", "logl", "aic", "bic"} & set(again.differing):
            return True
    arguments = {name: value for name, value in _told(sentences, stored).items() if name not in more}
    if arguments and compare(stored, **arguments, **more).verdict in ("equal", "stated"):
        return True
    if is_improper(sentences):  # beyond our bound lavaan has the higher likelihood, and an improper answer
        # On the way to the bound many estimates have one likelihood.
        return not stored["measures"]["proper"] or differing <= {"standardised", "estimates", "errors"}
    return "No argument gives that" in sentences


def _told(sentences: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that sentences name, but for defaults where lavaan was told ours."""
    return {k: v for k, v in arguments_in(sentences).items() if "std.lv" not in stored["theirs"] or k not in _DEFAULTS}


def statements_of(fit: Any) -> list[str]:
    """What a fit says of lavaan, or of an optimum that is not proper, where lavaan lets variances be negative."""
    said = [note for note in fit.notes if "lavaan" in note]
    return said + ([fit.status] if is_improper(fit.status) else [])


def is_improper(sentence: str) -> bool:
    """Whether an optimum is said not to be proper: lavaan goes past the bound where ours ends."""
    return "not admissible" in sentence


_DEFAULTS = ("scale_latents", "correlate_outcomes")


def arguments_in(sentences: str) -> dict[str, Any]:
    """The arguments that sentences name, as in ``scale_latents="first-indicator"``; ``subset`` for rows to drop."""
    dropped = [re.findall(r"[\w.]+", found) for found in re.findall(r"rows\.dropna\(subset=(\[[^]]*\])\)", sentences)]
    pairs = re.findall(r"\b(scale_latents|correlate_outcomes|missing|count)=(\"[^\"]*\"|True|False)", sentences)
    found = {name: json.loads(value.lower() if value in ("True", "False") else value) for name, value in pairs}
    return {**found, **({"subset": dropped[0]} if dropped else {})}


def _beside(stored: Mapping[str, Any], fit: Any, is_scaled_alike: bool) -> Comparison:
    differing, figures = [], {}
    measures = stored["measures"]
    for theirs, (ours, tolerance) in MEASURES.items():
        if theirs not in measures or (theirs.endswith((".scaled", ".robust")) and "estimator" not in stored["ours"]):
            continue
        value, expected = float(getattr(fit, ours)), float(measures[theirs])
        figures[theirs] = value, expected
        if not abs(value - expected) <= tolerance(expected):
            differing.append(theirs)
    if not fit.converged:
        differing.append("converged")
    estimates, errors = 0.0, 0.0
    for which, e, s in _parameters(stored, fit, is_scaled_alike or not fit_latents(fit)):
        differing += which
        estimates, errors = max(estimates, e), max(errors, s)
    return Comparison(
        "equal" if not differing else "different", tuple(dict.fromkeys(differing)), "", figures, estimates, errors
    )


def fit_latents(fit: Any) -> tuple[str, ...]:
    """Latents of a fit of one group or of several."""
    first = next(iter(fit.fits.values())) if isinstance(fit, GroupFit) else fit
    return tuple(first.model.latents)


def fit_covariates(fit: Any) -> tuple[str, ...]:
    """Observed causes of a model of one group or of several."""
    first = next(iter(fit.fits.values())) if isinstance(fit, GroupFit) else fit
    return tuple(first.model.covariates)


def _parameters(stored: Mapping[str, Any], fit: Any, is_scaled_alike: bool) -> Iterator[tuple[list[str], float, float]]:
    """What differs in each parameter that lavaan has, with the differences of estimate and error."""
    table = fit.parameters
    groups = table["group"].astype(str) if "group" in table and isinstance(fit, GroupFit) else [""] * len(table)
    ours = {
        (g, r.lhs, r.op, "" if r.op in ("~1", ":=") else r.rhs): r
        for g, r in zip(groups, table.itertuples(index=False), strict=True)
    }
    rows = [row.split(" ") for row in stored["parameters"]]
    theirs = [
        ((g, lhs, op, "" if op == ":=" else rhs), *map(_number, (est, se, std)))
        for lhs, op, rhs, g, est, se, std in rows
    ]
    latents = set(fit_latents(fit))
    signs: Counter[tuple[str, str]] = Counter()
    pairs = []
    for (g, lhs, op, rhs), est, se, std in theirs:
        key = (g, lhs, op, rhs)
        key = key if key in ours else (g, rhs, op, lhs) if op == "~~" else ("", *key[1:]) if op == ":=" else key
        if key in ours:
            pairs.append((key, ours[key], est, se, std))
            if op == "=~":
                signs[g, lhs] += ours[key].std * std  # type: ignore[assignment]
        elif op not in ("~*~", "~1") and op != "|":
            yield [f"no {lhs} {op} {rhs}"], 0.0, 0.0
        elif op == "~1" and any(k[2] == "~1" for k in ours) and se > 0:
            yield [f"no {lhs} ~1"], 0.0, 0.0
    for (g, lhs, op, rhs), row, est, se, std in pairs:
        sign = math.prod(-1.0 if signs[g, x] < 0 else 1.0 for x in (lhs, rhs) if x in latents)
        if op == "~~" and lhs == rhs:
            sign = 1.0
        if op == ":=" and any(v < 0 for v in signs.values()):
            continue
        which = []
        if not (math.isnan(std) or op in (":=", "~1")) and not abs(row.std - sign * std) <= _STANDARDISED:
            which.append("standardised")
        difference = abs(row.est - sign * est)
        part = abs(row.se / se - 1.0) if se > 0 and row.se > 0 else 0.0
        if is_scaled_alike and not (op == "~~" and lhs == rhs and "WLSMV" in stored["features"]):
            if not difference <= _ESTIMATE * max(1.0, abs(est)) + _OF_ERROR * se:
                which.append("estimates")
            # lavaan fixes the moments of covariates and gives them no error; ours are those of the rows.
            is_given = se == 0 and {lhs, rhs or lhs} <= set(fit_covariates(fit))
            # An error that only one of the two gives: fixed for one and free for the other.
            if not is_given and (part > _ERROR or (se > 0) != (row.se > 0)):
                which.append("errors")
            yield which, difference, part
        else:
            yield which, 0.0, 0.0


def _number(text: str) -> float:
    return float(text) if text else math.nan


# Tables ----------------------------------------------------------------------------------------------------

UNEXPLAINED = "no reason is known yet"
ORDER = ("equal", "refused", "stated", "different")


def by_feature(models: list[dict[str, Any]], found: Mapping[str, Comparison]) -> str:
    """Number of models of each verdict, by feature."""
    lines = ["| feature | models | equal | refused | stated | silently different |", "|---|---|---|---|---|---|"]
    for name in [*FEATURES, "(all)"]:
        of = [m["id"] for m in models if name in m["features"] or name == "(all)"]
        counts = Counter(found[i].verdict for i in of)
        lines.append(f"| {name} | {len(of)} | " + " | ".join(str(counts[v]) for v in ORDER) + " |")
    return "\n".join(lines)


def row_of(model: Mapping[str, Any], c: Comparison) -> str:
    """One line of the long table."""
    pairs = " | ".join(
        f"{c.figures[k][0]:.6g} / {c.figures[k][1]:.6g}" if k in c.figures else ""
        for k in ("chisq", "df", "chisq.scaled", "logl", "aic", "bic", "rmsea", "cfi", "srmr")
    )
    said = c.sentence.replace("\n", " ").replace("|", "/")
    return (
        f"| {model['id']} | {', '.join(model['features'])} | {model['rows']} | {c.verdict} | {pairs} | "
        f"{c.estimates:.1e} | {c.errors:.1e} | {', '.join(c.differing)} {said} |"
    )


def _write(stored: dict[str, Any]) -> None:
    head = json.dumps({name: value for name, value in stored.items() if name != "models"})
    models = ",\n".join(json.dumps(m, separators=(",", ":")) for m in stored["models"])
    STORED.write_text(f'{head[:-1]}, "models": [\n{models}\n]}}\n', "utf-8")


def _start_again() -> None:
    """Let lavaan begin at our estimates where our likelihood is higher than its own, and keep the better optimum."""
    stored = json.loads(STORED.read_text("utf-8"))
    for m in stored["models"]:
        told = _told(compare(m).sentence, m)
        c = compare(m, **told)
        ours, theirs = c.figures.get("logl", (-math.inf, 0.0))
        if c.verdict in ("equal", "refused") or not ours > theirs + 1e-2 or c.figures["df"][0] != c.figures["df"][1]:
            continue
        case = Case(m["id"], tuple(m["features"]), m["model"], m["rows"], m["ours"], m["theirs"])
        answers, refused, _ = ask_lavaan([case], {case.id: call(m, **told).parameters})
        again = answers.get(case.id)
        print(m["id"], refused.get(case.id, ""), theirs, "->", again and again["measures"]["logl"], "ours", ours)
        if again and again["measures"]["logl"] > theirs + 1e-2:
            m.update(again, start="ours")
    _write(stored)


def _why(c: Comparison, before: list[str] | None) -> str:
    """The beginning of the sentence; of a difference without a word the reason that was written down for it."""
    if c.verdict != "different":
        return c.sentence[:90]
    return before[2] if before and before[0] == "different" else UNEXPLAINED


def _judge() -> tuple[list[dict[str, Any]], dict[str, Comparison]]:
    models = json.loads(STORED.read_text("utf-8"))["models"]
    return models, {m["id"]: compare(m) for m in models}


def main(what: str) -> None:
    """One of the commands that the top of this file lists."""
    if what == "rows":
        simulate_rows().to_csv(SIMULATED, index=False)
    elif what == "draw":
        _write(draw_all())
    elif what == "judge":
        models, found = _judge()
        before = json.loads(VERDICTS.read_text("utf-8")) if VERDICTS.exists() else {}
        other = {
            i: [c.verdict, ", ".join(c.differing), _why(c, before.get(i))]
            for i, c in found.items()
            if c.verdict != "equal"
        }
        lines = ",\n".join(f"{json.dumps(i)}: {json.dumps(line)}" for i, line in other.items())
        VERDICTS.write_text(f"{{\n{lines}\n}}\n", "utf-8")
        print(by_feature(models, found))
    elif what == "start":
        _start_again()
    elif what == "table":
        models, found = _judge()
        print(
            "| model | features | rows | verdict | chi2 | df | scaled | logl | AIC | BIC | RMSEA | CFI | SRMR "
            "| estimates | errors | |"
        )
        print("|" + "---|" * 16)
        for m in models:
            print(row_of(m, found[m["id"]]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) == 2 else "")
