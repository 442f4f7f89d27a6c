"""A hundred thousand rows: what chance hides elsewhere is plain, and where the search can be led astray it shows."""

from __future__ import annotations

import numpy as np
import pytest

import unmeasured as um
from unmeasured.search.measurement.nested import effects_in_order, order_within, start_within
from unmeasured.search.measurement.proposals import Clustering, RankGains, clusterings, find_clusters
from unmeasured.search.model import FactorModel, model_of_class
from unmeasured.search.score import BicScore

N = 100_000


def sample_of(groups: dict[str, str], paths: str, common: dict[str, str], seed: int) -> tuple[um.DAG, um.Sample]:
    """A model by its groups of latents and their indicators, paths between groups, and common children; and rows.

    ``{"AB": "1234"}``: latents A and B with the indicators x1 to x4; ``"AB>C"``: a path from both to C.
    """
    edges = [(latent, f"x{i}") for group, items in groups.items() for latent in group for i in items]
    for path in paths.split():
        causes, effects = path.split(">")
        edges += [(a, b) for a in causes for b in effects]
    edges += [(latent, f"x{i}") for i, parents in common.items() for latent in parents]
    truth = um.DAG.from_edges(edges, latents=sorted("".join(groups)))
    parameters = um.simulate.paper_parameters(truth, seed, low=-2.0, high=2.0, min_abs=0.5)
    return truth, um.as_sample(um.simulate.sample(parameters, N, rng=seed + 1))


# One latent causes all others: every set of indicators touches the rest by way of it.
FORK = {"A": "12", "B": "34", "C": "56"}, "C>A C>B", {"7": "AC"}
# A latent at the end of a chain: its indicators and those of the one before pass as those of one latent.
CHAIN = {"ABC": "abcdef", "DE": "1234", "F": "56", "G": "78", "H": "90"}, "ABC>DE DE>F G>DE H>G", {}
# Three variables are outside the group of three latents, so that its rank is no constraint.
LARGE_GROUP = {"ABC": "123456", "D": "78"}, "ABC>D", {"9": "ABCD"}
GLUED = {"A": "12", "BCD": "345678", "E": "90"}, "A>BCD A>E", {"a": "ABCD", "b": "AE"}


# Samples in which a search with clusters as they grow, one start of every fit and four climbs ended elsewhere.
@pytest.mark.parametrize(
    ("shape", "seed"), [(FORK, 2), (CHAIN, 5), (CHAIN, 8), (LARGE_GROUP, 7), (GLUED, 1), (GLUED, 3)]
)
def test_the_true_class_comes_out(shape, seed):
    truth, sample = sample_of(*shape, seed)
    assert um.metrics.compare(truth, um.LGES().fit(sample).graph_).shd == 0


def test_a_latent_that_causes_all_others_gets_no_cause_of_its_own_above_it():
    groups = {latent: f"{2 * i}{2 * i + 1}" for i, latent in enumerate("ABCDE")}
    for seed in (1, 2, 3):
        truth, sample = sample_of(groups, "A>B A>C A>D A>E", {}, seed)
        found = um.LGES().fit(sample)
        assert len(found.graph_.latents) == 5
        assert um.metrics.compare(truth, found.graph_).shd == 0


# Clusters -------------------------------------------------------------------------------------------------


def test_pure_clusters_do_not_run_over_into_the_latents_behind():
    _, sample = sample_of(*FORK, 1)
    gains = RankGains(sample, 0.5 * np.log(N))
    names = lambda clusters: sorted(sorted(sample.names[j] for j in items) for _, items in clusters)  # noqa: E731
    pure, left = find_clusters(gains, range(7), Clustering(1.0, is_pure=True), 3)
    assert names(pure) == [["x1", "x2"], ["x3", "x4"], ["x5", "x6"]]
    assert [sample.names[j] for j in left] == ["x7"]
    grown, _ = find_clusters(gains, range(7), Clustering(1.0), 3)
    assert names(grown) != names(pure)


def test_clusters_begin_at_the_rank_that_is_asked_for():
    _, sample = sample_of({"AB": "1234", "C": "567"}, "AB>C", {}, 1)
    gains = RankGains(sample, 0.5 * np.log(N))
    for how in clusterings(3):
        clusters, _ = find_clusters(gains, range(7), how, 3)
        assert all(k >= how.smallest for k, _ in clusters)
    assert {how.smallest for how in clusterings(3)} == {1, 2, 3}


# Models inside others -------------------------------------------------------------------------------------


def fitted(sizes, parents, sample):
    score = BicScore(sample)
    (found,) = score([FactorModel(sample.names, sizes, parents)])
    return score, found


def test_a_model_is_a_part_of_the_one_in_which_its_groups_are_one():
    pairs = FactorModel(tuple("abcdef"), (1, 2), (1, 1, 2, 2, 2, 2))
    assert order_within(pairs, FactorModel(tuple("abcdef"), (3,), (1,) * 6)) == [0, 1, 2]
    assert order_within(pairs, FactorModel(tuple("abcdef"), (2, 1), (2, 2, 1, 1, 1, 1))) == [1, 2, 0]
    for other in (
        FactorModel(tuple("abcdef"), (2,), (1,) * 6),  # fewer latents
        FactorModel(tuple("abcdef"), (1, 2), (1, 2, 2, 2, 2, 2)),  # b has lost its parent
        FactorModel(tuple("abcdef"), (2, 1), (1, 1, 2, 2, 2, 2)),  # not enough of them
    ):
        assert order_within(pairs, other) is None


def test_in_a_larger_model_the_same_parameters_imply_the_same_covariance():
    _, sample = sample_of({"A": "12", "B": "345", "C": "678"}, "A>B B>C A>C", {}, 1)
    score, found = fitted((1, 1, 1), (1, 1, 2, 2, 2, 4, 4, 4), sample)
    larger = FactorModel(sample.names, (1, 2), (2, 2, 1, 1, 1, 2, 2, 2))
    order = order_within(found.model, larger)
    assert order == [1, 0, 2]
    effects = effects_in_order(larger, found.loadings[order], found.latent_cov[np.ix_(order, order)])
    m = len(effects)
    B, loadings = effects[:, :m], effects[:, m:]
    T = np.linalg.inv(np.eye(m) - B)
    np.testing.assert_allclose(loadings.T @ T.T @ T @ loadings + np.diag(found.noise), found.implied, atol=1e-9)
    start = start_within(found, larger, score)
    (again,) = score([larger], [start])
    assert again.value >= start.least - 1e-3  # a fit can only rise


def test_other_starts_lead_out_of_a_local_optimum():
    truth, sample = sample_of({"ABC": "123456", "D": "7890a"}, "", {}, 4)
    model = model_of_class(truth.cpdag(), sample.names)
    score = BicScore(sample)
    (first,) = score([model])
    (insisted,) = score.insist([model])
    assert insisted.value >= first.value
    assert score([model])[0] is insisted
