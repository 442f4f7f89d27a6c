"""Processor seconds of fits: all of 200 variables at once, and a model of 32 with one edge changed.

Run as: OPENBLAS_NUM_THREADS=1 python -m benchmarks fits
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import unmeasured as um
from unmeasured.models.fit import Fit


def seconds(function: Callable[[], Fit], repeats: int = 5) -> tuple[float, Fit]:
    """The least of some repeats, and what came out."""
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        found = function()
        times.append(time.process_time() - begun)
    return min(times), found


def large() -> None:
    """200 variables, 40 latents, N = 2000: single latents, and groups of up to three."""
    for seed in range(3):
        for options in ({"group_sizes": (1,) * 40}, {"n_latents": 40}):
            graph = um.simulate.random_gnfm(n_observed=200, rng=seed, **options)
            sample = um.as_sample(um.simulate.sample(graph, 2000, parameters="realistic", rng=seed))
            took, fit = seconds(partial(um.fit, graph, sample))
            print(f"200 variables, 40 latents, {fit.model.n_free} parameters, {fit.n_steps} steps: {took:.3f} s")


def edited() -> None:
    """Teacher burnout, 32 variables: what the editor of the application does, one edge of the model found left out."""
    data = um.datasets.load("teacher_burnout")
    sample = um.as_sample(cov=data.frame(), n_samples=data.n_samples)
    graph = um.LGES().fit(sample).graph_.member()
    names = (*graph.latents, *sample.names)
    times, whole = [], []
    for edge in graph.directed_edges:
        edges = [other for other in graph.directed_edges if other != edge]

        def refit(edges: list[tuple[str, str]] = edges) -> Fit:
            return um.fit(um.DAG.from_edges(edges, latents=graph.latents, names=names), sample)

        def refit_and_read(refit: Callable[[], Fit] = refit) -> Fit:
            fit = refit()
            _ = fit.parameters, fit.chi2, fit.rmsea, fit.cfi, fit.tli, fit.srmr, fit.bic
            return fit

        times.append(seconds(refit)[0])
        whole.append(seconds(refit_and_read)[0])
    for what, values in (("refit", times), ("with standard errors and indices", whole)):
        shown = f"median {1e3 * statistics.median(values):.1f} ms, largest {1e3 * max(values):.1f} ms"
        print(f"32 variables, {len(graph.latents)} latents, each of {len(values)} edges left out, {what}: {shown}")


def main() -> None:
    """Print both."""
    large()
    edited()
