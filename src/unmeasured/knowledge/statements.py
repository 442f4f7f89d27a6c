"""Single statements of background knowledge, each with its words: what clashes, binds or costs is told in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from unmeasured.errors import ModelError, listing, nearest

Kind = Literal[
    "group", "latents", "size", "together", "apart", "n_latents", "n_groups", "group_size", "tiers", "path",
    "covariates", "outcomes", "above", "max_levels"]  # fmt: skip
_COUNT = re.compile(r"at (most|least) (\d+)")
_PATH = re.compile(r"(.+?)\s*(->|→|--|–)\s*(.+)")


@dataclass(frozen=True)
class Count:
    """A number that is known, or bounded.

    >>> Count.of(3), Count.of("at most 3").holds(2)
    (Count(low=3, high=3), True)
    """

    low: int = 0
    high: int | None = None

    @classmethod
    def of(cls, value: int | str | Count, what: str = "a count") -> Count:
        """From 3, "at most 3" or "at least 3"."""
        if isinstance(value, Count):
            return value
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return cls(value, value)
        match = _COUNT.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None or int(match[2]) < 1:
            raise ModelError(f'{what} is a whole number from 1, "at most 3" or "at least 3"; got {value!r}.')
        number = int(match[2])
        return cls(high=number) if match[1] == "most" else cls(low=number)

    def holds(self, number: int) -> bool:
        """Whether the number is one of these."""
        return self.low <= number and (self.high is None or number <= self.high)

    def also(self, other: Count) -> Count:
        """What both allow; nothing where ``low`` is above ``high``."""
        highs = [high for high in (self.high, other.high) if high is not None]
        return Count(max(self.low, other.low), min(highs) if highs else None)

    def nearest(self, number: int) -> int:
        """The number allowed that is closest."""
        return max(self.low, number if self.high is None else min(number, self.high))

    def words(self, thing: str) -> str:
        """Such as ``at most 3 latents``."""
        bound = "" if self.low == self.high else "at most " if self.low == 0 else "at least "
        number = self.low if self.high is None or self.low == self.high else self.high
        return f"{bound}{number} {thing}{'s' * (number != 1)}"


ANY = Count()


@dataclass(frozen=True)
class Statement:
    """One thing that is known, about a group, some items, or all of the model.

    ``value`` holds items, names of latents, or arrows (cause, effect) between groups; the arrows are ``required`` or
    forbidden. ``count`` is a number of latents or groups.
    """

    kind: Kind
    text: str
    group: str = ""
    value: tuple[Any, ...] = ()
    count: Count = ANY
    required: bool = False

    @property
    def is_about_paths(self) -> bool:
        """Whether it is about how groups cause one another, and not about who measures what."""
        return self.kind in ("tiers", "path")

    def __str__(self) -> str:
        return self.text


def read_path(path: str | Sequence[str], where: str) -> tuple[tuple[str, str], ...]:
    """Arrows (cause, effect) of ``"a -> b"`` or ``("a", "b")``; both ways for ``"a -- b"``.

    >>> read_path("speed -> error", "required"), read_path("a -- b", "forbidden")
    ((('speed', 'error'),), (('a', 'b'), ('b', 'a')))
    """
    parts: list[str] = []
    both = False
    if isinstance(path, str):
        match = _PATH.fullmatch(path.strip())
        if match is not None:
            parts, both = [match[1].strip(), match[3].strip()], match[2] in ("--", "–")
    elif isinstance(path, Sequence):
        parts = [str(part) for part in path]
    if len(parts) != 2 or parts[0] == parts[1] or (both and where == "required"):
        ways = '"a -> b"' if where == "required" else '"a -> b", or "a -- b" for neither way'
        raise ModelError(f"A path in {where} is written {ways}, between two groups; got {path!r}.")
    a, b = parts
    return ((a, b), (b, a)) if both else ((a, b),)


def checked_items(items: Iterable[str], where: str, least: int = 1) -> tuple[str, ...]:
    """Names of items as a tuple: strings, none twice, enough of them."""
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise ModelError(f"{where} is a list of names; got {items!r}.")
    names = tuple(items)
    odd = [name for name in names if not isinstance(name, str) or not name]
    if odd:
        raise ModelError(f"{where} is a list of names; got {odd[0]!r} in it.")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ModelError(f"{where} names {twice[0]!r} twice. Name it once.")
    if len(names) < least:
        raise ModelError(f"{where} needs at least {least} name{'s' * (least > 1)}; got {listing(names) or 'none'}.")
    return names


def refuse_unknown(names: Iterable[str], known: Sequence[str], where: str, of: str) -> None:
    """A name that nobody knows, with the nearest one."""
    for name in names:
        if name not in known:
            hint = nearest(name, known) or f". There are {listing(known) or 'none'}."
            raise ModelError(f"{where}: {name!r} is not {of}{hint}")
