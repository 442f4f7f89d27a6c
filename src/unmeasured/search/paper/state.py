"""States of the search: what is known of latents, their indicators and each other at one moment.

::

    S_init (Def. 3)                       later                                  at the end
    L1 – L2 – L3   all latents            {L1}   {L2, L3}     found groups       {L1} → {L2, L3}
    │╲ ╱│╲ ╱│╲     connected,              ╱ ╲    ╱ ╲ ╱ ╲     keep their own
    x1 x2 … x6     all cause all          x1 x2  x3 x4 x5 x6  indicators         no spare latents left

A latent is *spare* until it is claimed for a group. Spare latents are connected to every other latent and
cause every variable whose parents are still open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from unmeasured.arrays import Bools, Marks
from unmeasured.errors import DataError
from unmeasured.graphs import CPDAG, DAG, Variables, consistent_extension, cpdag_of
from unmeasured.graphs.groups import ordered_partition

Group = tuple[int, ...]  # positions in State.latents


@dataclass(frozen=True, eq=False)
class State:
    """A CPDAG over latent groups and observed variables, and the latents not yet claimed.

    Edges inside a group are left out from the moment it is found: its indicators absorb any change of basis
    among its latents, so such edges change neither likelihood nor dimension (``docs/departures.md``).
    """

    observed: tuple[str, ...]
    latents: tuple[str, ...]
    measures: Bools  # (m, n): latent i causes observed variable j
    groups: tuple[Group, ...]  # the groups found, in the order they were found: the list P of the paper
    between: Marks  # (G, G): the edges between them

    def along(self, arcs: Marks) -> State:
        """The same with the class of a graph (G, G) over the groups."""
        state = replace(self, between=cpdag_of(arcs))
        state.__dict__["arcs"] = arcs  # what the cached property would look for
        return state

    @cached_property
    def n_paths(self) -> int:
        """How many paths the edges between groups stand for."""
        sizes = np.array([len(group) for group in self.groups])
        return int(sizes @ (self.between | self.between.T) @ sizes) // 2

    @cached_property
    def spare(self) -> Group:
        """Latents not yet claimed by a group."""
        claimed = {latent for group in self.groups for latent in group}
        return tuple(i for i in range(len(self.latents)) if i not in claimed)

    @cached_property
    def key(self) -> tuple[bytes, bytes, tuple[Group, ...]]:
        """What tells this class from others over the same variables."""
        return self.measures.tobytes(), self.between.tobytes(), self.groups

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and (self.observed, self.latents, self.key) == (
            other.observed,
            other.latents,
            other.key,
        )

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def cpdag(self) -> CPDAG:
        """The class this state stands for; a spare latent is a group of its own."""
        groups = [*self.groups, *((i,) for i in self.spare)]
        marks = np.ones((len(groups), len(groups)), dtype=np.uint8)
        found = len(self.groups)
        marks[:found, :found] = self.between
        np.fill_diagonal(marks, 0)
        names = (tuple(self.latents[i] for i in group) for group in groups)
        variables = self._variables
        return CPDAG._trusted(variables, self._adjacency(groups, marks), ordered_partition(variables, names))

    @cached_property
    def arcs(self) -> Marks:
        """(G, G) a graph over the groups that belongs to the class."""
        arcs = consistent_extension(self.between)
        if arcs is None:
            raise AssertionError("a state always has a consistent extension")
        return arcs

    @cached_property
    def member(self) -> DAG:
        """A graph of the class to fit: the same set of covariances with as few parameters as we know how.

        Spare latents stand apart in it. Whatever they cause is caused by all other latents too, so only their
        part independent of the others matters, and the loadings take up the rest.
        """
        return self.graph_along(self.arcs)

    def graph_along(self, arcs: Marks) -> DAG:
        """The graph with these edges (G, G) between groups; spare latents stand apart."""
        return DAG._trusted(self._variables, self._adjacency(self.groups, arcs))

    @property
    def _variables(self) -> Variables:
        return graph_variables(self.latents, self.observed)

    def _adjacency(self, groups: Sequence[Group], marks: Marks) -> NDArray[np.uint8]:
        m, n = self.measures.shape
        A = np.zeros((m + n, m + n), dtype=np.uint8)
        A[:m, m:] = self.measures
        for a, b in zip(*marks.nonzero(), strict=True):
            A[np.ix_(groups[a], groups[b])] = 1
        return A

    def pure_children(self, group: Group) -> tuple[int, ...]:
        """Observed variables caused by all of this group and nothing else."""
        wanted = np.zeros(len(self.latents), dtype=bool)
        wanted[list(group)] = True
        return tuple(np.flatnonzero((self.measures == wanted[:, None]).all(axis=0)).tolist())

    def group_name(self, g: int) -> str:
        """A group by its indicators, which the reader knows; numbers of latents change on the way."""
        own = [self.observed[j] for j in self.pure_children(self.groups[g])]
        return f"{{{', '.join(own[:2])}{', ...' if len(own) > 2 else ''}}}"

    def claim(self, group: Group) -> State:
        """The same class with some spare latents claimed as a group, still connected to all others."""
        marks = np.ones((len(self.groups) + 1,) * 2, dtype=np.uint8)
        marks[:-1, :-1] = self.between
        np.fill_diagonal(marks, 0)
        return replace(self, groups=(*self.groups, group), between=marks)

    def by_indicators(self) -> tuple[State, tuple[int, ...]]:
        """The same class with its groups in the order of their first indicators, pure ones if there are any.

        Also where each latent was before. All latents belong to groups.
        """

        def indicators(g: int) -> tuple[int, ...]:
            group = self.groups[g]
            return self.pure_children(group) or tuple(np.flatnonzero(self.measures[list(group)].any(axis=0)).tolist())

        order = sorted(range(len(self.groups)), key=indicators)
        latents = [latent for g in order for latent in self.groups[g]]
        ends = np.cumsum([0, *(len(self.groups[g]) for g in order)]).tolist()
        groups = tuple(tuple(range(a, b)) for a, b in pairwise(ends))
        between = self.between[np.ix_(order, order)]
        return replace(self, measures=self.measures[latents], groups=groups, between=between), tuple(latents)

    def without_parents(self, items: Sequence[int]) -> State:
        """The same class with no causes for some observed variables."""
        measures = self.measures.copy()
        measures[:, list(items)] = False
        return replace(self, measures=measures)

    def without_spare(self) -> State:
        """Algorithm 1, last line: latents that were never claimed are removed."""
        kept = [latent for group in self.groups for latent in group]
        new = {latent: position for position, latent in enumerate(kept)}
        return State(
            self.observed,
            latent_names(self.observed, len(kept)),
            self.measures[kept],
            tuple(tuple(new[latent] for latent in group) for group in self.groups),
            self.between,
        )


@lru_cache(maxsize=64)
def graph_variables(latents: tuple[str, ...], observed: tuple[str, ...]) -> Variables:
    """Checked once for the thousands of states over the same names."""
    return Variables.of((*latents, *observed), latents)


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


def initial_state(observed: Sequence[str]) -> State:
    """S_init of Definition 3: half as many latents as observed variables, all connected, all causing all.

    >>> state = initial_state(["a", "b", "c", "d", "e"])
    >>> state.latents, state.measures.all()
    (('L1', 'L2'), np.True_)
    """
    if len(observed) < 2:
        raise DataError(
            f"A factor model needs at least two observed variables, two for each latent (Def. 2); got {len(observed)}."
        )
    m = len(observed) // 2
    everything = np.ones((m, len(observed)), dtype=bool)
    return State(tuple(observed), latent_names(observed, m), everything, (), np.zeros((0, 0), dtype=np.uint8))
