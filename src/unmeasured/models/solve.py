"""From a model and a sample to a solution: bounds, batches, threads, restarts.

Nothing here knows of standard errors or fit indices; :mod:`unmeasured.models.fit` makes answers of solutions.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import ThreadingBackend, get_active_backend

from unmeasured.arrays import Bools, Floats
from unmeasured.data.sample import Sample
from unmeasured.kernels import batch, start
from unmeasured.kernels import likelihood as kernels
from unmeasured.kernels.likelihood import is_ready
from unmeasured.models import products
from unmeasured.models.checks import Check as Check
from unmeasured.models.checks import is_over as is_over
from unmeasured.models.checks import never as never
from unmeasured.models.indices import rmsea
from unmeasured.models.parameters import Pattern

logger = logging.getLogger("unmeasured")

# We stop where a last undamped step would gain less than this per sample; on a flat ridge estimates need it.
_TOLERANCE = 1e-12
# At the limit of steps, a total log-likelihood that is right to this counts as converged too.
_GAIN = 1e-8
_FIRST_STEPS, _MAX_STEPS = 60, 500
# What a fit that has not begun yet is told of its last step, damping, growth and stretch.
_FIRST_PACE = (math.inf, 0.0, 0.0, 0.0)
# Between two looks at the clock: so many seconds of work, on a machine that does so many operations in a second. Short,
# since a busy machine may take ten times as long.
_SLICE, _SPEED = 0.1, 1e9
# Without a clock to look at: each slice begins with the derivatives that the last one ended with, and Ctrl-C waits for
# its end. 200 variables with 40 latents take 0.02 s a step where 0.2 s are reckoned with.
_UNCHECKED_SLICE = 5.0
# Steps most fits take.
_USUAL_STEPS = 20
# Beyond this RMSEA a fit gets other starts: with correlations near 1 some end a thousand units above the optimum.
_FAR_RMSEA = 0.1


@dataclass(frozen=True, eq=False)
class Solution:
    """What the compiled core says of one problem, on variables of unit variance."""

    x: Floats
    discrepancy: float  # log det Sigma + tr(Sigma^-1 S) - log det S - n: zero for a perfect fit
    end: int
    steps: int
    predicted_gain: float  # by how much the last step was to lower the objective
    history: Floats
    lower: Floats  # (p,) bounds
    n_starts: int = 1
    zero_variance_latents: tuple[str, ...] = ()  # latents whose residual variance ran to zero
    pace: tuple[float, float, float] = (0.0, 0.0, 0.0)  # damping, its growth and the stretch where this ended

    @property
    def converged(self) -> bool:
        return self.end == kernels.CONVERGED

    @property
    def at_bound(self) -> Bools:
        """(p,) which variances ended at their lower bound."""
        return self.x <= 1.001 * self.lower


@dataclass(frozen=True, eq=False)
class Problem:
    """A pattern on a sample: what depends on both and is needed for every start."""

    pattern: Pattern
    sample: Sample  # of exactly the observed variables of the pattern, in its order
    lower: Floats | None = None  # (p,) bounds; None: those that keep every variance above rounding

    @classmethod
    def of(cls, pattern: Pattern, sample: Sample) -> Problem:
        """Tie a pattern to a sample of exactly its observed variables, whose order rules."""
        if pattern.observed_names != sample.names:
            order = [pattern.observed_names.index(name) for name in sample.names]
            pattern = replace(pattern, observed=pattern.observed[order])
        return cls(pattern, sample)

    @cached_property
    def scale(self) -> Floats:
        """(d,) standard deviations of the observed variables, 1 for latents."""
        scale = np.ones(self.pattern.n_nodes)
        scale[self.pattern.observed] = self.sample.sd
        return scale

    @cached_property
    def start(self) -> Floats:
        """The default starting values, made from the data: where a fit of no steps ends."""
        return _solve_chunk([self], [np.full(self.pattern.n_free, np.nan)], 0)[0].x

    @property
    def unknown(self) -> Floats:
        """A start, or bounds, that are no numbers: the batch makes its own from the data."""
        return np.full(self.pattern.n_free, np.nan)

    def ends(self, slot: int) -> tuple[str, str]:
        """Names of the two variables of a parameter: cause and effect, or the two of a covariance."""
        a, b = self.pattern.ends[slot]
        return self.pattern.names[a], self.pattern.names[b]

    def derivatives(self, x: Floats) -> tuple[float, Floats, Floats]:
        """Objective, gradient (p,) and expected Hessian (p, p) at x, on variables of unit variance."""
        pattern = self.pattern
        fixed, fixed2 = pattern.scaled(self.scale)
        if pattern.n_free > products.LARGE:
            return products.derivatives(replace(pattern, fixed=fixed, fixed2=fixed2), self.sample.corr, x)
        return kernels.information(
            self.sample.corr, pattern.n_nodes, pattern.observed, pattern.source, pattern.target, pattern.slot, fixed,
            pattern.first, pattern.second, pattern.slot2, fixed2, x,
        )  # fmt: skip

    def misfits(self, solution: Solution) -> bool:
        """Whether a solution is far from the data, by its RMSEA; a population has its own rules."""
        n = len(self.sample.names)
        df = n * (n + 1) // 2 - self.pattern.n_free
        chi2 = self.sample.n * solution.discrepancy
        return df > 0 and math.isfinite(chi2) and rmsea(chi2, df, self.sample.n) > _FAR_RMSEA

    def other_start(self, rng: np.random.Generator) -> Floats:
        """Another start: the default, shaken hard enough to land in another valley.

        Covariances shrink together, so that Omega, and with it Sigma, stays positive definite.
        """
        pattern, p = self.pattern, self.pattern.n_free
        loading = pattern.is_path & pattern.is_observed[pattern.ends[:, 1]]
        path = pattern.is_path & ~loading
        factor = np.full(p, rng.uniform(0.0, 0.8))
        factor[loading] = rng.uniform(0.4, 1.3, int(loading.sum()))
        factor[path] = rng.uniform(-0.7, 1.0, int(path.sum()))
        factor[pattern.is_variance] = rng.uniform(0.5, 1.5, int(pattern.is_variance.sum()))
        spread = rng.choice([0.0, 0.4])  # half of the starts forget where the loadings were
        return np.where(pattern.is_path, rng.normal(0.0, spread, p), 0.0) + factor * self.start


def solve_with_restarts(
    problems: Sequence[Problem],
    *,
    starts: Sequence[Floats | None] | None = None,
    n_restarts: int = 6,
    gain: float = 0.0,
    n_threads: int | None = None,
    check: Check = never,
) -> list[Solution]:
    """Fit every problem from its start (default: made from the data); where that looks trapped, try others.

    Where ``check`` raises :class:`~unmeasured.errors.Stopped`, every fit is returned as far as it has come.

    A start looks trapped if it did not converge, or ended with a variance at its bound, or far from the data: real
    Heywood cases and bad models exist, but so do valleys that end there.
    """
    given = starts or [None] * len(problems)
    first = [problem.unknown if x is None else x for problem, x in zip(problems, given, strict=True)]
    solutions = solve(problems, first, gain=gain, n_threads=n_threads, check=check, partial=True)
    suspects = [
        b
        for b, (problem, s) in enumerate(zip(problems, solutions, strict=True))
        if not s.converged or s.zero_variance_latents or s.at_bound.any() or problem.misfits(s)
    ]
    if suspects and n_restarts and _goes_on(check, partial=True):
        # The seed is fixed and the draws are one problem's own: a fit does not depend on its batch.
        draws = {b: np.random.default_rng(problems[b].pattern.n_free) for b in suspects}
        tries = [b for b in suspects for _ in range(n_restarts)]
        others = solve(
            [problems[b] for b in tries],
            [problems[b].other_start(draws[b]) for b in tries],
            n_threads=n_threads,
            check=check,
            partial=True,
        )
        for b, other in zip(tries, others, strict=True):
            count = solutions[b].n_starts + 1
            # Keep the first unless another is better by more than rounding: same optimum, same numbers.
            better = other.discrepancy < solutions[b].discrepancy - 1e-10
            solutions[b] = replace(other if better else solutions[b], n_starts=count)
    return solutions


def solve(
    problems: Sequence[Problem],
    starts: Sequence[Floats | Solution],
    *,
    gain: float = 0.0,
    max_steps: int = _FIRST_STEPS,
    n_threads: int | None = None,
    check: Check = never,
    partial: bool = False,
) -> list[Solution]:
    """Fit every problem from its start, in compiled batches on several threads; all share one sample.

    A solution as a start is gone on with as if it had never stopped.

    A search that compares thousands of models may stop each fit once a step is predicted to gain less than ``gain``
    in total log-likelihood, and after ``max_steps`` in any case: models that crawl are those that do not fit.

    Most problems end within twenty steps. Those that do not are almost always those where the noise of a
    latent runs to zero: with that variance fixed to 1 for scale, the coefficients run to infinity instead and
    never arrive. They go on with a loading fixed and the variance free and bounded, where they do arrive.

    ``check`` is called every tenth of a second or so, and may raise :class:`~unmeasured.errors.Stopped` to end the
    work; with ``partial`` every fit is then returned as far as it has come.
    """
    tolerance = max(_TOLERANCE, 2.0 * gain / problems[0].sample.n) if problems else _TOLERANCE
    solutions = _solve_all(problems, starts, max_steps, tolerance, n_threads, check, partial)
    slow = [b for b, solution in enumerate(solutions) if solution.end == kernels.STEP_LIMIT and not gain]
    if slow and _goes_on(check, partial):
        others = [Rescaled.of(problems[b], solutions[b]) for b in slow]
        again = _solve_all(
            [r.problem for r in others],
            [r.x for r in others],
            _MAX_STEPS,
            tolerance,
            n_threads,
            check,
            partial,
        )
        for b, rescaled, solution in zip(slow, others, again, strict=True):
            solutions[b] = replace(
                solution,
                x=rescaled.back(solution.x),
                lower=solutions[b].lower,
                steps=solutions[b].steps + solution.steps,
                history=np.concatenate([solutions[b].history, solution.history[1:]]),
                zero_variance_latents=rescaled.zero_variance_latents(solution),
                end=kernels.CONVERGED if solution.predicted_gain * problems[b].sample.n < 2.0 * _GAIN else solution.end,
            )
    return solutions


@dataclass(frozen=True, eq=False)
class Rescaled:
    """A problem whose endogenous latents get their scale from a loading instead of their residual variance.

    The parameter of that loading and the residual variance trade places, so vectors keep their length.
    """

    problem: Problem
    x: Floats
    original: Pattern
    swapped: tuple[tuple[int, int, int], ...]  # (latent, edge of the loading, entry of Omega)

    @classmethod
    def of(cls, problem: Problem, at: Solution) -> Rescaled:
        """Rescale a problem where a run of it ended; the implied covariance at the new x is the same."""
        pattern = problem.pattern
        slot, fixed = pattern.slot.copy(), pattern.fixed.copy()
        slot2, fixed2 = pattern.slot2.copy(), pattern.fixed2.copy()
        lower, x = at.lower.copy(), at.x.copy()
        endogenous = set(pattern.target.tolist())
        F, Omega = pattern.matrices(np.append(x, 0.0))
        E = np.linalg.inv(np.eye(len(F)) - F)
        variance = np.diag(E.T @ Omega @ E)
        swapped = []
        for q in range(len(slot2)):
            latent = int(pattern.first[q])
            if slot2[q] >= 0 or latent != pattern.second[q] or latent not in endogenous or pattern.is_observed[latent]:
                continue
            edges = np.flatnonzero((pattern.source == latent) & (slot >= 0))
            if not len(edges) or fixed2[q] <= 0:
                continue
            e = int(edges[np.argmax(np.abs(x[slot[edges]]))])
            s = slot[e]
            slot2[q], slot[e] = s, -1
            fixed[e] = x[s] * problem.scale[pattern.target[e]]  # fixed values are on the scale of the data
            x[s], lower[s] = fixed2[q], start.LEAST_NOISE * variance[latent]
            swapped.append((latent, e, q))
        swapped_pattern = replace(pattern, slot=slot, fixed=fixed, slot2=slot2, fixed2=fixed2)
        return cls(replace(problem, pattern=swapped_pattern, lower=lower), x, pattern, tuple(swapped))

    def back(self, x: Floats) -> Floats:
        """The same point with residual variances fixed again."""
        pattern, original = self.problem.pattern, self.original
        unit = np.ones(original.n_nodes)
        for latent, _, q in self.swapped:
            s = pattern.slot2[q]
            # A start that implies no covariance may leave the variance below its bound.
            value = max(float(x[s]), 0.0 if self.problem.lower is None else float(self.problem.lower[s]))
            unit[latent] = np.sqrt(original.fixed2[q] / value) if value > 0 else 1.0
        F, _ = pattern.matrices(np.append(x, 0.0))
        scale = self.problem.scale
        fixed = pattern.slot < 0  # matrices() leaves fixed values on the scale of the data
        F[pattern.source[fixed], pattern.target[fixed]] *= scale[pattern.source[fixed]] / scale[pattern.target[fixed]]
        F = F * unit[None, :] / unit[:, None]
        out = x.copy()
        free = original.slot >= 0
        out[original.slot[free]] = F[original.source[free], original.target[free]]
        free = original.slot2 >= 0
        i, j = original.first[free], original.second[free]
        out[original.slot2[free]] = x[original.slot2[free]] * unit[i] * unit[j]
        return out

    def zero_variance_latents(self, solution: Solution) -> tuple[str, ...]:
        """Latents whose residual variance ran to its bound."""
        slot2, at_bound = self.problem.pattern.slot2, solution.at_bound
        return tuple(self.original.names[latent] for latent, _, q in self.swapped if at_bound[slot2[q]])


def _solve_all(
    problems: Sequence[Problem],
    starts: Sequence[Floats | Solution],
    max_steps: int,
    tolerance: float,
    n_threads: int | None,
    check: Check,
    partial: bool,
) -> list[Solution]:
    """All problems, slice by slice; the clock is looked at between slices."""
    if not problems:
        return []
    solutions: list[Solution] = []
    with compilation_announced():
        for a, b in _slices(problems, max_steps, _n_workers(n_threads)):
            # What is left when the time is over stays where it starts.
            allowed = max_steps if _goes_on(check, partial) else 0
            solutions += _solve_slice(problems[a:b], starts[a:b], allowed, tolerance, n_threads, check, partial)
    return solutions


def _goes_on(check: Check, partial: bool) -> bool:
    """Whether there is time; where there is none and partial answers are not wanted, the work ends here."""
    if not partial:
        check()
    return not (partial and is_over(check))


def _seconds_per_step(problem: Problem) -> float:
    """About how long a step takes: a Cholesky factorisation over parameters, tables over variables."""
    p, n = problem.pattern.n_free, len(problem.sample.names)
    return (p**3 / 3 + 10 * p**2 + 3 * n**3) / _SPEED


def _slices(problems: Sequence[Problem], max_steps: int, n_workers: int) -> Iterator[tuple[int, int]]:
    """Where to cut a batch so that the parts take about as long as they may."""
    begin, work = 0, 0.0
    for b, problem in enumerate(problems):
        own = min(max_steps, _USUAL_STEPS) * _seconds_per_step(problem)
        if b > begin and work + own > _SLICE * n_workers:
            yield begin, b
            begin, work = b, 0.0
        work += own
    yield begin, len(problems)


def _solve_slice(
    problems: Sequence[Problem],
    starts: Sequence[Floats | Solution],
    max_steps: int,
    tolerance: float,
    n_threads: int | None,
    check: Check,
    partial: bool,
) -> list[Solution]:
    """A few problems; where a step takes long, a few steps at a time, which changes nothing in the end."""
    slice_seconds = _UNCHECKED_SLICE if check is never else _SLICE
    few = min(max(int(slice_seconds / _seconds_per_step(problems[0])), 1), max_steps)
    solutions = _solve_chunks(problems, starts, few, tolerance, n_threads)
    done = few
    while done < max_steps:
        slow = [b for b, solution in enumerate(solutions) if solution.end == kernels.STEP_LIMIT]
        if not slow or not _goes_on(check, partial):
            break
        few = min(few, max_steps - done)
        more = _solve_chunks(
            [problems[b] for b in slow], [solutions[b] for b in slow], few, tolerance, n_threads
        )  # fmt: skip
        for b, solution in zip(slow, more, strict=True):
            before = solutions[b]
            history = np.concatenate([before.history, solution.history[1:]])
            solutions[b] = replace(solution, steps=before.steps + solution.steps, history=history)
        done += few
    return solutions


def _n_workers(n_threads: int | None) -> int:
    return 1 if n_threads == 1 else effective_n_jobs(n_threads or -1)


def _solve_chunks(
    problems: Sequence[Problem],
    starts: Sequence[Floats | Solution],
    max_steps: int,
    tolerance: float,
    n_threads: int | None,
) -> list[Solution]:
    n_workers = 1 if len(problems) == 1 else _n_workers(n_threads)
    n_chunks = 1 if n_workers == 1 else min(len(problems), 8 * n_workers)
    if n_chunks == 1:
        return _solve_chunk(problems, starts, max_steps, tolerance)
    cuts = [len(problems) * c // n_chunks for c in range(n_chunks + 1)]
    chunks = [(problems[a:b], starts[a:b], max_steps, tolerance) for a, b in pairwise(cuts)]
    return [solution for part in _mapped(chunks, n_workers) for solution in part]


def _mapped(
    chunks: Sequence[tuple[Sequence[Problem], Sequence[Floats | Solution], int, float]], n: int
) -> list[list[Solution]]:
    """Chunks on n threads; or, where ``joblib.parallel_config`` names a backend, on that: a cluster, say."""
    # Threads, not a parallel kernel: the kernels release the interpreter lock, and plain threads are safe
    # under fork, inside joblib workers and when called from several threads at once, which OpenMP is not.
    if isinstance(get_active_backend(prefer="threads")[0], ThreadingBackend):
        # Not joblib's own, which look for what is done every ten milliseconds: as long as a batch takes.
        with ThreadPoolExecutor(n) as pool:
            return list(pool.map(lambda chunk: _solve_chunk(*chunk), chunks))
    return list(Parallel(n_jobs=n, batch_size=1)(delayed(_solve_chunk)(*chunk) for chunk in chunks))


def _solve_chunk(
    problems: Sequence[Problem], starts: Sequence[Floats | Solution], max_steps: int, tolerance: float = _TOLERANCE
) -> list[Solution]:
    sample, patterns = problems[0].sample, [problem.pattern for problem in problems]
    size = len(problems)
    x = np.concatenate([s.x if isinstance(s, Solution) else s for s in starts])
    paces = np.array([(s.predicted_gain, *s.pace) if isinstance(s, Solution) else _FIRST_PACE for s in starts])
    lower = np.full(len(x), np.nan)
    if any(problem.lower is not None for problem in problems):
        lower = np.concatenate([problem.unknown if problem.lower is None else problem.lower for problem in problems])
    values = np.empty(size)
    steps, ends = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    history = np.empty((size, max_steps + 1))
    batch.fit_batch(
        sample.corr,
        sample.sd,
        np.array([pattern.sizes for pattern in patterns], dtype=np.int64),
        np.concatenate([array for pattern in patterns for array in pattern.ints]),
        np.concatenate([array for pattern in patterns for array in (pattern.fixed, pattern.fixed2)]),
        x, lower, sample.unexplained, max_steps, tolerance, values, steps, ends, paces, history,
    )  # fmt: skip
    least = sample.log_det_corr + len(sample.names)  # the objective of the saturated model
    out, at = [], 0
    for b, pattern in enumerate(patterns):
        mine = slice(at, at + pattern.n_free)
        n_steps = int(steps[b])
        out.append(
            Solution(
                x[mine], float(values[b]) - least, int(ends[b]), n_steps, float(paces[b, 0]),
                history[b, : n_steps + 1], lower[mine], pace=tuple(paces[b, 1:].tolist()),
            )
        )  # fmt: skip
        at += pattern.n_free
    return out


def n_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_ready = False


@contextmanager
def compilation_announced() -> Iterator[None]:
    """Say so where the kernels are not on disk yet and have to be compiled; once."""
    global _ready
    if not _ready and not is_ready(batch.score_batch):
        logger.warning("unmeasured: compiling its numeric kernels, once; this takes about half a minute.")
    _ready = True
    yield
