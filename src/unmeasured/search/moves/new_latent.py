"""New latent: a pair of variables gets a latent of its own.

For pairs whose residuals are correlated beyond what the model explains, by score tests (modification indices). A group
that loses both may give up a latent.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unmeasured.search.budget import BUDGET
from unmeasured.search.model import FactorModel
from unmeasured.search.moves.base import Move, Situation


def candidates(situation: Situation) -> Iterator[FactorModel]:
    """For the pairs with the largest score tests."""
    model = situation.model
    new = model.n_groups
    for pair in close_pairs(situation):
        parents = list(model.parents)
        for j in pair:
            parents[j] = 1 << new
        yield FactorModel(model.observed, (*model.sizes, 1), tuple(parents))
        for g, k in enumerate(model.sizes):
            if k > 1 and all(model.parents[j] == 1 << g for j in pair):
                sizes = (*model.sizes[:g], k - 1, *model.sizes[g + 1 :], 1)
                yield FactorModel(model.observed, sizes, tuple(parents))


def close_pairs(situation: Situation) -> list[tuple[int, int]]:
    """Pairs with the largest correlation of residuals, by score tests."""
    implied = situation.found.implied
    P = np.linalg.inv(implied)
    R = P @ (situation.corr - implied) @ P
    own = np.diag(P)
    rise = np.triu(R**2 / (np.outer(own, own) + P**2), 1)
    order = np.argsort(-rise, axis=None)[: BUDGET.n_pairs]
    return [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, rise.shape), strict=True)]


MOVE = Move("new latent", candidates)
