"""Tables as they are pasted from articles, brought into a plain form before they are read as a matrix.

=============================================  =========================================
in the article                                 plain
=============================================  =========================================
``| .62** | — |`` (Markdown)                   cells with tabs between them
``.62 **``, ``− .41`` with thin spaces         ``.62**``, ``−.41``
``.62 [.53, .70]`` (confidence intervals)      ``.62``
``M (SD)`` above ``3.21 (0.84)``               ``M``, ``SD`` above ``3.21``, ``0.84``
``Range`` above ``1–5``                        ``Range`` above ``1``, a column that is not used
=============================================  =========================================
"""

from __future__ import annotations

import re

# Spaces that typesetting puts inside a number, after its sign or before its marks; an em space is between columns.
_THIN = "\u00a0\u2005\u2006\u2008\u2009\u200a\u202f\u200b\ufeff"
_THIN_AFTER_SIGN = re.compile(rf"([-+−–])[{_THIN}]+(?=[.,\d])")
_BEFORE_MARKS = re.compile(r"(?<=\d)\s+(?=[*†‡§]+(\s|[|,;]|$))")
_INTERVAL = re.compile(r"\[\s*[-−–+]?\s*[\d.]+\s*[,;]\s*[-−–+]?\s*[\d.]+\s*\]")
_MEAN_AND_DEVIATION = re.compile(r"\b(M|Mean)\s*(\(\s*SDs?\s*\)|±\s*SDs?\b)", re.IGNORECASE)
_ONE_CELL = re.compile(r"([-−]?\d[\d.,]*)\s*(?:\(\s*([\d.,]+)\s*\)|±\s*([\d.,]+))")
_RANGE = re.compile(r"(?<![\w.,])(\d+(?:\.\d+)?)\s*[–-]\s*\d+(?:\.\d+)?(?![\w.,])")
_RULE = re.compile(r"[\s|:+=_–—-]{3,}$")


def plain_lines(text: str) -> list[str]:
    r"""The lines of a pasted table that are not empty, in a plain form.

    >>> plain_lines("| 1. Anxiety | — |\n|---|---|\n| 2. Mood | .62 ** |")
    ['1. Anxiety\t—', '2. Mood\t.62**']
    >>> plain_lines("Variable  M (SD)  1\n1. Mood  3.21 (0.84)  —")
    ['Variable  M  SD  1', '1. Mood  3.21  0.84  —']
    """
    text = text.replace("’", "'").replace("`", "'")
    text = _INTERVAL.sub("", _THIN_AFTER_SIGN.sub(r"\1", text))
    lines = [_BEFORE_MARKS.sub("", line) for line in text.splitlines()]
    filled = [line for line in lines if line.strip()]
    if sum(line.count("|") > 1 for line in filled) > len(filled) / 2:
        lines = [_cells_in_bars(line) for line in lines if not _RULE.match(line)]
    heads = next((k for k, line in enumerate(lines) if _MEAN_AND_DEVIATION.search(line) and "\t1" in _tabs(line)), None)
    if heads is not None:
        gap = "\t" if "\t" in lines[heads] else "  "
        lines[heads] = _MEAN_AND_DEVIATION.sub(rf"\1{gap}SD", lines[heads])
        lines[heads + 1 :] = [_ONE_CELL.sub(rf"\1{gap}\2\3", line, count=1) for line in lines[heads + 1 :]]
    heads = next((k for k, line in enumerate(lines) if "\trange\t" in _tabs(line).lower()), None)
    if heads is not None:
        lines[heads + 1 :] = [_RANGE.sub(r"\1", line, count=1) for line in lines[heads + 1 :]]
    return [line for line in lines if line.strip()]


def _cells_in_bars(line: str) -> str:
    """A line of a table in Markdown, with tabs between its cells."""
    return "\t".join(cell.strip() for cell in line.strip().strip("|").split("|"))


def _tabs(line: str) -> str:
    """The words of a line with tabs between them."""
    return "\t".join(["", *line.split(), ""])
