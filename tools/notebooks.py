"""Make the notebooks of the examples: scripts in ``examples`` are run, cell by cell, and stored with what they print.

    python tools/notebooks.py                       all of them
    python tools/notebooks.py first_discovery       one

A script has cells that begin with ``# %%`` or ``# %% [markdown]`` (the percent format of editors and jupytext). A cell
whose last line is a figure shows it. The tests run the same cells and compare what they print with what is stored.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@dataclass
class Cell:
    """A cell of a script: its text, and once it was run, what it printed and the pictures it showed."""

    kind: str
    source: str
    printed: str = ""
    pictures: list[bytes] = field(default_factory=list)


def cells_of(script: str) -> list[Cell]:
    """The cells of a script in percent format."""
    cells = []
    for part in re.split(r"^# %%", script, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if head.strip() == "[markdown]":
            lines = [re.sub(r"^# ?", "", line) for line in body.strip().splitlines()]
            cells.append(Cell("markdown", "\n".join(lines)))
        else:
            cells.append(Cell("code", body.strip()))
    return cells


def run(script: str) -> list[Cell]:
    """The cells of a script with what they print and show, run in a folder of their own."""
    import matplotlib

    matplotlib.use("Agg")
    cells, scope = cells_of(script), {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in cells:
            if cell.kind == "code":
                _run_cell(cell, scope)
    return cells


def _run_cell(cell: Cell, scope: dict[str, Any]) -> None:
    tree = ast.parse(cell.source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, "cell", "exec"), scope)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), scope) if last is not None else None
    cell.printed = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=80)
        cell.pictures.append(picture.getvalue())


def notebook(cells: list[Cell]) -> dict[str, Any]:
    """The cells as a notebook (nbformat 4.5)."""
    made, count = [], 0
    for number, cell in enumerate(cells):
        entry: dict[str, Any] = {"cell_type": cell.kind, "id": f"cell-{number}", "metadata": {}}
        entry["source"] = cell.source.splitlines(keepends=True)
        if cell.kind == "code":
            count += 1
            outputs: list[dict[str, Any]] = []
            if cell.printed:
                text = (cell.printed + "\n").splitlines(keepends=True)
                outputs.append({"name": "stdout", "output_type": "stream", "text": text})
            for picture in cell.pictures:
                data = {"image/png": base64.b64encode(picture).decode(), "text/plain": ["<Figure>"]}
                outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
            entry |= {"execution_count": count, "outputs": outputs}
        made.append(entry)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def stored(path: Path) -> list[Cell]:
    """The cells of a notebook as they are stored."""
    cells = []
    for entry in json.loads(path.read_text("utf-8"))["cells"]:
        cell = Cell(entry["cell_type"], "".join(entry["source"]))
        for output in entry.get("outputs", []):
            if output["output_type"] == "stream":
                cell.printed += "".join(output["text"]).rstrip("\n")
            elif "image/png" in output.get("data", {}):
                cell.pictures.append(base64.b64decode(output["data"]["image/png"]))
        cells.append(cell)
    return cells


def main(names: list[str]) -> None:
    """Make the notebooks of the named examples, or of all."""
    for path in sorted(EXAMPLES.glob("*.py")):
        if not names or path.stem in names:
            made = notebook(run(path.read_text("utf-8")))
            text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
            path.with_suffix(".ipynb").write_text(text, "utf-8")
            print(path.with_suffix(".ipynb").name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
