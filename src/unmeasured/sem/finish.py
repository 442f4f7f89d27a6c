"""The last touches of a fit that is reported: estimates to the last digit, and latents that point one way.

Scoring stops where the likelihood no longer rises within rounding, which leaves estimates right to five digits or so.
Steps that follow the slope alone, which rounding hides less, bring the rest. The sign of a latent is free, all its
loadings may change theirs together; we let it point the way of one indicator.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unmeasured.arrays import Bools, Floats
from unmeasured.sem.local_fit import inverse_root
from unmeasured.sem.parameters import Model, Parameter
from unmeasured.sem.products import LARGE
from unmeasured.sem.solve import Problem, Solution

if TYPE_CHECKING:
    from unmeasured.sem.fit import Fit

_STEPS = 30
# A step beyond this is none of the last digits, and where the slope is below this there is nothing to follow.
_FAR, _FLAT = 1e-2, 1e-10


def refined(problem: Problem, solution: Solution) -> Floats:
    """(p,) the solution after Fisher steps without a line search, as long as each lessens the slope."""
    x = solution.x
    if not len(x) or not solution.converged or solution.at_bound.any() or solution.vanished:
        return x
    if len(x) > LARGE:  # such fits follow the slope to the end, and each of these steps takes seconds
        return x
    _, slope, H = problem.derivatives(x)
    if not np.isfinite(H).all():
        return x
    root = inverse_root(H)
    left = root.T @ slope  # the slope in units of its own sampling error
    for _ in range(_STEPS):
        step = root @ left
        if np.abs(step).max() > _FAR or np.abs(left).max() < _FLAT:
            break
        new_left = root.T @ problem.derivatives(x - step)[1]
        if not new_left @ new_left < left @ left:
            break
        x, left = x - step, new_left
    return x


def pointed(fit: Fit, flipped: Bools) -> Fit:
    """The same fit with the signs of some latents changed, (d,) in causal order, where they are free."""
    pattern = fit.problem.pattern
    sign = np.where(flipped & ~pattern.is_observed & ~_tied(fit), -1.0, 1.0)
    a, b = pattern.ends.T
    return replace(fit, solution=replace(fit.solution, x=fit.solution.x * sign[a] * sign[b]))


def _tied(fit: Fit) -> Bools:
    """(d,) which variables have an effect or covariance fixed to something other than zero."""
    pattern = fit.problem.pattern
    tied = np.zeros(pattern.n_nodes, dtype=bool)
    fixed = (pattern.slot < 0) & (pattern.fixed != 0)
    tied[pattern.source[fixed]] = tied[pattern.target[fixed]] = True
    fixed = (pattern.slot2 < 0) & (pattern.fixed2 != 0) & (pattern.first != pattern.second)
    tied[pattern.first[fixed]] = tied[pattern.second[fixed]] = True
    return tied


def first_indicators_positive(fit: Fit) -> Fit:
    """Latents of model text point the way of the first indicator they are given; those of a graph of the strongest."""
    pattern = fit.problem.pattern
    # On variables of unit variance; of entries that are fixed only the sign counts.
    F = pattern.matrices(np.append(fit.solution.x, 0.0))[0]
    place = {name: k for k, name in enumerate(pattern.names)}
    flipped = np.zeros(len(place), dtype=bool)
    children: dict[str, list[Parameter]] = {latent: [] for latent in fit.model.latents}
    for p in fit.model.parameters:
        if p.op != "~~" and p.source in children:
            children[p.source].append(p)
    for latent, rows in children.items():
        shown = [p for p in rows if p.op == "=~" and p.target not in children] or rows
        loadings = np.array([F[place[latent], place[p.target]] for p in shown])
        known = np.flatnonzero(loadings)
        if len(known):
            leading = known[0] if isinstance(fit.graph, Model) else np.argmax(np.abs(loadings))
            flipped[place[latent]] = loadings[leading] < 0
    return pointed(fit, flipped)
