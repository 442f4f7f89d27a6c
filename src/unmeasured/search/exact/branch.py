"""Exact search: every class of generalized N factor models, with a bound that spares nearly all of them.

::

    8 observed variables, N = 1000, the paper's coefficients:

    14,011 measurement models   →   some hundred   →   20 to 200 of 144,253 classes   →   the best ten
                          quick bound           full bound                       fits

**The bound.** Let A and B be disjoint sets of observed variables. If a class asks that Cov(A, B) has rank k or
less, the regression of A on B has rank k or less, and the best log-likelihood of A *given* B falls short of the
unconstrained one by

    LR_k(A, B) = -1/2 sum of log(1 - rho_i^2)    over the canonical correlations of A and B but the k largest

per sample, whatever the class says about B. The likelihood of A and B is that of A given B times that of B, so
the shortfall V(Y) of a set of variables Y obeys

    V(Y)  >=  LR_k(A, B) + V(B)     for every split of Y into A and B, with k the rank of Cov(A, B) in the class,
    V(Y)  >=  V(Y without x)

and the best chain of splits is found by going through all subsets of all subsets, 3^n in all. This is a sum of
rank constraints where :mod:`unmeasured.models.rank` has one of them. It never lies and needs no fit. On data that a
factor model made it is most of the shortfall that a fit finds for a wrong class (median .7 to .99 over data sets); on
data that none made, a quarter to a half. Ranks come from trek separation (Sullivant, Talaska and Draisma 2010;
:func:`cut_sizes`).

**The order.** Best first, by the score a class could have at best: that of its bound and its dimension, which is
known (:func:`unmeasured.search.exact.enumerate.dimensions`). The search ends when nothing that is left could enter the
list of the best.

**What is proven.** That no class ruled out belongs into the list; no fit is used to rule out another class. The
scores in the list are those of fits, and a fit that ends in a lesser optimum from all its starts goes unnoticed, as
everywhere in maximum likelihood.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.data.sample import Sample
from unmeasured.graphs.bitsets import adjacency_of
from unmeasured.kernels.likelihood import compiled, inner
from unmeasured.models.fit import Fit, fit_many
from unmeasured.models.indices import log_likelihood
from unmeasured.models.solve import Check, never
from unmeasured.search.exact.enumerate import (
    MeasurementTable,
    SmallInts,
    dimensions,
    latent_classes,
    measurement_table,
    n_latent_classes,
    partitions_of_groups,
)
from unmeasured.search.model import FactorModel

MOST_OBSERVED = 10
# A population fits a class when no more than this is missing from the log-likelihood per sample.
FITS = 1e-7
# Scores closer than this are ties: the optimum of a fit is not known better.
TIE = 1e-5
# Rounding in LR_k, as a part of the condition number of the correlations; seen: a tenth of this.
_ROUNDING = 1e-15
# Fits in one compiled batch: enough to hide the overhead, few enough that each batch profits from the last.
_BATCH = 16


# ------------------------------------------------------------------------------------------------- the bound


@dataclass(frozen=True, eq=False)
class RankTable:
    """``LR_k(A, B)`` for all disjoint sets of observed variables, and the best of them against all the rest."""

    code: Ints  # (2^n,) a set as a number in base 3 with digits 0 and 1
    loss: Floats  # (3^n, K) LR_k(A, B) at code[A] + 2 code[B]
    against_rest: Floats  # (2^n, K + 1) the largest LR_k(A', all but A') over the subsets A' of A
    log_det: Floats  # (2^n,) log determinant of the correlations of A
    rounding: float  # what LR_k was lowered by, so that rounding does not make the bound lie

    @classmethod
    def of(cls, S: Floats) -> RankTable:
        """The table of a correlation matrix."""
        n = len(S)
        place = np.arange(n)
        subsets = (np.arange(1 << n)[:, None] >> place) & 1
        code = subsets @ 3**place
        rounding = _ROUNDING * float(np.linalg.cond(S))
        loss = _losses(S, (np.arange(3**n)[:, None] // 3**place) % 3, max(n // 2, 1))
        loss = np.maximum(loss - rounding, 0.0)
        best = np.zeros((1 << n, loss.shape[1] + 1))
        best[:, :-1] = loss[code + 2 * code[::-1]]
        for x in range(n):
            with_x = np.flatnonzero(subsets[:, x])
            best[with_x] = np.maximum(best[with_x], best[with_x ^ (1 << x)])
        return cls(code, loss, best, _log_dets(S, subsets), rounding)


def _losses(S: Floats, digits: Ints, n_ranks: int) -> Floats:
    """``LR_k`` (3^n, n_ranks) for all pairs of disjoint sets; a row of digits says 1 for A and 2 for B."""
    sizes = np.stack([(digits == 1).sum(axis=1), (digits == 2).sum(axis=1)], axis=1)
    loss = np.zeros((len(digits), n_ranks))
    for a, b in np.unique(sizes, axis=0).tolist():
        if not 1 <= a <= b:
            continue
        rows = np.flatnonzero((sizes == (a, b)).all(axis=1))
        A, B = (np.nonzero(digits[rows] == kind)[1].reshape(len(rows), -1) for kind in (1, 2))
        tail = _tails(S, A, B)
        loss[rows, :a] = tail
        loss[np.where(digits[rows] == 1, 2, digits[rows] // 2) @ 3 ** np.arange(len(S)), :a] = tail
    return loss


def _tails(S: Floats, A: Ints, B: Ints) -> Floats:
    """``LR_k`` for k = 0, 1, ... (R, a) of pairs of sets given as columns (R, a) and (R, b)."""
    La = np.linalg.cholesky(S[A[:, :, None], A[:, None, :]])
    Lb = np.linalg.cholesky(S[B[:, :, None], B[:, None, :]])
    half = np.linalg.solve(La, S[A[:, :, None], B[:, None, :]])
    rho = np.linalg.svd(np.linalg.solve(Lb, half.transpose(0, 2, 1)), compute_uv=False)
    each = -0.5 * np.log1p(-(np.minimum(rho, 1.0 - 1e-15) ** 2))
    tails: Floats = each[:, ::-1].cumsum(axis=1)[:, ::-1]
    return tails


def _log_dets(S: Floats, subsets: Ints) -> Floats:
    """(2^n,) log determinants of S on all subsets, given as rows of 0 and 1."""
    # Ones on the diagonal stand for the variables left out: all matrices have one shape, and the same determinant.
    inside = subsets[:, :, None] * subsets[:, None, :]
    return np.asarray(np.linalg.slogdet(np.where(inside, S, np.eye(len(S))))[1])


def complete_bounds(table: MeasurementTable, ranks: RankTable) -> Floats:
    """(B,) the least shortfall of each measurement model, whatever its latent graph, from one rank constraint.

    The children that have all their parents in some groups are tied to the rest by no more dimensions than these groups
    have latents; so is every subset of them.
    """
    most = ranks.against_rest.shape[1] - 1  # a rank that large is no constraint
    bound = np.zeros(len(table))
    for groups in range(1, 1 << table.n_groups):
        rank = np.minimum(table.total_size(groups), most)
        bound = np.maximum(bound, ranks.against_rest[table.inside[groups], rank])
    return bound


def independence_bounds(table: MeasurementTable, ranks: RankTable, parts: Sequence[int]) -> Floats:
    """(B,) the least shortfall where no edge joins these sets of groups: their own children are independent."""
    inside = [table.inside[groups] for groups in parts]
    together = np.bitwise_or.reduce(inside)
    apart = np.sum([ranks.log_det[children] for children in inside], axis=0)
    return np.asarray(0.5 * (apart - ranks.log_det[together]) - ranks.rounding)


@compiled
def cut_sizes(children: Ints, order: Ints, sizes: Ints) -> SmallInts:
    """Generic rank of the covariance between any two sets of groups, (2^m, 2^m), by trek separation.

    It is the smallest number of latents in (U, W) such that every trek passes U on its way up or W on its way down.
    ``children`` (m,) and ``order`` (m,) describe a DAG whose nodes stand for groups of ``sizes`` (m,) latents.
    """
    m = len(sizes)
    full = 1 << m
    total = np.zeros(full, dtype=np.int64)
    for s in range(full):
        for g in range(m):
            if s >> g & 1:
                total[s] += sizes[g]
    parents = np.zeros(m, dtype=np.int64)
    for g in range(m):
        for h in range(m):
            if children[g] >> h & 1:
                parents[h] |= 1 << g
    # up[U, g]: where one comes from g going up without U; down[W, g]: where one comes going down without W.
    up = np.zeros((full, m), dtype=np.int64)
    down = np.zeros((full, m), dtype=np.int64)
    for cut in range(full):
        for i in range(m):
            g = order[i]
            if not cut >> g & 1:
                up[cut, g] = 1 << g
                for h in range(m):
                    if parents[g] >> h & 1:
                        up[cut, g] |= up[cut, h]
            g = order[m - 1 - i]
            if not cut >> g & 1:
                down[cut, g] = 1 << g
                for h in range(m):
                    if children[g] >> h & 1:
                        down[cut, g] |= down[cut, h]
    size = np.full((full, full), total[full - 1], dtype=np.int16)
    reached = np.zeros(full, dtype=np.int64)
    for U in range(full):
        for W in range(full):
            for X in range(1, full):
                low = 0
                while not X >> low & 1:
                    low += 1
                found = reached[X & (X - 1)]
                for top in range(m):
                    if up[U, low] >> top & 1:
                        found |= down[W, top]
                reached[X] = found
            for X in range(full):
                free = full - 1 & ~reached[X]
                size[X, free] = min(size[X, free], total[U] + total[W])
    for g in range(m):
        for X in range(full):
            for Y in range(full):
                if not Y >> g & 1:
                    size[X, Y] = min(size[X, Y], size[X, Y | 1 << g])
    return size


@inner
def shortfall_bound(
    parents: Ints,
    cuts: SmallInts,
    code: Ints,
    loss: Floats,
    enough: float,
    outside: SmallInts,
    reduced: SmallInts,
    least: Floats,
) -> float:
    """The least shortfall V of a class, by the recursion at the top of this module; stops once above ``enough``.

    ``parents`` (n,) is the measurement model and ``cuts`` the answer of :func:`cut_sizes`. The rank of Cov(A, B) is
    the least of ``cuts[X, Y]`` plus the variables of A with a parent outside X plus those of B with one outside Y,
    over all sets of groups X and Y. The last three arguments are work space.
    """
    full, n_sets = 1 << len(parents), len(cuts)
    for X in range(n_sets):
        outside[0, X] = 0
        for A in range(1, full):
            high = 0
            while A >> high + 1:
                high += 1
            outside[A, X] = outside[A & ~(1 << high), X] + (parents[high] & ~X != 0)
    for B in range(full):
        for X in range(n_sets):
            best = cuts[X, 0] + outside[B, 0]
            for Y in range(1, n_sets):
                best = min(best, cuts[X, Y] + outside[B, Y])
            reduced[B, X] = best
    for Y in range(1, full):
        value = 0.0
        rest = Y
        while rest:
            low = rest & -rest
            value = max(value, least[Y ^ low])
            rest ^= low
        A = (Y - 1) & Y
        while 2 * A > Y:  # each split once: A is the part with the highest variable
            B = Y ^ A
            pair = code[A] + 2 * code[B]
            known = max(least[A], least[B])
            if loss[pair, 0] + known > value:
                rank = reduced[B, 0] + outside[A, 0]
                for X in range(1, n_sets):
                    rank = min(rank, reduced[B, X] + outside[A, X])
                if rank < loss.shape[1]:
                    value = max(value, loss[pair, rank] + known)
            A = (A - 1) & Y
        least[Y] = value
        if value > enough:
            return float(value)
    return float(least[full - 1])


@compiled
def class_bounds(
    parents: Ints,
    sizes: Ints,
    children: Ints,
    orders: Ints,
    first_super: Ints,
    supers: Ints,
    code: Ints,
    loss: Floats,
    allowance: Floats,
) -> Floats:
    """(C,) the least shortfall of a measurement model with each latent graph, as far as it matters.

    A class inherits the bound of the classes that contain it. Its own is computed only where the inherited one is
    not above its ``allowance`` (C,), the shortfall at which it stops being of interest. The first class, the
    complete graph, always gets its own, since all others inherit from it.
    """
    n_classes, n, m = len(children), len(parents), len(sizes)
    outside = np.empty((1 << n, 1 << m), dtype=np.int16)  # 16 bits: several in one machine instruction
    reduced, least = np.empty_like(outside), np.zeros(1 << n)
    enough = allowance.max()
    bound = np.zeros(n_classes)
    for c in range(n_classes):
        for s in range(first_super[c], first_super[c + 1]):
            bound[c] = max(bound[c], bound[supers[s]])
        if c == 0 or bound[c] <= allowance[c]:
            cuts = cut_sizes(children[c], orders[c], sizes)
            own = shortfall_bound(parents, cuts, code, loss, enough, outside, reduced, least)
            bound[c] = max(bound[c], own)
    return bound


# ------------------------------------------------------------------------------------------------- the score


@dataclass(frozen=True)
class Criterion:
    """The score of a class from its shortfall per sample and its dimension; larger is better.

    For N samples the BIC, ``log-likelihood - penalty/2 log(N) dimension``. For a population what Corollary 1 asks:
    of the classes that fit the one of smallest dimension. That is ``-dimension``, and far less for a class that does
    not fit, in proportion to its shortfall.
    """

    saturated: float  # log-likelihood of the saturated model, the largest there is
    weight: float  # of the shortfall per sample
    charge: float  # for each dimension
    forgiven: float = 0.0  # shortfall that counts as none

    @classmethod
    def of(cls, sample: Sample, penalty: float) -> Criterion:
        """The criterion for a sample."""
        if math.isinf(sample.n):
            # The least misfit that counts, 1e-7, costs 100: more than any dimension within reach.
            return cls(saturated=0.0, weight=1e9, charge=1.0, forgiven=FITS)
        log_det = sample.log_det_corr + 2.0 * float(np.log(sample.sd).sum())
        saturated = log_likelihood(0.0, log_det, len(sample.names), sample.n)
        return cls(saturated, weight=sample.n, charge=0.5 * penalty * math.log(sample.n))

    def scores(self, shortfall: Floats | float, dimension: Ints | int) -> Floats:
        """The score, for arrays."""
        counted = np.where(np.asarray(shortfall) > self.forgiven, shortfall, 0.0)
        return np.asarray(self.saturated - self.weight * counted - self.charge * np.asarray(dimension))

    def allowances(self, dimension: Ints, threshold: float) -> Floats:
        """The largest shortfall with which a score still reaches the threshold; negative where none does."""
        slack = (self.saturated - self.charge * dimension - threshold) / self.weight
        return np.where(slack < 0.0, -1.0, np.maximum(slack, self.forgiven))


# ------------------------------------------------------------------------------------------------- the search


@dataclass(frozen=True, eq=False)
class Candidate:
    """A class that was fitted, with its score."""

    model: FactorModel
    dimension: int
    score: float
    fit: Fit


@dataclass(frozen=True, slots=True)
class ExactStep:
    """One record of the trace: where the search stood when something happened."""

    seconds: float
    what: str
    score: float  # of the best class so far
    n_open: int  # measurement models not yet decided
    n_fitted: int  # classes fitted so far

    def __str__(self) -> str:
        return (
            f"{self.seconds:7.1f} s: {self.what}; best score {self.score:.3f}, {self.n_fitted} classes fitted, "
            f"{self.n_open} measurement models open"
        )


class BranchAndBound:
    """Measurement models best first, their latent graphs bounded, what is left fitted; see the top of this module.

    Models wait in the order of their upper bounds, the score they could have at best as far as a quick bound can
    tell. When a model comes first, its classes join the heap, each with the score it could have at best. What comes
    to the top of the heap and is above the bounds of all models that wait is fitted.
    """

    def __init__(
        self,
        sample: Sample,
        criterion: Criterion,
        *,
        largest: int,
        n_best: int,
        n_threads: int | None,
        bounding: bool,
        check: Check = never,
    ) -> None:
        """``check`` may raise :class:`~unmeasured.errors.Stopped` while tables of all models are made."""
        self._check = check
        self.sample, self.criterion = sample, criterion
        self.n_best, self.n_threads, self.bounding = n_best, n_threads, bounding
        self.best: list[Candidate] = []
        self.n_fitted = 0
        n = len(sample.names)
        self._ranks = RankTable.of(sample.corr)
        self._tables: list[MeasurementTable] = []
        for m in range(1, n // 2 + 1):
            check()
            self._tables.append(measurement_table(n, m, largest, sample.names))
        self._first = np.cumsum([0, *map(len, self._tables)])  # models are numbered through all tables
        bounds = []
        for table in self._tables:
            check()
            bounds.append(complete_bounds(table, self._ranks))
        upper_bounds = np.concatenate([self._upper_bounds(t, b) for t, b in zip(self._tables, bounds, strict=True)])
        self._waiting = np.argsort(-upper_bounds, kind="stable")
        self._waiting_bounds = upper_bounds[self._waiting]
        self._next = 0  # models that waited before this one are in the heap or decided
        self._heap: list[_Entry] = []
        guesses = [criterion.scores(b, t.most_dimensions()) for t, b in zip(self._tables, bounds, strict=True)]
        self._guesses = np.argsort(-np.concatenate(guesses), kind="stable")[: max(_BATCH, n_best)].tolist()
        self._expanded: set[int] = set()

    def _upper_bounds(self, table: MeasurementTable, bound: Floats) -> Floats:
        """(B,) the best score over the ways to divide the groups into parts that no edge joins."""
        if not self.bounding:
            return np.full(len(table), math.inf)
        best = np.full(len(table), -math.inf)
        for parts in partitions_of_groups(table.n_groups):
            self._check()
            shortfall = np.maximum(bound, independence_bounds(table, self._ranks, parts))
            best = np.maximum(best, self.criterion.scores(shortfall, table.least_dimensions(parts)))
        return best

    @property
    def n_models(self) -> int:
        """How many measurement models there are."""
        return len(self._waiting)

    @property
    def threshold(self) -> float:
        """The score a class must reach to be of interest: that of the last in the list of the best."""
        is_open = not self.bounding or len(self.best) < self.n_best
        return -math.inf if is_open else self.best[-1].score - TIE

    @property
    def ceiling(self) -> float:
        """The largest score that a class not yet fitted could have."""
        return max(self._best_waiting, self._heap[0].upper_bound if self._heap else -math.inf)

    @property
    def _best_waiting(self) -> float:
        return float(self._waiting_bounds[self._next]) if self._next < self.n_models else -math.inf

    @property
    def is_complete(self) -> bool:
        """Whether no class that is left could enter the list of the best."""
        return self.ceiling < self.threshold or self.ceiling == -math.inf

    def open_models(self) -> int:
        """How many measurement models still have classes that could enter the list of the best."""
        return len(self._open_waiting()) + len({entry.model for entry in self._open_entries()})

    def open_classes(self) -> int:
        """How many classes could still enter the list of the best."""
        tables, counts = np.unique(self._table_of(self._open_waiting()), return_counts=True)
        per_table = [n_latent_classes(table.n_groups) for table in self._tables]
        return int(np.array(per_table)[tables] @ counts) + len(self._open_entries())

    def _open_waiting(self) -> Ints:
        end = int(np.searchsorted(-self._waiting_bounds, -self.threshold, side="right"))
        waiting = self._waiting[self._next : max(end, self._next)]
        return waiting[~np.isin(waiting, list(self._expanded))]

    def _open_entries(self) -> list[_Entry]:
        return [entry for entry in self._heap if entry.upper_bound >= self.threshold]

    def _table_of(self, model: Ints | int) -> Ints:
        """The table in which a model stands."""
        return np.searchsorted(self._first, model, side="right") - 1

    def _model(self, number: int) -> FactorModel:
        table = int(self._table_of(number))
        return self._tables[table][number - int(self._first[table])]

    def start(self) -> None:
        """Make a first list from models that look good: without a threshold no bound can bite.

        A model looks good if its complete latent graph would have a good score, were its bound its shortfall.
        """
        self._fit([self._complete(model) for model in self._guesses])
        for model in self._guesses:
            self._expand(model)
            self._expanded.add(model)
        self.step(expand=False)

    def step(self, deadline: float = math.inf, *, expand: bool = True) -> None:
        """Bound models until a batch of classes has come to the top, and fit it; or fit the top as it is."""
        batch: list[_Entry] = []
        try:
            while len(batch) < _BATCH and not self.is_complete and time.monotonic() <= deadline:
                if self._heap and (not expand or self._heap[0].upper_bound >= self._best_waiting):
                    batch.append(heapq.heappop(self._heap))
                elif expand:
                    self._expand(int(self._waiting[self._next]))
                    self._next += 1
                else:
                    break
            self._fit(batch)
        except KeyboardInterrupt:  # what was not fitted is still open
            for entry in batch:
                heapq.heappush(self._heap, entry)
            raise

    def _complete(self, model: int) -> _Entry:
        """The class of a model in which every two groups are adjacent; it is the first of its classes."""
        measurement = self._model(model)
        return _Entry(-math.inf, model, 0, measurement, int(dimensions(measurement)[0]))

    def _expand(self, model: int) -> None:
        """Put the classes of a model into the heap, as far as they could enter the list."""
        if model in self._expanded:
            return
        measurement = self._model(model)
        dimension = dimensions(measurement)
        allowances = self.criterion.allowances(dimension, self.threshold)
        bounds = self._class_bounds(measurement, allowances)
        upper_bounds = self.criterion.scores(bounds, dimension)
        for c in np.flatnonzero(bounds <= allowances).tolist():
            if c or model not in self._guesses:  # the complete graphs of the first models are fitted
                heapq.heappush(self._heap, _Entry(-float(upper_bounds[c]), model, c, measurement, int(dimension[c])))

    def _class_bounds(self, measurement: FactorModel, allowances: Floats) -> Floats:
        if not self.bounding:
            return np.zeros(len(allowances))
        classes = latent_classes(measurement.n_groups)
        return class_bounds(
            np.array(measurement.parents), np.array(measurement.sizes), classes.children, classes.orders,
            classes.first_super, classes.supers, self._ranks.code, self._ranks.loss, allowances,
        )  # fmt: skip

    def _fit(self, batch: list[_Entry]) -> None:
        models = [entry.connected for entry in batch]
        fits = fit_many([model.member for model in models], self.sample, n_threads=self.n_threads)
        self.n_fitted += len(batch)
        for entry, model, fit in zip(batch, models, fits, strict=True):
            discrepancy = fit.solution.discrepancy
            shortfall = 0.5 * max(discrepancy, 0.0) if math.isfinite(discrepancy) else math.inf
            score = float(self.criterion.scores(shortfall, entry.dimension))
            self.best.append(Candidate(model, entry.dimension, score, fit))
        # Equal scores: the class listed first, so that runs repeat.
        self.best = sorted(self.best, key=lambda c: -c.score)[: self.n_best]


@dataclass(frozen=True, slots=True, order=True)
class _Entry:
    """A class in the heap, which gives out the smallest: the best bound, then the first model and class."""

    minus_bound: float
    model: int
    number: int  # among latent_classes
    measurement: FactorModel = field(compare=False)
    dimension: int = field(compare=False)

    @property
    def upper_bound(self) -> float:
        return -self.minus_bound

    @property
    def connected(self) -> FactorModel:
        children = latent_classes(self.measurement.n_groups).children[self.number]
        return self.measurement.along(adjacency_of(children.tolist()))
