"""Which entries of F and Omega a model sets free, and how latents get their scale.

A :class:`Model` is a list of :class:`Parameter` rows over named variables, nothing else; model text
(:mod:`unmeasured.models.lavaan`) and graphs (:func:`model_of`) both end here. Its :class:`Pattern` is the same
in arrays, variables in causal order: what the compiled core reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Literal

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.errors import ModelError, listing
from unmeasured.graphs import CPDAG, DAG

Operator = Literal["=~", "~", "~~", "~1"]
LatentScale = Literal["variance", "first-indicator"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One row of a model: a loading, a path, a (co)variance or an intercept, free or fixed to a value.

    ``=~`` and ``~`` are entries of F, the effect of ``source`` on ``target``; ``~~`` is an entry of Omega; ``~1`` is
    the intercept of ``source``, which is also its ``target``. Rows with the same label are equal.
    """

    op: Operator
    source: str
    target: str
    fixed: float | None = None
    label: str | None = None

    @property
    def lhs(self) -> str:
        """The left side as lavaan writes it: the latent of a loading, the effect of a path."""
        return self.target if self.op == "~" else self.source

    @property
    def rhs(self) -> str:
        """The right side as lavaan writes it: the indicator of a loading, the cause of a path."""
        if self.op == "~1":
            return ""
        return self.source if self.op == "~" else self.target

    @property
    def text(self) -> str:
        """The row as model text has it, without value and label."""
        return f"{self.lhs} ~ 1" if self.op == "~1" else f"{self.lhs} {self.op} {self.rhs}"


@dataclass(frozen=True)
class Model:
    """A directed linear model with latents: names, roles, and one row for every entry that is not zero.

    ``defined`` are quantities computed from labelled rows, as ``(name, expression)``.
    ``intercepts`` are those that were stated; where means are modelled, the other observed variables have free ones and
    the other latents none.
    ``covariates`` are observed causes that the model is conditioned on: their covariances are free, and neither they
    nor their likelihood count (lavaan's ``fixed.x``).
    """

    names: tuple[str, ...]
    latents: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    intercepts: tuple[Parameter, ...] = ()
    defined: tuple[tuple[str, str], ...] = ()
    covariates: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def observed(self) -> tuple[str, ...]:
        """The observed variables, in the order of ``names``."""
        latent = set(self.latents)
        return tuple(name for name in self.names if name not in latent)

    @cached_property
    def pattern(self) -> Pattern:
        """The arrays of this model, for the compiled core."""
        return _pattern_of(self)

    @property
    def n_free(self) -> int:
        """How many parameters are free; not the dimension of the model, which may be smaller."""
        return sum(p.fixed is None for p in self.parameters)

    @property
    def has_equalities(self) -> bool:
        """Whether two free parameters have the same label."""
        labels = [p.label for p in (*self.parameters, *self.intercepts) if p.fixed is None and p.label is not None]
        return len(set(labels)) < len(labels)


@dataclass(frozen=True, eq=False)
class Pattern:
    """A model in arrays: nodes are positions in causal order, ``slot`` points into the parameter vector.

    The pattern of a :class:`Model` numbers the free entries of F, then those of Omega, in the order of the
    model's rows. ``slot`` is -1 where an entry is fixed.
    """

    names: tuple[str, ...]  # in causal order: causes first
    observed: Ints  # (n,) node of each observed variable, in the order of Model.observed
    source: Ints  # (E,) edges, sorted by source
    target: Ints
    slot: Ints
    fixed: Floats
    first: Ints  # (Q,) entries of Omega, first <= second
    second: Ints
    slot2: Ints
    fixed2: Floats

    @property
    def n_nodes(self) -> int:
        return len(self.names)

    @cached_property
    def observed_names(self) -> tuple[str, ...]:
        """Names of the observed variables, in the order of ``observed``."""
        return tuple(self.names[i] for i in self.observed.tolist())

    @cached_property
    def is_observed(self) -> Bools:
        """(d,) which nodes are observed."""
        mask = np.zeros(self.n_nodes, dtype=bool)
        mask[self.observed] = True
        return mask

    @cached_property
    def n_free(self) -> int:
        return int(np.count_nonzero(self.slot >= 0) + np.count_nonzero(self.slot2 >= 0))

    @cached_property
    def is_variance(self) -> Bools:
        """(p,) which parameters are variances, and so bounded from below."""
        mask = np.zeros(self.n_free, dtype=bool)
        mask[self.slot2[(self.slot2 >= 0) & (self.first == self.second)]] = True
        return mask

    @cached_property
    def is_path(self) -> Bools:
        """(p,) which parameters are entries of F; the others are entries of Omega."""
        mask = np.zeros(self.n_free, dtype=bool)
        mask[self.slot[self.slot >= 0]] = True
        return mask

    @cached_property
    def ends(self) -> Ints:
        """(p, 2) the two nodes of each parameter: source and target, or the two of a covariance."""
        ends = np.empty((self.n_free, 2), dtype=np.int64)
        free = self.slot >= 0
        ends[self.slot[free]] = np.column_stack([self.source[free], self.target[free]])
        free = self.slot2 >= 0
        ends[self.slot2[free]] = np.column_stack([self.first[free], self.second[free]])
        return ends

    @property
    def rows(self) -> tuple[Ints, Ints]:
        """(p,) rows u and v of [T; C] by which each parameter moves Sigma (:mod:`unmeasured.kernels.likelihood`)."""
        # An edge i -> j moves Sigma by u_j (a row of T) and v_i (a row of C, which lies below T).
        return self.ends[:, 1], self.ends[:, 0] + np.where(self.is_path, self.n_nodes, 0)

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """The five sizes the batch kernel cuts its flat arrays by."""
        return self.n_nodes, len(self.observed), self.n_free, len(self.source), len(self.first)

    @property
    def ints(self) -> tuple[Ints, ...]:
        """All index arrays, in the order ``fit_batch`` reads them."""
        return self.observed, self.source, self.target, self.slot, self.first, self.second, self.slot2

    def scaled(self, scale: Floats) -> tuple[Floats, Floats]:
        """Fixed entries of F and of Omega on variables divided by ``scale`` (d,)."""
        fixed = self.fixed * scale[self.source] / scale[self.target]
        return fixed, self.fixed2 / (scale[self.first] * scale[self.second])

    def unit(self, scale: Floats) -> Floats:
        """(p,) what one unit of each parameter on scaled variables is worth on the original ones."""
        a, b = scale[self.ends[:, 0]], scale[self.ends[:, 1]]
        return np.where(self.is_path, b / a, a * b)

    def matrices(self, x: Floats) -> tuple[Floats, Floats]:
        """F and Omega (d, d) at the parameter vector x, nodes in causal order."""
        F = np.zeros((self.n_nodes, self.n_nodes))
        Omega = np.zeros_like(F)
        F[self.source, self.target] = np.where(self.slot >= 0, x[self.slot], self.fixed)
        value = np.where(self.slot2 >= 0, x[self.slot2], self.fixed2)
        Omega[self.first, self.second] = value
        Omega[self.second, self.first] = value
        return F, Omega


def causal_order(names: Sequence[str], edges: Sequence[tuple[int, int]]) -> list[int]:
    """Positions sorted so that causes come first; a cyclic model is refused with the names on its cycle.

    >>> causal_order(["x", "f"], [(1, 0)])
    [1, 0]
    """
    waiting = [0] * len(names)
    children: list[list[int]] = [[] for _ in names]
    for i, j in edges:
        waiting[j] += 1
        children[i].append(j)
    order = [i for i in range(len(names)) if not waiting[i]]
    for i in order:  # grows while we walk it
        for j in children[i]:
            waiting[j] -= 1
            if not waiting[j]:
                order.append(j)
    if len(order) < len(names):
        stuck = [names[i] for i in range(len(names)) if i not in set(order)]
        raise ModelError(
            f"The model has a cycle among {listing(stuck)}. Only models without cycles can be fitted: drop a path."
        )
    return order


def model_of(graph: DAG | CPDAG) -> Model:
    """The linear model of a graph: edges and residual pairs free, residual variances of latents fixed to 1.

    A latent without observed children is measured by latents, ``trait =~ facet``; see :mod:`unmeasured.graphs.levels`.
    A CPDAG stands for its consistent extension; all members have the same likelihood.
    Covariates covary freely, and an outcome is explained by paths (``~``), not by loadings.

    >>> dag = DAG.from_edges([("L", "a"), ("L", "b"), ("L", "c")], latents=["L"])
    >>> [f"{p.lhs} {p.op} {p.rhs}" for p in model_of(dag).parameters][:3]
    ['L =~ a', 'L =~ b', 'L =~ c']
    """
    dag = graph.member() if isinstance(graph, CPDAG) else graph
    latent, covariates = set(dag.latents), dag.variables.covariates
    indicators = set(dag.variables.indicators)
    measures = {(s, t) for s, t in dag.edges if s in latent and t in indicators}
    measures |= {(above, below) for above, facets in dag.facets.items() for below in facets}
    rows = [Parameter("=~" if edge in measures else "~", *edge) for edge in dag.edges]
    rows.sort(key=lambda p: p.op == "~")  # loadings first, as lavaan lists them; the sort is stable
    rows += [Parameter("~~", x, x) for x in dag.observed]
    rows += [Parameter("~~", x, x, 1.0) for x in dag.latents]
    rows += [Parameter("~~", a, b) for a, b in (*dag.pairs, *combinations(covariates, 2))]
    return Model(dag.names, dag.latents, tuple(rows), covariates=covariates)


def with_shared_values(models: Sequence[Model]) -> tuple[Model, ...]:
    """The models of all groups, in which free rows that share their label with a fixed one are fixed to its value.

    Raises
    ------
    ModelError
        Where rows of one label are fixed to different values.

    >>> rows = (Parameter("=~", "f", "x", 1.0, "a"), Parameter("=~", "f", "y", None, "a"))
    >>> with_shared_values([Model(("f", "x", "y"), ("f",), rows)])[0].parameters[1].fixed
    1.0
    """
    values: dict[str, tuple[float, Parameter]] = {}
    for p in (p for model in models for p in (*model.parameters, *model.intercepts)):
        if p.label is None or p.fixed is None:
            continue
        value, first = values.setdefault(p.label, (p.fixed, p))
        if value != p.fixed:
            raise ModelError(
                f"The label {p.label!r} stands for two values: '{first.text}' is fixed to {value:g}, '{p.text}' to "
                f"{p.fixed:g}. Give them different labels."
            )

    def valued(p: Parameter) -> Parameter:
        if p.fixed is not None or p.label not in values:
            return p
        value, first = values[p.label]
        if value < 0 and p.op == "~~" and p.source == p.target:
            raise ModelError(
                f"The label {p.label!r} makes the variance '{p.text}' equal to '{first.text}', which is fixed to "
                f"{value:g}; a variance cannot be negative."
            )
        return replace(p, fixed=value)

    if not values:
        return tuple(models)
    return tuple(
        replace(m, parameters=tuple(map(valued, m.parameters)), intercepts=tuple(map(valued, m.intercepts)))
        for m in models
    )


def markers_of(model: Model) -> dict[str, tuple[str, float]]:
    """Latents whose scale is that of one loading, fixed while their variance is free: that indicator and the value."""
    variance = {p.source: p for p in model.parameters if p.op == "~~" and p.source == p.target}
    markers = {}
    for name in model.latents:
        fixed = [p for p in model.parameters if p.op == "=~" and p.source == name and p.fixed is not None]
        if len(fixed) == 1 and fixed[0].fixed and name in variance and variance[name].fixed is None:
            markers[name] = (fixed[0].target, fixed[0].fixed)
    return markers


def scaled_by_variance(model: Model) -> Model:
    """The covariance structure without labels, latents scaled by their variance: fits go astray less often so."""
    markers = markers_of(model)
    rows = []
    for p in model.parameters:
        row = replace(p, label=None)
        if p.op == "=~" and p.source in markers and p.target == markers[p.source][0]:
            row = replace(row, fixed=None)
        elif p.op == "~~" and p.source == p.target and p.source in markers:
            row = replace(row, fixed=1.0)
        rows.append(row)
    return Model(model.names, model.latents, tuple(rows), covariates=model.covariates)


def pattern_of_effects(names: tuple[str, ...], observed: Ints, source: Ints, target: Ints, own: Ints) -> Pattern:
    """Every effect free; the nodes ``own`` have free residual variances, in this order, and the others one of 1."""
    slot, fixed, nodes, slot2, fixed2 = _places(len(source), len(names), own.tobytes())
    pattern = Pattern(names, observed, source, target, slot, fixed, nodes, nodes, slot2, fixed2)
    pattern.__dict__["n_free"] = len(source) + len(own)  # what the cached property would count
    return pattern


@lru_cache(maxsize=1024)
def _places(n_edges: int, n_nodes: int, own: bytes) -> tuple[Ints, Floats, Ints, Ints, Floats]:
    """What patterns with as many effects share: their places in the parameter vector, and the residual variances."""
    free = np.frombuffer(own, dtype=np.int64)
    nodes = np.concatenate([free, np.setdiff1d(np.arange(n_nodes), free)])
    is_own = np.arange(n_nodes) < len(free)
    slot2 = np.where(is_own, n_edges + np.arange(n_nodes), -1)
    return np.arange(n_edges), np.zeros(n_edges), nodes, slot2, (~is_own).astype(float)


def pattern_of(graph: DAG | CPDAG | Model) -> Pattern:
    """The pattern of a graph, straight from its matrix: the same as that of :func:`model_of`, sooner."""
    if isinstance(graph, Model):
        return graph.pattern
    if not isinstance(graph, DAG | CPDAG):
        raise ModelError(f"A model is lavaan text, a DAG, a CPDAG or a Model; got a {type(graph).__name__}.")
    dag = graph.member() if isinstance(graph, CPDAG) else graph
    latent = np.array(dag.variables.latent, dtype=bool)
    order = np.array(dag.topological_order, dtype=np.int64)
    node = np.empty_like(order)
    node[order] = np.arange(len(order))
    source, target = dag.adjacency.nonzero()
    # The rows of model_of: loadings, paths, variances (those of latents fixed to 1), residual pairs, pairs of
    # covariates.
    indicators = set(dag.variables.indicators)
    measures = latent[:, None] & np.array([name in indicators for name in dag.names], dtype=bool)
    for above, facets in dag.facets.items():
        measures[dag.variables.index(above), [dag.variables.index(below) for below in facets]] = True
    rows = np.argsort(~measures[source, target], kind="stable")
    slot = np.empty_like(rows)
    slot[rows] = np.arange(len(rows))
    by_source = np.argsort(node[source], kind="stable")
    observed, hidden = node[~latent], node[latent]
    variance = np.concatenate([observed, hidden])
    n, m, n_edges = len(observed), len(hidden), len(source)
    covary = [*dag.pairs, *combinations(dag.variables.covariates, 2)]
    pairs = node[np.array([[dag.variables.index(name) for name in pair] for pair in covary], dtype=np.int64)]
    pairs = np.sort(pairs.reshape(-1, 2), axis=1)
    return Pattern(
        names=tuple(dag.names[i] for i in dag.topological_order),
        observed=observed,
        source=node[source[by_source]],
        target=node[target[by_source]],
        slot=slot[by_source],
        fixed=np.zeros(n_edges),
        first=np.concatenate([variance, pairs[:, 0]]),
        second=np.concatenate([variance, pairs[:, 1]]),
        slot2=np.concatenate([np.arange(n_edges, n_edges + n), np.full(m, -1), n_edges + n + np.arange(len(pairs))]),
        fixed2=np.concatenate([np.zeros(n), np.ones(m), np.zeros(len(pairs))]),
    )


def _pattern_of(model: Model) -> Pattern:
    # Plain lists to the end: with tens of entries they are several times faster than arrays.
    position = {name: i for i, name in enumerate(model.names)}
    paths = [p for p in model.parameters if p.op != "~~"]
    covs = [p for p in model.parameters if p.op == "~~"]
    order = causal_order(model.names, [(position[p.source], position[p.target]) for p in paths])
    node = {model.names[i]: k for k, i in enumerate(order)}

    count = iter(range(len(model.parameters)))
    edges = [(node[p.source], node[p.target], _slot(p, count), p.fixed or 0.0) for p in paths]
    edges.sort(key=lambda edge: edge[0])
    entries = []
    for p in covs:
        a, b = node[p.source], node[p.target]
        entries.append((min(a, b), max(a, b), _slot(p, count), p.fixed or 0.0))
    source, target, slot, fixed = _columns(edges)
    first, second, slot2, fixed2 = _columns(entries)
    return Pattern(
        names=tuple(model.names[i] for i in order),
        observed=np.array([node[name] for name in model.observed], dtype=np.int64),
        source=source,
        target=target,
        slot=slot,
        fixed=fixed,
        first=first,
        second=second,
        slot2=slot2,
        fixed2=fixed2,
    )


def _slot(p: Parameter, count: Iterator[int]) -> int:
    return next(count) if p.fixed is None else -1


def _columns(rows: list[tuple[int, int, int, float]]) -> tuple[Ints, Ints, Ints, Floats]:
    a, b, c, d = zip(*rows, strict=True) if rows else ((), (), (), ())
    integers = np.array([a, b, c], dtype=np.int64)
    return integers[0], integers[1], integers[2], np.array(d, dtype=float)
