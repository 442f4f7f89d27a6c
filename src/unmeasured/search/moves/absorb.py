"""Absorb: common children of a group become its pure ones, and it takes in a latent or two more.

For two groups that share children because they are parts of one.
"""

from __future__ import annotations

from collections.abc import Iterator

from unmeasured.search.model import FactorModel
from unmeasured.search.moves.base import Move, Situation

Absorption = tuple[int, int, int]  # a group, the parents of its common children, its new size


def candidates(situation: Situation) -> Iterator[Absorption]:
    """For every group and every set of groups that has common children with it."""
    model = situation.model
    for g, size in enumerate(model.sizes):
        for mask in sorted(set(model.parents)):
            if mask >> g & 1 and mask != 1 << g:
                yield from ((g, mask, k) for k in range(size + 1, min(size + 2, situation.max_group_size) + 1))


def apply(situation: Situation, absorption: Absorption) -> FactorModel:
    """The larger group with the common children for its own."""
    model, (g, mask, k) = situation.model, absorption
    parents = tuple(1 << g if other == mask else other for other in model.parents)
    return FactorModel(model.observed, model.sizes, parents).resized(g, k)


MOVE = Move("absorb", candidates, apply)
