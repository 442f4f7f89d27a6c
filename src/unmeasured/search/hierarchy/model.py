"""A factor model with latents above latents, and its fit.

::

    nodes        G groups of the lower model, then one node for each common cause:
                 above = ((0, 1, 2), (3, 4, 5))    node 6 stands above 0, 1 and 2, node 7 above 3, 4 and 5

                     6 ── 7 ── 8?                  top: nodes with nothing above them; only they have edges
                   ↙ ↓ ↘ …                         between each other
                  0  1  2

Seen from above this is a factor model over the top nodes, whose indicators are all observed variables below them. So
everything that searches a graph over groups (:mod:`unmeasured.search.latent_graph.edges`) searches the graph over top
nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

import numpy as np

from unmeasured.arrays import Floats, Ints, Marks
from unmeasured.graphs import CPDAG, DAG, Variables, class_over_groups, consistent_extension
from unmeasured.graphs.bitsets import bits, row_masks, topological_order
from unmeasured.graphs.levels import LEAST_FACETS, measuring_pairs
from unmeasured.graphs.orientation import restricted
from unmeasured.kernels.savings import effects_along
from unmeasured.models.parameters import Pattern
from unmeasured.search.model import FactorModel, latent_names
from unmeasured.search.score import Fitted

Above = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class RaisedModel(FactorModel):
    """A factor model over top nodes; ``lower`` has the groups that observed variables measure.

    >>> lower = FactorModel(tuple("abcdefgh"), (1, 1, 1, 1), (1, 1, 2, 2, 4, 4, 8, 8))
    >>> model = RaisedModel.over(lower, ((0, 1, 2),))
    >>> model.top, model.sizes, model.parents  # the fourth group, and the node above the other three
    ((3, 4), (1, 1), (2, 2, 2, 2, 2, 2, 1, 1))
    """

    lower: FactorModel
    above: Above

    @classmethod
    def over(cls, lower: FactorModel, above: Above) -> RaisedModel:
        """Common causes above some groups of a model, and above one another."""
        n_groups = len(lower.sizes)
        holder = {below: n_groups + t for t, nodes in enumerate(above) for below in nodes}
        top = [node for node in range(n_groups + len(above)) if node not in holder]
        place = {node: k for k, node in enumerate(top)}

        def top_of(node: int) -> int:
            while node in holder:
                node = holder[node]
            return place[node]

        at = [1 << top_of(g) for g in range(n_groups)]
        parents = tuple(reduce(or_, (at[g] for g in bits(mask)), 0) for mask in lower.parents)
        sizes = tuple(lower.sizes[node] if node < n_groups else 1 for node in top)
        return cls(lower.observed, sizes, parents, lower, above)

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """The level of each node: 0 for groups that observed variables measure."""
        heights = [0] * len(self.lower.sizes)
        for nodes in self.above:
            heights.append(1 + max(heights[node] for node in nodes))
        return tuple(heights)

    @property
    def n_levels(self) -> int:
        """How many levels of latents there are."""
        return 1 + max(self.heights)

    @cached_property
    def top(self) -> tuple[int, ...]:
        """The nodes with nothing above them."""
        below = {node for nodes in self.above for node in nodes}
        return tuple(node for node in range(len(self.lower.sizes) + len(self.above)) if node not in below)

    @cached_property
    def is_valid(self) -> bool:
        """Whether every latent is measured: by observed variables, or by three latents or more."""
        return self.lower.is_valid and all(len(nodes) >= LEAST_FACETS for nodes in self.above)

    @cached_property
    def key(self) -> tuple[tuple[int, int], ...]:
        """What tells this model from others."""
        members = tuple((sum(1 << node for node in nodes), -1) for nodes in self.above)
        return (*self.lower.key, *members)

    @property
    def n_latents(self) -> int:
        """All latents, at every level."""
        return sum(self.lower.sizes) + len(self.above)

    @property
    def n_measured(self) -> int:
        """How many latents have indicators; they come first."""
        return self.lower.n_latents

    @cached_property
    def latents_of(self) -> tuple[tuple[int, ...], ...]:
        """Positions of the latents of each node among all latents: those of the lower model, then those above."""
        m = sum(self.lower.sizes)
        return (*self.lower.groups, *((m + t,) for t in range(len(self.above))))

    @property
    def latents_of_groups(self) -> tuple[tuple[int, ...], ...]:
        """The same for the top nodes, which are the groups seen from above."""
        return tuple(self.latents_of[node] for node in self.top)

    @cached_property
    def top_latents(self) -> Ints:
        """(m,) positions of the latents of the top nodes, in the order of their groups."""
        return np.array([latent for latents in self.latents_of_groups for latent in latents], dtype=np.int64)

    def causes(self, arcs: Marks) -> Marks:
        """(M, M) which latent causes which, with these edges (G, G) between top nodes."""
        out = np.zeros((self.n_latents,) * 2, dtype=np.uint8)
        for a, b in np.argwhere(arcs).tolist():
            out[np.ix_(self.latents_of[self.top[a]], self.latents_of[self.top[b]])] = 1
        for t, nodes in enumerate(self.above):
            for node in nodes:
                out[np.ix_(self.latents_of[len(self.lower.sizes) + t], self.latents_of[node])] = 1
        return out

    def causes_in_order(self, arcs: Marks) -> list[tuple[int, list[int]]]:
        """Every latent at every level, causes first, with those that cause it along edges (G, G) between top nodes."""
        marks = self.causes(arcs)
        for latents in self.latents_of:
            marks[np.ix_(latents, latents)] = np.triu(np.ones((len(latents),) * 2, dtype=np.uint8), 1)
        order = topological_order(row_masks(marks.T), row_masks(marks))
        return [(j, np.flatnonzero(marks[:, j]).tolist()) for j in order]

    @cached_property
    def pattern(self) -> Pattern:
        """What the compiled core fits."""
        return self.pattern_along(self.arcs)

    def pattern_along(self, arcs: Marks) -> Pattern:
        """The same with these edges (G, G) between top nodes; effects of causes come first."""
        m = sum(self.lower.sizes)
        causes = self.causes(arcs)
        measures = np.zeros((self.n_latents, len(self.observed)), dtype=bool)
        measures[:m] = self.lower.mask[:, m:]
        mask = np.concatenate([causes.astype(bool), measures], axis=1)
        order = np.array(topological_order(row_masks(causes.T), row_masks(causes)), dtype=np.int64)
        source, target = mask[order].nonzero()
        return self._pattern(order[source], target)

    @property
    def n_parameters(self) -> int:
        """Free parameters less rotations."""
        return self.pattern.n_free - sum(k * (k - 1) // 2 for k in self.lower.sizes)

    @property
    def choices(self) -> list[tuple[list[int], int]]:
        """What was chosen: who measures what below. A graph over latents is not charged for having been chosen."""
        return self.lower.choices


@dataclass(frozen=True, eq=False)
class Raised(Fitted):
    """A model with latents above latents and its fit; ``effects`` (M, M + n) are of all latents."""

    model: RaisedModel
    full_cov: Floats  # (M, M) covariance of all latents

    @cached_property
    def latent_cov(self) -> Floats:
        """(m, m) covariance of the latents of the top nodes."""
        top = self.model.top_latents
        return np.ascontiguousarray(self.full_cov[np.ix_(top, top)])

    @property
    def all_cov(self) -> Floats:
        """(M, M) covariance of all latents."""
        return self.full_cov

    def start_along(self, arcs: Marks) -> tuple[Pattern, Floats]:
        """The model's pattern along a graph (G, G) over its top nodes, and starting values for it."""
        pattern = self.model.pattern_along(arcs)
        effects = np.empty_like(self.effects)
        effects_along(self.effects, self.full_cov, self.model.causes(arcs), effects)
        return pattern, np.concatenate([effects[pattern.source, pattern.target], self.noise])

    @property
    def flat(self) -> Fitted:
        """The fit with all latents side by side, for starts of other fits."""
        fitted = Fitted(
            self.model, self.value, self.effects, self.noise, self.finished, self.predicted, self.arcs
        )  # fmt: skip
        fitted.__dict__["latent_cov"] = self.full_cov  # what the cached property would look for
        return fitted


@dataclass(frozen=True)
class RaisedClass:
    """A model with latents above latents, the class of graphs over its top nodes, and its extended BIC."""

    near: Raised
    graph: FactorModel  # the top nodes with the class of edges between them
    value: float

    def cpdag(self, names: Sequence[str]) -> tuple[CPDAG, tuple[int, ...]]:
        """The class over variables in this order, and where each of its latents is in the fit.

        Latents come in the order of their first indicators, each level after the one below it.
        """
        model = self.near.model
        ordered, positions = model.lower.in_order_of(names)
        n_groups, m = len(model.lower.sizes), sum(model.lower.sizes)
        rank = {position: k for k, position in enumerate(positions)}
        first = [min(rank[latent] for latent in model.latents_of[g]) for g in range(n_groups)]
        for nodes in model.above:
            first.append(min(first[node] for node in nodes))
        traits = sorted(
            range(n_groups, n_groups + len(model.above)), key=lambda node: (model.heights[node], first[node])
        )
        positions = (*positions, *(model.latents_of[node][0] for node in traits))
        latents = latent_names(ordered.observed, model.n_latents)
        variables = Variables.of((*latents, *ordered.observed), latents)
        A = np.zeros((len(variables),) * 2, dtype=np.uint8)
        M = model.n_latents
        A[:m, M:] = ordered.measures
        A[:M, :M] = model.causes(self._arcs)[np.ix_(positions, positions)]
        groups = [tuple(latents[i] for i in group) for group in ordered.groups] + [(x,) for x in latents[m:]]
        return class_over_groups(DAG(variables, A), groups), positions

    @property
    def _arcs(self) -> Marks:
        """(G, G) a graph over the top nodes in which what measures a latent is below it."""
        model = self.near.model
        whole = model.causes(self.graph.between)
        m = sum(model.lower.sizes)
        # Items stand for all that is below a group: which latents have indicators is all that matters here.
        with_items = np.zeros((model.n_latents + m,) * 2, dtype=np.uint8)
        with_items[: model.n_latents, : model.n_latents] = whole
        with_items[np.arange(m), model.n_latents + np.arange(m)] = 1
        latent = np.arange(len(with_items)) < model.n_latents
        place = {latent: k for k, node in enumerate(model.top) for latent in model.latents_of[node]}
        between = self.graph.between
        down = [
            (place[a], place[b])
            for a, b in measuring_pairs(with_items, latent)
            if a in place and b in place and between[place[a], place[b]] and between[place[b], place[a]]
        ]
        marks = restricted(between, down)
        arcs = None if marks is None else consistent_extension(marks)
        if arcs is None:
            raise AssertionError("a class always has a member whose facets are below their traits")
        return arcs


def raised_fit(
    model: RaisedModel, effects: Floats, noise: Floats, value: float, predicted: float, arcs: Marks
) -> Raised:
    """A fit from the effects of all latents, whose noise has unit variance."""
    M = model.n_latents
    total = np.linalg.inv(np.eye(M) - effects[:, :M])
    return Raised(model, value, effects, noise, True, predicted, arcs, np.asarray(total.T @ total))


def extended(model: FactorModel, blocks: Sequence[Sequence[int]]) -> RaisedModel:
    """A common cause above each block of top nodes of a model, given by their place among them."""
    if not isinstance(model, RaisedModel):
        return RaisedModel.over(model, tuple(tuple(sorted(block)) for block in blocks))
    new = tuple(tuple(sorted(model.top[k] for k in block)) for block in blocks)
    return RaisedModel.over(model.lower, (*model.above, *new))
