"""Before the search: can these data carry a latent model at all?

Everything here is closed form, so a check costs next to nothing. Against *independence* stands the likelihood-ratio
test that no variable goes with another. Against the *saturated* model stands the rank likelihood: if a few variables
have k common causes, the covariances of k + 1 of them with all others have rank k. Where BIC prefers that constraint
to none, a latent explains these variables more cheaply than the correlations themselves do; where it does not, as
with many samples and real variables, the constraint may still be nearly true. Where no set of variables comes near,
a latent model has nothing to offer that a table of correlations has not. (The converse is weaker: a variable that
itself stands between two others leaves the same trace as a latent.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from unmeasured import apa
from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.data.moments.missing import Missing, standardised
from unmeasured.data.moments.normality import Mardia, mardia
from unmeasured.data.sample import Cor, Sample, as_sample
from unmeasured.data.suspect_columns import question, role_remarks
from unmeasured.data.tables import Table
from unmeasured.errors import DataError, listing
from unmeasured.models.indices import p_value
from unmeasured.models.rank import rank_codimension, rank_shortfalls
from unmeasured.remarks import Remark, Severity, by_consequence

# Rules of thumb of the field; each is named in the sentence that uses it.
_FEW_SAMPLES, _FEW_PER_VARIABLE = 200, 5
_COLLINEAR = 0.9  # squared multiple correlation
_LEAST_KMO = 0.5  # Kaiser: below, "unacceptable"
_SKEWED, _PEAKED = 2.0, 7.0  # West, Finch and Curran (1995)
_HEAVY = 1.15  # Mardia's kurtosis relative to a Gaussian's
# A population has no chance in it: what exceeds this is not rounding.
_ROUNDING = 1e-9
# Browne and Cudeck (1993): an RMSEA up to here is a close fit.
_CLOSE = 0.05
# Triples are looked at up to this many (66 variables); pairs always are.
_MOST_TRIPLES = 50_000


@dataclass(frozen=True)
class Finding:
    """One question about the data: its topic, whether the answer is good, and the answer in a sentence."""

    topic: str
    ok: bool
    text: str


def check(
    X: Any = None,
    *,
    cov: Any = None,
    n_samples: float | None = None,
    names: Sequence[str] | None = None,
    sd: Any = None,
    repair: bool = False,
    cor: Cor = "auto",
    missing: Missing = "ml",
    covariates: Sequence[str] = (),
    outcomes: Sequence[str] = (),
) -> Check:
    """Check data before a search: samples, indicators, normality, collinearity, whether a latent model is warranted.

    Parameters are those of :func:`unmeasured.as_sample`, but for ``cor``, which is "auto": items of a few values are
    taken as ordinal. Covariates and outcomes are no indicators, and only these are looked at.

    Every fault of a data frame is reported, not the first alone: columns that cannot be analysed are listed in
    ``column_errors`` and left out, and the check goes on with the others.

    Raises
    ------
    DataError
        Where nothing is left to look at; its text has every fault found until then, one to a line.

    Examples
    --------
    >>> import unmeasured as um
    >>> data = um.datasets.load("holzinger_swineford")
    >>> report = um.check(cov=data.frame(), n_samples=data.n_samples)
    >>> report.ok, round(report.kmo, 2), report.is_warranted
    (True, 0.75, True)
    >>> print(report)
    9 variables, 301 samples: the data are suitable for a search.
      ok    samples       301 samples, 33 per variable. Correlations smaller than 0.14 cannot be
                          distinguished from zero.
      ok    indicators    9 variables can measure up to 4 latents (each needs two of its own, and four
                          variables are the least that can test one).
      ok    dependence    The variables depend on one another: chi-square 918.9 on 36 df against
                          independence, p < .001.
      ok    latents       A latent model is warranted: for 9 of 9 variables BIC prefers causes shared
                          with others to the saturated model. Kaiser-Meyer-Olkin measure 0.75.
      ok    collinearity  No variable is nearly a sum of others (largest squared multiple correlation
                          0.63).
    """
    column_errors: list[str] = []
    while True:
        try:
            sample = as_sample(
                X, cov=cov, n_samples=n_samples, names=names, sd=sd, repair=repair, cor=cor, missing=missing,
                covariates=covariates, outcomes=outcomes,
            )  # fmt: skip
            if not set(sample.names) - set(sample.covariates) - set(sample.outcomes):
                raise DataError(
                    "All variables are covariates or outcomes, so none is left to look at. A latent needs at least two "
                    "indicators: name fewer of them."
                )
            return Check.of(sample, column_errors=tuple(column_errors))
        except DataError as error:
            column_errors.append(str(error))
            rest = _without(X if cov is None else cov, error.columns, is_matrix=cov is not None)
            if rest is None or names is not None or sd is not None:
                if len(column_errors) == 1:
                    raise
                raise DataError("\n".join(column_errors)) from None
            X, cov = (rest, None) if cov is None else (None, rest)
            covariates, outcomes = ([x for x in role if x not in error.columns] for role in (covariates, outcomes))


def _without(table: Any, columns: Sequence[str], *, is_matrix: bool) -> pd.DataFrame | Table | None:
    """The data without some of their columns; None where that leaves too little, or they cannot be told apart."""
    if not isinstance(table, pd.DataFrame | Table) or not columns:
        return None
    known = [str(name) for name in table.columns]
    kept = [k for k, name in enumerate(known) if name not in set(columns)]
    if len(kept) < 2 or len(kept) == len(known):
        return None
    if isinstance(table, Table):
        return table.select([known[k] for k in kept])
    return table.iloc[kept, kept] if is_matrix else table.iloc[:, kept]


@dataclass(frozen=True, eq=False, repr=False)
class Check:
    """The result of a check of data. ``str`` gives the text, the attributes contain the numbers.

    Attributes
    ----------
    sample : Sample
        The data as a search would use them.
    stored_findings : tuple of Finding
        Answers given earlier, for a sample whose rows are not at hand any more; empty: they are found now.
    column_errors : tuple of str
        Why columns were left out that a search would refuse.
    """

    sample: Sample
    stored_findings: tuple[Finding, ...] = ()
    column_errors: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, sample: Sample, stored_findings: tuple[Finding, ...] = (), column_errors: tuple[str, ...] = ()
    ) -> Check:
        """Look at the indicators of a sample: covariates and outcomes are left out."""
        return cls(sample.select(sample.indicators), stored_findings, column_errors)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        against = [finding.topic for finding in self.findings if not finding.ok]
        return f"<Check: {len(self.sample.names)} variables, n = {self.sample.n:g}; against a search: {against}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"

    # Samples and indicators -------------------------------------------------------------------------------

    @property
    def ok(self) -> bool:
        """Whether the data are suitable for a search: no fault, no finding and no problem with the data."""
        return not self.column_errors and not self._problems and all(finding.ok for finding in self.findings)

    @property
    def _remarks(self) -> tuple[Remark, ...]:
        """Remarks on the data, the most serious first, but for those that a finding makes already."""
        said = set(role_remarks(self.sample.suspects))
        return by_consequence(remark for remark in self.sample.remarks if remark not in said)

    @property
    def _problems(self) -> tuple[Remark, ...]:
        """Those that speak of something wrong with the data."""
        return tuple(remark for remark in self._remarks if remark.severity <= Severity.DATA)

    @property
    def least_correlation(self) -> float:
        """The smallest correlation that BIC distinguishes from zero: ``sqrt(1 - N^(-1/N))``."""
        n = self.sample.n
        return 0.0 if math.isinf(n) else math.sqrt(1.0 - n ** (-1.0 / n))

    @property
    def most_latents(self) -> int:
        """The largest number of latents that the variables can measure: each latent needs two of its own."""
        n = len(self.sample.names)
        return n // 2 if n >= 4 else 0

    # Dependence -------------------------------------------------------------------------------------------

    @property
    def independence_chi2(self) -> float:
        """Likelihood-ratio statistic of independence against the saturated model."""
        lost = -self.sample.log_det_corr
        if math.isinf(self.sample.n):
            return math.inf if lost > _ROUNDING else 0.0
        return self.sample.n * lost

    @property
    def independence_df(self) -> int:
        """Its degrees of freedom, the number of pairs."""
        n = len(self.sample.names)
        return n * (n - 1) // 2

    @property
    def independence_pvalue(self) -> float:
        """Probability of a larger statistic if the variables are independent."""
        return p_value(self.independence_chi2, self.independence_df)

    @cached_property
    def _depends(self) -> Bools:
        """(n,) whether BIC ties a variable to the others."""
        n = len(self.sample.names)
        return self._is_refused(np.arange(n)[:, None], 0)

    @cached_property
    def alone(self) -> tuple[str, ...]:
        """Variables that BIC does not tie to any of the others."""
        return tuple(x for x, depends in zip(self.sample.names, self._depends) if not depends)

    # Latents ----------------------------------------------------------------------------------------------

    @cached_property
    def kmo(self) -> float:
        """Kaiser-Meyer-Olkin measure: shared correlations beside partial ones, over all pairs; 1 is best."""
        total, partial = self._squares
        return _ratio(total.sum(), partial.sum())

    @cached_property
    def msa(self) -> Floats:
        """(n,) the same for each variable (measure of sampling adequacy)."""
        total, partial = self._squares
        return np.array([_ratio(a, b) for a, b in zip(total.sum(axis=0), partial.sum(axis=0))])

    @cached_property
    def _squares(self) -> tuple[Floats, Floats]:
        """Squared correlations and squared partial correlations, zero on the diagonal."""
        P = np.linalg.inv(self.sample.corr)
        scale = np.sqrt(np.diag(P))
        off = 1.0 - np.eye(len(P))
        return self.sample.corr**2 * off, (P / np.outer(scale, scale)) ** 2 * off

    @property
    def explained(self) -> tuple[str, ...]:
        """Variables in a set that BIC gives to common causes: a pair to one latent, or three to two."""
        return self._in_sets(lambda sets, k: ~self._is_refused(sets, k))

    @property
    def nearly_explained(self) -> tuple[str, ...]:
        """Variables in a set whose common causes leave an error of approximation (RMSEA) of at most .05."""
        return self._in_sets(lambda sets, k: self._misfit(sets, k) <= _CLOSE)

    def _in_sets(self, passes: Callable[[Ints, int], Bools]) -> tuple[str, ...]:
        names = self.sample.names
        inside = np.zeros(len(names), dtype=bool)
        for k, sets in self._candidates.items():
            inside[sets[passes(sets, k)].ravel()] = True
        return tuple(x for x, yes in zip(names, inside) if yes)

    @cached_property
    def _candidates(self) -> dict[int, Ints]:
        """By number of causes k: the sets of k + 1 variables for which k - 1 causes are not enough."""
        n, candidates = len(self.sample.names), {}
        dependent = np.flatnonzero(self._depends).tolist()
        for k in (1, 2):
            too_many = k == 2 and math.comb(n, 3) > _MOST_TRIPLES
            if too_many or rank_codimension(n, k + 1, k) < 1 or len(dependent) <= k:
                continue
            sets = np.array(list(combinations(dependent, k + 1)), dtype=np.int64)
            candidates[k] = sets[self._is_refused(sets, k - 1)]
        return candidates

    def _is_refused(self, sets: Ints, k: int) -> Bools:
        """Whether BIC refuses that the sets (B, a) have rank k with all others."""
        lost = rank_shortfalls(self.sample.corr, sets, k)
        n = self.sample.n
        if math.isinf(n):
            return np.asarray(lost > _ROUNDING)
        codimension = rank_codimension(len(self.sample.names), sets.shape[1], k)
        return np.asarray(2.0 * n * lost > math.log(n) * codimension)

    def _misfit(self, sets: Ints, k: int) -> Floats:
        """Root mean square error of approximation of that rank, over its degrees of freedom."""
        codimension = rank_codimension(len(self.sample.names), sets.shape[1], k)
        lost = 2.0 * rank_shortfalls(self.sample.corr, sets, k) / codimension
        return np.sqrt(np.maximum(lost - 1.0 / self.sample.n, 0.0))

    @property
    def is_warranted(self) -> bool:
        """Whether a latent model is preferred both to independence and to the saturated model."""
        return self.kmo >= _LEAST_KMO and bool(self.explained or self.nearly_explained)

    # Gaussian ---------------------------------------------------------------------------------------------

    @cached_property
    def mardia(self) -> Mardia | None:
        """Multivariate skewness and kurtosis; None for a matrix, ordinal items, or too few complete rows that vary."""
        if "ordinal" in self.sample.kinds or (rows := self.sample.rows) is None:
            return None
        rows = rows[~np.isnan(rows).any(axis=1)]
        if len(rows) <= 2 * rows.shape[1] or (rows == rows[0]).all(axis=0).any():
            return None
        return mardia(rows)

    # Collinear --------------------------------------------------------------------------------------------

    @cached_property
    def r2(self) -> Floats:
        """(n,) squared multiple correlation of each variable with all others."""
        return 1.0 - self.sample.unexplained

    @property
    def collinear(self) -> tuple[str, ...]:
        """Variables that the others explain to nine tenths or more."""
        return tuple(x for x, r2 in zip(self.sample.names, self.r2) if r2 >= _COLLINEAR)

    # In words ---------------------------------------------------------------------------------------------

    @cached_property
    def table(self) -> pd.DataFrame:
        """One line per variable: kind, share missing, values, mean, sd, skewness, excess kurtosis, r2, msa."""
        sample, rows = self.sample, self.sample.rows
        table = pd.DataFrame(index=list(sample.names))
        if rows is not None:
            table["kind"] = list(sample.kinds)
            table["missing"] = np.isnan(rows).mean(axis=0)
            table["values"] = [len(np.unique(column[~np.isnan(column)])) for column in rows.T]
            z, table["mean"], table["sd"] = standardised(rows)
            table["skewness"], table["kurtosis"] = np.nanmean(z**3, axis=0), np.nanmean(z**4, axis=0) - 3.0
        table["r2"], table["msa"] = self.r2, self.msa
        return table

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The answers, one per question."""
        if self.stored_findings:
            return self.stored_findings
        found = (
            self._samples(),
            self._indicators(),
            self._dependence(),
            self._latents(),
            self._gaussian(),
            self._collinearity(),
            self._roles(),
        )
        return tuple(finding for finding in found if finding is not None)

    def summary(self) -> str:
        """All of it as text: one sentence per question, then what was done to the data."""
        n, sample = len(self.sample.names), self.sample
        is_ok = not self._problems and all(finding.ok for finding in self.findings)
        verdict = "the data are suitable for a search" if is_ok else "see the lines marked with !"
        size = "a population" if math.isinf(sample.n) else f"{sample.n:g} samples"
        size = f"{sample.n_rows} rows" if sample.has_rows else size
        lines = []
        for error in self.column_errors:
            lines += _wrapped(f"  {'!!':<4}  {'fault':<12}  ", error)
        if lines:
            lines = [
                "A search would refuse these data for the following reasons:",
                *lines,
                "",
                "Results without these columns (a search does not leave them out automatically):",
            ]
        lines.append(f"{n} variables, {size}: {verdict}.")
        for finding in self.findings:
            lines += _wrapped(f"  {'ok' if finding.ok else '!':<4}  {finding.topic:<12}  ", finding.text)
        for remark in self._remarks:
            mark = "!" if remark in self._problems else "note"
            lines += _wrapped(f"  {mark:<4}  {'data':<12}  ", remark)
        return "\n".join(lines)

    def _samples(self) -> Finding:
        n, p = self.sample.n, len(self.sample.names)
        if math.isinf(n):
            return Finding("samples", True, "A population: there is no sampling error.")
        enough = n >= _FEW_SAMPLES and n >= _FEW_PER_VARIABLE * p
        advice = (
            ""
            if enough
            else f" That is few (rule of thumb: {_FEW_SAMPLES}, and {_FEW_PER_VARIABLE} per variable): weak loadings "
            "and paths will be missed."
        )
        return Finding(
            "samples",
            enough,
            f"{n:.0f} samples, {n / p:.0f} per variable. Correlations smaller than {self.least_correlation:.2f} cannot "
            f"be distinguished from zero.{advice}",
        )

    def _indicators(self) -> Finding:
        p = len(self.sample.names)
        if p < 4:
            return Finding(
                "indicators",
                False,
                f"{p} variable{'s are' if p > 1 else ' is'} too few: a latent with three indicators or fewer fits any "
                "data. Four are the least that can test one.",
            )
        most = self.most_latents
        return Finding(
            "indicators",
            True,
            f"{p} variables can measure up to {most} latents (each needs two of its own, and four variables are the "
            "least that can test one).",
        )

    def _dependence(self) -> Finding:
        p = self.independence_pvalue
        depends = bool(self._depends.any())
        test = "" if math.isinf(self.sample.n) else _test(self.independence_chi2, self.independence_df, p)
        if not depends:
            return Finding(
                "dependence",
                False,
                f"No variable depends on the others beyond chance{test}: there is nothing to explain.",
            )
        alone = f" Independent of all others: {listing(self.alone)}." if self.alone else ""
        return Finding("dependence", True, f"The variables depend on one another{test}.{alone}")

    def _latents(self) -> Finding | None:
        p = len(self.sample.names)
        if p < 4 or not self._depends.any():
            return None
        kmo = f"Kaiser-Meyer-Olkin measure {self.kmo:.2f}"
        exact, near = self.explained, self.nearly_explained
        if exact:
            shared = f"for {len(exact)} of {p} variables BIC prefers causes shared with others to the saturated model"
        elif near:
            shared = (
                "no set of variables has common causes and nothing else (BIC prefers the saturated model), but "
                f"{len(near)} of {p} variables come close (RMSEA up to {_CLOSE}): expect variables that load on "
                "several latents"
            )
        else:
            return Finding(
                "latents",
                False,
                "No pair or triple of variables behaves, even nearly, like indicators of common causes: BIC prefers "
                f"the saturated model. {kmo}. The variables may affect one another directly, or each may depend on "
                "all others.",
            )
        if self.is_warranted:
            return Finding("latents", True, f"A latent model is warranted: {shared}. {kmo}.")
        return Finding(
            "latents",
            False,
            f"Some variables look like indicators ({shared}), but the {kmo} is below {_LEAST_KMO}: correlations run "
            "between single pairs rather than through common causes.",
        )

    def _gaussian(self) -> Finding | None:
        m = self.mardia
        if m is None:
            return None
        table = self.table
        odd = table.index[(table["skewness"].abs() > _SKEWED) | (table["kurtosis"].abs() > _PEAKED)]
        numbers = (
            f"Mardia's kurtosis is {m.relative_kurtosis:.2f} times a Gaussian's (p "
            f"{apa.p_value(m.kurtosis_pvalue, '= ')}), skewness "
            f"{m.skewness:.1f} (p {apa.p_value(m.skewness_pvalue, '= ')})"
        )
        if not len(odd) and m.relative_kurtosis < _HEAVY:
            return Finding("Gaussian", True, f"Near enough: {numbers}.")
        which = f" Far from Gaussian themselves: {listing(map(str, odd))}." if len(odd) else ""
        if "scores" in self.sample.kinds:
            return Finding(
                "Gaussian",
                True,
                f"Not as they are: {numbers}.{which} Gaussian scores of their ranks are taken instead.",
            )
        return Finding(
            "Gaussian",
            False,
            f"Not Gaussian: {numbers}.{which} Chi-square and BIC then find more structure than there is; compare with "
            "cor='spearman-normal'.",
        )

    def _collinearity(self) -> Finding:
        if not self.collinear:
            return Finding(
                "collinearity",
                True,
                f"No variable is nearly a sum of others (largest squared multiple correlation {self.r2.max():.2f}).",
            )
        corr = np.abs(self.sample.corr - np.eye(len(self.r2)))
        parts = []
        for i in np.argsort(-self.r2)[:8]:
            if self.r2[i] >= _COLLINEAR:
                j = int(corr[i].argmax())
                parts.append(f"{self.sample.names[i]!r} ({self.r2[i]:.3f}, most with {self.sample.names[j]!r})")
        return Finding(
            "collinearity",
            False,
            f"Nearly a sum of other variables (squared multiple correlation): {', '.join(parts)}. Leave one of them "
            "out, unless both are needed.",
        )

    def _roles(self) -> Finding | None:
        asked = question(self.sample.suspects)
        return Finding("roles", False, asked) if asked else None


def _ratio(total: float, partial: float) -> float:
    """Share of squared correlations in squared correlations and partial ones; a half where there are none."""
    return float(total / (total + partial)) if total + partial > 0 else 0.5


def _test(chi2: float, df: int, p: float) -> str:
    return f": chi-square {chi2:.1f} on {df} df against independence, p {apa.p_value(p, '= ')}" if df else ""


def _wrapped(head: str, text: str, width: int = 100) -> list[str]:
    """Lines of at most that width, the text in a column of its own behind the head."""
    lines, indent = [head], " " * len(head)
    for word in text.split():
        if len(lines[-1]) + len(word) >= width and lines[-1] != head and lines[-1] != indent:
            lines.append(indent)
        lines[-1] += word if lines[-1] in (head, indent) else f" {word}"
    return lines
