"""Sample: what the rest of the package knows of the data, however they were given.

**The divisor, stated once.** ``Sample.cov`` is the maximum-likelihood covariance: its divisor is N. A matrix
handed in is taken to have the usual divisor N - 1 and is rescaled by (N - 1)/N, as lavaan does; a population
covariance (N infinite) is left alone. Of ordinal items it holds the correlations of the Gaussian variables
behind them.

**N.** ``Sample.n`` is what the data are worth in complete rows of continuous values: less than the number of rows
where values are missing or variables ordinal (:mod:`unmeasured.data.moments.missing` and
:mod:`unmeasured.data.moments.ordinal` say how much less, and why).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np
import pandas as pd
from scipy.linalg import lapack

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.data.columns import refuse_constant, refuse_identical, refuse_useless, suspicions
from unmeasured.data.matrices import as_matrix, checked_cov, repaired, rescaled, sample_size, with_deviations
from unmeasured.data.moments.distinct import order_of_values
from unmeasured.data.moments.margins import Margin, margins_of, with_scores
from unmeasured.data.moments.missing import (
    Missing,
    Moments,
    check_pairs,
    complete,
    dropped_in_words,
    empty_in_words,
    in_words,
    pair_counts,
    saturated_moments,
    shares_in_words,
    standardised,
    without_empty_rows,
    worth,
)
from unmeasured.data.moments.ordinal import (
    MOST_CATEGORIES,
    ROWS_PER_CATEGORY,
    Item,
    is_ordinal,
    ordinal_moments,
    pairwise_correlations,
    refuse_values,
    table_moments,
)
from unmeasured.data.moments.tally import MOST_VALUES, PackedRows, Tally
from unmeasured.data.moments.transform import are_skewed, beyond_chance, normal_scores
from unmeasured.data.observed_roles import Roles, with_covariates
from unmeasured.data.rows import Rows, as_rows, frozen
from unmeasured.data.suspect_columns import Suspect, numbers_rows, role_remarks, suspects
from unmeasured.data.tables import RowsNeeded, as_blocks, is_in_memory, tally_of
from unmeasured.errors import DataError, listing, nearest

Cor = Literal["pearson", "auto", "polychoric", "spearman-normal"]
Kind = Literal["continuous", "ordinal", "scores"]
_LARGEST = 1e200


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """Names, maximum-likelihood covariance (divisor N) and number of samples (infinite: a population).

    Attributes
    ----------
    names : tuple of str
    cov : (n, n) array, read-only
    n : float
        Number of samples; with missing values or ordinal variables, the complete rows of continuous values they are
        worth.
    mean : (n,) array, optional
        None where a matrix was given.
    kinds : tuple of str
        How each variable was taken: "continuous", "ordinal" or "scores" (of ranks); empty where a matrix was given.
    counts : (n, n) array, optional
        Rows that show both variables of a pair; None where a matrix was given.
    remarks : tuple of str
        What was done to the data, and what looks odd in them, in sentences.
    labels : mapping
        What the file of the data says of a variable, such as the wording of a question; empty where it says nothing.
    covariates, outcomes : tuple of str
        Variables that are no indicators: observed causes, which models are conditioned on, and observed effects.
    reverse_keyed : tuple of str
        Items that their authors score in reverse (``X.attrs["reverse_keyed"]``), as far as that is known.

    Examples
    --------
    >>> rows = pd.DataFrame({"a": [1.0, 2, 3, 4, 5], "b": [2.0, 1, 4, 3, 6], "c": [0.0, 1, 0, 2, 9]})
    >>> sample = Sample.from_rows(rows)
    >>> sample
    <Sample: 3 variables, n = 5>
    >>> sample.corr.round(2)
    array([[1.  , 0.82, 0.79],
           [0.82, 1.  , 0.78],
           [0.79, 0.78, 1.  ]])
    """

    names: tuple[str, ...]
    cov: Floats
    n: float
    mean: Floats | None = None
    kinds: tuple[Kind, ...] = ()
    counts: Ints | None = None
    remarks: tuple[str, ...] = ()
    # All rows that were used, and which of their columns these variables are: selecting copies no rows.
    _rows: Rows | PackedRows | None = field(default=None, repr=False)
    _columns: tuple[int, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    # Read from a file, a sample has no rows but may know how values are read (unmeasured.data.moments.margins).
    margins: Mapping[str, Margin] = field(default_factory=dict, repr=False)
    covariates: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    # Whether each correlation is from the rows that show both variables; else moments are of all rows together.
    by_pairs: bool = False
    # Of rows that were counted and not kept: how many there were, and which part of their values was missing.
    _counted: tuple[int, float] | None = None
    reverse_keyed: tuple[str, ...] = ()

    # To another process goes what it was made of. Arrays arrive as ones that can be written, which compiled code takes
    # for another type and would be compiled for again; so they are frozen anew.
    def __getstate__(self) -> dict[str, Any]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        mean = state["mean"]
        self.__dict__.update(state, cov=frozen(state["cov"]), mean=None if mean is None else frozen(mean))

    @classmethod
    def from_cov(
        cls,
        cov: Any,
        n_samples: float,
        names: Sequence[str] | None = None,
        *,
        sd: Any = None,
        repair: bool = False,
        covariates: Sequence[str] = (),
        outcomes: Sequence[str] = (),
    ) -> Sample:
        """From a covariance or correlation matrix with divisor N - 1; ``math.inf`` samples: a population.

        Parameters
        ----------
        sd
            With correlations: the standard deviations, to have covariances.
        repair
            Take the nearest positive definite matrix where this one is not, and say by how much it changed.
        covariates, outcomes
            Variables that are no indicators.

        Examples
        --------
        >>> Sample.from_cov([[1.0, 0.5], [0.5, 1.0]], 101, ["a", "b"]).cov[0, 1].round(4)
        np.float64(0.495)
        >>> Sample.from_cov([[1.0, 0.5], [0.5, 1.0]], math.inf, sd=[2, 3]).cov
        array([[4., 3.],
               [3., 9.]])
        """
        names, matrix = as_matrix(cov, names)
        roles = Roles.of(covariates, outcomes, names)
        n = sample_size(n_samples, len(names))
        if sd is not None:
            matrix = with_deviations(matrix, sd, names)
        matrix = checked_cov(matrix, names, definite=not repair)
        remarks: tuple[str, ...] = ()
        if repair:
            deviations = np.sqrt(np.diag(matrix))
            corr, remarks = repaired(matrix / np.outer(deviations, deviations), names, "entries of the matrix")
            matrix = rescaled(corr, deviations)
        matrix = matrix if math.isinf(n) else matrix * (n - 1.0) / n
        asked = role_remarks(suspects([name for name in names if name not in roles.names]))
        return cls(
            names,
            frozen(matrix),
            n,
            remarks=(*remarks, *asked),
            labels=labels_of(cov, names),
            reverse_keyed=reverse_keyed_of(cov, names),
            covariates=roles.covariates,
            outcomes=roles.outcomes,
        )

    @classmethod
    def from_rows(
        cls,
        X: Any,
        names: Sequence[str] | None = None,
        *,
        cor: Cor = "pearson",
        missing: Missing = "ml",
        covariates: Sequence[str] = (),
        outcomes: Sequence[str] = (),
        groups: Sequence[str] = (),
        check: Callable[[], None] | None = None,
    ) -> Sample:
        """From rows: a data frame or an array with one row per sample; see :func:`as_sample` for the options.

        ``groups`` has the group of each row, where the rows are of several groups of people (:meth:`by_group`).
        """
        _check_option("cor", cor, get_args(Cor))
        _check_option("missing", missing, get_args(Missing))
        if as_blocks(X):
            try:
                return cls._from_blocks(X, names, cor, missing, covariates, outcomes, groups)
            except RowsNeeded as needed:
                if not is_in_memory(X):
                    raise RowsNeeded(f"{needed} {_NOT_IN_MEMORY}", needed.columns) from None
        rows = replace(as_rows(X, names), groups=tuple(groups))
        roles = Roles.of(covariates, outcomes, rows.names)
        _check_size(rows)
        rows, emptied = without_empty_rows(rows)
        rows, lost = with_covariates(rows, roles.covariates)
        dropped: tuple[str, ...] = ()
        if missing == "listwise":
            rows, dropped = complete(rows)
        refuse_useless(rows)
        given = np.isin(rows.names, roles.covariates)
        moments, kinds = _moments(rows, cor, missing, given, check)
        n = sample_size(moments.n, len(rows.names))
        return cls(
            rows.names,
            frozen(checked_cov(moments.cov, rows.names, from_rows=True)),
            n,
            frozen(moments.mean),
            kinds,
            moments.counts,
            (
                *emptied,
                *lost,
                *dropped,
                *_kind_remarks(rows.names, kinds, is_ordinal(rows) & ~given),
                *moments.remarks,
                *suspicions(rows, roles.names),
            ),
            rows,
            tuple(range(len(rows.names))),
            labels_of(X, rows.names),
            reverse_keyed=reverse_keyed_of(X, rows.names),
            covariates=roles.covariates,
            outcomes=roles.outcomes,
            by_pairs="ordinal" in kinds or (missing == "pairwise" and bool(rows.is_missing.any())),
        )

    @classmethod
    def _from_blocks(
        cls,
        X: Any,
        names: Sequence[str] | None,
        cor: Cor,
        missing: Missing,
        covariates: Sequence[str],
        outcomes: Sequence[str],
        groups: Sequence[str],
    ) -> Sample:
        """From rows that are read once, block by block; the same moments as from all rows at once."""
        for what, is_asked in (
            ("Covariates", len(covariates) > 0),
            ("Groups of people", len(groups) > 0),
            ("Ranks (cor='spearman-normal')", cor == "spearman-normal"),
        ):
            if is_asked:
                raise RowsNeeded(f"{what} need all rows at once, and this table is read in blocks.")
        tally = tally_of(X, names, listwise=missing == "listwise")
        names = tally.names
        roles = Roles.of((), outcomes, names)
        sample_size(tally.n_given, len(names))
        dropped = dropped_in_words(
            tally.n_incomplete if tally.listwise else 0, tally.n_given - tally.n_empty, len(names)
        )
        refuse_constant(names, tally.low, tally.high)
        _refuse_same(tally)
        moments, kind = _tally_moments(tally, cor, missing)
        kinds = (kind,) * len(names)
        margins = [tally.margin(j) for j in range(len(names))]
        peek, packed = Rows(names, tally.peek, tally.ordered), tally.packed
        kept = () if packed is not None else (_NOT_KEPT.format(tally.n_rows),)
        return cls(
            names,
            frozen(checked_cov(moments.cov, names, from_rows=True)),
            sample_size(moments.n, len(names)),
            frozen(moments.mean),
            kinds,
            moments.counts,
            (
                *empty_in_words(tally.n_empty),
                *dropped,
                *_kind_remarks(names, kinds, _few_values(tally)),
                *moments.remarks,
                *_numbering(tally, roles.names),
                *suspicions(peek, roles.names, margins),
                *kept,
            ),
            packed,
            tuple(range(len(names))) if packed is not None else (),
            labels_of(X, names),
            _ordinal_margins(names, margins) if kind == "ordinal" else {},
            outcomes=roles.outcomes,
            by_pairs=kind == "ordinal" or bool(tally.missing.any()),
            _counted=(tally.n_rows, float(tally.share_missing.mean())),
            reverse_keyed=reverse_keyed_of(X, names),
        )

    def __repr__(self) -> str:
        return f"<Sample: {len(self.names)} variables, n = {self.n:g}>"

    @cached_property
    def rows(self) -> Floats | None:
        """The rows used, as they came, missing values as NaN, columns in the order of names; None where a matrix "
        "was given.
        """
        return None if self._rows is None else frozen(self._rows.values[:, self._columns])

    @property
    def has_rows(self) -> bool:
        """Whether the rows are known. To ask for millions of them takes time and memory."""
        return self._rows is not None

    @cached_property
    def order_of_rows(self) -> Ints:
        """Numbers of the rows in an order that follows from their values: whatever draws rows draws from it, so that no
        answer depends on how a file was sorted.
        """
        if self._rows is None:
            raise DataError(NO_ROWS)
        return order_of_values((self._rows.column(j) for j in self._columns), self.names)

    def some_rows(self, most: int) -> Floats:
        """Up to so many of the rows, whichever they are of all; without making the others."""
        if self._rows is None:
            raise DataError(NO_ROWS)
        n = self.n_rows or 0
        if n <= most:
            return cast("Floats", self.rows)
        chosen = self.order_of_rows[:most]  # by hashes, which is as good as at random
        if isinstance(self._rows, PackedRows):
            values = replace(self._rows, codes=self._rows.codes[chosen]).values
        else:
            values = self._rows.values[chosen]
        return frozen(values[:, self._columns])

    def analysed_rows(self) -> Floats:
        """The rows with scores of ranks in the place of the values they were taken for; missing values are NaN."""
        if self.rows is None:
            raise DataError(NO_ROWS)
        scored = np.array([kind == "scores" for kind in self.kinds], dtype=bool)
        if not scored.any():
            return self.rows
        # Of a group of people the scores are those of ranks in all groups.
        if known := {name: margin for name, margin in self.margins.items() if margin.kind == "scores"}:
            return np.asarray(with_scores(pd.DataFrame(self.rows, columns=list(self.names)), known), dtype=float)
        values = _scored(Rows(self.names, self.rows, (False,) * len(self.names)), scored).values
        return values if self.has_unit else standardised(values)[0]

    @property
    def has_unit(self) -> bool:
        """Whether the variables have the units of the rows; scores of ranks may have none."""
        return self.mean is None or not (set(self.kinds) == {"scores"} and not self.mean.any())

    @property
    def is_part(self) -> bool:
        """Whether the moments are of more variables than these."""
        return self._rows is not None and len(self._columns) < len(self._rows.names)

    @property
    def n_rows(self) -> int | None:
        """How many rows the moments were made from; None where a matrix was given."""
        if self._counted is not None:
            return self._counted[0]
        return None if self._rows is None else len(self._rows.values)

    @property
    def share_missing(self) -> float | None:
        """Which part of the values of these rows is missing; None where a matrix was given."""
        if self._counted is not None:
            return self._counted[1]
        return None if self.rows is None else float(np.isnan(self.rows).mean())

    @cached_property
    def suspects(self) -> tuple[Suspect, ...]:
        """Variables that are probably no indicators of a latent: identifiers, weights, characteristics of persons."""
        named = {*self.covariates, *self.outcomes}
        index = [i for i, name in enumerate(self.names) if name not in named]
        if self._counted is not None:  # they were looked for while the rows were read
            return ()
        values = None if self.rows is None else self.rows[:, index]
        return suspects([self.names[i] for i in index], values)

    @property
    def indicators(self) -> tuple[str, ...]:
        """The variables that are neither covariates nor outcomes."""
        return tuple(name for name in self.names if name not in {*self.covariates, *self.outcomes})

    @property
    def groups(self) -> tuple[str, ...]:
        """The group of each row, where the rows are of several groups of people; else empty."""
        return self._rows.groups if self._rows is not None else ()

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a data frame that :meth:`from_rows` takes as these were taken: ordinal variables as such, others
        not, however few values they have.
        """
        if self.rows is None:
            raise DataError(NO_ROWS)
        frame = pd.DataFrame(self.rows, columns=list(self.names))
        for name, kind in zip(self.names, self.kinds, strict=True):
            if kind == "ordinal":
                frame[name] = pd.Categorical(frame[name], ordered=True)
        frame.attrs["continuous"] = [name for name, kind in zip(self.names, self.kinds) if kind != "ordinal"]
        frame.attrs["labels"] = dict(self.labels)
        frame.attrs["reverse_keyed"] = list(self.reverse_keyed)
        return frame

    def take(self, chosen: Ints, missing: Missing = "ml", groups: Sequence[str] = ()) -> Sample:
        """Return the rows with these indices as a sample of the same types; an index may occur several times.

        Raises
        ------
        DataError
            Where there are no rows, or a variable never changes in those chosen.
        """
        return Sample.from_rows(
            self._own_frame.iloc[chosen].reset_index(drop=True),
            cor=self.cor,
            missing=missing,
            covariates=self.covariates,
            outcomes=self.outcomes,
            groups=groups,
        )

    @cached_property
    def _own_frame(self) -> pd.DataFrame:
        """Made once: replicates read it dozens of times."""
        return self.frame

    @property
    def cor(self) -> Cor:
        """The option that takes the variables as they were taken, whatever other rows of them look like."""
        kinds = {kind for name, kind in zip(self.names, self.kinds, strict=True) if name not in self.covariates}
        if kinds <= {"continuous"}:
            return "pearson"
        if kinds == {"scores"}:
            return "spearman-normal"
        return "polychoric" if kinds == {"ordinal"} else "auto"

    def by_group(self, missing: Missing = "ml") -> dict[str, Sample]:
        """A sample for each group of people, variables taken as in all rows together.

        Normal scores are those of the ranks in all rows: one scale for all groups, so that their loadings and means can
        be compared.

        Raises
        ------
        DataError
            When a group has too few rows, or a variable never changes in it, with the name of the group.
        """
        frame, labels = self.frame, np.asarray(self.groups, dtype=object)
        scores = {name: margin for name, margin in margins_of(self).items() if margin.kind == "scores"}
        scored = with_scores(frame, scores)
        cor: Cor = "auto" if "ordinal" in self.kinds else "pearson"
        found = {}
        for label in dict.fromkeys(self.groups):
            part = frame[labels == label]
            try:
                own = Sample.from_rows(
                    part, cor=self.cor, missing=missing, covariates=self.covariates, outcomes=self.outcomes
                )
                if scores:
                    used = Sample.from_rows(
                        scored[labels == label],
                        cor=cor,
                        missing=missing,
                        covariates=self.covariates,
                        outcomes=self.outcomes,
                    )
                    own = replace(own, cov=used.cov, mean=used.mean, n=used.n, margins={**margins_of(own), **scores})
                found[label] = own
            except DataError as error:
                raise DataError(f"In group {label!r} ({len(part)} rows): {error}") from None
        return found

    def condition_on_covariates(self) -> Sample:
        """Return the other variables with covariates partialled out; no rows."""
        if not self.covariates:
            return self
        others = [i for i, name in enumerate(self.names) if name not in self.covariates]
        given = [self.names.index(name) for name in self.covariates]
        cross = self.cov[np.ix_(given, others)]
        cov = self.cov[np.ix_(others, others)] - cross.T @ np.linalg.solve(self.cov[np.ix_(given, given)], cross)
        # That it was made of rows is told by the mean: its last digits depend on the order of columns.
        mean = None if self.mean is None else frozen(np.zeros(len(others)))
        return Sample(tuple(self.names[i] for i in others), frozen((cov + cov.T) / 2.0), self.n, mean)

    @cached_property
    def sd(self) -> Floats:
        """Standard deviations, divisor N."""
        return np.sqrt(np.diag(self.cov))

    @cached_property
    def corr(self) -> Floats:
        """The correlation matrix."""
        corr = self.cov / np.outer(self.sd, self.sd)
        np.fill_diagonal(corr, 1.0)
        return frozen(corr)

    @cached_property
    def log_det_corr(self) -> float:
        """Log determinant of the correlation matrix."""
        return float(2.0 * np.log(np.diag(self._cholesky)).sum())

    @cached_property
    def unexplained(self) -> Floats:
        """(n,) part of each variable's variance that no linear function of the others explains."""
        # dpotri: the inverse from the factor at hand; numpy would factorise again.
        inverse, _ = lapack.dpotri(self._cholesky, lower=True)
        return frozen(1.0 / np.diag(inverse))

    @cached_property
    def _cholesky(self) -> Floats:
        return np.asarray(np.linalg.cholesky(self.corr), dtype=float)

    @property
    def pairs(self) -> pd.DataFrame:
        """One line per pair of variables: the correlation, which kind it is, and from how many samples.

        >>> Sample.from_cov([[1.0, 0.5], [0.5, 1.0]], 101, ["a", "b"]).pairs
          first second   kind    r      n
        0     a      b  given  0.5  101.0
        """
        i, j = np.triu_indices(len(self.names), 1)
        return pd.DataFrame(
            {
                "first": [self.names[k] for k in i],
                "second": [self.names[k] for k in j],
                "kind": [_pair_kind(self.kinds[a], self.kinds[b]) if self.kinds else "given" for a, b in zip(i, j)],
                "r": self.corr[i, j],
                "n": np.full(len(i), self.n) if self.counts is None else self.counts[i, j].astype(float),
            }
        )

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
        square = np.ix_(index, index)
        return Sample(
            tuple(names),
            frozen(self.cov[square]),
            self.n,
            None if self.mean is None else frozen(self.mean[index]),
            tuple(self.kinds[i] for i in index) if self.kinds else (),
            None if self.counts is None else self.counts[square],
            self.remarks,
            self._rows,
            tuple(self._columns[i] for i in index) if self._columns else (),
            {name: self.labels[name] for name in names if name in self.labels},
            {name: self.margins[name] for name in names if name in self.margins},
            tuple(name for name in names if name in self.covariates),
            tuple(name for name in names if name in self.outcomes),
            self.by_pairs,
            self._counted,
            tuple(name for name in names if name in self.reverse_keyed),
        )


NO_ROWS = (
    "This sample has no rows: it was made from a matrix, or in one pass over a table too large to keep. Pass the rows."
)
_NOT_IN_MEMORY = (
    "There are too many of them to be read at once: take a part of the rows, or compute a Dask data frame first "
    "(X.compute())."
)
_NOT_KEPT = (
    "The {:,} rows were read once, in blocks, and not kept: replicates are drawn from their moments, and factor scores "
    "need the rows again."
)


def labels_of(data: Any, names: Sequence[str]) -> dict[str, str]:
    """The labels of a data frame (``attrs["labels"]``, from an SPSS or Stata file), for some of its variables."""
    known = getattr(data, "attrs", {}).get("labels") or {}
    return {name: str(known[name]) for name in names if name in known and str(known[name]) != name}


def reverse_keyed_of(data: Any, names: Sequence[str]) -> tuple[str, ...]:
    """The items that are scored in reverse, of a data frame that says so (``attrs["reverse_keyed"]``)."""
    known = set(getattr(data, "attrs", {}).get("reverse_keyed") or ())
    return tuple(name for name in names if name in known)


def as_sample(
    X: Any = None,
    *,
    cov: Any = None,
    n_samples: float | None = None,
    names: Sequence[str] | None = None,
    sd: Any = None,
    repair: bool = False,
    cor: Cor = "pearson",
    missing: Missing = "ml",
    covariates: Sequence[str] = (),
    outcomes: Sequence[str] = (),
    groups: Sequence[str] = (),
    check: Callable[[], None] | None = None,
) -> Sample:
    """Rows, or a matrix with its number of samples, as a Sample; anything else is refused with a reason.

    Parameters
    ----------
    X : DataFrame, array, Table or Sample
        Rows are samples; NaN is a missing value. Data frames may be those of pandas, polars, pyarrow or Dask, or a
        :class:`Table` that :func:`unmeasured.read` left on disk. A Sample is handed back as it is.
    cov, n_samples
        Instead of rows: a covariance (divisor N - 1) or correlation matrix, and N. ``math.inf``: a population.
    names
        Names of the variables, where the data carry none.
    sd
        With a correlation matrix: standard deviations, to have covariances.
    repair
        With a matrix: take the nearest positive definite one where this is not, and say how far it is. (Correlations
        estimated pair by pair from rows are always treated so.)
    cor : "pearson", "auto", "polychoric" or "spearman-normal"
        With rows, which correlations to take. "auto": a variable is ordinal if it has at most 7 different values, each
        with 10 rows or more on average, or if its type says so (ordered categories, truth values), and not if
        ``X.attrs["continuous"]`` names it; two ordinal
        variables get a polychoric correlation, an ordinal and a continuous one a polyserial, two continuous ones
        Pearson's; if the continuous ones are skewed beyond chance (p < .0001), all of them
        are replaced by Gaussian scores of their ranks. "polychoric": all are ordinal. "spearman-normal": Pearson's of
        Gaussian scores of the ranks.
        ``Sample.pairs`` says which was used for each pair.
    missing : "ml", "listwise" or "pairwise"
        What to do about missing values: maximum likelihood from all values seen, complete rows only, or each
        correlation from the rows that show both. With ordinal variables "ml" means "pairwise": each pair's likelihood
        is maximised.
    covariates, outcomes : sequence of str
        Variables that are no indicators. Covariates are taken as the numbers they are, whatever ``cor`` says, and rows
        without one of them are left out (``docs/covariates.md``).
    groups : sequence of str
        With rows, the group of people that each belongs to: a search then looks for one structure of all groups.
    check
        Raises :class:`~unmeasured.errors.Stopped` where the time is over; the moments of rows with missing values are
        then as far as they have come, and a remark says so.

    Raises
    ------
    DataError
        Naming the variables and the cause.

    Examples
    --------
    >>> as_sample([[1.0, 2.0], [2.0, 1.0], [4.0, 5.0]], names=["a", "b"]).mean
    array([2.33333333, 2.66666667])
    """
    if isinstance(X, Sample):
        return X
    if (X is None) == (cov is None):
        got = "both" if X is not None else "neither"
        raise DataError(f"Give either rows (X) or a matrix (cov=, n_samples=); got {got}.")
    if X is not None:
        if n_samples is not None:
            raise DataError("n_samples goes with cov=; with rows it is their number. Leave it out.")
        if sd is not None or repair:
            raise DataError("sd and repair go with cov=; rows have their own standard deviations. Leave them out.")
        return Sample.from_rows(
            X, names, cor=cor, missing=missing, covariates=covariates, outcomes=outcomes, groups=groups, check=check
        )
    if len(groups):
        raise DataError("groups says who belongs to which group, row by row; a matrix (cov=) has no rows.")
    if cor not in ("pearson", "auto") or missing != "ml":
        raise DataError("cor and missing say what to make of rows; a matrix (cov=) is taken as it is. Leave them out.")
    if n_samples is None:
        raise DataError("A matrix needs n_samples, the number of rows it was made from (math.inf: a population).")
    return Sample.from_cov(cov, n_samples, names, sd=sd, repair=repair, covariates=covariates, outcomes=outcomes)


def _moments(
    rows: Rows, cor: Cor, missing: Missing, given: Bools, check: Callable[[], None] | None
) -> tuple[Moments, tuple[Kind, ...]]:
    """The matrix asked for, and how each variable was taken; covariates, which are given, are left as they are."""
    n = len(rows.names)
    ordinal = np.ones(n, dtype=bool) if cor == "polychoric" else is_ordinal(rows) & (cor == "auto")
    ordinal &= ~given
    other: Kind = "continuous"
    continuous = ~ordinal & ~given
    if (cor == "auto" and are_skewed(rows.values, continuous)) or (cor == "spearman-normal" and given.any()):
        rows, other = _scored(rows, continuous), "scores"
    if ordinal.any():
        taken = ("ordinal" if o else "continuous" if g else other for o, g in zip(ordinal, given, strict=True))
        return ordinal_moments(rows, ordinal, given), tuple[Kind, ...](taken)
    if cor == "spearman-normal" and not given.any():
        rows = replace(rows, values=normal_scores(rows.values))
    if not rows.is_missing.any():
        moments = _complete_moments(rows)
    else:
        moments = saturated_moments(rows, check) if missing == "ml" else _pairwise_moments(rows)
    if cor == "spearman-normal" and not given.any():
        # Ranks have no unit: what is left is the correlation.
        sd = np.sqrt(np.diag(moments.cov))
        moments = Moments(np.zeros(n), moments.cov / np.outer(sd, sd), moments.counts, moments.n, moments.remarks)
        return moments, tuple[Kind, ...](["scores"] * n)
    return moments, tuple[Kind, ...]("continuous" if g else other for g in given)


def _tally_moments(tally: Tally, cor: Cor, missing: Missing) -> tuple[Moments, Kind]:
    """The matrix asked for, from one pass over the rows, and how all variables were taken.

    Raises
    ------
    RowsNeeded
        Where a pass is not enough: kinds that differ, ranks, maximum likelihood from incomplete rows.
    """
    names, n = tally.names, len(tally.names)
    few = _few_values(tally)
    if cor == "polychoric" or (cor == "auto" and few.all()):
        for j, name in enumerate(names):
            if tally.n_values(j) > MOST_VALUES:
                refuse_values(name, f"more than {MOST_VALUES}")
        return table_moments(tally), "ordinal"
    if cor == "auto" and few.any():
        raise RowsNeeded(
            f"Items of a few values ({listing([x for x, o in zip(names, few) if o], 3)}) beside continuous variables "
            f"({listing([x for x, o in zip(names, few) if not o], 3)}) need all rows at once (polyserial "
            "correlations); cor='pearson' takes all as continuous, cor='polychoric' all as ordinal."
        )
    sums = tally.sums
    if cor == "auto" and beyond_chance(sums.skewness, np.diag(sums.counts), sums.corr):
        raise RowsNeeded(
            "The variables are skewed, and Gaussian scores of their ranks need all rows at once; cor='pearson' takes "
            "the values as they are."
        )
    if not tally.missing.any():
        cov = rescaled(sums.corr, sums.sd)
        return Moments(sums.mean, cov, np.full((n, n), tally.n_rows), float(tally.n_rows)), "continuous"
    if missing == "ml":
        raise RowsNeeded(
            "Maximum likelihood from rows with missing values (missing='ml') needs all rows at once; use "
            "missing='pairwise' or 'listwise'."
        )
    counts = sums.counts
    check_pairs(counts, names)
    corr, changed = repaired(sums.corr, names, "pairwise correlations")
    told = shares_in_words(tally.share_missing, tally.n_incomplete, tally.n_rows, names)
    done = _pairwise_remark(told, worth(counts), tally.n_rows)
    return Moments(sums.mean, rescaled(corr, sums.sd), counts, worth(counts), (done, *changed)), "continuous"


def _few_values(tally: Tally) -> Bools:
    """(n,) the rule of ``cor="auto"``, as :func:`~unmeasured.data.moments.ordinal.is_ordinal` has it for rows."""
    n_values = np.array([tally.n_values(j) for j in range(len(tally.names))])
    enough = tally.n_rows - tally.missing >= ROWS_PER_CATEGORY * n_values
    return np.asarray(np.array(tally.ordered) | ((n_values <= MOST_CATEGORIES) & enough))


def _refuse_same(tally: Tally) -> None:
    """Refuse columns that are identical, as their two-way table shows."""
    if not tally.has_tables:
        return  # perfectly correlated, which the covariance shows
    tables, values = tally.tables()
    K = values.shape[1]
    counts = tables.sum(axis=(1, 3))
    agreeing = tables[:, np.arange(K), :, np.arange(K)].sum(axis=0)
    own = np.diag(counts)
    for i, j in zip(*np.nonzero(np.triu((agreeing == own[:, None]) & (agreeing == own[None, :]), 1)), strict=True):
        if np.array_equal(values[i], values[j], equal_nan=True):
            refuse_identical(tally.names[int(i)], tally.names[int(j)])


def _numbering(tally: Tally, named: Sequence[str]) -> tuple[str, ...]:
    """A sentence on columns that number the rows: whole numbers without a gap, and no two alike in those looked at."""
    peek = tally.peek
    without_gap = tally.high - tally.low == tally.n_rows - tally.missing - 1
    found = [
        Suspect(name, "identifier", "numbers the rows")
        for j, name in enumerate(tally.names)
        if without_gap[j] and name not in named and tally.n_values(j) > MOST_VALUES
        and len(np.unique(peek[:, j])) == len(peek) and bool((peek[:, j] == np.rint(peek[:, j])).all())
        and not numbers_rows(name, peek[:, j])
    ]  # fmt: skip
    return role_remarks(found)


def _ordinal_margins(names: Sequence[str], margins: Sequence[tuple[Floats, Ints] | None]) -> dict[str, Margin]:
    found = {}
    for name, margin in zip(names, margins, strict=True):
        if margin is not None:
            item = Item.counted(name, *margin)
            found[name] = Margin("ordinal", item.values, item.thresholds)
    return found


def _scored(rows: Rows, columns: Bools) -> Rows:
    """Some columns as Gaussian scores of their ranks, with the mean and spread they had."""
    values = rows.values.copy()
    _, centre, spread = standardised(values[:, columns])
    # Beyond this the variance is refused later on; here the sum must not overflow.
    centre, spread = np.clip(centre, -_LARGEST, _LARGEST), np.clip(spread, 0.0, _LARGEST)
    scores = normal_scores(values[:, columns])
    values[:, columns] = centre + spread * scores / np.nanstd(scores, axis=0)
    return replace(rows, values=values)


def _complete_moments(rows: Rows) -> Moments:
    z, centre, scale = standardised(rows.values)
    n = len(z)
    cov = rescaled(z.T @ z / n, scale)
    return Moments(centre, cov, np.full(cov.shape, n), float(n))


def _pairwise_moments(rows: Rows) -> Moments:
    holes, names = rows.is_missing, rows.names
    counts = pair_counts(holes)
    check_pairs(counts, names)
    z, centre, scale = standardised(rows.values)
    corr, changed = repaired(pairwise_correlations(z), names, "pairwise correlations")
    done = _pairwise_remark(in_words(holes, names), worth(counts), len(holes))
    return Moments(centre, rescaled(corr, scale), counts, worth(counts), (done, *changed))


def _pairwise_remark(told: str, n: float, n_rows: int) -> str:
    return (
        f"{told}: each correlation is from the rows in which both variables were observed (pairwise deletion). "
        f"The search uses a sample size of {n:.1f}, the mean over pairs, instead of {n_rows}."
    )


_SCORED = (
    "Continuous variables were replaced by normal scores of their ranks (van der Waerden), as suits skewed variables: "
    "fit and number of latents may differ from those of Pearson correlations of the same rows. cor='pearson' uses the "
    "values as they are."
)


def _kind_remarks(names: Sequence[str], kinds: tuple[Kind, ...], is_coarse: Bools) -> tuple[str, ...]:
    """Which correlations were taken, and for which variables others would suit better."""
    ordinal = [x for x, kind in zip(names, kinds) if kind == "ordinal"]
    if ordinal:
        among = ["polychoric correlations"] if len(ordinal) > 1 else []
        others = [f"polyserial {'' if among else 'correlations '}with the others"] if len(ordinal) < len(kinds) else []
        done = f"{_counted(ordinal)} taken as ordinal ({listing(ordinal)}): {', '.join(among + others)}."
        return (done, *([_SCORED] if "scores" in kinds else []))
    coarse = [x for x, few in zip(names, is_coarse) if few]
    remarks = []
    if "scores" in kinds:
        remarks.append(_SCORED)
    if coarse:
        remarks.append(
            f"{_counted(coarse)} with no more than {MOST_CATEGORIES} values ({listing(coarse)}) taken as continuous: "
            "such correlations come out too small. cor='auto' takes them as ordinal."
        )
    return tuple(remarks)


def _counted(names: Sequence[str]) -> str:
    return f"{len(names)} variable{'s' * (len(names) != 1)}"


def _pair_kind(a: Kind, b: Kind) -> str:
    if "ordinal" in (a, b):
        return "polychoric" if a == b else "polyserial"
    return "spearman-normal" if "scores" in (a, b) else "pearson"


def _check_option(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise DataError(f"{name} must be one of {listing(known)}; got {value!r}.")


def _check_size(rows: Rows) -> None:
    """A matrix handed in as rows is the commonest slip with too few of them: name it before counting."""
    values = rows.values
    if values.shape[0] == values.shape[1] > 1 and np.array_equal(values, values.T):
        raise DataError(
            f"These {len(values)} rows are a symmetric matrix. If it is a covariance or correlation matrix, pass it as "
            "cov= with n_samples= (fit_cov of a search)."
        )
    sample_size(len(values), len(rows.names))
