"""Rank likelihood: against canonical correlations, and against the likelihood of a model with that rank."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from unmeasured.data.sample import Sample
from unmeasured.models.fit import fit_many
from unmeasured.models.parameters import Model, Parameter
from unmeasured.models.rank import rank_codimension, rank_shortfall, rank_shortfalls


def random_cov(rng, n):
    A = rng.normal(size=(n, 3 * n))
    return A @ A.T / (3 * n)


def rank_model(n, size, k):
    """K latents between A and the rest; everything inside A and inside the rest is free."""
    names = [f"x{i}" for i in range(n)]
    latents = [f"f{i}" for i in range(k)]
    rows = [Parameter("=~", f, x) for f in latents for x in names]
    rows += [Parameter("~~", f, f, 1.0) for f in latents]
    for block in (names[:size], names[size:]):
        rows += [Parameter("~~", a, b) for a, b in itertools.combinations_with_replacement(block, 2)]
    return Model((*latents, *names), tuple(latents), tuple(rows))


@pytest.mark.parametrize("seed", range(10))
def test_equals_canonical_correlations(seed):
    rng = np.random.default_rng(seed)
    n, size = 8, int(rng.integers(1, 5))
    S = random_cov(rng, n)
    A, B = S[:size, :size], S[size:, size:]
    whitened = np.linalg.solve(np.linalg.cholesky(A), S[:size, size:]) @ np.linalg.inv(np.linalg.cholesky(B)).T
    rho = np.linalg.svd(whitened, compute_uv=False)
    for k in range(size):
        expected = -0.5 * np.log1p(-(rho[k:] ** 2)).sum()
        assert rank_shortfall(S, list(range(size)), k) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("n", "size", "k"), [(5, 2, 1), (6, 3, 1), (6, 3, 2), (7, 3, 2)])
def test_equals_the_likelihood_of_the_model_with_that_rank(n, size, k):
    S = random_cov(np.random.default_rng(n + size + k), n)
    sample = Sample.from_cov(S, np.inf, [f"x{i}" for i in range(n)])
    (fit,) = fit_many([rank_model(n, size, k)], sample)
    assert 0.5 * fit.solution.discrepancy == pytest.approx(rank_shortfall(S, list(range(size)), k), abs=1e-8)
    assert fit.df == rank_codimension(n, size, k)


def test_a_table_of_subsets_is_a_loop_over_them():
    S = random_cov(np.random.default_rng(1), 9)
    subsets = np.array(list(itertools.combinations(range(9), 3)))
    one_by_one = [rank_shortfall(S, subset, 1) for subset in subsets]
    np.testing.assert_allclose(rank_shortfalls(S, subsets, 1), one_by_one, atol=1e-12)


def test_no_rank_is_lost_where_no_matrix_has_it():
    S = random_cov(np.random.default_rng(2), 5)
    assert rank_shortfall(S, [0, 1], 2) == 0.0
    assert rank_shortfall(S, [0, 1, 2, 3], 1) == 0.0
    assert rank_codimension(5, 4, 1) == 0
