"""Models whose structure is given: every estimator, missing values, groups of people, constraints, means."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import unmeasured as um
from benchmarks.golden.cases import inputs
from benchmarks.golden.cases.table import Table
from unmeasured.models.fit import Fit

TABLE = Table()

_PATH = f"{inputs.TWO_FACTORS}; g ~ f"


def _rows() -> pd.DataFrame:
    return inputs.people()[inputs.ITEMS]


def _holes() -> pd.DataFrame:
    return inputs.with_holes(_rows())


def _ordinal() -> pd.DataFrame:
    return inputs.five_categories(_rows(), "skewed")


def _grouped() -> pd.DataFrame:
    return inputs.people()[[*inputs.ITEMS, "country"]]


def _grouped_holes() -> pd.DataFrame:
    return _holes().assign(country=inputs.people()["country"])


def _published(data: str, name: str) -> Fit:
    model = um.datasets.load(data).models[name]
    return um.fit(model.text, inputs.bundled(data), correlate_exogenous=model.correlate_exogenous)


for _data_set in um.datasets.available():
    for _name in um.datasets.load(_data_set).models:
        TABLE.add(f"fits/published, {_name}", partial(_published, _data_set, _name))


def _fit(model: str, data: Any, **options: Any) -> Any:
    return um.fit(model, data(), **options)


for _label, _model, _data, _options in (
    ("ML", _PATH, _rows, {}),
    ("MLM", _PATH, _rows, {"estimator": "MLM"}),
    ("MLR", _PATH, _rows, {"estimator": "MLR"}),
    ("WLSMV", _PATH, _ordinal, {"estimator": "WLSMV"}),
    ("ML of polychorics", _PATH, _ordinal, {"cor": "polychoric"}),
    ("scores of ranks", _PATH, _rows, {"cor": "spearman-normal"}),
    ("ML, holes", _PATH, _holes, {}),
    ("full information, holes", _PATH, _holes, {"missing": "fiml"}),
    ("MLR, holes", _PATH, _holes, {"estimator": "MLR"}),
    ("listwise, holes", _PATH, _holes, {"missing": "listwise"}),
    ("pairwise, holes", _PATH, _holes, {"missing": "pairwise"}),
    ("loadings give the scale", _PATH, _rows, {"scale_latents": "first-indicator"}),
    ("latents without covariances", inputs.TWO_FACTORS, _rows, {"correlate_exogenous": False}),
    ("parameters counted", _PATH, _rows, {"count": "parameters"}),
    ("equal labels", f"{inputs.TWO_FACTORS}; a1 ~~ v*a1; a2 ~~ v*a2; a3 ~~ v*a3", _rows, {}),
    ("defined", "f =~ p*a1 + q*a2 + a3 + a4; g =~ b1 + b2 + b3 + b4; g ~ b*f; x := p*b; y := p - q", _rows, {}),
    ("means", f"{inputs.TWO_FACTORS}; a1 ~ 1; f ~ 0*1", _rows, {}),
    ("a residual pair", f"{_PATH}; a1 ~~ b1", _rows, {}),
    ("two groups", _PATH, _grouped, {"groups": "country"}),
    ("two groups, equal loadings", _PATH, _grouped, {"groups": "country", "equal": ["loadings"]}),
    (
        "two groups, equal intercepts",
        _PATH,
        _grouped,
        {"groups": "country", "equal": ["loadings", "intercepts", "regressions"]},
    ),
    ("two groups, MLR", _PATH, _grouped, {"groups": "country", "equal": ["loadings"], "estimator": "MLR"}),
    ("two groups, MLM", _PATH, _grouped, {"groups": "country", "equal": ["loadings"], "estimator": "MLM"}),
    ("two groups, holes", _PATH, _grouped_holes, {"groups": "country", "equal": ["loadings"]}),
):
    TABLE.add(f"fits/{_label}", partial(_fit, _model, _data, **_options))


@TABLE.case("fits/a covariate and an outcome")
def _() -> Any:
    return um.fit(f"{_PATH}; f ~ age; a4 ~ age; income ~ g", inputs.people().drop(columns="country"))


@TABLE.case("fits/observed variables alone")
def _() -> Any:
    return um.fit("a2 ~ a1; a3 ~ a1 + a2", _rows())


@TABLE.case("fits/a graph, a population")
def _() -> Any:
    dag = inputs.suite_graph("realistic", 2)
    parameters = um.simulate.realistic_parameters(dag, np.random.default_rng(2))
    return um.fit(dag, cov=parameters.cov(), n_samples=math.inf, names=parameters.observed)


@TABLE.case("fits/latents above latents")
def _() -> Any:
    model = um.simulate.hierarchy(n_traits=1, n_facets=4, n_items=3, rng=3)
    return um.fit(model.dag, um.simulate.sample(model, 500, rng=3))


@TABLE.case("fits/many at once")
def _() -> Any:
    sample = inputs.bundled("political_democracy")
    graphs = [um.LGES(penalty=penalty, tolerance=0).fit(sample).graph_ for penalty in (0.5, 1.0, 4.0)]
    return {str(k): fit for k, fit in enumerate(um.fit_many(graphs, sample))}
