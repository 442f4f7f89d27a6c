"""Fitting: a model and a sample go in, a :class:`Fit` comes out, always.

    model  ->  pattern  ->  starting values  ->  damped Fisher scoring  ->  Fit
               (arrays)     (from the data)      (compiled, batches)        (a value with a sentence)

A fit that fails is a value too: ``converged`` says whether an optimum was reached, ``admissible`` whether the
optimum makes sense (no variance at its bound, no impossible correlation), ``status`` says it in words. The
variables are divided by their standard deviations inside, so wild scales do no harm, and estimates are
reported on the scale of the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pandas as pd
from scipy.special import ndtr

from unmeasured import apa
from unmeasured.arrays import Bools, Floats
from unmeasured.data.sample import Cor, Sample, as_sample
from unmeasured.errors import ModelError, listing
from unmeasured.graphs import CPDAG, DAG
from unmeasured.kernels import likelihood as kernels
from unmeasured.models import effects, indices, local_fit, scoring
from unmeasured.models.defined import Labelled, defined_rows
from unmeasured.models.delta import MANY_PARAMETERS, NO_INFORMATION, delta_errors, plain_inverse_root
from unmeasured.models.dimension import Dimension, dimension
from unmeasured.models.finish import refined
from unmeasured.models.full import (
    NOT_DONE,
    FullInformation,
    calls_for_it,
    covariance_of_estimates,
    with_full_information,
)
from unmeasured.models.large import solve_large
from unmeasured.models.measures import Measures, Robust
from unmeasured.models.parameters import (
    LatentScale,
    Model,
    Parameter,
    markers_of,
    model_of,
    pattern_of,
    scaled_by_variance,
)
from unmeasured.models.products import LARGE
from unmeasured.models.reliability import Reliability
from unmeasured.models.signs import with_signs
from unmeasured.models.solve import Check, Problem, Solution, never, solve_with_restarts
from unmeasured.remarks import Remark

if TYPE_CHECKING:
    from unmeasured.models.multigroup import GroupFit


# Free parameters: a model of 300 variables with a latent whose residual variance runs to zero, begun where a search
# had come to, took 113 processor seconds in all with six other starts for its last fit, and ended where it began.
_MANY = 500
Count = Literal["dimension", "parameters"]
COUNTED = ' Degrees of freedom count what is determined; lavaan counts all free parameters, as count="parameters" does.'
Estimator = Literal["ML", "MLM", "MLR", "WLSMV"]
FitMissing = Literal["ml", "fiml", "listwise", "pairwise"]


@overload
def fit(
    model: str | DAG | CPDAG | Model,
    X: Any = ...,
    *,
    cov: Any = ...,
    n_samples: float | None = ...,
    names: Sequence[str] | None = ...,
    correlate_exogenous: bool = ...,
    scale_latents: LatentScale = ...,
    correlate_outcomes: bool = ...,
    count: Count = ...,
    estimator: Estimator = ...,
    groups: None = ...,
    equal: Sequence[str] | str = ...,
    cor: Cor | None = ...,
    missing: FitMissing = ...,
) -> Fit: ...


@overload
def fit(
    model: str | DAG | CPDAG | Model,
    X: Any = ...,
    *,
    cov: Any = ...,
    n_samples: float | None = ...,
    names: Sequence[str] | None = ...,
    correlate_exogenous: bool = ...,
    scale_latents: LatentScale = ...,
    correlate_outcomes: bool = ...,
    count: Count = ...,
    estimator: Estimator = ...,
    groups: Any,
    equal: Sequence[str] | str = ...,
    cor: Cor | None = ...,
    missing: FitMissing = ...,
) -> GroupFit: ...


def fit(
    model: str | DAG | CPDAG | Model,
    X: Any = None,
    *,
    cov: Any = None,
    n_samples: float | None = None,
    names: Sequence[str] | None = None,
    correlate_exogenous: bool = True,
    scale_latents: LatentScale = "variance",
    correlate_outcomes: bool = False,
    count: Count = "dimension",
    estimator: Estimator = "ML",
    groups: Any = None,
    equal: Sequence[str] | str = (),
    cor: Cor | None = None,
    missing: FitMissing = "ml",
) -> Fit | GroupFit:
    """Fit a model by maximum likelihood, or to ordinal items by weighted least squares.

    Parameters
    ----------
    model : lavaan text, DAG, CPDAG or Model
        Of a CPDAG a member is fitted; all members have the same likelihood.
    X : DataFrame or array, optional
        Rows are samples.
    cov, n_samples
        Instead of rows: a covariance (divisor N - 1) or correlation matrix, and N. ``math.inf``: a population.
    names
        Names of the variables, where the data carry none.
    correlate_exogenous, scale_latents, correlate_outcomes
        For model text only: lavaan's ``auto.cov.lv.x``, ``std.lv`` and ``auto.cov.y``.
    count : "dimension" or "parameters"
        What degrees of freedom, AIC and BIC count: the generic dimension, which is right, or the free
        parameters, as lavaan does. They differ only where parameters are not identified.
    estimator : "ML", "MLM", "MLR" or "WLSMV"
        From rows, tests and standard errors for data that are not normal: Satorra-Bentler (MLM), Yuan-Bentler (MLR,
        also with missing values), and for ordinal items weighted least squares on polychoric correlations (WLSMV). See
        ``fit.chi2_scaled``, ``fit.rmsea_robust``, ``fit.cfi_robust``.
    groups : name of a column, or a value for each row
        Fit the model to every group of people, with means.
    equal : sequence of str
        What the groups share: "loadings", "intercepts", "residuals", "means", "regressions", "residual.covariances",
        "lv.variances", "lv.covariances" (lavaan's ``group.equal``).
    cor : "pearson", "auto", "polychoric" or "spearman-normal"
        Which correlations to take from rows (see :func:`unmeasured.as_sample`); WLSMV takes polychoric ones.
    missing : "ml", "fiml", "listwise" or "pairwise"
        What to do about missing values. "ml": the likelihood of the rows themselves is maximised (full information);
        "fiml" does the same and has the means among the parameters. Ordinal items have no such likelihood: each
        correlation is from the rows that show both items. "listwise": only complete rows.

    Returns
    -------
    Fit or GroupFit
        A :class:`GroupFit` where groups were named.

    Examples
    --------
    >>> import unmeasured as um
    >>> data = um.datasets.load("holzinger_swineford")
    >>> text = "visual =~ x1 + x2 + x3; textual =~ x4 + x5 + x6; speed =~ x7 + x8 + x9"
    >>> result = um.fit(text, cov=data.frame(), n_samples=data.n_samples)
    >>> round(result.chi2, 2), result.df, round(result.cfi, 3)
    (85.31, 24, 0.931)
    """
    # What goes beyond one covariance matrix builds on this module.
    from unmeasured.models.estimate import Options, check_options, estimate, fit_with_labels, used_columns, with_remarks

    options = Options(
        estimator, groups, equal, cor, missing, correlate_exogenous, scale_latents, correlate_outcomes, count
    )
    check_options(options)
    if not isinstance(model, str | DAG | CPDAG | Model):
        raise ModelError(f"A model is lavaan text, a DAG, a CPDAG or a Model; got a {type(model).__name__}.")
    matrix = None
    if estimator == "ML" and groups is None and missing != "fiml":
        used = used_columns([model], X, options.parse) if names is None else X
        sample = as_sample(used, cov=cov, n_samples=n_samples, names=names, cor=cor or "pearson", missing=missing)
        read = options.parse(model, sample.names) if isinstance(model, str) else model
        if not (isinstance(read, Model) and read.intercepts):
            if isinstance(read, Model) and read.has_equalities:
                return with_remarks(fit_with_labels(read, sample, options), model, options)
            start = _marker_start(read, sample) if isinstance(read, Model) else None
            (found,) = fit_many([read], sample, starts=[start])
            found = with_signs(with_full_information(replace(found, count=count)))
            return with_remarks(found, model, options)
        matrix = sample if sample.rows is None else None
    elif X is None or cov is not None or n_samples is not None:
        matrix = as_sample(X, cov=cov, n_samples=n_samples, names=names)
    elif isinstance(X, Sample) and X.rows is None:
        matrix = X
    return with_remarks(estimate(model, X, names, matrix, options), model, options)


def _marker_start(model: Model, sample: Sample) -> Floats | None:
    """Where a model with latents scaled by a loading begins: scaled by variances, it goes astray less often.

    None where no latent is scaled so.
    """
    markers = markers_of(model)
    if not markers:
        return None
    (fit,) = fit_many([scaled_by_variance(model)], sample)
    pattern = model.pattern
    unit = np.ones(pattern.n_nodes)
    order = [fit.causal_order.index(name) for name in pattern.names]
    F, Omega = fit.F[np.ix_(order, order)], fit.Omega[np.ix_(order, order)]
    for latent, (indicator, value) in markers.items():
        k = pattern.names.index(latent)
        loading = F[k, pattern.names.index(indicator)] / value
        if abs(loading) < 1e-3:  # the marker does not measure its latent
            return None
        unit[k] = loading
    F, Omega = F * unit[None, :] / unit[:, None], Omega * np.outer(unit, unit)
    a, b = pattern.ends[:, 0], pattern.ends[:, 1]
    problem = Problem.of(pattern, fit.sample)
    return np.asarray(np.where(pattern.is_path, F[a, b], Omega[a, b]) / pattern.unit(problem.scale))


@overload
def fit_many(
    models: Sequence[DAG | CPDAG | Model],
    sample: Sample,
    *,
    starts: Sequence[Floats | None] | None = ...,
    n_restarts: int = ...,
    n_threads: int | None = ...,
    check: Check = ...,
    groups: None = ...,
    equal: Sequence[str] | str = ...,
) -> list[Fit]: ...


@overload
def fit_many(
    models: Sequence[DAG | CPDAG | Model],
    sample: Sample,
    *,
    starts: Sequence[Floats | None] | None = ...,
    n_restarts: int = ...,
    n_threads: int | None = ...,
    check: Check = ...,
    groups: Sequence[Any],
    equal: Sequence[str] | str = ...,
) -> list[GroupFit]: ...


def fit_many(
    models: Sequence[DAG | CPDAG | Model],
    sample: Sample,
    *,
    starts: Sequence[Floats | None] | None = None,
    n_restarts: int = 6,
    n_threads: int | None = None,
    check: Check = never,
    groups: Sequence[Any] | None = None,
    equal: Sequence[str] | str = (),
) -> list[Fit] | list[GroupFit]:
    """Fit many models to one sample in compiled batches, on all cores unless ``n_threads`` says otherwise.

    Parameters
    ----------
    starts
        Where to start each model, as the ``solution.x`` of an earlier fit of the same pattern; None: from the data.
    n_restarts
        How many other starts a fit gets that looks trapped.
    check
        Raises :class:`~unmeasured.errors.Stopped` where the time is over; fits are returned as far as they have come.
    groups, equal
        A value for each row of the sample: fit every model to these groups, as :func:`fit` does, one after the other.
    """
    if groups is not None:
        from unmeasured.models.estimate import Options, estimate_groups

        return [estimate_groups(model, sample, Options(groups=groups, equal=equal)) for model in models]
    for m in models:
        if isinstance(m, Model) and (m.intercepts or m.has_equalities):
            what = "means" if m.intercepts else "equal labels"
            raise ModelError(f"Models side by side cannot have {what}, and one has. Fit it alone, with unmeasured.fit.")
    patterns = [pattern_of(m) for m in models]
    # One batch shares one matrix: models over different variables go in different batches.
    batches: dict[frozenset[str], list[int]] = {}
    for b, pattern in enumerate(patterns):
        if not len(pattern.observed):
            raise ModelError("The model has no observed variables, so there is nothing to fit it to.")
        if not pattern.n_free:
            raise ModelError(
                "The model has no free parameter: everything in it is fixed (a lone indicator has no residual), so "
                "there is nothing to estimate. Free a parameter (NA*), or add variables."
            )
        batches.setdefault(frozenset(pattern.observed_names), []).append(b)
    fits: dict[int, Fit] = {}
    for members in batches.values():
        common = sample.select(patterns[members[0]].observed_names)
        problems = [Problem.of(patterns[b], common) for b in members]
        chosen = [starts[b] for b in members] if starts is not None else [None] * len(members)
        # Thousands of parameters of a graph begin where a search has come to, or at the data.
        large = {
            k: chosen[k] for k, b in enumerate(members)
            if problems[k].pattern.n_free > LARGE and (chosen[k] is not None or not isinstance(models[b], Model))
        }  # fmt: skip
        # Hundreds of them that begin there need no other starts, which take minutes.
        is_near = [
            x is not None and problem.pattern.n_free > _MANY for x, problem in zip(chosen, problems, strict=True)
        ]
        solved: dict[int, Solution] = {}
        for near, restarts in ((False, n_restarts), (True, 0)):
            some = [k for k in range(len(members)) if k not in large and is_near[k] is near]
            found = solve_with_restarts(
                [problems[k] for k in some], starts=[chosen[k] for k in some], n_restarts=restarts,
                n_threads=n_threads, check=check,
            )  # fmt: skip
            solved |= dict(zip(some, found, strict=True))
        solved |= {k: solve_large(problems[k], x, n_restarts, check) for k, x in large.items()}
        solutions = [solved[k] for k in range(len(members))]
        for b, problem, solution in zip(members, problems, solutions, strict=True):
            fits[b] = Fit(models[b], common, problem, solution)
    return [fits[b] for b in range(len(models))]


@dataclass(frozen=True, eq=False)
class Fit(Measures):
    """A fitted model: estimates, likelihood, fit indices and convergence."""

    graph: DAG | CPDAG | Model  # as it was given
    sample: Sample  # the observed variables of the model
    problem: Problem
    solution: Solution
    count: Count = "dimension"
    robust: Robust | None = None  # of estimators MLM, MLR and WLSMV
    full: FullInformation | None = None  # of rows with missing values, whose likelihood was maximised
    is_joint: bool = False  # whether covariates count as variables of the model
    is_hurried: bool = False  # whether there was no time for standard errors
    remarks: tuple[Remark, ...] = ()  # on model text: what lavaan would have done by default

    @cached_property
    def covariates(self) -> tuple[str, ...]:
        """Observed causes the model is conditioned on (lavaan's ``fixed.x``): their likelihood does not count."""
        given = self.graph.covariates if isinstance(self.graph, Model) else self.graph.variables.covariates
        return () if self.is_joint else given

    @property
    def has_means(self) -> bool:
        """Whether means are part of the model, so that degrees of freedom, AIC, BIC and SRMR count them."""
        return self.full is not None

    @cached_property
    def model(self) -> Model:
        """The model as rows of parameters; of a CPDAG, that of the member which was fitted."""
        return self.graph if isinstance(self.graph, Model) else model_of(self.graph)

    # How it went ------------------------------------------------------------------------------------------

    @property
    def converged(self) -> bool:
        """Whether an optimum was reached."""
        return self.solution.converged

    @cached_property
    def admissible(self) -> bool:
        """Whether the optimum is a proper one: no variance at its bound, Omega positive definite."""
        return math.isfinite(self.solution.discrepancy) and not self._improper

    @cached_property
    def _improper(self) -> tuple[str, ...]:
        problem = self.problem
        names = problem.pattern.names
        at_bound = [names[i] for i in problem.pattern.ends[self.solution.at_bound, 0]]
        reasons = []
        if at_bound or self.solution.zero_variance_latents:
            which = [*at_bound, *self.solution.zero_variance_latents]
            reasons.append(f"the residual variance of {listing(which)} ran to zero (Heywood case)")
        elif not self._is_definite:
            reasons.append("the estimated covariance of latents or residuals is not positive definite")
        return tuple(reasons)

    @property
    def _is_definite(self) -> bool:
        """Whether Omega is positive definite, variables whose noise the model fixes to zero left out."""
        pattern = self.problem.pattern
        is_zero = (pattern.slot2 < 0) & (pattern.first == pattern.second) & (pattern.fixed2 == 0)
        kept = np.setdiff1d(np.arange(pattern.n_nodes), pattern.first[is_zero])
        return not len(kept) or bool(np.linalg.eigvalsh(self.Omega[np.ix_(kept, kept)])[0] > 0)

    @cached_property
    def status(self) -> str:
        """How the fit went, as a sentence."""
        s, gain = self.solution, f"{self.solution.predicted_gain:.1e} per sample"
        went = {
            kernels.CONVERGED: f"converged in {s.steps} steps",
            kernels.STEP_LIMIT: f"stopped after {s.steps} steps; one more would gain {gain}",
            kernels.STALLED: f"no step improves after {s.steps} steps, yet {gain} is predicted",
            kernels.BAD_START: "the covariance implied by the starting values is not positive definite",
        }[s.end]
        if s.end == kernels.STEP_LIMIT and not s.steps:
            went = "stopped before its first step"
        if s.n_starts > 1:
            went += f", best of {s.n_starts} starts"
        return "; ".join([went, *(f"not admissible: {reason}" for reason in self._improper)])

    @property
    def n_steps(self) -> int:
        """Steps of Fisher scoring taken."""
        return self.solution.steps

    @cached_property
    def history(self) -> Floats:
        """Discrepancy (per sample, doubled) after each step; it never rises."""
        history = self.solution.history
        return np.asarray(history - history[-1] + self.solution.discrepancy)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes on this fit, among them where lavaan's defaults would have given another one."""
        notes = []
        missing = [f"{p.lhs} {p.op} {p.rhs}" for p, ok in zip(self._free, self._identified, strict=True) if not ok]
        if missing:
            unidentified = self.model.n_free - self.dimension
            notes.append(
                f"The data determine only {int(self.dimension)} of {self.model.n_free} free parameters "
                f"({max(unidentified, 0)} too many); without a standard error: {listing(missing)}."
                f"{COUNTED if self.count == 'dimension' else ''}"
            )
        if self.is_cut_short:
            why = "there was no time left for them" if self.full is None else "they need the rows"
            notes.append(f"Standard errors were not computed: {why}.")
        if self.full is None and calls_for_it(self.sample):
            notes.append(NOT_DONE)
        if self.sample.n < self.model.n_free:
            notes.append(
                f"{self.sample.n:.0f} samples for {self.model.n_free} free parameters: estimates will not hold up."
            )
        return (*notes, *self.remarks)

    # Likelihood and indices -------------------------------------------------------------------------------

    @cached_property
    def dimension(self) -> Dimension:
        """Generic dimension of the model; the number of parameters that count."""
        return dimension(self.graph, is_hurried=self.is_cut_short)

    @property
    def n_counted(self) -> int:
        """What df, AIC and BIC count: the dimension, or the free parameters where asked for.

        Variances and covariances of covariates do not count; means do where values are missing (full information).
        """
        counted = int(self.dimension) if self.count == "dimension" else self.model.n_free
        return counted - self._n_given + self._n_means

    @property
    def _n_means(self) -> int:
        """Means that were estimated, but for those of the covariates: rows with missing values need them."""
        return 0 if self.full is None else self.n_observed - len(self.covariates)

    @property
    def _n_given(self) -> int:
        """Variances and covariances of the covariates."""
        return len(self.covariates) * (len(self.covariates) + 1) // 2

    @property
    def n_observed(self) -> int:
        """Number of observed variables."""
        return len(self.sample.names)

    @property
    def df(self) -> int:
        """Degrees of freedom: moments less the generic dimension."""
        n_moments = self.n_observed * (self.n_observed + 1) // 2 + self._n_means
        return n_moments - self._n_given - self.n_counted

    @cached_property
    def chi2(self) -> float:
        """Likelihood-ratio statistic against the saturated model: N times the discrepancy."""
        if self.full is not None:
            return self.full.chi2
        discrepancy = self.solution.discrepancy
        # With no misfit beyond rounding a population fits perfectly; otherwise it rejects without end.
        if math.isinf(self.sample.n):
            return 0.0 if discrepancy < 1e-8 else math.inf
        return max(discrepancy, 0.0) * self.sample.n

    @property
    def loglik(self) -> float:
        """Total log-likelihood (per sample for a population), given the covariates where there are any."""
        if self.full is not None:
            return self.full.loglik
        log_det = self.sample.log_det_corr + 2.0 * float(np.log(self.sample.sd).sum())
        n = 1.0 if math.isinf(self.sample.n) else self.sample.n
        joint = indices.log_likelihood(max(self.solution.discrepancy, 0.0), log_det, self.n_observed, n)
        if not self.covariates:
            return joint
        given = self.sample.select(self.covariates)
        log_det = given.log_det_corr + 2.0 * float(np.log(given.sd).sum())
        return joint - indices.log_likelihood(0.0, log_det, len(given.names), n)

    @property
    def n_samples(self) -> float:
        """Number of samples; of rows with missing values their number (full information)."""
        return self.sample.n if self.full is None else self.full.n

    @property
    def rmsea(self) -> float:
        """Root mean square error of approximation, dividing by N as lavaan does."""
        if math.isinf(self.sample.n):
            return math.sqrt(max(self.solution.discrepancy, 0.0) / self.df) if self.df else 0.0
        return super().rmsea

    @property
    def baseline_chi2(self) -> float:
        """Chi-square of the model in which all variables are independent, but for covariates among themselves."""
        return -self._baseline_log_det * self.sample.n if self.full is None else self.full.baseline_chi2

    @property
    def _baseline_log_det(self) -> float:
        given = self.sample.select(self.model.covariates).log_det_corr if self.model.covariates else 0.0
        return self.sample.log_det_corr - given

    @property
    def baseline_df(self) -> int:
        """Degrees of freedom of that model."""
        q = len(self.model.covariates)
        return (self.n_observed * (self.n_observed - 1) - q * (q - 1)) // 2

    @property
    def _comparison(self) -> tuple[float, int, float, int]:
        if math.isinf(self.sample.n):  # the limit of large N: chi-squares in proportion, nothing to subtract
            return (
                1e12 * max(self.solution.discrepancy, 0.0),
                self.df,
                -1e12 * self._baseline_log_det,
                self.baseline_df,
            )
        return super()._comparison

    @property
    def _n_shown(self) -> float:
        """N as a summary gives it."""
        return self.n_samples

    @cached_property
    def srmr(self) -> float:
        """Standardised root mean square residual; where values are missing, with the means, as lavaan has it."""
        return indices.srmr(self.sample.cov, self.implied_cov) if self.full is None else self.full.srmr

    # Estimates --------------------------------------------------------------------------------------------

    @cached_property
    def estimates(self) -> Floats:
        """(p,) the free parameters on the scale of the data, in the order of the model's free rows."""
        # A search compares likelihoods and never asks; who asks for estimates gets the last digits.
        if self.full is not None:  # they are there already
            return self.solution.x * self.problem.pattern.unit(self.problem.scale)
        return refined(self.problem, self.solution) * self.problem.pattern.unit(self.problem.scale)

    @cached_property
    def F(self) -> Floats:
        """(d, d) effects; rows and columns in causal order (``causal_order``)."""
        return self.problem.pattern.matrices(self.estimates)[0]

    @cached_property
    def Omega(self) -> Floats:
        """(d, d) noise covariance, in causal order."""
        return self.problem.pattern.matrices(self.estimates)[1]

    @property
    def causal_order(self) -> tuple[str, ...]:
        """All variables, causes first: the order of F, Omega and full_cov."""
        return self.problem.pattern.names

    @cached_property
    def full_cov(self) -> Floats:
        """(d, d) implied covariance of all variables, in causal order."""
        E = np.linalg.inv(np.eye(len(self.F)) - self.F)
        return np.asarray(E.T @ self.Omega @ E)

    @cached_property
    def implied_cov(self) -> Floats:
        """(n, n) implied covariance of the observed variables, in the order of ``sample.names``."""
        observed = self.problem.pattern.observed
        return self.full_cov[np.ix_(observed, observed)]

    @property
    def _free(self) -> list[Parameter]:
        """Free rows in the order of the parameter vector: entries of F, then of Omega."""
        rows = [p for p in self.model.parameters if p.fixed is None]
        return sorted(rows, key=lambda p: p.op == "~~")

    @cached_property
    def _information(self) -> Floats:
        """(p, p) expected Hessian of the objective at the solution, variables of unit variance."""
        return self.problem.derivatives(self.solution.x)[2]

    @property
    def is_cut_short(self) -> bool:
        """Whether a large fit has no standard errors, which would take long: no time was left, or not even to end."""
        no_rows = self.full is not None and self.full.acov is None and not self.sample.has_rows
        return (
            (no_rows and self.robust is None)
            or self.is_hurried
            or (self.solution.end == kernels.STEP_LIMIT and len(self.solution.x) >= MANY_PARAMETERS)
        )

    @cached_property
    def _acov(self) -> Floats | None:
        """Covariance of the free parameters (and perhaps of more, behind them) where it is not that of the moments."""
        if self.robust is not None:
            return self.robust.acov
        if self.full is None or self.full.acov is not None:
            return None if self.full is None else self.full.acov
        return covariance_of_estimates(self) if self.sample.has_rows else None

    @cached_property
    def _uncertainty(self) -> tuple[Floats, Bools]:
        """Standard errors (p,) on the scale of the data, NaN where there is none, and who is identified."""
        p = len(self.solution.x)
        if self.is_cut_short:
            return np.full(p, np.nan), np.ones(p, dtype=bool)
        H = self._information
        if not p or not np.isfinite(H).all():
            return np.full(p, np.nan), np.zeros(p, dtype=bool)
        unit = 1.0 / np.sqrt(np.maximum(np.diag(H), 1e-300))
        root = plain_inverse_root(H * np.outer(unit, unit)) if self._acov is None else None
        if root is not None:
            errors = np.sqrt((root**2).sum(axis=1) * 2.0 / self.sample.n) * unit
            return errors * self.problem.pattern.unit(self.problem.scale), np.ones(p, dtype=bool)
        value, vector = np.linalg.eigh(H * np.outer(unit, unit))
        null = value < NO_INFORMATION * max(value[-1], 1.0)
        identified = ~(np.abs(vector[:, null]) > 1e-4).any(axis=1)
        if self._acov is not None:
            errors = np.sqrt(np.maximum(np.diag(self._acov)[:p], 0.0))
        else:
            variance = (vector[:, ~null] ** 2 / value[~null]).sum(axis=1) * unit**2 * 2.0 / self.sample.n
            errors = np.sqrt(variance) * self.problem.pattern.unit(self.problem.scale)
        return np.where(identified, errors, np.nan), identified

    def _again(self, sample: Sample) -> Fit:
        """The same model fitted to a replicate of the data, begun where this fit ended."""
        (again,) = fit_many([self.graph], sample, starts=[self.solution.x], n_restarts=0, n_threads=1)
        return replace(again, count=self.count)

    @property
    def _along(self) -> Floats | None:
        """(p, q) how free rows, on variables of unit variance, move with parameters that stand for several of them."""
        return None

    def _own_root(self) -> tuple[Floats, Floats] | None:
        """What :func:`unmeasured.models.delta.covariance_root` gives, where it does not follow from the information."""
        return None

    @property
    def _identified(self) -> Bools:
        return self._uncertainty[1]

    @cached_property
    def parameters(self) -> pd.DataFrame:
        """One row per parameter: ``lhs op rhs est se z pvalue std``, as lavaan lays them out.

        Fixed parameters have a standard error of 0; a free one that is not identified has none. That of a
        variance at its bound is computed as if there were no bound, as lavaan does: do not rely on it.
        ``std`` is the estimate with all variables of unit variance (lavaan's std.all). What the model text defines by
        ``:=`` comes last.
        """
        return self._parameters()

    def _parameters(self) -> pd.DataFrame:
        rows = self.model.parameters
        values = dict(zip(self._free, zip(self.estimates, self._uncertainty[0], strict=True), strict=True))
        est, se = np.array([values[p] if p.fixed is None else (p.fixed, 0.0) for p in rows]).reshape(-1, 2).T
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(se > 0, est / se, np.nan)
        table = pd.DataFrame(
            {
                "lhs": [p.lhs for p in rows],
                "op": [p.op for p in rows],
                "rhs": [p.rhs for p in rows],
                "est": est,
                "se": se,
                "z": z,
                "pvalue": 2.0 * ndtr(-np.abs(z)),
                "std": [self._standardised(p, value) for p, value in zip(rows, est, strict=True)],
            }
        )
        return pd.concat([table, self._defined_rows(table)], ignore_index=True) if self.model.defined else table

    def _defined_rows(self, table: pd.DataFrame) -> pd.DataFrame:
        """What the model text defines from labels."""
        slots = {id(p): k for k, p in enumerate(self._free)}
        labelled = {
            p.label: Labelled(float(est), float(std), slots.get(id(p), -1))
            for p, est, std in zip(self.model.parameters, table["est"], table["std"], strict=True)
            if p.label is not None
        }
        unit = self.problem.pattern.unit(self.problem.scale)
        return defined_rows(self.model.defined, labelled, len(unit), lambda G: delta_errors(self, G * unit))

    @cached_property
    def _sd(self) -> Mapping[str, float]:
        return dict(zip(self.causal_order, np.sqrt(np.maximum(np.diag(self.full_cov), 0.0)), strict=True))

    @cached_property
    def _noise(self) -> Mapping[str, float]:
        return dict(zip(self.causal_order, np.diag(self.Omega), strict=True))

    def _standardised(self, p: Parameter, est: float) -> float:
        if not self._sd[p.target] > 0:
            return math.nan  # a variable without variance has no standardised scale
        if p.op != "~~":
            return float(est * self._sd[p.source] / self._sd[p.target])
        if p.source == p.target:
            return float(est / self._sd[p.source] ** 2)
        one, other = self._noise[p.source], self._noise[p.target]
        if not (one > 0 and other > 0):
            return math.nan
        return float(est / (math.sqrt(one) * math.sqrt(other)))  # their product may be beyond numbers

    @cached_property
    def r2(self) -> pd.Series:
        """Explained part of the variance of every variable that has causes."""
        caused = np.flatnonzero(np.isin(np.arange(len(self.F)), self.problem.pattern.target))
        noise, total = np.diag(self.Omega), np.diag(self.full_cov)
        values = {self.causal_order[i]: 1.0 - noise[i] / total[i] if total[i] > 0 else math.nan for i in caused}
        return pd.Series({name: values[name] for name in self.model.names if name in values}, name="r2", dtype=float)

    # Effects ----------------------------------------------------------------------------------------------

    def effects(
        self,
        cause: str | None = None,
        effect: str | None = None,
        *,
        confidence: float = 0.95,
        bootstrap: int = 0,
        rng: int | np.random.Generator = 0,
    ) -> pd.DataFrame:
        """Total, direct and indirect effects, one row for each: ``cause effect kind est se z pvalue lower upper std
        ...``.

        For every pair of variables that a directed path leads from one to the other, in the graph as it was fitted;
        what other members of a class say is in :meth:`unmeasured.Result.effects`. An effect is what a unit of the
        cause adds to the effect, the other causes of the cause left as they are; ``std``, with ``std_se std_lower
        std_upper``, is the same in standard deviations.

        Parameters
        ----------
        cause, effect
            Only effects of this variable, only those on this one.
        confidence
            Probability that the intervals cover, such as 0.95.
        bootstrap
            Make intervals from so many replicates of the rows (of a matrix: parametric ones) instead of the delta
            method. A thousand give stable ends.
        rng
            For the replicates.

        Examples
        --------
        >>> import unmeasured as um
        >>> data = um.datasets.load("political_democracy")
        >>> text = "ind60 =~ x1 + x2 + x3; dem60 =~ y1 + y2 + y3 + y4; dem65 =~ y5 + y6 + y7 + y8"
        >>> fit = um.fit(f"{text}; dem60 ~ ind60; dem65 ~ ind60 + dem60", cov=data.frame(), n_samples=data.n_samples)
        >>> fit.effects("ind60", "dem65")[["kind", "std", "std_se"]].round(2)
               kind   std  std_se
        0     total  0.55    0.09
        1    direct  0.15    0.07
        2  indirect  0.41    0.09
        """
        return effects.effects(self, cause, effect, confidence=confidence, bootstrap=bootstrap, rng=rng)

    # Factor scores ----------------------------------------------------------------------------------------

    def scores(
        self, rows: Any, method: scoring.Method = "regression", *, standard_errors: bool = False, mean: Any = None
    ) -> pd.DataFrame:
        """Factor scores: one column per latent, aligned with the rows given.

        Parameters
        ----------
        rows : DataFrame or array
            Rows the model was fitted to, or new ones; other columns are left alone. A missing value is left out: the
            score is that given what the row shows. A row without any value has none.
        method : "regression" or "bartlett"
            The expectation of the latents given the row, which has the least error; or unbiased estimates from the
            indicators. Both are lavaan's ``lavPredict``. With ordinal items the expectation is that given the
            categories.
        standard_errors
            Add a column ``NAME_se`` for each latent: the standard error of its score, the estimates taken as given.
        mean
            Of the observed variables, where the model was fitted to a matrix: a Series, a mapping, or numbers in order.

        Raises
        ------
        DataError
            When the rows lack variables of the model, or the model has no means to compare them with.

        Examples
        --------
        >>> import unmeasured as um
        >>> rows = um.simulate.sample(um.simulate.random_gnfm(n_latents=2, n_observed=6, rng=0), 200, rng=1)
        >>> fit = um.fit("f =~ X1 + X2 + X3; g =~ X4 + X5 + X6", rows)
        >>> fit.scores(rows).shape, list(fit.scores(rows[:3], standard_errors=True))
        ((200, 2), ['f', 'g', 'f_se', 'g_se'])
        """
        return scoring.scores(self, rows, method, standard_errors=standard_errors, mean=mean)

    def score_weights(self, method: scoring.Method = "regression") -> pd.DataFrame:
        """Weights of factor scores, observed x latents: ``scores = (rows - rows.mean()) @ weights``.

        All that is needed to score rows that are elsewhere, and all there is for a model fitted to a matrix. Rows
        must be complete and in the units of that matrix; with ordinal items use :meth:`scores`.

        Examples
        --------
        >>> import unmeasured as um
        >>> data = um.datasets.load("holzinger_swineford")
        >>> text = "visual =~ x1 + x2 + x3; textual =~ x4 + x5 + x6; speed =~ x7 + x8 + x9"
        >>> fit = um.fit(text, cov=data.frame(), n_samples=data.n_samples)
        >>> fit.score_weights().shape
        (9, 3)
        """
        return scoring.score_weights(self, method)

    def determinacy(self, method: scoring.Method = "regression") -> pd.DataFrame:
        """Determinacy of factor scores of complete rows: ``determinacy se minimal``, one row per latent.

        ``determinacy`` is the correlation of score and latent, ``se`` the standard error of a score. Two sets of scores
        that fit the model equally well may correlate as little as ``minimal``; below a determinacy of .71 that is
        negative, and scores should not be used (Grice 2001 asks for .80, and .90 to decide about people).
        """
        return scoring.determinacy(self, method)

    def reliability(self) -> Reliability:
        """Omega, alpha and average variance extracted of each latent, HTMT and Fornell-Larcker, with words.

        ``table``, ``htmt``, ``fornell_larcker`` and ``correlations`` are data frames, ``sentences`` what the
        conventional cuts say; ``print`` shows the table and the sentences.
        """
        return Reliability(self)

    # Local fit --------------------------------------------------------------------------------------------

    def residuals(self, kind: local_fit.Residual = "correlation") -> pd.DataFrame:
        """Residuals of the covariances: observed minus implied, variables by variables.

        Parameters
        ----------
        kind : "correlation", "raw" or "standardised"
            Residuals over the standard deviations in the data (lavaan's ``cor.bentler``), in the units of the data, or
            each over its standard error, which is beyond 2 by chance in one of twenty (lavaan's ``lavResiduals``). A
            residual that is zero by construction has no standard error and is missing there.

        Examples
        --------
        >>> import unmeasured as um
        >>> data = um.datasets.load("holzinger_swineford")
        >>> text = "visual =~ x1 + x2 + x3; textual =~ x4 + x5 + x6; speed =~ x7 + x8 + x9"
        >>> fit = um.fit(text, cov=data.frame(), n_samples=data.n_samples)
        >>> [float(fit.residuals(kind).loc["x7", "x8"].round(3)) for kind in ("correlation", "standardised")]
        [0.075, 4.823]
        """
        return local_fit.residuals(self, kind)

    def modification_indices(self, least: float = 0.0) -> pd.DataFrame:
        """Decrease of chi-square if one more parameter were free: ``lhs op rhs mi epc sepc.all``.

        One row for each loading, covariance and path that the model fixes or leaves out, the largest first. ``epc`` is
        the change of the parameter to expect, ``sepc.all`` the same with all variables of unit variance. Figures and
        rows are those of lavaan's ``modindices``. A list of what would improve the fit of these data is not a list of
        what is true: with many candidates some are large by chance.

        Parameters
        ----------
        least
            Leave out rows with a smaller index; 3.84 is the 5% point of chi-square on one df.

        Examples
        --------
        >>> import unmeasured as um
        >>> data = um.datasets.load("holzinger_swineford")
        >>> text = "visual =~ x1 + x2 + x3; textual =~ x4 + x5 + x6; speed =~ x7 + x8 + x9"
        >>> fit = um.fit(text, cov=data.frame(), n_samples=data.n_samples)
        >>> fit.modification_indices(30).round(2)
              lhs  op rhs     mi   epc  sepc.all
        0  visual  =~  x9  36.41  0.51      0.52
        1      x7  ~~  x8  34.15  0.49      0.86
        """
        return local_fit.modification_indices(self, least)

    def summary(self) -> str:
        """The fit as text: status, indices, parameters, notes."""
        first, second, *robust = self._test_lines()
        lines = [
            f"unmeasured fit: {self.n_observed} observed, {len(self.model.latents)} latent, N = {self._n_shown:g}",
            self.status,
            self.dimension.explain(),
            "",
            first,
            f"{second}, SRMR {self.srmr:.4f}",
            *robust,
            *([] if math.isnan(self.loglik) else [self._likelihood_line()]),
            "",
            apa.table_text(self.parameters),
            *[f"Note: {note}" for note in self.notes],
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Fit: chi2 {self.chi2:.2f} on {self.df} df, N = {self._n_shown:g}; {self.status}>"
