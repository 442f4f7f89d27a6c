"""Writing a report: the page and the files beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

from unmeasured.errors import UnmeasuredError
from unmeasured.estimators.base import Search
from unmeasured.estimators.lges import LGES
from unmeasured.files import csv_text, write_folder
from unmeasured.output.report.groups import Shared
from unmeasured.output.report.html import html_page
from unmeasured.output.report.run import About, Run, run_of
from unmeasured.results.result import Result
from unmeasured.validation.replicates.result import Stability

PAGE, RESULT, STABILITY = "report.html", "result.json", "stability.json"
# Of diagram.png; a very large one is drawn with fewer to the inch, since to write hundreds of millions takes minutes.
_DPI, _MOST_PIXELS = 150, 40e6


def write_report(
    found: Search | Result,
    folder: str | Path,
    *,
    title: str = "",
    data: str = "",
    source: str = "",
    command: str = "",
    seconds: float | None = None,
    published: Mapping[str, Any] | None = None,
    stability: Stability | None = None,
    exact: Search | Result | None = None,
) -> Path:
    """Write a report of a fitted search, or of a result, into a folder, and return the path of its page.

    Beside the page, which needs no network and no other file, are ``result.json``, ``model.lav``, ``diagram.svg`` and
    ``.png``, ``loadings.csv``, ``paths.csv`` and, where there are residual pairs, ``pairs.csv``.
    Files of that name that are there already are replaced, and only once all of the new ones are on the disk: any
    failure leaves the old report whole.

    Parameters
    ----------
    found
        A fitted search; or a result, which knows nothing of the steps that led to it.
    title
        The heading of the page.
    data, source, command, seconds
        What to say of the data, where they are from, how the run was started and how long it took.
    published
        Models to compare with, by name: lavaan text or anything else :func:`unmeasured.compare_models` takes.
    stability
        What :func:`unmeasured.stability` found: a section of the page, ``stability.csv`` and ``.json`` beside it.
    exact
        The answer of ``LGES(tolerance=0)`` to the same data: a second view, where misfit was tolerated.

    Examples
    --------
    >>> import tempfile, unmeasured as um
    >>> data = um.datasets.load("multitasking")
    >>> search = um.LGES().fit_cov(data.frame(), data.n_samples)
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = um.write_report(search, folder.name, data=data.title, source=data.source)
    >>> sorted(p.name for p in path.parent.iterdir())
    ['diagram.png', 'diagram.svg', 'loadings.csv', 'model.lav', 'paths.csv', 'report.html', 'result.json']
    >>> folder.cleanup()
    """
    if not isinstance(folder, str | Path):
        raise UnmeasuredError(f"folder is a path, as text or pathlib.Path; got {type(folder).__name__}.")
    if not isinstance(stability, Stability | None):
        raise UnmeasuredError(f"stability is what um.stability returned; got {type(stability).__name__}.")
    about = About(title=title, data=data, source=source, command=command, seconds=seconds)
    other = exact.result_ if isinstance(exact, Search) else exact
    run = run_of(found, about=about, published=published, exact=other)
    if isinstance(found, LGES) and found.sample_.groups and run.result.graph.latents:
        run = replace(run, shared=Shared.of(found.invariance_))
    return write_run(run, folder, stability=stability)


def answer_seconds(n_observed: int) -> float:
    """About how long the answer takes to print and its tables to write, on one core of 2.8 GHz.

    Measured with 60, 150 and 300 variables, five for each latent, as :func:`page_seconds`; with 1,000 without standard
    errors, for which there may be no time (:mod:`unmeasured.search.final_fit`).

    >>> answer_seconds(20) < 0.3 < answer_seconds(150) < 1 < answer_seconds(1000) < 10
    True
    """
    hundreds = n_observed / 100.0
    return 0.2 + 0.3 * hundreds * min(hundreds, 3.0)


def page_seconds(n_observed: int) -> float:
    """About how long the page and the pictures take to make; most of it goes into the layout of diagrams.

    >>> 1 < page_seconds(20) < 2 < page_seconds(60) < page_seconds(300) < 12
    True
    """
    return 0.6 + 0.035 * n_observed


def write_run(
    run: Run,
    folder: str | Path,
    *,
    stability: Stability | None = None,
    with_page: bool = True,
    more: Mapping[str, str | bytes] | None = None,
) -> Path:
    """Write the page of a run and the files beside it, all or none; return the path of the page.

    ``more``: further files by name. ``with_page=False`` leaves out the page and the pictures, which take longest, and
    returns the path of the result.
    """
    folder, result = Path(folder), run.result
    contents: dict[str, str | bytes] = {
        RESULT: run.to_json(),
        "model.lav": result.to_lavaan(),
        "loadings.csv": csv_text(result.loadings),
        "paths.csv": csv_text(result.latent_paths),
    }
    if len(result.direct_effects):
        contents["direct_effects.csv"] = csv_text(result.direct_effects)
    contents |= more or {}
    if len(result.local_dependence):
        contents["pairs.csv"] = csv_text(result.local_dependence)
    if stability is not None:
        stability = stability.named_as(result.graph)
        contents |= {"stability.csv": csv_text(stability.edges), STABILITY: stability.to_json()}
    if with_page:
        drawing, png = result.plot(marked=run.shared.marked if run.shared else ()), BytesIO()
        width, height = drawing.get_size_inches()
        drawing.savefig(png, format="png", dpi=min(_DPI, math.sqrt(_MOST_PIXELS / (width * height))))
        contents |= {"diagram.svg": drawing.to_svg(), "diagram.png": png.getvalue(), PAGE: html_page(run, stability)}
    write_folder(folder, contents)
    return folder / (PAGE if with_page else RESULT)
