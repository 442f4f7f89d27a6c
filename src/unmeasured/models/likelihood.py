"""The Gaussian likelihood of a group's rows as a function of its mean and covariance, complete or with missing values.

Rows that show the same variables make a pattern. With o the variables a pattern shows, ``P`` the inverse of
``Sigma_oo`` padded with zeros, ``d = mean_o - mu_o`` and ``Q = P (S_o + d d') P``, minus twice the log-likelihood of
its rows is, up to a constant, n_o times

    f = log det Sigma_oo + tr(P (S_o + d d'))                    df/dmu = -2 P d      df/dSigma = P - Q

Complete rows are one pattern. Information matrices are those of the stacked moments ``(mu, vech Sigma)``, per row:
half the second derivatives of the mean of f. *Expected* takes the values as missing completely at random, as lavaan
does; *observed* are the second derivatives themselves; *first-order* is the mean outer product of the rows' scores.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from unmeasured.arrays import Bools, Floats
from unmeasured.data.moments.missing import saturated_moments
from unmeasured.data.rows import Rows
from unmeasured.models.moments import Directions, vech

# Patterns handled at once: bounds memory.
_CHUNK = 256


@dataclass(frozen=True, eq=False)
class Observations:
    """The rows of one group, sorted into patterns of what they show."""

    names: tuple[str, ...]
    rows: Floats | None  # (N, n) with NaN where missing; None where only moments are known
    n: float  # rows
    seen: Bools  # (B, n) which variables each pattern shows
    counts: Floats  # (B,) rows of each pattern
    means: Floats  # (B, n) zero where not seen
    covs: Floats  # (B, n, n) divisor: the rows of the pattern
    known: tuple[Floats, Floats] | None = None  # the moments of highest likelihood, where they were estimated before

    @classmethod
    def of_rows(cls, names: tuple[str, ...], rows: Floats) -> Observations:
        """From rows (N, n), missing values as NaN; each has at least one value."""
        seen_rows = ~np.isnan(rows)
        if seen_rows.all():
            mean = rows.mean(axis=0)
            deviation = rows - mean
            cov = deviation.T @ deviation / len(rows)
            seen = np.ones((1, len(names)), dtype=bool)
            return cls(names, rows, float(len(rows)), seen, np.array([float(len(rows))]), mean[None], cov[None])
        seen, which = np.unique(seen_rows, axis=0, return_inverse=True)
        which = which.ravel()
        counts = np.bincount(which).astype(float)
        filled = np.where(seen_rows, rows, 0.0)
        means = np.zeros(seen.shape)
        np.add.at(means, which, filled)
        means /= counts[:, None]
        deviation = np.where(seen_rows, rows - means[which], 0.0)
        covs = np.empty((len(seen), len(names), len(names)))
        order = np.argsort(which, kind="stable")
        cuts = np.concatenate([[0], np.cumsum(counts)]).astype(int)
        for b in range(len(seen)):
            part = deviation[order[cuts[b] : cuts[b + 1]]]
            covs[b] = part.T @ part / len(part)
        return cls(names, rows, float(len(rows)), seen, counts, means, covs)

    @classmethod
    def of_moments(cls, names: tuple[str, ...], mean: Floats, cov: Floats, n: float) -> Observations:
        """From the mean and covariance (divisor N) of complete rows that are not at hand."""
        seen = np.ones((1, len(names)), dtype=bool)
        return cls(names, None, n, seen, np.array([n]), mean[None], cov[None])

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return len(self.seen) == 1 and bool(self.seen.all())

    @cached_property
    def saturated(self) -> tuple[Floats, Floats]:
        """Mean and covariance of highest likelihood: those of the rows, or by EM where values are missing."""
        if self.is_complete:
            return self.means[0], self.covs[0]
        if self.known is not None:
            return self.known
        assert self.rows is not None
        moments = saturated_moments(Rows(self.names, self.rows, (False,) * len(self.names)))
        return moments.mean, moments.cov

    def moments_among(self, names: Collection[str]) -> Bools:
        """(moments,) which are means or (co)variances of these variables alone."""
        member = np.array([name in names for name in self.names], dtype=bool)
        i, j = np.tril_indices(len(member))
        return np.concatenate([member, member[i] & member[j]])

    def saturated_of(self, which: list[int]) -> tuple[Floats, Floats]:
        """Mean and covariance of highest likelihood of some variables alone."""
        if self.seen[:, which].all():
            return self.saturated[0][which], self.saturated[1][np.ix_(which, which)]
        assert self.rows is not None
        rows = self.rows[:, which]
        names = tuple(self.names[j] for j in which)
        return Observations.of_rows(names, rows[~np.isnan(rows).all(axis=1)]).saturated

    @cached_property
    def independent(self) -> tuple[Floats, Floats]:
        """Mean and covariance of highest likelihood if all variables are independent."""
        if self.is_complete:
            return self.means[0], np.diag(np.diag(self.covs[0]))
        assert self.rows is not None
        return np.nanmean(self.rows, axis=0), np.diag(np.nanvar(self.rows, axis=0))

    def loglik(self, mu: Floats, Sigma: Floats) -> float:
        """Total log-likelihood, its constant included."""
        n_values = float((self.counts[:, None] * self.seen).sum())
        return -0.5 * (self.n * self.value(mu, Sigma) + n_values * math.log(2.0 * math.pi))

    def _inverses(self, Sigma: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        """For chunks of patterns: which, the padded inverses (b, n, n) and the log determinants (b,)."""
        n = len(Sigma)
        for start in range(0, len(self.seen), _CHUNK):
            these = slice(start, start + _CHUNK)
            seen = self.seen[these]
            both = seen[:, :, None] & seen[:, None, :]
            # Unseen variables get variance 1 and no covariance, which changes neither inverse nor determinant.
            padded = np.where(both, Sigma, 0.0)
            padded[:, range(n), range(n)] += ~seen
            root = np.linalg.cholesky(padded)
            log_det = 2.0 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
            yield these, np.where(both, np.linalg.inv(padded), 0.0), log_det

    def value(self, mu: Floats, Sigma: Floats) -> float:
        """The mean of f over rows; infinite where Sigma is not positive definite."""
        try:
            total = 0.0
            for these, P, log_det in self._inverses(Sigma):
                d = np.where(self.seen[these], self.means[these] - mu, 0.0)
                inner = np.einsum("bij,bij->b", P, self.covs[these]) + np.einsum("bi,bij,bj->b", d, P, d)
                total += float((self.counts[these] * (log_det + inner)).sum())
        except np.linalg.LinAlgError:
            return math.inf
        return total / self.n

    def gradient(self, mu: Floats, Sigma: Floats) -> tuple[Floats, Floats]:
        """Derivatives of the mean of f: in mu (n,) and in Sigma (n, n), symmetric."""
        g, G = np.zeros(len(mu)), np.zeros(Sigma.shape)
        for these, P, _ in self._inverses(Sigma):
            w = self.counts[these] / self.n
            d = np.where(self.seen[these], self.means[these] - mu, 0.0)
            e = np.einsum("bij,bj->bi", P, d)
            g -= 2.0 * (w @ e)
            Q = P @ self.covs[these] @ P + e[:, :, None] * e[:, None, :]
            G += np.einsum("b,bij->ij", w, P - Q)
        return g, (G + G.T) / 2.0

    def expected_information(self, Sigma: Floats) -> Floats:
        """Per row, of the moments: ``P`` for means, ``tr(P D P D') / 2`` for directions D and D' of Sigma."""
        n = len(Sigma)
        size = n + n * (n + 1) // 2
        out = np.zeros((size, size))
        for these, P, _ in self._inverses(Sigma):
            w = self.counts[these] / self.n
            out[:n, :n] += np.einsum("b,bij->ij", w, P)
            straight, _, crossed = _products(P, P, w)
            out[n:, n:] += straight + crossed
        half = _halves(n)
        out[n:, n:] *= np.outer(half, half)
        return out

    def observed_information(self, mu: Floats, Sigma: Floats) -> Floats:
        """Per row, of the moments: half the second derivatives of the mean of f."""
        n = len(mu)
        i, j = np.tril_indices(n)
        size = n + len(i)
        out = np.zeros((size, size))
        for these, P, _ in self._inverses(Sigma):
            w = self.counts[these] / self.n
            d = np.where(self.seen[these], self.means[these] - mu, 0.0)
            e = np.einsum("bij,bj->bi", P, d)
            Q = P @ self.covs[these] @ P + e[:, :, None] * e[:, None, :]
            out[:n, :n] += np.einsum("b,bij->ij", w, P)
            mixed = np.einsum("b,bki,bj->kij", w, P, e)
            out[:n, n:] += mixed[:, i, j] + mixed[:, j, i]
            straight, swapped, crossed = _products(P, Q - 0.5 * P, w)
            out[n:, n:] += straight + swapped + crossed + crossed.T
        half = _halves(n)
        out[:n, n:] *= half
        out[n:, :n] = out[:n, n:].T
        out[n:, n:] *= np.outer(half, half)
        return out

    def scores(self, mu: Floats, Sigma: Floats) -> Floats:
        """(N, moments) derivative of each row's log-likelihood in the moments."""
        assert self.rows is not None
        n = len(mu)
        i, j = np.tril_indices(n)
        half = _halves(n)
        out = np.empty((len(self.rows), n + len(i)))
        seen_rows = ~np.isnan(self.rows)
        which = np.zeros(len(self.rows), dtype=int)
        if not self.is_complete:
            which = np.unique(seen_rows, axis=0, return_inverse=True)[1].ravel()
        for these, P, _ in self._inverses(Sigma):
            mine = np.flatnonzero((which >= these.start) & (which < these.stop))
            d = np.where(seen_rows[mine], self.rows[mine] - mu, 0.0)
            if self.is_complete:
                e, own = d @ P[0], vech(P[0])[None]
            else:
                at = which[mine] - these.start
                e, own = np.einsum("rij,rj->ri", P[at], d), vech(P)[at]
            out[mine, :n] = e
            out[mine, n:] = half * (e[:, i] * e[:, j] - own)
        return out

    def kurtosis(self, given: Sequence[str] = ()) -> tuple[float, float]:
        """Mardia's kurtosis relative to that of a Gaussian, and its p-value, from rows that may be incomplete.

        Of the other variables given the covariates, which are complete and may have any distribution. The squared
        Mahalanobis distance q of the m values that a row shows has mean m and ``q^2`` mean ``m (m + 2)`` if rows are
        Gaussian. What the estimated scale takes from the variance of the sum of ``q^2`` is subtracted; of complete rows
        ``8 m (m + 2)`` per row is left, as Mardia has it.
        """
        assert self.rows is not None
        mean, cov = self.saturated
        seen = ~np.isnan(self.rows)
        which = np.unique(seen, axis=0, return_inverse=True)[1].ravel()
        d = np.where(seen, self.rows - mean, 0.0)
        q = np.empty(len(d))
        for these, P, _ in self._inverses(cov):
            mine = np.flatnonzero((which >= these.start) & (which < these.stop))
            q[mine] = np.einsum("ri,rij,rj->r", d[mine], P[which[mine] - these.start], d[mine])
        if index := [self.names.index(name) for name in given]:
            x = d[:, index]
            q -= ((x @ np.linalg.inv(cov[np.ix_(index, index)])) * x).sum(axis=1)
        m = seen.sum(axis=1).astype(float) - len(index)
        expected = float((m * (m + 2.0)).sum())
        variance = float((8.0 * m * (m + 2.0) * (m + 3.0)).sum()) - 16.0 * expected**2 / (2.0 * float(m.sum()))
        found = float((q**2).sum())
        return found / expected, float(2.0 * ndtr(-abs(found - expected) / math.sqrt(variance)))

    # Of parameters: directions (p, n) of mu, and u and v of Sigma, which moves by u v' + v u' -------------

    def parameter_information(self, mu: Floats, Sigma: Floats, along: Directions, *, observed: bool) -> Floats:
        """(p, p) per row, without the curvature of the moments: from small tables where rows are complete."""
        if not self.is_complete:
            A = self.observed_information(mu, Sigma) if observed else self.expected_information(Sigma)
            return np.asarray(along.jacobian.T @ A @ along.jacobian)
        P = np.linalg.inv(Sigma)
        u, v, m = along.u, along.v, along.mu
        uPu, uPv, vPv = u @ P @ u.T, u @ P @ v.T, v @ P @ v.T
        expected = uPu * vPv + uPv * uPv.T
        if not observed:
            return np.asarray(m @ P @ m.T + expected)
        e = P @ (self.means[0] - mu)
        Q = P @ self.covs[0] @ P + np.outer(e, e)
        uQu, uQv, vQv = u @ Q @ u.T, u @ Q @ v.T, v @ Q @ v.T
        mixed = (m @ P @ u.T) * (v @ e) + (m @ P @ v.T) * (u @ e)
        quadratic = uPv.T * uQv + vPv * uQu + uPu * vQv + uPv * uQv.T
        return np.asarray(m @ P @ m.T + mixed + mixed.T + quadratic - expected)

    def parameter_scores(self, mu: Floats, Sigma: Floats, along: Directions) -> Floats:
        """(N, p) derivative of each row's log-likelihood in the parameters."""
        if not self.is_complete:
            return np.asarray(self.scores(mu, Sigma) @ along.jacobian)
        assert self.rows is not None
        P = np.linalg.inv(Sigma)
        e = (self.rows - mu) @ P
        return np.asarray((e @ along.u.T) * (e @ along.v.T) - (along.u @ P * along.v).sum(axis=1) + e @ along.mu.T)

    def saturated_trace(self) -> float:
        """``tr(A^-1 B)`` at the saturated moments, A observed and B first-order information.

        Of complete rows with squared Mahalanobis distances q it is the mean of ``q + (q^2 - 2 q + n) / 2``.
        """
        if not self.is_complete:
            A, B = self.saturated_information
            return float((np.linalg.inv(A) * B).sum())
        assert self.rows is not None
        d = self.rows - self.means[0]
        q = ((d @ np.linalg.inv(self.covs[0])) * d).sum(axis=1)
        return float((q**2).mean() / 2.0 + len(self.names) / 2.0)

    @cached_property
    def saturated_information(self) -> tuple[Floats, Floats]:
        """Observed and first-order information of the moments, at the saturated ones."""
        return self.observed_information(*self.saturated), self.first_order_information(*self.saturated)

    def predicted(self, covariates: tuple[str, ...]) -> Floats:
        """(N, n) deviations from the means that covariates predict: their own, and the regressions of the others."""
        assert self.rows is not None
        d = self.rows - self.means[0]
        if not covariates:
            return np.zeros_like(d)
        given = [self.names.index(name) for name in covariates]
        slopes = np.linalg.solve(self.covs[0][np.ix_(given, given)], self.covs[0][given])
        return np.asarray(d[:, given] @ slopes)

    def fourth_moment_trace(self, Sigma: Floats, predicted: Floats) -> float:
        """``tr(A Gamma)``: A the expected information at Sigma, Gamma the covariance of complete rows' moments.

        What each row contributes to the moments is taken less what covariates predict of it (:meth:`predicted`).
        """
        assert self.rows is not None
        d, h = self.rows - self.means[0], predicted
        P = np.linalg.inv(Sigma)
        dP, hP = d @ P, h @ P
        dd, dh, hh = (dP * d).sum(axis=1), (dP * h).sum(axis=1), (hP * h).sum(axis=1)
        PS = P @ (self.covs[0] - h.T @ h / len(h))
        squares = (dd**2 - 2.0 * dh**2 + hh**2).mean() - (PS * PS.T).sum()
        return float((dd - 2.0 * dh + hh).mean() + squares / 2.0)

    def moment_scores(self, Sigma: Floats, along: Directions, predicted: Floats) -> Floats:
        """(N, p) ``Delta' A z`` of complete rows, z what each contributes to the sample moments, less its prediction.

        Their mean outer product is ``Delta' A Gamma A Delta``.
        """
        assert self.rows is not None
        P = np.linalg.inv(Sigma)
        e, h = (self.rows - self.means[0]) @ P, predicted @ P
        scores = (e @ along.u.T) * (e @ along.v.T) - (h @ along.u.T) * (h @ along.v.T)
        return np.asarray(scores - scores.mean(axis=0) + (e - h) @ along.mu.T)

    def first_order_information(self, mu: Floats, Sigma: Floats) -> Floats:
        """Per row, of the moments: the mean outer product of the rows' scores."""
        scores = self.scores(mu, Sigma)
        return scores.T @ scores / self.n


def _halves(n: int) -> Floats:
    """What the symmetric derivative in an entry of vech is multiplied by: a variance moves one entry, not two."""
    i, j = np.tril_indices(n)
    return np.where(i == j, 0.5, 1.0)


def _products(P: Floats, Q: Floats, w: Floats) -> tuple[Floats, Floats, Floats]:
    """Sums over patterns of w P_ik Q_jl, w P_jl Q_ik and w P_il Q_jk, for the pairs ij and kl of vech."""
    n = P.shape[-1]
    i, j = np.tril_indices(n)
    if len(P) == 1:
        p, q = w[0] * P[0], Q[0]
        return (
            p[np.ix_(i, i)] * q[np.ix_(j, j)],
            p[np.ix_(j, j)] * q[np.ix_(i, i)],
            p[np.ix_(i, j)] * q[np.ix_(j, i)],
        )
    # One matrix product serves all patterns.
    table = ((w[:, None] * P.reshape(len(P), -1)).T @ Q.reshape(len(Q), -1)).reshape(n, n, n, n)
    a, b, c, d = i[:, None], j[:, None], i[None, :], j[None, :]
    return table[a, c, b, d], table[b, d, a, c], table[a, d, b, c]
