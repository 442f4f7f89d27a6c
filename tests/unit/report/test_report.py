"""The report: its files, what the page says, and that it can be made again."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.report.charts import heat_map, largest_residuals, residual_correlations, step_charts
from unmeasured.report.html import html_page
from unmeasured.report.run import About, Run, run_of
from unmeasured.report.write import write_run
from unmeasured.search.trace import Step, Trace


@pytest.fixture(scope="module")
def data():
    return um.datasets.load("multitasking")


@pytest.fixture(scope="module")
def search(data):
    return um.LGES().fit_cov(data.frame(), data.n_samples)


@pytest.fixture(scope="module")
def run(search, data):
    about = About(title="Doing two things at once", data=data.title, command="unmeasured demo", seconds=1.25)
    return run_of(search, about=about, published=data.models)


def test_all_files_are_written_and_say_the_same(tmp_path, run, search):
    page = write_run(run, tmp_path / "new" / "folder")
    folder = page.parent
    names = ["diagram.png", "diagram.svg", "loadings.csv", "model.lav", "paths.csv", "report.html", "result.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / "model.lav").read_text("utf-8") == search.result_.to_lavaan()
    loadings = pd.read_csv(folder / "loadings.csv")
    np.testing.assert_allclose(loadings["std"], search.result_.loadings["std"], rtol=1e-12)
    assert len(pd.read_csv(folder / "paths.csv")) == len(search.result_.latent_paths)
    ET.parse(folder / "diagram.svg")
    assert um.Result.from_json((folder / "result.json").read_text("utf-8")).sem.chi2 == search.sem_.chi2


def test_the_page_can_be_made_again_from_its_file(run):
    again = Run.from_json(run.to_json())
    assert again.to_json() == run.to_json()
    assert html_page(again) == html_page(run)


def test_the_page_of_a_bare_result(search):
    page = html_page(Run.from_json(search.result_.to_json()))
    assert "How the search got there" not in page
    assert "How well it fits" in page


def test_a_damaged_file_is_refused_with_a_sentence(run):
    record = json.loads(run.to_json())
    del record["run"]["about"]["notes"]
    with pytest.raises(um.UnmeasuredError, match='"run" of this result is damaged'):
        Run.from_json(json.dumps(record))


def test_the_page_says_what_was_asked_and_found(run):
    page = html_page(run)
    for words in (
        "Doing two things at once",
        "202",
        "1.2 s",
        "unmeasured demo",
        "45.00 on 23 df",
        "acceptable, up to .08",
        "himi_three_factor",
        "The direction is not identified of",
        "It was chosen with the same data",
        "International Conference on Learning Representations",
        "lavaan: sem(model, data, std.lv = TRUE)",
        f"unmeasured {um.__version__}",
    ):
        assert words in page, words


def test_the_page_needs_nothing_from_outside(run):
    page = html_page(run)
    assert page.startswith("<!DOCTYPE html>")
    # A name space is a name, not an address anybody asks for.
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page)) - {"http://www.w3.org/2000/svg"}
    assert addresses == set()
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=[\"'](?!data:)", page)


def test_names_cannot_break_the_page():
    edges = [("</script><b>L", x) for x in ("<i>1", 'x"2', "x'3", "x&4")]
    dag = um.DAG.from_edges(edges, latents=["</script><b>L"])
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=1), 300, rng=2)
    result = um.Result(dag.cpdag(), um.fit(dag, rows))
    page = html_page(run_of(result, about=About(title="<u>title")))
    assert page.count("</script>") == 2
    for tag in ("<b>L", "<i>1", "<u>title"):
        assert tag not in page
    ET.fromstring(heat_map(result))
    # lavaan has no way to spell such names: the page says so instead of a model.
    assert "# lavaan cannot read these names" in page


def test_residuals_are_observed_less_implied(search):
    result = search.result_
    residual = residual_correlations(result)
    np.testing.assert_allclose(np.diag(residual), 0.0, atol=1e-12)
    # SRMR as lavaan has it is the root mean square of these, variances counted as well.
    i, j = np.tril_indices(len(residual))
    assert math.sqrt((residual[i, j] ** 2).mean()) == pytest.approx(result.sem.srmr, rel=0.02)
    a, b, value = largest_residuals(result, 1)[0]
    names = result.sem.sample.names
    assert value == residual[names.index(a), names.index(b)]
    assert abs(value) == np.abs(residual).max()


def step(phase, before, after, accepted=True):
    return Step(phase, "a & b", 5, 1, 3, 1, before, after, 0.0, accepted, "because")


def test_steps_become_a_chart_for_each_phase():
    trace = Trace([step("one", -9.0, -8.0), step("one", -8.0, -7.5, False), step("two", -1.0, -math.inf)])
    (chart,) = step_charts(trace)
    assert chart[0] == "one"
    root = ET.fromstring(chart[1])
    looks = [element.get("class") for element in root.iter() if element.tag.endswith("circle")]
    assert looks == ["kept", "refused"]
    (line,) = [element for element in root.iter() if element.tag.endswith("polyline")]
    heights = [float(point.split(",")[1]) for point in line.get("points").split()]
    # A step that was refused leaves the search where it was.
    assert heights[0] > heights[1] == heights[2]


def test_a_search_that_found_nothing_has_a_report_too(tmp_path):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 5)), columns=list("abcde"))
    search = um.LGES().fit(rows)
    page = um.write_report(search, tmp_path).read_text("utf-8")
    assert "No latent variables were found" in page


def test_a_population_has_a_report(tmp_path):
    dag = um.DAG.from_edges([("L", x) for x in "abcd"], latents=["L"])
    cov = um.simulate.realistic_parameters(dag, rng=1).cov()
    result = um.Result(dag.cpdag(), um.fit(dag, cov=cov, n_samples=math.inf, names=dag.observed))
    run = run_of(result)
    assert "a population" in html_page(run)
    assert Run.from_json(run.to_json()).to_json() == run.to_json()


def test_mistakes_are_sentences(tmp_path, run):
    with pytest.raises(um.UnmeasuredError, match="not fitted yet"):
        um.write_report(um.LGES(), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(um.UnmeasuredError, match=r"could not be written to .*file"):
        write_run(run, tmp_path / "file")


def test_remarks_on_the_data_are_on_the_page(search):
    sample = replace(search.sample_, remarks=("Column 'id' numbers the rows.",))
    copy = um.LGES().fit(sample)
    assert "Column &#39;id&#39; numbers the rows." in html_page(run_of(copy))
