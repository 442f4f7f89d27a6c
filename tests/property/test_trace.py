"""What holds of every trace: counts that add up, one unit, scores that never fall, steps that explain themselves."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unmeasured as um
from unmeasured.search.score import prior_of
from unmeasured.search.trace import Recorder


def assert_is_sound(trace):
    for step in trace:
        assert min(step.n_bounded, step.n_fitted, step.n_cached) >= 0
        # Zero where a batch of fits led to several steps: the first has them.
        assert step.n_candidates == step.n_bounded + step.n_fitted + step.n_cached
        assert all(math.isfinite(x) for x in (step.score_before, step.score_after, step.tolerance))
        assert any(character.isdigit() for character in step.reason)
        assert "inf" not in step.reason


def assert_climbs(trace):
    """By extended BIC every step of a trace was accepted, rises by more than it has to, and says why."""
    for step in trace:
        assert step.accepted
        assert step.score_after - step.score_before > step.tolerance > 0
        assert_is_explained(step)


def assert_is_explained(step):
    """The numbers of the reason give the rise."""
    rise = step.score_after - step.score_before
    if edges := re.fullmatch(r"log-likelihood (\S+), (\S+) paths at (\S+) each", step.reason):
        likelihood, n_paths, penalty = map(float, edges.groups())
        assert rise == pytest.approx(likelihood - n_paths * penalty, abs=0.01 + 0.01 * abs(n_paths))
    else:
        told = re.fullmatch(r"the score rises by (\S+), more than (\S+)", step.reason)
        assert [float(x) for x in told.groups()] == pytest.approx([rise, step.tolerance], abs=0.01)


def assert_goes_on(trace):
    """Within a climb a step begins where the last one ended."""
    last = {}
    for step in trace:
        if step.phase in last and re.match("Measurement model, climb|Edges", step.phase):
            assert step.score_before == last[step.phase]
        last[step.phase] = step.score_after


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), n_observed=st.integers(8, 14), n_samples=st.sampled_from([100, 500]))
def test_extended_bic(seed, n_observed, n_samples):
    truth = um.simulate.random_gnfm(group_sizes=[1, 1, 1], n_observed=n_observed, n_common_children=1, rng=seed)
    search = um.LGES(tolerance=0).fit(um.simulate.sample(truth, n_samples, parameters="realistic", rng=seed))
    assert_is_sound(search.trace_)
    assert_climbs(search.trace_)
    assert_goes_on(search.trace_)
    # One unit: the last step of the latent graph has the score of the answer.
    edges = [step for step in search.trace_ if step.phase == "Edges between latents"]
    if edges and search.graph_.latents:
        saturated = -0.5 * search.sem_.chi2
        penalty = 0.5 * math.log(n_samples) * search.sem_.dimension
        expected = saturated - penalty - prior_of(search.graph_)
        assert edges[-1].score_after == pytest.approx(expected, abs=0.05)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000), n_observed=st.integers(6, 9))
def test_the_paper_s_rule(seed, n_observed):
    truth = um.simulate.random_gnfm(n_latents=2, n_observed=n_observed, rng=seed)
    search = um.LGES(criterion="delta").fit(um.simulate.sample(truth, 300, parameters="realistic", rng=seed))
    assert_is_sound(search.trace_)
    assert all(step.tolerance == search.trace_[0].tolerance for step in search.trace_)
    for step in search.trace_:
        if step.phase == "Phase 2":
            assert step.accepted == (step.score_before - step.score_after <= step.tolerance)


def test_many_variables_in_pieces():
    truth = um.simulate.random_gnfm(n_latents=9, n_observed=40, n_common_children=2, rng=3)
    search = um.LGES().fit(um.simulate.sample(truth, 1000, parameters="realistic", rng=4))
    assert_is_sound(search.trace_)
    assert_climbs(search.trace_)
    assert {step.phase.split(",")[0].split()[0] for step in search.trace_} <= {"Whole", "Piece", "Measurement", "Edges"}


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_covariates_and_groups_of_people(seed):
    rng = np.random.default_rng(seed)
    female, f = rng.integers(0, 2, 600), rng.normal(size=(600, 2)) @ np.array([[1.0, 0.5], [0.0, 0.8]])
    items = np.repeat(f, 3, axis=1) + rng.normal(size=(600, 6))
    items[:, 1] += female  # a direct effect
    rows = pd.DataFrame(items, columns=[f"x{j}" for j in range(6)]).assign(female=female)
    trace = um.LGES(covariates=["female"]).fit(rows, groups=np.repeat(["a", "b"], 300)).trace_
    assert_is_sound(trace)
    effects = [step for step in trace if step.phase == "Direct effects"]
    assert [step.what for step in effects] == ["female → x1"]
    assert effects[0].score_after > effects[0].score_before
    assert effects[0].n_candidates == 6
    for phase in ("Groups of people", "Edges between latents"):
        assert all(step.score_after > step.score_before for step in trace if step.phase == phase)


def test_a_recorder_counts_from_where_it_begins():
    class Score:
        n_fitted, n_cached = 7, 2

    steps, score = [], Score()
    recorder = Recorder(steps, score)
    score.n_fitted += 3
    recorder.write("phase", "a move", 1.0, 2.0, "rises by 1", tolerance=0.01)
    recorder.write("phase", "another", 2.0, 3.0, "rises by 1", tolerance=0.01, n_bounded=4)
    assert [(step.n_candidates, step.n_fitted, step.n_cached) for step in steps] == [(3, 3, 0), (4, 0, 0)]
