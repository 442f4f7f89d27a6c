"""What the latent graph will save: the best graph over the groups if the latents were observed as they are fitted.

A measurement model is fitted with all groups connected and pays for every path between them. Which of those paths the
data need is decided later, by fits. Here it is foretold from the covariance of the latents alone, so that two
measurement models with different groups are compared by what they will cost in the end.

With few groups the best graph is found exactly: the best parents of each group among every set of others, then the
best last group of every set, both by dynamic programming over subsets (Silander and Myllymäki 2006).
"""

from __future__ import annotations

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.sem.kernels import compiled

# Subsets are counted up to this many groups; beyond, groups are taken off one by one, greedily.
_EXACT = 9


@compiled
def log_dets(Phi: Floats, first: Ints, out: Floats) -> None:
    """``out`` (2^G,): log determinant of the covariance of every set of groups; group g begins at ``first[g]``."""
    G = first.shape[0] - 1
    m = Phi.shape[0]
    L = np.empty((m, m))
    index = np.empty(m, dtype=np.int64)
    for mask in range(1 << G):
        q = 0
        for g in range(G):
            if mask >> g & 1:
                for i in range(first[g], first[g + 1]):
                    index[q] = i
                    q += 1
        total = 0.0
        for i in range(q):
            for k in range(i + 1):
                s = Phi[index[i], index[k]]
                for t in range(k):
                    s -= L[i, t] * L[k, t]
                if i == k:
                    s = max(s, 1e-12)
                    total += np.log(s)
                    L[i, i] = np.sqrt(s)
                else:
                    L[i, k] = s / L[k, k]
        out[mask] = total


@compiled
def best_graph_score(log_det: Floats, sizes: Ints, n_samples: float, price: float) -> float:
    """The best score of a graph over the groups: log-likelihood less the price of its paths, constants left out."""
    G = sizes.shape[0]
    width = np.zeros(1 << G, dtype=np.int64)
    for mask in range(1, 1 << G):
        for g in range(G):
            if mask >> g & 1:
                width[mask] = width[mask & ~(1 << g)] + sizes[g]
                break
    best_parents = np.empty((G, 1 << G))
    for g in range(G):
        bit = 1 << g
        for mask in range(1 << G):
            if mask & bit:
                continue
            best = -0.5 * n_samples * (log_det[mask | bit] - log_det[mask]) - price * sizes[g] * width[mask]
            for h in range(G):
                if mask >> h & 1:
                    best = max(best, best_parents[g, mask & ~(1 << h)])
            best_parents[g, mask] = best
    best_order = np.full(1 << G, -np.inf)
    best_order[0] = 0.0
    for mask in range(1, 1 << G):
        for g in range(G):
            if mask >> g & 1:
                rest = mask & ~(1 << g)
                best_order[mask] = max(best_order[mask], best_order[rest] + best_parents[g, rest])
    return float(best_order[(1 << G) - 1])


def latent_savings(Phi: Floats, sizes: tuple[int, ...], n_samples: float, price: float) -> float:
    """By how much the score will rise once paths that are not needed are gone; never negative.

    >>> Phi = np.eye(3)  # nothing is connected: all three paths can go
    >>> round(latent_savings(Phi, (1, 1, 1), 100.0, 2.0), 6)
    6.0
    """
    if len(sizes) > _EXACT:
        return _greedy_savings(Phi, sizes, n_samples, price)
    width = np.array(sizes)
    log_det = np.empty(1 << len(sizes))
    log_dets(Phi, np.concatenate([[0], width.cumsum()]), log_det)
    n_paths = (width.sum() ** 2 - (width**2).sum()) // 2
    connected = -0.5 * n_samples * float(log_det[-1]) - price * float(n_paths)
    return float(best_graph_score(log_det, width, n_samples, price)) - connected


def _greedy_savings(Phi: Floats, sizes: tuple[int, ...], n_samples: float, price: float) -> float:
    """Take off the group that saves most as the last one, its parents dropped one by one; and again."""
    ends = np.cumsum([0, *sizes])
    left, total = list(range(len(sizes))), 0.0
    while len(left) > 1:
        options = [(_last_saves(Phi, ends, g, [h for h in left if h != g], n_samples, price), g) for g in left]
        saved, last = max(options)
        total += saved
        left.remove(last)
    return total


def _last_saves(Phi: Floats, ends: Ints, g: int, parents: list[int], n_samples: float, price: float) -> float:
    def local(parents: list[int]) -> float:
        of = [i for h in parents for i in range(ends[h], ends[h + 1])]
        both = [*range(ends[g], ends[g + 1]), *of]
        left = np.linalg.slogdet(Phi[np.ix_(both, both)])[1] - (
            np.linalg.slogdet(Phi[np.ix_(of, of)])[1] if of else 0.0
        )
        return float(-0.5 * n_samples * left - price * (ends[g + 1] - ends[g]) * len(of))

    first = value = local(parents)
    while parents:
        options = [(local([h for h in parents if h != gone]), gone) for gone in parents]
        best, gone = max(options)
        if best <= value:
            break
        value = best
        parents = [h for h in parents if h != gone]
    return value - first
