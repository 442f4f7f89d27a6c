"""The compiled core piece by piece: exact Hessian, starting values, batches, and solving in parts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import unmeasured as um
from unmeasured.kernels import likelihood as kernels
from unmeasured.kernels.likelihood import (
    assign,
    compiled,
    exact_hessian,
    fill_moves,
    fill_tables,
    moving_rows,
    objective,
    propagate,
)
from unmeasured.kernels.start import bartlett_weights, leading_factors, regressions, unattenuated
from unmeasured.models.parameters import pattern_of
from unmeasured.models.solve import Problem, Rescaled, solve


@compiled
def hessian(S, d, observed, source, target, slot, fixed, first, second, slot2, fixed2, x):
    """The exact Hessian at x, from the pieces that Fisher scoring puts together."""
    row, u, v, w = moving_rows(x.shape[0], d, observed, source, target, slot, first, second, slot2)
    n, p, r = S.shape[0], x.shape[0], row.shape[0]
    cause, n_causes = np.empty(d, dtype=np.int64), 0
    for k in range(n, r):
        if row[k] >= d:
            cause[n_causes] = row[k] - d
            n_causes += 1
    T, C = np.empty((d, n)), np.empty((d, n))
    Sigma, R, P, PS, Z = np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((r - n, n))
    K, Q, D, M, N = np.empty((r, r)), np.empty((r, r)), np.empty((r, r)), np.zeros((r, r)), np.empty((r, r))
    effect, covariance, A = np.empty(source.shape[0]), np.empty(first.shape[0]), np.empty((p, p))
    E, V = np.empty((d, n_causes)), np.empty((d, n_causes))
    assign(x, slot, fixed, effect)
    assign(x, slot2, fixed2, covariance)
    propagate(observed, source, target, effect, first, second, covariance, T, C)
    objective(S, observed, C, Sigma, R, P)
    fill_tables(S, P, T, C, row, Z, PS, K, Q, D)
    fill_moves(row, cause[:n_causes], source, target, effect, first, second, covariance, E, V, M)
    exact_hessian(u, v, w, K, Q, D, M, N, A)
    return A


# Parts of the compiled core have no way in from Python but through compiled functions.
@compiled
def weights_of(loading, noise, use):
    return bartlett_weights(loading, noise, use)


@compiled
def regressed(Phi, source, target):
    return regressions(Phi, source, target)


@compiled
def pulled_in(Phi, column):
    return unattenuated(Phi, column)


@compiled
def factors_of(A, k):
    return leading_factors(A, k)


def problem_of(seed, n_samples=300):
    truth = um.simulate.random_gnfm(group_sizes=[1, 2, 1], n_observed=11, n_common_children=1, rng=seed)
    sample = um.as_sample(um.simulate.sample(truth, n_samples, parameters="realistic", rng=seed + 1))
    return Problem.of(pattern_of(truth), sample)


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_hessian_is_that_of_finite_differences(seed):
    problem = problem_of(seed)
    pattern, rng = problem.pattern, np.random.default_rng(seed)
    x = problem.start * rng.uniform(0.8, 1.2, pattern.n_free)  # anywhere but at the optimum, where Fisher's would do
    fixed, fixed2 = pattern.scaled(problem.scale)
    exact = hessian(
        problem.sample.corr, pattern.n_nodes, pattern.observed, pattern.source, pattern.target, pattern.slot, fixed,
        pattern.first, pattern.second, pattern.slot2, fixed2, x,
    )  # fmt: skip
    step = 1e-5
    columns = [
        (problem.derivatives(x + step * e)[1] - problem.derivatives(x - step * e)[1]) / (2 * step)
        for e in np.eye(pattern.n_free)
    ]
    lower = np.tril_indices(pattern.n_free)
    np.testing.assert_allclose(exact[lower], np.array(columns)[lower], atol=2e-5 * np.abs(columns).max())


def test_one_step_from_starts_made_of_the_data_is_near_the_optimum():
    """And every variance begins above its bound."""
    for seed in range(3):
        problem = problem_of(seed)
        saturated = problem.sample.log_det_corr + len(problem.sample.names)
        nothing = np.where(problem.pattern.is_variance, 1.0, 0.0)
        independent = problem.derivatives(nothing)[0] - saturated
        (found,) = solve([problem], [problem.unknown])
        assert found.history[0] == pytest.approx(problem.derivatives(problem.start)[0])
        assert found.discrepancy < found.history[1] - saturated < found.discrepancy + 0.1 * independent
        assert (problem.start >= found.lower).all()


def test_a_batch_gives_what_single_fits_give():
    problems = [problem_of(seed) for seed in range(2)]
    sample = problems[0].sample
    patterns = [problems[0].pattern, pattern_of(um.simulate.random_gnfm(group_sizes=[1], n_observed=11, rng=5))]
    batch = [Problem.of(pattern, sample) for pattern in patterns] * 2
    together = solve(batch, [problem.unknown for problem in batch], n_threads=2)
    for problem, solution in zip(batch, together, strict=True):
        (alone,) = solve([problem], [problem.unknown])
        np.testing.assert_array_equal(solution.x, alone.x)
        assert (solution.end, solution.steps) == (alone.end, alone.steps)


def test_going_on_with_a_solution_ends_where_one_go_ends():
    problem = problem_of(1, n_samples=60)
    (whole,) = solve([problem], [problem.unknown], gain=1e-9, max_steps=40)
    (part,) = solve([problem], [problem.unknown], gain=1e-9, max_steps=4)
    assert part.end == kernels.STEP_LIMIT
    (rest,) = solve([problem], [part], gain=1e-9, max_steps=36)
    np.testing.assert_array_equal(rest.x, whole.x)
    assert part.steps + rest.steps == whole.steps


@pytest.mark.parametrize("seed", range(3))
def test_no_other_optimiser_goes_on_from_a_solution(seed):
    problem = problem_of(seed)
    (found,) = solve([problem], [problem.unknown])
    assert found.converged
    objective, gradient, _ = problem.derivatives(found.x)
    free = ~found.at_bound
    assert np.abs(gradient[free]).max() < 1e-4
    bounds = [(low if np.isfinite(low) else None, None) for low in found.lower]
    further = minimize(
        lambda x: problem.derivatives(x)[:2], found.x, jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": 200, "ftol": 1e-14},
    )  # fmt: skip
    assert further.fun > objective - 1e-7


def test_a_check_that_ends_the_work_ends_a_batch():
    class Over(um.UnmeasuredError):
        pass

    def over():
        raise Over

    problem = problem_of(0)
    with pytest.raises(Over):
        solve([problem], [problem.unknown], check=over)


def test_a_latent_scaled_by_a_loading_comes_back_to_unit_noise():
    edges = [("A", "B"), *[("A", f"a{i}") for i in range(3)], *[("B", f"b{i}") for i in range(3)]]
    truth = um.DAG.from_edges(edges, latents=["A", "B"])
    sample = um.as_sample(um.simulate.sample(truth, 300, parameters="realistic", rng=1))
    problem = Problem.of(pattern_of(truth), sample)
    (found,) = solve([problem], [problem.unknown])
    other = Rescaled.of(problem, found)
    assert len(other.swapped) == 1  # B alone is caused by another
    # The same covariance, in other units; and back.
    assert other.problem.derivatives(other.x)[0] == pytest.approx(problem.derivatives(found.x)[0], abs=1e-10)
    np.testing.assert_allclose(other.back(other.x), found.x, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_parts_of_starting_values_are_those_of_linear_algebra(seed):
    rng = np.random.default_rng(seed)
    # Far apart, so that thirty steps of power iteration come close.
    basis, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    A = basis @ np.diag([9.0, 3.0, 1.0, 0.3, 0.1]) @ basis.T
    values, vectors = np.linalg.eigh(A)
    loadings = factors_of(A.copy(), 2)
    expected = (vectors * np.sqrt(values))[:, ::-1][:, :2]
    np.testing.assert_allclose(loadings @ loadings.T, expected @ expected.T, atol=1e-2)

    noise, use = rng.uniform(0.3, 1.0, 5), np.arange(5)
    weights = weights_of(loadings, noise, use)
    P = np.diag(1.0 / noise)
    by_hand = np.linalg.solve(loadings.T @ P @ loadings, loadings.T @ P)
    np.testing.assert_allclose(weights, by_hand, atol=1e-5)
    np.testing.assert_allclose(weights @ loadings, np.eye(2), atol=1e-5)  # unbiased

    B = rng.normal(size=(4, 8))
    Phi = B @ B.T / 8
    F, own = regressed(Phi, np.array([0, 1, 2]), np.array([3, 3, 1]))
    slopes = np.linalg.solve(Phi[:2, :2], Phi[:2, 3])
    np.testing.assert_allclose(F[:2, 3], slopes, rtol=1e-4, atol=1e-5)
    assert own[3] == pytest.approx(Phi[3, 3] - slopes @ Phi[:2, 3], rel=1e-3)
    assert own[0] == Phi[0, 0]  # nothing causes it


def test_indefinite_correlations_of_latents_are_pulled_in():
    Phi = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    assert np.linalg.eigvalsh(Phi).min() < 0
    better = pulled_in(Phi.copy(), np.full(3, -1))
    assert np.linalg.eigvalsh(better).min() > 0
    np.testing.assert_allclose(np.diag(better), 1.0)
    assert (np.sign(better) == np.sign(Phi)).all()
