"""Item partitions: the latent that each observed variable belongs to, from narrow facets to broad traits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unmeasured.graphs import CPDAG
from unmeasured.models.fit import Fit


@dataclass(frozen=True)
class ItemPartition:
    """Partition of the observed variables by latent.

    ``agreement`` is the mean adjusted Rand index between the items' partition and those of replicates of the data
    (:mod:`unmeasured.search.close_fit.replicability`); NaN where it was not measured.
    """

    items: tuple[str, ...]
    latents: tuple[str, ...]  # of each item; empty text: it belongs to none
    agreement: float = math.nan
    agreement_se: float = math.nan  # the standard error of that mean

    @property
    def labels(self) -> list[int]:
        """The latents as numbers."""
        number = {name: k for k, name in enumerate(dict.fromkeys(self.latents))}
        return [number[name] for name in self.latents]

    @property
    def n_latents(self) -> int:
        """How many latents the items belong to."""
        return len({name for name in self.latents if name})

    def renamed(self, names: Mapping[str, str]) -> ItemPartition:
        """The same with other names; facets of a latent follow its name.

        >>> ItemPartition(("a", "b"), ("L1.1", "L2")).renamed({"L1": "speed", "L2": "care"}).latents
        ('speed.1', 'care')
        >>> ItemPartition(("a", "b"), ("L1+L2", "L3")).renamed({"L1": "speed", "L2": "care"}).latents
        ('speed+care', 'L3')
        """
        return replace(self, latents=tuple(_renamed(name, names) for name in self.latents))


def _renamed(name: str, names: Mapping[str, str]) -> str:
    if name in names:
        return names[name]
    if "+" in name:
        return "+".join(_renamed(part, names) for part in name.split("+"))
    whole, dot, part = name.rpartition(".")
    return f"{names[whole]}.{part}" if dot and whole in names else name


def loading_shares(graph: CPDAG, fit: Fit) -> dict[str, dict[str, float]]:
    """What each group explains of each variable that loads on it: the sum of squared standardised loadings.

    A group of several goes by its first latent.
    """
    table = fit.parameters
    rows = table[table["op"] == "=~"]
    first = {latent: group[0] for group in graph.latent_groups for latent in group}
    shares: dict[str, dict[str, float]] = {}
    for latent, item, std in zip(rows["lhs"], rows["rhs"], rows["std"], strict=True):
        if latent in first and not math.isnan(std):
            of = shares.setdefault(item, {})
            of[first[latent]] = of.get(first[latent], 0.0) + float(std) ** 2
    return shares


def strongest_partition(graph: CPDAG, fit: Fit) -> ItemPartition:
    """Each observed variable with the latent it loads on most; a group of several goes by its first latent."""
    shares, items = loading_shares(graph, fit), graph.variables.indicators
    parts = (shares.get(name, {}) for name in items)
    return ItemPartition(items, tuple(max(part, key=part.__getitem__) if part else "" for part in parts))


def model_partitions(graph: CPDAG, fit: Fit) -> tuple[ItemPartition, ...]:
    """Return the partitions by the latents of a model, one for each level of latents, the lowest first.

    A latent that has nothing above it stands for itself in higher levels too.
    """
    levels = [strongest_partition(graph, fit)]
    holder = {below: above for above, facets in graph.facets.items() for below in facets}
    for height in range(1, max(graph.levels.values(), default=0) + 1):
        names = {
            below: above
            for below, above in holder.items()
            if graph.levels[below] < height and graph.levels[above] == height
        }
        last = levels[-1]
        levels.append(replace(last, latents=tuple(names.get(name, name) for name in last.latents)))
    return tuple(levels)


def name_partition(labels: Sequence[int], lead: Sequence[str]) -> tuple[str, ...]:
    """Return names for the sets of another partition, from the selected one: facets ``L1.1``, ``L1.2``, or ``L1+L2``.

    A set that holds most items of several leading latents is named after them; one that shares a leading latent with
    others is a facet of the one most of its items belong to.

    >>> name_partition([0, 0, 1, 1, 2, 2], ["L1", "L1", "L1", "L1", "L2", "L2"])
    ('L1.1', 'L1.1', 'L1.2', 'L1.2', 'L2', 'L2')
    >>> name_partition([0, 0, 0, 0, 1, 1], ["L1", "L1", "L2", "L2", "L3", "L3"])
    ('L1+L2', 'L1+L2', 'L1+L2', 'L1+L2', 'L3', 'L3')
    """
    values = np.asarray(labels)
    order = list(dict.fromkeys(values.tolist()))
    # The set in which most items of each leading latent are.
    homes = {
        latent: Counter(v for v, x in zip(values.tolist(), lead, strict=True) if x == latent).most_common(1)[0][0]
        for latent in dict.fromkeys(lead)
        if latent
    }
    names: dict[int, str] = {}
    facets: Counter[str] = Counter()
    most: dict[int, str] = {}
    for label in order:
        inside = Counter(x for v, x in zip(values.tolist(), lead, strict=True) if v == label and x)
        most[label] = inside.most_common(1)[0][0] if inside else "L"
    for label in order:
        whole = [latent for latent, home in homes.items() if home == label]
        rivals = [other for other in order if most[other] == most[label]]
        if len(whole) > 1:
            names[label] = "+".join(whole)
        elif len(rivals) > 1:
            facets[most[label]] += 1
            names[label] = f"{most[label]}.{facets[most[label]]}"
        else:
            names[label] = most[label]
    # Two sets never share a name.
    taken: Counter[str] = Counter()
    for label in order:
        taken[names[label]] += 1
        if taken[names[label]] > 1:
            names[label] = f"{names[label]}.{taken[names[label]]}"
    return tuple(names[v] for v in values.tolist())
