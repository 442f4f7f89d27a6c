"""Expel: a group gives up a latent, and one of its pure children gets a second group instead.

The other way round from *absorb*: for a group that was made larger to explain a common child. There are many
candidates, and six in a thousand improve the score, so it waits until all other moves fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from unmeasured.search.measurement.moves.base import Move, Situation
from unmeasured.search.model import FactorModel

Expulsion = tuple[int, int, int]  # a group, a pure child, its second group


def candidates(situation: Situation) -> Iterator[Expulsion]:
    """For every group of several latents, every pure child of it and every other group."""
    model = situation.model
    for g, size in enumerate(model.sizes):
        for j in model.pure(g) if size > 1 else ():
            yield from ((g, j, h) for h in range(model.n_groups) if h != g)


def apply(situation: Situation, expulsion: Expulsion) -> FactorModel:
    """The smaller group, and the child of two."""
    model, (g, j, h) = situation.model, expulsion
    return model.resized(g, model.sizes[g] - 1).with_parents(j, 1 << g | 1 << h)


MOVE = Move("expel", candidates, apply, is_late=True)
