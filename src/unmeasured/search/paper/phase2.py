"""Algorithm 2: edges between latent groups, backwards from all of them."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from unmeasured.errors import Stopped
from unmeasured.models.rank import least_drop, rank_shortfall
from unmeasured.search.model import FactorModel
from unmeasured.search.paper.operators import DeleteLL, candidate_deletions
from unmeasured.search.paper.phase1 import Phase
from unmeasured.search.score import LikelihoodScore
from unmeasured.search.trace import Trace


def run_phase2(
    start: FactorModel, score: LikelihoodScore, delta: float, *, prune: bool = True
) -> tuple[FactorModel, Trace]:
    """S_final of Algorithm 2, and the steps.

    Its last lines delete the edges inside groups; our models have none (see :class:`FactorModel`).
    """
    phase = Phase(start, score, delta, prune)
    with suppress(Stopped):  # where the time is over, the state so far
        _delete(phase)
    return phase.state, phase.trace


def _delete(phase: Phase[FactorModel]) -> None:
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
        phase.record("Phase 2", what, len(moves) - len(tried), before, float(drops[best]), accepted)
        if not accepted:
            break
        phase.state = moves[best].apply(phase.state)  # line 13


def _bound(phase: Phase[FactorModel], move: DeleteLL, before: float) -> float:
    """After the deletion the two groups are independent given some others: a rank constraint on their children.

    With A the pure children of the first group and half of those of the separating groups, B those of the second
    and the other halves, rank(Sigma_AB) is at most the number of separating latents (the paper's proof of
    Theorem 2). The constraint concerns A and B alone, so the likelihood of these variables bounds that of all.
    """
    model = phase.state
    separating = move.separating(model)
    A, B = list(model.pure(move.first)), list(model.pure(move.second))
    for g in separating:
        children = model.pure(g)
        half = len(children) // 2
        A += children[:half]
        B += children[half:]
    rank = sum(model.sizes[g] for g in separating)
    variables = [*A, *B]
    S = phase.score.sample.corr[np.ix_(variables, variables)]
    return least_drop(rank_shortfall(S, list(range(len(A))), rank), -before)
