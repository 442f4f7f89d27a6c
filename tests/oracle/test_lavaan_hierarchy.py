"""Fits with latents above latents against lavaan's answers, stored beside the script that asked for them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.models.lavaan import parse

STORED = json.loads((Path(__file__).parent / "lavaan_hierarchy.json").read_text("utf-8"))
NAMES = [f"X{j + 1}" for j in range(16)]
COV = pd.DataFrame(STORED["cov"], NAMES, NAMES)


def graph_of(text: str) -> um.DAG:
    """The graph of model text without covariances."""
    model = parse(text, correlate_exogenous=False)
    edges = [(row.source, row.target) for row in model.parameters if row.op != "~~"]
    return um.DAG.from_edges(edges, latents=model.latents, names=[*model.latents, *model.observed])


@pytest.mark.parametrize("name", sorted(STORED["models"]))
@pytest.mark.parametrize("form", ["text", "graph"])
def test_fits_equal_lavaan(name: str, form: str) -> None:
    answer = STORED["models"][name]
    text = answer["text"]
    names = [x for x in NAMES if x in parse(text).observed]
    cov = COV.loc[names, names]
    fit = um.fit(text if form == "text" else graph_of(text), cov=cov, n_samples=800)
    for index, value in answer["indices"].items():
        assert getattr(fit, {"chisq": "chi2"}.get(index, index)) == pytest.approx(value, rel=1e-5, abs=1e-5)
    # A graph has no operators: a latent with a single edge, to a trait, is one of its facets.
    table = {
        frozenset((lhs, rhs)): std
        for lhs, rhs, std in zip(*(fit.parameters[key] for key in ("lhs", "rhs", "std")), strict=True)
        if lhs != rhs
    }
    assert len(table) == len(answer["std"])
    for lhs, rhs, std in zip(*(answer[key] for key in ("lhs", "rhs", "std")), strict=True):
        assert abs(table[frozenset((lhs, rhs))]) == pytest.approx(abs(std), abs=1e-4)


def test_what_a_result_writes_is_read_back_with_the_same_fit() -> None:
    text = STORED["models"]["two_traits"]["text"]
    dag = graph_of(text)
    assert dag.facets == {"T1": ("F1", "F2", "F3", "F4"), "T2": ("F5", "F6", "F7", "F8")}
    result = um.Result(dag.cpdag(), um.fit(dag, cov=COV, n_samples=800))
    again = um.fit(result.to_lavaan(), cov=COV, n_samples=800, scale_latents="variance", correlate_exogenous=True)
    assert again.chi2 == pytest.approx(result.fit.chi2, abs=1e-5)
    assert again.df == result.fit.df
    # The facets of T1, the strongest first.
    strongest = result.leading_items["T1"]
    rest = [x for x in ("F1", "F2", "F3", "F4") if x != strongest]
    assert f"T1 =~ {' + '.join([strongest, *rest])}" in result.to_lavaan()
    assert "T2 ~ T1" in result.to_lavaan()
    assert um.Result.from_json(result.to_json()).graph == result.graph
    # The loadings of traits on their facets have a positive sum, so that all of this model are positive.
    assert (result.loadings["std"] > 0).all()
    assert np.isfinite(result.loadings["std_se"]).all()
