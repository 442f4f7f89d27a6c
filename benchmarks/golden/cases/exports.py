"""Every format of text that an answer is exported to, and what is read back from it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import unmeasured as um
from benchmarks.golden.cases import inputs
from benchmarks.golden.cases.table import Table
from benchmarks.golden.describe import Text, describe, differing

TABLE = Table()


def _multitasking() -> um.LGES:
    return um.LGES().fit(inputs.bundled("multitasking"))


def _democracy() -> um.LGES:
    return um.LGES(tolerance=0).fit(inputs.bundled("political_democracy"))


def _roles() -> um.LGES:
    rows = inputs.people().drop(columns="country")
    return um.LGES(covariates=["age"], outcomes=["income"]).fit(rows)


def _levels() -> um.LGES:
    model = um.simulate.hierarchy(n_traits=1, n_facets=4, n_items=3, rng=3)
    return um.LGES(tolerance=0).fit(um.simulate.sample(model, 1000, rng=3))


def _group() -> um.LGES:
    return um.LGES(tolerance=0).fit(inputs.suite_rows("paper", 1, 1000))


_FOUND: dict[str, Callable[[], um.LGES]] = {
    "multitasking": _multitasking,
    "democracy": _democracy,
    "covariates": _roles,
    "levels": _levels,
    "latent group": _group,
}


def _for_programs(found: um.LGES) -> dict[str, Any]:
    """Return the formats that other programs read."""
    graph, result = found.graph_, found.result_
    texts = {
        "lavaan": result.to_lavaan(),
        "semopy": result.to_semopy(),
        "DOT": graph.to_dot(),
        "dagitty": graph.to_dagitty(),
        "GraphML": graph.to_graphml(),
        "GML": graph.to_gml(),
        "Tetrad": graph.to_tetrad(),
        "causal-learn": str(graph.to_causallearn()),
        "networkx": "\n".join(map(str, graph.to_networkx().edges(data=True))),
    }
    return {name: Text(text) for name, text in texts.items()}


def _read_back(found: um.LGES) -> dict[str, Any]:
    """Return what our own JSON lost of a graph, a member and a result: nothing. Its keys may be renamed."""
    from unmeasured.graphs import from_json

    graph, result = found.graph_, found.result_.rename()
    return {
        "graph": from_json(graph.to_json()) == graph,
        "member": from_json(result.member.to_json()) == result.member,
        "parts of a result": differing(describe(result), describe(um.Result.from_json(result.to_json()))),
    }


def _for_readers(found: um.LGES) -> dict[str, Any]:
    """Return what people read: summary, tables, methods, script, report."""
    result = found.result_.rename()
    article = um.publication(result)
    tables = article.to_html()
    with tempfile.TemporaryDirectory() as folder:
        page = um.write_report(found, Path(folder)).read_text(encoding="utf-8")
    texts = {
        "summary": result.summary(),
        "LaTeX": article.to_latex(),
        "R script": article.to_r(data="rows.csv"),
        "methods": article.to_methods(),
        "BibTeX": article.to_bibtex(),
        "report": page,
        "tables as a page": f"{len(tables.splitlines())} lines",
    }
    return {name: Text(text, is_exact=False) for name, text in texts.items()}


def _exported(name: str, to: Callable[[um.LGES], Any]) -> Any:
    return to(_FOUND[name]())


for _name in _FOUND:
    TABLE.add(f"exports/{_name}, read back", partial(_exported, _name, _read_back))
for _name in ("multitasking", "covariates", "levels", "latent group"):
    TABLE.add(f"exports/{_name}, for programs", partial(_exported, _name, _for_programs), libraries=["causallearn"])
for _name in ("multitasking", "covariates"):
    TABLE.add(f"exports/{_name}, for readers", partial(_exported, _name, _for_readers), cost=5.0)


@TABLE.case("exports/fits, for readers")
def _() -> Any:
    rows = inputs.people()[[*inputs.ITEMS, "country"]]
    one = um.fit(f"{inputs.TWO_FACTORS}; g ~ f", rows[inputs.ITEMS], estimator="MLR")
    groups = um.fit(inputs.TWO_FACTORS, rows, groups="country", equal=["loadings"])
    compared = um.compare_models(um.datasets.load("political_democracy").models, inputs.bundled("political_democracy"))
    checked = um.check(rows[inputs.ITEMS])
    texts = [one.summary(), groups.summary(), str(compared), str(checked)]
    return {str(k): Text(text, is_exact=False) for k, text in enumerate(texts)}


@TABLE.case("exports/a diagram", cost=3.0)
def _() -> Any:
    svg = _multitasking().result_.to_svg()
    return {
        "texts of the diagram": Text("\n".join(line for line in svg.splitlines() if "<!--" in line), is_exact=False)
    }
