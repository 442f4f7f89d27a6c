"""The compiled core piece by piece: exact Hessian, starting values, batches, and solving in parts."""

from __future__ import annotations

import numpy as np
import pytest

import unmeasured as um
from unmeasured.sem import kernels
from unmeasured.sem.kernels import (
    assign,
    compiled,
    exact_hessian,
    fill_moves,
    fill_tables,
    moving_rows,
    objective,
    propagate,
)
from unmeasured.sem.parameters import pattern_of
from unmeasured.sem.solve import Problem, solve


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


def test_starts_from_the_data_are_near_the_optimum():
    """Closer than no effects at all, and every variance above its bound."""
    for seed in range(3):
        problem = problem_of(seed)
        (at_start,) = solve([problem], [problem.unknown], max_steps=0)
        (optimum,) = solve([problem], [problem.unknown])
        nothing = np.where(problem.pattern.is_variance, 1.0, 0.0)
        independent = problem.derivatives(nothing)[0] - problem.sample.log_det_corr - len(problem.sample.names)
        assert optimum.discrepancy <= at_start.discrepancy < 0.5 * independent
        assert (at_start.x >= at_start.lower).all()


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
