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
    largest = sorted(result.indicators, key=lambda group: -len(result.indicators[group]))
    shown = largest if len(largest) <= _FEW else largest[: _FEW - 1]
    names = [node(group) for group in result.graph.groups if group in shown]
    more = len(graph.groups) - len(shown)
    rest = f", among them {_and(names)}" if more else f": {_and(names)}"
    return f"Behind {start} stand {len(graph.latents)} latent variables that were not measured themselves{rest}."


def _linked(result: Result) -> Iterator[str]:
    paths, groups = result.latent_paths, result.graph.groups
    if len(groups) < 2:
        return
    of = {name: group for group in groups for name in group}
    ends = [(of.get(a), of.get(b)) for a, b in zip(paths["source"], paths["target"])]
    pairs = {frozenset(pair) for pair in ends if None not in pair and pair[0] != pair[1]}
    if not pairs:
        yield "They are not linked with one another."
        return
    n_all = len(groups) * (len(groups) - 1) // 2
    if n_all == 1:
        count = "The two of them are linked"
    else:
        count = f"{f'All {n_all}' if len(pairs) == n_all else f'{len(pairs)} of the {n_all}'} pairs of them are linked"
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
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
