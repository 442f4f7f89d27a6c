"""Algorithm 1: how many latents there are, and who measures them.

The box of the paper, line by line; where it is corrected the comment says so, and ``docs/departures.md`` why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Generic, TypeVar

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.errors import Stopped
from unmeasured.models.rank import least_drop, rank_shortfall, rank_shortfalls
from unmeasured.search.model import FactorModel, Group
from unmeasured.search.paper.operators import DeleteLX
from unmeasured.search.paper.state import State
from unmeasured.search.score import LikelihoodScore
from unmeasured.search.trace import Recorder, Step, Trace

# Subsets fitted between two looks at what their unions already cover.
_BATCH = 8


S = TypeVar("S", State, FactorModel)


@dataclass
class Phase(Generic[S]):
    """A state on its way through a phase, and the steps that brought it there."""

    state: S
    score: LikelihoodScore
    delta: float
    prune: bool = True
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._recorder = Recorder(self.steps, self.score)

    @property
    def trace(self) -> Trace:
        """The steps so far."""
        return Trace(self.steps)

    def value(self) -> float:
        """Score of the present state."""
        return float(self.score([self.state])[0])

    def record(self, where: str, what: str, n_bounded: int, before: float, drop: float, accepted: bool) -> None:
        """Write a step into the trace."""
        comparison = "at most" if drop <= self.delta else "more than"
        reason = f"the score drops by {drop:.3g}, {comparison} {self.delta:.3g}"
        self._recorder.write(
            where, what, before, before - drop, reason, tolerance=self.delta, accepted=accepted, n_bounded=n_bounded
        )  # fmt: skip


def run_phase1(
    start: State, score: LikelihoodScore, delta: float, *, max_group_size: int | None = None, prune: bool = True
) -> tuple[FactorModel, tuple[int, ...], Trace]:
    """S_phase1 of Algorithm 1, the variables still open at its end, and the steps.

    Open variables keep every latent found as a parent, as the algorithm leaves them: common children of all groups.
    """
    phase = Phase(start, score, delta, prune)  # line 3
    open_items = list(range(len(start.observed)))  # X_t
    k = 1
    # Line 4 ends the loop once k > |X_t| / 2, and so never tests a common child left alone in X_t. Corrected: the
    # common-child test goes on while X_t is not empty and k is at most |L_d|.
    try:
        while open_items and (2 * k <= len(open_items) or k <= n_claimed(phase.state)):
            place_common_children(phase, open_items, k)  # lines 5 to 11
            if 2 * k <= len(open_items) and k <= (max_group_size or k):
                find_groups(phase, open_items, k)  # lines 12 to 21
            k += 1
    except Stopped:
        # The time is over: what was not looked at to the end has no parents yet.
        phase.state = phase.state.without_parents(open_items)
        open_items = []
    return phase.state.without_spare(), tuple(open_items), phase.trace


def n_claimed(state: State) -> int:
    """|L_d|: how many latents belong to groups already found."""
    return sum(map(len, state.groups))


def candidate_parents(state: State, k: int) -> Iterator[Group]:
    """Sets L_i of k latents out of groups already found.

    Line 5 takes any subset of L_d. Corrected: only unions of whole groups, since the likelihood cannot refuse a set
    that cuts a group: a rotation inside the group makes the missing latent superfluous.
    """
    for r in range(1, len(state.groups) + 1):
        for groups in combinations(state.groups, r):
            if sum(map(len, groups)) == k:
                yield tuple(latent for group in groups for latent in group)


def place_common_children(phase: Phase[State], open_items: list[int], k: int) -> None:
    """Lines 5 to 11: give variables k latents already found as their only parents."""
    state, before = phase.state, phase.value()
    phase.score.check()
    pairs = [(parents, x) for parents in candidate_parents(state, k) for x in open_items]
    moves = [DeleteLX.keeping(state, parents, (x,)) for parents, x in pairs]
    bounds = np.array([_common_child_bound(phase, parents, x, before) for parents, x in pairs])
    drops = _drops(phase, moves, bounds, before)
    for x in list(open_items):
        mine = [i for i, (_, item) in enumerate(pairs) if item == x and drops[i] <= phase.delta]
        if mine:
            # Line 10 would apply every accepted set, leaving no parents where there are two. Ties are open; we
            # take the best score, then the groups found first.
            best = min(mine, key=lambda i: (round(float(drops[i]), 12), i))
            phase.state = moves[best].apply(phase.state)
            open_items.remove(x)
            _record(phase, f"common children, k = {k}", moves[best], before, float(drops[best]), bounds, True)
    if moves and not any(drop <= phase.delta for drop in drops):
        best = int(np.argmin(drops))
        _record(phase, f"common children, k = {k}", moves[best], before, float(drops[best]), bounds, False)


def find_groups(phase: Phase[State], open_items: list[int], k: int) -> None:
    """Lines 12 to 21: subsets of k + 1 variables that k latents explain, joined where they overlap."""
    state, before = phase.state, phase.value()
    # Line 12 takes any k spare latents; fewer than k are no group of k, so there is nothing to test.
    if len(state.spare) < k:
        return
    kept = state.spare[:k]
    subsets = np.array(list(combinations(open_items, k + 1)))
    moves = [DeleteLX.keeping(state, kept, tuple(subset)) for subset in subsets.tolist()]
    bounds = rank_shortfalls(_corr(phase), subsets, k) + before  # least_drop, for all at once
    right, drops = _explained(phase, moves, bounds, before, kept)
    if not right:
        best = int(np.argmin(drops))
        _record(phase, f"groups of {k}", moves[best], before, float(drops[best]), bounds, False)
    for items in disjoint_sets(right):
        # Def. 2 (i): a union of fewer than 2k variables is no group, and its variables stay open.
        if len(items) < 2 * k or len(phase.state.spare) < k:
            continue
        group = phase.state.spare[:k]
        move = DeleteLX.keeping(phase.state, group, tuple(sorted(items)))
        phase.state = move.apply(phase.state).claim(group)
        for x in items:
            open_items.remove(x)
        after = phase.value()
        _record(phase, f"groups of {k}", move, before, before - after, bounds, True)


def _explained(
    phase: Phase[State], moves: Sequence[DeleteLX], bounds: Floats, before: float, kept: Group
) -> tuple[list[set[int]], Floats]:
    """The subsets that pass, smallest bounds first, and what each costs.

    With pruning, a subset that lies within sets already joined is not fitted: it could not change the union.
    """
    drops = np.array(bounds, dtype=float)
    right: list[set[int]] = []
    waiting = sorted(range(len(moves)), key=lambda i: (round(float(bounds[i]), 12), i))
    if phase.prune:
        waiting = [i for i in waiting if bounds[i] <= phase.delta]
    while waiting:
        if phase.prune:
            joined = disjoint_sets(right)
            waiting = [i for i in waiting if not any(set(moves[i].observed) <= items for items in joined)]
        batch, waiting = (waiting[:_BATCH], waiting[_BATCH:]) if phase.prune else (waiting, [])
        if batch:
            drops[batch] = before - phase.score([moves[i].apply(phase.state).claim(kept) for i in batch])
            right += [set(moves[i].observed) for i in batch if drops[i] <= phase.delta]
    return right, drops


def disjoint_sets(subsets: Iterable[set[int]]) -> list[set[int]]:
    """Join subsets that overlap, in the order of their least elements.

    >>> disjoint_sets([{0, 1}, {4, 5}, {1, 2}])
    [{0, 1, 2}, {4, 5}]
    """
    joined: list[set[int]] = []
    for subset in subsets:
        merged = set(subset)
        apart = []
        for other in joined:
            if other & merged:
                merged |= other
            else:
                apart.append(other)
        joined = [*apart, merged]
    return sorted(joined, key=min)


def _corr(phase: Phase[State]) -> Floats:
    return phase.score.sample.corr


def _common_child_bound(phase: Phase[State], parents: Group, x: int, before: float) -> float:
    """The variable and all pure children of its parents have rank at most |parents| with the rest."""
    groups = [group for group in phase.state.groups if set(group) <= set(parents)]
    subset = [x, *(child for group in groups for child in phase.state.pure_children(group))]
    return least_drop(rank_shortfall(_corr(phase), subset, len(parents)), -before)


def _drops(phase: Phase[State], moves: Sequence[DeleteLX], bounds: Floats, before: float) -> Floats:
    """What each move costs; where the bound already exceeds the tolerance, the bound."""
    drops = np.array(bounds, dtype=float)
    tried = [i for i in range(len(moves)) if not phase.prune or bounds[i] <= phase.delta]
    if tried:
        drops[tried] = before - phase.score([moves[i].apply(phase.state) for i in tried])
    return drops


def _record(
    phase: Phase[State], where: str, move: DeleteLX, before: float, drop: float, bounds: Floats, accepted: bool
) -> None:
    bounded = int((bounds > phase.delta).sum()) if phase.prune else 0
    phase.record(f"Phase 1, {where}", move.describe(phase.state), bounded, before, drop, accepted)
