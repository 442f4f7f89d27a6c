"""When a search has to come to an end: its time is over, or somebody pressed Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from unmeasured.errors import UnmeasuredError

# Most of the time is for the measurement model; without some for the latent graph it would stay as it is foretold.
_FOR_MEASURING = 0.7
_BY_KEYBOARD = "Stopped by the keyboard"


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
