"""A graph as model text that means this graph and nothing else: for lavaan and for semopy; part of ``convert``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations, count

from unmeasured.errors import GraphError, listing
from unmeasured.graphs.bitsets import bits
from unmeasured.graphs.latent_groups import LatentGroups, braces, uniformity_failures
from unmeasured.graphs.levels import LEAST_FACETS
from unmeasured.graphs.protocols import Directed, Writable


def to_lavaan(
    graph: Writable,
    *,
    member: Directed | None = None,
    reference_indicators: Mapping[tuple[str, ...], tuple[str, ...]] | None = None,
    fixed: Mapping[tuple[str, str], float] | None = None,
    first: Mapping[str, str] | None = None,
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
    - Covariates (see :class:`unmeasured.graphs.Variables`) covary freely, as lavaan has it; one without an effect is
      mentioned with an effect of zero, so that it takes part in the fit. Outcomes are explained by paths, ``y ~ f``.
    - A latent with no observed children is measured by latents, ``trait =~ facet1 + facet2 + facet3``; one without
      any observed descendant leaves no trace in the data and is left out.

    For a CPDAG this is the model of ``member()``; a comment marks each edge whose direction the data do not
    tell. Where observed variables that are no covariates cause something, also pass ``fixed.x = FALSE``.

    Parameters
    ----------
    graph : DAG or CPDAG
        What to write.
    member : DAG, optional
        Of a CPDAG, the member to write instead of ``member()``.
    reference_indicators : mapping, optional
        For groups of k latents, the k pure children whose zero loadings fix the rotation; else its first ones.
    fixed : mapping, optional
        Edges ``(cause, effect)`` whose weight is not estimated but set to this number; a comment lists them.
    first : mapping, optional
        For some latents the indicator to be written first, which programs take as a marker unless told otherwise.

    Names that R cannot read, such as ``Need for control``, are adapted (``Need_for_control``); a comment gives the
    name they stand for, which :func:`unmeasured.fit` reads back.

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
    adapted = _Adapted.of(graph, _member(graph, member))
    graph, dag = adapted.graph, adapted.member
    leading = {adapted.names[latent]: adapted.names[x] for latent, x in (first or {}).items()}
    model = _LavaanModel(dag, adapted.groups(reference_indicators), adapted.edges(fixed), first=leading)
    undirected = list(_undirected_remarks(graph, dag))
    sections = [
        [
            *model.header(),
            *adapted.remarks(),
            *model.rotation_remarks(),
            *model.fixed_remarks(),
            *model.measurement(),
        ],
        [*undirected, *model.paths()],
        model.variances(),
        [*model.residual_pairs(), *model.zero_covariances()],
    ]
    return "\n\n".join("\n".join(section) for section in sections if section)


def to_semopy(
    graph: Writable,
    *,
    member: Directed | None = None,
    reference_indicators: Mapping[tuple[str, ...], tuple[str, ...]] | None = None,
    markers: Mapping[str, str] | None = None,
) -> str:
    """Text for semopy's ``Model``; ``i =~ j`` and ``j ~ i`` read i → j.

    The same model as :func:`to_lavaan` writes, in the scale semopy uses: one loading of each latent is 1 and its
    variance free. In a group of several latents that loading is the one on its own reference indicator, next to the
    zeros that fix the rotation: a triangle with ones on its diagonal and free variances spans the same covariances as
    one with free diagonal and unit variances. Parameters as in :func:`to_lavaan`, names too.

    Parameters
    ----------
    graph, member, reference_indicators
        As in :func:`to_lavaan`.
    markers : mapping, optional
        For latents that are a group of their own, the indicator whose loading is 1; else the first that is the
        indicator of no other latent and no other latent's marker.

    Raises
    ------
    GraphError
        When a latent is measured by one or two latents alone.

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
    adapted = _Adapted.of(graph, _member(graph, member))
    graph, dag = adapted.graph, adapted.member
    chosen = {adapted.names[latent]: adapted.names[x] for latent, x in (markers or {}).items()}
    model = _LavaanModel(dag, adapted.groups(reference_indicators), markers=chosen)
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
    header = ["# semopy: Model(text)", *list(model.header())[1:], *adapted.remarks()]
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
    reference_indicators: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    fixed: Mapping[tuple[str, str], float] = field(default_factory=dict)
    markers: Mapping[str, str] = field(default_factory=dict)
    first: Mapping[str, str] = field(default_factory=dict)

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
        latents, outcomes = set(self.dag.latents), set(self.dag.variables.outcomes)
        result = {}
        for name in self.traced:
            children = tuple(child for child in self.dag.children(name) if child not in outcomes)
            observed = tuple(child for child in children if child not in latents)
            facets = tuple(child for child in self.dag.facets.get(name, ()) if child in self.traced)
            shown = observed or facets or tuple(child for child in children if child in self.traced)
            result[name] = tuple(sorted(shown, key=lambda child: child != self.first.get(name)))
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
    def fixing(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """For each group whose rotation can be fixed, as many pure children as it has latents."""
        return {
            group: self.reference_indicators.get(group, pure[: len(group)])
            for group, pure in self.rotating.items()
            if len(pure) >= len(group)
        }

    @cached_property
    def zero_loadings(self) -> set[tuple[str, str]]:
        """A triangle of zeros: the j-th latent of a group has none of the first j reference indicators (from 0)."""
        return {
            (latent, child)
            for group, chosen in self.fixing.items()
            for j, latent in enumerate(group)
            for child in chosen[:j]
        }

    @cached_property
    def exogenous(self) -> list[str]:
        """Variables nothing in the model points at, and that point at something: lavaan's lv.x and ov.x."""
        used = {*self.traced, *(cause for above in self.causes.values() for cause in above)}
        pointed_at = {*self.causes, *self.measured, *self.dag.variables.covariates}
        return [name for name in self.dag.names if name in used and name not in pointed_at]

    @cached_property
    def idle(self) -> list[str]:
        """Covariates without an effect."""
        covariates = self.dag.variables.covariates
        return [name for name in covariates if not self.dag.children(name)]

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
        """Each latent with a loading of 1 in front, on its marker."""
        for latent, children in self.indicators.items():
            first = self.marker_of[latent]
            rest = [self.term(latent, child) + child for child in children if child != first]
            yield f"{latent} =~ {' + '.join([f'1*{first}', *rest])}"

    @cached_property
    def marker_of(self) -> dict[str, str]:
        """For each latent the indicator that gives it its scale, no two the same where that is possible.

        In a group its reference indicator; else the one asked for, or the first that no other latent has.
        """
        chosen = {latent: x for group, chosen in self.fixing.items() for latent, x in zip(group, chosen, strict=True)}
        chosen |= {latent: x for latent, x in self.markers.items() if latent not in chosen}
        for latent, children in self.indicators.items():
            if latent not in chosen:
                free = [child for child in children if child not in chosen.values()] or list(children)
                chosen[latent] = next((child for child in free if self.measured.count(child) == 1), free[0])
        return chosen

    def paths(self) -> list[str]:
        lines = [
            f"{name} ~ {' + '.join(self.term(cause, name) + cause for cause in above)}"
            for name, above in self.causes.items()
        ]
        target = next((name for name in (*self.causes, *self.traced, *self.dag.variables.outcomes)), None)
        return lines + [f"{target} ~ 0*{name}" for name in self.idle if target is not None]

    def variances(self) -> list[str]:
        """Variances lavaan would set to zero or not know of."""
        latents = set(self.traced)
        single = [children[0] for children in self.indicators.values() if len(children) == 1]
        lines = [
            f"{child} ~~ {'1*' if child in latents else ''}{child}"
            for child in single
            if self.measured.count(child) == 1
        ]
        mentioned = {*self.measured, *self.causes, *self.exogenous, *self.dag.variables.covariates}
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
    group = {name: members for members in graph.latent_groups for name in members}
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


def readable_names(names: Iterable[str]) -> dict[str, str]:
    """For each name one that R, lavaan and semopy can read, no two the same; a readable name is its own.

    >>> readable_names(["x1", "Need for control", "Need_for_control", "2nd", "if"])
    {'x1': 'x1', 'Need for control': 'Need_for_control_2', 'Need_for_control': 'Need_for_control', '2nd': 'v_2nd',
    'if': 'if_'}
    """
    given = list(names)
    taken = {name for name in given if _is_readable(name)}
    result = {}
    for name in given:
        if _is_readable(name):
            result[name] = name
            continue
        base = re.sub(r"[^\w.]+", "_", name).strip("_") or "v"
        base = base if _is_readable(base) else f"{base}_" if base in _R_RESERVED else f"v_{base}"
        result[name] = next(x for x in chain([base], (f"{base}_{k}" for k in count(2))) if x not in taken)
        taken.add(result[name])
    return result


def _is_readable(name: str) -> bool:
    return name not in _R_RESERVED and bool(re.fullmatch(r"([^\W\d_]|\.(?!\d))[\w.]*", name))


@dataclass(frozen=True)
class _Adapted:
    """A graph and a member with names that R can read, and the names they had."""

    graph: Writable
    member: Directed
    names: Mapping[str, str]

    @classmethod
    def of(cls, graph: Writable, member: Directed) -> _Adapted:
        names = readable_names(member.names)
        changed = {old: new for old, new in names.items() if old != new}
        return cls(graph.rename(changed), member.rename(changed), names)

    def groups(
        self, reference_indicators: Mapping[tuple[str, ...], tuple[str, ...]] | None
    ) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Reference indicators by their new names."""
        return {
            tuple(self.names[name] for name in group): tuple(self.names[x] for x in chosen)
            for group, chosen in (reference_indicators or {}).items()
        }

    def edges(self, fixed: Mapping[tuple[str, str], float] | None) -> dict[tuple[str, str], float]:
        """Fixed weights by new names."""
        return {(self.names[a], self.names[b]): value for (a, b), value in (fixed or {}).items()}

    def remarks(self) -> Iterator[str]:
        """A comment for each name that had to be adapted, in a form that model text is read back with."""
        for old, new in self.names.items():
            if old != new:
                yield f"# {new} stands for {json.dumps(old, ensure_ascii=False)}"
