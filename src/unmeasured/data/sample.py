"""Sample: what the rest of the house knows of the data, whatever door it came through.

**The divisor, stated once.** ``Sample.cov`` is the maximum-likelihood covariance: its divisor is N. A matrix
handed in is taken to have the usual divisor N - 1 and is rescaled by (N - 1)/N, as lavaan does; a population
covariance (N infinite) is left alone.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import lapack

from unmeasured.arrays import Floats
from unmeasured.errors import DataError, listing, nearest

# Entries that differ by more than this part of the standard deviations are not rounding: not symmetric.
_ASYMMETRY = 1e-6
# Smallest eigenvalue of a correlation matrix that still counts as positive: below, rounding decides.
_LEAST_EIGENVALUE = 1e-10


@dataclass(frozen=True, eq=False)
class Sample:
    """Names, maximum-likelihood covariance (divisor N) and number of samples (infinite: a population)."""

    names: tuple[str, ...]
    cov: Floats
    n: float

    @classmethod
    def from_cov(cls, cov: Any, n_samples: float, names: Sequence[str] | None = None) -> Sample:
        """From a covariance or correlation matrix with divisor N - 1; ``math.inf`` samples: a population.

        >>> Sample.from_cov([[1.0, 0.5], [0.5, 1.0]], 101, ["a", "b"]).cov[0, 1].round(4)
        np.float64(0.495)
        """
        names, matrix = _matrix(cov, names)
        n = _sample_size(n_samples, len(names))
        _check_cov(matrix, names)
        matrix = (matrix + matrix.T) / 2.0
        return cls(names, _frozen(matrix if math.isinf(n) else matrix * (n - 1.0) / n), n)

    @classmethod
    def from_rows(cls, X: Any, names: Sequence[str] | None = None) -> Sample:
        """From rows: a data frame or an array with one row per sample."""
        names, rows = _rows(X, names)
        _sample_size(len(rows), len(names))
        sd = rows.std(axis=0)
        # Relative to the size of the numbers, so that a constant 0.1 is not saved by rounding.
        constant = [x for x, s, m in zip(names, sd, np.abs(rows).max(axis=0)) if s <= 1e-12 * max(m, 1e-300)]
        if constant:
            raise DataError(f"Constant variables carry no information: {listing(constant)}. Drop them.")
        # Deviations are scaled before they are multiplied: columns of 1e-200 or 1e200 would vanish or overflow.
        deviations = (rows - rows.mean(axis=0)) / sd
        correlation = deviations.T @ deviations / len(rows)
        cov = correlation * np.outer(sd, sd)
        _check_cov(cov, names)
        return cls(names, _frozen(cov), float(len(rows)))

    @cached_property
    def sd(self) -> Floats:
        """Standard deviations, divisor N."""
        return np.sqrt(np.diag(self.cov))

    @cached_property
    def corr(self) -> Floats:
        """The correlation matrix."""
        corr = self.cov / np.outer(self.sd, self.sd)
        np.fill_diagonal(corr, 1.0)
        return _frozen(corr)

    @cached_property
    def log_det_corr(self) -> float:
        """Log determinant of the correlation matrix."""
        return float(2.0 * np.log(np.diag(self._cholesky)).sum())

    @cached_property
    def unexplained(self) -> Floats:
        """(n,) part of each variable's variance that no linear function of the others explains."""
        # dpotri: the inverse from the factor at hand; numpy would factorise again.
        inverse, _ = lapack.dpotri(self._cholesky, lower=True)
        return _frozen(1.0 / np.diag(inverse))

    @cached_property
    def _cholesky(self) -> Floats:
        return np.asarray(np.linalg.cholesky(self.corr), dtype=float)

    def select(self, names: Sequence[str]) -> Sample:
        """The same data for some of the variables, in the order given."""
        position = {name: i for i, name in enumerate(self.names)}
        for name in names:
            if name not in position:
                raise DataError(
                    f"Variable {name!r} is not in the data{nearest(name, self.names) or '.'} "
                    f"The data have {listing(self.names)}."
                )
        if tuple(names) == self.names:
            return self
        index = [position[name] for name in names]
        return Sample(tuple(names), _frozen(self.cov[np.ix_(index, index)]), self.n)


def as_sample(
    X: Any = None, *, cov: Any = None, n_samples: float | None = None, names: Sequence[str] | None = None
) -> Sample:
    """Rows, or a matrix with its number of samples, as a Sample; anything else is refused with a reason."""
    if isinstance(X, Sample):
        return X
    if (X is None) == (cov is None):
        got = "both" if X is not None else "neither"
        raise DataError(f"Give either rows (X) or a matrix (cov=, n_samples=); got {got}.")
    if X is not None:
        if n_samples is not None:
            raise DataError("n_samples goes with cov=; with rows it is their number. Leave it out.")
        return Sample.from_rows(X, names)
    if n_samples is None:
        raise DataError("A matrix needs n_samples, the number of rows it was made from (math.inf: a population).")
    return Sample.from_cov(cov, n_samples, names)


def _frozen(matrix: Floats) -> Floats:
    matrix = np.ascontiguousarray(matrix, dtype=float)
    matrix.setflags(write=False)
    return matrix


def _matrix(cov: Any, names: Sequence[str] | None) -> tuple[tuple[str, ...], Floats]:
    if isinstance(cov, pd.DataFrame):
        columns = [str(c) for c in cov.columns]
        rows = [str(r) for r in cov.index]
        if isinstance(cov.index, pd.RangeIndex):
            rows = columns
        if rows != columns:
            raise DataError(
                f"Rows and columns of the matrix are named differently: rows {listing(rows)}, columns "
                f"{listing(columns)}. Sort them alike."
            )
        names = columns if names is None else names
    try:
        matrix = np.array(cov, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"The matrix has entries that are not numbers ({error}).") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise DataError(f"A covariance matrix is square with at least one variable; got shape {matrix.shape}.")
    return _names(names, len(matrix)), matrix


def _rows(X: Any, names: Sequence[str] | None) -> tuple[tuple[str, ...], Floats]:
    if isinstance(X, pd.DataFrame):
        names = [str(c) for c in X.columns] if names is None else names
        text = [str(c) for c in X.columns if not pd.api.types.is_numeric_dtype(X[c])]
        if text:
            raise DataError(f"Columns {listing(text)} hold text, not numbers. Select the numeric columns first.")
    try:
        rows = np.array(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"The data have entries that are not numbers ({error}).") from None
    if rows.ndim != 2 or not rows.size:
        raise DataError(f"Rows come as a table (samples x variables); got shape {rows.shape}.")
    names = _names(names, rows.shape[1])
    holes = [x for x, bad in zip(names, ~np.isfinite(rows).all(axis=0)) if bad]
    if holes:
        raise DataError(
            f"Missing or infinite values in {listing(holes)}. Drop those rows, or estimate a covariance matrix "
            "first and pass it as cov=."
        )
    return names, rows


def _names(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"x{i + 1}" for i in range(n))
    names = tuple(str(name) for name in names)
    if len(names) != n:
        raise DataError(f"{len(names)} names were given for {n} variables.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"Names repeat: {listing(repeated)}. Every variable needs a name of its own.")
    return names


def _sample_size(n_samples: float, n_variables: int) -> float:
    try:
        n = float(n_samples)
    except (TypeError, ValueError):
        raise DataError(f"n_samples must be a number; got {n_samples!r}.") from None
    if math.isnan(n) or n < 2:
        raise DataError(f"n_samples must be at least 2; got {n_samples}.")
    if n <= n_variables:
        raise DataError(
            f"{n:.0f} samples are too few for {n_variables} variables: their covariance is singular, so no "
            f"likelihood exists. At least {n_variables + 1} are needed, several times that to learn anything."
        )
    return n


def _check_cov(matrix: Floats, names: tuple[str, ...]) -> None:
    bad = ~np.isfinite(matrix)
    if bad.any():
        i, j = map(int, np.argwhere(bad)[0])
        raise DataError(
            f"The matrix has {int(bad.sum())} missing or infinite entries, the first at ({names[i]!r}, "
            f"{names[j]!r}). Fill them, or leave these variables out."
        )
    variance = np.diag(matrix)
    constant = [x for x, v in zip(names, variance) if v <= 0]
    if constant:
        raise DataError(f"Variables {listing(constant)} have no variance (constant). Drop them.")
    sd = np.sqrt(variance)
    corr = matrix / sd / sd[:, None]
    gap = np.abs(corr - corr.T)
    if gap.max() > _ASYMMETRY:
        i, j = sorted(map(int, np.unravel_index(int(gap.argmax()), gap.shape)))
        raise DataError(
            f"The matrix is not symmetric: ({names[i]!r}, {names[j]!r}) is {matrix[i, j]:.6g} but "
            f"({names[j]!r}, {names[i]!r}) is {matrix[j, i]:.6g}."
        )
    _check_positive_definite((corr + corr.T) / 2.0, names)


def _check_positive_definite(corr: Floats, names: tuple[str, ...]) -> None:
    with contextlib.suppress(np.linalg.LinAlgError):
        # The cheap answer first; the eigenvectors that name the culprits only where they are needed.
        np.linalg.cholesky(corr - _LEAST_EIGENVALUE * np.eye(len(corr)))
        return
    value, vector = np.linalg.eigh(corr)
    i, j = sorted(map(int, np.unravel_index(int(np.abs(corr - np.eye(len(corr))).argmax()), corr.shape)))
    if abs(corr[i, j]) >= 1.0 - 1e-9:
        raise DataError(
            f"Variables {names[i]!r} and {names[j]!r} are perfectly correlated ({corr[i, j]:.6g}), so the covariance "
            "is singular. Drop one of them."
        )
    weight = np.abs(vector[:, 0])
    involved = [names[k] for k in np.argsort(-weight) if weight[k] > 0.1]
    raise DataError(
        f"The matrix is not positive definite (smallest eigenvalue of the correlations {value[0]:.2g}); the "
        f"variables involved are {listing(involved)}. Drop one of them, or repair the matrix first."
    )
