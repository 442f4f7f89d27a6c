"""How often is the truth rejected at 5%? ``python -m benchmarks true-models [SETTING ...]``.

Three factors with four items each, correlations of .3; items normal, skewed, with heavy tails, in five categories and
in two; complete, and with 15 and 30% of the values missing by chance; 200 and 600 rows. Settings:

    plain       nothing else
    covariates  with age (mean 40) and a treatment (0 or 1) that cause the first factor
    groups      as many people in each of two countries, parameters of their own; the test is that of both together
    searches    the default search of 600 rows, p-values of the answers that are the true class
    moments     as plain, but the test of the moments that the search uses, which is not what is reported

In the first three the true graph is fitted and reported as a search reports what it found: the sample that
the search makes of the rows, the fit, full information where values are missing, corrections where rows call for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

import unmeasured as um
from unmeasured.models.estimators import tested_together

ITEMS = tuple(f"x{j}" for j in range(1, 13))
LATENTS = ("A", "B", "C")
FIVE, TWO = (-1.2, -0.4, 0.4, 1.2), (0.3,)
KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "normal": lambda z: z,
    "skewed": lambda z: np.exp(0.7 * z),
    "heavy tails": lambda z: z,  # rows are stretched as they are drawn
    "five categories": lambda z: np.digitize(z, FIVE).astype(float),
    "two categories": lambda z: np.digitize(z, TWO).astype(float),
}
SHARES, SIZES = (0.0, 0.15, 0.3), (200, 600)


def graph(covariates: Iterable[str] = ()) -> um.DAG:
    """The truth: every latent causes four items and all later latents."""
    edges = [(latent, ITEMS[4 * k + j]) for k, latent in enumerate(LATENTS) for j in range(4)]
    edges += [("A", "B"), ("A", "C"), ("B", "C"), *((x, "A") for x in covariates)]
    return um.DAG.from_edges(edges, latents=LATENTS, covariates=tuple(covariates))


def drawn(kind: str, n: int, share: float, rng: np.random.Generator, effect: np.ndarray | float = 0.0) -> pd.DataFrame:
    """Rows of the items, with holes; ``effect`` is added to the first factor."""
    noise = rng.normal(size=(n, 3))
    first = noise[:, 0] + effect
    second = 0.3 * first + np.sqrt(0.91) * noise[:, 1]
    f = np.column_stack([first, second, 0.23 * (first + second) + np.sqrt(0.86) * noise[:, 2]])
    loadings = np.kron(np.eye(3), np.array([[0.8, 0.7, 0.6, 0.7]]))
    z = f @ loadings + rng.normal(size=(n, 12)) * np.sqrt(1.0 - (loadings**2).sum(axis=0))
    if kind == "heavy tails":
        z *= np.sqrt(6.0 / rng.chisquare(8.0, size=(n, 1)))
    values = KINDS[kind](z)
    values[rng.random(values.shape) < share] = np.nan
    return pd.DataFrame(values, columns=list(ITEMS))


def p_value(rows: pd.DataFrame, covariates: tuple[str, ...] = ()) -> float:
    """The p-value that a search reports first, for the true graph."""
    sample = um.LGES(covariates=covariates).make_sample(rows)
    dag = graph(covariates)
    return um.Result(dag.cpdag(), um.fit(dag, sample)).reported.pvalue_reported


def plain(kind: str, n: int, share: float, rng: np.random.Generator) -> float:
    """Items alone."""
    return p_value(drawn(kind, n, share, rng))


def covariates(kind: str, n: int, share: float, rng: np.random.Generator) -> float:
    """Items and two covariates."""
    age, treated = rng.normal(40.0, 12.0, n), rng.integers(0, 2, n).astype(float)
    rows = drawn(kind, n, share, rng, 0.3 * (age - 40.0) / 12.0 + 0.3 * (treated - 0.5))
    return p_value(rows.assign(age=age, treated=treated), ("age", "treated"))


def groups(kind: str, n: int, share: float, rng: np.random.Generator) -> float:
    """People of two countries."""
    first, second = (drawn(kind, n, share, rng, effect) for effect in (0.0, 0.5))
    search = um.LGES()
    whole = um.Sample.from_rows(
        pd.concat([first, second], ignore_index=True), cor=search.cor, missing=search.missing,
        groups=["one"] * n + ["two"] * n,
    )  # fmt: skip
    return tested_together([um.fit(graph(), part) for part in whole.by_group().values()])[2]


def searches(kind: str, n: int, share: float, rng: np.random.Generator) -> float:
    """A search of the items; missing where the answer is another class."""
    result = um.LGES().fit(drawn(kind, n, share, rng)).result_
    is_true = um.metrics.compare(graph(), result.graph).shd == 0
    return result.reported.pvalue_reported if is_true else np.nan


def moments(kind: str, n: int, share: float, rng: np.random.Generator) -> float:
    """The chi-square of the moments as if they came from complete rows, as many as they are worth."""
    sample = um.LGES().make_sample(drawn(kind, n, share, rng))
    return um.fit(graph(), cov=sample.cov * sample.n / (sample.n - 1.0), n_samples=sample.n, names=ITEMS).pvalue


SETTINGS: dict[str, Callable[..., float]] = {
    study.__name__: study for study in (plain, covariates, groups, searches, moments)
}


def main(replicates: int, settings: Sequence[str]) -> None:
    """A line for each setting, kind and size: shares of replicates with p < .05 at 0, 15 and 30% missing."""
    for setting in settings:
        if setting not in SETTINGS:
            raise um.UnmeasuredError(f"There is no setting {setting!r}. There are {', '.join(SETTINGS)}.")
    for setting in settings:
        study = SETTINGS[setting]
        for kind in KINDS:
            for n in SIZES if setting != "searches" else SIZES[1:]:
                begun, cells = time.process_time(), []
                for share in SHARES:
                    ps = []
                    for seed in range(replicates):
                        rng = np.random.default_rng((2031, seed, n, list(KINDS).index(kind)))
                        try:
                            ps.append(study(kind, n, share, rng))
                        except um.UnmeasuredError:
                            ps.append(np.nan)
                    known = np.array([p for p in ps if not np.isnan(p)])
                    few = "" if len(known) == replicates else f" of {len(known)}"
                    cells.append(f"{100.0 * (known < 0.05).mean():.1f}%{few}" if len(known) else "none")
                seconds = (time.process_time() - begun) / replicates / len(SHARES)
                print(f"| {setting} | {kind} | {n} | {' | '.join(cells)} | {seconds:.2f} s |", flush=True)
