"""Commands for what follows a discovery: scores, effects, local fit and reliability; part of the command line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import unmeasured as um
from unmeasured import apa
from unmeasured.cli import commands as cli
from unmeasured.cli.commands import (
    ColumnsOption,
    ExcludeOption,
    HeaderOption,
    JsonOption,
    ModelArgument,
    NaOption,
    QuietOption,
    ResultArgument,
    ReverseOption,
    RowsArgument,
    SheetOption,
    UnpackedOption,
    named_path,
)
from unmeasured.data.files.unpack import MOST_UNPACKED
from unmeasured.files import csv_text, write_csv

if TYPE_CHECKING:
    import pandas as pd

    from unmeasured.models.fit import Fit


@cli.app.command("scores", short_help="Factor scores for each row of a file.")
def scores(
    model: ModelArgument,
    file: RowsArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", parser=named_path, metavar="<path>", help="A CSV file; without one, the screen."),
    ] = None,
    method: Annotated[str, typer.Option(help="regression or bartlett.")] = "regression",
    standard_errors: Annotated[bool, typer.Option("--standard-errors", help="Add standard errors.")] = False,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="A column to copy, such as an id; may be given again.")
    ] = None,
    standardise: Annotated[
        bool,
        typer.Option(
            "--standardise", help="For a model of a matrix: standardise the rows by their own means and deviations."
        ),
    ] = False,
    columns: ColumnsOption = None,
    exclude: ExcludeOption = None,
    na: NaOption = None,
    reverse: ReverseOption = None,
    header: HeaderOption = None,
    sheet: SheetOption = None,
    max_unpacked: UnpackedOption = MOST_UNPACKED,
    quiet: QuietOption = False,
) -> None:
    """Factor scores: one line for each row of the file, in the same order.

    A model in lavaan syntax is fitted to the file first. A result.json is used with its estimates, and --na
    and --reverse are those of its run unless they are given.

    Example: unmeasured scores report/result.json answers.csv --out scores.csv --keep id --standard-errors
    """
    from unmeasured.data.prepare import chosen_columns

    cli._refuse_overwriting(out, file, model)
    asked = cli._model(model)
    how = cli.Preparing.of(exclude, na, reverse, sheet, max_unpacked, [model])
    made = cli._table(file, columns, None, header, how, models=[asked])
    rows = made.frame.read() if isinstance(made.frame, um.Table) else made.frame
    whole = cli._rows(file, header, sheet, max_unpacked)
    for note in () if quiet else made.notes:
        typer.echo(f"Data: {note}", err=True)  # scores may go to the screen
    fit = asked.fit if isinstance(asked, um.Result) else um.fit(asked, rows)
    kept = chosen_columns(keep, list(whole.columns)) if keep else []
    copied = whole.select(kept).read() if isinstance(whole, um.Table) else whole[kept]
    mean = None
    if standardise:
        rows, mean = _on_its_scale(rows, fit), [0.0] * len(fit.sample.names)
    scored = fit.scores(rows, method, standard_errors=standard_errors, mean=mean)  # type: ignore[arg-type]
    taken = [name for name in scored.columns if name in copied.columns]
    if taken:
        raise um.UnmeasuredError(f"A column to keep has the name of a latent: {', '.join(taken)}. Rename one of them.")
    import pandas as pd

    scored = pd.concat([copied, scored], axis=1)
    if out is None:
        typer.echo(csv_text(scored, float_format="%.6g").rstrip("\n"))
        return
    write_csv(out, scored)
    sure = fit.determinacy(method)["determinacy"]  # type: ignore[arg-type]
    told = ", ".join(f"{name} {value:.2f}" for name, value in sure.items())
    cli._say(f"{len(scored)} rows: {out}. Correlation of the scores with their latents (determinacy): {told}.", quiet)


@cli.app.command("effects", short_help="Total effects between variables.")
def effects(
    result: ResultArgument,
    cause: Annotated[str | None, typer.Option(help="Effects of this variable.")] = None,
    effect: Annotated[str | None, typer.Option(help="Effects on this variable.")] = None,
    confidence: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    decompose: Annotated[
        bool, typer.Option("--decompose", help="Direct and indirect effects too, in the one graph that was fitted.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", parser=named_path, metavar="<path>", help="A CSV file for the table.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Total effects between variables, in all graphs that fit equally well.

    One number if all graphs of the class agree; otherwise all possible values, and the edge whose direction decides
    between them.

    Example: unmeasured effects report/result.json --cause Speed --effect Error
    """
    from unmeasured.results.effects import class_effects

    cli._refuse_overwriting(out, result)
    found = cli._run(result).result
    if decompose:
        table = found.fit.effects(cause, effect, confidence=confidence)
        text = apa.table_text(table, 3)
    else:
        over = class_effects(found, cause, effect, confidence=confidence)
        table, text = over.table, str(over.pairs[0] if len(over.pairs) == 1 else over)
    if out is not None:
        write_csv(out, table)
    if as_json:
        typer.echo(cli._as_json({"effects": table.to_dict(orient="records")}))
    else:
        typer.echo(text if out is None else f"{text}\n\nTable: {out}")


@cli.app.command("diagnose")
def diagnose(
    result: ResultArgument,
    max_rows: Annotated[
        int, typer.Option(min=1, help="The number of rows in each table, those with the largest values.")
    ] = 10,
    as_json: JsonOption = False,
) -> None:
    """Modification indices, residuals and reliability of a model.

    Modification indices (what would improve the fit), standardised residuals, and omega, alpha and average variance
    extracted of each latent.

    Example: unmeasured diagnose report/result.json
    """
    import pandas as pd

    found = cli._run(result).result
    missed = found.modification_indices(max_rows)
    # In a population nothing varies: there is no error to divide a residual by, as there is no modification index.
    is_sample = math.isfinite(found.fit.sample.n)
    residuals = _largest(found.fit.residuals("standardised"), max_rows) if is_sample else pd.DataFrame()
    # Loadings of the latents of a group of several depend on the rotation: they have no reliability of their own.
    has_own = any(len(group) == 1 and found.indicators[group] for group in found.graph.latent_groups)
    table = found.reliability().table.reset_index() if has_own else pd.DataFrame()
    sentences = list(found.reliability().sentences) if has_own else []
    if as_json:
        tables = {"modification_indices": missed, "standardised_residuals": residuals}
        record = {name: table.to_dict(orient="records") for name, table in tables.items()}
        typer.echo(cli._as_json({**record, "reliability": table.to_dict(orient="records"), "sentences": sentences}))
        return
    for heading, shown in (
        ("What would improve the fit (modification indices)", missed),
        ("Standardised residuals (5% are beyond 2 by chance)", residuals),
        ("Reliability", table),
    ):
        typer.echo(
            f"{heading}\n{shown.to_string(index=False, float_format='{:.3f}'.format) if len(shown) else 'none'}\n"
        )
    for sentence in sentences:
        typer.echo(f"- {sentence}")


def _largest(table: pd.DataFrame, max_rows: int) -> pd.DataFrame:
    """Pairs of variables with the largest entries in absolute value."""
    import pandas as pd

    pairs = [
        {"lhs": a, "rhs": b, "residual": float(table.loc[b, a])}
        for k, a in enumerate(table.columns)
        for b in table.index[k + 1 :]
    ]
    rows = pd.DataFrame(pairs, columns=["lhs", "rhs", "residual"]).dropna()
    return rows.sort_values("residual", key=abs, ascending=False, kind="stable").head(max_rows)


def _on_its_scale(rows: pd.DataFrame, fit: Fit) -> pd.DataFrame:
    """Rows less their means, over their standard deviations, times those of the matrix."""
    import pandas as pd

    names = [name for name in fit.sample.names if name in rows.columns]
    chosen = rows[names].apply(pd.to_numeric, errors="coerce")
    sd = pd.Series(fit.sample.sd, index=list(fit.sample.names))[names]
    return pd.DataFrame((chosen - chosen.mean()) / chosen.std(ddof=0) * sd)
