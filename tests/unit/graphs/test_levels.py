"""Latents above latents in graphs: which edges measure, which class follows, what is identified."""

from __future__ import annotations

import numpy as np
import pytest

import unmeasured as um
from graphs_zoo import latent_chain, measured, two_traits
from unmeasured.graphs import DAG


def facets(names: str, items: int = 2) -> list[tuple[str, str]]:
    """Items of some latents."""
    return [(name, f"{name}{i}") for name in names for i in range(items)]


def test_flat_graphs_have_one_level() -> None:
    assert latent_chain.facets == {}
    assert set(latent_chain.cpdag().levels.values()) == {0}


def test_traits_point_at_their_facets_in_every_member() -> None:
    cpdag = two_traits.cpdag()
    assert cpdag.facets == {"T1": ("F1", "F2", "F3"), "T2": ("F4", "F5", "F6")}
    assert cpdag.undirected_edges == (("T1", "T2"),)
    assert {name for name, level in cpdag.levels.items() if level} == {"T1", "T2"}
    assert len(list(cpdag.members())) == 2
    assert all(member.cpdag() == cpdag for member in cpdag.members())


def test_a_facet_that_points_up_gives_the_same_class() -> None:
    """Reversed, the edge to what has no other neighbours gives the same covariances."""
    edges = [edge for edge in two_traits.edges if edge != ("T1", "F1")]
    up = DAG.from_edges([*edges, ("F1", "T1")], latents=two_traits.latents, names=two_traits.names)
    assert up.cpdag() == two_traits.cpdag()
    assert um.dimension(up) == um.dimension(two_traits)


def test_a_v_structure_may_point_up() -> None:
    edges = [("a", "T"), ("b", "T"), *measured(["T"], "cde"), *facets("abcde")]
    cpdag = DAG.from_edges(edges, latents=list("abcdeT")).cpdag()
    assert {("a", "T"), ("b", "T")} <= set(cpdag.directed_edges)
    assert cpdag.facets == {"T": ("c", "d", "e")}


def test_a_neighbour_with_other_edges_measures_nothing() -> None:
    edges = [*measured(["T"], "abcd"), ("d", "e"), *facets("abcde")]
    cpdag = DAG.from_edges(edges, latents=list("abcdeT")).cpdag()
    assert cpdag.facets == {"T": ("a", "b", "c")}
    assert set(cpdag.undirected_edges) == {("d", "e"), ("d", "T")}


def test_three_levels() -> None:
    edges = [("G", t) for t in ("S", "T", "U", "V")]
    names = ["ABC", "DEF", "HIJ", "KLM"]
    edges += [(t, f) for t, those in zip(("S", "T", "U", "V"), names, strict=True) for f in those]
    dag = DAG.from_edges([*edges, *facets("".join(names))], latents=[*"".join(names), *"STUVG"])
    cpdag = dag.cpdag()
    assert cpdag.levels["G"] == 2
    assert cpdag.levels["S"] == 1
    assert cpdag.levels["A"] == 0
    assert not cpdag.undirected_edges
    assert um.graphs.is_hierarchical(dag)


def test_what_data_cannot_tell_is_said() -> None:
    three = DAG.from_edges([*measured(["g"], "abc"), *facets("abc")], latents=list("abcg"))
    assert "(v) g has 3 neighbours" in str(um.graphs.is_hierarchical(three))
    two = DAG.from_edges([*measured(["g"], "ab"), *facets("ab")], latents=list("abg"))
    assert "(iv) g needs at least 3 latents" in str(um.graphs.is_hierarchical(two))
    assert um.graphs.is_hierarchical(two_traits)


def test_three_latents_below_one_are_three_with_all_edges() -> None:
    """Dimension, and fit to any data: why a common cause of three latents and nothing else is never reported."""
    model = um.simulate.hierarchy(n_traits=1, n_facets=3, n_items=2, rng=1)
    star = model.dag
    loadings = [edge for edge in star.edges if edge[0] != "T1"]
    full = DAG.from_edges([("F1", "F2"), ("F1", "F3"), ("F2", "F3"), *loadings], latents=["F1", "F2", "F3"])
    assert um.dimension(star) == um.dimension(full)
    rows = um.simulate.sample(model, 300, rng=2)
    assert um.fit(star, rows).chi2 == pytest.approx(um.fit(full, rows).chi2, abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_dimension_counts_paths(seed: int) -> None:
    """Free parameters of a hierarchical factor model are all determined: the rank of the Jacobian says so."""
    options = {"n_traits": 2, "n_free": 1} if seed else {"n_traits": 1, "n_free": 0, "n_levels": 3}
    dag = um.simulate.random_hierarchy(**options, n_facets=(3, 3), n_items=(2, 2), rng=seed)
    dimension = um.dimension(dag)
    assert dimension == dimension.n_free == len(dag.edges) + len(dag.observed)
    # Numerically, at a random point: columns of the Jacobian by central differences.
    parameters = um.simulate.realistic_parameters(dag, np.random.default_rng(seed))
    assert _numerical_rank(dag, parameters) == dimension


def _numerical_rank(dag: DAG, parameters: um.simulate.Parameters) -> int:
    d = len(dag.names)
    observed = [dag.names.index(name) for name in dag.observed]
    entries = [("F", dag.names.index(a), dag.names.index(b)) for a, b in dag.edges] + [("O", j, j) for j in observed]

    def sigma(F: np.ndarray, Omega: np.ndarray) -> np.ndarray:
        T = np.linalg.inv(np.eye(d) - F)[:, observed]
        return (T.T @ Omega @ T)[np.triu_indices(len(observed))]

    columns = []
    for kind, i, j in entries:
        ends = []
        for h in (1e-4, -1e-4):
            F, Omega = parameters.F.copy(), parameters.Omega.copy()
            (F if kind == "F" else Omega)[i, j] += h
            ends.append(sigma(F, Omega))
        columns.append((ends[0] - ends[1]) / 2e-4)
    return int(np.linalg.matrix_rank(np.column_stack(columns), tol=1e-6))
