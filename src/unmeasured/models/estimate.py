"""The paths of :func:`unmeasured.fit` beyond plain maximum likelihood on one covariance matrix.

rows ──► columns of the model ──► groups ──► a Sample each ──┬──► MLM, MLR   corrected tests (estimators)
                                                             ├──► WLSMV      polychoric correlations (estimators)
                                                             └──► means, groups, equality, missing values (groups)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import pandas as pd

from unmeasured.arrays import Ints
from unmeasured.data.moments.missing import Missing
from unmeasured.data.rows import as_rows, checked_names, other_frame
from unmeasured.data.sample import NO_ROWS, Cor, Sample, as_sample
from unmeasured.errors import DataError, ModelError, UnmeasuredWarning, listing
from unmeasured.graphs import CPDAG, DAG
from unmeasured.models.estimators import OrdinalFit, check_estimator, continuous_rows, fit_ordinal, with_robust
from unmeasured.models.fit import Count, Fit, FitMissing, fit_many
from unmeasured.models.full import calls_for_it, with_full_information
from unmeasured.models.lavaan import parse
from unmeasured.models.lavaan_defaults import FittedText, differences
from unmeasured.models.multigroup import GroupFit, MeanFit, check_equal, fit_groups, split_groups
from unmeasured.models.parameters import LatentScale, Model, Parameter, model_of
from unmeasured.models.signs import with_signs


@dataclass(frozen=True)
class Options:
    """What :func:`unmeasured.fit` was asked for."""

    estimator: str = "ML"
    groups: Any = None
    equal: Sequence[str] | str = ()
    cor: Cor | None = None
    missing: FitMissing = "ml"
    correlate_exogenous: bool = True
    scale_latents: LatentScale = "variance"
    correlate_outcomes: bool = False
    count: Count = "dimension"

    def parse(self, text: str, observed: Sequence[str], group: int = 0, n_groups: int = 1) -> Model:
        """Model text with these options."""
        return parse(
            text,
            observed=observed,
            correlate_exogenous=self.correlate_exogenous,
            scale_latents=self.scale_latents,
            correlate_outcomes=self.correlate_outcomes,
            group=group,
            n_groups=n_groups,
        )


def estimate(
    model: str | DAG | CPDAG | Model, X: Any, names: Sequence[str] | None, matrix: Sample | None, options: Options
) -> Fit | GroupFit:
    """Fit with any estimator, with means, in groups; ``matrix`` is what was given in place of rows."""
    if matrix is not None:
        return _from_matrix(model, matrix, options)
    frame, kept = _frame(X, names, options)
    labels, parts = _groups(frame, options.groups)
    columns = [str(c) for c in frame.columns if not (_is_column(options.groups) and c == options.groups)]
    models = _models(model, columns, len(parts), options)
    used = models[0].observed
    _check_columns(used, columns)
    table = frame.set_axis([str(c) for c in frame.columns], axis=1)[list(used)]
    if options.estimator == "WLSMV":
        _refuse_means(models[0], "WLSMV", options)
        sample = as_sample(table, cor="polychoric", missing="listwise" if options.missing == "listwise" else "ml")
        return fit_ordinal(_graph(model, models), sample, options.count)
    missing: Missing = "listwise" if options.missing == "listwise" else "ml"
    samples = [
        kept.select(used) if kept is not None and len(parts) == 1 else _sample(table.iloc[rows], label, labels, missing)
        for label, rows in zip(labels, parts, strict=True)
    ]
    for sample in samples:
        continuous_rows(sample, options.estimator)
    has_missing = any(bool(np.isnan(np.asarray(s.rows)).any()) for s in samples)
    full = options.missing == "fiml" or (has_missing and options.estimator == "MLR")
    if len(parts) == 1 and not full and not models[0].intercepts and not models[0].has_equalities:
        fit = fit_many([_graph(model, models)], samples[0])[0]
        fit = with_signs(replace(fit, count=options.count))
        return with_robust(fit, options.estimator) if options.estimator != "ML" else fit
    has_means = len(parts) > 1 or full or bool(models[0].intercepts)
    return _joined(models, samples, labels, options, has_means=has_means)


def fit_with_labels(model: Model, sample: Sample, options: Options) -> MeanFit:
    """Fit a model with equal labels, and without means, to the data that models without labels are fitted to.

    These are the covariance, or the rows themselves where values are missing (full information).
    """
    if math.isinf(sample.n):
        raise ModelError("Equal labels need a sample; this matrix is said to be a population (n_samples=inf).")
    _check_columns(model.observed, sample.names)
    own = sample.select(model.observed)
    has_means = calls_for_it(own) and set(own.kinds) <= {"continuous"}
    found = _joined([model], [own], ("all",), options, has_means=has_means)
    assert isinstance(found, MeanFit)
    return found


def fit_beside(model: DAG | CPDAG | Model, sample: Sample, *, has_means: bool) -> Fit:
    """Fit a model of one group to a sample as others are fitted that it is compared with.

    With means, which are free unless the model states them, the likelihood is that of the rows, complete or not;
    without, that of the covariance, or of rows with missing values.
    """
    read = model if isinstance(model, Model) else model_of(model)
    _check_columns(read.observed, sample.names)
    if not has_means:
        if read.has_equalities:
            return fit_with_labels(read, sample, Options())
        return with_full_information(fit_many([model], sample)[0])
    own = sample.select(read.observed)
    continuous_rows(own, "ML")
    found = _joined([read], [own], ("all",), Options(), has_means=True)
    assert isinstance(found, MeanFit)
    return found


def with_remarks(found: Fit | GroupFit, model: str | DAG | CPDAG | Model, options: Options) -> Fit | GroupFit:
    """Return the fit, with remarks on model text where lavaan's defaults would have given another fit."""
    if not isinstance(model, str):
        return found
    shares: tuple[Fit, ...] = tuple(found.fits.values()) if isinstance(found, GroupFit) else (found,)

    def read(group: int, scale_latents: LatentScale, correlate_outcomes: bool) -> Model:
        told = replace(options, scale_latents=scale_latents, correlate_outcomes=correlate_outcomes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnmeasuredWarning)  # given when the text was read for the fit
            return told.parse(model, shares[group].model.observed, group, len(shares))

    own = found.joint if isinstance(found, GroupFit | MeanFit) else None
    given = [share.sample.rows for share in shares]
    fitted = FittedText(
        models=tuple(share.model for share in shares),
        rows=_slots(shares) if own is None else tuple([(r.parameter, r.slot) for r in rows] for rows in own.table.rows),
        equal=found.equal if isinstance(found, GroupFit) else (),
        read=read,
        scale_latents=options.scale_latents,
        correlate_outcomes=options.correlate_outcomes,
        missing=options.missing,
        names=shares[0].sample.names,
        holes=tuple(np.isnan(rows) for rows in given if rows is not None),
        is_ordinal=isinstance(found, OrdinalFit),
        is_at_bound=any(bool(share.solution.at_bound.any()) for share in shares),
    )
    return replace(found, remarks=differences(fitted))


def _slots(fits: Sequence[Fit]) -> tuple[list[tuple[Parameter, int]], ...]:
    """The parameters of models without equalities, each free one with a number of its own."""
    return tuple([(p, k if p.fixed is None else -1) for k, p in enumerate(fit.model.parameters)] for fit in fits)


def estimate_groups(model: DAG | CPDAG | Model, sample: Sample, options: Options) -> GroupFit:
    """Fit one model to the groups of a sample's rows."""
    found = estimate(model, sample, None, None, options)
    assert isinstance(found, GroupFit)
    return found


def _joined(
    models: list[Model], samples: list[Sample], labels: tuple[str, ...], options: Options, *, has_means: bool
) -> MeanFit | GroupFit:
    estimated, fits = fit_groups(
        models,
        samples,
        labels,
        equal=check_equal(options.equal),
        estimator=options.estimator,
        count=options.count,
        has_means=has_means,
    )
    return fits[0] if len(fits) == 1 else GroupFit(dict(zip(labels, fits, strict=True)), estimated, estimated.robust)


def _from_matrix(model: str | DAG | CPDAG | Model, sample: Sample, options: Options) -> Fit | GroupFit:
    """From a covariance matrix only equality by labels can be had: it has neither means nor groups nor rows."""
    if options.estimator != "ML":
        continuous_rows(sample, options.estimator)
    if options.groups is not None:
        raise DataError("groups= needs rows, with a column that says who belongs to which group; a matrix has none.")
    (given,) = _models(model, sample.names, 1, options)
    if given.intercepts:
        raise ModelError(
            f"The model states the mean of {listing([p.source for p in given.intercepts])}; a matrix has no means. "
            "Pass rows, or remove the statement."
        )
    return fit_with_labels(given, sample, options)


_CHOICES: dict[str, tuple[str, ...]] = {
    "scale_latents": get_args(LatentScale),
    "count": get_args(Count),
    "missing": get_args(FitMissing),
}


def check_options(options: Options) -> None:
    """Refuse options that do not exist, and combinations that mean nothing."""
    check_estimator(options.estimator)
    equal = check_equal(options.equal)
    for name, choices in _CHOICES.items():
        if (value := getattr(options, name)) not in choices:
            raise DataError(f"{name} must be one of {listing(choices)}; got {value!r}.")
    if options.cor is not None and options.cor not in get_args(Cor):
        raise DataError(f"cor must be one of {listing(get_args(Cor))}; got {options.cor!r}.")
    for name in ("correlate_exogenous", "correlate_outcomes"):
        if not isinstance(value := getattr(options, name), bool | np.bool_):
            raise ModelError(f"{name} is True or False; got {value!r}.")
    if equal and options.groups is None:
        raise ModelError(f"equal={list(equal)} says what groups share, but there are none. Name their column: groups=.")
    if options.estimator == "WLSMV":
        if options.groups is not None:
            raise ModelError("estimator='WLSMV' takes one group. Fit each on its own, or use estimator='MLR'.")
        if options.cor not in (None, "polychoric"):
            raise DataError(
                "estimator='WLSMV' takes all variables as ordinal: leave cor= out, or use cor='polychoric'."
            )
        if options.missing == "fiml":
            raise DataError(
                "estimator='WLSMV' has no likelihood of the rows: each correlation is from the rows that show both "
                "items. Leave missing= out, or use 'listwise'."
            )
    is_plain = options.estimator == "ML" and options.groups is None and options.missing != "fiml"
    if not is_plain:
        _check_moments(options)


def _check_moments(options: Options) -> None:
    """Refuse what only the moments of all rows can be made by."""
    if options.estimator != "WLSMV" and options.cor not in (None, "pearson"):
        raise DataError(
            f"cor={options.cor!r} goes with estimator='ML' on one group without means, or with 'WLSMV'; here variables "
            "are taken as continuous. Leave it out."
        )
    if options.missing == "pairwise" and options.estimator != "WLSMV":
        raise DataError("missing='pairwise' goes with estimator='ML' on one group without means. Use missing='ml'.")


def used_columns(models: Sequence[str | DAG | CPDAG | Model], X: Any, parse: Callable[..., Model]) -> Any:
    """The columns of a data frame that models are about, so that the others may hold text; other tables as they are.

    ``parse`` reads model text, given the names of the columns.
    """
    if not isinstance(X, pd.DataFrame):
        frame = None if hasattr(X, "blocks") else other_frame(X)
        if frame is None:
            return X
        X = frame
    columns = checked_names(list(X.columns), X.shape[1])
    used: set[str] = set()
    for model in models:
        if isinstance(model, str):
            with warnings.catch_warnings():  # the text is read once more, with its warnings
                warnings.simplefilter("ignore", UnmeasuredWarning)
                used |= set(parse(model, columns).observed)
        elif isinstance(model, DAG | CPDAG | Model):
            used |= set(model.observed)
    if not used or not used <= set(columns):
        return X  # what is missing is said where the model meets the data
    return X.iloc[:, [k for k, name in enumerate(columns) if name in used]]


def _frame(X: Any, names: Sequence[str] | None, options: Options) -> tuple[pd.DataFrame, Sample | None]:
    """Any table as a data frame; a Sample brings the rows it was made of."""
    if isinstance(X, Sample):
        if X.rows is None:
            raise DataError(NO_ROWS)
        kept = X if options.estimator != "WLSMV" else None
        return pd.DataFrame(X.rows, columns=list(X.names)), kept
    frame = X if isinstance(X, pd.DataFrame) else other_frame(X)
    if frame is not None and names is None:
        return frame, None
    rows = as_rows(X, names)
    return pd.DataFrame(rows.values, columns=list(rows.names)), None


def _groups(frame: pd.DataFrame, groups: Any) -> tuple[tuple[str, ...], list[Ints]]:
    if groups is None:
        return ("all",), [np.arange(len(frame))]
    if _is_column(groups):
        return split_groups(frame, groups)
    if isinstance(groups, Mapping | pd.DataFrame) or any(
        isinstance(value, Sized) and not isinstance(value, str | bytes) for value in groups
    ):
        raise DataError(
            f"groups= is the name of a column or one value for each row; got a {type(groups).__name__} of other things."
        )
    values = pd.Series(np.asarray(groups), index=frame.index, name="groups") if len(groups) == len(frame) else None
    if values is None:
        raise DataError(
            f"groups has {len(groups)} values for {len(frame)} rows. Give one for each row, or a column's name."
        )
    return split_groups(values.to_frame(), "groups")


def split_rows_by_group(X: Any, groups: Any) -> tuple[pd.DataFrame, list[str]]:
    """Rows as a data frame without the column that names groups, and the group of each row.

    Raises
    ------
    DataError
        When there is no such column, a row has no group, or there is only one.
    """
    frame, _ = _frame(X, None, Options())
    labels, parts = _groups(frame, groups)
    of = np.empty(len(frame), dtype=object)
    for label, rows in zip(labels, parts, strict=True):
        of[rows] = label
    table = frame.drop(columns=[groups]) if _is_column(groups) else frame
    return table, of.tolist()


def _is_column(groups: Any) -> bool:
    """Whether groups are named by a column, not given by value."""
    return isinstance(groups, str) or (groups is not None and not isinstance(groups, Sized))


def _models(model: str | DAG | CPDAG | Model, columns: Sequence[str], n: int, options: Options) -> list[Model]:
    """The model of each group."""
    if isinstance(model, str):
        return [options.parse(model, columns, g, n) for g in range(n)]
    return [model if isinstance(model, Model) else model_of(model)] * n


def _graph(model: str | DAG | CPDAG | Model, models: list[Model]) -> DAG | CPDAG | Model:
    """What a fit of one group keeps as its model: the graph as it was given, or the text as it was read."""
    return models[0] if isinstance(model, str) else model


def _check_columns(used: Sequence[str], columns: Sequence[str]) -> None:
    if not used:
        raise ModelError("The model has no observed variables, so there is nothing to fit it to.")
    absent = [name for name in used if name not in set(columns)]
    if absent:
        raise DataError(f"The model's variables {listing(absent)} are not in the data, which have {listing(columns)}.")


def _sample(table: pd.DataFrame, label: str, labels: tuple[str, ...], missing: Missing) -> Sample:
    """The rows of one group; what is wrong with them is said with the name of the group."""
    try:
        return as_sample(table, missing=missing)
    except DataError as error:
        if len(labels) == 1:
            raise
        raise DataError(f"In group {label!r} ({len(table)} rows): {error}") from None


def _refuse_means(model: Model, estimator: str, options: Options) -> None:
    if model.intercepts or model.has_equalities:
        what = "means ('~ 1')" if model.intercepts else "equal labels"
        raise ModelError(f"estimator={estimator!r} does not take {what}. Remove them, or use estimator='MLR'.")
