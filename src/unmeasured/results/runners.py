"""Runners-up of a search, and edge probabilities made of them: model uncertainty without resampling.

The weight of a class is ``exp(-BIC difference / 2)``, what BIC says of its posterior probability, over the classes that
the search has fitted. It says how clearly the data choose among those, and nothing of classes that were never visited.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from unmeasured.arrays import Floats, Marks
from unmeasured.graphs import CPDAG
from unmeasured.graphs.outline import Outline, Tally
from unmeasured.search.discovery import RunnerUp


def weights(runners: Sequence[RunnerUp]) -> Floats:
    """(1 + R,) posterior weights of the best class and of its runners-up.

    >>> weights([])
    array([1.])
    """
    relative = np.exp([0.0, *(-runner.difference for runner in runners)])
    return np.asarray(relative / relative.sum())


def runners_table(graph: CPDAG, dimension: int, runners: Sequence[RunnerUp]) -> pd.DataFrame:
    """One row per class, the best first.

    ``bic_difference weight dimension latents groups edges n_shared_edges n_unique_edges``. ``n_shared_edges`` is the
    number of edges between groups, and from groups to observed variables, that it has in common with the best;
    ``n_unique_edges`` the number of those that the best does not have.
    """
    best = Outline.of(graph, graph.observed)
    rows = []
    everyone = [(graph, 0.0, dimension), *((r.graph, r.difference, r.dimension) for r in runners)]
    for (other, difference, size), weight in zip(everyone, weights(runners), strict=True):
        outline = Outline.of(other, graph.observed)
        seen = outline.seen_from(best)
        shared = int((seen.measures & best.measures).sum() + (_skeleton(seen) & _skeleton(best)).sum() // 2)
        n_edges = int(outline.measures.sum() + _skeleton(outline).sum() // 2)
        counts = (size, sum(outline.sizes), len(outline.sizes), n_edges, shared, n_edges - shared)
        rows.append((2.0 * difference, float(weight), *counts))
    columns = [
        "bic_difference",
        "weight",
        "dimension",
        "latents",
        "latent_groups",
        "edges",
        "n_shared_edges",
        "n_unique_edges",
    ]
    return pd.DataFrame(rows, columns=columns)


def edge_probabilities(graph: CPDAG, runners: Sequence[RunnerUp]) -> pd.DataFrame:
    """The table of :meth:`unmeasured.graphs.outline.Tally.edges`, with probabilities for frequencies."""
    outlines = [Outline.of(other, graph.observed) for other in (graph, *(runner.graph for runner in runners))]
    tally = Tally.of(outlines[0], outlines, weights(runners))
    table = tally.edges(graph.latent_groups, graph.observed).rename(columns={"frequency": "probability"})
    return table[table["in_graph"] | (table["probability"] > 1e-6)].reset_index(drop=True)


def _skeleton(outline: Outline) -> Marks:
    return np.asarray(outline.between | outline.between.T)
