"""Moves over the measurement model until none improves the score.

Steepest ascent over single steps (:func:`unmeasured.search.measurement.moves`); where it stands still, parts of the
model are rebuilt from closed forms and climbed from again. Started from several proposals, the best is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unmeasured.score import BicScore
from unmeasured.search.measurement import Measurement, carvings, drops, moves
from unmeasured.search.propose import RankGains, new_parents, proposals, rebuilds
from unmeasured.search.trace import Step

# From how many proposals we climb, how many rebuilt models get a chance, and for how many steps.
_N_CLIMBS, _N_REBUILT, _TRIAL_STEPS = 2, 3, 4
# How many pairs of a group are carved out in trial.
_N_CARVED = 4
# How many sets of parents closed forms may suggest for each variable.
_N_SUGGESTED = 3
# A group is offered to a variable if score tests promise this part of what its loadings would cost.
_WORTH = 0.3
# A score has to rise by more than the fits' own rounding.
_LEAST_RISE = 1e-2
# Scores nearer than this are on a level: the same model in another guise, up to unfinished fits.
_LEVEL = 0.5


@dataclass
class Refinement:
    """The best measurement model met so far, and the steps to it."""

    score: BicScore
    gains: RankGains
    max_group_size: int
    steps: list[Step]
    out_of_time: Callable[[], bool]

    def climb(self, model: Measurement) -> tuple[Measurement, float]:
        """To an optimum that neither single steps nor rebuilding improves."""
        value = float(self.score([model])[0])
        while not self.out_of_time():
            better = self._step(model, value) or self._carve(model, value) or self._rebuild(model, value)
            if better is None:
                break
            model, value = better
        return model, value

    def _step(self, model: Measurement, value: float) -> tuple[Measurement, float] | None:
        """The best single step, if it improves."""
        candidates = self._candidates(model)
        best = self._best([other for _, other in candidates], value)
        if best is None:
            return None
        name = next(name for name, other in candidates if other is best[0])
        self._record(name, len(candidates), value, best[1])
        return best

    def _candidates(self, model: Measurement) -> list[tuple[str, Measurement]]:
        """Every valid model one step away, and those with other parents that closed forms suggest."""
        suggested = [("other parents", other) for other in new_parents(model, self.gains, _N_SUGGESTED)]
        rises = self.score.rises(model, model.everything)
        latents = model.member.latents

        def is_worth(j: int, g: int) -> bool:
            rise = sum(rises.get((latents[i], model.observed[j]), 0.0) for i in model.groups[g])
            return rise > _WORTH * self.score.price * model.sizes[g]

        return [*moves(model, self.max_group_size, is_worth), *suggested]

    def _carve(self, model: Measurement, value: float) -> tuple[Measurement, float] | None:
        """Out of the commonest trap: two groups glued into a larger one by their common child.

        No single step between valid models leads out. A pair is carved out, then edges the score does not miss are
        dropped one by one; only where this ends in a valid and better model is it kept.
        """
        pairs = [
            pair
            for g, k in enumerate(model.sizes)
            if k > 1
            for pair in self.gains.closest_pairs(model.pure(g), _N_CARVED)
        ]
        trials = [self._settle(carved, items) for carved, items in carvings(model, pairs)]
        return self._keep("carve", trials, len(pairs), value)

    def _settle(self, model: Measurement, items: Sequence[int]) -> tuple[Measurement, float]:
        """Drop parents of the items one by one while the score rises.

        The first edge dropped may change nothing: a rotation makes up for it, and only the second one shows. Where
        no single drop improves, pairs of them are tried.
        """
        best = model, float(self.score([model])[0])
        while not self.out_of_time():
            singles = list(drops(best[0], items))
            better = self._best(singles, best[1])
            if better is None:
                level = [m for m, v in zip(singles, self.score(singles), strict=True) if v > best[1] - _LEVEL]
                better = self._best([pair for single in level for pair in drops(single, items)], best[1])
            if better is None:
                break
            best = better
        return best

    def _keep(
        self, what: str, trials: Sequence[tuple[Measurement, float]], n_candidates: int, value: float
    ) -> tuple[Measurement, float] | None:
        valid = [trial for trial in trials if trial[0].is_valid and trial[1] > value + _LEAST_RISE]
        if not valid:
            return None
        best = max(valid, key=lambda trial: trial[1])
        self._record(what, n_candidates, value, best[1])
        return best

    def _rebuild(self, model: Measurement, value: float) -> tuple[Measurement, float] | None:
        """The best of a few rebuilt models after some steps each, if it improves."""
        candidates = list(rebuilds(model, self.gains, self.max_group_size))
        if not candidates:
            return None
        values = self.score(candidates)
        trials = []
        for i in np.argsort(-values)[:_N_REBUILT]:
            trial = self._settle(candidates[i], range(len(model.observed)))
            for _ in range(_TRIAL_STEPS):
                step = self._best([other for _, other in self._candidates(trial[0])], trial[1])
                if step is None or self.out_of_time():
                    break
                trial = step
            trials.append(trial)
        return self._keep("rebuild", trials, len(candidates), value)

    def _best(self, candidates: Sequence[Measurement], value: float) -> tuple[Measurement, float] | None:
        if not candidates:
            return None
        values = self.score(candidates)
        best = int(np.argmax(values))
        return (candidates[best], float(values[best])) if values[best] > value + _LEAST_RISE else None

    def _record(self, what: str, n_candidates: int, before: float, after: float) -> None:
        self.steps.append(
            Step(
                phase="Measurement model",
                what=what,
                n_candidates=n_candidates,
                n_bounded=0,
                n_fitted=self.score.n_fitted - sum(step.n_fitted for step in self.steps),
                n_remembered=self.score.n_remembered - sum(step.n_remembered for step in self.steps),
                score_before=before,
                score_after=after,
                tolerance=0.0,
                accepted=True,
                reason=f"BIC score {before:.2f} to {after:.2f}",
            )
        )


def refine(
    score: BicScore, max_group_size: int, steps: list[Step], out_of_time: Callable[[], bool] = lambda: False
) -> Measurement | None:
    """The best measurement model found from several proposals; None where nothing can be proposed."""
    gains = RankGains(score.sample, score.price)
    search = Refinement(score, gains, max_group_size, steps, out_of_time)
    starts = proposals(gains, max_group_size)
    if not starts:
        return None
    order = np.argsort(-score(starts))
    climbed = [search.climb(starts[i]) for i in order[:_N_CLIMBS]]
    return max(climbed, key=lambda result: result[1])[0]
