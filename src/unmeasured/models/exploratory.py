"""Exploratory factor analysis: loadings of m factors on all variables, rotated to simple structure.

::

    R  ──►  minres: R ≈ L L' + diag(psi), least squares off the diagonal  ──►  quartimin: L rotated, factors correlated

Least squares on the correlations (minimum residuals; Harman and Jones 1966) needs no inverse of R, so a matrix from
fewer samples than variables is as good as any other. Quartimin (direct oblimin with parameter zero; Jennrich and
Sampson 1966) is minimised by the gradient projection algorithm of Jennrich (2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from unmeasured.arrays import Floats, Ints
from unmeasured.models.solve import Check, never

# Residual variances of variables with unit variance stay between these.
_LEAST, _LARGEST = 0.01, 1.0
# Maximum likelihood may go closer to zero, and further still where that is asked for; it ends where a step is to gain
# less than this, a thousandth of a unit of chi-square with a million rows, and is given up after so many steps.
LEAST_NOISE_ML, _GAIN_ML, _STEPS_ML = 1e-6, 1e-9, 200
# Steps of the two optimisations, and the relative gain at which they stop: partitions of items do not change beyond.
_STEPS, _GAIN = 60, 1e-8
# Damping of the steps of least squares: the least that is tried where a plain step fails, where it ends, and what keeps
# the curvature of variables without a residual from zero.
_LEAST_DAMPING, _MOST_DAMPING, _RIDGE = 1e-3, 1e6, 1e-9
_ROTATION_STEPS, _ROTATION_GAIN, _SLOPE = 300, 1e-7, 1e-4
# Steps of a rotation between two looks at the clock.
_STEPS_AT_ONCE = 10


class Extraction(NamedTuple):
    """Unrotated loadings (p, m) and residual variances (p,)."""

    loadings: Floats
    residuals: Floats


def minres(R: Floats, n_factors: int, start: Floats | None = None, check: Check = never) -> Extraction:
    """The m factors that leave the smallest residual correlations, from residual variances to start with.

    With V the eigenvectors of ``R - diag(psi)`` for its p - m smallest eigenvalues v, the sum of squared residuals is
    ``v'v``, with the slope ``-(V * V) v`` by psi and about the curvature ``(V V')`` squared entry by entry (Joreskog
    1977): damped Newton steps on these take five to fifteen eigenproblems.

    ``check`` may raise :class:`~unmeasured.errors.Stopped` to end the work, here and below.

    >>> loadings = np.array([0.9, 0.8, 0.7, 0.6])
    >>> R = np.outer(loadings, loadings); np.fill_diagonal(R, 1.0)
    >>> np.abs(minres(R, 1).loadings[:, 0]).round(3).tolist()
    [0.9, 0.8, 0.7, 0.6]
    """
    rest = len(R) - n_factors

    def at(residuals: Floats) -> tuple[float, Floats, Floats, Floats, Floats]:
        check()
        values, vectors = np.linalg.eigh(R - np.diag(residuals))
        small, space = values[:rest], vectors[:, :rest]
        return 0.5 * float(small @ small), -(space**2 @ small), (space @ space.T) ** 2, values, vectors

    x = np.full(len(R), 0.5) if start is None else start
    value, slope, curvature, values, vectors = at(x)
    damping = 0.0
    for _ in range(_STEPS):
        free = ~(((x <= _LEAST) & (slope > 0)) | ((x >= _LARGEST) & (slope < 0)))
        if not free.any():
            break
        H = curvature[np.ix_(free, free)]
        H[np.diag_indices_from(H)] = np.diag(H) * (1.0 + damping) + _RIDGE
        other = x.copy()
        other[free] = np.clip(x[free] - np.linalg.solve(H, slope[free]), _LEAST, _LARGEST)
        trial = at(other)
        if trial[0] >= value:
            if damping >= _MOST_DAMPING:
                break
            damping = max(10.0 * damping, _LEAST_DAMPING)
            continue
        has_converged = value - trial[0] <= _GAIN * value
        x, (value, slope, curvature, values, vectors) = other, trial
        damping = damping / 10.0 if damping > _LEAST_DAMPING else 0.0
        if has_converged:
            break
    return Extraction(vectors[:, rest:][:, ::-1] * np.sqrt(np.maximum(values[rest:][::-1], 1e-6)), x)


def quartimin(loadings: Floats, check: Check = never) -> Floats:
    """The loadings (p, m) rotated to simple structure, factors free to correlate.

    >>> simple = np.array([[0.8, 0], [0.7, 0], [0.6, 0], [0, 0.9], [0, 0.7], [0, 0.5]])
    >>> rotated = quartimin(simple @ np.array([[0.6, 0.8], [-0.8, 0.6]]))
    >>> np.abs(rotated).max(axis=1).round(2).tolist()
    [0.8, 0.7, 0.6, 0.9, 0.7, 0.5]
    """
    if loadings.shape[1] == 1:
        return loadings
    # Kaiser's normalisation: every variable has the same weight.
    length = np.maximum(np.sqrt((loadings**2).sum(axis=1, keepdims=True)), 1e-9)
    unit = np.ascontiguousarray(loadings / length)
    check()
    T, step = np.ascontiguousarray(_varimax(unit)), 1.0
    for _ in range(_ROTATION_STEPS // _STEPS_AT_ONCE):
        check()
        rotated, T, step, is_done = _quartimin(unit, T, step, _STEPS_AT_ONCE)
        if is_done:
            break
    return np.asarray(rotated * length)


def strongest(loadings: Floats) -> Ints:
    """(p,) the factor each variable loads on most."""
    return np.asarray(np.argmax(np.abs(loadings), axis=1), dtype=np.int64)


def dense_factors(
    R: Floats, n_factors: int, start: Floats | None = None, check: Check = never
) -> tuple[Floats, Floats]:
    """Rotated loadings (p, m) and residual variances (p,)."""
    extracted = minres(R, n_factors, start, check)
    return quartimin(extracted.loadings, check), extracted.residuals


def ml_discrepancy(
    R: Floats,
    n_factors: int,
    check: Check = never,
    enough: float = -np.inf,
    shares: Sequence[float] = (1.0,),
    least_noise: Floats | float = LEAST_NOISE_ML,
) -> float:
    """How far the best m factors are from the data: ``log|Sigma| - log|R| + tr(R Sigma^-1) - p`` at its minimum.

    No factor model with as many latents fits better, whatever its loadings and paths: all are special cases. NaN where
    the minimum was not found: correlations near one make it hard. A value of ``enough`` or less is returned at once,
    where all that is asked is whether the minimum lies below. There are local minima: ``shares`` are the starts, as
    parts of the largest residual variances there can be, none of which depends on the order of the variables.
    ``least_noise``: what residual variances are no smaller than.

    >>> loadings = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    >>> R = np.outer(loadings, loadings); np.fill_diagonal(R, 1.0)
    >>> ml_discrepancy(R, 1) < 1e-6
    True
    """
    alone = 1.0 / np.diag(np.linalg.pinv(R))  # what of each variable the others leave: no residual variance is larger
    least = np.inf
    for share in shares:
        start = np.log(np.clip(share * alone, least_noise, _LARGEST))
        value, has_converged = _ml_minimum(R, n_factors, start, check, enough, np.log(least_noise))
        least = min(least, value) if has_converged else least
        if value <= enough:
            return value
    return least if np.isfinite(least) else float("nan")


def _ml_minimum(
    R: Floats, n_factors: int, logs: Floats, check: Check, enough: float, least: Floats | float
) -> tuple[float, bool]:
    """The discrepancy where damped Newton steps over logarithms of the residual variances end, and whether they did.

    With ``theta`` and V the p - m smallest eigenvalues and vectors of R in units of the residuals the discrepancy is
    the sum of ``theta - log theta - 1``, with the slope ``(V * V)(1 - theta)``; the curvature has a part from pairs of
    small eigenvalues, which is never negative, and one from pairs of a small and a large one (Clarke 1970).
    """
    rest = len(R) - n_factors
    low, high = np.broadcast_to(least, logs.shape), np.log(_LARGEST)

    def at(x: Floats) -> tuple[float, Floats, Floats]:
        check()
        scale = np.exp(-0.5 * x)
        values, vectors = np.linalg.eigh(R * np.outer(scale, scale))
        small = np.maximum(values[:rest], 1e-12)
        return float(np.sum(small - np.log(small))) - rest, values, vectors

    x = logs
    value, values, vectors = at(x)
    damping = 0.0
    for _ in range(_STEPS_ML):
        if value <= enough:
            return value, True
        slope = vectors[:, :rest] ** 2 @ (1.0 - values[:rest])
        free = ~(((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0)))
        if not free.any():
            return value, True
        sure, other = _ml_curvature(values, vectors, rest)
        step = _newton_step((sure + other)[np.ix_(free, free)], sure[np.ix_(free, free)], slope[free], damping)
        there = x.copy()
        there[free] = np.clip(x[free] + step, low[free], high)
        if -float(slope @ (there - x)) < _GAIN_ML:
            return value, True
        trial = at(there)
        if trial[0] >= value:
            if damping >= _MOST_DAMPING:
                return value, False
            damping = max(10.0 * damping, _LEAST_DAMPING)
            continue
        x, (value, values, vectors) = there, trial
        damping = damping / 10.0 if damping > _LEAST_DAMPING else 0.0
    return value, False


def _ml_curvature(values: Floats, vectors: Floats, rest: int) -> tuple[Floats, Floats]:
    """Two parts (p, p) of the second derivative by logarithms of residual variances: the first is never negative."""
    V, W, theta, large = vectors[:, :rest], vectors[:, rest:], values[:rest], values[rest:]
    sure = (V * theta) @ V.T * (V @ V.T)
    weights = (1.0 - theta) * (large[:, None] + theta) / np.maximum(large[:, None] - theta, 1e-12)  # (m, rest)
    mixed = (V * weights[:, None, :]) @ V.T  # (m, p, p)
    return sure, np.einsum("jn,njk,kn->jk", W, mixed, W)


def _newton_step(H: Floats, sure: Floats, slope: Floats, damping: float) -> Floats:
    """A step down the slope by the curvature, or by the part of it that is never negative where it is."""
    for A in (H, sure):
        damped = A.copy()
        damped[np.diag_indices_from(damped)] += damping * np.diag(sure) + _RIDGE
        try:
            return -np.asarray(cho_solve(cho_factor(damped, check_finite=False), slope, check_finite=False))
        except np.linalg.LinAlgError:
            continue
    return -slope / (np.diag(sure) * (1.0 + damping) + _RIDGE)


def degrees_of_freedom(p: int, n_factors: int) -> int:
    """Of p variables and m factors without restrictions.

    >>> degrees_of_freedom(9, 3)
    12
    """
    return ((p - n_factors) ** 2 - (p + n_factors)) // 2


@numba.njit(cache=True)
def _varimax(A: Floats) -> Floats:
    """The orthogonal rotation that spreads the squared loadings most: where the oblique one starts."""
    p, m = A.shape
    T, before = np.eye(m), 0.0
    for _ in range(100):
        B = A @ T
        U, values, Vt = np.linalg.svd(A.T @ (B**3 - B * ((B**2).sum(axis=0) / p)))
        T = U @ Vt
        if values.sum() < before * (1.0 + 1e-8):
            break
        before = values.sum()
    return T


@numba.njit(cache=True)
def _quartimin(A: Floats, T: Floats, step: float, n_steps: int) -> tuple[Floats, Floats, float, bool]:
    """Loadings rotated by so many steps from T, the rotation, the size of the last step, and whether that is all."""
    p, m = A.shape
    inverse = np.linalg.inv(T)
    L = A @ inverse.T
    slope = np.empty((p, m))
    value = _complexity(L, slope)
    for _ in range(n_steps):
        gradient = -(L.T @ slope @ inverse).T
        # Columns of T keep length one: only what is perpendicular to them counts.
        size = 0.0
        for j in range(m):
            along = 0.0
            for i in range(m):
                along += T[i, j] * gradient[i, j]
            for i in range(m):
                gradient[i, j] -= T[i, j] * along
                size += gradient[i, j] ** 2
        if size < _SLOPE**2:
            return L, T, step, True
        step *= 2.0
        other, other_inverse, rotated, lower = T, inverse, L, value
        for _trial in range(12):
            other = T - step * gradient
            for j in range(m):  # by element: assigning a column takes much longer to compile
                length = 0.0
                for i in range(m):
                    length += other[i, j] ** 2
                length = np.sqrt(length)
                for i in range(m):
                    other[i, j] /= length
            other_inverse = np.linalg.inv(other)
            rotated = A @ other_inverse.T
            lower = _complexity(rotated, slope)
            if lower < value - 0.5 * size * step:
                break
            step /= 2.0
        if lower >= value:
            return L, T, step, True
        has_converged = value - lower < _ROTATION_GAIN * value
        T, inverse, L, value = other, other_inverse, rotated, lower
        if has_converged:
            return L, T, step, True
    return L, T, step, False


@numba.njit(cache=True)
def _complexity(L: Floats, slope: Floats) -> float:
    """A quarter of the products of squared loadings within rows; ``slope`` becomes its derivative."""
    p, m = L.shape
    value = 0.0
    for i in range(p):
        whole = 0.0
        for j in range(m):
            whole += L[i, j] ** 2
        for j in range(m):
            others = whole - L[i, j] ** 2
            slope[i, j] = L[i, j] * others
            value += L[i, j] ** 2 * others
    return value / 4.0
