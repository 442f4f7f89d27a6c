"""Fits of thousands of parameters: Fisher scoring by matrix products of BLAS.

The compiled kernels (:mod:`unmeasured.sem.kernels`) are made for matrices of tens of rows, where a call into a library
costs more than the arithmetic. With a thousand variables it is the other way round. The formulas are the same: a
parameter moves Sigma by ``w (u v' + v u')``, and the gradient and the expected Hessian are read from the tables
``Z P Z'`` and ``Z P S P Z'``.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from unmeasured.arrays import Floats
from unmeasured.sem import kernels
from unmeasured.sem.solve import Check, Problem, Solution, is_over, never
from unmeasured.sem.start import LEAST_NOISE

# With more free parameters: the last fit of a model of 500 variables and 100 latents did not end within two processor
# minutes by the kernels, and takes less than 20 s by these products. 957 parameters take 0.3 s by the kernels.
LARGE = 1000
# Where a step is predicted to gain less than this in total log-likelihood the fit has converged.
_GAIN = 1e-8
_MAX_STEPS = 200
# Damping of a step, in parts of the diagonal: where it begins, its band, and the factor it changes by. The least of it
# keeps rotations within a group, along which nothing changes, from moving.
_DAMPING, _DAMPING_LEAST, _DAMPING_MOST, _FACTOR = 1e-4, 1e-9, 1e6, 10.0


def solve_large(problem: Problem, start: Floats, check: Check = never) -> Solution:
    """The optimum from a start nearby; as far as it has come where ``check`` says that the time is over."""
    pattern, sample = problem.pattern, problem.sample
    lower = np.where(pattern.is_variance, LEAST_NOISE, -np.inf)
    x = np.maximum(start, lower)
    value, gradient, H = _derivatives(problem, x)
    history, damping, predicted, end = [value], _DAMPING, np.inf, kernels.STEP_LIMIT
    if not np.isfinite(value):
        end = kernels.BAD_START
    while end == kernels.STEP_LIMIT and len(history) <= _MAX_STEPS and not is_over(check):
        free = ~((x <= lower) & (gradient > 0.0))
        other, after = x, np.inf
        while damping < _DAMPING_MOST:
            A = H[np.ix_(free, free)]
            A[np.diag_indices_from(A)] *= 1.0 + damping
            step = np.zeros_like(x)
            step[free] = -cho_solve(cho_factor(A, overwrite_a=True, check_finite=False), gradient[free])
            other = np.maximum(x + step, lower)
            moved = other - x
            predicted = -float(gradient @ moved) - 0.5 * float(moved @ H @ moved)
            if 0.5 * sample.n * predicted < _GAIN:
                end = kernels.CONVERGED
                break
            after = _objective(problem, other)
            if after < value:
                break
            damping *= _FACTOR
        if end == kernels.CONVERGED:
            break
        if not after < value:
            end = kernels.STALLED
            break
        damping = max(damping / _FACTOR, _DAMPING_LEAST)
        x = other
        value, gradient, H = _derivatives(problem, x)
        history.append(value)
    discrepancy = value - sample.log_det_corr - len(sample.names)
    return Solution(x, discrepancy, end, len(history) - 1, predicted, np.array(history), lower)


def _moments(problem: Problem, x: Floats) -> tuple[Floats, Floats]:
    """Total effects T on the observed variables and covariances C with them, (d, n) each."""
    pattern = problem.pattern
    F, Omega = pattern.matrices(np.append(x, 0.0))
    E = np.linalg.inv(np.eye(len(F)) - F)
    T = E[:, pattern.observed]
    return np.asarray(T), np.asarray(E.T @ (Omega @ T))


def _objective(problem: Problem, x: Floats) -> float:
    """``log det Sigma + tr(Sigma^-1 S)``; infinite where Sigma is not positive definite."""
    Sigma = _moments(problem, x)[1][problem.pattern.observed]
    try:
        factor = cho_factor(Sigma, check_finite=False)
    except np.linalg.LinAlgError:
        return np.inf
    log_det = 2.0 * float(np.log(np.diag(factor[0])).sum())
    return log_det + float(np.trace(cho_solve(factor, problem.sample.corr, check_finite=False)))


def _derivatives(problem: Problem, x: Floats) -> tuple[float, Floats, Floats]:
    """The objective, its gradient (p,) and its expected Hessian (p, p)."""
    pattern, S = problem.pattern, problem.sample.corr
    T, C = _moments(problem, x)
    try:
        factor = cho_factor(C[pattern.observed], check_finite=False)
    except np.linalg.LinAlgError:
        return np.inf, np.zeros(len(x)), np.eye(len(x))
    P = cho_solve(factor, np.eye(len(S)), check_finite=False)
    PS = P @ S
    value = 2.0 * float(np.log(np.diag(factor[0])).sum()) + float(np.trace(PS))
    rows, at = np.unique(np.concatenate(pattern.rows), return_inverse=True)
    u, v = at.reshape(2, -1)
    Z = np.concatenate([T, C])[rows]
    ZP = Z @ P
    K = ZP @ Z.T
    D = K - (ZP @ S) @ ZP.T
    w = np.where(pattern.is_variance, 0.5, 1.0)
    H = K[np.ix_(u, u)] * K[np.ix_(v, v)] + K[np.ix_(u, v)] * K[np.ix_(v, u)]
    return value, 2.0 * w * D[u, v], 2.0 * np.outer(w, w) * H
