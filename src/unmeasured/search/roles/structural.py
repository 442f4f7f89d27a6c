"""A measurement model with covariates and outcomes as further nodes of the graph over its groups.

Nodes of the graph are the groups of latents, then the covariates, then the outcomes. The latter two are observed as
they are: a node has the variable itself where a group has latents that indicators measure::

    nodes        G groups          q covariates     o outcomes
    variables    m latents         q observed       o observed        and n items, effects of the latents
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unmeasured.arrays import Floats, Marks
from unmeasured.data.sample import Sample
from unmeasured.graphs.bitsets import row_masks, topological_order
from unmeasured.knowledge.rules import Paths
from unmeasured.models.parameters import Pattern, pattern_of_effects
from unmeasured.models.solve import Check, Problem, never, solve, solve_with_restarts
from unmeasured.search.budget import BUDGET
from unmeasured.search.climb import Proposal, climb
from unmeasured.search.latent_graph.edges import Arcs, legal_changes, reaches_of
from unmeasured.search.model import FactorModel, Group, latent_names
from unmeasured.search.score import GroupBic, LikelihoodScore, Scorable


@dataclass(frozen=True, eq=False)
class StructuralModel:
    """Who measures what, covariates and outcomes, and direct effects of covariates on items (both by number)."""

    measurement: FactorModel
    covariates: tuple[str, ...]
    outcomes: tuple[str, ...]
    direct: tuple[tuple[int, int], ...] = ()

    def with_direct(self, covariate: int, item: int) -> StructuralModel:
        """The same with one more direct effect."""
        return replace(self, direct=(*self.direct, (covariate, item)))

    @property
    def n_groups(self) -> int:
        """How many groups of latents there are."""
        return len(self.measurement.sizes)

    @property
    def n_latents(self) -> int:
        """How many latents there are."""
        return sum(self.measurement.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Variables of each node."""
        return (*self.measurement.sizes, *(1 for _ in (*self.covariates, *self.outcomes)))

    @property
    def n_nodes(self) -> int:
        """Nodes of the graph."""
        return self.n_groups + len(self.covariates) + len(self.outcomes)

    @property
    def covariate_nodes(self) -> range:
        """Nodes that are covariates."""
        return range(self.n_groups, self.n_groups + len(self.covariates))

    @property
    def outcome_nodes(self) -> range:
        """Nodes that are outcomes."""
        return range(self.n_groups + len(self.covariates), self.n_nodes)

    @cached_property
    def observed(self) -> tuple[str, ...]:
        """Items, covariates, outcomes."""
        return (*self.measurement.observed, *self.covariates, *self.outcomes)

    @cached_property
    def variables_of(self) -> tuple[Group, ...]:
        """For each node its variables: latents are 0 to m - 1, then come the items, covariates and outcomes."""
        first = self.n_latents + len(self.measurement.observed)
        others = range(first, first + len(self.covariates) + len(self.outcomes))
        return (*self.measurement.groups, *((k,) for k in others))

    @cached_property
    def over_nodes(self) -> FactorModel:
        """For the search over graphs: a covariate or an outcome is a group that one variable measures."""
        others = range(self.n_groups, self.n_nodes)
        return FactorModel(self.observed, self.sizes, (*self.measurement.parents, *(1 << node for node in others)))

    @cached_property
    def by_roles(self) -> Paths:
        """What the roles say of the graph: covariates are all connected and uncaused, outcomes cause only outcomes."""
        required, forbidden = (np.zeros((self.n_nodes,) * 2, dtype=bool) for _ in range(2))
        given, ends = list(self.covariate_nodes), list(self.outcome_nodes)
        forbidden[:, given] = True
        forbidden[ends, : self.n_groups] = True
        required[np.ix_(given, given)] = np.triu(np.ones((len(given),) * 2, dtype=bool), 1)
        return Paths(required, forbidden & ~required)

    def full(self, paths: Paths) -> Marks:
        """(K, K) the graph with all edges that roles and knowledge allow."""
        order = [*self.covariate_nodes, *range(self.n_groups), *self.outcome_nodes]
        arcs = np.zeros((self.n_nodes,) * 2, dtype=np.uint8)
        for i, a in enumerate(order):
            arcs[a, order[i + 1 :]] = 1
        return paths.nearest(arcs)

    def pattern_along(self, arcs: Marks, more: Sequence[tuple[int, int]] = ()) -> Pattern:
        """What the compiled core fits for a graph (K, K); ``more``: further direct effects."""
        m, n = self.n_latents, len(self.measurement.observed)
        d = m + len(self.observed)
        # As a matrix of variables: those of a node cause those of another, latents their items.
        causes = np.zeros((d, d), dtype=bool)
        for a, b in np.argwhere(arcs):
            causes[np.ix_(self.variables_of[a], self.variables_of[b])] = True
        causes[:m, m : m + n] = self.measurement.measures
        for covariate, item in (*self.direct, *more):
            causes[m + n + covariate, m + item] = True
        order = topological_order(row_masks(arcs.T), row_masks(arcs))
        sources = np.array([v for node in order for v in self.variables_of[node]], dtype=np.int64)
        row, target = causes[sources].nonzero()
        names, seen = (*latent_names(self.observed, m), *self.observed), np.arange(m, d)
        return pattern_of_effects(names, seen, sources[row], target, seen)


@dataclass(frozen=True, eq=False)
class StructuralFit:
    """A fit with all edges that may be: where fits of other graphs begin, and what predicts them."""

    model: StructuralModel
    problem: Problem
    x: Floats
    discrepancy: float

    @classmethod
    def of(
        cls,
        model: StructuralModel,
        sample: Sample,
        paths: Paths,
        near: StructuralFit | None = None,
        n_threads: int | None = None,
        check: Check = never,
    ) -> StructuralFit:
        """Fit the model with all edges; from the data, or from the fit of one with fewer direct effects."""
        arcs = model.full(paths)
        problem = Problem(model.pattern_along(arcs), sample)
        if near is None:
            (solution,) = solve_with_restarts(
                [problem], n_restarts=BUDGET.n_restarts_if_trapped, n_threads=n_threads, check=check
            )
        else:
            start = near.start_within(problem.pattern, arcs)
            (solution,) = solve([problem], [start], n_threads=n_threads, check=check)
        return cls(model, problem, solution.x, max(solution.discrepancy, 0.0))

    @cached_property
    def _matrices(self) -> tuple[Floats, Floats]:
        return self.problem.pattern.matrices(np.append(self.x, 0.0))

    @cached_property
    def cov(self) -> Floats:
        """(d, d) implied covariance of all variables."""
        F, Omega = self._matrices
        E = np.linalg.inv(np.eye(len(F)) - F)
        return np.asarray(E.T @ Omega @ E)

    @property
    def loadings(self) -> Floats:
        """(m, n) effects of latents on items."""
        m, n = self.model.n_latents, len(self.model.measurement.observed)
        return np.ascontiguousarray(self._matrices[0][:m, m : m + n])

    @property
    def noise(self) -> Floats:
        """(n,) residual variances of the items."""
        m, n = self.model.n_latents, len(self.model.measurement.observed)
        return np.diag(self._matrices[1])[m : m + n].copy()

    @cached_property
    def latent_cov(self) -> Floats:
        """Covariance of the variables of all nodes: latents, covariates, outcomes."""
        index = [v for variables in self.model.variables_of for v in variables]
        return np.ascontiguousarray(self.cov[np.ix_(index, index)])

    def start_along(self, arcs: Marks) -> tuple[Pattern, Floats]:
        """The model's pattern along a graph (K, K) over its nodes, and starting values for it."""
        pattern = self.model.pattern_along(arcs)
        return pattern, self.start_within(pattern, arcs)

    def start_within(self, pattern: Pattern, arcs: Marks) -> Floats:
        """Starting values for this model or one with more direct effects: regressions in the covariance of this fit."""
        F, Omega = (matrix.copy() for matrix in self._matrices)
        variables, m = self.model.variables_of, self.model.n_latents
        unit = np.ones(len(F))
        between = np.zeros_like(F)
        for node, own in enumerate(variables):
            above = [v for a in np.flatnonzero(arcs[:, node]) for v in variables[a]]
            for v in own:
                slopes = np.linalg.solve(self.cov[np.ix_(above, above)], self.cov[above, v]) if above else np.zeros(0)
                between[above, v] = slopes
                left = max(self.cov[v, v] - float(slopes @ self.cov[above, v]), BUDGET.least_left * self.cov[v, v])
                if v < m:
                    unit[v] = np.sqrt(left)  # latents are measured in units of what their causes leave
                else:
                    Omega[v, v] = left
        nodes = [v for own in variables for v in own]
        F[np.ix_(nodes, nodes)] = between[np.ix_(nodes, nodes)]
        F = F * unit[:, None] / unit[None, :]
        x = np.empty(pattern.n_free)
        x[pattern.slot] = F[pattern.source, pattern.target]
        free = pattern.slot2 >= 0
        x[pattern.slot2[free]] = Omega[pattern.first[free], pattern.first[free]]
        return x

    def direct_tests(self, paths: Paths, candidates: Sequence[tuple[int, int]]) -> Floats:
        """Score tests of direct effects: by how much ``log det Sigma + tr(Sigma^-1 S)`` would fall with each."""
        arcs = self.model.full(paths)
        pattern = self.model.pattern_along(arcs, candidates)
        F, Omega = self._matrices
        x = np.empty(pattern.n_free)
        x[pattern.slot] = F[pattern.source, pattern.target]
        free = pattern.slot2 >= 0
        x[pattern.slot2[free]] = Omega[pattern.first[free], pattern.first[free]]
        _, slope, H = Problem(pattern, self.problem.sample).derivatives(x)
        m, n = self.model.n_latents, len(self.model.measurement.observed)
        at = {(int(s), int(t)): int(k) for s, t, k in zip(pattern.source, pattern.target, pattern.slot, strict=True)}
        new = np.array([at[m + n + covariate, m + item] for covariate, item in candidates], dtype=np.int64)
        old = np.setdiff1d(np.arange(len(H)), new)
        solved = np.linalg.lstsq(H[np.ix_(old, old)], H[np.ix_(old, new)], rcond=1e-12)[0]
        left = np.diag(H)[new] - np.einsum("ij,ij->j", H[np.ix_(old, new)], solved)
        known = left > BUDGET.no_information * np.diag(H)[new]
        return np.where(known, slope[new] ** 2 / (2.0 * np.where(known, left, 1.0)), 0.0)


class SummedBic(GroupBic):
    """BIC of one graph for several samples, each with parameters of its own; per sample of all."""

    def __init__(self, fits: Sequence[StructuralFit], penalty: float) -> None:
        sizes = fits[0].model.sizes
        super().__init__(fits[0].latent_cov, sizes, 1.0, penalty)
        self._parts = [GroupBic(fit.latent_cov, sizes, 1.0, penalty) for fit in fits]
        n = np.array([fit.problem.sample.n for fit in fits])
        self._weights = (n / n.sum()).tolist()

    def local(self, group: int, parents: int) -> float:
        """What a group with these parents contributes to the score, per sample."""
        return float(sum(w * part.local(group, parents) for w, part in zip(self._weights, self._parts, strict=True)))


class SummedLikelihood(LikelihoodScore):
    """The likelihood of several samples with one graph, each with parameters of its own; per sample of all."""

    def __init__(self, fits: Sequence[StructuralFit], n_threads: int | None, check: Check) -> None:
        samples = [fit.problem.sample for fit in fits]
        total = replace(samples[0], n=sum(sample.n for sample in samples))
        super().__init__(total, n_threads=n_threads, check=check)
        self._scores = [LikelihoodScore(fit.problem.sample, n_threads=n_threads, near=fit, check=check) for fit in fits]

    def __call__(self, models: Sequence[Scorable]) -> Floats:
        """Scores (B,) of many classes."""
        shares = [score.sample.n / self.sample.n for score in self._scores]
        values = np.sum([w * score(models) for w, score in zip(shares, self._scores, strict=True)], axis=0)
        self.n_fitted, self.n_cached = self._scores[0].n_fitted, self._scores[0].n_cached
        self.visited |= zip(models, values.tolist(), strict=True)
        return np.asarray(values)


def best_allowed(model: StructuralModel, predicted: GroupBic, paths: Paths) -> Marks:
    """(K, K) the best graph, if the variables of all nodes were observed: exactly with few nodes, else by climbing."""
    if model.n_nodes > BUDGET.exact_groups:
        return _climbed(predicted, paths)
    arcs = paths.required.astype(np.uint8)
    before = list(model.covariate_nodes)
    for layer in (list(range(model.n_groups)), list(model.outcome_nodes)):
        for child, parents in _best_layer(predicted, paths, before, layer):
            arcs[parents, child] = 1
        before += layer
    return arcs


def _best_layer(
    predicted: GroupBic, paths: Paths, before: Sequence[int], layer: Sequence[int]
) -> Iterable[tuple[int, list[int]]]:
    """The best parents of every node of a layer among earlier nodes and one another, without a cycle.

    Dynamic programming over the sets of the layer whose nodes come first (Silander and Myllymäki 2006).
    """
    local: dict[tuple[int, int], tuple[float, int]] = {}
    for v in layer:
        others = [u for u in layer if u != v]
        allowed = [u for u in (*before, *others) if not paths.forbidden[u, v]]
        needed = sum(1 << u for u in np.flatnonzero(paths.required[:, v]).tolist())
        best = _best_subsets(predicted, v, allowed, needed)
        for mask in range(1 << len(others)):
            first = sum(1 << u for i, u in enumerate(others) if mask >> i & 1)
            offered = sum(1 << i for i, u in enumerate(allowed) if u in before or first >> u & 1)
            local[v, first] = best[offered]
    value, last = {0: 0.0}, {0: -1}
    for mask in range(1, 1 << len(layer)):
        chosen = [v for i, v in enumerate(layer) if mask >> i & 1]
        bits = sum(1 << v for v in chosen)
        options = [(value[bits & ~(1 << v)] + local[v, bits & ~(1 << v)][0], -v) for v in chosen]
        value[bits], minus = max(options)
        last[bits] = -minus
    bits = sum(1 << v for v in layer)
    while bits:
        v = last[bits]
        bits &= ~(1 << v)
        mask = local[v, bits][1]
        yield v, [u for u in range(mask.bit_length()) if mask >> u & 1]


def _best_subsets(predicted: GroupBic, v: int, allowed: Sequence[int], needed: int) -> list[tuple[float, int]]:
    """For every set of allowed parents the best score of its subsets, and that subset as bits of nodes."""
    best: list[tuple[float, int]] = []
    for mask in range(1 << len(allowed)):
        parents = sum(1 << u for i, u in enumerate(allowed) if mask >> i & 1)
        own = predicted.local(v, parents) if parents & needed == needed else -np.inf
        entry = (own, parents)
        for i in range(len(allowed)):
            if mask >> i & 1 and best[mask & ~(1 << i)][0] >= entry[0]:
                entry = best[mask & ~(1 << i)]
        best.append(entry)
    return best


def _climbed(predicted: GroupBic, paths: Paths) -> Marks:
    """The graph where no edge added, deleted or reversed raises the predicted score."""

    def changed(here: Arcs) -> Proposal[Arcs]:
        there, (toggled, reversible) = here.marks.astype(bool), legal_changes(here)
        # Of each pair (a, b): a → b added or deleted, or b → a reversed.
        can_be_toggled = toggled & ~paths.required & (there | ~paths.forbidden)
        can_be_reversed = reversible.T & ~paths.required.T & ~paths.forbidden
        rises = np.where(can_be_toggled, here.rises, -np.inf)
        rises = np.where(can_be_reversed, here.rises + here.rises.T, rises)
        a, b = np.unravel_index(np.argmax(rises), rises.shape)
        marks = here.marks.copy()
        marks[a, b] ^= 1
        marks[b, a] = 0
        return Proposal("change an arc", _arcs(predicted, marks, here.value + float(rises[a, b])))

    first = _arcs(predicted, paths.required.astype(np.uint8), 0.0)
    return climb(first, [changed], least_rise=BUDGET.least_rise_per_sample).marks


def _arcs(predicted: GroupBic, marks: Marks, value: float) -> Arcs:
    return Arcs(marks, value, _rises(predicted, marks), reaches_of(marks))


def _rises(predicted: GroupBic, arcs: Marks) -> Floats:
    """(K, K) what the term of b gains if a becomes its parent, or is one no more."""
    rises = np.zeros(arcs.shape)
    for b, parents in enumerate(row_masks(arcs.T)):
        now = predicted.local(b, parents)
        rises[:, b] = [0.0 if a == b else predicted.local(b, parents ^ 1 << a) - now for a in range(len(arcs))]
    return rises
