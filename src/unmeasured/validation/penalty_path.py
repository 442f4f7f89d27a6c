"""The graph at a path of penalties, and the step of it to read.

With many rows BIC selects more structure than anybody wants to read. A larger penalty gives smaller graphs; how much
larger is a matter of taste, so all of them are shown side by side::

    penalty    156    98    62   …   1.6    1
    latents      5     5     6   …     7    9
    dimension   52    57    61   …   144  160

The search begins at the largest penalty, where models are small, and goes from step to step, each starting from the
answer before. In the end every step chooses, by its own penalty, among all models visited at any step. So dimensions
never rise with the penalty, which is a theorem: if m is best at p and m' at p' > p, adding the two inequalities gives
``(p' - p)(dim m' - dim m) <= 0``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from unmeasured.constraints import FLAG, check, whole
from unmeasured.data.sample import Sample
from unmeasured.errors import DataError, UnmeasuredError
from unmeasured.estimators.lges import LGES
from unmeasured.files import csv_text, write_folder
from unmeasured.graphs import CPDAG
from unmeasured.graphs.outline import Outline, Tally
from unmeasured.models.fit import Fit, fit_many
from unmeasured.models.full import with_full_information
from unmeasured.results.result import Result
from unmeasured.search.discovery import Discovery
from unmeasured.search.score import prior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_N_STEPS = 12
# The largest penalty is that of BIC if the data were those of so few samples.
_FEW_SAMPLES = 50
_LEAST_TOP = 4.0
# RMSEA up to here is acceptable (Browne and Cudeck 1993).
_ACCEPTABLE = 0.08
# Classes kept from every step for the others to choose from.
_N_KEPT = 20


def penalty_path(
    found: Any,
    penalties: Sequence[float] | None = None,
    *,
    max_group_size: int | None = None,
    verbose: bool = False,
) -> PenaltyPath:
    """Search with several penalties.

    Parameters
    ----------
    found : LGES, DataFrame, array or Sample
        Data; or a fitted ``LGES``, whose data and options are taken.
    penalties : sequence of float, optional
        The penalty of a dimension at each step, in units of BIC's. Left out: twelve steps, evenly spaced on a
        logarithmic scale from 1 to the penalty of BIC when N is 50.
    max_group_size : int, optional
        As for ``LGES``, whose default it is.
    verbose : bool
        Show a bar with the time left.

    Examples
    --------
    >>> import unmeasured as um
    >>> data = um.datasets.load("multitasking")
    >>> path = um.penalty_path(um.as_sample(cov=data.frame(), n_samples=data.n_samples), [1, 2, 8])
    >>> path.table["latents"].to_list()
    [3, 3, 3]
    """
    check({"max_group_size": whole(1).or_none(), "verbose": FLAG}, locals())
    search, sample = _search_and_sample(found)
    if max_group_size is not None:
        search.set_params(max_group_size=max_group_size)
    path = _checked(penalties, sample.n)
    candidates: list[Candidate] = []
    starts: tuple[CPDAG, ...] = ()
    for penalty in tqdm(path[::-1], unit="step", disable=not verbose):
        search.set_params(penalty=penalty, tolerance=0.0)  # a path over penalties is one of the exact criterion
        answer = search.discover(sample, starts, _N_KEPT)
        if answer.interrupted:
            raise KeyboardInterrupt
        candidates += _candidates(answer, penalty)
        starts = (answer.cpdag,)
    penalty_of_one = 0.5 * math.log(sample.n)
    chosen = [max(candidates, key=lambda c, p=p: c.worth - p * penalty_of_one * c.dimension) for p in path]  # type: ignore[misc]
    graphs = list(dict.fromkeys(candidate.graph for candidate in chosen))
    fits = dict(zip(graphs, map(with_full_information, fit_many(graphs, sample)), strict=True))
    return PenaltyPath(
        sample.names, tuple(PathStep(p, c.graph, fits[c.graph]) for p, c in zip(path, chosen, strict=True))
    )


@dataclass(frozen=True)
class Candidate:
    """A class visited at some step: its score without the penalty, and its dimension."""

    graph: CPDAG
    worth: float
    dimension: int


@dataclass(frozen=True, eq=False)
class PathStep:
    """A penalty, the class it chooses and a fit of one of its members."""

    penalty: float
    graph: CPDAG
    fit: Fit


@dataclass(frozen=True, eq=False, repr=False)
class PenaltyPath:
    """The class at each penalty, the smallest penalty first."""

    observed: tuple[str, ...]
    steps: tuple[PathStep, ...]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per step, with the size of its graph and its fit.

        ``penalty equivalent_n latents groups loadings paths dimension chi2 df rmsea cfi tli srmr bic``.
        ``equivalent_n``: the number of samples at which BIC itself would charge so much for each unit of misfit.
        """
        return pd.DataFrame([self._row(step) for step in self.steps])

    def _row(self, step: PathStep) -> dict[str, Any]:
        outline, fit = Outline.of(step.graph, self.observed), step.fit
        indices = {name: getattr(fit, name) for name in ("chi2", "df", "rmsea", "cfi", "tli", "srmr", "bic")}
        return {
            "penalty": step.penalty,
            "equivalent_n": _equivalent_n(step.penalty, fit.sample.n),
            "latents": sum(outline.sizes),
            "latent_groups": len(outline.sizes),
            "loadings": int(outline.measures.sum()),
            "paths": int(np.triu(outline.between | outline.between.T).sum()),
            "dimension": int(fit.dimension),
            **indices,
        }

    @cached_property
    def suggested(self) -> int:
        """Position of the step to read first; :attr:`reason` says why."""
        return self._choice[0]

    @property
    def reason(self) -> str:
        """Why this step is suggested."""
        return self._choice[1]

    @property
    def graph(self) -> CPDAG:
        """The class of the suggested step."""
        return self.steps[self.suggested].graph

    def result(self, step: int | None = None) -> Result:
        """The model of a step, by its position, as a result to read, report and export; left out: the suggested one."""
        chosen = self.steps[self.suggested if step is None else step]
        method = f"LGES(penalty={chosen.penalty:.6g}) at step {self.steps.index(chosen) + 1} of a penalty path"
        options = {"penalty": chosen.penalty, "tolerance": 0.0}
        return Result(chosen.graph, chosen.fit, method=method, options=options)

    @cached_property
    def _choice(self) -> tuple[int, str]:
        """Of the shapes (latents, groups) the one that lasts longest; within it the sparsest step that fits."""
        shapes = [(len(step.graph.latents), len(step.graph.latent_groups)) for step in self.steps]
        runs = [list(run) for _, run in groupby(range(len(shapes)), key=lambda i: shapes[i])]
        told = [run for run in runs if shapes[run[0]][1] > 1] or runs
        longest = max(reversed(told), key=len)  # ties: the larger penalty, which is easier to read
        fitting = [i for i in longest if self.steps[i].fit.rmsea <= _ACCEPTABLE]
        best = fitting[-1] if fitting else longest[0]
        why = "the sparsest that fits acceptably" if fitting else "the one that fits best, though none fits acceptably"
        step, low, high = self.steps[best], self.steps[longest[0]].penalty, self.steps[longest[-1]].penalty
        reason = (
            f"{_count(shapes[best][0], 'latent')} in {_count(shapes[best][1], 'group')} at {len(longest)} of "
            f"{len(shapes)} steps, from penalty {low:.3g} to {high:.3g}: no other number of latents lasts as long. "
            f"Of these steps "
            f"{step.penalty:.3g} is {why} (RMSEA {step.fit.rmsea:.3f}, CFI {step.fit.cfi:.3f})."
        )
        return best, reason

    @cached_property
    def edges(self) -> pd.DataFrame:
        """Edges of all steps, those that remain longest first, relative to the suggested step.

        ``source target kind in_graph share_of_steps max_penalty``: the share of the steps that have the edge, and the
        largest penalty at which it remains.
        """
        reference = Outline.of(self.graph, self.observed)
        outlines = [Outline.of(step.graph, self.observed) for step in self.steps]
        tables = [Tally.of(reference, [outline]) for outline in outlines]
        table = Tally.of(reference, outlines).edges(self.graph.latent_groups, self.observed)
        lasts: dict[tuple[str, str], float] = {}
        for step, tally in zip(self.steps, tables, strict=True):
            for row in tally.edges(self.graph.latent_groups, self.observed).to_dict(orient="records"):
                if row["frequency"] > 0:
                    lasts |= {
                        (row["source"], row["target"]): step.penalty,
                        (row["target"], row["source"]): step.penalty,
                    }
        table["max_penalty"] = [lasts.get(pair, math.nan) for pair in zip(table["source"], table["target"])]
        table = table.rename(columns={"frequency": "share_of_steps"}).drop(
            columns=["forward", "backward", "undirected"]
        )
        return table.sort_values(["share_of_steps", "max_penalty"], ascending=False, kind="stable", ignore_index=True)

    def plot(self) -> Figure:
        """Latents, dimension and fit along the path, as a matplotlib figure."""
        # matplotlib takes a good part of a second to load.
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8.5, 7.0), layout="constrained")
        _draw(self, figure)
        return figure

    def write(self, folder: str | Path, as_text: Callable[[Result], str] = Result.to_json) -> None:
        """Write ``path.csv``, ``edges.csv``, ``path.svg`` and a result for every step (``step-01.json``, ...).

        ``as_text``: the text of such a file.
        """
        figure = BytesIO()
        self.plot().savefig(figure, format="svg")
        contents: dict[str, str | bytes] = {
            "path.csv": csv_text(self.table),
            "edges.csv": csv_text(self.edges),
            "path.svg": figure.getvalue(),
        }
        contents |= {f"step-{i:02d}.json": as_text(self.result(i - 1)) for i in range(1, len(self.steps) + 1)}
        write_folder(folder, contents)

    def __repr__(self) -> str:
        return f"<PenaltyPath: {len(self.steps)} steps, suggested {self.steps[self.suggested].penalty:.3g}>"

    def __str__(self) -> str:
        columns = [
            "penalty",
            "equivalent_n",
            "latents",
            "latent_groups",
            "loadings",
            "paths",
            "dimension",
            "rmsea",
            "cfi",
            "bic",
        ]
        formats = {"penalty": "{:.3g}", "equivalent_n": "{:.0f}", "rmsea": "{:.3f}", "cfi": "{:.3f}", "bic": "{:.1f}"}
        shown = self.table[columns].astype(object)
        for name, form in formats.items():
            shown[name] = [form.format(value) for value in self.table[name]]
        shown.insert(0, "", ["→" if i == self.suggested else "" for i in range(len(self.steps))])
        return f"{shown.to_string(index=False)}\n\nSuggested: {self.reason}"


def _search_and_sample(found: Any) -> tuple[LGES, Sample]:
    if isinstance(found, LGES):
        if not hasattr(found, "sample_"):
            raise UnmeasuredError(
                "The search was not fitted yet, so it has no data. Call its fit first, or give the data."
            )
        search, sample = LGES(**found.get_params()), found.sample_
    else:
        search = LGES()
        sample = search.make_sample(found)
    if math.isinf(sample.n):
        raise DataError("In a population no penalty matters; give the number of samples.")
    return search.set_params(verbose=False), sample


def _checked(penalties: Sequence[float] | None, n: float) -> list[float]:
    if penalties is None:
        top = max(_LEAST_TOP, math.log(_FEW_SAMPLES) / _FEW_SAMPLES * n / math.log(n))
        return [float(p) for p in np.geomspace(1.0, top, _N_STEPS)]
    try:
        path = sorted({float(p) for p in penalties})
    except (TypeError, ValueError, OverflowError):
        path = []
    if not path or not (path[0] > 0 and math.isfinite(path[-1])):
        raise UnmeasuredError(f"penalties are positive numbers, at least one; got {penalties!r}. 1 is BIC's.")
    return path


def _candidates(answer: Discovery, penalty: float) -> list[Candidate]:
    """What a step offers to all: its answer and the runners-up.

    The prior over measurement models (:func:`unmeasured.search.score.prior`) is the same at every step: only the
    penalty of dimensions grows.
    """
    n = answer.fit.sample.n
    penalty_of_one = 0.5 * penalty * math.log(n)
    best = -0.5 * answer.fit.chi2 - _prior(answer.cpdag)
    out = [Candidate(answer.cpdag, best, int(answer.fit.dimension))]
    for runner in answer.runners_up:
        paid = runner.score + penalty_of_one * runner.dimension + (penalty - 1.0) * _prior(runner.graph)
        out.append(Candidate(runner.graph, paid, runner.dimension))
    return out


def _prior(graph: CPDAG) -> float:
    outline = Outline.of(graph, graph.observed)
    return prior(outline.measures.sum(axis=0).tolist(), len(outline.sizes))


def _equivalent_n(penalty: float, n: float) -> float:
    """The m with log(m) / m = penalty log(n) / n; below e there is none smaller, and e it is."""
    wanted = penalty * math.log(n) / n
    low, high = math.e, max(n, math.e) * max(1.0, 1.0 / penalty) ** 2 + 10.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if math.log(middle) / middle > wanted else (low, middle)
    return low


def _count(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' if count != 1 else ''}"


def _draw(path: PenaltyPath, figure: Figure) -> None:
    table, chosen = path.table, path.steps[path.suggested].penalty
    counts, size, fit = figure.subplots(3, 1, sharex=True)
    counts.plot(table["penalty"], table["latents"], "o-", color="#332288", label="latents")
    counts.plot(table["penalty"], table["latent_groups"], "s--", color="#cc6677", label="latent groups")
    size.plot(table["penalty"], table["dimension"], "o-", color="#332288", label="dimension")
    size.plot(table["penalty"], table["loadings"], "s--", color="#cc6677", label="loadings")
    size.plot(table["penalty"], table["paths"], "^:", color="#117733", label="paths between groups")
    fit.plot(table["penalty"], table["rmsea"], "o-", color="#332288", label="RMSEA")
    fit.plot(table["penalty"], 1.0 - table["cfi"], "s--", color="#cc6677", label="1 − CFI")
    for axes in (counts, size, fit):
        axes.axvline(chosen, color="#999999", linewidth=6, alpha=0.35, zorder=0)
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        axes.yaxis.get_major_locator().set_params(integer=axes is not fit)
        axes.spines[["top", "right"]].set_visible(False)
    counts.set_title(f"Grey: the suggested step, penalty {chosen:.3g}", fontsize=9, loc="left")
    fit.set_xscale("log")
    fit.set_xticks(table["penalty"], [f"{p:.3g}" for p in table["penalty"]], fontsize=8)
    fit.minorticks_off()
    fit.set_xlabel("penalty of a dimension, in units of BIC's")
