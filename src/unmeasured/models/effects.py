"""Effects along directed paths: total, direct and indirect, with intervals.

The total effects are ``E = (I - F)^-1``: entry (i, j) sums the products of coefficients along all paths from i to j.
The direct effect is the coefficient itself, the indirect one the rest. With ``dE = E dF E`` the delta method gives
standard errors; replicates of the rows give intervals that need not be symmetric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.data.sample import Cor, Sample
from unmeasured.errors import UnmeasuredError, UnmeasuredWarning, listing, nearest
from unmeasured.models.delta import delta_errors, deviation_changes

if TYPE_CHECKING:
    from unmeasured.models.fit import Fit

KINDS = ("total", "direct", "indirect")
# Fewer replicates than this have no 95% interval to speak of.
_LEAST_REPLICATES = 50


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of variables with a directed path between them, as positions in causal order."""

    source: Ints
    target: Ints

    @classmethod
    def of(cls, fit: Fit, cause: str | None, effect: str | None) -> _Pairs:
        names = fit.causal_order
        for name in (cause, effect):
            if name is not None and name not in names:
                raise UnmeasuredError(
                    f"{name!r} is no variable of the model{nearest(name, names) or '.'} It has "
                    f"{listing(fit.model.names)}."
                )
        if cause is not None and cause == effect:
            raise UnmeasuredError(f"{cause!r} has no effect on itself: the graph has no cycles. Name two variables.")
        reached = _reached(fit)
        order = [names.index(name) for name in fit.model.names]
        chosen = [
            (i, j)
            for i in order
            for j in order
            if reached[i, j] and cause in (None, names[i]) and effect in (None, names[j])
        ]
        i, j = np.array(chosen, dtype=np.int64).reshape(-1, 2).T
        return cls(i, j)


def _reached(fit: Fit) -> Bools:
    """(d, d) whether a directed path leads from one variable to another; the order is causal."""
    pattern = fit.problem.pattern
    direct = np.zeros((pattern.n_nodes, pattern.n_nodes), dtype=bool)
    direct[pattern.source, pattern.target] = (pattern.slot >= 0) | (pattern.fixed != 0)
    reached = direct.copy()
    for i in range(len(direct) - 1, -1, -1):
        reached[i] |= reached[direct[i]].any(axis=0)
    return reached


def effects(
    fit: Fit,
    cause: str | None = None,
    effect: str | None = None,
    *,
    confidence: float = 0.95,
    bootstrap: int = 0,
    rng: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """One row per pair and kind; see :meth:`unmeasured.models.fit.Fit.effects`."""
    if not isinstance(confidence, Real) or not 0.0 < confidence < 1.0:
        raise UnmeasuredError(f"confidence is a probability between 0 and 1, such as 0.95; got {confidence!r}.")
    if bootstrap and bootstrap < _LEAST_REPLICATES:
        raise UnmeasuredError(f"bootstrap is a number of replicates from {_LEAST_REPLICATES}, or 0; got {bootstrap!r}.")
    pairs = _Pairs.of(fit, cause, effect)
    est, std = _values(fit, pairs)
    se, std_se = _errors(fit, pairs)
    width = float(ndtri(0.5 + confidence / 2.0))
    low, high, std_low, std_high = est - width * se, est + width * se, std - width * std_se, std + width * std_se
    if bootstrap:
        drawn = _replicated(fit, pairs, bootstrap, np.random.default_rng(rng))
        tails = [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]
        (low, std_low), (high, std_high) = np.quantile(drawn, tails, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(se > 0, est / se, np.nan)
    names = fit.causal_order
    table = pd.DataFrame(
        {
            "cause": np.repeat([names[i] for i in pairs.source], len(KINDS)),
            "effect": np.repeat([names[j] for j in pairs.target], len(KINDS)),
            "kind": list(KINDS) * len(pairs.source),
            "est": est,
            "se": se,
            "z": z,
            "pvalue": 2.0 * ndtr(-np.abs(z)),
            "lower": low,
            "upper": high,
            "std": std,
            "std_se": std_se,
            "std_lower": std_low,
            "std_upper": std_high,
        }
    )
    # Where there is no edge, or no other way, that part is zero by construction and total is the other part.
    zero = (table["est"] == 0.0) & (table["kind"] != "total")
    return table[~zero].reset_index(drop=True)


def _values(fit: Fit, pairs: _Pairs) -> tuple[Floats, Floats]:
    """(3 m,) effects and standardised effects: total, direct and indirect of each pair."""
    F = fit.F
    total = np.linalg.inv(np.eye(len(F)) - F)[pairs.source, pairs.target]
    direct = F[pairs.source, pairs.target]
    # An indirect effect without an indirect path is rounding.
    indirect = np.where(_indirect(fit)[pairs.source, pairs.target], total - direct, 0.0)
    values = np.stack([total, direct, indirect], axis=1)
    sd = np.sqrt(np.diag(fit.full_cov))
    return values.ravel(), (values * (sd[pairs.source] / sd[pairs.target])[:, None]).ravel()


def _indirect(fit: Fit) -> Bools:
    """(d, d) whether a path of two edges or more leads from one variable to another."""
    pattern = fit.problem.pattern
    direct = np.zeros((pattern.n_nodes, pattern.n_nodes), dtype=bool)
    direct[pattern.source, pattern.target] = (pattern.slot >= 0) | (pattern.fixed != 0)
    return np.asarray((direct.astype(int) @ _reached(fit).astype(int)) > 0)


def _errors(fit: Fit, pairs: _Pairs) -> tuple[Floats, Floats]:
    """Standard errors of the same, by the delta method."""
    pattern, scale = fit.problem.pattern, fit.problem.scale
    F = fit.F * scale[:, None] / scale  # variables of unit variance, as the parameters are
    E = np.linalg.inv(np.eye(len(F)) - F)
    a, b = pattern.ends.T
    i, j = pairs.source, pairs.target
    path = pattern.is_path[:, None]
    total = np.where(path, E[np.ix_(i, a)].T * E[np.ix_(b, j)], 0.0).T  # (m, p)
    direct = (path & (a[:, None] == i) & (b[:, None] == j)).T.astype(float)
    indirect = np.where(_indirect(fit)[i, j][:, None], total - direct, 0.0)
    gradient = np.stack([total, direct, indirect], axis=1)  # (m, 3, p)
    unit = (scale[j] / scale[i])[:, None, None]
    change = deviation_changes(fit)
    sd = np.sqrt(np.diag(fit.full_cov)) / scale
    ratio = (sd[i] / sd[j])[:, None, None]
    values = np.stack([E[i, j], F[i, j], np.where(_indirect(fit)[i, j], E[i, j] - F[i, j], 0.0)], axis=1)
    relative = (change[:, i] - change[:, j]).T
    standardised = ratio * (gradient + values[:, :, None] * relative[:, None, :])
    p = pattern.n_free
    return delta_errors(fit, (gradient * unit).reshape(-1, p)), delta_errors(fit, standardised.reshape(-1, p))


# Replicates -------------------------------------------------------------------------------------------------


def _replicated(fit: Fit, pairs: _Pairs, n: int, rng: np.random.Generator) -> Floats:
    """(replicates, 2, 3 m) effects and standardised effects in replicates of the data."""
    if math.isinf(fit.sample.n):
        raise UnmeasuredError("A population covariance has no sampling error, so its replicates would all be the same.")
    kept = []
    for _ in range(n):
        try:
            sample = _replicate(fit.sample, rng)
        except UnmeasuredError:  # such as a variable that is constant in this replicate
            continue
        again = fit._again(sample)
        if again.converged:
            kept.append(_values(_same_way(again, fit), pairs))
    if len(kept) < 0.5 * n:
        raise UnmeasuredError(
            f"Only {len(kept)} of {n} replicates could be fitted, too few for an interval. Use the delta method "
            "(bootstrap=0), and mistrust it: the model is hardly determined by these data."
        )
    if len(kept) < 0.9 * n:
        import warnings

        warnings.warn(
            f"{n - len(kept)} of {n} replicates could not be fitted; the intervals are of the others.",
            UnmeasuredWarning,
            stacklevel=4,
        )
    return np.array(kept)


def _replicate(sample: Sample, rng: np.random.Generator) -> Sample:
    """Rows drawn anew and read as they were; of a matrix one of as many Gaussian rows (Wishart)."""
    rows = sample.rows
    if rows is None:
        n, p = round(sample.n), len(sample.names)
        triangle = np.tril(rng.standard_normal((p, p)), -1)
        np.fill_diagonal(triangle, np.sqrt(rng.chisquare(n - 1 - np.arange(p))))
        root: Floats = np.linalg.cholesky(sample.cov) @ triangle
        return Sample.from_cov(root @ root.T / (n - 1), sample.n, sample.names)
    drawn = rows[rng.integers(len(rows), size=len(rows))]
    frame = pd.DataFrame(drawn, columns=list(sample.names))
    for name, kind in zip(sample.names, sample.kinds, strict=True):
        if kind == "ordinal":
            frame[name] = pd.Categorical(frame[name], ordered=True)
    kinds = set(sample.kinds)
    known: dict[frozenset[str], Cor] = {frozenset({"continuous"}): "pearson", frozenset({"scores"}): "spearman-normal"}
    return Sample.from_rows(frame, cor=known.get(frozenset(kinds), "auto"))


def _same_way(again: Fit, fit: Fit) -> Fit:
    """A replicate whose latents point the way those of the fit do."""
    from unmeasured.models.signs import pointed

    ours, theirs = (f.problem.pattern.matrices(np.append(f.solution.x, 0.0))[0] for f in (again, fit))
    return pointed(again, (ours * theirs).sum(axis=1) < 0)
