from __future__ import annotations

import pickle
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from graphs_zoo import (
    group_collider,
    latent_chain,
    measured,
    mimic,
    one_factor,
    shared_child,
    two_group_chain,
    two_group_chain_reversed,
    zoo,
)
from small_graphs import all_dags, as_set, classes, union
from unmeasured.errors import GraphError
from unmeasured.graphs import (
    CPDAG,
    DAG,
    Variables,
    class_over_groups,
    from_json,
    from_networkx,
    generic_rank,
    is_markov_equivalent,
    markov_class,
    markov_members,
    textbook_cpdag_adjacency,
)


def factor_model(latent_graph: np.ndarray, sizes: tuple[int, ...]) -> DAG:
    """A GNFM whose groups have these sizes and edges, each with twice as many pure children as latents."""
    groups = [[f"L{g}{chr(97 + k)}" for k in range(size)] for g, size in enumerate(sizes)]
    edges = [edge for i, j in np.argwhere(latent_graph) for edge in measured(groups[i], groups[j])]
    for g, group in enumerate(groups):
        edges += measured(group, indicators(g, sizes))
    return DAG.from_edges(edges, latents=[name for group in groups for name in group])


def indicators(g: int, sizes: tuple[int, ...]) -> list[str]:
    return [f"x{g}{k}" for k in range(2 * sizes[g])]


def between_groups(graph: DAG | CPDAG, sizes: tuple[int, ...]) -> np.ndarray:
    """The part of the matrix among the first latents of each group."""
    first = [graph.variables.index(f"L{g}a") for g in range(len(sizes))]
    return graph.adjacency[np.ix_(first, first)]


# --- the class over groups ------------------------------------------------------------------------------


def test_reversing_an_edge_at_a_group_stays_in_the_class_over_groups() -> None:
    down, up = two_group_chain, two_group_chain_reversed
    assert down.cpdag() == up.cpdag()
    assert down.cpdag().undirected_edges == (("L1", "L2"), ("L1", "L3"))
    assert down.cpdag().latent_groups == (("L1",), ("L2", "L3"))
    assert set(down.cpdag().members()) == {down, up}
    # as single variables the second has a v-structure at L1 and the first has none
    assert not is_markov_equivalent(down, up)
    assert markov_class(down) != markov_class(up)
    assert not np.array_equal(textbook_cpdag_adjacency(down), textbook_cpdag_adjacency(up))


@pytest.mark.parametrize("sizes", [(1, 2, 1), (2, 1, 3), (1, 2, 1, 1)])
def test_class_over_groups_by_brute_force(sizes: tuple[int, ...]) -> None:
    for members in classes(len(sizes)):
        expected = union(members)
        wanted = [factor_model(member, sizes) for member in members]
        for dag in wanted[:3]:
            cpdag = dag.cpdag()
            assert [len(group) for group in cpdag.latent_groups] == list(sizes)
            assert np.array_equal(between_groups(cpdag, sizes), expected)
            assert cpdag == wanted[0].cpdag()
            assert set(cpdag.directed_edges) >= {(a, b) for a, b in dag.edges if b.startswith("x")}
        found = list(cpdag.members())
        assert len(found) == len(wanted)
        assert {member.edges for member in found} == {
            DAG.from_edges(dag.edges, latents=dag.latents, names=cpdag.names).edges for dag in wanted
        }


@pytest.mark.parametrize("sizes", [(1, 2, 1), (2, 1, 1, 1)])
def test_classes_over_groups_are_the_classes_of_equal_rank_constraints(sizes: tuple[int, ...]) -> None:
    """The theorem as a test: two models share a class if and only if they share the ranks the proof uses.

    Li and Lj are separated by a set of groups exactly when the cross-covariance of |Li| children of Li and a
    first half of the separators' children with |Lj| children of Lj and the second half has that set's rank.
    """
    n = range(len(sizes))
    together: dict[tuple[int, ...], set[bytes]] = {}
    for matrix in all_dags(len(sizes)):
        dag = factor_model(matrix, sizes)
        signature = []
        for i, j in combinations(n, 2):
            others = [k for k in n if k not in (i, j)]
            for given in (c for r in range(len(others) + 1) for c in combinations(others, r)):
                rows = indicators(i, sizes)[: sizes[i]]
                columns = indicators(j, sizes)[: sizes[j]]
                for k in given:
                    rows = rows + indicators(k, sizes)[: sizes[k]]
                    columns = columns + indicators(k, sizes)[sizes[k] :]
                signature.append(generic_rank(dag, rows, columns))
        completed = between_groups(dag.cpdag(), sizes)
        together.setdefault(tuple(signature), set()).update(as_set([completed]))
    assert all(len(found) == 1 for found in together.values())
    assert len(together) == len(classes(len(sizes)))


def test_a_v_structure_between_groups_is_directed() -> None:
    cpdag = group_collider.cpdag()
    assert cpdag.undirected_edges == ()
    assert list(cpdag.members()) == [group_collider]


def test_indicators_keep_their_direction() -> None:
    assert one_factor.cpdag().undirected_edges == ()
    assert textbook_cpdag_adjacency(one_factor).sum() == 8  # the textbook leaves g – x undirected
    assert latent_chain.cpdag().undirected_edges == (("L1", "L2"), ("L2", "L3"))


def test_directions_of_indicators_count_as_knowledge() -> None:
    # L → y – z with L, z not adjacent: y → z, as in every member that keeps L → y
    cpdag = mimic.cpdag()
    assert ("y", "z") in cpdag.directed_edges
    assert ("p", "L") in cpdag.directed_edges


def test_a_graph_that_is_no_factor_model_has_single_latents_as_groups() -> None:
    edges = [("L1", "L2"), *measured(["L1", "L2"], ["x1", "x2", "x3", "x4"])]
    dag = DAG.from_edges(edges, latents=["L1", "L2"])
    assert dag.latent_groups == (("L1", "L2"),)
    assert dag.cpdag().latent_groups == (("L1",), ("L2",))
    assert dag.cpdag() == markov_class(dag)


def test_without_latents_the_class_is_the_textbook_one() -> None:
    for matrix in all_dags(3):
        dag = DAG(Variables.of(["a", "b", "c"]), matrix)
        assert np.array_equal(dag.cpdag().adjacency, textbook_cpdag_adjacency(dag))


def test_groups_given_must_be_nodes_of_the_graph() -> None:
    with pytest.raises(GraphError, match=r"not single nodes of the graph: \(ii\) L3 is caused by L2 but not by L1"):
        class_over_groups(latent_chain, [["L1", "L2"], ["L3"]])
    assert class_over_groups(latent_chain, [["L3"], ["L2"], ["L1"]]) == latent_chain.cpdag()


# --- single variables -----------------------------------------------------------------------------------


def test_markov_equivalence_is_about_names_not_order() -> None:
    a = DAG.from_edges([("a", "b"), ("b", "c")], names=["a", "b", "c"])
    b = DAG.from_edges([("c", "b"), ("b", "a")], names=["c", "b", "a"])
    assert is_markov_equivalent(a, b)
    assert not is_markov_equivalent(a, DAG.from_edges([("a", "b"), ("c", "b")]))
    assert not is_markov_equivalent(a, DAG.from_edges([("a", "b")]))
    assert not is_markov_equivalent(a, DAG.from_edges([("a", "b")], names=["a", "b", "c"]))


def test_markov_members_are_the_class() -> None:
    names = Variables.of(["a", "b", "c", "d"], ["a"])
    for members in classes(4):
        found = list(markov_members(DAG(names, members[0])))
        assert len(found) == len(members)
        assert as_set([member.adjacency for member in found]) == as_set(members)


# --- the type -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(zoo))
def test_what_we_build_passes_our_own_checks(name: str) -> None:
    for cpdag in (zoo[name].cpdag(), markov_class(zoo[name])):
        again = CPDAG(cpdag.variables, cpdag.adjacency, cpdag.latent_groups)
        assert again == cpdag
        assert hash(again) == hash(cpdag)
        assert not again.adjacency.flags.writeable


def test_member_is_always_the_same_and_points_from_low_to_high() -> None:
    assert latent_chain.cpdag().member() == latent_chain
    assert two_group_chain_reversed.cpdag().member() == two_group_chain


def test_groups_are_kept_in_the_order_of_the_graph() -> None:
    cpdag = two_group_chain.cpdag()
    assert CPDAG(cpdag.variables, cpdag.adjacency, (("L3", "L2"), ("L1",))) == cpdag


def _changed(dag: DAG, groups: list[list[str]], **entries: int) -> CPDAG:
    """The class of a DAG with some entries changed; ``L1_L2=1`` sets the entry [L1, L2]."""
    adjacency = dag.cpdag().adjacency.copy()
    for place, value in entries.items():
        row, column = place.split("_")
        adjacency[dag.variables.index(row), dag.variables.index(column)] = value
    return CPDAG(dag.variables, adjacency, groups)


PAIR = [["L1"], ["L2", "L3"]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: _changed(two_group_chain, PAIR, L2_L3=1),
            r"L2 and L3 are adjacent but in one group, \{L2, L3\}; members of a group are not adjacent",
        ),
        (
            lambda: _changed(two_group_chain, PAIR, L1_L3=0, L3_L1=0),
            "L2 and L3 are in one group but their edges with L1 differ; edges hold for every member",
        ),
        (
            lambda: _changed(two_group_chain, PAIR, L3_x6=0),
            "L2 and L3 are in one group but their edges with x6 differ",
        ),
        (
            lambda: _changed(one_factor, [["g"]], x2_g=1),
            "The edge g – x2 is undirected; .* directed by the model. Keep g → x2 only.",
        ),
        (
            lambda: _changed(DAG.from_edges([("a", "c"), ("b", "c"), ("c", "d")]), [], d_c=1),
            "The edge d – c is undirected, but every DAG of the class has c → d, .* not a completed PDAG",
        ),
        (
            lambda: _changed(two_group_chain, PAIR, L2_L1=0, L3_L1=0),
            "The edge L1 → L2 is directed, but some DAG of the class has L2 → L1, so .* not a completed PDAG",
        ),
        (lambda: _changed(shared_child, [["L1"], ["x7", "L2"]]), "'x7' is observed"),
        (lambda: _changed(one_factor, [["g"]], g_g=1), "g has an edge to itself; set the diagonal to 0"),
        (lambda: _changed(one_factor, [["g"]], g_x1=2), "holds 0 and 1; got 2 for the edge g → x1"),
    ],
)
def test_what_is_no_class_is_refused(call, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        call()


def test_a_graph_without_extension_is_refused() -> None:
    square = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    with pytest.raises(GraphError, match="No DAG has these edges without a cycle or a further v-structure"):
        CPDAG(Variables.of(["a", "b", "c", "d"]), square, ())
    cycle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    with pytest.raises(GraphError, match="No DAG has these edges without a cycle"):
        CPDAG(Variables.of(["a", "b", "c"]), cycle, ())


def test_exactly_the_classes_pass_the_checks() -> None:
    """Of all 64 tables on three observed nodes, those accepted are the 11 CPDAGs."""
    names = Variables.of(["a", "b", "c"])
    places = [(i, j) for i in range(3) for j in range(3) if i != j]
    accepted = []
    for number in range(64):
        table = np.zeros((3, 3), dtype=np.uint8)
        for bit, place in enumerate(places):
            table[place] = number >> bit & 1
        try:
            accepted.append(CPDAG(names, table, ()).adjacency)
        except GraphError:
            continue
    assert as_set(accepted) == as_set([union(members) for members in classes(3)])


def test_it_prints_something_useful() -> None:
    cpdag = two_group_chain.cpdag()
    assert repr(cpdag) == "<CPDAG: 3 latent in 2 groups, 6 observed; 10 directed edges, 2 undirected>"
    assert str(cpdag).splitlines()[:3] == ["L1 – L2, L3", "L1 → x1, x2", "L2 → x3, x4, x5, x6"]
    assert cpdag != "a string"


def test_knowledge_restricts_a_class_and_survives_every_way_out() -> None:
    chain = latent_chain.cpdag()
    told = chain.restricted([("L1", "L2")])
    assert told.known == (("L1", "L2"),)
    assert told.undirected_edges == ()
    assert [member.edges for member in told.members()] == [latent_chain.edges]
    assert told != chain
    assert told.without_knowledge == chain
    assert pickle.loads(pickle.dumps(told)) == told
    assert from_json(told.to_json()) == told
    assert from_networkx(told.to_networkx()) == told
    assert from_networkx(nx.parse_gml(told.to_gml().splitlines())) == told
    assert told.rename({"L1": "speed"}).known == (("speed", "L2"),)
    # what the data tell already is no knowledge
    assert group_collider.cpdag().restricted([("L1", "L3")]).known == ()


def test_knowledge_that_no_member_has_is_refused() -> None:
    with pytest.raises(GraphError, match="No DAG of this class has L1 → L2, L3 → L2"):
        latent_chain.cpdag().restricted([("L1", "L2"), ("L3", "L2")])
    told = latent_chain.cpdag().restricted([("L1", "L2")])
    with pytest.raises(GraphError, match="L2 → L1 is said to be known"):
        CPDAG(told.variables, told.adjacency, told.latent_groups, (("L2", "L1"),))
