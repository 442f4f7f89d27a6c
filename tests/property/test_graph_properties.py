"""What must hold for every graph: classes and their members, ranks, encodings."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs_zoo import measured
from profiles import examples
from unmeasured.graphs import (
    CPDAG,
    DAG,
    Variables,
    from_json,
    from_networkx,
    generic_rank,
    is_d_separated,
    is_gnfm,
    is_markov_equivalent,
    markov_class,
    markov_members,
    textbook_cpdag_adjacency,
)

quick = settings(max_examples=examples(60), deadline=None)


@st.composite
def dags(draw: st.DrawFn, max_nodes: int = 7) -> DAG:
    """Any DAG with up to that many nodes, some of them latent, in any order of names."""
    d = draw(st.integers(1, max_nodes))
    upper = np.zeros((d, d), dtype=np.uint8)
    for i in range(d):
        for j in range(i + 1, d):
            upper[i, j] = draw(st.booleans())
    order = draw(st.permutations(range(d)))
    names = [f"v{i}" for i in range(d)]
    latents = draw(st.lists(st.sampled_from(names), unique=True))
    return DAG(Variables.of(names, latents), upper[np.ix_(order, order)])


@st.composite
def factor_models(draw: st.DrawFn) -> DAG:
    """Generalized N factor models with up to four groups of one or two latents, common children included."""
    sizes = draw(st.lists(st.integers(1, 2), min_size=1, max_size=4))
    groups = [[f"L{g}_{k}" for k in range(size)] for g, size in enumerate(sizes)]
    edges: list[tuple[str, str]] = []
    for j, group in enumerate(groups):
        for above in groups[:j]:
            if draw(st.booleans()):
                edges += measured(above, group)
        edges += measured(group, [f"x{j}_{k}" for k in range(2 * len(group))])
    for k in range(draw(st.integers(0, 2))):
        for group in draw(st.lists(st.sampled_from(groups), unique_by=tuple, min_size=1)):
            edges += measured(group, [f"common{k}"])
    latents = draw(st.permutations([name for group in groups for name in group]))
    return DAG.from_edges(edges, latents=latents)


@quick
@given(dags(max_nodes=6))
def test_all_members_of_a_markov_class_give_the_same_cpdag(dag: DAG) -> None:
    textbook = textbook_cpdag_adjacency(dag)
    members = list(markov_members(dag))
    assert dag in members
    assert len(set(members)) == len(members)
    for member in members:
        assert is_markov_equivalent(member, dag)
        assert np.array_equal(textbook_cpdag_adjacency(member), textbook)


@quick
@given(dags())
def test_the_member_of_a_class_returns_to_it(dag: DAG) -> None:
    for cpdag, back in ((dag.cpdag(), DAG.cpdag), (markov_class(dag), markov_class)):
        assert back(cpdag.member()) == cpdag
        assert CPDAG(cpdag.variables, cpdag.adjacency, cpdag.latent_groups) == cpdag


@quick
@given(factor_models())
def test_all_members_of_a_class_over_groups_return_to_it(dag: DAG) -> None:
    cpdag = dag.cpdag()
    members = list(cpdag.members())
    assert dag in members
    assert len(set(members)) == len(members)
    for member in members[:8]:
        assert is_gnfm(member)
        assert member.cpdag() == cpdag
        assert member.latent_groups == cpdag.latent_groups == dag.latent_groups


@quick
@given(factor_models())
def test_members_of_a_class_over_groups_imply_the_same_ranks(dag: DAG) -> None:
    observed, half = dag.observed, len(dag.observed) // 2
    for a, b in ((observed[:half], observed[half:]), (observed[::2], observed[1::2])):
        ranks = {generic_rank(member, a, b) for _, member in zip(range(4), dag.cpdag().members())}
        assert len(ranks) == 1


@quick
@given(factor_models())
def test_the_class_over_groups_is_no_finer_than_the_markov_class(dag: DAG) -> None:
    over_groups, over_variables = dag.cpdag().adjacency, markov_class(dag).adjacency
    assert np.all(over_groups >= over_variables)


@quick
@given(dags(), st.data())
def test_rank_is_symmetric_bounded_and_monotone(dag: DAG, data: st.DataObject) -> None:
    subsets = st.lists(st.sampled_from(dag.names), unique=True)
    a, b, more = data.draw(subsets), data.draw(subsets), data.draw(st.sampled_from(dag.names))
    rank = generic_rank(dag, a, b)
    assert rank == generic_rank(dag, b, a)
    assert rank <= min(len(a), len(b))
    assert rank <= generic_rank(dag, {*a, more}, b) <= rank + 1
    assert generic_rank(dag, a, a) == len(a)


@quick
@given(dags())
def test_variables_without_an_edge_can_be_separated(dag: DAG) -> None:
    # a node is separated from its non-descendants by its parents
    for name in dag.names:
        order = [dag.names[i] for i in dag.topological_order]
        others = set(order[: order.index(name)]) - set(dag.parents(name))
        if others:
            assert is_d_separated(dag, name, others, dag.parents(name))


@quick
@given(dags())
def test_encodings_come_back(dag: DAG) -> None:
    for graph in (dag, dag.cpdag()):
        assert from_json(graph.to_json()) == graph
        assert from_networkx(graph.to_networkx()) == graph
