"""Runners-up of a search and the probabilities made of them, against fits of our own asking and exact search."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unmeasured as um
from unmeasured.graphs.outline import Outline, Tally
from unmeasured.search.score import prior


@pytest.fixture(scope="module")
def search() -> um.LGES:
    data = um.datasets.load("multitasking")
    return um.LGES().fit_cov(data.frame(), data.n_samples)


def test_a_runner_up_is_as_far_behind_as_a_fit_of_it_says(search: um.LGES) -> None:
    def bic(graph: um.CPDAG) -> float:
        fit = um.fit(graph, search.sample_)
        n_parents = Outline.of(graph, graph.observed).measures.sum(axis=0).tolist()
        return fit.bic + 2.0 * prior(n_parents, len(graph.latent_groups))

    best = bic(search.graph_)
    assert len(search.runners_up_) > 5
    for runner in search.runners_up_[:6]:
        assert bic(runner.graph) - best == pytest.approx(2.0 * runner.difference, abs=0.1)
        assert um.graphs.is_gnfm(runner.graph.member())


def test_the_table_starts_with_the_best_and_weights_are_those_of_bic(search: um.LGES) -> None:
    table = search.result_.runners_up
    assert table["bic_difference"].is_monotonic_increasing
    assert table["weight"].sum() == pytest.approx(1.0)
    ratio = table["weight"][1] / table["weight"][0]
    assert ratio == pytest.approx(math.exp(-table["bic_difference"][1] / 2.0))
    assert table["n_shared_edges"][0] == table["edges"][0] == len(search.result_.edges)


def test_probabilities_are_sums_of_weights(search: um.LGES) -> None:
    result = search.result_
    table = result.edge_probabilities
    weights = result.runners_up["weight"]
    everyone = [result.graph, *(runner.graph for runner in result.runners)]
    # Error_Number is in all of them beside Error_Letter: no matching is needed to count that.
    together = [Outline.of(graph, result.graph.observed).coassignment for graph in everyone]
    i, j = (result.graph.observed.index(name) for name in ("Error_Number", "Error_Letter"))
    both = sum(w for w, t in zip(weights, together, strict=True) if t[i, j])
    rows = table[table["target"].isin(["Error_Number", "Error_Letter"]) & table["in_graph"]]
    assert rows["probability"].to_numpy() == pytest.approx(both, abs=0.05)
    parts = table[["forward", "backward", "undirected"]].sum(axis=1)
    assert parts.to_numpy() == pytest.approx(table["probability"].to_numpy())


def test_runners_survive_json_and_renaming(search: um.LGES) -> None:
    again = um.Result.from_json(search.result_.to_json())
    assert again.runners_up.equals(search.result_.runners_up)
    renamed = search.result_.rename({"L1": "question"})
    assert "question" in set(renamed.edge_probabilities["source"])


def test_exact_search_agrees_on_who_comes_second() -> None:
    truth = um.simulate.random_gnfm(n_latents=2, n_observed=6, max_group_size=1, rng=4)
    rows = um.simulate.sample(um.simulate.realistic_parameters(truth, rng=4), 300, rng=4)
    exact = um.ExactSearch(max_group_size=1).fit(rows)
    assert exact.result_.runners_up["weight"][0] == pytest.approx(
        1.0 / (1.0 + np.exp([-r.difference for r in exact.runners_up_]).sum())
    )


def test_groups_are_matched_whatever_their_order_and_strangers_are_not() -> None:
    def outline(*rows: str) -> Outline:
        measures = np.array([[x in row for x in "abcdef"] for row in rows])
        return Outline((1,) * len(rows), measures, np.zeros((len(rows),) * 2, np.uint8))

    reference = outline("abc", "def")
    assert outline("ef", "abcd").matched(reference).tolist() == [1, 0]
    assert outline("abcdef").matched(reference).tolist().count(-1) == 1
    assert outline("ad", "be", "cf").matched(reference).tolist() == [-1, -1]
    tally = Tally.of(reference, [outline("ef", "abcd"), outline("ad", "be", "cf")])
    assert tally.loadings[0].tolist() == [0.5, 0.5, 0.5, 0.5, 0, 0]
