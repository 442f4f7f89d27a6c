"""The engine measured: against other programs, against its own other starts, in batches against a loop."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks.peers import time_lavaan, time_ours, time_semopy
from unmeasured import simulate
from unmeasured.data import datasets
from unmeasured.data.sample import Sample
from unmeasured.graphs import DAG
from unmeasured.models.fit import fit, fit_many
from unmeasured.models.solve import solve

PEERS = {"unmeasured": time_ours, "semopy": time_semopy, "lavaan": time_lavaan}


def published_fits(repeats: int = 5) -> pd.DataFrame:
    """Every published model of the bundled data, fitted by every program: seconds, chi-square, or a reason."""
    tasks = [(data, model) for data in map(datasets.load, datasets.available()) for model in data.models.values()]
    rows = []
    for data, model in tqdm(tasks, desc="fits", unit="model"):
        for program, run in PEERS.items():
            timing = run(data.frame(), data.n_samples, model, repeats)
            rows.append((data.name, model.name, program, timing.seconds, timing.whole, timing.chi2, timing.failure))
    return pd.DataFrame(rows, columns=["data", "model", "program", "seconds", "whole", "chi2", "failure"])


def ratios(records: pd.DataFrame) -> dict[str, float]:
    """How many times our seconds the other programs take, medians over models: ``semopy_fit``, ``semopy_whole``, ..."""
    table = {
        name: records.pivot(index="model", columns="program", values=name) for name in ("seconds", "whole", "chi2")
    }
    found: dict[str, float] = {}
    for program in [p for p in PEERS if p != "unmeasured" and table["seconds"][p].notna().any()]:
        alone, whole = (table[name][program] / table[name]["unmeasured"] for name in ("seconds", "whole"))
        worse = (table["chi2"]["unmeasured"] > table["chi2"][program] + 0.01).sum()
        found |= {f"{program}_fit": float(alone.median()), f"{program}_least": float(alone.min())}
        found |= {f"{program}_whole": float(whole.median()), f"{program}_worse": int(worse)}
    return found


def describe_fits(records: pd.DataFrame) -> str:
    """The table of :func:`published_fits`, a model a line, with the ratios to ours."""
    programs = [p for p in PEERS if p in set(records["program"])]
    table = {
        name: records.pivot(index="model", columns="program", values=name) for name in ("seconds", "whole", "chi2")
    }
    lines = [f"{'ms per fit':38}" + "".join(f"{p:>11}{'chi2':>10}" for p in programs)]
    for model in dict.fromkeys(records["model"]):
        cells = [f"{1e3 * table['seconds'].loc[model, p]:11.1f}{table['chi2'].loc[model, p]:10.2f}" for p in programs]
        lines.append(f"{model:38}" + "".join(cells))
    for program in programs[1:]:
        fit_alone, whole = (table[name][program] / table[name]["unmeasured"] for name in ("seconds", "whole"))
        if fit_alone.notna().any():
            worse = int((table["chi2"]["unmeasured"] > table["chi2"][program] + 0.01).sum())
            lines.append(
                f"{program} takes {fit_alone.median():.0f} times as long for the fit (least {fit_alone.min():.1f}, "
                f"most {fit_alone.max():.0f}), {whole.median():.0f} times from text to chi2; medians of "
                f"{fit_alone.notna().sum()} models. Our chi2 is worse on {worse}."
            )
    failures = records[records["failure"] != ""]
    lines += [f"{r.program}, {r.model}: {r.failure}" for r in failures.itertuples()]
    return "\n".join(lines)


@dataclass(frozen=True)
class Starts:
    """How often the default start reached the best of all starts."""

    n_models: int
    n_reached: int
    worst_gap: float  # in total log-likelihood
    shaken_trapped: float  # part of the other starts that did not reach the best

    def __str__(self) -> str:
        return (
            f"{self.n_reached} of {self.n_models} default fits within 1e-4 of the best of all starts "
            f"({100 * self.n_reached / self.n_models:.1f}%), worst gap {self.worst_gap:.1e}; of the other starts "
            f"{100 * self.shaken_trapped:.1f}% were trapped"
        )


def default_starts(
    suite: Literal["paper", "realistic"], n_models: int = 200, n_starts: int = 10, n_samples: int = 1000, seed: int = 0
) -> Starts:
    """Random models of the paper (5 latents, 15 observed) or realistic ones (10 and 30), each from many starts."""
    rng = np.random.default_rng(seed)
    gaps, trapped = [], []
    for _ in tqdm(range(n_models), desc=suite, unit="model"):
        sample, dag = random_sample(suite, n_samples, rng)
        default = fit_many([dag], sample, n_threads=1)[0]
        starts = [default.problem.other_start(rng) for _ in range(n_starts - 1)]
        others = solve([default.problem] * len(starts), starts)
        best = min([default.solution.discrepancy, *(o.discrepancy for o in others)])
        gaps.append(0.5 * n_samples * (default.solution.discrepancy - best))
        trapped += [0.5 * n_samples * (o.discrepancy - best) > 1e-4 for o in others]
    return Starts(n_models, int(np.sum(np.array(gaps) <= 1e-4)), float(max(gaps)), float(np.mean(trapped)))


def random_sample(suite: Literal["paper", "realistic"], n_samples: int, rng: np.random.Generator) -> tuple[Sample, DAG]:
    """A random model of a suite and a sample from it."""
    n_common = int(rng.integers(0, 3))
    if suite == "paper":
        dag = simulate.random_gnfm(n_latents=5, n_observed=15, n_common_children=n_common, rng=rng)
        parameters = simulate.paper_parameters(dag, rng)
    else:
        dag = simulate.random_gnfm(
            n_latents=10, n_observed=30, max_group_size=2, n_common_children=n_common, density=0.3, rng=rng
        )
        parameters = simulate.realistic_parameters(dag, rng)
    return Sample.from_rows(simulate.sample(parameters, n_samples, rng=rng)), dag


@dataclass(frozen=True)
class Batch:
    """A batch of fits against a loop of single ones."""

    n_fits: int
    n_observed: int
    seconds_loop: float
    seconds_batch: float
    largest_difference: float  # in total log-likelihood

    def __str__(self) -> str:
        return (
            f"{self.n_fits} fits of {self.n_observed} observed variables: loop {self.seconds_loop:.2f} s, "
            f"fit_many {self.seconds_batch:.2f} s, {self.seconds_loop / self.seconds_batch:.1f} times faster; "
            f"largest difference in log-likelihood {self.largest_difference:.1e}"
        )


def batch_against_loop(
    n_observed: int = 15, n_fits: int = 1000, n_threads: int = 2, repeats: int = 7, seed: int = 0
) -> Batch:
    """Candidates of a search, as it meets them: one sample, many graphs that differ by an edge."""
    rng = np.random.default_rng(seed)
    dag = simulate.random_gnfm(n_latents=n_observed // 3, n_observed=n_observed, max_group_size=2, rng=rng)
    sample = Sample.from_rows(simulate.sample(dag, 1000, rng=rng, parameters="realistic"))
    graphs = [_without_one_edge(dag, rng) for _ in range(n_fits)]
    frame = pd.DataFrame(sample.cov * sample.n / (sample.n - 1.0), index=sample.names, columns=sample.names)
    loops, batches, difference = [], [], 0.0
    for _ in range(repeats):
        began = time.perf_counter()
        single = [fit(graph, cov=frame, n_samples=sample.n) for graph in graphs]
        loops.append(time.perf_counter() - began)
        began = time.perf_counter()
        many = fit_many(graphs, sample, n_threads=n_threads)
        batches.append(time.perf_counter() - began)
        difference = max(abs(a.loglik - b.loglik) for a, b in zip(single, many, strict=True))
    return Batch(n_fits, n_observed, statistics.median(loops), statistics.median(batches), difference)


def _without_one_edge(dag: DAG, rng: np.random.Generator) -> DAG:
    edges = list(dag.edges)
    del edges[int(rng.integers(len(edges)))]
    return DAG.from_edges(edges, latents=dag.latents, names=dag.names)
