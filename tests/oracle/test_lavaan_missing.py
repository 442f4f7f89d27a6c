"""Full information and all pairs against lavaan: program, script and date stand in the file, with the rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.models.fit import Fit

STORED = json.loads(Path(__file__).with_name("lavaan_missing.json").read_text("utf-8"))
ROWS = {
    name: pd.DataFrame(columns).astype(float).replace({None: np.nan}).dropna(how="all")
    for name, columns in STORED["rows"].items()
}
CLOSE = {
    "df": "df", "baseline.df": "baseline_df", "cfi": "cfi", "tli": "tli", "rmsea": "rmsea", "srmr": "srmr",
    "pvalue": "pvalue", "pvalue.scaled": "pvalue_scaled", "scaling.factor": "scaling_factor",
    "cfi.scaled": "cfi_scaled", "cfi.robust": "cfi_robust", "tli.robust": "tli_robust", "rmsea.robust": "rmsea_robust",
}  # fmt: skip
LARGE = {
    "chisq": "chi2", "baseline.chisq": "baseline_chi2", "chisq.scaled": "chi2_scaled", "logl": "loglik", "aic": "aic",
    "bic": "bic", "ntotal": "n_samples",
}  # fmt: skip


def name_of(oracle: dict) -> str:
    return f"{oracle['name']}-{oracle['estimator']}-{len(oracle['model'])}"


def of_robust(oracle: dict, name: str) -> bool:
    # lavaan gives robust indices of maximum likelihood with missing values; ours belong to MLR.
    return oracle["estimator"] == "ML" and name.endswith("robust")


def compared(fit: Fit, oracle: dict) -> None:
    expected = {k: v for k, v in oracle["measures"].items() if v is not None and not of_robust(oracle, k)}
    ordinal = oracle["estimator"] == "WLSMV"
    for theirs, ours in CLOSE.items():
        if theirs in expected and not (ordinal and theirs == "pvalue"):
            assert getattr(fit, ours) == pytest.approx(expected[theirs], abs=1e-4), theirs
    for theirs, ours in LARGE.items():
        if theirs in expected and not (ordinal and theirs == "ntotal"):
            assert getattr(fit, ours) == pytest.approx(expected[theirs], rel=1e-5), theirs
    table = fit.parameters.set_index(["lhs", "op", "rhs"])
    n = 0
    for row in oracle["parameters"]:
        key = (row["lhs"], row["op"], row["rhs"])
        key = key if key in table.index else key[::-1]
        if key in table.index:
            n += 1
            assert table.loc[key].est == pytest.approx(row["est"], abs=1e-4), key
            # Of what is given (a covariate's variance) lavaan has no standard error.
            assert row["se"] in (0.0, pytest.approx(table.loc[key].se, rel=1e-3)), key
    assert n == len(table)


@pytest.mark.parametrize("oracle", STORED["fits"], ids=name_of)
def test_rows_with_missing_values_as_lavaan_takes_them(oracle: dict) -> None:
    """By default: nothing but the estimator is asked for."""
    fit = um.fit(oracle["model"], ROWS[oracle["name"]], estimator=oracle["estimator"])
    assert fit.converged
    compared(fit, oracle)


def test_model_text_and_its_graph_have_one_likelihood() -> None:
    oracle = STORED["fits"][0]
    rows = ROWS["normal"]
    text, fiml = um.fit(oracle["model"], rows), um.fit(oracle["model"], rows, missing="fiml")
    for name in ("chi2", "df", "loglik", "bic", "cfi", "srmr", "n_samples"):
        assert getattr(text, name) == pytest.approx(getattr(fiml, name), rel=1e-9), name
    # Variables that are not of the model have no part in it.
    beside = rows.assign(other=np.where(np.arange(len(rows)) % 3, np.arange(len(rows)), np.nan))
    assert um.fit(oracle["model"], beside).chi2 == pytest.approx(text.chi2, rel=1e-7)
