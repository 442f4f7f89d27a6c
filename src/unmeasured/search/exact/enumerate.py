"""Every generalized N factor model (Def. 2) over n observed variables: counted, and listed without repetition.

A model has two halves that can be chosen independently::

    measurement                              latent graph
    {x1 x2 x3}   {x4 .. x7}    x8            {L1} – {L2, L3}
       {L1}       {L2, L3}   {L1} {L2, L3}

- The *measurement model*: disjoint sets of pure children, one for each group; for each group its number of
  latents, at most half its pure children; and for every other observed variable the two groups or more that
  cause it. Names of latents carry no information. A group is known by its pure children, so groups are numbered
  by their first pure child and every measurement model is written in one way only.
- The *latent graph*: a DAG whose nodes are the groups, or, for what data can tell, a Markov class of such DAGs.

We read "observed variables are the effects of latent variables" as :func:`unmeasured.graphs.is_gnfm` does: every
observed variable has a latent cause.

**What data can tell.** No two classes have the same covariance matrices: for up to 7 observed variables all
classes differ in the generic rank of some block Cov(A, B) with A and B disjoint (checked by enumeration). What
is degenerate is the count of parameters. A group of k latents that is isolated (no edge to another group, no
common child) and has just 2k pure children has one parameter more than its variables can tell when k is 1 or 2;
see :func:`dimensions`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unmeasured.arrays import Bools, Ints
from unmeasured.errors import UnmeasuredError
from unmeasured.graphs import CPDAG
from unmeasured.graphs.bitsets import adjacency_of, bits, topological_order
from unmeasured.search.model import FactorModel

# Markov classes of DAGs on 1, 2, ... labelled nodes (OEIS A007984; Gillispie and Perlman 2002, Steinsky 2013).
_MARKOV_CLASSES = (
    1, 2, 11, 185, 8782, 1067825, 312510571, 212133402500, 326266056291213, 1118902054495975181,
)  # fmt: skip

# Tables have millions of rows, so they hold small integers.
SmallInts = NDArray[np.integer[Any]]

# The paper's figures for the number of graphs that satisfy Def. 2: "more than" the first, and the second.
PAPER_COUNTS = {10: 3e8, 11: 2e13}


# ------------------------------------------------------------------------------------------------- counting


@dataclass(frozen=True)
class GnfmCount:
    """How many generalized N factor models there are over labelled observed variables.

    Attributes
    ----------
    n_measurement_models
        Choices of groups, their sizes, their pure children and the parents of common children.
    n_classes
        Classes over latent groups: measurement models, each with every Markov class over its groups.
    n_graphs
        DAGs, up to the names of the latents.
    paper
        The number of graphs the paper states, for 10 and 11 observed variables; otherwise None.
    """

    n_observed: int
    max_group_size: int | None
    n_measurement_models: int
    n_classes: int
    n_graphs: int
    paper: float | None

    def __str__(self) -> str:
        text = (
            f"{self.n_observed} observed variables: {self.n_measurement_models:,} measurement models, "
            f"{self.n_classes:,} classes, {self.n_graphs:,} graphs"
        )
        return text if self.paper is None else f"{text} (the paper: {self.paper:.0e} graphs)"


def count_gnfm(n: int, max_group_size: int | None = None) -> GnfmCount:
    """Count the generalized N factor models over n labelled observed variables, in closed form.

    With m groups, c common children have ``2^m - m - 1`` choices of parents each, and a block of b pure
    children allows ``floor(b / 2)`` group sizes. So there are

        M(n, m) = sum over c of  C(n, c) (2^m - m - 1)^c W(n - c, m)

    measurement models, where ``W(n, m) = sum over b of C(n-1, b-1) floor(b/2) W(n-b, m-1)`` counts partitions
    into m blocks weighted by their sizes; and ``sum of M(n, m) x (DAGs on m nodes)`` graphs.

    Parameters
    ----------
    n
        Number of observed variables, up to 21 (the number of Markov classes is known for ten groups).
    max_group_size
        Largest number of latents in a group; left out: no limit.

    Notes
    -----
    The paper says that there are more than 3 x 10^8 graphs for 10 observed variables, and 2 x 10^13 for 11. The
    first agrees with our 4.8 x 10^8. The second does not: we count 2.7 x 10^10. One variable more multiplies the
    count by 32, 45, 57 and 78 (from 8 to 12); the paper's two figures are a factor of 70,000 apart, which no way of
    counting we tried comes near. 2 x 10^13 may be a misprint of 2 x 10^10. Our formula is tested against brute force.

    Examples
    --------
    >>> print(count_gnfm(6))
    6 observed variables: 163 measurement models, 458 classes, 813 graphs
    >>> count_gnfm(10).n_graphs, count_gnfm(10).paper
    (477283737, 300000000.0)
    >>> count_gnfm(11).n_graphs, count_gnfm(11).paper
    (27060892413, 20000000000000.0)
    """
    if n < 1 or n // 2 > len(_MARKOV_CLASSES):
        raise UnmeasuredError(f"The count is known for 1 to {2 * len(_MARKOV_CLASSES) + 1} variables; got {n}.")
    largest = checked_group_size(max_group_size, n)
    per_groups = {m: _n_measurement_models(n, m, largest) for m in range(1, n // 2 + 1)}
    return GnfmCount(
        n_observed=n,
        max_group_size=max_group_size,
        n_measurement_models=sum(per_groups.values()),
        n_classes=sum(count * _MARKOV_CLASSES[m - 1] for m, count in per_groups.items()),
        n_graphs=sum(count * _n_dags(m) for m, count in per_groups.items()),
        paper=PAPER_COUNTS.get(n) if max_group_size is None else None,
    )


def checked_group_size(max_group_size: int | None, n: int) -> int:
    """The largest group size to consider among n observed variables."""
    if max_group_size is None:
        return n // 2
    if isinstance(max_group_size, bool) or not isinstance(max_group_size, int) or max_group_size < 1:
        raise UnmeasuredError(f"max_group_size must be a whole number from 1; got {max_group_size!r}.")
    return min(max_group_size, n // 2)


def _n_measurement_models(n: int, m: int, largest: int) -> int:
    n_parent_sets = 2**m - m - 1
    return sum(math.comb(n, c) * n_parent_sets**c * _n_blocks(n - c, m, largest) for c in range(n + 1))


@cache
def _n_blocks(n: int, m: int, largest: int) -> int:
    """Partitions of n into m blocks of two or more, each with a group size: W(n, m) of :func:`count_gnfm`."""
    if m == 0:
        return int(n == 0)
    return sum(
        math.comb(n - 1, b - 1) * min(b // 2, largest) * _n_blocks(n - b, m - 1, largest) for b in range(2, n + 1)
    )


@cache
def _n_dags(m: int) -> int:
    """Labelled DAGs on m nodes, by Robinson's recursion over the nodes without parents: 1, 3, 25, 543, ..."""
    if m == 0:
        return 1
    return sum((-1) ** (k + 1) * math.comb(m, k) * 2 ** (k * (m - k)) * _n_dags(m - k) for k in range(1, m + 1))


# -------------------------------------------------------------------------------------- measurement models


@dataclass(frozen=True, eq=False)
class MeasurementTable:
    """All measurement models with one number of groups, as arrays: one row each, so that bounds are quick."""

    sizes: SmallInts  # (B, m)
    parents: SmallInts  # (B, n) sets of groups
    observed: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, row: int) -> FactorModel:
        return FactorModel(self.observed, tuple(self.sizes[row].tolist()), tuple(self.parents[row].tolist()))

    @property
    def n_groups(self) -> int:
        return int(self.sizes.shape[1])

    @cached_property
    def inside(self) -> SmallInts:
        """(2^m, B) for each set of groups, the observed variables all of whose parents are in it, as bits."""
        m, n = self.n_groups, self.parents.shape[1]
        inside = np.zeros((1 << m, len(self)), dtype=np.int32)
        for groups in range(1 << m):
            outside = (1 << m) - 1 & ~groups
            for x in range(n):  # column by column: there are millions of rows
                inside[groups] |= ((self.parents[:, x] & outside) == 0).astype(np.int32) << x
        return inside

    def total_size(self, groups: int) -> Ints:
        """(B,) the number of latents in these groups together."""
        total: Ints = self.sizes[:, list(bits(groups))].sum(axis=1, dtype=np.int64)
        return total

    def least_dimensions(self, parts: Sequence[int]) -> Ints:
        """(B,) the smallest dimension over the latent graphs that join the groups of each part and no others.

        A tree with the smallest group in its middle has the fewest edges between latents.
        """
        result = self._dimension_of_measurement.copy()
        for groups in parts:
            sizes = self.sizes[:, list(bits(groups))].astype(np.int64)
            smallest = sizes.min(axis=1)
            result += smallest * (sizes.sum(axis=1) - smallest)
        alone = [groups.bit_length() - 1 for groups in parts if groups.bit_count() == 1]
        result -= self._is_loose[:, alone].sum(axis=1)
        return result

    def most_dimensions(self) -> Ints:
        """(B,) the dimension with all groups adjacent."""
        sizes = self.sizes.astype(np.int64)
        between = (sizes.sum(axis=1) ** 2 - (sizes**2).sum(axis=1)) // 2
        if self.n_groups == 1:
            between -= self._is_loose[:, 0]
        result: Ints = self._dimension_of_measurement + between
        return result

    @cached_property
    def _dimension_of_measurement(self) -> Ints:
        n, sizes = self.parents.shape[1], self.sizes.astype(np.int64)
        loadings = sum(((self.parents >> g) & 1).sum(axis=1) * sizes[:, g] for g in range(self.n_groups))
        return np.asarray(n + loadings - (sizes * (sizes - 1) // 2).sum(axis=1))

    @cached_property
    def _is_loose(self) -> Bools:
        """(B, m) whether a group without neighbours would have a parameter too many (see :func:`dimensions`)."""
        columns = [_is_loose(self.parents, self.sizes[:, g], g) for g in range(self.n_groups)]
        return np.stack(columns, axis=1)


def _is_loose(parents: SmallInts, size: SmallInts, group: int) -> Bools:
    n_pure = (parents == 1 << group).sum(axis=-1)
    n_children = ((parents >> group) & 1).sum(axis=-1)
    loose: Bools = (n_children == n_pure) & (n_pure == 2 * size) & (size <= 2)
    return loose


def measurement_table(n: int, n_groups: int, largest: int, observed: Sequence[str] | None = None) -> MeasurementTable:
    """All measurement models of n observed variables with so many groups of at most ``largest`` latents.

    >>> len(measurement_table(6, 3, largest=3))  # three pairs
    15
    """
    names = tuple(observed or (f"x{x + 1}" for x in range(n)))
    sizes, parents = [], []
    several = [groups for groups in range(1 << n_groups) if groups.bit_count() > 1]
    for c in range(n - 2 * n_groups + 1 if several else 1):
        choices = np.array(list(product(several, repeat=c)), dtype=np.uint8).reshape(len(several) ** c, c)
        for common in combinations(range(n), c):
            pure = [x for x in range(n) if x not in common]
            for blocks in _partitions(pure, n_groups):
                row = np.zeros(n, dtype=np.uint8)
                for g, block in enumerate(blocks):
                    row[block] = 1 << g
                rows = np.repeat(row[None], len(choices), axis=0)
                rows[:, common] = choices
                for size in product(*(range(1, min(len(block) // 2, largest) + 1) for block in blocks)):
                    parents.append(rows)
                    sizes.append(np.repeat(np.array([size], dtype=np.uint8), len(rows), axis=0))
    if not sizes:
        return MeasurementTable(np.zeros((0, n_groups), dtype=np.uint8), np.zeros((0, n), dtype=np.uint8), names)
    return MeasurementTable(np.concatenate(sizes), np.concatenate(parents), names)


def _partitions(items: list[int], n_blocks: int) -> Iterator[list[list[int]]]:
    """Partitions into blocks of two or more, each once: the first block holds the first item, and so on."""
    if n_blocks == 1:
        if len(items) >= 2:
            yield [items]
        return
    first, others = items[:1], items[1:]
    for size in range(1, len(items) - 2 * (n_blocks - 1)):
        for chosen in combinations(others, size):
            left = [x for x in others if x not in chosen]
            for blocks in _partitions(left, n_blocks - 1):
                yield [[*first, *chosen], *blocks]


@cache
def partitions_of_groups(m: int) -> tuple[tuple[int, ...], ...]:
    """All ways to divide m groups into parts, each part a set of bits.

    >>> partitions_of_groups(2)
    ((3,), (2, 1))
    """
    if m == 0:
        return ((),)
    last, found = 1 << (m - 1), []
    for parts in partitions_of_groups(m - 1):
        found += [(*parts[:i], part | last, *parts[i + 1 :]) for i, part in enumerate(parts)]
        found.append((last, *parts))
    return tuple(found)


# ----------------------------------------------------------------------------------------- latent graphs


@dataclass(frozen=True, eq=False)
class LatentClasses:
    """All Markov classes of DAGs on m labelled nodes, most edges first; nodes stand for groups."""

    children: Ints  # (C, m) a member of each class: for each node its children, as bits
    orders: Ints  # (C, m) that member's nodes, causes first
    adjacent: Bools  # (C, m, m) skeletons
    first_super: Ints  # (C + 1,) where the classes with one edge more that contain a class begin in ``supers``
    supers: Ints

    def __len__(self) -> int:
        return len(self.children)

    @cached_property
    def is_isolated(self) -> Bools:
        """(C, m) which nodes have no neighbour."""
        isolated: Bools = ~np.asarray(self.adjacent.any(axis=2))
        return isolated


def n_latent_classes(m: int) -> int:
    """How many of them there are, without a list.

    >>> n_latent_classes(3), len(latent_classes(3))
    (11, 11)
    """
    return int(_MARKOV_CLASSES[m - 1])


@cache
def latent_classes(m: int) -> LatentClasses:
    """The Markov classes on m nodes, found by going through all DAGs.

    >>> [len(latent_classes(m)) for m in (1, 2, 3, 4)]
    [1, 2, 11, 185]
    """
    key_of = {dag: _markov_key(dag) for dag in _all_dags(m)}
    member: dict[object, tuple[int, ...]] = {}
    for dag, key in key_of.items():
        member.setdefault(key, dag)
    ordered = sorted(member, key=lambda key: (-_n_edges(member[key]), member[key]))
    number = {key: i for i, key in enumerate(ordered)}
    containing: list[set[int]] = [set() for _ in ordered]
    for dag, key in key_of.items():
        for a, below in enumerate(dag):
            for b in bits(below):
                without = tuple(c & ~(1 << b) if i == a else c for i, c in enumerate(dag))
                containing[number[key_of[without]]].add(number[key])
    children = np.array([member[key] for key in ordered], dtype=np.int64).reshape(len(ordered), m)
    directed = ((children[:, :, None] >> np.arange(m)) & 1).astype(bool)
    return LatentClasses(
        children=children,
        orders=np.array([topological_order(_parents(member[key]), member[key]) for key in ordered], dtype=np.int64),
        adjacent=directed | directed.transpose(0, 2, 1),
        first_super=np.cumsum([0, *map(len, containing)]),
        supers=np.array([i for above in containing for i in sorted(above)], dtype=np.int64),
    )


def _all_dags(m: int) -> Iterator[tuple[int, ...]]:
    """Every DAG on m labelled nodes as the children of each node: 1, 3, 25, 543, 29281 of them."""
    pairs = list(combinations(range(m), 2))
    for kinds in product((None, False, True), repeat=len(pairs)):
        children = [0] * m
        for (a, b), is_reversed in zip(pairs, kinds):
            if is_reversed is not None:
                children[b if is_reversed else a] |= 1 << (a if is_reversed else b)
        if len(topological_order(_parents(children), children)) == m:
            yield tuple(children)


def _parents(children: Sequence[int]) -> list[int]:
    return [sum(1 << a for a, below in enumerate(children) if below >> b & 1) for b in range(len(children))]


def _n_edges(children: Sequence[int]) -> int:
    return sum(below.bit_count() for below in children)


def _markov_key(children: tuple[int, ...]) -> object:
    """Skeleton and v-structures: equal for two DAGs if and only if they are Markov equivalent."""
    parents = _parents(children)
    adjacent = tuple(c | p for c, p in zip(children, parents))
    collisions = frozenset(
        (1 << a | 1 << c, b) for b, above in enumerate(parents) for a in bits(above) for c in bits(above & ~adjacent[a])
        if c != a
    )  # fmt: skip
    return adjacent, collisions


def dimensions(measurement: FactorModel) -> Ints:
    """Generic dimension of the measurement model with each of :func:`latent_classes`, in closed form.

    ``n + edges(L -> X) + edges(L -> L) - sum of k(k-1)/2``, less one for each isolated group of one or two latents
    with no more than 2k pure children.

    Notes
    -----
    Why. Let a group of k latents have 2k + 1 pure children. Leave one, i, out: the others contain disjoint sets
    A, B of k each with Cov(A, B) invertible, while ``det Cov(A+i, B+i) = 0`` once the noise of i is taken off. That
    equation is linear in the noise of i, so it determines it (Anderson and Rubin 1956). With 2k pure children one
    is missing from B; any variable outside the group that is correlated with it will do: a common child, or a pure
    child of a neighbour. With the noise known, loadings are determined up to the basis within each group, and
    then the latent covariance, the paths and the loadings of common children; with latent noise fixed to the
    identity, k(k-1)/2 rotations of the basis are left. What remains is an isolated group with 2k pure children. That
    is plain factor analysis, whose dimension is the number of parameters less the rotations, or the number of
    moments k(2k+1) if that is less (Drton, Sturmfels and Sullivant 2007); it is less, by one, for k = 1 and 2 only.

    Examples
    --------
    Two latents with two indicators each, joined and not; the latter is two free correlations and four variances:

    >>> dimensions(FactorModel(tuple("abcd"), sizes=(1, 1), parents=(1, 1, 2, 2))).tolist()
    [9, 6]
    """
    classes = latent_classes(measurement.n_groups)
    sizes, parents = np.array(measurement.sizes), np.array(measurement.parents)
    loadings = sum(int(((parents >> g) & 1).sum()) * k for g, k in enumerate(measurement.sizes))
    between = (classes.adjacent * np.outer(sizes, sizes)).sum(axis=(1, 2)) // 2
    loose = np.array([_is_loose(parents, sizes[g], g) for g in range(len(sizes))])
    fixed = len(parents) + loadings - int((sizes * (sizes - 1) // 2).sum())
    result: Ints = fixed + between - (classes.is_isolated & loose).sum(axis=1)
    return result


def gnfm_classes(observed: Sequence[str], max_group_size: int | None = None) -> Iterator[CPDAG]:
    """Every class of generalized N factor models over these observed variables, each once; for few variables.

    >>> sum(1 for _ in gnfm_classes(["a", "b", "c", "d", "e"]))
    52
    """
    n = len(observed)
    for m in range(1, n // 2 + 1):
        table = measurement_table(n, m, checked_group_size(max_group_size, n), observed)
        for row in range(len(table)):
            for children in latent_classes(m).children.tolist():
                yield table[row].along(adjacency_of(children)).cpdag
