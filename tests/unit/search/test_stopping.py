"""Ctrl-C and time limits: the best model so far, or the truth that there is none yet."""

from __future__ import annotations

import math
import os
import signal
import threading
import time

import numpy as np
import pytest

import unmeasured as um
from unmeasured.errors import Stopped
from unmeasured.models.exploratory import dense_factors, ml_discrepancy
from unmeasured.models.factors import fit_factors
from unmeasured.models.parameters import pattern_of
from unmeasured.models.solve import Problem, solve
from unmeasured.search.clock import Clock, Timing, counted_from, fit_under_way
from unmeasured.search.close_fit.replicability import partitions
from unmeasured.search.close_fit.tolerance import no_model_holds
from unmeasured.search.latent_graph.edges import climbed_graph
from unmeasured.search.measurement.subproblems import first_factors
from unmeasured.search.model import FactorModel
from unmeasured.search.score import GroupBic


@pytest.fixture(scope="module")
def questionnaire():
    """50 variables, which are worked on in pieces."""
    truth = um.simulate.random_gnfm(n_latents=10, n_observed=50, n_common_children=2, rng=1)
    return um.simulate.sample(truth, 1000, parameters="realistic", rng=2)


@pytest.fixture(autouse=True)
def usual_signals():
    """Ctrl-C as Python has it, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Ending:
    """A check that ends the work at its n-th call."""

    def __init__(self, n):
        self.left = n

    def __call__(self):
        self.left -= 1
        if self.left < 0:
            raise Stopped


def says_stopped(search):
    assert search.remarks_[0] == search.stopped_ == search.result_.stopped
    assert "best model found so far, not the end of the search" in search.stopped_
    assert search.result_.summary().startswith(search.stopped_[:60])
    assert not any("No latent variables" in remark or "Independent of all" in remark for remark in search.remarks_)


def test_a_signal_ends_a_search_with_its_best_model(questionnaire, monkeypatch):
    """A real SIGINT, while the measurement model is searched."""
    check, calls = Clock.check_measuring, []

    def interrupted(self):
        calls.append(1)
        if len(calls) == 200:
            os.kill(os.getpid(), signal.SIGINT)
        check(self)

    monkeypatch.setattr(Clock, "check_measuring", interrupted)
    search = um.LGES().fit(questionnaire)
    assert search.stopped_.startswith("Interrupted after")
    says_stopped(search)
    assert search.graph_.latents
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_before_a_first_model_nothing_is_claimed(questionnaire, monkeypatch):
    def interrupted(self):
        self.interrupt()
        raise Stopped

    monkeypatch.setattr(Clock, "check_first_model", interrupted)
    with pytest.raises(um.SearchStopped, match=r"Interrupted after .* before a first model was found") as caught:
        um.LGES().fit(questionnaire)
    assert caught.value.is_interrupted
    assert "not known yet" in str(caught.value)


def test_an_interrupted_search_of_the_paper_is_no_answer_that_there_are_none(monkeypatch):
    monkeypatch.setattr(Clock, "check", lambda self: (self.interrupt(), Ending(0)()))
    with pytest.raises(um.SearchStopped, match="before a first model was found"):
        um.LGES(criterion="delta").fit_cov(np.eye(6) * 0.5 + 0.5, 100)


def test_the_paper_s_search_keeps_the_groups_it_has(monkeypatch):
    truth = um.simulate.random_gnfm(group_sizes=[1, 1, 1], n_observed=9, rng=1)
    parameters = um.simulate.realistic_parameters(truth, 1)

    def stopped(phase):
        phase.score.check.__self__.interrupt()
        raise Stopped

    monkeypatch.setattr("unmeasured.search.paper.phase2._delete", stopped)
    search = um.LGES(criterion="delta").fit_cov(parameters.cov(), math.inf, names=parameters.observed)
    says_stopped(search)
    assert len(search.latent_groups_) == 3
    assert len(search.graph_.undirected_edges) == 3  # edges between latents were not looked at


@pytest.fixture
def own_time(monkeypatch):
    """Clocks that count the processor time of this process: what others do on the machine is not its fault."""
    monkeypatch.setattr(time, "monotonic", time.process_time)


@pytest.mark.parametrize("limit", [0.05, 0.2])
def test_a_limit_is_kept_and_gives_a_model(questionnaire, limit, own_time):
    um.LGES(time_limit=limit).fit(questionnaire)  # what has to be loaded is loaded
    began = time.monotonic()
    search = um.LGES(time_limit=limit).fit(questionnaire)
    assert time.monotonic() - began < limit + 2.0
    assert search.stopped_.startswith(f"Stopped at the time limit of {limit:g} s")
    says_stopped(search)


@pytest.mark.parametrize("limit", [0.5, 2.0])
def test_a_limit_is_kept_where_no_model_holds(limit, own_time):
    """Partitions in replicates take longest there: minutes without a limit."""
    parameters = um.simulate.minor_factors(n_factors=9, n_items=10, rmsea=0.05, rng=1)
    rows = um.simulate.sample(parameters, 2000, rng=2)
    search = um.LGES(time_limit=limit)
    began = time.monotonic()
    search.fit(rows)
    assert time.monotonic() - began < limit + 2.0
    says_stopped(search)


def test_a_limit_that_is_not_reached_changes_nothing():
    truth = um.simulate.random_gnfm(n_latents=3, n_observed=10, rng=5)
    rows = um.simulate.sample(truth, 300, parameters="realistic", rng=6)
    free, limited = um.LGES().fit(rows), um.LGES(time_limit=600).fit(rows)
    assert free.graph_ == limited.graph_
    assert free.sem_.bic == limited.sem_.bic
    assert (limited.stopped_, free.stopped_) == ("", "")


def test_steps_taken_a_few_at_a_time_are_the_same_steps(monkeypatch):
    truth = um.simulate.random_gnfm(n_latents=3, n_observed=12, rng=3)
    sample = um.as_sample(um.simulate.sample(truth, 200, rng=4))
    problem = Problem.of(pattern_of(truth), sample)
    (whole,) = solve([problem], [problem.unknown])
    monkeypatch.setattr("unmeasured.models.solve._SLICE", 1e-9)
    (sliced,) = solve([problem], [problem.unknown])
    assert sliced.steps == whole.steps
    np.testing.assert_array_equal(sliced.x, whole.x)
    np.testing.assert_array_equal(sliced.history, whole.history)
    # Where the time is over the fit is handed back as it is, if that is wanted.
    (partial,) = solve([problem], [problem.unknown], check=Ending(3), partial=True)
    assert 0 < partial.steps < whole.steps
    with pytest.raises(Stopped):
        solve([problem], [problem.unknown], check=Ending(3))


def test_em_hands_back_what_it_has():
    S = np.full((6, 6), 0.49) + 0.51 * np.eye(6)
    model = FactorModel(tuple("abcdef"), (1,), (1,) * 6)
    start, loads = first_factors(S, model), np.ones((1, 6), dtype=bool)
    _, early = fit_factors(S, loads, start, tolerance=1e-12, check=Ending(1))
    _, late = fit_factors(S, loads, start, tolerance=1e-12)
    assert late < early < math.inf


def test_factor_analyses_look_at_the_clock():
    """Each of them, at every step: with hundreds of items one of them takes seconds."""
    R = np.full((30, 30), 0.3) + 0.7 * np.eye(30)
    R[:15, :15] += 0.2 * (1 - np.eye(15))
    calls = Ending(10**6)
    whole, _ = dense_factors(R, 3, check=calls)
    n_calls = 10**6 - calls.left
    assert n_calls > 5
    for n in (0, n_calls // 2, n_calls - 1):
        with pytest.raises(Stopped):
            dense_factors(R, 3, check=Ending(n))
    np.testing.assert_array_equal(dense_factors(R, 3, check=Ending(n_calls))[0], whole)
    with pytest.raises(Stopped):
        ml_discrepancy(R, 3, Ending(2))
    assert not no_model_holds(um.as_sample(cov=R, n_samples=10**6), Ending(0))  # not known: the exact search decides


def test_partitions_found_before_the_end_count():
    R = np.kron(np.eye(4), np.full((5, 5), 0.5)) + 0.2
    np.fill_diagonal(R, 1.0)
    everything, calls = partitions(R, 400), Ending(10**6)
    partitions(R, 400, calls, numbers=[2, 3])
    some = partitions(R, 400, Ending(10**6 - calls.left))
    assert [one.n_factors for one in some] == [2, 3]
    assert [one.agreement for one in some] == [one.agreement for one in everything[:2]]
    with pytest.raises(Stopped):
        partitions(R, 400, Ending(0), numbers=[2])


def test_an_answer_that_was_not_compared_to_the_end_says_so(monkeypatch):
    """The exact answer is rejected, and the time is over while the tolerant one is sought."""
    parameters = um.simulate.minor_factors(n_factors=3, n_items=4, rmsea=0.05, rng=1)
    rows = um.simulate.sample(parameters, 3000, rng=2)
    monkeypatch.setattr("unmeasured.search.close_fit.tolerance.no_model_holds", lambda *_: False)

    def late(tolerant, check):
        tolerant.clock._is_late = True
        tolerant.clock._said = 5.0
        raise Stopped

    monkeypatch.setattr("unmeasured.search.close_fit.tolerance.Tolerant.discover", late)
    search = um.LGES().fit(rows)
    assert search.stopped_.startswith("Stopped at the time limit of 5 s")
    says_stopped(search)


def test_the_graph_so_far_is_that_of_the_latents():
    """Where the time is over the better of the edges so far and of a rough graph is taken, whichever it is."""
    Phi = 0.7 ** np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    score = GroupBic(Phi, (1,) * 12, 1000.0, 3.45)
    early, late = climbed_graph(score, check=Ending(16)), climbed_graph(score)
    assert 0 < early.sum() < late.sum()
    assert score.total(np.zeros((12, 12), dtype=np.uint8)) < score.total(early) < score.total(late)


def test_the_moments_of_rows_with_missing_values_keep_a_limit():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 12)) + rng.normal(size=(300, 1))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    whole, early = um.as_sample(rows), um.as_sample(rows, check=Ending(3))
    assert any("stopped at the time limit after 4 steps" in remark for remark in early.remarks)
    assert not any("time limit" in remark for remark in whole.remarks)
    assert np.abs(early.corr - whole.corr).max() < 0.2
    # A search gives them a part of its limit.
    made = []
    for spent in (400, 100):
        with counted_from(Timing(time.monotonic() - spent)), fit_under_way():
            made.append(um.LGES(time_limit=1000).make_sample(rows))
    late, soon = made
    assert any("stopped at the time limit after 1 step," in remark for remark in late.remarks)
    assert soon.remarks == whole.remarks


def test_the_clock_listens_to_one_signal_and_only_in_the_main_thread():
    clock = Clock(None)
    with clock.listening():
        os.kill(os.getpid(), signal.SIGINT)
        assert clock.is_interrupted
        with pytest.raises(KeyboardInterrupt):  # a second one ends all
            signal.raise_signal(signal.SIGINT)
    seen = []

    def elsewhere():
        with Clock(None).listening():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_reserved_seconds_are_left():
    clock = Clock(10.0, time.monotonic() - 5.0, reserved=6.0)
    with pytest.raises(Stopped):
        clock.check()
    assert clock.stopped == "Stopped at the time limit of 10 s"
    Clock(10.0, time.monotonic() - 5.0).check()


def test_a_huge_group_size_is_that_of_the_variables():
    truth = um.simulate.random_gnfm(n_latents=2, n_observed=6, rng=1)
    rows = um.simulate.sample(truth, 200, parameters="realistic", rng=2)
    largest, all_there_are = um.LGES(max_group_size=10**9).fit(rows), um.LGES(max_group_size=None).fit(rows)
    assert largest.graph_ == all_there_are.graph_
    assert um.LGES(criterion="delta", max_group_size=10**9).fit(rows).graph_.observed == tuple(rows.columns)
    assert um.ExactSearch(max_group_size=10**9).fit(rows).proven_


def test_limits_and_threads_beyond_any_float_are_none():
    rows = np.random.default_rng(0).normal(size=(60, 1)) + np.random.default_rng(1).normal(size=(60, 4))
    assert um.LGES(time_limit=10**400, n_jobs=10**400).fit(rows).stopped_ == ""
