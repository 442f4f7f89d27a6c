"""Whether a graph agrees with knowledge, read off the words of its documentation: slow and obvious on purpose.

Nothing here uses the code under test beyond the fields of ``Knowledge``.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product

import unmeasured as um

# A measurement model as plain data: for each group its number of latents and the items it causes.
Model = list[tuple[int, frozenset[str]]]


def holds(count: int | str | None, number: int) -> bool:
    """Whether a number is as it was said."""
    if count is None:
        return True
    if isinstance(count, int):
        return number == count
    bound = int(count.split()[-1])
    return number <= bound if count.startswith("at most") else number >= bound


def place(known: um.Knowledge, model: Model, name: str) -> int | None:
    """The one group that the items listed under this name alone, and nothing else, measure."""
    others = {x for other, items in known.groups.items() if other != name for x in items}
    own = set(known.groups[name]) - others
    homes = [{g for g, (_, items) in enumerate(model) if x in items} for x in own]
    return homes[0].copy().pop() if all(home == homes[0] and len(home) == 1 for home in homes) else None


def measures_agree(known: um.Knowledge, model: Model) -> bool:
    """Whether who measures what is as it was said."""
    places = {name: place(known, model, name) for name in known.groups}
    if None in places.values() or len(set(places.values())) < len(places):
        return False
    for item in {x for items in known.groups.values() for x in items}:
        listed = {places[name] for name, items in known.groups.items() if item in items}
        if listed != {g for g, (_, items) in enumerate(model) if item in items}:
            return False
    sizes = {name: model[g][0] for name, g in places.items()}
    return (
        all(any(set(t) <= items for _, items in model) for t in known.together)
        and not any(set(pair) <= items for a in known.apart for pair in combinations(a, 2) for _, items in model)
        and holds(known.n_latents, sum(k for k, _ in model))
        and holds(known.n_groups, len(model))
        and all(holds(known.group_size, k) for k, _ in model)
        and all(holds(count, sizes[name]) for name, count in known.sizes.items())
        and all(len(latents) == sizes[name] for name, latents in known.latents.items())
    )


def is_factor_model(model: Model) -> bool:
    """Definition 2 (i): a group of k latents has 2k items of its own, and no two groups cause the same items."""
    for g, (k, items) in enumerate(model):
        others = {x for h, (_, theirs) in enumerate(model) if h != g for x in theirs}
        if len(items - others) < 2 * k:
            return False
    return True


def model_of(graph: um.CPDAG) -> Model:
    """The measurement model of a class."""
    edges = set(graph.directed_edges)
    return [
        (len(group), frozenset(x for x in graph.observed if (group[0], x) in edges)) for group in graph.latent_groups
    ]


def arrows_agree(known: um.Knowledge, edges: set[tuple[str, str]], latent: Mapping[str, str]) -> bool:
    """Whether a DAG has the paths that were said to be there, and none of the others; ``latent`` stands for a group."""
    tier = {name: i for i, names in enumerate(known.tiers) for name in names}
    late = {(latent[a], latent[b]) for a, b in product(tier, tier) if tier[a] > tier[b]}
    forbidden = set()
    for text in known.forbidden:
        a, arrow, b = text.split()
        forbidden |= {(latent[a], latent[b])} | ({(latent[b], latent[a])} if arrow == "--" else set())
    required = {(latent[text.split()[0]], latent[text.split()[2]]) for text in known.required}
    return required <= edges and not edges & (late | forbidden)


def agrees(known: um.Knowledge, graph: um.CPDAG) -> bool:
    """Whether every member of a class is as it was said, with the names that were given."""
    model = model_of(graph)
    if not measures_agree(known, model):
        return False
    latent = {}
    for name in known.groups:
        group = graph.latent_groups[place(known, model, name)]
        latent[name] = group[0]
        numbered = [name] if len(group) == 1 else [f"{name}_{i + 1}" for i in range(len(group))]
        if list(group) != list(known.latents.get(name, numbered)):
            return False
    return all(arrows_agree(known, set(member.edges), latent) for member in graph.members())
