"""LGES: the phases and the result, on one screen; and the estimator.

::

    criterion="delta"   sample → S_init → Phase 1 (Algorithm 1) ──┐
                                                                  ├→ Phase 2 (Algorithm 2) → Discovery
    criterion="bic"     sample → proposals → moves over them ─────┘
                                 who measures whom                   how latents cause one another
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from unmeasured.data.missing import Missing
from unmeasured.data.sample import Cor, Sample
from unmeasured.errors import UnmeasuredError
from unmeasured.graphs import CPDAG, DAG, cpdag_of
from unmeasured.knowledge.known import Knowledge
from unmeasured.knowledge.rules import Rules
from unmeasured.knowledge.satisfy import rules_of
from unmeasured.score import BicScore, LikelihoodScore, default_delta
from unmeasured.search.base import Search
from unmeasured.search.clock import Clock
from unmeasured.search.guided import paths_of
from unmeasured.search.informed import NO_PRICE, agreeing, informed, price_in_words
from unmeasured.search.measurement import Measurement
from unmeasured.search.phase1 import run_phase1
from unmeasured.search.phase2 import n_paths, polish_edges, run_phase2
from unmeasured.search.refine import refine
from unmeasured.search.state import State, initial_state
from unmeasured.search.trace import Step, Steps, Trace
from unmeasured.sem.fit import Fit, fit_many
from unmeasured.sem.indices import p_value
from unmeasured.sem.rank import rank_shortfall

# A variable is set apart as belonging nowhere when its independence of all others cannot be rejected at this
# level: high, since a weak indicator is better kept.
_ALONE = 0.1
# With more groups than this the way back from all edges is long, and not taken.
_FEW_GROUPS = 6
# With more variables than this a search takes long, and is not made a second time to tell the price of knowledge.
_FEW_VARIABLES = 34
# Above this RMSEA the usual rules of thumb call a fit unacceptable.
_BAD_FIT = 0.1


Criterion = Literal["bic", "delta"]


@dataclass(frozen=True)
class Discovery:
    """What a search found: the class, a fit of one of its members, the way there, and remarks in words."""

    cpdag: CPDAG
    fit: Fit
    trace: Trace
    remarks: tuple[str, ...] = ()
    named: tuple[str, ...] = ()  # latents whose names were given


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
    verbose: bool = False,
    knowledge: Knowledge | None = None,
) -> Discovery:
    """Recover the CPDAG over latent groups and observed variables; with ``knowledge``, one that agrees with it."""
    initial_state(sample.names)  # refuses what no factor model can describe
    steps = Steps(verbose)
    clock = Clock(time_limit)
    # Contradictions are refused before the search.
    rules = rules_of(knowledge, sample.names, max_group_size) if knowledge else None
    # In a population the price of a dimension vanishes against the likelihood: what is left is the paper's rule.
    if criterion == "delta" or math.isinf(sample.n):
        tolerance = default_delta(sample.n) if delta is None else delta
        state, leftover = by_tolerance(sample, tolerance, max_group_size, prune, n_threads, steps)
    else:
        state = by_bic(sample, penalty, max_group_size, n_threads, clock, steps, rules)
        leftover = ()
    if state is None:
        empty = nothing_latent(sample, Trace(steps))
        if knowledge and rules:
            informed(empty.cpdag, knowledge, rules)  # refuses to find nothing where something is known
        return empty
    cpdag = with_isolated(state.cpdag, sample.names)
    named: tuple[str, ...] = ()
    if knowledge and rules:
        cpdag, named = informed(cpdag, knowledge, rules)
    (fit,) = fit_many([cpdag], sample, n_threads=n_threads)
    remarks = [*remarks_on(cpdag), *remarks_on_leftover(leftover), *remarks_on_fit(fit)]
    if clock.stopped:
        remarks.append(f"{clock.stopped}: this is the best found so far, not the end of the search.")
    return Discovery(cpdag, fit, Trace(steps), tuple(remarks), named)


def discover_knowing(sample: Sample, knowledge: Knowledge, price: bool | None = None, **options: Any) -> Discovery:
    """The same with what is known, and with ``price`` what that costs: the search without it is made too.

    Left out: where that is cheap, without a time limit and with up to 34 variables. Where the search without knowledge
    comes to a better answer that agrees with it, that is the answer.
    """
    found = discover(sample, knowledge=knowledge, **options)
    told = f"Knowledge given: {'; '.join(map(str, knowledge.statements))}."
    if options.get("criterion") == "delta" or math.isinf(sample.n):
        return replace(found, remarks=(told, *found.remarks))
    is_cheap = options.get("time_limit") is None and len(sample.names) <= _FEW_VARIABLES
    if not (is_cheap if price is None else price):
        return replace(found, remarks=(told, NO_PRICE, *found.remarks))
    free = discover(sample, **options)
    rules = rules_of(knowledge, sample.names, options.get("max_group_size"))
    if free.fit.bic < found.fit.bic and (better := agreeing(free.cpdag, knowledge, rules)) is not None:
        cpdag, named = better
        (fit,) = fit_many([cpdag], sample, n_threads=options.get("n_threads"))
        found = Discovery(cpdag, fit, free.trace, free.remarks, named)
    cost = price_in_words(knowledge, found.fit.bic, free.fit.bic, free.cpdag)
    return replace(found, remarks=(told, cost, *found.remarks))


def by_tolerance(
    sample: Sample, delta: float, max_group_size: int | None, prune: bool, n_threads: int | None, steps: list[Step]
) -> tuple[State | None, tuple[str, ...]]:
    """The paper's search, to the letter where its letters hold; and the variables it could not settle."""
    alone = independent_variables(sample)
    linked = [name for name in sample.names if name not in alone]
    if len(linked) < 2:
        return None, ()
    data = sample.select(linked)
    score = LikelihoodScore(data, n_threads=n_threads)
    start = initial_state(data.names)  # S_init, Definition 3
    measured, leftover = run_phase1(start, score, delta, max_group_size=max_group_size, prune=prune)  # Algorithm 1
    steps += measured.trace
    unsettled = tuple(linked[i] for i in leftover)
    if not measured.state.groups:
        return None, unsettled
    final = run_phase2(measured.state, score, delta, prune=prune)  # Algorithm 2
    steps += final.trace
    return final.state, unsettled


def by_bic(
    sample: Sample,
    penalty: float,
    max_group_size: int | None,
    n_threads: int | None,
    clock: Clock,
    steps: list[Step],
    rules: Rules | None = None,
) -> State | None:
    """Past the paper: proposals from closed forms, moves over the measurement model, then the edges between groups."""
    score: BicScore[Measurement] = BicScore(sample, penalty=penalty, n_threads=n_threads)
    price = score.price / sample.n
    best = None
    # Without latents: independent variables, each with its variance.
    best_value = 0.5 * sample.log_det_corr - price * len(sample.names)
    if rules is not None and rules.needs_latents:
        best_value = -math.inf
    measured = refine(score, max_group_size or len(sample.names) // 2, steps, clock, rules)
    # What the latent graph will save was only foretold so far; the closest few models are put to the test.
    for found in measured:
        likelihood = LikelihoodScore(sample, n_threads=n_threads, near=found)
        connected = found.model.state
        dimension = score.dimension(found.model) - n_paths(connected)
        paths = paths_of(found.model, rules)
        foretold = replace(connected, between=cpdag_of(paths.nearest(found.arcs)))
        if paths.binds:
            connected = replace(connected, between=cpdag_of(paths.nearest(np.triu(connected.between))))
        with clock.heeding_the_keyboard():
            for start in (connected, foretold) if len(connected.groups) <= _FEW_GROUPS else (foretold,):
                final = polish_edges(start, likelihood, price, found.latent_cov, clock.is_over, paths)
                value = final.value() - price * (dimension + n_paths(final.state))
                value -= score.surprise(found.model) / sample.n
                if value > best_value:
                    best, best_value = final, value
        if clock.is_over():
            break
    if best is not None:
        steps += best.trace
        return best.state
    if not (clock.stopped and measured):
        return None
    # Stopped before the first test: what was foretold is the best there is.
    first = measured[0]
    return replace(first.model.state, between=cpdag_of(paths_of(first.model, rules).nearest(first.arcs)))


def independent_variables(sample: Sample) -> tuple[str, ...]:
    """Variables that share nothing with any other: they have no latent cause that data could show."""
    n = len(sample.names)
    alone = []
    for j, name in enumerate(sample.names):
        shortfall = rank_shortfall(sample.corr, [j], 0)
        shared = shortfall > 1e-10 if math.isinf(sample.n) else p_value(2.0 * sample.n * shortfall, n - 1) < _ALONE
        if not shared:
            alone.append(name)
    return tuple(alone)


def nothing_latent(sample: Sample, trace: Trace = Trace()) -> Discovery:  # noqa: B008 (an empty tuple)
    """The answer where no latent stands behind anything: the observed variables, unconnected, and the reason."""
    empty = DAG.from_edges([], names=sample.names).cpdag()
    (fit,) = fit_many([empty], sample)
    reason = (
        "no variable depends on another beyond chance"
        if len(independent_variables(sample)) > len(sample.names) - 2
        else "no set of variables passed as the indicators of a latent, so none is reported"
    )
    return Discovery(empty, fit, trace, (f"No latent variables were found: {reason}.",))


def with_isolated(cpdag: CPDAG, observed: Sequence[str]) -> CPDAG:
    """The same class over all observed variables; those not in it stand alone."""
    if set(cpdag.observed) == set(observed):
        return cpdag
    member = cpdag.member()
    names = (*cpdag.latents, *observed)
    whole = DAG.from_edges(member.edges, latents=member.latents, names=names)
    A = np.zeros((len(names), len(names)), dtype=np.uint8)
    position = [names.index(name) for name in cpdag.names]
    A[np.ix_(position, position)] = cpdag.adjacency
    return CPDAG(whole.variables, A, cpdag.groups)


def remarks_on(cpdag: CPDAG) -> list[str]:
    """What to tell of variables that belong nowhere."""
    member = cpdag.member()
    alone = [x for x in member.observed if not member.parents(x)]
    return [f"Independent of all others, and so without a latent cause: {', '.join(alone)}."] if alone else []


def remarks_on_leftover(leftover: Sequence[str]) -> list[str]:
    """What to tell of variables Phase 1 could not settle."""
    if not leftover:
        return []
    return [
        f"No small set of latents explains {', '.join(leftover)}: all latents found are given as parents "
        "(a variable that loads on everything, or too small a tolerance)."
    ]


def remarks_on_fit(fit: Fit) -> list[str]:
    """What to tell of a model that says nothing, or not what the data say."""
    if fit.df == 0:
        return ["The model found is saturated: it fits any data, so nothing speaks for it. Measure more indicators."]
    remarks = []
    if math.isfinite(fit.sample.n) and fit.chi2 > fit.df * math.log(fit.sample.n):
        remarks.append(
            "By BIC a model that explains nothing (every covariance free) describes the data better than the one "
            "found: a few latents are not the whole story. Look at the largest residuals, or leave out variables that "
            "load on everything."
        )
    if fit.rmsea > _BAD_FIT:
        remarks.append(
            f"The model found describes the data badly (RMSEA {fit.rmsea:.3f}): these variables may not be the pure or "
            "common indicators of a few latents. Look for variables that load on everything, or leave some out."
        )
    return remarks


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
        Threads for fits, -1 for all cores; the result does not depend on it.
    random_state : int
        Kept for the face of an estimator: the search draws nothing at random, and runs repeat.
    verbose : bool
        Show each step as it is taken.
    time_limit : float, optional
        Seconds after which "bic" returns the best found so far, and says so.

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
    remarks_ : tuple of str
        What the user should know, in words.
    n_features_in_ : int
        Number of observed variables.
    feature_names_in_ : array of str
        Their names, where the data had names.

    Examples
    --------
    >>> import unmeasured as um, math
    >>> truth = um.simulate.random_gnfm(n_latents=2, n_observed=6, rng=1)
    >>> parameters = um.simulate.realistic_parameters(truth, np.random.default_rng(1))
    >>> model = um.LGES(criterion="delta").fit_cov(parameters.cov(), math.inf, names=parameters.observed)
    >>> um.metrics.compare(truth, model.graph_).shd
    0
    """

    trace_: Trace

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
        self.verbose = verbose

    def _search(self, sample: Sample) -> None:
        if self.criterion not in ("bic", "delta"):
            raise UnmeasuredError(f"criterion must be 'bic' or 'delta'; got {self.criterion!r}.")
        Clock(self.time_limit)  # a limit that makes no sense is refused before anything is done
        options: dict[str, Any] = {
            "criterion": self.criterion,
            "delta": _checked_delta(self.delta, sample.n),
            "penalty": _checked_penalty(self.penalty),
            "max_group_size": _checked_group_size(self.max_group_size),
            "prune": self.prune,
            "n_threads": self._n_threads,
            "time_limit": self.time_limit,
            "verbose": self.verbose,
        }
        known = _checked_knowledge(self.knowledge)
        found = (
            discover_knowing(sample, known, self.price_knowledge, **options) if known else discover(sample, **options)
        )
        self.graph_, self.sem_ = found.cpdag, found.fit
        self.trace_, self.remarks_, self._named = found.trace, found.remarks, found.named


def _checked_knowledge(knowledge: Knowledge | None) -> Knowledge | None:
    if knowledge is None or isinstance(knowledge, Knowledge):
        return knowledge
    raise UnmeasuredError(
        f"knowledge is a um.Knowledge; got {knowledge!r}. Read a file with um.Knowledge.read, model text with "
        "um.Knowledge.from_lavaan."
    )


def _checked_penalty(penalty: float) -> float:
    if not isinstance(penalty, int | float) or not penalty > 0 or math.isinf(penalty):
        raise UnmeasuredError(f"penalty must be a positive number; got {penalty!r}. 1 is BIC's.")
    return float(penalty)


def _checked_delta(delta: float | None, n_samples: float) -> float:
    default = default_delta(n_samples)
    if delta is None:
        return default
    if not isinstance(delta, int | float) or math.isnan(delta) or delta <= 0:
        raise UnmeasuredError(
            f"delta must be positive; got {delta!r}. Leave it out to use 0.25·log(n)/n, here {default:.3g}."
        )
    return float(delta)


def _checked_group_size(size: int | None) -> int | None:
    if size is not None and (not isinstance(size, int) or size < 1):
        raise UnmeasuredError(f"max_group_size must be a positive whole number or None; got {size!r}.")
    return size
