"""What a project gives away as files: the report, model text, tables, pictures, the project itself."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from xml.sax.saxutils import escape

import pandas as pd

import unmeasured as um
from unmeasured.app.project import PROJECT, Project
from unmeasured.files import csv_text

Export = tuple[str, str, bytes]  # file name, media type, content
_DIGITS = {"std": "standardised", "std_se": "s.e. (standardised)", "est": "estimate", "se": "s.e.", "pvalue": "p"}
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def export(project: Project, kind: str) -> Export:
    """A file of the model at hand.

    Raises
    ------
    UnmeasuredError
        For a kind there is not, or where there is no result yet.
    """
    makers: dict[str, Callable[[Project], Export]] = {
        "report": lambda p: ("report.html", "text/html", p.report().encode("utf-8")),
        "lavaan": lambda p: ("model.lav", "text/plain", p.current().to_lavaan().encode("utf-8")),
        "r": lambda p: ("model.R", "text/plain", r_script(p).encode("utf-8")),
        "json": lambda p: ("result.json", "application/json", p.current().to_json().encode("utf-8")),
        "csv": lambda p: ("tables.zip", "application/zip", _csv(p)),
        "latex": lambda p: ("tables.tex", "text/plain", _latex(p).encode("utf-8")),
        "word": lambda p: ("tables.docx", _docx_type(), _docx(p)),
        "svg": lambda p: ("diagram.svg", "image/svg+xml", p.current().to_svg().encode("utf-8")),
        "pdf": lambda p: ("diagram.pdf", "application/pdf", _picture(p, "pdf")),
        "png": lambda p: ("diagram.png", "image/png", _picture(p, "png")),
        "project": lambda p: (f"project{PROJECT}", "application/zip", p.save()),
    }
    if kind not in makers:
        raise um.UnmeasuredError(f"There is no export {kind[:40]!r}. There are {', '.join(makers)}.")
    return makers[kind](project)


def r_script(project: Project) -> str:
    """An R script that fits the model with lavaan, with the data inside where a matrix is all there is."""
    text = project.current().to_lavaan()
    sample = project.result.sem.sample
    rows = [", ".join(f"{value:.10g}" for value in row) for row in sample.corr]
    names = ", ".join(_quoted(name) for name in sample.names)
    matrix = ",\n  ".join(rows)
    n = round(sample.n)
    return (
        "# install.packages('lavaan')\nlibrary(lavaan)\n\n"
        f"model <- '\n{text}'\n\n"
        f"names <- c({names})\n"
        f"corr <- matrix(c(\n  {matrix}), {len(sample.names)}, dimnames = list(names, names))\n"
        f"fit <- sem(model, sample.cov = corr, sample.nobs = {n}, std.lv = TRUE)\n"
        "summary(fit, fit.measures = TRUE, standardized = TRUE)\n"
    )


def _quoted(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def tables(project: Project) -> dict[str, pd.DataFrame]:
    """Loadings, paths and fit of the model at hand, with headings for people."""
    result = project.current()
    fit = result.sem
    indices = {
        name: getattr(fit, name) for name in ("chi2", "df", "pvalue", "rmsea", "cfi", "tli", "srmr", "aic", "bic")
    }
    loadings = result.loadings[["latent", "indicator", *_DIGITS]].rename(columns=_DIGITS)
    paths = result.latent_paths[["source", "target", *_DIGITS]].rename(
        columns={"source": "from", "target": "to", **_DIGITS}
    )
    shown = {
        "Loadings": loadings,
        "Paths": paths,
        "Fit": pd.DataFrame({"index": list(indices), "value": list(indices.values())}),
    }
    return {name: table for name, table in shown.items() if len(table)}


def _csv(project: Project) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, table in tables(project).items():
            archive.writestr(f"{name.lower()}.csv", csv_text(table))
    return out.getvalue()


def _latex(project: Project) -> str:
    parts = []
    for name, table in tables(project).items():
        safe = table.map(_tex).rename(columns=_tex)
        lines = [
            " & ".join(map(str, safe.columns)),
            *(" & ".join(map(str, row)) for row in safe.itertuples(index=False)),
        ]
        columns = "".join("l" if not pd.api.types.is_numeric_dtype(table[c]) else "r" for c in table)
        head, *body = (f"{line} \\\\" for line in lines)
        rows = "\n".join(body)
        parts.append(
            f"\\begin{{table}}\n\\caption{{{name}}}\n\\begin{{tabular}}{{{columns}}}\n\\hline\n{head}\n\\hline\n{rows}\n"
            "\\hline\n\\end{tabular}\n\\end{table}\n"
        )
    return "\n".join(parts)


def _tex(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in str(value))


def _docx_type() -> str:
    return "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def _docx(project: Project) -> bytes:
    """The tables as a Word document: the least that the format asks for."""
    body = "".join(
        f"{_paragraph(name, bold=True)}{_word_table(table)}{_paragraph('')}" for name, table in tables(project).items()
    )
    document = (
        f'<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
    )
    package = "http://schemas.openxmlformats.org/package/2006"
    kinds = (
        f'<?xml version="1.0" encoding="UTF-8"?><Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{_docx_type()}.main+xml"/></Types>'
    )
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    relations = (
        f'<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}" Target="word/document.xml"/></Relationships>'
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", kinds)
        archive.writestr("_rels/.rels", relations)
        archive.writestr("word/document.xml", document)
    return out.getvalue()


def _word_table(table: pd.DataFrame) -> str:
    rows = [list(map(str, table.columns)), *([_cell(v) for v in row] for row in table.itertuples(index=False))]
    edge = '<w:tblBorders><w:top w:val="single" w:sz="6"/><w:bottom w:val="single" w:sz="6"/></w:tblBorders>'
    lines = "".join(
        "<w:tr>" + "".join(f"<w:tc>{_paragraph(cell, bold=not k)}</w:tc>" for cell in row) + "</w:tr>"
        for k, row in enumerate(rows)
    )
    grid = "<w:gridCol/>" * len(table.columns)
    return (
        f'<w:tbl><w:tblPr><w:tblW w:w="5000" w:type="pct"/>{edge}</w:tblPr><w:tblGrid>{grid}</w:tblGrid>{lines}</w:tbl>'
    )


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _paragraph(text: str, bold: bool = False) -> str:
    # XML has no place for most control characters, escaped or not.
    clean = escape(re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text))
    weight = "<w:rPr><w:b/></w:rPr>" if bold else ""
    return f'<w:p><w:r>{weight}<w:t xml:space="preserve">{clean}</w:t></w:r></w:p>'


def _picture(project: Project, ending: str) -> bytes:
    out = io.BytesIO()
    project.current().plot().savefig(out, format=ending, dpi=200)
    return out.getvalue()
