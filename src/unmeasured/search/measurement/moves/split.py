"""Split: one group is dissolved and its variables are clustered anew.

For two groups that were taken for one.
"""

from __future__ import annotations

from collections.abc import Iterator

from unmeasured.search.measurement.moves.base import Move, Situation
from unmeasured.search.measurement.moves.rebuild import rebuilt
from unmeasured.search.model import FactorModel


def candidates(situation: Situation) -> Iterator[FactorModel]:
    """What closed forms find among the variables of each group."""
    model = situation.model
    for g in range(model.n_groups):
        for other in rebuilt(model, situation.gains, (g,), situation.max_group_size):
            if other.key != model.key:
                yield other


MOVE = Move("split", candidates)
