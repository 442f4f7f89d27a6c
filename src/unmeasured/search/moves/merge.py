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

    return sorted(merges, key=gain, reverse=True)[: BUDGET.n_merged]


MOVE = Move("merge", candidates)
