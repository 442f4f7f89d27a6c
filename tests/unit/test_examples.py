"""The examples run as they are, in a folder of their own, and end where they say."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
LAST_WORDS = {
    "first_discovery": "confirm it on new data.",
    "questionnaire_to_report": "report.html result.json",
    "published_matrix": "maths",
    "compare_with_published": "The page has a section for the comparison: True",
    "likert_with_missing_values": "edges that differ from the truth: 0",
    "groups_of_people": "robust RMSEA 0.000",
    "covariates_and_outcomes": "chi2 66.69 on 41 df, CFI 0.974",
    "reading_a_trace": "True",
    "your_own_move": "edges that differ from the truth: 0",
    "from_spss_to_scores": "people scored: 1200",
}


def test_every_example_is_run_and_linked():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(LAST_WORDS)
    page = (EXAMPLES.parent / "docs" / "report.md").read_text("utf-8")
    for name in LAST_WORDS:
        assert f"examples/{name}.py" in page


@pytest.mark.parametrize("name", sorted(LAST_WORDS))
def test_an_example_runs(name, tmp_path):
    out = io.StringIO()
    with contextlib.chdir(tmp_path), contextlib.redirect_stdout(out):
        runpy.run_path(str(EXAMPLES / f"{name}.py"))
    assert LAST_WORDS[name] in out.getvalue()[-400:]


def test_the_notebook_prints_what_is_stored_in_it(tmp_path):
    pytest.importorskip("pyreadstat")
    script = (EXAMPLES / "from_spss_to_scores.py").read_text("utf-8")
    notebook = json.loads((EXAMPLES / "from_spss_to_scores.ipynb").read_text("utf-8"))
    scope: dict[str, object] = {}
    with contextlib.chdir(tmp_path):
        for cell in notebook["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                assert all(line in script for line in source.splitlines())
                continue
            assert source in script  # the notebook is the script, cell by cell
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(source, "cell", "exec"), scope)
            assert out.getvalue() == "".join(text for output in cell["outputs"] for text in output["text"])
    assert (tmp_path / "scores.csv").exists()


def test_the_first_is_ten_lines_long():
    lines = (EXAMPLES / "first_discovery.py").read_text("utf-8").splitlines()
    assert sum(bool(line) and not line.startswith("#") for line in lines) <= 10
