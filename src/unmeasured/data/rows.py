"""Rows: whatever table a caller has, as names and numbers, missing values as NaN, or a refusal that names the column.

Infinite values are never taken as missing: they are mistakes of an earlier computation and are refused. Text is
refused too, numbers written as text included: which of them mean "missing" is the caller's to say.
"""

from __future__ import annotations

import math
import numbers
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unmeasured.arrays import Bools, Floats
from unmeasured.errors import DataError, listing

# Control characters other than blanks, and halves of characters that UTF-8 cannot write.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_NOT_A_TABLE = "Rows come as a table (samples x variables)"


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of numbers: names, values (N, n) with NaN where missing, and which columns came as ordered categories.

    ``groups`` has, where rows belong to groups of people, the group of each; ``continuous`` the columns that are said
    to be continuous, however few values they have.
    """

    names: tuple[str, ...]
    values: Floats
    ordered: tuple[bool, ...]
    groups: tuple[str, ...] = ()
    continuous: tuple[str, ...] = ()

    @property
    def is_missing(self) -> Bools:
        """(N, n) True if a value is missing."""
        return np.isnan(self.values)

    def column(self, j: int) -> Floats:
        """(N,) the values of a column."""
        return self.values[:, j]

    def keep(self, which: Bools) -> Rows:
        """Only the rows chosen."""
        groups = tuple(np.asarray(self.groups, dtype=object)[which]) if self.groups else ()
        return replace(self, values=frozen(self.values[which]), groups=groups)


def as_rows(X: Any, names: Sequence[str] | None = None) -> Rows:
    """Read a data frame, an array or a list of lists; ordered categories and truth values become 0, 1, 2, ...

    Raises
    ------
    DataError
        Naming the columns that hold text, dates, complex or infinite numbers, or saying why it is no table.

    Examples
    --------
    >>> as_rows([[1, 2.5], [3, None]]).values
    array([[1. , 2.5],
           [3. , nan]])
    """
    frame = X if isinstance(X, pd.DataFrame) else _frame(X)
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise DataError(f"{_NOT_A_TABLE}; got shape {frame.shape}, which is empty.")
    names = checked_names(list(frame.columns) if names is None else names, frame.shape[1])
    columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
    values = [_numbers(column) for column in columns]
    _refuse_others({x: column for x, column, v in zip(names, columns, values) if v is None})
    table = np.column_stack([v for v in values if v is not None])
    infinite = [x for x, bad in zip(names, np.asarray(np.isinf(table).any(axis=0))) if bad]
    if infinite:
        raise DataError(
            f"Columns {listing(infinite)} hold infinities (or numbers beyond 1e308), which are neither numbers nor "
            "missing values. Find where they come from (a division by zero, a logarithm of zero), or set them to NaN "
            "if they mean 'missing'.",
            infinite,
        )
    ordered = tuple(isinstance(c.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(c.dtype) for c in columns)
    said = {str(name) for name in frame.attrs.get("continuous", ())}
    return Rows(names, frozen(table), ordered, continuous=tuple(name for name in names if name in said))


def frozen(matrix: Floats) -> Floats:
    """A contiguous copy or view that nobody can change."""
    matrix = np.ascontiguousarray(matrix, dtype=float)
    matrix.setflags(write=False)
    return matrix


def checked_names(names: Any, n: int) -> tuple[str, ...]:
    """Names as strings, one for each of n variables and no two alike; None: x1, x2, ...

    The parts of a name that has several levels, as pandas allows, are joined by an underscore.

    >>> checked_names([("mood", 1), ("mood", 2)], 2)
    ('mood_1', 'mood_2')
    """
    if names is None:
        return tuple(f"x{i + 1}" for i in range(n))
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise DataError(f"names is a sequence of {n} strings; got {names!r}.")
    known = tuple("_".join(map(str, name)) if isinstance(name, tuple) else _spelled(name) for name in names)
    if len(known) != n:
        raise DataError(f"{len(known)} names were given for {n} variables.")
    if not all(name.strip() for name in known):
        nameless = [i for i, name in enumerate(known, start=1) if not name.strip()]
        raise DataError(f"Variable number {nameless[0]} of {n} has no name. Give it one, or names= for all.")
    unprintable = [i for i, name in enumerate(known, start=1) if _UNPRINTABLE.search(name)]
    if unprintable:
        raise DataError(
            f"The name of variable number {unprintable[0]} ({known[unprintable[0] - 1]!r}) holds a control character "
            "or half a character, which no report can show. Rename it."
        )
    repeated = sorted({name for name in known if known.count(name) > 1})
    if repeated:
        raise DataError(f"Names repeat: {listing(repeated)}. Every variable needs a name of its own.")
    return known


def _spelled(name: Any) -> str:
    """A name as text; None and NaN, which pandas has for columns without one, are none."""
    return "" if name is None or (isinstance(name, float) and math.isnan(name)) else str(name)


def as_array(X: Any) -> Any:
    """Any array-like as a numpy array of real numbers or objects; what is neither is refused."""
    if isinstance(X, np.ma.MaskedArray):
        values, mask = np.ma.getdata(X).astype(object), np.ma.getmaskarray(X)
        values[mask] = None
        X = values
    try:
        with warnings.catch_warnings():
            # Ragged lists and lossy casts warn in some versions of numpy and raise in others: here they raise.
            warnings.simplefilter("error")
            array = np.asarray(X)
    except (TypeError, ValueError, OverflowError, RuntimeError, Warning) as error:
        raise DataError(f"This {type(X).__name__} cannot be read as a table of numbers ({error}).") from None
    if array.dtype.kind not in "biufO":
        raise DataError(
            f"The data have entries that are not numbers (they are of type {array.dtype}). Select the numeric columns "
            "first; numbers written as text become numbers with pandas.to_numeric."
        )
    return array


def _frame(X: Any) -> pd.DataFrame:
    if isinstance(X, str | Path):
        raise DataError(f"{_NOT_A_TABLE}; got the text {str(X)!r}. If it names a file, read it: unmeasured.read(...).")
    if (frame := other_frame(X)) is not None:
        return frame
    columns = getattr(X, "columns", None)  # data frames of other libraries know their names, too
    if isinstance(X, Mapping | np.recarray) or (isinstance(X, list) and X and isinstance(X[0], Mapping)):
        raise DataError(f"{_NOT_A_TABLE}; got a {type(X).__name__} of named values. pandas.DataFrame(X) makes it one.")
    array = as_array(X)
    if array.ndim != 2:
        raise DataError(f"{_NOT_A_TABLE}; got a {type(X).__name__} of shape {array.shape}.")
    known = isinstance(columns, Sequence) and not isinstance(columns, str) and len(columns) == array.shape[1]
    names = list(columns) if known and columns is not None else [f"x{i + 1}" for i in range(array.shape[1])]
    return pd.DataFrame(array, columns=names)


def other_frame(X: Any) -> pd.DataFrame | None:
    """A table of another library (polars, pyarrow and what narwhals knows) for pandas; None where it is no such table.

    A table that was read in blocks is read whole (:class:`unmeasured.data.tables.Table`).
    """
    if isinstance(X, pd.DataFrame | np.ndarray | list | tuple) or not hasattr(type(X), "columns"):
        return None
    if hasattr(X, "blocks") and hasattr(X, "n_values"):
        return pd.DataFrame(X.read())
    if hasattr(X, "to_delayed") and hasattr(X, "compute"):
        raise DataError("A Dask data frame has its rows elsewhere; here they are needed. Pass X.compute().")
    import narwhals as nw

    table = nw.from_native(X, pass_through=True)
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    if not isinstance(table, nw.DataFrame):
        return None
    return pd.DataFrame({str(name): _series(table.get_column(name)) for name in table.columns})


def _series(column: Any) -> Any:
    """A column of another library: ordered categories and truth values keep their kind, missing values are missing."""
    import narwhals as nw

    kind = column.dtype
    if isinstance(kind, nw.Enum):
        return pd.Categorical(column.to_list(), categories=list(kind.categories), ordered=True)
    if kind == nw.Categorical:
        native = column.to_native()
        if hasattr(native, "to_pandas") and type(native).__module__.startswith("pyarrow"):
            return native.to_pandas().array  # which knows whether they have an order
        return pd.Categorical(column.to_list())
    if kind == nw.Boolean:
        return pd.array(column.to_list(), dtype="boolean")
    return column.to_numpy()


def _numbers(column: pd.Series[Any]) -> Floats | None:
    """The column as floats with NaN for missing values; None where it holds anything but real numbers."""
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy(dtype=float)
        return np.where(codes < 0, np.nan, codes) if kind.ordered else None
    if pd.api.types.is_complex_dtype(kind):
        return None
    if pd.api.types.is_numeric_dtype(kind):
        # Extended floats beyond 1e308 become infinite here, and are refused as such.
        with np.errstate(over="ignore"):
            return np.asarray(column.to_numpy(dtype=float, na_value=np.nan), dtype=float)
    return _objects(column) if pd.api.types.is_object_dtype(kind) else None


def _objects(column: pd.Series[Any]) -> Floats | None:
    """A column of Python objects, as a None among numbers makes it."""
    values = np.full(len(column), np.nan)
    for i, value in enumerate(column):
        if value is None or value is pd.NA or value is pd.NaT:
            continue
        if not isinstance(value, numbers.Real | np.bool_):
            return None
        try:
            values[i] = float(value)
        except OverflowError:
            values[i] = math.inf
    return values


_HINTS = {
    "text, not numbers": "Select the numeric columns first",
    "numbers written as text": "Turn them into numbers with pandas.to_numeric",
    "dates or times": "Select the numeric columns first",
    "categories without an order": "Leave them out, or say that they have one (pandas: cat.as_ordered())",
    "complex numbers": "Pass their real and imaginary parts",
}


def _refuse_others(columns: Mapping[str, pd.Series[Any]]) -> None:
    """Refuse the columns that are no numbers: what they hold, by name, and what to do about it."""
    if not columns:
        return
    found: dict[str, list[str]] = {}
    for name, column in columns.items():
        found.setdefault(_what_it_holds(column), []).append(name)
    parts = [f"Columns {listing(names)} hold {what}. {_HINTS[what]}." for what, names in found.items()]
    raise DataError(" ".join(parts), columns)


def _what_it_holds(column: pd.Series[Any]) -> str:
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return "categories without an order"
    if pd.api.types.is_complex_dtype(kind):
        return "complex numbers"
    if kind.kind in "mM" or isinstance(kind, pd.PeriodDtype | pd.DatetimeTZDtype):
        return "dates or times"
    seen = [value for value in column if not _is_missing(value)]
    return "numbers written as text" if seen and all(map(_is_number_as_text, seen)) else "text, not numbers"


def _is_missing(value: object) -> bool:
    """Whether a cell is empty; what is no number is not asked to compare itself, since arrays refuse to."""
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def _is_number_as_text(value: object) -> bool:
    try:
        return isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        return False
