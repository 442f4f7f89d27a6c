"""Algorithm 2: edges between latent groups, backwards from all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, combinations

import numpy as np

from unmeasured.score import LikelihoodScore
from unmeasured.search.operators import DeleteLL, candidate_heads
from unmeasured.search.phase1 import Phase
from unmeasured.search.state import State
from unmeasured.sem.rank import least_drop, rank_shortfall


def run_phase2(
    start: State,
    score: LikelihoodScore,
    delta: float,
    *,
    per_dimension: bool = False,
    prune: bool = True,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Phase:
    """S_final of Algorithm 2.

    Its last lines delete the edges inside groups; our states have none (see :class:`State`). ``delta`` is forgiven for
    each deletion, as in the paper, or for each dimension it removes, as a criterion that charges for them wants.
    """
    phase = Phase(start, score, delta, prune)
    while not out_of_time():
        moves = list(candidate_deletions(phase.state))  # lines 5 to 9
        if not moves:
            break
        before = phase.value()
        bounds = np.array([_bound(phase, move, before) for move in moves])
        drops = bounds.copy()
        forgiven = delta * np.array([_dimensions(phase.state, move) if per_dimension else 1 for move in moves])
        tried = [i for i in range(len(moves)) if not prune or bounds[i] <= forgiven[i]]
        if tried:
            drops[tried] = before - score([moves[i].apply(phase.state) for i in tried])  # lines 10 and 11
        # Line 12: the best score after the deletion; ties go to the first.
        best = min(range(len(moves)), key=lambda i: (round(float(drops[i] - forgiven[i]), 12), i))
        accepted = bool(drops[best] <= forgiven[best])
        what = moves[best].describe(phase.state)
        n_bounded = len(moves) - len(tried)
        phase.record(
            "Phase 2", what, len(moves), n_bounded, before, float(drops[best]), accepted, float(forgiven[best])
        )
        if not accepted:
            break
        phase.state = moves[best].apply(phase.state)  # line 13
    return phase


def _dimensions(state: State, move: DeleteLL) -> int:
    """How many paths, and so dimensions, a deletion removes."""
    return len(state.groups[move.first]) * len(state.groups[move.second])


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
