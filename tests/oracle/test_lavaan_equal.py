"""Equal labels against lavaan: measures, estimates, modification indices, score tests and standardised residuals.

``lavaan_equal.json`` holds what lavaan said of rows that ``lavaan_robust.json`` has; run this file as a script to make
it anew, which needs R with lavaan.
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
from lavaan_rows import DRAWN
from unmeasured.models.fit import Fit
from unmeasured.models.multigroup import GroupFit

HERE = Path(__file__).parent
STORED = HERE / "lavaan_equal.json"
FITS = json.loads(STORED.read_text("utf-8"))["fits"] if STORED.exists() else []
MEASURES = {"chisq": "chi2", "df": "df", "npar": "n_counted", "logl": "loglik", "aic": "aic", "bic": "bic"}
MEASURES |= {"cfi": "cfi", "tli": "tli", "rmsea": "rmsea", "srmr": "srmr"}
MEASURES |= {"baseline.chisq": "baseline_chi2", "baseline.df": "baseline_df"}
ROBUST = {"chisq.scaled": "chi2_scaled", "chisq.scaling.factor": "scaling_factor"}
ROBUST |= {"cfi.robust": "cfi_robust", "tli.robust": "tli_robust", "rmsea.robust": "rmsea_robust"}


def name_of(oracle: dict) -> str:
    scale = "marker" if oracle["marker"] else "variance"
    return " ".join([*oracle["model"].split("\n"), scale, oracle["estimator"], oracle["missing"]])


def fitted(oracle: dict) -> Fit | GroupFit:
    rows = DRAWN[oracle["rows"]]
    return um.fit(
        oracle["model"],
        rows if oracle["group"] else rows.drop(columns="g", errors="ignore"),
        groups=oracle["group"],
        estimator=oracle["estimator"],
        missing="fiml" if oracle["missing"] == "ml" else "ml",
        scale_latents="first-indicator" if oracle["marker"] else "variance",
    )


@pytest.mark.parametrize("oracle", FITS, ids=name_of)
def test_measures_are_lavaans(oracle: dict) -> None:
    fit = fitted(oracle)
    for name, ours in (MEASURES | (ROBUST if oracle["estimator"] != "ML" else {})).items():
        assert getattr(fit, ours) == pytest.approx(oracle["measures"][name], rel=3e-5, abs=3e-5), name


@pytest.mark.parametrize("oracle", FITS, ids=name_of)
def test_estimates_and_standard_errors_are_lavaans(oracle: dict) -> None:
    fit = fitted(oracle)
    table = fit.parameters if oracle["group"] else fit.parameters.assign(group="all")
    labels = list(dict.fromkeys(table["group"]))
    table = table.set_index(["group", "lhs", "op", "rhs"])
    compared = 0
    for group, lhs, op, rhs, est, se in oracle["parameters"]:
        key = (labels[group - 1], lhs, op, rhs)
        if key not in table.index:  # lavaan lists intercepts that are zero
            continue
        assert table.loc[key, "est"] == pytest.approx(est, abs=3e-4), key
        assert table.loc[key, "se"] == pytest.approx(se, abs=3e-4), key
        compared += 1
    assert compared > 14


@pytest.mark.parametrize("oracle", [o for o in FITS if o["mi"]], ids=name_of)
def test_modification_indices_are_lavaans(oracle: dict) -> None:
    fit = fitted(oracle)
    shares = list(fit.fits.values()) if isinstance(fit, GroupFit) else [fit]
    tables = [share.modification_indices().set_index(["lhs", "op", "rhs"]) for share in shares]
    assert len(oracle["mi"]) > 10
    for group, lhs, op, rhs, mi, epc in oracle["mi"]:
        row = tables[group - 1].loc[(lhs, op, rhs)]
        assert row["mi"] == pytest.approx(mi, rel=1e-3, abs=1e-3), (group, lhs, op, rhs)
        assert row["epc"] == pytest.approx(epc, rel=1e-3, abs=1e-3), (group, lhs, op, rhs)


@pytest.mark.parametrize("oracle", [o for o in FITS if o["score"]], ids=name_of)
def test_score_tests_are_lavaans(oracle: dict) -> None:
    tests = fitted(oracle).score_tests()
    if len(oracle["score"]) == 1:
        assert tests["chi2"].tolist() == pytest.approx(oracle["score"], rel=1e-3)
    else:
        # lavaan tests each constraint, we release each parameter: of three equal ones it has two tests, we three.
        assert all(np.abs(tests["chi2"] / value - 1.0).min() < 1e-3 for value in oracle["score"])


@pytest.mark.parametrize("oracle", [o for o in FITS if o["z"]], ids=name_of)
def test_standardised_residuals_are_lavaans(oracle: dict) -> None:
    ours = fitted(oracle).residuals("standardised").to_numpy()
    theirs = np.array(oracle["z"], dtype=float)
    known = ~np.isnan(ours) & ~np.isnan(theirs)
    assert known.sum() > 20
    assert ours[known] == pytest.approx(theirs[known], abs=2e-3)


def test_a_label_changes_no_criterion_by_itself() -> None:
    """A label that one parameter has, and two labels that are equal anyway, leave AIC, BIC and SRMR where they were."""
    rows = DRAWN["skewed"].drop(columns="g")
    free = um.fit("f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6", rows)
    alone = um.fit("f =~ y1 + a*y2 + y3\nh =~ y4 + y5 + y6", rows)
    twice = um.fit("f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6\ny1 ~~ 0*y4 + a*y4\ny2 ~~ a*y5", rows)
    for name in ("chi2", "df", "aic", "bic", "srmr", "n_counted"):
        assert getattr(alone, name) == getattr(free, name)
        assert getattr(twice, name) == pytest.approx(getattr(free, name), rel=1e-8)


@pytest.mark.parametrize("missing", ["ml", "listwise", "pairwise", "fiml"])
def test_labels_do_not_change_the_data(missing: str) -> None:
    """Whatever is done about missing values, a model with labels is fitted to what the one without is fitted to."""
    rows = DRAWN["incomplete"]
    free = um.fit("f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6", rows, missing=missing)
    equal = um.fit("f =~ y1 + a*y2 + a*y3\nh =~ y4 + y5 + y6", rows, missing=missing)
    assert equal.n_samples == pytest.approx(free.n_samples)
    assert equal.baseline_chi2 == pytest.approx(free.baseline_chi2, rel=1e-6)
    assert equal.loglik + equal.chi2 / 2 == pytest.approx(
        free.loglik + free.chi2 / 2, rel=1e-8
    )  # the saturated model's
    assert equal.n_counted == free.n_counted - 1
    assert equal.dimension == equal.n_counted  # no covariates here
    assert 0 <= equal.chi2 - free.chi2 < 15


def test_labels_go_with_any_correlations() -> None:
    """Constrained to what is so anyway, a fit of polychoric correlations stays the same."""
    rows = DRAWN["likert"]
    free = um.fit("f =~ o1 + o2 + o3\nh =~ o4 + o5 + o6\no1 ~~ 0*o4\no2 ~~ 0*o5", rows, cor="polychoric")
    equal = um.fit("f =~ o1 + o2 + o3\nh =~ o4 + o5 + o6\no1 ~~ 0*o4 + a*o4\no2 ~~ a*o5", rows, cor="polychoric")
    assert (equal.chi2, equal.bic, equal.n_samples) == pytest.approx((free.chi2, free.bic, free.n_samples), rel=1e-8)


@pytest.mark.parametrize("means", ["", "\ny1 ~ m*1\ny2 ~ m*1"])
def test_replicates_keep_the_constraints(means: str) -> None:
    """Their spread is that of the sandwich, which is not that of the model without the label."""
    rows = DRAWN["skewed"].drop(columns="g")
    model = "f =~ y1 + y2 + y3\nh =~ a*y4 + y5 + y6\nh ~ a*f" + means
    robust = um.fit(model, rows, estimator="MLR").effects("f", "h").iloc[0]
    drawn = um.fit(model, rows).effects("f", "h", bootstrap=300).iloc[0]
    free = um.fit(model.replace("a*", ""), rows, estimator="MLR").effects("f", "h").iloc[0]
    assert drawn["est"] == pytest.approx(robust["est"])
    assert drawn["se"] == pytest.approx(robust["se"], rel=0.15)
    assert free["se"] > 1.3 * robust["se"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("skewed", "incomplete"):
            pd.DataFrame(DRAWN[name]).to_csv(Path(folder) / f"{name}.csv", index=False)
        subprocess.run(["Rscript", str(HERE / "lavaan_equal.R"), folder, str(STORED)], check=True)


if __name__ == "__main__":
    main()
