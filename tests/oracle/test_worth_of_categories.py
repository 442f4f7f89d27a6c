"""The worth of categories: with it the chi-square of a true model has the mean it should have."""

from __future__ import annotations

import numpy as np
import pytest

import unmeasured as um

MODEL = "f =~ x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8"


@pytest.mark.parametrize(
    ("cuts", "loading", "inflated"),
    [
        ([-1.2, -0.4, 0.4, 1.2], 0.8, 1.25),
        ([0.2, 0.8, 1.3, 1.8], 0.5, 1.6),
        ([0.2, 0.8, 1.3, 1.8], 0.8, 1.9),
        ([1.0], 0.5, 4.5),
    ],
)
def test_chi_square_of_a_true_model(cuts: list[float], loading: float, inflated: float) -> None:
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        factor = rng.normal(size=(1000, 1))
        rows = loading * factor + np.sqrt(1.0 - loading**2) * rng.normal(size=(1000, 8))
        sample = um.as_sample(np.digitize(rows, cuts), cor="auto")
        chi2 = um.fit(MODEL, sample).chi2 / 20
        ratios.append((chi2, chi2 / sample.n * 1000))
    worth, rows_counted = np.mean(ratios, axis=0)
    assert worth == pytest.approx(1.0, abs=0.2)
    assert rows_counted > inflated
