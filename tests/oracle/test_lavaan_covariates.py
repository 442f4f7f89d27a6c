"""Covariates and outcomes against lavaan with ``fixed.x``: measures and estimates of our exported text.

``lavaan_covariates.json`` holds the covariances and what lavaan said of them (version in the file); run this file as a
script to make it anew. Where R and lavaan are installed, today's text goes through them once more.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import unmeasured as um
from graphs_zoo import measured
from unmeasured.cli.commands import app
from unmeasured.models.fit import Fit

HERE = Path(__file__).parent
STORED = HERE / "lavaan_covariates.json"
MEASURES = {"chisq": "chi2", "df": "df", "logl": "loglik", "aic": "aic", "bic": "bic", "npar": "n_counted"}
MEASURES |= {"cfi": "cfi", "tli": "tli", "rmsea": "rmsea", "srmr": "srmr"}
MEASURES |= {"baseline.chisq": "baseline_chi2", "baseline.df": "baseline_df"}

A, B = ["a1", "a2", "a3"], ["b1", "b2", "b3"]
X, Y = ["age", "female", "region"], ["sick", "pay"]
both = [*measured(["A"], A), *measured(["B"], B)]
CASES = {
    # age ─► A ─► B ─► sick, and female on both
    "chain": um.DAG.from_edges(
        [*both, ("age", "A"), ("female", "A"), ("female", "B"), ("A", "B"), ("B", "sick"), ("age", "sick")],
        latents=["A", "B"], names=["A", "B", *A, *B, "age", "female", "sick"], covariates=["age", "female"],
        outcomes=["sick"],
    ),
    # a direct effect on an item, and a covariate without any effect
    "direct": um.DAG.from_edges(
        [*both, ("age", "A"), ("age", "a2"), ("female", "b3"), ("A", "B")],
        latents=["A", "B"], names=["A", "B", *A, *B, *X], covariates=X,
    ),
    # latents that nothing causes, and outcomes that cause one another
    "outcomes": um.DAG.from_edges(
        [*both, ("A", "sick"), ("B", "pay"), ("sick", "pay"), ("age", "pay")],
        latents=["A", "B"], names=["A", "B", *A, *B, "age", "female", *Y], covariates=["age", "female"], outcomes=Y,
    ),
    # a group of two latents between a covariate and an outcome
    "group": um.DAG.from_edges(
        [*measured(["A1", "A2"], [*A, "a4", "a5", "B", "sick"]), *measured(["B"], B), ("age", "A1"), ("age", "A2")],
        latents=["A1", "A2", "B"], names=["A1", "A2", "B", *A, "a4", "a5", *B, "age", "sick"], covariates=["age"],
        outcomes=["sick"],
    ),
}  # fmt: skip
HAS_LAVAAN = (
    bool(shutil.which("Rscript"))
    and not subprocess.run(["Rscript", "-e", "library(lavaan)"], capture_output=True).returncode
)


def stored(name: str) -> dict[str, Any]:
    return json.loads(STORED.read_text())["cases"][name]


def fitted(name: str) -> Fit:
    case = stored(name)
    cov = pd.DataFrame(case["cov"], index=case["names"], columns=case["names"])
    return um.fit(CASES[name], cov=cov, n_samples=case["n_samples"])


@pytest.mark.parametrize("name", CASES)
def test_measures_are_lavaans(name: str) -> None:
    fit = fitted(name)
    for theirs, ours in MEASURES.items():
        assert getattr(fit, ours) == pytest.approx(stored(name)["measures"][theirs], rel=1e-6, abs=1e-5), theirs


@pytest.mark.parametrize("name", [name for name in CASES if name != "group"])  # whose rotation is a choice
def test_estimates_and_standard_errors_are_lavaans(name: str) -> None:
    case = stored(name)
    cov = pd.DataFrame(case["cov"], index=case["names"], columns=case["names"])
    result = um.Result(CASES[name].cpdag(), um.fit(CASES[name], cov=cov, n_samples=case["n_samples"]))
    rows = result.fit.parameters.set_index(["lhs", "op", "rhs"])
    given, compared = set(CASES[name].variables.covariates), 0
    for lhs, op, rhs, est, se in case["parameters"]:
        if se == 0 or {lhs, rhs} <= given:
            continue
        row = rows.loc[(lhs, op, rhs)]
        assert abs(row["est"]) == pytest.approx(abs(est), abs=2e-4 * max(1.0, abs(est)))
        assert row["se"] == pytest.approx(se, rel=2e-3)
        compared += 1
    assert compared > 15


@pytest.mark.parametrize("name", CASES)
def test_our_reading_of_the_text_is_the_graph(name: str) -> None:
    case, graph = stored(name), fitted(name)
    cov = pd.DataFrame(case["cov"], index=case["names"], columns=case["names"])
    text = um.fit(CASES[name].to_lavaan(), cov=cov, n_samples=case["n_samples"])
    assert (text.chi2, text.df) == pytest.approx((graph.chi2, graph.df), abs=1e-6)
    # Groups of several latents are fixed in the text; dimensions do not depend on it.
    assert text.bic == pytest.approx(graph.bic, abs=1e-5)


@pytest.mark.skipif(not HAS_LAVAAN, reason="R with lavaan is not installed")
@pytest.mark.parametrize("name", ["direct", "group"])
def test_lavaan_says_the_same_today(name: str) -> None:
    case = stored(name)
    cov = pd.DataFrame(case["cov"], index=case["names"], columns=case["names"])
    today = ask_lavaan(CASES[name].to_lavaan(), cov, case["n_samples"])
    assert today["measures"]["chisq"] == pytest.approx(case["measures"]["chisq"], abs=1e-4)
    assert today["measures"]["npar"] == case["measures"]["npar"]


GROUPS = """
suppressMessages(library(lavaan))
given <- commandArgs(TRUE)
rows <- read.csv(given[2])
fit <- sem(paste(readLines(given[1]), collapse = "\\n"), rows, group = "country", std.lv = TRUE)
m <- fitMeasures(fit, c("chisq", "df", "logl", "bic", "npar", "cfi", "tli", "baseline.chisq", "baseline.df"))
cat(paste(names(m), sprintf("%.9f", m)), sep = "\\n")
"""


@pytest.mark.skipif(not HAS_LAVAAN, reason="R with lavaan is not installed")
def test_groups_with_covariates_are_lavaans(tmp_path: Path) -> None:
    dag = CASES["chain"]
    rows = pd.concat([draw(dag, 200, seed).assign(country=f"c{seed}") for seed in (11, 12)], ignore_index=True)
    for name, text in (
        ("ask.R", GROUPS),
        ("model.txt", dag.to_lavaan() + "\n"),
        ("rows.csv", rows.to_csv(index=False)),
    ):
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in ("ask.R", "model.txt", "rows.csv")]
    said = subprocess.run(["Rscript", *files], check=True, capture_output=True, text=True).stdout
    expected = {line.split()[0]: float(line.split()[1]) for line in said.splitlines()}
    fit = um.fit(dag, rows, groups="country")
    for theirs, value in expected.items():
        assert getattr(fit, MEASURES[theirs]) == pytest.approx(value, rel=1e-6, abs=1e-4), theirs


@pytest.mark.skipif(not HAS_LAVAAN, reason="R with lavaan is not installed")
def test_the_script_for_r_says_the_same_of_a_search(tmp_path: Path) -> None:
    rows = draw(CASES["direct"], 400, 7)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    search = um.LGES(covariates=X, cor="pearson").fit(rows)
    um.write_report(search, tmp_path / "report", data="rows.csv")
    script = run_script(tmp_path / "report" / "result.json", tmp_path)
    lines = {line.split()[0]: [float(x) for x in line.split()[1:]] for line in script.splitlines() if line[:4] in KEYS}
    assert set(lines) >= {"chisq", "df", "aic", "bic"}
    for ours, theirs in lines.values():
        assert ours == pytest.approx(theirs, abs=1e-3)


KEYS = ("chis", "df  ", "aic ", "bic ", "cfi ", "tli ")


def run_script(result: Path, folder: Path) -> str:
    """What R prints for the script that is exported."""
    script = folder / "model.R"
    exported = CliRunner().invoke(app, ["export", str(result), "--to", "r", "--out", str(script)])
    assert exported.exit_code == 0, exported.output
    done = subprocess.run(["Rscript", str(script)], check=True, capture_output=True, text=True, cwd=folder)
    return done.stdout


def ask_lavaan(text: str, cov: pd.DataFrame, n: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / file for file in ("model.txt", "cov.csv", "out.csv")]
        files[0].write_text(text + "\n")
        cov.to_csv(files[1])
        script = [str(HERE / "lavaan_covariates.R"), str(files[0]), str(files[1]), str(n), str(files[2])]
        subprocess.run(["Rscript", *script], check=True, capture_output=True)
        table = pd.read_csv(files[2], keep_default_na=False)
    kinds = table["op"]
    said = table[~kinds.isin(["measure", "version"])]
    return {
        "lavaan": table["lhs"][kinds == "version"].iloc[0],
        "measures": dict(zip(table["lhs"][kinds == "measure"], table["est"][kinds == "measure"].astype(float))),
        "parameters": said.astype({"est": float, "se": float}).to_numpy().tolist(),
    }


def draw(dag: um.DAG, n: int, seed: int) -> pd.DataFrame:
    """Rows with a skewed and a binary covariate, so that nothing rests on their being normal."""
    rng = np.random.default_rng(seed)
    values: dict[str, Any] = {}
    values["age"] = 18 + rng.gamma(2.0, 10.0, n)
    values["female"] = (rng.random(n) < 0.3 + 0.005 * (values["age"] - 18)).astype(float)
    values["region"] = rng.integers(1, 5, n).astype(float)
    for name in (dag.names[i] for i in dag.topological_order):
        if name in values:
            continue
        parts = [0.6 * (values[x] - values[x].mean()) / values[x].std() for x in dag.parents(name)]
        values[name] = sum(parts, np.zeros(n)) + rng.normal(0, 0.8, n)
    return pd.DataFrame({name: values[name] for name in dag.observed})


def main() -> None:
    cases, version = {}, ""
    for k, (name, dag) in enumerate(CASES.items()):
        rows = draw(dag, 400, k)
        cov = rows.cov().round(9)
        said = ask_lavaan(dag.to_lavaan(), cov, len(rows))
        version = said.pop("lavaan")
        cases[name] = {"names": list(cov.columns), "cov": cov.to_numpy().tolist(), "n_samples": len(rows), **said}
    assert not any(math.isnan(value) for case in cases.values() for value in case["measures"].values())
    STORED.write_text(json.dumps({"lavaan": version, "date": "2026-11-16", "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
