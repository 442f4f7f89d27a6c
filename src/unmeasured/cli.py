"""The command line: parses, calls the library, prints.

Exit codes: 0 done; 1 done, but the answer is not one to lean on (no latents, no proper fit, a check that failed); 2 a
mistake in what was asked; 130 interrupted.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import unmeasured as um
from unmeasured.errors import listing, nearest
from unmeasured.files import csv_text, write_bytes, write_folder, write_text

if TYPE_CHECKING:
    from unmeasured.answer.compare import ModelComparison
    from unmeasured.report.run import About, Run

# Commands load what they need when they are called: --help should not wait for libraries.

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Exit codes: 0 done; 1 done, but not an answer to lean on; 2 a mistake in what was asked; 130 interrupted.",
)
bench = typer.Typer(no_args_is_help=True)
app.add_typer(bench, name="bench")


_NOTHING_YET = (
    "interrupted before a first model was found: whether there are latents is not known yet. --time-limit ends a "
    "search with the best model so far."
)
# Seconds by which a report may be late.
_OVERTIME = 1.0
# When the command began, by the clock and in processor time; main() says so again.
_began = time.monotonic(), time.process_time()
# The part of a time limit that loading libraries may take: a search has the rest.
_LOADING = 0.5
# The part of a time limit that the page of a report may take.
_FOR_PAGE = 0.5


class Interrupted(Exception):
    """Ctrl-C where there is something to say about it."""


@app.callback()
def about() -> None:
    """Find the causes nobody measured."""


FileArgument = Annotated[
    Path, typer.Argument(help="Rows: CSV, TSV, text, SPSS, Stata. With --n, a covariance or correlation matrix.")
]
ModelArgument = Annotated[Path, typer.Argument(help="Model text in lavaan syntax, or a result.json.")]
ResultArgument = Annotated[Path, typer.Argument(help="The result.json of a run.")]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option("--columns", "-c", help="Variables by name or pattern, such as 'q*,mood'; may be given again."),
]
SamplesOption = Annotated[
    float | None, typer.Option("--n", help="The file is a matrix made from so many samples (inf: a population).")
]
CorOption = Annotated[
    str,
    typer.Option(
        help="Correlations of rows: pearson, auto (ordinal items by themselves), polychoric, spearman-normal."
    ),
]
MissingOption = Annotated[str, typer.Option(help="What to do about holes: ml, listwise or pairwise.")]
HeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a text file holds names. Left out: it does, and numbers there are refused.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but mistakes.")]
PenaltyOption = Annotated[
    float, typer.Option(help="Price of a dimension in units of BIC's; more gives sparser graphs.")
]
ToleranceOption = Annotated[
    str,
    typer.Option(help="Misfit that is tolerated, as an RMSEA; 0 for none, auto for .05 where every model is rejected."),
]
GroupSizeOption = Annotated[int, typer.Option(help="Most latents that may share all their indicators.")]
PublishedOption = Annotated[
    list[Path] | None, typer.Option("--published", help="A model to compare with, as a file; may be given again.")
]


# Discovery --------------------------------------------------------------------------------------------------


@app.command()
def discover(
    file: FileArgument,
    columns: ColumnsOption = None,
    n: SamplesOption = None,
    cor: CorOption = "auto",
    missing: MissingOption = "ml",
    header: HeaderOption = None,
    penalty: PenaltyOption = 1.0,
    tolerance: ToleranceOption = "auto",
    max_group_size: GroupSizeOption = 3,
    knowledge: Annotated[
        Path | None, typer.Option(help="What is known: TOML, or lavaan text in a .lav file; see docs/knowledge.md.")
    ] = None,
    n_jobs: Annotated[int, typer.Option(help="Threads; -1 for one per core.")] = 1,
    time_limit: Annotated[float | None, typer.Option(help="Seconds after which the best so far is the answer.")] = None,
    seed: Annotated[int, typer.Option(help="Kept in the report; this search draws nothing at random.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder for the report and its files.")] = None,
    title: Annotated[str, typer.Option(help="The heading of the report.")] = "",
    published: PublishedOption = None,
    plain_names: Annotated[bool, typer.Option("--plain-names", help="Call latents L1, L2, ...")] = False,
    confirm: Annotated[
        float | None,
        typer.Option(help="Search in some of the rows, estimate in this share of them, such as 0.5; --seed splits."),
    ] = None,
    confirm_by: Annotated[str | None, typer.Option(help="A column in whose groups the rows are split.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find the latent variables behind a file, what measures them, and how they cause one another.

    Example: unmeasured discover answers.csv --columns 'q*' --cor auto --out report
    """
    from unmeasured.report.run import About

    search = um.LGES(
        penalty=penalty,
        tolerance=_tolerance(tolerance),
        max_group_size=max_group_size,
        knowledge=None if knowledge is None else um.Knowledge.read(knowledge),
        n_jobs=n_jobs,
        random_state=seed,
        time_limit=time_limit,
    )
    # Models that cannot be read should not wait for the search to say so.
    others = {path.stem: _model(path) for path in published or ()}
    began = _begun(time_limit)
    check = search.timed(began).check_reading
    try:
        sample, others_rows = _parts(file, columns, n, cor, missing, header, confirm, confirm_by, seed, check)
    except KeyboardInterrupt:
        raise Interrupted(_NOTHING_YET) from None
    about = About(title=title, data=file.name, command=_command())
    reserved = _after_search(len(sample.names), time_limit, is_written=out is not None)
    run = _searched(
        search.timed(began, reserved), sample, about, others, plain_names=plain_names, quiet=quiet or as_json
    )
    if others_rows is not None:
        confirmed = um.confirm(run.result, others_rows)
        notes = (*run.about.notes, *confirmed.sentences)
        run = replace(run, result=confirmed.result, about=replace(run.about, notes=notes))
        _say("\n".join(["Confirmed in other rows", *(f"  - {x}" for x in confirmed.sentences), ""]), quiet or as_json)
    _finish(run, out, as_json=as_json, quiet=quiet, until=None if time_limit is None else began + time_limit)


def _begun(time_limit: float | None) -> float:
    """When the time of a command began to count: with the command, or later where libraries took very long to load."""
    from unmeasured.search.clock import checked_time_limit

    limit = checked_time_limit(time_limit)
    return _began[0] if limit is None else max(_began[0], time.monotonic() - _LOADING * limit)


def _after_search(n_observed: int, time_limit: float | None, *, is_written: bool) -> float:
    """Seconds to leave for what comes after the search; a page that would take most of the limit is not waited for."""
    from unmeasured.report.write import answer_seconds, page_seconds

    page = page_seconds(n_observed)
    is_waited_for = is_written and time_limit is not None and page < _FOR_PAGE * time_limit
    return answer_seconds(n_observed) + (page if is_waited_for else 0.0)


def _tolerance(text: str) -> Any:
    """Read auto or a number."""
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise um.UnmeasuredError(f"--tolerance is auto or an RMSEA such as 0.05, 0 for none; got {text!r}.") from None


def _parts(
    file: Path,
    columns: list[str] | None,
    n: float | None,
    cor: str,
    missing: str,
    header: bool | None,
    share: float | None,
    by: str | None,
    seed: int,
    check: Callable[[], None],
) -> tuple[um.Sample, um.Sample | None]:
    """The rows to search and, where a share is asked for, those to confirm in."""
    if share is None:
        if by is not None:
            raise um.UnmeasuredError("--confirm-by says how --confirm splits the rows. Give --confirm 0.5 with it.")
        return _sample(file, columns, n, cor, missing, header, check=check), None
    if n is not None:
        raise um.DataError("--confirm splits rows; a matrix (--n) cannot be split. Confirm it with another matrix.")
    frame = um.read(file, header=header)
    frame.columns = frame.columns.map(str)
    known = [name for name in frame.columns if name != by]
    chosen = _chosen(columns, known) if columns else known
    first, second = (
        um.as_sample(part[chosen], cor=cor, missing=missing, check=check)  # type: ignore[arg-type]
        for part in um.split_rows(frame, share, by=by, rng=seed)
    )
    return first, second


def _searched(
    search: um.LGES, sample: um.Sample, about: About, others: dict[str, Any], *, plain_names: bool, quiet: bool
) -> Run:
    from sklearn.base import clone

    from unmeasured.report.run import run_of
    from unmeasured.search.warm import are_on_disk, compile_kernels

    if quiet:
        logging.getLogger("unmeasured").setLevel(logging.ERROR)
    begun = time.perf_counter()
    if not are_on_disk():  # which is not on the clock of a search
        compile_kernels()
    # A bar is for people who watch, not for logs.
    watched = clone(search).set_params(verbose=not quiet and sys.stderr.isatty())
    watched.timed(*search.timing(time.perf_counter() - begun))
    begun = time.perf_counter()
    try:
        watched.fit(sample)
    except um.SearchStopped as stopped:
        if stopped.is_interrupted:
            raise Interrupted(str(stopped)) from None
        raise
    except KeyboardInterrupt:
        raise Interrupted(_NOTHING_YET) from None
    about = replace(about, seconds=time.perf_counter() - begun)
    run = run_of(watched, about=about, published=others)
    # Whether somebody watched is nothing a reader of the result needs to know.
    method = " ".join(repr(search).split())
    result = replace(run.result, method=method, options=search.get_params())
    return replace(run, result=result if plain_names else result.rename())


def _finish(run: Run, out: Path | None, *, as_json: bool, quiet: bool, until: float | None = None) -> None:
    """Write what was asked for, print the answer, and leave with a code that says whether there is one."""
    from unmeasured.report.screen import screen
    from unmeasured.report.write import page_seconds, write_run
    from unmeasured.search.clock import slowness_since

    needed = page_seconds(len(run.result.graph.observed)) * slowness_since(*_began)
    in_time = until is None or time.monotonic() + needed < until + _OVERTIME
    page = write_run(run, out, with_page=in_time) if out is not None else None
    if as_json:
        typer.echo(run.to_json())
    elif not quiet:
        typer.echo(screen(run.result, run.about.seconds, elsewhere=_all_remarks(page)))
        typer.echo(f"\n{_where(page)}")
    if run.result.stopped.startswith("Interrupted"):
        sys.exit(130)
    if not run.result.graph.latents or not (run.result.sem.converged and run.result.sem.admissible):
        raise typer.Exit(1)


def _where(page: Path | None) -> str:
    if page is None:
        return "Nothing was written; --out FOLDER makes a report."
    if not page.name.endswith(".html"):
        return f"Written: {page} and tables. There was no time for pictures and the page: unmeasured report {page}"
    return f"Report: {page} (open it in a browser); model, tables and pictures are beside it."


def _all_remarks(page: Path | None) -> str:
    """Where the remarks are that the screen leaves out."""
    return f"the remarks in {page}" if page else "the report (--out FOLDER)"


@app.command()
def demo(
    data: Annotated[
        str, typer.Argument(help="A bundled data set; `unmeasured datasets` lists them.")
    ] = "teacher_burnout",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder for the report.")] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for the search.")] = 60.0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Search a bundled data set, compare with the published models, and write a report.

    Example: unmeasured demo multitasking
    """
    from unmeasured.report.run import About, Comparison
    from unmeasured.report.screen import screen
    from unmeasured.report.write import write_run

    dataset = um.datasets.load(data)
    silent = quiet or as_json
    head = f"{dataset.title}: {len(dataset.names)} variables, N = {dataset.n_samples}\nSource: {dataset.source}\n"
    _say(head, silent)
    sample = um.as_sample(cov=dataset.frame(), n_samples=dataset.n_samples)
    about = About(title=dataset.title, data=dataset.title, source=dataset.source, command=_command())
    run = _searched(um.LGES(n_jobs=-1, time_limit=time_limit), sample, about, {}, plain_names=False, quiet=silent)
    compared = um.compare_models({"found": run.result, **dataset.models})
    run = replace(run, comparison=Comparison.of(compared))
    page = write_run(run, out or Path(f"unmeasured-{data}"))
    shown = screen(run.result, run.about.seconds, elsewhere=_all_remarks(page))
    answer = f"{shown}\n\nBeside the published models\n{compared}\n\n{_where(page)}"
    _say(run.to_json() if as_json else answer, quiet and not as_json)


@app.command("report")
def remake_report(
    result: ResultArgument,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder; by default that of the result.")] = None,
    title: Annotated[str, typer.Option(help="Another heading.")] = "",
    name: Annotated[
        list[str] | None, typer.Option("--name", help="A latent's new name, as old=new; may be given again.")
    ] = None,
    published: PublishedOption = None,
    quiet: QuietOption = False,
) -> None:
    """Make the report of a result again, with other names, another heading or models to compare with.

    Replicates that lie beside the result (stability.json) are shown again.

    Example: unmeasured report report/result.json --name L1=Speed --published theirs.lav
    """
    from unmeasured.report.run import Comparison
    from unmeasured.report.write import write_run

    run = _run(result)
    if name:
        run = replace(run, result=run.result.rename(dict(_renaming(pair) for pair in name)))
    if title:
        run = replace(run, about=replace(run.about, title=title))
    if published:
        models = {path.stem: _model(path) for path in published}
        run = replace(run, comparison=Comparison.of(um.compare_models({"found": run.result, **models})))
    _say(_where(write_run(run, out or result.parent, stability=_stability_beside(result, run))), quiet)


def _stability_beside(path: Path, run: Run) -> um.Stability | None:
    """What the replicates of a result said, from the file beside it; told on the screen where that is of another."""
    from unmeasured.report.write import STABILITY

    file = path.parent / STABILITY
    if not file.exists():
        return None
    found = um.Stability.from_json(_text(file))
    if found.is_of(run.result.graph):
        return found
    typer.echo(f"{file} is of another graph and is left out of the report.", err=True)
    return None


def _renaming(pair: str) -> tuple[str, str]:
    old, mark, new = (part.strip() for part in pair.partition("="))
    if not (old and mark and new):
        raise um.UnmeasuredError(f"--name takes old=new, such as L1=Speed; got {pair!r}.")
    return old, new


# Models -----------------------------------------------------------------------------------------------------


@app.command("fit")
def fit_file(
    model: ModelArgument,
    file: FileArgument,
    n: SamplesOption = None,
    cor: CorOption = "pearson",
    missing: MissingOption = "ml",
    header: HeaderOption = None,
    correlate_exogenous: Annotated[bool, typer.Option(help="Let exogenous latents correlate.")] = True,
    first_indicator: Annotated[bool, typer.Option(help="Scale latents by their first indicator.")] = False,
    estimator: Annotated[str, typer.Option(help="ML, MLM, MLR (robust) or WLSMV (ordinal items).")] = "ML",
    groups: Annotated[str | None, typer.Option(help="The column of groups of people; see docs/groups.md.")] = None,
    equal: Annotated[str, typer.Option(help="What groups share, such as 'loadings,intercepts'.")] = "",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit a model to a file and print estimates and fit indices.

    Example: unmeasured fit model.lav matrix.csv --n 301
    """
    asked = _model(model)
    options: dict[str, Any] = {}
    if estimator != "ML" or groups is not None or equal or missing == "fiml":
        if n is not None:
            raise um.DataError(
                "--estimator, --groups, --equal and --missing fiml need rows; --n says the file is a matrix."
            )
        shared = tuple(part.strip() for part in equal.split(",") if part.strip())
        options = {"estimator": estimator, "groups": groups, "equal": shared, "missing": missing}
        options["cor"] = None if cor == "pearson" else cor
    result = um.fit(
        asked.graph if isinstance(asked, um.Result) else asked,
        um.read(file, header=header) if options else _sample(file, None, n, cor, missing, header, models=[asked]),
        correlate_exogenous=correlate_exogenous,
        scale_latents="first-indicator" if first_indicator else "variance",
        **options,
    )
    _say(_fit_as_json(result) if as_json else result.summary(), quiet and not as_json)
    if not (result.converged and result.admissible):
        raise typer.Exit(1)


def _fit_as_json(fit: um.Fit) -> str:
    indices = ("chi2", "df", "pvalue", "rmsea", "cfi", "tli", "srmr", "aic", "bic", "loglik")
    record = {name: getattr(fit, name) for name in indices}
    record |= {"converged": fit.converged, "admissible": fit.admissible, "status": fit.status}
    return _as_json({**record, "parameters": json.loads(fit.parameters.to_json(orient="records"))})


@app.command()
def compare(
    models: Annotated[list[Path], typer.Argument(help="Model files: lavaan text, or a result.json.")],
    file: FileArgument,
    n: SamplesOption = None,
    cor: CorOption = "pearson",
    missing: MissingOption = "ml",
    header: HeaderOption = None,
    correlate_exogenous: Annotated[bool, typer.Option(help="Let exogenous latents correlate.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Fit several models to a file and set them side by side, with difference tests where they are nested.

    Example: unmeasured compare mine.lav theirs.lav report/result.json matrix.csv --n 301
    """
    asked = {_model_name(path, models): _model(path) for path in models}
    sample = _sample(file, None, n, cor, missing, header, models=asked.values())
    compared = um.compare_models(asked, sample, correlate_exogenous=correlate_exogenous)
    typer.echo(_comparison_as_json(compared) if as_json else str(compared))


def _model_name(path: Path, others: Sequence[Path]) -> str:
    """The name of a file, with its folder where two are called the same."""
    return path.stem if sum(other.stem == path.stem for other in others) == 1 else str(path)


def _comparison_as_json(compared: ModelComparison) -> str:
    from unmeasured.report.run import Comparison

    kept = Comparison.of(compared)
    return _as_json({"models": list(kept.rows), "tests": list(kept.tests), "notes": list(kept.notes)})


@app.command("check")
def check_file(
    file: FileArgument,
    columns: ColumnsOption = None,
    n: SamplesOption = None,
    cor: CorOption = "auto",
    missing: MissingOption = "ml",
    header: HeaderOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Look at data before a search: enough samples, a latent model warranted, Gaussian, collinear?

    Example: unmeasured check answers.csv --columns 'q*'
    """
    checked = um.check(_sample(file, columns, n, cor, missing, header))
    if as_json:
        findings = [{"topic": f.topic, "ok": f.ok, "text": f.text} for f in checked.findings]
        typer.echo(_as_json({"ok": checked.ok, "findings": findings, "remarks": list(checked.sample.remarks)}))
    else:
        _say(str(checked), quiet)
    if not checked.ok:
        raise typer.Exit(1)


# Data and exports -------------------------------------------------------------------------------------------


@app.command("simulate")
def simulate_file(
    out: Annotated[Path, typer.Argument(help="The CSV file to write; the graph goes beside it as NAME.truth.json.")],
    latents: Annotated[int, typer.Option(help="Latent variables.")] = 3,
    observed: Annotated[int, typer.Option(help="Observed variables.")] = 12,
    samples: Annotated[int, typer.Option("--samples", "--n", help="Rows.")] = 1000,
    common_children: Annotated[int, typer.Option(help="Indicators of several groups among them.")] = 0,
    max_group_size: GroupSizeOption = 1,
    parameters: Annotated[str, typer.Option(help="realistic, as in questionnaires, or paper.")] = "realistic",
    seed: Annotated[int, typer.Option(help="The same seed gives the same file.")] = 0,
    quiet: QuietOption = False,
) -> None:
    """Draw a random factor model and rows from it, to try a search on data whose truth is known.

    Example: unmeasured simulate rows.csv --latents 4 --observed 16 --seed 1
    """
    if not out.name:
        raise um.UnmeasuredError(f"simulate needs the name of a file to write, such as rows.csv; got {str(out)!r}.")
    if not out.parent.is_dir():
        raise um.UnmeasuredError(f"{str(out)!r} could not be written: there is no folder {str(out.parent)!r}.")
    truth = um.simulate.random_gnfm(
        n_latents=latents,
        n_observed=observed,
        n_common_children=common_children,
        max_group_size=max_group_size,
        rng=seed,
    )
    rows = um.simulate.sample(truth, samples, parameters=parameters, rng=seed + 1)  # type: ignore[arg-type]
    graph = out.with_suffix(".truth.json")
    write_folder(out.parent, {out.name: csv_text(rows, float_format="%.6g"), graph.name: truth.to_json()})
    _say(f"{len(rows)} rows of {len(rows.columns)} variables: {out}; the truth: {graph}", quiet)


_TEXTS = ("lavaan", "semopy", "dot", "dagitty", "graphml", "gml", "tetrad", "json")
_PICTURES = ("svg", "pdf", "png")


@app.command("export")
def export_result(
    result: ResultArgument,
    to: Annotated[str, typer.Option("--to", help=f"One of {', '.join((*_TEXTS, *_PICTURES))}.")] = "lavaan",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file; texts go to the screen without one.")] = None,
    view: Annotated[str, typer.Option(help="Of a picture: full or latents.")] = "full",
    style: Annotated[str, typer.Option(help="Of a picture: colour or print.")] = "colour",
    r2: Annotated[bool, typer.Option("--r2", help="Write explained variances into a picture.")] = False,
) -> None:
    """Take a result to another program, or draw it.

    Example: unmeasured export report/result.json --to dot
    """
    if to not in (*_TEXTS, *_PICTURES):
        hint = nearest(to, (*_TEXTS, *_PICTURES)) or "."
        raise um.UnmeasuredError(f"There is no export {to!r}{hint} There are {listing((*_TEXTS, *_PICTURES), 20)}.")
    found = _run(result).result
    if to in _PICTURES:
        path = out or Path(f"diagram.{to}")
        picture = BytesIO()
        found.plot(view, style=style, r2=r2).savefig(picture, format=to, dpi=200)  # type: ignore[arg-type]
        write_bytes(path, picture.getvalue())
        typer.echo(f"Written: {path}", err=True)
        return
    text = getattr(found if to in ("lavaan", "semopy") else found.graph, f"to_{to}")()
    if out is None:
        typer.echo(text)
    else:
        write_text(out, text)


@app.command("datasets")
def list_datasets(
    name: Annotated[str | None, typer.Argument(help="One of them: print its correlation matrix as CSV.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the bundled data sets and their published models, or print the matrix of one.

    Example: unmeasured datasets multitasking > matrix.csv
    """
    if name is not None:
        typer.echo(um.datasets.load(name).frame().to_csv().rstrip("\n"))
        return
    sets = {known: um.datasets.load(known) for known in um.datasets.available()}
    if as_json:
        typer.echo(_as_json({known: _about_data(data) for known, data in sets.items()}))
        return
    for known, data in sets.items():
        typer.echo(f"{known}: {data.title}; {len(data.names)} variables, N = {data.n_samples}")
        for model in data.models.values():
            typer.echo(f"    {model.name}: {model.source}")


def _about_data(data: um.datasets.Dataset) -> dict[str, Any]:
    models = {model.name: model.source for model in data.models.values()}
    return {"title": data.title, "n_variables": len(data.names), "n_samples": data.n_samples, "models": models}


# What commands share ----------------------------------------------------------------------------------------


def _sample(
    file: Path,
    columns: list[str] | None,
    n: float | None,
    cor: str,
    missing: str,
    header: bool | None = None,
    *,
    models: Iterable[Any] = (),
    check: Callable[[], None] | None = None,
) -> um.Sample:
    """The data of a file: the columns asked for, or those that the models are about, or all."""
    frame = um.read_matrix(file) if n is not None else um.read(file, header=header)
    frame.columns = frame.columns.map(str)
    chosen = _chosen(columns, list(frame.columns)) if columns else _used(models, list(frame.columns))
    if n is None:
        return um.as_sample(frame[chosen], cor=cor, missing=missing, check=check)  # type: ignore[arg-type]
    frame.index = frame.columns
    return um.as_sample(cov=frame.loc[chosen, chosen], n_samples=n, cor=cor, missing=missing)  # type: ignore[arg-type]


def _chosen(patterns: Iterable[str], known: list[str]) -> list[str]:
    """Columns by name or pattern, in the order of the file; a pattern that matches nothing is a mistake."""
    wanted: set[str] = set()
    for pattern in (part.strip() for given in patterns for part in given.split(",")):
        found = [name for name in known if name == pattern] or [name for name in known if fnmatchcase(name, pattern)]
        if not found:
            hint = nearest(pattern, known) or "."
            raise um.DataError(f"No column is called {pattern!r}, nor matches it{hint} The file has {listing(known)}.")
        wanted.update(found)
    return [name for name in known if name in wanted]


def _used(models: Iterable[Any], known: list[str]) -> list[str]:
    """The columns that models speak of, so that others, such as names of people, do no harm; without models, all."""
    from unmeasured.sem.lavaan import parse

    used: set[str] = set()
    for model in models:
        graph = model.graph if isinstance(model, um.Result) else parse(model, observed=known)
        used.update(graph.observed)
    unknown = sorted(used - set(known))
    if unknown:
        raise um.DataError(f"The file does not have these variables of the model: {listing(unknown)}.")
    return [name for name in known if name in used] or known


def _model(path: Path) -> str | um.Result:
    text = _text(path)
    return um.Result.from_json(text) if path.suffix == ".json" else text


def _run(path: Path) -> Run:
    from unmeasured.report.run import Run

    return Run.from_json(_text(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise um.DataError(f"There is no file {str(path)!r}.") from None
    except UnicodeDecodeError:
        raise um.DataError(f"{str(path)!r} is not text in UTF-8.") from None


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        typer.echo(text)


def _command() -> str:
    """What was typed, for the report."""
    return shlex.join(["unmeasured", *sys.argv[1:]])


def _as_json(record: dict[str, Any]) -> str:
    """JSON text; numbers that are none, such as the p-value of a saturated model, are null."""
    text = json.dumps(record, default=lambda value: value.item())
    return json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False, allow_nan=False)


# Commands in files of their own, which take what is above; reading them registers them.
importlib.import_module("unmeasured.cli_trust")
importlib.import_module("unmeasured.cli_after")
importlib.import_module("unmeasured.cli_invariance")
importlib.import_module("unmeasured.cli_serve")


@bench.callback()
def about_bench() -> None:
    """Measure what we claim, anew."""


def main() -> NoReturn:
    """Entry point: a user's mistake is one sentence on standard error, never a trace."""
    global _began
    _began = time.monotonic(), time.process_time()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names of files may hold what the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _called()
    except Interrupted as stopped:
        _leave(str(stopped), 130)
    except um.UnmeasuredError as error:
        _leave(str(error), 2)
    except OSError as error:
        _leave(f"{error.filename or 'A file'}: {error.strerror or error}.", 2)
    except Exception as error:
        # typer carries its own copy of click, whose exceptions have no public name.
        if not hasattr(error, "format_message"):
            raise
        _leave_usage(error)
    if code == 130:
        _leave(_stopped(sys.argv[1:]), 130)
    sys.exit(code if isinstance(code, int) else 0)


def _called() -> Any:
    logger = logging.getLogger("unmeasured")
    level = logger.level
    with warnings.catch_warnings():
        # A warning is a sentence too; the line of code it came from helps nobody here.
        warnings.showwarning = lambda message, *_, **__: typer.echo(f"unmeasured: {message}", err=True)
        try:
            if "bench" in sys.argv[1:2] or any(name.startswith("_UNMEASURED_COMPLETE") for name in os.environ):
                for name in ("cli_bench", "cli_studies"):  # which load much that no other command needs
                    importlib.import_module(f"unmeasured.{name}")
            return app(prog_name="unmeasured", standalone_mode=False)
        finally:
            logger.setLevel(level)  # a command may have been quiet


def _stopped(arguments: Sequence[str]) -> str:
    """What Ctrl-C ended, where the command itself had nothing to say about it."""
    name = " ".join(arguments[: 2 if arguments[:1] == ["bench"] else 1])
    return (
        f"{name} was stopped by Ctrl-C before it had an answer. No file is left half written: each is replaced only "
        "when the new one is complete."
    )


def _leave(sentence: str, code: int) -> NoReturn:
    typer.echo(f"unmeasured: {sentence}", err=True)
    sys.exit(code)


def _leave_usage(error: Any) -> NoReturn:
    """A command that was typed wrongly: what is wrong, and where help is; a bare command: the help itself."""
    message = str(error.format_message()).strip()
    if message.startswith("Usage"):
        typer.echo(message, err=True)
        sys.exit(2)
    path = error.ctx.command_path if getattr(error, "ctx", None) else "unmeasured"
    _leave(f"{message.rstrip('.')}. See {path} --help.", 2)
