"""The answer does not depend on the order of columns, nor do the names of latents on the path of the search."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unmeasured as um
from unmeasured.data.sample import Sample
from unmeasured.search.canonical import canonical


def rows_of(seed, n_samples=100, n_observed=12):
    truth = um.simulate.random_gnfm(n_latents=4, n_observed=n_observed, n_common_children=1, rng=seed)
    return um.simulate.sample(truth, n_samples, rng=seed + 1, parameters="paper" if seed % 2 else "realistic")


@pytest.mark.parametrize("criterion", ["bic", "delta"])
@pytest.mark.parametrize("seed", range(3))
def test_permuted_columns_give_the_same_class(criterion, seed):
    rows = rows_of(seed)
    found = um.LGES(criterion=criterion).fit(rows)
    for draw in range(3):
        names = list(np.random.default_rng(draw).permutation(rows.columns))
        other = um.LGES(criterion=criterion).fit(rows[names])
        assert other.graph_.observed == tuple(names)
        assert um.metrics.compare(found.graph_, other.graph_).shd == 0
        assert other.sem_.chi2 == pytest.approx(found.sem_.chi2, abs=1e-6)
        assert [step.what.split()[0] for step in other.trace_] == [step.what.split()[0] for step in found.trace_]


def test_permuted_matrices_give_the_same_class():
    data = um.datasets.load("multitasking")
    frame = data.frame()
    found = um.LGES().fit_cov(frame, data.n_samples)
    names = list(frame.columns[::-1])
    other = um.LGES().fit_cov(frame.loc[names, names], data.n_samples)
    assert um.metrics.compare(found.graph_, other.graph_).shd == 0


def test_arrays_without_names_give_the_same_class():
    rows = rows_of(5).to_numpy()
    order = np.random.default_rng(1).permutation(rows.shape[1])
    found, other = um.LGES().fit(rows), um.LGES().fit(rows[:, order])
    back = {name: found.graph_.observed[order[j]] for j, name in enumerate(other.graph_.observed)}
    parents = {x: set(found.graph_.member().parents(x)) for x in found.graph_.observed}
    groups = {frozenset(y for y in parents if parents[y] == parents[x]) for x in parents}
    member = other.graph_.member()
    theirs = {x: set(member.parents(x)) for x in other.graph_.observed}
    assert {frozenset(back[y] for y in theirs if theirs[y] == theirs[x]) for x in theirs} == groups


def test_latents_are_numbered_by_their_first_indicators():
    found = um.LGES().fit(rows_of(4, n_samples=1000))
    member = found.graph_.member()
    firsts = []
    for group in found.latent_groups_:
        own = [j for j, x in enumerate(member.observed) if set(member.parents(x)) == set(group)]
        firsts.append(min(own))
    assert firsts == sorted(firsts)
    assert [name for group in found.latent_groups_ for name in group] == [
        f"L{i + 1}" for i in range(len(member.latents))
    ]


def test_what_no_correlation_tells_apart_is_in_the_order_of_names():
    cov = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    assert canonical(Sample.from_cov(cov, math.inf, ["d", "b", "a", "c"])).names == ("a", "b", "c", "d")
