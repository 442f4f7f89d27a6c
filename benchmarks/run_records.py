"""Records: one line of JSON for each run, saying what was asked, under which circumstances, and what came of it.

What many runs share, a method with its options and the circumstances, is said once in a file, on a line of its own::

    {"runs":"5d41402a","experiment":"table1","method":"FOFC",...,"machine":"Linux x86_64, 2 cores",...}
    {"of":"5d41402a","graph":"paper-01","n_samples":100,"seed":0,...,"seconds":0.06,"f1":0.4,...}

A line may also say everything itself. A record is flat; here it is three values:

- :class:`Task`: what was asked. Everything that can change the answer is in it, and its ``key`` is its identity.
- :class:`Circumstances`: program versions, state of the code, machine, day. The version decides whether a run has to be
  made again, the state of the code whether a table marks it.
- :class:`Outcome`: the figures, or the reason there are none.

Lines are appended. Where a key comes twice, as after a retry, the later line counts; :func:`prune` drops the earlier.
A file is read and checked as a whole before anything is written to it, so one that holds something else stays as it is.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.state import state_of
from unmeasured.errors import UnmeasuredError, listing
from unmeasured.files import write_text
from unmeasured.results.earlier_formats import with_present_keys
from unmeasured.simulate import Categories, Noise, Nonlinearity, Setting

logger = logging.getLogger(__name__)

# Fields that may differ between two runs of the same task by the same version.
VOLATILE = ("code", "seconds", "peak_mib", "machine", "n_jobs", "date")
# Fields of a task that each run has for itself.
_OWN = ("graph", "graph_digest", "n_observed", "n_samples", "seed")
# Two fits of one class may differ by this much in total log-likelihood.
ROUNDING = 0.05
# How a line of ours begins: what runs share, a run, and a run that says everything itself.
_BEGINNING = re.compile(rb'\s*\{\s*"(runs|of|experiment)"\s*:\s*"')
_LONGEST_LINE = 2**20  # bytes; ours have a few thousand at most, so a longer first line is not ours


@dataclass(frozen=True)
class Task:
    """One run: a method with its options on the rows of a graph, a seed and a sample size; or on real data.

    Real data are called by ``graph``; nothing was drawn for them, so parameters, noise and nonlinearity are None.
    Fields with a default came later: at the default they are not part of a line or of a key, so that records made
    before still count.
    """

    experiment: str
    method: str  # the label in tables
    constructor: str
    options: Mapping[str, Any]
    graph: str
    graph_digest: str
    n_observed: int
    n_samples: int
    seed: int
    experiment_seed: int
    parameters: Setting | None
    noise: Noise | None
    nonlinearity: Nonlinearity | None
    time_limit: float | None  # seconds
    categories: Categories | None = None  # five, into which the rows are cut
    missing: float = 0.0  # part of the values punched out

    @cached_property
    def key(self) -> str:
        """The task as text, equal for equal tasks."""
        return json.dumps(self.content(), sort_keys=True)

    def content(self) -> dict[str, Any]:
        """Its part of a line."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {f.name: values[f.name] for f in fields(self) if values[f.name] != f.default}


@dataclass(frozen=True)
class Circumstances:
    """With what, where and when a run was made."""

    version: str
    code: str  # the state of the code behind the method, see benchmark/state.py
    python: str
    numpy: str
    machine: str
    n_jobs: int  # runs at once, which the seconds feel
    date: str


@dataclass(frozen=True)
class Outcome:
    """What a run found, or why it found nothing: then ``failure`` is a sentence and the figures are None.

    Attributes
    ----------
    seconds
        Time of ``fit`` alone, up to the failure where there is one.
    score_true, score_found
        BIC on the log-likelihood scale, ``loglik - dimension log(N) / 2``, total over the rows, larger is better: of
        the true graph and of the one found. None where the fit did not converge.
    surprise_true, surprise_found
        What extended BIC, which LGES maximises, takes off these scores (:func:`unmeasured.search.score.surprise`).
    chi2, df, rmsea, cfi, tli, srmr, bic
        Of the model found, on real data, where there is no truth to compare it with.
    peak_mib
        Most memory the process had held when ``fit`` returned, in MiB, Python and its libraries included; where every
        run has a process of its own.
    """

    seconds: float
    f1: float | None = None
    precision: float | None = None
    recall: float | None = None
    shd: int | None = None
    shd_paper: int | None = None
    latents_true: int | None = None
    latents_found: int | None = None
    score_true: float | None = None
    score_found: float | None = None
    surprise_true: float | None = None
    surprise_found: float | None = None
    chi2: float | None = None
    df: int | None = None
    rmsea: float | None = None
    cfi: float | None = None
    tli: float | None = None
    srmr: float | None = None
    bic: float | None = None
    peak_mib: float | None = None
    failure: str | None = None

    def content(self) -> dict[str, Any]:
        """Its part of a line; figures that there are not are left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def reports_latents(self) -> float | None:
        """1 where latents are reported, 0 where none; a mean of it is how often they are."""
        return None if self.latents_found is None else float(self.latents_found > 0)

    @property
    def truth_is_better(self) -> float | None:
        """1 where the truth has the better BIC, so that a better search would have found something else."""
        return _is_better(self.score_true, self.score_found)

    @property
    def truth_is_preferred(self) -> float | None:
        """The same by extended BIC."""
        return _is_better(_less(self.score_true, self.surprise_true), _less(self.score_found, self.surprise_found))


def _less(score: float | None, surprise: float | None) -> float | None:
    return None if score is None or surprise is None else score - surprise


def _is_better(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else float(first > second + ROUNDING)


@dataclass(frozen=True)
class Record:
    """A run, as the lines of a file tell it."""

    task: Task
    circumstances: Circumstances
    outcome: Outcome

    @property
    def done_key(self) -> tuple[str, str]:
        """What is not done again: the task by this version of the package."""
        return self.task.key, self.circumstances.version

    @property
    def is_of_today(self) -> bool:
        """Whether the code behind the method is still what it was; True where it is none of ours."""
        return state_of(self.task.constructor) in ("", self.circumstances.code)

    def lines(self) -> tuple[str, str]:
        """As JSON: what it shares with other runs, under a name that follows from it, and what is its own."""
        shared = {**self.task.content(), **asdict(self.circumstances)}
        own = {name: shared.pop(name) for name in _OWN}
        name = f"{zlib.crc32(_json(shared).encode()):08x}"
        return _json({"runs": name, **shared}), _json({"of": name, **own, **self.outcome.content()})

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Record:
        """The record with this content; keys it does not know, of a later version, are passed over."""
        # Figures that an earlier version did not record are unknown.
        known = {f.name: f for part in (Task, Circumstances, Outcome) for f in fields(part)}
        missing = [name for name, f in known.items() if name not in content and f.default is MISSING]
        if missing:
            raise ValueError(f"it has no {listing(missing)}")
        wrong = [name for name in known if name in content and not _KINDS[name].holds(content[name])]
        if wrong:
            raise ValueError(f"{wrong[0]} is {content[wrong[0]]!r}, which should be {_KINDS[wrong[0]].words}")
        task, circumstances, outcome = (
            {f.name: content[f.name] for f in fields(part) if f.name in content}
            for part in (Task, Circumstances, Outcome)
        )
        return cls(Task(**task), Circumstances(**circumstances), Outcome(**outcome))


@dataclass(frozen=True)
class _Kind:
    """What a value of a record has to be."""

    words: str
    holds: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _or_null(kind: _Kind) -> _Kind:
    return _Kind(f"{kind.words} or null", lambda value: value is None or kind.holds(value))


_BY_TYPE = {
    "str": _Kind("a text", lambda value: isinstance(value, str)),
    "int": _Kind("a whole number", _is_whole),
    "float": _Kind("a number", _is_number),
    "Mapping[str, Any]": _Kind("an object", lambda value: isinstance(value, dict)),
}
_BY_TYPE |= dict.fromkeys(("Setting", "Noise", "Nonlinearity", "Categories"), _BY_TYPE["str"])
_KINDS = {
    f.name: _or_null(_BY_TYPE[str(f.type).removesuffix(" | None")])
    if str(f.type).endswith(" | None")
    else _BY_TYPE[str(f.type)]
    for part in (Task, Circumstances, Outcome)
    for f in fields(part)
}


def latest(records: Iterable[Record]) -> dict[str, Record]:
    """The last record of each task, by key."""
    return {record.task.key: record for record in records}


def read_records(path: Path) -> list[Record]:
    """All whole records of a file; a half-written last line is passed over, the file is left as it is."""
    if not path.exists():
        raise UnmeasuredError(f"There are no records at {str(path)!r}.")
    records, half = _checked(path)
    if half:
        logger.warning("The last line of %s is half written; it is passed over.", path)
    return records


def open_records(path: Path) -> list[Record]:
    """Read the records of a file, and only then make it ready to be appended to.

    The folder is made where there is none. A half-written last line, left by a run that was killed, is dropped.

    Raises
    ------
    UnmeasuredError
        Where the file holds anything else than records; it stays as it was, to the byte.
    """
    if path.is_symlink() and not path.exists():
        raise UnmeasuredError(f"Records cannot be written to {str(path)!r}: it is a link to nothing.")
    records, half = _checked(path) if path.exists() else ([], 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            if half:
                logger.warning("The last line of %s was half written; it is dropped and its run made again.", path)
                file.truncate(os.fstat(file.fileno()).st_size - half)
            elif records and not _ends_with_newline(path):
                file.write(b"\n")
    except OSError as error:
        raise UnmeasuredError(f"Records cannot be written to {str(path)!r}: {error.strerror}.") from None
    return records


def append_record(path: Path, record: Record) -> None:
    """Add a record as a line, and before it what it shares if the file has not that yet; see it off to the disk."""
    shared, own = (f"{line}\n".encode() for line in record.lines())
    try:
        with path.open("a+b", buffering=0) as file:
            file.seek(0)
            file.write(own if shared in file.read() else shared + own)  # one write, so that little can be lost
            os.fsync(file.fileno())
    except OSError as error:
        raise UnmeasuredError(f"Records cannot be written to {str(path)!r}: {error.strerror}.") from None


def prune(path: Path) -> None:
    """Keep the last record of each task and drop those it replaces; the file is replaced as a whole or not at all."""
    write_records(path, latest(open_records(path)).values())


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write a file that holds these records and nothing else."""
    lines = dict.fromkeys(line for record in records for line in record.lines())
    write_text(path, "".join(f"{line}\n" for line in lines))


def _checked(path: Path) -> tuple[list[Record], int]:
    """The records of a file, and how many bytes at its end are a line of ours that was cut off."""
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(22, "it is not a file")
        with path.open("rb") as file:
            first = file.readline(_LONGEST_LINE)
            # A large file of another kind is known by its beginning, and need not be read to its end.
            if first.strip() and not _BEGINNING.match(first):
                _refuse(path, 1, "it does not begin as one")
            content = first + file.read()
    except OSError as error:
        raise UnmeasuredError(f"{str(path)!r} cannot be read as records: {error.strerror}.") from None
    head, newline, tail = content.rpartition(b"\n")
    if _is_cut_off(tail):
        return _parsed(head + newline, path), len(tail)
    return _parsed(content, path), 0


def _is_cut_off(tail: bytes) -> bool:
    """Whether bytes after the last newline are the beginning of a line of ours and not the whole of one."""
    if not _BEGINNING.match(tail):
        return False
    try:
        json.loads(tail)
    except (ValueError, RecursionError):
        return True
    return False


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


def _parsed(content: bytes, path: Path) -> list[Record]:
    records: list[Record] = []
    shared: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            told = json.loads(line, parse_constant=_no_number)
            if not isinstance(told, dict):
                raise ValueError("it is not an object")
            name = told.get("runs", told.get("of", ""))
            if not isinstance(name, str):
                raise ValueError(f"the name of its runs is {name!r}, which should be a text")
            if "runs" in told:
                shared[name] = told
            elif "of" in told and name not in shared:
                raise ValueError(f"no line before it tells of runs {name!r}")
            else:
                records.append(Record.of(with_present_keys({**shared.get(name, {}), **told}, "benchmark")))
        except (ValueError, RecursionError) as error:
            _refuse(path, number, "it is nested too deeply" if isinstance(error, RecursionError) else str(error))
    return records


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _refuse(path: Path, number: int, why: str) -> NoReturn:
    raise UnmeasuredError(
        f"Line {number} of {str(path)!r} is not a record of a run: {why}. The file is left as it is: "
        "remove the line, or choose another file."
    )
