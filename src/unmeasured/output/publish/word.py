"""Tables as a Word document, by python-docx: real tables with the rules, titles and notes of APA style."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from unmeasured.output.publish.libraries import library
from unmeasured.output.publish.tables import LETTER, PADDING, Row, Table, pieces, shown, spans

_FONT, _POINTS = "Times New Roman", 10
# A table of more rows may be broken between pages.
_PAGE = 30
# Characters that XML cannot hold.
_NO_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 65534, 65535))


def word_document(tables: Sequence[Table], title: str = "") -> bytes:
    """The tables as the bytes of a .docx file, wide ones on pages of their own that lie on their side."""
    docx = library("docx", "python-docx", "A Word document")
    document = docx.Document()
    style = document.styles["Normal"]
    style.font.name, style.font.size = _FONT, docx.shared.Pt(_POINTS)
    style.paragraph_format.space_after = docx.shared.Pt(0)
    document.core_properties.title, document.core_properties.author = title[:255], ""
    document.core_properties.comments = ""
    _on_paper(docx, document.sections[0], bool(tables) and tables[0].is_wide)
    for k, table in enumerate(tables):
        if k and table.is_wide != tables[k - 1].is_wide:
            _on_paper(docx, document.add_section(docx.enum.section.WD_SECTION.NEW_PAGE), table.is_wide)
        elif k:
            document.add_paragraph()
        _add(docx, document, table)
    content = BytesIO()
    document.save(content)
    return content.getvalue()


def _on_paper(docx: Any, section: Any, is_wide: bool) -> None:
    """A section of A4 paper, upright or on its side, with margins of an inch."""
    short, long = docx.shared.Mm(210), docx.shared.Mm(297)
    orientation = docx.enum.section.WD_ORIENT
    section.orientation = orientation.LANDSCAPE if is_wide else orientation.PORTRAIT
    section.page_width, section.page_height = (long, short) if is_wide else (short, long)
    for side in ("left_margin", "right_margin", "top_margin", "bottom_margin"):
        setattr(section, side, docx.shared.Inches(0.8))


def _add(docx: Any, document: Any, table: Table) -> None:
    number = document.add_paragraph()
    number.add_run(f"Table {table.number}").bold = True
    number.paragraph_format.keep_with_next = True
    heading = document.add_paragraph()
    for text, _ in pieces(table.title):
        heading.add_run(_clean(text)).italic = True
    heading.paragraph_format.keep_with_next = True
    heading.paragraph_format.space_after = docx.shared.Pt(4)
    heads = 2 if any(column.above for column in table.columns) else 1
    grid = document.add_table(rows=heads + len(table.rows), cols=len(table.columns))
    grid.alignment = docx.enum.table.WD_TABLE_ALIGNMENT.LEFT
    grid.autofit = False
    margins = "".join(f'<w:{side} w:w="{10 * PADDING:.0f}" w:type="dxa"/>' for side in ("left", "right"))
    cells = f"<w:tblCellMar {docx.oxml.ns.nsdecls('w')}>{margins}</w:tblCellMar>"
    grid._tbl.tblPr.append(docx.oxml.parse_xml(cells))
    for j, letters in enumerate(table.widths):
        width = docx.shared.Pt(letters * LETTER + PADDING)
        grid.columns[j].width = width
        for cell in grid.columns[j].cells:
            cell.width = width
    _heads(docx, grid, table, heads)
    for row, cells in zip(table.rows, list(grid.rows)[heads:], strict=True):
        _fill(docx, cells, row, table)
    last = len(grid.rows) - 1
    for j in range(len(table.columns)):
        _rule(docx, grid.cell(0, j), "top", 8)
        _rule(docx, grid.cell(heads - 1, j), "bottom", 4)
        _rule(docx, grid.cell(last, j), "bottom", 8)
    for row in list(grid.rows)[:heads]:
        row._tr.get_or_add_trPr().append(docx.oxml.parse_xml(f"<w:tblHeader {docx.oxml.ns.nsdecls('w')}/>"))
    _keep_together(grid, heads if len(table.rows) > _PAGE else last + bool(table.note))
    for row in grid.rows:
        row._tr.get_or_add_trPr().append(docx.oxml.parse_xml(f"<w:cantSplit {docx.oxml.ns.nsdecls('w')}/>"))
    if table.note:
        note = document.add_paragraph()
        note.paragraph_format.space_before = docx.shared.Pt(4)
        note.add_run("Note. ").italic = True
        _runs(note, table.note)


def _keep_together(grid: Any, n_rows: int) -> None:
    """Leave no page break behind the first rows; with all of them, none before the note either."""
    for row in list(grid.rows)[:n_rows]:
        for cell in row.cells:
            cell.paragraphs[0].paragraph_format.keep_with_next = True


def _heads(docx: Any, grid: Any, table: Table, heads: int) -> None:
    for j, column in enumerate(table.columns):
        _write(docx, grid.cell(heads - 1, j), column.head, column.align)
    if heads == 1:
        return
    for first, last, above in spans(table):
        cell = grid.cell(0, first)
        if above:
            cell = cell.merge(grid.cell(0, last)) if last > first else cell
            _write(docx, cell, above, "center")
            _rule(docx, cell, "bottom", 4)


def _fill(docx: Any, line: Any, row: Row, table: Table) -> None:
    if row.is_heading:
        cell = line.cells[0].merge(line.cells[-1])
        _write(docx, cell, shown(row.cells[0]), "left", bold=True)
        cell.paragraphs[0].paragraph_format.keep_with_next = True
        return
    indent = any(other.is_heading for other in table.rows)
    for j, (cell, content, column) in enumerate(zip(line.cells, row.cells, table.columns, strict=True)):
        _write(docx, cell, shown(content), column.align)
        if indent and j == 0:
            cell.paragraphs[0].paragraph_format.left_indent = docx.shared.Pt(8)


def _write(docx: Any, cell: Any, text: str, align: str, bold: bool = False) -> None:
    paragraph = cell.paragraphs[0]
    alignment = docx.enum.text.WD_ALIGN_PARAGRAPH
    paragraph.alignment = {"left": alignment.LEFT, "right": alignment.RIGHT, "center": alignment.CENTER}[align]
    _runs(paragraph, text, bold=bold)


def _runs(paragraph: Any, text: str, *, bold: bool = False) -> None:
    for part, slanted in pieces(text):
        run = paragraph.add_run(_clean(part))
        run.italic, run.bold = slanted, bold


def _clean(text: str) -> str:
    return text.translate(_NO_XML).encode("utf-8", "replace").decode("utf-8")


def _rule(docx: Any, cell: Any, side: str, eighths: int) -> None:
    """A line at one side of a cell, in eighths of a point."""
    properties = cell._tc.get_or_add_tcPr()
    borders = properties.find(docx.oxml.ns.qn("w:tcBorders"))
    if borders is None:
        borders = docx.oxml.parse_xml(f"<w:tcBorders {docx.oxml.ns.nsdecls('w')}/>")
        properties.append(borders)
    line = f'<w:{side} {docx.oxml.ns.nsdecls("w")} w:val="single" w:sz="{eighths}" w:space="0" w:color="000000"/>'
    known = borders.find(docx.oxml.ns.qn(f"w:{side}"))
    if known is not None:
        borders.remove(known)
    borders.append(docx.oxml.parse_xml(line))
