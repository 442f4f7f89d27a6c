"""The one type of model that searches pass around: groups of latents, their sizes, and who measures what.

While the measurement model is searched the groups are all connected, so that only the measurement is judged; edges
between groups come in where they are asked for (:meth:`FactorModel.pattern_along`, :meth:`FactorModel.dag`).
Everything is a bit mask: ``parents[j]`` has bit g set if observed variable j is caused by group g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from unmeasured.arrays import Bools, Ints, Marks
from unmeasured.graphs import CPDAG, DAG, class_over_groups
from unmeasured.graphs.bitsets import adjacency_of, row_masks, topological_order
from unmeasured.search.paper.state import Group, State, latent_names
from unmeasured.sem.parameters import Pattern, pattern_of_effects


@dataclass(frozen=True)
class FactorModel:
    """Sizes of the groups and, for every observed variable, which groups cause it."""

    observed: tuple[str, ...]
    sizes: tuple[int, ...]
    parents: tuple[int, ...]

    def pure(self, g: int) -> tuple[int, ...]:
        """Observed variables caused by group g alone."""
        return tuple(j for j, mask in enumerate(self.parents) if mask == 1 << g)

    @cached_property
    def is_valid(self) -> bool:
        """Definition 2 (i): every group of k has 2k pure children. A variable without parents belongs nowhere."""
        return all(self.parents.count(1 << g) >= 2 * k for g, k in enumerate(self.sizes))

    @cached_property
    def key(self) -> tuple[tuple[int, int], ...]:
        """The same for models that differ only in the order of their groups."""
        children = [0] * len(self.sizes)
        for j, mask in enumerate(self.parents):
            while mask:
                children[mask.bit_length() - 1] |= 1 << j
                mask ^= 1 << mask.bit_length() - 1
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
    def mask(self) -> Bools:
        """(m, m + n) which latents and observed variables each latent causes; groups connected in order."""
        group_of = self.group_of
        # As Python's own numbers where there are more groups than bits in a machine's.
        parents = np.array(self.parents, dtype=np.int64 if len(self.sizes) < 63 else object)
        causes = parents[None, :] >> group_of.astype(parents.dtype)[:, None] & 1
        return np.concatenate([group_of[:, None] < group_of[None, :], causes.astype(bool)], axis=1)

    @cached_property
    def group_of(self) -> Ints:
        """(m,) the group of each latent."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def pattern(self) -> Pattern:
        """What the compiled core fits, as ``member`` says, but sooner; free effects in the order of ``mask``."""
        return self._pattern(*self.mask.nonzero())

    def pattern_along(self, arcs: Marks) -> Pattern:
        """The same with a graph over the groups (G, G) in place of all edges; effects of causes come first."""
        mask = self.mask.copy()
        mask[:, : len(mask)] = arcs[self.group_of[:, None], self.group_of]
        order = topological_order(row_masks(arcs.T), row_masks(arcs))
        causes_first = np.array([latent for g in order for latent in self.groups[g]])
        source, target = mask[causes_first].nonzero()
        return self._pattern(causes_first[source], target)

    def _pattern(self, source: Ints, target: Ints) -> Pattern:
        m = self.n_latents
        items = np.arange(m, m + len(self.observed))
        return pattern_of_effects((*latent_names(self.observed, m), *self.observed), items, source, target, items)

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
        return self.state.graph_along(np.triu(np.ones((self.n_groups,) * 2, dtype=np.uint8), 1))

    @property
    def n_parameters(self) -> int:
        """Free parameters less rotations: the dimension, unless the model is deficient somewhere."""
        return len(self.observed) + int(self.mask.sum()) - sum(k * (k - 1) // 2 for k in self.sizes)

    @property
    def n_latents(self) -> int:
        """How many latents there are."""
        return sum(self.sizes)

    @property
    def choices(self) -> list[tuple[list[int], int]]:
        """What was chosen: how many parents each variable has, and among how many groups."""
        return [([mask.bit_count() for mask in self.parents], len(self.sizes))]

    @property
    def n_levels(self) -> int:
        """How many levels of latents there are: here, none stands above another."""
        return 1

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return len(self.sizes)

    def dag(self, children: Sequence[int]) -> DAG:
        """The DAG with these edges between groups; ``children[g]`` are the groups that g causes, as bits."""
        return self.state.graph_along(adjacency_of(children))

    def cpdag(self, children: Sequence[int]) -> CPDAG:
        """The class over groups of :meth:`dag`."""
        dag = self.dag(children)
        return class_over_groups(dag, dag.groups)

    def with_parents(self, j: int, mask: int) -> FactorModel:
        """The same with other parents for one variable."""
        return FactorModel(self.observed, self.sizes, (*self.parents[:j], mask, *self.parents[j + 1 :]))

    def resized(self, g: int, k: int) -> FactorModel:
        """The same with k latents in group g."""
        return FactorModel(self.observed, (*self.sizes[:g], k, *self.sizes[g + 1 :]), self.parents)

    def without_group(self, g: int) -> FactorModel:
        """Group g gone; its pure children are left without parents."""
        low = (1 << g) - 1
        parents = tuple(mask & low | mask >> 1 & ~low for mask in self.parents)
        return FactorModel(self.observed, self.sizes[:g] + self.sizes[g + 1 :], parents)


def model_of_class(graph: CPDAG, observed: Sequence[str]) -> FactorModel:
    """The measurement model of a class over the same variables, in the order given; without latents above latents.

    >>> dag = DAG.from_edges([("L", "a"), ("L", "b")], latents=["L"], names=["L", "a", "b", "c"])
    >>> model_of_class(dag.cpdag(), ["c", "b", "a"])
    FactorModel(observed=('c', 'b', 'a'), sizes=(1,), parents=(0, 1, 1))
    """
    groups = [group for group in graph.groups if not graph.levels[group[0]]]
    first = [graph.variables.index(group[0]) for group in groups]  # members of a group have the same children
    causes = graph.adjacency[np.ix_(first, [graph.variables.index(name) for name in observed])].astype(bool)
    parents = tuple(sum(1 << g for g in np.flatnonzero(column).tolist()) for column in causes.T)
    return FactorModel(tuple(observed), tuple(map(len, groups)), parents)
