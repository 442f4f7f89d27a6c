"""Absorb: common children of a group become its pure ones, and it takes in a latent or two more.

For two groups that share children because they are parts of one.
"""

from __future__ import annotations

from collections.abc import Iterator

from unmeasured.search.model import FactorModel
from unmeasured.search.moves.base import Move, Situation


def candidates(situation: Situation) -> Iterator[FactorModel]:
    """For every group and every set of groups that has common children with it."""
    model = situation.model
    for g, size in enumerate(model.sizes):
        for mask in sorted(set(model.parents)):
            if mask >> g & 1 and mask != 1 << g:
                parents = tuple(1 << g if other == mask else other for other in model.parents)
                for k in range(size + 1, min(size + 2, situation.max_group_size) + 1):
                    yield FactorModel(model.observed, (*model.sizes[:g], k, *model.sizes[g + 1 :]), parents)


MOVE = Move("absorb", candidates)
