"""Studies of partitions of items: what a partition is read from, files, and the commands."""

from __future__ import annotations

import gzip
import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from benchmarks import partitions
from benchmarks.__main__ import main

pytest.importorskip("igraph")


def test_a_partition_is_read_from_levels_communities_or_loadings():
    low, high = pd.Series({"a": "L1", "b": "L2"}), pd.Series({"a": "T", "b": "T"})
    search = SimpleNamespace(result_=SimpleNamespace(partitions=[low, high], selected_partition=1))
    assert partitions.levels_of(search) == ([{"a": "L1", "b": "L2"}, {"a": "T", "b": "T"}], 1)
    assert partitions.levels_of(SimpleNamespace(communities_={"a": 0, "b": None})) == ([{"a": 0, "b": None}], 0)
    truth = um.simulate.random_one_factor(n_latents=2, n_observed=8, rng=0)
    rows = um.simulate.sample(truth, 2000, rng=0, parameters="realistic")
    found = partitions.strongest_groups(um.LGES().fit(rows))
    assert partitions.agreement({x: truth.parents(x)[0] for x in truth.observed}, found) == 1.0


def test_cases_know_their_truths():
    (case,) = partitions.hierarchies(1)
    assert {level: len(set(truth.values())) for level, truth in case.truths.items()} == {"facets": 9, "traits": 3}
    cases = list(partitions.with_minor_factors(1))
    assert [c.n_samples for c in cases] == [500, 2000, 10000]
    assert len(set(cases[0].truths["factors"].values())) == 5


def call(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, *capsys.readouterr()


def test_questionnaires_from_a_file(tmp_path, monkeypatch, capsys):
    L = np.kron(np.eye(2), np.full((4, 1), 0.7))
    R = L @ np.array([[1, 0.2], [0.2, 1]]) @ L.T
    np.fill_diagonal(R, 1.0)
    names = [f"q{i}" for i in range(8)]
    data = {"mine": {"n": 500, "names": names, "corr": R.tolist(), "scales": {"A": names[:4], "B": names[4:]}}}
    path = tmp_path / "q.json.gz"
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    code, out, err = call(monkeypatch, capsys, "questionnaires", str(path), "--method", "factor analysis")
    assert code == 0, err
    assert out.splitlines()[1].split()[:6] == ["mine", "500", "factor", "analysis", "1.0", "1.0"]
    for content in (b"[" * 200_000, b"\x1f\x8bnonsense", b'{"a": 5}', b'{"a": {"n": 5}}', b""):
        path.write_bytes(content)
        code, _, err = call(monkeypatch, capsys, "questionnaires", str(path))
        assert code == 2
        assert "is not a file of questionnaires" in err
    assert call(monkeypatch, capsys, "questionnaires", str(tmp_path / "none"))[0] == 2
    code, _, err = call(monkeypatch, capsys, "hierarchy", "--seeds", "1", "--method", "EGO")
    assert code == 2
    assert "There is no method 'EGO'; did you mean 'EGA'?" in err
    assert call(monkeypatch, capsys, "minor-factors", "--rmsea", "0")[0] == 2


def test_headlines_of_bootstrap_samples_agree_where_the_structure_is_clear():
    data = um.datasets.load("multitasking")
    scales = partitions.scales_of(data.models["himi_three_factor"].text)
    case = partitions.Case("multitasking", data.frame(), int(data.n_samples), {"scales": scales})
    labels = ["LGES", "factor analysis, number given"]
    table = partitions.headline_stability([case], 3, labels=labels)
    assert table["method"].tolist() == labels
    assert table["groups"].tolist() == [3, 3]
    assert (table[["between samples", "with the data"]] > 0.8).all(axis=None)


def test_halves_measure_what_is_found_again():
    rng = np.random.default_rng(1)
    latents = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], 2000)
    rows = pd.DataFrame(0.7 * latents[:, [0, 0, 0, 0, 1, 1, 1, 1]] + 0.7 * rng.standard_normal((2000, 8)))
    table = partitions.halves(rows.rename(columns=str), "rows", ["LGES", "factor analysis"], 1)
    assert table["method"].tolist() == ["LGES", "factor analysis"]
    assert ((table["misfit"] > 0) & (table["misfit"] < 0.2)).all()
    assert table["agreement"][0] == 1.0
