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
from scipy.linalg import lapack

from unmeasured.arrays import Floats, Ints
from unmeasured.graphs import CPDAG, DAG
from unmeasured.kernels import likelihood as kernels
from unmeasured.models.parameters import Model, Pattern, pattern_of

# With more free parameters than this whole numbers are given up where floating point is clear enough.
_MANY = 400
# With more, their matrix takes gigabytes: all parameters but rotations are taken to count, as they do in measurement
# models whose latents have three indicators each.
_MOST = 8000
# The same where there is hardly any time left: it takes 1.2 s with 2,858 parameters, and grows with their cube.
_MOST_IF_HURRIED = 3000
# Ranks of so many large patterns are remembered.
_MOST_KNOWN = 8
_known: dict[tuple[bytes, int], int] = {}


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


def dimension(graph: DAG | CPDAG | Model, *, is_hurried: bool = False) -> Dimension:
    """Generic dimension of the set of observed covariance matrices a graph or model can produce.

    ``is_hurried``: with thousands of parameters all but rotations are taken to count, which is not checked.

    >>> star = DAG.from_edges([("L", "a"), ("L", "b"), ("L", "c"), ("L", "d")], latents=["L"])
    >>> dimension(star)
    8
    >>> pair = DAG.from_edges([("L", "a"), ("L", "b")], latents=["L"])
    >>> dimension(pair).explain()
    'dimension 3 of at most 3 moments: 4 free parameters, less 1 that the covariance cannot tell apart'
    """
    pattern = pattern_of(graph)
    n = len(pattern.observed)
    n_rotations = 0 if isinstance(graph, Model) else _rotations(graph)
    return Dimension.of(
        jacobian_rank(pattern, n_rotations, _MOST_IF_HURRIED if is_hurried else _MOST),
        n_free=pattern.n_free,
        n_moments=n * (n + 1) // 2,
        n_rotations=n_rotations,
    )


def jacobian_rank(pattern: Pattern, n_rotations: int = 0, most_checked: int = _MOST) -> int:
    """Rank of dSigma/dparameters at random points, exact but for once in 10^12.

    ``n_rotations``: directions that are known to change nothing; the rank is at most what they leave, and with more
    parameters than ``most_checked`` it is taken to be that.
    """
    n = len(pattern.observed)
    most = pattern.n_free - n_rotations
    if pattern.n_free <= _MANY:
        return _jacobian_rank(pattern, most)
    if pattern.n_free > most_checked:
        return min(most, n * (n + 1) // 2)
    # An answer has the same graph under several names, and to look takes a second for a thousand variables.
    key = b"".join(part.tobytes() for part in (*pattern.ints, pattern.fixed, pattern.fixed2)), most
    if key not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[key] = _jacobian_rank(pattern, most)
    return _known[key]


def _jacobian_rank(pattern: Pattern, most: int) -> int:
    # The seed is fixed: the same graph has the same dimension in every run.
    rng = np.random.default_rng(20_261_115)
    n = len(pattern.observed)
    if 0 < most <= n * (n + 1) // 2:
        rank, least = _clear_rank(_inner_products(pattern, rng))
        # Whole numbers take minutes with thousands of parameters; a gap this wide is no rounding.
        if (rank == most and least > 1e-9) or (pattern.n_free > _MANY and least > 1e-6):
            return rank
    return max(_rank_at(pattern, rng) for _ in range(2))


def _clear_rank(G: Floats) -> tuple[int, float]:
    """The rank of a matrix of inner products by pivots, and the least pivot that counts; a zero comes out at 1e-15."""
    factor, _, rank, _ = lapack.dpstrf(G, tol=1e-12, lower=1)
    return int(rank), float(factor[rank - 1, rank - 1] ** 2) if rank else 0.0


def _inner_products(pattern: Pattern, rng: np.random.Generator) -> Floats:
    """(p, p) of the rows of the Jacobian, of unit length, at a random point.

    The inner product of two rows is read from that of the rows of Z, as the Hessian is
    (:mod:`unmeasured.kernels.likelihood`).
    """
    x = rng.uniform(0.5, 1.0, pattern.n_free) * np.where(pattern.is_variance, 1.0, rng.choice([-1, 1], pattern.n_free))
    # Small effects: where variances grow along the graph, rounding hides most of what tells rows apart.
    target = pattern.ends[:, 1]
    n_causes = np.maximum(np.bincount(target[pattern.is_path], minlength=pattern.n_nodes), 1)
    share = np.where(pattern.is_observed[target], 1.0, 0.5) / np.sqrt(n_causes[target])
    x *= np.where(pattern.is_path, share, 1.0)
    F, Omega = pattern.matrices(np.append(x, 0.0))
    E = np.linalg.inv(np.eye(len(F)) - F)
    T = E[:, pattern.observed]
    Z = np.concatenate([T, E.T @ Omega @ T])
    u, v = pattern.rows
    K = Z @ Z.T
    G = K[np.ix_(u, u)] * K[np.ix_(v, v)] + K[np.ix_(u, v)] * K[np.ix_(v, u)]
    unit = np.sqrt(np.maximum(np.diag(G), 1e-200))
    return np.asarray(G / np.outer(unit, unit))


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
