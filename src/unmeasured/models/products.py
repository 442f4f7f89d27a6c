"""The likelihood of a model of thousands of parameters, and its derivatives, by matrix products of BLAS.

The compiled kernels (:mod:`unmeasured.kernels.likelihood`) are made for matrices of tens of rows, where a call into a
library costs more than the arithmetic. With a thousand variables it is the other way round. The formulas are the
same: a parameter moves Sigma by ``w (u v' + v u')``, and the gradient and the expected Hessian are read from the
tables ``Z P Z'`` and ``Z P S P Z'``.

The gradient alone needs far less (:class:`Likelihood`). Variables that cause none have unit vectors as rows of T, so
only nodes that cause others count, the latents as a rule. Where all of them are latent and residuals are uncorrelated,
with their covariance Phi (m, m) and loadings L (m, n)

    Sigma = L' Phi L + Psi,   P = Psi^-1 - A' W A,   A = L Psi^-1,   W = (Phi^-1 + A L')^-1

and there are products of m rows instead of n. Where a residual variance runs to zero (Heywood cases), few digits would
be left of this difference. Such variables h are left out of Psi and A, and added to the others' inverse:

    P + q k^-1 q',   q = e_h - A' W L_h,   k = L_h' W L_h + Psi_h                what the others leave of them
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve, solve_triangular
from scipy.sparse import csr_array

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.models.checks import Check, never
from unmeasured.models.parameters import Pattern

# With more free parameters: the last fit of a model of 500 variables and 100 latents did not end within two processor
# minutes by the kernels, and takes less than 20 s by these products. 957 parameters take 0.3 s by the kernels.
LARGE = 1000
# Variables with a smaller part of their variance left are Heywood cases; see above.
_LITTLE_NOISE = 1e-2
# Where latents explain so much more of the variables than residuals do, too few digits are left in any case.
_MOST_EXPLAINED = 1e9
# Added to a Hessian of unit diagonal: rotations within a group change nothing, and what hardly does anything is better
# learnt from steps. Of 1,000 variables (a latent whose residual variance is small) 95 steps with this, 118 with 1e-3,
# more than 259 with 1e-4.
_DAMPING = 1e-2
# Rows of a matrix over all parameters between two looks at the clock.
_AT_ONCE = 500


def derivatives(pattern: Pattern, S: Floats, x: Floats, check: Check = never) -> tuple[float, Floats, Floats]:
    """The objective ``log det Sigma + tr(Sigma^-1 S)``, its gradient (p,) and its expected Hessian (p, p)."""
    T, C = _moments(pattern, x)
    try:
        factor = cho_factor(C[pattern.observed], check_finite=False)
    except np.linalg.LinAlgError:
        return np.inf, np.full(len(x), np.nan), np.full((len(x), len(x)), np.nan)
    P = cho_solve(factor, np.eye(len(S)), check_finite=False)
    PS = P @ S
    value = 2.0 * float(np.log(np.diag(factor[0])).sum()) + float(np.trace(PS))
    rows, at = np.unique(np.concatenate(pattern.rows), return_inverse=True)
    u, v = at.reshape(2, -1)
    Z = np.concatenate([T, C])[rows]
    check()
    ZP = Z @ P
    K = ZP @ Z.T
    D = K - (ZP @ S) @ ZP.T
    w = np.where(pattern.is_variance, 0.5, 1.0)
    H = np.empty((len(x), len(x)))
    for begin in range(0, len(x), _AT_ONCE):
        check()
        some = slice(begin, begin + _AT_ONCE)
        of_u, of_v = K[u[some]], K[v[some]]
        H[some] = of_u[:, u] * of_v[:, v]
        H[some] += of_u[:, v] * of_v[:, u]
        H[some] *= 2.0 * w[some, None] * w
    return value, 2.0 * w * D[u, v], H


def cholesky_in_place(A: Floats, check: Check = never) -> None:
    """The lower Cholesky factor of a matrix, in its place (above the diagonal is no part of it), with looks at a clock.

    By blocks of columns: a factor of 5,000 rows takes seconds, and no library lets go of it before its end.
    """
    for begin in range(0, len(A), _AT_ONCE):
        check()
        own, rest = slice(begin, begin + _AT_ONCE), slice(begin + _AT_ONCE, None)
        A[own, own] = np.linalg.cholesky(A[own, own])
        A[rest, own] = solve_triangular(A[own, own], A[rest, own].T, lower=True, check_finite=False).T
        for first in range(begin + _AT_ONCE, len(A), _AT_ONCE):
            check()
            below, across = slice(first, None), slice(first, first + _AT_ONCE)
            A[below, across] -= A[below, own] @ A[across, own].T


def _moments(pattern: Pattern, x: Floats) -> tuple[Floats, Floats]:
    """Total effects T on the observed variables and covariances C with them, (d, n) each."""
    F, Omega = pattern.matrices(np.append(x, 0.0))
    E = np.linalg.inv(np.eye(len(F)) - F)
    T = E[:, pattern.observed]
    return np.asarray(T), np.asarray(E.T @ (Omega @ T))


class Likelihood:
    """The objective ``log det Sigma + tr(Sigma^-1 S)`` of a pattern and its gradient, without any (p, p) matrix.

    Fixed entries of the pattern are those of variables of unit variance.
    """

    def __init__(self, pattern: Pattern, S: Floats) -> None:
        self.pattern, self.S = pattern, S
        is_cause = ~pattern.is_observed
        is_cause[pattern.source] = True
        causes = np.flatnonzero(is_cause)
        self._m = len(causes)
        # Rows of tables over causes, and columns of those over observed variables.
        row, column = (np.full(pattern.n_nodes, -1) for _ in range(2))
        row[causes], column[pattern.observed] = np.arange(len(causes)), np.arange(len(S))
        own = causes[pattern.is_observed[causes]]
        self._own = row[own], column[own]
        self._source, is_inner = row[pattern.source], is_cause[pattern.target]
        self._inner, self._inner_target = np.flatnonzero(is_inner), row[pattern.target[is_inner]]
        self._loads, self._loads_on = np.flatnonzero(~is_inner), column[pattern.target[~is_inner]]
        # Entries of Omega: between causes, between a cause and another (the cause first), and between others.
        a, b = pattern.first, pattern.second
        is_turned = is_cause[b] & ~is_cause[a]
        a, b = np.where(is_turned, b, a), np.where(is_turned, a, b)
        self._of_causes, self._of_others = np.flatnonzero(is_cause[a] & is_cause[b]), np.flatnonzero(~is_cause[a])
        self._across = np.flatnonzero(is_cause[a] & ~is_cause[b])
        self._first = np.where(is_cause[a], row[a], column[a])
        self._second = np.where(is_cause[b], row[b], column[b])
        is_simple = bool((a == b)[self._of_others].all()) and len(self._of_others) == len(S)
        self._is_simple = is_simple and not len(own) and not len(self._across)

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """The objective and its gradient (p,); infinite where Sigma is not positive definite."""
        parts = self._parts(x)
        if parts is None:
            return np.inf, np.full(len(x), np.nan)
        pattern = self.pattern
        by_effect, by_noise = np.empty(len(pattern.slot)), np.empty(len(pattern.slot2))
        by_effect[self._loads] = parts.CG[self._source[self._loads], self._loads_on]
        by_effect[self._inner] = (parts.CG @ parts.B.T)[self._source[self._inner], self._inner_target]
        by_noise[self._of_others] = parts.G
        of_causes, across = self._of_causes, self._across
        if (pattern.slot2[np.concatenate([of_causes, across])] >= 0).any():
            BG = parts.BP - parts.by_inverse(parts.BP @ self.S)
            by_noise[of_causes] = (BG @ parts.B.T)[self._first[of_causes], self._second[of_causes]]
            by_noise[across] = BG[self._first[across], self._second[across]]
        by_noise[pattern.first == pattern.second] *= 0.5
        gradient = np.empty(len(x))
        gradient[pattern.slot[pattern.slot >= 0]] = 2.0 * by_effect[pattern.slot >= 0]
        gradient[pattern.slot2[pattern.slot2 >= 0]] = 2.0 * by_noise[pattern.slot2 >= 0]
        return parts.value, gradient

    def whole_metric(self, x: Floats, free: Bools, check: Check = never) -> Callable[[Floats], Floats]:
        """The expected Hessian of those parameters that are free, factored: a function that solves with it."""
        at = np.flatnonzero(free)
        H = derivatives(self.pattern, self.S, x, check)[2]
        unit = np.sqrt(np.diag(H))[at]
        unit = np.where(unit > 0.0, unit, 1.0)  # parameters without effect have no slope either, and any unit does
        A = H if len(at) == len(x) else H[np.ix_(at, at)]
        A /= unit[:, None]
        A /= unit
        A[np.diag_indices_from(A)] = 1.0 + _DAMPING
        cholesky_in_place(A, check)

        def solved(gradient: Floats) -> Floats:
            step = np.zeros_like(gradient)
            step[at] = cho_solve((A, True), gradient[at] / unit, check_finite=False) / unit
            return step

        return solved

    def metric(self, x: Floats, free: Bools) -> Metric:
        """The expected Hessian of those parameters that are free, but for what is between parameters of two variables.

        What is left are the effects on one variable and its residual variance, and every covariance by itself.
        """
        pattern, parts = self.pattern, self._parts(x)
        assert parts is not None, "a point that has a likelihood"
        # K[u_j, u_j] and K[u_j, v_i] of a variable j and its causes i, and K[v_i, v_k].
        inner, rest = parts.CP @ parts.B.T, parts.CP @ parts.C.T
        of_inner = (parts.BP * parts.B).sum(axis=1)
        by_target: dict[int, list[int]] = {}
        for e in np.flatnonzero(pattern.slot >= 0).tolist():
            by_target.setdefault(int(pattern.target[e]), []).append(e)
        is_inner, at = np.zeros(len(pattern.slot), dtype=bool), np.empty(len(pattern.slot), dtype=np.int64)
        is_inner[self._inner], at[self._inner], at[self._loads] = True, self._inner_target, self._loads_on
        is_own = (pattern.slot2 >= 0) & (pattern.first == pattern.second)
        own = dict(zip(pattern.first[is_own].tolist(), pattern.slot2[is_own].tolist(), strict=True))
        stacks: dict[int, list[tuple[Ints, Floats]]] = {}
        for target, edges in by_target.items():
            cause, j, is_latent = self._source[edges], at[edges[0]], is_inner[edges[0]]
            uu = of_inner[j] if is_latent else parts.P[j]
            uv = inner[cause, j] if is_latent else parts.CP[cause, j]
            slots, H = pattern.slot[edges], 2.0 * (uu * rest[np.ix_(cause, cause)] + np.outer(uv, uv))
            if (slot := own.pop(target, -1)) >= 0:
                slots = np.append(slots, slot)
                H = np.block([[H, 2.0 * uu * uv[:, None]], [2.0 * uu * uv[None], np.array([[uu * uu]])]])
            stacks.setdefault(len(slots), []).append((slots, H))
        # Variances of variables without causes, and covariances.
        kk = self._noise_squared(parts, of_inner)
        alone = np.setdiff1d(np.arange(len(x)), [s for stack in stacks.values() for slots, _ in stack for s in slots])
        entry = np.empty(len(x), dtype=np.int64)
        entry[pattern.slot2[pattern.slot2 >= 0]] = np.flatnonzero(pattern.slot2 >= 0)
        if len(alone):
            stacks.setdefault(1, []).extend((np.array([s]), kk[entry[s]].reshape(1, 1)) for s in alone.tolist())
        return Metric(
            [(np.array([s for s, _ in stack]), np.array([H for _, H in stack])) for stack in stacks.values()], free
        )

    def _noise_squared(self, parts: _Parts, of_inner: Floats) -> Floats:
        """(Q,) the diagonal of the expected Hessian by entries of Omega, their covariance with others left out."""
        variance = np.empty((len(self.pattern.first), 2))
        for k, ends in enumerate((self._first, self._second)):
            is_cause = np.isin(np.arange(len(ends)), self._of_causes)
            is_cause |= np.isin(np.arange(len(ends)), self._across) & (k == 0)
            variance[is_cause, k], variance[~is_cause, k] = of_inner[ends[is_cause]], parts.P[ends[~is_cause]]
        by_kind: Floats = np.where(self.pattern.first == self.pattern.second, 1.0, 2.0)
        return by_kind * np.asarray(variance[:, 0] * variance[:, 1])

    def _parts(self, x: Floats) -> _Parts | None:
        """What both need; None where Sigma is not positive definite."""
        pattern, m = self.pattern, self._m
        effects = np.where(pattern.slot >= 0, x[pattern.slot], pattern.fixed)
        noise = np.where(pattern.slot2 >= 0, x[pattern.slot2], pattern.fixed2)
        among = np.zeros((m, m))
        among[self._source[self._inner], self._inner_target] = effects[self._inner]
        E: Floats = np.asarray(np.linalg.inv(np.eye(m) - among), dtype=np.float64)
        Omega = np.zeros((m, m))
        at = self._first[self._of_causes], self._second[self._of_causes]
        Omega[at] = Omega[at[::-1]] = noise[self._of_causes]
        L = np.zeros((m, len(self.S)))
        L[self._source[self._loads], self._loads_on] = effects[self._loads]
        if not (np.isfinite(E).all() and np.isfinite(x).all()):
            return None
        parts = self._by_latents(E, Omega, L, noise) if self._is_simple else None
        return parts or self._by_variables(E, Omega, L, noise)

    def _by_latents(self, E: Floats, Omega: Floats, L: Floats, noise: Floats) -> _Parts | None:
        """By products of as many rows as there are latents; see above. None where few digits would be left."""
        m, S = self._m, self.S
        psi = np.empty(len(S))
        psi[self._first[self._of_others]] = noise[self._of_others]
        Phi = E.T @ Omega @ E
        is_kept = psi >= _LITTLE_NOISE
        left_out = np.flatnonzero(~is_kept)
        D = np.where(is_kept, 1.0 / np.where(is_kept, psi, 1.0), 0.0)
        weights = csr_array(L * D)
        A = weights.toarray()
        J = np.asarray(weights @ L.T)
        inner = np.eye(m) + Phi @ J
        if not np.abs(inner).sum(axis=1).max() < _MOST_EXPLAINED:
            return None
        factor, pivots = lu_factor(inner, overwrite_a=True, check_finite=False)
        W = lu_solve((factor, pivots), Phi, check_finite=False)
        W = 0.5 * (W + W.T)
        AS = np.asarray(weights @ S)
        WA, WAS = W @ A, W @ AS
        value = np.log(psi[is_kept]).sum() + np.log(np.abs(np.diag(factor))).sum() + D @ np.diag(S) - (A * WAS).sum()
        of_left = W @ L[:, left_out]
        k = L[:, left_out].T @ of_left + np.diag(psi[left_out])
        q = -(A.T @ of_left)
        q[left_out, np.arange(len(left_out))] += 1.0
        try:
            root = np.linalg.cholesky(k)
        except np.linalg.LinAlgError:
            return None
        kq = np.linalg.solve(k, q.T)
        kqS = kq @ S
        value += 2.0 * np.log(np.diag(root)).sum() + (kqS * q.T).sum()

        def by_inverse(X: Floats) -> Floats:
            return np.asarray(X * D - np.asarray(weights @ X.T).T @ WA + (X @ q) @ kq)

        CP = WA + of_left @ kq
        CG = CP - by_inverse(WAS + of_left @ kqS)
        # The diagonal of P and of P S P, with P = D - N, N of low rank.
        P = D - (A * WA).sum(axis=0) + (q.T * kq).sum(axis=0)
        NS = (A * WAS).sum(axis=0) - (q.T * kqS).sum(axis=0)
        NSN = (A * (WAS * D - by_inverse(WAS))).sum(axis=0) - (q.T * (kqS * D - by_inverse(kqS))).sum(axis=0)
        G = P - (D * D * np.diag(S) - 2.0 * D * NS + NSN)
        BP = E @ (A - J @ WA + (L[:, left_out] - J @ of_left) @ kq)
        others = self._first[self._of_others]
        return _Parts(float(value), Phi @ L, CP, CG, E @ L, BP, P, G[others], by_inverse)

    def _by_variables(self, E: Floats, Omega: Floats, L: Floats, noise: Floats) -> _Parts | None:
        """By the inverse of Sigma itself."""
        S = self.S
        B = E @ L
        B[:, self._own[1]] = E[:, self._own[0]]
        across, others = self._across, self._of_others
        more = np.zeros_like(L)
        more[self._first[across], self._second[across]] = noise[across]
        right = Omega @ B + more
        Sigma = B.T @ right
        if len(across):
            Sigma += more.T @ B
        i, j = self._first[others], self._second[others]
        Sigma[i, j] += noise[others]
        Sigma[j[i != j], i[i != j]] += noise[others][i != j]
        try:
            factor = cho_factor(Sigma, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None
        inverse = cho_solve(factor, np.eye(len(S)), overwrite_b=True, check_finite=False)
        PS = inverse @ S
        value = 2.0 * float(np.log(np.diag(factor[0])).sum()) + float(np.trace(PS))
        G = inverse - PS @ inverse
        C = E.T @ right
        return _Parts(
            value, C, C @ inverse, C @ G, B, B @ inverse, np.diag(inverse), G[i, j], lambda X: np.asarray(X @ inverse)
        )


class _Parts(NamedTuple):
    """What the gradient and the metric are read from; ``P = Sigma^-1``, ``G = P - P S P``."""

    value: float
    C: Floats  # (m, n) covariances of causes and observed variables
    CP: Floats
    CG: Floats
    B: Floats  # (m, n) total effects of causes on observed variables
    BP: Floats
    P: Floats  # (n,) its diagonal
    G: Floats  # entries that belong to covariances of variables which cause none
    by_inverse: Callable[[Floats], Floats]


class Metric:
    """Blocks of an expected Hessian, factored: ``metric(g)`` solves with them, along the free parameters."""

    def __init__(self, stacks: Sequence[tuple[Ints, Floats]], free: Bools) -> None:
        """``stacks``: slots (c, q) and blocks (c, q, q) of all blocks of a size."""
        self._stacks = []
        for slots, H in stacks:
            unit = np.sqrt(np.diagonal(H, axis1=1, axis2=2))
            unit = np.where(unit > 0.0, unit, 1.0)  # as above
            is_free = free[slots]
            both = is_free[:, :, None] & is_free[:, None, :]
            H = np.where(both, H / (unit[:, :, None] * unit[:, None, :]), 0.0)
            q = H.shape[1]
            H[:, np.arange(q), np.arange(q)] = 1.0 + _DAMPING
            inverse = np.linalg.inv(H) / (unit[:, :, None] * unit[:, None, :])
            self._stacks.append((slots, np.where(both, inverse, 0.0)))

    def __call__(self, gradient: Floats) -> Floats:
        step = np.zeros_like(gradient)
        for slots, inverse in self._stacks:
            step[slots] = np.matmul(inverse, gradient[slots][:, :, None])[:, :, 0]
        return step
