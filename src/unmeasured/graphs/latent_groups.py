"""Latent groups, their pure children, and the conditions of the factor models.

Some latents cannot be told apart. Where L1 and L2 cause exactly the same observed variables, the observed
variables see only the plane the two span, and any rotation within that plane fits the data as well. What can be
found is the *group* {L1, L2}: how many dimensions it has, who measures it, which groups cause which::

            {L1, L2} ─────────► {L3}
           ↙ ↙ ↘ ↘ ↘            ↙ ↓ ↘
          X1 X2 X3 X4 ↘        ↙ X5  X6       X1-X4 are pure children of {L1, L2}: no parents but the group.
                       ↘      ↙               X7 is a common child: it has parents in several groups.
                          X7

A generalized N factor model (Def. 2 of the paper) is a DAG in which observed variables are effects of latent
variables, and the latents fall into groups such that for each group of k latents

(i)   at least 2k observed variables have exactly the group as their parents (its pure children);
(ii)  who causes one member causes all of them, and who is caused by one is caused by all;
(iii) no two members are adjacent.

Why 2k: to see whether a group separates others we fix it through two disjoint sets of k surrogates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from unmeasured.errors import GraphError, listing, nearest
from unmeasured.graphs.bitsets import bits, mask_of, row_masks
from unmeasured.graphs.levels import LEAST_FACETS
from unmeasured.graphs.protocols import Directed, Graph, Groups
from unmeasured.graphs.variables import Variables


@dataclass(frozen=True)
class LatentGroups:
    """A partition of the latents of a graph.

    Parameters
    ----------
    graph : DAG or CPDAG
        The graph the latents belong to.
    latent_groups : sequence of sequences of str
        Kept in the order of the graph: members within a group, and groups by their first member.

    Examples
    --------
    >>> from unmeasured.graphs import DAG
    >>> edges = [(g, x) for g in ("L1", "L2") for x in ("x1", "x2", "x3", "x4", "x7")]
    >>> edges += [("L3", x) for x in ("x5", "x6", "x7")]
    >>> groups = LatentGroups.of(DAG.from_edges(edges, latents=["L1", "L2", "L3"]))
    >>> list(groups)
    [('L1', 'L2'), ('L3',)]
    >>> groups.pure_children(["L3"])
    ('x5', 'x6')
    >>> groups.common_children()
    ('x7',)
    """

    graph: Graph
    latent_groups: Groups

    def __post_init__(self) -> None:
        object.__setattr__(self, "latent_groups", ordered_partition(self.graph.variables, self.latent_groups))

    @classmethod
    def of(cls, dag: Directed) -> LatentGroups:
        """The candidate partition of a DAG: latents with the same observed children together."""
        return cls(dag, dag.latent_groups)

    @cached_property
    def size(self) -> int:
        """How many latents there are in all groups together; ``len`` counts the groups."""
        return sum(len(group) for group in self.latent_groups)

    @cached_property
    def _parents(self) -> list[int]:
        return row_masks(self.graph.adjacency.T)

    def pure_children(self, group: Sequence[str]) -> tuple[str, ...]:
        """Indicators whose parents are exactly the members of the group, and perhaps covariates."""
        variables = self.graph.variables
        members = mask_of(variables.index(name) for name in self._member_group(group))
        covariates = mask_of(variables.index(name) for name in variables.covariates)
        return tuple(x for x in variables.indicators if self._parents[variables.index(x)] & ~covariates == members)

    def common_children(self) -> tuple[str, ...]:
        """Observed variables with latent parents in more than one group."""
        variables = self.graph.variables
        members = [mask_of(variables.index(name) for name in group) for group in self.latent_groups]
        return tuple(
            x
            for x in variables.indicators
            if sum(bool(self._parents[variables.index(x)] & group) for group in members) > 1
        )

    def group_of(self, latent: str) -> tuple[str, ...]:
        """The group a latent belongs to."""
        for group in self.latent_groups:
            if latent in group:
                return group
        known = [name for group in self.latent_groups for name in group]
        raise GraphError(f"{latent!r} is in none of the latent groups{nearest(latent, known) or '.'}")

    def _member_group(self, group: Sequence[str]) -> tuple[str, ...]:
        wanted = {group} if isinstance(group, str) else set(group)
        for known in self.latent_groups:
            if wanted == set(known):
                return known
        shown = " ".join(braces(known) for known in self.latent_groups)
        raise GraphError(f"{braces(sorted(wanted))} is not one of the latent groups; they are {shown or 'none'}.")

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.latent_groups)

    def __len__(self) -> int:
        return len(self.latent_groups)

    def __contains__(self, group: object) -> bool:
        return group in self.latent_groups

    def __str__(self) -> str:
        return " ".join(braces(group) for group in self.latent_groups) or "no latent groups"


def ordered_partition(variables: Variables, groups: Iterable[Iterable[str]]) -> Groups:
    """The groups in the order of the graph, once it is sure that they are a partition of its latents.

    Raises
    ------
    GraphError
        When a name is unknown, observed, in two groups or in none, or a group is empty.
    """
    rows = []
    for group in groups:
        if isinstance(group, str):
            raise GraphError(f"A group is a list of latent names; got the string {group!r}. Write [{group!r}].")
        rows.append(sorted(variables.index(name) for name in group))
        if not rows[-1]:
            raise GraphError("A latent group is empty; leave it out.")
    seen = [i for row in rows for i in row]
    for i in seen:
        if not variables.latent[i]:
            raise GraphError(f"{variables.names[i]!r} is observed; groups are made of latents only.")
    if len(set(seen)) < len(seen):
        twice = sorted({variables.names[i] for i in seen if seen.count(i) > 1})
        raise GraphError(f"Each latent belongs to one group; given more than once: {listing(twice)}.")
    missing = [name for i, name in enumerate(variables.names) if variables.latent[i] and i not in set(seen)]
    if missing:
        raise GraphError(
            f"Each latent belongs to one group; in none of them: {listing(missing)}. "
            f"Add a group for each, such as [{missing[0]!r}]."
        )
    return tuple(tuple(variables.names[i] for i in row) for row in sorted(rows))


def braces(names: Iterable[str]) -> str:
    """A group as it is written: ``{L1, L2}``.

    >>> braces(["L1", "L2"])
    '{L1, L2}'
    """
    return "{" + ", ".join(names) + "}"


@dataclass(frozen=True)
class Failure:
    """One way in which a graph misses a definition."""

    condition: str
    group: tuple[str, ...]
    variable: str | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Verdict:
    """Whether a graph satisfies a definition; truthy if so, and otherwise with the reasons.

    Examples
    --------
    >>> from unmeasured.graphs import DAG
    >>> verdict = is_gnfm(DAG.from_edges([("g", "x1")], latents=["g"]))
    >>> bool(verdict)
    False
    >>> print(verdict)
    Not a generalized N factor model (Def. 2):
    (i) group {g} needs at least 2 pure children; it has 1: x1.
    """

    definition: str
    failures: tuple[Failure, ...]

    def __bool__(self) -> bool:
        return not self.failures

    def __str__(self) -> str:
        if not self.failures:
            return f"A {self.definition}."
        return "\n".join([f"Not a {self.definition}:", *(str(failure) for failure in self.failures)])


def is_gnfm(dag: Directed, groups: Iterable[Iterable[str]] | None = None) -> Verdict:
    """Whether a DAG is a generalized N factor model (Def. 2), with the reasons if not.

    Parameters
    ----------
    dag : DAG
        The graph in question.
    groups : iterable of iterables of str, optional
        The partition to judge. Left out: latents with the same observed children form a group, the only
        partition that can satisfy the definition (see :attr:`DAG.latent_groups`), so the verdict is about the graph.

    Notes
    -----
    The definition says that observed variables are the effects of latent variables. We read it as the paper's
    own example does: every observed variable has a latent cause, no observed cause, and causes nothing. So a
    graph with observed variables but no latents is not a generalized N factor model.
    """
    partition = dag.latent_groups if groups is None else ordered_partition(dag.variables, groups)
    failures = [*_leaf_failures(dag), *_uncaused_failures(dag)]
    for group in partition:
        failures.extend(_pure_children_failures(dag, group))
        failures.extend(uniformity_failures(dag, group))
    return Verdict("generalized N factor model (Def. 2)", tuple(failures))


def is_hierarchical(dag: Directed) -> Verdict:
    """Whether a DAG is a hierarchical factor model, with the reasons if not.

    Latents with observed children are as in a generalized N factor model (Def. 2). Every other latent, which shows only
    in latents,

    (iv) is measured by at least three latents: effects of it with no further edges but to what measures them;
    (v)  has another neighbour besides, or a fourth such effect: three latents and their common cause alone have the
         covariances of three latents with edges between all of them.

    Examples
    --------
    >>> from unmeasured.graphs import DAG
    >>> edges = [("g", "a"), ("g", "b"), ("g", "c"), *((f, f"{f}{i}") for f in "abc" for i in (1, 2))]
    >>> print(is_hierarchical(DAG.from_edges(edges, latents=["g", "a", "b", "c"])))
    Not a hierarchical factor model:
    (v) g has 3 neighbours, a, b, c; it takes 4 to tell a common cause from edges between them.
    """
    above = [name for name in dag.latents if not any(child in dag.observed for child in dag.children(name))]
    failures = [
        *_leaf_failures(dag),
        *_uncaused_failures(dag),
        *(
            failure
            for group in dag.latent_groups
            if group[0] not in above
            for failure in (*_pure_children_failures(dag, group), *uniformity_failures(dag, group))
        ),
    ]
    for name in above:
        below = dag.facets.get(name, ())
        near = [*dag.parents(name), *dag.children(name)]
        if len(below) < LEAST_FACETS:
            sentence = (
                f"(iv) {name} needs at least {LEAST_FACETS} latents that measure it; it has {_count_and_names(below)}."
            )
            failures.append(Failure("(iv)", (name,), name, sentence))
        elif len(near) <= LEAST_FACETS:
            sentence = (
                f"(v) {name} has {len(near)} neighbours, {', '.join(near)}; it takes {LEAST_FACETS + 1} to tell a "
                "common cause from edges between them."
            )
            failures.append(Failure("(v)", (name,), name, sentence))
    return Verdict("hierarchical factor model", tuple(failures))


def is_one_factor(dag: Directed) -> Verdict:
    """Whether a DAG is a one factor model, with the reasons if not.

    The paper's definition (after Silva et al., 2003): each measured variable has a single latent parent, and
    each latent has at least three measured children. The conditions of the failures are called
    ``"single parent"``, ``"three children"`` and ``"leaf"``.

    Notes
    -----
    The definition is silent on edges that start at observed variables. The paper calls the one factor model a
    special case of the generalized N factor model, which holds only when observed variables cause nothing; so
    we ask that too.
    """
    failures = list(_leaf_failures(dag))
    latent = dag.variables.latent_mask
    for x in dag.observed:
        above = [dag.names[i] for i in bits(dag.parent_masks[dag.variables.index(x)] & latent)]
        if len(above) != 1:
            has = f"{len(above)}: {', '.join(above)}" if above else "none"
            sentence = f"{x} needs a single latent parent; it has {has}."
            failures.append(Failure("single parent", tuple(above), x, sentence))
    for name in dag.latents:
        below = [dag.names[i] for i in bits(dag.child_masks[dag.variables.index(name)] & ~latent)]
        if len(below) < 3:
            sentence = f"{name} needs at least 3 observed children; it has {_count_and_names(below)}."
            failures.append(Failure("three children", (name,), name, sentence))
    return Verdict("one factor model", tuple(failures))


def _uncaused_failures(dag: Directed) -> Iterator[Failure]:
    """One failure for each observed variable without a latent cause."""
    for x in bits(~dag.variables.latent_mask & ((1 << len(dag.names)) - 1)):
        if not dag.parent_masks[x] & dag.variables.latent_mask:
            name = dag.names[x]
            sentence = f"{name} has no latent cause; observed variables are effects of latents (Def. 2)."
            yield Failure("leaf", (), name, sentence)


def _leaf_failures(dag: Directed) -> Iterator[Failure]:
    """One failure for each edge that starts at an observed variable."""
    latent = dag.variables.latent_mask
    for i in bits(~latent & ((1 << len(dag.names)) - 1)):
        for j in bits(dag.child_masks[i]):
            where = "points into a latent" if latent >> j & 1 else "starts at an observed variable"
            sentence = (
                f"Edge {dag.names[i]} → {dag.names[j]} {where}; observed variables are leaves in this model (Def. 2)."
            )
            yield Failure("leaf", (), dag.names[i], sentence)


def _pure_children_failures(dag: Directed, group: tuple[str, ...]) -> Iterator[Failure]:
    members = mask_of(dag.variables.index(name) for name in group)
    pure = [x for x in dag.observed if dag.parent_masks[dag.variables.index(x)] == members]
    needed = 2 * len(group)
    if len(pure) < needed:
        has = _count_and_names(pure)
        sentence = f"(i) group {braces(group)} needs at least {needed} pure children; it has {has}."
        yield Failure("(i)", group, None, sentence)


def uniformity_failures(dag: Directed, group: tuple[str, ...]) -> Iterator[Failure]:
    """Failures of conditions (ii) and (iii) for one group: is it one node, seen from outside?"""
    index = [dag.variables.index(name) for name in group]
    members = mask_of(index)
    yield from _respectively(dag, group, "causes", [dag.parent_masks[i] & ~members for i in index])
    yield from _respectively(dag, group, "is caused by", [dag.child_masks[i] & ~members for i in index])
    for i in index:
        for j in bits(dag.child_masks[i] & members):
            sentence = (
                f"(iii) {dag.names[i]} → {dag.names[j]} is an edge inside the group {braces(group)}; "
                "members of a group are not adjacent."
            )
            yield Failure("(iii)", group, dag.names[i], sentence)


def _respectively(dag: Directed, group: tuple[str, ...], verb: str, related: list[int]) -> Iterator[Failure]:
    """Failures of condition (ii); ``related`` has, for each member, the outsiders in that relation to it."""
    everyone, anyone = related[0], 0
    for mask in related:
        everyone, anyone = everyone & mask, anyone | mask
    for v in bits(anyone & ~everyone):
        some = [name for name, mask in zip(group, related) if mask >> v & 1]
        rest = [name for name, mask in zip(group, related) if not mask >> v & 1]
        preposition = " by" if verb == "is caused by" else ""
        sentence = (
            f"(ii) {dag.names[v]} {verb} {', '.join(some)} but not{preposition} {', '.join(rest)}, "
            f"all in the group {braces(group)}."
        )
        yield Failure("(ii)", group, dag.names[v], sentence)


def _count_and_names(names: Sequence[str]) -> str:
    return f"{len(names)}: {', '.join(names)}" if names else "none"
