"""Influences against brute force: how correlations estimated pair by pair vary over samples of one population."""

from __future__ import annotations

import numpy as np
import pandas as pd

import unmeasured as um
from unmeasured.models.pairs import Influences

N, REPEATS = 500, 300
# Two ordinal items, a continuous variable, and two covariates, one of them binary.
NAMES = ("five", "two", "free", "age", "treated")


def drawn(seed: int) -> um.Sample:
    rng = np.random.default_rng(seed)
    age, treated = rng.normal(size=N), rng.integers(0, 2, N).astype(float)
    f = 0.4 * age + 0.5 * treated + rng.normal(size=N)
    z = 0.7 * f[:, None] + rng.normal(size=(N, 3))
    columns = [np.digitize(z[:, 0], [-1.0, 0.0, 0.6, 1.5]), (z[:, 1] > 0.3), z[:, 2]]
    items = np.column_stack(columns).astype(float)
    items[rng.random(items.shape) < 0.25] = np.nan
    rows = pd.DataFrame(np.column_stack([items, age, treated]), columns=list(NAMES))
    return um.as_sample(rows, cor="auto", covariates=["age", "treated"])


def test_the_covariance_of_all_kinds_of_correlations_is_that_over_samples() -> None:
    """Polychoric (here of one pair), polyserial, Pearson and probit correlations, a quarter of the values missing."""
    i, j = np.tril_indices(len(NAMES), -1)
    found, claimed = [], []
    for seed in range(REPEATS):
        sample = drawn(seed)
        assert sample.kinds[:3] == ("ordinal", "ordinal", "continuous")
        found.append(sample.corr[i, j])
        ordinal = np.array([kind == "ordinal" for kind in sample.kinds])
        given = np.array([x in sample.covariates for x in NAMES])
        on = Influences.of(NAMES, sample.rows, sample.corr, ordinal, given).on_correlations
        assert np.abs(on.sum(axis=0)).max() < 0.02  # estimates are where the rows cancel out
        claimed.append(on.T @ on)
    truth, mean = np.cov(np.array(found).T), np.mean(claimed, axis=0)
    # Standard errors agree as far as 300 samples tell (their relative error is 1 in sqrt(2 * 300), .04).
    assert np.abs(np.sqrt(np.diag(mean) / np.diag(truth)) - 1.0).max() < 0.12
    # And so do their correlations (error .06 at most).
    unit, own = np.sqrt(np.diag(truth)), np.sqrt(np.diag(mean))
    assert np.abs(truth / np.outer(unit, unit) - mean / np.outer(own, own)).max() < 0.2
