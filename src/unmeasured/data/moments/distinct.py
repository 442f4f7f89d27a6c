"""Some of the different rows of a table of categories, and how often each was seen.

A pass over millions of rows, in blocks and perhaps on several machines, has to come to the same rows whatever the
blocks are. So the rows whose hashes are smallest are kept: one that is among those of the whole table is among those of
every block it is in, where all of its copies are counted. Hashes are of names and values, not of places: with columns
in another order the same rows are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from unmeasured.arrays import Floats, Ints, Marks

Hashes = NDArray[np.uint64]

# The code of a missing value.
MISSING = 255
# Rows times variables that tell what rows are worth together, and the least number of rows: the more variables, the
# less rows differ in what they tell.
_ENTRIES_OF_ROWS, _LEAST_DISTINCT = 60_000, 100
# Odd numbers that spread the bits of others (Steele, Lea and Flood 2014).
_SPREAD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@dataclass
class DistinctRows:
    """Up to ``most`` different rows: their hashes, values (NaN where missing), and how often each was seen.

    >>> rows = DistinctRows(("a", "b"), most=2)
    >>> rows.add(np.array([[0, 1, 0, 0], [1, 1, 1, MISSING]], dtype=np.uint8), [[1.0, 2.0], [5.0, 6.0]])
    >>> len(rows.values), rows.n_seen
    (2, 4)
    """

    names: tuple[str, ...]
    most: int
    n_seen: int = 0  # rows, kept or not
    hashes: Hashes = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    values: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    times: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def add(self, codes: Marks, values: Sequence[Sequence[float]]) -> None:
        """Count a block: categories (n, N) of its rows, and the values that these stand for."""
        n, N = codes.shape
        self.n_seen += N
        tables = np.full((n, 256), np.nan)
        for j, known in enumerate(values):
            tables[j, : len(known)] = np.asarray(known) + 0.0  # of two zeros one
        tables[:, MISSING] = np.nan
        keys = _hashed(tables, self.names)
        hashes = np.zeros(N, dtype=np.uint64)
        for j in range(n):
            hashes += keys[j][codes[j]]
        hashes = _mixed(hashes)
        near = np.flatnonzero(hashes <= self.hashes[-1]) if len(self.hashes) == self.most else np.arange(N)
        new, first, times = np.unique(hashes[near], return_index=True, return_counts=True)
        chosen = codes[:, near[first[: self.most]]]
        self._keep(new[: self.most], np.take_along_axis(tables, chosen.astype(np.intp), axis=1).T, times[: self.most])

    def merge(self, other: DistinctRows) -> None:
        """Add what another has counted of the same columns."""
        self.n_seen += other.n_seen
        if len(other.hashes):
            self._keep(other.hashes, other.values, other.times)

    def _keep(self, hashes: Hashes, values: Floats, times: Ints) -> None:
        if len(self.hashes):
            hashes = np.concatenate([self.hashes, hashes])
            values = np.concatenate([self.values, values])
            times = np.concatenate([self.times, times])
        self.hashes, first, which = np.unique(hashes, return_index=True, return_inverse=True)
        self.hashes, first = self.hashes[: self.most], first[: self.most]
        self.values = values[first]
        self.times = np.bincount(which.ravel(), times, minlength=self.most)[: len(first)].astype(np.int64)


def order_of_values(columns: Iterable[Floats], names: Sequence[str]) -> Ints:
    """Row numbers in an order that follows from names and values, not from the places of rows and columns.

    Rows that are drawn by their numbers in this order are the same rows, however a file was sorted. Which of several
    equal rows comes first makes no difference.

    >>> rows = np.random.default_rng(0).normal(size=(50, 2))
    >>> turned = rows[::-1, ::-1]
    >>> one, other = order_of_values(rows.T, ["a", "b"]), order_of_values(turned.T, ["b", "a"])
    >>> bool((rows[one] == turned[other, ::-1]).all())
    True
    """
    hashes = np.uint64(0)
    for name, column in zip(names, columns, strict=True):
        (keys,) = _hashed(column[None] + 0.0, [name])  # of two zeros one
        hashes = hashes + keys
    return np.argsort(_mixed(np.asarray(hashes)), kind="stable")


def most_distinct(n: int) -> int:
    """How many different rows tell what rows of n variables are worth, to 1% or 2%.

    >>> most_distinct(20), most_distinct(300)
    (3000, 200)
    """
    return max(_ENTRIES_OF_ROWS // n, _LEAST_DISTINCT)


def _hashed(tables: Floats, names: Sequence[str]) -> Hashes:
    """Hashes of values, a row of them for each column; of the same shape."""
    own = np.array([2 * crc32(name.encode()) + 1 for name in names], dtype=np.uint64)
    bits = np.where(np.isnan(tables), np.nan, tables).view(np.uint64)
    return np.asarray(_mixed(_mixed(bits) + (own * _SPREAD)[:, None]))


def _mixed(bits: Hashes) -> Hashes:
    """Numbers of 64 bits, each of which depends on all bits of those given."""
    bits = (bits ^ (bits >> np.uint64(31))) * _MIX
    bits = (bits ^ (bits >> np.uint64(27))) * _SPREAD
    return np.asarray(bits ^ (bits >> np.uint64(32)))
