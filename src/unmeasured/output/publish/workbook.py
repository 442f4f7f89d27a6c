"""Tables as a workbook, by openpyxl: a sheet for each, its figures as numbers that can be computed with."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from unmeasured.output.publish.libraries import library
from unmeasured.output.publish.tables import Cell, Column, Number, Table, plain, spans

_TOP = 3  # the number of the table, its title, then the heads
# Small p-values are shown as in print; the cell has the number.
_P_VALUE = '[<0.001]"< .001";.000'
_NOTE_WIDTH = 80  # in characters, of a note below a narrow table


def workbook(tables: Sequence[Table]) -> bytes:
    """The tables as the bytes of an .xlsx file."""
    openpyxl = library("openpyxl", "openpyxl", "A workbook")
    styles = library("openpyxl.styles", "openpyxl", "A workbook")
    letters = library("openpyxl.utils", "openpyxl", "A workbook").get_column_letter
    sheet_properties = library("openpyxl.worksheet.properties", "openpyxl", "A workbook")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for table in tables:
        sheet = book.create_sheet(table.key)
        _fill(sheet, styles, table)
        for j in range(len(table.columns)):
            sheet.column_dimensions[letters(j + 1)].width = _width(table, j)
        sheet.page_setup.orientation, sheet.page_setup.fitToHeight = "landscape", 0
        sheet.sheet_properties.pageSetUpPr = sheet_properties.PageSetupProperties(fitToPage=True)
    content = BytesIO()
    book.save(content)
    return content.getvalue()


_EMPTY_COLUMN = 13.0  # the width of a column that no table uses


def _width(table: Table, j: int) -> int:
    """Of a column, in characters."""
    longest = max((len(_length(row.cells[j])) for row in table.rows if not row.is_heading), default=0)
    return min(max(longest, len(plain(table.columns[j].head))) + 3, 60)


def _length(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell.text


def _fill(sheet: Any, styles: Any, table: Table) -> None:
    bold, slanted = styles.Font(bold=True), styles.Font(italic=True)
    thin, thick = styles.Side(style="thin"), styles.Side(style="medium")
    _put(sheet, 1, 1, f"Table {table.number}").font = bold
    _put(sheet, 2, 1, plain(table.title)).font = slanted
    has_above = any(column.above for column in table.columns)
    line = _TOP
    if has_above:
        for first, last, above in spans(table):
            if above:
                cell = _put(sheet, line, first + 1, above)
                cell.alignment = styles.Alignment(horizontal="center")
                sheet.merge_cells(start_row=line, end_row=line, start_column=first + 1, end_column=last + 1)
        line += 1
    for j, column in enumerate(table.columns, start=1):
        cell = _put(sheet, line, j, plain(column.head))
        cell.alignment = _aligned(styles, column, j)
        cell.border = styles.Border(bottom=thin, top=None if has_above else thick)
        if has_above:
            sheet.cell(_TOP, j).border = styles.Border(top=thick, bottom=thin if column.above else None)
    sheet.freeze_panes = sheet.cell(line + 1, 2)
    for row in table.rows:
        line += 1
        if row.is_heading:
            _put(sheet, line, 1, _length(row.cells[0])).font = bold
            continue
        for j, (content, column) in enumerate(zip(row.cells, table.columns, strict=True), start=1):
            _put(sheet, line, j, content).alignment = _aligned(styles, column, j)
    for j in range(1, len(table.columns) + 1):
        old = sheet.cell(line, j).border
        sheet.cell(line, j).border = styles.Border(top=old.top, bottom=thick)
    if table.note:
        cell = _put(sheet, line + 1, 1, f"Note. {plain(table.note)}")
        cell.alignment = styles.Alignment(wrap_text=True, vertical="top")
        last, width = 0, 0.0  # as many columns as a readable line needs, beyond the table if that is narrow
        while last < len(table.columns) or width < _NOTE_WIDTH:
            width += _width(table, last) if last < len(table.columns) else _EMPTY_COLUMN
            last += 1
        sheet.merge_cells(start_row=line + 1, end_row=line + 1, start_column=1, end_column=last)
        sheet.row_dimensions[line + 1].height = 15 * (1 + 1.15 * len(plain(table.note)) // width)


def _aligned(styles: Any, column: Column, j: int) -> Any:
    """The alignment of a column; text has a space between it and the number before it."""
    return styles.Alignment(horizontal=column.align, indent=int(column.align == "left" and j > 1))


# Characters that no cell of a workbook can hold.
_REFUSED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _put(sheet: Any, line: int, column: int, content: Cell) -> Any:
    """Write a cell: numbers as numbers, text as text, also where it looks like a formula."""
    cell = sheet.cell(line, column)
    if isinstance(content, Number):
        if math.isfinite(content.value):
            cell.value = content.value
            cell.number_format = (
                _P_VALUE if content.is_p else "0" if content.digits == 0 else f"0.{'0' * content.digits}"
            )
        else:
            cell.value = content.text or None
        return cell
    cell.value = _REFUSED.sub("", content) or None
    if cell.value is not None:
        cell.data_type = "s"
    return cell
