"""What a graph implies without any numbers: d-separation, and generic ranks by trek separation.

A covariance between A and B flows along *treks*: up from a in A to some top t, then down to b in B::

                 t                  Sullivant, Talaska and Draisma (2010): for almost all parameters
               ↙   ↘                the rank of Cov(A, B) is the largest number of treks from A to B
              ·     ·               whose up-sides share no variable and whose down-sides share none,
             ↙       ↘              equally the smallest |C_A| + |C_B| such that every trek passes
            a         b             C_A on its way up or C_B on its way down.

That is how latents show in the covariance of observed variables: a group of k latents is a bottleneck of k.
"""

from __future__ import annotations

from collections.abc import Iterable

from unmeasured.errors import GraphError, listing
from unmeasured.graphs.bitsets import bits, mask_of
from unmeasured.graphs.cpdag import DAG

Names = str | Iterable[str]


def is_d_separated(dag: DAG, a: Names, b: Names, given: Names = ()) -> bool:
    """Whether all paths between two sets of variables are blocked by a third; latents are nodes like others.

    Parameters
    ----------
    dag : DAG
        The graph.
    a, b, given : str or iterable of str
        One name or several; the three sets must not overlap.

    Examples
    --------
    >>> dag = DAG.from_edges([("g", "x"), ("g", "y"), ("x", "sum"), ("y", "sum")], latents=["g"])
    >>> is_d_separated(dag, "x", "y"), is_d_separated(dag, "x", "y", "g")
    (False, True)
    >>> is_d_separated(dag, "x", "y", ["g", "sum"])
    False
    """
    sets = {"a": _mask(dag, a), "b": _mask(dag, b), "given": _mask(dag, given)}
    _refuse_overlap(dag, sets)
    # Lauritzen's criterion: separation in the moral graph of the smallest ancestral set.
    ancestral = _ancestral_set(dag, sets["a"] | sets["b"] | sets["given"])
    moral = _moral_neighbours(dag, ancestral)
    reached = frontier = sets["a"]
    while frontier:
        spread = 0
        for node in bits(frontier):
            spread |= moral[node]
        frontier = spread & ~reached & ~sets["given"]
        reached |= frontier
    return not reached & sets["b"]


def generic_rank(dag: DAG, a: Names, b: Names) -> int:
    """Rank of the cross-covariance of two sets of variables, for almost all parameters of the graph.

    Parameters
    ----------
    dag : DAG
        The graph of a linear model with independent noise in every variable.
    a, b : str or iterable of str
        Rows and columns of the cross-covariance; they may overlap.

    Examples
    --------
    One factor with four indicators: any two against the other two have rank 1 (Spearman's tetrads).

    >>> dag = DAG.from_edges([("g", x) for x in ("x1", "x2", "x3", "x4")], latents=["g"])
    >>> generic_rank(dag, ["x1", "x2"], ["x3", "x4"])
    1
    >>> generic_rank(dag, ["x1", "x2"], ["x1", "x2"])
    2
    """
    rows, columns = _mask(dag, a), _mask(dag, b)
    network = _trek_network(dag, rows, columns)
    rank = 0
    while _augment(network):
        rank += 1
    return rank


_SOURCE, _SINK = 0, 1


def _trek_network(dag: DAG, rows: int, columns: int) -> list[set[int]]:
    """Arcs of capacity one, so that integer flows from source to sink are the wanted trek systems.

    Each variable v has a way up and a way down, each split in an entry and an exit with one arc between,
    which lets one trek pass. Up: exit of v to entry of each parent; over the top: exit up to entry down of v
    itself; down: exit of v to entry of each child.
    """
    d = len(dag.names)
    up_in, up_out, down_in, down_out = (range(2 + k * d, 2 + (k + 1) * d) for k in range(4))
    arcs: list[set[int]] = [set() for _ in range(2 + 4 * d)]
    for v in range(d):
        arcs[up_in[v]].add(up_out[v])
        arcs[down_in[v]].add(down_out[v])
        arcs[up_out[v]] = {down_in[v], *(up_in[p] for p in bits(dag.parent_masks[v]))}
        arcs[down_out[v]] = {down_in[c] for c in bits(dag.child_masks[v])}
    arcs[_SOURCE] = {up_in[v] for v in bits(rows)}
    for v in bits(columns):
        arcs[down_out[v]].add(_SINK)
    return arcs


def _augment(arcs: list[set[int]]) -> bool:
    """Send one more unit from source to sink, turning round the arcs of a path; False when there is none."""
    came_from = {_SOURCE: _SOURCE}
    stack = [_SOURCE]
    while stack and _SINK not in came_from:
        node = stack.pop()
        for target in arcs[node]:
            if target not in came_from:
                came_from[target] = node
                stack.append(target)
    if _SINK not in came_from:
        return False
    node = _SINK
    while node != _SOURCE:
        before = came_from[node]
        arcs[before].discard(node)
        arcs[node].add(before)
        node = before
    return True


def _mask(dag: DAG, names: Names) -> int:
    return mask_of(dag.variables.index(name) for name in ([names] if isinstance(names, str) else names))


def _refuse_overlap(dag: DAG, sets: dict[str, int]) -> None:
    for first, second in (("a", "b"), ("a", "given"), ("b", "given")):
        shared = sets[first] & sets[second]
        if shared:
            names = listing(dag.names[i] for i in bits(shared))
            raise GraphError(f"{names} is in both {first} and {second}; d-separation is about disjoint sets.")


def _ancestral_set(dag: DAG, nodes: int) -> int:
    """The nodes and all their ancestors."""
    found = frontier = nodes
    while frontier:
        above = 0
        for node in bits(frontier):
            above |= dag.parent_masks[node]
        frontier = above & ~found
        found |= frontier
    return found


def _moral_neighbours(dag: DAG, nodes: int) -> dict[int, int]:
    """Neighbours within an ancestral set once parents of a common child are joined and arrows dropped."""
    moral = dict.fromkeys(bits(nodes), 0)
    for child in moral:
        family = dag.parent_masks[child] | 1 << child
        for member in bits(family):
            moral[member] |= family
    return moral
