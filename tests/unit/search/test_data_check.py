"""The check before a search: right verdicts on data whose answer is known, and the numbers behind them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import unmeasured as um
from unmeasured.search.data_check import Check


def finding(check: Check, topic: str):
    return next(f for f in check.findings if f.topic == topic)


def factor_rows(n=600, seed=0):
    """Two correlated latents with four indicators each."""
    rng = np.random.default_rng(seed)
    latents = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], size=n)
    return pd.DataFrame(0.7 * latents[:, [0] * 4 + [1] * 4] + 0.7 * rng.normal(size=(n, 8)))


def test_indicators_of_latents_are_recognised() -> None:
    check = um.check(factor_rows())
    assert check.ok
    assert check.is_warranted
    assert len(check.explained) == 8
    assert str(check).startswith("8 variables, 600 rows: the data are suitable for a search.")
    assert repr(check) == "<Check: 8 variables, n = 600; against a search: []>"


def test_independent_variables_have_nothing_to_explain() -> None:
    check = um.check(np.random.default_rng(0).normal(size=(500, 6)))
    assert not check.is_warranted
    assert "nothing to explain" in finding(check, "dependence").text
    assert len(check.alone) == 6
    assert check.independence_pvalue > 0.01


@pytest.mark.parametrize("n_samples", [500, 20_000])
def test_covariances_without_structure_do_not_warrant_latents(n_samples: int) -> None:
    warranted = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(8, 26))
        A = np.eye(p) + rng.choice([0.1, 0.3, 1.0]) * rng.normal(size=(p, p))
        check = um.check(cov=A.T @ A, n_samples=n_samples)
        warranted += check.is_warranted
        assert check.is_warranted or not check.ok
    assert warranted <= 2


def test_a_group_of_two_latents_is_seen_in_triples() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(3000, 2)) @ rng.normal(size=(2, 8)) + rng.normal(size=(3000, 8))
    check = um.check(rows)
    assert len(check.explained) == 8
    assert check.is_warranted


def test_in_many_samples_near_is_enough() -> None:
    rng = np.random.default_rng(0)
    rows = factor_rows(30_000) + 0.1 * rng.normal(size=(30_000, 8)) @ rng.normal(size=(8, 8))
    check = um.check(rows)
    assert set(check.explained) <= set(check.nearly_explained)
    assert check.is_warranted


def test_a_population_is_judged_without_chance() -> None:
    corr = np.full((5, 5), 0.5) + 0.5 * np.eye(5)
    check = um.check(cov=corr, n_samples=math.inf)
    assert check.is_warranted
    assert check.least_correlation == 0.0
    assert check.ok
    assert not um.check(cov=np.eye(5), n_samples=math.inf).is_warranted


@pytest.mark.parametrize("p", [1, 2, 3])
def test_few_variables(p: int) -> None:
    check = um.check(factor_rows()[range(p)])
    assert not finding(check, "indicators").ok
    assert "too few" in check.summary()
    assert check.most_latents == 0


def test_without_indicators_there_is_nothing_to_check() -> None:
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=list("abc"))
    with pytest.raises(um.DataError, match="none is left to look at"):
        um.check(rows, covariates=["a", "b"], outcomes=["c"])


def test_rows_without_any_value_are_a_sentence() -> None:
    with pytest.raises(um.DataError, match="'a' hold no value at all"):
        um.check(pd.DataFrame({"a": [math.nan, math.nan]}))


def test_variances_of_any_size_overflow_nowhere() -> None:
    cov = [[1.615953, 0.9036574, -0.0375783, -0.1761543], [0.9036574, 1.072891, 0.3473872, -0.6728356],
           [-0.0375783, 0.3473872, 1.242135, -0.8147204], [-0.1761543, -0.6728356, -0.8147204, 2.759577]]  # fmt: skip
    with np.errstate(all="raise"):
        found = um.LGES().fit_cov(np.array(cov) * 1e154, 40.5)
    assert found.sem_.converged


def test_few_samples() -> None:
    check = um.check(factor_rows(60))
    assert not finding(check, "samples").ok
    assert f"smaller than {math.sqrt(1 - 60 ** (-1 / 60)):.2f} cannot" in finding(check, "samples").text


def test_collinear_variables_are_named() -> None:
    rows = factor_rows()
    rows["copy"] = rows[0] + 0.05 * np.random.default_rng(1).normal(size=600)
    check = um.check(rows)
    assert set(check.collinear) == {"0", "copy"}
    assert "'copy' (0.9" in finding(check, "collinearity").text
    assert "most with '0'" in finding(check, "collinearity").text


def test_skewed_variables_are_named_and_ranks_proposed() -> None:
    rows = np.exp(1.5 * factor_rows())
    check = um.check(rows, cor="pearson")
    assert "'0', '1'" in finding(check, "Gaussian").text
    assert "cor='spearman-normal'" in finding(check, "Gaussian").text
    assert "ranks are taken instead" in finding(um.check(rows), "Gaussian").text
    assert set(um.check(rows).sample.kinds) == {"scores"}


def test_mardia_by_its_definition() -> None:
    rows = np.random.default_rng(0).gamma(2.0, size=(150, 3))
    mardia = um.check(rows).mardia
    assert mardia is not None
    z = rows - rows.mean(axis=0)
    g = z @ np.linalg.solve(np.cov(rows, rowvar=False, bias=True), z.T)
    assert mardia.skewness == pytest.approx((g**3).mean())
    assert mardia.kurtosis == pytest.approx((np.diag(g) ** 2).mean())
    assert mardia.skewness_pvalue == pytest.approx(stats.chi2.sf(150 * mardia.skewness / 6, 10))
    z_value = (mardia.kurtosis - 15) / math.sqrt(8 * 15 / 150)
    assert mardia.kurtosis_pvalue == pytest.approx(2 * stats.norm.sf(abs(z_value)))


def test_kmo_by_its_definition() -> None:
    # Partial correlations as correlations of residuals, pair by pair.
    rows = factor_rows()
    check = um.check(rows)
    corr, X = np.corrcoef(rows.T), (rows - rows.mean()).to_numpy()
    r2 = q2 = 0.0
    for i in range(8):
        for j in range(i):
            rest = np.delete(X, [i, j], axis=1)
            a, b = (X[:, k] - rest @ np.linalg.lstsq(rest, X[:, k], rcond=None)[0] for k in (i, j))
            r2, q2 = r2 + corr[i, j] ** 2, q2 + np.corrcoef(a, b)[0, 1] ** 2
    assert check.kmo == pytest.approx(r2 / (r2 + q2))
    assert check.msa.shape == (8,)


def test_what_was_done_to_the_data_is_told() -> None:
    rows = factor_rows().mask(np.random.default_rng(0).uniform(size=(600, 8)) < 0.1)
    text = um.check(rows).summary()
    assert "% of the values are missing" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_table_has_a_line_per_variable() -> None:
    rows = factor_rows()
    table = um.check(rows).table
    assert list(table.columns) == ["kind", "missing", "values", "mean", "sd", "skewness", "kurtosis", "r2", "msa"]
    assert table["skewness"].to_numpy() == pytest.approx(stats.skew(rows))
    assert table["kurtosis"].to_numpy() == pytest.approx(stats.kurtosis(rows))
    assert list(um.check(cov=rows.cov(), n_samples=600).table.columns) == ["r2", "msa"]


def test_a_notebook_shows_the_sentences() -> None:
    data = um.datasets.load("multitasking")
    check = um.check(cov=data.frame().rename(index=lambda x: f"<{x}>", columns=lambda x: f"<{x}>"), n_samples=50)
    assert check._repr_html_().startswith("<pre>9 variables, 50 samples: see the lines marked with !.")
    assert "<Speed" not in check._repr_html_()


def test_problems_with_the_data_are_marked() -> None:
    rows = um.simulate.sample(um.simulate.random_gnfm(n_latents=2, n_observed=6, rng=1), 400, rng=2)
    rows = rows.apply(lambda x: pd.cut(x, 5, labels=False) + 1)
    assert um.check(rows, cor="pearson").ok
    rows.iloc[:9, 0] = 99
    check = um.check(rows, cor="pearson")
    assert not check.ok
    assert str(check).startswith("6 variables, 400 rows: see the lines marked with !.")
    assert "  !     data          The value 99 looks like a code" in str(check)


def test_complete_rows_that_do_not_vary_have_no_kurtosis() -> None:
    rows = pd.DataFrame({"a": [0.1, -0.1, 0.6, None, -0.5, None, 1.3, None], "b": [0, 0, 0, -1.0, 0, -1, 0, 1]})
    assert um.check(rows, cor="pearson").mardia is None
