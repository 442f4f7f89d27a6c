"""Other parents for one variable, all of them scored in closed form.

Hold everything but variable j as it is fitted. What the others say of the latents is ``f | x_-j ~ N(B x_-j, V)``, so

    x_j | x_-j  ~  N(b' B x_-j,  b' V b + psi)

where b are the loadings of j on the latents of its parents and psi its noise. The best b is the regression of x_j on
the predicted latents: a system of as many equations as j has latent parents. The log-likelihood that comes out is one
the model with these parents can reach, so the gain is a lower bound: the others may still move to meet it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.sem.kernels import compiled

# Noise a variable keeps where a regression leaves it less than none (a Heywood case in the making).
_LEAST_NOISE = 1e-3
_LEAST_SHARE = 1e-4


@compiled
def parent_likelihoods(
    variance: Floats, moments: Floats, crosses: Floats, V: Floats, allowed: Bools, out: Floats, loading: Floats,
    own: Floats,
) -> None:  # fmt: skip
    """Fill ``out`` (n, C): log-likelihood per sample of each variable given the others, for C sets of parents.

    ``variance`` (n,) is that of each variable, the others are as :func:`predicted_latents` gives them, ``allowed``
    (C, m) the latents of each set. ``loading`` (n, C, m) and ``own`` (n, C) become the loadings and the noise that
    reach it.
    """
    n, m = crosses.shape
    parents = np.empty(m, dtype=np.int64)
    A, b = np.empty((m, m)), np.empty(m)
    for j in range(n):
        moment, cross, Vj = moments[j], crosses[j], V[j]
        for c in range(allowed.shape[0]):
            q = 0
            for i in range(m):
                if allowed[c, i]:
                    parents[q] = i
                    q += 1
            # Gaussian elimination by Cholesky, in place; the systems have one to a dozen equations.
            for i in range(q):
                b[i] = cross[parents[i]]
                for k in range(i + 1):
                    s = moment[parents[i], parents[k]]
                    if i == k:
                        s = s * (1.0 + 1e-9) + 1e-12
                    for t in range(k):
                        s -= A[i, t] * A[k, t]
                    A[i, k] = np.sqrt(max(s, 1e-12)) if i == k else s / A[k, k]
            for i in range(q):
                for t in range(i):
                    b[i] -= A[i, t] * b[t]
                b[i] /= A[i, i]
            for i in range(q - 1, -1, -1):
                for t in range(i + 1, q):
                    b[i] -= A[t, i] * b[t]
                b[i] /= A[i, i]
            left, uncertain = variance[j], 0.0
            for i in range(q):
                left -= b[i] * cross[parents[i]]
                loading[j, c, parents[i]] = b[i]
                for k in range(q):
                    uncertain += b[i] * b[k] * Vj[parents[i], parents[k]]
            own[j, c] = max(left - uncertain, _LEAST_NOISE)
            total = uncertain + own[j, c]
            out[j, c] = -0.5 * (np.log(total) + left / total)


def predicted_latents(S: Floats, Loading: Floats, Phi: Floats, noise: Floats) -> tuple[Floats, Floats, Floats]:
    """For each variable j, of the latents as the others predict them: moments, their covariance with j, and V.

    ``Loading`` (m, n), ``Phi`` (m, m, ones on its diagonal) and ``noise`` (n,) are the fit; the answers are (n, m, m),
    (n, m) and (n, m, m). Stacked matrices, not a compiled loop: linear algebra takes long to compile.
    """
    M = Loading / noise
    # Latents have unit variance here; the ridges stand for one whose noise has vanished.
    ridge = 1e-6 * np.eye(len(Phi))
    W = np.linalg.inv(Phi + ridge) + M @ Loading.T
    MS = M @ S
    m, ms, own = M.T, MS.T, np.diag(S)
    V: Floats = np.asarray(np.linalg.inv(W - m[:, :, None] * Loading.T[:, None, :] + ridge), dtype=float)
    both = m[:, :, None] * ms[:, None, :]
    inside = MS @ M.T - both - both.transpose(0, 2, 1) + m[:, :, None] * m[:, None, :] * own[:, None, None]
    cross = V @ (ms - m * own[:, None])[:, :, None]
    return V @ inside @ V.transpose(0, 2, 1), np.ascontiguousarray(cross[:, :, 0]), V


@dataclass(frozen=True, eq=False)
class Relocations:
    """For every variable, what each set of parents would give it (see the module)."""

    masks: Ints  # (C,) sets of groups
    likelihoods: Floats  # (n, C) per sample
    loadings: Floats  # (n, C, m)
    noises: Floats  # (n, C)

    @cached_property
    def column(self) -> dict[int, int]:
        """Where each set of parents stands."""
        return {mask: c for c, mask in enumerate(self.masks.tolist())}


def relocations(
    S: Floats, Loading: Floats, Phi: Floats, noise: Floats, sizes: tuple[int, ...], masks: Ints
) -> Relocations:
    """Score every set of parents in ``masks`` for every variable, at a fit of a measurement model."""
    n = len(S)
    group_of = np.repeat(np.arange(len(sizes)), sizes)
    allowed = ((masks[:, None] >> group_of[None, :]) & 1).astype(bool)
    out = np.empty((n, len(masks)))
    loadings, noises = np.zeros((n, len(masks), len(Phi))), np.empty((n, len(masks)))
    # A latent whose noise vanishes has a variance without bound: each is measured in its own unit here.
    # Noise at its bound would leave nothing but rounding of a variable's own share, so it is held above that.
    unit, noise = np.sqrt(np.diag(Phi)), np.maximum(noise, _LEAST_SHARE)
    latents = predicted_latents(S, Loading * unit[:, None], Phi / np.outer(unit, unit), noise)
    parent_likelihoods(np.diag(S).copy(), *latents, allowed, out, loadings, noises)
    return Relocations(masks, out, loadings / unit, noises)
