"""Names of ``python -m benchmarks``: one command for every study that the documentation states figures of."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

import unmeasured as um
from benchmarks import (
    after,
    calibration,
    claims,
    consistency,
    covariates,
    engine,
    experiment,
    figures,
    fits,
    knowledge,
    many_rows,
    normal_scores,
    page,
    partitions,
    people,
    runner,
    studies,
    tables,
    true_models,
    worth,
)
from benchmarks import run_records as records
from benchmarks.golden.__main__ import main as golden
from benchmarks.limits import time_limits
from benchmarks.permutations import permuted
from benchmarks.studies import keep_study
from unmeasured.cli import commands as cli
from unmeasured.files import write_folder, write_text

bench = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Studies behind the published numbers, from the root of the repository; NAME --help says what each takes.",
)

# More rows than these do not fit into the memory of most machines.
_MOST_ROWS = 10_000_000

GraphsOption = Annotated[int, typer.Option(min=1, help="Random graphs.")]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same data.")]


def _jobs(n_jobs: int) -> int:
    """Refuse what is no number of processes."""
    if n_jobs < 1 and n_jobs != -1:
        raise typer.BadParameter(f"it is the number of runs at once, or -1 for one per core; got {n_jobs}")
    return n_jobs


JobsOption = Annotated[int, typer.Option("--n-jobs", callback=_jobs, help="Runs at once; -1 for one per core.")]


KeepOption = Annotated[
    bool, typer.Option("--keep", help="Keep the figures in benchmarks/records/studies.json; the README has them there.")
]


def _keep(name: str, figures: Mapping[str, Any], keep: bool) -> None:
    if keep:
        keep_study(studies.FILE, name, " ".join(["python -m benchmarks", *sys.argv[1:]]), figures)
        typer.echo(f"Kept in {studies.FILE}.", err=True)


# The golden record ------------------------------------------------------------------------------------------


@bench.command(
    "golden", add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True}
)
def bench_golden(context: typer.Context) -> None:
    """Compare complete answers of about 200 runs with those that are stored; it has options of its own."""
    raise typer.Exit(golden(context.args))


# Studies of their own ---------------------------------------------------------------------------------------


@bench.command("fit")
def bench_fit(
    repeats: Annotated[int, typer.Option(min=1, help="Fits per model and program; the median counts.")] = 31,
    keep: KeepOption = False,
) -> None:
    """The published models in our engine, semopy and lavaan: seconds and chi-square."""
    timed = engine.published_fits(repeats)
    typer.echo(engine.describe_fits(timed))
    _keep("fit", engine.ratios(timed), keep)


@bench.command("starts")
def bench_starts(
    models: Annotated[int, typer.Option(min=1, help="Random models of each kind.")] = 200,
    starts: Annotated[int, typer.Option(min=2, help="Starts of each, the default one among them.")] = 10,
    seed: SeedOption = 0,
    keep: KeepOption = False,
) -> None:
    """How often the default start finds the best optimum of many starts."""
    reached: dict[str, Any] = {"n_models": models}
    for suite in ("paper", "realistic"):
        found = engine.default_starts(suite, models, starts, seed=seed)
        reached[suite] = found.n_reached
        typer.echo(f"{suite}: {found}")
    _keep("starts", reached, keep)


@bench.command("population")
def bench_population(
    graphs: GraphsOption = 300,
    seed: SeedOption = 0,
    criterion: str = "delta",
    hierarchy: Annotated[
        bool, typer.Option("--hierarchy", help="Hierarchical models of 8 to 30 observed variables, by LGES().")
    ] = False,
    keep: KeepOption = False,
) -> None:
    """Population covariance in, true class out? Random factor models of 4 to 20 observed variables."""
    if hierarchy:
        search, truth, sizes = um.LGES(), consistency.random_hierarchical_truth, (8, 30)
    else:
        search, truth, sizes = um.LGES(criterion=criterion), consistency.random_truth, (4, 20)  # type: ignore[arg-type]
    found = consistency.consistency(
        lambda p, rng: consistency.population(search, p), graphs, seed, n_observed=sizes, truth=truth
    )
    typer.echo(str(found))
    _keep("population-hierarchy" if hierarchy else "population", found.figures, keep)


@bench.command("large-sample")
def bench_large_sample(
    graphs: GraphsOption = 50,
    samples: Annotated[int, typer.Option(min=100, max=_MOST_ROWS, help="Rows of each sample.")] = 1_000_000,
    seed: SeedOption = 0,
    criterion: str = "delta",
    n_jobs: JobsOption = 1,
    keep: KeepOption = False,
) -> None:
    """The same with very large samples."""
    search = um.LGES(criterion=criterion, n_jobs=n_jobs)  # type: ignore[arg-type]
    result = consistency.consistency(lambda p, rng: consistency.large_sample(search, p, samples, rng), graphs, seed)
    typer.echo(str(result))
    _keep(f"large-sample-{criterion}", result.figures | {"n_samples": samples}, keep)


@bench.command("batch")
def bench_batch(
    fits: Annotated[int, typer.Option(min=1, help="Fits in a batch.")] = 1000,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the batch.")] = 2,
    keep: KeepOption = False,
) -> None:
    """A batch of fits on several threads against a loop of single fits."""
    times = {}
    for n_observed in (9, 15, 30):
        found = engine.batch_against_loop(n_observed, fits, threads)
        times[f"times_{n_observed}"] = found.seconds_loop / found.seconds_batch
        typer.echo(str(found))
    _keep("batch", times, keep)


@bench.command("knowledge")
def bench_knowledge(
    samples: Annotated[int, typer.Option(min=1, help="Rows: one of the sample sizes of table 1.")] = 200,
    seeds: Annotated[int, typer.Option(min=1, help="Only so many seeds, the first ones.")] = 1,
    keep: KeepOption = False,
) -> None:
    """What the true groups, given as knowledge, are worth on the rows of table 1."""
    without, given = knowledge.worth_of_groups(samples, seeds)
    typer.echo(f"{without}\n{given}")
    figures: dict[str, float] = {"n_samples": samples, "n_seeds": seeds, "n_runs": len(given.runs)}
    figures |= {f"without_{key}": value for key, value in without.figures.items()}
    _keep("knowledge", figures | {f"given_{key}": value for key, value in given.figures.items()}, keep)


@bench.command("covariates")
def bench_covariates(
    models: Annotated[int, typer.Option(min=2, help="Random models, at each sample size.")] = 100,
    samples: Annotated[
        list[int] | None, typer.Option(min=50, max=_MOST_ROWS, help="Rows; may be given again. 500 and 2000.")
    ] = None,
    seed: SeedOption = 21,
) -> None:
    """Edges of covariates and outcomes, and what they tell of directions between latents, in simulated rows."""
    for result in covariates.placed(tuple(samples or (500, 2000)), models, seed):
        typer.echo(str(result))


@bench.command("groups")
def bench_groups(
    models: Annotated[int, typer.Option(min=2, help="Random models.")] = 50,
    groups: Annotated[int, typer.Option(min=2, max=20, help="Groups of people.")] = 3,
    rows: Annotated[int, typer.Option(min=50, max=_MOST_ROWS, help="Rows of each group.")] = 300,
    seed: SeedOption = 21,
) -> None:
    """One structure in several groups of people: searched at once, one by one, and pooled."""
    typer.echo(str(people.searched(models, groups, rows, seed)))


@bench.command("calibration")
def bench_calibration(
    graphs: Annotated[int, typer.Option(min=1, max=20, help="Graphs of the realistic suite, the first ones.")] = 20,
    replicates: Annotated[int, typer.Option(min=2, help="Replicates for each.")] = 50,
    samples: Annotated[int, typer.Option(min=50, max=_MOST_ROWS, help="Rows of each data set.")] = 500,
    seed: SeedOption = 0,
    n_jobs: JobsOption = 1,
    method: Annotated[str, typer.Option(help="bootstrap or subsample.")] = "bootstrap",
    cold: Annotated[bool, typer.Option("--cold", help="Search every replicate from scratch.")] = False,
) -> None:
    """Of the edges that come back in so many replicates, how many are right?"""
    result = calibration.calibrate(
        graphs,
        replicates,
        samples,
        seed=seed,
        n_jobs=n_jobs,
        method=method,  # type: ignore[arg-type]
        warm_start=not cold,
    )
    typer.echo(str(result))


@bench.command("scores")
def bench_scores(
    seeds: Annotated[int, typer.Option(min=1, help="Data sets for each kind of item.")] = 5,
    samples: Annotated[int, typer.Option(min=1, help="Rows of each data set.")] = 1000,
) -> None:
    """Factor scores of ordinal items: category codes against the expectation given the categories."""
    typer.echo(after.ordinal_scores(seeds, samples).round(3).to_string(index=False))


@bench.command("effects")
def bench_effects(
    models: Annotated[int, typer.Option(min=1, help="Random models.")] = 100,
    seed: SeedOption = 0,
) -> None:
    """How often 95% intervals of effects hold the truth, the true class given."""
    typer.echo(str(after.effect_coverage(models, seed=seed)))


@bench.command("confirm")
def bench_confirm(
    searches: Annotated[int, typer.Option(min=1, help="Data sets.")] = 200,
    seed: SeedOption = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A picture: SVG, PDF or PNG.")] = None,
) -> None:
    """p-values of edges that are not there, in the rows of the search and in others."""
    found = after.confirmed_p_values(searches, seed=seed)
    typer.echo(str(found))
    if out is not None:
        found.draw(out)


@bench.command("fits")
def bench_fits() -> None:
    """Processor seconds of fits: all of 200 variables at once, and 32 variables with one edge changed."""
    fits.main()


@bench.command("many-rows")
def bench_many_rows(
    folder: Annotated[Path | None, typer.Argument(help="Where its files go and are kept, about 500 MB.")] = None,
) -> None:
    """Processor seconds and memory of reading one million rows and ten."""
    many_rows.main(folder)


@bench.command("normal-scores")
def bench_normal_scores(
    seeds: Annotated[int, typer.Option(min=1, help="Draws of parameters for each graph.")] = 2,
) -> None:
    """Rows that are not normal: searches by Pearson correlations and by normal scores of ranks."""
    normal_scores.main(seeds)


@bench.command("true-models")
def bench_true_models(
    setting: Annotated[
        list[str] | None, typer.Argument(help=f"{', '.join(true_models.SETTINGS)}; the first three if none is named.")
    ] = None,
    replicates: Annotated[int, typer.Option(min=1, help="Data sets of each kind and size.")] = 200,
) -> None:
    """How often the true model is rejected at 5%, by kind of items, rows and share of missing values."""
    true_models.main(replicates, setting or list(true_models.SETTINGS)[:3])


@bench.command("worth")
def bench_worth() -> None:
    """Effective sample size of ordinal rows: chi-square of true models, and what searches find."""
    worth.main()


# The search watched over ------------------------------------------------------------------------------------


@bench.command("time-limits")
def bench_time_limits(
    sizes: Annotated[str, typer.Option(help="Observed variables.")] = "60,150,300",
    limits: Annotated[str, typer.Option(help="Seconds.")] = "2,10,30",
    report: Annotated[bool, typer.Option("--report", help="Write reports too.")] = False,
    processor: Annotated[
        bool, typer.Option("--processor", help="Limits are processor seconds: for a machine that is busy.")
    ] = False,
) -> None:
    """Whether time limits are kept, by the command line as a whole, loading Python and its libraries included."""
    try:
        asked = [[float(part) for part in given.split(",")] for given in (sizes, limits)]
    except ValueError:
        raise um.UnmeasuredError(
            f"--sizes and --limits take numbers such as 60,150; got {sizes!r}, {limits!r}."
        ) from None
    if not all(1 <= size <= 10_000 for size in asked[0]) or not all(0 < limit < math.inf for limit in asked[1]):
        raise um.UnmeasuredError(f"--sizes are from 1 to 10000 and --limits positive; got {sizes!r}, {limits!r}.")
    for kept in time_limits([int(size) for size in asked[0]], asked[1], is_written=report, by_processor=processor):
        typer.echo(str(kept))


@bench.command("permutations")
def bench_permutations(
    samples: Annotated[int, typer.Option(min=1, help="Rows, as many as an experiment of table 1 has.")] = 100,
    permutations: Annotated[int, typer.Option(min=1, help="How many in all.")] = 100,
    criterion: Annotated[str, typer.Option(help="'bic', or 'delta' for the paper's rule.")] = "bic",
) -> None:
    """Whether permuted columns give the same class."""
    typer.echo(str(permuted(criterion, samples, permutations)))  # type: ignore[arg-type]


# Partitions of items ----------------------------------------------------------------------------------------

LabelsOption = Annotated[list[str] | None, typer.Option("--method", help="Only this method; may be repeated.")]
ModelsOption = Annotated[int, typer.Option("--seeds", min=1, help="Random models.")]


def _partitions(cases: Sequence[partitions.Case], method: Sequence[str] | None, by: str, keep_as: str = "") -> None:
    table = partitions.study(cases, method or partitions.USUAL)
    for failure in table.get("failure", pd.Series(dtype=object)).dropna().unique():
        typer.echo(f"Failed: {failure}", err=True)
    table = table[table["failure"].isna()] if "failure" in table else table
    if by == "data":
        typer.echo(table.drop(columns="failure", errors="ignore").round(2).to_string(index=False) + "\n")
        table = table.assign(all="mean of all")
        by = "all"
    if len(table):
        means = partitions.summary(table, by)
        typer.echo(means.round(2).to_string(index=False))
        if keep_as:
            figures = means.drop(columns=by).set_index("method").round(4)
            kept = {f"{name} {key}": figures.loc[name, key].item() for name in figures.index for key in figures.columns}
            _keep(keep_as, kept, keep=True)


@bench.command("questionnaires")
def bench_questionnaires(
    file: Annotated[Path, typer.Argument(help="JSON: {name: {n, names, corr, scales}}, packed with gzip or not.")],
    method: LabelsOption = None,
    keep: KeepOption = False,
) -> None:
    """How the partition of items agrees with the authors' scales (adjusted Rand index), method by method."""
    _partitions(partitions.questionnaires(file), method, "data", "questionnaires" if keep else "")


@bench.command("hierarchy")
def bench_hierarchy(seeds: ModelsOption = 5, method: LabelsOption = None) -> None:
    """Three traits over nine facets, N = 1000: are facets found, and traits?"""
    _partitions(list(partitions.hierarchies(seeds)), method or list(partitions.METHODS), "N")


@bench.command("minor-factors")
def bench_minor_factors(
    seeds: ModelsOption = 5,
    rmsea: Annotated[float, typer.Option(min=0.001, max=0.2, help="Population RMSEA of the major factors.")] = 0.05,
    method: LabelsOption = None,
) -> None:
    """Five factors and fifty minor ones, N = 500, 2000, 10000: are the five found?"""
    _partitions(list(partitions.with_minor_factors(seeds, rmsea=rmsea)), method, "N")


@bench.command("headline")
def bench_headline(
    data: Annotated[list[str] | None, typer.Option(help="Only this bundled data set; may be repeated.")] = None,
    replicates: Annotated[int, typer.Option(min=2, help="Bootstrap samples of each.")] = 100,
    n_jobs: JobsOption = 1,
    method: LabelsOption = None,
) -> None:
    """Bundled data: how well the headlines of bootstrap samples agree with one another (adjusted Rand index)."""
    cases = []
    for name in data or um.datasets.available():
        found = um.datasets.load(name)
        scales = partitions.scales_of(list(found.models.values())[-1].text)
        cases.append(partitions.Case(name, found.frame(), int(found.n_samples), {"scales": scales}))
    labels = method or list(partitions.COMPARED)
    typer.echo(partitions.headline_stability(cases, replicates, n_jobs, labels).round(3).to_string(index=False))


@bench.command("halves")
def bench_halves(
    file: Annotated[list[Path], typer.Argument(help="Files of rows.")],
    splits: Annotated[int, typer.Option(min=1, help="Random splits of each.")] = 5,
    columns: Annotated[str, typer.Option(help="Which columns are items, as a pattern.")] = "*",
    method: LabelsOption = None,
) -> None:
    """Rows split in two: how a model found in one half predicts the other, and whether its partition comes back."""
    labels = method or list(partitions.PREDICTORS)
    tables = []
    for path in file:
        rows = um.read(path, blocks=False)
        items = [name for name in rows.columns if fnmatch(str(name), columns)]
        frame = rows[items].select_dtypes("number").dropna()
        if frame.shape[1] < 3 or len(frame) < 2 * frame.shape[1]:
            raise um.DataError(
                f"{path.name} has {frame.shape[1]} items and {len(frame)} complete rows: too few to split."
            )
        tables.append(partitions.halves(frame, path.name, labels, splits))
    typer.echo(pd.concat(tables).round(3).to_string(index=False))


# Experiments with records -----------------------------------------------------------------------------------

RecordsOption = Annotated[Path | None, typer.Option("--records", help="The file of records, made where there is none.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="Some of the runs only.")]
SeedsOption = Annotated[int | None, typer.Option("--seeds", min=1, help="Only so many seeds, the first ones.")]
TableOnlyOption = Annotated[bool, typer.Option("--table-only", help="Run nothing; print what the records say.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")]
MethodOption = Annotated[list[str] | None, typer.Option("--method", help="Only this method; may be repeated.")]
RetryOption = Annotated[bool, typer.Option("--retry-failed", help="Make failed runs again.")]
RenewOption = Annotated[
    bool, typer.Option("--renew", help="Make runs again whose method's code has changed since they were made.")
]


@bench.command("run", hidden=True)
def bench_run(
    name: Annotated[str, typer.Argument(help="A bundled experiment, or the path of a .toml file.")],
    records_file: RecordsOption = None,
    quick: QuickOption = False,
    seeds: SeedsOption = None,
    n_jobs: JobsOption = 1,
    table_only: TableOnlyOption = False,
    markdown: MarkdownOption = False,
    retry_failed: RetryOption = False,
    renew: RenewOption = False,
    method: MethodOption = None,
) -> None:
    """Run an experiment where its records are missing, then print its table."""
    asked = experiment.load(name)
    asked = asked.quickened() if quick else asked
    asked = asked.first_seeds(seeds) if seeds is not None else asked
    asked = asked.restricted(method) if method else asked
    path = records_file or runner.default_path(asked.name)
    if not table_only:
        _make_runs(asked, path, n_jobs, retry_failed=retry_failed, renew=renew)
    table = tables.make_table(asked, records.read_records(path))
    typer.echo(table.markdown() if markdown else table.text())
    typer.echo(f"Records: {path}", err=True)


def _make_runs(asked: experiment.Experiment, path: Path, n_jobs: int, *, retry_failed: bool, renew: bool) -> None:
    typer.echo(f"Records go to {path}; Ctrl-C stops, the same command goes on.", err=True)
    try:
        tally = runner.run(asked, path, n_jobs=n_jobs, retry_failed=retry_failed, renew=renew)
    except runner.Stopped as stopped:
        raise cli.Interrupted(str(stopped)) from None
    failed = f", {tally.n_failed} failed (--retry-failed makes them again)" if tally.n_failed else ""
    typer.echo(f"{tally.n_new} new runs of {tally.n_planned}{failed}.\n", err=True)


def _add_experiment(name: str) -> None:
    """A command for a bundled experiment: `python -m benchmarks table4` is `python -m benchmarks run table4`."""

    def command(
        records_file: RecordsOption = None,
        quick: QuickOption = False,
        seeds: SeedsOption = None,
        n_jobs: JobsOption = 1,
        table_only: TableOnlyOption = False,
        markdown: MarkdownOption = False,
        retry_failed: RetryOption = False,
        renew: RenewOption = False,
        method: MethodOption = None,
    ) -> None:
        bench_run(name, records_file, quick, seeds, n_jobs, table_only, markdown, retry_failed, renew, method)

    bench.command(name, help=f"Run experiment {name} and print its table.")(command)


def _add_collection(name: str) -> None:
    """A command for several experiments, one after the other; each has its own file of records."""

    def command(
        quick: QuickOption = False,
        seeds: SeedsOption = None,
        n_jobs: JobsOption = 1,
        table_only: TableOnlyOption = False,
        markdown: MarkdownOption = False,
        retry_failed: RetryOption = False,
        renew: RenewOption = False,
        method: MethodOption = None,
    ) -> None:
        parts = experiment.collected(name)
        if method:
            parts = experiment.with_methods(parts, method)
        for part in parts:
            if table_only and not runner.default_path(part).exists():
                typer.echo(f"{part}: no records yet; python -m benchmarks {part} makes them.\n")
                continue
            some = [label for label in method or () if label in experiment.load(part).labels]
            bench_run(part, None, quick, seeds, n_jobs, table_only, markdown, retry_failed, renew, some)
            typer.echo("")

    what = "every experiment" if name == "all" else " and ".join(experiment.collected(name))
    bench.command(name, help=f"Run {what}, one after the other.")(command)


for _name in experiment.available():
    _add_experiment(_name)
for _name in (*experiment.COLLECTIONS, "all"):
    _add_collection(_name)


# Pages and figures ------------------------------------------------------------------------------------------

FolderOption = Annotated[Path, typer.Option("--records", help="The folder of the records.")]


@bench.command("figures")
def bench_figures(
    folder: FolderOption = runner.FOLDER,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the pictures go.")] = Path("docs") / "images",
) -> None:
    """Draw what the records say: accuracy against N, seconds against variables, sensitivity. Runs nothing."""
    for path in figures.draw_all(folder, out):
        typer.echo(str(path))


@bench.command("docs")
def bench_docs(
    folder: FolderOption = runner.FOLDER,
    template: Annotated[Path, typer.Option(help="The page with its tables left out.")] = Path("benchmarks") / "page.md",
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("docs") / "benchmarks.md",
) -> None:
    """Write the page of benchmarks, and the figures of other pages, from templates and records. Runs nothing.

    The README, docs/scaling.md and docs/knowledge.md of the working directory get their sections of figures anew.
    """
    write_folder(out.parent, {out.name: page.filled(cli._text(template), folder, out.parent / "images")})
    typer.echo(f"Written: {out}", err=True)
    for path, text in claims.sections(Path()):
        write_text(path, text)
        typer.echo(f"Written: {path}", err=True)
