"""Sets of nodes as Python integers: bit ``i`` stands for node ``i``.

The graphs here have 5 to 60 nodes, so a set of nodes is one machine word or so, and "is any parent of a not
adjacent to b" is two operations on integers. Searches ask that many thousands of times; numpy's overhead per
call would dominate on arrays this small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Adjacency = NDArray[np.uint8]
ZeroOne = NDArray[np.bool_ | np.integer[Any]]


def bits(mask: int) -> Iterator[int]:
    """Members of a set, lowest first.

    >>> list(bits(0b1011))
    [0, 1, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def mask_of(members: Iterable[int]) -> int:
    """The set with these members.

    >>> mask_of([0, 1, 3]) == 0b1011
    True
    """
    mask = 0
    for member in members:
        mask |= 1 << member
    return mask


def row_masks(adjacency: ZeroOne) -> list[int]:
    """One set per row: the columns that are not zero. For ``A[i, j]`` = i → j these are the children."""
    packed = np.packbits(adjacency, axis=1, bitorder="little")
    width, data = packed.shape[1], packed.tobytes()
    return [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width or 1)]


def adjacency_of(rows: Sequence[int]) -> Adjacency:
    """The 0/1 matrix with these rows; undoes :func:`row_masks`.

    >>> adjacency_of([0b10, 0b00])
    array([[0, 1],
           [0, 0]], dtype=uint8)
    """
    d = len(rows)
    if d == 0:
        return np.zeros((0, 0), dtype=np.uint8)
    width = (d + 7) // 8
    packed = np.frombuffer(b"".join(row.to_bytes(width, "little") for row in rows), dtype=np.uint8)
    return np.unpackbits(packed.reshape(d, width), axis=1, count=d, bitorder="little")


def topological_order(parents: Sequence[int], children: Sequence[int]) -> list[int]:
    """Causes before effects, the lowest index first among equals; short of some nodes if there is a cycle."""
    order: list[int] = []
    done = 0
    ready = mask_of(node for node, above in enumerate(parents) if not above)
    while ready:
        low = ready & -ready
        ready ^= low
        done |= low
        node = low.bit_length() - 1
        order.append(node)
        for child in bits(children[node]):
            if not parents[child] & ~done:
                ready |= 1 << child
    return order


def one_cycle(parents: Sequence[int], children: Sequence[int]) -> list[int]:
    """One directed cycle from its lowest node along the arrows back to it; empty when there is none."""
    left = (1 << len(parents)) - 1
    left &= ~mask_of(topological_order(parents, children))
    if not left:
        return []
    # Every node left has a parent left, so walking upwards must meet itself.
    walk = [next(bits(left))]
    while walk[-1] not in walk[:-1]:
        walk.append(next(bits(parents[walk[-1]] & left)))
    cycle = walk[walk.index(walk[-1]) + 1 :][::-1]
    lowest = cycle.index(min(cycle))
    cycle = cycle[lowest:] + cycle[:lowest]
    return [*cycle, cycle[0]]
