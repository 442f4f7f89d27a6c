"""Are time limits kept? The command line on simulated questionnaires of several sizes, each with several limits."""

from __future__ import annotations

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
_CODE = "import time; from unmeasured.cli import main; import sys; print(time.monotonic(), file=sys.stderr); main()"


@dataclass(frozen=True)
class Kept:
    """One run of the command with a limit: seconds from the beginning of its work to its end."""

    n_observed: int
    limit: float
    seconds: float
    exit_code: int
    first_line: str

    @property
    def is_kept(self) -> bool:
        """Whether the run ended in time, give or take."""
        return self.seconds <= self.limit + max(_SECONDS, _PART * self.limit)

    def __str__(self) -> str:
        kept = "kept" if self.is_kept else "NOT kept"
        return (
            f"{self.n_observed:4d} variables, limit {self.limit:3g} s: {self.seconds:5.1f} s, {kept}; "
            f"exit {self.exit_code}; {self.first_line}"
        )


def time_limits(
    sizes: Sequence[int], limits: Sequence[float], *, is_written: bool, seed: int = 0, n_samples: int = 2000
) -> Iterator[Kept]:
    """Search models with five variables a latent through the command line, each size with each limit."""
    compile_kernels()  # what the first run on a machine does is not on the clock
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            truth = simulate.random_gnfm(n_latents=n // 5, n_observed=n, n_common_children=n // 20, rng=seed)
            rows = Path(folder) / f"{n}.csv"
            simulate.sample(truth, n_samples, parameters="realistic", rng=seed + 1).to_csv(rows, index=False)
            for limit in limits:
                yield _timed(n, limit, rows, Path(folder) / f"report-{n}-{limit:g}" if is_written else None)


def _timed(n: int, limit: float, rows: Path, out: Path | None) -> Kept:
    report = [] if out is None else ["--out", str(out)]
    command = [sys.executable, "-c", _CODE, "discover", str(rows), "--time-limit", str(limit), *report]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # Loading Python and its libraries comes before the work.
    seconds = time.monotonic() - float(done.stderr.split("\n", 1)[0])
    said = done.stdout or done.stderr.split("\n", 1)[1]
    return Kept(n, limit, seconds, done.returncode, said.split("\n", 1)[0])
