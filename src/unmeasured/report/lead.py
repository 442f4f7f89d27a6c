"""The answer in three sentences: what was found, how it hangs together, and how far to trust it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from unmeasured.answer.result import Result
from unmeasured.answer.words import node
from unmeasured.diagram.picture import coefficient
from unmeasured.replicates.result import Stability

_FEW = 4
_CLOSE = ((0.05, "closely"), (0.08, "acceptably"), (0.10, "only roughly"))


def lead(result: Result, n: str, stability: Stability | None = None) -> list[str]:
    """Three sentences that can stand alone.

    Parameters
    ----------
    n
        The number of observations, in words.

    Examples
    --------
    >>> import unmeasured as um
    >>> data = um.datasets.load("multitasking")
    >>> found = um.LGES().fit_cov(data.frame(), data.n_samples).result_.rename()
    >>> for sentence in lead(found, "202 observations"): print(sentence)
    Behind 9 variables seen in 202 observations stand 3 latent variables that were not measured themselves: Speed, Error and AverageQus_Par.
    All 3 pairs of them are linked, most strongly Speed and AverageQus_Par (.50, more of one with more of the other), but which is the cause cannot be told from these data.
    The model reproduces the data acceptably (RMSEA .069); it was found by a search in these same data, so it should be confirmed with new ones.
    """  # noqa: E501
    return [_found(result, n), *_linked(result), _trust(result, stability)]


def _found(result: Result, n: str) -> str:
    graph = result.graph
    start = f"{len(graph.variables.indicators)} variables seen in {n}"
    if not graph.latents:
        return f"No latent variables were found behind the {start}."
    if len(graph.latents) == 1:
        return f"Behind {start} stands one latent variable that was not measured itself: {graph.latents[0]}."
    above = [group for group in graph.groups if graph.levels[group[0]]]
    own = {group: items for group, items in result.indicators.items() if group not in above}
    largest = sorted(own, key=lambda group: -len(own[group]))
    shown = largest if len(largest) <= _FEW else largest[: _FEW - 1]
    names = [node(group) for group in graph.groups if group in shown]
    rest = f", among them {_and(names)}" if len(own) > len(shown) else f": {_and(names)}"
    n_latents = len(graph.latents) - len(above)
    found = f"Behind {start} stand {n_latents} latent variables that were not measured themselves{rest}."
    return f"{found} {_above(result, above)}" if above else found


def _above(result: Result, above: Sequence[tuple[str, ...]]) -> str:
    """What stands above the latents that items measure."""
    facets = result.graph.facets
    shown = [f"{node(group)} ({_and(facets.get(group[0], ()))})" for group in above]
    if len(shown) == 1:
        return f"One more is a common cause of some of them: {shown[0]}."
    named = f"among them {_and(shown[: _FEW - 1])}" if len(shown) > _FEW else _and(shown)
    return f"{len(shown)} more are common causes of these: {named}."


def _linked(result: Result) -> Iterator[str]:
    paths, graph = result.latent_paths, result.graph
    below = {name for facets in graph.facets.values() for name in facets}
    groups = [group for group in graph.groups if group[0] not in below]  # what is below a latent has no other links
    if len(groups) < 2:
        return
    of = {name: group for group in groups for name in group}
    ends = [(of.get(a), of.get(b)) for a, b in zip(paths["source"], paths["target"])]
    pairs = {frozenset(pair) for pair in ends if None not in pair and pair[0] != pair[1]}
    if not pairs:
        yield f"{'The latents at the top' if below else 'They'} are not linked with one another."
        return
    them = "latents at the top" if below else "them"
    n_all = len(groups) * (len(groups) - 1) // 2
    if n_all == 1:
        count = f"The two {'latents at the top' if below else 'of them'} are linked"
    else:
        share = f"All {n_all}" if len(pairs) == n_all else f"{len(pairs)} of the {n_all}"
        count = f"{share} pairs of {them} are linked"
    alone = [None not in pair and all(len(group or ()) == 1 for group in pair) for pair in ends]
    single = paths[np.array(alone, dtype=bool)]
    if not len(single):
        yield f"{count}."
        return
    row = max(single.to_dict(orient="records"), key=lambda entry: abs(entry["std"]))
    sense = "more of one with more of the other" if row["std"] > 0 else "more of one with less of the other"
    pair = f"{row['source']} and {row['target']} ({coefficient(row['std'])}, {sense})"
    which = "" if n_all == 1 else ", most strongly"
    if row["directed"]:
        yield f"{count}{which} {pair}, and in this model {row['source']} is the cause."
    else:
        yield f"{count}{which} {pair}, but which is the cause cannot be told from these data."


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
