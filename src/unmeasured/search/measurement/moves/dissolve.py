"""Dissolve: a group goes, and its pure children get other parents: each its best, or all the same group."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unmeasured.search.budget import BUDGET
from unmeasured.search.measurement.moves.base import Change, Move, Situation
from unmeasured.search.model import FactorModel

Dissolution = tuple[int, Change]  # a group, and other parents for its pure children


def candidates(situation: Situation) -> Iterator[Dissolution]:
    """For every group, the best parents of each of its children, and every other group for all of them."""
    model, table, rise = situation.model, situation.relocations, situation.rise
    for g in range(model.n_groups):
        elsewhere = np.flatnonzero(~(table.masks >> g & 1).astype(bool))
        singles = [np.array([table.column[1 << h]]) for h in range(model.n_groups) if h != g]
        for heirs in (elsewhere, *singles) if singles else ():
            yield g, [(j, int(heirs[np.argmax(rise[j, heirs])])) for j in model.pure(g)]


def predicted_gain(situation: Situation, dissolution: Dissolution) -> float:
    """What the other parents gain."""
    return situation.predicted_gain(dissolution[1])


def apply(situation: Situation, dissolution: Dissolution) -> FactorModel:
    """The children elsewhere, and the group gone."""
    g, change = dissolution
    return situation.applied(change).without_group(g)


MOVE = Move("dissolve", candidates, apply, predicted_gain, BUDGET.n_several)
