"""Remarks: sentences about an answer, ordered by consequence.

Three kinds, most serious first: the answer is not to be trusted as it stands; there is a problem with the data; a note.
A :class:`Remark` is a ``str``, so whatever handles sentences handles remarks; a plain string counts as a note.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Severity(IntEnum):
    """What a remark means for the reader; the smaller, the more serious."""

    DISTRUST = 1  # the answer is not to be trusted as it stands
    DATA = 2  # a problem with the data
    NOTE = 3  # good to know


class Remark(str):
    """A sentence and its severity.

    Examples
    --------
    >>> remark = Remark("The search was interrupted.", Severity.DISTRUST)
    >>> remark, remark.severity.name
    ('The search was interrupted.', 'DISTRUST')
    """

    severity: Severity

    def __new__(cls, text: str, severity: Severity = Severity.NOTE) -> Remark:
        remark = super().__new__(cls, text)
        remark.severity = Severity(severity)
        return remark


def distrust(text: str) -> Remark:
    """A remark that says why the answer is not to be trusted as it stands."""
    return Remark(text, Severity.DISTRUST)


def data_problem(text: str) -> Remark:
    """A remark on something in the data that is likely wrong."""
    return Remark(text, Severity.DATA)


def note(text: str) -> Remark:
    """A remark that is good to know and needs no action."""
    return Remark(text, Severity.NOTE)


def severity_of(remark: str) -> Severity:
    """How serious a remark is; a plain string is a note.

    >>> severity_of(data_problem("A column is constant.")).name, severity_of("As usual.").name
    ('DATA', 'NOTE')
    """
    return remark.severity if isinstance(remark, Remark) else Severity.NOTE


def by_consequence(remarks: Iterable[str]) -> tuple[Remark, ...]:
    """The remarks, most serious first, otherwise in the order given; one said twice is kept once.

    >>> by_consequence(["As usual.", distrust("Not converged."), data_problem("Few rows."), "As usual."])
    ('Not converged.', 'Few rows.', 'As usual.')
    """
    unique: dict[str, Remark] = {}
    for remark in remarks:
        known = Remark(remark, severity_of(remark))
        if known not in unique or known.severity < unique[known].severity:
            unique[known] = known
    return tuple(sorted(unique.values(), key=severity_of))
