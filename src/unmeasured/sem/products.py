"""The likelihood of a model of thousands of parameters, and its derivatives, by matrix products of BLAS.

The compiled kernels (:mod:`unmeasured.sem.kernels`) are made for matrices of tens of rows, where a call into a library
costs more than the arithmetic. With a thousand variables it is the other way round. The formulas are the same: a
parameter moves Sigma by ``w (u v' + v u')``, and the gradient and the expected Hessian are read from the tables
``Z P Z'`` and ``Z P S P Z'``.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from unmeasured.arrays import Floats
from unmeasured.sem.parameters import Pattern

# With more free parameters: the last fit of a model of 500 variables and 100 latents did not end within two processor
# minutes by the kernels, and takes less than 20 s by these products. 957 parameters take 0.3 s by the kernels.
LARGE = 1000


def objective(pattern: Pattern, S: Floats, x: Floats) -> float:
    """``log det Sigma + tr(Sigma^-1 S)``; infinite where Sigma is not positive definite."""
    Sigma = _moments(pattern, x)[1][pattern.observed]
    try:
        factor = cho_factor(Sigma, check_finite=False)
    except np.linalg.LinAlgError:
        return np.inf
    log_det = 2.0 * float(np.log(np.diag(factor[0])).sum())
    return log_det + float(np.trace(cho_solve(factor, S, check_finite=False)))


def derivatives(pattern: Pattern, S: Floats, x: Floats) -> tuple[float, Floats, Floats]:
    """The objective, its gradient (p,) and its expected Hessian (p, p)."""
    T, C = _moments(pattern, x)
    try:
        factor = cho_factor(C[pattern.observed], check_finite=False)
    except np.linalg.LinAlgError:
        return np.inf, np.full(len(x), np.nan), np.full((len(x), len(x)), np.nan)
    P = cho_solve(factor, np.eye(len(S)), check_finite=False)
    PS = P @ S
    value = 2.0 * float(np.log(np.diag(factor[0])).sum()) + float(np.trace(PS))
    rows, at = np.unique(np.concatenate(pattern.rows), return_inverse=True)
    u, v = at.reshape(2, -1)
    Z = np.concatenate([T, C])[rows]
    ZP = Z @ P
    K = ZP @ Z.T
    D = K - (ZP @ S) @ ZP.T
    w = np.where(pattern.is_variance, 0.5, 1.0)
    H = K[np.ix_(u, u)] * K[np.ix_(v, v)] + K[np.ix_(u, v)] * K[np.ix_(v, u)]
    return value, 2.0 * w * D[u, v], 2.0 * np.outer(w, w) * H


def _moments(pattern: Pattern, x: Floats) -> tuple[Floats, Floats]:
    """Total effects T on the observed variables and covariances C with them, (d, n) each."""
    F, Omega = pattern.matrices(np.append(x, 0.0))
    E = np.linalg.inv(np.eye(len(F)) - F)
    T = E[:, pattern.observed]
    return np.asarray(T), np.asarray(E.T @ (Omega @ T))
