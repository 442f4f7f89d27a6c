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
from unmeasured.search.clock import Clock
from unmeasured.search.model import FactorModel
from unmeasured.search.pieces import first_factors
from unmeasured.sem.factors import fit_factors
from unmeasured.sem.parameters import pattern_of
from unmeasured.sem.solve import Problem, solve


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
    assert len(search.groups_) == 3
    assert len(search.graph_.undirected_edges) == 3  # edges between latents were not looked at


@pytest.mark.parametrize("limit", [0.05, 0.5])
def test_a_limit_is_kept_and_gives_a_model(questionnaire, limit):
    um.LGES(time_limit=limit).fit(questionnaire)  # what has to be loaded is loaded
    began = time.monotonic()
    search = um.LGES(time_limit=limit).fit(questionnaire)
    assert time.monotonic() - began < limit + 2.0
    assert search.stopped_.startswith(f"Stopped at the time limit of {limit:g} s")
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
    monkeypatch.setattr("unmeasured.sem.solve._SLICE", 1e-9)
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
    assert clock.is_over
    assert clock.stopped == "Stopped at the time limit of 10 s"
    assert not Clock(10.0, time.monotonic() - 5.0).is_over


def test_a_huge_group_size_is_that_of_the_variables():
    truth = um.simulate.random_gnfm(n_latents=2, n_observed=6, rng=1)
    rows = um.simulate.sample(truth, 200, parameters="realistic", rng=2)
    largest, all_there_are = um.LGES(max_group_size=10**9).fit(rows), um.LGES(max_group_size=None).fit(rows)
    assert largest.graph_ == all_there_are.graph_
    assert um.LGES(criterion="delta", max_group_size=10**9).fit(rows).graph_.observed == tuple(rows.columns)
    assert um.ExactSearch(max_group_size=10**9).fit(rows).proven_
