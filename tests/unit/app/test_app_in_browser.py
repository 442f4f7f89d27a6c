"""The application in a real browser: from a file to an edited model and back, on several screens."""

from __future__ import annotations

import io
import time
import zipfile
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from browser import Browser, find, wait_for

pytest.importorskip("starlette", reason="the application needs its extra: pip install 'unmeasured[app]'")
pytest.importorskip("uvicorn", reason="the application needs its extra: pip install 'unmeasured[app]'")
from unmeasured.app.exports import KINDS
from unmeasured.app.server import Server
from unmeasured.search.warm import compile_kernels

pytestmark = pytest.mark.skipif(find() is None, reason="there is no Chromium on this machine")
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def served():
    compile_kernels()  # the tests wait for answers, not for the first run on a machine
    running = Server(0)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def shared_browser():
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(shared_browser, served):
    shared_browser.events.clear()
    shared_browser.resize(1280, 900)
    shared_browser.scheme("light")
    shared_browser.call("Page.navigate", url="about:blank")
    shared_browser.visit(served.url)
    shared_browser.run("sessionStorage.clear()")
    shared_browser.call("Page.navigate", url="about:blank")
    shared_browser.visit(served.url)
    yield shared_browser
    # Nothing is asked of any other machine, and nothing failed but what a test made fail.
    assert {url.split("/")[2] for url in shared_browser.requests()} == {f"127.0.0.1:{served.port}"}
    quiet = [event for event in shared_browser.troubles() if "status of 400" not in str(event)]
    assert quiet == []


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """An SPSS file with labels, missing values, an age, an outcome, and two attacks: a label and a group's name."""
    pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS files need pyreadstat")
    rng = np.random.default_rng(3)
    age = rng.uniform(18, 70, 500)
    A = 0.03 * (age - 44) + rng.normal(size=500)
    B = 0.6 * A + 0.8 * rng.normal(size=500)
    items = np.column_stack([A, -A, A, A, B, B, B, B]) + 0.7 * rng.normal(size=(500, 8))
    rows = pd.DataFrame(items, columns=[f"q{i}" for i in range(8)]).mask(rng.random((500, 8)) < 0.05)
    rows = rows.assign(age=age, days=0.5 * B + rng.normal(size=500))
    rows["q0"] = rows["q0"].where(rng.random(500) > 0.03, 99.0)
    rows["country"] = np.where(np.arange(500) % 2, "north", EVIL)
    path = tmp_path_factory.mktemp("files") / "answers.sav"
    labels = [f"Question {EVIL if name == 'q3' else name}" for name in rows.columns]
    pyreadstat.write_sav(rows, path, column_labels=labels)
    return path


# Controls of the whole page that a screen reader could not name.
UNNAMED = (
    "[...document.querySelectorAll('button, input, select, textarea, iframe, [role=region], [role=img]')].filter((e) =>"
    " (['SELECT', 'TEXTAREA'].includes(e.tagName) || !e.textContent.trim()) &&"
    " !e.getAttribute('aria-label') && !e.title && !(e.labels && e.labels.length))"
    ".map((e) => e.outerHTML.slice(0, 80))"
)


def shown(browser, step):
    return browser.run(f"!document.getElementById('{step}').hidden")


def count(browser, selector):
    return browser.run(f"document.querySelectorAll('{selector}').length")


def text(browser, selector):
    return browser.run(f"document.querySelector('{selector}').textContent")


def choose(browser, selector, value):
    browser.run(
        f"(e => {{ e.value = '{value}'; e.dispatchEvent(new Event('change', {{bubbles: true}})); }})"
        f"(document.querySelector('{selector}'))"
    )


def dragged(browser, selector, onto):
    """Drag by the mouse from the middle of an element to the middle of another."""
    fx, fy = browser.centre(selector)
    x, y = browser.run(
        f"(b => [b.x + b.width / 2, b.y + b.height - 8])(document.querySelector('{onto}').getBoundingClientRect())"
    )
    browser.mouse("mouseMoved", fx, fy)
    browser.mouse("mousePressed", fx, fy)
    browser.mouse("mouseMoved", x, y, held=True)
    browser.mouse("mouseReleased", x, y)


def opened(browser, name):
    browser.click(f'[data-dataset="{name}"]')
    wait_for(lambda: shown(browser, "columns") and count(browser, "#findings li"), 120)


def searched(browser):
    browser.click('[data-step="search"]')
    wait_for(lambda: shown(browser, "search"))
    browser.click("#start")
    wait_for(lambda: shown(browser, "result"), 120)


def in_report(browser, script):
    """The value of an expression in the report, which has a world of its own; None while it is loaded anew."""
    frames = wait_for(lambda: browser.call("Page.getFrameTree")["frameTree"].get("childFrames"))
    try:
        world = browser.call("Page.createIsolatedWorld", frameId=frames[0]["frame"]["id"])["executionContextId"]
        answer = browser.call("Runtime.evaluate", expression=script, returnByValue=True, contextId=world)
    except AssertionError:
        return None
    return answer["result"].get("value")


def test_the_whole_way_from_a_file_to_an_edited_model_and_back(browser, served, answers, tmp_path):
    # A wrong file is a sentence, and nothing is lost.
    wrong = tmp_path / "holiday.jpg"
    wrong.write_bytes(b"\xff\xd8\xff")
    browser.give_file("#file", wrong)
    wait_for(lambda: "are not read here" in text(browser, "#message"))
    # SPSS with missing values; labels beside the items, a script in one of them is text.
    browser.give_file("#file", answers)
    wait_for(lambda: shown(browser, "columns") and count(browser, "#column-table tbody tr") == 11, 120)
    assert browser.run("document.getElementById('message').hidden")
    assert EVIL in text(browser, "#column-table")
    assert count(browser, "img") == 0
    wait_for(lambda: count(browser, "#findings li") > 3, 120)
    # A code of missing values, an item that is reversed, one that is taken as continuous, and what is no item.
    choose(browser, "#codes-0", "99")
    browser.click("#is_reversed-1")
    choose(browser, "#kind-2", "continuous")
    for k, role in ((8, "covariate"), (9, "outcome"), (10, "group")):
        choose(browser, f"#role-{k}", role)
    (project,) = (
        session.project for session in served._sessions.open.values() if session.project.name == "answers.sav"
    )
    wait_for(lambda: [column.role for column in project.columns[8:]] == ["covariate", "outcome", "group"])
    assert (project.columns[0].codes, project.columns[1].is_reversed) == ([99.0], True)
    assert project.columns[2].kind == "continuous"
    wait_for(lambda: "2 groups of people" in text(browser, "#findings"), 60)
    assert "Reversed" in text(browser, "#findings")
    # Knowledge: two items dragged into a group, a third put there from its list; the group dragged into a tier.
    browser.click('[data-go="known"]')
    wait_for(lambda: count(browser, "#loose .chip") == 8)
    assert "Question q0" in text(browser, '#loose .chip[data-item="q0"]')
    browser.click("#new-group")
    for item in ("q0", "q1"):
        dragged(browser, f'.chip[data-item="{item}"] span', ".box.drop-target")
        wait_for(lambda item=item: count(browser, f'.box .chip[data-item="{item}"]') == 1)
    choose(browser, '.chip[data-item="q2"] select', "group 1")
    wait_for(lambda: count(browser, ".box .chip") == 3)
    dragged(browser, '[data-member="group 1"] .handle', '.tier[data-tier="1"]')
    wait_for(lambda: project.knowledge.get("tiers") == [["group 1"]])
    choose(browser, '[data-member="days"] .row select', "2")
    wait_for(lambda: project.knowledge.get("tiers") == [["group 1"], ["days"]])
    searched(browser)
    wait_for(lambda: "two hidden factors" in text(browser, "#lead"))
    assert "group 1" in text(browser, "#lead")
    # Each part of the result.
    wait_for(lambda: count(browser, "#diagram ellipse") >= 2)
    browser.click('#views [data-view="labels"]')
    assert "Question" in text(browser, "#diagram")
    assert count(browser, "img") == 0
    browser.click('#views [data-view="full"]')
    for part, words in (("loadings", "q7"), ("levels", "group 1"), ("effects", "an outcome"), ("fit", "RMSEA"),
                        ("groups", "What the groups share")):  # fmt: skip
        browser.click(f"#tab-{part}")
        wait_for(lambda words=words: words in text(browser, "#part-tables"), 60)
    assert EVIL in text(browser, "#part-tables")  # a group
    assert count(browser, "img") == 0
    browser.click("#tab-report")
    wait_for(lambda: "What measures what" in (in_report(browser, "document.body.textContent") or ""), 60)
    wait_for(lambda: EVIL in (in_report(browser, "document.body.textContent") or ""))
    wait_for(lambda: in_report(browser, "String(document.querySelectorAll('img').length)") == "0")
    # Edit: a name, an edge, undo, redo; the fit stands beside the one found.
    browser.click('[data-step="edit"]')
    wait_for(lambda: count(browser, "#beside tbody td") == 27 and count(browser, "#canvas canvas"))
    choose(browser, "#edge-source", "group 1")
    browser.run("document.getElementById('latent-name').value = 'Tired'")
    browser.click("#rename")
    wait_for(lambda: "Tired" in text(browser, "#edge-source"))
    choose(browser, "#edge-source", "Tired")
    choose(browser, "#edge-target", "q7")
    browser.click("#add-edge")
    wait_for(lambda: "added: Tired → q7" in text(browser, "#changes"))
    found, now, change = browser.run(
        "[...document.querySelectorAll('#beside td[data-index=chi2]')].map((c) => c.textContent.replace('−', '-'))"
    )
    assert float(change) == pytest.approx(float(now) - float(found), abs=0.011)
    assert float(change) < 0
    assert text(browser, "#fit-status").startswith("Fitted in ")
    zoom = "document.querySelector('#canvas')._cyreg.cy.zoom()"
    before = browser.run(zoom)
    browser.click("#edit-in")
    assert browser.run(zoom) == pytest.approx(1.25 * before)
    browser.key("z", 90, modifiers=2)
    wait_for(lambda: "added" not in text(browser, "#changes"))
    browser.key("Z", 90, modifiers=10)
    wait_for(lambda: "added" in text(browser, "#changes"))
    browser.click("#undo")
    wait_for(lambda: "added" not in text(browser, "#changes"))
    browser.click("#redo")
    wait_for(lambda: "added" in text(browser, "#changes"))
    assert browser.run(UNNAMED) == []
    # A reload keeps all of it.
    browser.reload()
    assert shown(browser, "edit")
    wait_for(lambda: "added: Tired → q7" in text(browser, "#changes"))
    # Export: the project, opened again in a new page.
    browser.click('[data-step="export"]')
    wait_for(lambda: count(browser, "#exports button") == len(KINDS))
    assert "as you edited it" in text(browser, "#export-of")
    browser.click('[data-export="lavaan"]')
    model = browser.downloads / "model.lav"
    wait_for(lambda: model.exists() and model.stat().st_size)
    assert "q7" in next(line for line in model.read_text().splitlines() if line.startswith("Tired =~"))
    browser.click('[data-export="project"]')
    saved = browser.downloads / "project.unmeasured"
    wait_for(lambda: saved.exists() and saved.stat().st_size)
    with zipfile.ZipFile(io.BytesIO(saved.read_bytes())) as archive:
        assert set(archive.namelist()) == {"project.json", "data", "result.json", "groups.json"}
    browser.run("sessionStorage.clear()")
    browser.run("location.hash = ''")
    browser.reload()
    assert shown(browser, "data")
    browser.give_file("#file", saved)
    wait_for(lambda: shown(browser, "result"), 120)
    browser.click('[data-step="edit"]')
    wait_for(lambda: "added: Tired → q7" in text(browser, "#changes"))


def test_the_editor_draws_arrowheads_where_a_direction_is_identified(browser, served):
    opened(browser, "multitasking")
    searched(browser)
    browser.click('[data-step="edit"]')
    wait_for(lambda: count(browser, "#canvas canvas"))
    heads = (
        "document.querySelector('#canvas')._cyreg.cy.edges().map((e) => [e.source().id(), e.target().id(),"
        " e.style('source-arrow-shape') + ' ' + e.style('target-arrow-shape')])"
    )
    title = um.datasets.load("multitasking").title
    project = [session.project for session in served._sessions.open.values() if session.project.name == title][-1]

    def agree():
        graph = project.current().graph
        drawn = {(source, target): shape for source, target, shape in browser.run(heads)}
        arrows = {edge for edge, shape in drawn.items() if shape == "none triangle"}
        bare = {frozenset(edge) for edge, shape in drawn.items() if shape == "none none"}
        assert arrows == set(graph.directed_edges)
        assert bare == {frozenset(edge) for edge in graph.undirected_edges}
        return len(bare)

    n_open = wait_for(agree)
    # Another graph of the same class is drawn alike, and an edge less changes what is identified.
    source, target = next(iter(project.current().graph.undirected_edges))
    choose(browser, "#edge-source", source)
    choose(browser, "#edge-target", target)
    browser.click("#remove-edge")
    wait_for(lambda: "removed" in text(browser, "#changes"))
    assert agree() < n_open


def test_figures_of_latents_that_share_their_indicators_do_not_cover_each_other(browser, tmp_path):
    rng = np.random.default_rng(5)
    f = rng.normal(size=(900, 3))
    loadings = np.zeros((3, 9))
    loadings[:2, :6] = [[0.9, 0.8, 0.7, 0.2, -0.3, 0.5], [0.2, -0.4, 0.5, 0.9, 0.8, -0.7]]
    loadings[2, 6:] = 0.9
    rows = pd.DataFrame(f @ loadings + 0.5 * rng.normal(size=(900, 9)), columns=[f"x{i}" for i in range(9)])
    rows.round(4).to_csv(tmp_path / "rows.csv", index=False)
    browser.give_file("#file", tmp_path / "rows.csv")
    wait_for(lambda: shown(browser, "columns") and count(browser, "#findings li") > 3, 120)
    searched(browser)
    browser.click('[data-step="edit"]')
    wait_for(lambda: count(browser, "#canvas canvas"))
    options = "{includeNodes: false, includeEdges: false, includeLabels: true, useCache: false}"
    boxes = browser.run(
        f"document.querySelector('#canvas')._cyreg.cy.edges().map((e) => e.boundingBox({options}))"
        ".map((b) => [b.x1, b.y1, b.x2, b.y2])"
    )
    assert len(boxes) >= 15  # six items of two latents, three of another
    assert all(x2 - x1 > 5 and y2 - y1 > 5 for x1, y1, x2, y2 in boxes)
    for one, other in combinations(boxes, 2):
        wide, tall = (min(one[k + 2], other[k + 2]) - max(one[k], other[k]) for k in (0, 1))
        # No more than the margin around a figure, and the end of a letter.
        assert min(wide, tall) < 6, (one, other)


def test_a_search_is_stopped_in_the_middle_after_a_reload_and_keeps_the_best(browser):
    opened(browser, "big_five")
    browser.click('[data-step="search"]')
    choose(browser, "#tolerance", "0")  # the exact criterion takes long on these data
    wait_for(lambda: browser.run("document.getElementById('tolerance').value") == "0")
    browser.click("#start")
    wait_for(lambda: shown(browser, "growing"), 120)
    wait_for(lambda: count(browser, "#growing-diagram ellipse") > 1 and count(browser, "#growing-diagram .edge"), 120)
    browser.reload()
    assert shown(browser, "search")
    wait_for(lambda: not browser.run("document.getElementById('stop').hidden"))
    browser.click("#stop")
    begun = time.monotonic()
    wait_for(lambda: shown(browser, "result") or "Stopped" in text(browser, "#progress"), 120)
    assert time.monotonic() - begun < 120
    assert shown(browser, "result")
    assert "best model found so far" in text(browser, "#stopped")
    wait_for(lambda: count(browser, "#diagram ellipse") >= 1, 60)


def test_a_matrix_by_the_keyboard_alone_on_a_narrow_dark_screen(browser, served):
    browser.resize(390, 800)
    browser.scheme("dark")
    data = um.datasets.load("holzinger_swineford")
    lines = data.frame().round(3).to_csv()
    go_to(browser, "matrix")
    browser.call("Input.insertText", text=lines)
    go_to(browser, "matrix-n")
    browser.call("Input.insertText", text="301")
    go_to(browser, "use-matrix")
    browser.key("Enter", 13, "\r")
    wait_for(lambda: shown(browser, "columns") and count(browser, "#findings li"), 120)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    go_to(browser, "", "document.activeElement.dataset.step === 'search'")
    browser.key("Enter", 13, "\r")
    wait_for(lambda: shown(browser, "search"))
    go_to(browser, "start")
    browser.key("Enter", 13, "\r")
    wait_for(lambda: shown(browser, "result"), 120)
    wait_for(lambda: count(browser, "#diagram .node") == 3)  # latents alone, which fit
    assert browser.run("document.documentElement.scrollWidth") <= 390
    assert browser.run("document.getElementById('stage').scrollWidth <= document.getElementById('stage').clientWidth")
    ink, sheet = browser.run("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
    assert sum(map(int, sheet[4:-1].split(","))) < 120 < sum(map(int, ink[4:-1].split(",")))
    # Stability goes on in the background of the result.
    browser.run("document.getElementById('replicates').value = 3")
    go_to(browser, "tab-diagram")
    for _ in range(5):  # past the groups of people, which there are none of
        browser.key("ArrowRight", 39)
    wait_for(lambda: browser.run("document.activeElement.id") == "tab-stability")
    go_to(browser, "start-stability")
    browser.key("Enter", 13, "\r")
    wait_for(lambda: "3 replicates" in text(browser, "#part-tables"), 120)
    go_to(browser, "", "document.activeElement.dataset.step === 'edit'")
    browser.key("Enter", 13, "\r")
    wait_for(lambda: count(browser, "#beside tbody td") == 27)
    assert browser.run("document.documentElement.scrollWidth") <= 390


def go_to(browser, name, condition=None):
    """Press Tab until something has the focus."""
    condition = condition or f"document.activeElement.id === '{name}'"
    for _ in range(120):
        if browser.run(condition):
            return
        browser.key("Tab", 9)
    raise AssertionError(f"the Tab key never came to {name or condition}")


def test_two_browsers_do_not_mix(browser, served):
    opened(browser, "multitasking")
    with Browser() as other:
        other.visit(served.url)
        assert shown(other, "data")
        assert text(other, "#project-name") == ""
        opened(other, "political_democracy")
        assert count(other, "#column-table tbody tr") == 11
    browser.reload()
    assert count(browser, "#column-table tbody tr") == 9
