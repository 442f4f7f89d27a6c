"""Proposals for the measurement model from closed forms alone: no fits.

That k latents stand behind a set A of variables is the constraint rank(Sigma_{A, rest}) <= k. It costs ``N LR_k(A)``
in log-likelihood (:mod:`unmeasured.models.rank`) and saves ``(|A| - k)(n - |A| - k)`` dimensions, each worth
``0.5 log N``: its *gain*. Sets with the largest gain are taken first and grown while they gain. How much a dimension is
worth decides how readily a set passes; we propose at several rates and let the score choose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.data.sample import Sample
from unmeasured.models.rank import rank_codimension, rank_shortfalls
from unmeasured.models.solve import Check, never
from unmeasured.search.budget import BUDGET
from unmeasured.search.model import FactorModel

Cluster = tuple[int, tuple[int, ...]]  # number of latents, observed variables


class Clustering(NamedTuple):
    """How sets of variables become clusters."""

    rate: float  # what part of the penalty of a dimension a rank constraint is credited with
    #: A cluster of rank k grows only by variables that satisfy the constraint with k of it too. Without, the indicators
    #: of a latent and of all latents behind it are one cluster: together they touch the rest by way of that latent.
    is_pure: bool = False
    #: The rank of the first clusters. Two indicators of a group of two whose loadings are nearly proportional pass as
    #: those of one latent, and tear the group apart.
    smallest: int = 1


def clusterings(max_group_size: int) -> list[Clustering]:
    """Ways to look for clusters: at every rate as they grow, pure ones, and pure ones of larger ranks alone."""
    ranks = range(1, max_group_size + 1)
    return [
        Clustering(rate, is_pure, smallest)
        for smallest, is_pure, rate in product(ranks, (False, True), BUDGET.rates)
        if is_pure or smallest == 1
    ]


class RankGains:
    """Gains of rank constraints on one sample, with a memory for the seeds that come again and again."""

    def __init__(
        self, sample: Sample, dimension_penalty: float, check: Check = never, *, is_piece: bool = False
    ) -> None:
        """``is_piece``: the sample is of some variables of a larger one."""
        self.check = check  # ends the work where the time is over
        self.is_piece = is_piece
        self.names = sample.names
        self.n = len(sample.names)
        self.dimension_penalty = dimension_penalty  # in total log-likelihood
        self._S, self._N = sample.corr, sample.n
        self._P: Floats = np.asarray(np.linalg.inv(sample.corr), dtype=float)
        self.clusters: dict[tuple[tuple[int, ...], Clustering, int], tuple[list[Cluster], list[int]]] = {}
        self._costs: dict[tuple[tuple[int, ...], tuple[int, ...], int], Floats] = {}
        self._known: dict[tuple[tuple[int, ...], int], float] = {}
        self._seeds: dict[tuple[int, tuple[int, ...]], tuple[Ints, Floats]] = {}
        self._seed_costs: dict[int, tuple[Ints, Floats]] = {}

    def __call__(self, subsets: Ints, k: int, rate: float = 1.0) -> Floats:
        """(B,) gains of the constraint rank <= k for subsets (B, a)."""
        worth = self.worth(subsets.shape[1], k, rate)
        return worth - self._N * rank_shortfalls(self._S, subsets, k, P=self._P)

    def of(self, items: tuple[int, ...], k: int) -> float:
        """The gain of one set of variables, remembered."""
        if (items, k) not in self._known:
            self._known[items, k] = float(self(np.array([items]), k)[0])
        return self._known[items, k]

    def costs(self, cluster: tuple[int, ...], others: tuple[int, ...], k: int) -> Floats:
        """What the constraint costs a cluster with each of some others, remembered: rates ask for the same ones."""
        if (cluster, others, k) not in self._costs:
            subsets = np.array([[*cluster, j] for j in others])
            self._costs[cluster, others, k] = self._N * rank_shortfalls(self._S, subsets, k, P=self._P)
        return self._costs[cluster, others, k]

    def worth(self, size: int, k: int, rate: float) -> float:
        """What the constraint is worth: the penalty of the dimensions it saves."""
        return rate * self.dimension_penalty * rank_codimension(self.n, size, k)

    def seeds(self, items: tuple[int, ...], k: int) -> tuple[Ints, Floats]:
        """Subsets of k + 1 of the items, and what their constraint costs."""
        if self.n > BUDGET.many_variables:
            return self._many_seeds(items, k)
        if (k, items) not in self._seeds:
            subsets = self._subsets(items, k + 1)
            self._seeds[k, items] = subsets, self._N * rank_shortfalls(self._S, subsets, k, P=self._P)
        return self._seeds[k, items]

    def _many_seeds(self, items: tuple[int, ...], k: int) -> tuple[Ints, Floats]:
        """The same where a table for each set of items would fill the memory: one table of all subsets seen so far."""
        subsets = self._subsets(items, k + 1)
        if self.n ** (k + 1) > np.iinfo(np.int64).max:  # a subset has no number of its own
            return subsets, self._N * rank_shortfalls(self._S, subsets, k, P=self._P)
        names = subsets @ self.n ** np.arange(k + 1, dtype=np.int64)
        known, costs = self._seed_costs.get(k, (np.empty(0, dtype=np.int64), np.empty(0)))
        is_new = ~np.isin(names, known)
        if is_new.any():
            new = self._N * rank_shortfalls(self._S, subsets[is_new], k, P=self._P)
            known, costs = np.concatenate([known, names[is_new]]), np.concatenate([costs, new])
            order = np.argsort(known)
            known, costs = known[order], costs[order]
            self._seed_costs[k] = known, costs
        return subsets, costs[np.searchsorted(known, names)] if len(names) else np.empty(0)

    def _subsets(self, items: tuple[int, ...], size: int) -> Ints:
        """All subsets of a size; where there are very many, those of a variable and its nearest ones."""
        among = np.array(items)
        if math.comb(len(items), size) <= BUDGET.many_subsets:
            return np.asarray(among[_positions(len(items), size)])
        near = np.argsort(-np.abs(self._S[np.ix_(among, among)]), axis=1)[:, 1 : BUDGET.n_near + 1]
        found = {
            tuple(sorted((i, *some))) for i, row in enumerate(near.tolist()) for some in combinations(row, size - 1)
        }
        return np.asarray(among[np.array(sorted(found))])


@lru_cache(maxsize=64)
def _positions(n: int, size: int) -> Ints:
    """(B, size) all subsets of a size of n positions, in order."""
    if size == 2:
        return np.column_stack(np.triu_indices(n, 1))
    return np.array(list(combinations(range(n), size)), dtype=np.int64).reshape(-1, size)


def proposals(gains: RankGains, max_group_size: int) -> list[FactorModel]:
    """Measurement models over all variables: one group of each size, and what closed forms find at each rate."""
    found: dict[object, FactorModel] = {}
    for k in range(1, min(max_group_size, gains.n // 2) + 1):
        model = FactorModel(gains.names, (k,), (1,) * gains.n)
        found[model.key] = model
    for how in clusterings(1):
        clusters, left = find_clusters(gains, range(gains.n), how, max_group_size)
        # What is left over may be a group too, whose rank is no constraint where few variables are outside it.
        rest = [[(k, tuple(left))] for k in range(1, min(max_group_size, len(left) // 2) + 1)]
        for more in ([], *rest) if clusters else ():
            model = assemble(gains, [*clusters, *more])
            if model.is_valid:
                found.setdefault(model.key, model)
    return list(found.values())


def find_clusters(
    gains: RankGains, items: Sequence[int], how: Clustering, max_group_size: int
) -> tuple[list[Cluster], list[int]]:
    """Clusters among the items, smallest ranks first, and the items left over; remembered."""
    key = tuple(items), how, max_group_size
    if key not in gains.clusters:
        found = list(candidate_clusters(gains, items, how, max_group_size))
        taken = {j for _, cluster in found for j in cluster}
        gains.clusters[key] = found, [j for j in items if j not in taken]
    return gains.clusters[key]


def candidate_clusters(
    gains: RankGains, items: Sequence[int], how: Clustering, max_group_size: int
) -> Iterator[Cluster]:
    """The same one by one, so that those found so far are there when the time is over."""
    left = list(items)
    for k in range(how.smallest, min(max_group_size, len(left) // 2) + 1):
        while len(left) >= 2 * k:
            cluster = _best_cluster(gains, tuple(left), k, how)
            if cluster is None:
                break
            yield k, cluster
            left = [j for j in left if j not in cluster]


def _best_cluster(gains: RankGains, left: tuple[int, ...], k: int, how: Clustering) -> tuple[int, ...] | None:
    subsets, costs = gains.seeds(left, k)
    if not len(costs):
        return None
    seed = int(np.argmin(costs))
    rate, worth = how.rate, gains.worth(k + 1, k, how.rate)
    gain = worth - float(costs[seed])
    if gain <= 0:
        return None
    cluster = subsets[seed].tolist()
    while True:
        gains.check()
        others = [j for j in left if j not in cluster]
        if how.is_pure:
            others = _pure(subsets, costs < worth, cluster, others)
        if not others:
            break
        grown = gains.worth(len(cluster) + 1, k, rate) - gains.costs(tuple(cluster), tuple(others), k)
        best = int(np.argmax(grown))
        # A group needs 2k pure children: until it has them, it is enough that the constraint still gains.
        if grown[best] <= (gain if len(cluster) >= 2 * k else 0.0):
            break
        cluster.append(others[best])
        gain = float(grown[best])
    return tuple(sorted(cluster)) if len(cluster) >= 2 * k else None


def _pure(subsets: Ints, passed: Bools, cluster: Sequence[int], others: Sequence[int]) -> list[int]:
    """The variables of which most sets with k of a cluster satisfy the rank constraint k; (B, k + 1) subsets."""
    size = 1 + max(int(subsets.max(initial=0)), *cluster, *others, 0)
    is_outside = np.ones(size, dtype=bool)
    is_outside[cluster] = False
    outside = is_outside[subsets]
    joined = np.flatnonzero(outside.sum(axis=1) == 1)  # one variable and k of the cluster
    new = (subsets[joined] * outside[joined]).sum(axis=1)
    tried = np.bincount(new, minlength=size).tolist()
    good = np.bincount(new[passed[joined]], minlength=size).tolist()
    return [j for j in others if good[j] > BUDGET.passing * tried[j]]


def assemble(gains: RankGains, clusters: Sequence[Cluster], known: dict[int, int] | None = None) -> FactorModel:
    """A measurement model out of clusters; other variables get the parents known, or those that gain most."""
    parents = [0] * gains.n
    for g, (_, items) in enumerate(clusters):
        for j in items:
            parents[j] = 1 << g
    for j in range(gains.n):
        if not parents[j]:
            parents[j] = known[j] if known is not None and j in known else parents_by_rank(gains, j, clusters)
    return FactorModel(gains.names, tuple(k for k, _ in clusters), tuple(parents))


def parents_by_rank(gains: RankGains, j: int, clusters: Sequence[Cluster]) -> int:
    """The union of clusters whose rank constraint gains most when variable j joins it; 0 where there is none."""
    best, parents = -np.inf, 0
    for r in range(1, min(BUDGET.max_parents, len(clusters)) + 1):
        for union in combinations(range(len(clusters)), r):
            k = sum(clusters[g][0] for g in union)
            items = [i for g in union for i in clusters[g][1] if i != j]
            if r > 1 and gains.n - len(items) - 1 <= k:
                continue  # no rank is left to constrain: the gain would say nothing
            gain = gains.of((j, *items), k) - gains.of(tuple(items), k)
            if gain > best:
                best, parents = gain, sum(1 << g for g in union)
    return parents
