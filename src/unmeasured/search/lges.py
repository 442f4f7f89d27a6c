"""LGES: the phases and the result, on one screen; and the estimator.

::

    criterion="delta"   sample → S_init → Phase 1 (Algorithm 1) ──┐
                                                                  ├→ Phase 2 (Algorithm 2) → Discovery
    criterion="bic"     sample → proposals → moves over them ─────┘
                                 who measures whom                   how latents cause one another
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
from threadpoolctl import ThreadpoolController

from unmeasured.answer.runners import RunnerUp
from unmeasured.arrays import Floats
from unmeasured.data.missing import Missing
from unmeasured.data.sample import Cor, Sample
from unmeasured.errors import SearchStopped, UnmeasuredError
from unmeasured.graphs import CPDAG
from unmeasured.knowledge.known import Knowledge
from unmeasured.knowledge.rules import Rules
from unmeasured.knowledge.satisfy import rules_of
from unmeasured.remarks import distrust
from unmeasured.score import LikelihoodScore, default_delta
from unmeasured.search import options
from unmeasured.search.base import Search
from unmeasured.search.bic import MANY_VARIABLES, Best, BicSearch
from unmeasured.search.canonical import canonical, in_order_of
from unmeasured.search.clock import Clock, checked_time_limit
from unmeasured.search.descent import best_from_above
from unmeasured.search.discovery import (
    Discovery,
    independent_variables,
    nothing_latent,
    remarks_on,
    remarks_on_fit,
    remarks_on_leftover,
    with_isolated,
)
from unmeasured.search.informed import NO_PRICE, agreeing, informed, price_in_words
from unmeasured.search.measurement import measurement_of
from unmeasured.search.observed import questioned
from unmeasured.search.phase1 import run_phase1
from unmeasured.search.phase2 import run_phase2
from unmeasured.search.refine import Found, Guidance, Move
from unmeasured.search.state import State, initial_state
from unmeasured.search.trace import Step, Steps, Trace
from unmeasured.search.warm import are_on_disk, compile_kernels
from unmeasured.sem.fit import fit_many
from unmeasured.sem.parameters import pattern_of
from unmeasured.sem.savings import effects_along

# With more variables than this a search takes long, and is not made a second time to tell the price of knowledge.
_FEW_VARIABLES = 34
_N_RUNNERS = 40

Criterion = Literal["bic", "delta"]


def discover(
    sample: Sample,
    *,
    criterion: Criterion = "bic",
    delta: float | None = None,
    penalty: float = 1.0,
    max_group_size: int | None = None,
    prune: bool = True,
    n_threads: int | None = None,
    time_limit: float | None = None,
    moves: Sequence[Move] = (),
    verbose: bool = False,
    starts: Sequence[CPDAG] = (),
    n_runners: int = 0,
    knowledge: Knowledge | None = None,
    clock: Clock | None = None,
) -> Discovery:
    """Recover the CPDAG over latent groups and observed variables.

    ``starts``: answers to similar data, which "bic" climbs from instead of most of its own proposals. ``n_runners``:
    how many runners-up it hands back at most. ``knowledge``: the answer agrees with it. ``clock``: one that
    runs already.

    Raises
    ------
    SearchStopped
        Where the search was interrupted, or its time was over, before there was a first model.
    """
    initial_state(sample.names)  # refuses what no factor model can describe
    largest = min(max_group_size or len(sample.names), len(sample.names) // 2)
    data = canonical(sample)
    # Contradictions are refused before the search.
    rules = rules_of(knowledge, data.names, max_group_size) if knowledge else None
    clock = Clock(time_limit) if clock is None else clock
    steps = Steps(verbose, clock)
    best: Best | None = None
    leftover: tuple[str, ...] = ()
    with clock.listening():
        # In a population the penalty vanishes against the likelihood: what is left is the paper's rule.
        if criterion == "delta" or math.isinf(sample.n):
            tolerance = default_delta(sample.n) if delta is None else delta
            state, leftover = by_tolerance(data, tolerance, largest, prune, n_threads, steps, clock)
        else:
            models = [measurement_of(graph, data.names) for graph in starts if graph.groups]
            guidance = Guidance(largest, moves, models, rules)
            best = best_from_above(BicSearch(data, guidance, clock, n_threads, n_runners), penalty, steps)
            state = best.state if best else None
        steps.close()
        if state is None:
            return _nothing_found(sample, clock, Trace(steps), knowledge, rules)
        ordered, latents = in_order_of(state, sample.names)
        cpdag = with_isolated(ordered.cpdag, sample.names)
        named: tuple[str, ...] = ()
        if knowledge and rules:
            cpdag, named = informed(cpdag, knowledge, rules_of(knowledge, sample.names, max_group_size))
        # With many variables a fit takes long, and begins where the search has come to.
        near = best.near if best and len(sample.names) > MANY_VARIABLES else None
        start = None if near is None else start_near(cpdag, near, dict(zip(cpdag.latents, latents, strict=True)))
        (fit,) = fit_many([cpdag], sample, starts=[start], n_threads=n_threads, check=clock.check_last_fit)
    remarks = [*remarks_on(cpdag, bool(clock.stopped)), *remarks_on_leftover(leftover)]
    remarks += remarks_on_fit(fit) if fit.converged or not clock.stopped else []
    stopped = ""
    if clock.stopped:
        stopped = f"{clock.stopped}: this is the best model found so far, not the end of the search."
        if not fit.converged:
            stopped += " Its estimates have not converged."
        remarks = [distrust(stopped), *remarks]
    found = Discovery(
        cpdag,
        fit,
        Trace(steps),
        tuple(remarks),
        best.met.runners_up(state, sample.names) if best else (),
        named,
        stopped,
        clock.is_interrupted,
    )
    # The paper's rule is left as it is, whoever gives knowledge of latents knows that there are some, and the best
    # factor model may not have been found yet where the search was stopped.
    if criterion == "delta" or math.isinf(sample.n) or rules or stopped:
        return found
    return questioned(found, sample, data, penalty)


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


def discover_knowing(sample: Sample, knowledge: Knowledge, price: bool | None = None, **options: Any) -> Discovery:
    """The same with what is known, and with ``price`` what that costs: the search without it is made too.

    Left out: where that is cheap, without a time limit and with up to 34 variables. Where the search without knowledge
    comes to a better answer that agrees with it, that is the answer.
    """
    found = discover(sample, knowledge=knowledge, **options)
    told = f"Knowledge given: {'; '.join(map(str, knowledge.statements))}."
    if options.get("criterion") == "delta" or math.isinf(sample.n):
        return _remarking(found, told)
    is_cheap = options.get("time_limit") is None and len(sample.names) <= _FEW_VARIABLES
    if found.stopped or not (is_cheap if price is None else price):
        return _remarking(found, told, NO_PRICE)
    try:
        free = discover(sample, **options)
    except SearchStopped:
        return _remarking(found, told, NO_PRICE)
    if free.stopped:
        return _remarking(found, told, NO_PRICE)
    rules = rules_of(knowledge, sample.names, options.get("max_group_size"))
    # Better by more than rounding: the same class in another order of its latents is not.
    if free.fit.bic < found.fit.bic - 1e-3 and (better := agreeing(free.cpdag, knowledge, rules)) is not None:
        cpdag, named = better
        (fit,) = fit_many([cpdag], sample, n_threads=options.get("n_threads"))
        found = replace(free, cpdag=cpdag, fit=fit, named=named)
    return _remarking(found, told, price_in_words(knowledge, found.fit.bic, free.fit.bic, free.cpdag))


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
) -> tuple[State | None, tuple[str, ...]]:
    """The paper's search, to the letter where its letters hold; and the variables it could not settle."""
    alone = independent_variables(sample)
    linked = [name for name in sample.names if name not in alone]
    if len(linked) < 2:
        return None, ()
    data = sample.select(linked)
    score = LikelihoodScore(data, n_threads=n_threads, check=clock.check)
    start = initial_state(data.names)  # S_init, Definition 3
    measured, leftover = run_phase1(start, score, delta, max_group_size=max_group_size, prune=prune)  # Algorithm 1
    steps += measured.trace
    unsettled = tuple(linked[i] for i in leftover)
    if not measured.state.groups:
        return None, unsettled
    final = run_phase2(measured.state, score, delta, prune=prune)  # Algorithm 2
    steps += final.trace
    return final.state, unsettled


class LGES(Search):
    """Latent variable Greedy Equivalence Search.

    Parameters
    ----------
    criterion : "bic" or "delta"
        "bic": the log-likelihood less ``0.5 penalty log(N)`` for each generic dimension decides. "delta", the
        paper's rule: a deletion is kept if the log-likelihood per sample drops by at most ``delta``.
    delta : float, optional
        That tolerance; by default ``0.25 log(N) / N``.
    penalty : float
        What a dimension costs, in units of BIC's price; larger gives sparser graphs.
    max_group_size : int, optional
        Largest number of latents that may share all their indicators; None: as many as the variables allow.
    knowledge : Knowledge, optional
        What is known before the search: who measures what, how many latents there are, which paths there are. It is
        never violated; what it costs is in the remarks (``docs/knowledge.md``).
    price_knowledge : bool, optional
        Whether to search a second time, without knowledge, to tell its price; None: where that is cheap.
    prune : bool
        Refuse candidates by the closed-form bound without fitting them; the result is the same.
    cor : "auto", "pearson", "polychoric" or "spearman-normal"
        What to make of rows; see :func:`unmeasured.as_sample`.
    missing : "ml", "listwise" or "pairwise"
        What to do about holes in rows.
    n_jobs : int
        Threads for fits, -1 for all cores, or for where ``joblib.parallel_config`` says; the result does not depend on
        it.
    random_state : int
        Kept for the face of an estimator: the search draws nothing at random, and runs repeat.
    verbose : bool
        Show each step as it is taken, and about how long the search will take.
    moves : sequence of functions
        Moves of your own for "bic": each takes a measurement model and gives others, which are tried beside ours. See
        ``examples/your_own_move.py``.
    time_limit : float, optional
        Seconds within which the best model so far is returned, and said to be that (``stopped_``); from the beginning
        of ``fit``, but for compiling the kernels in the first run on a machine. Where there is no model yet,
        :class:`~unmeasured.SearchStopped` is raised. Ctrl-C ends a search in the same way.

    Attributes
    ----------
    graph_ : CPDAG
        What data can tell: the class over latent groups.
    groups_ : tuple of tuples of str
    sem_ : Fit
        A member of the class, fitted.
    result_ : Result
        The answer to read: ``summary()``, tables, names for latents, exports.
    sample_ : Sample
        Names, covariance and N as used in the search.
    trace_ : Trace
        One record per step.
    runners_up_ : list of RunnerUp
        With "bic", the classes that came closest, best first; ``result_`` has them as a table.
    stopped_ : str
        Why the search did not come to its end, in words, where Ctrl-C or the time limit ended it: then all else is of
        the best model so far, and this is the first of the remarks. Empty: it came to its end.
    remarks_ : tuple of str
        What the user should know, in words.
    n_features_in_ : int
        Number of observed variables.
    feature_names_in_ : array of str
        Their names, where the data had names.

    Examples
    --------
    >>> import math, numpy as np, unmeasured as um
    >>> truth = um.simulate.random_gnfm(n_latents=2, n_observed=6, rng=1)
    >>> parameters = um.simulate.realistic_parameters(truth, np.random.default_rng(1))
    >>> model = um.LGES(criterion="delta").fit_cov(parameters.cov(), math.inf, names=parameters.observed)
    >>> um.metrics.compare(truth, model.graph_).shd
    0
    """

    trace_: Trace
    runners_up_: list[RunnerUp]

    def __init__(
        self,
        *,
        criterion: Criterion = "bic",
        delta: float | None = None,
        penalty: float = 1.0,
        max_group_size: int | None = 3,
        knowledge: Knowledge | None = None,
        price_knowledge: bool | None = None,
        prune: bool = True,
        cor: Cor = "auto",
        missing: Missing = "ml",
        n_jobs: int = 1,
        random_state: int = 0,
        time_limit: float | None = None,
        moves: Sequence[Move] = (),
        verbose: bool = False,
    ) -> None:
        self.criterion = criterion
        self.delta = delta
        self.penalty = penalty
        self.max_group_size = max_group_size
        self.knowledge = knowledge
        self.price_knowledge = price_knowledge
        self.prune = prune
        self.cor = cor
        self.missing = missing
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.time_limit = time_limit
        self.moves = moves
        self.verbose = verbose

    def _search(self, sample: Sample) -> None:
        found = self.discover(sample, n_runners=_N_RUNNERS)
        self.graph_, self.sem_, self.runners_up_ = found.cpdag, found.fit, list(found.runners_up)
        self.trace_, self.remarks_, self._named = found.trace, found.remarks, found.named
        self.stopped_ = found.stopped

    def discover(self, sample: Sample, starts: Sequence[CPDAG] = (), n_runners: int = 0) -> Discovery:
        """The search with these options on a sample, nothing kept; ``starts``: answers to similar data."""
        options.one_of("criterion", self.criterion, get_args(Criterion))
        options.one_of("cor", self.cor, get_args(Cor))
        options.one_of("missing", self.missing, get_args(Missing))
        options.seed("random_state", self.random_state)
        moves = options.functions("moves", self.moves)
        price = options.flag("price_knowledge", self.price_knowledge, or_none=True)
        if moves and self.criterion == "delta":
            raise UnmeasuredError('moves are for criterion="bic"; the paper\'s rule has its own. Leave them out.')
        clock = self._clock()
        checked: dict[str, Any] = {
            "criterion": self.criterion,
            "delta": _checked_delta(self.delta, sample.n),
            "penalty": options.positive("penalty", self.penalty, "1 is BIC's."),
            "max_group_size": options.whole("max_group_size", self.max_group_size, or_none=True),
            "prune": options.flag("prune", self.prune),
            "n_threads": self._n_threads,
            "time_limit": self.time_limit,
            "clock": clock,
            "moves": moves,
            "verbose": options.flag("verbose", self.verbose),
            "starts": starts,
            "n_runners": n_runners,
        }
        known = _checked_knowledge(self.knowledge)
        # Threads of BLAS round differently from run to run, which can turn a search elsewhere; the matrices are small.
        with _libraries().limit(limits=1, user_api="blas"):
            if known:
                return discover_knowing(sample, known, price, **checked)
            return discover(sample, **checked)

    def _clock(self) -> Clock:
        """The clock of this fit; compiling the kernels, which the first run on a machine does, is not counted."""
        began = time.monotonic() if self._began is None else self._began
        if checked_time_limit(self.time_limit) is not None and not are_on_disk():
            before = time.monotonic()
            compile_kernels()
            began += time.monotonic() - before
        return Clock(self.time_limit, began, self._reserved)


@cache
def _libraries() -> ThreadpoolController:
    """Those loaded by now, looked for once: BLAS is loaded with numpy."""
    return ThreadpoolController()


def _checked_knowledge(knowledge: Knowledge | None) -> Knowledge | None:
    if knowledge is None or isinstance(knowledge, Knowledge):
        return knowledge
    raise UnmeasuredError(
        f"knowledge is a um.Knowledge; got {knowledge!r}. Read a file with um.Knowledge.read, model text with "
        "um.Knowledge.from_lavaan."
    )


def _checked_delta(delta: float | None, n_samples: float) -> float:
    default = default_delta(n_samples)
    hint = f"Leave it out to use 0.25·log(n)/n, here {default:.3g}."
    return default if delta is None else options.positive("delta", delta, hint)
