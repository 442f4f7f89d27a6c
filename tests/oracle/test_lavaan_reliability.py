"""Omega, AVE, alpha and HTMT beside lavaan and base R (``lavaan_reliability.R``; lavaan 0.6-14, 2026-11-16)."""

from __future__ import annotations

import numpy as np
import pytest

import unmeasured as um

# What the script printed. Here x2 and x8 are reversed: they must be turned back before items are summed.
THEIRS = {
    "omega_visual": 0.626881890,
    "ave_visual": 0.370338075,
    "omega_speed": 0.570748802,  # with a residual covariance of x7 and x8
    "ave_speed": 0.420005908,
    "alpha_visual": 0.627183854,
    "htmt": 0.466549738,
}
TEXT = "visual =~ x1 + x2 + x3; textual =~ x4 + x5 + x6; speed =~ x7 + x8 + x9; x7 ~~ x8"


@pytest.fixture(scope="module")
def found():
    data = um.datasets.load("holzinger_swineford")
    sign = np.where(np.isin(data.names, ["x2", "x8"]), -1.0, 1.0)
    return um.fit(TEXT, cov=data.frame() * np.outer(sign, sign), n_samples=data.n_samples).reliability()


def test_figures_are_lavaans(found) -> None:
    for key in ("omega_visual", "ave_visual", "omega_speed", "ave_speed", "alpha_visual"):
        column, latent = key.split("_")
        assert found.table.loc[latent, column] == pytest.approx(THEIRS[key], abs=2e-5)
    assert found.htmt.loc["visual", "speed"] == pytest.approx(THEIRS["htmt"], abs=1e-8)


def test_the_table_of_fornell_and_larcker(found) -> None:
    table = found.fornell_larcker
    assert np.diag(table) == pytest.approx(np.sqrt(found.table["ave"]))
    off = found.fit.parameters.set_index(["lhs", "op", "rhs"]).loc[("visual", "~~", "textual"), "est"]
    assert table.loc["visual", "textual"] == pytest.approx(off)


def test_a_shared_item_counts_for_the_latent_it_loads_on_more() -> None:
    """The ratio of visual and speed is that without the cross-loading of x9."""
    data = um.datasets.load("holzinger_swineford")
    shared = "visual =~ x1 + x2 + x3 + x9; speed =~ x7 + x8 + x9; textual =~ x4 + x5 + x6"
    htmt = um.fit(shared, cov=data.frame(), n_samples=data.n_samples).reliability().htmt
    assert htmt.loc["visual", "speed"] == pytest.approx(THEIRS["htmt"], abs=1e-8)


def test_what_the_cuts_say() -> None:
    data = um.datasets.load("holzinger_swineford")
    split = "a =~ x4 + x5; b =~ x6 + x1; c =~ x7 + x8 + x9"
    words = um.fit(split, cov=data.frame(), n_samples=data.n_samples).reliability()
    assert any("a and b are hardly told apart: " in sentence for sentence in words.sentences)
    assert "a: reliability is good" in words.sentences[0]
    single = um.fit("f =~ x1 + x2 + x3; g =~ x4; f ~~ g", cov=data.frame(), n_samples=data.n_samples).reliability()
    assert "g: one indicator" in single.sentences[1]
    assert np.isnan(single.table.loc["g", "alpha"])
    with pytest.raises(um.ModelError, match="no latent with observed indicators"):
        _ = um.fit("x1 ~ x2", cov=data.frame(), n_samples=data.n_samples).reliability().table


def test_a_loading_of_zero_is_no_item() -> None:
    data = um.datasets.load("holzinger_swineford")
    texts = ("f =~ x1 + x2 + x3; g =~ x4 + x5 + x6", "f =~ x1 + x2 + x3; g =~ 0*x1 + x4 + x5 + x6")
    tables = [um.fit(text, cov=data.frame(), n_samples=data.n_samples).reliability().table for text in texts]
    assert tables[1].loc["g"].to_list() == pytest.approx(tables[0].loc["g"].to_list())
