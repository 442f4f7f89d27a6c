"""Other SEM programs, timed on the same model and the same matrix; one that is absent says so.

Each peer takes a matrix, N and model text, and returns a :class:`Timing`: seconds (the median over repeats, set-up of
the model included, start of the program not) and the chi-square it reached, or the reason it has none.
"""

from __future__ import annotations

import json
import math
import shutil
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from unmeasured.data.datasets import PublishedModel
from unmeasured.sem.fit import fit


@dataclass(frozen=True)
class Timing:
    """Seconds and chi-square of one program on one model, or the reason there are none."""

    seconds: float = math.nan
    chi2: float = math.nan
    failure: str = ""


def time_ours(corr: pd.DataFrame, n_samples: int, model: PublishedModel, repeats: int) -> Timing:
    """Our engine: text parsed, starting values made, fitted, chi-square computed, every time anew."""

    def run() -> float:
        return fit(model.text, cov=corr, n_samples=n_samples, correlate_exogenous=model.correlate_exogenous).chi2

    run()  # kernels are loaded, as R and semopy are before their clocks start
    return _timed(run, repeats)


def time_semopy(corr: pd.DataFrame, n_samples: int, model: PublishedModel, repeats: int) -> Timing:
    """The Python program semopy, from the same matrix."""
    try:
        import semopy
    except ImportError:
        return Timing(failure="semopy is not installed: pip install 'unmeasured[peers]'")
    text = model.text + "\n" + "\n".join(_orthogonality(model))

    def run() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own affair; ours are errors in the tests
            peer = semopy.Model(text)
            observed = sorted(peer.vars["observed"])
            peer.fit(cov=corr.loc[observed, observed], n_samples=n_samples)
            return float(semopy.calc_stats(peer)["chi2"].iloc[0])

    try:
        return _timed(run, repeats)
    except Exception as error:  # a peer may fail in any way; that is a result, not a fault of ours
        return Timing(failure=f"{type(error).__name__}: {error}")


_R_SCRIPT = """
suppressPackageStartupMessages(library(lavaan))
arguments <- commandArgs(trailingOnly = TRUE)
R <- as.matrix(read.csv(arguments[1], row.names = 1, check.names = FALSE))
text <- paste(readLines(arguments[2]), collapse = "\\n")
# lavaan() and not sem(): the latter ignores auto.cov.lv.x and auto.cov.y. Variances are bounded, as ours are.
run <- function() lavaan(text, sample.cov = R, sample.nobs = as.integer(arguments[3]), std.lv = TRUE,
                         auto.var = TRUE, auto.fix.single = TRUE, auto.cov.y = FALSE,
                         auto.cov.lv.x = arguments[4] == "TRUE", bounds = "pos.var")
invisible(suppressWarnings(run()))
seconds <- sapply(seq_len(as.integer(arguments[5])), function(i)
  system.time(f <<- suppressWarnings(run()), gcFirst = FALSE)[["elapsed"]])
cat(sprintf('{"seconds": %.6f, "chi2": %.8f}', median(seconds), fitMeasures(f, "chisq")))
"""


def time_lavaan(corr: pd.DataFrame, n_samples: int, model: PublishedModel, repeats: int) -> Timing:
    """R's lavaan, timed inside R; standard errors are part of its fit, as its users run it."""
    if shutil.which("Rscript") is None:
        return Timing(failure="Rscript is not installed")
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        corr.to_csv(here / "matrix.csv")
        (here / "model.txt").write_text(model.text)
        (here / "run.R").write_text(_R_SCRIPT)
        correlated = str(model.correlate_exogenous).upper()
        command = ["Rscript", "run.R", "matrix.csv", "model.txt", str(n_samples), correlated, str(repeats)]
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        return Timing(failure=f"lavaan: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    return Timing(answer["seconds"], answer["chi2"])


def _timed(run: Callable[[], float], repeats: int) -> Timing:
    seconds, chi2 = [], math.nan
    for _ in range(repeats):
        began = time.perf_counter()
        chi2 = run()
        seconds.append(time.perf_counter() - began)
    return Timing(statistics.median(seconds), chi2)


def _orthogonality(model: PublishedModel) -> list[str]:
    """Lines that keep semopy from correlating exogenous latents where the published model does not."""
    if model.correlate_exogenous:
        return []
    lines = [line for line in model.text.replace(";", "\n").splitlines() if line.strip()]
    latents = [line.split("=~")[0].strip() for line in lines if "=~" in line]
    endogenous = {line.split("~")[0].strip() for line in lines if "~" in line and "=~" not in line and "~~" not in line}
    exogenous = [name for name in latents if name not in endogenous]
    return [f"{a} ~~ 0*{b}" for i, a in enumerate(exogenous) for b in exogenous[i + 1 :]]
