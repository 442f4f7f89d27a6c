"""Misfit tolerance: what to do where no factor model holds exactly.

::

    the best model of p/2 unrestricted factors is rejected? ── yes ──────────────────────────┐
        │ no                                                                                 │
    exact search ── its model is not rejected ──► the exact answer                           │
        │ rejected                                                                           ▼
        └──────────────────────────────────────────► reproducible item partitions, the best of them refined at
                                                      N_eff; of both answers the one with the better marginal likelihood

**N_eff.** A population that lies off the model by an RMSEA of e makes a sample of N worth ``N_eff = 1/(1/N + e²)`` rows
(:mod:`unmeasured.search.close_fit.replicability`). Everything that is bought here, cross-loadings and paths between
latents, is paid at N_eff.

**Marginal likelihood.** If the population covariance is itself drawn around the model with dispersion e², then with F
the discrepancy of maximum likelihood and ``tau = 1/N + e²`` minus twice the log-likelihood is ``df log tau + F/tau`` up
to a constant, least at ``tau = max(1/N, F/df)``. It is BIC where the model holds, and counts misfit on a log scale
where it does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import chdtri
from sklearn.metrics import adjusted_rand_score

from unmeasured.arrays import Floats
from unmeasured.constraints import Rule, is_finite
from unmeasured.data.sample import Sample
from unmeasured.errors import Stopped
from unmeasured.graphs import CPDAG, LatentGroups
from unmeasured.models.exploratory import (
    LEAST_NOISE_ML,
    degrees_of_freedom,
    dense_factors,
    minres,
    ml_discrepancy,
    strongest,
)
from unmeasured.models.fit import Fit, fit_many
from unmeasured.models.indices import rmsea
from unmeasured.models.parameters import Model
from unmeasured.models.solve import Check, is_over, never
from unmeasured.remarks import distrust
from unmeasured.search.bic import Measured
from unmeasured.search.budget import BUDGET
from unmeasured.search.canonical import canonical
from unmeasured.search.clock import Clock
from unmeasured.search.close_fit.expected_misfit import MisfitTest, bartlett_factor
from unmeasured.search.close_fit.local_dependence import (
    cost_of_a_pair,
    pairs_in_words,
    start_from,
    with_residual_pairs,
    without_edges,
)
from unmeasured.search.close_fit.partition_agreement import add_agreement
from unmeasured.search.close_fit.replicability import (
    Partition,
    agreement_peaks,
    comes_back_more_often,
    dependence_within,
    effective_n,
    partitions,
    select_partition,
)
from unmeasured.search.discovery import Discovery, remarks_on_fit, stopped_in_words
from unmeasured.search.final_fit import in_columns, in_time
from unmeasured.search.guided import paths_of
from unmeasured.search.hierarchy import RaisedClass, raise_levels
from unmeasured.search.item_partitions import ItemPartition, model_partitions, name_partition, strongest_partition
from unmeasured.search.latent_graph.edges import LatentTest
from unmeasured.search.latent_graph.latent_likelihood import least_noise
from unmeasured.search.measurement.refine import Guidance
from unmeasured.search.measurement.subproblems import Pieces, Placed, in_order
from unmeasured.search.model import FactorModel
from unmeasured.search.score import BicScore, Fitted, priors
from unmeasured.search.trace import Steps, Trace

_NOT_PARTITIONED = (
    f"With more than {BUDGET.most_partitioned} variables and a close fit, whether the latents are found again in "
    "replicates of the data was not checked: it would take hundreds of factor analyses."
)


TOLERANCE = Rule(
    f"'auto' or a population RMSEA from 0 (the exact criterion) to {BUDGET.largest_tolerance}",
    lambda value: (
        value == "auto" if isinstance(value, str) else is_finite(value) and 0 <= value <= BUDGET.largest_tolerance
    ),
)


def marginal_misfit(chi2: float, df: float, n: float) -> float:
    """Minus twice the log marginal likelihood under adventitious error, constants left out; smaller is better.

    >>> marginal_misfit(100.0, 100, 500) < marginal_misfit(400.0, 100, 500)
    True
    """
    if df <= 0:
        return 0.0
    discrepancy = chi2 / n
    dispersion = max(1.0 / n, discrepancy / df)
    return df * math.log(dispersion) + discrepancy / dispersion


def no_model_holds(sample: Sample, check: Check = never, test: MisfitTest | None = None) -> bool:
    """Whether even as many unrestricted factors as could be of use are rejected: then so is every factor model.

    A latent needs two indicators, so there are at most half as many as variables; in long questionnaires three. Where
    ``check`` says that the time is over this is not known, and the exact search decides.
    """
    p = len(sample.names)
    m = max(min(p // 2, BUDGET.few_latents), p // 3)
    df = degrees_of_freedom(p, m)
    if df <= 0:  # 4 or 6 variables: with fewer factors than there may be nothing would follow
        return False
    # Factors without restrictions have a correction of their own (Lawley and Maxwell 1971).
    n = sample.n * bartlett_factor(p, sample.n, m)
    if n <= 0.0:  # too few rows to reject anything
        return False
    enough = float(chdtri(df, BUDGET.rejected)) / n
    least = least_noise(sample, LEAST_NOISE_ML)
    shares = BUDGET.shares if p <= BUDGET.many_variables else BUDGET.shares[:1]
    try:
        discrepancy = ml_discrepancy(sample.corr, m, check, enough, shares, least)
        if math.isnan(discrepancy) or discrepancy <= enough:  # NaN: not known either
            return False
        factors = minres(sample.corr, m, check=check)
        implied = factors.loadings @ factors.loadings.T
        np.fill_diagonal(implied, 1.0)
        verdict = (test or MisfitTest(sample, check)).of(sample.n * discrepancy, df, implied)
        return verdict.is_rejected and not verdict.is_negligible
    except Stopped:
        return False


@dataclass(frozen=True)
class Tolerant:
    """A sample, the misfit that is tolerated, and what a search needs besides."""

    sample: Sample
    tolerance: float
    penalty: float
    clock: Clock
    n_threads: int | None = None
    verbose: bool = False
    residual_covariances: bool = True
    hierarchy: bool = True
    seed: int = 0  # of replicates

    @property
    def n_effective(self) -> float:
        """How many rows of a population that is exactly the model these are worth."""
        return effective_n(self.sample.n, self.tolerance)

    @cached_property
    def test(self) -> MisfitTest:
        """What decides whether a model is rejected."""
        return MisfitTest(self.sample, self.clock.check_measuring, self.seed)

    def discover(self, check: Check) -> Discovery | None:
        """Search from the selected partition; None if none is reproducible. ``check`` ends the partitions."""
        data = canonical(self.sample)
        steps = Steps(self.verbose, self.clock)
        with self.clock.listening():
            steps.say("Partitions of the items that come back in replicates")
            found = partitions(data.corr, self.n_effective, check, seed=self.seed)
            levels = agreement_peaks(found)
            lead = select_partition(levels, data.corr, self.n_effective)
            lead = self._one_latent(data, lead) or lead
            if lead is None:
                steps.close()
                return None
            if lead not in levels:
                levels = [*levels, lead]
            model, near, raised = self.refined(data, lead, steps)
            steps.close()
            finest_first = sorted(levels, key=lambda level: -level.n_factors)
            return self._answer(data, model, near, raised, finest_first, lead, Trace(steps))

    def fewer_would_do(self, n_latents: int) -> bool:
        """Whether one latent less, without restrictions, describes the data within the tolerance."""
        p = len(self.sample.names)
        if n_latents < 2 or degrees_of_freedom(p, n_latents - 1) <= 0:
            return False
        chi2 = self.sample.n * ml_discrepancy(self.sample.corr, n_latents - 1, self.clock.check)
        return rmsea(chi2, degrees_of_freedom(p, n_latents - 1), self.sample.n) <= self.tolerance

    def is_simpler(self, found: Discovery, exact: Discovery) -> bool:
        """Whether an answer fits closely with fewer latents, which come back more often than those of an exact one.

        The latents of the exact one stay where as many unrestricted factors put the items together as they do.
        """
        n_latents = n_measured(exact.cpdag)
        if found.fit.rmsea > self.tolerance or n_measured(found.cpdag) >= n_latents:
            return False
        data = canonical(self.sample)
        (other,) = partitions(data.corr, self.n_effective, self.clock.check, numbers=[n_latents], seed=self.seed)
        own = strongest_partition(exact.cpdag, exact.fit)
        labels = dict(zip(own.items, own.labels, strict=True))
        if adjusted_rand_score([labels[name] for name in data.names], other.labels) >= BUDGET.least_agreement:
            return False
        return comes_back_more_often(found.partitions[found.selected_partition], other)

    def is_denser(self, found: Discovery, exact: Discovery) -> bool:
        """Whether the items of each latent depend on one another more in an answer than in an exact one."""
        both = found.partitions[found.selected_partition], strongest_partition(exact.cpdag, exact.fit)
        if any(level.items != self.sample.names for level in both):
            return False
        own, other = (dependence_within(self.sample.corr, self.n_effective, np.array(level.labels)) for level in both)
        return own > other

    def with_fewer_latents(self, exact: Discovery) -> Discovery | None:
        """Fewer latents and residual pairs, where the exact criterion prefers them to an exact answer; else None.

        An exact search spends latents on items of similar wording: groups with as few indicators of their own as a
        group needs. Where there are such, as many latents are tried as eigenvalues are beyond chance (the edge of
        Marchenko and Pastur); pairs pay the extended penalty.
        """
        own = LatentGroups(exact.cpdag, exact.cpdag.latent_groups)
        n_pure = [(len(own.pure_children(group)), len(group)) for group in own if not exact.cpdag.levels[group[0]]]
        data = canonical(self.sample)
        lead = self._fewer(data, n_pure)
        if lead is None:
            return None
        exactly = replace(self, tolerance=0.0, verbose=False)
        goal = exactly._criterion(exact.fit)
        above_saturated = exact.fit.chi2 + self.penalty * math.log(data.n) * int(exact.fit.dimension)
        if len(data.names) > BUDGET.most_at_once and not self._pairs_may_do(data, lead, above_saturated):
            return None
        with self.clock.ending_a_stage():
            model = _pure_model(data, lead)
            (fit,) = fit_many([model.cpdag], self.sample, n_threads=self.n_threads, check=self.clock.check)
            needed = exactly._criterion(fit) - goal if len(data.names) > BUDGET.most_at_once else -math.inf
            if exactly._criterion(exactly._with_pairs(fit, needed)) < goal:
                steps = Steps(False, self.clock)
                refined = exactly.refined(data, lead, steps)
                steps.close()
                found = exactly.with_pairs(exactly._answer(data, *refined, [lead], lead, Trace(steps)), always=True)
                if exactly._criterion(found.fit) < goal:
                    return replace(found, partitions=(), selected_partition=0)
        return None

    def _fewer(self, data: Sample, n_pure: Sequence[tuple[int, int]]) -> Partition | None:
        """The items by as many factors as eigenvalues are beyond chance, where these are fewer than the latents found.

        ``n_pure``: of every group of those latents, how many variables are its alone, and its size. None also where no
        group has as few of them as it needs.
        """
        p = len(data.names)
        edge = (1.0 + math.sqrt(p / data.n)) ** 2
        m = int((np.linalg.eigvalsh(data.corr) > edge).sum())
        if not self.residual_covariances or not any(pure <= 2 * size for pure, size in n_pure):
            return None
        if not 1 <= m < sum(size for _, size in n_pure) or degrees_of_freedom(p, m) <= 0:
            return None
        lead = Partition(m, strongest(dense_factors(data.corr, m)[0]), math.nan, math.nan)
        return lead if lead.is_measurable else None

    def _pairs_may_do(self, data: Sample, lead: Partition, goal: float) -> bool:
        """Whether a partition could reach a criterion, above that of the saturated model, with all pairs that pay.

        By EM and score tests of single pairs: with hundreds of items a fit of the kernels takes minutes.
        """
        score = BicScore(data, penalty=self.penalty, check=self.clock.check)
        found = Pieces(score, Guidance(1), [], self.clock).fitted(_pure_model(data, lead))
        per_pair = data.n * _modification_of_pairs(data.corr, found)
        gain = np.maximum(per_pair - cost_of_a_pair(len(data.names), data.n, self.penalty), 0.0)
        reached = self.penalty * math.log(data.n) * found.model.n_parameters - 2.0 * found.value_of_fit
        return bool(reached - np.triu(gain, 1).sum() < goal)

    def will_be_rejected(self, models: Sequence[Fitted]) -> bool:
        """Whether an exact answer with the best of these measurement models, of many variables, is rejected for sure.

        All latents are connected in it. Whatever becomes of the paths, the answer fits no better, and has no more
        degrees of freedom than without any. Fewer latents with residual pairs are another matter: where they may do,
        nothing is sure.
        """
        if not models or self.clock.stopped:
            return False
        data, near = canonical(self.sample), models[0]
        p, model = len(data.names), near.model
        implied = near.implied
        discrepancy = (
            np.linalg.slogdet(implied)[1] - data.log_det_corr + np.trace(np.linalg.solve(implied, data.corr)) - p
        )
        chi2 = data.n * float(discrepancy)
        df = p * (p + 1) // 2 - model.n_parameters
        order = [data.names.index(name) for name in self.sample.names]
        if not self.test.of(chi2, df + model.n_paths, implied[np.ix_(order, order)]).is_rejected:
            return False
        lead = self._fewer(data, [(len(model.pure(g)), size) for g, size in enumerate(model.sizes)])
        goal = chi2 + self.penalty * math.log(data.n) * model.n_parameters
        return lead is None or not self._pairs_may_do(data, lead, goal)

    def _criterion(self, fit: Fit) -> float:
        """BIC, and what residual pairs cost more for being picked among so many."""
        graph = fit.graph
        n_pairs = 0 if isinstance(graph, Model) else len(graph.pairs)
        p = len(fit.sample.names)
        more = cost_of_a_pair(p, fit.sample.n, self.penalty) - self.penalty * math.log(fit.sample.n)
        return fit.bic + (self.penalty - 1.0) * math.log(fit.sample.n) * int(fit.dimension) + n_pairs * more

    def _with_pairs(self, fit: Fit, needed: float = -math.inf) -> Fit:
        return with_residual_pairs(
            fit, self.n_effective, self.penalty, needed=needed, n_threads=self.n_threads, check=self.clock.check
        )

    def _without_superfluous_loadings(self, fit: Fit) -> Fit:
        """The fit without second latents of items that have stopped paying since pairs came in, one at a time."""
        prior = priors(len(fit.sample.names), len(fit.model.latents))[1]
        least = self.penalty * (math.log(self.n_effective) + 2.0 * prior) * fit.sample.n / self.n_effective
        while isinstance(fit.graph, CPDAG):
            loadings = fit.parameters[fit.parameters["op"] == "=~"]
            # Latents of a group of several have the same items: there an item that has two latents has no second one.
            groups = {latent for group in fit.graph.latent_groups if len(group) > 1 for latent in group}
            within = set(loadings["rhs"][loadings["lhs"].isin(groups)])
            shared = loadings[loadings["rhs"].duplicated(keep=False) & ~loadings["rhs"].isin(within)]
            weak = shared[shared["z"] ** 2 < least].sort_values("z", key=np.abs, kind="stable")
            if not len(weak):
                break
            self.clock.check()
            fewer = without_edges(fit.graph, [(weak["lhs"].iloc[0], weak["rhs"].iloc[0])])
            starts = [start_from(fit, fewer)]
            (fit,) = fit_many([fewer], fit.sample, starts=starts, n_threads=self.n_threads, check=self.clock.check)
        return fit

    def with_pairs(self, found: Discovery, *, always: bool = False) -> Discovery:
        """The same with residual pairs, where they pay and its model is rejected, or always."""
        if not self.residual_covariances or found.stopped or not found.cpdag.latent_groups:
            return found
        if found.cpdag.pairs or not (always or self.test.of_fit(found.fit).is_rejected):
            return found
        fit = found.fit
        with self.clock.ending_a_stage():
            fit = self._with_pairs(fit)
            if fit is not found.fit:
                fit = self._without_superfluous_loadings(fit)
        if not isinstance(fit.graph, CPDAG) or not fit.graph.pairs:
            return found
        remarks = tuple(remark for remark in found.remarks if remark not in remarks_on_fit(found.fit))
        is_told = len(remarks) < len(found.remarks) and (not found.tolerance or fit.rmsea > BUDGET.bad_rmsea)
        poor = remarks_on_fit(fit) if is_told else []
        return replace(found, cpdag=fit.graph, fit=fit, remarks=(*remarks, pairs_in_words(fit), *poor))

    def searched(self, search: Callable[[Sample], Discovery]) -> Discovery:
        """The answer of a search that takes the sample for what it is worth, fitted to the sample as it is."""
        found = search(replace(self.sample, n=self.n_effective))
        # The same optimum: how many rows there are does not move it.
        starts = [found.fit.solution.x]
        (fit,) = fit_many(
            [found.cpdag], self.sample, starts=starts, n_threads=self.n_threads, check=self.clock.check_last_fit
        )
        return replace(found, fit=fit, tolerance=self.tolerance, remarks=(*found.remarks, self._in_words()))

    def read(self, exact: Discovery) -> Discovery:
        """Add agreement to an exact-fit result, at the effective sample size if its model is rejected."""
        is_off = self.test.of_fit(exact.fit).is_rejected
        n = self.n_effective if is_off else self.sample.n
        return add_agreement(exact, self.sample, n, self.clock, always=is_off, seed=self.seed)

    def _one_latent(self, data: Sample, lead: Partition | None) -> Partition | None:
        """One latent behind everything, where that fits within the tolerance and the level that leads does not pay.

        RMSEA does not tell by itself: most pairs of hundreds of items are of different latents, and one latent
        describes these closely. More latents pay as everything else does, by extended BIC at N_eff.
        """
        p = len(data.names)
        df = degrees_of_freedom(p, 1)
        if df <= 0:
            return None
        one = Partition(1, np.zeros(p, dtype=np.int64), 1.0, 0.0)
        try:
            excess = ml_discrepancy(data.corr, 1, self.clock.check_measuring) / df - 1.0 / data.n
            if excess > self.tolerance**2:
                return None
            score = BicScore(replace(data, n=self.n_effective), penalty=self.penalty, check=self.clock.check_measuring)
            pieces = Pieces(score, Guidance(1), [], self.clock)
            both = [pieces.fitted(_pure_model(data, level)).value for level in (one, lead) if level is not None]
        except Stopped:
            return None
        return one if both[0] == max(both) else None

    def refined(self, data: Sample, lead: Partition, steps: Steps) -> tuple[FactorModel, Fitted, RaisedClass | None]:
        """The model whose latents are the sets of a partition: second latents for items, paths, latents above."""
        clock, sample = self.clock, replace(data, n=self.n_effective)
        score: BicScore = BicScore(sample, penalty=self.penalty, n_threads=self.n_threads, check=clock.check_measuring)
        model = _pure_model(sample, lead)
        pieces = Pieces(score, Guidance(1), steps, clock)
        with clock.ending_a_stage():
            steps.say("Second latents for items")
            pair_cost = (
                cost_of_a_pair(len(sample.names), sample.n, self.penalty) if self.residual_covariances else math.inf
            )
            with_cross_loadings(pieces, pieces.fitted(model), pair_cost)
        near = in_order(pieces.best or pieces.fitted(model))
        graph = near.model
        with clock.ending_a_stage():
            steps.say("Paths between latents")
            test = LatentTest(near, score, paths_of(near.model, None), clock.check)
            graph = test.starts[-1]
            test.polish(graph)
            if test.best is not None:
                graph = test.best.model
                steps += test.best.steps
        raised = None
        if self.hierarchy and test.best is not None:
            with clock.ending_a_stage():
                steps.say("Latents above latents")
                free = paths_of(near.model, None)
                raised = raise_levels(near, graph, test.value, score, free, steps, clock.check)
        return graph, near, raised

    def _answer(
        self,
        data: Sample,
        model: FactorModel,
        near: Fitted,
        raised: RaisedClass | None,
        levels: list[Partition],
        lead: Partition,
        trace: Trace,
    ) -> Discovery:
        sample, clock = self.sample, self.clock
        columns = in_columns(model, raised, sample.names)
        cpdag, start = columns.cpdag, columns.start(near, raised, columns.cpdag)
        (fit,) = fit_many([cpdag], sample, starts=[start], n_threads=self.n_threads, check=clock.check_last_fit)
        while (cross := _improper_cross_loadings(fit)) and not is_over(clock.check):
            cpdag = without_edges(cpdag, cross)
            (fit,) = fit_many([cpdag], sample, n_threads=self.n_threads, check=clock.check_last_fit)
        fit = in_time(fit, clock)
        # Latents were numbered as in the partition; they go by the order of their first indicators now.
        name_of = dict(zip(columns.positions, columns.cpdag.latents, strict=True))
        at = [data.names.index(name) for name in sample.names]
        own = ItemPartition(
            sample.names, tuple(name_of[int(lead.labels[j])] for j in at), lead.agreement, lead.agreement_se
        )
        told = tuple(
            own
            if level is lead
            else ItemPartition(
                sample.names, name_partition([int(level.labels[j]) for j in at], own.latents), level.agreement
            )
            for level in levels
        )
        told, selected_partition = with_model_partitions(told, levels.index(lead), model_partitions(cpdag, fit)[1:])
        # That BIC would rather have every covariance free is what tolerance is about; a bad fit is said all the same.
        poor = remarks_on_fit(fit) if fit.rmsea > BUDGET.bad_rmsea else []
        remarks = [self._in_words(), _levels_in_words(told, selected_partition)] if self.tolerance else []
        remarks += poor
        stopped = stopped_in_words(clock, fit)
        remarks = [distrust(stopped), *remarks] if stopped else remarks
        return Discovery(
            cpdag, fit, trace, tuple(remark for remark in remarks if remark), stopped=stopped,
            interrupted=clock.is_interrupted, partitions=told, selected_partition=selected_partition,
            tolerance=self.tolerance,
        )  # fmt: skip

    def _in_words(self) -> str:
        return (
            f"A misfit up to a population RMSEA of {self.tolerance:g} is tolerated, so that N = {self.sample.n:.0f} "
            f"counts as {self.n_effective:.0f} rows: smaller effects are not reported. LGES(tolerance=0) reports "
            "everything that the exact criterion finds."
        )


def with_model_partitions(
    levels: tuple[ItemPartition, ...], selected_partition: int, above: Sequence[ItemPartition]
) -> tuple[tuple[ItemPartition, ...], int]:
    """Add the partitions by higher-order latents, which replace others as coarse; return the selected one too."""
    numbers = {level.n_latents for level in above}
    kept = [level for k, level in enumerate(levels) if k <= selected_partition or level.n_latents not in numbers]
    merged = sorted([*kept, *above], key=lambda level: -level.n_latents)
    return tuple(merged), merged.index(levels[selected_partition])


def _improper_cross_loadings(fit: Fit) -> list[tuple[str, str]]:
    """The weaker loading of each item that has two latents and a standardised loading beyond 1."""
    table = fit.parameters
    loadings = table[table["op"] == "=~"]
    beyond = loadings["rhs"][loadings["std"].abs() > 1.0].unique()
    found = []
    for item in beyond:
        rows = loadings[loadings["rhs"] == item]
        if len(rows) > 1:
            found.append((str(rows["lhs"].iloc[int(rows["std"].abs().argmin())]), str(item)))
    return found


def _levels_in_words(levels: Sequence[ItemPartition], selected_partition: int) -> str:
    """Describe the agreement of the selected partition and list the others."""
    lead = levels[selected_partition]
    if lead.n_latents == 1:
        return "One latent describes all items within that tolerance."
    words = (
        f"Why {lead.n_latents} latents: this grouping of the items is found again in replicates of the data (mean "
        f"adjusted Rand index {lead.agreement:.2f}; 1 is always, 0 is chance), and items of a latent depend on one "
        "another more than in other groupings that are found again."
    )
    if lead.agreement < BUDGET.stable_agreement:
        words += " Which items belong together is not stable."
    others = [
        f"{level.n_latents} ({'above these in the model' if math.isnan(level.agreement) else f'{level.agreement:.2f}'})"
        for k, level in enumerate(levels)
        if k != selected_partition
    ]
    return words + (f" Other partitions in result_.partitions: {', '.join(others)} latents." if others else "")


def with_cross_loadings(pieces: Pieces, found: Placed, pair_cost: float = math.inf) -> Placed:
    """Second latents for items where the score asks for them; every item keeps its first, and has two at most.

    By modification indices in batches, each fitted; a batch that does not raise the score, or makes a loading larger
    than 1, is halved. Where one residual pair would explain more than the second latent does, the item is left to it.
    """
    score, n = pieces.score, len(found.model.observed)
    penalty = score.dimension_penalty + score.penalty * priors(n, len(found.model.sizes))[1]
    while True:
        pieces.check()
        half, S = 0.5 * score.sample.n, score.sample.corr
        gain = half * _modification(S, found) - penalty
        pairs = half * _modification_of_pairs(S, found) - 0.5 * pair_cost
        measures = found.model.mask[:, len(found.model.sizes) :]  # (G, n): groups of one
        rival = np.where(measures[:, :, None], pairs[None], -np.inf).max(axis=1)
        gain[rival > gain] = -np.inf
        best = gain.argmax(axis=0)
        rise = gain[best, np.arange(n)]
        order = [int(j) for j in np.argsort(-rise, kind="stable") if rise[j] > 0]
        # The strongest first: what they explain is not asked for again.
        order = order[: max(1, (len(order) + 2) // 3)]
        better = None
        while better is None and order:
            model = found.model
            for j in order:
                other = model.with_parents(j, model.parents[j] | 1 << int(best[j]))
                model = other if other.is_valid else model
            if model.key != found.model.key:
                fitted = pieces.fitted(model, found.factors)
                is_proper = _largest_loading(fitted) <= max(1.0, _largest_loading(found))
                better = fitted if fitted.value > found.value and is_proper else None
            order = order[: len(order) // 2]
        if better is None:
            break
        found = better
    return found


def _largest_loading(found: Placed) -> float:
    """The largest standardised loading in absolute value, of variables and latents of unit variance."""
    factors = found.factors
    return float(np.abs(factors.loadings * np.sqrt(np.diag(factors.Phi))[:, None]).max(initial=0.0))


def _modification(S: Floats, found: Placed) -> Floats:
    """(G, n) by how much a second latent for an item lowers ``log det Sigma + tr(Sigma^-1 S)``.

    The score test of a loading against the item's own loading and residual variance; zero where the item has two.
    """
    factors = found.factors
    P = np.linalg.inv(factors.implied)
    V = factors.loadings.T @ factors.Phi  # (n, m) covariance of items and latents
    PV = P @ V
    VPV = V.T @ PV
    slope = 2.0 * (PV - P @ S @ PV)  # (n, m) derivatives by the loadings
    out = np.zeros(factors.loadings.shape)
    for j, mask in enumerate(found.model.parents):
        if mask.bit_count() != 1:
            continue
        h, d = mask.bit_length() - 1, P[j, j]
        own = np.array([[d * VPV[h, h] + PV[j, h] ** 2, d * PV[j, h]], [d * PV[j, h], 0.5 * d * d]])
        cross = np.stack([d * VPV[:, h] + PV[j] * PV[j, h], d * PV[j]], axis=1)  # (m, 2)
        curvature = d * np.diag(VPV) + PV[j] ** 2 - np.einsum("gi,ij,gj->g", cross, np.linalg.inv(own), cross)
        out[:, j] = slope[j] ** 2 / (4.0 * np.maximum(curvature, 1e-9))
        out[h, j] = 0.0
    return out


def _pure_model(sample: Sample, lead: Partition) -> FactorModel:
    """A latent for every set of a partition."""
    return FactorModel(sample.names, (1,) * lead.n_factors, tuple(1 << int(k) for k in lead.labels))


def _modification_of_pairs(S: Floats, found: Placed) -> Floats:
    """(n, n) by how much a covariance of two residuals lowers ``log det Sigma + tr(Sigma^-1 S)``, all else as it is."""
    P = np.linalg.inv(found.factors.implied)
    unit = np.diag(P)
    out = (P @ S @ P - P) ** 2 / (np.outer(unit, unit) + P**2)
    np.fill_diagonal(out, 0.0)
    return np.asarray(out)


class Exact(Protocol):
    """The search by the exact criterion, whole or its first stage."""

    def __call__(self, sample: Sample, measured: Measured | None = None) -> Discovery:
        """The answer to a sample, from measurement models that were found before or from the beginning."""

    def measure(self, sample: Sample) -> Measured:
        """The measurement models."""


def discover_within(tolerant: Tolerant, is_auto: bool, exact: Exact) -> Discovery:
    """The exact answer where a factor model holds, else what comes back within the tolerance, with residual pairs."""
    return tolerant.with_pairs(_best_within(tolerant, is_auto, exact))


def _best_within(tolerant: Tolerant, is_auto: bool, exact: Exact) -> Discovery:
    """The exact answer or the tolerant one.

    Of two answers the tolerant one is taken where

    - the exact model is rejected, with an RMSEA that is not negligible, and the tolerant one describes the data
      reasonably or has the better marginal likelihood; or it describes them reasonably with residual pairs, and the
      items of its latents depend on one another more;
    - the exact model is doubtful, and has latents that do not come back while fewer fit closely.

    With many variables an exact search that would give way is not made to its end.
    """
    clock = tolerant.clock
    if is_auto and not no_model_holds(tolerant.sample, clock.check_test, tolerant.test):
        measured = second = None
        if len(tolerant.sample.names) > BUDGET.most_at_once:
            measured = exact.measure(tolerant.sample)
            with suppress(Stopped):
                if tolerant.will_be_rejected(measured.models):
                    second = tolerant.discover(clock.check_measuring)
            if second is not None and second.fit.rmsea <= BUDGET.poor_rmsea:
                measured.steps.close()
                return second
        found = first = exact(tolerant.sample, measured)
        if not first.cpdag.latent_groups or first.stopped:
            return first
        if (fewer := tolerant.with_fewer_latents(first)) is not None:
            found = first = fewer
        with suppress(Stopped):
            found = _of_both(tolerant, first, second)
        if not clock.stopped or found.stopped:
            return found
        # Whether the other answer is the better one is not known.
        stopped = stopped_in_words(clock, found.fit)
        remarks = (distrust(stopped), *found.remarks)
        return replace(found, stopped=stopped, remarks=remarks, interrupted=clock.is_interrupted)
    return tolerant.discover(clock.check_comparing) or tolerant.searched(exact)


def _of_both(tolerant: Tolerant, first: Discovery, second: Discovery | None = None) -> Discovery:
    """An exact answer, or the tolerant one, which may be known already, where that is to be taken."""
    if len(tolerant.sample.names) > BUDGET.most_partitioned and first.fit.rmsea <= BUDGET.strict_rmsea:
        return replace(first, remarks=(*first.remarks, _NOT_PARTITIONED))
    verdict = tolerant.test.of_fit(first.fit)
    if (
        verdict.is_negligible
        or verdict.p >= BUDGET.doubtful
        or not (verdict.is_rejected or tolerant.fewer_would_do(n_measured(first.cpdag)))
    ):
        return tolerant.read(first)
    second = tolerant.discover(tolerant.clock.check_measuring) if second is None else second
    if second is None:
        return tolerant.read(first)
    if not verdict.is_rejected:
        return second if tolerant.is_simpler(second, first) else tolerant.read(first)
    if second.fit.rmsea <= BUDGET.poor_rmsea or _marginal(second.fit) < _marginal(first.fit):
        return second
    if tolerant.is_denser(second, first):
        paired = tolerant.with_pairs(second)
        if paired.fit.rmsea <= BUDGET.poor_rmsea:
            return paired
    return tolerant.read(first)


def n_measured(cpdag: CPDAG) -> int:
    """How many latents items measure."""
    return sum(level == 0 for level in cpdag.levels.values())


def _marginal(fit: Fit) -> float:
    return marginal_misfit(fit.chi2, fit.df, fit.sample.n)
