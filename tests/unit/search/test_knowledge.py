"""LGES held to knowledge: it is never violated, what follows is directed, and what it costs is told."""

from __future__ import annotations

import math
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone

import unmeasured as um
from graphs_zoo import latent_chain
from knowledge_oracle import agrees
from unmeasured.errors import ModelError, UnmeasuredError

PARAMETERS = um.simulate.realistic_parameters(latent_chain, np.random.default_rng(0))
ROWS = um.simulate.sample(PARAMETERS, 600, rng=1)
TRUE = {"one": ["x1", "x2", "x3"], "two": ["x4", "x5", "x6"], "three": ["x7", "x8", "x9"]}


def found(known: um.Knowledge, **options: object) -> um.LGES:
    return um.LGES(knowledge=known, **options).fit(ROWS)


def price(search: um.LGES) -> float:
    (told,) = [float(m[1]) for r in search.remarks_ if (m := re.search(r"costs ([\d.]+) of BIC against", r))]
    return told


def test_true_groups_cost_nothing_and_their_names_are_in_the_answer():
    known = um.Knowledge(groups=TRUE)
    search = found(known)
    assert agrees(known, search.graph_)
    assert search.latent_groups_ == (("one",), ("two",), ("three",))
    assert um.metrics.compare(latent_chain, search.graph_).shd == 0
    assert "costs nothing" in " ".join(search.remarks_)
    assert "Knowledge given: one is measured by x1, x2, x3;" in " ".join(search.result_.summary().split())
    assert search.result_.rename().graph.latents == ("one", "two", "three")  # names given are kept


def test_a_direction_is_propagated_in_the_class_and_told_apart_from_what_data_tell():
    known = um.Knowledge(groups=TRUE, required=["one -> two"])
    search = found(known)
    assert agrees(known, search.graph_)
    # one → two – three would leave a v-structure open that the data refuse
    assert {e for e in search.graph_.directed_edges if set(e) <= set(TRUE)} == {("one", "two"), ("two", "three")}
    assert search.graph_.known == (("one", "two"),)
    assert search.graph_.without_knowledge.undirected_edges == (("one", "two"), ("two", "three"))
    text = " ".join(search.result_.summary().split())
    assert "The direction of one → two; two → three follows from the knowledge given" in text
    assert "ompelled in the class found" not in text
    again = um.Result.from_json(search.result_.to_json())
    assert again.graph == search.graph_
    assert agrees(known, again.graph)


@pytest.mark.parametrize(
    "paths",
    [
        {"tiers": [["three"], ["one", "two"]]},
        {"forbidden": ["one -- two"]},
        {"forbidden": ["one -> two", "two -> three", "three -> one"]},
        {"required": ["one -> two", "three -> two"]},
        {"required": ["one -> three"], "tiers": [["two"], ["one"]]},
    ],
)
def test_paths_are_respected_whether_or_not_they_are_true(paths):
    known = um.Knowledge(groups={name: items[:1] for name, items in TRUE.items()}, **paths)
    search = found(known)
    assert agrees(known, search.graph_), search.graph_


@pytest.mark.parametrize(
    "known",
    [
        um.Knowledge(n_groups=2),
        um.Knowledge(n_latents="at least 4"),
        um.Knowledge(n_groups="at most 1"),
        um.Knowledge(group_size=2),
        um.Knowledge(apart=[["x1", "x2"]]),
        um.Knowledge(together=[["x1", "x4"], ["x4", "x7"]], apart=[["x1", "x7"]]),
        um.Knowledge(groups={"f": ["x1", "x2", "x5"], "g": ["x4", "x5"]}, n_groups=3),
        um.Knowledge(groups={"f": ["x1"]}, latents={"f": ["joy", "grief"]}),
    ],
    ids=str,
)
def test_who_measures_what_is_respected_whether_or_not_it_is_true(known):
    search = found(known)
    assert agrees(known, search.graph_), search.graph_


def test_a_wrong_pair_is_respected_and_reported_with_its_price():
    known = um.Knowledge(groups={"odd": ["x1", "x4"]})
    search = found(known)
    assert agrees(known, search.graph_)
    free = um.LGES().fit(ROWS)
    assert price(search) == pytest.approx(search.sem_.bic - free.sem_.bic, abs=0.051)
    assert price(search) > 10
    told = " ".join(search.remarks_)
    assert "which contradicts: odd is measured by x1, x4. The data speak against it" in told


def test_one_machine_or_another_gives_the_same_and_scikit_learn_copies_it():
    known = um.Knowledge(groups={"odd": ["x1", "x4"]}, n_groups=3)
    search = um.LGES(knowledge=known)
    assert clone(search).get_params()["knowledge"] == known
    one, two = search.fit(ROWS), pickle.loads(pickle.dumps(clone(search).set_params(n_jobs=2).fit(ROWS)))
    assert one.graph_ == two.graph_
    assert repr(search) == "LGES(knowledge=<2 statements>)"


def test_a_time_limit_keeps_to_knowledge_and_says_that_no_price_was_computed():
    known = um.Knowledge(groups={"odd": ["x1", "x4"]})
    for options in ({"time_limit": 1e-6}, {"compare_without_knowledge": False}):
        search = found(known, **options)
        assert agrees(known, search.graph_)
        assert any("was not computed; compare_without_knowledge=True" in remark for remark in search.remarks_[:3])
        assert bool(search.stopped_) == ("time_limit" in options)
    search = found(known, time_limit=60.0, compare_without_knowledge=True)
    assert agrees(known, search.graph_)
    assert price(search) > 10


def test_of_a_population_paths_are_directed_and_what_is_false_is_refused():
    cov = PARAMETERS.cov()

    def search(known: um.Knowledge) -> um.LGES:
        return um.LGES(knowledge=known).fit_cov(cov, math.inf, names=PARAMETERS.observed)

    known = um.Knowledge(groups=TRUE, tiers=[["three"], ["two"]])
    graph = search(known).graph_
    assert agrees(known, graph)
    assert set(graph.directed_edges) >= {("three", "two"), ("two", "one")}
    with pytest.raises(ModelError, match=r"the knowledge given \(one → three is required\)"):
        search(um.Knowledge(groups=TRUE, required=["one -> three"]))
    with pytest.raises(ModelError, match=r"the knowledge given \(2 groups\)"):
        search(um.Knowledge(n_groups=2))


def test_the_papers_rule_is_not_held_to_knowledge_but_its_answer_is():
    known = um.Knowledge(groups={"odd": ["x1", "x4"]})
    with pytest.raises(ModelError, match=r'odd is measured by x1, x4.*Use criterion="bic"'):
        um.LGES(criterion="delta", knowledge=known).fit(ROWS)


def test_what_is_no_knowledge_is_refused():
    with pytest.raises(
        UnmeasuredError, match=r"knowledge must be a um.Knowledge or None; got 'known.toml'. Read a file with"
    ):
        um.LGES(knowledge="known.toml").fit(ROWS)
    with pytest.raises(ModelError, match="contradicts itself"):
        um.LGES(knowledge=um.Knowledge(together=[["x1", "x2"]], apart=[["x1", "x2"]])).fit(ROWS)


def test_without_knowledge_nothing_changes():
    assert um.LGES(knowledge=um.Knowledge()).fit(ROWS).remarks_ == um.LGES().fit(ROWS).remarks_
