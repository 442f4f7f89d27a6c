"""Ground truth by brute force: all small DAGs, their classes by definition, exact ranks.

Nothing here uses the code under test beyond plain containers; slow and obvious on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, permutations, product

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.uint8]
PRIME = 2_147_483_647  # 2^31 - 1


def is_acyclic(matrix: Matrix) -> bool:
    """Whether powers of the matrix vanish, as they do only without cycles."""
    power = matrix.astype(np.int64)
    for _ in range(len(matrix)):
        if not power.any():
            return True
        power = np.minimum(power @ matrix, 1)
    return not power.any()


@lru_cache
def all_dags(d: int) -> tuple[Matrix, ...]:
    """Every DAG on d labelled nodes: 1, 3, 25, 543, ..."""
    pairs = list(combinations(range(d), 2))
    found = []
    for choice in product((0, 1, 2), repeat=len(pairs)):
        matrix = np.zeros((d, d), dtype=np.uint8)
        for (i, j), kind in zip(pairs, choice):
            if kind:
                matrix[(i, j) if kind == 1 else (j, i)] = 1
        if is_acyclic(matrix):
            found.append(matrix)
    return tuple(found)


def markov_key(matrix: Matrix) -> tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int, int]]]:
    """Skeleton and v-structures, from the definition."""
    d = range(len(matrix))
    joined = matrix | matrix.T
    skeleton = frozenset((i, j) for i, j in combinations(d, 2) if joined[i, j])
    colliders = frozenset(
        (a, b, c) for a, b, c in permutations(d, 3) if a < c and matrix[a, b] and matrix[c, b] and not joined[a, c]
    )
    return skeleton, colliders


@lru_cache
def classes(d: int) -> tuple[tuple[Matrix, ...], ...]:
    """All Markov equivalence classes on d nodes, each with all its members."""
    together: dict[object, list[Matrix]] = {}
    for matrix in all_dags(d):
        together.setdefault(markov_key(matrix), []).append(matrix)
    return tuple(tuple(members) for members in together.values())


def union(members: list[Matrix] | tuple[Matrix, ...]) -> Matrix:
    """The CPDAG by definition: an arrow for each direction that some member has."""
    return np.maximum.reduce(list(members))


def as_set(matrices: Iterator[Matrix] | tuple[Matrix, ...] | list[Matrix]) -> set[bytes]:
    """Matrices of one size as a set, to compare collections whatever their order."""
    return {np.ascontiguousarray(matrix, dtype=np.uint8).tobytes() for matrix in matrices}


def random_dag(rng: np.random.Generator, d: int, density: float) -> Matrix:
    """A random DAG whose order is random, too."""
    upper = np.triu(rng.random((d, d)) < density, 1).astype(np.uint8)
    order = rng.permutation(d)
    return upper[np.ix_(order, order)]


def exact_covariance(matrix: Matrix, rng: np.random.Generator) -> list[list[int]]:
    """Covariance of a linear model with random parameters, in exact arithmetic modulo a large prime.

    With weights uniform over the field, a minor that is not identically zero vanishes with probability of
    the order of 1e-8 (Schwartz and Zippel), so ranks computed from this are the generic ones, without rounding.
    """
    d = len(matrix)
    weights = [[int(rng.integers(1, PRIME)) if matrix[i, j] else 0 for j in range(d)] for i in range(d)]
    noise = [int(rng.integers(1, PRIME)) for _ in range(d)]
    # effect = I + F + F^2 + ... , which ends because the graph is acyclic
    effect = [[int(i == j) for j in range(d)] for i in range(d)]
    for _ in range(d):
        effect = [
            [(int(i == j) + sum(weights[i][k] * effect[k][j] for k in range(d))) % PRIME for j in range(d)]
            for i in range(d)
        ]
    return [[sum(noise[k] * effect[k][i] * effect[k][j] for k in range(d)) % PRIME for j in range(d)] for i in range(d)]


def exact_rank(rows: list[list[int]]) -> int:
    """Rank modulo the prime, by elimination."""
    rows, rank = [row[:] for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        inverse = pow(rows[rank][column], -1, PRIME)
        for r in range(rank + 1, len(rows)):
            factor = rows[r][column] * inverse % PRIME
            rows[r] = [(x - factor * y) % PRIME for x, y in zip(rows[r], rows[rank])]
        rank += 1
    return rank
