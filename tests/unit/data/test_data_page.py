"""The page about data runs and prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "data.md"


def test_the_page_runs_and_prints_what_it_says() -> None:
    scope: dict[str, object] = {}
    printed = ""
    for kind, code in re.findall(r"```(python|text)\n(.*?)```", PAGE.read_text("utf-8"), flags=re.S):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, PAGE.name, "exec"), scope)
            printed = out.getvalue()
        else:
            assert printed.rstrip() == code.rstrip()
