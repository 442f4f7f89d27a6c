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
from typing import Literal

import numpy as np

from unmeasured.answer.runners import RunnerUp
from unmeasured.data.missing import Missing
from unmeasured.data.sample import Cor, Sample
from unmeasured.errors import UnmeasuredError
from unmeasured.graphs import CPDAG, DAG, cpdag_of
from unmeasured.score import BicScore, LikelihoodScore, default_delta
from unmeasured.search.base import Search
from unmeasured.search.clock import Clock
from unmeasured.search.latent_graph import LatentBic, latent_class
from unmeasured.search.measurement import Measurement, measurement_of
from unmeasured.search.phase1 import run_phase1
from unmeasured.search.phase2 import n_paths, polish_edges, run_phase2
from unmeasured.search.pieces import Pieces, in_order
from unmeasured.search.refine import Found, Guidance, Move, refine
from unmeasured.search.state import State, initial_state
from unmeasured.search.trace import Step, Steps, Trace
from unmeasured.sem.fit import Fit, fit_many
from unmeasured.sem.indices import p_value
from unmeasured.sem.rank import rank_shortfall
from unmeasured.sem.savings import EXACT

# A variable is set apart as belonging nowhere when its independence of all others cannot be rejected at this
# level: high, since a weak indicator is better kept.
_ALONE = 0.1
# With more groups than this the way back from all edges is long, and not taken.
_FEW_GROUPS = 6
# With more variables than this a measurement model is worked on in pieces.
_MANY_VARIABLES = 44
# Above this RMSEA the usual rules of thumb call a fit unacceptable.
_BAD_FIT = 0.1


# How far below the best a runner-up may be: its weight is then below e^-10.
_RIVAL = 10.0
_N_RUNNERS = 40

Criterion = Literal["bic", "delta"]


@dataclass(frozen=True)
class Discovery:
    """What a search found: the class, a fit of one of its members, the way there, and remarks in words."""

    cpdag: CPDAG
    fit: Fit
    trace: Trace
    remarks: tuple[str, ...] = ()
    runners_up: tuple[RunnerUp, ...] = ()
    interrupted: bool = False  # by Ctrl-C: the best so far


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
) -> Discovery:
    """Recover the CPDAG over latent groups and observed variables.

    ``starts``: answers to similar data, which "bic" climbs from instead of most of its own proposals. ``n_runners``:
    how many runners-up it hands back at most.
    """
    initial_state(sample.names)  # refuses what no factor model can describe
    clock = Clock(time_limit)
    steps = Steps(verbose, clock)
    met = Met(sample, n_runners)
    # In a population the price of a dimension vanishes against the likelihood: what is left is the paper's rule.
    if criterion == "delta" or math.isinf(sample.n):
        tolerance = default_delta(sample.n) if delta is None else delta
        state, leftover = by_tolerance(sample, tolerance, max_group_size, prune, n_threads, steps)
    else:
        guidance = Guidance(
            max_group_size=max_group_size or len(sample.names) // 2,
            moves=moves,
            starts=[measurement_of(graph, sample.names) for graph in starts if graph.groups],
        )
        state = by_bic(sample, penalty, guidance, n_threads, clock, steps, met)
        leftover = ()
    steps.close()
    if state is None:
        return nothing_latent(sample, Trace(steps))
    cpdag = with_isolated(state.cpdag, sample.names)
    (fit,) = fit_many([cpdag], sample, n_threads=n_threads)
    remarks = [*remarks_on(cpdag), *remarks_on_leftover(leftover), *remarks_on_fit(fit)]
    if clock.stopped:
        remarks.append(f"{clock.stopped}: this is the best found so far, not the end of the search.")
    return Discovery(cpdag, fit, Trace(steps), tuple(remarks), met.runners_up(state), clock.is_interrupted)


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
    guidance: Guidance,
    n_threads: int | None,
    clock: Clock,
    steps: Steps,
    met: Met,
) -> State | None:
    """Past the paper: proposals from closed forms, moves over the measurement model, then the edges between groups."""
    score: BicScore[Measurement] = BicScore(sample, penalty=penalty, n_threads=n_threads)
    price = score.price / sample.n
    best = None
    # Without latents: independent variables, each with its variance.
    best_value = 0.5 * sample.log_det_corr - price * len(sample.names)
    measured = measurement_models(score, guidance, steps, clock)
    # What the latent graph will save was only foretold so far; the closest few models are put to the test.
    for tested, found in enumerate(measured):
        clock.connected(tested / len(measured))
        steps.say(f"Latent graph of model {tested + 1} of {len(measured)}")
        likelihood = LikelihoodScore(sample, n_threads=n_threads, near=found)
        connected = found.model.state
        dimension = score.dimension(found.model) - n_paths(connected)
        foretold = foretold_state(found, sample.n, score.price)
        with clock.heeding_the_keyboard():
            for start in (connected, foretold) if len(connected.groups) <= _FEW_GROUPS else (foretold,):
                final = polish_edges(start, likelihood, price, found.latent_cov, clock.is_over)
                value = final.value() - price * (dimension + n_paths(final.state))
                value -= score.surprise(found.model) / sample.n
                if value > best_value:
                    best, best_value = final, value
        met.add(score, found.model, likelihood)
        if clock.is_over():
            break
    if not clock.is_over():
        met.add_untested(score, measured)
    if best is not None:
        steps += best.trace
        return best.state
    # Stopped before the first test: what was foretold is the best there is.
    return foretold_state(measured[0], sample.n, score.price) if clock.stopped and measured else None


def measurement_models(
    score: BicScore[Measurement], guidance: Guidance, steps: list[Step], clock: Clock
) -> list[Found]:
    """Who measures whom: the best models found, best first. Many variables are worked on in pieces."""
    if len(score.sample.names) <= _MANY_VARIABLES:
        return refine(score, guidance, steps, clock)
    placed = Pieces(score, guidance, steps, clock).search()
    return [] if placed is None else [in_order(placed)]


def foretold_state(found: Found, n_samples: float, price: float) -> State:
    """A measurement model with the graph over its groups that is best if the latents were observed as fitted."""
    connected, sizes = found.model.state, found.model.sizes
    if len(sizes) <= EXACT:
        return replace(connected, between=cpdag_of(found.arcs))
    return latent_class(connected, LatentBic(found.latent_cov, sizes, n_samples, price))


class Met:
    """Classes that were fitted on the way, so that the closest can be told; nothing where none are asked for."""

    def __init__(self, sample: Sample, n_runners: int) -> None:
        self.sample, self.n_runners = sample, n_runners
        self._found: list[tuple[float, int, State]] = []  # value per sample, dimension, class

    def add(self, score: BicScore[Measurement], model: Measurement, likelihood: LikelihoodScore) -> None:
        """All latent graphs that were fitted with a measurement model."""
        n = self.sample.n
        base = score.dimension(model) - n_paths(model.state)
        for state, value in likelihood.met if self.n_runners else ():
            assert isinstance(state, State)
            dimension = base + n_paths(state)
            value -= (score.price * dimension + score.surprise(model)) / n
            self._found.append((value, dimension, state))

    def add_untested(self, score: BicScore[Measurement], tested: Sequence[Found]) -> None:
        """Measurement models near the best whose latent graph was not searched: fitted with the one foretold."""
        if not self.n_runners or not tested:
            return
        known, least = {found.model.key for found in tested}, tested[0].value - _RIVAL
        near = [found for found in score.met if found.value > least and found.model.is_valid]
        near = sorted((found for found in near if found.model.key not in known), key=lambda found: -found.value)
        for found in near[: self.n_runners]:
            likelihood = LikelihoodScore(self.sample, n_threads=score.n_threads, near=found)
            likelihood([replace(found.model.state, between=cpdag_of(found.arcs))])
            self.add(score, found.model, likelihood)

    def runners_up(self, chosen: State) -> tuple[RunnerUp, ...]:
        """The closest classes but the one chosen, the best first."""
        n, names = self.sample.n, self.sample.names
        best = next((value for value, _, state in self._found if state == chosen), math.nan)
        others = sorted((entry for entry in self._found if entry[2] != chosen), key=lambda entry: -entry[0])
        return tuple(
            RunnerUp(with_isolated(state.cpdag, names), n * value, n * (best - value), dimension)
            for value, dimension, state in others[: self.n_runners]
            if n * (best - value) < _RIVAL
        )


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
        Show each step as it is taken, and about how long the search will take.
    moves : sequence of functions
        Moves of your own for "bic": each takes a measurement model and gives others, which are tried beside ours. See
        ``examples/your_own_move.py``.
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
    runners_up_ : list of RunnerUp
        With "bic", the classes that came closest, best first; ``result_`` has them as a table.
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
    runners_up_: list[RunnerUp]

    def __init__(
        self,
        *,
        criterion: Criterion = "bic",
        delta: float | None = None,
        penalty: float = 1.0,
        max_group_size: int | None = 3,
        knowledge: None = None,
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
        self.trace_, self.remarks_ = found.trace, found.remarks

    def discover(self, sample: Sample, starts: Sequence[CPDAG] = (), n_runners: int = 0) -> Discovery:
        """The search with these options on a sample, nothing kept; ``starts``: answers to similar data."""
        if self.criterion not in ("bic", "delta"):
            raise UnmeasuredError(f"criterion must be 'bic' or 'delta'; got {self.criterion!r}.")
        if self.knowledge is not None:
            raise UnmeasuredError("Background knowledge cannot be given yet; leave knowledge out.")
        if self.moves and self.criterion == "delta":
            raise UnmeasuredError('moves are for criterion="bic"; the paper\'s rule has its own. Leave them out.')
        Clock(self.time_limit)  # a limit that makes no sense is refused before anything is done
        return discover(
            sample,
            criterion=self.criterion,
            delta=_checked_delta(self.delta, sample.n),
            penalty=_checked_penalty(self.penalty),
            max_group_size=_checked_group_size(self.max_group_size),
            prune=self.prune,
            n_threads=self._n_threads,
            time_limit=self.time_limit,
            moves=self.moves,
            verbose=self.verbose,
            starts=starts,
            n_runners=n_runners,
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
