"""Absorb: common children of a group become its pure ones, and it takes in a latent or two more.

For two groups that share children because they are parts of one, and for one whose other children were taken for common
ones because two of them, nearly proportional, passed as the indicators of one latent.
"""

from __future__ import annotations

from collections.abc import Iterator

from unmeasured.search.budget import BUDGET
from unmeasured.search.measurement.moves.base import Move, Situation
from unmeasured.search.measurement.proposals import Clustering, find_clusters
from unmeasured.search.model import FactorModel

Absorption = tuple[int, tuple[int, ...], int]  # a group, common children, its new size


def candidates(situation: Situation) -> Iterator[Absorption]:
    """For every group the common children with the same parents, and those that have the rank of a larger group."""
    model = situation.model
    for g, size in enumerate(model.sizes):
        common = [j for j, mask in enumerate(model.parents) if mask >> g & 1 and mask != 1 << g]
        sizes = range(size + 1, min(size + 2, situation.max_group_size) + 1)
        alike = [
            tuple(j for j in common if model.parents[j] == mask) for mask in sorted({model.parents[j] for j in common})
        ]
        found = dict.fromkeys((g, children, k) for children in alike for k in sizes)
        for k in sizes if common else ():
            found |= dict.fromkeys((g, children, k) for children in _of_rank(situation, g, common, k))
        yield from found


def _of_rank(situation: Situation, g: int, common: list[int], k: int) -> Iterator[tuple[int, ...]]:
    """Common children that are a pure cluster of rank k with all pure children of the group."""
    own = set(situation.model.pure(g))
    items = sorted({*own, *common})
    for rate in BUDGET.rates:
        clusters, _ = find_clusters(situation.gains, items, Clustering(rate, is_pure=True, smallest=k), k)
        yield from (tuple(sorted({*cluster} - own)) for _, cluster in clusters if own < {*cluster})


def apply(situation: Situation, absorption: Absorption) -> FactorModel:
    """The larger group with the common children for its own."""
    model, (g, children, k) = situation.model, absorption
    parents = tuple(1 << g if j in children else mask for j, mask in enumerate(model.parents))
    return FactorModel(model.observed, model.sizes, parents).resized(g, k)


MOVE = Move("absorb", candidates, apply)
