"""Compiled: objective, gradient, expected Hessian and damped Fisher scoring, one problem or a batch of them.

The model is ``V = F'V + e``, ``Cov(e) = Omega``. With the variables in causal order (causes first) nothing
has to be inverted but the implied covariance itself: the total effects ``T`` on the observed variables and
the covariances ``C`` with them follow from two passes over the edges,

    T[i] = [i is observed] + sum of F[i, j] T[j] over the children j          (last to first)
    C[j] = (Omega T)[j]    + sum of F[i, j] C[i] over the parents i           (first to last)

and ``Sigma`` is the observed rows of ``C``. Every free parameter moves Sigma by ``w (u v' + v u')``, where
``u`` is a row of ``T`` and ``v`` a row of ``C`` (an edge) or of ``T`` (a covariance; w = 1/2 for a variance).
Stack the rows in use as ``Z`` and let ``P`` be the inverse of Sigma. The objective
``f = log det Sigma + tr(P S)`` then has

    gradient           2 w (K - Z P S P Z')[u, v]
    expected Hessian   2 w w2 (K[u, u2] K[v, v2] + K[u, v2] K[v, u2])         with  K = Z P Z'

so both are read from small tables; no Jacobian of n^2 rows is ever formed. So is the exact Hessian
(:func:`exact_hessian`), which takes over near the optimum, where Fisher scoring crawls if the model misfits.

The matrices are small (tens of rows), where calls into LAPACK cost more than the arithmetic and its threads
fight with ours; the few factorisations are therefore written out. Functions release the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from unmeasured.arrays import Bools, Floats, Ints

Function = TypeVar("Function", bound=Callable[..., Any])

# How a run of Fisher scoring can end.
CONVERGED, STEP_LIMIT, STALLED, BAD_START = 0, 1, 2, 3

# Damping at the start, and the band it moves in. Below 1e-10 it no longer damps; beyond 1e10 no step is left.
_DAMPING, _DAMPING_LEAST, _DAMPING_MOST = 1e-2, 1e-10, 1e10
# Once a step promises less than this per sample, the exact Hessian takes over.
_NEAR = 1e-1


# Sums may be reordered (vectorised); infinities and NaN keep their meaning: we test for them. Divisions by
# zero give infinities, as in numpy: the checks that would raise instead double the time it takes to compile.
_FLAGS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz"},
    "error_model": "numpy",
}


def compiled(function: Function) -> Function:
    """Compile at the first call with our flags, keeping the machine code on disk."""
    return cast(Function, numba.njit(**_FLAGS)(function))


def inner(function: Function) -> Function:
    """As :func:`compiled`, for functions that only compiled code calls.

    No door for the interpreter is built, and nothing is kept on disk but within the callers: a copy of its own
    could be older than what it calls (see :mod:`unmeasured.sem.batch`).
    """
    flags: dict[str, Any] = {**_FLAGS, "cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Function, numba.njit(**flags)(function))


@inner
def cholesky(A: Floats, L: Floats) -> bool:
    """Lower factor of A into L; False where A is not positive definite."""
    n = A.shape[0]
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                # Relative to the diagonal, so that rounding cannot pass as a tiny positive pivot.
                if not s > 1e-14 * abs(A[i, i]):
                    return False
                L[i, i] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return True


@inner
def cholesky_solve(L: Floats, b: Floats) -> None:
    """Solve ``L L' x = b`` in place."""
    n = b.shape[0]
    for i in range(n):
        s = b[i]
        for k in range(i):
            s -= L[i, k] * b[k]
        b[i] = s / L[i, i]
    for i in range(n - 1, -1, -1):
        b[i] /= L[i, i]
        s = b[i]
        for k in range(i):
            b[k] -= L[i, k] * s


@inner
def inverse_from_cholesky(L: Floats, P: Floats, work: Floats) -> None:
    """``P = (L L')^-1``; ``work`` holds the inverse of L, transposed, row by row."""
    n = L.shape[0]
    # Row j of work is column j of L^-1.
    for j in range(n):
        for i in range(j):
            work[j, i] = 0.0
        work[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, n):
            s = 0.0
            for k in range(j, i):
                s -= L[i, k] * work[j, k]
            work[j, i] = s / L[i, i]
    for i in range(n):
        for j in range(i + 1):
            s = 0.0
            for k in range(i, n):
                s += work[i, k] * work[j, k]
            P[i, j] = s
            P[j, i] = s


@inner
def propagate(
    observed: Ints,
    source: Ints,
    target: Ints,
    effect: Floats,
    first: Ints,
    second: Ints,
    covariance: Floats,
    T: Floats,
    C: Floats,
) -> None:
    """Fill the total effects T and the covariances C with the observed variables (module docstring)."""
    n = observed.shape[0]
    for i in range(T.shape[0]):
        for k in range(n):
            T[i, k] = 0.0
            C[i, k] = 0.0
    for k in range(n):
        T[observed[k], k] = 1.0
    for e in range(source.shape[0] - 1, -1, -1):
        i, j, f = source[e], target[e], effect[e]
        for k in range(n):
            T[i, k] += f * T[j, k]
    for q in range(first.shape[0]):
        i, j, c = first[q], second[q], covariance[q]
        for k in range(n):
            C[i, k] += c * T[j, k]
        if i != j:
            for k in range(n):
                C[j, k] += c * T[i, k]
    for e in range(source.shape[0]):
        i, j, f = source[e], target[e], effect[e]
        for k in range(n):
            C[j, k] += f * C[i, k]


@inner
def objective(
    S: Floats, observed: Ints, T: Floats, C: Floats, Sigma: Floats, L: Floats, P: Floats, work: Floats
) -> float:
    """``log det Sigma + tr(Sigma^-1 S)``, or infinity where Sigma is not positive definite."""
    n = S.shape[0]
    for a in range(n):
        for b in range(n):
            Sigma[a, b] = C[observed[a], b]
    if not cholesky(Sigma, L):
        return np.inf
    value = 0.0
    for a in range(n):
        value += 2.0 * np.log(L[a, a])
    inverse_from_cholesky(L, P, work)
    for a in range(n):
        for b in range(n):
            value += P[a, b] * S[a, b]
    if not np.isfinite(value):
        return np.inf
    return value


@inner
def moving_rows(
    p: int, d: int, source: Ints, target: Ints, slot: Ints, first: Ints, second: Ints, slot2: Ints
) -> tuple[Ints, Ints, Ints, Floats]:
    """Which rows of [T; C] move Sigma, and for every free parameter its u and v among them and its weight w."""
    u, v, w = np.empty(p, dtype=np.int64), np.empty(p, dtype=np.int64), np.ones(p)
    for e in range(source.shape[0]):
        if slot[e] >= 0:
            u[slot[e]], v[slot[e]] = target[e], d + source[e]
    for q in range(first.shape[0]):
        if slot2[q] >= 0:
            u[slot2[q]], v[slot2[q]] = second[q], first[q]
            if first[q] == second[q]:
                w[slot2[q]] = 0.5
    index = np.full(2 * d, -1)
    for i in range(p):
        index[u[i]] = 0
        index[v[i]] = 0
    r = 0
    row = np.empty(2 * d, dtype=np.int64)
    for k in range(2 * d):
        if index[k] == 0:
            index[k] = r
            row[r] = k
            r += 1
    for i in range(p):
        u[i], v[i] = index[u[i]], index[v[i]]
    return row[:r], u, v, w


@inner
def derivatives(
    S: Floats,
    P: Floats,
    T: Floats,
    C: Floats,
    row: Ints,
    u: Ints,
    v: Ints,
    w: Floats,
    Z: Floats,
    Y: Floats,
    YS: Floats,
    K: Floats,
    Q: Floats,
    gradient: Floats,
    H: Floats,
    diagonal_only: bool,
) -> None:
    """Gradient and expected Hessian (lower triangle) from the tables K = Z P Z' and Q = Z P S P Z'."""
    d = T.shape[0]
    r, n = Z.shape
    p = u.shape[0]
    # Rows of T that belong to leaves have a single 1: no products are needed for them.
    leaf = np.empty(r, dtype=np.int64)
    for a in range(r):
        node = row[a]
        leaf[a], entries = -1, 0
        for c in range(n):
            Z[a, c] = T[node, c] if node < d else C[node - d, c]
            Y[a, c] = 0.0
            YS[a, c] = 0.0
            if Z[a, c] != 0.0:
                entries += 1
                leaf[a] = c
        if entries != 1 or Z[a, leaf[a]] != 1.0:
            leaf[a] = -1
    for a in range(r):
        if leaf[a] >= 0:
            for c in range(n):
                Y[a, c] = P[leaf[a], c]
        else:
            for b in range(n):
                z = Z[a, b]
                for c in range(n):
                    Y[a, c] += z * P[b, c]
    for a in range(r):
        for b in range(n):
            y = Y[a, b]
            for c in range(n):
                YS[a, c] += y * S[b, c]
    for a in range(r):
        for b in range(a + 1):
            s = 0.0
            if leaf[b] >= 0:
                s = Y[a, leaf[b]]
            elif leaf[a] >= 0:
                s = Y[b, leaf[a]]
            else:
                for c in range(n):
                    s += Y[a, c] * Z[b, c]
            K[a, b] = s
            K[b, a] = s
    if diagonal_only:  # the exact Hessian will ask for all of Q, the gradient only for its own pairs
        for a in range(r):
            for b in range(a + 1):
                t = 0.0
                for c in range(n):
                    t += YS[a, c] * Y[b, c]
                Q[a, b] = t
                Q[b, a] = t
    else:
        for i in range(p):
            t = 0.0
            for c in range(n):
                t += YS[u[i], c] * Y[v[i], c]
            Q[u[i], v[i]] = t
    for i in range(p):
        ui, vi, wi = u[i], v[i], w[i]
        gradient[i] = 2.0 * wi * (K[ui, vi] - Q[ui, vi])
        # Where the exact Hessian is used, only the diagonal of this one is, to damp it.
        for j in range(i if diagonal_only else 0, i + 1):
            h = 2.0 * wi * w[j] * (K[ui, u[j]] * K[vi, v[j]] + K[ui, v[j]] * K[vi, u[j]])
            H[i, j] = h


@inner
def exact_hessian(
    u: Ints, v: Ints, w: Floats, row: Ints, K: Floats, Q: Floats, E: Floats, V: Floats, H: Floats
) -> None:
    """The Hessian itself, lower triangle, from the same tables and all effects E and covariances V (d, d).

    ``2 tr(dS_a P dS_b PSP) - tr(P dS_a P dS_b) + tr((P - PSP) d2S)``. The second derivative of Sigma follows
    from ``du_j/dF_kl = E[j,k] u_l``, ``dv_i/dF_kl = V[k,i] u_l + E[l,i] v_k`` and
    ``dv_i/dOmega_kl = E[l,i] u_k + E[k,i] u_l``.
    """
    d = E.shape[0]
    p = u.shape[0]
    for a in range(p):
        ua, va = u[a], v[a]
        path_a = row[va] >= d
        j, i = row[ua], row[va] - d if path_a else row[va]
        for b in range(a + 1):
            ub, vb = u[b], v[b]
            path_b = row[vb] >= d
            h = K[va, ub] * Q[vb, ua] + K[va, vb] * Q[ub, ua] + K[ua, ub] * Q[vb, va] + K[ua, vb] * Q[ub, va]
            h -= K[ua, ub] * K[va, vb] + K[ua, vb] * K[va, ub]
            g = K[ua, ub] - Q[ua, ub]
            if path_a and path_b:
                k, m = row[vb] - d, row[ub]
                h += E[j, k] * (K[ub, va] - Q[ub, va]) + V[k, i] * g + E[m, i] * (K[ua, vb] - Q[ua, vb])
            elif path_a:
                h += g * E[row[vb], i] + (K[ua, vb] - Q[ua, vb]) * E[row[ub], i]
            elif path_b:
                k = row[vb] - d
                h += g * E[row[va], k] + (K[va, ub] - Q[va, ub]) * E[row[ua], k]
            H[a, b] = 2.0 * w[a] * w[b] * h


@inner
def all_effects(
    source: Ints, target: Ints, effect: Floats, first: Ints, second: Ints, covariance: Floats, E: Floats, V: Floats
) -> None:
    """Total effects E = (I - F)^-1 and covariances V = E' Omega E of all variables, as :func:`propagate` does."""
    everyone = np.empty(E.shape[0], dtype=np.int64)
    for i in range(E.shape[0]):
        everyone[i] = i
    propagate(everyone, source, target, effect, first, second, covariance, E, V)


@inner
def assign(x: Floats, slot: Ints, fixed: Floats, out: Floats) -> None:
    """Entries of F or Omega from the parameter vector; ``slot`` is -1 where the entry is fixed."""
    for e in range(slot.shape[0]):
        out[e] = fixed[e] if slot[e] < 0 else x[slot[e]]


@inner
def hold(A: Floats, H: Floats, held: Bools, damping: float) -> None:
    """Damp A by a part of the expected Hessian's diagonal, and cut the held parameters out of the system."""
    p = A.shape[0]
    for i in range(p):
        # The floor lets a parameter that does not move Sigma here (a zero row) pass through.
        A[i, i] += damping * H[i, i] + 1e-12
        if held[i]:
            for j in range(i):
                A[i, j] = 0.0
            for j in range(i + 1, p):
                A[j, i] = 0.0
            A[i, i] = 1.0


@inner
def bend(
    x: Floats, step: Floats, trial: Floats, source: Ints, target: Ints, slot: Ints, scaled: Bools, variance: Floats,
    growing: Floats,
) -> None:  # fmt: skip
    """Effects of a latent shrink by as much as its causes make it grow."""
    for i in range(variance.shape[0]):
        variance[i], growing[i] = 1.0, 0.0
    for e in range(source.shape[0]):
        s = slot[e]
        if s < 0:
            continue
        i, j = source[e], target[e]
        if scaled[j]:
            variance[j] += x[s] * x[s] * variance[i]
            growing[j] += x[s] * step[s] * variance[i]
        if scaled[i]:
            g = growing[i] / variance[i]
            if g > 0.0:
                trial[s] = (x[s] + step[s] + g * x[s]) / (1.0 + g)


@inner
def fisher_scoring(
    S: Floats,
    d: int,
    observed: Ints,
    source: Ints,
    target: Ints,
    slot: Ints,
    fixed: Floats,
    first: Ints,
    second: Ints,
    slot2: Ints,
    fixed2: Floats,
    x: Floats,
    lower: Floats,
    max_steps: int,
    tolerance: float,
    history: Floats,
    pace: Floats,
) -> tuple[float, int, int]:
    """Minimise the objective from ``x`` (changed in place) by damped Fisher scoring above ``lower`` bounds.

    Returns the objective, the number of steps and how it ended. ``pace`` (3,) is what to go on with: the decrease the
    last step promised, damping and its growth; infinite and zeros at first.
    """  # fmt: skip
    n = S.shape[0]
    p = x.shape[0]
    row, u, v, w = moving_rows(p, d, source, target, slot, first, second, slot2)
    r = row.shape[0]
    T, C = np.empty((d, n)), np.empty((d, n))
    Sigma, L, P, work = np.empty((n, n)), np.zeros((n, n)), np.empty((n, n)), np.empty((n, n))
    Z, Y, YS, K, Q = np.empty((r, n)), np.empty((r, n)), np.empty((r, n)), np.empty((r, r)), np.empty((r, r))
    gradient, H = np.empty(p), np.empty((p, p))
    effect, covariance = np.empty(source.shape[0]), np.empty(first.shape[0])
    A, LA = np.empty((p, p)), np.zeros((p, p))
    E, V = np.empty((d, d)), np.empty((d, d))
    step, trial = np.empty(p), np.empty(p)
    held = np.zeros(p, dtype=np.bool_)
    variance, growing, scaled = np.empty(d), np.empty(d), np.zeros(d, dtype=np.bool_)
    for q in range(first.shape[0]):
        scaled[first[q]] = slot2[q] < 0 and first[q] == second[q]

    for i in range(p):
        x[i] = max(x[i], lower[i])
    assign(x, slot, fixed, effect)
    assign(x, slot2, fixed2, covariance)
    propagate(observed, source, target, effect, first, second, covariance, T, C)
    value = objective(S, observed, T, C, Sigma, L, P, work)
    history[0] = value
    if not np.isfinite(value):
        return value, 0, BAD_START

    promised, damping, growth = pace
    if damping == 0.0:
        damping, growth = _DAMPING, 2.0
    diagonal = promised < _NEAR  # whether H holds only its diagonal
    derivatives(S, P, T, C, row, u, v, w, Z, Y, YS, K, Q, gradient, H, diagonal)
    for iteration in range(1, max_steps + 1):
        # A variance at its bound that wants to go further is held there for this step.
        for i in range(p):
            held[i] = x[i] <= lower[i] and gradient[i] > 0.0
        # Near the optimum the exact Hessian converges faster; where it is not positive definite, Fisher's.
        newton = promised < _NEAR
        if newton:
            assign(x, slot, fixed, effect)
            assign(x, slot2, fixed2, covariance)
            all_effects(source, target, effect, first, second, covariance, E, V)
            exact_hessian(u, v, w, row, K, Q, E, V, A)
            hold(A, H, held, max(damping, 1e-6))
            newton = cholesky(A, LA)
        if not newton:
            if diagonal:
                diagonal = False
                derivatives(S, P, T, C, row, u, v, w, Z, Y, YS, K, Q, gradient, H, False)
            for i in range(p):
                for j in range(i + 1):
                    A[i, j] = H[i, j]
            hold(A, H, held, damping)
            if not cholesky(A, LA):
                damping = max(10.0 * damping, 1e-8)
                history[iteration] = value
                continue
        for i in range(p):
            step[i] = 0.0 if held[i] else -gradient[i]
        cholesky_solve(LA, step)
        promised = 0.0
        for i in range(p):
            promised -= 0.5 * gradient[i] * step[i]
            trial[i] = x[i] + step[i]
        pace[0], pace[1], pace[2] = promised, damping, growth
        if promised < tolerance and damping <= _DAMPING:
            return value, iteration - 1, CONVERGED
        bend(x, step, trial, source, target, slot, scaled, variance, growing)
        for i in range(p):
            trial[i] = max(trial[i], lower[i])
        assign(trial, slot, fixed, effect)
        assign(trial, slot2, fixed2, covariance)
        propagate(observed, source, target, effect, first, second, covariance, T, C)
        new = objective(S, observed, T, C, Sigma, L, P, work)
        if new < value:
            # Nielsen's rule: the better the quadratic model foretold the decrease, the less damping.
            ratio = (value - new) / max(promised, 1e-300)
            damping = max(damping * max(1.0 / 9.0, 1.0 - (ratio - 1.0) ** 3), _DAMPING_LEAST)
            damping = min(damping, _DAMPING_MOST)
            growth = 2.0
            value = new
            for i in range(p):
                x[i] = trial[i]
            diagonal = promised < _NEAR
            derivatives(S, P, T, C, row, u, v, w, Z, Y, YS, K, Q, gradient, H, diagonal)
        else:
            # Rounding hides decreases below 1e-13 of the objective: there is nothing left to gain.
            if promised < 1e-13 * (1.0 + abs(value)):
                return value, iteration - 1, CONVERGED
            damping *= growth
            growth *= 2.0
            if damping > _DAMPING_MOST:
                return value, iteration - 1, STALLED
        history[iteration] = value
        pace[1], pace[2] = damping, growth
    return value, max_steps, STEP_LIMIT


@compiled
def information(
    S: Floats,
    d: int,
    observed: Ints,
    source: Ints,
    target: Ints,
    slot: Ints,
    fixed: Floats,
    first: Ints,
    second: Ints,
    slot2: Ints,
    fixed2: Floats,
    x: Floats,
) -> tuple[float, Floats, Floats]:
    """Objective, gradient and expected Hessian at one point, without a step."""
    row, u, v, w = moving_rows(x.shape[0], d, source, target, slot, first, second, slot2)
    n, p, r = S.shape[0], x.shape[0], row.shape[0]
    T, C = np.empty((d, n)), np.empty((d, n))
    Sigma, L, P, work = np.empty((n, n)), np.zeros((n, n)), np.empty((n, n)), np.empty((n, n))
    gradient, H = np.full(p, np.nan), np.full((p, p), np.nan)
    effect, covariance = np.empty(source.shape[0]), np.empty(first.shape[0])
    assign(x, slot, fixed, effect)
    assign(x, slot2, fixed2, covariance)
    propagate(observed, source, target, effect, first, second, covariance, T, C)
    value = objective(S, observed, T, C, Sigma, L, P, work)
    if np.isfinite(value):
        Z, Y, YS, K, Q = np.empty((r, n)), np.empty((r, n)), np.empty((r, n)), np.empty((r, r)), np.empty((r, r))
        derivatives(S, P, T, C, row, u, v, w, Z, Y, YS, K, Q, gradient, H, False)
        for i in range(p):
            for j in range(i):
                H[j, i] = H[i, j]
    return value, gradient, H


# The largest prime below 2^31: products of two residues fit into 64 bits.
PRIME = 2_147_483_647


@inner
def propagate_modulo(
    observed: Ints,
    source: Ints,
    target: Ints,
    effect: Ints,
    first: Ints,
    second: Ints,
    covariance: Ints,
    T: Ints,
    C: Ints,
) -> None:
    """As :func:`propagate`, in whole numbers modulo PRIME."""
    T[:] = 0
    C[:] = 0
    n = observed.shape[0]
    for k in range(n):
        T[observed[k], k] = 1
    for e in range(source.shape[0] - 1, -1, -1):
        for k in range(n):
            T[source[e], k] = (T[source[e], k] + effect[e] * T[target[e], k]) % PRIME
    for q in range(first.shape[0]):
        i, j, c = first[q], second[q], covariance[q]
        for k in range(n):
            C[i, k] = (C[i, k] + c * T[j, k]) % PRIME
        if i != j:
            for k in range(n):
                C[j, k] = (C[j, k] + c * T[i, k]) % PRIME
    for e in range(source.shape[0]):
        for k in range(n):
            C[target[e], k] = (C[target[e], k] + effect[e] * C[source[e], k]) % PRIME


@inner
def rank_modulo(A: Ints) -> int:
    """Rank of a matrix of residues modulo PRIME, by elimination in place."""
    n_rows, n_columns = A.shape
    rank = 0
    for column in range(n_columns):
        pivot = -1
        for i in range(rank, n_rows):
            if A[i, column] != 0:
                pivot = i
                break
        if pivot < 0:
            continue
        if pivot != rank:
            for k in range(column, n_columns):
                A[rank, k], A[pivot, k] = A[pivot, k], A[rank, k]
        # Fermat: a^(p-2) is the inverse of a.
        inverse, base, power = 1, A[rank, column], PRIME - 2
        while power > 0:
            if power & 1:
                inverse = inverse * base % PRIME
            base = base * base % PRIME
            power >>= 1
        for i in range(rank + 1, n_rows):
            if A[i, column] != 0:
                factor = A[i, column] * inverse % PRIME
                for k in range(column, n_columns):
                    A[i, k] = (A[i, k] - factor * A[rank, k]) % PRIME
        rank += 1
        if rank == n_rows:
            break
    return rank


@compiled
def jacobian_rank_modulo(
    observed: Ints,
    source: Ints,
    target: Ints,
    effect: Ints,
    first: Ints,
    second: Ints,
    covariance: Ints,
    d: int,
    u: Ints,
    v: Ints,
) -> int:
    """Rank of dSigma/dparameters at a point of residues; u and v index the rows of [T; C] as elsewhere."""
    n, p = observed.shape[0], u.shape[0]
    T = np.zeros((d, n), dtype=np.int64)
    C = np.zeros((d, n), dtype=np.int64)
    propagate_modulo(observed, source, target, effect, first, second, covariance, T, C)
    J = np.empty((p, n * (n + 1) // 2), dtype=np.int64)
    for i in range(p):
        a = T[u[i]] if u[i] < d else C[u[i] - d]
        b = T[v[i]] if v[i] < d else C[v[i] - d]
        at = 0
        for k in range(n):
            for m in range(k + 1):
                J[i, at] = (a[k] * b[m] % PRIME + a[m] * b[k] % PRIME) % PRIME
                at += 1
    return rank_modulo(J)
