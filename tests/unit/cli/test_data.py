"""Options that say what of a file is analysed, and messages that speak of options."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.cli.commands import in_options, main
from unmeasured.data.prepare import chosen_columns, prepared


def run(*arguments, cwd=".", ok=True):
    """The command through its entry point, in this process."""
    out, err, old = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["unmeasured", *map(str, arguments)]
    try:
        with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as leaving:
        code = leaving.code
    finally:
        sys.argv = old
    assert not ok or code == 0, err.getvalue()
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


KNOWN = ["id", "O1", "O2", "C1", "C2", "N1", "a:b", "x,y"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["O1:C2"], ["O1", "O2", "C1", "C2"]),
        (["O*", "N1"], ["O1", "O2", "N1"]),
        (["N1, O1:O2"], ["O1", "O2", "N1"]),
        (["a:b"], ["a:b"]),
        (["x,y"], ["x,y"]),
        (["O1 : O2"], ["O1", "O2"]),
    ],
)
def test_columns_are_chosen(patterns, expected):
    assert chosen_columns(patterns, KNOWN) == expected


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("C2:O1", "runs backwards"), ("O1:C9", "called 'C9', nor matches it"), ("q*", "called 'q\\*', nor matches")],
)
def test_columns_that_are_not_there(pattern, message):
    with pytest.raises(um.DataError, match=message):
        chosen_columns([pattern], KNOWN)


def test_reversing_changes_signs_and_nothing_else():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.integers(1, 6, (200, 3)).astype(float), columns=["a", "b", "c"])
    rows.iloc[0] = [1, 2, 5]
    made = prepared(rows, reverse=["b"])
    assert made.reversed_items == {"b": 6.0}
    np.testing.assert_allclose(made.frame["b"], 6 - rows["b"])
    assert made.frame[["a", "c"]].equals(rows[["a", "c"]])
    sign = np.diag([1, -1, 1])
    np.testing.assert_allclose(um.as_sample(made.frame).cov, sign @ um.as_sample(rows).cov @ sign)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    items = [("A", "B"), *[("A", f"a{i}") for i in range(1, 5)], *[("B", f"b{i}") for i in range(1, 5)]]
    truth = um.DAG.from_edges(items, latents=["A", "B"])
    rows = um.simulate.sample(um.simulate.realistic_parameters(truth, rng=1), 400, rng=2)
    clean = rows.apply(lambda column: np.digitize(column, column.quantile([0.2, 0.4, 0.6, 0.8])) + 1)
    clean.to_csv(folder / "clean.csv", index=False)
    coded = clean.copy()
    coded["a2"] = 6 - coded["a2"]
    coded.iloc[:5, 0] = 9
    coded.iloc[5:9, 3] = 99
    coded.insert(0, "id", np.arange(len(rows)))
    coded["mood"] = coded["b1"]
    coded.to_csv(folder / "coded.csv", index=False)
    (folder / "two.lav").write_text("A =~ a1 + a2 + a3 + a4\nB =~ b1 + b2 + b3 + b4\n")
    pasted = "Table 1\nCorrelations\n1. a\n2. b .5\n3. c .4 .45\n4. d .42 .4 .5\n"
    (folder / "pasted.txt").write_text(pasted)
    um.datasets.load("multitasking").frame().to_csv(folder / "matrix.csv")
    return folder


OPTIONS = ("--columns", "a1:b4", "--exclude", "id", "--na", "9,99", "--reverse", "a2")


def test_the_same_options_in_every_command(folder):
    found = json.loads(run("discover", "coded.csv", *OPTIONS, "--json", "--out", "r", cwd=folder).stdout)
    assert found["sample"]["names"] == [f"{x}{i}" for x in "ab" for i in range(1, 5)]
    notes = found["run"]["about"]["notes"]
    assert "Taken as missing: 9 answers with the code 9, 99." in notes
    assert "Reversed, answers taken from 6: 'a2'." in notes
    assert found["run"]["about"]["reversed_items"] == {"a2": 6.0}
    script = run("export", "r/result.json", "--to", "r", cwd=folder).stdout
    assert "c(9, 99)" in script
    assert 'rows[["a2"]] <- 6 - rows[["a2"]]' in script
    checked = json.loads(run("check", "coded.csv", *OPTIONS, "--json", cwd=folder, ok=False).stdout)
    assert checked["column_errors"] == []
    fits = {
        cor: json.loads(
            run("fit", "two.lav", "coded.csv", *OPTIONS[4:], "--cor", cor, "--json", cwd=folder, ok=False).stdout
        )
        for cor in ("auto", "pearson")
    }
    assert fits["auto"]["chi2"] != fits["pearson"]["chi2"]
    default = json.loads(run("fit", "two.lav", "coded.csv", *OPTIONS[4:], "--json", cwd=folder, ok=False).stdout)
    assert default["chi2"] == fits["auto"]["chi2"]
    compared = json.loads(run("compare", "two.lav", "coded.csv", *OPTIONS[4:], "--json", cwd=folder).stdout)
    assert compared["models"][0]["chi2"] == pytest.approx(fits["auto"]["chi2"])


def test_a_known_number_of_latents(folder):
    found = json.loads(run("discover", "clean.csv", "--n-latents", "2", "--json", cwd=folder, ok=False).stdout)
    latents = [x for x in found["graph"]["variables"] if x["role"] == "latent"]
    assert len(latents) == 2
    data = um.datasets.load("multitasking")
    search = um.LGES(n_latents=2).fit_cov(data.frame(), data.n_samples)
    assert len(search.graph_.latents) == 2
    with pytest.raises(um.UnmeasuredError, match="n_latents is 2, but the knowledge says 3 latents"):
        um.LGES(n_latents=2, knowledge=um.Knowledge(n_latents=3)).fit_cov(data.frame(), data.n_samples)


def test_check_reports_all_faults_at_once(folder):
    rows = pd.read_csv(folder / "clean.csv")
    rows["name"], rows["one"], rows["empty"], rows["again"] = "x", 1, np.nan, rows["a1"]
    rows["total"] = rows[["a1", "a2", "a3"]].sum(axis=1)
    rows.to_csv(folder / "faulty.csv", index=False)
    said = run("check", "faulty.csv", "--cor", "pearson", cwd=folder, ok=False)
    assert said.returncode == 1
    text = re.sub(r"\s+", " ", said.stdout)
    for fault in ("'name' hold text", "'empty' hold no value", "'one'. Leave them out", "'a1' and 'again'", "'total'"):
        assert fault in text, said.stdout
    checked = um.check(rows, cor="pearson")
    assert len(checked.column_errors) == 5
    assert not checked.ok
    assert set(checked.sample.names) >= {"a4", "b1", "b4"}


def test_a_matrix_without_n_is_told_to_give_it(folder):
    for file in ("pasted.txt", "matrix.csv"):
        said = run("discover", file, cwd=folder, ok=False)
        assert said.returncode == 2
        assert f"'{file}' holds a covariance or correlation matrix, not rows: give --n" in said.stderr
    assert run("fit", "two.lav", "clean.csv", cwd=folder, ok=False).returncode in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("discover", "matrix.csv", "--n", "1"), "--n must be at least 2; got 1.0."),
        (("discover", "clean.csv", "--na", "nine"), "--na takes numbers with commas between them"),
        (("discover", "matrix.csv", "--n", "202", "--na", "9"), "--na, --reverse and --sheet are for rows"),
        (("discover", "clean.csv", "--exclude", "a*,b*"), "No column is left"),
        (("discover", "clean.csv", "--reverse", "c1"), "No column that is analysed is called 'c1'"),
        (("discover", "clean.csv", "--n-latents", "0"), "--n-latents must be a whole number from 1"),
        (("export", "r/result.json", "--to", "word"), "There is no export 'word'"),
        (("export", "r/result.json", "--to", "html", "--data", "x.csv"), "--data is for --to r"),
    ],
)
def test_mistakes_are_said_in_options(folder, arguments, message):
    said = run(*arguments, cwd=folder, ok=False)
    assert said.returncode == 2
    assert message in said.stderr


def test_the_version(folder):
    assert run("--version").stdout == f"unmeasured {um.__version__}\n"


def test_a_name_with_blanks_keeps_the_model(folder):
    data = um.datasets.load("multitasking")
    um.write_report(um.LGES().fit_cov(data.frame(), data.n_samples), folder / "named")
    run("report", "named/result.json", "--name", "L1=Speed of work & more", "--quiet", cwd=folder)
    text = (folder / "named" / "model.lav").read_text()
    assert '# Speed_of_work_more stands for "Speed of work & more"' in text
    fitted = json.loads(run("fit", "named/model.lav", "matrix.csv", "--n", "202", "--json", cwd=folder).stdout)
    assert fitted["df"] == 23
    assert "Speed of work & more" in {row["lhs"] for row in fitted["parameters"]}


PYTHON = re.compile(
    r"\b(um\.|result_|LGES\(|n_samples|cov=|names=|repair=|header=|cor=|missing=|encoding=|pandas\.|math\.inf)"
)


@pytest.mark.parametrize(
    "sentence",
    [
        "n_samples must be at least 2; got 1.",
        "The first line holds numbers. Add a line of names, or say header=False (--no-header) if there is none; "
        "header=True (--header) takes these numbers as names.",
        "Variable number 3 of 4 has no name. Give it one, or names= for all.",
        "Drop one of them, or ask for the nearest matrix that is (repair=True).",
        "Columns 'a' hold numbers written as text. Turn them into numbers with pandas.to_numeric.",
        "Chi-square and BIC then find more structure than there is; compare with cor='spearman-normal'.",
        "n_samples is beyond 1e+15: nobody counted that far. math.inf: a population.",
        "is not text in utf-8. Name its encoding, such as encoding='latin-1' for older files.",
        "um.stability shows which items change, LGES(tolerance=0.05) finds latents that are more stable.",
        "Other partitions in result_.partitions: 2 (0.62) latents.",
        "and 3 more (result_.local_dependence)",
    ],
)
def test_sentences_of_the_library_become_those_of_the_command(sentence):
    assert not PYTHON.search(in_options(sentence))
