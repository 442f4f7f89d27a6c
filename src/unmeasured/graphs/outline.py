"""Many classes over the same observed variables, laid side by side: groups matched, edges counted.

Latents of two graphs have no names in common. What they share is indicators, so a group of one graph stands for the
group of the other with which it shares the most (an assignment, each group used once)::

    reference   {L1}: a b c      {L2}: d e f
    another     {M1}: d e f g    {M2}: a b           M2 stands for L1, M1 for L2

A group that shares fewer than two indicators with every group left stands for none: it takes two to see a latent.
Everything is counted between groups, since all latents of a group have the same edges. Covariates and outcomes are
nodes beside the groups that stand for themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from unmeasured.arrays import Bools, Floats, Ints, Marks
from unmeasured.graphs.cpdag import CPDAG
from unmeasured.graphs.latent_groups import braces

_LEAST_SHARED = 2


@dataclass(frozen=True, eq=False)
class Outline:
    """A class over groups in tables, without names of latents.

    >>> from unmeasured.graphs import DAG
    >>> edges = [("A", "B"), ("A", "a"), ("A", "b"), ("B", "c"), ("B", "d"), ("B", "b")]
    >>> outline = Outline.of(DAG.from_edges(edges, latents=["A", "B"]).cpdag(), "abcd")
    >>> outline.measures.astype(int)
    array([[1, 1, 0, 0],
           [0, 1, 1, 1]])
    >>> outline.between
    array([[0, 1],
           [1, 0]], dtype=uint8)
    """

    sizes: tuple[int, ...]
    measures: Bools  # (G, n) which observed variables each group causes
    between: Marks  # (K, K) edges between groups, then covariates and outcomes, as in a CPDAG
    others: tuple[str, ...] = ()  # the covariates and outcomes
    direct: Bools = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))  # (others, n) effects on items

    @classmethod
    def of(cls, graph: CPDAG, observed: Sequence[str]) -> Outline:
        """The outline of a class, observed variables in the order given."""
        first = [graph.variables.index(group[0]) for group in graph.latent_groups]
        items = [graph.variables.index(name) for name in observed]
        A = graph.adjacency
        sizes = tuple(len(group) for group in graph.latent_groups)
        others = (*graph.variables.covariates, *graph.variables.outcomes)
        nodes = [*first, *(graph.variables.index(name) for name in others)]
        indicator = np.isin(list(observed), graph.variables.indicators)
        causes = A[np.ix_(nodes, items)].astype(bool) & indicator
        between = A[np.ix_(nodes, nodes)].astype(np.uint8)
        if not others:
            return cls(sizes, causes, between)
        return cls(sizes, causes[: len(first)], between, others, causes[len(first) :])

    @property
    def reach(self) -> Bools:
        """(G, n) the indicators of each group; of one without any, those of the groups it points at."""
        among = self.between[: len(self.sizes), : len(self.sizes)]
        reach, down = self.measures.copy(), (among > among.T).astype(int)
        for _ in self.sizes:
            bare = ~reach.any(axis=1)
            reach[bare] = (down[bare] @ reach.astype(int)) > 0
        return reach

    @property
    def pure(self) -> Bools:
        """(G, n) which observed variables each group causes alone."""
        return np.asarray(self.measures & (self.measures.sum(axis=0) == 1))

    @property
    def coassignment(self) -> Bools:
        """(n, n) which observed variables share a group."""
        return np.asarray((self.measures.T.astype(int) @ self.measures.astype(int)) > 0)

    def matched(self, reference: Outline) -> Ints:
        """(G of the reference,) the group that stands for each of its groups; -1 where none does."""
        shared = reference.reach.astype(int) @ self.reach.T.astype(int)
        # A latent above latents goes by the indicators of those, and stands for no latent with indicators of its own.
        has_own, has_own_here = (np.asarray(one.measures.any(axis=1)) for one in (reference, self))
        shared[has_own[:, None] != has_own_here[None, :]] = 0
        # Of two groups that share as many, the one that shares more indicators of its own.
        own = reference.pure.astype(int) @ self.pure.T.astype(int)
        worth = np.where(shared >= _LEAST_SHARED, shared + own / (1.0 + shared.size * own.max(initial=1)), 0.0)
        partner = np.full(len(reference.sizes), -1)
        for g, h in zip(*linear_sum_assignment(worth, maximize=True), strict=True):
            if worth[g, h] > 0:
                partner[g] = h
        return partner

    def seen_from(self, reference: Outline) -> Outline:
        """The same class with the groups of the reference; those that none stands for have size 0 and no edges."""
        partner = self.matched(reference)
        known = partner >= 0
        measures = self.measures[partner] & known[:, None] if self.sizes else np.zeros_like(reference.measures)
        sizes = tuple(self.sizes[h] if h >= 0 else 0 for h in partner.tolist())
        shared = [self.others.index(name) if name in self.others else -1 for name in reference.others]
        nodes = np.concatenate([partner, [len(self.sizes) + k if k >= 0 else -1 for k in shared]]).astype(np.int64)
        there = nodes >= 0
        between = np.zeros((len(nodes),) * 2, np.uint8)
        between[np.ix_(there, there)] = self.between[np.ix_(nodes[there], nodes[there])]
        direct = np.zeros_like(reference.direct)
        for k, other in enumerate(shared):
            if other >= 0:
                direct[k] = self.direct[other]
        return Outline(sizes, measures, between, reference.others, direct)

    def to_record(self) -> dict[str, Any]:
        """As plain lists: for each group its size and its indicators, and the marks between groups."""
        groups = [[k, np.flatnonzero(row).tolist()] for k, row in zip(self.sizes, self.measures, strict=True)]
        record = {"latent_groups": groups, "between": self.between.tolist()}
        if self.others:
            record |= {"others": list(self.others), "direct": [np.flatnonzero(row).tolist() for row in self.direct]}
        return record

    @classmethod
    def from_record(cls, record: dict[str, Any], n_observed: int) -> Outline:
        """The outline that :meth:`to_record` wrote."""
        groups = record["latent_groups"]
        measures = np.zeros((len(groups), n_observed), dtype=bool)
        for row, (_, items) in zip(measures, groups, strict=True):
            row[items] = True
        others = tuple(str(name) for name in record.get("others", ()))
        n_nodes = len(groups) + len(others)
        between = np.array(record["between"], dtype=np.uint8).reshape(n_nodes, n_nodes)
        sizes = tuple(int(k) for k, _ in groups)
        if not others:
            return cls(sizes, measures, between)
        direct = np.zeros((len(others), n_observed), dtype=bool)
        for row, items in zip(direct, record["direct"], strict=True):
            row[items] = True
        return cls(sizes, measures, between, others, direct)


@dataclass(frozen=True, eq=False)
class Tally:
    """Which part of many classes, each with a weight, has each edge of a reference; weights sum to one."""

    reference: Outline
    classes: tuple[Outline, ...]  # seen from the reference
    weights: Floats

    @classmethod
    def of(
        cls, reference: Outline, classes: Iterable[Outline], weights: Sequence[float] | Floats | None = None
    ) -> Tally:
        """Match the classes with the reference; without weights all count alike."""
        seen = tuple(other.seen_from(reference) for other in classes)
        w = np.ones(len(seen)) if weights is None else np.asarray(weights, dtype=float)
        return cls(reference, seen, w / w.sum() if len(w) else w)

    @cached_property
    def loadings(self) -> Floats:
        """(G, n) how often a group causes an observed variable."""
        return self._mean(outline.measures for outline in self.classes)

    @cached_property
    def directed(self) -> Floats:
        """(G, G) how often g → h."""
        return self._mean((outline.between > outline.between.T) for outline in self.classes)

    @cached_property
    def undirected(self) -> Floats:
        """(G, G) how often g – h, the edge undirected."""
        return self._mean((outline.between & outline.between.T) for outline in self.classes)

    @property
    def adjacent(self) -> Floats:
        """(G, G) how often there is an edge of any kind."""
        return np.asarray(self.directed + self.directed.T + self.undirected)

    def edges(self, groups: Sequence[tuple[str, ...]], observed: Sequence[str]) -> pd.DataFrame:
        """One row per edge that was ever seen, the edges of the reference first.

        ``source target kind in_graph frequency forward backward undirected``: the last three say how often it points
        from source to target, the other way, or neither. Groups of several latents are written ``{L1, L2}``. A direct
        effect of a covariate on an indicator has the kind "direct".
        """
        names = [group_name(group) for group in groups]
        nodes = [*names, *self.reference.others]
        rows = [*self._loading_rows(names, observed), *self._path_rows(nodes), *self._direct_rows(observed)]
        columns = ["source", "target", "kind", "in_graph", "frequency", "forward", "backward", "undirected"]
        table = pd.DataFrame(rows, columns=columns)
        return table.sort_values(["in_graph", "frequency"], ascending=False, kind="stable", ignore_index=True)

    def _loading_rows(self, names: Sequence[str], observed: Sequence[str]) -> list[tuple[Any, ...]]:
        there = self.reference.measures
        return [
            (names[g], observed[j], "loading", bool(there[g, j]), f, f, 0.0, 0.0)
            for (g, j), f in np.ndenumerate(self.loadings.round(12))
            if f > 0 or there[g, j]
        ]

    def _direct_rows(self, observed: Sequence[str]) -> list[tuple[Any, ...]]:
        if not self.reference.others:
            return []
        there, often = self.reference.direct, self._mean(outline.direct for outline in self.classes).round(12)
        return [
            (self.reference.others[k], observed[j], "direct", bool(there[k, j]), f, f, 0.0, 0.0)
            for (k, j), f in np.ndenumerate(often)
            if f > 0 or there[k, j]
        ]

    def _path_rows(self, names: Sequence[str]) -> list[tuple[Any, ...]]:
        marks, rows = self.reference.between, []
        for g in range(len(names)):
            for h in range(g + 1, len(names)):
                there = bool(marks[g, h] or marks[h, g])
                # Written as the reference points, or as it mostly points where the reference has no edge.
                is_reversed = marks[h, g] > marks[g, h] or (not there and self.directed[h, g] > self.directed[g, h])
                a, b = (h, g) if is_reversed else (g, h)
                parts = (float(self.directed[a, b]), float(self.directed[b, a]), float(self.undirected[a, b]))
                if there or sum(parts) > 0:
                    rows.append((names[a], names[b], "path", there, round(sum(parts), 12), *parts))
        return rows

    def _mean(self, tables: Iterable[Any]) -> Floats:
        stack = [np.asarray(table, dtype=float) for table in tables]
        return np.asarray(np.einsum("b,bij->ij", self.weights, np.stack(stack)))


def group_name(group: Sequence[str]) -> str:
    """A group as one word: the latent itself, or ``{L1, L2}``."""
    return group[0] if len(group) == 1 else braces(group)
