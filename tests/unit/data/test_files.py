"""Files: rows and matrices in the forms people have them."""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unmeasured as um

FULL = np.array([[1.0, 0.45, -0.12], [0.45, 1.0, 0.3], [-0.12, 0.3, 1.0]])
MATRICES = {
    "lower": "1\n.45 1\n-.12 .3 1",
    "lower, named": "a 1\nb .45 1\nc -.12 .3 1",
    "lower, numbered": "1. 1\n2. .45 1\n3. -.12 .3 1",
    "lower, numbered without a point, named": "1 a 1\n2 b .45 1\n3 c -.12 .3 1",
    "lower, points behind the ones": "1.\n.45 1.\n-.12 .3 1.",
    "dashes and marks": "1. a —\n2. b .45*** —\n3. c −.12 .30† —",
    "header counted": "   1  2  3\na  —\nb .45 —\nc -.12 .30 —",
    "upper": "1 .45 -.12\n1 .3\n1",
    "upper, named above": "a b c\n1 .45 -.12\n1 .3\n1",
    "whole": "1 .45 -.12\n.45 1 .3\n-.12 .3 1",
    "comma separated": ",a,b,c\na,1,.45,-.12\nb,.45,1,.3\nc,-.12,.3,1",
    "comma separated, lower": '"","a","b","c"\n"a",1,,\n"b",.45,1,\n"c",-.12,.3,1',
    "comma separated, upper": ",a,b,c\na,1,.45,-.12\nb,,1,.3\nc,,,1",
    "comma separated, no labels": "a,b,c\n1,.45,-.12\n.45,1,.3\n-.12,.3,1",
    "semicolons and decimal commas": "a;1;0,45;-0,12\nb;0,45;1;0,3\nc;-0,12;0,3;1",
    "tabs": "a\t1\t.45\t-.12\nb\t.45\t1\t.3\nc\t-.12\t.3\t1",
    "means passed over": "a 1\nb .45 1\nc -.12 .3 1\nM 3 4 5",
}


@pytest.mark.parametrize("form", MATRICES)
def test_a_matrix_in_many_forms(form: str, tmp_path: Path) -> None:
    matrix = um.read_matrix(MATRICES[form])
    assert np.array_equal(matrix, FULL)
    names = ["a", "b", "c"] if "a" in MATRICES[form] else ["x1", "x2", "x3"]
    assert list(matrix.columns) == list(matrix.index) == names
    path = tmp_path / "matrix.txt"
    path.write_text(MATRICES[form], encoding="utf-8")
    pd.testing.assert_frame_equal(um.read_matrix(path), matrix)
    pd.testing.assert_frame_equal(um.read_matrix(str(path)), matrix)


@pytest.mark.parametrize(
    "text",
    [
        ".45\n-.12 .3\n",
        "a\nb .45\nc -.12 .3\n",
        ".45 -.12\n.3\n",
    ],
)
def test_a_triangle_without_its_diagonal(text: str) -> None:
    assert np.array_equal(um.read_matrix(text, diagonal=False), FULL)


def test_entries_that_count_up_are_entries() -> None:
    assert um.read_matrix("1\n2 9\n3 1 16").to_numpy().tolist() == [[1, 2, 3], [2, 9, 1], [3, 1, 16]]


def test_deviations_make_covariances_and_names_may_be_given() -> None:
    matrix = um.read_matrix("1\n.45 1\n-.12 .3 1\nSD 2 3 10", names=["p", "q", "r"])
    assert np.allclose(matrix, FULL * np.outer([2, 3, 10], [2, 3, 10]))
    assert list(matrix.columns) == ["p", "q", "r"]


def test_means_and_deviations_may_stand_in_columns_and_notes_below() -> None:
    table = """
    Variable        M    SD    1      2      3
    1. Stress      3.2   2.0  (.85)
    2. Conflict    2.8   3.0  .45**   —
    3. Support     4.1  10    −.12   .30ns   —
    N = 202
    Note. Reliabilities are on the diagonal.
    *p < .05. **p < .01.
    """
    for text in (table, re.sub(r"(?<=\S)[ ]+(?=\S)", "\t", table).replace(".\t", ". ")):
        matrix = um.read_matrix(text)
        assert list(matrix.columns) == ["Stress", "Conflict", "Support"]
        assert np.allclose(matrix, FULL * np.outer([2, 3, 10], [2, 3, 10]))


def test_variables_may_be_called_n_and_note() -> None:
    assert list(um.read_matrix("N 1\nNotes .4 1\nE .2 .3 1").columns) == ["N", "Notes", "E"]


def test_names_of_several_words() -> None:
    matrix = um.read_matrix("1. Job stress —\n2. Role conflict .45 —\n3. Age −.12 .30 —")
    assert list(matrix.columns) == ["Job stress", "Role conflict", "Age"]


def test_a_published_table_can_be_fitted() -> None:
    data = um.datasets.load("holzinger_swineford")
    lines = [
        " ".join([x, *(f"{r:.10f}" for r in row[: i + 1])]) for i, (x, row) in enumerate(zip(data.names, data.corr))
    ]
    matrix = um.read_matrix("\n".join(lines))
    text = data.models["holzinger_swineford_three_factor"].text
    assert um.fit(text, cov=matrix, n_samples=301).chi2 == pytest.approx(85.306, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n.45 1 2\n", "have 1, 3 values: neither a whole matrix nor a triangle"),
        ("1 .45 b\n.45 1 .3\n-.12 .3 1\n", "Line 1 of the matrix: 'b' is not a number"),
        ("a b\n1 .45 -.12\n.45 1 .3\n-.12 .3 1\n", "has 3 variables, but the names found are 'a', 'b'"),
        ("a 1\na .4 1\n", "Names repeat: 'a'"),
        ("a 1\nb .4 1\nSD 1\n", r"one standard deviation per variable \(2\)"),
        ("\n \n", "it is empty"),
    ],
)
def test_what_is_no_matrix(text: str, message: str) -> None:
    with pytest.raises(um.DataError, match=message):
        um.read_matrix(text)


# Rows -------------------------------------------------------------------------------------------------------

ROWS = pd.DataFrame({"a": [1.5, 2.0, np.nan], "b": [3, 4, 5], "c": [0.5, 0.25, 1e-3]})
TEXTS = {
    "rows.csv": "a,b,c\n1.5,3,.5\n2,4,.25\nNA,5,.001\n",
    "rows.tsv": "a\tb\tc\n1.5\t3\t.5\n2\t4\t.25\n.\t5\t.001\n",
    "blanks.txt": "a b c\n1.5 3 .5\n2 4 .25\nNaN 5 1e-3\n",
    "european.csv": "a;b;c\n1,5;3;0,5\n2;4;0,25\n;5;0,001\n",
    "points.csv": "a;b;c\n1.5;3;0.5\n2;4;0.25\n;5;0.001\n",
    "from_r.csv": '"","a","b","c"\n"1",1.5,3,.5\n"2",2,4,.25\n"3",NA,5,.001\n',
    "marked.csv": "\ufeffa,b,c\r\n1.5,3,.5\r\n2,4,.25\r\n,5,.001\r\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_rows_from_text(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(TEXTS[name], encoding="utf-8", newline="")
    frame = um.read(path)
    pd.testing.assert_frame_equal(frame.reset_index(drop=True), ROWS)
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    pd.testing.assert_frame_equal(um.read(str(packed)), frame)
    assert list(um.read(path, columns=["c", "a"]).columns) == ["c", "a"]


@pytest.mark.parametrize("ending", ["sav", "zsav", "dta"])
def test_rows_from_spss_and_stata(ending: str, tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / f"rows.{ending}"
    labels = {"a": "First item", "b": "Second item"}
    if ending == "dta":
        pyreadstat.write_dta(ROWS, str(path), column_labels=labels)
    else:
        pyreadstat.write_sav(ROWS, str(path), column_labels=labels, compress=ending == "zsav")
    frame = um.read(path)
    pd.testing.assert_frame_equal(frame, ROWS, check_dtype=False)
    assert frame.attrs["labels"] == labels


def test_values_declared_missing_are_holes(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / "rows.sav"
    declared = {"a": [{"lo": 9, "hi": 99}]}
    pyreadstat.write_sav(pd.DataFrame({"a": [1.0, 2, 9, 99], "b": [1.0, 9, 3, 4]}), str(path), missing_ranges=declared)
    frame = um.read(path)
    assert frame["a"].isna().tolist() == [False, False, True, True]
    assert not frame["b"].isna().any()


def test_without_pyreadstat_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.sav"
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(um.UnmeasuredError, match=r"needs the package pyreadstat: pip install 'unmeasured\[io\]'"):
        um.read(path)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(um.DataError, match=r"There is no file 'nowhere\.csv' to read: it does not exist"):
        um.read("nowhere.csv")
    with pytest.raises(um.DataError, match="it is a folder"):
        um.read_matrix(tmp_path)
    cases = {
        "rows.ods": (b"", "Files of type '.ods' are not read here"),
        "rows.xlsx": (b"", "'rows.xlsx' could not be read as a .xlsx file"),
        "rows.parquet": (b"", "'rows.parquet' could not be read as a .parquet file"),
        "empty.csv": (b"", "'empty.csv' could not be read as a table"),
        "ragged.csv": (b"a,b\n1,2\n1,2,3\n", "'ragged.csv' could not be read as a table"),
        "latin.csv": ("größe,b\n1,2\n".encode("latin-1"), "is not text in utf-8. Name its encoding"),
        "broken.csv.gz": (b"no archive", "'broken.csv.gz' could not be read"),
        "broken.sav": (b"no such file", "could not be read as a .sav file"),
    }
    for name, (content, message) in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(um.DataError, match=message):
            um.read(path)
    assert list(um.read(tmp_path / "latin.csv", encoding="latin-1").columns) == ["größe", "b"]
    with pytest.raises(um.DataError, match="There is no encoding 'klingon'"):
        um.read(tmp_path / "latin.csv", encoding="klingon")
    with pytest.raises(um.DataError, match=r"There is no column 'grösse' in 'latin\.csv'; did you mean 'größe'"):
        um.read(tmp_path / "latin.csv", encoding="latin-1", columns=["grösse"])


APA = """Table 2
Means, Standard Deviations, and Correlations Among Study Variables
Variable        M     SD    α    1     2     3
1. Speed       3.2   0.8  .87   —
2. Error work  2.1   0.9  .80  .45**  —
3. Memory      3.9   1.1  .79  −.12  .30*  —
Note. N = 202. Means, deviations and reliabilities are of scales.
* p < .05. ** p < .01.
"""
PASTED = {
    "title, statistics and alpha before": (APA, [0.8, 0.9, 1.1]),
    "alphas in brackets on the diagonal": (
        "Correlations of three tests\n   1 2 3\n1. Speed (.87)\n2. Error work .45** (.80)\n3. Memory -.12 .30* (.79)\n",
        None,
    ),
    "alphas on the diagonal, as a note says": (
        "1. Speed .87\n2. Error work .45** .80\n3. Memory -.12 .30* .79\nNote. Cronbach's alpha on the diagonal.\n",
        None,
    ),
    "tabs, blank diagonal, statistics below": (
        "Variable\t1\t2\t3\nSpeed\t\t\t\nError "
        "work\t.45**\t\t\nMemory\t-.12\t.30*\t\nM\t3.2\t2.1\t3.9\nSD\t0.8\t0.9\t1.1\n",
        [0.8, 0.9, 1.1],
    ),
    "blank diagonal, lower": ("1. Speed\n2. Error work .45**\n3. Memory -.12 .30*\n", None),
    "blank diagonal, upper": ("Speed,,.45,-.12\nError work,,,.30\nMemory,,,\n", None),
    "a title above named columns": (
        "Correlations\n,Speed,Error work,Memory\nSpeed,1,.45,-.12\nError work,.45,1,.3\nMemory,-.12,.3,1\n",
        None,
    ),
}


@pytest.mark.parametrize("name", PASTED)
def test_tables_as_articles_print_them(name: str) -> None:
    text, sd = PASTED[name]
    matrix = um.read_matrix(text)
    assert list(matrix.columns) == ["Speed", "Error work", "Memory"]
    expected = np.array([[1, 0.45, -0.12], [0.45, 1, 0.3], [-0.12, 0.3, 1]])
    np.testing.assert_allclose(matrix, expected if sd is None else expected * np.outer(sd, sd))


def test_variances_below_one_are_not_taken_for_reliabilities() -> None:
    matrix = um.read_matrix("a .5\nb .2 .6\n")
    assert matrix.loc["a", "a"] == 0.5


@pytest.mark.parametrize("ending", ["xlsx", "parquet"])
def test_excel_and_parquet(ending: str, tmp_path: Path) -> None:
    pytest.importorskip("openpyxl" if ending == "xlsx" else "pyarrow")
    rows = pd.DataFrame({"q1": [1, 2, None, 4], "q2": [1.5, 2.5, 3.5, 4.5], "who": ["a", "b", "c", "d"]})
    path = tmp_path / f"rows.{ending}"
    getattr(rows, {"xlsx": "to_excel", "parquet": "to_parquet"}[ending])(path, index=False)
    pd.testing.assert_frame_equal(um.read(path), rows, check_dtype=False)
    assert list(um.read(path, columns=["q2"]).columns) == ["q2"]


def test_sheets_of_a_workbook(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "rows.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame().to_excel(book, sheet_name="empty")
        pd.DataFrame({"a": [1, 2], "b": [3, 4]}).to_excel(book, sheet_name="data", index=False)
        pd.DataFrame([[1, 2.5], [3, 4.5]]).to_excel(book, sheet_name="bare", index=False, header=False)
        pd.DataFrame([["a", "a"], [3, 4]]).to_excel(book, sheet_name="twice", index=False, header=False)
    assert um.read(path, sheet="data").to_dict("list") == {"a": [1, 2], "b": [3, 4]}
    assert list(um.read(path, sheet="bare", header=False).columns) == ["x1", "x2"]
    for sheet, message in {
        0: "Sheet 'empty' of 'rows.xlsx' is empty. There is something on 'data', 'bare', 'twice': name the sheet",
        "none": "has no sheet 'none'; it has 'empty', 'data'",
        "bare": "holds numbers",
        "twice": "several columns called 'a'",
    }.items():
        with pytest.raises(um.DataError, match=message):
            um.read(path, sheet=sheet)
