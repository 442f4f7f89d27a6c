"""What a project gives away as files: the report, model text, tables, pictures, the project itself.

All of it is of the model at hand. Of a model that was edited, the tables and the report have the model found beside it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pandas as pd

import unmeasured as um
from unmeasured.app.project import PROJECT, Project
from unmeasured.files import csv_text, encoded
from unmeasured.output.publish.publication import Publication
from unmeasured.output.publish.word import word_document
from unmeasured.output.publish.workbook import workbook

Export = tuple[str, str, bytes]  # file name, media type, content
_DIGITS = {"std": "standardised", "std_se": "s.e. (standardised)", "est": "estimate", "se": "s.e.", "pvalue": "p"}
_OFFICE = "application/vnd.openxmlformats-officedocument"
# Each with what the page calls it, in its order.
KINDS = {
    "report": "The report, one page to send",
    "word": "Tables for Word",
    "xlsx": "Tables for Excel",
    "latex": "Tables for LaTeX",
    "csv": "Tables as CSV",
    "methods": "A paragraph on methods and limitations",
    "bibtex": "Its references for BibTeX",
    "lavaan": "The model for lavaan",
    "r": "An R script that fits it with lavaan",
    "svg": "The diagram as SVG",
    "pdf": "The diagram as PDF",
    "png": "The diagram as PNG",
    "column": "The diagram for one column of a journal, black and white (PDF)",
    "page": "The diagram for two columns of a journal, black and white (PDF)",
    "json": "The result as JSON, for the commands",
    "project": "The whole project, to open again here",
}


def export(project: Project, kind: str) -> Export:
    """A file of the model at hand.

    Raises
    ------
    UnmeasuredError
        For a kind there is not, where there is no result yet, or where a library that it needs is not installed.
    """
    makers: dict[str, Callable[[Project], Export]] = {
        "report": lambda p: ("report.html", "text/html", encoded(p.report())),
        "lavaan": lambda p: ("model.lav", "text/plain", encoded(p.current().to_lavaan())),
        "r": lambda p: ("model.R", "text/plain", encoded(article(p).to_r())),
        "json": lambda p: ("result.json", "application/json", encoded(p.current_run().to_json())),
        "csv": lambda p: ("tables.zip", "application/zip", _csv(p)),
        "latex": lambda p: ("tables.tex", "text/plain", encoded(article(p).to_latex())),
        "word": lambda p: (
            "tables.docx",
            f"{_OFFICE}.wordprocessingml.document",
            word_document(article(p).tables, p.name),
        ),
        "xlsx": lambda p: ("tables.xlsx", f"{_OFFICE}.spreadsheetml.sheet", workbook(article(p).tables)),
        "methods": lambda p: ("methods.txt", "text/plain", encoded(article(p).to_methods())),
        "bibtex": lambda p: ("references.bib", "text/plain", encoded(article(p).to_bibtex())),
        "svg": lambda p: ("diagram.svg", "image/svg+xml", encoded(p.current().plot(marked=p.marked).to_svg())),
        "pdf": lambda p: ("diagram.pdf", "application/pdf", _picture(p, "pdf")),
        "png": lambda p: ("diagram.png", "image/png", _picture(p, "png")),
        "column": lambda p: ("diagram-column.pdf", "application/pdf", _printed(p, "column")),
        "page": lambda p: ("diagram-page.pdf", "application/pdf", _printed(p, "page")),
        "project": lambda p: (f"project{PROJECT}", "application/zip", p.save()),
    }
    if kind not in makers:
        raise um.UnmeasuredError(f"There is no export {kind[:40]!r}. There are {', '.join(KINDS)}.")
    return makers[kind](project)


def article(project: Project) -> Publication:
    """What an article takes from the model at hand; the data go into the R script as a matrix."""
    run = project.current_run()
    return Publication(replace(run, about=replace(run.about, rows=None)), project.stability_now)


def tables(project: Project) -> dict[str, pd.DataFrame]:
    """Loadings, paths and fit of the model at hand, with headings for people; of an edited one, both models' fit."""
    result = project.current()
    indices = ("chi2", "df", "pvalue", "rmsea", "cfi", "tli", "srmr", "aic", "bic")
    fits = {"edited": result.sem, "found": project.result.sem} if project.is_edited else {"value": result.sem}
    fit = pd.DataFrame({name: [getattr(one, index) for index in indices] for name, one in fits.items()})
    fit.insert(0, "index", indices)
    loadings = result.loadings[["latent", "indicator", *_DIGITS]].rename(columns=_DIGITS)
    paths = result.latent_paths[["source", "target", *_DIGITS]].rename(
        columns={"source": "from", "target": "to", **_DIGITS}
    )
    direct = result.direct_effects[["covariate", "item", *_DIGITS]].rename(columns=_DIGITS)
    pairs = result.local_dependence[["item_1", "item_2", *_DIGITS]].rename(columns=_DIGITS)
    shown = {"Loadings": loadings, "Paths": paths, "Direct effects": direct, "Residual pairs": pairs, "Fit": fit}
    if project.people is not None and not project.is_edited:
        shown["Groups"] = pd.DataFrame(project.people["estimates"])
        shown["Invariance"] = pd.DataFrame(list(project.shared.steps) if project.shared else [])
    return {name: table for name, table in shown.items() if len(table)}


def _csv(project: Project) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, table in tables(project).items():
            archive.writestr(f"{name.lower().replace(' ', '_')}.csv", csv_text(table))
    return out.getvalue()


def _picture(project: Project, ending: str) -> bytes:
    out = io.BytesIO()
    project.current().plot(marked=project.marked).savefig(out, format=ending, dpi=200)
    return out.getvalue()


def _printed(project: Project, width: Literal["column", "page"]) -> bytes:
    out = io.BytesIO()
    project.current().plot(style="print", width=width, marked=project.marked).savefig(out, format="pdf")
    return out.getvalue()
