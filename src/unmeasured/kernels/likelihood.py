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
Most rows of Z are unit vectors, those of observed variables that affect nothing; Z starts with all n of them,
so that the tables start with P and P S P and take products only for the few other rows.

The matrices are small (tens of rows), where calls into LAPACK cost more than the arithmetic and its threads
fight with ours; the few factorisations are therefore written out. Functions release the interpreter lock.
Innermost loops run along rows from column 0 on, and indices that are read from arrays are unsigned: where the
compiler cannot rule out a negative index, which counts from the end, it does not vectorise or does so badly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from unmeasured.arrays import Bools, Floats, Ints

Function = TypeVar("Function", bound=Callable[..., Any])
Indices = NDArray[np.uint64]

# How a run of Fisher scoring can end.
CONVERGED, STEP_LIMIT, STALLED, BAD_START = 0, 1, 2, 3

# Damping at the start, and the band it moves in. Below 1e-10 it no longer damps; beyond 1e10 no step is left.
_DAMPING, _DAMPING_LEAST, _DAMPING_MOST = 1e-2, 1e-10, 1e10
# Once a step is predicted to gain less than this per sample, the exact Hessian takes over.
_NEAR = 1e-1
# Below this predicted gain a step is stretched if after the last one it still went down along it by so much of the
# slope before, and so far at most: where the noise of a latent vanishes, steps of their own length leave three
# quarters.
_SLOW, _STILL, _STRETCH = 2e-2, 0.3, 4.0


# Sums may be reordered (vectorised); infinities and NaN keep their meaning: we test for them. Divisions by
# zero give infinities, as in numpy: the checks that would raise instead double the time it takes to compile.
_FLAGS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz"},
    "error_model": "numpy",
}
_INNER_FLAGS: dict[str, Any] = {**_FLAGS, "cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: Function) -> Function:
    """Compile at the first call with our flags, keeping the machine code on disk."""
    return cast(Function, numba.njit(**_FLAGS)(function))


def inner(function: Function) -> Function:
    """As :func:`compiled`, for functions that only compiled code calls.

    No way in from the interpreter is built, and nothing is kept on disk but within the callers: a copy of its own
    could be older than what it calls (see :mod:`unmeasured.kernels.batch`).
    """
    return cast(Function, numba.njit(**_INNER_FLAGS)(function))


def ordered(function: Function) -> Function:
    """As :func:`inner`, for long sums of few terms: they are taken as written.

    Every caller holds a copy of its own, in which they would be reordered anew. While a process compiles, it runs
    another copy than later ones read from disk, and would get other results by rounding.
    """
    return cast(Function, numba.njit(**{**_INNER_FLAGS, "fastmath": {"contract", "nsz"}})(function))


def is_ready(function: Callable[..., Any]) -> bool:
    """Whether a function is compiled, or its machine code is on disk: for this code, this numba and this processor.

    >>> is_ready(numba.njit(lambda x: x + 1))  # neither
    False
    """
    dispatcher: Any = function
    if dispatcher.signatures:
        return True
    cache = dispatcher._cache
    if not hasattr(cache, "_cache_file"):  # numba has nowhere to keep it
        return False
    # numba tells only after loading: its index knows the code by a checksum, and what was compiled on other machines.
    known = cache._index_key(None, dispatcher.targetctx.codegen())[1:]
    return any(tuple(key[1:]) == tuple(known) for key in cache._cache_file._load_index())


@ordered
def cholesky(A: Floats, R: Floats) -> bool:
    """Lower triangular R with ``R'R = A``, from the lower triangle of A; False where A is not positive definite.

    From the last row to the first, each is A's less multiples of those below it. Two rows are done at once, so that
    what is read of the rows below serves both, and four rows below at once, so that the two are written less often.
    What is written above the diagonal means nothing.
    """
    n = A.shape[0]
    i = n - 1
    while i > 0:
        for j in range(i + 1):
            R[i, j] = A[i, j]
            R[i - 1, j] = A[i - 1, j]
        k = i + 1
        while k + 3 < n:
            a0, a1, a2, a3 = R[k, i], R[k + 1, i], R[k + 2, i], R[k + 3, i]
            b0, b1, b2, b3 = R[k, i - 1], R[k + 1, i - 1], R[k + 2, i - 1], R[k + 3, i - 1]
            for j in range(i + 1):
                r0, r1, r2, r3 = R[k, j], R[k + 1, j], R[k + 2, j], R[k + 3, j]
                R[i, j] = R[i, j] - a0 * r0 - a1 * r1 - a2 * r2 - a3 * r3
                R[i - 1, j] = R[i - 1, j] - b0 * r0 - b1 * r1 - b2 * r2 - b3 * r3
            k += 4
        if k < n:  # two are left, as rows are done in twos from the last
            a0, a1, b0, b1 = R[k, i], R[k + 1, i], R[k, i - 1], R[k + 1, i - 1]
            for j in range(i + 1):
                R[i, j] = R[i, j] - a0 * R[k, j] - a1 * R[k + 1, j]
                R[i - 1, j] = R[i - 1, j] - b0 * R[k, j] - b1 * R[k + 1, j]
        # Relative to the diagonal, so that rounding cannot pass as a tiny positive pivot.
        if not R[i, i] > 1e-14 * abs(A[i, i]):
            return False
        # The root of the reciprocal, which the compiler cannot replace by divisions inside the loop.
        a = np.sqrt(1.0 / R[i, i])
        between = a * R[i, i - 1]
        pivot = R[i - 1, i - 1] - between * between
        if not pivot > 1e-14 * abs(A[i - 1, i - 1]):
            return False
        b = np.sqrt(1.0 / pivot)
        for j in range(i + 1):
            R[i, j] *= a
            R[i - 1, j] = b * (R[i - 1, j] - between * R[i, j])
        i -= 2
    if i == 0:
        pivot = A[0, 0]
        for k in range(1, n):
            pivot -= R[k, 0] * R[k, 0]
        if not pivot > 1e-14 * abs(A[0, 0]):
            return False
        R[0, 0] = np.sqrt(pivot)
    return True


@inner
def cholesky_solve(R: Floats, b: Floats) -> None:
    """Solve ``R'R x = b`` in place."""
    n = b.shape[0]
    for i in range(n - 1, -1, -1):
        b[i] /= R[i, i]
        s = b[i]
        for k in range(i):
            b[k] -= R[i, k] * s
    for i in range(n):
        s = b[i]
        for k in range(i):
            s -= R[i, k] * b[k]
        b[i] = s / R[i, i]


@ordered
def inverse_from_cholesky(R: Floats, P: Floats) -> None:
    """``P = (R'R)^-1``, row by row from ``R P = R'^-1``, which is upper triangular with diagonal 1 / R[i, i]."""
    n = R.shape[0]
    for i in range(n):
        for j in range(i):
            P[i, j] = 0.0
        k = 0
        while k + 3 < i:  # four rows at once, as in :func:`cholesky`
            a0, a1, a2, a3 = R[i, k], R[i, k + 1], R[i, k + 2], R[i, k + 3]
            for j in range(i):
                P[i, j] = P[i, j] - a0 * P[k, j] - a1 * P[k + 1, j] - a2 * P[k + 2, j] - a3 * P[k + 3, j]
            k += 4
        while k < i:
            a0 = R[i, k]
            for j in range(i):
                P[i, j] -= a0 * P[k, j]
            k += 1
        a = 1.0 / R[i, i]
        s = a
        for j in range(i):
            P[i, j] *= a
            s -= R[i, j] * P[i, j]
            P[j, i] = P[i, j]
        P[i, i] = s * a


@ordered
def product(A: Floats, B: Floats, out: Floats, at: int) -> None:
    """``A B`` for square B into the rows of ``out`` from ``at`` on; rows in twos and fours as in :func:`cholesky`."""
    m, n = A.shape
    for h in range(0, m, 2):
        i = min(h + 1, m - 1)  # an odd row at the end is paired with itself
        x, y = at + h, at + i
        for j in range(n):
            out[x, j] = 0.0
            out[y, j] = 0.0
        k = 0
        while k + 3 < n:
            a0, a1, a2, a3 = A[h, k], A[h, k + 1], A[h, k + 2], A[h, k + 3]
            b0, b1, b2, b3 = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
            for j in range(n):
                r0, r1, r2, r3 = B[k, j], B[k + 1, j], B[k + 2, j], B[k + 3, j]
                a = out[x, j] + a0 * r0 + a1 * r1 + a2 * r2 + a3 * r3
                b = out[y, j] + b0 * r0 + b1 * r1 + b2 * r2 + b3 * r3
                out[x, j] = a
                out[y, j] = b
            k += 4
        while k < n:
            a0, b0 = A[h, k], A[i, k]
            for j in range(n):
                a = out[x, j] + a0 * B[k, j]
                b = out[y, j] + b0 * B[k, j]
                out[x, j] = a
                out[y, j] = b
            k += 1


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
def objective(S: Floats, observed: Ints, C: Floats, Sigma: Floats, R: Floats, P: Floats) -> float:
    """``log det Sigma + tr(Sigma^-1 S)``, or infinity where Sigma is not positive definite; P is its inverse."""
    n = S.shape[0]
    for a in range(n):
        for b in range(n):
            Sigma[a, b] = C[observed[a], b]
    if not cholesky(Sigma, R):
        return np.inf
    value = 0.0
    for a in range(n):
        value += 2.0 * np.log(R[a, a])
    inverse_from_cholesky(R, P)
    for a in range(n):
        for b in range(n):
            value += P[a, b] * S[a, b]
    if not np.isfinite(value):
        return np.inf
    return value


@inner
def moving_rows(
    p: int, d: int, observed: Ints, source: Ints, target: Ints, slot: Ints, first: Ints, second: Ints, slot2: Ints
) -> tuple[Ints, Indices, Indices, Floats]:
    """Which rows of [T; C] move Sigma, and for every free parameter its u and v among them and its weight w.

    The n unit vectors come first, named by the observed variable whose row of T they are if it affects nothing, then
    the other rows of T and last those of C.
    """
    n = observed.shape[0]
    u, v, w = np.empty(p, dtype=np.uint64), np.empty(p, dtype=np.uint64), np.ones(p)
    for e in range(source.shape[0]):
        if slot[e] >= 0:
            u[slot[e]], v[slot[e]] = target[e], d + source[e]
    for q in range(first.shape[0]):
        if slot2[q] >= 0:
            u[slot2[q]], v[slot2[q]] = second[q], first[q]
            if first[q] == second[q]:
                w[slot2[q]] = 0.5
    moves = np.zeros(2 * d, dtype=np.bool_)
    for i in range(p):
        moves[u[i]] = True
        moves[v[i]] = True
    index, row = np.full(2 * d, -1), np.empty(n + 2 * d, dtype=np.int64)
    for k in range(n):
        index[observed[k]] = k
        row[k] = observed[k]
    for e in range(source.shape[0]):
        index[source[e]] = -1
    r = n
    for k in range(2 * d):
        if moves[k] and index[k] < 0:
            index[k] = r
            row[r] = k
            r += 1
    for i in range(p):
        u[i], v[i] = index[u[i]], index[v[i]]
    return row[:r], u, v, w


@inner
def fill_tables(
    S: Floats, P: Floats, T: Floats, C: Floats, row: Ints, Z: Floats, PS: Floats, K: Floats, Q: Floats, D: Floats
) -> None:
    """The tables K = Z P Z', Q = Z P S P Z' and D = K - Q; Z holds the rows after the unit vectors."""
    d = T.shape[0]
    n, r = S.shape[0], row.shape[0]
    for a in range(n):
        for c in range(n):
            K[a, c] = P[a, c]
    first = n - n  # zero, but no literal: numba would compile the product for that number as well
    product(P, S, PS, first)
    product(PS, P, Q, first)
    for a in range(n, r):
        node = row[a]
        for c in range(n):
            Z[a - n, c] = T[node, c] if node < d else C[node - d, c]
    # From the first n rows of each table the others follow.
    product(Z, K, K, n)
    product(Z, Q, Q, n)
    for a in range(n, r):
        for c in range(n):
            K[c, a] = K[a, c]
            Q[c, a] = Q[a, c]
        for b in range(n, a + 1):
            s, t = 0.0, 0.0
            for c in range(n):
                s += K[a, c] * Z[b - n, c]
                t += Q[a, c] * Z[b - n, c]
            K[a, b] = s
            K[b, a] = s
            Q[a, b] = t
            Q[b, a] = t
    for a in range(r):
        for b in range(r):
            D[a, b] = K[a, b] - Q[a, b]


@ordered
def slopes(u: Indices, v: Indices, w: Floats, K: Floats, D: Floats, gradient: Floats, diagonal: Floats) -> None:
    """The gradient, and the diagonal of the expected Hessian."""
    for a in range(u.shape[0]):
        ua, va = u[a], v[a]
        gradient[a] = 2.0 * w[a] * D[ua, va]
        diagonal[a] = 2.0 * w[a] * w[a] * (K[ua, ua] * K[va, va] + K[ua, va] * K[ua, va])


@ordered
def expected_hessian(u: Indices, v: Indices, w: Floats, K: Floats, H: Floats) -> None:
    """The expected Hessian, lower triangle."""
    for a in range(u.shape[0]):
        Ku, Kv, wa = K[u[a]], K[v[a]], 2.0 * w[a]
        for b in range(a + 1):
            ub, vb = u[b], v[b]
            H[a, b] = wa * w[b] * (Ku[ub] * Kv[vb] + Ku[vb] * Kv[ub])


@ordered
def exact_hessian(
    u: Indices, v: Indices, w: Floats, K: Floats, Q: Floats, D: Floats, M: Floats, N: Floats, H: Floats
) -> None:
    """The Hessian itself, lower triangle, from the same tables and M (:func:`fill_moves`); N is filled with M - K.

    ``2 tr(dS_a P dS_b PSP) - tr(P dS_a P dS_b) + tr((P - PSP) d2S)``, which is 2 w w2 times

        K[u, u2] Q[v, v2] + Q[u, u2] K[v, v2] - K[u, u2] K[v, v2] + D[u, u2] M[v, v2] + M[u, u2] D[v, v2]

    and the same with u2 and v2 exchanged. With N it takes fewer products; M[u, u2] is zero.
    """
    r = K.shape[0]
    for a in range(r):
        for b in range(r):
            N[a, b] = M[a, b] - K[a, b]
    for a in range(u.shape[0]):
        Ku, Du, Mu, Qv, Dv, Nv = K[u[a]], D[u[a]], M[u[a]], Q[v[a]], D[v[a]], N[v[a]]
        wa = 2.0 * w[a]
        for b in range(a + 1):
            ub, vb = u[b], v[b]
            h = Ku[ub] * Qv[vb] + Ku[vb] * Qv[ub] + Du[ub] * Nv[vb] + Du[vb] * Nv[ub] + Mu[vb] * Dv[ub]
            H[a, b] = wa * w[b] * h


@inner
def fill_moves(
    row: Ints, cause: Ints, source: Ints, target: Ints, effect: Floats, first: Ints, second: Ints, covariance: Floats,
    E: Floats, V: Floats, M: Floats,
) -> None:  # fmt: skip
    """The table M of how rows z of Z move with parameters: ``dz[i] = w (M[i, u] z[v] + M[i, v] z[u])``.

    With the effects E and covariances V among all variables, ``dT[j]/dF[k, l] = E[j, k] T[l]``, ``dC[i]/dF[k, l] =
    V[i, k] T[l] + E[l, i] C[k]`` and ``dC[i]/dOmega[k, l] = E[l, i] T[k] + E[k, i] T[l]``. So M is V between two rows
    of C, E between one of T and one of C, and stays zero between two rows of T. ``cause`` are the variables whose
    rows of C come last; no other columns of E and V are needed, and they follow as T and C do.
    """
    d = E.shape[0]
    r, q = row.shape[0], cause.shape[0]
    propagate(cause, source, target, effect, first, second, covariance, E, V)
    for k in range(q):
        b = r - q + k
        for a in range(r):
            M[a, b] = E[row[a], k] if row[a] < d else V[row[a] - d, k]
            M[b, a] = M[a, b]


@inner
def assign(x: Floats, slot: Ints, fixed: Floats, out: Floats) -> None:
    """Entries of F or Omega from the parameter vector; ``slot`` is -1 where the entry is fixed."""
    for e in range(slot.shape[0]):
        out[e] = fixed[e] if slot[e] < 0 else x[slot[e]]


@inner
def fix_bounded(A: Floats, diagonal: Floats, fixed_now: Bools, damping: float) -> None:
    """Damp A by a part of the expected Hessian's diagonal, and cut the fixed parameters out of the system."""
    p = A.shape[0]
    for i in range(p):
        # The floor lets a parameter that does not move Sigma here (a zero row) pass through.
        A[i, i] += damping * diagonal[i] + 1e-12
        if fixed_now[i]:
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
    """Effects of a latent shrink by as much as its causes make it grow.

    Its noise is fixed, so where the data want none of it, its causes grow without bound and its effects shrink: along a
    hyperbola, which straight steps leave at once. To first order this is the same step.
    """
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

    Returns the objective, the number of steps and how it ended. ``pace`` (4,) is what to go on with: the predicted
    decrease of the last step, damping, its growth and the stretch of the next step; infinite and zeros at first.
    """  # fmt: skip
    n = S.shape[0]
    p = x.shape[0]
    row, u, v, w = moving_rows(p, d, observed, source, target, slot, first, second, slot2)
    r = row.shape[0]
    cause, n_causes = np.empty(d, dtype=np.int64), 0
    for k in range(n, r):
        if row[k] >= d:
            cause[n_causes] = row[k] - d
            n_causes += 1
    T, C = np.empty((d, n)), np.empty((d, n))
    Sigma, R, P, PS, Z = np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((r - n, n))
    K, Q, D, M, N = np.empty((r, r)), np.empty((r, r)), np.empty((r, r)), np.zeros((r, r)), np.empty((r, r))
    gradient, diagonal = np.empty(p), np.empty(p)
    effect, covariance = np.empty(source.shape[0]), np.empty(first.shape[0])
    A, RA = np.empty((p, p)), np.empty((p, p))
    E, V = np.empty((d, n_causes)), np.empty((d, n_causes))
    step, trial = np.empty(p), np.empty(p)
    fixed_now = np.zeros(p, dtype=np.bool_)
    variance, growing, scaled = np.empty(d), np.empty(d), np.zeros(d, dtype=np.bool_)
    for q in range(first.shape[0]):
        scaled[first[q]] = slot2[q] < 0 and first[q] == second[q]

    for i in range(p):
        x[i] = max(x[i], lower[i])
    assign(x, slot, fixed, effect)
    assign(x, slot2, fixed2, covariance)
    propagate(observed, source, target, effect, first, second, covariance, T, C)
    value = objective(S, observed, C, Sigma, R, P)
    history[0] = value
    if not np.isfinite(value):
        return value, 0, BAD_START

    predicted, damping, growth, stretch = pace
    if damping == 0.0:
        damping, growth, stretch = _DAMPING, 2.0, 1.0
    fill_tables(S, P, T, C, row, Z, PS, K, Q, D)
    slopes(u, v, w, K, D, gradient, diagonal)
    for iteration in range(1, max_steps + 1):
        # A variance at its bound that wants to go further is fixed there for this step.
        for i in range(p):
            fixed_now[i] = x[i] <= lower[i] and gradient[i] > 0.0
        # Near the optimum the exact Hessian converges faster; where it is not positive definite, Fisher's.
        newton = predicted < _NEAR
        if newton:
            assign(x, slot, fixed, effect)
            assign(x, slot2, fixed2, covariance)
            fill_moves(row, cause[:n_causes], source, target, effect, first, second, covariance, E, V, M)
            exact_hessian(u, v, w, K, Q, D, M, N, A)
            fix_bounded(A, diagonal, fixed_now, max(damping, 1e-6))
            newton = cholesky(A, RA)
        if not newton:
            expected_hessian(u, v, w, K, A)
            fix_bounded(A, diagonal, fixed_now, damping)
            if not cholesky(A, RA):
                damping = max(10.0 * damping, 1e-8)
                pace[1] = damping
                history[iteration] = value
                continue
        for i in range(p):
            step[i] = 0.0 if fixed_now[i] else -gradient[i]
        cholesky_solve(RA, step)
        predicted = 0.0
        for i in range(p):
            predicted -= 0.5 * gradient[i] * step[i]
            step[i] *= stretch
            trial[i] = x[i] + step[i]
        pace[0], pace[1], pace[2] = predicted, damping, growth
        if predicted < tolerance and damping <= _DAMPING:
            return value, iteration - 1, CONVERGED
        bend(x, step, trial, source, target, slot, scaled, variance, growing)
        for i in range(p):
            trial[i] = max(trial[i], lower[i])
        assign(trial, slot, fixed, effect)
        assign(trial, slot2, fixed2, covariance)
        propagate(observed, source, target, effect, first, second, covariance, T, C)
        new = objective(S, observed, C, Sigma, R, P)
        if new < value:
            # Nielsen's rule: the better the quadratic model predicted the decrease, the less damping.
            ratio = (value - new) / max(predicted, 1e-300)
            damping = max(damping * max(1.0 / 9.0, 1.0 - (ratio - 1.0) ** 3), _DAMPING_LEAST)
            damping = min(damping, _DAMPING_MOST)
            growth = 2.0
            value = new
            before, after = 0.0, 0.0
            for i in range(p):
                step[i] = trial[i] - x[i]
                before += gradient[i] * step[i]
                x[i] = trial[i]
            fill_tables(S, P, T, C, row, Z, PS, K, Q, D)
            slopes(u, v, w, K, D, gradient, diagonal)
            for i in range(p):
                after += gradient[i] * step[i]
            # Where it still goes down along the step, the next is to go further.
            stretch = 1.0
            if predicted < _SLOW and after < _STILL * before:
                stretch = min(before / (before - after), _STRETCH)
        else:
            stretch = 1.0
            # Rounding hides decreases below 1e-13 of the objective: there is nothing left to gain.
            if predicted < 1e-13 * (1.0 + abs(value)):
                return value, iteration - 1, CONVERGED
            damping *= growth
            growth *= 2.0
            if damping > _DAMPING_MOST:
                return value, iteration - 1, STALLED
        history[iteration] = value
        pace[1], pace[2], pace[3] = damping, growth, stretch
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
    row, u, v, w = moving_rows(x.shape[0], d, observed, source, target, slot, first, second, slot2)
    n, p, r = S.shape[0], x.shape[0], row.shape[0]
    T, C = np.empty((d, n)), np.empty((d, n))
    Sigma, R, P, PS, Z = np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((r - n, n))
    gradient, H = np.full(p, np.nan), np.full((p, p), np.nan)
    effect, covariance = np.empty(source.shape[0]), np.empty(first.shape[0])
    assign(x, slot, fixed, effect)
    assign(x, slot2, fixed2, covariance)
    propagate(observed, source, target, effect, first, second, covariance, T, C)
    value = objective(S, observed, C, Sigma, R, P)
    if np.isfinite(value):
        K, Q, D = np.empty((r, r)), np.empty((r, r)), np.empty((r, r))
        fill_tables(S, P, T, C, row, Z, PS, K, Q, D)
        slopes(u, v, w, K, D, gradient, np.empty(p))
        expected_hessian(u, v, w, K, H)
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
