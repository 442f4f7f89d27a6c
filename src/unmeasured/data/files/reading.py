"""Files: rows from CSV, TSV, SPSS, Stata, Excel and Parquet, matrices from CSV or from text as articles print them.

Both functions return a data frame, ready for ``fit(X)`` or ``fit_cov(cov, n)``. What cannot be read is refused with
the line and the reason; nothing is guessed but the separator.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import warnings
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import pandas as pd

from unmeasured.arrays import Floats
from unmeasured.constraints import FLAG, Rule, are_names, check, is_whole
from unmeasured.data.files.pasted import plain_lines
from unmeasured.data.files.unpack import (
    MOST_UNPACKED,
    VALUE,
    check_archive,
    checked_limit,
    opened,
    refuse_declared,
    refuse_more,
    unpacks_to,
)
from unmeasured.data.matrices import with_deviations
from unmeasured.data.rows import checked_names
from unmeasured.data.tables import LARGE, LARGE_TEXT, Table, folder_table, parquet_table
from unmeasured.errors import DataError, UnmeasuredError, listing, nearest
from unmeasured.files import unescaped

_TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat")
_STATISTICS = (".sav", ".zsav", ".por", ".dta")
_EXCEL, _PARQUET = (".xlsx", ".xlsm"), (".parquet",)
_KNOWN = (*_TEXT, *_STATISTICS, *_EXCEL, *_PARQUET)
_RULES = {
    "columns": Rule(
        "a list of names",
        lambda value: isinstance(value, Collection) and not isinstance(value, str) and are_names(list(value)),
    ).or_none(),
    "encoding": Rule("the name of one, such as 'latin-1'", lambda value: isinstance(value, str)),
    "header": FLAG.or_none(),
    "sheet": Rule("the name of a sheet, or its number from 0", lambda value: isinstance(value, str) or is_whole(value)),
    "blocks": FLAG.or_none(),
}
# Besides what pandas takes as missing ("NA", "", "NaN", ...): the dot of SPSS, SAS and Stata.
_HOLES = ["."]
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
# Marks of significance that articles put behind a correlation.
_MARKS = re.compile(r"[*†‡§]+$|(?<=\d)(ns|n\.s\.|[a-cᵃᵇᶜᵈ¹²³+#])$")
# Lines around a table that are no part of it: "N = 202", "Note. ...", "*p < .05".
_AROUND = re.compile(
    r"\s*(n\s*=|notes?[.:]|[*†+]+\s*p\s*[<≤=]|p\s*<|table\s+\w+[.:]?\s*$|[^\t]*\w+ \w+ [^\t]*\w+ [^\t]*[a-z)]\.\s*$"
    r"|[a-dᵃᵇᶜᵈ¹²³][.)]? \w+ [^\t]*\.\s*$)",
    re.IGNORECASE,
)
# A note that says that reliabilities stand on the diagonal.
_RELIABILITIES = re.compile(
    r"(alpha|reliabilit|omega|α)[^.]*\bdiagonal|\bdiagonal[^.]*(alpha|reliabilit|omega|α)", re.IGNORECASE
)
_DASHES = {"-", "–", "—", "−", "--"}
_DEVIATIONS = {"sd", "s.d.", "sds", "std", "std.", "std.dev.", "standard deviation", "standard deviations"}
# Rows and columns of a table that are no correlations.
_MEANS = {"m", "mean", "means", "α", "alpha", "cronbach's α", "cronbach's alpha", "ω", "omega", "ave", "cr"}
_MEANS |= {"cronbach α", "cronbach alpha", "coefficient alpha", "mcdonald's ω", "mcdonald's omega", "reliability"}
_MEANS |= {"skew", "skewness", "kurtosis", "range", "min", "max", "minimum", "maximum", "mdn", "median"}
# What stands above the names of rows.
_CORNER = re.compile(r"(variable|measure|scale|item|test|construct|factor|name)s?", re.IGNORECASE)


@overload
def read(
    path: str | Path, *, columns: Sequence[str] | None = ..., separator: str | None = ..., encoding: str = ...,
    header: bool | None = ..., sheet: str | int = ..., blocks: Literal[False], max_unpacked: float | None = ...,
) -> pd.DataFrame: ...  # fmt: skip


@overload
def read(
    path: str | Path, *, columns: Sequence[str] | None = ..., separator: str | None = ..., encoding: str = ...,
    header: bool | None = ..., sheet: str | int = ..., blocks: bool | None = ..., max_unpacked: float | None = ...,
) -> pd.DataFrame | Table: ...  # fmt: skip


def read(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
    header: bool | None = None,
    sheet: str | int = 0,
    blocks: bool | None = None,
    max_unpacked: float | None = MOST_UNPACKED,
) -> pd.DataFrame | Table:
    """Read rows of samples from a file: CSV, TSV, text (also ``.gz``), SPSS, Stata, Excel (``.xlsx``) or Parquet.

    A folder of Parquet files, and a large file of Parquet or text, stay on disk: the :class:`Table` that comes back
    goes wherever rows go, and is read once, in blocks.

    Parameters
    ----------
    columns
        Which columns to keep; by default all.
    separator
        Between the values of a text file; by default what the first line has: tabs, or else semicolons, commas, blanks.
        With semicolons a comma may be the decimal point.
    encoding
        Of a text file.
    header
        Whether the first line of a text file or sheet holds the names of the columns. Left out: it does, and a first
        line of numbers is refused. False: columns are called x1, x2, ...
    sheet
        Of an Excel file: its name, or its number from 0.
    blocks
        True: a :class:`Table`, for Parquet and text files of any size. False: a data frame, however large. Left out: a
        table from 20 million values (Parquet) or 40 MB (text).
    max_unpacked
        Megabytes that a compressed file (``.gz``, Excel, Parquet, SPSS) may unpack to, a safeguard against small files
        that fill the memory; None: no limit.

    Returns
    -------
    DataFrame or Table
        One row per sample, missing values as NaN, also those declared missing in an SPSS or Stata file. The labels of
        its variables are in ``frame.attrs["labels"]``.

    Raises
    ------
    DataError
        If there is no such file, it cannot be read, names repeat, a column of values has no name, or a column asked for
        is not there.
    """
    check(_RULES, locals())
    most = checked_limit(max_unpacked)
    if isinstance(path, str | Path) and Path(path).is_dir():
        table = folder_table(Path(path), most)
        table = table if columns is None else table.select(columns)
        return table.read() if blocks is False else table
    path = _existing(path)
    _check_separator(separator)
    ending = _ending(path)
    for option, is_asked, kinds, files in (
        ("separator", separator is not None, _TEXT, "text"),
        ("encoding", encoding != "utf-8", _TEXT, "text"),
        ("header", header is not None, (*_TEXT, *_EXCEL), "text and Excel"),
        ("sheet", sheet != 0, _EXCEL, "Excel"),
    ):
        if is_asked and ending in _KNOWN and ending not in kinds:
            raise DataError(f"{option} is for files of {files}; {path.name!r} is none of these. Leave {option} out.")
    if blocks is not False and ending in (*_TEXT, *_PARQUET):
        found = _table(path, ending, separator, encoding, header, most, is_asked=blocks is True)
        if found is not None:
            return found if columns is None else found.select(columns)
        if blocks:
            # Read whole, it may say what is wrong with it.
            read(path, separator=separator, encoding=encoding, header=header, blocks=False, max_unpacked=max_unpacked)
            raise DataError(
                f"{path.name!r} cannot be read in blocks: a column has no name, or a row has more values than there "
                "are names. Leave blocks= out."
            )
    elif blocks:
        raise DataError(f"Only Parquet and text files are read in blocks; {path.name!r} is neither. Leave blocks= out.")
    if ending in _STATISTICS:
        frame = _read_statistics(path, ending, most)
    elif ending in _TEXT:
        frame = _read_text(path, separator, encoding, header, most)
    elif ending in _EXCEL:
        frame = _read_excel(path, sheet, header, most)
    elif ending in _PARQUET:
        frame = _read_parquet(path, most)
    else:
        raise DataError(
            f"Files of type {ending or 'without ending'!r} are not read here ({path.name!r}); known are "
            f"{listing(_KNOWN, limit=20)}. Other files: read them with pandas "
            f"and pass the data frame."
        )
    if columns is None:
        return frame
    frame.columns = pd.Index([str(c) for c in frame.columns])
    known = list(frame.columns)
    for column in columns:
        if column not in known:
            hint = nearest(column, known) or "."
            raise DataError(f"There is no column {column!r} in {path.name!r}{hint} It has {listing(known)}.")
    return frame[list(columns)]


def read_matrix(
    source: str | Path,
    *,
    names: Sequence[str] | None = None,
    diagonal: bool = True,
    separator: str | None = None,
    encoding: str = "utf-8",
    max_unpacked: float | None = MOST_UNPACKED,
) -> pd.DataFrame:
    """Read a covariance or correlation matrix from a file, or from text pasted from an article.

    The matrix may be complete, or its lower or upper triangle; the diagonal may be blank. Names may be above the
    columns, at the left, or both; otherwise give them by ``names=``. Row numbers (``1.``), marks of significance
    (``.45**``), dashes or reliabilities in brackets on the diagonal, confidence intervals in square brackets,
    typographic minus signs, Markdown tables and the output of SPSS and R are understood. A row called SD, or a column
    SD or M (SD) beside the columns numbered 1, 2, ..., turns correlations into covariances. Means, ranges,
    reliabilities (a column ``α``, or the diagonal if a note says so), a title, ``N =`` and notes are ignored.

    Parameters
    ----------
    source
        The path of a text file; or the text itself, recognised by its line breaks.
    names
        Names of the variables, where the text has none, or others than it has.
    diagonal
        False: the diagonal is left out, and with it the first or the last row, which would be empty.
    separator
        Between the entries; by default tabs, semicolons or commas where there are any, else blanks.
    encoding
        Of a file.
    max_unpacked
        Megabytes that a ``.gz`` may unpack to; None: no limit.

    Returns
    -------
    DataFrame
        Square, with names on both sides; pass it as ``cov=`` with the number of samples.

    Examples
    --------
    >>> table = '''
    ... 1. Speed     —
    ... 2. Error    .45**   —
    ... 3. Memory  −.12   .30*  —
    ... '''
    >>> read_matrix(table)
            Speed  Error  Memory
    Speed    1.00   0.45   -0.12
    Error    0.45   1.00    0.30
    Memory  -0.12   0.30    1.00
    """
    most = checked_limit(max_unpacked)
    if isinstance(source, Path) or "\n" not in str(source):
        path = _existing(source)
        source = _decoded(path, encoding, most)
    _check_separator(separator)
    every = plain_lines(str(source))
    lines = _without_title([line for line in every if not _AROUND.match(line)], separator)
    if not lines:
        raise DataError("There is no matrix in this text: it is empty.")
    printed, matrix = _read_lines(lines, separator if separator is not None else _separator(lines[-1]), diagonal)
    if _RELIABILITIES.search(" ".join(every)) and (np.diag(matrix) < 1.0).any() and (np.abs(matrix) <= 1.0).all():
        np.fill_diagonal(matrix, 1.0)
    if names is None:
        matrix = printed.sorted(matrix)
    _refuse_two_samples(matrix)
    known = checked_names(names if names is not None else printed.names(len(matrix)), len(matrix))
    if printed.deviations is not None:
        matrix = with_deviations(matrix, printed.deviations, known)
    return pd.DataFrame(matrix, index=list(known), columns=list(known))


def _refuse_two_samples(matrix: Floats) -> None:
    """Refuse correlations of one sample below the diagonal and of another above it."""
    below = np.tril_indices(len(matrix), -1)
    if not np.isfinite(matrix).all():
        return
    differ = np.abs(matrix - matrix.T)[below] > 1e-6
    if (np.diag(matrix) == 1.0).all() and differ.sum() > 1 and 2 * differ.sum() > len(differ):
        raise DataError(
            f"The correlations above the diagonal differ from those below it in {differ.sum()} of {len(differ)} pairs. "
            "If the table shows two samples, keep one of the two triangles."
        )


def _read_lines(lines: list[str], separator: str | None, diagonal: bool) -> tuple[_Printed, Floats]:
    """The printed matrix by its separator; where names end in numbers, by the wide gap behind them."""
    try:
        printed = _Printed.of(lines, separator)
        return printed, _whole(printed.rows, diagonal)
    except DataError:
        if separator is not None or len(lines) < 3 or not all(re.search(r"\S\s{2,}\S", line) for line in lines[1:]):
            raise
        with contextlib.suppress(DataError):
            apart = [re.split(r"(?<=\S)\s{2,}(?=\S)", line, maxsplit=1) for line in lines]
            printed = _Printed.of(["\t".join([first, *rest[0].split()]) for first, *rest in apart if rest], "\t")
            return printed, _whole(printed.rows, diagonal)
        raise


def _existing(path: str | Path) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"A file is given by its path; got {path!r}.")
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"There is no file {str(path)!r} to read: it {what}.")
    return path


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _decoded(path: Path, encoding: str, most: float) -> str:
    if path.suffix == ".gz":
        refuse_more(path, unpacks_to(path, most + 1.0), most)
    try:
        with opened(path, most) as file:
            content = file.read()
        text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError:
        raise DataError(
            f"{path.name!r} is not text in {encoding}. Name its encoding, such as encoding='latin-1' for older files."
        ) from None
    except LookupError:
        raise DataError(f"There is no encoding {encoding!r}.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path.name!r} could not be read: {error}.") from None
    except TypeError:
        raise DataError(f"encoding is the name of one, such as 'latin-1'; got {encoding!r}.") from None
    if "\0" in text:
        raise DataError(
            f"{path.name!r} holds NUL characters, so it is no text in {encoding}: another kind of file, or another "
            "encoding, such as encoding='utf-16'."
        )
    return text


def _check_separator(separator: Any) -> None:
    if separator is not None and not (isinstance(separator, str) and separator):
        raise DataError(f"separator is what stands between values, such as ','; got {separator!r}.")


def _separator(line: str) -> str | None:
    """The likeliest separator of a line; None: blanks."""
    for mark in ("\t", ";", ","):
        if mark in line:
            return mark
    return None


def _read_text(path: Path, separator: str | None, encoding: str, header: bool | None, most: float) -> pd.DataFrame:
    text = _decoded(path, encoding, most)
    first = next((line for line in text.splitlines() if line.strip()), "")
    options = _text_options(text, first, separator)
    decimal = _decimal(text, options["sep"])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # The first line as it stands: pandas renames what repeats in a header without a word.
            top = pd.read_csv(StringIO(text), header=None, nrows=1, dtype=str, keep_default_na=False, **options)
            above = [str(cell).strip() for cell in top.iloc[0]]
            named = _has_header(above, path) if header is None else header
            options |= {"header": 0 if named else None, "decimal": decimal, "na_values": _HOLES}
            frame: pd.DataFrame = pd.read_csv(StringIO(text), **options)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, Warning, IndexError) as error:
        raise DataError(f"{path.name!r} could not be read as a table: {_sentence(error)}") from None
    except ValueError as error:
        raise (
            error
            if isinstance(error, DataError)
            else DataError(f"{path.name!r} could not be read as a table: {_sentence(error)}")
        ) from None
    if not named:
        frame.columns = pd.Index([f"x{i + 1}" for i in range(frame.shape[1])])
        return frame
    return _with_names(frame, above, path)


def _table(
    path: Path, ending: str, separator: str | None, encoding: str, header: bool | None, most: float, *, is_asked: bool
) -> Table | None:
    """A file as a table that is read in blocks; None where it is small, or its first column has no name."""
    if ending in _PARQUET:
        table = parquet_table([path], most)
        return table if is_asked or table.n_values > LARGE else None
    if not is_asked and unpacks_to(path, LARGE_TEXT) < LARGE_TEXT:
        return None
    text, is_whole = _beginning(path, encoding)
    layout = _Layout.of(text, separator, header, path)
    if layout is None or "" in layout.names or len(layout.names) != len(set(layout.names)):
        return None  # what reads it whole knows of row names, and says what is wrong
    rows = text.splitlines()[1:] if is_whole else text.splitlines()[1:-1]
    if any(len(re.split(layout.options["sep"], row.strip())) > len(layout.names) for row in rows[:100]):
        return None
    known = tuple(layout.names)
    options = {**layout.options, "header": None, "skiprows": 1 if layout.is_named else 0, "encoding": encoding}
    return Table((path,), "text", known, known, options, max_unpacked=most)


# As much of a text file is looked at before it is read in blocks.
_BEGINNING = 1_000_000


def _beginning(path: Path, encoding: str) -> tuple[str, bool]:
    """The first million characters of a text file, and whether that is all of it."""
    try:
        with opened(path, math.inf) as content, TextIOWrapper(content, encoding=encoding) as file:
            text = str(file.read(_BEGINNING))
    except (UnicodeDecodeError, LookupError, OSError, EOFError, zlib.error, TypeError):
        return "", True  # what reads it whole says what is wrong
    return text.removeprefix("\ufeff"), len(text) < _BEGINNING


@dataclass(frozen=True)
class _Layout:
    """How a text file is to be read: what is between values, and the names of its first line."""

    options: dict[str, Any]
    names: list[str]
    is_named: bool

    @classmethod
    def of(cls, text: str, separator: str | None, header: bool | None, path: Path) -> _Layout | None:
        """From its first lines; None where they are no table."""
        first = next((line for line in text.splitlines() if line.strip()), "")
        if not first or "\0" in text or text.splitlines()[0] != first:
            return None
        options = _text_options(text, first, separator)
        top = pd.read_csv(StringIO(first), header=None, dtype=str, keep_default_na=False, **options)
        above = [str(cell).strip() for cell in top.iloc[0]]
        is_named = _has_header(above, path) if header is None else header
        names = [unescaped(cell) for cell in above] if is_named else [f"x{i + 1}" for i in range(len(above))]
        return cls({**options, "decimal": _decimal(text, options["sep"]), "na_values": _HOLES}, names, is_named)


def _text_options(text: str, first: str, separator: str | None) -> dict[str, Any]:
    mark = separator if separator is not None else _separator(first) or (r"\s+" if first.split()[1:] else ",")
    return {"sep": mark, "skipinitialspace": True}


def _decimal(text: str, mark: str) -> str:
    return "," if mark == ";" and re.search(r"\d,\d", text) and not re.search(r"\d\.\d", text) else "."


def _sentence(error: Exception) -> str:
    return f"{str(error).strip().rstrip('.') or type(error).__name__}."


def _has_header(above: list[str], path: Path) -> bool:
    """Whether a first line holds names; numbers in their place are refused rather than guessed at."""
    numbers = [cell for cell in above if _number(cell) is not None]
    if len(numbers) <= len(above) / 2:
        return True
    values = np.array([float(cell.replace(",", ".")) for cell in numbers if _NUMBER.fullmatch(cell)])
    # Items called 1, 2, 3, ..., or years, go up by one.
    if len(values) == len(numbers) > 1 and (np.diff(values) == 1).all():
        return True
    raise DataError(
        f"The first line of {path.name!r} holds numbers ({listing(numbers, limit=4)}) where the names of the variables "
        "are expected: is it a row of data? Add a line of names, or say header=False (--no-header) if there is none; "
        "header=True (--header) takes these numbers as names."
    )


def _with_names(frame: pd.DataFrame, above: list[str], path: Path) -> pd.DataFrame:
    """The table with the names of its first line; columns without one are row names, empty, or refused."""
    above = [unescaped(cell) for cell in above]
    # Where rows are longer than the first line, pandas makes an index of what is in front.
    extra = 0 if frame.index.equals(pd.RangeIndex(len(frame))) else frame.index.nlevels
    if extra > 1:
        raise DataError(
            f"The rows of {path.name!r} have {frame.shape[1] + extra} values, its first line only {frame.shape[1]} "
            "names. Name every column."
        )
    if extra:  # R writes row names without a name above them
        frame, above = frame.reset_index(), ["", *above]
    repeated = sorted({name for name in above if name and above.count(name) > 1})
    if repeated:
        raise DataError(f"{path.name!r} has several columns called {listing(repeated)}. Give each a name of its own.")
    kept: list[int] = []
    for j, name in enumerate(above):
        column = frame.iloc[:, j]
        if name:
            kept.append(j)
        elif j == 0 and len(above) > 1 and _are_row_names(column):
            frame.index = pd.Index(column)
        elif not column.isna().all():
            raise DataError(
                f"Column number {j + 1} of {path.name!r} has values but no name"
                + (", and does not number or name the rows" if j == 0 else "")
                + ". Give it a name, or remove it."
            )
    chosen = frame.iloc[:, kept].rename_axis(None).copy()
    chosen.columns = pd.Index([above[j] for j in kept])
    for j, kind in enumerate(chosen.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            cells = [unescaped(cell) if isinstance(cell, str) else cell for cell in chosen.iloc[:, j]]
            chosen.isetitem(j, cells)
    return chosen


def _are_row_names(column: pd.Series[Any]) -> bool:
    """Whether a column without a name numbers the rows, or names them: text, no two alike.

    >>> _are_row_names(pd.Series([1, 2, 3])), _are_row_names(pd.Series(["a", "b"])), _are_row_names(pd.Series([3, 3]))
    (True, True, False)
    """
    if column.isna().any() or not column.is_unique:
        return False
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return True
    values = np.sort(column.to_numpy(dtype=float))
    return bool((np.diff(values) == 1).all() and values[0] in (0, 1))


def _read_statistics(path: Path, ending: str, most: float) -> pd.DataFrame:
    try:
        import pyreadstat
    except ImportError:
        raise UnmeasuredError(
            f"Reading {ending} files needs the package pyreadstat: pip install 'unmeasured[io]'."
        ) from None
    readers: dict[str, Any] = {".dta": pyreadstat.read_dta, ".por": pyreadstat.read_por}
    reader = readers.get(ending, pyreadstat.read_sav)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about file versions and time stamps, which are not ours to mend
            # How many rows there are is not always declared; no more are read than may be.
            _, about = reader(str(path), metadataonly=True)
            widths = getattr(about, "variable_storage_width", None) or {}
            width = sum(max(widths.get(name) or VALUE, VALUE) for name in about.column_names) or VALUE
            refuse_declared(path, (about.number_rows or 0) * width, most)
            allowed = 0 if math.isinf(most) else max(int(most // width), 1)
            frame, meta = reader(str(path), row_limit=allowed and allowed + 1)
            refuse_more(path, len(frame) * width if allowed else 0.0, most)
    except DataError:
        raise
    except Exception as error:  # pyreadstat raises several kinds, its own and others, for one cause: not such a file
        raise DataError(f"{path.name!r} could not be read as a {ending} file: {error}.") from None
    table = pd.DataFrame(frame)
    table.attrs["labels"] = {k: v for k, v in meta.column_names_to_labels.items() if v}
    return table


def _read_excel(path: Path, sheet: str | int, header: bool | None, most: float) -> pd.DataFrame:
    """A sheet as rows; its first line is checked as that of a text file is."""
    check_archive(path, most)

    def chosen_sheet() -> tuple[list[str], Any, pd.DataFrame, list[str]]:
        load = import_module("openpyxl").load_workbook
        with contextlib.closing(load(path, read_only=True, data_only=True, keep_links=False)) as book:
            named = list(book.sheetnames)
            place = named[sheet] if isinstance(sheet, int) and -len(named) <= sheet < len(named) else sheet
            if place not in named:
                raise DataError(f"{path.name!r} has no sheet {sheet!r}; it has {listing(map(str, named))}.")
            found = _cells_of_sheet(book[place], path, most)
            filled = (
                [] if len(found) else [x for x in named if x != place and len(_cells_of_sheet(book[x], path, most))]
            )
            return named, place, found, filled

    _, place, cells, others = _by_library(path, "openpyxl", chosen_sheet)
    table = cells.dropna(how="all").dropna(how="all", axis=1)
    if table.empty:
        hint = f" There is something on {listing(map(str, others))}: name the sheet." if others else ""
        raise DataError(f"Sheet {place!r} of {path.name!r} is empty.{hint}")
    above = ["" if pd.isna(cell) else str(cell).strip() for cell in table.iloc[0]]
    if not (_has_header(above, path) if header is None else header):
        table.columns = pd.Index([f"x{i + 1}" for i in range(table.shape[1])])
        return _as_numbers(table)
    frame = table.iloc[1:].reset_index(drop=True)
    frame.columns = pd.RangeIndex(frame.shape[1])
    return _with_names(_as_numbers(frame), above, path)


# Rows of a sheet: as many as Excel has.
_MOST_SHEET_ROWS = 1_048_576


def _cells_of_sheet(sheet: Any, path: Path, most: float) -> pd.DataFrame:
    """The rows of a sheet that are not empty, read one by one and counted; empty cells, and codes for such, are NaN."""
    if not hasattr(sheet, "reset_dimensions"):  # a sheet of charts
        return pd.DataFrame()
    sheet.reset_dimensions()  # those declared may be wrong
    rows: list[list[Any]] = []
    width = 0
    for number, row in enumerate(sheet.rows, start=1):
        if number > _MOST_SHEET_ROWS:
            raise DataError(f"{path.name!r} has a row below number {_MOST_SHEET_ROWS:,}, the last that Excel has.")
        values = [_cell(cell) for cell in row]
        while values and values[-1] == "":
            values.pop()
        if values:
            rows.append(values)
            width = max(width, len(values))
            refuse_more(path, VALUE * len(rows) * width, most, "has a sheet whose cells take")
    if not rows:
        return pd.DataFrame()
    blank = [""]
    table = [values + (width - len(values)) * blank for values in rows]
    # The values that pandas takes as missing.
    parser = import_module("pandas.io.parsers").TextParser(table, header=None, dtype=object)
    return pd.DataFrame(parser.read())


def _cell(cell: Any) -> Any:
    """The value of a cell: "" for an empty one, NaN for an error of Excel's, whole numbers as such."""
    if cell.value is None:
        return ""
    if cell.data_type == "e":
        return math.nan
    if cell.data_type == "n" and isinstance(cell.value, int | float):
        return int(cell.value) if cell.value == cell.value // 1 else float(cell.value)
    return cell.value


def _as_numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Columns of numbers as such; a cell with text, but for a dot, leaves its column as it is."""
    result = table.copy()
    for j in range(table.shape[1]):
        column = table.iloc[:, j]
        column = column.where(~column.isin([*_HOLES, "", "NA"]))
        with contextlib.suppress(ValueError, TypeError):
            if not any(isinstance(cell, str) for cell in column):
                column = pd.to_numeric(column)
        result.isetitem(j, column.array)
    return result


# Rows of a Parquet file that are unpacked at a time.
_PARQUET_ROWS = 4096


def _read_parquet(path: Path, most: float) -> pd.DataFrame:
    def rows() -> pd.DataFrame:
        pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
        batches: list[Any] = []
        size = 0
        with pq.ParquetFile(path, pre_buffer=False) as file:
            # What is written once may be the value of a billion rows.
            for batch in file.iter_batches(_PARQUET_ROWS):
                size += batch.nbytes
                refuse_more(path, size, most)
                batches.append(batch)
            return pd.DataFrame(pa.Table.from_batches(batches, schema=file.schema_arrow).to_pandas())

    frame = _by_library(path, "pyarrow", rows)
    names = [str(name) for name in frame.columns]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{path.name!r} has several columns called {listing(repeated)}. Give each a name of its own.")
    return pd.DataFrame(frame.set_axis(names, axis=1))


def _by_library(path: Path, package: str, reading: Callable[[], Any]) -> Any:
    """What a library of another project reads; its absence, and whatever it raises, is a sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions of the file, which are not read
            return reading()
    except DataError:
        raise
    except ImportError:
        raise UnmeasuredError(
            f"Reading {_ending(path)} files needs the package {package}: pip install 'unmeasured[io]'."
        ) from None
    except Exception as error:  # several kinds, for one cause: not such a file
        raise DataError(f"{path.name!r} could not be read as a {_ending(path)} file: {_sentence(error)}") from None


@dataclass(frozen=True)
class _Printed:
    """A printed matrix, its lines told apart: names above, labels and numbers of the rows, standard deviations."""

    header: list[str]
    labels: list[str]
    rows: list[list[float]]
    deviations: list[float] | None

    @classmethod
    def of(cls, lines: list[str], separator: str | None) -> _Printed:
        cells = [_cells_of(line, separator) for line in lines]
        header: list[str] = []
        statistics = _statistics_before(cells[0])
        if statistics or _is_header(cells[0]):
            header, cells = [_unnumbered(c) for c in cells[0] if c] if not statistics else [], cells[1:]
        if all(_is_numbered(row, i) for i, row in enumerate(cells, start=1) if _is_variable(row)):
            cells = [row[1:] if _is_variable(row) else row for row in cells]
        parsed = [_parsed(row, i) for i, row in enumerate(cells, start=1 + bool(header))]
        if all(label.startswith(f"{i} ") for i, (label, _) in enumerate(parsed, start=1) if _is_variable([label])):
            parsed = [(re.sub(r"^\d+ ", "", label), values) for label, values in parsed]
        rows = [(label, values) for label, values in parsed if label.lower() not in _MEANS | _DEVIATIONS]
        deviations = next((values for label, values in parsed if label.lower() in _DEVIATIONS), None)
        for place, name in enumerate(statistics):
            if name in _DEVIATIONS:
                deviations = [values[place] for _, values in rows if len(values) > place]
        return cls(header, [label for label, _ in rows], [values[len(statistics) :] for _, values in rows], deviations)

    def names(self, n: int) -> list[str] | None:
        """Names at the left, or else above; None where there are none."""
        labels = [label for label in self.labels if label]
        if len(labels) == n:
            return labels
        if len(self.header) in (n, n + 1) and not self.header[-1].isdigit():
            return self.header[-n:]
        found = labels or [name for name in self.header if not name.isdigit()]
        if found:
            raise DataError(f"The matrix has {n} variables, but the names found are {listing(found)}.")
        return None

    def sorted(self, matrix: Floats) -> Floats:
        """The matrix with its columns in the order of its rows, where both are named; refused where they disagree."""
        n, labels = len(matrix), [label for label in self.labels if label]
        above = self.header[-n:] if len(self.header) in (n, n + 1) else []
        if len(labels) != n or not above or all(name.isdigit() for name in above) or labels == above:
            return matrix
        is_whole = all(len(row) == n for row in self.rows)
        if len(set(labels)) == n and set(labels) == set(above) and is_whole:
            return matrix[:, [above.index(label) for label in labels]]
        raise DataError(
            f"Rows and columns of the matrix are named differently: rows {listing(labels)}, columns {listing(above)}. "
            "Name them alike, or give names= (in their order)."
        )


def _without_title(lines: list[str], separator: str | None) -> list[str]:
    """The lines without the title of a table: what stands above its heads, or above its first row where it has none.

    >>> _without_title(["Correlations of tests", "1. Speed", "2. Error .45"], None)
    ['1. Speed', '2. Error .45']
    """
    marks = [separator if separator is not None else _separator(line) for line in lines]
    cells = [[cell for cell in _cells_of(line, mark) if cell] for line, mark in zip(lines, marks, strict=True)]
    first = next((k for k, row in enumerate(cells) if _begins_rows(lines[k], row)), 0)
    if first and len(cells[first - 1]) == 1 and not _TITLE.match(lines[first - 1]) and len(_entries(cells[first])) == 1:
        first -= 1  # the first row of a triangle with a blank diagonal: a label and nothing else
    if first == 0:
        return lines
    above = cells[first - 1]
    n = sum(bool(_entries(row)) for row in cells[first:])
    counted = len(above) > 1 and above[-1].rstrip(".").isdigit()
    labelled = len(_entries(cells[first])) < len(cells[first])
    has_heads = counted or ((len(above) in (n, n + 1) or not labelled) and not _TITLE.match(lines[first - 1]))
    return lines[first - 1 if has_heads else first :]


_TITLE = re.compile(
    r"\W*(table|means?,|descriptive|(inter)?correlations?\b|covariances?\b|zero-order|pearson)", re.IGNORECASE
)


def _begins_rows(line: str, cells: list[str]) -> bool:
    """Whether a line is a row of the matrix: numbered, or with an entry; heads that count 1, 2, ... have none."""
    if re.match(r"\W*1[.)](\s|\W*$)", line):
        return True
    if re.match(r"\W*table\s+\w?\d+[.:]?\s+[^\W\d]", line, re.IGNORECASE):
        return False
    counted = [cell.rstrip(".") for cell in cells if cell.rstrip(".").isdigit()]
    is_count = len(counted) > 1 and counted == [str(k + 1) for k in range(len(counted))]
    return bool(_entries(cells)) and not is_count


def _entries(cells: list[str]) -> list[str]:
    """The cells that hold a number."""
    return [cell for cell in cells if _number(cell) is not None]


def _cells_of(line: str, separator: str | None) -> list[str]:
    cells = line.split(separator) if separator is not None else line.split()
    return [cell.strip().strip("\"'").strip() for cell in cells]


def _is_header(cells: list[str]) -> bool:
    """Whether a first line holds names, or the numbers 1 to n, rather than entries."""
    filled = [cell for cell in cells if cell]
    numbers = [cell.rstrip(".") for cell in (filled[1:] if filled and _CORNER.fullmatch(filled[0]) else filled)]
    counted = numbers == [str(i + 1) for i in range(len(numbers))]
    return len(filled) > 1 and (counted or all(_number(cell) is None for cell in filled))


def _statistics_before(cells: list[str]) -> list[str]:
    """The columns of means and deviations that a first line announces before the numbers 1 to n.

    >>> _statistics_before(["Variable", "M", "SD", "1", "2", "3"]), _statistics_before(["SD", "1", "2"])
    (['m', 'sd'], [])
    """
    filled = [cell.rstrip(".").lower() for cell in cells if cell]
    words = [cell for cell in filled if not cell.isdigit()]
    found = [word for word in words if word in _MEANS | _DEVIATIONS]
    rest = filled[len(words) :]
    # A row of deviations begins with the one word SD; variables called M are not followed by numbers from 1.
    announced = len(words) > 1 and rest and rest == [str(i + 1) for i in range(len(rest))]
    return found if announced and words[len(words) - len(found) :] == found else []


def _unnumbered(cell: str) -> str:
    """A column's number without its point."""
    return cell[:-1] if re.fullmatch(r"\d+\.", cell) else cell


def _is_variable(row: list[str]) -> bool:
    """Whether a row belongs to a variable, not to the means or deviations."""
    return bool(row) and row[0].lower() not in _MEANS | _DEVIATIONS


def _is_numbered(row: list[str], i: int) -> bool:
    """Whether a row begins with its number: with a point, or before a name."""
    return row[0] in (f"{i}.", f"{i})") or (row[0] == str(i) and len(row) > 1 and _number(row[1]) is None)


def _parsed(cells: list[str], line: int) -> tuple[str, list[float]]:
    """The label of a row, which may be several words, and the numbers after it; empty cells are passed over."""
    cells = [cell for cell in cells if cell]
    first = len(cells)
    while first and _number(cells[first - 1]) is not None:
        first -= 1
    if first > 1 and _number(cells[0]) is not None:
        raise DataError(f"Line {line} of the matrix: {cells[first - 1]!r} is not a number.")
    label = re.sub(r"^\d+[.)]\s*", "", " ".join(cells[:first]))
    return label, [number for cell in cells[first:] if (number := _number(cell)) is not None]


def _number(cell: str) -> float | None:
    """The number a cell shows, without marks of significance; a dash, or brackets, are the 1 of a diagonal."""
    if cell in _DASHES or (cell[:1] in "([" and cell[-1:] in ")]" and _NUMBER.fullmatch(cell[1:-1])):
        return 1.0
    cell = _MARKS.sub("", cell).replace("−", "-").replace("–", "-")
    return float(cell.replace(",", ".")) if _NUMBER.fullmatch(cell) else None


def _whole(rows: list[list[float]], diagonal: bool) -> Floats:
    """The symmetric matrix whose rows, or rows of a triangle, these are."""
    rows = rows if diagonal else [row for row in rows if row]
    n, missing = len(rows), int(not diagonal)
    if not n:
        raise DataError("There are no rows of numbers in this text, so there is no matrix.")
    lengths = [len(row) for row in rows]
    if diagonal and lengths == [n] * n:
        return np.array(rows)
    if n > 1 and diagonal and lengths in (list(range(n)), list(range(n - 1, -1, -1))):  # a blank diagonal
        rows, diagonal, missing = [row for row in rows if row], False, 1
        n, lengths = n - 1, [length for length in lengths if length]
    matrix = np.eye(n + missing)
    if lengths == list(range(1, n + 1)):
        for i, row in enumerate(rows):
            matrix[i + missing, : len(row)] = row
        return np.tril(matrix) + np.tril(matrix, -1).T
    if lengths == list(range(n, 0, -1)):
        for i, row in enumerate(rows):
            matrix[i, i + missing :] = row
        return np.triu(matrix) + np.triu(matrix, 1).T
    raise DataError(
        f"The rows of the matrix have {', '.join(map(str, lengths[:12]))}{', ...' if n > 12 else ''} values: neither a "
        "whole matrix nor a triangle of one. Names of several words need commas between the columns."
    )
