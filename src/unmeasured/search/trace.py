"""The trace: what was tried at each step, and the numbers that decided.

All scores of a trace have one unit. With ``criterion="bic"`` it is the extended BIC on the scale of a log-likelihood,
in total over the sample, of the model the phase works on; with ``criterion="delta"`` the log-likelihood per sample less
that of the saturated model, as in the paper. Steps are written by a :class:`Recorder`, which counts the fits made since
its last one, so that counts are never negative and add up.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from shutil import get_terminal_size
from typing import NoReturn, Protocol

import pandas as pd
from tqdm import tqdm

from unmeasured.search.clock import Clock

_BAR = "{n_fmt} steps, {elapsed}{postfix}"
_WIDTH_OF_COUNTS = len("10000 steps, 10:00:00, ")


@dataclass(frozen=True, slots=True)
class Step:
    """One decision of the search."""

    phase: str
    what: str  # the move that was considered best, in words
    n_candidates: int  # models looked at since the last step of this phase: the sum of the next three
    n_bounded: int  # refused by a closed form, without a fit
    n_fitted: int
    n_cached: int  # scored before, in this run
    score_before: float
    score_after: float
    tolerance: float  # by how much the score may drop (criterion "delta"), or has to rise (criterion "bic")
    accepted: bool
    reason: str  # with the numbers that decided

    def __str__(self) -> str:
        kept = "kept" if self.accepted else "refused"
        return (
            f"{self.phase}: {self.what}; {kept}: {self.reason} "
            f"({self.n_candidates} candidates: {self.n_bounded} bounded, {self.n_fitted} fitted, "
            f"{self.n_cached} cached)"
        )


class Counting(Protocol):
    """What counts fits."""

    n_fitted: int
    n_cached: int


class Recorder:
    """Writes the steps of one phase, each with the fits its score has made since the last one."""

    def __init__(self, steps: list[Step], score: Counting) -> None:
        self._steps, self.score = steps, score
        self._fitted, self._cached = score.n_fitted, score.n_cached

    def write(
        self,
        phase: str,
        what: str,
        before: float,
        after: float,
        reason: str,
        *,
        tolerance: float,
        accepted: bool = True,
        n_bounded: int = 0,
    ) -> None:
        """Write a step."""
        fitted, cached = self.score.n_fitted - self._fitted, self.score.n_cached - self._cached
        self._fitted, self._cached = self.score.n_fitted, self.score.n_cached
        n_candidates = n_bounded + fitted + cached
        self._steps.append(
            Step(phase, what, n_candidates, n_bounded, fitted, cached, before, after, tolerance, accepted, reason)
        )


class Steps(list[Step]):
    """Steps on their way into a trace; shown as they are taken, where that is wanted."""

    def __init__(self, verbose: bool = False, clock: Clock | None = None, bar: tqdm[NoReturn] | None = None) -> None:
        super().__init__()
        self._bar = tqdm(disable=not verbose, desc="steps", unit=" step", bar_format=_BAR) if bar is None else bar
        self._best = -math.inf
        self._clock = clock or Clock(None)
        self._said = ("", "")
        if verbose:
            self._clock.watched_by(self._say_again)

    def append(self, step: Step) -> None:
        """Add a step and show it."""
        super().append(step)
        self._bar.update()
        self._best = max(self._best, step.score_after)
        self.say(f"{step.phase}: best score {self._best:.2f}", f"{step.what}, {step.n_candidates} candidates")

    def say(self, where: str, doing: str = "") -> None:
        """Show where the search is, how much longer it will take, and what it is doing; cut to one line."""
        self._said = where, doing
        told = "; ".join(part for part in (where, self._clock.left(), doing) if part)
        self._bar.set_postfix_str(told[: get_terminal_size().columns - _WIDTH_OF_COUNTS])

    def _say_again(self) -> None:
        """Show how long it has taken: a stage may go on for a minute before it has anything else to say."""
        if not self._bar.disable:
            self.say(*self._said)

    def lap(self) -> Steps:
        """Steps of another search on the same bar."""
        steps = Steps(clock=self._clock, bar=self._bar)
        if not self._bar.disable:
            self._clock.watched_by(steps._say_again)
        return steps

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()
        self._bar.disable = True


class Trace(tuple[Step, ...]):
    """All steps of a run: a tuple that prints as text and converts to a table."""

    __slots__ = ()

    def to_frame(self) -> pd.DataFrame:
        """One row per step."""
        return pd.DataFrame([asdict(step) for step in self], columns=list(Step.__dataclass_fields__))

    def __str__(self) -> str:
        return "\n".join(f"{i + 1:3d}. {step}" for i, step in enumerate(self))

    def accepted(self) -> Trace:
        """Only the steps that were kept."""
        return Trace(step for step in self if step.accepted)
