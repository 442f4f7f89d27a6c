"""Effects over a class: what every graph that the data cannot tell apart says of the effect of A on B.

::

    A – B – C                   A → B → C     A ← B → C     A ← B ← C
    the class                   three members, which fit alike
    effect of B on C:           r(BC)         r(BC)         0            not one number, but two

All members imply the same covariance of all variables, latents included. So nothing is fitted again: in each member the
total effect of A on B is the coefficient of A when B is regressed on A and the parents that A has there (and zero
where B is among these), on the implied covariance (Maathuis, Kalisch and Bühlmann 2009, whose IDA does so for
observed variables). Only the edges at A matter for it, so only the open part of the class around A is enumerated;
parts that are not connected by open edges are oriented independently. A group of several latents is one node, and
stands with all its latents among the parents; the effect of a single one of them depends on the rotation, and is not
a question data answer.

Effects are standardised: a latent's unit is its standard deviation, the only one that is the same in all members.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import ndtri

from unmeasured.arrays import Floats
from unmeasured.errors import UnmeasuredError, listing, nearest
from unmeasured.graphs.bitsets import Adjacency
from unmeasured.graphs.latent_groups import braces
from unmeasured.graphs.orientation import all_extensions, restricted
from unmeasured.models.delta import covariance_root, errors_along
from unmeasured.models.fit import Fit

if TYPE_CHECKING:
    from unmeasured.results.result import Result

# Orientations of one part of a class that are enumerated; beyond, only those of the edges at the cause.
MOST_ORIENTATIONS = 5000
# Open edges at the cause whose orientations are tried one by one: 2^12.
MOST_OPEN_EDGES = 12
# More sentences than this are for the table.
_MOST_SENTENCES = 12
# Effects that differ by less than this, in standard deviations, are the same: all members imply one covariance.
_SAME = 1e-7

Node = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ClassEffect:
    """The total effect of one variable on another in every member of a class.

    Attributes
    ----------
    cause, effect : str
    values : DataFrame
        One row for each possible value: ``std se lower upper members parents``, the smallest first. ``members`` is the
        share of the members that have it (missing where they are too many to count), ``parents`` those of the cause
        there.
    decided_by : str
        The open edge whose direction would tell, or tell most; empty where there is one value.
    reason : str
        Why there is no answer; empty where there is one.
    """

    cause: str
    effect: str
    values: pd.DataFrame
    decided_by: str = ""
    decides_all: bool = False
    reason: str = ""

    @property
    def smallest(self) -> float:
        """The smallest possible value; missing where there is no answer."""
        return float(self.values["std"].min()) if len(self.values) else math.nan

    @property
    def largest(self) -> float:
        """The largest possible value."""
        return float(self.values["std"].max()) if len(self.values) else math.nan

    @property
    def is_one_number(self) -> bool:
        """Whether all members agree."""
        return len(self.values) == 1

    @property
    def sentence(self) -> str:
        """The answer in words."""
        a, b = self.cause, self.effect
        if self.reason:
            return self.reason
        if self.is_one_number:
            if self.smallest == 0.0:
                return f"{a} has no effect on {b}: no member of the class has a directed path from {a} to {b}."
            return f"The effect of {a} on {b} is {_interval(self.values.iloc[0])} in every member of the class."
        shown = "; ".join(_interval(row) for _, row in self.values.iterrows())
        how = "decides it" if self.decides_all else "would tell most"
        decided = f" The direction of {self.decided_by} {how}." if self.decided_by else ""
        return f"The effect of {a} on {b} depends on directions that are not identified: {shown}.{decided}"

    def __str__(self) -> str:
        return self.sentence


def _interval(row: pd.Series) -> str:
    if row["std"] == 0.0:
        return "0"
    ends = "" if math.isnan(row["se"]) else f" ({row['lower']:.2f} to {row['upper']:.2f})"
    return f"{row['std']:.2f}{ends}"


@dataclass(frozen=True, eq=False)
class ClassEffects:
    """Effects of several pairs over a class."""

    pairs: tuple[ClassEffect, ...]
    n_members: float  # infinite where they were not counted

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per pair: ``cause effect smallest largest lower upper values decided_by sentence``.

        ``lower`` and ``upper`` are the outer ends of the intervals of all possible values.
        """
        return pd.DataFrame(
            [
                {
                    "cause": pair.cause,
                    "effect": pair.effect,
                    "smallest": pair.smallest,
                    "largest": pair.largest,
                    "lower": float(pair.values["lower"].min()) if len(pair.values) else math.nan,
                    "upper": float(pair.values["upper"].max()) if len(pair.values) else math.nan,
                    "values": len(pair.values),
                    "decided_by": pair.decided_by,
                    "sentence": pair.sentence,
                }
                for pair in self.pairs
            ],
            columns=["cause", "effect", "smallest", "largest", "lower", "upper", "values", "decided_by", "sentence"],
        )

    @cached_property
    def matrix(self) -> pd.DataFrame:
        """Cause by effect: ``0.42``, ``0.00 to 0.42``, ``0`` where no member has a path, ``?`` without an answer."""
        causes = list(dict.fromkeys(pair.cause for pair in self.pairs))
        effects = list(dict.fromkeys([*causes, *(pair.effect for pair in self.pairs)]))
        effects = [name for name in effects if any(pair.effect == name for pair in self.pairs)]
        frame = pd.DataFrame("", index=pd.Index(causes, name="cause"), columns=pd.Index(effects, name="effect"))
        for pair in self.pairs:
            frame.loc[pair.cause, pair.effect] = _cell(pair)
        return frame

    def __str__(self) -> str:
        counted = "" if math.isinf(self.n_members) else f" ({self.n_members:,.0f} in the class)"
        lines = [f"Total effects in all members{counted}, standardised; rows are causes:", self.matrix.to_string(), ""]
        told = [f"- {pair.sentence}" for pair in self.pairs if not pair.is_one_number]
        rest = [f"- and {len(told) - _MOST_SENTENCES} more, in the table"] if len(told) > _MOST_SENTENCES else []
        return "\n".join(lines + told[:_MOST_SENTENCES] + rest).rstrip()


def _cell(pair: ClassEffect) -> str:
    if pair.reason:
        return "?"
    if pair.is_one_number:
        return "0" if pair.smallest == 0.0 else f"{pair.smallest:.2f}"
    return f"{pair.smallest:.2f} to {pair.largest:.2f}"


# Members ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Members:
    """The class with groups as nodes, and its parts: sets of nodes that open edges connect."""

    nodes: tuple[Node, ...]
    marks: Adjacency  # (k, k), both directions of an open edge

    @classmethod
    def of(cls, result: Result) -> Members:
        """Those of the class of a result."""
        graph = result.graph
        nodes = (*graph.groups, *((name,) for name in graph.observed))
        index = [graph.variables.index(node[0]) for node in nodes]
        return cls(nodes, graph.adjacency[np.ix_(index, index)])

    def place(self, name: str) -> int:
        """The node of a variable."""
        return next(k for k, node in enumerate(self.nodes) if name in node)

    @cached_property
    def parts(self) -> list[list[int]]:
        """Nodes connected by open edges, in parts of two and more."""
        open_ = (self.marks > 0) & (self.marks.T > 0)
        left, found = set(np.flatnonzero(open_.any(axis=1)).tolist()), []
        while left:
            part, new = set(), {left.pop()}
            while new:
                node = new.pop()
                part.add(node)
                new |= set(np.flatnonzero(open_[node]).tolist()) - part
            left -= part
            found.append(sorted(part))
        return found

    @cached_property
    def orientations(self) -> list[list[Adjacency] | None]:
        """For each part all orientations of its open edges, or None where there are too many.

        Meek's rules never lead from an open edge to one of another part, nor need edges that leave the part, so parts
        are oriented one by one and independently.
        """
        found: list[list[Adjacency] | None] = []
        for part in self.parts:
            some = list(islice(all_extensions(self.marks[np.ix_(part, part)]), MOST_ORIENTATIONS + 1))
            found.append(some if len(some) <= MOST_ORIENTATIONS else None)
        return found

    @property
    def n(self) -> float:
        """How many members the class has; infinite where they were not counted."""
        return math.prod(math.inf if some is None else float(len(some)) for some in self.orientations)

    def parent_sets(self, node: int) -> Mapping[frozenset[int], float]:
        """The sets of parents a node has in members, each with the share of the members; missing where not counted.

        Raises
        ------
        UnmeasuredError
            When the class is too large and the node has too many open edges.
        """
        always = frozenset(np.flatnonzero((self.marks[:, node] > 0) & (self.marks[node] == 0)).tolist())
        k = next((k for k, part in enumerate(self.parts) if node in part), None)
        if k is None:
            return {always: 1.0}
        part, some = self.parts[k], self.orientations[k]
        here = part.index(node)
        if some is None:
            return {always | {part[i] for i in chosen}: math.nan for chosen in self._tried(part, here)}
        shares: dict[frozenset[int], float] = {}
        for graph in some:
            parents = always | {part[i] for i in np.flatnonzero(graph[:, here]).tolist()}
            shares[parents] = shares.get(parents, 0.0) + 1.0 / len(some)
        return shares

    def _tried(self, part: Sequence[int], here: int) -> Iterator[tuple[int, ...]]:
        """The sets of open neighbours that can all be parents while the others are children."""
        marks = self.marks[np.ix_(part, part)]
        near = np.flatnonzero((marks[here] > 0) & (marks[:, here] > 0)).tolist()
        if len(near) > MOST_OPEN_EDGES:
            raise UnmeasuredError(
                f"The class is too large: {node_name(self.nodes[part[here]])} has {len(near)} edges without a "
                f"direction in a part of {len(part)} variables, more than can be enumerated. Give directions you "
                "know as knowledge=um.Knowledge(tiers=...), and search again."
            )
        for size in range(len(near) + 1):
            for chosen in combinations(near, size):
                arcs = [(i, here) if i in chosen else (here, i) for i in near]
                if restricted(marks, arcs) is not None:
                    yield chosen


# Values -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Implied:
    """The implied correlation of all variables, and how it moves with the parameters."""

    fit: Fit

    @cached_property
    def place(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.fit.causal_order)}

    @cached_property
    def root(self) -> tuple[Floats, Floats]:
        return covariance_root(self.fit)

    @cached_property
    def _parts(self) -> tuple[Floats, Floats]:
        scale = self.fit.problem.scale
        F, Omega = self.fit.F * scale[:, None] / scale, self.fit.Omega / np.outer(scale, scale)
        E = np.linalg.inv(np.eye(len(F)) - F)
        return np.asarray(E, dtype=float), np.asarray(E.T @ Omega @ E, dtype=float)

    def coefficient(self, cause: str, given: Sequence[str], effect: str) -> tuple[float, Floats]:
        """Of the cause, in the regression of the effect on it and what is given; and its gradient (p,)."""
        E, C = self._parts
        index = [self.place[name] for name in (cause, *given, effect)]
        C_block, sd = C[np.ix_(index, index)], np.sqrt(np.diag(C)[index])
        R = C_block / np.outer(sd, sd)
        if np.linalg.cond(R[:-1, :-1]) > 1e12:
            return math.nan, np.full(self.fit.problem.pattern.n_free, math.nan)
        beta = np.linalg.solve(R[:-1, :-1], R[:-1, -1])
        a, b = self.fit.problem.pattern.ends.T
        path = self.fit.problem.pattern.is_path[:, None, None]
        by_path = E[np.ix_(b, index)][:, :, None] * C[np.ix_(a, index)][:, None, :]
        by_noise = E[np.ix_(a, index)][:, :, None] * E[np.ix_(b, index)][:, None, :]
        by_noise = np.where((a == b)[:, None, None], 0.5, 1.0) * by_noise
        half = np.where(path, by_path, by_noise)
        dC = half + half.transpose(0, 2, 1)
        relative = np.diagonal(dC, axis1=1, axis2=2) / (2.0 * np.diag(C_block))
        dR = dC / np.outer(sd, sd) - R * (relative[:, :, None] + relative[:, None, :])
        move = dR[:, :-1, -1] - dR[:, :-1, :-1] @ beta
        return float(beta[0]), np.asarray(np.linalg.solve(R[:-1, :-1], move.T)[0])


def class_effects(
    result: Result, cause: str | None = None, effect: str | None = None, *, confidence: float = 0.95
) -> ClassEffects:
    """Effects over the class of a result: of all pairs of latents, or of the pairs asked for."""
    if not isinstance(confidence, Real) or not 0.0 < confidence < 1.0:
        raise UnmeasuredError(f"confidence is a probability between 0 and 1, such as 0.95; got {confidence!r}.")
    graph = result.graph
    for name in (cause, effect):
        if name is not None and name not in graph.names:
            raise UnmeasuredError(
                f"{name!r} is no variable of the graph{nearest(name, graph.names) or '.'} Its latents are "
                f"{listing(graph.latents)}."
            )
    if cause is not None and cause == effect:
        raise UnmeasuredError(f"{cause!r} has no effect on itself: the graphs have no cycles. Name two variables.")
    members, implied = Members.of(result), _Implied(result.fit)
    single = [group[0] for group in graph.groups if len(group) == 1]
    causes = [cause] if cause is not None else single
    effects = [effect] if effect is not None else single
    pairs = [_class_effect(members, implied, a, b, confidence) for a in causes for b in effects if a != b]
    return ClassEffects(tuple(pairs), members.n)


def _class_effect(members: Members, implied: _Implied, cause: str, effect: str, confidence: float) -> ClassEffect:
    for name in (cause, effect):
        group = members.nodes[members.place(name)]
        if len(group) > 1:
            reason = (
                f"The effect of {cause} on {effect} has no answer: {name} is one of {node_name(group)}, of which the "
                "data show that they stand behind the same variables, not which is which."
            )
            return ClassEffect(cause, effect, _values_table([]), reason=reason)
    here, there = members.place(cause), members.place(effect)
    by_parents = {
        parents: (share, *_value(members, implied, cause, effect, parents, there))
        for parents, share in members.parent_sets(here).items()
    }
    if any(math.isnan(value) for _, value, _ in by_parents.values()):
        reason = (
            f"The effect of {cause} on {effect} has no answer: {cause} and what may cause it are perfectly "
            "correlated in the fitted model."
        )
        return ClassEffect(cause, effect, _values_table([]), reason=reason)
    rows = _distinct(members, implied.root, by_parents, confidence)
    decided_by, decides_all = _deciding_edge(members, here, {p: v for p, (_, v, _) in by_parents.items()})
    if len(rows) == 1:
        decided_by, decides_all = "", False
    return ClassEffect(cause, effect, _values_table(rows), decided_by, decides_all)


def _value(
    members: Members, implied: _Implied, cause: str, effect: str, parents: frozenset[int], there: int
) -> tuple[float, Floats]:
    """The effect where the cause has these parents, and its gradient."""
    if there in parents:
        return 0.0, np.zeros(implied.fit.problem.pattern.n_free)
    given = [name for k in sorted(parents) for name in members.nodes[k]]
    # Covariates go together for reasons outside the graph: the effect of one is that at equal values of the others.
    covariates = implied.fit.model.covariates
    given += [name for name in covariates if name != cause] if cause in covariates else []
    value, gradient = implied.coefficient(cause, given, effect)
    # No path: the implied covariance has the coefficient at zero whatever the parameters are, and so its gradient.
    return (0.0, np.zeros_like(gradient)) if abs(value) < _SAME else (value, gradient)


def _distinct(
    members: Members,
    root: tuple[Floats, Floats],
    by_parents: Mapping[frozenset[int], tuple[float, float, Floats]],
    confidence: float,
) -> list[dict[str, object]]:
    """One row for each value, the smallest first."""
    width = float(ndtri(0.5 + confidence / 2.0))
    rows: list[dict[str, object]] = []
    last = math.nan
    for parents, (share, value, gradient) in sorted(by_parents.items(), key=lambda item: item[1][1]):
        named = ", ".join(node_name(members.nodes[k]) for k in sorted(parents)) or "none"
        if abs(value - last) < _SAME:
            rows[-1]["members"] = float(rows[-1]["members"]) + share  # type: ignore[arg-type]
            rows[-1]["parents"] = f"{rows[-1]['parents']}; or {named}"
            continue
        se = float(errors_along(*root, gradient[None])[0]) if value else 0.0
        last = value
        rows.append(
            {
                "std": value,
                "se": se,
                "lower": value - width * se,
                "upper": value + width * se,
                "members": share,
                "parents": named,
            }
        )
    return rows


def _values_table(rows: list[dict[str, object]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["std", "se", "lower", "upper", "members", "parents"])


def _deciding_edge(members: Members, here: int, values: Mapping[frozenset[int], float]) -> tuple[str, bool]:
    """The open edge at the cause after whose direction is known the least is left open, and whether nothing is."""
    open_ = np.flatnonzero((members.marks[here] > 0) & (members.marks[:, here] > 0)).tolist()
    best, least = "", math.inf
    for other in open_:
        left = 0.0
        for inward in (True, False):
            side = [value for parents, value in values.items() if (other in parents) == inward]
            left = max(left, max(side, default=0.0) - min(side, default=0.0))
        if left < least - _SAME:
            best, least = f"{node_name(members.nodes[here])} – {node_name(members.nodes[other])}", left
    return best, least < _SAME


def node_name(node: Node) -> str:
    """A node as one name."""
    return node[0] if len(node) == 1 else braces(node)
