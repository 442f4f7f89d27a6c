"""Generic dimension: exact arithmetic against singular values of a numeric Jacobian, and against the formula."""

from __future__ import annotations

import numpy as np
import pytest

import unmeasured as um
from unmeasured.models.parameters import model_of
from unmeasured.search.model import FactorModel
from unmeasured.search.score import BicScore


def jacobian_rank(model, rng):
    """Rank of dSigma/dparameters by finite differences of the plain formula; nothing of the engine is used."""
    names = list(model.names)
    observed = [names.index(x) for x in model.observed]
    free = [p for p in model.parameters if p.fixed is None]
    point = rng.uniform(0.5, 1.5, len(free)) * rng.choice([-1, 1], len(free))

    def moments(values):
        F, Omega = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)))
        given = iter(values)
        for p in model.parameters:
            value = next(given) if p.fixed is None else p.fixed
            i, j = names.index(p.source), names.index(p.target)
            if p.op == "~~":
                Omega[i, j] = Omega[j, i] = value
            else:
                F[i, j] = value
        E = (
            np.linalg.inv(np.eye(len(names), dtype=complex) - F)
            if F.dtype == complex
            else np.linalg.inv(np.eye(len(names)) - F)
        )
        Sigma = (E.T @ Omega @ E)[np.ix_(observed, observed)]
        return Sigma[np.tril_indices(len(observed))]

    step = 1e-5
    columns = [(moments(point + step * unit) - moments(point - step * unit)) / (2 * step) for unit in np.eye(len(free))]
    J = np.array(columns)
    J /= np.maximum(np.linalg.norm(J, axis=1, keepdims=True), 1e-12)
    return int((np.linalg.svd(J, compute_uv=False) > 1e-6).sum())


def random_graph(rng):
    """Anything acyclic: factor models and wild graphs, dense and sparse, latents anywhere."""
    if rng.random() < 0.5:
        sizes = rng.choice([1, 1, 2, 3], int(rng.integers(1, 4))).tolist()
        n = 2 * sum(sizes) + int(rng.integers(0, 3))
        common = min(int(rng.integers(0, 2)), n - 2 * sum(sizes)) if len(sizes) > 1 else 0
        return um.simulate.random_gnfm(group_sizes=sizes, n_observed=n, n_common_children=common, rng=rng)
    d = int(rng.integers(3, 9))
    names = [f"v{i}" for i in range(d)]
    latents = [name for name in names[: d - 2] if rng.random() < 0.4]
    density = rng.uniform(0.2, 0.9)
    edges = [(names[i], names[j]) for i in range(d) for j in range(i + 1, d) if rng.random() < density]
    return um.DAG.from_edges(edges, latents=latents, names=names)


def test_equals_the_rank_of_the_jacobian_on_500_random_graphs():
    rng = np.random.default_rng(2026)
    for _ in range(500):
        dag = random_graph(rng)
        # A numeric rank is a guess near its threshold; of three points the largest is the generic one.
        numeric = max(jacobian_rank(model_of(dag), rng) for _ in range(3))
        assert um.dimension(dag) == numeric, dag.edges


@pytest.mark.parametrize("seed", range(30))
def test_formula_of_the_factor_model(seed):
    """N + edges - k(k-1)/2 for every group, where groups have pure children to spare."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 3], int(rng.integers(2, 4))).tolist()
    n = 3 * sum(sizes) + 4
    dag = um.simulate.random_gnfm(group_sizes=sizes, n_observed=n, rng=rng, shape="dense")
    expected = n + len(dag.edges) - sum(k * (k - 1) // 2 for k in sizes)
    value = um.dimension(dag)
    assert value == min(expected, n * (n + 1) // 2)
    assert value.n_rotations == sum(k * (k - 1) // 2 for k in sizes)


# Sizes of the groups, and how many variables each has beyond the 2k it needs.
@pytest.mark.parametrize("spare", [0, 1, 2])
@pytest.mark.parametrize("sizes", [(1,), (2,), (3,), (1, 1), (2, 1), (2, 2)])
def test_dimensions_of_a_search_are_ranks_of_the_jacobian(sizes, spare):
    """Parameters are counted where that is enough: one group with 2k variables alone has more than its dimension."""
    parents = sum(((1 << g,) * (2 * k) for g, k in enumerate(sizes)), ()) + (1,) * spare
    names = tuple(f"x{j}" for j in range(len(parents)))
    model, rng = FactorModel(names, sizes, parents), np.random.default_rng(7)
    score = BicScore(um.as_sample(cov=np.eye(len(names)), n_samples=100, names=names))
    assert score.dimension(model) == max(jacobian_rank(model_of(model.member), rng) for _ in range(3))


def test_it_explains_itself():
    dag = um.DAG.from_edges([(f, f"x{i}") for f in ("f", "g") for i in range(5)], latents=["f", "g"])
    assert um.dimension(dag).explain() == (
        "dimension 14 of at most 15 moments: 15 free parameters, less 1 rotations inside latent groups"
    )
