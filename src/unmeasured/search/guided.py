"""The search held to what is known: where it begins, and which models it may keep.

Proposals made from the data alone are brought as near as they come to models that the rules allow. The look for a model
that proved the rules consistent gives starts too, so there always is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from unmeasured.knowledge.rules import Paths, Rules
from unmeasured.knowledge.satisfy import models, nearest_model
from unmeasured.search.budget import BUDGET
from unmeasured.search.model import FactorModel
from unmeasured.search.proposals import RankGains, assemble, find_clusters, proposals


def is_allowed(model: FactorModel, rules: Rules | None) -> bool:
    """Whether a model is a valid factor model and agrees with what is known."""
    return model.is_valid and (rules is None or rules.allow(model.sizes, model.parents))


def paths_of(model: FactorModel, rules: Rules | None) -> Paths:
    """What is known of the graph over the groups of a model."""
    return Paths.free(len(model.sizes)) if rules is None else rules.paths(model.sizes, model.parents)


def conformed(candidates: Iterable[tuple[str, FactorModel]], rules: Rules) -> Iterator[tuple[str, FactorModel]]:
    """Candidates with the items put back where they are known to be; those without room for a known group are gone."""
    for what, model in candidates:
        near = rules.conform(model.sizes, model.parents)
        if near is not None:
            yield what, FactorModel(model.observed, *near)


def guided_proposals(gains: RankGains, max_group_size: int, rules: Rules | None) -> list[FactorModel]:
    """Proposals (:func:`unmeasured.search.proposals.proposals`), each the nearest that the rules allow."""
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
    found = {tuple(find_clusters(gains, free, rate, max_group_size)[0]) for rate in BUDGET.rates}
    for new in sorted(found):
        yield assemble(gains, [*known, *new], dict(rules.listed))
