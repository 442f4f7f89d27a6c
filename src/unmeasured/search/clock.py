"""When a search has to end: its time is over, or somebody pressed Ctrl-C.

One :class:`Clock` is made where a search begins and handed down to everything that takes long. Long work calls one
of its checks every tenth of a second or so; a check raises :class:`~unmeasured.errors.Stopped` where that stage has had
its time. Whoever has something to return catches it (:meth:`Clock.ending_a_stage`), so that the best model so far
goes on to the next stage::

    0 ──── measurement model ──── 65% ── latent graph ── 85% ── last fit ── 100% of the time limit
    0 ── partitions ── 40% ──┘                        where misfit is tolerated
"""

from __future__ import annotations

import _thread
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Real
from types import FrameType
from typing import Any, TypeVar

from unmeasured.errors import Stopped, UnmeasuredError
from unmeasured.models.solve import is_over
from unmeasured.search.budget import BUDGET

T = TypeVar("T")

# Seconds that no search comes to; whole numbers of Python may be larger than any float.
_FOREVER = 1e15
# Seconds between two attempts to end work that has no checks.
_BETWEEN_INTERRUPTS = 1.0
# Seconds between two looks at the progress, for somebody who watches.
_BETWEEN_SHOWS = 1.0


class Clock:
    """Says when to stop, and afterwards why.

    >>> clock = Clock(None)
    >>> clock.check(), clock.stopped
    (None, '')
    """

    def __init__(self, time_limit: float | None, began: float | None = None, reserved: float = 0.0) -> None:
        """``began``: what ``time.monotonic`` said when the work began, or now; ``reserved``: seconds to leave."""
        self._said = checked_time_limit(time_limit)
        self._reserved = reserved
        self._made, self._cpu = time.monotonic(), time.process_time()
        self._began = self._made if began is None else began
        self._interrupted: float | None = None  # seconds from the beginning to Ctrl-C
        self._is_late = False
        self._last_fit: float | None = None  # when it began
        self._done = 0.0  # the part of the work that is done
        self._lap = (0.0, 1.0)
        self._show: Callable[[], None] | None = None
        self._shown = 0.0  # seconds from the beginning to the last time it was called

    # Progress -----------------------------------------------------------------------------------------------

    def watched_by(self, show: Callable[[], None]) -> None:
        """Have a function called about once a second, by whoever looks at the clock."""
        self._show = show

    def _tick(self) -> None:
        if self._show is not None and self.seconds - self._shown > _BETWEEN_SHOWS:
            self._shown = self.seconds
            self._show()

    def lap(self, begins: float, ends: float) -> None:
        """What is reported from here on concerns the work between these parts of the whole."""
        self._lap = begins, ends

    def measured(self, part: float) -> None:
        """That part of the work on the measurement model is done."""
        self._reached(BUDGET.measuring * part)

    def connected(self, part: float) -> None:
        """That part of the work on the latent graph is done."""
        self._reached(BUDGET.measuring + (1.0 - BUDGET.measuring) * part)

    def _reached(self, part: float) -> None:
        begins, ends = self._lap
        self._done = begins + (ends - begins) * part

    def left(self) -> str:
        """About how much longer, in words; empty where that is not known.

        >>> Clock(None).left()
        ''
        >>> Clock(90.0).left()
        'at most 1.5 min left'
        """
        spent = self.seconds
        expected = spent * (1.0 - self._done) / self._done if self._done >= BUDGET.telling else math.inf
        limit = self._limit
        allowed = max(limit - spent, 0.0) if limit is not None else math.inf
        if math.isinf(expected) and math.isinf(allowed):
            return ""
        return f"about {in_words(expected)} left" if expected < allowed else f"at most {in_words(allowed)} left"

    @property
    def seconds(self) -> float:
        """Seconds since the work began."""
        return time.monotonic() - self._began

    @property
    def _limit(self) -> float | None:
        """Seconds there are for the search: the limit less what comes after it.

        On a machine that is busy with other things that takes longer, by as much as it has so far.
        """
        if self._said is None or not self._reserved:
            return self._said
        slowness = slowness_since(self._made, self._cpu)
        return max(self._said - self._reserved * slowness, BUDGET.least_part * self._said)

    # Ends ---------------------------------------------------------------------------------------------------

    @property
    def stopped(self) -> str:
        """Why the search was stopped, in words; empty while nothing has stopped it."""
        if self._interrupted is not None:
            return f"Interrupted after {self._interrupted:.3g} s"
        return f"Stopped at the time limit of {self._said:g} s" if self._is_late else ""

    @property
    def is_interrupted(self) -> bool:
        """Whether it was Ctrl-C that ended the search."""
        return self._interrupted is not None

    def interrupt(self) -> None:
        """End the work at its next check, as Ctrl-C does."""
        if self._interrupted is None:
            self._interrupted = self.seconds

    def check_first_model(self) -> None:
        """Raise Stopped where the time for a first model is over, which is a little more than there is."""
        self._check(1.0, BUDGET.for_first_model)

    def check_test(self) -> None:
        """Raise Stopped where a test that only says which way to go has had its time; the search goes on without."""
        self._check_quietly(BUDGET.tested_by)

    def check_comparing(self) -> None:
        """Raise Stopped where the time for partitions of the items is over."""
        self._check(BUDGET.compared_by)

    def check_measuring(self) -> None:
        """Raise Stopped where the time for the measurement model is over."""
        self._check(BUDGET.measured_by)

    def check(self) -> None:
        """Raise Stopped where the time for the search is over and only the last fit is left to do."""
        self._check(BUDGET.connected_by)

    def check_partition_time(self) -> None:
        """Raise Stopped if no time is left to compare item partitions; the answer is complete without."""
        self._check_quietly(BUDGET.connected_by)

    def check_last_fit(self) -> None:
        """Raise Stopped where all the time is over, or the moments that the last fit has in any case."""
        self._tick()
        if self._last_fit is None:
            self._last_fit = self.seconds
        spent = self.seconds - self._last_fit
        if self._interrupted is not None and spent > BUDGET.after_interrupt:
            raise Stopped
        if spent > BUDGET.for_last_fit:
            self._check_limit(1.0)

    def _check(self, part: float, more: float = 0.0) -> None:
        self._tick()
        if self._interrupted is not None:
            raise Stopped
        self._check_limit(part, more)

    def _check_quietly(self, part: float) -> None:
        """The same where the answer does not depend on what is left out: the search does not count as stopped."""
        self._tick()
        limit = self._limit
        if self.is_interrupted or (limit is not None and self.seconds > part * limit):
            raise Stopped

    def _check_limit(self, part: float, more: float = 0.0) -> None:
        limit = self._limit
        if limit is not None and self.seconds > part * limit + more:
            self._is_late = True
            raise Stopped

    def has_time(self, seconds: float) -> bool:
        """Whether so many seconds of work after the search are within the limit.

        >>> Clock(None).has_time(1e6), Clock(10.0).has_time(5.0), Clock(10.0).has_time(20.0)
        (True, True, False)
        """
        if self._said is None:
            return self._interrupted is None or seconds < BUDGET.after_interrupt
        return self.seconds + seconds * slowness_since(self._made, self._cpu) < self._said

    @property
    def measuring_is_over(self) -> bool:
        """Whether the time for the measurement model is over."""
        return is_over(self.check_measuring)

    @contextmanager
    def ending_a_stage(self) -> Iterator[None]:
        """The end of the time, or Ctrl-C, inside ends what is inside; what was found before is kept."""
        with suppress(Stopped):
            try:
                yield
            except KeyboardInterrupt:  # where nobody listens to the signal itself
                self.interrupt()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """A first Ctrl-C inside ends the search at its next check, a second one at once.

        Only in the main thread, and only where nobody else has asked for the signal.
        """
        is_ours = threading.current_thread() is threading.main_thread()
        if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def on_signal(number: int, frame: FrameType | None) -> Any:
            if self.is_interrupted:
                return signal.default_int_handler(number, frame)
            return self.interrupt()

        signal.signal(signal.SIGINT, on_signal)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Timing:
    """Time by ``time.monotonic`` from which a time limit counts, and seconds of it to leave for later work."""

    began: float
    reserved: float = 0.0

    @property
    def spent(self) -> float:
        """Seconds since then."""
        return time.monotonic() - self.began


# Of the next fit, where somebody has set it; of the fit that is under way.
_asked: ContextVar[Timing | None] = ContextVar("asked", default=None)
_present: ContextVar[Timing | None] = ContextVar("present", default=None)


@contextmanager
def counted_from(timing: Timing) -> Iterator[None]:
    """Count the time limit of the fit inside from an earlier moment: for a command, which has read a file before.

    >>> with counted_from(Timing(time.monotonic() - 60.0, reserved=5.0)), fit_under_way():
    ...     present_timing().spent >= 60.0, present_timing().reserved
    (True, 5.0)
    """
    token = _asked.set(timing)
    try:
        yield
    finally:
        _asked.reset(token)


@contextmanager
def fit_under_way() -> Iterator[None]:
    """Have :func:`present_timing` inside; it begins now, or as :func:`counted_from` says."""
    timing = _asked.get() or Timing(time.monotonic())
    asked, present = _asked.set(None), _present.set(timing)  # a fit inside a fit has a beginning of its own
    try:
        yield
    finally:
        _asked.reset(asked)
        _present.reset(present)


def present_timing() -> Timing:
    """Return the timing of the fit that is under way; outside of one, time begins now."""
    return _present.get() or Timing(time.monotonic())


def data_time_check(time_limit: float | None, timing: Timing) -> Callable[[], None]:
    """Return a check that raises Stopped if the moments of rows have had their part of the time limit.

    >>> data_time_check(60.0, Timing(time.monotonic() - 59.0))()
    Traceback (most recent call last):
    ...
    unmeasured.errors.Stopped
    """
    limit = checked_time_limit(time_limit)

    def check() -> None:
        if limit is not None and timing.spent > BUDGET.read_by * limit:
            raise Stopped

    return check


def finished_by(moment: float | None, work: Callable[[], T]) -> T:
    """Do work that has no checks, such as reading a file; at a moment of ``time.monotonic`` end it as Ctrl-C would.

    A function and not a context, since an interrupt may come between the last line of a context and its end. Outside
    the main thread, which alone can be interrupted, nothing is ended.

    Raises
    ------
    Stopped
        When the moment came before the work was done.

    Examples
    --------
    >>> finished_by(time.monotonic() + 60.0, lambda: 1 + 1)
    2
    >>> finished_by(time.monotonic() + 0.1, lambda: time.sleep(30))
    Traceback (most recent call last):
    ...
    unmeasured.errors.Stopped
    """
    if moment is None or threading.current_thread() is not threading.main_thread():
        return work()
    done, is_over = threading.Event(), threading.Event()
    lock, main = threading.Lock(), threading.get_ident()

    def watch() -> None:
        wait = moment - time.monotonic()
        while not done.wait(max(wait, 0.0)):
            with lock:
                if not done.is_set():
                    is_over.set()
                    _interrupt(main)
            wait = _BETWEEN_INTERRUPTS  # somebody may have taken the first for Ctrl-C, or lost it

    watcher = threading.Thread(target=watch, daemon=True)
    try:
        try:
            watcher.start()
            result = work()
        finally:
            while True:
                try:
                    with lock:
                        done.set()
                    watcher.join()
                    time.sleep(0)  # an interrupt that was sent comes here
                    break
                except KeyboardInterrupt:  # that came when the work was just done
                    if not is_over.is_set():
                        raise
    except KeyboardInterrupt:
        if is_over.is_set():
            raise Stopped from None
        raise
    return result


def _interrupt(main: int) -> None:
    """Do to the main thread what Ctrl-C does; a signal wakes it from waiting, too, where there are signals."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


def slowness_since(moment: float, cpu: float) -> float:
    """How many seconds a second of work has taken since a moment: more than one on a machine that is busy.

    >>> slowness_since(time.monotonic(), time.process_time())
    1.0
    """
    return max((time.monotonic() - moment) / max(time.process_time() - cpu, 0.2), 1.0)


def checked_time_limit(seconds: float | None) -> float | None:
    """A time limit that makes sense, or None.

    >>> checked_time_limit("x")
    Traceback (most recent call last):
    ...
    unmeasured.errors.UnmeasuredError: time_limit must be a positive number of seconds or None; got 'x'.
    """
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds > 0:
        raise UnmeasuredError(f"time_limit must be a positive number of seconds or None; got {seconds!r}.")
    return None if seconds > _FOREVER else float(seconds)


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
