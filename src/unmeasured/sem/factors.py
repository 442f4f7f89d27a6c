"""Measurement models with many variables, by expectation and maximisation.

The dense kernels (:mod:`unmeasured.sem.kernels`) take a Newton step over all parameters at once: with m latents all
connected there are m(m-1)/2 paths, and a step costs the cube of that. Here the E-step gives the
moments of the latents given the data (one system of m equations, by Woodbury's identity), and in the M-step every
variable is a regression of its own:

    B = W^-1 Lambda / psi,  W = Phi^-1 + Lambda Lambda' / psi     latents predicted from x
    C = B S B' + W^-1                                             their second moments
    lambda_j = C_pp^-1 (B S)_pj,   psi_j = S_jj - lambda_j' (B S)_pj,   Phi = C

The covariance of the latents is free, scales and all, which makes this the parameter-expanded form (Liu, Rubin and Wu
1998): it takes tens of rounds where plain EM takes thousands. Latents are brought back to unit variance in every round.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.errors import Stopped
from unmeasured.sem.solve import Check, never

# Variables keep this much noise at least; below, a latent would become one of them.
_LEAST_NOISE = 1e-5
_ROUNDS = 2000


@dataclass(frozen=True, eq=False)
class Factors:
    """Loadings (m, n), covariance of the latents (m, m) and noise (n,); all variables have unit variance."""

    loadings: Floats
    Phi: Floats
    noise: Floats

    @cached_property
    def implied(self) -> Floats:
        """(n, n) covariance of the observed variables."""
        return np.asarray(self.loadings.T @ self.Phi @ self.loadings + np.diag(self.noise))


def fit_factors(
    S: Floats, loads: Bools, start: Factors, *, tolerance: float, check: Check = never
) -> tuple[Factors, float]:
    """Maximise the likelihood over the loadings in ``loads`` (m, n); also the objective reached.

    The objective is ``log det Sigma + tr(Sigma^-1 S)``, as in :mod:`unmeasured.sem.kernels`; rounds end when one lowers
    it by less than ``tolerance``, or where ``check`` says that the time is over.

    >>> S = np.full((4, 4), 0.64) + 0.36 * np.eye(4)  # one factor, loadings of 0.8
    >>> start = Factors(np.full((1, 4), 0.5), np.eye(1), np.full(4, 0.5))
    >>> found, _ = fit_factors(S, np.ones((1, 4), dtype=bool), start, tolerance=1e-12)
    >>> found.loadings.round(3).tolist()
    [[0.8, 0.8, 0.8, 0.8]]
    """
    now, before = start, np.inf
    members = _by_parents(loads)
    for _ in range(_ROUNDS):
        value, B, C = _e_step(S, now)
        if before - value < tolerance:
            break
        try:
            check()
        except Stopped:
            break
        before = value
        now = _regressed(S, B @ S, C, members)
    return now, value


def _e_step(S: Floats, now: Factors) -> tuple[float, Floats, Floats]:
    """The objective, what predicts the latents (m, n), and their second moments (m, m)."""
    M = now.loadings / now.noise
    W = np.linalg.inv(now.Phi) + M @ now.loadings.T
    rest = np.linalg.inv(W)
    B = rest @ M
    BS = B @ S
    value = np.log(now.noise).sum() + np.linalg.slogdet(now.Phi)[1] + np.linalg.slogdet(W)[1]
    value += (np.diag(S) / now.noise).sum() - (M * BS).sum()
    return float(value), B, BS @ B.T + rest


def _regressed(S: Floats, BS: Floats, C: Floats, members: Iterable[tuple[Ints, Ints]]) -> Factors:
    """Every variable on its latents; latents in units of their own."""
    loadings, noise = np.zeros_like(BS), np.diag(S).copy()
    for parents, items in members:  # (q, 1) and (c,): they index a block
        cross = BS[parents, items]
        within = C[parents, parents.T]
        b = cross / within if len(parents) == 1 else np.linalg.solve(within, cross)
        loadings[parents, items] = b
        noise[items] -= (b * cross).sum(axis=0)
    unit = np.sqrt(np.diag(C))
    return Factors(loadings * unit[:, None], C / np.outer(unit, unit), np.maximum(noise, _LEAST_NOISE))


def _by_parents(loads: Bools) -> list[tuple[Ints, Ints]]:
    """Latents (q, 1), and the variables (c,) that have just these as parents; those without any are left out."""
    members: dict[tuple[int, ...], list[int]] = {}
    for j in range(loads.shape[1]):
        members.setdefault(tuple(np.flatnonzero(loads[:, j]).tolist()), []).append(j)
    return [(np.array(parents)[:, None], np.array(items)) for parents, items in members.items() if parents]
