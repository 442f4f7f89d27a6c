"""Effects: of one fit, and over a class; brute force is in tests/oracle/test_effects_over_the_class.py."""

from __future__ import annotations

import numpy as np
import pytest

import unmeasured as um
from graphs_zoo import latent_chain, measured, two_group_chain
from unmeasured.results import effects as module
from unmeasured.results.effects import Members


@pytest.fixture(scope="module")
def chain() -> um.Result:
    rows = um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 600, rng=5)
    return um.Result(latent_chain.cpdag(), um.fit(latent_chain, rows))


def test_total_is_direct_and_indirect(chain: um.Result) -> None:
    table = chain.fit.effects("L1", "L3")
    values = table.set_index("kind")["std"]
    assert list(table["kind"]) == ["total", "indirect"]  # there is no edge from L1 to L3
    paths = chain.latent_paths.set_index(["source", "target"])["std"]
    assert values["total"] == pytest.approx(paths["L1", "L2"] * paths["L2", "L3"])
    direct = chain.fit.effects("L1", "L2")
    assert list(direct["kind"]) == ["total", "direct"]
    assert direct["se"].iloc[0] == pytest.approx(direct["se"].iloc[1])
    loading = chain.fit.effects("L3", "x9").iloc[0]
    row = chain.loadings[(chain.loadings["latent"] == "L3") & (chain.loadings["indicator"] == "x9")].iloc[0]
    assert loading["std_se"] == pytest.approx(row["std_se"])
    assert len(chain.fit.effects(effect="x9")["cause"].unique()) == 3


def test_standard_errors_are_those_of_lavaans_defined_parameters() -> None:
    # tests/oracle/test_lavaan_after.py compares := with lavaan; here the same quantity comes by paths.
    data = um.datasets.load("political_democracy")
    text = (
        "i =~ x1 + x2 + x3; d =~ y1 + y2 + y3 + y4; e =~ y5 + y6 + y7 + y8; d ~ a*i; e ~ b*i + c*d;"
        "indirect := a*c; total := b + a*c"
    )
    fit = um.fit(text, cov=data.frame(), n_samples=data.n_samples)
    defined = fit.parameters[fit.parameters["op"] == ":="].set_index("lhs")
    effects = fit.effects("i", "e").set_index("kind")
    for kind in ("indirect", "total"):
        assert effects.loc[kind, "est"] == pytest.approx(defined.loc[kind, "est"])
        assert effects.loc[kind, "se"] == pytest.approx(defined.loc[kind, "se"])
        assert effects.loc[kind, "std"] == pytest.approx(defined.loc[kind, "std"])


def test_replicates_and_the_delta_method_agree_where_samples_are_large() -> None:
    rows = um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 2000, rng=5)
    fit = um.fit(latent_chain, rows)
    plain = fit.effects("L1", "L3").set_index("kind").loc["total"]
    drawn = fit.effects("L1", "L3", bootstrap=100, rng=1).set_index("kind").loc["total"]
    assert drawn["std"] == plain["std"]
    width = plain["std_upper"] - plain["std_lower"]
    assert drawn["std_lower"] == pytest.approx(plain["std_lower"], abs=0.25 * width)
    assert drawn["std_upper"] == pytest.approx(plain["std_upper"], abs=0.25 * width)


def test_a_chain_has_three_members_and_says_which_edge_decides(chain: um.Result) -> None:
    found = chain.effects("L1", "L3")
    assert chain.effects().n_members == 3
    assert list(found.values["members"]) == pytest.approx([2 / 3, 1 / 3] if found.largest > 0 else [1 / 3, 2 / 3])
    assert 0.0 in (found.smallest, found.largest)
    assert (found.decided_by, found.decides_all) == ("L1 – L2", True)
    assert "The direction of L1 – L2 decides it." in found.sentence
    matrix = chain.effects().matrix
    assert list(matrix.index) == list(matrix.columns) == ["L1", "L2", "L3"]
    assert matrix.loc["L1", "L1"] == ""
    assert " to " in matrix.loc["L1", "L3"]


def test_one_number_where_all_agree_and_zero_where_there_is_no_path() -> None:
    collider = um.DAG.from_edges(
        [("A", "C"), ("B", "C"), *((g, f"{g}{i}") for g in "ABC" for i in range(3))], latents=list("ABC")
    )
    rows = um.simulate.sample(um.simulate.realistic_parameters(collider, rng=1), 800, rng=2)
    result = um.Result(collider.cpdag(), um.fit(collider, rows))
    found = result.effects("A", "C")
    path = result.latent_paths.set_index(["source", "target"]).loc[("A", "C")]
    assert found.is_one_number
    assert found.smallest == pytest.approx(path["std"])
    assert found.values["se"].iloc[0] == pytest.approx(path["std_se"])
    assert "in every member of the class" in found.sentence
    assert result.effects("C", "A").smallest == 0.0
    assert "no member of the class has a directed path" in str(result.effects("C", "A"))
    assert result.effects("A", "C0").smallest == pytest.approx(
        result.fit.effects("A", "C0").set_index("kind").loc["total", "std"]
    )
    assert result.effects("C0", "A").smallest == 0.0


def test_a_latent_of_a_group_has_no_effect_of_its_own() -> None:
    rows = um.simulate.sample(um.simulate.paper_parameters(two_group_chain, rng=3), 800, rng=5)
    result = um.Result(two_group_chain.cpdag(), um.fit(two_group_chain, rows))
    group = next(group for group in result.graph.groups if len(group) > 1)
    other = next(name for name in result.graph.latents if name not in group)
    found = result.effects(other, group[0])
    assert np.isnan(found.smallest)
    assert f"{group[0]} is one of" in found.sentence
    assert "not which is which" in found.sentence


def test_a_class_that_is_too_large_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"L{i}" for i in range(7)]
    edges = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    edges += measured(names[:1], ["a1", "a2", "a3"]) + [(x, f"{x}{j}") for x in names[1:] for j in range(3)]
    full = um.DAG.from_edges(edges, latents=names)
    rows = um.simulate.sample(um.simulate.realistic_parameters(full, rng=1), 2000, rng=2)
    result = um.Result(full.cpdag(), um.fit(full, rows))
    members = Members.of(result)
    monkeypatch.setattr(module, "MOST_ORIENTATIONS", 100)
    assert members.n == float("inf")  # 5040 in fact
    assert len(result.effects("L0", "L1").values) > 10  # by the edges at L0 alone
    monkeypatch.setattr(module, "MOST_OPEN_EDGES", 4)
    with pytest.raises(um.UnmeasuredError, match=r"The class is too large: L0 has 6 edges without a direction"):
        result.effects("L0", "L1")


def test_mistakes_get_sentences(chain: um.Result) -> None:
    with pytest.raises(um.UnmeasuredError, match=r"'L9' is no variable of the graph.*Its latents are 'L1', 'L2', 'L3'"):
        chain.effects("L9", "L1")
    with pytest.raises(um.UnmeasuredError, match="'L1' has no effect on itself"):
        chain.effects("L1", "L1")
    with pytest.raises(um.UnmeasuredError, match="confidence is a probability"):
        chain.effects("L1", "L2", confidence=95)
    with pytest.raises(um.UnmeasuredError, match="'y' is no variable of the model"):
        chain.fit.effects("y")
    with pytest.raises(um.UnmeasuredError, match="bootstrap is a number of replicates from 50"):
        chain.fit.effects("L1", bootstrap=3)


def test_parts_of_a_class_are_oriented_independently_also_with_knowledge() -> None:
    # graph.members() enumerates the whole class at once; its parts, one by one, must give the same.
    rng = np.random.default_rng(0)
    several = 0
    for _ in range(60):
        n = int(rng.integers(3, 7))
        names = [f"L{i}" for i in range(n)]
        edges = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if rng.random() < 0.45]
        dag = um.DAG.from_edges([*edges, *((x, f"{x}{j}") for x in names for j in range(3))], latents=names)
        graph = dag.cpdag()
        open_ = [edge for edge in dag.edges if edge in graph.undirected_edges or edge[::-1] in graph.undirected_edges]
        if open_ and rng.random() < 0.6:
            graph = graph.restricted([open_[int(rng.integers(len(open_)))]])
        members = Members((*graph.groups, *((x,) for x in graph.observed)), graph.adjacency)
        every = list(graph.members())
        assert members.n == len(every)
        several += len(members.parts) > 1
        for k, name in enumerate(names):
            expected: dict[frozenset[str], float] = {}
            for member in every:
                parents = frozenset(member.parents(name))
                expected[parents] = expected.get(parents, 0.0) + 1.0 / len(every)
            ours = {frozenset(members.nodes[i][0] for i in s): share for s, share in members.parent_sets(k).items()}
            assert ours == pytest.approx(expected)
    assert several > 3


def test_standardised_loadings_on_correlated_latents_have_lavaans_errors() -> None:
    """``standardizedSolution(cfa(model, HolzingerSwineford1939, std.lv = TRUE))``, lavaan 0.6-14, 20 November 2026."""
    data = um.datasets.load("holzinger_swineford")
    text = "visual =~ x1 + x2 + x3 + x9\ntextual =~ x4 + x5 + x6\nspeed =~ x7 + x8 + x9"
    fit = um.fit(text, cov=data.frame(), n_samples=data.n_samples)
    for latent, std, error in (("visual", 0.383818, 0.060173), ("speed", 0.446514, 0.060614)):
        row = fit.effects(latent, "x9").set_index("kind").loc["direct"]
        assert abs(row["std"]) == pytest.approx(std, abs=1e-5)
        assert row["std_se"] == pytest.approx(error, abs=1e-5)
