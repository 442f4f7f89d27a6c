"""A project without the web: data, choices, edits, files."""

from __future__ import annotations

import io
import re
import subprocess
import zipfile
import zlib
from shutil import which
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.app import jobs
from unmeasured.app.exports import KINDS, article, export
from unmeasured.app.project import Project
from unmeasured.app.results import panel
from unmeasured.app.sketch import sketch
from unmeasured.output.report.run import Run
from unmeasured.search.climb import watched
from unmeasured.validation.replicates.result import Stability


@pytest.fixture(scope="module")
def searched():
    data = um.datasets.load("multitasking")
    return Run(um.LGES().fit_cov(data.frame(), data.n_samples).result_.rename()).to_json()


@pytest.fixture
def project(tmp_path, searched):
    made = Project(tmp_path)
    made.open_dataset("multitasking")
    made.found(searched)
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
    used, about = made.rows()
    assert about.na == (99.0,)
    assert about.reversed_items == {"q2": 6.0}
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


@pytest.mark.parametrize("name", ["political_democracy", "big_five"])
def test_remarks_speak_of_the_page_not_of_python(tmp_path, name):
    made, sent = Project(tmp_path), []
    made.open_dataset(name)
    task = {"sample": made.sample(), "options": made.search_options(), "about": made.about()}
    jobs._search(task, SimpleNamespace(send=sent.append), {})
    made.found(sent[-1]["run"])
    said = [*made.result.remarks, *(finding["text"] for finding in made.check()["findings"])]
    assert any("(in Search)" in remark for remark in said)
    assert not re.search(r"um\.|LGES|result_|=", " ".join(said).replace("N =", "").replace("p =", ""))


def test_an_edit_is_fitted_and_can_be_undone(project):
    found = project.state()["edit"]["now"]["chi2"]
    project.edit({"kind": "add", "source": "Error", "target": "AverageQus_Par1"})
    state = project.state()["edit"]
    dag = um.DAG.from_edges(project.models[1].edges, latents=project.models[1].latents)
    assert state["now"]["chi2"] == pytest.approx(um.fit(dag, project.sample()).chi2, rel=1e-6)
    assert state["now"]["chi2"] < found
    assert state["added"] == ["Error → AverageQus_Par1"]
    project.move(-1)
    assert project.state()["edit"]["now"]["chi2"] == found
    project.move(1)
    assert project.state()["edit"]["added"]
    project.edit({"kind": "rename", "source": "Error", "name": "Slips"})
    project.edit({"kind": "remove", "source": "Slips", "target": "AverageQus_Par1"})
    state = project.state()["edit"]
    assert (state["added"], state["removed"]) == ([], [])
    assert state["now"]["chi2"] == pytest.approx(found, rel=1e-6)


def test_edges_of_the_editor_are_directed_where_the_class_says_so(project):
    def directed():
        edges = {(edge["source"], edge["target"]): edge["is_directed"] for edge in project.state()["edit"]["edges"]}
        return {edge for edge, is_directed in edges.items() if is_directed}, set(edges)

    graph = project.result.graph
    assert graph.undirected_edges
    arrows, edges = directed()
    assert arrows == set(graph.directed_edges)
    assert edges - arrows == {edge for edge in project.result.member.edges if edge not in graph.directed_edges}
    # Of an edited model its class tells. An edge that shows no direction is removed by its ends in either order.
    source, target = next(iter(edges - arrows))
    project.edit({"kind": "rename", "source": source, "name": "Other"})
    assert ("Other", target) in directed()[1] - directed()[0]
    project.edit({"kind": "remove", "source": target, "target": "Other"})
    arrows, edges = directed()
    assert ("Other", target) not in edges
    assert arrows == edges & set(project.current().graph.directed_edges)


def test_the_editor_has_the_figures_of_the_result(tmp_path):
    project = Project(tmp_path)
    project.open_dataset("big_five")  # half of its items are worded the other way
    search = um.LGES(time_limit=60).fit(project.sample())
    project.found(Run(search.result_).to_json())
    for action in (None, {"kind": "add", "source": "L1", "target": "E1"}):
        if action:
            project.edit(action)
        shown = {(edge["source"], edge["target"]): edge["std"] for edge in project.state()["edit"]["edges"]}
        result = project.current()
        table = result.edges
        assert len(shown) == len(table)
        expected = dict(zip(zip(table["source"], table["target"], strict=True), table["std"], strict=True))
        assert shown == pytest.approx(expected)


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
    project.found(Run(um.LGES().fit(project.sample()).result_).to_json())
    project.edit({"kind": "rename", "source": "L1", "name": "Questions"})
    assert "Questions" in project.current().graph.latents
    assert not project.is_edited
    project.edit({"kind": "add", "source": "Error_Letter", "target": "Speed_Letter"})
    saved = project.save()
    (tmp_path / "other").mkdir()
    other = Project(tmp_path / "other")
    other.open_file("work.unmeasured", saved)
    states = [made.state() for made in (other, project)]
    for state in states:
        assert state["edit"].pop("milliseconds") > 0
    assert states[0] == states[1]
    assert other.report() == project.report()


def test_labels_of_a_bundled_data_set_stay_with_its_project(tmp_path):
    made, other = Project(tmp_path), Project(tmp_path / "other")
    other.folder.mkdir()
    made.open_dataset("holzinger_swineford")
    made.choose([{"name": "x9", "role": "omit"}, {"name": "x1", "is_reversed": True}], {})
    other.open_file("work.unmeasured", made.save())
    for one in (made, other):
        assert one.columns[0].label == "Visual perception"
        assert one.sample().labels["x8"] == "Speeded counting of dots"
        assert "x9" not in one.sample().labels


def test_every_export_is_what_its_name_says(project):
    made = {kind: export(project, kind) for kind in KINDS}
    assert made["xlsx"][2][:2] == b"PK"
    assert b"@" in made["bibtex"][2]
    assert made["report"][2].startswith(b"<!DOCTYPE html>")
    assert um.Result.from_json(made["json"][2].decode()).graph == project.result.graph
    assert made["pdf"][2].startswith(b"%PDF")
    assert made["png"][2].startswith(b"\x89PNG")
    ET.fromstring(made["svg"][2])
    for kind in ("report", "latex", "methods", "bibtex", "lavaan", "r", "svg", "json"):
        assert made[kind][2].endswith(b"\n"), kind
    with zipfile.ZipFile(io.BytesIO(made["csv"][2])) as archive:
        loadings = pd.read_csv(archive.open("loadings.csv"))
    np.testing.assert_allclose(loadings["standardised"], project.result.loadings["std"], rtol=1e-9)
    with zipfile.ZipFile(io.BytesIO(made["word"][2])) as archive:
        words = "".join(ET.fromstring(archive.read("word/document.xml")).itertext())
    assert "Speed_Letter" in words
    assert made["methods"][2].decode().startswith("Methods")
    assert r"Speed\_Letter & " in made["latex"][2].decode()
    with pytest.raises(um.UnmeasuredError, match="no export 'exe'"):
        export(project, "exe")


def test_formulas_in_names_are_harmless_in_tables(tmp_path):
    dag = um.DAG.from_edges([("f", x) for x in ("=cmd()", "b", "c", "d")], latents=["f"])
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=1), 300, rng=2)
    made = Project(tmp_path)
    made.open_file("a.csv", rows.to_csv(index=False).encode())
    made.found(Run(um.Result(dag.cpdag(), um.fit(dag, made.sample()))).to_json())
    with zipfile.ZipFile(io.BytesIO(export(made, "csv")[2])) as archive:
        assert "'=cmd()" in archive.read("loadings.csv").decode()


def has_lavaan():
    if which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(lavaan)"], capture_output=True, check=False).returncode == 0


def test_the_r_script_of_an_edited_model_fits_it_in_lavaan(project, tmp_path):
    if not has_lavaan():
        pytest.skip("there is no R with lavaan on this machine")
    found = project.result.sem.chi2
    project.edit({"kind": "remove", "source": "Speed", "target": "AverageQus_Par1"})
    project.edit({"kind": "add", "source": "Error_Letter", "target": "Speed_Letter"})
    edited = project.current().sem.chi2
    assert abs(edited - found) > 1.0
    script = article(project).to_r() + 'cat("chi2", fitMeasures(fit, "chisq"), "\\n")\n'
    (tmp_path / "model.R").write_text(script)
    answer = subprocess.run(
        ["Rscript", str(tmp_path / "model.R")], capture_output=True, text=True, check=True, timeout=120
    )
    chi2 = float(answer.stdout.rsplit("chi2 ", 1)[1].split()[0])
    assert chi2 == pytest.approx(edited, abs=0.01)


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
    for name, content in (
        ("other.csv", b"\0"),
        ("other.csv", b""),
        ("other.unmeasured", damaged.getvalue()),
        ("cut.unmeasured", saved[1:]),
    ):
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


def people():
    """Two countries with opposite paths, an age that acts on one latent, an effect, and a covariance of residuals."""
    rng = np.random.default_rng(5)
    parts = []
    for country, path in ((1, 0.6), (2, -0.5)):
        age = rng.uniform(18, 70, 300)
        work = 0.03 * (age - 40) + rng.normal(size=300)
        home = path * work + 0.8 * rng.normal(size=300)
        # A reversed item is the strongest in the second country only: the latent points the same way all the same.
        noise = 0.6 * rng.normal(size=(300, 6)) * np.array([1, 1, 1, 1, 1.5 if country == 1 else 0.5, 1])
        items = np.column_stack([work] * 3 + [home, -home, home]) + noise
        part = pd.DataFrame(items, columns=["w1", "w2", "w3", "h1", "h2", "h3"])
        part = part.assign(age=age, days=0.6 * home + rng.normal(size=300), country=country)
        parts.append(part.assign(q=rng.integers(1, 6, 300)))
    return pd.concat(parts, ignore_index=True)


class Line:
    """What a process that searches sends."""

    def __init__(self):
        self.sent = []

    def send(self, message):
        self.sent.append(message)


def test_covariates_outcomes_and_groups_go_from_the_columns_into_the_search_and_its_tables(tmp_path):
    made = Project(tmp_path)
    made.open_file("people.csv", people().to_csv(index=False).encode())
    made.choose_many("*", {"role": "item"})
    made.choose(
        [
            {"name": "age", "role": "covariate"},
            {"name": "days", "role": "outcome"},
            {"name": "q", "role": "group"},
            {"name": "country", "role": "group"},  # one column names the groups: the last
        ],
        {},
    )
    assert made.grouped_by == "country"
    assert made.named("omit") == ["q"]
    made.know({"groups": {"Work": ["w1", "w2"]}, "tiers": [["age"], ["Work"], ["days"]]})
    sample, options = made.sample(), made.search_options()
    assert (sample.covariates, sample.outcomes) == (("age",), ("days",))
    assert set(sample.groups) == {"1", "2"}
    assert "2 groups of people: 1 300, 2 300 rows." in [f["text"] for f in made.check()["findings"]]
    line = Line()
    jobs._search({"sample": sample, "options": options, "about": made.about()}, line, {})
    made.found(line.sent[-1]["run"], line.sent[-1]["people"])
    assert made.state()["result"]["has_groups"]
    tables = {table["title"]: table for table in panel(made, "groups")["tables"]}
    (path,) = [
        [cell[0] for cell in row] for row in tables["Paths of each group"]["rows"]
        if {row[0][0], row[1][0]} <= set(made.result.graph.latents)
    ]  # fmt: skip
    assert path[-1] == "≠"
    assert (path[2][0] == "−") != (path[3][0] == "−")
    signs = [{row[1][0]: row[k][0][0] == "−" for row in tables["Loadings of each group"]["rows"]} for k in (2, 3)]
    assert signs[0] == signs[1]
    assert any("≠" in edge["label"] for edge in made.diagram()["full"]["edges"])
    # An edit keeps the roles: chi-square is that of the same model as text.
    latent = made.result.graph.latents[0]
    before = made.current().sem
    made.edit({"kind": "add", "source": latent, "target": "h1"})
    made.edit({"kind": "add", "source": "w1", "target": "h2"})
    now = made.current()
    assert (now.graph.variables.covariates, now.graph.variables.outcomes) == (("age",), ("days",))
    assert now.sem.df == before.df - 2
    assert now.sem.chi2 == pytest.approx(um.fit(now.to_lavaan(), now.sem.sample).chi2, abs=0.01)
    for action, words in (
        ({"kind": "add", "source": latent, "target": "age"}, "a covariate, which nothing causes"),
        ({"kind": "add", "source": "w1", "target": latent}, "items cause nothing"),
        ({"kind": "add", "source": "days", "target": latent}, "an outcome"),
        ({"kind": "add", "source": "h2", "target": "w1"}, "covary already"),
    ):
        with pytest.raises(um.GraphError, match=words):
            made.edit(action)
    report = made.report()
    assert "added w1 ↔ h2" in report.replace("h2 ↔ w1", "w1 ↔ h2")
    assert "Beside other models" in report  # the model found
    assert "Undo the edits" in panel(made, "groups")["sentences"][0]
    # A column that is an item no more is known no more.
    made.choose([{"name": "w1", "role": "omit"}, {"name": "age", "role": "omit"}], {})
    assert made.knowledge == {"groups": {"Work": ["w2"]}, "tiers": [["Work"], ["days"]]}
    assert made.run is None


def test_the_best_model_so_far_is_shown_with_its_paths_and_watching_changes_nothing(project, monkeypatch):
    monkeypatch.setattr(jobs, "_PER_SECOND", 1e9)
    line = Line()
    with watched(jobs._Watch(line)):
        search = um.LGES().fit(project.sample())
    assert search.graph_.latent_groups == um.LGES().fit(project.sample()).graph_.latent_groups
    assert search.result_.to_json() == um.LGES().fit(project.sample()).result_.to_json()
    last = line.sent[-1]
    shown = {frozenset(items) for items in last["items"]}
    assert shown == {frozenset(items) for items in search.result_.indicators.values()}
    assert {frozenset(edge[:2]) for edge in last["edges"]} == {frozenset(p) for p in ((0, 1), (0, 2), (1, 2))}
    drawn = sketch(last["items"], last["sizes"], last["edges"])["model"]
    assert (len(drawn["nodes"]), len(drawn["edges"])) == (3, 3)


def test_a_kind_that_is_said_is_the_kind_that_is_taken(tmp_path):
    rows = table().drop(columns=["name", "same"]).iloc[10:]
    made = Project(tmp_path)
    made.open_file("answers.csv", rows.to_csv(index=False).encode())
    assert set(made.check()["kinds"].values()) == {"ordinal"}
    made.choose([{"name": "q1", "kind": "continuous"}], {})
    assert made.check()["kinds"] == {"q1": "continuous", "q2": "ordinal", "q3": "ordinal", "q4": "ordinal"}
    # And again in replicates of the rows.
    again = um.as_sample(made.sample().frame, cor=made.sample().cor)
    assert again.kinds == made.sample().kinds
    made.choose_many("q1:q2", {"kind": "ordinal"})
    assert [column.kind for column in made.columns] == ["ordinal", "ordinal", "auto", "auto"]
    for wrong in ({"kind": "nominal"}, {"role": "king"}):
        with pytest.raises(um.DataError, match=r"(is|are) one of"):
            made.choose_many("", wrong)


def test_a_sheet_of_a_workbook_and_parquet_are_read(tmp_path):
    pytest.importorskip("openpyxl", reason="Excel needs openpyxl")
    book = io.BytesIO()
    with pd.ExcelWriter(book) as writer:
        pd.DataFrame({"a note": ["please read"]}).to_excel(writer, sheet_name="about", index=False)
        people().to_excel(writer, sheet_name="answers", index=False)
    made = Project(tmp_path)
    made.open_file("book.xlsx", book.getvalue())
    assert made.state()["sheets"] == ["about", "answers"]
    made.open_sheet("answers")
    assert len(made.columns) == 10
    (tmp_path / "other").mkdir()
    again = Project(tmp_path / "other")
    again.open_file("mine.unmeasured", made.save())
    assert again.state() == made.state()
    with pytest.raises(um.DataError, match="no sheet 'nobody'"):
        made.open_sheet("nobody")
    with pytest.raises(um.DataError, match=r"broken\.xlsx"):
        made.open_file("broken.xlsx", b"PK no workbook")
    assert len(made.columns) == 10
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    rows = io.BytesIO()
    people().to_parquet(rows)
    made.open_file("people.parquet", rows.getvalue())
    assert (len(made.columns), made.sheets) == (10, [])


def test_a_table_as_apa_prints_it_and_a_file_that_is_a_matrix(tmp_path):
    made = Project(tmp_path)
    text = "Table 1\nVariable M SD 1 2 3\n1. Joy 3.1 2.0 —\n2. Grief 2.9 1.0 -.40** —\n3. Calm 3.3 3.0 .50** -.20* —"
    made.open_matrix(text + "\nNote. N = 210. *p < .05.", 210)
    assert list(made.matrix.columns) == ["Joy", "Grief", "Calm"]
    assert made.matrix.loc["Joy", "Grief"] == pytest.approx(-0.8)
    square = um.datasets.load("multitasking").frame().to_csv().encode()
    with pytest.raises(um.DataError, match="holds a covariance or correlation matrix"):
        made.open_file("matrix.csv", square)
    with pytest.raises(um.DataError, match="the first line has no names"):
        made.open_file("bare.csv", b"1.5,2.7\n3,4\n5,6\n")
    made.open_file("bare.csv", b"1.5,2.7\n3,4\n5,7\n", has_header=False)
    assert [column.name for column in made.columns] == ["x1", "x2"]


def test_hundreds_of_edits_leave_the_model_found(project, monkeypatch):
    monkeypatch.setattr("unmeasured.app.project._MOST_UNDONE", 3)
    for k in range(5):
        project.edit({"kind": "rename", "source": project.models[project.at].latents[0], "name": f"name {k}"})
    assert len(project.models) == 4
    for _ in range(5):
        project.move(-1)
    assert project.models[project.at].what == "as found"
    assert project.current() is project.result


def test_replicates_that_were_made_count_when_it_is_stopped(project, monkeypatch):
    search = um.LGES().fit(project.sample())
    made = um.stability

    def stopped(search, n, *, records=None, **options):
        if n > 3:
            made(search, 3, records=records, random_state=0)
            raise KeyboardInterrupt
        return made(search, n, records=records, **options)

    monkeypatch.setattr(um, "stability", stopped)
    line = Line()
    task = {"latents": project.result.graph.latents, "replicates": 50, "options": {}, "sample": project.sample()}
    jobs._stability(task, line, {"search": search})
    project.stability = Stability.from_json(line.sent[-1]["stability"])
    assert len(project.stability.replicates) == 3
    project.edit({"kind": "rename", "source": "Speed", "name": "Pace"})
    assert "Pace" in [row[0][0] for row in panel(project, "stability")["tables"][0]["rows"]]
    assert "3 replicates" in project.report()
