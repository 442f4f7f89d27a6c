"""How far correlations that were estimated pair by pair vary, and the test of a model that follows from it.

Polychoric, polyserial and Pearson correlations, each from the rows that show both variables, vary, and vary together.
To first order an estimate is the truth and a sum over rows of the *influence* that each row has: none where the row
lacks one of the two variables. Of two variables with margins m (thresholds, or mean and deviation) and scores s of the
pair's likelihood,

    influence on m    = I_m^-1 s_m                                         over the rows that show the variable
    influence on rho  = (s_rho - I_rho,m influence on m) / I_rho           over the rows that show both

so the covariance of all correlations is the sum of the products of influences, complete rows or not (Muthen 1984;
lavaan's ``missing = "pairwise"``). An ordinal item and a covariate have the correlation that an ordered probit
regression on all covariates gives, whose slopes have influences too.

With Gamma that covariance times N, Delta the derivatives of the model's moments and W the weights of maximum
likelihood, residuals are ``X = I - Delta (Delta' W Delta)^-1 Delta' W`` times the errors of the moments. Their squares,
each over its own variance (weights D), have the mean and variance that ``X' D X Gamma`` gives: the sum is scaled and
shifted to those of a chi-square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.data.moments.influence import FAR, pair_scores, threshold_scores
from unmeasured.data.moments.missing import standardised
from unmeasured.data.moments.ordinal import Item
from unmeasured.data.observed_roles import ordered_probit
from unmeasured.models.measures import Misfit, Robust, ScaledTest
from unmeasured.models.moments import Structure

if TYPE_CHECKING:
    from unmeasured.models.fit import Fit

# Cells of two-way tables handled at once.
_CHUNK = 2_000_000


@dataclass(frozen=True, eq=False)
class Influences:
    """How each row moves margins and correlations that were estimated pair by pair, variables of unit variance."""

    thresholds: tuple[Floats, ...]  # of each variable; empty for continuous ones
    on_thresholds: Floats  # (N, T)
    on_spread: Floats  # (N, n) on the logarithm of the deviation; zero for ordinal variables
    on_correlations: Floats  # (N, m) lower triangle row by row
    corr: Floats

    @classmethod
    def of(
        cls, names: Sequence[str], rows: Floats, corr: Floats, is_ordinal: Bools, is_given: Bools | None = None
    ) -> Influences:
        """From rows (N, n), missing values as NaN, and the correlations that were estimated from them."""
        N, n = rows.shape
        given = np.flatnonzero(is_given) if is_given is not None else np.zeros(0, dtype=np.int64)
        items = [Item.of(rows[:, j], names[j]) if is_ordinal[j] else None for j in range(n)]
        margins = _Margins.of(rows, items)
        first, second = np.tril_indices(n, -1)
        found = np.zeros((N, len(first)))
        both_ordinal = is_ordinal[first] & is_ordinal[second]
        _ordinal_pairs(found, np.flatnonzero(both_ordinal), first, second, items, margins, corr)
        slopes = {
            j: _through_probit(item, margins.z[:, given], corr[np.ix_(given, given)])
            for j, item in enumerate(items)
            if item is not None and len(given)
        }
        for k in np.flatnonzero(~both_ordinal).tolist():
            i, j = int(first[k]), int(second[k])
            if not (is_ordinal[i] or is_ordinal[j]):
                found[:, k] = _pearson(margins.z[:, i], margins.z[:, j])
                continue
            ordinal, other = (i, j) if is_ordinal[i] else (j, i)
            item = items[ordinal]
            assert item is not None
            if other in given:
                found[:, k] = slopes[ordinal][:, int(np.searchsorted(given, other))]
            else:
                found[:, k] = _polyserial(item, margins, ordinal, other, float(corr[i, j]))
        return cls(
            tuple(np.zeros(0) if item is None else item.thresholds for item in items),
            np.concatenate(margins.on_thresholds, axis=1),
            margins.on_spread,
            found,
            corr,
        )

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.on_correlations)

    def on_moments(self, is_free: Bools) -> Floats:
        """(N, n (n + 1) / 2) on variances and covariances; those of variables that are not ``is_free`` stay 1."""
        i, j = np.tril_indices(len(self.corr))
        spread = np.where(is_free, self.on_spread, 0.0)
        out = self.corr[i, j] * (spread[:, i] + spread[:, j])
        out[:, i != j] += self.on_correlations
        return np.asarray(out)


@dataclass(frozen=True, eq=False)
class _Margins:
    """Continuous variables as standard scores, and how rows move the margins of all."""

    z: Floats  # (N, n) NaN where missing, or ordinal
    on_thresholds: tuple[Floats, ...]
    on_mean: Floats  # (N, n) of standard scores
    on_spread: Floats

    @classmethod
    def of(cls, rows: Floats, items: Sequence[Item | None]) -> _Margins:
        z = np.full(rows.shape, np.nan)
        continuous = np.array([item is None for item in items], dtype=bool)
        if continuous.any():
            z[:, continuous] = standardised(rows[:, continuous])[0]
        seen = ~np.isnan(z)
        n = np.maximum(seen.sum(axis=0), 1)
        known = np.where(seen, z, 0.0)
        on_thresholds = []
        for item in items:
            if item is None:
                on_thresholds.append(np.zeros((len(rows), 0)))
                continue
            own = _looked_up(threshold_scores(item.thresholds), item.codes)
            on_thresholds.append(own @ np.linalg.inv(own.T @ own))
        return cls(z, tuple(on_thresholds), known / n, np.where(seen, known**2 - 1.0, 0.0) / (2.0 * n))


def _looked_up(table: Floats, codes: Ints) -> Floats:
    """The row of a table for each code; zeros for -1, where a value is missing."""
    return np.concatenate([table, np.zeros((1, *table.shape[1:]))])[codes]


def _ordinal_pairs(
    out: Floats, pairs: Ints, first: Ints, second: Ints, items: Sequence[Item | None], margins: _Margins, corr: Floats
) -> None:
    """Fill in the influences on polychoric correlations."""
    if not len(pairs):
        return
    K = max(len(item.values) for item in items if item is not None)
    edges = np.full((len(items), K + 1), FAR)
    edges[:, 0] = -FAR
    for row, item in zip(edges, items, strict=True):
        if item is not None:
            row[1 : len(item.values)] = item.thresholds
    per_chunk = max(1, _CHUNK // K**3)
    for begin in range(0, len(pairs), per_chunk):
        chosen = pairs[begin : begin + per_chunk]
        a, b = first[chosen], second[chosen]
        in_rho, in_a, in_b = pair_scores(edges[a], edges[b], corr[a, b])
        for k, (pair, i, j) in enumerate(zip(chosen.tolist(), a.tolist(), b.tolist(), strict=True)):
            one, other = items[i], items[j]
            assert one is not None
            assert other is not None
            seen = (one.codes >= 0) & (other.codes >= 0)
            x, y = one.codes[seen], other.codes[seen]
            weighted = np.bincount(x * K + y, minlength=K * K).reshape(K, K) * in_rho[k]
            moved = np.zeros(len(seen))
            moved[seen] = in_rho[k][x, y]
            for at, gradient in ((i, in_a[k]), (j, in_b[k])):
                on = margins.on_thresholds[at]
                moved -= on @ np.einsum("xy,xyt->t", weighted, gradient[:, :, : on.shape[1]])
            out[:, pair] = moved / float((weighted * in_rho[k]).sum())


def _pearson(x: Floats, y: Floats) -> Floats:
    """Influences on the correlation of two continuous variables in the rows that show both."""
    seen = ~np.isnan(x) & ~np.isnan(y)
    pair = standardised(np.column_stack([x[seen], y[seen]]))[0]
    product = pair[:, 0] * pair[:, 1]
    out = np.zeros(len(x))
    out[seen] = (product - product.mean() * (pair**2).sum(axis=1) / 2.0) / len(pair)
    return out


def _polyserial(item: Item, margins: _Margins, j: int, other: int, rho: float) -> Floats:
    """Influences on the correlation of an ordinal item with a continuous variable."""
    z = margins.z[:, other]
    seen = (item.codes >= 0) & ~np.isnan(z)
    x, codes = z[seen], item.codes[seen]
    edges = np.concatenate([[-FAR], item.thresholds, [FAR]])
    root = np.sqrt(1.0 - rho**2)
    ends = edges[np.column_stack([codes, codes + 1])]  # (n, 2) the thresholds of each category
    bound = (ends - rho * x[:, None]) / root
    turned = bound[:, 0] > 0
    upper, lower = np.where(turned, -bound[:, 0], bound[:, 1]), np.where(turned, -bound[:, 1], bound[:, 0])
    p = np.maximum(ndtr(upper) - ndtr(lower), 1e-300)
    density = np.exp(-(bound**2) / 2.0) / np.sqrt(2.0 * np.pi) / p[:, None] * np.array([-1.0, 1.0])
    score = (density * (rho * ends - x[:, None])).sum(axis=1) / root**3
    by_edge = density / root
    by_x = -rho * by_edge.sum(axis=1)
    with_thresholds = np.zeros(len(edges))
    np.add.at(with_thresholds, codes, score * by_edge[:, 0])
    np.add.at(with_thresholds, codes + 1, score * by_edge[:, 1])
    moved = np.zeros(len(z))
    moved[seen] = score
    moved -= margins.on_thresholds[j] @ with_thresholds[1:-1]
    # A standard score falls by what the mean rises, and by its size times what the deviation grows.
    moved += margins.on_mean[:, other] * float((score * by_x).sum())
    moved += margins.on_spread[:, other] * float((score * by_x * x).sum())
    return moved / float((score**2).sum())


def _through_probit(item: Item, X: Floats, among: Floats) -> Floats:
    """(N, q) influences on the correlations of an ordinal item with all covariates, which are complete."""
    seen = item.codes >= 0
    slopes, moved = ordered_probit(item.codes[seen], X[seen])
    on_slopes = np.zeros((len(X), len(slopes)))
    on_slopes[seen] = moved
    c = float(np.sqrt(1.0 + slopes @ among @ slopes))
    explained = among @ slopes
    # r = S b / c with c^2 = 1 + b' S b: by way of the slopes b, and of the correlations S of the covariates.
    out = on_slopes @ (among / c - np.outer(explained, explained) / c**3)
    i, j = np.tril_indices(len(among), -1)
    for a, b in zip(i.tolist(), j.tolist(), strict=True):
        on = _pearson(X[:, a], X[:, b])
        change = np.zeros(len(slopes))
        change[a], change[b] = slopes[b], slopes[a]
        out += np.outer(on, change / c - explained * slopes[a] * slopes[b] / c**3)
    return np.asarray(out)


def robust_by_pairs(fit: Fit, influences: Influences, n_rows: int) -> Robust:
    """The test and standard errors of maximum likelihood on correlations estimated pair by pair.

    ``n_rows`` may be more than the rows that the influences are of, if these are some of many. Chi-square of the fit is
    that of ``fit.sample.n`` samples, which the rows are worth; the test is of the rows.
    """
    # Here, since the estimator of least squares builds on this module.
    from unmeasured.models.robust import pseudo_inverse

    pattern, names = fit.problem.pattern, fit.sample.names
    unit, n = pattern.unit(fit.problem.scale), len(names)
    is_free = np.array([kind == "continuous" for kind in fit.sample.kinds], dtype=bool)
    rows = influences.on_moments(is_free)
    Gamma = influences.n * (rows.T @ rows)
    i, j = np.tril_indices(n)
    half = np.where(i == j, 0.5, 1.0)

    def weight(Sigma: Floats) -> Floats:
        P = np.linalg.inv(Sigma)
        pairs = P[np.ix_(i, i)] * P[np.ix_(j, j)] + P[np.ix_(i, j)] * P[np.ix_(j, i)]
        return np.asarray(np.outer(half, half) * pairs)

    def left(W: Floats, J: Floats) -> tuple[Floats, Floats, Floats]:
        WJ = W @ J
        inverse = pseudo_inverse(J.T @ WJ)
        return W - WJ @ inverse @ WJ.T, WJ, inverse

    point = Structure.saturated_means(pattern).at_local(np.concatenate([fit.estimates / unit, np.zeros(n)]))
    U, WJ, inverse = left(weight(point.Sigma), point.jacobian[n:, : pattern.n_free])
    acov = inverse @ (WJ.T @ Gamma @ WJ) @ inverse / n_rows * np.outer(unit, unit)
    given = np.array([name in fit.model.covariates for name in names], dtype=bool)
    independent = np.where(np.outer(given, given), influences.corr, np.eye(n))
    U_0, _, _ = left(weight(independent), np.eye(len(i))[:, (i == j) | (given[i] & given[j])])
    # Residuals are weighed by their own variances: the inverse of correlations of few answers is far from the truth.
    own = np.diag(Gamma)
    w = np.where(own > 1e-12, 1.0 / np.maximum(own, 1e-12), 0.0)
    along = np.eye(len(i)) - point.jacobian[n:, : pattern.n_free] @ inverse @ WJ.T
    residual = influences.corr[i, j] - point.Sigma[i, j]
    tested = scaled_and_shifted(n_rows * float((w * residual**2).sum()), fit.df, along.T @ (w[:, None] * along) @ Gamma)
    larger = n_rows / fit.sample.n
    df, df_0 = fit.df, fit.baseline_df
    return Robust(
        "ML",
        "Scaled and shifted",
        acov,
        tested,
        scaled_and_shifted(fit.baseline_chi2 * larger, df_0, U_0 @ Gamma),
        Misfit(fit.chi2, float((U * Gamma).sum()) / df / larger),
        Misfit(fit.baseline_chi2, float((U_0 * Gamma).sum()) / df_0 / larger),
    )


def scaled_and_shifted(chi2: float, df: int, UGamma: Floats) -> ScaledTest:
    """A chi-square with the mean and variance that it has under the model brought to those of ``df``."""
    if not df:
        return ScaledTest(chi2, 1.0)
    a = np.sqrt(df / float((UGamma * UGamma.T).sum()))
    shift = df - a * float(np.trace(UGamma))
    return ScaledTest(float(a * chi2 + shift), float(1.0 / a), float(shift))
