"""Expel: a group gives up a latent, and one of its pure children gets a second group instead.

The other way round from *absorb*: for a group that was made larger to explain a common child. There are many
candidates, and six in a thousand improve the score, so it waits until all other moves fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from unmeasured.search.model import FactorModel
from unmeasured.search.moves.base import Move, Situation


def candidates(situation: Situation) -> Iterator[FactorModel]:
    """For every group of several latents, every pure child of it and every other group."""
    model = situation.model
    for g, size in enumerate(model.sizes):
        if size > 1:
            smaller = model.resized(g, size - 1)
            for j in model.pure(g):
                yield from (smaller.with_parents(j, 1 << g | 1 << h) for h in range(model.n_groups) if h != g)


MOVE = Move("expel", candidates, is_late=True)
