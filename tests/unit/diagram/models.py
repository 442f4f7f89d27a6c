"""The models that drawings are judged by: two questionnaires, two large models and fifty random ones.

The graphs of the questionnaires are stored (``graphs/``, from ``LGES()`` of version 0.1 on the bundled data), so that a
change of the search does not change what the drawing is tested with.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import unmeasured as um

STORED = ("teacher_burnout", "big_five", "big_five_single")
RANDOM = tuple(range(50))


@cache
def stored(name):
    data = um.datasets.load(name.removesuffix("_single"))
    dag = um.graphs.from_json((Path(__file__).parent / "graphs" / f"{name}.json").read_text())
    return um.Result(dag.cpdag(), um.fit(dag, cov=data.frame(), n_samples=data.n_samples))


def drawn_from(dag, n_samples=500, seed=1):
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=seed), n_samples, rng=seed + 1)
    return um.Result(dag.cpdag(), um.fit(dag, rows))


@cache
def large(n_observed):
    """12 groups behind 60 variables, or 27 behind 135, with cross-loadings."""
    groups = {60: 12, 135: 27}[n_observed]
    dag = um.simulate.random_gnfm(
        n_groups=groups, n_latents=groups + 2, n_observed=n_observed, n_common_children=n_observed // 12,
        density=3.0 / groups, rng=3,
    )  # fmt: skip
    return drawn_from(dag, 2000)


@cache
def random(seed):
    n_groups = 2 + seed % 7
    dag = um.simulate.random_gnfm(
        n_groups=n_groups,
        n_latents=n_groups + seed % 2,
        n_observed=4 * n_groups + seed % 5 + 5,
        n_common_children=seed % 6,
        density=0.3 + 0.1 * (seed % 4),
        rng=seed,
    )
    return drawn_from(dag, 400, seed)


def everyone():
    """Names and makers of all of them."""
    yield from ((name, lambda name=name: stored(name)) for name in STORED)
    yield from ((f"large_{n}", lambda n=n: large(n)) for n in (60, 135))
    yield from ((f"random_{seed}", lambda seed=seed: random(seed)) for seed in RANDOM)
