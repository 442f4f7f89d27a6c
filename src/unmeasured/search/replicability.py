"""How many latents, where no model holds exactly: as many as are found again in new samples.

With thousands of respondents every simple model of a questionnaire is rejected, and a criterion of fit goes on to buy
latents for pairs of similar wordings. What a scientist wants of a latent is that it comes back. So the items are
partitioned by exploratory factor analysis with m = 2, 3, ... factors, each item with the factor it loads on most, and
each partition is compared with those of replicates of the data::

    R ──► N_eff rows drawn, again and again ──► the same analysis ──► agreement with the partition of the data

    agreement   (adjusted Rand index)
      1 |            x
        |      x          x                    the highest: the level to lead with (ties: the densest sets)
     .5 |   x     x          x   x  x          local peaks: other levels, facets below and broader traits above
        +--------------------------- m

The replicates carry two kinds of error: that of sampling, and that of the model. If the population lies off the model
by an RMSEA of e (adventitious error; Wu and Browne 2015), then a sample of N tells as much as
``N_eff = 1 / (1/N + e²)`` rows from a population that is exactly the model. Drawing N_eff rows instead of N is all that
it takes: minor factors that another population of the same kind would not have do not come back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from sklearn.metrics import adjusted_rand_score

from unmeasured.arrays import Floats, Ints
from unmeasured.errors import Stopped
from unmeasured.sem.exploratory import dense_factors, strongest
from unmeasured.sem.solve import Check, never

# Items a latent has on average, at the least: with three indicators a latent is identified by itself.
_ITEMS_PER_LATENT = 3
# Every number of factors up to this one is tried; beyond, steps grow by the ratio, and the surroundings of peaks are
# filled in. Partitions with 40 and 41 factors are nearly the same.
_ALL_UP_TO, _RATIO = 16, 1.1
# Peaks whose surroundings are filled in.
_N_REFINED = 3
# A level is the highest within this factor of its number of latents, so that two levels tell different things.
_APART = 1.5
# Half of what chance leaves has to come back for a partition to be called a level at all.
LEAST_AGREEMENT = 0.5
# Replicates: their mean has a standard error of about .02 where partitions are unstable. Fewer with many items, where a
# partition has more pairs to agree on and takes longer.
_REPLICATES, _LEAST_REPLICATES, _MANY_ITEMS = 30, 10, 60


@dataclass(frozen=True)
class Partition:
    """Items partitioned by a number of factors, and how well that comes back in replicates."""

    n_factors: int
    labels: Ints  # (p,) the factor of each item
    agreement: float  # mean adjusted Rand index between data and replicates
    error: float  # its standard error

    @property
    def is_measurable(self) -> bool:
        """Whether every factor has the two items that a latent needs."""
        return bool((np.bincount(self.labels, minlength=self.n_factors) >= 2).all())

    def in_order(self) -> Partition:
        """The same with factors numbered in the order of their first items."""
        number = {label: k for k, label in enumerate(dict.fromkeys(self.labels.tolist()))}
        return replace(self, labels=np.array([number[label] for label in self.labels.tolist()], dtype=np.int64))


def effective_n(n: float, tolerance: float) -> float:
    """How many rows of a population that is exactly the model N rows are worth, if it lies off by so much RMSEA.

    >>> round(effective_n(4000, 0.05)), effective_n(4000, 0.0)
    (364, 4000.0)
    """
    return 1.0 / (1.0 / n + tolerance**2) if tolerance else float(n)


def partitions(
    R: Floats,
    n_effective: float,
    check: Check = never,
    *,
    numbers: Sequence[int] | None = None,
    seed: int = 0,
) -> list[Partition]:
    """The partitions into 2, 3, ... sets of items, or into these numbers of sets, with their agreement, in that order.

    Where ``check`` raises :class:`~unmeasured.errors.Stopped` those found so far, from few factors to many; of given
    numbers none is left out, so that it is raised on.
    """
    replicates = _Replicates(R, n_effective, seed, check)
    if numbers is not None:
        return [replicates.partition(m) for m in numbers]
    most = _most_factors(len(R))
    found: dict[int, Partition] = {}
    with suppress(Stopped):
        for m in _grid(most):
            found[m] = replicates.partition(m)
        for peak in sorted(found.values(), key=lambda one: -one.agreement)[:_N_REFINED]:
            near = range(math.ceil(peak.n_factors / _RATIO), math.floor(peak.n_factors * _RATIO) + 1)
            for m in near:
                if m not in found and 2 <= m <= most:
                    found[m] = replicates.partition(m)
    return [found[m] for m in sorted(found)]


def levels_of(found: list[Partition]) -> list[Partition]:
    """The partitions that come back better than all of similar number, most factors first.

    Numbers of factors that replicates cannot tell apart (a difference of less than one standard error) are one level,
    read at its finest.

    >>> one = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    >>> curve = [Partition(m, one % m, s, 0.02) for m, s in [(2, 0.95), (3, 0.8), (4, 0.6), (5, 0.7)]]
    >>> [level.n_factors for level in levels_of(curve)]
    [5, 2]
    """
    usable = [one for one in found if one.is_measurable]
    peaks: list[Partition] = []
    for one in sorted(usable, key=lambda one: -one.n_factors):  # the finest first
        near = [other for other in usable if 1 / _APART <= other.n_factors / one.n_factors <= _APART]
        is_peak = all(one.agreement >= other.agreement - math.hypot(one.error, other.error) for other in near)
        is_new = not peaks or peaks[-1].n_factors > one.n_factors * _APART
        if one.agreement >= LEAST_AGREEMENT and is_peak and is_new:
            peaks.append(one)
    return peaks


def leading(levels: list[Partition], R: Floats, n_effective: float) -> Partition | None:
    """The level to lead with: the one that comes back best.

    Among levels whose agreement does not differ by two standard errors it is the one with the highest modularity
    (Newman 2006) on the network of absolute partial correlations: items of a set depend on one another most, given all
    others. The correlations are shrunk as N_eff asks.
    """
    best = max(levels, key=lambda level: level.agreement, default=None)
    if best is None:
        return None
    near = [level for level in levels if best.agreement - level.agreement <= 2.0 * math.hypot(best.error, level.error)]
    network = _network(R, n_effective)
    return max(near, key=lambda level: modularity(network, level.labels))


def modularity(network: Floats, labels: Ints) -> float:
    """The part of the weights within sets, less what chance would put there.

    >>> two = np.kron(np.eye(2), np.ones((2, 2)))
    >>> modularity(two, np.array([0, 0, 1, 1])), modularity(two, np.array([0, 0, 0, 0]))
    (0.5, 0.0)
    """
    strength = network.sum(axis=1)
    whole = strength.sum()
    same = labels[:, None] == labels[None, :]
    return float(((network - np.outer(strength, strength) / whole) * same).sum() / whole)


def _network(R: Floats, n_effective: float) -> Floats:
    p = len(R)
    shrink = p / (p + n_effective)
    precision = np.linalg.inv((1.0 - shrink) * R + shrink * np.eye(p))
    unit = np.sqrt(np.diag(precision))
    network = np.abs(precision / np.outer(unit, unit))
    np.fill_diagonal(network, 0.0)
    return np.asarray(network)


def _most_factors(p: int) -> int:
    """As many factors as have three items each and leave degrees of freedom."""
    most = p // _ITEMS_PER_LATENT
    while most > 1 and (p - most) ** 2 - (p + most) <= 0:
        most -= 1
    return most


def _grid(most: int) -> list[int]:
    grid = list(range(2, min(most, _ALL_UP_TO) + 1))
    while grid and grid[-1] < most:
        grid.append(min(max(grid[-1] + 1, round(grid[-1] * _RATIO)), most))
    return grid


class _Replicates:
    """Correlations of the data and of replicates, with residual variances of the last analysis to start from."""

    def __init__(self, R: Floats, n_effective: float, seed: int, check: Check) -> None:
        self._check = check
        p = len(R)
        rng = np.random.default_rng(seed)
        n_replicates = max(_LEAST_REPLICATES, min(_REPLICATES, round(_REPLICATES * _MANY_ITEMS / p)))
        values, vectors = np.linalg.eigh(R)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        n_rows = max(round(n_effective), 3)
        self.matrices = [R]
        for _ in range(n_replicates):
            self.matrices.append(np.corrcoef(rng.standard_normal((n_rows, p)) @ root.T, rowvar=False))
        self._starts: list[Floats | None] = [None] * len(self.matrices)

    def partition(self, n_factors: int) -> Partition:
        labels = [self._labels(b, n_factors) for b in range(len(self.matrices))]
        agreement = [float(adjusted_rand_score(labels[0], other)) for other in labels[1:]]
        error = float(np.std(agreement) / math.sqrt(len(agreement)))
        return Partition(n_factors, labels[0], float(np.mean(agreement)), error)

    def _labels(self, b: int, n_factors: int) -> Ints:
        loadings, self._starts[b] = dense_factors(self.matrices[b], n_factors, self._starts[b], self._check)
        return strongest(loadings)
