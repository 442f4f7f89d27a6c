"""From rows to a fit with robust statistics: which estimator takes which path.

MLM, MLR on complete rows     the estimates of maximum likelihood, corrected tests and standard errors
MLR with missing values       full-information maximum likelihood with means (:mod:`unmeasured.models.multigroup`)
WLSMV                         polychoric correlations, weighted least squares (:mod:`unmeasured.models.wls`)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import get_args

import numpy as np
import pandas as pd
from scipy.special import ndtr

from unmeasured.arrays import Bools, Floats
from unmeasured.data.sample import Sample
from unmeasured.errors import DataError, ModelError, listing
from unmeasured.graphs import CPDAG, DAG
from unmeasured.kernels import likelihood as kernels
from unmeasured.models import indices
from unmeasured.models.delta import NO_INFORMATION, symmetric_root
from unmeasured.models.fit import Count, Estimator, Fit, fit_many
from unmeasured.models.full import fitted_to_rows
from unmeasured.models.joint import Joint
from unmeasured.models.likelihood import Observations
from unmeasured.models.local_fit import Residual
from unmeasured.models.measures import Robust
from unmeasured.models.moments import Structure
from unmeasured.models.pairs import Influences, robust_by_pairs
from unmeasured.models.parameters import Model
from unmeasured.models.robust import Fitted, satorra_bentler, steady_test, with_saturated_means, yuan_bentler
from unmeasured.models.signs import with_signs
from unmeasured.models.wls import (
    CorrelationStructure,
    Polychorics,
    fit_correlations,
    robust_wls,
)

# Beyond this p-value of Mardia's kurtosis rows are not taken as normal.
_NOT_NORMAL = 0.001
# Rows that statistics reported after a search are made of, at most: each has a number for every pair of variables. With
# so many, standard errors are known to 1%.
_MOST_ROWS = 20_000
# The covariance of correlations estimated pair by pair has the square of their number of entries.
_MOST_BY_PAIRS = 60


def check_estimator(estimator: object) -> None:
    """Refuse what is no estimator, with the list of those there are."""
    if estimator not in get_args(Estimator):
        raise ModelError(f"estimator must be one of {listing(get_args(Estimator))}; got {estimator!r}.")


def with_robust(fit: Fit, estimator: str) -> Fit:
    """The same estimates with the tests and standard errors of MLM or MLR; the rows must be complete."""
    rows = continuous_rows(fit.sample, estimator)
    missing = int(np.isnan(rows).any(axis=1).sum())
    if missing:
        raise DataError(
            f"estimator={estimator!r} needs complete rows, and values are missing in {missing} of {len(rows)}. Use "
            "estimator='MLR', which takes them as they are, or missing='listwise'."
        )
    if not math.isfinite(fit.chi2):
        return fit  # the fit ended where there is no likelihood, and says so
    return replace(fit, robust=_robust_ml(fit, rows, estimator))


def _robust_ml(fit: Fit, rows: Floats, estimator: str) -> Robust:
    p, names = len(fit.estimates), fit.sample.names
    structure = Structure.of_covariances(fit.problem.pattern)
    moments = Observations.of_moments(names, np.zeros(len(names)), fit.sample.cov, fit.sample.n)
    joint, theta = with_saturated_means(Joint((structure,), (moments,), p), fit.estimates, [rows])
    fitted = Fitted(joint, theta, fit.chi2, fit.df, fit.model.covariates, joint.size - p)
    robust = satorra_bentler(fitted) if estimator == "MLM" else yuan_bentler(fitted)
    return replace(robust, acov=robust.acov[:p, :p])


def continuous_rows(sample: Sample, estimator: str) -> Floats:
    """The rows behind a sample, for estimators that take them as continuous."""
    if sample.rows is None:
        raise DataError(
            f"estimator={estimator!r} needs rows: a covariance matrix does not say how far the data are from normal. "
            "Pass the rows, or leave estimator out."
        )
    other = [x for x, kind in zip(sample.names, sample.kinds, strict=True) if kind != "continuous"]
    if other:
        raise DataError(
            f"estimator={estimator!r} takes variables as continuous, but cor= takes {listing(other)} as ordinal or as "
            "ranks. Use cor='pearson', or estimator='WLSMV' for ordinal items."
        )
    return sample.rows


def reported(fit: Fit) -> Fit:
    """A fit with robust statistics where the rows behind it call for them, and with the reason in words.

    Continuous variables that are not normal get those of MLR, ordinal items the scaled and shifted test and standard
    errors from the covariance of their polychoric correlations. The estimates stay what they are. Where a matrix was
    given or values are missing, and of more ordinal items than 60, the fit comes back as it is.
    """
    sample = fit.sample
    if fit.robust is not None or not sample.has_rows or fit.df <= 0 or not math.isfinite(fit.chi2):
        return fit
    n, p = sample.n_rows or 0, len(sample.names)
    if n <= max(2 * p, fit.model.n_free):
        return fit
    if sample.by_pairs:
        return _reported_by_pairs(fit) if p <= _MOST_BY_PAIRS else fit
    if fit.full is not None:
        return _reported_incomplete(fit)
    if sample.share_missing:
        return fit
    rows = _as_used(sample)
    relative, pvalue = Observations.of_rows(sample.names, rows).kurtosis(fit.covariates)
    if not pvalue < _NOT_NORMAL:
        return fit
    robust = _robust_ml(fit, rows, "MLR")
    if math.isnan(robust.test.factor):
        return fit
    if len(rows) < n:
        base, share = replace(robust.baseline_misfit, chi2=fit.baseline_chi2), len(rows) / n
        baseline = replace(robust.baseline, chi2=fit.baseline_chi2 / robust.baseline.factor)
        robust = replace(robust, acov=robust.acov * share, baseline=baseline, baseline_misfit=base)
    reason = (
        f"The rows are not normal (Mardia's kurtosis is {relative:.2f} times that of a normal distribution, "
        f"p < .001): standard errors and the tests called robust are corrected for it (Yuan-Bentler, scaling factor "
        f"{robust.test.factor:.2f}{_of_some(len(rows), n)}). The search itself is not."
    )
    return replace(fit, robust=replace(robust, reason=reason))


def tested_together(fits: Iterable[Fit]) -> tuple[float, int, float]:
    """Chi-square, degrees of freedom and p-value of one structure in several groups of people.

    Rows of different groups are independent: the sum of what is reported of each, corrected where its rows ask for it.
    """
    parts = [reported(fit) for fit in fits]
    chi2 = sum(fit.chi2 if fit.robust is None else fit.chi2_scaled for fit in parts)
    df = sum(fit.df for fit in parts)
    return chi2, df, indices.p_value(chi2, df)


def _as_used(sample: Sample) -> Floats:
    """The rows that moments were made of, or some of very many: scores of ranks where a sample took these."""
    n = sample.n_rows or 0
    if "scores" not in sample.kinds:
        return sample.some_rows(_MOST_ROWS)
    rows = sample.analysed_rows()
    return rows if n <= _MOST_ROWS else rows[np.linspace(0, n - 1, _MOST_ROWS).astype(np.int64)]


def _reported_incomplete(fit: Fit) -> Fit:
    """The same for rows with missing values, whose likelihood was maximised."""
    fitted = fitted_to_rows(fit)
    relative, pvalue = fitted.joint.observations[0].kurtosis(fit.covariates)
    if not pvalue < _NOT_NORMAL:
        return fit
    robust = replace(yuan_bentler(fitted), test=steady_test(fitted))
    reason = (
        f"The rows are not normal (Mardia's kurtosis is {relative:.2f} times that of a normal distribution, "
        f"p < .001): standard errors and the tests called robust are corrected for it (Yuan-Bentler with the "
        f"information that the model expects, scaling factor {robust.test.factor:.2f}). The search itself is not."
    )
    return replace(fit, robust=replace(robust, reason=reason))


def _reported_by_pairs(fit: Fit) -> Fit:
    sample, n = fit.sample, fit.sample.n_rows or 0
    rows = _as_used(sample)
    ordinal, given = (
        np.array(marks, dtype=bool)
        for marks in ([k == "ordinal" for k in sample.kinds], [x in sample.covariates for x in sample.names])
    )
    influences = Influences.of(sample.names, rows, sample.corr, ordinal, given)
    robust = robust_by_pairs(fit, influences, n)
    if ordinal.all() and CorrelationStructure.suits(fit.problem.pattern):
        # Maximum likelihood weighs by the inverse of the correlations, which of few answers is far from the truth.
        data = Polychorics.of_influences(sample.names, influences, n)
        structure = CorrelationStructure.of(fit.problem.pattern)
        solution = fit_correlations(structure, data, fit.solution.x)
        if solution.converged:
            tested = robust_wls(structure, data, solution.theta, (n - 1.0) * solution.value, fit.df)
            robust = replace(robust, test=tested.test, baseline=tested.baseline)
    what = "items are ordinal" if ordinal.all() else "correlations are of several kinds" if ordinal.any() else ""
    start = f"The {what}" if what else "Each correlation is from the rows that show both variables"
    pairs = ", each correlation from the rows that show both items" if what and sample.share_missing else ""
    reason = (
        f"{start}: standard errors and the tests called robust come from the covariance of the correlations{pairs} "
        f"(scaled and shifted, N = {n}{_of_some(len(rows), n)}). The search itself is not corrected."
    )
    return replace(fit, robust=replace(robust, reason=reason))


def _of_some(n_used: int, n_rows: int) -> str:
    return f", from {n_used} of the rows" if n_used < n_rows else ""


# Ordinal items ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class OrdinalFit(Fit):
    """A model of ordinal items fitted by weighted least squares (WLSMV); chi-square is that of least squares.

    It has no likelihood: ``loglik``, ``aic`` and ``bic`` are missing.
    """

    data: Polychorics | None = None
    structure: CorrelationStructure | None = None

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes on this fit."""
        share = self.sample.share_missing
        if not share:
            return super().notes
        how = "each correlation is from the rows that show both items (pairwise), and so is their covariance"
        return (*super().notes, f"{100.0 * share:.1f}% of the values are missing: {how}.")

    @property
    def _data(self) -> Polychorics:
        assert self.data is not None
        return self.data

    @property
    def n_samples(self) -> float:
        """Number of rows, less 1: least squares counts so, as in lavaan."""
        return self._data.n - 1.0

    @property
    def _n_shown(self) -> float:
        return float(self._data.n)

    @cached_property
    def estimates(self) -> Floats:
        """(p,) the free parameters, in the order of the model's free rows."""
        return self.solution.x * self.problem.pattern.unit(self.problem.scale)

    @cached_property
    def chi2(self) -> float:
        """Weighted squares of the residual correlations, times N - 1; see ``chi2_scaled`` for a test."""
        return self.n_samples * self.solution.discrepancy

    @property
    def baseline_chi2(self) -> float:
        """The same for the model in which all items are independent."""
        return self.n_samples * float((self._data.weights * self._data.r**2).sum())

    @property
    def baseline_df(self) -> int:
        """Its degrees of freedom."""
        return len(self._data.r)

    @property
    def loglik(self) -> float:
        """Missing: weighted least squares maximises no likelihood."""
        return math.nan

    @cached_property
    def srmr(self) -> float:
        """Root mean square residual correlation, the diagonal counted as lavaan does."""
        return indices.srmr(self._data.corr, self.implied_cov)

    @cached_property
    def _uncertainty(self) -> tuple[Floats, Bools]:
        assert self.structure is not None
        assert self.robust is not None
        kept = ~self.structure.is_residual
        errors, identified = np.zeros(len(kept)), np.ones(len(kept), dtype=bool)
        J = self.structure.jacobian(self.structure.at(self.solution.x[kept])[1])
        identified[kept] = _identified(J.T @ (self._data.weights[:, None] * J))
        errors[kept] = np.sqrt(np.maximum(np.diag(self.robust.acov), 0.0))
        return np.where(identified, errors, np.nan), identified

    def _own_root(self) -> tuple[Floats, Floats]:
        assert self.structure is not None
        assert self.robust is not None
        kept = ~self.structure.is_residual
        follow = self.structure.derivatives(self.structure.at(self.solution.x[kept])[1])
        null = follow[:, ~self._uncertainty[1][kept]]
        return follow @ symmetric_root(self.robust.acov), null

    def modification_indices(self, least: float = 0.0) -> pd.DataFrame:
        """Refused: they are for maximum likelihood."""
        raise ModelError("Modification indices are for maximum likelihood; estimator='WLSMV' has none here.")

    def residuals(self, kind: Residual = "correlation") -> pd.DataFrame:
        """Observed less implied correlations; standard errors are for maximum likelihood only."""
        if kind == "standardised":
            raise ModelError("Standardised residuals are for maximum likelihood. Use residuals('correlation').")
        return super().residuals(kind)

    @property
    def thresholds(self) -> pd.DataFrame:
        """The thresholds at which items are cut, with standard errors: ``lhs op rhs est se z pvalue std``."""
        data = self._data
        est = np.concatenate(data.thresholds)
        se = np.sqrt(np.diag(data.threshold_acov))
        names = [
            (x, f"t{k}") for x, cuts in zip(data.names, data.thresholds, strict=True) for k in range(1, len(cuts) + 1)
        ]
        z = est / se
        columns = {"lhs": [x for x, _ in names], "op": "|", "rhs": [t for _, t in names]}
        return pd.DataFrame({**columns, "est": est, "se": se, "z": z, "pvalue": 2.0 * ndtr(-np.abs(z)), "std": est})

    @cached_property
    def parameters(self) -> pd.DataFrame:
        """One row per parameter as in :attr:`Fit.parameters`, thresholds (``|``) last.

        Residual variances are what the model leaves of 1 and have no standard error of their own.
        """
        return pd.concat([super()._parameters(), self.thresholds], ignore_index=True)


def _identified(information: Floats) -> Bools:
    """Which parameters the information determines."""
    unit = 1.0 / np.sqrt(np.maximum(np.diag(information), 1e-300))
    value, vector = np.linalg.eigh(information * np.outer(unit, unit))
    null = value < NO_INFORMATION * max(value[-1], 1.0)
    return np.asarray(~(np.abs(vector[:, null]) > 1e-4).any(axis=1))


def fit_ordinal(model: DAG | CPDAG | Model, sample: Sample, count: Count) -> OrdinalFit:
    """WLSMV: all variables of the model are ordinal items; with missing values each pair has rows of its own."""
    start = with_signs(fit_many([model], sample)[0])
    if start.sample.rows is None or set(start.sample.kinds) != {"ordinal"}:
        raise DataError("estimator='WLSMV' needs rows of ordinal items; pass them with cor='polychoric'.")
    structure = CorrelationStructure.of(start.problem.pattern)
    data = Polychorics.of(start.sample.names, start.sample.rows, start.sample.corr)
    solution = fit_correlations(structure, data, start.solution.x)
    x, _ = structure.at(solution.theta)
    lower = np.full(len(x), -math.inf)
    lower[structure.is_residual] = 0.0
    lower[~structure.is_residual] = solution.lower
    end = kernels.CONVERGED if solution.converged else kernels.STEP_LIMIT
    fitted = OrdinalFit(
        start.graph,
        start.sample,
        start.problem,
        replace(
            start.solution,
            x=x,
            discrepancy=solution.value,
            end=end,
            steps=solution.steps,
            predicted_gain=solution.predicted,
            history=np.array([solution.value]),
            lower=lower,
            n_starts=1,
            zero_variance_latents=(),
        ),
        count,
        data=data,
        structure=structure,
    )
    return replace(fitted, robust=robust_wls(structure, data, solution.theta, fitted.chi2, fitted.df))
