"""Measurement models: who measures which group of latents, nothing said of edges between groups.

While the measurement model is searched the groups are all connected, so that only the measurement is judged.
Everything is a bit mask: ``parents[j]`` has bit g set if observed variable j is caused by group g.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np

from unmeasured.graphs import DAG, Variables
from unmeasured.search.state import Group, State, latent_names


@dataclass(frozen=True)
class Measurement:
    """Sizes of the groups and, for every observed variable, which groups cause it."""

    observed: tuple[str, ...]
    sizes: tuple[int, ...]
    parents: tuple[int, ...]

    def pure(self, g: int) -> tuple[int, ...]:
        """Observed variables caused by group g alone."""
        return tuple(j for j, mask in enumerate(self.parents) if mask == 1 << g)

    @property
    def is_valid(self) -> bool:
        """Definition 2 (i): every variable has a parent, every group of k has 2k pure children."""
        return all(self.parents) and self.has_pure_children

    @property
    def has_pure_children(self) -> bool:
        """Whether every group of k has 2k pure children."""
        return all(len(self.pure(g)) >= 2 * k for g, k in enumerate(self.sizes))

    @cached_property
    def key(self) -> tuple[tuple[int, int], ...]:
        """The same for models that differ only in the order of their groups."""
        children = [sum(1 << j for j, mask in enumerate(self.parents) if mask >> g & 1) for g in range(len(self.sizes))]
        return tuple(sorted(zip(children, self.sizes, strict=True)))

    @cached_property
    def signature(self) -> tuple[object, ...]:
        """What the dimension depends on: how many variables have which parents, not which variables."""
        order = sorted(range(len(self.sizes)), key=lambda g: (self.sizes[g], len(self.pure(g)), g))
        rank = {g: r for r, g in enumerate(order)}
        masks = sorted(sum(1 << rank[g] for g in range(len(self.sizes)) if mask >> g & 1) for mask in self.parents)
        return tuple(self.sizes[g] for g in order), tuple(masks)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Positions of the latents of each group."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        return tuple(tuple(range(a, b)) for a, b in pairwise(ends))

    @cached_property
    def state(self) -> State:
        """The state of the search with these groups, all connected."""
        m = sum(self.sizes)
        measures = np.zeros((m, len(self.observed)), dtype=bool)
        for j, mask in enumerate(self.parents):
            for g, group in enumerate(self.groups):
                measures[list(group), j] = bool(mask >> g & 1)
        between = np.ones((len(self.sizes),) * 2, dtype=np.uint8)
        np.fill_diagonal(between, 0)
        return State(self.observed, latent_names(self.observed, m), measures, self.groups, between)

    @cached_property
    def member(self) -> DAG:
        """A graph to fit: groups connected in order."""
        m, n = sum(self.sizes), len(self.observed)
        A = np.zeros((m + n, m + n), dtype=np.uint8)
        A[:m, m:] = self.state.measures
        for a, b in combinations(self.groups, 2):
            A[a[0] : a[-1] + 1, b[0] : b[-1] + 1] = 1
        return DAG._trusted(Variables.of((*self.state.latents, *self.observed), self.state.latents), A)

    @cached_property
    def everything(self) -> DAG:
        """The same groups, each causing every variable: what score tests look into."""
        m = sum(self.sizes)
        A = self.member.adjacency.copy()
        A[:m, m:] = 1
        return DAG._trusted(self.member.variables, A)

    @property
    def n_parameters(self) -> int:
        """Free parameters less rotations: the dimension, unless the model is deficient somewhere."""
        loadings = sum(self.sizes[g] for mask in self.parents for g in range(len(self.sizes)) if mask >> g & 1)
        paths = sum(a * b for a, b in combinations(self.sizes, 2))
        return len(self.observed) + loadings + paths - sum(k * (k - 1) // 2 for k in self.sizes)

    def with_parents(self, j: int, mask: int) -> Measurement:
        """The same with other parents for one variable."""
        return Measurement(self.observed, self.sizes, (*self.parents[:j], mask, *self.parents[j + 1 :]))

    def without_group(self, g: int, heirs: Sequence[int]) -> Measurement:
        """Group g dissolved; its pure children go to the groups given (masks over the old groups), in order."""
        low = (1 << g) - 1
        heir = iter(heirs)
        parents = []
        for mask in self.parents:
            rest = next(heir) if mask == 1 << g else mask & ~(1 << g)
            parents.append(rest & low | rest >> 1 & ~low)
        return Measurement(self.observed, self.sizes[:g] + self.sizes[g + 1 :], tuple(parents))


def drops(model: Measurement, items: Sequence[int]) -> Iterator[Measurement]:
    """The model with one parent less for one of the items, each in turn."""
    for j in items:
        mask = model.parents[j]
        for g in range(len(model.sizes)):
            if mask >> g & 1 and mask != 1 << g:
                yield model.with_parents(j, mask & ~(1 << g))


def carvings(model: Measurement, pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[Measurement, list[int]]]:
    """Pairs of pure children of one larger group onto a latent taken from it; the others keep old and new parents.

    The paper's own operator, used inside a group. What comes out may have no pure children left and is then no
    factor model: it is a step on the way, and the items whose parents are to be settled come with it.
    """
    new = len(model.sizes)
    for pair in pairs:
        g = model.parents[pair[0]].bit_length() - 1
        others = [j for j, mask in enumerate(model.parents) if mask >> g & 1 and j not in pair]
        parents = [mask | 1 << new if mask >> g & 1 else mask for mask in model.parents]
        for j in pair:
            parents[j] = 1 << new
        sizes = (*model.sizes[:g], model.sizes[g] - 1, *model.sizes[g + 1 :], 1)
        yield Measurement(model.observed, sizes, tuple(parents)), others


def moves(
    model: Measurement, max_group_size: int, is_worth: Callable[[int, int], bool] = lambda j, g: True
) -> Iterator[tuple[str, Measurement]]:
    """Every valid measurement model one step away, with the step in words.

    ``is_worth(j, g)`` may say that group g has nothing to offer to variable j, which then is not put there.
    """
    for name, other in _steps(model, max_group_size, is_worth):
        if other.is_valid:
            yield name, other


def _steps(
    model: Measurement, max_group_size: int, is_worth: Callable[[int, int], bool]
) -> Iterator[tuple[str, Measurement]]:
    G = len(model.sizes)
    for j, mask in enumerate(model.parents):
        for g in range(G):
            bit = 1 << g
            if mask & bit and mask != bit:
                yield "drop a parent", model.with_parents(j, mask & ~bit)
                yield "put elsewhere", model.with_parents(j, bit)
            elif not mask & bit and is_worth(j, g):
                yield "put elsewhere", model.with_parents(j, bit)
                yield "add a parent", model.with_parents(j, mask | bit)
    for g in range(G):
        yield from _resized(model, g, max_group_size)
        yield from _carved(model, g)
    for g, h in combinations(range(G), 2):
        yield from _merged(model, g, h, max_group_size)


def _resized(model: Measurement, g: int, max_group_size: int) -> Iterator[tuple[str, Measurement]]:
    for k in (model.sizes[g] - 1, model.sizes[g] + 1):
        if 1 <= k <= max_group_size:
            sizes = (*model.sizes[:g], k, *model.sizes[g + 1 :])
            yield "resize", Measurement(model.observed, sizes, model.parents)


def _carved(model: Measurement, g: int) -> Iterator[tuple[str, Measurement]]:
    """A pair onto a latent of its own; the others keep the old group, which gives up a latent if it has two."""
    k, new = model.sizes[g], len(model.sizes)
    for pair in combinations(model.pure(g), 2):
        parents = list(model.parents)
        for j in pair:
            parents[j] = 1 << new
        yield "carve", Measurement(model.observed, (*model.sizes, 1), tuple(parents))
        if k > 1:
            sizes = (*model.sizes[:g], k - 1, *model.sizes[g + 1 :], 1)
            yield "carve", Measurement(model.observed, sizes, tuple(parents))


def _merged(model: Measurement, g: int, h: int, max_group_size: int) -> Iterator[tuple[str, Measurement]]:
    """Two groups as one, of the larger size up to their sum; variables of both become pure."""
    bit = 1 << g
    joined = tuple(mask | bit if mask >> h & 1 else mask for mask in model.parents)
    merged = Measurement(model.observed, model.sizes, joined).without_group(h, ())
    at = g if g < h else g - 1
    for k in range(max(model.sizes[g], model.sizes[h]), min(model.sizes[g] + model.sizes[h], max_group_size) + 1):
        sizes = (*merged.sizes[:at], k, *merged.sizes[at + 1 :])
        yield "merge", Measurement(model.observed, sizes, merged.parents)
