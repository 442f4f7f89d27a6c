"""Commands that ask how sure an answer is; part of the command line."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

import unmeasured as um
from unmeasured import cli
from unmeasured.cli import (
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
from unmeasured.data.unpack import MOST_UNPACKED
from unmeasured.files import check_folder


@cli.app.command("stability", short_help="Examine how often each edge is found in replicates.")
def stability(
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
        Path | None, typer.Option("--out", "-o", parser=named_path, metavar="<path>", help="A folder for the report.")
    ] = None,
    title: Annotated[str, typer.Option(help="The heading of the report.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Search a file and replicates of it, and report how often each edge, item and group is found.

    Example: unmeasured stability answers.csv --columns 'q*' --replicates 200 --records runs.jsonl --out report
    """
    from unmeasured.replicates.records import refuse_other_files
    from unmeasured.replicates.run import RULES
    from unmeasured.report.run import About, run_of
    from unmeasured.report.write import write_run
    from unmeasured.search.warm import compile_kernels

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
    how = cli.Preparing.of(exclude, na, reverse, sheet, max_unpacked)
    asked = cli.Asked.of(covariates, outcomes, None, groups)
    made = cli._table(file, columns, n, header, how, asked=asked)
    sample = cli._as_sample(made, n, cor, missing, asked)
    if records is not None:
        refuse_other_files(records)  # which should not wait for a search
    options = {
        "penalty": penalty,
        "tolerance": cli._tolerance(tolerance),
        "max_group_size": max_group_size,
        "covariates": sample.covariates,
        "outcomes": sample.outcomes,
        "cor": cor,
        "missing": missing,
    }
    compile_kernels()
    begun = time.perf_counter()
    search = um.LGES(**options).fit(sample)
    if search.stopped_:
        raise cli.Interrupted("interrupted during the first search; no replicate was made.")
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
    _show(stable, threshold, as_json)
    if out is not None:
        about = About(
            title=title,
            data=file.name,
            command=cli._command(),
            seconds=time.perf_counter() - begun,
            na=made.na,
            reversed_items=dict(made.reversed_items),
            groups=groups or "",
        )
        page = write_run(run_of(search, about=about), out, stability=stable)
        typer.echo(f"\n{cli._where(page)}", err=as_json)


def _show(stable: um.Stability, threshold: float, as_json: bool) -> None:
    if as_json:
        typer.echo(cli._as_json(stable.to_record()))
        return
    typer.echo(stable.summary())
    try:
        consensus = str(stable.consensus(threshold))
    except um.UnmeasuredError as error:  # there is none: something to know, and no reason to write no report
        consensus = str(error)
    typer.echo(f"\nConsensus of what comes back in {threshold:.0%} of the replicates\n{consensus}")


@cli.app.command("path", short_help="Search with several penalties.")
def path(
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

    Example: unmeasured path answers.csv --columns 'q*' --out penalties
    """
    from unmeasured.report.run import About, run_of
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
