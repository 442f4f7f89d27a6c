"""Reliability is of a latent's own items, each reversed by the sign of its loading on that latent."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import unmeasured as um

#     f ──► a1 a2 a3 a4        a3 is reversed; b1 loads on f too, with a negative sign, and belongs to g
#     g ──► b1 b2 b3
TEXT = "f =~ a1 + b1 + a2 + a3 + a4; g =~ b1 + b2 + b3; f ~~ g"


def rows(n: int = 800) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    f, g = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], n).T
    e = rng.normal(size=(n, 7))
    return pd.DataFrame(
        {
            "a1": f + 0.7 * e[:, 0],
            "a2": 0.8 * f + 0.8 * e[:, 1],
            "a3": -0.7 * f + 0.9 * e[:, 2],
            "a4": 0.9 * f + 0.6 * e[:, 3],
            "b1": 0.9 * g - 0.4 * f + 0.6 * e[:, 4],
            "b2": 0.8 * g + 0.7 * e[:, 5],
            "b3": g + 0.8 * e[:, 6],
        }
    )


def cronbach(items: pd.DataFrame) -> float:
    """The textbook's formula on rows."""
    k = items.shape[1]
    return k / (k - 1) * (1 - items.var(ddof=1).sum() / items.sum(axis=1).var(ddof=1))


@pytest.mark.parametrize("text", [TEXT, "g =~ b2 + b3 + b1; f =~ b1 + a4 + a3 + a2 + a1; f ~~ g"])
def test_alpha_is_cronbachs_of_the_own_items(text: str) -> None:
    data = rows()
    table = um.fit(text, data).reliability().table
    assert set(table.loc["f", "indicators"].split(", ")) == {"a1", "a2", "−a3", "a4"}
    assert set(table.loc["g", "indicators"].split(", ")) == {"b1", "b2", "b3"}
    assert table["items"].to_dict() == {"f": 4, "g": 3}
    own = data[["a1", "a2", "a3", "a4"]].assign(a3=-data["a3"])
    assert table.loc["f", "alpha"] == pytest.approx(cronbach(own), abs=1e-12)
    assert table.loc["g", "alpha"] == pytest.approx(cronbach(data[["b1", "b2", "b3"]]), abs=1e-12)


def test_omega_is_the_squared_correlation_of_the_sum_with_the_latent() -> None:
    data = rows()
    fit = um.fit(TEXT, data)
    est = fit.parameters.set_index(["lhs", "op", "rhs"])["est"]
    table = fit.reliability().table
    # McDonald's formula by hand: the items of f measure nothing else.
    own = np.array([est["f", "=~", x] for x in ("a1", "a2", "a4")] + [-est["f", "=~", "a3"]])
    t = sum(est[x, "~~", x] for x in ("a1", "a2", "a3", "a4"))
    assert table.loc["f", "omega"] == pytest.approx(own.sum() ** 2 / (own.sum() ** 2 + t), abs=1e-9)
    assert table.loc["f", "ave"] == pytest.approx((own**2).sum() / ((own**2).sum() + t), abs=1e-9)
    # That of g by simulation from the estimates.
    rng = np.random.default_rng(0)
    r = est["f", "~~", "g"]
    f, g = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], 1_000_000).T
    total = sum(
        est["g", "=~", x] * g + math.sqrt(est[x, "~~", x]) * rng.normal(size=len(g)) for x in ("b1", "b2", "b3")
    )
    total += est["f", "=~", "b1"] * f
    assert table.loc["g", "omega"] == pytest.approx(np.corrcoef(total, g)[0, 1] ** 2, abs=0.002)
    assert est["f", "=~", "b1"] < -0.2


def test_a_latent_without_items_of_its_own_has_no_reliability() -> None:
    data = rows()
    fit = um.fit("f =~ a1 + a2 + a3 + a4; g =~ b1 + b2 + b3; weak =~ a1 + b2; weak ~~ 0*f + 0*g; f ~~ g", data)
    found = fit.reliability()
    assert found.table.loc["weak", "items"] == 0
    assert found.table.loc["weak", ["omega", "alpha", "ave"]].isna().all()
    assert any(sentence.startswith("weak: every item that loads on it loads more") for sentence in found.sentences)


def test_what_other_moments_the_figures_are_of_is_said() -> None:
    data = rows()
    coarse = data.apply(lambda x: pd.Categorical(np.digitize(x, [-1, 0, 1]), ordered=True))
    text = "f =~ a1 + a2 + a3 + a4; g =~ b1 + b2 + b3; f ~~ g"
    assert "polychoric" in um.fit(text, coarse, cor="auto").reliability().sentences[-1]
    assert "normal scores" in um.fit(text, data, cor="spearman-normal").reliability().sentences[-1]
    assert "scores" not in um.fit(text, data).reliability().sentences[-1]


def test_items_that_two_latents_share_count_once_in_a_result() -> None:
    result = um.LGES(cor="pearson").fit(rows(2000)).result_
    table = result.reliability().table
    named = [x.lstrip("−") for own in table["indicators"] for x in own.split(", ")]
    assert sorted(named) == sorted(rows())
    for own in table["indicators"]:
        items = pd.DataFrame({x: -rows(2000)[x[1:]] if x[0] == "−" else rows(2000)[x] for x in own.split(", ")})
        assert cronbach(items) == pytest.approx(table.set_index("indicators").loc[own, "alpha"], abs=1e-9)
