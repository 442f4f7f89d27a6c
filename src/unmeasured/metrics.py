"""Comparison of an estimated graph with the true one, with latents matched.

Latents have no names that data could know, so they are matched by what they do: by the permutation under
which the two skeletons share the most edges. The side with fewer latents is first padded with isolated ones,
so that every edge of a latent that was missed, or made up, counts as an error.

Orientation is compared twice. Take a single latent and a group of two::

    L1 ──► {L2, L3}      and      {L2, L3} ──► L1

The two models allow exactly the same covariance matrices, because the children of the group absorb any change
of basis inside it; no data can tell them apart. As plain DAGs they are not Markov equivalent: the second has
the v-structure ``L2 → L1 ← L3``, the first has none.

- ``shd`` compares the classes over groups, where the edge above is undirected in both: distance 0.
- ``shd_paper`` compares the ordinary CPDAGs of two DAGs, as the paper's tables do (edges from a latent to an
  observed variable stay directed). It charges for the difference above, although nothing in the data speaks
  to it, and depends on which member of a class a method happens to return. Use it only beside the paper's
  figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations
from math import factorial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from unmeasured.errors import GraphError, listing
from unmeasured.graphs import CPDAG, DAG, markov_class

IntArray: TypeAlias = NDArray[np.int64]

MAX_EXACT = 8  # up to this many latents every permutation is tried


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` found.

    Attributes
    ----------
    f1, precision, recall
        Over the skeleton of all variables: a pair adjacent in both graphs is a true positive.
    shd
        Pairs of variables whose mark (none, ``→``, ``←``, undirected) differs between the classes over
        groups.
    shd_paper
        The same count between the ordinary CPDAGs of two DAGs.
    matching
        For each latent of the estimate, the true latent it stands for; None when none is left for it, or when
        it shares no edge with the one left.
    n_latents_true, n_latents_found
        How many latents each graph has.
    """

    f1: float
    precision: float
    recall: float
    shd: int
    shd_paper: int
    matching: Mapping[str, str | None] = field(hash=False)
    n_latents_true: int
    n_latents_found: int

    @property
    def latents_matched(self) -> int:
        """Number of estimated latents that stand for a true one."""
        return sum(name is not None for name in self.matching.values())

    def __str__(self) -> str:
        pairs = ", ".join(f"{found} = {true or 'nothing'}" for found, true in self.matching.items())
        counts = f"{self.n_latents_true} true, {self.n_latents_found} found, {self.latents_matched} matched"
        return (
            f"F1 {self.f1:.3f} (precision {self.precision:.3f}, recall {self.recall:.3f}), "
            f"SHD {self.shd} (the paper's way {self.shd_paper})\n"
            f"latents: {counts}" + (f" ({pairs})" if pairs else "")
        )


def compare(truth: DAG | CPDAG, estimate: DAG | CPDAG) -> Comparison:
    """Compare an estimated graph with the true one; latents are matched by the best permutation.

    Parameters
    ----------
    truth, estimate
        Graphs over the same observed variables, in any order; names of latents do not matter. A DAG stands
        for its class over groups, ``dag.cpdag()``, in ``shd`` and for its ordinary CPDAG,
        ``markov_class(dag)``, in ``shd_paper``. A CPDAG is taken as it is in ``shd``; in ``shd_paper`` its
        ``member()`` stands for it.

    Returns
    -------
    Comparison
        The skeleton's F1, precision and recall, and the two structural Hamming distances.

    Raises
    ------
    GraphError
        When the observed variables are not the same.

    Notes
    -----
    The side with fewer latents is padded with isolated latents. Among the permutations with the most shared
    skeleton edges, ``shd`` and ``matching`` take the one with the smallest ``shd``, and ``shd_paper`` the one
    with the smallest ``shd_paper``. For up to 8 latents all permutations are tried and the answer is exact.
    Beyond that a heuristic is used: the assignment with the most shared children, then swaps of two latents
    until no swap helps; F1 is then a lower bound, and the distances belong to the matching found.

    Two empty skeletons agree (F1 = 1); an empty one against one with edges has F1 = 0.

    Examples
    --------
    The example of the module's introduction, with the same children on both sides:

    >>> items = [("L1", "a"), ("L1", "b")] + [(l, x) for l in ("L2", "L3") for x in "cdef"]
    >>> forth = DAG.from_edges([("L1", "L2"), ("L1", "L3"), *items], latents=["L1", "L2", "L3"])
    >>> back = DAG.from_edges([("L2", "L1"), ("L3", "L1"), *items], latents=["L1", "L2", "L3"])
    >>> print(compare(forth, back))
    F1 1.000 (precision 1.000, recall 1.000), SHD 0 (the paper's way 2)
    latents: 3 true, 3 found, 3 matched (L1 = L1, L2 = L2, L3 = L3)
    """
    _require_same_observed(truth, estimate)
    classes = _Pair(_class_over_groups(truth), _class_over_groups(estimate))
    papers = _Pair(_class_of_member(truth), _class_of_member(estimate))
    best, best_paper = _best_permutations(classes, papers)
    shared = int(classes.shared(best[None])[0])
    n_true, n_found = classes.n_edges
    return Comparison(
        f1=_ratio(2 * shared, n_true + n_found),
        precision=_ratio(shared, n_found, empty=float(n_true == 0)),
        recall=_ratio(shared, n_true, empty=float(n_found == 0)),
        shd=int(classes.differences(best[None])[0]),
        shd_paper=int(papers.differences(best_paper[None])[0]),
        matching=classes.matching(best),
        n_latents_true=len(truth.latents),
        n_latents_found=len(estimate.latents),
    )


class _Pair:
    """Two graphs side by side: counts of what they share and where they differ, for batches of permutations.

    A permutation ``p`` says that true latent ``a`` is estimated latent ``p[a]``; a batch of them is (B, m).
    Every count is a constant for pairs of observed variables, a table over (true latent, estimated latent)
    for pairs of a latent and an observed variable, and a sum over pairs of latents.
    """

    def __init__(self, truth: CPDAG, estimate: CPDAG) -> None:
        self.latents = (truth.latents, estimate.latents)
        self.m = max(len(truth.latents), len(estimate.latents))
        self._rows, self._columns = np.triu_indices(self.m, k=1)
        marks = [_marks(graph, truth.observed, self.m) for graph in (truth, estimate)]
        self.n_edges = tuple(int(np.count_nonzero(np.triu(mark))) for mark in marks)
        m = self.m
        self._latent = [mark[:m, :m] for mark in marks]
        measured = [mark[:m, m:] for mark in marks]  # (m, p): marks between a latent and an observed variable
        first, second = measured[0][:, None, :], measured[1][None, :, :]
        self.shared_children: IntArray = ((first > 0) & (second > 0)).sum(axis=2)
        self._different_children: IntArray = (first != second).sum(axis=2)
        # A latent above latents has no indicators: where matching begins it goes by those below it.
        reach = [_reached(mark, m) for mark in marks]
        self.shared_descendants: IntArray = (reach[0][:, None, :] & reach[1][None, :, :]).sum(axis=2)
        above = np.triu(np.ones_like(marks[0][m:, m:], dtype=bool), k=1)
        among = [mark[m:, m:][above] for mark in marks]
        self._shared_among = int(((among[0] > 0) & (among[1] > 0)).sum())
        self._different_among = int((among[0] != among[1]).sum())

    def shared(self, batch: IntArray) -> IntArray:
        """Number of pairs adjacent in both skeletons, for each permutation."""
        i, j = self._rows, self._columns
        edges = self._latent[0][i, j] > 0  # only the true edges between latents can be shared
        found = self._latent[1][batch[:, i[edges]], batch[:, j[edges]]] > 0
        among_latents: IntArray = found.sum(axis=1)
        return self._over_latents(self.shared_children, batch) + among_latents + self._shared_among

    def differences(self, batch: IntArray) -> IntArray:
        """Number of pairs with different marks, for each permutation."""
        i, j = self._rows, self._columns
        differ = self._latent[1][batch[:, i], batch[:, j]] != self._latent[0][i, j]
        among_latents: IntArray = differ.sum(axis=1)
        return self._over_latents(self._different_children, batch) + among_latents + self._different_among

    def shared_by_swaps(self, permutation: IntArray) -> IntArray:
        """(m, m) how many more pairs are adjacent in both skeletons if two latents are swapped."""
        A, B = np.greater(self._latent[0], 0), np.greater(self._found(permutation), 0)
        more = _swapped(_rows_in_common(A, B)) + 2 * (A & B)  # an edge between the two stays one
        return more + _swapped(self.shared_children[:, permutation])

    def differences_by_swaps(self, permutation: IntArray) -> IntArray:
        """(m, m) how many more pairs have different marks if two latents are swapped."""
        A, B = self._latent[0], self._found(permutation)
        equal = np.zeros_like(A)
        for mark in range(4):
            equal += _rows_in_common(np.equal(A, mark), np.equal(B, mark))
        # Rows have the diagonal and the pair itself too, which are looked at apart.
        is_equal = np.equal(A, B).astype(np.int64)
        crossed = np.equal(B.T, 0).astype(np.int64) + np.equal(A, 0)
        more = _swapped(equal) - crossed - crossed.T + is_equal + is_equal.T + 2
        more += np.equal(A, B.T) - is_equal
        return _swapped(self._different_children[:, permutation]) - more

    def _found(self, permutation: IntArray) -> IntArray:
        """Marks between estimated latents, in the order of the true ones."""
        return self._latent[1][np.ix_(permutation, permutation)]

    def matching(self, permutation: IntArray) -> dict[str, str | None]:
        """The true latent of each estimated one, where they share an edge."""
        true, found = self.latents
        edges = (self._latent[0] > 0) & (self._latent[1][np.ix_(permutation, permutation)] > 0)
        partner: dict[str, str | None] = dict.fromkeys(found)
        for a, b in enumerate(permutation):
            if a < len(true) and b < len(found) and (edges[a].any() or self.shared_children[a, b]):
                partner[found[b]] = true[a]
        return partner

    def _over_latents(self, table: IntArray, batch: IntArray) -> IntArray:
        total: IntArray = table[np.arange(self.m), batch].sum(axis=1)
        return total


def _rows_in_common(A: NDArray[np.bool_], B: NDArray[np.bool_]) -> IntArray:
    """(m, m) how many columns a row of A and one of B have in common."""
    return np.rint(A.astype(np.float64) @ B.T.astype(np.float64)).astype(np.int64)


def _swapped(table: IntArray) -> IntArray:
    """(m, m) what a sum over the diagonal of a table gains if two rows are swapped."""
    own = np.diag(table)
    return np.asarray(table + table.T - own[:, None] - own, dtype=np.int64)


def _best_permutations(classes: _Pair, papers: _Pair) -> tuple[IntArray, IntArray]:
    """Permutations with the most shared edges: one with the smallest shd, one with the smallest shd_paper."""
    if classes.m <= MAX_EXACT:
        every = _all_permutations(classes.m)
        shared = classes.shared(every)
        tied = every[shared == shared.max()]
        # The skeletons of the two classes are the same, so their ties are too. Remaining ties are open; we
        # take the first in lexicographic order so that runs repeat.
        return tied[classes.differences(tied).argmin()], tied[papers.differences(tied).argmin()]
    return _climbed_permutations(classes, papers)


def _climbed_permutations(classes: _Pair, papers: _Pair) -> tuple[IntArray, IntArray]:
    """The heuristic beyond ``MAX_EXACT``: assignment on shared children, then swaps.

    The two climbs break ties differently and so may walk to different places; they are repeated until both
    have the same number of shared edges, so that F1 and both distances speak of equally good matchings.
    """
    _, assigned = linear_sum_assignment(classes.shared_descendants, maximize=True)
    paper = np.asarray(assigned, dtype=np.int64)
    while True:
        best = _climb(paper, classes, classes)
        paper = _climb(best, classes, papers)
        if classes.shared(paper[None])[0] == classes.shared(best[None])[0]:
            return best, paper


def _climb(permutation: IntArray, sharing: _Pair, differing: _Pair) -> IntArray:
    """Swap two latents while that shares more edges, or as many with fewer differences."""
    swaps = np.triu_indices(len(permutation), k=1)
    while True:
        shared = sharing.shared_by_swaps(permutation)[swaps]
        differences = differing.differences_by_swaps(permutation)[swaps]
        best = np.lexsort((differences, -shared))[0]
        if (-shared[best], differences[best]) >= (0, 0):
            return permutation
        a, b = swaps[0][best], swaps[1][best]
        permutation = permutation.copy()
        permutation[[a, b]] = permutation[[b, a]]


@cache
def _all_permutations(m: int) -> IntArray:
    """Every permutation of ``m`` latents, (m!, m), in lexicographic order."""
    table = np.array(list(permutations(range(m))), dtype=np.int64).reshape(factorial(m), m)
    table.setflags(write=False)
    return table


def _reached(marks: IntArray, m: int) -> NDArray[np.bool_]:
    """(m, p) the indicators of each latent; of a latent without any, those of the latents it points at."""
    reach = np.asarray((marks[:m, m:] == 1), dtype=bool)
    down = marks[:m, :m] == 1
    for _ in range(m):
        bare = ~reach.any(axis=1)
        if not bare.any():
            break
        reach[bare] = (down[bare].astype(np.int64) @ reach.astype(np.int64)) > 0
    return reach


def _marks(graph: CPDAG, observed: tuple[str, ...], m: int) -> IntArray:
    """Marks, 0 none, 1 →, 2 ←, 3 undirected, over ``m`` latents (isolated ones added), then the observed."""
    position = {name: k for k, name in enumerate(graph.names)}
    order = [position[name] for name in (*graph.latents, *observed)]
    A = graph.adjacency[np.ix_(order, order)].astype(np.int64)
    n = len(graph.latents)
    keep = [*range(n), *range(m, m + len(observed))]
    marks = np.zeros((m + len(observed),) * 2, dtype=np.int64)
    marks[np.ix_(keep, keep)] = A + 2 * A.T
    return marks


def _class_over_groups(graph: DAG | CPDAG) -> CPDAG:
    return graph.cpdag() if isinstance(graph, DAG) else graph


def _class_of_member(graph: DAG | CPDAG) -> CPDAG:
    return markov_class(graph if isinstance(graph, DAG) else graph.member())


def _ratio(part: int, whole: int, empty: float = 1.0) -> float:
    return part / whole if whole else empty


def _require_same_observed(truth: DAG | CPDAG, estimate: DAG | CPDAG) -> None:
    missing = [name for name in truth.observed if name not in set(estimate.observed)]
    extra = [name for name in estimate.observed if name not in set(truth.observed)]
    if not missing and not extra:
        return
    parts = [f"the estimate lacks {listing(missing)}"] if missing else []
    parts += [f"the truth lacks {listing(extra)}"] if extra else []
    raise GraphError(
        f"Both graphs must have the same observed variables; {' and '.join(parts)}. "
        "Check the names, and which variables are marked latent."
    )
