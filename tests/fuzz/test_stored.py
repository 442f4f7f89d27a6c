"""Damaged files of our own: results, stability and its records, projects of the application."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malformed import answered, damaged_bytes, damaged_json, damaged_text, fuzzed, one_in
from unmeasured.app.project import Project
from unmeasured.output.report.run import Run
from unmeasured.output.report.screen import screen
from unmeasured.output.report.write import write_run
from unmeasured.validation.replicates.records import Records
from unmeasured.validation.replicates.result import Stability


@fuzzed(50, 500)
@given(st.data())
def test_results(folder, results, data):
    text = data.draw(damaged_json(data.draw(st.sampled_from(results))))
    is_written = data.draw(one_in(25))

    def shown():
        run = Run.from_json(text)
        result = run.result
        screen(result, run.about.seconds), result.summary(), result._repr_html_(), run.to_json()
        result.to_lavaan(), result.to_semopy(), result.edges, result.runners_up, result.edge_probabilities
        result.rename().summary()
        if is_written:
            write_run(run, folder / "report")

    answered(shown)


@fuzzed(50)
@given(st.data())
def test_stability(search, stable, data):
    text = data.draw(damaged_json(stable.to_json()))

    def shown():
        found = Stability.from_json(text)
        found.summary(), found.to_record(), found.consensus(0.5), found.is_of(search.graph_)

    answered(shown)


@fuzzed(50)
@given(st.data())
def test_records_are_refused_unchanged_or_read(folder, records, about, data):
    if data.draw(one_in(3)):
        text = damaged_text(records)
    else:
        lines = [data.draw(damaged_json(line)) if data.draw(one_in(3)) else line for line in records.splitlines()]
        text = st.just("\n".join(lines) + data.draw(st.sampled_from(["", "\n"])))
    content = data.draw(damaged_bytes(text))
    path = folder / "records.jsonl"
    path.write_bytes(content)
    kept = []
    if not answered(lambda: kept.append(Records(path, about))):
        assert path.read_bytes() == content
        return
    for replicate in kept[0].done.values():
        kept[0].add(replicate)
    assert set(Records(path, about).done) == set(kept[0].done)


def parts_of(archive):
    with zipfile.ZipFile(io.BytesIO(archive)) as parts:
        return {name: parts.read(name) for name in parts.namelist()}


@pytest.fixture(scope="session")
def opened(folder, rows, search):
    """What makes a project with rows and a result."""
    (folder / "project").mkdir()
    result = Run(search.result_).to_json()

    def make():
        project = Project(folder / "project")
        project.open_file("rows.csv", rows.to_csv(index=False).encode())
        project.found(result)
        return project

    return make


@pytest.fixture(scope="session")
def saved(opened):
    """The parts of its file."""
    return parts_of(opened().save())


@fuzzed(40, 400)
@given(st.data())
def test_projects_are_refused_without_a_change_or_opened(opened, saved, data):
    part = data.draw(st.sampled_from(sorted(saved)))
    text = saved[part].decode()
    way = damaged_json(text) if part.endswith(".json") and not data.draw(one_in(4)) else damaged_text(text)
    parts = {**saved, part: data.draw(damaged_bytes(way))}
    if data.draw(one_in(20)):
        del parts[data.draw(st.sampled_from(sorted(parts)))]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    content, at = out.getvalue(), data.draw(st.integers(0, len(out.getvalue())))
    if data.draw(one_in(10)):
        content = content[:at] + data.draw(st.binary(max_size=5)) + content[at + data.draw(st.integers(0, 5)) :]
    project = opened()
    before = project.save()
    if not answered(lambda: project.open_file("mine.unmeasured", content)):
        assert parts_of(project.save()) == parts_of(before)
        return

    def shown():
        project.save()
        if project.run is not None:
            project.current().summary(), project.diagram()

    assert answered(shown)
