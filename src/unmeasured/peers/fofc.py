"""FOFC, Find One Factor Clusters (Kummerfeld and Ramsey 2016): pure clusters from vanishing tetrads.

Four indicators of one latent, and nothing else, have three vanishing tetrads::

        L            r(a,b) r(c,d) = r(a,c) r(b,d) = r(a,d) r(b,c):  rank 1 however the four are paired
     ╱ │ │ ╲
    a  b  c  d

Three variables are a *pure triple* if that holds for them with every other variable of the data. Triples grow into
clusters, the largest clusters are picked first, and a variable belongs to one cluster at most; what measures two
latents never is in a pure triple with the right company, and is left out.

Our own implementation, written from the article: the variant *grow and pick*. Left open there, and how we decide: each
tetrad is tested alone, by the rank test of :mod:`unmeasured.peers.ranks`; a variable joins a cluster when most of its
triples with pairs of the cluster are pure; independent variables have vanishing tetrads too, so all pairs of a triple
have to be correlated. Tetrad 7.6.3 decides some of this otherwise: ``rules="tetrad"`` does as it does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations, permutations
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import ndtr

from unmeasured.arrays import Bools, Floats
from unmeasured.constraints import ALPHA, FLAG, Rule, one_of
from unmeasured.data.sample import Sample
from unmeasured.peers.base import Peer
from unmeasured.peers.blocks import Cluster, graph_of_clusters
from unmeasured.peers.ranks import vanishing_tetrads, wishart_pvalues

Rules: TypeAlias = Literal["ours", "tetrad"]


class FOFC(Peer):
    """Find One Factor Clusters, with or without a graph over the latents it finds.

    Finds latents that have three pure indicators or more, each cluster with one latent; groups of several latents and
    latents with two indicators are out of its reach.

    Parameters
    ----------
    alpha : float
        Significance level of every tetrad test, and of the correlations inside a cluster.
    latent_edges : bool
        Search the graph over the latents too, by BIC over their fitted covariance; otherwise the clusters alone are
        the answer, as in the article.
    rules : "ours" or "tetrad"
        Whose details: our own, or those of Tetrad 7.6.3 (Wishart's test, of two tetrads out of three; correlations by
        Fisher's z without its half; a variable joins also when just half of its triples are pure). ``docs/peers.md``
        compares them.

    Attributes
    ----------
    clusters_ : tuple of tuples of str
        The pure clusters.

    Examples
    --------
    >>> import unmeasured as um
    >>> truth = um.simulate.random_one_factor(n_latents=2, n_observed=8, rng=0)
    >>> parameters = um.simulate.realistic_parameters(truth, rng=0)
    >>> found = um.peers.FOFC().fit_cov(parameters.cov(), math.inf, names=parameters.observed)
    >>> um.metrics.compare(truth, found.graph_).shd
    0
    """

    clusters_: tuple[tuple[str, ...], ...]

    _rules: ClassVar[Mapping[str, Rule]] = {
        "alpha": ALPHA,
        "latent_edges": FLAG,
        "rules": one_of(*get_args(Rules)),
    }

    def __init__(self, *, alpha: float = 0.001, latent_edges: bool = True, rules: Rules = "ours") -> None:
        self.alpha = alpha
        self.latent_edges = latent_edges
        self.rules = rules

    def _search(self, sample: Sample) -> None:
        alpha = float(self.alpha)
        clusters = pure_clusters(sample.corr, sample.n, alpha, self.rules)
        self.clusters_ = tuple(tuple(sample.names[j] for j in items) for items in clusters)
        graph = graph_of_clusters(sample, [Cluster(items) for items in clusters], edges=self.latent_edges)
        self._keep(sample, graph, _remarks(sample, clusters))


def _remarks(sample: Sample, clusters: list[tuple[int, ...]]) -> list[str]:
    if len(sample.names) < 4:
        return [f"Tetrads need four variables; there are {len(sample.names)}."]
    outside = [name for j, name in enumerate(sample.names) if all(j not in items for items in clusters)]
    return [f"In no pure cluster of three or more: {', '.join(outside)}."] if outside else []


def pure_clusters(R: Floats, n_samples: float, alpha: float, rules: Rules = "ours") -> list[tuple[int, ...]]:
    """Clusters that share no variable, the largest first.

    >>> R = np.full((5, 5), 0.5) + 0.5 * np.eye(5)  # five indicators of one latent
    >>> pure_clusters(R, math.inf, 0.01)
    [(0, 1, 2, 3, 4)]
    """
    if len(R) < 4:
        return []
    pure = pure_triples(R, n_samples, alpha, rules)
    grown = {_grown(triple, pure, ties=rules == "tetrad") for triple in _triples(pure)}
    picked: list[tuple[int, ...]] = []
    # Among clusters of one size that share a variable, the one with more pure triples inside is the better founded.
    for cluster in sorted(grown, key=lambda items: (-len(items), -_n_pure(items, pure), items)):
        if not any(set(cluster) & set(other) for other in picked):
            picked.append(cluster)
    return picked


def pure_triples(R: Floats, n_samples: float, alpha: float, rules: Rules = "ours") -> Bools:
    """(n, n, n) whether three correlated variables have vanishing tetrads with every fourth; symmetric."""
    n = len(R)
    ordered = np.zeros((n, n, n), dtype=bool)
    linked = _correlated(R, n_samples, alpha, rules)
    # In a population both rules say the same.
    vanishing = _two_vanish if rules == "tetrad" and math.isfinite(n_samples) else vanishing_tetrads
    for i, j in combinations(range(n), 2):
        if linked[i, j]:
            third = vanishing(R, i, j, n_samples, alpha).all(axis=1) & linked[i] & linked[j]
            ordered[i, j, j + 1 :] = third[j + 1 :]
    return np.asarray(np.logical_or.reduce([ordered.transpose(axes) for axes in permutations(range(3))]))


def _two_vanish(R: Floats, i: int, j: int, n_samples: float, alpha: float) -> Bools:
    """(n, n) whether the two tetrads with r_ij vanish, and so the third; which two depends on the order of columns."""
    vanish: Bools = np.asarray((wishart_pvalues(R, i, j, n_samples) > alpha).all(axis=0))
    vanish[:, [i, j]] = True
    np.fill_diagonal(vanish, True)
    return vanish


def _correlated(R: Floats, n_samples: float, alpha: float, rules: Rules) -> Bools:
    """(n, n) which correlations differ from zero: Fisher's z."""
    if math.isinf(n_samples):
        return np.asarray(np.abs(R) > 1e-9)
    z = np.arctanh(np.clip(np.abs(R), 0.0, 1.0 - 1e-12))
    # Tetrad has log((1 + r)/(1 - r)), which is twice Fisher's z: level 0.001 becomes 0.1.
    z *= 2.0 * math.sqrt(n_samples) if rules == "tetrad" else math.sqrt(max(n_samples - 3.0, 1.0))
    return np.asarray(2.0 * ndtr(-z) < alpha)


def _triples(pure: Bools) -> Iterator[tuple[int, int, int]]:
    for i, j, k in np.argwhere(pure).tolist():
        if i < j < k:
            yield i, j, k


def _grown(triple: tuple[int, ...], pure: Bools, *, ties: bool) -> tuple[int, ...]:
    """The triple with every variable whose triples with pairs of the cluster are mostly pure, the best first."""
    cluster = list(triple)
    while True:
        # Pure triples of each variable with two of the cluster; both orders of a pair are counted.
        support = pure[np.ix_(range(len(pure)), cluster, cluster)].sum(axis=(1, 2)) / 2.0
        support[cluster] = -1.0
        best = int(np.argmax(support))
        half = 0.5 * math.comb(len(cluster), 2)
        if support[best] < half or (support[best] == half and not ties):
            return tuple(sorted(cluster))
        cluster.append(best)


def _n_pure(items: tuple[int, ...], pure: Bools) -> int:
    return int(pure[np.ix_(items, items, items)].sum())
