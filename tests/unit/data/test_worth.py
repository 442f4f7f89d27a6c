"""What rows of categories are worth, and the rows that tell it."""

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from answers import questionnaire
from unmeasured.data.moments.distinct import MISSING, DistinctRows, most_distinct
from unmeasured.data.moments.influence import (
    _influence_on_correlations,
    _influence_on_thresholds,
    pair_scores,
    smoothed,
)
from unmeasured.data.moments.ordinal import Item, _fill_polychoric


@pytest.mark.parametrize(("cuts", "pairs_alone"), [((-1.2, -0.4, 0.4, 1.2), 1.1), ((0.5,), 1.7)])
def test_chi_square_of_a_true_model_of_fifty_items(cuts, pairs_alone, monkeypatch):
    """Its mean is the degrees of freedom; if pairs were worth together what they are one by one it would be larger."""
    ratios, alone = [], []
    for seed in range(3):
        dag, rows = questionnaire(10, 2000, cuts, seed)
        sample = um.as_sample(rows, cor="auto")
        fit = um.fit(dag, sample)
        ratios.append(fit.chi2 / fit.df)
        with monkeypatch.context() as patch:
            patch.setattr("unmeasured.data.moments.ordinal.worth_of_rows", lambda *given: given[-1])
            alone.append(ratios[-1] * um.as_sample(rows, cor="auto").n / sample.n)
    assert np.mean(ratios) == pytest.approx(1.1, abs=0.12)
    assert np.mean(alone) > pairs_alone


def test_influences_of_rows_are_what_leaving_them_out_changes():
    """The oracle is the estimate without each row (the jackknife)."""
    rng = np.random.default_rng(0)
    z = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 4000)
    codes = np.column_stack([np.digitize(z[:, 0], [-0.5, 0.7]), np.digitize(z[:, 1], [0.0])])

    def estimate(codes):
        items = [Item.of(codes[:, j].astype(float), name) for j, name in enumerate("ab")]
        corr = np.eye(2) + 0.4 * (1 - np.eye(2))
        _fill_polychoric(corr, np.full((2, 2), 4000.0), items, ("a", "b"))
        return corr[0, 1], items

    whole, items = estimate(codes)
    edges = np.array([[-40.0, *items[0].thresholds, 40.0], [-40.0, *items[1].thresholds, 40.0, 40.0]])
    table = np.array([[[((codes == (x, y)).all(axis=1)).sum() for y in range(3)] for x in range(3)]], dtype=float)
    margins = np.zeros((2, 3, 2))
    for j, item in enumerate(items):
        part = _influence_on_thresholds(item.thresholds, item.counts.astype(float))
        margins[j, : part.shape[0], : part.shape[1]] = part
    influence = _influence_on_correlations(
        table, pair_scores(edges[:1], edges[1:], np.array([whole])), margins[:1], margins[1:]
    )[0]
    for x, y in ((0, 0), (0, 1), (1, 1), (2, 0)):
        row = np.flatnonzero((codes == (x, y)).all(axis=1))[0]
        left_out = estimate(np.delete(codes, row, axis=0))[0]
        assert whole - left_out == pytest.approx(influence[x, y], abs=0.02 * np.abs(influence[:, :2]).max())


def test_worth_does_not_depend_on_the_order_of_rows_and_columns():
    _, rows = questionnaire(4, 600, (-1.0, 0.0, 1.0), 5)
    rows = rows.mask(np.random.default_rng(0).random(rows.shape) < 0.05)
    rng = np.random.default_rng(1)
    other = rows.iloc[rng.permutation(600), rng.permutation(20)]
    assert um.as_sample(other, cor="auto").n == pytest.approx(um.as_sample(rows, cor="auto").n, rel=1e-9)
    assert most_distinct(20) > 600  # all rows were looked at
    few = pd.concat([rows] * 8, ignore_index=True)  # now not all of 4,800 rows, but all different ones
    assert um.as_sample(few, cor="auto").n == pytest.approx(8 * um.as_sample(rows, cor="auto").n, rel=0.05)


def test_the_same_rows_are_kept_whatever_the_blocks():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 3, size=(4, 5000)).astype(np.uint8)
    codes[rng.random(codes.shape) < 0.05] = MISSING
    values = [[1.0, 2.0, 3.0], [0.0, 5.0, 7.0], [-1.0, 0.5, 2.0], [1.0, 2.0, 3.0]]
    names = ("a", "b", "c", "d")
    whole = DistinctRows(names, 60)
    whole.add(codes, values)
    parts = [DistinctRows(names, 60) for _ in range(3)]
    for k, part in enumerate(parts):
        for block in np.array_split(codes[:, k * 1700 : (k + 1) * 1700], 3, axis=1):
            # Categories are numbered as they come: here the other way round.
            turned = np.where(block == MISSING, MISSING, 2 - block).astype(np.uint8)
            part.add(turned, [known[::-1] for known in values])
    merged = parts[2]
    merged.merge(parts[0])
    merged.merge(parts[1])
    np.testing.assert_array_equal(merged.hashes, whole.hashes)
    np.testing.assert_array_equal(merged.times, whole.times)
    np.testing.assert_array_equal(merged.values, whole.values)
    assert len(whole.values) == 60
    assert merged.n_seen == 5000
    # Kept are all copies of the different rows that are kept.
    table = pd.DataFrame(np.where(codes == MISSING, np.nan, codes).T).value_counts(dropna=False)
    assert set(whole.times) <= set(table)


def test_smoothed_correlations_have_no_small_eigenvalues():
    R = um.as_sample(questionnaire(10, 300, (0.5,), 7)[1], cor="auto").corr
    assert np.linalg.eigvalsh(R)[0] < 0.01
    assert np.linalg.eigvalsh(smoothed(R, 100.0))[0] > 0.05


@pytest.mark.filterwarnings("error")
def test_a_pair_that_tells_nothing_of_its_correlation_is_no_fault() -> None:
    """One rare answer, and answers that exclude one another: correlations at -1, 1 and in between, all but unknown."""
    counts = {"313": 44, "333": 34, "332": 28, "331": 28, "323": 15, "233": 1}
    rows = pd.DataFrame([[int(answer) for answer in answers] for answers, n in counts.items() for _ in range(n)])
    sample = um.as_sample(rows.add_prefix("q"), cor="auto")
    assert 2 <= sample.n <= len(rows)
