"""The tables of an article, before any format: title, columns, rows and a note, numbers still numbers.

::

    Run ──► tables_of ──► Table ──► word.py, latex.py, webpage.py, workbook.py

Titles, heads and notes may mark words to be printed in italics (:func:`italic`), as the style of the American
Psychological Association asks for statistical symbols; :func:`pieces` takes such a text apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from unmeasured import apa
from unmeasured.errors import UnmeasuredError
from unmeasured.models.fit import Fit
from unmeasured.output.report.run import Run
from unmeasured.results.effects import ClassEffects
from unmeasured.results.interpretation import DOUBTFUL, direction_in_words, doubts_of_paths, node, paths_beyond_one
from unmeasured.results.result import Result

# Characters of Unicode's private area, which no name that a reader can see holds.
_BEGIN, _END = "\ue000", "\ue001"
_Z = 1.959964  # of a 95% interval
# More columns of correlations than this do not fit on a page; the rest follows in another table.
_MOST_COLUMNS = 12
# Effects of more groups than this take minutes, and pages.
_MOST_GROUPS = 12
_SET = "ᵃ"
# The most small letters of a column of words before lines are broken.
_WORDS = 34.0
# Points: of a small letter, of the space at both sides of a cell, and of a line on upright paper.
LETTER, PADDING, _UPRIGHT = 4.75, 9.0, 482.0


@dataclass(frozen=True)
class Number:
    """A figure of a table: spreadsheets get the number, documents the text."""

    value: float
    digits: int = 2
    bounded: bool = False  # cannot exceed 1 in size
    is_p: bool = False
    mark: str = ""  # printed behind it

    @property
    def text(self) -> str:
        """As a document prints it."""
        shown = apa.p_value(self.value) if self.is_p else apa.number(self.value, self.digits, bounded=self.bounded)
        return shown + self.mark


Cell = str | Number


@dataclass(frozen=True)
class Column:
    """The head of a column, what stands above several, and whether it holds words."""

    head: str
    above: str = ""
    align: Literal["left", "right"] = "right"


@dataclass(frozen=True)
class Row:
    """The cells of a row; a heading has one, which goes across the table."""

    cells: tuple[Cell, ...]
    is_heading: bool = False


@dataclass(frozen=True)
class Table:
    """A table of an article."""

    key: str  # one word, for the sheet of a workbook and the label of a LaTeX table
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    number: int = 0

    @property
    def widths(self) -> list[float]:
        """Of each column, in small letters: its longest cell or head, but long words are broken into lines."""
        inside = 2.0 * any(row.is_heading for row in self.rows)
        result = []
        for j, column in enumerate(self.columns):
            cells = [shown(row.cells[j]) for row in self.rows if not row.is_heading]
            longest = max(map(_letters, [*cells, plain(column.head)])) + inside * (j == 0)
            result.append(min(longest, _WORDS) if column.align == "left" else longest)
        return result

    @property
    def is_wide(self) -> bool:
        """Whether it needs a page on its side."""
        return LETTER * sum(self.widths) + PADDING * len(self.columns) > _UPRIGHT


def _letters(text: str) -> float:
    """The width of a text in small letters of 4.75 points, as Times New Roman of 10 points has it, or a little more.

    >>> round(_letters("RMSEA") * LETTER, 1), round(_letters("41") * LETTER, 1)  # 34.4 and 10 points
    (38.0, 10.5)
    """
    return sum(
        2.0
        if letter in "MW→↔—%"
        else 1.5
        if letter.isupper() or letter in "–−mw_<"
        else 1.1
        if letter.isdigit()
        else 1.0
        for letter in text
    )


def italic(text: str) -> str:
    """Mark words to be printed in italics."""
    return f"{_BEGIN}{text}{_END}"


def pieces(text: str) -> list[tuple[str, bool]]:
    """A text as pieces, each with whether it is in italics.

    >>> pieces("the " + italic("SE") + " of")
    [('the ', False), ('SE', True), (' of', False)]
    """
    parts: list[tuple[str, bool]] = []
    for k, part in enumerate(text.split(_BEGIN)):
        marked, _, rest = part.partition(_END) if k else ("", "", part)
        parts += [(marked, True), (rest, False)]
    return [(part.replace(_END, ""), slanted) for part, slanted in parts if part]


def plain(text: str) -> str:
    """The text without its marks of italics."""
    return text.replace(_BEGIN, "").replace(_END, "")


def shown(cell: Cell) -> str:
    """The cell as a document prints it."""
    return cell if isinstance(cell, str) else cell.text


def spans(table: Table) -> list[tuple[int, int, str]]:
    """What stands above the heads, with the first and the last column it stands above."""
    found: list[tuple[int, int, str]] = []
    for j, column in enumerate(table.columns):
        if found and found[-1][2] == column.above and column.above:
            found[-1] = (found[-1][0], j, column.above)
        else:
            found.append((j, j, column.above))
    return found


def tables_of(run: Run) -> tuple[Table, ...]:
    """The tables of a run, numbered in their order; those that would be empty are left out."""
    result = run.result
    made = [
        *_loadings(result),
        *_correlations(result),
        *_paths(result),
        *_direct_effects(result),
        *_effects(result),
        *_residual_covariances(result),
        *_fit(run),
        *_tests(run),
        *_groups(run),
    ]
    return tuple(replace(table, number=k) for k, table in enumerate(made, start=1))


_B, _SE, _P, _N, _DF, _R2 = italic("B"), italic("SE"), italic("p"), italic("N"), italic("df"), italic("R") + "²"
_STANDARDISED = "Standardised"
_ESTIMATES = (
    Column(_B, "Unstandardised"),
    Column(_SE, "Unstandardised"),
    Column(_P, "Unstandardised"),
    Column("Estimate", _STANDARDISED),
    Column(_SE, _STANDARDISED),
    Column("95% LL", _STANDARDISED),
    Column("95% UL", _STANDARDISED),
)


def _std(value: float, digits: int = 2) -> Number:
    """A standardised coefficient, which may exceed 1 and then has its digits in front."""
    return Number(value, digits, bounded=True)


def _estimates(row: dict[str, float]) -> tuple[Cell, ...]:
    std, error = float(row["std"]), float(row["std_se"])
    return (
        Number(row["est"]),
        Number(row["se"]),
        Number(row["pvalue"], is_p=True),
        _std(std),
        _std(error),
        _std(std - _Z * error),
        _std(std + _Z * error),
    )


def _n_in_words(result: Result) -> str:
    n = result.sem.sample.n
    return "A population covariance." if math.isinf(n) else f"{_N} = {n:.0f}."


def _errors_in_words(result: Result) -> str:
    if math.isinf(result.sem.sample.n):
        return ""
    robust = result.fit.robust
    corrected = f"Standard errors are robust ({robust.correction}). " if robust is not None else ""
    if result.estimation_note:
        return f"{corrected}The model was found in other rows than these estimates are from."
    return (
        f"{corrected}Standard errors, intervals and {_P} values take the model as given, but it was found in the same "
        "data: they are too small."
    )


_INTERVAL = "LL and UL = lower and upper limit of the 95% confidence interval."


def _loadings(result: Result) -> Iterator[Table]:
    table = result.loadings
    if not len(table):
        return
    labels, r2 = result.sem.sample.labels, result.r2
    has_labels = any(x in labels for x in table["indicator"])
    wording = (Column("Wording", align="left"),) if has_labels else ()
    columns = (Column("Indicator", align="left"), *wording, *_ESTIMATES, Column(_R2))
    rows: list[Row] = []
    for latent in dict.fromkeys(table["latent"]):
        own = table[table["latent"] == latent]
        rows.append(Row((str(latent),), is_heading=True))
        for row in own.reindex(own["std"].abs().sort_values(ascending=False, kind="stable").index).to_dict("records"):
            x = str(row["indicator"])
            words = (labels.get(x, ""),) if has_labels else ()
            cells = _estimates(row)
            if row["fixed"]:
                cells = (Number(0.0, mark=_SET), "", "", Number(0.0, bounded=True, mark=_SET), "", "", "")
            rows.append(Row((x, *words, *cells, _std(float(r2.get(x, math.nan))))))
    groups = [group for group in result.graph.latent_groups if len(group) > 1]
    rotation = [
        f"{node(group)} share their indicators: their loadings are those of one rotation of many." for group in groups
    ]
    zeros = [f"{_SET} Set to 0 to choose the rotation."] if table["fixed"].any() else []
    note = " ".join([_n_in_words(result), _INTERVAL, *rotation, *zeros, _errors_in_words(result)])
    yield Table("loadings", "Loadings of the Indicators on the Latent Variables", columns, tuple(rows), note.strip())


def latent_correlations(fit: Fit, latents: Sequence[str]) -> np.ndarray:
    """The correlations of latents that a fit implies."""
    place = [fit.causal_order.index(name) for name in latents]
    cov = fit.full_cov[np.ix_(place, place)]
    sd = np.sqrt(np.diag(cov))
    return np.asarray(cov / np.outer(sd, sd))


def _correlations(result: Result) -> Iterator[Table]:
    latents = result.graph.latents
    if not latents:
        return
    alone = [group[0] for group in result.graph.latent_groups if len(group) == 1]
    reliability, basis = None, ""
    if alone:
        try:
            measured = result.reliability()
            reliability, basis = measured.table, measured.basis
        except UnmeasuredError:  # no latent has observed indicators of its own
            reliability = None
    figures = latent_correlations(result.fit, latents)
    parts = [range(k, min(k + _MOST_COLUMNS, len(latents))) for k in range(0, len(latents), _MOST_COLUMNS)]
    measures = (("omega", "ω"), ("alpha", "α"), ("ave", "AVE")) if reliability is not None else ()
    for part in parts:
        first = part.start == 0
        columns = [Column("Latent variable", align="left")]
        columns += [Column(head) for _, head in measures] if first else []
        columns += [Column(str(k + 1)) for k in part]
        rows = []
        for i, name in enumerate(latents):
            if i < part.start:
                continue
            cells: list[Cell] = [f"{i + 1}. {name}"]
            for key, _ in measures if first else ():
                known = reliability is not None and name in reliability.index
                cells.append(Number(float(reliability.loc[name, key]), bounded=True) if known else "")  # type: ignore[union-attr, arg-type]
            cells += ["—" if i == j else _std(float(figures[i, j])) if j < i else "" for j in part]
            rows.append(Row(tuple(cells)))
        words = _items_in_words(reliability, basis) if reliability is not None and first else ""
        rotation = (
            "Correlations of latent variables that share all their indicators depend on the rotation that was chosen. "
            if len(alone) < len(latents)
            else ""
        )
        title = "Correlations of the Latent Variables" + " and Their Reliability" * bool(measures and first)
        title += f" (Continued, From {part.start + 1})" * (not first)
        note = f"{_n_in_words(result)} Correlations are those that the model implies. {words}{rotation}"
        key = "correlations" if first else f"correlations{part.start + 1}"
        yield Table(key, title, tuple(columns), tuple(rows), note.strip())


def _items_in_words(reliability: pd.DataFrame, basis: str) -> str:
    """What the measures are, and of which items."""
    items = "; ".join(f"{latent}: {own}" for latent, own in reliability["indicators"].items() if own)
    reversed_ = ", reversed if marked by a minus sign" if "−" in items else ""
    return (
        "ω = McDonald's omega; α = Cronbach's alpha; AVE = average variance extracted. They are of the items that load "
        f"on no other latent variable more{reversed_} ({items}). {basis}{' ' * bool(basis)}"
    )


def _paths(result: Result) -> Iterator[Table]:
    if not len(result.latent_paths):
        return
    columns = (Column("Path", align="left"), *_ESTIMATES, Column("Direction", align="left"))
    rows = []
    steep = paths_beyond_one(result)
    why = {"compelled in the class found": "identified", "follows from knowledge": "from prior knowledge"}
    for row in result.latent_paths.to_dict("records"):
        source, target = str(row["source"]), str(row["target"])
        arrow = "→" if row["directed"] else "–"
        told = direction_in_words(result, source, target)
        cells = _estimates(row)  # type: ignore[arg-type]
        doubt = f"; {DOUBTFUL}" if (source, target) in steep else ""
        rows.append(Row((f"{source} {arrow} {target}", *cells, why.get(told, told) + doubt)))
    is_open = not result.latent_paths["directed"].all()
    reverse = (
        "Where the direction is not identified (–), a model with this edge reversed, together with others, fits "
        "equally "
        "well; the estimate is that of the direction written. "
        if is_open
        else ""
    )
    variables = result.graph.variables
    ends = ["Latent Variables" if variables.latents else "Observed Variables"]
    ends += ["Covariates"] * bool(variables.covariates) + ["Outcomes"] * bool(variables.outcomes)
    between = ends[0] if len(ends) == 1 else f"{', '.join(ends[:-1])} and {ends[-1]}"
    left_out = " Total effects are not tabulated: there are too many." * (
        len(result.graph.latent_groups) > _MOST_GROUPS
    )
    beyond = f" {doubts_of_paths(result)}" if steep else ""
    note = f"{_n_in_words(result)} {reverse}{_INTERVAL} {_errors_in_words(result)}{left_out}{beyond}"
    yield Table("paths", f"Paths Between {between}", columns, tuple(rows), note.strip())


def _direct_effects(result: Result) -> Iterator[Table]:
    """Effects of covariates on indicators that no latent explains."""
    if not len(result.direct_effects):
        return
    columns = (Column("Covariate → indicator", align="left"), *_ESTIMATES)
    rows = tuple(
        Row((f"{row['covariate']} → {row['item']}", *_estimates(row)))  # type: ignore[arg-type]
        for row in result.direct_effects.to_dict("records")
    )
    note = (
        f"{_n_in_words(result)} Differential item functioning: persons with the same standing on the latent variables "
        f"answer differently. {_INTERVAL} {_errors_in_words(result)}"
    )
    yield Table("direct", "Direct Effects of Covariates on Indicators", columns, rows, note.strip())


def effects_of(result: Result) -> ClassEffects | None:
    """Effects over the class; None where there are none to report, or too many to tabulate."""
    if not 1 < len(result.graph.latent_groups) <= _MOST_GROUPS:
        return None
    try:
        return result.effects()
    except UnmeasuredError:  # a class too large to enumerate, which the command for effects says
        return None


def _effects(result: Result) -> Iterator[Table]:
    over = effects_of(result)
    if over is None:
        return
    heads = ("Smallest", "Largest", "95% LL", "95% UL")
    columns = (
        Column("Cause", align="left"),
        Column("Effect on", align="left"),
        *(Column(head, "Total effect") for head in heads),
        Column("Decided by", align="left"),
    )
    rows = [
        Row(
            (
                pair.cause,
                pair.effect,
                _std(pair.smallest),
                _std(pair.largest),
                _std(float(pair.values["lower"].min()) if len(pair.values) else math.nan),
                _std(float(pair.values["upper"].max()) if len(pair.values) else math.nan),
                pair.informative_edge,
            )
        )
        for pair in over.pairs
        if pair.values["std"].ne(0.0).any()
    ]
    if not rows:
        return
    note = (
        f"{_n_in_words(result)} Standardised total effects: the smallest and the largest over all models that fit "
        f"equally "
        "well; they are equal where the effect is identified. Limits are the outer ends of the 95% confidence "
        "intervals "
        "of all possible values. Decided by = the edge whose direction matters most. Effects that are "
        "zero in every model are left out."
    )
    yield Table("effects", "Total Effects Between Latent Variables", columns, tuple(rows), note)


def _residual_covariances(result: Result) -> Iterator[Table]:
    table = result.parameters
    # Covariates covary freely, as in lavaan: these are no residuals.
    given = set(result.graph.variables.covariates)
    is_given = table["lhs"].isin(given) & table["rhs"].isin(given)
    table = table[(table["op"] == "~~") & (table["lhs"] != table["rhs"]) & ~is_given]
    if not len(table):
        return
    columns = (Column("Pair", align="left"), *_ESTIMATES)
    rows = tuple(
        Row((f"{row['lhs']} ↔ {row['rhs']}", *_estimates(row)))  # type: ignore[arg-type]
        for row in table.to_dict("records")
    )
    note = f"{_n_in_words(result)} {_INTERVAL} {_errors_in_words(result)}"
    yield Table("covariances", "Covariances of Residuals", columns, rows, note.strip())


_FIT_COLUMNS = (
    Column("Model", align="left"),
    Column("χ²"),
    Column(_DF),
    Column(_P),
    Column("CFI"),
    Column("TLI"),
    Column("RMSEA"),
    Column("90% CI", align="left"),
    Column("SRMR"),
    Column("AIC"),
    Column("BIC"),
)


def _fit(run: Run) -> Iterator[Table]:
    fit = run.result.reported
    test, nan = run.result.of_groups, math.nan
    own = "Model found" + ", one set of parameters for all groups" * bool(test)
    rows = [_fit_row(own if fit.robust is None else f"{own}, not corrected", fit)]
    if fit.robust is not None:
        corrected = _figures(
            f"Model found, robust ({fit.robust.estimator})",
            (fit.chi2_scaled, fit.df, fit.pvalue_scaled, fit.cfi_robust, fit.tli_robust, fit.rmsea_robust),
            fit.rmsea_robust_ci,
            (math.nan,) * 3,
        )
        rows.insert(0, corrected)
    if test:
        tested = (test["chi2"], test["df"], test["pvalue"], nan, nan, nan)
        rows.insert(0, _figures("Model found, each group its own parameters", tested, (nan, nan), (nan, nan, nan)))
    compared = run.comparison.rows if run.comparison else ()
    keys = ("chi2", "df", "pvalue", "cfi", "tli", "rmsea")
    for row in sorted(compared, key=lambda row: float(row["bic"])):
        if row["model"] == "found":
            continue
        improper = "" if row["proper"] else " (improper solution)"
        figures = tuple(float(row[key]) for key in keys)
        rows.append(
            _figures(f"{row['model']}{improper}", figures, (math.nan,) * 2, (row["srmr"], row["aic"], row["bic"]))
        )
    found = run.result.sem
    status = (
        "" if found.converged and found.admissible else f" The model found is not a proper solution: {found.status}."
    )
    title = "Fit of the Model Found" + (" and of Models Compared With It" if len(compared) > 1 else "")
    note = (
        f"{_n_in_words(run.result)} CFI = comparative fit index; TLI = Tucker-Lewis index; RMSEA = root mean square "
        f"error "
        "of approximation; CI = confidence interval; SRMR = standardised root mean square residual; AIC and BIC = "
        f"information criteria of Akaike and Schwarz, smaller is better.{status}"
    )
    note = " ".join([note, *(run.comparison.notes if run.comparison else ())])
    yield Table("fit", title, _FIT_COLUMNS, tuple(rows), note)


def _fit_row(name: str, fit: Fit) -> Row:
    first = (fit.chi2, fit.df, fit.pvalue, fit.cfi, fit.tli, fit.rmsea)
    return _figures(name, first, fit.rmsea_ci, (fit.srmr, fit.aic, fit.bic))


def _figures(name: str, first: Sequence[float], interval: Sequence[float], rest: Sequence[float]) -> Row:
    chi2, df, p, cfi, tli, rmsea = first
    srmr, aic, bic = rest
    low, high = (apa.number(value, 3, bounded=True) for value in interval)
    return Row(
        (
            name,
            Number(chi2),
            Number(float(df), 0),
            Number(p, is_p=True),
            *(Number(value, 3, bounded=True) for value in (cfi, tli, rmsea)),
            f"[{low}, {high}]" if low and high else "",
            Number(srmr, 3, bounded=True),
            Number(aic, 1),
            Number(bic, 1),
        )
    )


def _tests(run: Run) -> Iterator[Table]:
    if run.comparison is None or not run.comparison.tests:
        return
    columns = (
        Column("Smaller model", align="left"),
        Column("Larger model", align="left"),
        Column("Δχ²"),
        Column(f"Δ{_DF}"),
        Column(_P),
    )
    rows = tuple(
        Row(
            (
                _model_name(row["smaller"]),
                _model_name(row["larger"]),
                Number(float(row["chi2"])),
                Number(float(row["df"]), 0),
                Number(float(row["pvalue"]), is_p=True),
            )
        )
        for row in run.comparison.tests
    )
    note = f"A small {_P} value speaks for the larger model."
    yield Table("tests", "Chi-Square Difference Tests of Nested Models", columns, rows, note)


_STEPS = {
    "configural": "Same structure",
    "loadings": "Equal loadings",
    "intercepts": "and equal intercepts",
    "residuals": "and equal residual variances",
}


def _groups(run: Run) -> Iterator[Table]:
    """What groups of people share, step by step."""
    if run.shared is None:
        return
    steps = run.shared.steps
    columns = (
        Column("Model", align="left"),
        *(Column(head, "Fit") for head in ("χ²", _DF, _P, "CFI", "RMSEA", "BIC")),
        *(Column(head, "Difference") for head in ("Δχ²", f"Δ{_DF}", _P)),
    )
    rows = tuple(
        Row(
            (
                _STEPS.get(step["step"], step["step"]),
                Number(step["chi2"]),
                Number(step["df"], 0),
                Number(step["pvalue"], is_p=True),
                Number(step["cfi"], 3, bounded=True),
                Number(step["rmsea"], 3, bounded=True),
                Number(step["bic"], 1),
                Number(step["d_chi2"]),
                Number(step["d_df"], 0),
                Number(step["d_pvalue"], is_p=True),
            )
        )
        for step in steps
    )
    by = f" Groups: {run.about.groups}." if run.about.groups else ""
    note = (
        f"{_n_in_words(run.result)}{by} Each model has the equalities of those before it; Difference = from the "
        "model before. The other tables have estimates of all persons, each less the means of the group."
    )
    yield Table("groups", "Invariance of Measurement Across Groups", columns, rows, note)


def _model_name(name: str) -> str:
    return "Model found" if name == "found" else name
