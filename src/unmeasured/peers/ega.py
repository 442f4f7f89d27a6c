"""Exploratory graph analysis: latents as communities of a network of partial correlations.

1. Network: the graphical lasso at 100 penalties from the largest correlation downwards, chosen by extended BIC (Foygel
   and Drton 2010) with ``gamma``, which is lowered by a quarter as long as the network is empty.
2. Communities: walktrap (Pons and Latapy 2006) with walks of four steps, edges weighted by absolute partial
   correlations. Variables in a community of their own belong to none.
3. One dimension? Where Louvain finds a single community in the absolute correlations, that is the answer instead.

This is what the R package EGAnet does by default since its version 2 (Golino and Epskamp 2017; Golino et al. 2020;
Christensen 2023), written anew from the articles. EGA ends at communities; for the harness each becomes a latent, and
the graph over the latents is found as for the other methods that cluster first (:mod:`unmeasured.peers.blocks`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.constraints import FLAG, Rule, number
from unmeasured.data.sample import Sample
from unmeasured.errors import DataError
from unmeasured.peers.base import Peer, imported, quiet
from unmeasured.peers.blocks import Cluster, graph_of_clusters

N_PENALTIES = 100  # of the path, as in qgraph and EGAnet
_STEPS = 4  # of a random walk: walktrap's and EGAnet's default
_ZERO = 1e-10


class EGA(Peer):
    """Exploratory graph analysis: network communities as latents.

    Parameters
    ----------
    gamma : float
        Weight of the extended part of BIC; 0 is BIC.
    lambda_min_ratio : float
        The smallest penalty, as a part of the largest. EGAnet has 0.1 since its version 2; qgraph, and EGAnet before,
        have 0.01, which gives denser networks.
    unidimensional : bool
        Whether to ask first if there is one dimension only, as EGAnet does.
    latent_edges : bool
        Search edges between the latents; otherwise they have none.

    Attributes
    ----------
    communities_ : dict
        The community of each variable, a number from 0, or None.
    network_ : ndarray of shape (n, n)
        Partial correlations.

    Examples
    --------
    >>> import unmeasured as um
    >>> truth = um.simulate.random_one_factor(n_latents=2, n_observed=8, rng=0)
    >>> rows = um.simulate.sample(truth, 1000, rng=0, parameters="realistic")
    >>> ega = um.peers.EGA().fit(rows)  # doctest: +SKIP
    >>> len(ega.graph_.latents)  # doctest: +SKIP
    2
    """

    communities_: dict[str, int | None]
    network_: Floats

    _rules: ClassVar[Mapping[str, Rule]] = {
        "gamma": number("a number from 0 to 1", lambda value: 0 <= value <= 1),
        "lambda_min_ratio": number("a number between 0 and 1", lambda value: 0 < value < 1),
        "unidimensional": FLAG,
        "latent_edges": FLAG,
    }

    def __init__(
        self,
        *,
        gamma: float = 0.5,
        lambda_min_ratio: float = 0.1,
        unidimensional: bool = True,
        latent_edges: bool = True,
    ) -> None:
        self.gamma = gamma
        self.lambda_min_ratio = lambda_min_ratio
        self.unidimensional = unidimensional
        self.latent_edges = latent_edges

    def _search(self, sample: Sample) -> None:
        igraph = imported("igraph", "igraph", "EGA")
        if math.isinf(sample.n):
            raise DataError("EGA chooses its network by BIC at a sample size; pass a finite n_samples.")
        R = np.array(sample.corr)
        self.network_ = network(R, sample.n, self.gamma, self.lambda_min_ratio)
        membership = _walktrap(igraph, np.abs(self.network_))
        if self.unidimensional and len(set(_louvain(igraph, np.abs(R - np.eye(len(R)))))) == 1:
            membership = [0] * len(R)
        found = _without_singletons(membership)
        self.communities_ = dict(zip(sample.names, found, strict=True))
        clusters = [
            Cluster(tuple(j for j, community in enumerate(found) if community == c))
            for c in sorted({community for community in found if community is not None})
        ]
        outside = [name for name, community in self.communities_.items() if community is None]
        remarks = [f"In no community: {', '.join(outside)}."] if outside else []
        self._keep(sample, graph_of_clusters(sample, clusters, edges=self.latent_edges), remarks)


def network(R: Floats, n: float, gamma: float = 0.5, ratio: float = 0.1) -> Floats:
    """Partial correlations of the graphical lasso that extended BIC prefers; gamma is lowered while there are none.

    >>> R = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> network(R, 500).round(2).tolist()
    [[0.0, 0.54, 0.0], [0.54, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    path = _lasso_path(R, ratio)
    while True:
        K = min(path, key=lambda K: extended_bic(K, R, n, gamma))
        if gamma <= 0 or n_edges(K):
            break
        gamma = max(0.0, gamma - 0.25)
    unit = np.sqrt(np.diag(K))
    partial = -K / np.outer(unit, unit)
    np.fill_diagonal(partial, 0.0)
    return np.asarray(np.where(np.abs(partial) > _ZERO, partial, 0.0))


def _lasso_path(R: Floats, ratio: float) -> list[Floats]:
    """Precision matrices, the sparsest first; the path ends where the lasso no longer converges to one."""
    from sklearn.covariance import graphical_lasso

    largest = float(np.abs(R - np.eye(len(R))).max())
    if largest <= _ZERO:
        return [np.eye(len(R))]
    path = []
    for penalty in np.geomspace(largest, ratio * largest, N_PENALTIES):
        try:
            with quiet():
                K = graphical_lasso(R, penalty)[1]
        except FloatingPointError:
            break
        path.append(np.asarray((K + K.T) / 2))
    return path


def n_edges(K: Floats) -> int:
    """Pairs with a partial correlation."""
    return int((np.abs(np.triu(K, 1)) > _ZERO).sum())


def extended_bic(K: Floats, R: Floats, n: float, gamma: float) -> float:
    """-2 log-likelihood + edges (log n + 4 gamma log p), smaller is better."""
    loglik = 0.5 * n * (np.linalg.slogdet(K)[1] - float((K * R).sum()))
    return float(-2 * loglik + n_edges(K) * (math.log(n) + 4 * gamma * math.log(len(R))))


def _graph(igraph: Any, weights: Floats) -> Any:
    igraph.set_random_number_generator(random.Random(0))  # Louvain visits variables in a random order
    return igraph.Graph.Weighted_Adjacency(weights, mode="undirected", loops=False)


def _walktrap(igraph: Any, weights: Floats) -> list[int]:
    graph = _graph(igraph, weights)
    if not graph.ecount():
        return list(range(len(weights)))
    return list(graph.community_walktrap(weights="weight", steps=_STEPS).as_clustering().membership)


def _louvain(igraph: Any, weights: Floats) -> list[int]:
    graph = _graph(igraph, weights)
    return list(graph.community_multilevel(weights="weight").membership)


def _without_singletons(membership: list[int]) -> list[int | None]:
    """Communities numbered in the order of their first member; those of one variable are none.

    >>> _without_singletons([3, 1, 3, 0, 0])
    [0, None, 0, 1, 1]
    """
    kept = [c for c in dict.fromkeys(membership) if membership.count(c) > 1]
    return [kept.index(c) if c in kept else None for c in membership]
