"""One structure for several groups of people, each with parameters of its own.

::

    rows of all groups ──► covariance within groups ──► search ──┐
    rows of each group ──► search from that answer ──────────────┴──► measurement models ──► climb by the joint score
                                                                                                     │
                                     one graph over latents, covariates and outcomes, by the joint score ◄┘

The joint score is the sum of the groups' log-likelihoods less the penalty of the dimensions of all groups: with K
groups a path or a loading costs K times what it costs in one. Who measures what is one choice for all, and is paid for
once.

Covariances within groups (the mean over groups, weighted by their rows) are where most searches should end if groups
differ little; where they differ much, no factor model may describe the mean, and the searches of single groups, which
see fewer rows, bring in what it misses. The best of these is climbed from: other parents for items, the closed forms
summed over groups, and groups of latents merged; all fits are of every group of people.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from unmeasured import apa
from unmeasured.arrays import Marks
from unmeasured.data.moments.margins import margins_of
from unmeasured.data.sample import Sample
from unmeasured.errors import SearchStopped
from unmeasured.graphs import CPDAG
from unmeasured.knowledge.known import Knowledge
from unmeasured.knowledge.rules import Paths, Rules
from unmeasured.knowledge.satisfy import rules_of
from unmeasured.models.estimators import reported, tested_together
from unmeasured.models.fit import Fit, fit_many
from unmeasured.models.full import with_full_information
from unmeasured.models.solve import Check, Problem, solve
from unmeasured.remarks import distrust
from unmeasured.search.budget import BUDGET
from unmeasured.search.climb import Log, Proposal, climb
from unmeasured.search.clock import Clock
from unmeasured.search.close_fit.replicability import effective_n
from unmeasured.search.discovery import Discovery, remarks_on, remarks_on_fit, stopped_in_words
from unmeasured.search.final_fit import in_columns
from unmeasured.search.guided import informed, is_allowed
from unmeasured.search.measurement.moves.base import parent_sets
from unmeasured.search.measurement.relocate import latents_of, relocated
from unmeasured.search.model import FactorModel, model_of_class
from unmeasured.search.options import Options
from unmeasured.search.roles.covariates import StructuralSearch, known_paths
from unmeasured.search.roles.structural import StructuralFit, StructuralModel, SummedBic, best_allowed
from unmeasured.search.score import BicScore
from unmeasured.search.trace import Recorder, Step, Trace

# The search of one sample: with what is known, and from answers to similar data.
Search = Callable[[Sample, Knowledge | None, Sequence[CPDAG]], Discovery]


def within_groups(samples: Iterable[Sample]) -> Sample:
    """All groups together, each less its own means: the mean of their covariances, weighted by their rows."""
    parts = list(samples)
    n = sum(part.n for part in parts)
    cov = np.sum([part.n * part.cov for part in parts], axis=0) / n
    first = parts[0]
    mean = None
    if all(part.mean is not None for part in parts):
        mean = np.sum([part.n * np.asarray(part.mean) for part in parts], axis=0) / n
    return Sample(
        first.names,
        cov,
        n,
        mean,
        first.kinds,
        labels=first.labels,
        reverse_keyed=first.reverse_keyed,
        covariates=first.covariates,
        outcomes=first.outcomes,
    )


@dataclass(frozen=True, eq=False)
class JointFit:
    """A measurement model fitted to every group, all latents connected, and its joint score with the best graph."""

    model: FactorModel
    fits: tuple[StructuralFit, ...]
    value: float
    arcs: Marks  # the graph over groups of latents that is predicted


class JointScore:
    """Total log-likelihood of all groups less the penalty of their dimensions, for measurement models."""

    def __init__(self, samples: Sequence[Sample], penalty: float, n_threads: int | None, check: Check) -> None:
        self.samples, self.penalty, self.n_threads, self.check = samples, penalty, n_threads, check
        self.n = sum(sample.n for sample in samples)
        self.path_penalty = 0.5 * penalty * math.log(self.n) * len(samples)
        self._counted = BicScore(samples[0], penalty=penalty)
        self.n_fitted = self.n_cached = 0
        self._memory: dict[Hashable, JointFit] = {}

    def __call__(self, models: Sequence[FactorModel]) -> list[JointFit]:
        """Fit many models; those visited before are remembered."""
        new = {model.key: model for model in models if model.key not in self._memory}
        self.n_fitted += len(new)
        self.n_cached += len(models) - len(new)
        fitted: dict[Hashable, list[StructuralFit]] = {key: [] for key in new}
        for sample in self.samples:
            self.check()
            structural = [StructuralModel(model, (), ()) for model in new.values()]
            arcs = [model.full(model.by_roles) for model in structural]
            problems = [Problem(m.pattern_along(a), sample) for m, a in zip(structural, arcs, strict=True)]
            starts = [problem.unknown for problem in problems]
            solutions = solve(
                problems,
                starts,
                gain=BUDGET.fit_gain,
                max_steps=BUDGET.most_steps,
                n_threads=self.n_threads,
                check=self.check,
            )
            for key, own, problem, solution in zip(new, structural, problems, solutions, strict=True):
                fitted[key].append(StructuralFit(own, problem, solution.x, max(solution.discrepancy, 0.0)))
        for key, model in new.items():
            self._memory[key] = self._joined(model, tuple(fitted[key]))
        return [self._memory[model.key] for model in models]

    def _joined(self, model: FactorModel, fits: tuple[StructuralFit, ...]) -> JointFit:
        value = -0.5 * sum(fit.problem.sample.n * fit.discrepancy for fit in fits)
        value -= self.path_penalty * self._counted.dimension(model) + self._counted.prior(model)
        gains, structural = SummedBic(fits, self.path_penalty / self.n), fits[0].model
        full = structural.full(structural.by_roles)
        arcs = best_allowed(structural, gains, structural.by_roles)
        saved = self.n * (gains.total(arcs) - gains.total(full))
        return JointFit(model, fits, value + max(saved, 0.0), arcs)

    def climb(self, models: Sequence[FactorModel], rules: Rules | None, steps: list[Step]) -> JointFit:
        """The best of some models, and moves from it until none improves the joint score."""

        def moved(here: JointFit) -> Proposal[JointFit] | None:
            options = [model for model in self._moves(here) if is_allowed(model, rules)]
            if not options:
                return None
            best = max(self(options), key=lambda fit: fit.value)
            reason = f"the joint score of {len(self.samples)} groups rises by {best.value - here.value:.2f}"
            return Proposal("other parents or latents merged", best, reason)

        best = max(self(models), key=lambda fit: fit.value)
        log = Log(Recorder(steps, self), "Groups of people")
        return climb(best, [moved], least_rise=BUDGET.least_rise, check=self.check, log=log)

    def _moves(self, found: JointFit) -> list[FactorModel]:
        """Models near by: other parents for items by closed forms, all that gain at once, latents merged."""
        model, G = found.model, len(found.model.sizes)
        masks = parent_sets(2, G, model.parents)
        allowed = latents_of(masks, model.sizes)
        priors = self._counted.priors(np.bitwise_count(masks).astype(np.int64), G)
        value = -(self.path_penalty * allowed.sum(axis=1) + priors) + np.zeros((len(model.parents), 1))
        m = sum(model.sizes)
        for fit in found.fits:
            cov = np.ascontiguousarray(fit.cov[:m, :m])
            corr = np.array(fit.problem.sample.corr)
            table = relocated(corr, fit.loadings, cov, fit.noise, masks, allowed)
            value = value + fit.problem.sample.n * table.likelihoods
        now = np.arange(len(model.parents)), np.searchsorted(masks, model.parents)
        rise = value - value[now][:, None]
        rise[now] = -np.inf
        likely = np.argwhere(rise > -BUDGET.slack)
        order = np.argsort(-rise[likely[:, 0], likely[:, 1]], kind="stable")[: 4 * BUDGET.n_of_kind]
        single = [model.with_parents(int(j), int(masks[c])) for j, c in likely[order]]
        single = [other for other in single if other.is_valid][: BUDGET.n_of_kind]
        together = model
        for j in range(len(model.parents)):
            c = int(rise[j].argmax())
            other = together.with_parents(j, int(masks[c])) if rise[j, c] > 0 else together
            together = other if other.is_valid else together
        drops = [
            model.with_parents(j, mask & ~(1 << g))
            for j, mask in enumerate(model.parents)
            for g in range(G)
            if mask >> g & 1 and mask != 1 << g
        ]
        merged = sorted(combinations(range(G), 2), key=lambda pair: -self._closeness(found, *pair))[
            : BUDGET.n_merged_over_people
        ]
        new = [together, *single, *drops, *(_merged(model, a, b) for a, b in merged)]
        return list({other.key: other for other in new if other.key != model.key and other.is_valid}.values())

    def _closeness(self, found: JointFit, a: int, b: int) -> float:
        """Mean absolute correlation of two groups of latents."""
        first, second = found.model.groups[a], found.model.groups[b]
        parts = []
        for fit in found.fits:
            C = fit.cov[np.ix_([*first, *second], [*first, *second])]
            unit = np.sqrt(np.diag(C))
            parts.append(np.abs(C / np.outer(unit, unit))[: len(first), len(first) :].mean())
        return float(np.mean(parts))


def _merged(model: FactorModel, a: int, b: int) -> FactorModel:
    """Two groups of latents as one, as large as the larger."""
    bits = 1 << a | 1 << b
    parents = tuple(mask & ~(1 << b) | (1 << a if mask & bits else 0) for mask in model.parents)
    sizes = tuple(max(model.sizes[a], model.sizes[b]) if g == a else k for g, k in enumerate(model.sizes))
    return FactorModel(model.observed, sizes, parents).without_group(b)


@dataclass(frozen=True)
class GroupsSearch:
    """Rows of several groups of people, and what a search of them needs."""

    sample: Sample
    options: Options
    clock: Clock

    @cached_property
    def parts(self) -> Mapping[str, Sample]:
        """The sample of each group of people."""
        whole = replace(self.sample, covariates=self.options.roles.covariates, outcomes=self.options.roles.outcomes)
        return whole.by_group(self.options.missing)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The indicators."""
        return tuple(name for name in self.sample.names if name not in self.options.roles.names)

    def discover(self, search: Search) -> Discovery:
        """One class for all groups."""
        about = (self.options.knowledge.about_groups if self.options.knowledge else None) or None
        rules = rules_of(about, self.items, self.options.max_group_size) if about else None
        given = [part.condition_on_covariates().select(self.items) for part in self.parts.values()]
        pooled = search(within_groups([_standardised(part) for part in given]), about, ())
        steps: list[Step] = []
        n = [effective_n(part.n, pooled.tolerance) for part in given]
        score = JointScore(
            [Sample(self.items, np.array(part.corr.round(10)), m) for part, m in zip(given, n, strict=True)],
            self.options.penalty,
            self.options.n_threads,
            self.clock.check,
        )
        measured = pooled.cpdag
        with self.clock.listening(), self.clock.ending_a_stage():
            models = [model_of_class(pooled.cpdag, self.items)] if pooled.cpdag.latent_groups else []
            for part in given:
                # Where its time was over before a first model, the search of a group brings nothing.
                with suppress(SearchStopped):
                    own = search(part, about, (pooled.cpdag,)).cpdag
                    models += [model_of_class(own, self.items)] if own.latent_groups else []
            if models:
                best = score.climb(models, rules, steps)
                if best.model.key != models[0].key or not pooled.cpdag.latent_groups:
                    measured = self._named(best, rules)
        return self._connected(pooled, measured, n, steps)

    def _named(self, best: JointFit, rules: Rules | None) -> CPDAG:
        """The class of a measurement model, latents numbered by their first indicators, or named as they are known."""
        cpdag = in_columns(best.model.along(best.arcs), None, self.items).cpdag
        if self.options.knowledge and rules:
            cpdag, _ = informed(cpdag, self.options.knowledge.about_groups, rules)
        return cpdag

    def _connected(self, pooled: Discovery, measured: CPDAG, n: Sequence[float], steps: list[Step]) -> Discovery:
        """The graph over latents, covariates and outcomes, and the fits."""
        roles, n_threads = self.options.roles, self.options.n_threads
        model = StructuralModel(model_of_class(measured, self.items), roles.covariates, roles.outcomes)
        decided = known_paths(model, self.options.knowledge, self.options.max_group_size)
        paths = Paths(model.by_roles.required | decided.required, model.by_roles.forbidden | decided.forbidden)
        order = (*self.items, *roles.covariates, *roles.outcomes)
        samples = [
            Sample(order, np.array(part.select(order).corr.round(10)), m)
            for part, m in zip(self.parts.values(), n, strict=True)
        ]
        structural = StructuralSearch(samples, model, paths, self.options.penalty, self.clock, n_threads)
        with self.clock.listening():
            with self.clock.ending_a_stage():
                structural.go()
            graph = structural.class_of(structural.arcs, measured, self.sample.names, decided)
            check = self.clock.check_last_fit
            whole = replace(within_groups(self.parts.values()), margins=margins_of(self.sample))
            (fit,) = fit_many([graph], whole, n_threads=n_threads, check=check)
            fits = {
                label: with_full_information(fit_many([graph], part, check=check)[0], check)
                for label, part in self.parts.items()
            }
        dimension = int(fit.dimension)
        return replace(
            pooled,
            cpdag=graph,
            fit=fit,
            by_group=fits,
            trace=Trace([*pooled.trace, *steps, *structural.steps]),
            remarks=tuple(self._remarks(pooled, graph, fits, structural)),
            runners_up=structural.runners_up(self.options.n_runners, measured, self.sample.names, decided, dimension),
            partitions=pooled.partitions if measured is pooled.cpdag else (),
            selected_partition=pooled.selected_partition if measured is pooled.cpdag else 0,
            stopped=stopped_in_words(self.clock),
            interrupted=self.clock.is_interrupted,
        )

    def _remarks(
        self, pooled: Discovery, graph: CPDAG, fits: Mapping[str, Fit], structural: StructuralSearch
    ) -> Iterable[str]:
        if stopped := stopped_in_words(self.clock):
            yield distrust(stopped)
        before = {str(remark) for remark in (*remarks_on_fit(pooled.fit), *remarks_on(pooled.cpdag), pooled.stopped)}
        yield from (remark for remark in pooled.remarks if str(remark) not in before)
        chi2, df, p = tested_together(fits.values())
        sizes = ", ".join(f"{label} ({fit.n_samples:.0f})" for label, fit in fits.items())
        yield (
            f"One structure for {len(fits)} groups, {sizes}, each with parameters of its own: chi-square {chi2:.2f} on "
            f"{df} df, p {apa.p_value(p, '= ')}. The estimates shown are those of all rows, each less the means of its "
            f"group, as are all other indices of fit.{self._other_test(fits)}"
        )
        yield from (effect.sentence for effect in structural.found)
        yield from remarks_on(graph, bool(self.clock.stopped))
        worst = max(fits, key=lambda label: fits[label].rmsea)
        yield from (distrust(f"In {worst}: {remark}") for remark in remarks_on_fit(fits[worst]))

    def _other_test(self, fits: Mapping[str, Fit]) -> str:
        """Why a comparison of these groups, which has means, has another chi-square; empty if it has the same."""
        if any("ordinal" in fit.sample.kinds for fit in fits.values()):
            return (
                " This chi-square is of polychoric correlations; the comparison of groups takes answers as numbers and "
                "has means, so that its chi-square is another."
            )
        if any(reported(fit).robust is not None for fit in fits.values()):
            return (
                " This chi-square is corrected for rows that are not normal; the comparison of groups is so with "
                "estimator='MLR'."
            )
        return ""


def _standardised(sample: Sample) -> Sample:
    """The same with correlations for covariances: a group with larger variances should not count for more."""
    return Sample(sample.names, np.array(sample.corr), sample.n, sample.mean)
