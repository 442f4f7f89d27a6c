"""Are there latents at all? A graph among the observed variables is the rival of every factor model.

Where observed variables cause one another, some factor model still describes them better than independence does, and
badly. So where the model found is rejected, a graph without latents is searched too (edges added, deleted or turned
while BIC rises), and where the factor model fits poorly and that graph is better, it is the answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from unmeasured.data.sample import Sample
from unmeasured.graphs import CPDAG, DAG
from unmeasured.score import surprise_of
from unmeasured.search.discovery import Discovery
from unmeasured.search.latent_graph import LatentBic, climbed_graph
from unmeasured.sem.fit import Fit, fit_many
from unmeasured.sem.indices import p_value

# A factor model is doubted when its misfit is beyond chance at this level, and given up only above this RMSEA, where
# the usual rules of thumb end: 20,000 answers to a questionnaire reject every model, and latents are still wanted.
_DOUBTFUL, _POOR = 1e-3, 0.08
# By how much, in total log-likelihood, the graph among observed variables has to be better.
_MARGIN = 5.0
# With more variables the search for that graph takes longer than it is worth.
_MOST_VARIABLES = 40


@dataclass(frozen=True)
class Rival:
    """A graph among the observed variables and its extended BIC, on the scale of a log-likelihood."""

    cpdag: CPDAG
    value: float


def questioned(found: Discovery, sample: Sample, penalty: float) -> Discovery:
    """The discovery, with a remark where observed variables alone explain more; or their graph, where it is poor."""
    fit = found.fit
    is_doubtful = fit.df > 0 and p_value(fit.chi2, fit.df) < _DOUBTFUL
    if not is_doubtful or len(sample.names) > _MOST_VARIABLES:
        return found
    rival = best_rival(sample, penalty)
    lead = rival.value - extended_bic(found.cpdag, fit, penalty)
    if lead < _MARGIN:
        return found
    better = f"better by {2.0 * lead:.0f} of extended BIC"
    if fit.rmsea <= _POOR:
        remark = (
            f"A graph among the observed variables alone, without latents, describes the data {better}. That need not "
            "mean that there are no latents: with many rows every small misfit counts. um.GES shows that graph."
        )
        return replace(found, remarks=(*found.remarks, remark))
    (alone,) = fit_many([rival.cpdag], sample)
    remark = (
        f"No latents are reported: the best factor model found describes the data badly (RMSEA {fit.rmsea:.3f}), and a "
        f"graph among the observed variables is {better}. Its edges are those told here."
    )
    return replace(found, cpdag=rival.cpdag, fit=alone, remarks=(remark,), runners_up=())


def best_rival(sample: Sample, penalty: float) -> Rival:
    """The graph among observed variables with the best BIC that climbing finds.

    Every edge pays, besides its dimension, half the logarithm of the number of edges it was chosen from.
    """
    n = len(sample.names)
    price = 0.5 * penalty * (math.log(sample.n) + math.log(n * (n - 1) / 2))
    score = LatentBic(sample.corr, (1,) * n, sample.n, price)
    arcs = climbed_graph(score)
    value = sum(score(j, frozenset(np.flatnonzero(arcs[:, j]).tolist())) for j in range(n))
    saturated = -0.5 * sample.n * sample.log_det_corr
    edges = [(sample.names[i], sample.names[j]) for i, j in np.argwhere(arcs).tolist()]
    dag = DAG.from_edges(edges, names=sample.names)
    return Rival(dag.cpdag(), value - saturated - 0.5 * penalty * n * math.log(sample.n))


def extended_bic(cpdag: CPDAG, fit: Fit, penalty: float) -> float:
    """The same for a factor model, less the log-likelihood of the saturated model."""
    return -0.5 * fit.chi2 - penalty * (0.5 * fit.dimension * math.log(fit.sample.n) + surprise_of(cpdag))
