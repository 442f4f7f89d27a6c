"""Signs of latents follow one rule: the loadings of a latent's own items have a positive sum."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.data.prepare import prepared
from unmeasured.models.fit import fit_many

TEXT = "visual =~ x1 + x2 + x3; textual =~ x4 + x5 + x6; speed =~ x7 + x8 + x9; speed ~ visual"


def reversed_items(*names: str) -> um.Sample:
    data = um.datasets.load("holzinger_swineford")
    sign = np.where(np.isin(data.names, names), -1.0, 1.0)
    return um.as_sample(cov=data.frame() * np.outer(sign, sign), n_samples=data.n_samples)


def rows_of_two_schools(seed: int = 0) -> pd.DataFrame:
    """Two factors of three items; the second sample has a higher mean of both, and a bipolar third item."""
    rng = np.random.default_rng(seed)
    f = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], 600)
    f[300:] += [0.8, -0.6]
    loadings = np.array([[0.8, 0.7, -0.6, 0.3, 0, 0], [0, 0, 0, 0.8, 0.7, 0.9]])
    items = f @ loadings + rng.normal(size=(600, 6)) * 0.6
    rows = pd.DataFrame(items, columns=[f"x{i}" for i in range(1, 7)])
    return rows.assign(school=np.repeat(["a", "b"], 300))


def loadings(table: pd.DataFrame) -> pd.Series:
    return table[table["op"] == "=~"].set_index(["lhs", "rhs"])["std"].sort_index()


@pytest.mark.parametrize("reversed_", [(), ("x1",), ("x2", "x3"), ("x1", "x4", "x5", "x6")])
def test_the_own_items_of_a_latent_have_a_positive_sum(reversed_: tuple[str, ...]) -> None:
    fit = um.fit(TEXT, reversed_items(*reversed_))
    assert (loadings(fit.parameters).groupby("lhs").sum() > 0).all()
    plain = um.fit(TEXT, reversed_items())
    assert fit.chi2 == pytest.approx(plain.chi2)
    assert np.abs(fit.parameters["std"]).to_numpy() == pytest.approx(np.abs(plain.parameters["std"]), abs=1e-6)


def test_a_cross_loading_has_no_say_wherever_it_is_written() -> None:
    # Of the model that a search finds in these rows: x3 loads on the second latent with -.24.
    orders = ["x3 + x4 + x5 + x6", "x4 + x5 + x6 + x3", "x5 + x3 + x6 + x4"]
    data = um.datasets.load("holzinger_swineford")
    fits = [
        um.fit(
            f"verbal =~ {order}; visual =~ x9 + x3 + x1 + x2; speed =~ x9 + x7 + x8; verbal ~ visual; speed ~ visual;"
            "verbal ~~ 0*speed",
            cov=data.frame(),
            n_samples=data.n_samples,
        )
        for order in orders
    ]
    first = loadings(fits[0].parameters)
    assert first["verbal", "x3"] < -0.1 < 0.8 < first["verbal", "x5"]
    for fit in fits[1:]:
        assert loadings(fit.parameters).to_numpy() == pytest.approx(first.to_numpy(), abs=1e-6)


@pytest.mark.parametrize("sample", [(), ("x3",), ("x1", "x2"), ("x5", "x9")])
def test_neither_the_order_of_columns_nor_that_of_items_matters(sample: tuple[str, ...]) -> None:
    data = reversed_items(*sample)
    found = []
    for k, order in enumerate(permutations(["x1", "x2", "x3"])):
        names = np.roll(data.names, k).tolist()
        text = f"speed =~ x9 + x1 + x8 + x7; textual =~ x6 + x4 + x5; visual =~ {' + '.join(order)}; speed ~ visual"
        fit = um.fit(text, data.select(names))
        found.append(loadings(fit.parameters).to_numpy())
    assert np.array(found) == pytest.approx(np.tile(found[0], (len(found), 1)), abs=1e-5)


def test_a_search_gives_the_same_signs_whatever_the_order_of_columns() -> None:
    rows = rows_of_two_schools().drop(columns="school")
    tables = []
    for order in (list(rows), list(rows)[::-1], ["x4", "x3", "x1", "x6", "x2", "x5"]):
        table = um.LGES(cor="pearson").fit(rows[order]).result_.loadings
        tables.append(table.groupby("indicator")["std"].apply(lambda x: sorted(x.round(4))))
    assert tables[0]["x3"][0] < -0.5
    for table in tables[1:]:
        assert table.to_dict() == tables[0].to_dict()


def test_the_marker_decides() -> None:
    fit = um.fit("f =~ x1 + 0.5*x2 + x3", reversed_items("x1"))
    assert fit.parameters["est"].iloc[0] < 0  # x2 has its sign from the model
    first = um.fit("f =~ x1 + x2 + x3", reversed_items("x1"), scale_latents="first-indicator")
    assert first.parameters["est"].iloc[0] == 1.0
    assert (first.parameters["est"][1:3] < 0).all()


def test_authors_scoring_decides_where_it_is_known() -> None:
    data = um.datasets.load("big_five")
    text = data.models["goldberg_correlated"].text
    fit = um.fit(text, cov=data.frame(), n_samples=data.n_samples)
    std = loadings(fit.parameters).reset_index()
    negative = std["rhs"].isin(data.reverse_keyed)
    assert (std["std"][negative] < 0).all()
    assert (std["std"][~negative] > 0).all()
    # Without the key the sum of openness is decided by five items of both kinds.
    turned = data.frame()
    turned.attrs["reverse_keyed"] = ["O1", "O3", "O5"]
    other = loadings(um.fit(text, cov=turned, n_samples=data.n_samples).parameters)
    assert other["FO", "O2"] > 0 > other["FO", "O1"]
    result = um.LGES().fit_cov(data.frame(), data.n_samples).result_
    kept = um.Result.from_json(result.to_json())
    assert set(kept.sem.sample.reverse_keyed) == set(data.reverse_keyed)
    assert kept.loadings["std"].to_numpy() == pytest.approx(result.loadings["std"].to_numpy())


def test_a_latent_with_a_fixed_covariance_is_left_alone() -> None:
    """Visual and textual are correlated by .46; fixed to -.9, one of the two has to point the other way."""
    fit = um.fit("f =~ x1 + x2 + x3; g =~ x4 + x5 + x6; f ~~ -0.9*g", reversed_items())
    R, implied = fit.sample.cov, fit.implied_cov
    again = np.linalg.slogdet(implied)[1] - np.linalg.slogdet(R)[1] + np.trace(np.linalg.solve(implied, R)) - len(R)
    assert fit.n_samples * again == pytest.approx(fit.chi2)  # of the estimates that are shown
    first = fit.parameters[fit.parameters["op"] == "=~"].groupby("lhs")["est"].first()
    assert first["f"] * first["g"] < 0


def test_items_that_are_reversed_before_an_analysis_change_the_key() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 5], "b": [5, 4, 1, 2], "c": [2, 2, 1, 4]})
    frame.attrs["reverse_keyed"] = ["b"]
    assert um.as_sample(prepared(frame, reverse=["b"]).frame).reverse_keyed == ()
    assert um.as_sample(prepared(frame, reverse=["a"]).frame).reverse_keyed == ("a", "b")


@pytest.mark.parametrize("names", [(), ("x1", "x2", "x3"), ("x4", "x5", "x6", "x7", "x8", "x9")])
@pytest.mark.parametrize("order", ["v + t + s", "s + v + t"])
def test_latents_above_latents_have_a_positive_sum_too(names: tuple[str, ...], order: str) -> None:
    fit = um.fit(f"g =~ {order}; v =~ x1 + x2 + x3; t =~ x4 + x5 + x6; s =~ x7 + x8 + x9", reversed_items(*names))
    std = loadings(fit.parameters)
    assert (std[["v", "t", "s"]] > 0).all()  # reversed together, items have positive loadings again
    assert std["g"].sum() > 0
    assert (std["g"] < 0).tolist() == ([False, False, True] if names else [False] * 3)  # s, t, v


@pytest.mark.parametrize("equal", [(), ("loadings",), ("loadings", "intercepts")])
@pytest.mark.parametrize("order", ["x1 + x2 + x3", "x3 + x2 + x1"])
def test_groups_of_people_share_the_signs(equal: tuple[str, ...], order: str) -> None:
    rows = rows_of_two_schools()
    for frame in (rows, rows.iloc[::-1]):
        fit = um.fit(f"f =~ {order} + x4; g =~ x4 + x5 + x6", frame, groups="school", equal=equal)
        std = fit.parameters[fit.parameters["op"] == "=~"].set_index(["group", "lhs", "rhs"])["std"]
        for group in "ab":
            assert std[group, "f", "x1"] > 0 > std[group, "f", "x3"]
            assert std[group, "g", "x6"] > 0
        if "intercepts" in equal:
            means = fit.latent_means["b"] - fit.latent_means["a"]
            assert means["f"] > 0.5
            assert means["g"] < -0.4


def test_latent_means_of_a_group_are_those_of_every_command() -> None:
    rows = rows_of_two_schools()
    result = um.LGES(cor="pearson").fit(rows, groups="school").result_
    found = [um.invariance(model, rows, groups="school").latent_means for model in (result, result.to_lavaan())]
    assert found[0]["mean"].to_numpy() == pytest.approx(found[1]["mean"].to_numpy(), abs=1e-4)


def test_latents_with_equal_loadings_change_their_signs_together() -> None:
    data = reversed_items("x1", "x2", "x3", "x4", "x5", "x6")
    fit = um.fit("f =~ a*x1 + x2 + x3; g =~ a*x4 + x5 + x6; f ~~ g", data)
    std = loadings(fit.parameters)
    assert (std.groupby("lhs").sum() > 0).all()
    one = um.fit("f =~ a*x1 + x2 + x3; g =~ a*x4 + x5 + x6; f ~~ g", reversed_items("x2", "x3"))
    est = one.parameters[one.parameters["op"] == "=~"].set_index("rhs")["est"]
    assert est["x1"] == pytest.approx(est["x4"])


def test_estimates_in_other_rows_point_the_way_of_the_answer() -> None:
    rows = rows_of_two_schools().drop(columns="school")
    first, second = um.split_rows(rows)
    found = um.LGES(cor="pearson").fit(first)
    assert um.confirm(found, second).edges["same_sign"].all()


def test_the_leading_item_is_the_strongest_own_item_with_a_positive_loading() -> None:
    data = um.datasets.load("big_five")
    result = um.LGES().fit_cov(data.frame(), data.n_samples).result_
    table = result.loadings.assign(size=result.loadings["std"].abs())
    main = table.loc[table.groupby("indicator")["size"].idxmax()]
    positive = main[main["std"] > 0]
    strongest = positive.loc[positive.groupby("latent")["std"].idxmax()].set_index("latent")["indicator"].to_dict()
    assert result.leading_items == strongest
    for latent, item in strongest.items():
        assert f"{latent} =~ {item} + " in result.to_lavaan()


def test_estimates_have_their_last_digits_and_likelihoods_stay() -> None:
    data = um.datasets.load("political_democracy")
    text = "i =~ x1 + x2 + x3; d =~ y1 + y2 + y3 + y4; e =~ y5 + y6 + y7 + y8; d ~ i; e ~ i + d"
    fit = um.fit(text, cov=data.frame(), n_samples=data.n_samples)
    x = fit.estimates / fit.problem.pattern.unit(fit.problem.scale)
    assert np.abs(fit.problem.derivatives(x)[1]).max() < 1e-9
    assert np.abs(x - fit.solution.x).max() < 1e-3
    assert fit_many([fit.graph], fit.sample)[0].chi2 == fit.chi2
