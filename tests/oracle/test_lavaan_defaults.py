"""Model text that lavaan fits otherwise by default: the fit says so, and the arguments that it names do the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from lavaan_rows import ROOT
from oracle import random_models
from oracle.random_models import arguments_in
from unmeasured.models.fit import Fit
from unmeasured.models.lavaan import write
from unmeasured.models.multigroup import GroupFit
from unmeasured.remarks import Severity, severity_of

LAVAAN = json.loads((ROOT / "tests" / "oracle" / "lavaan_defaults.json").read_text("utf-8"))["fits"]
ROWS = pd.read_csv(ROOT / "tests" / "oracle" / "random_models_rows.csv")


def rows_of(name: str) -> pd.DataFrame:
    try:
        return random_models.rows_of(name)
    except FileNotFoundError:
        pytest.skip(f"the rows of {name} are not part of the repository")


def holes() -> pd.DataFrame:
    rows = ROWS.copy()
    rows.loc[np.arange(0, 300, 9), "z1"] = np.nan
    rows.loc[np.arange(3, 300, 7), "a2"] = np.nan
    rows["p2"] = rows["p2"].astype(float)
    rows.loc[np.arange(4, 300, 8), "p2"] = np.nan
    return rows


def fitted(name: str, **options: Any) -> Fit | GroupFit:
    text = LAVAAN[name]["model"]
    rows = rows_of("political_democracy") if name == "political democracy" else ROWS
    rows = holes() if "missing" in name else rows
    if name.endswith("groups"):
        options = {"groups": "g", **options}
    if name.endswith("in groups"):
        options = {"equal": ["loadings"], **options}
    if name.startswith("ordinal items"):
        options = {"estimator": "WLSMV", **options}
    if name == "covariates with missing values":
        options = {"missing": "fiml", **options}
    used = [x for x in rows.columns if x in text or x == options.get("groups")]
    return um.fit(text, rows[used], **options)


def said(fit: Fit | GroupFit) -> list[str]:
    return [note for note in fit.notes if "lavaan" in note]


@pytest.mark.parametrize(
    ("name", "words", "arguments"),
    [
        ("political democracy", "the label 'a', the label 'b' and the label 'c'", {"scale_latents": "first-indicator"}),
        ("labels", "the label 'a', the label 'b' and the label 'c'", {"scale_latents": "first-indicator"}),
        ("fixed loading", "fixed loadings of 'f'", {"scale_latents": "first-indicator"}),
        ("fixed covariance", "the fixed value of 'f ~~ h'", {"scale_latents": "first-indicator"}),
        ("growth by sem", "fixed loadings of 'level'", {"scale_latents": "first-indicator"}),
        ("growth with means", "fixed loadings of 'level'", {"scale_latents": "first-indicator"}),
        ("outcomes", "frees 'b1 ~~ b2'", {"correlate_outcomes": True}),
        ("latent outcomes", "frees 'f ~~ h'", {"correlate_outcomes": True}),
        ("groups", "the label 'la'", {"scale_latents": "first-indicator"}),
        ("missing values", "43 with missing values", {"missing": "listwise"}),
        ("ordinal items with missing values", "37 with missing values", {"missing": "listwise"}),
    ],
)
def test_a_default_that_gives_another_fit_is_said_with_the_arguments_for_lavaans(
    name: str, words: str, arguments: dict[str, Any]
) -> None:
    fit, lavaan = fitted(name), LAVAAN[name]
    assert (fit.df, pytest.approx(fit.chi2, abs=1e-3)) != (lavaan["df"], lavaan["chisq"])
    sentences = " ".join(said(fit))
    assert words in sentences
    assert arguments_in(sentences) == arguments
    assert all(f"Note: {sentence}" in fit.summary() for sentence in said(fit))
    assert all(severity_of(remark) is Severity.NOTE for remark in fit.remarks)
    again = fitted(name, **arguments)
    assert (again.df, again.chi2) == (lavaan["df"], pytest.approx(lavaan["chisq"], abs=1e-3))
    assert lavaan["bic"] is None or again.bic == pytest.approx(lavaan["bic"], abs=1e-2)
    assert not [s for s in said(again) if "lavaan::sem fixes" in s or "lavaan::sem frees" in s or "leaves such" in s]


def test_growth_by_lavaans_growth_needs_the_means_that_the_remark_names() -> None:
    text, lavaan = LAVAAN["growth"]["model"], LAVAAN["growth"]
    (sentence,) = [s for s in said(fitted("growth")) if "growth" in s]
    lines = [f"{x} ~ 1" for x in ("level", "slope")] + [f"t{k} ~ 0*1" for k in range(1, 5)]
    assert all(f"'{line}'" in sentence for line in lines)
    rows = ROWS[["t1", "t2", "t3", "t4"]]
    again = um.fit("\n".join([text, *lines]), rows, **arguments_in(sentence))
    assert (again.df, again.chi2) == (lavaan["df"], pytest.approx(lavaan["chisq"], abs=1e-3))
    assert said(again) == []


def test_a_predictor_whose_mean_is_stated_is_a_variable_of_the_model_as_in_lavaan() -> None:
    with pytest.warns(um.UnmeasuredWarning, match="'z1' ~~ 'z2'|z1 ~~ z2"):
        fit = fitted("mean of a predictor", correlate_outcomes=True)
    lavaan = LAVAAN["mean of a predictor"]
    assert fit.covariates == ("z2",)
    assert (fit.df, fit.chi2) == (lavaan["df"], pytest.approx(lavaan["chisq"], abs=1e-3))
    assert (fit.loglik, fit.bic) == pytest.approx((lavaan["logl"], lavaan["bic"]), abs=1e-2)


def test_a_variance_that_the_text_fixes_is_said_to_be_free_in_other_groups() -> None:
    fit, lavaan = fitted("variance in groups"), LAVAAN["variance in groups"]
    assert fit.df == lavaan["df"] - 1
    (sentence,) = said(fit)
    assert 'Use equal=["loadings", "lv.variances"] for that' in sentence
    again = fitted("variance in groups", equal=["loadings", "lv.variances"])
    assert (again.df, again.chi2) == (lavaan["df"], pytest.approx(lavaan["chisq"], abs=1e-3))
    assert said(again) == []


def test_a_default_variance_is_free_in_other_groups_whatever_loadings_are_fixed() -> None:
    fit, lavaan = fitted("fixed loading in groups"), LAVAAN["fixed loading in groups"]
    assert (fit.df, fit.chi2) == (lavaan["df"], pytest.approx(lavaan["chisq"], abs=1e-3))
    assert fit.bic == pytest.approx(lavaan["bic"], abs=1e-2)


def test_the_mean_of_a_predictor_that_is_stated_is_an_intercept_across_groups() -> None:
    name = "mean of a predictor in groups"
    with pytest.warns(um.UnmeasuredWarning, match="z1 ~~ z2"):
        fit = fitted(name, equal=["loadings", "intercepts"])
    assert (fit.df, fit.chi2) == (LAVAAN[name]["df"], pytest.approx(LAVAAN[name]["chisq"], abs=1e-3))


def test_what_is_not_determined_is_said_to_be_counted_by_lavaan() -> None:
    rows = ROWS[["a1", "a2", "a3", "z1"]]
    fit = um.fit("f =~ a1 + a2 + a3\na1 ~~ a2", rows)
    assert any('lavaan counts all free parameters, as count="parameters" does' in s for s in said(fit))
    again = um.fit("f =~ a1 + a2 + a3\na1 ~~ a2", rows, count="parameters")
    assert again.df == fit.df - 1 == -1
    assert said(again) == []


def test_a_latent_without_a_residual_variance_of_its_own_is_not_admissible_with_means_either() -> None:
    rng = np.random.default_rng(3)
    general = rng.normal(size=(80, 1))
    parts = [general, 0.7 * general + 0.7 * rng.normal(size=(80, 1)), 0.7 * general + 0.7 * rng.normal(size=(80, 1))]
    items = np.hstack([part + 0.6 * rng.normal(size=(80, 3)) for part in parts])
    rows = pd.DataFrame(items, columns=[f"{stem}{k}" for stem in "abc" for k in (1, 2, 3)])
    text = "a =~ a1 + a2 + a3\nb =~ b1 + b2 + b3\nc =~ c1 + c2 + c3\ng =~ a + b + c"
    plain, full = um.fit(text, rows), um.fit(text, rows, missing="fiml")
    assert full.chi2 == pytest.approx(plain.chi2, abs=1e-2)
    for fit in (plain, full):
        assert fit.df == 24  # derivatives that vanish at the bound are no degrees of freedom
        assert not fit.admissible
        assert "the residual variance of 'a' ran to zero" in fit.status


@pytest.mark.parametrize("name", ["growth, MLR", "growth with a covariate, MLR"])
def test_means_that_are_no_part_of_a_model_do_not_change_its_robust_test(name: str) -> None:
    # Its loadings and variances are fixed, so that tr(S Sigma^-1) is not the number of variables.
    fit, lavaan = fitted(name, estimator="MLR"), LAVAAN[name]
    assert (fit.df, fit.chi2) == (lavaan["df"], pytest.approx(lavaan["chisq"], rel=1e-5))
    assert fit.chi2_scaled == pytest.approx(lavaan["chisq.scaled"], rel=1e-4)


def test_labels_that_keep_a_model_from_a_bound_are_heeded_by_its_start() -> None:
    # Without labels the residual variance of y8 runs to zero, and from there that of dem60.
    lavaan = LAVAAN["labels that keep from a bound"]
    rows = rows_of("political_democracy, gaps")[[f"y{k}" for k in range(2, 9)]]
    fit = um.fit(lavaan["model"], rows, missing="fiml", scale_latents="first-indicator", correlate_outcomes=True)
    assert fit.admissible
    assert (fit.df, fit.chi2) == (lavaan["df"], pytest.approx(lavaan["chisq"], abs=1e-3))


def test_covariates_with_missing_values_are_said_to_be_variables_of_the_model() -> None:
    name = "covariates with missing values"
    fit, lavaan = fitted(name), LAVAAN[name]
    (sentence,) = said(fit)
    assert "leaves out the 34 rows" in sentence
    assert "rows.dropna(subset=['z1'])" in sentence
    used = ["a1", "a2", "a3", "a4", "z1", "z2"]
    again = um.fit(lavaan["model"], holes()[used].dropna(subset=["z1"]), missing="fiml")
    assert (again.df, again.chi2) == (lavaan["df"], pytest.approx(lavaan["chisq"], rel=1e-3))
    assert again.bic == pytest.approx(lavaan["bic"], abs=1e-2)
    assert said(again) == []


def test_covariates_of_ordinal_items_are_said_to_be_taken_as_ordinal() -> None:
    fit = fitted("ordinal items")
    assert fit.chi2 != pytest.approx(LAVAAN["ordinal items"]["chisq"], abs=1e-2)
    (sentence,) = said(fit)
    assert "'z2' is taken as ordinal" in sentence
    assert "lavaan::sem conditions the thresholds on covariates" in sentence


def test_a_variance_at_its_bound_is_said_to_go_on_in_lavaan() -> None:
    rng = np.random.default_rng(4)
    f = rng.normal(size=80)
    rows = pd.DataFrame({"x1": f, "x2": 0.3 * f + rng.normal(size=80), "x3": 0.3 * f + rng.normal(size=80)})
    rows["x4"] = rows["x2"] + rows["x1"] + 0.1 * rng.normal(size=80)
    fit = um.fit("f =~ x1 + x2 + x3 + x4", rows)
    assert not fit.admissible
    assert any("lavaan lets variances become negative" in s for s in said(fit))


@pytest.mark.parametrize(
    "text",
    [
        LAVAAN["nothing"]["model"],
        "f =~ la*a1 + la*a2 + la*a3\nh =~ b1 + b2 + b3\nh ~ f",  # equal loadings of one latent leave its scale free
        "f =~ NA*a1 + a2 + 0.8*a3\nf ~~ NA*f",  # the text itself sets the scale
        "a =~ a1 + a2 + a3\nb =~ b1 + b2 + b3\nc =~ c1 + c2 + c3\ng =~ a + b + c",
        "f =~ a1 + a2 + a3\nh =~ b1 + b2 + b3\nf ~~ 0*h\na1 ~~ v*a1\nb1 ~~ v*b1",
        "a1 ~ z1 + z2\na2 ~ a1 + z1",
    ],
)
def test_nothing_is_said_where_defaults_make_no_difference(text: str) -> None:
    used = [x for x in ROWS.columns if x in text and x != "g"]
    assert said(um.fit(text, ROWS[used])) == []


def test_text_that_is_written_out_says_the_same_to_both() -> None:
    rows = ROWS[[f"{stem}{k}" for stem in "ab" for k in range(1, 5)]]
    model = um.fit(LAVAAN["labels"]["model"], rows).model
    assert said(um.fit(write(model), rows)) == []
