"""The examples run as they are, and print what is stored in their notebooks, which the documentation site shows."""

from __future__ import annotations

from pathlib import Path

import notebooks
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def test_every_example_is_linked_and_has_a_notebook():
    page = (ROOT / "docs" / "report.md").read_text("utf-8")
    for name in NAMES:
        assert f"examples/{name}.py" in page
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_its_notebook_stores(name):
    """Where this fails after a change that is meant: ``python tools/notebooks.py NAME``."""
    if name == "from_spss_to_scores":
        pytest.importorskip("pyreadstat")
    made = notebooks.run((EXAMPLES / f"{name}.py").read_text("utf-8"))
    kept = notebooks.stored(EXAMPLES / f"{name}.ipynb")
    assert [(cell.kind, cell.source) for cell in made] == [(cell.kind, cell.source) for cell in kept]
    for new, old in zip(made, kept, strict=True):
        assert new.printed == old.printed
        assert len(new.pictures) == len(old.pictures)  # drawn by other versions, they differ in some pixels


def test_a_notebook_is_read_back_as_it_was_made(tmp_path):
    script = "# %% [markdown]\n# # A title\n# Some text.\n\n# %%\nx = 2\nprint(x, 'lines\\nhere')\n\n# %%\nx = 3\n"
    made = notebooks.run(script)
    assert [cell.printed for cell in made] == ["", "2 lines\nhere", ""]
    assert made[0].source == "# A title\nSome text."
    (tmp_path / "a.ipynb").write_text(notebooks.json.dumps(notebooks.notebook(made)), "utf-8")
    assert notebooks.stored(tmp_path / "a.ipynb") == made


def test_the_first_is_ten_lines_long():
    lines = (EXAMPLES / "first_discovery.py").read_text("utf-8").splitlines()
    assert sum(bool(line) and not line.startswith("#") for line in lines) <= 10
