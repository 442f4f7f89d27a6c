"""What a move is: a value that says what it might do in a situation, what that is predicted to gain, and what it gives.

::

    situation ──► candidates ──► the best by predicted_gain ──► apply ──► models ──► valid, and as is known?
                                                                                           │
    a step of the climb ◄── the score rises? ◄── the best few with other parents ◄── fitted ◄┘

A move proposes; it neither fits nor decides, and may propose invalid models, which are dropped
(:mod:`unmeasured.search.measurement.refine` does the rest). A user's own move is a :class:`Move` too, or just a
function from a model to others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.knowledge.rules import Rules
from unmeasured.search.budget import BUDGET
from unmeasured.search.guided import is_allowed
from unmeasured.search.measurement.proposals import RankGains
from unmeasured.search.measurement.relocate import Relocations, latents_of, predicted_rise, relocated
from unmeasured.search.model import FactorModel
from unmeasured.search.score import BicScore, Fitted, Start

Change = list[tuple[int, int]]  # variables and the column of their new parents in a table of relocations


class ClosedForms:
    """What closed forms say of fitted models: gains of rank constraints, and other parents for variables."""

    def __init__(self, score: BicScore, gains: RankGains) -> None:
        self.score, self.gains = score, gains
        self._choices: dict[Hashable, tuple[Ints, Bools, Floats]] = {}  # made once

    def rises(self, found: Fitted) -> tuple[Relocations, Floats]:
        """Sets of parents, and (n, C) by how much each would raise the score at least."""
        model, sample = found.model, self.score.sample
        masks, allowed, penalties = self.choices(model, BUDGET.max_parents)
        table = relocated(sample.corr, found.loadings, found.latent_cov, found.noise, masks, allowed)
        value = sample.n * table.likelihoods - penalties
        now = np.arange(len(model.parents)), np.searchsorted(masks, model.parents)
        rise = value - value[now][:, None]
        rise[now] = -np.inf
        return table, rise

    def predicted_score(self, found: Fitted) -> float:
        """The score, and what other parents, up to two groups at once, add to it if they do so independently."""
        model, sample = found.model, self.score.sample
        masks, allowed, penalties = self.choices(model, 2)
        now = np.searchsorted(masks, model.parents)
        fit = found.loadings, found.latent_cov, found.noise
        return found.value + predicted_rise(sample.corr, *fit, allowed, penalties, now, sample.n)

    def choices(self, model: FactorModel, most: int) -> tuple[Ints, Bools, Floats]:
        """Sets of parents worth a look (C,), their latents (C, m) and their penalties (C,)."""
        most = most if len(model.sizes) <= BUDGET.few_groups_for_triples else 2
        # Of sets in use with fewer groups, those with one more or less are among the sets of up to so many groups.
        large = frozenset([mask for mask in model.parents if mask.bit_count() >= most])
        key = most, model.sizes, large
        if key not in self._choices:
            masks = parent_sets(most, len(model.sizes), large)
            allowed = latents_of(masks, model.sizes)
            priors = self.score.priors(np.bitwise_count(masks).astype(np.int64), len(model.sizes))
            self._choices[key] = masks, allowed, self.score.dimension_penalty * allowed.sum(axis=1) + priors
        return self._choices[key]


def parent_sets(most: int, n_groups: int, in_use: Iterable[int]) -> Ints:
    """Sets of groups as bits, in order: none, up to so many groups, those in use with one more or less.

    >>> parent_sets(1, 3, [0b011]).tolist()
    [0, 1, 2, 3, 4, 7]
    """
    masks = {
        sum(1 << g for g in some) for r in range(min(most, n_groups) + 1) for some in combinations(range(n_groups), r)
    }
    for mask in in_use:
        masks |= {mask, *(mask ^ 1 << g for g in range(n_groups))}
    return np.array(sorted(masks), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Situation:
    """What a move may look at: a fitted model, closed forms, and limits."""

    found: Fitted
    forms: ClosedForms
    max_group_size: int
    rules: Rules | None = None  # what is known

    @property
    def model(self) -> FactorModel:
        """The present model."""
        return self.found.model

    @property
    def gains(self) -> RankGains:
        """What a set of variables gains as the indicators of k latents."""
        return self.forms.gains

    @property
    def corr(self) -> Floats:
        """(n, n) of the observed variables."""
        return self.forms.score.sample.corr

    @cached_property
    def _rises(self) -> tuple[Relocations, Floats]:
        return self.forms.rises(self.found)

    @property
    def relocations(self) -> Relocations:
        """Other parents for every variable, scored in closed form."""
        return self._rises[0]

    @property
    def rise(self) -> Floats:
        """(n, C) by how much each of them would raise the score at least."""
        return self._rises[1]

    def predicted_gain(self, change: Change) -> float:
        """What other parents for some variables gain, if they do so independently."""
        return sum(float(self.rise[j, c]) for j, c in change)

    @property
    def predicted_score(self) -> float:
        """The score, and what the best other parents of all variables add to it if they do so independently."""
        return self.found.value + float(np.maximum(self.rise.max(axis=1), 0.0).sum())

    def applied(self, change: Change) -> FactorModel:
        """The model with other parents for some variables."""
        parents = list(self.model.parents)
        for j, c in change:
            parents[j] = self.masks[c]
        return FactorModel(self.model.observed, self.model.sizes, tuple(parents))

    def allows(self, change: Change) -> bool:
        """Whether the model with other parents for some variables is valid and agrees with what is known."""
        spare, parents = self._spare.copy(), self.model.parents
        for j, c in change:
            for mask, more in ((parents[j], -1), (self.masks[c], 1)):
                if mask and not mask & (mask - 1):
                    spare[mask.bit_length() - 1] += more
        return min(spare, default=0) >= 0 and (self.rules is None or is_allowed(self.applied(change), self.rules))

    @cached_property
    def masks(self) -> list[int]:
        """The sets of parents in the columns of ``relocations``."""
        masks: list[int] = self.relocations.masks.tolist()
        return masks

    @cached_property
    def _spare(self) -> list[int]:
        """By how many its pure children exceed those that a group needs; negative where the model is not valid."""
        return [self.model.parents.count(1 << g) - 2 * k for g, k in enumerate(self.model.sizes)]


class Candidate(NamedTuple):
    """A model to fit, and where its fit begins."""

    model: FactorModel
    start: Start


T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Move(Generic[T]):
    """A kind of move over the groups of a measurement model.

    >>> without = Move("drop a group", lambda x: range(x.model.n_groups), lambda x, g: x.model.without_group(g))
    >>> without, without.is_late
    (Move('drop a group'), False)
    """

    name: str
    candidates: Callable[[Situation], Iterable[T]]  # what it might do
    apply: Callable[[Situation, T], FactorModel] | None = None  # the model after it; None: a candidate is that model
    predicted_gain: Callable[[Situation, T], float] | None = None  # by closed forms
    n_best: int | None = None  # candidates with the best predicted gain that are applied; None: all
    #: Models that are fitted at most, those whose groups gain most by rank constraints; None: all.
    most: int | None = BUDGET.n_of_kind
    is_late: bool = False  # tried only where all others fail: many candidates that rarely improve

    def models(self, situation: Situation) -> Iterator[FactorModel]:
        """The models it proposes, valid or not."""
        candidates, gain, apply = self.candidates(situation), self.predicted_gain, self.apply
        if gain is not None:
            candidates = sorted(candidates, key=lambda one: -gain(situation, one))[: self.n_best]
        for one in candidates:
            yield cast("FactorModel", one) if apply is None else apply(situation, one)

    @classmethod
    def own(cls, move: OwnMove) -> Move[Any]:
        """A user's move: one of these, or a function from a model to others, all of which are fitted."""
        if isinstance(move, Move):
            return move
        name = getattr(move, "__name__", type(move).__name__)
        return Move(name, lambda situation: move(situation.model), most=None)

    def __repr__(self) -> str:
        return f"Move({self.name!r})"


OwnMove = Move[Any] | Callable[[FactorModel], Iterable[FactorModel]]
