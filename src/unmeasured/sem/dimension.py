"""Generic dimension: how many directions the implied covariance can really move in.

A parameter count is not the dimension. Latents that share all their children can be rotated into each other,
two indicators cannot tell two loadings apart, and no model exceeds the n(n+1)/2 moments there are. The
dimension is the rank of the Jacobian of Sigma at almost every point, so we evaluate that rank at a random
point. Where floating point finds all singular values far from zero, full rank is certain. Otherwise it would
have to guess which of them are zero; we compute with whole numbers modulo a prime of 31 bits instead. Such a
rank never exceeds the true one, and it falls short only where the random point hits a root of a polynomial,
once in millions; two points make that once in 10^12.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Self

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.graphs import CPDAG, DAG
from unmeasured.sem import kernels
from unmeasured.sem.parameters import Model, Pattern, pattern_of


class Dimension(int):
    """The generic dimension, an ``int`` that can explain itself."""

    n_free: int
    n_moments: int
    n_rotations: int

    @classmethod
    def of(cls, value: int, n_free: int, n_moments: int, n_rotations: int) -> Self:
        """A dimension with the counts behind it."""
        self = cls(value)
        self.n_free, self.n_moments, self.n_rotations = n_free, n_moments, n_rotations
        return self

    @property
    def deficiency(self) -> int:
        """Free parameters, less rotations, that the covariance does not show."""
        return self.n_free - self.n_rotations - int(self)

    def explain(self) -> str:
        """One sentence: how the dimension follows from the parameter count."""
        parts = [f"{self.n_free} free parameters"]
        if self.n_rotations:
            parts.append(f"less {self.n_rotations} rotations inside latent groups")
        if self.deficiency:
            parts.append(f"less {self.deficiency} that the covariance cannot tell apart")
        return f"dimension {int(self)} of at most {self.n_moments} moments: {', '.join(parts)}"


def dimension(graph: DAG | CPDAG | Model) -> Dimension:
    """Generic dimension of the set of observed covariance matrices a graph or model can produce.

    >>> star = DAG.from_edges([("L", "a"), ("L", "b"), ("L", "c"), ("L", "d")], latents=["L"])
    >>> dimension(star)
    8
    >>> pair = DAG.from_edges([("L", "a"), ("L", "b")], latents=["L"])
    >>> dimension(pair).explain()
    'dimension 3 of at most 3 moments: 4 free parameters, less 1 that the covariance cannot tell apart'
    """
    pattern = pattern_of(graph)
    n = len(pattern.observed)
    return Dimension.of(
        jacobian_rank(pattern),
        n_free=pattern.n_free,
        n_moments=n * (n + 1) // 2,
        n_rotations=0 if isinstance(graph, Model) else _rotations(graph),
    )


def jacobian_rank(pattern: Pattern) -> int:
    """Rank of dSigma/dparameters at random points, exact but for once in 10^12."""
    # The seed is fixed: the same graph has the same dimension in every run.
    rng = np.random.default_rng(20_261_115)
    n = len(pattern.observed)
    if pattern.n_free <= n * (n + 1) // 2 and _is_clearly_full(pattern, rng):
        return pattern.n_free
    return max(_rank_at(pattern, rng) for _ in range(2))


def _is_clearly_full(pattern: Pattern, rng: np.random.Generator) -> bool:
    """Whether the rows of the Jacobian are independent beyond any rounding."""
    x = rng.uniform(0.5, 1.0, pattern.n_free) * np.where(pattern.is_variance, 2.0, rng.choice([-1, 1], pattern.n_free))
    F, Omega = pattern.matrices(np.append(x, 0.0))
    E = np.linalg.inv(np.eye(len(F)) - F)
    T = E[:, pattern.observed]
    Z = np.concatenate([T, E.T @ Omega @ T])
    u, v = pattern.rows
    J = Z[u, :, None] * Z[v, None, :]
    J = (J + J.transpose(0, 2, 1)).reshape(len(u), -1)
    J /= np.linalg.norm(J, axis=1, keepdims=True) + 1e-300
    # Squared singular values; a zero one would come out at 1e-15.
    return bool(np.linalg.eigvalsh(J @ J.T)[0] > 1e-9)


def _rank_at(pattern: Pattern, rng: np.random.Generator) -> int:
    x = rng.integers(1, kernels.PRIME, pattern.n_free)
    u, v = pattern.rows
    rank: int = kernels.jacobian_rank_modulo(
        pattern.observed, pattern.source, pattern.target, _residues(x, pattern.slot, pattern.fixed),
        pattern.first, pattern.second, _residues(x, pattern.slot2, pattern.fixed2),
        pattern.n_nodes, u, v,
    )  # fmt: skip
    return rank


def _residues(x: Ints, slot: Ints, fixed: Floats) -> Ints:
    """Entries of F or Omega modulo the prime; a fixed 0.5 is the inverse of 2."""
    out = np.empty(len(slot), dtype=np.int64)
    for e, s in enumerate(slot):
        if s >= 0:
            out[e] = x[s]
        else:
            value = Fraction(float(fixed[e])).limit_denominator(10**6)
            out[e] = value.numerator * pow(value.denominator, -1, kernels.PRIME) % kernels.PRIME
    return out


def _rotations(graph: DAG | CPDAG) -> int:
    """k(k-1)/2 for every group of k latents that share all parents and children."""
    dag = graph.member() if isinstance(graph, CPDAG) else graph
    A, latent = dag.adjacency, [dag.names.index(name) for name in dag.latents]
    sizes: dict[bytes, int] = {}
    for i in latent:
        if A[i].any():
            key = A[i].tobytes() + A[:, i].tobytes()
            sizes[key] = sizes.get(key, 0) + 1
    return sum(k * (k - 1) // 2 for k in sizes.values())
