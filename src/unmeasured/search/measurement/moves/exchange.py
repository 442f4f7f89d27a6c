"""Exchange: a pure and a common child of a group trade parents.

Where a group has no pure child to spare, neither can move by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from unmeasured.search.budget import BUDGET
from unmeasured.search.measurement.moves.base import Change, Move, Situation
from unmeasured.search.model import FactorModel


def candidates(situation: Situation) -> Iterator[Change]:
    """For every group, a pure and a common child with the parents of the other."""
    model, column = situation.model, situation.relocations.column
    for g in range(model.n_groups):
        for pure, common in pairs(model, g):
            yield [(pure, column[model.parents[common]]), (common, column[1 << g])]


def pairs(model: FactorModel, g: int) -> Iterator[tuple[int, int]]:
    """Pure and common children of a group that has no pure child to spare."""
    pure = model.pure(g)
    if len(pure) <= 2 * model.sizes[g]:
        for i, mask in enumerate(model.parents):
            if mask >> g & 1 and mask != 1 << g:
                yield from ((j, i) for j in pure)


MOVE = Move("exchange", candidates, Situation.applied, Situation.predicted_gain, BUDGET.n_several)
