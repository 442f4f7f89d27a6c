"""What a project gives away as files: the report, model text, tables, pictures, the project itself."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace

import pandas as pd

import unmeasured as um
from unmeasured.app.project import PROJECT, Project
from unmeasured.files import csv_text
from unmeasured.publish.publication import Publication
from unmeasured.publish.word import word_document

Export = tuple[str, str, bytes]  # file name, media type, content
_DIGITS = {"std": "standardised", "std_se": "s.e. (standardised)", "est": "estimate", "se": "s.e.", "pvalue": "p"}


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
        "r": lambda p: ("model.R", "text/plain", article(p).to_r().encode("utf-8")),
        "json": lambda p: ("result.json", "application/json", p.current().to_json().encode("utf-8")),
        "csv": lambda p: ("tables.zip", "application/zip", _csv(p)),
        "latex": lambda p: ("tables.tex", "text/plain", article(p).to_latex().encode("utf-8")),
        "word": lambda p: ("tables.docx", _docx_type(), word_document(article(p).tables)),
        "methods": lambda p: ("methods.txt", "text/plain", article(p).to_methods().encode("utf-8")),
        "svg": lambda p: ("diagram.svg", "image/svg+xml", p.current().to_svg().encode("utf-8")),
        "pdf": lambda p: ("diagram.pdf", "application/pdf", _picture(p, "pdf")),
        "png": lambda p: ("diagram.png", "image/png", _picture(p, "png")),
        "project": lambda p: (f"project{PROJECT}", "application/zip", p.save()),
    }
    if kind not in makers:
        raise um.UnmeasuredError(f"There is no export {kind[:40]!r}. There are {', '.join(makers)}.")
    return makers[kind](project)


def article(project: Project) -> Publication:
    """What an article takes from the model at hand; the data go into the R script as a matrix."""
    run = project.run
    if run is None:
        raise um.UnmeasuredError("There is no result yet. Start a search first.")
    run = replace(run, about=replace(run.about, rows=None))
    return Publication(replace(run, result=project.current()) if project.at else run)


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


def _docx_type() -> str:
    return "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def _picture(project: Project, ending: str) -> bytes:
    out = io.BytesIO()
    project.current().plot().savefig(out, format=ending, dpi=200)
    return out.getvalue()
