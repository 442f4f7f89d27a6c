"""Places where the paper's algorithms do not hold as printed: a counter-example each, and the corrected version."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import unmeasured as um
from unmeasured.graphs import consistent_extension
from unmeasured.graphs.bitsets import row_masks
from unmeasured.search.paper import phase1
from unmeasured.search.paper.operators import DeleteLL, candidate_heads
from unmeasured.search.paper.state import State


def population_fit(graph, parameters):
    return um.fit(graph, cov=parameters.cov(), n_samples=math.inf, names=parameters.observed)


def lges(parameters):
    return um.LGES(criterion="delta").fit_cov(parameters.cov(), math.inf, names=parameters.observed)


def strong_parameters(dag, seed=0):
    return um.simulate.paper_parameters(dag, np.random.default_rng(seed), low=-2, high=2, min_abs=0.5)


#   L1 ── L2 ── L3      three groups of one, two pure children each,
#   a b   c d   e f     and x, a common child of L1 and L2 only
THREE = um.DAG.from_edges(
    [pair.split() for pair in ("L1 a", "L1 b", "L2 c", "L2 d", "L3 e", "L3 f", "L1 x", "L2 x", "L1 L2", "L2 L3")],
    latents=["L1", "L2", "L3"],
)


def test_a_common_child_left_alone_is_never_tested_by_the_printed_loop(monkeypatch):
    """Line 4 stops at k = 2 > |X_t| / 2 with x still open, so x keeps L3 as a parent."""
    parameters = strong_parameters(THREE)
    corrected = lges(parameters)
    assert um.metrics.compare(THREE, corrected.graph_).shd == 0

    monkeypatch.setattr(phase1, "n_claimed", lambda state: 0)  # the condition as printed: k <= |X_t| / 2 alone
    printed = lges(parameters)
    assert len(printed.graph_.member().parents("x")) == 3
    assert um.metrics.compare(THREE, printed.graph_).shd == 1
    assert any("No small set of latents explains x" in remark for remark in printed.remarks_)


#   {L1, L2} ── L3      x, a common child of both groups
#   a b c d     e f
PAIR = um.DAG.from_edges(
    [(g, item) for g in ("L1", "L2") for item in "abcd"]
    + [("L3", "e"), ("L3", "f"), ("L1", "x"), ("L2", "x"), ("L3", "x"), ("L1", "L3"), ("L2", "L3")],
    latents=["L1", "L2", "L3"],
)


def test_a_parent_set_that_cuts_a_group_passes():
    """With x caused by L1 and L3 alone the fit is as perfect: turn {L1, L2} until x needs only one of them."""
    parameters = strong_parameters(PAIR)
    cut = um.DAG.from_edges([e for e in PAIR.edges if e != ("L2", "x")], latents=PAIR.latents, names=PAIR.names)
    assert not um.graphs.is_gnfm(cut)
    assert population_fit(cut, parameters).chi2 == 0.0
    assert um.dimension(cut) == um.dimension(PAIR)


def test_so_only_unions_of_whole_groups_are_candidates():
    state = lges_state(((0, 1), (2,)))
    assert set(phase1.candidate_parents(state, 2)) == {(0, 1)}
    assert set(phase1.candidate_parents(state, 3)) == {(0, 1, 2)}
    assert um.metrics.compare(PAIR, lges(strong_parameters(PAIR)).graph_).shd == 0


def lges_state(groups):
    """A state with groups of pure children only, all connected."""
    m = sum(map(len, groups))
    n = 2 * m
    measures = np.zeros((m, n), dtype=bool)
    at = 0
    for group in groups:
        measures[np.ix_(group, range(at, at + 2 * len(group)))] = True
        at += 2 * len(group)
    return State(tuple(f"x{i}" for i in range(n)), tuple(f"L{i}" for i in range(m)), measures, groups)


def test_a_deletion_without_the_clique_condition_has_no_extension():
    """A – B is the only chord of the circle A – C – B – D: delete it with H empty and nothing can be directed."""
    A, B, C, D = range(4)
    marks = np.zeros((4, 4), dtype=np.uint8)
    for i, j in [(A, B), (A, C), (A, D), (B, C), (B, D)]:
        marks[i, j] = marks[j, i] = 1
    model = lges_state(((0,), (1,), (2,), (3,))).without_spare()
    model = replace(model, edges=tuple(row_masks(marks)))
    assert candidate_heads(marks, A, B) == (C, D)
    assert not DeleteLL(A, B).is_valid(model)
    with pytest.raises(ValueError, match="no consistent extension"):
        DeleteLL(A, B).apply(model)
    for H in [(C,), (D,), (C, D)]:
        move = DeleteLL(A, B, H)
        assert move.is_valid(model)
        assert consistent_extension(move.apply(model).between) is not None


def test_two_accepted_parent_sets_do_not_leave_a_variable_without_parents():
    """Line 10 as printed applies each accepted deletion; two different ones would delete all edges."""
    state = lges_state(((0,), (1,)))
    for kept in ((0,), (1,)):
        state = phase1.DeleteLX.keeping(state, kept, (0,)).apply(state)
    assert not state.measures[:, 0].any()  # what the printed line does
    found = lges(strong_parameters(THREE))
    assert all(found.graph_.member().parents(x) for x in found.graph_.observed)
