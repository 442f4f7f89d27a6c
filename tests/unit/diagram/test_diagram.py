"""Path diagrams: everything is there, on the sheet, apart, and in the conventions of the field."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import unmeasured as um
from unmeasured.answer.drawing import picture_of
from unmeasured.diagram.picture import LABEL_FONT, curve, on_curve, text_width
from unmeasured.diagram.style import edge_paint, node_paint


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


@pytest.fixture(scope="module")
def sixty():
    return result_of(
        um.simulate.random_gnfm(n_groups=12, n_latents=14, n_observed=60, n_common_children=5, density=0.25, rng=3)
    )


def boxes(picture):
    for node in picture.nodes:
        if not node.parent:
            yield node.x - node.width / 2, node.y - node.height / 2, node.x + node.width / 2, node.y + node.height / 2


def labels(picture):
    for edge in picture.edges:
        if edge.label:
            x, y = on_curve(curve(picture.node(edge.source), picture.node(edge.target), edge), edge.at)
            half = text_width(edge.label, LABEL_FONT) / 2
            yield x - half, y - LABEL_FONT / 2, x + half, y + LABEL_FONT / 2


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


@pytest.mark.parametrize("view", ["full", "latents"])
@pytest.mark.parametrize("size", [3, 24, 60])
def test_nothing_is_cut_off_and_nothing_overlaps(size, view, sixty):
    picture = picture_of(sixty if size == 60 else result_of(one_factor(size)), view)
    rectangles = list(boxes(picture))
    for left, top, right, bottom in rectangles + list(labels(picture)):
        assert left >= 0
        assert top >= 0
        assert right <= picture.width
        assert bottom <= picture.height
    for edge in picture.edges:
        line = curve(picture.node(edge.source), picture.node(edge.target), edge)
        assert all(0 <= on_curve(line, k / 20)[1] <= picture.height for k in range(21))
    assert not any(overlap(a, b) for a, b in combinations(rectangles, 2))
    assert not any(overlap(a, b) for a, b in combinations(list(labels(picture)), 2))


def test_paths_keep_off_latents_they_do_not_belong_to(sixty):
    picture = picture_of(sixty, "latents")
    for edge in picture.edges:
        line = curve(picture.node(edge.source), picture.node(edge.target), edge)
        for node in picture.nodes:
            if node.kind == "latent" and not node.parent and node.id not in (edge.source, edge.target):
                points = (on_curve(line, k / 40) for k in range(41))
                reach = [((x - node.x) / node.width, (y - node.y) / node.height) for x, y in points]
                assert min(x * x + y * y for x, y in reach) > 0.25, (edge.source, edge.target, node.id)


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


def test_causes_stand_above_their_effects_among_latents_alone():
    chain = [("A", "B"), ("C", "B"), *[(latent, f"{latent.lower()}{i}") for latent in "ABC" for i in range(4)]]
    picture = picture_of(result_of(um.DAG.from_edges(chain, latents=["A", "B", "C"])), "latents")
    assert picture.node("A").y == picture.node("C").y < picture.node("B").y
    assert all(edge.directed for edge in picture.edges)


def test_weak_loadings_can_be_left_out_but_no_indicator_loses_its_last():
    data = um.datasets.load("multitasking")
    result = um.LGES().fit_cov(data.frame(), data.n_samples).result_
    everything, strong = picture_of(result), picture_of(result, min_loading=0.95)
    assert len(strong.edges) < len(everything.edges)
    reached = {edge.target for edge in strong.edges if edge.kind == "loading"}
    assert reached == set(result.graph.observed)


def test_r2_is_written_where_wanted():
    result = result_of(one_factor(3))
    assert all(node.note == "" for node in picture_of(result).nodes)
    notes = {node.id: node.note for node in picture_of(result, r2=True).nodes}
    assert notes["item0"] == f"{result.r2['item0']:.2f}".removeprefix("0")


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
    with pytest.raises(um.UnmeasuredError, match="view must be 'full' or 'latents'; got 'all'"):
        pair.plot("all")
    with pytest.raises(um.UnmeasuredError, match="from 0 to 1; got 3"):
        pair.plot(min_loading=3)
