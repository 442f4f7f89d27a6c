"""Files written by version 0.2.0 are read by this one; ``written_by_0_2/script.txt`` made them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import unmeasured as um
from unmeasured.app.project import Project
from unmeasured.output.report.run import Run, search_of
from unmeasured.results import earlier_formats

FILES = Path(__file__).parent / "written_by_0_2"


def every_key(record, part="result"):
    """The keys of all parts of a record, each with its part."""
    if isinstance(record, list):
        return {found for entry in record for found in every_key(entry, part)}
    if not isinstance(record, dict):
        return set()
    inner = {found for key, value in record.items() for found in every_key(value, f"{part}.{key}")}
    return {(part, key) for key in record} | inner


def test_a_run_is_read_and_written_with_the_present_keys():
    text = (FILES / "run.json").read_text()
    stored, run = json.loads(text), Run.from_json(text)
    result, written = run.result, json.loads(run.to_json())
    assert (stored["format"], written["format"]) == (1, earlier_formats.FORMAT)
    assert result.named_latents == ("first",)
    assert result.options["residual_covariances"] is False
    assert "residual_pairs" not in result.options
    assert search_of(replace(run, shared=None)).get_params()["residual_covariances"] is False
    assert [step.n_cached for step in run.trace] == [step["n_remembered"] for step in stored["run"]["trace"]]
    assert [step.n_fitted for step in run.trace] == [step["n_fitted"] for step in stored["run"]["trace"]]
    assert run.shared.supported_step == stored["run"]["groups"]["highest"]
    assert result.sem.solution.predicted_gain == stored["solution"]["promised"]
    # The figures are those of the file, and nothing of the old spelling is written again.
    assert result.sem.chi2 == pytest.approx(stored["indices"]["chi2"], rel=1e-9)
    old = {(part, key) for part, keys in earlier_formats.KEYS.items() for key in keys}
    assert every_key(stored) & old
    assert not every_key(written) & old
    assert Run.from_json(run.to_json()).to_json() == run.to_json()


def test_every_row_of_the_table_is_of_a_key_that_these_files_have():
    files = [every_key(json.loads((FILES / name).read_text())) for name in ("run.json", "confirmed.json")]
    lines = [every_key(json.loads(line), "replicate") for line in (FILES / "replicates.jsonl").read_text().splitlines()]
    benchmark = (Path(__file__).parents[3] / "benchmarks" / "records" / "no-latents.jsonl").read_text().splitlines()
    of_gin = [every_key(json.loads(line), "benchmark") for line in benchmark if '"constructor":"GIN"' in line]
    known = set().union(*files, *lines, *of_gin)
    assert {(part, key) for part, keys in earlier_formats.KEYS.items() for key in keys} <= known


def test_estimates_of_other_rows_keep_their_note_and_their_signs():
    text = (FILES / "confirmed.json").read_text()
    stored, result = json.loads(text), um.Result.from_json(text)
    assert result.estimation_note == stored["confirmed"] != ""
    assert result.sign_indicators == stored["heads"] == {"L1": "a3", "L2": "b2"}
    assert result.parameters["est"].to_list() == pytest.approx([row["est"] for row in stored["parameters"]], rel=1e-6)


def test_replicates_go_on_where_the_file_ends(tmp_path):
    path = tmp_path / "replicates.jsonl"
    path.write_bytes((FILES / "replicates.jsonl").read_bytes())
    data = um.datasets.load("multitasking")
    search = um.LGES().fit_cov(data.frame(), data.n_samples)
    stable = um.stability(search, 3, records=path)
    assert len(path.read_text().splitlines()) == 3
    assert path.read_bytes().startswith((FILES / "replicates.jsonl").read_bytes())
    assert stable.n_latents.to_dict() == um.stability(search, 3).n_latents.to_dict()


def test_a_project_opens_with_its_result_and_its_stability(tmp_path):
    project = Project(tmp_path)
    project.open_file("kept.unmeasured", (FILES / "project.unmeasured").read_bytes())
    assert project.stability.is_of(project.result.graph)
    assert len(project.stability.replicates) == 2
