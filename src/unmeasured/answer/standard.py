"""Standardised estimates and their standard errors, by the delta method.

A standardised loading ``F_ij sd_i / sd_j`` depends on every parameter that moves one of the two variances, so its
standard error is not that of the plain loading divided by something. With ``C`` the covariance of all variables and
``E = (I - F)^-1``

    dC_kk / dF_ij = 2 E_jk C_ik          dC_kk / dOmega_ij = 2 E_ik E_jk    (half of that where i = j)

and the errors follow from the covariance of the estimates. It is what lavaan's ``standardizedSolution`` reports.
"""

from __future__ import annotations

import math

import numpy as np

from unmeasured.arrays import Bools, Floats
from unmeasured.sem.fit import Fit

# Directions in which the scaled information is below this carry no information: not identified.
_NO_INFORMATION = 1e-9


def standardised_errors(fit: Fit) -> Floats:
    """Standard errors of ``fit.parameters["std"]``: 0 for a constant, missing where the data do not determine it.

    Only loadings, paths and variances have one here; a covariance, which no graph of a search has, is missing.
    """
    gradient = _gradient(fit)
    root, null = covariance_root(fit)
    errors = np.sqrt((gradient @ root) ** 2 @ np.ones(root.shape[1]))
    # What moves along a direction the data are blind to has no standard error.
    blind = np.abs(gradient @ null).max(axis=1, initial=0.0) > 1e-4 * np.abs(gradient).max(axis=1, initial=1e-300)
    return np.where(blind | ~np.isfinite(gradient).all(axis=1), math.nan, errors)


def covariance_root(fit: Fit) -> tuple[Floats, Floats]:
    """A root (p, r) of the covariance of the estimates, variables of unit variance, and the blind directions (p, q)."""
    H = fit.problem.derivatives(fit.solution.x)[2]
    unit = 1.0 / np.sqrt(np.maximum(np.diag(H), 1e-300))
    value, vector = np.linalg.eigh(H * np.outer(unit, unit))
    blind: Bools = value < _NO_INFORMATION * max(float(value[-1]) if len(value) else 1.0, 1.0)
    # In a population the estimates are exact.
    spread = 0.0 if math.isinf(fit.sample.n) else math.sqrt(2.0 / fit.sample.n)
    root = unit[:, None] * vector[:, ~blind] * spread / np.sqrt(value[~blind])
    null = unit[:, None] * vector[:, blind]
    if fit.robust is not None:
        scale = fit.problem.pattern.unit(fit.problem.scale)
        value, vector = np.linalg.eigh(fit.robust.acov[: len(H), : len(H)] / np.outer(scale, scale))
        root = vector * np.sqrt(np.maximum(value, 0.0))
    return root, null


def _gradient(fit: Fit) -> Floats:
    """(rows, p) of every standardised row of the model by every free parameter, variables of unit variance."""
    pattern, scale, rows = fit.problem.pattern, fit.problem.scale, fit.model.parameters
    F, Omega = fit.F * scale[:, None] / scale, fit.Omega / np.outer(scale, scale)
    E = np.linalg.inv(np.eye(len(F)) - F)
    C = E.T @ Omega @ E
    sd = np.sqrt(np.diag(C))
    a, b = pattern.ends.T
    by_noise = np.where((a == b)[:, None], 1.0, 2.0) * E[a] * E[b]
    # (p, d) relative change of each standard deviation
    change = np.where(pattern.is_path[:, None], 2.0 * E[b] * C[a], by_noise) / (2.0 * np.diag(C))
    node = {name: k for k, name in enumerate(pattern.names)}
    i, j = np.array([(node[p.source], node[p.target]) for p in rows]).reshape(-1, 2).T
    path = np.array([p.op != "~~" for p in rows], dtype=bool)
    # A path is multiplied by sd_i / sd_j, a variance divided by sd_i sd_j.
    weight = np.where(path, sd[i], 1.0 / sd[i]) / sd[j]
    std = weight * np.where(path, F[i, j], Omega[i, j])
    gradient = std[:, None] * (np.where(path, 1.0, -1.0)[:, None] * change[:, i].T - change[:, j].T)
    # Free rows in the order of the parameter vector: entries of F, then of Omega.
    free = sorted((k for k, p in enumerate(rows) if p.fixed is None), key=lambda k: not path[k])
    gradient[free, np.arange(len(free))] += weight[free]
    gradient[~path & (i != j)] = math.nan
    return np.asarray(gradient)
