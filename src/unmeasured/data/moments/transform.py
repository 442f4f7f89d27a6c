"""Rank-based Gaussian scores: for variables that are Gaussian up to a monotone change of scale (nonparanormal)."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc, ndtri
from scipy.stats import rankdata

from unmeasured.arrays import Bools, Floats, Ints

# auto: variables count as skewed if chance makes them so less often than this.
SKEWED = 1e-4


def are_skewed(values: Floats, columns: Bools) -> bool:
    """Whether these columns are skewed beyond chance, taken together; one alone shows it too late.

    For Gaussian variables ``N skewness^2 / 6`` is chi-square with one degree of freedom, and two of them are correlated
    as the sixth power of the variables' correlation. Their mean is then nearly chi-square over its degrees of freedom,
    of which there are as many as the mean of those sixth powers leaves (Satterthwaite).

    >>> x = np.random.default_rng(0).normal(size=(500, 3))
    >>> are_skewed(x, np.ones(3, dtype=bool)), are_skewed(np.exp(x), np.ones(3, dtype=bool))
    (False, True)
    """
    if not columns.any():
        return False
    chosen = values[:, columns]
    seen = ~np.isnan(chosen)
    largest = np.nanmax(np.abs(chosen), axis=0)  # columns of 1e200 would overflow
    z = chosen / np.where(largest > 0, largest, 1.0)
    z = np.where(seen, z - np.nanmean(z, axis=0), 0.0)
    n = seen.sum(axis=0)
    z /= np.maximum(np.sqrt((z**2).sum(axis=0) / n), 1e-300)
    skewness = (z * z * z).sum(axis=0) / n  # numpy's third power takes ten times as long
    together = seen.astype(float)
    return beyond_chance(skewness, n, z.T @ z / np.maximum(together.T @ together, 1.0))


def beyond_chance(skewness: Floats, n: Ints, corr: Floats) -> bool:
    """Whether variables of these correlations, each seen n times, are skewed beyond chance."""
    degrees = 1.0 / float((corr**6).mean())
    return bool(chdtrc(degrees, degrees * float((skewness**2 * n / 6.0).mean())) < SKEWED)


def normal_scores(values: Floats) -> Floats:
    """Van der Waerden scores ``Phi^-1(rank / (N + 1))`` of each column, ties at their mean rank, missing values "
    "left alone.

    If monotone functions of the variables are jointly Gaussian, the correlations of the scores estimate those of the
    Gaussian variables. Unlike ``2 sin(pi r / 6)`` of Spearman's r they are always positive definite together.

    >>> normal_scores(np.array([[1.0], [10.0], [100.0]])).ravel().round(3) + 0.0
    array([-0.674,  0.   ,  0.674])
    """
    scores = np.full_like(values, np.nan)
    for j, column in enumerate(values.T):
        seen = ~np.isnan(column)
        scores[seen, j] = ndtri(rankdata(column[seen]) / (seen.sum() + 1.0))
    return scores
