"""Clusters by rank: sets of variables that one, two or three latents separate from all others, no variable in two.

A set A of indicators of k latents has rank(Sigma_{A, rest}) = k, however the latents are connected (trek separation,
Sullivant, Talaska and Draisma 2010). FOFC looks for k = 1 in four variables at a time; here A is tested against all
others at once, and k goes on to 3, so that groups of several latents are found. It is what Tetrad's newer cluster
searches do (TSC), as a greedy search of our own: for k = 1, 2, ... the k + 1 variables that fit best, then one variable
after another as long as the rank is not rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import ClassVar

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.constraints import ALPHA, Rule, whole
from unmeasured.data.sample import Sample
from unmeasured.peers.base import Peer
from unmeasured.peers.blocks import Cluster, graph_of_clusters
from unmeasured.peers.ranks import rank_pvalues


class RankClusters(Peer):
    """Clusters of rank 1 to ``max_rank`` without overlap, then the best graph over them.

    Parameters
    ----------
    alpha : float
        Significance level of every rank test.
    max_rank : int
        Most latents that may stand behind one cluster.

    Attributes
    ----------
    clusters_ : tuple of tuples of str
        Indicators of each group of latents.

    Examples
    --------
    >>> import math, unmeasured as um
    >>> truth = um.simulate.random_gnfm(group_sizes=(1, 2), n_observed=9, rng=0)
    >>> parameters = um.simulate.realistic_parameters(truth, rng=0)
    >>> found = um.peers.RankClusters().fit_cov(parameters.cov(), math.inf, names=parameters.observed)
    >>> um.metrics.compare(truth, found.graph_).shd
    0
    """

    clusters_: tuple[tuple[str, ...], ...]

    _rules: ClassVar[Mapping[str, Rule]] = {
        "alpha": ALPHA,
        "max_rank": whole(1),
    }

    def __init__(self, *, alpha: float = 0.01, max_rank: int = 3) -> None:
        self.alpha = alpha
        self.max_rank = max_rank

    def _search(self, sample: Sample) -> None:
        alpha = float(self.alpha)
        clusters = rank_clusters(sample.corr, sample.n, alpha, self.max_rank)
        self.clusters_ = tuple(tuple(sample.names[j] for j in cluster.items) for cluster in clusters)
        outside = [name for name in sample.names if all(name not in items for items in self.clusters_)]
        remarks = [f"In no cluster: {', '.join(outside)}."] if outside else []
        self._keep(sample, graph_of_clusters(sample, clusters), remarks)


def rank_clusters(R: Floats, n_samples: float, alpha: float, max_rank: int) -> list[Cluster]:
    """Clusters that share no variable, lower ranks first; a cluster of rank k has 2k variables or more (Def. 2)."""
    dependent = rank_pvalues(R, np.arange(len(R))[:, None], 0, n_samples) <= alpha
    left = np.flatnonzero(dependent).tolist()
    clusters: list[Cluster] = []
    for k in range(1, min(max_rank, len(R) // 2 - 1) + 1):  # k + 1 against k + 1, or the rank cannot be above k
        while len(left) >= 2 * k:
            items = _best_cluster(R, left, k, n_samples, alpha)
            if items is None:
                break
            clusters.append(Cluster(items, k))
            left = [j for j in left if j not in items]
    return clusters


def _best_cluster(R: Floats, left: list[int], k: int, n_samples: float, alpha: float) -> tuple[int, ...] | None:
    """From the seed of k + 1 variables that fits best, as far as the rank is not rejected."""
    seeds = np.array(list(combinations(left, k + 1)))
    pvalues = rank_pvalues(R, seeds, k, n_samples)
    for seed in np.argsort(-pvalues, kind="stable"):
        if pvalues[seed] <= alpha:
            return None
        cluster = _grown(R, seeds[seed].tolist(), left, k, n_samples, alpha)
        if len(cluster) >= 2 * k:
            return tuple(sorted(cluster))
    return None


def _grown(R: Floats, cluster: list[int], left: list[int], k: int, n_samples: float, alpha: float) -> list[int]:
    """With every variable that keeps the rank, the best first.

    A chain L1 → L2 → L3 has rank 1 between the indicators of L1 and L2, together, and those of L3. What tells the two
    apart is that single sets of k + 1 from both do not have rank k: most of those that the variable makes with k of
    the cluster must.
    """
    while True:
        others = [j for j in left if j not in cluster]
        if not others:
            return cluster
        # With k variables or fewer outside the whole set this test says nothing; the single sets still do.
        whole = rank_pvalues(R, np.array([[*cluster, j] for j in others]), k, n_samples)
        joining = [
            j for p, j in sorted(zip(-whole, others)) if -p > alpha and _is_alike(R, cluster, j, k, n_samples, alpha)
        ]
        if not joining:
            return cluster
        cluster = [*cluster, joining[0]]


def _is_alike(R: Floats, cluster: list[int], j: int, k: int, n_samples: float, alpha: float) -> bool:
    subsets = np.array([[*some, j] for some in combinations(cluster, k)])
    return float(np.mean(rank_pvalues(R, subsets, k, n_samples) > alpha)) > 0.5
