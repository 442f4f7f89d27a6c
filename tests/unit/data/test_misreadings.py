"""What used to be read wrongly without a word is refused or pointed out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.data.columns import suspected_codes
from unmeasured.data.sums import sum_remarks
from unmeasured.data.suspect_columns import suspects
from unmeasured.remarks import Severity, severity_of

RNG = np.random.default_rng(0)
LATENT = RNG.normal(size=(300, 1))
ITEMS = pd.DataFrame(
    np.clip(np.round(LATENT + RNG.normal(size=(300, 6)) + 3), 1, 5), columns=[f"q{i}" for i in range(1, 7)]
)


def read(tmp_path, text, **options):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    return um.read(path, **options)


def remarks_on(frame, **options):
    return um.as_sample(frame, cor="auto", **options).remarks


# Files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["3,4,2\n4,4,1\n5,2,2\n", "3;4,5;2\n4;4,5;1\n", "0.5 1.5 -2\n1 2 3\n", "anna,3,1,5\nbea,4,4,1\n", "1,1\n2,3\n"],
)
def test_a_file_without_a_header_is_refused(text, tmp_path):
    with pytest.raises(um.DataError, match="is it a row of data"):
        read(tmp_path, text)
    assert len(read(tmp_path, text, header=False)) == len(text.splitlines())


def test_a_header_of_numbers_is_one_where_it_counts_or_the_caller_says_so(tmp_path):
    assert list(read(tmp_path, "1,2,3\n4,4,1\n").columns) == ["1", "2", "3"]
    assert list(read(tmp_path, "id,2019,2020,2021\n4,4,1,2\n").columns) == ["id", "2019", "2020", "2021"]
    assert list(read(tmp_path, "3,4,2\n4,4,1\n", header=True).columns) == ["3", "4", "2"]
    assert list(read(tmp_path, "3,4,2\n4,4,1\n", header=False).columns) == ["x1", "x2", "x3"]


def test_names_that_repeat_are_refused(tmp_path):
    with pytest.raises(um.DataError, match="several columns called 'a'"):
        read(tmp_path, "a,b,a\n1,2,3\n")
    # A name that looks like pandas' own renaming is a name.
    assert list(read(tmp_path, "a,a.1\n1,2\n").columns) == ["a", "a.1"]


def test_a_first_column_without_a_name_is_kept_or_refused_but_never_dropped_as_data(tmp_path):
    assert list(read(tmp_path, ",a,b\n1,5,6\n2,7,8\n").columns) == ["a", "b"]  # row numbers, as R writes them
    assert list(read(tmp_path, ",a,b\nanna,5,6\nbea,7,8\n").columns) == ["a", "b"]  # row names
    assert list(read(tmp_path, "a,b\n1,5,6\n2,7,8\n").columns) == ["a", "b"]  # without even a comma above them
    for text in (",a,b\n3,5,6\n3,7,8\n", ",a,b\n0.5,5,6\n0.7,7,8\n", "a,b\n4,5,6\n2,7,8\n"):
        with pytest.raises(um.DataError, match=r"Column number 1 .* no name"):
            read(tmp_path, text)


def test_other_columns_without_a_name(tmp_path):
    assert list(read(tmp_path, "a,b,\n1,2,\n3,4,\n").columns) == ["a", "b"]  # a comma at the end of each line
    with pytest.raises(um.DataError, match=r"Column number 3 .* no name"):
        read(tmp_path, "a,b,\n1,2,3\n3,4,5\n")
    with pytest.raises(um.DataError, match="Name every column"):
        read(tmp_path, "a,b\n1,2,3,4\n3,4,5,6\n")


def test_a_nul_in_a_file_is_a_sentence(tmp_path):
    with pytest.raises(um.DataError, match="NUL"):
        read(tmp_path, "a\0,b\n1,2\n")


# Matrices ---------------------------------------------------------------------------------------------------

R = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, 0.3], [-0.2, 0.3, 1.0]])


def test_columns_of_a_matrix_are_sorted_by_their_names():
    read = um.read_matrix(",b,a,c\na,.5,1,-.2\nb,1,.5,.3\nc,.3,-.2,1\n")
    assert list(read.columns) == ["a", "b", "c"]
    assert np.allclose(read, R)


@pytest.mark.parametrize(
    "text", [",a,b,x\na,1,.5,-.2\nb,.5,1,.3\nc,-.2,.3,1\n", ",b,a,c\na,1,,\nb,.5,1,\nc,-.2,.3,1\n"]
)
def test_labels_of_a_matrix_that_disagree_are_refused(text):
    with pytest.raises(um.DataError, match="named differently"):
        um.read_matrix(text)
    assert list(um.read_matrix(text, names=["a", "b", "c"]).columns) == ["a", "b", "c"]


@pytest.mark.parametrize("order", [(1, 0, 2), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("scale", [(1, 1, 1), (1, 20, 300)])
def test_permuted_columns_are_named_as_such(order, scale):
    cov = R * np.outer(scale, scale)
    with pytest.raises(um.DataError, match="different orders"):
        um.as_sample(cov=cov[:, order], n_samples=100)


def test_a_variance_of_zero_in_a_matrix_is_told_of_the_diagonal():
    with pytest.raises(um.DataError, match="diagonal of the matrix"):
        um.as_sample(cov=np.diag([1.0, 0.0]), n_samples=100)


# Codes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [9, 99, -1, 999, 77, -99, 98])
def test_codes_far_outside_an_item_are_a_problem_that_is_said(code):
    frame = ITEMS.copy()
    frame.loc[:4, "q2"] = code
    found = [remark for remark in remarks_on(frame) if f"The value {code:g} looks like a code" in remark]
    assert len(found) == 1
    assert "'q2'" in found[0]
    assert severity_of(found[0]) == Severity.DATA


def test_a_code_after_a_scale_with_an_unused_category():
    assert suspected_codes(np.array([1.0, 2, 4, 5] * 9 + [9])) == [9.0]
    assert suspected_codes(np.array([1.0, 2, 4, 7] * 9)) == []


# Sums -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made", [lambda x: x.sum(axis=1), lambda x: x.mean(axis=1).round(2), lambda x: 10 + x.mean(axis=1)]
)
@pytest.mark.parametrize("cor", ["auto", "pearson"])
def test_a_total_among_its_items_is_named(made, cor):
    frame = ITEMS.assign(score_of_all=made(ITEMS[["q1", "q2", "q3", "q4"]]))
    try:
        said = " ".join(um.as_sample(frame, cor=cor).remarks)
    except um.DataError as error:
        said = str(error)
    assert "'score_of_all'" in said
    assert all(name in said for name in ("'q1'", "'q2'", "'q3'", "'q4'"))
    assert "total" in said


def test_a_total_among_ordinal_items_is_searched_to_the_end():
    """Taking out a residual pair once left a model without a likelihood, whose standard errors then failed."""
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.normal(size=(200, 2)), 3, axis=1) * 0.8 + 0.6 * rng.normal(size=(200, 6))
    items = pd.DataFrame(rows.round(3) * 1.2 + 3).round().clip(1, 5).add_prefix("q")
    search = um.LGES().fit(items.assign(total=items.sum(axis=1)))
    assert "'total' is the sum or mean of" in " ".join(search.remarks_)
    assert "characteristics of persons" not in " ".join(search.remarks_)
    assert search.sem_.converged
    assert um.Result.from_json(search.result_.to_json()).graph == search.graph_


def test_items_without_a_total_and_strong_structure_are_no_sums():
    assert sum_remarks(list(ITEMS), ITEMS.to_numpy()) == ()
    for seed in range(5):  # correlations near one, but no equal weights
        truth = um.simulate.random_gnfm(n_latents=3, n_observed=12, rng=seed)
        rows = um.simulate.sample(truth, 500, parameters="paper", rng=seed)
        assert sum_remarks(list(rows), rows.to_numpy()) == ()


# Roles ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("age", RNG.integers(18, 80, 300), "characteristic"),
        ("Age_years", RNG.normal(40, 9, 300), "characteristic"),
        ("ageYears", RNG.normal(40, 9, 300), "characteristic"),
        ("gender", RNG.integers(0, 2, 300), "characteristic"),
        ("Sex", RNG.integers(1, 3, 300), "characteristic"),
        ("country", RNG.integers(1, 40, 300), "characteristic"),
        ("id", RNG.permutation(300) * 7, "identifier"),
        ("school", RNG.integers(10, 99, 300), "characteristic"),
        ("x99", RNG.integers(18, 80, 300), "unlike"),
        ("final_weight", RNG.uniform(0.5, 2, 300), "weight"),
    ],
)
def test_columns_that_are_no_indicators_lead_to_a_remark_and_a_question(name, values, role):
    frame = ITEMS.assign(**{name: values})
    sample = um.as_sample(frame, cor="auto")
    assert [(s.name, s.role) for s in sample.suspects] == [(name, role)]
    assert Severity.DATA in [severity_of(r) for r in sample.remarks if f"'{name}'" in r]
    (asked,) = [f for f in um.check(frame).findings if f.topic == "roles"]
    assert not asked.ok
    assert f"'{name}'" in asked.text
    assert "?" in asked.text


def test_items_are_no_suspects():
    assert um.as_sample(ITEMS).suspects == ()
    names = ["manage1", "average", "message", "sexism_2", "grade", "school", "year", "encourage"]
    assert suspects(names) == ()
    assert suspects(names[:6], ITEMS.to_numpy()) == ()
    for known in um.datasets.available():
        assert suspects(um.datasets.load(known).names) == ()


def test_names_alone_are_enough_in_a_matrix():
    cov = pd.DataFrame(R, index=["age", "a", "b"], columns=["age", "a", "b"])
    (remark,) = um.as_sample(cov=cov, n_samples=100).remarks
    assert "'age'" in remark


def test_entries_beyond_arithmetic_are_refused_without_a_warning():
    """Differences of such entries overflow; warnings are errors in tests."""
    with pytest.raises(um.DataError, match="diagonal"):
        um.as_sample(cov=[[0.0, 1e308], [-8e307, 0.0]], n_samples=100)
