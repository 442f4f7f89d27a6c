"""Blocks of latents below common causes: which there might be, as if the latents had been observed.

Three or more latents with a common cause, and nothing else between them, have covariances of rank one with all other
latents, whichever of them are looked at (Huang et al. 2022). Everything here uses nothing but the covariance that the
latents are fitted with: closed forms of rank constraints choose triples, small fits grow them into blocks, and moves of
single latents improve these while the predicted score rises.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np

from unmeasured.arrays import Bools, Floats, Ints
from unmeasured.data.sample import Sample
from unmeasured.graphs.levels import LEAST_FACETS
from unmeasured.kernels.savings import effects_along
from unmeasured.models.parameters import Pattern, pattern_of_effects
from unmeasured.models.solve import Check, Problem, solve
from unmeasured.search.budget import BUDGET
from unmeasured.search.climb import Proposal, climb
from unmeasured.search.latent_graph.edges import climbed_graph
from unmeasured.search.score import GroupBic, covariance_root

Blocks = tuple[tuple[int, ...], ...]  # places among the top nodes, each in one block at most


def choice_of_edges(n_nodes: int, n_edges: int) -> float:
    """The logarithm of the number of graphs with so many edges.

    The best of many graphs gains by chance more than its paths cost. So where graphs over different numbers of nodes
    are compared, each is charged for being one of all with as many edges (extended BIC; Foygel and Drton 2010).

    >>> round(choice_of_edges(4, 3), 3)  # three of six pairs
    2.996
    """
    return math.log(math.comb(n_nodes * (n_nodes - 1) // 2, n_edges))


def choice_of_blocks(n_nodes: int, blocks: Sequence[Sequence[int]]) -> float:
    """The logarithm of the number of ways to choose blocks of these sizes.

    >>> round(choice_of_blocks(9, [(0, 1, 2), (3, 4, 5), (6, 7, 8)]), 3)  # 280 ways
    5.635
    """
    ways, left = 1, n_nodes
    for block in blocks:
        ways *= math.comb(left, len(block))
        left -= len(block)
    same = Counter(map(len, blocks))
    return math.log(ways) - sum(math.lgamma(count + 1) for count in same.values())


@dataclass(frozen=True, eq=False)
class Predicted:
    """Blocks of latents below common causes, if the latents had been observed."""

    blocks: Blocks
    value: float  # the score as far as it concerns the latents
    loadings: tuple[Floats, ...]  # of each block on its cause
    cov: Floats  # of the top nodes: those in no block, then the causes


class LatentScore:
    """Scores of blocks, as if latents had been observed with a covariance."""

    def __init__(
        self, cov: Floats, sizes: Sequence[int], n_samples: float, dimension_penalty: float, penalty: float
    ) -> None:
        sd = np.sqrt(np.diag(cov))
        self.corr = np.asarray(cov / np.outer(sd, sd))
        self.sd = sd
        self.sizes = tuple(sizes)
        self.n_samples, self.dimension_penalty, self.penalty = n_samples, dimension_penalty, penalty
        self.n_fitted = self.n_cached = 0
        ends = np.cumsum([0, *sizes]).tolist()
        self.at = [list(range(a, b)) for a, b in pairwise(ends)]
        self._memory: dict[Blocks, Predicted] = {}

    @cached_property
    def related(self) -> Bools:
        """(G, G) whether the first latents of two nodes are correlated beyond chance, with many nodes; else all are.

        A common cause is of latents that are all correlated with one another. Where many nodes have few edges, sets of
        unrelated ones satisfy every constraint, and would grow without end.
        """
        first = [latents[0] for latents in self.at]
        if len(first) <= BUDGET.exact_groups:
            return np.ones((len(first),) * 2, dtype=bool)
        corr = np.abs(self.corr[np.ix_(first, first)])
        return np.asarray(corr > BUDGET.related_latents / math.sqrt(self.n_samples))

    @property
    def singles(self) -> list[int]:
        """Top nodes of one latent: those that a block may have."""
        return [k for k, size in enumerate(self.sizes) if size == 1]

    @property
    def visited(self) -> list[Predicted]:
        """All blocks looked at so far."""
        return list(self._memory.values())

    def __call__(self, blocks: Blocks) -> Predicted:
        """What is predicted for some blocks; remembered."""
        blocks = tuple(sorted(tuple(sorted(block)) for block in blocks))
        if blocks not in self._memory:
            self._memory[blocks] = self._predicted(blocks)
        return self._memory[blocks]

    def rank_gain(self, blocks: Sequence[tuple[int, ...]]) -> Floats:
        """(B,) by how much single blocks of equal size, rank one with all others, are better than none; a bound.

        The likelihood of a rank constraint has a closed form: from the eigenvalues of ``S_AA P_AA``, ``P = S^-1``.
        """
        at = np.array([[self.at[k][0] for k in block] for block in blocks])
        P = np.linalg.inv(self.corr)
        products = self.corr[at[:, :, None], at[:, None, :]] @ P[at[:, :, None], at[:, None, :]]
        values = np.sort(np.maximum(np.linalg.eigvals(products).real, 1.0), axis=1)
        shortfall = 0.5 * np.log(values[:, :-1]).sum(axis=1)
        size, others = at.shape[1], len(self.corr) - at.shape[1]
        return np.asarray(self.dimension_penalty * (size - 1) * (others - 1) - self.n_samples * shortfall)

    def bounds_alone(self, blocks: Sequence[tuple[int, ...]]) -> Floats:
        """(B,) what :meth:`alone` gives single blocks of equal size at most: rank one is less than one cause asks."""
        size, others = len(blocks[0]), len(self.corr) - len(blocks[0])
        more = self._codimension(size) - (size - 1) * (others - 1)
        return self.rank_gain(blocks) + self.dimension_penalty * more + BUDGET.least_rise

    def _codimension(self, size: int) -> int:
        """How many constraints a block of so many latents is."""
        return size * (size - 3) // 2 + (len(self.corr) - size) * (size - 1)

    def alone(self, block: tuple[int, ...]) -> float:
        """By how much a block is better than no constraint at all, everything else connected."""
        return self.dimension_penalty * self._codimension(len(block)) - 0.5 * self.n_samples * self._fit((block,))[0]

    def _predicted(self, blocks: Blocks) -> Predicted:
        inside = {k for block in blocks for k in block}
        free = [k for k in range(len(self.sizes)) if k not in inside]
        discrepancy, loadings, cov = self._fit(blocks)
        sizes = (*(self.sizes[k] for k in free), *(1 for _ in blocks))
        arcs, saved = GroupBic(cov, sizes, self.n_samples, self.dimension_penalty).predicted()
        n_paths = (sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2 + len(inside)
        value = -0.5 * self.n_samples * discrepancy - self.dimension_penalty * n_paths + saved
        value -= self.penalty * (
            choice_of_blocks(len(self.sizes), blocks) + choice_of_edges(len(sizes), int(arcs.sum()))
        )
        return Predicted(blocks, value, loadings, cov)

    def climbed_value(self, predicted: Predicted, check: Check) -> float:
        """What is predicted with the graph over top nodes that a climb finds, where there were too many for the best.

        One look at each pair, as in the prediction, keeps edges that others make superfluous.
        """
        inside = {k for block in predicted.blocks for k in block}
        sizes = (*(k for i, k in enumerate(self.sizes) if i not in inside), *(1 for _ in predicted.blocks))
        graphs = GroupBic(predicted.cov, sizes, self.n_samples, self.dimension_penalty)
        rough, saved = graphs.predicted()
        arcs = climbed_graph(graphs, check=check)
        everything = np.triu(np.ones((len(sizes),) * 2, dtype=np.uint8), 1)
        gain = graphs.total(arcs) - graphs.total(everything) - saved
        choices = choice_of_edges(len(sizes), int(arcs.sum())) - choice_of_edges(len(sizes), int(rough.sum()))
        return predicted.value + gain - self.penalty * choices

    def _fit(self, blocks: Blocks) -> tuple[float, tuple[Floats, ...], Floats]:
        """Discrepancy, loadings, and covariance of top nodes; all of these are connected.

        What is in no block is connected without restrictions, so only its principal directions as seen from the blocks
        matter, as many as there are latents in these.
        """
        inside = [self.at[k][0] for block in blocks for k in block]
        free = [i for i in range(len(self.corr)) if i not in set(inside)]
        R = self.corr
        if not inside:
            return 0.0, (), R
        root = covariance_root(R[np.ix_(free, free)]) if free else np.zeros((0, 0))
        seen = np.linalg.solve(root, R[np.ix_(free, inside)]) if free else np.zeros((0, len(inside)))
        turn, strength, other = np.linalg.svd(seen, full_matrices=False)
        k, t, b = len(strength), len(blocks), len(inside)
        S = np.eye(k + b)
        S[:k, k:] = strength[:, None] * other
        S[k:, :k] = S[:k, k:].T
        S[k:, k:] = R[np.ix_(inside, inside)]
        effects, cov, noise = _first_guess(S, k, [len(block) for block in blocks])
        source, target = effects.astype(bool).nonzero()
        pattern = _small_pattern(k, t, b, source, target)
        sample = Sample(tuple(map(str, range(k + b))), S, self.n_samples)
        start = np.concatenate([_along(effects, cov)[source, target], noise])
        self.n_fitted += 1
        (solution,) = solve(
            [Problem(pattern, sample)], [start], gain=BUDGET.fit_gain, max_steps=BUDGET.block_steps, n_threads=1
        )
        F = np.zeros((k + t, k + t + b))
        F[source, target] = solution.x[: len(source)]
        total = np.linalg.inv(np.eye(k + t) - F[:, : k + t])
        inner = total.T @ total  # covariance of directions and causes
        sd = np.sqrt(np.diag(inner))[k:]
        towards = root @ turn @ inner[:k, k:] / sd  # covariance of what is in no block with the causes
        whole = np.block([[R[np.ix_(free, free)], towards], [towards.T, inner[k:, k:] / np.outer(sd, sd)]])
        ends = np.cumsum([0, *(len(block) for block in blocks)]).tolist()
        loadings = tuple(F[k + i, k + t + ends[i] : k + t + ends[i + 1]] * sd[i] for i in range(t))
        return max(solution.discrepancy, 0.0), loadings, np.asarray(whole)


def _first_guess(S: Floats, k: int, lengths: Sequence[int]) -> tuple[Floats, Floats, Floats]:
    """Effects (k + t, k + t + b) with all entries that are free, covariance of directions and causes, and noise."""
    t, b = len(lengths), len(S) - k
    ends = np.cumsum([0, *lengths]).tolist()
    weights = np.zeros((k + b, k + t))
    weights[:k, :k] = np.eye(k)
    loadings = np.zeros((t, b))
    for i in range(t):
        part = slice(k + ends[i], k + ends[i + 1])
        _, vectors = np.linalg.eigh(S[part, part])
        w = vectors[:, -1]
        scale = np.sqrt(w @ S[part, part] @ w)
        weights[part, k + i] = w / scale
        loadings[i, ends[i] : ends[i + 1]] = BUDGET.largest_start * S[part, part] @ w / scale
    cov = weights.T @ S @ weights
    # A composite correlates with others by less than what it stands for.
    shrunk = 0.9 * cov + 0.1 * np.diag(np.diag(cov))
    effects = np.zeros((k + t, k + t + b))
    effects[:k, k : k + t] = 1.0
    effects[k : k + t, k : k + t] = np.triu(np.ones((t, t)), 1)
    effects[k:, k + t :] = loadings
    effects[k:, k + t :][(loadings == 0.0) & _own(lengths)] = 1e-3
    return effects, shrunk, np.maximum(1.0 - (loadings**2).sum(axis=0), 0.05)


def _own(lengths: Sequence[int]) -> Bools:
    """(t, b) which latent is in which block."""
    return np.asarray(np.repeat(np.arange(len(lengths)), lengths)[None, :] == np.arange(len(lengths))[:, None])


def _along(effects: Floats, cov: Floats) -> Floats:
    """The effects in units of what is left of each cause; directions have none but on causes."""
    out = np.empty_like(effects)
    m = len(effects)
    causes = effects[:, :m].astype(bool).astype(np.uint8)
    effects_along(effects, cov, causes, out)
    return out


def _small_pattern(k: int, t: int, b: int, source: Ints, target: Ints) -> Pattern:
    """Directions with unit variance, causes with unit noise, and latents of the blocks with their own."""
    nodes = np.arange(k + t + b)
    seen = np.concatenate([nodes[:k], nodes[k + t :]])
    return pattern_of_effects(tuple(map(str, nodes)), seen, source, target, nodes[k + t :])


def promising(score: LatentScore, may_join: Sequence[int], check: Check) -> list[Predicted]:
    """Blocks that are predicted to be better than none, the best first; empty where there are none.

    ``may_join``: the top nodes that may be below a common cause.
    """
    nothing = score(())
    if len(may_join) < LEAST_FACETS or len(score.corr) <= LEAST_FACETS:
        return []
    chain: list[tuple[int, ...]] = []
    left = list(may_join)
    while len(chain) < BUDGET.n_blocks and (block := _best_block(score, left, check)) is not None:
        chain.append(block)
        left = [k for k in left if k not in block]
    # Blocks one by one, and all together: two may be worth more than one where one is worth nothing.
    starts = [score(tuple(chain[:count])) for count in range(1, len(chain) + 1)]
    if not starts:
        return []
    best = max(starts, key=lambda one: one.value)
    if best.value > nothing.value - BUDGET.slack_above and len(score.sizes) <= BUDGET.most_rearranged:
        _climbed(score, best, may_join, check)
    good = [one for one in score.visited if one.blocks and one.value > nothing.value - BUDGET.slack_above]
    good = sorted(good, key=lambda one: -one.value)[: BUDGET.n_raised]
    if len(score.sizes) <= BUDGET.exact_groups:
        return good
    # With many latents a fit of all variables takes minutes: what is predicted has to be as much as would be kept.
    least = score.climbed_value(nothing, check) + BUDGET.evidence_above
    return [one for one in good if score.climbed_value(one, check) > least]


def _best_block(score: LatentScore, nodes: Sequence[int], check: Check) -> tuple[int, ...] | None:
    """The block that is best by itself: from the best triples, growing."""
    related = score.related
    triples = _related_triples(related, nodes)
    if not triples:
        return None
    gains = score.rank_gain(triples)
    order = np.argsort(-gains, kind="stable")[: BUDGET.n_triples]
    seeds = sorted(((score.alone(triples[i]), triples[i]) for i in order), reverse=True)
    best: tuple[float, tuple[int, ...]] | None = None
    for value, block in seeds[: BUDGET.n_grown]:
        check()
        while True:
            grown = [tuple(sorted((*block, k))) for k in nodes if k not in block and related[k, list(block)].all()]
            found = _best_alone(score, grown, check)
            if found is None or found[0] <= value:
                break
            value, block = found
        if best is None or value > best[0]:
            best = value, block
    return best[1] if best is not None and best[0] > 0.0 else None


def _related_triples(related: Bools, nodes: Sequence[int]) -> list[tuple[int, ...]]:
    """Three nodes each, in order, that are all related."""
    linked = np.triu(related[np.ix_(nodes, nodes)], 1)
    first, second = linked.nonzero()
    pairs, third = (linked[first] & linked[second]).nonzero()
    at = np.asarray(nodes)[np.column_stack([first[pairs], second[pairs], third])]
    return [tuple(triple) for triple in at.tolist()]


def _best_alone(
    score: LatentScore, blocks: Sequence[tuple[int, ...]], check: Check
) -> tuple[float, tuple[int, ...]] | None:
    """The best of blocks of one size, each by itself, and its gain.

    With many latents only those are fitted whose bound allows it: 10,100 of 17,385 with 163 groups.
    """
    if not blocks or len(score.sizes) <= BUDGET.exact_groups:
        return max(((score.alone(block), block) for block in blocks), default=None)
    bounds = score.bounds_alone(blocks)
    best: tuple[float, tuple[int, ...]] | None = None
    for i in np.argsort(-bounds, kind="stable"):
        if best is not None and bounds[i] < best[0]:
            break
        check()
        rated = score.alone(blocks[i]), blocks[i]
        best = rated if best is None else max(best, rated)
    return best


def _climbed(score: LatentScore, best: Predicted, may_join: Sequence[int], check: Check) -> Predicted:
    """Blocks that no move improves."""

    def moved(here: Predicted) -> Proposal[Predicted] | None:
        others = [score(blocks) for blocks in _moves(here.blocks, may_join)]
        return Proposal("other blocks", max(others, key=lambda one: one.value)) if others else None

    return climb(best, [moved], least_rise=BUDGET.least_rise, check=check)


def _moves(blocks: Blocks, may_join: Sequence[int]) -> Iterator[Blocks]:
    """One latent into, out of, or from one block to another; two blocks as one; a block dissolved."""
    for k in may_join:
        without = [tuple(i for i in block if i != k) for block in blocks]
        for target in range(-1, len(blocks)):
            moved = tuple((*block, k) if i == target else block for i, block in enumerate(without))
            if (target < 0 or k not in blocks[target]) and all(len(block) >= LEAST_FACETS for block in moved):
                yield moved
    for a, b in combinations(range(len(blocks)), 2):
        rest = tuple(block for i, block in enumerate(blocks) if i not in (a, b))
        yield (*rest, (*blocks[a], *blocks[b]))
    for a in range(len(blocks)):
        yield tuple(block for i, block in enumerate(blocks) if i != a)
