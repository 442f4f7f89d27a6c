"""Algorithm 2: edges between latent groups, backwards from all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, combinations

import numpy as np

from unmeasured.arrays import Marks
from unmeasured.graphs import consistent_extension, cpdag_of
from unmeasured.score import LikelihoodScore
from unmeasured.search.operators import DeleteLL, candidate_heads
from unmeasured.search.phase1 import Phase
from unmeasured.search.state import State
from unmeasured.sem.rank import least_drop, rank_shortfall

# A total score has to rise by more than the fits' own rounding.
_LEAST_RISE = 1e-2


def run_phase2(start: State, score: LikelihoodScore, delta: float, *, prune: bool = True) -> Phase:
    """S_final of Algorithm 2.

    Its last lines delete the edges inside groups; our states have none (see :class:`State`).
    """
    phase = Phase(start, score, delta, prune)
    while True:
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
    return phase


def polish_edges(
    start: State, score: LikelihoodScore, price: float, out_of_time: Callable[[], bool] = lambda: False
) -> Phase:
    """Past the paper: add, delete or turn one edge of a member at a time while that improves the score.

    ``price`` is that of a dimension, per sample. The backward phase never takes a deletion back; this does.
    """
    phase = Phase(start, score, price)
    while not out_of_time():
        state, before = phase.state, phase.value()
        moves = list(_neighbours(state))
        if not moves:
            break
        rises = score([other for _, other in moves]) - before
        rises -= price * np.array([n_paths(other) - n_paths(state) for _, other in moves])
        best = int(np.argmax(rises))
        if rises[best] <= _LEAST_RISE / score.sample.n:
            break
        what, phase.state = moves[best]
        phase.record("Phase 2", what, len(moves), 0, before, before - phase.value(), True, math.inf)
    return phase


def _neighbours(state: State) -> Iterator[tuple[str, State]]:
    """Classes of the graphs that differ from a member by one edge between groups, each once."""
    arcs = consistent_extension(state.between)
    if arcs is None:
        raise AssertionError("a state always has a consistent extension")
    seen = {state.between.tobytes()}
    for i, j in combinations(range(len(arcs)), 2):
        for a, b in ((0, 0), (1, 0), (0, 1)):
            other = arcs.copy()
            other[i, j], other[j, i] = a, b
            if (a, b) == (arcs[i, j], arcs[j, i]) or not _is_acyclic(other):
                continue
            marks = cpdag_of(other)
            if marks.tobytes() not in seen:
                seen.add(marks.tobytes())
                did = "delete" if not (a or b) else "turn" if arcs[i, j] or arcs[j, i] else "add"
                yield f"{did} the edge between groups {i + 1} and {j + 1}", replace(state, between=marks)


def _is_acyclic(arcs: Marks) -> bool:
    left = list(range(len(arcs)))
    while left:
        roots = [g for g in left if not arcs[np.ix_(left, [g])].any()]
        if not roots:
            return False
        left = [g for g in left if g not in roots]
    return True


def n_paths(state: State) -> int:
    """How many paths the edges between groups stand for."""
    sizes = np.array([len(group) for group in state.groups])
    adjacent = np.triu(state.between | state.between.T, 1)
    return int(sizes @ adjacent @ sizes)


def candidate_deletions(state: State) -> Iterator[DeleteLL]:
    """Every valid deletion: both readings of an undirected edge, every subset of H."""
    marks = state.between
    for i in range(len(marks)):
        for j in range(len(marks)):
            if i == j or not marks[i, j]:
                continue
            heads = candidate_heads(marks, i, j)
            for H in chain.from_iterable(combinations(heads, r) for r in range(len(heads) + 1)):
                move = DeleteLL(i, j, H)
                if move.is_valid(state):
                    yield move


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
