"""The one type of model that searches pass around: groups of latents, their sizes, who measures what, and edges.

While the measurement model is searched the groups are all connected, so that only the measurement is judged; the search
for the latent graph goes on with the same model along one graph after another (:meth:`FactorModel.along`).
Everything is a bit mask: ``parents[j]`` has bit g set if observed variable j is caused by group g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unmeasured.arrays import Bools, Ints, Marks
from unmeasured.graphs import CPDAG, DAG, Variables, consistent_extension, cpdag_of
from unmeasured.graphs.bitsets import adjacency_of, row_masks, topological_order
from unmeasured.graphs.latent_groups import ordered_partition
from unmeasured.models.parameters import Pattern, pattern_of_effects

Group = tuple[int, ...]  # positions of its latents


@dataclass(frozen=True)
class FactorModel:
    """Sizes of the groups, for every observed variable which groups cause it, and the class of edges between groups.

    Edges inside a group are left out: its indicators absorb any change of basis among its latents, so such edges change
    neither likelihood nor dimension (``docs/departures.md``).

    >>> chain = FactorModel(tuple("abcdef"), (1, 1, 1), (1, 1, 2, 2, 4, 4)).along(np.eye(3, k=1, dtype=np.uint8))
    >>> chain.n_paths, chain.cpdag.undirected_edges
    (2, (('L1', 'L2'), ('L2', 'L3')))
    """

    observed: tuple[str, ...]
    sizes: tuple[int, ...]
    parents: tuple[int, ...]
    #: The groups each group causes or may cause, as bits, in the class of the latent graph; None: all are connected.
    edges: tuple[int, ...] | None = field(default=None, kw_only=True)

    def pure(self, g: int) -> tuple[int, ...]:
        """Observed variables caused by group g alone."""
        return self._pure[g]

    @cached_property
    def _pure(self) -> tuple[tuple[int, ...], ...]:
        children: list[list[int]] = [[] for _ in self.sizes]
        for j, mask in enumerate(self.parents):
            if mask and not mask & (mask - 1):
                children[mask.bit_length() - 1].append(j)
        return tuple(map(tuple, children))

    @cached_property
    def is_valid(self) -> bool:
        """Definition 2 (i): every group of k has 2k pure children. A variable without parents belongs nowhere."""
        return all(self.parents.count(1 << g) >= 2 * k for g, k in enumerate(self.sizes))

    @cached_property
    def key(self) -> tuple[tuple[int, int], ...]:
        """The same for models that differ only in the order of their groups, or in edges between them."""
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
        """(m, m + n) which latents and observed variables each latent causes, along ``arcs``."""
        group_of, bit_of, in_order = _latents_of(self.sizes)
        causes = np.array(self.parents, dtype=bit_of.dtype) & bit_of[:, None] != 0
        between = in_order if self.edges is None else self.arcs[group_of[:, None], group_of].astype(bool)
        return np.concatenate([between, causes], axis=1)

    @property
    def measures(self) -> Bools:
        """(m, n) which observed variables each latent causes."""
        return self.mask[:, len(self.mask) :]

    @cached_property
    def group_of(self) -> Ints:
        """(m,) the group of each latent."""
        return _latents_of(self.sizes)[0]

    @cached_property
    def pattern(self) -> Pattern:
        """What the compiled core fits, as ``member`` says, but sooner; free effects in the order of ``mask``."""
        return self._pattern(*self.mask.nonzero()) if self.edges is None else self.pattern_along(self.arcs)

    def pattern_along(self, arcs: Marks) -> Pattern:
        """The same along a graph over the groups (G, G); effects of causes come first."""
        mask = self.mask.copy()
        mask[:, : len(mask)] = arcs[self.group_of[:, None], self.group_of]
        order = topological_order(row_masks(arcs.T), row_masks(arcs))
        causes_first = np.array([latent for g in order for latent in self.groups[g]])
        source, target = mask[causes_first].nonzero()
        return self._pattern(causes_first[source], target)

    def _pattern(self, source: Ints, target: Ints) -> Pattern:
        names, items = _nodes(self.observed, self.n_latents)
        return pattern_of_effects(names, items, source, target, items)

    # The latent graph -------------------------------------------------------------------------------------

    @property
    def latents_of_groups(self) -> tuple[Group, ...]:
        """Positions of the latents of each group among all latents."""
        return self.groups

    @property
    def n_measured(self) -> int:
        """How many latents have indicators; they come first."""
        return self.n_latents

    def causes_in_order(self, arcs: Marks) -> list[tuple[int, list[int]]]:
        """Every latent, causes first, with those that cause it along a graph (G, G) over the groups.

        Within a group, whose basis is free, each latent is caused by those before it: their covariance is free.
        """
        found = []
        for g in topological_order(row_masks(arcs.T), row_masks(arcs)):
            parents = [i for h in np.flatnonzero(arcs[:, g]).tolist() for i in self.groups[h]]
            found += [(j, [*parents, *(i for i in self.groups[g] if i < j)]) for j in self.groups[g]]
        return found

    def along(self, arcs: Marks) -> FactorModel:
        """The same with the class of a graph (G, G) over the groups."""
        edges, marks = _class_of(arcs.tobytes(), len(arcs))
        model = FactorModel(self.observed, self.sizes, self.parents, edges=edges)
        model.__dict__.update(arcs=arcs, between=marks)  # what the cached properties would look for
        return model

    @cached_property
    def between(self) -> Marks:
        """(G, G) the class of edges between groups."""
        if self.edges is not None:
            return adjacency_of(self.edges)
        return np.ones((self.n_groups,) * 2, dtype=np.uint8) - np.eye(self.n_groups, dtype=np.uint8)

    @cached_property
    def arcs(self) -> Marks:
        """(G, G) a graph over the groups that belongs to the class: where all are connected, in order."""
        if self.edges is None:
            return np.triu(np.ones((self.n_groups,) * 2, dtype=np.uint8), 1)
        arcs = consistent_extension(self.between)
        assert arcs is not None, "a class always has a member"
        return arcs

    @cached_property
    def n_paths(self) -> int:
        """How many paths the edges between groups stand for."""
        return _n_paths(self.sizes, self.edges)

    @cached_property
    def n_edges(self) -> int:
        """How many pairs of groups are connected."""
        return int(np.triu(self.between | self.between.T).sum())

    @cached_property
    def latents(self) -> tuple[str, ...]:
        """Names for the latents of the groups."""
        return _nodes(self.observed, self.n_latents)[0][: self.n_latents]

    @cached_property
    def cpdag(self) -> CPDAG:
        """The class this model stands for."""
        variables, latents = self._variables, self.latents
        names = (tuple(latents[i] for i in group) for group in self.groups)
        return CPDAG._trusted(variables, self._adjacency(self.between), ordered_partition(variables, names))

    @property
    def member(self) -> DAG:
        """A graph of the class to fit."""
        return self.graph_along(self.arcs)

    def graph_along(self, arcs: Marks) -> DAG:
        """The graph with these edges (G, G) between groups."""
        return DAG._trusted(self._variables, self._adjacency(arcs))

    @property
    def _variables(self) -> Variables:
        return graph_variables(self.latents, self.observed)

    def _adjacency(self, marks: Marks) -> Marks:
        m, n = self.measures.shape
        A = np.zeros((m + n, m + n), dtype=np.uint8)
        A[:m, :m] = marks[self.group_of[:, None], self.group_of]
        A[:m, m:] = self.measures
        return A

    def group_name(self, g: int) -> str:
        """A group by its indicators, which the reader knows; numbers of latents change on the way."""
        own = [self.observed[j] for j in self.pure(g)]
        return f"{{{', '.join(own[:2])}{', ...' if len(own) > 2 else ''}}}"

    def in_order_of(self, names: Sequence[str]) -> tuple[FactorModel, tuple[int, ...]]:
        """The same with its variables in this order and its groups in that of their first indicators, pure ones first.

        Variables that the model does not have are left out. Also where each latent was before.
        """
        observed, parents, order = _ordered(self.observed, self.parents, self.n_groups, tuple(names))
        between = self.between[np.ix_(order, order)]
        edges = None if self.edges is None else tuple(row_masks(between))
        model = FactorModel(observed, tuple(self.sizes[g] for g in order), parents, edges=edges)
        return model, tuple(latent for g in order for latent in self.groups[g])

    # What a score asks, and what a move changes -------------------------------------------------------------

    @property
    def n_parameters(self) -> int:
        """Free parameters less rotations: the dimension, unless the model is deficient somewhere."""
        return len(self.observed) + int(np.count_nonzero(self.mask)) - sum(k * (k - 1) // 2 for k in self.sizes)

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
    FactorModel(observed=('c', 'b', 'a'), sizes=(1,), parents=(0, 1, 1), edges=None)
    """
    groups = [group for group in graph.latent_groups if not graph.levels[group[0]]]
    first = [graph.variables.index(group[0]) for group in groups]  # members of a group have the same children
    causes = graph.adjacency[np.ix_(first, [graph.variables.index(name) for name in observed])].astype(bool)
    parents = tuple(sum(1 << g for g in np.flatnonzero(column).tolist()) for column in causes.T)
    return FactorModel(tuple(observed), tuple(map(len, groups)), parents)


@lru_cache(maxsize=64)
def graph_variables(latents: tuple[str, ...], observed: tuple[str, ...]) -> Variables:
    """Checked once for the thousands of models over the same names."""
    return Variables.of((*latents, *observed), latents)


@lru_cache(maxsize=64)
def _ordered(
    observed: tuple[str, ...], parents: tuple[int, ...], n_groups: int, names: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    """Of :meth:`FactorModel.in_order_of`: the variables, their parents, and the groups in their new order."""
    position = {name: j for j, name in enumerate(observed)}
    kept = tuple(name for name in names if name in position)
    masks = [parents[position[name]] for name in kept]

    def indicators(g: int) -> list[int]:
        pure = [j for j, mask in enumerate(masks) if mask == 1 << g]
        return pure or [j for j, mask in enumerate(masks) if mask >> g & 1]

    order = tuple(sorted(range(n_groups), key=indicators))
    return kept, tuple(sum(1 << new for new, g in enumerate(order) if mask >> g & 1) for mask in masks), order


@lru_cache(maxsize=1024)
def _class_of(arcs: bytes, n: int) -> tuple[tuple[int, ...] | None, Marks]:
    """The class of a graph (n, n): the edges of a model (None: all there are), and as a matrix.

    Remembered, since the measurement models of a search have the same few groups, and the same graphs over them.
    """
    marks = cpdag_of(np.frombuffer(arcs, dtype=np.uint8).reshape(n, n))
    marks.flags.writeable = False
    return None if marks.sum() == marks.size - len(marks) else tuple(row_masks(marks)), marks


@lru_cache(maxsize=1024)
def _n_paths(sizes: tuple[int, ...], edges: tuple[int, ...] | None) -> int:
    total = sum(sizes)
    if edges is None:
        return (total * total - sum(size * size for size in sizes)) // 2
    between = adjacency_of(edges)
    return int(np.array(sizes) @ (between | between.T) @ np.array(sizes)) // 2


@lru_cache(maxsize=256)
def _latents_of(sizes: tuple[int, ...]) -> tuple[Ints, NDArray[Any], Bools]:
    """The group of each latent (m,), its bit in a set of parents (m,), and (m, m) whose group comes before whose."""
    group_of = np.repeat(np.arange(len(sizes)), sizes)
    # As Python's own numbers where there are more groups than bits in a machine's.
    bit_of = np.array([1 << g for g in group_of.tolist()], dtype=np.int64 if len(sizes) < 63 else object)
    return group_of, bit_of, group_of[:, None] < group_of


@lru_cache(maxsize=256)
def _nodes(observed: tuple[str, ...], n_latents: int) -> tuple[tuple[str, ...], Ints]:
    """Names of the latents and the observed variables, and the positions of the latter (n,)."""
    return (*latent_names(observed, n_latents), *observed), np.arange(n_latents, n_latents + len(observed))


def latent_names(observed: Sequence[str], count: int) -> tuple[str, ...]:
    """Names for latents that no observed variable has.

    >>> latent_names(["x", "L1"], 2)
    ('latent 1', 'latent 2')
    """
    taken = set(observed)
    for prefix in ("L", "latent ", "latent cause "):
        names = tuple(f"{prefix}{i + 1}" for i in range(count))
        if not taken.intersection(names):
            return names
    return tuple(f"latent cause {i + 1} of {len(taken)}" for i in range(count))
