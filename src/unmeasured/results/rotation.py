"""From a fit whose groups may rotate to the same fit with the rotation of every group fixed.

The latents of a group of k are known only up to a rotation: its indicators absorb any change of basis. A program
that wants standard errors needs one basis. We take the one in which k pure indicators, the *reference indicators*,
form a triangle::

                item 1     item 2     item 3     others
        L1          *          *          *         *
        L2          0          *          *         *          zeros: k(k-1)/2, as many as a rotation has angles
        L3          0          0          *         *

Nothing is fitted again and nothing is lost: the estimates are rotated by the orthogonal matrix of a QR decomposition,
so the implied covariance stays what it was. The noise of the members has unit variance and is independent before and
after. Signs, which are free as well, follow the rule of :mod:`unmeasured.models.signs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.linalg import qr

from unmeasured.arrays import Floats
from unmeasured.errors import ModelError
from unmeasured.graphs import CPDAG, DAG, LatentGroups
from unmeasured.graphs.protocols import Groups
from unmeasured.models.fit import Fit
from unmeasured.models.parameters import Model, Pattern, model_of
from unmeasured.models.signs import with_signs
from unmeasured.models.solve import Problem

ReferenceIndicators = Mapping[tuple[str, ...], tuple[str, ...]]


def rotated(
    fit: Fit, groups: Groups, sign_indicators: Mapping[str, str] | None = None
) -> tuple[Fit, ReferenceIndicators]:
    """The fit of a graph in the basis of its reference indicators, and those of each group of several latents.

    ``sign_indicators`` names for some latents an indicator whose loading is positive.
    """
    dag = member_of(fit)
    reference_indicators = choose_reference_indicators(fit, groups)
    zeros = zero_loadings(reference_indicators)
    model = model_of(dag)
    rows = tuple(replace(p, fixed=0.0) if (p.source, p.target) in zeros else p for p in model.parameters)
    held = Model(model.names, model.latents, rows, covariates=model.covariates)
    problem = Problem.of(held.pattern, fit.sample)
    F, Omega = _in_order(fit, _rotation(fit, reference_indicators), problem.pattern)
    x = read_parameters(problem.pattern, F, Omega) / problem.pattern.unit(problem.scale)
    # Free entries of Omega come last and are the same ones in both; only they have bounds.
    n_paths = int(problem.pattern.is_path.sum())
    lower = np.concatenate([np.full(n_paths, -np.inf), fit.solution.lower[n_paths - len(x) :]])
    turned = replace(fit, graph=held, problem=problem, solution=replace(fit.solution, x=x, lower=lower))
    return with_signs(turned, sign_indicators), reference_indicators


def choose_reference_indicators(fit: Fit, groups: Groups) -> ReferenceIndicators:
    """For each group of k > 1 latents k pure indicators whose loadings are large and point in different directions.

    A group with fewer pure indicators gets none: its rotation stays open.
    """
    pure = LatentGroups(member_of(fit), groups)
    reference_indicators = {}
    for group in groups:
        children = pure.pure_children(group)
        if 1 < len(group) <= len(children):
            block = _block(fit, group, children) / [fit.sample.sd[fit.sample.names.index(x)] for x in children]
            order = qr(block, mode="r", pivoting=True)[1]
            reference_indicators[group] = tuple(children[i] for i in order[: len(group)])
    return reference_indicators


def zero_loadings(reference_indicators: ReferenceIndicators) -> set[tuple[str, str]]:
    """The triangle of zeros: the j-th latent of a group has none of the first j reference indicators (from 0).

    >>> sorted(zero_loadings({("A", "B"): ("x", "y")}))
    [('B', 'x')]
    """
    return {
        (latent, x)
        for group, chosen in reference_indicators.items()
        for j, latent in enumerate(group)
        for x in chosen[:j]
    }


def member_of(fit: Fit) -> DAG:
    """The DAG that was fitted."""
    if isinstance(fit.graph, Model):
        raise ModelError("Only the fit of a graph has groups to turn; this one is of model text.")
    return fit.graph.member() if isinstance(fit.graph, CPDAG) else fit.graph


def _block(fit: Fit, group: tuple[str, ...], children: tuple[str, ...]) -> Floats:
    """Loadings (k, number of children) of some indicators on a group."""
    place = {name: i for i, name in enumerate(fit.causal_order)}
    return fit.F[np.ix_([place[g] for g in group], [place[x] for x in children])]


def _rotation(fit: Fit, reference_indicators: ReferenceIndicators) -> Floats:
    """(d, d) orthogonal: new latents are Q times the old ones, observed variables stay."""
    place = {name: i for i, name in enumerate(fit.causal_order)}
    Q = np.eye(len(place))
    for group, chosen in reference_indicators.items():
        index = [place[name] for name in group]
        Q[np.ix_(index, index)] = np.linalg.qr(_block(fit, group, chosen))[0].T
    return Q


def _in_order(fit: Fit, Q: Floats, pattern: Pattern) -> tuple[Floats, Floats]:
    """F and Omega of the rotated variables, in the causal order of the pattern."""
    order = [fit.causal_order.index(name) for name in pattern.names]
    F, Omega = Q @ fit.F @ Q.T, Q @ fit.Omega @ Q.T
    return F[np.ix_(order, order)], Omega[np.ix_(order, order)]


def read_parameters(pattern: Pattern, F: Floats, Omega: Floats) -> Floats:
    """(p,) the free entries of F and Omega, the reverse of ``pattern.matrices``."""
    x = np.empty(pattern.n_free)
    free, free2 = pattern.slot >= 0, pattern.slot2 >= 0
    x[pattern.slot[free]] = F[pattern.source[free], pattern.target[free]]
    x[pattern.slot2[free2]] = Omega[pattern.first[free2], pattern.second[free2]]
    return x
