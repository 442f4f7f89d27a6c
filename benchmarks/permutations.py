"""Does the order of columns matter? Permuted columns of the rows of table 1, searched again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks import experiment
from benchmarks.attempt import simulated_rows
from unmeasured import metrics
from unmeasured.errors import UnmeasuredError, listing
from unmeasured.estimators.lges import LGES
from unmeasured.search.options import Criterion


@dataclass(frozen=True)
class Permuted:
    """How many permutations gave the same class."""

    criterion: str
    n_same: int
    n_all: int

    def __str__(self) -> str:
        return f"LGES(criterion={self.criterion!r}): the same class after {self.n_same} of {self.n_all} permutations"


def permuted(criterion: Criterion, n_samples: int = 100, n_permutations: int = 100) -> Permuted:
    """Search rows of each graph of table 1 and permutations of their columns, as many in all."""
    runs = [
        a
        for a in experiment.load("table1").restricted(["LGES (bic)"]).assignments
        if a.task.n_samples == n_samples and a.task.seed == 0 and a.truth is not None
    ]
    if not runs:
        sizes = sorted({a.task.n_samples for a in experiment.load("table1").assignments})
        raise UnmeasuredError(f"Table 1 has no samples of {n_samples} rows: take one of {listing(map(str, sizes))}.")
    each = -(-n_permutations // len(runs))
    n_same = n_all = 0
    for number, run in enumerate(runs):
        assert run.truth is not None
        rows = simulated_rows(run.task, run.truth)
        found = LGES(criterion=criterion).fit(rows).graph_
        rng = np.random.default_rng(number)
        for _ in range(min(each, n_permutations - n_all)):
            other = LGES(criterion=criterion).fit(rows[list(rng.permutation(rows.columns))]).graph_
            n_same += metrics.compare(found, other).shd == 0
            n_all += 1
    return Permuted(criterion, n_same, n_all)
