"""Malformed and mutated input for every entry point: an answer or a sentence, nothing else.

Each entry point gets inputs that start from something right and are then damaged, so that many of them pass the first
checks. An input is made from the seed and its number alone: ``--first 123 --inputs 1`` makes number 123 again.

Counted as failures: an exception that is not ours, a warning that is not ours, an error without a sentence, an input
that takes longer than the limit, and a file that was changed although it was refused.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unmeasured.data import datasets
from unmeasured.data.files.reading import read, read_matrix
from unmeasured.data.sample import Sample, as_sample
from unmeasured.errors import UnmeasuredError, UnmeasuredWarning, listing, nearest
from unmeasured.estimators.lges import LGES
from unmeasured.graphs import DAG
from unmeasured.knowledge.known import Knowledge
from unmeasured.models.fit import fit
from unmeasured.output.report.run import Run, run_of
from unmeasured.output.report.screen import screen
from unmeasured.output.report.write import write_run
from unmeasured.results.result import Result
from unmeasured.search.data_check import check
from unmeasured.validation.replicates.records import Records
from unmeasured.validation.replicates.resample import Resampling
from unmeasured.validation.replicates.result import Stability
from unmeasured.validation.replicates.run import Work, stability

Rng = np.random.Generator
Command = Callable[[], Any]

# Cells and values that no file should hold, and some do.
_ODD = (
    "", " ", "NA", "NaN", "nan", "inf", "-inf", "1e309", "-1e308", "1e200", "1e-320", "x", "=1+1", "'", '"', '""', "é",
    "–", "1,5", "1.5.2", "--", "0", "-1", "999", "1e5", "0x10", "1_000", "True", "2020-01-01", ".", "\t", "\r", "\0",
    "\ufeff", "\u2028", "\ud800", "<b>", "Unnamed: 0", "x" * 3000, "٣", "🙂", "a\nb", "#", "%", "{", "[", "[" * 5000,
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    0, 1, -1, 2**70, -0.5, 1e308, 1e-308, math.nan, math.inf, "", "x", "nan", None, True, [], {}, [[]], [0], ["a"],
    {"a": 1}, [1, [2, [3]]], "L1", 10**400,
)  # fmt: skip
_SLOW = 4  # the whole way, through a search, is gone by one input in so many


class Hang(BaseException):
    """An input took longer than its limit."""


@dataclass
class Tally:
    """What became of the inputs of an entry point."""

    entry: str
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, str]] = field(default_factory=list)  # number, kind, where

    @property
    def ok(self) -> bool:
        """Whether nothing but answers and sentences came back."""
        return not self.failures

    def __str__(self) -> str:
        total = sum(self.outcomes.values())
        kinds = ("answered", "refused", "foreign exception", "warning", "no sentence", "hang", "changed")
        counts = ", ".join(f"{self.outcomes[kind]} {kind}" for kind in kinds)
        lines = [f"{self.entry}: {total} inputs: {counts}"]
        seen: Counter[str] = Counter()
        for number, kind, where in self.failures:
            seen[where] += 1
            if seen[where] == 1 and len(seen) <= 20:
                lines.append(f"  number {number}: {kind}: {where}")
        lines += [f"  ... {len(self.failures)} failures of {len(seen)} kinds"] if self.failures else []
        return "\n".join(lines)


def fuzz(
    entry: str,
    inputs: int = 2000,
    seed: int = 0,
    *,
    first: int = 0,
    limit: float = 20.0,
    command: Command | None = None,
    project: Callable[[Path], Any] | None = None,
    verbose: bool = False,
) -> Tally:
    """Send malformed inputs through an entry point and count what comes back.

    Parameters
    ----------
    entry : "rows", "matrix", "model", "knowledge", "result", "records", "command" or "project"
    inputs, seed, first
        How many, from which number on.
    limit
        Seconds after which an input counts as a hang.
    command
        The entry point of the command line, for "command".
    project
        What makes a project of the application in a folder, for "project".
    verbose
        Print the trace of every failure.

    Examples
    --------
    >>> fuzz("matrix", 5).ok
    True
    """
    if entry not in ENTRIES:
        hint = nearest(entry, ENTRIES) or "."
        raise UnmeasuredError(f"There is no entry point {entry!r}{hint} There are {listing(ENTRIES)}.")
    if inputs < 1 or first < 0 or seed < 0 or not limit > 0:
        raise UnmeasuredError("--inputs and the limit are positive, --first and --seed at least 0.")
    tally = Tally(entry)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        bench = Bench(Path(folder), command, project)
        for number in range(first, first + inputs):
            rng = np.random.default_rng([seed, sorted(ENTRIES).index(entry), number])
            kind, where = _outcome(lambda rng=rng: ENTRIES[entry](bench, rng), limit)  # type: ignore[misc]
            tally.outcomes[kind] += 1
            if kind not in ("answered", "refused"):
                tally.failures.append((number, kind, where.splitlines()[-1] if not verbose else where))
    return tally


def _outcome(call: Callable[[], object], limit: float) -> tuple[str, str]:
    """What became of one input, and for a failure where."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnmeasuredWarning)
        try:
            with _limited(limit):
                call()
        except Hang:
            return "hang", f"longer than {limit:g} s: {_place()}"
        except UnmeasuredError as error:
            return ("refused", "") if _is_sentence(str(error)) else ("no sentence", repr(str(error))[:200])
        except Changed as error:
            return "changed", str(error)
        except Warning as error:
            return "warning", f"{_place()}: {error!r:.200}"
        except Exception as error:
            return "foreign exception", f"{_place()}: {error!r:.200}"
    return "answered", ""


class Changed(Exception):
    """A file that was refused is not as it was."""


def _place() -> str:
    """The last place in this package that an exception went through, after the whole trace."""
    trace = traceback.format_exc(limit=-12)
    frames = traceback.extract_tb(sys.exc_info()[2])
    ours = [frame for frame in frames if "unmeasured" in frame.filename and "fuzz" not in frame.filename]
    last = ours[-1] if ours else frames[-1]
    return f"{trace}\n{Path(last.filename).name}:{last.lineno} {last.name}"


def _is_sentence(text: str) -> bool:
    return len(text) > 15 and text.rstrip().endswith((".", ")", "?", "!", "'", '"'))


# How many times its limit an input may take that hardly gets the processor.
_PATIENCE = 10.0


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise :class:`Hang` inside after so many seconds, where the system has alarms; else after the fact."""
    if not hasattr(signal, "setitimer"):
        began = time.monotonic()
        yield
        if time.monotonic() - began > seconds:
            raise Hang
        return

    began, cpu = time.monotonic(), time.process_time()

    def ring(*_: object) -> None:
        # On a busy machine seconds pass in which nothing is done: what waits for the processor does not hang.
        if time.process_time() - cpu > 0.5 * seconds or time.monotonic() - began > _PATIENCE * seconds:
            raise Hang
        signal.setitimer(signal.ITIMER_REAL, 0.5 * seconds)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


# Damage -----------------------------------------------------------------------------------------------------


def _one_in(rng: Rng, n: int) -> bool:
    return bool(rng.integers(n) == 0)


def _of(rng: Rng, choices: Sequence[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _mostly(rng: Rng, good: Any, *bad: Any) -> Any:
    """The first, nine times in ten: what is wrong in every part is refused at the first check."""
    return good if rng.integers(10) else _of(rng, bad)


def _damaged_text(rng: Rng, text: str, odd: Sequence[str] = _ODD) -> str:
    """The text with a few characters, cells or lines put in, taken out, doubled or swapped."""
    for _ in range(max(int(rng.integers(-1, 4)), 0)):
        lines = text.split("\n")
        i, at = int(rng.integers(len(lines))), int(rng.integers(len(text) + 1))
        kind = int(rng.integers(8))
        if kind == 0:
            text = text[:at] + _of(rng, odd) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + int(rng.integers(1, 20)) :]
        elif kind == 2:
            lines.insert(i, lines[int(rng.integers(len(lines)))])
            text = "\n".join(lines)
        elif kind == 3:
            del lines[i]
            text = "\n".join(lines)
        elif kind == 4:
            cells = lines[i].split(",")
            cells[int(rng.integers(len(cells)))] = _of(rng, odd)
            lines[i] = ",".join(cells)
            text = "\n".join(lines)
        elif kind == 5:
            text = text.replace(_of(rng, (",", ".", "\n", "1")), _of(rng, (";", "\t", " ", ",", "\r\n", "")))
        elif kind == 6:
            text = text[:at]
        else:
            lines[i] = _of(rng, odd)
            text = "\n".join(lines)
    return text


def _damaged_bytes(rng: Rng, content: bytes) -> bytes:
    """The bytes with a few of them changed, cut off, or in another encoding."""
    kind = int(rng.integers(20))
    if kind == 0 and content:
        changed = bytearray(content)
        for _ in range(int(rng.integers(1, 6))):
            changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
        return bytes(changed)
    if kind == 1:
        return content[: int(rng.integers(len(content) + 1))]
    if kind == 2:
        return content.decode(errors="replace").encode("utf-16")
    return content


def _damaged_tree(rng: Rng, tree: Any) -> Any:
    """JSON with a few of its parts replaced, removed or doubled."""
    for _ in range(int(rng.integers(1, 3))):
        places = list(_places(tree))
        if not places:
            return tree
        # Short paths first, so that the many numbers of a matrix do not take all the damage.
        depth = int(rng.integers(1, 1 + max(len(place) for place in places)))
        place = _of(rng, [place for place in places if len(place) <= depth])
        node = tree
        for key in place[:-1]:
            node = node[key]
        if _one_in(rng, 4):
            del node[place[-1]]
        elif _one_in(rng, 4) and isinstance(node, list):
            node.append(deepcopy(node[place[-1]]))
        else:
            node[place[-1]] = deepcopy(_of(rng, _VALUES))  # a list of its own, which later damage may change
    return tree


def _places(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all parts of a tree."""
    keys: Any = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield (*above, key)
        yield from _places(tree[key], (*above, key))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")


# Entry points -----------------------------------------------------------------------------------------------


@dataclass
class Bench:
    """What inputs start from, made once."""

    folder: Path
    command: Command | None = None
    project: Callable[[Path], Any] | None = None
    _kept: dict[str, Any] = field(default_factory=dict)

    def file(self, name: str, content: bytes) -> Path:
        """A file with that content."""
        path = self.folder / name
        path.write_bytes(content)
        return path

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What ``make`` gives, made at the first call."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    @property
    def rows(self) -> pd.DataFrame:
        """Sixty answers to five items."""
        return self.once("rows", _rows)  # type: ignore[no-any-return]

    @property
    def sample(self) -> Sample:
        """A small sample that a search is quick on."""
        return self.once("sample", lambda: as_sample(_rows()))  # type: ignore[no-any-return]

    @property
    def search(self) -> LGES:
        """A fitted search."""
        return self.once("search", lambda: LGES().fit(self.sample))  # type: ignore[no-any-return]

    @property
    def result(self) -> str:
        """A result with its run as JSON."""
        return self.once("result", lambda: run_of(self.search).to_json())  # type: ignore[no-any-return]

    @property
    def result_of_pair(self) -> str:
        """A result with a group of two latents and an edge as JSON."""
        return self.once("pair", _result_of_pair)  # type: ignore[no-any-return]

    @property
    def work(self) -> Work:
        """What records of replicates belong to."""
        draw = Resampling.of(self.search.sample_, "bootstrap", "ml")
        return self.once("work", lambda: Work.of(self.search, draw, 0, True))  # type: ignore[no-any-return]

    @property
    def stable(self) -> Stability:
        """Three replicates."""
        return self.once("stable", lambda: stability(self.search, 3))  # type: ignore[no-any-return]

    def opened(self) -> Any:
        """A project of the application with rows and a result."""
        assert self.project is not None
        folder = self.folder / "project"
        folder.mkdir(exist_ok=True)
        project = self.project(folder)
        project.open_file("rows.csv", _encoded(self.rows.to_csv(index=False)))
        project.found(Run(self.search.result_).to_json())
        return project

    @property
    def saved(self) -> tuple[str, dict[str, bytes]]:
        """The name of a project's file, and its parts."""
        return "mine.unmeasured", self.once("saved", lambda: _parts_of(self.opened().save()))

    @property
    def records(self) -> str:
        """Their records."""
        lines = (replicate.line(self.work.about) for replicate in self.stable.replicates)
        return self.once("records", lambda: "".join(f"{line}\n" for line in lines))  # type: ignore[no-any-return]


def _rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=(60, 1)) + 0.7 * rng.normal(size=(60, 5)), 2)
    return pd.DataFrame(values, columns=list("abcde"))


def _result_of_pair() -> str:
    edges = [
        *((latent, x) for latent in ("A", "B") for x in "abcdef"),
        ("A", "C"),
        ("B", "C"),
        *(("C", x) for x in "gh"),
    ]
    dag = DAG.from_edges(edges, latents=["A", "B", "C"])
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 2)) @ rng.uniform(0.4, 1, size=(2, 8)) + rng.normal(size=(200, 8))
    return Result(dag.cpdag(), fit(dag, pd.DataFrame(rows, columns=list("abcdefgh")))).to_json()


def _searched(rng: Rng, sample: Sample) -> None:
    """One in a few goes all the way to the last word of the answer."""
    str(check(sample))
    if _one_in(rng, _SLOW) and 2 <= len(sample.names) <= 8:
        result = LGES(max_group_size=2).fit(sample).result_
        screen(result), result.summary(), result._repr_html_()


def _table(bench: Bench, rng: Rng) -> Any:
    """A table with a few cells, names or types changed."""
    frame = bench.rows.iloc[: _mostly(rng, 60, 12, 5, 1, 0), : _mostly(rng, int(rng.integers(2, 6)), 0, 1)].astype(
        object
    )
    cells = (
        *_VALUES,
        *_ODD[:12],
        np.array([1, 2]),
        np.float32(1),
        pd.NaT,
        pd.Timestamp("2020-01-01"),
        1j,
        b"x",
        object(),
    )
    for _ in range(max(int(rng.integers(-3, 4)), 0)):
        if frame.size:
            j = int(rng.integers(frame.shape[1]))
            column = list(frame.iloc[:, j])
            column[int(rng.integers(len(column)))] = _of(rng, cells)
            cells_of_column = np.empty(len(column), dtype=object)
            cells_of_column[:] = column
            frame.isetitem(j, cells_of_column)
    if frame.size and _one_in(rng, 4):
        factor = 10.0 ** int(rng.integers(-320, 308))
        with np.errstate(all="ignore"):
            frame.isetitem(0, bench.rows.iloc[: len(frame), 0].to_numpy() * factor)
    if _one_in(rng, 10):
        names = ("a", "b", "", None, 1, ("x", 1), "age", "id", "\0", "a" * 500, math.nan, "\ud800")
        frame.columns = pd.Index([_of(rng, names) for _ in range(frame.shape[1])], dtype=object, tupleize_cols=False)
    kind = int(rng.integers(6))
    if kind == 0:
        return frame.to_numpy()
    if kind == 1:
        return frame.to_numpy().tolist()
    if kind == 2 and _one_in(rng, 3):
        return _of(rng, (*_VALUES, {"a": [1.0, 2.0]}, np.zeros((2, 2, 2)), np.array(1.0), {1, 2}, "file.csv", object()))
    try:
        return frame.infer_objects().astype(float) if kind == 3 else frame.infer_objects()
    except (TypeError, ValueError, OverflowError, np.exceptions.ComplexWarning):
        return frame


def _odd_sample(rng: Rng) -> pd.DataFrame:
    """Rows that are right and odd: totals and copies among items, rare answers, outliers, missing values, few rows."""
    p, n, k = int(rng.integers(4, 9)), int(_of(rng, (8, 15, 30, 60, 150))), int(rng.integers(1, 4))
    loadings = rng.normal(size=(k, p)) * (rng.random((k, p)) < 0.6) * _of(rng, (0.3, 1.0, 3.0))
    rows = rng.normal(size=(n, k)) @ loadings + rng.normal(size=(n, p)) * _of(rng, (0.2, 1.0))
    noise = rng.normal(size=n) * _of(rng, (0.0, 1e-9, 1e-3, 0.1))
    for kind in rng.integers(8, size=int(rng.integers(0, 4))):
        j = int(rng.integers(p))
        if kind == 0:
            rows[:, j] = rows.sum(axis=1) - rows[:, j] + noise
        elif kind == 1:
            rows[:, j] = rows[:, (j + 1) % p] * _of(rng, (1, -1)) + noise
        elif kind == 2:
            rows[:, j] = rows[:, j] > np.quantile(rows[:, j], _of(rng, (0.5, 0.9, 0.97)))
        elif kind == 3:
            rows[:, j] = np.exp(np.clip(2.0 * rows[:, j], -50.0, 50.0))
        elif kind == 4:
            rows[:, j] = rows[:, j].round()
        elif kind == 5:
            rows[:, j] *= 10.0 ** int(rng.integers(-8, 9))
        elif kind == 6:
            rows[0, j] += 1e4
        else:
            rows[:, j] = np.where(rng.random(n) < _of(rng, (0.5, 0.9)), rows[:, j], math.nan)
    if _one_in(rng, 2):
        rows = np.clip((rows * _of(rng, (0.5, 1.0, 2.0)) + 3.0).round(), 1, _of(rng, (2, 3, 5, 7)))
        if _one_in(rng, 2):
            rows[:, int(rng.integers(p))] = np.nansum(rows, axis=1)
    if _one_in(rng, 3):
        rows[rng.random(rows.shape) < 0.15] = math.nan
    return pd.DataFrame(rows).add_prefix("q")


def fuzz_rows(bench: Bench, rng: Rng) -> None:
    """Rows: tables from Python, right and odd or damaged, or a file."""
    if _one_in(rng, 5):
        search = LGES(**_of(rng, ({}, {}, {"tolerance": 0}, {"max_group_size": 1}, {"criterion": "delta"})))
        run = run_of(search.fit(_odd_sample(rng)))
        screen(run.result), run.result.summary(), run.to_json(), run.result.fit.modification_indices()
        return
    options: dict[str, Any] = {
        "cor": _mostly(rng, _of(rng, ("pearson", "auto", "auto", "spearman-normal")), "polychoric", "x", None),
        "missing": _mostly(rng, _of(rng, ("ml", "listwise", "pairwise")), 3, ""),
    }
    if _one_in(rng, 2):
        _searched(rng, as_sample(_table(bench, rng), **options))
        return
    items = bench.rows if _one_in(rng, 2) else (2 * bench.rows + 3).round().clip(1, 5)
    mark = _of(rng, (",", ",", ";", "\t", " "))
    content = _damaged_bytes(rng, _encoded(_damaged_text(rng, items.to_csv(index=_one_in(rng, 3), sep=mark))))
    path = bench.file(f"rows{_mostly(rng, '.csv', '.txt', '.tsv', '.csv.gz', '.sav', '.dta', '.xyz', '')}", content)
    frame = read(
        path,
        columns=_mostly(rng, None, ["a", "b"], ["z"], "a", []),
        separator=_mostly(rng, None, ",", "", "ab", "("),
        encoding=_mostly(rng, "utf-8", "latin-1", "utf-16", "hex", "nonsense", ""),
        header=_mostly(rng, None, True, False),
    )
    _searched(rng, as_sample(frame, **options))


def fuzz_matrix(bench: Bench, rng: Rng) -> None:
    """A matrix: arrays and frames from Python, text as articles print it, a file."""
    cov = bench.rows.corr().round(2)
    options: dict[str, Any] = {
        "n_samples": _mostly(rng, 60, 60.5, math.inf, 3, 0, -1, "x", None, math.nan, 10**400, True),
        "sd": _mostly(rng, None, [1, 2, 3, 4, 5], [1, 2], [0] * 5, "x", 1.0, [math.nan] * 5, [1e200] * 5),
        "repair": _one_in(rng, 2),
    }
    kind = int(rng.integers(4))
    if kind == 0:
        matrix: Any = cov.to_numpy().astype(object)
        for _ in range(int(rng.integers(0, 3))):
            i, j, value = *rng.integers(5, size=2), _of(rng, (*_VALUES, 0.5, -0.5, 1.0, 2.0))
            matrix[i, j] = value
            if not _one_in(rng, 4):
                matrix[j, i] = value
        matrix = matrix.tolist() if _one_in(rng, 2) else matrix
        _searched(rng, as_sample(cov=matrix, names=_mostly(rng, None, list("abcde"), ["a"], "abcde", 3), **options))
        return
    if kind == 1:
        names = [_of(rng, ("a", "b", "c", "d", "e", "", 1, None)) if _one_in(rng, 20) else name for name in "abcde"]
        frame = cov.set_axis(names, axis=0 if _one_in(rng, 2) else 1)
        _searched(rng, as_sample(cov=frame.iloc[:, rng.permutation(5)] if _one_in(rng, 6) else frame, **options))
        return
    lower = [
        " ".join([f"{i + 1}. {name}", *(f"{v:.2f}" for v in cov.iloc[i, : i + 1])]) for i, name in enumerate("abcde")
    ]
    text = _damaged_text(rng, "\n".join(lower) if kind == 2 else cov.to_csv())
    if _one_in(rng, 2):
        source: Any = text + "\n"
    else:
        source = bench.file("matrix.csv", _damaged_bytes(rng, _encoded(text)))
    frame = read_matrix(
        source,
        names=_mostly(rng, None, list("abcde"), ["a"], "abcde", [1, 2, 3, 4, 5]),
        diagonal=not _one_in(rng, 12),
        separator=_mostly(rng, None, ",", " ", ";", "", 3),
    )
    _searched(rng, as_sample(cov=frame, **options))


_LATENTS, _ITEMS = ("f", "g", "h"), tuple(f"x{i}" for i in range(1, 10))
_GOOD = ("", "", "", "", "", "", "NA*", "0*", "1*", "-0.5*", ".25*")
_BAD = ("1e-7*", "1e12*", "1e300*", "a*", "start(1)*", "c(1,2)*", "1*1*", "-*", "?")


def _modifier(rng: Rng) -> str:
    return str(_of(rng, _BAD) if _one_in(rng, 60) else _of(rng, _GOOD))


def _model_text(rng: Rng) -> str:
    lines = []
    for _ in range(int(rng.integers(1, 6))):
        kind, names = int(rng.integers(6)), [*_LATENTS, *_ITEMS]
        if kind < 3:
            items = rng.choice(_ITEMS, int(rng.integers(1, 5)), replace=_one_in(rng, 20))
            lines.append(f"{_of(rng, _LATENTS)} =~ " + " + ".join(_modifier(rng) + x for x in items))
        elif kind == 3:
            lines.append(f"{_of(rng, names)} ~ {_modifier(rng)}{_of(rng, names)}")
        elif kind == 4:
            lines.append(f"{_of(rng, names)} ~~ {_modifier(rng)}{_of(rng, names)}")
        else:
            lines.append(_of(rng, ("f =~ x1 + x2 + x3", "g =~ x4 + x5 + x6", "h =~ x7 + x8 + x9", "f ~~ g", "g ~ f")))
    return _of(rng, ("\n", ";", "\n# remark\n")).join(lines)  # type: ignore[no-any-return]


_SYMBOLS = (
    "=~",
    "~",
    "~~",
    "+",
    "*",
    ":=",
    "==",
    "(",
    ")",
    "|",
    "%",
    "#",
    "\n",
    ";",
    "1",
    "-1",
    "NA",
    "x1",
    "f",
    "'",
    "\0",
)


def fuzz_model(bench: Bench, rng: Rng) -> None:
    """Model text, fitted to the end where it can be."""
    data = bench.once("holzinger", lambda: datasets.load("holzinger_swineford"))
    text = _model_text(rng)
    if _one_in(rng, 5):
        text = _damaged_text(rng, text, _SYMBOLS)
    if _one_in(rng, 60):
        text = _of(rng, _VALUES)
    found = fit(
        text,
        cov=data.frame(),
        n_samples=data.n_samples,
        correlate_exogenous=not _one_in(rng, 3),
        scale_latents=_of(rng, ("variance", "first-indicator")),
        correlate_outcomes=_one_in(rng, 3),
        count=_of(rng, ("dimension", "parameters")),
    )
    found.summary(), found.parameters, found.r2, found.srmr, found.rmsea_ci, found.bic


def fuzz_knowledge(bench: Bench, rng: Rng) -> None:
    """Knowledge: keywords from Python, TOML, lavaan text; a search with it where it can be."""
    kind = int(rng.integers(3))
    if kind == 0:
        parts: dict[str, tuple[Any, ...]] = {
            "groups": ({"f": ["a", "b"]}, {"f": ["a"], "g": ["b", "c"]}, {"f": []}, {"f": "ab"}, {1: ["a"]}),
            "together": ([["a", "b"]], [["a"]], ["ab"], [["a", "z"]], "ab", [[]]),
            "apart": ([["a", "e"]], [["a", "a"]], [1], [["a", "b", "c", "d", "e"]]),
            "n_latents": (1, 2, "at most 1", "at least 9", 0, -1, 1.5, "many", True, 10**30),
            "n_groups": (1, "at most 2", "at least 3", [], {}),
            "group_size": (1, 2, "at most 2", 99),
            "sizes": ({"f": 1}, {"z": 1}, {"f": -1}, 3),
            "latents": ({"f": ["u"]}, {"f": ["u", "v"]}, {"f": []}, {"f": ["a"]}),
            "tiers": ([["f"], ["g"]], [["f"], ["f"]], [[]], ["f", "g"], [["z"]]),
            "required": (["f -> g"], ["f -> f"], ["f - g"], ["->"], [["f", "g"]], ["f -> g", "g -> f"], [1]),
            "forbidden": (["f -> g"], ["f -- g"], ["z -> g"], "f -> g"),
        }  # fmt: skip
        keys = rng.choice(list(parts), int(rng.integers(1, 4)), replace=False)
        chosen = {key: _of(rng, parts[key]) if not _one_in(rng, 12) else _of(rng, _VALUES) for key in keys}
        if _one_in(rng, 2):
            chosen["groups"] = {"f": ["a", "b"], "g": ["c", "d"]}
        known = Knowledge(**chosen)
    else:
        groups = '[groups]\nf = ["a", "b"]\ng = ["c", "d"]\n'
        toml = 'n_groups = "at most 3"\ntogether = [["a", "b"]]\nrequired = ["f -> g"]\n' + groups
        text = toml if kind == 1 else _of(rng, ("f =~ a + b\ng =~ c + d\ng ~ f", _model_text(rng)))
        odd = (
            _SYMBOLS if kind == 2 else ("[", "]", '"', "=", "{", "[[[", "1", "true", "groups", "1979-05-27", "[" * 5000)
        )
        content = _damaged_bytes(rng, _encoded(_damaged_text(rng, text, odd)))
        known = Knowledge.read(bench.file("known.toml" if kind == 1 else "known.lav", content))
    str(known), known.statements
    LGES(knowledge=known, max_group_size=2).fit(bench.sample).result_.summary()


def _damaged_json(rng: Rng, text: str) -> str:
    if _one_in(rng, 4):
        return _damaged_text(rng, text)
    tree = _damaged_tree(rng, json.loads(text))
    return json.dumps(tree)


def fuzz_result(bench: Bench, rng: Rng) -> None:
    """A result.json, read and shown in every way."""
    run = Run.from_json(_damaged_json(rng, bench.result_of_pair if _one_in(rng, 3) else bench.result))
    result = run.result
    screen(result, run.about.seconds), result.summary(), result._repr_html_()
    result.to_lavaan(), result.to_semopy(), run.to_json(), result.edges, result.runners_up, result.edge_probabilities
    result.rename().summary()
    if _one_in(rng, 25):
        write_run(run, bench.folder / "report")


def fuzz_records(bench: Bench, rng: Rng) -> None:
    """Records of replicates, which are refused unchanged or read; and a stability.json."""
    if _one_in(rng, 2):
        found = Stability.from_json(_damaged_json(rng, bench.stable.to_json()))
        found.summary(), found.to_record(), found.consensus(0.5), found.coassignment
        found.is_of(bench.search.graph_)
        return
    if _one_in(rng, 3):
        text = _damaged_text(rng, bench.records)
    else:
        lines = [_damaged_json(rng, line) if _one_in(rng, 3) else line for line in bench.records.splitlines()]
        text = "\n".join(lines) + "\n" * int(rng.integers(2))
    content = _damaged_bytes(rng, _encoded(text))
    path = bench.file("records.jsonl", content)
    try:
        kept = Records(path, bench.work.about)
    except UnmeasuredError:
        if path.read_bytes() != content:
            raise Changed(f"{len(content)} bytes became {len(path.read_bytes())}") from None
        raise
    for replicate in kept.done.values():
        kept.add(replicate)
    again = Records(path, bench.work.about)
    if set(again.done) != set(kept.done):
        raise Changed("records that were read are not there any more")
    if kept.done:
        replicates = tuple(kept.done.values())
        Stability(bench.search.graph_, bench.sample.names, "bootstrap", replicates).summary()


_OPTIONS: dict[str, tuple[str, ...]] = {
    "--columns": ("a,b,c,d", "*", "z", "", "[", "a,a", "a*"),
    "--n": ("60", "inf", "0", "-1", "x", "nan", "1e400", "3"),
    "--cor": ("auto", "pearson", "polychoric", "x", ""),
    "--missing": ("ml", "listwise", "pairwise", "x"),
    "--penalty": ("1", "2", "0", "-1", "nan", "inf", "x", "1e300"),
    "--max-group-size": ("1", "2", "0", "-1", "x"),
    "--time-limit": ("2", "0", "-1", "nan", "x"),
    "--seed": ("0", "-1", "x", "99999999999999999999999"),
    "--out": ("out", "rows.csv", "", "rows.csv/x", "a" * 300, "out/deep"),
    "--title": ("", "<script>", "\ud800", "x" * 500),
    "--knowledge": ("known.toml", "none", "", "rows.csv", "."),
    "--published": ("model.lav", "none", "result.json", "rows.csv"),
    "--to": (
        "dot",
        "lavaan",
        "svg",
        "x",
        "",
        "json",
        "tetrad",
        "r",
        "docx",
        "xlsx",
        "latex",
        "html",
        "methods",
        "bibtex",
    ),
    "--data": ("rows.csv", "", "\ud800", '"; stop()'),
    "--exclude": ("e", "*", "z", "", "[", "a:z", "c:a"),
    "--na": ("9,99", "", "x", "nan", ",", "1e400"),
    "--reverse": ("a", "z", "", "*", "a:c", "school"),
    "--sheet": ("x", "", "0"),
    "--covariates": ("a", "z", "", "*", "a,a"),
    "--outcomes": ("b", "z", "", "*", "a"),
    "--n-latents": ("1", "2", "0", "-1", "99", "x"),
    "--view": ("full", "latents", "x"),
    "--style": ("print", "x"),
    "--name": ("L1=A", "L1", "=", "L1=", "x=y", "L1=a"),
    "--replicates": ("1", "2", "0", "-1", "x"),
    "--method": ("bootstrap", "subsample", "parametric", "x"),
    "--threshold": ("0.5", "2", "-1", "nan", "x"),
    "--records": ("records.jsonl", "rows.csv", "", ".", "result.json", "rows.csv/x"),
    "--penalties": ("1,2", "0", "x", ",", "1,,2", "nan", "-1"),
    "--latents": ("2", "0", "-1", "99"),
    "--observed": ("6", "0", "-1", "2"),
    "--samples": ("30", "0", "-1", "1"),
    "--common-children": ("0", "1", "-1", "50"),
    "--parameters": ("realistic", "paper", "x"),
    "--n-jobs": ("1", "0", "-7", "x"),
    "--tolerance": ("auto", "0.05", "0", "-1", "nan", "x", "9"),
    "--holdout": ("0.5", "0", "1", "-1", "nan", "x", "0.01"),
    "--stratify-by": ("school", "none", "a", ""),
    "--estimator": ("MLR", "MLM", "WLSMV", "x", ""),
    "--groups": ("school", "none", "a", ""),
    "--equal": ("loadings", "loadings,intercepts", "x", ",", "intercepts"),
    "--score-method": ("regression", "bartlett", "x"),
    "--keep": ("school", "none", "a", ""),
    "--cause": ("L1", "a", "none", ""),
    "--effect": ("a", "L1", "none", ""),
    "--confidence": ("0.9", "0", "1", "nan", "x", "2"),
    "--max-rows": ("3", "0", "-1", "x"),
    "--port": ("x", "-1", "99999999"),
}
_FLAGS = (
    "--json", "--quiet", "--plain-names", "--r2", "--no-header", "--header", "--nonsense", "--first-indicator",
    "--standard-errors", "--decompose",
)  # fmt: skip
_ARGUMENTS = (
    "rows.csv",
    "people.csv",
    "damaged.csv",
    "matrix.csv",
    "result.json",
    "model.lav",
    "none.csv",
    "",
    ".",
    "a\0b",
)
_COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "discover": (("rows",), ("--columns", "--exclude", "--na", "--reverse", "--sheet", "--covariates", "--outcomes",
                             "--groups", "--n-latents", "--n", "--cor", "--missing", "--penalty", "--max-group-size",
                             "--time-limit", "--seed", "--out", "--title", "--knowledge", "--published", "--n-jobs",
                             "--tolerance", "--holdout", "--stratify-by")),
    "check": (("rows",), ("--columns", "--exclude", "--na", "--reverse", "--covariates", "--n", "--cor", "--missing")),
    "fit": (("model", "people"), ("--columns", "--exclude", "--na", "--reverse", "--n", "--cor", "--missing",
                                  "--estimator", "--groups", "--equal")),
    "invariance": (("model", "people"), ("--groups", "--groups", "--estimator", "--out", "--exclude",
                                          "--na", "--reverse")),
    "scores": (("result", "people"), ("--columns", "--exclude", "--na", "--reverse", "--score-method", "--keep",
                                      "--out")),
    "effects": (("result",), ("--cause", "--effect", "--confidence", "--out")),
    "diagnose": (("result",), ("--max-rows",)),
    "serve": ((), ("--port",)),
    "compare": (("model", "result", "rows"), ("--columns", "--exclude", "--na", "--reverse", "--n", "--cor",
                                              "--missing")),
    "report": (("result",), ("--out", "--title", "--name", "--published")),
    "export": (("result",), ("--to", "--to", "--out", "--view", "--style", "--data")),
    "simulate": (("new",), ("--latents", "--observed", "--samples", "--common-children", "--max-group-size",
                            "--parameters", "--seed")),
    "datasets": (("set",), ()),
    "stability": (("rows",), ("--columns", "--n", "--cor", "--replicates", "--method", "--threshold", "--records",
                              "--seed", "--n-jobs", "--out")),
    "penalty-path": (("rows",), ("--columns", "--n", "--penalties", "--max-group-size", "--out")),
    "nonsense": ((), ()),
}  # fmt: skip
_USUAL = {
    "rows": "rows.csv",
    "people": "people.csv",
    "model": "model.lav",
    "result": "result.json",
    "new": "new.csv",
    "set": "multitasking",
}


def fuzz_command(bench: Bench, rng: Rng) -> None:
    """The command line: arguments that are wrong, files that are damaged."""
    if bench.command is None:
        raise UnmeasuredError(
            "The command line is tried by the command line: python -m benchmarks fuzz --entry command."
        )
    _lay_out(bench, rng)
    name = _of(rng, tuple(_COMMANDS))
    wanted, options = _COMMANDS[name]
    words = [_USUAL[kind] if not _one_in(rng, 8) else _of(rng, _ARGUMENTS) for kind in wanted]
    for option in rng.permutation(options)[: int(rng.integers(0, 4))] if options else ():
        good, *bad = _OPTIONS[str(option)]
        name_of = {"--score-method": "--method"}.get(str(option), str(option))  # another command has one of that name
        words += [name_of, good if _one_in(rng, 2) else _of(rng, bad)]
    words += [flag for flag in _FLAGS if _one_in(rng, 25)]
    if name == "stability" and "--replicates" not in words:
        words += ["--replicates", "1"]
    if name == "discover" and "--time-limit" not in words:
        words += ["--time-limit", "3"]
    if name == "serve" and "--port" not in words:
        words += ["--port", "x"]  # a server that starts does not come back
    elif _one_in(rng, 15):
        words = words[:-1]
    code, told = _called(bench.command, [name, *words])
    if code not in (0, 1, 2, 130):
        raise RuntimeError(f"exit code {code} of {name} {words}")
    if code == 2 and not (told.strip() and "Traceback" not in told):
        raise RuntimeError(f"exit code 2 without a sentence: {name} {words}")
    if code == 2:
        raise UnmeasuredError(told.strip().splitlines()[-1].ljust(20) + ".")


def _lay_out(bench: Bench, rng: Rng) -> None:
    """The files that commands are given, some of them damaged."""
    text = bench.rows.to_csv(index=False)
    bench.file("rows.csv", _encoded(text))
    people = bench.rows.assign(school=np.where(np.arange(len(bench.rows)) % 2, "north", "south"))
    bench.file("people.csv", _encoded(people.to_csv(index=False)))
    bench.file("damaged.csv", _damaged_bytes(rng, _encoded(_damaged_text(rng, text))))
    bench.file("matrix.csv", _encoded(bench.rows.corr().to_csv()))
    bench.file("result.json", _encoded(bench.result if _one_in(rng, 2) else _damaged_json(rng, bench.result)))
    bench.file("model.lav", _encoded("f =~ a + b + c\ng =~ d + e" if _one_in(rng, 2) else _model_text(rng)))
    bench.file("known.toml", b'[groups]\nf = ["a", "b"]\n')
    bench.file("records.jsonl", b"" if _one_in(rng, 2) else b'{"my":"thesis"}')


def _called(command: Command, words: Sequence[str]) -> tuple[int, str]:
    """Exit code and standard error of the command line, called in this process."""
    out, err, argv = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["unmeasured", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            command()
    except SystemExit as left:
        return (left.code if isinstance(left.code, int) else 0), err.getvalue()
    finally:
        sys.argv = argv
    return 0, err.getvalue()


def fuzz_project(bench: Bench, rng: Rng) -> None:
    """A project of the application, saved and damaged; the one that is open stays as it is where it is refused."""
    if bench.project is None:
        raise UnmeasuredError("Projects are tried by the command line: python -m benchmarks fuzz --entry project.")
    name, parts = bench.saved
    if _one_in(rng, 3):
        part = _of(rng, tuple(parts))
        parts = {**parts, part: _damaged_bytes(rng, _encoded(_damaged_text(rng, parts[part].decode())))}
    else:
        part = _of(rng, tuple(key for key in parts if key.endswith(".json")))
        parts = {**parts, part: _encoded(_damaged_json(rng, parts[part].decode()))}
    if _one_in(rng, 20):
        del parts[_of(rng, tuple(parts))]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, content in parts.items():
            archive.writestr(key, content)
    content = out.getvalue() if not _one_in(rng, 10) else _damaged_bytes(rng, out.getvalue())
    project = bench.opened()
    before = project.save()
    try:
        project.open_file(name, content)
    except UnmeasuredError:
        if _parts_of(project.save()) != _parts_of(before):
            raise Changed("the project that was open is not as it was") from None
        raise
    project.save()
    if project.run is not None:
        project.current().summary(), project.diagram()


def _parts_of(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as parts:
        return {name: parts.read(name) for name in parts.namelist()}


ENTRIES: dict[str, Callable[[Bench, Rng], None]] = {
    "rows": fuzz_rows,
    "matrix": fuzz_matrix,
    "model": fuzz_model,
    "knowledge": fuzz_knowledge,
    "result": fuzz_result,
    "records": fuzz_records,
    "command": fuzz_command,
    "project": fuzz_project,
}
