"""Models conditioned on covariates of large mean against lavaan, with each estimator, and against centred rows.

``lavaan_means.json`` holds the rows and what lavaan said of them (version in the file); run this file as a script to
make it anew, which needs R with lavaan.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.models.fit import Fit
from unmeasured.models.multigroup import GroupFit

HERE = Path(__file__).parent
STORED = HERE / "lavaan_means.json"
ORACLE = json.loads(STORED.read_text("utf-8")) if STORED.exists() else {"rows": {}, "fits": []}
ROWS = {name: pd.DataFrame(columns) for name, columns in ORACLE["rows"].items()}
GIVEN = {"age", "sex", "income"}
MEASURES = {"chisq": "chi2", "df": "df", "npar": "n_counted", "logl": "loglik", "aic": "aic", "bic": "bic"}
MEASURES |= {"cfi": "cfi", "tli": "tli", "rmsea": "rmsea", "srmr": "srmr"}
MEASURES |= {"baseline.chisq": "baseline_chi2", "baseline.df": "baseline_df"}
ROBUST = {"chisq.scaled": "chi2_scaled", "chisq.scaling.factor": "scaling_factor", "cfi.scaled": "cfi_scaled"}
ROBUST |= {"tli.scaled": "tli_scaled", "cfi.robust": "cfi_robust", "tli.robust": "tli_robust"}
ROBUST |= {"rmsea.robust": "rmsea_robust"}


def name_of(oracle: dict) -> str:
    kind = "factors" if "=~" in oracle["model"] else "regressions"
    return "-".join([oracle["rows"], kind, oracle["estimator"], oracle["missing"], *oracle["equal"]])


def fitted(oracle: dict, rows: pd.DataFrame) -> Fit | GroupFit:
    return um.fit(
        oracle["model"],
        rows if oracle["groups"] else rows.drop(columns="g"),
        estimator=oracle["estimator"],
        correlate_outcomes=True,
        missing="fiml" if oracle["missing"] == "ml" else "ml",
        groups=oracle["groups"],
        equal=oracle["equal"],
    )


@pytest.mark.parametrize("oracle", ORACLE["fits"], ids=name_of)
def test_measures_are_lavaans(oracle: dict) -> None:
    fit = fitted(oracle, ROWS[oracle["rows"]])
    theirs = oracle["measures"]
    for name, ours in (MEASURES | (ROBUST if oracle["estimator"] != "ML" else {})).items():
        if theirs[name] is not None:
            assert getattr(fit, ours) == pytest.approx(theirs[name], rel=2e-5, abs=2e-5), name


@pytest.mark.parametrize("oracle", ORACLE["fits"], ids=name_of)
def test_estimates_and_standard_errors_are_lavaans(oracle: dict) -> None:
    fit = fitted(oracle, ROWS[oracle["rows"]])
    table = fit.parameters
    if oracle["groups"] is None:
        table = table.assign(group="all")
    labels = list(dict.fromkeys(table["group"]))
    table = table.set_index(["group", "lhs", "op", "rhs"])
    compared = 0
    for row in oracle["parameters"]:
        key = (labels[row["group"] - 1], row["lhs"], row["op"], row["rhs"])
        # What is conditioned on is fixed in lavaan.
        if row["se"] == 0 or {row["lhs"], row["rhs"]} <= GIVEN | {""} or key not in table.index:
            continue
        assert table.loc[key, "est"] == pytest.approx(row["est"], rel=1e-3, abs=2e-4), key
        assert table.loc[key, "se"] == pytest.approx(row["se"], rel=2e-3), key
        compared += 1
    assert compared >= 6


@pytest.mark.parametrize("estimator", ["ML", "MLM", "MLR"])
@pytest.mark.parametrize("model", sorted({oracle["model"] for oracle in ORACLE["fits"]}))
def test_nothing_depends_on_the_means(model: str, estimator: str) -> None:
    """The means are free, so that rows in deviations from them have the same test and standard errors."""
    rows = ROWS["aged"].drop(columns="g")
    there, centred = (
        um.fit(model, x, estimator=estimator, correlate_outcomes=True) for x in (rows, rows - rows.mean())
    )
    columns = ["est", "se"]
    assert there.parameters[columns].to_numpy() == pytest.approx(centred.parameters[columns].to_numpy(), rel=1e-6)
    if estimator != "ML":
        assert there.chi2_scaled == pytest.approx(centred.chi2_scaled, rel=1e-6)


def test_what_a_search_reports_does_not_depend_on_the_means() -> None:
    rows = ROWS["aged"].drop(columns=["g", "income"])
    given = {"covariates": ["age", "sex"], "cor": "pearson"}
    there = um.LGES(**given).fit(rows).result_
    centred = um.LGES(**given).fit(rows - rows.mean()).result_
    assert there.reported.robust is not None
    z = there.reported.parameters["z"].to_numpy()
    assert z == pytest.approx(centred.reported.parameters["z"].to_numpy(), rel=1e-5, nan_ok=True)


def draw() -> dict[str, pd.DataFrame]:
    """Skewed rows whose spread grows with age, so that corrections are far from 1; a tenth of the items missing."""
    rng = np.random.default_rng(40)
    n = 300
    age = 30.0 + rng.gamma(2.0, 5.0, n)
    sex = (rng.random(n) < 0.4 + 0.01 * (age - 40)).astype(float)
    income = 30.0 + 0.6 * (age - 40) + 8.0 * rng.standard_normal(n)
    f = 0.06 * (age - 40) + 0.4 * sex + rng.standard_normal(n) * (0.5 + 0.03 * (age - 30))
    h = 0.5 * f + 0.03 * (income - 30) + 0.7 * rng.standard_t(5, n)
    values = {f"y{i + 1}": 3 + 0.8 * f + 0.6 * rng.standard_t(5, n) for i in range(3)}
    values |= {f"z{i + 1}": 10 + 0.7 * h + 0.6 * rng.standard_t(5, n) + (0.03 * age if i == 0 else 0) for i in range(3)}
    rows = pd.DataFrame(values | {"age": age, "sex": sex, "income": income}).round(4)
    rows["g"] = np.where(np.arange(n) % 2, "a", "b")
    incomplete = rows.copy()
    items = list(values)
    incomplete[items] = incomplete[items].mask(rng.random((n, len(items))) < 0.1)
    # Where covariates have gaps too, they are variables of the model (lavaan: fixed.x = FALSE).
    gaps = incomplete.assign(age=incomplete["age"].where(np.arange(n) % 9 > 0))
    return {"aged": rows, "aged_incomplete": incomplete, "aged_gaps": gaps}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in draw().items():
            rows.to_csv(Path(folder) / f"{name}.csv", index=False)
        subprocess.run(["Rscript", str(HERE / "lavaan_means.R"), folder, str(STORED)], check=True)


if __name__ == "__main__":
    main()
