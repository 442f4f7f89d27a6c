"""Dissolve: a group goes, and its pure children get other parents: each its best, or all the same group."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unmeasured.search.budget import BUDGET
from unmeasured.search.model import FactorModel
from unmeasured.search.moves.base import Change, Move, Situation


def candidates(situation: Situation) -> Iterator[FactorModel]:
    """The groups and new parents with the best predicted gain."""
    model, table, rise = situation.model, situation.relocations, situation.rise
    changes: list[tuple[int, Change]] = []
    for g in range(model.n_groups):
        elsewhere = np.flatnonzero(~(table.masks >> g & 1).astype(bool))
        singles = [np.array([table.column[1 << h]]) for h in range(model.n_groups) if h != g]
        changes += [
            (g, [(j, int(heirs[np.argmax(rise[j, heirs])])) for j in model.pure(g)])
            for heirs in ((elsewhere, *singles) if singles else ())
        ]
    ranked = sorted(changes, key=lambda option: -situation.predicted_gain(option[1]))
    yield from (situation.applied(change).without_group(g) for g, change in ranked[: BUDGET.n_several])


MOVE = Move("dissolve", candidates)
