"""The paper's two operators: a value, whether it is valid, and the state or model it leads to.

Which operators to try is the business of the phases, what they are worth that of the score.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np

from unmeasured.arrays import Marks
from unmeasured.graphs import consistent_extension
from unmeasured.search.model import FactorModel, Group
from unmeasured.search.paper.state import State


@dataclass(frozen=True, slots=True)
class DeleteLX:
    """``O_LX(S, L, X)`` of Definition 4: delete all edges from some latents to some observed variables."""

    latents: Group
    observed: tuple[int, ...]

    @classmethod
    def keeping(cls, state: State, kept: Group, observed: tuple[int, ...]) -> DeleteLX:
        """The deletion of Algorithm 1, L without L': all latents but those kept."""
        return cls(tuple(i for i in range(len(state.latents)) if i not in kept), observed)

    def is_valid(self, state: State) -> bool:
        """Whether there is something to delete and every variable keeps a parent."""
        after = state.measures[:, list(self.observed)].copy()
        had = bool(after[list(self.latents)].any())
        after[list(self.latents)] = False
        return had and bool(after.any(axis=0).all())

    def apply(self, state: State) -> State:
        """The state without these edges."""
        measures = state.measures.copy()
        measures[np.ix_(self.latents, self.observed)] = False
        return replace(state, measures=measures)

    def describe(self, state: State) -> str:
        """Read it aloud."""
        kept = [name for i, name in enumerate(state.latents) if i not in self.latents]
        items = ", ".join(state.observed[j] for j in self.observed)
        return f"{items} caused by {', '.join(kept)} alone"


@dataclass(frozen=True, slots=True)
class DeleteLL:
    """``O_LL(S, L1, L2, H)`` of Definition 5: delete the edges between two groups.

    Groups and the members of H are positions in ``model.groups``. The undirected edges of both groups to H are
    directed towards H.
    """

    first: int
    second: int
    H: tuple[int, ...] = ()

    def is_valid(self, model: FactorModel) -> bool:
        """Chickering's condition, which the paper leaves out: what is left of the candidates for H is a clique.

        Without it the result need not have a consistent extension (``docs/departures.md``).
        """
        marks = model.between
        if not marks[self.first, self.second]:
            return False
        candidates = candidate_heads(marks, self.first, self.second)
        left = [h for h in candidates if h not in self.H]
        return set(self.H) <= set(candidates) and all(marks[a, b] or marks[b, a] for a, b in combinations(left, 2))

    def apply(self, model: FactorModel) -> FactorModel:
        """The class without this edge: delete, direct, extend to a DAG, complete again."""
        marks = model.between.copy()
        marks[self.first, self.second] = marks[self.second, self.first] = 0
        for h in self.H:
            marks[h, self.second] = 0
            if marks[self.first, h]:  # undirected or already directed towards h
                marks[h, self.first] = 0
        arcs = consistent_extension(marks)
        if arcs is None:
            raise ValueError(f"{self} has no consistent extension: it is not valid here")
        return model.along(arcs)

    def separating(self, model: FactorModel) -> tuple[int, ...]:
        """The groups given which the two are independent afterwards: rest of H's candidates, parents of second."""
        marks = model.between
        left = [h for h in candidate_heads(marks, self.first, self.second) if h not in self.H]
        parents = [
            g for g in range(len(marks)) if marks[g, self.second] and not marks[self.second, g] and g != self.first
        ]
        return tuple(sorted({*left, *parents}))

    def describe(self, model: FactorModel) -> str:
        """Read it aloud."""
        name = model.group_name
        text = f"no edge between the latents of {name(self.first)} and {name(self.second)}"
        return text + (f", both into {', '.join(map(name, self.H))}" if self.H else "")


def candidate_heads(marks: Marks, first: int, second: int) -> tuple[int, ...]:
    """The set H of Algorithm 2: undirected neighbours of the second group that are adjacent to the first."""
    return tuple(
        g
        for g in range(len(marks))
        if g not in (first, second) and marks[g, second] and marks[second, g] and (marks[g, first] or marks[first, g])
    )


def candidate_deletions(model: FactorModel) -> Iterator[DeleteLL]:
    """Every valid deletion: both readings of an undirected edge, every subset of H."""
    marks = model.between
    for i in range(len(marks)):
        for j in range(len(marks)):
            if i == j or not marks[i, j]:
                continue
            heads = candidate_heads(marks, i, j)
            for H in chain.from_iterable(combinations(heads, r) for r in range(len(heads) + 1)):
                move = DeleteLL(i, j, H)
                if move.is_valid(model):
                    yield move
