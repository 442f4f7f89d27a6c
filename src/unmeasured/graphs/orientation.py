"""Which edges of a DAG every equivalent DAG shares: v-structures, Meek's rules, Dor and Tarsi's extension.

Plain functions of 0/1 matrices, without names or roles; :mod:`unmeasured.graphs.cpdag` gives them meaning.
``A[i, j] = 1`` and ``A[j, i] = 0`` is i → j; both 1 is i – j. Inside, a node set is an integer
(:mod:`unmeasured.graphs.bitsets`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unmeasured.graphs.bitsets import Adjacency, ZeroOne, adjacency_of, bits, row_masks


@dataclass(slots=True)
class _Marks:
    """A partially directed graph while its edges are being oriented; one integer set per node and kind."""

    parents: list[int]
    children: list[int]
    undirected: list[int]

    @classmethod
    def of(cls, adjacency: ZeroOne) -> _Marks:
        out, into = row_masks(adjacency), row_masks(adjacency.T)
        return cls(
            parents=[i & ~o for o, i in zip(out, into)],
            children=[o & ~i for o, i in zip(out, into)],
            undirected=[o & i for o, i in zip(out, into)],
        )

    def adjacent(self) -> list[int]:
        """Neighbours of every kind; orienting an edge never changes them."""
        return [p | c | u for p, c, u in zip(self.parents, self.children, self.undirected)]

    def orient(self, a: int, b: int) -> None:
        self.undirected[a] &= ~(1 << b)
        self.undirected[b] &= ~(1 << a)
        self.children[a] |= 1 << b
        self.parents[b] |= 1 << a

    def arcs(self) -> list[tuple[int, int]]:
        """Both directions of each undirected edge."""
        return [(a, b) for a, near in enumerate(self.undirected) for b in bits(near)]

    def copy(self) -> _Marks:
        return _Marks(self.parents[:], self.children[:], self.undirected[:])

    def matrix(self) -> Adjacency:
        return adjacency_of([c | u for c, u in zip(self.children, self.undirected)])


def cpdag_of(adjacency: ZeroOne, fixed: NDArray[np.bool_] | None = None) -> Adjacency:
    """Completed PDAG of a DAG: an edge is directed if and only if all equivalent DAGs direct it so.

    Parameters
    ----------
    adjacency : (d, d)
        A DAG, ``A[i, j] = 1`` for i → j; trusted to be acyclic.
    fixed : (d, d) of bool, optional
        Pairs whose edge keeps the direction it has in the DAG, as knowledge from outside. The answer then
        stands for the equivalent DAGs that agree on these edges.

    Returns
    -------
    (d, d) uint8
        A new matrix, ``A[i, j] = A[j, i] = 1`` for an undirected edge.

    Notes
    -----
    Skeleton, v-structures, then Meek's (1995) rules 1-3, and rule 4 when edges are fixed from outside;
    complete in both cases by Meek's theorems.

    Examples
    --------
    A chain has no v-structure, so both its edges can be reversed; a collider has one:

    >>> cpdag_of(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]], dtype=uint8)
    >>> cpdag_of(np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]]))
    array([[0, 1, 0],
           [0, 0, 0],
           [0, 1, 0]], dtype=uint8)
    """
    children, parents = row_masks(adjacency), row_masks(adjacency.T)
    adjacent = [c | p for c, p in zip(children, parents)]
    keep = row_masks(fixed) if fixed is not None else [0] * len(children)
    nothing = [0] * len(children)
    marks = _Marks(nothing[:], nothing[:], adjacent[:])
    pending: list[tuple[int, int]] = []
    for b, above in enumerate(parents):
        for a in bits(above):
            # a → b is part of a v-structure when another parent of b is not adjacent to a.
            if above & ~adjacent[a] & ~(1 << a) or keep[a] >> b & 1:
                marks.orient(a, b)
            else:
                pending.append((a, b))
    _close(marks, adjacent, pending)
    return marks.matrix()


def _close(marks: _Marks, adjacent: list[int], pending: list[tuple[int, int]]) -> None:
    """Orient, in place, all edges among the ``pending`` arcs that Meek's rules compel.

    Coming from a DAG the pending arcs are those of the DAG, the only direction a sound rule can give; coming
    from a PDAG they are both directions of each undirected edge.
    """
    changed = True
    while changed:
        changed = False
        left = []
        for a, b in pending:
            if not marks.undirected[a] >> b & 1:
                continue
            if _is_compelled(marks, adjacent, a, b):
                marks.orient(a, b)
                changed = True
            else:
                left.append((a, b))
        pending = left


def _is_compelled(marks: _Marks, adjacent: list[int], a: int, b: int) -> bool:
    """Whether one of Meek's four rules directs a – b as a → b."""
    into_b = marks.parents[b]
    # Rule 1: c → a – b with c, b not adjacent; else a new v-structure at a.
    if marks.parents[a] & ~adjacent[b]:
        return True
    # Rule 2: a → c → b; else a cycle.
    if marks.children[a] & into_b:
        return True
    # Rule 3: a – c → b and a – d → b with c, d not adjacent; else b → a forces a v-structure or a cycle.
    near = marks.undirected[a] & into_b
    if any(near & ~adjacent[c] & ~(1 << c) for c in bits(near)):
        return True
    # Rule 4: a – c → d → b with c, b not adjacent and a, d adjacent. Never fires on v-structures alone.
    far = marks.undirected[a] & ~adjacent[b]
    return any(marks.parents[d] & far for d in bits(into_b & adjacent[a])) if far else False


def consistent_extension(adjacency: ZeroOne) -> Adjacency | None:
    """A DAG with the edges and exactly the v-structures of a partially directed graph, or None.

    Dor and Tarsi (1992): remove sinks one by one, each time turning the undirected edges towards the sink.
    Where several nodes qualify we take the highest index, so that undirected edges point from the lower index
    to the higher one whenever nothing speaks against it, and runs repeat.

    >>> consistent_extension(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=uint8)

    A square without diagonals has no extension: some corner would become a new v-structure.

    >>> square = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> consistent_extension(square) is None
    True
    """
    marks = _Marks.of(adjacency)
    adjacent = marks.adjacent()
    result = marks.children[:]
    left = (1 << len(adjacent)) - 1
    while left:
        sink = _removable_sink(marks, adjacent, left)
        if sink is None:
            return None
        for neighbour in bits(marks.undirected[sink] & left):
            result[neighbour] |= 1 << sink
        left &= ~(1 << sink)
    return adjacency_of(result)


def _removable_sink(marks: _Marks, adjacent: list[int], left: int) -> int | None:
    for node in range(left.bit_length() - 1, -1, -1):
        if not left >> node & 1 or marks.children[node] & left:
            continue
        around = adjacent[node] & left
        near = marks.undirected[node] & left
        if all(not around & ~adjacent[other] & ~(1 << other) for other in bits(near)):
            return node
    return None


def restricted(adjacency: ZeroOne, arcs: Iterable[tuple[int, int]]) -> Adjacency | None:
    """The members of a class that direct some of its edges as told, or None where there are none.

    What follows from the arcs is directed too (Meek 1995, rules 1 to 4), so an edge that is left undirected can be
    directed either way. The input must be closed under Meek's rules, as that of :func:`all_extensions`.

    >>> chain = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> restricted(chain, [(0, 1)])  # 0 → 1, so 1 → 2: else a v-structure
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=uint8)
    >>> restricted(chain, [(0, 1), (2, 1)]) is None
    True
    """
    marks = _Marks.of(adjacency)
    for a, b in arcs:
        if marks.undirected[a] >> b & 1:
            marks.orient(a, b)
        elif not marks.children[a] >> b & 1:
            return None
    _close(marks, marks.adjacent(), marks.arcs())
    before, after = consistent_extension(adjacency), consistent_extension(marks.matrix())
    # Arcs that contradict one another end in a cycle or a v-structure the class does not have.
    if before is None or after is None or v_structures(before) != v_structures(after):
        return None
    return marks.matrix()


def all_extensions(adjacency: ZeroOne) -> Iterator[Adjacency]:
    """All DAGs of the class of a completed PDAG, each once; for small graphs, as they can be d! many.

    The input must be closed under Meek's rules. Then each undirected edge can be directed either way, so we
    direct the first one both ways, close again, and go on: no branch is a dead end.

    >>> chain = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> sum(1 for _ in all_extensions(chain))
    3
    """
    yield from _extensions(_Marks.of(adjacency))


def _extensions(marks: _Marks) -> Iterator[Adjacency]:
    arcs = marks.arcs()
    if not arcs:
        yield marks.matrix()
        return
    a, b = arcs[0]
    for source, target in ((a, b), (b, a)):
        branch = marks.copy()
        branch.orient(source, target)
        _close(branch, branch.adjacent(), branch.arcs())
        yield from _extensions(branch)


def v_structures(adjacency: ZeroOne) -> set[tuple[int, int, int]]:
    """All v-structures a → b ← c of a DAG, a and c not adjacent, as ``(a, b, c)`` with a < c.

    >>> v_structures(np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]]))
    {(0, 1, 2)}
    """
    children, parents = row_masks(adjacency), row_masks(adjacency.T)
    adjacent = [c | p for c, p in zip(children, parents)]
    return {
        (a, b, c)
        for b, above in enumerate(parents)
        for a in bits(above)
        for c in bits(above & ~adjacent[a] & ~((2 << a) - 1))
    }
