"""The manners of an estimator, as scikit-learn checks them, and ours: errors with a cause, answers in a notebook."""

from __future__ import annotations

import pickle
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

import unmeasured as um
from graphs_zoo import latent_chain, shared_child, two_group_chain

# The checks that cannot apply, with the reason for each.
NOT_APPLICABLE = {
    "check_dtype_object": "a cell that is no number raises DataError, a ValueError that names the cause; "
    "scikit-learn asks for the TypeError of float()",
}
# Left out by scikit-learn itself where an environment variable is not set.
SKIPPED = {"check_array_api_input"}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 400, rng=5)


@pytest.fixture(scope="module")
def fitted(rows: pd.DataFrame) -> um.LGES:
    return um.LGES().fit(rows)


# Exact search takes the basic checks only: the others fit ten variables dozens of times.
@pytest.mark.filterwarnings("ignore:The search is not complete")
@pytest.mark.parametrize(
    ("search", "legacy"),
    [(um.LGES(), True), (um.LGES(criterion="delta"), True), (um.ExactSearch(max_group_size=1, time_limit=0.01), False)],
    ids=["bic", "delta", "exact"],
)
def test_scikit_learns_own_checks_pass(search: Any, legacy: bool) -> None:
    checks = check_estimator(
        search, legacy=legacy, expected_failed_checks=NOT_APPLICABLE, on_skip=None, on_fail="raise"
    )
    odd = {check["check_name"] for check in checks if check["status"] != "passed"}
    assert odd <= {*NOT_APPLICABLE, *SKIPPED}
    assert len(checks) > 10


@pytest.mark.parametrize("dag", [latent_chain, shared_child, two_group_chain])
@pytest.mark.parametrize("criterion", ["bic", "delta"])
def test_units_from_a_millionth_to_a_million_give_the_same_graph(dag: um.DAG, criterion: Any) -> None:
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=3), 400, rng=5)
    plain = um.LGES(criterion=criterion).fit(rows)
    exponents = np.random.default_rng(1).uniform(-6, 6, rows.shape[1])
    exponents[:2] = -6, 6
    scaled = rows * 10.0**exponents
    for search in (
        um.LGES(criterion=criterion).fit(scaled),
        um.LGES(criterion=criterion).fit_cov(scaled.cov(), len(rows)),
    ):
        assert search.graph_ == plain.graph_
        assert search.sem_.chi2 == pytest.approx(plain.sem_.chi2, abs=1e-5)
        assert search.result_.loadings["std"].to_numpy() == pytest.approx(plain.result_.loadings["std"], abs=1e-4)


def test_options_are_stored_and_looked_at_by_fit_only() -> None:
    search = um.LGES(penalty=-1.0)
    assert clone(search).get_params()["penalty"] == -1.0
    with pytest.raises(um.UnmeasuredError, match="penalty must be a positive number; got -1"):
        search.fit_cov(np.eye(4), 100)
    assert search.set_params(penalty=2.0).penalty == 2.0
    with pytest.raises(NotFittedError):
        check_is_fitted(search)


@pytest.mark.parametrize("n_jobs", [0, -2, "two"])
@pytest.mark.parametrize("kind", [um.LGES, um.ExactSearch])
def test_a_number_of_threads_is_checked_the_same_way_everywhere(kind: Any, n_jobs: Any) -> None:
    with pytest.raises(um.UnmeasuredError, match="n_jobs must be a number of threads from 1, or -1 for all cores; got"):
        kind(n_jobs=n_jobs).fit_cov(np.eye(4), 100)


def test_names_are_kept_where_the_data_have_them(rows: pd.DataFrame) -> None:
    search = um.LGES().fit(rows)
    assert list(search.feature_names_in_) == list(rows.columns)
    assert search.n_features_in_ == 9
    search.fit(rows.to_numpy())
    assert not hasattr(search, "feature_names_in_")
    assert search.sample_.names == tuple(f"x{i}" for i in range(1, 10))
    search.fit_cov(rows.cov(), len(rows))
    assert list(search.feature_names_in_) == list(rows.columns)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (csr_array(np.eye(3)), r"sparse matrix; covariances are dense\. Pass X\.toarray\(\)"),
        (np.eye(3) * 1j, "Complex data not supported"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [1j, 2j]}), "Complex data not supported"),
        ([[1.0, 2.0], [3.0]], "cannot be read as a table of numbers"),
        (np.ones((1, 3)), "n_samples = 1, while a minimum of 2"),
        (np.ones((5, 1)), r"1 feature\(s\) \(shape=\(5, 1\)\)"),
        (np.ones(5), r"Rows come as a table .*of shape \(5,\)"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(data: Any, message: str) -> None:
    with pytest.raises(um.DataError, match=message):
        um.LGES().fit(data)


def test_a_fitted_search_survives_a_pickle(fitted: um.LGES) -> None:
    text = fitted.result_.summary()  # fills what is remembered, which must travel too
    again = pickle.loads(pickle.dumps(fitted))
    assert again.graph_ == fitted.graph_
    assert again.result_.summary() == text


def test_searches_run_in_other_processes(rows: pd.DataFrame, fitted: um.LGES) -> None:
    # Two jobs are what makes joblib leave this process.
    (other,) = joblib.Parallel(n_jobs=2)(joblib.delayed(clone(fitted).fit)(part) for part in [rows])
    assert other.graph_ == fitted.graph_


def test_a_notebook_shows_options_before_and_the_answer_after(fitted: um.LGES) -> None:
    before = um.LGES(penalty=2.0)._repr_mimebundle_()["text/html"]
    assert "penalty" in before
    after = fitted._repr_mimebundle_()["text/html"]
    assert "3 latent variables behind 9 observed variables" in after
    assert after == fitted._repr_html_()


def test_the_result_says_which_search_it_is_from(rows: pd.DataFrame) -> None:
    result = um.LGES(penalty=2.0).fit(rows).result_
    assert result.method == "LGES(penalty=2.0)"
    assert result.options["criterion"] == "bic"
