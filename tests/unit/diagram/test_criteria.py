"""Drawings meet computed criteria on questionnaires, large models and fifty random ones."""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

sys.path.append(str(Path(__file__).parent))
import criteria
import models

import unmeasured as um
from unmeasured.diagram.layout import layout
from unmeasured.diagram.picture import Edge, Node, text_width
from unmeasured.diagram.style import PALETTE, edge_paint, node_paint
from unmeasured.results import drawing
from unmeasured.results.drawing import picture_of

DOT = json.loads((Path(__file__).parents[2] / "oracle" / "dot_crossings.json").read_text())
MODELS = dict(models.everyone())
# Random models together in one test: tests of their own would say no more.
MANY = ("random", "hierarchy", "roles", "pairs")
CASES = {name: [name] for name in MODELS if not name.startswith(MANY)}
CASES |= {kind: [name for name in MODELS if name.startswith(f"{kind}_")] for kind in MANY}


def test_the_models_have_what_they_are_there_for():
    assert len(CASES["random"]) == 50
    assert {n for name in CASES["hierarchy"] for n in MODELS[name]().graph.levels.values()} == {0, 1, 2}
    for name in CASES["roles"]:
        assert len(MODELS[name]().direct_effects) == 2
    for name in (*CASES["pairs"], "big_five_pairs"):
        picture = picture_of(MODELS[name](), "full", pairs=True)
        assert sum(edge.kind == "pair" for edge in picture.edges) == len(MODELS[name]().graph.pairs) > 0


@pytest.mark.parametrize("view", ["full", "latents"])
@pytest.mark.parametrize("case", CASES)
def test_a_drawing_can_be_read(case, view):
    for name in CASES[case]:
        picture = picture_of(MODELS[name](), view, min_loading=0.0, pairs=True)
        drawn = {node.id for node in picture.nodes if node.kind != "group"}
        assert drawn >= set(MODELS[name]().graph.names if view == "full" else MODELS[name]().graph.latents), name
        assert all(edge.label and len(edge.points) > 1 for edge in picture.edges if edge.kind != "path"), name
        rectangles = [box for _, box in criteria.boxes(picture)] + [box for _, box in criteria.labels(picture)]
        assert criteria.overlapping(rectangles) == [], name
        assert criteria.under_nodes(picture) == [], name
        assert criteria.strange_labels(picture) == [], name
        everything = np.array([*rectangles, *((*p, *p) for line in criteria.routes(picture) for p in line)])
        assert everything[:, :2].min() >= 0, name
        assert everything[:, 2].max() <= picture.width, name
        assert everything[:, 3].max() <= picture.height, name
        # Graphviz's dot drew the same nodes and edges with so many crossings (tests/oracle/dot_crossings.py).
        assert criteria.crossings(criteria.routes(picture)) <= DOT[f"{name}:{view}"], name


@pytest.mark.parametrize(
    "options",
    [
        {"view": "full", "labels": True, "pairs": True},
        {"view": "latents", "labels": True},
        {"view": "full", "width": 245.0},
        {"view": "full", "width": 504.0, "r2": True},
        {"view": "latents", "width": 290.0},
    ],
    ids=lambda options: "-".join(options),
)
def test_labels_and_sheets_of_other_widths_can_be_read(options):
    for name in ("teacher_burnout_traits", "big_five_pairs"):
        picture = picture_of(MODELS[name](), min_loading=0.0, **options)
        rectangles = [box for _, box in criteria.boxes(picture)] + [box for _, box in criteria.labels(picture)]
        assert criteria.overlapping(rectangles) == [], name
        assert criteria.under_nodes(picture) == [], name
        assert criteria.strange_labels(picture) == [], name
        shown = " ".join(line for node in picture.nodes for line in (*node.lines, *node.notes))
        labels = MODELS[name]().sem.sample.labels.values()
        assert any(label in shown for label in labels) == ("labels" in options)


def test_places_by_sweeps_can_be_read_as_well(monkeypatch):
    """The places of very many cells, here of few: the same order and distances, and lines that are hardly longer."""

    def length(picture):
        return sum(np.abs(np.diff(np.array(edge.points), axis=0)).sum() for edge in picture.edges)

    names = ("teacher_burnout", "big_five_pairs")
    by_program = {name: picture_of(MODELS[name](), "full", pairs=True) for name in names}
    monkeypatch.setattr("unmeasured.diagram.layout._MOST_BY_LINEAR_PROGRAM", 0)
    for name, best in by_program.items():
        drawing._laid_out.cache_clear()
        picture = picture_of(MODELS[name](), "full", pairs=True)
        rectangles = [box for _, box in criteria.boxes(picture)] + [box for _, box in criteria.labels(picture)]
        assert criteria.overlapping(rectangles) == [], name
        assert criteria.strange_labels(picture) == [], name
        assert length(picture) < 1.25 * length(best), name
    drawing._laid_out.cache_clear()


def test_of_very_many_paths_the_strongest_are_drawn():
    names = [f"L{k}" for k in range(25)]
    items = {name: [f"{name}_{i}" for i in range(3)] for name in names}
    edges = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    dag = um.DAG.from_edges([*((a, x) for a in names for x in items[a]), *edges], latents=names)
    rows = um.simulate.sample(dag, 1000, parameters="realistic", rng=1)
    (fit,) = um.fit_many([dag], um.as_sample(rows), n_restarts=0)
    result = um.Result(dag.cpdag(), fit)
    picture = picture_of(result, "latents")
    drawn = [edge for edge in picture.edges if edge.kind == "path"]
    assert 200 < len(drawn) <= 250 < len(edges)
    assert f"Not drawn: {len(edges) - len(drawn)} paths under" in " ".join(picture.remark)
    strengths = sorted(result.latent_paths["std"].abs(), reverse=True)
    assert min(edge.strength for edge in drawn) >= strengths[250]
    assert len(picture_of(result, "latents", min_path=0.0).edges) == len(edges)


def test_a_report_lays_each_picture_out_once(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(drawing, "layout", lambda *a, **k: (calls.append(1), layout(*a, **k))[1])
    um.write_report(models.random(3), tmp_path)
    assert len(calls) == 3  # all variables, latents alone, and these for narrow screens


def test_the_criteria_find_what_is_wrong():
    """Each of them fails where a drawing is spoiled on purpose."""
    from dataclasses import replace

    picture = picture_of(models.random(5), "full")
    first, second, *others = picture.edges
    moved = replace(picture, edges=(replace(first, label_at=second.label_at), second, *others))
    assert criteria.overlapping([box for _, box in criteria.labels(moved)])
    assert (first.source, first.target) in criteria.strange_labels(moved)
    far = next(n for n in picture.nodes if not n.parent and n.id not in (first.source, first.target))
    through = replace(first, points=(first.points[0], (far.x, far.y), first.points[-1]))
    assert (first.source, first.target, far.id) in criteria.under_nodes(replace(picture, edges=(through,)))
    lines = [np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.1]])]
    assert criteria.crossings(lines) == 1
    assert criteria.crossings(lines[:1] * 2) == 0


def test_texts_are_as_wide_as_the_criteria_take_them_to_be():
    """The widths of layouts and criteria ask no font; in the font that files are drawn with they are no smaller."""
    font = FontProperties(family="DejaVu Sans")
    texts = {"WWWW", "turnover_intention", "Überforderung", "I feel used up"}
    for name in ("teacher_burnout_traits", "random_5"):
        picture = picture_of(MODELS[name](), "full", min_loading=0.0)
        texts |= {line for node in picture.nodes for line in node.lines} | {edge.label for edge in picture.edges}
        texts |= {key.text for key in picture.legend}
    for text in texts - {""}:
        real = TextPath((0.0, 0.0), text, size=10.0, prop=font).get_extents().width
        assert real <= text_width(text, 10.0) + 0.5, text


def test_the_same_model_gives_the_same_drawing():
    result = models.random(8)
    first = picture_of(result, "full")
    drawing._laid_out.cache_clear()
    assert picture_of(result, "full") == first


# Machado, Oliveira and Fernandes (2009), severity 1: how the three kinds of colour blindness see linear RGB.
VISION = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour):
    part = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = np.array(to_xyz) @ rgb / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", VISION)
def test_twelve_colours_differ_for_every_kind_of_colour_vision(kind):
    assert len(set(PALETTE)) >= 12
    seen = np.array([lab(np.clip(np.array(VISION[kind]) @ linear(colour), 0, 1)) for colour in PALETTE])
    apart = np.linalg.norm(seen[:, None] - seen[None], axis=-1)[np.triu_indices(len(PALETTE), 1)]
    assert apart.min() > 15.0
    # Borders are darker than the palette, and lines of weak loadings lighter.
    drawn = [node_paint(Node("", "latent", (), 1.0, 1.0, colour=k), "colour").stroke for k in range(len(PALETTE))]
    seen = np.array([lab(np.clip(np.array(VISION[kind]) @ linear(colour), 0, 1)) for colour in drawn])
    apart = np.linalg.norm(seen[:, None] - seen[None], axis=-1)[np.triu_indices(len(PALETTE), 1)]
    assert apart.min() > 12.0


def luminance(colour):
    return float(np.array([0.2126, 0.7152, 0.0722]) @ linear(colour))


@pytest.mark.parametrize(("look", "sheet"), [("colour", "#FFFFFF"), ("print", "#FFFFFF"), ("dark", "#16181D")])
def test_lines_and_borders_have_contrast_aa(look, sheet):
    """WCAG 2.2, 1.4.11: what a picture is understood by has a contrast of 3 to 1 at least."""
    strokes = []
    for k in range(-1, len(PALETTE)):
        strokes += [node_paint(Node("", kind, (), 1.0, 1.0, colour=k), look).stroke for kind in ("latent", "observed")]
        for kind, strength, minus in product(("loading", "path", "pair"), (0.0, 0.5, 1.0), (False, True)):
            edge = Edge("", "", kind, True, "", strength, negative=minus, colour=k)
            strokes.append(edge_paint(edge, look).stroke)
    for stroke in strokes:
        low, high = sorted((luminance(stroke), luminance(sheet)))
        assert (high + 0.05) / (low + 0.05) >= 3.0, stroke
