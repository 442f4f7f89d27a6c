"""Tolerance and levels: what is found again where no factor model holds."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2
from sklearn.metrics import adjusted_rand_score

import unmeasured as um
from unmeasured.models.exploratory import _ml_curvature, degrees_of_freedom, minres, ml_discrepancy, quartimin
from unmeasured.search.budget import BUDGET
from unmeasured.search.clock import Clock
from unmeasured.search.close_fit.expected_misfit import bartlett_factor, mean_factor
from unmeasured.search.close_fit.replicability import (
    Partition,
    _correlations,
    agreement_peaks,
    comes_back_more_often,
    effective_n,
    partitions,
    select_partition,
)
from unmeasured.search.close_fit.tolerance import Tolerant, marginal_misfit, no_model_holds
from unmeasured.search.item_partitions import ItemPartition, name_partition

QUESTIONNAIRES = Path(__file__).parents[4] / "shared" / "data" / "questionnaires.json.gz"


def agreement(level, scales):
    return adjusted_rand_score([scales[name] for name in level.index], pd_codes(level))


def pd_codes(level):
    return level.astype("category").cat.codes


def simple_structure(rng, n_factors=3, n_items=4):
    """Correlations of items that load on one of several correlated factors each."""
    factor = np.repeat(np.arange(n_factors), n_items)
    loading = rng.uniform(0.5, 0.8, len(factor))
    R = np.where(factor[:, None] == factor, 1.0, 0.3) * np.outer(loading, loading)
    np.fill_diagonal(R, 1.0)
    return R, factor


def test_random_state_seeds_the_replicates():
    R, factor = simple_structure(np.random.default_rng(1))
    names = [f"x{k}" for k in range(len(factor))]

    def agreements(**options):
        found = um.LGES(tolerance=0.05, **options).discover(um.as_sample(cov=R, n_samples=60, names=names))
        return [level.agreement for level in found.partitions]

    assert agreements(random_state=0) == agreements() != agreements(random_state=1)


# The dense analysis -----------------------------------------------------------------------------------------


def test_minres_and_quartimin_find_a_simple_structure():
    R, factor = simple_structure(np.random.default_rng(1))
    loadings = quartimin(minres(R, 3).loadings)
    assert adjusted_rand_score(factor, np.argmax(np.abs(loadings), axis=1)) == 1.0
    others = np.sort(np.abs(loadings), axis=1)[:, :-1]
    assert others.max() < 0.02  # the truth is a perfect simple structure


@pytest.mark.parametrize("n_factors", [1, 2, 3])
def test_minres_ends_where_another_optimiser_does(n_factors):
    """L-BFGS-B of SciPy on the sum of squared residuals off the diagonal, by loadings and not by eigenvalues."""
    R = np.asarray(um.datasets.load("political_democracy").frame())
    p = len(R)

    def misfit(x):
        L = x.reshape(p, n_factors)
        rest = np.tril(R - L @ L.T, -1)
        return (rest**2).sum(), -2 * ((rest + rest.T) @ L).ravel()

    loadings = minres(R, n_factors).loadings
    start = loadings + 0.1 * np.random.default_rng(0).standard_normal(loadings.shape)
    found = minimize(misfit, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-14})
    assert misfit(loadings.ravel())[0] == pytest.approx(found.fun, rel=1e-3)


def test_replicates_are_draws_of_the_correlations_of_so_many_rows():
    """Two correlations of rows: mean and standard deviation of Fisher's z, for few rows and for a million."""
    R = np.array([[1.0, 0.5], [0.5, 1.0]])
    for n_rows, draws in ((50, 4000), (1_000_000, 400)):
        rng = np.random.default_rng(0)
        z = np.arctanh([_correlations(rng, np.linalg.cholesky(R), n_rows)[0, 1] for _ in range(draws)])
        error = 1 / np.sqrt(n_rows - 3)
        bias = 0.5 / (2 * (n_rows - 1))  # Fisher 1915: r / (2 (N - 1))
        assert z.mean() == pytest.approx(np.arctanh(0.5) + bias, abs=4 * error / np.sqrt(draws))
        assert z.std() == pytest.approx(error, rel=0.1)


def test_discrepancy_of_factors_equals_that_of_the_fit():
    """The engine fits one factor by another algorithm."""
    data = um.datasets.load("holzinger_swineford")
    fit = um.fit("g =~ " + " + ".join(data.names), cov=data.frame(), n_samples=data.n_samples)
    R = data.frame().to_numpy()
    scale = np.sqrt(np.diag(R))
    discrepancy = ml_discrepancy(R / np.outer(scale, scale), 1)
    assert discrepancy * data.n_samples == pytest.approx(fit.chi2, rel=1e-4)
    assert degrees_of_freedom(9, 1) == fit.df


def hard_correlations(seed, n_rows=100_000):
    """Correlations of 15 variables with seven latents, some of whose residual variances are small."""
    truth = um.simulate.random_gnfm(group_sizes=[2, 2, 1, 1, 1], n_observed=15, n_common_children=1, rng=seed)
    parameters = um.simulate.paper_parameters(truth, seed, low=-2.0, high=2.0, min_abs=0.5)
    return um.as_sample(um.simulate.sample(parameters, n_rows, rng=seed))


def by_scipy(R, n_factors, logs):
    """The discrepancy of maximum likelihood and its slope, for scipy's optimisers."""
    rest = len(R) - n_factors
    scale = np.exp(-0.5 * logs)
    values, vectors = np.linalg.eigh(R * np.outer(scale, scale))
    small = values[:rest]
    return float((small - np.log(small)).sum()) - rest, vectors[:, :rest] ** 2 @ (1.0 - small)


def test_curvature_of_the_discrepancy_is_that_of_differences():
    R = hard_correlations(3).corr
    logs, step = np.log(0.5 / np.diag(np.linalg.inv(R))), 1e-5
    scale = np.exp(-0.5 * logs)
    sure, other = _ml_curvature(*np.linalg.eigh(R * np.outer(scale, scale)), len(R) - 7)
    differences = [
        (by_scipy(R, 7, logs + step * unit)[1] - by_scipy(R, 7, logs - step * unit)[1]) / (2.0 * step)
        for unit in np.eye(len(R))
    ]
    np.testing.assert_allclose(sure + other, differences, rtol=1e-4, atol=1e-6)
    assert np.linalg.eigvalsh(sure).min() > -1e-12


@pytest.mark.parametrize("seed", range(6))
def test_scipy_finds_no_lower_discrepancy(seed):
    R, rng = hard_correlations(seed).corr, np.random.default_rng(seed)
    alone, low = 1.0 / np.diag(np.linalg.inv(R)), np.log(1e-6)
    found = [
        minimize(
            lambda logs: by_scipy(R, 7, logs), np.log(np.clip(alone * rng.uniform(0.1, 1.0, len(R)), 1e-6, 1.0)),
            jac=True, method="L-BFGS-B", bounds=[(low, 0.0)] * len(R), options={"maxiter": 3000, "ftol": 1e-15},
        ).fun
        for _ in range(8)
    ]  # fmt: skip
    assert ml_discrepancy(R, 7, shares=BUDGET.shares) < min(found) + 2e-4  # twenty units of chi-square of some 10^5


def test_a_model_that_holds_is_not_said_to_be_rejected():
    assert not any(no_model_holds(hard_correlations(seed)) for seed in range(20))


def test_a_misfit_that_is_negligible_does_not_say_that_no_model_holds():
    """Rows of a true model, taken for more of them: chi-square is fifteen times its degrees of freedom."""
    R, _ = simple_structure(np.random.default_rng(1), n_factors=6, n_items=2)
    for n_drawn, is_said in ((100_000, False), (2_000, True)):
        rows = np.random.default_rng(2).multivariate_normal(np.zeros(12), R, n_drawn)
        sample = um.as_sample(cov=np.corrcoef(rows, rowvar=False), n_samples=15 * n_drawn)
        chi_square = sample.n * ml_discrepancy(sample.corr, 6)
        assert chi2.sf(chi_square, degrees_of_freedom(12, 6)) < BUDGET.rejected
        assert no_model_holds(sample) is is_said


def test_statsmodels_finds_the_same_communalities():
    factor = pytest.importorskip("statsmodels.multivariate.factor")
    R, _ = simple_structure(np.random.default_rng(2))
    R = 0.95 * R + 0.05 * np.eye(len(R))
    ours = 1.0 - minres(R, 3).residuals
    theirs = factor.Factor(corr=R, n_factor=3, method="ml").fit().communality
    np.testing.assert_allclose(ours, theirs, atol=1e-3)  # exact structure: all estimators agree


# Replicability ----------------------------------------------------------------------------------------------


def test_effective_n():
    assert effective_n(1000, 0.0) == 1000
    assert effective_n(1e12, 0.05) == pytest.approx(400)
    assert effective_n(400, 0.05) == pytest.approx(200)


def test_the_number_of_factors_comes_back():
    R, factor = simple_structure(np.random.default_rng(3), n_factors=4, n_items=5)
    (level,) = [one for one in agreement_peaks(partitions(R, 400)) if one.n_factors == 4]
    assert level.agreement > 0.95
    assert adjusted_rand_score(factor, level.labels) == 1.0


def test_of_items_that_have_nothing_in_common_no_partition_comes_back():
    for seed in range(5):
        rows = np.random.default_rng(seed).normal(size=(300, 12))
        found = partitions(np.corrcoef(rows, rowvar=False), 300)
        assert found
        assert agreement_peaks(found) == []


def test_chance_alone_does_not_make_a_partition_come_back_more_often():
    """One partition, compared with replicates of many seeds: at two standard errors about one pair in forty differs."""
    R, _ = simple_structure(np.random.default_rng(3), n_factors=4, n_items=4)
    R = 0.5 * R + 0.5 * np.eye(len(R))
    found = [partitions(R, 150, numbers=[4], seed=seed)[0] for seed in range(10)]
    assert len({one.agreement for one in found}) == 10
    pairs = [(one, other) for one in found for other in found if one is not other]
    assert sum(comes_back_more_often(one, other) for one, other in pairs) <= 0.1 * len(pairs)
    clear, vague = (
        partitions(matrix, 150, numbers=[4])[0] for matrix in (simple_structure(np.random.default_rng(3), 4, 4)[0], R)
    )
    assert comes_back_more_often(clear, vague)
    assert not comes_back_more_often(vague, clear)


@pytest.mark.parametrize("n_rows", [80, 1000])
def test_two_factors_would_do_where_they_are_the_truth(n_rows):
    """Two factors have all the misfit that chance gives so few rows, and one has more than is tolerated."""
    R, _ = simple_structure(np.random.default_rng(12), n_factors=2, n_items=5)
    enough, too_few = [], []
    for seed in range(10):
        rows = np.random.default_rng(seed).multivariate_normal(np.zeros(len(R)), R, n_rows)
        within = Tolerant(um.as_sample(rows, cor="pearson"), 0.05, 1.0, Clock(None))
        enough.append(within.fewer_would_do(3))
        too_few.append(within.fewer_would_do(2))
    assert sum(enough) >= 8
    assert not any(too_few)


def test_partitions_do_not_depend_on_chance():
    R, _ = simple_structure(np.random.default_rng(4))
    one, other = partitions(R, 300), partitions(R, 300)
    assert [level.agreement for level in one] == [level.agreement for level in other]


def test_marginal_likelihood_is_bic_where_the_model_holds():
    """Between nested models that hold it differs by the likelihood ratio and log N for each degree of freedom."""
    n = 1000
    difference = marginal_misfit(100.0, 100, n) - marginal_misfit(80.0, 95, n)
    assert difference == pytest.approx((100 - 80) / n * n - 5 * np.log(n))


# Names of levels --------------------------------------------------------------------------------------------


def test_names_of_levels_are_unique_and_follow_renaming():
    lead = ["L1"] * 4 + ["L2"] * 4
    finer = name_partition([0, 0, 1, 1, 2, 2, 3, 3], lead)
    assert finer == ("L1.1", "L1.1", "L1.2", "L1.2", "L2.1", "L2.1", "L2.2", "L2.2")
    level = ItemPartition(tuple("abcdefgh"), finer).renamed({"L1": "speed"})
    assert level.latents[:2] == ("speed.1", "speed.1")


# The search -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def big_five():
    data = um.datasets.load("big_five")
    return um.LGES().fit_cov(data.frame(), data.n_samples)


def test_big_five_is_led_by_the_five_traits(big_five):
    """The key of the questionnaire says which trait an item was written for."""
    result = big_five.result_
    level = result.partitions[result.selected_partition]
    assert big_five.tolerance_ == 0.05
    traits = pd_codes(level.index.str[0].to_series(index=level.index))
    assert level.nunique() == 5
    assert adjusted_rand_score(traits, pd_codes(level)) == 1.0
    assert result.loadings["std"].abs().max() < 1.0


def test_levels_are_kept_in_json_and_renamed(big_five):
    result = big_five.result_.rename({"L1": "Openness"})
    again = um.Result.from_json(result.to_json())
    assert again.selected_partition == result.selected_partition
    for one, other in zip(again.partitions, result.partitions, strict=True):
        assert one.equals(other)
    assert "Openness" in set(result.partitions[result.selected_partition])
    assert "agreement with replicates" in result.summary()


def test_the_exact_answer_is_one_argument_away(big_five):
    data = um.datasets.load("multitasking")
    auto = um.LGES().fit_cov(data.frame(), data.n_samples)
    exact = um.LGES(tolerance=0).fit_cov(data.frame(), data.n_samples)
    assert auto.tolerance_ == exact.tolerance_ == 0.0  # this model is not rejected
    assert auto.graph_ == exact.graph_
    assert len(exact.result_.partitions) == 1
    assert exact.result_.selected_partition == 0


def test_an_exact_model_whose_latents_do_not_come_back_says_so():
    """Eight measures of democracy and three of industry: with 75 rows two sets come back, three do not."""
    data = um.datasets.load("political_democracy")
    search = um.LGES().fit_cov(data.frame(), data.n_samples)
    result = search.result_
    assert search.tolerance_ == 0.0
    (level,) = result.item_partitions
    assert set(level.latents) == set(search.graph_.latents)
    assert level.agreement < 0.85
    assert "Which items belong together is not stable" in " ".join(result.remarks)
    assert f"3 latents, agreement with replicates {level.agreement:.2f} (shown here)" in result.summary()
    broad = um.LGES(tolerance=0.05).fit_cov(data.frame(), data.n_samples).result_
    first = broad.partitions[broad.selected_partition]
    assert sorted(first.groupby(first).groups.values(), key=len)[0].tolist() == ["x1", "x2", "x3"]
    assert broad.item_partitions[broad.selected_partition].agreement > 0.95


def test_latents_that_come_back_are_read_first():
    data = um.datasets.load("multitasking")
    result = um.LGES().fit_cov(data.frame(), data.n_samples).result_
    (level,) = result.item_partitions
    assert level.agreement > 0.9
    assert "not stable" not in result.summary()


def test_tolerance_that_is_asked_for_is_used():
    data = um.datasets.load("holzinger_swineford")
    found = um.LGES(tolerance=0.08).fit_cov(data.frame(), data.n_samples)
    assert found.tolerance_ == 0.08
    assert {
        frozenset(items.index) for _, items in found.result_.partitions[0].groupby(found.result_.partitions[0])
    } == {
        frozenset({"x1", "x2", "x3"}),
        frozenset({"x4", "x5", "x6"}),
        frozenset({"x7", "x8", "x9"}),
    }


def test_one_latent_stays_one():
    rng = np.random.default_rng(5)
    loading = rng.uniform(0.5, 0.8, 10)
    R = np.outer(loading, loading)
    np.fill_diagonal(R, 1.0)
    found = um.LGES(tolerance=0.05).fit_cov(R, 500)
    assert found.result_.partitions[found.result_.selected_partition].nunique() == 1


def test_one_latent_is_not_read_into_many_items_for_their_small_rmsea():
    """Twelve factors: most pairs of items are of different ones, and one latent describes these closely."""
    R, factor = simple_structure(np.random.default_rng(10), 12, 4)
    p = len(R)
    R = 0.6 * R + 0.4 * np.eye(p)
    assert np.sqrt(ml_discrepancy(R, 1) / degrees_of_freedom(p, 1)) < 0.05
    sample = um.as_sample(cov=R, n_samples=1000)
    within = Tolerant(sample, 0.05, 1.0, Clock(None))
    assert within._one_latent(sample, None) is not None
    assert within._one_latent(sample, Partition(12, factor, 0.95, 0.01)) is None
    shuffled = np.random.default_rng(0).permutation(factor)
    assert within._one_latent(sample, Partition(12, shuffled, 0.95, 0.01)) is not None


def test_halves_lead_only_where_finer_sets_do_not_come_back():
    R, factor = simple_structure(np.random.default_rng(11), 4, 4)
    halves = Partition(2, factor // 2, 1.0, 0.0)
    for agreement_of_four, leads in ((0.9, 4), (0.5, 2)):
        levels = [Partition(4, factor, agreement_of_four, 0.02), halves]
        assert select_partition(levels, R, 400.0).n_factors == leads


def test_an_exact_search_that_will_give_way_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many variables; the answer is that of the whole way."""
    model = um.simulate.minor_factors(n_factors=3, n_items=5, rmsea=0.03, rng=5)
    rows = um.simulate.sample(model, 4000, rng=6)
    whole_way = um.LGES().fit(rows)
    assert whole_way.tolerance_ > 0
    calls = []
    monkeypatch.setattr("unmeasured.search.pipeline.discover_exactly", lambda *_: calls.append(1))
    monkeypatch.setattr("unmeasured.search.close_fit.tolerance.BUDGET", replace(BUDGET, most_at_once=14))
    search = um.LGES().fit(rows)
    assert not calls
    assert search.graph_ == whole_way.graph_


def test_five_factors_are_found_among_fifty_minor_ones():
    rng = np.random.default_rng(6)
    R, factor = simple_structure(rng, 5, 5)
    noise = rng.normal(size=(25, 50)) * 0.9 ** np.arange(50)
    minor = noise @ noise.T
    scale = np.sqrt(np.diag(minor))
    R = R + 0.12 * minor / np.outer(scale, scale)
    np.fill_diagonal(R, 1.0)
    sample = um.as_sample(cov=R, n_samples=10_000)
    assert no_model_holds(sample)
    found = um.LGES().fit(sample)
    level = found.result_.partitions[found.result_.selected_partition]
    assert adjusted_rand_score(factor, pd_codes(level)) == 1.0


def test_a_true_model_is_hardly_ever_called_wrong():
    """The test that no model holds has the level of its chi-square test at most."""
    R, _ = simple_structure(np.random.default_rng(7))
    rng = np.random.default_rng(8)
    wrong = 0
    for _ in range(20):
        rows = rng.multivariate_normal(np.zeros(len(R)), R, size=300)
        wrong += no_model_holds(um.as_sample(rows, cor="pearson"))
    assert wrong == 0  # at 1 in 1000 the chance of any is 2%
    assert chi2.sf(1e9, 10) == 0.0


def test_of_six_variables_no_number_of_factors_says_that_no_model_holds():
    """Three latents leave six variables without degrees of freedom, and two are rejected: nothing follows from that."""
    rng = np.random.default_rng(5)
    dag = um.simulate.random_gnfm(group_sizes=[2, 1], n_observed=6, rng=rng)
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng), 100_000, rng=rng)
    assert um.metrics.compare(dag, um.LGES().fit(rows).graph_).shd == 0


def test_a_model_rejected_by_a_trifle_is_kept(monkeypatch):
    """More than the sampling error of 100,000 rows: p < .001, at an RMSEA of .003."""
    rng = np.random.default_rng(11)
    dag = um.simulate.random_gnfm(group_sizes=[2], n_observed=11, rng=rng)
    truth = um.simulate.paper_parameters(dag, rng)
    sampled = np.cov(um.simulate.sample(truth, 100_000, rng=rng), rowvar=False)
    cov = truth.cov() + 1.6 * (sampled - truth.cov())
    found = um.LGES().fit_cov(cov, 100_000, names=truth.observed)
    assert found.sem_.pvalue < 1e-3
    assert found.sem_.rmsea < 0.005
    assert found.tolerance_ == 0.0
    assert um.metrics.compare(dag, found.graph_).shd == 0
    monkeypatch.setattr("unmeasured.search.close_fit.expected_misfit.BUDGET", replace(BUDGET, exact_rmsea=0.0))
    assert um.LGES().fit_cov(cov, 100_000, names=truth.observed).tolerance_ > 0.0


def test_columns_in_another_order_give_the_same_levels(big_five):
    data = um.datasets.load("big_five")
    order = np.random.default_rng(9).permutation(25)
    frame = data.frame().iloc[order, order]
    other = um.LGES().fit_cov(frame, data.n_samples)
    one = big_five.result_.partitions[0]
    assert adjusted_rand_score(pd_codes(one), pd_codes(other.result_.partitions[0][one.index])) == 1.0


@pytest.mark.parametrize("tolerance", [-0.1, 0.9, "much", None, True, float("nan")])
def test_tolerances_that_make_no_sense_are_a_sentence(tolerance):
    with pytest.raises(um.UnmeasuredError, match="tolerance must be 'auto' or a population RMSEA from 0"):
        um.LGES(tolerance=tolerance).fit_cov(np.eye(6) * 0.5 + 0.5, 100)


def test_a_time_limit_leaves_an_answer_that_says_so():
    data = um.datasets.load("big_five")
    found = um.LGES(time_limit=0.2).fit_cov(data.frame(), data.n_samples)
    assert "time limit" in found.stopped_
    assert found.remarks_[0] == found.stopped_


@pytest.mark.skipif(not QUESTIONNAIRES.exists(), reason="the questionnaires are not beside the project")
@pytest.mark.parametrize(("name", "least"), [("bfi25", 0.95), ("grit12", 0.95), ("hsq", 0.95), ("ecr36", 0.95)])
def test_scales_of_questionnaires_are_recognised(name, least):
    """The oracle is the authors' key."""
    record = json.loads(gzip.decompress(QUESTIONNAIRES.read_bytes()))[name]
    scales = {item: scale for scale, items in record["scales"].items() for item in items}
    found = um.LGES().fit_cov(np.array(record["corr"]), record["n"], names=record["names"])
    assert agreement(found.result_.partitions[found.result_.selected_partition], scales) >= least


def test_close_models_of_very_many_variables_are_read_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    dag = um.simulate.random_gnfm(n_latents=2, n_observed=10, rng=rng)
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng), 2000, rng=rng)
    remark = "replicates of the data was not checked"
    assert not any(remark in words for words in um.LGES().fit(rows).result_.remarks)
    monkeypatch.setattr("unmeasured.search.close_fit.tolerance.BUDGET", replace(BUDGET, most_partitioned=5))
    search = um.LGES().fit(rows)
    assert any(remark in words for words in search.result_.remarks)
    assert um.metrics.compare(dag, search.graph_).shd == 0


def test_chi_square_of_a_true_model_has_its_degrees_of_freedom_as_a_mean() -> None:
    """With half as many variables as rows, where Bartlett's factor falls short."""
    p, n, rng = 120, 240, np.random.default_rng(0)
    rows = [rng.normal(size=(n, p)) for _ in range(20)]
    covs = [np.cov(X.T, bias=True) for X in rows]
    chi2 = [n * (np.trace(S) - np.linalg.slogdet(S)[1] - p) for S in covs]
    df = p * (p + 1) / 2
    assert np.mean(chi2) * mean_factor(p, n) == pytest.approx(df, abs=4 * np.sqrt(2 * df / 20))
    assert np.mean(chi2) * bartlett_factor(p, n, 0) > df + np.sqrt(2 * df)
