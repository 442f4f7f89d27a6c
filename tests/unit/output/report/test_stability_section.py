"""The section on stability: what the tables say is on the page, names are escaped, the slider hides what is rare."""

from __future__ import annotations

from pathlib import Path

import pytest

import browser
import unmeasured as um
from unmeasured.graphs.outline import Outline
from unmeasured.output.report.run import run_of
from unmeasured.output.report.stability import stability_section
from unmeasured.validation.replicates.records import Replicate
from unmeasured.validation.replicates.result import Stability


@pytest.fixture(scope="module")
def search() -> um.LGES:
    data = um.datasets.load("multitasking")
    names = ["<b>", *data.names[1:]]
    return um.LGES().fit_cov(data.frame().to_numpy(), data.n_samples, names=names)


@pytest.fixture(scope="module")
def stable(search: um.LGES) -> Stability:
    """Three replicates like the graph found, and a runner-up."""
    graphs = [search.graph_] * 3 + [search.runners_up_[0].graph]
    outlines = [Outline.of(graph, search.sample_.names) for graph in graphs]
    replicates = tuple(Replicate(i, outline, 0.0) for i, outline in enumerate(outlines))
    return Stability(search.graph_, search.sample_.names, "made up", replicates)


def test_the_page_has_the_section_and_its_figures(search: um.LGES, stable: Stability, tmp_path: Path) -> None:
    page = um.write_report(search, tmp_path, stability=stable).read_text()
    assert "4 replicates of the data (made up)" in page
    assert "&lt;b&gt;" in page
    assert "<b>," not in page
    assert page.count("found in 75% of the replicates") > 0  # the edge that the runner-up lacks
    assert '"frequency": 0.75' in page
    assert (tmp_path / "stability.csv").exists()
    assert 'id="stability"' not in um.write_report(search, tmp_path).read_text()


def test_latents_that_were_renamed_keep_their_figures(search: um.LGES, stable: Stability) -> None:
    section = stability_section(run_of(search.result_.rename({"L2": "slips"})).result, stable)
    assert "slips" in section
    assert "L2" not in section


def test_the_stability_of_another_graph_is_refused(stable: Stability) -> None:
    data = um.datasets.load("holzinger_swineford")
    other = um.LGES(max_group_size=1).fit_cov(data.frame().iloc[:4, :4], data.n_samples)
    with pytest.raises(um.UnmeasuredError, match="of another graph than the result"):
        stability_section(other.result_, stable)


@pytest.mark.skipif(browser.find() is None, reason="no Chromium on this machine")
def test_the_slider_hides_what_is_rare(search: um.LGES, stable: Stability, tmp_path: Path) -> None:
    page = um.write_report(search, tmp_path, stability=stable)
    visible = "document.querySelectorAll('#diagram .edge').length"
    with browser.Browser(1280) as seen:
        seen.open(page)
        before = seen.run(visible)
        seen.run("(s => { s.value = 0.8; s.dispatchEvent(new Event('input')); })(document.getElementById('frequency'))")
        often = stable.edges[stable.edges["in_graph"] & (stable.edges["frequency"] >= 0.8)]
        assert seen.run(visible) == before - 1 == len(often)
        assert seen.run("document.getElementById('frequency-value').textContent") == "80%"
        assert "Not drawn: 1 of" in seen.run("document.getElementById('diagram').textContent")
        seen.resize(390, 800)
        assert seen.run("document.documentElement.scrollWidth") <= 390
        assert seen.troubles() == []
