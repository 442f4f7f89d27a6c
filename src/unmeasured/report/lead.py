"""The answer in three sentences: what was found, how it hangs together, and how far to trust it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from unmeasured.answer.result import Result
from unmeasured.answer.words import node
from unmeasured.diagram.picture import coefficient
from unmeasured.replicates.result import Stability
from unmeasured.report.groups import Shared

_FEW = 4
_CLOSE = ((0.05, "closely"), (0.08, "acceptably"), (0.10, "only roughly"))


def lead(result: Result, n: str, stability: Stability | None = None, shared: Shared | None = None) -> list[str]:
    """Three sentences that can stand alone.

    Parameters
    ----------
    n
        The number of observations, in words.
    stability, shared
        What replicates found, and what groups of people share, where that is known.

    Examples
    --------
    >>> import unmeasured as um
    >>> data = um.datasets.load("multitasking")
    >>> found = um.LGES().fit_cov(data.frame(), data.n_samples).result_.rename()
    >>> for sentence in lead(found, "202 observations"): print(sentence)
    Behind 9 variables seen in 202 observations stand 3 latent variables that were not measured themselves: Speed, Error and AverageQus_Par.
    All 3 pairs of them are linked, most strongly Speed and AverageQus_Par (.50, more of one with more of the other), but these data cannot show which is the cause.
    The model reproduces the data acceptably (RMSEA .069); it was found by a search in these same data, so it should be confirmed with new ones.
    """  # noqa: E501
    return [_found(result, n), *_linked(result, shared), _trust(result, stability)]


def _found(result: Result, n: str) -> str:
    graph = result.graph
    start = f"{len(graph.variables.indicators)} variables seen in {n}"
    if not graph.latents:
        return f"No latent variables were found behind the {start}."
    if len(graph.latents) == 1:
        name = _called(result, graph.groups[0])
        return f"Behind {start} stands one latent variable that was not measured itself: {name}."
    above = [group for group in graph.groups if graph.levels[group[0]]]
    own = {group: items for group, items in result.indicators.items() if group not in above}
    largest = sorted(own, key=lambda group: -len(own[group]))
    shown = largest if len(largest) <= _FEW else largest[: _FEW - 1]
    names = [_called(result, group) for group in graph.groups if group in shown]
    rest = f", among them {_and(names)}" if len(own) > len(shown) else f": {_and(names)}"
    n_own = sum(len(group) for group in own)
    one = "stands one latent variable that was" if n_own == 1 else f"stand {n_own} latent variables that were"
    return f"Behind {start} {one} not measured {'itself' if n_own == 1 else 'themselves'}{rest}{_above(result, above)}."


def _above(result: Result, above: Sequence[tuple[str, ...]]) -> str:
    """The clause on latents above latents."""
    if not above:
        return ""
    if len(above) > _FEW:
        return f"; {len(above)} more stand above these as their common causes"
    facets = result.graph.facets
    named = [f"{group[0]}, a common cause of {_and(facets[group[0]])}" for group in above]
    return f"; above them stand{'s' * (len(above) == 1)} {'; and '.join(named)}"


def _called(result: Result, group: tuple[str, ...]) -> str:
    """A latent by its name; with its strongest indicators where nobody has given it one."""
    if any(name in result.named for name in group):
        return node(group)
    return f"{node(group)} ({', '.join(result.indicators[group][:2])})"


def _linked(result: Result, shared: Shared | None) -> Iterator[str]:
    clauses = [*_between_latents(result), *_roles(result)]
    if shared is not None:
        clauses.append(shared.verdict)
    if not clauses and len(result.graph.latents) == 1:
        clauses = [_shows_in(result)]
    if clauses:
        sentence = "; ".join(clauses)
        yield f"{sentence[:1].upper()}{sentence[1:]}."


def _shows_in(result: Result) -> str:
    """What a single latent shows in most and least."""
    rows = sorted(result.loadings.to_dict(orient="records"), key=lambda row: -abs(row["std"]))
    most, least = rows[0], rows[-1]
    return (
        f"it shows most clearly in {most['indicator']} (loading {coefficient(most['std'])}) and least in "
        f"{least['indicator']} ({coefficient(least['std'])})"
    )


def _roles(result: Result) -> Iterator[str]:
    """The strongest effect of a covariate, and the strongest on an outcome."""
    variables, paths = result.graph.variables, result.latent_paths
    given = paths[paths["source"].isin(variables.covariates) & ~paths["target"].isin(variables.outcomes)]
    ends = paths[paths["target"].isin(variables.outcomes)]
    for rows, what in ((given, "of the covariates, {source} matters most, for {target} ({std})"),
                       (ends, "of the outcomes, {target} depends most on {source} ({std})")):  # fmt: skip
        if len(rows):
            row = max(rows.to_dict(orient="records"), key=lambda entry: abs(entry["std"]))
            yield what.format(source=row["source"], target=row["target"], std=coefficient(row["std"]))


def _between_latents(result: Result) -> Iterator[str]:
    paths, graph = result.latent_paths, result.graph
    below = {name for facets in graph.facets.values() for name in facets}
    groups = [group for group in graph.groups if group[0] not in below]  # what is below a latent has no other links
    if len(groups) < 2:
        return
    of = {name: group for group in groups for name in group}
    ends = [(of.get(a), of.get(b)) for a, b in zip(paths["source"], paths["target"])]
    pairs = {frozenset(pair) for pair in ends if None not in pair and pair[0] != pair[1]}
    them = "latents at the top" if below else "them"
    if not pairs:
        yield f"{'the latents at the top' if below else 'they'} are not linked with one another"
        return
    n_all = len(groups) * (len(groups) - 1) // 2
    share = f"all {n_all}" if len(pairs) == n_all else f"{len(pairs)} of the {n_all}"
    alone = [None not in pair and all(len(group or ()) == 1 for group in pair) for pair in ends]
    single = paths[np.array(alone, dtype=bool)]
    if not len(single):
        yield "the two are linked" if n_all == 1 else f"{share} pairs of {them} are linked"
        return
    row = max(single.to_dict(orient="records"), key=lambda entry: abs(entry["std"]))
    sense = "more of one with more of the other" if row["std"] > 0 else "more of one with less of the other"
    strength = f"({coefficient(row['std'])}, {sense})"
    if n_all == 1:
        start = f"the latents {row['source']} and {row['target']} are linked {strength}"
    else:
        start = f"{share} pairs of {them} are linked, most strongly {row['source']} and {row['target']} {strength}"
    if row["directed"]:
        yield f"{start}, and in this model {row['source']} is the cause"
    else:
        yield f"{start}, but these data cannot show which is the cause"


def _trust(result: Result, stability: Stability | None) -> str:
    fit = result.sem
    if not (fit.converged and fit.admissible):
        return f"Its figures are not to be relied on: {fit.status}."
    how = next((word for limit, word in _CLOSE if fit.rmsea <= limit), "badly")
    start = f"The model reproduces the data {how} (RMSEA {fit.rmsea:.3f})".replace("0.", ".", 1)
    if math.isinf(fit.sample.n):
        return f"{start}."
    if stability is not None and len(stability.edges):
        edges = stability.edges[stability.edges["in_graph"]]
        often = int((edges["frequency"] >= 0.8).sum())
        return (
            f"{start}; {often} of its {len(edges)} edges came back in at least 80% of {len(stability.outlines)} "
            "replicates of the data, and new data should confirm it."
        )
    return f"{start}; it was found by a search in these same data, so it should be confirmed with new ones."


def _and(names: Sequence[str]) -> str:
    return "".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"
