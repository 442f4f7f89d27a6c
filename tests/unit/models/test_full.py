"""Rows with missing values: what is fitted, what a search reports of them, and that true models survive the test."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.models.full import NOT_DONE
from unmeasured.models.indices import p_value
from unmeasured.remarks import Severity

NAMES = [f"x{j}" for j in range(8)]
TWO = "f =~ x0 + x1 + x2 + x3\ng =~ x4 + x5 + x6 + x7"


def drawn(seed: int, n: int = 300, share: float = 0.2, cuts: tuple[float, ...] = ()) -> pd.DataFrame:
    """Two factors; which values are missing depends on the first item of each, which is complete."""
    rng = np.random.default_rng(seed)
    f = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], n)
    values = np.repeat(f, 4, axis=1) * 0.7 + rng.normal(size=(n, 8)) * np.sqrt(0.51)
    values = np.digitize(values, cuts).astype(float) if cuts else values + 3.0
    rows = pd.DataFrame(values, columns=NAMES)
    for k, name in enumerate(NAMES):
        if k % 4:
            high = rows[NAMES[k - k % 4]] > rows[NAMES[k - k % 4]].mean()
            rows.loc[rng.random(n) < share * np.where(high, 1.5, 0.5), name] = np.nan
    return rows


def graph() -> um.DAG:
    edges = [("A", x) for x in NAMES[:4]] + [("B", x) for x in NAMES[4:]] + [("A", "B")]
    return um.DAG.from_edges(edges, latents=("A", "B"))


def test_true_models_are_rejected_as_often_as_the_test_says() -> None:
    """40% missing at random: 5% of 60 is 3; the moments of EM as if of complete rows rejected every third."""
    rejected = sum(um.fit(TWO, drawn(seed, share=0.53)).pvalue < 0.05 for seed in range(60))
    assert rejected <= 9  # more happen by chance in less than one of 500


@pytest.mark.parametrize("cuts", [(-1.0, -0.3, 0.4, 1.1), (0.3,)], ids=["five", "two"])
def test_what_a_search_reports_of_ordinal_rows_with_holes_keeps_the_size_of_the_test(cuts: tuple[float, ...]) -> None:
    """A third of the values of 250 rows missing: weights of maximum likelihood rejected most of them."""
    rejected = 0
    for seed in range(60):
        sample = um.LGES().make_sample(drawn(seed, 250, 0.33, cuts))
        assert set(sample.kinds) == {"ordinal"}
        result = um.Result(graph().cpdag(), um.fit(graph(), sample))
        assert result.reported.robust is not None
        assert any("each correlation from the rows that show both items" in str(x) for x in _remarks(result))
        rejected += result.reported.pvalue_reported < 0.05
    assert rejected <= 9  # of 3 expected; more happen by chance in less than one of 500


def _remarks(result: um.Result) -> list[str]:
    return [result.fit.robust.reason] if result.fit.robust is not None else []


def test_a_search_reports_the_fit_to_the_rows() -> None:
    rows = drawn(1, 400)
    search = um.LGES().fit(rows)
    found, text = search.sem_, um.fit(TWO, rows, missing="fiml")
    assert um.metrics.compare(graph(), search.graph_).shd == 0
    for name in ("chi2", "df", "pvalue", "rmsea", "cfi", "srmr", "loglik", "aic", "bic", "n_samples"):
        assert getattr(found, name) == pytest.approx(getattr(text, name), rel=1e-6), name
    # Standardised loadings and their errors are those of the model text, whatever the scale of the latents.
    ours = search.result_.loadings.set_index("indicator")
    theirs = text.parameters.query("op == '=~'").set_index("rhs")
    assert ours["std"].reindex(NAMES).to_numpy() == pytest.approx(theirs["std"].to_numpy(), abs=1e-5)
    summary = search.result_.summary()
    assert "N = 400 (the search counted incomplete rows as" in summary
    assert f"{text.chi2:.2f} on {text.df} df" in summary
    assert any("fit to the 400 rows themselves (full information)" in remark for remark in search.remarks_)
    # Models side by side are on one footing, whether they were fitted before or are text.
    compared = um.compare_models({"found": search, "text": TWO}).table
    assert compared.loc["found", "bic"] == pytest.approx(compared.loc["text", "bic"], abs=1e-4)


def test_a_result_keeps_what_the_rows_said() -> None:
    result = um.LGES().fit(drawn(2, 400)).result_
    again = um.Result.from_json(result.to_json())
    for name in ("chi2", "pvalue", "cfi", "srmr", "loglik", "bic", "n_samples", "baseline_chi2"):
        assert getattr(again.reported, name) == pytest.approx(getattr(result.reported, name), rel=1e-12), name
    pd.testing.assert_frame_equal(again.loadings, result.loadings, rtol=1e-6)
    pd.testing.assert_frame_equal(again.latent_paths, result.latent_paths, rtol=1e-6)
    assert again.summary().split("Suitability")[0] == result.summary().split("Suitability")[0]


def test_new_rows_confirm_by_full_information() -> None:
    first, second = drawn(3, 400), drawn(4, 400)
    confirmed = um.confirm(um.LGES().fit(first), second)
    expected = um.fit(confirmed.result.member, second, missing="fiml")
    assert confirmed.table.loc["new rows", "chi2"] == pytest.approx(expected.chi2, rel=1e-6)
    assert confirmed.table.loc["new rows", "n"] == 400
    assert "(N = 400)" in confirmed.result.estimation_note


def test_without_time_for_the_rows_the_answer_says_which_statistics_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unmeasured.models.full._MOST_WORK", 10.0)  # a limit of the package, made small
    search = um.LGES().fit(drawn(5, 400))
    assert search.sem_.full is None
    (said,) = [remark for remark in search.remarks_ if NOT_DONE in remark]
    assert said.severity == Severity.DISTRUST
    assert NOT_DONE in um.fit(TWO, drawn(5, 400)).notes


def test_groups_of_people_are_tested_together_by_the_rows_of_each() -> None:
    rows = [drawn(6, 300), drawn(7, 300) + 1.0]
    both = pd.concat(rows, ignore_index=True).assign(country=np.repeat(["x", "y"], 300))
    search = um.LGES().fit(both, groups="country")
    own = [um.fit(TWO, part, missing="fiml") for part in rows]
    chi2, df = sum(fit.chi2 for fit in own), sum(fit.df for fit in own)
    (told,) = [remark for remark in search.remarks_ if "One structure for 2 groups" in remark]
    assert f"chi-square {chi2:.2f} on {df} df" in told
    assert f"{p_value(chi2, df):.3f}".lstrip("0") in told
    for label, fit in zip("xy", own, strict=True):
        assert search.group_results_[label].reported.chi2 == pytest.approx(fit.chi2, rel=1e-6)


def test_normal_columns_with_holes_are_not_taken_for_skewed() -> None:
    """Each pair of columns has rows of its own; with 30% missing one sample in ten was taken as skewed."""
    rng = np.random.default_rng(0)
    kinds = set()
    for _ in range(60):
        values = rng.normal(size=(300, 8))
        values[rng.random(values.shape) < 0.3] = np.nan
        kinds |= set(um.as_sample(pd.DataFrame(values, columns=NAMES), cor="auto").kinds)
    assert kinds == {"continuous"}


def test_covariates_may_have_any_distribution() -> None:
    """A binary covariate does not make normal items not normal: the model is conditioned on it."""
    rng = np.random.default_rng(8)
    treated = rng.integers(0, 2, 400).astype(float)
    values = (rng.normal(size=(400, 1)) + treated[:, None]) * 0.8 + rng.normal(size=(400, 4))
    rows = pd.DataFrame(values, columns=NAMES[:4]).assign(treated=treated)
    dag = um.DAG.from_edges([("treated", "A"), *(("A", x) for x in NAMES[:4])], latents=["A"], covariates=["treated"])
    for table in (rows, rows.mask(rng.random(rows.shape) < np.array([0.2] * 4 + [0.0]))):
        sample = um.as_sample(table, covariates=["treated"])
        assert um.Result(dag.cpdag(), um.fit(dag, sample)).reported.robust is None


def test_an_answer_from_few_rows_says_how_often_its_test_rejects_true_models() -> None:
    """120 rows with a third of the values missing, beside 600 complete ones."""
    for rows, said in ((drawn(9, 120, 0.45), True), (drawn(9, 600, 0.0), False)):
        result = um.Result(graph().cpdag(), um.fit(graph(), um.LGES().make_sample(rows)))
        assert ("There are few rows for a test of 19 degrees of freedom" in " ".join(result.summary().split())) is said
