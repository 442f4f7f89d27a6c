"""Exact search: every class of generalized N factor models, with a bound that spares nearly all of them.

::

    measurement models   --rank bound-->   a few   --latent graphs, rank bound-->   classes to fit
    14,011 (8 observed)                    ~100                                     ~200 of 144,253

**The bound.** Let A and B be disjoint sets of observed variables. If a class asks that Cov(A, B) has rank k or less, the
regression of A on B has rank k or less, and the best likelihood of A *given* B falls short of the
unconstrained one by

    LR_k(A, B) = -1/2 sum of log(1 - rho_i^2)      over the canonical correlations of A and B beyond the k largest

per sample, whatever the class says about B. The likelihood of A and B is that of A given B times that of B, so
the shortfall V(Y) of the variables Y obeys

    V(Y)  >=  LR_k(A, B) + V(B)        for every split of Y into A and B, k = rank of Cov(A, B) in the class,
    V(Y)  >=  V(Y without x)

and the best chain of splits is found by going through all subsets of all subsets, 3^n of them: a sum of rank
constraints where :mod:`unmeasured.sem.rank` has one. It never lies, needs no fit, and is close to the fitted shortfall.
The ranks are those of trek separation (Sullivant, Talaska and Draisma 2010); see :func:`cut_sizes`.

**The order.** Best first, by the score a class could have at best: its bound and its dimension, which is known
(:func:`unmeasured.search.enumerate.dimensions`). The search ends when nothing left can enter the list of the best.
What it proves rests on the bound, and on the fits of the classes that were fitted: as everywhere in
maximum likelihood, a fit that ends in a lesser optimum from all its starts would go unnoticed.
"""

from __future__ import annotations

import heapq
import logging
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from tqdm.auto import tqdm

from unmeasured.arrays import Floats, Ints
from unmeasured.data.sample import Sample, as_sample
from unmeasured.errors import DataError, UnmeasuredError, UnmeasuredWarning
from unmeasured.graphs import CPDAG
from unmeasured.search.enumerate import (
    Measurement,
    MeasurementTable,
    checked_group_size,
    count_gnfm,
    dimensions,
    latent_classes,
    measurement_table,
)
from unmeasured.sem.fit import Fit, fit_many
from unmeasured.sem.indices import log_likelihood
from unmeasured.sem.kernels import compiled

logger = logging.getLogger("unmeasured")

MOST_OBSERVED = 10
# A population fits a class when no more than this is missing from the log-likelihood per sample.
_FITS = 1e-7
# Scores closer than this are ties: the optimum of a fit is not known better.
_TIE = 1e-5
# Fits in one compiled batch: enough to hide the overhead, few enough that each batch profits from the last.
_BATCH = 16


# ------------------------------------------------------------------------------------------------- the bound


@dataclass(frozen=True, eq=False)
class RankTable:
    """``LR_k(A, B)`` for all disjoint sets of observed variables, and the best of them against all the rest."""

    code: Ints  # (2^n,) a set as a number in base 3 with digits 0 and 1
    loss: Floats  # (3^n, K) LR_k(A, B) at code[A] + 2 code[B]
    against_rest: Floats  # (2^n, K + 1) the largest LR_k(A', all but A') over the subsets A' of A

    @classmethod
    def of(cls, S: Floats) -> RankTable:
        """The table of a correlation matrix."""
        n = len(S)
        place = np.arange(n)
        subsets = (np.arange(1 << n)[:, None] >> place) & 1
        code = subsets @ 3**place
        loss = _losses(S, (np.arange(3**n)[:, None] // 3**place) % 3, max(n // 2, 1))
        best = np.zeros((1 << n, loss.shape[1] + 1))
        best[:, :-1] = loss[code + 2 * code[::-1]]
        for x in range(n):
            with_x = np.flatnonzero(subsets[:, x])
            best[with_x] = np.maximum(best[with_x], best[with_x ^ (1 << x)])
        return cls(code, loss, best)


def _losses(S: Floats, digits: Ints, n_ranks: int) -> Floats:
    """``LR_k`` (3^n, n_ranks) for all pairs of disjoint sets; a row of digits says 1 for A and 2 for B."""
    sizes = np.stack([(digits == 1).sum(axis=1), (digits == 2).sum(axis=1)], axis=1)
    loss = np.zeros((len(digits), n_ranks))
    for a, b in np.unique(sizes, axis=0).tolist():
        if not 1 <= a <= b:
            continue
        rows = np.flatnonzero((sizes == (a, b)).all(axis=1))
        A, B = (np.nonzero(digits[rows] == kind)[1].reshape(len(rows), -1) for kind in (1, 2))
        tail = _tails(S, A, B)
        loss[rows, :a] = tail
        loss[np.where(digits[rows] == 1, 2, digits[rows] // 2) @ 3 ** np.arange(len(S)), :a] = tail
    return loss


def _tails(S: Floats, A: Ints, B: Ints) -> Floats:
    """``LR_k`` for k = 0, 1, ... (R, a) of pairs of sets given as columns (R, a) and (R, b)."""
    La = np.linalg.cholesky(S[A[:, :, None], A[:, None, :]])
    Lb = np.linalg.cholesky(S[B[:, :, None], B[:, None, :]])
    half = np.linalg.solve(La, S[A[:, :, None], B[:, None, :]])
    rho = np.linalg.svd(np.linalg.solve(Lb, half.transpose(0, 2, 1)), compute_uv=False)
    each = -0.5 * np.log1p(-np.minimum(rho, 1.0 - 1e-15) ** 2)
    tails: Floats = each[:, ::-1].cumsum(axis=1)[:, ::-1]
    return tails


def table_bounds(table: MeasurementTable, ranks: RankTable) -> Floats:
    """(B,) the least shortfall of each measurement model, from one rank constraint each: quick, for all at once.

    The children that have all parents in some groups are tied to the rest by no more dimensions than the groups
    have latents; so are all subsets of them.
    """
    most = ranks.against_rest.shape[1] - 1  # a rank that large is no constraint
    bound = np.zeros(len(table))
    for groups in range(1, 1 << table.n_groups):
        rank = np.minimum(table.total_size(groups), most)
        bound = np.maximum(bound, ranks.against_rest[table.inside(groups), rank])
    return bound


@compiled
def cut_sizes(children: Ints, order: Ints, sizes: Ints) -> Ints:
    """Generic rank of the covariance between any two sets of groups, (2^m, 2^m), by trek separation.

    It is the smallest number of latents in (U, W) such that every trek passes U on its way up or W on its way down.
    ``children`` (m,) and ``order`` (m,) describe a DAG whose nodes stand for groups of ``sizes`` (m,) latents.
    """
    m = len(sizes)
    full = 1 << m
    total = np.zeros(full, dtype=np.int64)
    for s in range(full):
        for g in range(m):
            if s >> g & 1:
                total[s] += sizes[g]
    parents = np.zeros(m, dtype=np.int64)
    for g in range(m):
        for h in range(m):
            if children[g] >> h & 1:
                parents[h] |= 1 << g
    # up[U, g]: where one comes from g going up without U; down[W, g]: where one comes going down without W.
    up = np.zeros((full, m), dtype=np.int64)
    down = np.zeros((full, m), dtype=np.int64)
    for cut in range(full):
        for i in range(m):
            g = order[i]
            if not cut >> g & 1:
                up[cut, g] = 1 << g
                for h in range(m):
                    if parents[g] >> h & 1:
                        up[cut, g] |= up[cut, h]
            g = order[m - 1 - i]
            if not cut >> g & 1:
                down[cut, g] = 1 << g
                for h in range(m):
                    if children[g] >> h & 1:
                        down[cut, g] |= down[cut, h]
    size = np.full((full, full), total[full - 1])
    reached = np.zeros(full, dtype=np.int64)
    for U in range(full):
        for W in range(full):
            for X in range(1, full):
                low = 0
                while not X >> low & 1:
                    low += 1
                found = reached[X & (X - 1)]
                for top in range(m):
                    if up[U, low] >> top & 1:
                        found |= down[W, top]
                reached[X] = found
            for X in range(full):
                size[X, full - 1 & ~reached[X]] = min(size[X, full - 1 & ~reached[X]], total[U] + total[W])
    for g in range(m):
        for X in range(full):
            for Y in range(full):
                if not Y >> g & 1:
                    size[X, Y] = min(size[X, Y], size[X, Y | 1 << g])
    return size


@compiled
def shortfall_bound(
    parents: Ints,
    cuts: Ints,
    code: Ints,
    loss: Floats,
    enough: float,
    inside: Ints,
    weight: Ints,
    reduced: Ints,
    least: Floats,
) -> float:
    """The least shortfall V of a class, by the recursion at the top of this module; stops once above ``enough``.

    ``parents`` (n,) is the measurement model and ``cuts`` the answer of :func:`cut_sizes`. The rank of Cov(A, B) is
    the least of ``cuts[X, Y]`` plus the variables of A with a parent outside X plus those of B with one outside Y,
    over all sets of groups X and Y. The other arguments are room to work in.
    """
    n, full, n_sets = len(parents), 1 << len(parents), len(cuts)
    for Y in range(1, full):
        weight[Y] = weight[Y >> 1] + (Y & 1)
    for X in range(n_sets):
        inside[X] = 0
        for x in range(n):
            if not parents[x] & ~X:
                inside[X] |= 1 << x
    for B in range(full):
        for X in range(n_sets):
            best = n
            for Y in range(n_sets):
                best = min(best, cuts[X, Y] + weight[B & ~inside[Y]])
            reduced[B, X] = best
    for Y in range(1, full):
        value = 0.0
        rest = Y
        while rest:
            low = rest & -rest
            value = max(value, least[Y ^ low])
            rest ^= low
        A = (Y - 1) & Y
        while 2 * A > Y:  # each split once: A is the part with the highest variable
            B = Y ^ A
            pair = code[A] + 2 * code[B]
            known = max(least[A], least[B])
            if loss[pair, 0] + known > value:
                rank = n
                for X in range(n_sets):
                    rank = min(rank, reduced[B, X] + weight[A & ~inside[X]])
                if rank < loss.shape[1]:
                    value = max(value, loss[pair, rank] + known)
            A = (A - 1) & Y
        least[Y] = value
        if value > enough:
            return value
    return least[full - 1]
