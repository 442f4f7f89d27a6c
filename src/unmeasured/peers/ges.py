"""GES on the observed variables alone: what one does who believes that nothing is hidden."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from unmeasured.arrays import Marks
from unmeasured.constraints import Rule, positive
from unmeasured.data.sample import Sample
from unmeasured.errors import DataError
from unmeasured.peers.base import Peer, class_of_marks, imported, quiet


class GES(Peer):
    """Greedy equivalence search over observed variables (Chickering 2002), run by causal-learn; reports no latents.

    Parameters
    ----------
    penalty : float
        Penalty of an edge, in units of BIC's.
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "penalty": positive("1 is BIC's."),
    }

    def __init__(self, *, penalty: float = 1.0) -> None:
        self.penalty = penalty

    def _search(self, sample: Sample) -> None:
        if math.isinf(sample.n):
            raise DataError("GES scores at a sample size and has none for a population; pass a finite n_samples.")
        ges = imported("causallearn.search.ScoreBased.GES", "causal-learn", "GES").ges
        with quiet():
            # causal-learn's own unit: half a logarithm of N for each parameter is its default, 0.5.
            record = ges(cov=np.array(sample.corr), n=round(sample.n), lambda_value=0.5 * self.penalty)
        self._keep(sample, *class_of_marks(marks_of(record["G"].graph), sample.names, "causal-learn's GES"))


def marks_of(graph: object) -> Marks:
    """Our marks from causal-learn's matrix, where ``g[j, i] = 1`` and ``g[i, j] = -1`` is i → j, both -1 is i – j.

    >>> marks_of([[0, -1], [1, 0]]).tolist()
    [[0, 1], [0, 0]]
    """
    return np.asarray(np.asarray(graph) == -1, dtype=np.uint8)
