"""Defined parameters and scores with equal labels, groups, means and ordinal items against lavaan."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from lavaan_rows import DRAWN, ROOT
from unmeasured.models.fit import Fit
from unmeasured.models.multigroup import GroupFit

ORACLE = json.loads((ROOT / "tests" / "oracle" / "lavaan_labels.json").read_text("utf-8"))["fits"]


def numbers(name: str) -> pd.DataFrame:
    return DRAWN[name].drop(columns="g", errors="ignore")


def fitted(oracle: dict) -> Fit | GroupFit:
    return um.fit(
        oracle["model"],
        DRAWN[oracle["rows"]] if oracle["groups"] else numbers(oracle["rows"]),
        groups=oracle["groups"],
        equal=oracle["equal"],
        estimator="WLSMV" if oracle["ordered"] else "ML",
        missing="fiml" if oracle["missing"] == "fiml" else "ml",
    )


@pytest.mark.parametrize("oracle", ORACLE, ids=lambda oracle: oracle["model"].rsplit("\n", 1)[-1])
def test_defined_parameters_equal_lavaans(oracle: dict) -> None:
    table = fitted(oracle).parameters
    table = table[table["op"] == ":="].set_index("lhs")
    assert list(table.index) == [name for name, _, _ in oracle["defined"]]
    for name, est, se in oracle["defined"]:
        assert table.loc[name, "est"] == pytest.approx(est, abs=2e-4), name
        assert table.loc[name, "se"] == pytest.approx(se, abs=2e-4), name


@pytest.mark.parametrize("oracle", [o for o in ORACLE if o["scores"]], ids=lambda oracle: oracle["rows"])
def test_scores_equal_lavaans(oracle: dict) -> None:
    fit, rows = fitted(oracle), DRAWN[oracle["rows"]]
    if isinstance(fit, GroupFit):
        parts = [share.scores(rows[rows[oracle["groups"]] == g][:5]) for g, share in fit.fits.items()]
        found = np.concatenate([part.to_numpy() for part in parts])
    else:
        found = fit.scores(rows[:5]).to_numpy()
    assert found == pytest.approx(np.array(oracle["scores"]), abs=1e-3)


def test_effects_of_a_fit_with_equal_labels_have_the_errors_of_their_parameters() -> None:
    rows = numbers("skewed")
    fit = um.fit("f =~ a*y1 + a*y2 + y3\nh =~ y4 + y5 + y6\nh ~ f", rows)
    (direct,) = fit.effects("f", "h").query("kind == 'direct'").to_dict(orient="records")
    path = fit.parameters.query("op == '~'").iloc[0]
    assert direct["est"] == pytest.approx(path["est"])
    assert direct["se"] == pytest.approx(path["se"], rel=1e-6)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6\ny1 ~ 1", {}),
        ("f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6", {"missing": "fiml"}),
    ],
)
def test_what_is_not_defined_with_means_is_refused(model: str, options: dict) -> None:
    fit = um.fit(model, numbers("incomplete"), **options)
    with pytest.raises(um.UnmeasuredError, match="Standardised residuals are for"):
        fit.residuals("standardised")
    assert fit.residuals().shape == (6, 6)
