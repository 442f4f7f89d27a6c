"""No answer depends on how a file is sorted: rows in another order give the same class, remarks and replicates.

The rows are weak on purpose (few, heavy tails, dependences that no factor model has), so that what is decided by
replicates of the rows is decided narrowly. Where rows were drawn by their places, 5 of 204 of these differed (seeds 12
to 79).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unmeasured as um
from unmeasured.data.moments.tally import PackedRows
from unmeasured.data.sample import Sample

KINDS = ("continuous", "ordinal", "holes")
# The seeds among the first 80 at which an answer differed, and others.
NARROW = [(13, "continuous"), (20, "continuous"), (20, "holes"), (54, "continuous")]


def weak(seed: int, kind: str) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n, p, m = int(rng.integers(120, 320)), int(rng.integers(7, 11)), int(rng.integers(1, 4))
    loadings = 0.5 * rng.normal(size=(p, m))
    rows = rng.normal(size=(n, m)) @ loadings.T + 0.6 * rng.standard_t(4, size=(n, p))
    rows[:, 1:] += 0.25 * rows[:, :-1] * (rng.random(p - 1) < 0.5)
    if kind == "ordinal":
        rows = np.digitize(rows, [-1, 0, 0.8]).astype(float)
    if kind == "holes":
        rows[rng.random(rows.shape) < 0.1] = np.nan
    return pd.DataFrame(rows, columns=[f"v{j}" for j in range(p)])


def shuffled(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    return rows.sample(frac=1, random_state=seed).reset_index(drop=True)


def agree(rows: pd.DataFrame, seed: int) -> None:
    one, other = um.LGES().fit(rows), um.LGES().fit(shuffled(rows, seed))
    assert one.graph_ == other.graph_
    assert one.remarks_ == other.remarks_
    assert one._item_partitions == other._item_partitions
    # Sums of the same numbers in another order differ in their last digits.
    assert one.sem_.chi2 == pytest.approx(other.sem_.chi2, rel=1e-6, abs=1e-6)
    assert one.sem_.implied_cov == pytest.approx(other.sem_.implied_cov, abs=1e-5)


@pytest.mark.parametrize(("seed", "kind"), NARROW)
def test_narrow_answers_do_not_depend_on_the_order_of_rows(seed, kind):
    agree(weak(seed, kind), seed)


@settings(max_examples=12)
@given(seed=st.integers(100, 10_000), kind=st.sampled_from(KINDS))
def test_answers_do_not_depend_on_the_order_of_rows(seed, kind):
    rows = weak(seed, kind)
    try:
        agree(rows, seed)
    except um.DataError:
        assert kind == "holes"  # too much may be missing, in any order


def test_replicates_and_folds_do_not_depend_on_the_order_of_rows():
    rows = weak(1, "continuous")
    graphs = [um.stability(um.LGES().fit(data), 3) for data in (rows, shuffled(rows, 5))]
    pd.testing.assert_frame_equal(graphs[0].edges, graphs[1].edges)
    models = {"one": "f =~ " + " + ".join(rows.columns), "two": "f =~ v0 + v1 + v2; g =~ v3 + v4 + v5 + v6"}
    models["two"] += "".join(f" + {name}" for name in rows.columns[7:])
    judged = [um.compare_models(models, data, folds=4).held_out for data in (rows, shuffled(rows, 5))]
    pd.testing.assert_frame_equal(judged[0], judged[1])
    kept = [um.stability(um.LGES().fit(data), 1) for data in (rows, rows.iloc[:, ::-1])]
    assert kept[0].n_latents.to_dict() == kept[1].n_latents.to_dict()


def test_replicates_of_groups_do_not_depend_on_the_order_of_rows():
    rows = weak(2, "continuous").assign(g=np.resize(["x", "y"], len(weak(2, "continuous"))))
    found = [um.stability(um.LGES().fit(data, groups="g"), 2) for data in (rows, shuffled(rows, 3))]
    pd.testing.assert_frame_equal(found[0].edges, found[1].edges)


@pytest.mark.parametrize("is_packed", [False, True])
def test_some_of_many_rows_are_the_same_ones_in_any_order(is_packed):
    values = np.random.default_rng(0).integers(1, 6, size=(3000, 5)).astype(float)
    order = np.random.default_rng(1).permutation(len(values))
    names = list("abcde")
    some = []
    for rows in (values, values[order]):
        sample = Sample.from_rows(rows, names)
        if is_packed:
            codes, categories = (rows - 1).astype(np.uint8), np.full((5, 256), np.nan)
            categories[:, :5] = np.arange(1.0, 6.0)
            sample = um.as_sample(rows, names=names)
            object.__setattr__(sample, "_rows", PackedRows(tuple(names), codes, categories, (False,) * 5))
        some.append(sample.some_rows(100))
    assert some[0].shape == (100, 5)
    np.testing.assert_array_equal(some[0], some[1])
    # As good as chosen at random: no value is rarer than it should be.
    assert np.abs(some[0].mean(axis=0) - 3.0).max() < 0.6
