"""Clusters of many variables: sets that satisfy a rank constraint with their nearest others; no fits.

::

    A  ·  ·  ·            rank(Sigma_{A, B}) <= k,   B: the variables that are correlated with A most
       ╲ │ ╱
    B   · · · · · · ·     · · · · · · ·   (hundreds of others: not looked at)

That k latents stand behind a set A is a constraint on its covariances with *all* other variables, and so with any of
them. Tested against all of 300 variables, a constraint that is wrong because of five of them costs hardly more than
chance makes of the 295 others; tested against the twelve nearest ones it stands out. A set that is related to no others
passes: nothing speaks against it.

Small sets satisfy a constraint too easily: two indicators of a group of two latents whose loadings are nearly
proportional pass as those of one latent, and would tear the group apart. So sets with an indicator to spare come first,
whatever their rank, and those that have just as many as a group needs come last::

    k = 1 of three indicators and more → k = 2 of five and more → … → k = 1 of two → k = 2 of four → …
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.data.sample import Sample
from unmeasured.models.rank import nearest_roots
from unmeasured.models.solve import Check, never
from unmeasured.search.budget import BUDGET
from unmeasured.search.measurement.proposals import Cluster
from unmeasured.search.model import FactorModel

# Sets that are looked at between two looks at the clock: some milliseconds.
_AT_ONCE = 2000


class LocalRanks:
    """Rank constraints of sets of variables with their nearest related others, on one sample."""

    def __init__(self, sample: Sample, check: Check = never) -> None:
        self.names = sample.names
        self.check = check  # ends the work where the time is over
        self._S, self._N = sample.corr, sample.n
        self._size = np.abs(sample.corr)
        #: Correlations that are more than chance.
        self._related = self._size > BUDGET.unrelated / math.sqrt(sample.n)
        #: (n, n) how many variables are nearer to each: every member of a set chooses others in turn. Those that may be
        #: unrelated are not chosen: the largest of hundreds of correlations by chance would count as evidence.
        order = np.argsort(np.argsort(-self._size, axis=1, kind="stable"), axis=1)
        self._turn = np.where(self._related, order, len(order))

    def gains(self, subsets: Ints, k: int, rate: float) -> Floats:
        """(B,) what chance would cost the constraint rank <= k, and ``rate`` standard deviations more, less its cost.

        Positive where subsets (B, a) pass. The upper tail of half a chi-square, and the cost with Bartlett's correction
        for few rows.
        """
        shortfalls, n_others = self._shortfalls(subsets, k)
        a = subsets.shape[1]
        codimensions = max(a - k, 0) * np.maximum(n_others - k, 0)
        worth = 0.5 * (codimensions + rate * np.sqrt(2.0 * codimensions) + 0.5 * rate**2)
        rows = np.maximum(self._N - 0.5 * (a + n_others + 1), 1.0)
        return np.asarray(worth - rows * shortfalls)

    def _shortfalls(self, subsets: Ints, k: int) -> tuple[Floats, Ints]:
        """(B,) log-likelihood per row that the constraint costs (``models/rank.py``); with how many others."""
        n_sets, a = subsets.shape
        costs, n_others = np.zeros(n_sets), np.zeros(n_sets, dtype=np.int64)
        most = min(BUDGET.n_near, len(self._S) - a)
        if a > k and most > k:
            for i in range(0, n_sets, _AT_ONCE):
                self.check()
                at = slice(i, i + _AT_ONCE)
                some = np.ascontiguousarray(subsets[at])
                nearest_roots(self._S, self._turn, some, k, most, costs[at], n_others[at])
        return costs, n_others

    def clusters(self, items: Sequence[int], rate: float, max_group_size: int) -> Iterator[Cluster]:
        """Clusters among the items, one by one, so that those found so far are there when the time is over."""
        left = set(items)
        ranks = range(1, max_group_size + 1)
        for k, least in [(k, 2 * k + 1) for k in ranks] + [(k, 2 * k) for k in ranks]:
            if len(left) < least:
                continue
            seeds = self._subsets(sorted(left), k + 1)
            gains = self.gains(seeds, k, rate)
            for i in np.argsort(-gains, kind="stable").tolist():
                if gains[i] <= 0.0:
                    break
                seed = seeds[i].tolist()
                if left.issuperset(seed) and len(cluster := self._grown(seed, left, k, rate, least)) >= least:
                    left.difference_update(cluster)
                    yield k, tuple(sorted(cluster))

    def _grown(self, seed: list[int], left: set[int], k: int, rate: float, least: int) -> list[int]:
        """A set with the variables that satisfy the constraint with it best, one after the other, while they do.

        The seed alone where too few of its nearest ones do for so many variables at least.
        """
        cluster, sets = list(seed), list(combinations(seed, k))
        others = np.array(sorted(left.difference(seed)), dtype=np.int64)
        others = others[self._related[others][:, cluster].any(axis=1)]
        closeness = self._size[others][:, cluster].max(axis=1, initial=0.0)
        nearest = others[np.sort(np.argsort(-closeness, kind="stable")[: BUDGET.n_screened])]
        n_sets, passed = len(sets), self._passed(sets, nearest, k, rate)
        if (passed > BUDGET.passing * n_sets).sum() < least - len(seed):
            return cluster
        if len(nearest) < len(others):
            passed = self._passed(sets, others, k, rate)
        while True:
            # Most sets with k of the cluster have to pass. In sparse graphs a latent touches the others by way of one,
            # or none: the indicators of both together have no larger rank than those of that one. Within the set the
            # constraint does not hold then.
            kin = passed > BUDGET.passing * n_sets
            others, passed = others[kin], passed[kin]
            if not len(others):
                return cluster
            gains = self.gains(_each_with(cluster, others), k, rate)
            best = int(np.argmax(gains))
            if gains[best] <= 0.0:
                return cluster
            new = int(others[best])
            others, passed = np.delete(others, best), np.delete(passed, best)
            more = [(*some, new) for some in combinations(cluster, k - 1)]
            n_sets, passed = n_sets + len(more), passed + self._passed(more, others, k, rate)
            cluster.append(new)

    def _passed(self, sets: Sequence[Sequence[int]], others: Ints, k: int, rate: float) -> Ints:
        """(B,) with how many sets of k variables each of some others passes."""
        every = [_each_with(some, others) for some in sets]
        gains = self.gains(np.concatenate(every), k, rate) if len(others) else np.empty(0)
        return np.asarray((gains > 0.0).reshape(len(sets), len(others)).sum(axis=0))

    def _subsets(self, items: Sequence[int], size: int) -> Ints:
        """(B, size) sets of a variable and its nearest ones that hang together."""
        among = np.array(items)
        near = np.argsort(-self._size[np.ix_(among, among)], axis=1, kind="stable")[:, 1 : BUDGET.n_near + 1]
        found = {
            tuple(sorted((i, *some))) for i, row in enumerate(near.tolist()) for some in combinations(row, size - 1)
        }
        subsets = among[np.array(sorted(found), dtype=np.int64).reshape(-1, size)]
        linked = [self._related[subsets[:, i], subsets[:, j]] for i, j in combinations(range(size), 2)]
        # Enough links to hang together, whichever they are.
        return np.asarray(subsets[np.sum(linked, axis=0) >= size - 1])


def _each_with(some: Sequence[int], others: Ints) -> Ints:
    """(B, a + 1) the same variables with each of some others."""
    return np.column_stack([np.tile(np.array(some, dtype=np.int64), (len(others), 1)), others])


def clusters_alone(names: tuple[str, ...], clusters: Sequence[Cluster]) -> FactorModel:
    """The model with clusters as groups, and other variables without parents."""
    parents = [0] * len(names)
    for g, (_, items) in enumerate(clusters):
        for j in items:
            parents[j] = 1 << g
    return FactorModel(names, tuple(k for k, _ in clusters), tuple(parents))
