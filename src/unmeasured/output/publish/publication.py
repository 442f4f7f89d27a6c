"""A publication: everything that an article takes from a run, in the formats that authors use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from unmeasured.errors import UnmeasuredError, listing, nearest
from unmeasured.estimators.base import Search
from unmeasured.files import write_bytes, write_text
from unmeasured.output.publish.latex import latex_document
from unmeasured.output.publish.methods import methods_text
from unmeasured.output.publish.references import bibliography
from unmeasured.output.publish.rscript import r_script
from unmeasured.output.publish.tables import Table, tables_of
from unmeasured.output.publish.webpage import web_page
from unmeasured.output.publish.word import word_document
from unmeasured.output.publish.workbook import workbook
from unmeasured.output.report.run import About, Run, run_of
from unmeasured.results.result import Result
from unmeasured.validation.replicates.result import Stability

# The formats, with the name of a file for each; those that no screen shows.
FORMATS: Mapping[str, str] = {
    "docx": "tables.docx",
    "xlsx": "tables.xlsx",
    "latex": "tables.tex",
    "html": "tables.html",
    "r": "model.R",
    "methods": "methods.txt",
    "bibtex": "references.bib",
}
BINARY = ("docx", "xlsx")


def publication(
    found: Search | Result | Run,
    *,
    title: str = "",
    data: str = "",
    published: Mapping[str, Any] | None = None,
    stability: Stability | None = None,
) -> Publication:
    """Tables in APA style, an R script, a methods paragraph and references for an article.

    Parameters
    ----------
    found
        A fitted search, a result, or the run that a ``result.json`` holds.
    title
        The title of documents.
    data
        The file of the rows, which the R script reads.
    published
        Models to compare with, by name, as :func:`unmeasured.compare_models` takes them.
    stability
        What :func:`unmeasured.stability` found, which the paragraph on methods then speaks of.

    Examples
    --------
    >>> import unmeasured as um
    >>> data = um.datasets.load("multitasking")
    >>> search = um.LGES().fit_cov(data.frame(), data.n_samples)
    >>> article = um.publication(search.result_.rename(), published=data.models)
    >>> for table in article.tables: print(table.number, table.title)
    1 Loadings of the Indicators on the Latent Variables
    2 Correlations of the Latent Variables and Their Reliability
    3 Paths Between Latent Variables
    4 Total Effects Between Latent Variables
    5 Fit of the Model Found and of Models Compared With It
    6 Chi-Square Difference Tests of Nested Models
    >>> print(article.to_methods()[9:78])
    The covariance matrix of 9 observed variables (N = 202) was analysed.
    """
    if isinstance(found, Run):
        return Publication(found, stability)
    if not isinstance(found, Search | Result):
        raise UnmeasuredError(f"publication takes a fitted search, a result or a run; got {type(found).__name__}.")
    if published is not None and not isinstance(published, Mapping):
        raise UnmeasuredError("published has models by name, such as {'theirs': 'f =~ x1 + x2 + x3'}.")
    about = About(title=str(title), data=str(data))
    return Publication(run_of(found, about=about, published=published), stability)


@dataclass(frozen=True, eq=False)
class Publication:
    """Tables, an R script, a paragraph on methods and references of one run; made by :func:`unmeasured.publication`.

    Texts are returned, and written where a path is given; Word documents and workbooks need a path. Files are replaced
    only when the new one is complete.
    """

    run: Run
    stability: Stability | None = None

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Loadings, correlations, paths, effects, residual covariances, fit, difference tests: those there are."""
        return tables_of(self.run)

    @property
    def _title(self) -> str:
        return self.run.about.title or self.run.about.data

    def to_docx(self, path: str | Path) -> None:
        """Write the tables as a Word document; needs ``pip install 'unmeasured[publish]'``."""
        write_bytes(path, word_document(self.tables, self._title))

    def to_xlsx(self, path: str | Path) -> None:
        """Write the tables as a workbook, a sheet for each, figures as numbers; needs ``unmeasured[publish]``."""
        write_bytes(path, workbook(self.tables))

    def to_latex(self, path: str | Path | None = None) -> str:
        """The tables as a LaTeX document."""
        return _written(latex_document(self.tables), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The tables as a web page, whose tables can be copied into a document."""
        return _written(web_page(self.tables, self._title), path)

    def to_r(self, path: str | Path | None = None, *, data: str = "") -> str:
        """An R script that fits the model in lavaan and compares the estimates; ``data``: the data file."""
        return _written(r_script(self.run, str(data)), path)

    def to_methods(self, path: str | Path | None = None) -> str:
        """A paragraph on methods, one on limitations, and references, of exactly this run."""
        return _written(methods_text(self.run, self.stability), path)

    def to_bibtex(self, path: str | Path | None = None) -> str:
        """The references of the paragraph on methods, for BibTeX."""
        return _written(bibliography(self.run), path)

    def write(self, to: str, path: str | Path) -> None:
        """Write one of the formats, by its name: docx, xlsx, latex, html, r, methods or bibtex."""
        if to not in FORMATS:
            raise UnmeasuredError(
                f"There is no format {to!r}{nearest(str(to), list(FORMATS)) or '.'} There are {listing(FORMATS)}."
            )
        getattr(self, f"to_{to}")(path)


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        write_text(path, text)
    return text
