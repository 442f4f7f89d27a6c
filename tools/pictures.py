"""Draw the pictures of the README, docs/report.md and docs/app.md anew: ``python tools/pictures.py`` (needs Chromium).

``docs/images/burnout.png`` is the diagram of the teacher burnout questionnaire, ``docs/images/report.png`` the top of
its report, ``docs/images/app.png`` a model that is edited in the application. The figures of benchmarks are drawn by
``python -m benchmarks figures``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import unmeasured as um
from unmeasured.app.server import Server

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.append(str(ROOT / "tests"))
from browser import Browser, find, wait_for  # noqa: E402  (the browser that tests drive)


def main() -> None:
    """Search the bundled questionnaire and draw its answer; edit a small model and draw that."""
    data = um.datasets.load("teacher_burnout")
    result = um.LGES().fit_cov(data.frame(), data.n_samples).result_.rename()
    result.plot("full").savefig(IMAGES / "burnout.png", dpi=130)
    if find() is None:
        sys.exit("There is no Chromium here, so the pictures of the report and of the application stay as they are.")
    with Browser(1280, 1200) as browser, tempfile.TemporaryDirectory() as folder:
        page = um.write_report(result, folder, title=data.title, data=data.title, source=data.source)
        browser.open(page)
        browser.screenshot(IMAGES / "report.png", whole=False)
        application(browser)


def application(browser: Browser) -> None:
    """A bundled data set, searched and edited."""
    server = Server(0)
    server.start()
    browser.resize(1280, 900)
    browser.visit(server.url)
    browser.click('[data-dataset="big_five"]')
    wait_for(lambda: browser.run("!document.getElementById('columns').hidden"))
    browser.click('[data-step="search"]')
    browser.click("#start")
    wait_for(lambda: browser.run("!document.getElementById('result').hidden"), 300)
    browser.click('[data-step="edit"]')
    wait_for(lambda: browser.run("document.querySelectorAll('#canvas canvas').length"))
    browser.run("document.getElementById('edge-source').selectedIndex = 0")
    browser.run("document.getElementById('edge-target').value = 'C1'")
    browser.click("#add-edge")
    wait_for(lambda: browser.run("document.getElementById('changes').textContent.includes('added')"))
    browser.run("window.scrollTo(0, 0)")
    browser.screenshot(IMAGES / "app.png", whole=False)
    server.stop()


if __name__ == "__main__":
    main()
