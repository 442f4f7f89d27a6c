"""Columns that are probably no indicators of a latent: identifiers, weights, characteristics of persons.

A questionnaire comes with an age, a gender, a country, a number for each person. A search takes whatever it is given as
indicators, so such columns are pointed out: by their name, or by values unlike those of the other items. They are never
left out on a guess; the caller is asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.errors import listing
from unmeasured.remarks import Remark, data_problem

Role = Literal["identifier", "weight", "characteristic", "unlike"]

_IDENTIFIER = re.compile(
    r"(?i:(^|_|\b)(id|ids|index|idx|rownames?|row|case|caseid|caseno|subject|subj|participant|respondent|nr|serial|uuid)"
    r"(_|\b|$))|[a-z](Id|ID|Nr|No)$"  # userId, VpNr
)
# weight, wt2, final_wgt, weight_final; dweight, pspwght and anweight, as surveys have them.
_WEIGHT = re.compile(r"(^|_)(p|f|a|i|s|d|w|an|psp)?(weights?|wgh?ts?|wts?)(_|\d|$)|^w$", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+?(?=[A-Z][a-z]|[^A-Za-z]|$)|[A-Za-z]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that no item of a scale is called.
_CHARACTERISTICS = _words("""
    age ages ageyears agegroup agecat alter edad gender sex geschlecht sexo female male country nation nationality
    ethnicity race birthyear yob dob birthdate postcode zip zipcode latitude longitude timestamp marital maritalstatus
    household bmi
""")
# Words that an item may be called too: values unlike those of the others have to come with them.
_PERHAPS = _words("""
    education educ edu school class grade year years income salary group condition treatment arm wave time date duration
    seconds minutes region state city site center centre cohort district language status occupation job employment
    experience tenure children kids height weight iq gpa
""")
# Items of a scale have no more values than this; so many of the others have to share one.
_LONGEST_SCALE, _LEAST_ALIKE = 11, 3


@dataclass(frozen=True)
class Suspect:
    """A column that is probably no indicator: its name, what it looks like, and why."""

    name: str
    role: Role
    reason: str


def suspects(names: Sequence[str], values: Floats | None = None) -> tuple[Suspect, ...]:
    """The columns that are probably no indicators, in their order; without values by their names alone.

    >>> rng = np.random.default_rng(0)
    >>> items = rng.integers(1, 6, size=(50, 4)).astype(float)
    >>> table = np.column_stack([items, rng.integers(18, 80, 50), rng.permutation(50)])
    >>> [(found.name, found.role) for found in suspects(["q1", "q2", "q3", "q4", "how old", "id"], table)]
    [('how old', 'unlike'), ('id', 'identifier')]
    """
    columns = [None] * len(names) if values is None else [column[~np.isnan(column)] for column in values.T]
    scale = None if values is None else _common_scale([c for c in columns if c is not None])
    found = (_suspect(name, column, scale) for name, column in zip(names, columns, strict=True))
    return tuple(suspect for suspect in found if suspect is not None)


def role_remarks(found: Sequence[Suspect]) -> tuple[Remark, ...]:
    """One sentence for each kind of column that is probably no indicator."""
    by_role: dict[Role, list[Suspect]] = {}
    for suspect in found:
        by_role.setdefault(suspect.role, []).append(suspect)
    return tuple(data_problem(_SENTENCES[role].format(_named(those))) for role, those in by_role.items())


_SENTENCES: dict[Role, str] = {
    "identifier": "{}: every value is a different whole number, as in a column that numbers the rows. If it does, "
    "leave it out.",
    "weight": "{}: named like sampling weights. If it holds some, leave it out: weights are not used, and are no "
    "variable of the model.",
    "characteristic": "Probably characteristics of persons, not indicators of a latent: {}. They are taken as "
    "indicators all the same: name them as covariates or outcomes (docs/covariates.md), or leave them out.",
    "unlike": "Whole numbers unlike those of the other items: {}. If it is no item of the questionnaire (an age, a "
    "code, a total), name it as a covariate or an outcome, or leave it out.",
}


def question(found: Sequence[Suspect]) -> str:
    """What to ask before a search; empty where there is nothing to ask."""
    if not found:
        return ""
    parts = ", ".join(f"{suspect.name!r} ({suspect.reason})" for suspect in found[:8])
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    asked = "Is this variable an indicator" if len(found) == 1 else "Are these variables indicators"
    return (
        f"{asked} of a latent? {parts}{more}. Name an observed cause as a covariate and an "
        "observed effect as an outcome (covariates=, outcomes=), and leave out what is neither."
    )


def _named(found: Sequence[Suspect]) -> str:
    if found[0].role in ("identifier", "weight"):
        return listing([suspect.name for suspect in found])
    return ", ".join(f"{suspect.name!r} ({suspect.reason})" for suspect in found[:8]) + (
        f" and {len(found) - 8} more" if len(found) > 8 else ""
    )


def _suspect(name: str, column: Floats | None, scale: tuple[float, float] | None) -> Suspect | None:
    words = {word.lower() for word in _WORD.findall(name)}
    if column is not None and len(column):
        if numbers_rows(name, column):
            return Suspect(name, "identifier", "numbers the rows")
        if _WEIGHT.search(name) and (column >= 0).all():
            return Suspect(name, "weight", "named like a sampling weight")
    known = words & _CHARACTERISTICS
    if known:
        return Suspect(name, "characteristic", f"by its name, {min(known)}")
    if column is None or not len(column):
        return None
    unlike = _unlike(column, scale)
    if unlike and words & _PERHAPS:
        return Suspect(name, "characteristic", f"by its name, and {unlike}")
    return Suspect(name, "unlike", unlike) if unlike else None


def numbers_rows(name: str, column: Floats) -> bool:
    """Whether a column numbers the rows: whole numbers, no two alike, without a gap or named like an identifier."""
    whole = len(column) > 10 and bool((column == np.round(column)).all())
    if not whole or len(np.unique(column)) < len(column):
        return False
    # Numbers without a gap, in whatever order: rows that were numbered, and perhaps sorted since.
    without_gap = column.max() - column.min() == len(column) - 1
    return bool(without_gap) or bool(_IDENTIFIER.search(name))


def _common_scale(columns: Sequence[Floats]) -> tuple[float, float] | None:
    """The ends of the scale that most columns share, where they are items of a few whole numbers."""
    ends = [(float(c.min()), float(c.max())) for c in columns if len(c) and _is_item(c)]
    if len(ends) < max(_LEAST_ALIKE, len(columns) / 2):
        return None
    # Not every item has an answer at every end: the widest scale that a third of the items has.
    (low, _), (high, _) = (Counter(end[k] for end in ends).most_common(1)[0] for k in (0, 1))
    shared = sum(low <= a and b <= high for a, b in ends)
    return (low, high) if shared >= max(_LEAST_ALIKE, len(columns) / 2) else None


def _is_item(column: Floats) -> bool:
    values = np.unique(column)
    return len(values) <= _LONGEST_SCALE and bool((values == np.round(values)).all())


def _unlike(column: Floats, scale: tuple[float, float] | None) -> str:
    """In words how whole numbers differ from the scale that other items share; empty where they do not."""
    if scale is None or not (column == np.round(column)).all():
        return ""
    low, high = scale
    length = high - low
    outside = (column < low) | (column > high)
    # A few values outside are codes for missing answers, which are pointed out as such.
    if outside.mean() < 0.5 or column.max() - column.min() <= length + 1:
        return ""
    return f"from {column.min():g} to {column.max():g}, the others from {low:g} to {high:g}"
