"""What an experiment is about: the true graphs of a fixed suite, graphs drawn from a seed, or real data."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, groupby, permutations, product
from typing import Literal, TypeAlias, get_args

import numpy as np

from benchmarks.real import DataSets
from benchmarks.section import (
    BOOLEAN,
    COUNT,
    COUNT_LISTS,
    COUNTS,
    FRACTION,
    POSITIVE,
    WHOLE,
    Section,
    one_of,
    some_of,
)
from unmeasured import simulate
from unmeasured.data import datasets
from unmeasured.errors import UnmeasuredError
from unmeasured.graphs import DAG

SuiteName = Literal["paper", "realistic"]
Shape: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[tuple[int, ...], int], ...]]

MOST_DRAWS = 500  # in search of a structure that is not there yet
MOST_COMPARED = 8  # groups: all their orders are gone through


@dataclass(frozen=True)
class Structure:
    """A true graph and the name it goes by in the records."""

    id: str
    dag: DAG
    n_samples: None = None  # the experiment says

    @property
    def n_observed(self) -> int:
        """Number of observed variables."""
        return len(self.dag.observed)

    @property
    def digest(self) -> str:
        """A fingerprint of roles and edges: records of another graph by the same name are told apart."""
        text = json.dumps([self.dag.latents, self.dag.observed, sorted(self.dag.edges)])
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Suite:
    """One of the fixed collections of :mod:`unmeasured.simulate`, or the first few graphs of it."""

    name: SuiteName
    n_graphs: int | None = None

    def structures(self) -> tuple[Structure, ...]:
        """The graphs, called ``paper-01``, ``paper-02``, ..."""
        dags = {"paper": simulate.paper_suite, "realistic": simulate.realistic_suite}[self.name]()
        return tuple(Structure(f"{self.name}-{i:02d}", dag) for i, dag in enumerate(dags[: self.n_graphs], start=1))

    def reduced(self, n_graphs: int) -> Suite:
        """The first ``n_graphs`` graphs."""
        return replace(self, n_graphs=n_graphs)


@dataclass(frozen=True)
class Drawn:
    """Random generalized N factor models, so many different ones for each number of observed variables.

    Graph ``i`` of a size has its own generator, seeded with ``(seed, n_observed, i)``, and is drawn from it until it
    differs from those before in more than names; so fewer graphs are the first ones of more. (Graphs of more than
    eight groups are not compared: no two draws of them are alike.) The numbers of latents of a size are taken in turn;
    the number of groups and, where there are two groups or more and room, the number of common children are drawn.
    ``mean_parents``, where given, is the mean number of parent groups of a group and sets the density, so that large
    graphs are as sparse as small ones.
    """

    n_observed: tuple[int, ...]
    n_latents: tuple[tuple[int, ...], ...]
    n_graphs: int
    seed: int
    max_group_size: int = 3
    max_common_children: int = 0
    density: float = 0.5
    shape: simulate.Shape = "random"
    mean_parents: float | None = None

    def structures(self) -> tuple[Structure, ...]:
        """The graphs, called ``5-observed-1``, ``5-observed-2``, ..."""
        return _drawn(self)

    def reduced(self, n_graphs: int) -> Drawn:
        """The first ``n_graphs`` graphs of each size."""
        return replace(self, n_graphs=n_graphs)

    def _draw(self) -> Iterator[Structure]:
        for n_observed, choices in zip(self.n_observed, self.n_latents):
            shapes: set[Shape] = set()
            for i in range(self.n_graphs):
                rng = np.random.default_rng((self.seed, n_observed, i))
                dag = self._new_graph(n_observed, choices[i % len(choices)], shapes, rng)
                if len(dag.latent_groups) <= MOST_COMPARED:
                    shapes.add(shape_of(dag))
                yield Structure(f"{n_observed}-observed-{i + 1}", dag)

    def _new_graph(self, n_observed: int, n_latents: int, known: set[Shape], rng: np.random.Generator) -> DAG:
        for _ in range(MOST_DRAWS):
            dag = self._graph(n_observed, n_latents, rng)
            if len(dag.latent_groups) > MOST_COMPARED or shape_of(dag) not in known:
                return dag
        raise UnmeasuredError(
            f"{self.n_graphs} different structures with {n_observed} observed variables were asked for, and "
            f"{MOST_DRAWS} draws with {n_latents} latents gave none beyond the first {len(known)}; ask for fewer."
        )

    def _graph(self, n_observed: int, n_latents: int, rng: np.random.Generator) -> DAG:
        fewest = -(-n_latents // self.max_group_size)
        n_groups = int(rng.integers(fewest, n_latents, endpoint=True))
        most = min(self.max_common_children, max(n_observed - 2 * n_latents, 0)) if n_groups > 1 else 0
        return simulate.random_gnfm(
            n_latents=n_latents,
            n_observed=n_observed,
            n_groups=n_groups,
            max_group_size=self.max_group_size,
            shape=self.shape,
            density=self._density(n_groups),
            n_common_children=int(rng.integers(0, most, endpoint=True)),
            rng=rng,
        )

    def _density(self, n_groups: int) -> float:
        if self.mean_parents is None:
            return self.density
        return min(1.0, 2 * self.mean_parents / max(n_groups - 1, 1))


@cache
def _drawn(graphs: Drawn) -> tuple[Structure, ...]:
    return tuple(graphs._draw())


@dataclass(frozen=True)
class WithoutLatents:
    """Graphs with nothing hidden: random DAGs over observed variables, and as many data sets of independent ones."""

    n_observed: int
    n_graphs: int
    seed: int
    density: float = 0.3

    def structures(self) -> tuple[Structure, ...]:
        """The graphs, called ``dag-01``, ``dag-02``, ..., ``independent-01``, ..."""
        empty = simulate.random_dag(n_observed=self.n_observed, density=0.0, rng=0)
        numbers = range(1, self.n_graphs + 1)
        return (
            *(Structure(f"dag-{i:02d}", self._dag(i)) for i in numbers),
            *(Structure(f"independent-{i:02d}", empty) for i in numbers),
        )

    def reduced(self, n_graphs: int) -> WithoutLatents:
        """The first ``n_graphs`` of both kinds."""
        return replace(self, n_graphs=n_graphs)

    def _dag(self, i: int) -> DAG:
        rng = np.random.default_rng((self.seed, self.n_observed, i))
        return simulate.random_dag(n_observed=self.n_observed, density=self.density, rng=rng)


Graphs: TypeAlias = Suite | Drawn | WithoutLatents | DataSets


def shape_of(dag: DAG) -> Shape:
    """What is left of a class over groups when all names are forgotten; equal for graphs that differ in names only.

    The least description over orders of the groups: sizes, marks between groups, children by parent groups. Groups that
    differ in size, in their number of neighbours or of children come in the order of these, which names do not change.

    >>> chain = [("A", "B"), ("A", "x"), ("A", "y"), ("B", "z"), ("B", "w")]
    >>> other = [("B", "A"), ("A", "p"), ("A", "q"), ("B", "r"), ("B", "s")]
    >>> shape_of(DAG.from_edges(chain, latents=["A", "B"])) == shape_of(DAG.from_edges(other, latents=["A", "B"]))
    True
    """
    groups, mark = dag.latent_groups, dag.cpdag().adjacency
    first = [dag.names.index(group[0]) for group in groups]  # the members of a group have the same neighbours
    parents = [frozenset(dag.parents(name)) for name in dag.observed]

    def seen_from(order: tuple[int, ...]) -> Shape:
        sizes = tuple(len(groups[g]) for g in order)
        marks = tuple(int(mark[first[a], first[b]]) for a in order for b in order)
        children = Counter(tuple(k for k, g in enumerate(order) if groups[g][0] in above) for above in parents)
        return sizes, marks, tuple(sorted(children.items()))

    def signature(g: int) -> tuple[int, ...]:
        shared = sorted(len(above) for above in parents if groups[g][0] in above)
        return len(groups[g]), int(mark[first[g]].sum()), int(mark[:, first[g]].sum()), *shared

    alike = [tuple(same) for _, same in groupby(sorted(range(len(groups)), key=signature), key=signature)]
    orders = product(*(permutations(same) for same in alike))
    return min(seen_from(tuple(chain.from_iterable(order))) for order in orders)


def read_graphs(section: Section) -> Graphs:
    """The ``[graphs]`` table: ``suite = ...``, ``data = ...``, or the numbers to draw from, with latents or without."""
    if "suite" in section.content:
        graphs: Graphs = _read_suite(section)
    elif "data" in section.content:
        graphs = DataSets(tuple(section.take("data", some_of(*datasets.available()))))
    elif section.take_or("latents", BOOLEAN, True):
        graphs = _read_drawn(section)
    else:
        graphs = _read_without_latents(section)
    section.end()
    return graphs


def _read_suite(section: Section) -> Suite:
    return Suite(section.take("suite", one_of(*get_args(SuiteName))), section.take_or("n_graphs", COUNT, None))


def _read_without_latents(section: Section) -> WithoutLatents:
    return WithoutLatents(
        n_observed=section.take("n_observed", COUNT),
        n_graphs=section.take("n_graphs", COUNT),
        seed=section.take("seed", WHOLE),
        density=section.take_or("density", FRACTION, 0.3),
    )


def _read_drawn(section: Section) -> Drawn:
    drawn = Drawn(
        n_observed=tuple(section.take("n_observed", COUNTS)),
        n_latents=tuple(tuple(choices) for choices in section.take("n_latents", COUNT_LISTS)),
        n_graphs=section.take("n_graphs", COUNT),
        seed=section.take("seed", WHOLE),
        max_group_size=section.take_or("max_group_size", COUNT, 3),
        max_common_children=section.take_or("max_common_children", WHOLE, 0),
        density=section.take_or("density", FRACTION, 0.5),
        shape=section.take_or("shape", one_of(*get_args(simulate.Shape)), "random"),
        mean_parents=section.take_or("mean_parents", POSITIVE, None),
    )
    if len(drawn.n_latents) != len(drawn.n_observed):
        raise UnmeasuredError(
            f"{section.where}: n_latents needs one list for each of the {len(drawn.n_observed)} entries of n_observed; "
            f"got {len(drawn.n_latents)}."
        )
    return drawn
