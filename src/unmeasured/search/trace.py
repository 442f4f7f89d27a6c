"""The trace: what was tried at each step, what it cost, and why it was kept."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import pandas as pd
from tqdm import tqdm


@dataclass(frozen=True, slots=True)
class Step:
    """One decision of the search. Scores are log-likelihoods per sample below the saturated model."""

    phase: str
    what: str  # the operator that was considered best, in words
    n_candidates: int  # how many operators were looked at
    n_bounded: int  # refused by the closed form, without a fit
    n_fitted: int
    n_remembered: int  # scored before, in this run
    score_before: float
    score_after: float
    tolerance: float
    accepted: bool
    reason: str

    def __str__(self) -> str:
        kept = "kept" if self.accepted else "refused"
        return (
            f"{self.phase}: {self.what}; {kept}: {self.reason} "
            f"({self.n_candidates} candidates: {self.n_bounded} bounded, {self.n_fitted} fitted, "
            f"{self.n_remembered} remembered)"
        )


class Steps(list[Step]):
    """Steps on their way into a trace; shown as they are taken, where that is wanted."""

    def __init__(self, verbose: bool = False) -> None:
        super().__init__()
        self._bar = tqdm(disable=not verbose, desc="steps", unit=" step")
        self._best = -math.inf

    def append(self, step: Step) -> None:
        """Add a step and show it."""
        super().append(step)
        self._bar.update()
        self._best = max(self._best, step.score_after)
        self._bar.set_postfix_str(
            f"{step.phase}: {step.what}; {step.n_candidates} candidates, score {step.score_after:.2f}, "
            f"best {self._best:.2f}"
        )


class Trace(tuple[Step, ...]):
    """All steps of a run: a tuple that prints as text and turns into a table."""

    __slots__ = ()

    def to_frame(self) -> pd.DataFrame:
        """One row per step."""
        return pd.DataFrame([asdict(step) for step in self], columns=list(Step.__dataclass_fields__))

    def __str__(self) -> str:
        return "\n".join(f"{i + 1:3d}. {step}" for i, step in enumerate(self))

    def accepted(self) -> Trace:
        """Only the steps that were kept."""
        return Trace(step for step in self if step.accepted)
