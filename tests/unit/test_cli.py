"""The command line through its real entry point, with good and bad input."""

from __future__ import annotations

import subprocess
import sys

import pytest

import unmeasured as um


def run(*arguments, cwd=None):
    # The console script calls main(); running it through the module keeps the interpreter the same.
    code = "import sys; from unmeasured.cli import main; sys.argv[0] = 'unmeasured'; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


def test_demo_prints_the_published_models_side_by_side():
    done = run("demo", "multitasking")
    assert done.returncode == 0, done.stderr
    for part in ("N = 202", "58.52", "61.44", "0.9647", "rmsea"):
        assert part in done.stdout


def test_datasets_are_listed():
    done = run("datasets")
    assert done.returncode == 0, done.stderr
    for name in um.datasets.available():
        assert name in done.stdout


def test_fit_reads_a_matrix_and_a_model(tmp_path):
    data = um.datasets.load("holzinger_swineford")
    data.frame().to_csv(tmp_path / "matrix.csv")
    (tmp_path / "model.lav").write_text("visual =~ x1 + x2 + x3\ntextual =~ x4 + x5 + x6\nspeed =~ x7 + x8 + x9\n")
    done = run("fit", "model.lav", "matrix.csv", "--n", "301", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "chi2 85.306 on 24 df" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo", "multitaskin"], "multitasking"),
        (["fit", "nowhere.lav", "matrix.csv"], "There is no file 'nowhere.lav'"),
        (["bench"], "Usage"),
    ],
)
def test_mistakes_are_one_sentence_and_never_a_trace(tmp_path, arguments, words):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode != 0
    assert words in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
