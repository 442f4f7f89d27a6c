"""Fit indices at the ends of their range, against lavaan 0.6-14 under R 4.2.2 (19 November 2026, calls below)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ncx2, norm

import unmeasured as um
from unmeasured.models.indices import rmsea, rmsea_interval

WRONG = "f =~ 1*a + -1*b + 1*c\nf ~~ 0.6*f"
WEAK = "f =~ 0.1*a + 0.1*b + 0.1*c + 0.1*d"


def matrix(*below: float) -> pd.DataFrame:
    """Correlations from their lower triangle, row by row."""
    p = int(np.sqrt(2 * len(below))) + 1
    R = np.eye(p)
    R[np.tril_indices(p, -1)] = below
    names = list("abcd"[:p])
    return pd.DataFrame(R + np.tril(R, -1).T, names, names)


def test_a_model_worse_than_independence_has_a_cfi_of_zero() -> None:
    """One loading is fixed to the wrong sign::

    lavaan("f =~ 1*a + -1*b + 1*c; f ~~ 0.6*f; a ~~ a; b ~~ b; c ~~ c", sample.cov = S, sample.nobs = 200)
    """
    fit = um.fit(WRONG, cov=matrix(0.5, 0.4, 0.3), n_samples=200)
    assert (fit.chi2, fit.baseline_chi2) == pytest.approx((187.110, 95.607), abs=5e-4)
    assert (fit.cfi, fit.tli, fit.rmsea, fit.srmr) == pytest.approx((0.0, -0.988, 0.554, 0.777), abs=5e-4)


def test_where_independence_fits_as_well_the_cfi_is_one() -> None:
    """Both chi-squares are below their degrees of freedom::

    cfa("f =~ 0.1*a + 0.1*b + 0.1*c + 0.1*d", sample.cov = S, sample.nobs = 100, std.lv = TRUE)
    """
    fit = um.fit(WEAK, cov=matrix(0.01, 0.02, 0.01, 0.01, 0.02, 0.01), n_samples=100)
    assert (fit.chi2, fit.df, fit.baseline_chi2) == pytest.approx((0.020, 6, 0.118), abs=5e-4)
    assert (fit.cfi, fit.tli, fit.rmsea) == pytest.approx((1.0, -0.017, 0.0), abs=5e-4)


def test_without_degrees_of_freedom_indices_are_those_of_a_perfect_fit() -> None:
    """``cfa("f =~ a + b + c", sample.cov = S, sample.nobs = 200, std.lv = TRUE)``; and one variable in two groups::

    sem("x1 ~~ c(v, v)*x1", HolzingerSwineford1939, group = "school", meanstructure = TRUE)

    where the baseline has no degrees of freedom and lavaan a TLI of 1.
    """
    fit = um.fit("f =~ a + b + c", cov=matrix(0.5, 0.4, 0.3), n_samples=200)
    assert (fit.df, fit.baseline_df) == (0, 3)
    assert (fit.chi2, fit.cfi, fit.tli, fit.rmsea, fit.srmr) == pytest.approx((0, 1, 1, 0, 0), abs=1e-6)
    rows = pd.DataFrame({"a": np.random.default_rng(0).normal(size=100), "school": ["East", "West"] * 50})
    one = um.fit("a ~~ a", rows, groups="school", equal=["residuals"])
    assert (one.df, one.baseline_df, one.tli) == (1, 0, 1.0)


@pytest.mark.parametrize(("chi2", "df"), [(58.5, 24), (1.1e6, 100), (1e12, 50)])
def test_ends_of_the_interval_are_those_of_the_noncentral_distribution(chi2: float, df: int) -> None:
    """SciPy's; beyond what it can do the distribution is normal, with mean df + l and variance 2 (df + 2 l)."""
    n = 500
    for end, p in zip(rmsea_interval(chi2, df, n), (0.95, 0.05), strict=True):
        noncentrality = end**2 * df * n
        z = (chi2 - df - noncentrality) / np.sqrt(2 * (df + 2 * noncentrality))
        found = ncx2.cdf(chi2, df, noncentrality) if chi2 < 1e10 else norm.cdf(z)
        assert found == pytest.approx(p, abs=2e-3)
    low, high = rmsea_interval(chi2, df, n)
    assert low < rmsea(chi2, df, n) < high
