from __future__ import annotations

import pytest

from graphs_zoo import group_collider, measured, mimic, one_factor, shared_child, two_group_chain, zoo
from unmeasured.errors import GraphError
from unmeasured.graphs import DAG, LatentGroups, is_gnfm, is_one_factor

FOUR = ["x1", "x2", "x3", "x4"]


@pytest.mark.parametrize("name", sorted(set(zoo) - {"mimic", "two_traits"}))
def test_the_zoo_is_made_of_factor_models(name: str) -> None:
    verdict = is_gnfm(zoo[name])
    assert verdict
    assert verdict.failures == ()
    assert str(verdict) == "A generalized N factor model (Def. 2)."


def test_condition_i_counts_and_names_pure_children() -> None:
    dag = DAG.from_edges(measured(["L1", "L2"], ["X1", "X2", "X3"]), latents=["L1", "L2"])
    verdict = is_gnfm(dag)
    assert not verdict
    (failure,) = verdict.failures
    assert (failure.condition, failure.group, failure.variable) == ("(i)", ("L1", "L2"), None)
    assert failure.sentence == "(i) group {L1, L2} needs at least 4 pure children; it has 3: X1, X2, X3."
    assert str(verdict) == f"Not a generalized N factor model (Def. 2):\n{failure.sentence}"


def test_condition_i_does_not_count_common_children() -> None:
    edges = [*measured(["L1"], ["x1", "x2", "x3"]), *measured(["L2"], ["x2", "x3", "x4"])]
    verdict = is_gnfm(DAG.from_edges(edges, latents=["L1", "L2"]))
    assert [f.sentence for f in verdict.failures] == [
        "(i) group {L1} needs at least 2 pure children; it has 1: x1.",
        "(i) group {L2} needs at least 2 pure children; it has 1: x4.",
    ]


def test_condition_i_for_a_latent_nobody_measures() -> None:
    dag = DAG.from_edges([("G", "L"), *measured(["L"], FOUR)], latents=["G", "L"])
    assert [f.sentence for f in is_gnfm(dag).failures] == ["(i) group {G} needs at least 2 pure children; it has none."]


def test_condition_ii_a_cause_of_one_member_only() -> None:
    edges = [("L1", "L2"), *measured(["L1"], ["y1", "y2"]), *measured(["L2", "L3"], FOUR)]
    (failure,) = is_gnfm(DAG.from_edges(edges, latents=["L1", "L2", "L3"])).failures
    assert (failure.condition, failure.group, failure.variable) == ("(ii)", ("L2", "L3"), "L1")
    assert failure.sentence == "(ii) L1 causes L2 but not L3, all in the group {L2, L3}."


def test_condition_ii_an_effect_of_one_member_only() -> None:
    edges = [("L3", "L1"), *measured(["L1"], ["y1", "y2"]), *measured(["L2", "L3"], FOUR)]
    (failure,) = is_gnfm(DAG.from_edges(edges, latents=["L1", "L2", "L3"])).failures
    assert failure.sentence == "(ii) L1 is caused by L3 but not by L2, all in the group {L2, L3}."


def test_condition_ii_means_respectively() -> None:
    # L2 → L1 → L3 touches every member, but once as an effect and once as a cause
    edges = [("L2", "L1"), ("L1", "L3"), *measured(["L1"], ["y1", "y2"]), *measured(["L2", "L3"], FOUR)]
    verdict = is_gnfm(DAG.from_edges(edges, latents=["L1", "L2", "L3"]))
    assert [f.condition for f in verdict.failures] == ["(ii)", "(ii)"]


def test_condition_iii_an_edge_inside_a_group() -> None:
    dag = DAG.from_edges([("L1", "L2"), *measured(["L1", "L2"], FOUR)], latents=["L1", "L2"])
    (failure,) = is_gnfm(dag).failures
    assert (failure.condition, failure.group, failure.variable) == ("(iii)", ("L1", "L2"), "L1")
    assert failure.sentence == (
        "(iii) L1 → L2 is an edge inside the group {L1, L2}; members of a group are not adjacent."
    )


def test_observed_variables_must_be_leaves_below_latents() -> None:
    dag = DAG.from_edges([("g", "x1"), ("g", "x2"), ("x1", "x2"), ("x2", "x3")], latents=["g"])
    leaf = [f for f in is_gnfm(dag).failures if f.condition == "leaf"]
    assert [f.variable for f in leaf] == ["x1", "x2", "x3"]
    assert [f.sentence for f in leaf] == [
        "Edge x1 → x2 starts at an observed variable; observed variables are leaves in this model (Def. 2).",
        "Edge x2 → x3 starts at an observed variable; observed variables are leaves in this model (Def. 2).",
        "x3 has no latent cause; observed variables are effects of latents (Def. 2).",
    ]


def test_an_edge_into_a_latent_is_named() -> None:
    assert is_gnfm(mimic).failures[0].sentence == (
        "Edge p → L points into a latent; observed variables are leaves in this model (Def. 2)."
    )


def test_without_latents_it_is_no_factor_model() -> None:
    verdict = is_gnfm(DAG.from_edges([], names=["a", "b"]))
    assert [f.variable for f in verdict.failures] == ["a", "b"]
    assert not is_gnfm(DAG.from_edges([("a", "b")]))


def test_no_variables_at_all_break_no_condition() -> None:
    assert is_gnfm(DAG.from_edges([]))


def test_a_given_partition_is_judged_as_given() -> None:
    assert is_gnfm(two_group_chain, [["L3", "L2"], ["L1"]])
    verdict = is_gnfm(two_group_chain, [["L1"], ["L2"], ["L3"]])
    assert [f.sentence for f in verdict.failures] == [
        "(i) group {L2} needs at least 2 pure children; it has none.",
        "(i) group {L3} needs at least 2 pure children; it has none.",
    ]


def test_no_other_partition_meets_the_definition() -> None:
    def partitions(items: list[str]):
        if not items:
            yield []
            return
        first, *rest = items
        for smaller in partitions(rest):
            yield [[first], *smaller]
            for i, group in enumerate(smaller):
                yield [*smaller[:i], [first, *group], *smaller[i + 1 :]]

    for dag in (shared_child, two_group_chain, group_collider):
        good = [p for p in partitions(list(dag.latents)) if is_gnfm(dag, p)]
        assert len(good) == 1
        assert {frozenset(group) for group in good[0]} == {frozenset(group) for group in dag.latent_groups}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([["L1"]], r"in none of them: 'L2', 'L3'. Add a group for each, such as \['L2'\]"),
        ([["L1"], ["L2", "L3"], ["L1"]], "given more than once: 'L1'"),
        ([["L1", "x1"], ["L2", "L3"]], "'x1' is observed; groups are made of latents only"),
        ([["L1"], ["L2", "L33"]], "No variable 'L33'"),
        ([["L1"], [], ["L2", "L3"]], "A latent group is empty"),
        (["L1", "L2", "L3"], r"A group is a list of latent names; got .*'L1'"),
    ],
)
def test_what_is_no_partition_is_refused(groups: list[list[str]], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        is_gnfm(two_group_chain, groups)


def test_one_factor_models() -> None:
    assert is_one_factor(one_factor)
    assert is_one_factor(zoo["latent_chain"])
    assert str(is_one_factor(one_factor)) == "A one factor model."


def test_one_factor_wants_a_single_parent_and_three_children() -> None:
    verdict = is_one_factor(shared_child)
    assert [(f.condition, f.sentence) for f in verdict.failures] == [
        ("single parent", "x7 needs a single latent parent; it has 2: L1, L2."),
    ]
    dag = DAG.from_edges([("g", "x1"), ("g", "x2"), ("x2", "x3")], latents=["g"])
    assert [f.sentence for f in is_one_factor(dag).failures] == [
        "Edge x2 → x3 starts at an observed variable; observed variables are leaves in this model (Def. 2).",
        "x3 needs a single latent parent; it has none.",
        "g needs at least 3 observed children; it has 2: x1, x2.",
    ]


def test_one_factor_models_are_generalized_n_factor_models() -> None:
    for dag in zoo.values():
        assert is_gnfm(dag) or not is_one_factor(dag)


def test_latent_groups_know_their_children() -> None:
    groups = LatentGroups(shared_child, [["L2"], ["L1"]])
    assert list(groups) == [("L1",), ("L2",)]
    assert (len(groups), groups.size) == (2, 2)
    assert groups.pure_children(("L1",)) == ("x1", "x2", "x3")
    assert groups.pure_children("L1") == ("x1", "x2", "x3")
    assert groups.common_children() == ("x7",)
    assert groups.group_of("L2") == ("L2",)
    assert ("L1",) in groups
    assert str(groups) == "{L1} {L2}"


def test_latent_groups_of_a_class_are_those_of_its_members() -> None:
    cpdag = two_group_chain.cpdag()
    groups = LatentGroups(cpdag, cpdag.latent_groups)
    assert groups.size == 3
    assert groups.pure_children(["L3", "L2"]) == ("x3", "x4", "x5", "x6")
    assert groups.common_children() == ()


def test_latent_groups_refuse_what_they_do_not_have() -> None:
    groups = LatentGroups.of(two_group_chain)
    with pytest.raises(GraphError, match=r"\{L2\} is not .* latent group.*they are \{L1\} \{L2, L3\}"):
        groups.pure_children(["L2"])
    with pytest.raises(GraphError, match="'x1' is in none of the latent groups"):
        groups.group_of("x1")
