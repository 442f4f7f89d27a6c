"""The answer in the light of what is known: the part of the class that agrees, names for latents, and the price."""

from __future__ import annotations

import numpy as np

from unmeasured.errors import ModelError, UnmeasuredError
from unmeasured.graphs import CPDAG
from unmeasured.knowledge.known import Knowledge
from unmeasured.knowledge.rules import Parents, Rules, Sizes
from unmeasured.knowledge.statements import Statement
from unmeasured.search.paper.state import latent_names

# A difference in BIC above this is very strong evidence (Kass and Raftery 1995).
_LOUD = 10.0
# Statements that are told in one remark.
_MOST_TOLD = 6

NO_PRICE = "What the knowledge costs was not computed; price_knowledge=True searches a second time to tell."


def informed(cpdag: CPDAG, knowledge: Knowledge, rules: Rules) -> tuple[CPDAG, tuple[str, ...]]:
    """The members of a class that agree with what is known, its groups named; and the names that were given.

    Raises
    ------
    ModelError
        Where none agrees. A search by BIC is held to the rules and ends in a class that has such members; the paper's
        rule is not, and its answer is refused.
    """
    found = agreeing(cpdag, knowledge, rules)
    if found is None:
        broken = "; ".join(map(str, violated(cpdag, knowledge))) or "all of it together"
        raise ModelError(
            f"The paper's rule comes to a graph that does not agree with the knowledge given ({broken}), and it cannot "
            'be held to it on its way. Use criterion="bic" and a finite sample, or take the knowledge back.'
        )
    return found


def agreeing(cpdag: CPDAG, knowledge: Knowledge, rules: Rules) -> tuple[CPDAG, tuple[str, ...]] | None:
    """The same; None where no member agrees."""
    restricted = _restricted(cpdag, rules)
    if restricted is None:
        return None
    places = rules.places(_measurement(cpdag)[1]) or ()
    names: dict[str, str] = {}
    for group, place in zip(rules.groups, places, strict=True):
        latents = restricted.groups[place]
        numbered = [group] if len(latents) == 1 else [f"{group}_{i + 1}" for i in range(len(latents))]
        names |= dict(zip(latents, knowledge.latents.get(group, numbered), strict=True))
    others = [latent for latent in restricted.latents if latent not in names]
    # L1, L2, ... may be taken now; the others keep the same count.
    names |= dict(zip(others, latent_names((*restricted.observed, *names.values()), len(others)), strict=True))
    given = tuple(name for old, name in names.items() if old not in others)
    return restricted.rename(names), given


def violated(cpdag: CPDAG, knowledge: Knowledge) -> tuple[Statement, ...]:
    """The statements that a class does not agree with, each by itself; paths only between groups that are there."""
    broken = []
    named = {s.group: s for s in knowledge.statements if s.kind == "group"}
    for statement in knowledge.statements:
        about = [s for s in _subjects(statement, named) if s is not statement]
        ground = Rules.of(about, cpdag.observed)
        if about and _restricted(cpdag, ground) is None:
            continue  # the group itself is not there, which is told of the group
        if _restricted(cpdag, Rules.of([*about, statement], cpdag.observed)) is None:
            broken.append(statement)
    return tuple(broken)


def price_in_words(knowledge: Knowledge, with_it: float, without: float, free: CPDAG) -> str:
    """What knowledge costs in BIC against the search without it, and which statements that search contradicts."""
    price = with_it - without
    if price < 0.05:
        return f"The knowledge given costs nothing: without it the search finds nothing better (BIC {without:.1f})."
    broken = violated(free, knowledge)
    told = "; ".join(map(str, broken[:_MOST_TOLD]))
    if len(broken) > _MOST_TOLD:
        told += f"; and {len(broken) - _MOST_TOLD} more"
    text = f"The knowledge given costs {price:.1f} of BIC against the search without it (BIC {without:.1f})"
    text += f", which contradicts: {told}." if told else "."
    if price > _LOUD:
        text += f" The data reject it loudly: a difference above {_LOUD:g} is very strong evidence."
    return text


def _subjects(statement: Statement, named: dict[str, Statement]) -> list[Statement]:
    """The groups a statement speaks of."""
    if statement.is_about_paths:
        names = {name for arrow in statement.value for name in arrow}
        return [s for name, s in named.items() if name in names]
    return [named[statement.group]] if statement.group else []


def _measurement(cpdag: CPDAG) -> tuple[Sizes, Parents]:
    """Sizes of the groups, and for every observed variable the groups that cause it as bits."""
    first = [cpdag.variables.index(group[0]) for group in cpdag.groups]
    items = [cpdag.variables.index(name) for name in cpdag.observed]
    measures = cpdag.adjacency[np.ix_(first, items)]
    parents = tuple(sum(1 << int(g) for g in np.flatnonzero(column)) for column in measures.T)
    return tuple(map(len, cpdag.groups)), parents


def _restricted(cpdag: CPDAG, rules: Rules) -> CPDAG | None:
    sizes, parents = _measurement(cpdag)
    if not rules.allow(sizes, parents):
        return None
    first = [cpdag.variables.index(group[0]) for group in cpdag.groups]
    arcs = rules.paths(sizes, parents).arcs(cpdag.adjacency[np.ix_(first, first)])
    if arcs is None:
        return None
    try:
        return cpdag.restricted([(cpdag.groups[a][0], cpdag.groups[b][0]) for a, b in arcs])
    except UnmeasuredError:
        return None
