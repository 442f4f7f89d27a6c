"""Bundled data: what is there, where it is from, and that it equals what the rows say."""

import json
import pickle
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unmeasured.data.datasets import Dataset, available, load
from unmeasured.data.sample import as_sample
from unmeasured.errors import DataError
from unmeasured.models.lavaan import parse

ROOT = Path(__file__).resolve().parents[3]
ORACLE = json.loads((ROOT / "tests" / "oracle" / "lavaan_fits.json").read_text("utf-8"))["models"]
ROWS = ROOT.parent / "shared" / "data"
SIZES = {
    "multitasking": (9, 202),
    "teacher_burnout": (32, 599),
    "big_five": (25, 19718),
    "holzinger_swineford": (9, 301),
    "political_democracy": (11, 75),
}
data_sets = pytest.mark.parametrize("name", SIZES)


def test_available_names_are_those_that_load() -> None:
    assert available() == tuple(SIZES)


@data_sets
def test_sizes_and_names(name: str) -> None:
    data = load(name)
    assert (len(data.names), data.n_samples) == SIZES[name]
    assert data.name == name
    assert len(set(data.names)) == len(data.names)
    assert data.title
    assert data.source.endswith(".")
    assert data.remarks.endswith(".")


@data_sets
def test_matrices_are_correlations_and_read_only(name: str) -> None:
    corr = load(name).corr
    assert corr.shape == (SIZES[name][0],) * 2
    assert np.array_equal(corr, corr.T)
    assert np.array_equal(np.diag(corr), np.ones(len(corr)))
    assert np.linalg.eigvalsh(corr)[0] > 0.05
    with pytest.raises(ValueError, match="read-only"):
        corr[0, 1] = 0.0


def test_loaded_once() -> None:
    assert load("big_five") is load("big_five")


def test_the_frame_is_a_copy_with_names() -> None:
    data = load("multitasking")
    frame = data.frame()
    assert list(frame.index) == list(frame.columns) == list(data.names)
    frame.iloc[0, 0] = 5.0
    assert data.corr[0, 0] == 1.0


def test_models_are_a_read_only_mapping() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        load("multitasking").models["mine"] = None  # type: ignore[index]


def test_repr_names_the_models() -> None:
    assert repr(load("big_five")) == (
        "<Dataset 'big_five': 25 variables, 19718 samples; models: goldberg_orthogonal, goldberg_correlated>"
    )


def test_pickling() -> None:
    data = load("teacher_burnout")
    again = pickle.loads(pickle.dumps(data))
    assert isinstance(again, Dataset)
    assert np.array_equal(again.corr, data.corr)
    assert not again.corr.flags.writeable
    assert dict(again.models) == dict(data.models)
    assert repr(again) == repr(data)


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(DataError) as caught:
        load("teacher_burnuot")
    assert str(caught.value) == (
        "There is no bundled data set 'teacher_burnuot'; did you mean 'teacher_burnout'? There are 'multitasking', "
        "'teacher_burnout', 'big_five', 'holzinger_swineford', 'political_democracy'."
    )
    with pytest.raises(DataError, match=r"no bundled data set 'iris'\. There are 'multitasking', "):
        load("iris")


@data_sets
def test_every_published_model_uses_every_variable(name: str) -> None:
    data = load(name)
    for key, published in data.models.items():
        assert published.name == key
        assert published.source.endswith(".")
        model = parse(published.text, observed=data.names, correlate_exogenous=published.correlate_exogenous)
        assert model.observed == data.names


def test_the_added_edge_of_byrne_2010_is_declared() -> None:
    models = load("teacher_burnout").models
    added = models["byrne2010_final_plus_DM_SS_orthogonal"]
    assert "DM -> SS added, which is not in the published model" in added.source
    assert added.text == models["byrne2010_final_correlated"].text + "\nSS ~ DM"


@pytest.mark.parametrize("record", ORACLE, ids=[record["name"] for record in ORACLE])
def test_models_have_the_parameters_lavaan_had(record: dict) -> None:
    (data,) = [data for data in map(load, available()) if record["name"] in data.models]
    published = data.models[record["name"]]
    assert data.n_samples == record["n"]
    assert published.correlate_exogenous == record["exogenous_latents_correlated"]
    model = parse(published.text, observed=data.names, correlate_exogenous=published.correlate_exogenous)
    assert [(row.lhs, row.op, row.rhs) for row in model.parameters if row.op != "~~"] == [
        (row["lhs"], row["op"], row["rhs"]) for row in record["parameters"] if row["op"] != "~~"
    ]
    assert {(row.lhs, row.op, row.rhs) for row in model.parameters} == {
        (row["lhs"], row["op"], row["rhs"]) for row in record["parameters"]
    }
    assert sum(row.fixed is None for row in model.parameters) == record["fit"]["npar"]


def test_no_rows_in_the_package() -> None:
    for name in available():
        stored = json.loads(files("unmeasured.data").joinpath("bundled", f"{name}.json").read_text("utf-8"))
        parts = {"name", "title", "source", "remarks", "n_samples", "names", "corr_lower", "models"}
        assert parts <= set(stored) <= parts | {"labels", "reverse_keyed"}
        assert [len(row) for row in stored["corr_lower"]] == list(range(1, len(stored["names"]) + 1))


@pytest.mark.skipif(not ROWS.is_dir(), reason="the rows are not part of the repository")
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("multitasking", "multitasking.csv"),
        ("teacher_burnout", "teacher_burnout.csv"),
        ("big_five", "big5_25items.csv.gz"),
    ],
)
def test_correlations_equal_those_of_the_rows(name: str, file: str) -> None:
    rows = pd.read_csv(ROWS / file)
    if name == "big_five":
        rows = rows[(rows != 0).any(axis=1)]  # the one row of zeros: every question missed
    data = load(name)
    assert tuple(rows.columns) == data.names
    assert len(rows) == data.n_samples
    expected = np.corrcoef(rows.to_numpy(float), rowvar=False)
    assert np.allclose(data.corr, expected, rtol=6e-10, atol=1e-12)


@pytest.mark.skipif(not ROWS.is_dir(), reason="the classic correlations are not part of the repository")
@pytest.mark.parametrize("name", ["holzinger_swineford", "political_democracy"])
def test_classic_correlations_are_unchanged(name: str) -> None:
    classic = json.loads((ROWS.parent / "oracle" / "classic_correlations.json").read_text("utf-8"))[name]
    data = load(name)
    assert tuple(classic["names"]) == data.names
    assert classic["n"] == data.n_samples
    assert np.array_equal(data.corr, np.array(classic["corr"]))


def test_variables_say_what_they_measure_where_their_names_do_not():
    for name in available():
        data = load(name)
        assert set(data.labels) in (set(), set(data.names))
        assert as_sample(cov=data.frame(), n_samples=data.n_samples).labels == dict(data.labels)
        assert pickle.loads(pickle.dumps(data)).labels == data.labels
    assert load("big_five").labels["E5"] == "I start conversations."
