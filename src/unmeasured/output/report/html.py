"""The page: one HTML file with everything inside, so that it opens anywhere, also without a network.

The order is that of a reader's questions: the answer in three sentences, the diagram, whether to trust it, the figures,
how it was made. The template and its style and scripts are in ``page/``. Whatever comes from data, names and sentences
alike, is escaped by the template; the diagram reaches the script as JSON.

Levels of a result are shown where it has them, and not spoken of where it has none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from unmeasured import apa
from unmeasured.diagram.picture import Edge, Key, Node, Picture, View, coefficient
from unmeasured.diagram.style import Look, Paint, edge_paint, node_paint
from unmeasured.errors import UnmeasuredError
from unmeasured.output.report.charts import heat_map, largest_residuals, step_charts
from unmeasured.output.report.groups import groups_section
from unmeasured.output.report.lead import lead
from unmeasured.output.report.run import Comparison, Run
from unmeasured.output.report.stability import stability_section
from unmeasured.remarks import Remark, Severity, by_consequence, distrust, severity_of
from unmeasured.results.drawing import picture_of, shown_view
from unmeasured.results.interpretation import (
    DOUBTFUL,
    PAIRS_HEADING,
    assumptions,
    cautions,
    direction_in_words,
    fit_in_words,
    node,
    paths_beyond_one,
    paths_heading,
    replicates_in_words,
    what_is_identified,
)
from unmeasured.results.result import Result
from unmeasured.validation.replicates.result import Stability

# More steps than this are for the trace itself.
_MOST_STEPS = 400
_MOST_CHANGES = 8
# Effects of more groups, and modification indices of more variables, take longer than the rest of the page.
_MOST_GROUPS, _MOST_VARIABLES = 10, 100
_NARROW = 290.0  # points: with letters of seven tenths of their size it fits the screen of a telephone
_LOOKS: tuple[Look, ...] = ("colour", "print", "dark")
_PAPER = (
    "Dong, X., Ng, I., Dai, H., Sun, J., Song, X., Spirtes, P., & Zhang, K. (2026). Score-based greedy search for "
    "structure identification of partially observed causal models. International Conference on Learning "
    "Representations."
)

_NEVER: Mapping[tuple[str, str], float] = {}

Cell = tuple[str, float | str]  # what is shown, and what is sorted by


def html_page(run: Run, stability: Stability | None = None) -> str:
    """The page of a run, as text; with a section on stability where there is one to show."""
    result, about = run.result, run.about
    steps, charts = list(run.trace), step_charts(run.trace)
    serious, remarks = _remarks(run)
    marked = frozenset(run.shared.marked if run.shared else ())
    return _template().render(
        title=about.title or about.data or "Latent variables found",
        lead=lead(result, _n_in_words(run), stability, run.shared),
        distrust=serious,
        about=about,
        facts=_facts(run),
        views=_views(result),
        has_groups=any(len(group) > 1 for group in result.graph.latent_groups),
        groups=[_card(result, group) for group in result.graph.latent_groups],
        alone=[
            x for x in result.graph.variables.indicators if not any(x in items for items in result.indicators.values())
        ],
        indices=fit_in_words(result),
        loadings=_loadings(run),
        levels=_levels(result),
        paths=_paths(run, stability),
        paths_heading=paths_heading(result),
        pairs=_pairs(result),
        pairs_heading=PAIRS_HEADING,
        effects=_effects(result),
        reliability=_reliability(result),
        comparison=_comparison(run.comparison) if run.comparison else None,
        exact=_exact(run.exact, result) if run.exact else None,
        people=groups_section(run.shared) if run.shared else None,
        heat_map=Markup(heat_map(result)),
        largest=[(a, b, _signed(value)) for a, b, value in largest_residuals(result)],
        indices_of_change=_changes(result),
        chart=Markup(max(charts, key=lambda entry: len(entry[1]))[1]) if charts else "",
        n_phases=len(charts),
        n_steps=len(steps),
        steps=steps[-_MOST_STEPS:],
        n_left_out=max(len(steps) - _MOST_STEPS, 0),
        # The assumptions are stated below.
        identified=[sentence for sentence in what_is_identified(result) if sentence != assumptions(result)],
        failed=[_finding(f) for f in result.check.findings if not f.ok],
        passed=[_finding(f) for f in result.check.findings if f.ok],
        remarks=remarks,
        stability=stability_section(result, stability) if stability else "",
        lavaan=result.to_lavaan(),
        paper=_PAPER,
        # "<" would let a name such as "</script>" end the element it stands in.
        diagram=Markup(json.dumps(diagram_data(result, stability, marked), ensure_ascii=False).replace("<", "\\u003c")),
        style=Markup(page_file("page.css")),
        script=Markup(page_file("diagram.js") + page_file("page.js")),
    )


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(page_file("page.html"))


def page_file(name: str) -> str:
    """The text of a file of the page."""
    return files("unmeasured.output.report").joinpath("page", name).read_text("utf-8")


# Words ------------------------------------------------------------------------------------------------------


def _n_in_words(run: Run) -> str:
    n = run.result.sem.sample.n
    if math.isinf(n):
        return "a population"
    rows = run.about.rows
    return f"{rows if rows is not None else round(n):,} observations"


def _remarks(run: Run) -> tuple[list[Remark], list[Remark]]:
    """What speaks against the answer as it stands, for the top of the page; and all other remarks, each once."""
    stopped = [distrust(run.result.stopped)] if run.result.stopped else []
    every = by_consequence((*stopped, *run.about.notes, *cautions(run.result)))
    serious = [remark for remark in every if remark.severity == Severity.DISTRUST]
    return serious, [remark for remark in every if remark.severity != Severity.DISTRUST]


def _signed(value: float) -> str:
    """A residual with its sign.

    >>> _signed(0.0849), _signed(-0.1)
    ('+.085', '−.100')
    """
    return f"{'+' if value >= 0 else '−'}{abs(value):.3f}".replace("0.", ".", 1)


def _finding(finding: Any) -> str:
    return f"{finding.topic[:1].upper()}{finding.topic[1:]}: {finding.text}"


def _facts(run: Run) -> list[tuple[str, str]]:
    result, about = run.result, run.about
    sample = result.sem.sample
    facts = [
        ("Data", about.data),
        ("Source", about.source),
        ("Observations", _observations(sample.n, about.rows)),
        ("Observed variables", str(len(sample.names))),
        ("Method", result.method),
        ("Seed", str(result.options["random_state"]) if "random_state" in result.options else ""),
        ("Took", f"{about.seconds:.1f} s" if about.seconds is not None else ""),
        ("Made", about.made),
        ("Command", about.command),
        ("Versions", ", ".join(f"{name} {number}" for name, number in about.versions.items())),
    ]
    return [(name, value) for name, value in facts if value]


def _observations(n: float, rows: int | None) -> str:
    if math.isinf(n):
        return "a population"
    if rows is None or rows == n:
        return f"{n:g}"
    return (
        f"{rows} rows, which are worth {n:.0f} complete ones (missing values or ordinal items carry less information)"
    )


# Tables -----------------------------------------------------------------------------------------------------


def _card(result: Result, group: tuple[str, ...]) -> dict[str, Any]:
    """A latent, or a group of several, with its indicators, their labels and their loadings."""
    labels = result.sem.sample.labels
    rows = {(row["latent"], row["indicator"]): row for row in result.loadings.to_dict(orient="records")}
    items: list[dict[str, Any]] = []
    for x in result.indicators[group]:
        std = [float(rows[name, x]["std"]) for name in group]
        strength = math.sqrt(sum(v * v for v in std))
        also = [node(other) for other, its in result.indicators.items() if x in its and other != group]
        items.append(
            {
                "name": x,
                "label": labels.get(x, ""),
                "also": ", ".join(also),
                "loading": "  ".join(map(coefficient, std)),
                "size": f"{min(strength, 1.0):.2f}",
                "negative": len(std) == 1 and std[0] < 0,
                "strength": strength,
            }
        )
    # Its own first, the strongest first.
    items.sort(key=lambda item: (bool(item["also"]), -float(item["strength"])))
    explained = result.r2.get(group[0]) if len(group) == 1 else None
    note = "" if explained is None or math.isnan(explained) else f"R² {coefficient(float(explained))}"
    return {"name": node(group), "indicators": items, "note": note}


def _loadings(run: Run) -> list[list[Cell]]:
    result, labels = run.result, run.result.sem.sample.labels
    rows = []
    for row in result.loadings.to_dict(orient="records"):
        mark = " (set)" if row["fixed"] else ""
        cells = [_number(row["std"], mark=mark), *(_number(row[key]) for key in ("std_se", "est", "se"))]
        r2 = _number(float(result.r2[row["indicator"]]), 2)
        indicator = _word(_with_label(row["indicator"], labels))
        rows.append([_word(row["latent"]), indicator, *cells, _probability(row["pvalue"]), r2])
    return rows


def _paths(run: Run, stability: Stability | None) -> list[list[Cell]]:
    rows = []
    result = run.result
    of = {name: node(group) for group in result.graph.latent_groups for name in group}
    steep = paths_beyond_one(result)
    edges = None if stability is None else stability.tally.edges(result.graph.latent_groups, stability.observed)
    for row in result.latent_paths.to_dict(orient="records"):
        source, target = row["source"], row["target"]
        told = direction_in_words(result, source, target)
        told += f"; {DOUBTFUL}" if (source, target) in steep else ""
        if edges is not None:
            seen = replicates_in_words(edges, of.get(source, source), of.get(target, target))
            told += f"; {seen}" if seen else ""
        arrow = "→" if row["directed"] else "–"
        figures = [_number(row[key]) for key in ("std", "std_se", "est", "se")]
        rows.append([*map(_word, (source, arrow, target)), *figures, _probability(row["pvalue"]), _word(told)])
    for row in result.direct_effects.to_dict(orient="records"):
        figures = [_number(row[key]) for key in ("std", "std_se", "est", "se")]
        ends = map(_word, (row["covariate"], "→", row["item"]))
        rows.append([*ends, *figures, _probability(row["pvalue"]), _word("direct effect on an indicator")])
    return rows


def _pairs(result: Result) -> list[list[Cell]]:
    labels = result.sem.sample.labels
    return [
        [
            *(_word(_with_label(row[key], labels)) for key in ("item_1", "item_2")),
            *(_number(row[key]) for key in ("std", "std_se", "est", "se")),
        ]
        for row in result.local_dependence.to_dict(orient="records")
    ]


def _with_label(name: str, labels: Mapping[str, str]) -> str:
    """A variable with what its file says of it, where it says something."""
    return f"{name} ({labels[name]})" if labels.get(name) else name


def _levels(result: Result) -> dict[str, Any] | None:
    """Return the table of the item partitions, items with the same latents in one row; None if there is only one."""
    levels: Sequence[pd.Series] = getattr(result, "partitions", None) or ()
    if len(levels) < 2:
        return None
    first = int(getattr(result, "selected_partition", 0))
    counts = [level.nunique() for level in levels]
    heads = [f"{n} latent{'s' * (n != 1)}{' (shown above)' * (k == first)}" for k, n in enumerate(counts)]
    together: dict[tuple[str, ...], list[str]] = {}
    for x in result.graph.variables.indicators:
        together.setdefault(tuple(str(level.get(x, "")) for level in levels), []).append(x)
    rows = [[_word(", ".join(items)), *map(_word, names)] for names, items in together.items()]
    words = f"The items can be partitioned in {len(levels)} ways, from many latents to few."
    return {"heads": ["items", *heads], "rows": rows, "left": list(range(len(levels) + 1)), "words": words}


def _effects(result: Result) -> dict[str, Any] | None:
    """Effects between latents over the class."""
    if not 1 < len(result.graph.latent_groups) <= _MOST_GROUPS:
        return None
    try:
        table = _table_of(effects_in_print(result))
    except UnmeasuredError:  # a class too large to enumerate: the command says so where it is asked for effects
        return None
    words = (
        "Total effects between latents, standardised; rows are causes. Two numbers are the smallest and the largest "
        "over all graphs that fit as well, where directions are not identified."
    )
    return None if table is None else {**table, "words": words}


def effects_in_print(result: Result) -> pd.DataFrame:
    """Total effects between latents, with the minus sign of print.

    Raises
    ------
    UnmeasuredError
        For a class too large to enumerate.
    """
    return result.effects().matrix.map(lambda cell: str(cell).replace("-", apa.MINUS))


def _changes(result: Result) -> dict[str, Any] | None:
    """The largest modification indices, in words."""
    if len(result.graph.observed) > _MOST_VARIABLES:
        return None
    found = result.modification_indices().head(_MOST_CHANGES)
    if not len(found):
        return None
    latents = result.graph.latents
    rows = [
        [
            _word(change_in_words(row["lhs"], row["op"], row["rhs"], latents)),
            *(_number(row[key], 2) for key in _CHANGES),
        ]
        for row in found.to_dict(orient="records")
    ]
    return {"heads": ["if this were added", *_CHANGES.values()], "rows": rows, "left": [0]}


_CHANGES = {"mi": "chi-square would fall by", "epc": "estimate", "sepc.all": "standardised"}


def change_in_words(a: str, op: str, b: str, latents: Collection[str]) -> str:
    """What could be added to a model, in words.

    >>> [change_in_words(*row, {"L"}) for row in (("L", "=~", "x"), ("y", "~", "L"), ("x", "~~", "y"))]
    ['loading L → x', 'path L → y', 'residual correlation x – y']
    """
    if op == "~~":
        kind = "correlation" if a in latents or b in latents else "residual correlation"
        return f"{kind} {a} – {b}"
    return f"loading {a} → {b}" if op == "=~" else f"path {b} → {a}"


def _reliability(result: Result) -> dict[str, Any] | None:
    # Loadings of the latents of a group of several depend on the rotation.
    if not any(len(group) == 1 and result.indicators[group] for group in result.graph.latent_groups):
        return None
    found = result.reliability()
    table = _table_of(found.table.rename(columns={"ave": "AVE"}))
    return None if table is None else {**table, "sentences": list(found.sentences)}


def _table_of(frame: pd.DataFrame) -> dict[str, Any] | None:
    """A data frame as a table of the page, where it has rows."""
    if not len(frame):
        return None
    frame = frame.reset_index() if frame.index.name or not isinstance(frame.index, pd.RangeIndex) else frame
    left = [k for k, column in enumerate(frame) if not pd.api.types.is_numeric_dtype(frame[column])]
    digits = [0 if pd.api.types.is_integer_dtype(frame[column]) else 3 for column in frame]
    rows = [
        [
            _word("" if value is None else str(value)) if k in left else _number(float(value), digits[k])
            for k, value in enumerate(row)
        ]
        for row in frame.itertuples(index=False)
    ]
    return {"heads": [str(column) for column in frame], "rows": rows, "left": left}


def _exact(exact: Result, answer: Result) -> dict[str, Any]:
    """The answer of the exact criterion, to be read beside one that tolerates misfit."""
    sizes = [len(one.graph.latents) for one in (exact, answer)]
    latents = f"{sizes[0]} latent{'s' * (sizes[0] != 1)}"
    instead = f"{latents} would be reported instead of {sizes[1]}"
    if sizes[0] == sizes[1]:
        instead = f"another model of {latents} would be reported"
    words = (
        f"Without tolerance {instead}: RMSEA "
        f"{exact.sem.rmsea:.3f} instead of {answer.sem.rmsea:.3f}, BIC {exact.sem.bic:,.0f} instead of "
        f"{answer.sem.bic:,.0f}. The exact criterion pays for everything that chance does not explain, also for pairs "
        "of similar items and habits of answering; use it where you believe that a factor model holds exactly."
    )
    return {
        "words": words,
        "stopped": exact.stopped,
        "remarks": [remark for remark in cautions(exact) if severity_of(remark) == Severity.DISTRUST],
        "groups": [_card(exact, group) for group in exact.graph.latent_groups],
        "lavaan": exact.to_lavaan(),
    }


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
        f"p {apa.p_value(row['pvalue'], '= ')}"
        for row in compared.tests
    ]
    return {"rows": rows, "tests": tests, "notes": compared.notes}


def _word(text: str) -> Cell:
    return text, text


def _number(value: float, digits: int = 3, mark: str = "") -> Cell:
    # A missing number sorts below all others.
    return apa.number(value, digits) + mark, -1e300 if math.isnan(value) else value


def _probability(p: float) -> Cell:
    return apa.p_value(p), 2.0 if math.isnan(p) else p


# The diagram ------------------------------------------------------------------------------------------------


def _views(result: Result) -> list[tuple[str, str]]:
    """The views there are, the one to begin with first; with labels where the file of the data has any."""
    words: dict[View, str] = {"full": "All variables", "latents": "Latents only"}
    first = shown_view(result)
    order = [first, *(view for view in words if view != first)]
    views: list[tuple[str, str]] = [(view, words[view]) for view in order if view == "full" or result.graph.latents]
    labels = result.sem.sample.labels
    return [*views, *([("labels", "With labels")] if any(labels.get(x) for x in result.graph.observed) else [])]


def diagram_data(
    result: Result, stability: Stability | None = None, marked: frozenset[tuple[str, str]] = frozenset()
) -> dict[str, Any]:
    """The views of a result for the script of the page, the one to begin with first.

    ``marked``: edges that differ between groups of people.
    """
    often = _frequencies(result, stability) if stability is not None else {}
    data: dict[str, Any] = {}
    for view, _ in _views(result):
        options: dict[str, Any] = {"view": "full", "labels": True} if view == "labels" else {"view": view}
        everything = picture_of(result, **options, min_loading=0.0, marked=marked)
        picture = picture_of(result, **options, marked=marked)
        whole = len(picture.edges) == len(everything.edges)
        data[view] = view_data(picture, often) | {
            "least": 0.0 if whole else 0.3,
            "total": len(everything.edges),
            "all": None if whole else view_data(everything, often) | {"least": 0.0},
        }
    if len(result.local_dependence):
        for view in [view for view in data if view != "latents"]:
            picture = picture_of(result, "full", min_loading=0.0, pairs=True, labels=view == "labels", marked=marked)
            data[view]["pairs"] = view_data(picture, often)
    if result.graph.latents:  # for narrow screens
        narrow = picture_of(result, "latents", width=_NARROW, marked=marked)
        total = {"least": 0.0, "total": len(narrow.edges), "all": None}
        data["latents"]["narrow"] = view_data(narrow, often) | total
    return data


def _frequencies(result: Result, stability: Stability) -> dict[tuple[str, str], float]:
    """How often replicates have each edge, by the ids of its ends."""
    edges = stability.tally.edges(result.graph.latent_groups, stability.observed)
    found = {(row["source"], row["target"]): float(row["frequency"]) for row in edges.to_dict(orient="records")}
    return found | {(b, a): part for (a, b), part in found.items()}


def view_data(picture: Picture, often: Mapping[tuple[str, str], float] = _NEVER) -> dict[str, Any]:
    """A picture for the script of the page; ``often``: how often replicates have each edge."""
    return {
        **{key: round(getattr(picture, key), 2) for key in ("width", "height", "remark_y")},
        "flow": picture.flow,
        "remark": list(picture.remark),
        "nodes": [_rounded(asdict(n)) | {"looks": _looks(node_paint, n)} for n in picture.nodes],
        "edges": [_edge(e, often) for e in picture.edges],
        "legend": [_rounded(asdict(key)) | {"looks": _key_looks(key)} for key in picture.legend],
        "grids": [_rounded(asdict(grid)) for grid in picture.grids],
    }


def _edge(edge: Edge, often: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    record: dict[str, Any] = _rounded(asdict(edge)) | {"looks": _looks(edge_paint, edge)}
    if (edge.source, edge.target) in often:
        part = often[edge.source, edge.target]
        record |= {"frequency": round(part, 4), "hint": f"{edge.hint}\nfound in {part:.0%} of the replicates"}
    return record


def _looks(paint: Any, thing: Node | Edge) -> dict[str, dict[str, Any]]:
    looks: dict[str, Paint] = {look: paint(thing, look) for look in _LOOKS}
    return {look: _rounded(asdict(paints)) for look, paints in looks.items()}


def _key_looks(key: Key) -> dict[str, dict[str, Any]]:
    """How the sample of an entry of the legend looks."""
    if key.sample in ("latent", "observed", "shared", "group"):
        shape: Any = "observed" if key.sample == "shared" else key.sample
        return _looks(node_paint, Node("", shape, (), 20.0, 11.0, shared=key.sample == "shared"))
    strength = 0.9 if key.sample == "strong" else 0.25
    kind: Any = "pair" if key.sample == "pair" else "path"
    edge = Edge("", "", kind, True, "", strength)
    return _looks(edge_paint, replace(edge, negative=key.sample == "negative"))


def _rounded(value: Any) -> Any:
    """Numbers with as many digits as a drawing needs."""
    if isinstance(value, float):
        return round(value, 2)
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_rounded(item) for item in value]
    return value
