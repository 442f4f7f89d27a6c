"""Compiled parts of what the latent graph will save: the best graph over groups if the latents had been observed.

With few groups it is found exactly: the best parents of each group among every set of others, then the best last group
of every set, both by dynamic programming over subsets (Silander and Myllymäki 2006). The criterion itself is
:class:`unmeasured.search.score.GroupBic`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np

from unmeasured.arrays import Floats, Ints, Marks
from unmeasured.kernels.likelihood import compiled, inner


@compiled
def covariance_along(effects: Floats, Phi: Floats) -> None:
    """``Phi`` (m, m): covariance of latents with unit noise, whose effects on later ones are ``effects`` (m, >= m)."""
    for j in range(Phi.shape[0]):
        Phi[j, j] = 1.0
        for i in range(j):
            s = 0.0
            for k in range(j):
                s += Phi[i, k] * effects[k, j]
            Phi[i, j] = s
            Phi[j, i] = s
        for k in range(j):
            Phi[j, j] += Phi[j, k] * effects[k, j]


@inner
def solve_among(of: Ints, M: Floats, ridge: float, A: Floats, b: Floats) -> None:
    """Solve ``M[of, of] x = b`` in place, A being scratch: a few equations that may be nearly the same.

    By Cholesky with pivots that stay positive; :func:`unmeasured.kernels.likelihood.cholesky` refuses such systems
    instead.
    """
    q = of.shape[0]
    for i in range(q):
        for k in range(i + 1):
            s = M[of[i], of[k]]
            if i == k:
                s = s * (1.0 + ridge) + 1e-3 * ridge
            for t in range(k):
                s -= A[i, t] * A[k, t]
            A[i, k] = np.sqrt(max(s, 1e-12)) if i == k else s / A[k, k]
    for i in range(q):
        for t in range(i):
            b[i] -= A[i, t] * b[t]
        b[i] /= A[i, i]
    for i in range(q - 1, -1, -1):
        for t in range(i + 1, q):
            b[i] -= A[t, i] * b[t]
        b[i] /= A[i, i]


@compiled
def effects_along(effects: Floats, Phi: Floats, causes: Marks, out: Floats) -> None:
    """Effects ``out`` (m, m + n) of latents with covariance ``Phi`` if only some cause others: ``causes`` (m, m).

    Each latent is regressed on its causes, and measured in units of what they leave of it.
    """
    m = Phi.shape[0]
    of, A, b, unit = np.empty(m, dtype=np.int64), np.empty((m, m)), np.empty(m), np.empty(m)
    for j in range(m):
        q = 0
        for i in range(m):
            out[i, j] = 0.0
            if causes[i, j]:
                of[q] = i
                q += 1
        for i in range(q):
            b[i] = Phi[of[i], j]
        solve_among(of[:q], Phi, 0.0, A, b)
        left = Phi[j, j]
        for i in range(q):
            out[of[i], j] = b[i]
            left -= b[i] * Phi[of[i], j]
        unit[j] = np.sqrt(max(left, 1e-3 * Phi[j, j]))
    for i in range(m):
        for j in range(m):
            out[i, j] *= unit[i] / unit[j]
        for j in range(m, out.shape[1]):
            out[i, j] = effects[i, j] * unit[i]


@compiled
def log_dets(Phi: Floats, first: Ints, out: Floats) -> None:
    """``out`` (2^G,): log determinant of the covariance of every set of groups; group g begins at ``first[g]``.

    Sets are gone through so that mostly the last groups change, and what is left of the covariance given the earlier
    ones is kept: a set costs as much as its few last groups.
    """
    G = first.shape[0] - 1
    m = Phi.shape[0]
    given = np.empty((G + 1, m, m))  # given[g]: covariance of groups from g on, given those of the set before g
    total = np.zeros(G + 1)
    for i in range(m):  # by element: assigning a whole array takes four times as long to compile
        for j in range(m):
            given[0, i, j] = Phi[i, j]
    changed = 0  # the first group that is in this set and not in the last one, or the other way round
    for count in range(1 << G):
        mask = 0
        for g in range(G):
            if count >> (G - 1 - g) & 1:
                mask |= 1 << g
        for g in range(changed, G):
            C, total[g + 1] = given[g + 1], total[g]
            begin = first[g] if mask >> g & 1 else first[g + 1]
            for i in range(begin, m):
                for j in range(i, m):
                    C[i, j] = given[g, i, j]
            for i in range(begin, first[g + 1]):
                pivot = max(C[i, i], 1e-12)
                total[g + 1] += np.log(pivot)
                for j in range(i + 1, m):
                    f = C[i, j] / pivot
                    for k in range(j, m):
                        C[j, k] -= f * C[i, k]
        out[mask] = total[G]
        changed = G - 1
        while changed > 0 and count >> (G - 1 - changed) & 1:
            changed -= 1


@compiled
def best_graph(log_det: Floats, sizes: Ints, n_samples: float, penalty: float, arcs: Marks) -> float:
    """The best score of a graph over the groups: log-likelihood less a penalty for each path, constants left out.

    ``arcs`` (G, G), zero before, becomes that graph.
    """
    G = sizes.shape[0]
    width = np.zeros(1 << G, dtype=np.int64)
    for mask in range(1, 1 << G):
        for g in range(G):
            if mask >> g & 1:
                width[mask] = width[mask & ~(1 << g)] + sizes[g]
                break
    # What group g adds with the best of some parents; sets leave out the bit of g itself.
    local = np.empty((G, 1 << max(G - 1, 0)))
    for g in range(G):
        row = local[g]
        for few in range(row.shape[0]):
            mask = few & (1 << g) - 1 | few >> g << g + 1
            explained = log_det[mask | 1 << g] - log_det[mask]
            row[few] = -0.5 * n_samples * explained - penalty * sizes[g] * width[mask]
        # The best of all subsets, one parent after the other; two rows at once, where they are long.
        for h in range(G - 1):
            bit = 1 << h
            if bit < 8:
                for few in range(row.shape[0]):
                    if few & bit:
                        row[few] = max(row[few], row[few - bit])
            else:
                for begin in range(0, row.shape[0], 2 * bit):
                    without, having = row[begin : begin + bit], row[begin + bit : begin + 2 * bit]
                    for k in range(bit):
                        having[k] = max(having[k], without[k])
    best, last = np.full(1 << G, -np.inf), np.zeros(1 << G, dtype=np.int64)
    best[0] = 0.0
    for mask in range(1, 1 << G):
        for g in range(G):
            if mask >> g & 1:
                value = best[mask & ~(1 << g)] + local[g, mask & (1 << g) - 1 | mask >> g + 1 << g]
                if value > best[mask]:
                    best[mask], last[mask] = value, g
    mask = (1 << G) - 1
    while mask:
        g = last[mask]
        mask &= ~(1 << g)
        few = mask & (1 << g) - 1 | mask >> g + 1 << g
        left = few
        while left:  # a parent that goes without a loss is none
            bit = left & -left
            left &= left - 1
            if local[g, few & ~bit] == local[g, few]:
                few &= ~bit
        for h in range(G):
            if few >> (h if h < g else h - 1) & 1 and h != g:
                arcs[h, g] = 1
    return float(best[(1 << G) - 1])


def log_dets_of(Phi: Floats, sizes: Sequence[int]) -> Floats:
    """(2^G,) log determinant of the covariance of every set of groups, a bit for each group."""
    out = np.empty(1 << len(sizes))
    log_dets(Phi, as_array((0, *accumulate(sizes))), out)
    return out


@lru_cache(maxsize=1024)
def as_array(numbers: tuple[int, ...]) -> Ints:
    """Sizes of groups, or where they begin, as compiled code reads them; made once for thousands of models."""
    return np.array(numbers, dtype=np.int64)
