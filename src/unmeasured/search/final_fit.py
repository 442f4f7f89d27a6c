"""The end of every search: the class that was found, over the columns in their order, and where its last fit begins.

A search works on variables in an order of its own (:mod:`unmeasured.search.canonical`). Its answer is over the columns
as they were given, latents numbered by their first indicators, variables that belong to no latent standing alone. With
many variables a fit takes long, so the last one begins where the search has come to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from unmeasured.arrays import Floats, Marks
from unmeasured.graphs import CPDAG
from unmeasured.kernels.savings import effects_along
from unmeasured.models.delta import MANY_PARAMETERS
from unmeasured.models.fit import Fit
from unmeasured.models.parameters import pattern_of
from unmeasured.search.budget import BUDGET
from unmeasured.search.clock import Clock
from unmeasured.search.discovery import with_isolated
from unmeasured.search.hierarchy.model import RaisedClass
from unmeasured.search.model import FactorModel
from unmeasured.search.score import Fitted

# What standard errors take, for the cube of the number of parameters.
_SECONDS_FOR_ERRORS = 8.5e-10


class InColumns(NamedTuple):
    """A class over the columns of the data, and where each of its latents was in the search."""

    cpdag: CPDAG
    positions: tuple[int, ...]

    def start(self, near: Fitted | None, raised: RaisedClass | None, cpdag: CPDAG) -> Floats | None:
        """Where the fit of this class begins, perhaps with other names for its latents; None: from the data."""
        if near is None or len(cpdag.observed) <= BUDGET.many_variables:
            return None
        near = near if raised is None else raised.near.flat
        return start_near(cpdag, near, dict(zip(cpdag.latents, self.positions, strict=True)))


def in_columns(model: FactorModel, raised: RaisedClass | None, names: Sequence[str]) -> InColumns:
    """The class of a model, or the one with latents above its latents, over columns in this order."""
    if raised is None:
        ordered, positions = model.in_order_of(names)
        return InColumns(with_isolated(ordered.cpdag, names), positions)
    cpdag, positions = raised.cpdag(names)
    return InColumns(with_isolated(cpdag, names), positions)


def start_near(cpdag: CPDAG, near: Fitted, latents: Mapping[str, int]) -> Floats:
    """Starting values for a class from the fit of its measurement model; ``latents``: their positions in that fit."""
    pattern, m = pattern_of(cpdag), len(near.effects)
    position = {**latents, **{name: m + j for j, name in enumerate(near.model.observed)}}
    at = np.array([position[name] for name in pattern.names])
    source, target = at[pattern.source], at[pattern.target]
    causes, between = np.zeros((m, m), dtype=np.uint8), target < m
    causes[source[between], target[between]] = 1
    given, Phi = near.effects.copy(), near.latent_cov.copy()
    for group in cpdag.latent_groups:
        _turn_apart([latents[name] for name in group], causes, given, Phi)
    effects = np.empty_like(given)
    effects_along(given, Phi, causes, effects)
    x = np.empty(pattern.n_free)
    x[pattern.slot] = effects[source, target]
    is_free = pattern.slot2 >= 0
    x[pattern.slot2[is_free]] = near.noise[at[pattern.first[is_free]] - m]
    return x


def in_time(fit: Fit, clock: Clock) -> Fit:
    """The fit, without standard errors where these would take longer than the time that is left.

    They take the cube of the number of parameters, several times, since latents are turned and named before they are
    shown: most of the 24 s that an answer with 2,858 parameters took to print and to write as JSON.
    """
    p = len(fit.solution.x)
    is_long = p >= MANY_PARAMETERS and not clock.has_time(_SECONDS_FOR_ERRORS * p**3)
    return replace(fit, is_hurried=True) if is_long else fit


def _turn_apart(own: Sequence[int], causes: Marks, effects: Floats, Phi: Floats) -> None:
    """Another basis for the latents of a group, in place: what their causes leave of them becomes uncorrelated.

    A graph has no parameter for what is left in common. The basis of the fit is chosen given all groups that come
    before this one, effects among them: with 37 groups of two the start was 570 units below the fit it came from.
    """
    mine, parents = np.array(own), np.flatnonzero(causes[:, own[0]])
    if len(mine) < 2 or (causes[:, mine] != causes[:, mine[:1]]).any():
        return
    cross = Phi[np.ix_(parents, mine)]
    left = Phi[np.ix_(mine, mine)] - cross.T @ np.linalg.pinv(Phi[np.ix_(parents, parents)], hermitian=True) @ cross
    try:
        basis = np.linalg.cholesky(left)
    except np.linalg.LinAlgError:  # a latent is a function of others but for rounding
        return
    back = np.linalg.inv(basis)
    Phi[mine] = back @ Phi[mine]
    Phi[:, mine] = Phi[:, mine] @ back.T
    effects[mine, len(Phi) :] = basis.T @ effects[mine, len(Phi) :]
