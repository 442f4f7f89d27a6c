"""How well covariates and outcomes are placed, and what they tell of directions: simulated questionnaires.

Four latents with four items each, an age (skewed), a gender (binary), two outcomes; every second model has one item
that a covariate acts on directly. All graphs and rows are drawn anew from the seed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from tqdm import tqdm

from unmeasured.estimators.lges import LGES
from unmeasured.graphs import CPDAG, DAG
from unmeasured.metrics import compare

COVARIATES, OUTCOMES = ("age", "female"), ("sick_days", "income")
# How likely an edge is: between latents, from a covariate to a latent and to an outcome, from a latent to an outcome,
# between the outcomes.
_EDGES = {"LL": 0.5, "XL": 0.4, "XY": 0.3, "LY": 0.4, "YY": 0.3}
# Standardised loadings and paths, and the least part of a variance that causes leave.
_LOADINGS, _PATHS, _LEFT = (0.6, 0.85), (0.25, 0.5), 0.3


@dataclass(frozen=True)
class Run:
    """One model and sample: edges of the answer beside the truth, directions, direct effects, seconds."""

    f1: float
    exact: bool
    latent_edges: tuple[int, int]  # edges between latents that were found, with covariates and without
    directed: tuple[int, int]  # of these directed
    right: tuple[int, int]  # and directed as in the truth
    direct: tuple[int, int, int]  # direct effects: true, found, right
    seconds: tuple[float, float]  # of the processor, with covariates and outcomes and without


@dataclass(frozen=True)
class Placed:
    """All runs at a sample size."""

    n_samples: int
    runs: tuple[Run, ...]

    def _sum(self, key: str, k: int) -> int:
        return int(sum(getattr(run, key)[k] for run in self.runs))

    @property
    def f1(self) -> tuple[float, float]:
        """Mean F1 over all edges, and its standard error."""
        values = [run.f1 for run in self.runs]
        return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))

    def __str__(self) -> str:
        mean, error = self.f1
        shares = [self._sum("directed", k) / max(self._sum("latent_edges", k), 1) for k in (0, 1)]
        right = [self._sum("right", k) / max(self._sum("directed", k), 1) for k in (0, 1)]
        true, found, hits = (self._sum("direct", k) for k in range(3))
        ratio = sum(run.seconds[0] for run in self.runs) / sum(run.seconds[1] for run in self.runs)
        return (
            f"N = {self.n_samples}: F1 over all edges {mean:.3f} (s.e. {error:.3f}), the true class in "
            f"{np.mean([run.exact for run in self.runs]):.0%}; edges between latents directed {shares[0]:.0%} with "
            f"covariates and outcomes ({right[0]:.0%} of these rightly), {shares[1]:.0%} without ({right[1]:.0%}); "
            f"direct effects: {hits} of {true} found, {found - hits} false; {ratio:.2f} times the seconds of the "
            f"items alone; {len(self.runs)} models"
        )


def random_model(rng: np.random.Generator, with_direct: bool) -> DAG:
    """A graph over covariates, latents, items and outcomes.

    >>> graph = random_model(np.random.default_rng(0), with_direct=True)
    >>> len(graph.latents), len(graph.variables.indicators), graph.variables.outcomes
    (4, 16, ('sick_days', 'income'))
    """
    latents = [f"L{i}" for i in range(1, 5)]
    items = {latent: [f"x{latent[1]}{j}" for j in range(1, 5)] for latent in latents}
    edges = [(latent, x) for latent, own in items.items() for x in own]
    pairs = {
        "LL": [(a, b) for i, a in enumerate(latents) for b in latents[i + 1 :]],
        "XL": [(x, latent) for x in COVARIATES for latent in latents],
        "XY": [(x, y) for x in COVARIATES for y in OUTCOMES],
        "LY": [(latent, y) for latent in latents for y in OUTCOMES],
        "YY": [OUTCOMES],
    }
    for kind, some in pairs.items():
        edges += [pair for pair in some if rng.random() < _EDGES[kind]]
    observed = [x for own in items.values() for x in own]
    if with_direct:
        edges.append((str(rng.choice(COVARIATES)), str(rng.choice(observed))))
    names = [*latents, *observed, *COVARIATES, *OUTCOMES]
    return DAG.from_edges(edges, latents=latents, names=names, covariates=COVARIATES, outcomes=OUTCOMES)


def rows_of(dag: DAG, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of such a model; age is skewed and gender binary, all else Gaussian given its causes."""
    values = {"age": 18.0 + rng.gamma(2.0, 10.0, n), "female": (rng.random(n) < 0.4).astype(float)}
    for name in (dag.names[i] for i in dag.topological_order):
        if name in values:
            continue
        signal = np.zeros(n)
        for cause in dag.parents(name):
            is_loading = cause in dag.latents and name in dag.variables.indicators
            size = rng.uniform(*(_LOADINGS if is_loading else _PATHS)) * (1.0 if is_loading else rng.choice([-1, 1]))
            signal += size * (values[cause] - values[cause].mean()) / values[cause].std()
        values[name] = signal + np.sqrt(max(1.0 - signal.var(), _LEFT)) * rng.normal(size=n)
    return pd.DataFrame({name: values[name] for name in dag.observed})


def placed(n_samples: Sequence[int] = (500, 2000), n_models: int = 100, seed: int = 21) -> list[Placed]:
    """The study: the same models at every sample size."""
    found = []
    for n in n_samples:
        runs = []
        for k in tqdm(range(n_models), desc=f"N = {n}"):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,)))
            truth = random_model(rng, with_direct=k % 2 == 1)
            runs.append(_run(truth, rows_of(truth, n, rng)))
        found.append(Placed(n, tuple(runs)))
    return found


def _run(truth: DAG, rows: pd.DataFrame) -> Run:
    began = time.process_time()
    whole = LGES(covariates=COVARIATES, outcomes=OUTCOMES).fit(rows).graph_
    middle = time.process_time()
    items = list(truth.variables.indicators)
    alone = LGES().fit(rows[items]).graph_
    ended = time.process_time()
    inner = [(a, b) for a, b in truth.edges if a in truth.latents and (b in truth.latents or b in items)]
    judged = compare(truth, whole)
    names = (judged.matching, compare(DAG.from_edges(inner, latents=truth.latents), alone).matching)
    counts = [_directions(truth, graph, match) for graph, match in zip((whole, alone), names, strict=True)]
    edges, directed, right = zip(*counts, strict=True)
    true = {edge for edge in truth.edges if edge[0] in COVARIATES and edge[1] in items}
    found = {edge for edge in whole.directed_edges if edge[0] in COVARIATES and edge[1] in items}
    direct = (len(true), len(found), len(true & found))
    return Run(judged.f1, judged.shd == 0, edges, directed, right, direct, (middle - began, ended - middle))


def _directions(truth: DAG, graph: CPDAG, matching: object) -> tuple[int, int, int]:
    """Edges between latents of an answer: all, directed, directed as in the truth."""
    assert isinstance(matching, dict)
    directed = [(a, b) for a, b in graph.directed_edges if a in graph.latents and b in graph.latents]
    open_ = [(a, b) for a, b in graph.undirected_edges if a in graph.latents]
    right = sum((matching[a], matching[b]) in truth.edges for a, b in directed)
    return len(directed) + len(open_), len(directed), right
