"""Tests of the rank of a cross-covariance, from the closed form of :mod:`unmeasured.sem.rank`."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtrc

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.sem.rank import rank_codimension, rank_shortfalls

# What rounding leaves of a rank that holds exactly, per sample.
_ROUNDING = 1e-9


def rank_pvalues(S: Floats, subsets: Ints, k: int, n_samples: float) -> Floats:
    """(B,) probabilities, for subsets (B, a), of more misfit than seen if rank(Sigma_{A, rest}) <= k.

    Bartlett's test of canonical correlations: ``2 (N - (n + 3)/2)`` times the log-likelihood that the constraint
    costs per sample is chi-square with as many degrees of freedom as the constraint removes dimensions. In a
    population the answer is 1 or 0.

    >>> S = np.full((4, 4), 0.5) + 0.5 * np.eye(4)  # one factor
    >>> rank_pvalues(S, np.array([[0, 1]]), 1, math.inf).tolist(), rank_pvalues(S, np.array([[0, 1]]), 0, 1e4).tolist()
    ([1.0], [0.0])
    """
    shortfalls = rank_shortfalls(S, subsets, k)
    if math.isinf(n_samples):
        return np.asarray(shortfalls < _ROUNDING, dtype=float)
    df = rank_codimension(len(S), subsets.shape[1], k)
    if df == 0:
        return np.ones(len(subsets))  # no matrix of that shape has a larger rank
    factor = 2.0 * max(n_samples - 0.5 * (len(S) + 3), 1.0)
    return np.asarray(chdtrc(df, factor * shortfalls))


def vanishing_tetrads(R: Floats, i: int, j: int, n_samples: float, alpha: float) -> Bools:
    """(n, n) whether all three tetrads of i, j, k, l vanish, for every k and l other than i and j.

    A tetrad is a rank constraint on two pairs: rank(Sigma_{ij, kl}) <= 1. Here for all k and l at once, from the
    correlations R; pairs that are no four different variables are called vanishing.
    """
    ij, ik, jk = R[i, j], R[i, :, None], R[j, :, None]
    il, jl, kl = R[i, None, :], R[j, None, :], R
    with np.errstate(all="ignore"):  # where two of the four are one variable; overwritten below
        smallest = np.stack(
            np.broadcast_arrays(
                _second_root(ij, kl, ik, il, jk, jl),
                _second_root(ik, jl, ij, il, jk, kl),  # {i, k} against {j, l}; R is symmetric
                _second_root(il, jk, ij, ik, jl, kl),
            )
        )
        shortfalls = -0.5 * np.log1p(-np.clip(smallest, 0.0, 1.0))
    if math.isinf(n_samples):
        vanish = (shortfalls < _ROUNDING).all(axis=0)
    else:
        vanish = (chdtrc(1, 2.0 * max(n_samples - 3.5, 1.0) * shortfalls) > alpha).all(axis=0)
    vanish[[i, j], :] = vanish[:, [i, j]] = True
    np.fill_diagonal(vanish, True)
    return np.asarray(vanish, dtype=bool)


def _second_root(ab: Floats, cd: Floats, ac: Floats, ad: Floats, bc: Floats, bd: Floats) -> Floats:
    """The smaller squared canonical correlation of {a, b} and {c, d}, elementwise from their six correlations."""
    both = (1.0 - ab**2) * (1.0 - cd**2)
    trace = (ac**2 + ad**2 + bc**2 + bd**2 + 2.0 * ab * cd * (ac * bd + ad * bc)) - 2.0 * (
        ab * (ac * bc + ad * bd) + cd * (ac * ad + bc * bd)
    )
    trace = trace / both
    det = (ac * bd - ad * bc) ** 2 / both
    # The larger root has no cancellation; the product of both is the determinant.
    larger = 0.5 * (trace + np.sqrt(np.maximum(trace**2 - 4.0 * det, 0.0)))
    return np.where(larger > 0, det / larger, 0.0)
