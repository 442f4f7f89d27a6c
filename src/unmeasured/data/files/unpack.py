"""Limits of what a compressed file unpacks to: a file of a megabyte may hold gigabytes.

Text in ``.gz`` is counted while it is unpacked. A workbook is an archive, which declares the sizes of its parts (Python
reads no more of a part than is declared); then the cells of a sheet are counted, since a single one far from the others
makes a table of billions. Parquet and SPSS files declare rows and columns, which are counted, too.
"""

from __future__ import annotations

import gzip
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from numbers import Real
from pathlib import Path
from typing import Any, BinaryIO, cast

from unmeasured.errors import DataError, UnmeasuredError

# Megabytes that a file unpacks to at most, unless more are asked for.
MOST_UNPACKED = 500.0
# Bytes of a number in memory.
VALUE = 8


def checked_limit(megabytes: Any) -> float:
    """Bytes of a limit that is given in megabytes; None: no limit.

    >>> checked_limit(2), checked_limit(None)
    (2000000.0, inf)
    """
    if megabytes is None:
        return math.inf
    if isinstance(megabytes, bool) or not isinstance(megabytes, Real) or not float(megabytes) > 0:
        raise UnmeasuredError(
            f"max_unpacked must be a positive number of megabytes, or None for no limit; got {megabytes!r}."
        )
    return 1e6 * float(megabytes)


def refuse_more(path: Path, size: float, most: float, what: str = "unpacks to") -> None:
    """Refuse a file whose content, of which this much was counted so far, is larger than allowed."""
    if size > most:
        raise DataError(
            f"{_described(path)} {what} more than the limit of {_megabytes(most)}. If you trust the file, raise the "
            f"limit: max_unpacked={most / 5e5:g} doubles it."
        )


def refuse_declared(path: Path, size: float, most: float) -> None:
    """Refuse a file that declares content larger than allowed."""
    if size > most:
        raise DataError(
            f"{_described(path)} unpacks to {_megabytes(size)}, more than the limit of {_megabytes(most)}. If you "
            f"trust the file, raise the limit: max_unpacked={math.ceil(size / 1e5) / 10:g}."
        )


def _described(path: Path) -> str:
    return f"{path.name!r} ({_megabytes(path.stat().st_size)})"


@contextmanager
def opened(path: Path, most: float) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked if it is a ``.gz``, and refuse to unpack more than allowed."""
    if path.suffix != ".gz":
        with open(path, "rb") as file:
            yield file
        return
    with (
        gzip.open(path, "rb") as packed,
        BufferedReader(_Counted(cast("BinaryIO", packed), path, most), 1 << 20) as file,
    ):
        yield cast("BinaryIO", file)


class _Counted(RawIOBase):
    """A stream that ends with an error where more than so many bytes come out of it."""

    def __init__(self, source: BinaryIO, path: Path, most: float) -> None:
        self._source, self._path, self._most = source, path, most
        self._n_read = 0

    def readable(self) -> bool:
        """Whether the stream can be read: always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read as many bytes as the buffer takes."""
        piece = self._source.read(len(buffer))
        self._n_read += len(piece)
        refuse_more(self._path, self._n_read, self._most)
        buffer[: len(piece)] = piece
        return len(piece)


def unpacks_to(path: Path, enough: float) -> int:
    """Return the size of a text file unpacked, counted up to ``enough`` bytes; of a damaged file what could be read."""
    if path.suffix != ".gz":
        return path.stat().st_size
    size = 0
    try:
        with gzip.open(path, "rb") as file:
            while size < enough and (piece := file.read(1 << 20)):
                size += len(piece)
    except (OSError, EOFError, ValueError):  # what reads it says what is wrong
        pass
    return size


def check_archive(path: Path, most: float) -> None:
    """Refuse an archive whose parts are larger than allowed, together or because they overlap."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError):  # what reads it says what is wrong
        return
    refuse_declared(path, size, most)


def _megabytes(size: float) -> str:
    """A size for a sentence.

    >>> _megabytes(1.72e6), _megabytes(4.2e9), _megabytes(300.0)
    ('1.7 MB', '4,200 MB', '0.1 MB')
    """
    return f"{max(size / 1e6, 0.1):.1f} MB" if size < 1e7 else f"{size / 1e6:,.0f} MB"
