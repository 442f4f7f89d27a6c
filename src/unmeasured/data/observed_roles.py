"""Variables that are no indicators: covariates, which are given, and outcomes.

A model is conditioned on its covariates, so nothing is assumed of their distribution: they may be binary, skewed or
chosen by design. Three things follow for the moments of rows.

- They are taken as the numbers they are: no ranks, no polychoric correlations.
- A row without one of them says nothing of what goes with it, and is left out (as in lavaan with ``fixed.x``). Other
  missing values are treated as ever; with complete covariates, maximum likelihood needs no distribution of them.
- The Gaussian variable y behind an ordinal item has a regression on all covariates x, ``y = x b + e`` with e of
variance
  1, which is an ordered probit regression of the item; with S the covariance of the covariates their correlations with
  y are ``S b / sqrt(1 + b' S b)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from unmeasured.arrays import Floats, Ints
from unmeasured.data.rows import Rows
from unmeasured.errors import DataError, listing, nearest
from unmeasured.remarks import data_problem

# Beyond this share of rows that lack a covariate the loss is a problem, not a note.
_MANY = 0.2
# Part of a covariate's variance that the others leave: below this they determine it.
_DETERMINED = 1e-8
# Fisher scoring of a probit regression: steps, and where it has converged.
_STEPS, _CONVERGED = 100, 1e-9
# A linear predictor beyond this puts a category out of reach: the regression separates the categories.
_FAR = 12.0


@dataclass(frozen=True)
class Roles:
    """The names of covariates and outcomes, checked against the variables there are."""

    covariates: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()

    @classmethod
    def of(cls, covariates: Sequence[str], outcomes: Sequence[str], names: Sequence[str]) -> Roles:
        """Check both lists.

        >>> Roles.of(["age"], ["sick_days"], ["q1", "q2", "age", "sick_days"]).names
        ('age', 'sick_days')
        """
        roles = cls(checked_names("covariates", covariates), checked_names("outcomes", outcomes))
        both = [name for name in roles.covariates if name in roles.outcomes]
        if both:
            raise DataError(
                f"{listing(both)} is named as a covariate and as an outcome. Covariates are caused by nothing and "
                "outcomes cause only outcomes: keep one of the two."
            )
        for what, named in (("covariate", roles.covariates), ("outcome", roles.outcomes)):
            for name in named:
                if name not in names:
                    raise DataError(
                        f"The {what} {name!r} is not in the data{nearest(name, list(names)) or '.'} The data have "
                        f"{listing(list(names))}."
                    )
        return roles

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.covariates, *self.outcomes)

    def __bool__(self) -> bool:
        return bool(self.names)


def checked_names(what: str, names: object) -> tuple[str, ...]:
    """A list of names without repeats; a lone string, a sequence of letters, is refused."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(x, str) for x in names):
        raise DataError(f"{what} is a list of names of variables, such as ['age']; got {names!r}.")
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise DataError(f"{what} names {listing(twice)} twice. Name each variable once.")
    return tuple(names)


def with_covariates(rows: Rows, covariates: Sequence[str]) -> tuple[Rows, tuple[str, ...]]:
    """The rows in which no covariate is missing, and what was left out in words.

    Raises
    ------
    DataError
        When too few rows are left, or a covariate never changes or follows from the others.
    """
    if not covariates:
        return rows, ()
    index = [rows.names.index(name) for name in covariates]
    missing = np.isnan(rows.values[:, index])
    lost = np.asarray(missing.any(axis=1))
    remarks: tuple[str, ...] = ()
    if lost.any():
        worst = covariates[int(missing.sum(axis=0).argmax())]
        left = int((~lost).sum())
        how = (
            f"{int(lost.sum())} of {len(lost)} rows lack a covariate and were left out (most lack {worst!r}); {left} "
            "remain. Other missing values are treated as the option says."
        )
        if left <= len(rows.names):
            raise DataError(
                f"Only {left} of {len(lost)} rows have all covariates, too few for {len(rows.names)} variables (most "
                f"lack {worst!r}). Leave that covariate out."
            )
        remarks = (data_problem(how) if lost.mean() > _MANY else how,)
        rows = rows.keep(~lost)
    _refuse_useless(rows.values[:, index], covariates)
    return rows, remarks


def _refuse_useless(values: Floats, covariates: Sequence[str]) -> None:
    constant = [name for name, column in zip(covariates, values.T, strict=True) if np.ptp(column) == 0.0]
    if constant:
        raise DataError(
            f"The covariate {listing(constant)} never changes in the rows that are used, so it explains nothing. "
            "Leave it out of covariates and of the data."
        )
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    refuse_determined(z.T @ z / len(z), covariates)


def refuse_determined(corr: Floats, covariates: Sequence[str]) -> None:
    """Refuse covariates that follow from one another: their effects cannot be told apart."""
    value, vector = np.linalg.eigh(corr)
    if len(value) and value[0] < _DETERMINED:
        involved = [name for name, weight in zip(covariates, vector[:, 0], strict=True) if abs(weight) > 1e-3]
        raise DataError(
            f"The covariates {listing(involved)} determine one another (such as all dummies of one variable, or a "
            "total and its parts), so their effects cannot be told apart. Leave one of them out."
        )


def probit_correlations(codes: Ints, X: Floats, corr: Floats) -> Floats:
    """(q,) correlations of the Gaussian variable behind an ordinal item with covariates.

    Parameters
    ----------
    codes : (N,)
        Categories 0, 1, ..., -1 where missing.
    X : (N, q)
        Covariates of mean 0 and variance 1, complete.
    corr : (q, q)
        Their correlations.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.choice([-1.0, 1.0], (20_000, 1))
    >>> y = 0.5 * x[:, 0] + rng.normal(size=len(x)) > 0.7
    >>> probit_correlations(y.astype(int), x, np.ones((1, 1))).round(1)  # 0.5 / sqrt(1.25)
    array([0.4])
    """
    seen = codes >= 0
    slopes, _ = ordered_probit(codes[seen], X[seen])
    explained = corr @ slopes
    return np.asarray(explained / np.sqrt(1.0 + slopes @ explained))


def ordered_probit(codes: Ints, X: Floats) -> tuple[Floats, Floats]:
    """Slopes (q,) of an ordered probit regression, and how each row moves them (N, q).

    By Fisher scoring; the likelihood has one maximum.
    """
    K, q = int(codes.max()) + 1, X.shape[1]
    shares = np.bincount(codes, minlength=K).cumsum()[:-1] / len(codes)
    theta = np.concatenate([ndtri(shares), np.zeros(q)])
    for _ in range(_STEPS):
        eta = np.clip(X @ theta[K - 1 :], -_FAR, _FAR)
        a = theta[: K - 1] - eta[:, None]  # (N, K - 1)
        density = np.zeros((len(X), K + 1))
        density[:, 1:K] = np.exp(-0.5 * a**2) / np.sqrt(2.0 * np.pi)
        p = np.maximum(np.diff(np.column_stack([np.zeros(len(X)), ndtr(a), np.ones(len(X))]), axis=1), 1e-12)  # (N, K)
        # Derivatives of each category's probability: by its two thresholds, and by the linear predictor.
        D = np.zeros((len(X), K, K - 1))
        for k in range(K - 1):
            D[:, k, k], D[:, k + 1, k] = density[:, k + 1], -density[:, k + 1]
        slope = density[:, :-1] - density[:, 1:]  # (N, K) by eta
        W = 1.0 / p
        top = np.einsum("nka,nk,nkb->ab", D, W, D)
        cross = np.einsum("nka,nk,nk,nq->aq", D, W, slope, X)
        weight = (slope**2 * W).sum(axis=1)
        H = np.block([[top, cross], [cross.T, X.T @ (weight[:, None] * X)]])
        here = np.arange(len(X))
        ratio = 1.0 / p[here, codes]
        scores = np.concatenate([D[here, codes] * ratio[:, None], X * (slope[here, codes] * ratio)[:, None]], axis=1)
        H += 1e-10 * np.trace(H) / len(H) * np.eye(len(H))
        step = np.linalg.solve(H, scores.sum(axis=0))
        theta = theta + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < _CONVERGED:
            break
    return theta[K - 1 :], np.linalg.solve(H, scores.T).T[:, K - 1 :]
