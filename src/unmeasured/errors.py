"""Our small family of exceptions and warnings.

A caller's mistake raises a subclass of :class:`UnmeasuredError` whose text says what was wrong, what we got
and what to do next. Numerical trouble never raises: it becomes a sentence in ``fit.status``.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UnmeasuredError(ValueError):
    """An error in the arguments or the data; the text says what to do."""


class GraphError(UnmeasuredError):
    """A graph that is not what it claims to be: a cycle, an unknown name, a missing role."""


class ModelError(UnmeasuredError):
    """A model, or model syntax, that cannot be fitted."""


class DataError(UnmeasuredError):
    """Data that cannot be analysed: not symmetric, not positive definite, constant, too few rows.

    ``columns`` are those without which the fault is gone, where they are known: a check leaves them out and looks on.
    """

    def __init__(self, message: str = "", columns: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.columns = tuple(columns)


class SearchStopped(UnmeasuredError):
    """A search that was interrupted, or ran out of time, before it had a first model to return."""

    is_interrupted: bool = False  # by Ctrl-C; otherwise by a time limit


class Stopped(Exception):
    """Raised where work has to end now; whoever has something to return catches it. No caller ever sees it."""


class UnmeasuredWarning(UserWarning):
    """A problem that the user should know, although a result was computed."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint such as ``; did you mean 'x1'?`` for a misspelt name, or nothing.

    >>> nearest("spped", ["speed", "error"])
    "; did you mean 'speed'?"
    >>> nearest("zzz", ["speed", "error"])
    ''
    """
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def listing(names: Iterable[str], limit: int = 8) -> str:
    """Names in quotes for a message, the long tail counted rather than printed.

    >>> listing(["a", "b"])
    "'a', 'b'"
    >>> listing([f"x{i}" for i in range(10)], limit=3)
    "'x0', 'x1', 'x2' and 7 more"
    """
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
