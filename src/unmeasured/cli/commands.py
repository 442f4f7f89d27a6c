"""The command line: parses, calls the library, prints.

Exit codes: 0 done; 1 done, but the answer is not one to rely on (no latents, no proper fit, a check that failed); 2 a
mistake in what was asked; 130 interrupted, or out of time before there was a first model.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

import unmeasured as um
from unmeasured.data.files.unpack import MOST_UNPACKED
from unmeasured.errors import listing, nearest
from unmeasured.files import check_folder, csv_text, write_bytes, write_folder, write_text
from unmeasured.remarks import Remark, severity_of

if TYPE_CHECKING:
    import pandas as pd

    from unmeasured.cli.limit import Times
    from unmeasured.data.prepare import Prepared
    from unmeasured.models.fit import Fit
    from unmeasured.output.report.run import About, Run
    from unmeasured.results.compare import ModelComparison
    from unmeasured.results.invariance import Invariance
    from unmeasured.search.clock import Timing
    from unmeasured.validation.replicates.result import Stability

# Commands load what they need when they are called: --help should not wait for libraries.

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Exit codes: 0 success; 1 finished, but the result should not be relied on; 2 "
    "an error in the command or a file; 130 interrupted, or out of time before there was a result.",
)


_NOTHING_YET = (
    "interrupted before a first model was found: whether there are latents is not known yet. --time-limit ends a "
    "search with the best model so far."
)
# Seconds by which a report may be late.
_OVERTIME = 1.0
# Seconds that the second view of a report, without tolerance, may take at the least.
_EXACT_AT_LEAST = 10.0
# Seconds that a confirmation in other rows has in any case, also where a search took all the time.
_CONFIRMED_IN = 1.0
# When the command began, by the clock and in processor time; main() says so again.
_began = time.monotonic(), time.process_time()
# The part of a time limit that loading libraries may take: a search has the rest.
_LOADING = 0.75
# The part of a time limit that the page of a report may take.
_FOR_PAGE = 0.5


class Interrupted(Exception):
    """Ctrl-C where there is something to say about it."""


T = TypeVar("T")


@dataclass
class LeftOut:
    """What Ctrl-C or a time limit ended after a search: the answer is there, and is given without these parts."""

    parts: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)  # by the time limit

    @contextmanager
    def on_interrupt(self, part: str) -> Iterator[None]:
        """Ctrl-C inside ends what is inside; what was found before is kept."""
        try:
            yield
        except KeyboardInterrupt:
            self.parts.append(part)

    def attempt(self, part: str, work: Callable[[], T], until: float | None) -> T | None:
        """Do a part of what comes after a search; None if Ctrl-C, or the end of the time, came first."""
        from unmeasured.errors import Stopped
        from unmeasured.search.clock import finished_by

        try:
            return finished_by(until, work)
        except KeyboardInterrupt:
            self.parts.append(part)
        except Stopped:
            self.late.append(part)
        return None


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"unmeasured {um.__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and nothing else."),
    ] = False,
) -> None:
    """Find latent variables and their causal relations."""


@dataclass(frozen=True)
class Preparing:
    """What is done to a table before it is analysed."""

    exclude: Sequence[str] = ()
    na: tuple[float, ...] = ()
    reverse: Sequence[str] = ()
    sheet: str | None = None
    max_unpacked: float = MOST_UNPACKED
    totals: Mapping[str, float] = field(default_factory=dict)  # what answers to reversed items were taken from

    @classmethod
    def of(
        cls,
        exclude: list[str] | None,
        na: str | None,
        reverse: list[str] | None,
        sheet: str | None,
        max_unpacked: float = MOST_UNPACKED,
        models: Iterable[Path] = (),
    ) -> Preparing:
        """From the options; what they leave out is done as it was for the results among the models."""
        try:
            codes = tuple(float(part) for part in (na or "").split(",") if part.strip())
        except ValueError:
            raise um.UnmeasuredError(
                f"--na takes numbers with commas between them, such as 9,99; got {na!r}."
            ) from None
        items = tuple(part for part in reverse or () if part.strip())
        runs = [_run(path).about for path in models if path.suffix == ".json"]
        before = {(about.na, tuple(sorted(about.reversed_items.items()))) for about in runs}
        if len(before) > 1 and (na is None or reverse is None):
            raise um.UnmeasuredError(
                "These results are of rows that were prepared in different ways. Give --na and --reverse, '' for none."
            )
        was, totals = before.pop() if len(before) == 1 else ((), ())
        return cls(
            tuple(exclude or ()),
            was if na is None else codes,
            tuple(name for name, _ in totals) if reverse is None else items,
            sheet,
            max_unpacked,
            dict(totals),
        )


FileArgument = Annotated[
    Path,
    typer.Argument(
        help="Rows: CSV, TSV, text, SPSS, Stata, Excel, Parquet. With --n, a covariance or correlation matrix."
    ),
]
RowsArgument = Annotated[
    Path, typer.Argument(metavar="file", help="Rows: CSV, TSV, text, SPSS, Stata, Excel or Parquet.")
]
ModelArgument = Annotated[Path, typer.Argument(help="Model text in lavaan syntax, or a result.json.")]
ResultArgument = Annotated[Path, typer.Argument(help="The result.json of a run.")]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--columns", "-c", help="Variables by name, pattern or range, such as 'q*,mood,O1:N5'; may be given again."
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option("--exclude", "-x", help="Variables to leave out, written as in --columns; may be given again."),
]
NaOption = Annotated[str | None, typer.Option("--na", help="Codes of missing answers, such as '9,99'.")]
ReverseOption = Annotated[
    list[str] | None, typer.Option("--reverse", help="Items to reverse, written as in --columns; may be given again.")
]
UnpackedOption = Annotated[
    float,
    typer.Option("--max-unpacked", help="Megabytes that a compressed file may unpack to (inf: no limit)."),
]
SheetOption = Annotated[str | None, typer.Option("--sheet", help="The sheet of an Excel file; by default the first.")]
SamplesOption = Annotated[
    float | None,
    typer.Option("--n", help="The number of samples, if the file is a matrix (inf: a population)."),
]
CorOption = Annotated[
    str,
    typer.Option(
        help="Correlations: auto (polychoric for items of a few values, else Pearson's), pearson, polychoric, or "
        "spearman-normal (of normal scores of the ranks)."
    ),
]
MissingOption = Annotated[
    str, typer.Option(help="How to treat missing values: ml (maximum likelihood), listwise or pairwise.")
]
HeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a text file contains the names. By default it does, and numbers are refused.",
    ),
]


def named_path(text: str) -> Path:
    """A path to write to; an empty one, such as a variable of the shell that is not set, would mean this folder."""
    if not text.strip():
        raise typer.BadParameter("it is empty. Give a name, or . for this folder.")
    return Path(text)


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print error messages only.")]
PenaltyOption = Annotated[
    float,
    typer.Option(help="Penalty of each free parameter, as a multiple of BIC's; a larger one gives a simpler model."),
]
ToleranceOption = Annotated[
    str,
    typer.Option(help="Misfit to tolerate, as an RMSEA; 0 for none; auto: .05 if every model is rejected."),
]
GroupSizeOption = Annotated[
    int, typer.Option(help="The largest number of latents that may share all their indicators.")
]
CovariatesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--covariates", help="Observed causes, such as 'age,female': by name or pattern; docs/covariates.md has more."
    ),
]
OutcomesOption = Annotated[
    list[str] | None, typer.Option("--outcomes", help="Observed effects that are not indicators, such as 'sick_days'.")
]
GroupsOption = Annotated[
    str | None,
    typer.Option("--groups", help="The column with the group of each person: search one structure for all groups."),
]
PublishedOption = Annotated[
    list[Path] | None, typer.Option("--published", help="A model to compare with, as a file; may be given again.")
]


# Discovery --------------------------------------------------------------------------------------------------


@app.command(short_help="Find latent variables, their indicators and their causal paths.")
def discover(
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
    n_latents: Annotated[
        int | None, typer.Option(help="The number of latents, if it is known (for other knowledge see --knowledge).")
    ] = None,
    knowledge: Annotated[
        Path | None,
        typer.Option(help="Prior knowledge: a TOML file, or lavaan syntax in a .lav file; see docs/knowledge.md."),
    ] = None,
    n_jobs: Annotated[int, typer.Option(help="Threads; -1 for one per core.")] = 1,
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="Seconds for the whole command, reading and writing included: the search stops in time, with the best "
            "model so far."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The seed of the split by --holdout (0). Seeds of the search are fixed.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", parser=named_path, metavar="<path>", help="A folder for the report and its files."),
    ] = None,
    title: Annotated[str, typer.Option(help="The heading of the report.")] = "",
    published: PublishedOption = None,
    plain_names: Annotated[bool, typer.Option("--plain-names", help="Call latents L1, L2, ...")] = False,
    holdout: Annotated[
        float | None,
        typer.Option(
            help="The share of the rows, such as 0.5, that the search does not use; the model "
            "is then estimated in these rows."
        ),
    ] = None,
    stratify_by: Annotated[
        str | None, typer.Option(help="A column of groups: --holdout uses the same share of the rows of each group.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find latent variables, their indicators, and the paths between latents.

    Example: unmeasured discover answers.csv --columns 'q*' --covariates age,female --outcomes sick_days --out report
    """
    _announce(f"Reading {file.name} ...", quiet or as_json)
    if out is not None:
        check_folder(out)
    from unmeasured.cli.limit import Times, too_short, with_one_thread
    from unmeasured.errors import Stopped
    from unmeasured.output.report.groups import Shared
    from unmeasured.output.report.run import About
    from unmeasured.search.budget import BUDGET
    from unmeasured.search.clock import Timing, data_time_check, finished_by

    known = None if knowledge is None else um.Knowledge.read(knowledge)
    search = um.LGES(
        penalty=penalty,
        tolerance=_tolerance(tolerance),
        max_group_size=max_group_size,
        knowledge=known,
        n_latents=n_latents,
        cor=cor,  # type: ignore[arg-type]
        missing=missing,  # type: ignore[arg-type]
        n_jobs=n_jobs,
        time_limit=time_limit,
    )
    if seed is not None and holdout is None:
        raise um.UnmeasuredError("--seed is the seed of --holdout, which is not asked for. Leave --seed out.")
    # Options that are refused, and models that cannot be read, should not wait for the search to say so.
    search.check_options()
    others = {path.stem: _model(path) for path in published or ()}
    asked = Asked.of(covariates, outcomes, known, groups)
    began = _begun(time_limit)
    end = None if time_limit is None else began + time_limit
    times = Times(*_began)
    times.end("loading libraries")
    check = data_time_check(time_limit, Timing(began))
    try:
        how = Preparing.of(exclude, na, reverse, sheet, max_unpacked)
        sample, others_rows, made = finished_by(
            None if end is None else end + BUDGET.for_first_model,
            lambda: with_one_thread(
                lambda: _parts(
                    file, columns, n, cor, missing, header, how, asked, holdout, stratify_by, seed or 0, check, times
                )
            ),
        )
    except KeyboardInterrupt:
        raise Interrupted(_NOTHING_YET) from None
    except Stopped:
        assert time_limit is not None
        raise Interrupted(
            too_short(times, time_limit, file, lambda part: _tried(part, times, cor, missing, asked))
        ) from None
    times.end("reading and correlations")
    search.set_params(covariates=sample.covariates, outcomes=sample.outcomes)
    about = About(
        title=title,
        data=file.name,
        command=_command(),
        na=made.na,
        reversed_items=dict(made.reversed_items),
        groups=groups or "",
    )
    reserved = _after_search(len(sample.names), time_limit, is_written=out is not None)
    until = None if end is None else end - reserved
    left_out = LeftOut()
    run = _searched(
        search, sample, about, others, left_out,
        plain_names=plain_names, quiet=quiet or as_json, is_written=out is not None, until=until,
        timing=Timing(began, reserved),
    )  # fmt: skip
    times.end("the search and its estimates")
    if others_rows is not None:
        with left_out.on_interrupt("the confirmation in other rows"):
            left = None if until is None else max(until - time.monotonic(), _CONFIRMED_IN)
            confirmed = um.confirm(run.result, others_rows, time_limit=left)
            notes = (*run.about.notes, *confirmed.sentences)
            run = replace(run, result=confirmed.result, about=replace(run.about, notes=notes))
            told = ["Confirmed in other rows", *(f"  - {sentence}" for sentence in confirmed.sentences), ""]
            _say("\n".join(told), quiet or as_json)
    shared = None
    if groups is not None and run.result.graph.latents:
        found = run
        shared = left_out.attempt("what the groups share", lambda: _shared(found, sample), until)
        if shared is not None:
            run = replace(run, shared=Shared.of(shared))
    _finish(
        run, out, left_out,
        as_json=as_json, quiet=quiet, until=end, shared=shared, times=times if time_limit is not None else None,
        time_limit=time_limit,
    )  # fmt: skip


def _shared(run: Run, sample: um.Sample) -> Invariance:
    """What the groups of people share of what was found."""
    import pandas as pd

    return um.invariance(run.result, pd.DataFrame(sample.rows, columns=list(sample.names)), groups=list(sample.groups))


def _tried(part: Prepared, times: Times, cor: str, missing: str, asked: Asked) -> None:
    """Make the moments of some rows in the way in which those of all rows are made, to see how long that takes."""
    from unmeasured.data.tables import RowsNeeded

    if times.made is not None and isinstance(times.made.frame, um.Table):
        with suppress(RowsNeeded):
            um.Sample._from_blocks(part.frame, None, cor, missing, [], [], [])  # type: ignore[arg-type]
            return
    _as_sample(part, None, cor, missing, asked)


def _begun(time_limit: float | None) -> float:
    """When the time of a command began to count: with the command, or later where libraries took very long to load."""
    from unmeasured.search.clock import checked_time_limit

    limit = checked_time_limit(time_limit)
    return _began[0] if limit is None else max(_began[0], time.monotonic() - _LOADING * limit)


def _after_search(n_observed: int, time_limit: float | None, *, is_written: bool) -> float:
    """Seconds to leave for what comes after the search; a page that would take most of the limit is not waited for."""
    from unmeasured.output.report.write import answer_seconds, page_seconds

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
    how: Preparing,
    asked: Asked,
    share: float | None,
    by: str | None,
    seed: int,
    check: Callable[[], None],
    times: Times,
) -> tuple[um.Sample, um.Sample | None, Prepared]:
    """The rows to search and, where a share is asked for, those to confirm in; and how they were prepared."""
    if share is None:
        if by is not None:
            raise um.UnmeasuredError("--stratify-by says how --holdout splits the rows. Give --holdout 0.5 with it.")
        times.made = made = _table(file, columns, n, header, how, asked=asked)
        return _as_sample(made, n, cor, missing, asked, check), None, made
    if asked.groups is not None:
        raise um.DataError("--holdout and --groups do not go together yet. Leave one of them out.")
    if n is not None:
        raise um.DataError("--holdout splits rows; a matrix (--n) cannot be split. Confirm it with another matrix.")
    times.made = made = _table(file, columns, n, header, how, keep=[by] if by else [], asked=asked)
    whole = made.frame.read() if isinstance(made.frame, um.Table) else made.frame
    first, second = (
        _as_sample(replace(made, frame=part.drop(columns=[by] if by else [])), None, cor, missing, asked, check)
        for part in um.split_rows(whole, share, by=by, rng=seed)
    )
    return first, second, made


@dataclass(frozen=True)
class Asked:
    """Columns that are no items, as the command line and a file of knowledge name them: by name or pattern."""

    covariates: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    groups: str | None = None  # the column of groups of people

    @classmethod
    def of(
        cls,
        covariates: list[str] | None,
        outcomes: list[str] | None,
        known: um.Knowledge | None = None,
        groups: str | None = None,
    ) -> Asked:
        """From the options; knowledge may name covariates and outcomes too."""
        return cls(
            (*(covariates or ()), *getattr(known, "covariates", ())),
            (*(outcomes or ()), *getattr(known, "outcomes", ())),
            groups,
        )

    def among(self, known: list[str]) -> dict[str, Any]:
        """The names of covariates and outcomes among columns, as options of :func:`unmeasured.as_sample`."""
        from unmeasured.data.prepare import chosen_columns

        return {
            key: chosen_columns(getattr(self, key), known, f"column (--{key})") if getattr(self, key) else []
            for key in ("covariates", "outcomes")
        }


def _searched(
    search: um.LGES,
    sample: um.Sample,
    about: About,
    others: dict[str, Any],
    left_out: LeftOut,
    *,
    plain_names: bool,
    quiet: bool,
    is_written: bool,
    until: float | None = None,
    timing: Timing | None = None,
) -> Run:
    from sklearn.base import clone

    from unmeasured.output.report.run import exact_answer, run_of
    from unmeasured.search.clock import Timing, counted_from
    from unmeasured.search.warm import are_on_disk, compile_kernels

    if quiet:
        logging.getLogger("unmeasured").setLevel(logging.ERROR)
    begun = time.perf_counter()
    if not are_on_disk():  # which is not on the clock of a search
        compile_kernels()
    # A bar is for people who watch, not for logs.
    watched = clone(search).set_params(verbose=not quiet and sys.stderr.isatty())
    compiling = time.perf_counter() - begun
    counted = Timing(time.monotonic()) if timing is None else replace(timing, began=timing.began + compiling)
    begun = time.perf_counter()
    try:
        with counted_from(counted):
            watched.fit(sample)
    except um.SearchStopped as stopped:
        raise Interrupted(str(stopped)) from None
    except KeyboardInterrupt:
        raise Interrupted(_NOTHING_YET) from None
    seconds = time.perf_counter() - begun
    exact = None
    if is_written and watched.tolerance_:
        # The second view of the report may take as long as the answer did.
        left = max(seconds, _EXACT_AT_LEAST) if until is None else min(max(seconds, 1.0), until - time.monotonic())
        _say("Searching again without tolerance, for the second view of the report.", quiet)
        with left_out.on_interrupt("the second view of the report"):
            exact = exact_answer(watched, left)
    about = replace(about, seconds=seconds)
    run = left_out.attempt(
        "the comparison with other models",
        lambda: run_of(watched, about=about, published=others, exact=exact),
        until if others else None,
    )
    run = run or run_of(watched, about=about, exact=exact)
    # Whether somebody watched is nothing a reader of the result needs to know.
    method = " ".join(repr(search).split())
    remarks = tuple(Remark(in_options(remark), severity_of(remark)) for remark in run.result.remarks)
    result = replace(run.result, method=method, options=search.get_params(), remarks=remarks)
    run = replace(run, about=replace(run.about, notes=tuple(map(in_options, run.about.notes))))
    return replace(run, result=result if plain_names else result.rename())


def _finish(
    run: Run,
    out: Path | None,
    left_out: LeftOut,
    *,
    as_json: bool,
    quiet: bool,
    until: float | None = None,
    shared: Invariance | None = None,
    times: Times | None = None,
    time_limit: float | None = None,
) -> None:
    """Write what was asked for, print the answer, and leave with a code that says whether there is one."""
    from unmeasured.output.report.screen import screen
    from unmeasured.output.report.write import page_seconds, write_run
    from unmeasured.search.clock import slowness_since

    needed = page_seconds(len(run.result.graph.observed)) * slowness_since(*_began)
    in_time = until is None or time.monotonic() + needed < until + _OVERTIME
    is_interrupted = run.result.stopped.startswith("Interrupted")
    page, unwritten = None, None
    if out is not None:
        if is_interrupted:
            _announce("Writing the best model found so far; Ctrl-C leaves out pictures and the page.", quiet or as_json)
        try:
            late = None if until is None or not in_time else max(until, time.monotonic()) + _OVERTIME
            page = left_out.attempt(
                "pictures and the page",
                lambda: write_run(run, out, with_page=in_time, more={} if shared is None else _shared_files(shared)),
                late,
            )
            page = page or write_run(run, out, with_page=False)
        except um.UnmeasuredError as error:  # a full disk: the answer is still shown
            unwritten = error
    if as_json:
        typer.echo(run.to_json())
    elif not quiet:
        typer.echo(screen(run.result, run.about.seconds, elsewhere=_all_remarks(page)))
        if shared is not None:
            typer.echo(f"\nWhat the groups share\n{shared.summary()}")
        typer.echo(f"\n{_where(page)}" if unwritten is None else "")
    if unwritten is not None:
        raise unwritten
    if times is not None and time_limit is not None:
        times.end("output")
        _say(f"\n{times.in_words(time_limit)}", quiet or as_json)
    if left_out.late and not quiet:
        typer.echo(f"unmeasured: the time limit came after the search; left out: {', '.join(left_out.late)}.", err=True)
    if left_out.parts and not quiet:
        typer.echo(f"unmeasured: Ctrl-C came after the search; left out: {', '.join(left_out.parts)}.", err=True)
    if is_interrupted or left_out.parts:
        sys.exit(130)
    if not run.result.graph.latents or not (run.result.sem.converged and run.result.sem.admissible):
        raise typer.Exit(1)


def _shared_files(shared: Invariance) -> dict[str, str | bytes]:
    """Tables of what groups share, and the diagram with the edges that differ."""
    return {
        "invariance.csv": csv_text(shared.table.reset_index()),
        "differences.csv": csv_text(shared.differences),
        "differences.svg": shared.plot().to_svg(),
    }


def _where(page: Path | None) -> str:
    if page is None:
        return "No files were written; --out FOLDER writes a report."
    if not page.name.endswith(".html"):
        return f"Written: {page} and tables, without pictures and the page; to add these: unmeasured report {page}"
    return f"Report: {page} (open it in a browser); model, tables and pictures are in the same folder."


def _all_remarks(page: Path | None) -> str:
    """Where the remarks are that the screen leaves out."""
    return f"the remarks in {page}" if page else "the report (--out FOLDER)"


@app.command(short_help="Search a bundled data set and write a report.")
def demo(
    data: Annotated[
        str, typer.Argument(help="A bundled data set; `unmeasured datasets` lists them.")
    ] = "teacher_burnout",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", parser=named_path, metavar="<path>", help="A folder for the report.")
    ] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for the search.")] = 60.0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Search a bundled data set, compare with the published models, and write a report.

    Example: unmeasured demo multitasking
    """
    silent = quiet or as_json
    _announce(f"Loading {data} ...", silent)
    out = out or Path(f"unmeasured-{data}")
    check_folder(out)
    from unmeasured.output.report.run import About, Comparison
    from unmeasured.output.report.screen import screen
    from unmeasured.output.report.write import write_run

    dataset = um.datasets.load(data)
    head = f"{dataset.title}: {len(dataset.names)} variables, N = {dataset.n_samples}\nSource: {dataset.source}\n"
    _say(head, silent)
    sample = um.as_sample(cov=dataset.frame(), n_samples=dataset.n_samples)
    about = About(title=dataset.title, data=dataset.title, source=dataset.source, command=_command())
    search = um.LGES(n_jobs=-1, time_limit=time_limit)
    run = _searched(search, sample, about, {}, LeftOut(), plain_names=False, quiet=silent, is_written=True)
    compared = um.compare_models({"found": run.result, **dataset.models})
    run = replace(run, comparison=Comparison.of(compared))
    page = write_run(run, out)
    shown = screen(run.result, run.about.seconds, elsewhere=_all_remarks(page))
    answer = f"{shown}\n\nBeside the published models\n{compared}\n\n{_where(page)}"
    _say(run.to_json() if as_json else answer, quiet and not as_json)
    if run.result.stopped.startswith("Interrupted"):
        sys.exit(130)


@app.command("report", short_help="Write a report again, with other names or models to compare.")
def remake_report(
    result: ResultArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", parser=named_path, metavar="<path>", help="A folder; by default that of the result."
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="Another heading.")] = "",
    name: Annotated[
        list[str] | None, typer.Option("--name", help="A latent's new name, as old=new; may be given again.")
    ] = None,
    published: PublishedOption = None,
    quiet: QuietOption = False,
) -> None:
    """Write the report of a result again, with other names, another heading or models to compare with.

    Replicates in the same folder as the result (stability.json) are included.

    Example: unmeasured report report/result.json --name L1=Speed --published theirs.lav
    """
    from unmeasured.output.report.run import Comparison
    from unmeasured.output.report.write import write_run

    run = _run(result)
    if name:
        run = run.rename(dict(_renaming(pair) for pair in name))
    if title:
        run = replace(run, about=replace(run.about, title=title))
    if published:
        models = {path.stem: _model(path) for path in published}
        run = replace(run, comparison=Comparison.of(um.compare_models({"found": run.result, **models})))
    _say(_where(write_run(run, out or result.parent, stability=_stability_beside(result, run))), quiet)


def _stability_beside(path: Path, run: Run) -> Stability | None:
    """What the replicates of a result said, from the file beside it; told on the screen where that is of another."""
    from unmeasured.output.report.write import STABILITY

    file = path.parent / STABILITY
    if not file.exists():
        return None
    from unmeasured.validation.replicates.result import Stability

    found = Stability.from_json(_text(file))
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
    correlate_exogenous: Annotated[bool, typer.Option(help="Let exogenous latents correlate.")] = True,
    first_indicator: Annotated[bool, typer.Option(help="Scale latents by their first indicator.")] = False,
    correlate_outcomes: Annotated[
        bool, typer.Option(help="Let residuals of outcomes correlate, as lavaan does.")
    ] = False,
    estimator: Annotated[str, typer.Option(help="ML, MLM, MLR (robust) or WLSMV (ordinal items).")] = "ML",
    groups: Annotated[str | None, typer.Option(help="The column of groups of people; see docs/groups.md.")] = None,
    equal: Annotated[
        str, typer.Option(help="Parameters that are equal across groups, such as 'loadings,intercepts'.")
    ] = "",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit a model to a file and print estimates and fit indices.

    With a result.json as the model, --na and --reverse are those of its run unless they are given.

    Example: unmeasured fit model.lav matrix.csv --n 301
    """
    asked = _model(model)
    how = Preparing.of(exclude, na, reverse, sheet, max_unpacked, [] if n is not None else [model])
    options: dict[str, Any] = {}
    if estimator != "ML" or groups is not None or equal or missing == "fiml":
        if n is not None:
            raise um.DataError(
                "--estimator, --groups, --equal and --missing fiml need rows; --n says the file is a matrix."
            )
        shared = tuple(part.strip() for part in equal.split(",") if part.strip())
        options = {"estimator": estimator, "groups": groups, "equal": shared, "missing": missing}
        # With these, "auto" is what the estimator asks for: polychoric correlations for WLSMV, else Pearson's.
        options["cor"] = None if cor in ("auto", "pearson") else cor
        made = _table(file, columns, None, header, how, models=[asked], keep=[groups] if groups else [])
        data: Any = made.frame
        remarks = made.notes
    else:
        data = _sample(file, columns, n, cor, missing, header, how, models=[asked])
        remarks = data.remarks
    result = um.fit(
        asked.graph if isinstance(asked, um.Result) else asked,
        data,
        correlate_exogenous=correlate_exogenous,
        scale_latents="first-indicator" if first_indicator else "variance",
        correlate_outcomes=correlate_outcomes,
        **options,
    )
    _show_remarks(remarks, quiet or as_json)
    text = re.sub(r"^Note: .*$", lambda line: in_options(line[0]), result.summary(), flags=re.MULTILINE)
    _say(_fit_as_json(result) if as_json else text, quiet and not as_json)
    if not (result.converged and result.admissible):
        raise typer.Exit(1)


def _show_remarks(remarks: Iterable[str], quiet: bool) -> None:
    """What was done to the data of a command, and what is wrong with them."""
    for remark in remarks:
        _say(f"Data: {in_options(remark)}", quiet)


def _fit_as_json(fit: Fit) -> str:
    indices = ("chi2", "df", "pvalue", "rmsea", "cfi", "tli", "srmr", "aic", "bic", "loglik")
    record = {name: getattr(fit, name) for name in indices}
    record |= {"converged": fit.converged, "admissible": fit.admissible, "status": fit.status}
    record["notes"] = [in_options(remark) for remark in fit.notes]
    return _as_json({**record, "parameters": json.loads(fit.parameters.to_json(orient="records"))})


@app.command(short_help="Fit several models to a file and compare them.")
def compare(
    models: Annotated[list[Path], typer.Argument(help="Model files: lavaan text, or a result.json.")],
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
    correlate_exogenous: Annotated[bool, typer.Option(help="Let exogenous latents correlate.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Fit several models to a file and compare them, with difference tests for nested models.

    Example: unmeasured compare mine.lav theirs.lav report/result.json matrix.csv --n 301
    """
    asked = {_model_name(path, models): _model(path) for path in models}
    how = Preparing.of(exclude, na, reverse, sheet, max_unpacked, [] if n is not None else models)
    sample = _sample(file, columns, n, cor, missing, header, how, models=asked.values())
    compared = um.compare_models(asked, sample, correlate_exogenous=correlate_exogenous)
    _show_remarks(sample.remarks, as_json)
    typer.echo(_comparison_as_json(compared) if as_json else str(compared))


def _model_name(path: Path, others: Sequence[Path]) -> str:
    """The name of a file, with its folder where two are called the same."""
    return path.stem if sum(other.stem == path.stem for other in others) == 1 else str(path)


def _comparison_as_json(compared: ModelComparison) -> str:
    from unmeasured.output.report.run import Comparison

    kept = Comparison.of(compared)
    return _as_json({"models": list(kept.rows), "tests": list(kept.tests), "notes": list(kept.notes)})


@app.command("check", short_help="Check whether data are suitable for a search.")
def check_file(
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
    covariates: CovariatesOption = None,
    outcomes: OutcomesOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check before a search whether there are enough samples and indicators, whether a latent model is
    warranted, and whether variables are normal or collinear.

    Example: unmeasured check answers.csv --columns 'q*'
    """
    asked = Asked.of(covariates, outcomes)
    made = _table(file, columns, n, header, Preparing.of(exclude, na, reverse, sheet, max_unpacked), asked=asked)
    given: dict[str, Any] = {"cor": cor, "missing": missing, **asked.among(list(made.frame.columns))}
    checked = um.check(made.frame, **given) if n is None else um.check(cov=made.frame, n_samples=n, **given)
    checked = replace(checked, sample=replace(checked.sample, remarks=(*made.notes, *checked.sample.remarks)))
    if as_json:
        findings = [{"topic": f.topic, "ok": f.ok, "text": f.text} for f in checked.findings]
        record = {"ok": checked.ok, "column_errors": list(checked.column_errors), "findings": findings}
        typer.echo(_as_json({**record, "remarks": list(checked.sample.remarks)}))
    else:
        _say(in_options(str(checked)), quiet)
    if not checked.ok:
        raise typer.Exit(1)


# Data and exports -------------------------------------------------------------------------------------------


@app.command("simulate", short_help="Draw a random model and rows from it.")
def simulate_file(
    out: Annotated[
        Path, typer.Argument(help="The CSV file to write; the graph is written to NAME.truth.json in the same folder.")
    ],
    latents: Annotated[int, typer.Option(help="Number of latent variables.")] = 3,
    observed: Annotated[int, typer.Option(help="Number of observed variables.")] = 12,
    samples: Annotated[int, typer.Option("--samples", "--n", help="Number of rows.")] = 1000,
    common_children: Annotated[
        int, typer.Option(help="Number of observed variables that measure several groups of latents.")
    ] = 0,
    max_group_size: GroupSizeOption = 1,
    parameters: Annotated[str, typer.Option(help="realistic, as in questionnaires, or paper.")] = "realistic",
    seed: Annotated[int, typer.Option(help="The same seed gives the same file.")] = 0,
    quiet: QuietOption = False,
) -> None:
    """Draw a random factor model and rows from it, to try a search on data with a known true model.

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
_PUBLISHED = ("docx", "xlsx", "latex", "html", "r", "methods", "bibtex")
_EXPORTS = (*_TEXTS, *_PICTURES, *_PUBLISHED)


@app.command("export", short_help="Write a result for another program or for an article.")
def export_result(
    result: ResultArgument,
    to: Annotated[str, typer.Option("--to", help=f"One of {', '.join(_EXPORTS)}.")] = "lavaan",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            parser=named_path,
            metavar="<path>",
            help="A file. Without one, texts go to the screen and other formats to a file in this folder.",
        ),
    ] = None,
    data: Annotated[str, typer.Option(help="With --to r: the data file that the script reads.")] = "",
    view: Annotated[str, typer.Option(help="What a picture shows: full, or latents only.")] = "full",
    style: Annotated[str, typer.Option(help="The style of a picture: colour, or print (black and white).")] = "colour",
    r2: Annotated[bool, typer.Option("--r2", help="Write explained variances into a picture.")] = False,
) -> None:
    """Write a result for another program, as a picture, or for an article.

    For an article: APA tables as docx, xlsx, latex or html; an R script that fits the model in lavaan (r); a paragraph
    on methods with its limitations and references (methods); the references for BibTeX (bibtex).

    Example: unmeasured export report/result.json --to docx --out tables.docx
    """
    if to not in _EXPORTS:
        hint = nearest(to, _EXPORTS) or "."
        raise um.UnmeasuredError(f"There is no export {to!r}{hint} There are {listing(_EXPORTS, 20)}.")
    _refuse_overwriting(out, result)
    if data and to != "r":
        raise um.UnmeasuredError(f"--data is for --to r, whose script reads the rows; --to {to} does not use it.")
    if to not in _PICTURES and (view != "full" or style != "colour" or r2):
        raise um.UnmeasuredError(
            f"--view, --style and --r2 are for pictures ({', '.join(_PICTURES)}); --to {to} is none."
        )
    if to in _PUBLISHED:
        _export_for_article(result, to, out, data)
        return
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


def _export_for_article(result: Path, to: str, out: Path | None, data: str) -> None:
    from unmeasured.output.publish.publication import BINARY, FORMATS, Publication

    run = _run(result)
    article = Publication(run, _stability_beside(result, run))
    if out is None and to not in BINARY:
        typer.echo(article.to_r(data=data) if to == "r" else getattr(article, f"to_{to}")(), nl=False)
        return
    path = out or Path(FORMATS[to])
    if to == "r":
        article.to_r(path, data=data)
    else:
        article.write(to, path)
    typer.echo(f"Written: {path}", err=True)


@app.command("datasets", short_help="List the bundled data sets, or print one.")
def list_datasets(
    name: Annotated[str | None, typer.Argument(help="A data set: print its correlation matrix as CSV.")] = None,
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
    how: Preparing | None = None,
    *,
    models: Collection[Any] = (),
    asked: Asked | None = None,
) -> um.Sample:
    """The data of a file: the columns asked for, or those that the models are about, or all."""
    return _as_sample(_table(file, columns, n, header, how, models=models, asked=asked), n, cor, missing, asked)


def _table(
    file: Path,
    columns: list[str] | None,
    n: float | None,
    header: bool | None = None,
    how: Preparing | None = None,
    *,
    models: Collection[Any] = (),
    keep: Sequence[str] = (),
    asked: Asked | None = None,
) -> Prepared:
    """The table of a file, prepared; ``keep``: columns that are no variables but are needed, such as groups of rows."""
    from unmeasured.data.prepare import prepared

    how, asked = how or Preparing(), asked or Asked()
    keep = [asked.groups] if asked.groups is not None else keep
    columns = [*columns, *asked.covariates, *asked.outcomes] if columns else columns
    if n is not None and asked.groups is not None:
        raise um.DataError("--groups needs rows; --n says that the file is a matrix.")
    if n is not None:
        if how.na or how.reverse or how.sheet is not None:
            raise um.UnmeasuredError("--na, --reverse and --sheet are for rows; --n says that the file is a matrix.")
        matrix = um.read_matrix(file, max_unpacked=how.max_unpacked)
        matrix.columns = matrix.index = matrix.columns.map(str)
        used = _used(models, list(matrix.columns))
        chosen = _narrowed(prepared(matrix, columns=columns or used, exclude=how.exclude), used if models else ())
        names = list(chosen.frame.columns)
        return replace(chosen, frame=matrix.loc[names, names])
    frame = _rows(file, header, how.sheet, how.max_unpacked)
    if keep and isinstance(frame, um.Table):  # whose rows are then told apart
        frame = frame.read()
    known = list(frame.columns)
    for name in keep:
        if name not in known:
            raise um.DataError(
                f"There is no column {name!r} in the file{nearest(name, known) or '.'} It has {listing(known)}."
            )
    used = _used(models, known)
    # Columns that were chosen say what the ends of the scale are, also for a model of some of them.
    wanted = columns or [name for name in (known if how.exclude else used) if name not in keep]
    made = prepared(frame, columns=wanted, exclude=how.exclude, na=how.na, reverse=how.reverse, totals=how.totals)
    made = _narrowed(made, used if models else ())
    if isinstance(frame, um.Table) or isinstance(made.frame, um.Table):
        return made
    return replace(made, frame=made.frame.assign(**{name: frame[name] for name in keep})) if keep else made


def _narrowed(made: Prepared, used: Sequence[str]) -> Prepared:
    """The columns that models speak of, all of which must have been chosen."""
    left_out = [name for name in used if name not in made.frame.columns]
    if left_out:
        raise um.DataError(f"The model needs variables that --columns or --exclude leaves out: {listing(left_out)}.")
    if not used:
        return made
    frame = made.frame
    return replace(made, frame=frame.select(used) if isinstance(frame, um.Table) else frame[list(used)])


def _rows(
    file: Path, header: bool | None, sheet: str | None, max_unpacked: float = MOST_UNPACKED
) -> pd.DataFrame | um.Table:
    """The rows of a file; a matrix that was given without its number of samples is refused as such."""
    try:
        frame = um.read(file, header=header, sheet=0 if sheet is None else sheet, max_unpacked=max_unpacked)
    except um.DataError:
        if _is_matrix(file, max_unpacked):
            raise um.DataError(_GIVE_N.format(file.name)) from None
        raise
    if isinstance(frame, um.Table):
        return frame
    frame.columns = frame.columns.map(str)
    if len(frame) <= len(frame.columns) + 1 and _is_matrix(file, max_unpacked):
        raise um.DataError(_GIVE_N.format(file.name))
    return frame


_GIVE_N = "{!r} holds a covariance or correlation matrix, not rows: give --n, the number of samples it was made from."


def _is_matrix(file: Path, max_unpacked: float) -> bool:
    """Whether a file can be read as a matrix that is symmetric, with a positive diagonal."""
    try:
        matrix = um.read_matrix(file, max_unpacked=max_unpacked).to_numpy()
    except um.UnmeasuredError:
        return False
    scale = matrix.diagonal().max()
    return bool(len(matrix) > 1 and (matrix.diagonal() > 0).all() and abs(matrix - matrix.T).max() <= 1e-6 * scale)


def _as_sample(
    made: Prepared,
    n: float | None,
    cor: str,
    missing: str,
    asked: Asked | None = None,
    check: Callable[[], None] | None = None,
) -> um.Sample:
    from unmeasured.models.estimate import split_rows_by_group

    asked, frame, labels = asked or Asked(), made.frame, list[str]()
    if asked.groups is not None:
        frame, labels = split_rows_by_group(frame, asked.groups)
    given: dict[str, Any] = {"cor": cor, "missing": missing, **asked.among(list(frame.columns))}
    if n is None:
        sample = um.as_sample(frame, groups=labels, check=check, **given)
    else:
        sample = um.as_sample(cov=frame, n_samples=n, **given)
    return replace(sample, remarks=(*made.notes, *sample.remarks))


def _used(models: Iterable[Any], known: list[str]) -> list[str]:
    """The columns that models speak of, so that others, such as names of people, do no harm; without models, all."""
    from unmeasured.models.lavaan import parse

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
    from unmeasured.output.report.run import Run

    return Run.from_json(_text(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise um.DataError(f"There is no file {str(path)!r}.") from None
    except UnicodeDecodeError:
        raise um.DataError(f"{str(path)!r} is not text in UTF-8.") from None


def _refuse_overwriting(out: Path | None, *read: Path) -> None:
    """A command does not write over a file that it reads."""
    for file in read:
        if out is not None and out.exists() and file.exists() and out.samefile(file):
            raise um.UnmeasuredError(
                f"--out {str(out)!r} is a file that is read, which would be lost. Give another name."
            )


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        typer.echo(text)


def _announce(text: str, quiet: bool) -> None:
    """Say what comes next, before the libraries for it are loaded: for people who watch, not for logs."""
    if not quiet and sys.stderr.isatty():
        typer.echo(text, err=True)


def _command() -> str:
    """What was typed, for the report."""
    return shlex.join(["unmeasured", *sys.argv[1:]])


def _as_json(record: dict[str, Any]) -> str:
    """JSON text; numbers that are none, such as the p-value of a saturated model, are null."""
    text = json.dumps(record, default=lambda value: value.item())
    return json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False, allow_nan=False)


# Commands in files of their own, which take what is above; reading them registers them.
importlib.import_module("unmeasured.cli.trust")
importlib.import_module("unmeasured.cli.after")
importlib.import_module("unmeasured.cli.invariance")
importlib.import_module("unmeasured.cli.serve")


def main() -> NoReturn:
    """Run the command ``unmeasured``."""
    run(app, "unmeasured")


def run(commands: typer.Typer, program: str) -> NoReturn:
    """Run the commands of a program: a user's mistake is one sentence on standard error, never a trace."""
    global _began
    _began = time.monotonic(), time.process_time()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names of files may hold what the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _called(commands, program)
    except Interrupted as stopped:
        _leave(str(stopped), 130)
    except um.UnmeasuredError as error:
        _leave(str(error), 2)
    except OSError as error:
        _leave(f"{error.filename or 'A file'}: {error.strerror or error}.", 2)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        if _came_of_interrupt(error):
            _leave(_stopped(sys.argv[1:]), 130)
        # typer carries its own copy of click, whose exceptions have no public name.
        if not hasattr(error, "format_message"):
            raise
        _leave_usage(error)
    if code == 130:
        _leave(_stopped(sys.argv[1:]), 130)
    sys.exit(code if isinstance(code, int) else 0)


def _came_of_interrupt(error: BaseException | None) -> bool:
    """Whether an error is what a library made of Ctrl-C, for instance while it was loaded."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _called(commands: typer.Typer, program: str) -> Any:
    logger = logging.getLogger("unmeasured")
    level = logger.level
    with warnings.catch_warnings():
        # A warning is a sentence too; the line of code it came from helps nobody here.
        warnings.showwarning = lambda message, *_, **__: typer.echo(f"unmeasured: {in_options(str(message))}", err=True)
        try:
            return commands(prog_name=program, standalone_mode=False)
        finally:
            logger.setLevel(level)  # a command may have been quiet


# What the library calls its arguments, and what the command line calls them.
_IN_OPTIONS = tuple(
    (re.compile(pattern), option)
    for pattern, option in (
        (r"header=False \(--no-header\)", "--no-header"),
        (r"header=True \(--header\)", "--header"),
        (r"\bcor='([\w-]+)'", r"--cor \1"),
        (r'\bscale_latents="first-indicator"', "--first-indicator"),
        (r"\bcorrelate_outcomes=True", "--correlate-outcomes"),
        (r'\bmissing="([\w-]+)"', r"--missing \1"),
        (r'\bestimator="(\w+)"', r"--estimator \1"),
        (r"\bmissing='([\w-]+)'", r"--missing \1"),
        (
            r"^(cor|missing|penalty|tolerance|estimator|method|threshold|confidence|equal|groups) (?=must\b|is\b)",
            r"--\1 ",
        ),
        (r"^equal= has ", "--equal has "),
        (r"^penalties (?=must\b|are\b)", "--penalties "),
        (r"^n_replicates (?=must\b|is\b)", "--replicates "),
        (r"\bn_samples must\b", "--n must"),
        (r"\bn_samples is\b", "--n is"),
        (r"pass it as cov= with n_samples=", "give --n"),
        (r"\bn_samples\b", "--n"),
        (r"\bn_latents\b", "--n-latents"),
        (r"\bmax_group_size\b", "--max-group-size"),
        (r"\btime_limit\b", "--time-limit"),
        (r"^random_state (?=must\b)", "--seed "),
        (r"^(sheet|header) is for files", r"--\1 is for files"),
        (r"(?<=Leave )(sheet|header) out", r"--\1 out"),
        (r", or None for no limit(?=; got)", ", or inf for no limit"),
        (r"\bmax_unpacked=", "--max-unpacked "),
        (r"\bmax_unpacked\b", "--max-unpacked"),
        (r"\bmath\.inf\b", "inf"),
        (r" or None(?=; got)", ""),
        (r", or names= for all", ""),
        (r", or give names= \(in their order\)", ""),
        (r", or ask for the nearest matrix that is \(repair=True\)", ""),
        (r" Rows of samples go in as X \(fit of a search\)\.", ""),
        (r" Other files: read them with pandas and pass the data frame\.", " Save it as one of these."),
        (r"Turn them into numbers with pandas\.to_numeric", "Write them as numbers, or leave them out with --exclude"),
        (r", or say that they have one \(pandas: cat\.as_ordered\(\)\)", ""),
        (r"replace it by NaN first", "name it with --na"),
        (r"(?<=[.,] )Select the numeric columns first", "Choose columns of numbers with --columns, or --exclude these"),
        (r"\bLeave (it|them|one of them) out(?=[.,])", r"Leave \1 out (--exclude)"),
        (r"Name its encoding, such as encoding='latin-1' for older files", "Save it in UTF-8"),
        (r", such as encoding='utf-16'", "; save it in UTF-8"),
        (r"criterion=\"bic\"", "this criterion"),
        (r"\(covariates=, outcomes=\)", "(--covariates, --outcomes)"),
        (r"Give the text that to_json wrote", "Give a result.json that unmeasured wrote"),
        (r"\bn_jobs\b", "--n-jobs"),
        (r" \(fit_cov of a search\)", ""),
        (r"\bLGES\(tolerance=([\d.]+)\)", r"--tolerance \1"),
        (r"\bOther partitions in result_\.partitions:", "Other partitions, in the report:"),
        (r" \(result_\.local_dependence\)", " (in the report)"),
        (r"\bum\.stability\b", "unmeasured stability"),
    )
)


def in_options(text: str) -> str:
    """A sentence of the library as the command line says it: options, not arguments of Python.

    >>> in_options("n_samples must be at least 2; got 1. Compare with cor='spearman-normal'.")
    '--n must be at least 2; got 1. Compare with --cor spearman-normal.'
    """
    for pattern, option in _IN_OPTIONS:
        text = pattern.sub(option, text)
    return text


def _stopped(arguments: Sequence[str]) -> str:
    """What Ctrl-C ended, where the command itself had nothing to say about it."""
    name = " ".join(arguments[:1])
    return (
        f"{name} was stopped by Ctrl-C before it was done. No file is left half written: each is replaced only "
        "when the new one is complete."
    )


def _leave(sentence: str, code: int) -> NoReturn:
    typer.echo(f"unmeasured: {in_options(sentence)}", err=True)
    sys.exit(code)


def _leave_usage(error: Any) -> NoReturn:
    """A command that was typed wrongly: what is wrong, and where help is; a bare command: the help itself."""
    message = str(error.format_message()).strip()
    if message.startswith("Usage"):
        typer.echo(message, err=True)
        sys.exit(2)
    path = error.ctx.command_path if getattr(error, "ctx", None) else "unmeasured"
    _leave(f"{message.rstrip('.')}. See {path} --help.", 2)
