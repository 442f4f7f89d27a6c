"""One structure for several groups of people: what is found, how it is scored, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.errors import DataError, UnmeasuredError
from unmeasured.search.model import FactorModel
from unmeasured.search.roles.multigroup import JointScore, within_groups
from unmeasured.search.score import BicScore


def people(n: int = 250, seed: int = 0) -> pd.DataFrame:
    """Three countries: A → B and A → C; the path to B changes its sign, and one loading differs."""
    rng = np.random.default_rng(seed)
    parts = []
    for country, sign, loading in (("north", 1.0, 1.0), ("south", -1.0, 1.0), ("west", 0.6, 0.3)):
        a = rng.normal(size=n)
        b = 0.6 * sign * a + 0.8 * rng.normal(size=n)
        c = 0.5 * a + 0.8 * rng.normal(size=n)
        items = {f"{x}{i}": f + 0.7 * rng.normal(size=n) for x, f in zip("abc", (a, b, c)) for i in range(1, 4)}
        items["a3"] = loading * a + 0.7 * rng.normal(size=n)
        parts.append(pd.DataFrame(items).assign(country=country))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def search() -> um.LGES:
    return um.LGES().fit(people(), groups="country")


def adjacent(graph: um.CPDAG) -> set[frozenset[str]]:
    latents = set(graph.latents)
    edges = (*graph.directed_edges, *graph.undirected_edges)
    return {frozenset(edge) for edge in edges if set(edge) <= latents}


def test_paths_that_cancel_in_pooled_rows_are_found(search: um.LGES) -> None:
    assert search.latent_groups_ == (("L1",), ("L2",), ("L3",))
    assert adjacent(search.graph_) == {frozenset(("L1", "L2")), frozenset(("L1", "L3"))}
    signs = {label: r.latent_paths.set_index(["source", "target"])["std"] for label, r in search.group_results_.items()}
    (edge,) = [pair for pair in signs["north"].index if set(pair) == {"L1", "L2"}]
    assert signs["north"][edge] * signs["south"][edge] < 0


def test_the_fits_of_all_groups_are_that_of_the_model_in_groups(search: um.LGES) -> None:
    """The sum over groups is lavaan's configural chi-square, which GroupFit equals."""
    joint = um.fit(search.graph_, people(), groups="country")
    fits = [result.sem for result in search.group_results_.values()]
    assert sum(fit.chi2 for fit in fits) == pytest.approx(joint.chi2, abs=1e-4)
    assert sum(fit.df for fit in fits) == joint.df
    assert f"chi-square {joint.chi2:.2f} on {joint.df} df" in search.remarks_[0]


def test_what_differs_is_told_and_marked(search: um.LGES) -> None:
    found = search.invariance_
    assert found is search.invariance_
    assert found.groups == ("north", "south", "west")
    edges = {frozenset(edge) for edge in found.noninvariant_edges}
    assert frozenset(("L1", "L2")) in edges
    assert frozenset(("L1", "a3")) in edges
    assert frozenset(("L2", "b1")) not in edges
    picture = found.plot().to_svg()
    assert "≠" in picture
    assert "≠" not in search.result_.plot().to_svg()


def test_a_diagram_needs_an_answer() -> None:
    found = um.invariance("A =~ a1 + a2 + a3", people(), groups="country")
    with pytest.raises(UnmeasuredError, match="A diagram is of the answer of a search"):
        found.plot()


def test_the_joint_score_of_one_group_is_that_of_one_group() -> None:
    sample = um.as_sample(cov=people()[["a1", "a2", "a3", "b1", "b2", "b3"]].corr(), n_samples=250)
    models = [FactorModel(sample.names, (1, 1), (1, 1, 1, 2, 2, 2)), FactorModel(sample.names, (1,), (1,) * 6)]
    joint = JointScore([sample], 1.0, 1, lambda: None)(models)
    alone = BicScore(sample)(models)
    assert [a.value for a in joint] == pytest.approx([b.value for b in alone], abs=0.01)


def test_the_joint_score_adds_up_and_charges_every_group() -> None:
    rows = people()
    samples = [
        um.as_sample(cov=part.drop(columns="country").corr(), n_samples=len(part))
        for _, part in rows.groupby("country")
    ]
    model = FactorModel(samples[0].names, (1, 1, 1), (1,) * 3 + (2,) * 3 + (4,) * 3)
    score = JointScore(samples, 1.0, 1, lambda: None)
    (found,) = score([model])
    likelihood = sum(-0.5 * s.n * fit.discrepancy for s, fit in zip(samples, found.fits, strict=True))
    n_paths = int(found.arcs.sum())
    expected = likelihood - 0.5 * math.log(score.n) * 3 * (model.n_parameters - 3 + n_paths)
    expected -= BicScore(samples[0]).prior(model)
    # The graph is predicted, not fitted: what an absent path costs is predicted too.
    assert found.value == pytest.approx(expected, abs=3.0)


def test_within_groups_means_do_not_count() -> None:
    rows = people()
    rows.loc[rows["country"] == "west", ["a1", "b1"]] += 5.0
    shifted = um.LGES().fit(rows, groups="country")
    plain = um.LGES().fit(people(), groups="country")
    assert shifted.graph_ == plain.graph_
    parts = [um.as_sample(part.drop(columns="country")) for _, part in rows.groupby("country")]
    centred = rows.drop(columns="country") - rows.groupby("country").transform("mean")
    assert within_groups(parts).cov == pytest.approx(centred.cov(ddof=0).to_numpy())


def test_groups_and_covariates_go_together() -> None:
    rng = np.random.default_rng(3)
    rows = people()
    rows["age"] = rng.gamma(3.0, 10.0, len(rows))
    for item in ("b1", "b2", "b3"):
        rows[item] += 0.03 * rows["age"]
    found = um.LGES(covariates=["age"]).fit(rows, groups="country")
    assert ("age", "L2") in found.graph_.directed_edges
    assert ("age", "L1") not in found.graph_.directed_edges
    assert found.result_.direct_effects.empty


def test_replicates_are_drawn_within_groups(search: um.LGES) -> None:
    stable = um.stability(search, 2)
    table = stable.edges.set_index(["source", "target"])["frequency"]
    assert table[("L1", "a1")] == 1.0
    from unmeasured.validation.replicates.resample import Resampling

    drawn = Resampling.of(search.sample_, "bootstrap")(np.random.default_rng(0))
    assert [drawn.groups.count(label) for label in ("north", "south", "west")] == [250, 250, 250]


def test_values_of_rows_and_samples_name_groups_too(search: um.LGES) -> None:
    rows = people()
    by_value = um.LGES().fit(rows.drop(columns="country"), groups=rows["country"].to_numpy())
    assert by_value.graph_ == search.graph_
    sample = um.as_sample(rows.drop(columns="country"), cor="auto", groups=rows["country"].tolist())
    assert um.LGES().fit(sample).graph_ == search.graph_


@pytest.mark.parametrize(
    ("change", "groups", "message"),
    [
        ({}, "land", "groups='land' names no column of the data; did you mean|groups='land' names no column"),
        ({"country": "north"}, "country", "has one value only, so there is one group"),
        ({"country": ["tiny"] * 5 + ["rest"] * 745}, "country", "In group 'tiny' .5 rows."),
        ({"a1": [1.0] * 250 + list(range(500))}, "country", "In group 'north' .250 rows.: Constant variables"),
        ({"country": [None] * 3 + ["x"] * 300 + ["y"] * 447}, "country", "3 rows have no value in 'country'"),
    ],
)
def test_bad_groups_are_refused_by_name(change: dict[str, Any], groups: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        um.LGES(cor="pearson").fit(people().assign(**change), groups=groups)


def test_other_mistakes_are_sentences(search: um.LGES) -> None:
    with pytest.raises(DataError, match="groups has 2 values for 750 rows"):
        um.LGES().fit(people().drop(columns="country"), groups=["a", "b"])
    with pytest.raises(UnmeasuredError, match='for criterion="bic"'):
        um.LGES(criterion="delta").fit(people(), groups="country")
    with pytest.raises(AttributeError, match="There are no groups of people"):
        _ = um.LGES().fit(people().drop(columns="country")).group_results_
    with pytest.raises(DataError, match=r"a matrix .cov=. has no rows"):
        um.as_sample(cov=np.eye(2), n_samples=10, groups=["a"])
