"""Peers run by causal-learn: right where they are known to be, silent, refused with a reason, absent with advice."""

from __future__ import annotations

import math
import os
import signal
import sys
import warnings
from dataclasses import replace
from importlib import import_module
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from benchmarks import experiment
from benchmarks.attempt import perform
from graphs_zoo import latent_chain, one_factor
from unmeasured.kernels.savings import best_graph, log_dets
from unmeasured.peers import gin
from unmeasured.peers.base import class_of_marks, rows_with_moments

pytest.importorskip("causallearn", reason="an extra: pip install 'unmeasured[peers]'")


def clusters(graph):
    """The sets of indicators of single latents."""
    member = graph.member()
    return sorted(tuple(x for x in graph.observed if latent in member.parents(x)) for latent in graph.latents)


TRIPLES = [("x1", "x2", "x3"), ("x4", "x5", "x6"), ("x7", "x8", "x9")]


# ------------------------------------------------------------------------------------------------------ GIN


@pytest.fixture(scope="module")
def uniform_rows():
    return um.simulate.sample(um.simulate.paper_parameters(latent_chain, rng=2), 400, rng=3, noise="uniform")


def test_gin_mended_finds_the_clusters_of_a_chain(uniform_rows):
    found = um.peers.GIN(test="hsic").fit(uniform_rows)
    assert clusters(found.graph_) == TRIPLES
    # All latents are ordered, so that all are adjacent and the class directs no edge between them.
    assert found.graph_.undirected_edges == (("L1", "L2"), ("L1", "L3"), ("L2", "L3"))


def test_gin_says_so_where_rows_are_normal(uniform_rows):
    assert not any("not normal" in remark for remark in um.peers.GIN(test="hsic").fit(uniform_rows).remarks_)
    parameters = um.simulate.paper_parameters(latent_chain, rng=2)
    normal = um.simulate.sample(parameters, 400, rng=3)
    (remark,) = [
        r for r in um.peers.GIN(test="hsic").fit(normal).result_.remarks if "needs noise that is not normal" in r
    ]
    assert remark.severity.name == "DISTRUST"
    skewed = um.simulate.sample(parameters, 400, rng=3).pipe(np.exp)
    assert not any("not normal" in remark for remark in um.peers.GIN(test="hsic").fit(skewed).remarks_)


def test_gin_as_released_looks_at_the_first_columns_and_mended_at_those_it_means(uniform_rows, monkeypatch):
    library = import_module("causallearn.search.HiddenCausal.GIN.GIN")

    looked: list[int] = []

    def spy(x, y):
        looked.append(int(np.argmax(uniform_rows.corrwith(pd.Series(x[:, 0])))))  # the column itself correlates by one
        return 0.0, 0.0  # dependent: no cluster is ever found

    monkeypatch.setattr(library, "hsic_test_gamma", spy)
    first_pairs = list(combinations(range(9), 2))[:5]
    um.peers.GIN(test="hsic", corrected=False).fit(uniform_rows)
    assert looked[: 5 * 7] == [*range(7)] * 5
    looked.clear()
    um.peers.GIN(test="hsic").fit(uniform_rows)
    assert looked[: 5 * 7] == [j for pair in first_pairs for j in range(9) if j not in pair]


def test_the_mend_leaves_the_library_as_it_was(uniform_rows):
    library = import_module("causallearn.search.HiddenCausal.GIN.GIN")

    before = library.cal_e_with_gin
    um.peers.GIN(test="hsic").fit(uniform_rows.iloc[:60])
    assert library.cal_e_with_gin is before


def test_kernels_that_are_kept_change_no_p_value_and_no_graph(uniform_rows):
    released = import_module("causallearn.utils.KCI.KCI").KCI_UInd
    rows = uniform_rows.iloc[:150].to_numpy()
    kept = gin.keeping(released)(3)
    for i, j in [(0, 1), (1, 0), (0, 4), (5, 1), (2, 2), (0, 1)]:
        expected = released().compute_pvalue(rows[:, [i]], rows[:, [j]])
        np.testing.assert_allclose(kept.compute_pvalue(rows[:, [i]], rows[:, [j]]), expected, rtol=1e-9, atol=1e-12)
    for corrected in (True, False):
        slow = um.peers.GIN(corrected=corrected).fit(uniform_rows.iloc[:150])
        fast = um.peers.GIN(corrected=corrected, cache_kernels=True).fit(uniform_rows.iloc[:150])
        assert fast.graph_ == slow.graph_


def test_rows_that_answer_for_the_set_asked_about():
    rows = np.arange(12.0).reshape(3, 4).view(gin._Meant)
    rows.Z = [3, 1]
    assert rows[:, [0]].tolist() == [[3.0], [7.0], [11.0]]
    assert rows[:, [0, 2]].tolist() == [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]


def test_gin_needs_rows_without_holes():
    with pytest.raises(um.DataError, match="GIN needs rows: a covariance does not tell noise that is not Gaussian"):
        um.peers.GIN().fit_cov(np.full((4, 4), 0.5) + 0.5 * np.eye(4), 100)
    rows = um.simulate.sample(one_factor, 50, rng=0)
    rows.iloc[3, 1] = np.nan
    with pytest.raises(um.DataError, match="GIN needs complete rows; 1 of 50 have missing values"):
        um.peers.GIN().fit(rows)


# ----------------------------------------------------------------------------------------------------- RLCD


@pytest.fixture(scope="module")
def normal_rows():
    return um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 4000, rng=5)


def test_rlcd_finds_a_chain_and_says_no_more_than_data_can(normal_rows):
    found = um.peers.RLCD().fit(normal_rows)
    assert clusters(found.graph_) == TRIPLES
    assert um.metrics.compare(latent_chain, found.graph_).shd == 0
    assert len(found.graph_.undirected_edges) == 2  # causal-learn directs both


def test_rlcd_as_released_leaves_edges_between_observed_variables(normal_rows):
    """They are its answer: the first stage's edges where the second found no latent."""
    found = um.peers.RLCD(observed_are_leaves=False, sparsity=5.0).fit(normal_rows.iloc[:300])
    assert any(a in found.graph_.observed and b in found.graph_.observed for a, b in found.graph_.member().edges)
    assert found.result_.summary()


def test_rlcd_takes_a_covariance_as_well(normal_rows):
    rows, cov = um.peers.RLCD().fit(normal_rows), um.peers.RLCD().fit_cov(normal_rows.cov(), len(normal_rows))
    assert um.metrics.compare(rows.graph_, cov.graph_).shd == 0
    with pytest.raises(um.DataError, match="has none for a population; pass a finite n_samples"):
        um.peers.RLCD().fit_cov(normal_rows.cov(), math.inf)


def test_names_that_begin_with_l_are_not_taken_for_latents(normal_rows):
    renamed = normal_rows.rename(columns={x: f"L{x[1:]}" for x in normal_rows.columns})
    found = um.peers.RLCD().fit(renamed)
    assert found.graph_.observed == tuple(renamed.columns)
    assert len(found.graph_.latents) == 3


def test_rlcd_runs_in_one_process_and_leaves_the_environment_as_it_was(normal_rows, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "3")
    um.peers.RLCD().fit(normal_rows.iloc[:200])
    assert os.environ["LOKY_MAX_CPU_COUNT"] == "3"
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT")
    um.peers.RLCD().fit(normal_rows.iloc[:200])
    assert "LOKY_MAX_CPU_COUNT" not in os.environ


def test_rows_made_up_have_the_moments_they_stand_for(normal_rows):
    holes = normal_rows.mask(np.random.default_rng(0).random(normal_rows.shape) < 0.1)
    sample = um.as_sample(holes)
    made = rows_with_moments(sample)
    assert len(made) == round(sample.n)
    np.testing.assert_allclose(np.cov(made.T, bias=True), sample.cov, atol=1e-10)


# ------------------------------------------------------------------------------------------------------ GES


@pytest.mark.parametrize("seed", range(4))
def test_ges_reaches_the_best_graph_of_all(seed):
    """Dynamic programming over all graphs of seven variables is the oracle; with many samples GES reaches it."""
    dag = um.simulate.random_dag(n_observed=7, density=0.35, rng=seed)
    model = um.simulate.paper_parameters(dag, rng=seed)
    rows = um.simulate.sample(model, 20_000, rng=seed)
    found = um.peers.GES().fit(rows).graph_
    log_det = np.empty(1 << 7)
    log_dets(rows.corr().to_numpy(), np.arange(8), log_det)
    arcs = np.zeros((7, 7), dtype=np.uint8)
    best_graph(log_det, np.ones(7, dtype=np.int64), 20_000.0, 0.5 * math.log(20_000), arcs)
    assert found == um.DAG(found.variables, arcs).cpdag()
    assert found.latents == ()
    assert um.metrics.compare(dag, found).f1 > 0.9


def test_ges_from_a_covariance_and_not_from_a_population():
    cov = pd.DataFrame([[1.0, 0.5], [0.5, 1.0]], index=["a", "b"], columns=["a", "b"])
    assert um.peers.GES().fit_cov(cov, 500).graph_.undirected_edges == (("a", "b"),)
    assert um.peers.GES(penalty=50.0).fit_cov(cov, 500).graph_.undirected_edges == ()
    with pytest.raises(um.DataError, match="GES scores at a sample size and has none for a population"):
        um.peers.GES().fit_cov(cov, math.inf)


# ----------------------------------------------------------------------------------------------------- marks


def test_undirected_edges_without_an_extension_are_turned_along_an_order():
    square = np.zeros((4, 4), dtype=np.uint8)  # an undirected square has no extension without a v-structure
    for a, b in ((0, 1), (1, 2), (2, 3), (3, 0)):
        square[a, b] = square[b, a] = 1
    graph, remarks = class_of_marks(square, list("abcd"), "It")
    assert remarks == ()
    assert {frozenset(edge) for edge in graph.member().edges} == {frozenset(pair) for pair in ("ab", "bc", "cd", "ad")}


def test_a_cycle_keeps_its_skeleton_and_is_remarked_on():
    cycle = np.roll(np.eye(3, dtype=np.uint8), 1, axis=1)
    graph, remarks = class_of_marks(cycle, list("abc"), "It")
    assert len(graph.undirected_edges) == 3
    assert remarks == ("It returned a cycle of directed edges; 1 of them were reversed to have a class.",)


def test_latents_that_share_all_their_edges_are_a_group():
    marks = np.zeros((6, 6), dtype=np.uint8)
    marks[4:, :4] = 1
    graph, _ = class_of_marks(marks, ["L1", "b", "c", "d"], "It")
    assert graph.latent_groups == (("latent 1", "latent 2"),)


# -------------------------------------------------------------------------------- options, silence, absence


@pytest.mark.parametrize(
    ("search", "words"),
    [
        (um.peers.GIN(alpha=1.0), "alpha must be a significance level between 0 and 1; got 1.0"),
        (um.peers.GIN(test="pearson"), "test must be one of 'kci', 'hsic'; got 'pearson'"),
        (um.peers.GIN(corrected="no"), "corrected must be True or False; got 'no'"),
        (um.peers.RLCD(alpha=-1), "alpha must be a significance level between 0 and 1; got -1"),
        (um.peers.RLCD(max_rank=2.5), "max_rank must be a whole number from 1; got 2.5"),
        (um.peers.RLCD(observed_are_leaves=None), "observed_are_leaves must be True or False; got None"),
        (um.peers.RLCD(sparsity=0), "sparsity must be a positive number; got 0. 0.5 is BIC's"),
        (um.peers.GES(penalty=0), "penalty must be a positive number; got 0. 1 is BIC's"),
    ],
)
def test_options_that_make_no_sense_are_refused(search, words):
    with pytest.raises(um.UnmeasuredError, match=words):
        search.fit(um.simulate.sample(one_factor, 50, rng=0))


@pytest.mark.parametrize("search", [um.peers.GIN(), um.peers.RLCD(), um.peers.GES()], ids=["gin", "rlcd", "ges"])
def test_libraries_are_heard_neither_in_print_nor_in_warnings(search, capfd):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        search.fit(um.simulate.sample(one_factor, 80, rng=0))
    assert heard == []
    assert capfd.readouterr() == ("", "")
    assert search.result_.summary()


ABSENT = {
    "GIN": ("causallearn.search.HiddenCausal.GIN.GIN", "causal-learn"),
    "RLCD": ("causallearn.search.HiddenCausal.RLCD", "causal-learn"),
    "GES": ("causallearn.search.ScoreBased.GES", "causal-learn"),
    "TwoStage": ("statsmodels.multivariate.factor_rotation", "statsmodels"),
}


@pytest.mark.parametrize("name", ABSENT)
def test_a_peer_that_is_not_installed_is_a_record_that_says_how_to_get_it(name, monkeypatch):
    module, package = ABSENT[name]
    monkeypatch.setitem(sys.modules, module, None)
    advice = f"{name} needs the package {package}, which is not installed. Run: pip install 'unmeasured[peers]'"
    rows = um.simulate.sample(one_factor, 50, rng=0)
    with pytest.raises(um.UnmeasuredError) as raised:
        getattr(um.peers, name)().fit(rows)
    assert str(raised.value) == advice
    table = experiment.load("no-latents").quickened()
    assignment = next(a for a in table.assignments if a.task.constructor == name)
    assert perform(assignment).outcome.failure == advice


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no alarm")
@pytest.mark.parametrize("label", ["GIN (mended)", "RLCD"])
def test_a_slow_peer_is_stopped_and_leaves_the_library_as_it_was(label):
    library = import_module("causallearn.search.HiddenCausal.GIN.GIN")
    before = library.cal_e_with_gin
    assignment = next(a for a in experiment.load("runtime").assignments if a.task.method == label)
    outcome = perform(replace(assignment, task=replace(assignment.task, time_limit=0.3))).outcome
    assert outcome.failure == "Stopped at the time limit of 0.3 seconds."
    assert outcome.seconds < 60.0  # a ring may be swallowed, and a busy machine is late; to its end it takes minutes
    assert library.cal_e_with_gin is before
    assert "LOKY_MAX_CPU_COUNT" not in os.environ
