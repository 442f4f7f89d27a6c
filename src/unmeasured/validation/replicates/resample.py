"""Replicates of data: rows drawn anew, half of the rows, or a covariance drawn around the one that is given.

Rows are read as the data were: ordinal variables stay ordinal, missing values are treated alike, so that what
reading does to the data is part of what is judged. Rows are drawn from an order that follows from their values, so that
replicates are the same however a file was sorted.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.constraints import one_of
from unmeasured.data.moments.missing import Missing
from unmeasured.data.sample import Sample
from unmeasured.errors import DataError

Method = Literal["bootstrap", "subsample", "parametric"]

# Half of the rows: of all sizes the one whose subsets vary as bootstrap samples do (Buja and Stuetzle 2006).
_PART = 0.5
# Moments made again from the same rows differ by rounding, or were made in another way.
_SAME = 1e-6


@dataclass(frozen=True, eq=False)
class Resampling:
    """How replicates of a sample are drawn.

    Examples
    --------
    >>> sample = Sample.from_cov([[1.0, 0.5], [0.5, 1.0]], 101, ["a", "b"])
    >>> draw = Resampling.of(sample, "bootstrap")
    >>> draw.method  # there are no rows to draw
    'parametric'
    >>> draw(np.random.default_rng(0)).corr[0, 1].round(3)
    np.float64(0.495)
    """

    sample: Sample
    method: Method
    missing: Missing = "ml"

    @classmethod
    def of(cls, sample: Sample, method: str, missing: Missing = "ml") -> Resampling:
        """Check that replicates can be drawn; without rows, "bootstrap" is "parametric"."""
        one_of(*get_args(Method)).check("method", method)
        if math.isinf(sample.n):
            raise DataError("A population covariance has no sampling error, so its replicates would all be the same.")
        if sample.rows is None and method == "subsample":
            raise DataError("There are no rows to take subsamples of, only a matrix; use method='parametric'.")
        chosen: Method = "parametric" if sample.rows is None else method  # type: ignore[assignment]
        resampling = cls(sample, chosen, missing)
        resampling._check_reading()
        return resampling

    def __call__(self, rng: np.random.Generator) -> Sample:
        """One replicate."""
        if self.method == "parametric":
            return self._parametric(rng)
        labels = np.asarray(self.sample.groups, dtype=object)
        order = self.sample.order_of_rows
        parts = [order[labels[order] == label] for label in sorted(set(self.sample.groups))] or [order]
        # Groups of people keep their sizes.
        chosen = np.concatenate([part[self._drawn(len(part), rng)] for part in parts])
        return self.sample.take(chosen, self.missing, labels[chosen] if len(labels) else ())

    def _drawn(self, n: int, rng: np.random.Generator) -> Ints:
        half = math.ceil(_PART * n)
        return rng.permutation(n)[:half] if self.method == "subsample" else rng.integers(n, size=n)

    @property
    def digest(self) -> str:
        """A fingerprint of the data."""
        rows = self.sample.rows
        total = hashlib.sha256(repr((self.sample.names, self.sample.n)).encode())
        total.update(
            self.sample.cov.round(9).tobytes()
            if rows is None
            else np.ascontiguousarray(rows[self.sample.order_of_rows]).tobytes()
        )
        return total.hexdigest()[:12]

    def _parametric(self, rng: np.random.Generator) -> Sample:
        """A covariance of Gaussian rows whose population is the matrix at hand: Wishart, by Bartlett's triangle."""
        sample = self.sample
        n, p = round(sample.n), len(sample.names)
        triangle = np.tril(rng.standard_normal((p, p)), -1)
        np.fill_diagonal(triangle, np.sqrt(rng.chisquare(n - 1 - np.arange(p))))
        root: Floats = np.linalg.cholesky(sample.cov) @ triangle
        return Sample.from_cov(
            root @ root.T / (n - 1), sample.n, sample.names, covariates=sample.covariates, outcomes=sample.outcomes
        )

    # Reading ----------------------------------------------------------------------------------------------

    def _check_reading(self) -> None:
        """The way missing values were treated matters; that it is the same is seen from the moments."""
        rows = self.sample.rows
        if self.method == "parametric" or rows is None or not np.isnan(rows).any():
            return
        if not np.allclose(self.sample.take(np.arange(len(rows)), self.missing).corr, self.sample.corr, atol=_SAME):
            raise DataError(
                f"The missing values of these rows were not treated by missing={self.missing!r}, as replicates would "
                f"be. Give "
                "the search the option the data were read with, or fit it on the rows themselves."
            )
