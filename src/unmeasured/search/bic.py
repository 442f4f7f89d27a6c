"""The best class by extended BIC: measurement models, the latent graphs of the closest few, and the best of all.

With 20,000 answers every model is rejected, and the score at BIC's penalty has many local optima: whichever detail is
added first stands in the way of others. At a larger penalty only the large features pay, and going down from there adds
the details in the order of what they are worth. So with very many rows the search goes on::

    penalty    1  →  as if N were 1000  →  half way on a log scale  →  1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unmeasured.data.sample import Sample
from unmeasured.models.fit import fit_many
from unmeasured.models.solve import Check, never
from unmeasured.search.budget import BUDGET
from unmeasured.search.clock import Clock
from unmeasured.search.discovery import RunnerUp, is_rejected, with_isolated
from unmeasured.search.final_fit import in_columns
from unmeasured.search.guided import paths_of
from unmeasured.search.latent_graph.edges import LatentTest
from unmeasured.search.latent_graph.latent_likelihood import LatentLikelihood
from unmeasured.search.measurement.refine import Guidance, refine, refine_from
from unmeasured.search.measurement.subproblems import Pieces, Placed, in_order
from unmeasured.search.model import FactorModel, model_of_class
from unmeasured.search.score import BicScore, Fitted, LikelihoodScore
from unmeasured.search.trace import Step, Steps


@dataclass(frozen=True)
class Best:
    """The best class a search found, its extended BIC, the classes it visited, and a fit near it."""

    model: FactorModel  # with the class of edges between its groups
    value: float
    visited: Visited
    near: Fitted  # the measurement model of the class, fitted with all groups connected
    fitted: Fitted | None = None  # the class itself, where it was fitted on the way


@dataclass(frozen=True)
class Measured:
    """Measurement models, the best first, which a search goes on from, and the steps to them."""

    models: Sequence[Fitted]
    steps: Steps


@dataclass(frozen=True)
class BicSearch:
    """A sample and what leads the search for its best class, at any penalty of a dimension."""

    sample: Sample
    guidance: Guidance
    clock: Clock
    n_threads: int | None = None
    n_runners: int = 0  # classes beside the best that are asked for
    measured: Measured | None = None  # what was found before, at the same penalty

    def measure(self, penalty: float, steps: Steps) -> Measured:
        """The first stage alone: who measures whom."""
        score = BicScore(
            self.sample, penalty=penalty, n_threads=self.n_threads, check=self.clock.check_measuring
        )  # fmt: skip
        return Measured(measurement_models(score, self.guidance, steps, self.clock), steps)

    def best(self, penalty: float, steps: Steps) -> Best | None:
        """The class with the best extended BIC that was found; None where no latents are better."""
        sample, guidance, clock = self.sample, self.guidance, self.clock
        score = BicScore(sample, penalty=penalty, n_threads=self.n_threads, check=clock.check_measuring)
        if self.measured is not None:
            measured = self.measured.models
        else:
            measured = measurement_models(score, guidance, steps, clock)
        tests = [LatentTest(found, score, paths_of(found.model, guidance.rules), clock.check) for found in measured]
        # What the latent graph will save was only predicted so far; the closest few models are put to the test, from
        # the graph predicted. The way back from all edges is longer and rarely ends higher: only the leaders take it.
        with clock.ending_a_stage():
            for number, test in enumerate(tests):
                clock.connected(number / len(tests))
                steps.say(f"Latent graph of model {number + 1} of {len(tests)}")
                test.polish(test.starts[-1])
            leading = max((test.value for test in tests), default=0.0) - BUDGET.leading
            for test in tests:
                if test.value >= leading:
                    for start in test.starts[:-1]:
                        test.polish(start)
        visited = Visited(sample, self.n_runners, clock.check)
        for test in tests:
            visited.add(score, test.found.model, test.likelihood)
        with clock.ending_a_stage():
            visited.add_untested(score, measured)
        best = max(tests, key=lambda test: test.value, default=None)
        if best is not None and best.best is not None and best.value > self._without_latents(score):
            steps += best.best.steps
            factors = best.factors
            fitted = None if factors is None else in_order(Placed(best.found.model, factors, best.value))
            return Best(best.best.model, best.value, visited, best.found, fitted)
        if not clock.stopped or not tests or tests[0].best is not None:
            return None
        # Stopped before the first test: the predicted graph is the best there is.
        return Best(tests[0].starts[-1], measured[0].value, visited, measured[0])

    def _without_latents(self, score: BicScore) -> float:
        """The score of independent variables, each with its variance; nothing where latents are known."""
        if self.guidance.rules is not None and self.guidance.rules.needs_latents:
            return -math.inf
        return 0.5 * self.sample.n * self.sample.log_det_corr - score.dimension_penalty * len(self.sample.names)


def measurement_models(score: BicScore, guidance: Guidance, steps: Steps, clock: Clock) -> list[Fitted]:
    """Who measures whom: the best models found, best first.

    Many variables are worked on in pieces; but what is known may tie pieces together.
    """
    if len(score.sample.names) <= BUDGET.many_variables or guidance.rules is not None:
        return refine(score, guidance, steps, clock)
    pieces = Pieces(score, guidance, steps, clock, is_credited=True)
    with clock.ending_a_stage():
        pieces.search()
    if pieces.best is None:
        return []
    if len(score.sample.names) > BUDGET.most_at_once or clock.measuring_is_over:
        return [in_order(pieces.best)]
    return refine_from(pieces.best.model, score, guidance, steps, clock)


def best_from_above(search: BicSearch, penalty: float, steps: Steps) -> Best | None:
    """The best class found; with so many rows that it is rejected, also by way of larger penalties."""
    sample, clock = search.sample, search.clock
    is_asked = may_descend(sample, penalty) and not search.guidance.starts  # with starts it is near an answer already
    clock.lap(0.0, BUDGET.first_search if is_asked else 1.0)
    first = search.best(penalty, steps)
    if first is None or not is_asked:
        return first
    (fit,) = fit_many(
        [with_isolated(first.model.cpdag, sample.names)], sample, n_threads=search.n_threads, check=clock.check
    )
    if not is_rejected(fit):
        return first
    best, way = first, list[Step]()
    top = _penalty_of_few_rows(sample.n)
    stages = [top, math.sqrt(top * penalty), penalty]
    for done, at in enumerate(stages):
        if clock.measuring_is_over:
            return first
        left = 1.0 - BUDGET.first_search
        clock.lap(*(BUDGET.first_search + left * part / len(stages) for part in (done, done + 1)))
        start = model_of_class(with_isolated(best.model.cpdag, sample.names), sample.names)
        near, lap = replace(search, guidance=replace(search.guidance, starts=[start])), steps.lap()
        found = near.best(at, lap)
        if found is None or clock.measuring_is_over:
            return first
        best = found
        way += [replace(step, phase=f"At penalty {at:.3g}: {step.phase}") for step in lap]
    if best.value <= first.value:
        return first
    steps += way
    return best


def may_descend(sample: Sample, penalty: float = 1.0) -> bool:
    """Whether there are rows enough for it, and not so many variables that they are worked on in pieces."""
    is_far = _penalty_of_few_rows(sample.n) >= BUDGET.far_penalty * penalty
    return is_far and len(sample.names) <= BUDGET.many_variables


def _penalty_of_few_rows(n: float) -> float:
    return math.log(BUDGET.few_rows) / BUDGET.few_rows * n / math.log(n)


class Visited:
    """Classes that were fitted on the way, so that the closest can be told; nothing where none are asked for."""

    def __init__(self, sample: Sample, n_runners: int, check: Check = never) -> None:
        self.sample, self.n_runners, self._check = sample, n_runners, check
        self._found: list[tuple[float, int, FactorModel]] = []  # score, dimension, class

    def add(self, score: BicScore, model: FactorModel, likelihood: LikelihoodScore | LatentLikelihood) -> None:
        """All latent graphs that were fitted with a measurement model."""
        base, prior = score.dimension(model) - model.n_paths, score.prior(model)
        for connected, value in likelihood.visited.items() if self.n_runners else ():
            assert isinstance(connected, FactorModel)
            dimension = base + connected.n_paths
            value = self.sample.n * value - score.dimension_penalty * dimension - prior
            self._found.append((value, dimension, connected))

    def add_untested(self, score: BicScore, tested: Sequence[Fitted]) -> None:
        """Measurement models near the best whose latent graph was not searched: fitted with the one predicted."""
        if not self.n_runners or not tested:
            return
        known, least = {found.model.key for found in tested}, tested[0].value - BUDGET.rival
        near = [found for found in score.visited if found.value > least and found.model.is_valid]
        near = sorted((found for found in near if found.model.key not in known), key=lambda found: -found.value)
        for found in near[: self.n_runners]:
            likelihood = LikelihoodScore(self.sample, n_threads=score.n_threads, near=found, check=self._check)
            likelihood([found.model.along(found.arcs)])
            self.add(score, found.model, likelihood)

    def runners_up(self, chosen: FactorModel, names: Sequence[str]) -> tuple[RunnerUp, ...]:
        """The closest classes but the one chosen, the best first, over the variables in this order."""
        best = next((value for value, _, model in self._found if model == chosen), math.nan)
        others = sorted((entry for entry in self._found if entry[2] != chosen), key=lambda entry: -entry[0])
        return tuple(
            RunnerUp(in_columns(model, None, names).cpdag, value, best - value, dimension)
            for value, dimension, model in others[: self.n_runners]
            if best - value < BUDGET.rival
        )
