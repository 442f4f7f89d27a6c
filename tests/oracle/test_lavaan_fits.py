"""Ten published models against lavaan's answers (program, version and date stand in the file)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import unmeasured as um

ORACLE = json.loads((Path(__file__).parent / "lavaan_fits.json").read_text())["models"]
DATASET = {
    "multitasking.csv": "multitasking",
    "big5_25items.csv.gz": "big_five",
    "teacher_burnout.csv": "teacher_burnout",
    "holzinger_swineford": "holzinger_swineford",
    "political_democracy": "political_democracy",
}
# The factor PS of this model has two indicators and nothing else: lavaan counts a parameter no data can determine.
NOT_IDENTIFIED = "byrne2010_final_plus_DM_SS_orthogonal"


def fit(oracle, **options):
    data = um.datasets.load(next(name for file, name in DATASET.items() if file in oracle["data"]))
    assert data.n_samples == oracle["n"]
    return um.fit(
        oracle["model"],
        cov=data.frame(),
        n_samples=data.n_samples,
        correlate_exogenous=oracle["exogenous_latents_correlated"],
        **options,
    )


@pytest.mark.parametrize("oracle", ORACLE, ids=lambda oracle: oracle["name"])
def test_indices_equal_lavaans(oracle):
    result = fit(oracle, count="parameters" if oracle["name"] == NOT_IDENTIFIED else "dimension")
    expected = oracle["fit"]
    assert result.converged
    assert result.chi2 == pytest.approx(expected["chisq"], rel=1e-5, abs=0.01)
    assert result.df == expected["df"]
    assert result.pvalue == pytest.approx(expected["pvalue"], abs=1e-6)
    for ours, theirs in [
        (result.rmsea, "rmsea"),
        (result.rmsea_ci[0], "rmsea.ci.lower"),
        (result.rmsea_ci[1], "rmsea.ci.upper"),
        (result.cfi, "cfi"),
        (result.tli, "tli"),
        (result.srmr, "srmr"),
    ]:
        assert ours == pytest.approx(expected[theirs], abs=1e-4), theirs
    for ours, theirs in [(result.loglik, "logl"), (result.aic, "aic"), (result.bic, "bic")]:
        assert ours == pytest.approx(expected[theirs], abs=0.05), theirs
    assert result.baseline_chi2 == pytest.approx(expected["baseline.chisq"], rel=1e-6)
    assert result.baseline_df == expected["baseline.df"]


@pytest.mark.parametrize("oracle", ORACLE, ids=lambda oracle: oracle["name"])
def test_estimates_and_standard_errors_equal_lavaans(oracle):
    table = fit(oracle).parameters.set_index(["lhs", "op", "rhs"])
    for row in oracle["parameters"]:
        key = (row["lhs"], row["op"], row["rhs"])
        ours = table.loc[key if key in table.index else (key[2], key[1], key[0])]
        if not (row["se"] is None or (oracle["name"] == NOT_IDENTIFIED and "PS" in key[0])):
            # Up to the sign of a latent, which nothing fixes. Coefficients of 8 are good to 1e-3 of themselves:
            # their ridge is flat, and our chi2 there is the smaller one.
            assert abs(ours.est) == pytest.approx(abs(row["est"]), abs=1e-3 * max(1.0, abs(row["est"]))), key
            assert abs(ours["std"]) == pytest.approx(abs(row["std_all"]), abs=2e-3 * max(1.0, abs(row["std_all"]))), key
            assert ours.se == pytest.approx(row["se"], rel=0.01, abs=1e-9), key


def test_the_generic_dimension_sees_what_a_parameter_count_does_not():
    oracle = next(o for o in ORACLE if o["name"] == NOT_IDENTIFIED)
    result = fit(oracle)
    assert (result.df, result.model.n_free, int(result.dimension)) == (oracle["fit"]["df"] + 1, 78, 77)
    assert [note for note in result.notes if "only 77 of 78 free parameters (1 too many)" in note]
    missing = result.parameters[result.parameters.se.isna()]
    assert set(missing.lhs) == {"PS", "PS1", "PS2"}


def test_a_better_optimum_behind_an_improper_one_is_found():
    """Byrne 1994b with correlated factors: most starts end at chi2 974.98 with the noise of EE at zero."""
    oracle = next(o for o in ORACLE if o["name"] == "byrne1994b_correlated")
    result = fit(oracle)
    assert result.chi2 < 971.16
    assert result.solution.n_starts > 1
    assert not result.admissible
    assert "not positive definite" in result.status
