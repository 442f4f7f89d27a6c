"""Latents above latents: which latents are measured by other latents, and at which level they stand.

A latent without observed children shows only in what it does to other latents::

                 T1 ─────────── T2              level 1: measured by latents; edges between them as between any latents
               ↙ ↓ ↘          ↙ ↓ ↘
              F1 F2 F3       F4 F5 F6           level 0: measured by observed variables
             ↙│ ↙│  │↘      ↙│  │↘ │↘
             x… x…  x…      x…  x… x…

That T1 causes F1, and F1 not T1, is the model and no finding, just as that F1 causes x1: reversed, the covariances are
the same. So such an edge points down, unless a v-structure has it point up. Which edges are *measuring* in this sense
is read from the skeleton alone, so that all members of a class agree on it:

- Latents with observed children have level 0, and are measured.
- A latent that is measured, and has a single neighbour beside what measures it, measures that neighbour if it is a
  latent that is not measured yet. With three such neighbours a latent is measured too, one level above them.

A neighbour with further edges measures nothing: the direction of its edge is for the data to tell. Nor do two traits
that both have facets measure one another: whether T1 – T2 is a step up or an edge between equals cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from unmeasured.graphs.bitsets import Adjacency, ZeroOne, bits, mask_of, row_masks
from unmeasured.graphs.variables import Variables

# A latent without indicators of its own needs so many latents that measure it: the covariances of two and their common
# cause with all others are those of two latents with an edge between them.
LEAST_FACETS = 3


def measuring_pairs(adjacency: ZeroOne, latent: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """All ``(above, below)``: a latent without observed children and a latent that measures it.

    ``adjacency`` (d, d) is of a DAG or a CPDAG; only its skeleton counts, and the observed children of latents.

    >>> A = np.zeros((7, 7), dtype=np.uint8)  # a trait over three facets of an item each
    >>> A[0, 1:4] = A[1, 4] = A[2, 5] = A[3, 6] = 1
    >>> measuring_pairs(A, np.array([True] * 4 + [False] * 3))
    [(0, 1), (0, 2), (0, 3)]
    """
    seen = np.asarray(adjacency, dtype=bool)
    hidden = mask_of(np.flatnonzero(latent).tolist())
    children = row_masks(seen)
    below = [children[i] & ~hidden if hidden >> i & 1 else 0 for i in range(len(children))]  # what measures each
    is_measured = [bool(mask) for mask in below]
    if all(is_measured[i] for i in bits(hidden)):  # the usual case: every latent has indicators
        return []
    near = row_masks(seen | seen.T)
    pairs: list[tuple[int, int]] = []
    wave = [i for i in bits(hidden) if is_measured[i]]
    while wave:
        for i in wave:
            others = near[i] & ~below[i]
            above = others.bit_length() - 1
            if others.bit_count() == 1 and hidden >> above & 1 and not is_measured[above]:
                pairs.append((above, i))
        for above, i in pairs:
            below[above] |= 1 << i
        wave = [i for i in bits(hidden) if not is_measured[i] and below[i].bit_count() >= LEAST_FACETS]
        for i in wave:
            is_measured[i] = True
    return sorted(pairs)


def latent_levels(adjacency: ZeroOne, latent: NDArray[np.bool_]) -> list[int]:
    """(d,) the level of each latent: 0, or one more than the highest that measures it; 0 for observed variables too.

    >>> A = np.zeros((5, 5), dtype=np.uint8)  # a trait over a facet over two items, and a latent alone
    >>> A[0, 1] = A[1, 3] = A[1, 4] = 1
    >>> latent_levels(A, np.array([True, True, True, False, False]))
    [1, 0, 0, 0, 0]
    """
    below: dict[int, list[int]] = {}
    for above, i in measuring_pairs(adjacency, latent):
        below.setdefault(above, []).append(i)

    def level(i: int) -> int:
        return 1 + max(level(j) for j in below[i]) if i in below else 0

    return [level(i) for i in range(len(latent))]


def facets_of(adjacency: Adjacency, variables: Variables) -> dict[str, tuple[str, ...]]:
    """For each latent that is measured by latents these latents, in the order of the graph.

    An edge that points up, from the latent below to the one above, measures nothing.
    """
    names, found = variables.names, dict[str, list[str]]()
    for above, below in measuring_pairs(adjacency, np.array(variables.latent, dtype=np.bool_)):
        if adjacency[above, below] and not adjacency[below, above]:
            found.setdefault(names[above], []).append(names[below])
    return {name: tuple(found[name]) for name in names if name in found}


def lineage(facets: dict[str, tuple[str, ...]], name: str) -> Iterator[str]:
    """The latents below a latent, each level after the one above it.

    >>> list(lineage({"g": ("a", "b"), "a": ("a1", "a2")}, "g"))
    ['a', 'b', 'a1', 'a2']
    """
    waiting = list(facets.get(name, ()))
    while waiting:
        yield from waiting
        waiting = [below for above in waiting for below in facets.get(above, ())]
