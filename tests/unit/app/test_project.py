"""A project without the web: data, choices, edits, files."""

from __future__ import annotations

import io
import subprocess
import zipfile
import zlib
from shutil import which
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.app.exports import export, r_script
from unmeasured.app.project import Project


@pytest.fixture(scope="module")
def searched():
    data = um.datasets.load("multitasking")
    return um.LGES().fit_cov(data.frame(), data.n_samples).result_.rename().to_json()


@pytest.fixture
def project(tmp_path, searched):
    made = Project(tmp_path)
    made.open_dataset("multitasking")
    made.found(searched, [], 1.0)
    return made


def table():
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.integers(1, 6, size=(200, 4)), columns=["q1", "q2", "q3", "q4"]).astype(float)
    rows.loc[:9, "q1"] = 99
    return rows.assign(name=[f"person {i}" for i in range(200)], same=1)


def test_columns_are_described_and_text_stays_out(tmp_path):
    made = Project(tmp_path)
    made.open_file("answers.csv", table().to_csv(index=False).encode())
    roles = {column.name: column.role for column in made.columns}
    assert roles == {"q1": "item", "q2": "item", "q3": "item", "q4": "item", "name": "omit", "same": "omit"}
    first = made.columns[0]
    assert (first.n_values, first.low, first.high) == (6, 1.0, 99.0)
    with pytest.raises(um.DataError, match="holds text"):
        made.choose([{"name": "name", "role": "item"}], {})


def test_missing_codes_and_reversed_items(tmp_path):
    made = Project(tmp_path)
    rows = table()
    made.open_file("answers.csv", rows.to_csv(index=False).encode())
    made.choose([{"name": "q1", "codes": ["99"]}, {"name": "q2", "is_reversed": True}], {})
    used = made.rows()
    assert used["q1"].isna().sum() == 10
    assert (used["q2"] == 6 - rows["q2"]).all()
    assert list(used.columns) == ["q1", "q2", "q3", "q4"]
    with pytest.raises(um.DataError, match="A missing code of 'q1' is a number; got 'many'"):
        made.choose([{"name": "q1", "codes": ["many"]}], {})


def test_a_wrong_file_leaves_what_is_there(project):
    before = project.state()
    for name, content, words in (
        ("photo.jpg", b"\xff\xd8", "are not read here"),
        ("empty.csv", b"", "is empty"),
        ("broken.sav", b"not spss", "broken.sav"),
    ):
        with pytest.raises(um.UnmeasuredError, match=words):
            project.open_file(name, content)
    assert project.state() == before


def test_an_edit_is_fitted_and_can_be_undone(project):
    found = project.state()["edit"]["now"]["chi2"]
    project.edit({"kind": "add", "source": "Error", "target": "AverageQus_Par1"})
    state = project.state()["edit"]
    dag = um.DAG.from_edges(project.models[1].edges, latents=project.models[1].latents)
    assert state["now"]["chi2"] == pytest.approx(um.fit(dag, project.sample()).chi2, rel=1e-6)
    assert state["now"]["chi2"] < found
    assert state["added"] == [["Error", "AverageQus_Par1"]]
    project.move(-1)
    assert project.state()["edit"]["now"]["chi2"] == found
    project.move(1)
    assert project.state()["edit"]["added"]
    project.edit({"kind": "rename", "source": "Error", "name": "Slips"})
    project.edit({"kind": "remove", "source": "Slips", "target": "AverageQus_Par1"})
    state = project.state()["edit"]
    assert (state["added"], state["removed"]) == ([], [])
    assert state["now"]["chi2"] == pytest.approx(found, rel=1e-6)


def test_edits_that_cannot_be_are_refused_and_nothing_is_kept(project):
    for action, words in (
        ({"kind": "add", "source": "Speed", "target": "Speed"}, "no new edge"),
        ({"kind": "add", "source": "Speed", "target": "nobody"}, "no variable 'nobody'"),
        ({"kind": "add", "source": "AverageQus_Par", "target": "Speed"}, "cycle"),
        ({"kind": "remove", "source": "Speed", "target": "Error_Letter"}, "has no edge"),
        ({"kind": "rename", "source": "Speed", "name": "Error"}, "is taken"),
        ({"kind": "rename", "source": "Speed", "name": " "}, "1 to 80 letters"),
        ({"kind": "new", "name": "more", "items": ["Error_Letter"]}, "at least two indicators"),
        ({"kind": "explode"}, "no such edit"),
    ):
        with pytest.raises(um.UnmeasuredError, match=words):
            project.edit(action)
    assert len(project.models) == 1


def test_a_project_comes_back_from_its_file(project, tmp_path):
    project.know({"groups": {"fast": ["Speed_Number", "Speed_Letter"]}})
    assert project.run is None  # what was found without it is gone
    project.know({})
    project.found(um.LGES().fit(project.sample()).result_.to_json(), [], 1.0)
    project.edit({"kind": "rename", "source": "L1", "name": "Questions"})
    saved = project.save()
    (tmp_path / "other").mkdir()
    other = Project(tmp_path / "other")
    other.open_file("work.unmeasured", saved)
    assert other.state() == project.state()
    assert other.report() == project.report()


def test_every_export_is_what_its_name_says(project):
    made = {kind: export(project, kind) for kind in
            ("report", "lavaan", "r", "json", "csv", "latex", "word", "svg", "pdf", "png", "project")}  # fmt: skip
    assert made["report"][2].startswith(b"<!DOCTYPE html>")
    assert um.Result.from_json(made["json"][2].decode()).graph == project.result.graph
    assert made["pdf"][2].startswith(b"%PDF")
    assert made["png"][2].startswith(b"\x89PNG")
    ET.fromstring(made["svg"][2])
    with zipfile.ZipFile(io.BytesIO(made["csv"][2])) as archive:
        loadings = pd.read_csv(archive.open("loadings.csv"))
    np.testing.assert_allclose(loadings["standardised"], project.result.loadings["std"], rtol=1e-9)
    with zipfile.ZipFile(io.BytesIO(made["word"][2])) as archive:
        words = "".join(ET.fromstring(archive.read("word/document.xml")).itertext())
    assert "Speed_Letter" in words
    assert r"Speed\_Letter & " in made["latex"][2].decode()
    with pytest.raises(um.UnmeasuredError, match="no export 'exe'"):
        export(project, "exe")


def test_formulas_in_names_are_harmless_in_tables(tmp_path):
    dag = um.DAG.from_edges([("f", x) for x in ("=cmd()", "b", "c", "d")], latents=["f"])
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=1), 300, rng=2)
    made = Project(tmp_path)
    made.open_file("a.csv", rows.to_csv(index=False).encode())
    made.found(um.Result(dag.cpdag(), um.fit(dag, made.sample())).to_json(), [], 1.0)
    with zipfile.ZipFile(io.BytesIO(export(made, "csv")[2])) as archive:
        assert "'=cmd()" in archive.read("loadings.csv").decode()


def has_lavaan():
    if which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(lavaan)"], capture_output=True, check=False).returncode == 0


def test_the_r_script_fits_the_same_model_in_lavaan(project, tmp_path):
    if not has_lavaan():
        pytest.skip("there is no R with lavaan on this machine")
    script = r_script(project) + 'cat("chi2", fitMeasures(fit, "chisq"), "\\n")\n'
    (tmp_path / "model.R").write_text(script)
    answer = subprocess.run(
        ["Rscript", str(tmp_path / "model.R")], capture_output=True, text=True, check=True, timeout=120
    )
    chi2 = float(answer.stdout.rsplit("chi2 ", 1)[1].split()[0])
    assert chi2 == pytest.approx(project.result.sem.chi2, abs=0.01)


def test_a_file_that_is_refused_leaves_the_open_project_as_it_was(tmp_path):
    """Also on the disk, where the data of the project are: it is saved from there."""
    rows = b"a,b,c\n" + b"".join(f"{i},{i * i % 7},{i * 3 % 5}\n".encode() for i in range(30))
    project = Project(tmp_path)
    project.open_file("mine.csv", rows)
    kept, saved = (tmp_path / "data.csv").read_bytes(), project.save()
    damaged = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved)) as old, zipfile.ZipFile(damaged, "w") as new:
        new.writestr("data", b"x,y\n1,2\n")
        new.writestr("project.json", old.read("project.json").replace(b'"columns"', b'"colums"'))
    for name, content in (("other.csv", b"\0"), ("other.csv", b""), ("other.unmeasured", damaged.getvalue())):
        with pytest.raises(um.UnmeasuredError):
            project.open_file(name, content)
    with pytest.raises(um.UnmeasuredError):
        project.open_matrix("no matrix", 100)
    assert (tmp_path / "data.csv").read_bytes() == kept
    assert project.name == "mine.csv"
    again = Project(tmp_path / "again")
    again.folder.mkdir()
    again.open_file("mine.unmeasured", project.save())
    assert list(again.frame.columns) == ["a", "b", "c"]


def test_a_project_that_cannot_be_unpacked_and_numbers_beyond_arithmetic_are_sentences(project, monkeypatch):
    def broken(*_):
        raise zlib.error("Error -3 while decompressing data")

    with pytest.raises(um.DataError, match="is a number; got '1000"):
        project.choose([], {"time_limit": 10**400})
    saved = project.save()
    monkeypatch.setattr(zipfile.ZipFile, "read", broken)
    with pytest.raises(um.DataError, match="no project that was saved here"):
        project.open_file("mine.unmeasured", saved)
