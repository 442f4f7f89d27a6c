"""Edges between latent groups by fits of the whole model: delete, add or turn one at a time while the score rises.

Past the paper, whose backward phase never takes a deletion back. Thousands of moves are possible beyond seven groups or
so. Which of them are likely to help is predicted from the covariance of the latents as they are fitted now, as if they
had been observed, and only the best few are fitted::

    all deletions of Algorithm 2 ──┐
                                   ├─► predicted gain ──► the best few ──► fits ──► the best, if the score rises
    all edges to add or turn ──────┘
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, permutations

import numpy as np

from unmeasured.arrays import Floats, Marks
from unmeasured.errors import Stopped
from unmeasured.graphs import consistent_extension
from unmeasured.graphs.bitsets import bits, mask_of, row_masks, topological_order
from unmeasured.knowledge.rules import Paths
from unmeasured.search.budget import BUDGET
from unmeasured.search.paper.operators import DeleteLL, candidate_deletions
from unmeasured.search.paper.state import Group, State
from unmeasured.search.score import LikelihoodScore
from unmeasured.search.trace import Recorder, Step
from unmeasured.sem.savings import EXACT, log_dets_of


class EdgeClimb:
    """A class on its way up, its score and the steps that brought it there.

    ``penalty`` is that of a dimension and ``base`` what the measurement model costs, both per sample.
    """

    def __init__(self, start: State, score: LikelihoodScore, penalty: float, base: float) -> None:
        self.state, self.score, self.penalty, self._base = start, score, penalty, base
        self.steps: list[Step] = []
        self._recorder = Recorder(self.steps, score)
        self.likelihood = float(score([start])[0])

    @property
    def value(self) -> float:
        """Extended BIC per sample."""
        return self.likelihood - self.penalty * self.state.n_paths - self._base

    def go(self, what: str, state: State) -> None:
        """Take a step, and write it down."""
        n = self.score.sample.n
        value, likelihood, n_paths = self.value, self.likelihood, self.state.n_paths
        self.state, self.likelihood = state, float(self.score([state])[0])
        reason = (
            f"log-likelihood {n * (self.likelihood - likelihood):+.2f}, {state.n_paths - n_paths:+d} paths at "
            f"{n * self.penalty:.2f} each"
        )
        self._recorder.write(
            "Edges between latents", what, n * value, n * self.value, reason, tolerance=BUDGET.least_rise
        )  # fmt: skip


def refine_edges(
    climb: EdgeClimb, latent_cov: Floats, paths: Paths | None = None, predicted: PredictedGains | None = None
) -> EdgeClimb:
    """Delete, add or turn edges one at a time while that improves the score.

    The deletions are those of Algorithm 2, with every set H. ``latent_cov`` (m, m) predicts which moves gain most.
    Every class visited has a member that agrees with what is known of ``paths``; the first must have one. Where the
    score's ``check`` ends the work, the best so far. ``predicted``: gains that are known otherwise.
    """
    state = climb.state
    with suppress(Stopped):
        gains = predicted or PredictedGains(state.groups, latent_cov, climb.penalty)
        _climb(climb, gains, paths or Paths.free(len(state.groups)))
    return climb


def _climb(climb: EdgeClimb, predicted: PredictedGains, paths: Paths) -> None:
    score, penalty = climb.score, climb.penalty
    while True:
        score.check()
        state, before = climb.state, climb.likelihood
        moves = [*_deletions(state, predicted, paths), *_neighbours(state, predicted, paths)]
        if not moves:
            break
        rises = score([other for _, other in moves]) - before
        rises -= penalty * np.array([other.n_paths - state.n_paths for _, other in moves])
        best = int(np.argmax(rises))
        if rises[best] <= BUDGET.least_rise / score.sample.n:
            break
        what, chosen = moves[best]
        if len(state.groups) > EXACT:
            # With many groups one edge at a time would take hundreds of rounds of slow fits.
            everything = _all_that_improve(state, moves, rises)
            rise = float(score([everything])[0]) - before - penalty * (everything.n_paths - state.n_paths)
            if rise > rises[best] and paths.restricted(everything.between) is not None:
                what, chosen = "all edges that improve", everything
        climb.go(what, chosen)


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


class PredictedGains:
    """What moves would do to the score, per sample, if the latents were observed with a covariance (m, m).

    Sets of groups are bits of a number.
    """

    def __init__(self, groups: tuple[Group, ...], cov: Floats, penalty: float) -> None:
        self._groups, self._cov, self._penalty = groups, cov, penalty
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
            self._local[group, parents] = -0.5 * explained - self._penalty * width
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


def _deletions(state: State, predicted: PredictedGains, paths: Paths) -> list[tuple[str, State]]:
    """The deletions of Algorithm 2 with the best predicted gains."""
    out, into = row_masks(state.between), row_masks(state.between.T)
    ranked = sorted(candidate_deletions(state), key=lambda move: -predicted.deletion(out, into, move))
    moves = ((move.describe(state), move.apply(state)) for move in ranked)
    possible = (move for move in moves if paths.restricted(move[1].between) is not None)
    return list(islice(possible, _n_predicted(state)))


def _neighbours(state: State, predicted: PredictedGains, paths: Paths) -> Iterator[tuple[str, State]]:
    """Classes of the graphs that differ from a member by an edge added or turned: those with the best predicted gains.

    The member agrees with what is known, and so does a graph that has no forbidden arrow more.
    """
    arcs = extension(paths.restricted(state.between))
    open_pairs = [pair for pair in permutations(range(len(arcs)), 2) if not arcs[pair] and not paths.forbidden[pair]]
    parents = row_masks(arcs.T)
    seen = {state.between.tobytes()}
    for i, j in sorted(open_pairs, key=lambda pair: -predicted.arc(parents, *pair)):
        other = arcs.copy()
        other[i, j], other[j, i] = 1, 0
        if len(seen) <= _n_predicted(state) and _is_acyclic(other):
            neighbour = state.along(other)
            if neighbour.between.tobytes() not in seen:
                seen.add(neighbour.between.tobytes())
                did = "reverse" if arcs[j, i] else "add"
                yield f"{did} an edge: latents of {state.group_name(i)} → {state.group_name(j)}", neighbour


def _n_predicted(state: State) -> int:
    """How many deletions are fitted, and how many additions."""
    return BUDGET.n_edges if len(state.groups) <= BUDGET.few_groups else BUDGET.n_edges_many


def _is_acyclic(arcs: Marks) -> bool:
    return len(topological_order(row_masks(arcs.T), row_masks(arcs))) == len(arcs)
