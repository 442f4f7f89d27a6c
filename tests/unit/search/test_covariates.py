"""Covariates and outcomes in the search: what is found, what is refused, and that each stage is right."""

from __future__ import annotations

import math
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.errors import DataError, ModelError, UnmeasuredError
from unmeasured.knowledge.rules import Paths
from unmeasured.search.model import FactorModel
from unmeasured.search.roles.structural import StructuralFit, StructuralModel, best_allowed
from unmeasured.search.score import GroupBic
from unmeasured.validation.replicates.result import Stability

X, Y = ["age", "female"], ["sick", "pay"]


def drawn(n: int = 1500, seed: int = 0, direct: float = 0.0) -> pd.DataFrame:
    """Rows of age ─► A ─► B ─► sick ─► pay, female ─► B and pay; four items each; perhaps female ─► a2."""
    rng = np.random.default_rng(seed)
    age, female = 18 + rng.gamma(2.0, 10.0, n), (rng.random(n) < 0.4).astype(float)
    a = 0.035 * age + rng.normal(size=n)
    b = 0.6 * a + 0.9 * female + rng.normal(size=n)
    items = {f"a{i}": a + rng.normal(size=n) for i in range(1, 5)}
    items |= {f"b{i}": b + rng.normal(size=n) for i in range(1, 5)}
    items["a2"] = items["a2"] + direct * female
    sick = 0.5 * b + rng.normal(size=n)
    pay = -0.5 * sick + 0.6 * female + rng.normal(size=n)
    return pd.DataFrame({**items, "age": age, "female": female, "sick": sick, "pay": pay})


TRUTH = {("age", "L1"), ("L1", "L2"), ("female", "L2"), ("L2", "sick"), ("sick", "pay"), ("female", "pay")}


@pytest.fixture(scope="module")
def search() -> um.LGES:
    return um.LGES(covariates=X, outcomes=Y).fit(drawn())


def structural(graph: um.CPDAG) -> set[tuple[str, str]]:
    return {edge for edge in graph.directed_edges if edge[1] not in graph.variables.indicators}


def test_the_graph_is_found_and_directed(search: um.LGES) -> None:
    assert structural(search.graph_) == TRUTH
    assert search.graph_.undirected_edges == ()
    assert search.latent_groups_ == (("L1",), ("L2",))
    assert search.graph_.variables.covariates == tuple(X)
    assert search.graph_.variables.outcomes == tuple(Y)
    assert search.sem_.pvalue > 0.01
    # Without covariates nothing tells which of the two causes the other.
    alone = um.LGES().fit(drawn().drop(columns=[*X, *Y]))
    assert alone.graph_.undirected_edges == (("L1", "L2"),)


def test_a_matrix_gives_the_same_graph() -> None:
    rows = drawn()
    found = um.LGES(covariates=X, outcomes=Y).fit_cov(rows.cov(), len(rows))
    assert structural(found.graph_) == TRUTH
    assert not any("characteristics of persons" in remark for remark in found.remarks_)


def test_the_order_of_columns_changes_nothing(search: um.LGES) -> None:
    rows = drawn()
    other = um.LGES(covariates=X, outcomes=Y).fit(rows[rows.columns[::-1]])
    assert structural(um.LGES(covariates=X, outcomes=Y).fit(rows).graph_) == structural(search.graph_)
    names = {"L1": "L2", "L2": "L1"}  # numbered by their first indicators
    assert {(names.get(a, a), names.get(b, b)) for a, b in structural(other.graph_)} == TRUTH
    assert other.sem_.chi2 == pytest.approx(search.sem_.chi2, abs=1e-6)


def test_the_sample_may_carry_the_roles(search: um.LGES) -> None:
    sample = um.as_sample(drawn(), cor="auto", covariates=X, outcomes=Y)
    assert um.LGES().fit(sample).graph_ == search.graph_


def test_a_direct_effect_on_an_item_is_a_finding() -> None:
    found = um.LGES(covariates=X, outcomes=Y).fit(drawn(direct=0.8))
    assert found.result_.direct_effects[["covariate", "item"]].to_numpy().tolist() == [["female", "a2"]]
    assert found.result_.direct_effects.loc[0, "est"] == pytest.approx(0.8, abs=0.15)
    assert structural(found.graph_) == TRUTH  # and it does not pass for an effect on the latent
    assert any(remark.startswith("female → a2 directly") for remark in found.remarks_)
    assert "female → a2" in found.result_.summary()
    assert any(step.phase == "Direct effects" and step.accepted for step in found.trace_)


def test_which_of_two_items_is_affected_is_left_open() -> None:
    """With two indicators a direct effect on one fits as well as one on the other, and that is said."""
    rows = drawn(direct=1.2)[["a1", "a2", "b1", "b2", "b3", "female"]]
    known = um.Knowledge(groups={"A": ["a1", "a2"], "B": ["b1", "b2", "b3"]})
    found = um.LGES(covariates=["female"], knowledge=known).fit(rows)
    assert len(found.result_.direct_effects) == 1
    said = next(remark for remark in found.remarks_ if "directly" in remark)
    assert "cannot tell this from a direct effect on 'a" in said


def test_no_direct_effects_where_there_are_none() -> None:
    counts = [
        len(um.LGES(covariates=X).fit(drawn(400, seed).drop(columns=Y)).result_.direct_effects) for seed in range(6)
    ]
    assert sum(counts) == 0


def test_the_result_goes_through_json_and_text(search: um.LGES) -> None:
    result = search.result_
    again = um.Result.from_json(result.to_json())
    assert again.graph == result.graph
    assert again.summary() == result.summary()
    text = um.fit(result.to_lavaan(), drawn())
    assert (text.chi2, text.df, text.bic) == pytest.approx((result.sem.chi2, result.sem.df, result.sem.bic), abs=1e-4)
    renamed = result.rename({"L1": "worry", "L2": "strain"})
    assert ("age", "worry") in renamed.graph.directed_edges
    assert renamed.sem.chi2 == result.sem.chi2


def test_tables_have_the_roles(search: um.LGES) -> None:
    result = search.result_
    assert set(result.loadings["indicator"]) == {f"{x}{i}" for x in "ab" for i in range(1, 5)}
    assert set(zip(result.latent_paths["source"], result.latent_paths["target"])) == TRUTH
    assert result.latent_paths["directed"].all()
    assert set(result.partitions[0].index) == set(result.loadings["indicator"])
    summary = result.summary()
    assert "2 latent variables behind 8 indicators, with 2 covariates and 2 outcomes" in summary
    assert "The direction of L1 → L2 is identified because of the covariates" in summary
    assert result.check.sample.names == result.graph.variables.indicators
    total = result.effects("age", "pay")
    assert total.is_one_number
    assert total.smallest < 0


def test_effects_of_covariates_that_go_together() -> None:
    """Over the class they are the sums along directed paths, as in the member that was fitted."""
    rows = drawn(2000, 4)
    rows["female"] = (rows["age"] + 15 * np.random.default_rng(1).normal(size=2000) > 38).astype(float)
    rows["pay"] += 0.8 * rows["female"]
    found = um.LGES(covariates=X, outcomes=Y).fit(rows).result_
    for cause in X:
        total = found.fit.effects(cause, "pay")
        expected = float(total["std"][total["kind"] == "total"].iloc[0])
        over_class = found.effects(cause, "pay")
        assert over_class.smallest == pytest.approx(expected, abs=1e-5)
        assert over_class.is_one_number


def test_scores_and_confirmation_take_new_rows(search: um.LGES) -> None:
    new = drawn(seed=9)
    assert search.transform(new).shape == (1500, 2)
    confirmed = um.confirm(search, new)
    assert confirmed.result.sem.pvalue > 0.001
    assert um.confirm(search.result_, new).result.sem.sample.covariates == tuple(X)


def test_replicates_count_edges_of_covariates_and_outcomes() -> None:
    found = um.LGES(covariates=X, outcomes=Y).fit(drawn(600, direct=0.8))
    stable = um.stability(found, 3)
    table = stable.edges.set_index(["source", "target"])
    assert table.loc[("age", "L1"), "frequency"] == 1.0
    assert table.loc[("female", "a2"), "kind"] == "direct"
    assert Stability.from_json(stable.to_json()).edges.equals(stable.edges)
    assert ("age", "L1") in stable.consensus(0.5).directed_edges
    assert set(stable.items["item"]) == set(found.graph_.variables.indicators)


def test_runners_up_are_graphs_with_roles(search: um.LGES) -> None:
    assert all(runner.graph.variables == search.graph_.variables for runner in search.runners_up_)
    probabilities = search.result_.edge_probabilities.set_index(["source", "target"])["probability"]
    assert probabilities[("age", "L1")] > 0.9


# Outcomes and items in categories ---------------------------------------------------------------------------


def test_ordinal_items_and_a_binary_outcome() -> None:
    rows = drawn(2500)
    for name in rows.columns[:8]:
        rows[name] = pd.qcut(rows[name], [0, 0.2, 0.5, 0.75, 0.9, 1], labels=False)
    rows["pay"] = (rows["pay"] > rows["pay"].mean()).astype(int)
    found = um.LGES(covariates=X, outcomes=Y).fit(rows)
    assert structural(found.graph_) == TRUTH
    kinds = dict(zip(found.sample_.names, found.sample_.kinds))
    assert kinds["a1"] == kinds["pay"] == "ordinal"
    assert kinds["female"] == kinds["age"] == "continuous"
    # The effects are those of the variables behind the categories.
    plain = um.LGES(covariates=X, outcomes=Y).fit(drawn(2500))
    ours, theirs = (s.result_.latent_paths.set_index(["source", "target"])["std"] for s in (found, plain))
    assert (ours - theirs[ours.index]).abs().max() < 0.08


# Stages -----------------------------------------------------------------------------------------------------


def test_the_predicted_graph_is_the_best_that_is_allowed() -> None:
    """Brute force over all graphs of two groups, two covariates and two outcomes."""
    rng = np.random.default_rng(3)
    model = StructuralModel(FactorModel(("a", "b", "c", "d"), (1, 1), (1, 1, 2, 2)), ("x1", "x2"), ("y1", "y2"))
    for _ in range(3):
        M = rng.normal(size=(6, 6)) * 0.4 + np.eye(6)
        predicted = GroupBic(M @ M.T, model.sizes, 1.0, 0.05)
        forbidden = np.zeros((6, 6), dtype=bool)
        forbidden[2, 0] = True  # x1 does not cause the first group
        required = np.zeros((6, 6), dtype=bool)
        required[1, 5] = True
        paths = Paths(model.by_roles.required | required, model.by_roles.forbidden | forbidden)
        found = best_allowed(model, predicted, paths)
        assert not (found.astype(bool) & paths.forbidden).any()
        assert not (paths.required & ~found.astype(bool)).any()
        assert score(predicted, found) == pytest.approx(best_of_all(predicted, paths), abs=1e-12)


def score(predicted: GroupBic, arcs: Any) -> float:
    return sum(predicted.local(j, sum(1 << int(i) for i in np.flatnonzero(arcs[:, j]))) for j in range(len(arcs)))


def best_of_all(predicted: GroupBic, paths: Paths) -> float:
    free = [(i, j) for i, j in combinations(range(6), 2) if not paths.required[i, j] and not paths.required[j, i]]
    choices = [
        [None, *([(i, j)] if not paths.forbidden[i, j] else []), *([(j, i)] if not paths.forbidden[j, i] else [])]
        for i, j in free
    ]
    best = -math.inf
    for chosen in product(*choices):
        arcs = paths.required.astype(int)
        for arc in chosen:
            if arc is not None:
                arcs[arc] = 1
        if not np.linalg.matrix_power(arcs + np.eye(6, dtype=int), 6).trace() > 6:
            best = max(best, score(predicted, arcs))
    return best


def test_score_tests_predict_what_a_fit_gains() -> None:
    rows = drawn(3000, direct=0.25)[[*(f"a{i}" for i in range(1, 5)), *(f"b{i}" for i in range(1, 5)), *X]]
    sample = um.as_sample(cov=rows.corr(), n_samples=len(rows))
    model = StructuralModel(FactorModel(sample.names[:8], (1, 1), (1,) * 4 + (2,) * 4), tuple(X), ())
    near = StructuralFit.of(model, sample, model.by_roles)
    candidates = [(1, 1), (0, 6)]
    tests = near.direct_tests(model.by_roles, candidates)
    for (covariate, item), test in zip(candidates, tests, strict=True):
        other = StructuralFit.of(model.with_direct(covariate, item), sample, model.by_roles, near)
        gain = len(rows) * (near.discrepancy - other.discrepancy)
        assert len(rows) * test == pytest.approx(gain, rel=0.05, abs=0.05)


# Knowledge --------------------------------------------------------------------------------------------------


def test_knowledge_names_roles_tiers_and_paths() -> None:
    known = um.Knowledge(
        groups={"worry": ["a1", "a2"], "strain": ["b1", "b2"]},
        covariates=X,
        outcomes=Y,
        tiers=[["worry"], ["female"], ["strain"], ["sick"], ["pay"]],
        forbidden=["age -> strain"],
        required=["worry -> pay"],
    )
    found = um.LGES(knowledge=known).fit(drawn())
    edges = structural(found.graph_)
    assert ("age", "worry") in edges
    assert ("worry", "pay") in edges  # required, though the data do not ask for it
    assert ("female", "worry") not in edges
    assert ("age", "strain") not in edges
    assert known.about_groups.statements == um.Knowledge(groups=known.groups, tiers=[["worry"], ["strain"]]).statements


def test_knowledge_from_a_file_has_roles(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text('covariates = ["age", "female"]\noutcomes = ["sick", "pay"]\ntiers = [["sick"], ["pay"]]\n')
    known = um.Knowledge.read(file)
    assert str(known).splitlines()[:2] == ["covariates: age, female", "outcomes: sick, pay"]
    assert structural(um.LGES(knowledge=known).fit(drawn()).graph_) == TRUTH


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"covariates": ["age"], "outcomes": ["age"]}, "'age' is named as a covariate and as an outcome"),
        ({"covariates": ["a1"], "groups": {"A": ["a1", "a2"]}}, "'a1' is an item, and named as a covariate"),
        ({"covariates": ["age", "age"]}, "covariates names 'age' twice"),
        ({"tiers": [["age"], ["A"]], "groups": {"A": ["a1"]}}, "'age' is not a group that was named"),
    ],
)
def test_knowledge_that_contradicts_itself_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        um.Knowledge(**options)


def test_a_required_path_into_a_covariate_is_refused() -> None:
    known = um.Knowledge(groups={"A": ["a1", "a2"]}, covariates=X, required=["A -> age"])
    with pytest.raises(ModelError, match="A → age cannot be, since nothing causes a covariate"):
        um.LGES(knowledge=known).fit(drawn(300).drop(columns=Y))


# Mistakes ---------------------------------------------------------------------------------------------------


def changed(**columns: Any) -> pd.DataFrame:
    return drawn(200).assign(**columns)


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        (
            {"covariates": "age"},
            drawn(200),
            r"covariates must be a list of names of variables, such as \['age'\]; got 'age'",
        ),
        ({"covariates": ["agee"]}, drawn(200), "The covariate 'agee' is not in the data; did you mean 'age'"),
        ({"outcomes": ["sick", "sick"]}, drawn(200), "outcomes names 'sick' twice"),
        ({"covariates": ["age"], "outcomes": ["age"]}, drawn(200), "'age' is named as a covariate and as an outcome"),
        ({"covariates": ["age"]}, changed(age=40.0), "The covariate 'age' never changes"),
        (
            {"covariates": ["female", "male"]},
            changed(male=1.0 - drawn(200)["female"]),
            "The covariates 'female', 'male' determine one another",
        ),
        (
            {"covariates": ["age"]},
            changed(age=drawn(200)["age"].where(np.arange(200) < 11)),
            "Only 11 of 200 rows have all covariates, too few for 12 variables",
        ),
        ({"covariates": list(drawn(5).columns[:11])}, drawn(200), "A latent needs at least two indicators"),
        ({"covariates": ["age"], "criterion": "delta"}, drawn(200), 'for criterion="bic"'),
    ],
)
def test_mistakes_are_sentences(options: dict[str, Any], rows: pd.DataFrame, message: str) -> None:
    with pytest.raises(UnmeasuredError, match=message):
        um.LGES(**options).fit(rows)


def test_a_covariate_in_words_is_refused_by_name() -> None:
    with pytest.raises(DataError, match="Columns 'female' hold text"):
        um.LGES(covariates=["female"]).fit(changed(female="yes"))


def test_a_population_and_other_samples_are_refused() -> None:
    with pytest.raises(UnmeasuredError, match="need a number of samples"):
        um.LGES(covariates=X).fit_cov(drawn().cov(), math.inf)
    sample = um.as_sample(drawn(), cor="auto")  # the binary covariate as ordinal, the skewed one as ranks
    with pytest.raises(
        DataError, match="takes 'age', 'female' as ordinal or as ranks; a covariate is taken as the number"
    ):
        um.LGES(covariates=X).fit(sample)
    known = um.Knowledge(groups={"A": ["a1", "age"]})
    with pytest.raises(DataError, match="'age' is a covariate or an outcome, and an item of 'A'"):
        um.LGES(covariates=X, knowledge=known).fit(drawn())


def test_rows_without_a_covariate_are_left_out_and_counted() -> None:
    rows = drawn(800)
    rows.loc[:99, "age"] = np.nan
    rows.loc[200:210, "a1"] = np.nan
    found = um.LGES(covariates=X, outcomes=Y).fit(rows)
    said = next(remark for remark in found.remarks_ if "lack a covariate" in remark)
    assert said.startswith("100 of 800 rows lack a covariate and were left out (most lack 'age'); 700 remain.")
    complete = um.LGES(covariates=X, outcomes=Y).fit(rows[100:])
    assert found.graph_ == complete.graph_
    assert found.sem_.chi2 == pytest.approx(complete.sem_.chi2)


def test_only_covariates_and_only_outcomes() -> None:
    rows = drawn()
    causes = um.LGES(covariates=X).fit(rows.drop(columns=Y))
    assert structural(causes.graph_) == {("age", "L1"), ("L1", "L2"), ("female", "L2")}
    effects = um.LGES(outcomes=Y).fit(rows.drop(columns=X))
    assert ("L2", "sick") in structural(effects.graph_)
    assert effects.graph_.variables.covariates == ()


def test_no_latents_behind_the_items() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd")).assign(x=rng.normal(size=300))
    rows["y"] = rows["x"] + rng.normal(size=300)
    found = um.LGES(covariates=["x"], outcomes=["y"]).fit(rows)
    assert found.graph_.latents == ()
    assert found.graph_.directed_edges == (("x", "y"),)
    assert "No latent variables were found" in found.result_.summary()


def test_a_time_limit_gives_an_answer_with_roles() -> None:
    found = um.LGES(covariates=X, outcomes=Y, time_limit=1e-3).fit(drawn(400))
    assert found.stopped_
    assert found.graph_.variables.covariates == tuple(X)
    assert "Stopped at the time limit" in found.remarks_[0]


def test_options_are_those_of_an_estimator() -> None:
    from sklearn.base import clone

    search = clone(um.LGES(covariates=X, outcomes=Y))
    assert search.get_params()["covariates"] == X
    assert search.set_params(outcomes=()).outcomes == ()
