"""Past the paper: proposals from closed forms, moves over the measurement model, then the edges between groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unmeasured.answer.runners import RunnerUp
from unmeasured.data.sample import Sample
from unmeasured.knowledge.rules import Paths
from unmeasured.score import BicScore, LikelihoodScore
from unmeasured.search.canonical import in_order_of
from unmeasured.search.clock import Clock
from unmeasured.search.discovery import with_isolated
from unmeasured.search.guided import paths_of
from unmeasured.search.latent_graph import LatentBic, latent_class
from unmeasured.search.measurement import Measurement
from unmeasured.search.phase1 import Phase
from unmeasured.search.phase2 import extension, polish_edges
from unmeasured.search.pieces import Pieces, in_order
from unmeasured.search.refine import Found, Guidance, refine, refine_from
from unmeasured.search.state import State
from unmeasured.search.trace import Steps
from unmeasured.sem.savings import EXACT
from unmeasured.sem.solve import Check, never

# With more groups than this the way back from all edges is long, and not taken.
_FEW_GROUPS = 6
# With more variables than this a measurement model is worked on in pieces, and up to this many then as a whole.
MANY_VARIABLES, _MOST_AT_ONCE = 34, 44
# The search for the latent graph begins a second time for models this close to the best.
_LEADING = 0.5
# How far below the best a runner-up may be: its weight is then below e^-10.
_RIVAL = 10.0


@dataclass(frozen=True)
class Best:
    """The best class a search found, its extended BIC per sample, the classes it met, and a fit near it."""

    state: State
    value: float
    met: Met
    near: Found  # the measurement model of the class, fitted with all groups connected


@dataclass(frozen=True)
class BicSearch:
    """A sample and what leads the search for its best class, at any price of a dimension."""

    sample: Sample
    guidance: Guidance
    clock: Clock
    n_threads: int | None = None
    n_runners: int = 0  # classes beside the best that are asked for

    def best(self, penalty: float, steps: Steps) -> Best | None:
        """The class with the best extended BIC that was found; None where no latents are better."""
        sample, guidance, clock = self.sample, self.guidance, self.clock
        score: BicScore[Measurement] = BicScore(
            sample, penalty=penalty, n_threads=self.n_threads, check=clock.check_measuring
        )
        best, met = None, Met(sample, self.n_runners, clock.check)
        # Without latents: independent variables, each with its variance.
        best_value = 0.5 * sample.log_det_corr - score.price / sample.n * len(sample.names)
        if guidance.rules is not None and guidance.rules.needs_latents:
            best_value = -math.inf
        measured = measurement_models(score, guidance, steps, clock)
        tests = [LatentTest(found, score, paths_of(found.model, guidance.rules), clock.check) for found in measured]
        # What the latent graph will save was only foretold so far; the closest few models are put to the test, from the
        # graph foretold. The way back from all edges is longer and rarely ends higher: only the leaders take it.
        with clock.ending_a_stage():
            for number, test in enumerate(tests):
                clock.connected(number / len(tests))
                steps.say(f"Latent graph of model {number + 1} of {len(tests)}")
                test.polish(test.starts[-1])
            leading = max((test.value for test in tests), default=0.0) - _LEADING / sample.n
            for test in tests:
                if len(test.starts) > 1 and test.value >= leading:
                    test.polish(test.starts[0])
        for test in tests:
            met.add(score, test.found.model, test.likelihood)
            if test.best is not None and test.value > best_value:
                best, best_value, near = test.best, test.value, test.found
        with clock.ending_a_stage():
            met.add_untested(score, measured)
        if best is not None:
            steps += best.trace
            return Best(best.state, best_value, met, near)
        if not clock.stopped or not tests or tests[0].best is not None:
            return None
        # Stopped before the first test: the predicted graph is the best there is.
        return Best(tests[0].starts[-1], measured[0].value / sample.n, met, measured[0])


def measurement_models(score: BicScore[Measurement], guidance: Guidance, steps: Steps, clock: Clock) -> list[Found]:
    """Who measures whom: the best models found, best first.

    Many variables are worked on in pieces; but what is known may tie pieces together.
    """
    if len(score.sample.names) <= MANY_VARIABLES or guidance.rules is not None:
        return refine(score, guidance, steps, clock)
    pieces = Pieces(score, guidance, steps, clock)
    with clock.ending_a_stage():
        pieces.search()
    if pieces.best is None:
        return []
    if len(score.sample.names) > _MOST_AT_ONCE or clock.measuring_is_over:
        return [in_order(pieces.best)]
    return refine_from(pieces.best.model, score, guidance, steps, clock)


def latent_starts(found: Found, score: BicScore[Measurement], paths: Paths, check: Check) -> list[State]:
    """Where the search for the latent graph begins: with few groups with all edges; and with the one foretold."""
    connected, sizes = found.model.state, found.model.sizes
    if len(sizes) <= EXACT:
        foretold = connected.along(found.arcs)
    else:
        foretold = latent_class(connected, LatentBic(found.latent_cov, sizes, score.sample.n, score.price), check)
    starts = [connected, foretold] if len(sizes) <= _FEW_GROUPS else [foretold]
    if not paths.binds:
        return starts
    return [s.along(paths.nearest(extension(s.between))) for s in starts]


class LatentTest:
    """The search for the latent graph of a measurement model, from one start after another."""

    def __init__(self, found: Found, score: BicScore[Measurement], paths: Paths, check: Check) -> None:
        self.found = found
        self.starts = latent_starts(found, score, paths, check)
        self.likelihood = LikelihoodScore(score.sample, n_threads=score.n_threads, near=found, check=check)
        self.best: Phase | None = None
        self.value = -math.inf  # extended BIC per sample
        self._paths = paths
        self._price = score.price / score.sample.n
        dimension = score.dimension(found.model) - found.model.state.n_paths
        self._fee = self._price * dimension + score.surprise(found.model) / score.sample.n  # of the measurement

    def polish(self, start: State) -> None:
        """Search from a start; the best of all is kept."""
        self.likelihood.check()
        phase = polish_edges(start, self.likelihood, self._price, self.found.latent_cov, self._paths)
        value = phase.value() - self._price * phase.state.n_paths - self._fee
        if value > self.value:
            self.best, self.value = phase, value


class Met:
    """Classes that were fitted on the way, so that the closest can be told; nothing where none are asked for."""

    def __init__(self, sample: Sample, n_runners: int, check: Check = never) -> None:
        self.sample, self.n_runners, self._check = sample, n_runners, check
        self._found: list[tuple[float, int, State]] = []  # value per sample, dimension, class

    def add(self, score: BicScore[Measurement], model: Measurement, likelihood: LikelihoodScore) -> None:
        """All latent graphs that were fitted with a measurement model."""
        n = self.sample.n
        base = score.dimension(model) - model.state.n_paths
        for state, value in likelihood.met if self.n_runners else ():
            assert isinstance(state, State)
            dimension = base + state.n_paths
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
            likelihood = LikelihoodScore(self.sample, n_threads=score.n_threads, near=found, check=self._check)
            likelihood([found.model.state.along(found.arcs)])
            self.add(score, found.model, likelihood)

    def runners_up(self, chosen: State, names: Sequence[str]) -> tuple[RunnerUp, ...]:
        """The closest classes but the one chosen, the best first, over the variables in this order."""
        n = self.sample.n
        best = next((value for value, _, state in self._found if state == chosen), math.nan)
        others = sorted((entry for entry in self._found if entry[2] != chosen), key=lambda entry: -entry[0])
        return tuple(
            RunnerUp(with_isolated(in_order_of(state, names)[0].cpdag, names), n * value, n * (best - value), dimension)
            for value, dimension, state in others[: self.n_runners]
            if n * (best - value) < _RIVAL
        )
