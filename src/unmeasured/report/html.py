"""The page: one HTML file with everything inside, so that it opens anywhere, also without a network.

The template and its style and script are in ``page/``. Whatever comes from data, names and sentences alike, is escaped
by the template; the diagram reaches the script as JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from unmeasured.answer.drawing import picture_of
from unmeasured.answer.summary import title as summary_title
from unmeasured.answer.words import (
    before_the_search,
    cautions,
    direction_in_words,
    indices_in_words,
    node,
    number,
    probability,
    replicates_in_words,
    what_is_identified,
)
from unmeasured.diagram.picture import Edge, Picture
from unmeasured.diagram.style import Paint, edge_paint, node_paint
from unmeasured.replicates.result import Stability
from unmeasured.report.charts import heat_map, largest_residuals, step_charts
from unmeasured.report.run import Comparison, Run, model_text
from unmeasured.report.stability import stability_section

# More steps than this are for the trace itself.
_MOST_STEPS = 400
_PAPER = (
    "Dong, X., Ng, I., Dai, H., Sun, J., Song, X., Spirtes, P., & Zhang, K. (2026). Score-based greedy search for "
    "structure identification of partially observed causal models. International Conference on Learning "
    "Representations."
)

Cell = tuple[str, float | str]  # what is shown, and what is sorted by


def html_page(run: Run, stability: Stability | None = None) -> str:
    """The page of a run, as text; with a section on stability where there is one to show."""
    result, about = run.result, run.about
    return _template().render(
        title=about.title or about.data or "Latent variables found",
        headline=summary_title(result),
        about=about,
        facts=_facts(run),
        groups=[(node(group), items) for group, items in result.indicators.items()],
        indices=indices_in_words(result.sem),
        loadings=_loadings(run),
        paths=_paths(run, stability),
        comparison=_comparison(run.comparison) if run.comparison else None,
        heat_map=Markup(heat_map(result)),
        largest=[(a, b, f"{value:+.3f}") for a, b, value in largest_residuals(result)],
        charts=[(phase, Markup(chart)) for phase, chart in step_charts(run.trace)],
        steps=run.trace[-_MOST_STEPS:],
        n_left_out=max(len(run.trace) - _MOST_STEPS, 0),
        identified=list(what_is_identified(result)),
        checked=list(before_the_search(result)),
        cautions=[*about.notes, *cautions(result)],
        stability=stability_section(result, stability) if stability else "",
        lavaan=model_text(result),
        paper=_PAPER,
        # "<" would let a name such as "</script>" end the element it stands in.
        diagram=Markup(json.dumps(_diagram(run), ensure_ascii=False).replace("<", "\\u003c")),
        style=Markup(_part("page.css")),
        script=Markup(_part("page.js")),
    )


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_part("page.html"))


def _part(name: str) -> str:
    return files("unmeasured.report").joinpath("page", name).read_text("utf-8")


# Words and tables -------------------------------------------------------------------------------------------


def _facts(run: Run) -> list[tuple[str, str]]:
    result, about = run.result, run.about
    sample = result.sem.sample
    n = "a population" if math.isinf(sample.n) else f"{sample.n:g}"
    facts = [
        ("Data", about.data),
        ("Source", about.source),
        ("Samples", n),
        ("Observed variables", str(len(sample.names))),
        ("Method", result.method),
        ("Seed", str(result.options["random_state"]) if "random_state" in result.options else ""),
        ("Took", f"{about.seconds:.1f} s" if about.seconds is not None else ""),
        ("Made", about.made),
        ("Command", about.command),
        ("Versions", ", ".join(f"{name} {number}" for name, number in about.versions.items())),
    ]
    return [(name, value) for name, value in facts if value]


def _loadings(run: Run) -> list[list[Cell]]:
    result = run.result
    rows = []
    for row in result.loadings.to_dict(orient="records"):
        mark = " (set)" if row["fixed"] else ""
        cells = [_number(row["std"], mark=mark), *(_number(row[key]) for key in ("std_se", "est", "se"))]
        r2 = _number(float(result.r2[row["indicator"]]), 2)
        rows.append([_word(row["latent"]), _word(row["indicator"]), *cells, _probability(row["pvalue"]), r2])
    return rows


def _paths(run: Run, stability: Stability | None) -> list[list[Cell]]:
    rows = []
    for row in run.result.latent_paths.to_dict(orient="records"):
        told = direction_in_words(run.result, row["source"], row["target"])
        seen = replicates_in_words(stability.edges, row["source"], row["target"]) if stability else ""
        told += f"; {seen}" if seen else ""
        figures = [_number(row[key]) for key in ("std", "std_se", "est", "se")]
        rows.append([_word(row["source"]), _word(row["target"]), *figures, _probability(row["pvalue"]), _word(told)])
    return rows


def _comparison(compared: Comparison) -> dict[str, Any]:
    digits = {"chi2": 2, "df": 0, "rmsea": 4, "cfi": 4, "tli": 4, "srmr": 4, "aic": 1, "bic": 1}
    rows = [
        [
            _word(row["model"]),
            *(_number(float(row[key]), places) for key, places in digits.items()),
            _word("yes" if row["proper"] else "no"),
        ]
        for row in compared.rows
    ]
    tests = [
        f"{row['smaller']} in {row['larger']}: chi-square {row['chi2']:.2f} on {row['df']} df, "
        f"p {probability(row['pvalue'], '= ')}"
        for row in compared.tests
    ]
    return {"rows": rows, "tests": tests, "notes": compared.notes}


def _word(text: str) -> Cell:
    return text, text


def _number(value: float, digits: int = 3, mark: str = "") -> Cell:
    # A missing number sorts below all others.
    return number(value, digits) + mark, -1e300 if math.isnan(value) else value


def _probability(p: float) -> Cell:
    return probability(p), 2.0 if math.isnan(p) else p


# The diagram ------------------------------------------------------------------------------------------------


def _diagram(run: Run) -> dict[str, Any]:
    return {view: _view(picture_of(run.result, view)) for view in ("full", "latents")}


def _view(picture: Picture) -> dict[str, Any]:
    strongest = _strongest(picture.edges)
    return {
        "width": picture.width,
        "height": picture.height,
        "nodes": [_rounded(asdict(n)) | _looks(n, node_paint) for n in picture.nodes],
        "edges": [_rounded(asdict(e)) | _looks(e, edge_paint) | {"own": e in strongest} for e in picture.edges],
    }


def _strongest(edges: Sequence[Edge]) -> set[Edge]:
    """For each indicator its strongest loading: no threshold takes that away."""
    best: dict[str, Edge] = {}
    for edge in edges:
        if edge.kind == "loading" and (edge.target not in best or edge.strength > best[edge.target].strength):
            best[edge.target] = edge
    return set(best.values())


def _looks(thing: Any, paint: Any) -> dict[str, dict[str, Any]]:
    looks: dict[str, Paint] = {style: paint(thing, style) for style in ("colour", "print")}
    return {"looks": {style: _rounded(asdict(look)) for style, look in looks.items()}}


def _rounded(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in record.items()}
