"""The options of a search as one value, and the checks of each.

All messages have one grammar: the option, what it must be, what it got.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, cast

import numpy as np

from unmeasured.data.given import Roles
from unmeasured.data.missing import Missing
from unmeasured.data.sample import Sample
from unmeasured.errors import UnmeasuredError, listing
from unmeasured.graphs import CPDAG
from unmeasured.knowledge.known import Knowledge
from unmeasured.search.moves import Move, OwnMove

Criterion = Literal["bic", "delta"]


@dataclass(frozen=True)
class Options:
    """What :class:`~unmeasured.LGES` is asked for, checked. The defaults are those of the exact criterion."""

    criterion: Criterion = "bic"
    delta: float | None = None
    penalty: float = 1.0
    tolerance: float | None = 0.0  # in units of RMSEA; None: "auto"
    residual_pairs: bool = True
    max_group_size: int | None = None
    hierarchy: bool = True
    roles: Roles = field(default_factory=Roles)  # covariates and outcomes
    knowledge: Knowledge | None = None
    price_knowledge: bool | None = None
    prune: bool = True
    missing: Missing = "ml"
    n_threads: int | None = None
    time_limit: float | None = None
    moves: Sequence[OwnMove] = ()
    verbose: bool = False
    starts: Sequence[CPDAG] = ()  # answers to similar data, climbed from instead of most of the search's own proposals
    n_runners: int = 0  # runners-up that are handed back at most

    def is_paper_for(self, sample: Sample) -> bool:
        """Whether the paper's rule decides: in a population the penalty vanishes against the likelihood."""
        return self.criterion == "delta" or math.isinf(sample.n)

    def is_exact_for(self, sample: Sample) -> bool:
        """Whether no misfit is tolerated: as asked for, by the paper's rule, and by "auto" where guided."""
        about_items = self.knowledge.about_groups if self.knowledge else None
        is_guided = bool(about_items or self.moves)
        return self.is_paper_for(sample) or self.tolerance == 0.0 or (self.tolerance is None and is_guided)

    def largest_group(self, sample: Sample) -> int:
        """Latents of a group at most: as many as asked for and the variables allow."""
        n = len(sample.names)
        return min(self.max_group_size or n, n // 2)


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


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_ | int):
        raise UnmeasuredError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def flag_or_none(name: str, value: Any) -> bool | None:
    """True, False or None."""
    if value is not None and not isinstance(value, bool | np.bool_ | int):
        raise UnmeasuredError(f"{name} must be True or False or None; got {value!r}.")
    return None if value is None else bool(value)


def seed(name: str, value: Any) -> None:
    """What scikit-learn takes as a seed."""
    if value is not None and not isinstance(value, Integral | np.random.RandomState | np.random.Generator):
        raise UnmeasuredError(f"{name} must be a whole number, a random generator or None; got {value!r}.")


def functions(name: str, value: Any) -> tuple[Any, ...]:
    """A sequence of functions, or of moves."""
    if isinstance(value, list | tuple) and all(callable(item) or isinstance(item, Move) for item in value):
        return tuple(value)
    raise UnmeasuredError(f"{name} must be a list of functions; got {value!r}.")
