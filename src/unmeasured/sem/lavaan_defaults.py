"""Remarks on model text that lavaan's ``sem()`` fits otherwise by default.

Text says the same here and there; what is added to it differs. A remark is made only where that changes the fit, and
says what was done, what lavaan would have done, and the argument that gives it:

- latents scaled by their variance where a constraint fixes their scale too (below);
- residual covariances among outcomes, ``auto.cov.y``;
- loadings of a growth model without the means that ``growth()`` adds;
- rows with missing values, and covariates that lack some of theirs;
- covariates taken as ordinal items by WLSMV;
- variances that end at zero here and become negative there.

**When the scale of a latent matters.** Multiply a latent by c: its loadings are divided by c, effects on it and
covariances with it multiplied, its variance multiplied by c squared. A constraint that says the same before and after
lets the scale be chosen at will, so that a variance of 1 and a first loading of 1 are the same model. Equal parameters
must change by the same factor, and a fixed value other than zero must not change.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unmeasured.errors import UnmeasuredWarning, listing
from unmeasured.remarks import Remark, note
from unmeasured.sem.estimators import OrdinalFit
from unmeasured.sem.fit import Fit
from unmeasured.sem.groups import GroupFit, MeanFit, Row, Table
from unmeasured.sem.parameters import Model, Operator, Parameter

if TYPE_CHECKING:
    from unmeasured.sem.estimate import Options


def differences(text: str, found: Fit | GroupFit, options: Options) -> tuple[Remark, ...]:
    """Return a remark for each default of lavaan's ``sem()`` that would have given another fit of this text."""
    shares: tuple[Fit, ...] = tuple(found.fits.values()) if isinstance(found, GroupFit) else (found,)
    sentences = (
        *_scales(text, shares, found, options),
        *_outcomes(text, shares, options),
        *_growth(shares[0].model),
        *_missing(shares, options),
        *_ordinal_covariates(shares[0]),
        *_bounds(shares),
    )
    return tuple(map(note, sentences))


def _parsed(text: str, model: Model, options: Options, group: int, n_groups: int) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnmeasuredWarning)  # given when the text was read for the fit
        return options.parse(text, model.observed, group, n_groups)


# Scales of latents -----------------------------------------------------------------------------------------


def _scales(text: str, shares: tuple[Fit, ...], found: Fit | GroupFit, options: Options) -> Iterator[str]:
    if options.scale_latents != "variance":
        return
    table = _table(found)
    both = replace(options, scale_latents="first-indicator")
    ours, theirs = (
        [_parsed(text, share.model, how, g, len(shares)) for g, share in enumerate(shares)] for how in (options, both)
    )
    # The rows that set the scale by default: a variance here, a loading there.
    changed = {
        (g, p.op, p.source, p.target)
        for g, (one, other) in enumerate(zip(ours, theirs, strict=True))
        for p, q in zip(one.parameters, other.parameters, strict=True)
        if p.fixed != q.fixed
    }
    scaled = {(source, g) for g, _, source, _ in changed}
    reasons: dict[str, None] = {}
    latents: dict[str, None] = {}
    for rows in _constraints(table, changed):
        tied = _tied(rows, table) & scaled
        if tied:
            reasons[_reason(rows)] = None
            latents.update(dict.fromkeys(name for name in table.models[0].latents if name in {x for x, _ in tied}))
    if reasons:
        yield (
            f"The variance of {listing(latents)} is fixed to 1 here, which restricts the model further because of "
            f"{_series(list(reasons))}. lavaan::sem fixes the first loading of each latent to 1 instead and leaves its "
            'variance free, which is another model. Use scale_latents="first-indicator" for that.'
        )


def _series(phrases: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(phrases[:-1]), phrases[-1])))


def _table(found: Fit | GroupFit) -> Table:
    if isinstance(found, GroupFit):
        return found.joint.table
    if isinstance(found, MeanFit) and found.joint is not None:
        return found.joint.table
    return Table.of((found.model,), ())


def _constraints(table: Table, by_default: set[tuple[int, Operator, str, str]]) -> Iterator[list[Row]]:
    """Rows that are equal, and each that has a value other than zero which the text itself gives."""
    equal: dict[int, list[Row]] = {}
    for rows in table.rows:
        for row in rows:
            p = row.parameter
            if row.slot >= 0:
                equal.setdefault(row.slot, []).append(row)
            elif p.fixed and (row.group, p.op, p.source, p.target) not in by_default:
                yield [row]
    yield from (rows for rows in equal.values() if len(rows) > 1)


def _tied(rows: list[Row], table: Table) -> set[tuple[str, int]]:
    """Latents, each with its group, whose scale a constraint depends on."""
    # With equal loadings a latent has one scale in all groups.
    has_one_scale = "loadings" in table.equal
    latents = set(table.models[0].latents)
    powers = [Counter[tuple[str, int]]() for _ in rows]
    for power, row in zip(powers, rows, strict=True):
        for name, by in _power(row.parameter):
            if name in latents:
                power[name, 0 if has_one_scale else row.group] += by
    if len(rows) == 1:
        powers.append(Counter())
    keys = {key for power in powers for key in power}
    tied = {key for key in keys if len({power[key] for power in powers}) > 1}
    groups = range(len(table.models)) if has_one_scale else ()
    return tied | {(name, g) for name, _ in tied for g in groups}


def _power(p: Parameter) -> tuple[tuple[str, int], ...]:
    """By which power of their scales a parameter changes."""
    if p.op == "~1":
        return ((p.source, 1),)
    return (p.source, 1 if p.op == "~~" else -1), (p.target, 1)


def _reason(rows: list[Row]) -> str:
    p = rows[0].parameter
    if len(rows) > 1:
        return f"the label {p.label!r}" if p.label else f"'{p.lhs} {p.op} {p.rhs}', equal across groups"
    if p.op == "=~":
        return f"fixed loadings of {p.lhs!r}"
    return f"the fixed value of '{p.lhs} {p.op} {p.rhs}'" if p.op != "~1" else f"the fixed mean of {p.lhs!r}"


# Other defaults --------------------------------------------------------------------------------------------


def _outcomes(text: str, shares: tuple[Fit, ...], options: Options) -> Iterator[str]:
    if options.correlate_outcomes:
        return
    ours, theirs = (
        {(p.source, p.target) for p in _parsed(text, shares[0].model, how, 0, len(shares)).parameters if p.op == "~~"}
        for how in (options, replace(options, correlate_outcomes=True))
    )
    added = [f"{a} ~~ {b}" for a, b in sorted(theirs - ours)]
    if added:
        yield (
            f"Outcomes have uncorrelated residuals here. lavaan::sem frees {listing(added)} (auto.cov.y), which takes "
            f"{len(added)} degree{'s' * (len(added) > 1)} of freedom. Use correlate_outcomes=True for that."
        )


def _growth(model: Model) -> Iterator[str]:
    """Latents whose loadings are all fixed, on the same items: a curve over time."""
    loadings: dict[str, list[Parameter]] = {}
    for p in model.parameters:
        if p.op == "=~":
            loadings.setdefault(p.source, []).append(p)
    fixed = {
        name: {p.target for p in rows} for name, rows in loadings.items() if all(p.fixed is not None for p in rows)
    }
    curve = [name for name, items in fixed.items() if len(items) > 1 and list(fixed.values()).count(items) > 1]
    if not curve:
        return
    items = [p.target for p in loadings[curve[0]]]
    means = {p.source: p for p in model.intercepts}
    is_modelled = all(name in means and means[name].fixed is None for name in curve)
    is_at_zero = all(x in means and means[x].fixed == 0 for x in items)
    if is_modelled and is_at_zero:
        return
    yield (
        f"The loadings of {listing(curve)} are those of a growth model, whose means were not modelled as such: as in "
        "lavaan::sem, latents have mean zero and items intercepts of their own unless the text says otherwise. "
        f"lavaan::growth frees the means of the latents and fixes these intercepts to zero. Add "
        f"{listing([f'{name} ~ 1' for name in curve])} and {listing([f'{x} ~ 0*1' for x in items])} to the model for "
        'that, with scale_latents="first-indicator".'
    )


def _missing(shares: tuple[Fit, ...], options: Options) -> Iterator[str]:
    rows = [np.isnan(share.sample.rows) for share in shares if share.sample.rows is not None]
    n_holes = sum(int(holes.any(axis=1).sum()) for holes in rows)
    if not n_holes or options.missing == "listwise" or isinstance(shares[0], OrdinalFit):
        return
    if options.missing == "ml":
        yield (
            f"All rows are used, {n_holes} with missing values. lavaan::sem leaves such rows out unless it is told "
            'missing = "ml". Use missing="listwise" for that.'
        )
    covariates = shares[0].model.covariates
    index = [shares[0].sample.names.index(name) for name in covariates]
    n_lost = sum(int(holes[:, index].any(axis=1).sum()) for holes in rows)
    if n_lost:
        lacking = [x for x, k in zip(covariates, index, strict=True) if any(holes[:, k].any() for holes in rows)]
        yield (
            f"{listing(lacking)} {'have' if len(lacking) > 1 else 'has'} "
            "missing values, so covariates are variables of the model here, taken as normal: log-likelihood, AIC and "
            f"BIC include them, and all rows are used. lavaan::sem leaves out the {n_lost} rows that lack a covariate "
            f"(fixed.x = TRUE). Pass rows.dropna(subset={lacking}) for that."
        )


def _ordinal_covariates(fit: Fit) -> Iterator[str]:
    covariates = fit.model.covariates
    if isinstance(fit, OrdinalFit) and covariates:
        yield (
            f"{listing(covariates)} {'are' if len(covariates) > 1 else 'is'} taken as ordinal, like the items, with "
            "polychoric correlations. lavaan::sem conditions the thresholds on covariates and takes them as they are. "
            'No argument gives that; estimator="MLR" takes both items and covariates as continuous.'
        )


def _bounds(shares: tuple[Fit, ...]) -> Iterator[str]:
    if any(share.solution.at_bound.any() for share in shares):
        yield (
            "A variance ended at zero here, its bound. lavaan lets variances become negative, with a smaller "
            "chi-square: such an answer is no better, and no argument gives it."
        )
