"""Mean and covariance of one group as functions of its parameters, with first and second derivatives.

The model of :mod:`unmeasured.kernels.likelihood` with intercepts: ``V = alpha + F'V + e``, ``Cov(e) = Omega``. With
``E = (I - F)^-1`` and ``T = E[:, observed]``,

    mu    = T' alpha              Sigma = T' Omega T
    m     = E' alpha              V     = E' Omega E         (mean and covariance of all variables)

    d mu / d alpha_i = T[i]       d mu / d F_ij = T[j] m[i]
    d Sigma / d F_ij = T[j]' V[i, observed] + its transpose
    d Sigma / d Omega_ij = T[i]' T[j] + its transpose          (half of that for a variance)

The moments of a group are stacked as ``(mu, vech Sigma)``, vech in the order of ``numpy.tril_indices``. Here everything
is written out with arrays: confirmatory fits are few. The search has the compiled kernels, which know no means.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.models.parameters import Parameter, Pattern


@dataclass(frozen=True, eq=False)
class Directions:
    """How each parameter moves the moments: mu by a row of ``mu``, Sigma by ``u v' + v u'``."""

    mu: Floats  # (p, n)
    u: Floats  # (p, n)
    v: Floats  # (p, n)

    @cached_property
    def jacobian(self) -> Floats:
        """(moments, p) the same as derivatives of the stacked moments."""
        i, j = np.tril_indices(self.mu.shape[1])
        return np.concatenate([self.mu, self.u[:, i] * self.v[:, j] + self.v[:, i] * self.u[:, j]], axis=1).T

    def gradient(self, g: Floats, G: Floats) -> Floats:
        """(p,) derivatives of what has the slopes g in mu and G in Sigma, G symmetric."""
        return np.asarray(self.mu @ g + 2.0 * (self.u @ G * self.v).sum(axis=1))

    def beside(self, other: Directions) -> Directions:
        """These, and others after them."""
        return Directions(
            np.concatenate([self.mu, other.mu]), np.concatenate([self.u, other.u]), np.concatenate([self.v, other.v])
        )


@dataclass(frozen=True, eq=False)
class Structure:
    """The parameters of one group: entries of F and Omega (a pattern), then intercepts; ``where`` they are kept.

    Local parameters are numbered as the pattern does, intercepts after them. ``where`` gives the position of each in
    the parameter vector of all groups: two with the same position are equal by constraint.
    """

    pattern: Pattern
    nodes: Ints  # (M,) variables with an intercept that is free or fixed to something
    slots: Ints  # (M,) local number, -1 where fixed
    fixed: Floats  # (M,)
    where: Ints  # (p,) position of each local parameter in the joint vector

    @classmethod
    def saturated_means(cls, pattern: Pattern) -> Structure:
        """A covariance structure with a free intercept for each observed variable and mean 0 for latents."""
        n, p = len(pattern.observed), pattern.n_free
        return cls(pattern, pattern.observed, np.arange(p, p + n), np.zeros(n), np.arange(p + n))

    @classmethod
    def of_covariances(cls, pattern: Pattern) -> Structure:
        """A covariance structure without intercepts."""
        none = np.empty(0, dtype=np.int64)
        return cls(pattern, none, none, np.empty(0), np.arange(pattern.n_free))

    @property
    def n_local(self) -> int:
        """How many parameters this group has, equal ones counted separately."""
        return len(self.where)

    def among(self, names: Collection[str]) -> Bools:
        """(p,) which local parameters are (co)variances or intercepts of these variables alone."""
        member = np.array([name in names for name in self.pattern.names], dtype=bool)
        mask = np.zeros(self.n_local, dtype=bool)
        mask[: self.pattern.n_free] = member[self.pattern.ends].all(axis=1) & ~self.pattern.is_path
        free = self.slots >= 0
        mask[self.slots[free]] = member[self.nodes[free]]
        return mask

    def at(self, theta: Floats) -> Point:
        """The moments at a joint parameter vector."""
        return self.at_local(theta[self.where])

    def at_local(self, x: Floats) -> Point:
        """The moments at a vector of local parameters."""
        F, Omega = self.pattern.matrices(np.append(x, 0.0))
        alpha = np.zeros(self.pattern.n_nodes)
        alpha[self.nodes] = np.where(self.slots >= 0, np.append(x, 0.0)[self.slots], self.fixed)
        return Point(self, F, Omega, alpha)

    def joined(self, local: Floats, size: int) -> Floats:
        """Columns (or the entries of a vector) of local parameters added up at their places in the joint vector."""
        out = np.zeros((*local.shape[:-1], size))
        np.add.at(out.T, self.where, local.T)
        return out


@dataclass(frozen=True, eq=False)
class Point:
    """A structure at some parameters."""

    structure: Structure
    F: Floats
    Omega: Floats
    alpha: Floats

    @cached_property
    def E(self) -> Floats:
        """(d, d) total effects."""
        return np.asarray(np.linalg.inv(np.eye(len(self.F)) - self.F))

    @cached_property
    def T(self) -> Floats:
        """(d, n) total effects on the observed variables."""
        return self.E[:, self.structure.pattern.observed]

    @cached_property
    def V(self) -> Floats:
        """(d, d) covariance of all variables."""
        return self.E.T @ self.Omega @ self.E

    @cached_property
    def C(self) -> Floats:
        """(d, n) covariance of all variables with the observed ones."""
        return self.V[:, self.structure.pattern.observed]

    @cached_property
    def m(self) -> Floats:
        """(d,) mean of all variables."""
        return self.E.T @ self.alpha

    @cached_property
    def Sigma(self) -> Floats:
        """(n, n) covariance of the observed variables."""
        S = self.C[self.structure.pattern.observed]
        return (S + S.T) / 2.0

    @cached_property
    def mu(self) -> Floats:
        """(n,) mean of the observed variables."""
        return self.m[self.structure.pattern.observed]

    @cached_property
    def directions(self) -> Directions:
        """How each local parameter moves the moments."""
        s, pattern = self.structure, self.structure.pattern
        n, p = len(pattern.observed), pattern.n_free
        mu, u, v = (np.zeros((s.n_local, n)) for _ in range(3))
        a, b = pattern.ends[:, 0], pattern.ends[:, 1]
        u[:p] = self.T[b]
        v[:p] = np.where(pattern.is_path[:, None], self.C[a], self.T[a])
        v[:p][pattern.is_variance] *= 0.5
        mu[:p] = np.where(pattern.is_path[:, None], self.T[b] * self.m[a][:, None], 0.0)
        free = s.slots >= 0
        mu[s.slots[free]] = self.T[s.nodes[free]]
        return Directions(mu, u, v)

    def towards(self, parameters: Sequence[Parameter]) -> Directions:
        """How entries of F and Omega move the moments, free or not."""
        node = {name: k for k, name in enumerate(self.structure.pattern.names)}
        a = np.array([node[p.source] for p in parameters], dtype=np.int64)
        b = np.array([node[p.target] for p in parameters], dtype=np.int64)
        path = np.array([p.op != "~~" for p in parameters], dtype=bool)[:, None]
        u, v = self.T[b], np.where(path, self.C[a], self.T[a])
        return Directions(
            np.where(path, u * self.m[a][:, None], 0.0), u, np.where(~path & (a == b)[:, None], 0.5, 1.0) * v
        )

    @property
    def jacobian(self) -> Floats:
        """(n + n(n+1)/2, p) derivatives of the moments in the local parameters."""
        return self.directions.jacobian

    def curvature(self, g: Floats, G: Floats) -> Floats:
        """(p, p) second derivatives of ``g' mu + tr(G Sigma)`` in the local parameters, G symmetric.

        With ``t = T g``, ``A = T G T'`` and ``B = T G C'`` those of two paths i -> j and a -> b are
        ``2 (E[j,a] B[b,i] + A[j,b] V[a,i] + B[j,a] E[b,i]) + E[j,a] t[b] m[i] + t[j] E[b,i] m[a]``.
        """
        s, pattern = self.structure, self.structure.pattern
        E, V, T, m = self.E, self.V, self.T, self.m
        A, B, t = T @ G @ T.T, T @ G @ self.C.T, T @ g
        H = np.zeros((s.n_local, s.n_local))
        path = np.flatnonzero(pattern.is_path)
        i, j = (pattern.ends[path, k][:, None] for k in (0, 1))
        a, b = i.T, j.T
        H[np.ix_(path, path)] = (
            2.0 * (E[j, a] * B[b, i] + A[j, b] * V[a, i] + B[j, a] * E[b, i])
            + E[j, a] * t[b] * m[i]
            + t[j] * E[b, i] * m[a]
        )
        noise = np.flatnonzero(~pattern.is_path)
        a, b = (pattern.ends[noise, k][None, :] for k in (0, 1))
        half = np.where(pattern.is_variance[noise], 0.5, 1.0)
        H[np.ix_(path, noise)] = 2.0 * half * (A[j, a] * E[b, i] + A[j, b] * E[a, i])
        H[np.ix_(noise, path)] = H[np.ix_(path, noise)].T
        free = s.slots >= 0
        mean, node = s.slots[free], s.nodes[free][None, :]
        H[np.ix_(path, mean)] = t[j] * E[node, i]
        H[np.ix_(mean, path)] = H[np.ix_(path, mean)].T
        return H


def vech(S: Floats) -> Floats:
    """The lower triangle of symmetric matrices (..., n, n), row by row."""
    i, j = np.tril_indices(S.shape[-1])
    return S[..., i, j]
