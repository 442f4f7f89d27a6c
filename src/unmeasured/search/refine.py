"""Moves over the measurement model until none improves the score.

::

    proposals → parents → restructure → parents → … → rebuild → …
                │         │                           │
                │         │                           └ dissolve two or three groups and cluster their variables anew
                │         └ merge, split, resize, dissolve, a new latent for a pair: fitted, the best few refined
                └ other parents for the variables, scored in closed form, the best few fitted

Every model that is kept is a valid factor model and agrees with what is known; only a trial may pass through models
that are not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, count

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.errors import UnmeasuredError
from unmeasured.knowledge.rules import Rules
from unmeasured.search.budget import BUDGET
from unmeasured.search.clock import Clock
from unmeasured.search.discovery import REJECTED
from unmeasured.search.guided import conformed, guided_proposals, is_allowed
from unmeasured.search.model import FactorModel
from unmeasured.search.moves import RESTRUCTURING, Change, Situation
from unmeasured.search.proposals import RankGains, rebuilds
from unmeasured.search.relocate import Relocations, latents_of, predicted_rise, relocated
from unmeasured.search.score import BicScore, Fitted, Start
from unmeasured.search.trace import Recorder, Step
from unmeasured.sem.indices import p_value, rmsea
from unmeasured.sem.solve import never

Found = Fitted
OwnMove = Callable[[FactorModel], Iterable[FactorModel]]  # a user's: from a model to others that are worth a try


@dataclass(frozen=True)
class Guidance:
    """What leads a search besides the data."""

    max_group_size: int
    moves: Sequence[OwnMove] = ()  # a user's own, tried with those of restructure
    starts: Sequence[FactorModel] = ()  # models of similar data to climb from, in place of all proposals but the best
    rules: Rules | None = None  # what is known: no model that they rule out is kept


@dataclass(frozen=True)
class Trial:
    """What a model has to reach by other parents, and what has to be predicted for it to be worth the work."""

    bar: float
    least: float

    def is_hopeless(self, predicted: float) -> bool:
        return predicted <= self.least

    def is_over(self, value: float, predicted: float) -> bool:
        """Whether there is no hope, or the bar is taken and no more is predicted."""
        return self.is_hopeless(predicted) or (value > self.bar and predicted <= value)


def predicted_score(found: Found, rise: Floats) -> float:
    """The score, and what other parents would add to it if they did so independently."""
    return found.value + float(np.maximum(rise.max(axis=1), 0.0).sum())


@dataclass
class Refinement:
    """What all moves need: the score, closed forms, what leads them, and where steps are written down."""

    score: BicScore
    gains: RankGains
    guidance: Guidance
    steps: list[Step]
    n_refined: int = BUDGET.n_refined
    has_starts: bool = False  # near an answer already: less is tried
    choices: dict[Hashable, tuple[Ints, Bools, Floats]] = field(default_factory=dict)  # sets of parents
    local_optima: set[Hashable] = field(default_factory=set)  # refined models whose groups were worked on
    n_climbs: int = 0
    phase: str = "Measurement model"

    def __post_init__(self) -> None:
        self._recorder = Recorder(self.steps, self.score)

    def climb(self, model: FactorModel, *, rebuilding: bool = True) -> Found:
        """To an optimum that no move improves, that of rebuilding groups among them or not."""
        (found,) = self.score([model])
        self.n_climbs += 1
        while True:
            self.score.check()
            found = self.refine_parents(found) or found
            if found.model.key in self.local_optima:
                break  # an earlier climb was here
            self.local_optima.add(found.model.key)
            better = self.restructure(found) or (self.rebuild(found) if rebuilding else None)
            if better is None:
                break
            found = better
        return found

    def misfits(self, found: Found) -> bool:
        """Whether a model is so far from the data that there must be better ones."""
        sample, n = self.score.sample, len(self.score.sample.names)
        discrepancy = np.linalg.slogdet(found.implied)[1] + np.trace(np.linalg.solve(found.implied, sample.corr))
        chi2 = sample.n * float(discrepancy - sample.log_det_corr - n)
        df = n * (n + 1) // 2 - self.score.dimension(found.model)
        return df > 0 and p_value(chi2, df) < REJECTED and rmsea(chi2, df, sample.n) > BUDGET.misfit_rmsea

    # Other parents ----------------------------------------------------------------------------------------

    def refine_parents(self, found: Found, trial: Trial | None = None) -> Found | None:
        """Give variables other parents until that improves nothing; None if it never did.

        In a trial only for a while and while there is hope, and nothing is written down.
        """
        best = found
        for _ in count() if trial is None else range(BUDGET.trial_rounds):
            self.score.check()
            table, rise = self._rises(best)
            if trial is not None and trial.is_over(best.value, predicted_score(best, rise)):
                break
            better = None
            for changes in self._relocated(best, table, rise):
                models = [self._applied(best.model, table, change) for change in changes]
                starts = [
                    self._start(best, table, rise, change, other) for change, other in zip(changes, models, strict=True)
                ]
                better = self._best(models, best.value, starts)
                if better is not None:
                    break
            if better is None:
                break
            if trial is None:
                self._record("other parents", best.value, better.value)
            best = better
        return best if best is not found else None

    def _rises(self, found: Found, most: int = 3) -> tuple[Relocations, Floats]:
        """Sets of parents, and (n, C) by how much each would raise the score at least."""
        model, sample = found.model, self.score.sample
        masks, allowed, prices = self._choices(model, most)
        table = relocated(sample.corr, found.loadings, found.latent_cov, found.noise, masks, allowed)
        value = sample.n * table.likelihoods - prices
        now = np.arange(len(model.parents)), np.searchsorted(masks, model.parents)
        rise = value - value[now][:, None]
        rise[now] = -np.inf
        return table, rise

    def _predicted_score(self, found: Found) -> float:
        """The same as :func:`predicted_score`, of up to two groups at once, without the table."""
        model, sample = found.model, self.score.sample
        masks, allowed, prices = self._choices(model, 2)
        now = np.searchsorted(masks, model.parents)
        fit = found.loadings, found.latent_cov, found.noise
        return found.value + predicted_rise(sample.corr, *fit, allowed, prices, now, sample.n)

    def _relocated(self, found: Found, table: Relocations, rise: Floats) -> Iterator[list[Change]]:
        """The changes that closed forms like best: what is sure to improve, and then, should that fail, what may."""
        model = found.model
        likely = np.argwhere(rise > -BUDGET.slack)
        order = np.argsort(-rise[likely[:, 0], likely[:, 1]], kind="stable")[: 4 * len(rise)]
        single = [(j, c) for j, c in likely[order].tolist()]
        # Dropping a parent may cost nothing once the others have adapted to it, however little the bound predicts.
        single += [drop for drop in self._drops(model, table, rise) if drop not in single]
        changes = [self._together(change) for change in single]
        together: list[tuple[int, int]] = []
        for j, c in single:
            open_to = rise[j, c] > 0 and all(j != i for i, _ in together)
            if open_to and self._allows(self._applied(model, table, [*together, *self._together((j, c))])):
                together += self._together((j, c))
        valid: list[Change] = []
        stuck: list[tuple[int, int]] = []
        for change in changes:
            if len(valid) == BUDGET.n_relocated + BUDGET.n_dropped:
                break
            if self._allows(self._applied(model, table, change)):
                valid.append(change)
            elif len(stuck) < BUDGET.n_relocated:
                stuck.append(change[0])
        sure = [together] if len(together) > 1 else []
        sure += [change for change in valid[:1] if rise[change[0]] > 0]
        if sure:
            yield sure
        chosen = valid + self._exchanges(model, table, rise, stuck)
        yield [change for change in chosen if change not in sure]

    def _drops(self, model: FactorModel, table: Relocations, rise: Floats) -> list[tuple[int, int]]:
        """Common children with one parent less, those with the best predicted gain."""
        drops = [
            (j, table.column[mask & ~(1 << g)])
            for j, mask in enumerate(model.parents)
            for g in range(len(model.sizes))
            if mask >> g & 1 and mask != 1 << g
        ]
        return sorted(drops, key=lambda drop: -rise[drop])[: BUDGET.n_dropped]

    def _exchanges(
        self, model: FactorModel, table: Relocations, rise: Floats, stuck: Sequence[tuple[int, int]]
    ) -> list[list[tuple[int, int]]]:
        """A variable whose group would be left with too few pure children takes turns with another one."""
        out = []
        for j, c in stuck:
            home = table.column.get(model.parents[j])
            if home is None:
                continue
            for i in np.argsort(-rise[:, home])[:2].tolist():
                change = [(j, c), (i, home)]
                is_likely = i != j and rise[i, home] + rise[j, c] > -BUDGET.slack
                if is_likely and self._allows(self._applied(model, table, change)):
                    out.append(change)
        return out

    def _choices(self, model: FactorModel, most: int) -> tuple[Ints, Bools, Floats]:
        """Sets of parents worth a look (C,), their latents (C, m) and what they cost (C,); made once."""
        key = most, model.sizes, frozenset(model.parents)
        if key not in self.choices:
            masks = parent_sets(most, len(model.sizes), key[2])
            allowed = latents_of(masks, model.sizes)
            priors = self.score.priors(np.bitwise_count(masks).astype(np.int64), len(model.sizes))
            self.choices[key] = masks, allowed, self.score.price * allowed.sum(axis=1) + priors
        return self.choices[key]

    def _applied(self, model: FactorModel, table: Relocations, change: Iterable[tuple[int, int]]) -> FactorModel:
        for j, c in change:
            model = model.with_parents(j, int(table.masks[c]))
        return model

    def _start(self, found: Found, table: Relocations, rise: Floats, change: Change, other: FactorModel) -> Start:
        """The fit with the loadings and noise that closed forms give to the variables that change."""
        m = len(found.effects)
        effects, noise = found.effects.copy(), found.noise.copy()
        for j, c in change:
            effects[:, m + j] = table.loadings[j, c]
            noise[j] = table.noises[j, c]
        # What several changes are predicted to gain does not add up.
        least = found.value + float(rise[change[0]]) if len(change) == 1 else -np.inf
        return Start(np.concatenate([effects[other.mask], noise]), least)

    # Other groups -----------------------------------------------------------------------------------------

    def restructure(self, found: Found) -> Found | None:
        """Merge, split, resize, dissolve or add groups; the likeliest are refined before one is chosen."""
        here = self._situation(found)
        candidates = [(move.name, other) for move in RESTRUCTURING for other in move.candidates(here)]
        likely = self._likeliest(self._allowed(candidates), BUDGET.n_of_kind)
        is_late = {move.name: move.is_late for move in RESTRUCTURING}
        late = [candidate for candidate in likely if is_late[candidate[0]]]
        soon = [candidate for candidate in likely if not is_late[candidate[0]]]
        soon += self._allowed(self._own(found.model))
        return self._best_refined(soon, found.value, self.n_refined) or self._best_refined(
            late, found.value, self.n_refined
        )

    def _situation(self, found: Found) -> Situation:
        """What moves may look at."""
        sample = self.score.sample
        return Situation(found, self.gains, sample.corr, self.guidance.max_group_size, *self._rises(found))

    def _own(self, model: FactorModel) -> Iterator[tuple[str, FactorModel]]:
        """What a user's moves propose, by the names of their functions."""
        for move in self.guidance.moves:
            name = getattr(move, "__name__", type(move).__name__)
            for other in move(model):
                if not isinstance(other, FactorModel) or other.observed != model.observed:
                    raise UnmeasuredError(
                        f"A move gives measurement models of the same variables; {name!r} gave {other!r}. Make them "
                        "with with_parents or without_group, or as FactorModel(model.observed, sizes, parents)."
                    )
                yield name, other

    def rebuild(self, found: Found) -> Found | None:
        """Dissolve a few groups and cluster their variables anew."""
        candidates = [("rebuild", other) for other in rebuilds(found.model, self.gains, self.guidance.max_group_size)]
        return self._best_refined(
            self._likeliest(self._allowed(candidates), BUDGET.n_rebuilds), found.value, BUDGET.n_rebuilt
        )

    # Choosing ---------------------------------------------------------------------------------------------

    def _allows(self, model: FactorModel) -> bool:
        return is_allowed(model, self.guidance.rules)

    def _allowed(self, candidates: Iterable[tuple[str, FactorModel]]) -> list[tuple[str, FactorModel]]:
        """The candidates that may be kept, with items put back where they are known to be."""
        near = candidates if self.guidance.rules is None else conformed(candidates, self.guidance.rules)
        return [(what, other) for what, other in near if self._allows(other)]

    def _likeliest(self, candidates: Sequence[tuple[str, FactorModel]], most: int) -> list[tuple[str, FactorModel]]:
        """So many candidates of each kind at most: those whose groups gain most by closed forms."""
        kinds: dict[str, list[FactorModel]] = {}
        for what, other in candidates:
            kinds.setdefault(what, []).append(other)
        return [
            (what, other)
            for what, others in kinds.items()
            for other in (sorted(others, key=self._gain, reverse=True)[:most] if len(others) > most else others)
        ]

    def _gain(self, model: FactorModel) -> float:
        """What the rank constraints of all groups gain together."""
        return sum(self.gains.of(model.pure(g), k) for g, k in enumerate(model.sizes))

    def _together(self, change: tuple[int, int]) -> Change:
        """A relocation, with the items that are known to go with it."""
        j, c = change
        return [change] if self.guidance.rules is None else [(i, c) for i in self.guidance.rules.blocks[j]]

    def _best_refined(
        self, candidates: Sequence[tuple[str, FactorModel]], value: float, n_refined: int
    ) -> Found | None:
        """Of many models the best few, each refined; the best of them if it improves.

        Started from the data, not from the present fit: near it, models this different end in its valleys.
        """
        name = {other.key: what for what, other in candidates}
        fitted = self.score([other for _, other in candidates])
        # The best as they are, and those with the best prediction, which adds up what may not go together.
        fitted = list(dict.fromkeys(fitted))
        by_value = sorted(fitted, key=lambda other: -other.value)[:n_refined]
        predicted = {other: self._predicted_score(other) for other in fitted}
        by_prediction = sorted(fitted, key=predicted.__getitem__, reverse=True)
        by_prediction = by_prediction[: n_refined if self.has_starts else 2 * n_refined]
        best, what, trial = None, "", Trial(value + BUDGET.least_rise, value - BUDGET.trial_slack)
        for other in sorted({*by_value, *by_prediction}, key=predicted.__getitem__, reverse=True):
            if trial.is_hopeless(predicted[other]):
                continue
            refined = self.refine_parents(other, trial) or other
            if refined.value > trial.bar and self._allows(refined.model):
                best, what = refined, name[other.model.key]
                trial = Trial(best.value, best.value)
        if best is not None:
            self._record(what, value, best.value)
        return best

    def _best(
        self, candidates: Sequence[FactorModel], value: float, starts: Sequence[Start] | None = None
    ) -> Found | None:
        if not candidates:
            return None
        best = max(self.score(candidates, starts), key=lambda other: other.value)
        return best if best.value > value + BUDGET.least_rise else None

    def _record(self, what: str, before: float, after: float) -> None:
        reason = f"the score rises by {after - before:.2f}, more than {BUDGET.least_rise:g}"
        self._recorder.write(
            f"{self.phase}, climb {self.n_climbs}", what, before, after, reason, tolerance=BUDGET.least_rise
        )


def parent_sets(most: int, n_groups: int, in_use: Iterable[int]) -> Ints:
    """Sets of groups as bits, in order: none, up to so many groups, those in use with one more or less.

    >>> parent_sets(1, 3, [0b011]).tolist()
    [0, 1, 2, 3, 4, 7]
    """
    most = min(most if n_groups <= BUDGET.few_groups_for_triples else 2, n_groups)
    masks = {sum(1 << g for g in some) for r in range(most + 1) for some in combinations(range(n_groups), r)}
    for mask in in_use:
        masks |= {mask, *(mask ^ 1 << g for g in range(n_groups))}
    return np.array(sorted(masks), dtype=np.int64)


def refine(score: BicScore, guidance: Guidance, steps: list[Step], clock: Clock) -> list[Found]:
    """The best measurement models found from several proposals, best first; none where nothing can be proposed."""
    # With few variables the proposals are a matter of a moment, and there is always a first model.
    is_small = len(score.sample.names) <= BUDGET.many_variables
    gains = RankGains(score.sample, score.price, never if is_small else score.check)
    starts, rules = guidance.starts, guidance.rules
    n_climbs = BUDGET.n_climbs if is_small else BUDGET.n_climbs // 2
    n_refined, n_close = (BUDGET.n_refined_near, BUDGET.n_close_near) if starts else (BUDGET.n_refined, BUDGET.n_close)
    search = Refinement(score, gains, guidance, steps, n_refined, has_starts=bool(starts))
    with clock.ending_a_stage():
        own = guided_proposals(gains, guidance.max_group_size, rules)
        if not own and not starts:
            return []
        fitted = _unhurried(score, own) if is_small else score(own)
        ranked = [found.model for found in sorted(fitted, key=lambda found: -found.value)]
        climbs = [*ranked[: BUDGET.n_own_climbs], *starts] if starts else ranked[:n_climbs]
        ends: list[Hashable] = []
        for done, model in enumerate(climbs, start=1):
            ends.append(search.climb(model, rebuilding=not starts).model.key)
            clock.measured(done / len(climbs))
            if ends.count(_best_of(score, rules).model.key) == BUDGET.n_agreeing:
                break
        if not starts and search.misfits(_best_of(score, rules)):
            search.n_refined = BUDGET.n_refined_late
            for model in ranked[n_climbs:]:
                search.climb(model)
        # Near an answer rebuilding rarely helps: with starts it is tried once, where it counts.
        if starts and (better := search.rebuild(_best_of(score, rules))):
            search.climb(better.model)
        # A later start may have shown that a model passed by is better than all that were climbed from.
        while (top := _best_of(score, rules)).model.key not in search.local_optima:
            score.check()
            search.climb(top.model)
            search.local_optima.add(top.model.key)
    return _closest(score, rules, n_close)


def _unhurried(score: BicScore, models: Sequence[FactorModel]) -> list[Found]:
    """Models fitted whatever the clock says."""
    check, score.check = score.check, never
    try:
        return score(models)
    finally:
        score.check = check


def refine_from(
    model: FactorModel, score: BicScore, guidance: Guidance, steps: list[Step], clock: Clock
) -> list[Found]:
    """The best measurement models found from one that is good already, best first."""
    gains = RankGains(score.sample, score.price, score.check)
    search = Refinement(score, gains, guidance, steps, BUDGET.n_refined_near)
    with clock.ending_a_stage():
        search.climb(model, rebuilding=False)
    return _closest(score, guidance.rules, BUDGET.n_close_near)


def _closest(score: BicScore, rules: Rules | None, most: int) -> list[Found]:
    """The best model visited and those near it, so many at most."""
    allowed = [found for found in score.visited if is_allowed(found.model, rules)]
    best = max((found.value for found in allowed), default=0.0)  # none where it was stopped before the first fit
    return sorted((found for found in allowed if found.value > best - BUDGET.close), key=lambda found: -found.value)[
        :most
    ]


def _best_of(score: BicScore, rules: Rules | None) -> Found:
    return max((found for found in score.visited if is_allowed(found.model, rules)), key=lambda found: found.value)
