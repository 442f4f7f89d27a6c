"""Moves over the groups of a measurement model, a file each.

To add one, write a file with a ``MOVE`` (:class:`~unmeasured.search.moves.base.Move`) and name it here. A user's own
moves are functions from a model to others, given as ``um.LGES(moves=[...])``.
"""

from unmeasured.search.moves import absorb, dissolve, exchange, expel, merge, new_latent, resize, split
from unmeasured.search.moves.base import Change, Move, Situation

RESTRUCTURING: tuple[Move, ...] = (
    absorb.MOVE,
    expel.MOVE,
    new_latent.MOVE,
    merge.MOVE,
    resize.MOVE,
    split.MOVE,
    exchange.MOVE,
    dissolve.MOVE,
)

__all__ = ["RESTRUCTURING", "Change", "Move", "Situation"]
