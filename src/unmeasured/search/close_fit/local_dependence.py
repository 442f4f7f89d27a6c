"""Local dependence: pairs of items that share more than their latents.

Two items with the same words, or asked in the same way, go together beyond what they measure. A search that cannot say
so spends latents on them. Here a model that was found gets covariances of residuals, ``x1 ~~ x2``, where they pay::

    fit ──► modification index of every pair ──► the stronger half, no item twice ──► fit again ──► ... none pays
        ──► pairs whose Wald test no longer pays are taken out

There are q = p(p-1)/2 pairs, so each has to pay for having been picked among so many (extended BIC; Chen and Chen
2008): twice the log-likelihood has to rise by ``log N_eff + 2 log q``. With 25 items and N_eff = 364 that is a partial
correlation of about .2 that the latents leave unexplained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from unmeasured.arrays import Floats
from unmeasured.graphs import CPDAG
from unmeasured.models.fit import Fit, fit_many
from unmeasured.models.local_fit import indices_of_pairs, tests_of_pairs
from unmeasured.models.parameters import Pattern, pattern_of
from unmeasured.models.solve import Check, never
from unmeasured.search.budget import BUDGET

Pair = tuple[str, str]


def cost_of_a_pair(n_items: int, n_effective: float, penalty: float = 1.0) -> float:
    """By how much twice the log-likelihood has to rise for one pair.

    >>> round(cost_of_a_pair(25, 364), 1)
    17.3
    """
    return penalty * (math.log(n_effective) + 2.0 * math.log(max(n_items * (n_items - 1) // 2, 1)))


def with_residual_pairs(
    fit: Fit,
    n_effective: float,
    penalty: float = 1.0,
    *,
    needed: float = -math.inf,
    n_threads: int | None = None,
    check: Check = never,
) -> Fit:
    """The fit of a class with the residual pairs that pay at N_eff; the same fit where none does.

    A pair that would make the fit improper is not taken. Where what all pairs are worth by their score tests, less what
    they cost, would not come to what is ``needed``, the pairs found so far are all.
    """
    graph = fit.graph
    if not isinstance(graph, CPDAG) or math.isinf(fit.sample.n) or not fit.converged or fit.df <= 0:
        return fit
    cost, gained = cost_of_a_pair(len(graph.observed), n_effective, penalty), 0.0
    while True:
        check()
        least = cost * fit.sample.n / n_effective
        is_many = len(fit.sample.names) > BUDGET.most_partitioned
        indices = indices_of_pairs(fit, BUDGET.telling_part * least if is_many else 0.0)
        worth = sum(max(index - least, 0.0) for _, _, index in indices) * n_effective / fit.sample.n
        if gained + worth < needed:
            return fit
        chosen = _strongest(indices, least)
        better = None
        while chosen and better is None:
            trial = _fitted(fit, chosen, n_threads, check)
            rise = n_effective * (fit.solution.discrepancy - trial.solution.discrepancy)
            is_proper = trial.converged and (trial.admissible or not fit.admissible)
            if is_proper and rise > cost * len(chosen):
                better, gained = trial, gained + rise - cost * len(chosen)
            chosen = chosen[: len(chosen) // 2]
        if better is None:
            return _without_superfluous(fit, cost * fit.sample.n / n_effective, n_threads, check)
        fit = better


def _without_superfluous(fit: Fit, least: float, n_threads: int | None, check: Check) -> Fit:
    """The fit without pairs that have stopped paying since others came in: by their Wald tests, one at a time.

    A pair without which the model cannot be fitted stays.
    """
    while True:
        graph = fit.graph
        assert isinstance(graph, CPDAG)
        weak = [test for test in tests_of_pairs(fit) if test[2] ** 2 < least]
        if not weak:
            return fit
        check()
        gone = set(min(weak, key=lambda test: abs(test[2]))[:2])
        left = graph.with_pairs([pair for pair in graph.pairs if set(pair) != gone])
        start = start_from(fit, left)
        (less,) = fit_many([left], fit.sample, starts=[start], n_restarts=0, n_threads=n_threads, check=check)
        if not less.converged:  # what the pair held together is no start without it
            (less,) = fit_many([left], fit.sample, n_threads=n_threads, check=check)
        if not less.converged:
            return fit
        fit = less


def pairs_in_words(fit: Fit) -> str:
    """The residual pairs of a fit with their correlations, the strongest first."""
    table = residual_correlations(fit.parameters)
    shown = [f"{a} and {b} ({r:.2f})" for a, b, r in zip(table["item_1"], table["item_2"], table["std"], strict=True)]
    more = f" and {len(shown) - BUDGET.n_shown} more (result_.local_dependence)" if len(shown) > BUDGET.n_shown else ""
    return (
        f"Similar wording or method: {len(shown)} pair{'s' if len(shown) > 1 else ''} of items share more than their "
        f"latents explain, by residual correlation: {', '.join(shown[: BUDGET.n_shown])}{more}."
    )


def residual_correlations(table: pd.DataFrame) -> pd.DataFrame:
    """One row per residual pair of a table of parameters, the strongest first: ``item_1 item_2 est se ... std``."""
    rows = table[(table["op"] == "~~") & (table["lhs"] != table["rhs"])].drop(columns="op")
    rows = rows.rename(columns={"lhs": "item_1", "rhs": "item_2"})
    return rows.sort_values("std", key=lambda r: -r.abs(), kind="stable", ignore_index=True)


def _strongest(indices: Sequence[tuple[str, str, float]], least: float) -> list[Pair]:
    """The stronger half of the pairs that pay, strongest first, no item in two of them."""
    paying = [(a, b) for a, b, index in indices if index > least]
    chosen: list[Pair] = []
    used: set[str] = set()
    for a, b in paying:
        if len(chosen) < max(1, math.ceil(len(paying) / 2)) and not used & {a, b}:
            chosen.append((a, b))
            used |= {a, b}
    return chosen


def _fitted(fit: Fit, more: Sequence[Pair], n_threads: int | None, check: Check) -> Fit:
    """The same class with more pairs, started where the fit ended."""
    graph = fit.graph
    assert isinstance(graph, CPDAG)
    wider = graph.with_pairs([*graph.pairs, *more])
    start = start_from(fit, wider)
    (found,) = fit_many([wider], fit.sample, starts=[start], n_restarts=0, n_threads=n_threads, check=check)
    return found


def without_edges(cpdag: CPDAG, edges: Sequence[Pair]) -> CPDAG:
    """The same class with fewer loadings."""
    A = cpdag.adjacency.copy()
    for latent, item in edges:
        A[cpdag.variables.index(latent), cpdag.variables.index(item)] = 0
    return CPDAG(cpdag.variables, A, cpdag.latent_groups, cpdag.known)


def start_from(fit: Fit, other: CPDAG) -> Floats:
    """Where the fit of another class over the same variables begins: at the estimates of a fit, what is new at zero."""
    assert isinstance(fit.graph, CPDAG)
    known = dict(zip(_parameters(fit.problem.pattern), fit.solution.x.tolist(), strict=True))
    return np.array([known.get(parameter, 0.0) for parameter in _parameters(pattern_of(other))])


def _parameters(pattern: Pattern) -> list[Pair | frozenset[str]]:
    """Free parameters by name: an effect is a pair, a variance or a covariance a set."""
    ends = [(pattern.names[a], pattern.names[b]) for a, b in pattern.ends.tolist()]
    return [pair if is_path else frozenset(pair) for pair, is_path in zip(ends, pattern.is_path.tolist(), strict=True)]
