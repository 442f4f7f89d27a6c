"""Fits of thousands of parameters: damped Fisher scoring by matrix products (:mod:`unmeasured.sem.products`)."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from unmeasured.arrays import Floats
from unmeasured.sem import kernels
from unmeasured.sem.products import derivatives, objective
from unmeasured.sem.solve import Check, Problem, Solution, is_over, never
from unmeasured.sem.start import LEAST_NOISE

# Where a step is predicted to gain less than this in total log-likelihood the fit has converged.
_GAIN = 1e-8
_MAX_STEPS = 200
# Damping of a step, in parts of the diagonal: where it begins, its band, and the factor it changes by. The least of it
# keeps rotations within a group, along which nothing changes, from moving.
_DAMPING, _DAMPING_LEAST, _DAMPING_MOST, _FACTOR = 1e-4, 1e-9, 1e6, 10.0


def solve_large(problem: Problem, start: Floats | None, n_restarts: int = 0, check: Check = never) -> Solution:
    """The optimum from a start nearby; without one, from the data, and where that does not converge from others.

    As far as it has come where ``check`` says that the time is over.
    """
    found = _solve(problem, problem.start if start is None else start, check)
    rng = np.random.default_rng(problem.pattern.n_free)
    for _ in range(n_restarts if start is None else 0):
        if found.converged or is_over(check):
            break
        other = _solve(problem, problem.other_start(rng), check)
        found = other if other.discrepancy < found.discrepancy else found
    return found


def _solve(problem: Problem, start: Floats, check: Check) -> Solution:
    pattern, sample = problem.pattern, problem.sample
    lower = np.where(pattern.is_variance, LEAST_NOISE, -np.inf)
    x = np.maximum(start, lower)
    value, gradient, H = derivatives(pattern, sample.corr, x)
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
            try:
                factor = cho_factor(A, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:  # but for rounding it is positive definite
                damping *= _FACTOR
                continue
            step[free] = -cho_solve(factor, gradient[free])
            other = np.maximum(x + step, lower)
            moved = other - x
            predicted = -float(gradient @ moved) - 0.5 * float(moved @ H @ moved)
            if 0.5 * sample.n * predicted < _GAIN:
                end = kernels.CONVERGED
                break
            after = objective(pattern, sample.corr, other)
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
        value, gradient, H = derivatives(pattern, sample.corr, x)
        history.append(value)
    discrepancy = value - sample.log_det_corr - len(sample.names)
    return Solution(x, discrepancy, end, len(history) - 1, predicted, np.array(history), lower)
