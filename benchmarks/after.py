"""What follows discovery, measured: scores of ordinal items, coverage of effects, p-values before and after
confirmation.

All three draw data from known models, so that the truth is at hand.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import kstest

import unmeasured as um
from unmeasured import apa
from unmeasured.arrays import Floats
from unmeasured.files import write_bytes
from unmeasured.results.effects import class_effects

# Scores -----------------------------------------------------------------------------------------------------

_SHARES = {
    "2, even": (0.5, 0.5),
    "2, skewed": (0.85, 0.15),
    "3, even": (1 / 3, 1 / 3, 1 / 3),
    "5, even": (0.2, 0.2, 0.2, 0.2, 0.2),
    "5, skewed": (0.55, 0.2, 0.12, 0.08, 0.05),
}


def ordinal_scores(seeds: int = 5, samples: int = 1000) -> pd.DataFrame:
    """Error of factor scores from ordinal items against the latents they were drawn from, in standard deviations.

    Three factors that correlate .4, five items each with loadings from .55 to .85, cut at the thresholds of the shares.
    ``codes``: regression weights of the polychoric model on standardised category codes; ``expectation``: the
    expectation given the categories, as :meth:`unmeasured.models.fit.Fit.scores` has it; ``uncut``: regression scores
    of the values before they were cut.
    """
    text = "; ".join(f"F{k} =~ " + " + ".join(f"x{5 * k + i}" for i in range(5)) for k in range(3))
    rows = []
    for categories, shares in _SHARES.items():
        errors = np.zeros((seeds, 3))
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            latent = rng.multivariate_normal(np.zeros(3), 0.6 * np.eye(3) + 0.4, samples)
            loadings = np.kron(np.eye(3), np.ones(5)) * rng.uniform(0.55, 0.85, 15)
            noise = rng.standard_normal((samples, 15)) * np.sqrt(1.0 - (loadings**2).sum(axis=0))
            values = pd.DataFrame(latent @ loadings + noise, columns=[f"x{i}" for i in range(15)])
            cut = values.apply(np.digitize, bins=ndtri(np.cumsum(shares)[:-1])).astype(float)
            fit = um.fit(text, um.as_sample(cut, cor="polychoric"))
            codes = ((cut - cut.mean()) / cut.std(ddof=0)) @ fit.score_weights()
            guesses = (codes, fit.scores(cut), um.fit(text, values).scores(values))
            errors[seed] = [math.sqrt(float(((guess.to_numpy() - latent) ** 2).mean())) for guess in guesses]
        rows.append([categories, *errors.mean(axis=0)])
    return pd.DataFrame(rows, columns=["categories", "codes", "expectation", "uncut"])


# Effects ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Coverage:
    """How often intervals hold the truth."""

    n_intervals: int
    share: float
    by_samples: dict[int, float]

    def __str__(self) -> str:
        each = "; ".join(f"N = {n}: {share:.1%}" for n, share in self.by_samples.items())
        total = f"{self.share:.1%} of {self.n_intervals:,} hold the truth ({each})"
        return f"95% intervals of effects, the class given: {total}"


def effect_coverage(models: int = 100, samples: tuple[int, ...] = (300, 1000), seed: int = 0) -> Coverage:
    """Coverage of the intervals of total effects over the class, for every possible value that is not zero.

    Random factor models of three to five latents with three indicators each; the truth of a value is the effect, in the
    population, in the members where the cause has the same parents.
    """
    hits: dict[int, list[bool]] = {n: [] for n in samples}
    for k in range(models):
        rng = np.random.default_rng([seed, k])
        dag = _latent_dag(rng)
        parameters = um.simulate.realistic_parameters(dag, rng=rng)
        truth = um.Result(dag.cpdag(), um.fit(dag, cov=parameters.cov(), n_samples=math.inf, names=parameters.observed))
        expected = dict(_by_parents(truth))
        for n in samples:
            fit = um.fit(dag, um.simulate.sample(parameters, n, rng=rng))
            if fit.converged and fit.admissible:
                result = um.Result(dag.cpdag(), fit)
                sign = _signs(result, truth)
                for (cause, effect, parents), row in _by_parents(result):
                    true = expected[cause, effect, parents]["std"] * sign[cause] * sign[effect]
                    if abs(true) > 1e-6 and math.isfinite(row["se"]):
                        hits[n].append(bool(row["lower"] <= true <= row["upper"]))
    every = [hit for some in hits.values() for hit in some]
    return Coverage(len(every), float(np.mean(every)), {n: float(np.mean(some)) for n, some in hits.items()})


def _latent_dag(rng: np.random.Generator) -> um.DAG:
    n = int(rng.integers(3, 6))
    names = [f"L{i}" for i in range(n)]
    edges = [pair for pair in itertools.combinations(names, 2) if rng.random() < 0.5]
    edges += [(name, f"{name}x{j}") for name in names for j in range(3)]
    return um.DAG.from_edges(edges, latents=names)


def _by_parents(result: um.Result) -> Iterator[tuple[tuple[str, str, str], dict[Hashable, Any]]]:
    """Every value of every effect by the parents that the cause has where it holds."""
    for pair in class_effects(result).pairs:
        for row in pair.values.to_dict(orient="records"):
            for parents in str(row["parents"]).split("; or "):
                yield (pair.cause, pair.effect, parents), row


def _signs(result: um.Result, truth: um.Result) -> dict[str, float]:
    """Whether a latent points the way it does in the population."""
    ours, theirs = (x.loadings.set_index(["latent", "indicator"])["std"] for x in (result, truth))
    together = (ours * theirs).groupby(level=0).sum()
    return {str(latent): float(np.sign(value)) for latent, value in together.items()}


# Confirmation -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Confirmed:
    """p-values of edges that a search found and that are not there, in the rows it saw and in others."""

    naive: Floats
    confirmed: Floats
    n_graphs: int

    def __str__(self) -> str:
        lines = [f"{len(self.naive)} edges that are not in the true graph, found in {self.n_graphs} searches:"]
        for name, p in (("in the rows of the search", self.naive), ("in other rows", self.confirmed)):
            test = kstest(p, "uniform")
            lines.append(
                f"  p < .05 {name}: {np.mean(p < 0.05):.1%} (5% if p-values are right); distance from uniform "
                f"{test.statistic:.2f} (p {apa.p_value(test.pvalue, '= ')})"
            )
        return "\n".join(lines)

    def draw(self, path: Path) -> None:
        """The two distribution functions beside the diagonal, as SVG, PDF or PNG."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.2, 4.2), layout="constrained")
        axes = figure.add_subplot()
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle=":", label="uniform: p-values that are right")
        for p, colour, style, label in (
            (self.naive, "#D55E00", "-", "in the rows of the search"),
            (self.confirmed, "#0072B2", "--", "in other rows (um.confirm)"),
        ):
            x = np.concatenate([[0.0], np.sort(p), [1.0]])
            y = np.concatenate([[0.0], np.arange(1, len(p) + 1) / len(p), [1.0]])
            axes.step(x, y, where="post", color=colour, linewidth=2, linestyle=style, label=label)
        axes.set(xlabel="p-value", ylabel="share of p-values that are smaller", xlim=(0, 1), ylim=(0, 1.01))
        axes.set_title(f"Edges found that are not there ({len(self.naive)})", fontsize=11)
        axes.legend(loc="lower right", frameon=False)
        picture, kind = BytesIO(), path.suffix[1:].lower() or "svg"
        figure.savefig(picture, format=kind, metadata={"Date": None} if kind == "svg" else None)
        write_bytes(path, picture.getvalue())


def confirmed_p_values(searches: int = 200, samples: int = 600, penalty: float = 0.4, seed: int = 0) -> Confirmed:
    """Search half of the rows, test what was found in the same half and in the other.

    Four independent latents, four indicators each, so that every path between latents and every cross-loading that a
    search finds is false; a penalty below BIC's lets it find some. Searches whose groups are not the true ones are left
    out, since then edges have no true counterpart.
    """
    names = [f"L{i}" for i in range(4)]
    dag = um.DAG.from_edges([(a, f"{a}x{j}") for a in names for j in range(4)], latents=names)
    naive, confirmed, n_graphs = [], [], 0
    for k in range(searches):
        rng = np.random.default_rng([seed, k])
        rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=rng), samples, rng=rng)
        first, second = um.split_rows(rows, 0.5, rng=k)
        search = um.LGES(penalty=penalty, max_group_size=1).fit(first)
        home = _homes(search.result_)
        if home is None:
            continue
        checked = um.confirm(search, second)
        before, after = (_tested(result, home) for result in (checked.found, checked.result))
        n_graphs += 1
        for edge in before.index.intersection(after.index):
            if np.isfinite(before[edge]) and np.isfinite(after[edge]):
                naive.append(float(before[edge]))
                confirmed.append(float(after[edge]))
    return Confirmed(np.array(naive), np.array(confirmed), n_graphs)


def _homes(result: um.Result) -> dict[str, str] | None:
    """The true latent of each latent found, by most of its indicators; None where they do not match one to one."""
    home = {}
    for group, items in result.indicators.items():
        counts = pd.Series([item.split("x")[0] for item in items]).value_counts()
        if len(counts) and counts.iloc[0] >= 3:
            home[group[0]] = str(counts.index[0])
    return home if len(set(home.values())) == len(home) == len(result.graph.latent_groups) == 4 else None


def _tested(result: um.Result, home: dict[str, str]) -> pd.Series:
    """p-values of the paths and loadings that the true graph does not have."""
    loadings, paths = result.loadings, result.latent_paths
    found = {
        (a, b): p
        for a, b, p in zip(loadings["latent"], loadings["indicator"], loadings["pvalue"])
        if home[a] != b.split("x")[0]
    }
    found |= {(a, b): p for a, b, p in zip(paths["source"], paths["target"], paths["pvalue"])}
    return pd.Series(found, dtype=float)
