"""The models that drawings are judged by: two questionnaires, two large models and fifty random ones; and random
hierarchies, models with covariates and outcomes, and models with residual pairs.

The graphs of the questionnaires are stored (``graphs/``, from ``LGES()`` of versions 0.1 and 0.2 on the bundled data),
so that a change of the search does not change what the drawing is tested with.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import unmeasured as um

STORED = ("teacher_burnout", "teacher_burnout_traits", "big_five", "big_five_single", "big_five_pairs")
RANDOM = tuple(range(50))
SPECIAL = (1, 2, 4)  # of each: hierarchies, covariates and outcomes, residual pairs


@cache
def stored(name):
    data = um.datasets.load("big_five" if name.startswith("big_five") else "teacher_burnout")
    dag = um.graphs.from_json((Path(__file__).parent / "graphs" / f"{name}.json").read_text())
    return um.Result(dag.cpdag(), um.fit(dag, cov=data.frame(), n_samples=data.n_samples))


def drawn_from(dag, n_samples=500, seed=1, parameters=um.simulate.realistic_parameters):
    rows = um.simulate.sample(parameters(dag, rng=seed), n_samples, rng=seed + 1)
    # The class of a hierarchy may direct an edge of its top otherwise than the graph that was drawn.
    return um.Result(dag.cpdag(), um.fit(dag.cpdag() if dag.facets else dag, rows))


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


@cache
def hierarchy(seed):
    """Traits over facets; the last with one more level."""
    return drawn_from(
        um.simulate.random_hierarchy(
            n_traits=1 + seed % 3, n_free=seed % 2, n_levels=3 if seed == 4 else 2, density=0.8,
            n_common_children=seed % 3, rng=seed,
        ),
        800,
    )  # fmt: skip


@cache
def roles(seed):
    """Two covariates before, two outcomes behind, and direct effects on items."""
    inner = um.simulate.random_gnfm(
        n_groups=3 + seed % 3, n_latents=3 + seed % 3, n_observed=14 + seed, n_common_children=seed % 3, density=0.5,
        rng=seed,
    )  # fmt: skip
    latents, items = inner.latents, inner.observed
    edges = [*inner.edges, ("age", latents[0]), ("age", latents[-1]), ("female", latents[seed % 2])]
    edges += [
        ("female", items[seed]),
        (latents[-1], "grade"),
        (latents[1], "grade"),
        ("grade", "income"),
        ("age", "income"),
        ("age", items[-1]),
    ]
    dag = um.DAG.from_edges(edges, latents=latents, covariates=["age", "female"], outcomes=["grade", "income"])
    return drawn_from(dag, 800, parameters=um.simulate.paper_parameters)


@cache
def pairs(seed):
    """Pairs of neighbours, of items of one latent, and of two."""
    dag = um.simulate.random_gnfm(n_groups=2 + seed, n_latents=2 + seed, n_observed=4 * (2 + seed), rng=seed)
    x = dag.observed
    dag = dag.with_pairs([(x[0], x[1]), (x[0], x[3]), (x[2], x[-1]), (x[5], x[-2]), (x[4], x[6])])
    return drawn_from(dag, 800)


def everyone():
    """Names and makers of all of them."""
    for make in (hierarchy, roles, pairs):
        yield from ((f"{make.__name__}_{seed}", lambda make=make, seed=seed: make(seed)) for seed in SPECIAL)
    yield from ((name, lambda name=name: stored(name)) for name in STORED)
    yield from ((f"large_{n}", lambda n=n: large(n)) for n in (60, 135))
    yield from ((f"random_{seed}", lambda seed=seed: random(seed)) for seed in RANDOM)
