"""What is done with an answer: scores, effects, invariance, confirmation, stability, comparison, checks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import unmeasured as um
from benchmarks.golden import describe
from benchmarks.golden.cases import inputs
from benchmarks.golden.cases.table import Table
from unmeasured.models.fit import Fit
from unmeasured.results.invariance import Invariance
from unmeasured.validation.replicates.result import Stability

TABLE = Table()

_PATH = f"{inputs.TWO_FACTORS}; g ~ f"


def _democracy() -> Fit:
    text = "ind60 =~ x1 + x2 + x3; dem60 =~ y1 + y2 + y3 + y4; dem65 =~ y5 + y6 + y7 + y8"
    return um.fit(f"{text}; dem60 ~ ind60; dem65 ~ ind60 + dem60", inputs.bundled("political_democracy"))


def _found() -> um.LGES:
    return um.LGES().fit(inputs.people()[inputs.ITEMS])


# Scores -----------------------------------------------------------------------------------------------------


@TABLE.case("scores/regression")
def _() -> Any:
    rows = inputs.people()
    return um.fit(_PATH, rows[inputs.ITEMS]).scores(rows[:40], standard_errors=True)


@TABLE.case("scores/Bartlett, rows with holes")
def _() -> Any:
    rows = inputs.with_holes(inputs.people()[inputs.ITEMS], 0.3)
    return um.fit(_PATH, rows).scores(rows[:60], "bartlett", standard_errors=True)


@TABLE.case("scores/ordinal items")
def _() -> Any:
    rows = inputs.five_categories(inputs.people()[inputs.ITEMS])
    return um.fit(_PATH, rows, cor="polychoric").scores(rows[:40], standard_errors=True)


@TABLE.case("scores/of a search")
def _() -> Any:
    rows = inputs.people()[inputs.ITEMS]
    return um.LGES().set_output(transform="pandas").fit(rows).transform(rows)


@TABLE.case("scores/weights and determinacy")
def _() -> Any:
    fit = _democracy()
    return {
        "regression": fit.score_weights(),
        "Bartlett": fit.score_weights("bartlett"),
        "determinacy": fit.determinacy().select_dtypes("number"),
    }


# Effects, reliability, local fit ----------------------------------------------------------------------------


@TABLE.case("effects/of a model")
def _() -> Any:
    return describe.effects(_democracy().effects())


@TABLE.case("effects/replicates of rows", cost=3.0)
def _() -> Any:
    fit = um.fit(_PATH, inputs.people()[inputs.ITEMS])
    return describe.effects(fit.effects("f", "g", bootstrap=50, rng=1))


@TABLE.case("effects/replicates of a matrix", cost=3.0)
def _() -> Any:
    return describe.effects(_democracy().effects("ind60", "dem65", bootstrap=50, rng=1))


def _class_effects(name: str) -> Any:
    return um.LGES().fit(inputs.bundled(name)).result_.effects()


for _name in ("multitasking", "political_democracy", "big_five"):
    TABLE.add(f"effects/of a class, {_name}", partial(_class_effects, _name))


@TABLE.case("effects/with covariates and outcomes")
def _() -> Any:
    rows = inputs.people().drop(columns="country")
    return um.LGES(covariates=["age"], outcomes=["income"]).fit(rows).result_.effects()


@TABLE.case("local-fit/of a model")
def _() -> Any:
    fit = _democracy()
    return {
        "reliability": fit.reliability(),
        "residual correlations": fit.residuals(),
        "modification": describe.modification_indices(fit.modification_indices(3.0)),
    }


@TABLE.case("local-fit/of a search")
def _() -> Any:
    result = um.LGES().fit(inputs.bundled("big_five")).result_
    return {
        "reliability": result.reliability(),
        "modification": describe.modification_indices(result.modification_indices()),
    }


# Groups of people, other rows, replicates -------------------------------------------------------------------


def _invariance(model: Any, **options: Any) -> Invariance:
    return um.invariance(model, inputs.people()[[*inputs.ITEMS, "country"]], groups="country", **options)


TABLE.add("invariance/ML", partial(_invariance, _PATH), cost=2.0)
TABLE.add("invariance/MLM, covariances", partial(_invariance, inputs.TWO_FACTORS, estimator="MLM"), cost=2.0)
TABLE.add("invariance/of a search", lambda: _invariance(_found()), cost=2.0)


@TABLE.case("invariance/rows with holes", cost=3.0)
def _() -> Any:
    rows = inputs.with_holes(inputs.people()[inputs.ITEMS]).assign(country=inputs.people()["country"])
    return um.invariance(_PATH, rows, groups="country")


@TABLE.case("confirmation/half of the rows")
def _() -> Any:
    first, second = um.split_rows(inputs.people()[inputs.ITEMS], 0.5, rng=2)
    return um.confirm(um.LGES().fit(first), second)


@TABLE.case("confirmation/by groups, with a covariate")
def _() -> Any:
    first, second = (part.drop(columns="country") for part in um.split_rows(inputs.people(), 0.4, by="country", rng=3))
    return um.confirm(um.LGES(covariates=["age"], outcomes=["income"]).fit(first), second)


@TABLE.case("confirmation/a matrix")
def _() -> Any:
    data = um.datasets.load("multitasking")
    found = um.LGES().fit(inputs.bundled("multitasking"))
    return um.confirm(found, cov=data.frame() * 0.95 + 0.05 * np.eye(len(data.names)), n_samples=150)


def _stability(method: str, **options: Any) -> Stability:
    rows = inputs.people()[inputs.ITEMS]
    return um.stability(um.LGES(**options).fit(rows), 10, method=method, random_state=4)  # type: ignore[arg-type]


for _method in ("bootstrap", "subsample", "parametric"):
    TABLE.add(f"stability/{_method}", partial(_stability, _method), cost=5.0)
TABLE.add("stability/no misfit", partial(_stability, "bootstrap", tolerance=0), cost=5.0)


@TABLE.case("stability/a matrix", cost=5.0)
def _() -> Any:
    return um.stability(um.LGES().fit(inputs.bundled("multitasking")), 10, random_state=1)


@TABLE.case("penalty-path/multitasking", cost=2.0)
def _() -> Any:
    return um.penalty_path(inputs.bundled("multitasking"))


@TABLE.case("penalty-path/drawn rows", cost=2.0)
def _() -> Any:
    return um.penalty_path(inputs.suite_rows("realistic", 3, 1000), [1, 2, 4, 8])


# Models side by side, checks, figures of graphs -------------------------------------------------------------


@TABLE.case("comparison/with published models")
def _() -> Any:
    data = um.datasets.load("political_democracy")
    found = um.LGES().fit(inputs.bundled("political_democracy"))
    return um.compare_models({**data.models, "found": found.result_})


@TABLE.case("comparison/rows left out", cost=2.0)
def _() -> Any:
    models = {"two": _PATH, "one": "g =~ " + " + ".join(inputs.ITEMS), "apart": f"{inputs.TWO_FACTORS}; f ~~ 0*g"}
    return um.compare_models(models, inputs.people()[inputs.ITEMS], folds=4, rng=1)


TABLE.add("checks/a matrix", lambda: um.check(inputs.bundled("teacher_burnout")))
TABLE.add("checks/rows", lambda: um.check(inputs.people()[inputs.ITEMS]))


@TABLE.case("checks/ordinal rows with holes")
def _() -> Any:
    return um.check(inputs.with_holes(inputs.five_categories(inputs.people()[inputs.ITEMS], "skewed")))


@TABLE.case("checks/bad columns")
def _() -> Any:
    rows = inputs.people()[inputs.ITEMS]
    bad = rows.assign(total=rows.sum(axis=1), copy=rows["a1"], same=1.0, text="word")
    return um.check(bad)


@TABLE.case("graphs/compared with the truth")
def _() -> Any:
    found = um.LGES().fit(inputs.suite_rows("paper", 5, 100))
    return um.metrics.compare(inputs.suite_graph("paper", 5), found.graph_)


@TABLE.case("graphs/dimension and classes")
def _() -> Any:
    graphs = {f"{suite}-{k}": inputs.suite_graph(suite, k) for suite in ("paper", "realistic") for k in (1, 4, 9)}
    counts = um.count_gnfm(8)
    return {
        "classes of eight variables": int(counts.n_classes),
        **{f"{name}, dimension": um.dimension(dag) for name, dag in graphs.items()},
        **{f"{name}, class": dag.cpdag() for name, dag in graphs.items()},
    }
