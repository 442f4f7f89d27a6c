"""Merge: two groups become one; variables of both become its pure children.

For one group that was taken for two.
"""

from __future__ import annotations

from itertools import combinations

from unmeasured.search.budget import BUDGET
from unmeasured.search.measurement.moves.base import Move, Situation
from unmeasured.search.model import FactorModel

Merge = tuple[int, int, int]  # two groups, and the size of the one they become


def candidates(situation: Situation) -> list[Merge]:
    """Pairs of groups, and sizes, whose union gains most as one group; and pairs that share most of their children."""
    model, sizes, largest = situation.model, situation.model.sizes, situation.max_group_size
    merges = [
        (g, h, k)
        for g, h in combinations(range(len(sizes)), 2)
        for k in range(max(sizes[g], sizes[h]), min(sizes[g] + sizes[h], largest) + 1)
    ]
    close = sorted(merges, key=lambda merge: -predicted_gain(situation, merge))[: BUDGET.n_merged]
    # Two groups that share more children than one of them has for itself are likely to be one.
    tied = [
        (g, h, sizes[g] + sizes[h])
        for g, h in combinations(range(len(sizes)), 2)
        if sizes[g] + sizes[h] <= largest
        and sum(mask == 1 << g | 1 << h for mask in model.parents) > min(len(model.pure(g)), len(model.pure(h)))
    ]
    return close + [merge for merge in tied if merge not in close]


def predicted_gain(situation: Situation, merge: Merge) -> float:
    """What the rank constraint of the union gains."""
    model, (g, h, k) = situation.model, merge
    return situation.gains.of((*model.pure(g), *model.pure(h)), k)


def apply(situation: Situation, merge: Merge) -> FactorModel:
    """The second group gone into the first."""
    model, (g, h, k) = situation.model, merge
    joined = tuple(mask | 1 << g if mask >> h & 1 else mask for mask in model.parents)
    return FactorModel(model.observed, model.sizes, joined).without_group(h).resized(g, k)


MOVE = Move("merge", candidates, apply)
