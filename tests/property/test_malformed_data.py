"""Whatever is handed in as data gives an answer or one of our errors, with a text; nothing else gets out.

Five hundred tables go through the door, and five hundred all the way through a search to its summary; five hundred
matrices likewise. Types, shapes, holes, infinities, text, duplicates, few rows and wild scales all occur among them.
"""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import unmeasured as um
from profiles import examples
from unmeasured.data.sample import Sample, as_sample

quick = settings(
    max_examples=examples(500), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

numbers = st.one_of(
    st.floats(),
    st.integers(-5, 5),
    st.integers(-(10**400), 10**400),
    st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-308, 5e-324, 1e154, 1e-160]),
)
oddities = st.one_of(
    numbers, st.text(max_size=3), st.booleans(), st.none(), st.complex_numbers(), st.binary(max_size=2),
    st.sampled_from([pd.NA, pd.NaT, Decimal("1.5"), pd.Timestamp("2020-01-01"), np.float32(1), object, [], [1], {}]),
)  # fmt: skip


def mostly(good: st.SearchStrategy[Any], bad: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Good ones three times in four: what is wrong everywhere is refused at the first door."""
    return st.integers(0, 3).flatmap(lambda i: bad if i == 0 else good)


@st.composite
def columns(draw: st.DrawFn, n: int) -> Any:
    """A column: well-behaved, coarse, holed, wild in scale, constant, or of things that are no numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 20)))  # few seeds, so that columns repeat
    values = rng.normal(size=n)
    bad = st.sampled_from(["wild", "shifted", "constant", "odd", "typed"])
    kind = draw(mostly(st.sampled_from(["plain", "coarse", "holes"]), bad))
    if kind == "coarse":
        return np.round(values)
    if kind == "holes":
        return np.where(rng.uniform(size=n) < draw(st.floats(0, 0.9)), np.nan, values)
    if kind == "wild":
        return values * 10.0 ** draw(st.integers(-320, 307))
    if kind == "shifted":
        return values + 10.0 ** draw(st.integers(0, 300))
    if kind == "constant":
        return np.full(n, draw(st.floats()))
    if kind == "odd":
        column = values.astype(object)
        if n:
            column[draw(st.integers(0, n - 1))] = draw(oddities)
        return column
    if kind == "typed":
        dtype = draw(st.sampled_from(["Int64", "boolean", "category", "str", "complex", "datetime64[ns]", "Float64"]))
        return pd.Series(np.round(values)).abs().clip(upper=1).astype("int64").astype(dtype)
    return values


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    n = draw(mostly(st.sampled_from([12, 40, 90]), st.integers(0, 8)))
    p = draw(st.integers(0, 5))
    parts = [pd.Series(draw(columns(n))).reset_index(drop=True) for _ in range(p)]
    frame = pd.concat(parts, axis=1) if parts else pd.DataFrame(index=range(n))
    odd_names = st.lists(st.sampled_from(["a", "b", 1, None, "", ("x", 1)]), min_size=p, max_size=p)
    frame.columns = pd.Index(draw(odd_names) if draw(st.integers(0, 4)) == 0 else list("abcde"[:p]))
    return frame


tables = mostly(
    frames(),
    st.one_of(
        frames().map(lambda frame: frame.to_numpy()),
        st.lists(st.lists(oddities, max_size=4), max_size=5),
        st.lists(st.lists(numbers, min_size=2, max_size=2), max_size=8),
        oddities,
        st.sampled_from(
            [np.zeros((2, 2, 2)), np.array(3.0), {"a": [1, 2]}, {1, 2}, range(5), object(), np.zeros((0, 3))]
        ),
    ),
)


def is_sentence(text: str) -> bool:
    """Our errors have a sentence in them."""
    return len(text) > 20 and text.rstrip().endswith((".", ")", "?"))


def outcome(call: Any) -> Sample | str:
    """The answer, or what our error says; any other exception, and any warning, fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            sample: Sample = call()
        except um.UnmeasuredError as error:
            return str(error)
    return sample


def is_sound(answer: Sample | str) -> bool:
    """A sample that a likelihood can be made of, or a sentence that says why there is none."""
    if isinstance(answer, str):
        return is_sentence(answer)
    return bool(
        np.isfinite(answer.cov).all()
        and np.isfinite(answer.corr).all()
        and np.linalg.eigvalsh(answer.corr)[0] > 0
        and answer.n > len(answer.names)
        and len(set(answer.names)) == len(answer.names)
        and all(is_sentence(remark) for remark in answer.remarks)
    )


@quick
@given(
    tables,
    st.sampled_from(["pearson", "auto", "polychoric", "spearman-normal"]),
    st.sampled_from(["ml", "listwise", "pairwise"]),
    mostly(st.none(), st.sampled_from([["a", "b"], "ab", 3, [1, 1], {"a": 1, "b": 2}])),
)
@example(np.array([[1e308, -1e308], [-1e308, 1e308], [1e308, 1e308]]), "pearson", "ml", None)
@example(pd.DataFrame({"a": [1, 2, 3], "b": [2, 1, 5]}).astype("Int64"), "auto", "ml", None)
@example([[1, 2], [3]], "pearson", "ml", None)
@example([["1", "2"], ["3", "4"], ["5", "5"]], "pearson", "ml", None)
@example([[10**400, 1], [2, 3], [4, 4]], "pearson", "ml", None)
def test_malformed_rows(X: Any, cor: Any, missing: Any, names: Any) -> None:
    answer = outcome(lambda: as_sample(X, cor=cor, missing=missing, names=names))
    assert is_sound(answer), answer


def summary_of(search: Any) -> str:
    """The whole way, to the last word of the answer."""
    return search.result_.summary() + search.result_._repr_html_()


@quick
@given(tables, st.sampled_from(["pearson", "auto", "spearman-normal"]))
@example(pd.DataFrame({"a": [1.0, 2, 4], "b": [2.0, 1, 5]}), "auto")
def test_malformed_rows_all_the_way(X: Any, cor: Any) -> None:
    answer = outcome(lambda: summary_of(um.LGES(cor=cor).fit(X)))
    assert is_sentence(str(answer)) or "latent variable" in str(answer)


RIGHT = {
    "whole numbers that may be missing": pd.DataFrame({"a": [1, 2, 3], "b": [2, 1, 5]}).astype("Int64"),
    "huge but fine": np.array([[1e100, 1.0], [-1e100, 2.0], [3e100, 0.0], [0.0, 4.0]]),
}
WRONG = {
    "ragged": ([[1, 2], [3]], "cannot be read as a table of numbers"),
    "text": (pd.DataFrame({"a": ["x", "y", "z"], "b": [1, 2, 4]}), "'a'"),
    "infinite": (np.array([[1.0, 2.0], [np.inf, 3.0], [2.0, 5.0]]), "infinities"),
    "constant": (pd.DataFrame({"a": [1.0] * 5, "b": range(5)}), "'a'"),
    "no rows": (np.zeros((0, 3)), "0"),
}


@pytest.mark.parametrize("X", RIGHT.values(), ids=RIGHT)
def test_odd_rows_that_are_right_get_an_answer(X: Any) -> None:
    """Else refusing everything would pass for sound."""
    answer = outcome(lambda: as_sample(X))
    assert isinstance(answer, Sample)
    assert is_sound(answer)


@pytest.mark.parametrize(("X", "words"), WRONG.values(), ids=WRONG)
def test_rows_that_are_wrong_get_a_reason_that_names_it(X: Any, words: str) -> None:
    answer = outcome(lambda: as_sample(X))
    assert isinstance(answer, str)
    assert is_sentence(answer)
    assert words in answer


@st.composite
def matrices(draw: st.DrawFn) -> Any:
    """A square matrix, often nearly a covariance."""
    p = draw(st.integers(1, 4))
    rows = np.random.default_rng(draw(st.integers(0, 5))).normal(size=(draw(st.integers(p, 9)), p))
    matrix = rows.T @ rows * 10.0 ** draw(st.sampled_from([0, 0, 0, -6, 6, -200, 154, 290, -320]))
    if draw(st.integers(0, 2)) == 0:
        matrix[draw(st.integers(0, p - 1)), draw(st.integers(0, p - 1))] = draw(st.floats())
    if draw(st.booleans()):
        matrix = (matrix + matrix.T) / 2.0 if np.abs(matrix).max() < 1e300 else matrix
    return matrix if draw(st.booleans()) else pd.DataFrame(matrix, columns=list("abcd"[:p]), index=list("abcd"[:p]))


sizes = st.sampled_from([100, 40.5, 5, math.inf, np.int64(30), np.array(9), np.array([9])])


@quick
@given(
    mostly(
        matrices(),
        st.one_of(
            st.floats(-2, 2).map(lambda r: [[1, r], [r, 1]]),
            st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=2, max_size=2),
            tables,
        ),
    ),
    mostly(sizes, oddities),
    mostly(st.none(), st.one_of(st.lists(st.floats(1e-200, 1e200), max_size=4), oddities)),
    st.booleans(),
)
def test_malformed_matrices(cov: Any, n_samples: Any, sd: Any, repair: bool) -> None:
    answer = outcome(lambda: as_sample(cov=cov, n_samples=n_samples, sd=sd, repair=repair))
    assert is_sound(answer), answer
    if isinstance(answer, Sample):
        outcome(lambda: summary_of(um.LGES().fit(answer)))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(frames(), st.sampled_from(["pearson", "auto", "spearman-normal"]))
def test_the_check_always_has_a_text(X: pd.DataFrame, cor: Any) -> None:
    sample = outcome(lambda: as_sample(X, cor=cor))
    assert is_sound(sample), sample
    if isinstance(sample, Sample):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check = um.check(sample)
            assert check.summary() == str(check)
            assert len(check.table) == len(sample.names)


@quick
@given(
    mostly(
        st.lists(
            st.sampled_from(["a 1", "b .5 1", "c .2 .3* 1", "1. d —", "a,1,,", "1 .5", ".5 1", "SD 1 2"]), max_size=4
        ),
        st.lists(st.text(alphabet=" .,;-—−*011ab", max_size=12), max_size=5),
    ).map("\n".join),
    st.booleans(),
)
def test_malformed_matrix_text(text: str, diagonal: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            matrix = um.read_matrix(text + "\n", diagonal=diagonal)
        except um.UnmeasuredError as error:
            assert is_sentence(str(error))  # noqa: PT017 (an answer is as good as an error here)
        else:
            assert matrix.shape[0] == matrix.shape[1]


@pytest.mark.parametrize("exponents", [(-6, 6, 0, 3), (6, 6, 6, 6), (-6, -6, -6, -6)])
def test_units_from_a_millionth_to_a_million_change_nothing(exponents: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4)) + rng.normal(size=(300, 1))
    scaled = as_sample(rows * 10.0 ** np.array(exponents))
    assert np.allclose(scaled.corr, as_sample(rows).corr, rtol=0, atol=1e-12)
