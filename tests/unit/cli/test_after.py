"""Commands for what follows a discovery."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.cli.commands import main


def run(*arguments, cwd=".", ok=True):
    out, err, old = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["unmeasured", *map(str, arguments)]
    try:
        with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as leaving:
        code = leaving.code
    finally:
        sys.argv = old
    if ok:
        assert code == 0, err.getvalue()
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows with names of people, a run of a search on them, the matrix of the rows and a run on that."""
    folder = tmp_path_factory.mktemp("after")
    items = [("A", "B"), *[("A", f"a{i}") for i in range(4)], *[("B", f"b{i}") for i in range(4)]]
    truth = um.DAG.from_edges(items, latents=["A", "B"])
    rows = um.simulate.sample(um.simulate.realistic_parameters(truth, rng=1), 400, rng=2)
    rows.corr().to_csv(folder / "matrix.csv")
    rows.insert(0, "name", [f"person {i}" for i in range(len(rows))])
    rows.to_csv(folder / "rows.csv", index=False)
    (folder / "two.lav").write_text("A =~ a0 + a1 + a2 + a3\nB =~ b0 + b1 + b2 + b3\nB ~ A\n")
    run("discover", "rows.csv", "--columns", "a*,b*", "--out", "run", "--quiet", cwd=folder)
    run("discover", "matrix.csv", "--n", "400", "--out", "of-matrix", "--quiet", cwd=folder)
    return folder


def test_scores_go_to_a_file_with_what_was_asked_for(folder):
    done = run(
        "scores",
        "run/result.json",
        "rows.csv",
        "--out",
        "scores.csv",
        "--keep",
        "name",
        "--standard-errors",
        cwd=folder,
    )
    table, rows = pd.read_csv(folder / "scores.csv"), pd.read_csv(folder / "rows.csv")
    result = um.Result.from_json((folder / "run" / "result.json").read_text())
    latents = list(result.graph.latents)
    assert list(table) == ["name", *latents, *(f"{x}_se" for x in latents)]
    assert list(table["name"]) == list(rows["name"])
    assert np.allclose(table[latents], result.fit.scores(rows))
    assert "400 rows: scores.csv. Correlation of the scores with their latents (determinacy): " in done.stdout


def test_scores_of_model_text_and_of_a_matrix(folder):
    text = run("scores", "two.lav", "rows.csv", cwd=folder).stdout
    assert text.splitlines()[0] == "A,B"
    assert len(text.splitlines()) == 401
    refused = run("scores", "of-matrix/result.json", "rows.csv", cwd=folder, ok=False)
    assert refused.returncode == 2
    assert "fitted to a matrix, which has no means" in refused.stderr
    run("scores", "of-matrix/result.json", "rows.csv", "--standardise", "--out", "m.csv", cwd=folder)
    run("scores", "run/result.json", "rows.csv", "--out", "r.csv", cwd=folder)
    ours, theirs = pd.read_csv(folder / "m.csv"), pd.read_csv(folder / "r.csv")
    assert abs(np.corrcoef(ours.iloc[:, 0], theirs.iloc[:, 0])[0, 1]) > 0.99


def test_effects_over_the_class_and_in_the_member(folder):
    result = um.Result.from_json((folder / "run" / "result.json").read_text())
    a, b = result.graph.latents
    done = run("effects", "run/result.json", "--cause", a, "--effect", b, cwd=folder)
    assert done.stdout.strip() == str(result.effects(a, b))
    every = run("effects", "run/result.json", "--out", "effects.csv", cwd=folder)
    assert "Total effects in all members (2 in the class)" in every.stdout
    assert list(pd.read_csv(folder / "effects.csv")["values"]) == [2, 2]
    member = run("effects", "run/result.json", "--decompose", "--json", cwd=folder)
    assert {row["kind"] for row in json.loads(member.stdout)["effects"]} == {"total", "direct", "indirect"}


def test_discover_confirms_in_other_rows(folder):
    done = run(
        "discover", "rows.csv", "--columns", "a*,b*", "--holdout", "0.5", "--seed", "3", "--out", "half", cwd=folder
    )
    assert "Confirmed in other rows" in done.stdout
    assert "the loss is" in done.stdout
    result = um.Result.from_json((folder / "half" / "result.json").read_text())
    assert result.sem.sample.n == 200
    assert "found in other data (N = 200)" in result.estimation_note
    again = run("discover", "rows.csv", "--columns", "a*,b*", "--holdout", "0.5", "--seed", "3", cwd=folder)
    assert again.stdout.split("Fit")[0].split(";")[0] == done.stdout.split("Fit")[0].split(";")[0]


def test_mistakes_are_sentences_and_files_stay_whole(folder):
    before = (folder / "rows.csv").read_bytes()
    cases = [
        (("scores", "run/result.json", "rows.csv", "--out", "rows.csv"), "which would be lost"),
        (("scores", "run/result.json", "rows.csv", "--method", "best"), "method must be one of"),
        (("scores", "run/result.json", "rows.csv", "--keep", "nam"), "No column is called 'nam'"),
        (("scores", "run/result.json", "scores.csv"), "does not have these variables of the model"),
        (("effects", "run/result.json", "--cause", "Anger"), "'Anger' is no variable of the graph"),
        (("effects", "run/result.json", "--confidence", "95"), "confidence is a probability between 0 and 1"),
        (("discover", "matrix.csv", "--n", "400", "--holdout", "0.5"), "a matrix (--n) cannot be split"),
        (("discover", "rows.csv", "--holdout", "2"), "between 0 and 1, such as 0.5; got 2.0"),
        (("discover", "rows.csv", "--stratify-by", "name"), "Give --holdout 0.5 with it"),
    ]
    for arguments, sentence in cases:
        done = run(*arguments, cwd=folder, ok=False)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr
    assert (folder / "rows.csv").read_bytes() == before


def test_a_model_is_diagnosed(folder):
    result = um.Result.from_json((folder / "run" / "result.json").read_text())
    told = run("diagnose", "run/result.json", "--max-rows", "3", cwd=folder).stdout
    for heading in ("modification indices", "Standardised residuals", "omega", "reliability is"):
        assert heading in told
    record = json.loads(run("diagnose", "run/result.json", "--max-rows", "3", "--json", cwd=folder).stdout)
    largest = result.fit.residuals("standardised").abs().to_numpy(copy=True)
    np.fill_diagonal(largest, 0.0)
    assert abs(record["standardised_residuals"][0]["residual"]) == pytest.approx(np.nanmax(largest))
    assert [row["latent"] for row in record["reliability"]] == list(result.reliability().table.index)


@pytest.fixture(scope="module")
def likert(tmp_path_factory):
    """Answers from 1 to 5 with a reversed item, a code for no answer and a column beyond the scale; their run."""
    folder = tmp_path_factory.mktemp("likert")
    items = [("A", f"a{i}") for i in range(4)]
    truth = um.simulate.realistic_parameters(um.DAG.from_edges(items, latents=["A"]), rng=1)
    rows = um.simulate.sample(truth, 300, rng=2).apply(lambda x: pd.cut(x, 5, labels=False) + 1)
    rows["a1"] = 6 - rows["a1"]
    rows.loc[:4, "a2"] = 9
    rows["wave"] = np.arange(300) % 2  # would be an end of the scale
    rows.to_csv(folder / "rows.csv", index=False)
    options = ["--columns", "a*", "--na", "9", "--reverse", "a1", "--cor", "pearson"]
    run("discover", "rows.csv", *options, "--out", "run", "--quiet", cwd=folder)
    (folder / "one.lav").write_text("A =~ a0 + a1 + a2\n")
    return folder


def test_rows_are_prepared_as_those_of_the_result(likert):
    said = run("scores", "run/result.json", "rows.csv", cwd=likert)
    assert "Reversed, answers taken from 6: 'a1'." in said.stderr
    assert "Taken as missing: 5 answers with the code 9." in said.stderr
    asked = run("scores", "run/result.json", "rows.csv", "--na", "9", "--reverse", "a1", "--quiet", cwd=likert)
    assert (asked.stdout, asked.stderr) == (said.stdout, "")
    raw = run("scores", "run/result.json", "rows.csv", "--reverse", "", cwd=likert)
    assert "Reversed" not in raw.stderr
    assert raw.stdout != said.stdout
    found = json.loads((likert / "run" / "result.json").read_text())
    fitted = json.loads(run("fit", "run/result.json", "rows.csv", "--cor", "pearson", "--json", cwd=likert).stdout)
    assert fitted["chi2"] == pytest.approx(um.Result.from_json(json.dumps(found)).sem.chi2, abs=1e-6)
    compared = run("compare", "run/result.json", "one.lav", "rows.csv", "--cor", "pearson", cwd=likert)
    assert "Data: Reversed, answers taken from 6: 'a1'." in compared.stdout


def test_models_know_the_columns_that_were_chosen(likert):
    by_range = run("fit", "one.lav", "rows.csv", "-c", "a0:a3", "--na", "9", "--reverse", "a3", cwd=likert)
    assert "Reversed, answers taken from 6: 'a3'." in by_range.stdout
    for command in ("fit", "scores", "compare"):
        done = run(command, "one.lav", "rows.csv", "--exclude", "a2", cwd=likert, ok=False)
        assert done.returncode == 2
        assert "The model needs variables that --columns or --exclude leaves out: 'a2'." in done.stderr
    done = run("invariance", "one.lav", "rows.csv", "-g", "wave", "-x", "a0,a3", cwd=likert, ok=False)
    assert "leaves out: 'a0'." in done.stderr


def test_results_of_different_preparations_are_not_mixed(likert):
    record = json.loads((likert / "run" / "result.json").read_text())
    record["run"]["about"]["na"] = [8.0]
    (likert / "other.json").write_text(json.dumps(record))
    done = run("compare", "run/result.json", "other.json", "rows.csv", cwd=likert, ok=False)
    assert done.returncode == 2
    assert "prepared in different ways. Give --na and --reverse" in done.stderr
