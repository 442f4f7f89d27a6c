"""Robust statistics: what they are for, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from lavaan_rows import DRAWN
from unmeasured.errors import DataError, ModelError, UnmeasuredError
from unmeasured.models.estimators import reported

TWO = "f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6"
SKEWED = DRAWN["skewed"].drop(columns="g")
INCOMPLETE = DRAWN["incomplete"].drop(columns="g")
ITEMS = "f =~ o1 + o2 + o3\nh =~ o4 + o5 + o6"
GRAPH = um.DAG.from_edges(
    [("f", "o1"), ("f", "o2"), ("f", "o3"), ("h", "o4"), ("h", "o5"), ("h", "o6"), ("f", "h")], latents=["f", "h"]
)


def test_robust_statistics_keep_the_estimates_and_show_in_the_summary() -> None:
    plain, robust = um.fit(TWO, SKEWED), um.fit(TWO, SKEWED, estimator="MLM")
    assert np.allclose(plain.parameters.est, robust.parameters.est)
    assert not np.allclose(plain.parameters.se, robust.parameters.se, rtol=0.02)
    assert robust.chi2_scaled == pytest.approx(robust.chi2 / robust.scaling_factor)
    assert "Satorra-Bentler: chi2" in robust.summary()
    assert "Satorra-Bentler" not in plain.summary()


def test_with_normal_rows_hardly_anything_is_corrected() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(5000, 1)) + rng.normal(size=(5000, 4)), columns=["y1", "y2", "y3", "y4"])
    for estimator in ("MLM", "MLR"):
        fit = um.fit("f =~ y1 + y2 + y3 + y4", rows, estimator=estimator)
        assert fit.scaling_factor == pytest.approx(1.0, abs=0.06)


def test_missing_values_go_to_full_information_with_means() -> None:
    fit = um.fit(TWO, INCOMPLETE, estimator="MLR")
    assert (fit.parameters["op"] == "~1").sum() == 8
    assert fit.n_samples == len(INCOMPLETE)
    listwise = um.fit(TWO, INCOMPLETE, estimator="MLR", missing="listwise")
    assert listwise.n_samples == len(INCOMPLETE.dropna())
    assert "full information" in fit.summary()


def test_ordinal_fits_have_thresholds_and_no_likelihood() -> None:
    fit = um.fit(ITEMS, DRAWN["likert"], estimator="WLSMV")
    assert list(fit.parameters["op"].unique()) == ["=~", "~~", "|"]
    assert np.isnan(fit.loglik)
    assert np.isnan(fit.bic)
    assert np.allclose(np.diag(fit.implied_cov), 1.0)
    assert "Scaled and shifted" in fit.summary()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"estimator": "MLX"}, ModelError, "estimator must be one of 'ML', 'MLM', 'MLR', 'WLSMV'; got 'MLX'"),
        ({"estimator": "MLM"}, DataError, "needs complete rows, and values are missing in"),
        ({"estimator": "MLR", "cor": "polychoric"}, DataError, "here variables are taken as continuous"),
        ({"estimator": "WLSMV", "cor": "pearson"}, DataError, "takes all variables as ordinal"),
        ({"estimator": "WLSMV"}, DataError, "too many for an ordinal item"),
        ({"missing": "drop"}, DataError, "missing must be one of"),
        ({"estimator": "MLR", "missing": "pairwise"}, DataError, "missing='pairwise' goes with estimator='ML'"),
        ({"equal": "loadings"}, ModelError, "says what groups share, but there are none"),
    ],
)
def test_what_cannot_be_is_refused_in_words(options: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        um.fit(TWO, INCOMPLETE, **options)
    assert words in str(caught.value)


def test_a_matrix_has_no_robust_statistics() -> None:
    data = um.datasets.load("holzinger_swineford")
    text = "visual =~ x1 + x2 + x3"
    with pytest.raises(DataError, match="needs rows: a covariance matrix does not say how far"):
        um.fit(text, cov=data.frame(), n_samples=data.n_samples, estimator="MLM")
    fit = um.fit("visual =~ x1 + x2 + x3 + x4", cov=data.frame(), n_samples=data.n_samples)
    with pytest.raises(UnmeasuredError, match="This fit has no robust statistics"):
        _ = fit.chi2_scaled


def test_a_single_ordinal_indicator_is_refused() -> None:
    with pytest.raises(ModelError, match="but the model fixes those of 'o4'"):
        um.fit("f =~ o1 + o2 + o3\nh =~ o4", DRAWN["likert"], estimator="WLSMV")


def test_a_search_reports_robust_statistics_where_rows_are_not_normal() -> None:
    search = um.LGES(cor="pearson").fit(SKEWED)
    text = search.result_.summary()
    assert "robust chi-square" in text
    assert "The rows are not normal" in text
    assert search.sem_.robust is None  # the search itself stays as it is
    again = um.Result.from_json(search.result_.to_json())
    assert again.summary() == text
    pd.testing.assert_frame_equal(again.parameters, search.result_.parameters)


def test_a_rotation_of_latents_changes_no_robust_test() -> None:
    """A group of two latents has a free rotation, which model text fixes by one loading and their covariance."""
    items = [f"y{j}" for j in range(1, 7)]
    free = um.DAG.from_edges([(f, y) for f in "fh" for y in items], latents=["f", "h"])
    fixed = f"f =~ {' + '.join(items)}\nh =~ 0*y1 + {' + '.join(items[1:])}\nf ~~ 0*h"
    for estimator in ("MLM", "MLR"):
        one, other = (um.fit(model, SKEWED, estimator=estimator) for model in (free, fixed))
        assert one.df == other.df == 4
        assert one.scaling_factor == pytest.approx(other.scaling_factor, rel=1e-4)
        assert one.rmsea_robust == pytest.approx(other.rmsea_robust, abs=1e-4)


def test_normal_rows_get_none() -> None:
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(rng.normal(size=(400, 2)) @ np.kron(np.eye(2), np.ones((1, 3))) + rng.normal(size=(400, 6)))
    rows.columns = [f"y{i}" for i in range(1, 7)]
    assert reported(um.fit(TWO, rows)).robust is None


def test_robust_errors_of_polychoric_likelihood_are_those_of_replicates() -> None:
    """120 samples of six items: errors as large as the estimates vary, a test with the mean of its chi-square."""
    rng = np.random.default_rng(11)
    loadings = np.array([0.8, 0.7, 0.6, 0.8, 0.7, 0.6])
    cuts = [[-1, 0, 1], [-0.5, 0.7], [-1.2, -0.3, 0.4], [0.2], [-0.8, 0.1, 1.2], [-1.5, -0.6]]
    estimates, errors, tests = [], [], []
    for _ in range(120):
        latent = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 500)
        values = np.repeat(latent, 3, axis=1) * loadings + rng.normal(size=(500, 6)) * np.sqrt(1 - loadings**2)
        rows = pd.DataFrame({f"o{j + 1}": np.searchsorted(c, values[:, j]) for j, c in enumerate(cuts)})
        fit = reported(um.fit(GRAPH, rows, cor="polychoric"))
        assert fit.robust is not None
        table = fit.parameters.query("op == '=~'")
        estimates.append(table["std"].abs())
        errors.append(table["se"])
        tests.append((fit.chi2_scaled, fit.pvalue_scaled))
    # Loadings on f, whose variance is 1, are their own standardised values.
    assert np.mean(errors, axis=0)[:3] == pytest.approx(np.std(estimates, axis=0)[:3], rel=0.15)
    assert np.mean([t for t, _ in tests]) == pytest.approx(8.0, rel=0.12)
    assert np.mean([p < 0.05 for _, p in tests]) < 0.10


def test_a_negative_scaling_factor_gives_no_scaled_test() -> None:
    """Where a variance ran to zero the trace may be negative; lavaan has NA there, and no number may come of it."""
    rng = np.random.default_rng(361)
    n = int(rng.integers(9, 25))
    values = rng.standard_t(2.2, size=(n, 6)) + rng.standard_t(3, size=(n, 1)) * rng.choice([0, 1])
    rows = pd.DataFrame(values, columns=list("abcdef"))
    fit = um.fit("g1 =~ a + b + c; g2 =~ d + e + f", rows, estimator="MLR")
    assert math.isnan(fit.scaling_factor)
    for name in ("chi2_scaled", "pvalue_scaled", "cfi_robust", "rmsea_robust", "tli_robust", "cfi_scaled"):
        assert math.isnan(getattr(fit, name)), name
    assert np.isnan(fit.rmsea_robust_ci).all()
    assert "no scaled chi-square, since its scaling factor is negative" in fit.summary()


def test_ordinal_items_without_a_latent_are_tested_too() -> None:
    """The model of independence has no parameters, and so no information matrix to invert."""
    rows = pd.DataFrame(np.random.default_rng(3).integers(1, 4, size=(200, 4)), columns=list("abcd"))
    result = um.LGES(tolerance=0).fit(rows).result_
    assert result.graph.latents == ()
    assert result.reported.robust is not None
    assert result.reported.robust.test.chi2 == result.reported.robust.baseline.chi2
