"""The answer in three sentences: what was found, how it hangs together, and how far to trust it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from unmeasured.diagram.picture import coefficient, cut
from unmeasured.output.report.groups import Shared
from unmeasured.results.interpretation import node, paths_beyond_one
from unmeasured.results.result import Result
from unmeasured.validation.replicates.result import Stability

_FEW, _LARGEST = 5, 3  # factors that are all named; the largest that are, where there are more
_LONGEST_LABEL = 60
_CLOSE = ((0.05, "closely"), (0.08, "acceptably"), (0.10, "only roughly"))
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


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
    How 9 measured variables go together in 202 observations can be explained by three hidden factors (latent variables): Speed, Error and AverageQus_Par.
    All three pairs of factors are directly linked, most closely Speed and AverageQus_Par (.50, where 1 would be a perfect link): the higher the one, the higher the other, but the data cannot show which of them influences the other.
    The model fits the data acceptably (RMSEA .069, where 0 is perfect), but it was found by searching these same data, so new data should confirm it.
    """  # noqa: E501
    return [_found(result, n), *_linked(result, shared), _trust(result, stability)]


def _found(result: Result, n: str) -> str:
    graph = result.graph
    n_observed = len(graph.variables.indicators)
    if not graph.latents:
        return f"No hidden factors (latent variables) were found behind the {n_observed} variables measured in {n}."
    above = [group for group in graph.latent_groups if graph.levels[group[0]]]
    own = {group: items for group, items in result.indicators.items() if group not in above}
    largest = sorted(own, key=lambda group: -len(own[group]))
    shown = largest if len(largest) <= _FEW else largest[:_LARGEST]
    names = _called(result, [group for group in graph.latent_groups if group in shown])
    n_own = sum(len(group) for group in own)
    factors = f"{_counted(n_own)} hidden factor{'s' * (n_own != 1)} (latent variable{'s' * (n_own != 1)})"
    rest = f", among them {_and(names)}" if len(own) > len(shown) else f": {_and(names)}"
    start = f"How {n_observed} measured variables go together in {n} can be explained by {factors}"
    return f"{start}{rest}{_above(result, above)}."


def _above(result: Result, above: Sequence[tuple[str, ...]]) -> str:
    """The clause on latents above latents."""
    if not above:
        return ""
    facets = result.graph.facets
    if len(above) == 1:
        return f"; one broader factor, {above[0][0]}, stands behind {_and(facets[above[0][0]])}"
    if len(above) > _LARGEST:
        return f"; {_counted(len(above))} broader factors stand behind these"
    named = [f"{group[0]} behind {_and(facets[group[0]])}" for group in above]
    return f"; {_counted(len(above))} broader factors stand behind these, {'; '.join(named)}"


def _called(result: Result, groups: Sequence[tuple[str, ...]]) -> list[str]:
    """Latents by their names, with what the variable says that shows each most clearly.

    Where variables have no labels, those without a name get their two strongest indicators.
    """
    labels, loadings = result.sem.sample.labels, result.loadings
    rows = list(zip(loadings["latent"], loadings["indicator"], loadings["std"], strict=True))
    times = [item for items in result.indicators.values() for item in items]
    shared = {item for item in times if times.count(item) > 1}
    said, names = False, []
    for group in groups:
        # What points its way, and loads on nothing else where there is such.
        own = {x: std for latent, x, std in rows if latent == group[0] and x in labels and std > 0.0}
        label = labels[max(own, key=lambda x: (x not in shared, own[x]))] if len(group) == 1 and own else ""
        if label:
            names.append(
                f"{node(group)} ({'' if said else 'seen most clearly '}in “{cut(label.rstrip('. '), _LONGEST_LABEL)}”)"
            )
            said = True
        elif any(name in result.named_latents for name in group):
            names.append(node(group))
        else:
            names.append(f"{node(group)} ({', '.join(result.indicators[group][:2])})")
    return names


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
    only = len(variables.covariates) == 1, len(variables.outcomes) == 1
    cause = "the covariate {source} matters most for" if only[0] else "of the covariates, {source} matters most, for"
    effect = "the outcome {target} depends most on" if only[1] else "of the outcomes, {target} depends most on"
    for table, what in ((given, cause + " {target} ({std})"), (ends, effect + " {source} ({std})")):
        rows = table[table["std"].abs() <= 1.0]
        if len(rows):
            row = max(rows.to_dict(orient="records"), key=lambda entry: abs(entry["std"]))
            yield what.format(source=row["source"], target=row["target"], std=coefficient(row["std"]))


def _between_latents(result: Result) -> Iterator[str]:
    paths, graph = result.latent_paths, result.graph
    below = {name for facets in graph.facets.values() for name in facets}
    groups = [
        group for group in graph.latent_groups if group[0] not in below
    ]  # what is below a latent has no other links
    if len(groups) < 2:
        return
    of = {name: group for group in groups for name in group}
    ends = [(of.get(a), of.get(b)) for a, b in zip(paths["source"], paths["target"])]
    pairs = {frozenset(pair) for pair in ends if None not in pair and pair[0] != pair[1]}
    which = "factors that are not part of a broader one" if below else "factors"
    if not pairs:
        yield f"the {which} are not directly linked with one another"
        return
    n_all = len(groups) * (len(groups) - 1) // 2
    share = f"all {_counted(n_all)}" if len(pairs) == n_all else f"{_counted(len(pairs))} of the {_counted(n_all)}"
    are = "is" if len(pairs) == 1 else "are"
    alone = [None not in pair and all(len(group or ()) == 1 for group in pair) for pair in ends]
    single = paths[np.array(alone, dtype=bool)]
    if not len(single):
        yield "the two are directly linked" if n_all == 1 else f"{share} pairs of {which} {are} directly linked"
        return
    # Beyond 1 several causes pull against each other, and no single path can be interpreted.
    row = max(single.to_dict(orient="records"), key=lambda entry: (abs(entry["std"]) <= 1.0, abs(entry["std"])))
    if abs(row["std"]) > 1.0:
        yield f"{share} pairs of {which} {are} directly linked"
        return
    sign = "−" * (row["std"] < 0)
    scale = f", where {sign}1 would be a perfect link"
    two = f"{row['source']} and {row['target']}"
    start = (
        f"the factors {two} are directly linked" if n_all == 1 else f"{share} pairs of {which} {are} directly linked"
    )
    start += "" if n_all == 1 else f", {'namely' if len(pairs) == 1 else 'most closely'} {two}"
    sense = f"the higher the one, the {'lower' if sign else 'higher'} the other"
    cause = f"and in this model {row['source']} influences {row['target']}"
    if not row["directed"]:
        cause = "but the data cannot show which of them influences the other"
    yield f"{start} ({coefficient(row['std'])}{scale}): {sense}, {cause}"


def _trust(result: Result, stability: Stability | None) -> str:
    fit = result.reported
    rmsea = fit.rmsea if fit.robust is None else fit.rmsea_robust
    if not (fit.converged and fit.admissible):
        return f"Its figures are not to be relied on: {fit.status}."
    how = next((word for limit, word in _CLOSE if rmsea <= limit), "badly")
    start = f"The model fits the data {how} (RMSEA {rmsea:.3f}, where 0 is perfect)".replace("0.", ".", 1)
    if steep := paths_beyond_one(result):
        which = "a path beyond 1 shows" if len(steep) == 1 else "paths beyond 1 show"
        return (
            f"{start}, {'and' if how == 'badly' else 'but'} {which} that some of the factors overlap: do "
            "not rely on the paths between them."
        )
    if math.isinf(fit.sample.n):
        return f"{start}."
    if stability is not None and len(stability.edges):
        edges = stability.edges[stability.edges["in_graph"]]
        often = int((edges["frequency"] >= 0.8).sum())
        return (
            f"{start}, and {often} of its {len(edges)} connections came back in at least 80% of "
            f"{len(stability.outlines)} searches in resampled data; new data should confirm it."
        )
    but = "and" if how == "badly" else "but"
    return f"{start}, {but} it was found by searching these same data, so new data should confirm it."


def _counted(n: int) -> str:
    """A number as newspapers print it.

    >>> _counted(3), _counted(1200)
    ('three', '1,200')
    """
    return _NUMBERS[n] if n < len(_NUMBERS) else f"{n:,}"


def _and(names: Sequence[str]) -> str:
    return "".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"
