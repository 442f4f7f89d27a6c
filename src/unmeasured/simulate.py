"""Random factor-model graphs, parameters for them, and samples.

Three steps, each usable alone::

    dag = random_gnfm(group_sizes=(1, 1, 2), n_observed=12, n_common_children=1, rng=0)   # a structure
    parameters = realistic_parameters(dag, rng=0)                                         # F and Omega
    frame = sample(parameters, 500, rng=0)                                                # rows

    L1 ──► {L2, L3}        X1, X2 and X3 are pure children of L1 (their parents are exactly that group);
    │ ╲      │  │          X8 is a common child: every latent of two groups causes it.
    X1..X3  X4..X7   X8

Two ways to draw parameters are offered. :func:`paper_parameters` is the setting of the paper's experiments:
edge weights uniform on [-5, 5], so that variances grow along the graph and covariance matrices are badly
conditioned. :func:`realistic_parameters` is what questionnaires look like: standardised latents and items,
items that share 30 to 75% of their variance with their latents, moderate paths.

Two more make models with their parameters for studies of questionnaires: :func:`hierarchy` (traits over facets over
items) and :func:`minor_factors` (a few factors and fifty small ones, off the model of the few by a given RMSEA).

The benchmarks run on two fixed collections, :func:`paper_suite` and :func:`realistic_suite`. They are read
from files, so that a new release of the random number generator cannot move a table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri

from unmeasured.errors import GraphError, ModelError, UnmeasuredError, listing, nearest
from unmeasured.graphs import DAG, is_gnfm, is_hierarchical
from unmeasured.graphs.levels import LEAST_FACETS
from unmeasured.models.fit import fit

FloatArray: TypeAlias = NDArray[np.float64]
Rng: TypeAlias = np.random.Generator | int
Shape = Literal["random", "chain", "fork", "collider", "dense", "empty"]
Noise = Literal["gaussian", "uniform"]
Nonlinearity = Literal["linear", "leaky-relu"]
Setting = Literal["paper", "realistic"]
Categories = Literal["even", "skewed"]

COMMUNALITY = (0.3, 0.75)  # share of an item's variance that its latents explain
PATH = (0.2, 0.7)  # size of a path coefficient between standardised latents
MAX_EXPLAINED = 0.9  # paths into a latent are shrunk together when they explain more than this
# How often each of five answers is given. Skewed: as with symptoms, which most people do not have.
FREQUENCIES: dict[Categories, tuple[float, ...]] = {
    "even": (0.2, 0.2, 0.2, 0.2, 0.2),
    "skewed": (0.5, 0.25, 0.13, 0.08, 0.04),
}
N_CANDIDATES = 64  # draws of a loading pattern from which a usable one is taken
PAPER_SEED = 2025
REALISTIC_SEED = 2026
SUITE_SIZE = 20


# ---------------------------------------------------------------------------------------------- structures


# Letters of the latents of a hierarchy, the lowest level first.
_LEVELS = "FTUV"


def _generator(rng: Any) -> np.random.Generator:
    """A generator from a seed or a generator; what is neither is refused."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise UnmeasuredError(
            f"rng is a seed, a whole number from 0, or a numpy Generator; got {rng!r} ({error})."
        ) from None


def random_gnfm(
    *,
    n_latents: int | None = None,
    n_observed: int | None = None,
    group_sizes: Sequence[int] | None = None,
    n_groups: int | None = None,
    max_group_size: int = 3,
    shape: Shape = "random",
    density: float = 0.5,
    n_common_children: int = 0,
    max_parent_groups: int = 2,
    rng: Rng,
) -> DAG:
    """A random generalized N factor model (Def. 2).

    Latents are called ``L1, L2, ...`` group by group, observed variables ``X1, X2, ...``: first the pure
    children in the order of the groups, then the common children. The causal order of the groups is random.

    Parameters
    ----------
    n_latents
        Number of latents. Left out: the sum of ``group_sizes``, else 5 (with ``n_groups``: sizes are drawn
        uniformly from 1 to ``max_group_size`` and need not add up to a sum).
    n_observed
        Number of observed variables. Left out: three for each latent, and the common children.
    group_sizes
        Number of latents of each group. Left out: drawn, with sum ``n_latents``.
    n_groups
        Number of groups when the sizes are drawn. Left out: uniform over what is possible.
    max_group_size
        Largest group drawn.
    shape
        Edges between groups. ``"random"``: each pair, in a random order, with probability ``density``;
        ``"chain"``, ``"fork"`` (one group causes the others), ``"collider"`` (the others cause one group),
        ``"dense"`` (every pair) and ``"empty"`` ignore ``density``.
    density
        Probability of an edge between two groups.
    n_common_children
        Number of observed variables with two or more parent groups.
    max_parent_groups
        Such a variable has 2 to ``max_parent_groups`` of them, uniformly (fewer if there are fewer groups).
    rng
        A generator or a seed.

    Raises
    ------
    GraphError
        When no graph of the class answers the request.

    Examples
    --------
    >>> dag = random_gnfm(group_sizes=(1, 2), n_observed=8, n_common_children=1, shape="dense", rng=0)
    >>> dag.latents, len(dag.observed)
    (('L1', 'L2', 'L3'), 8)
    >>> sorted(dag.parents("X8"))
    ['L1', 'L2', 'L3']
    >>> random_gnfm(n_latents=5, n_observed=9, rng=0)
    Traceback (most recent call last):
    ...
    unmeasured.errors.GraphError: 5 latents need at least 10 pure children; you asked for 9 observed
    variables. Ask for 10 or more, or for fewer latents (Def. 2).
    """
    rng = _generator(rng)
    sizes = _sizes(group_sizes, n_latents, n_groups, max_group_size, rng)
    if n_observed is None:
        n_observed = 3 * sum(sizes) + n_common_children
    parents = _parents_of_common(n_common_children, max_parent_groups, len(sizes), rng)
    _require_enough(n_observed, sum(sizes), 2 * sum(sizes), n_common_children, "Def. 2")
    n_pure = _spread(n_observed - n_common_children, [2 * size for size in sizes], rng)
    return _assemble(sizes, _edges_between(len(sizes), shape, density, rng), n_pure, parents)


def random_one_factor(
    *,
    n_latents: int = 5,
    n_observed: int | None = None,
    shape: Shape = "random",
    density: float = 0.5,
    rng: Rng,
) -> DAG:
    """A random one-factor model: every observed variable measures one latent, every latent has three or more.

    The class of Silva et al. (2003), a special case of the one :func:`random_gnfm` draws from; options as
    there. ``n_observed`` left out is four for each latent.

    >>> dag = random_one_factor(n_latents=2, n_observed=7, shape="chain", rng=1)
    >>> {len(dag.parents(name)) for name in dag.observed}
    {1}
    """
    rng = _generator(rng)
    _at_least("n_latents", n_latents, 1)
    if n_observed is None:
        n_observed = 4 * n_latents
    _require_enough(n_observed, n_latents, 3 * n_latents, 0, "one-factor model")
    n_pure = _spread(n_observed, [3] * n_latents, rng)
    return _assemble((1,) * n_latents, _edges_between(n_latents, shape, density, rng), n_pure, [])


def random_dag(*, n_observed: int, density: float = 0.3, rng: Rng) -> DAG:
    """A random DAG over observed variables: nothing is hidden. Density 0 makes all of them independent.

    >>> dag = random_dag(n_observed=4, density=1.0, rng=0)
    >>> dag.latents, len(dag.edges)
    ((), 6)
    """
    _at_least("n_observed", n_observed, 1)
    names = [f"X{i + 1}" for i in range(n_observed)]
    pairs = _edges_between(n_observed, "random", density, _generator(rng))
    return DAG.from_edges([(names[a], names[b]) for a, b in pairs], names=names)


def _assemble(
    sizes: Sequence[int],
    between: Iterable[tuple[int, int]],
    n_pure: Sequence[int],
    parents_of_common: Iterable[Sequence[int]],
) -> DAG:
    """The graph with these group sizes, edges between groups, pure children and common children."""
    ends = np.cumsum(sizes)
    groups = [[f"L{i + 1}" for i in range(end - size, end)] for size, end in zip(sizes, ends)]
    parent_groups = [(g,) for g, n in enumerate(n_pure) for _ in range(n)] + [tuple(p) for p in parents_of_common]
    observed = [f"X{i + 1}" for i in range(len(parent_groups))]
    edges = [(a, b) for i, j in between for a in groups[i] for b in groups[j]]
    edges += [(a, x) for x, of in zip(observed, parent_groups) for g in of for a in groups[g]]
    latents = [name for group in groups for name in group]
    return DAG.from_edges(edges, latents=latents, names=latents + observed)


def _sizes(
    given: Sequence[int] | None,
    n_latents: int | None,
    n_groups: int | None,
    max_size: int,
    rng: np.random.Generator,
) -> tuple[int, ...]:
    """Group sizes: the ones given, once they agree with the rest, or a draw."""
    if given is not None:
        return _checked_sizes(given, n_latents, n_groups)
    _at_least("max_group_size", max_size, 1)
    if n_latents is None and n_groups is not None:
        _at_least("n_groups", n_groups, 1)
        return tuple(int(size) for size in rng.integers(1, max_size, size=n_groups, endpoint=True))
    n_latents = 5 if n_latents is None else n_latents
    _at_least("n_latents", n_latents, 1)
    fewest = -(-n_latents // max_size)
    if n_groups is None:
        n_groups = int(rng.integers(fewest, n_latents, endpoint=True))
    if not fewest <= n_groups <= n_latents:
        raise GraphError(
            f"{n_latents} latents in groups of 1 to {max_size} make {fewest} to {n_latents} groups; "
            f"you asked for {n_groups}."
        )
    return tuple(_spread(n_latents, [1] * n_groups, rng, limit=max_size))


def _checked_sizes(given: Sequence[int], n_latents: int | None, n_groups: int | None) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in given)
    if not sizes or min(sizes) < 1:
        raise GraphError(f"group_sizes must be one positive number for each group; got {sizes}.")
    if n_latents not in (None, sum(sizes)):
        raise GraphError(
            f"group_sizes {sizes} sum to {sum(sizes)}, but n_latents is {n_latents}; leave one of them out."
        )
    if n_groups not in (None, len(sizes)):
        raise GraphError(
            f"group_sizes {sizes} are {len(sizes)} groups, but n_groups is {n_groups}; leave one of them out."
        )
    return sizes


def _spread(total: int, least: Sequence[int], rng: np.random.Generator, limit: float = np.inf) -> list[int]:
    """Counts that sum to ``total``: the least each may have, the rest one by one to random places."""
    counts = list(least)
    for _ in range(total - sum(least)):
        open_places = [i for i, count in enumerate(counts) if count < limit]
        counts[int(rng.choice(open_places))] += 1
    return counts


def _edges_between(n_groups: int, shape: Shape, density: float, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Edges over group indices, along a random causal order."""
    _one_of("shape", shape, get_args(Shape))
    if not 0 <= density <= 1:
        raise UnmeasuredError(f"density is the probability of an edge, from 0 to 1; got {density}.")
    order = [int(g) for g in rng.permutation(n_groups)]
    pairs = list(combinations(range(n_groups), 2))
    match shape:
        case "random":
            kept = [pair for pair, u in zip(pairs, rng.random(len(pairs))) if u < density]
        case "chain":
            kept = [(a, b) for a, b in pairs if b == a + 1]
        case "fork":
            kept = [(a, b) for a, b in pairs if a == 0]
        case "collider":
            kept = [(a, b) for a, b in pairs if b == n_groups - 1]
        case "dense":
            kept = pairs
        case "empty":
            kept = []
    return [(order[a], order[b]) for a, b in kept]


def _parents_of_common(
    n_common: int, max_parents: int, n_groups: int, rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """The parent groups of each common child."""
    _at_least("n_common_children", n_common, 0)
    if n_common and n_groups < 2:
        raise GraphError(
            f"A common child has two parent groups or more, but there is one group; "
            f"n_common_children must be 0 here, got {n_common}."
        )
    if n_common:
        _at_least("max_parent_groups", max_parents, 2)
    most = min(max_parents, n_groups)
    return [
        tuple(sorted(int(g) for g in rng.choice(n_groups, size=int(n), replace=False)))
        for n in (rng.integers(2, most, size=n_common, endpoint=True) if n_common else ())
    ]


def _require_enough(n_observed: int, n_latents: int, n_pure: int, n_common: int, reference: str) -> None:
    """Refuse a request with too few observed variables."""
    if n_observed >= n_pure + n_common:
        return
    latents = f"{n_latents} latent{'s' if n_latents > 1 else ''} need{'' if n_latents > 1 else 's'}"
    common = f" plus {n_common} common {'children' if n_common > 1 else 'child'}" if n_common else ""
    raise GraphError(
        f"{latents} at least {n_pure} pure children{common}; you asked for {n_observed} observed variables. "
        f"Ask for {n_pure + n_common} or more, or for fewer latents ({reference})."
    )


# ---------------------------------------------------------------------------------------------- parameters


@dataclass(frozen=True, eq=False)
class Parameters:
    """A graph with numbers on it: the linear model ``V = F'V + e``, ``Cov(e) = Omega``.

    Parameters
    ----------
    dag
        The graph; rows and columns below follow ``dag.names``.
    F : (d, d)
        Edge weights; ``F[i, j]`` is the effect of ``i`` on ``j``, zero where the graph has no edge.
    Omega : (d, d)
        Noise covariance, positive definite; diagonal in everything this module draws.

    Examples
    --------
    >>> dag = DAG.from_edges([("L", "a"), ("L", "b")], latents=["L"], names=["L", "a", "b"])
    >>> model = Parameters(dag, np.array([[0, 2.0, 3.0], [0, 0, 0], [0, 0, 0]]), np.eye(3))
    >>> model.observed, model.cov().tolist()
    (('a', 'b'), [[5.0, 6.0], [6.0, 10.0]])
    """

    dag: DAG
    F: FloatArray
    Omega: FloatArray

    def __post_init__(self) -> None:
        d = len(self.dag.names)
        for letter in ("F", "Omega"):
            matrix = np.array(getattr(self, letter), dtype=np.float64)
            if matrix.shape != (d, d) or not np.isfinite(matrix).all():
                raise ModelError(
                    f"{letter} must be a finite ({d}, {d}) array, one row for each variable of the graph; "
                    f"got shape {matrix.shape}."
                )
            matrix.setflags(write=False)
            object.__setattr__(self, letter, matrix)
        self._require_weights_on_edges()
        if not np.array_equal(self.Omega, self.Omega.T) or np.linalg.eigvalsh(self.Omega)[0] <= 0:
            raise ModelError("Omega must be symmetric and positive definite; give every variable some noise.")

    def _require_weights_on_edges(self) -> None:
        names = self.dag.names
        stray = np.argwhere((self.F != 0) & (self.dag.adjacency == 0))
        if len(stray):
            i, j = stray[0]
            raise ModelError(
                f"F gives {names[i]} → {names[j]} the weight {self.F[i, j]:g}, but the graph has no such edge"
                "; set it to 0 or add the edge."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """All variables: the order of ``F``, ``Omega`` and :meth:`full_cov`."""
        return self.dag.names

    @property
    def observed(self) -> tuple[str, ...]:
        """The observed variables: the order of :meth:`cov`."""
        return self.dag.observed

    def full_cov(self) -> FloatArray:
        """Population covariance of all variables, ``(I - F')^-1 Omega (I - F)^-1``, ordered as ``names``."""
        E = np.linalg.inv(np.eye(len(self.F)) - self.F)
        cov: FloatArray = E.T @ self.Omega @ E
        return (cov + cov.T) / 2

    def cov(self) -> FloatArray:
        """Population covariance of the observed variables, ordered as ``observed``."""
        keep = _indices(self.dag, self.dag.observed)
        return self.full_cov()[np.ix_(keep, keep)]


def paper_parameters(
    dag: DAG,
    rng: Rng,
    *,
    low: float = -5.0,
    high: float = 5.0,
    noise: tuple[float, float] = (0.1, 1.0),
    min_abs: float = 0.0,
) -> Parameters:
    """Parameters as in the paper's experiments: ``F ~ U[-5, 5]``, residual variances ``~ U[0.1, 1]``.

    Parameters
    ----------
    low, high
        Range of the edge weights.
    noise
        Range of the residual variances.
    min_abs
        Weights are drawn uniformly from what is left of the range without ``(-min_abs, min_abs)``. The paper
        has 0; population tests want edges that can be told from no edge.

    Examples
    --------
    >>> model = paper_parameters(random_gnfm(group_sizes=(1, 1), rng=0), rng=0, min_abs=0.5)
    >>> bool(np.abs(model.F[model.F != 0]).min() >= 0.5)
    True
    """
    rng = _generator(rng)
    if not 0 < noise[0] <= noise[1]:
        raise UnmeasuredError(f"noise is a range of variances, 0 < smallest <= largest; got {noise}.")
    i, j = np.nonzero(dag.adjacency)
    F = np.zeros(dag.adjacency.shape)
    F[i, j] = _uniform_away_from_zero(low, high, min_abs, len(i), rng)
    return Parameters(dag, F, np.diag(rng.uniform(*noise, size=len(F))))


def _uniform_away_from_zero(low: float, high: float, min_abs: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Uniform draws from ``[low, high]`` without ``(-min_abs, min_abs)``."""
    negative = max(0.0, min(high, -min_abs) - low)
    start = max(low, min_abs)
    positive = max(0.0, high - start)
    if negative + positive <= 0:
        raise UnmeasuredError(
            f"No weight lies in [{low:g}, {high:g}] and at least {min_abs:g} from zero; "
            "widen the range or lower min_abs."
        )
    u = rng.uniform(0.0, negative + positive, size=size)
    return np.where(u < negative, low + u, start + (u - negative))


def realistic_parameters(dag: DAG, rng: Rng) -> Parameters:
    """Parameters of the size questionnaires have; every variable, latent or observed, has variance 1.

    - Paths between latents: 0.2 to 0.7 in size, random signs. Paths into a latent that would explain more
      than 0.9 of its variance are shrunk together until they explain 0.9, so some end below 0.2.
    - Items: latents explain 0.3 to 0.75 of the variance (uniform). So do latents of the latents that measure them.
    - Pure children of a group of several latents: their loadings, seen as directions in the space of the
      group's latents, are the best spread of 64 random draws. No two items are nearly parallel and no
      dimension is nearly empty unless there are too many items to avoid it: the group is of its rank not only
      in name.
      Where the group's latents are strongly correlated, through shared causes, loadings may exceed 1.
    - Common children: weights within a factor of two of each other, signs that do not cancel.

    Parameters
    ----------
    dag
        A generalized N factor model, or a hierarchical one.
    rng
        A generator or a seed.

    Examples
    --------
    >>> model = realistic_parameters(random_gnfm(group_sizes=(1, 2), rng=0), rng=0)
    >>> bool(np.allclose(np.diag(model.full_cov()), 1))
    True
    """
    rng = _generator(rng)
    verdict = is_gnfm(dag)
    if not verdict and not is_hierarchical(dag):
        raise GraphError(f"Realistic parameters are for factor models only; use paper_parameters. {verdict}")
    F, cov = _standardised_paths(dag, rng)
    noise = 1 - np.einsum("ij,ik,kj->j", F, cov, F)
    groups = {frozenset(group) for group in dag.latent_groups}
    for parents, items in _by_parents(dag).items():
        draw = _group_loadings if parents in groups else _common_loadings
        rows = [k for k, name in enumerate(dag.names) if name in parents]
        communality = rng.uniform(*COMMUNALITY, size=len(items))
        directions = draw(cov[np.ix_(rows, rows)], len(items), rng)
        columns = _indices(dag, items)
        F[np.ix_(rows, columns)] = (directions * np.sqrt(communality)[:, None]).T
        noise[columns] = 1 - communality
    return Parameters(dag, F, np.diag(noise))


def _standardised_paths(dag: DAG, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Paths between latents and the latents' correlations, both (d, d) with zeros for the observed."""
    d = len(dag.names)
    F, cov = np.zeros((d, d)), np.zeros((d, d))
    latent = np.isin(dag.names, dag.latents)
    below = {facet for facets in dag.facets.values() for facet in facets}
    for j in (j for j in dag.topological_order if latent[j]):
        parents = np.flatnonzero(dag.adjacency[:, j])
        size = rng.uniform(*PATH, size=len(parents))
        if dag.names[j] in below:
            size = np.sqrt(rng.uniform(*COMMUNALITY, size=len(parents)))
        weights = size * rng.choice([-1.0, 1.0], size=len(parents))
        explained = weights @ cov[np.ix_(parents, parents)] @ weights
        F[parents, j] = weights * np.sqrt(min(1.0, MAX_EXPLAINED / explained) if explained > 0 else 1.0)
        cov[j] = cov[:, j] = cov @ F[:, j]
        cov[j, j] = 1.0
    return F, cov


def _by_parents(dag: DAG) -> dict[frozenset[str], list[str]]:
    """The observed variables by their set of parents, in order of first appearance."""
    items: dict[frozenset[str], list[str]] = {}
    for name in dag.observed:
        items.setdefault(frozenset(dag.parents(name)), []).append(name)
    return items


def _group_loadings(Phi: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Loadings (n, k) of pure children on their group, each with common variance 1, well spread.

    A row ``d`` on the unit sphere becomes ``d' C^-1`` with ``Phi = C C'``, so that its common variance is
    ``d'd = 1``. The spread of a draw is its smallest eigenvalue times one minus the largest squared cosine
    between two rows.
    """
    k = len(Phi)
    rows = rng.normal(size=(N_CANDIDATES, n, k))
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    transposed = rows.transpose(0, 2, 1)
    smallest = np.linalg.eigvalsh(transposed @ rows)[:, 0]
    cosines = (rows @ transposed) ** 2 - np.eye(n)
    best = int(np.argmax(smallest * (1 - cosines.max(axis=(1, 2)))))
    loadings: FloatArray = rows[best] @ np.linalg.inv(np.linalg.cholesky(Phi))
    return loadings


def _common_loadings(Phi: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Loadings (n, k) of common children, each with common variance 1.

    Weights are 0.5 to 1 with random signs before scaling; the first draw whose parts do not cancel (common
    variance at least half of what uncorrelated parents would give) is taken.
    """
    k = len(Phi)
    shape = (n, N_CANDIDATES, k)
    weights = rng.uniform(0.5, 1.0, size=shape) * rng.choice([-1.0, 1.0], size=shape)
    variance = np.einsum("nci,ij,ncj->nc", weights, Phi, weights)
    kept = np.minimum(variance / (weights**2).sum(axis=2), 0.5)
    first = kept.argmax(axis=1)  # the first that reaches one half, else the best
    rows = np.arange(n)
    loadings: FloatArray = weights[rows, first] / np.sqrt(variance[rows, first])[:, None]
    return loadings


# -------------------------------------------------------------------------------------------------- samples


def hierarchy(
    *,
    n_traits: int = 3,
    n_facets: int = 3,
    n_items: int = 4,
    loading: float = 0.8,
    item_loadings: tuple[float, float] = (0.6, 0.8),
    between: float = 0.3,
    rng: Rng,
) -> Parameters:
    """Traits over facets over items: a hierarchical factor model of standardised variables.

    Parameters
    ----------
    n_traits, n_facets, n_items
        Traits, facets of each, items of each facet.
    loading
        Of facets on their trait; two facets of a trait correlate by its square.
    item_loadings
        Least and most of the loadings of items on their facet, drawn uniformly.
    between
        Correlation of any two traits.
    rng
        A generator or a seed.

    Returns
    -------
    model : Parameters
        Traits are called ``T1, T2, ...``, facets ``F1, ...``, items ``X1, ...``; :func:`sample` draws rows.

    Examples
    --------
    >>> model = hierarchy(n_traits=2, n_facets=3, n_items=3, rng=0)
    >>> model.dag.children("T1"), model.dag.children("F1")
    (('T2', 'F1', 'F2', 'F3'), ('X1', 'X2', 'X3'))
    >>> bool(np.allclose(np.diag(model.full_cov()), 1.0))
    True
    """
    _at_least("n_traits", n_traits, 1)
    _at_least("n_facets", n_facets, 2)
    _at_least("n_items", n_items, 2)
    low, high = item_loadings
    if not (0 < loading < 1 and 0 < low <= high < 1):
        raise UnmeasuredError(f"Loadings are between 0 and 1, the least first; got {loading} and {item_loadings}.")
    if not 0 <= between < 1:
        raise UnmeasuredError(f"between is a correlation from 0 to below 1; got {between}.")
    rng = _generator(rng)
    traits = [f"T{i + 1}" for i in range(n_traits)]
    facets = [f"F{i + 1}" for i in range(n_traits * n_facets)]
    items = [f"X{i + 1}" for i in range(len(facets) * n_items)]
    weights = _correlated(traits, between)
    weights |= {(traits[j // n_facets], facet): loading for j, facet in enumerate(facets)}
    drawn = rng.uniform(low, high, size=len(items))
    weights |= {(facets[j // n_items], item): drawn[j] for j, item in enumerate(items)}
    return _standardised(weights, (*traits, *facets), items)


def random_hierarchy(
    *,
    n_traits: int = 2,
    n_free: int = 1,
    n_levels: int = 2,
    n_facets: tuple[int, int] = (3, 4),
    n_items: tuple[int, int] = (2, 3),
    density: float = 0.5,
    n_common_children: int = 0,
    rng: Rng,
) -> DAG:
    """A random hierarchical factor model: latents above latents, which data can tell (:func:`is_hierarchical`).

    Latents that items measure are called ``F1, F2, ...``, those of higher levels ``T1, ...``, ``U1, ...`` and
    ``V1, ...``, items ``X1, ...``.

    Parameters
    ----------
    n_traits
        Latents of the highest level.
    n_free
        Latents that items measure and that have nothing above them; they have edges with the highest level.
    n_levels
        Levels of latents, 2 to 4: 2 are traits over facets.
    n_facets
        Least and most of the latents below each of them, at least 3; one that has no other neighbours gets one more.
    n_items
        Least and most of the items of each latent of the lowest level, at least 2.
    density
        Probability of an edge between two latents that have nothing above them.
    n_common_children
        Items of two latents.
    rng
        A generator or a seed.

    Examples
    --------
    >>> dag = random_hierarchy(n_traits=2, n_free=0, density=1.0, rng=0)
    >>> list(dag.facets)
    ['T1', 'T2']
    >>> from unmeasured.graphs import is_hierarchical
    >>> bool(is_hierarchical(dag))
    True
    """
    _at_least("n_traits", n_traits, 1)
    _at_least("n_free", n_free, 0)
    _at_least("n_levels", n_levels, 2)
    _at_least("the least of n_facets", n_facets[0], LEAST_FACETS)
    _at_least("the least of n_items", n_items[0], 2)
    _at_least("n_common_children", n_common_children, 0)
    if n_levels > len(_LEVELS):
        raise UnmeasuredError(f"n_levels is at most {len(_LEVELS)}; got {n_levels}.")
    rng = _generator(rng)
    above = _edges_between(n_traits + n_free, "random", density, rng)
    connected = {k for edge in above for k in edge}
    levels = [[f"{_LEVELS[n_levels - 1]}{i + 1}" for i in range(n_traits)]]  # the highest first
    edges: list[tuple[str, str]] = []
    for height in range(n_levels - 2, -1, -1):
        below: list[str] = []
        for i, name in enumerate(levels[-1]):
            is_alone = len(levels) == 1 and i not in connected
            for _ in range(max(int(rng.integers(n_facets[0], n_facets[1] + 1)), LEAST_FACETS + is_alone)):
                below.append(f"{_LEVELS[height]}{len(below) + 1}")
                edges.append((name, below[-1]))
        levels.append(below)
    measured = [f"F{i + 1}" for i in range(len(levels[-1]) + n_free)]
    top = [*levels[0], *measured[len(levels[-1]) :]]
    latents = [*measured, *(name for level in levels[-2::-1] for name in level)]
    owners: list[tuple[str, ...]] = [
        (name,) for name in measured for _ in range(int(rng.integers(n_items[0], n_items[1] + 1)))
    ]
    owners += [
        tuple(measured[int(k)] for k in rng.choice(len(measured), size=2, replace=False))
        for _ in range(n_common_children)
    ]
    items = [f"X{j + 1}" for j in range(len(owners))]
    edges += [(top[a], top[b]) for a, b in above]
    edges += [(owner, item) for item, those in zip(items, owners, strict=True) for owner in those]
    return DAG.from_edges(edges, latents=latents, names=[*latents, *items])


def minor_factors(
    *,
    n_factors: int = 5,
    n_items: int = 6,
    item_loadings: tuple[float, float] = (0.5, 0.8),
    between: float = 0.3,
    rmsea: float = 0.05,
    n_minor: int = 50,
    decay: float = 0.2,
    rng: Rng,
) -> Parameters:
    """Major factors, and many minor ones that no model of a few factors can have (Tucker, Koopman and Linn 1969).

    Loadings on minor factor j are Gaussian with a standard deviation in proportion to ``(1 - decay)^j``, scaled so that
    minor factors explain the same part of every item; that part is chosen so that the model of the major factors,
    fitted to the population covariance by maximum likelihood, has the RMSEA that is asked for.

    Parameters
    ----------
    n_factors, n_items
        Major factors, items of each.
    item_loadings
        Least and most of the loadings on the major factors, drawn uniformly.
    between
        Correlation of any two major factors.
    rmsea
        Of the major factors' model in the population.
    n_minor, decay
        How many minor factors, and how fast they get smaller.
    rng
        A generator or a seed.

    Returns
    -------
    model : Parameters
        Major factors are called ``F1, F2, ...``, minor ones ``M1, ...``, items ``X1, ...``; all have variance 1.

    Examples
    --------
    >>> model = minor_factors(n_factors=2, n_items=4, rmsea=0.05, rng=0)
    >>> round(population_rmsea(major_part(model.dag), model), 4)
    0.05
    """
    _at_least("n_factors", n_factors, 1)
    _at_least("n_items", n_items, 3)
    _at_least("n_minor", n_minor, 1)
    low, high = item_loadings
    if not 0 < low <= high < 1:
        raise UnmeasuredError(f"item_loadings are between 0 and 1, the least first; got {item_loadings}.")
    if not 0 <= between < 1 or not 0 <= decay < 1:
        raise UnmeasuredError(f"between and decay are from 0 to below 1; got {between} and {decay}.")
    if not 0 < rmsea < 1:
        raise UnmeasuredError(f"rmsea is above 0 and below 1; got {rmsea}.")
    rng = _generator(rng)
    factors, minor = [f"F{i + 1}" for i in range(n_factors)], [f"M{i + 1}" for i in range(n_minor)]
    items = [f"X{i + 1}" for i in range(n_factors * n_items)]
    loadings = rng.uniform(low, high, size=len(items))
    small = rng.standard_normal((len(items), n_minor)) * (1.0 - decay) ** np.arange(n_minor)
    small /= np.linalg.norm(small, axis=1, keepdims=True)
    major = _correlated(factors, between) | {(factors[j // n_items], x): loadings[j] for j, x in enumerate(items)}

    def with_part(part: float) -> Parameters:
        extra = {(m, x): math.sqrt(part) * small[j, k] for j, x in enumerate(items) for k, m in enumerate(minor)}
        return _standardised(major | extra, (*factors, *minor), items)

    def excess(part: float) -> float:
        model = with_part(part)
        return population_rmsea(major_part(model.dag), model) - rmsea

    most = 0.95 * (1.0 - float(loadings.max()) ** 2)  # of an item's variance; the rest stays its own
    if excess(most) < 0:
        raise UnmeasuredError(
            f"Minor factors cannot give an RMSEA of {rmsea}: with all the variance that is left it is "
            f"{excess(most) + rmsea:.3f}. Ask for less, or for smaller item_loadings."
        )
    return with_part(float(brentq(excess, 1e-9, most, xtol=1e-8)))


def major_part(dag: DAG) -> DAG:
    """The graph of :func:`minor_factors` without its minor factors.

    >>> major_part(minor_factors(n_factors=2, n_items=3, rng=0).dag).latents
    ('F1', 'F2')
    """
    minor = {name for name in dag.latents if name.startswith("M")}
    kept = [name for name in dag.names if name not in minor]
    edges = [(a, b) for a, b in dag.edges if a not in minor]
    return DAG.from_edges(edges, latents=[name for name in dag.latents if name not in minor], names=kept)


def population_rmsea(model: DAG, truth: Parameters) -> float:
    """RMSEA of a model fitted to a population covariance: the root of its maximum-likelihood discrepancy over df.

    >>> truth = hierarchy(n_traits=1, n_facets=3, n_items=3, rng=0)
    >>> round(population_rmsea(truth.dag, truth), 6)
    0.0
    """
    n = 10**6  # the discrepancy does not depend on it; it only makes a sample of a population
    fitted = fit(model, cov=pd.DataFrame(truth.cov(), truth.observed, truth.observed), n_samples=n)
    return math.sqrt(max(fitted.chi2, 0.0) / n / fitted.df) if fitted.df else 0.0


def _correlated(names: Sequence[str], correlation: float) -> dict[tuple[str, str], float]:
    """Paths that give any two of some standardised variables the same correlation; none if it is zero.

    Each variable has all before it as causes, with equal weights r / (1 + (k - 1) r) for k of them.
    """
    if correlation == 0:
        return {}
    return {(a, b): correlation / (1 + (k - 1) * correlation) for k, b in enumerate(names) for a in names[:k]}


def _standardised(weights: Mapping[tuple[str, str], float], latents: Sequence[str], items: Sequence[str]) -> Parameters:
    """The model with these paths in which every variable has variance 1; causes come before effects in the names."""
    names = (*latents, *items)
    dag = DAG.from_edges(list(weights), latents=list(latents), names=list(names))
    place = {name: i for i, name in enumerate(dag.names)}
    F, Omega = np.zeros((len(names),) * 2), np.zeros(len(names))
    for (a, b), weight in weights.items():
        F[place[a], place[b]] = weight
    cov = np.zeros_like(F)
    for done, name in enumerate(names):
        j, before = place[name], [place[x] for x in names[:done]]
        explained = cov[np.ix_(before, before)] @ F[before, j]
        cov[before, j] = cov[j, before] = explained
        Omega[j] = 1.0 - float(F[before, j] @ explained)
        cov[j, j] = 1.0
    if Omega.min() <= 0:
        raise UnmeasuredError("The loadings leave an item or a latent no variance of its own; choose smaller ones.")
    return Parameters(dag, F, np.diag(Omega))


def sample(
    model: DAG | Parameters,
    n_samples: int,
    *,
    rng: Rng,
    noise: Noise = "gaussian",
    nonlinearity: Nonlinearity = "linear",
    alpha: float = 0.8,
    parameters: Setting = "paper",
    with_latents: bool = False,
) -> pd.DataFrame:
    """Independent rows from a model, as a data frame of the observed variables.

    Parameters
    ----------
    model
        A graph, whose parameters are then drawn first from the same ``rng``, or a graph with its parameters.
    n_samples
        Number of rows.
    rng
        A generator or a seed.
    noise
        ``"gaussian"``, or ``"uniform"`` with mean zero and the same variances.
    nonlinearity
        ``"linear"``, or ``"leaky-relu"`` as in the paper: ``V_i = LR(sum_j F_ji V_j + e_i)`` with
        ``LR(x) = max(alpha x, x)``, for every variable, latents without parents included.
    alpha
        Slope of the leaky ReLU below zero.
    parameters
        How to draw parameters for a bare graph: :func:`paper_parameters` or :func:`realistic_parameters`.
    with_latents
        Return the latents too; columns are then ``dag.names``.

    Examples
    --------
    >>> dag = random_gnfm(group_sizes=(1, 1), n_observed=4, rng=0)
    >>> sample(dag, 3, rng=0).shape
    (3, 4)
    >>> sample(dag, 3, rng=0, with_latents=True).columns.tolist()
    ['L1', 'L2', 'X1', 'X2', 'X3', 'X4']
    """
    _at_least("n_samples", n_samples, 1)
    _one_of("noise", noise, get_args(Noise))
    _one_of("nonlinearity", nonlinearity, get_args(Nonlinearity))
    _one_of("parameters", parameters, get_args(Setting))
    if not 0 <= alpha <= 1:
        raise UnmeasuredError(f"alpha is the slope of the leaky ReLU below zero, from 0 to 1; got {alpha}.")
    rng = _generator(rng)
    if isinstance(model, DAG):
        model = paper_parameters(model, rng) if parameters == "paper" else realistic_parameters(model, rng)
    e = _standard_noise(noise, (n_samples, len(model.F)), rng) @ np.linalg.cholesky(model.Omega).T
    V = _propagate(model, e, alpha if nonlinearity == "leaky-relu" else 1.0)
    frame = pd.DataFrame(V, columns=list(model.names))
    return frame if with_latents else frame[list(model.observed)]


def _standard_noise(noise: Noise, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Independent draws with mean 0 and variance 1."""
    if noise == "gaussian":
        return rng.standard_normal(shape)
    return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), size=shape)


def _propagate(model: Parameters, e: FloatArray, alpha: float) -> FloatArray:
    """Values (N, d) of all variables from their noise, cause before effect; ``alpha = 1`` is linear."""
    V = np.zeros_like(e)
    for j in model.dag.topological_order:
        V[:, j] = leaky_relu(V @ model.F[:, j] + e[:, j], alpha)
    return V


def leaky_relu(x: FloatArray, alpha: float = 0.8) -> FloatArray:
    """``max(alpha x, x)``, elementwise.

    >>> leaky_relu(np.array([-2.0, 0.0, 3.0]), alpha=0.5).tolist()
    [-1.0, 0.0, 3.0]
    """
    return np.maximum(alpha * x, x)


def cut(frame: pd.DataFrame, categories: Categories) -> pd.DataFrame:
    """Rows as a questionnaire would have them: every variable cut into five categories, 1 to 5.

    The thresholds are the quantiles of a Gaussian with the variable's own mean and standard deviation at which the
    categories have the frequencies of :data:`FREQUENCIES`; they are the same for every variable. ``"skewed"`` piles
    up at the low end, also of variables that correlate negatively.

    Examples
    --------
    >>> rows = pd.DataFrame({"mood": [-1.5, -0.5, 0.1, 0.4, 1.5]})
    >>> cut(rows, "even")["mood"].tolist(), cut(rows, "skewed")["mood"].tolist()
    ([1, 2, 3, 4, 5], [1, 1, 2, 2, 4])
    """
    _one_of("categories", categories, get_args(Categories))
    thresholds = ndtri(np.cumsum(FREQUENCIES[categories])[:-1])
    z = ((frame - frame.mean()) / frame.std(ddof=0)).to_numpy()
    return pd.DataFrame(np.searchsorted(thresholds, z) + 1, columns=frame.columns, index=frame.index)


def punch_holes(frame: pd.DataFrame, rate: float, *, rng: Rng) -> pd.DataFrame:
    """Rows with values missing at random, in the sense of Rubin (1976).

    The first variable is always observed, and whether others are missing depends on it alone: where its value has
    rank r among N, each other value of the row is missing, by a draw of its own, with probability
    ``2 rate r / (N + 1)``. So ``rate`` is the part of the other variables' values that is missing on average, rows low
    in the first variable are nearly whole and those high in it lose twice as much.

    Parameters
    ----------
    rate
        From 0 to 0.5.
    rng
        A generator or a seed.

    Examples
    --------
    >>> rows = sample(random_gnfm(group_sizes=(1, 1), n_observed=5, rng=0), 4000, rng=0)
    >>> punch_holes(rows, 0.25, rng=0).isna().mean().round(2).tolist()
    [0.0, 0.25, 0.25, 0.25, 0.25]
    """
    if not 0 <= rate <= 0.5:
        raise UnmeasuredError(f"rate is the part of the values to lose, from 0 to 0.5; got {rate}.")
    chance = 2 * rate * frame.iloc[:, 0].rank() / (len(frame) + 1)
    lost = _generator(rng).random(frame.shape) < chance.to_numpy()[:, None]
    lost[:, 0] = False
    return frame.mask(lost)


# --------------------------------------------------------------------------------------------------- suites


@cache
def paper_suite() -> tuple[DAG, ...]:
    """The 20 fixed structures behind our versions of the paper's tables.

    The paper's own 20 graphs are not published. Ours have 20 variables on average, 5 of them latent, in
    groups of 1 to 3, mostly 1. They were drawn once by :func:`draw_paper_suite` and are read from a file.

    >>> suite = paper_suite()
    >>> len(suite), sum(len(dag.latents) for dag in suite) / len(suite)
    (20, 5.0)
    """
    return _read_suite("paper_suite")


@cache
def realistic_suite() -> tuple[DAG, ...]:
    """The 20 fixed structures of the realistic suite, for :func:`realistic_parameters`.

    20 variables on average, 5 of them latent; groups of one, but for one graph in five with one group of two;
    0 to 2 common children. Drawn once by :func:`draw_realistic_suite` and read from a file.

    >>> sum(max(len(group) for group in dag.latent_groups) == 2 for dag in realistic_suite())
    4
    """
    return _read_suite("realistic_suite")


def draw_paper_suite(seed: int = PAPER_SEED) -> tuple[DAG, ...]:
    """Draw the structures that :func:`paper_suite` stores.

    Structure ``i`` has its own generator, seeded with ``(seed, i)``. It has 4, 5, 5 or 6 latents in turn,
    three observed variables for each latent, group sizes 1, 2, 3 with probabilities .7, .2, .1 until the
    latents are used up, 0 to 2 common children, and an edge between two groups with probability .5.
    """
    return tuple(_paper_structure(i, np.random.default_rng((seed, i))) for i in range(SUITE_SIZE))


def draw_realistic_suite(seed: int = REALISTIC_SEED) -> tuple[DAG, ...]:
    """Draw the structures that :func:`realistic_suite` stores.

    As :func:`draw_paper_suite`, but every group is a single latent, except that each fifth structure has one
    group of two.
    """
    return tuple(_realistic_structure(i, np.random.default_rng((seed, i))) for i in range(SUITE_SIZE))


def suite_text(name: str, seed: int, structures: Sequence[DAG]) -> str:
    """The file of a suite: JSON with its name, its seed and one structure on each line."""
    rows = [
        json.dumps({"latents": dag.latents, "observed": dag.observed, "edges": list(dag.edges)}) for dag in structures
    ]
    head = f'"name": {json.dumps(name)},\n"drawn_by": "unmeasured.simulate.draw_{name}",\n"seed": {seed}'
    return "{\n" + head + ',\n"structures": [\n' + ",\n".join(rows) + "\n]\n}\n"


def _paper_structure(index: int, rng: np.random.Generator) -> DAG:
    n_latents = (4, 5, 5, 6)[index % 4]
    sizes: list[int] = []
    while sum(sizes) < n_latents:
        size = int(rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))
        sizes.append(min(size, n_latents - sum(sizes)))
    return _suite_structure(sizes, rng)


def _realistic_structure(index: int, rng: np.random.Generator) -> DAG:
    n_latents = (4, 5, 5, 6)[index % 4]
    sizes = [1] * n_latents if index % 5 else [2] + [1] * (n_latents - 2)
    return _suite_structure(sizes, rng)


def _suite_structure(sizes: Sequence[int], rng: np.random.Generator) -> DAG:
    return random_gnfm(group_sizes=sizes, n_observed=3 * sum(sizes), n_common_children=int(rng.integers(3)), rng=rng)


def _read_suite(name: str) -> tuple[DAG, ...]:
    text = files("unmeasured.data").joinpath("bundled", f"{name}.json").read_text(encoding="utf-8")
    structures: list[dict[str, Any]] = json.loads(text)["structures"]
    return tuple(
        DAG.from_edges(
            [(cause, effect) for cause, effect in row["edges"]],
            latents=row["latents"],
            names=row["latents"] + row["observed"],
        )
        for row in structures
    )


# ---------------------------------------------------------------------------------------------------- checks


def _indices(dag: DAG, names: Iterable[str]) -> list[int]:
    position = {name: k for k, name in enumerate(dag.names)}
    return [position[name] for name in names]


def _at_least(option: str, value: int, least: int) -> None:
    if not isinstance(value, int | np.integer):
        raise UnmeasuredError(f"{option} must be a whole number; got {value!r}.")
    if value < least:
        raise UnmeasuredError(f"{option} must be at least {least}; got {value}.")


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UnmeasuredError(f"{option} is one of {listing(known)}; got {value!r}{nearest(value, known) or '.'}")
