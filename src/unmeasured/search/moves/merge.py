"""Merge: two groups become one; variables of both become its pure children.

For one group that was taken for two.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from unmeasured.search.budget import BUDGET
from unmeasured.search.model import FactorModel
from unmeasured.search.moves.base import Move, Situation


def candidates(situation: Situation) -> Iterator[FactorModel]:
    """For the pairs of groups and sizes whose union gains most as one group."""
    model = situation.model
    for g, h, k in close_groups(situation):
        joined = tuple(mask | 1 << g if mask >> h & 1 else mask for mask in model.parents)
        merged = FactorModel(model.observed, model.sizes, joined).without_group(h)
        yield merged.resized(g if g < h else g - 1, k)


def close_groups(situation: Situation) -> list[tuple[int, int, int]]:
    """Pairs of groups and a size, those whose union gains most as one group."""
    model, sizes, largest = situation.model, situation.model.sizes, situation.max_group_size
    merges = [
        (g, h, k)
        for g, h in combinations(range(len(sizes)), 2)
        for k in range(max(sizes[g], sizes[h]), min(sizes[g] + sizes[h], largest) + 1)
    ]

    def gain(merge: tuple[int, int, int]) -> float:
        g, h, k = merge
        return situation.gains.of((*model.pure(g), *model.pure(h)), k)

    close = sorted(merges, key=gain, reverse=True)[: BUDGET.n_merged]
    # Two groups that share more children than one of them has for itself are likely to be one.
    tied = [
        (g, h, sizes[g] + sizes[h])
        for g, h in combinations(range(len(sizes)), 2)
        if sizes[g] + sizes[h] <= largest
        and sum(mask == 1 << g | 1 << h for mask in model.parents) > min(len(model.pure(g)), len(model.pure(h)))
    ]
    return close + [merge for merge in tied if merge not in close]


MOVE = Move("merge", candidates)
