"""One pass over rows, block by block: counts and sums from which a covariance is made without the rows.

    block ──► categories (at most 20 different values) ──► tables of all pairs: whole numbers, exact
         └──► a column with more values ──► sums of values, squares and products around the first block's means

As long as every column has few values, the two-way tables of all pairs hold all that is needed: Pearson and polychoric
correlations, margins, missing values. A block's tables are one product of indicators, ``I'I``. Once a column has
more values, sums take the place of the tables. Both add up, so that parts of the rows can be counted on several
machines; tables are whole numbers and come out the same however the rows are divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints, Marks
from unmeasured.data.moments.distinct import MISSING, DistinctRows, most_distinct
from unmeasured.data.rows import Rows, frozen
from unmeasured.errors import DataError

# More different values than this are no categories (unmeasured.data.moments.ordinal estimates no more).
MOST_VALUES = 20
# Rows of a block, and numbers in the indicators of a part of it (32 bit: counts stay exact below 2^24).
BLOCK = 16_384
_INDICATORS = 4_000_000
# A category that is missing, in the codes of a block.
# Rows spread over all of them, in which columns that look odd are searched for.
_PEEKED = 20_000
_PEEKED_PER_BLOCK = 512
# Codes take a byte a value: up to this many values the rows are kept as well.
KEPT_VALUES = 100_000_000


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Rows of categories, one byte a value: what :class:`~unmeasured.data.rows.Rows` is, an eighth of its size."""

    names: tuple[str, ...]
    codes: Marks  # (N, n)
    categories: Floats  # (n, 256) the value of each code, NaN for the one that stands for missing values
    ordered: tuple[bool, ...]
    groups: tuple[str, ...] = ()

    @property
    def values(self) -> Floats:
        """(N, n) the values, made anew each time they are asked for."""
        values = np.empty(self.codes.shape)
        for j, categories in enumerate(self.categories):
            values[:, j] = categories[self.codes[:, j]]
        return values

    def column(self, j: int) -> Floats:
        """(N,) the values of a column."""
        return np.asarray(self.categories[j][self.codes[:, j]])


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the rows that show both variables of a pair, of values less a centre (n,).

    ``first[i, j]`` sums variable i where j is seen, ``square[i, j]`` its squares there; ``third`` (n,) its cubes.
    """

    centre: Floats
    n: Floats
    first: Floats
    square: Floats
    cross: Floats
    third: Floats

    @classmethod
    def of(cls, values: Floats, centre: Floats) -> Sums:
        """Of a block of rows."""
        missing = np.isnan(values)
        seen = (~missing).astype(float)
        z = np.where(missing, 0.0, values - centre)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            squares = z * z
            return cls(centre, seen.T @ seen, z.T @ seen, squares.T @ seen, z.T @ z, (squares * z).sum(axis=0))

    @classmethod
    def of_tables(cls, tables: Ints, values: Floats, centre: Floats) -> Sums:
        """From the tables (n, K, n, K) of categories with these values (n, K)."""
        v = np.where(np.isnan(values), 0.0, values - centre[:, None])
        n = tables.sum(axis=(1, 3)).astype(float)
        rows = tables.sum(axis=3)  # (n, K, n): rows with category k of i that show j
        first, square = (np.einsum("ik,ikj->ij", v**power, rows) for power in (1, 2))
        cross = np.einsum("ik,ikjl,jl->ij", v, tables.astype(float), v, optimize=True)
        own = rows[np.arange(len(v)), :, np.arange(len(v))]
        return cls(centre, n, first, square, cross, (v**3 * own).sum(axis=1))

    def around(self, centre: Floats) -> Sums:
        """The same sums of values less another centre."""
        d = self.centre - centre
        if not d.any():
            return replace(self, centre=centre)
        own, own2, n = np.diag(self.first), np.diag(self.square), np.diag(self.n)
        return Sums(
            centre,
            self.n,
            self.first + d[:, None] * self.n,
            self.square + 2.0 * d[:, None] * self.first + d[:, None] ** 2 * self.n,
            self.cross + self.first * d[None, :] + d[:, None] * self.first.T + np.outer(d, d) * self.n,
            self.third + 3.0 * d * own2 + 3.0 * d**2 * own + d**3 * n,
        )

    def __add__(self, other: Sums) -> Sums:
        other = other.around(self.centre)
        return Sums(
            self.centre,
            self.n + other.n,
            self.first + other.first,
            self.square + other.square,
            self.cross + other.cross,
            self.third + other.third,
        )

    @property
    def counts(self) -> Ints:
        """(n, n) rows that show both variables."""
        return np.asarray(np.rint(self.n), dtype=np.int64)

    @property
    def mean(self) -> Floats:
        """(n,) of each variable where it is seen."""
        return np.asarray(self.centre + np.diag(self.first) / np.diag(self.n))

    @property
    def sd(self) -> Floats:
        """(n,) likewise, divisor N."""
        n = np.diag(self.n)
        return np.sqrt(np.maximum(np.diag(self.square) / n - (np.diag(self.first) / n) ** 2, 0.0))

    @property
    def corr(self) -> Floats:
        """Pearson correlations of each pair, from the rows that show both variables."""
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = self.first / self.n
            cross = self.cross / self.n - mean * mean.T
            square = self.square / self.n - mean**2
            corr = cross / np.sqrt(square * square.T)
        corr = np.clip(np.where(np.isfinite(corr), corr, 0.0), -1.0, 1.0)
        np.fill_diagonal(corr, 1.0)
        return np.asarray(corr)

    @property
    def skewness(self) -> Floats:
        """(n,) third central moment over the cube of the standard deviation."""
        n = np.diag(self.n)
        m, second = np.diag(self.first) / n, np.diag(self.square) / n
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((self.third / n - 3.0 * m * second + 2.0 * m**3) / self.sd**3)


@dataclass(eq=False)
class Tally:
    """What a pass over rows has counted so far; :meth:`add` takes a block, :meth:`merge` what another has counted.

    Examples
    --------
    >>> tally = Tally(("a", "b"))
    >>> tally.add(Rows(("a", "b"), np.array([[1.0, 2.0], [2.0, 2.0], [np.nan, 1.0]]), (False, False)))
    >>> tally.n_rows, tally.sums.counts.tolist(), tally.margin(1)[1].tolist()
    (3, [[2, 2], [2, 3]], [1, 2])
    """

    names: tuple[str, ...]
    listwise: bool = False  # whether rows with missing values are left out
    keep: bool = False  # whether the rows themselves are kept, as long as they are few enough
    ordered: tuple[bool, ...] = ()
    n_given: int = 0  # rows read
    n_empty: int = 0  # without any value
    n_incomplete: int = 0  # with some missing value, among those that are not empty
    n_rows: int = 0  # counted
    missing: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # (n,) values, among the rows counted
    low: Floats = field(default_factory=lambda: np.zeros(0))
    high: Floats = field(default_factory=lambda: np.zeros(0))
    peeked: list[Floats] = field(default_factory=list)
    _values: list[list[float] | None] = field(default_factory=list)  # of each column as they came; None: too many
    _tables: Ints | None = None  # (n, K, n, K)
    _sums: Sums | None = None  # where some column has too many values
    _codes: list[Marks] = field(default_factory=list)
    _distinct: DistinctRows | None = None  # some of the rows, as long as there are tables

    def add(self, rows: Rows) -> None:
        """Count a block of rows."""
        if rows.names != self.names:
            raise DataError(
                f"The parts of this table have different columns: {', '.join(self.names[:6])}, ... and "
                f"{', '.join(rows.names[:6])}, ... Every part needs the same ones, in the same order."
            )
        if not self.ordered:
            self._begin(rows.ordered)
        for start in range(0, len(rows.values), BLOCK):
            self._add_block(rows.values[start : start + BLOCK])

    def _begin(self, ordered: tuple[bool, ...]) -> None:
        n = len(self.names)
        self.ordered, self.missing = ordered, np.zeros(n, dtype=np.int64)
        self.low, self.high = np.full(n, np.nan), np.full(n, np.nan)
        self._values = [[] for _ in range(n)]
        self._tables = np.zeros((n, 2, n, 2), dtype=np.int64)
        self._distinct = DistinctRows(self.names, most_distinct(n))

    def _add_block(self, values: Floats) -> None:
        missing = np.isnan(values)
        per_row = missing.sum(axis=1)
        empty, incomplete = per_row == values.shape[1], per_row > 0
        self.n_given += len(values)
        self.n_empty += int(empty.sum())
        self.n_incomplete += int((incomplete & ~empty).sum())
        left_out = incomplete if self.listwise else empty
        if left_out.any():
            values, missing = values[~left_out], missing[~left_out]
        if not len(values):
            return
        self.n_rows += len(values)
        self.missing += missing.sum(axis=0)
        self._peek(values)
        low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
        self.low, self.high = np.fmin(self.low, low), np.fmax(self.high, high)
        if self._sums is None:
            codes = self._coded(values, missing, low, high)
            if codes is not None:
                self._count(codes)
                return
            self._give_up_tables(values)
        assert self._sums is not None
        self._note_values(values)
        self._sums = self._sums + Sums.of(values, self._sums.centre)

    def _peek(self, values: Floats) -> None:
        step = max(len(values) // _PEEKED_PER_BLOCK, 1)
        self.peeked.append(values[::step][:_PEEKED_PER_BLOCK].copy())
        self._thin()

    def _thin(self) -> None:
        """Every second of the rows that were looked at, where there are many."""
        while sum(map(len, self.peeked)) > _PEEKED:
            self.peeked = [np.concatenate(self.peeked)[::2]]

    def _coded(self, values: Floats, missing: Bools, low: Floats, high: Floats) -> Marks | None:
        """(n, N) categories of a block, new ones numbered as they come; None where a column has too many."""
        with np.errstate(invalid="ignore", over="ignore"):
            shifted = values - low
            whole = ((shifted == np.rint(shifted)) | missing).all(axis=0) & ~(high - low > 200)
        place = np.where(missing | ~whole, float(MISSING), shifted).astype(np.uint8).T.copy()
        codes = np.empty_like(place)
        for j, known in enumerate(self._values):
            assert known is not None  # as long as there are tables
            if whole[j]:
                seen = np.flatnonzero(np.bincount(place[j], minlength=256)[:MISSING])
                at, here = place[j], seen + low[j]
            else:
                here, at = np.unique(values[:, j], return_inverse=True)
                here, seen = here[~np.isnan(here)], np.arange(int((~np.isnan(here)).sum()))
                if len(here) > MOST_VALUES:
                    return None
                at = np.where(missing[:, j], MISSING, at.ravel()).astype(np.uint8)
            known.extend(value for value in here.tolist() if value not in known)
            if len(known) > MOST_VALUES:
                return None
            number = np.full(256, MISSING, dtype=np.uint8)
            number[seen] = [known.index(value) for value in here.tolist()]
            codes[j] = number[at]
        return codes

    def _count(self, codes: Marks) -> None:
        """Add the tables of a block: one product of the indicators of all categories."""
        assert self._tables is not None
        assert self._distinct is not None
        self._distinct.add(codes, [known or [] for known in self._values])
        self._widen(max(len(known or ()) for known in self._values))
        n, K = self._tables.shape[:2]
        flat = self._tables.reshape(n * K, n * K)
        size = max(_INDICATORS // (n * K), 256)
        for start in range(0, codes.shape[1], size):
            part = codes[:, start : start + size]
            indicators = (part[:, None, :] == np.arange(K, dtype=np.uint8)[:, None]).reshape(n * K, -1)
            ones = indicators.astype(np.float32)
            flat += np.rint(ones @ ones.T).astype(np.int64)
        if self.keep:
            self._codes.append(np.ascontiguousarray(codes.T))
            if self.n_rows * n > KEPT_VALUES:
                self.keep, self._codes = False, []

    def _widen(self, K: int) -> None:
        assert self._tables is not None
        n, now = self._tables.shape[:2]
        if now < K:
            tables = np.zeros((n, K, n, K), dtype=np.int64)
            tables[:, :now, :, :now] = self._tables
            self._tables = tables

    def _give_up_tables(self, values: Floats) -> None:
        """Go on with sums: those of the rows so far come from their tables."""
        with np.errstate(invalid="ignore", over="ignore"):
            seen = (~np.isnan(values)).sum(axis=0)
            centre = np.where(seen > 0, np.nansum(values, axis=0) / np.maximum(seen, 1), 0.0)
        assert self._tables is not None
        self._sums = Sums.of_tables(self._tables, self._table_values, centre)
        self._tables, self.keep, self._codes, self._distinct = None, False, [], None

    def _note_values(self, values: Floats) -> None:
        """Which columns still have few values, where there are no tables any more."""
        for j, known in enumerate(self._values):
            if known is not None:
                column = values[:, j]
                known.extend(v for v in np.unique(column[~np.isnan(column)]).tolist() if v not in known)
                if len(known) > MOST_VALUES:
                    self._values[j] = None

    @property
    def _table_values(self) -> Floats:
        """(n, K) the values of the categories, NaN where a column has fewer."""
        assert self._tables is not None
        n, K = self._tables.shape[:2]
        values = np.full((n, K), np.nan)
        for j, known in enumerate(self._values):
            values[j, : len(known or ())] = (known or [])[:K]
        return values

    def merge(self, other: Tally) -> None:
        """Add what another tally of the same columns has counted."""
        if not other.ordered:
            return
        if not self.ordered:
            self._begin(other.ordered)
        self.n_given += other.n_given
        self.n_empty += other.n_empty
        self.n_incomplete += other.n_incomplete
        self.n_rows += other.n_rows
        self.missing = self.missing + other.missing
        self.low, self.high = np.fmin(self.low, other.low), np.fmax(self.high, other.high)
        self.ordered = tuple(a or b for a, b in zip(self.ordered, other.ordered, strict=True))
        self.peeked += other.peeked
        self._thin()
        self.keep, self._codes = False, []
        theirs, ours = other._values, self._values
        together = [
            None if a is None or b is None else [*a, *(v for v in b if v not in a)]
            for a, b in zip(ours, theirs, strict=True)
        ]
        together = [None if known is not None and len(known) > MOST_VALUES else known for known in together]
        if self._tables is None or other._tables is None or None in together:
            sums, more = self._any_sums(), other._any_sums()
            self._sums = more if self.n_rows == other.n_rows else sums + more
            self._tables, self._values, self._distinct = None, together, None
            return
        assert self._distinct is not None
        assert other._distinct is not None
        self._distinct.merge(other._distinct)
        places = [[(known or []).index(v) for v in (b or [])] for known, b in zip(together, theirs, strict=True)]
        self._values = together
        self._widen(max(len(known or ()) for known in together))
        n, K = self._tables.shape[:2]
        flat = self._tables.reshape(n * K, n * K)
        k = other._tables.shape[1]
        at = np.concatenate([j * K + np.array(place, dtype=np.int64) for j, place in enumerate(places)])
        of = np.concatenate([j * k + np.arange(len(place)) for j, place in enumerate(places)])
        flat[np.ix_(at, at)] += other._tables.reshape(n * k, n * k)[np.ix_(of, of)]

    def _any_sums(self) -> Sums:
        if self._sums is not None:
            return self._sums
        assert self._tables is not None
        return Sums.of_tables(self._tables, self._table_values, np.where(np.isnan(self.low), 0.0, self.low))

    # What comes of it ---------------------------------------------------------------------------------------

    @property
    def has_tables(self) -> bool:
        """Whether every column has few values, so that the tables of all pairs are known."""
        return self._tables is not None

    @property
    def sums(self) -> Sums:
        """Sums of all pairs, around the means of the variables."""
        sums = self._any_sums()
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = sums.mean
        return sums.around(np.where(np.isfinite(mean), mean, sums.centre))

    def tables(self) -> tuple[Ints, Floats]:
        """Two-way tables (n, K, n, K), categories in the order of their values, and these values (n, K)."""
        assert self._tables is not None
        n, K = self._tables.shape[:2]
        values = self._table_values
        order = np.argsort(values, axis=1, kind="stable")  # NaN last
        index = (np.arange(n)[:, None] * K + order).ravel()
        sorted_tables = self._tables.reshape(n * K, n * K)[np.ix_(index, index)].reshape(n, K, n, K)
        return sorted_tables, np.take_along_axis(values, order, axis=1)

    @property
    def distinct(self) -> DistinctRows:
        """Some of the different rows, and how often each was seen, where there are tables."""
        assert self._distinct is not None
        return self._distinct

    def margin(self, j: int) -> tuple[Floats, Ints] | None:
        """Values of a column and how often each was seen; None where there are many, or they were not counted."""
        if self._tables is None:
            return None
        known = np.array(self._values[j])
        order = np.argsort(known)
        counts = self._tables[j, np.arange(len(known)), j, np.arange(len(known))]
        return known[order], counts[order]

    def n_values(self, j: int) -> int:
        """How many different values a column has; more than 20 are not counted."""
        known = self._values[j]
        return MOST_VALUES + 1 if known is None else len(known)

    def has_whole_values(self, j: int) -> bool:
        """Whether a column has from 2 to 20 values, all whole numbers, as answers on a scale have."""
        known = self._values[j]
        return known is not None and len(known) > 1 and all(value == round(value) for value in known)

    @property
    def peek(self) -> Floats:
        """Up to 20,000 rows, spread over all."""
        return np.concatenate(self.peeked) if self.peeked else np.zeros((0, len(self.names)))

    @property
    def share_missing(self) -> Floats:
        """(n,) part of each variable's values that are missing."""
        return np.asarray(self.missing / max(self.n_rows, 1))

    @property
    def packed(self) -> PackedRows | None:
        """The rows themselves, where they were kept."""
        if not self.keep or not self._codes:
            return None
        categories = np.full((len(self.names), 256), np.nan)
        for j, known in enumerate(self._values):
            categories[j, : len(known or ())] = known or []
        return PackedRows(self.names, np.concatenate(self._codes), frozen(categories), self.ordered)


def merged(tallies: Sequence[Tally]) -> Tally:
    """All tallies added up, in their order."""
    total = Tally(tallies[0].names, tallies[0].listwise)
    for tally in tallies:
        total.merge(tally)
    return total
