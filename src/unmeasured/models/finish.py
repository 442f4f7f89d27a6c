"""The last touch of a fit that is reported: estimates to the last digit.

Scoring stops where the likelihood no longer rises within rounding, which leaves estimates right to five digits or so.
Steps that follow the slope alone, which rounding hides less, bring the rest.
"""

from __future__ import annotations

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.models.local_fit import inverse_root
from unmeasured.models.products import LARGE
from unmeasured.models.solve import Problem, Solution

_STEPS = 30
# A step beyond this is none of the last digits, and where the slope is below this there is nothing to follow.
_FAR, _FLAT = 1e-2, 1e-10


def refined(problem: Problem, solution: Solution) -> Floats:
    """(p,) the solution after Fisher steps without a line search, as long as each lessens the slope."""
    x = solution.x
    if not len(x) or not solution.converged or solution.at_bound.any() or solution.zero_variance_latents:
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
