"""Commands that ask how sure an answer is; part of the command line."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import unmeasured as um
from unmeasured.cli import commands as cli
from unmeasured.cli.commands import (
    ColumnsOption,
    CorOption,
    CovariatesOption,
    ExcludeOption,
    FileArgument,
    GroupSizeOption,
    GroupsOption,
    HeaderOption,
    JsonOption,
    MissingOption,
    NaOption,
    OutcomesOption,
    PenaltyOption,
    ReverseOption,
    SamplesOption,
    SheetOption,
    ToleranceOption,
    UnpackedOption,
    named_path,
)
from unmeasured.data.files.unpack import MOST_UNPACKED
from unmeasured.files import check_folder

if TYPE_CHECKING:
    from unmeasured.output.report.run import Run
    from unmeasured.validation.replicates.result import Stability


DataOrResultArgument = Annotated[
    Path,
    typer.Argument(
        help="Rows: CSV, TSV, text, SPSS, Stata, Excel, Parquet. With --n, a covariance or correlation matrix. Or a "
        "result.json, whose graph and options are then used."
    ),
]
RowsOfResultArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[rows]", help="With a result.json: the rows that it is of. Without them, its matrix is used."
    ),
]
# Options that say how the first search is made; that of a result has been made.
_OF_SEARCH = ("n", "cor", "missing", "penalty", "tolerance", "max_group_size", "covariates", "outcomes", "groups")
# Options that say how rows are read.
_OF_ROWS = ("columns", "exclude", "na", "reverse", "header", "sheet", "max_unpacked")


@cli.app.command("stability", short_help="Examine how often each edge is found in replicates.")
def stability(
    context: typer.Context,
    file: DataOrResultArgument,
    rows: RowsOfResultArgument = None,
    columns: ColumnsOption = None,
    exclude: ExcludeOption = None,
    n: SamplesOption = None,
    cor: CorOption = "auto",
    missing: MissingOption = "ml",
    na: NaOption = None,
    reverse: ReverseOption = None,
    header: HeaderOption = None,
    sheet: SheetOption = None,
    max_unpacked: UnpackedOption = MOST_UNPACKED,
    penalty: PenaltyOption = 1.0,
    tolerance: ToleranceOption = "auto",
    max_group_size: GroupSizeOption = 3,
    covariates: CovariatesOption = None,
    outcomes: OutcomesOption = None,
    groups: GroupsOption = None,
    replicates: Annotated[int, typer.Option(help="The number of replicates.")] = 200,
    method: Annotated[
        str, typer.Option(help="How they are drawn: bootstrap, subsample or parametric (always for a matrix).")
    ] = "bootstrap",
    threshold: Annotated[
        float, typer.Option(help="Print the graph of the edges found in at least this share of them.")
    ] = 0.5,
    n_jobs: Annotated[int, typer.Option(help="Replicates at once; -1 for one per core.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same replicates.")] = 0,
    records: Annotated[
        Path | None,
        typer.Option(help="A file to keep replicates in; the same command then continues where it stopped."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            parser=named_path,
            metavar="<path>",
            help="A folder for the report; to the report of the same result that is there already, a section is added.",
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="The heading of the report.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Search a file and replicates of it, and report how often each edge, item and group is found.

    Of a result.json the graph is not searched again: replicates are made of the rows that are given with it, or else
    drawn around the matrix that it holds.

    Example: unmeasured stability report/result.json answers.csv --replicates 200 --records runs.jsonl --out report
    """
    from unmeasured.output.report.run import About, run_of, search_of
    from unmeasured.output.report.write import RESULT, write_run
    from unmeasured.search.warm import compile_kernels
    from unmeasured.validation.replicates.records import refuse_other_files
    from unmeasured.validation.replicates.run import RULES

    if not 0 < threshold <= 1:
        raise um.UnmeasuredError(f"--threshold is a part of the replicates, above 0 and up to 1; got {threshold:g}.")
    if out is not None:
        check_folder(out)
    # Options that are refused should not wait for a search.
    um.LGES(
        penalty=penalty, tolerance=cli._tolerance(tolerance), max_group_size=max_group_size,
        cor=cor, missing=missing,  # type: ignore[arg-type]
    ).check_options()  # fmt: skip
    for name, value in (("n_replicates", replicates), ("method", method), ("n_jobs", n_jobs), ("random_state", seed)):
        RULES[name].check(name, value)
    earlier = cli._run(out / RESULT) if out is not None and (out / RESULT).exists() else None
    run = cli._run(file) if file.suffix == ".json" else None
    if run is not None:
        _refuse_options(context, _OF_SEARCH, "replicates of a result.json are searched with the options of its search")
        if rows is None:
            _refuse_options(context, _OF_ROWS, "there are no rows. Their file may follow the result.json")
        sample = _rows_of(
            file, run, rows, cli.Preparing.of(exclude, na, reverse, sheet, max_unpacked, models=[file]), columns, header
        )
    else:
        if rows is not None:
            raise um.UnmeasuredError(f"A second file has the rows of a result.json, and {file.name} is none.")
        how = cli.Preparing.of(exclude, na, reverse, sheet, max_unpacked)
        asked = cli.Asked.of(covariates, outcomes, None, groups)
        made = cli._table(file, columns, n, header, how, asked=asked)
        sample = cli._as_sample(made, n, cor, missing, asked)
    if records is not None:
        refuse_other_files(records)  # which should not wait for a search
    compile_kernels()
    begun = time.perf_counter()
    if run is not None:
        search = search_of(run, sample)
    else:
        assert sample is not None
        options = {
            "penalty": penalty,
            "tolerance": cli._tolerance(tolerance),
            "max_group_size": max_group_size,
            "covariates": sample.covariates,
            "outcomes": sample.outcomes,
            "cor": cor,
            "missing": missing,
        }
        search = um.LGES(**options).fit(sample)
        if search.stopped_:
            raise cli.Interrupted("interrupted during the first search; no replicate was made.")
    if earlier is not None:
        _refuse_other_report(out, earlier, search)
        run = run or earlier
    try:
        stable = um.stability(
            search,
            replicates,
            method=method,  # type: ignore[arg-type]
            n_jobs=n_jobs,
            random_state=seed,
            records=records,
            verbose=not as_json and sys.stderr.isatty(),
        )
    except KeyboardInterrupt:
        kept = (
            f"what is done is in {records}, and the same command goes on" if records else "--records keeps what is done"
        )
        raise cli.Interrupted(f"stopped; {kept}.") from None
    if run is None:
        about = About(
            title=title,
            data=file.name,
            command=cli._command(),
            seconds=time.perf_counter() - begun,
            na=made.na,
            reversed_items=dict(made.reversed_items),
            groups=groups or "",
        )
        run = run_of(search, about=about)
    elif title:
        run = replace(run, about=replace(run.about, title=title))
    stable = stable.named_as(run.result.graph)
    page = None if out is None else write_run(run, out, stability=stable)
    if not as_json:
        typer.echo(_source(file, rows, search.sample_, stable))
    _show(stable, threshold, as_json)
    if page is not None:
        typer.echo(f"\n{cli._where(page)}", err=as_json)


def _rows_of(
    file: Path, run: Run, rows: Path | None, how: cli.Preparing, columns: list[str] | None, header: bool | None
) -> um.Sample | None:
    """The rows of a result, read as its search has read them; None if there are none."""
    if rows is None:
        return None
    variables, options = run.result.graph.variables, run.result.options
    asked = cli.Asked(variables.covariates, variables.outcomes, run.about.groups or None)
    keep = [asked.groups] if asked.groups is not None else []
    made = cli._table(rows, columns, None, header, how, models=[run.result], keep=keep, asked=asked)
    return cli._as_sample(made, None, options.get("cor", "auto"), options.get("missing", "ml"), asked)


def _refuse_options(context: typer.Context, names: Sequence[str], why: str) -> None:
    """Refuse options that were typed and would do nothing."""
    sources = {name: context.get_parameter_source(name) for name in names}
    typed = ["--" + name.replace("_", "-") for name, source in sources.items() if source and source.name != "DEFAULT"]
    if typed:
        raise um.UnmeasuredError(f"Leave out {', '.join(typed)}: {why}.")


def _refuse_other_report(folder: Path | None, earlier: Run, search: um.LGES) -> None:
    """The stability of one graph is no part of the report of another, nor does it replace that."""
    from unmeasured.output.report.run import is_answer_of

    if not is_answer_of(search, earlier):
        raise um.UnmeasuredError(
            f"{str(folder)!r} has the report of another result: its data or its graph differ from those of this "
            f"search. For its stability: unmeasured stability {folder}/result.json with the rows; for that of this "
            "search, give another folder."
        )


def _source(file: Path, rows: Path | None, sample: um.Sample, stable: Stability) -> str:
    """One line on the data that replicates were made of."""
    where = rows or file
    if stable.method != "parametric":
        return f"Replicates are of the {sample.n_rows} rows of {where.name}.\n"
    held = f"the matrix in {file.name}" if rows is None else f"the covariance of the rows of {where.name}"
    return f"Replicates are drawn around {held} (N = {sample.n:.0f}).\n"


def _show(stable: Stability, threshold: float, as_json: bool) -> None:
    if as_json:
        typer.echo(cli._as_json(stable.to_record()))
        return
    typer.echo(stable.summary())
    try:
        consensus = str(stable.consensus(threshold))
    except um.UnmeasuredError as error:  # there is none: something to know, and no reason to write no report
        consensus = str(error)
    typer.echo(f"\nConsensus of what comes back in {threshold:.0%} of the replicates\n{consensus}")


@cli.app.command("penalty-path", short_help="Search with several penalties.")
def penalty_path(
    file: FileArgument,
    columns: ColumnsOption = None,
    exclude: ExcludeOption = None,
    n: SamplesOption = None,
    cor: CorOption = "auto",
    missing: MissingOption = "ml",
    na: NaOption = None,
    reverse: ReverseOption = None,
    header: HeaderOption = None,
    sheet: SheetOption = None,
    max_unpacked: UnpackedOption = MOST_UNPACKED,
    max_group_size: GroupSizeOption = 3,
    penalties: Annotated[str, typer.Option(help="Penalties of your own, such as '1,2,5,10'.")] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            parser=named_path,
            metavar="<path>",
            help="A folder for the tables, the figure and a result for each step.",
        ),
    ] = None,
) -> None:
    """Search with several penalties, from that of BIC to one that gives a very simple model, and suggest a step.

    With --out every step is written as a result (step-01.json, ...), which report, export, fit, compare, scores and
    effects accept.

    Example: unmeasured penalty-path answers.csv --columns 'q*' --out penalties
    """
    from unmeasured.output.report.run import About, run_of
    from unmeasured.search.warm import compile_kernels

    if out is not None:
        check_folder(out)
    asked = [_number(part) for part in penalties.split(",")] if penalties else None
    how = cli.Preparing.of(exclude, na, reverse, sheet, max_unpacked)
    made = cli._table(file, columns, n, header, how)
    sample = cli._as_sample(made, n, cor, missing)
    compile_kernels()
    found = um.penalty_path(sample, asked, max_group_size=max_group_size, verbose=sys.stderr.isatty())
    typer.echo(str(found))
    if out is None:
        typer.echo(
            "\nNo files were written; --out FOLDER writes the model of every step, which can be reported and exported."
        )
        return
    about = About(
        data=file.name, command=cli._command(), na=made.na, reversed_items=dict(made.reversed_items)
    ).with_rows(sample)
    found.write(out, lambda result: run_of(result, about=about).to_json())
    first = out / f"step-{found.suggested + 1:02d}.json"
    typer.echo(
        f"\nTables, figure and the model of each step: {out}\nRead first: unmeasured report {first} --out report"
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise um.UnmeasuredError(f"--penalties takes numbers with commas between them; got {text.strip()!r}.") from None
