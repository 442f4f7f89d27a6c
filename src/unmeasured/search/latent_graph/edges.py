"""Edges between groups of latents: first in closed form, then by fits of the whole model.

**In closed form** the latents are taken as observed with the covariance they are fitted with
(:class:`~unmeasured.search.score.GroupBic`). Up to twelve groups the best graph is found exactly. With more, a graph is
climbed to: the score is a sum over groups, so a move changes one term, or two where an arc is reversed. Arcs are added,
deleted or reversed in a DAG while BIC rises. Then come detours: an arc is deleted or reversed and kept away while the
climb goes on, for each arc of two graphs of the class (compiled: :mod:`unmeasured.kernels.arcs`). Where no arc can be
added any more, every group is independent of those it does not cause given its parents, so nothing is missing; last
come the deletions of Algorithm 2 over classes, which in the limit of many samples end at the true class (Chickering
2002).

Latents are measured with error, so that rows say less about their covariance than if it had been observed. Closed forms
do not see that, and find too many edges. So with more than twelve groups they take the covariance to be known from a
share of the rows: from few at first, then from more, and back to few, each search from where the last one ended. One
fit of each graph on this way decides.

**By fits** edges are deleted, added or reversed one at a time. That is past the paper, whose backward phase never takes
a deletion back. Thousands of moves are possible beyond seven groups or so; closed forms say which of them are likely to
help, and only these are fitted::

    all deletions of Algorithm 2 ──┐
    all edges to add or reverse ───┼─► predicted gain ──► the best few ──► fits ──► the best, if the score rises
    climbs without an arc ─────────┘   (many groups, and only where the other two find nothing)

These last climbs take the latents to have the moments that the present fit expects given the data, as structural EM
does (Friedman 1998); another graph gains at least what these say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations

import numpy as np

from unmeasured.arrays import Bools, Floats, Marks
from unmeasured.errors import Stopped
from unmeasured.graphs import consistent_extension
from unmeasured.graphs.bitsets import bits, mask_of, row_masks, topological_order
from unmeasured.kernels.arcs import climb_on, describe, reverse_covered
from unmeasured.knowledge.rules import Paths
from unmeasured.models.factors import Factors
from unmeasured.models.solve import Check, is_over, never
from unmeasured.search.budget import BUDGET
from unmeasured.search.climb import Log, Proposal, climb
from unmeasured.search.latent_graph.latent_likelihood import LatentLikelihood, fit_along
from unmeasured.search.model import FactorModel
from unmeasured.search.paper.operators import DeleteLL, candidate_deletions
from unmeasured.search.score import BicScore, Fitted, GroupBic, LikelihoodScore
from unmeasured.search.trace import Recorder, Step

# A graph as compiled climbs know it (:mod:`unmeasured.kernels.arcs`): arcs, gains, the largest of them, who causes
# whom.
State = tuple[Marks, Floats, Floats, Bools]

# In closed form ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Arcs:
    """A DAG over groups, its score, and by how much that would rise if an arc were added or deleted."""

    marks: Marks  # (G, G)
    value: float
    rises: Floats  # (G, G)
    reaches: Bools  # (G, G) which group causes which, directly or not


@dataclass(frozen=True, eq=False)
class Closed:
    """A class over groups and its score in closed form."""

    model: FactorModel
    value: float


def predicted_classes(model: FactorModel, score: GroupBic, check: Check = never) -> list[FactorModel]:
    """The model with classes over its groups: the covariance is known from few rows at first, then from more, and back.

    Each search begins where the last one ended: what is a local optimum at one share of the rows rarely is at another.
    Where ``check`` says that the time is over, those so far, and a graph from one look at each pair of groups.
    """
    here, found = model.along(np.zeros((score.n_groups,) * 2, dtype=np.uint8)), list[FactorModel]()
    for share in BUDGET.row_shares:
        here = latent_class(here, score.from_share(share), check)
        found.append(here)
        if is_over(check):
            return [*found, model.along(score.rough()[0])]
    return found


def latent_class(start: FactorModel, score: GroupBic, check: Check = never) -> FactorModel:
    """The class over the groups of a model that no change of an arc, detour or deletion in the class improves.

    Where ``check`` says that the time is over, the best so far.
    """

    def deleted(here: Closed) -> Proposal[Closed] | None:
        rises = _deletions(score, here.model)
        best = max(rises, key=rises.__getitem__, default=None)
        if best is None:
            return None
        return Proposal("delete an edge", Closed(best.apply(here.model), here.value + rises[best]))

    here = Closed(start.along(refined_graph(score, start.arcs, check)), 0.0)
    least_rise = BUDGET.least_rise_in_closed_form
    return climb(here, [deleted], least_rise=least_rise, check=check, keeps_when_stopped=True).model


def refined_graph(score: GroupBic, start: Marks, check: Check = never) -> Marks:
    """A graph that neither single moves nor detours improve, from two graphs of its class; the best so far if stopped.

    A detour: an arc is deleted or reversed and kept away while the climb goes on, then let back (Nazaret and Blei 2024
    do so with deletions). What can be reversed depends on which graph of the class it is.

    >>> Phi = 0.8 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))  # a chain
    >>> arcs = refined_graph(GroupBic(Phi, (1, 1, 1, 1), 1000.0, 3.45), np.zeros((4, 4), dtype=np.uint8))
    >>> np.argwhere(np.triu(arcs | arcs.T)).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    here = described(score, start)
    climb_on(*score.terms, *here, -1, -1, False, False)
    n_failed, reached = 0, score.total(here[0])
    while n_failed < 2 and not is_over(check):
        n_failed += 1
        is_improved = False
        while (there := _round_of_detours(score, here, check)) is not None:
            here, is_improved = there, True
        if is_improved and (total := score.total(here[0])) > reached:
            n_failed, reached = 0, total
        marks = here[0].copy()
        reverse_covered(marks)
        here = described(score, marks)
        climb_on(*score.terms, *here, -1, -1, False, False)
    return here[0]


def described(score: GroupBic, marks: Marks) -> State:
    """A graph, and what compiled climbs know of it."""
    G = len(marks)
    state = marks.copy(), np.empty((G, G)), np.empty(G), np.empty((G, G), dtype=bool)
    describe(*score.terms, *state)
    return state


def _round_of_detours(score: GroupBic, here: State, check: Check) -> State | None:
    """Where the detours that improve lead, one after the other; None if none does."""
    terms, best = score.terms, here
    for g, h in np.argwhere(here[0]).tolist():
        for is_reversed in (False, True):
            if is_over(check):
                return None if best is here else best
            if best[0][g, h]:
                other = _copy(best)
                rise = climb_on(*terms, *other, g, h, is_reversed, True)
                # Where latents are nearly functions of others, rises add up rounding, and only totals can be trusted.
                if rise > BUDGET.least_rise_of_detour and score.total(other[0]) > score.total(best[0]):
                    best = other
    return None if best is here else best


def _copy(state: State) -> State:
    marks, gains, tops, reaches = state
    return marks.copy(), gains.copy(), tops.copy(), reaches.copy()


def other_ways(score: GroupBic, marks: Marks, check: Check = never) -> list[Marks]:
    """Graphs to which climbs lead without an arc of this one, or with it reversed; the best by closed forms first.

    A wrong direction, taken early, is kept by the edges that make up for it: no single move is better. What is
    deleted or reversed may not come back.
    """
    terms, here = score.terms, described(score, marks)
    found: dict[bytes, tuple[float, Marks]] = {}
    for g, h in np.argwhere(marks).tolist():
        for is_reversed in (False, True):
            if is_over(check):
                break
            other = _copy(here)
            rise = climb_on(*terms, *other, g, h, is_reversed, False)
            if rise > -np.inf:
                found.setdefault(other[0].tobytes(), (rise, other[0]))
    return [end for _, end in sorted(found.values(), key=lambda found: -found[0])]


def _deletions(score: GroupBic, model: FactorModel) -> dict[DeleteLL, float]:
    """The deletions of Algorithm 2, with every set H, and by how much each raises the score."""
    out, into = row_masks(model.between), row_masks(model.between.T)
    rises = {}
    for move in candidate_deletions(model):
        first, second = move.first, move.second
        # What separates the two afterwards (:meth:`DeleteLL.separating`), as bits.
        heads = into[second] & out[second] & (into[first] | out[first])
        given = heads & ~mask_of(move.H) | into[second] & ~out[second] & ~(1 << first)
        rises[move] = score.local(second, given) - score.local(second, given | 1 << first)
    return rises


def climbed_graph(score: GroupBic, start: Marks | None = None, check: Check = never) -> Marks:
    """The graph (G, G) where no single move raises the score, from a DAG or from no edges.

    Where ``check`` says that the time is over, the graph so far.

    >>> Phi = 0.8 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))  # a chain
    >>> arcs = climbed_graph(GroupBic(Phi, (1, 1, 1, 1), 1000.0, 3.45))
    >>> np.argwhere(np.triu(arcs | arcs.T)).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    return _climbed(score, _first(score, start, check), check).marks


def _first(score: GroupBic, start: Marks | None, check: Check) -> Arcs:
    """Where a climb begins: a DAG, or no edges. It counts as zero, so that rounding of a large sum hides no rise."""
    marks = np.zeros((score.n_groups,) * 2, dtype=np.uint8) if start is None else start.copy()
    rises = np.zeros(marks.shape)
    for group in range(score.n_groups):
        if is_over(check):
            break  # without rises there is nothing to climb
        rises[:, group] = _rises(score, marks, group)
    return Arcs(marks, 0.0, rises, reaches_of(marks))


def _climbed(score: GroupBic, start: Arcs, check: Check) -> Arcs:
    """The graph where no single move raises the score."""
    seen = {start.marks.tobytes()}

    def changed(here: Arcs) -> Proposal[Arcs] | None:
        toggled, reversible = legal_changes(here)
        toggles = np.where(toggled, here.rises, -np.inf)
        reversals = np.where(reversible, here.rises + here.rises.T, -np.inf)
        options = np.stack([toggles, reversals], axis=-1)
        # Both directions of an edge often gain the same; which of them is taken is not for rounding to say.
        g, h, is_reversed = np.unravel_index(np.argmax(options >= (1.0 - BUDGET.tie) * options.max()), options.shape)
        there = _with_change(score, here, int(g), int(h), is_reversed=bool(is_reversed))
        # Where latents are nearly functions of others rounding may lead around in a circle.
        key = there.marks.tobytes()
        if key in seen:
            return None
        seen.add(key)
        return Proposal("change an arc", there)

    return climb(
        start, [changed], least_rise=BUDGET.least_rise_in_closed_form, check=check, keeps_when_stopped=True
    )  # fmt: skip


def _with_change(score: GroupBic, here: Arcs, g: int, h: int, *, is_reversed: bool) -> Arcs:
    """The graph with the arc g → h reversed, or else deleted where it is there and added where it is not."""
    value = here.value + float(here.rises[g, h] + is_reversed * here.rises[h, g])
    marks, rises = here.marks.copy(), here.rises.copy()
    marks[g, h] ^= 1
    marks[h, g] ^= np.uint8(is_reversed)
    # The parents of one group change, or of two, and only what their terms would gain has to be asked again.
    for child in (g, h) if is_reversed else (h,):
        rises[:, child] = _rises(score, marks, child)
    reaches = _reaches_with(here.reaches, g, h) if marks.sum() > here.marks.sum() else reaches_of(marks)
    return Arcs(marks, value, rises, reaches)


def legal_changes(here: Arcs) -> tuple[Bools, Bools]:
    """(G, G) twice: which arcs g → h can be added or deleted, and which reversed, without making a cycle."""
    there, reaches = here.marks.astype(bool), here.reaches
    # Reversed: no way from g to h through another child of g. Products of floating point are far faster than of whole
    # numbers, and exact: they count ways, of which there are no more than groups.
    detour = there.astype(np.float32) @ reaches.astype(np.float32) > 0
    can_be_added = ~there & ~there.T & ~reaches.T & ~np.eye(len(there), dtype=bool)
    return there | can_be_added, there & ~detour


def reaches_of(arcs: Marks) -> Bools:
    """(G, G) which group causes which, directly or not."""
    reaches = arcs.astype(bool)
    while True:
        further = reaches | (reaches.astype(np.float32) @ reaches.astype(np.float32) > 0)
        if np.array_equal(further, reaches):
            return reaches
        reaches = further


def _reaches_with(reaches: Bools, g: int, h: int) -> Bools:
    """The same with an arc g → h more: whoever causes g causes whatever h does."""
    above, below = reaches[:, g].copy(), reaches[h].copy()
    above[g] = below[h] = True
    return np.asarray(reaches | np.outer(above, below))


def _rises(score: GroupBic, arcs: Marks, child: int) -> Floats:
    """(G,) what the term of a group gains if another becomes its parent, or is one no more."""
    parents = mask_of(np.flatnonzero(arcs[:, child]).tolist())
    if len(arcs) > BUDGET.many_groups:
        return score.additions(child, parents) + score.removals(child, parents)
    now = score.local(child, parents)
    if len(arcs) <= BUDGET.exact_groups:
        return np.array([0.0 if g == child else score.local(child, parents ^ 1 << g) - now for g in range(len(arcs))])
    rises = score.additions(child, parents)
    for g in bits(parents):
        rises[g] = score.local(child, parents ^ 1 << g) - now
    return rises


# By fits ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Connected:
    """A class over groups, fitted: its log-likelihood per sample, its extended BIC in total, and the steps to it."""

    model: FactorModel
    likelihood: float
    value: float
    steps: tuple[Step, ...] = ()


class EdgeMoves:
    """Delete, add or reverse an edge of the latent graph of one measurement model, or several at once.

    Every class that is proposed has a member that agrees with what is known of ``paths``; the first must have one.
    """

    def __init__(
        self,
        likelihood: LikelihoodScore | LatentLikelihood,
        predicted: GroupBic,
        paths: Paths,
        penalty: float,
        base: float = 0.0,
        edge_prior: float = 0.0,
    ) -> None:
        """``penalty`` of a path, ``base``, what the measurement model costs, and the prior of an edge besides its paths
        are per sample, as ``predicted`` is.
        """
        self.likelihood, self._predicted, self._paths = likelihood, predicted, paths
        self._penalty, self._base, self._edge_prior, self._n = penalty, base, edge_prior, likelihood.sample.n

    @classmethod
    def of(
        cls, near: Fitted, score: BicScore, likelihood: LikelihoodScore | LatentLikelihood, paths: Paths
    ) -> EdgeMoves:
        """Of a measurement model that was fitted."""
        penalty = score.dimension_penalty / score.sample.n
        edge_prior = score.edge_prior(len(near.model.sizes)) / score.sample.n
        dimension = score.dimension(near.model) - near.model.n_paths
        base = penalty * dimension + score.prior(near.model) / score.sample.n
        gains = GroupBic(near.latent_cov, near.model.sizes, 1.0, penalty, edge_prior)
        return cls(likelihood, gains, paths, penalty, base, edge_prior)

    def scored(self, models: Sequence[FactorModel]) -> list[Connected]:
        """Classes with their scores, fitted in one batch."""
        return [
            self.connected(model, likelihood)
            for model, likelihood in zip(models, self.likelihood(models).tolist(), strict=True)
        ]

    def connected(self, model: FactorModel, likelihood: float) -> Connected:
        """A class with its score, given its log-likelihood per sample."""
        cost = self._penalty * model.n_paths + self._base
        return Connected(model, likelihood, self._n * (likelihood - cost) - self.prior(model))

    def prior(self, model: FactorModel) -> float:
        """What the edges of a class cost besides their paths."""
        return self._n * self._edge_prior * model.n_edges if self._edge_prior else 0.0

    def __call__(self, here: Connected) -> Proposal[Connected] | None:
        """The best of the likeliest moves; with many groups, all that improve together if that is better."""
        model = here.model
        if (fewer := self._without_weak(here)) is not None:
            return fewer
        moves = [*self._deletions(model), *self._neighbours(model)]
        if not moves:
            return None
        fitted = self.scored([other for _, other in moves])
        rises = np.array([other.value - here.value for other in fitted])
        best = int(np.argmax(rises))
        what, chosen = moves[best][0], fitted[best]
        if model.n_groups > BUDGET.exact_groups and rises[best] > BUDGET.least_rise:
            # One edge at a time would take hundreds of rounds of slow fits.
            (everything,) = self.scored([_all_that_improve(model, [other for _, other in moves], rises)])
            if everything.value > chosen.value and self._paths.restricted(everything.model.between) is not None:
                what, chosen = "all edges that improve", everything
        reason = (
            f"log-likelihood {self._n * (chosen.likelihood - here.likelihood):+.2f}, "
            f"{chosen.model.n_paths - model.n_paths:+d} paths at {self._n * self._penalty:.2f} each"
        )
        return Proposal(what, chosen, reason)

    def beyond(self, here: Connected) -> Proposal[Connected] | None:
        """With many groups: the best of the graphs that closed forms come to without an edge, or with it reversed."""
        model = here.model
        if model.n_groups <= BUDGET.exact_groups:
            return None
        arcs = extension(self._paths.restricted(model.between))
        others = (model.along(marks) for marks in other_ways(self._given(arcs), arcs, self.likelihood.check))
        possible = (other for other in others if self._paths.restricted(other.between) is not None and other != model)
        fitted = self.scored(list(islice(dict.fromkeys(possible), BUDGET.n_edges_many)))
        best = max(fitted, key=lambda other: other.value, default=here)
        n_changed = int(np.triu(_skeleton(best.model) != _skeleton(model)).sum())
        return Proposal(f"another way round a local optimum, {n_changed} edges added or deleted", best)

    def _given(self, arcs: Marks) -> GroupBic:
        """Closed forms near a graph: with what its fit says of the latents, or from a share of the rows."""
        moments = self.likelihood.moments(arcs) if isinstance(self.likelihood, LatentLikelihood) else None
        if moments is None:
            return self._predicted.from_share(BUDGET.cautious_share)
        return self._predicted.with_covariance(moments)

    def _without_weak(self, here: Connected) -> Proposal[Connected] | None:
        """With many groups: the weakest edge into each group deleted where that pays by Wald's test, in all at once.

        Graphs that closed forms predict take the covariance of the latents for known, and have hundreds of edges too
        many where there are hundreds of latents.
        """
        model, sizes = here.model, np.array(here.model.sizes)
        if not isinstance(self.likelihood, LatentLikelihood) or len(sizes) <= BUDGET.many_groups:
            return None
        arcs = model.arcs
        saved = self._n * (self._penalty * np.outer(sizes, sizes) + self._edge_prior)
        gains = np.where(arcs > 0, saved - self.likelihood.losses(arcs), -np.inf)
        weakest = gains.argmax(axis=0)
        gain = gains[weakest, np.arange(len(sizes))]
        order = [int(h) for h in np.argsort(-gain, kind="stable") if gain[h] > BUDGET.least_rise]
        while order:
            fewer = arcs.copy()
            fewer[weakest[order], order] = 0
            (there,) = self.scored([model.along(fewer)])
            if there.value > here.value + BUDGET.least_rise and self._paths.restricted(there.model.between) is not None:
                return Proposal(f"delete {len(order)} edges", there, "each is weaker than its penalty by Wald's test")
            order = order[: len(order) // 2]
        return None

    def _deletions(self, model: FactorModel) -> list[tuple[str, FactorModel]]:
        """The deletions with the best predicted gains."""
        gains = _deletions(self._predicted, model)
        moves = ((move.describe(model), move.apply(model)) for move in sorted(gains, key=lambda move: -gains[move]))
        possible = (move for move in moves if self._paths.restricted(move[1].between) is not None)
        return list(islice(possible, _n_predicted(model)))

    def _neighbours(self, model: FactorModel) -> Iterator[tuple[str, FactorModel]]:
        """Classes of the graphs that differ from a member by an edge added or reversed: the best predicted gains.

        The member agrees with what is known, and so does a graph that has no forbidden arrow more.
        """
        arcs = extension(self._paths.restricted(model.between))
        forbidden = self._paths.forbidden
        open_pairs = [pair for pair in permutations(range(len(arcs)), 2) if not arcs[pair] and not forbidden[pair]]
        parents = row_masks(arcs.T)
        seen = {model.between.tobytes()}
        for i, j in sorted(open_pairs, key=lambda pair: -self._gain_of_arc(parents, *pair)):
            other = arcs.copy()
            other[i, j], other[j, i] = 1, 0
            if len(seen) <= _n_predicted(model) and _is_acyclic(other):
                neighbour = model.along(other)
                if neighbour.between.tobytes() not in seen:
                    seen.add(neighbour.between.tobytes())
                    did = "reverse" if arcs[j, i] else "add"
                    yield f"{did} an edge: latents of {model.group_name(i)} → {model.group_name(j)}", neighbour

    def _gain_of_arc(self, parents: Sequence[int], i: int, j: int) -> float:
        """The rise if i → j is added to a graph with these parents, or j → i reversed."""
        local = self._predicted.local
        rise = local(j, parents[j] | 1 << i) - local(j, parents[j])
        if parents[i] >> j & 1:
            rise += local(i, parents[i] & ~(1 << j)) - local(i, parents[i])
        return rise


class LatentTest:
    """The search for the latent graph of a measurement model, from one start after another, the last one first.

    With many variables graphs are compared with the measurement of the latents as it is
    (:class:`~unmeasured.search.latent_graph.latent_likelihood.LatentLikelihood`), and the best is fitted in full.
    """

    def __init__(self, found: Fitted, score: BicScore, paths: Paths, check: Check) -> None:
        self.found = found
        is_raised, n = type(found) is not Fitted, len(score.sample.names)
        is_many = n > (BUDGET.most_at_once_above if is_raised else BUDGET.most_at_once)
        self.likelihood: LikelihoodScore | LatentLikelihood = (
            LatentLikelihood(score.sample, found, check)
            if is_many
            else LikelihoodScore(score.sample, n_threads=score.n_threads, near=found, check=check)
        )
        self.best: Connected | None = None
        self.factors: Factors | None = None  # all parameters of the best, where it was fitted in full
        self._moves = EdgeMoves.of(found, score, self.likelihood, paths)
        self.starts = self._best_predicted(latent_starts(found, score, paths, check))

    def _best_predicted(self, starts: list[FactorModel]) -> list[FactorModel]:
        """With many groups only the best of the predicted classes, by one fit of each; the first where time is over."""
        if len(starts) == 1 or len(self.found.model.sizes) <= BUDGET.exact_groups:
            return starts
        try:
            return [max(self._moves.scored(starts), key=lambda start: start.value).model]
        except Stopped:
            return starts[:1]

    @property
    def value(self) -> float:
        """BIC of the best class so far, in total, extended by who measures what."""
        return -np.inf if self.best is None else self.best.value + self._moves.prior(self.best.model)

    def polish(self, start: FactorModel) -> None:
        """Climb from a start; the best of all is kept, also where the time is over on the way."""
        self.likelihood.check()
        end, factors = climbed_class(self._moves, start), None
        if isinstance(self.likelihood, LatentLikelihood) and type(self.found) is Fitted:
            factors, likelihood = fit_along(
                self.likelihood.sample, self.found, end.model.arcs, self.likelihood.check
            )  # fmt: skip
            likelihood = max(likelihood, end.likelihood)  # a bound, where the time was over during the fit
            end = replace(self._moves.connected(end.model, likelihood), steps=end.steps)
        if self.best is None or end.value > self.best.value:
            self.best, self.factors = end, factors


def climbed_class(moves: EdgeMoves, start: FactorModel) -> Connected:
    """Where moves over the edges of a class lead, by fits; the best so far where the time is over."""
    steps: list[Step] = []
    log = Log(Recorder(steps, moves.likelihood), "Edges between latents")
    (first,) = moves.scored([start])
    end = climb(
        first, [moves, moves.beyond], least_rise=BUDGET.least_rise, check=moves.likelihood.check, log=log,
        keeps_when_stopped=True,
    )  # fmt: skip
    return replace(end, steps=tuple(steps))


def latent_starts(found: Fitted, score: BicScore, paths: Paths, check: Check) -> list[FactorModel]:
    """Where the search for the latent graph begins: with few groups with all edges, and with the one predicted last.

    With very many rows also without any: closed forms take the covariance of the latents for known, and the more rows,
    the more edges they see in what measurement leaves unknown. With many groups those predicted from shares of the
    rows.
    """
    connected, sizes, n = found.model, found.model.sizes, score.sample.n
    if len(sizes) <= BUDGET.exact_groups:
        # Models of many variables were not credited with a graph on the way.
        gains = GroupBic(found.latent_cov, sizes, n, score.dimension_penalty)
        predicted = connected.along(found.arcs if found.arcs.any() else gains.predicted()[0])
        starts = [connected, predicted] if len(sizes) <= BUDGET.few_groups else [predicted]
        if BUDGET.very_many_rows <= n:
            starts.insert(0, connected.along(np.zeros((len(sizes),) * 2, dtype=np.uint8)))
    else:
        edge = score.edge_prior(len(sizes))
        gains = GroupBic(found.latent_cov, sizes, n, score.dimension_penalty, edge)
        starts = list(dict.fromkeys(predicted_classes(connected, gains, check)))
    if not paths.binds:
        return starts
    return [s.along(paths.nearest(extension(s.between))) for s in starts]


def extension(marks: Marks | None) -> Marks:
    """A graph of a class that is known to have one."""
    arcs = None if marks is None else consistent_extension(marks)
    assert arcs is not None, "a class always has a member"
    return arcs


def _all_that_improve(model: FactorModel, others: Sequence[FactorModel], rises: Floats) -> FactorModel:
    """The model after all edges whose change improves the score by itself, as far as they go together."""
    arcs = extension(model.between)
    changed = arcs.copy()
    for i in np.argsort(-rises):
        if rises[i] <= 0.0:
            break
        other = changed.copy()
        target = extension(others[i].between)
        differs = (target | target.T) != (arcs | arcs.T)
        other[differs] = target[differs]
        if _is_acyclic(other):
            changed = other
    return model.along(changed)


def _skeleton(model: FactorModel) -> Bools:
    return np.asarray((model.between | model.between.T) > 0)


def _n_predicted(model: FactorModel) -> int:
    """How many deletions are fitted, and how many additions."""
    return BUDGET.n_edges if model.n_groups <= BUDGET.few_groups else BUDGET.n_edges_many


def _is_acyclic(arcs: Marks) -> bool:
    return len(topological_order(row_masks(arcs.T), row_masks(arcs))) == len(arcs)
