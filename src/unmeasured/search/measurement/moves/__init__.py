"""Moves over a measurement model, a file each.

*Other parents* is made until it improves nothing; then the moves over groups are tried together, *rebuild* last. To add
one, write a file with a ``MOVE`` (:class:`~unmeasured.search.measurement.moves.base.Move`) and name it here. A user's
own moves are of the same kind, or functions from a model to others, given as ``um.LGES(moves=[...])``.
"""

from typing import Any

from unmeasured.search.measurement.moves import (
    absorb,
    dissolve,
    exchange,
    expel,
    merge,
    new_latent,
    rebuild,
    resize,
    split,
)
from unmeasured.search.measurement.moves.base import Candidate, Change, ClosedForms, Move, OwnMove, Situation

RESTRUCTURING: tuple[Move[Any], ...] = (
    absorb.MOVE,
    expel.MOVE,
    new_latent.MOVE,
    merge.MOVE,
    resize.MOVE,
    split.MOVE,
    exchange.MOVE,
    dissolve.MOVE,
)
REBUILDING: tuple[Move[Any], ...] = (rebuild.MOVE,)

__all__ = ["REBUILDING", "RESTRUCTURING", "Candidate", "Change", "ClosedForms", "Move", "OwnMove", "Situation"]
