"""Maximum likelihood over groups, with means: damped Fisher scoring, then Newton's steps, on one parameter vector.

    groups ──► Structure (which parameters, which of them equal) ─┐
          └──► Observations (rows, complete or not) ──────────────┴──► Joint ──► optimum, information, scores

The objective is the mean over all rows of minus twice their log-likelihood. Its expected Hessian is
``2 Delta' A Delta``, with Delta the derivatives of the stacked moments and A their expected information; the exact one
adds the curvature of the moments (:meth:`unmeasured.models.moments.Point.curvature`) and takes A as observed. Damping
is in proportion to the diagonal, so that units do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.models.likelihood import Observations
from unmeasured.models.moments import Point, Structure

# We stop where a step is predicted to gain less than this per row; below _NEAR the exact Hessian is used.
_TOLERANCE, _NEAR = 1e-13, 1e-2
_MAX_STEPS = 300


@dataclass(frozen=True, eq=False)
class Joint:
    """Structures and observations of all groups, in one order."""

    structures: tuple[Structure, ...]
    observations: tuple[Observations, ...]
    size: int  # parameters of all groups, equal ones counted once

    @cached_property
    def n(self) -> float:
        """Rows of all groups."""
        return sum(o.n for o in self.observations)

    @cached_property
    def weights(self) -> Floats:
        """(G,) share of each group in the rows."""
        return np.array([o.n / self.n for o in self.observations])

    def points(self, theta: Floats) -> list[Point]:
        """Moments of every group."""
        return [s.at(theta) for s in self.structures]

    def value(self, theta: Floats) -> float:
        """The objective; infinite where a covariance is not positive definite."""
        points = self.points(theta)
        values = (w * o.value(p.mu, p.Sigma) for w, o, p in zip(self.weights, self.observations, points, strict=True))
        return float(sum(values))

    def gradient(self, theta: Floats) -> Floats:
        """(q,) derivatives of the objective."""
        total = np.zeros(self.size)
        for w, s, o, p in zip(self.weights, self.structures, self.observations, self.points(theta), strict=True):
            g, G = o.gradient(p.mu, p.Sigma)
            total += w * s.joined(parameter_gradient(g, G, p), self.size)
        return total

    def jacobians(self, theta: Floats) -> list[Floats]:
        """Of each group: derivatives of its moments in the joint parameters."""
        return [s.joined(p.jacobian, self.size) for s, p in zip(self.structures, self.points(theta), strict=True)]

    def expected(self, theta: Floats) -> Floats:
        """(q, q) expected information per row."""
        total = np.zeros((self.size, self.size))
        for w, s, o, p in zip(self.weights, self.structures, self.observations, self.points(theta), strict=True):
            local = o.parameter_information(p.mu, p.Sigma, p.directions, observed=False)
            total += w * joined_square(s, local, self.size)
        return total

    def observed(self, theta: Floats) -> Floats:
        """(q, q) observed information per row: half the second derivatives of the objective."""
        total = np.zeros((self.size, self.size))
        for w, s, o, p in zip(self.weights, self.structures, self.observations, self.points(theta), strict=True):
            g, G = o.gradient(p.mu, p.Sigma)
            local = o.parameter_information(p.mu, p.Sigma, p.directions, observed=True) + 0.5 * p.curvature(g, G)
            total += w * joined_square(s, local, self.size)
        return total

    def first_order(self, theta: Floats) -> Floats:
        """(q, q) mean outer product of the rows' scores."""
        total = np.zeros((self.size, self.size))
        for w, s, o, p in zip(self.weights, self.structures, self.observations, self.points(theta), strict=True):
            local = o.parameter_scores(p.mu, p.Sigma, p.directions)
            total += w * joined_square(s, local.T @ local / o.n, self.size)
        return total

    @cached_property
    def is_variance(self) -> Bools:
        """(q,) which parameters are variances, and so bounded by zero."""
        mask = np.zeros(self.size, dtype=bool)
        for s in self.structures:
            mask[s.where[: s.pattern.n_free][s.pattern.is_variance]] = True
        return mask

    def maximise(self, start: Floats, lower: Floats, check: Callable[[], None] | None = None) -> JointSolution:
        """From a start to the optimum; variances stay above ``lower`` (q,), -inf for the others.

        ``check`` is called before each step, and may raise.
        """

        def derivatives(theta: Floats, near: bool) -> tuple[Floats, Floats]:
            return self.gradient(theta), 2.0 * (self.observed(theta) if near else self.expected(theta))

        return minimise(self.value, derivatives, start, lower, self.n, check)


@dataclass(frozen=True, eq=False)
class JointSolution:
    """Where the optimiser ended."""

    theta: Floats
    value: float  # of the objective
    converged: bool
    steps: int
    predicted: float  # what one more step would gain per row
    lower: Floats

    @property
    def at_bound(self) -> Bools:
        """(q,) which variances ended at their bound."""
        return np.isfinite(self.lower) & (self.theta <= self.lower * 1.001)


def minimise(
    value_at: Callable[[Floats], float],
    derivatives_at: Callable[[Floats, bool], tuple[Floats, Floats]],
    start: Floats,
    lower: Floats,
    n: float,
    check: Callable[[], None] | None = None,
) -> JointSolution:
    """Damped Newton steps within lower bounds.

    ``derivatives_at(theta, near)`` gives the gradient and a Hessian: one that is never indefinite far from the optimum,
    the exact one near it.
    """
    theta = np.maximum(start, lower)
    value, damping, growth, predicted = value_at(theta), 1e-3, 2.0, math.inf
    for count in range(1, _MAX_STEPS + 1):
        if not math.isfinite(value):
            break
        if check is not None:
            check()
        gradient, hessian = derivatives_at(theta, predicted < _NEAR)
        # At its bound, and pushed against it: such a variance stays where it is.
        free = ~((theta <= lower * (1.0 + 1e-9)) & (gradient > 0))
        model = _Quadratic.of(hessian, gradient, free)
        if not model.is_convex:
            model = _Quadratic.of(derivatives_at(theta, False)[1], gradient, free)
        step, predicted = model.step(len(theta))
        if predicted < _TOLERANCE:
            last = np.maximum(theta + step, lower)
            last_value = value_at(last)
            if last_value <= value:
                theta, value = last, last_value
            return JointSolution(theta, value, True, count, predicted, lower)
        while damping < 1e12:
            step, gain = model.step(len(theta), damping)
            trial = np.maximum(theta + step, lower)
            trial_value = value_at(trial)
            if trial_value < value:
                ratio = (value - trial_value) / max(gain, 1e-300)
                damping = max(damping * max(1.0 / 3.0, 1.0 - (2.0 * ratio - 1.0) ** 3), 1e-12)
                growth, theta, value = 2.0, trial, trial_value
                break
            damping, growth = damping * growth, growth * 2.0
        else:  # nothing improves: at the optimum to rounding, or stuck
            break
    # A total log-likelihood that is right to this counts as converged too.
    return JointSolution(theta, value, predicted * n < 1e-6, count, predicted, lower)


@dataclass(frozen=True, eq=False)
class _Quadratic:
    """A quadratic model of the objective over the parameters that are free to move, in the basis of its Hessian."""

    at: Ints  # (k,) the parameters
    unit: Floats  # (k,) that give the Hessian a unit diagonal
    value: Floats  # (k,) its eigenvalues then
    vector: Floats
    along: Floats  # (k,) the gradient

    @classmethod
    def of(cls, H: Floats, gradient: Floats, free: Bools) -> _Quadratic:
        at = np.flatnonzero(free)
        diagonal = np.diag(H)[at]
        # A parameter that moves nothing is left alone.
        unit = np.where(diagonal > 0, 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
        value, vector = np.linalg.eigh(H[np.ix_(at, at)] * np.outer(unit, unit))
        return cls(at, unit, value, vector, vector.T @ (unit * gradient[at]))

    @property
    def is_convex(self) -> bool:
        """Whether no direction curves downwards, up to rounding."""
        return not len(self.value) or bool(self.value[0] >= -1e-8 * max(float(self.value[-1]), 1.0))

    def step(self, size: int, damping: float = 0.0) -> tuple[Floats, float]:
        """A damped step (size,) and what it is predicted to gain; directions without information are left alone."""
        flat = self.value < 1e-10 * max(float(self.value[-1]) if len(self.value) else 1.0, 1.0)
        move = np.where(flat, 0.0, self.along / np.where(flat, 1.0, self.value + damping))
        step = np.zeros(size)
        step[self.at] = -self.unit * (self.vector @ move)
        return step, float((move * self.along).sum() - 0.5 * (self.value * move**2).sum())


def parameter_gradient(g: Floats, G: Floats, point: Point) -> Floats:
    """(p,) derivatives in the local parameters, from those in mu and Sigma."""
    return point.directions.gradient(g, G)


def joined_square(s: Structure, local: Floats, size: int) -> Floats:
    """A matrix over local parameters, added up at their places in the joint vector."""
    return s.joined(s.joined(local, size).T, size)


def lower_bounds(structures: Sequence[Structure], observations: Sequence[Observations], size: int) -> Floats:
    """(q,) the least value of each parameter: a rounding error of its variable's variance, for variances."""
    lower = np.full(size, -math.inf)
    for s, o in zip(structures, observations, strict=True):
        variance = np.ones(s.pattern.n_nodes)
        variance[s.pattern.observed] = np.diag(o.independent[1])
        at = np.flatnonzero(s.pattern.is_variance)
        joint = s.where[at]
        lower[joint] = np.fmax(lower[joint], 1e-8 * variance[s.pattern.ends[at, 0]])
    return lower
