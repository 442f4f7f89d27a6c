"""Searches: bundled data, drawn graphs, questionnaires, knowledge, roles, groups of people, sizes, populations."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import unmeasured as um
from benchmarks.golden.cases import inputs
from benchmarks.golden.cases.table import Table

TABLE = Table()


def _search(data: Any, *arguments: Any, **options: Any) -> um.LGES:
    """Search what a function gives for its arguments."""
    return um.LGES(**options).fit(data(*arguments))


# Bundled data, with the options of the search ---------------------------------------------------------------

for _name in um.datasets.available():
    _slow = 5.0 if _name == "teacher_burnout" else 1.0
    TABLE.add(f"bundled/{_name}", partial(_search, inputs.bundled, _name), cost=_slow)
# Without big_five and no misfit: no model of it holds, and among many optima rounding decides which of 80 steps comes
# next (with other BLAS kernels and generic compiled code 157 parameters instead of 143).
for _name in ("teacher_burnout", "holzinger_swineford"):
    TABLE.add(f"bundled/{_name}, no misfit", partial(_search, inputs.bundled, _name, tolerance=0), cost=5.0)
for _name in ("teacher_burnout", "big_five", "holzinger_swineford"):
    TABLE.add(f"bundled/{_name}, misfit of .05", partial(_search, inputs.bundled, _name, tolerance=0.05), cost=2.0)

for _label, _name, _options in (
    ("penalty of 2", "holzinger_swineford", {"penalty": 2.0}),
    ("one latent a group", "holzinger_swineford", {"max_group_size": 1, "tolerance": 0}),
    ("any size of groups", "political_democracy", {"max_group_size": None}),
    ("no levels above", "big_five", {"hierarchy": False}),
    ("no residual pairs", "big_five", {"residual_covariances": False}),
    ("misfit of .08", "big_five", {"tolerance": 0.08}),
    ("four latents", "political_democracy", {"n_latents": 4}),
    ("nothing bounded", "multitasking", {"prune": False}),
):
    TABLE.add(f"options/{_label}", partial(_search, inputs.bundled, _name, **_options), cost=2.0)


@TABLE.case("options/an own move")
def _() -> Any:
    return um.LGES(moves=[_merge_first_two], tolerance=0).fit(inputs.bundled("holzinger_swineford"))


def _merge_first_two(model: Any) -> list[Any]:
    """Propose nothing: the search with an own move goes another way through its protocol."""
    return []


# Graphs of the stored suites --------------------------------------------------------------------------------

# Without paper-04 at N = 100: more than a dozen classes are within 2 of its BIC, and rounding decides which of them are
# among the runners-up (seen with OPENBLAS_CORETYPE=Nehalem).
for _suite in ("paper", "realistic"):
    for _number in range(1, 21, 3):
        for _n in (1000,) if (_suite, _number) == ("paper", 4) else (100, 1000):
            TABLE.add(
                f"suites/{_suite}-{_number:02d}, N = {_n}",
                partial(_search, inputs.suite_rows, _suite, _number, _n),
            )


def _of_other_rows(**drawn: str) -> um.LGES:
    return um.LGES().fit(inputs.suite_rows("paper", 2, 1000, **drawn))


TABLE.add("suites/uniform errors", partial(_of_other_rows, noise="uniform"))
TABLE.add("suites/leaky ReLU", partial(_of_other_rows, nonlinearity="leaky-relu"))


def _population(suite: str, number: int, **options: Any) -> um.LGES:
    dag = inputs.suite_graph(suite, number)
    draw = um.simulate.paper_parameters if suite == "paper" else um.simulate.realistic_parameters
    parameters = draw(dag, np.random.default_rng(number))
    return um.LGES(**options).fit_cov(parameters.cov(), math.inf, names=parameters.observed)


for _suite, _number in (("paper", 1), ("paper", 6), ("realistic", 1), ("realistic", 5)):
    TABLE.add(f"populations/{_suite}-{_number:02d}", partial(_population, _suite, _number), cost=3.0)
TABLE.add("populations/paper-10, the paper's rule", partial(_population, "paper", 10, criterion="delta"), cost=3.0)

for _number, _n in ((1, 1000), (5, 1000), (10, 1000), (17, 100)):
    TABLE.add(
        f"paper-rule/paper-{_number:02d}, N = {_n}",
        partial(_search, inputs.suite_rows, "paper", _number, _n, criterion="delta"),
        cost=3.0,
    )
TABLE.add(
    "paper-rule/multitasking, delta of .02",
    partial(_search, inputs.bundled, "multitasking", criterion="delta", delta=0.02),
)


# Ordinal and missing data -----------------------------------------------------------------------------------


def _ordinal(shape: str = "even", **options: Any) -> um.LGES:
    return um.LGES(**options).fit(inputs.five_categories(inputs.questionnaire_rows(), shape))


TABLE.add("ordinal/even categories", _ordinal)
TABLE.add("ordinal/skewed categories", partial(_ordinal, "skewed"))
TABLE.add("ordinal/as numbers", partial(_ordinal, cor="pearson"))
TABLE.add("ordinal/no misfit", partial(_ordinal, tolerance=0))


@TABLE.case("ordinal/two categories and numbers")
def _() -> Any:
    rows = inputs.questionnaire_rows()
    return um.LGES().fit(rows.assign(X1=(rows["X1"] > 0).astype(int), X6=(rows["X6"] > 0.3).astype(int)))


@TABLE.case("ordinal/scores of ranks")
def _() -> Any:
    return um.LGES(cor="spearman-normal").fit(np.exp(inputs.questionnaire_rows()))


def _holes(missing: str, *, is_ordinal: bool = False) -> um.LGES:
    rows = inputs.questionnaire_rows()
    rows = inputs.with_holes(inputs.five_categories(rows) if is_ordinal else rows)
    return um.LGES(missing=missing).fit(rows)  # type: ignore[arg-type]


for _missing in ("ml", "listwise", "pairwise"):
    TABLE.add(f"missing/{_missing}", partial(_holes, _missing), cost=3.0)
    TABLE.add(f"missing/ordinal, {_missing}", partial(_holes, _missing, is_ordinal=True), cost=3.0)

# Questionnaires that are not ours: figures only --------------------------------------------------------------

for _name in ("grit12", "hs24", "hsq", "ecr36"):
    TABLE.add(
        f"questionnaires/{_name}",
        partial(_search, inputs.published_matrix, _name),
        cost=5.0,
        files=["questionnaires.json.gz"],
    )
for _name in ("Barratt", "Emotion", "Hope", "Short Grit"):
    TABLE.add(
        f"questionnaires/{_name.lower()}, rows",
        partial(_search, inputs.instrument_rows, _name),
        cost=5.0,
        files=["instruments.json.gz"],
    )
TABLE.add(
    "questionnaires/burnout, rows with holes",
    partial(_search, inputs.shared_csv, "teacher_burnout_10pct_missing.csv"),
    cost=20.0,
    files=["teacher_burnout_10pct_missing.csv"],
)
TABLE.add(
    "questionnaires/political democracy, rows",
    partial(_search, inputs.shared_csv, "political_democracy.csv"),
    files=["political_democracy.csv"],
)

# Exact search -----------------------------------------------------------------------------------------------


def _exact(n_observed: int, n_samples: float, seed: int, **options: Any) -> um.ExactSearch:
    dag = um.simulate.random_gnfm(n_latents=2, n_observed=n_observed, rng=seed)
    if math.isinf(n_samples):
        parameters = um.simulate.realistic_parameters(dag, rng=seed)
        return um.ExactSearch(**options).fit_cov(parameters.cov(), n_samples, names=parameters.observed)
    return um.ExactSearch(**options).fit(um.simulate.sample(dag, int(n_samples), parameters="realistic", rng=seed))


TABLE.add("exact/six variables", partial(_exact, 6, 500, 1))
TABLE.add("exact/seven variables, the best five", partial(_exact, 7, 300, 2, n_best=5), cost=3.0)
TABLE.add("exact/one latent a group", partial(_exact, 6, 200, 3, max_group_size=1))
TABLE.add("exact/penalty of 2", partial(_exact, 6, 500, 4, penalty=2.0))
TABLE.add("exact/a population", partial(_exact, 6, math.inf, 5))


@TABLE.case("exact/six of Holzinger and Swineford", cost=2.0)
def _() -> Any:
    return um.ExactSearch().fit(inputs.bundled("holzinger_swineford").select(["x1", "x2", "x4", "x5", "x7", "x8"]))


# Knowledge of every kind ------------------------------------------------------------------------------------


def _with_knowledge(known: dict[str, Any]) -> um.LGES:
    search = um.LGES(knowledge=um.Knowledge(**known), compare_without_knowledge=True)
    return search.fit(inputs.bundled("holzinger_swineford"))


_KINDS: tuple[tuple[str, dict[str, Any]], ...]
_GROUPS = {"visual": ["x1", "x2"], "textual": ["x4"], "speed": ["x7"]}
_KINDS = (
    ("groups", {"groups": _GROUPS}),
    ("together and apart", {"together": [["x1", "x9"]], "apart": [["x4", "x5"]]}),
    ("a number of latents", {"n_latents": "at least 4"}),
    ("a number of groups", {"n_groups": "at most 2"}),
    ("sizes of groups", {"group_size": 1}),
    ("a group of two", {"groups": {"g": ["x1", "x2"]}, "sizes": {"g": 2}, "latents": {"g": ["p", "q"]}}),
    ("tiers", {"groups": _GROUPS, "tiers": [["textual"], ["speed"], ["visual"]]}),
    ("paths", {"groups": _GROUPS, "required": ["visual -> speed"], "forbidden": ["textual -- speed"]}),
    ("latents above", {"groups": _GROUPS, "above": {"ability": ["visual", "textual", "speed"]}}),
    ("one level", {"max_levels": 1}),
)
for _label, _known in _KINDS:
    TABLE.add(f"knowledge/{_label}", partial(_with_knowledge, _known), cost=2.0)


@TABLE.case("knowledge/of a partial model")
def _() -> Any:
    known = um.Knowledge.from_lavaan("visual =~ x1 + x2 + x3; speed =~ x7 + x8; speed ~ visual")
    return um.LGES(knowledge=known, compare_without_knowledge=False).fit(inputs.bundled("holzinger_swineford"))


@TABLE.case("knowledge/roles")
def _() -> Any:
    known = um.Knowledge(
        groups={"mood": ["a1", "a2"]}, covariates=["age"], outcomes=["income"], forbidden=["age -> income"]
    )
    rows = inputs.people().drop(columns="country")
    return um.LGES(knowledge=known, compare_without_knowledge=False).fit(rows)


# Covariates, outcomes, groups of people ---------------------------------------------------------------------


def _with_roles(**roles: Any) -> um.LGES:
    return um.LGES(**roles).fit(inputs.people()[[*inputs.ITEMS, *(name for names in roles.values() for name in names)]])


TABLE.add("roles/a covariate", partial(_with_roles, covariates=["age"]), cost=2.0)
TABLE.add("roles/an outcome", partial(_with_roles, outcomes=["income"]), cost=2.0)
TABLE.add("roles/both", partial(_with_roles, covariates=["age"], outcomes=["income"]), cost=2.0)


@TABLE.case("roles/both, rows with holes", cost=3.0)
def _() -> Any:
    rows = inputs.with_holes(inputs.people()[["age", *inputs.ITEMS, "income"]])
    return um.LGES(covariates=["age"], outcomes=["income"]).fit(rows)


@TABLE.case("roles/a covariate of ordinal items", cost=3.0)
def _() -> Any:
    rows = inputs.people()
    items = inputs.five_categories(rows[inputs.ITEMS])
    return um.LGES(covariates=["age"]).fit(items.assign(age=rows["age"]))


@TABLE.case("people/two groups", cost=3.0)
def _() -> Any:
    search = um.LGES().fit(inputs.people()[[*inputs.ITEMS, "country"]], groups="country")
    return {"search": search, "invariance": search.invariance_}


@TABLE.case("people/two groups and a covariate", cost=3.0)
def _() -> Any:
    return um.LGES(covariates=["age"]).fit(inputs.people()[[*inputs.ITEMS, "age", "country"]], groups="country")


# Latents above latents, misfit of many small factors, sizes -------------------------------------------------


@TABLE.case("levels/traits and facets", cost=5.0)
def _() -> Any:
    model = um.simulate.hierarchy(n_traits=2, n_facets=3, n_items=3, rng=1)
    return um.LGES().fit(um.simulate.sample(model, 1000, rng=1))


@TABLE.case("levels/drawn", cost=5.0)
def _() -> Any:
    dag = um.simulate.random_hierarchy(n_traits=1, n_free=1, rng=4)
    return um.LGES(tolerance=0).fit(um.simulate.sample(dag, 1000, parameters="realistic", rng=4))


@TABLE.case("levels/minor factors", cost=8.0)
def _() -> Any:
    model = um.simulate.minor_factors(n_factors=4, n_items=5, rng=2)
    return um.LGES().fit(um.simulate.sample(model, 2000, rng=2))


def _large(n_latents: int, **options: Any) -> um.LGES:
    dag = um.simulate.random_gnfm(
        group_sizes=(1,) * n_latents, n_observed=5 * n_latents, density=3 / n_latents, rng=n_latents
    )
    return um.LGES(**options).fit(um.simulate.sample(dag, 1000, parameters="realistic", rng=n_latents))


TABLE.add("sizes/100 variables", partial(_large, 20), cost=30.0)
TABLE.add("sizes/300 variables", partial(_large, 60), cost=100.0)


@TABLE.case("sizes/100 variables, minor factors", cost=40.0)
def _() -> Any:
    model = um.simulate.minor_factors(n_factors=10, n_items=10, rng=7)
    return um.LGES().fit(um.simulate.sample(model, 1000, rng=7))


@TABLE.case("sizes/no latents")
def _() -> Any:
    return um.LGES().fit(np.random.default_rng(4).normal(size=(300, 8)))


@TABLE.case("sizes/observed variables alone")
def _() -> Any:
    dag = um.simulate.random_dag(n_observed=8, density=0.35, rng=2)
    return um.LGES().fit(um.simulate.sample(dag, 1000, rng=2))
