"""Groups of people: what they share, what differs, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import unmeasured as um
from lavaan_rows import DRAWN
from unmeasured.cli.commands import app
from unmeasured.errors import DataError, ModelError
from unmeasured.models.lavaan import parse
from unmeasured.models.parameters import model_of
from unmeasured.output.report.screen import screen
from unmeasured.results.invariance import Invariance

TWO = "f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6"
PATH = TWO + "\nh ~ f"
SKEWED, INCOMPLETE = DRAWN["skewed"], DRAWN["incomplete"]


def three_groups(n: int = 400) -> pd.DataFrame:
    """Three groups that differ in one loading, one intercept, a path and the means of the latents."""
    rng = np.random.default_rng(5)
    frames = []
    for k, group in enumerate("abc"):
        f = rng.normal(0.4 * k, 1.0 + 0.2 * k, n)
        h = (0.3 if group == "c" else 0.7) * f + rng.normal(0.2 * k, 0.8, n)
        loadings = np.array([[0.9, 0.8, 0.3 if group == "b" else 1.0, 0, 0, 0], [0, 0, 0, 0.9, 1.0, 0.8]])
        values = np.column_stack([f, h]) @ loadings + rng.normal(0, 0.6, (n, 6))
        values[:, 4] += 0.8 * (group == "c")
        frames.append(pd.DataFrame(values, columns=[f"y{i}" for i in range(1, 7)]).assign(g=group))
    return pd.concat(frames, ignore_index=True).sample(frac=1.0, random_state=1).reset_index(drop=True)


@pytest.fixture(scope="module")
def found() -> Invariance:
    return um.invariance(PATH, three_groups(), groups="g")


def test_what_differs_is_found(found: Invariance) -> None:
    assert not found.table.loc["loadings", "holds"]
    assert found.supported_step == "configural"
    first = found.differences.groupby("kind").first()
    assert tuple(first.loc["loadings", ["lhs", "rhs", "group"]]) == ("f", "y3", "b")
    assert tuple(first.loc["intercepts", ["lhs", "group"]]) == ("y5", "c")
    assert tuple(first.loc["regressions", ["lhs", "rhs", "group"]]) == ("h", "f", "c")
    assert first["differs"].loc[["loadings", "intercepts", "regressions"]].all()
    assert found.structure.loc["regressions", "differs"]
    assert "Different by BIC, loadings: 'f =~ y3 (b)'" in found.summary()


def test_partial_invariance_by_labels_brings_the_means_back() -> None:
    rows = three_groups(2000)
    partial = PATH.replace("y3", "c(l, NA, l)*y3") + "\ny5 ~ c(i, i, NA)*1"
    fit = um.fit(partial, rows, groups="g", equal=("loadings", "intercepts"))
    groups = list(fit.groups)
    table = fit.parameters.set_index(["group", "lhs", "op", "rhs"])
    assert table.loc[("b", "f", "=~", "y3"), "equal"] == 0
    # Latents have the scale and origin of the first group.
    origin, spread = 0.4 * "abc".index(groups[0]), 1.0 + 0.2 * "abc".index(groups[0])
    for group in groups[1:]:
        expected = (0.4 * "abc".index(group) - origin) / spread
        assert abs(table.loc[(group, "f", "~1", ""), "est"]) == pytest.approx(abs(expected), abs=0.12)
    assert fit.pvalue > 0.001


def test_fewer_constraints_never_fit_worse(found: Invariance) -> None:
    chi2 = [fit.chi2 for fit in found.fits.values()]
    assert chi2 == sorted(chi2)
    df = [fit.df for fit in found.fits.values()]
    assert df == [24, 24 + 8, 24 + 16, 24 + 28]
    # The shares of the groups add up.
    for fit in found.fits.values():
        assert sum(share.chi2 for share in fit.fits.values()) == pytest.approx(fit.chi2)
        assert sum(share.loglik for share in fit.fits.values()) == pytest.approx(fit.loglik)


def test_without_constraints_groups_are_fitted_apart() -> None:
    together = um.fit(TWO, SKEWED, groups="g")
    for group, rows in SKEWED.groupby("g"):
        alone = um.fit(TWO, rows.drop(columns="g"))
        share = together.fits[str(group)]
        assert share.chi2 == pytest.approx(alone.chi2, abs=1e-6)
        assert share.parameters.est.abs().iloc[: len(alone.parameters)].to_numpy() == pytest.approx(
            alone.parameters.est.abs().to_numpy(), abs=1e-5
        )
        assert share.implied_mean == pytest.approx(rows[list(share.sample.names)].mean().to_numpy())


def test_groups_may_be_given_as_values_and_as_a_graph() -> None:
    graph = um.DAG.from_edges([("f", f"y{i}") for i in (1, 2, 3)], latents=["f"])
    rows = SKEWED.drop(columns="g")
    by_values = um.fit(graph, rows, groups=SKEWED["g"], equal="loadings")
    by_column = um.fit(model_of(graph), SKEWED, groups="g", equal=["loadings"])
    assert by_values.chi2 == pytest.approx(by_column.chi2)
    assert by_values.groups == ("a", "b")


def test_a_search_gives_its_model() -> None:
    search = um.LGES(cor="pearson").fit(SKEWED.drop(columns="g"))
    found = um.invariance(search, SKEWED, groups="g")
    assert found.fits["configural"].converged
    assert set(found.latent_means["latent"]) == set(search.graph_.latents)
    assert um.invariance(search.result_, SKEWED, groups="g").table.equals(found.table)


def test_equal_labels_and_means_in_one_group() -> None:
    fit = um.fit("f =~ a*y1 + a*y2 + y3\ny1 ~ m*1\ny2 ~ m*1", SKEWED.drop(columns="g"))
    table = fit.parameters.set_index(["lhs", "op", "rhs"])
    assert table.loc[("f", "=~", "y1"), "est"] == table.loc[("f", "=~", "y2"), "est"]
    assert table.loc[("y1", "~1", ""), "est"] == table.loc[("y2", "~1", ""), "est"]
    assert fit.df == 2


def test_equal_labels_from_a_matrix() -> None:
    data = um.datasets.load("holzinger_swineford")
    text = "visual =~ a*x1 + a*x2 + a*x3"
    fit = um.fit(text, cov=data.frame(), n_samples=data.n_samples)
    assert fit.df == 2
    assert fit.parameters.est.iloc[:3].nunique() == 1
    with pytest.raises(ModelError, match="a matrix has no means"):
        um.fit("visual =~ x1 + x2 + x3\nx1 ~ 1", cov=data.frame(), n_samples=data.n_samples)
    with pytest.raises(DataError, match="groups= needs rows"):
        um.fit(text, cov=data.frame(), n_samples=data.n_samples, groups="school")


def test_an_unidentified_model_says_which_parameters_are_not_determined() -> None:
    fit = um.fit("f =~ y1 + y2\nf ~ 1", SKEWED.drop(columns="g"))
    assert any("The data determine only" in note for note in fit.notes)
    assert fit.parameters.se.isna().any()


@pytest.mark.parametrize(
    ("change", "options", "error", "words"),
    [
        ({}, {"groups": "school"}, DataError, "groups='school' names no column of the data"),
        ({"g": "a"}, {}, DataError, "has one value only, so there is one group"),
        ({}, {"groups": ["a", "b"]}, DataError, "groups has 2 values for 240 rows"),
        ({}, {"equal": "loading"}, ModelError, "equal= has 'loading'; did you mean 'loadings'?"),
        ({}, {"estimator": "WLSMV"}, ModelError, "takes one group"),
        (
            {},
            {"model": "f =~ c(a, b, c)*y1 + y2 + y3"},
            ModelError,
            "gives 3 values, one for each group, but there are 2",
        ),
        ({}, {"model": "f =~ y1 + y2 + z"}, ModelError, "'z' is neither a variable of the data nor a latent"),
    ],
)
def test_mistakes_get_sentences(change: dict, options: dict, error: type[Exception], words: str) -> None:
    given = {"model": TWO, "groups": "g"} | options
    with pytest.raises(error) as caught:
        um.fit(given.pop("model"), SKEWED.assign(**change), **given)
    assert words in str(caught.value)


def test_a_group_that_cannot_be_fitted_is_named() -> None:
    few = SKEWED[(SKEWED["g"] == "a") | (SKEWED.index >= 236)]
    with pytest.raises(DataError, match=r"In group 'b' \(4 rows\): "):
        um.fit(TWO, few, groups="g")
    constant = SKEWED.assign(y2=SKEWED["y2"].where(SKEWED["g"] == "a", 3.0))
    with pytest.raises(DataError, match=r"In group 'b' \(130 rows\): Constant variables carry no information: 'y2'"):
        um.fit(TWO, constant, groups="g")
    lost = SKEWED.assign(g=SKEWED["g"].where(SKEWED.index > 2))
    with pytest.raises(DataError, match="3 rows have no value in 'g'"):
        um.fit(TWO, lost, groups="g")


def test_invariance_refuses_what_it_cannot_compare() -> None:
    with pytest.raises(ModelError, match=r"got LGES\. Fit the search first"):
        um.invariance(um.LGES(), SKEWED, groups="g")
    with pytest.raises(ModelError, match="name their column with groups="):
        um.invariance(TWO, SKEWED, groups=None)


def test_the_command(tmp_path) -> None:
    model, rows = tmp_path / "model.lav", tmp_path / "rows.csv"
    model.write_text(TWO)
    SKEWED.to_csv(rows, index=False)
    run = CliRunner().invoke(
        app, ["invariance", str(model), str(rows), "--groups", "g", "--out", str(tmp_path / "out")]
    )
    assert run.exit_code == 0
    assert "Latent means, a at zero" in run.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "steps.csv",
        "differences.csv",
        "latent_means.csv",
        "structure.csv",
    }
    run = CliRunner().invoke(app, ["invariance", str(model), str(rows), "--groups", "g", "--json"])
    assert json.loads(run.output)["groups"] == ["a", "b"]
    run = CliRunner().invoke(app, ["fit", str(model), str(rows), "--groups", "g", "--equal", "loadings"])
    assert run.exit_code == 0
    assert "equal across groups: 'loadings'" in run.output


def test_summaries_name_groups_and_missing_values() -> None:
    fit = um.fit(TWO, INCOMPLETE, groups="g", equal=("loadings", "intercepts"), estimator="MLR")
    text = fit.summary()
    assert "2 groups (N = 240: a 110, b 130)" in text
    assert "Yuan-Bentler" in text
    assert fit.latent_means["a"].abs().max() == 0.0
    assert "<GroupFit: chi2" in repr(fit)


def test_many_models_in_groups() -> None:
    graphs = [
        um.DAG.from_edges([("f", f"y{i}") for i in items], latents=["f"]) for items in ((1, 2, 3, 4), (2, 3, 4, 5))
    ]
    sample = um.as_sample(SKEWED.drop(columns="g"))
    many = um.fit_many(graphs, sample, groups=SKEWED["g"], equal="loadings")
    for graph, fit in zip(graphs, many, strict=True):
        assert fit.chi2 == pytest.approx(um.fit(graph, SKEWED, groups="g", equal="loadings").chi2)


def test_models_side_by_side_do_not_forget_constraints() -> None:
    text = "f =~ a*y1 + a*y2 + y3"
    with pytest.raises(ModelError, match="cannot have equal labels"):
        um.fit_many([parse(text)], um.as_sample(SKEWED.drop(columns="g")))


def test_units_do_not_matter() -> None:
    scale = pd.Series({"y1": 1000.0, "y2": 0.001, "y3": 1.0, "y4": 50.0, "y5": 1.0, "y6": 1e-4})
    rows = SKEWED.copy()
    rows[scale.index] *= scale
    equal = ("loadings", "intercepts", "residuals")
    here, there = um.fit(TWO, SKEWED, groups="g", equal=equal), um.fit(TWO, rows, groups="g", equal=equal)
    assert there.chi2 == pytest.approx(here.chi2, rel=1e-6)
    assert there.df == here.df
    pd.testing.assert_series_equal(there.parameters["std"], here.parameters["std"], atol=1e-5)


def test_rows_in_another_order_and_groups_renamed_give_the_same_fit() -> None:
    shuffled = SKEWED.sample(frac=1.0, random_state=2).replace({"g": {"a": "z"}})
    here = um.fit(TWO, SKEWED, groups="g", equal="loadings")
    assert um.fit(TWO, shuffled, groups="g", equal="loadings").chi2 == pytest.approx(here.chi2, abs=1e-8)


def skewed_rows() -> pd.DataFrame:
    """Two factors of three items in two groups, answers curved, with a covariate-free structure that both share."""
    rng = np.random.default_rng(11)
    f = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 700)
    f[400:, 0] += 0.4
    items = np.repeat(f, 3, axis=1) * [0.9, 0.8, 0.7, 0.9, 0.8, 0.7] + 0.6 * rng.normal(size=(700, 6))
    rows = pd.DataFrame(np.exp(0.7 * items), columns=["a1", "a2", "a3", "b1", "b2", "b3"])
    return rows.assign(school=np.repeat(["x", "y"], [400, 300]))


def test_one_structure_in_groups_has_one_chi_square_everywhere(tmp_path) -> None:
    """In the answer, in its file, in the groups' own fits and as the first step of invariance."""
    rows = skewed_rows()
    search = um.LGES().fit(rows, groups="school")
    assert "normal scores" in " ".join(search.remarks_)
    test = search.result_.of_groups
    kept = um.Result.from_json(search.result_.to_json())
    assert kept.of_groups == test
    first = [
        found.fits["configural"]
        for found in (
            search.invariance_,
            um.invariance(search, rows, groups="school"),
            um.invariance(kept, rows, groups="school"),
        )
    ]
    for fit in first:
        assert (fit.chi2, fit.df) == (pytest.approx(test["chi2"], abs=1e-4), test["df"])
    assert sum(result.fit.chi2 for result in search.group_results_.values()) == pytest.approx(test["chi2"])
    for where in (search.result_.summary(), screen(search.result_), " ".join(search.remarks_)):
        assert f"{test['chi2']:.2f} on {test['df']:.0f} df" in where
    # With model syntax the values are as they are, and the summary of the other says what was done to them.
    plain = um.invariance(search.result_.to_lavaan(), rows, groups="school")
    assert abs(plain.fits["configural"].chi2 - test["chi2"]) > 0.1
    assert "normal scores" in um.invariance(kept, rows, groups="school").summary()
    assert "normal scores" not in plain.summary()


def test_normal_scores_of_groups_are_on_one_scale() -> None:
    """A group whose values are all larger keeps its larger mean, and equal loadings stay equal."""
    rows = skewed_rows()
    search = um.LGES().fit(rows, groups="school")
    means = search.invariance_.latent_means
    assert means["mean"].abs().max() > 0.25
    # An order-preserving change of scale changes no rank. (Scores of more than 501 values are interpolated.)
    bent = um.LGES().fit(rows.assign(**{x: rows[x] ** 2 for x in rows.columns[:6]}), groups="school")
    assert bent.result_.of_groups["chi2"] == pytest.approx(search.result_.of_groups["chi2"], rel=1e-3)
    assert bent.invariance_.fits["loadings"].chi2 == pytest.approx(search.invariance_.fits["loadings"].chi2, rel=1e-3)


def test_a_covariate_that_is_too_far_from_zero_is_refused() -> None:
    """Where means are part of the model; its digits would be lost, and fits ended anywhere without a word."""
    age = SKEWED["y1"] + np.random.default_rng(0).normal(size=len(SKEWED))
    model = f"{TWO}\nf ~ age"
    near, far = (SKEWED.assign(age=age + shift * age.std()) for shift in (4_000.0, 20_000.0))
    centred = um.fit(model, SKEWED.assign(age=age - age.mean()), groups="g", equal="loadings")
    fit = um.fit(model, near, groups="g", equal="loadings")
    assert fit.chi2 == pytest.approx(centred.chi2, abs=1e-6)
    with pytest.raises(DataError, match=r"The mean of 'age' is .* times its standard deviation: .* Subtract a"):
        um.fit(model, far, groups="g", equal="loadings")
    alone = far.drop(columns="g")
    assert um.fit(model, alone, estimator="MLR").chi2_scaled == pytest.approx(
        um.fit(model, alone.assign(age=age), estimator="MLR").chi2_scaled, rel=1e-5
    )


def test_replicates_know_nothing_of_other_groups() -> None:
    shared = um.fit(PATH, SKEWED, groups="g", equal="loadings")
    with pytest.raises(ModelError, match="do not know what is equal across groups"):
        shared.fits["a"].effects("f", "h", bootstrap=50)
    free = um.fit(PATH, SKEWED, groups="g").fits["a"].effects("f", "h", bootstrap=50)
    alone = um.fit(PATH, SKEWED[SKEWED["g"] == "a"].drop(columns="g")).effects("f", "h", bootstrap=50)
    assert free["se"].to_numpy() == pytest.approx(alone["se"].to_numpy(), rel=1e-3)
