"""Moves of a user's own: they are tried, they cannot harm, and a wrong one is a sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest

import unmeasured as um
from unmeasured.search.clock import Clock
from unmeasured.search.measurement.moves import Move, merge, resize
from unmeasured.search.measurement.proposals import RankGains
from unmeasured.search.measurement.refine import Guidance, Refinement
from unmeasured.search.model import FactorModel
from unmeasured.search.score import BicScore
from unmeasured.search.trace import Step, Steps


def data():
    return um.datasets.load("multitasking")


def test_what_a_move_proposes_is_tried_and_kept_only_if_it_scores_better():
    proposed = []

    def one_group(model):
        proposed.append(FactorModel(model.observed, (1,), (1,) * len(model.observed)))
        yield proposed[-1]

    known = data()
    plain = um.LGES().fit_cov(known.frame(), known.n_samples)
    moved = um.LGES(moves=[one_group]).fit_cov(known.frame(), known.n_samples)
    assert proposed
    assert moved.graph_ == plain.graph_  # one factor is far worse here
    assert moved.result_.method == "LGES(moves=[one_group])"
    assert json.loads(moved.result_.to_json())["options"]["moves"] == ["one_group"]


def test_a_move_that_finds_something_better_is_named_in_the_trace(monkeypatch):
    # Left with no moves over groups of our own, the search needs the user's.
    monkeypatch.setattr("unmeasured.search.measurement.refine.RESTRUCTURING", ())
    monkeypatch.setattr("unmeasured.search.measurement.refine.REBUILDING", ())
    one = lambda gains, size: [FactorModel(gains.names, (1,), (1,) * gains.n)]  # noqa: E731
    monkeypatch.setattr("unmeasured.search.guided.proposals", one)
    edges = [("A", "B"), *[("A", f"a{i}") for i in range(3)], *[("B", f"b{i}") for i in range(3)]]
    truth = um.DAG.from_edges(edges, latents=["A", "B"])
    rows = um.simulate.sample(um.simulate.realistic_parameters(truth, rng=1), 2000, rng=2)

    def by_first_letter(model):
        yield FactorModel(model.observed, (1, 1), tuple(1 if name[0] == "a" else 2 for name in model.observed))

    assert um.metrics.compare(truth, um.LGES().fit(rows).graph_).shd > 0
    search = um.LGES(moves=(by_first_letter,)).fit(rows)
    assert um.metrics.compare(truth, search.graph_).shd == 0
    assert any(step.what == "by_first_letter" for step in search.trace_)


def test_a_user_s_move_may_predict_its_gains_as_ours_do():
    looked_at, applied = [], []

    def gain(situation, group):
        looked_at.append(group)
        return situation.gains.of(situation.model.pure(group), 1)

    def apply(situation, group):
        applied.append(group)
        return situation.model.without_group(group)

    drop = Move("drop a group", lambda situation: range(situation.model.n_groups), apply, gain, n_best=1)
    known = data()
    search = um.LGES(moves=[drop]).fit_cov(known.frame(), known.n_samples)
    assert 0 < len(applied) < len(looked_at)
    assert search.result_.method == "LGES(moves=[Move('drop a group')])"
    assert json.loads(search.result_.to_json())["options"]["moves"] == ["drop a group"]


def test_two_groups_that_share_most_of_their_children_are_offered_as_one():
    """Others gain more by their rank constraints, and this pair, four variables of its own, has none."""
    group_of = [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    edges = [(f"L{g}", f"x{j}") for j, g in enumerate(group_of)]
    edges += [(latent, f"x{j}") for latent in ("A", "B") for j in range(12, 19)]
    edges += [(f"L{g}", f"L{g + 1}") for g in range(3)] + [("L3", "A"), ("L3", "B")]
    truth = um.DAG.from_edges(edges, latents=["L0", "L1", "L2", "L3", "A", "B"])
    sample = um.as_sample(um.simulate.sample(um.simulate.paper_parameters(truth, 3), 1000, rng=4))
    names = tuple(f"x{j}" for j in range(19))
    own = tuple(1 << g for g in group_of)
    two = FactorModel(names, (1,) * 6, (*own, 16, 16, 32, 32, 48, 48, 48))
    score = BicScore(sample)
    search = Refinement(score, RankGains(sample, score.dimension_penalty), Guidance(3), [])
    found, right = score([two, FactorModel(names, (1, 1, 1, 1, 2), (*own, *(16,) * 7))])
    merged = [merge.apply(search.situation(found), those) for those in merge.candidates(search.situation(found))]
    assert right.model.key in {model.key for model in merged}
    assert right.value > found.value + 10


def test_a_new_size_is_predicted_to_gain_what_the_rank_constraints_of_all_groups_gain():
    known = data()
    sample = um.as_sample(cov=known.frame(), n_samples=known.n_samples)
    score = BicScore(sample)
    gains = RankGains(sample, score.dimension_penalty)
    (found,) = score([FactorModel(sample.names, (2, 1), (1,) * 5 + (2,) * 4)])
    situation = Refinement(score, gains, Guidance(3), []).situation(found)

    def total(model):
        return sum(gains.of(model.pure(g), k) for g, k in enumerate(model.sizes))

    candidates = list(resize.candidates(situation))
    assert candidates == [(0, 1), (0, 3), (1, 2)]
    for candidate in candidates:
        rise = total(resize.apply(situation, candidate)) - total(found.model)
        assert resize.predicted_gain(situation, candidate) == pytest.approx(rise)


@pytest.mark.parametrize("wrong", ["not a model", FactorModel(("a", "b"), (1,), (1, 1))])
def test_a_wrong_move_is_a_sentence(wrong):
    with pytest.raises(um.UnmeasuredError, match="A move gives measurement models of the same variables; 'move' gave"):
        um.LGES(moves=[move_to(wrong)]).fit_cov(data().frame(), 202)
    with pytest.raises(um.UnmeasuredError, match="moves are for criterion"):
        um.LGES(criterion="delta", moves=[move_to(wrong)]).fit_cov(data().frame(), 202)


def move_to(what):
    def move(model):
        yield what

    return move


# How much longer ---------------------------------------------------------------------------------------------


def test_time_left_is_told_from_the_work_done_and_never_beyond_the_limit(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("unmeasured.search.clock.time.monotonic", lambda: now[0])
    clock, limited = Clock(None), Clock(20.0)
    now[0] += 7.0
    assert clock.left() == ""  # nothing is known yet
    assert limited.left() == "at most 15 s left"
    clock.measured(0.1)
    assert clock.left() == ""  # too little to go by
    for each in (clock, limited):
        each.measured(0.35)  # nine tenths of that in 7 s: 15 s more
    assert clock.left() == "about 15 s left"
    assert limited.left() == "at most 15 s left"
    now[0] += 12.0
    clock.connected(0.9)
    assert clock.left() == "about 1 s left"
    assert limited.left() == "at most 1 s left"


def test_the_bar_shows_phase_candidates_best_score_and_time(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    steps = Steps(verbose=True, clock=Clock(3600.0))
    steps.append(Step("Phase 9", "split", 12, 0, 3, 0, -9.0, -8.25, 0.0, True, "because"))
    steps.append(Step("Phase 9", "merge", 5, 0, 3, 0, -9.0, -8.75, 0.0, True, "because"))
    steps.close()
    shown = capsys.readouterr().err
    assert "Phase 9: best score -8.25; at most 60 min left; merge, 5 candidates" in shown
    assert all(len(line) <= 120 for line in shown.replace("\r", "\n").splitlines())


def test_a_search_that_is_watched_tells_of_its_phases(capsys):
    known = data()
    um.LGES(verbose=True).fit_cov(known.frame(), known.n_samples)
    shown = capsys.readouterr().err
    assert "Measurement model, climb 1" in shown
    assert "Latent graph of model 1 of" in shown
    assert np.isfinite(float(shown.split("best score ")[-1].split(";")[0]))
