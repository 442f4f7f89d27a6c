"""Effects over a class against brute force: every orientation of the edges, each member fitted by itself.

Which orientations are members is decided here by the definition (no cycle, the same v-structures between groups), and
the effect in each is read off a fit of that member, by following its paths; the code under test fits nothing again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest

import unmeasured as um
from unmeasured.models.fit import Fit
from unmeasured.results import effects as under_test


def random_model(seed: int) -> um.DAG:
    """Two to five groups, some of two latents, with pure indicators and random edges between the groups."""
    rng = np.random.default_rng(seed)
    n_groups = 5 if seed % 20 < 2 else int(rng.integers(2, 5))
    sizes = [2 if rng.random() < 0.2 else 1 for _ in range(n_groups)]
    groups = [[f"L{g}{k}" for k in range(size)] for g, size in enumerate(sizes)]
    edges = []
    for a, b in itertools.combinations(range(n_groups), 2):
        if rng.random() < 0.6:
            edges += [(x, y) for x in groups[a] for y in groups[b]]
    for g, group in enumerate(groups):
        edges += [(x, f"x{g}{j}") for x in group for j in range(3 if len(group) == 1 else 6)]
    return um.DAG.from_edges(edges, latents=[x for group in groups for x in group])


def members(dag: um.DAG) -> Iterator[um.DAG]:
    """All DAGs of the class, by brute force over the groups."""
    groups = dag.latent_groups
    pairs = [(a, b) for a, b in itertools.combinations(range(len(groups)), 2) if _adjacent(dag, groups[a], groups[b])]
    truth = [(a, b) if dag.has_edge(groups[a][0], groups[b][0]) else (b, a) for a, b in pairs]
    wanted = _colliders(truth)
    loadings = [(a, b) for a, b in dag.edges if b in dag.observed]
    for turned in itertools.product([False, True], repeat=len(pairs)):
        arcs = [(b, a) if turn else (a, b) for (a, b), turn in zip(pairs, turned)]
        if nx.is_directed_acyclic_graph(nx.DiGraph(arcs)) and _colliders(arcs) == wanted:
            edges = [(x, y) for a, b in arcs for x in groups[a] for y in groups[b]]
            yield um.DAG.from_edges([*edges, *loadings], latents=dag.latents, names=dag.names)


def _adjacent(dag: um.DAG, a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    return dag.has_edge(a[0], b[0]) or dag.has_edge(b[0], a[0])


def _colliders(arcs: list[tuple[int, int]]) -> set[tuple[int, int, int]]:
    near = {frozenset(arc) for arc in arcs}
    found = set()
    for (a, b), (c, d) in itertools.combinations(arcs, 2):
        if b == d and frozenset((a, c)) not in near:
            found.add((min(a, c), b, max(a, c)))
    return found


def standardised_total(fit: Fit) -> dict[tuple[str, str], float]:
    """Sums of products along all directed paths, in standard deviations."""
    graph = nx.DiGraph()
    names, sd = fit.causal_order, np.sqrt(np.diag(fit.full_cov))
    for i, j in zip(*np.nonzero(fit.F)):
        graph.add_edge(names[i], names[j], weight=fit.F[i, j] * sd[i] / sd[j])
    total = {}
    for a, b in itertools.permutations(fit.model.latents, 2):
        paths = nx.all_simple_edge_paths(graph, a, b) if a in graph and b in graph else []
        total[a, b] = sum(float(np.prod([graph.edges[edge]["weight"] for edge in path])) for path in paths)
    return total


def test_two_hundred_models_against_all_their_members(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = several = 0
    for seed in range(200):
        dag = random_model(seed)
        rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=seed), 3000, rng=seed + 1)
        sample = um.as_sample(cov=rows.cov(), n_samples=len(rows))
        fits = [um.fit(member, sample) for member in members(dag)]
        chi2 = [fit.chi2 for fit in fits]
        if not all(fit.converged and fit.admissible for fit in fits) or max(chi2) - min(chi2) > 1e-6:
            continue
        expected = [standardised_total(fit) for fit in fits]
        result = um.Result(dag.cpdag(), um.fit(dag, sample))
        monkeypatch.setattr(under_test, "MOST_ORIENTATIONS", 5000 if seed % 2 else 1)  # the local way, too
        found = result.effects()
        signs = [{x: _sign(fit, result.fit, x) for x in dag.latents} for fit in fits]
        assert found.n_members == len(fits) or seed % 2 == 0
        for ours in found.pairs:
            a, b = ours.cause, ours.effect
            theirs = [total[a, b] * sign[a] * sign[b] for total, sign in zip(expected, signs)]
            distinct = _distinct(theirs)
            assert ours.values["std"].to_numpy() == pytest.approx(distinct, abs=1e-5), (seed, a, b)
            if seed % 2:
                shares = [sum(abs(x - value) < 1e-6 for x in theirs) / len(theirs) for value in distinct]
                assert ours.values["members"].to_numpy() == pytest.approx(shares)
            compared += 1
            several += len(distinct) > 1
    assert compared > 400
    assert several > 150


def _sign(fit: Fit, other: Fit, latent: str) -> float:
    """Whether a latent points the same way in two fits of the same rows."""
    items = fit.model.observed
    ours, theirs = (f.F[f.causal_order.index(latent), [f.causal_order.index(x) for x in items]] for f in (fit, other))
    return float(np.sign(ours @ theirs))


def _distinct(values: list[float]) -> list[float]:
    kept: list[float] = []
    for value in sorted(values):
        if not kept or value - kept[-1] > 1e-6:
            kept.append(value)
    return kept
