"""The page in a real browser: it loads without errors or requests, and does what its tools promise."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

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


def test_the_threshold_hides_weak_loadings_but_not_the_strongest(browser):
    browser.run("document.getElementById('threshold').value = 0.9")
    browser.run("document.getElementById('threshold').dispatchEvent(new Event('input'))")
    # Nine indicators keep one arrow each, and three paths stay; the loading of -.29 goes.
    assert count(browser, "#diagram .edge") == 12
    assert browser.run("document.getElementById('threshold-value').textContent") == ".90"


def test_a_node_can_be_dragged_and_its_arrows_follow(browser):
    where = "['cx', 'cy'].map((a) => Number(document.querySelector('.node[data-id=L3] ellipse').getAttribute(a)))"
    arrow = "document.querySelector('.edge[data-source=L3] path').getAttribute('d')"
    before, line = browser.run(where), browser.run(arrow)
    browser.drag('.node[data-id="L3"]', 40, 30)
    after = browser.run(where)
    assert after[0] - before[0] > 20
    assert after[1] - before[1] > 15
    assert browser.run(arrow) != line
    browser.click("#reset")
    assert browser.run(where) == before


def test_zoom(browser):
    width = "Number(document.getElementById('diagram').getAttribute('width'))"
    before = browser.run(width)
    browser.click("#zoom-in")
    assert browser.run(width) == pytest.approx(1.25 * before)


def test_a_table_sorts_both_ways(browser):
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
    assert count(browser, "#residuals .chart rect title") == 9 * 8 // 2
    largest = browser.run("document.querySelector('#residuals p').textContent")
    assert "Speed_Figure with Error_Figure +0.085" in largest


def test_how_to_repeat_and_to_cite_it(browser):
    asked = browser.run("document.getElementById('asked').textContent")
    for words in ("Seed", "Versions", f"unmeasured {um.__version__}", "numpy", "LGES()"):
        assert words in asked
    assert "Dong, X." in browser.run("document.getElementById('cite').textContent")


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
