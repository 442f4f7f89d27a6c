"""LGES from a sample to an answer, stage by stage.

::

    discover            groups of people, covariates, outcomes ─► their graph, over the latents of ...
       ▼
    discover_items      may the model be off? levels that come back in replicates, beside or instead of ...
       ▼
    discover_exactly    canonical order ─┬─ BIC:    proposals ─► measurement model ─► edges ─► latents above latents ─┐
                                         └─ paper:  S_init ─► Algorithm 1 ─► Algorithm 2 ─────────────────────────────┤
                                                                                                                      ▼
                        Discovery ◄─ are there latents at all? ◄─ last fit ◄─ knowledge: members that agree ◄─ columns

Each stage is one call; what it does is in a module of its own below ``search/``:

===========================  =================================================================================
canonical order              ``canonical``
proposals                    ``measurement/proposals``: measurement models from closed forms, no fits
measurement model            ``measurement/refine``; with many variables ``measurement/subproblems``
edges between latents        ``latent_graph/edges``
both, the best of several    ``bic``
latents above latents        ``hierarchy``
Algorithms 1 and 2           ``paper``
knowledge                    ``guided``
columns, last fit            ``final_fit``
are there latents at all?    ``observed``
misfit that is tolerated     ``close_fit/tolerance``
covariates, groups           ``roles``
===========================  =================================================================================

All use the one loop (:mod:`unmeasured.search.climb`), the score (:mod:`unmeasured.search.score`), limits of what is
tried (:mod:`unmeasured.search.budget`), and a clock for time limits and Ctrl-C (:mod:`unmeasured.search.clock`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from unmeasured.data.sample import Sample
from unmeasured.errors import ModelError, SearchStopped
from unmeasured.graphs import CPDAG
from unmeasured.knowledge.known import Knowledge
from unmeasured.knowledge.rules import Rules
from unmeasured.knowledge.satisfy import rules_of
from unmeasured.models.fit import fit_many
from unmeasured.search.bic import Best, BicSearch, Measured, Visited, best_from_above
from unmeasured.search.budget import BUDGET
from unmeasured.search.canonical import canonical
from unmeasured.search.clock import Clock
from unmeasured.search.close_fit.tolerance import Tolerant, discover_within
from unmeasured.search.discovery import Discovery, independent_variables, nothing_found, remarks_in_all
from unmeasured.search.final_fit import in_columns, in_time
from unmeasured.search.guided import NOT_COMPARED, agreeing, cost_in_words, informed, paths_of
from unmeasured.search.hierarchy import RaisedClass, raise_levels, raise_population, raised_as_known
from unmeasured.search.measurement.refine import Guidance
from unmeasured.search.model import FactorModel, model_of_class
from unmeasured.search.observed import questioned
from unmeasured.search.options import Options
from unmeasured.search.paper.phase1 import run_phase1
from unmeasured.search.paper.phase2 import run_phase2
from unmeasured.search.paper.state import initial_state
from unmeasured.search.roles.covariates import discover_with_roles
from unmeasured.search.roles.multigroup import GroupsSearch
from unmeasured.search.score import BicScore, Fitted, LikelihoodScore, default_delta
from unmeasured.search.trace import Steps, Trace


def discover(sample: Sample, options: Options, clock: Clock | None = None) -> Discovery:
    """The class behind a sample; with covariates, outcomes and groups of people, where there are any.

    Raises
    ------
    SearchStopped
        Where the search was interrupted, or its time was over, before there was a first model.
    """
    clock = clock or Clock(None)
    if not options.roles and not sample.groups:
        return discover_items(sample, options, clock)
    # Levels above and residual pairs are looked for among items alone; runners-up are graphs over all nodes.
    about_items = replace(options, hierarchy=False, residual_covariances=False, n_runners=0)

    def search(data: Sample, known: Knowledge | None, near: Sequence[CPDAG] = ()) -> Discovery:
        asked = replace(about_items, knowledge=known)
        return discover_items(data, replace(asked, tolerance=0.0, starts=near) if near else asked, clock)

    if sample.groups:
        return GroupsSearch(sample, options, clock).discover(search)
    return discover_with_roles(sample, options, clock, search)


def discover_items(sample: Sample, options: Options, clock: Clock) -> Discovery:
    """The class behind indicators: exact where a factor model holds, or within the misfit that is tolerated."""
    exactly = Exactly(options, clock)
    if options.is_exact_for(sample):
        return exactly(sample)
    tolerance = BUDGET.close_rmsea if options.tolerance is None else options.tolerance
    within = Tolerant(
        sample, tolerance, options.penalty, clock, options.n_threads, options.verbose, options.residual_covariances,
        options.hierarchy, options.seed,
    )  # fmt: skip
    if options.knowledge or options.moves:
        return within.searched(exactly)
    return discover_within(within, options.tolerance is None, exactly)


@dataclass(frozen=True)
class Exactly:
    """The search by the exact criterion, whole or its first stage."""

    options: Options
    clock: Clock

    def __call__(self, sample: Sample, measured: Measured | None = None) -> Discovery:
        """The class behind a sample, from measurement models that were found before or from the beginning."""
        return discover_exactly(sample, self.options, self.clock, measured)

    def measure(self, sample: Sample) -> Measured:
        """Who measures whom, without knowledge."""
        search = _bic_search(canonical(sample), self.options, None, self.clock)
        with self.clock.listening():
            return search.measure(self.options.penalty, Steps(self.options.verbose, self.clock))


def discover_exactly(sample: Sample, options: Options, clock: Clock, measured: Measured | None = None) -> Discovery:
    """The class by the exact criterion, in agreement with what is known, and what that costs.

    The search without knowledge is made too where that is cheap, or asked for; where it comes to a better answer that
    agrees, that is the answer.
    """
    found = by_criterion(sample, options, clock, measured)
    known = options.knowledge
    if not known:
        return found
    told = f"Knowledge given: {'; '.join(map(str, known.statements))}."
    if options.is_paper_for(sample):
        return found.remarking(told)
    is_cheap = options.time_limit is None and len(sample.names) <= BUDGET.many_variables
    if found.stopped or not (
        is_cheap if options.compare_without_knowledge is None else options.compare_without_knowledge
    ):
        return found.remarking(told, NOT_COMPARED)
    try:
        free = by_criterion(sample, replace(options, knowledge=None), clock)
    except SearchStopped:
        return found.remarking(told, NOT_COMPARED)
    if free.stopped:
        return found.remarking(told, NOT_COMPARED)
    rules = rules_of(known, sample.names, options.max_group_size)
    # Better by more than rounding: the same class in another order of its latents is not.
    if free.fit.bic < found.fit.bic - BUDGET.same_bic and (better := agreeing(free.cpdag, known, rules)) is not None:
        cpdag, named = better
        (fit,) = fit_many([cpdag], sample, n_threads=options.n_threads)
        found = replace(free, cpdag=cpdag, fit=fit, named_latents=named)
    return found.remarking(told, cost_in_words(known, found.fit.bic, free.fit.bic, free.cpdag))


@dataclass(frozen=True)
class Structure:
    """What a criterion comes to, before it is put into the order of the columns and fitted a last time."""

    model: FactorModel  # who measures what, and the class of edges between latents
    raised: RaisedClass | None = None  # with latents above latents, where there are some
    near: Fitted | None = None  # a fit near it
    visited: Visited | None = None  # classes that were fitted on the way
    unplaced: tuple[str, ...] = ()  # variables that the paper's rule could not place


def by_criterion(sample: Sample, options: Options, clock: Clock, measured: Measured | None = None) -> Discovery:
    """The class that BIC or the paper's rule leads to, fitted; it agrees with what is known."""
    initial_state(sample.names)  # refuses what no factor model can describe
    data, known = canonical(sample), options.knowledge
    rules = rules_of(known, data.names, options.max_group_size) if known else None  # refuses contradictions
    _refuse_levels_that_are_not_looked_for(options)
    steps = Steps(options.verbose, clock) if measured is None else measured.steps
    by_rule = _by_paper if options.is_paper_for(sample) else partial(_by_bic, measured=measured)
    with clock.listening():
        found = by_rule(data, options, rules, steps, clock)
        if found is None:
            steps.close()
            empty = nothing_found(sample, clock, Trace(steps))
            if known and rules:  # refuses to find nothing where something is known
                informed(empty.cpdag, known, rules_of(known, sample.names))
            return empty
        columns = in_columns(found.model, found.raised, sample.names)
        cpdag, named = columns.cpdag, tuple[str, ...]()
        if known and rules:
            cpdag, named = informed(cpdag, known, rules_of(known, sample.names, options.max_group_size))
        start = columns.start(found.near, found.raised, cpdag)
        steps.say("Last fit")
        (fit,) = fit_many([cpdag], sample, starts=[start], n_threads=options.n_threads, check=clock.check_last_fit)
        fit = in_time(fit, clock)
        steps.close()
    stopped, remarks = remarks_in_all(cpdag, fit, clock, found.unplaced)
    runners = found.visited.runners_up(found.model, sample.names) if found.visited else ()
    answer = Discovery(cpdag, fit, Trace(steps), remarks, runners, named, stopped, clock.is_interrupted)
    # The paper's rule is left as it is, whoever gives knowledge of latents knows that there are some, and the best
    # factor model may not have been found yet where the search was stopped.
    is_final = options.is_paper_for(sample) or rules is not None or bool(stopped)
    return answer if is_final else questioned(answer, sample, data, options.penalty)


def _bic_search(data: Sample, options: Options, rules: Rules | None, clock: Clock) -> BicSearch:
    starts = [model_of_class(graph, data.names) for graph in options.starts if graph.latent_groups]
    guidance = Guidance(options.largest_group(data), options.moves, starts, rules)
    return BicSearch(data, guidance, clock, options.n_threads, options.n_runners)


def _by_bic(
    data: Sample, options: Options, rules: Rules | None, steps: Steps, clock: Clock, measured: Measured | None = None
) -> Structure | None:
    """By extended BIC: measurement model, edges between latents, common causes of latents; None: nothing latent."""
    search = replace(_bic_search(data, options, rules, clock), measured=measured)
    best = best_from_above(search, options.penalty, steps)
    if best is None:
        return None
    raised = _latents_above(data, best, options, rules, steps, clock) if options.hierarchy else None
    return Structure(best.model, raised, best.fitted or best.near, best.visited)


def _latents_above(
    data: Sample, best: Best, options: Options, rules: Rules | None, steps: Steps, clock: Clock
) -> RaisedClass | None:
    """Common causes of the latents: those that are known, then those that explain more than edges do."""
    steps.say("Latents above latents")
    score = BicScore(data, penalty=options.penalty, n_threads=options.n_threads, check=clock.check)
    paths = paths_of(best.near.model, rules)
    known = rules.blocks_above(best.near.model.parents) if rules else ()
    raised = raised_as_known(best.near, known, score, paths) if known else None
    most = rules.max_levels if rules else None
    with clock.ending_a_stage():
        raised = raise_levels(best.near, best.model, best.value, score, paths, steps, clock.check, raised, most)
    return raised


def _by_paper(data: Sample, options: Options, rules: Rules | None, steps: Steps, clock: Clock) -> Structure | None:
    """By the paper's rule, with the corrections of ``docs/departures.md``; None: nothing latent.

    For a population, where BIC's penalty vanishes against the likelihood, with latents above latents: they are looked
    for before edges are deleted, and where there are some, none are.
    """
    delta = default_delta(data.n) if options.delta is None else options.delta
    alone = independent_variables(data)
    linked = [name for name in data.names if name not in alone]
    if len(linked) < 2:
        return None
    score = LikelihoodScore(data.select(linked), n_threads=options.n_threads, check=clock.check)
    start = initial_state(linked)  # S_init, Definition 3
    measured, leftover, way = run_phase1(
        start, score, delta, max_group_size=options.largest_group(data), prune=options.prune
    )  # Algorithm 1
    steps += way
    if not measured.sizes:
        return None
    unplaced = tuple(linked[i] for i in leftover)
    if options.hierarchy and options.criterion == "bic" and rules is None and not unplaced:
        raised = raise_population(data, options.n_threads, steps, clock.check, measured)
        if raised is not None:
            return Structure(measured, raised)
    final, way = run_phase2(measured, score, delta, prune=options.prune)  # Algorithm 2
    steps += way
    return Structure(final, unplaced=unplaced)


def _refuse_levels_that_are_not_looked_for(options: Options) -> None:
    above = options.knowledge.above if options.knowledge else {}
    if above and not options.hierarchy:
        raise ModelError(
            "Latents above others are not looked for with hierarchy=False, covariates or outcomes, but "
            f"{next(iter(above))!r} is known to be one. Drop one of them."
        )
