"""Tables as one HTML page, to read, or to copy into a document: they keep their rules there."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from unmeasured.output.publish.tables import Row, Table, pieces, shown, spans

_STYLE = """
body { font: 11pt/1.35 "Times New Roman", Times, serif; color: #000; background: #fff; margin: 2rem auto;
  max-width: 60rem; padding: 0 1rem; }
table { border-collapse: collapse; border-top: 1.5px solid #000; border-bottom: 1.5px solid #000; margin: .3rem 0; }
th, td { font-weight: normal; padding: .12rem .5rem; text-align: right; vertical-align: bottom; white-space: nowrap; }
thead tr:last-child th { border-bottom: 1px solid #000; }
th.above { text-align: center; border-bottom: 1px solid #000; }
.left { text-align: left; white-space: normal; }
td.group { text-align: left; font-weight: bold; padding-top: .4rem; }
.inside { padding-left: 1.2rem; }
section { margin-bottom: 2.2rem; overflow-x: auto; }
p { margin: 0; max-width: 50rem; }
.number { font-weight: bold; } .title { font-style: italic; }
"""


def web_page(tables: Sequence[Table], title: str = "") -> str:
    """The tables as the text of an .html file that asks for no other."""
    body = "\n".join(_table(table) for table in tables)
    head = f'<meta charset="utf-8"><title>{escape(title or "Tables")}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _table(table: Table) -> str:
    inside = any(row.is_heading for row in table.rows)
    rows = "\n".join(_row(row, table, inside) for row in table.rows)
    note = f"<p><i>Note.</i> {_text(table.note)}</p>" if table.note else ""
    return (
        f'<section id="{escape(table.key)}"><p class="number">Table {table.number}</p>'
        f'<p class="title">{_text(table.title)}</p>\n<table><thead>{_heads(table)}</thead>\n<tbody>{rows}</tbody>'
        f"</table>\n{note}</section>"
    )


def _heads(table: Table) -> str:
    heads = "".join(f'<th class="{column.align}">{_text(column.head)}</th>' for column in table.columns)
    if not any(column.above for column in table.columns):
        return f"<tr>{heads}</tr>"
    above = "".join(
        f'<th class="above" colspan="{last - first + 1}">{_text(words)}</th>' if words else "<th></th>"
        for first, last, words in spans(table)
    )
    return f"<tr>{above}</tr><tr>{heads}</tr>"


def _row(row: Row, table: Table, inside: bool) -> str:
    if row.is_heading:
        return f'<tr><td class="group" colspan="{len(table.columns)}">{_text(shown(row.cells[0]))}</td></tr>'
    cells = []
    for j, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True)):
        cells.append(f'<td class="{column.align}{" inside" * (inside and j == 0)}">{_text(shown(cell))}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _text(text: str) -> str:
    return "".join(f"<i>{escape(part)}</i>" if slanted else escape(part) for part, slanted in pieces(text))
