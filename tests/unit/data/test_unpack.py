"""Small files that unpack to much are refused before they fill the memory; others are read as ever."""

from __future__ import annotations

import gzip
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unmeasured as um

SHEET = "xl/worksheets/sheet1.xml"
OPENING = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
CLOSING = "</sheetData></worksheet>"


def rows(n: int = 50) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(0).integers(1, 6, size=(n, 4)), columns=list("abcd"))


def packed(path: Path, content: bytes, times: int) -> Path:
    with gzip.open(path, "wb") as file:
        file.write(b"a,b,c\n")
        for _ in range(times):
            file.write(content)
    return path


def workbook(path: Path, sheet: str) -> Path:
    """A workbook whose first sheet is this text."""
    plain = path.with_name("plain.xlsx")
    rows(3).to_excel(plain, index=False)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in source.infolist():
            archive.writestr(entry.filename, sheet if entry.filename == SHEET else source.read(entry.filename))
    return path


def far_cells(n: int) -> str:
    cells = "".join(f'<row r="{r}"><c r="XFD{r}"><v>1</v></c></row>' for r in range(1, n))
    return OPENING + cells + CLOSING


@pytest.mark.parametrize("content", [b"1,2,3\n" * 1000, b"\0" * 6000, b"1," * 3000, b"\n" * 6000])
def test_packed_text_is_refused_beyond_the_limit(tmp_path, content):
    path = packed(tmp_path / "rows.csv.gz", content, 200)  # 1.2 MB
    with pytest.raises(um.DataError, match=r"'rows.csv.gz' \(0.1 MB\) unpacks to .*max_unpacked=1 doubles it"):
        um.as_sample(um.read(path, max_unpacked=0.5))


def test_packed_text_is_read_in_blocks_if_it_is_large_unpacked(tmp_path):
    # 42 MB in 0.1 MB: read at once, it would take five times as much.
    path = packed(tmp_path / "rows.csv.gz", b"1,2,3\n4,5,6\n" * 10_000, 350)
    table = um.read(path)
    assert isinstance(table, um.Table)
    with pytest.raises(um.DataError, match="more than the limit of 20 MB"):
        list(um.read(path, max_unpacked=20).blocks())


def test_packed_text_within_the_limit_is_read(tmp_path):
    path = tmp_path / "rows.csv.gz"
    rows().to_csv(path, index=False)
    for limit in (1, None):
        assert um.read(path, max_unpacked=limit).equals(rows())


def test_packed_matrices_are_refused_beyond_the_limit(tmp_path):
    with pytest.raises(um.DataError, match=r"'r\.csv\.gz' .* max_unpacked=1 doubles"):
        um.read_matrix(packed(tmp_path / "r.csv.gz", b"1\n" * 1000, 500), max_unpacked=0.5)


def test_workbooks_are_refused_by_the_sizes_of_their_parts(tmp_path):
    path = workbook(tmp_path / "book.xlsx", OPENING + "<row><c><v>1</v></c></row>" * 40_000 + CLOSING)
    with pytest.raises(um.DataError, match=r"'book.xlsx' \(0.1 MB\) unpacks to 1.1 MB, more than the limit of 0.5 MB"):
        um.read(path, max_unpacked=0.5)
    assert len(um.read(path, header=False)) == 40_000


def test_workbooks_are_refused_by_their_cells(tmp_path):
    # A cell at the end of each row: 16,384 columns.
    path = workbook(tmp_path / "far.xlsx", far_cells(100))
    with pytest.raises(um.DataError, match=r"has a sheet whose cells take more than the limit of 5\.0 MB"):
        um.read(path, max_unpacked=5)
    below = OPENING + '<row r="4000000000"><c><v>1</v></c></row>' + CLOSING
    with pytest.raises(um.DataError, match="has a row below number 1,048,576"):
        um.read(workbook(tmp_path / "deep.xlsx", below))


def test_workbooks_that_declare_less_than_they_hold_are_refused(tmp_path):
    path = workbook(tmp_path / "lying.xlsx", OPENING + "<row><c><v>1</v></c></row>" * 40_000 + CLOSING)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo(SHEET)
    at = content.rindex(SHEET.encode()) - 46 + 24  # the size unpacked, in the central directory
    assert int.from_bytes(content[at : at + 4], "little") == entry.file_size
    content[at : at + 4] = (1000).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(um.DataError, match=r"could not be read as a \.xlsx file"):
        um.read(path, max_unpacked=0.5)


def test_sheets_are_read_as_before(tmp_path):
    path = tmp_path / "book.xlsx"
    frame = pd.DataFrame({"a": [1, 2, None, 4], "b": [1.5, 2.25, 3.0, 4.0], "c": ["x", "NA", "y", "z"]})
    with pd.ExcelWriter(path) as writer:
        pd.DataFrame().to_excel(writer, sheet_name="empty")
        frame.to_excel(writer, sheet_name="rows", index=False, startrow=2)
    read = um.read(path, sheet="rows")
    assert read["a"].tolist()[:2] == [1, 2]
    assert np.isnan(read["a"][2])
    assert read["b"].tolist() == frame["b"].tolist()
    assert read["c"].isna().tolist() == [False, True, False, False]
    with pytest.raises(um.DataError, match=r"Sheet 'empty' of 'book\.xlsx' is empty\. There is something on 'rows'"):
        um.read(path)


def test_parquet_is_refused_by_what_comes_out_of_it(tmp_path):
    path = tmp_path / "rows.parquet"
    pd.DataFrame({name: np.ones(100_000) for name in "ab"}).to_parquet(path)
    assert path.stat().st_size < 10_000
    with pytest.raises(um.DataError, match=r"'rows\.parquet' .* unpacks to .*more than the limit of 0\.5 MB"):
        um.read(path, max_unpacked=0.5)
    assert um.read(path).shape == (100_000, 2)
    long = tmp_path / "text.parquet"
    pd.DataFrame({"a": ["x" * 10_000] * 9000}).to_parquet(long)
    with pytest.raises(um.DataError, match="unpacks to"):
        um.read(long, max_unpacked=20)


def test_parquet_with_few_bytes_and_many_rows_stays_on_disk(tmp_path):
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"a": np.ones(21_000_000, dtype=np.int8)}).to_parquet(path)
    assert path.stat().st_size < 100_000
    assert isinstance(um.read(path), um.Table)


def test_parquet_keeps_its_index_and_categories(tmp_path):
    path = tmp_path / "rows.parquet"
    kept = rows(10_000).assign(a=pd.Categorical(["x", "y"] * 5000, ordered=True))
    kept.index = pd.Index(range(10, 10_010), name="id")
    kept.to_parquet(path)
    pd.testing.assert_frame_equal(um.read(path), pd.read_parquet(path))


def test_spss_files_are_refused_by_their_rows(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / "rows.zsav"
    pyreadstat.write_sav(pd.DataFrame({name: np.ones(50_000) for name in "abc"}), str(path), compress=True)
    assert path.stat().st_size < 20_000
    with pytest.raises(um.DataError, match=r"'rows.zsav' .* unpacks to 1.2 MB, more than the limit of 0.5 MB"):
        um.read(path, max_unpacked=0.5)
    assert um.read(path).shape == (50_000, 3)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), "1", True])
@pytest.mark.parametrize("reader", [um.read, um.read_matrix])
def test_limits_that_are_none_are_refused(tmp_path, reader, limit):
    path = tmp_path / "rows.csv"
    rows().to_csv(path, index=False)
    with pytest.raises(um.UnmeasuredError, match="max_unpacked must be a positive number of megabytes"):
        reader(path, max_unpacked=limit)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_the_memory_that_a_refusal_takes_is_bounded(tmp_path):
    # By default, in a process of its own: 600 MB in 0.6 MB, which cannot be read in blocks.
    with gzip.open(tmp_path / "rows.csv.gz", "wb", 9) as file:
        for _ in range(600):
            file.write(b"\0" * 1_000_000)
    code = (
        "import sys, unmeasured as um\n"
        "try: um.read(sys.argv[1])\n"
        "except um.DataError as error: print(error)\n"
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "rows.csv.gz")], capture_output=True, text=True, check=True
    )
    sentence, peak = done.stdout.splitlines()
    assert "more than the limit of 500 MB" in sentence
    assert int(peak) * 1024 < 400e6
