"""Stability: the same whatever runs it, resumable, refusing records of others; its consensus is a factor model."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unmeasured as um
from graphs_zoo import latent_chain
from profiles import examples
from unmeasured.graphs.outline import Outline
from unmeasured.validation.replicates.records import Replicate
from unmeasured.validation.replicates.resample import Resampling
from unmeasured.validation.replicates.result import Stability


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 400, rng=5)


@pytest.fixture(scope="module")
def search(rows: pd.DataFrame) -> um.LGES:
    return um.LGES().fit(rows)


@pytest.fixture(scope="module")
def stable(search: um.LGES) -> Stability:
    return um.stability(search, 4, random_state=7)


def same(a: Stability, b: Stability) -> bool:
    return [x.to_record() for x in a.outlines] == [x.to_record() for x in b.outlines]


def test_two_workers_give_what_one_gives(search: um.LGES, stable: Stability) -> None:
    assert same(um.stability(search, 4, random_state=7, n_jobs=2), stable)


def test_records_go_on_where_they_ended(search: um.LGES, stable: Stability, tmp_path) -> None:
    path = tmp_path / "runs" / "records.jsonl"
    um.stability(search, 2, random_state=7, records=path)
    kept = path.read_text()
    path.write_text(kept + '{"replicate": 2, "gro')  # killed while writing
    assert same(um.stability(search, 4, random_state=7, records=path), stable)
    assert path.read_text().startswith(kept)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert um.stability(search, 4, random_state=7, records=path).agreement == stable.agreement
    assert sorted(line["replicate"] for line in lines) == [0, 1, 2, 3]
    assert lines[0]["observed"] == list(search.sample_.names)


def test_records_of_something_else_are_refused(search: um.LGES, rows: pd.DataFrame, tmp_path) -> None:
    path = tmp_path / "records.jsonl"
    um.stability(search, 1, records=path)
    with pytest.raises(um.UnmeasuredError, match=r"holds replicates of something else: 'seed' differ \(line 1\)"):
        um.stability(search, 1, random_state=1, records=path)
    with pytest.raises(um.UnmeasuredError, match="'data'"):
        um.stability(um.LGES().fit(rows[:300]), 1, records=path)
    path.write_text("so long\n")
    with pytest.raises(um.UnmeasuredError, match=r"Line 1 of .* is not a record of a replicate"):
        um.stability(search, 1, records=path)


def test_tables_count_what_was_found(stable: Stability) -> None:
    edges = stable.edges
    assert ((edges["forward"] + edges["backward"] + edges["undirected"]) - edges["frequency"]).abs().max() < 1e-9
    assert stable.n_latents.sum() == pytest.approx(1.0)
    # Counted by hand, without any matching: items of a pure pair share a group as often as the table says.
    a, b = stable.observed[:2]
    by_hand = np.mean([any(row[0] and row[1] for row in outline.measures) for outline in stable.outlines])
    assert stable.coassignment.loc[a, b] == pytest.approx(by_hand)
    assert (stable.items["exact"] <= stable.items["stability"]).all()
    assert (stable.latent_groups["consistency"] <= stable.latent_groups["item_stability"] + 1e-9).all()
    assert "replicates (bootstrap)" in stable.summary()


def test_agreement_is_the_adjusted_rand_index_of_the_headlines() -> None:
    graph = latent_chain.cpdag()
    outline = Outline.of(graph, graph.observed)

    def found(*partitions: tuple[int, ...]) -> Stability:
        replicates = tuple(Replicate(i, outline, 0.0, "", one) for i, one in enumerate(partitions))
        return Stability(graph, graph.observed, "made up", replicates)

    n = len(graph.observed)
    halves, same = tuple(int(j < n // 2) for j in range(n)), tuple(1 - int(j < n // 2) for j in range(n))
    alone = (-1,) * n
    assert found(halves, same).agreement == 1.0
    assert "mean adjusted Rand index of two replicates 1.00\n" in found(halves, same).summary()
    assert found(halves, alone).agreement == 0.0  # one set for each item, by hand: no pair in common beyond chance
    assert "0.00: not stable" in found(halves, alone).summary()
    assert np.isnan(found((), ()).agreement)  # records of before partitions were kept
    assert Stability.from_json(found(halves, same).to_json()).agreement == 1.0


def test_a_wishart_replicate_has_the_moments_of_the_wishart() -> None:
    corr = np.array([[1.0, 0.6, 0.2], [0.6, 1.0, 0.4], [0.2, 0.4, 1.0]])
    draw = Resampling.of(um.as_sample(cov=corr, n_samples=101), "bootstrap")
    drawn = np.array([draw(np.random.default_rng(i)).cov * 101 / 100 for i in range(2000)])
    # The population is the ML covariance, divisor N; Var(S_12) = (s_12^2 + s_11 s_22) / (N - 1).
    population = corr * 100 / 101
    assert drawn.mean(axis=0) == pytest.approx(population, abs=0.012)
    expected = (population**2 + np.outer(np.diag(population), np.diag(population))) / 100
    assert drawn.var(axis=0) == pytest.approx(expected, rel=0.15)


def test_subsamples_are_half_the_rows_and_none_twice(rows: pd.DataFrame) -> None:
    draw = Resampling.of(um.as_sample(rows), "subsample")
    half = draw(np.random.default_rng(1))
    assert half.n == 200
    assert len(np.unique(half.rows, axis=0)) == 200
    assert len(np.unique(Resampling.of(um.as_sample(rows), "bootstrap")(np.random.default_rng(1)).rows, axis=0)) < 300


def test_ordinal_items_and_holes_go_through_the_same_door(rows: pd.DataFrame) -> None:
    cut = rows.apply(lambda x: pd.cut(x, [-np.inf, -0.5, 0.5, np.inf], labels=False)).astype(float)
    sample = um.as_sample(cut, cor="auto")
    drawn = Resampling.of(sample, "bootstrap")(np.random.default_rng(0))
    assert drawn.kinds == sample.kinds == ("ordinal",) * len(rows.columns)
    holed = rows.mask(np.random.default_rng(0).random(rows.shape) < 0.05)
    pairwise = um.as_sample(holed, missing="pairwise")
    assert Resampling.of(pairwise, "bootstrap", "pairwise")(np.random.default_rng(0)).n < 400
    with pytest.raises(um.DataError, match="not treated by missing='ml'"):
        Resampling.of(pairwise, "bootstrap", "ml")


def test_what_cannot_be_asked_is_refused(search: um.LGES) -> None:
    data = um.datasets.load("multitasking")
    matrix = um.LGES().fit_cov(data.frame(), data.n_samples)
    with pytest.raises(um.DataError, match="no rows to take subsamples of"):
        um.stability(matrix, 2, method="subsample")
    with pytest.raises(um.UnmeasuredError, match="method must be one of 'bootstrap'"):
        um.stability(search, 2, method="jackknife")
    with pytest.raises(um.UnmeasuredError, match="n_replicates must be a whole number from 1; got 0"):
        um.stability(search, 0)
    with pytest.raises(um.UnmeasuredError, match="not fitted yet"):
        um.stability(um.LGES(), 2)
    with pytest.raises(um.DataError, match="no sampling error"):
        um.stability(um.LGES().fit_cov(data.frame(), np.inf), 2)


def test_any_search_can_be_judged(rows: pd.DataFrame) -> None:
    found = um.stability(um.peers.FOFC().fit(rows), 2)
    assert len(found.outlines) + len(found.failures) == 2


@st.composite
def stabilities(draw) -> Stability:
    """Any replicates at all, of any graph: what frequencies can look like."""
    n = draw(st.integers(4, 9))
    observed = tuple(f"x{i}" for i in range(n))
    seeds = draw(st.lists(st.integers(0, 10_000), min_size=2, max_size=8))
    graphs = []
    for seed in seeds:
        m = int(np.random.default_rng(seed).integers(1, n // 2 + 1))
        size = 1 + seed % 2
        common = min(n - 2 * m, seed % 3) if m > size else 0  # common to two groups at least
        dag = um.simulate.random_gnfm(
            n_latents=m, n_observed=n, n_common_children=common, max_group_size=size, rng=seed
        )
        order = np.random.default_rng(seed).permutation(n)
        graphs.append(dag.rename({x: observed[order[i]] for i, x in enumerate(dag.observed)}).cpdag())
    outlines = [Outline.of(graph, observed) for graph in graphs]
    return Stability(graphs[0], observed, "made up", tuple(Replicate(i, o, 0.0) for i, o in enumerate(outlines)))


@settings(max_examples=examples(60), deadline=None)
@given(stabilities(), st.floats(0.01, 1.0))
def test_the_consensus_is_always_a_factor_model(found: Stability, threshold: float) -> None:
    try:
        graph = found.consensus(threshold)
    except um.UnmeasuredError as error:
        assert "no consensus" in str(error)  # noqa: PT017
        return
    assert um.graphs.is_gnfm(graph.member())
    # Nothing in it is rarer than the threshold.
    edges = found.edges.set_index(["source", "target"])["frequency"]
    for group in graph.latent_groups:
        name = group[0] if len(group) == 1 else "{" + ", ".join(group) + "}"
        for source, target in graph.directed_edges:
            if source == group[0] and target in graph.observed:
                assert edges[name, target] >= threshold - 1e-9


def test_the_consensus_of_equals_is_what_all_of_them_are(stable: Stability) -> None:
    graph = stable.graph
    outline = Outline.of(graph, stable.observed)
    alike = Stability(graph, stable.observed, "equal", tuple(Replicate(i, outline, 0.0) for i in range(3)))
    assert um.metrics.compare(graph, alike.consensus(1.0)).shd == 0
    assert alike.items["exact"].min() == alike.latent_groups["consistency"].min() == 1.0
