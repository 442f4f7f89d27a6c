"""Resize: a group has one latent more, or one less."""

from __future__ import annotations

from collections.abc import Iterator

from unmeasured.search.budget import BUDGET
from unmeasured.search.measurement.moves.base import Move, Situation
from unmeasured.search.model import FactorModel

Resize = tuple[int, int]  # a group and its new size


def candidates(situation: Situation) -> Iterator[Resize]:
    """Every group, one larger and one smaller."""
    sizes = ((g, k + step) for g, k in enumerate(situation.model.sizes) for step in (-1, 1))
    yield from ((g, k) for g, k in sizes if 1 <= k <= situation.max_group_size)


def predicted_gain(situation: Situation, resize: Resize) -> float:
    """What the rank constraint of the group gains."""
    model, gains, (g, k) = situation.model, situation.gains, resize
    return gains.of(model.pure(g), k) - gains.of(model.pure(g), model.sizes[g])


def apply(situation: Situation, resize: Resize) -> FactorModel:
    """The group with its new size."""
    return situation.model.resized(*resize)


MOVE = Move("resize", candidates, apply, predicted_gain, BUDGET.n_resized)
