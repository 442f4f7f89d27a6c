"""Are there latents at all? A graph among the observed variables is the rival of every factor model.

Where observed variables cause one another, some factor model still describes them better than independence does, often
badly, sometimes well. So the best graph without latents is searched too: exactly with few variables, and by climbing
with more where the factor model is rejected. What happens if it has the better extended BIC::

    the factor model    is not rejected     rejected, RMSEA up to .08     rejected, RMSEA above .08
    the answer          the other graph     latents, and a remark         the other graph if it is better by far

On samples of the suites, N = 100 to 1000, the graph without latents was behind by 5 and more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from unmeasured.data.sample import Sample
from unmeasured.graphs import CPDAG, DAG
from unmeasured.models.fit import Fit, fit_many
from unmeasured.remarks import distrust
from unmeasured.search.budget import BUDGET
from unmeasured.search.discovery import Discovery, is_rejected
from unmeasured.search.latent_graph.edges import climbed_graph
from unmeasured.search.score import GroupBic, prior_of


@dataclass(frozen=True)
class Rival:
    """A graph among the observed variables and its extended BIC, on the scale of a log-likelihood."""

    cpdag: CPDAG
    value: float


def questioned(found: Discovery, sample: Sample, data: Sample, penalty: float) -> Discovery:
    """The discovery, with a remark where observed variables alone explain more; or their graph, where it is poor.

    ``data``: the same sample in the order of the search.
    """
    fit, n = found.fit, len(sample.names)
    rejected = is_rejected(fit)
    if n > (BUDGET.most_observed_alone if rejected else BUDGET.exact_observed):
        return found
    if penalty < 1.0:
        return found  # at such penalties both have too many edges, and which has more of them says nothing of latents
    rival = best_rival(data, penalty)
    lead = rival.value - extended_bic(found.cpdag, fit, penalty)
    if lead < BUDGET.margin:
        return found
    better = f"better by {2.0 * lead:.0f} of extended BIC"
    if rejected and (fit.rmsea <= BUDGET.poor_rmsea or lead < BUDGET.margin_if_rejected):
        remark = (
            f"A graph of the observed variables without latents describes the data {better}. This does not show that "
            "there are no latents: both models may be wrong, and in a large sample every small misfit counts. "
            "um.peers.GES finds that graph."
        )
        return replace(found, remarks=(*found.remarks, distrust(remark)))
    cpdag = DAG.from_edges(rival.cpdag.member().edges, names=sample.names).cpdag()
    (alone,) = fit_many([cpdag], sample)
    how = f"describes the data badly (RMSEA {fit.rmsea:.3f})" if rejected else "describes the data"
    remark = (
        f"No latents are reported: the best factor model found {how}, {'and' if rejected else 'but'} a graph among the "
        f"observed variables is {better}. The edges reported are those of this graph."
    )
    return replace(found, cpdag=cpdag, fit=alone, remarks=(distrust(remark),), runners_up=())


def best_rival(sample: Sample, penalty: float) -> Rival:
    """The graph among observed variables with the best BIC there is, or that climbing finds.

    Every edge pays, besides its dimension, half the logarithm of the number of edges it was chosen from.
    """
    n = len(sample.names)
    of_edge = 0.5 * penalty * (math.log(sample.n) + math.log(n * (n - 1) / 2))
    # A copy can be written to, as covariances of latents can: another kind of array would be compiled for anew.
    score = GroupBic(sample.corr.copy(), (1,) * n, sample.n, of_edge)
    if n <= BUDGET.exact_observed:
        arcs, value = score.exact()
    else:
        arcs = climbed_graph(score)
        value = score.total(arcs)
    saturated = -0.5 * sample.n * sample.log_det_corr
    edges = [(sample.names[i], sample.names[j]) for i, j in np.argwhere(arcs).tolist()]
    dag = DAG.from_edges(edges, names=sample.names)
    return Rival(dag.cpdag(), value - saturated - 0.5 * penalty * n * math.log(sample.n))


def extended_bic(cpdag: CPDAG, fit: Fit, penalty: float) -> float:
    """The same for a factor model, less the log-likelihood of the saturated model."""
    return -0.5 * fit.chi2 - penalty * (0.5 * fit.dimension * math.log(fit.sample.n) + prior_of(cpdag))
