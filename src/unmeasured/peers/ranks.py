"""Tests of the rank of a cross-covariance, in closed form (:mod:`unmeasured.models.rank`); Wishart's of tetrads."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtrc, ndtr

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.models.rank import rank_codimension, rank_shortfalls

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
        # Chi-square with one degree of freedom, by way of the normal distribution, which is several times quicker.
        vanish = (2.0 * ndtr(-np.sqrt(2.0 * max(n_samples - 3.5, 1.0) * shortfalls)) > alpha).all(axis=0)
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


def wishart_pvalues(R: Floats, i: int, j: int, n_samples: float) -> Floats:
    """(2, n, n) p-values of r_ij r_kl = r_ik r_jl and r_ij r_kl = r_il r_jk, for every k and l: Wishart (1928).

    The variance of such a difference is ``((N + 1)/(N - 1) D' D'' - D)/(N - 2)``, with D the determinant of the
    correlations of all four, D' and D'' those of the two pairs in no product. For four different variables only.

    >>> R = np.full((4, 4), 0.5) + 0.5 * np.eye(4)  # one factor
    >>> wishart_pvalues(R, 0, 1, 500)[:, 2, 3].tolist()
    [1.0, 1.0]
    """
    ij, ik, jk = R[i, j], R[i, :, None], R[j, :, None]
    il, jl, kl = R[i, None, :], R[j, None, :], R
    first, second, third = np.broadcast_arrays(ij * kl, ik * jl, il * jk)
    squares = ij**2 + ik**2 + il**2 + jk**2 + jl**2 + kl**2
    triangles = ij * jk * ik + ij * jl * il + ik * kl * il + jk * kl * jl
    det = 1.0 - squares + 2.0 * triangles + (first - second - third) ** 2 - 4.0 * second * third
    pairs = np.stack([(1.0 - il**2) * (1.0 - jk**2), (1.0 - ik**2) * (1.0 - jl**2)])
    n = max(n_samples, 3.0)
    with np.errstate(all="ignore"):  # where two of the four are one variable
        z = np.stack([first - second, first - third]) / np.sqrt(((n + 1.0) / (n - 1.0) * pairs - det) / (n - 2.0))
    return np.asarray(2.0 * ndtr(-np.abs(z)))
