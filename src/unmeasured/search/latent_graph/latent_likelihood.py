"""The likelihood of many graphs over latents, with the measurement of the latents left as it was fitted.

A fit of hundreds of variables takes seconds, and one edge between two latents hardly moves a loading. With the
loadings Lambda (m, n) and residual variances Psi fixed, the data enter by way of m weighted sums of the variables alone
(Bartlett's scores): with ``E = (Lambda Psi^-1 Lambda')^-1``

    y = E Lambda Psi^-1 x = f + e,   Cov(e) = E,   log det Sigma + tr(Sigma^-1 S)
                                                   = log det(Phi + E) + tr((Phi + E)^-1 Cov(y)) + a constant

so that a graph over the latents is a small model of m variables with known errors of measurement, whatever the number
of observed ones. Its likelihood is a lower bound of the one with all parameters free, which :func:`fit_along` gives.
Latents above latents have no indicators: they are in Phi (M, M), of which the data see the first m rows and columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from unmeasured.arrays import Floats, Ints, Marks
from unmeasured.data.sample import Sample
from unmeasured.models.factors import LEAST_NOISE, Factors, covariance_of, fit_factors
from unmeasured.models.solve import Check, never
from unmeasured.search.budget import BUDGET
from unmeasured.search.score import Fitted, Scorable

Causes = list[tuple[int, list[int]]]

# Damping of a step: where it begins and ends, and by what factor it changes.
_FIRST_DAMPING, _LARGEST_DAMPING, _FACTOR = 1e-6, 1e6, 10.0
# What the variables say of a latent is more than this part of what they say of all on average.
_LEAST_SHARE = 1e-9
# Others leave a latent and its error of measurement more than this part of their variance.
_ROUNDING = 1e-12


# With more free parameters EM, whose rounds do not depend on their number, is faster than steps that do by its cube:
# 212 latents with 3,192 paths take 16 processor seconds by scoring, 1.4 by EM; with 937 paths scoring takes 0.25.
_MOST_AT_ONCE = 1500
# EM goes on until a round gains less than this part of what the fit may be short of.
_PART_OF_GAIN = 0.1


class LatentLikelihood:
    """Maximum log-likelihood per sample of graphs over latents, less that of the saturated model; remembered.

    The same as :class:`~unmeasured.search.score.LikelihoodScore` to its callers, for one measurement model.
    """

    def __init__(self, sample: Sample, near: Fitted, check: Check = never, fit_gain: float = BUDGET.fit_gain) -> None:
        """``near``: the measurement model, fitted with all groups connected; ``fit_gain``: where fits stop."""
        self.sample, self.near, self.check, self._fit_gain = sample, near, check, fit_gain
        self.n_fitted = 0
        self.n_cached = 0
        self.visited: dict[Scorable, float] = {}  # all classes fitted so far, and their scores
        loadings = near.loadings[: near.model.n_measured]
        weights = loadings / near.noise
        precision = weights @ loadings.T
        precision[np.diag_indices_from(precision)] += _LEAST_SHARE * np.trace(precision) / len(precision)
        self._E = np.linalg.inv(precision)
        self._scores = self._E @ (weights @ sample.corr @ weights.T) @ self._E
        self._constant = (
            np.log(near.noise).sum()
            + np.linalg.slogdet(precision)[1]
            + (np.diag(sample.corr) / near.noise).sum()
            - (precision * self._scores).sum()
        )

    def __call__(self, models: Sequence[Scorable]) -> Floats:
        """Scores (B,) of many classes; those visited before are remembered."""
        new = list(dict.fromkeys(model for model in models if model not in self.visited))
        self.n_cached += len(models) - len(new)
        least = self.sample.log_det_corr + len(self.sample.names)
        for model in new:
            self.check()
            objective = self._constant + self._fitted(self.near.model.causes_in_order(model.arcs))
            self.visited[model] = -0.5 * max(float(objective - least), 0.0)
            self.n_fitted += 1
        return np.array([self.visited[model] for model in models])

    def _fitted(self, causes: Causes) -> float:
        """The least ``log det(Phi + E) + tr((Phi + E)^-1 Cov(y))``: by Fisher scoring, or by EM with many paths."""
        return self._by_scoring(causes)[0] if self._is_small(causes) else self._by_em(causes)[0]

    def _is_small(self, causes: Causes) -> bool:
        # What latents above others are given the data is for scoring only.
        is_raised = len(causes) > len(self._E)
        return is_raised or len(causes) + sum(len(parents) for _, parents in causes) <= _MOST_AT_ONCE

    def losses(self, arcs: Marks) -> Floats:
        """(G, G) by how much the log-likelihood would fall without each arc, by Wald's test; zero where there is none.

        All at once, from one fit: to fit every graph with an arc less takes a hundred times as long.
        """
        model = self.near.model
        causes = model.causes_in_order(arcs)
        if self._is_small(causes):
            _, x, H = self._by_scoring(causes)
        else:
            x = _regressions(self._by_em(causes)[1], causes)
            H = self._slopes(*_ends(causes), x)[2]
        spread = cho_solve(_damped(H, _FIRST_DAMPING)[0], np.eye(len(H)), check_finite=False)
        group_of = {latent: g for g, latents in enumerate(model.latents_of_groups) for latent in latents}
        slots: dict[tuple[int, int], list[int]] = {}
        for slot, (i, j) in enumerate(zip(*_ends(causes), strict=True)):
            slots.setdefault((group_of.get(int(i), -1), group_of.get(int(j), -1)), []).append(slot)
        found = np.zeros(arcs.shape)
        for pair, at in slots.items():
            if pair[0] != pair[1] and min(pair) >= 0:  # within a group the basis is free; no edge is above a facet
                found[pair] = 0.25 * self.sample.n * x[at] @ np.linalg.solve(spread[np.ix_(at, at)], x[at])
        return found

    def moments(self, arcs: Marks) -> Floats | None:
        """Second moments (m, m) of the latents given the data and the fit of a graph; None with latents above others.

        If the latents had these, another graph would gain no more than it does (the expectation of EM; Friedman 1998).
        """
        causes = self.near.model.causes_in_order(arcs)
        if len(causes) > len(self._E):
            return None
        if self._is_small(causes):
            Phi = self._covariance(*_ends(causes), self._by_scoring(causes)[1])[2]
        else:
            Phi = self._by_em(causes)[1]
        return self._expected(Phi)[1]

    def _by_em(self, causes: Causes) -> tuple[float, Floats]:
        """The objective and the covariance of the latents, by expectation and maximisation.

        A round takes m^3 operations, and there are few where latents are measured well. Every second one is followed by
        an extrapolation, as in :func:`~unmeasured.models.factors.fit_factors`.
        """
        tolerance = 2.0 * _PART_OF_GAIN * self._fit_gain / self.sample.n
        Phi = covariance_of(self.near.latent_cov, causes)
        before, since = np.inf, list[Floats]()
        value, moments = self._expected(Phi)
        while before - value >= tolerance:
            self.check()
            since.append(Phi)
            if len(since) == 3:
                further = _extrapolated(*since)
                since = [Phi]
                if further is not None:
                    further = covariance_of(further, causes)
                    trial, expected = self._expected(further)
                    if trial < value:
                        Phi, value, moments, since = further, trial, expected, [further]
            before = value
            Phi = covariance_of(moments, causes)
            value, moments = self._expected(Phi)
        return min(value, before), Phi

    def _expected(self, Phi: Floats) -> tuple[float, Floats]:
        """The objective, and second moments of the latents given the data (m, m); infinite where there are none."""
        factor = _factored(Phi + self._E)
        if factor is None:
            return np.inf, Phi
        B = cho_solve(factor, Phi, check_finite=False)  # (Phi + E)^-1 Phi
        value = 2.0 * float(np.log(np.diag(factor[0])).sum())
        value += float(np.trace(cho_solve(factor, self._scores, check_finite=False)))
        return value, Phi - Phi @ B + B.T @ self._scores @ B

    def _by_scoring(self, causes: Causes) -> tuple[float, Floats, Floats]:
        """The objective, the parameters and the expected Hessian, by damped Fisher scoring."""
        Phi = self.near.all_cov + _LEAST_SHARE * np.diag(np.diag(self.near.all_cov))
        source, target = _ends(causes)
        x = _regressions(Phi, causes)
        if math.isinf(self._value(source, target, x)):
            return np.inf, x, np.eye(len(x))
        value, gradient, H = self._slopes(source, target, x)
        damping = _FIRST_DAMPING
        for _ in range(BUDGET.most_steps):
            other = None
            while other is None and damping < _LARGEST_DAMPING:
                factor, damping = _damped(H, damping)
                step = -cho_solve(factor, gradient, check_finite=False)
                predicted = -float(gradient @ step) - 0.5 * float(step @ H @ step)
                if 0.5 * self.sample.n * predicted < self._fit_gain:
                    return value, x, H
                after = self._value(source, target, x + step)
                if after < value:
                    other = x + step
                    damping = max(damping / _FACTOR, 1e-10)
                else:
                    damping *= _FACTOR
            if other is None:
                break
            x = other
            value, gradient, H = self._slopes(source, target, x)
        return value, x, H

    def _covariance(self, source: Ints, target: Ints, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Total effects T (M, M), residual variances (M,) and covariance of all latents at a point."""
        M = self.near.model.n_latents
        B = np.zeros((M, M))
        B[source, target] = x[:-M]
        T: Floats = np.asarray(np.linalg.inv(np.eye(M) - B), dtype=np.float64)
        variances = np.exp(np.clip(x[-M:], -30.0, 30.0))
        return T, variances, (T.T * variances) @ T

    def _value(self, source: Ints, target: Ints, x: Floats) -> float:
        """The objective; infinite where a latent is a function of others but for rounding."""
        m = len(self._E)
        Phi = self._covariance(source, target, x)[2][:m, :m]
        factor = _factored(Phi + self._E)
        if factor is None:
            return np.inf
        log_det = 2.0 * float(np.log(np.diag(factor[0])).sum())
        return log_det + float(np.trace(cho_solve(factor, self._scores, check_finite=False)))

    def _slopes(self, source: Ints, target: Ints, x: Floats) -> tuple[float, Floats, Floats]:
        """The objective, its gradient and its expected Hessian, as in :mod:`unmeasured.kernels.likelihood`.

        Every parameter moves the covariance by ``u v' + v u'``: a path by the effects of its target and the
        covariances of its source, the logarithm of a residual variance by effects alone.
        """
        m = len(self._E)
        T, variances, Phi = self._covariance(source, target, x)
        factor = cho_factor(Phi[:m, :m] + self._E, check_finite=False)
        P = cho_solve(factor, np.eye(m), check_finite=False)
        PS = P @ self._scores
        value = 2.0 * float(np.log(np.diag(factor[0])).sum()) + float(np.trace(PS))
        U = np.concatenate([T[target], T])[:, :m]
        V = np.concatenate([Phi[source], 0.5 * variances[:, None] * T])[:, :m]
        PV = P @ V.T
        UPU, VPV, UPV = U @ P @ U.T, V @ PV, U @ PV
        gradient = 2.0 * (U * (V @ (P - PS @ P))).sum(axis=1)
        return value, gradient, 2.0 * (UPU * VPV + UPV * UPV.T)


def _factored(A: Floats) -> tuple[Floats, bool] | None:
    """The Cholesky factor of a covariance; None where the others leave a variable no more than rounding."""
    try:
        factor: tuple[Floats, bool] = cho_factor(A, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    return factor if (np.diag(factor[0]) ** 2 > _ROUNDING * np.diag(A)).all() else None


def _damped(H: Floats, damping: float) -> tuple[tuple[Floats, bool], float]:
    """The Cholesky factor of a Hessian with so much of its diagonal added, or more where rounding asks for it."""
    diagonal = np.diag(H)
    while True:
        A = H.copy()
        A[np.diag_indices_from(A)] += damping * diagonal + 1e-12
        try:
            return cho_factor(A, check_finite=False), damping
        except np.linalg.LinAlgError:
            if damping >= _LARGEST_DAMPING:
                raise
            damping *= _FACTOR


def _extrapolated(first: Floats, second: Floats, third: Floats) -> Floats | None:
    """Where three rounds of EM lead (Varadhan and Roland 2008); None where that is no further than EM itself went."""
    step, bend = second - first, third - 2.0 * second + first
    length, curve = float(np.linalg.norm(step)), float(np.linalg.norm(bend))
    if not length > curve > 0.0:
        return None
    r = length / curve
    further: Floats = first + 2.0 * r * step + r * r * bend
    return further


def _ends(causes: Causes) -> tuple[Ints, Ints]:
    """Causes and effects of all paths, in the order of the parameters."""
    source = np.array([i for _, parents in causes for i in parents], dtype=np.int64)
    target = np.array([j for j, parents in causes for _ in parents], dtype=np.int64)
    return source, target


def _regressions(Phi: Floats, causes: Causes) -> Floats:
    """Paths, one latent after the other, and logarithms of residual variances (m,)."""
    paths, logs = [], np.empty(len(Phi))
    for j, parents in causes:
        b = np.linalg.solve(Phi[np.ix_(parents, parents)], Phi[parents, j]) if parents else np.empty(0)
        paths.append(b)
        logs[j] = np.log(max(Phi[j, j] - b @ Phi[parents, j], 1e-3 * Phi[j, j]))
    return np.concatenate([*paths, logs])


def least_noise(sample: Sample, bound: float = LEAST_NOISE) -> Floats | float:
    """What residual variances of a sample are no smaller than: ``bound``, and less with many variables.

    Of many variables some may be functions of others but for a millionth; a bound above their residual variances would
    make every model look wrong.
    """
    if len(sample.names) <= BUDGET.most_at_once:
        return bound
    return np.minimum(bound, BUDGET.part_of_unexplained * sample.unexplained)


def fit_along(sample: Sample, near: Fitted, arcs: Marks, check: Check = never) -> tuple[Factors, float]:
    """All parameters of a measurement model with a graph over its groups, by EM; and the log-likelihood per sample."""
    model, causes = near.model, near.model.causes_in_order(arcs)
    m = len(near.effects)
    start = Factors(near.loadings, covariance_of(near.latent_cov, causes), near.noise)
    tolerance = BUDGET.least_rise_by_em / sample.n
    factors, objective = fit_factors(
        sample.corr, model.mask[:, m:], start, tolerance=tolerance, causes=causes, check=check,
        is_accelerated=len(sample.names) > BUDGET.most_at_once, least_noise=least_noise(sample),
    )  # fmt: skip
    return factors, -0.5 * max(objective - sample.log_det_corr - len(sample.names), 0.0)
