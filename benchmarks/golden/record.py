"""The stored form of the record: a JSON file for each family of cases, an entry on a line of its own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.golden.describe import Description

FOLDER = Path(__file__).with_name("record")
PARTS = ("structure", "numbers", "sentences", "trace", "counts")
# Digits of a number: far below every tolerance.
_DIGITS, _DIGITS_OF_LIKELIHOODS = 6, 10
_WIDTH = 120

# The parts of a case, each with its entries.
Entry: TypeAlias = dict[str, dict[str, Any]]


def as_stored(made: Description, counts: Mapping[str, int]) -> Entry:
    """Return a description as it will be read back."""
    digits = {
        key: _DIGITS_OF_LIKELIHOODS if key.split(" | ")[-1].startswith("indices:") else _DIGITS for key in made.numbers
    }
    entry: Entry = {
        "structure": {key: value for key, value in made.structure.items() if value not in ([], "")},
        "numbers": {key: [_spelled(x, digits[key]) for x in row] for key, row in made.numbers.items()},
        "sentences": {key: lines for key, lines in made.sentences.items() if any(lines)},
        "trace": {
            key: [[text, _spelled(x, _DIGITS_OF_LIKELIHOODS)] for text, x in steps] for key, steps in made.trace.items()
        },
        "counts": {key: int(count) for key, count in sorted(counts.items()) if count},
    }
    stored: Entry = json.loads(json.dumps(entry))
    return stored


def _spelled(value: float, digits: int) -> float | str | None:
    """Return a number as JSON has it: rounded, None if it is missing, a word if it is infinite."""
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return float(f"{value:.{digits}g}") + 0.0  # no negative zero


def family_of(name: str) -> str:
    """Return the family of a case: what stands before the stroke."""
    return name.split("/", 1)[0]


def read(folder: Path = FOLDER) -> dict[str, Entry]:
    """Read all entries of a record, by case."""
    entries: dict[str, Entry] = {}
    for path in sorted(folder.glob("*.json")):
        entries |= json.loads(path.read_text(encoding="utf-8"))
    return entries


def write(entries: Mapping[str, Entry], folder: Path = FOLDER) -> None:
    """Write a record; families without a case lose their file."""
    folder.mkdir(parents=True, exist_ok=True)
    families = {family_of(name) for name in entries}
    for path in folder.glob("*.json"):
        if path.stem not in families:
            path.unlink()
    for family in families:
        own = {name: entry for name, entry in sorted(entries.items()) if family_of(name) == family}
        (folder / f"{family}.json").write_text(_text(own), encoding="utf-8", newline="\n")


def _text(entries: Mapping[str, Entry]) -> str:
    return _block((f"{_json(name)}: {_entry(entry)}" for name, entry in entries.items()), 0) + "\n"


def _entry(entry: Entry) -> str:
    parts = (f"{_json(part)}: {_part(entry[part])}" for part in PARTS if entry.get(part))
    return _block(parts, 1)


def _part(part: Mapping[str, Any]) -> str:
    return _block((f"{_json(key)}: {_value(key, value)}" for key, value in sorted(part.items())), 2)


def _value(key: str, value: Any) -> str:
    """Return a value on one line, or a long list on a line for each item."""
    text = _json(value)
    if isinstance(value, list) and len(key) + len(text) > _WIDTH and not isinstance(value[0], float | int):
        return _block(map(_json, value), 3, "[]")
    return text


def _block(lines: Iterable[str], depth: int, brackets: str = "{}") -> str:
    inner = ",\n".join(f"{' ' * (depth + 1)}{line}" for line in lines)
    return f"{brackets[0]}\n{inner}\n{' ' * depth}{brackets[1]}" if inner else brackets


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
