"""The command that compares groups of people; part of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import unmeasured as um
from unmeasured.cli import commands as cli
from unmeasured.cli.commands import (
    ColumnsOption,
    ExcludeOption,
    HeaderOption,
    JsonOption,
    ModelArgument,
    NaOption,
    QuietOption,
    ReverseOption,
    RowsArgument,
    SheetOption,
    UnpackedOption,
    named_path,
)
from unmeasured.data.files.unpack import MOST_UNPACKED
from unmeasured.files import csv_text, write_folder

if TYPE_CHECKING:
    import pandas as pd

    from unmeasured.results.invariance import Invariance


@cli.app.command("invariance", short_help="Test measurement invariance across groups of people.")
def invariance(
    model: ModelArgument,
    file: RowsArgument,
    groups: Annotated[str, typer.Option("--groups", "-g", help="The column with the group of each person.")],
    estimator: Annotated[str, typer.Option(help="ML; MLM or MLR for non-normal data.")] = "ML",
    first_indicator: Annotated[bool, typer.Option(help="Scale latents by their first indicator.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", parser=named_path, metavar="<path>", help="A folder for the tables, as CSV files."),
    ] = None,
    columns: ColumnsOption = None,
    exclude: ExcludeOption = None,
    na: NaOption = None,
    reverse: ReverseOption = None,
    header: HeaderOption = None,
    sheet: SheetOption = None,
    max_unpacked: UnpackedOption = MOST_UNPACKED,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Test measurement invariance across groups: loadings, intercepts and residual variances, the
    parameters that differ, and latent means.

    Example: unmeasured invariance model.lav rows.csv --groups school
    """
    asked = cli._model(model)
    how = cli.Preparing.of(exclude, na, reverse, sheet, max_unpacked, [model])
    made = cli._table(file, columns, None, header, how, models=[asked], keep=[groups])
    cli._show_remarks(made.notes, quiet or as_json)
    found = um.invariance(
        asked,
        made.frame,
        groups=groups,
        estimator=estimator,  # type: ignore[arg-type]
        scale_latents="first-indicator" if first_indicator else "variance",
    )
    tables = {
        "steps": found.table.reset_index(),
        "differences": found.differences,
        "latent_means": found.latent_means,
        "structure": found.structure.reset_index(),
    }
    if out is not None:
        write_folder(out, {f"{name}.csv": csv_text(table) for name, table in tables.items()})
    if as_json:
        typer.echo(_as_json(found, tables))
    elif not quiet:
        typer.echo(found.summary())
        typer.echo(
            f"\nTables: {out}" if out is not None else "\nNo files were written; --out FOLDER writes the tables."
        )
    if not all(fit.converged and fit.admissible for fit in found.fits.values()):
        raise typer.Exit(1)


def _as_json(found: Invariance, tables: dict[str, pd.DataFrame]) -> str:
    record: dict[str, Any] = {"groups": found.groups, "holds_up_to": found.supported_step}
    record |= {name: json.loads(table.to_json(orient="records")) for name, table in tables.items()}
    record["status"] = {step: fit.status for step, fit in found.fits.items()}
    return json.dumps(record, ensure_ascii=False, indent=1)
