"""The report: its files, what the page says, and that it can be made again."""

from __future__ import annotations

import json
import math
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

sys.path.append(str(Path(__file__).parents[2] / "diagram"))
import models

import unmeasured as um
from unmeasured.output.report.charts import heat_map, largest_residuals, residual_correlations, step_charts
from unmeasured.output.report.groups import Shared
from unmeasured.output.report.html import html_page
from unmeasured.output.report.lead import lead
from unmeasured.output.report.run import About, Run, exact_answer, run_of
from unmeasured.output.report.write import write_run
from unmeasured.remarks import distrust
from unmeasured.results.drawing import picture_of
from unmeasured.search.item_partitions import ItemPartition
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
    assert (folder / "model.lav").read_text("utf-8").splitlines() == search.result_.to_lavaan().splitlines()
    # Every text file ends its last line, once.
    ends = {path.name: path.read_bytes()[-2:] for path in folder.iterdir() if path.suffix != ".png"}
    assert all(end.endswith(b"\n") and end != b"\n\n" for end in ends.values()), ends
    loadings = pd.read_csv(folder / "loadings.csv")
    np.testing.assert_allclose(loadings["std"], search.result_.loadings["std"], rtol=1e-12)
    assert len(pd.read_csv(folder / "paths.csv")) == len(search.result_.latent_paths)
    ET.parse(folder / "diagram.svg")
    assert um.Result.from_json((folder / "result.json").read_text("utf-8")).sem.chi2 == search.sem_.chi2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"found": None}, "A report is of a fitted search .* or of its result; got NoneType"),
        ({"found": "result.json"}, "got str"),
        ({"folder": None}, "folder is a path, as text or pathlib.Path; got NoneType"),
        ({"stability": {}}, "stability is what um.stability returned; got dict"),
        ({"exact": 3}, "exact is the result of another search of the same data; got int"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_what_no_report_can_be_made_of_is_refused(tmp_path, search, given, words):
    with pytest.raises(um.UnmeasuredError, match=words):
        um.write_report(**{"found": search, "folder": tmp_path, **given})
    assert not list(tmp_path.iterdir())


def test_the_page_can_be_made_again_from_its_file(run):
    again = Run.from_json(run.to_json())
    assert again.to_json() == run.to_json()
    assert html_page(again) == html_page(run)


def test_the_page_of_a_bare_result(search):
    page = html_page(Run.from_json(search.result_.to_json()))
    assert "The search in" not in page
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
        "What is identified, and what is not",
        "How 9 measured variables go together in 202 observations can be explained by three hidden factors",
        "Relations are linear",
        "The direction is not identified for",
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
    # lavaan has no way to spell such names: the model has others, and says whose they are.
    assert "v_1 stands for" not in page
    assert "i_1 stands for" in page


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
    assert root.get("aria-label") == "Score by step: from -9.0000 to -8.0000 in 2 steps, 1 of them accepted."
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
    with pytest.raises(um.UnmeasuredError, match=r"file.* could not be written"):
        write_run(run, tmp_path / "file")


def test_remarks_on_the_data_are_on_the_page(search):
    sample = replace(search.sample_, remarks=("Column 'id' numbers the rows.",))
    copy = um.LGES().fit(sample)
    assert "Column &#39;id&#39; numbers the rows." in html_page(run_of(copy))


def test_the_page_answers_in_the_order_of_a_readers_questions(run):
    page = html_page(run)
    places = [page.index(f'id="{name}"') for name in ("answer", "picture", "trust", "tables", "made")]
    assert places == sorted(places)
    assert page.index('id="groups"') > page.index('id="tables"')


def test_remarks_are_said_once_and_what_speaks_against_the_answer_comes_first(search):
    result = replace(search.result_, remarks=("Said twice.", distrust("Do not trust this.")))
    page = html_page(Run(result, About(notes=("Said twice.",))))
    assert page.count("Said twice.") == 1
    assert page.count("Do not trust this.") == 1
    assert page.index("Do not trust this.") < page.index('id="answer"')


def test_what_was_wrong_with_the_page_stays_away(run):
    page = html_page(run)
    for words in ("print(result.check)", "in the table above", "Samples</dt>"):
        assert words not in page
    assert page.count('aria-label="Score by step') <= 1
    assert "prefers-color-scheme: dark" in page


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: models.hierarchy(2), "; three broader factors stand behind these, T1 behind F1, F2 and F3; T2"),
        (lambda: models.roles(1), "of the covariates, "),
        (
            lambda: models.stored("teacher_burnout_traits"),
            "; one broader factor, L10, stands behind L2, L5, L7, L8 and L9",
        ),
        (lambda: models.random(0), "are not directly linked with one another"),
    ],
)
def test_the_lead_is_three_sentences_whatever_was_found(make, words):
    result = make()
    sentences = lead(result, "500 observations")
    assert len(sentences) == 3
    assert all(re.fullmatch(r"[A-Z0-9].*[^.]\.", sentence) for sentence in sentences)
    assert words in " ".join(sentences)
    first = result.rename({result.graph.latents[0]: "burnout"})
    has_labels = bool(result.sem.sample.labels)  # else a name speaks for itself
    assert ("burnout (" in " ".join(lead(first, "500 observations"))) <= has_labels


def test_the_lead_says_what_a_latent_is_seen_in():
    """By the label of what points its way most clearly and loads on nothing else."""
    result = models.stored("big_five_single").rename()
    rows = result.loadings
    first = lead(result, "19,718 observations")[0]
    assert first.count("seen most clearly in “") == 1
    for latent in result.graph.latents:
        name = f"{latent} ("
        if name not in first:
            continue
        label = first.split(name)[1].split("“")[1].split("”")[0]
        item = next(x for x, text in result.sem.sample.labels.items() if text.startswith(label))
        own = rows[(rows["latent"] == latent) & (rows["indicator"] == item)]
        assert float(own["std"].iloc[0]) > 0
    assert first.count("”") >= 3


def test_the_lead_of_one_latent_says_what_shows_it():
    dag = um.DAG.from_edges([("L", x) for x in "abcd"], latents=["L"])
    result = models.drawn_from(dag)
    strongest = result.loadings.loc[result.loadings["std"].abs().idxmax(), "indicator"]
    assert f"It shows most clearly in {strongest} (loading " in lead(result, "500 observations")[1]


def test_groups_of_people_have_a_section_that_is_kept():
    rng = np.random.default_rng(3)
    group = np.repeat(["control", "treated"], 300)
    calm = rng.normal(size=600)
    sleep = np.where(group == "treated", 0.9, 0.2) * calm + rng.normal(0, 0.8, 600)
    values = np.column_stack([calm] * 3 + [sleep] * 3) + rng.normal(0, 0.6, (600, 6))
    rows = pd.DataFrame(values, columns=["c1", "c2", "c3", "s1", "s2", "s3"])
    search = um.LGES().fit(rows.assign(group=group), groups="group")
    found = Shared.of(search.invariance_)
    assert set(map(frozenset, found.marked)) == {frozenset(search.graph_.latents)}
    run = replace(run_of(search), shared=found).rename({search.graph_.latents[0]: "<i>Calm"})
    page = html_page(run)
    assert 'id="people"' in page
    assert "control (300), treated (300)" in page
    assert "The groups control and treated share" in page
    assert "≠" in page
    assert "<i>Calm" not in page
    (row,) = run.shared.differences
    told = search.invariance_.fits["configural"].parameters
    for label, value in zip(("control", "treated"), row["estimates"]):
        assert value == float(told[(told["op"] == "~") & (told["group"] == label)]["est"].iloc[0])
    again = Run.from_json(run.to_json())
    assert html_page(again) == page
    record = json.loads(run.to_json())
    record["run"]["groups"]["supported_step"] = "nonsense"
    with pytest.raises(um.UnmeasuredError, match='"run" of this result is damaged'):
        Run.from_json(json.dumps(record))


def test_rows_behind_a_smaller_n_are_named(search):
    page = html_page(Run(search.result_, About(rows=800)))
    assert "800 rows, which are worth 202 complete ones" in page
    assert "in 800 observations" in page


def test_labels_of_a_file_stand_beside_its_items_and_propose_names(tmp_path):
    dag = um.DAG.from_edges([("L1", f"q{i}") for i in range(4)], latents=["L1"])
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=1), 300, rng=2)
    asked = ["I am tired at work", "Work makes me tired", "I wake up tired", "Tired, I go home"]
    rows.attrs["labels"] = dict(zip(rows.columns, asked))
    search = um.LGES().fit(rows)
    assert search.result_.suggested_names == {"L1": "tired"}
    again = um.Result.from_json(search.result_.to_json())
    for result in (search.result_, again):
        page = html_page(Run(result))
        assert "I wake up tired" in page
        assert "q2\\nI wake up tired" in page  # in the hint of the diagram, as JSON
        assert 'data-view="labels"' in page
        drawn = {line for node in picture_of(result, labels=True).nodes for line in node.lines}
        assert drawn == {"L1", *asked}


def test_one_name_for_a_latent_everywhere(search):
    result = replace(search.result_, remarks=("L1 and L12 are odd.",)).rename({"L1": "Questions"})
    assert result.remarks == ("Questions and L12 are odd.",)
    page = html_page(Run(search.result_.rename()))
    shown = page[: page.index("<script>")]
    assert re.search(r"\bL[1-3]\b", shown) is None
    assert '<button type="button">AverageQus_Par</button>' in shown  # a heading of the effects


def test_levels_effects_and_more_are_shown_where_a_result_has_them(search):
    items = search.result_.graph.observed
    levels = (
        ItemPartition(items, tuple("low" if x < "M" else "lower" for x in items)),
        ItemPartition(items, ("top",) * len(items)),
    )

    class Later(um.Result):
        def effects(self):
            return SimpleNamespace(matrix=pd.DataFrame({"L3": ["0.00 to 0.42"]}, index=pd.Index(["L1"], name="cause")))

        def reliability(self):
            table = pd.DataFrame({"omega": [0.625]}, index=pd.Index(["L1"], name="latent"))
            return SimpleNamespace(table=table, sentences=["L1: reliability is low."])

        def modification_indices(self):
            return pd.DataFrame(
                {"lhs": ["L1"], "op": ["=~"], "rhs": ["Speed_Letter"], "mi": [12.5], "epc": [0.1], "sepc.all": [0.1]}
            )

    fields = {name: getattr(search.result_, name) for name in search.result_.__dataclass_fields__}
    page = html_page(Run(Later(**{**fields, "stored_partitions": levels, "selected_partition": 1})))
    assert "1 latent (shown above)" in page
    for words in (">0.00 to 0.42</td>", ">0.625</td>", "L1: reliability is low.", ">12.50</td>"):
        assert words in page, words
    plain = html_page(Run(search.result_))
    assert 'id="levels"' not in plain
    assert 'id="effect-table"' in plain


@pytest.fixture(scope="module")
def tolerant():
    """A search that tolerates misfit: three factors, and minor ones."""
    rng = np.random.default_rng(4)
    factor = np.repeat([0, 1, 2], 4)
    latents = rng.multivariate_normal(np.zeros(3), np.full((3, 3), 0.3) + 0.7 * np.eye(3), 3000)
    minor = rng.standard_normal((3000, 30)) @ (rng.standard_normal((30, 12)) * 0.85 ** np.arange(30)[:, None])
    return um.LGES().fit(0.7 * latents[:, factor] + 0.7 * rng.standard_normal((3000, 12)) + 0.12 * minor)


@pytest.fixture(scope="module")
def wording():
    """A search among items with shared wording: two factors and four pairs."""
    rng = np.random.default_rng(5)
    factor = np.repeat([0, 1], 6)
    latents = rng.multivariate_normal([0, 0], [[1, 0.3], [0.3, 1]], 3000)
    residual = rng.standard_normal((3000, 12))
    for a, b in ((0, 1), (2, 3), (6, 8), (5, 9)):
        residual[:, a] = 0.7 * residual[:, b] + 0.7 * residual[:, a]
    return um.LGES().fit(0.7 * latents[:, factor] + 0.7 * residual)


def test_the_exact_answer_is_a_second_view(tolerant):
    assert tolerant.tolerance_ == 0.05
    exact = exact_answer(tolerant, 60.0)
    assert exact is not None
    assert len(exact.graph.latents) > len(tolerant.graph_.latents)
    run = run_of(tolerant, exact=exact)
    page = html_page(run)
    assert f"Without tolerance {len(exact.graph.latents)} latents would be reported instead of 3" in page
    again = Run.from_json(run.to_json())
    assert html_page(again) == page
    assert exact_answer(tolerant, 0.0) is None
    # Another model of as many latents is called that.
    assert "Without tolerance another model of 3 latents would be reported: RMSEA" in html_page(
        replace(run, exact=tolerant.result_)
    )


def test_names_keep_their_letters_and_figures_their_minus():
    rng = np.random.default_rng(3)
    a = rng.normal(size=600)
    latents = np.stack([a, 0.6 * a + 0.8 * rng.normal(size=600)], axis=1)
    items = np.repeat(latents, 3, axis=1) + 0.6 * rng.normal(size=(600, 6))
    items[300:, 0] -= 0.8  # the intercept of one item differs, and so do the means
    items[300:] -= 0.4
    rows = pd.DataFrame(items, columns=[f"q{i}" for i in range(6)])
    search = um.LGES().fit(rows.assign(country=np.repeat(["x", "y"], 300)), groups="country")
    result = search.result_.rename()
    first, second = result.graph.latents
    run = Run(result, shared=Shared.of(um.invariance(result, rows, groups=list(np.repeat(["x", "y"], 300)))))
    assert f"The factors {first} and {second} are directly linked" in lead(result, "600 observations")[1]
    page = html_page(replace(run, trace=Trace(search.trace_[:1])))
    assert "The search in 1 step<" in page
    assert "(CFI −0." in page
    assert f"{first} −" in page
    assert not re.search(r"(CFI|RMSEA|in units of .*) -\d", page)


def test_pairs_are_on_the_page_and_in_a_file_of_their_own(wording, tmp_path):
    folder = write_run(run_of(wording), tmp_path).parent
    pairs = pd.read_csv(folder / "pairs.csv")
    assert set(zip(pairs["item_1"], pairs["item_2"])) == {("x1", "x2"), ("x3", "x4"), ("x7", "x9"), ("x6", "x10")}
    assert "Similar wording or method" in (folder / "report.html").read_text("utf-8")


def test_an_exact_answer_has_no_second_view(search):
    assert exact_answer(search, 10.0) is None


def test_a_model_of_one_group_of_several_latents_has_a_report():
    edges = [(latent, f"x{j}") for latent in ("L1", "L2") for j in range(6)]
    dag = um.DAG.from_edges(edges, latents=["L1", "L2"])
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, np.random.default_rng(1)), 500, rng=2)
    result = um.Result(dag.cpdag(), um.fit(dag.cpdag(), rows))
    page = html_page(run_of(result))
    assert "{L1, L2}" in page
    assert "Reliability" not in page
