"""Ordinal items: polychoric and polyserial correlations.

A Likert item is read as a Gaussian variable cut at thresholds. Two steps, as lavaan takes them: the thresholds come
from the margins, then the correlation of each pair maximises the likelihood of its two-way table (two ordinal
items: polychoric) or of the categories given the values (an ordinal and a continuous variable: polyserial). All
pairs climb together, by Fisher scoring inside a bracket that the sign of the slope narrows, so none can run off.

The bivariate normal distribution function is Owen's T; its derivative in the correlation is the density, so that
the slopes of all cells are differences of a density over the grid of thresholds.

**How many samples are cut variables worth?** Categories tell less than values: the information on a correlation r, per
row, is below ``(1 + r^2) / (1 - r^2)^2``, that of two continuous variables (margins known in both cases). Their ratio
times the rows of the pair is what the pair is worth in continuous rows. Chi-square adds up variances, so the harmonic
mean over the pairs is ``Sample.n``, once pairs of ordinal variables are worth what they are together
(:mod:`unmeasured.data.moments.influence`). Without it a true model is rejected: of one factor and eight skewed items
of five categories, N = 1000, chi-square averages twice its degrees of freedom, with it about once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from scipy.special import ndtr, ndtri

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.data.matrices import refuse_perfect, repaired, rescaled
from unmeasured.data.moments.distinct import MISSING, DistinctRows, most_distinct
from unmeasured.data.moments.influence import FAR, bivariate_cdf, worth_of_rows
from unmeasured.data.moments.missing import Moments, check_pairs, in_words, pair_counts, shares_in_words, standardised
from unmeasured.data.moments.tally import MOST_VALUES, Sums, Tally
from unmeasured.data.observed_roles import probit_correlations
from unmeasured.data.rows import Rows
from unmeasured.errors import DataError, listing
from unmeasured.remarks import data_problem

# auto: a variable with at most this many values is ordinal, if each has at least this many rows on average.
MOST_CATEGORIES, ROWS_PER_CATEGORY = 7, 10
# A category seen less often than this has a threshold, and correlations, that are mostly chance.
_SPARSE = 5
# Correlations are kept this far inside -1 and 1; what ends there had no maximum inside.
_BOUND = 0.9999
_TOLERANCE, _MAX_STEPS = 1e-9, 100
_CHUNK = 1_000_000


def is_ordinal(rows: Rows) -> Bools:
    """(n,) the rule of ``cor="auto"``: at most 7 different values with 10 rows each on average, or an ordered type.

    Columns that are said to be continuous are not.
    """
    seen = [column[~np.isnan(column)] for column in rows.values.T]
    n_values = np.array([_n_values(column) for column in seen])
    enough = np.array([len(column) for column in seen]) >= ROWS_PER_CATEGORY * n_values
    said = np.isin(rows.names, rows.continuous)
    return np.asarray((np.array(rows.ordered) | ((n_values <= MOST_CATEGORIES) & enough)) & ~said)


def _n_values(column: Floats) -> int:
    """How many different values a column has, or more than ordinal ones have: a few rows tell most columns apart."""
    some = len(np.unique(column[:50]))
    return some if some > MOST_CATEGORIES else len(np.unique(column))


def ordinal_moments(rows: Rows, ordinal: Bools, given: Bools | None = None) -> Moments:
    """Polychoric, polyserial and Pearson correlations, each from the rows that show both variables.

    With covariates, which are ``given``, the correlations of an ordinal variable with them come from its probit
    regression on all of them (:mod:`unmeasured.data.observed_roles`), which assumes nothing of their distribution.

    Ordinal variables get mean 0 and standard deviation 1, those of the Gaussian variable behind them.
    """
    names, holes = rows.names, rows.is_missing
    counts = pair_counts(holes)
    check_pairs(counts, names)
    items = [Item.of(rows.values[:, j], names[j]) if ordinal[j] else None for j in range(len(names))]
    z, centre, scale = standardised(rows.values)
    corr = pairwise_correlations(z)
    _refuse_same_answers(items, names)
    worths = counts.astype(float)
    _fill_polychoric(corr, worths, items, names)
    _fill_polyserial(corr, worths, items, z)
    if given is not None and given.any():
        X, among = z[:, given], corr[np.ix_(given, given)]
        for j in np.flatnonzero(ordinal):
            item = items[j]
            assert item is not None
            corr[j, given] = corr[given, j] = probit_correlations(item.codes, X, among)
    told = in_words(holes, names) if holes.any() else ""
    moments = _finished(corr, worths, counts, items, names, len(holes), told)
    sd = np.where(ordinal, 1.0, scale)
    mean = np.where(ordinal, 0.0, centre)
    return replace(moments, mean=mean, cov=rescaled(moments.cov, sd))


def table_moments(tally: Tally) -> Moments:
    """Polychoric correlations of variables that are all ordinal, from the two-way tables of a pass over the rows.

    >>> rng = np.random.default_rng(0)
    >>> values = np.digitize(rng.normal(size=(500, 1)) + rng.normal(size=(500, 3)), [-1.0, 0.0, 1.0]).astype(float)
    >>> rows = Rows(("a", "b", "c"), values, (False,) * 3)
    >>> tally = Tally(rows.names)
    >>> tally.add(rows)
    >>> np.abs(table_moments(tally).cov - ordinal_moments(rows, np.ones(3, dtype=bool)).cov).max() < 1e-8
    np.True_
    """
    names, sums = tally.names, tally.sums
    counts = sums.counts
    check_pairs(counts, names)
    tables, values = tally.tables()
    items: list[Item | None] = []
    for j, name in enumerate(names):
        seen = ~np.isnan(values[j])
        margin = tables[j, np.arange(len(seen)), j, np.arange(len(seen))][seen]
        items.append(Item.counted(name, values[j][seen], margin))
    corr = sums.corr
    if not tally.missing.any():
        codes = np.where(np.isnan(values), np.nan, np.arange(values.shape[1]))
        refuse_perfect(Sums.of_tables(tables, codes, np.zeros(len(names))).corr, names)
    worths = counts.astype(float)
    _fill_from_tables(corr, worths, items, tables.astype(float).transpose(0, 2, 1, 3), tally.distinct)
    incomplete = 0 if tally.listwise else tally.n_incomplete
    told = shares_in_words(tally.share_missing, incomplete, tally.n_rows, names) if tally.missing.any() else ""
    return _finished(corr, worths, counts, items, names, tally.n_rows, told)


def _finished(
    corr: Floats,
    worths: Floats,
    counts: Ints,
    items: list[Item | None],
    names: tuple[str, ...],
    n_rows: int,
    told: str,
) -> Moments:
    """Correlations as moments of mean 0 and variance 1, positive definite, with what is to be said of them."""
    n = _mean_worth(worths)
    ordinal = np.array([item is not None for item in items])
    remarks: list[str] = [*_sparse_remarks(items), *_bound_remarks(corr, names, ordinal)]
    corr, changed = repaired(corr, names, "correlations, each estimated for its pair,")
    if told:
        remarks.append(
            f"{told}: with ordinal items every correlation is from the rows in which both variables were observed "
            "(pairwise)."
        )
    remarks.append(
        f"The search uses a sample size of {n:.1f} instead of {n_rows}: answers in categories contain less information "
        "on correlations than continuous values."
    )
    return Moments(np.zeros(len(names)), corr, counts, n, (*remarks, *changed))


def _mean_worth(worths: Floats) -> float:
    """The harmonic mean over pairs; never below what an analysis of so many variables needs."""
    if len(worths) == 1:
        return float(worths[0, 0])
    pairs = worths[np.tril_indices(len(worths), -1)]
    return max(float(1.0 / (1.0 / pairs).mean()), len(worths) + 1.0)


def _relative(rho: Floats, information: Floats) -> Floats:
    """What categories are worth in continuous rows: the information relative to that of one such row."""
    # A correlation at its bound has no information to speak of; the floor keeps one such pair from ruling the mean.
    return np.asarray(np.maximum(information * (1.0 - rho**2) ** 2 / (1.0 + rho**2), 1.0))


def pairwise_correlations(z: Floats) -> Floats:
    """Pearson correlations of each pair, from the rows that show both variables."""
    seen = (~np.isnan(z)).astype(float)
    z = np.where(np.isnan(z), 0.0, z)
    n = seen.T @ seen
    mean = (z.T @ seen) / n  # mean[i, j]: of i where j is seen
    cross = (z.T @ z) / n - mean * mean.T
    square = ((z**2).T @ seen) / n - mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        corr = cross / np.sqrt(square * square.T)
    # A variable that never changes where another is seen shows no covariance with it.
    corr = np.clip(np.where(np.isfinite(corr), corr, 0.0), -1.0, 1.0)
    np.fill_diagonal(corr, 1.0)
    return np.asarray(corr)


@dataclass(frozen=True, eq=False)
class Item:
    """An ordinal item: categories 0, 1, ... of each row (-1: missing), their values, counts and thresholds."""

    name: str
    codes: Ints
    values: Floats
    counts: Ints
    thresholds: Floats

    @classmethod
    def of(cls, column: Floats, name: str) -> Item:
        """Read the categories off a column; thresholds are those of its margin."""
        seen = ~np.isnan(column)
        values, inverse, counts = np.unique(column[seen], return_inverse=True, return_counts=True)
        if len(values) > MOST_VALUES:
            refuse_values(name, str(len(values)))
        codes = np.full(len(column), -1, dtype=np.int64)
        codes[seen] = inverse.ravel()
        return replace(cls.counted(name, values, counts), codes=codes)

    @classmethod
    def counted(cls, name: str, values: Floats, counts: Ints) -> Item:
        """An item whose margin is known, without the category of each row."""
        thresholds = ndtri(np.cumsum(counts)[:-1] / counts.sum())
        return cls(name, np.zeros(0, dtype=np.int64), values, counts, thresholds)


def refuse_values(name: str, how_many: str) -> NoReturn:
    """Refuse a variable with too many values as ordinal."""
    raise DataError(
        f"Variable {name!r} has {how_many} different values, too many for an ordinal item (at most "
        f"{MOST_VALUES}). Use cor='auto', which takes such variables as continuous."
    )


def polychoric(tables: Floats, rows: Floats, columns: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Correlations (B,) of Gaussian pairs, and the information on them.

    From two-way tables (B, K, L) and thresholds (B, K - 1), (B, L - 1).
    """
    # Far outside stands for infinity, so that tables of several sizes fit one batch; zero is moved off itself because
    # Owen's T divides by it.
    h = np.where(np.abs(rows) < 1e-100, 1e-100, rows)[:, :, None]
    k = np.where(np.abs(columns) < 1e-100, 1e-100, columns)[:, None, :]

    def slope(rho: Floats, active: Bools) -> tuple[Floats, Floats]:
        r, a, b, n = rho[:, None, None], h[active], k[active], tables[active]
        p = np.maximum(_cells(bivariate_cdf(a, b, r), ndtr(a), ndtr(b)), 1e-12)
        q = 1.0 - r**2
        density = np.exp(-(a**2 - 2.0 * r * a * b + b**2) / (2.0 * q)) / (2.0 * np.pi * np.sqrt(q))
        dp = _cells(density, np.zeros_like(a), np.zeros_like(b), total=0.0)
        return (n * dp / p).sum(axis=(1, 2)), n.sum(axis=(1, 2)) * (dp**2 / p).sum(axis=(1, 2))

    return _climb(slope, start)


def _cells(inside: Floats, row_edge: Floats, column_edge: Floats, total: float = 1.0) -> Floats:
    """Cells (B, K, L) as differences of a function of the thresholds, whose limits at infinity are the edges."""
    B, K, L = inside.shape
    grid = np.zeros((B, K + 2, L + 2))
    grid[:, 1:-1, 1:-1] = inside
    grid[:, 1:-1, -1] = row_edge[:, :, 0]
    grid[:, -1, 1:-1] = column_edge[:, 0, :]
    grid[:, -1, -1] = total
    return np.diff(np.diff(grid, axis=1), axis=2)


def _climb(slope: Callable[[Floats, Bools], tuple[Floats, Floats]], start: Floats) -> tuple[Floats, Floats]:
    """Maximise many functions of a correlation at once: where the maxima are, and the information there.

    ``slope`` gives derivative and information of the active ones.
    """
    rho = np.clip(start, -0.95, 0.95)
    low, high = np.full_like(rho, -_BOUND), np.full_like(rho, _BOUND)
    active = np.ones(len(rho), dtype=bool)
    for _ in range(_MAX_STEPS):
        if not active.any():
            break
        now = rho[active]
        gradient, information = slope(now, active)
        low[active] = np.where(gradient > 0, now, low[active])
        high[active] = np.where(gradient > 0, high[active], now)
        step = now + gradient / np.maximum(information, 1e-300)
        # A step that leaves the bracket is replaced by its middle; the far end is thereby reached in some steps.
        middle = (low[active] + high[active]) / 2.0
        step = np.where((step > low[active]) & (step < high[active]), step, middle)
        rho[active] = step
        active[active] = np.abs(step - now) > _TOLERANCE
    return rho, slope(rho, np.ones(len(rho), dtype=bool))[1]


def _fill_polychoric(corr: Floats, worths: Floats, items: list[Item | None], names: tuple[str, ...]) -> None:
    """Replace the correlations of ordinal pairs and what they are worth; all tables come from one product."""
    chosen = [(j, item) for j, item in enumerate(items) if item is not None]
    if len(chosen) < 2:
        return
    K = max(len(item.values) for _, item in chosen)
    indicators = np.concatenate([item.codes[:, None] == np.arange(K) for _, item in chosen], axis=1).astype(float)
    crossed = (indicators.T @ indicators).reshape(len(chosen), K, len(chosen), K).transpose(0, 2, 1, 3)
    rows = DistinctRows(tuple(names[j] for j, _ in chosen), most_distinct(len(chosen)))
    codes = np.array([np.where(item.codes < 0, MISSING, item.codes) for _, item in chosen], dtype=np.uint8)
    rows.add(codes, [item.values.tolist() for _, item in chosen])
    _fill_from_tables(corr, worths, items, crossed, rows)


def _fill_from_tables(
    corr: Floats, worths: Floats, items: list[Item | None], crossed: Floats, rows: DistinctRows
) -> None:
    """The same from the tables (m, m, K, K) of the ordinal items, and some of the rows."""
    chosen = [(j, item) for j, item in enumerate(items) if item is not None]
    K = crossed.shape[2]
    thresholds = np.full((len(chosen), K - 1), FAR)
    for row, (_, item) in enumerate(chosen):
        thresholds[row, : len(item.thresholds)] = item.thresholds
    binary = np.array([len(item.values) == 2 for _, item in chosen])
    where = np.array([j for j, _ in chosen])
    first, second = np.triu_indices(len(chosen), 1)
    per_chunk = max(1, _CHUNK // (K * K))
    for begin in range(0, len(first), per_chunk):
        a, b = first[begin : begin + per_chunk], second[begin : begin + per_chunk]
        tables = crossed[a, b]
        _fill_empty_cells(tables, binary[a] & binary[b])
        pair, turned = (where[a], where[b]), (where[b], where[a])
        rho, information = polychoric(tables, thresholds[a], thresholds[b], corr[pair])
        corr[pair] = corr[turned] = rho
        worths[pair] = worths[turned] = np.minimum(_relative(rho, information), worths[pair])
    if len(chosen) > 2:
        block = np.ix_(where, where)
        alone = _mean_worth(worths[block])
        together = worth_of_rows(
            _codes_of(rows, [item for _, item in chosen]), rows.times, crossed,
            [item.thresholds for _, item in chosen], corr[block], alone,
        )  # fmt: skip
        worths[block] *= min(together / alone, 1.0)


def _codes_of(rows: DistinctRows, items: list[Item]) -> Ints:
    """(R, m) the categories of some rows, -1 where a value is missing."""
    codes = [np.searchsorted(item.values, column) for item, column in zip(items, rows.values.T, strict=True)]
    return np.where(np.isnan(rows.values), -1, np.array(codes).T)


def _fill_empty_cells(tables: Floats, fourfold: Bools) -> None:
    """Half a row into the empty cell of a fourfold table, margins kept, as lavaan does: its likelihood has no maximum.

    Larger tables with empty cells are left as they are.
    """
    cells = tables[:, :2, :2]
    diagonal = fourfold & ((cells[:, 0, 0] == 0) | (cells[:, 1, 1] == 0))
    other = fourfold & ((cells[:, 0, 1] == 0) | (cells[:, 1, 0] == 0))
    shift = 0.5 * (diagonal.astype(float) - other.astype(float))[:, None, None]
    cells += shift * np.array([[1.0, -1.0], [-1.0, 1.0]])


def _fill_polyserial(corr: Floats, worths: Floats, items: list[Item | None], z: Floats) -> None:
    """Replace the correlations of ordinal with continuous variables, one item against all of the others."""
    continuous = np.array([j for j, item in enumerate(items) if item is None], dtype=np.int64)
    if not len(continuous):
        return
    for j, item in enumerate(items):
        if item is None:
            continue
        # The mean and deviation of a continuous variable are its own, from all rows that show it, like the thresholds.
        seen = item.codes >= 0
        x = z[np.ix_(seen, continuous)]
        rho, information = polyserial(x, item.codes[seen], item.thresholds, corr[j, continuous])
        corr[j, continuous] = corr[continuous, j] = rho
        worth = np.minimum(_relative(rho, information), worths[j, continuous])
        worths[j, continuous] = worths[continuous, j] = worth


def polyserial(x: Floats, codes: Ints, thresholds: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Correlations (C,) of a cut Gaussian variable with each column of standard x (N, C), and the information on them.

    x may have missing values.
    """
    edges = np.concatenate([[-FAR], thresholds, [FAR]])
    below, above = edges[codes][:, None], edges[codes + 1][:, None]
    holes = np.isnan(x)
    x = np.where(holes, 0.0, x)

    def slope(rho: Floats, active: Bools) -> tuple[Floats, Floats]:
        root = np.sqrt(1.0 - rho**2)
        values = x[:, active]
        upper, lower = (above - rho * values) / root, (below - rho * values) / root
        # In the upper tail differences of the other tail are exact where those of the lower tail would cancel.
        turned = lower > 0
        p = ndtr(np.where(turned, -lower, upper)) - ndtr(np.where(turned, -upper, lower))
        d_upper, d_lower = (rho * above - values) / root**3, (rho * below - values) / root**3
        dp = (np.exp(-(upper**2) / 2.0) * d_upper - np.exp(-(lower**2) / 2.0) * d_lower) / np.sqrt(2.0 * np.pi)
        ratio = np.where(holes[:, active], 0.0, dp / np.maximum(p, 1e-300))
        return ratio.sum(axis=0), (ratio**2).sum(axis=0)

    return _climb(slope, start)


def _refuse_same_answers(items: list[Item | None], names: tuple[str, ...]) -> None:
    """Items that are one another recoded: every category of one is one category of the other, in order."""
    chosen = [(j, item) for j, item in enumerate(items) if item is not None]
    seen = np.column_stack([item.codes for _, item in chosen]).astype(float) if chosen else np.zeros((0, 0))
    if len(chosen) > 1 and (seen >= 0).all():
        refuse_perfect(pairwise_correlations(seen), tuple(names[j] for j, _ in chosen))


def _sparse_remarks(items: list[Item | None]) -> Iterator[str]:
    sparse = [item for item in items if item is not None and item.counts.min() < _SPARSE]
    if sparse:
        worst = min(sparse, key=lambda item: item.counts.min())
        times = "once" if worst.counts.min() == 1 else f"{worst.counts.min()} times"
        yield data_problem(
            f"Categories with fewer than {_SPARSE} answers in {listing([item.name for item in sparse])} (such as the "
            f"value {worst.values[worst.counts.argmin()]:g} of {worst.name!r}, {times}): their "
            "correlations rest on little. Consider joining such a category to its neighbour."
        )


def _bound_remarks(corr: Floats, names: tuple[str, ...], ordinal: Bools) -> Iterator[str]:
    first, second = np.nonzero(np.triu(np.abs(corr) > _BOUND - 1e-6, 1) & (ordinal[:, None] | ordinal[None, :]))
    if len(first):
        pairs = [f"{names[i]} and {names[j]}" for i, j in zip(first, second)]
        yield data_problem(
            f"No maximum inside (-1, 1) for {listing(pairs)}: the table of answers has empty corners. The correlation "
            f"was set to {_BOUND}, with its sign."
        )
