"""A graph as model text that means this graph and nothing else: for lavaan and for semopy; part of ``convert``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from unmeasured.errors import GraphError, listing
from unmeasured.graphs.bitsets import bits
from unmeasured.graphs.groups import LatentGroups, braces, uniformity_failures
from unmeasured.graphs.levels import LEAST_FACETS
from unmeasured.graphs.protocols import Directed, Writable


def to_lavaan(
    graph: Writable,
    *,
    member: Directed | None = None,
    anchors: Mapping[tuple[str, ...], tuple[str, ...]] | None = None,
    fixed: Mapping[tuple[str, str], float] | None = None,
) -> str:
    """Text for lavaan's ``sem()`` or ``cfa()`` with ``std.lv = TRUE``; ``i =~ j`` and ``j ~ i`` read i → j.

    The text means exactly the model of the graph, linear with independent noise, whatever lavaan would add by
    itself:

    - Covariances that lavaan frees without being asked (among exogenous variables, and among final outcomes)
      are set to zero, ``A ~~ 0*B``.
    - For a group of k > 1 latents the data leave a rotation open; k(k-1)/2 loadings on its first pure
      children are set to zero, ``0*x``, which fixes the rotation and costs no generality.
    - Residual pairs of the graph are written as covariances, ``x ~~ y``.
    - The only indicator of a latent keeps its residual variance, which lavaan would set to zero.
    - A latent with no observed children is measured by latents, ``trait =~ facet1 + facet2 + facet3``; one without
      any observed descendant leaves no trace in the data and is left out.

    For a CPDAG this is the model of ``member()``; a comment marks each edge whose direction the data do not
    tell. Where observed variables cause something, also pass ``fixed.x = FALSE``.

    Parameters
    ----------
    graph : DAG or CPDAG
        What to write.
    member : DAG, optional
        Of a CPDAG, the member to write instead of ``member()``.
    anchors : mapping, optional
        For groups of k latents, the k pure children whose zero loadings fix the rotation; else its first ones.
    fixed : mapping, optional
        Edges ``(cause, effect)`` whose weight is not estimated but set to this number; a comment lists them.

    Raises
    ------
    GraphError
        When a name is not one R can read.

    Examples
    --------
    >>> from unmeasured.graphs import DAG
    >>> dag = DAG.from_edges(
    ...     [("L1", "L2"), *(("L1", x) for x in ("a", "b")), *(("L2", x) for x in ("c", "d"))],
    ...     latents=["L1", "L2"],
    ... )
    >>> print(to_lavaan(dag.cpdag()))
    # lavaan: sem(model, data, std.lv = TRUE)
    L1 =~ a + b
    L2 =~ c + d
    <BLANKLINE>
    # The data do not tell the direction of L1 - L2; written as L1 -> L2.
    L2 ~ L1
    """
    dag = _member(graph, member)
    _refuse_names_r_cannot_read(dag.names)
    model = _LavaanModel(dag, anchors or {}, fixed or {})
    undirected = list(_undirected_remarks(graph, dag))
    sections = [
        [*model.header(), *model.rotation_remarks(), *model.fixed_remarks(), *model.measurement()],
        [*undirected, *model.paths()],
        model.variances(),
        [*model.residual_pairs(), *model.zero_covariances()],
    ]
    return "\n\n".join("\n".join(section) for section in sections if section)


def to_semopy(
    graph: Writable,
    *,
    member: Directed | None = None,
    anchors: Mapping[tuple[str, ...], tuple[str, ...]] | None = None,
) -> str:
    """Text for semopy's ``Model``; ``i =~ j`` and ``j ~ i`` read i → j.

    The same model as :func:`to_lavaan` writes, in the scale semopy uses: one loading of each latent is 1 and its
    variance free. In a group of several latents that loading is the one on its own anchor, next to the zeros that fix
    the rotation: a triangle with ones on its diagonal and free variances spans the same covariances as one with free
    diagonal and unit variances. Parameters as in :func:`to_lavaan`.

    Raises
    ------
    GraphError
        When a name is not one that model text can hold, or a latent is measured by one or two latents alone.

    Examples
    --------
    >>> from unmeasured.graphs import DAG
    >>> dag = DAG.from_edges([(g, x) for g in "AB" for x in ("x1", "x2", "x3", "x4")], latents=["A", "B"])
    >>> print(to_semopy(dag))
    # semopy: Model(text)
    # Group {A, B}: 1 loading set to zero to fix its rotation, which is arbitrary.
    A =~ 1*x1 + x2 + x3 + x4
    B =~ 1*x2 + 0*x1 + x3 + x4
    <BLANKLINE>
    A ~~ A
    B ~~ B
    <BLANKLINE>
    A ~~ 0*B
    """
    dag = _member(graph, member)
    _refuse_names_r_cannot_read(dag.names)
    model = _LavaanModel(dag, anchors or {})
    hidden = [
        name
        for name, items in model.indicators.items()
        if items[0] in dag.latents and len(dag.facets.get(name, ())) < LEAST_FACETS
    ]
    if hidden:
        raise GraphError(
            f"semopy cannot scale {listing(hidden)}: no observed variable measures it, nor do "
            f"{LEAST_FACETS} latents. Write it for lavaan."
        )
    undirected = list(_undirected_remarks(graph, dag))
    header = ["# semopy: Model(text)", *list(model.header())[1:]]
    sections = [
        [*header, *model.rotation_remarks(), *model.unit_loadings()],
        [*undirected, *model.paths()],
        [*(f"{name} ~~ {name}" for name in model.traced), *model.variances()],
        [*model.residual_pairs(), *model.zero_covariances()],
    ]
    return "\n\n".join("\n".join(section) for section in sections if section)


def _member(graph: Writable, member: Directed | None) -> Directed:
    if member is not None:
        if not graph.is_class or member.names != graph.names:
            raise GraphError("member goes with a CPDAG and is one of its DAGs, with the same names.")
        return member
    return graph.member()


@dataclass(frozen=True)
class _LavaanModel:
    """A DAG seen as lavaan sees it: which edges are loadings, which are paths, what would be added."""

    dag: Directed
    anchors: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    fixed: Mapping[tuple[str, str], float] = field(default_factory=dict)

    @cached_property
    def traced(self) -> tuple[str, ...]:
        """Latents with an observed descendant."""
        dag, found = self.dag, set(self.dag.observed)
        for i in reversed(dag.topological_order):
            if any(dag.names[j] in found for j in bits(dag.child_masks[i])):
                found.add(dag.names[i])
        return tuple(name for name in dag.latents if name in found)

    @cached_property
    def indicators(self) -> dict[str, tuple[str, ...]]:
        """For each latent in the model its indicators: observed children, else the latents that measure it.

        Where there are neither, all its latent children: model text has no other way to say that it is a latent.
        """
        latents = set(self.dag.latents)
        result = {}
        for name in self.traced:
            children = self.dag.children(name)
            observed = tuple(child for child in children if child not in latents)
            facets = tuple(child for child in self.dag.facets.get(name, ()) if child in self.traced)
            result[name] = observed or facets or tuple(child for child in children if child in self.traced)
        return result

    @cached_property
    def causes(self) -> dict[str, tuple[str, ...]]:
        """For each variable in the model those causes that are written as paths, ``~``."""
        known = {*self.traced, *self.dag.observed}
        result = {}
        for name in self.dag.names:
            above = [p for p in self.dag.parents(name) if p in known and name not in self.indicators.get(p, ())]
            if name in known and above:
                result[name] = tuple(above)
        return result

    @cached_property
    def measured(self) -> list[str]:
        """Indicators of all latents, as often as they are mentioned."""
        return [child for children in self.indicators.values() for child in children]

    @cached_property
    def rotating(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Groups of several latents that the data leave free to rotate, with their pure children."""
        groups = LatentGroups.of(self.dag)
        return {
            group: groups.pure_children(group)
            for group in groups
            if len(group) > 1 and not list(uniformity_failures(self.dag, group)) and group[0] in self.traced
        }

    @cached_property
    def anchored(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """For each group whose rotation can be fixed, as many pure children as it has latents."""
        return {
            group: self.anchors.get(group, pure[: len(group)])
            for group, pure in self.rotating.items()
            if len(pure) >= len(group)
        }

    @cached_property
    def zero_loadings(self) -> set[tuple[str, str]]:
        """A triangle of zeros: the j-th latent of a group has none of the first j anchors (from 0)."""
        return {
            (latent, child)
            for group, chosen in self.anchored.items()
            for j, latent in enumerate(group)
            for child in chosen[:j]
        }

    @cached_property
    def exogenous(self) -> list[str]:
        """Variables nothing in the model points at, and that point at something: lavaan's lv.x and ov.x."""
        used = {*self.traced, *(cause for above in self.causes.values() for cause in above)}
        pointed_at = {*self.causes, *self.measured}
        return [name for name in self.dag.names if name in used and name not in pointed_at]

    @cached_property
    def outcomes(self) -> list[str]:
        """Explained by a path, explaining nothing by a path, nobody's indicator: lavaan's lv.y and ov.y."""
        explaining = {cause for above in self.causes.values() for cause in above}
        return [name for name in self.causes if name not in explaining and name not in self.measured]

    def header(self) -> Iterator[str]:
        predictors = any(name in self.dag.observed for name in self.exogenous)
        yield f"# lavaan: sem(model, data, std.lv = TRUE{', fixed.x = FALSE' if predictors else ''})"
        for name in self.dag.latents:
            if name not in self.traced:
                yield f"# {name} affects no observed variable, leaves no trace in the data, and is left out."

    def rotation_remarks(self) -> Iterator[str]:
        for group, pure in self.rotating.items():
            zeros = len(group) * (len(group) - 1) // 2
            if len(pure) >= len(group):
                count = "1 loading" if zeros == 1 else f"{zeros} loadings"
                yield f"# Group {braces(group)}: {count} set to zero to fix its rotation, which is arbitrary."
            else:
                yield (
                    f"# Group {braces(group)}: its rotation is left free ({len(pure)} pure children, "
                    f"{len(group)} needed to fix it), so loadings and standard errors are not unique."
                )

    def fixed_remarks(self) -> Iterator[str]:
        if self.fixed:
            edges = ", ".join(f"{cause} -> {effect}" for cause, effect in self.fixed)
            yield f"# Not determined by the data, so fixed at an estimate, at no cost in fit: {edges}."

    def measurement(self) -> Iterator[str]:
        for latent, children in self.indicators.items():
            yield f"{latent} =~ {' + '.join(self.term(latent, child) + child for child in children)}"

    def term(self, cause: str, effect: str) -> str:
        """What stands before an effect or a cause: nothing where the weight is free."""
        if (cause, effect) in self.zero_loadings:
            return "0*"
        return f"{self.fixed[cause, effect]!r}*" if (cause, effect) in self.fixed else ""

    def unit_loadings(self) -> Iterator[str]:
        """Each latent with a loading of 1 in front: on its anchor in a group, else on its first indicator."""
        own = {latent: x for group, chosen in self.anchored.items() for latent, x in zip(group, chosen, strict=True)}
        for latent, children in self.indicators.items():
            first = own.get(latent, children[0])
            rest = [self.term(latent, child) + child for child in children if child != first]
            yield f"{latent} =~ {' + '.join([f'1*{first}', *rest])}"

    def paths(self) -> list[str]:
        return [
            f"{name} ~ {' + '.join(self.term(cause, name) + cause for cause in above)}"
            for name, above in self.causes.items()
        ]

    def variances(self) -> list[str]:
        """Variances lavaan would set to zero or not know of."""
        latents = set(self.traced)
        single = [children[0] for children in self.indicators.values() if len(children) == 1]
        lines = [
            f"{child} ~~ {'1*' if child in latents else ''}{child}"
            for child in single
            if self.measured.count(child) == 1
        ]
        mentioned = {*self.measured, *self.causes, *self.exogenous}
        return lines + [f"{name} ~~ {name}" for name in self.dag.observed if name not in mentioned]

    def residual_pairs(self) -> list[str]:
        """Pairs of items that share more than their causes."""
        return [f"{a} ~~ {b}" for a, b in self.dag.variables.pairs]

    def zero_covariances(self) -> list[str]:
        """Covariances lavaan would free: among exogenous variables, and among final outcomes."""
        pairs = [*combinations(self.exogenous, 2), *combinations(self.outcomes, 2)]
        free = {frozenset(pair) for pair in self.dag.variables.pairs}
        return [f"{a} ~~ 0*{b}" for a, b in pairs if {a, b} not in free]


def _undirected_remarks(graph: Writable, member: Directed) -> Iterator[str]:
    """One comment for each undirected edge between groups or observed variables."""
    group = {name: members for members in graph.groups for name in members}
    seen = set()
    for a, b in graph.undirected_edges:
        if not member.has_edge(a, b):
            a, b = b, a
        first, second = group.get(a, (a,)), group.get(b, (b,))
        if (first, second) not in seen:
            seen.add((first, second))
            x, y = (braces(node) if len(node) > 1 else node[0] for node in (first, second))
            yield f"# The data do not tell the direction of {x} - {y}; written as {x} -> {y}."


_R_RESERVED = {"if", "else", "repeat", "while", "function", "for", "in", "next", "break"}
_R_RESERVED |= {"TRUE", "FALSE", "NULL", "Inf", "NaN", "NA"}


def _refuse_names_r_cannot_read(names: Iterable[str]) -> None:
    wrong = [name for name in names if name in _R_RESERVED or not re.fullmatch(r"([^\W\d_]|\.(?!\d))[\w.]*", name)]
    if wrong:
        raise GraphError(
            f"lavaan cannot read these names: {listing(wrong)}. Rename them to letters, digits, dots and "
            "underscores, beginning with a letter."
        )
