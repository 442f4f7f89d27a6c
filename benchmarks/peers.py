"""Other SEM programs, timed on the same model and the same matrix; one that is absent says so.

Each peer takes a matrix, N and model text, and returns a :class:`Timing`: the chi-square it reached and the seconds it
took, or the reason it has none. ``seconds`` is the fit: from a model that has been read and a matrix to estimates.
``whole`` is from text and matrix to the chi-square. Both are medians over repeats; the start of the program is not
included, nor are standard errors.
"""

from __future__ import annotations

import gc
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
from typing import Any, TypeVar

import pandas as pd

from unmeasured.data.datasets import PublishedModel
from unmeasured.data.sample import Sample
from unmeasured.models.fit import Fit, fit_many
from unmeasured.models.lavaan import parse
from unmeasured.models.parameters import Model

Ready = TypeVar("Ready")
Done = TypeVar("Done")


@dataclass(frozen=True)
class Timing:
    """Seconds and chi-square of one program on one model, or the reason there are none."""

    seconds: float = math.nan
    whole: float = math.nan
    chi2: float = math.nan
    failure: str = ""


def time_ours(corr: pd.DataFrame, n_samples: int, model: PublishedModel, repeats: int) -> Timing:
    """Our engine: patterns, bounds and starting values made anew for every fit."""

    def read() -> tuple[Model, Sample]:
        sample = Sample.from_cov(corr, n_samples)
        return parse(model.text, observed=sample.names, correlate_exogenous=model.correlate_exogenous), sample

    def fitted(ready: tuple[Model, Sample]) -> Fit:
        return fit_many([ready[0]], ready[1])[0]

    fitted(read())  # kernels are loaded, as R and semopy are before their clocks start
    return _timed(read, fitted, lambda result: result.chi2, repeats)


def time_semopy(corr: pd.DataFrame, n_samples: int, model: PublishedModel, repeats: int) -> Timing:
    """The Python program semopy, from the same matrix."""
    try:
        import semopy
    except ImportError:
        return Timing(failure="semopy is not installed: pip install 'unmeasured[peers]'")
    text = model.text + "\n" + "\n".join(_orthogonality(model))

    def fitted(peer: Any) -> Any:
        observed = sorted(peer.vars["observed"])
        peer.fit(cov=corr.loc[observed, observed], n_samples=n_samples)
        return peer

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own affair; ours are errors in the tests
            return _timed(
                lambda: semopy.Model(text), fitted, lambda peer: float(semopy.calc_stats(peer)["chi2"].iloc[0]), repeats
            )
    except Exception as error:  # a peer may fail in any way; that is a result, not a fault of ours
        return Timing(failure=f"{type(error).__name__}: {error}")


_R_SCRIPT = """
suppressPackageStartupMessages(library(lavaan))
arguments <- commandArgs(trailingOnly = TRUE)
R <- as.matrix(read.csv(arguments[1], row.names = 1, check.names = FALSE))
text <- paste(readLines(arguments[2]), collapse = "\\n")
# lavaan() and not sem(): the latter ignores auto.cov.lv.x and auto.cov.y. Variances are bounded, as ours are.
options <- list(std.lv = TRUE, auto.var = TRUE, auto.fix.single = TRUE, auto.cov.y = FALSE,
                auto.cov.lv.x = arguments[4] == "TRUE")
fitted <- function(model, ...) suppressWarnings(lavaan(model, sample.cov = R, sample.nobs = as.integer(arguments[3]),
                                                       bounds = "pos.var", se = "none", ...))
whole <- function() do.call(fitted, c(list(text), options))
table <- do.call(lavaanify, c(list(text), options))
invisible(whole())
clock <- function(run) median(sapply(seq_len(as.integer(arguments[5])), function(i)
  system.time(f <<- run(), gcFirst = FALSE)[["elapsed"]]))
alone <- clock(function() fitted(table))
cat(sprintf('{"seconds": %.6f, "whole": %.6f, "chi2": %.8f}', alone, clock(whole), fitMeasures(f, "chisq")))
"""


def time_lavaan(corr: pd.DataFrame, n_samples: int, model: PublishedModel, repeats: int) -> Timing:
    """R's lavaan, timed inside R."""
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
    return Timing(answer["seconds"], answer["whole"], answer["chi2"])


def _timed(
    read: Callable[[], Ready], fitted: Callable[[Ready], Done], chi2: Callable[[Done], float], repeats: int
) -> Timing:
    seconds, whole, value = [], [], math.nan
    gc.collect()  # nobody pays for what another left behind
    for _ in range(repeats):
        began = time.perf_counter()
        ready = read()
        before = time.perf_counter()
        done = fitted(ready)
        after = time.perf_counter()
        value = chi2(done)
        seconds.append(after - before)
        whole.append(time.perf_counter() - began)
    return Timing(statistics.median(seconds), statistics.median(whole), value)


def _orthogonality(model: PublishedModel) -> list[str]:
    """Lines that keep semopy from correlating exogenous latents where the published model does not."""
    if model.correlate_exogenous:
        return []
    lines = [line for line in model.text.replace(";", "\n").splitlines() if line.strip()]
    latents = [line.split("=~")[0].strip() for line in lines if "=~" in line]
    endogenous = {line.split("~")[0].strip() for line in lines if "~" in line and "=~" not in line and "~~" not in line}
    exogenous = [name for name in latents if name not in endogenous]
    return [f"{a} ~~ 0*{b}" for i, a in enumerate(exogenous) for b in exogenous[i + 1 :]]
