"""MLM, MLR and WLSMV against lavaan's answers (program, script and date stand in the file)."""

from __future__ import annotations

import time

import numpy as np
import pytest

import unmeasured as um
from lavaan_rows import ROBUST, rows_of

MEASURES = {
    "df": "df",
    "baseline.df": "baseline_df",
    "cfi": "cfi",
    "tli": "tli",
    "rmsea": "rmsea",
    "srmr": "srmr",
    "pvalue.scaled": "pvalue_scaled",
    "scaling.factor": "scaling_factor",
    "shift.parameter": "shift",
    "cfi.scaled": "cfi_scaled",
    "tli.scaled": "tli_scaled",
    "cfi.robust": "cfi_robust",
    "tli.robust": "tli_robust",
    "rmsea.robust": "rmsea_robust",
}
LARGE = {"chisq": "chi2", "baseline.chisq": "baseline_chi2", "chisq.scaled": "chi2_scaled", "logl": "loglik"}


def name_of(oracle: dict) -> str:
    return f"{oracle['name']}-{oracle['estimator']}-{len(oracle['model'])}"


@pytest.mark.parametrize("oracle", ROBUST["fits"], ids=name_of)
def test_statistics_estimates_and_errors_equal_lavaans(oracle: dict) -> None:
    # Maximum likelihood with missing values has no scaled test of ours; its robust indices are lavaan's alone.
    plain = oracle["estimator"] == "ML"
    options = {"missing": "fiml"} if plain else {"estimator": oracle["estimator"]}
    fit = um.fit(oracle["model"], rows_of(oracle["name"]), **options)
    assert fit.converged
    expected = {k: v for k, v in oracle["measures"].items() if v is not None and not (plain and "robust" in k)}
    for theirs, ours in MEASURES.items():
        if theirs in expected:
            assert getattr(fit, ours) == pytest.approx(expected[theirs], abs=1e-4), theirs
    for theirs, ours in LARGE.items():
        if theirs in expected:
            assert getattr(fit, ours) == pytest.approx(expected[theirs], rel=1e-5), theirs
    if not plain:
        interval = [expected["rmsea.ci.lower.robust"], expected["rmsea.ci.upper.robust"]]
        assert fit.rmsea_robust_ci == pytest.approx(interval, abs=1e-4)
    table = fit.parameters.set_index(["lhs", "op", "rhs"])
    compared = 0
    for row in oracle["parameters"]:
        key = (row["lhs"], row["op"], row["rhs"])
        key = key if key in table.index else (key[2], key[1], key[0])
        if (
            key not in table.index
        ):  # means, where they are not part of our model: all free, so that nothing depends on them
            assert row["op"] == "~1"
            continue
        compared += 1
        # Up to the sign of a latent, which nothing fixes.
        assert abs(table.loc[key].est) == pytest.approx(abs(row["est"]), abs=1e-4), key
        assert table.loc[key].se == pytest.approx(row["se"], rel=1e-4, abs=1e-9), key
    assert compared >= len(table)


def test_wlsmv_of_32_items_and_10000_rows_takes_seconds() -> None:
    rng = np.random.default_rng(1)
    loadings = np.kron(np.eye(8), np.ones((1, 4))) * 0.7
    latents = rng.multivariate_normal(np.zeros(8), 0.3 + 0.7 * np.eye(8), 10_000)
    values = latents @ loadings + rng.normal(size=(10_000, 32)) * np.sqrt(1 - 0.49)
    rows = np.searchsorted([-1.2, -0.3, 0.4, 1.1], values.ravel()).reshape(values.shape)
    names = [f"i{j}" for j in range(32)]
    text = "\n".join(f"f{k} =~ {' + '.join(names[4 * k : 4 * k + 4])}" for k in range(8))
    start = time.process_time()
    fit = um.fit(text, rows, names=names, estimator="WLSMV")
    assert time.process_time() - start < 15.0  # two cores may both be counted
    # The model is true: the scaled test does not reject it, and loadings come back.
    assert fit.pvalue_scaled > 0.001
    found = fit.parameters.query("op == '=~'")
    assert np.abs(found.est.abs() - 0.7).max() < 5 * found.se.max()
