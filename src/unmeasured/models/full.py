"""Full information: the likelihood of the rows themselves where values are missing, for models without stated means.

A search works on the moments of highest likelihood (EM) as if they came from complete rows. That is fast, and finds
about the same models; but their chi-square is not that of a test: of 300 rows with 40% of the values missing, it
rejects true models seven times as often as it should (``docs/robust.md``). So a model that is reported is fitted once
more, to the rows, from where it was:

    fit of the moments ──► means are added ──► maximum of the rows' likelihood (joint) ──► estimates, chi-square
                                                                                       ──► observed information

Chi-square compares with the saturated model of the same rows, CFI with the one in which all variables are independent.
As in lavaan (``missing = "fiml"``), standard errors come from the observed information, and AIC and BIC count means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.data.sample import Sample
from unmeasured.errors import Stopped
from unmeasured.kernels import likelihood as kernels
from unmeasured.models import indices
from unmeasured.models.joint import Joint, lower_bounds
from unmeasured.models.likelihood import Observations
from unmeasured.models.moments import Structure
from unmeasured.models.parameters import Pattern
from unmeasured.models.robust import Fitted, independence, likelihood_ratio, pseudo_inverse

if TYPE_CHECKING:
    from unmeasured.models.fit import Fit

# Variables and multiplications, beyond which the moments have to do: the information of n variables has n^4 entries,
# and every pattern of missing values is inverted at every step.
_MOST_VARIABLES, _MOST_WORK = 60, 5e8


@dataclass(frozen=True, eq=False)
class FullInformation:
    """What the rows say of a fitted model beyond its estimates.

    ``acov`` is the covariance of the free parameters where it was read from a file; else it follows from the rows.
    """

    n: float  # rows that show a value
    mean: Floats  # (n,) implied means
    chi2: float
    baseline_chi2: float
    loglik: float
    srmr: float
    acov: Floats | None = None


def calls_for_it(sample: Sample) -> bool:
    """Whether the moments of a sample are those of highest likelihood of rows with missing values (EM)."""
    is_ml = sample.has_rows and not sample.by_pairs and "ordinal" not in sample.kinds
    return is_ml and math.isfinite(sample.n) and bool(sample.share_missing)


def with_full_information(fit: Fit, check: Callable[[], None] | None = None) -> Fit:
    """The fit of a model to the rows themselves, where values are missing; else the fit as it is.

    Where ``check`` raises :class:`~unmeasured.errors.Stopped`, or there are too many variables or rows, the fit comes
    back as it is, too: ``fit.full`` is None then (:data:`NOT_DONE` says what that means).
    """
    sample = fit.sample
    if fit.full is not None or not calls_for_it(sample) or not math.isfinite(fit.solution.discrepancy):
        return fit
    if len(sample.names) > _MOST_VARIABLES:
        return fit
    observations = observations_of(sample)
    if len(observations.seen) * len(sample.names) ** 3 > _MOST_WORK:
        return fit
    is_whole = np.asarray(observations.seen.all(axis=0), dtype=bool)
    if not is_whole[
        [sample.names.index(x) for x in fit.covariates]
    ].all():  # what is missing has a distribution, so that the model is not conditioned on it
        fit = replace(fit, is_joint=True)
    pattern = fit.problem.pattern
    structure = Structure.saturated_means(pattern)
    joint = Joint((structure,), (observations,), structure.n_local)
    lower = lower_bounds(joint.structures, joint.observations, joint.size)
    start = np.concatenate([fit.estimates, intercepts(pattern, fit.F, observations.saturated[0])])
    try:
        found = joint.maximise(start, lower, check)
    except Stopped:
        return fit
    if not math.isfinite(found.value):
        return fit
    (point,) = joint.points(found.theta)
    chi2, n = likelihood_ratio(joint, found.theta), observations.n
    given = fit.covariates
    mean, cov = observations.saturated
    full = FullInformation(
        n,
        point.mu,
        chi2,
        likelihood_ratio((base := independence(joint.observations, given)).joint, base.theta),
        observations.loglik(point.mu, point.Sigma) - _loglik_of(cov, [sample.names.index(x) for x in given], n),
        indices.srmr_with_means(mean, cov, point.mu, point.Sigma),
    )
    unit = pattern.unit(fit.problem.scale)
    p = pattern.n_free
    solution = replace(
        fit.solution,
        x=found.theta[:p] / unit,
        discrepancy=chi2 / n,
        end=kernels.CONVERGED if found.converged else kernels.STEP_LIMIT,
        steps=fit.solution.steps + found.steps,
        predicted_gain=found.predicted,
        history=np.array([chi2 / n]),
        lower=found.lower[:p] / unit,
    )
    return replace(fit, solution=solution, full=full)


NOT_DONE = (
    "Values are missing, and there was no time for full information (or there are too many variables or rows for it): "
    "chi-square, p-value, fit indices and standard errors take the covariance estimated from incomplete rows (EM) as "
    "one of complete rows. They reject true models too often: with 40% missing about seven times as often."
)


def fitted_to_rows(fit: Fit) -> Fitted:
    """The joint problem behind a fit with full information, at its estimates."""
    assert fit.full is not None
    observations = observations_of(fit.sample)
    structure = Structure.saturated_means(fit.problem.pattern)
    joint = Joint((structure,), (observations,), structure.n_local)
    theta = np.concatenate([fit.estimates, intercepts(fit.problem.pattern, fit.F, fit.full.mean)])
    return Fitted(joint, theta, fit.full.chi2, fit.df, fit.covariates)


def covariance_of_estimates(fit: Fit) -> Floats:
    """(p, p) covariance of the free parameters, from the observed information of the rows."""
    fitted = fitted_to_rows(fit)
    acov = pseudo_inverse(fitted.joint.observed(fitted.theta)) / fitted.joint.n
    return acov[: fit.problem.pattern.n_free, : fit.problem.pattern.n_free]


def observations_of(sample: Sample) -> Observations:
    """The rows as the sample takes them, those without any value left out."""
    rows = sample.analysed_rows()
    rows = rows[~np.isnan(rows).all(axis=1)]
    observations = Observations.of_rows(sample.names, rows)
    if not sample.has_unit:
        mean, cov = observations.saturated
        # Scores of ranks have no unit: their correlations are analysed.
        sd = np.sqrt(np.diag(cov))
        return replace(
            Observations.of_rows(sample.names, (rows - mean) / sd),
            known=(np.zeros(len(sd)), cov / np.outer(sd, sd)),
        )
    if not sample.is_part and sample.mean is not None:
        return replace(observations, known=(sample.mean, sample.cov))
    return observations


def intercepts(pattern: Pattern, F: Floats, mean: Floats) -> Floats:
    """(n,) intercepts of the observed variables that give them these means; latents have none. F is in causal order."""
    m, alpha = np.zeros(len(F)), np.zeros(len(F))
    place = {int(node): k for k, node in enumerate(pattern.observed)}
    for node in range(len(F)):
        from_causes = float(F[:, node] @ m)
        m[node] = mean[place[node]] if node in place else from_causes
        alpha[node] = m[node] - from_causes
    return alpha[pattern.observed]


def _loglik_of(cov: Floats, index: list[int], n: float) -> float:
    """That of the saturated model of the covariates, which every model given them adds."""
    if not index:
        return 0.0
    return indices.log_likelihood(0.0, float(np.linalg.slogdet(cov[np.ix_(index, index)])[1]), len(index), n)
