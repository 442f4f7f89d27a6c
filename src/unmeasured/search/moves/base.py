"""What a move is: a name, and the models it proposes in a situation.

A move proposes; it neither fits nor decides. Its candidates may be invalid: those are dropped, as are those that
contradict knowledge. Of each kind the few with the best predicted gain are fitted, the best of these get other parents
for their variables, and the best of all is taken if the score rises (:mod:`unmeasured.search.refine`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from unmeasured.arrays import Floats
from unmeasured.search.model import FactorModel
from unmeasured.search.proposals import RankGains
from unmeasured.search.relocate import Relocations
from unmeasured.search.score import Fitted

Change = list[tuple[int, int]]  # variables and the column of their new parents in a table of relocations


@dataclass(frozen=True, eq=False)
class Situation:
    """What a move may look at: a fitted model, closed forms, and limits."""

    found: Fitted
    gains: RankGains  # of rank constraints: what a set of variables gains as the indicators of k latents
    corr: Floats  # (n, n) of the observed variables
    max_group_size: int
    relocations: Relocations  # other parents for every variable, scored in closed form
    rise: Floats  # (n, C) by how much each of them would raise the score at least

    @property
    def model(self) -> FactorModel:
        """The present model."""
        return self.found.model

    def predicted_gain(self, change: Change) -> float:
        """What other parents for some variables gain, if they do so independently."""
        return sum(float(self.rise[j, c]) for j, c in change)

    def applied(self, change: Change) -> FactorModel:
        """The model with other parents for some variables."""
        model = self.model
        for j, c in change:
            model = model.with_parents(j, int(self.relocations.masks[c]))
        return model


@dataclass(frozen=True)
class Move:
    """A kind of move."""

    name: str
    candidates: Callable[[Situation], Iterable[FactorModel]]
    is_late: bool = False  # tried only where all others fail: many candidates that rarely improve
