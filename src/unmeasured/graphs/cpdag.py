"""A graph, and what data can tell about it: a completed PDAG whose nodes are latent groups and observed variables.

A :class:`DAG` is frozen, hashable and acyclic by construction; :meth:`DAG.cpdag` gives its class, and a :class:`CPDAG`
gives its members, so the two are in one module.

Two DAGs that imply the same constraints cannot be told apart by data. All DAGs that share skeleton and
v-structures form a class, and its picture is the CPDAG: an edge is directed if every member directs it so,
undirected if members disagree::

        L1 → L2 → L3     L1 ← L2 → L3     L1 ← L2 ← L3        three members
                         L1 – L2 – L3                         their CPDAG
        L1 → L2 ← L3                                          a v-structure: alone in its class

With latents two things change.

*Groups are single nodes.* Reverse the edge between a latent and a group of two::

          L1                 L1
         ↙  ↘               ↗  ↖                  L1
        L2   L3            L2   L3                 │            the class: {L2, L3} is one node,
        ││╲ ╱││            ││╲ ╱││              {L2, L3}        its edge to L1 is undirected
        x1 … x4            x1 … x4              ↙ … ↘

The right-hand DAG has a v-structure at L1 and the left-hand one has none, so as plain DAGs they differ. Yet
both give the same set of observed covariances, since the loadings of x1 … x4 absorb any change of basis
inside {L2, L3}. So orientation is a matter between groups. We contract each group to one node, take the CPDAG
there, and expand it again: every edge between groups holds for all members.

*A latent and its indicators keep their direction.* That L causes x, and not x L, is the model, not a finding;
an edge between a latent and an observed variable therefore stays as it is in the DAG, L → x in every factor
model, and counts as knowledge when other edges are oriented. So does an edge between a latent that has no observed
children and the latents that measure it (:mod:`unmeasured.graphs.levels`).

*Covariates and outcomes keep theirs.* Nothing causes a covariate, and an outcome causes only outcomes, by their roles
(:mod:`unmeasured.graphs.variables`). Such edges are knowledge of the same kind, and what follows is directed too: with
age → L1 – L2 and no edge between age and L2, L1 → L2, since the reverse would be a v-structure that is not there.

*Knowledge from outside* may direct an edge that the data leave open. :meth:`CPDAG.restricted` keeps the members that
agree with it, directs what follows from that, and remembers in ``known`` which edges were directed from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unmeasured.errors import GraphError
from unmeasured.graphs import bitsets
from unmeasured.graphs.bitsets import Adjacency, bits
from unmeasured.graphs.formats.exports import Exports
from unmeasured.graphs.latent_groups import braces, is_gnfm, is_hierarchical, ordered_partition, uniformity_failures
from unmeasured.graphs.levels import facets_of, latent_levels, measuring_pairs
from unmeasured.graphs.orientation import all_extensions, consistent_extension, cpdag_of, restricted, v_structures
from unmeasured.graphs.protocols import Arcs, Groups
from unmeasured.graphs.variables import Variables, tuple_of_names

__all__ = [
    "CPDAG",
    "DAG",
    "class_over_groups",
    "consistent_extension",
    "cpdag_of",
    "is_markov_equivalent",
    "markov_class",
    "markov_members",
    "textbook_cpdag_adjacency",
]


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

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Observed variables whose residuals covary, beside what the edges explain."""
        return self.variables.pairs

    def with_pairs(self, pairs: Iterable[tuple[str, str]]) -> DAG:
        """The same graph with these residual pairs, ``x ~~ y`` in model text, and no others."""
        return DAG._trusted(self.variables.with_pairs(pairs), self.adjacency)

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
    def latent_groups(self) -> tuple[tuple[str, ...], ...]:
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

    @property
    def is_class(self) -> bool:
        """False: a DAG stands for itself alone, as :class:`CPDAG` does for all its members."""
        return False

    @property
    def directed_edges(self) -> Arcs:
        """All edges, as a class has them."""
        return self.edges

    @property
    def undirected_edges(self) -> Arcs:
        """None."""
        return ()

    @property
    def known(self) -> Arcs:
        """None: nothing of a DAG was left to be known."""
        return ()

    def member(self) -> DAG:
        """The graph itself."""
        return self

    @cached_property
    def facets(self) -> dict[str, tuple[str, ...]]:
        """For each latent that is measured by latents these latents; see :mod:`unmeasured.graphs.levels`.

        >>> edges = [("g", "a"), ("g", "b"), ("g", "c"), *((f, f"{f}{i}") for f in "abc" for i in (1, 2))]
        >>> DAG.from_edges(edges, latents=["g", "a", "b", "c"]).facets
        {'g': ('a', 'b', 'c')}
        """
        return facets_of(self.adjacency, self.variables)

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


@dataclass(frozen=True, eq=False, repr=False)
class CPDAG(Exports):
    """A class of DAGs that fit all data equally well; nodes are latent groups and observed variables.

    Parameters
    ----------
    variables : Variables
        Names and roles.
    adjacency : (d, d)
        ``A[i, j] = 1`` and ``A[j, i] = 0``: i → j in every member; both 1: i – j. Kept as a read-only copy.
    latent_groups : sequence of sequences of str
        A partition of the latents; edges are the same for all members of a group.
    known : sequence of pairs of str
        Edges ``(cause, effect)`` whose direction is knowledge from outside, not a finding; see :meth:`restricted`.

    Raises
    ------
    GraphError
        When this is not such a class: two members of a group are adjacent, or differ in their edges; an edge
        between a latent and an observed variable is undirected; no DAG agrees with the edges; or an edge is
        directed though the class has both directions, or undirected though it has one.

    Examples
    --------
    >>> dag = DAG.from_edges(
    ...     [("L1", "L2"), *(("L1", x) for x in "ab"), *(("L2", x) for x in "cd")], latents=["L1", "L2"]
    ... )
    >>> dag.cpdag().undirected_edges
    (('L1', 'L2'),)
    >>> dag.cpdag().directed_edges
    (('L1', 'a'), ('L1', 'b'), ('L2', 'c'), ('L2', 'd'))
    >>> [member.has_edge("L1", "L2") for member in dag.cpdag().members()]
    [True, False]
    """

    variables: Variables
    adjacency: Adjacency
    latent_groups: Groups
    known: Arcs = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "adjacency", checked_adjacency(self.variables, self.adjacency))
        object.__setattr__(self, "latent_groups", ordered_partition(self.variables, self.latent_groups))
        object.__setattr__(self, "known", tuple((a, b) for a, b in self.known))
        _check_no_loops(self)
        _check_groups_are_nodes(self)
        _check_measurement_is_directed(self)
        refuse_misplaced(self.variables, self.adjacency)
        _check_is_completed(self)

    @classmethod
    def _trusted(cls, variables: Variables, adjacency: Adjacency, latent_groups: Groups, known: Arcs = ()) -> CPDAG:
        """A class from parts known to be right; takes the array over and checks nothing."""
        cpdag = object.__new__(cls)
        adjacency.setflags(write=False)
        object.__setattr__(cpdag, "variables", variables)
        object.__setattr__(cpdag, "adjacency", adjacency)
        object.__setattr__(cpdag, "latent_groups", latent_groups)
        object.__setattr__(cpdag, "known", known)
        return cpdag

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

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Observed variables whose residuals covary in every member, beside what the edges explain."""
        return self.variables.pairs

    def with_pairs(self, pairs: Iterable[tuple[str, str]]) -> CPDAG:
        """The same class with these residual pairs, ``x ~~ y`` in model text, and no others."""
        return CPDAG._trusted(self.variables.with_pairs(pairs), self.adjacency, self.latent_groups, self.known)

    @property
    def is_class(self) -> bool:
        """True; see :attr:`DAG.is_class`."""
        return True

    @cached_property
    def directed_edges(self) -> tuple[tuple[str, str], ...]:
        """Edges all members direct alike, as ``(cause, effect)``, row by row."""
        return self._pairs(self.adjacency > self.adjacency.T)

    @cached_property
    def undirected_edges(self) -> tuple[tuple[str, str], ...]:
        """Edges whose direction the data do not tell, each once, the lower index first."""
        return self._pairs(np.triu(self.adjacency & self.adjacency.T) > 0)

    @cached_property
    def facets(self) -> dict[str, tuple[str, ...]]:
        """For each latent that is measured by latents these latents; see :mod:`unmeasured.graphs.levels`."""
        return facets_of(self.adjacency, self.variables)

    @cached_property
    def levels(self) -> dict[str, int]:
        """The level of each latent: 0 if observed variables measure it, one more than below if latents do."""
        level = latent_levels(self.adjacency, np.array(self.variables.latent, dtype=np.bool_))
        return {name: level[self.variables.index(name)] for name in self.latents}

    def _pairs(self, where: NDArray[np.bool_]) -> tuple[tuple[str, str], ...]:
        return tuple((self.names[i], self.names[j]) for i, j in np.argwhere(where))

    def member(self) -> DAG:
        """One DAG of the class, always the same one (Dor and Tarsi's extension over the groups)."""
        return self._member

    @cached_property
    def _member(self) -> DAG:
        quotient = _quotient(self.variables, self.latent_groups)
        extension = consistent_extension(quotient.contract(self.adjacency))
        if extension is None:  # cannot happen to a class that was checked
            raise GraphError("No DAG agrees with these edges; this CPDAG was built without its checks.")
        return DAG._trusted(self.variables, quotient.expand(extension))

    def members(self) -> Iterator[DAG]:
        """All DAGs of the class, each once, edges between groups the same for all members of a group.

        There can be as many as k! for k groups: for small graphs only.
        """
        quotient = _quotient(self.variables, self.latent_groups)
        for extension in all_extensions(quotient.contract(self.adjacency)):
            yield DAG._trusted(self.variables, quotient.expand(extension))

    def rename(self, names: Mapping[str, str]) -> CPDAG:
        """The same class, some of its variables under other names.

        >>> dag = DAG.from_edges([("L", "a"), ("L", "b")], latents=["L"])
        >>> print(dag.cpdag().rename({"L": "speed"}))
        speed → a, b
        """
        groups = tuple(tuple(names.get(name, name) for name in group) for group in self.latent_groups)
        known = tuple((names.get(a, a), names.get(b, b)) for a, b in self.known)
        return CPDAG._trusted(self.variables.rename(names), self.adjacency, groups, known)

    def restricted(self, arcs: Iterable[tuple[str, str]]) -> CPDAG:
        """The members that direct these edges as told; what follows is directed too (Meek 1995, rules 1 to 4).

        An edge of one member of a group is an edge of all of them.

        Raises
        ------
        GraphError
            When no member of the class agrees.

        Examples
        --------
        >>> edges = [("L1", "L2"), ("L2", "L3"), *((f"L{i}", f"x{i}{j}") for i in (1, 2, 3) for j in "ab")]
        >>> chain = DAG.from_edges(edges, latents=["L1", "L2", "L3"]).cpdag()
        >>> known = chain.restricted([("L1", "L2")])
        >>> known.undirected_edges, ("L2", "L3") in known.directed_edges
        ((), True)
        >>> known.without_knowledge == chain
        True
        """
        arcs = tuple(arcs)
        quotient = _quotient(self.variables, self.latent_groups)
        node = {name: int(quotient.node[i]) for i, name in enumerate(self.names)}
        marks = restricted(quotient.contract(self.adjacency), [(node[a], node[b]) for a, b in arcs])
        if marks is None:
            shown = ", ".join(f"{a} → {b}" for a, b in arcs)
            raise GraphError(f"No DAG of this class has {shown}. Give directions that one of its members has.")
        data_told = {*self.without_knowledge.directed_edges, *self.known}
        new = tuple(arc for arc in dict.fromkeys(arcs) if arc not in data_told)
        return CPDAG._trusted(self.variables, quotient.expand(marks), self.latent_groups, (*self.known, *new))

    @cached_property
    def without_knowledge(self) -> CPDAG:
        """The class as data show it, nothing directed by knowledge from outside."""
        return class_over_groups(self.member(), self.latent_groups) if self.known else self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CPDAG):
            return NotImplemented
        return (
            self.variables == other.variables
            and self.latent_groups == other.latent_groups
            and set(self.known) == set(other.known)
            and np.array_equal(self.adjacency, other.adjacency)
        )

    @cached_property
    def _hash(self) -> int:
        return hash((self.variables, self.latent_groups, self.adjacency.tobytes()))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # numpy forgets "read-only" when pickled; this sets it again, without a second check.
        return CPDAG._trusted, (self.variables, self.adjacency, self.latent_groups, self.known)

    def __repr__(self) -> str:
        return (
            f"<CPDAG: {len(self.latents)} latent in {len(self.latent_groups)} groups, "
            f"{len(self.observed)} observed; "
            f"{len(self.directed_edges)} directed edges, {len(self.undirected_edges)} undirected>"
        )

    def __str__(self) -> str:
        rows = []
        for name in self.names:
            effects = [target for source, target in self.directed_edges if source == name]
            partners = [target for source, target in self.undirected_edges if source == name]
            rows += [f"{name} – {', '.join(partners)}"] if partners else []
            rows += [f"{name} → {', '.join(effects)}"] if effects else []
        return "\n".join(rows) or "no edges"


def class_over_groups(dag: DAG, groups: Iterable[Iterable[str]] | None = None) -> CPDAG:
    """The class of a DAG over latent groups: contract the groups, take the CPDAG, expand it.

    Parameters
    ----------
    dag : DAG
        Any member of the class.
    groups : iterable of iterables of str, optional
        A partition of the latents. Left out: the groups of a generalized N factor model (Def. 2), or of a
        hierarchical one, if the graph is one, otherwise each latent by itself.

    Raises
    ------
    GraphError
        When a group is not one node of the DAG: members adjacent, or with different edges.

    Notes
    -----
    This leaves the paper, whose theorem speaks of Markov equivalence of single variables; that is
    :func:`markov_class`. See the top of this module for a pair of graphs where the two differ.

    Examples
    --------
    >>> edges = [(g, x) for g in ("L2", "L3") for x in ("x1", "x2", "x3", "x4")]
    >>> edges += [("L1", "y1"), ("L1", "y2")]
    >>> down = DAG.from_edges([("L1", "L2"), ("L1", "L3"), *edges], latents=["L1", "L2", "L3"])
    >>> up = DAG.from_edges([("L2", "L1"), ("L3", "L1"), *edges], latents=["L1", "L2", "L3"])
    >>> class_over_groups(down).adjacency.tolist() == class_over_groups(up).adjacency.tolist()
    True
    >>> is_markov_equivalent(down, up)
    False
    """
    if groups is None:
        has_groups = is_gnfm(dag) or is_hierarchical(dag)
        partition = dag.latent_groups if has_groups else tuple((name,) for name in dag.latents)
    else:
        partition = ordered_partition(dag.variables, groups)
    quotient = _quotient(dag.variables, partition)
    contracted = quotient.contract(dag.adjacency)
    if not np.array_equal(quotient.expand(contracted), dag.adjacency):
        reasons = [failure for group in partition for failure in uniformity_failures(dag, group)]
        raise GraphError(f"These groups are not single nodes of the graph: {reasons[0].sentence}")
    completed = _pointing_down(cpdag_of(contracted, quotient.measurement), quotient, dag)
    return CPDAG._trusted(dag.variables, quotient.expand(completed), partition)


def markov_class(dag: DAG) -> CPDAG:
    """The class of a DAG over single variables: same skeleton, same v-structures.

    The ordinary CPDAG, except that an edge between a latent and an observed variable keeps its direction, by
    the model; :func:`textbook_cpdag_adjacency` does without that exception.
    """
    return class_over_groups(dag, [(name,) for name in dag.latents])


def textbook_cpdag_adjacency(dag: DAG) -> Adjacency:
    """Adjacency of the plain CPDAG, no knowledge about roles: ``A[i, j] = A[j, i] = 1`` is i – j.

    This is what the paper compares graphs on. It may leave L – x undirected.
    """
    return cpdag_of(dag.adjacency)


def is_markov_equivalent(a: DAG, b: DAG) -> bool:
    """Whether two DAGs have the same variables by name, the same skeleton and the same v-structures.

    >>> chain = DAG.from_edges([("a", "b"), ("b", "c")])
    >>> fork = DAG.from_edges([("b", "a"), ("b", "c")])
    >>> collider = DAG.from_edges([("a", "b"), ("c", "b")])
    >>> is_markov_equivalent(chain, fork), is_markov_equivalent(chain, collider)
    (True, False)
    """
    if set(a.names) != set(b.names):
        return False
    order = [b.variables.index(name) for name in a.names]
    first, second = a.adjacency, b.adjacency[np.ix_(order, order)]
    same_skeleton = np.array_equal(first | first.T, second | second.T)
    return same_skeleton and v_structures(first) == v_structures(second)


def markov_members(dag: DAG) -> Iterator[DAG]:
    """All DAGs with the skeleton and v-structures of this one, itself included, each once; for small graphs.

    Roles play no part here: edges between latents and observed variables may be reversed, too.
    """
    for extension in all_extensions(cpdag_of(dag.adjacency)):
        yield DAG._trusted(dag.variables, extension)


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


@dataclass(frozen=True, eq=False)
class _Quotient:
    """Between a graph over variables and the graph whose nodes are groups and observed variables."""

    representative: NDArray[np.intp]  # (q,) for each node, its first variable
    node: NDArray[np.intp]  # (d,) for each variable, its node
    measurement: NDArray[np.bool_]  # (q, q) pairs whose edge is directed by their roles, as L → x is

    def contract(self, adjacency: Adjacency) -> Adjacency:
        return adjacency[self.representative[:, None], self.representative]

    def expand(self, contracted: Adjacency) -> Adjacency:
        return contracted[self.node[:, None], self.node]


def _pointing_down(completed: Adjacency, quotient: _Quotient, graph: DAG | CPDAG) -> Adjacency:
    """The members of a class over groups in which latents point at the latents that measure them."""
    pairs = measuring_pairs(graph.adjacency, np.array(graph.variables.latent, dtype=np.bool_))
    nodes = {(int(quotient.node[above]), int(quotient.node[below])) for above, below in pairs}
    open_ = sorted((a, b) for a, b in nodes if completed[a, b] and completed[b, a])
    # What measures a latent has no other neighbours that could contradict.
    marks = restricted(completed, open_) if open_ else completed
    return completed if marks is None else marks


@lru_cache(maxsize=512)  # a search visits many graphs over few partitions
def _quotient(variables: Variables, groups: Groups) -> _Quotient:
    first = {name: variables.index(group[0]) for group in groups for name in group}
    leader = [first.get(name, i) for i, name in enumerate(variables.names)]
    representative = np.array(sorted(set(leader)), dtype=np.intp)
    node = np.searchsorted(representative, np.array(leader, dtype=np.intp))
    latent = np.array(variables.latent, dtype=np.bool_)[representative]
    role = np.where(latent, 0, 1)
    role[[k for k, i in enumerate(representative) if variables.names[i] in variables.covariates]] = 2
    return _Quotient(representative, node, role[:, None] != role[None, :])


def _check_no_loops(cpdag: CPDAG) -> None:
    loops = np.flatnonzero(np.diagonal(cpdag.adjacency))
    if len(loops):
        raise GraphError(f"{cpdag.names[loops[0]]} has an edge to itself; set the diagonal to 0.")


def _check_groups_are_nodes(cpdag: CPDAG) -> None:
    """Nothing adjacent inside a group, and the same edges for all its members."""
    A, names = cpdag.adjacency, cpdag.names
    for group in cpdag.latent_groups:
        index = [cpdag.variables.index(name) for name in group]
        inside = np.argwhere(A[np.ix_(index, index)])
        if len(inside):
            a, b = (group[k] for k in inside[0])
            raise GraphError(
                f"{a} and {b} are adjacent but in one group, {braces(group)}; members of a group are not "
                "adjacent (Def. 2). Remove the edge or put them in groups of their own."
            )
        for i in index[1:]:
            differs = np.flatnonzero((A[i] != A[index[0]]) | (A[:, i] != A[:, index[0]]))
            if len(differs):
                other = names[differs[0]]
                raise GraphError(
                    f"{group[0]} and {names[i]} are in one group but their edges with {other} differ; edges "
                    "hold for every member of a group (Def. 2). Make them the same or split the group."
                )


def _check_measurement_is_directed(cpdag: CPDAG) -> None:
    hidden = np.array(cpdag.variables.latent, dtype=np.bool_)
    both = (cpdag.adjacency & cpdag.adjacency.T).astype(bool) & hidden[:, None] & ~hidden[None, :]
    if both.any():
        latent, observed = (cpdag.names[k] for k in np.argwhere(both)[0])
        raise GraphError(
            f"The edge {latent} – {observed} is undirected; an edge between a latent and an observed "
            f"variable is directed by the model. Keep {latent} → {observed} only."
        )


def _check_is_completed(cpdag: CPDAG) -> None:
    """The graph over groups is the CPDAG of its own consistent extension."""
    quotient = _quotient(cpdag.variables, cpdag.latent_groups)
    extension = consistent_extension(quotient.contract(cpdag.adjacency))
    if extension is None:
        raise GraphError(
            "No DAG has these edges without a cycle or a further v-structure, so this is no equivalence "
            "class. Build it from a DAG with DAG.cpdag()."
        )
    fixed = quotient.measurement.copy()
    for cause, effect in cpdag.known:
        if (cause, effect) not in cpdag.directed_edges:
            raise GraphError(f"The edge {cause} → {effect} is said to be known, but the graph does not have it.")
        a, b = (quotient.node[cpdag.variables.index(name)] for name in (cause, effect))
        fixed[a, b] = fixed[b, a] = True
    completed = quotient.expand(_pointing_down(cpdag_of(extension, fixed), quotient, cpdag))
    differs = np.argwhere(completed != cpdag.adjacency)
    if len(differs):
        i, j = differs[0]
        a, b = cpdag.names[i], cpdag.names[j]
        if completed[i, j]:
            problem = f"The edge {b} → {a} is directed, but some DAG of the class has {a} → {b}"
        else:
            problem = f"The edge {a} – {b} is undirected, but every DAG of the class has {b} → {a}"
        raise GraphError(f"{problem}, so this is not a completed PDAG. Build it from a DAG with DAG.cpdag().")
