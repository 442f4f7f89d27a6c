"""LGES with its default criterion: it must find what the paper's rule cannot, and keep its manners."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import unmeasured as um
from benchmarks import experiment
from benchmarks.attempt import simulated_rows
from unmeasured.data.sample import Sample
from unmeasured.models.parameters import pattern_of
from unmeasured.models.solve import Problem, solve
from unmeasured.search.measurement.moves import RESTRUCTURING, other_parents
from unmeasured.search.measurement.proposals import Clustering, RankGains, find_clusters, proposals
from unmeasured.search.measurement.refine import Guidance, Refinement
from unmeasured.search.measurement.relocate import latents_of, relocated
from unmeasured.search.model import FactorModel
from unmeasured.search.score import BicScore, GroupBic, LikelihoodScore


def truth_and_rows(seed, n=1000, sizes=(1, 1, 1), n_observed=10, common=1):
    truth = um.simulate.random_gnfm(group_sizes=list(sizes), n_observed=n_observed, n_common_children=common, rng=seed)
    return truth, um.simulate.sample(truth, n, rng=seed + 1, parameters="realistic")


def model_of_class(dag):
    masks = [
        sum(1 << g for g, group in enumerate(dag.latent_groups) if set(group) <= set(dag.parents(x)))
        for x in dag.observed
    ]
    return FactorModel(dag.observed, tuple(map(len, dag.latent_groups)), tuple(masks))


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_small_questionnaires(seed):
    truth, rows = truth_and_rows(seed)
    model = um.LGES().fit(rows)
    assert um.graphs.is_gnfm(model.graph_.member())
    assert um.metrics.compare(truth, model.graph_).f1 > 0.85
    # The search is no worse than the truth by its own criterion.
    assert model.sem_.bic <= um.fit(truth, rows).bic + 0.1


def truth_and_rows_of(name, method, *run):
    """The truth and the rows of a benchmark's run: graph, seed and number of samples."""
    for one in experiment.load(name).restricted([method]).assignments:
        if (one.task.graph, one.task.seed, one.task.n_samples) == run:
            return one.truth, simulated_rows(one.task, one.truth)
    raise AssertionError(run)


def test_a_bad_misfit_sends_it_to_its_other_proposals():
    """On these rows the first four climbs end on a summit 150 below the truth, which chance can rule out."""
    truth, rows = truth_and_rows_of("penalty", "penalty = 1", "paper-04", 0, 1000)
    found = um.LGES().fit(rows)
    assert found.sem_.bic <= um.fit(truth, rows).bic - 5
    assert um.metrics.compare(truth, found.graph_).f1 > 0.85


def test_the_fit_of_an_answer_is_the_best_of_many_starts():
    """Correlations near 1, where fits used to end at a chi-square of 2181, and looked converged."""
    _, rows = truth_and_rows_of("table2-uniform", "LGES (bic)", "paper-04", 9, 200)
    found = um.LGES().fit(rows)
    problem = Problem.of(pattern_of(found.graph_.member()), found.sample_)
    rng = np.random.default_rng(1)
    others = solve([problem] * 20, [problem.other_start(rng) for _ in range(20)])
    assert found.sem_.chi2 == pytest.approx(200 * min(other.discrepancy for other in others), abs=1e-3)


def test_a_fit_far_from_the_data_gets_other_starts():
    _, rows = truth_and_rows(3)
    assert "best of 7 starts" in repr(um.fit(FactorModel(tuple(rows.columns), (1,), (1,) * rows.shape[1]).member, rows))


def test_misfit_is_that_of_a_fit():
    truth, rows = truth_and_rows(3)
    sample = um.as_sample(rows)
    score = BicScore(sample)
    search = Refinement(score, RankGains(sample, score.dimension_penalty), Guidance(3), [])
    right = model_of_class(truth)
    wrong = FactorModel(sample.names, (1,), (1,) * len(sample.names))
    for model in (right, wrong):
        fit = um.fit(model.member, sample)
        (found,) = score([model])
        assert search.misfits(found) == (fit.pvalue < 1e-3 and fit.rmsea > 0.04)
    assert search.misfits(found)
    assert not search.misfits(score([right])[0])


def test_a_population_gives_the_true_class():
    rng = np.random.default_rng(3)
    truth = um.simulate.random_gnfm(group_sizes=[1, 2, 1], n_observed=11, n_common_children=1, rng=rng)
    parameters = um.simulate.paper_parameters(truth, rng, low=-2, high=2, min_abs=0.5)
    model = um.LGES().fit_cov(parameters.cov(), math.inf, names=parameters.observed)
    assert um.metrics.compare(truth, model.graph_).shd == 0


def test_threads_and_runs_change_nothing():
    _, rows = truth_and_rows(7)
    first = um.LGES(n_jobs=1).fit(rows)
    second = um.LGES(n_jobs=2).fit(rows)
    assert first.graph_ == second.graph_
    assert [s.what for s in first.trace_] == [s.what for s in second.trace_]


def test_a_larger_penalty_gives_fewer_dimensions():
    _, rows = truth_and_rows(8, n=3000)
    sparse, dense = (um.LGES(penalty=p).fit(rows).sem_.dimension for p in (8.0, 0.5))
    assert sparse <= dense


def test_a_time_limit_returns_the_best_so_far_and_says_so():
    _, rows = truth_and_rows(9, sizes=(1, 1, 1, 1), n_observed=14)
    model = um.LGES(time_limit=1e-6).fit(rows)
    assert model.remarks_[0] == model.stopped_
    assert model.stopped_.startswith("Stopped at the time limit of 1e-06 s: this is the best model found so far")
    assert model.result_.summary().startswith("Stopped at the time limit")
    assert model.graph_.latents


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    _, rows = truth_and_rows(9, sizes=(1, 1, 1, 1), n_observed=14)
    monkeypatch.setattr(Refinement, "restructured", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    model = um.LGES().fit(rows)
    assert model.remarks_[0].startswith("Interrupted after")
    assert "best model found so far" in model.remarks_[0]
    assert model.graph_.latents


def test_the_trace_climbs():
    """Within a climb every step improves the score; trials that came to nothing are not in it."""
    _, rows = truth_and_rows(6, sizes=(1, 2, 1), n_observed=13)
    trace = um.LGES().fit(rows).trace_
    climbs = {step.phase for step in trace if step.phase.startswith("Measurement")}
    assert climbs
    for climb in climbs:
        steps = [step for step in trace if step.phase == climb]
        assert all(step.score_after > step.score_before for step in steps)
        assert all(a.score_after == b.score_before for a, b in itertools.pairwise(steps))


def test_noise_has_no_latents_and_one_factor_is_one():
    rng = np.random.default_rng(0)
    noise = um.LGES().fit(rng.normal(size=(500, 8)))
    assert not noise.graph_.latents
    assert noise.remarks_[-1].startswith("No latent variables were found")
    # The best of 2^13 ways to split a factor gains more than a dimension costs.
    one = um.simulate.random_gnfm(group_sizes=[1], n_observed=13, rng=4)
    found = um.LGES().fit(um.simulate.sample(one, 100_000, rng=5, parameters="realistic"))
    assert um.metrics.compare(one, found.graph_).shd == 0


def test_a_variable_may_belong_nowhere():
    _truth, rows = truth_and_rows(3, n=2000)
    rows["stranger"] = np.random.default_rng(1).normal(size=len(rows))
    model = um.LGES().fit(rows)
    assert model.graph_.member().parents("stranger") == ()
    assert any("without a latent cause: stranger" in remark for remark in model.remarks_)


def restructurings(model, sample):
    """All models a step away from this one: pairs and merges as the search would choose them."""
    score = BicScore(sample)
    search = Refinement(score, RankGains(sample, score.dimension_penalty), Guidance(3), [])
    (found,) = score([model])
    here = search.situation(found)
    return here, [(move.name, other) for move in RESTRUCTURING for other in move.models(here)]


def test_every_move_leads_to_a_valid_model():
    truth, rows = truth_and_rows(1, sizes=(1, 2), n_observed=9)
    start = model_of_class(truth)
    assert start.is_valid
    here, others = restructurings(start, Sample.from_rows(rows))
    moved = [candidate.model for batch in other_parents.candidates(here) for candidate in batch]
    assert moved
    names = {name for name, _ in others}
    assert "resize" in names
    valid = [other for _, other in others if other.is_valid]
    assert len(valid) > 5
    for other in [*moved, *valid]:
        assert other.is_valid
        # A variable without parents belongs nowhere; without such variables it is a factor model.
        verdict = um.graphs.is_gnfm(other.member)
        alone = {x for x, mask in zip(other.observed, other.parents, strict=True) if not mask}
        assert {failure.variable for failure in verdict.failures} == alone
    assert len({other.key for _, other in others}) > 3


@pytest.mark.parametrize("seed", range(6))
def test_closed_form_relocations_are_likelihoods_a_fit_reaches(seed):
    """What they predict for other parents, a fit of that model reaches or beats."""
    truth, rows = truth_and_rows(seed, sizes=(1, 1, 2), n_observed=12)
    sample = Sample.from_rows(rows)
    score = BicScore(sample)
    (found,) = score([model_of_class(truth)])
    masks = np.arange(1, 8)
    allowed = latents_of(masks, found.model.sizes)
    table = relocated(sample.corr, found.loadings, found.latent_cov, found.noise, masks, allowed)
    rng = np.random.default_rng(seed)
    for j, mask in zip(rng.integers(0, 12, 8).tolist(), rng.integers(1, 8, 8).tolist(), strict=True):
        other = found.model.with_parents(j, mask)
        now = table.likelihoods[j, found.model.parents[j] - 1]
        bound = found_loglik(found, score) + sample.n * (table.likelihoods[j, mask - 1] - now)
        graph = um.DAG.from_edges(other.member.edges, latents=other.member.latents, names=other.member.names)
        reached = um.fit(graph, rows)
        saturated = -0.5 * sample.n * reached.solution.discrepancy
        assert saturated > bound - 0.05


def found_loglik(found, score):
    (fit,) = um.fit_many([found.model.member], score.sample)
    return -0.5 * score.sample.n * fit.solution.discrepancy


@pytest.mark.parametrize("seed", range(5))
def test_savings_equal_the_best_of_all_graphs(seed):
    """Every order and every set of parents, by brute force."""
    rng = np.random.default_rng(seed)
    sizes = [(1, 1, 1, 1), (2, 1, 1), (1, 2, 1, 1), (2, 2, 1), (1, 1, 1)][seed]
    m = sum(sizes)
    A = rng.normal(size=(m, m)) * (rng.random((m, m)) < 0.5) + np.eye(m)
    Phi = A @ A.T + 0.1 * np.eye(m)
    ends = np.cumsum([0, *sizes])
    N, penalty = 80.0, 2.2

    def local(g, parents):
        of = [i for h in parents for i in range(ends[h], ends[h + 1])]
        both = [*range(ends[g], ends[g + 1]), *of]
        log_det = np.linalg.slogdet(Phi[np.ix_(both, both)])[1] - np.linalg.slogdet(Phi[np.ix_(of, of)])[1]
        return -0.5 * N * log_det - penalty * sizes[g] * len(of)

    def best(order):
        return sum(
            max(local(g, some) for r in range(at + 1) for some in itertools.combinations(order[:at], r))
            for at, g in enumerate(order)
        )

    groups = range(len(sizes))
    connected = sum(local(g, groups[:g]) for g in groups)
    expected = max(map(best, itertools.permutations(groups))) - connected
    arcs, saved = GroupBic(Phi, sizes, N, penalty).predicted()
    assert saved == pytest.approx(expected, abs=1e-8)
    assert sum(local(g, np.flatnonzero(arcs[:, g])) for g in groups) - connected == pytest.approx(saved, abs=1e-8)


def test_the_latent_graph_starts_near_the_connected_fit():
    """With nothing deleted, the start within a measurement model is its optimum."""
    truth, rows = truth_and_rows(5, sizes=(1, 2, 1), n_observed=12)
    sample = Sample.from_rows(rows)
    (found,) = BicScore(sample)([model_of_class(truth)])
    near, cold = LikelihoodScore(sample, near=found), LikelihoodScore(sample)
    assert float(near([found.model])[0]) == pytest.approx(float(cold([found.model])[0]), abs=1e-5)


def test_the_key_ignores_the_order_of_groups():
    truth, _ = truth_and_rows(2, sizes=(1, 2), n_observed=9)
    model = model_of_class(truth)
    swapped = FactorModel(model.observed, model.sizes[::-1], tuple({1: 2, 2: 1, 3: 3}[m] for m in model.parents))
    assert swapped.key == model.key
    assert swapped.signature == model.signature


@pytest.mark.parametrize("seed", range(4))
def test_the_dimension_of_a_measurement_model_is_exact(seed):
    rng = np.random.default_rng(seed)
    sizes = [[1, 1, 1], [2, 1], [1, 1], [3, 1, 1]][seed]
    truth = um.simulate.random_gnfm(group_sizes=sizes, n_observed=2 * sum(sizes) + 2, rng=rng, shape="dense")
    model = model_of_class(truth)
    sample = Sample.from_rows(um.simulate.sample(truth, 200, rng=rng, parameters="realistic"))
    score = BicScore(sample)
    for _, other in [("itself", model), *restructurings(model, sample)[1]]:
        assert score.dimension(other) == um.dimension(other.member)


def test_closed_forms_propose_the_clusters_of_a_clean_sample():
    truth = um.simulate.random_gnfm(group_sizes=[1, 1, 1], n_observed=12, rng=11)
    sample = Sample.from_rows(um.simulate.sample(truth, 20_000, rng=12, parameters="realistic"))
    gains = RankGains(sample, 0.5 * math.log(sample.n))
    clusters, left = find_clusters(gains, range(12), Clustering(1.0), 3)
    expected = {
        tuple(truth.observed.index(x) for x in truth.children(latent) if x in truth.observed)
        for latent in truth.latents
    }
    assert {items for _, items in clusters} == expected
    assert left == []
    assert all(model.is_valid for model in proposals(gains, 3))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"penalty": -1.0}, "penalty must be a positive number; got -1.0"),
        ({"penalty": math.nan}, "penalty must be a positive number; got nan"),
        ({"penalty": 10**400}, "penalty must be a positive number; got 1000"),
        ({"time_limit": 0}, "time_limit must be a positive number of seconds or None; got 0"),
        ({"time_limit": "x"}, "time_limit must be a positive number of seconds or None; got 'x'"),
        ({"time_limit": True}, "time_limit must be a positive number of seconds or None; got True"),
        ({"criterion": "aic"}, "criterion must be one of 'bic', 'delta'; got 'aic'"),
        ({"criterion": ["bic"]}, "criterion must be one of 'bic', 'delta'; got ['bic']"),
        ({"criterion": np.array(["bic", "bic"])}, "criterion must be one of"),
        ({"penalty": "1"}, "penalty must be a positive number; got '1'"),
        ({"delta": "x", "criterion": "delta"}, "delta must be a positive number or None; got 'x'"),
        ({"delta": [1.0]}, "delta must be a positive number or None; got [1.0]"),
        ({"max_group_size": 1.5}, "max_group_size must be a whole number from 1 or None; got 1.5"),
        ({"max_group_size": 0}, "max_group_size must be a whole number from 1 or None; got 0"),
        ({"knowledge": "a"}, "knowledge must be a um.Knowledge or None; got 'a'"),
        ({"compare_without_knowledge": "x"}, "compare_without_knowledge must be True or False or None; got 'x'"),
        ({"prune": "x"}, "prune must be True or False; got 'x'"),
        ({"cor": 5}, "cor must be one of"),
        ({"missing": None}, "missing must be one of"),
        ({"n_jobs": 0}, "n_jobs must be a number of threads"),
        ({"random_state": "x"}, "random_state must be a whole number from 0; got 'x'"),
        ({"moves": 5}, "moves must be a list of functions; got 5"),
        ({"moves": [5]}, "moves must be a list of functions; got [5]"),
        ({"verbose": "loud"}, "verbose must be True or False; got 'loud'"),
    ],
)
def test_mistakes_get_a_sentence(options, words):
    with pytest.raises(um.UnmeasuredError) as caught:
        um.LGES(**options).fit_cov(np.eye(4), 1000)
    assert words in str(caught.value)


def test_one_group_over_all_variables_is_found_too():
    """Nothing is clustered apart here: eight indicators of two latents that share them all."""
    truth = um.simulate.random_gnfm(group_sizes=[2], n_observed=8, rng=21)
    rows = um.simulate.sample(truth, 2000, rng=22)
    model = um.LGES().fit(rows)
    assert model.latent_groups_
    assert um.metrics.compare(truth, model.graph_).f1 == 1.0
