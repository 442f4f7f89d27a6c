"""What a search hands back: the class, its fit, the way there, and what there is to remark in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unmeasured.data.sample import Sample
from unmeasured.errors import SearchStopped
from unmeasured.graphs import CPDAG, DAG
from unmeasured.models.fit import Fit, fit_many
from unmeasured.models.indices import p_value
from unmeasured.models.rank import rank_shortfall
from unmeasured.remarks import distrust
from unmeasured.search.budget import BUDGET
from unmeasured.search.clock import Clock
from unmeasured.search.item_partitions import ItemPartition
from unmeasured.search.trace import Trace

_NO_ERRORS = "Standard errors were not computed: there was no time left for them."


@dataclass(frozen=True)
class RunnerUp:
    """A class that came close: its graph, its score, and how far that is below the best."""

    graph: CPDAG
    score: float
    difference: float
    dimension: int


@dataclass(frozen=True)
class Discovery:
    """What a search found: the class, a fit of one of its members, the way there, and remarks in words."""

    cpdag: CPDAG
    fit: Fit
    trace: Trace
    remarks: tuple[str, ...] = ()
    runners_up: tuple[RunnerUp, ...] = ()
    named_latents: tuple[str, ...] = ()  # latents whose names were given
    stopped: str = ""  # why the search did not come to its end, where it did not
    interrupted: bool = False  # by Ctrl-C: the best so far
    partitions: tuple[ItemPartition, ...] = ()  # of the items, the most latents first
    selected_partition: int = 0  # the number of the one reported first
    tolerance: float = 0.0  # in units of RMSEA: what the model may be off
    by_group: Mapping[str, Fit] = field(default_factory=dict)  # of groups of people, where there are several

    def remarking(self, *remarks: str) -> Discovery:
        """The same with more remarks, after the one that it was stopped."""
        n_first = 1 if self.stopped else 0
        return replace(self, remarks=(*self.remarks[:n_first], *remarks, *self.remarks[n_first:]))


def is_rejected(fit: Fit) -> bool:
    """Whether the misfit of a model is far beyond chance."""
    return fit.df > 0 and fit.pvalue < BUDGET.rejected


def independent_variables(sample: Sample) -> tuple[str, ...]:
    """Variables that share nothing with any other: they have no latent cause that data could show."""
    n = len(sample.names)
    alone = []
    for j, name in enumerate(sample.names):
        shortfall = rank_shortfall(sample.corr, [j], 0)
        shared = (
            shortfall > BUDGET.shares_nothing
            if math.isinf(sample.n)
            else p_value(2.0 * sample.n * shortfall, n - 1) < BUDGET.alone
        )
        if not shared:
            alone.append(name)
    return tuple(alone)


def nothing_latent(sample: Sample, trace: Trace = Trace()) -> Discovery:  # noqa: B008 (an empty tuple)
    """The answer where no latent stands behind anything: the observed variables, unconnected, and the reason."""
    empty = DAG.from_edges([], names=sample.names).cpdag()
    (fit,) = fit_many([empty], sample)
    reason = (
        "no variable depends on another beyond chance"
        if len(independent_variables(sample)) > len(sample.names) - 2
        else "no set of variables passed as the indicators of a latent, so none is reported"
    )
    return Discovery(empty, fit, trace, (distrust(f"No latent variables were found: {reason}."),))


def nothing_found(sample: Sample, clock: Clock, trace: Trace) -> Discovery:
    """The answer that there are no latents; refused where the search did not come to its end."""
    if clock.stopped:
        error = SearchStopped(
            f"{clock.stopped}, before a first model was found: whether there are latents behind these variables is not "
            "known yet. Give the search more time, or fewer variables."
        )
        error.is_interrupted = clock.is_interrupted
        raise error
    return nothing_latent(sample, trace)


def stopped_in_words(clock: Clock, *fits: Fit) -> str:
    """That a search did not come to its end, and what its answer is; empty where it did."""
    if not clock.stopped:
        return ""
    stopped = f"{clock.stopped}: this is the best model found so far, not the end of the search."
    stopped += "" if all(fit.converged for fit in fits) else " Its estimates have not converged."
    return stopped + (f" {_NO_ERRORS}" if any(fit.is_cut_short for fit in fits) else "")


def remarks_in_all(cpdag: CPDAG, fit: Fit, clock: Clock, unplaced: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Why the search was stopped, where it was, and all remarks, that one first."""
    remarks = [*remarks_on(cpdag, bool(clock.stopped)), *remarks_on_leftover(unplaced)]
    remarks += remarks_on_fit(fit) if fit.converged or not clock.stopped else []
    stopped = stopped_in_words(clock, fit)
    remarks += [_NO_ERRORS] if fit.is_cut_short and not stopped else []
    return stopped, (distrust(stopped), *remarks) if stopped else tuple(remarks)


def with_isolated(cpdag: CPDAG, observed: Sequence[str]) -> CPDAG:
    """The same class over all observed variables; those not in it stand alone."""
    if set(cpdag.observed) == set(observed):
        return cpdag
    member = cpdag.member()
    names = (*cpdag.latents, *observed)
    whole = DAG.from_edges(member.edges, latents=member.latents, names=names)
    A = np.zeros((len(names), len(names)), dtype=np.uint8)
    position = [names.index(name) for name in cpdag.names]
    A[np.ix_(position, position)] = cpdag.adjacency
    return CPDAG(whole.variables, A, cpdag.latent_groups)


def remarks_on(cpdag: CPDAG, is_stopped: bool = False) -> list[str]:
    """What to say of variables that load on no latent; a search that was stopped has not looked at them to the end."""
    member = cpdag.member()
    alone = ", ".join(x for x in member.variables.indicators if not member.parents(x))
    if not alone:
        return []
    if is_stopped:
        return [f"Not assigned to a latent before the search was stopped: {alone}."]
    return [f"Independent of all others, and so without a latent cause: {alone}."]


def remarks_on_leftover(leftover: Sequence[str]) -> list[str]:
    """What to tell of variables Phase 1 could not place."""
    if not leftover:
        return []
    return [
        distrust(
            f"No small set of latents explains {', '.join(leftover)}: all latents found are given as parents "
            "(a variable that loads on everything, or too small a tolerance)."
        )
    ]


def remarks_on_fit(fit: Fit) -> list[str]:
    """What to tell of a model that says nothing, or not what the data say."""
    if fit.df == 0:
        told = (
            "The model found is saturated: it fits any data, so its fit is no evidence for it. Measure more indicators."
        )
        return [distrust(told)]
    remarks: list[str] = []
    if math.isfinite(fit.sample.n) and fit.chi2 > fit.df * math.log(fit.sample.n):
        remarks.append(
            distrust(
                "BIC prefers the saturated model, in which every covariance is free, to the model found: a few latents "
                "do not explain the data. Look at the largest residuals, or leave out variables that load on all "
                "latents."
            )
        )
    if fit.rmsea > BUDGET.bad_rmsea:
        remarks.append(
            distrust(
                f"The model found fits badly (RMSEA {fit.rmsea:.3f}): these variables may not be indicators of a few "
                "latents. Look for variables that load on all latents, or leave some out."
            )
        )
    return remarks
