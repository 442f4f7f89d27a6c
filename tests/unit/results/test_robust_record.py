"""Robust statistics are kept in JSON: of few parameters as numbers, of many in a compact form that is exact."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.results import records


@pytest.fixture(scope="module")
def result() -> um.Result:
    rng = np.random.default_rng(0)
    mood = rng.standard_t(4, size=400)  # heavy tails, so that robust statistics are reported
    rows = pd.DataFrame({f"q{i}": mood + rng.standard_t(4, size=400) for i in range(6)})
    dag = um.DAG.from_edges([("L", name) for name in rows.columns], latents=["L"])
    found = um.Result(dag.cpdag(), um.fit(dag, rows))
    assert found.fit.robust is not None
    return found


@pytest.mark.parametrize("most", [0, 300])
def test_the_covariance_of_estimates_is_read_back(result: um.Result, most: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(records, "_MOST_AS_NUMBERS", most)
    text = result.to_json()
    assert isinstance(json.loads(text)["robust"]["acov"], list if most else str)
    again = um.Result.from_json(text)
    n = result.fit.model.n_free
    expected = np.tril(result.fit.robust.acov[:n, :n])
    np.testing.assert_array_equal(np.tril(again.fit.robust.acov), expected)


@pytest.mark.parametrize("acov", ["no base64!", "AAAA", 5, None])
def test_a_damaged_covariance_is_refused(result: um.Result, acov: object):
    record = json.loads(result.to_json())
    record["robust"]["acov"] = acov
    with pytest.raises(um.UnmeasuredError, match="damaged"):
        um.Result.from_json(json.dumps(record))
