"""The benchmark rooms, in versions small enough for every run."""

from __future__ import annotations

import math

import pandas as pd

from benchmarks import engine
from benchmarks.knowledge import Accuracy, Judged, true_groups, worth_of_groups
from benchmarks.peers import _orthogonality, time_ours
from knowledge_oracle import agrees
from unmeasured import simulate
from unmeasured.data import datasets


def test_default_starts_reach_the_best_of_all_starts():
    """The full figures: `python -m benchmarks starts`, 200 models each."""
    for suite, n_models in (("paper", 25), ("realistic", 10)):
        result = engine.default_starts(suite, n_models=n_models, n_starts=6, seed=11)
        assert result.n_reached == n_models, str(result)


def test_a_batch_gives_the_results_of_a_loop():
    result = engine.batch_against_loop(n_fits=40, repeats=1)
    assert result.largest_difference < 1e-6
    assert "times faster" in str(result)


def test_every_published_model_has_a_time_and_a_chi_square():
    data = datasets.load("multitasking")
    for model in data.models.values():
        timing = time_ours(data.frame(), data.n_samples, model, repeats=1)
        assert timing.seconds > 0
        assert math.isfinite(timing.chi2)


def test_absent_programs_are_rows_with_a_reason():
    rows = [
        ("d", "m", "unmeasured", 0.002, 0.003, 10.0, ""),
        ("d", "m", "semopy", 0.4, 0.45, 10.5, ""),
        ("d", "m", "lavaan", math.nan, math.nan, math.nan, "Rscript is not installed"),
    ]
    text = engine.describe_fits(
        pd.DataFrame(rows, columns=["data", "model", "program", "seconds", "whole", "chi2", "failure"])
    )
    assert "semopy takes 200 times as long for the fit (least 200.0, most 200), 150 times from text to chi2" in text
    assert "lavaan, m: Rscript is not installed" in text


def test_semopy_is_told_which_factors_are_orthogonal():
    model = next(m for m in datasets.load("multitasking").models.values() if not m.correlate_exogenous)
    assert _orthogonality(model) == []  # a chain has one exogenous latent
    model = next(m for m in datasets.load("big_five").models.values() if not m.correlate_exogenous)
    assert len(_orthogonality(model)) == 10


def test_true_groups_are_those_of_the_truth():
    for dag in simulate.paper_suite():
        assert agrees(true_groups(dag), dag.cpdag())


def test_what_true_groups_are_worth():
    """The full figures: `python -m benchmarks knowledge`."""
    without, given = worth_of_groups(n_graphs=1)
    assert given.runs[0].f1 >= without.runs[0].f1
    runs = (Judged(0.8, 1, 2, 2), Judged(1.0, 0, 0, 0), Judged(0.6, 3, 4, 5))
    assert str(Accuracy("two", runs)).startswith(
        "two: F1 over all edges 0.800, over edges between latents 0.722 (edges of all runs together 0.615); 3 runs"
    )
