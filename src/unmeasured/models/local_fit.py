"""Local fit: which covariances a model misses, and which parameter would help.

Every entry of F and Omega, free or not, moves the implied covariance by ``dSigma = w (u v' + v u')`` (see
:mod:`unmeasured.kernels.likelihood`). With ``P`` the inverse of Sigma, the objective ``f = log det Sigma + tr(P S)``
has the
slope ``g`` and the expected curvature ``h`` along it, and the model's free parameters explain a part of ``h``::

    modification index   mi  = N/2 g^2 / (h - H_c H^-1 H_c')      by how much chi-square would fall, at least
    expected change      epc = - g / (h - H_c H^-1 H_c')          to which value the parameter would go

A residual ``S - Sigma`` is divided by its own standard error, which is not that of S: the estimates follow the data, so
part of the sampling error is gone. The figures are those of lavaan's ``modindices`` and ``lavResiduals``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pandas as pd

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.errors import UnmeasuredError, listing
from unmeasured.models.delta import NO_INFORMATION, plain_inverse_root
from unmeasured.models.full import fitted_to_rows
from unmeasured.models.parameters import Model, Operator, Parameter

if TYPE_CHECKING:
    from unmeasured.models.fit import Fit

Rows = tuple[Ints, Ints, Floats]  # of parameters: rows u and v, and the weight w, by which each moves Sigma
Residual = Literal["raw", "correlation", "standardised"]

# A parameter that the free ones imitate but for this part of its curvature cannot be told from them.
_IMITATED = 1e-8
# Entries of a table of second derivatives that are made at once: 32 MB.
_ENTRIES = 4_000_000
# A residual whose variance is below this part of the covariance's own is zero by construction.
_EXACT = 1e-8


@dataclass(frozen=True, eq=False)
class Moves:
    """How entries of F and Omega move the implied covariance, on variables of unit variance.

    Attributes
    ----------
    Z : (2 d, n)
        Total effects on the observed variables, and below them the covariances with these.
    P : (n, n)
        Inverse of the implied covariance.
    """

    Z: Floats
    P: Floats
    S: Floats
    node: dict[str, int]

    @classmethod
    def of(cls, fit: Fit) -> Moves:
        """At the estimates of a fit."""
        pattern, scale = fit.problem.pattern, fit.problem.scale
        F, Omega = fit.F * scale[:, None] / scale, fit.Omega / np.outer(scale, scale)
        E = np.linalg.inv(np.eye(len(F)) - F)
        T = E[:, pattern.observed]
        C = E.T @ Omega @ T
        P = np.linalg.inv(C[pattern.observed])
        node = {name: k for k, name in enumerate(pattern.names)}
        return cls(np.vstack([T, C]), P, fit.sample.corr, node)

    def rows(self, parameters: Sequence[Parameter]) -> Rows:
        """For each parameter the rows u and v of Z and the weight w by which it moves Sigma."""
        d = len(self.node)
        source = np.array([self.node[p.source] for p in parameters], dtype=np.int64)
        target = np.array([self.node[p.target] for p in parameters], dtype=np.int64)
        path = np.array([p.op != "~~" for p in parameters], dtype=bool)
        return target, source + np.where(path, d, 0), np.where(~path & (source == target), 0.5, 1.0)

    def derivatives(self, parameters: Sequence[Parameter]) -> Floats:
        """(p, n, n) change of Sigma by each parameter."""
        u, v, w = self.rows(parameters)
        half = w[:, None, None] * self.Z[u][:, :, None] * self.Z[v][:, None, :]
        return np.asarray(half + half.transpose(0, 2, 1))


def free_rows(model: Model) -> list[Parameter]:
    """The free rows of a model in the order of the parameter vector: entries of F, then of Omega."""
    return sorted((p for p in model.parameters if p.fixed is None), key=lambda p: p.op == "~~")


def modification_indices(fit: Fit, least: float = 0.0) -> pd.DataFrame:
    """One row per parameter that is not free: ``lhs op rhs mi epc sepc.all``, the largest first."""
    if math.isinf(fit.sample.n):
        raise UnmeasuredError(
            "A population has no modification indices: with no sampling error every misfit is real. Look at "
            "fit.residuals()."
        )
    table = _indices_of(fit, Moves.of(fit), candidate_parameters(fit.model))
    return table[table["mi"] >= least]


def _score_tests(moves: Moves, others: Rows, free: Rows) -> tuple[Floats, Floats]:
    """Slopes along other parameters and the curvature that free ones leave of each: NaN where they imitate it."""
    K = moves.Z @ moves.P @ moves.Z.T
    D = K - moves.Z @ (moves.P @ moves.S @ moves.P) @ moves.Z.T
    u, v, w = others
    slope = 2.0 * w * D[u, v]
    own = 2.0 * w * w * (K[u, u] * K[v, v] + K[u, v] ** 2)
    left = own - _explained(K, others, free)
    return slope, np.where(left > _IMITATED * np.maximum(own, 1e-300), left, math.nan)


def _score_tests_of_rows(fit: Fit, others: Floats, free: Floats) -> tuple[Floats, Floats]:
    """The same from the likelihood of rows with missing values; (k, n, n) changes of Sigma by each parameter.

    Means are free, so they take up what a parameter does to them; the information is the expected one, as in lavaan.
    """
    fitted = fitted_to_rows(fit)
    (observations,), (point,) = fitted.joint.observations, fitted.joint.points(fitted.theta)
    n, sd = len(fit.sample.names), fit.sample.sd
    i, j = np.tril_indices(n)
    G = observations.gradient(point.mu, point.Sigma)[1] * np.outer(sd, sd)
    A = observations.expected_information(point.Sigma)[n:, n:] * np.outer(sd[i] * sd[j], sd[i] * sd[j])
    directions = others[:, i, j]
    own = 2.0 * np.einsum("ka,ka->k", directions @ A, directions)
    known = free[:, i, j]
    root = inverse_root(2.0 * known @ A @ known.T)
    left = own - ((2.0 * (directions @ A) @ known.T @ root) ** 2).sum(axis=1)
    slope = np.einsum("kij,ij->k", others, G)
    return slope, np.where(left > _IMITATED * np.maximum(own, 1e-300), left, math.nan)


def _indices_of(fit: Fit, moves: Moves, others: Sequence[Parameter]) -> pd.DataFrame:
    n, free = fit.sample.n, free_rows(fit.model)
    if fit.full is not None and fit.sample.has_rows:
        n = fit.full.n
        slope, left = _score_tests_of_rows(fit, moves.derivatives(others), moves.derivatives(free))
    else:
        slope, left = _score_tests(moves, moves.rows(others), moves.rows(free))
    known = ~np.isnan(left)
    pattern_scale = dict(zip(fit.problem.pattern.names, fit.problem.scale, strict=True))
    unit = np.array([_unit(p, pattern_scale) for p in others])
    epc = -slope / left * unit
    table = pd.DataFrame(
        {
            "lhs": [p.lhs for p in others],
            "op": [p.op for p in others],
            "rhs": [p.rhs for p in others],
            "mi": 0.5 * n * slope**2 / left,
            "epc": epc,
            "sepc.all": [fit._standardised(p, float(value)) for p, value in zip(others, epc, strict=True)],
        }
    )
    return table[known].sort_values("mi", ascending=False, kind="stable", ignore_index=True)


def indices_of_pairs(fit: Fit, least: float) -> list[tuple[str, str, float]]:
    """Residual covariances of two indicators that may matter: their names and modification index, the largest first.

    These are the pairs whose index would be at least ``least`` if all free parameters were known, which it takes one
    matrix product to see: of a thousand variables there are half a million pairs. No table is made, which would take
    longer than the indices: searches ask many times.
    """
    moves, names, pattern = Moves.of(fit), fit.sample.names, fit.problem.pattern
    P, position = moves.P, {name: k for k, name in enumerate(names)}
    known = fit.sample.n * (P @ moves.S @ P - P) ** 2 / (np.outer(np.diag(P), np.diag(P)) + P**2)
    measured = {p.target for p in fit.model.parameters if p.op == "=~"}
    may_matter = np.triu(known >= least, 1)
    may_matter &= np.logical_and.outer(*[np.array([name in measured for name in names])] * 2)
    for a, b, _ in tests_of_pairs(fit):
        may_matter[position[a], position[b]] = may_matter[position[b], position[a]] = False
    first, second = may_matter.nonzero()
    node = pattern.observed  # in the order of the sample
    free = (*pattern.rows, np.where(pattern.is_variance, 0.5, 1.0))
    slope, left = _score_tests(moves, (node[second], node[first], np.ones(len(first))), free)
    index = 0.5 * fit.sample.n * slope**2 / left
    order = [k for k in np.argsort(-index, kind="stable").tolist() if not math.isnan(index[k])]
    return [(names[first[k]], names[second[k]], float(index[k])) for k in order]


def tests_of_pairs(fit: Fit) -> list[tuple[str, str, float]]:
    """Residual covariances that are free: the names of the two and the Wald statistic z, NaN where there is none."""
    pattern = fit.problem.pattern
    pairs = np.flatnonzero(~pattern.is_path & ~pattern.is_variance)
    if not len(pairs):
        return []
    errors = fit._uncertainty[0][pairs]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(errors > 0, fit.estimates[pairs] / errors, math.nan)
    return [(*fit.problem.ends(k), value) for k, value in zip(pairs.tolist(), z.tolist(), strict=True)]


def candidate_parameters(model: Model) -> list[Parameter]:
    """The entries of F and Omega that are fixed or absent and might be set free; the list is lavaan's.

    Loadings of every latent on every observed variable that no path is about, covariances among indicators, among
    predictors and among latents, and paths among all variables that paths are about.
    """
    free = {_entry(p) for p in model.parameters if p.fixed is None}
    seen = set(free)
    result = []
    for p in _all_parameters(model):
        if _entry(p) not in seen:
            seen.add(_entry(p))
            result.append(p)
    return result


def _all_parameters(model: Model) -> Iterator[Parameter]:
    latent = set(model.latents)
    indicators = {p.target for p in model.parameters if p.op == "=~"}
    explained = {p.target for p in model.parameters if p.op == "~"}
    causes = {p.source for p in model.parameters if p.op == "~"}
    in_paths = explained | causes
    predictors = [x for x in model.observed if x in causes and x not in explained and x not in indicators]
    for factor in model.latents:
        yield from (_parameter("=~", factor, x) for x in model.observed if x not in in_paths)
    measured = [x for x in model.observed if x in indicators]
    for names in (measured, predictors, model.latents):
        yield from (_parameter("~~", a, b) for a, b in combinations(names, 2))
        yield from (_parameter("~~", a, a) for a in names)
    about = [name for name in model.names if name in in_paths]
    for effect in about:
        for cause in about:
            if cause != effect and not (effect in indicators and cause in latent):
                yield _parameter("~", cause, effect)


def _parameter(op: Operator, source: str, target: str) -> Parameter:
    return Parameter(op, source, target)


def _entry(p: Parameter) -> tuple[str, str, str]:
    if p.op == "~~":
        return "Omega", min(p.source, p.target), max(p.source, p.target)
    return "F", p.source, p.target


def _unit(p: Parameter, scale: dict[str, float]) -> float:
    """What one unit on variables of unit variance is worth on the original ones."""
    a, b = scale[p.source], scale[p.target]
    return a * b if p.op == "~~" else b / a


def _cross(K: Floats, rows: Rows, others: Rows) -> Floats:
    """Expected second derivatives between two lists of parameters."""
    (u, v, w), (u2, v2, w2) = rows, others
    blocks = K[np.ix_(u, u2)] * K[np.ix_(v, v2)] + K[np.ix_(u, v2)] * K[np.ix_(v, u2)]
    return np.asarray(2.0 * w[:, None] * w2 * blocks)


def _curvature(K: Floats, rows: Rows) -> Floats:
    return _cross(K, rows, rows)


def _explained(K: Floats, rows: Rows, free: Rows) -> Floats:
    """The part of each parameter's curvature that the free ones account for.

    A thousand variables have 700,000 candidates and thousands of free parameters: so many at a time as fit in memory.
    """
    root = inverse_root(_curvature(K, free))
    u, v, w = rows
    at_once = max(_ENTRIES // max(len(root), 1), 1)
    found = [np.empty(0)]
    for begin in range(0, len(u), at_once):
        part = slice(begin, begin + at_once)
        found.append(((_cross(K, (u[part], v[part], w[part]), free) @ root) ** 2).sum(axis=1))
    return np.concatenate(found)


def inverse_root(H: Floats) -> Floats:
    """A root (p, r) of the inverse of H, blind directions left out."""
    if not len(H):
        return np.zeros((0, 0))
    unit = 1.0 / np.sqrt(np.maximum(np.diag(H), 1e-300))
    if (root := plain_inverse_root(H * np.outer(unit, unit))) is not None:
        return unit[:, None] * root
    value, vector = np.linalg.eigh(H * np.outer(unit, unit))
    keep: Bools = value >= NO_INFORMATION * max(float(value[-1]), 1.0)
    return np.asarray(unit[:, None] * vector[:, keep] / np.sqrt(value[keep]))


# Residuals --------------------------------------------------------------------------------------------------


def residuals(fit: Fit, kind: str = "correlation") -> pd.DataFrame:
    """Observed less implied: covariances, correlations, or each over its standard error."""
    if kind not in get_args(Residual):
        raise UnmeasuredError(f"kind must be one of {listing(get_args(Residual))}; got {kind!r}.")
    names = list(fit.sample.names)
    values = fit.sample.cov - fit.implied_cov
    if kind != "raw":
        values = values / np.outer(fit.sample.sd, fit.sample.sd)
    if kind == "standardised":
        with np.errstate(divide="ignore", invalid="ignore"):
            values = values / residual_errors(fit)
    return pd.DataFrame(values, index=names, columns=names)


def residual_errors(fit: Fit) -> Floats:
    """(n, n) standard errors of residual correlations; missing where a residual is zero by construction.

    With ``s`` the sample moments, the residual is ``(I - D B) s`` to first order, where ``D`` holds dSigma by each free
    parameter and ``B`` how estimates follow the data; the moments vary as those of a Gaussian sample around S do.
    """
    if math.isinf(fit.sample.n):
        raise UnmeasuredError("A population has no sampling error, so its residuals have no standard errors.")
    moves = Moves.of(fit)
    S, P = moves.S, moves.P
    change = moves.derivatives(free_rows(fit.model))
    if fit.full is not None and fit.sample.has_rows:
        return _residual_errors_of_rows(fit, change)
    if fit._along is not None:
        change = np.einsum("kij,kq->qij", change, fit._along)
    weighted = P @ change @ P
    root = inverse_root(0.5 * np.einsum("kij,lij->kl", weighted, change))
    # (r, n, n) orthonormal directions in which the estimates move Sigma, and what each reads from the data
    change, weighted = np.einsum("kr,kij->rij", root, change), 0.5 * np.einsum("kr,kij->rij", root, weighted)
    follows = 2.0 * S @ weighted @ S
    between = np.einsum("kij,lij->kl", weighted, follows)
    own = np.outer(np.diag(S), np.diag(S)) + S**2
    variance = own - 2.0 * (change * follows).sum(axis=0) + np.einsum("kij,kl,lij->ij", change, between, change)
    return np.sqrt(np.where(variance > _EXACT * own, variance, math.nan) / fit.sample.n)


def _residual_errors_of_rows(fit: Fit, change: Floats) -> Floats:
    """The same where values are missing: the moments of highest likelihood vary as their observed information says.

    With A that information and D the derivatives of the model, residuals have the covariance
    ``(A^-1 - D (D' A D)^-1 D') / N``.
    """
    (observations,) = fitted_to_rows(fit).joint.observations
    n, sd = len(fit.sample.names), fit.sample.sd
    i, j = np.tril_indices(n)
    full = observations.saturated_information[0]
    # Means are free in both models.
    A = full[n:, n:] - full[n:, :n] @ np.linalg.solve(full[:n, :n], full[:n, n:])
    A = A * np.outer(sd[i] * sd[j], sd[i] * sd[j])
    D = change[:, i, j].T
    own = np.diag(np.linalg.inv(A))
    variance = own - ((D @ inverse_root(D.T @ A @ D)) ** 2).sum(axis=1)
    errors = np.empty((n, n))
    errors[i, j] = errors[j, i] = np.sqrt(np.where(variance > _EXACT * own, variance, math.nan) / observations.n)
    return errors
