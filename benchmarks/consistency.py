"""Theorem 3 measured: population covariance in, true class out; and what samples of a million do."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from unmeasured import simulate
from unmeasured.data.sample import Sample
from unmeasured.graphs import CPDAG, DAG
from unmeasured.metrics import compare
from unmeasured.models.fit import fit_many

SHAPES = ("random", "chain", "fork", "collider", "dense", "empty")


@dataclass(frozen=True)
class Consistency:
    """How often the true class came out."""

    n_graphs: int
    n_right: int
    f1: float  # mean
    seconds: float  # median
    failures: tuple[str, ...]
    n_preferred: int = 0  # samples of which BIC prefers another class to the true one, as it was found

    @property
    def figures(self) -> dict[str, float]:
        """What is worth keeping."""
        kept = {"n_graphs": self.n_graphs, "n_right": int(self.n_right), "f1": self.f1}
        return kept | ({"n_preferred": self.n_preferred} if self.n_preferred else {})

    def __str__(self) -> str:
        lines = [
            f"the true class in {self.n_right} of {self.n_graphs}, mean F1 {self.f1:.3f}, "
            f"median {self.seconds:.2f} s a graph",
            *self.failures,
        ]
        if self.n_preferred:
            lines.append(f"in {self.n_preferred} of the others BIC prefers the class found to the true one")
        return "\n".join(lines)


def random_truth(rng: np.random.Generator, n_observed: tuple[int, int] = (4, 20)) -> simulate.Parameters:
    """A random factor model of any size and shape, coefficients bounded away from zero."""
    n = int(rng.integers(n_observed[0], n_observed[1] + 1))
    m = int(rng.integers(1, n // 2 + 1))
    sizes: list[int] = []
    while sum(sizes) < m:
        sizes.append(int(min(rng.choice([1, 2, 3], p=[0.6, 0.25, 0.15]), m - sum(sizes))))
    n_common = min(int(rng.integers(0, 3)), n - 2 * m) if len(sizes) > 1 else 0
    shape: Any = rng.choice(SHAPES)
    density = float(rng.uniform(0.2, 0.9))
    dag = simulate.random_gnfm(
        group_sizes=sizes, n_observed=n, n_common_children=n_common, shape=shape, density=density, rng=rng
    )
    if rng.random() < 0.5:
        return simulate.paper_parameters(dag, rng, low=-2.0, high=2.0, min_abs=0.5)
    return simulate.realistic_parameters(dag, rng)


def random_hierarchical_truth(rng: np.random.Generator, n_observed: tuple[int, int] = (0, 60)) -> simulate.Parameters:
    """A random hierarchical factor model, with so many observed variables; a fifth of them have three levels."""
    while True:
        n_levels = 3 if rng.random() < 0.2 else 2
        dag = simulate.random_hierarchy(
            n_traits=int(rng.integers(1, 4)) if n_levels == 2 else 1,
            n_free=int(rng.integers(0, 3)),
            n_levels=n_levels,
            density=float(rng.uniform(0.3, 1.0)),
            n_common_children=int(rng.integers(0, 2)),
            rng=rng,
        )
        if n_observed[0] <= len(dag.observed) <= n_observed[1]:
            break
    if rng.random() < 0.5:
        return simulate.paper_parameters(dag, rng, low=-2.0, high=2.0, min_abs=0.5)
    return simulate.realistic_parameters(dag, rng)


@dataclass(frozen=True)
class Found:
    """A class, and the sample it was found in, if it was one."""

    graph: CPDAG
    sample: Sample | None = None

    def lead_over(self, truth: DAG) -> float:
        """By how much the BIC of the class is better than that of the truth; NaN in a population."""
        if self.sample is None:
            return math.nan
        true, found = fit_many([truth, self.graph], self.sample)
        return float(true.bic - found.bic)


def consistency(
    search: Callable[[simulate.Parameters, np.random.Generator], Found],
    n_graphs: int,
    seed: int = 0,
    n_observed: tuple[int, int] = (4, 20),
    truth: Callable[[np.random.Generator, tuple[int, int]], simulate.Parameters] = random_truth,
) -> Consistency:
    """Run a search on random truths and count how often it returns their class."""
    rng = np.random.default_rng(seed)
    right, preferred, f1, seconds, failures = 0, 0, [], [], []
    for index in tqdm(range(n_graphs), desc="graphs"):
        parameters = truth(rng, n_observed)
        began = time.perf_counter()
        found = search(parameters, rng)
        seconds.append(time.perf_counter() - began)
        result = compare(parameters.dag, found.graph)
        right += result.shd == 0
        f1.append(result.f1)
        if result.shd:
            lead = found.lead_over(parameters.dag)
            preferred += lead > 0.0
            by_bic = "" if math.isnan(lead) else f", BIC {'better' if lead > 0 else 'worse'} by {abs(lead):.1f}"
            what = f"graph {index}: {_describe(parameters.dag)}: shd {result.shd}, F1 {result.f1:.2f}"
            failures.append(what + by_bic)
    return Consistency(n_graphs, right, float(np.mean(f1)), float(np.median(seconds)), tuple(failures), preferred)


def population(estimator: Any, parameters: simulate.Parameters) -> Found:
    """What an estimator makes of the population covariance."""
    return Found(estimator.fit_cov(parameters.cov(), math.inf, names=parameters.observed).graph_)


def large_sample(estimator: Any, parameters: simulate.Parameters, n: int, rng: np.random.Generator) -> Found:
    """What an estimator makes of a large Gaussian sample."""
    estimator.fit(simulate.sample(parameters, n, rng=rng))
    return Found(estimator.graph_, estimator.sample_)


def _describe(dag: DAG) -> str:
    return f"{len(dag.observed)} observed, groups of {', '.join(str(len(group)) for group in dag.latent_groups)}"
