"""What the page shows of a result besides its diagram: tables with their cells as text, made when they are asked for.

A table is ``{"title", "heads", "rows", "left", "words"}``; a cell is what is shown and what is sorted by.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

import unmeasured as um
from unmeasured import apa
from unmeasured.app.project import Project
from unmeasured.output.report.charts import largest_residuals
from unmeasured.output.report.html import change_in_words, effects_in_print
from unmeasured.results.interpretation import (
    DOUBTFUL,
    PAIRS_HEADING,
    direction_in_words,
    fit_in_words,
    paths_beyond_one,
    paths_heading,
)
from unmeasured.results.invariance import Invariance

Table = dict[str, Any]
# As in the report: effects of more groups, and modification indices of more variables, take too long to wait for.
_MOST_GROUPS, _MOST_VARIABLES = 10, 100
_ARROWS = {"=~": "{0} → {2}", "~": "{2} → {0}", "~~": "{0} ~~ {2}", "~1": "intercept of {0}"}
_FIGURES = {"std": "standardised", "std_se": "s.e.", "est": "estimate", "se": "s.e."}


def panel(project: Project, name: str) -> dict[str, Any]:
    """A part of the result: sentences and tables.

    Raises
    ------
    UnmeasuredError
        For a part there is not, or where there is no result yet.
    """
    makers: dict[str, Callable[[Project], dict[str, Any]]] = {
        "lead": lambda p: {"sentences": p.lead()},
        "loadings": _loadings,
        "levels": _levels,
        "effects": _effects,
        "fit": _local_fit,
        "groups": _groups,
        "stability": _stability,
    }
    if name not in makers:
        raise um.UnmeasuredError(f"There is no part {name[:40]!r} of a result. There are {', '.join(makers)}.")
    return {"sentences": [], "tables": [], **makers[name](project)}


def _loadings(project: Project) -> dict[str, Any]:
    result = project.current()
    labels = {column.name: column.label for column in project.columns if column.label}
    rows = result.loadings
    if not len(rows):
        return {"sentences": ["No latent variables were found."]}
    table = pd.DataFrame({"latent": rows["latent"], "indicator": rows["indicator"]})
    if labels:
        table["label"] = [labels.get(x, "") for x in rows["indicator"]]
    table = pd.concat([table, _figures(rows)], axis=1)
    table["R²"] = [float(result.r2[x]) for x in rows["indicator"]]
    alone = [x for x in result.graph.variables.indicators if all(x not in own for own in result.indicators.values())]
    words = "R² is that of all latents of an indicator together."
    if rows["fixed"].any():
        words += " Zeros without a standard error fix the rotation of latents that share all their indicators."
    return {
        "tables": [_table("Loadings", table, words)],
        "sentences": [f"These variables load on no latent: {', '.join(alone)}."] if alone else [],
    }


def _levels(project: Project) -> dict[str, Any]:
    """Return for each item partition its latents with their items, and the number of the selected one."""
    result = project.current()
    levels = []
    for k, (level, series) in enumerate(zip(result.item_partitions, result.partitions, strict=True)):
        latents = [name for name in dict.fromkeys(series) if name]
        found = "" if math.isnan(level.agreement) else f"agreement with replicates {apa.number(level.agreement)}"
        levels.append(
            {
                "name": f"{len(latents)} latent{'s' * (len(latents) != 1)}",
                "note": "; ".join(filter(None, ["The selected partition" * (k == result.selected_partition), found])),
                "latents": [{"name": name, "items": series.index[series == name].tolist()} for name in latents],
                "alone": series.index[series == ""].tolist(),
            }
        )
    above = {name: list(below) for name, below in result.graph.facets.items()}
    sentences = [f"{name} stands above {', '.join(below)}." for name, below in above.items()]
    if len(levels) == 1:
        sentences.append("There is one level: no latents above or below these were found.")
    return {"levels": levels, "selected": min(result.selected_partition, len(levels) - 1), "sentences": sentences}


def _effects(project: Project) -> dict[str, Any]:
    result = project.current()
    tables, sentences = [], []
    paths = result.latent_paths
    if len(paths):
        table = pd.DataFrame({"from": paths["source"], "to": paths["target"]})
        table.insert(1, "edge", ["→" if directed else "–" for directed in paths["directed"]])
        table = pd.concat([table, _figures(paths)], axis=1)
        ends = zip(paths["source"], paths["target"], strict=True)
        steep = paths_beyond_one(result)
        table["direction"] = [
            direction_in_words(result, a, b) + (f"; {DOUBTFUL}" if (a, b) in steep else "") for a, b in ends
        ]
        words = "→ the direction is the same in every graph that fits as well; – the reverse fits as well."
        tables.append(_table(paths_heading(result), table, words))
    else:
        sentences.append("The model has no paths between latents.")
    direct = result.direct_effects
    if len(direct):
        table = pd.concat([direct[["covariate", "item"]], _figures(direct)], axis=1)
        words = (
            "At equal values of its latents such an item is answered differently along the covariate (differential "
            "item functioning). Comparisons of latents here take it into account; sums of items do not."
        )
        tables.append(_table("Direct effects of covariates on items", table, words))
    elif result.graph.variables.covariates and result.graph.latents:
        sentences.append("No covariate acts on an item directly.")
    if 1 < len(result.graph.latent_groups) <= _MOST_GROUPS:
        try:
            matrix = effects_in_print(result)
        except um.UnmeasuredError as error:
            sentences.append(str(error))
        else:
            words = (
                "Standardised; rows are causes. Two numbers are the smallest and the largest over all graphs that fit "
                "as well, where directions are not identified."
            )
            tables.append(_table("Total effects between latents", matrix.reset_index(), words))
    elif len(result.graph.latent_groups) > _MOST_GROUPS:
        sentences.append(
            f"Total effects of more than {_MOST_GROUPS} latents are not computed here: unmeasured effects."
        )
    return {"tables": tables, "sentences": sentences}


def _local_fit(project: Project) -> dict[str, Any]:
    result = project.current()
    overall = pd.DataFrame(fit_in_words(result), columns=["index", "value", "in words"])
    words = (
        "Conventions for models that were specified beforehand (Hu and Bentler 1999). A search looks for a model that "
        "fits, so its indices are too favourable."
    )
    tables, sentences = [_table("Fit of the model", overall, words)], []
    pairs = result.local_dependence
    if len(pairs):
        figures = pd.concat([pairs[["item_1", "item_2"]], _figures(pairs)], axis=1)
        figures = figures.rename(columns={"item_1": "item", "item_2": "and", "standardised": "correlation"})
        words = "Pairs of items that share more than their latents; look at their wording."
        tables.append(_table(PAIRS_HEADING, figures, words))
    else:
        sentences.append("No residuals covary in this model.")
    largest = [(a, b, value) for a, b, value in largest_residuals(result)]
    if largest:
        table = pd.DataFrame(largest, columns=["variable", "and", "observed less implied"])
        tables.append(_table("Correlations that the model misses by most", table))
    if len(result.graph.observed) <= _MOST_VARIABLES:
        indices = result.modification_indices()
        if len(indices):
            heads = {"mi": "chi-square would fall by", "epc": "estimate", "sepc.all": "standardised"}
            ends, latents = zip(indices["lhs"], indices["op"], indices["rhs"], strict=True), result.graph.latents
            shown = indices[list(heads)].rename(columns=heads)
            shown.insert(0, "if this were added", [change_in_words(*row, latents) for row in ends])
            words = "Add one in Edit to see what it changes."
            tables.append(_table("What would improve the fit most (modification indices)", shown, words))
        else:
            sentences.append("Nothing that could be added would improve the fit noticeably.")
    return {"tables": tables, "sentences": sentences}


# Groups of people -------------------------------------------------------------------------------------------


def group_record(shared: Invariance, by_group: Mapping[str, um.Result]) -> dict[str, Any]:
    """What the page shows of groups of people beyond what a run keeps: sentences, and the estimates of each group."""
    estimates = [
        {
            "group": label,
            "source": row["source"],
            "target": row["target"],
            "kind": row["kind"],
            "std": float(row["std"]),
        }
        for label, result in by_group.items()
        for row in result.edges.to_dict(orient="records")
    ]
    return {"sentences": list(shared.sentences), "estimates": estimates}


def _groups(project: Project) -> dict[str, Any]:
    people, shared = project.people, project.shared
    if people is None:
        return {"sentences": ["No column was chosen as groups of people, so there is nothing to compare."]}
    if shared is None:
        return {"sentences": ["Groups were compared in the model found. Undo the edits to see the comparison."]}
    names = project.models[project.at].names

    def name(text: Any) -> str:
        return names.get(str(text), str(text))

    labels = list(shared.sizes)
    steps = pd.DataFrame(list(shared.steps))
    steps["holds"] = ["" if held is None else "yes" if held else "no" for held in steps["holds"]]
    shown = {"step": "equal", "chi2": "chi-square", "df": "df", "rmsea": "RMSEA", "cfi": "CFI", "bic": "BIC"}
    shown |= {"d_chi2": "Δ chi-square", "d_df": "Δ df", "d_pvalue": "p", "d_cfi": "Δ CFI", "d_rmsea": "Δ RMSEA"}
    shown |= {"holds": "holds"}
    words = (
        "Each step adds equal parameters to the one before. A step holds where CFI falls by no more than .010 and "
        "RMSEA rises by no more than .015 (Chen 2007)."
    )
    tables = [_table("What the groups share", steps[list(shown)].rename(columns=shown), words)]
    edges = pd.DataFrame(people["estimates"])
    if len(edges):
        differing = {frozenset(edge) for edge in shared.marked}
        wide = edges.pivot(index=["kind", "source", "target"], columns="group", values="std")[labels]
        wide = wide.reindex(list(dict.fromkeys(zip(edges["kind"], edges["source"], edges["target"], strict=True))))
        wide = wide.reset_index()
        wide["source"], wide["target"] = ([name(x) for x in wide[key]] for key in ("source", "target"))
        ends = zip(wide["source"], wide["target"], strict=True)
        wide["differs"] = ["≠" if frozenset(edge) in differing else "" for edge in ends]
        wide = wide.rename(columns={"source": "from", "target": "to"})
        paths = wide[wide["kind"] != "loading"].drop(columns="kind")
        loadings = wide[wide["kind"] == "loading"].drop(columns="kind")
        words = "Standardised in each group; ≠ marks what differs by BIC."
        tables += [_table(f"{what} of each group", part, words) for what, part in
                   (("Paths", paths), ("Loadings", loadings)) if len(part)]  # fmt: skip
    if shared.differences:
        rows = [
            [row["kind"], _ARROWS[row["what"][1]].format(*row["what"]), *row["estimates"], row["chi2"]]
            for row in shared.differences
        ]
        table = pd.DataFrame(rows, columns=["kind", "parameter", *labels, "chi-square (1 df)"])
        tables.append(_table("What differs, by BIC", table, "Estimates of each group, nothing equal; score tests."))
    if shared.means:
        means = pd.DataFrame(list(shared.means)).rename(columns={"se": "s.e.", "pvalue": "p"})
        tables.append(_table(f"Latent means, {labels[0]} at zero", means, "Read them where equal intercepts hold."))
    sizes = ", ".join(f"{label} {size:g}" for label, size in shared.sizes.items())
    sentences = [f"Groups and their rows: {sizes}.", *(_renamed(text, names) for text in people["sentences"])]
    return {"sentences": sentences, "tables": tables}


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """A sentence with latents called by other names."""
    other = {old: new for old, new in names.items() if old != new}
    if not other:
        return text
    words = "|".join(re.escape(old) for old in sorted(other, key=len, reverse=True))
    return re.sub(rf"(?<!\w)(?:{words})(?!\w)", lambda found: other[found[0]], text)


def _stability(project: Project) -> dict[str, Any]:
    stable = project.stability_now
    if stable is None:
        left = "Replicates are of the model found. Undo the edits to see them." if project.stability else ""
        return {"sentences": [left] if left else []}
    groups = stable.latent_groups.rename(columns={"group": "latent", "consistency": "exactly these items"})
    groups = groups.rename(columns={"same_size": "as many latents", "item_stability": "mean of its items"})
    edges = stable.edges.rename(
        columns={"source": "from", "target": "to", "in_graph": "in the model", "undirected": "–"}
    )
    edges = edges.rename(columns={"forward": "→", "backward": "←"})
    edges["in the model"] = ["yes" if is_in else "no" for is_in in edges["in the model"]]
    items = stable.items.rename(
        columns={"latent_groups": "latent", "stability": "on its latent", "exact": "and on no other"}
    )
    tables = [
        _table("Latents", groups, "Found: with two or more of these items.", percent=True),
        _table("Edges", edges, "How often replicates have each edge, and which way it pointed.", percent=True),
        _table("Items", items, percent=True),
    ]
    return {"sentences": stable.summary().splitlines()[:1], "tables": tables}


# Cells ------------------------------------------------------------------------------------------------------


def _figures(rows: pd.DataFrame) -> pd.DataFrame:
    """Estimates with their standard errors and p-values, under headings for people."""
    table = rows[[*_FIGURES, "pvalue"]].reset_index(drop=True)
    return table.set_axis([*_FIGURES.values(), "p"], axis=1)


def _table(title: str, frame: pd.DataFrame, words: str = "", *, percent: bool = False) -> Table:
    heads = [str(head) for head in frame.columns]
    columns = [frame.iloc[:, k] for k in range(frame.shape[1])]
    left = [k for k, column in enumerate(columns) if not pd.api.types.is_numeric_dtype(column)]
    whole = [pd.api.types.is_integer_dtype(c) or heads[k] in ("df", "Δ df") for k, c in enumerate(columns)]
    cells = [_cells(column, heads[k], k in left, whole[k], percent) for k, column in enumerate(columns)]
    return {
        "title": title,
        "heads": [head.strip() for head in heads],
        "rows": [list(row) for row in zip(*cells, strict=True)],
        "left": left,
        "words": words,
    }


def _cells(column: pd.Series, head: str, is_text: bool, is_whole: bool, is_part: bool) -> Iterable[Sequence[Any]]:
    if is_text:
        return [[_text(value), _text(value)] for value in column]
    values = [float(value) for value in column]
    if head in ("p", "pvalue"):
        return [[apa.p_value(value), value] for value in values]
    if is_part and not is_whole:
        return [["" if math.isnan(value) else f"{value:.0%}", value] for value in values]
    digits = 0 if is_whole else 3 if all(not abs(v) >= 10 for v in values) else 2
    return [[apa.number(value, digits), value] for value in values]


def _text(value: Any) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, tuple | list | set | frozenset):
        return ", ".join(map(str, value))
    return str(value)
