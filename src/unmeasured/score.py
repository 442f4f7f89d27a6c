"""Scores a search asks: the maximum likelihood of a class, with a memory over classes already fitted."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.data.sample import Sample
from unmeasured.graphs import DAG
from unmeasured.sem.parameters import pattern_of
from unmeasured.sem.solve import Problem, Solution, solve, solve_with_restarts

# Other starts a population fit gets before a misfit is believed.
_INSISTENCE = 12


class Scorable(Protocol):
    """Whatever stands for a class of graphs: a key to remember it by and a member to fit."""

    @property
    def key(self) -> Hashable:
        """Equal for equal classes."""
        ...

    @property
    def member(self) -> DAG:
        """A graph of the class."""
        ...


class LikelihoodScore:
    """Maximum log-likelihood per sample, less that of the saturated model: at most zero, larger is better.

    Scores are remembered by class; ``n_fitted`` and ``n_remembered`` count for the trace.
    """

    def __init__(self, sample: Sample, *, n_restarts: int = 2, n_threads: int | None = None) -> None:
        self.sample = sample
        self.n_restarts = n_restarts
        self.n_threads = n_threads
        self.n_fitted = 0
        self.n_remembered = 0
        self._memory: dict[Hashable, float] = {}

    def __call__(self, states: Sequence[Scorable]) -> Floats:
        """Scores (B,) of many classes, fitted in one batch; those met before are remembered."""
        new = {s.key: s for s in states if s.key not in self._memory}
        self.n_fitted += len(new)
        self.n_remembered += len(states) - len(new)
        problems = [Problem.of(pattern_of(state.member), self.sample) for state in new.values()]
        solutions = solve_with_restarts(problems, n_restarts=self.n_restarts, n_threads=self.n_threads)
        if math.isinf(self.sample.n):
            solutions = self._insist(problems, solutions)
        for key, solution in zip(new, solutions, strict=True):
            # Rounding may put a perfect fit a hair above the saturated model.
            self._memory[key] = -0.5 * max(solution.discrepancy, 0.0)
        return np.array([self._memory[state.key] for state in states])

    def _insist(self, problems: list[Problem], solutions: list[Solution]) -> list[Solution]:
        """Of a population a model fits perfectly or is wrong; before we call it wrong, other starts have a say."""
        rng = np.random.default_rng(len(problems))
        for _ in range(_INSISTENCE):
            doubtful = [b for b, s in enumerate(solutions) if s.discrepancy > 1e-9]
            if not doubtful:
                break
            starts = [problems[b].other_start(rng) for b in doubtful]
            again = solve([problems[b] for b in doubtful], starts, n_threads=self.n_threads)
            for b, other in zip(doubtful, again, strict=True):
                if other.discrepancy < solutions[b].discrepancy:
                    solutions[b] = other
        return solutions


def default_delta(n_samples: float) -> float:
    """The paper's tolerance, ``0.25 log(N) / N`` on the log-likelihood per sample.

    For a population it is zero, and what rounding leaves of zero: 1e-9.

    >>> round(default_delta(1000), 6)
    0.001727
    """
    return 1e-9 if math.isinf(n_samples) else 0.25 * math.log(n_samples) / n_samples
