"""Exact model texts.

Those with a df beside them were given to lavaan 0.6-14 under R 4.2.2, ``sem(text, std.lv = TRUE)``, with the
model's own population covariance at random parameters: chi-square was 0 and the degrees of freedom as written.
That is what the dimension of the graph leaves (rank of the Jacobian); single indicators are the exception, as
their models are not identified and lavaan counts parameters.
"""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from graphs_zoo import group_collider, latent_chain, measured, two_group_chain, two_group_chain_reversed
from unmeasured.graphs import DAG
from unmeasured.graphs.formats import convert
from unmeasured.models.lavaan import parse

ABC = {"L1": ["a1", "a2", "a3"], "L2": ["b1", "b2", "b3"], "L3": ["c1", "c2", "c3"]}
nine_items = [edge for latent, items in ABC.items() for edge in measured([latent], items)]


def lines(text: str) -> list[str]:
    return dedent(text).strip().splitlines()


def test_a_chain_needs_no_zeros() -> None:  # df 25
    dag = DAG.from_edges([("L1", "L2"), ("L2", "L3"), *nine_items], latents=list(ABC))
    assert dag.to_lavaan().splitlines() == lines(
        """
        # lavaan: sem(model, data, std.lv = TRUE)
        L1 =~ a1 + a2 + a3
        L2 =~ b1 + b2 + b3
        L3 =~ c1 + c2 + c3

        L2 ~ L1
        L3 ~ L2
        """
    )


def test_final_outcomes_are_kept_uncorrelated() -> None:  # df 25
    dag = DAG.from_edges([("L1", "L2"), ("L1", "L3"), *nine_items], latents=list(ABC))
    assert dag.to_lavaan().splitlines()[5:] == ["L2 ~ L1", "L3 ~ L1", "", "L2 ~~ 0*L3"]


def test_exogenous_latents_are_kept_uncorrelated() -> None:  # df 25
    dag = DAG.from_edges([("L1", "L3"), ("L2", "L3"), *nine_items], latents=list(ABC))
    assert dag.to_lavaan().splitlines()[5:] == ["L3 ~ L1 + L2", "", "L1 ~~ 0*L2"]


def test_without_edges_all_latents_are_exogenous() -> None:  # df 27
    text = DAG.from_edges(nine_items, latents=list(ABC)).to_lavaan()
    assert text.splitlines()[5:] == ["L1 ~~ 0*L2", "L1 ~~ 0*L3", "L2 ~~ 0*L3"]


def test_a_group_of_three_has_three_zero_loadings() -> None:  # df 28
    y = [f"y{i}" for i in range(8)]
    edges = [("M", g) for g in "ABC"] + measured(["M"], ["m1", "m2", "m3"]) + measured("ABC", y)
    assert DAG.from_edges(edges, latents=["M", "A", "B", "C"]).to_lavaan().splitlines() == lines(
        """
        # lavaan: sem(model, data, std.lv = TRUE)
        # Group {A, B, C}: 3 loadings set to zero to fix its rotation, which is arbitrary.
        M =~ m1 + m2 + m3
        A =~ y0 + y1 + y2 + y3 + y4 + y5 + y6 + y7
        B =~ 0*y0 + y1 + y2 + y3 + y4 + y5 + y6 + y7
        C =~ 0*y0 + 0*y1 + y2 + y3 + y4 + y5 + y6 + y7

        A ~ M
        B ~ M
        C ~ M

        A ~~ 0*B
        A ~~ 0*C
        B ~~ 0*C
        """
    )


def test_zeros_are_put_on_pure_children_only() -> None:  # df 19
    x = ["x1", "x2", "x3", "x4", "x5"]
    edges = [("L3", "L1"), ("L3", "L2"), *measured(["L1", "L2"], ["z", *x]), *measured(["L3"], ["z", "c1", "c2", "c3"])]
    text = DAG.from_edges(edges, latents=["L1", "L2", "L3"]).to_lavaan()
    assert "L1 =~ z + x1 + x2 + x3 + x4 + x5" in text
    assert "L2 =~ z + 0*x1 + x2 + x3 + x4 + x5" in text


def test_too_few_pure_children_leave_the_rotation_free() -> None:
    edges = [*measured(["L1", "L2"], ["x1", "x2", "x3"]), *measured(["L3"], ["x2", "x3", "x4", "x5"])]
    text = DAG.from_edges(edges, latents=["L1", "L2", "L3"]).to_lavaan()
    assert "# Group {L1, L2}: its rotation is left free (1 pure children, 2 needed to fix it)" in text
    assert "0*x" not in text


def test_latents_that_only_look_like_a_group_get_no_zeros() -> None:
    edges = [("L1", "L2"), *measured(["L1", "L2"], ["x1", "x2", "x3", "x4"])]
    text = DAG.from_edges(edges, latents=["L1", "L2"]).to_lavaan()
    assert "0*" not in text
    assert "Group" not in text


def test_second_order_factors_are_measured_by_latents() -> None:  # df 24
    dag = DAG.from_edges([("G", "L1"), ("G", "L2"), ("G", "L3"), *nine_items], latents=["G", *ABC])
    text = dag.to_lavaan().splitlines()
    assert text[1] == "G =~ L1 + L2 + L3"
    assert not [line for line in text if " ~ " in line or "~~" in line]


def test_a_latent_without_trace_is_left_out() -> None:  # df 2
    dag = DAG.from_edges([("L1", "Z"), ("Z", "W"), *measured(["L1"], ["a", "b", "c", "d"])], latents=["L1", "Z", "W"])
    assert dag.to_lavaan().splitlines() == lines(
        """
        # lavaan: sem(model, data, std.lv = TRUE)
        # Z affects no observed variable, leaves no trace in the data, and is left out.
        # W affects no observed variable, leaves no trace in the data, and is left out.
        L1 =~ a + b + c + d
        """
    )


def test_observed_variables_may_cause_and_be_caused() -> None:  # df 13, with fixed.x = FALSE
    edges = [("p1", "L1"), ("p2", "L1"), ("L1", "a1"), ("L1", "a2"), ("L1", "a3"), ("a1", "o1"), ("p1", "o1")]
    dag = DAG.from_edges([*edges, ("p1", "o2")], latents=["L1"])
    assert dag.to_lavaan().splitlines() == lines(
        """
        # lavaan: sem(model, data, std.lv = TRUE, fixed.x = FALSE)
        L1 =~ a1 + a2 + a3

        L1 ~ p1 + p2
        o1 ~ p1 + a1
        o2 ~ p1

        p1 ~~ 0*p2
        L1 ~~ 0*o1
        L1 ~~ 0*o2
        o1 ~~ 0*o2
        """
    )


def test_isolated_variables_and_single_indicators_keep_their_variance() -> None:
    names = ["L1", "a1", "a2", "a3", "a4", "lone"]
    dag = DAG.from_edges(measured(["L1"], names[1:5]), latents=["L1"], names=names)
    assert dag.to_lavaan().splitlines()[-1] == "lone ~~ lone"  # df 6
    dag = DAG.from_edges([("L1", "L2"), ("L2", "b1"), *measured(["L1"], ["a1", "a2", "a3"])], latents=["L1", "L2"])
    assert dag.to_lavaan().splitlines()[-1] == "b1 ~~ b1"  # df 1, while the dimension leaves 2
    dag = DAG.from_edges([("G", "L"), *measured(["L"], ["a", "b", "c", "d"])], latents=["G", "L"])
    assert dag.to_lavaan().splitlines()[-1] == "L ~~ 1*L"  # df 1, while the dimension leaves 2


def test_an_undirected_edge_is_written_as_in_the_member_and_marked() -> None:  # df 4
    for dag in (two_group_chain, two_group_chain_reversed):
        assert dag.cpdag().to_lavaan().splitlines() == lines(
            """
            # lavaan: sem(model, data, std.lv = TRUE)
            # Group {L2, L3}: 1 loading set to zero to fix its rotation, which is arbitrary.
            L1 =~ x1 + x2
            L2 =~ x3 + x4 + x5 + x6
            L3 =~ 0*x3 + x4 + x5 + x6

            # The data do not tell the direction of L1 - {L2, L3}; written as L1 -> {L2, L3}.
            L2 ~ L1
            L3 ~ L1

            L2 ~~ 0*L3
            """
        )


def test_only_undirected_edges_are_marked() -> None:
    assert group_collider.cpdag().to_lavaan() == group_collider.to_lavaan()
    assert latent_chain.cpdag().to_lavaan().count("do not tell the direction") == 2
    assert "direction" not in latent_chain.to_lavaan()


@pytest.mark.parametrize("name", ["my item", "1st", "_x", "a-b", "TRUE", "x~y", 'say "so"', "größe & co"])
@pytest.mark.parametrize("to", ["to_lavaan", "to_semopy"])
def test_names_r_cannot_read_are_adapted_and_read_back(name: str, to: str) -> None:
    dag = DAG.from_edges(
        [("g", name), ("g", "x.2_b"), ("g", "x3"), ("the g", "x4"), ("the g", "x5")], latents=["g", "the g"]
    )
    text = getattr(convert, to)(dag)
    words = [
        word for line in text.splitlines() if not line.startswith("#") for word in re.split(r" [=~+]+ |1\\*", line)
    ]
    assert name not in words
    assert "the g" not in words
    read = parse(text, observed=dag.observed)
    assert set(read.latents) == {"g", "the g"}
    assert set(read.observed) == set(dag.observed)


def test_an_adapted_name_gives_way_to_one_that_is_there() -> None:
    dag = DAG.from_edges([("g", "a b"), ("g", "a_b"), ("g", "a-b")], latents=["g"])
    assert "g =~ a_b_2 + a_b + a_b_3" in dag.to_lavaan()
    assert set(parse(dag.to_lavaan(), observed=dag.observed).observed) == set(dag.observed)


def test_a_variable_of_the_data_is_not_renamed_by_a_comment() -> None:
    text = '# a stands for "b"\ng =~ a + c + d'
    assert parse(text, observed=["a", "b", "c", "d"]).observed == ("a", "c", "d")


def test_semopy_gets_different_markers() -> None:
    edges = [(g, x) for g, items in {"A": "wxy", "B": "wxz", "C": "wv"}.items() for x in items]
    lines = convert.to_semopy(DAG.from_edges(edges, latents=["A", "B", "C"])).splitlines()
    markers = [line.split("1*")[1].split(" ")[0] for line in lines if "=~" in line]
    assert markers == ["y", "z", "v"]
