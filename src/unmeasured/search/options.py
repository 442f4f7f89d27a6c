"""The options of a search as one value, and the checks of each.

All messages have one grammar: the option, what it must be, what it got.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from unmeasured.data.moments.missing import Missing
from unmeasured.data.observed_roles import Roles
from unmeasured.data.sample import Sample
from unmeasured.graphs import CPDAG
from unmeasured.knowledge.known import Knowledge
from unmeasured.search.measurement.moves import Move, OwnMove

Criterion = Literal["bic", "delta"]


@dataclass(frozen=True)
class Options:
    """What :class:`~unmeasured.LGES` is asked for, checked. The defaults are those of the exact criterion."""

    criterion: Criterion = "bic"
    delta: float | None = None
    penalty: float = 1.0
    tolerance: float | None = 0.0  # in units of RMSEA; None: "auto"
    residual_covariances: bool = True
    max_group_size: int | None = None
    hierarchy: bool = True
    roles: Roles = field(default_factory=Roles)  # covariates and outcomes
    knowledge: Knowledge | None = None
    compare_without_knowledge: bool | None = None
    prune: bool = True
    missing: Missing = "ml"
    n_threads: int | None = None
    seed: int = 0  # of replicates of the data
    time_limit: float | None = None
    moves: Sequence[OwnMove] = ()
    verbose: bool = False
    starts: Sequence[CPDAG] = ()  # answers to similar data, climbed from instead of most of the search's own proposals
    n_runners: int = 0  # runners-up that are handed back at most

    def is_paper_for(self, sample: Sample) -> bool:
        """Whether the paper's rule decides: in a population the penalty vanishes against the likelihood."""
        return self.criterion == "delta" or math.isinf(sample.n)

    def is_exact_for(self, sample: Sample) -> bool:
        """Whether no misfit is tolerated: as asked for, by the paper's rule, and by "auto" where guided."""
        about_items = self.knowledge.about_groups if self.knowledge else None
        is_guided = bool(about_items or self.moves)
        return self.is_paper_for(sample) or self.tolerance == 0.0 or (self.tolerance is None and is_guided)

    def largest_group(self, sample: Sample) -> int:
        """Latents of a group at most: as many as asked for and the variables allow."""
        n = len(sample.names)
        return min(self.max_group_size or n, n // 2)


def are_moves(value: Any) -> bool:
    """Whether a value is a sequence of functions, or of moves."""
    return isinstance(value, list | tuple) and all(callable(item) or isinstance(item, Move) for item in value)
