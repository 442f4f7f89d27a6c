"""Compiled climbs over graphs of groups: arcs are added, deleted or reversed while BIC in closed form rises.

The criterion is :class:`unmeasured.search.score.GroupBic`. A graph is described by four arrays, which change in place:

=========  ======  ============================================================================
marks      (G, G)  arcs, from row to column
gains      (G, G)  by how much the term of group h (row) rises if g is added to its parents, or taken from them
tops       (G,)    the largest of each row: where it is not above zero, no change of the parents helps
reaches    (G, G)  which group causes which, directly or not
=========  ======  ============================================================================

A change of the parents of a group costs the inverse of a small covariance and a look at each other group, some
microseconds with 60 groups; the same by arrays takes a hundred times as long, which is mostly calls. Compiling takes
some seconds, so it is left until a search has so many groups (:mod:`unmeasured.search.warm` compiles what all need).
"""

from __future__ import annotations

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints, Marks
from unmeasured.kernels.likelihood import compiled, inner

# What is left of a variance where others leave nothing of it.
_LEAST = 1e-12
# As in the budget: sums of closed forms rise by more than rounding, and changes that differ by less than this part gain
# the same.
_LEAST_RISE, _TIE = 1e-9, 1e-6


@inner
def _log_det_left(rows: Floats, known: int, C: Floats, root: Floats) -> float:
    """Log determinant of ``C - rows[:, :known] rows[:, :known]'``; ``root`` is scratch."""
    total = 0.0
    for x in range(rows.shape[0]):
        for y in range(x + 1):
            s = C[x, y]
            for r in range(known):
                s -= rows[x, r] * rows[y, r]
            for r in range(y):
                s -= root[x, r] * root[y, r]
            if x == y:
                s = max(s, _LEAST)
                root[x, x] = np.sqrt(s)
                total += np.log(s)
            else:
                root[x, y] = s / root[y, y]
    return total


@inner
def _inverse_of_root(L: Floats, out: Floats) -> None:
    """``out``: inverse of a lower triangular matrix."""
    for k in range(L.shape[0]):
        out[k, k] = 1.0 / L[k, k]
        for i in range(k + 1, L.shape[0]):
            s = 0.0
            for r in range(k, i):
                s -= L[i, r] * out[r, k]
            out[i, k] = s / L[i, i]


@inner
def _gains_of(
    Phi: Floats, first: Ints, n: float, penalty: float, edge_prior: float, marks: Marks, h: int, gains: Floats
) -> float:
    """``gains`` (G,) of group ``h``; and the largest."""
    G = first.shape[0] - 1
    own = first[h + 1] - first[h]
    q = 0
    for g in range(G):
        if marks[g, h]:
            q += first[g + 1] - first[g]
    t = q + own
    # The root of the covariance of all parents, then of the group itself.
    of, L = np.empty(t, dtype=np.int64), np.zeros((t, t))
    q = 0
    for g in range(G):
        if marks[g, h]:
            for i in range(first[g], first[g + 1]):
                of[q] = i
                q += 1
    for i in range(own):
        of[q + i] = first[h] + i
    for i in range(t):
        for k in range(i + 1):
            s = Phi[of[i], of[k]]
            for r in range(k):
                s -= L[i, r] * L[k, r]
            L[i, k] = np.sqrt(max(s, _LEAST)) if i == k else s / L[k, k]
    largest = 0
    for g in range(G):
        largest = max(largest, first[g + 1] - first[g])
    rows, C, root = np.empty((largest, t)), np.empty((largest, largest)), np.empty((largest, largest))
    top: float = 0.0
    for g in range(G):
        gains[g] = 0.0
        if g == h or marks[g, h]:
            continue
        size = first[g + 1] - first[g]
        for x in range(size):
            i = first[g] + x
            for k in range(t):
                s = Phi[i, of[k]]
                for r in range(k):
                    s -= rows[x, r] * L[k, r]
                rows[x, k] = s / L[k, k]
            for y in range(x + 1):
                C[x, y] = Phi[i, first[g] + y]
        # Given the parents, what the group itself leaves of the other one says what that would explain.
        explained = _log_det_left(rows[:size], t, C, root) - _log_det_left(rows[:size], q, C, root)
        gains[g] = -0.5 * n * explained - penalty * own * size - edge_prior
        top = max(top, gains[g])
    if q == 0:
        return top
    # The precision of the parents, and of the parents and the group: the inverse of what the others leave of each.
    inverse = np.zeros((t, t))
    _inverse_of_root(L, inverse)
    begin = 0
    for g in range(G):
        if not marks[g, h]:
            continue
        size = first[g + 1] - first[g]
        for x in range(size):
            for y in range(x + 1):
                s = 0.0
                for r in range(begin + x, q):
                    s += inverse[r, begin + x] * inverse[r, begin + y]
                C[x, y] = s
        without = _log_det_left(rows[:size], 0, C, root)
        for x in range(size):
            for y in range(x + 1):
                for r in range(q, t):
                    C[x, y] += inverse[r, begin + x] * inverse[r, begin + y]
        explained = _log_det_left(rows[:size], 0, C, root) - without
        gains[g] = -0.5 * n * explained + penalty * own * size + edge_prior
        top = max(top, gains[g])
        begin += size
    return top


@inner
def _find_reaches(marks: Marks, reaches: Bools) -> None:
    """Which group causes which: effects first, each group reaches what its children do."""
    G = marks.shape[0]
    left, order = np.zeros(G, dtype=np.int64), np.empty(G, dtype=np.int64)
    for g in range(G):
        for h in range(G):
            left[h] += marks[g, h]
            reaches[g, h] = False
    end = 0
    for g in range(G):
        if left[g] == 0:
            order[end] = g
            end += 1
    at = 0
    while at < end:
        g = order[at]
        at += 1
        for h in range(G):
            if marks[g, h]:
                left[h] -= 1
                if left[h] == 0:
                    order[end] = h
                    end += 1
    for k in range(end - 1, -1, -1):
        g = order[k]
        for h in range(G):
            if marks[g, h]:
                reaches[g, h] = True
                for x in range(G):
                    reaches[g, x] |= reaches[h, x]


@inner
def _has_detour(marks: Marks, reaches: Bools, g: int, h: int) -> bool:
    """Whether g causes h by way of another group, so that g → h reversed would close a cycle."""
    found = False
    for k in range(marks.shape[0]):
        found |= k != h and marks[g, k] and reaches[k, h]
    return found


@inner
def _change(
    Phi: Floats, first: Ints, n: float, penalty: float, edge_prior: float,
    marks: Marks, gains: Floats, tops: Floats, reaches: Bools, g: int, h: int, is_reversed: bool,
) -> float:  # fmt: skip
    """Reverse the arc g → h, or else delete it where it is there and add it where it is not; the rise."""
    rise = float(gains[h, g])
    if is_reversed:
        rise += gains[g, h]
        marks[g, h], marks[h, g] = 0, 1
        tops[g] = _gains_of(Phi, first, n, penalty, edge_prior, marks, g, gains[g])
        _find_reaches(marks, reaches)
    elif marks[g, h]:
        marks[g, h] = 0
        _find_reaches(marks, reaches)
    else:
        marks[g, h] = 1
        for x in range(marks.shape[0]):
            if x == g or reaches[x, g]:
                reaches[x, h] = True
                for y in range(marks.shape[0]):
                    reaches[x, y] |= reaches[h, y]
    tops[h] = _gains_of(Phi, first, n, penalty, edge_prior, marks, h, gains[h])
    return rise


@inner
def _climb(
    Phi: Floats, first: Ints, n: float, penalty: float, edge_prior: float,
    marks: Marks, gains: Floats, tops: Floats, reaches: Bools, b: int, c: int, is_barred_back: bool,
) -> float:  # fmt: skip
    """The best single change until none helps; the rise. No arc b → c comes in, and where so asked none c → b.

    Where groups are nearly functions of others rounding may lead around in a circle, so changes are counted: of 60
    groups with 60 to 900 edges climbs make some hundreds, far less than there are pairs.
    """
    G = marks.shape[0]
    total = 0.0
    for _ in range(G * G):
        best, best_g, best_h, is_reversed = _LEAST_RISE, -1, -1, False
        for h in range(G):
            if tops[h] <= 0.0:
                continue
            for g in range(G):
                if g == h:
                    continue
                # g → h deleted, or added, where that closes no cycle ...
                rise = gains[h, g]
                if rise > best * (1.0 + _TIE):
                    is_open = not (g == b and h == c) and not (is_barred_back and g == c and h == b)
                    if marks[g, h] or (not marks[h, g] and not reaches[h, g] and is_open):
                        best, best_g, best_h, is_reversed = rise, g, h, False
                # ... or reversed, either way round: one of the two groups gains by it.
                rise += gains[g, h]
                if rise > best * (1.0 + _TIE):
                    for x, y in ((g, h), (h, g)):
                        is_open = not (y == b and x == c) and not (is_barred_back and y == c and x == b)
                        if marks[x, y] and is_open and not _has_detour(marks, reaches, x, y):
                            best, best_g, best_h, is_reversed = rise, x, y, True
        if best_g < 0:
            break
        total += _change(
            Phi, first, n, penalty, edge_prior, marks, gains, tops, reaches, best_g, best_h, is_reversed
        )  # fmt: skip
    return total


@compiled
def describe(
    Phi: Floats, first: Ints, n: float, penalty: float, edge_prior: float,
    marks: Marks, gains: Floats, tops: Floats, reaches: Bools,
) -> None:  # fmt: skip
    """Fill in the other arrays of a graph."""
    for h in range(marks.shape[0]):
        tops[h] = _gains_of(Phi, first, n, penalty, edge_prior, marks, h, gains[h])
    _find_reaches(marks, reaches)


@compiled
def climb_on(
    Phi: Floats, first: Ints, n: float, penalty: float, edge_prior: float,
    marks: Marks, gains: Floats, tops: Floats, reaches: Bools,
    g: int, h: int, is_reversed: bool, is_let_back: bool,
) -> float:  # fmt: skip
    """The best single change until none helps; the rise.

    With an arc g → h, not -1: a detour, from the graph without that arc, or with it reversed; minus infinity where that
    is a cycle. What was deleted or reversed does not come back; where it ``is_let_back``, it may after all once no
    other change helps.
    """
    rise = 0.0
    if g >= 0:
        if is_reversed and _has_detour(marks, reaches, g, h):
            return -np.inf
        rise += _change(Phi, first, n, penalty, edge_prior, marks, gains, tops, reaches, g, h, is_reversed)
    is_barred_back = not is_reversed
    for _ in range(2):
        rise += _climb(Phi, first, n, penalty, edge_prior, marks, gains, tops, reaches, g, h, is_barred_back)
        if not is_let_back:
            break
        g, h = -1, -1
    return rise


@compiled
def reverse_covered(marks: Marks) -> None:
    """Another graph of the same class: every arc whose groups have the same other parents is reversed, one by one."""
    G = marks.shape[0]
    done = np.zeros((G, G), dtype=np.bool_)
    for g in range(G):
        for h in range(G):
            if marks[g, h] and not done[g, h]:
                is_covered = True
                for k in range(G):
                    is_covered &= k == g or marks[k, g] == marks[k, h]
                if is_covered:
                    marks[g, h], marks[h, g] = 0, 1
                    done[h, g] = True
