"""The delta method: standard errors of functions of the estimates.

A function ``g`` of the free parameters has, to first order, the variance ``J V J'`` with ``J`` its gradient and ``V``
the covariance of the estimates. Where the data do not determine a function of the parameters, it has no standard error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack

from unmeasured.arrays import Bools, Floats

if TYPE_CHECKING:
    from unmeasured.models.fit import Fit

# Directions in which the scaled information is below this carry no information: not identified.
NO_INFORMATION = 1e-9
# Where there is so much information on each parameter given the others, nothing else is looked at.
_CLEARLY_IDENTIFIED = 1e-4
# A fit of so many parameters that was stopped has no standard errors.
MANY_PARAMETERS = 300


def plain_inverse_root(H: Floats) -> Floats | None:
    """A root R (p, p) of the inverse of an information matrix of unit diagonal, ``R R' = H^-1``.

    None where some parameter may not be identified: eigenvalues tell, and take ten times as long.
    """
    if not len(H):
        return None
    try:
        L = np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        return None
    # The diagonal of H is one: no parameter is close to a combination of others.
    is_safe = float(np.diag(L).min()) ** 2 > _CLEARLY_IDENTIFIED
    return np.asarray(lapack.dtrtri(L, lower=1)[0].T) if is_safe else None


def covariance_root(fit: Fit) -> tuple[Floats, Floats]:
    """A root (p, r) of the covariance of the estimates, variables of unit variance, and the blind directions (p, q).

    A fit that ended where there is no likelihood is blind to every parameter.
    """
    if (own := fit._own_root()) is not None:
        return own
    H = fit.problem.derivatives(fit.solution.x)[2]
    if not np.isfinite(H).all():
        return np.zeros((len(H), 0)), np.eye(len(H))
    unit = 1.0 / np.sqrt(np.maximum(np.diag(H), 1e-300))
    # In a population the estimates are exact.
    spread = 0.0 if math.isinf(fit.sample.n) else math.sqrt(2.0 / fit.sample.n)
    if fit._acov is None and (inverse := plain_inverse_root(H * np.outer(unit, unit))) is not None:
        return unit[:, None] * inverse * spread, np.zeros((len(H), 0))
    value, vector = np.linalg.eigh(H * np.outer(unit, unit))
    blind: Bools = value < NO_INFORMATION * max(float(value[-1]) if len(value) else 1.0, 1.0)
    null = unit[:, None] * vector[:, blind]
    if fit._acov is not None:
        scale = fit.problem.pattern.unit(fit.problem.scale)
        return symmetric_root(fit._acov[: len(H), : len(H)]) / scale[:, None], null
    return unit[:, None] * vector[:, ~blind] * spread / np.sqrt(value[~blind]), null


def symmetric_root(acov: Floats) -> Floats:
    """A root R (p, p) of a covariance matrix, ``R R'``; what rounding made negative counts as zero."""
    value, vector = np.linalg.eigh(acov)
    return np.asarray(vector * np.sqrt(np.maximum(value, 0.0)))


def deviation_changes(fit: Fit) -> Floats:
    """(p, d) relative change of the standard deviation of each variable by each parameter, on unit variance."""
    pattern, scale = fit.problem.pattern, fit.problem.scale
    F, Omega = fit.F * scale[:, None] / scale, fit.Omega / np.outer(scale, scale)
    E = np.linalg.inv(np.eye(len(F)) - F)
    C = E.T @ Omega @ E
    a, b = pattern.ends.T
    by_noise = np.where((a == b)[:, None], 1.0, 2.0) * E[a] * E[b]
    change = np.where(pattern.is_path[:, None], 2.0 * E[b] * C[a], by_noise)
    return np.asarray(change / (2.0 * np.diag(C)))


def delta_errors(fit: Fit, gradient: Floats) -> Floats:
    """Standard errors (m,) of m functions, from their gradient (m, p) by the parameters on unit variance.

    Missing where a function moves along a direction the data are blind to, or has no gradient, and in a large fit that
    was stopped before its optimum.
    """
    if fit.is_cut_short:
        return np.full(len(gradient), math.nan)
    return errors_along(*covariance_root(fit), gradient) if len(gradient) else np.zeros(0)


def errors_along(root: Floats, null: Floats, gradient: Floats) -> Floats:
    """The same from a root of the covariance and the blind directions (:func:`covariance_root`)."""
    finite: Bools = np.asarray(np.isfinite(gradient).all(axis=1))
    gradient = np.where(finite[:, None], gradient, 0.0)
    errors = np.sqrt(((gradient @ root) ** 2).sum(axis=1))
    blind = np.abs(gradient @ null).max(axis=1, initial=0.0) > 1e-4 * np.abs(gradient).max(axis=1, initial=1e-300)
    return np.where(blind | ~finite, math.nan, errors)
