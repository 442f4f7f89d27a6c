"""A finished run on one screen of a terminal: groups, paths, fit, and what not to believe."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from unmeasured.diagram.picture import coefficient
from unmeasured.remarks import Severity
from unmeasured.results.interpretation import (
    DOUBTFUL,
    cautions,
    fit_in_words,
    node,
    paths_beyond_one,
    paths_heading,
    verdict,
)
from unmeasured.results.result import Result
from unmeasured.results.summary import title

WIDTH = 96
_MOST_GROUPS, _MOST_LINES = 14, 6
# Remarks shown: all on answers that are not to be trusted, then problems with the data, then notes, up to these many.
_MOST_PROBLEMS, _MOST_REMARKS = 4, 3


def screen(result: Result, seconds: float | None = None, *, elsewhere: str = "result.summary()") -> str:
    """The answer in about forty lines; ``Result.summary`` and the report have all of it.

    Every remark that says that the answer is not to be trusted is shown; of the others as many as fit, with the number
    that is left out and where they are: ``elsewhere``.

    Examples
    --------
    >>> import unmeasured as um
    >>> data = um.datasets.load("multitasking")
    >>> print(screen(um.LGES().fit_cov(data.frame(), data.n_samples).result_.rename()))
    LGES(): 3 latent variables behind 9 observed variables
    <BLANKLINE>
    What measures what (standardised loadings; * also measures another)
      Speed           Speed_Figure .92, Speed_Letter .91, Speed_Number .87, AverageQus_Par1 −.29*
      Error           Error_Letter .78, Error_Figure .72, Error_Number .67
      AverageQus_Par  AverageQus_Par2 .82, AverageQus_Par3 .76, AverageQus_Par1 .93*
    <BLANKLINE>
    Paths between latents (→ compelled in the class found, – direction not identified)
      Speed – Error .20; Speed – AverageQus_Par .50; Error – AverageQus_Par .49
    <BLANKLINE>
    Fit
      chi-square   45.00 on 23 df, p = .004  exact fit is rejected at 5%
      RMSEA (90%)  0.069 (0.038 to 0.098)    acceptable, up to .08
      CFI          0.978                     good, from .95
      TLI          0.965                     good, from .95
      SRMR         0.031                     good, up to .08
      BIC, AIC     4297.2, 4224.4            smaller is better, among models of the same data
    <BLANKLINE>
    Remarks
      - A matrix was analysed as it is. From the rows themselves, ordinal items would get
        polychoric correlations and skewed variables normal scores of their ranks, and the number
        of latents may differ.
      - Standard errors and p-values take the graph as given. It was chosen with the same data, so
        they are too small: confirm it on new data.
    """
    took = "" if seconds is None else f"; {seconds:.1f} s"
    return "\n".join(
        [
            *wrap(result.stopped, WIDTH),
            *wrap(verdict(result), WIDTH),
            f"{title(result)}{took}",
            *_section("What measures what (standardised loadings; * also measures another)", _groups(result)),
            *_section(f"{paths_heading(result)} (→ {_by_whom(result)}, – direction not identified)", _paths(result)),
            *_section("Fit", _fit(result)),
            *_section("Remarks", _remarks(result, elsewhere)),
        ]
    )


def _section(heading: str, lines: Iterator[str]) -> list[str]:
    found = list(lines)
    return ["", heading, *found] if found else []


def _by_whom(result: Result) -> str:
    return "compelled in the class found, or known" if result.graph.known else "compelled in the class found"


def _groups(result: Result) -> Iterator[str]:
    groups = list(result.indicators.items())
    widest = min(max((len(node(group)) for group, _ in groups), default=0), 24)
    for group, items in groups[:_MOST_GROUPS]:
        line = f"  {node(group):<{widest}}  " + ", ".join(_loading(result, group, item) for item in items)
        yield line if len(line) <= WIDTH else _cut(line, ", ")
    if len(groups) > _MOST_GROUPS:
        yield f"  and {len(groups) - _MOST_GROUPS} more groups"


def _loading(result: Result, group: tuple[str, ...], item: str) -> str:
    shared = "*" * (sum(item in items for items in result.indicators.values()) > 1)
    if len(group) > 1:  # single loadings depend on the rotation
        return f"{item}{shared}"
    rows = result.loadings
    std = rows["std"][(rows["latent"] == group[0]) & (rows["indicator"] == item)]
    return f"{item} {coefficient(float(std.iloc[0]))}{shared}"


def _paths(result: Result) -> Iterator[str]:
    of = {name: group for group in result.graph.groups for name in group}
    said: dict[str, str] = {}
    steep = paths_beyond_one(result)
    for row in result.latent_paths.to_dict(orient="records"):
        ends = [of.get(row[key], (row[key],)) for key in ("source", "target")]
        arrow = "→" if row["directed"] else "–"
        figure = f" {coefficient(row['std'])}" if len(ends[0]) == len(ends[1]) == 1 else ""
        figure += f" ({DOUBTFUL})" if (row["source"], row["target"]) in steep else ""
        said.setdefault(f"{node(ends[0])} {arrow} {node(ends[1])}", figure)
    for row in result.direct_effects.to_dict(orient="records"):
        said[f"{row['covariate']} → {row['item']} (directly)"] = f" {coefficient(row['std'])}"
    # A name may hold blanks, and should not be broken at them.
    entries = [(path + figure).replace(" ", "\0") for path, figure in said.items()]
    lines = wrap("; ".join(entries), WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    yield from (f"  {line}".replace("\0", " ") for line in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f"  and more: {len(said)} in all"


def _fit(result: Result) -> Iterator[str]:
    rows = fit_in_words(result)
    first, second = (max(len(row[k]) for row in rows) for k in (0, 1))
    yield from (f"  {name:<{first}}  {value:<{second}}  {words}" for name, value, words in rows)


def _remarks(result: Result, elsewhere: str) -> Iterator[str]:
    remarks = cautions(result)
    problems = sum(remark.severity == Severity.DATA for remark in remarks)
    serious = sum(remark.severity == Severity.DISTRUST for remark in remarks)
    shown = max(serious + min(problems, _MOST_PROBLEMS), min(_MOST_REMARKS, len(remarks)))
    for sentence in remarks[:shown]:
        yield from wrap(sentence, WIDTH - 2, initial_indent="  - ", subsequent_indent="    ")
    left = len(remarks) - shown
    if left:
        kinds = "note" if problems <= shown - serious else "remark"
        yield f"  {left} more {kinds}{'s' * (left != 1)}: see {elsewhere}"


def _cut(line: str, mark: str) -> str:
    """A line without its last entries, and how many they are."""
    entries = line.split(mark)
    while len(mark.join(entries)) > WIDTH - 14 and len(entries) > 1:
        entries.pop()
    return f"{mark.join(entries)} and {line.count(mark) + 1 - len(entries)} more"
