"""Measurement models with many variables, by expectation and maximisation.

The dense kernels (:mod:`unmeasured.kernels.likelihood`) take a Newton step over all parameters at once: with m
latents all connected there are m(m-1)/2 paths, and a step costs the cube of that. Here the E-step gives the moments
of the latents given the data (one system of m equations, by Woodbury's identity), and in the M-step every variable is
a regression of its own:

    B = W^-1 Lambda / psi,  W = Phi^-1 + Lambda Lambda' / psi     latents predicted from x
    C = B S B' + W^-1                                             their second moments
    lambda_j = C_pp^-1 (B S)_pj,   psi_j = S_jj - lambda_j' (B S)_pj,   Phi = C

The covariance of the latents is free, scales and all, which makes this the parameter-expanded form (Liu, Rubin and Wu
1998): it takes tens of rounds where plain EM takes thousands. Latents are brought back to unit variance in every round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse import csr_array

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.errors import Stopped
from unmeasured.models.solve import Check, never

Causes = Sequence[tuple[int, Sequence[int]]]

# Variables keep this much noise at least, unless less is asked for; below, a latent would become one of them.
LEAST_NOISE = 1e-5
_ROUNDS = 2000
# With more variables products with loadings leave out those that are not there: of 1,000 variables and 211 latents a
# round takes 6 ms instead of 16.
_SPARSE = 100


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
    S: Floats,
    loads: Bools,
    start: Factors,
    *,
    tolerance: float,
    causes: Causes | None = None,
    check: Check = never,
    is_accelerated: bool = False,
    least_noise: Floats | float = LEAST_NOISE,
) -> tuple[Factors, float]:
    """Maximise the likelihood over the loadings in ``loads`` (m, n); also the objective reached.

    The objective is ``log det Sigma + tr(Sigma^-1 S)``, as in :mod:`unmeasured.kernels.likelihood`; rounds end when
    one lowers it by less than ``tolerance``, or where ``check`` says that the time is over. ``causes``: every latent,
    in causal order, with those that cause it; left out, the covariance of the latents is free. ``is_accelerated``:
    two rounds and an extrapolation of them, in turn (SQUAREM; Varadhan and Roland 2008), which takes fewer rounds
    where hundreds of variables make EM slow. ``least_noise``: what residual variances are no smaller than.

    >>> S = np.full((4, 4), 0.64) + 0.36 * np.eye(4)  # one factor, loadings of 0.8
    >>> start = Factors(np.full((1, 4), 0.5), np.eye(1), np.full(4, 0.5))
    >>> found, _ = fit_factors(S, np.ones((1, 4), dtype=bool), start, tolerance=1e-12)
    >>> found.loadings.round(3).tolist()
    [[0.8, 0.8, 0.8, 0.8]]
    """
    now, before = start, np.inf
    members = _by_number_of_parents(loads)
    entries = _Entries(loads) if loads.shape[1] > _SPARSE else None
    since: list[Factors] = []  # the rounds since the last extrapolation
    for _ in range(_ROUNDS):
        value, BS, C = _e_step(S, now, entries)
        if before - value < tolerance:
            break
        try:
            check()
        except Stopped:
            break
        if is_accelerated:
            since.append(now)
            if len(since) == 3:
                further = _extrapolated(since[0], since[1], since[2], causes, least_noise)
                since = [now]
                if further is not None:
                    trial = _e_step(S, further, entries)
                    if trial[0] < value:
                        now, (value, BS, C) = further, trial
                        since = [now]
        before = value
        now = _regressed(S, BS, C, members, least_noise)
        if causes is not None:
            now = Factors(now.loadings, covariance_of(now.Phi, causes), now.noise)
    return now, value


def _extrapolated(
    first: Factors, second: Factors, third: Factors, causes: Causes | None, least_noise: Floats | float
) -> Factors | None:
    """Where three points on the way of EM lead, or None where no covariance of the latents is there."""
    points = [(one.loadings, one.Phi, np.log(one.noise)) for one in (first, second, third)]
    steps = [b - a for a, b in zip(points[0], points[1], strict=True)]
    bends = [c - b - step for b, c, step in zip(points[1], points[2], steps, strict=True)]
    length = np.sqrt(sum(float((step**2).sum()) for step in steps))
    bend = np.sqrt(sum(float((part**2).sum()) for part in bends))
    if not length > bend > 0.0:  # no further than EM itself went
        return None
    r = length / bend
    loadings, Phi, logs = (
        a + 2.0 * r * step + r * r * part for a, step, part in zip(points[0], steps, bends, strict=True)
    )
    if causes is not None:
        Phi = covariance_of(Phi, causes)
    noise = np.maximum(np.exp(np.minimum(logs, 0.0)), least_noise)
    try:
        np.linalg.cholesky(Phi)
    except np.linalg.LinAlgError:
        return None
    return Factors(loadings, Phi, noise)


def covariance_of(C: Floats, causes: Causes) -> Floats:
    """Covariance of latents that are regressed on their causes, by second moments C (m, m); see :func:`fit_factors`.

    >>> C = np.array([[1.0, 0.5, 0.4], [0.5, 1.0, 0.5], [0.4, 0.5, 1.0]])
    >>> covariance_of(C, [(0, []), (1, [0]), (2, [1])]).round(3).tolist()  # a chain
    [[1.0, 0.5, 0.25], [0.5, 1.0, 0.5], [0.25, 0.5, 1.0]]
    """
    Phi = np.zeros_like(C)
    moments: Floats = C * (1.0 + 1e-9 * np.eye(len(C)))  # a latent may be a function of others
    done: list[int] = []
    for latent, parents in causes:
        of = list(parents)
        b = np.asarray(np.linalg.solve(moments[np.ix_(of, of)], moments[of, latent]) if of else [], dtype=np.float64)
        Phi[latent, latent] = moments[latent, latent] - b @ moments[of, latent] + b @ Phi[np.ix_(of, of)] @ b
        if done:
            Phi[done, latent] = Phi[np.ix_(done, of)] @ b
            Phi[latent, done] = Phi[done, latent]
        done.append(latent)
    return Phi


class _Entries:
    """Which loadings there are: with hundreds of variables all but a few in a thousand are zero."""

    def __init__(self, loads: Bools) -> None:
        self.rows, self.columns = np.nonzero(loads)
        self._shape = loads.shape
        self._begin = np.concatenate([[0], np.cumsum(loads.sum(axis=1))])

    def matrix(self, values: Floats) -> csr_array:
        """(m, n) with these values where there are loadings."""
        return csr_array((values, self.columns, self._begin), shape=self._shape)


def _e_step(S: Floats, now: Factors, entries: _Entries | None) -> tuple[float, Floats, Floats]:
    """The objective, covariance of the predicted latents with x (m, n), and second moments of the latents (m, m)."""
    if entries is not None:
        return _sparse_e_step(S, now, entries)
    M = now.loadings / now.noise
    rest, log_det = _given_data(now.Phi, M @ now.loadings.T)
    B = rest @ M
    BS = B @ S
    value = np.log(now.noise).sum() + log_det
    value += (np.diag(S) / now.noise).sum() - (M * BS).sum()
    return float(value), BS, BS @ B.T + rest


def _sparse_e_step(S: Floats, now: Factors, entries: _Entries) -> tuple[float, Floats, Floats]:
    """The same, where most products with loadings are with zeros."""
    at = entries.rows, entries.columns
    weights = now.loadings[at] / now.noise[entries.columns]
    M = entries.matrix(weights)
    rest, log_det = _given_data(now.Phi, np.asarray(M @ now.loadings.T))
    BS = rest @ (M @ S)
    value = np.log(now.noise).sum() + log_det
    value += (np.diag(S) / now.noise).sum() - weights @ BS[at]
    return float(value), BS, (M @ BS.T).T @ rest + rest


def _given_data(Phi: Floats, information: Floats) -> tuple[Floats, float]:
    """The covariance of latents given the data, ``(Phi^-1 + information)^-1``, and ``log det(I + Phi information)``.

    Without the inverse of Phi: a latent may be a function of others but for rounding.
    """
    factor, pivots = lu_factor(np.eye(len(Phi)) + Phi @ information, overwrite_a=True, check_finite=False)
    rest = lu_solve((factor, pivots), Phi, check_finite=False)
    return 0.5 * (rest + rest.T), float(np.log(np.abs(np.diag(factor))).sum())


def _regressed(
    S: Floats, BS: Floats, C: Floats, members: Iterable[tuple[Ints, Ints]], least_noise: Floats | float
) -> Factors:
    """Every variable on its latents; latents in units of their own."""
    loadings, noise = np.zeros_like(BS), np.diag(S).copy()
    for items, parents in members:  # (c,) and (c, q)
        cross = BS[parents, items[:, None]]
        if parents.shape[1] == 1:
            b = cross / C[parents, parents]
        else:
            within = C[parents[:, :, None], parents[:, None, :]]
            b = np.asarray(np.linalg.solve(within, cross[:, :, None])[:, :, 0], dtype=np.float64)
        loadings[parents, items[:, None]] = b
        noise[items] -= (b * cross).sum(axis=1)
    unit = np.sqrt(np.diag(C))
    return Factors(loadings * unit[:, None], C / np.outer(unit, unit), np.maximum(noise, least_noise))


def _by_number_of_parents(loads: Bools) -> list[tuple[Ints, Ints]]:
    """Variables (c,) with the same number of latents as parents, and these (c, q); those without any are left out."""
    members: dict[int, list[int]] = {}
    for j, n_parents in enumerate(loads.sum(axis=0).tolist()):
        members.setdefault(n_parents, []).append(j)
    return [
        (np.array(items), np.array([np.flatnonzero(loads[:, j]) for j in items]))
        for n_parents, items in members.items()
        if n_parents
    ]
