"""A few frozen, named graphs that tests share, each drawn where it is defined.

``tests/conftest.py`` puts this folder on the path, so a test says ``from graphs_zoo import one_factor``.
"""

from __future__ import annotations

from collections.abc import Iterable

from unmeasured.graphs import DAG


def measured(group: Iterable[str], indicators: Iterable[str]) -> list[tuple[str, str]]:
    """Edges from every latent of a group to every indicator."""
    return [(latent, x) for latent in group for x in indicators]


def _x(*numbers: int) -> list[str]:
    return [f"x{i}" for i in numbers]


#        g
#     ╱ │ │ ╲
#    x1 x2 x3 x4
one_factor = DAG.from_edges(measured(["g"], _x(1, 2, 3, 4)), latents=["g"])

#        L1              L2            not adjacent; x7 is a common child
#     ╱  │  ╲  ╲     ╱  ╱ │ ╲
#    x1 x2  x3   x7    x4 x5 x6
shared_child = DAG.from_edges(
    [*measured(["L1"], _x(1, 2, 3, 7)), *measured(["L2"], _x(4, 5, 6, 7))],
    latents=["L1", "L2"],
    names=["L1", "L2", *_x(1, 2, 3, 4, 5, 6, 7)],
)

_two_groups = [*measured(["L1"], _x(1, 2)), *measured(["L2", "L3"], _x(3, 4, 5, 6))]

#        L1 ─────► {L2, L3}            same class over groups as the next one,
#       ╱  ╲       ╱╱ │ │ ╲╲           but another textbook CPDAG
#      x1  x2     x3 x4 x5 x6
two_group_chain = DAG.from_edges([("L1", "L2"), ("L1", "L3"), *_two_groups], latents=["L1", "L2", "L3"])

#        L1 ◄───── {L2, L3}
#       ╱  ╲       ╱╱ │ │ ╲╲
#      x1  x2     x3 x4 x5 x6
two_group_chain_reversed = DAG.from_edges([("L2", "L1"), ("L3", "L1"), *_two_groups], latents=["L1", "L2", "L3"])

#      L1 ─► {L3, L4} ◄─ L2            a v-structure between groups: directed in the class
#     ╱  ╲    ╱ … ╲     ╱  ╲
#    x1  x2  x5 … x8   x3  x4
group_collider = DAG.from_edges(
    [
        *measured(["L1"], ["L3", "L4", *_x(1, 2)]),
        *measured(["L2"], ["L3", "L4", *_x(3, 4)]),
        *measured(["L3", "L4"], _x(5, 6, 7, 8)),
    ],
    latents=["L1", "L2", "L3", "L4"],
)

#      L1 ─► L2 ─► L3                  no v-structure: all of it undirected
#     ╱│╲   ╱│╲   ╱│╲
#    x1-3  x4-6  x7-9
latent_chain = DAG.from_edges(
    [
        ("L1", "L2"),
        ("L2", "L3"),
        *measured(["L1"], _x(1, 2, 3)),
        *measured(["L2"], _x(4, 5, 6)),
        *measured(["L3"], _x(7, 8, 9)),
    ],
    latents=["L1", "L2", "L3"],
)

#    p ─► L ─► y ─► z                  no factor model: observed variables cause, too
#         ╲──► x
mimic = DAG.from_edges([("p", "L"), ("L", "y"), ("L", "x"), ("y", "z")], latents=["L"])

#        T1 ──► T2                    latents above latents: T1 – T2 undirected, all other edges directed
#       ╱│╲    ╱│╲
#     F1-F3   F4-F6                   two items each
two_traits = DAG.from_edges(
    [
        ("T1", "T2"),
        *measured(["T1"], ["F1", "F2", "F3"]),
        *measured(["T2"], ["F4", "F5", "F6"]),
        *(edge for k in range(6) for edge in measured([f"F{k + 1}"], _x(2 * k + 1, 2 * k + 2))),
    ],
    latents=["F1", "F2", "F3", "F4", "F5", "F6", "T1", "T2"],
)

zoo = {
    "one_factor": one_factor,
    "shared_child": shared_child,
    "two_group_chain": two_group_chain,
    "two_group_chain_reversed": two_group_chain_reversed,
    "group_collider": group_collider,
    "latent_chain": latent_chain,
    "mimic": mimic,
    "two_traits": two_traits,
}
