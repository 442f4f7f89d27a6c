"""Searches over many variables: every shortcut against the long way round."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import unmeasured as um
from unmeasured.errors import Stopped
from unmeasured.graphs.bitsets import mask_of
from unmeasured.kernels.arcs import climb_on
from unmeasured.knowledge.rules import Paths
from unmeasured.models import products
from unmeasured.models.factors import fit_factors
from unmeasured.models.fit import fit_many
from unmeasured.models.rank import rank_shortfalls
from unmeasured.models.solve import never
from unmeasured.search.clock import Clock
from unmeasured.search.close_fit.tolerance import no_model_holds
from unmeasured.search.hierarchy import levels
from unmeasured.search.hierarchy.blocks import LatentScore
from unmeasured.search.hierarchy.model import extended
from unmeasured.search.latent_graph.edges import (
    LatentTest,
    climbed_graph,
    described,
    latent_class,
    other_ways,
    reaches_of,
    refined_graph,
)
from unmeasured.search.latent_graph.latent_likelihood import LatentLikelihood, fit_along
from unmeasured.search.measurement.proposals import RankGains
from unmeasured.search.measurement.refine import Guidance
from unmeasured.search.measurement.relocate import all_best_parents, latents_of, relocated
from unmeasured.search.measurement.subproblems import (
    Pieces,
    Placed,
    first_factors,
    in_order,
    nearness,
    replaced,
    restricted,
)
from unmeasured.search.model import FactorModel
from unmeasured.search.score import BicScore, GroupBic, LikelihoodScore


def model_of_class(dag: um.DAG) -> FactorModel:
    parents = [
        sum(1 << g for g, group in enumerate(dag.latent_groups) if group[0] in dag.parents(x)) for x in dag.observed
    ]
    return FactorModel(dag.observed, tuple(map(len, dag.latent_groups)), tuple(parents))


def drawn(
    seed: int, n_observed: int, sizes: tuple[int, ...], setting: str = "realistic", n_samples: int = 1000
) -> tuple[um.DAG, um.Sample]:
    rng = np.random.default_rng(seed)
    dag = um.simulate.random_gnfm(group_sizes=sizes, n_observed=n_observed, n_common_children=2, rng=rng)
    draw = {"realistic": um.simulate.realistic_parameters, "paper": um.simulate.paper_parameters}[setting]
    return dag, um.as_sample(um.simulate.sample(draw(dag, rng), n_samples, rng=rng))


@pytest.mark.parametrize("setting", ["realistic", "paper"])
@pytest.mark.parametrize("seed", range(4))
def test_em_reaches_the_optimum_of_the_dense_kernels(seed: int, setting: str) -> None:
    """On badly conditioned covariances too (the paper's parameters)."""
    dag, sample = drawn(seed, 18, (1, 1, 2), setting)
    model = model_of_class(dag)
    m = sum(model.sizes)
    start = first_factors(sample.corr, model)
    dense = um.fit(model.member, sample)
    for is_accelerated in (False, True):
        _, objective = fit_factors(
            sample.corr, model.mask[:, m:], start, tolerance=1e-10, is_accelerated=is_accelerated
        )
        ours = sample.n * (objective - sample.log_det_corr - len(sample.names))
        assert ours == pytest.approx(dense.chi2, abs=0.2)


def test_fits_by_matrix_products_end_where_those_of_the_kernels_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a group whose basis is free."""
    dag, sample = drawn(2, 24, (1, 2, 1))
    (dense,) = fit_many([dag.cpdag()], sample)
    x = dense.solution.x
    value, slope, H = dense.problem.derivatives(1.02 * x)
    ours = products.derivatives(dense.problem.pattern, sample.corr, 1.02 * x)
    assert ours[0] == pytest.approx(value)
    np.testing.assert_allclose(ours[1], slope, atol=1e-9)
    np.testing.assert_allclose(ours[2], H, atol=1e-9)
    monkeypatch.setattr("unmeasured.models.fit.LARGE", 10)
    monkeypatch.setattr("unmeasured.models.products.LARGE", 10)
    for start in (1.05 * x, None):  # near the optimum, as after a search; and from the data
        (other,) = fit_many([dag.cpdag()], sample, starts=[start])
        assert other.converged
        assert other.chi2 == pytest.approx(dense.chi2, abs=1e-6)
        np.testing.assert_allclose(other.implied_cov, dense.implied_cov, atol=1e-6)
        np.testing.assert_allclose(other.parameters["se"], dense.parameters["se"], atol=1e-5)
    (stopped,) = fit_many([dag.cpdag()], sample, starts=[1.05 * x], check=_over)
    assert not stopped.converged
    assert stopped.n_steps == 0


def _over() -> None:
    raise Stopped


def test_a_fit_in_the_order_of_the_groups_implies_the_same_covariance() -> None:
    dag, sample = drawn(3, 20, (2, 1, 3))
    search = Pieces(BicScore(sample), Guidance(3), [], Clock(None))
    placed = search.fitted(model_of_class(dag))
    ordered = in_order(placed)
    np.testing.assert_allclose(ordered.implied, placed.factors.implied, atol=1e-9)
    m = sum(placed.model.sizes)
    assert not ordered.effects[:, :m][~placed.model.mask[:, :m]].any()
    same = placed.factors.Phi.copy()  # two latents of different groups are one
    same[:, 2], same[2] = same[:, 0], same[0]
    twice = replace(placed, factors=replace(placed.factors, Phi=same))
    np.testing.assert_allclose(in_order(twice).implied, twice.factors.implied, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_stepwise_finds_the_best_parents_of_all_sets(seed: int) -> None:
    """With four groups and up to two parents now, every set of up to two groups is among those looked at."""
    dag, sample = drawn(seed, 20, (1, 1, 2, 1))
    model = model_of_class(dag)
    rng = np.random.default_rng(seed)
    wrong = list(model.parents)
    for j in rng.choice(20, 4, replace=False):
        wrong[j] = 1 << int(rng.integers(4))
    model = replace(model, parents=tuple(wrong))
    score = BicScore(sample)
    search = Pieces(score, Guidance(3), [], Clock(None))
    placed = search.fitted(model)
    best, rise = search.other_parents(placed)

    masks = np.array(sorted({0} | {1 << a | 1 << b for a in range(4) for b in range(4)}))
    factors = placed.factors
    table = relocated(sample.corr, factors.loadings, factors.Phi, factors.noise, masks, latents_of(masks, model.sizes))
    n_latents = (masks[:, None] >> np.arange(4) & 1) @ np.array(model.sizes)
    worth = sample.n * table.likelihoods - score.dimension_penalty * n_latents
    worth -= score.priors(np.bitwise_count(masks).astype(np.int64), 4)
    now = np.searchsorted(masks, model.parents)
    for j in range(20):
        found = sum(1 << int(g) for g in np.flatnonzero(best[j]))
        if found.bit_count() <= 2:
            assert masks[np.argmax(worth[j])] == found
            assert rise[j] == pytest.approx(worth[j].max() - worth[j, now[j]], abs=1e-3)
        else:
            assert rise[j] >= worth[j].max() - worth[j, now[j]] - 1e-3


@pytest.mark.parametrize("seed", range(20))
def test_a_latent_graph_of_a_population_is_the_true_class(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag = um.simulate.random_gnfm(n_groups=8, max_group_size=2, density=0.35, rng=rng)
    parameters = um.simulate.realistic_parameters(dag, rng)
    position = [dag.names.index(x) for group in dag.latent_groups for x in group]
    full = np.linalg.inv(np.eye(len(dag.names)) - parameters.F)
    Phi = (full.T @ parameters.Omega @ full)[np.ix_(position, position)]
    model = model_of_class(dag)
    score = GroupBic(Phi, tuple(map(len, dag.latent_groups)), 1.0, 1e-7)
    found = latent_class(model.along(np.zeros((8, 8), dtype=np.uint8)), score)
    assert um.metrics.compare(dag, found.cpdag).shd == 0


def with_true_arcs(dag: um.DAG) -> np.ndarray:
    groups = dag.latent_groups
    return np.array([[(a[0], b[0]) in dag.edges for b in groups] for a in groups], dtype=np.uint8)


@pytest.mark.parametrize("seed", [0, 3, 10])
def test_detours_lead_out_of_a_local_optimum(seed: int) -> None:
    """In a population the true graph is best, and single moves do not come to it."""
    dag = um.simulate.random_gnfm(n_groups=20, max_group_size=2, density=0.2, rng=np.random.default_rng(seed))
    score = GroupBic(population_of(dag, seed), tuple(map(len, dag.latent_groups)), 1.0, 1e-7)
    best = score.total(with_true_arcs(dag))
    here = climbed_graph(score)
    assert score.total(here) < best - 1e-7
    there = refined_graph(score, here)
    assert score.total(there) == pytest.approx(best, abs=1e-9)
    totals = np.array([score.total(other) for other in other_ways(score, there)])
    assert (np.diff(totals) < 1e-9).all()  # the best first


@pytest.mark.parametrize("seed", range(3))
def test_compiled_climbs_know_what_every_change_of_an_arc_gains(seed: int) -> None:
    """After changes of every kind, for groups of several sizes: by the sums of the terms, and no cycles."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(40, 14))
    score = GroupBic(A.T @ A / 40, (1, 2, 1, 3, 1, 2, 1, 1, 2), 300.0, 3.0, edge_prior=1.5)
    arcs = np.triu(rng.random((9, 9)) < 0.4, 1).astype(np.uint8)
    marks, gains, tops, reaches = state = described(score, arcs)
    before = score.total(arcs)
    for g, h in np.argwhere(arcs).tolist():
        for is_reversed in (False, True):
            if marks[g, h]:
                rise = climb_on(*score.terms, *state, g, h, is_reversed, False)
                before += rise if rise > -np.inf else 0.0  # a cycle, and nothing changed
                assert before == pytest.approx(score.total(marks), abs=1e-6)
    assert (reaches == reaches_of(marks)).all()
    assert not np.diag(reaches).any()
    for h in range(9):
        parents = mask_of(np.flatnonzero(marks[:, h]).tolist())
        rises = [0.0 if g == h else score.local(h, parents ^ 1 << g) - score.local(h, parents) for g in range(9)]
        np.testing.assert_allclose(gains[h], rises, atol=1e-6)
        assert tops[h] == pytest.approx(max(0.0, *rises), abs=1e-6)


def population_of(dag: um.DAG, seed: int) -> np.ndarray:
    """The covariance of the latents, group by group."""
    rng = np.random.default_rng(seed)
    um.simulate.random_gnfm(n_groups=20, max_group_size=2, density=0.2, rng=rng)  # parameters come after the graph
    parameters = um.simulate.realistic_parameters(dag, rng)
    position = [dag.names.index(x) for group in dag.latent_groups for x in group]
    full = np.linalg.inv(np.eye(len(dag.names)) - parameters.F)
    return (full.T @ parameters.Omega @ full)[np.ix_(position, position)]


@pytest.mark.parametrize("n_groups", [13, 60, 200])
def test_an_edge_pays_for_its_choice_among_all_pairs_of_which_one_for_each_group_is_there(n_groups: int) -> None:
    """Foygel and Drton (2010): the logarithm of how many pairs there are for every edge."""
    n_pairs = len(list(combinations(range(n_groups), 2)))
    sample = um.as_sample(cov=np.eye(4), n_samples=1000)
    for penalty in (1.0, 2.0):
        cost = BicScore(sample, penalty=penalty).edge_prior(n_groups)
        assert cost == pytest.approx(penalty * math.log(n_pairs / n_groups))
    assert BicScore(sample).edge_prior(12) == 0.0  # so few that the best graph over them is exact


def test_a_latent_graph_of_many_groups_is_as_good_as_the_true_one() -> None:
    """30 groups, measured with error: single moves over edges, from the graph predicted, end below the true one."""
    rng = np.random.default_rng(403)
    dag = um.simulate.random_gnfm(n_groups=30, max_group_size=2, n_observed=160, density=0.07, rng=rng)
    sample = um.as_sample(um.simulate.sample(um.simulate.realistic_parameters(dag, rng), 1000, rng=rng))
    test = latent_test(dag, sample)
    test.polish(test.starts[-1])
    (truth,) = test._moves.scored([test.found.model.along(with_true_arcs(dag))])
    assert test.best is not None
    assert test.best.value > truth.value - 1e-6


def test_a_latent_graph_with_two_parents_each_is_as_good_as_the_true_one() -> None:
    """20 latents: climbs from no edges at one share of the rows end up to 100 units below the true graph."""
    for seed in (2, 13):
        rng = np.random.default_rng((991, seed, 100))
        dag = um.simulate.random_gnfm(group_sizes=(1,) * 20, n_observed=100, density=4 / 19, rng=rng)
        sample = um.as_sample(um.simulate.sample(dag, 2000, parameters="realistic", rng=rng))
        test = latent_test(dag, sample)
        test.polish(test.starts[-1])
        (truth,) = test._moves.scored([test.found.model.along(with_true_arcs(dag))])
        assert test.best is not None
        assert test.best.value > truth.value - 1e-6


def test_moments_given_a_graph_bound_what_others_gain() -> None:
    """What the expected moments say another graph gains is no more than it does."""
    dag, sample = drawn(5, 60, (1, 2, 1, 1, 1) * 3, n_samples=2000)
    test = latent_test(dag, sample)
    likelihood, arcs = test.likelihood, with_true_arcs(dag)
    assert isinstance(likelihood, LatentLikelihood)
    moments = likelihood.moments(arcs)
    assert moments is not None
    sizes = test.found.model.sizes
    expected = GroupBic(moments, sizes, sample.n, 0.0)
    for g, h in list(np.argwhere(reaches_of(arcs) ^ arcs.astype(bool)))[:5] + list(np.argwhere(arcs))[:5]:
        other = arcs.copy()
        other[g, h] ^= 1
        now, then = sample.n * likelihood([test.found.model.along(arcs), test.found.model.along(other)])
        assert then - now >= expected.total(other) - expected.total(arcs) - 0.05


def latent_test(dag: um.DAG, sample: um.Sample) -> LatentTest:
    """The search for the latent graph of the true measurement model, fitted by EM."""
    model = model_of_class(dag)
    factors, _ = fit_factors(
        sample.corr, model.measures, first_factors(sample.corr, model), tolerance=1e-9, is_accelerated=True
    )
    found = in_order(Placed(model, factors, 0.0))
    return LatentTest(found, BicScore(sample), Paths.free(len(model.sizes)), never)


def test_latents_above_others_score_with_the_measurement_fixed_as_full_fits_do() -> None:
    """A lower bound, close to the dense kernels: three traits over nine facets."""
    truth = um.simulate.hierarchy(loading=0.7, rng=2)
    sample = um.as_sample(um.simulate.sample(truth, 2000, rng=2))
    lower = FactorModel(sample.names, (1,) * 9, tuple(1 << j // 4 for j in range(36)))
    (near,) = BicScore(sample)([lower])
    latents = LatentScore(near.latent_cov, lower.sizes, sample.n, 3.8, 1.0)
    predicted = latents(((0, 1, 2), (3, 4, 5), (6, 7, 8)))
    model = extended(lower, predicted.blocks)
    start = levels._start(near, model, predicted, latents)
    graphs = [model.along(arcs) for arcs in (model.arcs, np.eye(3, k=1, dtype=np.uint8), np.zeros((3, 3), np.uint8))]
    fixed = sample.n * LatentLikelihood(sample, start)(graphs)
    dense = sample.n * LikelihoodScore(sample, near=start)(graphs)
    assert (fixed <= dense + 0.01).all()
    np.testing.assert_allclose(fixed, dense, rtol=0.01, atol=0.5)


def test_neighbours_stand_in_for_all_subsets_where_there_are_too_many() -> None:
    _, sample = drawn(1, 60, (1,) * 12)
    gains = RankGains(sample, 3.5)
    few, many = gains.seeds(tuple(range(30)), 2)[0], gains.seeds(tuple(range(60)), 3)[0]
    assert len(few) == math.comb(30, 3)
    assert 60 <= len(many) < math.comb(60, 4) / 4
    assert all(len(set(row)) == 4 for row in many.tolist())


def test_a_part_taken_out_and_put_back_changes_nothing() -> None:
    dag, _ = drawn(2, 26, (1, 2, 1, 1, 1))
    model = model_of_class(dag)
    for chosen in combinations(range(5), 2):
        inside = sum(1 << g for g in chosen)
        items = [j for j, mask in enumerate(model.parents) if not mask & ~inside]
        part = restricted(model, chosen, items)
        assert part.is_valid
        assert replaced(model, chosen, items, part).key == model.key


def test_graphs_with_the_measurement_fixed_score_as_full_fits_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lower bound, close to the dense kernels where the graph is near the data; in full, by EM, the same optimum."""
    dag, sample = drawn(5, 24, (1, 2, 1, 1, 1), n_samples=2000)
    model = model_of_class(dag)
    (near,) = BicScore(sample)([model])
    arcs = near.arcs
    graphs = [model, model.along(arcs)]
    for i, j in np.argwhere(arcs)[:3].tolist():
        fewer = arcs.copy()
        fewer[i, j] = 0
        graphs.append(model.along(fewer))
    dense = sample.n * LikelihoodScore(sample, near=near)(graphs)
    fixed = sample.n * LatentLikelihood(sample, near)(graphs)
    full = [sample.n * fit_along(sample, near, graph.arcs)[1] for graph in graphs]
    monkeypatch.setattr("unmeasured.search.latent_graph.latent_likelihood._MOST_AT_ONCE", 0)
    np.testing.assert_allclose(sample.n * LatentLikelihood(sample, near)(graphs), fixed, atol=0.02)
    assert (fixed <= dense + 0.01).all()
    np.testing.assert_allclose(fixed, dense, rtol=0.01, atol=0.05)
    np.testing.assert_allclose(full, dense, atol=0.3)


def test_what_an_edge_is_worth_is_told_by_one_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Wald's test, against the fall of the likelihood without the edge; also after EM."""
    dag, sample = drawn(5, 24, (1, 2, 1, 1, 1), n_samples=2000)
    model = model_of_class(dag)
    (near,) = BicScore(sample)([model])
    arcs = np.triu(np.ones((5, 5), dtype=np.uint8), 1)
    graphs = LatentLikelihood(sample, near)
    (now,) = graphs([model.along(arcs)])
    losses = graphs.losses(arcs)
    assert ((losses > 0) == (arcs > 0)).all()
    weak = [pair for pair in np.argwhere(arcs).tolist() if losses[tuple(pair)] < 10.0]
    assert weak
    for i, j in weak:
        fewer = arcs.copy()
        fewer[i, j] = 0
        (without,) = graphs([model.along(fewer)])
        assert sample.n * (now - without) == pytest.approx(losses[i, j], rel=0.3, abs=0.1)
    monkeypatch.setattr("unmeasured.search.latent_graph.latent_likelihood._MOST_AT_ONCE", 0)
    np.testing.assert_allclose(graphs.losses(arcs), losses, rtol=0.02, atol=0.1)


@pytest.mark.parametrize("parents", [0b0, 0b10, 0b101000])
def test_what_further_parents_explain_is_the_same_one_by_one(parents: int) -> None:
    A = np.random.default_rng(1).normal(size=(30, 9))
    score = GroupBic(A.T @ A / 30, (1, 2, 1, 3, 1, 1), 500.0, 3.0, edge_prior=1.5)
    for child in (0, 2, 4):
        rises, now = score.additions(child, parents), score.local(child, parents)
        for g in range(6):
            is_other = g != child and not parents >> g & 1
            assert rises[g] == pytest.approx(score.local(child, parents | 1 << g) - now if is_other else 0.0, abs=1e-6)
        fewer = score.removals(child, parents & ~(1 << child))
        now = score.local(child, parents & ~(1 << child))
        for g in range(6):
            is_parent = g != child and parents >> g & 1
            assert fewer[g] == pytest.approx(
                score.local(child, parents & ~(1 << child | 1 << g)) - now if is_parent else 0.0, abs=1e-6
            )


def test_seeds_of_many_variables_are_remembered_one_by_one() -> None:
    _, sample = drawn(1, 60, (1,) * 12)
    gains = RankGains(sample, 3.5)
    for items in (range(60), range(10, 60), range(5, 40)):
        subsets, costs = gains.seeds(tuple(items), 1)
        np.testing.assert_allclose(costs, sample.n * rank_shortfalls(sample.corr, subsets, 1), atol=1e-9)


def test_a_missed_group_is_found_among_the_children_of_those_that_cause_it() -> None:
    """Items of a latent that nobody proposed look like common children of its causes."""
    rng = np.random.default_rng(3)
    edges = [(f"L{c}", "L9") for c in range(3)] + [(f"L{c}", f"x{c}{i}") for c in (0, 1, 2, 9) for i in range(6)]
    dag = um.DAG.from_edges(edges, latents=["L0", "L1", "L2", "L9"])
    sample = um.as_sample(um.simulate.sample(um.simulate.realistic_parameters(dag, rng), 2000, rng=rng))
    true = FactorModel(sample.names, (1,) * 4, tuple(1 << "0129".index(name[1]) for name in sample.names))
    wrong = tuple(0b111 if mask == 0b1000 else mask for mask in true.parents)
    search = Pieces(BicScore(sample), Guidance(3), [], Clock(None), is_credited=True)
    found = search.regrouped(search.fitted(FactorModel(sample.names, (1,) * 3, wrong)))
    assert found.model.key == true.key


def test_groups_offered_together_are_taken_or_halved() -> None:
    """Two missed latents are taken at once; of halves of groups none is."""
    rng = np.random.default_rng(3)
    edges = [(f"L{c}", f"L{c + 1}") for c in range(3)] + [(f"L{c}", f"x{c}{i}") for c in range(4) for i in range(6)]
    dag = um.DAG.from_edges(edges, latents=[f"L{c}" for c in range(4)])
    sample = um.as_sample(um.simulate.sample(um.simulate.realistic_parameters(dag, rng), 2000, rng=rng))
    true = FactorModel(sample.names, (1,) * 4, tuple(1 << "0312".index(name[1]) for name in sample.names))
    known = FactorModel(sample.names, (1, 1), tuple(mask if mask < 4 else 0b11 for mask in true.parents))
    item = {name: j for j, name in enumerate(sample.names)}
    search = Pieces(BicScore(sample), Guidance(3), [], Clock(None), is_credited=True)
    found = search._offered(search.fitted(known), [(1, tuple(item[f"x{c}{i}"] for i in range(6))) for c in (1, 2)])
    assert found.model.key == true.key
    halves = [(1, tuple(item[f"x{c}{i}"] for i in range(3))) for c in range(4)]
    assert search._offered(found, halves) is found


def test_an_offer_that_would_leave_a_group_without_indicators_is_refused() -> None:
    """Offers are made from one model and taken one after the other: the variables of a later one may have moved."""
    dag, sample = drawn(1, 50, (1,) * 5)
    search = Pieces(BicScore(sample), Guidance(3), [], Clock(None), is_credited=True)
    found = search.fitted(model_of_class(dag))
    assert search._with_groups(found, [(1, found.model.pure(0))]) is found


def test_there_may_be_more_groups_than_bits_in_a_number() -> None:
    names = tuple(f"x{i}" for i in range(140))
    model = FactorModel(names, (1,) * 70, tuple(1 << i // 2 for i in range(140)))
    loads = model.mask[:, 70:]
    assert loads.sum() == 140
    assert all(loads[i // 2, i] for i in range(140))
    assert model.is_valid


def test_a_group_is_nearest_to_itself_and_to_those_that_share_indicators() -> None:
    Phi = np.array([[1.0, 0.2, 0.5], [0.2, 1.0, 0.9], [0.5, 0.9, 1.0]])
    names = ("a", "b", "c", "d", "e", "f")
    apart, sharing = (FactorModel(names, (1, 2), (1, 1, 2, 2, 2, last)) for last in (2, 3))
    assert nearness(Phi, apart).argmax(axis=1).tolist() == [0, 1]
    assert nearness(Phi, apart)[0, 1] == 0.5
    assert nearness(Phi, sharing)[0, 1] > 1.0


def test_fifty_variables_come_out_right() -> None:
    rng = np.random.default_rng(11)
    dag = um.simulate.random_gnfm(group_sizes=(1, 2, 1, 1, 1, 2, 1, 1), n_observed=50, density=0.3, rng=rng)
    X = um.simulate.sample(um.simulate.realistic_parameters(dag, rng), 4000, rng=rng)
    found = um.LGES().fit(X)
    assert um.metrics.compare(dag, found.graph_).f1 > 0.95
    assert um.graphs.is_gnfm(found.graph_.member())
    assert all_best_parents.signatures  # type: ignore[attr-defined]  # the way of many variables was taken


def test_steps_that_rounding_would_spoil_are_not_taken() -> None:
    """Latents of the paper's parameters may be nearly functions of others: a search of these 70 variables broke off."""
    rng = np.random.default_rng(9304)
    sizes = tuple(int(k) for k in rng.choice([1, 1, 1, 2], size=rng.integers(10, 14)))
    n_observed, density = int(rng.integers(55, 80)), float(rng.uniform(0.3, 0.7))
    dag = um.simulate.random_gnfm(group_sizes=sizes, n_observed=n_observed, density=density, rng=rng)
    rows = um.simulate.sample(um.simulate.paper_parameters(dag, rng), 300, rng=rng)
    found = um.LGES(tolerance=0, hierarchy=False).fit(rows)
    assert um.metrics.compare(dag, found.graph_).f1 > 0.85


def almost_functions_of_others(seed: int, n_latents: int) -> np.ndarray:
    """Correlations of latents whose variances grow from cause to effect: others leave some a millionth and less."""
    rng = np.random.default_rng(seed)
    shape = n_latents, n_latents
    effects = np.triu(rng.uniform(-5, 5, shape) * (rng.random(shape) < 0.5), 1)
    total = np.linalg.inv(np.eye(n_latents) - effects)
    Phi = (total.T * rng.uniform(0.1, 1, n_latents)) @ total
    unit = np.sqrt(np.diag(Phi))
    return np.asarray(Phi / np.outer(unit, unit))


def test_rounding_does_not_lead_climbs_around_in_circles() -> None:
    """Both searches never ended before changes were counted and totals compared."""
    none = np.zeros((24, 24), dtype=np.uint8)
    score = GroupBic(almost_functions_of_others(0, 24), (1,) * 24, 1000.0, 3.45)
    assert score.total(refined_graph(score, none)) > score.total(climbed_graph(score))
    score = GroupBic(almost_functions_of_others(1, 14) + 1e-6 * np.eye(14), (1,) * 14, 1000.0, 3.45)
    assert climbed_graph(score).any()


def with_residuals_of(part: float, further_loading: float = 0.0) -> tuple[FactorModel, um.Sample]:
    """Twelve latents with four indicators each, in a population with these residual variances.

    The first variable has a second latent with this loading, which the model leaves out.
    """
    names = tuple(f"X{i + 1}" for i in range(48))
    model = FactorModel(names, (1,) * 12, tuple(1 << j // 4 for j in range(48)))
    loadings = np.kron(np.eye(12), np.ones(4))
    loadings[1, 0] = further_loading
    cov = loadings.T @ (0.5 + 0.5 * np.eye(12)) @ loadings + part * np.eye(48)
    return model, um.Sample.from_cov(cov, 1000, names)


@pytest.mark.parametrize("part", [1e-2, 1e-7])
def test_residual_variances_near_zero_reject_no_model(part: float) -> None:
    """The bounds of EM and of unrestricted factors lie below them."""
    model, sample = with_residuals_of(part)
    pieces = Pieces(BicScore(sample), Guidance(2), [], Clock(None))
    assert pieces.fitted(model).value_of_fit > -1.0
    assert not no_model_holds(sample)


def test_other_parents_show_where_residual_variances_are_near_zero() -> None:
    """A second latent explains what the first one leaves, which is a hundred-thousandth of the variance."""
    model, sample = with_residuals_of(1e-6, further_loading=0.003)
    pieces = Pieces(BicScore(sample), Guidance(2), [], Clock(None))
    assert pieces.place(pieces.fitted(model)).model.parents[0] == 0b11
