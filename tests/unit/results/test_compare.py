"""Models side by side; what is nested in what is known here by theorem."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from graphs_zoo import group_collider, latent_chain, measured, shared_child, two_group_chain, two_group_chain_reversed
from lavaan_rows import DRAWN
from unmeasured.results import compare
from unmeasured.results.compare import is_nested, random_population

INDICATORS = {f"L{i}": [f"x{3 * i - 2}", f"x{3 * i - 1}", f"x{3 * i}"] for i in (1, 2, 3)}
nine = [edge for latent, items in INDICATORS.items() for edge in measured([latent], items)]


def three(*paths: tuple[str, str]) -> um.DAG:
    return um.DAG.from_edges([*paths, *nine], latents=list(INDICATORS))


complete = three(("L1", "L2"), ("L1", "L3"), ("L2", "L3"))
fork = three(("L2", "L1"), ("L2", "L3"))
v_structure = three(("L1", "L2"), ("L3", "L2"))
apart = three()
one = um.DAG.from_edges(measured(["g"], [x for items in INDICATORS.values() for x in items]), latents=["g"])


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 400, rng=5)


@pytest.mark.parametrize(
    ("small", "large", "expected"),
    [
        (latent_chain, complete, "nested"),
        (v_structure, complete, "nested"),
        (apart, latent_chain, "nested"),
        (one, complete, "nested"),  # one factor is three that correlate perfectly
        (latent_chain, fork, "nested"),  # the same class: equivalent
        (complete, latent_chain, "not nested"),
        (latent_chain, v_structure, "not nested"),  # other constraints, as many
        (v_structure, latent_chain, "not nested"),
        (one, latent_chain, "nested"),
    ],
)
def test_nesting_is_what_theory_says(rows: pd.DataFrame, small: um.DAG, large: um.DAG, expected: str) -> None:
    assert is_nested(um.fit(small, rows), um.fit(large, rows)) == expected


def test_turning_an_edge_of_a_group_gives_the_same_model() -> None:
    rows = um.simulate.sample(um.simulate.realistic_parameters(two_group_chain, rng=3), 300, rng=5)
    first, second = um.fit(two_group_chain, rows), um.fit(two_group_chain_reversed, rows)
    assert is_nested(first, second) == is_nested(second, first) == "nested"
    compared = um.compare_models({"down": two_group_chain, "up": two_group_chain_reversed}, rows)
    assert compared.notes[-1] == f"{' and '.join(compared.fits)} are equivalent: they fit any data alike."
    assert not any("determine only" in note for note in compared.notes)  # groups rotate, and may
    assert not len(compared.tests)


def test_models_over_other_variables_are_not_nested_and_said_not_to_compare() -> None:
    rows = um.simulate.sample(um.simulate.realistic_parameters(shared_child, rng=3), 300, rng=5)
    part = "f =~ x1 + x2 + x3"
    compared = um.compare_models({"all": shared_child, "part": part}, rows)
    assert compared.nesting.loc["part", "all"] == "not nested"
    assert any("cannot be compared" in note for note in compared.notes)
    assert compared.table[["aic", "bic"]].isna().all(axis=None)
    assert list(compared.table.index) == ["all", "part"]


def test_misfit_tells_apart_by_orders_of_magnitude(rows: pd.DataFrame) -> None:
    """The two thresholds have room on both sides."""
    rng = np.random.default_rng(0)
    chain, collider, full = (um.fit(dag, rows) for dag in (latent_chain, v_structure, complete))
    inside = [compare._misfit(full, random_population(chain, rng)) for _ in range(10)]
    outside = [compare._misfit(collider, random_population(chain, rng)) for _ in range(10)]
    assert max(inside) < 0.1 * compare._NONE
    assert min(outside) > 10 * compare._REAL


def test_random_populations_are_proper_whatever_covaries() -> None:
    names = [f"f{i}" for i in range(8)]
    text = "\n".join(f"{f} =~ {f}a + {f}b + {f}c" for f in names)
    model = um.fit(text, cov=np.eye(24), n_samples=100, names=[f"{f}{c}" for f in names for c in "abc"])
    for seed in range(5):
        population = random_population(model, np.random.default_rng(seed))
        assert np.linalg.eigvalsh(population.cov)[0] > 0


def test_every_kind_of_model_has_a_row(rows: pd.DataFrame) -> None:
    search = um.LGES().fit(rows)
    models = {
        "text": "\n".join(f"{f} =~ {' + '.join(items)}" for f, items in INDICATORS.items()),
        "dag": latent_chain,
        "cpdag": fork.cpdag(),
        "fit": um.fit(one, rows),
        "result": search.result_,
        "search": search,
    }
    compared = um.compare_models(models, rows)
    assert set(compared.table.index) == set(models)
    assert compared.table["bic"].is_monotonic_increasing
    assert compared.fits["fit"] is models["fit"]  # the same data: nothing is fitted again
    assert compared.table.loc["result", "chi2"] == compared.table.loc["search", "chi2"]
    assert list(compared.table) == ["chi2", "df", "pvalue", "rmsea", "cfi", "tli", "srmr", "aic", "bic", "proper"]


def test_difference_tests_are_those_of_the_chi_squares(rows: pd.DataFrame) -> None:
    compared = um.compare_models({"chain": latent_chain, "complete": complete, "apart": apart}, rows)
    pairs = {(a, b) for a, b in zip(compared.tests["smaller"], compared.tests["larger"])}
    assert pairs == {("chain", "complete"), ("apart", "chain"), ("apart", "complete")}
    for row in compared.tests.to_dict("records"):
        small, large = compared.fits[row["smaller"]], compared.fits[row["larger"]]
        assert row["chi2"] == pytest.approx(small.chi2 - large.chi2)
        assert row["df"] == small.df - large.df
    text = str(compared)
    assert "- apart in chain: chi-square" in text
    assert "best BIC first" in text
    html = compared._repr_html_()
    assert "<td>&lt; .001</td>" in html  # figures as in the text, not 0.000
    assert all(f"<li>{line[2:].replace('<', '&lt;')}</li>" in html for line in text.splitlines() if line[:2] == "- ")


def test_published_models_keep_their_own_options() -> None:
    data = um.datasets.load("big_five")
    compared = um.compare_models(dict(data.models), cov=data.frame(), n_samples=data.n_samples)
    # lavaan 0.6-14: 275 and 265 degrees of freedom; the orthogonal model is a special case.
    assert compared.table["df"].to_dict() == {"goldberg_correlated": 265, "goldberg_orthogonal": 275}
    assert list(compared.tests["df"]) == [10]


def test_without_data_those_of_a_fit_are_taken(rows: pd.DataFrame) -> None:
    compared = um.compare_models({"fit": um.fit(one, rows), "chain": latent_chain})
    assert compared.table.loc["chain", "chi2"] == um.fit(latent_chain, rows).chi2


def test_other_data_mean_another_fit(rows: pd.DataFrame) -> None:
    half = rows.iloc[:200]
    compared = um.compare_models({"old": um.fit(latent_chain, rows), "new": um.fit(one, half)}, half)
    assert compared.fits["old"].chi2 == um.fit(latent_chain, half).chi2
    assert compared.notes[0].startswith("Refitted, as the data given are not those they came from: old.")


def test_ordinal_rows_are_compared_on_the_correlations_asked_for(rows: pd.DataFrame) -> None:
    items = rows.apply(lambda x: np.digitize(x, np.quantile(x, [0.2, 0.5, 0.8])))
    ordinal = um.fit(latent_chain, um.as_sample(items, cor="auto"))
    models = {"chain": ordinal, "one": one}
    assert um.compare_models(models).fits["chain"] is ordinal
    assert um.compare_models(models, items).fits["chain"] is ordinal
    assert um.compare_models(models, items, cor="pearson").refitted == ("chain",)
    assert um.compare_models({"chain": latent_chain}, items).fits["chain"].chi2 == um.fit(latent_chain, items).chi2


def test_difference_tests_are_lavaans() -> None:
    """``lavTestLRT`` of lavaan 0.6-14 under R 4.2.2, on 2026-11-15, default options."""
    data = um.datasets.load("holzinger_swineford")
    three = "visual =~ x1 + x2 + x3; textual =~ x4 + x5 + x6; speed =~ x7 + x8 + x9"
    models = {
        "three": three,
        "orthogonal": f"{three}; visual ~~ 0*textual; visual ~~ 0*speed; textual ~~ 0*speed",
        "cross": f"{three}; visual =~ x9",
        "one": "g =~ " + " + ".join(data.names),
    }
    compared = um.compare_models(models, cov=data.frame(), n_samples=data.n_samples)
    tests = compared.tests.set_index(["smaller", "larger"])
    lavaan = {
        ("orthogonal", "three"): (68.22158, 3, 1.025665e-14),
        ("three", "cross"): (32.92341, 1, 9.586212e-09),
        ("orthogonal", "cross"): (101.145, 4, 5.611309e-21),
        ("one", "three"): (226.9586, 3, 6.285973e-49),
        ("one", "cross"): (259.882, 4, 4.835116e-55),
    }
    assert set(tests.index) == set(lavaan)
    for pair, (chi2, df, p) in lavaan.items():
        assert tests.loc[pair, "chi2"] == pytest.approx(chi2, rel=1e-5)
        assert tests.loc[pair, "df"] == df
        assert tests.loc[pair, "pvalue"] == pytest.approx(p, rel=1e-3)


def test_a_population_has_nothing_to_test() -> None:
    parameters = um.simulate.realistic_parameters(latent_chain, rng=3)
    models = {"chain": latent_chain, "complete": complete}
    compared = um.compare_models(models, cov=parameters.cov(), n_samples=math.inf, names=parameters.observed)
    assert not len(compared.tests)
    assert "chain" in str(compared)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({}, "There is nothing to compare"),
        ({"a": 3}, "'a' is no model: got int"),
        ({"a": um.LGES()}, "The search 'a' was not fitted yet"),
        ({"a": group_collider.rename({"x8": "z"})}, "do not have these variables of the model: 'z'"),
        ({"a": "f =~ x1 + x2 + zz"}, "'zz' is neither a variable of the data nor a latent"),
    ],
)
def test_mistakes_get_a_sentence(rows: pd.DataFrame, models: dict, message: str) -> None:
    with pytest.raises(um.ModelError, match=message):
        um.compare_models(models, rows)


def test_data_are_needed_from_somewhere() -> None:
    with pytest.raises(um.DataError, match="Give either rows"):
        um.compare_models({"chain": latent_chain})


def test_all_pairs_of_a_class_are_equivalent(rows: pd.DataFrame) -> None:
    members = {f"member {i}": dag for i, dag in enumerate(latent_chain.cpdag().members())}
    compared = um.compare_models(members, rows)
    assert len(compared.notes) == len(list(combinations(members, 2))) == 3


# One footing -------------------------------------------------------------------------------------------------

TWO = "f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6"
EQUAL = "f =~ y1 + a*y2 + a*y3\nh =~ y4 + y5 + y6"
STATED = f"{TWO}\ny1 ~ m*1\ny2 ~ m*1"
COMPLETE, INCOMPLETE = DRAWN["skewed"].drop(columns="g"), DRAWN["incomplete"]


def test_a_constraint_costs_what_its_chi_square_says() -> None:
    """Models that differ by one equality differ in BIC by the chi-square difference less log N, labels or not."""
    compared = um.compare_models({"free": TWO, "equal": EQUAL}, COMPLETE)
    free, equal = compared.fits["free"], compared.fits["equal"]
    gain = math.log(len(COMPLETE)) - (equal.chi2 - free.chi2)
    assert free.bic - equal.bic == pytest.approx(gain)
    assert list(compared.tests[["smaller", "larger", "df"]].iloc[0]) == ["equal", "free", 1]
    fitted = um.compare_models({"free": um.fit(TWO, COMPLETE), "equal": um.fit(EQUAL, COMPLETE)})
    assert fitted.refitted == fitted.recounted == ()
    pd.testing.assert_frame_equal(fitted.table, compared.table)


@pytest.mark.parametrize("rows", [COMPLETE, INCOMPLETE], ids=["complete", "incomplete"])
@pytest.mark.parametrize(
    "kinds",
    [
        {"free": {}, "equal": {"missing": "fiml"}},
        {"free": {"missing": "fiml"}, "equal": {}},
        {"free": {"missing": "fiml"}, "equal": {"missing": "fiml"}},
        {"free": {}, "equal": {}},
        {"free": {"missing": "listwise"}, "equal": {}},
    ],
    ids=lambda kinds: "-".join(kind.get("missing", "ml") for kind in kinds.values()),
)
def test_whatever_the_fits_were_made_from_the_comparison_has_one_footing(rows: pd.DataFrame, kinds: dict) -> None:
    fits = {name: um.fit(text, rows, **kinds[name]) for name, text in (("free", TWO), ("equal", EQUAL))}
    compared = um.compare_models(fits)
    free, equal = compared.fits["free"], compared.fits["equal"]
    assert free.n_samples == equal.n_samples
    assert free.has_means == equal.has_means
    # The likelihood of the saturated model is that of the data.
    assert equal.loglik + equal.chi2 / 2 == pytest.approx(free.loglik + free.chi2 / 2, rel=1e-8)
    assert free.n_counted - equal.n_counted == 1
    for name, fit in fits.items():
        assert (compared.fits[name] is fit) == (name not in (*compared.refitted, *compared.recounted))


def test_means_of_one_model_count_in_all() -> None:
    compared = um.compare_models({"free": TWO, "stated": STATED, "equal": um.fit(EQUAL, COMPLETE)}, COMPLETE)
    assert compared.recounted == ("equal",)
    assert compared.nesting.loc["stated", "free"] == compared.nesting.loc["equal", "free"] == "nested"
    assert compared.nesting.loc["equal", "stated"] == compared.nesting.loc["stated", "equal"] == "not nested"
    alone = um.fit(STATED, COMPLETE)
    assert compared.table.loc["stated", "bic"] == pytest.approx(alone.bic)
    assert compared.table.loc["free", "bic"] == pytest.approx(
        alone.bic - (alone.chi2 - um.fit(TWO, COMPLETE).chi2) + math.log(len(COMPLETE))
    )
    assert any(note.startswith("Refitted with means") for note in compared.notes)


def test_labels_nest_as_they_should() -> None:
    both = "f =~ a*y1 + a*y2 + a*y3\nh =~ y4 + y5 + y6"
    other = "f =~ y1 + y2 + y3\nh =~ y4 + b*y5 + b*y6"
    compared = um.compare_models({"free": TWO, "equal": EQUAL, "both": both, "other": other}, COMPLETE)
    pairs = {(row["smaller"], row["larger"]): row["df"] for row in compared.tests.to_dict("records")}
    assert pairs == {("equal", "free"): 1, ("both", "free"): 2, ("both", "equal"): 1, ("other", "free"): 1}
    assert "equivalent" not in str(compared)


def test_covariates_that_one_model_lacks_are_variables_of_all_of_them() -> None:
    rows = COMPLETE.assign(age=40 + COMPLETE["y1"] + np.random.default_rng(0).normal(size=len(COMPLETE)))
    models = {"given": f"{EQUAL}\nf ~ age", "measured": f"{TWO}\ny1 ~~ age\nage ~~ age"}
    compared = um.compare_models(models, rows)
    for fit in compared.fits.values():
        assert not fit.covariates
    given, measured_ = compared.fits["given"], compared.fits["measured"]
    assert given.loglik + given.chi2 / 2 == pytest.approx(measured_.loglik + measured_.chi2 / 2, rel=1e-8)
    assert given.df == um.fit(models["given"], rows).df


def test_models_with_labels_are_judged_by_rows_left_out() -> None:
    compared = um.compare_models({"free": TWO, "equal": EQUAL, "copy": f"{TWO}\ny1 ~~ a*y1"}, COMPLETE, folds=4)
    table = compared.held_out
    assert table.loc["free", "loglik"] == pytest.approx(table.loc["copy", "loglik"], rel=1e-9)
    assert table.loc["free", "loglik"] != table.loc["equal", "loglik"]
    with_means = um.compare_models({"free": TWO, "stated": f"{TWO}\ny1 ~ 1"}, COMPLETE, folds=4).held_out
    assert with_means.loc["free", "loglik"] == pytest.approx(table.loc["free", "loglik"], rel=1e-6)


def test_columns_that_no_model_uses_may_hold_text() -> None:
    compared = um.compare_models({"free": TWO, "equal": EQUAL}, COMPLETE.assign(name="x"))
    assert compared.table.loc["free", "chi2"] == pytest.approx(um.fit(TWO, COMPLETE).chi2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"models": [TWO]}, "models is a mapping of names to models, such as .*; got list"),
        ({"models": TWO}, "got str"),
        ({"folds": 10**6}, "folds is at most the number of rows, 240; got 1,000,000"),
        ({"folds": True}, "folds is a whole number from 2; got True"),
        ({"folds": 2.5}, "folds is a whole number from 2; got 2.5"),
        ({"folds": 3, "rng": "x"}, "rng is a whole number from 0 or a numpy Generator; got 'x'"),
        ({"models": {"a": um.fit(TWO, DRAWN["skewed"], groups="g").fits["a"]}}, "share of a fit of several groups"),
        ({"correlate_exogenous": "no"}, "correlate_exogenous is True or False; got 'no'"),
        ({"models": {"a": TWO, "b": STATED}, "X": None, "cov": COMPLETE.cov(), "n_samples": 240}, "part of 'b', and a"),
        ({"models": {"a": EQUAL}, "X": None, "cov": COMPLETE.cov(), "n_samples": math.inf}, "need a sample"),
        ({"models": {"a": um.fit("f =~ o1 + o2 + o3", DRAWN["likert"], estimator="WLSMV")}}, "has no likelihood"),
    ],
    ids=lambda given: "-".join(given) if isinstance(given, dict) else "",
)
def test_what_cannot_be_compared_is_refused(given: dict, words: str) -> None:
    with pytest.raises(um.UnmeasuredError, match=words):
        um.compare_models(**{"models": {"a": TWO}, "X": COMPLETE, **given})
