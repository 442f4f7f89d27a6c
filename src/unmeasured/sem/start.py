"""Starting values made from the data.

Fisher scoring finds the optimum of small models from almost anywhere; with thirty variables random starts
are trapped now and then. So we start near: latents that share their indicators are taken together, a factor
solution of the indicators gives their loadings, the moments between these composites give the covariances of
the latents, and regressions among those give the paths. All on variables of unit variance.
"""

from __future__ import annotations

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.sem.parameters import Pattern

# A latent keeps at least this part of its variance to itself at the start, an indicator too: a start on the
# boundary is a start in a trap.
_LEAST_OWN = 0.1


def start_values(pattern: Pattern, S: Floats, scale: Floats) -> Floats:
    """Parameters (p,) to start from, for variables divided by ``scale`` (d,), whose covariance is S (n, n)."""
    d, n = pattern.n_nodes, len(pattern.observed)
    column = np.full(d, -1)
    column[pattern.observed] = np.arange(n)
    weights = _composites(pattern, S, column)

    Phi = weights @ S @ weights.T  # covariance of all nodes: composites of latents, observed as they are
    known = np.flatnonzero(np.any(weights != 0, axis=1))
    Phi = _unattenuated(pattern, Phi, known)

    F, own = _regressions(pattern, Phi)
    return _free_values(pattern, Phi, F, own, scale)


def _composites(pattern: Pattern, S: Floats, column: Ints) -> Floats:
    """(d, n) weights that make each node out of the observed variables, unbiased for factor scores."""
    d, n = pattern.n_nodes, len(pattern.observed)
    weights = np.zeros((d, n))
    weights[pattern.observed, np.arange(n)] = 1.0
    noise = 1.0 / np.diag(np.linalg.inv(S + 1e-8 * np.eye(n)))  # variance not shared with the others

    children: dict[int, list[int]] = {}
    n_latent_parents = np.zeros(n, dtype=int)
    for i, j in zip(pattern.source, pattern.target, strict=True):
        if not pattern.is_observed[i]:
            children.setdefault(int(i), []).append(int(j))
            if column[j] >= 0:
                n_latent_parents[column[j]] += 1

    clusters: dict[tuple[int, ...], list[int]] = {}
    for latent, nodes in children.items():
        items = tuple(sorted(int(column[j]) for j in nodes if column[j] >= 0))
        clusters.setdefault(items, []).append(latent)

    R = S - np.diag(noise)  # what is shared; clusters take their part out of it in turn

    def purity(entry: tuple[tuple[int, ...], list[int]]) -> float:
        items, latents = entry
        pure = sum(n_latent_parents[k] == len(latents) for k in items)
        return -float(min(pure, len(latents) + 1) / len(latents))

    explained = np.zeros((n, 0))
    for items, latents in sorted(clusters.items(), key=purity):
        if not items:
            continue
        k = len(latents)
        pure = [c for c in items if n_latent_parents[c] == k]
        use = np.array(pure if len(pure) > k else items)
        shared = R[np.ix_(use, use)]
        if len(pure) <= k and explained.shape[1]:
            # These items are shared with clusters already placed: look at what those leave.
            B = np.linalg.lstsq(explained.T @ S @ explained, explained.T @ S[:, use], rcond=None)[0]
            shared = shared - B.T @ (explained.T @ S @ explained) @ B
        value, vector = np.linalg.eigh((shared + shared.T) / 2)
        top = np.argsort(value)[::-1][:k]
        loading = vector[:, top] * np.sqrt(np.maximum(value[top], 0.05))
        loading = loading * np.where(loading.sum(axis=0) < 0, -1.0, 1.0)
        scaled = loading / noise[use][:, None]
        W = np.linalg.lstsq(loading.T @ scaled, scaled.T, rcond=None)[0]  # Bartlett's factor scores
        for row, latent in enumerate(latents[: len(top)]):
            weights[latent, use] = W[row]
        explained = np.column_stack([explained, weights[latents[: len(top)]].T])

    # A latent measured only through other latents is the sum of those.
    for latent in sorted(children, reverse=True):
        if not weights[latent].any():
            parts = [weights[j] / max(np.sqrt(weights[j] @ S @ weights[j]), 1e-8) for j in children[latent]]
            weights[latent] = np.mean(parts, axis=0)
    return weights


def _unattenuated(pattern: Pattern, Phi: Floats, known: Ints) -> Floats:
    """Unit variances for the latents, and correlations pulled in until the matrix is positive definite."""
    latent = np.flatnonzero(~pattern.is_observed)
    Phi = Phi.copy()
    for i in latent:
        Phi[i, i] = 1.0
    block = Phi[np.ix_(latent, latent)]
    off = block - np.eye(len(latent))
    off = np.clip(off, -0.9, 0.9)
    while len(latent) and np.linalg.eigvalsh(np.eye(len(latent)) + off)[0] < _LEAST_OWN:
        off *= 0.9
    Phi[np.ix_(latent, latent)] = np.eye(len(latent)) + off
    return Phi


def _regressions(pattern: Pattern, Phi: Floats) -> tuple[Floats, Floats]:
    """F (d, d) by regressing every node on its parents, and the variance (d,) each keeps to itself."""
    d = pattern.n_nodes
    F = np.zeros((d, d))
    own = np.diag(Phi).copy()
    for j in range(d):
        parents = pattern.source[pattern.target == j]
        if not len(parents):
            continue
        A, b = Phi[np.ix_(parents, parents)], Phi[parents, j]
        coefficient = np.linalg.lstsq(A, b, rcond=None)[0]
        explained = float(coefficient @ A @ coefficient)
        limit = (1.0 - _LEAST_OWN) * Phi[j, j]
        if explained > limit:
            coefficient = coefficient * np.sqrt(limit / explained)
            explained = limit
        F[parents, j] = coefficient
        own[j] = Phi[j, j] - explained
    return F, own


def _free_values(pattern: Pattern, Phi: Floats, F: Floats, own: Floats, scale: Floats) -> Floats:
    """Bring latents to the scale the model fixes (a noise variance or a loading) and read the free entries."""
    d = pattern.n_nodes
    unit = np.ones(d)  # how much each latent is multiplied by
    fixed2 = {
        (int(i), int(j)): float(c)
        for i, j, c, s in zip(pattern.first, pattern.second, pattern.fixed2, pattern.slot2, strict=True)
        if s < 0
    }
    fixed_by_source: dict[int, tuple[int, float]] = {}
    for i, j, f, s in zip(pattern.source, pattern.target, pattern.fixed, pattern.slot, strict=True):
        if s < 0 and f != 0.0 and int(i) not in fixed_by_source:
            fixed_by_source[int(i)] = (int(j), float(f * scale[i] / scale[j]))
    for i in np.flatnonzero(~pattern.is_observed):
        i = int(i)
        if fixed2.get((i, i), 0.0) > 0:
            unit[i] = np.sqrt(fixed2[i, i] / own[i])
        elif i in fixed_by_source:
            j, f = fixed_by_source[i]
            loading = F[i, j]
            unit[i] = np.clip(abs(loading) / abs(f), 0.05, 20.0) * (1 if loading * f >= 0 else -1)
    F = F * unit[None, :] / unit[:, None]
    own = own * unit**2
    x = np.zeros(pattern.n_free)
    free = pattern.slot >= 0
    x[pattern.slot[free]] = F[pattern.source[free], pattern.target[free]]
    diagonal = (pattern.slot2 >= 0) & (pattern.first == pattern.second)
    x[pattern.slot2[diagonal]] = own[pattern.first[diagonal]]
    # Covariances of exogenous nodes are as the composites have them; those of residuals start at zero.
    exogenous = ~np.isin(np.arange(d), pattern.target)
    between = (pattern.slot2 >= 0) & exogenous[pattern.first] & exogenous[pattern.second] & ~diagonal
    i, j = pattern.first[between], pattern.second[between]
    x[pattern.slot2[between]] = Phi[i, j] * unit[i] * unit[j]
    return x
