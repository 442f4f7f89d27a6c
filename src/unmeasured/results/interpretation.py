"""Numbers in words: the usual thresholds of fit indices, and what data can and cannot tell.

The thresholds are conventions (Browne and Cudeck 1993 for RMSEA, Hu and Bentler 1999 for CFI, TLI and SRMR), not tests:
they were made for models that somebody thought of before seeing the data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import chdtri

from unmeasured import apa
from unmeasured.errors import listing
from unmeasured.graphs import DAG, class_over_groups
from unmeasured.graphs.latent_groups import braces
from unmeasured.models import indices
from unmeasured.models.fit import Fit
from unmeasured.remarks import Remark, Severity, by_consequence, data_problem, distrust
from unmeasured.search.budget import BUDGET
from unmeasured.search.close_fit.expected_misfit import bartlett_factor

if TYPE_CHECKING:
    from unmeasured.results.result import Result

_RMSEA = ((0.05, "close, up to .05"), (0.08, "acceptable, up to .08"), (0.10, "mediocre, up to .10"))
_SRMR = ((0.08, "good, up to .08"), (0.10, "acceptable, up to .10"))
# From this correlation on two latents are one as far as data can tell.
_ONE = 0.99
# A test at 5% that rejects so many true models is worth a remark.
_TOO_OFTEN = 0.075
# More edges than this are counted, not listed.
_FEW = 8
_CFI = ((0.95, "good, from .95"), (0.90, "acceptable, from .90"))


def rmsea_in_words(value: float) -> str:
    """Browne and Cudeck's words.

    >>> rmsea_in_words(0.0688), rmsea_in_words(0.2)
    ('acceptable, up to .08', 'poor, above .10')
    """
    return next((words for limit, words in _RMSEA if value <= limit), "poor, above .10")


def srmr_in_words(value: float) -> str:
    """Hu and Bentler's words."""
    return next((words for limit, words in _SRMR if value <= limit), "poor, above .10")


def cfi_in_words(value: float) -> str:
    """Hu and Bentler's words, for CFI and TLI alike.

    >>> cfi_in_words(0.96), cfi_in_words(0.8)
    ('good, from .95', 'poor, below .90')
    """
    return next((words for limit, words in _CFI if value >= limit), "poor, below .90")


def chi2_in_words(fit: Fit) -> str:
    """What the test against the saturated model says: the corrected one where there is one."""
    if fit.df == 0:
        return "no degrees of freedom: the model fits any data"
    if math.isinf(fit.sample.n):
        return "a population: no test"
    return f"exact fit is {'not ' if fit.pvalue_reported >= 0.05 else ''}rejected at 5%"


def indices_in_words(fit: Fit) -> list[tuple[str, str, str]]:
    """Name, value and words of each index; those corrected for the data come first, where there are some."""
    is_test = not (math.isnan(fit.pvalue) or math.isinf(fit.sample.n))
    p = f", p {apa.p_value(fit.pvalue, '= ')}" if is_test else ""
    chi2 = f"{fit.chi2:.2f} on {fit.df} df{p}"
    comparative = fit.df < fit.baseline_df  # else it is the model of independence, with which they compare
    rest = [
        ("SRMR", f"{fit.srmr:.3f}", srmr_in_words(fit.srmr)),
        ("BIC, AIC", f"{fit.bic:.1f}, {fit.aic:.1f}", "smaller is better, among models of the same data"),
    ]
    if fit.robust is not None:
        uncorrected = ("not corrected", chi2, f"RMSEA {fit.rmsea:.3f}{f', CFI {fit.cfi:.3f}' * comparative}")
        return [*_robust_in_words(fit), rest[0], uncorrected, rest[1]]
    low, high = fit.rmsea_ci
    interval = "" if math.isnan(low) else f" ({low:.3f} to {high:.3f})"
    rows = [
        ("chi-square", chi2, chi2_in_words(fit)),
        ("RMSEA (90%)", f"{fit.rmsea:.3f}{interval}", rmsea_in_words(fit.rmsea)),
    ]
    if comparative:
        rows += [("CFI", f"{fit.cfi:.3f}", cfi_in_words(fit.cfi)), ("TLI", f"{fit.tli:.3f}", cfi_in_words(fit.tli))]
    return rows + rest


def fit_in_words(result: Result) -> list[tuple[str, str, str]]:
    """Name, value and words of each index of an answer; with groups of people the test of the structure first."""
    rows = indices_in_words(result.reported)
    test = result.of_groups
    if not test:
        return rows
    groups = f"{test['chi2']:.2f} on {test['df']:.0f} df, p {apa.p_value(test['pvalue'], '= ')}"
    words = f"exact fit is {'not ' if test['pvalue'] >= 0.05 else ''}rejected at 5%"
    first, *rest = rows
    return [
        ("chi-square of the groups", groups, f"{words}, each group with its own parameters"),
        (first[0], first[1], f"{first[2]}, one set of parameters for all groups"),
        *rest,
    ]


def _robust_in_words(fit: Fit) -> list[tuple[str, str, str]]:
    """The indices that are corrected for data that are not normal, or not complete."""
    low, high = fit.rmsea_robust_ci
    tested = f"{fit.chi2_scaled:.2f} on {fit.df} df, p {apa.p_value(fit.pvalue_scaled, '= ')}"
    rows = [
        ("robust chi-square", tested, chi2_in_words(fit)),
        ("robust RMSEA", f"{fit.rmsea_robust:.3f} ({low:.3f} to {high:.3f})", rmsea_in_words(fit.rmsea_robust)),
    ]
    if fit.df < fit.baseline_df:
        rows.append(("robust CFI", f"{fit.cfi_robust:.3f}", cfi_in_words(fit.cfi_robust)))
    return rows


def number(value: float, digits: int = 3) -> str:
    """A number to print; nothing where there is none.

    >>> number(0.12345), number(float("nan"))
    ('0.123', '')
    """
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def html_list(sentences: Iterable[str]) -> str:
    """Sentences as an HTML list; nothing where there are none.

    >>> html_list(["a < b"])
    '<ul><li>a &lt; b</li></ul>'
    """
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def node(group: tuple[str, ...]) -> str:
    """A group as one name.

    >>> node(("A",)), node(("A", "B"))
    ('A', '{A, B}')
    """
    return group[0] if len(group) == 1 else braces(group)


def direction_in_words(result: Result, source: str, target: str) -> str:
    """Why a path has its direction: every graph of the class has it, knowledge says so, or it is not identified.

    An arrow is compelled *in the class found*: how sure that class is, is another question, which replicates answer.
    """
    variables = result.graph.variables
    if source in variables.covariates or (target in variables.outcomes and source not in variables.outcomes):
        return f"{target} is an outcome" if target in variables.outcomes else f"{source} is a covariate"
    if (source, target) in result.graph.without_knowledge.directed_edges:
        return "compelled in the class found"
    known = (source, target) in result.graph.directed_edges
    return "follows from knowledge" if known else "not identified"


def replicates_in_words(edges: pd.DataFrame, source: str, target: str) -> str:
    """Return how often replicates have an edge and which way, from the table of ``Stability.edges``.

    >>> row = {"source": "A", "target": "B", "frequency": 0.9, "forward": 0.2, "backward": 0.45, "undirected": 0.25}
    >>> replicates_in_words(pd.DataFrame([row]), "B", "A")
    'in replicates: → 45%, ← 20%, – 25%, absent 10%'
    """
    for row in edges.to_dict(orient="records"):
        if {row["source"], row["target"]} == {source, target}:
            there, back = row["forward"], row["backward"]
            if row["source"] != source:
                there, back = back, there
            absent = 1.0 - row["frequency"]
            parts = [("→", there), ("←", back), ("–", row["undirected"]), ("absent", absent)]
            return "in replicates: " + ", ".join(f"{mark} {part:.0%}" for mark, part in parts if part >= 0.005)
    return ""


def role_sentences(result: Result) -> Iterator[str]:
    """What is taken for granted of covariates."""
    variables = result.graph.variables
    if variables.covariates:
        yield (
            f"The model is conditioned on the covariates ({', '.join(variables.covariates)}): their distribution "
            "is arbitrary, they covary freely, and nothing causes them. It is assumed that they share no unmeasured "
            "cause with latents and outcomes."
        )


def assumptions(result: Result) -> str:
    """What every arrow and every estimate takes for granted, in one sentence."""
    pairs = ", but for the residual pairs listed" if result.graph.pairs else ""
    return (
        "All of this assumes that relations are linear, that there are no cycles, that the latents shown have no other "
        f"common causes, and that observed variables depend on one another only through them (a factor model){pairs}."
    )


PAIRS_HEADING = "Similar wording or method: residual correlations of items"


def group_edges(result: Result) -> tuple[list[str], list[str], list[str]]:
    """Edges between groups, or between observed variables, each once: identified by data, by knowledge, not.

    Without those from a latent to the latents that measure it, whose direction is that of the model.
    """
    graph = result.graph
    latent = {name: group for group in graph.latent_groups for name in group}
    of = {name: latent.get(name, (name,)) for name in graph.names}
    given = set(graph.variables.covariates)
    measures = {(a, b) for a, facets in graph.facets.items() for b in facets}
    directed = [
        (a, b)
        for a, b in graph.directed_edges
        if (a in latent) == (b in latent) and a not in given and (a, b) not in measures
    ]
    by_data = set(graph.without_knowledge.directed_edges)
    told = [(of[a], of[b]) for a, b in directed if (a, b) in by_data]
    known = [(of[a], of[b]) for a, b in directed if (a, b) not in by_data]
    open_ = [(of[a], of[b]) for a, b in graph.undirected_edges]
    return (
        [f"{node(a)} → {node(b)}" for a, b in dict.fromkeys(told)],
        [f"{node(a)} → {node(b)}" for a, b in dict.fromkeys(known)],
        [f"{node(a)} – {node(b)}" for a, b in dict.fromkeys(open_)],
    )


def paths_heading(result: Result) -> str:
    """What the paths of a result connect: latents, or observed variables where no latents are reported."""
    variables = result.graph.variables
    ends = ["latents"] * bool(variables.latents)
    ends += ["covariates"] * bool(variables.covariates) + ["outcomes"] * bool(variables.outcomes)
    if not variables.latents:
        return "Paths between observed variables"
    return f"Paths between {ends[0] if len(ends) == 1 else ', '.join(ends[:-1]) + ' and ' + ends[-1]}"


def oriented_by_covariates(result: Result) -> list[str]:
    """Edges between groups that are directed, but would not be in the graph of the latents alone."""
    member, latents = result.member, result.graph.latents
    inner = [(a, b) for a, b in member.edges if a in latents and b in latents]
    if not result.graph.variables.covariates or not inner:
        return []
    items = [(a, b) for a, b in member.edges if a in latents and b in member.variables.indicators]
    alone = class_over_groups(DAG.from_edges([*inner, *items], latents=latents), result.graph.latent_groups)
    open_ = {frozenset(edge) for edge in alone.undirected_edges}
    of = {name: group for group in result.graph.latent_groups for name in group}
    told = result.graph.without_knowledge.directed_edges
    gained = [(of[a], of[b]) for a, b in told if a in of and b in of and frozenset((a, b)) in open_]
    return [f"{node(a)} → {node(b)}" for a, b in dict.fromkeys(gained)]


def what_is_identified(result: Result) -> Iterator[str]:
    """One sentence for each thing the data tell or leave open."""
    told, known, open_ = group_edges(result)
    if told:
        yield f"Compelled in the class found, that is, in every graph that fits as well: {_few(told, '→')}."
    gained = oriented_by_covariates(result)
    if gained:
        yield (
            f"The direction of {_few(gained, '→')} is identified because of the covariates and outcomes: from the "
            "latents alone it would not be."
        )
    if known:
        yield (
            f"The direction of {_few(known, '→')} follows from the knowledge given and not from the data: "
            "with the arrow reversed, and other arrows if necessary, the graph fits exactly as well."
        )
    if open_:
        yield (
            f"The direction is not identified for {_few(open_, '–')}: with the arrow reversed, and other arrows if "
            "necessary, the graph fits exactly as well. The estimates are those of one such graph."
        )
    if result.graph.facets:
        yield _above(result)
    yield from role_sentences(result)
    for group in result.graph.latent_groups:
        if len(group) > 1:
            yield _rotation(result, group)
    if result.graph.latents:
        yield (
            "The scale and the sign of a latent are conventions: its residual variance is 1, and the loadings of its "
            "own items (those that load on no other latent more) have a positive sum."
        )
    yield from _undetermined(result)
    if result.graph.latents or told or known or open_:
        yield assumptions(result)


def _above(result: Result) -> str:
    facets = result.graph.facets
    shown = [f"{above} above {', '.join(below)}" for above, below in facets.items()]
    which = "; ".join(shown) if len(shown) <= _FEW else f"{len(shown)} latents above others"
    return (
        f"{which}: one common cause explains these latents better than edges between them do. The direction from the "
        "common cause to these latents is part of the model, as it is between a latent and its indicators."
    )


def _few(edges: list[str], arrow: str) -> str:
    """The edges, or how many there are where that would fill the page."""
    return (
        "; ".join(edges)
        if len(edges) <= _FEW
        else f"{len(edges)} edges between groups, marked {arrow} in the table of paths"
    )


def _undetermined(result: Result) -> Iterator[str]:
    fit, rows = result.fit, result.parameters
    missing = rows[rows["se"].isna()]
    if not len(missing):
        return
    names = listing(f"{a} {op} {b}" for a, op, b in zip(missing["lhs"], missing["op"], missing["rhs"]))
    if fit.model.n_free > fit.dimension:
        yield (
            f"Not identified, and therefore without a standard error: {names}. The R2 of these variables is not "
            "identified either."
        )
    else:
        yield f"The model is identified, but not at the optimum found; without a standard error: {names}."


def _rotation(result: Result, group: tuple[str, ...]) -> str:
    k = len(group)
    start = f"{node(group)} are {k} latents with the same indicators, which are identified only up to rotation: "
    if group not in result.reference_indicators:
        return start + "the loadings are those of one rotation and have no standard errors."
    items = ", ".join(result.reference_indicators[group][: k - 1])
    count = "1 loading is" if k == 2 else f"{k * (k - 1) // 2} loadings are"
    return start + f"{count} set to 0 (on {items}) to fix the rotation. The R2 of the indicators does not depend on it."


def before_the_search(result: Result) -> Iterator[str]:
    """What the check of the data has to say: what speaks against a search, and what does not."""
    findings = result.check.findings
    yield from (f"{finding.topic.capitalize()}: {finding.text}" for finding in findings if not finding.ok)
    fine = [finding.topic for finding in findings if finding.ok]
    if fine:
        yield f"OK: {', '.join(fine)}."


def levels_in_words(result: Result) -> list[str]:
    """Yield one sentence on the item partitions and their agreement; none if a single one is stable."""
    levels = result.item_partitions
    if len(levels) < 2 and not levels[0].agreement < BUDGET.stable_agreement:
        return []
    lines = []
    for k, level in enumerate(levels):
        often = "" if math.isnan(level.agreement) else f", agreement with replicates {level.agreement:.2f}"
        here = " (shown here)" if k == result.selected_partition else ""
        of = set(level.latents) & set(result.graph.facets)
        above = f", {'all' if len(of) == level.n_latents else len(of)} of them above others in the model" if of else ""
        lines.append(f"{level.n_latents} latent{'s' * (level.n_latents != 1)}{above}{often}{here}")
    return lines


def cautions(result: Result) -> tuple[Remark, ...]:
    """What to know before believing the figures, the most serious first."""
    return by_consequence(_cautions(result))


def verdict(result: Result) -> str:
    """What to read before anything else where the answer is not to be trusted; empty where nothing is against it."""
    serious = [remark for remark in cautions(result) if remark.severity == Severity.DISTRUST]
    if not serious or not result.graph.latents:
        return ""
    reason = re.split(r"(?<=[^.\d])[.:](?=\s|$)", serious[0])[0]
    more = f" ({len(serious) - 1} more reason{'s' * (len(serious) > 2)} below)" if len(serious) > 1 else ""
    reason = reason if reason[:2].isupper() else reason[:1].lower() + reason[1:]  # BIC and the like stay as they are
    return f"Do not publish this result as it is: {reason}{more}."


def _latents_at_one(result: Result) -> Iterator[str]:
    """Pairs of latents, groups of several left out, that cannot be told apart by their correlation."""
    fit = result.fit
    single = [group[0] for group in result.graph.latent_groups if len(group) == 1]
    at = [fit.causal_order.index(name) for name in single]
    cov = fit.full_cov[np.ix_(at, at)]
    sd = np.sqrt(np.maximum(np.diag(cov), 1e-300))
    for i, j in zip(*np.nonzero(np.triu(np.abs(cov / np.outer(sd, sd)) > _ONE, 1)), strict=True):
        yield f"{single[i]} and {single[j]}"


def paths_beyond_one(result: Result) -> dict[tuple[str, str], str]:
    """Paths whose standardised size is more than 1, as text, by their ends; groups of several latents left out."""
    several = {name for group in result.graph.latent_groups if len(group) > 1 for name in group}
    found = {}
    for row in result.latent_paths.to_dict(orient="records"):
        a, b = row["source"], row["target"]
        if abs(row["std"]) > 1.0 and not {a, b} & several:
            found[a, b] = f"{a} {'→' if row['directed'] else '–'} {b} {number(row['std'], 2)}"
    return found


#: What stands beside a standardised path beyond 1.
DOUBTFUL = "beyond 1: doubtful"


def doubts_of_paths(result: Result) -> str:
    """Return why standardised paths beyond 1 should not be believed, with the causes that offset each other.

    A path ``b`` beyond 1 is possible only if the other causes of its effect explain at least ``1 - 1 / b^2`` of its
    cause.
    """
    steep = paths_beyond_one(result)
    if not steep:
        return ""
    fit = result.fit
    place = {name: k for k, name in enumerate(fit.causal_order)}
    sd = np.sqrt(np.maximum(np.diag(fit.full_cov), 1e-300))
    corr = fit.full_cov / np.outer(sd, sd)
    why = []
    for a, b in steep:
        others = [x for x in result.member.parents(b) if x != a and x in place]
        if others:
            nearest = max(others, key=lambda x, a=a: abs(corr[place[a], place[x]]))  # type: ignore[misc]
            why.append(f"{a} and {nearest} correlate at {number(corr[place[a], place[nearest]], 2)} as causes of {b}")
    return (
        f"Standardised paths beyond 1 ({'; '.join(steep.values())}): they are no finding, but a reason to doubt this "
        f"part of the model. Causes that overlap offset each other ({'; '.join(dict.fromkeys(why))}), so that neither "
        "sizes nor signs of single paths are reliable. Interpret what the causes explain together, by R2, and check "
        "whether they are different factors at all (discriminant validity, fewer latents)."
    )


def _tests_not_to_rely_on(result: Result) -> Iterator[str]:
    """Yield a remark if the test of exact fit rejects true models more often than it says."""
    fit = result.reported
    sample = fit.sample
    if fit.df <= 0 or not sample.has_rows:
        return
    if sample.by_pairs and fit.robust is None:
        yield data_problem(
            "Correlations were estimated pair by pair, and there are too many variables, or too few rows, to correct "
            "the test and standard errors for it: p-values are too small."
        )
        return
    if sample.by_pairs:
        return  # residuals are weighed by their own variances, which keeps the size of the test
    few = bartlett_factor(len(sample.names), sample.n, len(result.graph.latents))
    often = indices.p_value(few * float(chdtri(fit.df, 0.05)), fit.df)
    if often >= _TOO_OFTEN:
        yield data_problem(
            f"There are few rows for a test of {fit.df} degrees of freedom: at 5% it rejects about {often:.0%} of "
            "true models of normal rows (chi-square is too large by what Bartlett's factor says), and more where rows "
            "are skewed or values are missing."
        )


def _cautions(result: Result) -> Iterator[str]:
    yield from (remark for remark in result.remarks if remark != result.stopped)  # that one is the first line
    if result.fit.robust is not None and result.fit.robust.reason:
        yield result.fit.robust.reason
    yield from _tests_not_to_rely_on(result)
    said = any(result.sem.status in remark for remark in result.remarks)
    if not said and not (result.sem.converged and result.sem.admissible):
        yield distrust(f"The fit is not a proper one: {result.sem.status}.")
    beyond = dict.fromkeys(result.loadings["indicator"][result.loadings["std"].abs() > 1.0])
    if beyond:
        yield distrust(
            f"Standardised loadings beyond 1 ({listing(beyond)}): do not publish them as they are. They occur if an "
            "indicator measures several latents that are highly correlated. Interpret its R2, and a single loading "
            "only if its standard error is small."
        )
    if same := list(_latents_at_one(result)):
        yield distrust(f"Latents that correlate at 1 ({'; '.join(same)}): the data do not distinguish them.")
    if doubts := doubts_of_paths(result):
        yield distrust(doubts)
    n, n_free = result.sem.sample.n, result.fit.model.n_free
    if result.sem.sample.mean is None and not result.sem.sample.kinds and not math.isinf(n):
        yield (
            "A matrix was analysed as it is. From the rows themselves, ordinal items would get polychoric correlations "
            "and skewed variables normal scores of their ranks, and the number of latents may differ."
        )
    if n < n_free:
        yield distrust(f"{n:.0f} samples for {n_free} free parameters: the estimates are not reliable.")
    if result.estimation_note:
        yield result.estimation_note
    elif result.graph.latents and not math.isinf(result.sem.sample.n):
        yield (
            "Standard errors and p-values take the graph as given. It was chosen with the same data, so they are too "
            "small: confirm it on new data."
        )
