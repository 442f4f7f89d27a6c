"""The array functions against brute force over all DAGs with up to four nodes."""

from __future__ import annotations

import numpy as np
import pytest

from small_graphs import all_dags, as_set, classes, is_acyclic, markov_key, random_dag, union
from unmeasured.graphs import consistent_extension, cpdag_of
from unmeasured.graphs.orientation import all_extensions, restricted, v_structures


@pytest.mark.parametrize(("d", "dags", "n_classes"), [(1, 1, 1), (2, 3, 2), (3, 25, 11), (4, 543, 185)])
def test_brute_force_agrees_with_the_known_counts(d: int, dags: int, n_classes: int) -> None:
    assert len(all_dags(d)) == dags
    assert len(classes(d)) == n_classes


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_cpdag_directs_what_all_members_direct(d: int) -> None:
    for members in classes(d):
        expected = union(members)
        for member in members:
            assert np.array_equal(cpdag_of(member), expected)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_all_extensions_are_all_members_each_once(d: int) -> None:
    for members in classes(d):
        found = list(all_extensions(cpdag_of(members[0])))
        assert len(found) == len(members)
        assert as_set(found) == as_set(members)


def test_fixed_edges_give_the_part_of_the_class_that_agrees_with_them() -> None:
    # every set of roles on every DAG with four nodes: edges across roles are fixed, as with latents
    roles = np.array([[role >> i & 1 for i in range(4)] for role in range(8)], dtype=bool)
    for members in classes(4):
        for role in roles:
            fixed = role[:, None] != role[None, :]
            for member in members:
                _assert_is_the_agreeing_part(members, member, fixed)


def test_any_edges_may_be_fixed() -> None:
    # not only those across roles; only such knowledge needs Meek's fourth rule
    rng = np.random.default_rng(2)
    for members in classes(4):
        for member in members:
            for _ in range(4):
                upper = np.triu(rng.random((4, 4)) < 0.4, 1)
                _assert_is_the_agreeing_part(members, member, upper | upper.T)


def _assert_is_the_agreeing_part(members: tuple[np.ndarray, ...], member: np.ndarray, fixed: np.ndarray) -> None:
    agreeing = [m for m in members if np.array_equal(m[fixed], member[fixed])]
    completed = cpdag_of(member, fixed)
    assert np.array_equal(completed, union(agreeing))
    found = list(all_extensions(completed))
    assert len(found) == len(agreeing)
    assert as_set(found) == as_set(agreeing)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_a_restricted_class_directs_what_all_members_that_agree_direct(d: int) -> None:
    # any arcs at all, also such as no member has: then there is no class left
    rng = np.random.default_rng(5)
    n_empty = 0
    for members in classes(d):
        for _ in range(6):
            told = [(a, b) for a in range(d) for b in range(d) if a != b and rng.random() < 0.2]
            agreeing = [m for m in members if all(m[arc] for arc in told)]
            found = restricted(union(members), told)
            n_empty += not agreeing
            if agreeing:
                assert found is not None
                assert np.array_equal(found, union(agreeing))
                assert as_set(list(all_extensions(found))) == as_set(agreeing)
            else:
                assert found is None
    assert n_empty > 0


@pytest.mark.parametrize("d", [2, 3, 4])
def test_extension_of_a_cpdag_is_a_member(d: int) -> None:
    for members in classes(d):
        extension = consistent_extension(union(members))
        assert extension is not None
        assert as_set([extension]) <= as_set(members)


def test_extension_exists_exactly_when_some_dag_fits() -> None:
    # all 4^3 partially directed graphs on three nodes and a random 150 on four
    rng = np.random.default_rng(3)
    for d, tables in ((3, _all_tables(3)), (4, (rng.random((150, 4, 4)) < 0.55).astype(np.uint8))):
        for table in tables:
            np.fill_diagonal(table, 0)
            extension = consistent_extension(table)
            fitting = [dag for dag in all_dags(d) if _extends(dag, table)]
            assert (extension is not None) == bool(fitting)
            if extension is not None:
                assert as_set([extension]) <= as_set(fitting)


def _all_tables(d: int) -> np.ndarray:
    places = [(i, j) for i in range(d) for j in range(d) if i != j]
    tables = np.zeros((2 ** len(places), d, d), dtype=np.uint8)
    for number, table in enumerate(tables):
        for bit, place in enumerate(places):
            table[place] = number >> bit & 1
    return tables


def _extends(dag: np.ndarray, table: np.ndarray) -> bool:
    """Same skeleton, keeps the arrows, and no v-structure but those whose arrows were there."""
    directed = table & ~table.T & 1
    same_skeleton = np.array_equal(dag | dag.T, table | table.T)
    keeps = not (directed & ~dag & 1).any()
    return same_skeleton and keeps and markov_key(dag)[1] == markov_key(directed)[1] & _nonadjacent(table)


def _nonadjacent(table: np.ndarray) -> frozenset[tuple[int, int, int]]:
    joined = table | table.T
    d = range(len(table))
    return frozenset((a, b, c) for a in d for b in d for c in d if a < c and not joined[a, c])


def test_extension_points_from_low_to_high_where_it_can() -> None:
    complete = np.ones((4, 4), dtype=np.uint8) - np.eye(4, dtype=np.uint8)
    assert np.array_equal(consistent_extension(complete), np.triu(complete))


def test_v_structures_against_the_definition() -> None:
    for dag in all_dags(4):
        assert v_structures(dag) == set(markov_key(dag)[1])


def test_larger_graphs_keep_skeleton_and_v_structures() -> None:
    rng = np.random.default_rng(11)
    for _ in range(60):
        dag = random_dag(rng, int(rng.integers(8, 40)), float(rng.uniform(0.05, 0.4)))
        completed = cpdag_of(dag)
        extension = consistent_extension(completed)
        assert extension is not None
        assert is_acyclic(extension)
        assert np.array_equal(extension | extension.T, dag | dag.T)
        assert v_structures(extension) == v_structures(dag)
        assert np.array_equal(cpdag_of(extension), completed)


def test_no_nodes_at_all() -> None:
    empty = np.zeros((0, 0), dtype=np.uint8)
    assert cpdag_of(empty).shape == (0, 0)
    assert consistent_extension(empty).shape == (0, 0)
