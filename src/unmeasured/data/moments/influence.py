"""How each row moves polychoric correlations, and what rows of categories are therefore worth.

The estimate of a correlation is, to first order, the truth and a sum over rows of the influence that a row has by its
two categories, which follows from the scores of the pair's likelihood and of the margins (Muthen 1984).

**What rows are worth.** Maximum likelihood weighs errors of correlations by ``P = Sigma^-1``: with G the influence of a
row, (n, n) with zeros on the diagonal, the chi-square of a true model has the mean

    N sum over rows of tr(P G P G) / 2     for n (n - 1) / 2 correlations,

which for N rows of continuous normal values is their number. So the rows of categories are worth as many as make it
that. Taken one by one pairs are worth more: errors of polychoric correlations are less alike than those of a covariance
matrix, and chi-square weighs differences of pairs most. Of 50 items answered by yes or no chi-square of a true model is
1.6 times as large as the worth of single pairs would have it, of five even categories 1.1 times.

P is that of a few principal factors (:func:`smoothed`), since small eigenvalues of the estimates are too small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import ndtr, owens_t

from unmeasured.arrays import Floats, Ints

# A threshold at infinity: beyond it there is nothing that doubles could hold.
FAR = 40.0
# Cells of two-way tables, and entries of influences, that are handled at once.
_CHUNK = 2_000_000
# Steps of principal factors, and the least residual variance in them: more steps change the worth by less than 1%.
_STEPS, _LEAST_RESIDUAL = 3, 0.05


def worth_of_rows(
    codes: Ints, times: Ints, crossed: Floats, thresholds: Sequence[Floats], corr: Floats, n: float
) -> float:
    """How many rows of continuous values rows of categories are worth.

    Parameters
    ----------
    codes : (R, m)
        Categories 0, 1, ... of some rows, -1 where a value is missing.
    times : (R,)
        How often each was seen.
    crossed : (m, m, K, K)
        Two-way tables of all rows.
    thresholds : m arrays
    corr : (m, m)
        Polychoric correlations.
    n : float
        What the rows are worth by single pairs, about.
    """
    m, K = crossed.shape[0], crossed.shape[2]
    edges = np.full((m, K + 1), FAR)
    edges[:, 0] = -FAR
    for row, own in zip(edges, thresholds, strict=True):
        row[1 : len(own) + 1] = own
    first, second = np.tril_indices(m, -1)
    # A last category stands for missing values, which have no influence.
    influence = np.zeros((len(first), K + 1, K + 1), dtype=np.float32)
    in_margins = [_influence_on_thresholds(own, np.diag(crossed[j, j])) for j, own in enumerate(thresholds)]
    margins = np.zeros((m, K, K - 1))
    for j, one in enumerate(in_margins):
        margins[j, : one.shape[0], : one.shape[1]] = one
    for at in _chunks(len(first), _CHUNK // K**3):
        a, b = first[at], second[at]
        influence[at, :K, :K] = _influence_on_correlations(
            crossed[a, b], pair_scores(edges[a], edges[b], corr[a, b]), margins[a], margins[b]
        )
    P = np.linalg.inv(smoothed(corr, n))
    total, codes = 0.0, np.where(codes < 0, K, codes)
    for at in _chunks(len(codes), _CHUNK // m**2):
        G = np.zeros((len(codes[at]), m, m))
        G[:, first, second] = influence[np.arange(len(first)), codes[at][:, first], codes[at][:, second]]
        G += G.transpose(0, 2, 1)
        PG = P @ G
        total += float(times[at] @ np.einsum("rij,rji->r", PG, PG))
    n_rows = crossed[np.arange(m), np.arange(m)].sum(axis=(1, 2)).max()
    variance = 0.5 * total * n_rows / times.sum()
    if not variance > 0.0:  # correlations at -1 or 1, in which rows of such tables change nothing
        return n
    return float(m * (m - 1) / 2 / variance)


def _chunks(n: int, size: int) -> Iterator[slice]:
    size = max(size, 1)
    return (slice(begin, begin + size) for begin in range(0, n, size))


def _influence_on_thresholds(thresholds: Floats, counts: Floats) -> Floats:
    """(K, K - 1) how a row in each category moves the thresholds of its item."""
    scores = threshold_scores(thresholds)
    information = (scores * counts[: len(scores), None]).T @ scores
    return np.asarray(np.linalg.solve(information, scores.T).T)


def _influence_on_correlations(
    tables: Floats, scores: tuple[Floats, Floats, Floats], rows: Floats, columns: Floats
) -> Floats:
    """(B, K, K) how a row in each cell moves the correlation of its pair, of its own and by way of the thresholds."""
    in_rho, in_rows, in_columns = scores
    weighted = tables * in_rho
    information = (weighted * in_rho).sum(axis=(1, 2))
    by_rows = np.einsum("bxy,bxyt,bzt->bz", weighted, in_rows, rows, optimize=True)
    by_columns = np.einsum("bxy,bxyt,bzt->bz", weighted, in_columns, columns, optimize=True)
    moved = in_rho - by_rows[:, :, None] - by_columns[:, None, :]
    # A correlation lies between -1 and 1, so its variance is 1 at most: a pair with a single rare answer tells nothing.
    return np.asarray(moved / np.maximum(information, 1.0)[:, None, None])


def smoothed(corr: Floats, n: float) -> Floats:
    """The correlations of as many principal factors as eigenvalues are beyond chance (Marchenko and Pastur 1967).

    >>> loadings = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    >>> R = np.outer(loadings, loadings); np.fill_diagonal(R, 1.0)
    >>> np.abs(smoothed(R, 1000) - R).max() < 0.05
    np.True_
    """
    p = len(corr)
    values = np.linalg.eigvalsh(corr)
    m = max(1, min(int((values > (1.0 + math.sqrt(p / n)) ** 2).sum()), p // 2))
    residuals = np.full(p, values[: p - m].mean())
    for _ in range(_STEPS):
        values, vectors = np.linalg.eigh(corr - np.diag(residuals))
        loadings = vectors[:, p - m :] * np.sqrt(np.maximum(values[p - m :], 0.0))
        explained = (loadings**2).sum(axis=1)
        residuals = np.clip(1.0 - explained, _LEAST_RESIDUAL, 1.0)
    loadings *= np.sqrt((1.0 - residuals) / np.maximum(explained, 1e-12))[:, None]
    implied = loadings @ loadings.T
    np.fill_diagonal(implied, 1.0)
    return np.asarray(implied)


def threshold_scores(thresholds: Floats) -> Floats:
    """(K, K - 1) derivative of the log probability of each category in the thresholds of one item."""
    p = np.diff(np.concatenate([[0.0], ndtr(thresholds), [1.0]]))
    density = np.exp(-(thresholds**2) / 2.0) / np.sqrt(2.0 * np.pi)
    K = len(p)
    table = np.zeros((K, K - 1))
    table[range(K - 1), range(K - 1)] = density / p[:-1]
    table[range(1, K), range(K - 1)] = -density / p[1:]
    return table


def bivariate_cdf(h: Floats, k: Floats, rho: Floats) -> Floats:
    """Probability that two standard Gaussian variables of correlation rho stay below h and k (neither zero).

    >>> bivariate_cdf(np.array(1e-100), np.array(1e-100), np.array(0.5)).round(6)
    np.float64(0.333333)
    """
    root = np.sqrt(1.0 - rho**2)
    with np.errstate(over="ignore"):
        T = owens_t(h, (k - rho * h) / (h * root)) + owens_t(k, (h - rho * k) / (k * root))
    return np.asarray((ndtr(h) + ndtr(k)) / 2.0 - T - np.where(h * k < 0, 0.5, 0.0))


def pair_scores(rows: Floats, columns: Floats, rho: Floats) -> tuple[Floats, Floats, Floats]:
    """Derivatives of the log probability of each cell (B, K, K): in rho, and in the thresholds (..., K - 1) of both."""
    h, k = (np.where(np.abs(edges) < 1e-100, 1e-100, edges) for edges in (rows, columns))
    r = rho[:, None, None]
    root = np.sqrt(1.0 - r**2)
    cdf = bivariate_cdf(h[:, :, None], k[:, None, :], r)
    p = np.maximum(np.diff(np.diff(cdf, axis=1), axis=2), 1e-12)
    x, y = h[:, :, None], k[:, None, :]
    density = np.exp(-(x**2 - 2.0 * r * x * y + y**2) / (2.0 * root**2)) / (2.0 * np.pi * root)
    in_rho = np.diff(np.diff(density, axis=1), axis=2) / p
    return in_rho, _in_thresholds(h, k, r, p), _in_thresholds(k, h, r, p.transpose(0, 2, 1)).transpose(0, 2, 1, 3)


def _in_thresholds(own: Floats, other: Floats, r: Floats, p: Floats) -> Floats:
    """(B, K, K, K - 1) derivatives in the thresholds of the variable in the rows."""
    inside = own[:, 1:-1]
    conditional = ndtr((other[:, None, :] - r * inside[:, :, None]) / np.sqrt(1.0 - r**2))  # (B, K - 1, K + 1)
    slope = np.exp(-(inside**2) / 2.0)[:, :, None] / np.sqrt(2.0 * np.pi) * np.diff(conditional, axis=2)
    B, K = p.shape[:2]
    out = np.zeros((B, K, K, K - 1))
    for t in range(K - 1):
        out[:, t, :, t] = slope[:, t] / p[:, t]
        out[:, t + 1, :, t] = -slope[:, t] / p[:, t + 1]
    return out
