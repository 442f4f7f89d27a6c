"""The answer: tables, names, text, JSON; and that turning a group changes nothing the data see."""

from __future__ import annotations

import json
import math
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from graphs_zoo import group_collider, latent_chain, measured, one_factor, shared_child, two_group_chain
from unmeasured.results.naming import suggest_names

GRAPHS = {
    "latent_chain": latent_chain,
    "shared_child": shared_child,
    "two_group_chain": two_group_chain,
    "group_collider": group_collider,
}


def answer(dag: um.DAG, n: int = 400, **fields: object) -> um.Result:
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=3), n, rng=5)
    return um.Result(dag.cpdag(), um.fit(dag, rows), **fields)


@pytest.fixture(scope="module", params=GRAPHS)
def result(request: pytest.FixtureRequest) -> um.Result:
    return answer(GRAPHS[request.param], remarks=("A remark.",), method="LGES()", options={"penalty": 1.0})


@pytest.fixture(scope="module")
def collider() -> um.Result:
    return answer(group_collider)


# --- turning --------------------------------------------------------------------------------------------


def test_turning_changes_nothing_the_data_see(result: um.Result) -> None:
    assert result.fit.implied_cov == pytest.approx(result.sem.implied_cov, rel=1e-9)
    assert (result.fit.chi2, result.fit.df) == (result.sem.chi2, result.sem.df)
    observed = [name for name in result.r2.index if name in result.graph.observed]
    assert result.r2[observed].to_dict() == pytest.approx(result.sem.r2[observed].to_dict())
    # Still at the optimum: the gradient of the turned model is as flat as that of the first.
    assert np.abs(result.fit.problem.derivatives(result.fit.solution.x)[1]).max() < 1e-5


@pytest.mark.parametrize("seed", range(8))
def test_random_factor_models_have_one_basis_and_its_errors(seed: int) -> None:
    dag = um.simulate.random_gnfm(group_sizes=(1, 2, 3) if seed % 2 else (2, 2, 1), n_observed=14, rng=seed)
    result = answer(dag, 800)
    zeros = result.loadings[result.loadings["fixed"]]
    assert len(zeros) == sum(len(g) * (len(g) - 1) // 2 for g in dag.latent_groups)
    assert (zeros["std"] == 0).all()
    assert result.fit.implied_cov == pytest.approx(result.sem.implied_cov, rel=1e-8, abs=1e-10)
    assert result.fit.model.n_free == result.fit.dimension or "Not identified, and" in result.summary()
    read = um.fit(result.to_lavaan(), result.sem.sample)
    assert (read.chi2, read.df) == (pytest.approx(result.fit.chi2, abs=1e-4), result.fit.df)


def test_standard_errors_of_standardised_estimates_agree_with_simulation() -> None:
    parameters = um.simulate.realistic_parameters(two_group_chain, rng=3)
    # Another way to the same number: the spread of the standardised estimate over samples. A single latent, since the
    # anchors of a group may change from sample to sample.
    results = []
    for seed in range(60):
        rows = um.simulate.sample(parameters, 500, rng=seed)
        results.append(um.Result(two_group_chain.cpdag(), um.fit(two_group_chain, rows)))
    tables = [r.loadings.set_index(["latent", "indicator"]).loc[("L1", "x1")] for r in results]
    spread = np.std([abs(t["std"]) for t in tables])
    assert spread == pytest.approx(np.median([t["std_se"] for t in tables]), rel=0.3)


# --- tables ---------------------------------------------------------------------------------------------


def test_tables_say_what_the_graph_says(result: um.Result) -> None:
    graph = result.graph
    latents = set(graph.latents)
    pairs = {(a, b) for a, b in graph.directed_edges if a in latents and b not in latents}
    assert set(zip(result.loadings["latent"], result.loadings["indicator"])) == pairs
    paths = result.latent_paths
    told = paths[paths["directed"]]
    assert set(zip(told["source"], told["target"])) == {(a, b) for a, b in graph.directed_edges if b in latents}
    assert len(result.edges) == len(graph.directed_edges) + len(graph.undirected_edges)
    assert list(result.parameters) == ["lhs", "op", "rhs", "est", "se", "z", "pvalue", "std", "std_se"]
    assert (result.loadings["std"].abs() <= 1).all()


def test_a_loading_has_the_correlation_it_stands_for() -> None:
    result = answer(one_factor)
    cov = result.fit.full_cov
    order = result.fit.causal_order
    corr = cov / np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
    for row in result.loadings.to_dict("records"):
        assert row["std"] == pytest.approx(corr[order.index("g"), order.index(row["indicator"])])
    assert result.loadings["std"].sum() > 0


def test_without_latents_there_is_an_answer_too() -> None:
    dag = um.DAG.from_edges([], names=["a", "b", "c"])
    cov = np.eye(3) + 0.01
    result = um.Result(
        dag.cpdag(), um.fit(dag, cov=cov, n_samples=50, names=["a", "b", "c"]), ("No latent variables.",)
    )
    assert len(result.loadings) == len(result.latent_paths) == len(result.edges) == 0
    assert "0 latent variables behind 3 observed variables" in result.summary()
    assert "a, b, c load on no latent" in result.summary()
    assert "TLI" not in result.summary()  # it compares with independence, which this is
    assert um.Result.from_json(result.to_json()).summary() == result.summary()


# --- names ----------------------------------------------------------------------------------------------


def test_renaming_changes_names_and_nothing_else(result: um.Result) -> None:
    new = result.rename({"L1": "first", "L2": "L1"})  # a name that another latent gives up is free
    assert new.graph.latents[:2] == ("first", "L1")
    assert new.fit.chi2 == result.fit.chi2
    back = new.rename({"first": "L1", "L1": "L2"})
    assert back.graph == result.graph
    pd.testing.assert_frame_equal(back.parameters, result.parameters)
    assert "L1" not in result.rename().graph.names


def test_a_latent_with_a_name_gets_no_proposal(collider: um.Result) -> None:
    named = collider.rename({"L1": "speed"})
    assert "speed (suggested" not in named.summary()
    assert "L2 (suggested name: " in named.summary()
    assert named.rename({"speed": "L1"}).rename({"L2": "error"}).named_latents == ("L1", "error")
    assert "suggested" not in um.Result.from_json(collider.rename().to_json()).summary()


def test_names_that_clash_or_do_not_exist_are_refused(collider: um.Result) -> None:
    with pytest.raises(um.GraphError, match="No variable 'L9' in this graph; it has 'L1', 'L2'"):
        collider.rename({"L9": "speed"})
    with pytest.raises(um.GraphError, match="must be unique; given more than once: 'x1'"):
        collider.rename({"L1": "x1"})
    with pytest.raises(um.GraphError, match="'x1' is observed; only latents"):
        collider.rename({"x1": "L9"})


@pytest.mark.parametrize(
    ("items", "name"),
    [
        (["Speed_Number", "Speed_Letter"], "Speed"),
        (["moodGood", "moodBad"], "mood"),
        (["DM1", "DM2"], "DM"),
        (["dm1", "dm2"], "dm1_dm2"),  # two letters may be chance
        (["X1", "X2"], "X1_X2"),
        (["neuroticism3", "neuroticism1"], "neuroticism"),
        (["reading", "readiness"], "reading_readiness"),  # "readi" ends in the middle of a word
        (["item.a", "item.b"], "item"),
        (["weight (kg)", "height (m)"], "weight_kg_height_m"),
        (["1a", "2b"], "L_1a_2b"),
        (["x"], "x_2"),  # taken by the variable itself
        ([], "latent"),
    ],
)
def test_names_are_proposed_from_what_indicators_share(items: list[str], name: str) -> None:
    assert suggest_names({("L1",): items}, taken=items) == {"L1": name}


def test_no_name_is_proposed_twice() -> None:
    names = suggest_names({("L1",): ["mood1", "mood2"], ("L2",): ["mood3", "mood4"]}, taken=["mood1"])
    assert names == {"L1": "mood", "L2": "mood_2"}


# --- text -----------------------------------------------------------------------------------------------


def test_the_summary_has_all_that_a_reader_needs(collider: um.Result) -> None:
    text = collider.summary()
    for part in (
        "4 latent variables in 3 groups behind 8 observed variables",
        f"{collider.fit.chi2:.2f} on {collider.fit.df} df",
        "All of this assumes that relations are linear, that there are no cycles",
        "{L3, L4} are 2 latents with the same indicators, which are identified only up to",
        "1 loading is set to 0",
        "(suggested name: x",
        "confirm it on new data",
    ):
        assert part in text
    compelled = "Compelled in the class found, that is, in every graph that fits as well: L1 → {L3, L4}; L2 → {L3, L4}."
    assert compelled in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100


def test_no_line_tears_a_group_or_an_edge() -> None:
    names = {f"L{i}": f"a_rather_long_name_{i}" for i in range(1, 5)}
    text = answer(group_collider).rename(names).summary().split("what is not")[1]
    for line in text.splitlines():
        assert line.count("{") == line.count("}")
        assert not re.search(r"[–→]$|^\s*[–→]", line)


def test_loadings_beyond_one_are_explained() -> None:
    rng = np.random.default_rng(0)
    edges = [("A", "B"), *measured(["A"], ["a1", "a2", "a3", "z"]), *measured(["B"], ["b1", "b2", "b3", "z"])]
    dag = um.DAG.from_edges(edges, latents=["A", "B"])
    a = rng.normal(size=(800, 1))
    b = a + 0.4 * rng.normal(size=(800, 1))
    rows = pd.DataFrame(
        np.hstack([a + 0.5 * rng.normal(size=(800, 3)), b + 0.5 * rng.normal(size=(800, 3)), 4 * (b - a) + a]),
        columns=["a1", "a2", "a3", "b1", "b2", "b3", "z"],
    )
    rows["z"] += 0.5 * rng.normal(size=800)
    assert (
        "- Standardised loadings beyond 1 ('z'): do not publish" in um.Result(dag.cpdag(), um.fit(dag, rows)).summary()
    )
    assert "beyond 1" not in answer(latent_chain).summary()


def test_open_directions_are_said() -> None:
    text = answer(latent_chain).summary()
    assert "The direction is not identified for L1 – L2; L2 – L3" in text
    assert "not identified" in text


def test_a_population_has_no_tests_and_no_errors() -> None:
    parameters = um.simulate.realistic_parameters(latent_chain, rng=3)
    fit = um.fit(latent_chain, cov=parameters.cov(), n_samples=math.inf, names=parameters.observed)
    text = um.Result(latent_chain.cpdag(), fit).summary()
    assert "a population covariance" in text
    assert "a population: no test" in text
    assert "confirm" not in text


def test_bad_fits_and_improper_solutions_are_said() -> None:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(60, 4)), columns=["x1", "x2", "x3", "x4"])
    rows["x2"] = rows["x1"] + 0.1 * rng.normal(size=60)
    rows["x4"] = rows["x3"] + 0.1 * rng.normal(size=60)
    text = um.Result(one_factor.cpdag(), um.fit(one_factor, rows)).summary()
    assert "poor, above .10" in text
    assert "exact fit is rejected at 5%" in text


def test_html_escapes_names() -> None:
    result = answer(one_factor).rename({"g": "<b>"})
    html = result._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "<h4>What measures what: standardised loadings" in html


def test_a_notebook_and_a_terminal_read_the_same(result: um.Result) -> None:
    text, html = result.summary(), result._repr_html_()
    page = ElementTree.fromstring(html)  # well-formed, or this raises
    cells = [cell.text for cell in page.iter("td") if cell.text]
    assert len(cells) > 3 * len(result.graph.observed)
    assert all(cell in text for cell in cells)
    whole = " ".join(text.split())
    assert all(item.text in whole for item in page.iter("li"))


# --- the check ------------------------------------------------------------------------------------------


def test_the_check_is_part_of_the_answer() -> None:
    rows = um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 400, rng=5)
    fit = um.fit(latent_chain, rows)
    result = um.Result(latent_chain.cpdag(), fit)
    assert str(result.check) == str(um.check(fit.sample))
    assert "- OK: samples, indicators, dependence, latents, Gaussian, collinearity." in result.summary()
    matrix = um.fit(latent_chain, cov=rows.cov(), n_samples=100)
    text = um.Result(latent_chain.cpdag(), matrix).summary()
    assert "- Samples: 100 samples, 11 per variable." in text
    assert "- OK: indicators, dependence, latents, collinearity." in text
    assert "That is few (rule of thumb: 200, and 5 per variable)" in " ".join(text.split())


def test_what_only_rows_can_show_survives_json() -> None:
    rows = um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 400, rng=5)
    result = um.Result(latent_chain.cpdag(), um.fit(latent_chain, np.exp(rows)))
    again = um.Result.from_json(result.to_json())
    assert "Gaussian: Not Gaussian: Mardia's kurtosis" in again.summary()
    assert again.check.findings == result.check.findings
    older = json.dumps({key: value for key, value in json.loads(result.to_json()).items() if key != "check"})
    assert "Gaussian" not in um.Result.from_json(older).summary()  # a matrix does not tell, and nobody told it


# --- JSON -----------------------------------------------------------------------------------------------


def test_json_brings_the_whole_answer_back(result: um.Result) -> None:
    again = um.Result.from_json(result.to_json())
    assert again.graph == result.graph
    assert again.summary() == result.summary()
    pd.testing.assert_frame_equal(again.parameters, result.parameters)
    assert (again.method, dict(again.options), again.remarks) == ("LGES()", {"penalty": 1.0}, ("A remark.",))
    assert again.to_json() == result.to_json()


def test_json_is_plain_and_complete(collider: um.Result) -> None:
    record = json.loads(collider.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert record["version"] == um.__version__
    assert record["indices"]["df"] == collider.fit.df
    assert {row["op"] for row in record["parameters"]} == {"=~", "~", "~~"}
    assert np.array(record["sample"]["cov"]) == pytest.approx(collider.sem.sample.cov)


def test_a_population_goes_through_json() -> None:
    parameters = um.simulate.realistic_parameters(one_factor, rng=3)
    fit = um.fit(one_factor, cov=parameters.cov(), n_samples=math.inf, names=parameters.observed)
    result = um.Result(one_factor.cpdag(), fit)
    assert math.isinf(um.Result.from_json(result.to_json()).sem.sample.n)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "This is not JSON"),
        ('{"kind": "dag"}', 'has "kind": "result"; got \'dag\''),
        (
            '{"kind": "result", "format": 99, "version": "7"}',
            "reads results up to format 2; got 99, written by version '7'",
        ),
        ('{"kind": "result", "format": 1}', "needs the keys 'graph', .*; missing: 'graph'"),
    ],
)
def test_json_that_is_no_result_is_refused(text: str, message: str) -> None:
    with pytest.raises(um.UnmeasuredError, match=message):
        um.Result.from_json(text)


@pytest.mark.parametrize("spoil", ["x", "steps", "zero_variance_latents"])
def test_a_damaged_result_is_refused(collider: um.Result, spoil: str) -> None:
    record = json.loads(collider.to_json())
    del record["solution"][spoil]
    with pytest.raises(um.UnmeasuredError, match="This result in JSON is damaged"):
        um.Result.from_json(json.dumps(record))


def test_a_class_in_the_place_of_a_member_is_refused(collider: um.Result) -> None:
    record = json.loads(collider.to_json())
    record["member"] = record["graph"]
    with pytest.raises(um.UnmeasuredError, match='"graph" is a cpdag and "member" a dag'):
        um.Result.from_json(json.dumps(record))


def test_an_estimate_of_model_text_is_no_class() -> None:
    rows = um.simulate.sample(um.simulate.realistic_parameters(one_factor, rng=3), 100, rng=5)
    text = um.fit("g =~ x1 + x2 + x3 + x4", rows)
    with pytest.raises(um.ModelError, match="needs the fit of a graph"):
        um.Result(one_factor.cpdag(), text)


def test_indicators_are_listed_strongest_first_shared_ones_last() -> None:
    dag = um.DAG.from_edges(
        [*measured(["A"], ["x1", "x2", "x3"]), *measured(["B"], ["x3", "x4", "x5"])], latents=["A", "B"]
    )
    items = answer(dag).indicators[("A",)]
    assert items[-1] == "x3"
    assert set(items) == {"x1", "x2", "x3"}
