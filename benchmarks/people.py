"""One structure, several groups of people with parameters of their own: all searched at once, one by one, and pooled.

Four latents with four items each; loadings and paths, paths with either sign, are drawn anew for every group.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from unmeasured.estimators.lges import LGES
from unmeasured.graphs import DAG
from unmeasured.metrics import compare

# Standardised loadings and paths, the least part of a variance that causes leave, and the spread of the groups' means.
_LOADINGS, _PATHS, _LEFT, _MEANS = (0.45, 0.85), (0.25, 0.6), 0.3, 0.2
WAYS = ("all groups at once", "each group by itself", "pooled rows", "pooled, each group less its means")


@dataclass(frozen=True)
class Groups:
    """F1, distance and seconds of the processor of each way, by model."""

    f1: tuple[tuple[float, ...], ...]
    shd: tuple[tuple[float, ...], ...]
    seconds: tuple[tuple[float, ...], ...]

    def __str__(self) -> str:
        lines = []
        for k, way in enumerate(WAYS):
            f1, shd = np.array([row[k] for row in self.f1]), np.array([row[k] for row in self.shd])
            error = f1.std(ddof=1) / np.sqrt(len(f1))
            ratio = sum(row[k] for row in self.seconds) / sum(row[1] for row in self.seconds)
            lines.append(
                f"{way}: F1 over all edges {f1.mean():.3f} (s.e. {error:.3f}), SHD {shd.mean():.2f}; {ratio:.2f} "
                "times the seconds of one group"
            )
        return "\n".join([*lines, f"{len(self.f1)} models"])


def random_model(rng: np.random.Generator) -> DAG:
    """A graph of four latents with four items each.

    >>> len(random_model(np.random.default_rng(0)).observed)
    16
    """
    latents = [f"L{i}" for i in range(1, 5)]
    edges = [(a, b) for i, a in enumerate(latents) for b in latents[i + 1 :] if rng.random() < 0.5]
    items = [(latent, f"x{latent[1]}{j}") for latent in latents for j in range(1, 5)]
    return DAG.from_edges([*edges, *items], latents=latents, names=[*latents, *(x for _, x in items)])


def rows_of(dag: DAG, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of one group, with parameters of its own."""
    values: dict[str, np.ndarray] = {}
    for name in (dag.names[i] for i in dag.topological_order):
        signal = np.zeros(n)
        for cause in dag.parents(name):
            size = rng.uniform(*_LOADINGS) if name in dag.observed else rng.uniform(*_PATHS) * rng.choice([-1, 1])
            signal += size * (values[cause] - values[cause].mean()) / values[cause].std()
        mean = _MEANS * rng.normal()
        values[name] = mean + signal + np.sqrt(max(1.0 - signal.var(), _LEFT)) * rng.normal(size=n)
    return pd.DataFrame({name: values[name] for name in dag.observed})


def searched(n_models: int = 50, n_groups: int = 3, n_rows: int = 300, seed: int = 21) -> Groups:
    """The study."""
    f1, shd, seconds = [], [], []
    for k in tqdm(range(n_models), desc="models"):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k, 1)))
        truth = random_model(rng)
        parts = [rows_of(truth, n_rows, rng) for _ in range(n_groups)]
        labels = np.repeat([f"group {g + 1}" for g in range(n_groups)], n_rows)
        rows = pd.concat(parts, ignore_index=True)
        within = pd.concat([part - part.mean() for part in parts], ignore_index=True)
        ways: list[list[tuple[pd.DataFrame, Any]]]
        ways = [[(rows, labels)], [(part, None) for part in parts], [(rows, None)], [(within, None)]]
        judged = []
        for way in ways:
            began = time.process_time()
            graphs = [LGES().fit(data, groups=groups).graph_ for data, groups in way]
            spent = (time.process_time() - began) / len(way)
            found = [compare(truth, graph) for graph in graphs]
            judged.append((np.mean([c.f1 for c in found]), np.mean([c.shd for c in found]), spent))
        a, b, c = zip(*judged, strict=True)
        f1.append(tuple(map(float, a)))
        shd.append(tuple(map(float, b)))
        seconds.append(tuple(map(float, c)))
    return Groups(tuple(f1), tuple(shd), tuple(seconds))
