"""Moves over the measurement model until none improves the score.

::

    proposals → settle → restructure → settle → … → rebuild → …
                │        │                          │
                │        │                          └ dissolve two or three groups and cluster their variables anew
                │        └ merge, split, resize, dissolve, a new latent for a pair: fitted, the best few settled
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
from unmeasured.score import BicScore, Fitted, Start
from unmeasured.search.clock import Clock
from unmeasured.search.discovery import REJECTED
from unmeasured.search.guided import conformed, guided_proposals, is_allowed
from unmeasured.search.measurement import Measurement, exchanges, restructured
from unmeasured.search.propose import RankGains, rebuilds, splits
from unmeasured.search.relocate import Relocations, latents_of, promised_rise, relocated
from unmeasured.search.trace import Step
from unmeasured.sem.indices import p_value, rmsea
from unmeasured.sem.solve import never

Found = Fitted[Measurement]
Change = list[tuple[int, int]]  # variables and the column of their new parents
Move = Callable[[Measurement], Iterable[Measurement]]  # from a model to others that are worth a try

# From how many proposals we climb; how many restructured and how many rebuilt models are settled before one is chosen.
_N_CLIMBS, _N_SETTLED, _N_REBUILT = 4, 2, 2
# Where so many of them end on the same summit, and none is higher, the rest are left out.
_N_AGREEING = 3
# With starts, near an answer already: from how many of its own proposals a search climbs, how many restructured models
# are settled, and of how many models the latent graph is searched (docs/stability.md says what that costs).
_N_OWN_CLIMBS, _N_SETTLED_NEAR, _N_CLOSE_NEAR = 1, 1, 2
# Where the best model misfits badly, all other proposals have their turn, and more restructured models are settled.
# Badly: rejected and above this RMSEA. Real questionnaires with good models stay below it.
_N_SETTLED_LATE, _MISFIT_RMSEA = 4, 0.04
# With more variables than this one climb takes seconds, and fewer are made.
_FEW_VARIABLES = 34
# Relocations fitted at a time, and how far below zero a promise may lie: it is a lower bound.
_N_RELOCATED, _N_DROPPED, _N_SEVERAL, _SLACK = 6, 4, 12, 3.0
# Settling within a trial stops after so many rounds, and where less is promised than the bar less this: of those that
# improve one in a hundred is missed (docs/search-notes.md).
_TRIAL_ROUNDS, _HOPE = 6, 6.0
# Pairs that may become the indicators of a new latent, and merges and sizes that closed forms like best.
_N_PAIRS, _N_MERGED, _N_RESIZED = 8, 8, 6
# Candidates of one kind that are fitted, and rebuilt models: of 659 that improved, all but a handful were among these.
_N_OF_KIND, _N_REBUILDS = 8, 18
_LATE = ("expel",)
# With more groups than this a variable is offered at most two at once.
_FEW_GROUPS = 12
# Models whose latent graph is searched: this close to the best, and at most so many.
_CLOSE, _N_CLOSE = 5.0, 4
# A score has to rise by more than the fits' own rounding.
_LEAST_RISE = 1e-2


@dataclass(frozen=True)
class Guidance:
    """What leads a search besides the data."""

    max_group_size: int
    moves: Sequence[Move] = ()  # a user's own, tried with those of restructure
    starts: Sequence[Measurement] = ()  # models of similar data to climb from, in place of all proposals but the best
    rules: Rules | None = None  # what is known: no model that they rule out is kept


@dataclass(frozen=True)
class Trial:
    """What a model has to reach by settling, and what it has to promise to be worth settling."""

    bar: float
    least: float

    def is_hopeless(self, promised: float) -> bool:
        return promised <= self.least

    def is_over(self, value: float, promised: float) -> bool:
        """Whether there is no hope, or the bar is taken and no more is promised."""
        return self.is_hopeless(promised) or (value > self.bar and promised <= value)


def promise(found: Found, rise: Floats) -> float:
    """The score, and what other parents would add to it if they did so independently."""
    return found.value + float(np.maximum(rise.max(axis=1), 0.0).sum())


@dataclass
class Refinement:
    """What all moves need: the score, closed forms, what leads them, and where steps are written down."""

    score: BicScore[Measurement]
    gains: RankGains
    guidance: Guidance
    steps: list[Step]
    n_settled: int = _N_SETTLED
    has_starts: bool = False  # near an answer already: less is tried
    choices: dict[Hashable, tuple[Ints, Bools, Floats]] = field(default_factory=dict)  # sets of parents
    summits: set[Hashable] = field(default_factory=set)  # settled models whose groups were worked on
    n_climbs: int = 0

    def climb(self, model: Measurement, *, rebuilding: bool = True) -> Found:
        """To an optimum that no move improves, that of rebuilding groups among them or not."""
        (found,) = self.score([model])
        self.n_climbs += 1
        while True:
            self.score.check()
            found = self.settle(found) or found
            if found.model.key in self.summits:
                break  # an earlier climb was here
            self.summits.add(found.model.key)
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
        return df > 0 and p_value(chi2, df) < REJECTED and rmsea(chi2, df, sample.n) > _MISFIT_RMSEA

    # Other parents ----------------------------------------------------------------------------------------

    def settle(self, found: Found, trial: Trial | None = None) -> Found | None:
        """Give variables other parents until that improves nothing; None if it never did.

        In a trial only for a while and while there is hope, and nothing is written down.
        """
        best = found
        for _ in count() if trial is None else range(_TRIAL_ROUNDS):
            self.score.check()
            table, rise = self._rises(best)
            if trial is not None and trial.is_over(best.value, promise(best, rise)):
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
                self._record("other parents", len(models), best.value, better.value)
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

    def _promise(self, found: Found) -> float:
        """The same as :func:`promise`, of up to two groups at once, without the table."""
        model, sample = found.model, self.score.sample
        masks, allowed, prices = self._choices(model, 2)
        now = np.searchsorted(masks, model.parents)
        fit = found.loadings, found.latent_cov, found.noise
        return found.value + promised_rise(sample.corr, *fit, allowed, prices, now, sample.n)

    def _relocated(self, found: Found, table: Relocations, rise: Floats) -> Iterator[list[Change]]:
        """The changes that closed forms like best: what is sure to improve, and then, should that fail, what may."""
        model = found.model
        likely = np.argwhere(rise > -_SLACK)
        order = np.argsort(-rise[likely[:, 0], likely[:, 1]], kind="stable")[: 4 * len(rise)]
        single = [(j, c) for j, c in likely[order].tolist()]
        # Dropping a parent may cost nothing once the others have met it, however little the bound promises.
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
            if len(valid) == _N_RELOCATED + _N_DROPPED:
                break
            if self._allows(self._applied(model, table, change)):
                valid.append(change)
            elif len(stuck) < _N_RELOCATED:
                stuck.append(change[0])
        sure = [together] if len(together) > 1 else []
        sure += [change for change in valid[:1] if rise[change[0]] > 0]
        if sure:
            yield sure
        chosen = valid + self._exchanges(model, table, rise, stuck)
        yield [change for change in chosen if change not in sure]

    def _drops(self, model: Measurement, table: Relocations, rise: Floats) -> list[tuple[int, int]]:
        """Common children with one parent less, those that promise most."""
        drops = [
            (j, table.column[mask & ~(1 << g)])
            for j, mask in enumerate(model.parents)
            for g in range(len(model.sizes))
            if mask >> g & 1 and mask != 1 << g
        ]
        return sorted(drops, key=lambda drop: -rise[drop])[:_N_DROPPED]

    def _exchanges(
        self, model: Measurement, table: Relocations, rise: Floats, stuck: Sequence[tuple[int, int]]
    ) -> list[list[tuple[int, int]]]:
        """A variable whose group would be left with too few pure children takes turns with another one."""
        out = []
        for j, c in stuck:
            home = table.column.get(model.parents[j])
            if home is None:
                continue
            for i in np.argsort(-rise[:, home])[:2].tolist():
                change = [(j, c), (i, home)]
                promising = i != j and rise[i, home] + rise[j, c] > -_SLACK
                if promising and self._allows(self._applied(model, table, change)):
                    out.append(change)
        return out

    def _choices(self, model: Measurement, most: int) -> tuple[Ints, Bools, Floats]:
        """Sets of parents worth a look (C,), their latents (C, m) and what they cost (C,); made once."""
        key = most, model.sizes, frozenset(model.parents)
        if key not in self.choices:
            masks = parent_sets(most, len(model.sizes), key[2])
            allowed = latents_of(masks, model.sizes)
            surprises = self.score.surprises(np.bitwise_count(masks).astype(np.int64), len(model.sizes))
            self.choices[key] = masks, allowed, self.score.price * allowed.sum(axis=1) + surprises
        return self.choices[key]

    def _applied(self, model: Measurement, table: Relocations, change: Iterable[tuple[int, int]]) -> Measurement:
        for j, c in change:
            model = model.with_parents(j, int(table.masks[c]))
        return model

    def _start(self, found: Found, table: Relocations, rise: Floats, change: Change, other: Measurement) -> Start:
        """The fit with the loadings and noise that closed forms give to the variables that change."""
        m = len(found.effects)
        effects, noise = found.effects.copy(), found.noise.copy()
        for j, c in change:
            effects[:, m + j] = table.loadings[j, c]
            noise[j] = table.noises[j, c]
        # What several changes promise does not add up.
        promise = found.value + float(rise[change[0]]) if len(change) == 1 else -np.inf
        return Start(np.concatenate([effects[other.mask], noise]), promise)

    # Other groups -----------------------------------------------------------------------------------------

    def restructure(self, found: Found) -> Found | None:
        """Merge, split, resize, dissolve or add groups; the most promising are settled before one is chosen."""
        model, size = found.model, self.guidance.max_group_size
        candidates = [
            *restructured(model, size, self._close_pairs(found), self._close_groups(model), self._other_sizes(model)),
            *(("split", other) for other in splits(model, self.gains, size)),
            *self._dissolved_and_exchanged(found),
        ]
        likely = self._likeliest(self._allowed(candidates), _N_OF_KIND)
        # A kind with many candidates that improve six times in a thousand waits until the others fail.
        late = [candidate for candidate in likely if candidate[0] in _LATE]
        soon = [candidate for candidate in likely if candidate[0] not in _LATE]
        soon += self._allowed(self._own(model))
        return self._settled_best(soon, found.value, self.n_settled) or self._settled_best(
            late, found.value, self.n_settled
        )

    def _dissolved_and_exchanged(self, found: Found) -> list[tuple[str, Measurement]]:
        """Moves of several variables at once that closed forms can rank: those that promise most."""
        model = found.model
        table, rise = self._rises(found)
        column = table.column
        changes: dict[str, list[tuple[float, int, Change]]] = {"exchange": [], "dissolve": []}
        for g in range(len(model.sizes)):
            for pure, common in exchanges(model, g):
                change = [(pure, column[model.parents[common]]), (common, column[1 << g])]
                changes["exchange"].append((sum(float(rise[j, c]) for j, c in change), g, change))
            elsewhere = np.flatnonzero(~(table.masks >> g & 1).astype(bool))
            singles = [np.array([column[1 << h]]) for h in range(len(model.sizes)) if h != g]
            for heirs in (elsewhere, *singles) if singles else ():
                change = [(j, int(heirs[np.argmax(rise[j, heirs])])) for j in model.pure(g)]
                changes["dissolve"].append((sum(float(rise[j, c]) for j, c in change), g, change))
        out = []
        for what, options in changes.items():
            for _, g, change in sorted(options, key=lambda option: -option[0])[:_N_SEVERAL]:
                other = self._applied(model, table, change)
                if what == "dissolve":
                    other = other.without_group(g)
                out.append((what, other))
        return out

    def _own(self, model: Measurement) -> Iterator[tuple[str, Measurement]]:
        """What a user's moves propose, by the names of their functions."""
        for move in self.guidance.moves:
            name = getattr(move, "__name__", type(move).__name__)
            for other in move(model):
                if not isinstance(other, Measurement) or other.observed != model.observed:
                    raise UnmeasuredError(
                        f"A move gives measurement models of the same variables; {name!r} gave {other!r}. Make them "
                        "with with_parents or without_group, or as Measurement(model.observed, sizes, parents)."
                    )
                yield name, other

    def _close_pairs(self, found: Found) -> list[tuple[int, int]]:
        """Pairs with the largest correlation of residuals, by score tests: a new latent may stand behind them."""
        P = np.linalg.inv(found.implied)
        R = P @ (self.score.sample.corr - found.implied) @ P
        own = np.diag(P)
        rise = np.triu(R**2 / (np.outer(own, own) + P**2), 1)
        order = np.argsort(-rise, axis=None)[:_N_PAIRS]
        return [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, rise.shape), strict=True)]

    def _other_sizes(self, model: Measurement) -> list[tuple[int, int]]:
        """Groups and another size for them, those that closed forms like best."""

        def gain(resize: tuple[int, int]) -> float:
            g, k = resize
            return self.gains.of(model.pure(g), k) - self.gains.of(model.pure(g), model.sizes[g])

        options = [(g, k + step) for g, k in enumerate(model.sizes) for step in (-1, 1)]
        options = [(g, k) for g, k in options if 1 <= k <= self.guidance.max_group_size]
        return sorted(options, key=gain, reverse=True)[:_N_RESIZED]

    def _close_groups(self, model: Measurement) -> list[tuple[int, int, int]]:
        """Pairs of groups and a size, those whose union gains most as one group."""
        sizes = model.sizes
        merges = [
            (g, h, k)
            for g, h in combinations(range(len(sizes)), 2)
            for k in range(max(sizes[g], sizes[h]), min(sizes[g] + sizes[h], self.guidance.max_group_size) + 1)
        ]

        def gain(merge: tuple[int, int, int]) -> float:
            g, h, k = merge
            return self.gains.of((*model.pure(g), *model.pure(h)), k)

        return sorted(merges, key=gain, reverse=True)[:_N_MERGED]

    def rebuild(self, found: Found) -> Found | None:
        """Dissolve a few groups and cluster their variables anew."""
        candidates = [("rebuild", other) for other in rebuilds(found.model, self.gains, self.guidance.max_group_size)]
        return self._settled_best(self._likeliest(self._allowed(candidates), _N_REBUILDS), found.value, _N_REBUILT)

    # Choosing ---------------------------------------------------------------------------------------------

    def _allows(self, model: Measurement) -> bool:
        return is_allowed(model, self.guidance.rules)

    def _allowed(self, candidates: Iterable[tuple[str, Measurement]]) -> list[tuple[str, Measurement]]:
        """The candidates that may be kept, with items put back where they are known to be."""
        near = candidates if self.guidance.rules is None else conformed(candidates, self.guidance.rules)
        return [(what, other) for what, other in near if self._allows(other)]

    def _likeliest(self, candidates: Sequence[tuple[str, Measurement]], most: int) -> list[tuple[str, Measurement]]:
        """So many candidates of each kind at most: those whose groups gain most by closed forms."""
        kinds: dict[str, list[Measurement]] = {}
        for what, other in candidates:
            kinds.setdefault(what, []).append(other)
        return [
            (what, other)
            for what, others in kinds.items()
            for other in (sorted(others, key=self._gain, reverse=True)[:most] if len(others) > most else others)
        ]

    def _gain(self, model: Measurement) -> float:
        """What the rank constraints of all groups gain together."""
        return sum(self.gains.of(model.pure(g), k) for g, k in enumerate(model.sizes))

    def _together(self, change: tuple[int, int]) -> Change:
        """A relocation, with the items that are known to go with it."""
        j, c = change
        return [change] if self.guidance.rules is None else [(i, c) for i in self.guidance.rules.blocks[j]]

    def _settled_best(
        self, candidates: Sequence[tuple[str, Measurement]], value: float, n_settled: int
    ) -> Found | None:
        """Of many models the best few, each settled; the best of them if it improves.

        Started from the data, not from the present fit: near it, models this different end in its valleys.
        """
        name = {other.key: what for what, other in candidates}
        fitted = self.score([other for _, other in candidates])
        # The best as they are, and those that promise most: a promise adds up what may not go together.
        fitted = list(dict.fromkeys(fitted))
        by_value = sorted(fitted, key=lambda other: -other.value)[:n_settled]
        promises = {other: self._promise(other) for other in fitted}
        by_promise = sorted(fitted, key=promises.__getitem__, reverse=True)
        by_promise = by_promise[: n_settled if self.has_starts else 2 * n_settled]
        best, what, trial = None, "", Trial(value + _LEAST_RISE, value - _HOPE)
        for other in sorted({*by_value, *by_promise}, key=promises.__getitem__, reverse=True):
            if trial.is_hopeless(promises[other]):
                continue
            settled = self.settle(other, trial) or other
            if settled.value > trial.bar and self._allows(settled.model):
                best, what = settled, name[other.model.key]
                trial = Trial(best.value, best.value)
        if best is not None:
            self._record(what, len(candidates), value, best.value)
        return best

    def _best(
        self, candidates: Sequence[Measurement], value: float, starts: Sequence[Start] | None = None
    ) -> Found | None:
        if not candidates:
            return None
        best = max(self.score(candidates, starts), key=lambda other: other.value)
        return best if best.value > value + _LEAST_RISE else None

    def _record(self, what: str, n_candidates: int, before: float, after: float) -> None:
        self.steps.append(
            Step(
                phase=f"Measurement model, climb {self.n_climbs}",
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


def parent_sets(most: int, n_groups: int, in_use: Iterable[int]) -> Ints:
    """Sets of groups as bits, in order: none, up to so many groups, those in use with one more or less.

    >>> parent_sets(1, 3, [0b011]).tolist()
    [0, 1, 2, 3, 4, 7]
    """
    most = min(most if n_groups <= _FEW_GROUPS else 2, n_groups)
    masks = {sum(1 << g for g in some) for r in range(most + 1) for some in combinations(range(n_groups), r)}
    for mask in in_use:
        masks |= {mask, *(mask ^ 1 << g for g in range(n_groups))}
    return np.array(sorted(masks), dtype=np.int64)


def refine(score: BicScore[Measurement], guidance: Guidance, steps: list[Step], clock: Clock) -> list[Found]:
    """The best measurement models found from several proposals, best first; none where nothing can be proposed."""
    # With few variables the proposals are a matter of a moment, and there is always a first model.
    is_small = len(score.sample.names) <= _FEW_VARIABLES
    gains = RankGains(score.sample, score.price, never if is_small else score.check)
    starts, rules = guidance.starts, guidance.rules
    n_climbs = _N_CLIMBS if is_small else _N_CLIMBS // 2
    n_settled, n_close = (_N_SETTLED_NEAR, _N_CLOSE_NEAR) if starts else (_N_SETTLED, _N_CLOSE)
    search = Refinement(score, gains, guidance, steps, n_settled, has_starts=bool(starts))
    with clock.ending_a_stage():
        own = guided_proposals(gains, guidance.max_group_size, rules)
        if not own and not starts:
            return []
        fitted = _unhurried(score, own) if is_small else score(own)
        ranked = [found.model for found in sorted(fitted, key=lambda found: -found.value)]
        climbs = [*ranked[:_N_OWN_CLIMBS], *starts] if starts else ranked[:n_climbs]
        ends: list[Hashable] = []
        for done, model in enumerate(climbs, start=1):
            ends.append(search.climb(model, rebuilding=not starts).model.key)
            clock.measured(done / len(climbs))
            if ends.count(_best_of(score, rules).model.key) == _N_AGREEING:
                break
        if not starts and search.misfits(_best_of(score, rules)):
            search.n_settled = _N_SETTLED_LATE
            for model in ranked[n_climbs:]:
                search.climb(model)
        # Near an answer rebuilding rarely helps: with starts it is tried once, where it counts.
        if starts and (better := search.rebuild(_best_of(score, rules))):
            search.climb(better.model)
        # A later start may have shown that a model passed by is better than all that were climbed from.
        while (top := _best_of(score, rules)).model.key not in search.summits:
            score.check()
            search.climb(top.model)
            search.summits.add(top.model.key)
    return _closest(score, rules, n_close)


def _unhurried(score: BicScore[Measurement], models: Sequence[Measurement]) -> list[Found]:
    """Models fitted whatever the clock says."""
    check, score.check = score.check, never
    try:
        return score(models)
    finally:
        score.check = check


def refine_from(
    model: Measurement, score: BicScore[Measurement], guidance: Guidance, steps: list[Step], clock: Clock
) -> list[Found]:
    """The best measurement models found from one that is good already, best first."""
    gains = RankGains(score.sample, score.price, score.check)
    search = Refinement(score, gains, guidance, steps, _N_SETTLED_NEAR)
    with clock.ending_a_stage():
        search.climb(model, rebuilding=False)
    return _closest(score, guidance.rules, _N_CLOSE_NEAR)


def _closest(score: BicScore[Measurement], rules: Rules | None, most: int) -> list[Found]:
    """The best model met and those near it, so many at most."""
    allowed = [found for found in score.met if is_allowed(found.model, rules)]
    best = max((found.value for found in allowed), default=0.0)  # none where it was stopped before the first fit
    return sorted((found for found in allowed if found.value > best - _CLOSE), key=lambda found: -found.value)[:most]


def _best_of(score: BicScore[Measurement], rules: Rules | None) -> Found:
    return max((found for found in score.met if is_allowed(found.model, rules)), key=lambda found: found.value)
