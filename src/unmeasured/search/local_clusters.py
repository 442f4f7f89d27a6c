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
from unmeasured.search.budget import BUDGET
from unmeasured.search.model import FactorModel
from unmeasured.search.proposals import Cluster
from unmeasured.sem.solve import Check, never

# Sets whose nearest others are looked for at once: a table of them with all variables is a few megabytes.
_AT_ONCE = 500


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
        parts = [self._shortfalls(subsets[i : i + _AT_ONCE], k) for i in range(0, len(subsets), _AT_ONCE)]
        if not parts:
            return np.empty(0)
        shortfalls, n_others = (np.concatenate(column) for column in zip(*parts, strict=True))
        a = subsets.shape[1]
        codimensions = max(a - k, 0) * np.maximum(n_others - k, 0)
        worth = 0.5 * (codimensions + rate * np.sqrt(2.0 * codimensions) + 0.5 * rate**2)
        rows = np.maximum(self._N - 0.5 * (a + n_others + 1), 1.0)
        return np.asarray(worth - rows * shortfalls)

    def _shortfalls(self, subsets: Ints, k: int) -> tuple[Floats, Ints]:
        """(B,) log-likelihood per row that the constraint costs (:mod:`unmeasured.sem.rank`), and with how many others.

        Where a set has fewer related others than most, columns of zeros stand in for them, which cost nothing.
        """
        self.check()
        S, (n_sets, a) = self._S, subsets.shape
        most = min(BUDGET.n_near, len(S) - a)
        if a <= k or most <= k:
            return np.zeros(n_sets), np.zeros(n_sets, dtype=np.int64)
        turns = self._turn[subsets].min(axis=1)
        np.put_along_axis(turns, subsets, len(S), axis=1)
        others = np.argpartition(turns, most - 1, axis=1)[:, :most]
        chosen = np.take_along_axis(turns, others, axis=1) < len(S)
        rest = S[others[:, :, None], others[:, None, :]] * (chosen[:, :, None] & chosen[:, None, :])
        rest[:, range(most), range(most)] = 1.0
        own = np.linalg.cholesky(S[subsets[:, :, None], subsets[:, None, :]])
        half = np.linalg.solve(own, S[subsets[:, :, None], others[:, None, :]] * chosen[:, None, :])
        cross = np.linalg.solve(np.linalg.cholesky(rest), half.transpose(0, 2, 1))
        squared = np.linalg.eigvalsh(cross.transpose(0, 2, 1) @ cross)[:, : a - k]  # canonical correlations, squared
        costs = -0.5 * np.log1p(-np.clip(squared, 0.0, 1.0 - 1e-12)).sum(axis=1)
        return np.asarray(costs), np.asarray(chosen.sum(axis=1))

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
                if left.issuperset(seed) and len(cluster := self._grown(seed, left, k, rate)) >= least:
                    left.difference_update(cluster)
                    yield k, tuple(sorted(cluster))

    def _grown(self, seed: list[int], left: set[int], k: int, rate: float) -> list[int]:
        """A set with the variables that satisfy the constraint with it best, one after the other, while they do."""
        cluster = list(seed)
        others = self._kin(cluster, sorted(left.difference(cluster)), k, rate)
        while others:
            gains = self.gains(np.array([[*cluster, j] for j in others]), k, rate)
            best = int(np.argmax(gains))
            if gains[best] <= 0.0:
                break
            cluster.append(others[best])
            others = self._kin(cluster, others[:best] + others[best + 1 :], k, rate)
        return cluster

    def _kin(self, cluster: Sequence[int], others: Sequence[int], k: int, rate: float) -> list[int]:
        """The variables related to a cluster of which most sets with k of it pass.

        In sparse graphs a latent touches the others by way of one, or none: the indicators of both together have no
        larger rank than those of that one. Within the set the constraint does not hold then.
        """
        near = [j for j in others if self._related[j, cluster].any()]
        some = np.array(list(combinations(cluster, k)))
        if not near:
            return []
        sets = np.concatenate([np.column_stack([some, np.full(len(some), j)]) for j in near])
        passed = (self.gains(sets, k, rate) > 0.0).reshape(len(near), len(some)).mean(axis=1)
        return [j for j, part in zip(near, passed.tolist(), strict=True) if part > BUDGET.passing]

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


def clusters_alone(names: tuple[str, ...], clusters: Sequence[Cluster]) -> FactorModel:
    """The model with clusters as groups, and other variables without parents."""
    parents = [0] * len(names)
    for g, (_, items) in enumerate(clusters):
        for j in items:
            parents[j] = 1 << g
    return FactorModel(names, tuple(k for k, _ in clusters), tuple(parents))
