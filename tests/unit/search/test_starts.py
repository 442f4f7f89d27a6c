"""A search that is given starts: it ends as high as without them, and sooner."""

from __future__ import annotations

import pytest

import unmeasured as um
from graphs_zoo import latent_chain
from unmeasured.search.model import model_of_class


def test_a_start_survives_the_way_into_the_search_and_back() -> None:
    graph = latent_chain.cpdag()
    observed = tuple(reversed(graph.observed))
    model = model_of_class(graph, observed)
    for j, name in enumerate(observed):
        parents = {g for g, group in enumerate(graph.latent_groups) if (group[0], name) in graph.directed_edges}
        assert {g for g in range(len(graph.latent_groups)) if model.parents[j] >> g & 1} == parents


@pytest.mark.parametrize("seed", range(3))
def test_from_a_bad_start_a_search_ends_no_lower_than_from_its_own(seed: int) -> None:
    parameters = um.simulate.realistic_parameters(latent_chain, rng=seed)
    sample = um.as_sample(um.simulate.sample(parameters, 400, rng=seed))
    one = um.DAG.from_edges([("L", x) for x in sample.names], latents=["L"]).cpdag()
    cold = um.LGES().discover(sample)
    warm = um.LGES().discover(sample, starts=[one])
    assert warm.fit.bic <= cold.fit.bic + 2.0
    assert um.graphs.is_gnfm(warm.cpdag.member())
