"""Fits of thousands of parameters: a quasi-Newton method whose steps cost as much as a gradient.

With a thousand variables and two thousand rows the expected Hessian is far from the observed one, and Fisher scoring
creeps: each step gains a fifth less than the one before. So the likelihood is climbed by L-BFGS (Nocedal 1980), whose
first guess of the Hessian are blocks of the expected one (:meth:`unmeasured.models.products.Likelihood.metric`), and
after tens of steps, unless there are too many parameters or the time is over, the whole of it, factored once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from unmeasured.arrays import Bools, Floats
from unmeasured.errors import Stopped
from unmeasured.kernels import likelihood as kernels
from unmeasured.kernels.start import LEAST_NOISE
from unmeasured.models.products import Likelihood
from unmeasured.models.solve import Check, Problem, Solution, is_over, never

# Where a step is predicted to gain less than this in total log-likelihood the fit has converged: a tenth of the 1e-8
# that may be missing, since the prediction is of a direction.
_GAIN = 1e-9
# Where rounding hides what a step gains, this is enough.
_GAIN_AT_ROUNDING = 1e-6
# A fit that is predicted to gain no more than this is not trapped.
_NEAR = 1e-2
_MAX_STEPS = 2000
# Steps that are remembered: of 1,000 variables 86 steps with 60, 123 with 20 (docs/search-notes.md, the seventh step);
# where a fit creeps, all of the first hundreds count.
_MEMORY = 400
# After so many steps by blocks the whole Hessian is made: 300 variables need 62 by blocks, 1,000 variables with a
# latent whose residual variance is small 1,848, and 95 with it.
_EASY = 50
# With more parameters it is not: it takes 0.5 GB then.
_MOST_WHOLE = 8000
# A population has no number of samples: what counts then is the objective to so many digits.
_ROWS_OF_POPULATION = 1e4
# A step gains at least this part of what its slope says, or is halved, so many times at most.
_LEAST_PART, _MOST_HALVED = 1e-4, 30


def solve_large(problem: Problem, start: Floats | None, n_restarts: int = 0, check: Check = never) -> Solution:
    """The optimum from a start nearby; without one, from the data, and where that does not converge from others.

    As far as it has come where ``check`` says that the time is over.
    """
    found = _solve(problem, problem.start if start is None else start, check)
    rng = np.random.default_rng(problem.pattern.n_free)
    for _ in range(n_restarts if start is None else 0):
        # A fit that creeps is next to its optimum, and would creep there from elsewhere too.
        if found.converged or _in_total(problem) * found.predicted_gain < _NEAR or is_over(check):
            break
        other = _solve(problem, problem.other_start(rng), check)
        found = other if other.discrepancy < found.discrepancy else found
    return found


class _Memory:
    """The inverse Hessian as far as steps have shown it, on top of a metric."""

    def __init__(self, likelihood: Likelihood, x: Floats, free: Bools, is_whole: bool, check: Check) -> None:
        self.free, self.is_whole = free, is_whole
        self._metric = likelihood.whole_metric(x, free, check) if is_whole else likelihood.metric(x, free)
        self._pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)

    @property
    def is_empty(self) -> bool:
        return not self._pairs

    def add(self, step: Floats, change: Floats) -> None:
        """A step, and by how much it changed the gradient."""
        curvature = float(step @ change)
        if curvature > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self._pairs.append((step, change, 1.0 / curvature))

    def direction(self, gradient: Floats) -> Floats:
        """The step of Newton's method by what is known; nothing where a parameter is at its bound."""
        left, parts = np.where(self.free, gradient, 0.0), []
        for step, change, unit in reversed(self._pairs):
            parts.append(unit * float(step @ left))
            left = left - parts[-1] * change
        found = self._metric(left)
        for (step, change, unit), part in zip(self._pairs, reversed(parts), strict=True):
            found = found + (part - unit * float(change @ found)) * step
        return np.where(self.free, -found, 0.0)


def _solve(problem: Problem, start: Floats, check: Check) -> Solution:
    pattern, sample = problem.pattern, problem.sample
    fixed, fixed2 = pattern.scaled(problem.scale)
    likelihood = Likelihood(replace(pattern, fixed=fixed, fixed2=fixed2), sample.corr)
    in_total = _in_total(problem)
    lower = np.where(pattern.is_variance, LEAST_NOISE, -np.inf)
    x = np.maximum(start, lower)
    value, gradient = likelihood(x)
    history, predicted, end = [value], np.inf, kernels.STEP_LIMIT
    memory = None
    if not np.isfinite(value):
        end = kernels.BAD_START
    while end == kernels.STEP_LIMIT and len(history) <= _MAX_STEPS and not is_over(check):
        free = ~((x <= lower) & (gradient > 0.0))
        is_whole = len(history) > _EASY and len(x) <= _MOST_WHOLE
        if memory is None or (memory.free != free).any() or memory.is_whole != is_whole:
            try:
                memory = _Memory(likelihood, x, free, is_whole, check)
            except Stopped:
                break
        step = memory.direction(gradient)
        predicted = -0.5 * float(gradient @ step)
        if in_total * predicted < _GAIN:
            end = kernels.CONVERGED
            break
        other, after, slope = _along(likelihood, x, value, gradient, step, lower)
        if after < value:
            memory.add(other - x, slope - gradient)
            x, value, gradient = other, after, slope
            history.append(value)
        elif not memory.is_empty:  # what was learnt before does not hold here
            memory = None
        else:
            end = kernels.CONVERGED if in_total * predicted < _GAIN_AT_ROUNDING else kernels.STALLED
    discrepancy = value - sample.log_det_corr - len(sample.names)
    return Solution(x, discrepancy, end, len(history) - 1, predicted, np.array(history), lower)


def _in_total(problem: Problem) -> float:
    """What a unit of the discrepancy is in total log-likelihood."""
    n = problem.sample.n
    return 0.5 * (n if np.isfinite(n) else _ROWS_OF_POPULATION)


def _along(
    likelihood: Likelihood, x: Floats, value: float, gradient: Floats, step: Floats, lower: Floats
) -> tuple[Floats, float, Floats]:
    """A point along a step, no parameter below its bound, with its objective and gradient: halved until it gains."""
    for _ in range(_MOST_HALVED):
        other = np.maximum(x + step, lower)
        after, slope = likelihood(other)
        if after <= value + _LEAST_PART * float(gradient @ (other - x)):
            return other, after, slope
        step = 0.5 * step
    return x, np.inf, gradient
