"""What statements allow: measurement models, and graphs over their groups.

A measurement model comes as the sizes of its groups and, for every item, the groups that cause it as bits. A named
group is where its own items are: the items listed under it and no other name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from unmeasured.arrays import Bools, Marks
from unmeasured.graphs.orientation import restricted
from unmeasured.knowledge.statements import ANY, Count, Statement

Sizes = tuple[int, ...]
Parents = tuple[int, ...]


@dataclass(frozen=True)
class Rules:
    """Statements in terms of positions: items of the data, groups in the order they were named.

    Statements about groups that were not named say nothing here, so that any part of what is known can be looked at by
    itself.
    """

    n_items: int
    groups: tuple[str, ...] = ()
    listed: Mapping[int, int] = field(default_factory=dict)  # item: the named groups that cause it, as bits
    together: tuple[tuple[int, ...], ...] = ()
    apart: tuple[tuple[int, int], ...] = ()
    n_latents: Count = ANY
    n_groups: Count = ANY
    group_size: Count = ANY
    sizes: tuple[Count, ...] = ()  # of the named groups
    required: frozenset[tuple[int, int]] = frozenset()
    forbidden: frozenset[tuple[int, int]] = frozenset()
    above: tuple[tuple[int, ...], ...] = ()  # named groups below a common cause
    max_levels: int | None = None

    @classmethod
    def of(cls, statements: Iterable[Statement], items: Sequence[str], max_group_size: int | None = None) -> Rules:
        """From statements about items that are all known."""
        statements = list(statements)
        position = {name: j for j, name in enumerate(items)}
        groups = tuple(s.group for s in statements if s.kind == "group")
        number = {name: g for g, name in enumerate(groups)}
        listed: dict[int, int] = {}
        for s in statements:
            for name in s.value if s.kind == "group" else ():
                listed[position[name]] = listed.get(position[name], 0) | 1 << number[s.group]
        cap = Count(low=1, high=max_group_size)
        sizes = [_all_of(s.count for s in statements if s.kind in ("size", "latents") and s.group == g) for g in groups]
        return cls(
            n_items=len(items),
            groups=groups,
            listed=listed,
            together=tuple(tuple(position[x] for x in s.value) for s in statements if s.kind == "together"),
            apart=tuple(
                pair
                for s in statements
                if s.kind == "apart"
                for pair in combinations(sorted(position[x] for x in s.value), 2)
            ),
            n_latents=_all_of(s.count for s in statements if s.kind == "n_latents"),
            n_groups=_all_of(s.count for s in statements if s.kind == "n_groups"),
            group_size=_all_of([cap, *(s.count for s in statements if s.kind == "group_size")]),
            sizes=tuple(sizes),
            required=_arrows(statements, number, True),
            forbidden=_arrows(statements, number, False),
            above=tuple(
                tuple(number[x] for x in s.value)
                for s in statements
                if s.kind == "above" and number.keys() >= set(s.value)
            ),
            max_levels=_all_of(s.count for s in statements if s.kind == "max_levels").high,
        )

    # Measurement models -----------------------------------------------------------------------------------

    @cached_property
    def own(self) -> tuple[tuple[int, ...], ...]:
        """For each named group the items that measure it alone."""
        return tuple(tuple(j for j, mask in self.listed.items() if mask == 1 << g) for g in range(len(self.groups)))

    @cached_property
    def foes(self) -> tuple[int, ...]:
        """For each item those it shares no group with, as bits."""
        masks = [0] * self.n_items
        for a, b in self.apart:
            masks[a] |= 1 << b
            masks[b] |= 1 << a
        return tuple(masks)

    @property
    def needs_latents(self) -> bool:
        """Whether a model without latents is ruled out."""
        return bool(self.groups or self.together or self.n_latents.low or self.n_groups.low)

    def size_of(self, name: int) -> Count:
        """Latents that a named group may have."""
        return self.group_size.also(self.sizes[name])

    def places(self, parents: Parents) -> tuple[int, ...] | None:
        """Where the named groups are in a model, or None where its items are not with them."""
        places = []
        for own in self.own:
            mask = parents[own[0]]
            if mask.bit_count() != 1:
                return None
            places.append(mask.bit_length() - 1)
        right = len(set(places)) == len(places) and all(
            parents[j] == sum(1 << place for g, place in enumerate(places) if mask >> g & 1)
            for j, mask in self.listed.items()
        )
        return tuple(places) if right else None

    def allow(self, sizes: Sizes, parents: Parents) -> bool:
        """Whether who measures what is as it is known."""
        if not (self.n_groups.holds(len(sizes)) and self.n_latents.holds(sum(sizes))):
            return False
        if not all(map(self.group_size.holds, sizes)):
            return False
        if any(parents[a] & parents[b] for a, b in self.apart):
            return False
        if not all(_in_common(parents, items) for items in self.together):
            return False
        places = self.places(parents)
        return places is not None and all(self.sizes[g].holds(sizes[place]) for g, place in enumerate(places))

    @cached_property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """For each item those that move with it, itself first: they share a group, and so on."""
        block = [{j} for j in range(self.n_items)]
        for items in self.together:
            merged = set().union(*(block[j] for j in items))
            for j in merged:
                block[j] = merged
        return tuple((j, *sorted(block[j] - {j})) for j in range(self.n_items))

    def conform(self, sizes: Sizes, parents: Parents) -> tuple[Sizes, Parents] | None:
        """The model with listed items where they belong and sizes within bounds, or None where there is no place "
        "for a group.

        A named group is the group that has most of its own items. The rest may still be ruled out.
        """
        places: list[int] = []
        for own in self.own:
            votes = [sum(parents[j] >> g & 1 for j in own) if g not in places else -1 for g in range(len(sizes))]
            if max(votes, default=-1) < 0:
                return None
            places.append(votes.index(max(votes)))
        moved = list(parents)
        for j, mask in self.listed.items():
            moved[j] = sum(1 << place for g, place in enumerate(places) if mask >> g & 1)
        for items in self.together:
            if not _in_common(moved, items):
                leader = next((j for j in items if j in self.listed), items[0])
                for j in items:
                    moved[j] = moved[j] if j in self.listed else moved[leader]
        within = [self.group_size.nearest(k) for k in sizes]
        for g, place in enumerate(places):
            within[place] = self.size_of(g).nearest(within[place])
        return tuple(within), tuple(moved)

    def blocks_above(self, parents: Parents) -> tuple[tuple[int, ...], ...]:
        """The groups of a model that have a common cause, for each that is known."""
        places = self.places(parents) or ()
        return tuple(tuple(places[g] for g in below) for below in self.above) if places else ()

    # Graphs over groups -----------------------------------------------------------------------------------

    def paths(self, sizes: Sizes, parents: Parents) -> Paths:
        """What is known of the graph over the groups of a model that is allowed."""
        required, forbidden = (np.zeros((len(sizes), len(sizes)), dtype=bool) for _ in range(2))
        places = self.places(parents) or ()
        for a, b in self.required if places else ():
            required[places[a], places[b]] = True
            forbidden[places[b], places[a]] = True
        for a, b in self.forbidden if places else ():
            forbidden[places[a], places[b]] = True
        return Paths(required, forbidden)


@dataclass(frozen=True, eq=False)
class Paths:
    """Arrows between groups that are required and that are forbidden: (G, G), from row to column."""

    required: Bools
    forbidden: Bools

    @classmethod
    def free(cls, n_groups: int) -> Paths:
        """Nothing is known."""
        return cls(*(np.zeros((n_groups, n_groups), dtype=bool) for _ in range(2)))

    @cached_property
    def binds(self) -> bool:
        """Whether anything is known at all."""
        return bool(self.required.any() or self.forbidden.any())

    def arcs(self, marks: Marks) -> list[tuple[int, int]] | None:
        """The edges of a graph whose direction is known, as arcs; None where its edges are not as they must be."""
        adjacent = (marks | marks.T).astype(bool)
        if (self.required & ~adjacent).any() or (self.forbidden & self.forbidden.T & adjacent).any():
            return None
        return [(int(i), int(j)) for i, j in np.argwhere(adjacent & self.forbidden.T)]

    def restricted(self, marks: Marks) -> Marks | None:
        """The members of a class over groups that agree, or None where there are none."""
        if not self.binds:
            return marks
        arcs = self.arcs(marks)
        return None if arcs is None else restricted(marks, arcs)

    def nearest(self, arcs: Marks) -> Marks:
        """A graph that agrees, with as many edges of another one as go in; reversed where they must be."""
        if not self.binds:
            return arcs
        out = self.required.astype(np.uint8)
        for i, j in np.argwhere(arcs).tolist():
            for a, b in ((i, j), (j, i)):
                if not out[i, j] and not out[j, i] and not self.forbidden[a, b] and not _leads(out, b, a):
                    out[a, b] = 1
        return out


def _all_of(counts: Iterable[Count]) -> Count:
    total = ANY
    for count in counts:
        total = total.also(count)
    return total


def _arrows(statements: Iterable[Statement], number: Mapping[str, int], required: bool) -> frozenset[tuple[int, int]]:
    return frozenset(
        (number[a], number[b])
        for s in statements
        if s.is_about_paths and s.required == required
        for a, b in s.value
        if a in number and b in number
    )


def _in_common(parents: Sequence[int], items: Iterable[int]) -> int:
    """The groups that cause all of the items, as bits."""
    mask = -1
    for j in items:
        mask &= parents[j]
    return mask


def _leads(arcs: Marks, source: int, target: int) -> bool:
    """Whether a directed path leads from one node to another."""
    seen, waiting = {source}, [source]
    while waiting:
        for node in np.flatnonzero(arcs[waiting.pop()]).tolist():
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return target in seen
