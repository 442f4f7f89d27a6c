"""From clusters of indicators to a graph: fit the measurement model, search the latent graph over its covariance.

This is the second half of every method that first clusters and then connects: with clusters c1, c2, ... given, the
model in which each has latents of its own and all latents are connected is fitted by maximum likelihood, and the graph
over the groups is the best by BIC *as if the latents were observed with the covariance fitted*. (Tetrad's MIMBuild
does the same.) What makes LGES different is that it judges whole models by the likelihood of what was observed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unmeasured.arrays import Floats, Marks
from unmeasured.data.sample import Sample
from unmeasured.graphs import CPDAG
from unmeasured.models.fit import fit_many
from unmeasured.search.budget import BUDGET
from unmeasured.search.discovery import nothing_latent, with_isolated
from unmeasured.search.latent_graph.edges import climbed_graph
from unmeasured.search.model import FactorModel
from unmeasured.search.score import GroupBic

# In a population a path is dropped when it is worth less than this, per sample: what fits leave of zero.
_POPULATION_PENALTY = 1e-6


@dataclass(frozen=True)
class Cluster:
    """Observed variables, by their column, that ``n_latents`` latents cause."""

    items: tuple[int, ...]
    n_latents: int = 1


def measured_by(sample: Sample, clusters: Sequence[Cluster]) -> tuple[Sample, FactorModel]:
    """The measurement model of clusters that share no variable, and the sample of the variables in it."""
    group = {j: g for g, cluster in enumerate(clusters) for j in cluster.items}
    kept = sorted(group)
    names = tuple(sample.names[j] for j in kept)
    sizes = tuple(cluster.n_latents for cluster in clusters)
    return sample.select(names), FactorModel(names, sizes, tuple(1 << group[j] for j in kept))


def graph_of_clusters(sample: Sample, clusters: Sequence[Cluster], *, edges: bool = True) -> CPDAG:
    """The class with a group of latents for each cluster; variables in none of them stand alone."""
    if not clusters:
        return nothing_latent(sample).cpdag
    part, model = measured_by(sample, clusters)
    return graph_of_measurement(sample, part, model, edges=edges)


def graph_of_measurement(sample: Sample, part: Sample, model: FactorModel, *, edges: bool = True) -> CPDAG:
    """The same for a measurement model of the variables in ``part``, which may share indicators."""
    arcs = np.zeros((len(model.sizes),) * 2, dtype=np.uint8)
    if edges and len(model.sizes) > 1:
        arcs = best_latent_graph(latent_cov(part, model), model.sizes, sample.n)
    return with_isolated(model.along(arcs).cpdag, sample.names)


def latent_cov(part: Sample, model: FactorModel) -> Floats:
    """Covariance of the latents, in the order of the groups, where all groups are connected."""
    (fit,) = fit_many([model.member], part, n_threads=1)
    order = [fit.causal_order.index(name) for name in model.latents]
    return np.asarray(fit.full_cov[np.ix_(order, order)])


def best_latent_graph(Phi: Floats, sizes: tuple[int, ...], n_samples: float) -> Marks:
    """The graph over groups that is best by BIC if the latents have been observed.

    Exact for up to twelve groups; beyond, by hill climbing.
    """
    unit = np.sqrt(np.diag(Phi))
    Phi = Phi / np.outer(unit, unit)
    n, penalty = (1.0, _POPULATION_PENALTY) if math.isinf(n_samples) else (n_samples, 0.5 * math.log(n_samples))
    score = GroupBic(Phi, sizes, n, penalty)
    return score.exact()[0] if len(sizes) <= BUDGET.exact_groups else climbed_graph(score)
