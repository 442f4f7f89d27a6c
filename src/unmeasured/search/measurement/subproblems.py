"""Measurement models of many variables, solved in pieces and put together.

::

    clusters → place → pieces → place → pieces → …
    │          │       │
    │          │       └ a group and its nearest ones, with the variables that are theirs alone: a small problem,
    │          │         and the moves of :mod:`unmeasured.search.measurement.refine` over it
    │          └ other parents for every variable, among all groups, in closed form
    └ sets of variables whose rank constraint chance can explain

Leaving variables out of a measurement model leaves the rest of it as it was, so what a piece finds of its groups holds
for the whole; only where its latents may touch others has to be looked at again, which *place* does. The whole is
fitted by :mod:`unmeasured.models.factors`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from unmeasured.arrays import Bools, Floats, Marks
from unmeasured.data.rows import frozen
from unmeasured.errors import Stopped
from unmeasured.models.factors import Factors, fit_factors
from unmeasured.models.indices import rmsea
from unmeasured.search.budget import BUDGET
from unmeasured.search.climb import Log, Proposal, climb
from unmeasured.search.clock import Clock
from unmeasured.search.latent_graph.edges import climbed_graph
from unmeasured.search.latent_graph.latent_likelihood import LatentLikelihood, least_noise
from unmeasured.search.measurement.local_clusters import LocalRanks, clusters_alone
from unmeasured.search.measurement.proposals import Cluster, RankGains
from unmeasured.search.measurement.refine import Guidance, Refinement
from unmeasured.search.measurement.relocate import stepwise_relocations
from unmeasured.search.model import FactorModel
from unmeasured.search.score import BicScore, Fitted, GroupBic, prior, priors
from unmeasured.search.trace import Recorder, Step

# Added to the variances of latents, as a part of them, where these may be functions of one another.
_RIDGE = 1e-6
# The same where a latent is a function of others but for the rounding of a fit: as little as will do.
_RIDGES = (0.0, _RIDGE, 1e-4, 1e-2)


@dataclass(frozen=True, eq=False)
class Placed:
    """A measurement model of all variables, its fit and its score."""

    model: FactorModel
    factors: Factors
    value: float
    value_of_fit: float = 0.0  # the log-likelihood alone, less that of the saturated model


@dataclass
class Pieces:
    """What working on pieces needs: the score of the whole, and which pieces are done."""

    score: BicScore
    guidance: Guidance
    steps: list[Step]
    clock: Clock
    best: Placed | None = None
    n_rounds: int = 0
    n_pieces: int = 0
    n_fitted: int = 0  # by EM, for the trace
    n_cached: int = 0
    done: set[object] = field(default_factory=set)
    is_credited: bool = False  # whether the score of the whole is credited with what the latent graph will save

    def __post_init__(self) -> None:
        self._recorder = Recorder(self.steps, self)
        self._connected: dict[object, float] = {}
        self._arcs: dict[object, Marks] = {}

    @property
    def _is_large(self) -> bool:
        return len(self.score.sample.names) > BUDGET.most_at_once

    @property
    def _is_very_large(self) -> bool:
        return len(self.score.sample.names) > BUDGET.most_one_by_one

    @cached_property
    def _ranks(self) -> LocalRanks:
        return LocalRanks(self.score.sample, self.check)

    @cached_property
    def _least_noise(self) -> Floats | float:
        return least_noise(self.score.sample)

    @cached_property
    def _unit(self) -> Floats:
        """(n,) what variables are multiplied by for closed forms, which take no residual variance below a thousandth.

        Of many variables some are functions of the others but for less than that, and all parents would look alike.
        """
        part = self.score.sample.unexplained
        most = BUDGET.unexplained_in_closed_form if self._is_large else 0.0
        return np.sqrt(np.maximum(most / part, 1.0))

    def search(self) -> Placed | None:
        """The best measurement model found; None where nothing clusters."""
        for model in self.starts():
            self._keep(self._regrouped_at_once(self.place(self.fitted(model))))
            if self.best is not None and self._rmsea(self.best) < BUDGET.strict_rmsea:
                break
        while (before := self.best) is not None:
            # A piece pays less for the choice among its few groups: what it likes better need not be so in the whole.
            self._keep(self._regrouped_at_once(self.place(self.work(before))), BUDGET.least_rise_by_em)
            if self.best is before and self._is_very_large:
                self._keep(self.regrouped(before), BUDGET.least_rise_by_em)
            if self.best is before:
                break
        return self.best

    def _keep(self, placed: Placed, least_rise: float = 0.0) -> None:
        """The best of all is kept."""
        if self.best is None or self._is_better(placed, self.best, least_rise):
            self.best = placed

    def _rmsea(self, placed: Placed) -> float:
        n = len(self.score.sample.names)
        return rmsea(-2.0 * placed.value_of_fit, n * (n + 1) // 2 - placed.model.n_parameters, self.score.sample.n)

    def starts(self) -> Iterator[FactorModel]:
        """What closed forms find, by strict tests and lenient ones: of real data no constraint holds exactly."""
        names, most = self.score.sample.names, self.guidance.max_group_size
        yield from self.guidance.starts
        seen = {model.key for model in self.guidance.starts}
        for rate in BUDGET.chance_rates:
            clusters: list[Cluster] = []
            try:
                for cluster in self._ranks.clusters(range(len(names)), rate, most):
                    clusters.append(cluster)  # noqa: PERF402 (those found before the time is over count)
            except Stopped:
                # Before there is any other model, the clusters found so far are one.
                if self.best is None and clusters:
                    self.fitted(clusters_alone(names, clusters))
                raise
            if clusters:
                model = clusters_alone(names, clusters)
                if model.key not in seen:
                    seen.add(model.key)
                    yield model

    def _regrouped_at_once(self, found: Placed) -> Placed:
        """The same, but not with very many variables: there pieces first put together what clusters tore apart.

        Until then the graph over the latents is dense, and no group that is offered would be better.
        """
        return found if self._is_very_large else self.regrouped(found)

    def regrouped(self, found: Placed) -> Placed:
        """Variables that no group wants, or that seem to measure many, get groups of their own where that is better."""
        orphans = [j for j, mask in enumerate(found.model.parents) if not mask]
        clusters = list(self._ranks.clusters(orphans, BUDGET.chance_rates[0], self.guidance.max_group_size))
        found = self._with_groups(found, clusters) if clusters else found
        if self.is_credited:
            children = self._common_children(found.model)
            together = [children] if self._is_very_large and children else [[cluster] for cluster in children]
            for offer in together:
                found = self._offered(found, offer)
        return found

    def _offered(self, found: Placed, clusters: Sequence[Cluster]) -> Placed:
        """The model with all clusters as groups of their own, or where that is not better each half of them in turn.

        To compare two models takes a graph over all latents, seconds where there are hundreds. Most offers are good,
        and a group that others made look good is merged again in its piece.
        """
        other = self._with_groups(found, clusters)
        if other is not found or len(clusters) == 1:
            return other
        half = len(clusters) // 2
        return self._offered(self._offered(found, clusters[:half]), clusters[half:])

    def _with_groups(self, found: Placed, clusters: Sequence[Cluster]) -> Placed:
        """The model with clusters as groups of their own, placed anew; where that is not better, as it was."""
        sizes, parents = list(found.model.sizes), list(found.model.parents)
        for k, items in clusters:
            for j in items:
                parents[j] = 1 << len(sizes)
            sizes.append(k)
        model = FactorModel(found.model.observed, tuple(sizes), tuple(parents))
        if not model.is_valid:  # an offer taken before has moved some of these variables
            return found
        near = widened_factors(found.factors, first_factors(self.score.sample.corr, model)) if self._is_large else None
        other = self.place(self.fitted(model, near))
        return other if self._is_better(other, found) else found

    def _common_children(self, model: FactorModel) -> list[Cluster]:
        """Variables that share most of their parents, with fewer latents than these have.

        A latent whose indicators were not found to belong together is missed by all groups that cause it, and its
        indicators are taken for children of these.
        """
        size_of = [sum(k for g, k in enumerate(model.sizes) if mask >> g & 1) for mask in model.parents]
        left = [j for j, mask in enumerate(model.parents) if mask.bit_count() > 1]
        clusters: list[Cluster] = []
        while left:
            first = max(left, key=size_of.__getitem__)
            mask = model.parents[first]
            alike = [
                j for j in left if 2 * (model.parents[j] & mask).bit_count() >= (model.parents[j] | mask).bit_count()
            ]
            left = [j for j in left if j not in alike]
            most = min(size_of[first] - 1, len(alike) // 2, self.guidance.max_group_size)
            for k in range(1, most + 1):
                if self._ranks.gains(np.array([alike]), k, BUDGET.chance_rates[0])[0] > 0.0:
                    clusters.append((k, tuple(alike)))
                    break
        return clusters

    # The whole --------------------------------------------------------------------------------------------

    def fitted(self, model: FactorModel, near: Factors | None = None) -> Placed:
        """The model fitted to all variables; the best of all is kept, also where the time is over during its fit."""
        sample = self.score.sample
        m = sum(model.sizes)
        loads = model.mask[:, m:]
        start = first_factors(sample.corr, model) if near is None else near
        factors, objective = fit_factors(
            sample.corr, loads, start, tolerance=BUDGET.least_rise_by_em / sample.n, check=self.check,
            is_accelerated=self._is_large, least_noise=self._least_noise,
        )  # fmt: skip
        fit = -0.5 * sample.n * (objective - sample.log_det_corr - len(sample.names))
        n_parents = [mask.bit_count() for mask in model.parents]
        value = fit - self.score.dimension_penalty * model.n_parameters
        value -= self.score.penalty * prior(n_parents, len(model.sizes))
        self.n_fitted += 1
        placed = Placed(model, factors, value, fit)
        # On the way, models with other groups wait until their variables are placed.
        if self.best is None or not self.is_credited or sorted(model.sizes) == sorted(self.best.model.sizes):
            self._keep(placed)
        return placed

    def _is_better(self, one: Placed, other: Placed, least_rise: float = 0.0) -> bool:
        """Whether a model has the better score.

        With all groups connected a latent pays for a path to every other one, hundreds of units where there are
        hundreds, and none that is found in a piece would be worth that. So models whose groups differ in number or size
        are compared with the latent graphs that closed forms predict for them.
        """
        if not self.is_credited or sorted(one.model.sizes) == sorted(other.model.sizes):
            return one.value > other.value + least_rise
        known = self.connected_value(other)
        return self.connected_value(one, other.model) > known + least_rise

    def connected_value(self, placed: Placed, like: FactorModel | None = None) -> float:
        """The score with the latent graph that closed forms predict, loadings left as they are; remembered.

        With many variables the graph is climbed to from that of a model ``like`` this one, whose groups come first.
        """
        key = placed.model.key
        if key not in self._connected:
            score, model, near = self.score, placed.model, in_order(placed)
            per_edge = score.edge_prior(len(model.sizes))
            # Groups may have a latent too many: what is left of it given the others is next to nothing. Latents of unit
            # variance: in units of what is left such a one would be a million times larger than others.
            unit = np.sqrt(np.diag(near.latent_cov))
            cov = near.latent_cov / np.outer(unit, unit) + _RIDGE * np.eye(len(unit))
            gains = GroupBic(cov, model.sizes, score.sample.n, score.dimension_penalty, per_edge)
            start = None
            if self._is_large and like is not None and model.sizes[: len(like.sizes)] == like.sizes:
                n_more = len(model.sizes) - len(like.sizes)
                start = np.pad(self._arcs[like.key], (0, n_more))
            arcs = self._arcs[key] = climbed_graph(gains, start, check=self.check)
            connected = model.along(arcs)
            graphs = LatentLikelihood(score.sample, near, self.check, BUDGET.least_rise_by_em)
            (likelihood,) = graphs([connected])
            saved = score.dimension_penalty * (model.n_paths - connected.n_paths)
            lost = placed.value_of_fit - score.sample.n * float(likelihood)
            self._connected[key] = placed.value + saved - lost - per_edge * int(arcs.sum())
        return self._connected[key]

    def check(self) -> None:
        """Raise Stopped where the time for the measurement model is over; a first model gets a little more."""
        if self.best is None:
            self.clock.check_first_model()
        else:
            self.clock.check_measuring()

    def place(self, found: Placed) -> Placed:
        """Other parents for the variables until that improves nothing."""
        log = Log(self._recorder, "Whole model")
        return climb(found, [self.replaced_parents], least_rise=BUDGET.least_rise_by_em, check=self.check, log=log)

    def replaced_parents(self, found: Placed) -> Proposal[Placed] | None:
        """The parents that closed forms like best, for all variables that gain; for fewer where that is too many."""
        best, rise = self.other_parents(found)
        order = [int(j) for j in np.argsort(-rise) if rise[j] > BUDGET.least_rise_by_em]
        better = self.moved(found, best, order)
        while better is None and len(order) > 1:  # together they gain less than predicted
            order = order[: len(order) // 2]
            better = self.moved(found, best, order)
        return better

    def other_parents(self, found: Placed) -> tuple[Bools, Floats]:
        """(n, G) the parents closed forms like best, and (n,) by how much they would raise the score."""
        model, factors, score = found.model, found.factors, self.score
        n, G = len(model.observed), len(model.sizes)
        current = np.array([[mask >> g & 1 for g in range(G)] for mask in model.parents], dtype=bool)
        penalties = np.array([score.dimension_penalty, *(score.penalty * prior for prior in priors(n, G))])
        first = np.concatenate([[0], np.cumsum(model.sizes)])
        unit = self._unit
        return stepwise_relocations(
            frozen(score.sample.corr * np.outer(unit, unit)), factors.loadings * unit, factors.Phi,
            factors.noise * unit**2, first, current, penalties, float(score.sample.n), self.check,
        )  # fmt: skip

    def moved(self, found: Placed, best: Bools, order: Sequence[int]) -> Proposal[Placed] | None:
        """The model with other parents for some variables, as far as it stays valid, if that is better."""
        model = with_other_parents(
            found.model, [(j, sum(1 << int(g) for g in np.flatnonzero(best[j]))) for j in order]
        )  # fmt: skip
        if model.key == found.model.key:
            return None
        moved = self.fitted(model, found.factors)
        if moved.value <= found.value + BUDGET.least_rise_by_em:
            return None
        n_changed = sum(a != b for a, b in zip(model.parents, found.model.parents, strict=True))
        return Proposal(f"other parents for {n_changed} variables", moved)

    # Pieces -----------------------------------------------------------------------------------------------

    def work(self, found: Placed) -> Placed:
        """Work on a piece around every group; what they find is put together and fitted once."""
        model, factors = found.model, found.factors
        near = nearness(factors.Phi, model)
        for centre in range(len(found.model.sizes)):
            # Most of the work is in the first round, and nobody knows how many there will be.
            self.clock.measured(1.0 - 0.4 ** (self.n_rounds + centre / len(found.model.sizes)))
            self.check()
            chosen = self._piece(found.model, near, centre)
            # Pieces overlap: where an earlier one has changed one of these groups, that comes first.
            here = [_group_of(model, found.model.pure(g)) for g in chosen]
            if None not in here:
                model = self.solved(model, tuple(sorted(g for g in here if g is not None))) or model
        self.n_rounds += 1
        return found if model.key == found.model.key else self.fitted(model)

    def _piece(self, model: FactorModel, near: Floats, centre: int) -> tuple[int, ...]:
        """A group and its nearest ones, until they have enough variables."""
        chosen, size = [], 0
        for g in np.argsort(-near[centre]).tolist():
            chosen.append(g)
            size += len(model.pure(g))
            if size >= BUDGET.piece:
                break
        return tuple(sorted(chosen))

    def solved(self, model: FactorModel, chosen: tuple[int, ...]) -> FactorModel | None:
        """The model with some groups searched anew; None where that changes nothing."""
        inside = sum(1 << g for g in chosen)
        items = [j for j, mask in enumerate(model.parents) if mask and not mask & ~inside]
        part = restricted(model, chosen, items)
        if (part.observed, part.key) in self.done:
            return None
        score = BicScore(
            self.score.sample.select(part.observed),
            penalty=self.score.penalty,
            n_threads=self.score.n_threads,
            check=self.check,
        )
        gains = RankGains(score.sample, score.dimension_penalty, self.check, is_piece=True)
        self.n_pieces += 1
        phase = f"Piece {self.n_pieces}, {len(part.observed)} variables"
        search = Refinement(score, gains, self.guidance, self.steps, phase=phase)
        other = search.climb(part).model
        self.done |= {(part.observed, part.key), (part.observed, other.key)}
        return None if other.key == part.key or not other.is_valid else replaced(model, chosen, items, other)


def with_other_parents(model: FactorModel, changes: Iterable[tuple[int, int]]) -> FactorModel:
    """A valid model with other parents (bits) for some variables, one after the other, but those that make it invalid.

    >>> pair = FactorModel(("a", "b", "c"), (1,), (1, 1, 1))
    >>> with_other_parents(pair, [(0, 0), (1, 0)]).parents  # a latent needs two indicators
    (0, 1, 1)
    """
    parents = list(model.parents)
    n_pure = Counter(parents)
    least = {1 << g: 2 * k for g, k in enumerate(model.sizes)}
    for j, mask in changes:
        before = parents[j]
        if mask == before or n_pure[before] > least.get(before, 0):
            n_pure[before] -= 1
            n_pure[mask] += 1
            parents[j] = mask
    return FactorModel(model.observed, model.sizes, tuple(parents))


def _group_of(model: FactorModel, pure: Sequence[int]) -> int | None:
    """The group that has exactly these pure children, if there is one."""
    mask = model.parents[pure[0]]
    is_same = mask.bit_count() == 1 and model.pure(mask.bit_length() - 1) == tuple(pure)
    return mask.bit_length() - 1 if is_same else None


def restricted(model: FactorModel, groups: Sequence[int], items: Sequence[int]) -> FactorModel:
    """Some groups and some of their variables alone."""
    parents = tuple(sum(1 << i for i, g in enumerate(groups) if model.parents[j] >> g & 1) for j in items)
    return FactorModel(tuple(model.observed[j] for j in items), tuple(model.sizes[g] for g in groups), parents)


def replaced(model: FactorModel, gone: Sequence[int], items: Sequence[int], part: FactorModel) -> FactorModel:
    """The model with a part of it put in the place of some groups.

    Variables outside the part that had such a group as a parent get the new group that has most of its pure children.
    """
    kept = [g for g in range(len(model.sizes)) if g not in gone]
    heir = {}
    for g in gone:
        old = {model.observed[j] for j in model.pure(g)}
        shared = [len(old & {part.observed[j] for j in part.pure(h)}) for h in range(len(part.sizes))]
        heir[g] = 1 << len(kept) + int(np.argmax(shared))
    parents = []
    for mask in model.parents:
        stays = sum(1 << i for i, g in enumerate(kept) if mask >> g & 1)
        for g in gone:
            if mask >> g & 1:
                stays |= heir[g]
        parents.append(stays)
    for j, mask in zip(items, part.parents, strict=True):
        parents[j] = mask << len(kept)
    sizes = tuple(model.sizes[g] for g in kept) + part.sizes
    return FactorModel(model.observed, sizes, tuple(parents))


def in_order(placed: Placed) -> Fitted:
    """The same fit as the dense kernels have it: every latent caused by all earlier groups, with noise of one.

    Within a group the basis is free, and chosen so that what earlier groups leave of its latents is uncorrelated.
    """
    factors = placed.factors
    own = np.diag(np.diag(factors.Phi))
    for ridge in _RIDGES:
        try:
            return _in_order(replace(placed, factors=replace(factors, Phi=factors.Phi + ridge * own)))
        except np.linalg.LinAlgError:  # a latent is a function of others but for rounding
            continue
    raise np.linalg.LinAlgError("The covariance of the latents is not positive definite.")


def _in_order(placed: Placed) -> Fitted:
    model, factors = placed.model, placed.factors
    m = len(factors.Phi)
    basis, effects = np.zeros((m, m)), np.zeros((m, m + len(model.observed)))
    for group in model.groups:
        own, earlier = list(group), list(range(group[0]))
        paths = np.linalg.solve(factors.Phi[np.ix_(earlier, earlier)], factors.Phi[np.ix_(earlier, own)])
        left = factors.Phi[np.ix_(own, own)] - paths.T @ factors.Phi[np.ix_(earlier, own)]
        basis[np.ix_(own, own)] = np.linalg.cholesky(left)
        # f = basis z: paths among f become paths among z.
        z = basis[np.ix_(earlier, earlier)].T @ paths
        effects[np.ix_(earlier, own)] = np.linalg.solve(basis[np.ix_(own, own)], z.T).T
    effects[:, m:] = basis.T @ factors.loadings
    none = np.zeros((len(model.sizes),) * 2, dtype=np.uint8)
    return Fitted(model, placed.value, effects, factors.noise, True, 0.0, none)


def first_factors(S: Floats, model: FactorModel) -> Factors:
    """Where a fit begins: the leading components of every group's pure children."""
    weights = np.zeros((sum(model.sizes), len(S)))
    loadings = np.zeros_like(weights)
    for g, group in enumerate(model.groups):
        pure = list(model.pure(g))
        values, vectors = np.linalg.eigh(S[np.ix_(pure, pure)])
        for i, latent in enumerate(group, start=1):
            weights[latent, pure] = vectors[:, -i]
            # Some of a component is noise.
            loadings[latent, pure] = 0.8 * np.sqrt(values[-i]) * vectors[:, -i]
    noise = np.maximum(1.0 - (loadings**2).sum(axis=0), 0.3)
    Phi = weights @ S @ weights.T
    unit = np.sqrt(np.diag(Phi))
    return Factors(loadings, 0.9 * Phi / np.outer(unit, unit) + 0.1 * np.eye(len(Phi)), noise)


def widened_factors(known: Factors, fresh: Factors) -> Factors:
    """Where a fit with more groups begins: what is known of the others, and the new ones as if they were unrelated."""
    m = len(known.Phi)
    is_moved = (fresh.loadings[m:] != 0.0).any(axis=0)
    loadings, Phi = fresh.loadings.copy(), fresh.Phi.copy()
    loadings[:m] = np.where(is_moved, 0.0, known.loadings)
    Phi[:m, :m] = known.Phi
    Phi[:m, m:] = Phi[m:, :m] = 0.0
    return Factors(loadings, Phi, np.where(is_moved, fresh.noise, known.noise))


def nearness(Phi: Floats, model: FactorModel) -> Floats:
    """(G, G) the largest correlation between latents of two groups, and one more where they share an indicator.

    Groups that should be one may well be uncorrelated: what they share gives them away. A group is nearest to itself.
    """
    G = len(model.sizes)
    first = np.concatenate([[0], np.cumsum(model.sizes)[:-1]]).astype(np.int64)
    size = np.abs(Phi)
    near = np.maximum.reduceat(np.maximum.reduceat(size, first, axis=0), first, axis=1) + 2.0 * np.eye(G)
    for mask in set(model.parents):
        groups = [g for g in range(G) if mask >> g & 1]
        near[np.ix_(groups, groups)] = np.maximum(near[np.ix_(groups, groups)], 1.0 + size.min())
    return near
