"""Checks that long work calls every tenth of a second or so: whether it has to end."""

from __future__ import annotations

from collections.abc import Callable

from unmeasured.errors import Stopped

Check = Callable[[], None]  # raises Stopped where work has to end


def never() -> None:
    """The check of work that nothing ends."""


def is_over(check: Check) -> bool:
    """Whether a check says that work has to end.

    >>> is_over(never)
    False
    """
    try:
        check()
    except Stopped:
        return True
    return False
