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

**Marginal likelihood.** If the population covariance is itself drawn around the model with dispersion e², then with F the
discrepancy of maximum likelihood and ``tau = 1/N + e²`` minus twice the log-likelihood is ``df log tau + F/tau`` up to a
constant, least at ``tau = max(1/N, F/df)``. It is BIC where the model holds, and counts misfit on a log scale where it
does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.data.sample import Sample
from unmeasured.errors import UnmeasuredError
from unmeasured.search.bic import LatentTest
from unmeasured.search.clock import Clock
from unmeasured.search.discovery import REJECTED, Discovery, is_rejected, with_isolated
from unmeasured.search.guided import paths_of
from unmeasured.search.levels import Level, named_level, strongest_latent
from unmeasured.search.measurement import Measurement
from unmeasured.search.observed import questioned
from unmeasured.search.pieces import Pieces, Placed, in_order
from unmeasured.search.refine import Guidance
from unmeasured.search.replicability import Partition, effective_n, levels_of, partitions
from unmeasured.search.state import State
from unmeasured.search.trace import Steps, Trace
from unmeasured.score import BicScore, surprises
from unmeasured.sem.exploratory import degrees_of_freedom, ml_discrepancy
from unmeasured.sem.fit import Fit, fit_many
from unmeasured.sem.indices import p_value

# RMSEA up to which a model is said to fit closely (Browne and Cudeck 1993): what "auto" tolerates where no model holds.
CLOSE_FIT = 0.05
# Up to so many latents may have two indicators each; where there are more, three.
_FEW_LATENTS = 12
# A tolerance larger than this would call every model acceptable.
_LARGEST = 0.5
# A standardised loading or correlation of latents beyond this belongs to no proper solution.
_IMPROPER = 1.0


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


def no_model_holds(sample: Sample) -> bool:
    """Whether even as many unrestricted factors as could be of use are rejected: then so is every factor model.

    A latent needs two indicators, so there are at most half as many as variables; in long questionnaires three.
    """
    p = len(sample.names)
    m = max(min(p // 2, _FEW_LATENTS), p // 3)
    while m > 1 and degrees_of_freedom(p, m) <= 0:
        m -= 1
    df = degrees_of_freedom(p, m)
    if df <= 0:
        return False
    discrepancy = ml_discrepancy(sample.corr, m)  # NaN: not known, so the exact search decides
    return not math.isnan(discrepancy) and p_value(sample.n * discrepancy, df) < REJECTED


@dataclass(frozen=True)
class Tolerant:
    """What a search within a tolerance needs."""

    sample: Sample
    tolerance: float
    penalty: float
    clock: Clock
    n_threads: int | None = None
    verbose: bool = False

    @property
    def n_effective(self) -> float:
        return effective_n(self.sample.n, self.tolerance)

    def discover(self) -> Discovery | None:
        """The level that comes back best, refined; None where none comes back or there is one latent only."""
        found = [one.in_order() for one in partitions(self.sample.corr, self.n_effective, self.clock.is_over)]
        levels = levels_of(found)
        one = self._one_latent()
        if one is not None:
            lead: Partition | None = one
            levels = [*levels, one]
        else:
            lead = max(levels, key=lambda level: level.agreement, default=None)
        if lead is None:
            return None
        steps = Steps(self.verbose, self.clock)
        state = self.refined(lead, steps)
        steps.close()
        return self._answer(state, levels, lead, Trace(steps))

    def _one_latent(self) -> Partition | None:
        """One latent behind everything, where that fits within the tolerance."""
        p = len(self.sample.names)
        df = degrees_of_freedom(p, 1)
        if df <= 0:
            return None
        excess = ml_discrepancy(self.sample.corr, 1) / df - 1.0 / self.sample.n
        if not excess <= self.tolerance**2:
            return None
        return Partition(1, np.zeros(p, dtype=np.int64), 1.0, 0.0)

    def refined(self, lead: Partition, steps: Steps) -> State:
        """The model whose latents are the sets of a partition: other parents for items, then paths between latents."""
        sample = replace(self.sample, n=self.n_effective)
        score: BicScore[Measurement] = BicScore(sample, penalty=self.penalty, n_threads=self.n_threads)
        model = Measurement(sample.names, (1,) * lead.n_factors, tuple(1 << int(k) for k in lead.labels))
        pieces = Pieces(score, Guidance(1), steps, self.clock)
        found = in_order(with_cross_loadings(pieces, pieces.fitted(model)))
        test = LatentTest(found, score, paths_of(found.model, None), self.clock.is_over)
        start = test.starts[-1]
        test.polish(start)
        return test.best.state if test.best is not None else start

    def _answer(self, state: State, levels: list[Partition], lead: Partition, trace: Trace) -> Discovery:
        sample = self.sample
        cpdag = with_isolated(state.cpdag, sample.names)
        (fit,) = fit_many([cpdag], sample, n_threads=self.n_threads)
        leading = Level(sample.names, tuple(state.latents[int(k)] for k in lead.labels), lead.agreement)
        ordered = sorted(levels, key=lambda level: -level.n_factors)
        told = tuple(
            leading if level is lead else Level(sample.names, named_level(level.labels.tolist(), leading.latents), level.agreement)
            for level in ordered
        )
        return Discovery(
            cpdag, fit, trace, levels=told, headline=ordered.index(lead), tolerance=self.tolerance,
            interrupted=self.clock.is_interrupted,
        )  # fmt: skip


def with_cross_loadings(pieces: Pieces, found: Placed) -> Placed:
    """Second latents for items where the score asks for them; every item keeps its first, and has two at most.

    By modification indices in batches, each fitted; a batch that does not raise the score is halved.
    """
    score, n = pieces.score, len(found.model.observed)
    penalty = score.price + score.penalty * surprises(n, len(found.model.sizes))[1]
    while not pieces.clock.is_over():
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
    """(G, n) by how much a second latent for an item lowers ``log det Sigma + tr(Sigma^-1 S)``, its other parameters free.

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


def leading_level(found: Discovery, agreement: float = math.nan) -> Level:
    """Each item with the latent, or the group of latents, it loads on most in the model found."""
    fit, graph = found.fit, found.cpdag
    table = fit.parameters
    rows = table[table["op"] == "=~"]
    loadings = np.zeros((len(graph.latents), len(graph.observed)))
    for latent, item, std in zip(rows["lhs"], rows["rhs"], rows["std"], strict=True):
        loadings[graph.latents.index(latent), graph.observed.index(item)] = 0.0 if math.isnan(std) else std
    latents = strongest_latent(graph.observed, graph.latents, graph.groups, loadings)
    return Level(tuple(graph.observed), latents, agreement)


def discover_within(tolerant: Tolerant, is_auto: bool, exact: Callable[[], Discovery]) -> Discovery:
    """The exact answer where a factor model holds, else what comes back within the tolerance."""
    sample = tolerant.sample
    first: Discovery | None = None
    if is_auto and not no_model_holds(sample):
        first = exact()
        if not first.cpdag.groups or not is_rejected(first.fit) or tolerant.clock.is_over():
            return first
    second = tolerant.discover()
    if second is None:
        return first if first is not None else exact()
    if first is not None and _marginal(first.fit) <= _marginal(second.fit):
        return first
    return second


def _marginal(fit: Fit) -> float:
    return marginal_misfit(fit.chi2, fit.df, fit.sample.n)
