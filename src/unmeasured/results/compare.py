"""Several models of the same data side by side, and difference tests where one is a special case of another.

**When is A nested in B?** When B can reproduce every covariance that A can imply. Comparing parameter tables does not
decide it: a factor model may be nested in one that shares no parameter name with it, and two models with different
arrows may be the same set. So we ask B itself (Bentler and Satorra 2010): draw parameters of A at random, take the
covariance they imply as a population, fit B to it.

    B fits each of three such populations without misfit  →  nested
    B misses each of them                                 →  not nested
    anything else                                         →  not known

The covariances of A that B can imply are all of A's, or else a set of measure zero among them, so one random point
already decides; three guard against rounding. A model may also fail to fit for want of a good start, which is why
failures must agree before we say so. A nested model of the same dimension is the same model: the two are *equivalent*.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any, Literal

import numpy as np
import pandas as pd

from unmeasured import apa
from unmeasured.arrays import Floats
from unmeasured.data.datasets import PublishedModel
from unmeasured.data.moments.missing import Missing
from unmeasured.data.rows import frozen
from unmeasured.data.sample import Cor, Sample, as_sample
from unmeasured.errors import ModelError, listing
from unmeasured.graphs import CPDAG, DAG
from unmeasured.models.estimate import fit_beside, used_columns
from unmeasured.models.estimators import OrdinalFit
from unmeasured.models.fit import Fit, fit_many
from unmeasured.models.indices import p_value
from unmeasured.models.lavaan import parse
from unmeasured.models.multigroup import MeanFit, fit_anywhere, random_moments
from unmeasured.models.parameters import Model, Pattern
from unmeasured.results.held_out import held_out
from unmeasured.results.interpretation import html_list, number
from unmeasured.results.result import Result

Nesting = Literal["nested", "not nested", "not known"]

# Misfit of a population, per sample: below the first there is none but rounding, above the second it is real.
_NONE, _REAL = 1e-8, 1e-6
_POINTS = 3

_COLUMNS = ("chi2", "df", "pvalue", "rmsea", "cfi", "tli", "srmr", "aic", "bic")
_WHICH_WAY = "Smaller RMSEA, SRMR, AIC and BIC are better, larger CFI and TLI; best BIC first."
_TESTS = "Difference tests; a small p-value speaks for the larger model:"
_HELD_OUT = "Log-likelihood of rows left out, per row (cross-validation); differences are to the best model:"
_DIGITS = {"chi2": 2, "rmsea": 4, "cfi": 4, "tli": 4, "srmr": 4, "aic": 1, "bic": 1}


def compare_models(
    models: Mapping[str, Any],
    X: Any = None,
    *,
    cov: Any = None,
    n_samples: float | None = None,
    names: Sequence[str] | None = None,
    cor: Cor | None = None,
    missing: Missing = "ml",
    correlate_exogenous: bool = True,
    folds: int = 0,
    rng: int | np.random.Generator = 0,
) -> ModelComparison:
    """Fit several models to the same data and compare them.

    Parameters
    ----------
    models : mapping of str to model
        By name: lavaan text, a DAG or CPDAG, a Model, a published model of a data set, a Fit, a Result, or a search
        that was fitted.
    X, cov, n_samples, names
        The data, as in :func:`unmeasured.fit`. Left out: those of the first fitted model.
    cor, missing
        What to make of rows, as in :func:`unmeasured.as_sample`. Left out, ``cor`` is "auto" if a model among them was
        fitted to ordinal variables or scores of ranks, else "pearson".
    correlate_exogenous : bool
        For model text only: lavaan's ``auto.cov.lv.x``.
    folds : int
        Cross-validate: fit to all but one of so many parts of the rows, judge by the log-likelihood of the part left
        out (``held_out``). A graph that was found in the same rows has seen them all; judge it on others
        (``um.confirm``).
    rng
        For the split into folds.

    Returns
    -------
    ModelComparison
        ``table`` with fit indices, best BIC first; ``tests`` with chi-square differences of nested models; ``notes``.

    Examples
    --------
    >>> import unmeasured as um
    >>> data = um.datasets.load("holzinger_swineford")
    >>> three = "visual =~ x1 + x2 + x3; textual =~ x4 + x5 + x6; speed =~ x7 + x8 + x9"
    >>> one = "g =~ " + " + ".join(data.names)
    >>> compared = um.compare_models({"three": three, "one": one}, cov=data.frame(), n_samples=data.n_samples)
    >>> compared.table["df"].to_dict()
    {'three': 24, 'one': 27}
    >>> compared.tests[["smaller", "larger", "df"]].to_dict("records")
    [{'smaller': 'one', 'larger': 'three', 'df': 3}]
    """
    if not isinstance(models, Mapping):
        raise ModelError(
            "models is a mapping of names to models, such as {'mine': 'f =~ x1 + x2 + x3', 'theirs': fit}; got "
            f"{type(models).__name__}."
        )
    if not models:
        raise ModelError("There is nothing to compare; give at least one model, such as {'mine': 'f =~ x1 + x2 + x3'}.")
    if not isinstance(correlate_exogenous, bool):
        raise ModelError(f"correlate_exogenous is True or False; got {correlate_exogenous!r}.")
    given = {str(name): _opened(name, model) for name, model in models.items()}
    if X is not None and names is None and not isinstance(X, Sample):
        X = used_columns([_structure(model) for model in given.values()], X, _parsed_text)
    sample = _data(given, X, cov=cov, n_samples=n_samples, names=names, cor=cor or _cor(given), missing=missing)
    read = {name: _read(model, sample, correlate_exogenous) for name, model in given.items()}
    # Likelihoods are of one kind: with means where one of the models has them.
    means = [name for name, model in read.items() if _has_means(model)]
    if means and sample.rows is None:
        raise ModelError(f"Means are part of {listing(means)}, and a matrix has none. Pass rows.")
    has_means = bool(means)
    fits = {name: _fit(model, sample, has_means) for name, model in read.items()}
    if len({frozenset(fit.covariates) for fit in fits.values()}) > 1:
        # What one model is conditioned on is a variable of another: the likelihood of all variables compares them.
        fits = {name: _of_all_variables(fit) for name, fit in fits.items()}
    came = {name: model for name, model in read.items() if isinstance(model, Fit)}
    refitted = tuple(name for name, model in came.items() if not _is_of(model, sample))
    same = {name for name, model in came.items() if _is_kept(model, has_means)}
    recounted = tuple(name for name in came if name not in refitted and name not in same)
    judged = held_out(fits, sample, folds, rng) if folds else None
    if not _is_about_the_same(fits):
        return ModelComparison(fits, refitted, judged, recounted)
    return ModelComparison(dict(sorted(fits.items(), key=lambda item: item[1].bic)), refitted, judged, recounted)


def _is_about_the_same(fits: Mapping[str, Fit]) -> bool:
    """Return whether all models are about the same variables."""
    return len({frozenset(fit.sample.names) for fit in fits.values()}) == 1


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Fits of several models to the same data, best BIC first; ``refitted`` names those that came with a fit to others.

    ``recounted`` names those that came with a fit of another kind: without means, where another model has them.
    ``held_out``, where folds were asked for, has ``loglik se difference difference_se`` of rows left out, per row.
    """

    fits: Mapping[str, Fit]
    refitted: tuple[str, ...] = ()
    held_out: pd.DataFrame | None = None
    recounted: tuple[str, ...] = ()

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per model: ``chi2 df pvalue rmsea cfi tli srmr aic bic proper``, best BIC first.

        Models that are not about the same variables have no AIC and BIC here, and come in the order given. ``proper``
        says whether the fit converged to an admissible solution.
        """
        rows = [
            {column: getattr(fit, column) for column in _COLUMNS} | {"proper": fit.converged and fit.admissible}
            for fit in self.fits.values()
        ]
        table = pd.DataFrame(rows, index=list(self.fits))
        return table if _is_about_the_same(self.fits) else table.assign(aic=math.nan, bic=math.nan)

    @cached_property
    def nesting(self) -> pd.DataFrame:
        """Whether the model of a row is a special case of that of a column; see the top of this module."""
        frame = pd.DataFrame("", index=list(self.fits), columns=list(self.fits))
        for small, large in permutations(self.fits, 2):
            frame.loc[small, large] = is_nested(self.fits[small], self.fits[large])
        return frame

    @cached_property
    def tests(self) -> pd.DataFrame:
        """Difference tests, ``smaller larger chi2 df pvalue``, one for each model nested in a larger one.

        The smaller model holds under the null hypothesis; a small p-value speaks for the larger one. Where the smaller
        lies on the border of the larger (one factor is three that correlate perfectly), the p-value is too large. None
        for a population, where there is nothing to test.
        """
        rows = []
        for a, b in permutations(self.fits, 2):
            small, large = self.fits[a], self.fits[b]
            df = small.df - large.df
            if df > 0 and not math.isinf(small.sample.n) and self.nesting.loc[a, b] == "nested":
                chi2 = max(small.chi2 - large.chi2, 0.0)
                rows.append({"smaller": a, "larger": b, "chi2": chi2, "df": df, "pvalue": p_value(chi2, df)})
        return pd.DataFrame(rows, columns=["smaller", "larger", "chi2", "df", "pvalue"])

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a careful reader should know: fits that failed, models that are the same, figures not to compare."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        if self.refitted:
            yield (
                f"Refitted, as the data given are not those they came from: {', '.join(self.refitted)}. (Other "
                "correlations of the same rows are other data; leave the data out to keep those of the first.)"
            )
        for name, fit in self.fits.items():
            if not (fit.converged and fit.admissible):
                yield f"{name}: {fit.status}."
            # That the groups of a graph rotate is as it should be, and no reason to distrust its fit.
            if fit.model.n_free - fit.dimension.n_rotations > fit.dimension or fit.sample.n < fit.model.n_free:
                yield from (f"{name}: {note}" for note in fit.notes)
        if self.recounted:
            yield (
                f"Refitted with means, as others among the models have them: {', '.join(self.recounted)}. AIC, BIC "
                "and SRMR of all models count means."
            )
        if not _is_about_the_same(self.fits):
            yield (
                "The models are not about the same variables: chi-square, AIC and BIC of those over different ones "
                "cannot be compared, so AIC and BIC are left out."
            )
        for a, b in permutations(self.fits, 2):
            same = self.fits[a].dimension == self.fits[b].dimension and self.nesting.loc[a, b] == "nested"
            if same and list(self.fits).index(a) < list(self.fits).index(b):
                yield f"{a} and {b} are equivalent: they fit any data alike."
            if self.nesting.loc[a, b] == "not known":
                yield f"Whether {a} is nested in {b} could not be decided."

    @property
    def _printed(self) -> pd.DataFrame:
        """The table as it is printed: figures rounded, small p-values as such."""
        shown = self.table.astype(object)
        for column, digits in _DIGITS.items():
            shown[column] = [number(value, digits) for value in self.table[column]]
        shown["pvalue"] = [apa.p_value(p) for p in self.table["pvalue"]]
        shown["proper"] = ["yes" if value else "no" for value in self.table["proper"]]
        return shown

    def _tests_in_words(self) -> Iterator[str]:
        for row in self.tests.to_dict(orient="records"):
            test = f"chi-square {row['chi2']:.2f} on {row['df']} df, p {apa.p_value(row['pvalue'], '= ')}"
            yield f"{row['smaller']} in {row['larger']}: {test}"

    def __str__(self) -> str:
        lines = [self._printed.to_string(), _WHICH_WAY]
        lines += ["", _TESTS, *(f"- {test}" for test in self._tests_in_words())] if len(self.tests) else []
        if self.held_out is not None:
            lines += ["", _HELD_OUT, self.held_out.round(4).to_string()]
        lines += ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        tests = f"<p>{_TESTS}</p>{html_list(self._tests_in_words())}" if len(self.tests) else ""
        if self.held_out is not None:
            tests += f"<p>{_HELD_OUT}</p>{self.held_out.round(4).to_html(border=0)}"
        return f"<div>{self._printed.to_html(border=0)}<p>{_WHICH_WAY}</p>{tests}{html_list(self.notes)}</div>"


# The models -------------------------------------------------------------------------------------------------


def _opened(name: str, model: Any) -> Any:
    """What stands for a model: of a fitted search and of a result the fit, else itself; strangers are refused."""
    model = getattr(model, "result_", model)
    model = model.sem if isinstance(model, Result) else model
    if isinstance(model, str | DAG | CPDAG | Model | Fit | PublishedModel):
        return model
    if hasattr(model, "fit_cov"):
        raise ModelError(f"The search {name!r} was not fitted yet. Call its fit first.")
    raise ModelError(
        f"{name!r} is no model: got {type(model).__name__}. Give lavaan text, a graph, a Fit, a Result or a fitted "
        "search."
    )


def _data(models: Mapping[str, Any], X: Any, **options: Any) -> Sample:
    if X is None and options["cov"] is None:
        for model in models.values():
            if isinstance(model, Fit):
                return model.sample
    return as_sample(X, **options)


def _cor(models: Mapping[str, Any]) -> Cor:
    """The correlations that a fit among the models is of, so that rows given beside it mean the same once more."""
    kinds = {kind for model in models.values() if isinstance(model, Fit) for kind in model.sample.kinds}
    return "auto" if kinds & {"ordinal", "scores"} else "pearson"


def _structure(model: Any) -> Any:
    """The text, graph or model behind what may be compared."""
    if isinstance(model, Fit):
        return model.graph
    return model.text if isinstance(model, PublishedModel) else model


def _parsed_text(text: str, columns: Sequence[str]) -> Model:
    return parse(text, observed=columns)


def _read(model: Any, sample: Sample, correlate_exogenous: bool) -> Fit | DAG | CPDAG | Model:
    if isinstance(model, PublishedModel):
        model, correlate_exogenous = model.text, model.correlate_exogenous
    if isinstance(model, str):
        return parse(model, observed=sample.names, correlate_exogenous=correlate_exogenous)
    if isinstance(model, OrdinalFit):
        raise ModelError(
            "A fit by WLSMV has no likelihood, and so no AIC, no BIC and no likelihood-ratio test. Compare the models' "
            "text or graphs on the rows, with cor='polychoric'."
        )
    if isinstance(model, MeanFit) and model.joint is not None and len(model.joint.labels) > 1:
        raise ModelError(
            "One group's share of a fit of several groups is no fit of its own: what is equal across groups shows in "
            "it. Compare the model's text or graph on the rows of this group."
        )
    checked: Fit | DAG | CPDAG | Model = model
    return checked


def _has_means(model: Fit | DAG | CPDAG | Model) -> bool:
    """Return whether means are stated; full information of rows with missing values has them without."""
    if isinstance(model, Fit):
        return model.has_means and model.full is None
    return isinstance(model, Model) and bool(model.intercepts)


def _is_kept(fit: Fit, has_means: bool) -> bool:
    """Return whether the likelihood of a fit is of the kind that is compared; full information is of both."""
    return fit.full is not None or fit.has_means is has_means


def _is_of(fit: Fit, sample: Sample) -> bool:
    """Return whether a fit is to these data: the same rows where both know them, the same covariance and N."""
    if not set(fit.sample.names) <= set(sample.names):
        return False
    common = sample.select(fit.sample.names)
    if fit.has_means and common.rows is not None and fit.sample.rows is not None:
        return np.array_equal(common.rows, fit.sample.rows, equal_nan=True)
    return common.n == fit.sample.n and np.allclose(common.cov, fit.sample.cov, rtol=1e-9, atol=0.0)


def _fit(model: Fit | DAG | CPDAG | Model, sample: Sample, has_means: bool) -> Fit:
    if isinstance(model, Fit):
        if _is_of(model, sample) and _is_kept(model, has_means):
            return model
        model = model.graph
    unknown = [name for name in model.observed if name not in sample.names]
    if unknown:
        raise ModelError(f"The data do not have these variables of the model: {listing(unknown)}.")
    return fit_beside(model, sample, has_means=has_means)


def _of_all_variables(fit: Fit) -> Fit:
    """Return the fit with covariates as variables of the model."""
    if isinstance(fit, MeanFit) and fit.joint is not None:
        return replace(fit, is_joint=True, joint=replace(fit.joint, is_joint=True))
    return replace(fit, is_joint=True)


# Nesting ----------------------------------------------------------------------------------------------------


def is_nested(smaller: Fit, larger: Fit) -> Nesting:
    """Whether the model of one fit is a special case of that of the other; the top of this module has the rule."""
    if set(smaller.sample.names) != set(larger.sample.names) or smaller.dimension > larger.dimension:
        return "not nested"
    # The optimum over a larger set is at least as good; where it is not, the sets are not nested or a fit failed.
    if smaller.solution.discrepancy < larger.solution.discrepancy - 1e-6 and smaller.converged and larger.converged:
        return "not nested"
    rng = np.random.default_rng(20_261_115)  # fixed: the same models get the same answer in every run
    populations = [random_population(smaller, rng) for _ in range(_POINTS)]
    misfit = [_misfit(larger, population) for population in populations if population is not None]
    if len(misfit) < _POINTS:
        return "not known"
    if max(misfit) < _NONE:
        return "nested"
    return "not nested" if min(misfit) > _REAL else "not known"


def random_population(fit: Fit, rng: np.random.Generator) -> Sample | None:
    """A population of the model at random parameters: strong loadings and paths, so that misfit shows.

    None where equal labels leave no proper one that was found.
    """
    if isinstance(fit, MeanFit):
        moments = random_moments(fit, rng)
        if moments is None:
            return None
        return replace(Sample.from_cov(moments[1], math.inf, fit.sample.names), mean=frozen(moments[0]))
    pattern = fit.problem.pattern
    F, Omega = pattern.matrices(np.append(_random_parameters(pattern, rng), 0.0))
    noise = np.diag(np.diag(Omega))
    # Covariances drawn one by one need not fit together; shrink them until they do.
    while np.linalg.eigvalsh(Omega)[0] < 0.05 * noise.max() and np.abs(Omega - noise).max() > 1e-3:
        Omega = noise + 0.7 * (Omega - noise)
    E = np.linalg.inv(np.eye(len(F)) - F)
    cov = (E.T @ Omega @ E)[np.ix_(pattern.observed, pattern.observed)]
    return Sample.from_cov(cov, math.inf, fit.sample.names)


def _random_parameters(pattern: Pattern, rng: np.random.Generator) -> Floats:
    p = pattern.n_free
    sign = rng.choice([-1.0, 1.0], p)
    size = np.where(pattern.is_path, rng.uniform(0.4, 0.9, p), rng.uniform(0.2, 0.5, p))
    return np.where(pattern.is_variance, rng.uniform(0.3, 0.8, p), sign * size)


def _misfit(fit: Fit, population: Sample) -> float:
    if isinstance(fit, MeanFit):
        own = population.select(fit.sample.names)
        mean = own.mean if fit.has_means and own.mean is not None else np.zeros(len(own.names))
        return fit_anywhere(fit, mean, own.cov)
    (other,) = fit_many([fit.graph], population.select(fit.sample.names))
    return other.solution.discrepancy
