"""LGES with the paper's rule, from the outside: results, pruning, trace, mistakes."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.search.model import latent_names
from unmeasured.search.paper.operators import DeleteLX
from unmeasured.search.paper.phase1 import disjoint_sets
from unmeasured.search.paper.state import initial_state
from unmeasured.search.score import default_delta


def sample_of(seed, n=500, **options):
    truth = um.simulate.random_gnfm(n_latents=3, n_observed=9, rng=seed, **options)
    return truth, um.simulate.sample(truth, n, rng=seed + 1, parameters="realistic")


@pytest.mark.parametrize("seed", range(6))
def test_pruning_changes_the_time_and_nothing_else(seed):
    _, rows = sample_of(seed, max_group_size=2)
    pruned = um.LGES(criterion="delta").fit(rows)
    full = um.LGES(criterion="delta", prune=False).fit(rows)
    assert pruned.graph_ == full.graph_
    assert [s.what for s in pruned.trace_.accepted()] == [s.what for s in full.trace_.accepted()]
    assert sum(s.n_fitted for s in pruned.trace_) < sum(s.n_fitted for s in full.trace_)


def test_the_number_of_threads_changes_nothing():
    _, rows = sample_of(3)
    one, two = (um.LGES(criterion="delta", n_jobs=n).fit(rows) for n in (1, 2))
    assert one.graph_ == two.graph_
    assert one.trace_ == two.trace_


def test_the_trace_reads_as_text_and_as_a_table():
    _, rows = sample_of(1)
    model = um.LGES(criterion="delta").fit(rows)
    table = model.trace_.to_frame()
    assert len(table) == len(model.trace_)
    assert {"phase", "what", "n_bounded", "n_fitted", "accepted", "reason"} <= set(table.columns)
    text = str(model.trace_)
    assert "Phase 1, groups of 1" in text
    assert "the score drops by" in text
    for step in model.trace_:
        assert step.accepted == (step.score_before - step.score_after <= step.tolerance) or "groups" in step.phase


def test_a_result_is_a_class_a_fit_and_groups():
    truth, rows = sample_of(2, n=5000)
    model = um.LGES(criterion="delta").fit(rows)
    assert isinstance(model.graph_, um.CPDAG)
    assert model.latent_groups_ == model.graph_.latent_groups
    assert set(model.graph_.observed) == set(truth.observed)
    assert model.sem_.converged
    assert um.graphs.is_gnfm(model.graph_.member()) or model.remarks_


def test_default_delta_is_the_papers():
    assert default_delta(1000) == pytest.approx(0.25 * math.log(1000) / 1000)


def test_initial_state_is_definition_3():
    state = initial_state([f"x{i}" for i in range(7)])
    assert len(state.latents) == 3
    assert state.measures.all()
    assert state.spare == (0, 1, 2)
    cpdag = state.claim((0,)).claim((1,)).claim((2,)).without_spare().cpdag  # all connected, all causing all
    assert len(cpdag.undirected_edges) == 3
    assert len(cpdag.directed_edges) == 21


def test_delete_lx_deletes_what_it_says_and_nothing_else():
    state = initial_state(list("abcdef"))
    move = DeleteLX.keeping(state, (1,), (0, 2))
    assert move.is_valid(state)
    after = move.apply(state)
    assert (state.measures ^ after.measures).sum() == 4
    assert after.measures[1].all()
    assert state.measures.all()  # the state itself is untouched
    assert not DeleteLX((0, 1, 2), (0,)).is_valid(state)
    assert not move.is_valid(after)
    assert move.describe(state) == "a, c caused by L2 alone"


def test_names_of_latents_do_not_clash():
    assert latent_names(["a", "b"], 2) == ("L1", "L2")
    assert latent_names(["L2", "latent 1"], 2) == ("latent cause 1", "latent cause 2")


def test_disjoint_sets_join_what_overlaps():
    assert disjoint_sets([{3, 4}, {0, 1}, {1, 3}, {7, 8}]) == [{0, 1, 3, 4}, {7, 8}]


# ---- what bad input gets -------------------------------------------------------------------------------------


def test_independent_variables_have_no_latents_and_a_reason():
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 6)), columns=list("abcdef"))
    model = um.LGES(criterion="delta").fit(rows)
    assert model.latent_groups_ == ()
    assert model.graph_.latents == ()
    assert model.remarks_[0].startswith("No latent variables were found")


def test_one_independent_variable_is_set_apart_and_named():
    truth, rows = sample_of(4, n=3000)
    rows["noise"] = np.random.default_rng(5).normal(size=len(rows))
    model = um.LGES(criterion="delta").fit(rows)
    assert model.graph_.member().parents("noise") == ()
    assert any("noise" in remark for remark in model.remarks_)
    assert set(model.graph_.observed) == {*truth.observed, "noise"}


def test_everything_loading_on_everything_is_said():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(8, 8))
    model = um.LGES(criterion="delta", max_group_size=2).fit_cov(A @ A.T, math.inf)
    assert any("fits badly (RMSEA" in remark for remark in model.remarks_)
    A = np.random.default_rng(2).normal(size=(8, 8))
    strict = um.LGES(criterion="delta", max_group_size=1).fit_cov(A @ A.T, math.inf)
    assert strict.latent_groups_ == ()
    assert "no set of variables passed as the indicators of a latent" in strict.remarks_[0]
    # Four variables on two latents can have any covariance at all.
    small = um.LGES(criterion="delta").fit_cov((A @ A.T)[:4, :4], math.inf)
    assert any("saturated: it fits any data" in remark for remark in small.remarks_)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: um.LGES(criterion="delta").fit(pd.DataFrame({"a": range(9)})), "at least two observed variables"),
        (lambda: um.LGES(criterion="delta").fit(np.random.default_rng(0).normal(size=(5, 6))), "5 samples are too few"),
        (lambda: um.LGES(criterion="delta", delta=-0.1).fit_cov(np.eye(4), 1000), "delta must be a positive number or None; got -0.1. Leave it out to use 0.25·log(n)/n."),
        (lambda: um.LGES(criterion="delta", delta=math.nan).fit_cov(np.eye(4), 1000), "delta must be a positive number or None; got nan"),
        (lambda: um.LGES(criterion="delta", delta="small").fit_cov(np.eye(4), 1000), "delta must be a positive number or None; got 'small'"),
        (lambda: um.LGES(criterion="delta", max_group_size=0).fit_cov(np.eye(4), 1000), "max_group_size must be a whole number from 1"),
        (lambda: um.LGES(criterion="gamma").fit_cov(np.eye(4), 1000), "criterion must be"),
        (lambda: um.LGES(criterion="delta").fit(np.repeat(np.random.default_rng(0).normal(size=(50, 2)), 2, axis=1)), "perfectly correlated"),
    ],
)  # fmt: skip
def test_mistakes_get_a_sentence(call, words):
    with pytest.raises(um.UnmeasuredError) as caught:
        call()
    assert words in str(caught.value)


# ruff: noqa: E501 (a table of calls and words reads best a row a line)
