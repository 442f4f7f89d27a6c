"""What rows of answers in categories are worth, and what searches make of them: ``python -m benchmarks worth``.

First chi-square of a true model over its degrees of freedom, with the number of rows as N and with ``sample.n``; then
the default search of questionnaires whose model is right, five items for each latent, beside rows that were not cut.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

import unmeasured as um

FIVE_EVEN, FIVE_SKEWED, TWO = (-0.84, -0.25, 0.25, 0.84), (0.0, 0.67, 1.17, 1.75), (1.0,)
KINDS: dict[str, Callable[[int], tuple[float, ...]]] = {
    "five even categories": lambda _: FIVE_EVEN,
    "five skewed categories": lambda _: FIVE_SKEWED,
    "two categories, one in six on one side": lambda _: TWO,
    "two to five categories, mixed": lambda j: (FIVE_EVEN, (-0.5, 0.5), FIVE_SKEWED, TWO)[j % 4],
}


def cut(rows: pd.DataFrame, cuts: Callable[[int], tuple[float, ...]]) -> pd.DataFrame:
    """Every column in categories, by cuts of its standard scores."""
    z = (rows - rows.mean()) / rows.std()
    return pd.DataFrame({name: np.digitize(z[name], cuts(j)) for j, name in enumerate(rows)})


def true_models() -> None:
    """One factor and eight items."""
    for kind, cuts in KINDS.items():
        for loading in (0.5, 0.8):
            ratios = []
            for seed in range(40):
                rng = np.random.default_rng(500 + seed)
                values = loading * rng.normal(size=(1000, 1)) + np.sqrt(1 - loading**2) * rng.normal(size=(1000, 8))
                sample = um.as_sample(cut(pd.DataFrame(values, columns=[f"x{j}" for j in range(8)]), cuts), cor="auto")
                fit = um.fit("f =~ " + " + ".join(sample.names), sample)
                ratios.append((fit.chi2 / fit.df * 1000 / sample.n, fit.chi2 / fit.df))
            print(f"| {kind}, loadings {loading} | {np.mean(ratios, axis=0).round(2).tolist()} |", flush=True)


def searches() -> None:
    """F1 and the number of latents found, means of ten questionnaires each."""
    for n_latents, n_rows in ((4, 500), (4, 2000), (10, 500), (10, 2000), (20, 2000)):
        for kind, cuts in {"not cut": None, **KINDS}.items():
            found = []
            for seed in range(10):
                rng = np.random.default_rng((n_latents, n_rows, seed))
                dag = um.simulate.random_gnfm(
                    group_sizes=(1,) * n_latents, n_observed=5 * n_latents, density=2 / n_latents, rng=rng
                )
                rows = um.simulate.sample(dag, n_rows, parameters="realistic", rng=rng)
                search = um.LGES().fit(rows if cuts is None else cut(rows, cuts))
                score = um.metrics.compare(dag, search.graph_)
                found.append((score.f1, len(search.graph_.latents), search.sample_.n))
            f1, latents, worth = np.mean(found, axis=0)
            what = f"{n_latents} latents, {5 * n_latents} items, N = {n_rows}, {kind}"
            print(f"| {what} | F1 {f1:.3f} | {latents:.1f} latents | N counts as {worth:.0f} |", flush=True)


def main() -> None:
    """Print both."""
    true_models()
    searches()
