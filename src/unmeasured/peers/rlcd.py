"""RLCD (Dong et al. 2024): rank-based latent causal discovery, run by causal-learn.

It first runs GES over the observed variables, then looks for latents inside dense parts of that graph by rank tests;
what lies outside keeps the edges of GES, so that observed variables may cause one another in its answer.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from unmeasured.constraints import ALPHA, FLAG, Rule, positive, whole
from unmeasured.data.sample import Sample
from unmeasured.peers.base import Peer, class_of_marks, imported, quiet, rows_with_moments
from unmeasured.peers.ges import marks_of


class RLCD(Peer):
    """Rank-based latent causal discovery, by causal-learn; its graph is turned into a class.

    Parameters
    ----------
    alpha : float
        Significance level of the rank tests, the same for every rank.
    max_rank : int
        Largest rank looked for.
    observed_are_leaves : bool
        Tell it that observed variables cause nothing, which all factor models say; causal-learn's default is False.
    sparsity : float
        Penalty of an edge in the first stage, GES over the observed variables; 0.5 is BIC's and causal-learn's default.
        Less makes a denser graph and larger parts in which latents are looked for. Ours did better with both suites.

    Notes
    -----
    causal-learn directs every edge it finds between latents; which of them data can tell is for the class to say. It
    walks through sets of names, so that two runs may differ where Python hashes text differently (``PYTHONHASHSEED``).
    Only second moments are used: incomplete rows, and covariances, are served by rows made up to have them.
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "alpha": ALPHA,
        "max_rank": whole(1),
        "observed_are_leaves": FLAG,
        "sparsity": positive("0.5 is BIC's."),
    }

    def __init__(
        self, *, alpha: float = 0.01, max_rank: int = 3, observed_are_leaves: bool = True, sparsity: float = 0.02
    ) -> None:
        self.alpha = alpha
        self.max_rank = max_rank
        self.observed_are_leaves = observed_are_leaves
        self.sparsity = sparsity

    def _search(self, sample: Sample) -> None:
        alpha = float(self.alpha)
        rows = rows_with_moments(sample)
        rlcd = imported("causallearn.search.HiddenCausal.RLCD", "causal-learn", "RLCD").RLCD
        levels = dict.fromkeys(range(self.max_rank + 1), alpha)
        with quiet(), _one_process():
            # Names of its own, X1, X2, ...: it takes a name that begins with L for a latent.
            found = rlcd(
                np.array(rows),
                stage1_method="ges",
                stage1_ges_sparsity=self.sparsity,
                allow_nonleafx=not self.observed_are_leaves,
                alpha_dict=levels,
                maxk=self.max_rank,
            )
        self._keep(sample, *class_of_marks(marks_of(found.G.graph), sample.names, "causal-learn's RLCD"))


@contextlib.contextmanager
def _one_process() -> Iterator[None]:
    """causal-learn asks for a process on every core; this is joblib's own way to have one only, and ours to time it."""
    before = os.environ.get("LOKY_MAX_CPU_COUNT")
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["LOKY_MAX_CPU_COUNT"]
        else:
            os.environ["LOKY_MAX_CPU_COUNT"] = before
