"""A model inside a larger one: where the fit of the larger begins if it shall not end below the smaller.

Two groups that become one, of as many latents as both had, can do all that they could do as two. A fit from the data
may end in a trap far below; started at the fit of the smaller model it can only rise.
"""

from __future__ import annotations

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.search.model import FactorModel
from unmeasured.search.score import BicScore, Fitted, Start


def start_within(found: Fitted, larger: FactorModel, score: BicScore) -> Start | None:
    """Where a fitted model lies in a larger one, and the score there; None where it is no part of it."""
    order = order_within(found.model, larger)
    if order is None:
        return None
    Phi, loadings = found.latent_cov[np.ix_(order, order)], found.loadings[order]
    try:
        effects = effects_in_order(larger, loadings, Phi)
    except np.linalg.LinAlgError:  # a latent is a function of others but for rounding
        return None
    at = Fitted(larger, found.value, effects, found.noise, True, 0.0, found.arcs)
    return Start(np.concatenate([effects[larger.mask], found.noise]), score.value_at(at))


def order_within(model: FactorModel, larger: FactorModel) -> list[int] | None:
    """The latents of a model in the order of a larger one that contains it; None where it does not.

    >>> pairs = FactorModel(("a", "b", "c", "d"), (1, 1), (1, 1, 2, 2))
    >>> order_within(pairs, FactorModel(("a", "b", "c", "d"), (2,), (1, 1, 1, 1)))
    [0, 1]
    >>> order_within(pairs, FactorModel(("a", "b", "c", "d"), (1,), (1, 1, 1, 1))) is None
    True
    """
    if sum(model.sizes) != sum(larger.sizes):
        return None
    # Every group lies in the one that its first pure child measures.
    home = [larger.parents[model.pure(g)[0]] if model.pure(g) else 0 for g in range(len(model.sizes))]
    if any(mask.bit_count() != 1 for mask in home):
        return None
    for small, large in zip(model.parents, larger.parents, strict=True):
        needed = 0
        for g, mask in enumerate(home):
            needed |= mask if small >> g & 1 else 0
        if needed & ~large:
            return None
    order: list[int] = []
    for h, size in enumerate(larger.sizes):
        own = [i for g, group in enumerate(model.groups) if home[g] == 1 << h for i in group]
        if len(own) != size:
            return None
        order += own
    return order


def effects_in_order(model: FactorModel, loadings: Floats, Phi: Floats) -> Floats:
    """(m, m + n) effects of latents with noise of one, each caused by all earlier groups, from loadings (m, n) and Phi.

    Within a group the basis is free, and chosen so that what earlier groups leave of its latents is uncorrelated.
    """
    m = len(Phi)
    # f = L e with Phi = L L', and L's blocks on its diagonal are the bases of the groups: z = basis^-1 f = M e.
    L = np.linalg.cholesky(Phi)
    basis = np.where(model.group_of[:, None] == model.group_of, L, 0.0)
    M = np.linalg.solve(basis, L)
    effects = np.zeros((m, m + len(model.observed)))
    effects[:, :m] = np.where(model.group_of[:, None] < model.group_of, -np.linalg.inv(M).T, 0.0)
    effects[:, m:] = basis.T @ loadings
    return effects
