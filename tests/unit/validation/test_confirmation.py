"""Confirmation in other rows, and comparison by rows left out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import unmeasured as um
from graphs_zoo import latent_chain, two_group_chain
from unmeasured.results.held_out import _log_likelihoods
from unmeasured.search.clock import Clock


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 800, rng=5)


def test_a_split_is_seeded_stratified_and_keeps_the_order(rows: pd.DataFrame) -> None:
    frame = rows.assign(school=np.repeat(["a", "b", "c"], [100, 300, 400]))
    frame.index = [f"p{i}" for i in range(len(frame))]
    first, second = um.split_rows(frame, 0.25, by="school", rng=1)
    assert second["school"].value_counts().to_dict() == {"a": 25, "b": 75, "c": 100}
    assert not set(first.index) & set(second.index)
    assert sorted([*first.index, *second.index]) == sorted(frame.index)
    assert list(second.index) == [name for name in frame.index if name in set(second.index)]
    assert um.split_rows(frame, 0.25, by="school", rng=1)[1].equals(second)
    assert not um.split_rows(frame, 0.25, by="school", rng=2)[1].equals(second)
    holed = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.05)
    parts = um.split_rows(holed, 0.5)
    lacking = [part.isna().sum(axis=1).value_counts() for part in parts]
    assert (lacking[0] - lacking[1]).abs().max() <= 1


def test_estimates_and_fit_are_of_the_new_rows(rows: pd.DataFrame) -> None:
    first, second = um.split_rows(rows)
    search = um.LGES().fit(first)
    confirmed = um.confirm(search, second)
    again = um.fit(search.graph_.member(), second)
    assert confirmed.result.sem.chi2 == pytest.approx(again.chi2, abs=1e-6)
    assert confirmed.result.graph == search.graph_
    assert confirmed.table.loc["found", "chi2"] == search.sem_.chi2
    assert confirmed.table.loc["new rows", "n"] == 400
    assert np.abs(confirmed.result.loadings["std"]).to_numpy() == pytest.approx(
        np.abs(um.Result(search.graph_, again).loadings["std"]), abs=1e-6
    )
    text = confirmed.result.summary()
    assert "The graph was found in other data (N = 400)" in " ".join(text.split())
    assert "they are too small" not in " ".join(text.split())
    assert "the loss is small" in confirmed.sentences[0]
    kept = um.Result.from_json(confirmed.result.to_json())
    assert kept.estimation_note == confirmed.result.estimation_note
    assert str(confirmed).count("\n") >= 3


def test_what_new_rows_do_not_bear_out_is_said(rows: pd.DataFrame) -> None:
    # An edge that is not there: L1 and L3 of a chain, given L2.
    dag = um.DAG.from_edges([*latent_chain.edges, ("L1", "L3")], latents=latent_chain.latents, names=latent_chain.names)
    first, second = um.split_rows(rows, rng=4)
    confirmed = um.confirm(um.Result(dag.cpdag(), um.fit(dag, first)), second)
    assert any("do not differ from zero at 5% in the new rows: 'L1 → L3 (p" in x for x in confirmed.sentences)


def test_groups_and_signs_survive(rows: pd.DataFrame) -> None:
    grouped = um.simulate.sample(um.simulate.paper_parameters(two_group_chain, rng=3), 1000, rng=5)
    first, second = um.split_rows(grouped)
    confirmed = um.confirm(um.Result(two_group_chain.cpdag(), um.fit(two_group_chain, first)), second)
    assert np.isfinite(confirmed.result.loadings["std"]).all()
    single = confirmed.edges[confirmed.edges["source"] == "L1"]
    assert single["same_sign"].all()


def test_a_matrix_confirms_too(rows: pd.DataFrame) -> None:
    first, second = um.split_rows(rows)
    search = um.LGES().fit_cov(first.cov(), len(first))
    by_matrix = um.confirm(search, cov=second.cov(), n_samples=len(second))
    assert by_matrix.result.sem.chi2 == pytest.approx(um.confirm(search, second).result.sem.chi2, abs=1e-6)


def test_mistakes_get_sentences(rows: pd.DataFrame) -> None:
    search = um.LGES().fit(rows)
    with pytest.raises(um.DataError, match=r"do not have these variables of the graph: 'x1'"):
        um.confirm(search, rows.drop(columns="x1"))
    with pytest.raises(um.DataError, match="These are the rows the graph was found in"):
        um.confirm(search, rows)
    with pytest.raises(um.UnmeasuredError, match="confirm takes a search that was fitted"):
        um.confirm(um.LGES(), rows)
    with pytest.raises(um.UnmeasuredError, match=r"between 0 and 1, such as 0\.5; got 50"):
        um.split_rows(rows, 50)
    with pytest.raises(um.DataError, match=r"There is no column 'scool' to split by"):
        um.split_rows(rows, by="scool")
    with pytest.raises(um.DataError, match="takes a data frame"):
        um.split_rows(rows.to_numpy())


# Rows left out ----------------------------------------------------------------------------------------------


def test_held_out_likelihood_is_the_gaussian_density(rows: pd.DataFrame) -> None:
    fit = um.fit(latent_chain, rows[:400])
    asked = rows[400:420].to_numpy()
    expected = multivariate_normal(fit.sample.mean, fit.implied_cov).logpdf(asked)
    assert _log_likelihoods(asked, fit, fit.sample.names) == pytest.approx(expected)
    asked = asked.copy()
    asked[3, [0, 4]] = np.nan
    kept = [1, 2, 3, 5, 6, 7, 8]
    part = multivariate_normal(fit.sample.mean[kept], fit.implied_cov[np.ix_(kept, kept)]).logpdf(asked[3, kept])
    assert _log_likelihoods(asked, fit, fit.sample.names)[3] == pytest.approx(part)


def test_rows_left_out_prefer_the_true_model(rows: pd.DataFrame) -> None:
    one = "g =~ " + " + ".join(rows.columns)
    compared = um.compare_models({"chain": latent_chain, "one": one}, rows, folds=5)
    table = compared.held_out
    assert list(table.index) == ["chain", "one"]
    assert table.loc["chain", "difference"] == 0.0
    assert table.loc["one", "difference"] < -3 * table.loc["one", "difference_se"]
    assert table.loc["one", "difference_se"] < table.loc["one", "se"]
    assert "Log-likelihood of rows left out" in str(compared)
    again = um.compare_models({"chain": latent_chain, "one": one}, rows, folds=5)
    assert again.held_out.equals(table)


def test_folds_need_rows(rows: pd.DataFrame) -> None:
    with pytest.raises(um.DataError, match="Cross-validation needs rows"):
        um.compare_models({"chain": latent_chain}, cov=rows.cov(), n_samples=800, folds=5)
    with pytest.raises(um.UnmeasuredError, match="folds is a whole number from 2; got 1"):
        um.compare_models({"chain": latent_chain}, rows, folds=1)
    with pytest.raises(um.DataError, match="taken as ordinal or as ranks"):
        um.compare_models({"chain": latent_chain}, rows, cor="spearman-normal", folds=5)
    with pytest.raises(um.DataError, match="too few for 5 folds"):
        um.compare_models({"chain": latent_chain}, rows[:12], folds=5)


def test_a_time_limit_ends_a_confirmation_and_is_told(rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = um.split_rows(rows)
    result = um.Result(latent_chain.cpdag(), um.fit(latent_chain, first))
    assert not um.confirm(result, second, time_limit=60.0).stopped
    with pytest.raises(um.UnmeasuredError, match="time_limit must be a positive number"):
        um.confirm(result, second, time_limit="x")  # type: ignore[arg-type]
    # A last fit has some moments in any case; without them it ends at once.
    monkeypatch.setattr(Clock, "check_last_fit", Clock.check)
    stopped = um.confirm(result, second, time_limit=1e-9)
    assert stopped.stopped.startswith("Stopped at the time limit of 1e-09 s: the estimates had not converged")
    assert stopped.sentences[0] == stopped.stopped == stopped.result.remarks[0]
    assert not stopped.result.sem.converged


def test_mistakes_in_a_split_are_sentences(rows: pd.DataFrame) -> None:
    for share in ("x", 0.0, 1.0, True, float("nan")):
        with pytest.raises(um.UnmeasuredError, match="between 0 and 1"):
            um.split_rows(rows, share)  # type: ignore[arg-type]
    for rng in ("x", -1):
        with pytest.raises(um.UnmeasuredError, match="rng is a seed"):
            um.split_rows(rows, rng=rng)  # type: ignore[arg-type]
