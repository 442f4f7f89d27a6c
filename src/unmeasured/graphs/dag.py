"""A directed acyclic graph over observed and latent variables: frozen, hashable, acyclic by construction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unmeasured.errors import GraphError
from unmeasured.graphs import bitsets
from unmeasured.graphs.bitsets import Adjacency, bits
from unmeasured.graphs.exports import Exports
from unmeasured.graphs.variables import Variables, tuple_of_names

if TYPE_CHECKING:
    from unmeasured.graphs.cpdag import CPDAG


@dataclass(frozen=True, eq=False, repr=False)
class DAG(Exports):
    """A directed acyclic graph; ``adjacency[i, j] = 1`` means i → j.

    Parameters
    ----------
    variables : Variables
        Names and roles.
    adjacency : (d, d)
        0 and 1; kept as a read-only ``uint8`` copy.

    Raises
    ------
    GraphError
        When the matrix has the wrong shape, other entries than 0 and 1, or a cycle, which is then named.

    Examples
    --------
    >>> dag = DAG.from_edges([("g", "x1"), ("g", "x2"), ("g", "x3")], latents=["g"])
    >>> dag.observed
    ('x1', 'x2', 'x3')
    >>> print(dag)
    g → x1, x2, x3
    >>> DAG.from_edges([("a", "b"), ("b", "a")])
    Traceback (most recent call last):
    ...
    unmeasured.errors.GraphError: The graph has a cycle: a → b → a. Remove or reverse one of these edges.
    """

    variables: Variables
    adjacency: Adjacency

    def __post_init__(self) -> None:
        adjacency = checked_adjacency(self.variables, self.adjacency)
        object.__setattr__(self, "adjacency", adjacency)
        if len(self.topological_order) < len(self.variables):
            cycle = bitsets.one_cycle(self.parent_masks, self.child_masks)
            path = " → ".join(self.names[node] for node in cycle)
            raise GraphError(f"The graph has a cycle: {path}. Remove or reverse one of these edges.")
        refuse_misplaced(self.variables, adjacency)

    @classmethod
    def _trusted(cls, variables: Variables, adjacency: Adjacency) -> DAG:
        """A DAG from a matrix known to be acyclic; takes the array over and checks nothing."""
        dag = object.__new__(cls)
        adjacency.setflags(write=False)
        object.__setattr__(dag, "variables", variables)
        object.__setattr__(dag, "adjacency", adjacency)
        return dag

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[tuple[str, str]],
        *,
        latents: Sequence[str] = (),
        names: Sequence[str] | None = None,
        covariates: Sequence[str] = (),
        outcomes: Sequence[str] = (),
    ) -> DAG:
        """A DAG from ``(cause, effect)`` pairs.

        Parameters
        ----------
        edges : iterable of (str, str)
            An edge given twice counts once.
        latents : sequence of str
            Which of the variables are latent.
        names : sequence of str, optional
            All variables in order. Left out: the latents as given, then the others as they first appear.
        covariates, outcomes : sequence of str
            Observed variables with these roles. Covariates have no causes in the graph and covary freely.
        """
        pairs = [_checked_pair(edge) for edge in edges]
        latents = tuple_of_names(latents, "latents")
        if names is None:
            names = tuple(dict.fromkeys([*latents, *(name for pair in pairs for name in pair)]))
        variables = Variables.of(names, latents, covariates, outcomes)
        adjacency = np.zeros((len(variables), len(variables)), dtype=np.uint8)
        for source, target in pairs:
            adjacency[variables.index(source), variables.index(target)] = 1
        return cls(variables, adjacency)

    @property
    def names(self) -> tuple[str, ...]:
        """All variables, in the order of the matrix."""
        return self.variables.names

    @property
    def latents(self) -> tuple[str, ...]:
        """The latent variables, in order."""
        return self.variables.latents

    @property
    def observed(self) -> tuple[str, ...]:
        """The observed variables, in order."""
        return self.variables.observed

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All edges as ``(cause, effect)``, row by row."""
        names = self.names
        return tuple((names[i], names[j]) for i, row in enumerate(self.child_masks) for j in bits(row))

    @cached_property
    def child_masks(self) -> tuple[int, ...]:
        """For each node its children as a set of bits."""
        return tuple(bitsets.row_masks(self.adjacency))

    @cached_property
    def parent_masks(self) -> tuple[int, ...]:
        """For each node its parents as a set of bits."""
        return tuple(bitsets.row_masks(self.adjacency.T))

    @cached_property
    def topological_order(self) -> tuple[int, ...]:
        """Indices with causes before effects; among those that could come next, the lowest first."""
        return tuple(bitsets.topological_order(self.parent_masks, self.child_masks))

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Latents gathered by identical sets of observed children.

        For a generalized N factor model (Def. 2) this is its partition into groups, and the only one. For any
        other graph it is the one candidate; ask :func:`unmeasured.graphs.is_gnfm`.
        """
        # Why it is the only one. By condition (ii) a child of one member is a child of all, so latents of one
        # group have the same observed children. By condition (i) a group has a pure child, whose parents are
        # that group and nobody else, so latents of different groups have different observed children.
        # A latent without observed children stands alone: agreeing on nothing is not a shared measurement.
        observed = ~self.variables.latent_mask
        together: dict[int, list[str]] = {}
        for i in bits(self.variables.latent_mask):
            key = self.child_masks[i] & observed or -1 - i
            together.setdefault(key, []).append(self.names[i])
        return tuple(tuple(group) for group in together.values())

    def parents(self, name: str) -> tuple[str, ...]:
        """Direct causes of a variable, in the order of the graph."""
        return tuple(self.names[i] for i in bits(self.parent_masks[self.variables.index(name)]))

    def children(self, name: str) -> tuple[str, ...]:
        """Direct effects of a variable, in the order of the graph."""
        return tuple(self.names[i] for i in bits(self.child_masks[self.variables.index(name)]))

    def has_edge(self, source: str, target: str) -> bool:
        """Whether ``source → target`` is an edge."""
        return bool(self.adjacency[self.variables.index(source), self.variables.index(target)])

    def rename(self, names: Mapping[str, str]) -> DAG:
        """The same graph, some of its variables under other names."""
        return DAG._trusted(self.variables.rename(names), self.adjacency)

    def cpdag(self) -> CPDAG:
        """The equivalence class over latent groups (see :func:`unmeasured.graphs.class_over_groups`)."""
        from unmeasured.graphs.cpdag import class_over_groups

        return class_over_groups(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DAG):
            return NotImplemented
        return self.variables == other.variables and np.array_equal(self.adjacency, other.adjacency)

    @cached_property
    def _hash(self) -> int:
        return hash((self.variables, self.adjacency.tobytes()))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # numpy forgets "read-only" when pickled; going through the constructor sets it again.
        return type(self), (self.variables, self.adjacency)

    def __repr__(self) -> str:
        return f"<DAG: {len(self.latents)} latent, {len(self.observed)} observed, {int(self.adjacency.sum())} edges>"

    def __str__(self) -> str:
        rows = [f"{name} → {', '.join(self.children(name))}" for name in self.names if self.children(name)]
        return "\n".join(rows) or "no edges"


def checked_adjacency(variables: Variables, matrix: ArrayLike) -> Adjacency:
    """A read-only ``uint8`` copy of a matrix that fits the variables and holds only 0 and 1."""
    given = np.asarray(matrix)
    d = len(variables)
    if given.shape != (d, d):
        raise GraphError(f"{d} variables need a {d} × {d} adjacency matrix; got shape {given.shape}.")
    adjacency: Adjacency = (given != 0).astype(np.uint8)
    if not np.array_equal(adjacency, given):
        i, j = np.argwhere(adjacency != given)[0]
        raise GraphError(
            f"An adjacency matrix holds 0 and 1; got {given[i, j]} for the edge {variables.names[i]} → "
            f"{variables.names[j]}. If these are weights, pass matrix != 0."
        )
    adjacency.setflags(write=False)
    return adjacency


def refuse_misplaced(variables: Variables, adjacency: Adjacency) -> None:
    """Refuse edges that roles exclude: into a covariate, and from an outcome to anything but an outcome."""
    names = variables.names
    for name in variables.covariates:
        causes = np.flatnonzero(adjacency[:, variables.index(name)])
        if len(causes):
            raise GraphError(
                f"{names[causes[0]]} → {name} points at a covariate; nothing in a graph causes covariates."
            )
    for name in variables.outcomes:
        effects = [names[j] for j in np.flatnonzero(adjacency[variables.index(name)])]
        wrong = [effect for effect in effects if effect not in variables.outcomes]
        if wrong:
            raise GraphError(f"{name} → {wrong[0]}: an outcome causes nothing but other outcomes.")


def _checked_pair(edge: tuple[str, str]) -> tuple[str, str]:
    if isinstance(edge, str) or len(edge) != 2:
        raise GraphError(f"An edge is a pair (cause, effect); got {edge!r}.")
    source, target = edge
    return source, target
