"""The page in a real browser: it loads without errors or requests, and does what its tools promise."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "diagram"))
import models

import unmeasured as um
from browser import Browser, find, wait_for

pytestmark = pytest.mark.skipif(find() is None, reason="there is no Chromium on this machine")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    data = um.datasets.load("multitasking")
    search = um.LGES().fit_cov(data.frame(), data.n_samples)
    return um.write_report(search, tmp_path_factory.mktemp("report"), data=data.title, published=data.models)


@pytest.fixture(scope="module")
def shared_browser():
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(shared_browser, page):
    shared_browser.events.clear()
    shared_browser.resize(1280, 900)
    shared_browser.mouse("mouseMoved", 1, 1)
    shared_browser.open(page)
    yield shared_browser
    assert shared_browser.troubles() == []
    assert shared_browser.requests() == [page.as_uri()]


def count(browser, selector):
    return browser.run(f"document.querySelectorAll('{selector}').length")


def test_it_loads_with_everything_drawn(browser):
    assert count(browser, "#diagram .node") == 12
    assert count(browser, "#diagram .edge") == 13
    assert browser.run("document.getElementById('tip').hidden")


def test_pointing_at_an_arrow_shows_its_estimate(browser):
    browser.hover('#diagram .label[data-source="L1"][data-target="Speed_Letter"]')
    assert not browser.run("document.getElementById('tip').hidden")
    assert browser.run("document.getElementById('tip').textContent").startswith("L1 → Speed_Letter: 0.906 (s.e. 0.018)")
    browser.hover('#diagram .node[data-id="Speed_Letter"]')
    assert "R² .82" in browser.run("document.getElementById('tip').textContent")
    browser.mouse("mouseMoved", 1, 1)
    assert browser.run("document.getElementById('tip').hidden")


def test_the_view_switches_and_back(browser):
    browser.click('[data-view="latents"]')
    assert count(browser, "#diagram .node") == 3
    assert browser.run("document.querySelector('[data-view=latents]').getAttribute('aria-pressed')") == "true"
    browser.click('[data-view="full"]')
    assert count(browser, "#diagram .node") == 12


def test_black_and_white(browser):
    colour = "document.querySelector('#diagram ellipse').getAttribute('fill')"
    assert browser.run(colour) != "#FFFFFF"
    browser.click('[data-style="print"]')
    assert browser.run(colour) == "#FFFFFF"


def slide(browser, name, value):
    browser.run(f"document.getElementById('{name}').value = {value}")
    browser.run(f"document.getElementById('{name}').dispatchEvent(new Event('input'))")


def test_the_threshold_hides_weak_loadings_but_not_the_strongest_and_the_layout_follows(browser):
    tall = "document.getElementById('diagram').viewBox.baseVal.height"
    before = browser.run(tall)
    slide(browser, "threshold", 0.9)
    # Nine indicators keep one arrow each, and three paths stay; the loading of -.29 goes.
    assert count(browser, "#diagram .edge") == 12
    assert browser.run("document.getElementById('threshold-value').textContent") == ".90"
    slide(browser, "path-threshold", 0.3)
    assert count(browser, "#diagram .edge") == 11
    assert "Not drawn: 2 of 13" in browser.run("document.getElementById('diagram').textContent")
    assert browser.run(tall) != before
    assert overlaps(browser) == 0
    slide(browser, "path-threshold", 0)
    slide(browser, "threshold", 0)
    assert browser.run(tall) == before


def overlaps(browser):
    """Pairs of nodes and labels that overlap on the screen."""
    return browser.run(
        "(() => { const b = [...document.querySelectorAll('#diagram .node, #diagram .label')].map((e) =>"
        " e.querySelector('rect, ellipse').getBoundingClientRect()); let n = 0;"
        " b.forEach((p, i) => b.slice(0, i).forEach((q) => { if (p.left < q.right - 1 && q.left < p.right - 1 &&"
        " p.top < q.bottom - 1 && q.top < p.bottom - 1) n += 1; })); return n; })()"
    )


def test_nothing_overlaps_on_the_screen(browser):
    assert overlaps(browser) == 0


def under_nodes(browser):
    """Lines that pass under a node they do not touch, on the screen."""
    return browser.run(
        "(() => { const nodes = [...document.querySelectorAll('#diagram .node')].map((e) => [e.dataset.id,"
        " e.querySelector('rect, ellipse').getBBox()]), found = [];"
        " for (const e of document.querySelectorAll('#diagram .edge')) { const p = e.querySelector('.hit'),"
        " n = p.getTotalLength(); for (let t = 0; t < n; t += 4) { const q = p.getPointAtLength(t);"
        " for (const [id, b] of nodes) if (id !== e.dataset.source && id !== e.dataset.target && q.x > b.x + 1 &&"
        " q.x < b.x + b.width - 1 && q.y > b.y + 1 && q.y < b.y + b.height - 1)"
        " found.push([e.dataset.source, e.dataset.target, id]); } } return found; })()"
    )


def test_the_layout_follows_filters_and_residual_pairs(shared_browser, tmp_path):
    """Whatever is hidden or shown, nothing overlaps and no line runs under a node it does not touch."""
    for name in ("big_five_pairs", "teacher_burnout_traits"):
        result = models.stored(name)
        shared_browser.open(um.write_report(result, tmp_path / name))
        edges, n_pairs = count(shared_browser, "#diagram .edge"), len(result.graph.pairs)
        assert edges == len(result.loadings) + len(result.latent_paths)
        for threshold in (0, 0.3, 0.6):
            slide(shared_browser, "path-threshold", threshold)
            slide(shared_browser, "threshold", threshold)
            assert (overlaps(shared_browser), under_nodes(shared_browser)) == (0, [])
            hidden = edges - count(shared_browser, "#diagram .edge")
            assert (hidden > 0) == (threshold > 0)
            if n_pairs:
                shared_browser.click("#show-pairs")
                assert count(shared_browser, "#diagram .edge") == edges - hidden + n_pairs
                assert (overlaps(shared_browser), under_nodes(shared_browser)) == (0, [])
                shared_browser.click("#show-pairs")
        assert n_pairs or not count(shared_browser, "#show-pairs")
    assert shared_browser.troubles() == []


def test_a_latent_can_be_dragged_with_its_indicators_and_arrows_follow(browser):
    where = "['cx', 'cy'].map((a) => Number(document.querySelector('.node[data-id=L1] ellipse').getAttribute(a)))"
    item = "Number(document.querySelector('.node[data-id=Speed_Letter] rect').getAttribute('y'))"
    arrow = "document.querySelector('.edge[data-source=L1] path').getAttribute('d')"
    before, line, box = browser.run(where), browser.run(arrow), browser.run(item)
    browser.drag('.node[data-id="L1"]', 10, 30)
    after = browser.run(where)
    assert after[1] - before[1] > 15
    assert browser.run(item) - box == pytest.approx(after[1] - before[1])
    assert browser.run(arrow) != line
    browser.click("#reset")
    assert browser.run(where) == before


def test_the_diagram_can_be_used_from_the_keyboard(browser):
    browser.run("document.querySelector('.node[data-id=L1]').focus()")
    assert not browser.run("document.getElementById('tip').hidden")
    y = "Number(document.querySelector('.node[data-id=L1] ellipse').getAttribute('cy'))"
    before = browser.run(y)
    key = {"key": "ArrowDown", "code": "ArrowDown", "windowsVirtualKeyCode": 40, "modifiers": 8}
    browser.call("Input.dispatchKeyEvent", type="keyDown", **key)
    assert browser.run(y) == before + 8


def test_zoom(browser):
    width = "Number(document.getElementById('diagram').getAttribute('width'))"
    before = browser.run(width)
    browser.click("#zoom-in")
    assert browser.run(width) == pytest.approx(1.25 * before)


def test_a_table_sorts_both_ways(browser):
    browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    column = "[...document.querySelectorAll('#loadings tbody tr')].map((r) => Number(r.cells[2].dataset.value))"
    browser.click("#loadings th:nth-child(3) button")
    values = browser.run(column)
    assert values == sorted(values)
    assert len(values) == 10
    browser.click("#loadings th:nth-child(3) button")
    assert browser.run(column) == values[::-1]
    assert browser.run("document.querySelector('#loadings th:nth-child(3)').getAttribute('aria-sort')") == "descending"


def test_the_diagram_downloads_as_svg_and_png(browser):
    browser.click("#save-svg")
    svg = browser.downloads / "diagram-full.svg"
    wait_for(lambda: svg.exists() and svg.stat().st_size)
    root = ET.parse(svg).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "Speed_Letter" in svg.read_text("utf-8")
    browser.click("#save-png")
    png = browser.downloads / "diagram-full.png"
    wait_for(lambda: png.exists() and png.stat().st_size)
    assert png.read_bytes().startswith(b"\x89PNG")


def test_the_model_is_copied(browser):
    browser.click("#copy")
    assert browser.run("document.getElementById('copy').textContent") != "Copy"
    assert "L1 =~" in browser.run("window.getSelection().toString()")


def test_published_models_stand_beside_the_one_found_and_sort(browser):
    models = "[...document.querySelectorAll('#models tbody tr')].map((r) => r.cells[0].textContent)"
    assert browser.run(models) == ["found", "himi_chain", "himi_three_factor"]
    browser.click("#models th:nth-child(2) button")
    assert browser.run(models) == ["found", "himi_three_factor", "himi_chain"]  # chi-square 45.0, 58.5, 61.4


def test_the_heat_map_has_a_cell_for_every_pair_and_the_largest_are_named(browser):
    assert count(browser, "#trust .chart rect title") == 9 * 8 // 2
    largest = browser.run("document.querySelector('#residuals + p').textContent")
    assert "Speed_Figure with Error_Figure +.085" in largest


def test_how_to_repeat_and_to_cite_it(browser):
    asked = browser.run("document.getElementById('asked').textContent")
    for words in ("Seed", "Versions", f"unmeasured {um.__version__}", "numpy", "LGES()"):
        assert words in asked
    assert "Dong, X." in browser.run("document.getElementById('made').textContent")


def test_figures_stand_clear_of_their_lines(browser):
    """The white patch under a figure is wider than the figure itself: a minus is no dash of the line."""
    margins = browser.run(
        "[...document.querySelectorAll('#diagram .label')].map((l) => l.querySelector('rect').getBBox().width"
        " - l.querySelector('text').getBBox().width)"
    )
    assert len(margins) == 13
    assert all(1.0 < margin < 9.0 for margin in margins), margins


def test_a_narrow_screen_scrolls_downwards_only_and_begins_with_the_latents(browser, page):
    browser.resize(390, 800)
    browser.events.clear()
    browser.open(page)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    assert count(browser, "#diagram .node") == 3


def luminance(colour):
    parts = [int(v) / 255 for v in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_aa_in_light_and_dark(browser, page, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.call("Emulation.setEmulatedMedia", media="", features=features)
    browser.events.clear()
    browser.open(page)
    sheet = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (luminance(sheet) < 0.1) == (scheme == "dark")
    # Every text of the page, folded ones too, on what is behind it; pressed buttons have a colour of their own.
    texts = browser.run(
        "(() => { document.querySelectorAll('details').forEach((d) => { d.open = true; });"
        " const found = {}; for (const e of document.querySelectorAll('body *')) {"
        " if (e.closest('script, svg, #tip')) continue;"
        " if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;"
        " let back = e; while (back !== document.body &&"
        " getComputedStyle(back).backgroundColor === 'rgba(0, 0, 0, 0)') back = back.parentElement;"
        " const pair = [getComputedStyle(e).color, getComputedStyle(back).backgroundColor];"
        " found[pair.join()] = [...pair, e.outerHTML.slice(0, 60)]; } return Object.values(found); })()"
    )
    assert len(texts) >= 4
    charts = "[...document.querySelectorAll('.chart text')].map((e) => [getComputedStyle(e).fill, '%s', e.textContent])"
    labels = (
        "[...document.querySelectorAll('#diagram .label')].map((e) => [getComputedStyle(e.querySelector('text')).fill,"
    )
    labels += " getComputedStyle(e.querySelector('rect')).fill, e.textContent])"
    for ink, back, what in [*texts, *browser.run(charts % sheet), *browser.run(labels)]:
        low, high = sorted((luminance(ink), luminance(back)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, what
    fills = browser.run(
        "[...document.querySelectorAll('#diagram .node ellipse, #diagram .node rect')].map((e) =>"
        " [getComputedStyle(e).fill, getComputedStyle(e.parentNode.querySelector('text')).fill])"
    )
    for fill, ink in fills:
        low, high = sorted((luminance(ink), luminance(fill)))
        assert (high + 0.05) / (low + 0.05) >= 4.5
    browser.call("Emulation.setEmulatedMedia", media="", features=[])


def test_the_diagram_says_its_finding_to_those_who_do_not_see_it(browser):
    words = browser.run("document.getElementById('diagram').getAttribute('aria-label')")
    assert "three hidden factors" in words
    unnamed = "[...document.querySelectorAll('button, input, svg[role]')].filter((e) => !(e.textContent.trim() ||"
    unnamed += " e.getAttribute('aria-label') || e.closest('label'))).length"
    assert browser.run(unnamed) == 0


def test_the_page_prints_on_few_sheets_without_colour_schemes(browser):
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", media="print", features=features)
    assert luminance(browser.run("getComputedStyle(document.body).backgroundColor")) == 1.0
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
