"""Resize: a group has one latent more, or one less."""

from __future__ import annotations

from collections.abc import Iterator

from unmeasured.search.budget import BUDGET
from unmeasured.search.model import FactorModel
from unmeasured.search.moves.base import Move, Situation


def candidates(situation: Situation) -> Iterator[FactorModel]:
    """For the groups and sizes with the best predicted gain."""
    model, gains = situation.model, situation.gains

    def gain(resize: tuple[int, int]) -> float:
        g, k = resize
        return gains.of(model.pure(g), k) - gains.of(model.pure(g), model.sizes[g])

    options = [(g, k + step) for g, k in enumerate(model.sizes) for step in (-1, 1)]
    options = [(g, k) for g, k in options if 1 <= k <= situation.max_group_size]
    yield from (model.resized(g, k) for g, k in sorted(options, key=gain, reverse=True)[: BUDGET.n_resized])


MOVE = Move("resize", candidates)
