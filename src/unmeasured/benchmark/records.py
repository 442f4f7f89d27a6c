"""Records: one line of JSON for each run, saying what was asked, under which circumstances, and what came of it.

What many runs share, a method with its options and the circumstances, is said once in a file, on a line of its own::

    {"runs":"5d41402a","experiment":"table1","method":"FOFC",...,"machine":"Linux x86_64, 2 cores",...}
    {"of":"5d41402a","graph":"paper-01","n_samples":100,"seed":0,...,"seconds":0.06,"f1":0.4,...}

A line may also say everything itself. A record is flat; here it is three values:

- :class:`Task`: what was asked. Everything that can change the answer is in it, and its ``key`` is its identity.
- :class:`Circumstances`: program versions, machine, day. The version decides whether a run has to be made again.
- :class:`Outcome`: the figures, or the reason there are none.

Lines are only ever appended. Where a key comes twice, as after a retry, the later line counts.
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from unmeasured.errors import UnmeasuredError, listing
from unmeasured.simulate import Categories, Noise, Nonlinearity, Setting

logger = logging.getLogger(__name__)

# Fields that may differ between two runs of the same task by the same version.
VOLATILE = ("code", "seconds", "peak_mib", "machine", "n_jobs", "date")
# Fields of a task that each run has for itself.
_OWN = ("graph", "graph_digest", "n_observed", "n_samples", "seed")
# Two fits of one class may differ by this much in total log-likelihood.
ROUNDING = 0.05


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
    code: str  # a fingerprint of the package's source, which may move while the version stands
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
        task, circumstances, outcome = (
            {f.name: content[f.name] for f in fields(part) if f.name in content}
            for part in (Task, Circumstances, Outcome)
        )
        return cls(Task(**task), Circumstances(**circumstances), Outcome(**outcome))


def latest(records: Iterable[Record]) -> dict[str, Record]:
    """The last record of each task, by key."""
    return {record.task.key: record for record in records}


def read_records(path: Path) -> list[Record]:
    """All whole records of a file; a half-written last line is passed over, the file is left as it is."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UnmeasuredError(f"There are no records at {str(path)!r}.") from None
    except OSError as error:
        raise UnmeasuredError(f"{str(path)!r} cannot be read: {error.strerror}.") from None
    whole, half = _split(content)
    if half:
        logger.warning("The last line of %s is half written; it is passed over.", path)
    return _parsed(whole, path)


def open_records(path: Path) -> list[Record]:
    """Make a file ready to be appended to, and read what it holds.

    The folder is made where there is none. A half-written last line, left by a run that was killed, is dropped.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            file.seek(0)
            content = file.read()
            whole, half = _split(content)
            if half:
                logger.warning("The last line of %s was half written; it is dropped and its run made again.", path)
                file.truncate(len(whole))
            elif content and not content.endswith(b"\n"):
                file.write(b"\n")
    except OSError as error:
        raise UnmeasuredError(f"Records cannot be written to {str(path)!r}: {error.strerror}.") from None
    return _parsed(whole, path)


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


def _split(content: bytes) -> tuple[bytes, bytes]:
    """Whole lines, and a last one that was cut off (empty if it was not)."""
    head, newline, tail = content.rpartition(b"\n")
    try:
        json.loads(tail or b"{}")
    except ValueError:
        return head + newline, tail
    return content, b""


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


def _parsed(content: bytes, path: Path) -> list[Record]:
    records: list[Record] = []
    shared: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(content.decode(errors="replace").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            if not isinstance(told, dict):
                raise ValueError("it is not an object")
            if "runs" in told:
                shared[told["runs"]] = told
            elif "of" in told and told["of"] not in shared:
                raise ValueError(f"no line before it tells of runs {told['of']!r}")
            else:
                records.append(Record.of({**shared.get(told.get("of", ""), {}), **told}))
        except ValueError as error:
            raise UnmeasuredError(
                f"Line {number} of {str(path)!r} is not a record of a run: {error}. "
                "Remove the line, or choose another file."
            ) from None
    return records
