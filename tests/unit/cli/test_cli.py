"""The command line through its real entry point, with good and bad input."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.cli.commands import main

# The console script calls main() of unmeasured_command, which calls this one, and so do we: here in this process,
# and where a process matters, in one of its own.
CODE = "import sys; from unmeasured_command import main; sys.argv[0] = 'unmeasured'; main()"
THREE = "visual =~ x1 + x2 + x3\ntextual =~ x4 + x5 + x6\nspeed =~ x7 + x8 + x9\n"


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


def heed_ctrl_c():
    """A process that a shell started in the background ignores Ctrl-C, and so would those it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(*arguments, **options):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    if sys.platform != "win32":
        options.setdefault("preexec_fn", heed_ctrl_c)
    return subprocess.Popen([sys.executable, "-c", CODE, *arguments], **pipes, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files to work on: matrix.csv (N = 301) with three.lav and one.lav, rows.csv, and a run in ``run``."""
    folder = tmp_path_factory.mktemp("cli")
    um.datasets.load("holzinger_swineford").frame().to_csv(folder / "matrix.csv")
    (folder / "three.lav").write_text(THREE)
    (folder / "one.lav").write_text("g =~ x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9\n")
    items = [("A", "B"), *[("A", f"a{i}") for i in range(4)], *[("B", f"b{i}") for i in range(4)]]
    truth = um.DAG.from_edges(items, latents=["A", "B"])
    rows = um.simulate.sample(um.simulate.realistic_parameters(truth, rng=1), 400, rng=2)
    rows.insert(0, "name", [f"person {i}" for i in range(len(rows))])
    rows.to_csv(folder / "rows.csv", index=False)
    done = run(
        "discover",
        "rows.csv",
        "-c",
        "a*",
        "-c",
        "b?",
        "--out",
        "run",
        "--published",
        "theirs.lav",
        cwd=folder,
        ok=False,
    )
    assert "There is no file 'theirs.lav'" in done.stderr
    (folder / "theirs.lav").write_text("f =~ a0 + a1 + a2 + a3 + b0 + b1 + b2 + b3\n")
    done = run("discover", "rows.csv", "-c", "a*,b?", "--out", "run", "--published", "theirs.lav", cwd=folder)
    (folder / "discover.txt").write_text(done.stdout)
    return folder


# Discovery --------------------------------------------------------------------------------------------------


def test_discover_prints_a_screen_and_writes_a_report(folder):
    text = (folder / "discover.txt").read_text()
    assert len(text.splitlines()) <= 45
    for words in ("2 latent variables behind 8 observed variables", "What measures what", "RMSEA", "run/report.html"):
        assert words in text
    page = (folder / "run" / "report.html").read_text("utf-8")
    for words in ("rows.csv", "unmeasured discover rows.csv", "theirs", "400"):
        assert words in page
    result = um.Result.from_json((folder / "run" / "result.json").read_text("utf-8"))
    assert len(result.graph.latent_groups) == 2
    assert result.method == "LGES()"


def test_discover_gives_what_the_library_gives(folder):
    done = run("discover", "matrix.csv", "--n", 301, "--json", "--plain-names", "--max-group-size", 1, cwd=folder)
    data = um.datasets.load("holzinger_swineford")
    search = um.LGES(max_group_size=1).fit_cov(data.frame(), 301)
    found = um.Result.from_json(done.stdout)
    assert found.graph == search.graph_
    assert found.sem.chi2 == pytest.approx(search.sem_.chi2, rel=1e-9)


def test_discover_is_told_what_is_known(folder):
    (folder / "known.toml").write_text('required = ["B -> A"]\n[groups]\nA = ["a0", "a1"]\nB = ["b0"]\n')
    done = run("discover", "rows.csv", "-c", "a*,b?", "--knowledge", "known.toml", "--out", "told", cwd=folder)
    assert "B → A" in done.stdout
    page = (folder / "told" / "report.html").read_text("utf-8")
    for words in ("Knowledge given: A is measured by a0, a1; B is measured by b0; B → A is required.", "follows from"):
        assert words in page
    result = um.Result.from_json((folder / "told" / "result.json").read_text("utf-8"))
    assert result.graph.latent_groups == (("A",), ("B",))
    assert result.graph.known == (("B", "A"),)


def test_discover_can_be_quiet(folder):
    done = run("discover", "matrix.csv", "--n", 301, "--columns", "x1,x2,x3,x4,x5,x6", "--quiet", cwd=folder)
    assert done.stdout == ""


@pytest.mark.parametrize(
    "command", [("demo",), ("discover", "x.csv"), ("report", "r.json"), ("scores", "r.json", "x.csv")]
)
def test_an_empty_name_for_output_is_refused(tmp_path, command):
    """`--out "$FOLDER"` with a variable that is not set would write into the present folder."""
    done = run(*command, "--out", "", cwd=tmp_path, ok=False)
    assert done.returncode == 2
    assert "'--out' / '-o': it is empty. Give a name, or . for this folder." in done.stderr
    assert not list(tmp_path.iterdir())


def test_discover_without_out_says_that_nothing_was_written(folder):
    done = run("discover", "matrix.csv", "--n", 301, "-c", "x[1-6]", "--penalty", 1.5, cwd=folder)
    assert "LGES(penalty=1.5)" in done.stdout
    assert "--out FOLDER writes a report" in done.stdout


def test_ordinal_items_with_holes(folder):
    rows = pd.read_csv(folder / "rows.csv").drop(columns="name")
    items = rows.apply(lambda x: np.digitize(x, [-0.8, 0.0, 0.8]) + 1.0)
    items.iloc[::7, 2] = np.nan
    items.to_csv(folder / "items.csv", index=False)
    done = run("discover", "items.csv", "--cor", "auto", "--missing", "pairwise", "--json", cwd=folder)
    record = json.loads(done.stdout)
    assert any("polychoric" in note for note in record["run"]["about"]["notes"])


def test_no_latents_is_an_answer_with_its_own_code(tmp_path):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 4)), columns=list("abcd"))
    rows.to_csv(tmp_path / "noise.csv", index=False)
    done = run("discover", "noise.csv", cwd=tmp_path, ok=False)
    assert done.returncode == 1
    assert "No latent variables were found" in done.stdout


def test_demo_searches_and_compares(tmp_path):
    done = run("demo", "multitasking", cwd=tmp_path)
    for part in ("N = 202", "45.00", "58.52", "61.44", "0.9647", "rmsea", "unmeasured-multitasking/report.html"):
        assert part in done.stdout
    assert "himi_chain" in (tmp_path / "unmeasured-multitasking" / "report.html").read_text("utf-8")
    done = run("demo", "multitasking", "--json", "--out", "other", cwd=tmp_path)
    assert json.loads(done.stdout)["run"]["comparison"]["rows"][0]["model"] == "found"
    assert run("demo", "multitasking", "--quiet", "--out", "other", cwd=tmp_path).stdout == ""


def test_the_report_is_made_again(folder, tmp_path):
    old = next(iter(um.Result.from_json((folder / "run" / "result.json").read_text("utf-8")).graph.latents))
    run("report", folder / "run" / "result.json", "--out", tmp_path, "--name", f"{old}=Zeal", "--title", "Anew")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<title>Anew</title>" in page
    assert "Zeal" in page
    assert "theirs" in page
    done = run("report", "run/result.json", "--published", "theirs.lav", cwd=folder)
    assert done.stdout.startswith("Report: run/report.html")


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("unmeasured.estimators.lges.discover", "interrupted before a first model was found"),
        (
            "unmeasured.search.warm.are_on_disk",
            "discover was stopped by Ctrl-C before it was done. No file is left",
        ),
    ],
)
def test_an_interrupt_is_one_sentence(folder, monkeypatch, where, words):
    monkeypatch.setattr(where, interrupt)
    done = run("discover", "matrix.csv", "--n", 301, cwd=folder, ok=False)
    assert done.returncode == 130
    assert done.stderr.startswith(f"unmeasured: {words}")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("where", "left_out", "page"),
    [
        ("unmeasured.output.report.html.diagram_data", "pictures and the page", "result.json"),
        ("unmeasured.output.report.run.exact_answer", "the second view of the report", "report.html"),
        ("unmeasured.output.report.run.compare_models", "the comparison with other models", "report.html"),
    ],
)
def test_ctrl_c_after_the_search_costs_the_answer_nothing(folder, tmp_path, monkeypatch, where, left_out, page):
    monkeypatch.setattr(where, interrupt)
    asked = ("discover", "matrix.csv", "--n", 301, "--tolerance", 0.05, "--published", "three.lav")
    done = run(*asked, "--out", tmp_path, cwd=folder, ok=False)
    assert done.returncode == 130
    assert "latent variables behind 9 observed variables" in done.stdout.splitlines()[1]
    assert f"{tmp_path / page}" in done.stdout
    assert done.stderr == f"unmeasured: Ctrl-C came after the search; left out: {left_out}.\n"
    assert um.Result.from_json((tmp_path / "result.json").read_text()).graph.latents
    assert (tmp_path / "report.html").exists() == (page == "report.html")


def test_an_answer_that_cannot_be_written_is_shown(folder, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("unmeasured.files._put", full)
    done = run("discover", "matrix.csv", "--n", 301, "--out", tmp_path, cwd=folder, ok=False)
    assert done.returncode == 2
    assert "latent variables behind 9 observed variables" in done.stdout.splitlines()[0]
    assert "Report:" not in done.stdout
    assert done.stderr.startswith(f"unmeasured: '{tmp_path}' could not be written: No space left on device.")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_the_package_loads_is_one_sentence_too(tmp_path):
    (tmp_path / "pandas.py").write_text("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    process = start("datasets", env={**os.environ, "PYTHONPATH": path})
    said, complained = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == ""
    assert complained.startswith("unmeasured: datasets was stopped by Ctrl-C before it was done.")
    assert len(complained.splitlines()) == 1


def test_an_interrupt_before_the_package_is_there_says_what_was_stopped(tmp_path):
    (tmp_path / "typer.py").write_text("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    process = start("discover", "rows.csv", env={**os.environ, "PYTHONPATH": path})
    said, complained = process.communicate(timeout=60)
    assert process.returncode == 130
    loading = "unmeasured: stopped by Ctrl-C while the package was loading. Nothing was read or written.\n"
    assert (said, complained) == ("", loading)


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent otherwise there")
def test_ctrl_c_keeps_the_best_so_far(tmp_path):
    matrix = um.datasets.load("teacher_burnout").frame()
    matrix.to_csv(tmp_path / "m.csv")
    code = (
        "import os, signal, unmeasured.search.measurement.refine as refine\n"
        "best_parents = refine.Refinement.best_parents\n"
        "def stop_after(self, *given, **options):\n"
        "    found = best_parents(self, *given, **options)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return found\n"
        "refine.Refinement.best_parents = stop_after\n"
    )
    asked = ["discover", "m.csv", "--n", "599", "-c", "EE*,DP*,PA*", "--out", "run"]
    process = subprocess.run(
        [sys.executable, "-c", code + CODE, *asked],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=heed_ctrl_c,
    )
    assert process.returncode == 130, process.stderr
    assert process.stdout.startswith("Interrupted after")
    assert "best model found so far" in process.stdout.splitlines()[0]
    assert (tmp_path / "run" / "report.html").exists()


# Models -----------------------------------------------------------------------------------------------------


def test_fit_reads_a_matrix_and_a_model(folder):
    done = run("fit", "three.lav", "matrix.csv", "--n", "301", cwd=folder)
    assert "chi2 85.306 on 24 df" in done.stdout
    record = json.loads(run("fit", "three.lav", "matrix.csv", "--n", "301", "--json", cwd=folder).stdout)
    assert record["df"] == 24
    assert record["parameters"][0]["lhs"] == "visual"


def test_fit_needs_only_the_columns_of_the_model(folder):
    assert "on 20 df" in run("fit", "theirs.lav", "rows.csv", cwd=folder).stdout
    assert "df, p" in run("fit", "run/result.json", "rows.csv", cwd=folder).stdout


def test_a_fit_says_with_options_what_lavaan_would_have_done(tmp_path):
    rng = np.random.default_rng(0)
    f = rng.normal(size=(200, 1))
    rows = pd.DataFrame(0.7 * f + rng.normal(size=(200, 5)), columns=["x1", "x2", "x3", "y1", "y2"])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "model.lav").write_text("f =~ x1 + 0.8*x2 + x3; y1 ~ f; y2 ~ f", "utf-8")
    out = run("fit", "model.lav", "rows.csv", cwd=tmp_path).stdout
    assert "Note: Outcomes have uncorrelated residuals here. lavaan::sem frees 'y1 ~~ y2'" in out
    assert "Use --correlate-outcomes for that." in out
    assert "Use --first-indicator for that." in out
    told = run("fit", "model.lav", "rows.csv", "--correlate-outcomes", "--first-indicator", "--json", cwd=tmp_path)
    assert json.loads(told.stdout)["notes"] == []


def test_a_fit_that_is_not_proper_has_its_own_code(tmp_path):
    cov = [[1.0, 0.8, 0.8], [0.8, 1.0, 0.5], [0.8, 0.5, 1.0]]
    pd.DataFrame(cov, index=list("abc"), columns=list("abc")).to_csv(tmp_path / "m.csv")
    (tmp_path / "m.lav").write_text("f =~ a + b + c")
    done = run("fit", "m.lav", "m.csv", "--n", 100, "--json", cwd=tmp_path, ok=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["admissible"] is False


def test_compare_sets_models_side_by_side(folder):
    done = run("compare", "three.lav", "one.lav", "matrix.csv", "--n", 301, cwd=folder)
    assert "- one in three: chi-square" in done.stdout
    record = json.loads(run("compare", "three.lav", "one.lav", "matrix.csv", "--n", 301, "--json", cwd=folder).stdout)
    assert [row["model"] for row in record["models"]] == ["three", "one"]
    done = run("compare", "theirs.lav", "run/result.json", "rows.csv", cwd=folder)
    assert "result" in done.stdout


def test_check_answers_by_its_code(folder, tmp_path):
    assert "the data are suitable for a search" in run("check", "matrix.csv", "--n", 301, cwd=folder).stdout
    few = pd.read_csv(folder / "rows.csv").drop(columns="name").head(30)
    few.to_csv(tmp_path / "few.csv", index=False)
    done = run("check", "few.csv", "--json", cwd=tmp_path, ok=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["ok"] is False


# Data and exports -------------------------------------------------------------------------------------------


def test_simulate_repeats_and_keeps_the_truth(tmp_path):
    for name in ("one.csv", "two.csv"):
        run("simulate", name, "--latents", 2, "--observed", 8, "--samples", 50, "--seed", 5, cwd=tmp_path)
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()
    assert pd.read_csv(tmp_path / "one.csv").shape == (50, 8)
    truth = json.loads((tmp_path / "one.truth.json").read_text())
    assert truth["kind"] == "dag"


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("lavaan", "=~"),
        ("semopy", "=~"),
        ("dot", "graph"),
        ("dagitty", "dag"),
        ("graphml", "<graphml"),
        ("gml", "graph"),
        ("tetrad", "Graph Nodes"),
        ("json", '"cpdag"'),
    ],
)
def test_export_to_the_screen(folder, to, words):
    assert words in run("export", "run/result.json", "--to", to, cwd=folder).stdout


def test_export_to_files(folder, tmp_path):
    for ending, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        path = tmp_path / f"picture.{ending}"
        run("export", "run/result.json", "--to", ending, "--out", path, "--view", "latents", "--r2", cwd=folder)
        assert path.read_bytes().startswith(start)
    run("export", "run/result.json", "--out", tmp_path / "model.lav", cwd=folder)
    assert "=~" in (tmp_path / "model.lav").read_text()


def test_datasets_are_listed_and_printed(tmp_path):
    listed = run("datasets").stdout
    for name in um.datasets.available():
        assert name in listed
    (tmp_path / "m.csv").write_text(run("datasets", "multitasking").stdout)
    pd.testing.assert_frame_equal(um.read_matrix(tmp_path / "m.csv"), um.datasets.load("multitasking").frame())


def test_datasets_for_scripts():
    listed = json.loads(run("datasets", "--json").stdout)
    assert listed["multitasking"]["n_samples"] == 202
    assert set(listed) == set(um.datasets.available())


@pytest.mark.parametrize(
    "asked",
    [
        ["check", "matrix.csv", "--n", "301"],
        ["fit", "three.lav", "matrix.csv", "--n", "301"],
        ["report", "run/result.json"],
        ["simulate", "drawn.csv", "--samples", "20"],
    ],
)
def test_a_quiet_command_prints_nothing(folder, asked):
    assert run(*asked, cwd=folder).stdout != ""
    done = run(*asked, "--quiet", cwd=folder)
    assert (done.stdout, done.stderr) == ("", "")


# Mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo", "multitaskin"], "did you mean 'multitasking'"),
        (["fit", "nowhere.lav", "matrix.csv"], "There is no file 'nowhere.lav'"),
        (["fit", "three.lav", "rows.csv"], "'x1' is neither a variable of the data nor a latent"),
        (["discover", "nowhere.csv"], "There is no file 'nowhere.csv'"),
        (["discover", "rows.csv"], "name"),
        (["discover", "rows.csv", "-c", "zz*"], "No column is called 'zz*'"),
        (["discover", "rows.csv", "-c", "a*", "--cor", "kendall"], "cor must be one of"),
        (["discover", "rows.csv", "-c", "a*", "--penalty", "-1"], "penalty must be a positive number"),
        (
            ["discover", "rows.csv", "-c", "a*", "--time-limit", "0"],
            "--time-limit must be a positive number of seconds; got 0.0",
        ),
        (["discover", "matrix.csv", "--n", "many"], "--n"),
        (["discover", "rows.csv", "-c", "a*", "--knowledge", "none.toml"], "Knowledge cannot be read from 'none.toml'"),
        (["discover", "rows.csv", "-c", "a*", "--knowledge", "theirs.lav"], "'b0' is not a variable of the data"),
        (["discover", "matrix.csv", "--n", "301", "--cor", "polychoric"], "cor and missing say what to make of rows"),
        (["discover", "three.lav"], "Files of type '.lav' are not read here"),
        (["discover", "--colour"], "--colour"),
        (["compare", "three.lav"], "Missing argument"),
        (["export", "run/result.json", "--to", "lavan"], "did you mean 'lavaan'"),
        (["export", "three.lav"], "This is not JSON"),
        (["export", "run/result.json", "--to", "svg", "--view", "all"], "view must be 'auto', 'full' or 'latents'"),
        (["export", "run/result.json", "--to", "svg", "--style", "pink"], "style must be 'colour' or 'print'"),
        (["report", "run/result.json", "--name", "Zeal"], "--name takes old=new"),
        (["report", "run/result.json", "--name", "a=b"], "'a'"),
        (["simulate", "nowhere/rows.csv"], "nowhere"),
        (["simulate", "rows2.csv", "--observed", "2"], "observed"),
        (["datasets", "iris"], "There is no bundled data set 'iris'"),
        (["fly"], "No such command 'fly'"),
    ],
)
def test_mistakes_are_one_sentence(folder, arguments, words):
    done = run(*arguments, cwd=folder, ok=False)
    assert done.returncode == 2
    assert words in done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("unmeasured: ")
    assert done.stdout == "" or arguments[0] == "demo"


COMMANDS = ["", "discover", "demo", "report", "fit", "compare", "check", "simulate", "export", "datasets"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command):
    text = run(*command.split(), "--help").stdout
    assert "Usage: unmeasured" in text
    assert not command or f"Example: unmeasured {command}" in text


def test_a_bare_command_shows_its_help():
    done = run(ok=False)
    assert done.returncode == 2
    assert "Usage: unmeasured" in done.stderr


def test_completion_is_there():
    asked = {"_UNMEASURED_COMPLETE": "complete_bash", "COMP_WORDS": "unmeasured dis", "COMP_CWORD": "1"}
    said, _ = start(env={**os.environ, **asked}).communicate(timeout=60)
    assert said.strip() == "discover"


def test_the_module_is_the_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "unmeasured", "discover", "nowhere.csv"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("unmeasured: There is no file 'nowhere.csv'")


def test_a_population_matrix(tmp_path):
    truth = um.DAG.from_edges([("L", x) for x in "abcd"], latents=["L"])
    cov = um.simulate.realistic_parameters(truth, rng=1).cov()
    pd.DataFrame(cov, index=list("abcd"), columns=list("abcd")).to_csv(tmp_path / "m.csv", float_format="%.17g")
    done = run("discover", "m.csv", "--n", "inf", "--json", cwd=tmp_path)
    assert math.isinf(um.Result.from_json(done.stdout).sem.sample.n)


def test_a_time_limit_before_the_first_model_says_so_and_leaves_with_130(folder, monkeypatch):
    def stop(*_, **__):
        raise um.SearchStopped("Stopped at the time limit of 1 s, before a first model was found.")

    monkeypatch.setattr("unmeasured.estimators.lges.discover", stop)
    done = run("discover", "matrix.csv", "--n", 301, "--time-limit", 1, cwd=folder, ok=False)
    assert done.returncode == 130
    assert "before a first model was found" in done.stderr
