"""Rank likelihood in closed form, and the bound made of it.

Let A be a set of observed variables and ask that its cross-covariance with all others has rank at most k,
everything else free. The best log-likelihood under that constraint falls short of the saturated one, per
sample, by

    LR_k(A) = 1/2 sum of log(lambda_i)      over the |A| - k smallest eigenvalues lambda_i of S_AA P_AA

with ``P = S^-1``. The eigenvalues are ``1 / (1 - rho_i^2)`` for the canonical correlations rho_i between A and
the rest: the constraint sets the smallest of these to zero. One eigenproblem of size |A|, however many
variables there are.
"""

from __future__ import annotations

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.errors import UnmeasuredError
from unmeasured.kernels.likelihood import compiled
from unmeasured.models import device


def rank_shortfall(S: Floats, subset: Ints | list[int], k: int, *, P: Floats | None = None) -> float:
    """Log-likelihood per sample lost by asking rank(Sigma_{A, rest}) <= k, for A given by column numbers.

    >>> S = np.array([[1.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 1.0]])
    >>> shared = 1 - np.linalg.det(S) / np.linalg.det(S[1:, 1:])  # squared multiple correlation of the first
    >>> bool(np.isclose(rank_shortfall(S, [0], 0), -0.5 * np.log(1 - shared)))
    True
    """
    return float(rank_shortfalls(S, np.array([subset]), k, P=P)[0])


def rank_shortfalls(S: Floats, subsets: Ints, k: int, *, P: Floats | None = None) -> Floats:
    """The same for many subsets of one size: ``subsets`` is (B, a), the answer (B,)."""
    if not k >= 0:
        raise UnmeasuredError(f"A rank is not negative; got k = {k}.")
    if subsets.ndim != 2:
        raise UnmeasuredError(f"Subsets come as a table, one a row; got {subsets.ndim} dimensions.")
    n_roots = subsets.shape[1] - k
    if n_roots <= 0 or len(S) - subsets.shape[1] <= k:
        return np.zeros(len(subsets))  # no matrix of that shape has a larger rank
    P = np.asarray(np.linalg.inv(S), dtype=float) if P is None else P
    if device.takes(len(subsets)):
        return device.smallest_roots(S, P, subsets, n_roots)
    shortfalls = np.empty(len(subsets))
    smallest_roots(S, P, np.ascontiguousarray(subsets), n_roots, shortfalls)
    return shortfalls


@compiled
def smallest_roots(S: Floats, P: Floats, subsets: Ints, n_roots: int, out: Floats) -> None:
    """Half the sum of the logarithms of the smallest eigenvalues of ``S_AA P_AA``, for each row A of ``subsets``."""
    n_subsets, a = subsets.shape
    S_AA, P_AA = np.empty((a, a)), np.empty((a, a))
    for b in range(n_subsets):
        for i in range(a):
            for j in range(a):
                S_AA[i, j] = S[subsets[b, i], subsets[b, j]]
                P_AA[i, j] = P[subsets[b, i], subsets[b, j]]
        L = np.linalg.cholesky(S_AA)
        roots = np.linalg.eigvalsh(L.T @ P_AA @ L)
        out[b] = 0.0
        for i in range(n_roots):
            # Rounding may leave a root a hair below one; its logarithm is then zero, not negative.
            out[b] += 0.5 * np.log(max(roots[i], 1.0))


@compiled
def nearest_roots(S: Floats, turns: Ints, subsets: Ints, k: int, most: int, out: Floats, counts: Ints) -> None:
    """``out``: what rank <= k costs each row A of ``subsets`` with its nearest others, ``counts`` of them, per sample.

    ``turns`` (n, n) says when each variable chooses another, n: never; of a set every member chooses in turn, and of
    two with the same turn the one that is correlated more comes first.
    """
    n, a = S.shape[0], subsets.shape[1]
    near, turn_of, size_of = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(most)
    own, cross = np.empty((a, a)), np.empty((a, most))
    rest, squared = np.empty((most, most)), np.empty((a, a))
    for b in range(subsets.shape[0]):
        A = subsets[b]
        m = 0
        for j in range(n):
            turn, size, is_own = n, 0.0, False
            for i in range(a):
                turn = min(turn, turns[A[i], j])
                size = max(size, abs(S[A[i], j]))
                is_own |= A[i] == j
            if is_own or turn >= n:
                continue
            if m == most and (turn > turn_of[m - 1] or (turn == turn_of[m - 1] and size <= size_of[m - 1])):
                continue
            m = min(m + 1, most)
            at = m - 1
            while at > 0 and (turn < turn_of[at - 1] or (turn == turn_of[at - 1] and size > size_of[at - 1])):
                near[at], turn_of[at], size_of[at] = near[at - 1], turn_of[at - 1], size_of[at - 1]
                at -= 1
            near[at], turn_of[at], size_of[at] = j, turn, size
        counts[b], out[b] = m, 0.0
        if m <= k:
            continue
        # Roots of the covariances of both, and what is left of those between them.
        for x in range(a):
            for y in range(x + 1):
                s = S[A[x], A[y]]
                for r in range(y):
                    s -= own[x, r] * own[y, r]
                own[x, y] = np.sqrt(max(s, 1e-12)) if x == y else s / own[y, y]
            for y in range(m):
                s = S[A[x], near[y]]
                for r in range(x):
                    s -= own[x, r] * cross[r, y]
                cross[x, y] = s / own[x, x]
        for x in range(m):
            for y in range(x + 1):
                s = S[near[x], near[y]]
                for r in range(y):
                    s -= rest[x, r] * rest[y, r]
                rest[x, y] = np.sqrt(max(s, 1e-12)) if x == y else s / rest[y, y]
            for i in range(a):
                s = cross[i, x]
                for r in range(x):
                    s -= rest[x, r] * cross[i, r]
                cross[i, x] = s / rest[x, x]
        for x in range(a):
            for y in range(a):
                s = 0.0
                for r in range(m):
                    s += cross[x, r] * cross[y, r]
                squared[x, y] = s
        roots = np.linalg.eigvalsh(squared)  # canonical correlations, squared
        for i in range(a - k):
            out[b] -= 0.5 * np.log1p(-min(max(roots[i], 0.0), 1.0 - 1e-12))


def rank_codimension(n: int, size: int, k: int) -> int:
    """How many dimensions the constraint removes: (|A| - k)(n - |A| - k).

    >>> rank_codimension(15, 2, 1)
    12
    """
    return max(size - k, 0) * max(n - size - k, 0)


def least_drop(shortfall: float, misfit: float) -> float:
    """A bound that never lies: the least a step can cost that puts A on k latents.

    The candidate satisfies the rank constraint, so its likelihood is at least ``shortfall`` below the saturated
    one, while the present state is only ``misfit`` below it. All per sample.
    """
    return shortfall - misfit
