"""A graph over many groups of latents, as if these had been observed with the covariance they are fitted with.

For more groups than an exact search takes. The score is a sum over groups, so a move changes one term, or two where an
edge is turned. First forwards: edges are added, deleted or turned in a DAG while BIC rises. Where no edge can be added
any more, every group is independent of those it does not cause given its parents, so nothing is missing; then backwards
over classes, by the deletions of Algorithm 2, which in the limit of many samples end at the true class (Chickering
2002).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np

from unmeasured.arrays import Bools, Floats, Marks
from unmeasured.errors import Stopped
from unmeasured.graphs import cpdag_of
from unmeasured.search.paper.operators import DeleteLL, candidate_deletions
from unmeasured.search.paper.state import State
from unmeasured.sem.savings import rough_savings
from unmeasured.sem.solve import Check, is_over, never

# A total score has to rise by more than rounding.
_LEAST_RISE = 1e-9
# Rises that differ by less than this part are the same.
_TIE = 1e-6


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

    def total(self, arcs: Marks) -> float:
        """The score of a graph (G, G)."""
        return sum(self(g, frozenset(np.flatnonzero(arcs[:, g]).tolist())) for g in range(self.n_groups))

    def rough_graph(self) -> Marks:
        """A graph (G, G) from one look at each pair of groups, in the order they have."""
        arcs = np.zeros((self.n_groups,) * 2, dtype=np.uint8)
        rough_savings(self._Phi, np.array(self._sizes), self._n_samples, self._price, arcs)
        return arcs

    def _log_det_of(self, groups: frozenset[int]) -> float:
        columns = [i for g in sorted(groups) for i in self._columns[g]]
        return float(np.linalg.slogdet(self._Phi[np.ix_(columns, columns)])[1]) if columns else 0.0


def latent_class(state: State, score: LatentBic, check: Check = never) -> State:
    """The state with the class over its groups that is best by ``score``, forwards and backwards.

    Where ``check`` says that the time is over, the best so far, or a graph from one look at each pair of groups.
    """
    arcs = climbed_graph(score, check=check)
    if is_over(check):
        rough = score.rough_graph()
        return replace(state, between=cpdag_of(arcs if score.total(arcs) >= score.total(rough) else rough))
    state = replace(state, between=cpdag_of(arcs))
    while True:
        rises: dict[DeleteLL, float] = {}
        try:
            check()
            for move in candidate_deletions(state):
                check()
                rises[move] = _rise_of_deletion(score, state, move)
        except Stopped:
            return state
        best = max(rises, key=rises.__getitem__, default=None)
        if best is None or rises[best] <= _LEAST_RISE:
            return state
        state = best.apply(state)


def _rise_of_deletion(score: LatentBic, state: State, move: DeleteLL) -> float:
    given = frozenset(move.separating(state))
    return score(move.second, given) - score(move.second, given | {move.first})


def climbed_graph(score: LatentBic, start: Marks | None = None, check: Check = never) -> Marks:
    """The graph (G, G) where no single move raises the score, from a DAG or from no edges.

    Where ``check`` says that the time is over, the graph so far.

    >>> Phi = 0.8 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))  # a chain
    >>> arcs = climbed_graph(LatentBic(Phi, (1, 1, 1, 1), 1000.0, 3.45))
    >>> np.argwhere(np.triu(arcs | arcs.T)).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    arcs = np.zeros((score.n_groups,) * 2, dtype=np.uint8) if start is None else start.copy()
    # A move changes the parents of one group, or two, and only what their terms would gain has to be asked again.
    rises = np.zeros(arcs.shape)
    for group in range(score.n_groups):
        if is_over(check):
            return arcs
        rises[:, group] = _rises(score, arcs, group)
    while not is_over(check):
        toggled, turned = _legal(arcs)
        options = np.stack([np.where(toggled, rises, -np.inf), np.where(turned, rises + rises.T, -np.inf)], axis=-1)
        # Both directions of an edge often gain the same; which of them is taken is not for rounding to say.
        g, h, turn = np.unravel_index(np.argmax(options >= (1.0 - _TIE) * options.max()), options.shape)
        if options[g, h, turn] <= _LEAST_RISE:
            return arcs
        arcs[g, h] ^= 1
        arcs[h, g] ^= np.uint8(turn)
        for child in (g, h) if turn else (h,):
            rises[:, child] = _rises(score, arcs, int(child))
    return arcs


def _legal(arcs: Marks) -> tuple[Bools, Bools]:
    """(G, G) twice: which edges g → h can be added or deleted, and which turned, without making a cycle."""
    there = arcs.astype(bool)
    reaches = _reaches(arcs)
    # Turned: no way from g to h through another child of g.
    detour = there.astype(np.int64) @ reaches.astype(np.int64) > 0
    can_be_added = ~there & ~there.T & ~reaches.T & ~np.eye(len(arcs), dtype=bool)
    return there | can_be_added, there & ~detour


def _reaches(arcs: Marks) -> Bools:
    """(G, G) which group causes which, directly or not."""
    reaches = arcs.astype(bool)
    while True:
        further = reaches | (reaches.astype(np.int64) @ reaches.astype(np.int64) > 0)
        if np.array_equal(further, reaches):
            return reaches
        reaches = further


def _rises(score: LatentBic, arcs: Marks, child: int) -> Floats:
    """(G,) what the term of a group gains if another becomes its parent, or is one no more."""
    parents = frozenset(np.flatnonzero(arcs[:, child]).tolist())
    now = score(child, parents)
    return np.array([0.0 if g == child else score(child, parents ^ {g}) - now for g in range(len(arcs))])
