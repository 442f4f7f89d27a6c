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

from unmeasured.arrays import Floats
from unmeasured.models.delta import delta_errors, deviation_changes
from unmeasured.models.fit import Fit


def standardised_errors(fit: Fit) -> Floats:
    """Standard errors of ``fit.parameters["std"]``: 0 for a constant, missing where the data do not determine it.

    A covariance of residuals is standardised by their deviations, all else by those of the variables.
    """
    if fit.is_cut_short:  # the gradient has as many entries as there are pairs of parameters
        return np.full(len(fit.model.parameters), math.nan)
    return delta_errors(fit, _gradient(fit))


def _gradient(fit: Fit) -> Floats:
    """(rows, p) of every standardised row of the model by every free parameter, variables of unit variance."""
    pattern, scale, rows = fit.problem.pattern, fit.problem.scale, fit.model.parameters
    F, Omega = fit.F * scale[:, None] / scale, fit.Omega / np.outer(scale, scale)
    E = np.linalg.inv(np.eye(len(F)) - F)
    C = E.T @ Omega @ E
    sd = np.sqrt(np.diag(C))
    change = deviation_changes(fit)
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
    slot = {k: s for s, k in enumerate(free)}
    own = {int(i[k]): slot[k] for k in free if not path[k] and i[k] == j[k]}  # free residual variances
    for k in np.flatnonzero(~path & (i != j)).tolist():
        ends = int(i[k]), int(j[k])
        weight_k = 1.0 / math.sqrt(Omega[ends[0], ends[0]] * Omega[ends[1], ends[1]])
        gradient[k] = 0.0
        if k in slot:
            gradient[k, slot[k]] = weight_k
        for a in ends:
            if a in own:
                gradient[k, own[a]] -= 0.5 * Omega[ends] * weight_k / Omega[a, a]
    return np.asarray(gradient)
