"""Other parents for one variable, all of them scored in closed form.

Fix everything but variable j as it is fitted. What the others say of the latents is ``f | x_-j ~ N(B x_-j, V)``, so

    x_j | x_-j  ~  N(b' B x_-j,  b' V b + psi)

where b are the loadings of j on the latents of its parents and psi its noise. The best b is the regression of x_j on
the predicted latents: a system of as many equations as j has latent parents. The log-likelihood that comes out is one
the model with these parents can reach, so the gain is a lower bound: the others may still adapt.

With few groups all sets of them are looked at (:func:`relocated`). Sixty groups have 36,000 sets of up to three:
there each variable looks at no parents, at every single group, at the best of these with every other one, and at the
parents it has with one group more, one less or one exchanged (:func:`stepwise_relocations`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.kernels.likelihood import compiled, inner
from unmeasured.kernels.savings import solve_among
from unmeasured.models.solve import Check, never
from unmeasured.search.budget import BUDGET

# Residual variance a variable keeps where a regression leaves it less than none (a Heywood case in the making), and at
# least where a fit has it at its bound. Variables have unit variance, and the bound of fits is below both. Not in the
# budget: code compiled on disk does not see that another file has changed.
_LEAST_NOISE = 1e-3
_LEAST_SHARE = 1e-4


@inner
def regress(
    parents: Ints, moment: Floats, cross: Floats, V: Floats, variance: float, A: Floats, b: Floats
) -> tuple[float, float]:
    """Regress a variable on the predictions of some latents: its noise and its log-likelihood per sample.

    ``moment`` (m, m) and ``cross`` (m,) are the moments of the predictions among themselves and with the variable, V
    (m, m) their uncertainty; ``b`` becomes the coefficients: the systems have one to a dozen equations.
    """
    q = parents.shape[0]
    for i in range(q):
        b[i] = cross[parents[i]]
    solve_among(parents, moment, 1e-9, A, b)
    left, uncertain = variance, 0.0
    for i in range(q):
        left -= b[i] * cross[parents[i]]
        for k in range(q):
            uncertain += b[i] * b[k] * V[parents[i], parents[k]]
    noise = max(left - uncertain, _LEAST_NOISE)
    total = uncertain + noise
    return noise, -0.5 * (np.log(total) + left / total)


class Predictions(NamedTuple):
    """What all variables together say of the latents, and what it takes to leave one out (:func:`leave_out`)."""

    V: Floats  # (m, m) uncertainty of the latents
    moment: Floats  # (m, m) of their predictions
    cross: Floats  # (n, m) covariance of the predictions with each variable
    pull: Floats  # (n, m) V l, where l are the loadings of a variable
    spread: Floats  # (n, m) moment l
    scalars: Floats  # (n, 4) 1 / (noise - l'V l), l'cross, l'moment l and the variance of each variable


def predictions(S: Floats, Loading: Floats, Phi: Floats, noise: Floats) -> Predictions:
    """``Loading`` (m, n), ``Phi`` (m, m, ones on its diagonal) and ``noise`` (n,) are the fit."""
    m, n = Loading.shape
    out = Predictions(np.empty((m, m)), np.empty((m, m)), *(np.empty((n, k)) for k in (m, m, m, 4)))
    predict(S, Loading, Phi, noise, *out)
    return out


@compiled
def predict(
    S: Floats, Loading: Floats, Phi: Floats, noise: Floats,
    V: Floats, moment: Floats, cross: Floats, pull: Floats, spread: Floats, scalars: Floats,
) -> None:  # fmt: skip
    """Fill the arrays of :class:`Predictions`."""
    m, n = Loading.shape
    W = np.empty((m, m))
    for i in range(m):
        # By element, here and below: assigning a whole array takes seconds to compile.
        for k in range(m):
            W[i, k] = Phi[i, k]
        W[i, i] += 1e-6  # latents have unit variance here; this stands for one whose noise has vanished
    invert(W)
    for i in range(m):
        for k in range(i + 1):
            for j in range(n):
                W[i, k] += Loading[i, j] * Loading[k, j] / noise[j]
            W[k, i] = W[i, k]
    for i in range(m):
        for k in range(m):
            V[i, k] = W[i, k]
    invert(V)
    for j in range(n):
        for i in range(m):
            pull[j, i] = 0.0
            cross[j, i] = 0.0
            for k in range(m):
                pull[j, i] += V[i, k] * Loading[k, j]
    for j in range(n):
        for t in range(n):
            s = S[j, t] / noise[t]
            for i in range(m):
                cross[j, i] += s * pull[t, i]
    for i in range(m):
        for k in range(m):
            moment[i, k] = 0.0
            for j in range(n):
                moment[i, k] += pull[j, i] / noise[j] * cross[j, k]
    for j in range(n):
        left = noise[j]
        scalars[j, 1], scalars[j, 2], scalars[j, 3] = 0.0, 0.0, S[j, j]
        for i in range(m):
            spread[j, i] = 0.0
            for k in range(m):
                spread[j, i] += moment[i, k] * Loading[k, j]
            left -= pull[j, i] * Loading[i, j]
            scalars[j, 1] += cross[j, i] * Loading[i, j]
            scalars[j, 2] += spread[j, i] * Loading[i, j]
        scalars[j, 0] = 1.0 / max(left, 1e-12)


@inner
def invert(A: Floats) -> None:
    """The inverse of a positive definite matrix, in place (Gauss and Jordan).

    Not the one of :mod:`unmeasured.kernels.likelihood`: code compiled on disk does not see that another file has
    changed.
    """
    n = A.shape[0]
    for k in range(n):
        pivot = A[k, k]
        A[k, k] = 1.0
        for j in range(n):
            A[k, j] /= pivot
        for i in range(n):
            if i != k:
                f = A[i, k]
                A[i, k] = 0.0
                for j in range(n):
                    A[i, j] -= f * A[k, j]


@inner
def leave_out(
    j: int, V: Floats, moment: Floats, cross: Floats, pull: Floats, spread: Floats, scalars: Floats,
    own_moment: Floats, own_cross: Floats, own_V: Floats,
) -> None:  # fmt: skip
    """Of the latents as the others predict them: moments, their covariance with variable j, and their uncertainty.

    The precision of the latents less what j adds to it, a matrix of rank one (Sherman and Morrison 1950).
    """
    c, by_cross, by_spread, variance = scalars[j]
    square = c * c * (by_spread - variance)
    for i in range(V.shape[0]):
        a = pull[j, i]
        own_cross[i] = cross[j, i] + c * a * (by_cross - variance)
        for k in range(i + 1):
            b = pull[j, k]
            own_V[i, k] = V[i, k] + c * a * b
            mixed = a * (spread[j, k] - own_cross[k]) + b * (spread[j, i] - own_cross[i])
            own_moment[i, k] = moment[i, k] + c * mixed + square * a * b
            own_V[k, i], own_moment[k, i] = own_V[i, k], own_moment[i, k]


@inner
def gather(chosen: Bools, positions: Ints) -> int:
    """Write the positions of what is chosen, and say how many there are."""
    q = 0
    for i in range(chosen.shape[0]):
        if chosen[i]:
            positions[q] = i
            q += 1
    return q


@compiled
def parent_likelihoods(
    V: Floats, moment: Floats, cross: Floats, pull: Floats, spread: Floats, scalars: Floats, allowed: Bools,
    out: Floats, loading: Floats, own: Floats,
) -> None:  # fmt: skip
    """Fill ``out`` (n, C): log-likelihood per sample of each variable given the others, for C sets of parents.

    The first arguments are :class:`Predictions`, ``allowed`` (C, m) the latents of each set. ``loading`` (n, C, m) and
    ``own`` (n, C) become the loadings and the noise that reach it.
    """
    n, m = cross.shape
    parents = np.empty(m, dtype=np.int64)
    A, b = np.empty((m, m)), np.empty(m)
    own_moment, own_cross, own_V = np.empty((m, m)), np.empty(m), np.empty((m, m))
    for j in range(n):
        leave_out(j, V, moment, cross, pull, spread, scalars, own_moment, own_cross, own_V)
        for c in range(allowed.shape[0]):
            q = gather(allowed[c], parents)
            own[j, c], out[j, c] = regress(parents[:q], own_moment, own_cross, own_V, scalars[j, 3], A, b)
            for i in range(q):
                loading[j, c, parents[i]] = b[i]


@compiled
def likelihood_rises(
    V: Floats, moment: Floats, cross: Floats, pull: Floats, spread: Floats, scalars: Floats, allowed: Bools,
    penalties: Floats, now: Ints, n_samples: float,
) -> float:  # fmt: skip
    """By how much the score would rise if every variable had its best set of parents and nothing else changed.

    As :func:`parent_likelihoods`; ``penalties`` (C,) are those of the sets, ``now`` (n,) the set each variable has.
    """
    n, m = cross.shape
    parents = np.empty(m, dtype=np.int64)
    A, b = np.empty((m, m)), np.empty(m)
    own_moment, own_cross, own_V = np.empty((m, m)), np.empty(m), np.empty((m, m))
    total = 0.0
    for j in range(n):
        leave_out(j, V, moment, cross, pull, spread, scalars, own_moment, own_cross, own_V)
        best, present = -np.inf, 0.0
        for c in range(allowed.shape[0]):
            q = gather(allowed[c], parents)
            value = (
                n_samples * regress(parents[:q], own_moment, own_cross, own_V, scalars[j, 3], A, b)[1] - penalties[c]
            )
            best = max(best, value)
            if c == now[j]:
                present = value
        total += best - present
    return total


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


def latents_of(masks: Ints, sizes: tuple[int, ...]) -> Bools:
    """(C, m) the latents of each set of groups."""
    group_of = np.repeat(np.arange(len(sizes)), sizes)
    return np.asarray((masks[:, None] >> group_of[None, :]) & 1, dtype=bool)


def relocated(S: Floats, Loading: Floats, Phi: Floats, noise: Floats, masks: Ints, allowed: Bools) -> Relocations:
    """Score every set of parents in ``masks``, with the latents ``allowed`` (C, m), for every variable at a fit."""
    n = len(S)
    out = np.empty((n, len(masks)))
    loadings, noises = np.zeros((n, len(masks), len(Phi))), np.empty((n, len(masks)))
    unit = np.sqrt(np.diag(Phi))
    parent_likelihoods(*_in_own_units(S, Loading, Phi, noise, unit), allowed, out, loadings, noises)
    return Relocations(masks, out, loadings / unit, noises)


def predicted_rise(
    S: Floats,
    Loading: Floats,
    Phi: Floats,
    noise: Floats,
    allowed: Bools,
    penalties: Floats,
    now: Ints,
    n_samples: float,
) -> float:
    """What other parents would add to the score if they did so independently (:func:`likelihood_rises`)."""
    predicted = _in_own_units(S, Loading, Phi, noise, np.sqrt(np.diag(Phi)))
    return likelihood_rises(*predicted, allowed, penalties, now, n_samples)


def _in_own_units(S: Floats, Loading: Floats, Phi: Floats, noise: Floats, unit: Floats) -> Predictions:
    """A latent whose noise vanishes has a variance without bound: each is measured in its own unit.

    Noise at its bound would leave nothing but rounding of a variable's own share, so it is kept above that.
    """
    return predictions(S, Loading * unit[:, None], Phi / (unit[:, None] * unit), np.maximum(noise, _LEAST_SHARE))


@inner
def worth(
    chosen: Bools,
    first: Ints,
    moment: Floats,
    cross: Floats,
    V: Floats,
    variance: float,
    n_samples: float,
    penalties: Floats,
    A: Floats,
    b: Floats,
) -> float:
    """What a variable adds to the score with the groups ``chosen`` as its parents."""
    parents = np.empty(moment.shape[0], dtype=np.int64)
    q, n_groups = 0, 0
    for g in range(chosen.shape[0]):
        if chosen[g]:
            n_groups += 1
            for i in range(first[g], first[g + 1]):
                parents[q] = i
                q += 1
    likelihood = regress(parents[:q], moment, cross, V, variance, A, b)[1]
    penalty = penalties[0] * q + (penalties[1] if n_groups else 0.0) + penalties[2] * max(n_groups - 1, 0)
    return float(n_samples * likelihood - penalty)


@inner
def best_parents(
    current: Bools,
    first: Ints,
    moment: Floats,
    cross: Floats,
    V: Floats,
    variance: float,
    n_samples: float,
    penalties: Floats,
    n_partners: int,
    best: Bools,
) -> float:
    """``best`` (G,) becomes the parents of a variable that add most to the score; by how much more than ``current``."""
    G, m = current.shape[0], moment.shape[0]
    A, b, alone = np.empty((m, m)), np.empty(m), np.full(G, -np.inf)
    trial, base = np.empty(G, dtype=np.bool_), np.empty(G, dtype=np.bool_)
    now, top = -np.inf, -np.inf
    # First the present parents, whole or with one dropped, then no group to begin with, then the best single ones; each
    # as they are (a = -1) or with one group more.
    for case in range(G + 2 + min(n_partners, G)):
        for g in range(G):
            base[g] = case <= G and current[g]
        if case <= G:
            if case > 0:
                if not base[case - 1]:
                    continue
                base[case - 1] = False
        elif case > G + 1:
            partner = np.argmax(alone)
            alone[partner] = -np.inf
            base[partner] = True
        for a in range(-1, G):
            if a >= 0 and base[a]:
                continue
            for g in range(G):
                trial[g] = base[g] or g == a
            value = worth(trial, first, moment, cross, V, variance, n_samples, penalties, A, b)
            if case == 0 and a < 0:
                now = value
            if case == G + 1 and a >= 0:
                alone[a] = value
            if value > top:
                top = value
                for g in range(G):
                    best[g] = trial[g]
    return float(top - now)


@compiled
def all_best_parents(
    V: Floats, moment: Floats, cross: Floats, pull: Floats, spread: Floats, scalars: Floats, current: Bools,
    first: Ints, n_samples: float, penalties: Floats, n_partners: int, begin: int, end: int, best: Bools, rise: Floats,
) -> None:  # fmt: skip
    """:func:`best_parents` of the variables from ``begin`` to ``end``: ``best`` (n, G) and ``rise`` (n,)."""
    m = cross.shape[1]
    own_moment, own_cross, own_V = np.empty((m, m)), np.empty(m), np.empty((m, m))
    for j in range(begin, end):
        leave_out(j, V, moment, cross, pull, spread, scalars, own_moment, own_cross, own_V)
        rise[j] = best_parents(
            current[j], first, own_moment, own_cross, own_V, scalars[j, 3], n_samples, penalties, n_partners, best[j]
        )


@cache
def _load_in_order() -> None:
    """Load the compiled code of :func:`relocated` and :func:`predicted_rise`, where that was not done before.

    They and :func:`stepwise_relocations` have copies of what they share, which differ by rounding, and the copy that a
    process loads first serves all: so that is the same one in searches of few variables, of many, and in workers.
    """
    S, masks = np.eye(2), np.array([0, 1])
    S.flags.writeable = False  # as correlations are: another type would be compiled for
    fit, allowed = (np.full((1, 2), 0.5), np.ones((1, 1)), np.ones(2)), latents_of(masks, (1,))
    relocated(S, *fit, masks, allowed)
    predicted_rise(S, *fit, allowed, np.zeros(2), np.array([1, 1]), 100.0)


def stepwise_relocations(
    S: Floats,
    Loading: Floats,
    Phi: Floats,
    noise: Floats,
    first: Ints,
    current: Bools,
    penalties: Floats,
    n_samples: float,
    check: Check = never,
) -> tuple[Bools, Floats]:
    """(n, G) the parents that closed forms like best for each variable, and (n,) by how much the score would rise.

    Group g has the latents from ``first[g]`` on; ``current`` (n, G) are the parents now. ``penalties``: of a latent as
    a parent, of a first group, and of each further one. Latents have unit variance.
    """
    _load_in_order()
    best, rise = np.empty_like(current), np.empty(len(S))
    predicted = predictions(S, Loading, Phi, noise)
    for begin in range(0, len(S), BUDGET.n_between_checks):
        check()
        end = min(begin + BUDGET.n_between_checks, len(S))
        all_best_parents(*predicted, current, first, n_samples, penalties, BUDGET.n_partners, begin, end, best, rise)
    return best, rise
