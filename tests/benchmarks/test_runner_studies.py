"""Experiments on real data, on cut rows and on rows with holes; peers that are absent; how seconds grow."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

import unmeasured as um
from benchmarks import experiment
from benchmarks.attempt import perform, simulated_rows
from benchmarks.run_records import Circumstances, Outcome, Record, Task
from benchmarks.state import state_of
from benchmarks.tables import make_table


def where(task: Task) -> Circumstances:
    code = state_of(task.constructor)
    return Circumstances("0.1.0", code, "3.11.7", "2.4.6", "Linux x86_64, 2 cores", 1, "2026-11-15")


# As re-derived with lavaan 0.6-14, ML: RMSEA, CFI, TLI, and BIC where it was written down.
PUBLISHED = {
    "Goldberg 1993, uncorrelated, as in the paper": (0.0722, 0.7675, 0.7464, None),
    "Byrne 1994b, uncorrelated, as in the paper": (0.0962, 0.7532, 0.7279, None),
    "Byrne 2010 and DM → SS, uncorrelated, as in the paper": (0.0722, 0.8611, 0.8469, None),
    "Himi 2019, chain, 24 df as in the paper": (0.0879, 0.9617, 0.9426, None),
    "Byrne 2010, correlated": (0.0421, 0.9542, 0.9479, 45243.7),
}


def methods_of(name: str) -> list[str]:
    return [method.label for method in experiment.load(name).methods]


# ----------------------------------------------------------------------------------------------- real data


@pytest.mark.parametrize("label", PUBLISHED)
def test_published_rows_of_table_3_are_the_figures_lavaan_gives(label):
    (assignment,) = experiment.load("table3").restricted([label]).assignments
    outcome = perform(assignment).outcome
    rmsea, cfi, tli, bic = PUBLISHED[label]
    assert outcome.failure is None
    assert (round(outcome.rmsea, 4), round(outcome.cfi, 4), round(outcome.tli, 4)) == (rmsea, cfi, tli)
    assert bic is None or outcome.bic == pytest.approx(bic, abs=0.05)


def test_every_published_model_of_the_three_data_sets_is_in_table_3():
    table3 = experiment.load("table3")
    for name in ("multitasking", "teacher_burnout", "big_five"):
        named = {
            a.task.options["model"] for a in table3.assignments if a.task.graph == name and a.task.options.get("model")
        }
        assert named == set(um.datasets.load(name).models)


def test_table_3_has_a_grid_for_each_data_set_and_the_paper_beside_it():
    table3 = experiment.load("table3")

    def outcome(task):
        good = task.method == "LGES (bic)"
        return Outcome(
            1.0, latents_found=3, chi2=1.0, df=2, rmsea=0.01 if good else 0.05, cfi=0.9, tli=0.9, srmr=0.1, bic=9.0
        )

    multitasking, burnout, big_five = make_table(
        table3, [Record(a.task, where(a.task), outcome(a.task)) for a in table3.assignments]
    ).blocks
    assert multitasking.caption == "multitasking"
    assert multitasking.header[:5] == ("model", "RMSEA", "paper", "CFI", "paper")
    assert [row[0].text for row in big_five.rows] == [
        "LGES (bic)", "LGES (bic), groups of one", "two-stage", "Goldberg 1993, uncorrelated, as in the paper",
        "Goldberg 1993, correlated",
    ]  # fmt: skip
    assert [(entry.text, entry.is_best) for entry in burnout.rows[0][1:3]] == [("0.0100", True), ("0.067", False)]
    assert burnout.rows[0][burnout.header.index("latents found")].text == "3"


# ------------------------------------------------------------------------------------------- cut and holed rows


def test_cut_rows_are_the_rows_that_are_not_cut_cut():
    runs = experiment.load("likert").quickened().assignments
    same = [a for a in runs if a.task.graph == "realistic-01" and a.task.method == "LGES (pearson)"]
    rows = {a.task.categories: simulated_rows(a.task, a.truth) for a in same}
    assert set(rows) == {None, "even", "skewed"}
    for categories in ("even", "skewed"):
        assert um.simulate.cut(rows[None], categories).equals(rows[categories])
    assert {a.task.method for a in runs if a.task.categories is None} == {"LGES (pearson)"}


def test_holed_rows_are_the_complete_ones_with_holes_the_same_for_every_method():
    runs = [a for a in experiment.load("missing").quickened().assignments if a.task.graph == "realistic-01"]
    rows = {(a.task.method, a.task.missing): simulated_rows(a.task, a.truth) for a in runs}
    whole = rows["LGES (ml)", 0].to_numpy()
    for (method, rate), frame in rows.items():
        holed = frame.to_numpy()
        assert np.isnan(holed[:, 1:]).mean() == pytest.approx(rate, abs=0.02)
        assert np.array_equal(holed[~np.isnan(holed)], whole[~np.isnan(holed)])
        assert frame.equals(rows["LGES (ml)", rate]), method


def test_tables_of_cut_and_holed_rows_name_what_was_done():
    likert, missing = experiment.load("likert").quickened(), experiment.load("missing").quickened()
    found = Outcome(0.5, f1=0.9, precision=0.9, recall=0.9, shd=1, shd_paper=1, latents_true=2, latents_found=2)
    cut, holed = (
        make_table(e, [Record(a.task, where(a.task), found) for a in e.assignments]).blocks[0]
        for e in (likert, missing)
    )
    assert [row[0].text for row in cut.rows] == ["not cut", "five, even", "five, skewed"]
    assert [entry.text for entry in cut.rows[0][1:]] == ["-", "-", "0.90 (0.00)"]
    assert [row[0].text for row in holed.rows] == ["nothing", "10%", "25%"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'rows = "categories"',
            'rows = "method"',
            'with several values of categories the table has rows = "categories"',
        ),
        ('["none", "even", "skewed"]', '["odd"]', "categories must be a list of some of 'none', 'even', 'skewed'"),
        ('categories = ["none"', 'missing = [0.9]\ncategories = ["none"', "a list of different numbers from 0 to 0.5"),
        ('rows = "categories"', 'rows = "data"', 'a table of real data, and no other, has rows = "data"'),
    ],
)
def test_mistakes_in_such_experiments_are_named(old, new, words):
    text = (experiment._folder() / "likert.toml").read_text()
    assert old in text
    with pytest.raises(um.UnmeasuredError, match=words):
        experiment.parse(text.replace(old, new, 1), "likert.toml")


# ------------------------------------------------------------------------------------------------- scaling


def test_large_graphs_are_as_sparse_as_small_ones():
    graphs = experiment.load("scaling").graphs.structures()
    assert sorted({s.n_observed for s in graphs}) == [10, 20, 40, 50, 80, 100, 160, 200, 300, 500, 1000]
    for structure in graphs:
        dag = structure.dag
        assert len(dag.observed) == 5 * len(dag.latents)
        assert {len(group) for group in dag.latent_groups} <= {1, 2}
    large = [s.dag for s in graphs if s.n_observed >= 100]
    parents = [
        sum((b[0], a[0]) in set(dag.edges) for b in dag.latent_groups) for dag in large for a in dag.latent_groups
    ]
    assert np.mean(parents) == pytest.approx(1.0, abs=0.25)
    assert len({s.digest for s in graphs}) == len(graphs)


def test_the_exponent_of_a_power_law_is_found():
    scaling = experiment.load("scaling").restricted(["LGES (bic)"])
    cubic = [
        Record(a.task, where(a.task), Outcome(1e-4 * a.task.n_observed**3, f1=1.0, shd=0, peak_mib=300.0))
        for a in scaling.assignments
    ]
    assert any(
        "to the power 3.00, fitted on the logarithms of 10 to 1000" in note for note in make_table(scaling, cubic).notes
    )


def test_smaller_graphs_come_first_where_methods_give_up():
    sizes = [a.task.n_observed for a in experiment.load("scaling").assignments]
    assert sizes == sorted(sizes)
    assert all(a.apart for a in experiment.load("scaling").assignments)


# ---------------------------------------------------------------------------------------------- absent peers


@pytest.mark.parametrize(
    ("module", "label"), [("causallearn", "RLCD"), ("causallearn", "GIN (mended)"), ("statsmodels", "two-stage")]
)
def test_a_peer_that_is_not_installed_is_a_row_that_says_how_to_get_it(monkeypatch, module, label):
    for name in [m for m in sys.modules if m.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not there
    trial = replace(experiment.load("runtime").quickened().restricted([label]), sample_sizes=(50,))
    table = make_table(trial, [perform(a) for a in trial.assignments])
    assert any("is not installed. Run: pip install 'unmeasured[peers]'" in note for note in table.notes)
    assert table.blocks[0].rows[0][1].text == "-"
