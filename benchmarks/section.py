"""Reading a table of a TOML file strictly: a wrong value says what was wanted, an unknown key is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from unmeasured.errors import UnmeasuredError, listing, nearest


@dataclass(frozen=True)
class Kind:
    """What a value has to be: the words for it, and the test."""

    words: str
    holds: Callable[[Any], bool]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list_of(value: Any, holds: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(map(holds, value))


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _are_distinct_counts(value: Any) -> bool:
    return _is_list_of(value, lambda v: _is_whole(v) and v > 0) and len(set(value)) == len(value)


TEXT = Kind("a text that is not empty", lambda v: isinstance(v, str) and bool(v))
BOOLEAN = Kind("true or false", lambda v: isinstance(v, bool))
TABLE = Kind("a table", lambda v: isinstance(v, dict))
TABLES = Kind("an array of tables, at least one", lambda v: _is_list_of(v, lambda item: isinstance(item, dict)))
POSITIVE = Kind("a number above zero", _is_positive)
FRACTION = Kind(
    "a number from 0 to 1", lambda v: isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v <= 1
)
PARTS = Kind(
    "a list of different numbers from 0 to 0.5",
    lambda v: _is_list_of(v, lambda w: FRACTION.holds(w) and w <= 0.5) and len(set(v)) == len(v),
)
WHOLE = Kind("a whole number, zero or more", lambda v: _is_whole(v) and v >= 0)
COUNT = Kind("a whole number, one or more", lambda v: _is_whole(v) and v >= 1)
COUNTS = Kind("a list of different whole numbers, one or more each", _are_distinct_counts)
COUNT_LISTS = Kind(
    "a list of lists of whole numbers, one or more each",
    lambda v: _is_list_of(v, lambda part: _is_list_of(part, lambda w: _is_whole(w) and w > 0)),
)
SEEDS = Kind(
    "a list of different whole numbers, zero or more each",
    lambda v: _is_list_of(v, lambda w: _is_whole(w) and w >= 0) and len(set(v)) == len(v),
)
COUNT_TABLE = Kind(
    "a table of whole numbers, one or more each",
    lambda v: isinstance(v, dict) and all(_is_whole(w) and w > 0 for w in v.values()),
)


def one_of(*known: str) -> Kind:
    """One of these words."""
    return Kind(f"one of {listing(known)}", lambda v: isinstance(v, str) and v in known)


def some_of(*known: str) -> Kind:
    """A list of some of these words."""
    return Kind(f"a list of some of {listing(known)}", lambda v: _is_list_of(v, lambda w: w in known))


class Section:
    """A table of a file, taken key by key; what nobody has taken at the end is an unknown key.

    >>> section = Section({"seed": 4, "sede": 5}, "table4.toml")
    >>> section.take("seed", WHOLE)
    4
    >>> section.end()
    Traceback (most recent call last):
    ...
    unmeasured.errors.UnmeasuredError: table4.toml: unknown key 'sede'; did you mean 'seed'? Known keys: 'seed'.
    """

    def __init__(self, content: Mapping[str, Any], where: str) -> None:
        self.content = content
        self.where = where
        self._known: list[str] = []

    def take(self, key: str, kind: Kind) -> Any:
        """The value of a key that has to be there."""
        if key not in self.content:
            raise UnmeasuredError(f"{self.where}: the key {key!r} is missing; give {kind.words}.")
        return self.take_or(key, kind, None)

    def take_or(self, key: str, kind: Kind, default: Any) -> Any:
        """The value of a key, or the default where it is left out."""
        self._known.append(key)
        value = self.content.get(key, default)
        if key in self.content and not kind.holds(value):
            raise UnmeasuredError(f"{self.where}: {key} must be {kind.words}; got {value!r}.")
        return value

    def part(self, key: str) -> Section:
        """The table under a key that has to be there."""
        return Section(self.take(key, TABLE), f"{self.where}, [{key}]")

    def part_or_none(self, key: str) -> Section | None:
        """The table under a key, if it is there."""
        value = self.take_or(key, TABLE, None)
        return None if value is None else Section(value, f"{self.where}, [{key}]")

    def parts(self, key: str) -> list[Section]:
        """The tables of an array of tables."""
        return [Section(v, f"{self.where}, [[{key}]] {i}") for i, v in enumerate(self.take(key, TABLES), start=1)]

    def end(self) -> None:
        """Refuse the keys that were not asked for."""
        unknown = [key for key in self.content if key not in self._known]
        if unknown:
            key_s = "key" if len(unknown) == 1 else "keys"
            hint = nearest(unknown[0], self._known) or "."
            raise UnmeasuredError(
                f"{self.where}: unknown {key_s} {listing(unknown)}{hint} Known keys: {listing(self._known, limit=20)}."
            )
