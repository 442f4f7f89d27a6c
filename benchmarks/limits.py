"""Are time limits kept? The command line on simulated questionnaires of several sizes, each with several limits."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from unmeasured import simulate
from unmeasured.search.warm import compile_kernels

# What a limit may be exceeded by: seconds, or a part of it, whichever is more.
_SECONDS, _PART = 2.0, 0.1
_CODE = "from unmeasured.cli.commands import main; main()"
# On a machine that is busy with other things: the seconds that count are those that the process worked.
_OWN_TIME = "import time; time.monotonic = time.perf_counter = time.process_time; "


@dataclass(frozen=True)
class Kept:
    """One run of the command with a limit: seconds from its start to its end, and of processor time.

    The machine was busy with other things where the second is much less.
    """

    n_observed: int
    limit: float
    seconds: float
    cpu: float
    by_processor: bool  # what the limit was about
    exit_code: int
    first_line: str

    @property
    def is_kept(self) -> bool:
        """Whether the run ended in time, give or take."""
        spent = self.cpu if self.by_processor else self.seconds
        return spent <= self.limit + max(_SECONDS, _PART * self.limit)

    def __str__(self) -> str:
        kept = "kept" if self.is_kept else "NOT kept"
        return (
            f"{self.n_observed:4d} variables, limit {self.limit:3g} s: {self.seconds:5.1f} s "
            f"(processor {self.cpu:5.1f} s), {kept}; "
            f"exit {self.exit_code}; {self.first_line}"
        )


def time_limits(
    sizes: Sequence[int],
    limits: Sequence[float],
    *,
    is_written: bool,
    by_processor: bool = False,
    seed: int = 0,
    n_samples: int = 2000,
) -> Iterator[Kept]:
    """Search models with five variables a latent through the command line, each size with each limit.

    ``is_written``: with reports; ``by_processor``: clocks count processor time, for a machine that is busy.
    """
    compile_kernels()  # what the first run on a machine does is not on the clock
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            truth = simulate.random_gnfm(n_latents=n // 5, n_observed=n, n_common_children=n // 20, rng=seed)
            rows = Path(folder) / f"{n}.csv"
            simulate.sample(truth, n_samples, parameters="realistic", rng=seed + 1).to_csv(rows, index=False)
            for limit in limits:
                out = Path(folder) / f"report-{n}-{limit:g}" if is_written else None
                yield _timed(n, limit, rows, out, by_processor)


def _timed(n: int, limit: float, rows: Path, out: Path | None, by_processor: bool) -> Kept:
    report = [] if out is None else ["--out", str(out)]
    code = (_OWN_TIME if by_processor else "") + _CODE
    command = [sys.executable, "-c", code, "discover", str(rows), "--time-limit", str(limit), *report]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    first_line = (done.stdout or done.stderr).split("\n", 1)[0]
    return Kept(n, limit, seconds, cpu, by_processor, done.returncode, first_line)
