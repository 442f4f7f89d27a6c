"""Path diagrams: everything is there, on the sheet, apart, and in the conventions of the field."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))

import models

import unmeasured as um
from unmeasured.diagram.style import edge_paint, node_paint
from unmeasured.results.drawing import picture_of


def result_of(dag, n_samples=500):
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=1), n_samples, rng=2)
    return um.Result(dag.cpdag(), um.fit(dag, rows))


def one_factor(n_items):
    return um.DAG.from_edges([("ability", f"item{i}") for i in range(n_items)], latents=["ability"])


@pytest.fixture(scope="module")
def pair():
    """A latent that causes a group of two::

    a1 a2 a3 ◄─ L1 ──► {L2, L3} ──► b1 ... b5;   both ──► c
    """
    edges = [("L1", "L2"), ("L1", "L3"), *[("L1", x) for x in ("a1", "a2", "a3", "c")]]
    edges += [(latent, x) for latent in ("L2", "L3") for x in ("b1", "b2", "b3", "b4", "b5", "c")]
    return result_of(um.DAG.from_edges(edges, latents=["L1", "L2", "L3"]))


def test_the_full_view_has_every_variable_and_the_other_only_latents(pair):
    full, latents = picture_of(pair), picture_of(pair, "latents")
    assert {node.id for node in full.nodes if node.kind != "group"} == set(pair.graph.names)
    assert {node.id for node in latents.nodes if node.kind != "group"} == set(pair.graph.latents)


def test_a_group_is_one_node_with_its_latents_inside(pair):
    picture = picture_of(pair)
    group = picture.node("{L2, L3}")
    assert group.kind == "group"
    for name in ("L2", "L3"):
        inside = picture.node(name)
        assert inside.parent == group.id
        assert abs(inside.x - group.x) + inside.width / 2 <= group.width / 2
        assert abs(inside.y - group.y) + inside.height / 2 <= group.height / 2
    (path,) = [edge for edge in picture.edges if edge.kind == "path"]
    # The class leaves the direction open, and rotation any single figure.
    assert (path.source, path.target, path.directed, path.label) == ("L1", "{L2, L3}", False, "")


def test_loadings_of_a_group_stand_together_and_a_common_child_is_marked(pair):
    picture = picture_of(pair)
    by_ends = {(edge.source, edge.target): edge for edge in picture.edges}
    std = pair.loadings.set_index(["latent", "indicator"])["std"]
    single = by_ends["L1", "a1"]
    assert single.label == f"{std['L1', 'a1']:.2f}".replace("0.", ".").replace("-", "−")
    assert len(by_ends["{L2, L3}", "b2"].label.split()) == 2
    assert [node.id for node in picture.nodes if node.shared] == ["c"]
    assert "L1, {L2, L3}" in picture.node("c").hint


def chain():
    edges = [("A", "B"), ("C", "B"), *[(latent, f"{latent.lower()}{i}") for latent in "ABC" for i in range(4)]]
    return result_of(um.DAG.from_edges(edges, latents=["A", "B", "C"]))


@pytest.mark.parametrize("view", ["full", "latents"])
def test_causes_stand_before_their_effects(view):
    picture = picture_of(chain(), view)
    place = {node.id: node.x if picture.flow == "right" else node.y for node in picture.nodes}
    assert place["A"] == place["C"] < place["B"]
    assert all(edge.directed for edge in picture.edges)


@pytest.mark.parametrize("view", ["full", "latents"])
def test_a_hierarchy_is_drawn_as_tiers(view):
    """Latents of a level below stand in one column, behind all of those above, also where items load on two of them."""
    for result in (models.hierarchy(2), models.hierarchy(4), models.stored("teacher_burnout_traits")):
        picture, facets = picture_of(result, view), result.graph.facets
        along = {node.id: node.x if picture.flow == "right" else node.y for node in picture.nodes}
        below = [[name for name in names if name not in facets] for names in facets.values()]
        tier = {round(along[name], 3) for names in below for name in names}
        assert len(tier) == 1
        assert all(along[name] < min(tier) - 60 for name in facets)


def test_covariates_stand_at_the_left_and_outcomes_at_the_right():
    edges = [("age", "A"), ("A", "B"), ("B", "grade"), *[(x, f"{x.lower()}{i}") for x in "AB" for i in range(3)]]
    # An outcome without causes and a covariate without effects have their sides as well.
    dag = um.DAG.from_edges(
        edges,
        latents=["A", "B"],
        names=["A", "B", *(f"{x}{i}" for x in "ab" for i in range(3)), "age", "size", "grade", "luck"],
        covariates=["age", "size"],
        outcomes=["grade", "luck"],
    )
    rows = um.simulate.sample(um.simulate.paper_parameters(dag, rng=1), 500, rng=2)
    result = um.Result(dag.cpdag(), um.fit(dag, rows))
    picture = picture_of(result)
    narrow = picture_of(result, width=250.0)
    y = {node.id: node.y for node in narrow.nodes}
    assert narrow.flow == "down"
    assert y["age"] < min(y["A"], y["B"]) < max(y["A"], y["B"]) < y["grade"]
    x = {node.id: node.x for node in picture.nodes}
    assert picture.flow == "right"
    assert x["age"] < min(x["A"], x["B"])
    assert x["grade"] > max(x["A"], x["B"])
    # Those without edges stand below or above the others of their side, and no node on another.
    assert x["size"] == x["age"]
    assert x["luck"] == x["grade"]
    for one, other in combinations(picture.nodes, 2):
        apart_x = abs(one.x - other.x) - (one.width + other.width) / 2
        assert max(apart_x, abs(one.y - other.y) - (one.height + other.height) / 2) > 0


def test_a_lone_covariate_stands_before_the_model_that_it_is_not_joined_to():
    edges = [("A", "B"), *[(x, f"{x.lower()}{i}") for x in "AB" for i in range(3)]]
    names = ["A", "B", *(f"{x}{i}" for x in "ab" for i in range(3)), "age"]
    dag = um.DAG.from_edges(edges, latents=["A", "B"], names=names, covariates=["age"])
    rows = um.simulate.sample(um.simulate.paper_parameters(dag, rng=1), 500, rng=2)
    picture = picture_of(um.Result(dag.cpdag(), um.fit(dag, rows)))
    x, y = ({node.id: place(node) for node in picture.nodes} for place in (lambda n: n.x, lambda n: n.y))
    assert x.pop("age") < min(x.values())
    assert min(y.values()) <= y["age"] <= max(y.values())


def test_many_variables_are_drawn_as_latents_with_their_strongest_indicators():
    dag = um.simulate.random_gnfm(n_groups=6, n_latents=6, n_observed=48, rng=1)
    result = result_of(dag)
    picture = picture_of(result)
    assert {node.kind for node in picture.nodes} == {"latent"}
    (first, *_), group = result.indicators[result.graph.latent_groups[0]], result.graph.latent_groups[0][0]
    assert first in " ".join(picture.node(group).notes)
    assert len(picture_of(result, "full").nodes) == 54


def test_many_weak_loadings_are_not_drawn_and_the_picture_says_so():
    latents = ["A", "B"]
    own = [(latent, f"{latent.lower()}{i}") for latent in latents for i in range(12)]
    cross = [("A", f"b{i}") for i in range(10)]
    dag = um.DAG.from_edges([*own, *cross], latents=latents)
    rows = um.simulate.sample(
        um.simulate.realistic_parameters(um.DAG.from_edges(own, latents=latents), rng=1), 500, rng=2
    )
    result = um.Result(dag.cpdag(), um.fit(dag, rows))
    picture = picture_of(result)
    hidden = 34 - sum(edge.kind == "loading" for edge in picture.edges)
    assert hidden == 10
    assert " ".join(picture.remark).startswith("Not drawn: 10 loadings under .30.")
    assert len(picture_of(result, min_loading=0.0).edges) == 34
    assert picture_of(result, min_loading=0.0).remark == ()


def test_long_names_are_wrapped_and_never_cut():
    long = "How often do you feel emotionally drained by your work?"
    result = result_of(um.DAG.from_edges([("f", x) for x in (long, "b", "c")], latents=["f"]))
    lines = picture_of(result).node(long).lines
    assert len(lines) > 1
    assert " ".join(lines) == long
    assert max(map(len, lines)) <= 22


def test_the_legend_names_what_the_picture_has_and_nothing_else(pair):
    samples = {key.sample for key in picture_of(pair).legend}
    assert {"latent", "group", "observed", "shared", "line"} <= samples
    alone = {key.sample for key in picture_of(result_of(one_factor(3))).legend}
    assert not alone & {"group", "shared", "line"}


def test_figures_for_one_and_two_columns_of_print():
    result = chain()
    for width, inches in (("column", 3.4), ("page", 7.0)):
        drawing = result.plot(style="print", width=width)
        wide, tall = drawing.get_size_inches()
        assert wide <= inches + 1e-9
        assert tall <= 9.0 + 1e-9
        sizes = {text.get_fontsize() for text in drawing.axes[0].texts}
        assert 5.0 <= min(sizes) <= max(sizes) <= 10.0
    assert result.plot(width=5).get_size_inches()[0] == pytest.approx(5.0)


def test_what_cannot_be_read_in_one_column_is_drawn_as_latents():
    result = models.stored("teacher_burnout")
    drawing = result.plot(style="print", width="column")
    assert drawing.get_size_inches()[0] <= 3.4 + 1e-9
    assert "ELC5" not in {text.get_text() for text in drawing.axes[0].texts}
    assert "ELC5" in {text.get_text() for text in result.plot("full", width="column").axes[0].texts}


def test_a_width_there_is_not_is_refused(pair):
    with pytest.raises(um.UnmeasuredError, match="in inches, or 'column' or 'page'; got 'wide'"):
        pair.plot(width="wide")


def test_weak_loadings_can_be_left_out_but_no_indicator_loses_its_last():
    data = um.datasets.load("multitasking")
    result = um.LGES().fit_cov(data.frame(), data.n_samples).result_
    everything, strong = picture_of(result), picture_of(result, min_loading=0.95)
    assert len(strong.edges) < len(everything.edges)
    reached = {edge.target for edge in strong.edges if edge.kind == "loading"}
    assert reached == set(result.graph.observed)


def test_r2_is_written_where_wanted():
    result = result_of(one_factor(3))
    assert all(node.notes == () for node in picture_of(result).nodes)
    notes = {node.id: node.notes for node in picture_of(result, r2=True).nodes}
    assert notes["item0"] == ("R² " + f"{result.r2['item0']:.2f}".removeprefix("0"),)


def test_variables_without_a_latent_are_drawn_too():
    graph = um.DAG.from_edges([], names=["a", "b", "c"])
    rows = np.random.default_rng(0).normal(size=(50, 3))
    result = um.Result(graph.cpdag(), um.fit(graph, rows, names=["a", "b", "c"]))
    assert {node.id for node in picture_of(result).nodes} == {"a", "b", "c"}
    assert picture_of(result, "latents").nodes == ()
    assert "<svg" in result.to_svg("latents")


def test_print_has_no_colour_and_the_screen_does(pair):
    picture = picture_of(pair)
    for style, coloured in (("print", False), ("colour", True)):
        paints = [node_paint(n, style) for n in picture.nodes] + [edge_paint(e, style) for e in picture.edges]
        inks = {ink for p in paints for ink in (p.stroke, p.fill) if ink != "none"}
        assert any(len({ink[1:3], ink[3:5], ink[5:7]}) > 1 for ink in inks) == coloured


def test_stronger_is_wider_and_negative_is_dashed():
    result = result_of(one_factor(5))
    for edge in picture_of(result).edges:
        paint = edge_paint(edge, "print")
        assert paint.dashed == (edge.label.startswith("−"))
    widths = [(edge.strength, edge_paint(edge, "print").width) for edge in picture_of(result).edges]
    assert sorted(widths) == sorted(widths, key=lambda pair: pair[1])


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_files_in_three_formats(tmp_path, ending, start, pair):
    path = tmp_path / f"diagram.{ending}"
    pair.plot(width=6.0).savefig(path)
    assert path.read_bytes().startswith(start)


def test_equal_pictures_are_equal_files_and_names_are_text():
    edges = [("a<b", x) for x in ("p_$1", "q&$2", "r")]
    result = result_of(um.DAG.from_edges(edges, latents=["a<b"]))
    assert result.to_svg() == result.to_svg()
    assert "p_$1" in result.to_svg()
    assert "a&lt;b" in result.to_svg()
    assert result.plot()._repr_png_().startswith(b"\x89PNG")


def test_a_view_there_is_not_is_refused(pair):
    with pytest.raises(um.UnmeasuredError, match="view must be 'auto', 'full' or 'latents'; got 'all'"):
        pair.plot("all")
    with pytest.raises(um.UnmeasuredError, match="from 0 to 1; got 3"):
        pair.plot(min_loading=3)
