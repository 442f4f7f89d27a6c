"""Factor analysis with parallel analysis: what a psychometrician does first.

The number of factors by Horn's parallel analysis, or given; loadings by minres or maximum likelihood; an oblimin
rotation (statsmodels: quartimin, without Kaiser's normalisation, as psych and GPArotation do it); every item to the
factor it loads on most. Unlike :class:`~unmeasured.peers.two_stage.TwoStage` nothing is cut off and no item has two
factors: this is a partition of the items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from scipy.optimize import minimize

from unmeasured.arrays import Floats
from unmeasured.constraints import FLAG, SEED, Rule, one_of, whole
from unmeasured.data.sample import Sample
from unmeasured.errors import UnmeasuredError
from unmeasured.graphs import CPDAG
from unmeasured.peers.base import Peer, imported, quiet
from unmeasured.peers.blocks import Cluster, graph_of_clusters
from unmeasured.peers.two_stage import Eigenvalues, most_factors, n_factors
from unmeasured.search.discovery import nothing_latent

Extraction = Literal["minres", "ml"]

_N_STARTS = 4  # of a rotation
_LEAST = 0.005  # unique variance, the bound of R's factanal


class FactorAnalysis(Peer):
    """Exploratory factor analysis: parallel analysis, oblimin, items to their strongest factor.

    Parameters
    ----------
    n_factors : int or None
        How many factors; None asks parallel analysis.
    extraction : "minres" or "ml"
        Least squares of the residual correlations, the default of the R package psych, or maximum likelihood.
    eigenvalues : "components" or "factors"
        Of what parallel analysis compares the eigenvalues: of the correlations (Horn), or with squared multiple
        correlations on their diagonal.
    latent_edges : bool
        Search edges between the factors; otherwise they have none.
    random_state : int
        Seed of the uncorrelated rows of parallel analysis.

    Attributes
    ----------
    n_factors_ : int
        How many factors were taken out.
    loadings_ : ndarray of shape (n, n_factors)
        Pattern of the rotated solution.
    strongest_ : dict
        The factor each item loads on most, a number from 0.

    Examples
    --------
    >>> import unmeasured as um
    >>> truth = um.simulate.random_one_factor(n_latents=2, n_observed=8, rng=0)
    >>> rows = um.simulate.sample(truth, 1000, rng=0, parameters="realistic")
    >>> found = um.peers.FactorAnalysis(n_factors=2).fit(rows)
    >>> len(found.graph_.latents), um.metrics.compare(truth, found.graph_).n_latents_true
    (2, 2)
    """

    n_factors_: int
    loadings_: Floats
    strongest_: dict[str, int]

    _rules: ClassVar[Mapping[str, Rule]] = {
        "n_factors": whole(1).or_none(),
        "extraction": one_of(*get_args(Extraction)),
        "eigenvalues": one_of(*get_args(Eigenvalues)),
        "latent_edges": FLAG,
        "random_state": SEED,
    }

    def __init__(
        self,
        *,
        n_factors: int | None = None,
        extraction: Extraction = "minres",
        eigenvalues: Eigenvalues = "components",
        latent_edges: bool = True,
        random_state: int = 0,
    ) -> None:
        self.n_factors = n_factors
        self.extraction = extraction
        self.eigenvalues = eigenvalues
        self.latent_edges = latent_edges
        self.random_state = random_state

    def _search(self, sample: Sample) -> None:
        n = len(sample.names)
        self._check_options(n)
        rotations = imported("statsmodels.multivariate.factor_rotation", "statsmodels", "FactorAnalysis")
        given = self.n_factors is not None
        m = (
            int(self.n_factors)
            if self.n_factors is not None
            else n_factors(sample, self.eigenvalues, self.random_state)
        )
        self.n_factors_ = m
        if m == 0:
            found = nothing_latent(sample)
            self.loadings_, self.strongest_ = np.zeros((n, 0)), {}
            self._keep(sample, found.cpdag, found.remarks)
            return
        loadings = extracted(np.array(sample.corr), m, self.extraction)
        if m > 1:
            loadings = rotated(loadings, rotations.rotate_factors)
        self.loadings_ = np.asarray(loadings)
        strongest = np.abs(self.loadings_).argmax(axis=1)
        self.strongest_ = {name: int(factor) for name, factor in zip(sample.names, strongest)}
        source = "as given" if given else "by parallel analysis"
        self._keep(sample, self._graph(sample, strongest), [f"Factors: {m}, {source}."])

    def _graph(self, sample: Sample, strongest: Floats) -> CPDAG:
        """A latent for each factor that is the strongest of two items or more."""
        items = [tuple(np.flatnonzero(strongest == factor).tolist()) for factor in range(self.n_factors_)]
        clusters = [Cluster(some) for some in items if len(some) > 1]
        return graph_of_clusters(sample, clusters, edges=self.latent_edges)

    def _check_options(self, n: int) -> None:
        m = self.n_factors
        if m is not None and m > most_factors(n):
            raise UnmeasuredError(f"{n} variables allow {most_factors(n)} factors at most; got n_factors={m}.")


def rotated(loadings: Floats, rotate: Callable[..., Any]) -> Floats:
    """The quartimin rotation, the best of several starts: from one start it can end at a saddle of the criterion."""
    m, rng = loadings.shape[1], np.random.default_rng(0)
    starts = [loadings, *(loadings @ np.linalg.qr(rng.normal(size=(m, m)))[0] for _ in range(_N_STARTS - 1))]
    with quiet():
        found = [np.asarray(rotate(start, "quartimin")[0]) for start in starts]
    return min(found, key=quartimin)


def quartimin(loadings: Floats) -> float:
    """The criterion of oblimin with gamma 0: products of squared loadings on different factors, summed.

    >>> quartimin(np.array([[1.0, 2.0], [3.0, 0.0]]))
    4.0
    """
    squares = loadings**2
    return float((squares.sum(axis=1) ** 2 - (squares**2).sum(axis=1)).sum() / 2)


def extracted(R: Floats, m: int, extraction: Extraction) -> Floats:
    """(n, m) loadings of a correlation matrix on uncorrelated factors.

    For unique variances psi the best loadings are closed, so only n numbers are searched.

    - ``"ml"`` (Jöreskog 1967): with the eigenvalues w of psi^-1/2 R psi^-1/2, the discrepancy is the sum of
      w - log(w) - 1 over the smallest n - m.
    - ``"minres"`` (Harman and Jones 1966): with the eigenvalues w of R - psi, half the sum of squares of the
      smallest n - m; where it is least the diagonal is reproduced exactly, so the squares are those of the other
      correlations.

    >>> L = np.array([[0.8, 0.7, 0.6, 0.5]]).T
    >>> R = L @ L.T
    >>> np.fill_diagonal(R, 1.0)
    >>> [bool(np.allclose(np.abs(extracted(R, 1, how)), L, atol=1e-3)) for how in ("ml", "minres")]
    [True, True]
    """
    n, is_ml = len(R), extraction == "ml"

    def spectrum(psi: Floats) -> tuple[Floats, Floats]:
        root = np.sqrt(psi)
        values, vectors = np.linalg.eigh(R / np.outer(root, root) if is_ml else R - np.diag(psi))
        return values, vectors

    def objective(psi: Floats) -> tuple[float, Floats]:
        values, vectors = spectrum(psi)
        small, squares = values[: n - m], vectors[:, : n - m] ** 2
        if is_ml:  # d w_k / d psi_i = - w_k v_ik² / psi_i
            return float((small - np.log(small) - 1.0).sum()), -(squares @ (small - 1.0)) / psi
        return 0.5 * float((small**2).sum()), -(squares @ small)  # d w_k / d psi_i = - v_ik²

    start = np.clip((1.0 - 0.5 * m / n) / np.diag(np.linalg.inv(R)), _LEAST, 1.0)
    options = {"maxiter": 5000, "maxfun": 50_000, "ftol": 1e-13, "gtol": 1e-8}
    psi = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=[(_LEAST, 1.0)] * n, options=options).x
    values, vectors = spectrum(psi)
    large, vectors = values[::-1][:m], vectors[:, ::-1][:, :m]
    if is_ml:
        return np.asarray(np.sqrt(psi)[:, None] * vectors * np.sqrt(np.maximum(large - 1.0, 0.0)))
    return np.asarray(vectors * np.sqrt(np.maximum(large, 0.0)))
