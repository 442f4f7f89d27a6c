"""Remarks have a severity, come in its order, and none that matters is left out."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.output.report.lead import lead
from unmeasured.output.report.screen import screen
from unmeasured.remarks import Remark, Severity, by_consequence, data_problem, distrust, note, severity_of
from unmeasured.results.interpretation import cautions, verdict


@pytest.fixture(scope="module")
def result():
    data = um.datasets.load("multitasking")
    return um.LGES().fit_cov(data.frame(), data.n_samples).result_


@pytest.fixture(scope="module")
def no_latents():
    """A result whose graph is over observed variables only."""
    dag = um.DAG.from_edges([("a", "b"), ("b", "c")])
    rows = um.simulate.sample(dag, 300, rng=0)
    return um.Result(dag.cpdag(), um.fit(dag, rows), (distrust("No latents are reported: so it is."),))


def test_a_remark_is_a_string_that_knows_its_severity():
    remark = distrust("Interrupted.")
    assert remark == "Interrupted."
    assert json.loads(json.dumps([remark])) == ["Interrupted."]
    assert severity_of(pickle.loads(pickle.dumps(remark))) == Severity.DISTRUST
    assert severity_of("plain") == Severity.NOTE


def test_the_more_serious_of_two_equal_sentences_is_kept():
    assert by_consequence(["A.", distrust("A.")])[0].severity == Severity.DISTRUST


def test_every_serious_remark_is_on_the_screen_and_the_rest_is_counted(result):
    notes = [note(f"Note number {i}.") for i in range(10)]
    serious = [distrust(f"Serious {i}.") for i in range(5)]
    problems = [data_problem(f"Problem {i}.") for i in range(2)]
    told = replace(result, remarks=(*notes, *problems, *serious))
    text = screen(told, elsewhere="the report")
    lines = [line.strip() for line in text.split("\nRemarks\n")[1].splitlines()]
    assert lines[:7] == [f"- {remark}" for remark in (*serious, *problems)]
    assert lines[7:] == ["12 more notes: see the report"]  # ten, on the matrix and on standard errors
    summary = told.summary()
    assert all(remark in summary for remark in told.remarks)
    assert summary.index("Serious 4.") < summary.index("Problem 0.") < summary.index("Note number 0.")


def test_paths_beyond_one_are_a_reason_for_doubt_and_no_finding():
    """Two causes that correlate at .89 and have effects of opposite signs."""
    A, B = np.array([1.0, 0, 0]), np.array([2.0, 1, 0])
    C = 3.0 * A - 2.0 * B + np.array([0.0, 0, 0.5])
    loads = np.repeat([A, B, C], 3, axis=0)
    cov = pd.DataFrame(loads @ loads.T + 0.3 * np.eye(9), index=list("abcdefghi"), columns=list("abcdefghi"))
    latents = ["A", "B", "C"]
    edges = [("A", "B"), ("A", "C"), ("B", "C"), *zip("AAABBBCCC", "abcdefghi", strict=True)]
    dag = um.DAG.from_edges(edges, latents=latents)
    result = um.Result(dag.cpdag(), um.fit(dag, cov=cov, n_samples=1000))
    (said,) = [remark for remark in cautions(result) if remark.startswith("Standardised paths beyond 1")]
    assert said.severity == Severity.DISTRUST
    beyond = result.latent_paths["std"].abs() > 1
    assert beyond.sum() == said.count("–") + said.count("→") == 2
    assert "A and B correlate at 0.89 as causes of C" in said
    assert verdict(result).startswith("Do not publish this result as it is: standardised paths beyond 1")
    assert screen(result).count("(beyond 1: doubtful)") == 2
    assert result.summary().count("; beyond 1: doubtful") == 2
    sentences = lead(result, "1,000 observations")
    assert "some of the factors overlap" in sentences[-1]
    assert not any(f"{value:.2f}" in " ".join(sentences) for value in result.latent_paths["std"][beyond].abs())


def test_one_line_is_never_cut_short(result):
    long = distrust(" ".join(["word"] * 120) + " end.")
    assert "end." in screen(replace(result, remarks=(long,)))


def test_loadings_beyond_one_are_said_first(result):
    told = replace(result, remarks=tuple(map(note, "abcdef")))
    loadings = told.loadings.copy()
    loadings.loc[0, "std"] = 1.2
    told.__dict__["loadings"] = loadings
    assert cautions(told)[0].startswith("Standardised loadings beyond 1")
    assert "Standardised loadings beyond 1" in screen(told)


def test_no_heading_speaks_of_latents_where_there_are_none(no_latents):
    for text in (no_latents.summary(), no_latents._repr_html_(), screen(no_latents)):
        assert "Paths between latents" not in text
        assert "Paths between observed variables" in text
        assert "No latents are reported" in text


def test_severities_come_back_from_json(result):
    told = replace(result, remarks=(distrust("One."), data_problem("Two."), "Three."))
    again = um.Result.from_json(told.to_json())
    assert [severity_of(r) for r in again.remarks] == [Severity.DISTRUST, Severity.DATA, Severity.NOTE]
    record = json.loads(told.to_json())
    del record["severities"]  # as earlier versions wrote it
    assert um.Result.from_json(json.dumps(record)).remarks == ("One.", "Two.", "Three.")


def test_a_search_that_finds_nothing_says_so_first():
    import numpy as np

    rng = np.random.default_rng(0)
    remarks = um.LGES().fit(rng.normal(size=(300, 5))).remarks_
    assert isinstance(remarks[0], Remark)
    assert remarks[0].severity == Severity.DISTRUST


def test_an_answer_that_is_not_to_be_published_says_so_in_its_first_line():
    edges = [(f"L{k}", f"x{k}{j}") for k in (1, 2) for j in range(3)] + [("L1", "L2"), ("L2", "x10")]
    dag = um.DAG.from_edges(edges, latents=["L1", "L2"])
    names = list(dag.observed)
    loadings = np.array([[1.4, 0.7, 0.7, 0, 0, 0], [-0.7, 0, 0, 0.7, 0.7, 0.7]])
    phi = np.array([[1, 0.8], [0.8, 1]])
    cov = loadings.T @ phi @ loadings
    np.fill_diagonal(cov, 1.0)
    order = [names.index(f"x1{j}") for j in range(3)] + [names.index(f"x2{j}") for j in range(3)]
    frame = pd.DataFrame(cov, [names[i] for i in order], [names[i] for i in order])
    result = um.Result(dag.cpdag(), um.fit(dag.cpdag(), cov=frame, n_samples=500))
    assert result.loadings["std"].abs().max() > 1.2
    for text in (result.summary(), screen(result)):
        assert text.startswith("Do not publish this result as it is: standardised loadings beyond 1 ('x10')")
    assert "Do not publish" in result._repr_html_()


def test_abbreviations_keep_their_capitals_in_the_first_line():
    dag = um.DAG.from_edges([("L", f"x{j}") for j in range(4)], latents=["L"])
    cov = pd.DataFrame(0.5 + 0.5 * np.eye(4), list(dag.observed), list(dag.observed))
    fit = um.fit(dag.cpdag(), cov=cov, n_samples=500)
    for reason, shown in (("BIC prefers another.", "BIC prefers another."), ("The fit is bad.", "the fit is bad.")):
        result = um.Result(dag.cpdag(), fit, remarks=(Remark(reason, Severity.DISTRUST),))
        assert result.summary().startswith(f"Do not publish this result as it is: {shown}")


def test_latents_that_correlate_at_one_are_named():
    edges = [(f"L{k}", f"x{k}{j}") for k in (1, 2) for j in range(3)] + [("L1", "L2")]
    dag = um.DAG.from_edges(edges, latents=["L1", "L2"])
    cov = pd.DataFrame(np.full((6, 6), 0.5) + 0.5 * np.eye(6), list(dag.observed), list(dag.observed))
    result = um.Result(dag.cpdag(), um.fit(dag.cpdag(), cov=cov, n_samples=500))
    assert "L1 and L2" in result.summary()
    assert result.summary().startswith("Do not publish this result as it is:")
