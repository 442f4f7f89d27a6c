"""Rules for the parameters of public functions and estimators, as tables, and the one sentence that refuses the rest.

A table maps the name of a parameter to a :class:`Rule`, as ``_parameter_constraints`` of scikit-learn does::

    RULES = {"method": one_of("bootstrap", "subsample"), "n_replicates": whole(1), "verbose": FLAG}

    def stability(found, n_replicates=200, *, method="bootstrap", verbose=False):
        check(RULES, locals())

All messages have one grammar: the parameter, what it must be, what it got.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, cast

import numpy as np

from unmeasured.errors import UnmeasuredError, listing


@dataclass(frozen=True)
class Rule:
    """Requirement on a parameter, in words and as a test; ``hint`` ends the sentence."""

    must: str
    allows: Callable[[Any], bool]
    hint: str = ""

    def check(self, name: str, value: Any) -> None:
        """Refuse a value that is not allowed."""
        if not self.allows(value):
            raise UnmeasuredError(f"{name} must be {self.must}; got {value!r}. {self.hint}".rstrip())

    def or_none(self) -> Rule:
        """Allow None, too."""
        return replace(self, must=f"{self.must} or None", allows=lambda value: value is None or self.allows(value))


def check(rules: Mapping[str, Rule], values: Mapping[str, Any]) -> None:
    """Refuse the first parameter that its rule does not allow.

    >>> check({"folds": whole(2)}, {"folds": 1.5})
    Traceback (most recent call last):
    ...
    unmeasured.errors.UnmeasuredError: folds must be a whole number from 2; got 1.5.
    """
    for name, rule in rules.items():
        rule.check(name, values[name])


def one_of(*words: str) -> Rule:
    """One of some words.

    >>> one_of("bic", "delta").check("criterion", ["bic"])
    Traceback (most recent call last):
    ...
    unmeasured.errors.UnmeasuredError: criterion must be one of 'bic', 'delta'; got ['bic'].
    """
    return Rule(f"one of {listing(words, 20)}", lambda value: isinstance(value, str) and value in words)


def whole(least: int, most: float = math.inf, what: str = "a whole number", hint: str = "") -> Rule:
    """A whole number of at least so much.

    >>> whole(1, 9).allows(3), whole(1).allows(True), whole(1).allows(2.0)
    (True, False, False)
    """
    must = f"{what} from {least}" + (f" to {most:g}" if math.isfinite(most) else "")
    return Rule(must, lambda value: is_whole(value) and least <= value <= most, hint)


def number(must: str, allows: Callable[[float], bool], hint: str = "") -> Rule:
    """A finite number that a test allows.

    >>> number("a number between 0 and 1", lambda x: 0 < x < 1).allows(float("nan"))
    False
    """
    return Rule(must, lambda value: is_finite(value) and allows(float(value)), hint)


def positive(hint: str = "") -> Rule:
    """A positive number.

    >>> positive("1 is BIC's.").check("penalty", -1)
    Traceback (most recent call last):
    ...
    unmeasured.errors.UnmeasuredError: penalty must be a positive number; got -1. 1 is BIC's.
    """
    return number("a positive number", lambda value: value > 0, hint)


def instance_of(must: str, *types: type, hint: str = "") -> Rule:
    """An object of some class."""
    return Rule(must, lambda value: isinstance(value, types), hint)


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def is_finite(value: Any) -> bool:
    """Return whether a value is a real number that a float can hold; True and False are none.

    >>> [is_finite(value) for value in (1, np.float32(2), True, float("inf"), 10**400, "1")]
    [True, True, False, False, False, False]
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # a whole number of hundreds of digits
        return False


def is_positive(value: Any) -> bool:
    """Return whether a value is a positive number, perhaps an infinite or a very large one."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and bool(cast("Any", value) > 0)


def is_flag(value: Any) -> bool:
    """Return whether a value is True or False, or 1 or 0, which are taken as such.

    >>> [is_flag(value) for value in (True, np.False_, 1, 5, "no", None)]
    [True, True, True, False, False, False]
    """
    return isinstance(value, bool | np.bool_) or (is_whole(value) and value in (0, 1))


def are_names(value: Any) -> bool:
    """Return whether a value is a list of names; a lone text, a sequence of letters, is none."""
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(name, str) for name in value)


FLAG = Rule("True or False", is_flag)
TEXT = Rule("a text", lambda value: isinstance(value, str))
PATH = instance_of("a path", str, Path)
NAMES = Rule("a list of names of variables, such as ['age']", are_names)
SECONDS = Rule("a positive number of seconds or None", lambda value: value is None or is_positive(value))
ALPHA = number("a significance level between 0 and 1", lambda value: 0 < value < 1)
# What numpy's default_rng takes as a seed.
SEED = Rule(
    "a seed, a whole number from 0, or a generator of numpy's",
    lambda value: isinstance(value, np.random.Generator) or (is_whole(value) and value >= 0),
)
THREADS = Rule(
    "a number of threads from 1, or -1 for all cores", lambda value: is_whole(value) and (value >= 1 or value == -1)
)
WORKERS = Rule(
    "a number of processes from 1, or -1 for one per core, or None",
    lambda value: value is None or (is_whole(value) and value != 0),
)
