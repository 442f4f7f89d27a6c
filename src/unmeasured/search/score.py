"""Scores a search asks: the maximum likelihood of a class, with a memory over classes already fitted."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from unmeasured.arrays import Floats, Ints, Marks
from unmeasured.data.sample import Sample
from unmeasured.graphs import CPDAG, DAG
from unmeasured.graphs.bitsets import bits, row_masks
from unmeasured.kernels import likelihood as kernels
from unmeasured.kernels.savings import as_array, best_graph, covariance_along, effects_along, log_dets_of
from unmeasured.models.dimension import jacobian_rank
from unmeasured.models.parameters import Pattern, pattern_of
from unmeasured.models.solve import Check, Problem, Solution, never, solve
from unmeasured.search.budget import BUDGET
from unmeasured.search.model import FactorModel


class Scorable(Hashable, Protocol):
    """Whatever stands for a class of graphs, equal for equal classes: a factor model, or a state of Algorithm 1."""

    @property
    def member(self) -> DAG:
        """A graph of the class."""
        ...

    @property
    def arcs(self) -> Marks:
        """(G, G) its edges between groups of latents."""
        ...


class Near(Protocol):
    """A fit that fits of other graphs over the same nodes begin from."""

    def start_along(self, arcs: Marks) -> tuple[Pattern, Floats]:
        """What to fit for a graph (G, G) over its groups, and where to start."""
        ...


class Start(NamedTuple):
    """Where a fit begins, and the score it will reach at least, if that is known."""

    x: Floats
    least: float = -math.inf


@dataclass(frozen=True, eq=False)
class Fitted:
    """A measurement model and its fit, on variables of unit variance."""

    model: FactorModel
    value: float  # its score
    effects: Floats  # (m, m + n) of each latent on all latents and observed variables
    noise: Floats  # (n,) of the observed variables
    finished: bool  # whether it is fitted to the end, or was out of the running before
    predicted: float  # by how much one more step of the fit would raise the score
    arcs: Marks  # (G, G) the graph over its groups that is predicted

    def may_reach(self, value: float, least: float) -> bool:
        """Whether going on with the fit, by ``least`` or what is predicted, could bring the score this far."""
        return not self.finished and self.value + max(BUDGET.reach * self.predicted, least) > value

    @property
    def loadings(self) -> Floats:
        """(m, n) effects on the observed variables."""
        return np.ascontiguousarray(self.effects[:, len(self.effects) :])

    @cached_property
    def latent_cov(self) -> Floats:
        """(m, m) covariance of the latents."""
        return latent_cov_of(self.effects)

    @property
    def all_cov(self) -> Floats:
        """(M, M) covariance of all latents: those of the groups, unless there are latents above them."""
        return self.latent_cov

    @cached_property
    def implied(self) -> Floats:
        """(n, n) implied covariance."""
        return np.asarray(self.loadings.T @ self.all_cov @ self.loadings + np.diag(self.noise))

    def start_along(self, arcs: Marks) -> tuple[Pattern, Floats]:
        """The model's pattern along a graph (G, G) over its groups, and starting values for it."""
        pattern, group_of = self.model.pattern_along(arcs), self.model.group_of
        effects = np.empty_like(self.effects)
        effects_along(self.effects, self.latent_cov, arcs[group_of[:, None], group_of], effects)
        return pattern, np.concatenate([effects[pattern.source, pattern.target], self.noise])


def latent_cov_of(effects: Floats) -> Floats:
    """(m, m) covariance of latents with these effects (m, >= m) on one another, in causal order."""
    Phi = np.empty((len(effects),) * 2)
    covariance_along(effects, Phi)
    return Phi


class LikelihoodScore:
    """Maximum log-likelihood per sample, less that of the saturated model: at most zero, larger is better.

    Scores are remembered by class; ``n_fitted`` and ``n_cached`` count for the trace.
    """

    def __init__(
        self, sample: Sample, *, n_threads: int | None = None, near: Near | None = None, check: Check = never
    ) -> None:
        """``near``: the fit of a measurement model with all groups connected, to start from if models keep to it."""
        self.check = check
        self.sample = sample
        self.n_threads = n_threads
        self.near = near
        self.n_fitted = 0
        self.n_cached = 0
        self.visited: dict[Scorable, float] = {}  # all classes fitted so far, and their scores

    def __call__(self, models: Sequence[Scorable]) -> Floats:
        """Scores (B,) of many classes, fitted in one batch; those visited before are remembered."""
        new = list(dict.fromkeys(model for model in models if model not in self.visited))
        self.n_fitted += len(new)
        self.n_cached += len(models) - len(new)
        problems, starts = self._problems(new)
        if math.isinf(self.sample.n):
            solutions = self._insist(problems, solve(problems, starts, n_threads=self.n_threads, check=self.check))
        else:
            # A thousandth of a unit is far below any tolerance. Overfull states end at bounds as a rule, and other
            # starts change them by less than that; insisting on each made the search many times slower.
            max_steps = 2 * BUDGET.most_steps if self.near is None else BUDGET.most_steps
            solutions = solve(
                problems, starts, gain=BUDGET.fit_gain, max_steps=max_steps, n_threads=self.n_threads, check=self.check
            )
        for model, solution in zip(new, solutions, strict=True):
            # Rounding may put a perfect fit a hair above the saturated model.
            self.visited[model] = -0.5 * max(solution.discrepancy, 0.0)
        return np.array([self.visited[model] for model in models])

    def _problems(self, models: Iterable[Scorable]) -> tuple[list[Problem], list[Floats]]:
        """What to fit, and where to start."""
        if self.near is None:
            problems = [Problem.of(pattern_of(model.member), self.sample) for model in models]
            return problems, [problem.unknown for problem in problems]
        begun = [self.near.start_along(model.arcs) for model in models]
        return [Problem(pattern, self.sample) for pattern, _ in begun], [start for _, start in begun]

    def _insist(self, problems: list[Problem], solutions: list[Solution]) -> list[Solution]:
        """Of a population a model fits perfectly or is wrong; before we call it wrong, other starts have a say."""
        rng = np.random.default_rng(len(problems))
        for _ in range(BUDGET.n_population_starts):
            doubtful = [b for b, s in enumerate(solutions) if s.discrepancy > BUDGET.fits_exactly]
            if not doubtful:
                break
            starts = [problems[b].other_start(rng) for b in doubtful]
            again = solve([problems[b] for b in doubtful], starts, n_threads=self.n_threads, check=self.check)
            for b, other in zip(doubtful, again, strict=True):
                if other.discrepancy < solutions[b].discrepancy:
                    solutions[b] = other
        return solutions


class BicScore:
    """Total log-likelihood less ``0.5 penalty log(N)`` for each generic dimension; larger is better.

    For measurement models: fitted with all groups connected, and credited with what the best latent graph will save
    (:class:`GroupBic`). The constant of the saturated model is left out.
    """

    def __init__(
        self, sample: Sample, *, penalty: float = 1.0, n_threads: int | None = None, check: Check = never
    ) -> None:
        self.check = check  # ends a batch where the time is over
        self.sample = sample
        self.penalty = penalty
        self.dimension_penalty = 0.5 * penalty * math.log(sample.n)
        self.n_threads = n_threads
        self.n_fitted = 0
        self.n_cached = 0
        self._memory: dict[Hashable, Fitted] = {}
        self._open: dict[Hashable, tuple[FactorModel, Solution]] = {}  # fits remembered that have not come to their end
        self._from_data: set[Hashable] = set()  # models that had a start from the data
        self._dimensions: dict[Hashable, int] = {}

    def __call__(self, models: Sequence[FactorModel], starts: Sequence[Start | None] | None = None) -> list[Fitted]:
        """Fit many models in one batch; those visited before are remembered. ``starts``: None, from the data.

        A start near by may lead into a trap that a start from the data avoids, and the other way round. So a model
        first visited with a start given is fitted again when it is visited without one, or with one that reaches more
        than is remembered, and the better fit counts.
        """
        asked = {m.key: (m, x) for m, x in zip(models, starts or [None] * len(models), strict=True)}
        new = [ask for key, ask in asked.items() if self._is_new(key, ask[1])]
        self.n_fitted += len(new)
        self.n_cached += len(models) - len(new)
        self._fit(new)
        # A few steps tell which models are in the running; only those are fitted to the end.
        ranked = sorted(asked, key=lambda key: -self._memory[key].value)
        best = self._memory[ranked[0]].value if ranked else 0.0
        reach = BUDGET.least_reach * max(self.sample.n / 1000.0, 1.0)  # likelihoods are sums over samples
        open_still = [key for key in ranked if self._memory[key].may_reach(best, reach)]
        self._go_on([self._open[key] for key in open_still[: BUDGET.n_in_the_running]])
        return [self._memory[model.key] for model in models]

    @property
    def visited(self) -> list[Fitted]:
        """All models fitted so far."""
        return list(self._memory.values())

    def insist(self, models: Sequence[FactorModel]) -> list[Fitted]:
        """Fit models again from a few other starts each; the best fit of each is remembered, and returned."""
        rng = np.random.default_rng(len(self.sample.names))  # the draws do not depend on what was asked before
        problems = [Problem(model.pattern, self.sample) for model in models for _ in range(BUDGET.n_other_starts)]
        tried = [model for model in models for _ in range(BUDGET.n_other_starts)]
        self.n_fitted += len(tried)
        solutions = self._solve(tried, [problem.other_start(rng) for problem in problems], BUDGET.most_steps)
        for model, solution in zip(tried, solutions, strict=True):
            fitted = self._fitted(model, solution, True)
            if fitted.value > self._memory[model.key].value + BUDGET.trapped:
                self._memory[model.key] = fitted
                self._open.pop(model.key, None)
        return [self._memory[model.key] for model in models]

    def _is_new(self, key: Hashable, start: Start | None) -> bool:
        if key not in self._memory:
            return True
        return key not in self._from_data if start is None else start.least > self._memory[key].value + BUDGET.trapped

    def _fit(self, asks: Sequence[tuple[FactorModel, Start | None]]) -> None:
        """Begin to fit, and remember where that is better than what is remembered."""
        first = [np.full(model.pattern.n_free, np.nan) if start is None else start.x for model, start in asks]
        for (model, start), solution in zip(
            asks, self._solve([m for m, _ in asks], first, BUDGET.quick_steps), strict=True
        ):
            finished = solution.end != kernels.STEP_LIMIT
            fitted = self._fitted(model, solution, finished)
            known = self._memory.get(model.key)
            if start is None:
                self._from_data.add(model.key)
            if known is None or known.value < fitted.value:
                self._memory[model.key] = fitted
                if not finished:
                    self._open[model.key] = model, solution

    def _go_on(self, fits: Sequence[tuple[FactorModel, Solution]]) -> None:
        """Fit to the end."""
        solutions = self._solve(
            [model for model, _ in fits], [start for _, start in fits], BUDGET.most_steps - BUDGET.quick_steps
        )
        for (model, _), solution in zip(fits, solutions, strict=True):
            self._memory[model.key] = self._fitted(model, solution, True)
            del self._open[model.key]

    def _solve(
        self, models: Sequence[FactorModel], starts: Sequence[Floats | Solution], max_steps: int
    ) -> list[Solution]:
        problems = [Problem(model.pattern, self.sample) for model in models]
        return solve(
            problems, starts, gain=BUDGET.fit_gain, max_steps=max_steps, n_threads=self.n_threads, check=self.check
        )

    def value_at(self, there: Fitted) -> float:
        """The score of a model with parameters that are not those of a fit."""
        implied, sample = there.implied, self.sample
        objective = np.linalg.slogdet(implied)[1] + np.trace(np.linalg.solve(implied, sample.corr))
        discrepancy = float(objective - sample.log_det_corr - len(sample.names))
        return self._score_of(there.model, there.effects, discrepancy)[0]

    def _fitted(self, model: FactorModel, solution: Solution, finished: bool) -> Fitted:
        n = len(model.observed)
        effects = np.zeros(model.mask.shape)
        effects[model.mask] = solution.x[:-n]
        predicted = 0.5 * self.sample.n * solution.predicted_gain
        score, arcs, Phi = self._score_of(model, effects, solution.discrepancy)
        fitted = Fitted(model, score, effects, solution.x[-n:], finished, predicted, arcs)
        fitted.__dict__["latent_cov"] = Phi  # what the cached property would compute again
        return fitted

    def _score_of(self, model: FactorModel, effects: Floats, discrepancy: float) -> tuple[float, Marks, Floats]:
        """The score, with the graph over the groups that is predicted and what that saves; and that graph, and Phi."""
        value = -0.5 * self.sample.n * max(discrepancy, 0.0)
        value -= self.dimension_penalty * self.dimension(model) + self.prior(model)
        Phi = latent_cov_of(effects)
        arcs, saved = GroupBic(Phi, model.sizes, self.sample.n, self.dimension_penalty).predicted()
        return value + saved, arcs, Phi

    def prior(self, model: FactorModel) -> float:
        """What it takes to say who measures what (:func:`prior`)."""
        return self.penalty * sum(prior(n_parents, n_groups) for n_parents, n_groups in model.choices)

    def priors(self, n_parents: Ints, n_groups: int) -> Floats:
        """The same for variables with so many groups as parents."""
        first, further = priors(len(self.sample.names), n_groups)
        return np.asarray(self.penalty * ((n_parents > 0) * first + np.maximum(n_parents - 1, 0) * further))

    def edge_prior(self, n_groups: int) -> float:
        """What an edge between latents costs besides its paths, where there are many groups.

        Of all pairs of latents some seem connected by chance, however many rows there are: of 60 latents a dozen pairs
        at BIC's penalty, of 200 more than a hundred. So an edge is charged for being one of ``G (G - 1) / 2``, of which
        about G are there (extended BIC; Foygel and Drton 2010).
        """
        if n_groups <= BUDGET.exact_groups:
            return 0.0
        return self.penalty * math.log(0.5 * (n_groups - 1))

    def dimension(self, model: FactorModel) -> int:
        """Generic dimension; remembered by what it depends on, since it takes longer than a fit."""
        if model.is_valid and (len(model.sizes) > 1 or len(model.observed) > 2 * model.sizes[0]):
            # Not deficient. Leave out a pure child i of a group of k: among the other 2k - 1 and one variable outside
            # the group that is correlated with it there are disjoint A, B of k each with Cov(A, B) invertible, and
            # det Cov(A + i, B + i) = 0 is linear in the noise of i once that is taken off its variance, so the noise
            # is determined (Anderson and Rubin 1956), and with it all else but the basis of each group.
            return model.n_parameters
        key = model.signature
        if key not in self._dimensions:
            self._dimensions[key] = jacobian_rank(model.pattern)
        return self._dimensions[key]


class GroupBic:
    """BIC of a graph over groups of latents, as if these had been observed with the covariance they are fitted with.

    A sum over groups: the log-likelihood of a group given its parents, less a penalty for each of its paths; constants
    are left out. Sets of groups are bits of a number. Variables that were observed are groups of one.

    Parameters
    ----------
    Phi : (m, m)
        Covariance of the latents, group by group.
    sizes : tuple of int
        Latents of each group.
    n_samples, penalty : float
        How often the log-likelihood per sample counts, and what a path costs; 1 and the penalty per sample give the
        score per sample.
    edge_prior : float
        What an edge between groups costs besides its paths (:meth:`BicScore.edge_prior`); not for :meth:`exact`.

    Examples
    --------
    >>> chain = 0.8 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    >>> arcs, _ = GroupBic(chain, (1, 1, 1, 1), 1000.0, 3.45).exact()
    >>> np.argwhere(np.triu(arcs | arcs.T)).tolist()
    [[0, 1], [1, 2], [2, 3]]
    >>> arcs, saved = GroupBic(np.eye(3), (1, 1, 1), 100.0, 2.0).predicted()  # nothing is connected: all paths can go
    >>> int(arcs.sum()), round(saved, 6)
    (0, 6.0)
    """

    def __init__(
        self, Phi: Floats, sizes: tuple[int, ...], n_samples: float, penalty: float, edge_prior: float = 0.0
    ) -> None:
        self.n_groups = len(sizes)
        self._Phi, self._sizes = Phi, sizes
        self._n_samples, self._penalty, self._edge_prior = n_samples, penalty, edge_prior
        self._is_exact = len(sizes) <= BUDGET.exact_groups
        self._known: dict[int, float] = {}
        self._local: dict[tuple[int, int], float] = {}

    def local(self, group: int, parents: int) -> float:
        """What a group with these parents contributes; remembered."""
        if (group, parents) not in self._local:
            n_paths = self._sizes[group] * sum(self._sizes[g] for g in bits(parents))
            explained = self._log_det(parents | 1 << group) - self._log_det(parents)
            cost = self._penalty * n_paths + self._edge_prior * parents.bit_count()
            self._local[group, parents] = -0.5 * self._n_samples * explained - cost
        return self._local[group, parents]

    def additions(self, group: int, parents: int) -> Floats:
        """(G,) by how much what a group contributes rises if another becomes its parent too; zero for its parents.

        All at once: given the parents, the covariance of the group with each other one says what that explains.
        """
        given = [i for g in bits(parents) for i in self._columns[g]]
        own = list(self._columns[group])
        left = self._Phi
        if given:
            cross = self._Phi[given]
            left = self._Phi - cross.T @ np.linalg.solve(self._Phi[np.ix_(given, given)], cross)
        within = _inverse(left[np.ix_(own, own)])
        explained = np.zeros(self.n_groups)
        for size, (groups, at) in self._by_size.items():
            C = left[at[:, :, None], own]  # (c, k, own)
            V = left[at[:, :, None], at[:, None, :]]
            if size == 1:
                part = np.einsum("ci,ij,cj->c", C[:, 0], within, C[:, 0]) / np.maximum(V[:, 0, 0], 1e-300)
                explained[groups] = np.log(np.maximum(1.0 - part, 1e-12))
            else:
                V += 1e-12 * np.eye(size)  # parents leave nothing of themselves
                part = np.linalg.solve(V, C @ within @ C.transpose(0, 2, 1))
                explained[groups] = np.log(np.maximum(np.linalg.det(np.eye(size) - part), 1e-12))
        cost = self._penalty * len(own) * np.array(self._sizes) + self._edge_prior
        rises = -0.5 * self._n_samples * explained - cost
        rises[[group, *bits(parents)]] = 0.0
        return rises

    def removals(self, group: int, parents: int) -> Floats:
        """(G,) by how much what a group contributes rises if a parent is one no more; zero for others.

        All at once, as :meth:`additions`: the precision of the group and its parents has what each explains alone.
        """
        rises = np.zeros(self.n_groups)
        those = list(bits(parents))
        if not those:
            return rises
        given = [i for g in those for i in self._columns[g]]
        own = list(self._columns[group])
        both = [*given, *own]
        P = _inverse(self._Phi[np.ix_(both, both)])
        within = _inverse(P[len(given) :, len(given) :])
        sizes = np.array([self._sizes[g] for g in those])
        begin = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        for size in np.unique(sizes).tolist():
            of = np.flatnonzero(sizes == size)
            at = begin[of][:, None] + np.arange(size)
            cross, alone = P[at, len(given) :], P[at[:, :, None], at[:, None, :]]  # (c, size, own), (c, size, size)
            left = alone - cross @ within @ cross.transpose(0, 2, 1)
            explained = np.linalg.slogdet(left)[1] - np.linalg.slogdet(alone)[1]
            cost = self._penalty * len(own) * size + self._edge_prior
            rises[np.array(those)[of]] = 0.5 * self._n_samples * explained + cost
        return rises

    def from_share(self, share: float) -> GroupBic:
        """The scores if the covariance were known from a part of the rows only."""
        return GroupBic(self._Phi, self._sizes, share * self._n_samples, self._penalty, self._edge_prior)

    def with_covariance(self, Phi: Floats) -> GroupBic:
        """The scores with another covariance of the latents."""
        return GroupBic(Phi, self._sizes, self._n_samples, self._penalty, self._edge_prior)

    @property
    def terms(self) -> tuple[Floats, Ints, float, float, float]:
        """What compiled climbs (:mod:`unmeasured.kernels.arcs`) read."""
        first = as_array((0, *accumulate(self._sizes)))
        return np.ascontiguousarray(self._Phi), first, float(self._n_samples), self._penalty, self._edge_prior

    def total(self, arcs: Marks) -> float:
        """The score of a graph (G, G)."""
        return sum(self.local(g, parents) for g, parents in enumerate(row_masks(arcs.T)))

    def exact(self) -> tuple[Marks, float]:
        """The best graph (G, G) and its score; time and memory double with every group."""
        arcs = np.zeros((self.n_groups,) * 2, dtype=np.uint8)
        return arcs, float(best_graph(self._log_dets, as_array(self._sizes), self._n_samples, self._penalty, arcs))

    def predicted(self) -> tuple[Marks, float]:
        """The graph (G, G) that will do, and by how much the score rises with it above that of all edges.

        With few groups the best there is, with many that of one look at each pair; never below zero.
        """
        if not self._is_exact:
            return self.rough()
        arcs, best = self.exact()
        n_paths = (sum(self._sizes) ** 2 - sum([size * size for size in self._sizes])) // 2
        return arcs, float(best + 0.5 * self._n_samples * self._log_dets[-1] + self._penalty * n_paths)

    def rough(self) -> tuple[Marks, float]:
        """The same from one look at each pair, in the order of the groups: an edge goes if it costs less than it saves.

        The precision of the groups up to g gives all looks at g: the partial covariance of two of them is the inverse
        of their block. All these precisions are sums over rows of one inverse of a triangular root.
        """
        arcs = np.zeros((self.n_groups,) * 2, dtype=np.uint8)
        ends = np.cumsum([0, *self._sizes])
        total = 0.0
        U = solve_triangular(covariance_root(self._Phi), np.eye(len(self._Phi)), lower=True, check_finite=False)
        # (m, c, size, size) for each size: the precisions of groups among the latents up to each one.
        within_groups = {
            size: np.cumsum(U[:, at][:, :, :, None] * U[:, at][:, :, None, :], axis=0)
            for size, (_, at) in self._by_size.items()
        }
        for g in range(1, self.n_groups):
            own = slice(ends[g], ends[g + 1])
            root = U[own, own]
            # Of the latents up to g only its own rows have entries in its columns.
            within = np.linalg.inv(root.T @ root)
            for size, (groups, columns) in self._by_size.items():
                before = groups[groups < g]
                if not len(before):
                    continue
                at = columns[: len(before)]
                cross = U[own][:, at].transpose(1, 2, 0) @ root  # (c, size, own)
                alone = within_groups[size][ends[g + 1] - 1, : len(before)]
                shared = np.linalg.solve(alone, cross @ within @ cross.transpose(0, 2, 1))
                apart = -np.log(np.maximum(np.linalg.det(np.eye(size) - shared), 1e-300))
                saved = self._penalty * self._sizes[g] * size - 0.5 * self._n_samples * apart
                arcs[before, g] = saved <= 0.0
                total += float(np.maximum(saved, 0.0).sum())
        return arcs, total

    @cached_property
    def _log_dets(self) -> Floats:
        """(2^G,) log determinants of the covariance of every set of groups."""
        return log_dets_of(self._Phi, self._sizes)

    @cached_property
    def _by_size(self) -> dict[int, tuple[Ints, Ints]]:
        """For each size, the groups (c,) of that size and their latents (c, size)."""
        sizes, first = np.array(self._sizes), np.cumsum([0, *self._sizes])[:-1]
        return {
            int(k): (np.flatnonzero(sizes == k), first[sizes == k][:, None] + np.arange(k)) for k in np.unique(sizes)
        }

    @cached_property
    def _columns(self) -> list[range]:
        """The latents of each group."""
        return [range(a, b) for a, b in pairwise(np.cumsum([0, *self._sizes]).tolist())]

    def _log_det(self, groups: int) -> float:
        if self._is_exact:
            return float(self._log_dets[groups])
        if groups not in self._known:
            of = [i for g in bits(groups) for i in self._columns[g]]
            self._known[groups] = float(np.linalg.slogdet(self._Phi[np.ix_(of, of)])[1]) if of else 0.0
        return self._known[groups]


def _inverse(A: Floats) -> Floats:
    """The inverse of a covariance, without the directions of which nothing is left."""
    try:
        return np.asarray(np.linalg.inv(A))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(A, hermitian=True))


def covariance_root(A: Floats) -> Floats:
    """A triangular root of a covariance, of which a direction may have nothing left but rounding."""
    try:
        return np.asarray(np.linalg.cholesky(A), dtype=float)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(A)
        return np.asarray(
            np.linalg.cholesky((vectors * np.maximum(values, 1e-9 * values[-1])) @ vectors.T), dtype=float
        )


def prior(n_parents: Sequence[int], n_groups: int) -> float:
    """The logarithm of the number of choices in saying who measures what, for variables with so many groups as parents.

    The best of 2^17 ways to split a factor in two gains more than one dimension costs, by chance. So every variable
    pays for the choice of its group, and every group beyond its first one for being one of all the loadings there
    might be (extended BIC; Chen and Chen 2008).

    >>> prior([1, 1, 1], 1)  # one group: nothing to choose
    0.0
    """
    first, further = priors(len(n_parents), n_groups)
    n_caused = len(n_parents) - n_parents.count(0)
    return first * n_caused + further * (sum(n_parents) - n_caused)


def prior_of(graph: DAG | CPDAG) -> float:
    """The same for a graph: its groups, and how many of them cause each observed variable."""
    member = graph.member() if isinstance(graph, CPDAG) else graph
    group_of = {latent: g for g, group in enumerate(graph.latent_groups) for latent in group}
    n_parents = [len({group_of[x] for x in member.parents(name) if x in group_of}) for name in member.observed]
    return prior(n_parents, len(graph.latent_groups))


@lru_cache(maxsize=256)
def priors(n_observed: int, n_groups: int) -> tuple[float, float]:
    """Of a first group, and of each further one."""
    if not n_groups:
        return 0.0, 0.0
    further = BUDGET.further_choice if n_groups <= BUDGET.many_groups else BUDGET.further_choice_of_many
    return BUDGET.first_choice * math.log(n_groups), further * math.log(n_observed * n_groups)


def default_delta(n_samples: float) -> float:
    """The paper's tolerance, ``0.25 log(N) / N`` on the log-likelihood per sample.

    For a population it is zero, and what rounding leaves of zero: 1e-9.

    >>> round(default_delta(1000), 6)
    0.001727
    """
    return BUDGET.fits_exactly if math.isinf(n_samples) else 0.25 * math.log(n_samples) / n_samples
