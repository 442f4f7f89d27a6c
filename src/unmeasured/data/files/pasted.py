"""Tables as they are pasted from articles, brought into a plain form before they are read as a matrix.

=============================================  =========================================
in the article                                 plain
=============================================  =========================================
``| .62** | — |`` (Markdown)                   cells with tabs between them
``.62 **``, ``− .41`` with thin spaces         ``.62**``, ``−.41``
``.62 [.53, .70]`` (confidence intervals)      ``.62``
``M (SD)`` above ``3.21 (0.84)``               ``M``, ``SD`` above ``3.21``, ``0.84``
``Range`` above ``1–5``, ``n`` above ``212``   ``Range`` above one number, a column that is not used
``1  2  M  SD`` above ``—  .62  3.21  0.84``   ``M  SD  1  2`` above ``3.21  0.84  —  .62``
``Pearson Correlation`` (output of SPSS)       removed, and with it the rows ``Sig. (2-tailed)`` and ``N``
``NA`` in one triangle (output of R)           an empty cell
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
_SPSS = re.compile(r"(Pearson Correlation|Correlation Coefficient)", re.IGNORECASE)
_SPSS_OTHERS = re.compile(r"[\s|]*(Sig\. \([12]-(tailed|seitig)\)|N)(?=[\s|])", re.IGNORECASE)
_NA = re.compile(r"(?<!^\d)(?<!^\d\d)(?<=[\d*])(?:[\t ,;]+(?:NA|NaN)\b)+|(?:[\t ,;]+(?:NA|NaN)\b){2,}")
_STATISTICS = re.compile(r"m|means?|sds?|s\.d\.|α|alpha|ω|omega|range", re.IGNORECASE)
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
    if any(_SPSS.search(line) for line in filled):
        lines = [_SPSS.sub("", line) for line in lines if not _SPSS_OTHERS.match(line)]
    lines = [_NA.sub("", line) for line in lines]
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
    return _statistics_first([line for line in lines if line.strip()])


def _statistics_first(lines: list[str]) -> list[str]:
    """The lines with columns such as M and SD before those that are numbered 1, 2, ...; numbers of rows are not used.

    >>> _statistics_first(["Scale 1 2 M SD", "1. Mood — 3.2 0.8", "2. Sleep .62 — 2.9 0.9"])[1:]
    ['1. Mood 3.2 0.8 —', '2. Sleep 2.9 0.9 .62 —']
    """
    for k, line in enumerate(lines):
        gap = "\t" if "\t" in line else " "
        cells = [cell.strip() for cell in line.split("\t" if gap == "\t" else None)]
        if "1" not in cells or not any(_STATISTICS.fullmatch(cell) for cell in cells):
            continue
        cells = ["Range" if cell in ("n", "N") else cell for cell in cells]
        last = next((j for j in range(len(cells), 0, -1) if not _STATISTICS.fullmatch(cells[j - 1])), 0)
        behind, first = len(cells) - last, cells.index("1")
        heads = gap.join([*cells[:first], *cells[last:], *cells[first:last]])
        rows = [_moved(row, behind, gap) if behind else row for row in lines[k + 1 :]]
        return [*lines[:k], heads, *rows]
    return lines


def _moved(line: str, behind: int, gap: str) -> str:
    """A row with its last cells moved before the correlations; a line that is too short stays as it is."""
    cells = [cell.strip() for cell in line.split("\t" if gap == "\t" else None)]
    first = 1 if gap == "\t" else next((j for j, cell in enumerate(cells) if j and _ENTRY.match(cell)), 0)
    if not first or len(cells) - behind <= first or not all(_ENTRY.match(cell) for cell in cells[-behind:]):
        return line
    return gap.join([*cells[:first], *cells[-behind:], *cells[first:-behind]])


_ENTRY = re.compile(r"[-−–—+(]*[\d.,]*\d|[-−–—]+$")


def _cells_in_bars(line: str) -> str:
    """A line of a table in Markdown, with tabs between its cells."""
    return "\t".join(cell.strip() for cell in line.strip().strip("|").split("|"))


def _tabs(line: str) -> str:
    """The words of a line with tabs between them."""
    return "\t".join(["", *line.split(), ""])
