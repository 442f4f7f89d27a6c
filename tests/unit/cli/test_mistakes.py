"""Mistakes at the command line: each a sentence and exit code 2, nothing lost, nothing written."""

from __future__ import annotations

import contextlib
import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.cli.commands import main
from unmeasured.output.report.run import run_of
from unmeasured.remarks import distrust


def run(*arguments, cwd):
    """Exit code and standard error of a command, called in this process."""
    out, err, old = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["unmeasured", *map(str, arguments)]
    try:
        with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as leaving:
        return leaving.code, out.getvalue(), err.getvalue()
    finally:
        sys.argv = old


@pytest.fixture(scope="module")
def good():
    """A result and its data."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame((rng.normal(size=(80, 1)) + 0.7 * rng.normal(size=(80, 5))).round(3), columns=list("abcde"))
    return rows, json.loads(run_of(um.LGES().fit(rows)).to_json())


@pytest.fixture
def folder(good, tmp_path):
    rows, result = good
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.corr().to_csv(tmp_path / "matrix.csv")
    (tmp_path / "result.json").write_text(json.dumps(result))
    (tmp_path / "brackets").write_text("[" * 200_000)
    (tmp_path / "brackets.json").write_text("[" * 200_000)
    (tmp_path / "nul.csv").write_text("a\0,b,c\n1,2,3\n2,1,4\n3,3,1\n4,1,1\n")
    (tmp_path / "fixed.lav").write_text("f =~ 1*a\n")
    (tmp_path / "headless.csv").write_text("3,4,2\n4,4,1\n5,2,2\n1,2,5\n")
    (tmp_path / "twice.csv").write_text("a,a,b\n1,2,3\n2,1,4\n3,3,1\n4,1,1\n")
    (tmp_path / "precious.json").write_text('{"my":"thesis"}')
    return tmp_path


MISTAKES = {
    **{
        f"{command} {option} {value}": ([command, "rows.csv", option, value], f"{option} must be ")
        for command, options in {
            "discover": {
                "--penalty": ("0", "-1", "nan", "inf"),
                "--tolerance": ("-1", "0.9", "nan"),
                "--cor": ("", "nonsense"),
                "--missing": ("", "nonsense"),
                "--max-group-size": ("0", "-1"),
                "--n-jobs": ("0", "-2"),
                "--time-limit": ("0", "-1", "nan"),
                "--n-latents": ("0", "-1"),
                "--max-unpacked": ("0", "-1", "nan"),
            },
            "stability": {
                "--penalty": ("0",),
                "--replicates": ("0", "-1"),
                "--method": ("", "nonsense"),
                "--n-jobs": ("0",),
                "--seed": ("-1",),
                "--max-unpacked": ("0",),
            },
            "check": {"--cor": ("", "nonsense"), "--missing": ("nonsense",), "--max-unpacked": ("nan",)},
            "penalty-path": {"--max-group-size": ("0",), "--cor": ("nonsense",)},
        }.items()
        for option, values in options.items()
        for value in values
    },
    "a tolerance in words": (["discover", "rows.csv", "--tolerance", "some"], "--tolerance is auto or an RMSEA"),
    "a seed of nothing": (["discover", "rows.csv", "--seed", "3"], "--seed is the seed of --holdout"),
    "a sheet of text": (["discover", "rows.csv", "--sheet", "first"], "--sheet is for files of Excel; 'rows.csv' is"),
    "a picture's option": (["export", "result.json", "--to", "json", "--r2"], "--view, --style and --r2 are for pict"),
    "a share above one": (["stability", "rows.csv", "--threshold", "2"], "--threshold is a part of the replicates"),
    "a split of nothing": (["discover", "rows.csv", "--holdout", "0"], "between 0 and 1, such as 0.5; got 0"),
    "a NUL in a header": (["discover", "nul.csv"], "NUL"),
    "a NUL in a header, checked": (["check", "nul.csv"], "NUL"),
    "brackets for a result": (["export", "brackets.json"], "nested too deeply"),
    "brackets for a report": (["report", "brackets.json"], "nested too deeply"),
    "brackets for a model": (["fit", "brackets.json", "rows.csv"], "nested too deeply"),
    "brackets for records": (["stability", "rows.csv", "--replicates", "1", "--records", "brackets"], "not a record"),
    "a thesis for records": (["stability", "rows.csv", "--replicates", "1", "--records", "precious.json"], "not a rec"),
    "a folder for records": (["stability", "rows.csv", "--replicates", "1", "--records", "."], "a folder"),
    "rows for records": (["stability", "rows.csv", "--replicates", "1", "--records", "rows.csv"], "not a record"),
    "no processes": (["stability", "rows.csv", "--replicates", "1", "--n-jobs", "0"], "--n-jobs"),
    "everything fixed": (["fit", "fixed.lav", "rows.csv"], "no free parameter"),
    "simulate nowhere": (["simulate", ""], "name of a file"),
    "simulate into a folder": (["simulate", "."], "name of a file"),
    "simulate below a file": (["simulate", "rows.csv/x.csv"], "could not be written"),
    "no header": (["discover", "headless.csv"], "is it a row of data"),
    "repeated names": (["discover", "twice.csv"], "several columns called 'a'"),
    "a report below a file": (["discover", "rows.csv", "--out", "rows.csv/out"], "could not be written"),
    "an export over a folder": (["export", "result.json", "--out", "."], "could not be written"),
    "a picture below a file": (["export", "result.json", "--to", "svg", "--out", "rows.csv/a.svg"], "could not be"),
    "an export over its result": (["export", "result.json", "--to", "r", "--out", "result.json"], "would be lost"),
    "effects over their result": (["effects", "result.json", "--out", "result.json"], "would be lost"),
    "scores over their model": (["scores", "result.json", "rows.csv", "--out", "result.json"], "would be lost"),
    "a folder for a result": (["export", "."], "."),
}


@pytest.mark.parametrize(("words", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_a_sentence_and_nothing_is_lost(words, sentence, folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, out, err = run(*words, cwd=folder)
    assert code == 2, (out, err)
    assert sentence in err
    assert "Traceback" not in err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_records_that_are_not_ours_do_not_wait_for_a_search(folder, monkeypatch):
    monkeypatch.setattr(um.LGES, "fit", lambda *_: pytest.fail("searched before the file was read"))
    words = ["stability", "rows.csv", "--replicates", "1", "--records", "precious.json"]
    assert run(*words, cwd=folder)[0] == 2
    (folder / "cut.jsonl").write_text('{"replicate": 0, "obser')  # ours, cut off: read again after the search
    before = (folder / "cut.jsonl").read_bytes()
    with pytest.raises(pytest.fail.Exception):
        run(*words[:-1], "cut.jsonl", cwd=folder)
    assert (folder / "cut.jsonl").read_bytes() == before


def _set(path, value):
    def damage(record):
        *above, last = path
        for key in above:
            record = record[key]
        record[last] = value

    return damage


DAMAGE = {
    "check": _set(["check"], 0),
    "check of numbers": _set(["check"], [1]),
    "check without words": _set(["check"], [{"topic": "x", "ok": True, "text": None}]),
    "covariance not positive definite": _set(["sample", "cov", 0, 1], 1e6),
    "covariance of text": _set(["sample", "cov", 0, 0], "x"),
    "covariance of another size": _set(["sample", "cov"], [[1.0]]),
    "no variance": _set(["sample", "cov"], np.zeros((5, 5)).tolist()),
    "names of others": _set(["sample", "names", 0], "z"),
    "a name with a NUL": _set(["graph", "variables", 0, "name"], "\0"),
    "n": _set(["sample", "n"], "many"),
    "n of none": _set(["sample", "n"], 0),
    "remarks": _set(["remarks"], 5),
    "remarks of numbers": _set(["remarks"], [5]),
    "severities": _set(["severities"], [7]),
    "x": _set(["solution", "x"], [1.0]),
    "x of text": _set(["solution", "x", 0], "x"),
    "end": _set(["solution", "end"], 17),
    "count": _set(["count"], "x"),
    "options": _set(["options"], 5),
    "named_latents": _set(["named_latents"], [1]),
    "runners": _set(["runners"], 5),
    "run": _set(["run"], 5),
    "about": _set(["run", "about"], {}),
    "trace": _set(["run", "trace"], [{}]),
    "member": _set(["member"], 5),
    "graph of nothing": _set(["graph", "variables"], []),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("command", ["export", "report"])
def test_a_damaged_result_is_a_sentence(damage, command, good, folder):
    record = json.loads(json.dumps(good[1]))
    damage(record)
    (folder / "result.json").write_text(json.dumps(record))
    code, out, err = run(command, "result.json", cwd=folder)
    assert code == 2, (out, err)
    assert "Traceback" not in err
    assert err.startswith("unmeasured: ")
    assert not (folder / "report.html").exists()


def test_files_without_a_header_are_read_when_told(folder):
    code, out, _ = run("check", "headless.csv", "--no-header", "--cor", "pearson", cwd=folder)
    assert code == 1
    assert "3 variables, 4 rows" in out


def test_the_screen_says_where_the_rest_of_the_remarks_is(folder, monkeypatch):
    many = tuple(f"Note number {i}." for i in range(9))
    prepared = um.Sample.from_rows.__func__
    monkeypatch.setattr(um.Sample, "from_rows", classmethod(lambda cls, *a, **k: _with(prepared(cls, *a, **k), many)))
    _, out, _ = run("discover", "rows.csv", "--out", "run", cwd=folder)
    assert "- Not to be trusted." in out
    assert "more notes: see the remarks in run/report.html" in out
    _, out, _ = run("discover", "rows.csv", cwd=folder)
    assert "more notes: see the report (--out FOLDER)" in out
    assert "Not to be trusted." in (folder / "run" / "report.html").read_text()


def _with(sample, notes):
    from dataclasses import replace

    return replace(sample, remarks=(*notes, distrust("Not to be trusted.")))
