"""Comparing an estimate with the truth."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from itertools import combinations, pairwise

import numpy as np
import pytest

from unmeasured.errors import GraphError
from unmeasured.graphs import DAG
from unmeasured.metrics import _Pair, compare
from unmeasured.simulate import random_gnfm


def graph(*edges: str, latents: str, names: Iterable[str] | None = None) -> DAG:
    """A DAG from ``"L1 a b c"``: the first causes the others."""
    pairs = [(row.split()[0], child) for row in edges for child in row.split()[1:]]
    return DAG.from_edges(pairs, latents=latents.split(), names=None if names is None else list(names))


def relabelled(dag: DAG, rng: np.random.Generator) -> DAG:
    """The same graph with new names for the latents and every variable in a new place."""
    fresh = {name: f"latent {k}" for k, name in enumerate(rng.permutation(dag.latents))}
    names = [fresh.get(str(name), str(name)) for name in rng.permutation(dag.names)]
    edges = [(fresh.get(a, a), fresh.get(b, b)) for a, b in dag.edges]
    return DAG.from_edges(edges, latents=list(fresh.values()), names=names)


# two_group_chain:   L1 ──► {L2, L3}      a, b measure L1; c, d, e, f measure the group of two.
FORTH = graph("L1 L2 L3 a b", "L2 c d e f", "L3 c d e f", latents="L1 L2 L3")
BACK = graph("L1 a b", "L2 L1 c d e f", "L3 L1 c d e f", latents="L1 L2 L3")

# chain:   L1 ──► L2 ──► L3,   collider:   L1 ──► L2 ◄── L3,   three items each.
ITEMS = ("L1 a b c", "L2 d e f", "L3 g h i")
CHAIN = graph("L1 L2", "L2 L3", *ITEMS, latents="L1 L2 L3")
COLLIDER = graph("L1 L2", "L3 L2", *ITEMS, latents="L1 L2 L3")


def test_a_graph_agrees_with_itself() -> None:
    result = compare(CHAIN, CHAIN)
    assert (result.f1, result.precision, result.recall, result.shd, result.shd_paper) == (1, 1, 1, 0, 0)
    assert result.matching == {"L1": "L1", "L2": "L2", "L3": "L3"}
    assert (result.n_latents_true, result.n_latents_found, result.latents_matched) == (3, 3, 3)


def test_an_edge_into_a_group_reverses_freely() -> None:
    result = compare(FORTH, BACK)
    assert (result.f1, result.shd) == (1, 0)
    assert result.shd_paper == 2  # both edges of the v-structure L2 → L1 ← L3


def test_a_class_and_its_member_are_the_same_thing() -> None:
    for dag in (FORTH, BACK, CHAIN, COLLIDER):
        assert compare(dag, dag.cpdag()).shd == 0
        assert compare(dag.cpdag(), dag).shd == 0
    assert compare(COLLIDER.cpdag(), CHAIN).shd == compare(COLLIDER, CHAIN).shd == 2
    assert compare(COLLIDER, CHAIN).shd_paper == 2
    assert compare(COLLIDER, CHAIN).f1 == 1


def test_matching_ignores_names() -> None:
    estimate = graph("u v", "v w", "w a b c", "v d e f", "u g h i", latents="u v w")
    result = compare(CHAIN, estimate)
    assert result.f1 == 1
    assert result.shd == 0
    assert result.matching == {"u": "L3", "v": "L2", "w": "L1"}


def test_a_missing_latent_costs_all_its_edges() -> None:
    # L3 and its items are gone: the edges L2 → L3 and L3 → g, h, i are missed.
    estimate = graph("L1 L2", *ITEMS[:2], latents="L1 L2", names=["L1", "L2", *"abcdefghi"])
    result = compare(CHAIN, estimate)
    assert (result.precision, result.recall) == (1, pytest.approx(7 / 11))
    assert result.f1 == pytest.approx(2 * 7 / (11 + 7))
    assert result.shd == result.shd_paper == 4
    assert (result.n_latents_true, result.n_latents_found, result.latents_matched) == (3, 2, 2)


def test_an_extra_latent_costs_all_its_edges() -> None:
    truth = graph("L1 a b c d", latents="L1")
    estimate = graph("u v a b", "v c d", latents="u v")
    result = compare(truth, estimate)
    # Either of u and v may stand for L1: two edges shared, two missed, two wrong, and the edge u → v.
    assert (result.precision, result.recall) == (pytest.approx(2 / 5), pytest.approx(2 / 4))
    assert result.shd == 5
    assert sorted(result.matching.values(), key=str) == ["L1", None]
    assert result.latents_matched == 1


def test_a_latent_that_shares_nothing_stands_for_nothing() -> None:
    names = ["L1", "L2", *"abcd"]
    truth = graph("L1 a b", latents="L1 L2", names=names)
    estimate = graph("L1 c d", "L2 a b", latents="L1 L2", names=names)
    result = compare(truth, estimate)
    assert result.matching == {"L1": None, "L2": "L1"}
    assert result.shd == 2


def test_directions_break_ties() -> None:
    # truth: L1 ── L2 ──► L3 ◄── L4, and the estimate is the same path read from the other end. Read either
    # way the skeletons agree; only the collider tells the two readings apart.
    names = ["L1", "L2", "L3", "L4", "x"]
    truth = graph("L1 L2", "L2 L3", "L4 L3", latents="L1 L2 L3 L4", names=names)
    estimate = graph("L4 L3", "L3 L2", "L1 L2", latents="L1 L2 L3 L4", names=names)
    result = compare(truth, estimate)
    assert (result.f1, result.shd, result.shd_paper) == (1, 0, 0)
    assert result.matching == {"L1": "L4", "L2": "L3", "L3": "L2", "L4": "L1"}


def test_observed_variables_in_another_order() -> None:
    estimate = graph(*reversed(ITEMS), "L1 L2", "L2 L3", latents="L3 L1 L2")
    assert estimate.names != CHAIN.names
    assert compare(CHAIN, estimate).shd == 0


@pytest.mark.parametrize(
    ("truth", "estimate", "scores"),
    [
        ((), (), (1, 1, 1, 0)),
        (("L1 a b",), (), (0, 0, 0, 2)),
        ((), ("L1 a b",), (0, 0, 0, 2)),
    ],
)
def test_empty_skeletons(truth: tuple[str, ...], estimate: tuple[str, ...], scores: tuple[int, ...]) -> None:
    names = ["L1", "a", "b"]
    result = compare(graph(*truth, latents="L1", names=names), graph(*estimate, latents="L1", names=names))
    assert (result.f1, result.precision, result.recall, result.shd) == scores


def test_graphs_without_latents() -> None:
    truth = graph("a b", "b c", latents="")
    estimate = graph("a b", latents="", names="abc")
    result = compare(truth, estimate)
    assert (result.precision, result.recall, result.matching) == (1, 0.5, {})
    assert "0 true, 0 found, 0 matched" in str(result)


def test_different_observed_variables_are_named() -> None:
    with pytest.raises(GraphError, match=r"the estimate lacks 'i' and the truth lacks 'z'\. Check the names"):
        compare(CHAIN, graph("L1 a b c", "L2 d e f", "L3 g h z", latents="L1 L2 L3"))
    with pytest.raises(GraphError, match=r"same observed variables; the truth lacks 'L3'\. Check the names"):
        compare(CHAIN, graph("L1 L2", "L2 L3", *ITEMS, latents="L1 L2"))


def test_a_comparison_is_a_record_and_reads_well() -> None:
    result = compare(FORTH, BACK)
    assert str(result).splitlines() == [
        "F1 1.000 (precision 1.000, recall 1.000), SHD 0 (the paper's way 2)",
        "latents: 3 true, 3 found, 3 matched (L1 = L1, L2 = L2, L3 = L3)",
    ]
    assert dataclasses.asdict(result)["matching"] == {"L1": "L1", "L2": "L2", "L3": "L3"}
    assert isinstance(hash(result), int)


@pytest.mark.parametrize("n_latents", [9, 12, 20])
def test_many_latents_a_hidden_permutation_is_recovered(n_latents: int) -> None:
    for seed in range(3):
        dag = random_gnfm(n_latents=n_latents, density=0.3, n_common_children=4, rng=seed)
        result = compare(dag, relabelled(dag, np.random.default_rng(seed)))
        assert (result.f1, result.shd, result.shd_paper) == (1, 0, 0)
        assert result.latents_matched == n_latents


def test_swaps_settle_what_shared_children_leave_open() -> None:
    # Nine latents in a chain. The estimate measures L1 and L2 by nothing, so only edges between latents tell
    # which of its two bare latents is which.
    latents = [f"L{i}" for i in range(1, 10)]
    chain = [f"{a} {b}" for a, b in pairwise(latents)]
    items = [f"{name} {name}a {name}b" for name in latents]
    names = [*latents, *(child for row in items for child in row.split()[1:])]
    truth = graph(*chain, *items, latents=" ".join(latents), names=names)
    swap = {"L1": "L2", "L2": "L1"}
    bare = [" ".join(swap.get(name, name) for name in row.split()) for row in chain]
    estimate = graph(*bare, *items[2:], latents=" ".join(latents), names=names)
    result = compare(truth, estimate)
    assert (result.precision, result.shd) == (1, 4)
    assert (result.matching["L1"], result.matching["L2"]) == ("L2", "L1")


@pytest.mark.parametrize("n_latents", [(6, 6), (9, 5)])
def test_what_swaps_change_is_counted_without_making_them(n_latents: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(n_latents))
    graphs = [random_gnfm(n_latents=m, n_observed=24, rng=rng).cpdag() for m in n_latents]
    pair = _Pair(*graphs)
    before = rng.permutation(pair.m)
    swaps = list(combinations(range(pair.m), 2))
    after = np.tile(before, (len(swaps), 1))
    for row, (a, b) in zip(after, swaps, strict=True):
        row[[a, b]] = row[[b, a]]
    shared, differences = pair.shared_by_swaps(before), pair.differences_by_swaps(before)
    assert [shared[swap] for swap in swaps] == (pair.shared(after) - pair.shared(before[None])).tolist()
    assert [differences[swap] for swap in swaps] == (pair.differences(after) - pair.differences(before[None])).tolist()


def test_missing_latents_count_beyond_the_exact_limit() -> None:
    truth = random_gnfm(group_sizes=[1] * 10, n_observed=20, shape="chain", rng=0)
    names = ["L0", *truth.observed]
    estimate = DAG.from_edges([("L0", x) for x in truth.observed], latents=["L0"], names=names)
    result = compare(truth, estimate)
    assert result.latents_matched == 1
    assert (result.precision, result.recall) == (pytest.approx(2 / 20), pytest.approx(2 / 29))
    assert result.shd == 18 + 27


@pytest.mark.parametrize(("n_latents", "limit"), [(5, 0.02), (8, 0.5)])
def test_matching_is_quick(n_latents: int, limit: float) -> None:
    # Generous limits, in processor time: it takes 1 to 2 ms and 15 ms.
    truth, estimate = (random_gnfm(group_sizes=[1] * n_latents, n_observed=24, rng=seed) for seed in (0, 1))
    compare(truth, estimate)  # the table of permutations is made once
    seconds = []
    for _ in range(3):
        start = time.process_time()
        compare(truth, estimate)
        seconds.append(time.process_time() - start)
    assert min(seconds) < limit
