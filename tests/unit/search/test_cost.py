"""What a search is said to take, against what it takes."""

from __future__ import annotations

import time

import numpy as np
import pytest

import unmeasured as um
from unmeasured.search.cost import seconds_on_the_curve


def test_a_search_takes_about_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within ten times either way, in processor time: what else the machine does is not the search's."""
    monkeypatch.setattr(time, "perf_counter", time.process_time)
    rng = np.random.default_rng(4)
    dag = um.simulate.random_gnfm(n_latents=3, n_observed=12, rng=rng)
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng), 500, rng=rng)
    um.LGES().fit(rows)  # compiled by now
    cost = um.estimate_cost(rows)
    began = time.perf_counter()
    um.LGES().fit(rows)
    assert cost.seconds / 10 < time.perf_counter() - began < 10 * cost.seconds


def test_many_rows_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unmeasured.search.cost.slowness", lambda: 1.0)  # two measurements of a busy machine differ
    few, many = (um.estimate_cost(cov=np.eye(20), n_samples=n).seconds for n in (1000, 20_000))
    assert many > 2 * few


def test_the_curve_goes_on_beyond_its_end() -> None:
    """With the exponent of its last points, which is below three."""
    beyond = seconds_on_the_curve(600) / seconds_on_the_curve(300)
    assert 2.0 < beyond < 8.0


def test_memory_grows_with_the_number_of_variables() -> None:
    small, large = (um.estimate_cost(cov=np.eye(n), n_samples=1000) for n in (10, 300))
    assert 200 < small.memory < 400 < large.memory < 3000
