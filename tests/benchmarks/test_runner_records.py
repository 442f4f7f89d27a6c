"""Files of records, what is not ours among them; clustered standard errors; states of the code; numbers of `bench`."""

from __future__ import annotations

import math
import os
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import unmeasured as um
from benchmarks import experiment
from benchmarks.__main__ import main
from benchmarks.attempt import perform
from benchmarks.run_records import open_records, read_records
from benchmarks.state import code_alone, digest_of, files_behind, sources, state_of
from benchmarks.tables import clustered_error

RECORDS = Path(__file__).parents[2] / "benchmarks" / "records"
OURS = (RECORDS / "runtime.jsonl").read_bytes()

FOREIGN = {
    "json": b'{"my":"thesis"}',
    "json line": b'{"my":"thesis"}\n',
    "csv without a last newline": b"a,b\n1,2\n3,4",
    "text": "Meine Güte, 200 Seiten\n".encode(),
    "binary": bytes(range(256)) * 40,
    "brackets": b"[" * 200_000,
    "brackets on a line": b"[" * 200_000 + b"\n",
    "deep record": b'{"runs":"' + b"x" * 8 + b'","options":' + b"[" * 200_000 + b"\n",
    "one long line": b"x" * 3_000_000,
    "a name that is a list": b'{"runs":[]}\n',
    "not a number": b'{"runs":"a","seconds":NaN}\n',
    "ours, then text": OURS + b"and my own notes",
    "ours, then JSON": OURS + b'{"my":"thesis"}',
    "ours, spoilt": OURS.replace(b'"seconds":0', b'"seconds":"0', 1).replace(b',"f1"', b'","f1"', 1),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("through", ["file", "link"])
def test_a_file_that_is_not_ours_is_refused_and_stays_as_it_was(tmp_path, content, through):
    path = tmp_path / "precious.json"
    path.write_bytes(content)
    asked = path
    if through == "link":
        asked = tmp_path / "link.jsonl"
        asked.symlink_to(path)
    for use in (open_records, read_records):
        with pytest.raises(um.UnmeasuredError, match="is not a record of a run"):
            use(asked)
    assert path.read_bytes() == content
    assert asked.is_symlink() == (through == "link")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({"precious.json", asked.name})


def test_a_huge_file_is_refused_by_its_beginning(tmp_path):
    path = tmp_path / "huge.bin"
    with path.open("wb") as file:
        file.truncate(2**40)  # a terabyte of zeros that takes no place on the disk
    with pytest.raises(um.UnmeasuredError, match="Line 1 of"):
        open_records(path)
    assert path.stat().st_size == 2**40


def test_folders_links_to_nothing_and_devices_are_refused(tmp_path):
    with pytest.raises(um.UnmeasuredError, match="it is a folder"):
        open_records(tmp_path)
    nowhere = tmp_path / "link"
    nowhere.symlink_to(tmp_path / "nothing")
    with pytest.raises(um.UnmeasuredError, match="it is a link to nothing"):
        open_records(nowhere)
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(um.UnmeasuredError, match="it is not a file"):
        open_records(Path(os.devnull))


def test_an_empty_file_and_one_of_ours_are_taken(tmp_path):
    empty, ours = tmp_path / "empty.jsonl", tmp_path / "ours.jsonl"
    empty.touch()
    assert open_records(empty) == []
    assert empty.read_bytes() == b""
    ours.write_bytes(OURS)
    assert len(open_records(ours)) == 50
    assert ours.read_bytes() == OURS
    ours.write_bytes(OURS[:-30])  # killed while it wrote
    assert len(open_records(ours)) == 49
    assert ours.read_bytes() == OURS[: OURS[:-1].rindex(b"\n") + 1]


# -------------------------------------------------------------------------------------------------- standard errors


def brute_force(values: list[float], graphs: list[str]) -> float:
    """Every pair of runs on the same graph, one by one."""
    mean, n, n_graphs = np.mean(values), len(values), len(set(graphs))
    pairs = product(zip(values, graphs), repeat=2)
    total = sum((a - mean) * (b - mean) for (a, g), (b, h) in pairs if g == h)
    return math.sqrt(n_graphs / (n_graphs - 1) * total) / n


def test_records_with_earlier_names_of_options_are_of_the_same_tasks():
    options = {method.label: dict(method.options) for method in experiment.load("no-latents").methods}
    assert options["GIN (released)"] == {"corrected": False, "cache_kernels": True}
    tasks = [record.task for record in read_records(RECORDS / "no-latents.jsonl")]
    assert all(task.options == options[task.method] for task in tasks if task.constructor == "GIN")
    assert {"GIN (released)", "GIN (mended)"} <= {task.method for task in tasks}


@pytest.mark.parametrize("seed", range(5))
def test_standard_errors_are_clustered_by_graph(seed):
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(seed)
    graphs = [f"g{i}" for i in rng.integers(0, 7, size=40)]
    shift = {graph: rng.normal() for graph in graphs}
    values = [shift[graph] + rng.normal() for graph in graphs]
    error = clustered_error(values, graphs)
    assert error == pytest.approx(brute_force(values, graphs), rel=1e-12)
    codes = np.unique(graphs, return_inverse=True)[1]
    robust = sm.OLS(values, np.ones(40)).fit(cov_type="cluster", cov_kwds={"groups": codes})
    assert error == pytest.approx(float(robust.bse[0]), rel=1e-9)


def test_special_cases_of_the_clustered_error():
    values = [0.1, 0.5, 0.4, 0.9]
    alone = clustered_error(values, list("abcd"))
    assert alone == pytest.approx(np.std(values, ddof=1) / 2)
    balanced = clustered_error([*values, *values], [*"abcd", *"abcd"])
    assert balanced == pytest.approx(alone)  # seeds that repeat a graph's value say nothing new
    assert math.isnan(clustered_error(values, ["a"] * 4))
    assert math.isnan(clustered_error([], []))


def test_the_clustered_error_is_right_on_average():
    """On simulated graphs of unequal numbers of runs its mean square is the variance of the mean; the usual is not."""
    rng = np.random.default_rng(0)
    graphs = [f"g{i}" for i in range(20) for _ in range(5 + i % 3)]
    codes = np.unique(graphs, return_inverse=True)[1]
    means, ours, usual = [], [], []
    for _ in range(400):
        values = 0.8 + 0.05 * rng.normal(size=20)[codes] + 0.05 * rng.normal(size=len(graphs))
        means.append(values.mean())
        ours.append(clustered_error(list(values), graphs) ** 2)
        usual.append(values.var(ddof=1) / len(values))
    variance = np.var(means, ddof=1)
    assert np.mean(ours) == pytest.approx(variance, rel=0.2)
    assert np.mean(usual) < 0.5 * variance


# ----------------------------------------------------------------------------------------------- states of the code


def edited(name: str, extra: str) -> dict[str, str]:
    return {**sources(), name: sources()[name] + extra}


@pytest.mark.parametrize(
    ("method", "file", "is_marked"),
    [
        ("LGES", "estimators/lges.py", True),
        ("LGES", "kernels/likelihood.py", True),
        ("LGES", "data/sample.py", True),
        ("LGES", "knowledge/rules.py", True),
        ("LGES", "peers/fofc.py", False),
        ("LGES", "output/report/html.py", False),
        ("LGES", "diagram/layout.py", False),
        ("FOFC", "peers/fofc.py", True),
        ("FOFC", "peers/blocks.py", True),
        ("FOFC", "models/fit.py", True),
        ("FOFC", "estimators/lges.py", False),
        ("FOFC", "peers/gin.py", False),
        ("GIN", "peers/gin.py", True),
        ("GIN", "peers/base.py", True),
        ("GIN", "kernels/likelihood.py", False),
        ("GIN", "estimators/lges.py", False),
        ("RLCD", "estimators/lges.py", False),
        ("ExactSearch", "kernels/likelihood.py", True),
        ("benchmarks.real:Published", "models/fit.py", True),
    ],
)
def test_a_change_marks_the_methods_it_can_change(method, file, is_marked):
    assert (digest_of(method, edited(file, "\nCHANGED = 1\n")) != state_of(method)) == is_marked
    assert digest_of(method, edited(file, "\n\n# words\n")) == state_of(method)


def test_code_without_words():
    text = '"""Docs."""\n\n\nclass A:\n    """More."""\n\n    x = "# no comment"  # a comment\n\n'
    text += '    def f(self):\n        return f"{self}"\n'
    assert code_alone(text) == 'class A:\n    x = "# no comment"\n    def f(self):\n        return f"{self}"'


def test_every_method_of_an_experiment_has_a_state():
    constructors = {method.constructor for name in experiment.available() for method in experiment.load(name).methods}
    assert all(len(state_of(constructor)) == 12 for constructor in constructors)
    assert state_of("fakes:Oracle") == "" == state_of("NoSuchMethod")
    assert files_behind("NoSuchMethod", sources()) == ()


def test_records_of_a_method_that_needs_no_fits_repeat():
    """Rows, method and comparison with the truth are what they were when the records were made."""
    held = {record.task.key: record for record in read_records(RECORDS / "runtime.jsonl")}
    for assignment in experiment.load("runtime").restricted(["FOFC, clusters only"]).assignments[:3]:
        kept, made = held[assignment.task.key].outcome, perform(assignment).outcome
        assert (made.f1, made.shd, made.shd_paper, made.latents_found) == pytest.approx(
            (kept.f1, kept.shd, kept.shd_paper, kept.latents_found)
        )


# -------------------------------------------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    "arguments",
    [
        ["starts", "--models", "0"],
        ["starts", "--starts", "1"],
        ["starts", "--seed", "-1"],
        ["batch", "--fits", "0"],
        ["batch", "--threads", "0"],
        ["calibration", "--graphs", "0"],
        ["calibration", "--graphs", "21"],
        ["calibration", "--replicates", "0"],
        ["calibration", "--samples", "3"],
        ["calibration", "--n-jobs", "0"],
        ["calibration", "--seed", "-5"],
        ["fit", "--repeats", "0"],
        ["population", "--graphs", "0"],
        ["population", "--seed", "-1"],
        ["large-sample", "--samples", "0"],
        ["large-sample", "--samples", "99999999999"],
        ["large-sample", "--n-jobs", "-2"],
        ["large-sample", "--graphs", "x"],
        ["knowledge", "--samples", "0"],
        ["knowledge", "--samples", "150"],
        ["knowledge", "--seeds", "0"],
        ["knowledge", "--seeds", "11"],
        ["table1", "--seeds", "0"],
        ["table1", "--n-jobs", "0"],
        ["all", "--seeds", "-1"],
        ["all", "--method", "LGES (bik)"],
        ["table2", "--n-jobs", "-3"],
        ["permutations", "--samples", "7"],
        ["permutations", "--permutations", "0"],
        ["permutations", "--criterion", "x"],
        ["time-limits", "--sizes", "inf"],
        ["time-limits", "--limits", "nan"],
    ],
    ids=" ".join,
)
def test_numbers_that_make_no_sense_are_a_sentence(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("unmeasured: ")
    assert err.rstrip().endswith((".", "--help."))
    assert list(tmp_path.iterdir()) == []
