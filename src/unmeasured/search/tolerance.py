"""Misfit tolerance: what to do where no factor model holds exactly.

::

    the best model of p/2 unrestricted factors is rejected? ── yes ──────────────────────────┐
        │ no                                                                                 │
    exact search ── its model is not rejected ──► the exact answer                           │
        │ rejected                                                                           ▼
        └──────────────────────────────────────────► levels that come back in replicates, the best of them refined at
                                                      N_eff; of both answers the one with the better marginal likelihood

**N_eff.** A population that lies off the model by an RMSEA of e makes a sample of N worth ``N_eff = 1/(1/N + e²)`` rows
(:mod:`unmeasured.search.replicability`). Everything that is bought here, cross-loadings and paths between latents, is
paid at N_eff.

**Marginal likelihood.** If the population covariance is itself drawn around the model with dispersion e², then with F
the discrepancy of maximum likelihood and ``tau = 1/N + e²`` minus twice the log-likelihood is ``df log tau + F/tau`` up
to a constant, least at ``tau = max(1/N, F/df)``. It is BIC where the model holds, and counts misfit on a log scale
where it does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.data.sample import Sample
from unmeasured.errors import Stopped, UnmeasuredError
from unmeasured.levels import Level, named_level, strongest_level
from unmeasured.remarks import distrust
from unmeasured.search.bic import LatentTest
from unmeasured.search.budget import BUDGET
from unmeasured.search.canonical import canonical, in_order_of
from unmeasured.search.clock import Clock
from unmeasured.search.discovery import REJECTED, Discovery, is_rejected, remarks_on_fit, with_isolated
from unmeasured.search.guided import paths_of
from unmeasured.search.model import FactorModel
from unmeasured.search.paper.state import State
from unmeasured.search.pieces import Pieces, Placed, in_order
from unmeasured.search.pipeline import start_near, stopped_in_words
from unmeasured.search.refine import Found, Guidance
from unmeasured.search.replicability import Partition, effective_n, leading, levels_of, partitions
from unmeasured.search.score import BicScore, priors
from unmeasured.search.trace import Steps, Trace
from unmeasured.sem.exploratory import degrees_of_freedom, ml_discrepancy
from unmeasured.sem.fit import Fit, fit_many
from unmeasured.sem.indices import p_value
from unmeasured.sem.solve import Check, never

# RMSEA up to which a model is said to fit closely (Browne and Cudeck 1993): what "auto" tolerates where no model holds.
CLOSE_FIT = 0.05
# Below this p-value of the exact model, though it is not rejected yet, fewer latents are looked at too.
_DOUBTFUL = 0.05
# RMSEA up to which the error of approximation is called reasonable (Browne and Cudeck 1993).
_REASONABLE = 0.08
# Above this RMSEA the usual rules of thumb call a fit unacceptable.
_POOR = 0.1
# Up to so many latents may have two indicators each; where there are more, three.
_FEW_LATENTS = 12
# A tolerance larger than this would call every model acceptable.
_LARGEST = 0.5


def checked_tolerance(tolerance: float | str) -> float | None:
    """A tolerance in units of RMSEA; None for "auto"."""
    if tolerance == "auto":
        return None
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance <= _LARGEST:
        raise UnmeasuredError(
            f"tolerance is 'auto' or a population RMSEA from 0 (the exact criterion) to {_LARGEST}; got {tolerance!r}."
        )
    return float(tolerance)


def marginal_misfit(chi2: float, df: float, n: float) -> float:
    """Minus twice the log marginal likelihood under adventitious error, constants left out; smaller is better.

    >>> marginal_misfit(100.0, 100, 500) < marginal_misfit(400.0, 100, 500)
    True
    """
    if df <= 0:
        return 0.0
    discrepancy = chi2 / n
    dispersion = max(1.0 / n, discrepancy / df)
    return df * math.log(dispersion) + discrepancy / dispersion


def no_model_holds(sample: Sample, check: Check = never) -> bool:
    """Whether even as many unrestricted factors as could be of use are rejected: then so is every factor model.

    A latent needs two indicators, so there are at most half as many as variables; in long questionnaires three. Where
    ``check`` says that the time is over this is not known, and the exact search decides.
    """
    p = len(sample.names)
    m = max(min(p // 2, _FEW_LATENTS), p // 3)
    while m > 1 and degrees_of_freedom(p, m) <= 0:
        m -= 1
    df = degrees_of_freedom(p, m)
    if df <= 0:
        return False
    try:
        discrepancy = ml_discrepancy(sample.corr, m, check)  # NaN: not known either
    except Stopped:
        return False
    return not math.isnan(discrepancy) and p_value(sample.n * discrepancy, df) < REJECTED


@dataclass(frozen=True)
class Tolerant:
    """A sample, the misfit that is tolerated, and what a search needs besides."""

    sample: Sample
    tolerance: float
    penalty: float
    clock: Clock
    n_threads: int | None = None
    verbose: bool = False

    @property
    def n_effective(self) -> float:
        """How many rows of a population that is exactly the model these are worth."""
        return effective_n(self.sample.n, self.tolerance)

    def discover(self, check: Check) -> Discovery | None:
        """The level that comes back best, refined; None where none comes back. ``check`` ends the partitions."""
        data = canonical(self.sample)
        steps = Steps(self.verbose, self.clock)
        with self.clock.listening():
            steps.say("Partitions of the items that come back in replicates")
            found = partitions(data.corr, self.n_effective, check)
            levels = levels_of(found)
            lead = self._one_latent(data) or leading(levels, data.corr, self.n_effective)
            if lead is None:
                steps.close()
                return None
            if lead not in levels:
                levels = [*levels, lead]
            state, near = self.refined(data, lead, steps)
            steps.close()
            return self._answer(data, state, near, levels, lead, Trace(steps))

    def fewer_would_do(self, n_latents: int) -> bool:
        """Whether one latent less, without restrictions, describes the data within the tolerance."""
        p = len(self.sample.names)
        if n_latents < 2 or degrees_of_freedom(p, n_latents - 1) <= 0:
            return False
        discrepancy = ml_discrepancy(self.sample.corr, n_latents - 1, self.clock.check)
        misfit = discrepancy / degrees_of_freedom(p, n_latents - 1)
        return misfit - 1.0 / self.sample.n <= self.tolerance**2

    def is_simpler(self, found: Discovery, exact: Discovery) -> bool:
        """Whether an answer fits closely with fewer latents, which come back more often than those of an exact one."""
        n_latents = len(exact.cpdag.latents)
        if found.fit.rmsea > self.tolerance or len(found.cpdag.latents) >= n_latents:
            return False
        data = canonical(self.sample)
        (other,) = partitions(data.corr, self.n_effective, self.clock.check, numbers=[n_latents])
        lead = found.levels[found.headline]
        return lead.agreement - other.agreement > 2.0 * math.hypot(lead.error, other.error)

    def searched(self, search: Callable[[Sample], Discovery]) -> Discovery:
        """The answer of a search that takes the sample for what it is worth, fitted to the sample as it is."""
        found = search(replace(self.sample, n=self.n_effective))
        # The same optimum: how many rows there are does not move it.
        starts = [found.fit.solution.x]
        (fit,) = fit_many(
            [found.cpdag], self.sample, starts=starts, n_threads=self.n_threads, check=self.clock.check_last_fit
        )
        return replace(found, fit=fit, tolerance=self.tolerance, remarks=(*found.remarks, self._in_words()))

    def _one_latent(self, data: Sample) -> Partition | None:
        """One latent behind everything, where that fits within the tolerance."""
        p = len(data.names)
        df = degrees_of_freedom(p, 1)
        if df <= 0:
            return None
        try:
            excess = ml_discrepancy(data.corr, 1, self.clock.check_measuring) / df - 1.0 / data.n
        except Stopped:
            return None
        return Partition(1, np.zeros(p, dtype=np.int64), 1.0, 0.0) if excess <= self.tolerance**2 else None

    def refined(self, data: Sample, lead: Partition, steps: Steps) -> tuple[State, Found]:
        """The model whose latents are the sets of a partition: second latents for items, then paths between latents."""
        clock, sample = self.clock, replace(data, n=self.n_effective)
        score: BicScore = BicScore(sample, penalty=self.penalty, n_threads=self.n_threads, check=clock.check_measuring)
        model = FactorModel(sample.names, (1,) * lead.n_factors, tuple(1 << int(k) for k in lead.labels))
        pieces = Pieces(score, Guidance(1), steps, clock)
        with clock.ending_a_stage():
            steps.say("Second latents for items")
            with_cross_loadings(pieces, pieces.fitted(model))
        near = in_order(pieces.best or pieces.fitted(model))
        state = near.model.state
        with clock.ending_a_stage():
            steps.say("Paths between latents")
            test = LatentTest(near, score, paths_of(near.model, None), clock.check)
            state = test.starts[-1]
            test.polish(state)
            if test.best is not None:
                state = test.best.state
                steps += test.best.steps
        return state, near

    def _answer(
        self, data: Sample, state: State, near: Found, levels: list[Partition], lead: Partition, trace: Trace
    ) -> Discovery:
        sample, clock = self.sample, self.clock
        ordered, positions = in_order_of(state, sample.names)
        cpdag = with_isolated(ordered.cpdag, sample.names)
        start = None
        if len(sample.names) > BUDGET.many_variables:
            start = start_near(cpdag, near, dict(zip(cpdag.latents, positions, strict=True)))
        (fit,) = fit_many([cpdag], sample, starts=[start], n_threads=self.n_threads, check=clock.check_last_fit)
        # Latents were numbered as in the partition; they go by the order of their first indicators now.
        name_of = {position: name for name, position in zip(ordered.latents, positions, strict=True)}
        at = [data.names.index(name) for name in sample.names]
        own = Level(sample.names, tuple(name_of[int(lead.labels[j])] for j in at), lead.agreement, lead.error)
        finest_first = sorted(levels, key=lambda level: -level.n_factors)
        told = tuple(
            own
            if level is lead
            else Level(sample.names, named_level([int(level.labels[j]) for j in at], own.latents), level.agreement)
            for level in finest_first
        )
        # That BIC would rather have every covariance free is what tolerance is about; a bad fit is said all the same.
        poor = remarks_on_fit(fit) if fit.rmsea > _POOR else []
        remarks = [self._in_words(), _levels_in_words(told, finest_first.index(lead)), *poor]
        stopped = ""
        if clock.stopped:
            stopped = stopped_in_words(clock, fit)
            remarks = [distrust(stopped), *remarks]
        return Discovery(
            cpdag, fit, trace, tuple(remark for remark in remarks if remark), stopped=stopped,
            interrupted=clock.is_interrupted, levels=told, headline=finest_first.index(lead), tolerance=self.tolerance,
        )  # fmt: skip

    def _in_words(self) -> str:
        return (
            f"Misfit is tolerated up to a population RMSEA of {self.tolerance:g}, which makes N = {self.sample.n:.0f} "
            f"worth {self.n_effective:.0f}: what is smaller is not reported. LGES(tolerance=0) reports all that the "
            "exact criterion pays for."
        )


def _levels_in_words(levels: Sequence[Level], headline: int) -> str:
    """How sure the level is that leads, and what others there are."""
    lead = levels[headline]
    if lead.n_latents == 1:
        return "One latent describes all items within that tolerance."
    words = (
        f"Why {lead.n_latents} latents: their items come back most often in replicates of the data (mean adjusted Rand "
        f"index {lead.agreement:.2f}; 1 is always, 0 is chance)."
    )
    others = [f"{level.n_latents} ({level.agreement:.2f})" for k, level in enumerate(levels) if k != headline]
    return words + (f" Other levels in result_.levels: {', '.join(others)} latents." if others else "")


def with_cross_loadings(pieces: Pieces, found: Placed) -> Placed:
    """Second latents for items where the score asks for them; every item keeps its first, and has two at most.

    By modification indices in batches, each fitted; a batch that does not raise the score is halved.
    """
    score, n = pieces.score, len(found.model.observed)
    penalty = score.price + score.penalty * priors(n, len(found.model.sizes))[1]
    while True:
        pieces.check()
        gain = 0.5 * score.sample.n * _modification(score.sample.corr, found) - penalty
        best = gain.argmax(axis=0)
        rise = gain[best, np.arange(n)]
        order = [int(j) for j in np.argsort(-rise, kind="stable") if rise[j] > 0]
        # The strongest first: what they explain is not asked for again.
        order = order[: max(1, (len(order) + 2) // 3)]
        better = None
        while better is None and order:
            model = found.model
            for j in order:
                other = model.with_parents(j, model.parents[j] | 1 << int(best[j]))
                model = other if other.is_valid else model
            if model.key != found.model.key:
                fitted = pieces.fitted(model, found.factors)
                better = fitted if fitted.value > found.value else None
            order = order[: len(order) // 2]
        if better is None:
            break
        found = better
    return found


def _modification(S: Floats, found: Placed) -> Floats:
    """(G, n) by how much a second latent for an item lowers ``log det Sigma + tr(Sigma^-1 S)``.

    The score test of a loading against the item's own loading and residual variance; zero where the item has two.
    """
    factors = found.factors
    P = np.linalg.inv(factors.implied)
    V = factors.loadings.T @ factors.Phi  # (n, m) covariance of items and latents
    PV = P @ V
    VPV = V.T @ PV
    slope = 2.0 * (PV - P @ S @ PV)  # (n, m) derivatives by the loadings
    out = np.zeros(factors.loadings.shape)
    for j, mask in enumerate(found.model.parents):
        if mask.bit_count() != 1:
            continue
        h, d = mask.bit_length() - 1, P[j, j]
        own = np.array([[d * VPV[h, h] + PV[j, h] ** 2, d * PV[j, h]], [d * PV[j, h], 0.5 * d * d]])
        cross = np.stack([d * VPV[:, h] + PV[j] * PV[j, h], d * PV[j]], axis=1)  # (m, 2)
        curvature = d * np.diag(VPV) + PV[j] ** 2 - np.einsum("gi,ij,gj->g", cross, np.linalg.inv(own), cross)
        out[:, j] = slope[j] ** 2 / (4.0 * np.maximum(curvature, 1e-9))
        out[h, j] = 0.0
    return out


def discover_within(tolerant: Tolerant, is_auto: bool, exact: Callable[[Sample], Discovery]) -> Discovery:
    """The exact answer where a factor model holds, else what comes back within the tolerance.

    Of two answers the tolerant one is taken where

    - the exact model is rejected, and the tolerant one describes the data reasonably or has the better marginal
      likelihood;
    - the exact model is doubtful, and has latents that do not come back while fewer fit closely.
    """
    clock = tolerant.clock
    if is_auto and not no_model_holds(tolerant.sample, clock.check_test):
        found = first = exact(tolerant.sample)
        if not first.cpdag.groups or first.stopped:
            return first
        with suppress(Stopped):
            found = _of_both(tolerant, first)
        if not clock.stopped or found.stopped:
            return found
        # Whether the other answer is the better one is not known.
        stopped = stopped_in_words(clock, found.fit)
        remarks = (distrust(stopped), *found.remarks)
        return replace(found, stopped=stopped, remarks=remarks, interrupted=clock.is_interrupted)
    return tolerant.discover(clock.check_comparing) or tolerant.searched(exact)


def _of_both(tolerant: Tolerant, first: Discovery) -> Discovery:
    """An exact answer, or the tolerant one where that is to be taken."""
    is_doubtful = first.fit.df > 0 and first.fit.pvalue < _DOUBTFUL
    if not is_doubtful or not (is_rejected(first.fit) or tolerant.fewer_would_do(len(first.cpdag.latents))):
        return first
    second = tolerant.discover(tolerant.clock.check_measuring)
    if second is None:
        return first
    if not is_rejected(first.fit):
        return second if tolerant.is_simpler(second, first) else first
    if second.fit.rmsea <= _REASONABLE or _marginal(second.fit) < _marginal(first.fit):
        return second
    return with_levels(first, second)


def _marginal(fit: Fit) -> float:
    return marginal_misfit(fit.chi2, fit.df, fit.sample.n)


def with_levels(found: Discovery, other: Discovery) -> Discovery:
    """An exact answer whose model is rejected, to be read beside the levels that come back."""
    own = strongest_level(found.cpdag, found.fit)
    levels = [level for level in other.levels if level.n_latents != own.n_latents]
    merged = sorted([*levels, own], key=lambda level: -level.n_latents)
    renamed = [
        level if level is own else replace(level, latents=named_level(level.labels, own.latents)) for level in merged
    ]
    return replace(found, levels=tuple(renamed), headline=merged.index(own))
