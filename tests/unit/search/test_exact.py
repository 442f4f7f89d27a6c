"""Enumeration against brute force, the bound against fits, and the manners of the estimator."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest

import unmeasured as um
from small_graphs import all_dags, classes
from unmeasured.estimators.exact import ExactSearch
from unmeasured.graphs import generic_rank
from unmeasured.graphs.bitsets import adjacency_of
from unmeasured.models.rank import rank_shortfall
from unmeasured.search.exact import branch as exact
from unmeasured.search.exact.branch import Criterion, RankTable, class_bounds, cut_sizes
from unmeasured.search.exact.enumerate import (
    count_gnfm,
    dimensions,
    gnfm_classes,
    latent_classes,
    measurement_table,
)
from unmeasured.search.model import FactorModel


def names(n):
    return [f"x{i + 1}" for i in range(n)]


def all_measurements(n, largest=None, observed=None):
    for m in range(1, n // 2 + 1):
        table = measurement_table(n, m, largest or n // 2, observed)
        yield from (table[row] for row in range(len(table)))


def brute_force(n):
    """All GNFMs over n observed variables by trying every graph: sets of graphs and of classes, latents unnamed."""
    graphs, found = set(), set()
    for k in range(1, n // 2 + 1):
        latents = [f"L{i}" for i in range(k)]
        variables = um.graphs.Variables.of([*latents, *names(n)], latents)
        for among in all_dags(k):
            for parents in product(product((0, 1), repeat=k), repeat=n):
                A = np.zeros((k + n, k + n), dtype=np.uint8)
                A[:k, :k], A[:k, k:] = among, np.array(parents).T
                dag = um.DAG(variables, A)
                if um.graphs.is_gnfm(dag):
                    graphs.add(unnamed(dag))
                    found.add(unnamed(dag.cpdag()))
    return graphs, found


def unnamed(graph):
    """The matrix of a graph in the order of its latents that sorts first."""
    k, d = len(graph.latents), len(graph.names)
    orders = ([*order, *range(k, d)] for order in permutations(range(k)))
    return min(graph.adjacency[np.ix_(order, order)].tobytes() for order in orders)


# ------------------------------------------------------------------------------------------------ enumeration


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_enumeration_is_complete_and_without_repetition(n):
    graphs, found = brute_force(n)
    listed = [unnamed(cpdag) for cpdag in gnfm_classes(names(n))]
    assert len(listed) == len(set(listed))
    assert set(listed) == found
    assert (count_gnfm(n).n_graphs, count_gnfm(n).n_classes) == (len(graphs), len(found))


@pytest.mark.parametrize(("n", "largest"), [(6, None), (6, 1), (6, 2), (7, None), (8, 2)])
def test_the_formula_counts_what_is_listed(n, largest):
    rows = [(m.sizes, m.parents) for m in all_measurements(n, largest)]
    assert len(rows) == len(set(rows)) == count_gnfm(n, largest).n_measurement_models


def test_what_is_listed_is_a_factor_model_and_a_class():
    listed = set(gnfm_classes(names(6)))
    assert len(listed) == count_gnfm(6).n_classes == 458
    for cpdag in sorted(listed, key=hash)[::9]:
        assert um.graphs.is_gnfm(cpdag.member())
        assert um.CPDAG(cpdag.variables, cpdag.adjacency, cpdag.latent_groups) == cpdag.member().cpdag()


def test_latent_classes_are_the_markov_classes():
    assert [len(latent_classes(m)) for m in (1, 2, 3, 4)] == [1, 2, 11, 185]
    for m in (3, 4):
        listed = latent_classes(m)
        n_edges = listed.adjacent.sum(axis=(1, 2)) // 2
        member_of = {member.tobytes(): i for i, members in enumerate(classes(m)) for member in members}
        directed = ((listed.children[:, :, None] >> np.arange(m)) & 1).astype(np.uint8)
        assert len({member_of[A.tobytes()] for A in directed}) == len(listed)
        assert n_edges[0] == m * (m - 1) // 2
        for c in range(len(listed)):
            above = listed.supers[listed.first_super[c] : listed.first_super[c + 1]]
            assert (n_edges[above] == n_edges[c] + 1).all()
            assert len(above) or c == 0


def test_counts_beside_the_papers():
    ten, eleven = count_gnfm(10), count_gnfm(11)
    assert ten.n_graphs > ten.paper == 3e8
    assert 2.7e10 < eleven.n_graphs < 2.8e10  # the paper prints 2e13
    assert eleven.paper == 2e13
    assert count_gnfm(9).paper is None
    assert "(the paper: 2e+13 graphs)" in str(eleven)


def test_counts_refuse_what_they_do_not_know():
    with pytest.raises(um.UnmeasuredError, match="known for 1 to 21 variables; got 22"):
        count_gnfm(22)
    with pytest.raises(um.UnmeasuredError, match="max_group_size must be a whole number from 1; got 0"):
        count_gnfm(6, 0)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_dimension_of_every_class(n):
    for measurement in all_measurements(n):
        graphs = latent_classes(measurement.n_groups).children.tolist()
        expected = [um.dimension(measurement.graph_along(adjacency_of(graph))) for graph in graphs]
        assert dimensions(measurement).tolist() == expected, measurement


def test_dimension_of_some_classes_with_more_variables():
    rng = np.random.default_rng(0)
    for n, m in [(7, 2), (7, 3), (8, 1), (8, 2), (8, 3), (8, 4)]:
        table = measurement_table(n, m, n // 2, names(n))
        for row in rng.integers(len(table), size=5).tolist():
            c = int(rng.integers(len(latent_classes(m))))
            dag = table[row].graph_along(adjacency_of(latent_classes(m).children[c].tolist()))
            assert dimensions(table[row])[c] == um.dimension(dag)


def test_latents_are_not_called_like_observed_variables():
    cpdag = FactorModel(("L1", "L2", "a", "b"), (1, 1), (1, 1, 2, 2)).cpdag
    assert cpdag.latents == ("latent 1", "latent 2")
    assert cpdag.observed == ("L1", "L2", "a", "b")


# ------------------------------------------------------------------------------------------------ the bound


def ranks_of(measurement, c):
    """The generic rank of Cov(A, B) in a class for all disjoint A and B, from the table of cuts."""
    n, listed = len(measurement.parents), latent_classes(measurement.n_groups)
    cuts = cut_sizes(listed.children[c], listed.orders[c], np.array(measurement.sizes))
    every = np.arange(len(cuts))
    outside = np.array(measurement.parents)[:, None] & ~every != 0  # (n, 2^m)
    return {
        (A, B): int((cuts + outside[list(A)].sum(axis=0)[:, None] + outside[list(B)].sum(axis=0)[None, :]).min())
        for A, B in disjoint_pairs(n)
    }


def disjoint_pairs(n):
    subsets = [s for size in range(1, n) for s in combinations(range(n), size)]
    return [(A, B) for A, B in combinations(subsets, 2) if not set(A) & set(B)]


@pytest.mark.parametrize(("n", "m"), [(5, 1), (5, 2), (6, 2), (6, 3), (7, 3), (8, 4)])
def test_ranks_are_those_of_trek_separation(n, m):
    rng = np.random.default_rng(n * m)
    table = measurement_table(n, m, 2, names(n))
    for row in rng.integers(len(table), size=3).tolist():
        c = int(rng.integers(len(latent_classes(m))))
        dag = table[row].graph_along(adjacency_of(latent_classes(m).children[c].tolist()))
        ranks = ranks_of(table[row], c)
        for k in rng.integers(len(ranks), size=40):
            A, B = list(ranks)[k]
            assert ranks[A, B] == generic_rank(dag, [names(n)[x] for x in A], [names(n)[x] for x in B])


@pytest.mark.parametrize("n", [4, 5])
def test_no_two_classes_have_the_same_ranks(n):
    seen = set()
    for measurement in all_measurements(n):
        for c in range(len(latent_classes(measurement.n_groups))):
            seen.add(tuple(ranks_of(measurement, c).values()))
    assert len(seen) == count_gnfm(n).n_classes


def random_corr(rng, n):
    A = rng.normal(size=(n, 2 * n))
    S = A @ A.T
    sd = np.sqrt(np.diag(S))
    return S / np.outer(sd, sd)


def test_the_table_agrees_with_the_rank_likelihood():
    S = random_corr(np.random.default_rng(1), 6)
    table = RankTable.of(S)
    for A in range(1, 63):
        subset = [x for x in range(6) if A >> x & 1]
        for k in range(3):
            pair = table.code[A] + 2 * table.code[63 ^ A]
            assert table.loss[pair, k] == pytest.approx(rank_shortfall(S, subset, k), abs=1e-10)
    assert table.log_det[0b101] == pytest.approx(math.log(1 - S[0, 2] ** 2))


def bounds_and_shortfalls(sample):
    """For every class its bound and the shortfall of its fit, per sample."""
    table, bounds, dags = RankTable.of(sample.corr), [], []
    for measurement in all_measurements(len(sample.names), observed=sample.names):
        listed = latent_classes(measurement.n_groups)
        bounds += class_bounds(
            np.array(measurement.parents), np.array(measurement.sizes), listed.children, listed.orders,
            listed.first_super, listed.supers, table.code, table.loss, np.full(len(listed), np.inf),
        ).tolist()  # fmt: skip
        dags += [measurement.graph_along(adjacency_of(graph)) for graph in listed.children.tolist()]
    fits = um.fit_many(dags, sample, n_threads=1)
    return np.array(bounds), np.array([0.5 * fit.solution.discrepancy for fit in fits])


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_never_lies(seed):
    """No class fits better than its bound says; here on data no class was made for."""
    sample = um.Sample.from_cov(random_corr(np.random.default_rng(seed), 5), 500, names(5))
    bounds, shortfalls = bounds_and_shortfalls(sample)
    assert (bounds <= shortfalls + 1e-9).all()
    # It says something of every class but {L1, L2} over all five, whose one constraint, a pentad, is not a rank.
    assert (bounds > 0.001).sum() == len(bounds) - 1


def test_the_bound_is_close_where_a_factor_model_made_the_data():
    truth = um.simulate.random_gnfm(group_sizes=(1, 1), n_observed=6, n_common_children=1, rng=5)
    sample = um.Sample.from_rows(um.simulate.sample(um.simulate.paper_parameters(truth, rng=5), 1000, rng=5))
    bounds, shortfalls = bounds_and_shortfalls(sample)
    assert (bounds <= shortfalls + 1e-9).all()
    wrong = shortfalls > 0.05
    assert np.median(bounds[wrong] / shortfalls[wrong]) > 0.6


def test_the_criterion_and_its_allowance_agree():
    for n in (1000, math.inf):
        sample = um.Sample.from_cov(random_corr(np.random.default_rng(2), 4), n)
        criterion = Criterion.of(sample, 1.0)
        threshold = float(criterion.scores(0.03, 9))
        allowed = criterion.allowances(np.array([8, 9, 10]), threshold)
        assert criterion.scores(allowed, np.array([8, 9, 10])) == pytest.approx(threshold, rel=1e-9)
        assert criterion.allowances(np.array([9]), float(criterion.scores(0.0, 8))) < 0


# ------------------------------------------------------------------------------------------------ the estimator


def one_factor_rows(n, n_rows, seed=0):
    truth = um.simulate.random_gnfm(group_sizes=(1,), n_observed=n, rng=seed)
    return um.simulate.sample(um.simulate.realistic_parameters(truth, rng=seed), n_rows, rng=seed)


def test_options_are_only_stored():
    search = ExactSearch(penalty=2.0, max_group_size=1, time_limit=5.0, n_best=3, n_jobs=2, verbose=True)
    assert vars(search) == {
        "criterion": "bic", "penalty": 2.0, "max_group_size": 1, "time_limit": 5.0, "n_best": 3, "n_jobs": 2,
        "verbose": True, "cor": "auto", "missing": "ml",
    }  # fmt: skip
    with pytest.raises(TypeError):
        ExactSearch("bic")


def test_what_a_search_leaves_behind():
    rows = one_factor_rows(5, 500)
    search = ExactSearch(n_best=4).fit(rows)
    assert search.proven_
    assert search.remarks_ == ()
    assert search.latent_groups_ == search.graph_.latent_groups == (("L1",),)
    assert search.graph_.observed == tuple(rows.columns) == search.sample_.names
    assert search.score_ == pytest.approx(search.sem_.loglik - 0.5 * math.log(500) * search.sem_.dimension)
    assert len(search.runners_up_) == 3
    for runner in search.runners_up_:
        fit = um.fit(runner.graph, rows)
        assert runner.dimension == fit.dimension
        assert runner.score == pytest.approx(-0.5 * fit.bic, abs=1e-4)
        assert runner.difference == pytest.approx(search.score_ - runner.score)
        assert runner.difference >= 0
    assert search.n_classes_ == 52 == search.n_fitted_ + search.n_bounded_
    assert search.trace_[-1].n_open == 0
    assert "classes fitted" in str(search.trace_[-1])


def test_rows_and_their_covariance_give_the_same():
    rows = one_factor_rows(5, 300)
    by_rows, by_cov = ExactSearch().fit(rows), ExactSearch(n_jobs=2).fit_cov(rows.cov(), 300)
    assert by_rows.graph_ == by_cov.graph_
    assert by_rows.score_ == pytest.approx(by_cov.score_)


@pytest.mark.parametrize(("n", "n_classes"), [(2, 1), (3, 1)])
def test_the_smallest_cases(n, n_classes):
    search = ExactSearch().fit_cov(random_corr(np.random.default_rng(0), n), 100)
    assert (search.n_classes_, search.runners_up_, search.latent_groups_) == (n_classes, [], (("L1",),))
    assert any("saturated" in remark for remark in search.remarks_)


def test_group_size_is_limited():
    truth = um.simulate.random_gnfm(group_sizes=(2,), n_observed=5, rng=0)
    cov = um.simulate.paper_parameters(truth, rng=0).cov()
    free, limited = ExactSearch().fit_cov(cov, 1000), ExactSearch(max_group_size=1).fit_cov(cov, 1000)
    assert free.latent_groups_ == (("L1", "L2"),)
    assert all(len(group) == 1 for group in limited.latent_groups_)
    assert limited.n_classes_ == 51


def test_a_time_limit_ends_the_search_and_says_so():
    search = ExactSearch(time_limit=1e-6)
    with pytest.warns(um.UnmeasuredWarning, match="not complete: the time limit of 1e-06 s was reached"):
        search.fit(one_factor_rows(7, 200))
    assert not search.proven_
    assert search.n_fitted_ + search.n_bounded_ < search.n_classes_
    assert "classes are left and could score up to" in search.remarks_[0]
    assert search.sem_.converged


def test_a_time_limit_is_kept_while_the_tables_of_all_models_are_made(monkeypatch):
    """Which takes seconds with ten variables; clocks count processor time, whatever else the machine does."""
    monkeypatch.setattr(exact.time, "monotonic", exact.time.process_time)
    rows = one_factor_rows(10, 200)
    began = exact.time.process_time()
    with pytest.raises(um.SearchStopped, match=r"limit of 0\.01 s, before a first model was fitted"):
        ExactSearch(time_limit=0.01).fit(rows)
    assert exact.time.process_time() - began < 2.01


def interrupt_at(monkeypatch, call):
    calls = []

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return um.fit_many(*args, **kwargs)

    monkeypatch.setattr(exact, "fit_many", interrupted)


def test_an_interrupt_keeps_the_best_so_far(monkeypatch):
    rows = one_factor_rows(7, 200)
    interrupt_at(monkeypatch, call=3)
    with pytest.warns(um.UnmeasuredWarning, match="not complete: it was interrupted"):
        search = ExactSearch().fit(rows)
    assert not search.proven_
    assert len(search.runners_up_) == 9
    assert search.n_fitted_ + search.n_bounded_ < search.n_classes_


def test_an_interrupt_before_the_first_fit_is_passed_on(monkeypatch):
    interrupt_at(monkeypatch, call=1)
    with pytest.raises(KeyboardInterrupt):
        ExactSearch().fit(one_factor_rows(5, 200))


def test_progress_is_shown_and_arrives(capsys):
    ExactSearch(verbose=True).fit(one_factor_rows(5, 200))
    assert "exact search: 100%" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "aic"}, "criterion must be one of 'bic'; got 'aic'"),
        ({"penalty": 0.0}, "penalty must be a positive number; got 0.0"),
        ({"time_limit": -1.0}, "time_limit must be a positive number of seconds or None; got -1.0"),
        ({"n_best": 0}, "n_best must be a whole number from 1; got 0"),
        ({"n_jobs": 0}, "n_jobs must be a number of threads from 1, or -1 for all cores; got 0"),
        ({"max_group_size": 1.5}, "max_group_size must be a whole number from 1 or None; got 1.5"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(um.UnmeasuredError, match=message):
        ExactSearch(**options).fit_cov(np.eye(4), 100)


def test_too_few_and_too_many_variables():
    with pytest.raises(um.DataError, match=r"needs two observed variables that measure it \(Def. 2\); got 1"):
        ExactSearch().fit_cov([[1.0]], 100)
    with pytest.raises(um.UnmeasuredError, match=r"11 observed variables have 8.9e\+09 classes.*Use LGES"):
        ExactSearch().fit_cov(np.eye(11), 100)
    with pytest.raises(um.UnmeasuredError, match=r"Got 30 variables, too many.*takes 10 variables at most"):
        ExactSearch().fit_cov(np.eye(30), 100)
