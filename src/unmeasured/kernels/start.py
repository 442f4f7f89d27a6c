"""Starting values made from the data, compiled.

Fisher scoring finds the optimum of small models from almost anywhere; with thirty variables random starts
are trapped now and then. So we start near: latents that share their indicators are taken together, a factor
solution of the indicators gives their loadings, the moments between these composites give the covariances of
the latents, and regressions among those give the paths. All on variables of unit variance.
"""

from __future__ import annotations

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.kernels.likelihood import cholesky, cholesky_solve, inner

# A latent keeps at least this part of its variance to itself at the start, an indicator too: a start on the
# boundary is a start in a trap.
_LEAST_OWN = 0.1
# A residual variance is kept above this part of the variance left when all other observed variables are known,
# which no residual variance of the model can exceed. Far below anything data could show.
LEAST_NOISE = 1e-6
# A variance is at the start at least so many times the sum of the covariances that are fixed.
_ROOM = 1.1
# Steps of power iteration; a start needs two digits, not twelve.
_POWER_STEPS = 30


@inner
def start_values(
    S: Floats,
    noise: Floats,
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
) -> None:
    """Fill ``x`` (p,) for the correlations S (n, n); ``noise`` (n,) is what each variable shares with no other."""
    column = np.empty(d, dtype=np.int64)
    for i in range(d):
        column[i] = -1
    for k in range(S.shape[0]):
        column[observed[k]] = k
    W = composites(S, noise, d, observed, source, target, column)
    Phi = unattenuated(quadratic(W, S, W), column)
    F, own = regressions(Phi, source, target)
    free_values(Phi, F, own, column, source, target, slot, fixed, first, second, slot2, fixed2, x)


@inner
def scale_fixed(
    scale: Floats,
    d: int,
    observed: Ints,
    source: Ints,
    target: Ints,
    fixed: Floats,
    first: Ints,
    second: Ints,
    fixed2: Floats,
) -> None:
    """Bring fixed values, given on the scale of the data, to variables of unit variance."""
    unit = np.ones(d)
    for k in range(observed.shape[0]):
        unit[observed[k]] = scale[k]
    for e in range(fixed.shape[0]):
        fixed[e] *= unit[source[e]] / unit[target[e]]
    for q in range(fixed2.shape[0]):
        fixed2[q] /= unit[first[q]] * unit[second[q]]


@inner
def least_variances(
    noise: Floats,
    d: int,
    observed: Ints,
    source: Ints,
    slot: Ints,
    fixed: Floats,
    first: Ints,
    second: Ints,
    slot2: Ints,
    lower: Floats,
) -> None:
    """Bounds (p,): variances stay above a millionth of what data could show, all else is free."""
    least = np.full(d, LEAST_NOISE)
    for k in range(observed.shape[0]):
        least[observed[k]] = LEAST_NOISE * noise[k]
    is_latent = np.ones(d, dtype=np.bool_)
    for k in range(observed.shape[0]):
        is_latent[observed[k]] = False
    # A free latent variance is measured in units of its fixed loading: bring the bound to that scale.
    for e in range(source.shape[0]):
        if slot[e] < 0 and fixed[e] != 0.0 and is_latent[source[e]]:
            least[source[e]] = LEAST_NOISE / fixed[e] ** 2
    lower[:] = -np.inf
    for q in range(first.shape[0]):
        if slot2[q] >= 0 and first[q] == second[q]:
            lower[slot2[q]] = least[first[q]]


@inner
def quadratic(A: Floats, S: Floats, B: Floats) -> Floats:
    """``A S B'`` by plain loops: calls into BLAS take longer to compile than these matrices to multiply."""
    n = S.shape[0]
    out = np.zeros((A.shape[0], B.shape[0]))
    row = np.empty(n)
    for i in range(A.shape[0]):
        for k in range(n):
            row[k] = 0.0
        for k in range(n):
            a = A[i, k]
            if a != 0.0:
                for c in range(n):
                    row[c] += a * S[k, c]
        for j in range(B.shape[0]):
            t = 0.0
            for c in range(n):
                t += row[c] * B[j, c]
            out[i, j] = t
    return out


@inner
def composites(S: Floats, noise: Floats, d: int, observed: Ints, source: Ints, target: Ints, column: Ints) -> Floats:
    """(d, n) weights that make each node out of the observed variables: factor scores for latents."""
    n = S.shape[0]
    measures = np.zeros((d, n), dtype=np.bool_)  # latent by observed variable
    is_cause = np.zeros(d, dtype=np.bool_)
    n_parents = np.zeros(n, dtype=np.int64)
    for e in range(source.shape[0]):
        if column[source[e]] < 0:
            is_cause[source[e]] = True
            if column[target[e]] >= 0:
                measures[source[e], column[target[e]]] = True
                n_parents[column[target[e]]] += 1
    W = np.zeros((d, n))
    for k in range(n):
        W[observed[k], k] = 1.0

    leader, size, pure = clusters(measures, n_parents)
    placed = np.zeros(d, dtype=np.bool_)
    for _ in range(d):
        # The purest cluster first: later ones look at what the earlier leave.
        best, best_purity = d, -1.0  # no literal: numba would compile what it is passed to for that number as well
        for i in range(d):
            if leader[i] == i and not placed[i]:
                purity = min(pure[i], size[i] + 1) / size[i]
                if purity > best_purity:
                    best, best_purity = i, purity
        if best == d:
            break
        place_cluster(S, noise, measures, n_parents, leader, best, size[best], pure[best], placed, W)

    # A latent measured only through other latents is the mean of those; children come later in the order.
    w = np.empty((1, n))
    for i in range(d - 1, -1, -1):
        if is_cause[i] and not placed[i]:
            for e in range(source.shape[0]):
                if source[e] == i:
                    for k in range(n):
                        w[0, k] = W[target[e], k]
                    length = np.sqrt(max(quadratic(w, S, w)[0, 0], 1e-8))
                    for k in range(n):
                        W[i, k] += w[0, k] / length
    return W


@inner
def clusters(measures: Bools, n_parents: Ints) -> tuple[Ints, Ints, Ints]:
    """Latents with the same indicators: their first one, and for that the number of latents and pure indicators."""
    d, n = measures.shape
    leader, size, pure = np.empty(d, dtype=np.int64), np.zeros(d, dtype=np.int64), np.zeros(d, dtype=np.int64)
    for i in range(d):
        leader[i] = -1
        for k in range(n):
            if measures[i, k]:
                leader[i] = i
        if leader[i] < 0:
            continue
        for j in range(i):
            same = leader[j] == j
            for k in range(n):
                same = same and measures[j, k] == measures[i, k]
            if same:
                leader[i] = j
                break
        size[leader[i]] += 1
    for i in range(d):
        if leader[i] == i:
            for k in range(n):
                if measures[i, k] and n_parents[k] == size[i]:
                    pure[i] += 1
    return leader, size, pure


@inner
def place_cluster(
    S: Floats,
    noise: Floats,
    measures: Bools,
    n_parents: Ints,
    leader: Ints,
    head: int,
    k: int,
    n_pure: int,
    placed: Bools,
    W: Floats,
) -> None:
    """Factor scores for the k latents led by ``head``, from their pure indicators where there are enough."""
    d, n = W.shape
    enough = n_pure > k
    use, m = np.empty(n, dtype=np.int64), 0
    for c in range(n):
        if measures[head, c] and (n_parents[c] == k or not enough):
            use[m] = c
            m += 1
    shared = np.empty((m, m))
    for a in range(m):
        for b in range(m):
            shared[a, b] = S[use[a], use[b]]
        shared[a, a] -= noise[use[a]]
    if not enough:
        remove_explained(S, W, placed, use, shared)
    loading = leading_factors(shared, k)
    weights = bartlett_weights(loading, noise, use)
    f = 0
    for i in range(d):
        if leader[i] == head:
            placed[i] = True
            if f < loading.shape[1]:
                for a in range(m):
                    W[i, use[a]] = weights[f, a]
            f += 1


@inner
def remove_explained(S: Floats, W: Floats, placed: Bools, use: Ints, shared: Floats) -> None:
    """Take out of the shared covariance of items what latents already placed explain of it."""
    d, n = W.shape
    m, q = shared.shape[0], 0
    for i in range(d):
        q += placed[i]
    if q == 0:
        return
    scores, item = np.empty((q, n)), np.zeros((m, n))
    q = 0
    for i in range(d):
        if placed[i]:
            for c in range(n):
                scores[q, c] = W[i, c]
            q += 1
    for a in range(m):
        item[a, use[a]] = 1.0
    C = quadratic(item, S, scores)
    A = quadratic(scores, S, scores)
    L, solved = np.zeros((q, q)), np.empty(q)
    for a in range(q):
        A[a, a] *= 1.0 + 1e-6
    if cholesky(A, L):
        for b in range(m):
            for c in range(q):
                solved[c] = C[b, c]
            cholesky_solve(L, solved)
            for a in range(m):
                for c in range(q):
                    shared[a, b] -= C[a, c] * solved[c]


@inner
def leading_factors(A: Floats, k: int) -> Floats:
    """(m, k) loadings: the leading eigenvectors times the roots of their values, by power iteration."""
    m = A.shape[0]
    k = min(k, m)
    out = np.zeros((m, k))
    x, y = np.empty(m), np.empty(m)
    # Shifted by half a bound on the values, so that the largest one is also the largest in size.
    shift = 0.0
    for a in range(m):
        size = 0.0
        for b in range(m):
            size += abs(A[a, b])
        shift = max(shift, 0.5 * size)
    for f in range(k):
        for a in range(m):
            x[a] = 1.0 + 0.1 * ((a * 7 + f * 3) % 5)  # any vector that is not an eigenvector by symmetry
        value = 0.0
        for _ in range(_POWER_STEPS):
            norm = 0.0
            for a in range(m):
                y[a] = shift * x[a]
                for b in range(m):
                    y[a] += A[a, b] * x[b]
                norm += y[a] * y[a]
            norm = np.sqrt(norm) + 1e-300
            for a in range(m):
                x[a] = y[a] / norm
            value = norm - shift
        total = 0.0
        for a in range(m):
            total += x[a]
            for b in range(m):
                A[a, b] -= value * x[a] * x[b]
        size = np.sqrt(max(value, 0.05)) * (-1.0 if total < 0 else 1.0)
        for a in range(m):
            out[a, f] = size * x[a]
    return out


@inner
def bartlett_weights(loading: Floats, noise: Floats, use: Ints) -> Floats:
    """(k, m) weights of Bartlett's factor scores, unbiased for the factors."""
    m, k = loading.shape
    weights, M, L, w = np.empty((k, m)), np.zeros((k, k)), np.zeros((k, k)), np.empty(k)
    for f in range(k):
        for a in range(m):
            weights[f, a] = loading[a, f] / noise[use[a]]
        for g in range(k):
            for a in range(m):
                M[f, g] += weights[f, a] * loading[a, g]
        M[f, f] = M[f, f] * (1.0 + 1e-8) + 1e-10
    if cholesky(M, L):
        for a in range(m):
            for f in range(k):
                w[f] = weights[f, a]
            cholesky_solve(L, w)
            for f in range(k):
                weights[f, a] = w[f]
    return weights


@inner
def unattenuated(Phi: Floats, column: Ints) -> Floats:
    """Unit variances for the latents, and correlations pulled in until the matrix is positive definite."""
    latent, m = np.empty(column.shape[0], dtype=np.int64), 0
    for i in range(column.shape[0]):
        if column[i] < 0:
            latent[m] = i
            m += 1
    block, L = np.empty((m, m)), np.zeros((m, m))
    for a in range(m):
        for b in range(m):
            block[a, b] = min(max(Phi[latent[a], latent[b]], -0.9), 0.9)
        block[a, a] = 1.0 - _LEAST_OWN
    while not cholesky(block, L):
        for a in range(m):
            for b in range(m):
                if a != b:
                    block[a, b] *= 0.9
    for a in range(m):
        for b in range(m):
            Phi[latent[a], latent[b]] = 1.0 if a == b else block[a, b]
    return Phi


@inner
def regressions(Phi: Floats, source: Ints, target: Ints) -> tuple[Floats, Floats]:
    """F (d, d) by regressing every node on its parents, and the variance (d,) each keeps to itself."""
    d = Phi.shape[0]
    F = np.zeros((d, d))
    own, parents = np.empty(d), np.empty(d, dtype=np.int64)
    for j in range(d):
        own[j] = Phi[j, j]
        q = 0
        for e in range(source.shape[0]):
            if target[e] == j:
                parents[q] = source[e]
                q += 1
        if q == 0:
            continue
        A, L, b = np.empty((q, q)), np.zeros((q, q)), np.empty(q)
        for i in range(q):
            b[i] = Phi[parents[i], j]
            for k in range(q):
                A[i, k] = Phi[parents[i], parents[k]]
            A[i, i] *= 1.0 + 1e-6
        if not cholesky(A, L):
            continue
        cholesky_solve(L, b)
        explained = 0.0
        for i in range(q):
            explained += b[i] * Phi[parents[i], j]
        limit = (1.0 - _LEAST_OWN) * Phi[j, j]
        shrink = 1.0 if explained <= limit else limit / explained
        explained = min(explained, limit)
        for i in range(q):
            F[parents[i], j] = shrink * b[i]
        own[j] = Phi[j, j] - explained
    return F, own


@inner
def free_values(
    Phi: Floats,
    F: Floats,
    own: Floats,
    column: Ints,
    source: Ints,
    target: Ints,
    slot: Ints,
    fixed: Floats,
    first: Ints,
    second: Ints,
    slot2: Ints,
    fixed2: Floats,
    x: Floats,
) -> None:
    """Bring latents to the scale the model fixes, a residual variance or a loading, and read the free entries."""
    d = column.shape[0]
    unit = np.ones(d)  # how much each latent is multiplied by
    scaled, caused = np.empty(d, dtype=np.bool_), np.zeros(d, dtype=np.bool_)
    for i in range(d):
        scaled[i] = column[i] >= 0
    for q in range(first.shape[0]):
        i = first[q]
        if i == second[q] and slot2[q] < 0 and fixed2[q] > 0 and not scaled[i]:
            unit[i] = np.sqrt(fixed2[q] / own[i])
            scaled[i] = True
    for e in range(source.shape[0]):
        i, f = source[e], fixed[e]
        caused[target[e]] = True
        if slot[e] < 0 and f != 0.0 and not scaled[i]:
            loading = F[i, target[e]]
            size = min(max(abs(loading / f), 0.05), 20.0) if abs(f) > 1e-3 and abs(f) < 1e3 else abs(loading / f)
            unit[i] = size if loading * f >= 0 else -size
            scaled[i] = True
    for e in range(source.shape[0]):
        if slot[e] >= 0:
            x[slot[e]] = F[source[e], target[e]] * unit[target[e]] / unit[source[e]]
    for q in range(first.shape[0]):
        i, j = first[q], second[q]
        if slot2[q] >= 0:
            if i == j:
                x[slot2[q]] = own[i] * unit[i] ** 2
            else:
                # Exogenous nodes covary as their composites do; covariances of residuals start at zero.
                x[slot2[q]] = Phi[i, j] * unit[i] * unit[j] if not (caused[i] or caused[j]) else 0.0
    # Variances leave room for covariances that are fixed.
    room = np.zeros(d)
    for q in range(first.shape[0]):
        if slot2[q] < 0 and first[q] != second[q]:
            room[first[q]] += _ROOM * abs(fixed2[q])
            room[second[q]] += _ROOM * abs(fixed2[q])
    for q in range(first.shape[0]):
        if slot2[q] >= 0 and first[q] == second[q]:
            x[slot2[q]] = max(x[slot2[q]], room[first[q]])
