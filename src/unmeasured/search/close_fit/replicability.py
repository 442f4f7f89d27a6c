"""How many latents, where no model holds exactly: as many as are found again in new samples.

With thousands of respondents every simple model of a questionnaire is rejected, and a criterion of fit goes on to buy
latents for pairs of similar wordings. What a scientist wants of a latent is that it comes back. So the items are
partitioned by exploratory factor analysis with m = 2, 3, ... factors, each item with the factor it loads on most, and
each partition is compared with those of replicates of the data::

    R ──► N_eff rows drawn, again and again ──► the same analysis ──► agreement with the partition of the data

    agreement   (adjusted Rand index)
      1 |            x
        |      x          x                    local peaks are kept; finer than the selected one
     .5 |   x     x          x   x  x          are facets, coarser ones broader traits
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
from typing import Protocol

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.errors import Stopped
from unmeasured.models.exploratory import dense_factors, strongest
from unmeasured.models.solve import Check, never
from unmeasured.search.budget import BUDGET


@dataclass(frozen=True)
class Partition:
    """Items partitioned by a number of factors, and how well that comes back in replicates."""

    n_factors: int
    labels: Ints  # (p,) the factor of each item
    agreement: float  # mean adjusted Rand index between data and replicates
    agreement_se: float  # its standard error

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
    replicates = Replicates(R, n_effective, seed, check)
    if numbers is not None:
        return [replicates.partition(m) for m in numbers]
    return all_partitions(replicates)


def all_partitions(replicates: Replicates) -> list[Partition]:
    """The partitions into 2, 3, ... sets; those found so far where the time is over."""
    most = _most_factors(len(replicates.matrices[0]))
    found: dict[int, Partition] = {}
    with suppress(Stopped):
        for m in _grid(most):
            found[m] = replicates.partition(m)
        for peak in sorted(found.values(), key=lambda one: -one.agreement)[: BUDGET.n_peaks]:
            near = range(
                math.ceil(peak.n_factors / BUDGET.step_ratio), math.floor(peak.n_factors * BUDGET.step_ratio) + 1
            )
            for m in near:
                if m not in found and 2 <= m <= most:
                    found[m] = replicates.partition(m)
    return [found[m] for m in sorted(found)]


def agreement_peaks(found: list[Partition]) -> list[Partition]:
    """Return the local maxima of agreement, most factors first.

    Numbers of factors that replicates cannot tell apart (a difference of less than one standard error) are one
    partition, the finest of them.

    >>> one = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    >>> curve = [Partition(m, one % m, s, 0.02) for m, s in [(2, 0.95), (3, 0.8), (4, 0.6), (5, 0.7)]]
    >>> [one.n_factors for one in agreement_peaks(curve)]
    [5, 2]
    """
    usable = [one for one in found if one.is_measurable]
    peaks: list[Partition] = []
    apart = BUDGET.levels_apart
    for one in sorted(usable, key=lambda one: -one.n_factors):  # the finest first
        near = [other for other in usable if 1 / apart <= other.n_factors / one.n_factors <= apart]
        is_peak = all(
            one.agreement >= other.agreement - math.hypot(one.agreement_se, other.agreement_se) for other in near
        )
        is_new = not peaks or peaks[-1].n_factors > one.n_factors * apart
        if one.agreement >= BUDGET.least_agreement and is_peak and is_new:
            peaks.append(one)
    return peaks


class Replicated(Protocol):
    """A mean agreement with replicates and its standard error."""

    @property
    def agreement(self) -> float:
        """Mean adjusted Rand index between data and replicates."""

    @property
    def agreement_se(self) -> float:
        """Standard error of that mean."""


def comes_back_more_often(one: Replicated, other: Replicated) -> bool:
    """Whether a partition agrees with replicates better than another does, by more than two standard errors.

    >>> one, other = (Partition(2, np.array([0, 0, 1, 1]), agreement, 0.03) for agreement in (0.9, 0.8))
    >>> comes_back_more_often(one, replace(other, agreement=0.82)), comes_back_more_often(one, other)
    (False, True)
    """
    return one.agreement - other.agreement > 2.0 * math.hypot(one.agreement_se, other.agreement_se)


def select_partition(found: list[Partition], R: Floats, n_effective: float) -> Partition | None:
    """Select the partition with the largest agreement × modularity.

    The modularity (Newman 2006) of a partition on the network of absolute partial correlations, the correlations shrunk
    as N_eff asks, times its agreement. By agreement alone two broad halves of the items would lead nearly everywhere,
    since they are hard to mistake; by modularity alone sets that another sample does not have.
    """
    network = _network(R, n_effective)
    return max(found, key=lambda one: one.agreement * modularity(network, one.labels), default=None)


def dependence_within(R: Floats, n_effective: float, labels: Ints) -> float:
    """How much the items of each set of a partition depend on one another: its modularity on that network."""
    return modularity(_network(R, n_effective), labels)


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
    most = p // BUDGET.items_per_latent
    while most > 1 and (p - most) ** 2 - (p + most) <= 0:
        most -= 1
    return most


def _grid(most: int) -> list[int]:
    grid = list(range(2, min(most, BUDGET.every_number_up_to) + 1))
    while grid and grid[-1] < most:
        grid.append(min(max(grid[-1] + 1, round(grid[-1] * BUDGET.step_ratio)), most))
    return grid


class Replicates:
    """Correlations of the data and of replicates, with residual variances of the last analysis to start from.

    A replicate is the correlation of ``n_effective`` normal rows with the correlations of the data: drawn as a Wishart
    matrix by its triangular root (Bartlett 1934), which takes as long for a million rows as for a hundred; with fewer
    rows than variables row by row.
    """

    def __init__(
        self, R: Floats, n_effective: float, seed: int = 0, check: Check = never, most: int = BUDGET.n_replicates
    ) -> None:
        self._check = check
        p = len(R)
        rng = np.random.default_rng(seed)
        many = round(BUDGET.n_replicates * BUDGET.many_items / p)
        n_replicates = max(BUDGET.least_replicates, min(most, many))
        values, vectors = np.linalg.eigh(R)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        n_rows = max(round(n_effective), 3)
        self.matrices = [R, *(_correlations(rng, root, n_rows) for _ in range(n_replicates))]
        self._starts: list[Floats | None] = [None] * len(self.matrices)

    def partition(self, n_factors: int) -> Partition:
        """The partition of the data by so many factors, and how well it comes back."""
        own, *others = self.labels(n_factors)
        return Partition(n_factors, own, *_agreement(own, others))

    def agreement(self, labels: Ints, n_factors: int) -> tuple[float, float]:
        """How well a given partition agrees with those of replicates by so many factors, and the standard error."""
        return _agreement(labels, self.labels(n_factors)[1:])

    def labels(self, n_factors: int) -> list[Ints]:
        """The partitions by so many factors: of the data, then of every replicate."""
        found = []
        for b, R in enumerate(self.matrices):
            loadings, self._starts[b] = dense_factors(R, n_factors, self._starts[b], self._check)
            found.append(strongest(loadings))
        return found


def _agreement(labels: Ints, others: Sequence[Ints]) -> tuple[float, float]:
    agreement = [adjusted_rand(labels, other) for other in others]
    return float(np.mean(agreement)), float(np.std(agreement) / math.sqrt(len(agreement)))


def adjusted_rand(labels: Ints, others: Ints) -> float:
    """The adjusted Rand index of two partitions (Hubert and Arabie 1985), numbered from zero.

    By the formula of scikit-learn, which takes 0.8 ms for 15 items, most of it to check what it is given.

    >>> adjusted_rand(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])), adjusted_rand(np.zeros(2, int), np.arange(2))
    (1.0, 0.0)
    """
    width = int(others.max()) + 1
    both = np.bincount(labels * width + others)
    n, same = len(labels), int((both**2).sum()) - len(labels)
    in_first, in_second = (int((np.bincount(one) ** 2).sum()) - n for one in (labels, others))
    first_only, second_only = in_first - same, in_second - same
    neither = n * n - n - same - first_only - second_only
    if first_only == 0 and second_only == 0:
        return 1.0
    chance = (same + second_only) * (second_only + neither) + (same + first_only) * (first_only + neither)
    return 2.0 * (same * neither - second_only * first_only) / chance


def _correlations(rng: np.random.Generator, root: Floats, n_rows: int) -> Floats:
    """Correlations of normal rows whose covariance has this root."""
    p = len(root)
    if n_rows <= p:
        return np.asarray(np.corrcoef(rng.standard_normal((n_rows, p)) @ root.T, rowvar=False))
    triangle = np.tril(rng.standard_normal((p, p)), -1)
    triangle[np.diag_indices(p)] = np.sqrt(rng.chisquare(n_rows - 1 - np.arange(p)))
    half = root @ triangle
    half /= np.sqrt((half**2).sum(axis=1, keepdims=True))
    return np.asarray(half @ half.T)
