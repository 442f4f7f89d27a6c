"""How far rows are from a multivariate Gaussian: Mardia's skewness and kurtosis."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtr

from unmeasured.arrays import Floats
from unmeasured.data.moments.missing import standardised


@dataclass(frozen=True)
class Mardia:
    """Mardia's multivariate skewness and kurtosis with their p-values, from complete rows.

    ``relative_kurtosis`` is 1 for Gaussian variables.
    """

    skewness: float
    skewness_pvalue: float
    kurtosis: float
    kurtosis_pvalue: float
    relative_kurtosis: float
    n_rows: int


def kurtosis(rows: Floats) -> tuple[float, float]:
    """Mardia's kurtosis of complete rows relative to that of a Gaussian, and its p-value: all that costs little.

    >>> relative, p = kurtosis(np.random.default_rng(0).standard_t(4, size=(500, 4)))
    >>> round(relative, 1), p < 0.001
    (1.6, True)
    """
    n, p = rows.shape
    z = standardised(rows)[0]
    value, vector = np.linalg.eigh(z.T @ z / n)
    q = ((z @ vector) ** 2 / np.maximum(value, 1e-12)).sum(axis=1)
    expected = p * (p + 2)
    found = float((q**2).mean())
    return found / expected, float(2.0 * ndtr(-abs(found - expected) / math.sqrt(8.0 * expected / n)))


def mardia(rows: Floats) -> Mardia:
    """Mardia's statistics of complete rows (N, n).

    >>> result = mardia(np.random.default_rng(0).normal(size=(500, 4)))
    >>> round(result.relative_kurtosis, 2), result.skewness_pvalue > 0.05
    (0.98, True)
    """
    n, p = rows.shape
    z = standardised(rows)[0]
    value, vector = np.linalg.eigh(z.T @ z / n)
    z = z @ vector / np.sqrt(np.maximum(value, 1e-12))
    if n < p * p:
        skewness = sum(float(((z[start : start + 1000] @ z.T) ** 3).sum()) for start in range(0, n, 1000)) / n**2
    else:
        # The mean of (z_i'z_j)^3 over all pairs of rows is the sum of the squared third moments: no N x N matrix.
        third = np.zeros((p * p, p))
        for start in range(0, n, 1000):
            block = z[start : start + 1000]
            third += (block[:, :, None] * block[:, None, :]).reshape(len(block), -1).T @ block
        skewness = float(((third / n) ** 2).sum())
    relative, pvalue = kurtosis(rows)
    return Mardia(
        skewness,
        float(chdtrc(p * (p + 1) * (p + 2) / 6.0, n * skewness / 6.0)),
        relative * p * (p + 2),
        pvalue,
        relative,
        n,
    )
