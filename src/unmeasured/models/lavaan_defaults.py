"""Remarks on model text that lavaan's ``sem()`` fits otherwise by default.

Text says the same here and there; what is added to it differs. A remark is made only where that changes the fit, and
says what was done, what lavaan would have done, and the argument that gives it:

- latents scaled by their variance where a constraint fixes their scale too (below);
- variances that the text fixes, in groups with equal loadings;
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

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from unmeasured.arrays import Bools
from unmeasured.errors import listing
from unmeasured.models.parameters import LatentScale, Model, Operator, Parameter
from unmeasured.remarks import Remark, note

Slots = Sequence[tuple[Parameter, int]]


@dataclass(frozen=True)
class FittedText:
    """Model text as it was fitted: what the remarks are made of."""

    models: tuple[Model, ...]  # of each group
    rows: tuple[Slots, ...]  # of each group: parameters, with the same number where they are equal, -1 where fixed
    equal: tuple[str, ...]  # kinds of parameters that are equal across groups
    read: Callable[[int, LatentScale, bool], Model]  # the text again: group, scale_latents, correlate_outcomes
    scale_latents: LatentScale
    correlate_outcomes: bool
    missing: str
    names: tuple[str, ...]  # observed variables
    holes: tuple[Bools, ...]  # (N, n) of each group: which values are missing; none where a matrix was given
    is_ordinal: bool  # whether all variables were taken as ordinal
    is_at_bound: bool  # whether a variance ended at zero


def differences(fitted: FittedText) -> tuple[Remark, ...]:
    """Return a remark for each default of lavaan's ``sem()`` that would have given another fit of this text."""
    sentences = (
        *_scales(fitted),
        *_stated_variances(fitted),
        *_outcomes(fitted),
        *_growth(fitted.models[0]),
        *_missing(fitted),
        *_ordinal_covariates(fitted),
        *_bounds(fitted),
    )
    return tuple(map(note, sentences))


# Scales of latents -----------------------------------------------------------------------------------------


def _scales(fitted: FittedText) -> Iterator[str]:
    if fitted.scale_latents != "variance":
        return
    # The rows that set the scale by default: a variance here, a loading there.
    changed = {(g, p.op, p.source, p.target) for g in range(len(fitted.models)) for p in _changed(fitted, g)}
    scaled = {(source, g) for g, _, source, _ in changed}
    reasons: dict[str, None] = {}
    tied: set[tuple[str, int]] = set()
    for rows in _constraints(fitted, changed):
        here = _tied(rows, fitted) & scaled
        if here:
            reasons[_reason(rows)] = None
            tied |= here
    if reasons:
        latents = [name for name in fitted.models[0].latents if name in {x for x, _ in tied}]
        yield (
            f"The variance of {listing(latents)} is fixed to 1 here, which restricts the model further because of "
            f"{_series(list(reasons))}. lavaan::sem fixes the first loading of each latent to 1 instead and leaves its "
            'variance free, which is another model. Use scale_latents="first-indicator" for that.'
        )


def _changed(fitted: FittedText, group: int) -> Iterator[Parameter]:
    ours, theirs = (
        fitted.read(group, scale, fitted.correlate_outcomes).parameters for scale in ("variance", "first-indicator")
    )
    yield from (p for p, q in zip(ours, theirs, strict=True) if p.fixed != q.fixed)


def _series(phrases: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(phrases[:-1]), phrases[-1])))


Entries = list[tuple[int, Parameter]]  # parameters with their groups


def _constraints(fitted: FittedText, by_default: set[tuple[int, Operator, str, str]]) -> Iterator[Entries]:
    """Parameters that are equal, and each that has a value other than zero which the text itself gives."""
    equal: dict[int, Entries] = {}
    for g, rows in enumerate(fitted.rows):
        for p, slot in rows:
            if slot >= 0:
                equal.setdefault(slot, []).append((g, p))
            elif p.fixed and (g, p.op, p.source, p.target) not in by_default:
                yield [(g, p)]
    yield from (entries for entries in equal.values() if len(entries) > 1)


def _tied(entries: Entries, fitted: FittedText) -> set[tuple[str, int]]:
    """Latents, each with its group, whose scale a constraint depends on."""
    # With equal loadings a latent has one scale in all groups.
    has_one_scale = "loadings" in fitted.equal
    latents = set(fitted.models[0].latents)
    powers = [Counter[tuple[str, int]]() for _ in entries]
    for power, (g, p) in zip(powers, entries, strict=True):
        for name, by in _power(p):
            if name in latents:
                power[name, 0 if has_one_scale else g] += by
    if len(entries) == 1:
        powers.append(Counter())
    keys = {key for power in powers for key in power}
    tied = {key for key in keys if len({power[key] for power in powers}) > 1}
    groups = range(len(fitted.models)) if has_one_scale else ()
    return tied | {(name, g) for name, _ in tied for g in groups}


def _power(p: Parameter) -> tuple[tuple[str, int], ...]:
    """By which power of their scales a parameter changes."""
    if p.op == "~1":
        return ((p.source, 1),)
    return (p.source, 1 if p.op == "~~" else -1), (p.target, 1)


def _reason(entries: Entries) -> str:
    p = entries[0][1]
    if len(entries) > 1:
        return f"the label {p.label!r}" if p.label else f"'{p.lhs} {p.op} {p.rhs}', equal across groups"
    if p.op == "=~":
        return f"fixed loadings of {p.lhs!r}"
    return f"the fixed value of '{p.lhs} {p.op} {p.rhs}'" if p.op != "~1" else f"the fixed mean of {p.lhs!r}"


def _stated_variances(fitted: FittedText) -> Iterator[str]:
    """Variances that the text itself fixes, and that equal loadings free in groups after the first."""
    if len(fitted.models) < 2 or "loadings" not in fitted.equal or "lv.variances" in fitted.equal:
        return
    free = {p.source for p in fitted.models[1].parameters if p.op == "~~" and p.source == p.target and p.fixed is None}
    given = fitted.read(1, "first-indicator", fitted.correlate_outcomes)
    latents = [
        p.source
        for p in given.parameters
        if p.op == "~~" and p.source == p.target and p.source in set(given.latents) & free and p.fixed
    ]
    if latents:
        kinds = ", ".join(f'"{kind}"' for kind in (*fitted.equal, "lv.variances"))
        yield (
            f"The variance that the text fixes for {listing(latents)} is that of the first group; it is free in the "
            "others, where equal loadings fix the scale. lavaan::sem keeps it in all groups. "
            f"Use equal=[{kinds}] for that."
        )


# Other defaults --------------------------------------------------------------------------------------------


def _outcomes(fitted: FittedText) -> Iterator[str]:
    if fitted.correlate_outcomes:
        return
    ours, theirs = (
        {(p.source, p.target) for p in fitted.read(0, fitted.scale_latents, is_free).parameters if p.op == "~~"}
        for is_free in (False, True)
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


def _missing(fitted: FittedText) -> Iterator[str]:
    n_holes = sum(int(holes.any(axis=1).sum()) for holes in fitted.holes)
    if not n_holes or fitted.missing == "listwise":
        return
    if fitted.missing == "ml":
        yield (
            f"All rows are used, {n_holes} with missing values. lavaan::sem leaves such rows out unless it is told "
            f'missing = "{"pairwise" if fitted.is_ordinal else "ml"}". Use missing="listwise" for that.'
        )
    covariates = () if fitted.is_ordinal else fitted.models[0].covariates
    index = [fitted.names.index(name) for name in covariates]
    n_lost = sum(int(holes[:, index].any(axis=1).sum()) for holes in fitted.holes)
    if n_lost:
        lacking = [
            x for x, k in zip(covariates, index, strict=True) if any(holes[:, k].any() for holes in fitted.holes)
        ]
        yield (
            f"{listing(lacking)} {'have' if len(lacking) > 1 else 'has'} missing values, so covariates are variables "
            "of the model here, taken as normal: log-likelihood, AIC and BIC include them, and all rows are used. "
            f"lavaan::sem leaves out the {n_lost} rows that lack a covariate (fixed.x = TRUE). "
            f"Pass rows.dropna(subset={lacking}) for that."
        )


def _ordinal_covariates(fitted: FittedText) -> Iterator[str]:
    covariates = fitted.models[0].covariates
    if fitted.is_ordinal and covariates:
        yield (
            f"{listing(covariates)} {'are' if len(covariates) > 1 else 'is'} taken as ordinal, like the items, with "
            "polychoric correlations. lavaan::sem conditions the thresholds on covariates and takes them as they are. "
            'No argument gives that; estimator="MLR" takes both items and covariates as continuous.'
        )


def _bounds(fitted: FittedText) -> Iterator[str]:
    if fitted.is_at_bound:
        yield (
            "A variance ended at zero here, its bound. lavaan lets variances become negative, with a smaller "
            "chi-square: such an answer is no better, and no argument gives it."
        )
