"""Draw the pictures of the README and of docs/report.md anew: ``python tools/pictures.py`` (needs Chromium for one).

``docs/images/burnout.png`` is the diagram of the teacher burnout questionnaire, ``docs/images/report.png`` the top of
its report. The figures of benchmarks are drawn by ``unmeasured bench figures``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import unmeasured as um

IMAGES = Path(__file__).parents[1] / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> None:
    """Search the bundled questionnaire and draw its answer."""
    data = um.datasets.load("teacher_burnout")
    result = um.LGES().fit_cov(data.frame(), data.n_samples).result_.rename()
    result.plot("full").savefig(IMAGES / "burnout.png", dpi=130)
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("There is no Chromium here, so docs/images/report.png stays as it is.")
    with tempfile.TemporaryDirectory() as folder:
        page = um.write_report(result, folder, title=data.title, data=data.title, source=data.source)
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,1200"]
        options += [f"--user-data-dir={folder}/profile", f"--screenshot={IMAGES / 'report.png'}"]
        subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
