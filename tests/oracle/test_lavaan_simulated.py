"""Every estimator against lavaan on rows that were drawn for it by ``lavaan_simulated.py``: no other is needed."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from lavaan_rows import ROOT
from unmeasured.models.fit import Fit
from unmeasured.models.multigroup import GroupFit

ORACLE = json.loads(gzip.decompress((ROOT / "tests" / "oracle" / "lavaan_simulated.json.gz").read_bytes()))
ROWS = {name: pd.DataFrame(columns).replace({None: np.nan}) for name, columns in ORACLE["rows"].items()}
COVARIATES = ("age", "female")
SMALL = {"rmsea": "rmsea", "cfi": "cfi", "tli": "tli", "srmr": "srmr", "pvalue": "pvalue"}
LARGE = {"chisq": "chi2", "df": "df", "baseline.chisq": "baseline_chi2", "baseline.df": "baseline_df"}
LIKELIHOOD = {"logl": "loglik", "aic": "aic", "bic": "bic"}
ROBUST = {
    "chisq.scaled": "chi2_scaled", "pvalue.scaled": "pvalue_scaled", "factor": "scaling_factor", "shift": "shift",
    "cfi.scaled": "cfi_scaled", "tli.scaled": "tli_scaled", "cfi.robust": "cfi_robust", "tli.robust": "tli_robust",
    "rmsea.robust": "rmsea_robust",
}  # fmt: skip


def name_of(oracle: dict) -> str:
    groups = f"-{'+'.join(oracle['equal']) or 'free'}" if oracle["groups"] else ""
    return f"{oracle['rows']}-{oracle['estimator']}{groups}-{oracle['scale_latents']}-{len(oracle['model'])}"


def rows_of(oracle: dict) -> pd.DataFrame:
    rows = ROWS[oracle["rows"]]
    return rows if oracle["groups"] else rows.drop(columns="school", errors="ignore")


def fitted(oracle: dict) -> Fit | GroupFit:
    return um.fit(
        oracle["model"],
        rows_of(oracle),
        groups=oracle["groups"],
        equal=oracle["equal"],
        estimator=oracle["estimator"],
        scale_latents=oracle["scale_latents"],
        missing="fiml" if oracle["missing"] == "ml" else "listwise",
    )


def compare(oracle: dict) -> None:
    """Measures, estimates, standard errors and standardised estimates."""
    fit, expected = fitted(oracle), oracle["measures"]
    assert fit.converged
    for theirs, ours in LARGE.items():
        assert getattr(fit, ours) == pytest.approx(expected[theirs], rel=1e-5, abs=1e-4), theirs
    for theirs, ours in SMALL.items():
        if expected.get(theirs) is not None:  # lavaan has no p-value of the test of WLSMV that is not scaled
            assert getattr(fit, ours) == pytest.approx(expected[theirs], abs=1e-4), theirs
    assert fit.rmsea_ci == pytest.approx((expected["rmsea.ci.lower"], expected["rmsea.ci.upper"]), abs=1e-4)
    if oracle["estimator"] != "WLSMV":
        assert fit.loglik == pytest.approx(expected["logl"], rel=1e-6)
    if oracle["estimator"] == "ML":
        for theirs, ours in LIKELIHOOD.items():
            assert getattr(fit, ours) == pytest.approx(expected[theirs], rel=1e-6, abs=1e-3), theirs
    else:
        for theirs, ours in ROBUST.items():
            if expected.get(theirs) is not None:
                assert getattr(fit, ours) == pytest.approx(expected[theirs], rel=1e-5, abs=1e-4), theirs
        if isinstance(fit, Fit):
            interval = [expected["rmsea.ci.lower.robust"], expected["rmsea.ci.upper.robust"]]
            assert fit.rmsea_robust_ci == pytest.approx(interval, abs=1e-4)
    table = fit.parameters if oracle["groups"] else fit.parameters.assign(group="")
    table, compared = table.set_index(["group", "lhs", "op", "rhs"]), 0
    for lhs, op, rhs, group, est, se, std in oracle["parameters"]:
        key = (group, lhs, op, rhs)
        key = key if key in table.index else (group, rhs, op, lhs)
        if key not in table.index:  # means, where they are not part of our model: all free, nothing depends on them
            assert op == "~1"
            continue
        row, compared = table.loc[key], compared + 1
        # Up to the sign of a latent, which nothing fixes.
        assert abs(row.est) == pytest.approx(abs(est), abs=1e-4), key
        assert row.se == pytest.approx(se, rel=2e-4), key
        assert abs(row["std"]) == pytest.approx(abs(std), abs=1e-4), key
    # Those of covariates are given, as for lavaan's fixed.x.
    given = [lhs in COVARIATES and rhs in ("", *COVARIATES) for _, lhs, _, rhs in table.index]
    assert compared == ((table.se > 0) & ~np.array(given)).sum()


@pytest.mark.parametrize("oracle", ORACLE["fits"], ids=name_of)
def test_fits_equal_lavaans(oracle: dict) -> None:
    compare(oracle)


@pytest.mark.parametrize("oracle", [o for o in ORACLE["fits"] if o["score_tests"]], ids=name_of)
def test_score_tests_of_equality_constraints_equal_lavaans(oracle: dict) -> None:
    tests = fitted(oracle).score_tests().set_index(["lhs", "op", "rhs"])
    assert len(tests) == len(oracle["score_tests"])
    for lhs, op, rhs, chi2 in oracle["score_tests"]:
        assert tests.loc[(lhs, op, rhs)].chi2 == pytest.approx(chi2, abs=1e-3)


@pytest.mark.parametrize("oracle", [o for o in ORACLE["fits"] if o["differences"]], ids=name_of)
def test_steps_of_invariance_and_their_differences_equal_lavaans(oracle: dict) -> None:
    found = um.invariance(oracle["model"], rows_of(oracle), groups=oracle["groups"], estimator=oracle["estimator"])
    table = found.table.iloc[1:]
    for column, theirs, digits in zip(
        ("d_chi2", "d_df", "d_pvalue"), np.transpose(oracle["differences"]), (2e-3, 0, 1e-4), strict=True
    ):
        assert table[column].to_list() == pytest.approx(theirs.tolist(), abs=digits)


def test_moments_of_rows_with_holes_are_lavaans() -> None:
    sample, expected = um.as_sample(ROWS["holed"].drop(columns="school")), ORACLE["moments"]
    cov = np.array(expected["cov"])
    sd = np.sqrt(np.diag(cov))
    assert np.abs((sample.mean - np.array(expected["mean"])) / sd).max() < 1e-4
    assert np.abs((sample.cov - cov) / np.outer(sd, sd)).max() < 1e-4
