"""The commands that ask how sure an answer is, and the study of whether to believe them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import unmeasured as um
from graphs_zoo import latent_chain
from unmeasured.benchmark.calibration import Calibration, judged
from unmeasured.cli import app
from unmeasured.graphs.outline import Outline
from unmeasured.replicates.records import Replicate


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
    said = CliRunner().invoke(app, ["path", matrix, "--n", "202", "--penalties", "1,4", "--out", str(tmp_path / "out")])
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
    wrong = CliRunner().invoke(app, ["path", matrix, "--n", "202", "--penalties", "1,few"])
    assert "--penalties takes numbers with commas between them; got 'few'" in str(wrong.exception)


def test_edges_of_the_truth_are_right_and_others_wrong() -> None:
    truth = latent_chain.cpdag()
    right = Outline.of(truth, truth.observed)
    more = Outline(
        right.sizes, right.measures.copy(), np.ones_like(right.between) - np.eye(len(right.sizes), dtype=np.uint8)
    )
    found = um.Stability(truth, truth.observed, "made up", (Replicate(0, right, 0.0), Replicate(1, more, 0.0)))
    edges = judged(found, latent_chain)
    assert set(edges["right"][edges["frequency"] == 1.0]) == {True}
    assert set(edges["right"][edges["frequency"] == 0.5]) == {False}
    table = Calibration(edges, 1, 2, 100, 0.0).table
    assert table["right"].iloc[-1] == 1.0
    assert table["edges"].sum() == len(edges)
