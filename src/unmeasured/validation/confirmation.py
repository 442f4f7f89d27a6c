"""Confirmation: a graph found in some rows, estimated in others.

A search looks for a graph that fits, so fit indices flatter it, and standard errors and p-values of the edges it
chose are too small: it chose them because they looked large in these rows. In other rows none of that holds any more,
and the usual theory of estimates is right again::

    rows ──► split_rows ──┬──► one part ───► search ──► graph
                          └──► the other ──────────────► confirm(search, …) ──► estimates, standard errors, fit
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from unmeasured import apa
from unmeasured.constraints import SECONDS
from unmeasured.data.rows import other_frame
from unmeasured.data.sample import Sample, as_sample
from unmeasured.data.tables import Table
from unmeasured.errors import DataError, UnmeasuredError, listing, nearest
from unmeasured.estimators.base import Search
from unmeasured.models.fit import Fit, fit_many
from unmeasured.models.full import NOT_DONE, calls_for_it, with_full_information
from unmeasured.remarks import by_consequence, distrust
from unmeasured.results.interpretation import number
from unmeasured.results.result import Result
from unmeasured.search.clock import Clock

_INDICES = ("chi2", "df", "pvalue", "rmsea", "cfi", "tli", "srmr")
# A loss of RMSEA below this is what other rows of the same population do; twice that is a graph fitted to noise.
_SMALL, _LARGE = 0.015, 0.03


def split_rows(
    rows: pd.DataFrame, share: float = 0.5, *, by: str | None = None, rng: int | np.random.Generator = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split rows at random into a part to search and a part to confirm in, each in the order of the rows.

    Parameters
    ----------
    rows : DataFrame
    share
        Of the rows that the second part gets.
    by
        A column in whose groups the split is made, so that both parts have the same share of each. Without one, rows
        are grouped by how many values they lack.
    rng
        The same seed gives the same parts.

    Examples
    --------
    >>> import unmeasured as um
    >>> rows = um.simulate.sample(um.simulate.random_gnfm(rng=0), 101, rng=1)
    >>> [len(part) for part in um.split_rows(rows, 0.4, rng=1)]
    [61, 40]
    """
    if (frame := other_frame(rows)) is not None:
        rows = frame
    if not isinstance(rows, pd.DataFrame):
        raise DataError(
            f"split_rows takes a data frame, so that both parts keep their names; got {type(rows).__name__}."
        )
    if isinstance(share, bool) or not isinstance(share, Real) or not 0.0 < share < 1.0:
        raise UnmeasuredError(f"The share of rows to confirm in is between 0 and 1, such as 0.5; got {share!r}.")
    if by is not None and by not in rows.columns:
        known = [str(name) for name in rows.columns]
        raise DataError(f"There is no column {by!r} to split by{nearest(by, known) or '.'} There are {listing(known)}.")
    strata = rows.isna().sum(axis=1) if by is None else rows[by].astype(object).where(rows[by].notna(), "missing")
    try:
        rng = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise UnmeasuredError(
            f"rng is a seed, a whole number from 0, or a generator of numpy's; got {rng!r}."
        ) from None
    codes = pd.factorize(strata, sort=False)[0]
    # Shuffled within groups and the groups one after the other: every k-th place of that line goes to the second part.
    order = np.lexsort((rng.random(len(rows)), codes))
    place = (np.arange(len(rows)) + 1) * share
    second = np.zeros(len(rows), dtype=bool)
    second[order] = np.floor(place + 1e-9) > np.floor(place - share + 1e-9)
    if not 0 < second.sum() < len(rows):
        raise DataError(f"{len(rows)} rows cannot be split with a share of {share:g}: one part would be empty.")
    return rows[~second], rows[second]


@dataclass(frozen=True, eq=False)
class Confirmation:
    """A graph that was found in some rows, with estimates from other rows.

    Attributes
    ----------
    found : Result
        As the search found it.
    result : Result
        The same graph with estimates, standard errors and fit of the new rows: what to report.
    stopped : str
        Why the estimates are not final, where a time limit ended their fit; else empty.
    """

    found: Result
    result: Result
    stopped: str = ""

    @cached_property
    def table(self) -> pd.DataFrame:
        """Fit where the graph was found and in the new rows: ``chi2 df pvalue rmsea cfi tli srmr n``.

        Where statistics are corrected for the data (:attr:`Result.reported`), these.
        """
        fits = {"found": self.found.reported, "new rows": self.result.reported}
        rows = [_indices(fit) for fit in fits.values()]
        return pd.DataFrame(rows, index=pd.Index(fits, name="data"))

    @cached_property
    def edges(self) -> pd.DataFrame:
        """One row per loading and path: ``source target kind std_found std se pvalue same_sign`` in the new rows."""
        tables = []
        for result in (self.found, self.result):
            loadings = result.loadings.rename(columns={"latent": "source", "indicator": "target"})
            paths = [result.latent_paths.assign(kind="path", fixed=False)]
            if len(result.direct_effects):
                direct = result.direct_effects.rename(columns={"covariate": "source", "item": "target"})
                paths.append(direct.assign(kind="direct", fixed=False))
            tables.append(pd.concat([loadings.assign(kind="loading"), *paths], ignore_index=True))
        before, after = tables
        table = after[["source", "target", "kind"]].copy()
        table["std_found"] = before["std"].to_numpy()
        table["std"], table["se"], table["pvalue"] = (after[key].to_numpy() for key in ("std", "std_se", "pvalue"))
        table["same_sign"] = np.sign(table["std"]) == np.sign(table["std_found"])
        return table[~after["fixed"].to_numpy(dtype=bool)].reset_index(drop=True)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The loss in fit, and what of the graph the new rows do not bear out, in words."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        after = self.result.reported
        found, new = _indices(self.found.reported), _indices(after)
        loss = new["rmsea"] - found["rmsea"]
        # Where exact fit is not rejected, a loss is within what samples vary by.
        is_small = loss < _SMALL or new["pvalue"] >= 0.05
        how = "small" if is_small else "moderate" if loss < _LARGE else "large"
        words = {
            "small": "The graph fits new rows about as well as those it was found in.",
            "moderate": "Part of the fit was chance.",
            "large": "Much of the fit was chance: the graph is more complex than these data bear.",
        }
        loss_in_words = (
            f"RMSEA {found['rmsea']:.3f} where the graph was found (N = {number(found['n'], 0)}), "
            f"{new['rmsea']:.3f} in the new rows (N = {number(new['n'], 0)}); CFI {found['cfi']:.3f} and "
            f"{new['cfi']:.3f}: the loss is {how}. {words[how]}"
        )
        if self.stopped:
            yield distrust(self.stopped)
        yield distrust(loss_in_words) if how == "large" else loss_in_words
        if not (after.converged and after.admissible):
            yield distrust(f"In the new rows the fit is not a proper one: {after.status}.")
        turned = self.edges[~self.edges["same_sign"]]
        if len(turned):
            shown = listing(f"{a} → {b}" for a, b in zip(turned["source"], turned["target"]))
            yield f"With the opposite sign in the new rows: {shown}."
        weak = self.edges[self.edges["pvalue"] >= 0.05]
        if len(weak):
            shown = listing(
                f"{a} → {b} (p {apa.p_value(p, '= ')})"
                for a, b, p in zip(weak["source"], weak["target"], weak["pvalue"])
            )
            yield f"{len(weak)} of {len(self.edges)} edges do not differ from zero at 5% in the new rows: {shown}."
        else:
            yield f"All {len(self.edges)} loadings and paths differ from zero at 5% in the new rows."

    def __str__(self) -> str:
        return "\n".join(
            [
                self.table.round(3).to_string(formatters={"pvalue": apa.p_value}),
                "",
                *(f"- {sentence}" for sentence in self.sentences),
            ]
        )


def _indices(fit: Fit) -> dict[str, float]:
    """The indices to report, corrected ones where there are some."""
    values = {key: getattr(fit, key) for key in _INDICES} | {"n": fit.n_samples}
    if fit.robust is None:
        return values
    corrected = {"chi2": fit.chi2_scaled, "pvalue": fit.pvalue_scaled, "rmsea": fit.rmsea_robust}
    return values | corrected | {"cfi": fit.cfi_robust, "tli": fit.tli_robust}


def confirm(
    found: Search | Result,
    rows: Any = None,
    *,
    cov: Any = None,
    n_samples: float | None = None,
    time_limit: float | None = None,
) -> Confirmation:
    """Estimate a graph in new rows, in which it was not found, so that standard errors and p-values are correct.

    Parameters
    ----------
    found
        A fitted search, or its result.
    rows : DataFrame, array or Sample
        Rows the search has not seen (:func:`unmeasured.split_rows`); read as the search read its own.
    cov, n_samples
        Instead of rows, a matrix and its number of samples.
    time_limit
        Seconds after which the estimates are taken as far as they have come; ``stopped`` and the first sentence then
        say so. None: until the fit has converged.

    Raises
    ------
    DataError
        When the new rows lack variables of the graph, or are those it was found in.

    Examples
    --------
    >>> import unmeasured as um
    >>> rows = um.simulate.sample(um.simulate.random_gnfm(n_latents=3, n_observed=9, rng=0), 1000, rng=1)
    >>> first, second = um.split_rows(rows)
    >>> confirmed = um.confirm(um.LGES().fit(first), second)
    >>> confirmed.result.estimation_note
    'The graph was found in other data (N = 500). Estimates, standard errors, p-values and fit are from new data
    (N = 500), so that the search does not bias them.'
    """
    SECONDS.check("time_limit", time_limit)
    search = found if isinstance(found, Search) else None
    result = getattr(found, "result_", found)
    if not isinstance(result, Result):
        raise UnmeasuredError("confirm takes a search that was fitted, or its result. Call fit first.")
    clock = Clock(time_limit)
    sample = _sample(search, result, rows, cov, n_samples, clock.check_measuring)
    if np.array_equal(sample.cov, result.sem.sample.cov) and sample.n == result.sem.sample.n:
        raise DataError("These are the rows the graph was found in; confirmation needs others. Split them: split_rows.")
    (fit,) = fit_many([result.member], sample, check=clock.check_last_fit)
    fit = with_full_information(fit, clock.check_last_fit)
    stopped = f"{clock.stopped}: the estimates had not converged. Confirm with more time." if clock.stopped else ""
    note = (
        f"The graph was found in other data (N = {number(result.sem.n_samples, 0)}). Estimates, standard errors, "
        f"p-values and fit are from new data (N = {number(fit.n_samples, 0)}), so that the search does not bias them."
    )
    # Remarks of the search are of the rows it saw; what was done to the new ones stands in their place. That the search
    # was stopped remains true of the graph.
    ended = [distrust(why) for why in (stopped, result.stopped) if why]
    rough = [distrust(NOT_DONE)] if fit.full is None and calls_for_it(sample) else []
    remarks = by_consequence((*ended, *rough, *sample.remarks))
    fresh = replace(
        result,
        sem=fit,
        remarks=remarks,
        estimation_note=note,
        findings=(),
        runners=(),
        sign_indicators=result.leading_items,
        robust=None,
        acov=None,
    )
    return Confirmation(result, fresh, stopped)


def _sample(
    search: Search | None,
    result: Result,
    rows: Any,
    cov: Any,
    n_samples: float | None,
    check: Callable[[], None],
) -> Sample:
    names = result.sem.sample.names
    if isinstance(rows, Table):
        rows = rows.select(names)
    elif (frame := other_frame(rows)) is not None:
        rows = frame
    if isinstance(rows, pd.DataFrame):
        columns = [str(name) for name in rows.columns]
        missing = [name for name in names if name not in columns]
        if missing:
            raise DataError(f"The new rows do not have these variables of the graph: {listing(missing)}.")
        rows = rows.iloc[:, [columns.index(name) for name in names]]
    if rows is None or isinstance(rows, Sample):
        return as_sample(rows, cov=cov, n_samples=n_samples).select(names)
    variables, given = result.graph.variables, result.sem.sample
    if search is not None:
        how = {"cor": search.cor, "missing": search.missing}
    else:
        kinds = {kind for x, kind in zip(given.names, given.kinds) if x not in variables.covariates}
        how = {
            "cor": "spearman-normal" if kinds == {"scores"} else "auto" if kinds & {"ordinal", "scores"} else "pearson"
        }
    return as_sample(
        rows,
        **how,  # type: ignore[arg-type]
        covariates=variables.covariates,
        outcomes=variables.outcomes,
        check=check,
    ).select(names)
