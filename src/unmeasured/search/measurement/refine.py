"""Moves over the measurement model until none improves the score.

::

    proposals → other parents → other groups → other parents → … → rebuild → …
                │               │                                  │
                │               │                                  └ dissolve groups, cluster their variables anew
                │               └ merge, split, resize, dissolve, a new latent for a pair: fitted, the best few refined
                └ scored in closed form, the best few fitted

The loop is :func:`unmeasured.search.climb.climb`, the moves are in :mod:`unmeasured.search.measurement.moves`; here
is how candidates are chosen, fitted and put on trial. Every model that is kept is a valid factor model and agrees
with what is known; only a trial may pass through models that are not.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unmeasured.errors import UnmeasuredError
from unmeasured.knowledge.rules import Rules
from unmeasured.models.indices import p_value, rmsea
from unmeasured.models.solve import never
from unmeasured.search.budget import BUDGET, Effort
from unmeasured.search.climb import Improve, Log, Proposal, climb
from unmeasured.search.clock import Clock
from unmeasured.search.guided import conformed, guided_proposals, is_allowed
from unmeasured.search.measurement.moves import (
    REBUILDING,
    RESTRUCTURING,
    ClosedForms,
    Move,
    OwnMove,
    Situation,
    other_parents,
)
from unmeasured.search.measurement.nested import start_within
from unmeasured.search.measurement.proposals import RankGains
from unmeasured.search.model import FactorModel
from unmeasured.search.score import BicScore, Fitted
from unmeasured.search.trace import Recorder, Step

# Situations that are remembered. On ten graphs of the paper's kind 125 of 455 were asked for again, nearly all of them
# among the last few; each keeps a table of every variable with every set of parents.
_N_SITUATIONS = 8


@dataclass(frozen=True)
class Guidance:
    """What leads a search besides the data."""

    max_group_size: int
    moves: Sequence[OwnMove] = ()  # a user's own, tried with those over groups
    starts: Sequence[FactorModel] = ()  # models of similar data to climb from, in place of all proposals but the best
    rules: Rules | None = None  # what is known: no model that they rule out is kept


@dataclass(frozen=True)
class Trial:
    """What a model has to reach by other parents, and what has to be predicted for it to be worth the work."""

    bar: float
    least: float

    def is_over(self, value: float, predicted: float) -> bool:
        """Whether the bound is too low, or the bar is reached and no more is predicted."""
        return predicted <= self.least or (value > self.bar and predicted <= value)


@dataclass
class Refinement:
    """What all moves need: the score, closed forms, what leads them, and where steps are written down."""

    score: BicScore
    gains: RankGains
    guidance: Guidance
    steps: list[Step]
    effort: Effort = BUDGET.usual
    local_optima: set[Hashable] = field(default_factory=set)  # models whose groups were worked on
    n_climbs: int = 0
    phase: str = "Measurement model"

    def __post_init__(self) -> None:
        self._recorder = Recorder(self.steps, self.score)
        self._forms = ClosedForms(self.score, self.gains)
        self._situations: dict[Fitted, Situation] = {}

    def climb(self, model: FactorModel, *, rebuilding: bool = True) -> Fitted:
        """To an optimum that no move improves, that of rebuilding groups among them or not."""
        self.n_climbs += 1

        def other_groups(found: Fitted) -> Proposal[Fitted] | None:
            if found.model.key in self.local_optima:
                return None  # an earlier climb was here
            self.local_optima.add(found.model.key)
            better = self.restructured(found)
            return self.rebuilt(found) if better is None and rebuilding else better

        (found,) = self.score([model])
        return self._climb(found, [self.best_parents, other_groups])

    def rebuild_once(self, found: Fitted) -> Fitted:
        """The model after one step of rebuilding groups, where that improves it."""
        return self._climb(found, [self.rebuilt], most=1)

    def _climb(self, found: Fitted, moves: Sequence[Improve[Fitted]], most: int | None = None) -> Fitted:
        log = Log(self._recorder, f"{self.phase}, climb {self.n_climbs}")
        return climb(found, moves, least_rise=BUDGET.least_rise, check=self.score.check, log=log, most=most)

    def misfits(self, found: Fitted) -> bool:
        """Whether a model is so far from the data that there must be better ones."""
        sample, n = self.score.sample, len(self.score.sample.names)
        discrepancy = np.linalg.slogdet(found.implied)[1] + np.trace(np.linalg.solve(found.implied, sample.corr))
        chi2 = sample.n * float(discrepancy - sample.log_det_corr - n)
        df = n * (n + 1) // 2 - self.score.dimension(found.model)
        return df > 0 and p_value(chi2, df) < BUDGET.rejected and rmsea(chi2, df, sample.n) > BUDGET.misfit_rmsea

    def situation(self, found: Fitted) -> Situation:
        """What moves may look at; the last few are remembered: moves ask one after the other, and trials come back."""
        if found not in self._situations:
            if len(self._situations) == _N_SITUATIONS:
                del self._situations[next(iter(self._situations))]
            self._situations[found] = Situation(found, self._forms, self.guidance.max_group_size, self.guidance.rules)
        return self._situations[found]

    # Other parents ----------------------------------------------------------------------------------------

    def best_parents(self, found: Fitted, trial: Trial | None = None) -> Proposal[Fitted] | None:
        """The best model with other parents for some variables: of those sure to improve, then of the others."""
        here = self.situation(found)
        if trial is not None and trial.is_over(found.value, here.predicted_score):
            return None
        for batch in filter(None, other_parents.candidates(here)):
            fitted = self.score([model for model, _ in batch], [start for _, start in batch])
            best = max(fitted, key=lambda other: other.value)
            if best.value > found.value + BUDGET.least_rise:
                return Proposal(other_parents.NAME, best)
        return None

    def tried(self, found: Fitted, trial: Trial) -> Fitted:
        """A model with other parents until that improves nothing; only for a while, and while it may pass the trial."""
        return climb(
            found, [lambda here: self.best_parents(here, trial)], least_rise=BUDGET.least_rise, check=self.score.check,
            most=BUDGET.trial_rounds,
        )  # fmt: skip

    # Other groups -----------------------------------------------------------------------------------------

    def restructured(self, found: Fitted) -> Proposal[Fitted] | None:
        """The best model that moves over groups and a user's own lead to; late moves only where the others fail."""
        moves = [*RESTRUCTURING, *map(Move.own, self.guidance.moves)]
        for is_late in (False, True):
            likely = self._likely([move for move in moves if move.is_late == is_late], found)
            better = self._best_refined(likely, found, self.effort.n_refined)
            if better is not None:
                return better
        return None

    def rebuilt(self, found: Fitted) -> Proposal[Fitted] | None:
        """The best model with a few groups dissolved and their variables clustered anew."""
        return self._best_refined(self._likely(REBUILDING, found), found, BUDGET.n_rebuilt)

    # Choosing ---------------------------------------------------------------------------------------------

    def _likely(self, moves: Sequence[Move[Any]], found: Fitted) -> list[tuple[str, FactorModel]]:
        """What moves propose and may be kept: of each the few models whose groups gain most by closed forms."""
        likely: list[tuple[str, FactorModel]] = []
        for move in moves:
            models = self._allowed(_checked(move, found.model, move.models(self.situation(found))))
            if move.most is not None and len(models) > move.most:
                models = sorted(models, key=self._gain, reverse=True)[: move.most]
            likely += [(move.name, model) for model in models]
        return likely

    def _allowed(self, models: Iterable[FactorModel]) -> list[FactorModel]:
        """The models that may be kept, with items put back where they are known to be; one without groups may not."""
        rules = self.guidance.rules
        near = models if rules is None else conformed(models, rules)
        return [model for model in near if model.sizes and is_allowed(model, rules)]

    def _gain(self, model: FactorModel) -> float:
        """What the rank constraints of all groups gain together."""
        return sum(self.gains.of(model.pure(g), k) for g, k in enumerate(model.sizes))

    def _best_refined(
        self, candidates: Sequence[tuple[str, FactorModel]], found: Fitted, n_refined: int
    ) -> Proposal[Fitted] | None:
        """Of many models the best few, each refined; the best of them if it improves.

        Started from the data, not from the present fit: near it, models this different end in its valleys. But where
        the present model is a part of another, whose fit from the data ends below it, that was a trap.
        """
        name, value = {other.key: what for what, other in candidates}, found.value
        fitted = self._out_of_traps(self.score([other for _, other in candidates]), found)
        # The best as they are, and those with the best prediction, which adds up what may not go together.
        by_value = sorted(fitted, key=lambda other: -other.value)[:n_refined]
        predicted = {other: self._forms.predicted_score(other) for other in fitted}
        by_prediction = sorted(fitted, key=predicted.__getitem__, reverse=True)
        by_prediction = by_prediction[: n_refined if self.effort.is_near else 2 * n_refined]
        best, trial = None, Trial(value + BUDGET.least_rise, value - BUDGET.trial_slack)
        for other in sorted({*by_value, *by_prediction}, key=predicted.__getitem__, reverse=True):
            if predicted[other] <= trial.least:
                continue
            refined = self.tried(other, trial)
            if refined.value > trial.bar and is_allowed(refined.model, self.guidance.rules):
                best = Proposal(name[other.model.key], refined)
                trial = Trial(refined.value, refined.value)
        return best

    def _out_of_traps(self, fitted: Sequence[Fitted], found: Fitted) -> list[Fitted]:
        """Each model once; fitted again from the present one where this is a part of it and the fit ended below."""
        once = list(dict.fromkeys(fitted))
        starts = [start_within(found, other.model, self.score) for other in once]
        trapped = [
            (other, start)
            for other, start in zip(once, starts, strict=True)
            if start is not None and start.least > other.value + BUDGET.trapped
        ]
        again = self.score([other.model for other, _ in trapped], [start for _, start in trapped])
        better = {other: new for (other, _), new in zip(trapped, again, strict=True)}
        return [better.get(other, other) for other in once]


def refine(score: BicScore, guidance: Guidance, steps: list[Step], clock: Clock) -> list[Fitted]:
    """The best measurement models found from several proposals, best first; none where nothing can be proposed."""
    # With few variables the proposals are a matter of a moment, and there is always a first model.
    is_small = len(score.sample.names) <= BUDGET.many_variables
    gains = RankGains(score.sample, score.dimension_penalty, never if is_small else score.check)
    starts, rules = guidance.starts, guidance.rules
    effort = BUDGET.effort(len(score.sample.names), score.sample.n, has_starts=bool(starts))
    search = Refinement(score, gains, guidance, steps, effort)
    with clock.ending_a_stage():
        own = guided_proposals(gains, guidance.max_group_size, rules)
        if not own and not starts:
            return []
        fitted = _unhurried(score, own) if is_small else score(own)
        ranked = [found.model for found in sorted(fitted, key=lambda found: -found.value)]
        climbs = [*ranked[: effort.n_climbs], *starts]
        ends: list[Hashable] = []
        for done, model in enumerate(climbs, start=1):
            ends.append(search.climb(model, rebuilding=not effort.is_near).model.key)
            clock.measured(done / len(climbs))
            if ends.count(_best_of(score, rules).model.key) == effort.n_agreeing:
                break
        if not starts and search.misfits(_best_of(score, rules)):
            search.effort = BUDGET.where_it_misfits
            for model in ranked[effort.n_climbs :]:
                search.climb(model)
        # Near an answer rebuilding rarely helps: with starts it is tried once, where it counts.
        if starts:
            best = _best_of(score, rules)
            if (better := search.rebuild_once(best)) is not best:
                search.climb(better.model)
        # A later start may have shown that a model passed by is better than all that were climbed from.
        while (top := _best_of(score, rules)).model.key not in search.local_optima:
            score.check()
            search.climb(top.model)
            search.local_optima.add(top.model.key)
    closest = _closest(score, rules, effort.n_close)
    if score.sample.n >= BUDGET.very_many_rows:
        with clock.ending_a_stage():
            closest = sorted(score.insist([found.model for found in closest]), key=lambda found: -found.value)
    return closest


def _checked(move: Move[Any], model: FactorModel, others: Iterable[Any]) -> Iterator[FactorModel]:
    """What a move proposes; a user's may be something else."""
    for other in others:
        if not isinstance(other, FactorModel) or other.observed != model.observed:
            raise UnmeasuredError(
                f"A move gives measurement models of the same variables; {move.name!r} gave {other!r}. Make them "
                "with with_parents or without_group, or as FactorModel(model.observed, sizes, parents)."
            )
        yield other


def _unhurried(score: BicScore, models: Sequence[FactorModel]) -> list[Fitted]:
    """Models fitted whatever the clock says."""
    check, score.check = score.check, never
    try:
        return score(models)
    finally:
        score.check = check


def refine_from(
    model: FactorModel, score: BicScore, guidance: Guidance, steps: list[Step], clock: Clock
) -> list[Fitted]:
    """The best measurement models found from one that is good already, best first."""
    gains = RankGains(score.sample, score.dimension_penalty, score.check)
    search = Refinement(score, gains, guidance, steps, BUDGET.after_pieces)
    with clock.ending_a_stage():
        search.climb(model, rebuilding=False)
    return _closest(score, guidance.rules, BUDGET.after_pieces.n_close)


def _closest(score: BicScore, rules: Rules | None, most: int) -> list[Fitted]:
    """The best model visited and those near it, so many at most; with very many rows also others of other sizes.

    What the latent graph will save is only predicted: the more rows, the larger the error, which models that differ in
    a variable share and models of other groups do not.
    """
    allowed = sorted(
        (found for found in score.visited if is_allowed(found.model, rules)), key=lambda found: -found.value
    )
    best = allowed[0].value if allowed else 0.0  # none where it was stopped before the first fit
    near = [found for found in allowed if found.value > best - BUDGET.close][:most]
    if score.sample.n < BUDGET.very_many_rows:
        return near
    kinds = {tuple(sorted(found.model.sizes)) for found in near}
    for found in allowed:
        kind = tuple(sorted(found.model.sizes))
        if len(near) < 2 * most and kind not in kinds and found.value > best - BUDGET.close_of_other_sizes:
            kinds.add(kind)
            near.append(found)
    return near


def _best_of(score: BicScore, rules: Rules | None) -> Fitted:
    return max((found for found in score.visited if is_allowed(found.model, rules)), key=lambda found: found.value)
