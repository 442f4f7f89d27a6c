"""Tests and standard errors for data that are not normal: Satorra-Bentler (MLM) and Yuan-Bentler (MLR), as lavaan.

With Delta the derivatives of the moments, A their information, B the mean outer product of the rows' scores and Gamma
the covariance of the sample moments (times N), all blocks over groups:

    MLM   acov = E^-1 Delta' A Gamma A Delta E^-1 / N,  E = Delta' A Delta, A expected at the model
          mean of chi2 = tr(A Gamma) - tr(E^-1 Delta' A Gamma A Delta)
    MLR   acov = H^-1 B_0 H^-1 / N,  H the observed information of the parameters, B_0 of their scores
          mean of chi2 = tr(A_1^-1 B_1) - tr(H^-1 B_0),  A_1 observed and B_1 at the saturated moments

The chi-square is divided by that mean over its degrees of freedom. Where a model is conditioned on covariates, Gamma of
MLM is that of the moments given them: what a linear regression on the covariates predicts of each row does not vary
(lavaan's ``fixed.x``). With missing values, chi-square is no longer a
function of the misfit of the moments, so robust RMSEA and CFI are computed from the moments of the saturated model
(:func:`_complete_misfit`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.models.joint import Joint, joined_square
from unmeasured.models.likelihood import Observations
from unmeasured.models.measures import Misfit, Robust, ScaledTest
from unmeasured.models.moments import Structure
from unmeasured.models.parameters import Model, Parameter

CORRECTIONS = {"MLM": "Satorra-Bentler", "MLR": "Yuan-Bentler"}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A joint problem at its optimum, with its test."""

    joint: Joint
    theta: Floats
    chi2: float
    df: int
    covariates: tuple[str, ...] = ()
    n_added: int = 0  # means that :func:`with_saturated_means` added, the last parameters


def pseudo_inverse(H: Floats) -> Floats:
    """The inverse of an information matrix; directions without information are left out."""
    unit = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-300))
    value, vector = np.linalg.eigh(H * np.outer(unit, unit))
    keep = np.abs(value) > 1e-9 * np.abs(value).max(initial=1.0)
    return np.asarray(np.outer(unit, unit) * ((vector[:, keep] / value[keep]) @ vector[:, keep].T))


def with_saturated_means(joint: Joint, theta: Floats, rows: Sequence[Floats]) -> tuple[Joint, Floats]:
    """A problem of covariances as one of the complete rows of each group, with a free mean for every variable.

    Nothing depends on means that are all free: in deviations from them every intercept is zero. The parameters of the
    covariances come first, as they were.
    """
    structures, observations, size = [], [], joint.size
    for s, o, values in zip(joint.structures, joint.observations, rows, strict=True):
        n = len(o.names)
        local = Structure.saturated_means(s.pattern)
        structures.append(replace(local, where=np.concatenate([s.where, np.arange(size, size + n)])))
        observations.append(Observations.of_rows(o.names, values - values.mean(axis=0)))
        size += n
    return Joint(tuple(structures), tuple(observations), size), np.concatenate([theta, np.zeros(size - joint.size)])


def independence(observations: tuple[Observations, ...], covariates: tuple[str, ...] = ()) -> Fitted:
    """The baseline: all variables independent but for covariates among themselves, means free in every group."""
    structures, theta, size = [], [], 0
    for o in observations:
        pairs = list(combinations([x for x in o.names if x in covariates], 2))
        rows = [Parameter("~~", x, y) for x, y in (*((x, x) for x in o.names), *pairs)]
        pattern = Model(o.names, (), tuple(rows)).pattern
        local = Structure.saturated_means(pattern)
        structures.append(
            Structure(local.pattern, local.nodes, local.slots, local.fixed, np.arange(size, size + local.n_local))
        )
        mean, cov = (moments.copy() for moments in o.independent)
        given = [o.names.index(x) for x in o.names if x in covariates]
        if given:
            mean[given], cov[np.ix_(given, given)] = o.saturated_of(given)
        among = [cov[o.names.index(x), o.names.index(y)] for x, y in pairs]
        theta += [np.diag(cov), np.array(among), mean]
        size += local.n_local
    joint = Joint(tuple(structures), observations, size)
    q = len(covariates)
    df = sum((len(o.names) * (len(o.names) - 1) - q * (q - 1)) // 2 for o in observations)
    at = np.concatenate(theta)
    return Fitted(joint, at, likelihood_ratio(joint, at), df, covariates)


def likelihood_ratio(joint: Joint, theta: Floats) -> float:
    """Chi-square against the saturated model."""
    return float(sum(group_ratios(joint, theta)))


def group_ratios(joint: Joint, theta: Floats) -> list[float]:
    """What each group contributes to the chi-square."""
    return [
        max(o.n * (o.value(p.mu, p.Sigma) - o.value(*o.saturated)), 0.0)
        for o, p in zip(joint.observations, joint.points(theta), strict=True)
    ]


def satorra_bentler(model: Fitted) -> Robust:
    """MLM: from complete rows."""
    base = independence(model.joint.observations, model.covariates)
    (mean, acov), (mean_0, _) = _satorra_bentler_mean(model), _satorra_bentler_mean(base)
    return _robust("MLM", acov, model, base, Misfit(model.chi2, mean), Misfit(base.chi2, mean_0))


def _satorra_bentler_mean(fitted: Fitted) -> tuple[float, Floats]:
    """The mean of chi-square over df, and the covariance of the estimates."""
    joint = fitted.joint
    B, B_own, total = np.zeros((joint.size,) * 2), np.zeros((joint.size,) * 2), 0.0
    for w, s, o, p in zip(joint.weights, joint.structures, joint.observations, joint.points(fitted.theta), strict=True):
        predicted = o.predicted(fitted.covariates)
        scores = o.moment_scores(p.Sigma, p.directions, predicted)
        B += w * joined_square(s, scores.T @ scores / o.n, joint.size)
        total += o.fourth_moment_trace(p.Sigma, predicted)
        # Given the covariates their own moments do not vary; in the table of parameters they do.
        own = np.flatnonzero(s.among(fitted.covariates))
        scores = o.moment_scores(p.Sigma, p.directions, np.zeros_like(predicted))[:, own]
        local = np.zeros((s.n_local,) * 2)
        local[np.ix_(own, own)] = scores.T @ scores / o.n
        B_own += w * joined_square(s, local, joint.size)
    inverse = pseudo_inverse(joint.expected(fitted.theta))
    trace = total - float((inverse * B).sum())
    return _over(trace, fitted.df), inverse @ (B + B_own) @ inverse / joint.n


def yuan_bentler(model: Fitted) -> Robust:
    """MLR: from rows, complete or not."""
    base = independence(model.joint.observations, model.covariates)
    saturated = sum(o.saturated_trace() for o in model.joint.observations)
    (mean, acov), (mean_0, _) = _yuan_bentler_mean(model, saturated), _yuan_bentler_mean(base, saturated)
    if all(o.is_complete for o in model.joint.observations):
        misfits = Misfit(model.chi2, mean), Misfit(base.chi2, mean_0)
    else:
        misfits = complete_misfit(model, robust=True), complete_misfit(base, robust=True)
    scaled = ScaledTest(model.chi2 / mean, mean), ScaledTest(base.chi2 / mean_0, mean_0)
    return Robust("MLR", CORRECTIONS["MLR"], acov, *scaled, *misfits)


def steady_test(model: Fitted) -> ScaledTest:
    """The test of :func:`yuan_bentler` with all information as the model expects it.

    Observed information of the saturated moments of few rows, with many of their values missing, is too uncertain to be
    inverted: of 200 rows with heavy tails, 30% missing, the usual factor is 1.11 where 1.36 is right, and 40% of true
    models are rejected at 5% (``docs/robust.md``). Here the factor is the mean of a positive quadratic form of the
    rows' scores, with weights that do not depend on them.
    """
    joint, theta = model.joint, model.theta
    if not model.df:
        return ScaledTest(model.chi2, 1.0)
    trace = -float((pseudo_inverse(joint.expected(theta)) * joint.first_order(theta)).sum())
    for o, p in zip(joint.observations, joint.points(theta), strict=True):
        among, outer = o.expected_information(p.Sigma), o.first_order_information(p.mu, p.Sigma)
        trace += float(np.trace(np.linalg.solve(among, outer)))
    return ScaledTest(model.chi2 * model.df / trace, trace / model.df)


def _yuan_bentler_mean(fitted: Fitted, saturated: float) -> tuple[float, Floats]:
    joint, theta = fitted.joint, fitted.theta
    inverse, B = pseudo_inverse(joint.observed(theta)), joint.first_order(theta)
    # Means that are no part of the model count as one each, as they do where it fits: chi-square, which knows the
    # covariances only, does not depend on them.
    p = joint.size - fitted.n_added
    trace = saturated - float((inverse * B)[:p, :p].sum()) - fitted.n_added
    return _over(trace, fitted.df), inverse @ B @ inverse / joint.n


def _over(trace: float, df: int) -> float:
    """The mean of a chi-square over df; missing if it is negative, as it may be where a variance ran to zero."""
    if not df:
        return 1.0
    return trace / df if trace > 0 else math.nan


def _given(fitted: Fitted, o: Observations) -> tuple[str, ...]:
    """The covariates, unless some of their values are missing: then they are variables of the model."""
    index = [o.names.index(x) for x in fitted.covariates]
    return fitted.covariates if o.seen[:, index].all() else ()


def _robust(estimator: str, acov: Floats, model: Fitted, base: Fitted, misfit: Misfit, misfit_0: Misfit) -> Robust:
    return Robust(
        estimator,
        CORRECTIONS[estimator],
        acov,
        ScaledTest(model.chi2 / misfit.mean, misfit.mean),
        ScaledTest(base.chi2 / misfit_0.mean, misfit_0.mean),
        misfit,
        misfit_0,
    )


def complete_misfit(fitted: Fitted, *, robust: bool) -> Misfit:
    """With missing values: the chi-square of the saturated moments as if they came from complete rows, and its mean.

    The mean is ``tr(W_c W^-1 U Gamma U W^-1)``, with W the observed information of the saturated moments, W_c what
    complete rows would give, ``U = W - W Delta (Delta' W Delta)^-1 Delta' W`` and Gamma their covariance: W^-1 if the
    data are normal, else ``W^-1 B W^-1`` (Zhang and Savalei 2023: corrections V6 and V3). Of a model that is
    conditioned on covariates, their own moments and parameters are left out of the matrices.
    """
    joint, theta = fitted.joint, fitted.theta
    chi2 = 0.0
    W, Wc, B, Delta = [], [], [], []
    own = np.zeros(joint.size, dtype=bool)
    for s, o in zip(joint.structures, joint.observations, strict=True):
        own[s.where[s.among(_given(fitted, o))]] = True
    for w, o, p, D in zip(joint.weights, joint.observations, joint.points(theta), joint.jacobians(theta), strict=True):
        complete = Observations.of_moments(o.names, *o.saturated, o.n)
        chi2 += o.n * (complete.value(p.mu, p.Sigma) - complete.value(*o.saturated))
        root = np.sqrt(w)
        A, outer = o.saturated_information
        kept = np.flatnonzero(~o.moments_among(_given(fitted, o)))
        among = np.ix_(kept, kept)
        W.append(A[among])
        Wc.append(complete.expected_information(o.saturated[1])[among])
        B.append((outer if robust else A)[among])
        Delta.append(root * D[np.ix_(kept, np.flatnonzero(~own))])
    E = sum((D.T @ A @ D for D, A in zip(Delta, W, strict=True)), np.zeros((int((~own).sum()),) * 2))
    inverse = pseudo_inverse(E)
    # In units where each group's block is weighted by its share: X = W^-1 U, block by block.
    trace = 0.0
    starts = np.concatenate([[0], np.cumsum([len(A) for A in W])])
    stacked = np.concatenate(Delta)
    projection = stacked @ inverse @ stacked.T
    for g, A in enumerate(W):
        rows = slice(starts[g], starts[g + 1])
        for h, A_h in enumerate(W):
            columns = slice(starts[h], starts[h + 1])
            X = -projection[rows, columns] @ A_h + (np.eye(len(A)) if g == h else 0.0)
            Gamma = np.linalg.solve(A_h, np.linalg.solve(A_h, B[h]).T)
            trace += float((Wc[g] * (X @ Gamma @ X.T)).sum())
    return Misfit(chi2, _over(trace, fitted.df))
