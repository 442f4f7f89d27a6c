"""New latent: a pair of variables gets a latent of its own.

For pairs whose residuals are correlated beyond what the model explains, by score tests (modification indices). A group
that loses both may give up a latent.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unmeasured.search.budget import BUDGET
from unmeasured.search.measurement.moves.base import Move, Situation
from unmeasured.search.model import FactorModel

NewLatent = tuple[int, int, int | None]  # a pair of variables, and the group that gives up a latent


def candidates(situation: Situation) -> Iterator[NewLatent]:
    """For the pairs with the largest score tests."""
    model = situation.model
    for i, j in close_pairs(situation):
        yield i, j, None
        yield from ((i, j, g) for g, k in enumerate(model.sizes) if k > 1 and {i, j} <= set(model.pure(g)))


def apply(situation: Situation, new: NewLatent) -> FactorModel:
    """The pair as the indicators of a latent of their own."""
    model, (i, j, g) = situation.model, new
    smaller = model if g is None else model.resized(g, model.sizes[g] - 1)
    larger = FactorModel(model.observed, (*smaller.sizes, 1), model.parents)
    return larger.with_parents(i, 1 << model.n_groups).with_parents(j, 1 << model.n_groups)


def close_pairs(situation: Situation) -> list[tuple[int, int]]:
    """Pairs with the largest correlation of residuals, by score tests."""
    implied = situation.found.implied
    P = np.linalg.inv(implied)
    R = P @ (situation.corr - implied) @ P
    own = np.diag(P)
    rise = np.triu(R**2 / (np.outer(own, own) + P**2), 1)
    order = np.argsort(-rise, axis=None)[: BUDGET.n_pairs]
    return [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, rise.shape), strict=True)]


MOVE = Move("new latent", candidates, apply)
