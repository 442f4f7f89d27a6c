"""Means, groups of people, equality constraints and missing values: full-information maximum likelihood.

One table holds all parameters: a row for each entry of F, Omega and the intercepts of each group, free or fixed, and
the position of the free ones in one vector. Rows with the same position are equal: those with the same label, and
those of a kind that ``equal=`` names, across groups. Latents get their scale and origin as in lavaan: with equal
loadings the variances of latents are free in all groups but the first, with equal intercepts so are their means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from scipy.special import ndtr

from unmeasured import apa
from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.data.sample import Sample
from unmeasured.errors import DataError, ModelError, listing, nearest
from unmeasured.kernels import likelihood as kernels
from unmeasured.models import indices
from unmeasured.models.defined import Labelled, defined_rows
from unmeasured.models.delta import NO_INFORMATION, errors_along, symmetric_root
from unmeasured.models.dimension import Dimension
from unmeasured.models.fit import COUNTED, Count, Fit, fit_many
from unmeasured.models.joint import Joint, JointSolution, joined_square, lower_bounds, parameter_gradient
from unmeasured.models.likelihood import Observations
from unmeasured.models.local_fit import Residual, candidate_parameters
from unmeasured.models.measures import Measures, Robust
from unmeasured.models.moments import Point, Structure
from unmeasured.models.parameters import Model, Parameter, markers_of, scaled_by_variance, with_shared_values
from unmeasured.models.robust import (
    Fitted,
    group_ratios,
    independence,
    likelihood_ratio,
    pseudo_inverse,
    satorra_bentler,
    with_saturated_means,
    yuan_bentler,
)
from unmeasured.models.scoring import Method
from unmeasured.models.signs import Entry, Loadings, slot_signs, standardised, tied_latents, with_signs
from unmeasured.models.solve import Problem, Solution
from unmeasured.remarks import Remark

Kind = Literal[
    "loadings",
    "intercepts",
    "residuals",
    "means",
    "regressions",
    "residual.covariances",
    "lv.variances",
    "lv.covariances",
]
KINDS: tuple[str, ...] = get_args(Kind)
# The part of a latent's variance that its causes leave, below which it is taken as running to zero.
_NOTHING = 1e-5


def check_equal(equal: Sequence[str] | str) -> tuple[str, ...]:
    """What is to be equal across groups, as lavaan names it; a typing error gets the nearest name."""
    asked = (equal,) if isinstance(equal, str) else tuple(equal) if isinstance(equal, Iterable) else None
    if asked is None:
        raise ModelError(f"equal= is a sequence of {listing(KINDS)}; got {equal!r}.")
    for kind in asked:
        if kind not in KINDS:
            raise ModelError(f"equal= has {kind!r}{nearest(str(kind), KINDS) or '.'} It takes {listing(KINDS)}.")
    return asked


# The table -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: a parameter of a group, and its position in the joint vector (-1: fixed)."""

    group: int
    parameter: Parameter
    slot: int

    @property
    def entry(self) -> tuple[str, str, str]:
        """What the row is about, whatever its group."""
        return self.parameter.lhs, self.parameter.op, self.parameter.rhs


@dataclass(frozen=True, eq=False)
class Table:
    """All parameters of all groups."""

    models: tuple[Model, ...]  # of each group, intercepts complete
    rows: tuple[tuple[Row, ...], ...]  # of each group: loadings, paths, covariances, intercepts
    size: int
    equal: tuple[str, ...]
    has_means: bool = True
    predictors: frozenset[str] = frozenset()  # whose moments belong to no kind

    @classmethod
    def of(cls, models: Sequence[Model], equal: tuple[str, ...], *, has_means: bool = True) -> Table:
        """Complete the model of each group and number the free parameters."""
        completed: Sequence[Model] = models
        if has_means:
            completed = [_completed(model, equal, first=g == 0) for g, model in enumerate(models)]
        completed = with_shared_values(completed)
        predictors = predictors_of(models[0])
        slots: dict[tuple[object, ...], int] = {}
        rows = []
        for g, model in enumerate(completed):
            mine = []
            for p in (*model.parameters, *model.intercepts):
                if p.fixed is not None:
                    mine.append(Row(g, p, -1))
                    continue
                shared = kind_of(p, model, predictors) in equal
                key: tuple[object, ...] = ("label", p.label) if p.label else (p.lhs, p.op, p.rhs, None if shared else g)
                mine.append(Row(g, p, slots.setdefault(key, len(slots))))
            rows.append(tuple(mine))
        return cls(tuple(completed), tuple(rows), len(slots), equal, has_means, predictors)

    def kind(self, p: Parameter) -> str:
        """Return what a parameter is called where ``equal=`` names kinds; "" for those of predictors."""
        return kind_of(p, self.models[0], self.predictors)

    def structure(self, g: int, order: Sequence[str]) -> Structure:
        """The arrays of one group, its observed variables in the order given."""
        model = self.models[g]
        pattern = model.pattern
        position = [pattern.observed_names.index(name) for name in order]
        pattern = replace(pattern, observed=pattern.observed[position])
        node = {name: i for i, name in enumerate(pattern.names)}
        means = [row for row in self.rows[g] if row.parameter.op == "~1"]
        free = iter(range(pattern.n_free, pattern.n_free + len(means)))
        slots = np.array([next(free) if row.slot >= 0 else -1 for row in means], dtype=np.int64)
        return Structure(
            pattern,
            np.array([node[row.parameter.source] for row in means], dtype=np.int64),
            slots,
            np.array([row.parameter.fixed or 0.0 for row in means]),
            np.array([row.slot for row in self.free(g)], dtype=np.int64),
        )

    def free(self, g: int) -> list[Row]:
        """The free rows of a group in the order of its local parameters: F, Omega, intercepts."""
        order = {"=~": 0, "~": 0, "~~": 1, "~1": 2}
        rows = [row for row in self.rows[g] if row.slot >= 0]
        return sorted(rows, key=lambda row: order[row.parameter.op])

    def shared(self) -> list[Row]:
        """The rows whose equality with others can be released, one at a time: of two equal ones the second."""
        free = [row for rows in self.rows for row in rows if row.slot >= 0]
        times = np.bincount([row.slot for row in free], minlength=self.size)
        seen: set[int] = set()
        out = []
        for row in free:
            if times[row.slot] > 2 or row.slot in seen:
                out.append(row)
            seen.add(row.slot)
        return out


def predictors_of(model: Model) -> frozenset[str]:
    """Predictors: observed variables that nothing points at and that point at something, their means not stated."""
    targets = {p.target for p in model.parameters if p.op in ("=~", "~")}
    sources = {p.source for p in model.parameters if p.op in ("=~", "~")}
    stated = {p.source for p in model.intercepts}
    return frozenset(name for name in model.observed if name in sources and name not in targets | stated)


def kind_of(p: Parameter, model: Model, exogenous: frozenset[str]) -> str:
    """What a parameter is called where ``equal=`` names kinds; "" for those of predictors."""
    latent = set(model.latents)
    if p.op == "=~":
        return "loadings"
    if p.op == "~":
        return "regressions"
    if p.op == "~1":
        return "means" if p.source in latent else "" if p.source in exogenous else "intercepts"
    if p.source in latent or p.target in latent:
        return "lv.variances" if p.source == p.target else "lv.covariances"
    if p.source in exogenous or p.target in exogenous:
        return ""
    return "residuals" if p.source == p.target else "residual.covariances"


def _completed(model: Model, equal: tuple[str, ...], *, first: bool) -> Model:
    """Intercepts for all, and in groups after the first the freedom that equal loadings and intercepts leave."""
    stated = {p.source: p for p in model.intercepts}
    latent = set(model.latents)
    measured = {p.source for p in model.parameters if p.op == "=~" and p.target not in latent}
    free_means = not first and "intercepts" in equal and "means" not in equal
    intercepts = []
    for name in (*model.observed, *model.latents):
        if name in stated:
            intercepts.append(stated[name])
        elif name not in latent:
            intercepts.append(Parameter("~1", name, name))
        else:
            intercepts.append(Parameter("~1", name, name, None if free_means and name in measured else 0.0))
    rows = list(model.parameters)
    if not first and "loadings" in equal and "lv.variances" not in equal:
        # Equal loadings fix the scale in the other groups.
        rows = [
            replace(p, fixed=None)
            if p.op == "~~" and p.source == p.target and p.source in latent and p.fixed is not None and p.fixed > 0
            else p
            for p in rows
        ]
    return Model(model.names, model.latents, tuple(rows), tuple(intercepts), model.defined, model.covariates)


# How often covariances that were drawn are made smaller until they fit together.
_SHRINKS = 40


# Fitting ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Estimated:
    """The table, the joint problem and its optimum: what the fits of all groups share."""

    labels: tuple[str, ...]
    table: Table
    joint: Joint
    solution: JointSolution
    estimator: str
    robust: Robust | None
    count: Count
    is_joint: bool = False  # whether covariates count as variables of the model

    @property
    def theta(self) -> Floats:
        """(q,) the estimates."""
        return self.solution.theta

    @cached_property
    def points(self) -> list[Point]:
        """Moments of every group."""
        return self.joint.points(self.theta)

    @cached_property
    def chi2(self) -> tuple[float, ...]:
        """What each group contributes to the chi-square."""
        return tuple(group_ratios(self.joint, self.theta))

    @cached_property
    def loglik(self) -> tuple[float, ...]:
        """Log-likelihood of each group, given the covariates where there are any."""
        pairs = zip(self.joint.observations, self.points, strict=True)
        return tuple(o.loglik(p.mu, p.Sigma) - self._loglik_of_covariates(o) for o, p in pairs)

    @cached_property
    def covariates(self) -> tuple[str, ...]:
        """Observed causes the model is conditioned on (lavaan's ``fixed.x``); none where some of their values lack."""
        names, known = self.joint.observations[0].names, self.known_covariates
        index = [names.index(name) for name in known]
        is_known = all(o.seen[:, index].all() for o in self.joint.observations)
        return known if is_known and not self.is_joint else ()

    @property
    def known_covariates(self) -> tuple[str, ...]:
        """The same, also where they count as variables of the model."""
        return self.table.models[0].covariates

    @property
    def has_means(self) -> bool:
        """Whether means are part of the model; else it is one of the covariances."""
        return self.table.has_means

    @property
    def n_given(self) -> int:
        """Means (where the model has them), variances and covariances of the covariates, of one group."""
        return self.moments_of(len(self.covariates))

    def moments_of(self, n: int) -> int:
        """The number of means, where the model has them, variances and covariances of n variables."""
        return n * (n + 1) // 2 + n * self.has_means

    def _loglik_of_covariates(self, o: Observations) -> float:
        """That of their saturated model, which every model of them given others adds."""
        if not self.covariates:
            return 0.0
        index = [o.names.index(name) for name in self.covariates]
        log_det = float(np.linalg.slogdet(o.saturated[1][np.ix_(index, index)])[1])
        return indices.log_likelihood(0.0, log_det, len(index), o.n)

    @cached_property
    def dimension(self) -> int:
        """How many parameters the data could determine: the largest rank of the derivatives at two points.

        One is near the estimates. Where these run to a bound, derivatives vanish there, so the other is anywhere.
        """
        rng = np.random.default_rng(0)
        ranks = []
        for centre, unit in (
            (self.theta, 0.1 * np.maximum(np.abs(self.theta), 0.1)),
            (np.zeros_like(self.theta), self._units),
        ):
            spread = rng.normal(size=len(unit))
            spread = np.where(self.joint.is_variance, np.abs(spread), spread)
            Delta = np.concatenate(self.joint.jacobians(centre + unit * spread))
            scale = np.sqrt((Delta**2).sum(axis=0))
            triangle = np.linalg.qr(
                Delta / np.where(scale > 0, scale, 1.0), mode="r"
            )  # small, with the same singular values
            values = np.linalg.svd(triangle, compute_uv=False)
            ranks.append(int((values > 1e-8 * values[0]).sum()))
        return max(ranks)

    @property
    def _units(self) -> Floats:
        """(q,) sizes that parameters may have, from the standard deviations of the data; latents have 1."""
        units = np.ones(self.table.size)
        for s, o in zip(self.joint.structures, self.joint.observations, strict=True):
            scale = np.ones(s.pattern.n_nodes)
            scale[s.pattern.observed] = np.sqrt(np.diag(o.saturated[1]))
            means = scale[s.nodes[s.slots >= 0]]
            units[s.where] = np.concatenate([s.pattern.unit(scale), means])
        return units

    @property
    def n_counted(self) -> int:
        """What df, AIC and BIC count: covariates' own means, variances and covariances do not."""
        counted = self.dimension if self.count == "dimension" else self.table.size
        return counted - self.n_given * len(self.labels)

    @property
    def n_moments(self) -> int:
        """Means, variances and covariances of all groups, but for those of the covariates."""
        return sum(self.moments_of(len(o.names)) - self.n_given for o in self.joint.observations)

    @property
    def df(self) -> int:
        """Degrees of freedom."""
        return self.n_moments - self.n_counted

    @cached_property
    def is_complete(self) -> bool:
        """Whether no value is missing."""
        return all(o.is_complete for o in self.joint.observations)

    @property
    def has_likelihood(self) -> bool:
        """Whether the implied covariance is positive definite where the fit ended."""
        return math.isfinite(self.solution.value)

    @cached_property
    def information(self) -> Floats:
        """(q, q) per row: expected, or observed where values are missing, as in lavaan; none without a likelihood."""
        if not self.has_likelihood:
            return np.zeros((self.table.size,) * 2)
        return self.joint.expected(self.theta) if self.is_complete else self.joint.observed(self.theta)

    @cached_property
    def blind(self) -> Floats:
        """(q, r) directions in which the data carry no information."""
        H = self.information
        if not self.has_likelihood:
            return np.eye(len(H))
        unit = 1.0 / np.sqrt(np.maximum(np.diag(H), 1e-300))
        value, vector = np.linalg.eigh(H * np.outer(unit, unit))
        return np.asarray(unit[:, None] * vector[:, value < NO_INFORMATION * max(value[-1], 1.0)])

    @cached_property
    def uncertainty(self) -> tuple[Floats, Bools]:
        """Standard errors (q,), NaN where there is none, and which parameters are identified."""
        if not self.has_likelihood:
            return np.full(self.table.size, math.nan), np.zeros(self.table.size, dtype=bool)
        scale = np.sqrt(np.maximum(np.diag(self.information), 1e-300))
        identified = np.asarray(~(np.abs(scale[:, None] * self.blind) > 1e-4).any(axis=1))
        variance = np.diag(self.acov)
        return np.where(identified, np.sqrt(np.maximum(variance, 0.0)), np.nan), identified

    @cached_property
    def acov(self) -> Floats:
        """(q, q) covariance of the estimates."""
        if not self.has_likelihood:
            return np.zeros((self.table.size,) * 2)
        return pseudo_inverse(self.information) / self.joint.n if self.robust is None else self.robust.acov


@dataclass(frozen=True, eq=False)
class MeanFit(Fit):
    """A fit with means or equal labels: of the only group, or one group's share of a fit of several.

    Means are part of the model where it states one, in groups, and where the likelihood of rows with missing values is
    maximised (``has_means``); else degrees of freedom, AIC, BIC and SRMR are those of the covariances, as without
    labels.

    A share has the chi-square that the group contributes; constraints across groups are not counted in its df.
    """

    joint: Estimated | None = None
    group: int = 0

    @property
    def _joint(self) -> Estimated:
        assert self.joint is not None
        return self.joint

    @property
    def _is_alone(self) -> bool:
        return len(self._joint.labels) == 1

    @property
    def _observations(self) -> Observations:
        return self._joint.joint.observations[self.group]

    @property
    def _point(self) -> Point:
        return self._joint.points[self.group]

    @cached_property
    def model(self) -> Model:
        """The model as rows of parameters, that of the group."""
        return self._joint.table.models[self.group]

    @cached_property
    def covariates(self) -> tuple[str, ...]:
        """Observed causes the model is conditioned on (lavaan's ``fixed.x``); none where some of their values lack."""
        return self._joint.covariates

    @property
    def n_samples(self) -> float:
        """Number of rows."""
        return self._observations.n

    @cached_property
    def chi2(self) -> float:
        """Likelihood-ratio statistic against the saturated model."""
        return self._joint.chi2[self.group]

    @cached_property
    def dimension(self) -> Dimension:
        """Generic dimension of the model; equal parameters count once, and means where the model has them."""
        if not self._is_alone:
            return super().dimension
        n_moments = self._joint.moments_of(self.n_observed)
        return Dimension.of(self._joint.dimension, self._joint.table.size, n_moments, 0)

    @property
    def n_counted(self) -> int:
        """What df, AIC and BIC count."""
        if self._is_alone:
            return self._joint.n_counted
        return len(self._joint.table.free(self.group)) - self._joint.n_given

    @property
    def df(self) -> int:
        """Degrees of freedom: means, variances and covariances, less what is counted."""
        return self._joint.moments_of(self.n_observed) - self._joint.n_given - self.n_counted

    @property
    def loglik(self) -> float:
        """Total log-likelihood of the rows, missing values integrated out."""
        return self._joint.loglik[self.group]

    @cached_property
    def baseline_chi2(self) -> float:
        """Chi-square of the model in which all variables are independent."""
        return independence((self._observations,), self._joint.known_covariates).chi2

    @property
    def baseline_df(self) -> int:
        """Degrees of freedom of that model."""
        q = len(self._joint.known_covariates)
        return (self.n_observed * (self.n_observed - 1) - q * (q - 1)) // 2

    @cached_property
    def srmr(self) -> float:
        """Standardised root mean square residual of the covariances, and of the means where the model has them."""
        mean, cov = self._observations.saturated
        if not self.has_means:
            return indices.srmr(cov, self._point.Sigma)
        return indices.srmr_with_means(mean, cov, self._point.mu, self._point.Sigma)

    @cached_property
    def estimates(self) -> Floats:
        """(p,) the free entries of F and Omega on the scale of the data."""
        s = self._joint.joint.structures[self.group]
        return self._joint.theta[s.where[: s.pattern.n_free]]

    @property
    def has_means(self) -> bool:
        """Whether means are part of the model."""
        return self._joint.has_means

    @cached_property
    def implied_mean(self) -> Floats:
        """(n,) implied mean of the observed variables, in the order of ``sample.names``.

        Raises
        ------
        ModelError
            Where means are no part of the model and were not given: it was fitted to a matrix.
        """
        if self.has_means:
            return self._point.mu
        if self.sample.mean is None:
            raise ModelError("A model fitted to a matrix has no means. Pass rows.")
        return self.sample.mean

    @property
    def latent_means(self) -> pd.Series:
        """Implied mean of every latent."""
        at = dict(zip(self.causal_order, self._point.m, strict=True))
        return pd.Series({name: at[name] for name in self.model.latents}, name="mean", dtype=float)

    @cached_property
    def _uncertainty(self) -> tuple[Floats, Bools]:
        s = self._joint.joint.structures[self.group]
        errors, identified = self._joint.uncertainty
        at = s.where[: s.pattern.n_free]
        return errors[at], identified[at]

    def _own_root(self) -> tuple[Floats, Floats]:
        s = self._joint.joint.structures[self.group]
        at = s.where[: s.pattern.n_free]
        scale = s.pattern.unit(self.problem.scale)[:, None]
        return symmetric_root(self._joint.acov)[at] / scale, self._joint.blind[at] / scale

    def scores(
        self, rows: Any, method: Method = "regression", *, standard_errors: bool = False, mean: Any = None
    ) -> pd.DataFrame:
        """Factor scores of rows as :meth:`Fit.scores` gives them, from the means of the model unless ``mean`` is given.

        With free latent means, those of the group are added.
        """
        centre = self.implied_mean if mean is None and self.has_means and self.sample.rows is not None else mean
        table = super().scores(rows, method, standard_errors=standard_errors, mean=centre)
        latents = list(self.latent_means.index)
        table[latents] = table[latents] + self.latent_means.to_numpy()
        return table

    def _again(self, sample: Sample) -> Fit:
        joint, table = self._joint.joint, self._joint.table
        if not self._is_alone:
            if table.shared():
                raise ModelError(
                    "Replicates of one group do not know what is equal across groups. Use the delta method "
                    "(bootstrap=0)."
                )
            return super()._again(sample)
        observations = (_rows_of(sample) if self.has_means else _moments_of(sample),)
        # Begun at the estimates, latents point the way they do there.
        other = Joint(joint.structures, observations, joint.size)
        found = other.maximise(self._joint.theta, lower_bounds(joint.structures, observations, joint.size))
        (model,) = table.models
        return _fits_at(found, other, table, [model], [sample], self._joint.labels, "ML", self.count)[1][0]

    @property
    def _along(self) -> Floats:
        s = self._joint.joint.structures[self.group]
        at = s.where[: s.pattern.n_free]
        moves = np.zeros((len(at), self._joint.table.size))
        moves[np.arange(len(at)), at] = 1.0 / s.pattern.unit(self.problem.scale)
        return moves[:, moves.any(axis=0)]

    def residuals(self, kind: Residual = "correlation") -> pd.DataFrame:
        """Observed less implied covariances or correlations; standard errors are for one group without means only."""
        if kind == "standardised" and self.has_means:
            raise ModelError(
                "Standardised residuals are for models of one group without means or missing values. Use "
                "residuals('correlation')."
            )
        if kind == "standardised":
            _refuse_without_likelihood(self._joint)
        return super().residuals(kind)

    def modification_indices(self, least: float = 0.0) -> pd.DataFrame:
        """Decrease of chi-square if one more parameter were free: ``lhs op rhs mi epc sepc.all``.

        As :meth:`Fit.modification_indices`, with equal parameters kept equal; in a group, the parameter of this group.
        What equality itself costs is in :meth:`score_tests`.
        """
        table = _modification_indices(self)
        return table[table["mi"] >= least]

    def score_tests(self) -> pd.DataFrame:
        """A test of releasing each equality constraint of a single group, with all others kept.

        One row for each parameter that shares its label, as :meth:`GroupFit.score_tests` gives them: ``lhs op rhs chi2
        df pvalue change bic``, largest first.

        Examples
        --------
        >>> import unmeasured as um
        >>> data = um.datasets.load("holzinger_swineford")
        >>> text = "visual =~ x1 + a*x2 + a*x3; textual =~ x4 + x5 + x6"
        >>> um.fit(text, cov=data.frame(), n_samples=data.n_samples).score_tests()[["lhs", "rhs", "df"]]
              lhs rhs  df
        0  visual  x3   1
        """
        if not self._is_alone:
            raise ModelError("This is one group's share of a fit; the tests are those of all groups: score_tests().")
        return score_tests(self._joint).drop(columns="group")

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes on this fit."""
        return (*_notes(self._joint), *self.remarks)

    @cached_property
    def parameters(self) -> pd.DataFrame:
        """One row per parameter: ``lhs op rhs est se z pvalue std``; intercepts (``~1``), then what ``:=`` defines."""
        own = self._parameters()
        if not self._is_alone or not self.model.defined:
            return own
        return pd.concat([own, _defined_rows(self._joint, (own,))], ignore_index=True)

    def _parameters(self) -> pd.DataFrame:
        errors = self._joint.uncertainty[0]
        rows = self._joint.table.rows[self.group]
        est = np.array([self._joint.theta[r.slot] if r.slot >= 0 else r.parameter.fixed for r in rows], dtype=float)
        se = np.array([errors[r.slot] if r.slot >= 0 else 0.0 for r in rows])
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(se > 0, est / se, np.nan)
        std = [
            value / self._sd[r.parameter.source] if r.parameter.op == "~1" else self._standardised(r.parameter, value)
            for r, value in zip(rows, est, strict=True)
        ]
        columns = {name: [r.entry[k] for r in rows] for k, name in enumerate(("lhs", "op", "rhs"))}
        return pd.DataFrame({**columns, "est": est, "se": se, "z": z, "pvalue": 2.0 * ndtr(-np.abs(z)), "std": std})

    def summary(self) -> str:
        """The fit as text: status, indices, parameters, notes."""
        first, second, *robust = self._test_lines()
        full = "" if self._observations.is_complete else "; full information from rows with missing values"
        means = f", with means{full}" if self.has_means else ""
        lines = [
            f"unmeasured fit: {self.n_observed} observed, {len(self.model.latents)} latent, "
            f"N = {self.n_samples:g}{means}",
            self.status,
            "",
            first,
            f"{second}, SRMR {self.srmr:.4f}",
            *robust,
            self._likelihood_line(),
            "",
            apa.table_text(self.parameters),
            *[f"Note: {note}" for note in self.notes],
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        means = ", with means" if self.has_means else ""
        return f"<Fit: chi2 {self.chi2:.2f} on {self.df} df, N = {self.n_samples:g}{means}; {self.status}>"


@dataclass(frozen=True, eq=False)
class GroupFit(Measures):
    """A model fitted to several groups of people: estimates of each, equality constraints across them, one test.

    Attributes
    ----------
    fits : mapping of group to Fit
        The share of each group, with its estimates, implied moments and latent means.
    """

    fits: Mapping[str, MeanFit]
    joint: Estimated
    robust: Robust | None = None
    remarks: tuple[Remark, ...] = ()  # on model text: what lavaan would have done by default

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups, in the order in which they first appear."""
        return self.joint.labels

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.joint.labels)

    @property
    def equal(self) -> tuple[str, ...]:
        """Which kinds of parameters are equal across groups."""
        return self.joint.table.equal

    @property
    def n_samples(self) -> float:
        """Number of rows of all groups."""
        return self.joint.joint.n

    @cached_property
    def chi2(self) -> float:
        """Likelihood-ratio statistic against the saturated model of every group."""
        return float(sum(self.joint.chi2))

    @property
    def df(self) -> int:
        """Degrees of freedom: means, variances and covariances of all groups, less the parameters that count."""
        return self.joint.df

    @property
    def n_counted(self) -> int:
        """What df, AIC and BIC count: parameters that are equal count once."""
        return self.joint.n_counted

    @property
    def loglik(self) -> float:
        """Total log-likelihood."""
        return float(sum(self.joint.loglik))

    @cached_property
    def baseline_chi2(self) -> float:
        """Chi-square of the model in which all variables are independent, in every group."""
        return float(sum(fit.baseline_chi2 for fit in self.fits.values()))

    @property
    def baseline_df(self) -> int:
        """Degrees of freedom of that model."""
        return sum(fit.baseline_df for fit in self.fits.values())

    @property
    def srmr(self) -> float:
        """Standardised root mean square residual, the mean over groups weighted by their rows."""
        return sum(fit.srmr * fit.n_samples for fit in self.fits.values()) / self.n_samples

    @property
    def converged(self) -> bool:
        """Whether an optimum was reached."""
        return self.joint.solution.converged

    @property
    def admissible(self) -> bool:
        """Whether the optimum is a proper one in every group."""
        return all(fit.admissible for fit in self.fits.values())

    @property
    def status(self) -> str:
        """How the fit went, as a sentence."""
        s = self.joint.solution
        went = f"converged in {s.steps} steps" if s.converged else f"no optimum after {s.steps} steps"
        if not self.joint.has_likelihood:
            went = "the covariance implied by the starting values is not positive definite"
        reasons = [f"not admissible in {g}: {reason}" for g, fit in self.fits.items() for reason in fit._improper]
        return "; ".join([went, *reasons])

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on this fit."""
        return (*_notes(self.joint), *self.remarks)

    @cached_property
    def parameters(self) -> pd.DataFrame:
        """One row per parameter and group: ``group lhs op rhs est se z pvalue std equal``.

        ``equal`` numbers the constraints: rows with the same number are equal, 0 is none. What the model text defines
        by ``:=`` comes last and belongs to no group.
        """
        times = np.bincount([r.slot for rows in self.joint.table.rows for r in rows if r.slot >= 0])
        number = np.cumsum(times > 1) * (times > 1)
        frames = []
        for g, fit in enumerate(self.fits.values()):
            frame = fit.parameters.copy()
            frame.insert(0, "group", self.groups[g])
            slots = [r.slot for r in self.joint.table.rows[g]]
            frames.append(frame.assign(equal=[int(number[slot]) if slot >= 0 else 0 for slot in slots]))
        if self.joint.table.models[0].defined:
            defined = _defined_rows(self.joint, tuple(fit.parameters for fit in self.fits.values()))
            defined.insert(0, "group", "")
            frames.append(defined.assign(equal=0))
        return pd.concat(frames, ignore_index=True)

    @property
    def latent_means(self) -> pd.DataFrame:
        """Implied mean of every latent, a column for each group; with free intercepts all are zero."""
        return pd.DataFrame({g: fit.latent_means for g, fit in self.fits.items()})

    def score_tests(self) -> pd.DataFrame:
        """A test of releasing each equality constraint, with all others kept.

        The statistic is the score of the released parameter, squared, over its variance given all others (lavaan's
        ``lavTestScore``); it is chi-square with one degree of freedom if the groups do not differ there.

        Returns
        -------
        DataFrame
            ``lhs op rhs group chi2 df pvalue change bic``, largest first: ``group`` is the group whose parameter is
            released (of two groups the second: the statistic is the same), ``change`` the expected change of its
            estimate, ``bic`` by how much releasing lowers BIC.
        """
        return score_tests(self.joint)

    def summary(self) -> str:
        """The fit as text: status, indices, parameters of every group, notes."""
        first, second, *robust = self._test_lines()
        sizes = ", ".join(f"{g} {fit.n_samples:g}" for g, fit in self.fits.items())
        same = f"equal across groups: {listing(self.equal)}" if self.equal else "nothing is equal across groups by kind"
        lines = [
            f"unmeasured fit: {self.n_groups} groups (N = {self.n_samples:g}: {sizes}); {same}",
            self.status,
            "",
            first,
            f"{second}, SRMR {self.srmr:.4f}",
            *robust,
            self._likelihood_line(),
            "",
            apa.table_text(self.parameters),
            *[f"Note: {note}" for note in self.notes],
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{g} {fit.n_samples:g}" for g, fit in self.fits.items())
        return f"<GroupFit: chi2 {self.chi2:.2f} on {self.df} df; {sizes}; {self.status}>"


def _defined_rows(joint: Estimated, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """What the model text defines from labels of any group."""
    labelled = {
        row.parameter.label: Labelled(float(table["est"].iloc[k]), float(table["std"].iloc[k]), row.slot)
        for rows, table in zip(joint.table.rows, tables, strict=True)
        for k, row in enumerate(rows)
        if row.parameter.label is not None
    }
    root = symmetric_root(joint.acov)
    return defined_rows(
        joint.table.models[0].defined, labelled, joint.table.size, lambda G: errors_along(root, joint.blind, G)
    )


def score_tests(joint: Estimated) -> pd.DataFrame:
    """Tests of every equality constraint; see :meth:`GroupFit.score_tests`."""
    _refuse_without_likelihood(joint)
    structures = joint.joint.structures
    locals_, informations = [], []
    base = np.zeros((joint.table.size,) * 2)
    for w, s, o, p in zip(joint.joint.weights, structures, joint.joint.observations, joint.points, strict=True):
        g, G = o.gradient(p.mu, p.Sigma)
        information = o.parameter_information(p.mu, p.Sigma, p.directions, observed=not o.is_complete)
        if not o.is_complete:
            information = information + 0.5 * p.curvature(g, G)
        locals_.append(-0.5 * w * parameter_gradient(g, G, p))
        informations.append(w * information)
        base += w * joined_square(s, information, joint.table.size)
    inverse = pseudo_inverse(base)
    local_of = [{id(row): k for k, row in enumerate(joint.table.free(g))} for g in range(len(joint.labels))]
    records = []
    n = joint.joint.n
    for row in joint.table.shared():
        k = local_of[row.group][id(row)]
        score, own = locals_[row.group][k], informations[row.group][k, k]
        with_rest = structures[row.group].joined(informations[row.group][k], joint.table.size)
        left = own - with_rest @ inverse @ with_rest
        statistic = n * score**2 / left if left > 1e-12 * own else math.nan
        lhs, op, rhs = row.entry
        records.append(
            (lhs, op, rhs, joint.labels[row.group], statistic, 1, score / left if left > 1e-12 * own else math.nan)
        )
    frame = pd.DataFrame(records, columns=["lhs", "op", "rhs", "group", "chi2", "df", "change"])
    frame.insert(6, "pvalue", [indices.p_value(x, 1) for x in frame["chi2"]])
    frame["bic"] = frame["chi2"] - math.log(n)
    return frame.sort_values("chi2", ascending=False, ignore_index=True)


def _refuse_without_likelihood(joint: Estimated) -> None:
    if not joint.has_likelihood:
        raise ModelError(
            "The covariance that the model implies is not positive definite where the fit ended, so there is nothing "
            "to test. Check what equal labels and fixed values ask for."
        )


# Parameters that are tested at once: bounds memory.
_TESTED = 500
# A parameter that the free ones imitate but for this part of its information cannot be told from them.
_IMITATED = 1e-8


def _modification_indices(fit: MeanFit) -> pd.DataFrame:
    """Score tests of the parameters of a group that are fixed or absent, from the expected information as in lavaan."""
    joint, g = fit._joint.joint, fit.group
    _refuse_without_likelihood(fit._joint)
    s, o, w = joint.structures[g], joint.observations[g], joint.weights[g]
    point = fit._point
    slope, Slope = o.gradient(point.mu, point.Sigma)
    inverse = pseudo_inverse(joint.expected(fit._joint.theta))
    others = candidate_parameters(fit.model)
    scores, left = np.empty(len(others)), np.empty(len(others))
    for start in range(0, len(others), _TESTED):
        part = slice(start, start + _TESTED)
        along = point.towards(others[part])
        both = along.beside(point.directions)
        k = len(along.mu)
        information = w * o.parameter_information(point.mu, point.Sigma, both, observed=False)
        cross = s.joined(information[:k, k:], joint.size)
        own = np.diag(information)[:k]
        unexplained = own - np.einsum("kp,pq,kq->k", cross, inverse, cross)
        scores[part] = -0.5 * w * along.gradient(slope, Slope)
        left[part] = np.where(unexplained > _IMITATED * np.maximum(own, 1e-300), unexplained, math.nan)
    change = scores / left
    table = pd.DataFrame(
        {
            "lhs": [p.lhs for p in others],
            "op": [p.op for p in others],
            "rhs": [p.rhs for p in others],
            "mi": joint.n * scores * change,
            "epc": change,
            "sepc.all": [fit._standardised(p, float(value)) for p, value in zip(others, change, strict=True)],
        }
    )
    return table[~np.isnan(left)].sort_values("mi", ascending=False, kind="stable", ignore_index=True)


def _notes(joint: Estimated) -> tuple[str, ...]:
    notes = []
    errors_known = joint.uncertainty[1]
    if joint.has_likelihood and not errors_known.all():
        missing = []
        for g, label in enumerate(joint.labels):
            of = f" in {label}" if len(joint.labels) > 1 else ""
            missing += [f"{' '.join(r.entry).strip()}{of}" for r in joint.table.free(g) if not errors_known[r.slot]]
        if joint.dimension < joint.table.size:
            only = (
                f"The data determine only {joint.dimension} of {joint.table.size} free parameters; without a standard "
            )
            counted = COUNTED if joint.count == "dimension" else ""
            notes.append(f"{only}error: {listing(missing)}.{counted}")
        else:
            notes.append(f"Without a standard error where the estimates ended: {listing(missing)}.")
    if joint.joint.n < joint.table.size:
        notes.append(
            f"{joint.joint.n:.0f} rows for {joint.table.size} free parameters: such estimates will not replicate."
        )
    return tuple(notes)


def fit_groups(
    models: Sequence[Model],
    samples: Sequence[Sample],
    labels: Sequence[str],
    *,
    equal: tuple[str, ...] = (),
    estimator: str = "ML",
    count: Count = "dimension",
    has_means: bool = True,
) -> tuple[Estimated, tuple[MeanFit, ...]]:
    """Fit the model of every group (all have the same variables) by maximum likelihood.

    With means, the likelihood is that of the rows, complete or not; without, that of the covariances of the samples.
    Returns what the groups share, and the fit of each.
    """
    names = samples[0].names
    table = Table.of(models, equal, has_means=has_means)
    structures = tuple(table.structure(g, names) for g in range(len(models)))
    observations = tuple(_rows_of(s) if has_means else _moments_of(s) for s in samples)
    if has_means:
        _refuse_distant_means(table, observations)
    joint = Joint(structures, observations, table.size)
    lower = lower_bounds(structures, observations, table.size)
    own = [_alone(m, s) for m, s in zip(models, samples, strict=True)]
    solution = joint.maximise(_start(own, models, table, joint), lower)
    is_in_trouble = not solution.converged or bool(solution.at_bound.any())
    elsewhere: list[list[Sample]] = []
    if len(models) > 1 and (is_in_trouble or _is_far(joint, solution, own)):
        # Groups that went different ways on their own make a bad mean: begin where all are alike.
        elsewhere.append([_pooled(samples, joint)] * len(models))
    if is_in_trouble:
        # A model without labels may run to a bound where with labels it does not: begin where it has no reason to.
        elsewhere.append([_shrunk(s) for s in samples])
    for others in elsewhere:
        begun = [_alone(m, s) for m, s in zip(models, others, strict=True)]
        other = joint.maximise(_start(begun, models, table, joint), lower)
        if other.value < solution.value - 1e-12 or (other.converged and not solution.converged):
            solution = other
    keyed = samples[0].reverse_keyed
    solution = replace(solution, theta=solution.theta * _signs(table, joint, solution.theta, keyed))
    return _fits_at(solution, joint, table, models, samples, labels, estimator, count)


def _fits_at(
    solution: JointSolution,
    joint: Joint,
    table: Table,
    models: Sequence[Model],
    samples: Sequence[Sample],
    labels: Sequence[str],
    estimator: str,
    count: Count,
) -> tuple[Estimated, tuple[MeanFit, ...]]:
    """What groups share where the optimiser ended, and the fit of each."""
    structures, observations = joint.structures, joint.observations
    estimated = Estimated(tuple(labels), table, joint, solution, estimator, None, count)
    estimated = replace(estimated, robust=_robust(estimated, samples))
    fits = []
    for g, (structure, sample) in enumerate(zip(structures, samples, strict=True)):
        problem = Problem(structure.pattern, sample)
        unit = structure.pattern.unit(problem.scale)
        at = structure.where[: structure.pattern.n_free]
        fits.append(
            MeanFit(
                models[g],
                sample,
                problem,
                Solution(
                    solution.theta[at] / unit,
                    estimated.chi2[g] / observations[g].n,
                    _end_of(solution),
                    solution.steps,
                    solution.predicted,
                    np.array([solution.value]),
                    solution.lower[at] / unit,
                    zero_variance_latents=_zero_variance_latents(structure, solution.theta[at]),
                ),
                count,
                estimated.robust if len(labels) == 1 else None,
                joint=estimated,
                group=g,
            )
        )
    return estimated, tuple(fits)


def _signs(table: Table, joint: Joint, theta: Floats, reverse_keyed: Sequence[str]) -> Floats:
    """(q,) what turns the estimates to the signs of the rule, which are the same in all groups."""
    values = []
    for structure in joint.structures:
        x = theta[structure.where[: structure.pattern.n_free]]
        values.append(standardised(*structure.pattern.matrices(np.append(x, 0.0))))
    # With the sign of a latent its mean changes once, its variance twice.
    entries = [
        Entry(row.group, (p.source, "" if p.op == "~1" else p.target), row.slot, p.fixed or 0.0)
        for rows in table.rows
        for row in rows
        for p in (row.parameter,)
    ]
    model, names = table.models[0], joint.structures[0].pattern.names
    tied = tied_latents(entries, model.latents)
    found = Loadings(model, names, tuple(values), tuple(map(float, joint.weights)), frozenset(reverse_keyed)).signs(
        tied
    )
    signs = {(g, x): float(found[g, k]) for g in range(len(found)) for k, x in enumerate(names)}
    return slot_signs(entries, signs, table.size)


def _zero_variance_latents(structure: Structure, x: Floats) -> tuple[str, ...]:
    """Latents whose residual variance is fixed and next to nothing beside what their causes explain."""
    pattern = structure.pattern
    F, Omega = pattern.matrices(np.append(x, 0.0))
    E = np.linalg.inv(np.eye(len(F)) - F)
    share = np.diag(Omega) / np.maximum(np.diag(E.T @ Omega @ E), 1e-300)
    fixed = pattern.first[(pattern.slot2 < 0) & (pattern.first == pattern.second) & (pattern.fixed2 > 0)]
    return tuple(pattern.names[k] for k in fixed if share[k] < _NOTHING and not pattern.is_observed[k])


def fit_anywhere(fit: MeanFit, mean: Floats, cov: Floats) -> float:
    """Discrepancy of the best member of a fit's model from given moments of its variables: zero if it has them."""
    names, model = fit.sample.names, fit._joint.table.models[0]
    table = fit._joint.table
    structures = (table.structure(0, names),)
    observations = (Observations.of_moments(names, mean, cov, 1.0),)
    joint = Joint(structures, observations, table.size)
    own = [_alone(model, Sample(names, cov, math.inf))]
    found = joint.maximise(_start(own, [model], table, joint), lower_bounds(structures, observations, table.size))
    return max(found.value - observations[0].value(mean, cov), 0.0)


def random_moments(fit: MeanFit, rng: np.random.Generator) -> tuple[Floats, Floats] | None:
    """Mean and covariance of a fit's model at random parameters, equal where they have to be; None if none was found.

    Loadings and paths are strong, so that what another model cannot do shows.
    """
    s, joint = fit._joint.joint.structures[0], fit._joint.joint
    pattern, p = s.pattern, s.pattern.n_free
    variance, path = pattern.is_variance, pattern.is_path
    size = np.where(path, rng.uniform(0.4, 0.9, p), rng.uniform(0.2, 0.5, p))
    local = np.concatenate([rng.choice([-1.0, 1.0], p) * size, rng.normal(size=s.n_local - p)])
    theta = np.zeros(joint.size)
    theta[s.where] = local
    theta[s.where[:p][variance]] = rng.uniform(0.3, 0.8, int(variance.sum()))
    covariances = np.setdiff1d(s.where[:p][~variance & ~path], s.where[:p][variance | path])
    for _ in range(_SHRINKS):
        point = s.at(theta)
        if np.linalg.eigvalsh(point.Omega)[0] >= 0.05 * np.diag(point.Omega).max() or (
            not len(covariances) and np.linalg.eigvalsh(point.Sigma)[0] > 0
        ):
            return point.mu, point.Sigma
        theta[covariances] *= 0.7  # drawn one by one, they need not fit together
    point = s.at(theta)
    return (point.mu, point.Sigma) if np.linalg.eigvalsh(point.Sigma)[0] > 0 else None


# Beyond so many standard deviations from zero the effect of a variable cannot be told from the intercept: at 5,000
# estimates were right to eight digits, at 7,000 fits with a covariate stopped before their optimum.
_FARTHEST = 5_000.0


def _refuse_distant_means(table: Table, observations: Sequence[Observations]) -> None:
    causes = {p.source for model in table.models for p in model.parameters if p.op == "~"}
    for o in observations:
        mean, cov = o.independent
        for name, m, variance in zip(o.names, mean, np.diag(cov), strict=True):
            if name in causes and abs(m) > _FARTHEST * math.sqrt(variance):
                raise DataError(
                    f"The mean of {name!r} is {m:g}, {abs(m) / math.sqrt(variance):,.0f} times its standard deviation: "
                    "a model with means cannot tell its effects from intercepts. Subtract a constant from it."
                )


def _end_of(solution: JointSolution) -> int:
    if not math.isfinite(solution.value):
        return kernels.BAD_START
    return kernels.CONVERGED if solution.converged else kernels.STEP_LIMIT


def _rows_of(sample: Sample) -> Observations:
    assert sample.rows is not None
    return Observations.of_rows(sample.names, sample.rows[~np.isnan(sample.rows).all(axis=1)])


def _moments_of(sample: Sample) -> Observations:
    """The covariance of a sample; means are no part of the model and are taken as zero."""
    return Observations.of_moments(sample.names, np.zeros(len(sample.names)), sample.cov, sample.n)


def _robust(estimated: Estimated, samples: Sequence[Sample]) -> Robust | None:
    if estimated.estimator not in ("MLM", "MLR") or not estimated.has_likelihood:
        return None
    joint, theta = estimated.joint, estimated.theta
    if not estimated.has_means:
        joint, theta = with_saturated_means(joint, theta, [np.asarray(s.rows) for s in samples])
    chi2, n_added = float(sum(estimated.chi2)), joint.size - estimated.joint.size
    fitted = Fitted(joint, theta, chi2, estimated.df, estimated.known_covariates, n_added)
    if estimated.estimator == "MLR":
        robust = yuan_bentler(fitted)
    elif all(o.is_complete for o in joint.observations):
        robust = satorra_bentler(fitted)
    else:
        raise DataError(
            "estimator='MLM' needs complete rows. Use estimator='MLR', which takes missing values as they are, or "
            "missing='listwise'."
        )
    return replace(robust, acov=robust.acov[: len(estimated.theta), : len(estimated.theta)])


# Starting values -------------------------------------------------------------------------------------------


def _alone(model: Model, sample: Sample) -> Fit:
    """The covariance structure of one group, latents with the signs of the rule."""
    return with_signs(fit_many([scaled_by_variance(model)], sample, n_restarts=6)[0])


def _is_far(joint: Joint, solution: JointSolution, own: Sequence[Fit]) -> bool:
    """Whether constraints cost more than they should: an RMSEA of the difference above .1."""
    more = sum(fit.model.n_free for fit in own) + sum(len(o.names) for o in joint.observations) - joint.size
    chi2 = likelihood_ratio(joint, solution.theta) - sum(fit.solution.discrepancy * fit.sample.n for fit in own)
    return more > 0 and indices.rmsea(chi2, more, joint.n / len(own)) > 0.1


def _pooled(samples: Sequence[Sample], joint: Joint) -> Sample:
    """One sample with the mean covariance within groups."""
    cov = sum(
        (w * o.saturated[1] for w, o in zip(joint.weights, joint.observations, strict=True)), 0.0 * samples[0].cov
    )
    return Sample(samples[0].names, cov, joint.n)


def _shrunk(sample: Sample) -> Sample:
    """A sample whose correlations are half as large, so that no residual variance runs to zero."""
    return Sample(sample.names, 0.5 * (sample.cov + np.diag(np.diag(sample.cov))), sample.n)


def _start(fits: Sequence[Fit], models: Sequence[Model], table: Table, joint: Joint) -> Floats:
    """From fits of each group, brought to one scale and sign; equal parameters start from the mean over groups."""
    total, weight = np.zeros(table.size), np.zeros(table.size)
    first: dict[str, Floats] = {}
    origin: Floats | None = None
    for g, (fit, structure) in enumerate(zip(fits, joint.structures, strict=True)):
        pattern = structure.pattern
        F, Omega = fit.F.copy(), fit.Omega.copy()
        order = [fit.causal_order.index(name) for name in pattern.names]
        F, Omega = F[np.ix_(order, order)], Omega[np.ix_(order, order)]
        freed = _freed_variances(models[g], table.models[g])
        unit, markers = np.ones(len(F)), markers_of(models[g])
        for k, name in enumerate(pattern.names):
            if name not in models[g].latents:
                continue
            if name in markers:
                indicator, value = markers[name]
                loading = F[k, pattern.names.index(indicator)]
                unit[k] = loading / value if abs(loading) > 1e-3 else 1.0
                continue
            effects = F[k, pattern.observed]
            reference = first.setdefault(name, effects)
            along = float(effects @ reference)
            unit[k] = -1.0 if along < 0 else 1.0
            if name in freed and float(reference @ reference) > 0 and along != 0:
                unit[k] = along / float(reference @ reference)
        F = F * unit[None, :] / unit[:, None]
        Omega = Omega * np.outer(unit, unit)
        x = np.zeros(structure.n_local)
        x[: pattern.n_free] = np.where(
            pattern.is_path, F[pattern.ends[:, 0], pattern.ends[:, 1]], Omega[pattern.ends[:, 0], pattern.ends[:, 1]]
        )
        mean = joint.observations[g].saturated[0]
        origin = mean if origin is None else origin
        _start_means(x, structure, F, mean, origin)
        share = joint.weights[g]
        np.add.at(total, structure.where, share * x)
        np.add.at(weight, structure.where, share)
    start = total / weight
    if math.isfinite(joint.value(start)):
        return start
    # Averaged covariances may contradict averaged variances: begin without them.
    for structure in joint.structures:
        pattern = structure.pattern
        covariance = ~pattern.is_path & ~pattern.is_variance
        start[structure.where[: pattern.n_free][covariance]] *= 0.1
        start[structure.where[: pattern.n_free][pattern.is_variance]] = np.maximum(
            start[structure.where[: pattern.n_free][pattern.is_variance]], 0.1
        )
    return start


def _freed_variances(before: Model, after: Model) -> set[str]:
    """Latents whose variance was fixed in the text and is free in this group."""
    fixed = {p.source for p in before.parameters if p.op == "~~" and p.source == p.target and p.fixed is not None}
    free = {p.source for p in after.parameters if p.op == "~~" and p.source == p.target and p.fixed is None}
    return fixed & free


def _start_means(x: Floats, structure: Structure, F: Floats, mean: Floats, origin: Floats) -> None:
    """Intercepts that reproduce the mean; free latent means by least squares from the difference to the first group."""
    pattern = structure.pattern
    E = np.linalg.inv(np.eye(len(F)) - F)
    T = E[:, pattern.observed]
    alpha = np.zeros(len(F))
    alpha[structure.nodes] = structure.fixed
    free = np.flatnonzero(structure.slots >= 0)
    latent = np.array([k for k in free if not pattern.is_observed[structure.nodes[k]]], dtype=np.int64)
    if len(latent):
        fixed_observed = not any(pattern.is_observed[structure.nodes[k]] for k in free)
        target = mean - T.T @ alpha if fixed_observed else mean - origin
        alpha[structure.nodes[latent]] = np.linalg.lstsq(T[structure.nodes[latent]].T, target, rcond=None)[0]
    # What is left of the mean of each variable, causes first, goes into its own intercept.
    m = E.T @ alpha
    missing = np.zeros(len(F))
    missing[pattern.observed] = mean - m[pattern.observed]
    for k in free:
        node = structure.nodes[k]
        if pattern.is_observed[node]:
            # (I - F') maps a change of means to one of intercepts.
            alpha[node] += missing[node] - float(missing @ F[:, node])
    x[structure.slots[free]] = alpha[structure.nodes[free]]


def split_groups(X: pd.DataFrame, column: Any) -> tuple[tuple[str, ...], list[Ints]]:
    """Labels of the groups in order of first appearance, and the rows of each; a missing label is refused."""
    if column not in X.columns:
        raise DataError(
            f"groups={column!r} names no column of the data{nearest(str(column), [str(c) for c in X.columns]) or '.'} "
            f"The data have {listing([str(c) for c in X.columns])}."
        )
    codes, values = pd.factorize(X[column])
    if (codes < 0).any():
        raise DataError(
            f"{int((codes < 0).sum())} rows have no value in {column!r}, so their group is not known. Drop them, or "
            "give them a group of their own."
        )
    if len(X) == 0:
        raise DataError("The data have no rows.")
    if len(values) < 2:
        raise DataError(f"Column {column!r} has one value only, so there is one group. Leave groups= out.")
    return tuple(str(v) for v in values), [np.flatnonzero(codes == g) for g in range(len(values))]
