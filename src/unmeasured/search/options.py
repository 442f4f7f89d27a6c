"""Checks of the options of a search: one grammar for all messages (the option, what it must be, what it got)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, cast

import numpy as np

from unmeasured.errors import UnmeasuredError, listing


def one_of(name: str, value: object, known: Sequence[str]) -> str:
    """One of some words.

    >>> one_of("criterion", ["bic"], ("bic", "delta"))
    Traceback (most recent call last):
    ...
    unmeasured.errors.UnmeasuredError: criterion must be one of 'bic', 'delta'; got ['bic'].
    """
    if isinstance(value, str) and value in known:
        return value
    raise UnmeasuredError(f"{name} must be one of {listing(known)}; got {value!r}.")


def positive(name: str, value: Any, hint: str = "") -> float:
    """A positive number.

    >>> positive("penalty", -1, "1 is BIC's.")
    Traceback (most recent call last):
    ...
    unmeasured.errors.UnmeasuredError: penalty must be a positive number; got -1. 1 is BIC's.
    """
    if (
        isinstance(value, bool | np.bool_)
        or not isinstance(value, Real)
        or not 0 < cast(float, value) <= sys.float_info.max
    ):
        raise UnmeasuredError(f"{name} must be a positive number; got {value!r}. {hint}".rstrip())
    return float(value)


def whole(name: str, value: Any, *, least: int = 1, or_none: bool = False) -> int | None:
    """A whole number of at least so much, or None where that is allowed."""
    if value is None and or_none:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        other = " or None" if or_none else ""
        raise UnmeasuredError(f"{name} must be a whole number from {least}{other}; got {value!r}.")
    return int(value)


def flag(name: str, value: Any, *, or_none: bool = False) -> bool | None:
    """True or False, or None where that is allowed."""
    if value is None and or_none:
        return None
    if not isinstance(value, bool | np.bool_ | int):
        raise UnmeasuredError(f"{name} must be True or False{' or None' if or_none else ''}; got {value!r}.")
    return bool(value)


def seed(name: str, value: Any) -> None:
    """What scikit-learn takes as a seed."""
    if value is not None and not isinstance(value, Integral | np.random.RandomState | np.random.Generator):
        raise UnmeasuredError(f"{name} must be a whole number, a random generator or None; got {value!r}.")


def functions(name: str, value: Any) -> tuple[Any, ...]:
    """A sequence of functions."""
    if isinstance(value, list | tuple) and all(callable(item) for item in value):
        return tuple(value)
    raise UnmeasuredError(f"{name} must be a list of functions; got {value!r}.")
