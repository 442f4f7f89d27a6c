"""The studies of covariates and of groups of people, in small."""

from __future__ import annotations

import numpy as np

from benchmarks import covariates, people


def test_covariates_are_placed() -> None:
    (found,) = covariates.placed((800,), n_models=2, seed=5)
    assert len(found.runs) == 2
    assert found.f1[0] > 0.85
    assert sum(run.direct[0] for run in found.runs) == 1
    assert "F1 over all edges" in str(found)


def test_rows_have_the_covariates_they_should() -> None:
    rng = np.random.default_rng(0)
    graph = covariates.random_model(rng, with_direct=True)
    rows = covariates.rows_of(graph, 500, rng)
    assert list(rows.columns) == list(graph.observed)
    assert set(rows["female"]) == {0.0, 1.0}
    assert rows["age"].skew() > 0.5


def test_groups_are_searched_in_every_way() -> None:
    found = people.searched(n_models=2, n_groups=2, n_rows=200, seed=5)
    assert len(found.f1) == 2
    assert all(len(row) == len(people.WAYS) for row in found.f1)
    assert np.mean([row[0] for row in found.f1]) > 0.9
    assert all(way in str(found) for way in people.WAYS)
