"""The reason of accepted differences, in the part *Numbers that moved* of the changelog."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
_PART = "### Numbers that moved"
_NAMED = 5


def entry(because: str, moved: Sequence[str]) -> str:
    """Return the line of the changelog: the reason, and which cases of the record moved.

    >>> entry("Rows with holes are fitted by full information.", ["missing/holes", "missing/ordinal"])
    '- Rows with holes are fitted by full information. (Golden record: `missing/holes`, `missing/ordinal`.)'
    """
    names = ", ".join(f"`{name}`" for name in moved[:_NAMED])
    more = f" and {len(moved) - _NAMED} more cases" if len(moved) > _NAMED else ""
    end = "" if because.rstrip().endswith((".", "!", "?")) else "."
    return f"- {because.strip()}{end} (Golden record: {names}{more}.)"


def with_line(text: str, line: str) -> str:
    r"""Return the changelog with a line at the end of *Numbers that moved* of its newest version.

    >>> print(with_line("# Changelog\n\n## 1.0\n\n### Numbers that moved\n\n- One.\n\n## 0.9\n", "- Two."))
    # Changelog
    <BLANKLINE>
    ## 1.0
    <BLANKLINE>
    ### Numbers that moved
    <BLANKLINE>
    - One.
    - Two.
    <BLANKLINE>
    ## 0.9
    <BLANKLINE>
    """
    lines = text.splitlines()
    versions = [k for k, one in enumerate(lines) if one.startswith("## ")] or [len(lines)]
    end = versions[1] if len(versions) > 1 else len(lines)
    parts = [k for k in range(versions[0], end) if lines[k] == _PART]
    if parts:
        after = [k for k in range(parts[0] + 1, end) if lines[k].startswith("#")]
        end = after[0] if after else end
    while end and not lines[end - 1].strip():
        end -= 1
    added = [line] if parts else ["", _PART, "", line]
    return "\n".join([*lines[:end], *added, *lines[end:]]) + "\n"


def add(line: str, path: Path = CHANGELOG) -> None:
    """Add a line to the changelog."""
    path.write_text(with_line(path.read_text(encoding="utf-8"), line), encoding="utf-8", newline="\n")
