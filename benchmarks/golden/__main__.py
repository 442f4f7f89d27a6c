"""The command ``python -m benchmarks golden``.

::

    python -m benchmarks golden                                       run all cases, print what differs from the record
    python -m benchmarks golden 'fits/*' exact/holzinger              only these
    python -m benchmarks golden --accept 'fits/*' --because "..."     run these, store what they give now
    python -m benchmarks golden --accept all --because "..."          all of them
    python -m benchmarks golden --list                                the names of the cases

The exit status is 1 if a difference gates (:mod:`benchmarks.golden.compare`). ``--because`` is written to *Numbers that
moved* in the changelog if structure or numbers of cases that were in the record have moved.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from benchmarks.golden import changelog, record
from benchmarks.golden.cases import CASES, Case
from benchmarks.golden.compare import Difference, differences, names_of, report
from benchmarks.golden.run import run_many


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    given = _parser().parse_args(arguments)
    if given.list:
        print("\n".join(case.name if case.is_runnable else f"{case.name} (skipped here)" for case in CASES.values()))
        return 0
    if (given.accept is None) != (given.because is None) or (given.because is not None and not given.because.strip()):
        return _refuse("--accept names the cases and --because gives the reason: both, or neither.")
    if given.accept and given.names:
        return _refuse("Give the names to --accept alone.")
    stored = record.read()
    names = _chosen(given.accept or given.names, dict.fromkeys((*CASES, *stored)))
    if isinstance(names, str):
        return _refuse(names)
    chosen, gone = [CASES[name] for name in names if name in CASES], [name for name in names if name not in CASES]
    entries, found = _run([case for case in chosen if case.is_runnable], stored, given.jobs)
    for name in gone:
        found += differences(name, stored[name], None)
    print(report(found, len(entries) + len(gone), is_full=given.full))
    skipped = [case.name for case in chosen if not case.is_runnable]
    if skipped:
        print(f"Skipped, because data or libraries are not here: {', '.join(skipped)}.")
    if not given.accept:
        gating = names_of(found)
        if gating:
            print(
                f'To accept: python -m benchmarks golden --accept {" ".join(map(repr, gating[:3]))} ... --because "..."'
            )
        return int(bool(gating))
    kept = {name: entry for name, entry in stored.items() if name not in gone}
    record.write(kept | entries)
    moved = [name for name in names_of(found, ("structure", "numbers")) if name in stored]
    if moved:
        changelog.add(changelog.entry(given.because, moved))
        print(f"Stored; the reason is in {changelog.CHANGELOG.name} under Numbers that moved.")
    else:
        print("Stored; no structure or number of a known case moved, so the changelog stays as it is.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks golden", description=(__doc__ or "").split("::")[0], allow_abbrev=False
    )
    parser.add_argument("names", nargs="*", help="cases to run, patterns such as 'fits/*' too; all if left out")
    parser.add_argument("--accept", nargs="+", metavar="NAME", help="store what these cases give; 'all' for all")
    parser.add_argument("--because", metavar="REASON", help="why, for the changelog")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--full", action="store_true", help="show every entry that differs")
    parser.add_argument("--list", action="store_true", help="list the cases")
    return parser


def _refuse(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


def _chosen(patterns: Sequence[str], names: Iterable[str]) -> list[str] | str:
    """Return the names of cases and entries that match, or a sentence if a pattern matches none."""
    known = list(names)
    if not patterns or list(patterns) == ["all"]:
        return known
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            return f"No case matches {pattern!r}; --list shows them all."
    return [name for name in known if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _run(
    cases: Sequence[Case], stored: dict[str, record.Entry], n_jobs: int
) -> tuple[dict[str, record.Entry], list[Difference]]:
    """Run cases, showing how far it is; return their entries and what differs, in the order of the cases."""
    began, entries = time.monotonic(), {}
    for case, entry in run_many(cases, n_jobs):
        entries[case.name] = entry
        if sys.stderr.isatty():
            print(f"\r{len(entries)} of {len(cases)} cases, {time.monotonic() - began:.0f} s", end="", file=sys.stderr)
    print(f"\r{len(entries)} cases in {time.monotonic() - began:.0f} s.", file=sys.stderr)
    found = [d for case in cases for d in differences(case.name, stored.get(case.name), entries[case.name])]
    return entries, found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
