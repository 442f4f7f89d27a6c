"""Residual pairs: in graphs, in fits, and bought by a search."""

import math

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.errors import GraphError
from unmeasured.graphs.formats.convert import from_json, to_json
from unmeasured.models.fit import fit_many
from unmeasured.models.local_fit import indices_of_pairs
from unmeasured.remarks import Severity, severity_of
from unmeasured.search.close_fit.local_dependence import cost_of_a_pair, with_residual_pairs
from unmeasured.search.discovery import remarks_on_fit

DEMOCRACY = {"ind60": ["x1", "x2", "x3"], "dem60": ["y1", "y2", "y3", "y4"], "dem65": ["y5", "y6", "y7", "y8"]}
# lavaan 0.6-14, standardizedSolution(sem(..., std.lv = TRUE)) of Bollen's model: residual correlation, standard error
LAVAAN = {
    ("y1", "y5"): (0.296, 0.140),
    ("y2", "y4"): (0.273, 0.120),
    ("y2", "y6"): (0.356, 0.097),
    ("y3", "y7"): (0.191, 0.133),
    ("y4", "y8"): (0.109, 0.131),
    ("y6", "y8"): (0.338, 0.110),
}


def bollen():
    edges = [(latent, x) for latent, items in DEMOCRACY.items() for x in items]
    edges += [("ind60", "dem60"), ("ind60", "dem65"), ("dem60", "dem65")]
    return um.DAG.from_edges(edges, latents=list(DEMOCRACY)).with_pairs([(b, a) for a, b in LAVAAN])


def with_wording(rng, n, pairs, size=0.5, p=12):
    """Rows of three correlated factors with four items each; items of a pair share part of their residuals."""
    factor = np.repeat(np.arange(3), p // 3)
    latents = rng.multivariate_normal(np.zeros(3), np.full((3, 3), 0.3) + 0.7 * np.eye(3), n)
    residual = rng.standard_normal((n, p))
    for a, b in pairs:
        shared = rng.standard_normal(n)
        for j in (a, b):
            residual[:, j] = math.sqrt(size) * shared + math.sqrt(1 - size) * residual[:, j]
    return 0.7 * latents[:, factor] + math.sqrt(0.51) * residual


# Graphs -----------------------------------------------------------------------------------------------------


def test_pairs_belong_to_every_member_of_a_class():
    dag = bollen()
    assert dag.pairs == tuple(sorted(LAVAAN, key=lambda pair: [dag.names.index(x) for x in pair]))
    assert dag.cpdag().pairs == dag.pairs
    assert {member.pairs for member in dag.cpdag().members()} == {dag.pairs}
    assert dag != dag.with_pairs(())
    assert dag.with_pairs(()).pairs == ()


def test_pairs_survive_json_and_new_names():
    dag = bollen()
    for graph in (dag, dag.cpdag()):
        assert from_json(to_json(graph)) == graph
    assert ("why1", "y5") in dag.rename({"y1": "why1"}).pairs


@pytest.mark.parametrize("pair", [("y1", "y1"), ("dem60", "y1"), ("y1", "nobody"), ("y1", "y2", "y3")])
def test_what_is_no_pair_is_refused(pair):
    with pytest.raises(GraphError):
        bollen().with_pairs([pair])


def test_pairs_in_model_text_are_read_back_with_the_same_fit():
    data = um.datasets.load("political_democracy")
    dag = bollen()
    fit = um.fit(dag, cov=data.frame(), n_samples=data.n_samples)
    again = um.fit(dag.to_lavaan(), cov=data.frame(), n_samples=data.n_samples, scale_latents="variance")
    assert "y2 ~~ y6" in dag.to_lavaan()
    assert (again.chi2, again.df) == (pytest.approx(fit.chi2, abs=1e-6), fit.df)
    assert "y2 ~~ y6" in dag.to_semopy()


# Fits -------------------------------------------------------------------------------------------------------


def test_the_fit_with_pairs_is_lavaans():
    data = um.datasets.load("political_democracy")
    dag = bollen()
    fit = um.fit(dag.cpdag(), cov=data.frame(), n_samples=data.n_samples)
    assert (round(fit.chi2, 3), fit.df) == (38.125, 35)
    result = um.Result(dag.cpdag(), fit)
    table = result.local_dependence.set_index(["item_1", "item_2"])
    assert {tuple(sorted(pair)) for pair in table.index} == set(LAVAAN)
    for (a, b), row in table.iterrows():
        r, se = LAVAAN[tuple(sorted((a, b)))]
        assert row["std"] == pytest.approx(r, abs=6e-4)
        assert row["std_se"] == pytest.approx(se, abs=6e-4)


def test_the_answer_with_pairs_comes_back_from_its_file_and_under_new_names():
    data = um.datasets.load("political_democracy")
    fit = um.fit(bollen().cpdag(), cov=data.frame(), n_samples=data.n_samples)
    result = um.Result(bollen().cpdag(), fit)
    again = um.Result.from_json(result.to_json())
    assert again.graph == result.graph
    assert again.local_dependence.equals(result.local_dependence)
    renamed = result.rename({"ind60": "industry"})
    assert renamed.sem.chi2 == pytest.approx(fit.chi2)
    assert "y2 ~~ y6" in renamed.to_lavaan()
    assert "y2 ~~ y6" in result.summary()
    assert "Similar wording or method" in result._repr_html_()


def test_pairs_are_drawn_only_where_asked_for():
    data = um.datasets.load("political_democracy")
    result = um.Result(bollen().cpdag(), um.fit(bollen().cpdag(), cov=data.frame(), n_samples=data.n_samples))
    plain, arcs = result.plot().to_svg(), result.plot(pairs=True).to_svg()
    assert "similar wording" in arcs
    assert "similar wording" not in plain
    assert arcs.count(">.36<") == plain.count(">.36<") + 1  # y2 ~~ y6


# Search -----------------------------------------------------------------------------------------------------


def test_pairs_are_found_where_they_are():
    rows = with_wording(np.random.default_rng(3), 2000, [(0, 1), (2, 7)])
    found = um.LGES(tolerance=0.05).fit(rows)
    assert found.graph_.pairs == (("x1", "x2"), ("x3", "x8"))
    assert [len(group) for group in found.latent_groups_] == [1, 1, 1]
    assert any("Similar wording" in remark for remark in found.remarks_)
    table = found.result_.local_dependence
    assert set(table["std"].round(1)) == {0.5}
    without = um.LGES(tolerance=0.05, residual_covariances=False).fit(rows)
    assert without.graph_.pairs == ()
    assert without.sem_.chi2 > found.sem_.chi2 + 200


@pytest.mark.parametrize("seed", range(3))
def test_latents_are_not_spent_on_similar_wording(seed):
    """The exact criterion with pairs prefers three latents and the pairs to a latent for each pair."""
    truth = [(0, 1), (2, 7), (8, 9)]
    rows = with_wording(np.random.default_rng(seed), 3000, truth)
    found = um.LGES().fit(rows)
    assert found.latent_groups_ == (("L1",), ("L2",), ("L3",))
    assert set(found.graph_.pairs) == {(f"x{a + 1}", f"x{b + 1}") for a, b in truth}
    assert len(found.result_.loadings) <= 13  # BIC buys a false one now and then
    assert found.sem_.bic < um.LGES(tolerance=0).fit(rows).sem_.bic


def test_no_pairs_where_there_are_none():
    bought = 0
    for seed in range(20):
        rows = with_wording(np.random.default_rng(seed), 500, [])
        edges = [(f"L{k // 4 + 1}", f"x{k + 1}") for k in range(12)]
        edges += [("L1", "L2"), ("L1", "L3"), ("L2", "L3")]
        graph = um.DAG.from_edges(edges, latents=["L1", "L2", "L3"]).cpdag()
        (fit,) = fit_many([graph], um.as_sample(rows))
        bought += len(with_residual_pairs(fit, 500).graph.pairs)
    assert bought == 0


def test_a_pair_that_would_make_the_fit_improper_is_not_taken():
    """It would pay, but with it a residual variance is none."""
    rng, n = np.random.default_rng(0), 300
    latents = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], n)
    rows = 0.8 * np.repeat(latents, 3, axis=1) + 0.6 * rng.standard_normal((n, 6))
    rows[:, :2] += 0.9 * np.outer(rng.standard_normal(n), [1, -1])
    items = [f"x{j + 1}" for j in range(6)]
    edges = [("fg"[j // 3], item) for j, item in enumerate(items)] + [("f", "g")]
    (fit,) = fit_many(
        [um.DAG.from_edges(edges, latents=["f", "g"]).cpdag()], um.as_sample(pd.DataFrame(rows, columns=items))
    )
    found = with_residual_pairs(fit, n)
    assert found.admissible
    (more,) = fit_many([found.graph.with_pairs([("x1", "x3"), *found.graph.pairs])], found.sample)
    assert found.chi2 - more.chi2 > cost_of_a_pair(6, n) * found.sample.n / n
    assert not more.admissible


def test_of_very_many_items_only_pairs_that_may_pay_are_looked_at():
    edges = [(f"L{j // 4}", f"x{j + 1}") for j in range(12)] + [("L0", "L1"), ("L0", "L2"), ("L1", "L2")]
    rows = pd.DataFrame(with_wording(np.random.default_rng(3), 2000, [(0, 1), (2, 7)]))
    rows.columns = [f"x{j + 1}" for j in range(12)]
    fit = um.fit(um.DAG.from_edges(edges, latents=["L0", "L1", "L2"]), rows)
    table = fit.modification_indices()
    table = table[(table["op"] == "~~") & ~table["lhs"].str.startswith("L") & (table["lhs"] != table["rhs"])]
    every = indices_of_pairs(fit, 0.0)
    assert [pair[:2] for pair in every] == list(zip(table["lhs"], table["rhs"], strict=True))
    assert [index for *_, index in every] == pytest.approx(table["mi"].tolist(), rel=1e-6)
    few = indices_of_pairs(fit, 10.0)
    assert 0 < len(few) < len(every)
    assert few == [pair for pair in every if pair in few]
    assert every[: len(few) // 2] == few[: len(few) // 2]


def test_pairs_that_cannot_be_worth_what_is_needed_are_not_fitted():
    rows = with_wording(np.random.default_rng(5), 1000, [(0, 5), (2, 9)])
    items = [f"x{j + 1}" for j in range(12)]
    edges = [(f"f{j // 4}", item) for j, item in enumerate(items)] + [("f0", "f1"), ("f0", "f2"), ("f1", "f2")]
    cpdag = um.DAG.from_edges(edges, latents=["f0", "f1", "f2"]).cpdag()
    (fit,) = fit_many([cpdag], um.as_sample(pd.DataFrame(rows, columns=items)))
    cost = cost_of_a_pair(12, 1000)
    all_that_pay = with_residual_pairs(fit, 1000)
    assert len(all_that_pay.graph.pairs) == 2
    gained = fit.chi2 - all_that_pay.chi2 - 2 * cost
    assert with_residual_pairs(fit, 1000, needed=0.8 * gained).chi2 == pytest.approx(all_that_pay.chi2)
    assert with_residual_pairs(fit, 1000, needed=2.0 * gained) is fit


def test_a_pair_pays_for_having_been_picked_among_many():
    assert cost_of_a_pair(25, 364) == pytest.approx(math.log(364) + 2 * math.log(300))
    assert cost_of_a_pair(50, 364) > cost_of_a_pair(25, 364)


def test_a_population_has_no_pairs_to_buy():
    truth = um.simulate.random_gnfm(n_latents=2, n_observed=8, rng=1)
    cov = um.simulate.realistic_parameters(truth, np.random.default_rng(1)).cov()
    found = um.LGES(tolerance=0.05).fit_cov(cov, math.inf)
    assert found.graph_.pairs == ()


def test_a_model_that_pairs_make_acceptable_is_not_distrusted():
    """Without its pairs the RMSEA is above .1, which is said first; with them it is not, though BIC likes neither."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(with_wording(rng, 20_000, [(0, 4), (5, 9), (1, 8)], size=0.8))
    rows.columns = [f"x{j}" for j in rows]
    rows += 0.15 * rng.standard_normal((len(rows), 6)) @ rng.standard_normal((6, 12))
    sample = um.as_sample(rows)
    without = um.LGES(tolerance=0.05, residual_covariances=False).fit(sample)
    found = um.LGES(tolerance=0.05).fit(sample)
    assert without.sem_.rmsea > 0.1 > found.sem_.rmsea
    assert remarks_on_fit(found.sem_)
    assert min(map(severity_of, without.remarks_)) == Severity.DISTRUST
    assert min(map(severity_of, found.remarks_)) > Severity.DISTRUST
