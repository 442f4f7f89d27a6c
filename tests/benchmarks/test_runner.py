"""Experiments, runs and tables, with small fake methods in place of real ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from benchmarks import experiment, paper, runner
from benchmarks.__main__ import main
from benchmarks.attempt import method_named, perform, simulated_rows
from benchmarks.measures import MEASURES
from benchmarks.run_records import VOLATILE, Circumstances, Outcome, Record, Task, append_record, read_records
from benchmarks.state import state_of
from benchmarks.structures import Drawn, shape_of
from benchmarks.tables import Cell, make_table

# Two graphs, of 4 and 5 observed variables, two seeds, two sample sizes: 8 data sets for each method.
TINY = """
name = "tiny"
title = "A tiny experiment"
seed = 7
sample_sizes = [100, 200]
seeds = [0, 1]
time_limit = 30

[graphs]
n_observed = [4, 5]
n_latents = [[2], [2]]
n_graphs = 1
seed = 7

{methods}

[table]
rows = "n_samples"
measures = ["f1", "shd"]

[quick]
seeds = [0]
sample_sizes = [100]
"""
METHOD = '[[methods]]\nlabel = "{label}"\nconstructor = "{constructor}"\noptions = {{ {options} }}\n'

# Also written to a file, for the runs that happen in other processes.
FAKES = '''
import os, signal, time
import unmeasured as um
from benchmarks.structures import Drawn

TRUTHS = {len(s.dag.observed): s.dag for s in Drawn((4, 5), ((2,), (2,)), 1, 7).structures()}


class Oracle:
    """Knows the truth by the number of columns."""

    def __init__(self, pause=0.0):
        self.pause = pause

    def fit(self, rows):
        time.sleep(self.pause)
        self.graph_ = TRUTHS[rows.shape[1]].cpdag()
        return self


class Blank(Oracle):
    """Finds no latents and no edges."""

    def fit(self, rows):
        self.graph_ = um.DAG.from_edges([], names=list(rows.columns))
        return self


class Failing(Oracle):
    def fit(self, rows):
        raise ZeroDivisionError("nothing to divide by")


class Interrupting(Oracle):
    """The user presses Ctrl-C at the sixth data set: 4 observed come first, so at one of 5 and N = 200."""

    def fit(self, rows):
        if rows.shape == (200, 5) and not os.path.exists(os.environ["CTRL_C_ONCE"]):
            open(os.environ["CTRL_C_ONCE"], "w").close()
            raise KeyboardInterrupt
        return super().fit(rows)


class Killed(Oracle):
    """The process is killed at the same place, without a chance to say anything."""

    def fit(self, rows):
        if rows.shape == (200, 5) and not os.path.exists(os.environ["CTRL_C_ONCE"]):
            open(os.environ["CTRL_C_ONCE"], "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(rows)


class Dying(Oracle):
    def fit(self, rows):
        os._exit(9)


class Slow(Oracle):
    """Too slow for graphs of 4 observed variables, and it would be quick at 5."""

    def fit(self, rows):
        time.sleep(30 if rows.shape == (100, 4) else 0)
        return super().fit(rows)


class Recorder(Oracle):
    """Remembers the rows it saw."""

    seen = []

    def __init__(self, name=""):
        super().__init__()
        self.name = name

    def fit(self, rows):
        Recorder.seen.append((self.name, rows.copy()))
        rows.iloc[:] = 0.0
        return super().fit(rows)
'''


def tiny(*methods: tuple[str, str] | tuple[str, str, str]) -> experiment.Experiment:
    return experiment.parse(tiny_text(*methods), "tiny.toml")


def tiny_text(*methods: tuple[str, str] | tuple[str, str, str]) -> str:
    rows = [(*method, "")[:3] for method in methods]
    return TINY.format(
        methods="\n".join(
            METHOD.format(label=label, constructor=name, options=options) for label, name, options in rows
        )
    )


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    scope: dict[str, object] = {"__name__": "fakes_in_this_process"}
    exec(FAKES, scope)
    for name in ("Oracle", "Blank", "Failing", "Interrupting", "Slow", "Recorder"):
        monkeypatch.setattr(um, f"Fake{name}", scope[name], raising=False)
    return scope


def steady(path: Path) -> list[dict[str, object]]:
    """The records of a file in a fixed order, without what may differ from run to run."""
    rows = [asdict(r.task) | asdict(r.circumstances) | asdict(r.outcome) for r in read_records(path)]
    return sorted(({k: v for k, v in row.items() if k not in VOLATILE} for row in rows), key=json.dumps)


# ---------------------------------------------------------------------------------------------- experiments


def test_bundled_experiments_are_what_they_should_be():
    table4, table5 = experiment.load("table4"), experiment.load("table5")
    assert len(table4.assignments) == 5 * 4 * 5 * 3
    assert {a.task.n_observed for a in table4.quickened().assignments if a.task.method == "exact"} == {5, 6, 7}
    assert len(table5.assignments) == 20 * 10 * 5
    assert [m.options["delta"] for m in table5.methods] == [5e-4, 1e-3, 2e-3, 4e-3, 1e-2]
    assert len(table5.quickened().assignments) == 3 * 5


@pytest.mark.parametrize("name", experiment.available())
def test_a_quick_version_is_a_part_of_the_whole(name):
    whole = experiment.load(name)
    assert {a.task.key for a in whole.quickened().assignments} < {a.task.key for a in whole.assignments}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("sample_sizes = [100, 200]", "sample_size = [100]", "tiny.toml: the key 'sample_sizes' is missing"),
        ("seed = 7\nsample", "seeed = 1\nseed = 7\nsample", "tiny.toml: unknown key 'seeed'; did you mean 'seed'?"),
        ("n_graphs = 1", "n_graphs = 1\nn_latent = 3", r"tiny.toml, \[graphs\]: unknown key 'n_latent'; did you mean"),
        ("options = {  }", "options = {  }\ndelta = 3", r"tiny.toml, \[\[methods\]\] 1: unknown key 'delta'"),
        ("seeds = [0]\n", "sede = [0]\n", r"tiny.toml, \[quick\]: unknown key 'sede'; did you mean 'seeds'"),
        ("seeds = [0, 1]", "seeds = 3", "seeds must be a list of different whole numbers, zero or more each; got 3"),
        ('measures = ["f1", "shd"]', 'measures = ["f2"]', "measures must be a list of some of 'f1'"),
        (
            'rows = "n_samples"',
            'rows = "method"',
            r"has one sample size, or its cells would mix several; got \[100, 200\]",
        ),
        ("n_latents = [[2], [2]]", "n_latents = [[2]]", "one list for each of the 2 entries of n_observed; got 1"),
        ('title = "A', 'title "A', "tiny.toml is not valid TOML"),
        ('constructor = "Fake', 'paper = "LGES"\nconstructor = "Fake', r"but \[table\] has no paper"),
    ],
)
def test_a_mistake_in_an_experiment_file_is_named(old, new, words):
    text = tiny_text(("oracle", "FakeOracle"))
    assert old in text
    with pytest.raises(um.UnmeasuredError, match=words):
        experiment.parse(text.replace(old, new, 1), "tiny.toml")


def test_two_methods_cannot_share_a_label():
    with pytest.raises(um.UnmeasuredError, match="methods share the label 'oracle'"):
        tiny(("oracle", "FakeOracle"), ("oracle", "FakeBlank"))


def test_drawn_structures_differ_and_fewer_are_the_first_of_more():
    drawn = Drawn(n_observed=(6,), n_latents=((2, 3),), n_graphs=5, seed=1, max_common_children=1)
    structures = drawn.structures()
    assert len({shape_of(s.dag) for s in structures}) == 5
    assert all(um.graphs.is_gnfm(s.dag) for s in structures)
    assert [s.digest for s in drawn.reduced(2).structures()] == [s.digest for s in structures[:2]]
    with pytest.raises(um.UnmeasuredError, match="40 different structures with 6 observed variables"):
        drawn.reduced(40).structures()


def test_a_method_has_a_time_limit_and_seeds_of_its_own():
    text = tiny_text(("slow", "FakeOracle"), ("fast", "FakeOracle"))
    text = text.replace('label = "slow"', 'label = "slow"\ntime_limit = 5\nseeds = [1]')
    trial = experiment.parse(text, "tiny.toml")
    assert {(a.task.method, a.task.seed, a.task.time_limit) for a in trial.assignments} == {
        ("slow", 1, 5), ("fast", 0, 30), ("fast", 1, 30),
    }  # fmt: skip
    assert "slow: seed 1 only." in make_table(trial, []).notes
    # Fewer runs by plan are no reason not to be compared.
    block = make_table(trial, [perform(assignment) for assignment in trial.assignments]).blocks[0]
    assert [entry.is_best for entry in block.rows[0][1:3]] == [True, True]
    with pytest.raises(
        um.UnmeasuredError, match=r"'slow' has seeds \[3\] that the experiment has not; it has \[0, 1\]"
    ):
        experiment.parse(text.replace("seeds = [1]", "seeds = [3]"), "tiny.toml")


def test_graphs_without_latents_come_in_two_families():
    text = tiny_text(("blank", "FakeBlank"))
    graphs = text[text.index("[graphs]") : text.index("[[methods]]")]
    text = text.replace(graphs, "[graphs]\nlatents = false\nn_observed = 5\nn_graphs = 3\nseed = 1\n\n")
    text = text.replace('rows = "n_samples"', 'rows = "family"').replace("[100, 200]", "[100]")
    text = text.replace('["f1", "shd"]', '["reports_latents", "f1"]')
    trial = experiment.parse(text, "tiny.toml")
    assert all(not a.truth.latents for a in trial.assignments)
    assert len({a.task.graph for a in trial.assignments}) == 6
    assert len({a.task.graph for a in replace(trial, graphs=trial.graphs.reduced(1)).assignments}) == 2
    reports, f1 = make_table(trial, [perform(a) for a in trial.assignments]).blocks
    assert [[entry.text for entry in row] for row in reports.rows] == [
        ["dag", "0.00 (0.00)"], ["independent", "0.00 (0.00)"],
    ]  # fmt: skip
    assert f1.rows[1][1].text == "1.00 (0.00)"  # nothing is there, and nothing was found


@pytest.mark.parametrize("name", experiment.available())
def test_every_method_of_a_bundled_experiment_is_there_and_takes_its_options(name):
    for method in experiment.load(name).methods:
        assert hasattr(method_named(method.constructor)(**method.options), "fit")
        assert method.time_limit or experiment.load(name).time_limit


# ----------------------------------------------------------------------------------------------------- runs


def test_every_method_sees_the_same_rows_and_cannot_spoil_them(tmp_path, fakes):
    methods = [(name, "FakeRecorder", f'name = "{name}"') for name in ("first", "second")]
    runner.run(tiny(*methods), tmp_path / "r.jsonl", progress=False)
    seen = {
        name: [rows for who, rows in fakes["Recorder"].seen if who == name and len(rows) > 50]
        for name in ("first", "second")
    }
    # The warm-up on two times 200 rows of its own comes first.
    assert [len(rows) for rows in seen["first"]] == [200, 200, 100, 200, 100, 200, 100, 200, 100, 200]
    for a, b in zip(seen["first"], seen["second"], strict=True):
        pd.testing.assert_frame_equal(a, b)
        assert a.to_numpy().any()
    scores = {(r.task.key.replace("second", "first"), r.outcome.score_true) for r in read_records(tmp_path / "r.jsonl")}
    assert len(scores) == 8  # the two methods' records have the same scores, though both zero the rows they get
    assert None not in {score for _, score in scores}


def test_parameters_are_shared_over_sample_sizes_and_not_over_seeds_and_graphs():
    big = replace(tiny(("oracle", "FakeOracle")), sample_sizes=(20_000, 20_001))
    rows = {(a.task.graph, a.task.seed, a.task.n_samples): simulated_rows(a.task, a.truth) for a in big.assignments}
    corr = {key: np.corrcoef(frame.to_numpy().T) for key, frame in rows.items()}
    graph = "5-observed-1"
    assert np.abs(corr[graph, 0, 20_000] - corr[graph, 0, 20_001]).max() < 0.05
    assert np.abs(corr[graph, 0, 20_000] - corr[graph, 1, 20_000]).max() > 0.2
    assert not np.allclose(rows[graph, 0, 20_000].iloc[:5], rows[graph, 0, 20_001].iloc[:5])


def test_a_record_describes_itself_and_the_oracle_is_perfect():
    record = perform(tiny(("oracle", "FakeOracle")).assignments[-1])
    shared, own = map(json.loads, record.lines())
    assert shared["runs"] == own["of"]
    row = shared | own
    assert (row["f1"], row["shd"], row["shd_paper"]) == (1.0, 0, 0)
    assert "failure" not in row
    assert (row["latents_true"], row["latents_found"]) == (2, 2)
    assert row["score_true"] == pytest.approx(row["score_found"], rel=1e-6)
    assert row["score_true"] < 0
    assert (row["experiment"], row["method"], row["graph"], row["seed"], row["n_samples"], row["n_observed"]) == (
        "tiny", "oracle", "5-observed-1", 1, 200, 5,
    )  # fmt: skip
    assert (row["version"], row["numpy"], row["options"]) == (um.__version__, np.__version__, {})
    assert Record.of(row) == record


def test_the_truth_scores_better_than_a_graph_without_edges():
    outcome = perform(tiny(("blank", "FakeBlank")).assignments[-1]).outcome
    assert outcome.f1 == 0.0
    assert outcome.score_true > outcome.score_found


@pytest.mark.parametrize(
    ("constructor", "options", "words"),
    [
        ("FakeFailing", "", "ZeroDivisionError: nothing to divide by"),
        ("NoSuchSearch", "", f"'NoSuchSearch' is not available in this installation of unmeasured ({um.__version__})."),
        ("no_such_module:Search", "", "'Search' is not available in module 'no_such_module'."),
        ("FakeOracle", "colour = 3", "FakeOracle(colour=3) cannot be made"),
        ("DAG", "", "DAG() cannot be made"),
    ],
)
def test_a_failure_is_a_value_with_a_sentence(constructor, options, words):
    outcome = perform(tiny(("it", constructor, options)).assignments[0]).outcome
    assert outcome.failure.startswith(words)
    assert outcome.f1 is None


def test_a_failing_method_does_not_stop_the_others(tmp_path):
    trial = tiny(("bad", "FakeFailing"), ("good", "FakeOracle"), ("absent", "NoSuchSearch"))
    tally = runner.run(trial, tmp_path / "r.jsonl", progress=False)
    assert (tally.n_planned, tally.n_new, tally.n_failed) == (24, 24, 16)
    assert sum(r.outcome.f1 == 1.0 for r in read_records(tmp_path / "r.jsonl")) == 8


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no alarm")
def test_a_run_past_its_time_is_stopped():
    late = replace(tiny(("slow", "FakeOracle", "pause = 3.0")), time_limit=0.2)
    outcome = perform(late.assignments[0]).outcome
    assert outcome.failure == "Stopped at the time limit of 0.2 seconds."
    assert 0.2 <= outcome.seconds < 2.9


# ----------------------------------------------------------------------------------------------- resumption


def test_a_run_stopped_half_way_and_started_again_ends_with_the_same_records(tmp_path, monkeypatch):
    trial = tiny(("oracle", "FakeOracle"), ("other", "FakeInterrupting"), ("bad", "FakeFailing"))
    monkeypatch.setenv("CTRL_C_ONCE", str(tmp_path))  # exists: no interruption
    runner.run(trial, tmp_path / "whole.jsonl", progress=False)
    monkeypatch.setenv("CTRL_C_ONCE", str(tmp_path / "pressed"))
    path = tmp_path / "halves.jsonl"
    with pytest.raises(runner.Stopped, match=r"Stopped with 10 of 24 runs done, in '.*halves.jsonl'; the same command"):
        runner.run(trial, path, progress=False)
    assert len(read_records(path)) == 10
    assert runner.run(trial, path, progress=False).n_new == 14
    assert steady(path) == steady(tmp_path / "whole.jsonl")
    before = path.read_bytes()
    assert runner.run(trial, path, progress=False).n_new == 0
    assert path.read_bytes() == before


def test_a_run_killed_half_way_and_started_again_ends_with_the_same_records(folder, cli_here, monkeypatch):
    (folder / "tiny.toml").write_text(tiny_text(("oracle", "fakes:Oracle"), ("other", "fakes:Killed")))
    monkeypatch.setenv("CTRL_C_ONCE", str(folder / "killed"))
    code, _, _ = cli(folder, "run", "tiny.toml", "--records", "halves.jsonl")
    assert code == -signal.SIGKILL
    assert len(read_records(folder / "halves.jsonl")) == 7
    assert cli_here("run", "tiny.toml", "--records", "halves.jsonl")[0] == 0
    assert cli_here("run", "tiny.toml", "--records", "whole.jsonl")[0] == 0
    assert steady(folder / "halves.jsonl") == steady(folder / "whole.jsonl")


def test_records_of_an_earlier_version_still_count(tmp_path):
    """Lines as they were written before rows could be cut or lose values, each saying everything: tasks are done."""
    trial, path = tiny(("oracle", "FakeOracle")), tmp_path / "r.jsonl"
    runner.run(trial, path, progress=False)
    first, second, *others = map(json.loads, path.read_text().splitlines())
    told = {**first, **second}
    assert not {"categories", "missing", "peak_mib", "rmsea"} & set(told)
    name = first.pop("runs")
    old = [first | {key: value for key, value in line.items() if value != name} for line in (second, *others)]
    path.write_text("".join(json.dumps(line) + "\n" for line in old))
    assert runner.run(trial, path, progress=False).n_new == 0
    old = Path(__file__).parents[2] / "benchmarks" / "records" / "table4.jsonl"
    kept = {record.task.key for record in read_records(old)}
    assert kept >= {a.task.key for a in experiment.load("table4").quickened().assignments}


def test_a_method_that_was_too_slow_is_not_tried_on_graphs_as_large(tmp_path):
    text = tiny_text(("slow", "FakeSlow"), ("oracle", "FakeOracle")).replace("[100, 200]", "[100]")
    text = text.replace('rows = "n_samples"', 'rows = "n_observed"\nexponent = true')
    trial = experiment.parse(text.replace("time_limit = 30", "time_limit = 0.3\ngive_up = true"), "tiny.toml")
    path = tmp_path / "r.jsonl"
    runner.run(replace(trial, methods=trial.methods[:1], seeds=(0,)).restricted(["slow"]), path, progress=False)
    runner.run(trial, path, progress=False)  # what the file says of it counts too
    reasons = {(r.task.n_observed, r.task.seed): r.outcome.failure for r in read_records(path) if r.outcome.failure}
    assert reasons == {
        (4, 0): "Stopped at the time limit of 0.3 seconds.", (4, 1): "Not tried: too slow at 4 observed variables.",
        (5, 0): "Not tried: too slow at 4 observed variables.", (5, 1): "Not tried: too slow at 4 observed variables.",
    }  # fmt: skip
    assert sum(r.outcome.f1 == 1.0 for r in read_records(path)) == 4


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no alarm")
def test_a_run_apart_says_how_much_memory_it_took_and_may_die(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    text = tiny_text(("oracle", "fakes:Oracle"), ("dying", "fakes:Dying")).replace(
        "seed = 7\ns", "apart = true\nseed = 7\ns", 1
    )
    oracle, dying = experiment.parse(text, "tiny.toml").assignments[:2]
    record = runner._performed(oracle, 1)
    assert record.outcome.f1 == 1.0
    assert 30 < record.outcome.peak_mib < 3000
    assert Record.of(json.loads(record.lines()[0]) | json.loads(record.lines()[1])) == record
    assert runner._performed(dying, 1).outcome.failure.startswith("The process of the run died (exit code 9)")


def test_a_half_written_last_line_is_dropped_with_a_note(tmp_path, caplog):
    trial, path = tiny(("oracle", "FakeOracle")), tmp_path / "r.jsonl"
    runner.run(trial, path, progress=False)
    whole = path.read_bytes()
    path.write_bytes(whole[:-50])
    assert len(read_records(path)) == 7
    assert path.read_bytes() == whole[:-50]  # reading changes nothing
    caplog.clear()
    assert runner.run(trial, path, progress=False).n_new == 1
    assert "was half written; it is dropped and its run made again" in caplog.text
    assert len(path.read_bytes().splitlines()) == 9  # one for what the runs share


def test_a_last_line_without_its_newline_is_kept(tmp_path):
    trial, path = tiny(("oracle", "FakeOracle")), tmp_path / "r.jsonl"
    runner.run(trial, path, progress=False)
    path.write_bytes(path.read_bytes()[:-1])
    assert runner.run(trial, path, progress=False).n_new == 0
    append_record(path, read_records(path)[0])
    assert len(read_records(path)) == 9


def test_a_spoilt_line_in_the_middle_is_an_error(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"experiment": "tiny"}\n')
    with pytest.raises(um.UnmeasuredError, match=r"Line 1 of '.*r.jsonl' is not a record of a run: it has no 'method'"):
        read_records(path)
    path.write_text('{"of": "5d41402a", "seed": 0}\n')
    with pytest.raises(
        um.UnmeasuredError, match="is not a record of a run: no line before it tells of runs '5d41402a'"
    ):
        read_records(path)


def test_what_runs_share_is_written_once_and_told_apart(tmp_path):
    path = tmp_path / "r.jsonl"
    runner.run(tiny(("oracle", "FakeOracle"), ("other", "FakeOracle", "pause = 0.001")), path, progress=False)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    shared = [line["method"] for line in lines if "runs" in line]
    assert sorted(shared) == ["oracle", "other"]
    assert len({line["of"] for line in lines if "of" in line}) == 2
    assert len(lines) == 2 + 16


def test_what_can_change_the_answer_is_run_again(tmp_path, monkeypatch):
    trial, path = tiny(("oracle", "FakeOracle")), tmp_path / "r.jsonl"
    runner.run(trial, path, progress=False)
    assert runner.run(replace(trial, parameters="realistic"), path, progress=False).n_new == 8
    assert runner.run(replace(trial, seed=8), path, progress=False).n_new == 8
    assert runner.run(tiny(("oracle", "FakeOracle", "pause = 0.001")), path, progress=False).n_new == 8
    monkeypatch.setattr(um, "__version__", "9.9.9")
    assert runner.run(trial, path, progress=False).n_new == 8
    table = make_table(trial, read_records(path))
    assert any("8 of 8 runs" in note for note in table.notes)
    assert any("unmeasured 9.9.9," in note for note in table.notes)
    assert any("Left out: 24 other records" in note for note in table.notes)


def test_runs_by_other_code_of_the_same_version_are_kept_marked_and_renewed(tmp_path, caplog, monkeypatch):
    trial, path = tiny(("oracle", "FakeOracle")), tmp_path / "r.jsonl"
    runner.run(trial, path, progress=False)
    lines = path.read_text().splitlines()
    other = json.dumps({**json.loads(lines[1]), "code": "0ther"})
    path.write_text("\n".join([lines[0], other, *lines[2:]]) + "\n")
    assert runner.run(trial, path, progress=False).n_new == 0
    assert "made by an earlier state" not in caplog.text  # nothing is known of the code of a method from elsewhere
    monkeypatch.setattr("benchmarks.run_records.state_of", lambda constructor: "0ther")
    assert runner.run(trial, path, progress=False).n_new == 0
    assert "7 of the runs kept were made by an earlier state of their method's code; --renew makes" in caplog.text
    assert "(oracle: 7 of 8 runs)" in make_table(trial, read_records(path)).text()
    monkeypatch.setattr("benchmarks.attempt.state_of", lambda constructor: "0ther")
    assert runner.run(trial, path, renew=True, progress=False).n_new == 7
    assert len(read_records(path)) == 8  # those that were replaced are gone
    assert "†" not in make_table(trial, read_records(path)).text()


def test_failed_runs_are_made_again_when_asked(tmp_path, monkeypatch):
    trial, path = tiny(("later", "FakeLater")), tmp_path / "r.jsonl"
    assert runner.run(trial, path, progress=False).n_failed == 8
    monkeypatch.setattr(um, "FakeLater", um.FakeOracle, raising=False)
    assert runner.run(trial, path, progress=False).n_new == 0
    tally = runner.run(trial, path, progress=False, retry_failed=True)
    assert (tally.n_new, tally.n_failed) == (8, 0)
    assert runner.run(trial, path, progress=False, retry_failed=True).n_new == 0


# --------------------------------------------------------------------------------------------------- tables


def recorded(trial: experiment.Experiment, outcome_of) -> list[Record]:
    return [Record(a.task, made_today(a.task), outcome_of(a.task)) for a in trial.assignments]


def made_today(task: Task) -> Circumstances:
    code = state_of(task.constructor)
    return Circumstances("0.1.0", code, "3.11.7", "2.4.6", "Linux x86_64, 2 cores", 1, "2026-11-15")


def found(f1: float, shd: int = 0) -> Outcome:
    return Outcome(0.5, f1=f1, precision=f1, recall=f1, shd=shd, shd_paper=shd, latents_true=2, latents_found=2)


def test_cells_are_means_with_standard_errors():
    # At each N: 0.5 and 0.6 on one graph, 0.7 and 0.8 on the other. The means of the graphs, 0.55 and 0.75, have a
    # standard deviation of 0.1414; over the root of two graphs, 0.1.
    trial = tiny(("ours", "FakeOracle"), ("other", "FakeBlank"))

    def outcome(task):
        if task.method == "other":
            return found(0.4, 9)
        return found(0.5 + 0.1 * task.seed + 0.2 * (task.n_observed == 5), 3)

    table = make_table(trial, recorded(trial, outcome))
    assert table.blocks[0].markdown().splitlines() == [
        "**F1 of the skeleton; larger is better**",
        "",
        "| N | ours | other |",
        "| --- | --- | --- |",
        "| 100 | **0.65 (0.10)** | 0.40 (0.00) |",
        "| 200 | **0.65 (0.10)** | 0.40 (0.00) |",
    ]
    assert table.blocks[1].text().splitlines() == [
        "SHD over the class; smaller is better",
        "N     ours            other",
        "100   3.00 (0.00) *   9.00 (0.00)",
        "200   3.00 (0.00) *   9.00 (0.00)",
    ]
    assert "16 of 16 runs on 2 graphs, 2 seeds each, experiment seed 7." in table.text()
    assert (
        "unmeasured 0.1.0, Python 3.11.7, numpy 2.4.6; Linux x86_64, 2 cores; runs at once: 1; 2026-11-15."
        in table.text()
    )


def test_the_order_of_records_does_not_matter():
    trial = tiny(("ours", "FakeOracle"), ("other", "FakeBlank"))

    def outcome(task):
        if task.n_samples == 200 and task.seed:
            return Outcome(1.0, failure=f"{task.method} fell over {task.graph}.")
        return found(0.1 + 0.3 * task.seed + 0.01 * task.n_observed)

    records = recorded(trial, outcome)
    assert make_table(trial, records) == make_table(trial, records[::-1])


def test_cells_with_failures_say_so_and_are_not_best():
    trial = tiny(("ours", "FakeOracle"), ("frail", "FakeBlank"))

    def outcome(task):
        if task.method == "frail":
            return Outcome(9.0, failure="Out of luck.") if task.n_samples == 200 or task.seed else found(1.0)
        return found(0.5)

    table = make_table(trial, recorded(trial, outcome))
    rows = table.blocks[0].markdown().splitlines()[-2:]
    assert rows == ["| 100 | 0.50 (0.00) | 1.00 (0.00) [2 of 4] |", "| 200 | 0.50 (0.00) | - |"]
    assert "frail: 6 of 8 runs failed; 6 times: Out of luck." in table.notes


def test_methods_that_print_alike_are_both_best():
    trial = tiny(("a", "FakeOracle"), ("b", "FakeBlank"))
    table = make_table(trial, recorded(trial, lambda task: found(0.9601 if task.method == "a" else 0.9599)))
    assert table.blocks[0].markdown().splitlines()[-1] == "| 200 | **0.96 (0.00)** | **0.96 (0.00)** |"


def test_the_paper_stands_beside_ours():
    table4 = experiment.load("table4")
    records = recorded(table4, lambda task: found(0.9))
    f1, shd_paper, shd, seconds = make_table(table4, records).blocks
    assert f1.header == ("observed", "LGES (delta)", "LGES (bic)", "exact", "paper: LGES", "paper: Exact Search")
    assert [entry.text for entry in f1.rows[0][-2:]] == ["0.96 (0.06)", "0.96 (0.03)"]
    assert [entry.text for entry in f1.rows[4][-2:]] == ["0.85 (0.03)", "-"]
    assert [entry.text for entry in seconds.rows[3][-2:]] == ["17 seconds", ">100 hours"]
    assert [entry.text for entry in shd_paper.rows[1][-2:]] == ["1.24 (0.75)", "0.98 (0.54)"]
    assert shd.header == f1.header[:4]  # the paper has no such figure


def test_a_table_with_methods_as_rows():
    table5 = experiment.load("table5").quickened()
    records = recorded(table5, lambda task: found(0.9 if task.options["delta"] == 2e-3 else 0.7))
    lines = make_table(table5, records).blocks[0].markdown().splitlines()
    assert (
        lines[0] == "| method | F1 of the skeleton | paper | SHD, the paper's way | paper | SHD over the class | "
        "seconds, median (least to most) |"
    )
    assert lines[4].startswith("| delta = 2e-3 | **0.90 (0.00)** | 0.82 (0.02) | **0.00 (0.00)** | 8.80 (0.70) |")
    assert lines[2].startswith("| delta = 5e-4 | 0.70 (0.00) | 0.79 (0.02) |")


def test_a_table_of_no_records_has_empty_cells():
    text = make_table(tiny(("ours", "FakeOracle")), []).text()
    assert "0 of 8 runs" in text
    assert "100   -" in text


def test_a_single_run_has_no_standard_error():
    assert Cell(0.5, float("nan"), 1, 1).text(MEASURES["f1"]) == "0.50"


@pytest.mark.parametrize(
    ("table", "method", "row", "measure", "mean", "error"),
    [
        ("table1", "LGES", 1000, "shd_paper", 8.80, 0.70),
        ("table1", "RLCD", 100, "shd_paper", 35.84, 3.01),
        ("table2-uniform", "GIN", 500, "f1", 0.42, 0.01),
        ("table2-leaky-relu", "LGES", 200, "f1", 0.65, 0.01),
        ("table2-leaky-relu", "FOFC", 1000, "shd_paper", 20.10, 0.54),
        ("table3", "Byrne 2010", "teacher_burnout", "tli", 0.847, None),
        ("table4", "LGES", 9, "shd_paper", 4.11, 1.52),
        ("table4", "Exact Search", 6, "seconds", 480.0, None),
        ("table5", "1e-2", 1000, "shd_paper", 11.13, 0.70),
    ],
)
def test_figures_of_the_paper(table, method, row, measure, mean, error):
    cell = paper.cell(table, method, row, measure)
    assert (cell.mean, cell.error) == (mean, error)


def test_every_cell_of_the_paper_is_there():
    assert {name: len(cells) for name, cells in paper.TABLES.items()} == {
        "table1": 32, "table2-uniform": 32, "table2-leaky-relu": 32, "table3": 21, "table4": 26, "table5": 10,
    }  # fmt: skip
    assert paper.cell("table4", "Exact Search", 8, "f1") is None


def test_measures_are_figures_of_an_outcome():
    assert all(hasattr(Outcome(0.0), name) for name in MEASURES if name != "times")  # of two outcomes


# --------------------------------------------------------------------------------------- other processes, CLI


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "fakes.py").write_text(FAKES)
    (tmp_path / "tiny.toml").write_text(tiny_text(("oracle", "fakes:Oracle"), ("bad", "fakes:Failing")))
    return tmp_path


def cli(folder, *arguments):
    """The entry point in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(folder), str(Path(__file__).parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
            ),
        },
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def cli_here(folder, monkeypatch, capsys):
    """The same entry point in this process, which is quicker."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return call


def test_an_experiment_through_the_entry_point(folder, cli_here):
    code, out, err = cli_here("run", "tiny.toml", "--quick", "--markdown")
    assert code == 0, err
    assert "| 100 | 1.00 (0.00) | - |" in out
    assert "bad: 2 of 2 runs failed; 2 times: ZeroDivisionError: nothing to divide by" in out
    assert "4 new runs of 4, 2 failed (--retry-failed makes them again)" in err
    path = Path("benchmarks") / "records" / "tiny.jsonl"
    assert f"Records: {path}" in err
    # The whole goes on from the quick version, in two processes, and gives what one process gives.
    code, out, err = cli(folder, "run", "tiny.toml", "--n-jobs", "2")
    assert code == 0, err
    assert "12 new runs of 16" in err
    code, alone, err = cli_here("run", "tiny.toml", "--records", "alone.jsonl")
    assert code == 0, err
    assert steady(path) == steady(folder / "alone.jsonl")
    assert out.split("\n\n")[:-1] == alone.split("\n\n")[:-1]  # but for the note on runs at once
    assert cli_here("run", "tiny.toml", "--records", "alone.jsonl", "--table-only")[1] == alone


def test_an_experiment_may_be_restricted_to_some_methods(tmp_path):
    trial = tiny(("oracle", "FakeOracle"), ("bad", "FakeFailing"))
    only = trial.restricted(["oracle"])
    assert [method.label for method in only.methods] == ["oracle"]
    assert runner.run(only, tmp_path / "r.jsonl", progress=False).n_new == 8
    with pytest.raises(um.UnmeasuredError, match="has no method 'orakle'; did you mean 'oracle'"):
        trial.restricted(["orakle"])


def test_ctrl_c_on_the_command_line_says_how_to_go_on(folder, cli_here, monkeypatch):
    (folder / "tiny.toml").write_text(tiny_text(("other", "fakes:Interrupting")))
    monkeypatch.setenv("CTRL_C_ONCE", str(folder / "pressed"))
    code, _, err = cli_here("run", "tiny.toml")
    assert code == 130
    assert "unmeasured: Stopped with 3 of 8 runs done, in 'benchmarks/records/tiny.jsonl'; the same command" in err
    code, _, err = cli_here("run", "tiny.toml")
    assert code == 0
    assert "5 new runs of 8." in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "tabel4"], "There is no experiment 'tabel4'; did you mean 'table4'?"),
        (["run", "nowhere.toml"], "There is no file 'nowhere.toml'."),
        (["table4", "--table-only"], "There are no records at"),
        (
            ["table5", "--quick", "--n-jobs", "0"],
            "Invalid value for '--n-jobs': it is the number of runs at once, or -1 for one per core; got 0.",
        ),
        (["run", "tiny.toml", "--records", "."], "'.' cannot be read as records: it is a folder."),
    ],
)
def test_mistakes_are_one_sentence(cli_here, arguments, words):
    code, _, err = cli_here(*arguments)
    assert code == 2
    assert f"unmeasured: {words}" in err
