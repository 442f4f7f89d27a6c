"""Covariates, outcomes and groups of people on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from unmeasured.cli.commands import app
from unmeasured.errors import UnmeasuredError


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    n = 600
    age, country = rng.gamma(2.0, 10.0, n), np.repeat(["x", "y"], n // 2)
    worry = 0.04 * age + rng.normal(size=n)
    strain = 0.6 * worry + rng.normal(size=n)
    frame = pd.DataFrame({f"w{i}": worry + rng.normal(size=n) for i in range(1, 4)})
    frame = frame.assign(**{f"s{i}": strain + rng.normal(size=n) for i in range(1, 4)})
    frame = frame.assign(age=age, sick=0.5 * strain + rng.normal(size=n), country=country)
    file = tmp_path_factory.mktemp("rows") / "rows.csv"
    frame.to_csv(file, index=False)
    return file


def test_discover_takes_covariates_and_outcomes(rows: Path, tmp_path: Path) -> None:
    done = run("discover", rows, "--columns", "w*,s?", "--covariates", "age", "--outcomes", "sick", "--out", tmp_path)
    assert done.exit_code == 0
    assert "2 latent variables behind 6 indicators, with 1 covariate and 1 outcome" in done.stdout
    assert "age → " in done.stdout
    assert "age" in (tmp_path / "model.lav").read_text("utf-8")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Paths between latents, covariates and outcomes" in page


def test_knowledge_may_name_them(rows: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    known.write_text('covariates = ["age"]\noutcomes = ["sick"]\n')
    done = run("discover", rows, "--columns", "w*,s?", "--knowledge", known)
    assert done.exit_code == 0
    assert "with 1 covariate and 1 outcome" in done.stdout


def test_check_and_stability_take_them(rows: Path) -> None:
    checked = run("check", rows, "--columns", "w*,s?", "--covariates", "age", "--outcomes", "sick")
    assert checked.stdout.startswith("6 variables, 600 rows")
    stable = run(
        "stability", rows, "--columns", "w*,s?", "--covariates", "age", "--outcomes", "sick", "--replicates", "2"
    )
    assert stable.exit_code == 0
    assert "age" in stable.stdout


def test_check_asks_about_columns_that_look_like_characteristics(rows: Path) -> None:
    asked = run("check", rows, "--columns", "w*,s?,age")
    assert asked.exit_code == 1
    assert "Name an observed cause as a covariate" in " ".join(asked.stdout.split())


def test_discover_searches_groups(rows: Path, tmp_path: Path) -> None:
    done = run("discover", rows, "--groups", "country", "--covariates", "age", "--outcomes", "sick", "--out", tmp_path)
    assert done.exit_code == 0
    assert "One structure for 2 groups" in done.stdout
    assert "What the groups share" in done.stdout
    written = {path.name for path in tmp_path.iterdir()}
    assert {"invariance.csv", "differences.csv", "differences.svg", "report.html"} <= written


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--covariates", "agee"), "No column (--covariates) is called 'agee', nor matches it; did you mean 'age'?"),
        (
            ("--columns", "w*,s?", "--covariates", "age", "--outcomes", "age"),
            "'age' is named as a covariate and as an outcome",
        ),
        (("--groups", "land"), "There is no column 'land'"),
        (("--groups", "country", "--holdout", "0.5"), "--holdout and --groups do not go together yet"),
    ],
)
def test_mistakes_are_sentences(rows: Path, words: tuple[str, ...], message: str) -> None:
    done = run("discover", rows, *words)
    assert isinstance(done.exception, UnmeasuredError)
    assert message in str(done.exception)
