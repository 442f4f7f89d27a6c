"""A class out of frequencies, which is always a factor model (Def. 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unmeasured.arrays import Bools, Floats, Marks
from unmeasured.errors import UnmeasuredError
from unmeasured.graphs import CPDAG, DAG, cpdag_of
from unmeasured.graphs.outline import Tally


def consensus_class(
    tally: Tally,
    groups: Sequence[tuple[str, ...]],
    observed: Sequence[str],
    threshold: float,
    covariates: Sequence[str] = (),
) -> CPDAG:
    """What reaches the threshold, less what then is no factor model; variables without a group are left out."""
    measures = tally.loadings >= threshold
    kept = _kept_groups(measures, tally)
    if not kept:
        raise UnmeasuredError(
            f"No group keeps two indicators of its own in {threshold:.0%} of the replicates, so there is no consensus "
            "at this threshold. Try a lower one."
        )
    others = tally.reference.others
    nodes = [*kept, *range(len(groups), len(groups) + len(others))]
    members = [*(groups[g] for g in kept), *((name,) for name in others)]
    marks = _most_frequent_marks(tally, nodes, len(kept), threshold)
    edges = [(latent, observed[j]) for g in kept for latent in groups[g] for j in np.flatnonzero(measures[g]).tolist()]
    for a, b in np.argwhere(marks):
        edges += [(source, target) for source in members[a] for target in members[b]]
    placed = [name for name, has_group in zip(observed, measures[kept].sum(axis=0) > 0) if has_group]
    if others:
        direct = np.average([outline.direct for outline in tally.classes], axis=0, weights=tally.weights) >= threshold
        edges += [(others[k], observed[j]) for k, j in np.argwhere(direct).tolist() if observed[j] in placed]
    latents = [latent for g in kept for latent in groups[g]]
    roles = {
        "covariates": [x for x in others if x in covariates],
        "outcomes": [x for x in others if x not in covariates],
    }
    return DAG.from_edges(edges, latents=latents, names=[*latents, *placed, *others], **roles).cpdag()


def _kept_groups(measures: Bools, tally: Tally) -> list[int]:
    """Groups with two pure indicators for each latent.

    One at a time is dropped: the indicators it shared become pure ones of the others, who may then stay.
    """
    kept = list(range(len(measures)))
    wanted = tally.reference.measures
    consistency = (tally.loadings * wanted).sum(axis=1) / np.maximum(wanted.sum(axis=1), 1)
    while True:
        alone = measures[kept].sum(axis=0) == 1
        short = [g for g in kept if (measures[g] & alone).sum() < 2 * tally.reference.sizes[g]]
        if not short:
            return kept
        kept.remove(min(short, key=lambda g: float(consistency[g])))


def _most_frequent_marks(tally: Tally, kept: Sequence[int], n_groups: int, threshold: float) -> Marks:
    """Arcs of a graph over the nodes kept, groups first, with the edges that reach the threshold.

    Of all ways to direct them, one whose class has the marks seen most often: first each edge as it points most often,
    then single edges are turned while that helps.
    """
    square = np.ix_(kept, kept)
    directed, undirected = tally.directed[square], tally.undirected[square]
    pairs = [(int(a), int(b)) for a, b in np.argwhere(np.triu(tally.adjacent[square] >= threshold, 1))]
    arcs = _greedy_arcs(pairs, directed)
    best = _agreement(arcs, directed, undirected)
    improved = True
    while improved:
        improved = False
        for a, b in pairs:
            # The direction of an edge with a covariate or an outcome is not open, but for one between two outcomes.
            if max(a, b) >= n_groups and not (directed[a, b] and directed[b, a]) and not undirected[a, b]:
                continue
            turned = arcs.copy()
            turned[a, b], turned[b, a] = arcs[b, a], arcs[a, b]
            if not _has_cycle(turned) and (value := _agreement(turned, directed, undirected)) > best + 1e-12:
                arcs, best, improved = turned, value, True
    return arcs


def _greedy_arcs(pairs: Sequence[tuple[int, int]], directed: Floats) -> Marks:
    """Edges as they point most often, the clearest first; one that would close a cycle points the other way."""
    arcs = np.zeros(directed.shape, np.uint8)
    for a, b in sorted(pairs, key=lambda pair: -abs(directed[pair] - directed[pair[::-1]])):
        first, second = (b, a) if directed[b, a] > directed[a, b] else (a, b)
        arcs[first, second] = 1
        if _has_cycle(arcs):
            arcs[first, second], arcs[second, first] = 0, 1
    return arcs


def _agreement(arcs: Marks, directed: Floats, undirected: Floats) -> float:
    """Sum over the edges of how often each has the mark it has in the class of these arcs."""
    marks = cpdag_of(arcs)
    return float((directed * (marks > marks.T)).sum() + (undirected * np.triu(marks & marks.T)).sum())


def _has_cycle(arcs: Marks) -> bool:
    left = np.ones(len(arcs), dtype=bool)
    while left.any():
        roots = left & ~arcs[left].any(axis=0)
        if not roots.any():
            return True
        left &= ~roots
    return False
