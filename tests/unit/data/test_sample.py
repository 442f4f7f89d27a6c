"""Sample and as_sample: every door, what is refused, what is pointed out, what is said of what was done."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.data.columns import suspected_codes
from unmeasured.data.matrices import nearest_correlation
from unmeasured.data.sample import Sample, as_sample


def gaussian(n=200, p=4, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    return pd.DataFrame(rows, columns=list("abcdefghij"[:p]))


def likert(n=400, p=4, seed=0):
    return np.digitize(gaussian(n, p, seed), [-1.5, -0.5, 0.5, 1.5]) + 1.0


# What every door gives --------------------------------------------------------------------------------------


def test_rows_give_the_covariance_with_divisor_n_their_mean_and_themselves() -> None:
    rows = gaussian()
    sample = as_sample(rows)
    assert np.allclose(sample.cov, np.cov(rows.to_numpy(), rowvar=False, bias=True))
    assert np.allclose(sample.mean, rows.mean())
    assert np.array_equal(sample.rows, rows)
    assert sample.n == 200
    assert sample.remarks == ()


def test_correlations_with_deviations_equal_the_covariance() -> None:
    rows = gaussian()
    given = as_sample(cov=rows.corr(), sd=rows.std(), n_samples=200)
    assert np.allclose(given.cov, as_sample(cov=rows.cov(), n_samples=200).cov)
    assert np.allclose(given.cov, as_sample(rows).cov)
    turned = as_sample(cov=rows.corr(), sd=rows.std()[::-1], n_samples=200)  # a Series is matched by its names
    assert np.allclose(turned.cov, given.cov)


@pytest.mark.parametrize("cor", ["pearson", "auto", "spearman-normal"])
@pytest.mark.parametrize("holes", [False, True])
def test_units_do_not_matter(cor: str, holes: bool) -> None:
    rows = gaussian(300, 6)
    rows["f"] = np.digitize(rows["f"], [-1, 0, 1])
    if holes:
        rows = rows.mask(np.random.default_rng(1).uniform(size=rows.shape) < 0.1)
    unit = np.array([1e-6, 1e6, 1e3, 1.0, -1e-6, 1e4])
    plain, scaled = as_sample(rows, cor=cor), as_sample(rows * unit, cor=cor)
    assert np.allclose(scaled.corr, plain.corr * np.outer(np.sign(unit), np.sign(unit)), atol=1e-7)
    assert scaled.n == pytest.approx(plain.n)


def test_selecting_keeps_what_is_known_and_copies_no_rows() -> None:
    rows = gaussian().mask(np.random.default_rng(1).uniform(size=(200, 4)) < 0.1)
    rows["b"] = np.digitize(rows["b"].fillna(0.0), [0.0])
    sample = as_sample(rows, cor="auto")
    part = sample.select(["c", "b"])
    assert part.names == ("c", "b")
    assert part.kinds == ("continuous", "ordinal")
    assert part.pairs["kind"].tolist() == ["polyserial"]
    assert part.pairs["n"].tolist() == [float(rows[["c", "b"]].notna().all(axis=1).sum())]
    assert part.mean is not None
    assert np.array_equal(part.rows, rows[["c", "b"]], equal_nan=True)
    assert part._rows is sample._rows
    assert part.remarks == sample.remarks


def test_a_sample_survives_a_pickle() -> None:
    sample = as_sample(gaussian())
    again = pickle.loads(pickle.dumps(sample))
    assert np.array_equal(again.cov, sample.cov)
    assert repr(again) == "<Sample: 4 variables, n = 200>"


def test_a_sample_in_another_process_needs_no_other_compiled_code() -> None:
    """Compiled code takes arrays that can be written for another type than those that cannot."""
    sample = as_sample(gaussian())
    arrays = ("cov", "mean", "corr", "unexplained", "sd")
    before = {name: getattr(sample, name).flags.writeable for name in arrays}
    again = pickle.loads(pickle.dumps(sample))
    assert {name: getattr(again, name).flags.writeable for name in arrays} == before
    assert not before["corr"]


def test_labels_stay_with_the_rows_and_their_groups() -> None:
    rows = gaussian()
    rows.attrs["labels"] = {name: f"Question {name}" for name in rows.columns}
    sample = as_sample(rows, groups=["a", "b"] * (len(rows) // 2))
    assert len(sample.labels) == rows.shape[1]
    assert all(part.labels == sample.labels for part in sample.by_group().values())


def test_nullable_columns_ordered_categories_and_truth_values_are_numbers() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "nullable": pd.array([None, *rng.integers(0, 90, 99)], dtype="Int64"),
            "agree": pd.Categorical(rng.choice(["no", "perhaps", "yes"], 100), ["no", "perhaps", "yes"], ordered=True),
            "truth": rng.uniform(size=100) < 0.5,
            "objects": np.array([None, *rng.normal(size=99)], dtype=object),
        }
    )
    sample = as_sample(frame, cor="auto")
    assert sample.kinds == ("continuous", "ordinal", "ordinal", "continuous")
    assert sample.rows is not None
    assert np.isnan(sample.rows).sum() == 2
    assert set(sample.rows[:, 1]) == {0.0, 1.0, 2.0}


# Correlations -----------------------------------------------------------------------------------------------


def test_auto_takes_few_values_as_ordinal_and_reports_each_pair() -> None:
    rows = gaussian(400).assign(item=likert(400, 1), other=likert(400, 1, seed=3))
    sample = as_sample(rows[["a", "item", "other"]], cor="auto")
    assert sample.kinds == ("continuous", "ordinal", "ordinal")
    assert sample.pairs["kind"].tolist() == ["polyserial", "polyserial", "polychoric"]
    assert sample.sd.round(12).tolist()[1:] == [1.0, 1.0]
    assert sample.remarks[0] == (
        "2 variables taken as ordinal ('item', 'other'): polychoric correlations, polyserial with the others."
    )


def test_items_taken_as_continuous_are_pointed_out() -> None:
    for cor in ("pearson", "spearman-normal"):
        assert as_sample(likert(400, 2), cor=cor).remarks[-1] == (
            "2 variables with no more than 7 values ('x1', 'x2') taken as continuous: such correlations come out too "
            "small. cor='auto' takes them as ordinal."
        )


def test_one_item_among_continuous_variables_has_polyserial_correlations_only() -> None:
    sample = as_sample(gaussian(400).assign(item=likert(400, 1)), cor="auto")
    assert sample.remarks[0] == "1 variable taken as ordinal ('item'): polyserial correlations with the others."


def test_auto_needs_rows_for_each_value() -> None:
    few = pd.DataFrame(np.random.default_rng(0).normal(size=(6, 2)).round(3))
    assert as_sample(few, cor="auto").kinds == ("continuous", "continuous")


def test_polychoric_undoes_the_cut() -> None:
    rng = np.random.default_rng(5)
    z = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=20_000)
    skewed = np.column_stack([np.digitize(z[:, 0], [0.5, 1.0, 1.5]), np.digitize(z[:, 1], [-1.5, -1.0])])
    assert as_sample(skewed, cor="pearson").corr[0, 1] < 0.45
    assert as_sample(skewed, cor="polychoric").corr[0, 1] == pytest.approx(0.6, abs=0.02)
    mixed = np.column_stack([z[:, 0], skewed[:, 1]])
    assert as_sample(mixed, cor="auto").corr[0, 1] == pytest.approx(0.6, abs=0.02)


def test_two_even_categories_are_worth_two_over_pi_squared() -> None:
    # At correlation zero the information of a fourfold table cut at the medians is (2/pi)^2 of the continuous one.
    z = np.random.default_rng(0).normal(size=(4000, 2))
    sample = as_sample(z > np.median(z, axis=0), cor="auto")
    assert sample.n == pytest.approx(4000 * (2 / np.pi) ** 2, rel=0.01)
    assert f"The search uses a sample size of {sample.n:.1f} instead of 4000" in sample.remarks[1]


def test_scores_of_ranks_ignore_monotone_changes() -> None:
    rows = gaussian(500)
    bent = rows.assign(a=np.exp(rows["a"]), b=rows["b"] ** 3)
    straight, scores = as_sample(rows, cor="spearman-normal"), as_sample(bent, cor="spearman-normal")
    assert np.allclose(scores.cov, straight.cov)
    assert np.allclose(scores.corr, as_sample(rows).corr, atol=0.05)
    assert set(scores.pairs["kind"]) == {"spearman-normal"}


def test_sparse_categories_are_named() -> None:
    items = likert(400)
    items[:2, 1] = 6.0
    sample = as_sample(items, cor="auto")
    assert any("fewer than 5 answers in 'x2' (such as the value 6 of 'x2', 2 times)" in r for r in sample.remarks)


def test_tables_with_empty_corners_end_at_the_bound_and_are_repaired() -> None:
    x = np.repeat([0, 1, 2], 40)
    y = np.minimum(x, 1)
    y[:3] = 0
    z = np.random.default_rng(0).permutation(x)
    sample = as_sample(np.column_stack([x, np.where(np.arange(120) == 40, 0, y), z]), cor="polychoric")
    assert np.linalg.eigvalsh(sample.corr)[0] > 1e-4
    assert abs(sample.corr[0, 1]) > 0.9


def test_repair_reports_the_change() -> None:
    corr = np.array([[1, 0.9, 0.9], [0.9, 1, 0.1], [0.9, 0.1, 1]])
    with pytest.raises(um.DataError, match=r"not positive definite .*repair=True"):
        as_sample(cov=corr, n_samples=100)
    sample = as_sample(cov=corr, n_samples=100, repair=True)
    assert np.linalg.eigvalsh(sample.corr)[0] >= 0.99e-3
    assert "The largest change is 0.1" in sample.remarks[0]
    assert as_sample(cov=np.eye(3), n_samples=100, repair=True).remarks == ()


def test_the_nearest_matrix_is_no_farther_than_others() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        bad = np.tanh(rng.normal(size=(6, 6)))
        bad = (bad + bad.T) / 2
        np.fill_diagonal(bad, 1.0)
        best = nearest_correlation(bad)
        assert np.linalg.eigvalsh(best)[0] >= 1e-3 - 1e-9
        least = np.linalg.eigvalsh(bad)[0]
        weight = (1e-3 - least) / (1 - least)  # shrinking is another way to a proper matrix
        assert np.linalg.norm(best - bad) <= np.linalg.norm(weight * (np.eye(6) - bad))


# Missing values ---------------------------------------------------------------------------------------------


def with_holes(share=0.2, n=400, p=5):
    rows = gaussian(n, p)
    return rows.mask(np.random.default_rng(9).uniform(size=rows.shape) < share)


def test_ml_says_what_it_did_and_what_the_rows_are_worth() -> None:
    rows = with_holes()
    sample = as_sample(rows)
    seen = rows.notna().to_numpy().sum(axis=1)
    assert sample.n == pytest.approx((seen * (seen + 1)).sum() / 30)
    assert "mean and covariance by maximum likelihood from every value seen (EM)" in sample.remarks[0]
    assert f"The search uses a sample size of {sample.n:.1f} instead of 400" in sample.remarks[1]


def test_ml_is_a_maximum() -> None:
    rows = with_holes(0.3, 120, 3)
    sample = as_sample(rows)

    def loglik(mean, cov):
        total = 0.0
        for row in rows.to_numpy():
            o = ~np.isnan(row)
            if o.any():
                d, S = (row - mean)[o], cov[np.ix_(o, o)]
                total -= np.linalg.slogdet(S)[1] + d @ np.linalg.solve(S, d)
        return total

    best = loglik(sample.mean, sample.cov)
    rng = np.random.default_rng(0)
    for _ in range(20):
        shift = rng.normal(size=(3, 3)) * 1e-3
        assert loglik(sample.mean + rng.normal(size=3) * 1e-3, sample.cov + shift + shift.T) < best + 1e-9


def test_listwise_and_pairwise() -> None:
    rows = with_holes()
    listwise = as_sample(rows, missing="listwise")
    assert np.allclose(listwise.cov, np.cov(rows.dropna().to_numpy(), rowvar=False, bias=True))
    assert listwise.n == len(rows.dropna())
    assert "were dropped (listwise deletion)" in listwise.remarks[0]
    pairwise = as_sample(rows, missing="pairwise")
    assert np.allclose(pairwise.corr, rows.corr())
    assert np.allclose(pairwise.sd, rows.std(ddof=0))
    assert pairwise.n == as_sample(rows).n


def test_ordinal_items_with_holes_are_taken_pair_by_pair() -> None:
    items = pd.DataFrame(likert(500, 3)).mask(np.random.default_rng(0).uniform(size=(500, 3)) < 0.1)
    sample = as_sample(items, cor="auto")
    both = items[[0, 1]].dropna()
    assert sample.pairs["n"][0] == len(both)
    assert any("every correlation is from the rows in which both variables were observed" in r for r in sample.remarks)


def test_rows_without_a_value_are_left_out() -> None:
    rows = gaussian()
    rows.iloc[[3, 5]] = np.nan
    sample = as_sample(rows)
    assert sample.n == 198
    assert sample.remarks == ("2 rows without any value left out.",)


# Matrices left half empty --------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [0.0, np.nan])
@pytest.mark.parametrize("below", [True, False])
def test_a_triangle_is_taken_for_the_whole_matrix(empty: float, below: bool) -> None:
    corr = gaussian().corr().to_numpy()
    left_out = np.triu(np.ones((4, 4), dtype=bool), 1)
    half = np.where(left_out if below else left_out.T, empty, corr)
    assert (as_sample(cov=half, n_samples=200).corr == as_sample(cov=corr, n_samples=200).corr).all()


def test_names_of_several_levels_are_joined() -> None:
    rows = gaussian().set_axis(pd.MultiIndex.from_product([["mood", "sleep"], [1, 2]]), axis=1)
    assert as_sample(rows).names == ("mood_1", "mood_2", "sleep_1", "sleep_2")
    assert as_sample(cov=rows.cov(), n_samples=200).names == ("mood_1", "mood_2", "sleep_1", "sleep_2")


# Columns that look like something else ----------------------------------------------------------------------


def test_identifiers_and_weights_are_pointed_out() -> None:
    rows = gaussian().assign(id=np.random.default_rng(0).permutation(200) + 1000, row=range(200), weight=1.0)
    rows["weight"] += np.abs(rows["a"])
    remarks = " ".join(as_sample(rows).remarks)
    assert "'id', 'row': every value is a different whole number" in remarks
    assert "'weight': named like sampling weights" in remarks


@pytest.mark.parametrize("name", ["ID", "participant_id", "userId", "respondentID", "VpNr", "case", "subject no"])
def test_whole_numbers_named_like_identifiers_are_pointed_out(name: str) -> None:
    rows = gaussian().assign(**{name: np.random.default_rng(0).permutation(99_999)[:200]})
    assert as_sample(rows).remarks[0].startswith(f"{name!r}: every value is a different whole number")


def test_numbers_without_a_gap_number_the_rows_in_any_order() -> None:
    shuffled = np.random.default_rng(0).permutation(200)
    assert as_sample(gaussian().assign(z=shuffled)).remarks[0].startswith("'z': every value")
    assert as_sample(gaussian().assign(z=shuffled**2)).remarks == ()  # squares have gaps, and the name says nothing


@pytest.mark.parametrize("name", ["wt", "WGT2", "weight_final", "survey_weight", "dweight", "pspwght", "anweight", "w"])
def test_names_of_weights_are_known(name: str) -> None:
    rows = gaussian()
    rows[name] = np.random.default_rng(1).uniform(0.5, 2.0, len(rows))
    assert f"{name!r}: named like sampling weights" in " ".join(as_sample(rows).remarks)


@pytest.mark.parametrize("name", ["weighted", "growth", "two", "lightweightness", "valid", "nor"])
def test_names_that_only_sound_alike_are_left_alone(name: str) -> None:
    rows = gaussian()
    rows[name] = np.random.default_rng(1).uniform(0.5, 2.0, len(rows))
    assert as_sample(rows).remarks == ()


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        ([1, 2, 3, 4, 5] * 9, []),
        ([1, 2, 3, 4, 5] * 9 + [9], [9]),
        ([1, 2, 3, 4, 5] * 9 + [99, 98], [98, 99]),
        ([1, 2, 3, 4, 5] * 9 + [-9, -8, 99], [-9, -8, 99]),
        ([1, 2, 3, 4, 5] * 99 + [0], [0]),
        ([0, 1, 2, 3, 4, 5] * 99, []),
        ([0, 1] * 9, []),
        ([1, 2] * 9 + [9], [9]),
        (list(range(1, 10)) * 9, []),
        ([*np.linspace(15, 30, 40), 999], [999]),
        (list(np.linspace(-3, 3, 40)), []),
        ([*np.linspace(20, 80, 61), 99], []),
    ],
)
def test_codes_that_look_like_missing(column: list[float], codes: list[float]) -> None:
    assert suspected_codes(np.array(column, dtype=float)) == codes


def test_a_code_is_pointed_out_and_kept() -> None:
    items = likert(400)
    items[:7, 2] = 9.0
    sample = as_sample(items)
    assert sample.remarks[1:] == (
        "The value 9 looks like a code for a missing answer: it lies outside the other values of 'x3' (7 times). If it "
        "is one, replace it by NaN first.",
    )
    assert sample.n == 400


# Refusals ---------------------------------------------------------------------------------------------------

ROWS = gaussian()
CORR = ROWS.corr()
REFUSED = {
    "text": (lambda: as_sample(ROWS.assign(sex="f", town="x")), "Columns 'sex', 'town' hold text, not numbers. Select"),
    "numbers as text": (lambda: as_sample([["1", "2"], ["3", "4"]]), "entries that are not numbers"),
    "unordered categories": (lambda: as_sample(ROWS.assign(g=pd.Categorical(["x", "y"] * 100))), r"cat\.as_ordered"),
    "dates": (lambda: as_sample(ROWS.assign(day=pd.Timestamp("2020-01-01"))), "Columns 'day' hold dates or times"),
    "a column of numbers as text": (
        lambda: as_sample(ROWS.assign(a=ROWS["a"].astype(str), sex="f")),
        r"'a' hold numbers written as text\. Turn them .*pandas\.to_numeric\. Columns 'sex' hold text, not numbers",
    ),
    "a file's name": (lambda: as_sample("answers.csv"), r"got the text 'answers\.csv'. .* unmeasured\.read"),
    "columns in a dict": (lambda: as_sample({"a": [1, 2], "b": [2, 1]}), r"a dict of named values\. pandas\.DataFrame"),
    "no name": (lambda: as_sample(ROWS.set_axis(["a", "", "c", "d"], axis=1)), "Variable number 2 of 4 has no name"),
    "name None": (lambda: as_sample(ROWS.set_axis([None, "b", "c", "d"], axis=1)), "Variable number 1 of 4 has no"),
    "rows as a matrix": (lambda: as_sample(cov=ROWS, n_samples=200), r"shape \(200, 4\)\. Rows of samples go in as X"),
    "complex": (lambda: as_sample(ROWS.to_numpy() + 1j), "not numbers"),
    "infinite": (lambda: as_sample(ROWS.assign(a=np.inf)), "Columns 'a' hold infinities .*, which are neither"),
    "empty column": (lambda: as_sample(ROWS.assign(a=np.nan)), "Columns 'a' hold no value at all"),
    "constant": (lambda: as_sample(ROWS.assign(a=0.1)), "Constant variables carry no information: 'a'"),
    "identical": (lambda: as_sample(ROWS.assign(e=ROWS["b"])), "Columns 'b' and 'e' are identical"),
    "reversed": (lambda: as_sample(ROWS.assign(e=-ROWS["b"])), "'b' and 'e' are perfectly correlated"),
    "reversed item": (
        lambda: as_sample(np.column_stack([likert(), 6 - likert()[:, 0]]), cor="auto"),
        "'x1' and 'x5' are perfectly correlated",
    ),
    "sum": (lambda: as_sample(ROWS.assign(e=ROWS["a"] + ROWS["b"])), "of 'e', '[ab]', '[ab]' one is the sum"),
    "too few": (lambda: as_sample(ROWS[:3]), "3 samples are too few for 4 variables"),
    "a matrix as rows": (lambda: as_sample(CORR), r"symmetric matrix.*pass it as\s+cov="),
    "no table": (lambda: as_sample(ROWS["a"]), r"table \(samples x variables\); got a Series of shape \(200,\)"),
    "nothing": (lambda: as_sample(ROWS[:0]), r"got shape \(0, 4\), which is empty"),
    "repeated names": (lambda: as_sample(ROWS, names=list("abca")), "Names repeat: 'a'"),
    "names as one string": (lambda: as_sample(ROWS, names="abcd"), "sequence of 4 strings; got 'abcd'"),
    "never together": (
        lambda: as_sample(ROWS.assign(a=ROWS["a"].where(np.arange(200) < 99), b=ROWS["b"].where(np.arange(200) > 99))),
        "'a' and 'b' are seen together in 0 rows",
    ),
    "no complete row": (
        lambda: as_sample(ROWS.mask(np.arange(200)[:, None] % 4 == np.arange(4)), missing="listwise"),
        "Only 0 rows of 200 are complete, too few for 4 variables",
    ),
    "unknown cor": (lambda: as_sample(ROWS, cor="kendall"), "cor must be one of 'pearson', 'auto'.*; got 'kendall'"),
    "unknown missing": (lambda: as_sample(ROWS, missing="mean"), "missing must be one of 'ml'.*; got 'mean'"),
    "options of rows": (lambda: as_sample(cov=CORR, n_samples=9, missing="pairwise"), "say what to make of rows"),
    "options of matrices": (lambda: as_sample(ROWS, sd=[1, 1, 1, 1]), "sd and repair go with cov="),
    "too many categories": (lambda: as_sample(ROWS, cor="polychoric"), "'a' has 200 different values, too many"),
    "sd of covariances": (lambda: as_sample(cov=2 * CORR, sd=[1] * 4, n_samples=9), "whose diagonal is 1"),
    "sd too few": (lambda: as_sample(cov=CORR, sd=[1, 2], n_samples=9), r"one standard deviation per variable \(4\)"),
    "sd negative": (lambda: as_sample(cov=CORR, sd=[1, 2, 3, -1], n_samples=9), "those of 'd' are not"),
    "correlation above one": (
        lambda: as_sample(cov=[[1, 2], [2, 1]], n_samples=9),
        "'x1' and 'x2' have a correlation of 2",
    ),
    "n as text": (lambda: as_sample(cov=CORR, n_samples="many"), "n_samples must be a number; got 'many'"),
    "wild": (lambda: as_sample(cov=np.diag([1e300, 1]), n_samples=9), "too small or too large for arithmetic"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_named(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(um.DataError, match=message):
        call()


def test_populations_need_no_number() -> None:
    sample = Sample.from_cov(CORR, math.inf)
    assert np.allclose(sample.cov, CORR)


@pytest.mark.parametrize("size", [1e-300, 1e-100, 1e100, 1e200, 1e307])
def test_skewed_columns_of_any_size_overflow_nowhere(size):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(np.exp(rng.normal(size=(90, 1)) + 0.5 * rng.normal(size=(90, 3))) / 50.0, columns=list("abc"))
    plain = as_sample(rows, cor="auto")
    assert set(plain.kinds) == {"scores"}
    rows["a"] *= size
    if 1e-100 <= size <= 1e100:
        assert np.allclose(as_sample(rows, cor="auto").corr, plain.corr, atol=1e-9)
    else:
        with pytest.raises(um.DataError, match="too small or too large"):
            as_sample(rows, cor="auto")
