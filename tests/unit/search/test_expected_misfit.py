"""How large chi-square of a true model is, as replicates of the rows show, and what searches make of it."""

import numpy as np
import pytest

import unmeasured as um
from answers import questionnaire
from unmeasured.models.indices import rmsea
from unmeasured.search.clock import Clock
from unmeasured.search.close_fit.expected_misfit import MisfitTest, browne, likelihood_ratio, row_errors


def test_of_rows_of_a_t_distribution_the_factor_is_that_of_theory():
    """An elliptical distribution of kurtosis k makes chi-square 1 + k times as large; of t with v degrees of freedom
    that is (v - 2) / (v - 4) (Browne 1984).
    """
    rng = np.random.default_rng(3)
    R = 0.4 + 0.6 * np.eye(12)
    found = []
    for _ in range(4):
        z = rng.multivariate_normal(np.zeros(12), R, 4000) / np.sqrt(rng.chisquare(10, size=(4000, 1)) / 10)
        found.append(row_errors(um.as_sample(z, cor="pearson")).factors(R))
    assert np.mean(found, axis=0) == pytest.approx([8 / 6, 8 / 6], abs=0.08)


def test_replicates_of_few_rows_do_not_make_the_truth_look_wrong():
    """By yes or no, 16 items and 200 rows: Browne's chi-square of a true model is .99 of its degrees of freedom (mean
    of twelve samples, standard error .04). In replicates of most samples it is less, .90 on average.
    """
    R, rng = np.full((16, 16), 0.49) + 0.51 * np.eye(16), np.random.default_rng(0)
    samples = [(rng.multivariate_normal(np.zeros(16), R, 200) > 0.5).astype(int) for _ in range(3)]
    factors = [row_errors(um.as_sample(rows, cor="auto")).factors(R)[1] for rows in samples]
    assert min(factors) > 0.95


def test_chi_squares_of_residuals_are_those_of_fits():
    data = um.datasets.load("holzinger_swineford")
    sample = um.as_sample(cov=data.frame(), n_samples=data.n_samples)
    fit = um.fit("v =~ x1 + x2 + x3\nt =~ x4 + x5 + x6\ns =~ x7 + x8 + x9", sample)
    unit = np.sqrt(np.diag(fit.implied_cov))
    implied = fit.implied_cov / np.outer(unit, unit)
    assert likelihood_ratio(sample.corr - implied, implied, sample.n) == pytest.approx(fit.chi2, rel=1e-3)
    # Browne's differs where the model does not hold, but not by much.
    assert browne(sample.corr - implied, implied, sample.n) == pytest.approx(fit.chi2, rel=0.25)


@pytest.mark.parametrize(
    ("n_latents", "n_rows", "cuts"), [(10, 2000, (-1.3, -0.4, 0.4, 1.3)), (10, 2000, (0.5,)), (10, 500, (0.5,))]
)
def test_true_models_of_ordinal_items_are_not_rejected(n_latents, n_rows, cuts):
    """Answers in five categories, and by yes or no: the default search gives the true latents."""
    dag, rows = questionnaire(n_latents, n_rows, cuts, 11)
    search = um.LGES().fit(rows)
    assert search.tolerance_ == 0.0
    assert len(search.graph_.latents) == n_latents
    assert um.metrics.compare(dag, search.graph_).f1 > 0.95


def test_heavy_tails_do_not_reject_a_true_model():
    rng = np.random.default_rng(5)
    dag = um.simulate.random_gnfm(group_sizes=(1,) * 10, n_observed=50, density=0.2, rng=rng)
    rows = um.simulate.sample(dag, 2000, parameters="realistic", rng=rng)
    search = um.LGES().fit(rows.mul(np.sqrt(6 / rng.chisquare(6, size=2000)), axis=0))
    assert search.sem_.pvalue < 1e-3
    assert search.tolerance_ == 0.0
    assert len(search.graph_.latents) == 10


@pytest.mark.parametrize("cuts", [(-1.3, -0.4, 0.4, 1.3), (0.5,)])
def test_misfit_of_ordinal_items_is_still_seen(cuts):
    """Fifty minor factors, population RMSEA .05."""
    model = um.simulate.minor_factors(n_factors=5, n_items=5, rmsea=0.05, rng=3)
    rows = um.simulate.sample(model, 2000, rng=4)
    z = (rows - rows.mean()) / rows.std()
    assert um.LGES().fit(z.apply(lambda column: np.digitize(column, cuts))).tolerance_ > 0.0


def test_a_matrix_is_judged_without_rows():
    """As chi-square has it: nothing tells how large that of a true model is."""
    _, rows = questionnaire(4, 800, (0.3,), 2)
    sample = um.as_sample(rows, cor="auto")
    matrix = um.as_sample(cov=sample.corr, n_samples=sample.n)
    assert row_errors(matrix) is None
    implied = np.full((20, 20), 0.2) + 0.8 * np.eye(20)
    verdict = MisfitTest(matrix).of(400.0, 170, implied)
    assert verdict.is_rejected
    assert verdict.rmsea == pytest.approx(rmsea(400.0, 170, matrix.n), rel=0.2)


def test_a_category_that_is_rarely_drawn_costs_a_replicate_and_not_the_search():
    rng = np.random.default_rng(0)
    rows = np.digitize(rng.normal(size=(120, 1)) + rng.normal(size=(120, 6)), [0.0])
    rows[:, 5] = 0
    rows[:4, 5] = 1
    assert len(row_errors(um.as_sample(rows, cor="polychoric")).errors) >= 8


def test_without_time_nothing_is_drawn():
    _, rows = questionnaire(4, 500, (0.5,), 3)
    clock = Clock(1e-9)
    with clock.listening():
        assert row_errors(um.as_sample(rows, cor="auto"), clock.check_measuring) is None
