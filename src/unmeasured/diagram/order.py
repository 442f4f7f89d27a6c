"""The order within the columns of a layered drawing, so that few lines cross.

A drawing is a list of columns of cells, and every line joins cells of neighbouring columns. Crossings then depend
on the orders alone: two lines cross where their cells stand in opposite orders at their two ends. A first
order comes from ``fast_sugiyama`` (weighted medians with exchanges, as in ``dot``). Then two moves are repeated until
neither helps: sifting takes each cell to the best place in its column, and a line that passes several columns is
taken out and put back along its best route (a shortest path over the places in between). The same follows from orders
that were shaken a little. Where the graph is nearly a tree, as a hierarchy is, whole branches are moved as well. The
seed is fixed, so the same graph gives the same order everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise, product

import fast_sugiyama
import numpy as np

from unmeasured.arrays import Floats

Columns = list[list[int]]
Line = tuple[int, int]  # two cells of neighbouring columns, the left one first

_SWEEPS = 40  # sifting stops earlier where nothing changes, as it did after at most 22 sweeps on 60 models
_TRIALS, _EFFORT = 40, 8_000  # attempts to leave a local optimum: at most, and times the number of lines
# With more lines, as of 100 variables and 150 paths, nobody can follow single ones, and improving took minutes.
_MOST_IMPROVED = 1_000
_NEARLY_A_TREE = 0.1  # lines beyond those of a tree, as a part of its cells
_MINIMISERS = ("barycenter", "median")


def ordered(
    columns: Sequence[Sequence[int]],
    lines: Sequence[Line],
    effort: float = 1.0,
    start: Sequence[Sequence[int]] | None = None,
) -> Columns:
    """Columns of the same cells in an order with few crossings.

    Parameters
    ----------
    effort
        What part of the attempts to leave local optima is made.
    start
        A good order that is known already.

    Examples
    --------
    >>> crossings(ordered([[0, 1], [2, 3]], [(0, 3), (1, 2)]), [(0, 3), (1, 2)])
    0
    """
    given = [list(column) for column in columns]
    if len(given) < 2 or not lines:
        return given
    starts = [given, *(_from_library(given, lines, how) for how in _MINIMISERS)]
    links = _Links(given, lines)
    if start is not None:
        starts.append([list(column) for column in start])
    if len(lines) > _MOST_IMPROVED:
        return min(starts, key=links.crossings)
    best = min((links.improved(start) for start in starts), key=links.crossings)
    n_cells = sum(map(len, given))
    if effort >= 1.0 and len(lines) < (1.0 + _NEARLY_A_TREE) * n_cells and links.crossings(best):
        best = min(best, links.improved(links.with_branches_moved(best)), key=links.crossings)
    # Fixed seed: the same graph gives the same drawing.
    rng = np.random.default_rng(0)
    for _ in range(int(effort * min(_TRIALS, _EFFORT // len(lines)))):
        if not links.crossings(best):
            break
        best = min(best, links.improved(_shaken(best, rng)), key=links.crossings)
    return best


def _shaken(columns: Columns, rng: np.random.Generator) -> Columns:
    """The columns, some of them in part in another order."""
    shaken = [list(column) for column in columns]
    for column in shaken:
        if len(column) > 1 and rng.random() < 0.5:
            i, j = sorted(rng.integers(0, len(column) + 1, size=2))
            column[i:j] = rng.permutation(column[i:j]).tolist()
    return shaken


def crossings(columns: Sequence[Sequence[int]], lines: Sequence[Line]) -> int:
    """How many pairs of lines cross.

    >>> crossings([[0, 1], [2, 3]], [(0, 3), (1, 2)])
    1
    """
    return _Links(columns, lines).crossings(columns)


def _from_library(columns: Columns, lines: Sequence[Line], how: str) -> Columns:
    """The order of the library. Lines of length one leave it no choice of layers within a connected graph."""
    layouts = fast_sugiyama.from_edges(list(lines), crossing_minimization=how, transpose=True)  # type: ignore[arg-type]
    x = {cell: at for positions, *_ in layouts for cell, (at, _) in positions}
    return [sorted(column, key=lambda cell: x.get(cell, 0.0)) for column in columns]


class _Links:
    """Which cell is joined to which in the next column, as matrices."""

    def __init__(self, columns: Sequence[Sequence[int]], lines: Sequence[Line]) -> None:
        column_of = {cell: k for k, column in enumerate(columns) for cell in column}
        self.index: dict[int, int] = {cell: i for column in columns for i, cell in enumerate(sorted(column))}
        self.chains = _chains(columns, lines)
        self.right: list[Floats] = [np.zeros((len(a), len(b))) for a, b in pairwise(columns)]
        for a, b in lines:
            self.right[column_of[a]][self.index[a], self.index[b]] += 1.0

    def _rows(self, column: Sequence[int]) -> list[int]:
        return [self.index[cell] for cell in column]

    def crossings(self, columns: Sequence[Sequence[int]]) -> int:
        total = 0.0
        for k, matrix in enumerate(self.right):
            ordered = matrix[self._rows(columns[k])][:, self._rows(columns[k + 1])]
            total += float(np.triu(_inversions(ordered), 1).sum())
        return int(total)

    def improved(self, columns: Columns) -> Columns:
        """The order after sifting and new routes, back and forth, for as long as that helps."""
        columns = [list(column) for column in columns]
        # What was looked at since its columns last changed need not be looked at again.
        changes = [0] * len(columns)
        seen: dict[int, int] = {}
        moves: list[tuple[range, Callable[[], bool]]] = [
            (range(max(k - 1, 0), min(k + 2, len(columns))), partial(self._sift, columns, k))
            for k in (*range(len(columns)), *reversed(range(len(columns))))
        ]
        moves += [
            (range(first - 1, first + len(chain) - 1), partial(self._rerouted, columns, first, chain))
            for first, chain in self.chains
        ]
        for _ in range(_SWEEPS):
            moved = False
            for m, (touched, move) in enumerate(moves):
                state = sum(changes[touched.start : touched.stop])
                if seen.get(m) == state:
                    continue
                if move():
                    moved = True
                    for k in touched:
                        changes[k] += 1
                else:
                    seen[m] = state
            if not moved:
                break
        return columns

    def with_branches_moved(self, columns: Columns) -> Columns:
        """The order after each cell was taken to another place with all that hangs on it, for as long as that helps.

        Where most cells have one line from before, as in a hierarchy, a cell that moves alone crosses more.
        """
        best, least, moved = columns, self.crossings(columns), True
        while moved and least:
            moved = False
            for k, column in enumerate(best[:-1]):
                for u, j in product(range(len(column)), repeat=2):
                    order = [*column]
                    order.insert(j, order.pop(u))
                    tried = self._followed(best, k, order)
                    count = self.crossings(tried)
                    if count < least:
                        best, least, column, moved = tried, count, order, True
        return best

    def _followed(self, columns: Columns, k: int, order: list[int]) -> Columns:
        """The columns with another order in one of them, and what is behind it in the order of what it hangs on."""
        columns = [*columns[:k], order, *columns[k + 1 :]]
        for j in range(k + 1, len(columns)):
            matrix = self.right[j - 1][self._rows(columns[j - 1])][:, self._rows(columns[j])]
            count = matrix.sum(axis=0)
            place = np.arange(len(matrix)) @ matrix / np.maximum(count, 1.0)
            for i in np.flatnonzero(count == 0):  # what hangs on nothing stays below its neighbour
                place[i] = place[i - 1] if i else 0.0
            columns[j] = [columns[j][i] for i in np.argsort(place, kind="stable")]
        return columns

    def _rerouted(self, columns: Columns, first: int, chain: Sequence[int]) -> bool:
        """Put a line that passes columns from ``first`` on along its best route; whether any crossing went away."""
        inner = range(first, first + len(chain) - 2)
        places = [columns[first - 1].index(chain[0])]
        bare = {first - 1: columns[first - 1], inner.stop: columns[inner.stop]}
        for k, cell in zip(inner, chain[1:-1]):
            places.append(columns[k].index(cell))
            bare[k] = [other for other in columns[k] if other != cell]
        places.append(columns[inner.stop].index(chain[-1]))
        steps = []  # what the line crosses from one place to another, between two columns
        for k in range(first - 1, inner.stop):
            matrix = self.right[k][self._rows(bare[k])][:, self._rows(bare[k + 1])]
            start = places[0] if k == first - 1 else None
            end = places[-1] if k + 1 == inner.stop else None
            steps.append(_crossed(matrix, start, end))
        ends = [0, *places[1:-1], 0]
        now = sum(float(step[i, j]) for step, i, j in zip(steps, ends, ends[1:]))
        if not now:
            return False
        cost, back = steps[0][0], []
        for step in steps[1:]:
            total = cost[:, None] + step
            back.append(total.argmin(axis=0))
            cost = total.min(axis=0)
        if float(cost[0]) > now - 0.5:
            return False
        j = 0
        for k, cell, way in zip(reversed(inner), reversed(chain[1:-1]), reversed(back)):
            j = int(way[j])
            columns[k] = [*bare[k][:j], cell, *bare[k][j:]]
        return True

    def _sift(self, columns: Columns, k: int) -> bool:
        """Move each cell of a column to its best place; whether any crossing went away."""
        column = columns[k]
        if len(column) < 2:
            return False
        rows = self._rows(column)
        above = np.zeros((len(column), len(column)))  # [u, v]: crossings of their lines with u above v
        if k:
            above += _inversions(self.right[k - 1].T[rows][:, self._rows(columns[k - 1])])
        if k < len(self.right):
            above += _inversions(self.right[k][rows][:, self._rows(columns[k + 1])])
        if not above.any():
            return False
        gain = (above - above.T).tolist()  # what it costs to have u above v rather than below
        order, moved = list(range(len(column))), False
        for u in range(len(column)):
            i = order.index(u)
            rest = order[:i] + order[i + 1 :]
            # What it costs to stand before place j of the others, less the cost of the first place.
            cost = [0.0, *accumulate(-gain[u][v] for v in rest)]
            j = min(range(len(cost)), key=cost.__getitem__)
            if cost[j] < cost[i] - 0.5:
                order, moved = [*rest[:j], u, *rest[j:]], True
        columns[k] = [column[i] for i in order]
        return moved


def _inversions(matrix: Floats) -> Floats:
    """(n, n) how many pairs of lines of rows u and v cross where u stands above v; columns are in their order."""
    before = np.cumsum(matrix, axis=1) - matrix
    return np.asarray(matrix @ before.T)


def _crossed(matrix: Floats, start: int | None, end: int | None) -> Floats:
    """How many lines a new one crosses from place i of the left column to place j of the right one.

    Where an end is a cell that is there already, its own lines are not crossed, and there is one row or column only.
    """
    n, m = matrix.shape
    before = np.zeros((n + 1, m + 1))
    before[1:, 1:] = matrix.cumsum(axis=0).cumsum(axis=1)
    # Lines from above its start to below its end, and the other way round.
    rows, after = (
        (slice(None), slice(None)) if start is None else (slice(start, start + 1), slice(start + 1, start + 2))
    )
    columns, beyond = (slice(None), slice(None)) if end is None else (slice(end, end + 1), slice(end + 1, end + 2))
    return np.asarray(before[rows, m:] - before[rows, beyond] + before[n:, columns] - before[after, columns])


def _chains(columns: Sequence[Sequence[int]], lines: Sequence[Line]) -> list[tuple[int, list[int]]]:
    """Lines over several columns: the first column in between, and all cells from one end to the other.

    A cell in between has one line on either side.
    """
    column_of = {cell: k for k, column in enumerate(columns) for cell in column}
    after: dict[int, list[int]] = {}
    before: dict[int, int] = {}
    for a, b in lines:
        after.setdefault(a, []).append(b)
        before[b] = before.get(b, 0) + 1
    passing = {cell for cell in column_of if before.get(cell) == 1 and len(after.get(cell, ())) == 1}
    found = []
    for a, ends in after.items():
        for b in ends:
            if a in passing or b not in passing:
                continue
            chain = [a, b]
            while chain[-1] in passing:
                chain.append(after[chain[-1]][0])
            found.append((column_of[b], chain))
    return found
