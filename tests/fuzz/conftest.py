"""What malformed inputs start from: right ones, made once."""

from __future__ import annotations

import contextlib

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.output.report.run import run_of
from unmeasured.validation.replicates.resample import Resampling
from unmeasured.validation.replicates.run import Work


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder to work in; nothing is written elsewhere."""
    path = tmp_path_factory.mktemp("fuzz")
    with contextlib.chdir(path):
        yield path


@pytest.fixture(scope="session")
def rows():
    """Sixty answers to five items."""
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=(60, 1)) + 0.7 * rng.normal(size=(60, 5)), 2)
    return pd.DataFrame(values, columns=list("abcde"))


@pytest.fixture(scope="session")
def search(rows):
    """A fitted search."""
    return um.LGES().fit(rows)


@pytest.fixture(scope="session")
def results(search):
    """Two results as JSON: one with its run, one with a group of two latents and an edge."""
    edges = [(latent, x) for latent in "AB" for x in "abcdef"] + [("A", "C"), ("B", "C"), ("C", "g"), ("C", "h")]
    dag = um.DAG.from_edges(edges, latents=["A", "B", "C"])
    rng = np.random.default_rng(1)
    pair = rng.normal(size=(200, 2)) @ rng.uniform(0.4, 1, size=(2, 8)) + rng.normal(size=(200, 8))
    fit = um.fit(dag, pd.DataFrame(pair, columns=list("abcdefgh")))
    return run_of(search).to_json(), um.Result(dag.cpdag(), fit).to_json()


@pytest.fixture(scope="session")
def stable(search):
    """Stability in three replicates."""
    return um.stability(search, 3)


@pytest.fixture(scope="session")
def about(search):
    """What records of these replicates belong to."""
    return Work.of(search, Resampling.of(search.sample_, "bootstrap", "ml"), 0, True).about


@pytest.fixture(scope="session")
def records(stable, about):
    """The replicates as records, a line each."""
    return "".join(f"{replicate.line(about)}\n" for replicate in stable.replicates)
