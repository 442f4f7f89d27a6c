"""Commands that watch over the search: time limits and the order of columns."""

from __future__ import annotations

import math
from typing import Annotated

import typer

import unmeasured as um
from benchmarks.commands import bench
from benchmarks.limits import time_limits
from benchmarks.permutations import permuted


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
