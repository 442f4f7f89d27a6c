"""Cross-validation of models: the likelihood of rows that had no part in the estimates.

Rows are split into folds; each model is fitted to all but one of them and judged by the Gaussian log-likelihood of
the rows left out, with the means and the implied covariance of the others. Unlike BIC it charges for nothing but what
a parameter costs in prediction. Rows of one model and another are the same, so their difference has a standard error
that is smaller than that of either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from unmeasured.arrays import Floats
from unmeasured.data.sample import Sample
from unmeasured.errors import DataError, UnmeasuredError
from unmeasured.models.estimate import fit_beside
from unmeasured.models.fit import Fit
from unmeasured.models.multigroup import MeanFit

_LOG_TAU = math.log(2.0 * math.pi)


def held_out(fits: Mapping[str, Fit], sample: Sample, folds: int, rng: int | np.random.Generator = 0) -> pd.DataFrame:
    """One row per model: ``loglik se difference difference_se``, the best first, all per row.

    ``difference`` is to the best model, never above zero.
    """
    _check(sample, folds)
    if len({frozenset(fit.sample.names) for fit in fits.values()}) > 1:
        raise UnmeasuredError(
            "Models over different variables have no common held-out rows. Compare those over the same."
        )
    own = sample.select(next(iter(fits.values())).sample.names)
    rows = np.asarray(own.rows)
    try:
        order = np.random.default_rng(rng).permutation(own.order_of_rows)
    except (TypeError, ValueError):
        raise UnmeasuredError(f"rng is a whole number from 0 or a numpy Generator; got {rng!r}.") from None
    values = {name: np.empty(len(rows)) for name in fits}
    for fold in range(folds):
        out = order[fold::folds]
        kept = np.setdiff1d(order, out)
        frame = pd.DataFrame(rows[kept], columns=list(own.names))
        training = Sample.from_rows(frame)
        for name, fit in fits.items():
            again = fit_beside(fit.graph, training, has_means=fit.has_means and fit.full is None)
            values[name][out] = _log_likelihoods(rows[out], again, own.names)
    mean = {name: float(value.mean()) for name, value in values.items()}
    best = max(mean, key=lambda name: mean[name])
    n = len(rows)
    table = pd.DataFrame(
        {
            "loglik": mean,
            "se": {name: float(value.std(ddof=1)) / math.sqrt(n) for name, value in values.items()},
            "difference": {name: mean[name] - mean[best] for name in values},
            "difference_se": {
                name: float((value - values[best]).std(ddof=1)) / math.sqrt(n) for name, value in values.items()
            },
        }
    )
    return table.sort_values("loglik", ascending=False)


def _check(sample: Sample, folds: int) -> None:
    if not isinstance(folds, int) or isinstance(folds, bool) or folds < 2:
        raise UnmeasuredError(f"folds is a whole number from 2; got {folds!r}.")
    if sample.rows is None:
        raise DataError("Cross-validation needs rows; a matrix cannot be split. Give the rows, or leave folds out.")
    if set(sample.kinds) - {"continuous"}:
        raise DataError(
            "Held-out likelihood is that of Gaussian rows, and these are taken as ordinal or as ranks. Compare with "
            "cor='pearson', or leave folds out."
        )
    n, k = sample.rows.shape
    if folds > n:
        raise DataError(f"folds is at most the number of rows, {n}; got {folds:,}.")
    if n - math.ceil(n / folds) <= k + 1:
        raise DataError(f"{n} rows are too few for {folds} folds of {k} variables.")


def _log_likelihoods(rows: Floats, fit: Fit, names: tuple[str, ...]) -> Floats:
    """(N,) Gaussian log-likelihood of what each row shows."""
    order = [fit.sample.names.index(name) for name in names]
    cov = fit.implied_cov[np.ix_(order, order)]
    of_fit = fit.sample.mean if fit.full is None else fit.full.mean
    mean: Any = fit.implied_mean if isinstance(fit, MeanFit) else of_fit
    deviations = rows - np.asarray(mean)[order]
    seen = ~np.isnan(deviations)
    value = np.empty(len(rows))
    patterns, which = np.unique(seen, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        at = which.ravel() == k
        if not pattern.any():
            value[at] = 0.0
            continue
        root = np.linalg.cholesky(cov[np.ix_(pattern, pattern)])
        z = np.linalg.solve(root, deviations[np.ix_(at, pattern)].T)
        constant = float(pattern.sum()) * _LOG_TAU + 2.0 * float(np.log(np.diag(root)).sum())
        value[at] = -0.5 * (constant + (z**2).sum(axis=0))
    return value
