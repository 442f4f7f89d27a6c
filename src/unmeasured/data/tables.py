"""Tables too large for memory: Parquet files, folders of them, long text files, Dask data frames; read in blocks.

    um.read("answers/")  ──►  Table  ──►  blocks of rows  ──►  Tally (one pass)  ──►  Sample
                              columns chosen, codes for missing answers, reversed items

A :class:`Table` goes wherever rows go. What needs all rows at once reads it whole, if it is not too large for that, or
says so. Inside ``joblib.parallel_config`` the parts of a table are counted by the workers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from unmeasured.data.files.unpack import opened, refuse_declared, unpacks_to
from unmeasured.data.moments.tally import Tally, merged
from unmeasured.data.rows import Rows, as_rows
from unmeasured.errors import DataError, UnmeasuredError, listing, nearest

# From this many values (Parquet), or bytes (text), a file is read in blocks unless asked otherwise; data frames too.
LARGE, LARGE_TEXT = 20_000_000, 40_000_000
# More values than this are not read into memory at once: 8 bytes each, and moments take several copies.
_MOST_IN_MEMORY = 100_000_000
# Rows handed over at a time, and rows of a part, which is what a worker gets.
_ROWS, _PART = 65_536, 1_000_000
# Bytes of a text file that tell how long its lines are.
_BEGINNING = 1_000_000


class RowsNeeded(DataError):
    """What was asked for needs all rows at once."""


@dataclass(frozen=True)
class Part:
    """A part of a table that one worker counts: a file, and of a Parquet file some of its row groups."""

    path: Path
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Rows that stay in their files; :func:`unmeasured.read` returns it for large files.

    Attributes
    ----------
    columns : list of str
        Their names.
    n_rows : int or None
        Their number; None where only reading would tell (text).

    Examples
    --------
    >>> import tempfile
    >>> import unmeasured as um
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = pd.DataFrame(np.random.default_rng(0).integers(1, 6, size=(300, 3)), columns=["a", "b", "c"])
    ...     for k in range(3):
    ...         rows[100 * k : 100 * (k + 1)].to_parquet(f"{folder}/part{k}.parquet")
    ...     table = um.read(folder)
    ...     table, bool(np.allclose(um.as_sample(table).cov, um.as_sample(rows).cov))
    (<Table: 300 rows x 3 columns in 3 files>, True)
    """

    paths: tuple[Path, ...]
    kind: Literal["parquet", "text"]
    known: tuple[str, ...]  # the columns of the files, as a block has them
    chosen: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)  # for pandas, of text files
    na: tuple[float, ...] = ()
    reversed_items: Mapping[str, float] = field(default_factory=dict)  # what an answer is taken from
    max_unpacked: float = math.inf  # bytes of a file of text

    def __repr__(self) -> str:
        rows = "" if self.n_rows is None else f"{self.n_rows} rows x "
        files = "a file" if len(self.paths) == 1 else f"{len(self.paths)} files"
        return f"<Table: {rows}{len(self.chosen)} columns in {files}>"

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.chosen)

    @cached_property
    def n_rows(self) -> int | None:
        """The number of rows; None where it is not known before reading."""
        return sum(_metadata(path).num_rows for path in self.paths) if self.kind == "parquet" else None

    @property
    def n_values(self) -> int:
        """How many values there are; of a text file at most."""
        if self.n_rows is not None:
            return self.n_rows * len(self.chosen)
        return self._size // 2 * len(self.chosen) // len(self.known)

    @property
    def n_rows_about(self) -> int:
        """The number of rows; of text as the first lines let expect."""
        if self.n_rows is not None:
            return self.n_rows
        with opened(self.paths[0], math.inf) as file:
            beginning = file.read(_BEGINNING)
        return int(self._size / len(beginning) * max(beginning.count(b"\n"), 1)) if beginning else 0

    @cached_property
    def _size(self) -> int:
        """Bytes of text, counted up to where it is too much to be read at once."""
        enough = 2.0 * (_MOST_IN_MEMORY + 1) * len(self.known)
        return sum(unpacks_to(path, enough) for path in self.paths)

    def select(self, columns: Iterable[str]) -> Table:
        """The same rows, some of the columns."""
        columns = list(columns)
        for name in columns:
            if name not in self.chosen:
                raise DataError(
                    f"There is no column {name!r} in this table{nearest(name, self.chosen) or '.'} It has "
                    f"{listing(self.chosen)}."
                )
        return replace(self, chosen=tuple(columns))

    def read(self) -> pd.DataFrame:
        """All rows in memory.

        Raises
        ------
        DataError
            When there are more than 100 million values.
        """
        if self.n_values > _MOST_IN_MEMORY:
            raise DataError(
                f"This table has {'up to ' if self.n_rows is None else ''}{self.n_values:,} values, too many to read "
                f"at once (at most {_MOST_IN_MEMORY:,}). Take fewer columns, or a part of the rows."
            )
        return pd.concat(list(self.blocks()), ignore_index=True)

    def parts(self) -> list[Part]:
        """What several workers can count each on its own."""
        return [part for path in self.paths for part in self._parts_of(path)]

    def _parts_of(self, path: Path) -> Iterator[Part]:
        if self.kind == "text":
            yield Part(path)
            return
        about = _metadata(path)
        groups: list[int] = []
        for k in range(about.num_row_groups):
            if groups and sum(about.row_group(g).num_rows for g in (*groups, k)) > _PART:
                yield Part(path, tuple(groups))
                groups = []
            groups.append(k)
        if groups:
            yield Part(path, tuple(groups))

    def blocks(self, parts: Sequence[Part] | None = None) -> Iterator[pd.DataFrame]:
        """Data frames of some ten thousand rows, one after the other."""
        for part in self.parts() if parts is None else parts:
            reading = self._parquet_blocks(part) if self.kind == "parquet" else self._text_blocks(part.path)
            for block in reading:
                yield self._prepared(block)

    def _parquet_blocks(self, part: Part) -> Iterator[pd.DataFrame]:
        pa, pq = _pyarrow()
        try:
            # Without pre_buffer a row group is read column by column, not as a whole.
            with pq.ParquetFile(part.path, pre_buffer=False) as file:
                columns = list(self.chosen)
                coded = [f.name for f in file.schema_arrow if f.name in columns and pa.types.is_dictionary(f.type)]
                if coded:
                    raise RowsNeeded(
                        f"Columns {listing(coded)} hold categories, which each part of the file numbers in its own "
                        "way. Store them as numbers."
                    )
                for batch in file.iter_batches(_ROWS, row_groups=list(part.groups), columns=columns):
                    yield batch.to_pandas(ignore_metadata=True)[columns]
        except (pa.ArrowException, OSError, KeyError) as error:
            raise DataError(f"{part.path.name!r} could not be read: {error}.") from None

    def _text_blocks(self, path: Path) -> Iterator[pd.DataFrame]:
        # All columns, though some are wanted: told which, pandas passes over what lines have too much.
        options = {**self.options, "names": list(self.known), "low_memory": False}
        try:
            with opened(path, self.max_unpacked) as file, pd.read_csv(file, chunksize=_ROWS, **options) as reader:
                for block in reader:
                    yield block[list(self.chosen)]
        except (pd.errors.ParserError, UnicodeDecodeError, ValueError, OSError, EOFError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path.name!r} could not be read as a table: {str(error).strip().rstrip('.')}.") from None

    def _prepared(self, block: pd.DataFrame) -> pd.DataFrame:
        if self.na:
            numeric = [pd.api.types.is_numeric_dtype(kind) for kind in block.dtypes]
            columns = [name for name, is_number in zip(block.columns, numeric, strict=True) if is_number]
            block = block.assign(**{name: block[name].mask(block[name].isin(self.na)) for name in columns})
        for name, total in self.reversed_items.items():
            if name in block:
                block = block.assign(**{name: total - block[name]})
        return block


def as_blocks(X: Any) -> bool:
    """Whether rows are to be read in blocks: a table in files, a Dask data frame, or a large one in memory."""
    return isinstance(X, Table) or _is_dask(X) or _is_large(X)


def _is_dask(X: Any) -> bool:
    return type(X).__module__.startswith("dask") and hasattr(X, "to_delayed") and hasattr(X, "columns")


def _is_large(X: Any) -> bool:
    shape: tuple[int, ...] = getattr(X, "shape", ())
    is_known = isinstance(X, pd.DataFrame | np.ndarray) or type(X).__module__.split(".")[0] in ("polars", "pyarrow")
    return is_known and len(shape) == 2 and shape[0] * shape[1] > LARGE and not _is_lazy(X)


def _is_lazy(X: Any) -> bool:
    return hasattr(X, "collect")  # polars


def is_in_memory(X: Any) -> bool:
    """Whether the rows are there already, or few enough to be read at once."""
    if isinstance(X, Table):
        return X.n_values <= _MOST_IN_MEMORY
    return not _is_dask(X)


def tally_of(X: Any, names: Sequence[str] | None, *, listwise: bool) -> Tally:
    """One pass over rows that are read in blocks."""
    if _is_dask(X):
        return _dask_tally(X, names, listwise)
    if isinstance(X, Table):
        known = tuple(X.columns) if names is None else tuple(names)
        if (tallies := _counted_by_workers(X, known, listwise)) is not None:
            return merged(tallies)
        return _tally(X.blocks(), known, listwise, keep=True)
    return _tally(_slices(X), None if names is None else tuple(names), listwise, keep=True)


def _tally(blocks: Iterable[Any], names: tuple[str, ...] | None, listwise: bool, *, keep: bool = False) -> Tally:
    from threadpoolctl import threadpool_limits

    total: Tally | None = None
    # Products of a block are small: a second thread saves a fifth on a quiet machine, and waits ten times as long as it
    # works where another program has its core (25 seconds instead of 2, for a million rows of 50 items).
    with threadpool_limits(1):
        for block in blocks:
            rows: Rows = as_rows(block, names)
            if total is None:
                total = Tally(rows.names, listwise, keep)
            total.add(rows)
    if total is None:
        raise DataError("Rows come as a table (samples x variables); this one has no rows.")
    return total


def _slices(X: Any) -> Iterator[Any]:
    for start in range(0, X.shape[0], _ROWS):
        if isinstance(X, pd.DataFrame):
            yield X.iloc[start : start + _ROWS]
        else:
            yield X[start : start + _ROWS] if isinstance(X, np.ndarray) else X.slice(start, _ROWS)


@dataclass(frozen=True)
class _Counting:
    """What a worker does with a part of a table."""

    table: Table
    names: tuple[str, ...]
    listwise: bool

    def __call__(self, item: tuple[int, Part]) -> tuple[int, Tally]:
        k, part = item
        return k, _tally(self.table.blocks([part]), self.names, self.listwise)


def _counted_by_workers(table: Table, names: tuple[str, ...], listwise: bool) -> list[Tally] | None:
    """The parts counted by whatever ``joblib.parallel_config`` names, in their order; None where it names nothing."""
    if "joblib" not in sys.modules:  # then nothing can have been configured
        return None
    from joblib import effective_n_jobs

    from unmeasured.parallel import as_finished

    parts = table.parts()
    if effective_n_jobs(None) < 2 or len(parts) < 2:
        return None
    done = dict(as_finished(_Counting(table, names, listwise), list(enumerate(parts)), None))
    return [done[k] for k in range(len(parts))]


def _dask_tally(X: Any, names: Sequence[str] | None, listwise: bool) -> Tally:
    """Partitions counted where they are; a worker that dies has its partitions counted again by another."""
    dask: Any = import_module("dask")
    known = tuple(map(str, X.columns)) if names is None else tuple(names)
    counted = [dask.delayed(_partition)(part, known, listwise) for part in X.to_delayed()]
    while len(counted) > 1:  # eight at a time, so that no machine gets all of them at once
        counted = [dask.delayed(_together)(counted[k : k + 8]) for k in range(0, len(counted), 8)]
    total: Tally = dask.compute(counted[0])[0]
    if not total.n_given:
        raise DataError("Rows come as a table (samples x variables); this one has no rows.")
    return total


def _partition(part: Any, names: tuple[str, ...], listwise: bool) -> Tally:
    return _tally(_slices(part), names, listwise) if len(part) else Tally(names, listwise)


def _together(tallies: list[Tally]) -> Tally:
    return merged(tallies)


def parquet_table(paths: Sequence[Path], most: float = math.inf) -> Table:
    """Parquet files that have the same columns.

    Raises
    ------
    DataError
        Where a file cannot be read, or has other columns than the first.
    """
    pa, pq = _pyarrow()
    columns: list[tuple[str, ...]] = []
    for path in paths:
        try:
            schema, about = pq.read_schema(path), pq.read_metadata(path)
            # Read in blocks, a column of a row group is in memory at a time.
            groups = (about.row_group(k) for k in range(about.num_row_groups))
            columns_of = (group.column(j) for group in groups for j in range(group.num_columns))
            largest = max((chunk.total_uncompressed_size for chunk in columns_of), default=0)
            refuse_declared(path, largest, most)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path.name!r} could not be read as a .parquet file: {error}.") from None
        index = {name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)}
        columns.append(tuple(name for name in schema.names if name not in index))
        if sorted(columns[-1]) != sorted(columns[0]):
            other = sorted({*columns[-1]} ^ {*columns[0]})
            raise DataError(
                f"{path.name!r} has other columns than {paths[0].name!r}: {listing(other)} are in one of them only. "
                "All files of a table need the same ones."
            )
    repeated = sorted({name for name in columns[0] if columns[0].count(name) > 1})
    if repeated:
        raise DataError(
            f"{paths[0].name!r} has several columns called {listing(repeated)}. Give each a name of its own."
        )
    return Table(tuple(paths), "parquet", columns[0], columns[0])


def folder_table(folder: Path, most: float = math.inf) -> Table:
    """The Parquet files of a folder and of the folders in it, in the order of their names."""
    files = sorted(path for path in folder.rglob("*.parquet") if path.is_file() and not _is_hidden(path, folder))
    if not files:
        raise DataError(
            f"There is no file {str(folder)!r} to read: it is a folder, and no Parquet files (.parquet) are in it."
        )
    return parquet_table(files, most)


def _is_hidden(path: Path, folder: Path) -> bool:
    """Whether a file, or a folder it is in, is for the program that wrote it (``_metadata``, ``.part``)."""
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def _metadata(path: Path) -> Any:
    return _pyarrow()[1].read_metadata(path)


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise UnmeasuredError(
            "Reading .parquet files needs the package pyarrow: pip install 'unmeasured[io]'."
        ) from None
