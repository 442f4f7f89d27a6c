"""Tables as LaTeX: a whole document that compiles, each table between comments, to be taken out by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unmeasured.output.publish.tables import Row, Table, pieces, shown, spans

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    '"': "''",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "→": r"$\rightarrow$",
    "↔": r"$\leftrightarrow$",
    "χ": r"$\chi$",
    "²": r"$^2$",
    "ω": r"$\omega$",
    "α": r"$\alpha$",
    "Δ": r"$\Delta$",
    "ᵃ": r"\textsuperscript{a}",
    "∞": r"$\infty$",
    "’": "'",
}
# More rows than this may not fit on a page.
_PAGE = 40
_PREAMBLE = r"""% Written by unmeasured. Compile with pdflatex; lualatex for names in other scripts.
% To use one table, copy it into your article, and \usepackage{booktabs,longtable,pdflscape} with it.
\documentclass[a4paper]{article}
\usepackage{iftex}
\iftutex\usepackage{fontspec}\else\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}\fi
\usepackage[margin=2cm]{geometry}
\usepackage{booktabs,longtable,pdflscape}
\setlength{\tabcolsep}{4pt}
\setlength{\parindent}{0pt}
\begin{document}
\small
"""


def latex_document(tables: Sequence[Table]) -> str:
    """The tables as the text of a .tex file."""
    return "\n".join([_PREAMBLE, *(f"{_table(table)}\n" for table in tables), r"\end{document}", ""])


def escaped(text: str) -> str:
    r"""The text for LaTeX, words marked for it in italics.

    >>> print(escaped("q_1 → 50%"))
    q\_1 $\rightarrow$ 50\%
    """
    parts = []
    for part, slanted in pieces(text):
        words = "".join(_SPECIAL.get(letter, letter) for letter in re.sub(r"[\x00-\x1f\x7f]", " ", part))
        parts.append(rf"\textit{{{words}}}" if slanted else words)
    return "".join(parts)


def _table(table: Table) -> str:
    kinds = "".join(
        "r" if column.align == "right" else rf"p{{{0.17 * letters + 0.2:.1f}cm}}"
        for column, letters in zip(table.columns, table.widths, strict=True)
    )
    lines = [
        f"% Table {table.number}: {table.key}",
        *([r"\begin{landscape}"] if table.is_wide else []),
        rf"\textbf{{Table {table.number}}}\nopagebreak" + "\n",
        rf"\textit{{{escaped(table.title)}}}\nopagebreak",
        *_grid(table, kinds),
        *([rf"\textit{{Note.}} {escaped(table.note)}"] if table.note else []),
        *([r"\end{landscape}"] if table.is_wide else []),
        rf"% End of table {table.number}",
        r"\bigskip",
    ]
    return "\n".join(lines)


def _grid(table: Table, kinds: str) -> list[str]:
    """The table itself; one that may need several pages repeats its heads, for which LaTeX has to run twice."""
    rows = [_row(row, table) for row in table.rows]
    if len(rows) <= _PAGE:
        inside = [r"\toprule", *_heads(table), r"\midrule", *rows, r"\bottomrule"]
        return ["\n" + rf"\begin{{tabular}}{{@{{}}{kinds}@{{}}}}", *inside, r"\end{tabular}" + "\n", r"\smallskip"]
    top = [r"\toprule", *_heads(table), r"\midrule", r"\endhead", r"\bottomrule", r"\endfoot"]
    return [rf"\begin{{longtable}}[l]{{@{{}}{kinds}@{{}}}}", *top, *rows, r"\end{longtable}"]


def _heads(table: Table) -> list[str]:
    heads = " & ".join(escaped(column.head) for column in table.columns) + r" \\"
    if not any(column.above for column in table.columns):
        return [heads]
    cells, rules = [], []
    for first, last, above in spans(table):
        width = last - first + 1
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escaped(above)}}}" if above else "")
        if above:
            rules.append(rf"\cmidrule(lr){{{first + 1}-{last + 1}}}")
    return [" & ".join(cells) + r" \\", "".join(rules), heads]


def _row(row: Row, table: Table) -> str:
    if row.is_heading:
        return rf"\multicolumn{{{len(table.columns)}}}{{@{{}}l}}{{\textbf{{{escaped(shown(row.cells[0]))}}}}} \\*"
    cells = [escaped(shown(cell)) for cell in row.cells]
    # A bracket behind \\ would be an optional argument.
    if any(other.is_heading for other in table.rows):
        cells[0] = rf"\quad {cells[0]}"
    return " & ".join("{" + cell + "}" if cell.startswith("[") else cell for cell in cells) + r" \\"
