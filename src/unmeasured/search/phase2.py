"""Algorithm 2: edges between latent groups, backwards from all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, permutations

import numpy as np

from unmeasured.arrays import Floats, Marks
from unmeasured.errors import Stopped
from unmeasured.graphs import consistent_extension
from unmeasured.graphs.bitsets import bits, mask_of, row_masks, topological_order
from unmeasured.knowledge.rules import Paths
from unmeasured.score import LikelihoodScore
from unmeasured.search.operators import DeleteLL, candidate_deletions
from unmeasured.search.phase1 import Phase
from unmeasured.search.state import Group, State
from unmeasured.sem.rank import least_drop, rank_shortfall
from unmeasured.sem.savings import EXACT, log_dets_of

# A total score has to rise by more than the fits' own rounding.
_LEAST_RISE = 1e-2
# Deletions that are fitted, and additions: those foretold to be best, with few groups and with many. With few, of 3,682
# moves that improved most all but 9 were among the first four of their kind.
_N_FORETOLD, _N_FORETOLD_MANY, _FEW_GROUPS = 5, 12, 6


def run_phase2(start: State, score: LikelihoodScore, delta: float, *, prune: bool = True) -> Phase:
    """S_final of Algorithm 2.

    Its last lines delete the edges inside groups; our states have none (see :class:`State`).
    """
    phase = Phase(start, score, delta, prune)
    with suppress(Stopped):  # where the time is over, the state so far
        _delete(phase)
    return phase


def _delete(phase: Phase) -> None:
    score, delta, prune = phase.score, phase.delta, phase.prune
    while True:
        score.check()
        moves = list(candidate_deletions(phase.state))  # lines 5 to 9
        if not moves:
            break
        before = phase.value()
        bounds = np.array([_bound(phase, move, before) for move in moves])
        drops = bounds.copy()
        tried = [i for i in range(len(moves)) if not prune or bounds[i] <= delta]
        if tried:
            drops[tried] = before - score([moves[i].apply(phase.state) for i in tried])  # lines 10 and 11
        # Line 12: the best score after the deletion; ties go to the first.
        best = min(range(len(moves)), key=lambda i: (round(float(drops[i]), 12), i))
        accepted = bool(drops[best] <= delta)
        what = moves[best].describe(phase.state)
        phase.record("Phase 2", what, len(moves), len(moves) - len(tried), before, float(drops[best]), accepted)
        if not accepted:
            break
        phase.state = moves[best].apply(phase.state)  # line 13


def polish_edges(
    start: State,
    score: LikelihoodScore,
    price: float,
    latent_cov: Floats,
    paths: Paths | None = None,
) -> Phase:
    """Past the paper: delete, add or turn edges one at a time while that improves the score.

    ``price`` is that of a dimension, per sample. The deletions are those of Algorithm 2, with every set H; the backward
    phase never takes one back, this does. ``latent_cov`` (m, m) foretells which of them cost little, and only those are
    fitted: there are thousands beyond seven groups or so. Every class visited has a member that agrees with what is
    known of ``paths``; ``start`` must have one. Where the score's ``check`` ends the work, the best so far.
    """
    phase, foretold = Phase(start, score, price), Foretold(start.groups, latent_cov, price)
    paths = paths or Paths.free(len(start.groups))
    phase.value()  # without that there is nothing to return
    with suppress(Stopped):
        _polish(phase, foretold, paths)
    return phase


def _polish(phase: Phase, foretold: Foretold, paths: Paths) -> None:
    score, price = phase.score, phase.delta
    while True:
        score.check()
        state, before = phase.state, phase.value()
        moves = [*_deletions(state, foretold, paths), *_neighbours(state, foretold, paths)]
        if not moves:
            break
        rises = score([other for _, other in moves]) - before
        rises -= price * np.array([other.n_paths - state.n_paths for _, other in moves])
        best = int(np.argmax(rises))
        if rises[best] <= _LEAST_RISE / score.sample.n:
            break
        what, phase.state = moves[best]
        if len(state.groups) > EXACT:
            # With many groups one edge at a time would take hundreds of rounds of slow fits.
            everything = _all_that_improve(state, moves, rises)
            rise = float(score([everything])[0]) - before - price * (everything.n_paths - state.n_paths)
            if rise > rises[best] and paths.restricted(everything.between) is not None:
                what, phase.state = "all edges that improve", everything
        phase.record("Phase 2", what, len(moves), 0, before, before - phase.value(), True, math.inf)


def _all_that_improve(state: State, moves: Sequence[tuple[str, State]], rises: Floats) -> State:
    """The state after all edges whose change improves the score by itself, as far as they go together."""
    arcs = extension(state.between)
    changed = arcs.copy()
    for i in np.argsort(-rises):
        if rises[i] <= 0.0:
            break
        other = changed.copy()
        target = extension(moves[i][1].between)
        differs = (target | target.T) != (arcs | arcs.T)
        other[differs] = target[differs]
        if _is_acyclic(other):
            changed = other
    return state.along(changed)


def extension(marks: Marks | None) -> Marks:
    """A graph of a class that is known to have one."""
    arcs = None if marks is None else consistent_extension(marks)
    if arcs is None:
        raise AssertionError("a state always has a consistent extension")
    return arcs


class Foretold:
    """What moves would do to the score, per sample, if the latents were observed with a covariance (m, m).

    Sets of groups are bits of a number.
    """

    def __init__(self, groups: tuple[Group, ...], cov: Floats, price: float) -> None:
        self._groups, self._cov, self._price = groups, cov, price
        self._sizes = [len(group) for group in groups]
        # Of few groups the determinants of all sets are made at once.
        self._log_dets = log_dets_of(cov, self._sizes).tolist() if len(groups) <= EXACT else None
        self._known: dict[int, float] = {}
        self._local: dict[tuple[int, int], float] = {}

    def _log_det(self, mask: int) -> float:
        """Log determinant of the covariance of some groups."""
        if self._log_dets is not None:
            return float(self._log_dets[mask])
        if mask not in self._known:
            of = [latent for g in bits(mask) for latent in self._groups[g]]
            self._known[mask] = float(np.linalg.slogdet(self._cov[np.ix_(of, of)])[1]) if of else 0.0
        return self._known[mask]

    def local(self, group: int, parents: int) -> float:
        """What a group with these parents contributes to the score."""
        if (group, parents) not in self._local:
            width = self._sizes[group] * sum(self._sizes[g] for g in bits(parents))
            explained = self._log_det(parents | 1 << group) - self._log_det(parents)
            self._local[group, parents] = -0.5 * explained - self._price * width
        return self._local[group, parents]

    def deletion(self, out: Sequence[int], into: Sequence[int], move: DeleteLL) -> float:
        """The rise if an edge is deleted from a class with these marks; ``given`` is :meth:`DeleteLL.separating`."""
        first, second = move.first, move.second
        heads = into[second] & out[second] & (into[first] | out[first])
        given = heads & ~mask_of(move.H) | into[second] & ~out[second] & ~(1 << first)
        return self.local(second, given) - self.local(second, given | 1 << first)

    def arc(self, parents: Sequence[int], i: int, j: int) -> float:
        """The rise if i -> j is added to a graph with these parents, or j -> i turned into it."""
        rise = self.local(j, parents[j] | 1 << i) - self.local(j, parents[j])
        if parents[i] >> j & 1:
            rise += self.local(i, parents[i] & ~(1 << j)) - self.local(i, parents[i])
        return rise


def _deletions(state: State, foretold: Foretold, paths: Paths) -> list[tuple[str, State]]:
    """The deletions of Algorithm 2 that are foretold to cost least."""
    out, into = row_masks(state.between), row_masks(state.between.T)
    ranked = sorted(candidate_deletions(state), key=lambda move: -foretold.deletion(out, into, move))
    moves = ((move.describe(state), move.apply(state)) for move in ranked)
    possible = (move for move in moves if paths.restricted(move[1].between) is not None)
    return list(islice(possible, _n_foretold(state)))


def _neighbours(state: State, foretold: Foretold, paths: Paths) -> Iterator[tuple[str, State]]:
    """Classes of the graphs that differ from a member by an edge added or turned: those that are foretold best.

    The member agrees with what is known, and so does a graph that has no forbidden arrow more.
    """
    arcs = extension(paths.restricted(state.between))
    open_pairs = [pair for pair in permutations(range(len(arcs)), 2) if not arcs[pair] and not paths.forbidden[pair]]
    parents = row_masks(arcs.T)
    seen = {state.between.tobytes()}
    for i, j in sorted(open_pairs, key=lambda pair: -foretold.arc(parents, *pair)):
        other = arcs.copy()
        other[i, j], other[j, i] = 1, 0
        if len(seen) <= _n_foretold(state) and _is_acyclic(other):
            neighbour = state.along(other)
            if neighbour.between.tobytes() not in seen:
                seen.add(neighbour.between.tobytes())
                did = "turn" if arcs[j, i] else "add"
                yield f"{did} the edge between groups {i + 1} and {j + 1}", neighbour


def _n_foretold(state: State) -> int:
    """How many deletions are fitted, and how many additions."""
    return _N_FORETOLD if len(state.groups) <= _FEW_GROUPS else _N_FORETOLD_MANY


def _is_acyclic(arcs: Marks) -> bool:
    return len(topological_order(row_masks(arcs.T), row_masks(arcs))) == len(arcs)


def _bound(phase: Phase, move: DeleteLL, before: float) -> float:
    """After the deletion the two groups are independent given some others: a rank constraint on their children.

    With A the pure children of the first group and half of those of the separating groups, B those of the second
    and the other halves, rank(Sigma_AB) is at most the number of separating latents (the paper's proof of
    Theorem 2). The constraint concerns A and B alone, so the likelihood of these variables bounds that of all.
    """
    state = phase.state
    separating = move.separating(state)
    A = list(state.pure_children(state.groups[move.first]))
    B = list(state.pure_children(state.groups[move.second]))
    for g in separating:
        children = state.pure_children(state.groups[g])
        half = len(children) // 2
        A += children[:half]
        B += children[half:]
    rank = sum(len(state.groups[g]) for g in separating)
    variables = [*A, *B]
    S = phase.score.sample.corr[np.ix_(variables, variables)]
    return least_drop(rank_shortfall(S, list(range(len(A))), rank), -before)
