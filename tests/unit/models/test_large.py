"""Fits of thousands of parameters: their likelihood, slopes and optimum against differences, the kernels and numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unmeasured as um
from unmeasured.errors import Stopped
from unmeasured.kernels import likelihood as kernels
from unmeasured.models import large, products
from unmeasured.models.large import solve_large
from unmeasured.models.parameters import Pattern, pattern_of
from unmeasured.models.products import Likelihood, cholesky_in_place, derivatives
from unmeasured.models.solve import Problem

FACTORS = "f =~ a + b + c + d; g =~ e + h + i + j + z; k =~ a + m + n + o; g ~ f; k ~ f + g"
OTHERS = "f =~ a + b + c + d; g =~ e + h + i + j; g ~ f + z; a ~ z; b ~~ e; c ~~ d; i ~ h; m ~~ n; o ~~ z"


def problem_of(text: str, scale: str = "variance") -> tuple[Pattern, um.Sample, np.ndarray]:
    """The pattern of a model on variables of unit variance, its sample, and a point near the optimum."""
    truth = um.simulate.random_gnfm(n_latents=3, n_observed=12, rng=1)
    rows = um.simulate.sample(truth, 400, rng=2).set_axis(list("abcdehijzmno"), axis=1)
    fit = um.fit(text, rows, scale_latents=scale)  # type: ignore[arg-type]
    pattern = fit.problem.pattern
    fixed, fixed2 = pattern.scaled(fit.problem.scale)
    rng = np.random.default_rng(0)
    x = fit.solution.x * rng.uniform(0.9, 1.1, pattern.n_free)
    return replace(pattern, fixed=fixed, fixed2=fixed2), fit.sample, np.where(pattern.is_variance, np.abs(x) + 0.1, x)


@pytest.mark.parametrize("scale", ["variance", "first-indicator"])
@pytest.mark.parametrize("text", [FACTORS, OTHERS])
@pytest.mark.parametrize("is_improper", [False, True])
def test_gradients_are_those_of_differences(text: str, scale: str, is_improper: bool) -> None:
    """With free variances of latents, residual pairs, observed causes, and residual variances of next to nothing."""
    pattern, sample, x = problem_of(text, scale)
    if is_improper:
        x[np.flatnonzero(pattern.is_variance)[:2]] = 1e-3
    likelihood = Likelihood(pattern, sample.corr)
    value, gradient = likelihood(x)
    dense = derivatives(pattern, sample.corr, x)
    assert value == pytest.approx(dense[0], rel=1e-10)
    for k in range(len(x)):
        h = 1e-6 * (x[k] if pattern.is_variance[k] else 1.0)
        up, down = (likelihood(x + sign * h * np.eye(len(x))[k])[0] for sign in (1.0, -1.0))
        assert gradient[k] == pytest.approx((up - down) / (2.0 * h), rel=1e-4, abs=1e-5 * np.abs(gradient).max())
    np.testing.assert_allclose(gradient, dense[1], rtol=1e-7, atol=1e-9 * np.abs(dense[1]).max())


@pytest.mark.parametrize("text", [FACTORS, OTHERS])
def test_metrics_are_parts_of_the_expected_hessian(text: str) -> None:
    pattern, sample, x = problem_of(text)
    likelihood, H = Likelihood(pattern, sample.corr), derivatives(pattern, sample.corr, x)[2]
    unit = np.sqrt(np.diag(H))
    H = H / np.outer(unit, unit) + products._DAMPING * np.eye(len(x))
    free = np.ones(len(x), dtype=bool)
    free[np.flatnonzero(pattern.is_variance)[0]] = False
    gradient = np.random.default_rng(1).normal(size=len(x))

    def solved(H: np.ndarray) -> np.ndarray:
        step = np.zeros(len(x))
        step[free] = np.linalg.solve(H[np.ix_(free, free)], gradient[free] / unit[free]) / unit[free]
        return step

    np.testing.assert_allclose(likelihood.whole_metric(x, free)(gradient), solved(H), rtol=1e-9)
    # By blocks: effects on a variable, with its residual variance. The units of covariances are not exact.
    is_pair = ~pattern.is_path & ~pattern.is_variance
    block = np.where(is_pair, -1 - np.arange(len(x)), pattern.ends[:, 1])
    expected = solved(np.where(block[:, None] == block[None, :], H, 0.0))
    found = likelihood.metric(x, free)(gradient)
    np.testing.assert_allclose(found[~is_pair], expected[~is_pair], rtol=1e-9)
    assert (found[is_pair] * expected[is_pair] > 0.0).all()


def test_factors_by_blocks_of_columns_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(1201, 1300))
    A = A @ A.T
    ours = A.copy()
    cholesky_in_place(ours)
    np.testing.assert_allclose(np.tril(ours), np.linalg.cholesky(A), atol=1e-8)
    with pytest.raises(Stopped):
        cholesky_in_place(A, _Ending(1))


class _Ending:
    """A check that ends the work at its n-th call."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Stopped


@pytest.fixture(scope="module")
def questionnaire() -> tuple[um.DAG, um.Sample]:
    """60 variables of groups of one and two latents, with few more rows: the expected Hessian is not the observed."""
    rng = np.random.default_rng(5)
    dag = um.simulate.random_gnfm(group_sizes=(1, 2, 1, 2, 1, 1, 2), n_observed=60, n_common_children=3, rng=rng)
    return dag, um.as_sample(um.simulate.sample(um.simulate.realistic_parameters(dag, rng), 150, rng=rng))


@pytest.mark.parametrize("easy", [0, 1000])  # the whole Hessian at once, or never
def test_the_optimum_is_that_of_the_kernels(
    questionnaire: tuple[um.DAG, um.Sample], easy: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dag, sample = questionnaire
    fit = um.fit(dag, sample)
    monkeypatch.setattr(large, "_EASY", easy)
    found = solve_large(fit.problem, None)
    assert found.end == kernels.CONVERGED
    assert found.discrepancy == pytest.approx(fit.solution.discrepancy, rel=1e-9)
    assert (np.diff(found.history) < 0.0).all()


@pytest.mark.parametrize("easy", [0, 1000])
def test_a_fit_with_parameters_without_effect_ends(easy: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A latent that nothing shows: its path has no slope, and no unit."""
    edges = [*(("f", x) for x in "abcd"), *(("g", x) for x in "uvwx"), ("f", "g")]
    shown = um.DAG.from_edges(edges, latents=["f", "g"])
    dag = um.DAG.from_edges([*edges, ("g", "nobody")], latents=["f", "g", "nobody"])
    rng = np.random.default_rng(3)
    sample = um.as_sample(um.simulate.sample(um.simulate.realistic_parameters(shown, rng), 500, rng=rng))
    problem = Problem.of(pattern_of(dag), sample)
    monkeypatch.setattr(large, "_EASY", easy)
    found = solve_large(problem, np.where(problem.pattern.is_variance, 0.5, 0.4))
    assert found.converged
    assert found.discrepancy == pytest.approx(um.fit(shown, sample).solution.discrepancy, abs=1e-9)


@pytest.mark.parametrize("n", [1, 5, 60])
def test_the_clock_ends_a_fit_within_a_step(questionnaire: tuple[um.DAG, um.Sample], n: int) -> None:
    """Also in the middle of a Hessian, which takes several looks."""
    dag, sample = questionnaire
    problem = um.fit(dag, sample).problem
    check = _Ending(n)
    found = solve_large(problem, problem.start, 0, check)
    assert check.left == -1  # nothing was begun after it
    assert found.end == kernels.STEP_LIMIT
    assert found.steps <= n
    assert found.history[-1] <= found.history[0]


def test_a_fit_in_a_hurry_has_no_standard_errors_and_says_so(questionnaire: tuple[um.DAG, um.Sample]) -> None:
    dag, sample = questionnaire
    fit = replace(um.fit(dag, sample), is_hurried=True)
    table = fit.parameters
    assert table["se"][table["est"] != 1.0].isna().all()
    assert any("no time" in note for note in fit.notes)
    assert fit.df == um.fit(dag, sample).df
