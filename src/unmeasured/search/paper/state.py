"""States of Algorithm 1: what is known of latents and their indicators at one moment.

::

    S_init (Def. 3)                       later                                  at the end: a FactorModel
    L1 – L2 – L3   all latents            {L1}   {L2, L3}     found groups       {L1} – {L2, L3}
    │╲ ╱│╲ ╱│╲     connected,              ╱ ╲    ╱ ╲ ╱ ╲     keep their own
    x1 x2 … x6     all cause all          x1 x2  x3 x4 x5 x6  indicators         no spare latents left

A latent is *spare* until it is claimed for a group. Spare latents cause every variable whose parents are still open.
All groups and spare latents are connected: edges between groups are deleted later, by Algorithm 2, where every latent
belongs to a group and :class:`~unmeasured.search.model.FactorModel` is the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unmeasured.arrays import Bools, Marks
from unmeasured.errors import DataError
from unmeasured.graphs import DAG
from unmeasured.search.model import FactorModel, Group, graph_variables, latent_names


@dataclass(frozen=True, eq=False)
class State:
    """Latents, who measures them, the groups found, and the latents not yet claimed."""

    observed: tuple[str, ...]
    latents: tuple[str, ...]
    measures: Bools  # (m, n): latent i causes observed variable j
    groups: tuple[Group, ...]  # the groups found, in the order they were found: the list P of the paper

    @cached_property
    def spare(self) -> Group:
        """Latents not yet claimed by a group."""
        claimed = {latent for group in self.groups for latent in group}
        return tuple(i for i in range(len(self.latents)) if i not in claimed)

    @cached_property
    def key(self) -> tuple[bytes, tuple[Group, ...]]:
        """What tells this class from others over the same variables."""
        return self.measures.tobytes(), self.groups

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and (self.observed, self.latents, self.key) == (
            other.observed,
            other.latents,
            other.key,
        )

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def arcs(self) -> Marks:
        """(G, G) a graph over the groups found: connected in order."""
        return np.triu(np.ones((len(self.groups),) * 2, dtype=np.uint8), 1)

    @cached_property
    def member(self) -> DAG:
        """A graph of the class to fit: the same set of covariances with as few parameters as we know how.

        Spare latents stand apart in it. Whatever they cause is caused by all other latents too, so only their
        part independent of the others matters, and the loadings take up the rest.
        """
        m, n = self.measures.shape
        A = np.zeros((m + n, m + n), dtype=np.uint8)
        A[:m, m:] = self.measures
        for a, b in np.argwhere(self.arcs).tolist():
            A[np.ix_(self.groups[a], self.groups[b])] = 1
        return DAG._trusted(graph_variables(self.latents, self.observed), A)

    def pure_children(self, group: Group) -> tuple[int, ...]:
        """Observed variables caused by all of this group and nothing else."""
        wanted = np.zeros(len(self.latents), dtype=bool)
        wanted[list(group)] = True
        return tuple(np.flatnonzero((self.measures == wanted[:, None]).all(axis=0)).tolist())

    def claim(self, group: Group) -> State:
        """The same class with some spare latents claimed as a group."""
        return replace(self, groups=(*self.groups, group))

    def without_parents(self, items: Sequence[int]) -> State:
        """The same class with no causes for some observed variables."""
        measures = self.measures.copy()
        measures[:, list(items)] = False
        return replace(self, measures=measures)

    def without_spare(self) -> FactorModel:
        """Algorithm 1, last line: latents that were never claimed are removed; who is measured is a whole group."""
        causes = [self.measures[group[0]] for group in self.groups]
        parents = tuple(sum(1 << g for g, by in enumerate(causes) if by[j]) for j in range(len(self.observed)))
        return FactorModel(self.observed, tuple(map(len, self.groups)), parents)


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
    return State(tuple(observed), latent_names(observed, m), everything, ())
