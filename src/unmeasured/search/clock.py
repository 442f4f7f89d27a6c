"""When a search has to come to an end: its time is over, or somebody pressed Ctrl-C."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from unmeasured.errors import UnmeasuredError

# Most of the time is for the measurement model; without some for the latent graph it would stay as it is foretold.
_FOR_MEASURING = 0.7
_BY_KEYBOARD = "Stopped by the keyboard"
# Before this part of the work is done, what it took says little of what is to come.
_TELLING = 0.2
# What the measurement model takes of the time in a search that comes to its end by itself, about.
_MEASURING = 0.9


class Clock:
    """Tells when to stop, and afterwards why.

    >>> clock = Clock(None)
    >>> clock.is_over(), clock.stopped
    (False, '')
    """

    def __init__(self, time_limit: float | None) -> None:
        if time_limit is not None and not time_limit > 0:
            raise UnmeasuredError(f"time_limit is a positive number of seconds; got {time_limit!r}.")
        self._began, self._limit = time.monotonic(), time_limit
        self.stopped = ""  # why, in words; empty while nothing has stopped the search
        self._done = 0.0  # the part of the work that is behind us
        self._lap = (0.0, 1.0)

    def lap(self, begins: float, ends: float) -> None:
        """What is told from here on is of the work between these parts of the whole."""
        self._lap = begins, ends

    def measured(self, part: float) -> None:
        """That part of the work on the measurement model is done."""
        self._reached(_MEASURING * part)

    def connected(self, part: float) -> None:
        """That part of the work on the latent graph is done."""
        self._reached(_MEASURING + (1.0 - _MEASURING) * part)

    def _reached(self, part: float) -> None:
        begins, ends = self._lap
        self._done = begins + (ends - begins) * part

    def left(self) -> str:
        """About how much longer, in words; empty where nobody can tell.

        >>> clock = Clock(None)
        >>> clock.left()
        ''
        >>> Clock(90.0).left()
        'at most 1.5 min left'
        """
        spent = time.monotonic() - self._began
        expected = spent * (1.0 - self._done) / self._done if self._done >= _TELLING else math.inf
        allowed = max(self._limit - spent, 0.0) if self._limit is not None else math.inf
        if math.isinf(expected) and math.isinf(allowed):
            return ""
        return f"about {in_words(expected)} left" if expected < allowed else f"at most {in_words(allowed)} left"

    @property
    def is_interrupted(self) -> bool:
        """Whether it was Ctrl-C that ended the search."""
        return self.stopped == _BY_KEYBOARD

    def is_over(self, part: float = 1.0) -> bool:
        """Whether that part of the time is over."""
        if self.is_interrupted:
            return True
        is_over = self._limit is not None and time.monotonic() > self._began + part * self._limit
        if is_over:
            self.stopped = "The time limit was reached"
        return is_over

    def measuring_is_over(self) -> bool:
        """Whether the time for the measurement model is over."""
        return self.is_over(_FOR_MEASURING)

    @contextmanager
    def heeding_the_keyboard(self) -> Iterator[None]:
        """Ctrl-C inside ends what is inside; what was found before is kept."""
        try:
            yield
        except KeyboardInterrupt:
            self.stopped = _BY_KEYBOARD


def in_words(seconds: float) -> str:
    """As exact as a guess may be.

    >>> [in_words(seconds) for seconds in (0.4, 7.7, 44.0, 89.9, 3000.0, 9000.0)]
    ['1 s', '8 s', '45 s', '1.5 min', '50 min', '2.5 h']
    """
    if seconds < 10:
        return f"{max(round(seconds), 1)} s"
    if seconds < 60:
        return f"{5 * round(seconds / 5)} s"
    if seconds < 600:
        return f"{round(2 * seconds / 60) / 2:g} min"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{round(2 * seconds / 3600) / 2:g} h"
