"""A graph over many groups of latents, as if these had been observed with the covariance they are fitted with.

For more groups than an exact search takes. The score is a sum over groups, so a move changes one term, or two where an
edge is turned. First forwards: edges are added, deleted or turned in a DAG while BIC rises. Where no edge can be added
any more, every group is independent of those it does not cause given its parents, so nothing is missing; then backwards
over classes, by the deletions of Algorithm 2, which in the limit of many samples end at the true class (Chickering
2002).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np

from unmeasured.arrays import Bools, Floats, Marks
from unmeasured.graphs import cpdag_of
from unmeasured.search.operators import DeleteLL, candidate_deletions
from unmeasured.search.state import State

Move = tuple[int, int, bool, bool]  # g, h, and whether g → h and h → g are there afterwards

# A total score has to rise by more than rounding.
_LEAST_RISE = 1e-9


class LatentBic:
    """Log-likelihood less the price of paths for one group and its parents, with a memory; constants left out."""

    def __init__(self, Phi: Floats, sizes: tuple[int, ...], n_samples: float, price: float) -> None:
        ends = np.cumsum([0, *sizes]).tolist()
        self.n_groups = len(sizes)
        self._Phi, self._sizes = Phi, sizes
        self._columns = [list(range(a, b)) for a, b in pairwise(ends)]
        self._n_samples, self._price = n_samples, price
        self._log_det = cache(self._log_det_of)

    def __call__(self, group: int, parents: frozenset[int]) -> float:
        """The term of one group."""
        explained = self._log_det(parents | {group}) - self._log_det(parents)
        n_paths = self._sizes[group] * sum(self._sizes[h] for h in parents)
        return -0.5 * self._n_samples * explained - self._price * n_paths

    def _log_det_of(self, groups: frozenset[int]) -> float:
        columns = [i for g in sorted(groups) for i in self._columns[g]]
        return float(np.linalg.slogdet(self._Phi[np.ix_(columns, columns)])[1]) if columns else 0.0


def latent_class(state: State, score: LatentBic) -> State:
    """The state with the class over its groups that is best by ``score``, forwards and backwards."""
    state = replace(state, between=cpdag_of(climbed_graph(score)))
    while True:
        rises = {move: _rise_of_deletion(score, state, move) for move in candidate_deletions(state)}
        best = max(rises, key=rises.__getitem__, default=None)
        if best is None or rises[best] <= _LEAST_RISE:
            return state
        state = best.apply(state)


def _rise_of_deletion(score: LatentBic, state: State, move: DeleteLL) -> float:
    given = frozenset(move.separating(state))
    return score(move.second, given) - score(move.second, given | {move.first})


def climbed_graph(score: LatentBic, start: Marks | None = None) -> Marks:
    """The graph (G, G) where no single move raises the score, from a DAG or from no edges.

    >>> Phi = 0.8 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))  # a chain
    >>> arcs = climbed_graph(LatentBic(Phi, (1, 1, 1, 1), 1000.0, 3.45))
    >>> np.argwhere(np.triu(arcs | arcs.T)).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    arcs = np.zeros((score.n_groups,) * 2, dtype=np.uint8) if start is None else start.copy()
    while True:
        best, rise = None, _LEAST_RISE
        for move in _moves(arcs):
            gained = _rise(score, arcs, move)
            if gained > rise:
                best, rise = move, gained
        if best is None:
            return arcs
        g, h, forth, back = best
        arcs[g, h], arcs[h, g] = forth, back


def _moves(arcs: Marks) -> Iterator[Move]:
    """Every edge that can be added, deleted or turned without making a cycle."""
    reaches = _reaches(arcs)
    for g, h in np.argwhere(~np.eye(len(arcs), dtype=bool)).tolist():
        if arcs[g, h]:
            yield g, h, False, False
            without = arcs[g].astype(bool) & (np.arange(len(arcs)) != h)
            if not (without & reaches[:, h]).any():  # turned: no other way from g to h
                yield g, h, False, True
        elif not arcs[h, g] and not reaches[h, g]:
            yield g, h, True, False


def _reaches(arcs: Marks) -> Bools:
    """(G, G) which group causes which, directly or not."""
    reaches = arcs.astype(bool)
    while True:
        further = reaches | (reaches.astype(np.int64) @ reaches.astype(np.int64) > 0)
        if np.array_equal(further, reaches):
            return reaches
        reaches = further


def _rise(score: LatentBic, arcs: Marks, move: Move) -> float:
    g, h, forth, back = move
    rise = 0.0
    for child, parent, is_there in ((h, g, forth), (g, h, back)):
        if arcs[parent, child] != is_there:
            parents = frozenset(np.flatnonzero(arcs[:, child]).tolist())
            rise += score(child, parents ^ {parent}) - score(child, parents)
    return rise
