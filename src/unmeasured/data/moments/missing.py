"""Missing values: the moments of rows in which values are missing.

``"ml"``: mean and covariance of a Gaussian by maximum likelihood from every value there is (EM), right when what is
missing depends on what was seen (missing at random). ``"listwise"``: complete rows only. ``"pairwise"``: each
correlation from the rows that have both variables; right only if values are missing by chance, and perhaps not positive
definite.

**How many samples are incomplete rows worth?** A search weighs fit against N, so N must not pretend that
no values were missing. With Sigma the covariance, a row with the variables o seen carries, relative to a complete row,
the information ``tr(P_o Sigma (x) P_o Sigma)`` on symmetric matrices, where ``P_o`` is the inverse of ``Sigma_oo``
padded with zeros. ``P_o Sigma`` is a projection of rank |o|, so that trace is ``|o|(|o|+1)/2``, whatever Sigma is:
averaged over all moments, the rows are worth N times the mean share of moments a row shows. That number, the mean
number of rows per moment, is ``Sample.n`` after "ml" and "pairwise".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.data.matrices import rescaled
from unmeasured.data.rows import Rows
from unmeasured.errors import DataError, Stopped, listing
from unmeasured.remarks import data_problem, distrust

Missing = Literal["ml", "listwise", "pairwise"]

# EM stops when no moment moves by more than this, in standard deviations.
_TOLERANCE = 1e-8
_MAX_STEPS = 5000
# Elements of the largest array made at once.
_CHUNK = 2_000_000


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean (n,), maximum-likelihood covariance (n, n), rows behind each pair, and the worth of all rows."""

    mean: Floats
    cov: Floats
    counts: Ints
    n: float
    remarks: tuple[str, ...] = ()


def without_empty_rows(rows: Rows) -> tuple[Rows, tuple[str, ...]]:
    """The rows that hold a value, and what was left out in words."""
    empty = np.asarray(rows.is_missing.all(axis=1))
    if not empty.any():
        return rows, ()
    return rows.keep(~empty), empty_in_words(int(empty.sum()))


def empty_in_words(n_empty: int) -> tuple[str, ...]:
    """How many rows without any value were left out."""
    return (f"{_rows(n_empty)} without any value left out.",) if n_empty else ()


def complete(rows: Rows) -> tuple[Rows, tuple[str, ...]]:
    """The complete rows, and how many were dropped in words."""
    whole = np.asarray(~rows.is_missing.any(axis=1))
    if whole.all():
        return rows, ()
    return rows.keep(whole), dropped_in_words(int((~whole).sum()), len(whole), len(rows.names))


def dropped_in_words(dropped: int, n_rows: int, n_variables: int) -> tuple[str, ...]:
    """How many rows listwise deletion has dropped; too few left are refused."""
    if not dropped:
        return ()
    if n_rows - dropped <= n_variables:
        raise DataError(
            f"Only {_rows(n_rows - dropped)} of {n_rows} are complete, too few for {n_variables} variables "
            "after missing='listwise'. Use missing='ml'."
        )
    return (
        f"{dropped} of {n_rows} rows have missing values and were dropped (listwise deletion); "
        f"{n_rows - dropped} remain.",
    )


def pair_counts(holes: Bools) -> Ints:
    """(n, n) the number of rows that show both variables."""
    seen = (~holes).astype(float)
    return np.asarray(np.rint(seen.T @ seen), dtype=np.int64)


def worth(counts: Ints) -> float:
    """The mean number of rows per moment: what the rows are worth in complete ones."""
    return float(counts[np.tril_indices(len(counts))].mean())


def check_pairs(counts: Ints, names: tuple[str, ...]) -> None:
    """Refuse pairs that are never, or hardly ever, seen together: nothing tells their correlation."""
    i, j = sorted(map(int, np.unravel_index(int(counts.argmin()), counts.shape)))
    if counts[i, j] < 4:
        raise DataError(
            f"Variables {names[i]!r} and {names[j]!r} are seen together in {_rows(int(counts[i, j]))}, so nothing "
            "tells how they go together. Leave one of them out."
        )


def in_words(holes: Bools, names: tuple[str, ...]) -> str:
    """How much is missing, and where most of it is."""
    return shares_in_words(holes.mean(axis=0), int(holes.any(axis=1).sum()), len(holes), names)


def shares_in_words(share: Floats, n_incomplete: int, n_rows: int, names: tuple[str, ...]) -> str:
    """The same from the part of each variable's values that are missing."""
    most = int(share.argmax())
    return (
        f"{100 * share.mean():.1f}% of the values are missing, in {n_incomplete} of {n_rows} rows "
        f"(most in {names[most]!r}, {100 * share[most]:.1f}%)"
    )


def saturated_moments(rows: Rows, check: Callable[[], None] | None = None) -> Moments:
    """Mean and covariance by maximum likelihood from rows with missing values, by EM over patterns of them.

    Where ``check`` raises :class:`~unmeasured.errors.Stopped`, as far as they have come, with a remark that says so.

    The regressions of what is missing on what is seen are read from the precision matrix P: those of the missing m
    are ``-P_mm^-1 P_mo``, their residual covariance ``P_mm^-1``. So each pattern costs an inverse of the size of what
    is missing, and all patterns with as many missing values are done at once.

    >>> rows = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, np.nan], [4.0, 5.0], [5.0, 6.0]])
    >>> moments = saturated_moments(Rows(("a", "b"), rows, (False, False)))
    >>> moments.mean.round(3), round(moments.n, 2)
    (array([3. , 3.5]), 4.33)
    """
    holes, names = rows.is_missing, rows.names
    counts = pair_counts(holes)
    check_pairs(counts, names)
    z, centre, scale = standardised(rows.values)
    mean, cov, steps, moved = _expectation_maximisation(z, holes, names, check)
    how = "mean and covariance by maximum likelihood from every value seen (EM)"
    remarks: list[str] = [f"{in_words(holes, names)}: {how}."]
    if moved > _TOLERANCE and steps < _MAX_STEPS:
        told = (
            f"EM for the missing values was stopped at the time limit after {_steps(steps)}, when moments still moved "
            f"by {moved:.1g} standard deviations a step: they are rough. Give more time, or use missing='pairwise'."
        )
        remarks.append(distrust(told))
    if steps >= _MAX_STEPS:
        told = f"EM had not converged after {steps} steps: too much is missing to estimate the covariance well."
        remarks.append(data_problem(told))
    remarks.append(
        f"The search uses a sample size of {worth(counts):.1f} instead of {len(z)}: the mean number of rows in which "
        "both variables of a pair were observed."
    )
    return Moments(mean * scale + centre, rescaled(cov, scale), counts, worth(counts), tuple(remarks))


def standardised(values: Floats) -> tuple[Floats, Floats, Floats]:
    """The values less their mean, over their standard deviation (divisor N); and that mean and deviation.

    Any unit is safe: columns of 1e-200 or 1e200, whose squares would vanish or overflow, are divided by their largest
    value first.

    >>> standardised(np.array([[1e200], [3e200]]))
    (array([[-1.], [ 1.]]), array([2.e+200]), array([1.e+200]))
    """
    size = np.nanmax(np.abs(values), axis=0)
    scaled = values / size
    mean, sd = np.nanmean(scaled, axis=0), np.nanstd(scaled, axis=0)
    with np.errstate(under="ignore"):
        return (scaled - mean) / sd, mean * size, sd * size


def _expectation_maximisation(
    z: Floats, holes: Bools, names: tuple[str, ...], check: Callable[[], None] | None
) -> tuple[Floats, Floats, int, float]:
    """EM on variables of mean 0 and standard deviation 1 (as far as seen); also its steps and the size of the last."""
    filled = np.where(holes, 0.0, z)
    groups = _patterns(holes)
    mean, cov = filled.mean(axis=0), np.eye(z.shape[1])
    steps, moved = 0, np.inf
    while moved > _TOLERANCE and steps < _MAX_STEPS:
        residual = _fill(filled, groups, mean, _precision(cov, names))
        new_mean = filled.mean(axis=0)
        deviations = filled - new_mean
        new_cov = (deviations.T @ deviations + residual) / len(z)
        moved = max(np.abs(new_mean - mean).max(), np.abs(new_cov - cov).max())
        mean, cov, steps = new_mean, new_cov, steps + 1
        try:
            if check is not None:
                check()
        except Stopped:
            break
    return mean, cov, steps, float(moved)


@dataclass(frozen=True, eq=False)
class _Group:
    """Patterns with k missing values each: where these are (B, k), the rows that have them, and the pattern of each "
    "row.
    """

    missing: Ints
    rows: Ints
    pattern: Ints
    weight: Floats  # (B,) rows of each pattern


def _patterns(holes: Bools) -> list[_Group]:
    n_holes = holes.sum(axis=1)
    groups = []
    for k in sorted(set(n_holes[n_holes > 0].tolist())):
        rows = np.flatnonzero(n_holes == k)
        patterns, which = np.unique(np.packbits(holes[rows], axis=1), axis=0, return_inverse=True)
        which = which.ravel()
        first = np.zeros(len(patterns), dtype=np.int64)
        first[which[::-1]] = rows[::-1]
        missing = np.nonzero(holes[first])[1].reshape(len(patterns), k)
        groups.append(_Group(missing, rows, which, np.bincount(which).astype(float)))
    return groups


def _fill(filled: Floats, groups: list[_Group], mean: Floats, P: Floats) -> Floats:
    """Put the expected values in the place of the missing ones of ``filled``; returns the covariance they still "
    "lack, summed.
    """
    n = len(mean)
    residual = np.zeros(n * n)
    for g in groups:
        m = g.missing
        inverse = np.linalg.inv(P[m[:, :, None], m[:, None, :]])
        where = (m[:, :, None] * n + m[:, None, :]).ravel()
        residual += np.bincount(where, (inverse * g.weight[:, None, None]).ravel(), minlength=n * n)
        # -P_mm^-1 P_m, with the columns of the missing set to zero: they do not predict themselves.
        regression = -inverse @ P[m]
        np.put_along_axis(regression, np.broadcast_to(m[:, None, :], (*m.shape, m.shape[1])), 0.0, axis=2)
        per_chunk = max(1, _CHUNK // (m.shape[1] * n))
        for start in range(0, len(g.rows), per_chunk):
            rows, pattern = g.rows[start : start + per_chunk], g.pattern[start : start + per_chunk]
            expected = np.matmul(regression[pattern], (filled[rows] - mean)[:, :, None])[:, :, 0]
            filled[rows[:, None], m[pattern]] = mean[m[pattern]] + expected
    return residual.reshape(n, n)


def _precision(cov: Floats, names: tuple[str, ...]) -> Floats:
    sd = np.sqrt(np.diag(cov))
    value, vector = np.linalg.eigh(cov / np.outer(sd, sd))
    if not value[0] > 1e-9:
        weight = np.abs(vector[:, 0])
        raise DataError(
            "With so many values missing the covariance comes out singular: what is seen of "
            f"{listing([names[k] for k in np.argsort(-weight) if weight[k] > 0.1])} is perfectly correlated. Leave one "
            "of them out, or get more rows."
        )
    return np.asarray((vector / value) @ vector.T / np.outer(sd, sd))


def _steps(n: int) -> str:
    return f"{n} step{'s' if n != 1 else ''}"


def _rows(n: int) -> str:
    return f"{n} row{'s' if n != 1 else ''}"
