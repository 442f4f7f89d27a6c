"""Latents above latents, level by level: predicted blocks are fitted with all variables, and kept where they pay.

::

    measurement model ──► blocks that closed forms predict ──► each fitted, its top edges searched ──► the best
           ▲                                                                                            │
           └── one level more ◄── kept: better than edges by very strong evidence ◄─────────────────────┘

The score is that of edges between latents, and both are charged for having been chosen among so many graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unmeasured.arrays import Bools
from unmeasured.data.sample import Sample
from unmeasured.knowledge.rules import Paths
from unmeasured.models.solve import Check, Problem, is_over, never, solve
from unmeasured.search.budget import BUDGET
from unmeasured.search.hierarchy.blocks import (
    Blocks,
    LatentScore,
    Predicted,
    choice_of_blocks,
    choice_of_edges,
    promising,
)
from unmeasured.search.hierarchy.model import Raised, RaisedClass, RaisedModel, extended, raised_fit
from unmeasured.search.latent_graph.edges import LatentTest
from unmeasured.search.model import FactorModel, model_of_class
from unmeasured.search.score import BicScore, Fitted, GroupBic
from unmeasured.search.trace import Recorder, Steps


def raised_as_known(near: Fitted, blocks: Blocks, score: BicScore, paths: Paths) -> RaisedClass:
    """Common causes that are known, whatever they explain; this is not stopped, since there is no answer without."""
    latent_score = LatentScore(
        near.latent_cov, near.model.sizes, score.sample.n, score.dimension_penalty, score.penalty
    )  # fmt: skip
    raised = _fitted(near, latent_score(blocks), latent_score, score, never)
    test = LatentTest(raised, score, _paths_above(raised.model, paths), never)
    test.polish(test.starts[-1])
    assert test.best is not None  # polished above
    value = test.value - score.penalty * _choices(raised.model, test.best.model)
    return RaisedClass(raised, test.best.model, value)


def raise_levels(
    near: Fitted,
    graph: FactorModel,
    value: float,
    score: BicScore,
    paths: Paths,
    steps: Steps,
    check: Check,
    best: RaisedClass | None = None,
    most_levels: int | None = None,
) -> RaisedClass | None:
    """Latents above those of a measurement model, level by level; None where edges between them explain as much.

    Parameters
    ----------
    near : Fitted
        The measurement model, fitted with all groups connected.
    graph : FactorModel
        The same with the best class of edges between groups.
    value : float
        Its extended BIC.
    score : BicScore
        For the sample, the penalty and the prior.
    paths : Paths
        What is known of the edges between groups: a group with a path that is required, or forbidden in one
        direction, is below no common cause.
    best : RaisedClass, optional
        Common causes that are there already.
    most_levels : int, optional
        Levels of latents there are at most.
    """
    recorder, by_bic = Recorder(steps, score), value
    value -= score.penalty * choice_of_edges(graph.n_groups, graph.n_edges)
    known = paths.required | (paths.forbidden ^ paths.forbidden.T)
    bound = np.asarray((known | known.T).any(axis=0))
    if best is not None:
        near, value, by_bic = best.near, best.value, _by_bic(best, score)
    while True:
        if is_over(check) or (most_levels is not None and near.model.n_levels >= most_levels):
            return best
        found = _next_level(near, score, paths, bound, check)
        if found is None or found.value <= value + BUDGET.evidence_above:
            return best
        # Where one latent causes all others, a common cause that is next to the same as it has a parameter more and
        # explains nothing more: that there are fewer such models to choose among is no reason to have it.
        if _by_bic(found, score) < by_bic - BUDGET.margin:
            return best
        new = found.near.model.above[len(near.model.above) if isinstance(near, Raised) else 0 :]
        names = " and ".join(_in_words(found.near.model, nodes) for nodes in new)
        reason = f"{len(new)} above {sum(map(len, new))} latents; extended BIC {found.value - value:+.2f}"
        recorder.write(
            "Latents above latents", f"a common cause of {names}", value, found.value, reason,
            tolerance=BUDGET.least_rise,
        )  # fmt: skip
        best, value, near, by_bic = found, found.value, found.near, _by_bic(found, score)


def _by_bic(found: RaisedClass, score: BicScore) -> float:
    """The score without what is charged for choosing among so many graphs."""
    return found.value + score.penalty * _choices(found.near.model, found.graph)


def _next_level(near: Fitted, score: BicScore, paths: Paths, bound: Bools, check: Check) -> RaisedClass | None:
    """The best of the models with one more level that are worth a fit."""
    model = near.model
    latent_score = LatentScore(near.latent_cov, model.sizes, score.sample.n, score.dimension_penalty, score.penalty)
    top = model.top if isinstance(model, RaisedModel) else tuple(range(len(model.sizes)))
    may_join = [k for k in latent_score.singles if top[k] >= len(bound) or not bound[top[k]]]
    best: RaisedClass | None = None
    for predicted in promising(latent_score, may_join, check):
        raised = _fitted(near, predicted, latent_score, score, check)
        test = _polished(raised, score, _paths_above(raised.model, paths), check)
        if test.best is not None:
            value = test.value - score.penalty * _choices(raised.model, test.best.model)
            if best is None or value > best.value:
                best = RaisedClass(raised, test.best.model, value)
    return best


def _polished(near: Fitted, score: BicScore, paths: Paths, check: Check) -> LatentTest:
    """The latent graph of a model, climbed to from every start."""
    test = LatentTest(near, score, paths, check)
    for start in reversed(test.starts):
        test.polish(start)
    return test


def _choices(model: RaisedModel, graph: FactorModel) -> float:
    """What is charged for having chosen the latents above, level by level, and the graph over the top nodes."""
    cost = choice_of_edges(graph.n_groups, graph.n_edges)
    left = set(range(len(model.lower.sizes)))
    waiting = list(enumerate(model.above, start=len(left)))
    while waiting:
        level = [(node, below) for node, below in waiting if left.issuperset(below)]
        cost += choice_of_blocks(len(left), [below for _, below in level])
        left -= {k for _, below in level for k in below}
        left |= {node for node, _ in level}
        waiting = [entry for entry in waiting if entry not in level]
    return cost


def _paths_above(model: RaisedModel, paths: Paths) -> Paths:
    """What is known of the paths between top nodes."""
    n_groups, top = len(model.lower.sizes), model.top
    place = [(k, node) for k, node in enumerate(top) if node < n_groups]
    at, of = [k for k, _ in place], [node for _, node in place]
    free = Paths.free(len(top))
    for new, old in ((free.required, paths.required), (free.forbidden, paths.forbidden)):
        new[np.ix_(at, at)] = old[np.ix_(of, of)]
    return free


def _fitted(near: Fitted, predicted: Predicted, latents: LatentScore, score: BicScore, check: Check) -> Raised:
    """The whole model with all top nodes connected, fitted from what was predicted.

    With many variables it stays as predicted: graphs over the top nodes are then fitted with the measurement fixed.
    """
    model = extended(near.model, predicted.blocks)
    start = _start(near, model, predicted, latents)
    if len(model.observed) > BUDGET.most_at_once_above:
        return start
    pattern, x = start.start_along(model.arcs)
    problem = Problem(pattern, score.sample)
    (solution,) = solve(
        [problem], [x], gain=BUDGET.fit_gain, max_steps=BUDGET.most_steps, n_threads=score.n_threads, check=check
    )  # fmt: skip
    score.n_fitted += 1
    n, M = len(model.observed), model.n_latents
    effects = np.zeros((M, M + n))
    effects[pattern.source, pattern.target] = solution.x[:-n]
    value = -0.5 * score.sample.n * max(solution.discrepancy, 0.0)
    value -= score.dimension_penalty * score.dimension(model) + score.prior(model)
    none = np.zeros((0, 0), np.uint8)
    raised = raised_fit(model, effects, solution.x[-n:], value, 0.5 * score.sample.n * solution.predicted_gain, none)
    arcs, saved = GroupBic(raised.latent_cov, model.sizes, score.sample.n, score.dimension_penalty).predicted()
    return raised_fit(model, effects, solution.x[-n:], value + saved, raised.predicted, arcs)


def _start(near: Fitted, model: RaisedModel, predicted: Predicted, latents: LatentScore) -> Raised:
    """Effects and covariances of all latents to start from: those of the lower fit, and what is predicted above."""
    old = near.full_cov if isinstance(near, Raised) else near.latent_cov
    old_top = near.model.top_latents if isinstance(near, Raised) else np.arange(len(old))
    M, n, m = model.n_latents, len(model.observed), len(old)
    inside = [int(old_top[latents.at[k][0]]) for block in predicted.blocks for k in block]
    free = [int(i) for i in old_top if int(i) not in set(inside)]
    sd = np.sqrt(np.diag(old))
    cov = np.eye(M)
    cov[:m, :m] = old
    to_free = predicted.cov[: len(free), len(free) :]  # (free, t)
    between = predicted.cov[len(free) :, len(free) :]
    cov[m:, m:] = between
    cov[np.ix_(free, range(m, M))] = sd[free][:, None] * to_free
    position = 0
    for i, block in enumerate(predicted.blocks):
        own = inside[position : position + len(block)]
        position += len(block)
        # A latent of a block goes with other causes as its own cause does.
        cov[np.ix_(own, range(m, M))] = (sd[own] * predicted.loadings[i])[:, None] * between[i][None, :]
    cov[m:, :m] = cov[:m, m:].T
    effects = np.zeros((M, M + n))
    effects[:m, M:] = near.loadings
    return Raised(model, near.value, effects, near.noise, False, 0.0, model.arcs, cov)


def _in_words(model: RaisedModel, nodes: Sequence[int]) -> str:
    """Latents by their first indicators."""
    lower = model.lower
    n_groups = lower.n_groups

    def first(node: int) -> int:
        return node if node < n_groups else first(model.above[node - n_groups][0])

    return ", ".join(f"latents of {lower.group_name(first(node))}" for node in nodes)


def raise_population(
    sample: Sample, n_threads: int | None, steps: Steps, check: Check, measured: FactorModel
) -> RaisedClass | None:
    """The same for a population: as for a sample so large that chance is none. ``measured``: its latents, connected."""
    large = replace(sample, n=BUDGET.rows_of_population)
    score = BicScore(large, n_threads=n_threads, check=check)
    (near,) = score([model_of_class(measured.cpdag, [name for name in sample.names if name in measured.observed])])
    free = Paths.free(len(near.model.sizes))
    test = _polished(near, score, free, check)
    if test.best is None:  # matrices at the edge of arithmetic, where no fit has a likelihood
        return None
    return raise_levels(near, test.best.model, test.value, score, free, steps, check)
