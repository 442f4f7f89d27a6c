"""Documents are opened again by the libraries of their formats, and their figures compared with those of the result."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.files import write_text
from unmeasured.output.publish.tables import plain, shown, tables_of
from unmeasured.output.report.groups import Shared
from unmeasured.output.report.run import About, Run, run_of
from unmeasured.search.item_partitions import Level
from unmeasured.search.roles.multigroup import within_groups

HAS_LAVAAN = (
    bool(shutil.which("Rscript"))
    and not subprocess.run(["Rscript", "-e", "library(lavaan)"], capture_output=True).returncode
)
needs_lavaan = pytest.mark.skipif(not HAS_LAVAAN, reason="R with lavaan is not installed")


@pytest.fixture(scope="module")
def run() -> Run:
    data = um.datasets.load("multitasking")
    search = um.LGES().fit_cov(data.frame(), data.n_samples)
    made = run_of(search, about=About(title="Tasks", data="matrix.csv"), published=data.models)
    return Run(made.result.rename(), made.about, made.trace, made.comparison)


@pytest.fixture(scope="module")
def rotated() -> Run:
    """A group of two latents, whose rotation is chosen, names that no program likes, and labels."""
    edges = [(latent, f"item {k}") for latent in ("=A", "B") for k in range(1, 7)]
    edges += [("B & <C>", f"y_{k}%") for k in range(1, 4)] + [("=A", "B & <C>"), ("B", "B & <C>")]
    dag = um.DAG.from_edges(edges, latents=["=A", "B", "B & <C>"])
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=3), 600, rng=4)
    rows.attrs["labels"] = {"item 1": "I say: x < y & z"}
    return run_of(um.Result(dag.cpdag(), um.fit(dag, rows)), about=About(title="<b>", data="rows.csv", rows=600))


def texts(table) -> list[list[str]]:
    return [[shown(cell) for cell in row.cells] for row in table.rows]


def test_tables_have_the_figures_of_the_result(run):
    loadings = next(table for table in tables_of(run) if table.key == "loadings")
    rows = {row.cells[0]: row.cells for row in loadings.rows if not row.is_heading}
    expected = run.result.loadings.set_index("indicator")
    for x in ("Speed_Letter", "Error_Figure"):
        cells = rows[x]
        est, se, p, std, std_se, low, high = cells[1:8]
        figures = expected.loc[x]
        assert (est.value, se.value, p.value, std.value, std_se.value) == tuple(
            figures[["est", "se", "pvalue", "std", "std_se"]]
        )
        assert (low.value, high.value) == pytest.approx(
            (figures["std"] - 1.959964 * figures["std_se"], figures["std"] + 1.959964 * figures["std_se"])
        )
    fit = next(table for table in tables_of(run) if table.key == "fit")
    assert texts(fit)[0][:7] == ["Model found", "45.00", "23", ".004", ".978", ".965", ".069"]
    assert [row[0] for row in texts(fit)] == ["Model found", "himi_chain", "himi_three_factor"]


def test_a_rotation_that_was_chosen_is_said_to_be(rotated):
    loadings = next(table for table in tables_of(rotated) if table.key == "loadings")
    assert any("0.00ᵃ" in row for row in texts(loadings))
    assert "Set to 0 to choose the rotation" in loadings.note
    assert [plain(column.head) for column in loadings.columns][:2] == ["Indicator", "Wording"]


@pytest.mark.parametrize("name", ["run", "rotated"])
def test_word_reads_real_tables(name, request, tmp_path):
    docx = pytest.importorskip("docx")
    made = request.getfixturevalue(name)
    um.publication(made).to_docx(tmp_path / "a.docx")
    document = docx.Document(str(tmp_path / "a.docx"))
    tables = tables_of(made)
    assert len(document.tables) == len(tables)
    for table, grid in zip(tables, document.tables, strict=True):
        heads = len(grid.rows) - len(table.rows)
        for row, line in zip(table.rows, list(grid.rows)[heads:], strict=True):
            found = [cell.text for cell in line.cells]
            wanted = [shown(cell) for cell in row.cells]
            assert found == (wanted * len(table.columns) if row.is_heading else wanted)
    words = [paragraph.text for paragraph in document.paragraphs]
    assert "Table 1" in words
    assert any(text.startswith("Note. N = ") for text in words)
    italics = [run.text for paragraph in document.paragraphs for run in paragraph.runs if run.italic]
    assert "Note. " in italics
    assert "N" in italics


@pytest.mark.parametrize("name", ["run", "rotated"])
def test_workbooks_hold_numbers_and_no_formulas(name, request, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    made = request.getfixturevalue(name)
    um.publication(made).to_xlsx(tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    tables = tables_of(made)
    assert book.sheetnames == [table.key for table in tables]
    assert not any(cell.data_type == "f" for sheet in book for row in sheet.iter_rows() for cell in row)
    sheet, table = book["loadings"], tables[0]
    first = next(row[0].row for row in sheet.iter_rows() if row[0].value == "Indicator") + 1
    for row, line in zip(table.rows, sheet.iter_rows(min_row=first)):
        wanted = [cell if isinstance(cell, str) else cell.value for cell in row.cells]
        for found, b in zip(line, wanted):
            assert found.value == (pytest.approx(b) if isinstance(b, float) else b or None)


def test_the_page_escapes_names(rotated):
    page = um.publication(rotated).to_html()

    class Tables(HTMLParser):
        n, cells = 0, ()

        def handle_starttag(self, tag, attrs):
            self.n += tag == "table"

        def handle_data(self, data):
            self.cells = (*self.cells, data)

    reader = Tables()
    reader.feed(page)
    assert reader.n == len(tables_of(rotated))
    assert "B & <C>" in reader.cells
    assert "<C>" not in page


def test_latex_escapes_names_and_closes_what_it_opens(rotated):
    text = um.publication(rotated).to_latex()
    begun, ended = (re.findall(rf"\\{word}{{(\w+)}}", text) for word in ("begin", "end"))
    assert sorted(begun) == sorted(ended)
    assert r"y\_1\%" in text
    assert r"B \& $<$C$>$" in text
    for line in text.splitlines():
        assert len(re.findall(r"(?<!\\)[{]", line)) == len(re.findall(r"(?<!\\)[}]", line)), line


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
@pytest.mark.parametrize("name", ["run", "rotated"])
def test_latex_compiles(name, request, tmp_path):
    um.publication(request.getfixturevalue(name)).to_latex(tmp_path / "a.tex")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_methods_speak_of_this_run(run):
    text = um.publication(run).to_methods()
    assert "9 observed variables (N = 202)" in text
    assert "χ²(23) = 45.00, p = .004, CFI = .978" in text
    assert f"unmeasured {um.__version__}" in text
    assert "compared with 2 other models" in text
    assert "direction of 3 of the edges" in text
    for absent in ("polychoric", "missing", "Yuan", "replicates"):
        assert absent not in text


def test_methods_say_how_the_number_of_latents_was_chosen_if_misfit_is_tolerated(run):
    names = tuple(run.result.graph.variables.observed)
    coarse = Level(names, ("A",) * 3 + ("B",) * (len(names) - 3), 0.8)
    lead = Level(names, ("A",) * 3 + ("B",) * 3 + ("C",) * (len(names) - 6), 0.957)
    result = replace(run.result, reading=(lead, coarse), headline=0)
    text = um.publication(Run(result, replace(run.about, tolerance=0.05))).to_methods()
    assert "3 latent variables (mean adjusted Rand index between data and replicates .96)" in text
    assert "Partitions into 2 latent variables were reproduced as well." in text
    assert "chosen by replication" not in um.publication(run).to_methods()


def test_small_p_values_of_workbooks_are_numbers_shown_as_in_print(run, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    um.publication(run).to_xlsx(tmp_path / "a.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx")["loadings"]
    formats = {cell.number_format for row in sheet.iter_rows() for cell in row if isinstance(cell.value, float)}
    assert '[<0.001]"< .001";.000' in formats


def test_methods_of_ordinal_rows_with_missing_values():
    truth = um.simulate.random_gnfm(n_latents=2, n_observed=8, rng=1)
    rows = um.simulate.sample(truth, 400, rng=2, parameters="realistic")
    cut = rows.apply(lambda column: pd.cut(column, 4, labels=False)).astype(float)
    search = um.LGES(cor="polychoric").fit(cut)
    text = um.publication(search).to_methods()
    assert "All variables were treated as ordinal" in text
    assert "Olsson, U. (1979)" in text
    holes = rows.mask(np.random.default_rng(0).random(rows.shape) < 0.05)
    text = um.publication(um.LGES().fit(holes)).to_methods()
    assert f"{100 * holes.isna().mean().mean():.1f}% of the values were missing" in text
    assert "EM algorithm (Dempster et al., 1977)" in text
    both = um.publication(um.LGES(cor="polychoric").fit(cut.mask(holes.isna()))).to_methods()
    assert "each correlation was estimated from all observations with values of both variables" in both
    assert "Dempster" not in both
    assert "Olsson" not in text


def test_every_citation_is_listed_and_in_bibtex(run):
    article = um.publication(run)
    text, bibtex = article.to_methods(), article.to_bibtex()
    body, _, listed = text.partition("References\n")
    for surname, year in re.findall(
        r"([A-Z][a-zäöü]+)(?: (?:&|and) [A-Z][a-z]+| et al\.)?,? \(?((?:19|20)\d\d)\)?", body
    ):
        if surname != "The":
            assert re.search(rf"{surname}.*\({year}\)|developers \({year}\)", listed), (surname, year)
    keys = re.findall(r"@\w+{(\w+),", bibtex)
    assert len(keys) == len(set(keys)) == len([line for line in listed.splitlines() if line])
    assert bibtex.count("{") == bibtex.count("}")


@needs_lavaan
def test_the_r_script_gives_our_figures_from_a_matrix(run, tmp_path):
    assert_same_in_r(um.publication(run).to_r(), tmp_path)


@needs_lavaan
@pytest.mark.parametrize("skewed", [False, True])
def test_the_r_script_reads_rows(skewed, tmp_path):
    truth = um.simulate.random_gnfm(n_latents=3, n_observed=10, rng=5)
    rows = um.simulate.sample(truth, 500, rng=6, parameters="realistic")
    rows = np.exp(rows) if skewed else rows
    rows.columns = ["item 1", *rows.columns[1:]]
    rows.insert(0, "person", np.arange(len(rows)) % 7)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    search = um.LGES(cor="pearson").fit(rows.drop(columns="person"))
    assert (search.result_.fit.robust is not None) == skewed
    script = um.publication(search, data="rows.csv").to_r()
    printed = assert_same_in_r(script, tmp_path)
    assert ("chisq.scaled" in printed) == skewed


@needs_lavaan
def test_the_r_script_of_a_chosen_rotation(rotated, tmp_path):
    made = Run(rotated.result, About(data="m.csv"))
    assert_same_in_r(um.publication(made).to_r(), tmp_path)


@pytest.fixture(scope="module")
def paired() -> Run:
    """Items with residuals that covary."""
    edges = [("A", f"a{k}") for k in range(1, 5)] + [("B", f"b{k}") for k in range(1, 5)] + [("A", "B")]
    dag = um.DAG.from_edges(edges, latents=["A", "B"])
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=3), 500, rng=4)
    rows[["a1", "b1"]] += np.random.default_rng(0).standard_normal((500, 1))
    dag = dag.with_pairs([("a1", "b1")])
    return run_of(um.Result(dag.cpdag(), um.fit(dag, rows)), about=About(data="rows.csv"))


def test_residuals_that_covary_are_in_tables_and_methods(paired):
    table = next(table for table in tables_of(paired) if table.key == "covariances")
    assert [row[0] for row in texts(table)] == ["a1 ↔ b1"]
    text = um.publication(paired).to_methods()
    assert "were allowed to covary: a1 and b1." in text
    assert "but for the pairs named" in text


@needs_lavaan
def test_the_r_script_of_residuals_that_covary(paired, tmp_path):
    assert "a1 ~~    b1" in re.sub(r"~~ +", "~~    ", assert_same_in_r(um.publication(paired).to_r(), tmp_path))


@needs_lavaan
def test_the_r_script_fits_rows_with_missing_values_by_full_information(tmp_path):
    truth = um.simulate.random_gnfm(n_latents=2, n_observed=7, rng=7)
    rows = um.simulate.sample(truth, 400, rng=8, parameters="realistic")
    rows = rows.mask(np.random.default_rng(0).random(rows.shape) < 0.05)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    search = um.LGES(cor="pearson").fit(rows)
    script = um.publication(search, data="rows.csv").to_r()
    assert 'missing = "fiml"' in script
    assert_same_in_r(script, tmp_path)


def with_roles(dag: um.DAG, n: int, seed: int) -> pd.DataFrame:
    """Rows of a model of latents, and beside them a covariate and an outcome that have to do with the items."""
    rng = np.random.default_rng(seed)
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=3), n, rng=seed)
    age = rng.standard_normal(n)
    first, last = rows.columns[:3], rows.columns[-3:]
    rows = rows.add(pd.DataFrame(0.4 * age[:, None] * np.ones(3), columns=first), fill_value=0.0)[rows.columns]
    return rows.assign(age=age, sex=rng.standard_normal(n), sick=0.5 * rows[last].mean(axis=1) + rng.standard_normal(n))


@pytest.fixture(scope="module")
def in_groups() -> tuple[Run, pd.DataFrame]:
    """Two groups of people, covariates with a direct effect, an outcome."""
    edges = [("A", f"a{k}") for k in range(1, 4)] + [("B", f"b{k}") for k in range(1, 4)] + [("A", "B")]
    roles = {"covariates": ["age", "sex"], "outcomes": ["sick"]}
    parts = [with_roles(um.DAG.from_edges(edges, latents=["A", "B"]), 200 + 20 * seed, seed) for seed in (3, 4)]
    dag = um.DAG.from_edges(
        [*edges, ("age", "A"), ("age", "b1"), ("sex", "A"), ("B", "sick")], latents=["A", "B"], **roles
    )
    rows = pd.concat([part.assign(town=town) for part, town in zip(parts, "xy")], ignore_index=True)
    samples = [um.as_sample(part, **roles) for part in parts]
    result = um.Result(dag.cpdag(), um.fit(dag, within_groups(samples)))
    shared = um.invariance(dag, rows, groups="town")
    about = About(data="rows.csv", rows=len(rows), groups="town")
    return replace(run_of(result, about=about), shared=Shared.of(shared)), rows


def test_groups_and_covariates_are_in_tables_and_methods(in_groups):
    made = Run.from_json(in_groups[0].to_json())
    tables = {table.key: texts(table) for table in tables_of(made)}
    assert [row[0] for row in tables["direct"]] == ["age → b1"]
    assert {row[0]: row[-1] for row in tables["paths"]} == {
        "age → A": "age is a covariate",
        "sex → A": "sex is a covariate",
        "B → sick": "sick is an outcome",
        "A → B": "identified",
    }
    assert "covariances" not in tables
    steps = made.shared.steps
    assert [row[1] for row in tables["groups"]] == [f"{step['chi2']:.2f}" for step in steps]
    assert [row[0] for row in tables["groups"]][:2] == ["Same structure", "Equal loadings"]
    text = um.publication(made).to_methods()
    assert "One structure was searched for several groups of persons (town)" in text
    assert "Chen, F. F. (2007)" in text


@needs_lavaan
def test_the_r_script_of_groups_with_covariates(in_groups, tmp_path):
    made, rows = in_groups
    rows.to_csv(tmp_path / "rows.csv", index=False)
    printed = assert_same_in_r(um.publication(made).to_r(), tmp_path)
    found = re.search(r"difference of chi-square in groups: ([\d.]+)", printed)
    assert found is not None
    assert float(found[1]) < 1e-3


@needs_lavaan
def test_the_r_script_of_levels_covariates_and_outcomes(tmp_path):
    edges = [("T", f"F{k}") for k in range(1, 5)] + [(f"F{k}", f"x{k}{j}") for k in range(1, 5) for j in range(3)]
    roles = {"covariates": ["age"], "outcomes": ["sick"]}
    latents = ["T", "F1", "F2", "F3", "F4"]
    rows = with_roles(um.DAG.from_edges(edges, latents=latents), 400, 3)
    edges += [("age", "T"), ("age", "x10"), ("F4", "sick")]
    dag = um.DAG.from_edges(edges, latents=latents, **roles).with_pairs([("x11", "x22")])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    result = um.Result(dag.cpdag(), um.fit(dag, rows.drop(columns="sex")))
    printed = assert_same_in_r(um.publication(run_of(result, about=About(data="rows.csv", rows=400))).to_r(), tmp_path)
    for line in ("T =~ +F1", "T +~ +age", "x10 +~ +age", "sick +~ +F4", "x11 +~~ +x22"):
        assert re.search(line, printed), line


def assert_same_in_r(script: str, folder, rtol: float = 0.0) -> str:
    write_text(folder / "model.R", script)
    done = subprocess.run(["Rscript", "model.R"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = re.search(r"standardised estimate: ([\d.]+); of chi-square: ([\d.]+)", done.stdout)
    assert found is not None, done.stdout[-2000:]
    assert float(found[1]) < 1e-4
    assert rtol or float(found[2]) < 1e-3
    table = done.stdout.split("\nFit\n")[1].split("\nLargest")[0]
    figures = pd.read_csv(BytesIO(table.encode()), sep=r"\s+")
    np.testing.assert_allclose(figures["lavaan"], figures["unmeasured"], atol=2e-3, rtol=rtol)
    return done.stdout


def test_a_population_has_no_r_script():
    truth = um.simulate.random_gnfm(n_latents=2, n_observed=6, rng=1)
    cov = um.simulate.realistic_parameters(truth, rng=1).cov()
    article = um.publication(um.LGES().fit_cov(cov, np.inf))
    with pytest.raises(um.UnmeasuredError, match="needs a number of samples"):
        article.to_r()
    assert "in a population" in article.to_methods()
    assert article.tables


def test_mistakes_are_sentences(run, tmp_path):
    for call, sentence in (
        (lambda: um.publication("x"), "takes a fitted search, a result or a run; got str"),
        (lambda: um.publication(run.result, published=["f =~ x1"]), "models by name"),
        (lambda: um.publication(run).write("doc", tmp_path / "a"), "no format 'doc'; did you mean 'docx'"),
        (lambda: run.result.effects(confidence="x"), "confidence is a probability"),
    ):
        with pytest.raises(um.UnmeasuredError, match=sentence):
            call()
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_is_absent_is_a_sentence(run, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "docx", None)
    with pytest.raises(um.UnmeasuredError, match=r"needs the package python-docx: pip install 'unmeasured\[publish\]'"):
        um.publication(run).to_docx(tmp_path / "a.docx")
    assert list(tmp_path.iterdir()) == []


def test_many_latents_are_tabulated_in_parts(tmp_path):
    names = [f"L{i}" for i in range(1, 15)]
    edges = [(name, f"{name}_{k}") for name in names for k in range(3)] + list(itertools.pairwise(names))
    dag = um.DAG.from_edges(edges, latents=names)
    rows = um.simulate.sample(um.simulate.realistic_parameters(dag, rng=1), 600, rng=2)
    article = um.publication(um.Result(dag.cpdag(), um.fit(dag, rows)))
    tables = {table.key: table for table in article.tables}
    assert list(tables) == ["loadings", "correlations", "correlations13", "paths", "fit"]
    assert "not tabulated" in tables["paths"].note
    assert "Maathuis" not in article.to_methods()
    shown_pairs = [
        (row.cells[0], column.head)
        for key in ("correlations", "correlations13")
        for row in tables[key].rows
        for column, cell in zip(tables[key].columns, row.cells, strict=True)
        if column.head.isdigit() and not isinstance(cell, str)
    ]
    assert len(shown_pairs) == len(set(shown_pairs)) == 14 * 13 // 2
