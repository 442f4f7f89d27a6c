"""What writers and definitions ask of a graph, so that they need neither DAG nor CPDAG, which build on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from unmeasured.graphs.bitsets import Adjacency
from unmeasured.graphs.variables import Variables

Groups = tuple[tuple[str, ...], ...]
Arcs = tuple[tuple[str, str], ...]


class Graph(Protocol):
    """Variables and edges; a DAG and a CPDAG are graphs."""

    @property
    def variables(self) -> Variables:
        """Names and roles."""
        ...

    @property
    def adjacency(self) -> Adjacency:
        """0 and 1; ``A[i, j]`` is i → j."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """All variables, in the order of the matrix."""
        ...

    @property
    def latents(self) -> tuple[str, ...]:
        """The latent variables, in order."""
        ...

    @property
    def observed(self) -> tuple[str, ...]:
        """The observed variables, in order."""
        ...

    @property
    def latent_groups(self) -> Groups:
        """The latent groups."""
        ...


class Directed(Graph, Protocol):
    """A graph whose edges are all directed, without cycles: a DAG."""

    @property
    def edges(self) -> Arcs:
        """All edges as ``(cause, effect)``."""
        ...

    @property
    def parent_masks(self) -> tuple[int, ...]:
        """For each node its parents as a set of bits."""
        ...

    @property
    def child_masks(self) -> tuple[int, ...]:
        """For each node its children as a set of bits."""
        ...

    @property
    def topological_order(self) -> tuple[int, ...]:
        """Indices with causes before effects."""
        ...

    @property
    def facets(self) -> dict[str, tuple[str, ...]]:
        """For each latent that is measured by latents these latents."""
        ...

    def parents(self, name: str) -> tuple[str, ...]:
        """Direct causes of a variable."""
        ...

    def children(self, name: str) -> tuple[str, ...]:
        """Direct effects of a variable."""
        ...

    def has_edge(self, source: str, target: str) -> bool:
        """Whether ``source → target`` is an edge."""
        ...

    def rename(self, names: Mapping[str, str]) -> Directed:
        """The same graph, some of its variables under other names."""
        ...


class Writable(Graph, Protocol):
    """A graph as files describe it: a class of DAGs, or a DAG, which stands for itself alone."""

    @property
    def is_class(self) -> bool:
        """Whether it is a CPDAG, and its groups are part of what is written."""
        ...

    @property
    def directed_edges(self) -> Arcs:
        """Edges all members direct alike, as ``(cause, effect)``."""
        ...

    @property
    def undirected_edges(self) -> Arcs:
        """Edges whose direction members disagree on, each once."""
        ...

    @property
    def known(self) -> Arcs:
        """Edges whose direction is knowledge from outside."""
        ...

    def member(self) -> Directed:
        """A DAG of the class."""
        ...

    def rename(self, names: Mapping[str, str]) -> Writable:
        """The same graph, some of its variables under other names."""
        ...
