"""Scores a search asks: the maximum likelihood of a class, with a memory over classes already fitted."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.data.sample import Sample
from unmeasured.graphs import DAG
from unmeasured.sem.dimension import jacobian_rank
from unmeasured.sem.parameters import pattern_of
from unmeasured.sem.solve import Problem, Solution, solve

# Fits of a search stop once a step promises less than this in total log-likelihood.
_SEARCH_GAIN = 1e-3
# Steps to tell which models are in the running, how many of them are, and steps to fit those.
_QUICK_STEPS, _IN_THE_RUNNING, _STEPS = 12, 12, 60
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


class Measurement(Scorable, Protocol):
    """A measurement model: a class whose groups are all connected."""

    @property
    def observed(self) -> tuple[str, ...]:
        """Names of the observed variables."""
        ...

    @property
    def sizes(self) -> tuple[int, ...]:
        """Latents in each group."""
        ...

    @property
    def signature(self) -> Hashable:
        """Equal for models that differ only in which variables play which role."""
        ...

    @property
    def n_parameters(self) -> int:
        """Free parameters less rotations."""
        ...

    @property
    def has_pure_children(self) -> bool:
        """Whether every group of k has 2k pure children."""
        ...


class LikelihoodScore:
    """Maximum log-likelihood per sample, less that of the saturated model: at most zero, larger is better.

    Scores are remembered by class; ``n_fitted`` and ``n_remembered`` count for the trace.
    """

    def __init__(self, sample: Sample, *, n_threads: int | None = None) -> None:
        self.sample = sample
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
        starts = [problem.unknown for problem in problems]
        if math.isinf(self.sample.n):
            solutions = self._insist(problems, solve(problems, starts, n_threads=self.n_threads))
        else:
            # A thousandth of a unit is far below any tolerance. Overfull states end at bounds as a rule, and other
            # starts change them by less than that; insisting on each made the search many times slower.
            solutions = solve(problems, starts, gain=_SEARCH_GAIN, max_steps=2 * _STEPS, n_threads=self.n_threads)
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


class BicScore:
    """Total log-likelihood less ``0.5 penalty log(N)`` for each generic dimension; larger is better.

    For measurement models, whose groups are all connected. The constant of the saturated model is left out.
    """

    def __init__(self, sample: Sample, *, penalty: float = 1.0, n_threads: int | None = None) -> None:
        self.sample = sample
        self.price = 0.5 * penalty * math.log(sample.n)
        self.n_threads = n_threads
        self.n_fitted = 0
        self.n_remembered = 0
        self._memory: dict[Hashable, float] = {}
        self._dimensions: dict[Hashable, int] = {}

    def __call__(self, models: Sequence[Measurement]) -> Floats:
        """Scores (B,) of many models, fitted in one batch; those met before are remembered."""
        new = {m.key: m for m in models if m.key not in self._memory}
        self.n_fitted += len(new)
        self.n_remembered += len(models) - len(new)
        problems = [Problem.of(pattern_of(model.member), self.sample) for model in new.values()]
        prices = np.array([self.price * self.dimension(model) for model in new.values()])
        solutions = self._solve(problems, [p.unknown for p in problems], _QUICK_STEPS)
        # A few steps tell which models are in the running; only those are fitted to the end.
        values = self._values(solutions) - prices
        running = np.argsort(-values)[:_IN_THE_RUNNING].tolist()
        ends = self._solve([problems[b] for b in running], [solutions[b].x for b in running], _STEPS)
        values[running] = self._values(ends) - prices[running]
        self._memory.update(zip(new, values.tolist(), strict=True))
        return np.array([self._memory[model.key] for model in models])

    def _solve(self, problems: Sequence[Problem], starts: Sequence[Floats], max_steps: int) -> list[Solution]:
        return solve(problems, starts, gain=_SEARCH_GAIN, max_steps=max_steps, n_threads=self.n_threads)

    def _values(self, solutions: Sequence[Solution]) -> Floats:
        return np.array([-0.5 * self.sample.n * max(solution.discrepancy, 0.0) for solution in solutions])

    def rises(self, model: Measurement, everything: DAG) -> dict[tuple[str, str], float]:
        """What log-likelihood each edge of ``everything`` that the model lacks would add, by score tests.

        One derivative of the larger graph at the fit of the model stands for a fit with each edge.
        """
        problem = Problem.of(pattern_of(model.member), self.sample)
        (solution,) = self._solve([problem], [problem.unknown], _STEPS)
        larger = Problem.of(pattern_of(everything), self.sample)
        known = {problem.ends(slot): value for slot, value in enumerate(solution.x)}
        ends = [larger.ends(slot) for slot in range(larger.pattern.n_free)]
        x = np.array([known.get(end, 0.0) for end in ends])
        _, gradient, H = larger.derivatives(x)
        old = np.array([end in known for end in ends])
        A, B = H[np.ix_(old, old)], H[np.ix_(old, ~old)]
        A = A + np.diag(1e-6 * np.diag(A) + 1e-12)  # rotations inside groups leave it singular
        free = np.diag(H)[~old] - (B * np.linalg.solve(A, B)).sum(axis=0)
        rise = 0.25 * self.sample.n * gradient[~old] ** 2 / np.maximum(free, 1e-6 * np.diag(H)[~old] + 1e-12)
        return dict(zip([end for end, have in zip(ends, old, strict=True) if not have], rise.tolist(), strict=True))

    def dimension(self, model: Measurement) -> int:
        """Generic dimension; remembered by what it depends on, since it takes longer than a fit."""
        if model.has_pure_children and (len(model.sizes) > 1 or len(model.observed) > 2 * model.sizes[0]):
            # Not deficient. Leave out a pure child i of a group of k: among the other 2k - 1 and one variable outside
            # the group that is correlated with it there are disjoint A, B of k each with Cov(A, B) invertible, and
            # det Cov(A + i, B + i) = 0 is linear in the noise of i once that is taken off its variance, so the noise
            # is determined (Anderson and Rubin 1956), and with it all else but the basis of each group.
            return model.n_parameters
        key = model.signature
        if key not in self._dimensions:
            self._dimensions[key] = jacobian_rank(pattern_of(model.member))
        return self._dimensions[key]


def default_delta(n_samples: float) -> float:
    """The paper's tolerance, ``0.25 log(N) / N`` on the log-likelihood per sample.

    For a population it is zero, and what rounding leaves of zero: 1e-9.

    >>> round(default_delta(1000), 6)
    0.001727
    """
    return 1e-9 if math.isinf(n_samples) else 0.25 * math.log(n_samples) / n_samples
