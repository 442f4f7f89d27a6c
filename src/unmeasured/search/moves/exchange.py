"""Exchange: a pure and a common child of a group trade parents.

Where a group has no pure child to spare, neither can move by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from unmeasured.search.budget import BUDGET
from unmeasured.search.model import FactorModel
from unmeasured.search.moves.base import Change, Move, Situation


def candidates(situation: Situation) -> Iterator[FactorModel]:
    """The exchanges with the best predicted gain."""
    model, column = situation.model, situation.relocations.column
    changes: list[Change] = [
        [(pure, column[model.parents[common]]), (common, column[1 << g])]
        for g in range(model.n_groups)
        for pure, common in pairs(model, g)
    ]
    ranked = sorted(changes, key=lambda change: -situation.predicted_gain(change))
    yield from (situation.applied(change) for change in ranked[: BUDGET.n_several])


def pairs(model: FactorModel, g: int) -> Iterator[tuple[int, int]]:
    """Pure and common children of a group that has no pure child to spare."""
    pure = model.pure(g)
    if len(pure) <= 2 * model.sizes[g]:
        for i, mask in enumerate(model.parents):
            if mask >> g & 1 and mask != 1 << g:
                yield from ((j, i) for j in pure)


MOVE = Move("exchange", candidates)
