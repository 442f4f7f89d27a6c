"""Fit indices: plain functions of numbers, with lavaan's conventions.

No input is checked here: just compute. ``chi2`` is N times the discrepancy, ``n`` the number of samples.
RMSEA divides by N as lavaan does; the formula printed in the LGES paper divides by N - 1.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtr, chdtrc, chndtr, ndtri  # the bare functions: scipy.stats takes a millisecond a call

from unmeasured.arrays import Floats

# A chi-square beyond this has a noncentral distribution that is Gaussian to five digits.
_LARGE = 1e6


def p_value(chi2: float, df: int) -> float:
    """Probability of a larger chi-square if the model holds; missing without degrees of freedom."""
    return float(chdtrc(df, chi2)) if df > 0 else math.nan


def rmsea(chi2: float, df: int, n: float) -> float:
    """Root mean square error of approximation.

    >>> round(rmsea(58.518, 24, 202), 4)
    0.0844
    """
    if df <= 0:
        return 0.0
    return math.sqrt(max(chi2 - df, 0.0) / (df * n))


def rmsea_interval(chi2: float, df: int, n: float, confidence: float = 0.90) -> tuple[float, float]:
    """Confidence interval of RMSEA from the noncentral chi-square distribution.

    >>> [round(end, 4) for end in rmsea_interval(58.518, 24, 202)]
    [0.0571, 0.1121]
    """
    if df <= 0:
        return 0.0, 0.0
    if not math.isfinite(chi2):
        return math.nan, math.nan
    tail = (1.0 - confidence) / 2.0
    return tuple(  # type: ignore[return-value]
        math.sqrt(_noncentrality(chi2, df, probability) / (df * n)) for probability in (1.0 - tail, tail)
    )


def _noncentrality(chi2: float, df: int, probability: float) -> float:
    """The noncentrality under which ``chi2`` is the quantile of ``probability``; 0 where none is."""

    def excess(noncentrality: float) -> float:
        return float(chndtr(chi2, df, noncentrality)) - probability

    if chdtr(df, max(chi2, 0.0)) < probability:
        return 0.0
    if chi2 > _LARGE:
        # Here the distribution is Gaussian, and the series behind it does not end: chi2 = df + l + z sqrt(2 df + 4 l).
        z = float(ndtri(probability))
        root = math.sqrt(2.0 * z * z + 2.0 * chi2 - df) - math.sqrt(2.0) * z
        return max((root * root - df) / 2.0, 0.0)
    # A noncentral chi-square has mean df + lambda and variance 2 (df + 2 lambda): ten deviations are plenty.
    top = max(chi2, df) + 10.0 * math.sqrt(2.0 * (df + 2.0 * chi2)) + 10.0
    return float(brentq(excess, 0.0, top, xtol=1e-9))


def cfi(chi2: float, df: int, baseline_chi2: float, baseline_df: int) -> float:
    """Comparative fit index."""
    misfit = max(chi2 - df, 0.0)
    baseline = max(baseline_chi2 - baseline_df, misfit)
    return 1.0 - misfit / baseline if baseline > 0 else 1.0


def tli(chi2: float, df: int, baseline_chi2: float, baseline_df: int) -> float:
    """Tucker-Lewis index; 1 without degrees of freedom, of the model or of the baseline, as lavaan has it."""
    if df <= 0 or baseline_df <= 0:
        return 1.0
    baseline = baseline_chi2 / baseline_df
    return (baseline - chi2 / df) / (baseline - 1.0)


def srmr(S: Floats, Sigma: Floats) -> float:
    """Standardised root mean square residual, the diagonal included (Bentler's form)."""
    sd = np.sqrt(np.diag(S))
    residual = (S - Sigma) / np.outer(sd, sd)
    return float(np.sqrt(np.mean(residual[np.tril_indices(len(S))] ** 2)))


def log_likelihood(discrepancy: float, log_det_S: float, n_variables: int, n: float) -> float:
    """Total Gaussian log-likelihood, its constant included.

    ``discrepancy`` is ``log det Sigma + tr(Sigma^-1 S) - log det S - n_variables``.
    """
    return -0.5 * n * (n_variables * (1.0 + math.log(2.0 * math.pi)) + log_det_S + discrepancy)


def srmr_with_means(mean: Floats, S: Floats, mu: Floats, Sigma: Floats) -> float:
    """As :func:`srmr`, with the residuals of the means in standard deviations."""
    sd = np.sqrt(np.diag(S))
    residual = ((S - Sigma) / np.outer(sd, sd))[np.tril_indices(len(S))]
    return float(np.sqrt((np.sum(residual**2) + np.sum(((mean - mu) / sd) ** 2)) / (len(residual) + len(sd))))
