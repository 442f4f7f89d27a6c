"""Latents above latents: found where they are, not where they are not, at every level and with every option."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import unmeasured as um
from benchmarks.consistency import population, random_hierarchical_truth
from unmeasured.graphs.levels import lineage
from unmeasured.models.dimension import jacobian_rank
from unmeasured.models.solve import never
from unmeasured.search.hierarchy.blocks import LatentScore, choice_of_blocks, choice_of_edges, promising
from unmeasured.search.hierarchy.model import RaisedModel
from unmeasured.search.model import FactorModel


@pytest.fixture(scope="module")
def traits() -> um.simulate.Parameters:
    return um.simulate.hierarchy(rng=77)


@pytest.fixture(scope="module")
def search(traits: um.simulate.Parameters) -> um.LGES:
    return um.LGES().fit(um.simulate.sample(traits, 1000, rng=78))


def test_facets_and_traits_are_found(traits: um.simulate.Parameters, search: um.LGES) -> None:
    dag, levels = traits.dag, search.result_.partitions
    facet = [dag.parents(item)[0] for item in levels[0].index]
    trait = [dag.parents(name)[0] for name in facet]
    assert [level.nunique() for level in levels] == [9, 3]
    assert adjusted_rand_score(facet, levels[0]) == adjusted_rand_score(trait, levels[1]) == 1.0
    assert search.result_.selected_partition == 0
    assert um.metrics.compare(dag, search.graph_).f1 > 0.95


def test_the_trace_says_so(search: um.LGES) -> None:
    (step,) = [step for step in search.trace_ if step.phase == "Latents above latents"]
    assert step.score_after > step.score_before + 5


@pytest.mark.parametrize("index", range(6))
def test_population_in_true_class_out(index: int) -> None:
    """The subset of ``python -m benchmarks population --hierarchy`` that takes seconds."""
    truth = random_hierarchical_truth(np.random.default_rng((7, index)), (8, 20))
    assert um.metrics.compare(truth.dag, population(um.LGES(), truth).graph).shd == 0


def test_three_levels_of_a_population() -> None:
    dag = um.simulate.random_hierarchy(n_traits=1, n_free=0, n_levels=3, n_facets=(3, 3), n_items=(2, 2), rng=5)
    found = population(um.LGES(), um.simulate.realistic_parameters(dag, np.random.default_rng(6))).graph
    assert um.metrics.compare(dag, found).shd == 0
    (top,) = [name for name, level in found.levels.items() if level == 2]
    assert len(list(lineage(found.facets, top))) == 4 + 12


@pytest.mark.parametrize("shape", ["chain", "fork", "collider", "dense"])
def test_no_trait_above_a_graph_of_edges(shape: str) -> None:
    dag = um.simulate.random_gnfm(group_sizes=(1,) * 5, n_observed=15, shape=shape, rng=3)
    parameters = um.simulate.realistic_parameters(dag, np.random.default_rng(4))
    assert not um.LGES(tolerance=0).fit(um.simulate.sample(parameters, 1000, rng=5)).graph_.facets
    assert um.metrics.compare(dag, population(um.LGES(), parameters).graph).shd == 0


def test_three_facets_alone_are_edges() -> None:
    """One trait over three facets and nothing else: the same covariances as three latents with all edges."""
    parameters = um.simulate.hierarchy(n_traits=1, n_facets=3, rng=1)
    found = um.LGES().fit(um.simulate.sample(parameters, 2000, rng=2))
    assert not found.graph_.facets
    assert len(found.graph_.latents) == 3


def test_hierarchy_is_an_option() -> None:
    parameters = um.simulate.hierarchy(n_traits=1, n_facets=5, n_items=3, rng=1)
    rows = um.simulate.sample(parameters, 2000, rng=2)
    assert len(um.LGES().fit(rows).graph_.facets) == 1
    assert not um.LGES(hierarchy=False).fit(rows).graph_.facets
    assert not um.LGES(criterion="delta", delta=0.01).fit(rows[rows.columns[:9]]).graph_.facets
    with pytest.raises(um.UnmeasuredError, match="hierarchy must be True or False; got 'yes'"):
        um.LGES(hierarchy="yes").fit(rows)  # type: ignore[arg-type]


def test_with_tolerance_too(traits: um.simulate.Parameters) -> None:
    found = um.LGES(tolerance=0.03).fit(um.simulate.sample(traits, 4000, rng=79))
    assert {level.nunique() for level in found.result_.partitions} >= {9, 3}
    if found.graph_.facets:  # the facets lead
        assert [len(below) for below in found.graph_.facets.values()] == [3, 3, 3]


def test_what_equal_correlations_are() -> None:
    """Four traits of equal correlation have a common cause, with as good a fit and fewer paths."""
    model = um.simulate.hierarchy(n_traits=4, n_facets=3, n_items=4, rng=8)
    found = um.LGES(tolerance=0).fit(um.simulate.sample(model, 3000, rng=9))  # so many that they are fitted in pieces
    assert found.sem_.converged
    assert sorted(found.graph_.levels.values()) == [0] * 12 + [1] * 4 + [2]
    assert found.sem_.pvalue > 0.01
    assert [level.nunique() for level in found.result_.partitions] == [12, 4, 1]


# Scores -----------------------------------------------------------------------------------------------------


def latent_cov(traits: int, facets: int, between: float = 0.3) -> np.ndarray:
    """Correlations of facets, .8 on their traits."""
    above = np.kron(np.full((traits, traits), between) + (1 - between) * np.eye(traits), np.ones((facets, facets)))
    cov = 0.64 * above
    np.fill_diagonal(cov, 1.0)
    return cov


def test_blocks_of_a_population_are_predicted() -> None:
    score = LatentScore(latent_cov(3, 3), (1,) * 9, 1e7, 0.5 * math.log(1e7), 1.0)
    best = promising(score, range(9), never)[0]
    assert best.blocks == ((0, 1, 2), (3, 4, 5), (6, 7, 8))
    assert np.allclose(np.abs(np.concatenate(best.loadings)), 0.8, atol=1e-3)
    assert np.allclose(np.abs(best.cov[np.triu_indices(3, 1)]), 0.3, atol=1e-3)


def test_a_chain_has_no_blocks() -> None:
    chain = 0.7 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    score = LatentScore(chain, (1,) * 6, 1e7, 0.5 * math.log(1e7), 1.0)
    nothing = score(())
    assert all(one.value < nothing.value for one in promising(score, range(6), never))


def test_choices_are_counted() -> None:
    assert choice_of_edges(4, 0) == 0.0
    assert choice_of_edges(4, 6) == 0.0
    assert choice_of_blocks(6, [(0, 1, 2), (3, 4, 5)]) == pytest.approx(math.log(10))  # 20 ways, twice each
    assert choice_of_blocks(5, [(0, 1, 2)]) == pytest.approx(math.log(10))


def test_the_pattern_of_a_raised_model_has_its_dimension() -> None:
    names = tuple(f"x{j}" for j in range(16))
    lower = FactorModel(names, (1,) * 6 + (2,), tuple(1 << j // 2 for j in range(12)) + (1 << 6,) * 4)
    model = RaisedModel.over(lower, ((0, 1, 2), (3, 4, 5)))
    assert model.sizes == (2, 1, 1)
    assert model.is_valid
    assert model.n_parameters == jacobian_rank(model.pattern) == model.pattern.n_free - 1


# Knowledge --------------------------------------------------------------------------------------------------


def known_groups(dag: um.DAG) -> dict[str, list[str]]:
    """Two items of each facet."""
    return {f: [x for x in dag.children(f) if x in dag.observed][:2] for below in dag.facets.values() for f in below}


def test_a_known_latent_above_others_is_there() -> None:
    """Also where the data would not ask for it: three facets and nothing else."""
    model = um.simulate.hierarchy(n_traits=1, n_facets=3, n_items=3, rng=1)
    known = um.Knowledge(groups=known_groups(model.dag), above={"trait": ["F1", "F2", "F3"]})
    assert "trait is above F1, F2, F3" in str(known)
    found = um.LGES(knowledge=known).fit(um.simulate.sample(model, 500, rng=2))
    assert found.graph_.facets == {"trait": ("F1", "F2", "F3")}
    assert found.result_.partitions[1].unique().tolist() == ["trait"]
    text = "F1 =~ X1 + X2\nF2 =~ X4 + X5\nF3 =~ X7 + X8\ntrait =~ F1 + F2 + F3"
    assert um.Knowledge.from_lavaan(text).above == {"trait": ("F1", "F2", "F3")}


def test_levels_can_be_limited(traits: um.simulate.Parameters) -> None:
    rows = um.simulate.sample(traits, 1000, rng=78)
    assert not um.LGES(knowledge=um.Knowledge(max_levels=1), compare_without_knowledge=False).fit(rows).graph_.facets


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"above": {"t": ["a", "b"]}}, "needs at least 3 names"),
        ({"above": {"t": ["a", "b", "z"]}}, "'z' is not a group that was named"),
        ({"above": {"a": ["b", "c", "d"]}}, "Two latents are called 'a'"),
        ({"above": {"t": ["a", "b", "c"], "u": ["c", "d", "a"]}}, "below both"),
        ({"above": {"t": ["a", "b", "c"]}, "max_levels": 1}, "max_levels=1 says"),
        ({"above": {"t": ["a", "b", "c"]}, "required": ["a -> d"]}, "no paths of its own"),
        ({"max_levels": 0}, "max_levels is a whole number from 1; got 0"),
    ],
)
def test_knowledge_that_cannot_be_is_refused(options: dict[str, object], told: str) -> None:
    groups = {name: [f"{name}1", f"{name}2"] for name in "abcd"}
    with pytest.raises(um.UnmeasuredError, match=told):
        um.Knowledge(groups=groups, **options)  # type: ignore[arg-type]
