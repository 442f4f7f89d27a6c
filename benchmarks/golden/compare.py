"""Differences between two entries of the record, by kind.

========== ===================================================== =======
kind       what differs                                          gates
========== ===================================================== =======
structure  anything that is not a number                         yes
numbers    a number by more than its tolerance                   yes
slower     a count grew by more than :data:`MOST_GROWTH`          yes
counts     other counts                                          no
sentences  text for readers                                      no
trace      accepted steps, or their scores                       no
========== ===================================================== =======
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import ndiff
from typing import Any, Literal, TypeAlias, get_args

from benchmarks.golden.describe import LEGEND
from benchmarks.golden.record import Entry

Kind: TypeAlias = Literal["structure", "numbers", "slower", "sentences", "trace", "counts"]
KINDS: tuple[Kind, ...] = get_args(Kind)
GATING: tuple[Kind, ...] = ("structure", "numbers", "slower")

# By how much a number may differ, relative to its size and absolutely; by its table, else the last.
TOLERANCES: dict[str, tuple[float, float]] = {
    "indices": (1e-6, 1e-4),
    # Classes that a search passed by are fitted no further than it takes to refuse them, so where their fits end
    # depends on rounding: up to 0.44 was seen with other BLAS kernels.
    "runners-up": (0.0, 1.0),
    "": (1e-4, 1e-5),
}
_OF_SCORES = (1e-6, 1e-2)  # of a trace
# For the same reason a class may be among the runners-up on one machine alone. It gates up to this difference of BIC,
# and counts as part of the trace beyond: 3.9 and more was seen.
NEAR = 2.0
# A count may grow by this part of itself and so many more; with other BLAS kernels 140 iterations were 170 in one case.
MOST_GROWTH, FEW = 0.25, 20
_SHOWN = 8  # differences of a case and kind


@dataclass(frozen=True)
class Difference:
    """One entry that differs."""

    case: str
    kind: Kind
    entry: str
    lines: tuple[str, ...]  # what differs, for a reader

    @property
    def gates(self) -> bool:
        """Whether a change with this difference has to be accepted."""
        return self.kind in GATING


def differences(case: str, before: Entry | None, after: Entry | None) -> list[Difference]:
    """Compare two entries of a case; None: there is none."""
    if before is None or after is None:
        line = "is not in the record" if before is None else "is no case any more"
        return [Difference(case, "structure", "case", (line,))] if before is not after else []
    found = [
        *_compared(case, "structure", before, after, _changed_values),
        *_compared(case, "numbers", before, after, _moved_numbers),
        *_compared(case, "sentences", before, after, _changed_values),
        *_compared(case, "trace", before, after, _changed_steps),
    ]
    for name in _keys(before.get("counts", {}), after.get("counts", {})):
        a, b = (entry.get("counts", {}).get(name, 0) for entry in (before, after))
        if a != b:
            kind: Kind = "slower" if b > a + MOST_GROWTH * a + FEW else "counts"
            found.append(Difference(case, kind, name, (f"{a:,} → {b:,}",)))
    return found


def _keys(a: Iterable[str], b: Iterable[str]) -> list[str]:
    return list(dict.fromkeys((*a, *b)))


def _compared(
    case: str, part: Kind, before: Entry, after: Entry, compare: Callable[[str, Any, Any], list[str]]
) -> Iterator[Difference]:
    one, other = before.get(part, {}), after.get(part, {})
    for key in _keys(one, other):
        if key not in one or key not in other:
            what, value = ("new", other[key]) if key not in one else ("gone", one[key])
            is_far = _table(key) == "runners-up" and value[0] > NEAR
            yield Difference(case, "trace" if is_far else part, key, (f"{what}: {_short(value)}",))
        else:
            lines = compare(key, one[key], other[key])
            if lines:
                yield Difference(case, part, key, tuple(lines))


def _table(key: str) -> str:
    """Return the table of an entry of numbers."""
    return key.split(" | ")[-1].split(":", 1)[0]


def _changed_values(_: str, before: Any, after: Any) -> list[str]:
    if before == after:
        return []
    if not isinstance(before, list) or not isinstance(after, list):
        return [f"{_short(before)} → {_short(after)}"]
    return [line for line in ndiff([str(x) for x in before], [str(x) for x in after]) if line[0] in "+-"]


def _moved_numbers(key: str, before: Sequence[Any], after: Sequence[Any]) -> list[str]:
    if len(before) != len(after):
        return [f"{len(before)} numbers → {len(after)}"]
    table = _table(key)
    relative, absolute = TOLERANCES.get(table, TOLERANCES[""])
    names = LEGEND.get(table, ())
    lines = []
    for place, (a, b) in enumerate(zip(before, after, strict=True)):
        if not is_close(a, b, relative, absolute):
            name = (
                f"{names[place]} " if len(names) == len(before) else f"number {place + 1} " if len(before) > 1 else ""
            )
            lines.append(f"{name}{_short(a)} → {_short(b)}")
    return lines


def _changed_steps(_: str, before: Sequence[Any], after: Sequence[Any]) -> list[str]:
    if len(before) == len(after) and all(
        a[0] == b[0] and is_close(a[1], b[1], *_OF_SCORES) for a, b in zip(before, after, strict=True)
    ):
        return []
    told = [[f"{text} ({_short(score)})" for text, score in steps] for steps in (before, after)]
    lines = ndiff(told[0], told[1])
    return [line for line in lines if line[0] in "+-"]


def is_close(a: Any, b: Any, relative: float, absolute: float) -> bool:
    """Return whether two stored numbers are equal to a tolerance; missing and infinite ones equal themselves alone.

    >>> is_close(1.0, 1.00001, 1e-4, 0.0), is_close(None, 0.0, 1e-4, 1.0), is_close("infinite", "infinite", 0.0, 0.0)
    (True, False, True)
    """
    if isinstance(a, str | None) or isinstance(b, str | None):
        return bool(a == b)
    return bool(abs(a - b) <= absolute + relative * max(abs(a), abs(b)))


def _short(value: Any) -> str:
    text = "none" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 200 else f"{text[:200]} ..."


def report(found: Sequence[Difference], n_cases: int, *, is_full: bool = False) -> str:
    """Return the differences as text, grouped by kind and case."""
    lines: list[str] = []
    for kind in KINDS:
        own = [difference for difference in found if difference.kind == kind]
        if not own:
            continue
        by_case: dict[str, list[Difference]] = {}
        for difference in own:
            by_case.setdefault(difference.case, []).append(difference)
        gates = "these gate" if kind in GATING else "for information"
        lines += [f"{kind.upper()}: {len(own)} entries of {len(by_case)} cases differ ({gates})", ""]
        for case, theirs in by_case.items():
            lines.append(f"  {case}")
            shown = [f"    {d.entry}: {d.lines[0]}" if len(d.lines) == 1 else _many(d) for d in theirs]
            lines += shown if is_full else shown[:_SHOWN]
            if len(shown) > _SHOWN and not is_full:
                lines.append(f"    ... and {len(shown) - _SHOWN} more entries (--full shows them)")
        lines.append("")
    gating = {difference.case for difference in found if difference.gates}
    others = {difference.case for difference in found} - gating
    verdict = f"{n_cases} cases: {len(gating)} with differences that gate"
    lines.append(f"{verdict}, {len(others)} with others, {n_cases - len(gating | others)} equal.")
    return "\n".join(lines)


def _many(difference: Difference) -> str:
    shown = difference.lines[:_SHOWN]
    more = [f"... and {len(difference.lines) - _SHOWN} more lines"] if len(difference.lines) > _SHOWN else []
    return "\n".join([f"    {difference.entry}:", *(f"      {line}" for line in (*shown, *more))])


def names_of(found: Iterable[Difference], kinds: Mapping[str, Any] | Sequence[str] = GATING) -> list[str]:
    """Return the cases with differences of some kinds, in order."""
    return list(dict.fromkeys(difference.case for difference in found if difference.kind in kinds))
