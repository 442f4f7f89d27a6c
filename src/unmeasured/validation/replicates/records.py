"""Records of replicates: one line of JSON for each, with what it belongs to, so that a run can go on where it ended.

A line says which data and settings it is of. A file of other data or settings is refused: a mixture would be a
frequency of nothing. A file that holds anything else is refused too, and not a byte of it is changed.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from unmeasured.errors import UnmeasuredError, listing
from unmeasured.files import parsed_json
from unmeasured.graphs.outline import Outline
from unmeasured.results.earlier_formats import with_present_keys

# No record is longer: 300 variables take some 20 kB.
_LONGEST = 1 << 24
_BEGINNING = b'{"replicate": '


@dataclass(frozen=True, eq=False)
class Replicate:
    """What a search found in one replicate; ``failure`` says why there is no outline.

    ``selected_partition`` has for each observed variable the number of its latent in the partition that is reported
    first; -1 is no latent.
    Empty where it is not known: records of before it was kept, and methods without one.
    """

    index: int
    outline: Outline | None
    seconds: float
    failure: str = ""
    selected_partition: tuple[int, ...] = ()

    def line(self, about: Mapping[str, Any]) -> str:
        """The replicate as one line of JSON, with what it belongs to."""
        found = (
            {**self.outline.to_record(), "selected_partition": list(self.selected_partition)} if self.outline else {}
        )
        record = {"replicate": self.index, **found, "seconds": round(self.seconds, 3), "failure": self.failure}
        return json.dumps({**record, **about}, allow_nan=False)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Replicate:
        """The replicate of a line; :class:`KeyError` or the like where it is none."""
        if not isinstance(record["replicate"], int) or record["replicate"] < 0:
            raise ValueError(f"a replicate is numbered from 0; got {record['replicate']!r}")
        if not 0 <= float(record["seconds"]) < math.inf:
            raise ValueError(f"a replicate takes some seconds; got {record['seconds']!r}")
        outline = Outline.from_record(dict(record), len(record["observed"])) if not record["failure"] else None
        selected_partition = tuple(int(label) for label in record.get("selected_partition", ()))
        if selected_partition and len(selected_partition) != len(record["observed"]):
            raise ValueError("a partition has a number for each observed variable")
        return cls(
            int(record["replicate"]), outline, float(record["seconds"]), str(record["failure"]), selected_partition
        )


def refuse_other_files(path: str | Path) -> None:
    """Refuse a file that holds anything but records of replicates, of whatever data; nothing is written.

    Raises
    ------
    UnmeasuredError
        With the line that is no record.
    """
    kept = Records(None, {})
    kept.path = Path(path)
    try:
        if kept.path.exists():
            kept._read(kept.path)
    except OSError as error:
        raise _unwritable(kept.path, error.strerror or str(error)) from None
    except ValueError as error:  # a NUL in the path
        raise error if isinstance(error, UnmeasuredError) else _unwritable(kept.path, str(error)) from None


class Records:
    """A file that replicates are appended to; without a path they are kept in memory only."""

    def __init__(self, path: str | Path | None, about: Mapping[str, Any]) -> None:
        if not (path is None or isinstance(path, str | os.PathLike)):
            raise UnmeasuredError(f"records is the path of a file; got {path!r}.")
        self.path = None if path is None else Path(path)
        self.about = json.loads(json.dumps(about))
        self.done = {} if self.path is None else self._opened(self.path)

    def add(self, replicate: Replicate) -> None:
        """Keep a replicate, on the disk where there is a file."""
        self.done[replicate.index] = replicate
        if self.path is None:
            return
        try:
            with self.path.open("ab", buffering=0) as file:
                file.write((replicate.line(self.about) + "\n").encode())
                os.fsync(file.fileno())
        except OSError as error:
            raise _unwritable(self.path, error.strerror or str(error)) from None

    def _opened(self, path: Path) -> dict[int, Replicate]:
        """What is there already. Nothing is written before all of it is known to be ours."""
        try:
            found, end = self._read(path) if path.exists() else ({}, _End())
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab", buffering=0) as file:  # also says now, not after hours, that it cannot be written
                if end.torn:
                    file.truncate(end.whole)
                elif end.bare:
                    file.write(b"\n")
        except OSError as error:
            raise _unwritable(path, error.strerror or str(error)) from None
        except ValueError as error:  # a NUL in the path
            raise error if isinstance(error, UnmeasuredError) else _unwritable(path, str(error)) from None
        return found

    def _read(self, path: Path) -> tuple[dict[int, Replicate], _End]:
        """The replicates of a file and how it ends; one that holds anything else is refused and left as it is."""
        if not path.is_file():
            raise _unwritable(path, "it is a folder" if path.is_dir() else "it is not a regular file")
        found: dict[int, Replicate] = {}
        whole = 0
        with path.open("rb") as file:
            for number in count(1):
                # A line at a time, so that a large file that is not ours is refused without being read.
                line = file.readline(_LONGEST)
                if not line:
                    break
                if not line.endswith(b"\n") and _is_torn(line, begun=bool(found)):
                    return found, _End(whole, torn=True)
                replicate = self._parsed(line, number)
                found[replicate.index] = replicate
                whole += len(line)
                if not line.endswith(b"\n"):
                    return found, _End(whole, bare=True)
        return found, _End(whole)

    def _parsed(self, line: bytes, number: int) -> Replicate:
        try:
            record = with_present_keys(parsed_json(line), "replicate")
            if not isinstance(record, dict) or "replicate" not in record:
                raise ValueError("it has no replicate")
            other = [key for key, value in self.about.items() if record.get(key) != value]
            replicate = Replicate.from_record(record)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):
            raise UnmeasuredError(
                f"Line {number} of {str(self.path)!r} is not a record of a replicate, so the file is left as it is. "
                "Choose another file; if it holds records of yours, remove that line."
            ) from None
        if other:
            raise UnmeasuredError(
                f"{str(self.path)!r} holds replicates of something else: {listing(other)} differ (line {number}). "
                "Choose another file, or ask for what it was made with."
            )
        return replicate


@dataclass(frozen=True)
class _End:
    """How a file of records ends: the bytes of its whole lines, and what is left to do before more are added."""

    whole: int = 0
    torn: bool = False  # the last line was cut off when a run was killed
    bare: bool = False  # the last line lacks nothing but its end


def _is_torn(line: bytes, begun: bool) -> bool:
    """Whether a last line without an end is one of ours, cut off; ``begun``: after whole records."""
    try:
        parsed_json(line)
    except ValueError:
        n = min(len(line), len(_BEGINNING))
        return line[:n] == _BEGINNING[:n] and (begun or n == len(_BEGINNING))
    return False


def _unwritable(path: Path, reason: str) -> UnmeasuredError:
    return UnmeasuredError(f"Records cannot be written to {str(path)!r}: {reason}.")
