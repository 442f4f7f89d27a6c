"""Rank-based Gaussian scores: for variables that are Gaussian up to a monotone change of scale (nonparanormal)."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from unmeasured.arrays import Floats


def normal_scores(values: Floats) -> Floats:
    """Van der Waerden scores ``Phi^-1(rank / (N + 1))`` of each column, ties at their mean rank, holes left alone.

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
