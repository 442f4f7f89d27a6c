"""Every kind of result, written as JSON and read again, alone and by every command that takes a result.

The oracle is the result in memory: what is read back must say the same in tables, texts and exports.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import unmeasured as um
from unmeasured.cli import commands as cli
from unmeasured.graphs.outline import group_name
from unmeasured.output.publish.publication import Publication
from unmeasured.output.report.groups import Shared
from unmeasured.output.report.run import About, Run, exact_answer, run_of, search_of
from unmeasured.validation.replicates.result import Stability


@dataclass(frozen=True)
class Kind:
    """A result with the rows or the matrix that it is of."""

    search: um.LGES | um.ExactSearch
    run: Run
    rows: pd.DataFrame
    n: float | None = None  # of a matrix


def two_factors(n: int, seed: int, heavy: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    draw = (lambda *size: rng.standard_t(4, size=size)) if heavy else (lambda *size: rng.normal(size=size))
    a = draw(n)
    f = np.stack([a, 0.5 * a + 0.8 * draw(n)], axis=1)
    items = np.repeat(f, [4, 4], axis=1) + 0.8 * draw(n, 8)
    return pd.DataFrame(items, columns=[f"{x}{i}" for x in "ab" for i in range(4)])


def block(n: int, seed: int, heavy: bool = False) -> pd.DataFrame:
    """Two latents that share six indicators, and a third latent."""
    rng = np.random.default_rng(seed)
    f = rng.standard_t(4, size=(n, 3)) if heavy else rng.normal(size=(n, 3))
    f[:, 2] += 0.6 * f[:, 0]
    loadings = np.zeros((3, 9))
    loadings[:2, :6] = [[0.9, 0.8, 0.7, 0.2, -0.3, 0.5], [0.2, -0.4, 0.5, 0.9, 0.8, -0.7]]
    loadings[2, 6:] = 0.9
    items = f @ loadings + 0.5 * rng.normal(size=(n, 9))
    return pd.DataFrame(items, columns=[f"x{i}" for i in range(9)])


def in_categories(rows: pd.DataFrame, cuts: tuple[float, ...] = (-1.0, -0.3, 0.3, 1.0)) -> pd.DataFrame:
    z = (rows - rows.mean()) / rows.std()
    return z.apply(lambda column: np.digitize(column, cuts))


def hierarchy() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    g = rng.normal(size=800)
    facets = np.stack([0.8 * g + 0.6 * rng.normal(size=800) for _ in range(4)], axis=1)
    items = np.repeat(facets, 3, axis=1) + 0.6 * rng.normal(size=(800, 12))
    return pd.DataFrame(items, columns=[f"{x}{i}" for x in "abcd" for i in range(3)])


def of_rows(rows: pd.DataFrame, **options: object) -> Kind:
    search = um.LGES(**options).fit(rows)
    return Kind(search, run_of(search), rows)


def of_groups() -> Kind:
    rows = two_factors(400, 8).assign(country=np.repeat(["x", "y"], 200))
    search = um.LGES().fit(rows, groups="country")
    run = run_of(search, about=About(groups="country"))
    return Kind(search, replace(run, shared=Shared.of(search.invariance_)), rows)


def of_roles() -> Kind:
    rows = two_factors(400, 9)
    rng = np.random.default_rng(0)
    rows = rows.assign(age=40.0 + 5.0 * rng.normal(size=400))
    rows.loc[:, "a0":"a3"] += 0.1 * (rows[["age"]].to_numpy() - 40.0)
    rows["a1"] += 0.1 * rows["age"]
    rows["sick_days"] = rows["b0"] + rng.normal(size=400)
    return of_rows(rows, covariates=["age"], outcomes=["sick_days"])


def of_misfit() -> Kind:
    rng = np.random.default_rng(11)
    rows = two_factors(3000, 10)
    rows += 0.25 * rng.normal(size=(3000, 5)) @ rng.normal(size=(5, 8))  # small factors that no model has
    search = um.LGES(tolerance=0.05).fit(rows)
    return Kind(search, run_of(search, exact=exact_answer(search, 60.0)), rows)


def of_matrix(n: float) -> Kind:
    loadings = np.kron(np.eye(2), np.array([0.9, 0.8, 0.7, 0.6]))
    matrix = two_factors(300, 12).corr()
    if math.isinf(n):
        implied = loadings.T @ np.array([[1.0, 0.4], [0.4, 1.0]]) @ loadings
        matrix.loc[:, :] = implied + np.diag(1.0 - np.diag(implied))
    search = um.LGES().fit_cov(matrix, n)
    return Kind(search, run_of(search), matrix, n)


def of_holes() -> Kind:
    rows = two_factors(400, 13)
    rng = np.random.default_rng(1)
    return of_rows(rows.where(rng.random(rows.shape) > 0.1))


def by_exact_search() -> Kind:
    rows = two_factors(200, 14).iloc[:, [0, 1, 2, 4, 5, 6]]
    search = um.ExactSearch().fit(rows)
    return Kind(search, run_of(search), rows)


def confirmed() -> Kind:
    rows = two_factors(600, 15)
    first, second = um.split_rows(rows, 0.5, rng=0)
    search = um.LGES().fit(first)
    return Kind(search, replace(run_of(search), result=um.confirm(search, second).result), second)


def without_latents() -> Kind:
    rng = np.random.default_rng(16)
    return of_rows(pd.DataFrame(rng.normal(size=(200, 5)), columns=list("vwxyz")))


KNOWN = um.Knowledge(groups={"Mood": ["a0", "a1"]}, apart=[["a0", "b0"]], n_latents="at most 3", tiers=[["Mood"]])
KINDS: dict[str, Callable[[], Kind]] = {
    "continuous": lambda: of_rows(two_factors(300, 0)),
    "heavy tails": lambda: of_rows(two_factors(300, 1, heavy=True), cor="pearson"),
    "a block": lambda: of_rows(block(600, 2), tolerance=0),
    "a block of heavy tails": lambda: of_rows(block(600, 3, heavy=True), tolerance=0, cor="pearson"),
    "ordinal": lambda: of_rows(in_categories(two_factors(400, 4))),
    "an ordinal block": lambda: of_rows(in_categories(block(900, 5)), tolerance=0),
    "hierarchy": lambda: of_rows(hierarchy()),
    "groups of people": of_groups,
    "covariates and outcomes": of_roles,
    "tolerance": of_misfit,
    "a matrix": lambda: of_matrix(300),
    "a population": lambda: of_matrix(math.inf),
    "knowledge": lambda: of_rows(two_factors(300, 6), knowledge=KNOWN, penalty=2),
    "missing values": of_holes,
    "the delta criterion": lambda: of_rows(two_factors(300, 7).iloc[:, 1:7], criterion="delta", max_group_size=None),
    "exact search": by_exact_search,
    "confirmed": confirmed,
    "no latents": without_latents,
}


@pytest.fixture(scope="module", params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]()


@pytest.fixture(scope="module")
def folder(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of a kind in a file, with the data beside it."""
    folder = tmp_path_factory.mktemp("kind")
    (folder / "result.json").write_text(kind.run.to_json())
    if kind.n is not None:
        kind.rows.to_csv(folder / "data.csv")
    else:
        countries = np.arange(len(kind.rows)) % 2
        kind.rows.assign(country=kind.rows.get("country", countries)).to_csv(folder / "data.csv", index=False)
    return folder


def same(one: um.Result, other: um.Result) -> None:
    """Whether two results say the same of everything."""
    assert other.summary() == one.summary()
    assert other.graph == one.graph
    assert other.to_lavaan() == one.to_lavaan()
    for table in ("parameters", "loadings", "latent_paths", "direct_effects", "local_dependence", "runners_up"):
        pd.testing.assert_frame_equal(getattr(other, table), getattr(one, table), rtol=1e-7, atol=1e-9)
    pd.testing.assert_series_equal(other.r2, one.r2)
    for ours, theirs in zip(one.partitions, other.partitions, strict=True):
        pd.testing.assert_series_equal(ours, theirs)
    assert (one.fit.robust is None) == (other.fit.robust is None)
    indices = ["chi2", "df", "rmsea", "cfi", "srmr", "bic"]
    indices += ["chi2_scaled", "rmsea_robust", "cfi_robust", "tli_robust"] if one.fit.robust is not None else []
    for index in indices:
        assert getattr(other.reported, index) == pytest.approx(getattr(one.reported, index), nan_ok=True), index
    assert [str(remark) for remark in other.remarks] == [str(remark) for remark in one.remarks]
    assert other.check.findings == one.check.findings
    assert other.selected_partition == one.selected_partition


def test_the_kinds_are_what_they_are_called() -> None:
    blocks = [KINDS[name]() for name in ("a block", "a block of heavy tails", "an ordinal block")]
    assert [max(map(len, kind.run.result.graph.latent_groups)) for kind in blocks] == [2, 2, 2]
    assert [kind.run.result.fit.robust is not None for kind in blocks] == [False, True, True]
    assert KINDS["hierarchy"]().run.result.graph.facets
    assert KINDS["tolerance"]().run.exact is not None


def test_a_result_is_read_as_it_was_written(kind: Kind) -> None:
    text = kind.run.to_json()
    again = Run.from_json(text)
    same(kind.run.result, again.result)
    same(kind.run.result, um.Result.from_json(kind.run.result.to_json()))
    assert (again.exact is None) == (kind.run.exact is None)
    if kind.run.exact is not None:
        same(kind.run.exact, again.exact)
    assert again.about == kind.run.about
    assert (again.shared and again.shared.record()) == (kind.run.shared and kind.run.shared.record())
    assert again.result.options.get("knowledge") == kind.run.result.options.get("knowledge")
    assert json.loads(again.to_json()) == json.loads(text)
    # Other names, given before and after.
    same(kind.run.result.rename(), again.result.rename())
    same(kind.run.result.rename(), um.Result.from_json(again.result.rename().to_json()))


def reads_a_result(command: Callable[..., None]) -> bool:
    """Whether a command has an argument that may be a result."""
    annotations = inspect.get_annotations(command, eval_str=True).values()
    marks = [mark for annotation in annotations for mark in getattr(annotation, "__metadata__", ())]
    return any("result.json" in (mark.help or "") and mark.param_decls is None for mark in marks)


TEXTS = ("lavaan", "semopy", "dot", "dagitty", "graphml", "gml", "tetrad", "json")
ARTICLE = ("latex", "html", "r", "methods", "bibtex")
FILES = ("svg", "pdf", "png", "docx", "xlsx")
CALLS: dict[str, list[str]] = {
    "report": ["--quiet", "--out", "again"],
    "effects": ["--out", "effects.csv"],
    "diagnose": ["--json"],
    "export": [],
    "scores": ["data.csv", "--out", "scores.csv"],
    "fit": ["data.csv", "--json"],
    "compare": ["data.csv", "--json"],
    "invariance": ["data.csv", "--groups", "country", "--quiet", "--out", "invariance"],
    "stability": ["--replicates", "1", "--out", "stable"],
}
# Sentences with which a command refuses a kind of result, which has not what the command needs.
REFUSED = {
    ("a matrix", "scores"): "holds a covariance or correlation matrix, not rows",
    ("a population", "scores"): "holds a covariance or correlation matrix, not rows",
    ("a population", "r"): "lavaan needs a number of samples",
    ("a population", "stability"): "no sampling error",
    ("no latents", "scores"): "no latent",
}


def test_every_command_that_reads_a_result_is_tried() -> None:
    names = {command.name or command.callback.__name__: command.callback for command in cli.app.registered_commands}
    assert {name for name, command in names.items() if reads_a_result(command)} == set(CALLS)
    assert {*TEXTS, *ARTICLE, *FILES} == set(cli._EXPORTS)


def called(folder: Path, *arguments: str) -> str:
    """What a command printed; an answer that is not one to rely on is one too."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(cli.app, arguments)
    if isinstance(done.exception, um.UnmeasuredError):
        raise done.exception
    assert done.exit_code in (0, 1), (arguments, done.output, done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit), arguments
    return done.output


@pytest.mark.parametrize("command", [name for name in CALLS if name != "export"])
def test_every_command_reads_every_kind(kind: Kind, folder: Path, command: str, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["kind"]
    if kind.n is not None and command == "invariance":
        pytest.skip("groups are of rows")
    of_matrix = ["--n", f"{kind.n:g}"] if kind.n is not None and command in ("fit", "compare") else []
    rows = ["data.csv"] if kind.n is None and command == "stability" else []
    arguments = [command, "result.json", *rows, *CALLS[command], *of_matrix]
    if (name, command) in REFUSED:
        with pytest.raises(um.UnmeasuredError, match=REFUSED[name, command]):
            called(folder, *arguments)
        return
    text = called(folder, *arguments)
    found = kind.run.result
    if command == "fit":
        assert json.loads(text)["df"] == found.sem.df
    if command == "scores":
        table = pd.read_csv(folder / "scores.csv")
        expected = found.fit.scores(kind.rows)
        np.testing.assert_allclose(table[list(expected)], expected, atol=1e-5)
    if command == "stability":
        table = pd.read_csv(folder / "stable" / "stability.csv")
        assert set(table["source"]) <= {*map(group_name, found.graph.latent_groups), *found.graph.observed}
        assert ("drawn around" in text) == (kind.n is not None)
    if command in ("report", "stability"):
        written = Run.from_json((folder / CALLS[command][-1] / "result.json").read_text())
        same(found, written.result)


def test_every_export_of_a_kind_is_that_of_its_result(kind: Kind, folder: Path, request: pytest.FixtureRequest) -> None:
    name, found, article = request.node.callspec.params["kind"], kind.run.result, Publication(kind.run)
    for to in (*TEXTS, *ARTICLE):
        if (name, to) in REFUSED:
            with pytest.raises(um.UnmeasuredError, match=REFUSED[name, to]):
                called(folder, "export", "result.json", "--to", to)
            continue
        text = called(folder, "export", "result.json", "--to", to)
        maker = article if to in ARTICLE else found if to in ("lavaan", "semopy") else found.graph
        assert text.rstrip("\n") == getattr(maker, f"to_{to}")().rstrip("\n"), to
    # Pictures differ by their ending only: of most kinds one is enough.
    for to in FILES if name == "a block of heavy tails" else ("svg", "docx", "xlsx"):
        called(folder, "export", "result.json", "--to", to, "--out", f"file.{to}")
        assert (folder / f"file.{to}").stat().st_size > 500, to


def test_replicates_of_the_matrix_that_a_result_holds(kind: Kind, folder: Path, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["kind"]
    if name == "groups of people":
        with pytest.raises(um.UnmeasuredError, match="several groups of people, which its matrix does not keep apart"):
            called(folder, "stability", "result.json", "--replicates", "1")
    elif name in ("a block", "covariates and outcomes", "knowledge"):
        text = called(folder, "stability", "result.json", "--replicates", "1")
        assert (
            f"Replicates are drawn around the matrix in result.json (N = {kind.run.result.sem.sample.n:.0f})." in text
        )


def test_replicates_of_a_result_are_those_of_its_search(kind: Kind) -> None:
    if math.isinf(kind.n or 0.0) or kind.run.result.estimation_note:
        return
    again = Run.from_json(replace(kind.run, result=kind.run.result.rename()).to_json())
    ours = um.stability(kind.search, 1)
    theirs = um.stability(search_of(again, kind.search.sample_), 1)
    assert theirs.replicates[0].outline.to_record() == ours.replicates[0].outline.to_record()
    assert isinstance(theirs.named_as(again.result.graph), Stability)
