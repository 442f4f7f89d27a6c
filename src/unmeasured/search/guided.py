"""The search within what is known: where it begins, which models it may keep, and what its answer then is.

Proposals made from the data alone are brought as near as they come to models that the rules allow. The look for a model
that proved the rules consistent gives starts too, so there always is one. Of the class that comes out the members that
agree are kept, their latents are named, and what the knowledge costs is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from unmeasured.errors import ModelError, UnmeasuredError
from unmeasured.graphs import CPDAG
from unmeasured.knowledge.known import Knowledge
from unmeasured.knowledge.rules import Paths, Rules
from unmeasured.knowledge.satisfy import models, nearest_model
from unmeasured.knowledge.statements import Statement
from unmeasured.search.budget import BUDGET
from unmeasured.search.measurement.proposals import Clustering, RankGains, assemble, find_clusters, proposals
from unmeasured.search.model import FactorModel, latent_names, model_of_class

NOT_COMPARED = "The BIC difference was not computed; compare_without_knowledge=True does so by a second search."


# Models --------------------------------------------------------------------------------------------------


def is_allowed(model: FactorModel, rules: Rules | None) -> bool:
    """Whether a model is a valid factor model and agrees with what is known."""
    return model.is_valid and (rules is None or rules.allow(model.sizes, model.parents))


def paths_of(model: FactorModel, rules: Rules | None) -> Paths:
    """What is known of the graph over the groups of a model."""
    return Paths.free(len(model.sizes)) if rules is None else rules.paths(model.sizes, model.parents)


def conformed(models: Iterable[FactorModel], rules: Rules) -> Iterator[FactorModel]:
    """Models with the items put back where they are known to be; those that cannot have a known group are gone."""
    for model in models:
        near = rules.conform(model.sizes, model.parents)
        if near is not None:
            yield FactorModel(model.observed, *near)


def guided_proposals(gains: RankGains, max_group_size: int, rules: Rules | None) -> list[FactorModel]:
    """Proposals (:func:`unmeasured.search.measurement.proposals.proposals`), each the nearest that the rules allow."""
    plain = proposals(gains, max_group_size)
    if rules is None:
        return plain
    near = (nearest_model(rules, m.sizes, m.parents) for m in (*plain, *_around_groups(gains, max_group_size, rules)))
    bare = islice(models(rules), BUDGET.n_bare) if rules.needs_latents else ()
    found = [FactorModel(gains.names, *model) for model in (*near, *bare) if model is not None]
    return list({model.key: model for model in found if is_allowed(model, rules)}.values())


def _around_groups(gains: RankGains, max_group_size: int, rules: Rules) -> Iterator[FactorModel]:
    """The groups that are known as they are, and what closed forms find among the other items at each rate."""
    if not rules.groups:
        return
    known = [(rules.size_of(g).low, own) for g, own in enumerate(rules.own)]
    free = [j for j in range(gains.n) if j not in rules.listed]
    found = {tuple(find_clusters(gains, free, Clustering(rate), max_group_size)[0]) for rate in BUDGET.rates}
    for new in sorted(found):
        yield assemble(gains, [*known, *new], dict(rules.listed))


# Answers -------------------------------------------------------------------------------------------------


def informed(cpdag: CPDAG, knowledge: Knowledge, rules: Rules) -> tuple[CPDAG, tuple[str, ...]]:
    """The members of a class that agree with what is known, its groups named; and the names that were given.

    Raises
    ------
    ModelError
        Where none agrees. A search by BIC keeps to the rules and ends in a class that has such members; the paper's
        rule is not, and its answer is refused.
    """
    found = agreeing(cpdag, knowledge, rules)
    if found is None:
        broken = "; ".join(map(str, violated(cpdag, knowledge))) or "all of it together"
        raise ModelError(
            f"The paper's rule comes to a graph that does not agree with the knowledge given ({broken}), and it cannot "
            'be made to keep to it. Use criterion="bic" and a finite sample, or take the knowledge back.'
        )
    return found


def agreeing(cpdag: CPDAG, knowledge: Knowledge, rules: Rules) -> tuple[CPDAG, tuple[str, ...]] | None:
    """The same; None where no member agrees."""
    restricted = _restricted(cpdag, rules)
    if restricted is None:
        return None
    places = rules.places(model_of_class(cpdag, cpdag.observed).parents) or ()
    measured = [group for group in restricted.latent_groups if not restricted.levels[group[0]]]
    names: dict[str, str] = {}
    for group, place in zip(rules.groups, places, strict=True):
        latents = measured[place]
        numbered = [group] if len(latents) == 1 else [f"{group}_{i + 1}" for i in range(len(latents))]
        names |= dict(zip(latents, knowledge.latents.get(group, numbered), strict=True))
    for trait, below in knowledge.above.items():
        facets = {old for old, new in names.items() if new in below}
        found = next((name for name, those in restricted.facets.items() if facets <= set(those)), None)
        if found is None:
            return None
        names[found] = trait
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
        if _restricted(cpdag, Rules.of([*about, statement], cpdag.observed)) is None or (
            statement.kind == "above" and not _is_above(cpdag, [named[name] for name in statement.value])
        ):
            broken.append(statement)
    return tuple(broken)


def cost_in_words(knowledge: Knowledge, with_it: float, without: float, free: CPDAG) -> str:
    """What knowledge costs in BIC against the search without it, and which statements that search contradicts."""
    cost = with_it - without
    if cost < BUDGET.costs_nothing:
        return f"The knowledge given costs nothing: without it the search finds nothing better (BIC {without:.1f})."
    broken = violated(free, knowledge)
    told = "; ".join(map(str, broken[: BUDGET.n_statements_named]))
    if len(broken) > BUDGET.n_statements_named:
        told += f"; and {len(broken) - BUDGET.n_statements_named} more"
    text = f"The knowledge given costs {cost:.1f} of BIC against the search without it (BIC {without:.1f})"
    text += f", which contradicts: {told}." if told else "."
    if cost > BUDGET.very_strong:
        text += f" The data speak against it: a difference above {BUDGET.very_strong:g} is very strong evidence."
    return text


def _is_above(cpdag: CPDAG, below: list[Statement]) -> bool:
    """Whether one latent is above all latents that are measured by the items of these groups."""
    own = {next((x for x in cpdag.member().parents(s.value[0])), "") for s in below}
    return any(own <= set(facets) for facets in cpdag.facets.values())


def _subjects(statement: Statement, named: dict[str, Statement]) -> list[Statement]:
    """The groups a statement speaks of."""
    if statement.is_about_paths:
        names = {name for arrow in statement.value for name in arrow}
        return [s for name, s in named.items() if name in names]
    return [named[statement.group]] if statement.group else []


def _restricted(cpdag: CPDAG, rules: Rules) -> CPDAG | None:
    model = model_of_class(cpdag, cpdag.observed)
    sizes, parents = model.sizes, model.parents
    if not rules.allow(sizes, parents):
        return None
    if rules.max_levels is not None and max(cpdag.levels.values(), default=0) >= rules.max_levels:
        return None
    groups = [group for group in cpdag.latent_groups if not cpdag.levels[group[0]]]  # those that items measure
    first = [cpdag.variables.index(group[0]) for group in groups]
    arcs = rules.paths(sizes, parents).arcs(cpdag.adjacency[np.ix_(first, first)])
    if arcs is None:
        return None
    try:
        return cpdag.restricted([(groups[a][0], groups[b][0]) for a, b in arcs])
    except UnmeasuredError:
        return None
