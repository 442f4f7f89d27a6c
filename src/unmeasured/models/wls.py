"""Ordinal items: diagonally weighted least squares on polychoric correlations (WLSMV), as lavaan has it.

Three steps (Muthen 1984): thresholds from the margins, a polychoric correlation for each pair, then the model is fitted
to the correlations, each weighted by the inverse of its variance. The covariance Gamma of thresholds and correlations
comes from the scores of the rows. With w the weights, Delta the derivatives of the correlations and
``E = Delta' w Delta``,

    acov = E^-1 Delta' w Gamma w Delta E^-1 / (N - 1)     U = w - w Delta E^-1 Delta' w
    chi2 = (N - 1) sum of w (r - rho)^2                   scaled and shifted: a chi2 + df - a tr(U Gamma),
                                                          a^2 = df / tr(U Gamma U Gamma)

Every item has variance 1: residual variances are what the rest of the model leaves of it (lavaan's parameterisation
"delta"), and are no parameters. Thresholds are free, so they fit perfectly and do not enter the test.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unmeasured.arrays import Bools, Floats
from unmeasured.errors import ModelError, listing
from unmeasured.models.joint import JointSolution, minimise
from unmeasured.models.measures import Misfit, Robust
from unmeasured.models.moments import Point, Structure
from unmeasured.models.pairs import Influences, scaled_and_shifted
from unmeasured.models.parameters import Pattern
from unmeasured.models.robust import pseudo_inverse


@dataclass(frozen=True, eq=False)
class Polychorics:
    """Thresholds and polychoric correlations, each from the rows that show both items, and their covariance."""

    names: tuple[str, ...]
    thresholds: tuple[Floats, ...]  # of each item
    corr: Floats  # (n, n)
    threshold_acov: Floats  # (T, T) covariance of all thresholds
    Gamma: Floats  # (m, m) N times the covariance of the correlations, lower triangle row by row
    n: int

    @classmethod
    def of(cls, names: tuple[str, ...], rows: Floats, corr: Floats) -> Polychorics:
        """From rows (N, n) of items, NaN where missing, and the correlations of highest likelihood of each pair."""
        found = Influences.of(names, rows, corr, np.ones(len(names), dtype=bool))
        return cls.of_influences(names, found, found.n)

    @classmethod
    def of_influences(cls, names: tuple[str, ...], found: Influences, n: int) -> Polychorics:
        """From how rows move thresholds and correlations; of n rows, which may be more than these."""
        cuts, on, some = found.on_thresholds, found.on_correlations, found.n
        return cls(names, found.thresholds, found.corr, cuts.T @ cuts * some / (n - 1), some * (on.T @ on), n)

    @cached_property
    def r(self) -> Floats:
        """(m,) the correlations, lower triangle row by row."""
        return self.corr[np.tril_indices(len(self.names), -1)]

    @cached_property
    def weights(self) -> Floats:
        """(m,) inverse variances of the correlations, times 1/N."""
        return 1.0 / np.diag(self.Gamma)


@dataclass(frozen=True, eq=False)
class CorrelationStructure:
    """Correlations as a function of the free parameters that are not residual variances of items."""

    structure: Structure
    is_residual: Bools  # (p,) which parameters of the pattern are residual variances

    @classmethod
    def suits(cls, pattern: Pattern) -> bool:
        """Whether every item has a residual variance that is free."""
        mask = pattern.is_variance & pattern.is_observed[pattern.ends[:, 0]]
        return set(pattern.observed.tolist()) <= set(pattern.ends[mask, 0].tolist())

    @classmethod
    def of(cls, pattern: Pattern) -> CorrelationStructure:
        """Every item must have a residual variance that is free in the model."""
        mask = pattern.is_variance & pattern.is_observed[pattern.ends[:, 0]]
        fixed = [x for x, i in zip(pattern.observed_names, pattern.observed) if i not in set(pattern.ends[mask, 0])]
        if fixed:
            raise ModelError(
                f"WLSMV gives each item the residual variance that the model leaves of 1, but the model fixes those of "
                f"{listing(fixed)} (as it does for the only indicator of a latent). Leave them free, or leave such "
                "variables out."
            )
        empty = np.zeros(0, dtype=np.int64)
        return cls(Structure(pattern, empty, empty, np.zeros(0), np.arange(pattern.n_free)), mask)

    def at(self, x: Floats) -> tuple[Floats, Point]:
        """All parameters (p,), residual variances filled in, and the moments there."""
        full = np.ones(len(self.is_residual))
        full[~self.is_residual] = x
        observed = self.structure.pattern.ends[self.is_residual, 0]
        point = self.structure.at_local(full)
        # Down the causal order, what is left of each variance follows from those before: one round per generation.
        for _ in range(self.structure.pattern.n_nodes):
            missing = 1.0 - np.diag(point.V)[observed]
            if np.abs(missing).max() < 1e-14:
                break
            full[self.is_residual] += missing
            point = self.structure.at_local(full)
        return full, point

    def jacobian(self, point: Point) -> Floats:
        """(m, q) derivatives of the correlations in the parameters that are left, variances kept at 1."""
        n = len(self.structure.pattern.observed)
        i, j = np.tril_indices(n)
        return np.asarray(point.jacobian[n:][i != j] @ self.derivatives(point))

    def derivatives(self, point: Point) -> Floats:
        """(p, q) derivatives of all parameters in those that are left: residual variances keep the variances at 1."""
        n = len(self.structure.pattern.observed)
        i, j = np.tril_indices(n)
        variances = point.jacobian[n:][i == j]
        found = np.zeros((len(self.is_residual), int((~self.is_residual).sum())))
        found[~self.is_residual] = np.eye(found.shape[1])
        found[self.is_residual] = -np.linalg.solve(variances[:, self.is_residual], variances[:, ~self.is_residual])
        return found


def fit_correlations(structure: CorrelationStructure, data: Polychorics, start: Floats) -> JointSolution:
    """Minimise the weighted squares of the residual correlations."""
    pattern = structure.structure.pattern
    kept = ~structure.is_residual
    lower = np.where(pattern.is_variance[kept], 1e-8, -np.inf)
    i, j = np.tril_indices(len(data.names), -1)

    def value(x: Floats) -> float:
        residual = data.r - structure.at(x)[1].Sigma[i, j]
        total = float((data.weights * residual**2).sum())
        return total if np.isfinite(total) else np.inf

    def derivatives(x: Floats, near: bool) -> tuple[Floats, Floats]:
        point = structure.at(x)[1]
        J = structure.jacobian(point)
        residual = data.r - point.Sigma[i, j]
        return -2.0 * J.T @ (data.weights * residual), 2.0 * J.T @ (data.weights[:, None] * J)

    return minimise(value, derivatives, start[kept], lower, data.n)


def robust_wls(structure: CorrelationStructure, data: Polychorics, x: Floats, chi2: float, df: int) -> Robust:
    """The scaled and shifted test, and what robust RMSEA and CFI are made of."""
    point = structure.at(x)[1]
    J, w, Gamma = structure.jacobian(point), data.weights, data.Gamma
    E_inverse = pseudo_inverse(J.T @ (w[:, None] * J))
    wJ = w[:, None] * J
    acov = E_inverse @ (wJ.T @ Gamma @ wJ) @ E_inverse / (data.n - 1)
    U = np.diag(w) - wJ @ E_inverse @ wJ.T
    baseline_chi2 = (data.n - 1) * float((w * data.r**2).sum())
    # Robust indices: the chi-square of maximum likelihood on the correlations, at these estimates.
    n = len(data.names)
    P = np.linalg.inv(point.Sigma)
    i, j = np.tril_indices(n, -1)
    V = P[np.ix_(i, i)] * P[np.ix_(j, j)] + P[np.ix_(i, j)] * P[np.ix_(j, i)]
    X = np.eye(len(w)) - J @ E_inverse @ wJ.T
    log_det = np.linalg.slogdet(data.corr)[1]
    ml = data.n * (np.linalg.slogdet(point.Sigma)[1] + float((P * data.corr).sum()) - log_det - n)
    mean = float((V * (X @ Gamma @ X.T)).sum())
    return Robust(
        "WLSMV",
        "Scaled and shifted",
        acov,
        scaled_and_shifted(chi2, df, U @ Gamma),
        scaled_and_shifted(baseline_chi2, len(w), w[:, None] * Gamma),
        Misfit(ml, mean / df if df else 1.0),
        Misfit(-data.n * log_det, float(np.trace(Gamma)) / len(w)),
    )
