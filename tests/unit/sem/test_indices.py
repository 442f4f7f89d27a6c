"""Fit indices at the ends of their range, against lavaan 0.6-14 under R 4.2.2 (19 November 2026, calls below)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import unmeasured as um

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
