"""The commands that ask how sure an answer is, and the study of whether to believe them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import unmeasured as um
from benchmarks.calibration import Calibration, judged
from graphs_zoo import latent_chain
from unmeasured.cli.commands import app
from unmeasured.graphs.outline import Outline
from unmeasured.validation.replicates.records import Replicate
from unmeasured.validation.replicates.result import Stability


@pytest.fixture
def matrix(tmp_path: Path) -> str:
    path = tmp_path / "matrix.csv"
    um.datasets.load("multitasking").frame().to_csv(path)
    return str(path)


def test_stability_of_a_file(matrix: str, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    asked = ["stability", matrix, "--n", "202", "--replicates", "2", "--records", str(records)]
    said = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "report")])
    assert said.exit_code == 0, said.output
    assert "2 replicates (parametric)" in said.output
    assert "Consensus of what comes back in 50% of the replicates" in said.output
    assert 'id="stability"' in (tmp_path / "report" / "report.html").read_text()
    # Made again with another name, the page still has its replicates; those of another graph are left out, and told.
    result = tmp_path / "report" / "result.json"
    remade = CliRunner().invoke(app, ["report", str(result), "--name", "L1=Answering"])
    assert remade.exit_code == 0, remade.output
    page = (tmp_path / "report" / "report.html").read_text()
    assert 'id="stability"' in page
    assert "Answering" in page[page.index('id="stability"') :]
    other = um.LGES(max_group_size=1).fit(um.simulate.sample(um.simulate.random_one_factor(rng=1), 300, rng=1))
    um.write_report(other, tmp_path / "report")
    remade = CliRunner().invoke(app, ["report", str(result)])
    assert "stability.json is of another graph and is left out of the report." in remade.output
    assert 'id="stability"' not in (tmp_path / "report" / "report.html").read_text()
    again = CliRunner().invoke(app, [*asked, "--json"])
    assert json.loads(again.output)["n_replicates"] == 2
    assert records.read_text().count("\n") == 2


def test_stability_adds_a_section_to_the_report_of_the_same_result(matrix: str, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    asked = [matrix, "--n", "202", "--out", str(folder)]
    assert CliRunner().invoke(app, ["discover", *asked, "--title", "My study"]).exit_code == 0
    before = {path.name: path.read_text() for path in folder.iterdir() if path.suffix in (".csv", ".lav")}
    assert "Speed" in before["model.lav"]
    result = str(folder / "result.json")
    for first in ([matrix, "--n", "202"], [result]):
        said = CliRunner().invoke(app, ["stability", *first, "--replicates", "2", "--out", str(folder)])
        assert said.exit_code == 0, said.output
        assert "(N = 202)" in said.output.splitlines()[0]
        assert "Speed " in said.output
        assert {name: (folder / name).read_text() for name in before} == before
        page = (folder / "report.html").read_text()
        assert 'id="stability"' in page
        assert "My study" in page
        assert json.loads((folder / "result.json").read_text())["run"]["about"]["title"] == "My study"
        table = pd.read_csv(folder / "stability.csv")
        assert set(table["source"]) == {"Speed", "Error", "AverageQus_Par"}
        assert "Speed" in Stability.from_json((folder / "stability.json").read_text()).graph.latents
    # What is there is not replaced by the report of another graph, or of other data.
    everything = {path.name: path.read_bytes() for path in folder.iterdir()}
    for others in (["--n", "202", "--penalty", "20"], ["--n", "150"]):
        refused = CliRunner().invoke(app, ["stability", matrix, *others, "--replicates", "2", "--out", str(folder)])
        assert "has the report of another result" in str(refused.exception), refused.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == everything


def test_stability_of_a_result_takes_the_options_of_its_search(tmp_path: Path) -> None:
    rows = um.simulate.sample(um.simulate.random_gnfm(n_latents=2, n_observed=8, rng=0), 300, rng=1)
    rows.assign(name="somebody").to_csv(tmp_path / "rows.csv", index=False)
    file, result = str(tmp_path / "rows.csv"), str(tmp_path / "report" / "result.json")
    columns = ["--columns", ",".join(rows.columns)]
    asked = ["discover", file, *columns, "--penalty", "2", "--out", str(tmp_path / "report"), "--quiet"]
    assert CliRunner().invoke(app, asked).exit_code == 0
    of_result = ["stability", result, file, "--replicates", "2", "--json"]
    said = CliRunner().invoke(app, of_result)
    assert said.exit_code == 0, said.output
    whole = CliRunner().invoke(app, ["stability", file, *columns, "--penalty", "2", "--replicates", "2", "--json"])
    ours, theirs = (json.loads(one.output) for one in (said, whole))
    assert ours["method"] == theirs["method"] == "bootstrap"
    assert [row["frequency"] for row in ours["edges"]] == [row["frequency"] for row in theirs["edges"]]
    for wrong, sentence in (
        (["--penalty", "2", "--cor", "pearson"], "Leave out --cor, --penalty: replicates of a result.json"),
        (["--na", "9"], "These are not the data of the result"),
    ):
        rows.round(0).assign(name="somebody").to_csv(tmp_path / "rows.csv", index=False)
        refused = CliRunner().invoke(app, [*of_result, *wrong])
        assert sentence in str(refused.exception)
    refused = CliRunner().invoke(app, ["stability", result, "--na", "9"])
    assert "Leave out --na: there are no rows" in str(refused.exception)
    refused = CliRunner().invoke(app, ["stability", file, file])
    assert "A second file has the rows of a result.json, and rows.csv is none." in str(refused.exception)


def test_without_a_consensus_there_is_a_report_all_the_same(tmp_path: Path) -> None:
    rows = tmp_path / "noise.csv"
    noise = np.random.default_rng(5).normal(size=(120, 6)).round(3)
    pd.DataFrame(noise, columns=list("abcdef")).to_csv(rows, index=False)
    asked = ["stability", str(rows), "--replicates", "4", "--out", str(tmp_path / "report"), "--threshold"]
    refused = CliRunner().invoke(app, [*asked, "2"])  # before the search
    assert "above 0 and up to 1" in str(refused.exception)
    assert not (tmp_path / "report").exists()
    said = CliRunner().invoke(app, [*asked, "1"])
    assert said.exit_code == 0, said.output
    assert "so there is no consensus at this threshold" in said.output
    assert (tmp_path / "report" / "report.html").exists()


def test_path_of_a_file(matrix: str, tmp_path: Path) -> None:
    said = CliRunner().invoke(
        app, ["penalty-path", matrix, "--n", "202", "--penalties", "1,4", "--out", str(tmp_path / "out")]
    )
    assert said.exit_code == 0, said.output
    assert "Suggested: 3 latents in 3 groups at 2 of 2 steps" in said.output
    assert (tmp_path / "out" / "path.svg").exists()
    # Every model that the command names can be reported, exported and refitted, and is the same model there.
    table = pd.read_csv(tmp_path / "out" / "path.csv")
    for k, row in enumerate(table.itertuples(), start=1):
        step = str(tmp_path / "out" / f"step-{k:02d}.json")
        assert CliRunner().invoke(app, ["report", step, "--out", str(tmp_path / "report"), "-q"]).exit_code == 0
        for to in ("lavaan", "methods", "r"):
            exported = CliRunner().invoke(app, ["export", step, "--to", to])
            assert exported.exit_code == 0, exported.output
        refitted = json.loads(CliRunner().invoke(app, ["fit", step, matrix, "--n", "202", "--json"]).output)
        assert refitted["bic"] == pytest.approx(row.bic, abs=1e-4)
        assert refitted["df"] == row.df
    wrong = CliRunner().invoke(app, ["penalty-path", matrix, "--n", "202", "--penalties", "1,few"])
    assert "--penalties takes numbers with commas between them; got 'few'" in str(wrong.exception)


def test_edges_of_the_truth_are_right_and_others_wrong() -> None:
    truth = latent_chain.cpdag()
    right = Outline.of(truth, truth.observed)
    more = Outline(
        right.sizes, right.measures.copy(), np.ones_like(right.between) - np.eye(len(right.sizes), dtype=np.uint8)
    )
    found = Stability(truth, truth.observed, "made up", (Replicate(0, right, 0.0), Replicate(1, more, 0.0)))
    edges = judged(found, latent_chain)
    assert set(edges["right"][edges["frequency"] == 1.0]) == {True}
    assert set(edges["right"][edges["frequency"] == 0.5]) == {False}
    table = Calibration(edges, 1, 2, 100, 0.0).table
    assert table["right"].iloc[-1] == 1.0
    assert table["edges"].sum() == len(edges)
