"""Matrices: is this a covariance, and if not, which variables are to blame; and the repair of one that is not.

**The repair.** Correlations estimated pair by pair (polychoric, pairwise deletion) or rounded in print need not be
positive definite together. :func:`nearest_correlation` finds the nearest matrix, in the sum of squared changes, that
has ones on its diagonal and no eigenvalue below a floor, by alternating projections with Dykstra's correction.
"""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from unmeasured.arrays import Floats
from unmeasured.data.rows import as_array, checked_names
from unmeasured.errors import DataError, listing
from unmeasured.remarks import data_problem

# Entries that differ by more than this part of the standard deviations are not rounding: not symmetric.
_ASYMMETRY = 1e-6
# Smallest eigenvalue of a correlation matrix that still counts as positive: below, rounding decides.
_LEAST_EIGENVALUE = 1e-10
# The smallest eigenvalue after a repair. A likelihood weighs a direction by the inverse of its variance: a floor
# near zero would make the direction that was wrong the one that counts most.
REPAIRED_EIGENVALUE = 1e-3
# Variances beyond these limits leave no room for the products of a likelihood.
_LEAST_VARIANCE, _LARGEST_VARIANCE = 1e-280, 1e280
_MOST_SAMPLES = 1e15


def as_matrix(cov: Any, names: Sequence[str] | None) -> tuple[tuple[str, ...], Floats]:
    """A square matrix of finite numbers, and the names it carries or is given."""
    matrix = _floats(cov, "The matrix")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        hint = " Rows of samples go in as X (fit of a search)." if matrix.ndim == 2 and len(matrix) else ""
        raise DataError(f"A covariance matrix is square with at least one variable; got shape {matrix.shape}.{hint}")
    names = checked_names(_own_names(cov) if names is None else names, len(matrix))
    matrix = _whole(matrix)
    bad = ~np.isfinite(matrix)
    if bad.any():
        i, j = map(int, np.argwhere(bad)[0])
        raise DataError(
            f"The matrix has {int(bad.sum())} missing or infinite entries, the first at ({names[i]!r}, "
            f"{names[j]!r}). Fill them, or leave these variables out."
        )
    return names, matrix


def _own_names(cov: Any) -> tuple[str, ...] | None:
    """The names of a data frame's columns, which must be those of its rows; None where there are none."""
    if not isinstance(cov, pd.DataFrame):
        return None
    columns = checked_names(list(cov.columns), len(cov))
    rows = columns if isinstance(cov.index, pd.RangeIndex) else checked_names(list(cov.index), len(cov))
    if rows != columns:
        raise DataError(
            f"Rows and columns of the matrix are named differently: rows {listing(rows)}, columns {listing(columns)}. "
            "Sort them alike."
        )
    return columns


def _whole(matrix: Floats) -> Floats:
    """The matrix, mirrored where the other triangle was left empty (all missing, or all zero), as articles print it.

    >>> _whole(np.array([[1.0, np.nan], [0.5, 1.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    upper = np.triu_indices(len(matrix), 1)
    for turned in (matrix, matrix.T):
        if np.isnan(turned[upper]).all() or not turned[upper].any():
            return np.asarray(np.tril(turned) + np.tril(turned, -1).T)
    return matrix


def _floats(X: Any, what: str) -> Floats:
    array = as_array(X)
    try:
        return np.array(array, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{what} has entries that are not numbers ({error}).") from None


def with_deviations(corr: Floats, sd: Any, names: tuple[str, ...]) -> Floats:
    """Covariances from correlations and standard deviations."""
    if isinstance(sd, pd.Series) and set(map(str, sd.index)) == set(names):
        sd = [sd[key] for key in sorted(sd.index, key=lambda key: names.index(str(key)))]
    deviations = _floats(sd, "sd")
    if deviations.shape != (len(names),):
        raise DataError(f"sd holds one standard deviation per variable ({len(names)}); got shape {deviations.shape}.")
    wrong = [x for x, s in zip(names, deviations) if not (s > 0 and math.isfinite(s))]
    if wrong:
        raise DataError(f"Standard deviations must be positive; those of {listing(wrong)} are not.")
    not_one = [x for x, v in zip(names, np.diag(corr)) if abs(v - 1.0) > 1e-3]
    if not_one:
        raise DataError(
            f"sd goes with a correlation matrix, whose diagonal is 1; that of {listing(not_one)} is not. Leave sd out "
            "if the matrix holds covariances."
        )
    return rescaled(corr, deviations)


def rescaled(corr: Floats, sd: Floats) -> Floats:
    """The matrix in the units of these standard deviations; what overflows is infinite, for a check to find."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.asarray(corr * np.outer(sd, sd))


def sample_size(n_samples: Any, n_variables: int) -> float:
    """N as a number, large enough for a covariance of full rank."""
    if isinstance(n_samples, np.ndarray) and n_samples.ndim == 0:
        n_samples = n_samples.item()
    if not isinstance(n_samples, numbers.Real):
        raise DataError(f"n_samples must be a number; got {n_samples!r}.")
    try:
        n = float(n_samples)
    except OverflowError:
        n = _MOST_SAMPLES * 2.0
    if _MOST_SAMPLES < n < math.inf:
        raise DataError(f"n_samples is beyond {_MOST_SAMPLES:g}: nobody counted that far. math.inf: a population.")
    if math.isnan(n) or n < 2:
        raise DataError(f"n_samples must be at least 2; got {n_samples}.")
    if n <= n_variables:
        raise DataError(
            f"{n:.0f} samples are too few for {n_variables} variables: their covariance is singular, so no "
            f"likelihood exists. At least {n_variables + 1} are needed, several times that to learn anything."
        )
    return n


def checked_cov(matrix: Floats, names: tuple[str, ...], *, definite: bool = True, from_rows: bool = False) -> Floats:
    """The matrix made exactly symmetric, after every test a covariance has to pass.

    ``definite=False`` leaves out the last: that it is positive definite.
    """
    variance = np.diag(matrix)
    _refuse_permuted(matrix, names)
    constant = [x for x, v in zip(names, variance) if v <= 0]
    if constant and not from_rows:  # of rows, columns that are constant were refused; these squares are too small
        raise DataError(
            f"The diagonal of the matrix, where variances belong, is zero or negative for {listing(constant)}. Leave "
            "them out if they are constant; else look whether rows and columns are in the same order.",
            constant,
        )
    wild = [x for x, v in zip(names, variance) if not _LEAST_VARIANCE < v < _LARGEST_VARIANCE]
    if wild:
        raise DataError(f"The variances of {listing(wild)} are too small or too large for arithmetic. Change the unit.")
    sd = np.sqrt(variance)
    with np.errstate(over="ignore"):
        # Kept in bounds, so that an absurd entry is found by the tests below and not by an overflow in them.
        corr = np.clip(matrix / sd / sd[:, None], -1e100, 1e100)
    gap = np.abs(corr - corr.T)
    if gap.max() > _ASYMMETRY:
        i, j = sorted(map(int, np.unravel_index(int(gap.argmax()), gap.shape)))
        raise DataError(
            f"The matrix is not symmetric: ({names[i]!r}, {names[j]!r}) is {matrix[i, j]:.6g} but "
            f"({names[j]!r}, {names[i]!r}) is {matrix[j, i]:.6g}."
        )
    corr = (corr + corr.T) / 2.0
    i, j = sorted(map(int, np.unravel_index(int(np.abs(corr).argmax()), corr.shape)))
    if abs(corr[i, j]) > 1.0 + _ASYMMETRY:
        raise DataError(
            f"Variables {names[i]!r} and {names[j]!r} have a correlation of {corr[i, j]:.6g}: their covariance is "
            "larger than their variances allow. Look for a slip in the matrix."
        )
    if definite:
        check_positive_definite(corr, names, from_rows=from_rows)
    return (matrix + matrix.T) / 2.0


def _refuse_permuted(matrix: Floats, names: tuple[str, ...]) -> None:
    """Refuse a matrix whose columns are in another order than its rows, which sorting would make symmetric."""
    n = len(matrix)
    if n < 2 or _is_symmetric(matrix):
        return
    # A variable's largest entry, in units of the others of its column, is its variance.
    with np.errstate(all="ignore"):
        sizes = np.abs(matrix) / np.abs(matrix).max(axis=0, keepdims=True)
    if not np.isfinite(sizes).all():
        return
    order = linear_sum_assignment(-sizes)[1]
    turned = matrix[:, order]
    if (order != np.arange(n)).any() and _is_symmetric(turned) and (np.diag(turned) > 0).all():
        i = int(np.flatnonzero(order != np.arange(n))[0])
        raise DataError(
            f"Rows and columns of the matrix are in different orders: the variance of {names[i]!r} (row {i + 1}) is "
            f"in column {int(order[i]) + 1}. Sort them alike."
        )


def _is_symmetric(matrix: Floats) -> bool:
    """Whether a matrix equals its transpose but for rounding; differences beyond arithmetic are none of rounding."""
    with np.errstate(over="ignore"):
        return bool(np.allclose(matrix, matrix.T, rtol=1e-6, atol=0.0))


def check_positive_definite(corr: Floats, names: tuple[str, ...], *, from_rows: bool = False) -> None:
    """Refuse correlations that are not positive definite, naming the variables involved."""
    if is_positive_definite(corr):
        return
    refuse_perfect(corr, names)
    value, vector = np.linalg.eigh(corr)
    weight = np.abs(vector[:, 0])
    involved = [names[k] for k in np.argsort(-weight) if weight[k] > 0.1]
    if from_rows:
        raise DataError(
            f"The covariance of the rows is not positive definite: of {listing(involved)} one is the sum, or another "
            "linear function, of the others (a total score among its items?). Leave it out.",
            involved[:1],
        )
    raise DataError(
        f"The matrix is not positive definite (smallest eigenvalue of the correlations {value[0]:.2g}); the "
        f"variables involved are {listing(involved)}. Leave one of them out, or ask for the nearest matrix that is "
        "(repair=True).",
        involved[:1],
    )


def is_positive_definite(corr: Floats) -> bool:
    """Whether no eigenvalue is zero or below, up to rounding."""
    with contextlib.suppress(np.linalg.LinAlgError):
        # Cheaper than eigenvalues, which are computed only where culprits have to be named.
        np.linalg.cholesky(corr - _LEAST_EIGENVALUE * np.eye(len(corr)))
        return True
    return False


def refuse_perfect(corr: Floats, names: tuple[str, ...]) -> None:
    """Refuse two variables that are the same up to scale."""
    i, j = sorted(map(int, np.unravel_index(int(np.abs(corr - np.eye(len(corr))).argmax()), corr.shape)))
    if i != j and abs(corr[i, j]) >= 1.0 - 1e-9:
        raise DataError(
            f"Variables {names[i]!r} and {names[j]!r} are perfectly correlated ({corr[i, j]:.6g}), so the covariance "
            "is singular. Leave one of them out.",
            [names[j]],
        )


def repaired(corr: Floats, names: tuple[str, ...], what: str) -> tuple[Floats, tuple[str, ...]]:
    """The correlations, positive definite, and what was done to them in words; untouched where they are."""
    if is_positive_definite(corr):
        return corr, ()
    least = np.linalg.eigvalsh(corr)[0]
    better = nearest_correlation(corr)
    change = np.abs(better - corr)
    i, j = sorted(map(int, np.unravel_index(int(change.argmax()), change.shape)))
    told = (
        f"The {what} are not positive definite together (smallest eigenvalue {least:.2g}): the nearest matrix that "
        f"is was taken. The largest change is {change[i, j]:.2g}, in the correlation of {names[i]!r} and "
        f"{names[j]!r} (from {corr[i, j]:.3f} to {better[i, j]:.3f})."
    )
    return better, (data_problem(told),)


def nearest_correlation(corr: Floats, floor: float = REPAIRED_EIGENVALUE, max_steps: int = 1000) -> Floats:
    """The nearest correlation matrix whose eigenvalues are at least ``floor``.

    >>> nearest_correlation(np.array([[1, 0.9, 0.9], [0.9, 1, 0.1], [0.9, 0.1, 1]]), floor=0.0).round(2)
    array([[1.  , 0.77, 0.77],
           [0.77, 1.  , 0.18],
           [0.77, 0.18, 1.  ]])
    """
    current, correction = corr.copy(), np.zeros_like(corr)
    for _ in range(max_steps):
        shifted = current - correction
        value, vector = np.linalg.eigh(shifted)
        lifted = (vector * np.maximum(value, floor)) @ vector.T
        correction = lifted - shifted
        following = lifted.copy()
        np.fill_diagonal(following, 1.0)
        step = np.abs(following - current).max()
        current = following
        if step < 1e-9:
            break
    # The two demands are met in the limit only: what is missing to the floor is taken from all correlations alike.
    least = np.linalg.eigvalsh(current)[0]
    weight = min(max((floor - least) / (1.0 - least), 0.0), 1.0)
    return np.asarray((1.0 - weight) * (current + current.T) / 2.0 + weight * np.eye(len(corr)))
