"""The studies of what follows discovery, in small."""

from __future__ import annotations

import numpy as np

from benchmarks import after


def test_scores_of_ordinal_items() -> None:
    table = after.ordinal_scores(seeds=1, samples=400)
    assert (table["uncut"] < table["expectation"]).all()
    assert (table["expectation"] < table["codes"]).sum() >= 4


def test_coverage_of_effects() -> None:
    found = after.effect_coverage(models=4, samples=(500,))
    assert found.n_intervals > 10
    assert 0.8 < found.share <= 1.0
    assert "hold the truth" in str(found)


def test_p_values_before_and_after_confirmation(tmp_path) -> None:
    found = after.confirmed_p_values(searches=5)
    assert len(found.naive) == len(found.confirmed) > 5
    assert np.mean(found.naive) < np.mean(found.confirmed)
    assert "in other rows" in str(found)
    found.draw(tmp_path / "p.svg")
    assert (tmp_path / "p.svg").stat().st_size > 1000
