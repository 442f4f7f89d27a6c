"""Latents point one way: that of an indicator."""

from __future__ import annotations

import numpy as np
import pytest

import unmeasured as um
from unmeasured.sem.fit import fit_many


def reversed_items(*names: str) -> um.Sample:
    data = um.datasets.load("holzinger_swineford")
    sign = np.where(np.isin(data.names, names), -1.0, 1.0)
    return um.as_sample(cov=data.frame() * np.outer(sign, sign), n_samples=data.n_samples)


@pytest.mark.parametrize("reversed_", [(), ("x1",), ("x2", "x3"), ("x1", "x4", "x5", "x6")])
def test_model_text_points_the_way_of_the_first_indicator(reversed_: tuple[str, ...]) -> None:
    text = "visual =~ x1 + x2 + x3; textual =~ x4 + x5 + x6; speed =~ x7 + x8 + x9; speed ~ visual"
    fit = um.fit(text, reversed_items(*reversed_))
    rows = fit.parameters[fit.parameters["op"] == "=~"].groupby("lhs")["est"].first()
    assert (rows > 0).all()
    plain = um.fit(text, reversed_items())
    assert fit.chi2 == pytest.approx(plain.chi2)
    assert np.abs(fit.parameters["std"]).to_numpy() == pytest.approx(np.abs(plain.parameters["std"]), abs=1e-6)


def test_a_latent_that_is_tied_is_left_alone() -> None:
    fit = um.fit("f =~ x1 + 0.5*x2 + x3", reversed_items("x1"))
    assert fit.parameters["est"].iloc[0] < 0  # x2 has its sign from the model
    first = um.fit("f =~ x1 + x2 + x3", reversed_items("x2"), scale_latents="first-indicator")
    assert first.parameters["est"].iloc[0] == 1.0


def test_a_latent_with_a_fixed_covariance_is_left_alone() -> None:
    """Visual and textual are correlated by .46; fixed to -.9, one of the two has to point the other way."""
    fit = um.fit("f =~ x1 + x2 + x3; g =~ x4 + x5 + x6; f ~~ -0.9*g", reversed_items())
    R, implied = fit.sample.cov, fit.implied_cov
    again = np.linalg.slogdet(implied)[1] - np.linalg.slogdet(R)[1] + np.trace(np.linalg.solve(implied, R)) - len(R)
    assert fit.n_samples * again == pytest.approx(fit.chi2)  # of the estimates that are shown
    first = fit.parameters[fit.parameters["op"] == "=~"].groupby("lhs")["est"].first()
    assert first["f"] * first["g"] < 0


def test_a_latent_of_a_search_points_the_way_of_its_strongest_indicator() -> None:
    for some in ((), ("x4",), ("x5", "x6")):
        sample = reversed_items(*some)
        result = um.LGES().fit(sample).result_
        for group, items in result.indicators.items():
            if len(group) == 1:
                own = result.loadings[(result.loadings["latent"] == group[0])].set_index("indicator")["std"]
                pure = [x for x in items if sum(x in others for others in result.indicators.values()) == 1]
                assert own[pure].loc[own[pure].abs().idxmax()] > 0


def test_a_named_latent_points_the_way_of_the_first_item_it_was_given() -> None:
    known = um.Knowledge(groups={"words": ["x5", "x4"]})
    sample = reversed_items("x5")
    result = um.LGES(knowledge=known).fit(sample).result_
    own = result.loadings[result.loadings["latent"] == "words"].set_index("indicator")["std"]
    assert own["x5"] > 0 > own["x4"]
    renamed = um.Result.from_json(result.rename({"words": "verbal"}).to_json())
    again = renamed.loadings[renamed.loadings["latent"] == "verbal"].set_index("indicator")["std"]
    assert again["x5"] > 0 > again["x4"]


def test_estimates_have_their_last_digits_and_likelihoods_stay() -> None:
    data = um.datasets.load("political_democracy")
    text = "i =~ x1 + x2 + x3; d =~ y1 + y2 + y3 + y4; e =~ y5 + y6 + y7 + y8; d ~ i; e ~ i + d"
    fit = um.fit(text, cov=data.frame(), n_samples=data.n_samples)
    x = fit.estimates / fit.problem.pattern.unit(fit.problem.scale)
    assert np.abs(fit.problem.derivatives(x)[1]).max() < 1e-9
    assert np.abs(x - fit.solution.x).max() < 1e-3
    assert fit_many([fit.graph], fit.sample)[0].chi2 == fit.chi2
