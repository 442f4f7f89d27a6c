"""LGES from a sample to a class, stage by stage.

::

    sample ─► canonical order ─┬─ criterion="bic":    proposals ─► measurement model ─► edges between latents ─┐
                               └─ criterion="delta":  S_init ─► Algorithm 1 ─► Algorithm 2 ────────────────────┤
                                                                                                               ▼
    Discovery ◄─ are there latents at all? ◄─ last fit ◄─ knowledge: members that agree, names ◄─ columns' order

Each stage is one call in :func:`discover`; what it does is in a module of its own:

===========================  =================================================================================
canonical order              :mod:`unmeasured.search.canonical`
proposals                    :mod:`unmeasured.search.proposals`: measurement models from closed forms, no fits
measurement model            :mod:`unmeasured.search.refine`; with many variables :mod:`unmeasured.search.pieces`
edges between latents        :mod:`unmeasured.search.latent_graph`
both, the best of several    :mod:`unmeasured.search.bic`
Algorithms 1 and 2           :mod:`unmeasured.search.paper`
knowledge                    :mod:`unmeasured.search.guided`
are there latents at all?    :mod:`unmeasured.search.observed`
the loop of every climb      :mod:`unmeasured.search.climb`
time limits, Ctrl-C          :mod:`unmeasured.search.clock`
limits of what is tried      :mod:`unmeasured.search.budget`
===========================  =================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.data.sample import Sample
from unmeasured.errors import ModelError, SearchStopped
from unmeasured.graphs import CPDAG
from unmeasured.knowledge.known import Knowledge
from unmeasured.knowledge.rules import Rules
from unmeasured.knowledge.satisfy import rules_of
from unmeasured.remarks import distrust
from unmeasured.search.bic import Best, BicSearch, best_from_above, measurement_models
from unmeasured.search.budget import BUDGET
from unmeasured.search.canonical import canonical, in_order_of
from unmeasured.search.clock import Clock
from unmeasured.search.discovery import (
    Discovery,
    independent_variables,
    nothing_latent,
    remarks_on,
    remarks_on_fit,
    remarks_on_leftover,
    with_isolated,
)
from unmeasured.search.guided import NOT_COMPARED, agreeing, cost_in_words, informed, paths_of
from unmeasured.search.hierarchy import raise_levels, raise_population, raised_as_known
from unmeasured.search.model import model_of_class
from unmeasured.search.observed import questioned
from unmeasured.search.paper.phase1 import run_phase1
from unmeasured.search.paper.phase2 import run_phase2
from unmeasured.search.paper.state import State, initial_state
from unmeasured.search.raised import RaisedClass
from unmeasured.search.refine import Found, Guidance, OwnMove
from unmeasured.search.score import BicScore, LikelihoodScore, default_delta
from unmeasured.search.trace import Step, Steps, Trace
from unmeasured.sem.fit import Fit, fit_many
from unmeasured.sem.parameters import pattern_of
from unmeasured.sem.savings import effects_along

Criterion = Literal["bic", "delta"]


@dataclass(frozen=True)
class Measured:
    """Measurement models, the best first, that a search goes on from, and the steps to them."""

    models: Sequence[Found]
    steps: Steps


def measure(
    sample: Sample,
    *,
    penalty: float,
    max_group_size: int | None,
    n_threads: int | None,
    moves: Sequence[OwnMove],
    verbose: bool,
    starts: Sequence[CPDAG],
    clock: Clock,
) -> Measured:
    """The first stage of :func:`discover` by "bic" alone: who measures whom."""
    data, steps = canonical(sample), Steps(verbose, clock)
    score = BicScore(data, penalty=penalty, n_threads=n_threads, check=clock.check_measuring)
    with clock.listening():
        guidance = _guidance(data, _largest_group(sample, max_group_size), moves, starts, None)
        return Measured(measurement_models(score, guidance, steps, clock), steps)


def _largest_group(sample: Sample, max_group_size: int | None) -> int:
    return min(max_group_size or len(sample.names), len(sample.names) // 2)


def _guidance(
    data: Sample, largest: int, moves: Sequence[OwnMove], starts: Sequence[CPDAG], rules: Rules | None
) -> Guidance:
    models = [model_of_class(graph, data.names) for graph in starts if graph.groups]
    return Guidance(largest, moves, models, rules)


def discover(
    sample: Sample,
    *,
    criterion: Criterion = "bic",
    delta: float | None = None,
    penalty: float = 1.0,
    max_group_size: int | None = None,
    prune: bool = True,
    hierarchy: bool = True,
    n_threads: int | None = None,
    time_limit: float | None = None,
    moves: Sequence[OwnMove] = (),
    verbose: bool = False,
    starts: Sequence[CPDAG] = (),
    n_runners: int = 0,
    knowledge: Knowledge | None = None,
    clock: Clock | None = None,
    measured: Measured | None = None,
) -> Discovery:
    """Recover the CPDAG over latent groups and observed variables.

    ``starts``: answers to similar data, which "bic" climbs from instead of most of its own proposals. ``n_runners``:
    how many runners-up it hands back at most. ``knowledge``: the answer agrees with it. ``clock``: one that
    runs already. ``measured``: what :func:`measure` has found with the same options, where the search goes on from it.

    Raises
    ------
    SearchStopped
        Where the search was interrupted, or its time was over, before there was a first model.
    """
    initial_state(sample.names)  # refuses what no factor model can describe
    largest = _largest_group(sample, max_group_size)
    data = canonical(sample)
    # Contradictions are refused before the search.
    rules = rules_of(knowledge, data.names, max_group_size) if knowledge else None
    if knowledge and knowledge.above and not hierarchy:
        known_above = next(iter(knowledge.above))
        raise ModelError(
            "Latents above others are not looked for with hierarchy=False, covariates or outcomes, but "
            f"{known_above!r} is known to be one. Drop one of them."
        )
    clock = Clock(time_limit) if clock is None else clock
    steps = Steps(verbose, clock) if measured is None else measured.steps
    best: Best | None = None
    raised: RaisedClass | None = None
    unplaced: tuple[str, ...] = ()
    # In a population the penalty vanishes against the likelihood: what is left is the paper's rule.
    is_paper = criterion == "delta" or math.isinf(sample.n)
    with clock.listening():
        if is_paper:
            tolerance = default_delta(sample.n) if delta is None else delta
            above = partial(raise_population, data, n_threads, steps, clock.check)
            is_raised = hierarchy and criterion == "bic" and rules is None
            state, unplaced, raised = by_tolerance(
                data, tolerance, largest, prune, n_threads, steps, clock, above if is_raised else None
            )
        else:
            guidance = _guidance(data, largest, moves, starts, rules)
            known_models = None if measured is None else measured.models
            search = BicSearch(data, guidance, clock, n_threads, n_runners, known_models)
            best = best_from_above(search, penalty, steps)
            state = best.state if best else None
        if hierarchy and best is not None:
            steps.say("Latents above latents")
            score = BicScore(data, penalty=penalty, n_threads=n_threads, check=clock.check)
            paths = paths_of(best.near.model, rules)
            known = rules.blocks_above(best.near.model.parents) if rules else ()
            raised = raised_as_known(best.near, known, score, paths) if known else None
            most = rules.max_levels if rules else None
            with clock.ending_a_stage():
                raised = raise_levels(
                    best.near, best.state, best.value, score, paths, steps, clock.check, raised, most
                )  # fmt: skip
        steps.close()
        if state is None:
            return _nothing_found(sample, clock, Trace(steps), knowledge, rules)
        if raised is None:
            ordered, latents = in_order_of(state, sample.names)
            cpdag = with_isolated(ordered.cpdag, sample.names)
        else:
            cpdag, latents = raised.cpdag(sample.names)
            cpdag = with_isolated(cpdag, sample.names)
        named: tuple[str, ...] = ()
        if knowledge and rules:
            cpdag, named = informed(cpdag, knowledge, rules_of(knowledge, sample.names, max_group_size))
        # With many variables a fit takes long, and begins where the search has come to.
        near = best.fitted or best.near if best and len(sample.names) > BUDGET.many_variables else None
        near = raised.near.flat if near is not None and raised is not None else near
        start = None if near is None else start_near(cpdag, near, dict(zip(cpdag.latents, latents, strict=True)))
        (fit,) = fit_many([cpdag], sample, starts=[start], n_threads=n_threads, check=clock.check_last_fit)
    stopped, remarks = _remarks(cpdag, fit, clock, unplaced)
    runners = best.visited.runners_up(state, sample.names) if best else ()
    found = Discovery(cpdag, fit, Trace(steps), remarks, runners, named, stopped, clock.is_interrupted)
    # The paper's rule is left as it is, whoever gives knowledge of latents knows that there are some, and the best
    # factor model may not have been found yet where the search was stopped.
    return found if is_paper or rules or stopped else questioned(found, sample, data, penalty)


def _remarks(cpdag: CPDAG, fit: Fit, clock: Clock, unplaced: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Why the search was stopped, where it was, and all remarks, that one first."""
    remarks = [*remarks_on(cpdag, bool(clock.stopped)), *remarks_on_leftover(unplaced)]
    remarks += remarks_on_fit(fit) if fit.converged or not clock.stopped else []
    if not clock.stopped:
        return "", tuple(remarks)
    stopped = stopped_in_words(clock, fit)
    return stopped, (distrust(stopped), *remarks)


def stopped_in_words(clock: Clock, fit: Fit) -> str:
    """That a search did not come to its end, and what its answer is."""
    stopped = f"{clock.stopped}: this is the best model found so far, not the end of the search."
    return stopped + ("" if fit.converged else " Its estimates have not converged.")


def _nothing_found(
    sample: Sample, clock: Clock, trace: Trace, knowledge: Knowledge | None, rules: Rules | None
) -> Discovery:
    """The answer that there are no latents; refused where the search did not come to its end."""
    if clock.stopped:
        error = SearchStopped(
            f"{clock.stopped}, before a first model was found: whether there are latents behind these variables is not "
            "known yet. Give the search more time, or fewer variables."
        )
        error.is_interrupted = clock.is_interrupted
        raise error
    empty = nothing_latent(sample, trace)
    if knowledge and rules:
        informed(
            empty.cpdag, knowledge, rules_of(knowledge, sample.names)
        )  # refuses to find nothing where something is known
    return empty


def start_near(cpdag: CPDAG, near: Found, latents: Mapping[str, int]) -> Floats:
    """Starting values for a class from the fit of its measurement model; ``latents``: their positions in that fit."""
    pattern, m = pattern_of(cpdag), len(near.effects)
    position = {**latents, **{name: m + j for j, name in enumerate(near.model.observed)}}
    at = np.array([position[name] for name in pattern.names])
    source, target = at[pattern.source], at[pattern.target]
    causes, between = np.zeros((m, m), dtype=np.uint8), target < m
    causes[source[between], target[between]] = 1
    effects = np.empty_like(near.effects)
    effects_along(near.effects, near.latent_cov, causes, effects)
    x = np.empty(pattern.n_free)
    x[pattern.slot] = effects[source, target]
    is_free = pattern.slot2 >= 0
    x[pattern.slot2[is_free]] = near.noise[at[pattern.first[is_free]] - m]
    return x


def discover_knowing(
    sample: Sample, knowledge: Knowledge, is_compared: bool | None = None, **options: Any
) -> Discovery:
    """The same with what is known, and with ``is_compared`` what that costs: the search without it is made too.

    Left out: where that is cheap, without a time limit and with up to 34 variables. Where the search without knowledge
    comes to a better answer that agrees with it, that is the answer.
    """
    found = discover(sample, knowledge=knowledge, **options)
    told = f"Knowledge given: {'; '.join(map(str, knowledge.statements))}."
    if options.get("criterion") == "delta" or math.isinf(sample.n):
        return _remarking(found, told)
    is_cheap = options.get("time_limit") is None and len(sample.names) <= BUDGET.many_variables
    if found.stopped or not (is_cheap if is_compared is None else is_compared):
        return _remarking(found, told, NOT_COMPARED)
    try:
        free = discover(sample, **options)
    except SearchStopped:
        return _remarking(found, told, NOT_COMPARED)
    if free.stopped:
        return _remarking(found, told, NOT_COMPARED)
    rules = rules_of(knowledge, sample.names, options.get("max_group_size"))
    # Better by more than rounding: the same class in another order of its latents is not.
    if free.fit.bic < found.fit.bic - 1e-3 and (better := agreeing(free.cpdag, knowledge, rules)) is not None:
        cpdag, named = better
        (fit,) = fit_many([cpdag], sample, n_threads=options.get("n_threads"))
        found = replace(free, cpdag=cpdag, fit=fit, named=named)
    return _remarking(found, told, cost_in_words(knowledge, found.fit.bic, free.fit.bic, free.cpdag))


def _remarking(found: Discovery, *remarks: str) -> Discovery:
    """The discovery with more remarks, after the one that it was stopped."""
    n_first = 1 if found.stopped else 0
    return replace(found, remarks=(*found.remarks[:n_first], *remarks, *found.remarks[n_first:]))


def by_tolerance(
    sample: Sample,
    delta: float,
    max_group_size: int | None,
    prune: bool,
    n_threads: int | None,
    steps: list[Step],
    clock: Clock,
    above: Callable[[State], RaisedClass | None] | None = None,
) -> tuple[State | None, tuple[str, ...], RaisedClass | None]:
    """The paper's search, with the corrections of ``docs/departures.md``; and the variables it could not place.

    ``above`` looks for latents above latents before edges are deleted; where there are some, none are.
    """
    alone = independent_variables(sample)
    linked = [name for name in sample.names if name not in alone]
    if len(linked) < 2:
        return None, (), None
    data = sample.select(linked)
    score = LikelihoodScore(data, n_threads=n_threads, check=clock.check)
    start = initial_state(data.names)  # S_init, Definition 3
    measured, leftover = run_phase1(start, score, delta, max_group_size=max_group_size, prune=prune)  # Algorithm 1
    steps += measured.trace
    unplaced = tuple(linked[i] for i in leftover)
    if not measured.state.groups:
        return None, unplaced, None
    if above is not None and not unplaced and (raised := above(measured.state)) is not None:
        return measured.state, unplaced, raised
    final = run_phase2(measured.state, score, delta, prune=prune)  # Algorithm 2
    steps += final.trace
    return final.state, unplaced, None
