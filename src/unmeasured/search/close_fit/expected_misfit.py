"""How large chi-square is where a model is right, which the misfit of a model is compared with.

The textbook says: its degrees of freedom, on average. That takes many rows, normal ones, and values, not categories.

**Few rows.** With 300 variables and 2,000 rows chi-square of a true model is 5% larger than its degrees of freedom,
with 1,000 variables a quarter. Its mean is known exactly where there are few parameters (:func:`mean_factor`).

**Categories, heavy tails.** Errors of polychoric correlations are not those of a covariance matrix: with 50 items
answered by yes or no and 500 rows chi-square of a true model is three times its degrees of freedom. What it is the rows
tell. Correlations S_b of rows drawn anew differ from those of all rows, S, by errors of the same kind, so that ::

    Sigma + S_b - S      are correlations of as many rows of a population in which the model Sigma holds,

and their chi-square is that of a true model (after Bollen and Stine 1992, who transform rows so that a model holds).
Where correlations of many items are nearly singular, chi-square, which takes their logarithms, says little. So the same
is asked of Browne's (1974), which does not, and which is the same where there are many rows::

    T = N tr((Sigma^-1 (S - Sigma))^2) / 2

Each is divided by its mean over degrees of freedom in the replicates (the correction of Satorra and Bentler 1994 is
such a mean, too), and a model is rejected where both are too large. Where the first mean is far above the second, small
eigenvalues rule, the estimates too, and nothing is rejected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import digamma

from unmeasured.arrays import Floats
from unmeasured.data.matrices import is_positive_definite, nearest_correlation
from unmeasured.data.sample import Sample
from unmeasured.errors import DataError, Stopped
from unmeasured.models.fit import Fit
from unmeasured.models.indices import p_value, rmsea
from unmeasured.models.solve import Check, never
from unmeasured.search.budget import BUDGET


class Verdict(NamedTuple):
    """What the misfit of a model amounts to, compared with that of a true model."""

    p: float
    rmsea: float

    @property
    def is_rejected(self) -> bool:
        """Whether it is beyond chance."""
        return self.p < BUDGET.rejected

    @property
    def is_negligible(self) -> bool:
        """Whether it is so small that an exact model is kept whatever its p-value."""
        return self.rmsea <= BUDGET.exact_rmsea


@dataclass(frozen=True, eq=False)
class RowErrors:
    """By how much correlations of rows drawn anew differ from those of all rows: (B, p, p), and what rows are worth."""

    errors: Floats
    worths: Floats  # (B,) complete rows of continuous values

    def factors(self, implied: Floats) -> tuple[float, float]:
        """Means over degrees of freedom of chi-square and of Browne's, where a model with these correlations is true.

        With few rows replicates show too little of the latter: one, at least.
        """
        df = len(implied) * (len(implied) - 1) / 2
        pairs = list(zip(self.errors, self.worths, strict=True))
        means = (np.mean([chi2(error, implied, n) for error, n in pairs]) / df for chi2 in (likelihood_ratio, browne))
        first, second = (max(float(mean), 1.0) for mean in means)
        return first, second


def likelihood_ratio(residuals: Floats, implied: Floats, n: float) -> float:
    """Chi-square of residual correlations; where they leave no positive definite matrix, of the nearest one.

    >>> implied = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> round(likelihood_ratio(np.array([[0.0, 0.1], [0.1, 0.0]]), implied, 100), 2)
    2.53
    """
    S = implied + residuals
    S = S if is_positive_definite(S) else nearest_correlation(S)
    log_dets = np.linalg.slogdet(implied)[1] - np.linalg.slogdet(S)[1]
    return n * float(log_dets + np.trace(np.linalg.solve(implied, S)) - len(S))


def browne(residuals: Floats, implied: Floats, n: float) -> float:
    """Browne's chi-square of residual correlations.

    >>> implied = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> round(browne(np.array([[0.0, 0.1], [0.1, 0.0]]), implied, 100), 2)
    2.22
    """
    weighed = np.linalg.solve(implied, residuals)
    return 0.5 * n * float((weighed * weighed.T).sum())


def row_errors(sample: Sample, check: Check = never, seed: int = 0) -> RowErrors | None:
    """Of replicates of the rows; None where there are no rows, or no time.

    Rows are drawn from an order that follows from their values: a file that is sorted otherwise gives the same ones.

    >>> rows = np.random.default_rng(0).normal(size=(500, 4))
    >>> [bool(factor < 1.2) for factor in row_errors(Sample.from_rows(rows)).factors(np.eye(4))]
    [True, True]
    """
    if not sample.has_rows or sample.groups:
        return None
    n_all = sample.n_rows or 0
    rng, p, n_rows = np.random.default_rng(seed), len(sample.names), min(n_all, BUDGET.most_rows_drawn)
    n_pairs = p * (p - 1) // 2
    n = min(max(BUDGET.pairs_in_replicates // n_pairs, BUDGET.least_row_replicates), BUDGET.most_row_replicates)
    errors, worths = [], []
    try:
        # Made in the same way: how missing values were treated is not known here.
        whole = sample.take(np.arange(n_all)).corr if sample.share_missing else sample.corr
        for _ in range(n):
            check()
            try:
                drawn = sample.take(sample.order_of_rows[rng.integers(n_all, size=n_rows)])
            except DataError:  # a rare category was not drawn, and the variable never changes
                continue
            errors.append(drawn.corr - whole)
            worths.append(drawn.n)
    except Stopped:
        return None
    return RowErrors(np.array(errors), np.array(worths)) if len(errors) >= BUDGET.least_row_replicates else None


class MisfitTest:
    """Compares models of a sample with what chi-square would be if they were right."""

    def __init__(self, sample: Sample, check: Check = never, seed: int = 0) -> None:
        self.sample, self._check, self._seed = sample, check, seed
        self._errors: RowErrors | None = None
        self._are_drawn = False

    def of(self, chi2: float, df: int, implied: Floats) -> Verdict:
        """On a model with these correlations. Rows are drawn, once, where chi-square would be too large without."""
        if df <= 0:
            return Verdict(1.0, 0.0)
        n = self.sample.n
        corrected = mean_factor(len(implied), n) * chi2
        plain = Verdict(p_value(corrected, df), rmsea(corrected, df, n))
        if plain.p >= BUDGET.doubtful or plain.is_negligible or not self.sample.has_rows:
            return plain
        other = browne(self.sample.corr - implied, implied, n)
        if other > BUDGET.largest_expected * df:
            return plain
        if not self._are_drawn:
            self._errors, self._are_drawn = row_errors(self.sample, self._check, self._seed), True
        if self._errors is None:
            return plain
        first, second = self._errors.factors(implied)
        if first > BUDGET.singular * second:
            return Verdict(1.0, plain.rmsea)  # neither can be trusted
        least = min(corrected, chi2 / first, other / second)
        return Verdict(p_value(least, df), rmsea(least, df, n))

    def of_fit(self, fit: Fit) -> Verdict:
        """On a fitted model."""
        unit = np.sqrt(np.diag(fit.implied_cov))
        return self.of(fit.chi2, fit.df, fit.implied_cov / np.outer(unit, unit))


def mean_factor(n_observed: int, n_samples: float) -> float:
    """By what chi-square of a model with few parameters has to be multiplied to have its degrees of freedom as a mean.

    Chi-square grows with the number of variables where there are not many more rows: with 1,000 variables and 2,000
    rows a true model has 615,000 on 500,500 degrees of freedom. Of a model without free parameters the mean is known
    exactly, from that of the log determinant of a Wishart matrix; with up to 500 variables and 2,000 rows Bartlett's
    factor ``1 - (2p + 11) / 6N`` is nearly the same, with 1,000 it is short by ten standard deviations.

    >>> round(mean_factor(300, 2000), 3), round(mean_factor(1000, 2000), 3)
    (0.948, 0.814)
    """
    left = n_samples - 1.0 - np.arange(n_observed)
    if left[-1] <= 0.0:
        return bartlett_factor(n_observed, n_samples, 0)
    log_det = digamma(0.5 * left).sum() + n_observed * math.log(2.0 / n_samples)
    mean = -n_observed - n_samples * log_det  # the trace is short of n_observed by n_observed / N
    return float(n_observed * (n_observed + 1) / 2 / mean)


def bartlett_factor(n_observed: int, n_samples: float, n_factors: int) -> float:
    """By what chi-square of factors without restrictions is multiplied where there are not many more rows than
    variables (Lawley and Maxwell 1971).

    >>> round(bartlett_factor(20, 2000, 4), 3), round(bartlett_factor(1000, 2000, 333), 3)
    (0.994, 0.721)
    """
    return max(1.0 - (2 * n_observed + 11 + 4 * n_factors) / (6 * n_samples), 0.0)
