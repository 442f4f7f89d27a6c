"""Factor scores: where each row stands on each latent.

*Regression* scores are the expectation of the latents given what a row shows, ``C_lo S_oo^-1 (x_o - m_o)`` with ``S``
the implied covariance of the observed variables and ``C`` their covariance with the latents: the guess with the least
squared error, shrunk towards the mean, more so where less is known. *Bartlett* scores are the best estimate of the
latents as if they were parameters, ``(L' T^-1 L)^-1 L' T^-1 (x - m)`` with ``L`` their effects on the observed
variables (through observed ones as well) and ``T`` what these do not explain: unbiased, but more variable. A missing
value is left out of ``o``. The mean of a latent is zero.

*Ordinal items* show an interval in which a Gaussian variable lies, not its value. The expectation of the latents given
all intervals of a row has no closed form; it is found by expectation propagation, which replaces each interval by the
Gaussian that has the same effect on mean and variance in the presence of the others, until nothing moves (Minka 2001).
In simulation it is closer to the truth than regression on category codes (``python -m benchmarks scores``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pandas as pd
from scipy.special import ndtr

from unmeasured.arrays import Bools, Floats
from unmeasured.data.moments.margins import FAR, Margin, margins_of
from unmeasured.data.rows import as_rows, other_frame
from unmeasured.errors import DataError, ModelError, UnmeasuredError, listing

if TYPE_CHECKING:
    from unmeasured.models.fit import Fit

Method = Literal["regression", "bartlett"]

# Elements of the largest array made at once.
_CHUNK = 2_000_000
# The same where one array is gone over again and again: what the processor keeps near.
_CACHED = 150_000
# A direction with less than this part of the largest information is not seen in a row.
_UNSEEN = 1e-10
# Expectation propagation stops when no mean moves by more than this, in standard deviations, or after so many sweeps.
_STILL, _SWEEPS = 1e-5, 60
# Rows drawn to tell the determinacy of scores from ordinal items.
_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class Scoring:
    """What scoring needs of a fit: moments of latents and observed variables, by name."""

    latents: tuple[str, ...]
    observed: tuple[str, ...]
    between: Floats  # (m, n) covariance of latents with observed variables
    implied: Floats  # (n, n)
    prior: Floats  # (m, m) covariance of latents
    loadings: Floats  # (n, m) effects of latents that pass no other latent
    residual: Floats  # (n, n) what these leave
    is_simple: bool  # whether given the latents the observed variables are independent

    @classmethod
    def of(cls, fit: Fit) -> Scoring:
        """Of a fit with at least one latent."""
        model, place = fit.model, {name: k for k, name in enumerate(fit.causal_order)}
        if not model.latents:
            raise ModelError("The model has no latent variables, so there is nothing to score.")
        latent = np.array([place[name] for name in model.latents])
        observed = fit.problem.pattern.observed
        full, F, Omega = fit.full_cov, fit.F, fit.Omega
        among = np.linalg.inv(np.eye(len(observed)) - F[np.ix_(observed, observed)])
        loadings = (F[np.ix_(latent, observed)] @ among).T
        residual = among.T @ Omega[np.ix_(observed, observed)] @ among
        apart = not (residual - np.diag(np.diag(residual))).any() and not F[observed].any()
        return cls(
            model.latents,
            fit.sample.names,
            full[np.ix_(latent, observed)],
            full[np.ix_(observed, observed)],
            full[np.ix_(latent, latent)],
            loadings,
            residual,
            apart and bool(loadings.any(axis=1).all()),
        )

    def weights(self, method: str, seen: Bools) -> tuple[Floats, Floats]:
        """Weights (B, n, m) and error variances (B, m) for patterns (B, n) of what is seen."""
        both = seen[:, :, None] & seen[:, None, :]
        eye = np.eye(seen.shape[1])
        if method == "regression":
            inverse = np.linalg.inv(np.where(both, self.implied, eye))
            W = inverse @ (self.between * seen[:, None, :]).transpose(0, 2, 1)
            explained = np.einsum("mn,bnm->bm", self.between, W * seen[:, :, None])
            return W * seen[:, :, None], np.maximum(np.diag(self.prior) - explained, 0.0)
        loadings = self.loadings * seen[:, :, None]
        weighted = np.linalg.inv(np.where(both, self.residual, eye)) @ loadings
        information = loadings.transpose(0, 2, 1) @ weighted
        value, vector = np.linalg.eigh(information)
        kept = value > _UNSEEN * np.maximum(value[:, -1:], 1e-300)
        inverse = (vector * np.where(kept, 1.0 / np.where(kept, value, 1.0), 0.0)[:, None, :]) @ vector.transpose(
            0, 2, 1
        )
        # A latent that the row says nothing of, or that cannot be told from another, has no score.
        clear = np.abs((vector**2 * kept[:, None, :]).sum(axis=2) - 1.0) < 1e-6
        W = np.where(clear[:, None, :], weighted @ inverse, math.nan)
        variance = np.diagonal(inverse, axis1=1, axis2=2)
        return W, np.where(clear, variance, math.nan)


def score_weights(fit: Fit, method: str = "regression") -> pd.DataFrame:
    """Weights (observed x latents) for deviations from the mean: ``scores = (rows - rows.mean()) @ weights``."""
    scoring = _checked(fit, method)
    W, _ = scoring.weights(method, np.ones((1, len(scoring.observed)), dtype=bool))
    return pd.DataFrame(W[0], index=list(scoring.observed), columns=list(scoring.latents))


def determinacy(fit: Fit, method: str = "regression") -> pd.DataFrame:
    """One row per latent: ``determinacy se minimal``; see :meth:`unmeasured.models.fit.Fit.determinacy`."""
    scoring = _checked(fit, method)
    variance = np.diag(scoring.prior)
    if "ordinal" in fit.sample.kinds:
        error = _simulated_error(fit, scoring)
    else:
        _, errors = scoring.weights(method, np.ones((1, len(scoring.observed)), dtype=bool))
        error = errors[0]
    # Of a regression score the error is part of the latent's variance; to a Bartlett score it is added.
    squared = 1.0 - error / variance if method == "regression" else variance / (variance + error)
    return pd.DataFrame(
        {"determinacy": np.sqrt(squared), "se": np.sqrt(error), "minimal": 2.0 * squared - 1.0},
        index=pd.Index(scoring.latents, name="latent"),
    )


def scores(
    fit: Fit, rows: Any, method: str = "regression", *, standard_errors: bool = False, mean: Any = None
) -> pd.DataFrame:
    """Scores of rows on every latent, aligned with the rows given."""
    scoring = _checked(fit, method)
    frame, values = _table(fit, rows)
    known = _margins(fit)
    ordinal = [margin is not None and margin.kind == "ordinal" for margin in known]
    if any(ordinal) and method != "regression":
        raise UnmeasuredError(
            "Bartlett scores are not defined for ordinal items: with all answers in the highest category the best "
            "estimate is infinite. Use method='regression'."
        )
    for j, margin in enumerate(known):
        if margin is not None and margin.kind == "scores":
            values[:, j] = margin.scored(values[:, j])
    centre = _centre(fit, frame, values, mean)
    if any(ordinal):
        value, error = _from_intervals(scoring, *_intervals(fit, values, centre, known))
    else:
        value, error = _linear(scoring, values - centre, method)
    nothing = np.isnan(values).all(axis=1)
    value[nothing], error[nothing] = math.nan, math.nan
    names = list(scoring.latents)
    table = pd.DataFrame(value, index=frame.index, columns=names)
    if standard_errors:
        table = pd.concat([table, pd.DataFrame(error, index=frame.index, columns=[f"{x}_se" for x in names])], axis=1)
    return table


def _checked(fit: Fit, method: str) -> Scoring:
    if method not in get_args(Method):
        raise UnmeasuredError(f"method must be one of {listing(get_args(Method))}; got {method!r}.")
    scoring = Scoring.of(fit)
    bare = [name for k, name in enumerate(scoring.latents) if not scoring.loadings[:, k].any()]
    if method == "bartlett" and bare:
        raise ModelError(
            f"Bartlett scores need indicators, and {listing(bare)} has none of its own. Use method='regression'."
        )
    return scoring


def _table(fit: Fit, rows: Any) -> tuple[pd.DataFrame, Floats]:
    """The rows as they came, and the values of the model's variables in its order."""
    if rows is None:
        raise DataError(
            "Scores are of rows; none were given. fit.score_weights() has the weights for rows that are elsewhere."
        )
    names = list(fit.sample.names)
    if (frame := other_frame(rows)) is not None:
        rows = frame
    if not isinstance(rows, pd.DataFrame):
        read = as_rows(rows)
        known = read.names if set(names) <= set(read.names) else tuple(names)
        if len(known) != read.values.shape[1]:
            raise DataError(
                f"The model has {len(names)} observed variables ({listing(names)}); got rows without names and "
                f"{read.values.shape[1]} columns. Give a data frame with their names."
            )
        rows = pd.DataFrame(read.values, columns=list(known))
    columns = [str(column) for column in rows.columns]
    missing = [name for name in names if name not in columns]
    if missing:
        raise DataError(
            f"The rows do not have these variables of the model: {listing(missing)}. They have {listing(columns)}."
        )
    chosen = rows.iloc[:, [columns.index(name) for name in names]]
    if not len(chosen):
        return rows, np.zeros((0, len(names)))
    return rows, as_rows(chosen, names).values.copy()


def _margins(fit: Fit) -> list[Margin | None]:
    sample = fit.sample
    known = margins_of(sample)
    lost = [x for x, kind in zip(sample.names, sample.kinds) if kind != "continuous" and x not in known]
    if lost:
        raise DataError(
            f"How values of {listing(lost)} were read is not known any more: the model is of ordinal items or of "
            "ranks, and its rows are not at hand. Fit it to rows again."
        )
    return [known.get(name) for name in sample.names]


def _centre(fit: Fit, frame: pd.DataFrame, values: Floats, mean: Any) -> Floats:
    names = fit.sample.names
    if mean is None and fit.sample.mean is not None:
        return fit.sample.mean
    if mean is None:
        raise DataError(
            "The model was fitted to a matrix, which has no means, so rows cannot be compared with it. Give mean=, "
            "such as rows.mean(), for rows in the units of that matrix (standardised ones if it holds correlations); "
            "or take fit.score_weights()."
        )
    if isinstance(mean, Mapping | pd.Series):
        missing = [name for name in names if name not in mean]
        if missing:
            raise DataError(f"mean lacks these variables of the model: {listing(missing)}.")
        mean = [mean[name] for name in names]
    centre = np.asarray(mean, dtype=float)
    if centre.shape != (len(names),) or not np.isfinite(centre).all():
        raise DataError(f"mean must be {len(names)} finite numbers, one for each observed variable of the model.")
    return centre


def _linear(scoring: Scoring, deviations: Floats, method: str) -> tuple[Floats, Floats]:
    """Scores and standard errors of rows, by pattern of what is missing."""
    n_rows, n = deviations.shape
    value, error = np.empty((n_rows, len(scoring.latents))), np.empty((n_rows, len(scoring.latents)))
    seen = ~np.isnan(deviations)
    filled = np.where(seen, deviations, 0.0)
    patterns, which = np.unique(np.packbits(seen, axis=1), axis=0, return_inverse=True)
    which = which.ravel()
    first = np.zeros(len(patterns), dtype=np.int64)
    first[which[::-1]] = np.arange(n_rows)[::-1]
    per_chunk = max(1, _CHUNK // (n * n))
    order = np.argsort(which, kind="stable")
    for start in range(0, len(patterns), per_chunk):
        W, variance = scoring.weights(method, seen[first[start : start + per_chunk]])
        at = order[np.searchsorted(which[order], start) : np.searchsorted(which[order], start + per_chunk)]
        for begin in range(0, len(at), per_chunk):
            part = at[begin : begin + per_chunk]
            value[part] = np.einsum("bn,bnm->bm", filled[part], W[which[part] - start])
            error[part] = np.sqrt(variance[which[part] - start])
    return value, error


# Ordinal items ----------------------------------------------------------------------------------------------


def _intervals(fit: Fit, values: Floats, centre: Floats, margins: list[Margin | None]) -> tuple[Floats, Floats]:
    """(N, n) between which ends each variable lies, as deviations; both the same for a value that was seen."""
    low, high = values - centre, values - centre
    for j, margin in enumerate(margins):
        if margin is not None and margin.kind == "ordinal":
            low[:, j], high[:, j] = margin.interval(values[:, j], fit.sample.names[j])
    return np.where(np.isnan(low), -FAR, low), np.where(np.isnan(high), FAR, high)


def _from_intervals(scoring: Scoring, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Mean and standard error of the latents given an interval for every observed variable."""
    m, n = scoring.between.shape
    if scoring.is_simple:
        prior, H, noise = scoring.prior, scoring.loadings, np.diag(scoring.residual)
    else:  # the observed variables depend on one another beyond the latents: they are part of what is inferred
        prior = np.block([[scoring.prior, scoring.between], [scoring.between.T, scoring.implied]])
        H, noise = np.hstack([np.zeros((n, m)), np.eye(n)]), np.full(n, 1e-9)
    value, error = np.empty((len(low), m)), np.empty((len(low), m))
    per_chunk = max(1, _CACHED // (len(prior) * len(prior)))
    for start in range(0, len(low), per_chunk):
        part = slice(start, start + per_chunk)
        mean, cov = _expectation_propagation(prior, H, noise, low[part], high[part])
        value[part] = mean[:, :m]
        error[part] = np.sqrt(np.diagonal(cov, axis1=1, axis2=2)[:, :m])
    return value, error


def _expectation_propagation(
    prior: Floats, H: Floats, noise: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Mean (N, k) and covariance (N, k, k) of a ~ N(0, prior) given ``low < H a + e < high``, e ~ N(0, noise).

    Each interval is replaced by a Gaussian site with a precision and a shift along its row of H.
    """
    n_rows, n = low.shape
    mean, cov = np.zeros((n_rows, len(prior))), np.repeat(prior[None], n_rows, axis=0)
    precision, shift = np.zeros((n_rows, n)), np.zeros((n_rows, n))
    spread, product = np.sqrt(np.diag(prior)), np.empty_like(cov)
    informative = (low > -FAR) | (high < FAR)
    for _ in range(_SWEEPS):
        before = mean.copy()
        for j in range(n):
            few = np.flatnonzero(H[j])  # an item loads on few latents
            along = cov[:, few[0]] * H[j, few[0]]  # (N, k)
            for other in few[1:]:
                along = along + cov[:, other] * H[j, other]
            v, m = along[:, few] @ H[j, few], mean[:, few] @ H[j, few]
            # The cavity: what all but this site say of H a.
            rest = 1.0 - precision[:, j] * v
            v0 = v / rest
            m0 = (m - v * shift[:, j]) / rest
            new_mean, new_variance = _truncated(m0, v0, noise[j], low[:, j], high[:, j])
            new_precision = np.where(informative[:, j], np.maximum(1.0 / new_variance - 1.0 / v0, 0.0), 0.0)
            new_shift = np.where(informative[:, j], new_mean / new_variance - m0 / v0, 0.0)
            # A change of precision along one direction changes the covariance by a matrix of rank one.
            change, push = new_precision - precision[:, j], new_shift - shift[:, j]
            scale = change / (1.0 + change * v)
            mean += along * (push - scale * (m + v * push))[:, None]
            np.multiply((scale[:, None] * along)[:, :, None], along[:, None, :], out=product)
            cov -= product
            precision[:, j], shift[:, j] = new_precision, new_shift
        if (np.abs(mean - before) / spread).max(initial=0.0) < _STILL:
            break
    return mean, cov


def _truncated(m: Floats, v: Floats, noise: float, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of s ~ N(m, v) given that s + e, e ~ N(0, noise), lies in an interval or is known."""
    total = v + noise
    sd = np.sqrt(total)
    a, b = np.clip((low - m) / sd, -FAR, FAR), np.clip((high - m) / sd, -FAR, FAR)
    # In the upper tail differences of probabilities vanish: mirror it into the lower one.
    mirrored = a > 0.0
    a, b = np.where(mirrored, -b, a), np.where(mirrored, -a, b)
    mass = np.maximum(ndtr(b) - ndtr(a), 1e-300)
    density_a, density_b = _density(a), _density(b)
    first = (density_a - density_b) / mass
    second = first**2 + (np.where(b < FAR, b, 0.0) * density_b - np.where(a > -FAR, a, 0.0) * density_a) / mass
    point = low == high
    with np.errstate(invalid="ignore"):
        first = np.where(point, np.clip((low - m) / sd, -1e6, 1e6), np.where(mirrored, -first, first))
    second = np.where(point, 1.0, np.clip(second, 0.0, 1.0 - 1e-12))
    return m + v / sd * first, np.maximum(v - v**2 / total * second, 1e-12 * v)


def _density(x: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * np.minimum(x**2, 1400.0)) / math.sqrt(2.0 * math.pi))


def _simulated_error(fit: Fit, scoring: Scoring) -> Floats:
    """Mean squared error of scores from ordinal items, over rows drawn from the model and cut at its thresholds."""
    rng = np.random.default_rng(0)  # fixed: the same model has the same answer
    drawn = rng.standard_normal((_DRAWS, len(scoring.observed))) @ np.linalg.cholesky(scoring.implied).T
    low, high = drawn.copy(), drawn.copy()
    for j, margin in enumerate(_margins(fit)):
        if margin is not None and margin.kind == "ordinal":
            ends = np.concatenate([[-FAR], margin.scores, [FAR]])
            place = np.searchsorted(margin.scores, drawn[:, j])
            low[:, j], high[:, j] = ends[place], ends[place + 1]
    _, error = _from_intervals(scoring, low, high)
    return np.asarray((error**2).mean(axis=0))
