"""Records of replicates: one line of JSON for each, with what it belongs to, so that a run can go on where it ended.

A line says which data and settings it is of. A file of other data or settings is refused: a mixture would be a
frequency of nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmeasured.errors import UnmeasuredError, listing
from unmeasured.graphs.outline import Outline


@dataclass(frozen=True, eq=False)
class Replicate:
    """What a search found in one replicate; ``failure`` says why there is no outline."""

    index: int
    outline: Outline | None
    seconds: float
    failure: str = ""

    def line(self, about: Mapping[str, Any]) -> str:
        """The replicate as one line of JSON, with what it belongs to."""
        found = self.outline.to_record() if self.outline else {}
        record = {"replicate": self.index, **found, "seconds": round(self.seconds, 3), "failure": self.failure}
        return json.dumps({**record, **about}, allow_nan=False)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Replicate:
        """The replicate of a line; :class:`KeyError` or the like where it is none."""
        outline = Outline.from_record(dict(record), len(record["observed"])) if not record["failure"] else None
        return cls(int(record["replicate"]), outline, float(record["seconds"]), str(record["failure"]))


class Records:
    """A file that replicates are appended to; without a path they are kept in memory only."""

    def __init__(self, path: str | Path | None, about: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.about = json.loads(json.dumps(about))
        self.done = {} if self.path is None else self._read(self.path)

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
            raise _unwritable(self.path, error) from None

    def _read(self, path: Path) -> dict[int, Replicate]:
        """What is there already; a last line that was cut off is dropped."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file:
                file.seek(0)
                content = file.read()
                whole = content[: content.rfind(b"\n") + 1]
                file.truncate(len(whole))
        except OSError as error:
            raise _unwritable(path, error) from None
        lines = enumerate(whole.decode(errors="replace").splitlines(), start=1)
        found = [self._parsed(line, number) for number, line in lines if line.strip()]
        return {replicate.index: replicate for replicate in found}

    def _parsed(self, line: str, number: int) -> Replicate:
        try:
            record = json.loads(line)
            replicate = Replicate.from_record(record)
        except (KeyError, TypeError, ValueError, IndexError):
            raise UnmeasuredError(
                f"Line {number} of {str(self.path)!r} is not a record of a replicate. Remove it, or "
                "choose another file."
            ) from None
        other = [key for key, value in self.about.items() if record.get(key) != value]
        if other:
            raise UnmeasuredError(
                f"{str(self.path)!r} holds replicates of something else: {listing(other)} differ (line {number}). "
                "Choose another file, or ask for what it was made with."
            )
        return replicate


def _unwritable(path: Path, error: OSError) -> UnmeasuredError:
    return UnmeasuredError(f"Records cannot be written to {str(path)!r}: {error.strerror}.")
