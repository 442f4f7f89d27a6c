"""Data for the cases: bundled matrices, rows of drawn models, and files of the shared data."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import unmeasured as um
from benchmarks.golden.cases.table import SHARED


def bundled(name: str) -> um.Sample:
    """Return a bundled matrix as a sample, labels included."""
    data = um.datasets.load(name)
    return um.as_sample(cov=data.frame(), n_samples=data.n_samples)


def suite_graph(suite: str, number: int) -> um.DAG:
    """Return a graph of a stored suite, counted from 1."""
    graphs = um.simulate.paper_suite() if suite == "paper" else um.simulate.realistic_suite()
    return graphs[number - 1]


def suite_rows(suite: str, number: int, n: int, **options: Any) -> pd.DataFrame:
    """Return rows of a graph of a stored suite."""
    setting: Any = "paper" if suite == "paper" else "realistic"
    return um.simulate.sample(suite_graph(suite, number), n, parameters=setting, rng=1000 * number + n, **options)


@cache
def questionnaire_rows(n: int = 400, n_latents: int = 4, n_items: int = 4, seed: int = 5) -> pd.DataFrame:
    """Return rows of latents in a chain, each with items of its own."""
    dag = um.simulate.random_gnfm(group_sizes=(1,) * n_latents, n_observed=n_items * n_latents, shape="chain", rng=seed)
    return um.simulate.sample(dag, n, parameters="realistic", rng=seed)


@cache
def people(n: int = 400, seed: int = 8) -> pd.DataFrame:
    """Return rows of two groups of people in the column ``country``, in which one item differs; and age and income.

    Two latents of four items; age causes the first latent and the item a4, income is an effect of the second.
    """
    rng = np.random.default_rng(seed)
    country = np.repeat(["x", "y"], n // 2)
    age = rng.uniform(20, 70, n).round(0)
    first = 0.03 * (age - 45) + rng.normal(size=n)
    second = 0.6 * first + rng.normal(size=n)
    noise = rng.normal(size=(n, 8)) * 0.7
    weights = np.array([1.0, 0.9, 0.8, 0.7])
    rows = pd.DataFrame(
        np.hstack([np.outer(first, weights), np.outer(second, weights)]) + noise,
        columns=["a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4"],
    )
    rows["a4"] += 0.04 * (age - 45)
    rows.loc[country == "y", "b4"] += 0.8
    return rows.assign(age=age, income=(0.8 * second + rng.normal(size=n)).round(2), country=country)


ITEMS = ["a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4"]
TWO_FACTORS = "f =~ a1 + a2 + a3 + a4; g =~ b1 + b2 + b3 + b4"


def five_categories(rows: pd.DataFrame, shape: str = "even") -> pd.DataFrame:
    """Return rows cut into five categories."""
    return um.simulate.cut(rows, shape)  # type: ignore[arg-type]


def with_holes(rows: pd.DataFrame, rate: float = 0.1, seed: int = 3) -> pd.DataFrame:
    """Return rows with values missing at random."""
    return um.simulate.punch_holes(rows, rate, rng=seed)


@cache
def _shared(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(gzip.decompress((SHARED / name).read_bytes()))
    return loaded


def published_matrix(name: str) -> um.Sample:
    """Return a correlation matrix of the shared questionnaires."""
    stored = _shared("questionnaires.json.gz")[name]
    return um.as_sample(cov=np.array(stored["corr"]), n_samples=stored["n"], names=stored["names"])


def instrument_rows(start: str) -> pd.DataFrame:
    """Return the answers to a shared questionnaire, whose name begins so."""
    stored = _shared("instruments.json.gz")
    (name,) = (key for key in stored if key.startswith(f"osf:{start}"))
    return pd.DataFrame(stored[name]["rows"], columns=stored[name]["items"])


def shared_csv(name: str) -> pd.DataFrame:
    """Return a table of the shared data."""
    return pd.read_csv(SHARED / name)
