"""Files: rows from CSV, TSV, SPSS and Stata, matrices from CSV or from text as articles print them.

Both functions return a data frame, ready for ``fit(X)`` or ``fit_cov(cov, n)``. What cannot be read is refused with
the line and the reason; nothing is guessed but the separator.
"""

from __future__ import annotations

import gzip
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unmeasured.arrays import Floats
from unmeasured.data.matrices import with_deviations
from unmeasured.data.rows import checked_names
from unmeasured.errors import DataError, UnmeasuredError, listing, nearest

_TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat")
_STATISTICS = (".sav", ".zsav", ".por", ".dta")
# Besides what pandas takes as missing ("NA", "", "NaN", ...): the dot of SPSS, SAS and Stata.
_HOLES = ["."]
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
# Marks of significance that articles put behind a correlation.
_MARKS = re.compile(r"[*†‡§]+$|(?<=\d)(ns|n\.s\.|[a-c])$")
# Lines around a table that are no part of it: "N = 202", "Note. ...", "*p < .05".
_AROUND = re.compile(r"\s*(n\s*=|note[.:]|\*+\s*p\s*[<≤=])", re.IGNORECASE)
_DASHES = {"-", "–", "—", "−", "--"}
_DEVIATIONS, _MEANS = {"sd", "s.d.", "sds", "std", "std.", "std.dev."}, {"m", "mean", "means"}


def read(
    path: str | Path, *, columns: Sequence[str] | None = None, separator: str | None = None, encoding: str = "utf-8"
) -> pd.DataFrame:
    """Read rows of samples from a file: CSV, TSV, text (also ``.gz``), SPSS (``.sav``) or Stata (``.dta``).

    Parameters
    ----------
    columns
        Which columns to keep; by default all.
    separator
        Between the values of a text file; by default what the first line has: tabs, or else semicolons, commas, blanks.
        With semicolons a comma may be the decimal point.
    encoding
        Of a text file.

    Returns
    -------
    DataFrame
        One row per sample, holes as NaN. Values declared missing in an SPSS or Stata file are holes. The labels of
        its variables are in ``frame.attrs["labels"]``.

    Raises
    ------
    DataError
        If there is no such file, it cannot be read, or it lacks a column asked for.
    """
    path = _existing(path)
    ending = _ending(path)
    if ending in _STATISTICS:
        frame = _read_statistics(path, ending)
    elif ending in _TEXT:
        frame = _read_text(path, separator, encoding)
    else:
        raise DataError(
            f"Files of type {ending or 'without ending'!r} are not read here ({path.name!r}); known are "
            f"{listing((*_TEXT, *_STATISTICS), limit=20)}. Other files: read them with pandas and pass the data frame."
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
) -> pd.DataFrame:
    """Read a covariance or correlation matrix from a file, or from text as an article prints it.

    The matrix may be whole, or its lower or upper triangle. Names may stand above, at the left, or in both places;
    ``names=`` gives them where they do not. Row numbers (``1.``), marks of significance (``.45**``), dashes or
    reliabilities in brackets on the diagonal and typographic minus signs are understood. A row called SD, or a column
    of that name before those numbered 1, 2, ..., turns correlations into covariances; means, ``N =`` and notes below
    the table are passed over.

    Parameters
    ----------
    source
        The path of a text file; or the text itself, recognised by its line breaks.
    names
        Names of the variables, where the text has none, or others than it has.
    diagonal
        False: the diagonal is left out altogether, not even dashes stand for it, and is 1.
    separator
        Between the entries; by default tabs, semicolons or commas where there are any, else blanks.
    encoding
        Of a file.

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
    if isinstance(source, Path) or "\n" not in str(source):
        path = _existing(source)
        source = _decoded(path, encoding)
    lines = [line for line in str(source).splitlines() if line.strip() and not _AROUND.match(line)]
    if not lines:
        raise DataError("There is no matrix in this text: it is empty.")
    printed = _Printed.of(lines, separator if separator is not None else _separator(lines[-1]))
    matrix = _whole(printed.rows, diagonal)
    known = checked_names(names if names is not None else printed.names(len(matrix)), len(matrix))
    if printed.deviations is not None:
        matrix = with_deviations(matrix, printed.deviations, known)
    return pd.DataFrame(matrix, index=list(known), columns=list(known))


def _existing(path: str | Path) -> Path:
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"There is no file {str(path)!r} to read: it {what}.")
    return path


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _decoded(path: Path, encoding: str) -> str:
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        return content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError:
        raise DataError(
            f"{path.name!r} is not text in {encoding}. Name its encoding, such as encoding='latin-1' for older files."
        ) from None
    except LookupError:
        raise DataError(f"There is no encoding {encoding!r}.") from None
    except (OSError, EOFError) as error:
        raise DataError(f"{path.name!r} could not be read: {error}.") from None


def _separator(line: str) -> str | None:
    """The likeliest separator of a line; None: blanks."""
    for mark in ("\t", ";", ","):
        if mark in line:
            return mark
    return None


def _read_text(path: Path, separator: str | None, encoding: str) -> pd.DataFrame:
    text = _decoded(path, encoding)
    first = text.split("\n", 1)[0]
    mark = separator if separator is not None else _separator(first) or (r"\s+" if first.split()[1:] else ",")
    decimal = "," if mark == ";" and re.search(r"\d,\d", text) and not re.search(r"\d\.\d", text) else "."
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = pd.read_csv(StringIO(text), sep=mark, decimal=decimal, na_values=_HOLES, skipinitialspace=True)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, Warning, ValueError) as error:
        raise DataError(f"{path.name!r} could not be read as a table: {str(error).strip()}") from None
    # A column without a name in front is the row names that R writes.
    if len(frame.columns) > 1 and str(frame.columns[0]).startswith("Unnamed: 0"):
        frame = frame.set_index(frame.columns[0]).rename_axis(None)
    return frame


def _read_statistics(path: Path, ending: str) -> pd.DataFrame:
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
            frame, meta = reader(str(path))
    except Exception as error:  # pyreadstat raises several kinds, its own and others, for one cause: not such a file
        raise DataError(f"{path.name!r} could not be read as a {ending} file: {error}.") from None
    table = pd.DataFrame(frame)
    table.attrs["labels"] = {k: v for k, v in meta.column_names_to_labels.items() if v}
    return table


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
            header, cells = [c for c in cells[0] if c] if not statistics else [], cells[1:]
        if all(_is_numbered(row, i) for i, row in enumerate(cells, start=1) if _is_variable(row)):
            cells = [row[1:] if _is_variable(row) else row for row in cells]
        parsed = [_parsed(row, i) for i, row in enumerate(cells, start=1 + bool(header))]
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


def _cells_of(line: str, separator: str | None) -> list[str]:
    cells = line.split(separator) if separator is not None else line.split()
    return [cell.strip().strip("\"'").strip() for cell in cells]


def _is_header(cells: list[str]) -> bool:
    """Whether a first line holds names, or the numbers 1 to n, rather than entries."""
    filled = [cell for cell in cells if cell]
    counted = filled == [str(i + 1) for i in range(len(filled))]
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
        "whole matrix nor a triangle of one. Names of several words need commas between the columns; a triangle "
        "without its diagonal needs diagonal=False."
    )
