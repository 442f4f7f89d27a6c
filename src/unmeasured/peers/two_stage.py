"""Two stages: what is done today where no latent search is at hand.

1. How many factors: parallel analysis (Horn 1965). A factor counts if its eigenvalue exceeds what uncorrelated rows of
   the same shape give in all but one of twenty cases.
2. Which items: exploratory factor analysis by maximum likelihood (our engine), an oblique rotation (statsmodels), every
   item to the factor it loads on most.
3. Which paths: the measurement model is fitted anew, with correlated factors and without small loadings, and the best
   graph over the factors is searched by BIC on their fitted covariance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal, get_args

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.constraints import FLAG, SEED, Rule, number, one_of
from unmeasured.data.sample import Sample
from unmeasured.graphs import CPDAG
from unmeasured.models.fit import fit_many
from unmeasured.peers.base import Peer, imported, quiet
from unmeasured.peers.blocks import graph_of_measurement
from unmeasured.search.discovery import nothing_latent
from unmeasured.search.model import FactorModel

Rotation = Literal["oblimin", "promax"]
Eigenvalues = Literal["components", "factors"]

_N_DRAWS, _QUANTILE = 100, 0.95


class TwoStage(Peer):
    """Parallel analysis, exploratory factor analysis, then a score-based search over the factors.

    Parameters
    ----------
    rotation : "oblimin" or "promax"
        Oblique rotation of the loadings, by statsmodels ("oblimin" with gamma 0, quartimin).
    cut : float
        Items whose largest loading is smaller stay outside; a second loading of this size is kept if
        ``cross_loadings``.
    cross_loadings : bool
        Let an item measure every factor it loads on by ``cut`` or more; otherwise the one it loads on most.
    eigenvalues : "components" or "factors"
        Of what parallel analysis compares the eigenvalues: of the correlations (Horn), or with squared multiple
        correlations on their diagonal (Humphreys and Ilgen).
    random_state : int
        Seed of the uncorrelated rows.

    Attributes
    ----------
    n_factors_ : int
        What parallel analysis says.
    """

    n_factors_: int

    _rules: ClassVar[Mapping[str, Rule]] = {
        "rotation": one_of(*get_args(Rotation)),
        "cut": number("a loading between 0 and 1", lambda value: 0 < value < 1),
        "cross_loadings": FLAG,
        "eigenvalues": one_of(*get_args(Eigenvalues)),
        "random_state": SEED,
    }

    def __init__(
        self,
        *,
        rotation: Rotation = "oblimin",
        cut: float = 0.4,
        cross_loadings: bool = True,
        eigenvalues: Eigenvalues = "factors",
        random_state: int = 0,
    ) -> None:
        self.rotation = rotation
        self.cut = cut
        self.cross_loadings = cross_loadings
        self.eigenvalues = eigenvalues
        self.random_state = random_state

    def _search(self, sample: Sample) -> None:
        rotations = imported("statsmodels.multivariate.factor_rotation", "statsmodels", "TwoStage")
        self.n_factors_ = n_factors(sample, self.eigenvalues, self.random_state)
        if self.n_factors_ == 0:
            found = nothing_latent(sample)
            self._keep(sample, found.cpdag, found.remarks)
            return
        loadings = unrotated_loadings(sample, self.n_factors_)
        if self.n_factors_ > 1:
            with quiet():
                if self.rotation == "promax":
                    loadings = rotations.promax(loadings)[0]
                else:
                    loadings = rotations.rotate_factors(loadings, "quartimin")[0]
        belongs = assigned(np.abs(loadings), self.cut, self.cross_loadings)
        outside = [name for name, factors in zip(sample.names, belongs) if not factors]
        remarks = [f"Loading on no factor: {', '.join(outside)}."] if outside else []
        self._keep(sample, _graph(sample, belongs), remarks)


def n_factors(sample: Sample, eigenvalues: Eigenvalues, seed: int) -> int:
    """How many eigenvalues exceed those of uncorrelated rows, counted from the largest; at most what can be fitted.

    In a population uncorrelated variables have eigenvalues 1 (components) or 0 (factors).

    >>> n_factors(Sample.from_cov(0.5 * np.eye(4) + 0.5, 200), "components", 0)
    1
    >>> n_factors(Sample.from_cov(np.eye(4), 200), "components", 0)
    0
    """
    n = len(sample.names)
    seen = _eigenvalues(np.array(sample.corr)[None], eigenvalues)[0]
    if math.isinf(sample.n):
        limits = np.full(n, (1.0 if eigenvalues == "components" else 0.0) + 1e-6)
    else:
        rng = np.random.default_rng(seed)
        rows = max(round(sample.n), n + 2)
        chance = np.array([np.corrcoef(rng.standard_normal((rows, n)).T) for _ in range(_N_DRAWS)])
        limits = np.quantile(_eigenvalues(chance, eigenvalues), _QUANTILE, axis=0)
    exceeds = seen > limits
    count = n if exceeds.all() else int(np.argmin(exceeds))
    return min(count, most_factors(n))


def most_factors(n: int) -> int:
    """The most factors a factor analysis of n variables can have degrees of freedom for (Ledermann's bound).

    >>> [most_factors(n) for n in (2, 3, 6, 15)]
    [0, 1, 3, 10]
    """
    return max((m for m in range(n) if (n - m) ** 2 >= n + m), default=0)


def _eigenvalues(R: Floats, of: Eigenvalues) -> Floats:
    """(B, n) eigenvalues, the largest first."""
    if of == "factors":
        R = R.copy()
        every = np.arange(R.shape[1])
        R[:, every, every] = 1.0 - 1.0 / np.linalg.inv(R)[:, every, every]
    return np.asarray(np.linalg.eigvalsh(R)[:, ::-1])


def unrotated_loadings(sample: Sample, m: int) -> Floats:
    """(n, m) maximum-likelihood loadings of standardised variables on uncorrelated factors."""
    model = FactorModel(sample.names, (m,), (1,) * len(sample.names))
    (fit,) = fit_many([model.member], sample, n_threads=1)
    position = {name: i for i, name in enumerate(fit.causal_order)}
    latents = [position[name] for name in model.latents]
    items = [position[name] for name in sample.names]
    loadings = fit.F[np.ix_(latents, items)].T / sample.sd[:, None]
    # Principal axes: another start of the fit would be another rotation, and rotations end where they begin.
    left, size, _ = np.linalg.svd(loadings, full_matrices=False)
    return np.asarray(left * size)


def assigned(loadings: Floats, cut: float, cross_loadings: bool) -> list[tuple[int, ...]]:
    """The factors each item measures; a factor needs two items of its own, or it is given up and its items go on.

    >>> sizes = np.array([[0.8, 0.1], [0.7, 0.4], [0.6, 0.0], [0.3, 0.5], [0.0, 0.9]])
    >>> assigned(sizes, 0.35, False)
    [(0,), (0,), (0,), (1,), (1,)]
    >>> assigned(sizes, 0.35, True)
    [(0,), (0, 1), (0,), (1,), (1,)]
    """
    alive = list(range(loadings.shape[1]))
    while True:
        belongs = [_factors_of(row, alive, cut, cross_loadings) for row in loadings]
        own = {f: sum(factors == (f,) for factors in belongs) for f in alive}
        weakest = min(alive, key=lambda f: (own[f], f), default=None)
        if weakest is None or own[weakest] >= 2:
            return belongs
        alive.remove(weakest)


def _factors_of(row: Floats, alive: list[int], cut: float, cross_loadings: bool) -> tuple[int, ...]:
    large = [f for f in alive if row[f] >= cut]
    return tuple(large) if cross_loadings or not large else (max(large, key=lambda f: (row[f], -f)),)


def _graph(sample: Sample, belongs: list[tuple[int, ...]]) -> CPDAG:
    """The graph of the assignment; items of no factor stand alone."""
    factors = sorted({f for row in belongs for f in row})
    if not factors:
        return nothing_latent(sample).cpdag
    kept = [j for j, row in enumerate(belongs) if row]
    names = tuple(sample.names[j] for j in kept)
    masks = tuple(sum(1 << factors.index(f) for f in belongs[j]) for j in kept)
    model = FactorModel(names, (1,) * len(factors), masks)
    return graph_of_measurement(sample, sample.select(names), model)
