"""um.fit from the outside: the answer, the flags, the sentences, the mistakes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.models.delta import delta_errors

CORR = pd.DataFrame(
    [[1.0, 0.6, 0.5, 0.4], [0.6, 1.0, 0.45, 0.35], [0.5, 0.45, 1.0, 0.3], [0.4, 0.35, 0.3, 1.0]],
    index=list("abcd"),
    columns=list("abcd"),
)
ONE_FACTOR = "f =~ a + b + c + d"


def fit(model=ONE_FACTOR, cov=CORR, n=200, **options):
    return um.fit(model, cov=cov, n_samples=n, **options)


def test_two_ways_of_scaling_a_latent_are_the_same_model():
    data = um.datasets.load("political_democracy")
    (model,) = data.models.values()
    fits = [
        um.fit(model.text, cov=data.frame(), n_samples=data.n_samples, scale_latents=scale)
        for scale in ("variance", "first-indicator")
    ]
    assert fits[0].chi2 == pytest.approx(fits[1].chi2, abs=1e-6)
    tables = [f.parameters.set_index(["lhs", "op", "rhs"])["std"] for f in fits]
    for key in tables[0].index:
        assert abs(tables[0][key]) == pytest.approx(abs(tables[1][key]), abs=1e-4), key
    first = fits[1].parameters
    assert first[(first.lhs == "ind60") & (first.rhs == "x1")].est.item() == 1.0


def test_text_and_graph_are_the_same_model():
    dag = um.DAG.from_edges([("f", x) for x in "abcd"], latents=["f"])
    assert fit(dag).chi2 == pytest.approx(fit().chi2, abs=1e-9)
    assert fit(dag.cpdag()).chi2 == pytest.approx(fit().chi2, abs=1e-9)


def test_rows_and_their_covariance_give_the_same_answer():
    rows = pd.DataFrame(np.random.default_rng(0).multivariate_normal(np.zeros(4), CORR, 300), columns=list("abcd"))
    by_rows = um.fit(ONE_FACTOR, rows)
    by_cov = um.fit(ONE_FACTOR, cov=rows.cov(), n_samples=300)
    assert by_rows.loglik == pytest.approx(by_cov.loglik, abs=1e-8)
    np.testing.assert_allclose(by_rows.parameters["est"], by_cov.parameters["est"], atol=1e-7)


def test_history_never_rises_and_ends_at_the_optimum():
    result = fit()
    assert (np.diff(result.history) <= 1e-12).all()
    assert result.history[-1] == pytest.approx(result.chi2 / 200, abs=1e-12)
    assert len(result.history) == result.n_steps + 1
    assert result.status == f"converged in {result.n_steps} steps"


def test_standardised_estimates_and_r2_agree():
    result = fit()
    table = result.parameters
    loadings = table[table.op == "=~"].set_index("rhs")["std"]
    np.testing.assert_allclose(result.r2[list("abcd")], loadings**2, atol=1e-9)
    assert np.allclose(np.diag(result.implied_cov), 199 / 200, atol=1e-6)


def test_a_heywood_case_is_bounded_and_reported():
    corr = pd.DataFrame([[1.0, 0.9, 0.8], [0.9, 1.0, 0.5], [0.8, 0.5, 1.0]], index=list("abc"), columns=list("abc"))
    result = um.fit("f =~ a + b + c", cov=corr, n_samples=200)
    assert result.converged
    assert not result.admissible
    assert "not admissible: the residual variance of 'a' ran to zero (Heywood case)" in result.status
    variance = result.parameters.query("op == '~~' and lhs == 'a'").est.item()
    assert 0 < variance < 1e-5


def test_a_latent_whose_noise_vanishes_is_reported_too():
    """The second latent is the first one exactly: its indicators correlate as if there were one factor."""
    loading = np.array([0.8, 0.7, 0.6, 0.7, 0.8, 0.6])
    corr = np.outer(loading, loading)
    # Between the two triples a bit more than one factor allows, so that the noise wants to be negative.
    corr[:3, 3:] *= 1.04
    corr[3:, :3] *= 1.04
    np.fill_diagonal(corr, 1.0)
    names = [f"x{i}" for i in range(6)]
    result = um.fit("f =~ x0 + x1 + x2; g =~ x3 + x4 + x5; g ~ f", cov=corr, n_samples=500, names=names)
    assert result.converged
    assert not result.admissible
    assert "residual variance of 'g' ran to zero" in result.status


def test_parameters_beyond_identification_are_counted_and_the_model_still_fitted():
    result = um.fit("f =~ a + b; g =~ c + d", cov=CORR, n_samples=200, correlate_exogenous=False)
    assert result.converged
    assert int(result.dimension) == 6
    assert result.df == 4
    (note,) = result.notes
    assert note.startswith("The data determine only 6 of 8 free parameters (2 too many)")
    assert result.parameters.query("op == '=~'").se.isna().all()


def test_one_bad_graph_does_not_sink_a_batch():
    sample = um.Sample.from_cov(CORR, 200)
    good = um.DAG.from_edges([("f", x) for x in "abcd"], latents=["f"])
    empty = um.DAG.from_edges([], names=list("abcd"))
    tangled = um.DAG.from_edges([(f, x) for f in "fghi" for x in "abcd"], latents=list("fghi"))
    fits = um.fit_many([good, empty, tangled, good], sample)
    assert [f.converged for f in fits] == [True] * 4
    assert fits[0].chi2 == fits[3].chi2
    assert fits[1].chi2 == pytest.approx(fits[1].baseline_chi2)
    assert fits[2].chi2 == pytest.approx(0.0, abs=1e-6)


def test_a_population_fits_perfectly_or_not_at_all():
    truth = um.simulate.random_gnfm(n_latents=3, n_observed=9, rng=5)
    parameters = um.simulate.realistic_parameters(truth, np.random.default_rng(5))
    names = parameters.observed
    right = um.fit(truth, cov=parameters.cov(), n_samples=math.inf, names=names)
    assert (right.chi2, right.pvalue, right.rmsea) == (0.0, 1.0, pytest.approx(0.0, abs=1e-4))
    wrong = um.fit("f =~ " + " + ".join(names), cov=parameters.cov(), n_samples=math.inf, names=names)
    assert wrong.chi2 == math.inf
    assert 0 < wrong.rmsea < 1
    assert 0 < wrong.cfi < 1


def test_summary_holds_the_essentials():
    text = fit().summary()
    for part in ("chi2", "RMSEA", "CFI", "BIC", "converged in", "f =~", "dimension 8 of at most 10 moments"):
        assert part in text
    assert "Fit: chi2" in repr(fit())


MISTAKES = {
    "not symmetric": (lambda: fit(cov=CORR.where(np.tril(np.ones((4, 4))) > 0, CORR * 0.9)), "not symmetric: ('a', 'b') is 0.54 but ('b', 'a') is 0.6"),
    "not positive definite": (lambda: fit(cov=CORR.replace({0.4: -0.9, 0.35: 0.9})), "not positive definite (smallest eigenvalue of the correlations -0.6"),
    "constant": (lambda: fit(cov=CORR.mask((CORR.index.to_numpy()[:, None] == "b") | (CORR.columns == "b"), 0.0)), "The diagonal of the matrix, where variances belong, is zero or negative for 'b'. Leave them out if they are constant; else look whether rows and columns are in the same order."),
    "missing entries": (lambda: fit(cov=CORR.replace(0.3, np.nan)), "2 missing or infinite entries, the first at ('c', 'd')"),
    "perfect correlation": (lambda: fit(cov=CORR.replace(0.6, 1.0)), "Variables 'a' and 'b' are perfectly correlated"),
    "too few samples": (lambda: fit(n=4), "4 samples are too few for 4 variables"),
    "sample size": (lambda: fit(n=-1), "n_samples must be at least 2; got -1"),
    "no sample size": (lambda: um.fit(ONE_FACTOR, cov=CORR), "A matrix needs n_samples"),
    "neither": (lambda: um.fit(ONE_FACTOR), "Give either rows (X) or a matrix (cov=, n_samples=); got neither"),
    "both": (lambda: um.fit(ONE_FACTOR, CORR, cov=CORR), "got both"),
    "names repeat": (lambda: fit(cov=CORR.to_numpy(), names=list("aacd")), "Names repeat: 'a'"),
    "names differ": (lambda: fit(cov=CORR.set_axis(list("abdc"), axis=0)), "Rows and columns of the matrix are named differently"),
    "wrong number of names": (lambda: fit(cov=CORR.to_numpy(), names=list("abc")), "3 names were given for 4 variables"),
    "not square": (lambda: fit(cov=CORR.to_numpy()[:2]), "square with at least one variable; got shape (2, 4)"),
    "text in rows": (lambda: um.fit("f =~ a + b", pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})), "Columns 'b' hold text"),
    "holes in rows": (lambda: um.fit("f =~ a + b", pd.DataFrame({"a": [1, np.nan], "b": [1, 2]})), "2 samples are too few for 2 variables"),
    "constant column": (lambda: um.fit("f =~ a + b", pd.DataFrame({"a": range(9), "b": [0.1] * 9})), "Constant variables carry no information: 'b'"),
    "unknown variable": (lambda: fit("f =~ a + b\nf =~ cc"), "Line 2: 'cc' is neither"),
    "unknown in graph": (lambda: fit(um.DAG.from_edges([("f", "a"), ("f", "alpha")], latents=["f"])), "Variable 'alpha' is not in the data"),
    "cycle": (lambda: fit("f =~ a + b; g =~ c + d; f ~ g; g ~ f"), "The model has a feedback loop, f → g → f (line 1)"),
    "nothing observed": (lambda: fit(um.DAG.from_edges([("f", "g")], latents=["f", "g"])), "no observed variables"),
}  # fmt: skip
# ruff: noqa: E501 (a table of calls and words reads best a row a line)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_get_a_sentence(name):
    call, words = MISTAKES[name]
    with pytest.raises(um.UnmeasuredError) as caught:
        call()
    assert words in str(caught.value)


OPTIONS = {
    "equal is no sequence": ({"equal": 5}, "equal= is a sequence of 'loadings'"),
    "equal without groups": ({"equal": "loadings"}, "Name their column: groups="),
    "estimator": ({"estimator": "WLS"}, "estimator must be one of 'ML', 'MLM', 'MLR', 'WLSMV'; got 'WLS'"),
    "count": ({"count": "all"}, "count must be one of 'dimension', 'parameters'; got 'all'"),
    "scale_latents": ({"scale_latents": "marker"}, "scale_latents must be one of 'variance', 'first-indicator'"),
    "missing": ({"missing": "drop"}, "missing must be one of"),
    "cor": ({"cor": "kendall"}, "cor must be one of"),
    "correlate_outcomes": ({"correlate_outcomes": "no"}, "correlate_outcomes is True or False; got 'no'"),
    "correlate_exogenous": ({"correlate_exogenous": 0}, "correlate_exogenous is True or False; got 0"),
    "groups is a table": ({"groups": [["u"]] * 30}, "groups= is the name of a column or one value for each row"),
    "pairs with groups": ({"missing": "pairwise", "groups": "g"}, "missing='pairwise' goes with estimator='ML'"),
    "ranks with MLR": ({"cor": "spearman-normal", "estimator": "MLR"}, "cor='spearman-normal' goes with"),
}


@pytest.mark.parametrize("model", [None, 5, [ONE_FACTOR], b"f =~ a"])
def test_what_is_no_model_is_refused_before_the_data_are_read(model):
    with pytest.raises(um.ModelError, match="A model is lavaan text, a DAG, a CPDAG or a Model; got a"):
        um.fit(model, pd.DataFrame({"a": ["x", "y"]}))


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_checked(name):
    options, words = OPTIONS[name]
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 4)), columns=list("abcd")).assign(g=["u", "v"] * 15)
    with pytest.raises(um.UnmeasuredError) as caught:
        um.fit(ONE_FACTOR, rows, **options)
    assert words in str(caught.value)


@pytest.mark.parametrize("model", ["f =~ a + b + c", "f =~ a + k*b + k*c", "f =~ a + b + c\na ~ 1"])
@pytest.mark.parametrize("options", [{}, {"estimator": "MLR"}, {"missing": "listwise"}, {"missing": "fiml"}], ids=str)
def test_columns_that_the_model_does_not_use_may_hold_anything(model, options):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(60, 1)) + rng.normal(size=(60, 3)), columns=list("abc"))
    other = rows.assign(name="x", constant=1.0, day=pd.Timestamp("2026-01-01"), gaps=np.nan)[
        ["name", *"cab", "constant", "day", "gaps"]
    ]
    assert um.fit(model, other, **options).chi2 == pytest.approx(um.fit(model, rows, **options).chi2, abs=1e-8)
    assert um.fit(um.DAG.from_edges([("f", x) for x in "abc"], latents=["f"]), other).n_samples == 60


def test_a_label_that_a_fixed_parameter_has_gives_its_value():
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 5)), columns=list("abcde")).cumsum(axis=1)
    equal = um.fit("f =~ k*a + k*b + k*c; g =~ d + e", rows, scale_latents="first-indicator")
    fixed = um.fit("f =~ 1*a + 1*b + 1*c; g =~ d + e", rows, scale_latents="first-indicator")
    assert (equal.chi2, equal.df) == (pytest.approx(fixed.chi2), fixed.df)
    with pytest.raises(um.ModelError, match="'k' stands for two values: 'f =~ a' is fixed to 1, 'f =~ b' to 2"):
        um.fit("f =~ k*a + 2*b + k*b + c", rows, scale_latents="first-indicator")
    with pytest.raises(um.ModelError, match="'b ~~ b' equal to 'f =~ a', which is fixed to -1"):
        um.fit("f =~ -1*a + k*a + b + c; b ~~ k*b", rows)


def test_equal_labels_that_allow_no_covariance_give_a_fit_that_says_so():
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 2)), columns=list("ab"))
    for options in ({}, {"estimator": "MLR"}):
        failed = um.fit("a ~~ k*a; b ~~ k*b; a ~~ k*b", rows, **options)
        assert not failed.converged
        assert "the covariance implied by the starting values is not positive definite" in failed.summary()
        assert failed.parameters["se"].isna().all()
        with pytest.raises(um.UnmeasuredError, match="nothing to test"):
            failed.modification_indices()


def test_few_samples_for_many_parameters_are_noted():
    (note,) = fit("f =~ a + b + c + d", n=6).notes
    assert note == "6 samples for 8 free parameters: estimates will not hold up."


def test_scaling_by_a_loading_does_not_go_astray():
    """Begun with its first loadings at 1, this model ended six units of chi-square too high, from seven starts."""
    rng = np.random.default_rng(611)
    loadings = rng.uniform(0.4, 1.2, 12) * rng.choice([1, -1], 12, p=[0.7, 0.3])
    mixing = rng.normal(size=(4, 4))
    cov = mixing @ mixing.T + 0.5 * np.eye(4)
    latents = rng.multivariate_normal(np.zeros(4), cov / np.sqrt(np.outer(np.diag(cov), np.diag(cov))), 80)
    values = np.repeat(latents, 3, axis=1) * loadings + rng.normal(size=(80, 12)) * rng.uniform(0.3, 1, 12)
    rows = pd.DataFrame(values, columns=[f"x{i}" for i in range(12)])
    text = "\n".join(f"f{k} =~ x{3 * k} + x{3 * k + 1} + x{3 * k + 2}" for k in range(4))
    text += "\nf1 ~ f0\nf2 ~ f1\nf3 ~ f2"
    by_variance, by_loading = um.fit(text, rows), um.fit(text, rows, scale_latents="first-indicator")
    assert by_loading.converged
    assert by_loading.chi2 == pytest.approx(by_variance.chi2, abs=1e-6)


def test_a_fit_that_ended_where_there_is_no_likelihood_has_no_standard_errors():
    found = fit()
    lost = replace(found, solution=replace(found.solution, x=-found.solution.x))  # negative residual variances
    assert np.isnan(delta_errors(lost, np.eye(len(found.solution.x)))).all()


@pytest.mark.parametrize("pair", ["x7 ~~ {}*x8", "x3 ~~ {}*x9", "x1 ~~ {}*x2"])
@pytest.mark.parametrize("scale_latents", ["variance", "first-indicator"])
def test_a_covariance_fixed_at_its_estimate_costs_nothing(pair, scale_latents):
    """Large ones left no room for the variances from which fits began."""
    data = um.datasets.load("holzinger_swineford")
    three = "visual =~ x1 + x2 + x3; textual =~ x4 + x5 + x6; speed =~ x7 + x8 + x9; "
    given = {"cov": data.frame(), "n_samples": data.n_samples, "scale_latents": scale_latents}
    free = um.fit(three + pair.format("NA"), **given)
    left, _, right = (part.split("*")[-1] for part in pair.split())
    row = free.parameters.query(f"op == '~~' and lhs == '{left}' and rhs == '{right}'").iloc[0]
    fixed = um.fit(three + pair.format(row["est"]), **given)
    assert fixed.converged
    assert (fixed.chi2, fixed.df) == (pytest.approx(free.chi2, abs=1e-5), free.df + 1)


@pytest.mark.parametrize("estimator", ["MLM", "MLR"])
def test_what_has_no_likelihood_has_no_robust_statistics(estimator):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 4)), columns=list("abcd"))
    failed = um.fit("f =~ a + b; g =~ c + d; f ~~ 5*g", rows, estimator=estimator)
    assert "not positive definite" in failed.status
    assert failed.robust is None
    assert "not positive definite" in failed.summary()


@pytest.mark.parametrize(
    ("model", "unknown"),
    [
        ("f =~ x1 + x2 + x3; g =~ x4 + x5; f ~~ 0*g", {("g", "x4"), ("g", "x5"), ("x4", "x4"), ("x5", "x5")}),
        ("f =~ x1 + x2 + x3; g =~ x4; x4 ~~ x4; f ~~ g", {("g", "x4"), ("x4", "x4"), ("f", "g")}),
    ],
)
def test_what_the_data_do_not_determine_has_no_standard_error(model: str, unknown: set[tuple[str, str]]) -> None:
    """Two items of a latent that nothing else depends on, and one item, are too few; all else is known."""
    data = um.datasets.load("holzinger_swineford")
    table = um.fit(model, cov=data.frame(), n_samples=data.n_samples).parameters
    table = table[table["se"] != 0.0]  # what is fixed
    assert set(table[table["se"].isna()][["lhs", "rhs"]].itertuples(index=False, name=None)) == unknown
    assert table["se"].max() < 1.0
