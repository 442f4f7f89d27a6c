"""Writing files: the old one survives until the new one is complete, and tables are safe to open in a spreadsheet.

**Atomic.** Content goes to a temporary name in the same folder, is flushed to the disk, and is renamed over the target.
A full disk, a kill or a folder that cannot be written to leaves the old file as it was; nobody ever sees half a file.

**Spreadsheets.** To Excel and LibreOffice a text cell that begins with ``=``, ``+``, ``-`` or ``@`` is a formula,
whoever wrote it. In every CSV of ours such a cell has an apostrophe in front (:func:`escaped`), which
:func:`unmeasured.read` takes away again (:func:`unescaped`).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from unmeasured.errors import UnmeasuredError

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_ESCAPED = re.compile(r"'+[=+\-@\t\r\n]")


def write_text(path: str | Path, text: str) -> None:
    """Write text in UTF-8, replacing a file only when all of it is on the disk; the last line is ended too.

    Raises
    ------
    UnmeasuredError
        Saying why it could not be written; what was there before is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(Path(folder) / "a.txt", "new")
    ...     (Path(folder) / "a.txt").read_text().splitlines(), len(list(Path(folder).iterdir()))
    (['new'], 1)
    """
    write_bytes(path, encoded(text))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write bytes, replacing a file only when all of them are on the disk; see :func:`write_text`."""
    path = Path(path)
    _checked(path)
    try:
        _replace_all({_target(path): content})
    except (OSError, ValueError) as error:
        raise _unwritable(str(path), error) from None


def write_csv(path: str | Path, table: pd.DataFrame, *, float_format: str | None = None) -> None:
    """Write a table without its index as CSV that no spreadsheet takes for formulas; see :func:`write_text`."""
    write_text(path, csv_text(table, float_format=float_format))


def write_folder(folder: str | Path, contents: Mapping[str, str | bytes]) -> None:
    """Write several files into a folder, made where there is none: none is replaced before all are on the disk.

    Raises
    ------
    UnmeasuredError
        Saying why they could not be written; what was there before is unchanged.
    """
    folder = Path(folder)
    _checked(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: encoded(text) if isinstance(text, str) else text for name, text in contents.items()}
        _replace_all({_target(folder / name): content for name, content in files.items()})
    except (OSError, ValueError) as error:
        raise _unwritable(str(folder), error) from None


def check_folder(folder: str | Path) -> None:
    """Refuse a folder that cannot be written to, before long work and not after it; nothing is made or changed.

    Raises
    ------
    UnmeasuredError
        Saying why.
    """
    folder = Path(folder)
    _checked(folder)
    try:
        there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        if not there.is_dir():
            raise NotADirectoryError(20, "it is a file" if there == folder else f"{str(there)!r} is a file")
        if not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except (OSError, ValueError) as error:
        raise _unwritable(str(folder), error) from None


def csv_text(table: pd.DataFrame, *, float_format: str | None = None) -> str:
    """A table without its index as CSV, its text cells and headings escaped.

    >>> import pandas as pd
    >>> csv_text(pd.DataFrame({"=a": ["@b", "c"], "d": [-1.5, 2.0]})).splitlines()
    ["'=a,d", "'@b,-1.5", 'c,2.0']
    """
    import pandas as pd  # loaded by whoever has a table; the command line starts without it

    safe = table.copy()
    for j, kind in enumerate(table.dtypes):
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind)):
            safe.isetitem(j, [escaped(cell) if isinstance(cell, str) else cell for cell in table.iloc[:, j]])
    safe.columns = pd.Index([escaped(str(name)) for name in table.columns])
    return safe.to_csv(index=False, float_format=float_format, lineterminator="\n")


def escaped(text: str) -> str:
    """The text with an apostrophe in front where a spreadsheet would take it for a formula.

    >>> escaped("=cmd|' /C calc'!A0"), escaped("'=a"), escaped("q1"), escaped("it's")
    ("'=cmd|' /C calc'!A0", "''=a", 'q1', "it's")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unescaped(text: str) -> str:
    """What :func:`escaped` was given.

    >>> unescaped("'=a"), unescaped("''=a"), unescaped("'a'"), unescaped("=a")
    ('=a', "'=a", "'a'", '=a')
    """
    return text[1:] if _ESCAPED.match(text) else text


def parsed_json(text: str | bytes) -> Any:
    """What JSON text holds.

    Raises
    ------
    ValueError
        Where it is no JSON, also for what Python's reader has another error for (text nested too deeply) or none (NaN,
        infinity, numbers beyond 1e308).

    Examples
    --------
    >>> parsed_json("[" * 200_000)
    Traceback (most recent call last):
    ...
    ValueError: it is nested too deeply
    """
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"it holds {constant}, which is no number of JSON's")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"it holds {text[:40]}, which is beyond numbers")
    return number


def _checked(path: Path) -> None:
    if not path.name and not path.is_dir():
        raise UnmeasuredError("The name of the file to write is empty. Give one, such as out.csv.")
    if "\0" in str(path):
        raise UnmeasuredError(f"{str(path)!r} cannot be the name of a file: it holds a NUL character.")


def _target(path: Path) -> Path:
    """Where the content goes: through a link, what it points to."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if target.is_dir():
        raise IsADirectoryError(21, "it is a folder")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, "the file that is there is read-only")
    return target


def _replace_all(contents: Mapping[Path, bytes]) -> None:
    """Write each content beside its target, then rename all of them."""
    made: dict[Path, Path] = {}
    try:
        for target, content in contents.items():
            if target.exists() and not target.is_file():
                target.write_bytes(content)  # a device or a pipe, such as /dev/stdout, has nothing to replace
                continue
            made[target] = temporary = target.with_name(f".unmeasured-{secrets.token_hex(6)}.tmp")
            _put(temporary, content)
            if target.exists():
                os.chmod(temporary, target.stat().st_mode & 0o7777)
        for target, temporary in made.items():
            os.replace(temporary, target)
    except BaseException:
        for temporary in made.values():
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        raise
    for folder in {target.parent for target in made}:
        _flush_folder(folder)


def _put(path: Path, content: bytes) -> None:
    """The content in a new file, flushed to the disk."""
    # Opened by number, so that the permissions are those that the user's mask gives to new files.
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    with os.fdopen(number, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Make the renames last through a power cut, where the system can."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def encoded(text: str) -> bytes:
    r"""Return the content of a text file: UTF-8, the last line ended as the others are.

    >>> encoded("a =~ x1 + x2"), encoded("done\n"), encoded("")
    (b'a =~ x1 + x2\n', b'done\n', b'')
    """
    if text and not text.endswith("\n"):
        text += "\n"
    # Half characters, which Python allows and UTF-8 does not, as their escapes: JSON reads them back.
    return text.encode("utf-8", errors="backslashreplace")


def _unwritable(what: str, error: OSError | ValueError) -> UnmeasuredError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return UnmeasuredError(f"{what!r} could not be written: {reason}. What was there before is unchanged.")
