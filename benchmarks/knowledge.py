"""What knowledge is worth: the rows of table 1, searched with the true groups given and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from benchmarks import experiment
from benchmarks.attempt import simulated_rows
from unmeasured.data.sample import as_sample
from unmeasured.errors import UnmeasuredError
from unmeasured.graphs import CPDAG, DAG
from unmeasured.knowledge.known import Knowledge
from unmeasured.metrics import compare
from unmeasured.search.options import Options
from unmeasured.search.pipeline import discover


class Judged(NamedTuple):
    """An answer beside the truth: F1 over all edges, and edges between latents that are right, found, true."""

    f1: float
    shared: int
    found: int
    true: int

    @property
    def latent_f1(self) -> float:
        """F1 over edges between latents."""
        return 2 * self.shared / (self.found + self.true) if self.found + self.true else 1.0


@dataclass(frozen=True)
class Accuracy:
    """Skeleton F1 of answers beside the truth: over all edges, and over those between latents."""

    label: str
    runs: tuple[Judged, ...]

    @property
    def figures(self) -> dict[str, float]:
        """Mean F1 over all edges, and over edges between latents."""
        return {key: float(np.mean([getattr(run, key) for run in self.runs])) for key in ("f1", "latent_f1")}

    def __str__(self) -> str:
        f1, latent = self.figures.values()
        shared, found, true = (sum(getattr(run, key) for run in self.runs) for key in ("shared", "found", "true"))
        together = Judged(0.0, shared, found, true)
        return (
            f"{self.label}: F1 over all edges {f1:.3f}, over edges between latents {latent:.3f} "
            f"(edges of all runs together {together.latent_f1:.3f}); {len(self.runs)} runs"
        )


def true_groups(truth: DAG) -> Knowledge:
    """Who measures what in a graph, and how many latents each group has; nothing of the paths."""
    items = {group: [x for x in truth.observed if x in truth.children(group[0])] for group in truth.latent_groups}
    names = {group: group[0] if len(group) == 1 else " and ".join(group) for group in truth.latent_groups}
    return Knowledge(
        groups={names[group]: items[group] for group in truth.latent_groups},
        latents={names[group]: group for group in truth.latent_groups},
    )


def worth_of_groups(n_samples: int = 200, n_seeds: int = 1, n_graphs: int | None = None) -> tuple[Accuracy, Accuracy]:
    """LGES without knowledge and with the true groups, on the same rows of the paper's suite."""
    asked = experiment.load("table1").restricted(["LGES (bic)"])
    if n_samples not in asked.sample_sizes:
        raise UnmeasuredError(f"Table 1 has rows for N = {', '.join(map(str, asked.sample_sizes))}; got {n_samples}.")
    if not 1 <= n_seeds <= len(asked.seeds):
        raise UnmeasuredError(f"Table 1 has 1 to {len(asked.seeds)} seeds; got {n_seeds}.")
    seeds = asked.seeds[:n_seeds]
    wanted = [run for run in asked.assignments if run.task.n_samples == n_samples and run.task.seed in seeds]
    without, given = [], []
    for run in tqdm(wanted[:n_graphs], desc="runs"):
        sample = as_sample(simulated_rows(run.task, run.truth), cor="auto")
        without.append(_judged(run.truth, discover(sample, Options(max_group_size=3)).cpdag))
        known = true_groups(run.truth)
        informed = Options(max_group_size=3, knowledge=known, compare_without_knowledge=False)
        given.append(_judged(run.truth, discover(sample, informed).cpdag))
    return Accuracy("without knowledge", tuple(without)), Accuracy("true groups given", tuple(given))


def _judged(truth: DAG, estimate: CPDAG) -> Judged:
    compared = compare(truth, estimate)
    true = {frozenset(edge) for edge in truth.edges if set(edge) <= set(truth.latents)}
    edges = (*estimate.directed_edges, *estimate.undirected_edges)
    found = [edge for edge in edges if set(edge) <= set(estimate.latents)]
    shared = sum(frozenset(str(compared.matching[name]) for name in edge) in true for edge in found)
    return Judged(compared.f1, shared, len(found), len(true))
