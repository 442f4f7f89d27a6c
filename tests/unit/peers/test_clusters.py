"""Peers that cluster: rank tests against other programs, clusters against theorems, and what they are given wrong."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2, kstest
from sklearn.utils.estimator_checks import check_estimator
from statsmodels.multivariate.cancorr import CanCorr

import unmeasured as um
from graphs_zoo import group_collider, latent_chain, shared_child, two_group_chain
from unmeasured.peers.fofc import pure_triples
from unmeasured.peers.ranks import rank_pvalues, vanishing_tetrads, wishart_pvalues
from unmeasured.peers.two_stage import most_factors, n_factors, unrotated_loadings
from unmeasured.search.latent_graph.edges import climbed_graph
from unmeasured.search.score import GroupBic


def population(search, dag, seed, parameters=um.simulate.realistic_parameters):
    """The search on the covariance of a model itself, and how far its answer is from the truth."""
    model = parameters(dag, rng=seed)
    found = search.fit_cov(model.cov(), math.inf, names=model.observed)
    return found, um.metrics.compare(dag, found.graph_)


# ----------------------------------------------------------------------------------------------- rank tests


@pytest.fixture(scope="module")
def rows():
    return um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 300, rng=5).to_numpy()


@pytest.mark.parametrize("subset", [[0, 1], [0, 4], [2, 5, 8], [0, 1, 3, 7]])
def test_rank_tests_are_bartletts_with_the_canonical_correlations_of_statsmodels(rows, subset):
    rest = [j for j in range(9) if j not in subset]
    rho = np.sort(CanCorr(rows[:, subset], rows[:, rest]).cancorr)[::-1]
    for k in range(len(subset)):
        statistic = -(300 - 1 - 0.5 * (9 + 1)) * np.log1p(-(rho[k:] ** 2)).sum()
        expected = chi2.sf(statistic, (len(subset) - k) * (len(rest) - k))
        ours = rank_pvalues(np.corrcoef(rows.T), np.array([subset]), k, 300)[0]
        assert ours == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_tetrads_are_rank_tests_of_all_pairings(rows):
    R = np.corrcoef(rows.T)
    for alpha in (0.05, 1e-4):
        vanish = vanishing_tetrads(R, 0, 3, 300, alpha)
        for k, m in combinations([1, 2, 4, 5, 6, 7, 8], 2):
            four = np.ix_([0, 3, k, m], [0, 3, k, m])
            expected = all(rank_pvalues(R[four], np.array([[0, j]]), 1, 300)[0] > alpha for j in (1, 2, 3))
            assert vanish[k, m] == vanish[m, k] == expected


def test_p_values_are_uniform_where_the_rank_holds():
    model = um.simulate.realistic_parameters(latent_chain, rng=1)
    draws = [um.simulate.sample(model, 200, rng=seed).corr().to_numpy() for seed in range(300)]
    pvalues = [rank_pvalues(R, np.array([[0, 1]]), 1, 200)[0] for R in draws]
    assert kstest(pvalues, "uniform").pvalue > 0.01


# ----------------------------------------------------------------------------------------------------- FOFC


@pytest.mark.parametrize("seed", range(8))
def test_fofc_finds_every_one_factor_model_in_its_population(seed):
    dag = um.simulate.random_one_factor(n_latents=2 + seed % 3, n_observed=12, rng=seed)
    found, compared = population(um.peers.FOFC(), dag, seed)
    assert compared.shd == 0
    assert sorted(map(sorted, found.clusters_)) == sorted(
        sorted(x for x in dag.observed if dag.parents(x) == (latent,)) for latent in dag.latents
    )


@pytest.mark.parametrize("suite", [um.simulate.paper_suite, um.simulate.realistic_suite], ids=["paper", "realistic"])
@pytest.mark.parametrize("rules", ["ours", "tetrad"])
def test_fofc_finds_what_is_in_its_reach_and_nothing_else(suite, rules):
    """Single latents with three pure indicators or more, whatever groups and common children stand beside them."""
    for seed, dag in enumerate(suite()):
        found, _ = population(um.peers.FOFC(latent_edges=False, rules=rules), dag, seed)
        pure = [
            tuple(x for x in dag.observed if dag.parents(x) == group) for group in dag.latent_groups if len(group) == 1
        ]
        assert sorted(found.clusters_) == sorted(items for items in pure if len(items) >= 3)


def test_fofc_without_edges_gives_clusters_alone():
    found, _ = population(um.peers.FOFC(latent_edges=False), latent_chain, 0)
    assert {len(items) for items in found.clusters_} == {3}
    assert not any(a in found.graph_.latents and b in found.graph_.latents for a, b in found.graph_.member().edges)


def test_fofc_leaves_out_what_measures_two_latents():
    found, _ = population(um.peers.FOFC(), shared_child, 0)
    assert sorted(found.clusters_) == [("x1", "x2", "x3"), ("x4", "x5", "x6")]
    assert found.remarks_ == ("In no pure cluster of three or more: x7.",)


def test_wisharts_p_values_are_uniform_where_tetrads_vanish():
    model = um.simulate.realistic_parameters(latent_chain, rng=1)
    draws = [um.simulate.sample(model, 200, rng=seed).corr().to_numpy() for seed in range(300)]
    for pvalues in np.array([wishart_pvalues(R, 0, 1, 200)[:, 2, 3] for R in draws]).T:
        assert kstest(pvalues, "uniform").pvalue > 0.01


def test_a_pure_triple_is_pure_with_every_other_variable():
    model = um.simulate.realistic_parameters(latent_chain, rng=0)
    cov = model.cov()
    R = cov / np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
    pure = pure_triples(R, math.inf, 0.01)
    same = [{i, j, k} in ({0, 1, 2}, {3, 4, 5}, {6, 7, 8}) for i, j, k in np.argwhere(pure).tolist()]
    assert len(same) == 3 * 6
    assert all(same)


def test_fofc_says_nothing_of_three_variables_and_of_independent_ones():
    three = um.peers.FOFC().fit_cov(np.full((3, 3), 0.5) + 0.5 * np.eye(3), 500)
    assert three.graph_.latents == ()
    assert three.remarks_ == ("Tetrads need four variables; there are 3.",)
    assert um.peers.FOFC().fit_cov(np.eye(6), 500).graph_.latents == ()


# ------------------------------------------------------------------------------------------------- clusters


@pytest.mark.parametrize("dag", [latent_chain, two_group_chain, group_collider], ids=["chain", "two", "collider"])
def test_rank_clusters_finds_groups_of_several_latents(dag):
    found, compared = population(um.peers.RankClusters(), dag, 1)
    assert compared.shd == 0
    assert sorted(map(len, found.latent_groups_)) == sorted(map(len, dag.latent_groups))


@pytest.mark.parametrize("seed", range(10))
def test_rank_clusters_finds_every_factor_model_without_common_children(seed):
    dag = um.simulate.random_gnfm(n_latents=2 + seed % 4, n_observed=14, rng=seed)
    assert population(um.peers.RankClusters(), dag, seed)[1].shd == 0


def test_rank_clusters_at_a_finite_sample_and_with_variables_that_belong_nowhere():
    model = um.simulate.realistic_parameters(latent_chain, rng=0)
    rows = um.simulate.sample(model, 20_000, rng=0)
    rows["noise"] = np.random.default_rng(0).standard_normal(len(rows))
    found = um.peers.RankClusters(alpha=0.001).fit(rows)
    assert sorted(map(len, found.clusters_)) == [3, 3, 3]
    assert found.remarks_ == ("In no cluster: noise.",)
    assert um.peers.RankClusters(max_rank=1).fit_cov(np.eye(5), 400).graph_.latents == ()


# ------------------------------------------------------------------------------------------------ two stages


@pytest.mark.parametrize("rotation", ["oblimin", "promax"])
def test_two_stages_find_simple_structure(rotation):
    rows = um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 4000, rng=5)
    found = um.peers.TwoStage(rotation=rotation).fit(rows)
    assert found.n_factors_ == 3
    assert um.metrics.compare(latent_chain, found.graph_).shd == 0


def test_an_item_of_two_factors_is_kept_with_both_or_with_one():
    loadings = np.zeros((9, 9))
    loadings[0, [2, 3, 4, 8]] = loadings[1, [5, 6, 7, 8]] = 0.6
    model = um.simulate.Parameters(shared_child, loadings, np.diag([1.0, 1.0, *[0.5] * 7]))
    rows = um.simulate.sample(model, 4000, rng=5)
    both, one = um.peers.TwoStage().fit(rows), um.peers.TwoStage(cross_loadings=False).fit(rows)
    assert um.metrics.compare(shared_child, both.graph_).shd == 0
    assert len(one.graph_.member().parents("x7")) == 1


def test_loadings_explain_what_factor_analysis_explains():
    rows = um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 4000, rng=5)
    loadings = unrotated_loadings(um.as_sample(rows), 3)
    model = um.fit("f =~ " + " + ".join(rows.columns), rows)  # one factor explains less
    implied = loadings @ loadings.T
    off = ~np.eye(9, dtype=bool)
    assert np.abs(implied - rows.corr().to_numpy())[off].max() < 0.03
    assert model.srmr > 0.05


@pytest.mark.parametrize("eigenvalues", ["components", "factors"])
def test_parallel_analysis_counts_factors_that_hardly_correlate(eigenvalues):
    blocks = np.kron(np.eye(3), np.full((4, 4), 0.6)) + 0.4 * np.eye(12)
    assert n_factors(um.Sample.from_cov(blocks, 500), eigenvalues, 0) == 3
    assert n_factors(um.Sample.from_cov(blocks, math.inf), eigenvalues, 0) == 3
    assert n_factors(um.Sample.from_cov(np.eye(12), math.inf), eigenvalues, 0) == 0


def test_no_more_factors_than_degrees_of_freedom():
    assert [(9 - m) ** 2 >= 9 + m for m in (most_factors(9), most_factors(9) + 1)] == [True, False]


# -------------------------------------------------------------------------------------------- many groups


def test_hill_climbing_never_beats_the_exact_search_and_mostly_reaches_it():
    sizes, n_reached = (1, 2, 1, 2), 0  # six latents in four groups
    for seed in range(30):
        dag = um.simulate.random_dag(n_observed=6, density=0.4, rng=seed)
        Phi = um.simulate.paper_parameters(dag, rng=seed).cov()
        Phi /= np.sqrt(np.outer(np.diag(Phi), np.diag(Phi)))
        score = GroupBic(Phi, sizes, 500.0, 3.0)
        exact, at_best = score.exact()
        climbed, best, kept = (score.total(arcs) for arcs in (climbed_graph(score), exact, climbed_graph(score, exact)))
        assert best == pytest.approx(at_best)
        assert climbed <= best + 1e-6
        assert kept == pytest.approx(best)  # no move leads on from the best graph
        n_reached += climbed > best - 1e-6
    assert n_reached > 30 / 2


def test_many_latents_are_connected_by_hill_climbing():
    dag = um.simulate.random_one_factor(n_latents=14, n_observed=42, shape="chain", rng=0)
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=0), 20_000, rng=0)
    compared = um.metrics.compare(dag, um.peers.FOFC(alpha=1e-6).fit(rows).graph_)
    assert compared.n_latents_found == 14
    assert compared.f1 > 0.95


# ----------------------------------------------------------------------------------------------- bad options


@pytest.mark.parametrize(
    ("search", "words"),
    [
        (um.peers.FOFC(alpha=0), "alpha must be a significance level between 0 and 1; got 0"),
        (um.peers.FOFC(alpha="small"), "alpha must be a significance level between 0 and 1; got 'small'"),
        (um.peers.FOFC(latent_edges="yes"), "latent_edges must be True or False; got 'yes'"),
        (um.peers.FOFC(rules="java"), "rules must be one of 'ours', 'tetrad'; got 'java'"),
        (um.peers.RankClusters(alpha=2.0), "alpha must be a significance level between 0 and 1; got 2.0"),
        (um.peers.RankClusters(max_rank=0), "max_rank must be a whole number from 1; got 0"),
        (um.peers.TwoStage(rotation="varimax"), "rotation must be one of 'oblimin', 'promax'; got 'varimax'"),
        (um.peers.TwoStage(eigenvalues="roots"), "eigenvalues must be one of 'components', 'factors'; got 'roots'"),
        (um.peers.TwoStage(cut=3), "cut must be a loading between 0 and 1; got 3"),
        (um.peers.TwoStage(cross_loadings=2), "cross_loadings must be True or False; got 2"),
    ],
)
def test_options_that_make_no_sense_are_refused(search, words):
    with pytest.raises(um.UnmeasuredError, match=words):
        search.fit_cov(np.full((5, 5), 0.5) + 0.5 * np.eye(5), 200)


@pytest.mark.parametrize("kind", [um.peers.FOFC, um.peers.RankClusters, um.peers.TwoStage])
def test_bad_data_are_refused_by_the_same_door(kind):
    with pytest.raises(um.DataError, match=r"not positive definite|singular"):
        kind().fit_cov(np.ones((4, 4)), 100)
    with pytest.raises(um.DataError, match="minimum of 2 is required"):
        kind().fit(np.ones((1, 4)))


@pytest.mark.parametrize("kind", [um.peers.FOFC, um.peers.RankClusters, um.peers.TwoStage])
def test_peers_have_scikit_learns_manners(kind):
    checks = check_estimator(kind(), legacy=False, on_skip=None, on_fail="raise")
    assert len(checks) > 10
