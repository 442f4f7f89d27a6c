"""What a search will take, told before it is made.

The seconds are read off a curve measured on simulated questionnaires (``python -m benchmarks scaling``), times how fast
this machine does a fixed piece of the same work. Data of another kind take longer or less; the range says how much that
has been.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmeasured.data.sample import Sample, as_sample
from unmeasured.models.solve import Problem, solve
from unmeasured.search.bic import may_descend
from unmeasured.search.clock import in_words
from unmeasured.search.model import FactorModel

# Observed variables and seconds of LGES(), and what the work below takes, on the machine they were measured on.
_CURVE = (
    (5, 0.011), (10, 0.036), (20, 0.16), (26, 0.34), (30, 0.7), (34, 1.2), (36, 0.26), (44, 0.34), (60, 0.46),
    (100, 0.68), (160, 1.4), (300, 3.0), (500, 8.4), (1000, 32.6),
)  # fmt: skip
_WORK = 0.00157
# With so many rows that every model is rejected there is more to find, and the search goes on from larger penalties:
# twice the curve with 10 items of Big Five, nine times with all 25.
_MANY_ROWS = 4.0
# Most searches came out between a third and three times the curve.
_RANGE = 3.0
# MiB: Python with its libraries; and what 100 variables took besides, which grew with this power of their number.
_MEMORY, _MEMORY_OF_100, _POWER = 270.0, 78.0, 0.95


@dataclass(frozen=True)
class Cost:
    """Estimated seconds of a search with their range, and memory in MiB.

    >>> print(Cost(42.0, 14.0, 126.0, 300.0))
    about 40 s (between 15 s and 2 min), 300 MiB
    """

    seconds: float
    least: float
    most: float
    memory: float

    def __str__(self) -> str:
        bounds = f"between {in_words(self.least)} and {in_words(self.most)}"
        return f"about {in_words(self.seconds)} ({bounds}), {self.memory:.0f} MiB"


def estimate_cost(X: Any = None, **source: Any) -> Cost:
    """Estimate the time and memory that ``LGES()`` needs for these data on this machine.

    Parameters are those of :func:`unmeasured.as_sample`: rows, or ``cov=`` and ``n_samples=``.

    Examples
    --------
    >>> import unmeasured as um
    >>> data = um.datasets.load("big_five")
    >>> cost = um.estimate_cost(cov=data.frame(), n_samples=data.n_samples)
    >>> cost.least < cost.seconds < cost.most
    True
    """
    sample = X if isinstance(X, Sample) else as_sample(X, **source)
    n = len(sample.names)
    seconds = seconds_on_the_curve(n) * slowness() * (_MANY_ROWS if may_descend(sample) else 1.0)
    memory = _MEMORY + _MEMORY_OF_100 * (n / 100) ** _POWER
    return Cost(seconds, seconds / _RANGE, seconds * _RANGE, memory)


def seconds_on_the_curve(n: int) -> float:
    """Seconds on the machine of the curve: straight lines between its points on a logarithmic scale, and beyond it one.

    >>> seconds_on_the_curve(10), seconds_on_the_curve(2000) > 3 * seconds_on_the_curve(1000)
    (0.036, True)
    """
    size, seconds = np.log(np.array(_CURVE)).T
    slope = (seconds[-1] - seconds[-4]) / (size[-1] - size[-4])  # two graphs a size: one stretch alone is too noisy
    at = math.log(n)
    within = float(np.exp(np.interp(at, size, seconds)))
    return round(within * math.exp(max(at - size[-1], 0.0) * slope), 6)


def slowness() -> float:
    """How many times longer than on the machine of the curve a fixed batch of fits takes here."""
    names = tuple(f"x{i}" for i in range(15))
    model = FactorModel(names, (1,) * 5, tuple(1 << i % 5 for i in range(15)))
    together = np.equal.outer(np.arange(15) % 5, np.arange(15) % 5)
    sample = as_sample(cov=np.where(together, 0.5, 0.2) + 0.5 * np.eye(15), n_samples=1000, names=names)
    problems = [Problem(model.pattern, sample)] * 20
    starts = [problem.unknown for problem in problems]
    solve(problems, starts, gain=1e-3, n_threads=1)  # compiled by now
    times = []
    for _ in range(3):
        began = time.perf_counter()
        solve(problems, starts, gain=1e-3, n_threads=1)
        times.append(time.perf_counter() - began)
    return min(times) / _WORK
