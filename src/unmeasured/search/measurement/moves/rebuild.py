"""Rebuild: two or three groups are dissolved and their variables are clustered anew.

For groups that are wrong together, where no change of one of them improves. The most work of all moves, so it comes
last.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from unmeasured.search.budget import BUDGET
from unmeasured.search.measurement.moves.base import Move, Situation
from unmeasured.search.measurement.proposals import Cluster, Clustering, RankGains, assemble, clusterings, find_clusters
from unmeasured.search.model import FactorModel


def candidates(situation: Situation) -> Iterator[FactorModel]:
    """What closed forms find among the variables of every pair of groups, with few groups of every three."""
    model, G = situation.model, situation.model.n_groups
    seen = {model.key}
    for r in range(2, min(3 if BUDGET.few_groups >= G else 2, G) + 1):
        for gone in combinations(range(G), r):
            for other in rebuilt(model, situation.gains, gone, situation.max_group_size):
                if other.is_valid and other.key not in seen:
                    seen.add(other.key)
                    yield other


def rebuilt(model: FactorModel, gains: RankGains, gone: tuple[int, ...], max_group_size: int) -> Iterator[FactorModel]:
    """The model with some of its groups dissolved and their variables clustered anew, in several ways.

    Variables left over get all new groups as parents; which of them they need is for the score to say.
    """
    mask = sum(1 << g for g in gone)
    items = [j for j, parents in enumerate(model.parents) if parents & mask and not parents & ~mask]
    kept = [g for g in range(len(model.sizes)) if g not in gone]
    old = [(model.sizes[g], model.pure(g)) for g in kept]
    # The groups that stay, in their new order, as parents of every variable.
    staying = [sum([1 << i for i, g in enumerate(kept) if parents >> g & 1]) for parents in model.parents]
    visited: set[tuple[Cluster, ...]] = set()
    # Of several groups only as they grow: all ways take as long as everything else together, and found no more. Nor in
    # a piece of many variables, which sees little of what a group touches: there they tore groups of two apart.
    is_plain = len(gone) > 1 or gains.is_piece
    ways = [Clustering(rate) for rate in BUDGET.rates] if is_plain else clusterings(max_group_size)
    for how in ways:
        new, _ = find_clusters(gains, items, how, max_group_size)
        if not new or tuple(new) in visited:
            continue
        visited.add(tuple(new))
        everything_new = ((1 << len(new)) - 1) << len(old)
        known = {
            j: staying[j] | everything_new if parents & mask else staying[j] for j, parents in enumerate(model.parents)
        }
        yield assemble(gains, [*old, *new], known)


MOVE = Move("rebuild", candidates, most=BUDGET.n_rebuilds)
