"""Split: one group is dissolved and its variables are clustered anew.

For two groups that were taken for one.
"""

from __future__ import annotations

from collections.abc import Iterator

from unmeasured.search.model import FactorModel
from unmeasured.search.moves.base import Move, Situation
from unmeasured.search.proposals import splits


def candidates(situation: Situation) -> Iterator[FactorModel]:
    """What closed forms find among the variables of each group."""
    yield from splits(situation.model, situation.gains, situation.max_group_size)


MOVE = Move("split", candidates)
