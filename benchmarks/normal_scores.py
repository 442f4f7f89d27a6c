"""Normal scores of ranks or Pearson correlations of the values as they are: ``python -m benchmarks normal-scores``.

The default search of the realistic suite's 20 graphs (12 to 18 variables, 4 to 6 latents), in rows whose margins are
not normal in several ways; every search once with each kind of correlation. ``skewed`` is how often ``cor="auto"``
would take normal scores, ``true rejected`` how often the true graph is rejected at 5% by the test that is reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from scipy.special import ndtri

import unmeasured as um
from unmeasured.data.moments.transform import are_skewed
from unmeasured.metrics import compare
from unmeasured.models.estimators import reported
from unmeasured.simulate import Parameters, realistic_parameters, realistic_suite

EVEN, SKEWED, FLOOR = (
    ndtri(np.cumsum(shares)[:-1])
    for shares in ([0.2] * 5, [0.5, 0.25, 0.13, 0.08, 0.04], [0.75, 0.12, 0.07, 0.04, 0.02])
)


def linear(model: Parameters, n: int, rng: np.random.Generator, noise: str = "normal") -> pd.DataFrame:
    """Rows of the linear model, latents and residuals from one distribution of mean 0 and variance 1."""
    shape = (n, len(model.names))
    draws: dict[str, Callable[[], np.ndarray]] = {
        "normal": lambda: rng.normal(size=shape),
        "chi2(3)": lambda: (rng.chisquare(3, size=shape) - 3.0) / np.sqrt(6.0),
        "t(5)": lambda: rng.standard_t(5, size=shape) / np.sqrt(5.0 / 3.0),
        "lognormal": lambda: (np.exp(rng.normal(size=shape)) - np.exp(0.5)) / np.sqrt(np.exp(2.0) - np.exp(1.0)),
    }
    values = draws[noise]() * np.sqrt(np.diag(model.Omega)) @ np.linalg.inv(np.eye(shape[1]) - model.F)
    return pd.DataFrame(values, columns=list(model.names))[list(model.observed)]


def sums(z: pd.DataFrame, rng: np.random.Generator, *cuts: np.ndarray) -> pd.DataFrame:
    """Sums of four answers each, from 0 to 16; the columns take turns with the cuts."""
    answers = (z.to_numpy()[:, :, None] + rng.normal(size=(*z.shape, 4))) / np.sqrt(2.0)
    made = {x: np.searchsorted(cuts[j % len(cuts)], answers[:, j]).sum(axis=1) for j, x in enumerate(z)}
    return pd.DataFrame(made).astype(float)


def conditions(model: Parameters, n: int, rng: np.random.Generator) -> Iterator[tuple[str, pd.DataFrame]]:
    """Rows by the way in which they are not normal."""
    rows = linear(model, n, rng)
    z = (rows - rows.mean()) / rows.std()
    yield "normal", rows
    yield "monotone, exp(z / 2)", z.map(lambda value: np.exp(value / 2.0))
    yield "monotone, exp(z)", z.map(np.exp)
    for noise in ("chi2(3)", "lognormal", "t(5)"):
        yield f"linear, {noise} noise", linear(model, n, rng, noise)
    yield "sums of four answers, even", sums(z, rng, EVEN)
    yield "sums of four answers, skewed", sums(z, rng, SKEWED)
    yield "sums of four answers, half of them skewed the other way", sums(z, rng, SKEWED, -SKEWED[::-1])
    yield "sums of four answers, most at zero", sums(z, rng, FLOOR)


def main(seeds: int) -> None:
    """Print a table for each number of rows."""
    began, records = time.process_time(), []
    for seed in range(seeds):
        for g, dag in enumerate(realistic_suite()):
            model = realistic_parameters(dag, rng=(900 + seed) * 100 + g)
            for n in (300, 1000):
                for name, rows in conditions(model, n, np.random.default_rng([seed, g, n])):
                    skewed = are_skewed(rows.to_numpy(), np.ones(rows.shape[1], dtype=bool))
                    for cor in ("pearson", "spearman-normal"):
                        search = um.LGES(cor=cor).fit(rows)
                        fit = reported(um.fit_many([dag], search.sample_)[0])
                        p = fit.pvalue if fit.robust is None else fit.pvalue_scaled
                        found = len(search.graph_.latents)
                        records.append(
                            {
                                "N": n,
                                "rows": name,
                                "cor": cor,
                                "F1": compare(dag, search.graph_).f1,
                                "right": found == len(dag.latents),
                                "latents off": found - len(dag.latents),
                                "skewed": skewed,
                                "true rejected": p < 0.05,
                            }
                        )
    table = pd.DataFrame(records).groupby(["N", "rows", "cor"], sort=False)
    means = table.mean().assign(se=table["F1"].sem(), runs=table.size())
    print(means.round(3).to_string())
    print(f"{time.process_time() - began:.0f} processor seconds")
