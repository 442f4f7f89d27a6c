"""The command line: parses, calls the library, prints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import pandas as pd
import typer

import unmeasured as um
from unmeasured.benchmark import consistency, engine, experiment, records, runner, tables

Read = TypeVar("Read")

app = typer.Typer(no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode=None)
bench = typer.Typer(no_args_is_help=True, help="Measure what we claim, anew.")
app.add_typer(bench, name="bench")


@app.callback()
def about() -> None:
    """Find the causes nobody measured."""


@app.command()
def demo(
    data: Annotated[
        str, typer.Argument(help="A bundled data set; `unmeasured datasets` lists them.")
    ] = "teacher_burnout",
) -> None:
    """Fit the published models of a bundled data set and compare them.

    Example: unmeasured demo multitasking
    """
    dataset = um.datasets.load(data)
    compared = um.compare_models(dict(dataset.models), cov=dataset.frame(), n_samples=dataset.n_samples)
    typer.echo(f"{dataset.title}: {len(dataset.names)} variables, N = {dataset.n_samples}")
    typer.echo(f"Source: {dataset.source}\n")
    typer.echo(str(compared))


@app.command("datasets")
def list_datasets() -> None:
    """List the bundled data sets and their published models."""
    for name in um.datasets.available():
        data = um.datasets.load(name)
        typer.echo(f"{name}: {data.title}; {len(data.names)} variables, N = {data.n_samples}")
        for model in data.models.values():
            typer.echo(f"    {model.name}: {model.source}")


@app.command("fit")
def fit_file(
    model: Annotated[Path, typer.Argument(help="A text file with the model in lavaan syntax.")],
    file: Annotated[Path, typer.Argument(help="CSV: rows of samples, or with --n a covariance or correlation matrix.")],
    n: Annotated[float | None, typer.Option("--n", help="Number of samples behind a matrix.")] = None,
    correlate_exogenous: Annotated[bool, typer.Option(help="Let exogenous latents correlate.")] = True,
    first_indicator: Annotated[bool, typer.Option(help="Scale latents by their first indicator.")] = False,
) -> None:
    """Fit a model to a file and print estimates and fit indices.

    Example: unmeasured fit model.lav matrix.csv --n 301
    """
    result = um.fit(
        _read(model, Path.read_text),
        None if n is not None else _read(file, pd.read_csv),
        cov=_read(file, lambda path: pd.read_csv(path, index_col=0)) if n is not None else None,
        n_samples=n,
        correlate_exogenous=correlate_exogenous,
        scale_latents="first-indicator" if first_indicator else "variance",
    )
    typer.echo(result.summary())


def _read(path: Path, reader: Callable[[Path], Read]) -> Read:
    try:
        return reader(path)
    except FileNotFoundError:
        raise um.DataError(f"There is no file {str(path)!r}.") from None
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise um.DataError(f"{str(path)!r} could not be read: {error}") from None


@bench.command("fit")
def bench_fit(
    repeats: Annotated[int, typer.Option(help="Fits per model and program; the median counts.")] = 31,
) -> None:
    """The published models in our engine, semopy and lavaan: seconds and chi-square."""
    typer.echo(engine.describe_fits(engine.published_fits(repeats)))


@bench.command("starts")
def bench_starts(models: int = 200, starts: int = 10, seed: int = 0) -> None:
    """How often the default start finds the best optimum of many starts."""
    for suite in ("paper", "realistic"):
        typer.echo(f"{suite}: {engine.default_starts(suite, models, starts, seed=seed)}")


@bench.command("population")
def bench_population(graphs: int = 300, seed: int = 0, criterion: str = "delta") -> None:
    """Population covariance in, true class out? Random factor models of 4 to 20 observed variables."""
    search = um.LGES(criterion=criterion)  # type: ignore[arg-type]
    typer.echo(str(consistency.consistency(lambda p, rng: consistency.population(search, p), graphs, seed)))


@bench.command("large-sample")
def bench_large_sample(
    graphs: int = 50, samples: int = 1_000_000, seed: int = 0, criterion: str = "delta", n_jobs: int = 1
) -> None:
    """The same with very large samples."""
    search = um.LGES(criterion=criterion, n_jobs=n_jobs)  # type: ignore[arg-type]
    result = consistency.consistency(lambda p, rng: consistency.large_sample(search, p, samples, rng), graphs, seed)
    typer.echo(str(result))


@bench.command("batch")
def bench_batch(fits: int = 1000, threads: int = 2) -> None:
    """A batch of fits on several threads against a loop of single fits."""
    for n_observed in (9, 15, 30):
        typer.echo(str(engine.batch_against_loop(n_observed, fits, threads)))


RecordsOption = Annotated[Path | None, typer.Option("--records", help="The file of records, made where there is none.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="Some of the runs only.")]
JobsOption = Annotated[int, typer.Option("--n-jobs", help="Runs at once; -1 for one per core.")]
TableOnlyOption = Annotated[bool, typer.Option("--table-only", help="Run nothing; print what the records say.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")]
RetryOption = Annotated[bool, typer.Option("--retry-failed", help="Make failed runs again.")]


@bench.command("run", hidden=True)
def bench_run(
    name: Annotated[str, typer.Argument(help="A bundled experiment, or the path of a .toml file.")],
    records_file: RecordsOption = None,
    quick: QuickOption = False,
    n_jobs: JobsOption = 1,
    table_only: TableOnlyOption = False,
    markdown: MarkdownOption = False,
    retry_failed: RetryOption = False,
) -> None:
    """Run an experiment where its records are missing, then print its table."""
    asked = experiment.load(name)
    asked = asked.quickened() if quick else asked
    path = records_file or runner.default_path(asked.name)
    if not table_only:
        _make_runs(asked, path, n_jobs, retry_failed)
    table = tables.make_table(asked, records.read_records(path))
    typer.echo(table.markdown() if markdown else table.text())
    typer.echo(f"Records: {path}", err=True)


def _make_runs(asked: experiment.Experiment, path: Path, n_jobs: int, retry_failed: bool) -> None:
    typer.echo(f"Records go to {path}; Ctrl-C stops, the same command goes on.", err=True)
    try:
        tally = runner.run(asked, path, n_jobs=n_jobs, retry_failed=retry_failed)
    except runner.Stopped as stopped:
        typer.echo(f"unmeasured: {stopped}", err=True)
        raise typer.Exit(130) from None
    failed = f", {tally.n_failed} failed (--retry-failed makes them again)" if tally.n_failed else ""
    typer.echo(f"{tally.n_new} new runs of {tally.n_planned}{failed}.\n", err=True)


def _add_experiment(name: str) -> None:
    """A command for a bundled experiment: `unmeasured bench table4` is `unmeasured bench run table4`."""

    def command(
        records_file: RecordsOption = None,
        quick: QuickOption = False,
        n_jobs: JobsOption = 1,
        table_only: TableOnlyOption = False,
        markdown: MarkdownOption = False,
        retry_failed: RetryOption = False,
    ) -> None:
        bench_run(name, records_file, quick, n_jobs, table_only, markdown, retry_failed)

    bench.command(name, help=f"Run experiment {name} and print our figures beside the paper's.")(command)


for _name in experiment.available():
    _add_experiment(_name)


def main() -> NoReturn:
    """Entry point: a user's mistake is one sentence on standard error, never a trace."""
    try:
        app(standalone_mode=True)
    except um.UnmeasuredError as error:
        typer.echo(f"unmeasured: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("unmeasured: stopped.", err=True)
        sys.exit(130)
    sys.exit(0)
