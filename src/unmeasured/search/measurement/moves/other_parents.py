"""Other parents: variables become indicators of other groups, of one more or of one less.

All sets of parents are scored in closed form (:mod:`unmeasured.search.measurement.relocate`), a lower bound on the
gain. What is sure to improve comes first; then, should that fail, what may. This move is made until it improves
nothing before any other is tried, and within trials of other moves; its candidates carry the place where their fit
begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from unmeasured.search.budget import BUDGET
from unmeasured.search.measurement.moves.base import Candidate, Change, Situation
from unmeasured.search.score import Start

NAME = "other parents"


def candidates(situation: Situation) -> Iterator[list[Candidate]]:
    """The changes with the best predicted gain: one batch of those that are sure to improve, then the others."""
    rise = situation.rise
    row, column = (rise > -BUDGET.slack).nonzero()
    order = np.argsort(-rise[row, column], kind="stable")[: 4 * len(rise)]
    single = list(zip(row[order].tolist(), column[order].tolist(), strict=True))
    # Dropping a parent may cost nothing once the others have adapted to it, however little the bound predicts.
    single += [drop for drop in drops(situation) if drop not in single]
    together: Change = []
    for one in single:
        if rise[one] > 0 and all(one[0] != i for i, _ in together):
            more = [*together, *with_kin(situation, one)]
            together = more if situation.allows(more) else together
    valid: list[Change] = []
    stuck: Change = []
    for change in (with_kin(situation, one) for one in single):
        if len(valid) == BUDGET.n_relocated + BUDGET.n_dropped:
            break
        if situation.allows(change):
            valid.append(change)
        elif len(stuck) < BUDGET.n_relocated:
            stuck.append(change[0])
    sure = [together] if len(together) > 1 else []
    sure += [change for change in valid[:1] if rise[change[0]] > 0]
    yield [candidate(situation, change) for change in sure]
    others = valid + exchanges(situation, stuck)
    yield [candidate(situation, change) for change in others if change not in sure]


def drops(situation: Situation) -> Change:
    """Common children with one parent less, those with the best predicted gain."""
    model, column, rise = situation.model, situation.relocations.column, situation.rise
    found = [
        (j, column[mask & ~(1 << g)])
        for j, mask in enumerate(model.parents)
        for g in range(model.n_groups)
        if mask >> g & 1 and mask != 1 << g
    ]
    return sorted(found, key=lambda drop: -rise[drop])[: BUDGET.n_dropped]


def exchanges(situation: Situation, stuck: Sequence[tuple[int, int]]) -> list[Change]:
    """A variable whose group would be left with too few pure children changes places with another one."""
    model, column, rise = situation.model, situation.relocations.column, situation.rise
    out = []
    for j, c in stuck:
        home = column.get(model.parents[j])
        if home is None:
            continue
        for i in np.argsort(-rise[:, home])[:2].tolist():
            change = [(j, c), (i, home)]
            is_likely = i != j and rise[i, home] + rise[j, c] > -BUDGET.slack
            if is_likely and situation.allows(change):
                out.append(change)
    return out


def with_kin(situation: Situation, one: tuple[int, int]) -> Change:
    """A change, with the items that are known to go with it."""
    j, c = one
    return [one] if situation.rules is None else [(i, c) for i in situation.rules.blocks[j]]


def candidate(situation: Situation, change: Change) -> Candidate:
    """The model after a change; its fit begins with the loadings and residual variances that closed forms give."""
    found, table = situation.found, situation.relocations
    other = situation.applied(change)
    m = len(found.effects)
    effects, noise = found.effects.copy(), found.noise.copy()
    for j, c in change:
        effects[:, m + j] = table.loadings[j, c]
        noise[j] = table.noises[j, c]
    # What several changes are predicted to gain does not add up.
    least = found.value + float(situation.rise[change[0]]) if len(change) == 1 else -np.inf
    return Candidate(other, Start(np.concatenate([effects[other.mask], noise]), least))
