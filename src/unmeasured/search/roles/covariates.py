"""Covariates and outcomes: observed causes and effects in the graph over the latents.

::

    items given the covariates ──► measurement model (the search without covariates, on partial covariances)
                                        │
    all variables ──► all paths there may be ──► direct effects of covariates on items ──► graph over covariates,
                                                                                          groups and outcomes

*Who measures what* is found from the covariance of the items given the covariates. Whatever covariates do to latents,
the loadings stay what they are, and so does the graph among latents: ``Cov(items | x) = Lambda Cov(latents | x) Lambda'
+ Theta``.

*The graph* has covariates, groups of latents and outcomes as nodes; nothing points at a covariate, an outcome points at
outcomes only. Its score is the log-likelihood of items and outcomes given the covariates less the penalty of its paths.
The covariates are all connected, which makes their joint covariance free: what they contribute is the same for every
graph, so that nothing is assumed of them. It starts at the graph that would be best if the latents were observed, and
is refined by fits of the whole model, as the graph among latents is (:mod:`unmeasured.search.latent_graph.edges`).

*A direct effect* of a covariate on an item, beside the item's latents (differential item functioning), is looked for
with all paths of the structural graph present, by score tests. One enters where it raises the likelihood by more than
half the logarithm of N and the logarithm of the number of such effects there might be (extended BIC).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unmeasured.arrays import Marks
from unmeasured.data.observed_roles import Roles, refuse_determined
from unmeasured.data.sample import Sample
from unmeasured.errors import DataError, ModelError, listing
from unmeasured.graphs import CPDAG, DAG, Variables, class_over_groups
from unmeasured.graphs.bitsets import row_masks, topological_order
from unmeasured.knowledge.known import Knowledge
from unmeasured.knowledge.rules import Paths
from unmeasured.knowledge.satisfy import rules_of
from unmeasured.models.fit import fit_many
from unmeasured.remarks import distrust
from unmeasured.search.budget import BUDGET
from unmeasured.search.climb import Log, Proposal, climb
from unmeasured.search.clock import Clock
from unmeasured.search.close_fit.replicability import effective_n
from unmeasured.search.discovery import Discovery, RunnerUp, remarks_on, remarks_on_fit, stopped_in_words
from unmeasured.search.latent_graph.edges import Connected, EdgeMoves, climbed_class, extension
from unmeasured.search.model import FactorModel, model_of_class
from unmeasured.search.options import Options
from unmeasured.search.roles.structural import StructuralFit, StructuralModel, SummedBic, SummedLikelihood, best_allowed
from unmeasured.search.score import GroupBic, LikelihoodScore
from unmeasured.search.trace import Recorder, Step, Trace


@dataclass(frozen=True)
class DirectEffect:
    """A covariate that acts on an item beside the item's latents; ``instead``: items where it would fit as well."""

    covariate: str
    item: str
    chi2: float  # of its score test
    df: int = 1  # one for each group of people
    instead: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The finding in words."""
        words = (
            f"{self.covariate} → {self.item} directly: {self.covariate} acts on {self.item} beside the latents that "
            f"{self.item} measures (differential item functioning; score test {self.chi2:.1f} on {self.df} df). At "
            f"equal values of the latents the item is answered differently along {self.covariate}."
        )
        if self.instead:
            words += f" The data cannot tell this from a direct effect on {listing(list(self.instead))}."
        return words


@dataclass(frozen=True, eq=False)
class Direct:
    """Fits with the direct effects found so far, one for each group of people, and what these are worth in all."""

    nears: tuple[StructuralFit, ...]
    value: float  # log-likelihood of all samples, less what the effects cost
    found: tuple[DirectEffect, ...] = ()


@dataclass
class Counter:
    """Counts fits, for the trace."""

    n_fitted: int = 0
    n_cached: int = 0


def checked_roles(sample: Sample, covariates: Sequence[str], outcomes: Sequence[str], known: Knowledge | None) -> Roles:
    """What the options, the knowledge and the sample say of covariates and outcomes, each variable once.

    Raises
    ------
    DataError
        For names that are not in the data or clash, covariates that were not taken as numbers, too few items.
    """
    given = [Roles.of(covariates, outcomes, sample.names), Roles(sample.covariates, sample.outcomes)]
    given += [Roles.of(known.covariates, known.outcomes, sample.names)] if known else []
    merged = Roles.of(
        tuple(dict.fromkeys(name for roles in given for name in roles.covariates)),
        tuple(dict.fromkeys(name for roles in given for name in roles.outcomes)),
        sample.names,
    )
    for group, items in (known.groups if known else {}).items():
        wrong = [name for name in items if name in merged.names]
        if wrong:
            raise DataError(
                f"{listing(wrong)} is a covariate or an outcome, and an item of {group!r} as well. Indicators measure "
                "latents; name it as one or the other."
            )
    if len(sample.names) - len(merged.names) < 2:
        raise DataError(
            f"Of {len(sample.names)} variables all but {len(sample.names) - len(merged.names)} are covariates or "
            "outcomes. A latent needs at least two indicators: name fewer of them."
        )
    kinds = dict(zip(sample.names, sample.kinds)) if sample.kinds else {}
    changed = [name for name in merged.covariates if kinds.get(name, "continuous") != "continuous"]
    if changed:
        raise DataError(
            f"The sample takes {listing(changed)} as ordinal or as ranks; a covariate is taken as the number it is. "
            "Pass the rows to fit, or make the sample with as_sample(rows, covariates=[...])."
        )
    index = [sample.names.index(name) for name in merged.covariates]
    refuse_determined(sample.corr[np.ix_(index, index)], merged.covariates)
    return merged


def discover_with_roles(
    sample: Sample, options: Options, clock: Clock, search: Callable[[Sample, Knowledge | None], Discovery]
) -> Discovery:
    """The class over latents, covariates and outcomes; ``search`` finds who measures what from the items."""
    roles, known, n_threads = options.roles, options.knowledge, options.n_threads
    items = tuple(name for name in sample.names if name not in roles.names)
    whole = replace(sample, covariates=roles.covariates, outcomes=roles.outcomes)
    measured = search(whole.condition_on_covariates().select(items), (known.about_groups if known else None) or None)
    joint = whole.select((*items, *roles.covariates, *roles.outcomes))
    corr = np.array(joint.corr if joint.mean is None else joint.corr.round(BUDGET.digits))
    n = effective_n(sample.n, measured.tolerance)
    model = StructuralModel(model_of_class(measured.cpdag, items), roles.covariates, roles.outcomes)
    decided = known_paths(model, known, options.max_group_size)
    paths = Paths(model.by_roles.required | decided.required, model.by_roles.forbidden | decided.forbidden)
    structural = StructuralSearch([Sample(joint.names, corr, n)], model, paths, options.penalty, clock, n_threads)
    with clock.listening():
        with clock.ending_a_stage():
            structural.go()
        graph = structural.class_of(structural.arcs, measured.cpdag, sample.names, decided)
        (fit,) = fit_many([graph], whole, n_threads=n_threads, check=clock.check_last_fit)
    before = {str(remark) for remark in (*remarks_on_fit(measured.fit), *remarks_on(measured.cpdag))}
    remarks = [remark for remark in measured.remarks if str(remark) not in before]
    remarks += [effect.sentence for effect in structural.found]
    remarks += remarks_on(graph, bool(clock.stopped))
    remarks += remarks_on_fit(fit) if fit.converged or not clock.stopped else []
    stopped = measured.stopped
    if clock.stopped and not stopped:
        stopped = stopped_in_words(clock, fit)
        remarks = [distrust(stopped), *remarks]
    return replace(
        measured,
        cpdag=graph,
        fit=fit,
        trace=Trace([*measured.trace, *structural.steps]),
        remarks=tuple(remarks),
        runners_up=structural.runners_up(options.n_runners, measured.cpdag, sample.names, decided, int(fit.dimension)),
        stopped=stopped,
        interrupted=clock.is_interrupted,
    )


def known_paths(model: StructuralModel, known: Knowledge | None, max_group_size: int | None) -> Paths:
    """What knowledge says of the graph over the nodes of a model.

    Raises
    ------
    ModelError
        Where it contradicts the roles, or itself.
    """
    decided = Paths.free(model.n_nodes)
    if not known:
        return decided
    nodes = (*model.covariates, *model.outcomes)
    place = {name: model.n_groups + k for k, name in enumerate(nodes)}
    about = known.about_groups
    if about.groups and model.n_groups:
        rules = rules_of(about, model.measurement.observed, max_group_size)
        place |= dict(zip(rules.groups, rules.places(model.measurement.parents) or (), strict=False))
    required, forbidden = decided.required, decided.forbidden
    for statement in known.statements:
        for a, b in statement.value if statement.is_about_paths else ():
            if a not in place or b not in place:
                continue
            (required if statement.required else forbidden)[place[a], place[b]] = True
            if statement.required:
                forbidden[place[b], place[a]] = True
                if model.by_roles.forbidden[place[a], place[b]] or {a, b} <= set(model.covariates):
                    why = "nothing causes a covariate" if b in model.covariates else "outcomes cause only outcomes"
                    raise ModelError(f"{statement}: {a} → {b} cannot be, since {why}. Take it back.")
    if (required & forbidden).any() or len(topological_order(row_masks(required.T), row_masks(required))) < len(
        required
    ):
        raise ModelError(
            "The knowledge contradicts itself: paths that are required are forbidden too, or form a cycle."
        )
    # Covariates covary freely: what tiers say of their order changes nothing.
    given = list(model.covariate_nodes)
    forbidden[np.ix_(given, given)] = False
    return decided


class StructuralSearch:
    """The graph over covariates, groups and outcomes for one measurement model, and direct effects on items."""

    def __init__(
        self,
        samples: Sequence[Sample],
        model: StructuralModel,
        paths: Paths,
        penalty: float,
        clock: Clock,
        n_threads: int | None,
    ) -> None:
        """``samples``: several groups of people share the graph and have parameters of their own."""
        self.samples, self.model, self.paths = tuple(samples), model, paths
        self.penalty, self.clock, self.n_threads = penalty, clock, n_threads
        self.n = sum(sample.n for sample in samples)
        self.path_penalty = 0.5 * penalty * math.log(self.n) * len(self.samples)
        self.steps: list[Step] = []
        self.found: tuple[DirectEffect, ...] = ()
        self.likelihood: LikelihoodScore | None = None
        self.best: Connected | None = None
        # Whatever ends the search, there is a graph: all edges that may be, then the one predicted.
        self.arcs = model.full(paths)

    def go(self) -> None:
        """Direct effects, the predicted graph, then fits; each stage leaves the best so far."""
        if self.model.n_nodes == len(self.model.covariates):
            return
        check = self.clock.check_last_fit
        first = [StructuralFit.of(self.model, s, self.paths, None, self.n_threads, check) for s in self.samples]
        direct = self._with_direct_effects(first)
        nears, self.found = direct.nears, direct.found
        self.model = nears[0].model
        rate = self.path_penalty / self.n
        gains = SummedBic(nears, rate) if len(nears) > 1 else GroupBic(nears[0].latent_cov, self.model.sizes, 1.0, rate)
        self.arcs = best_allowed(self.model, gains, self.paths)
        self.clock.check()
        if len(nears) > 1:
            self.likelihood = SummedLikelihood(nears, self.n_threads, self.clock.check)
        else:
            sample, near = self.samples[0], nears[0]
            self.likelihood = LikelihoodScore(sample, n_threads=self.n_threads, near=near, check=self.clock.check)
        start = self.model.over_nodes.along(self.arcs)
        self.best = climbed_class(EdgeMoves(self.likelihood, gains, self.paths, rate), start)
        self.steps += self.best.steps
        self.arcs = self._member(self.best.model)

    def _member(self, model: FactorModel) -> Marks:
        return extension(self.paths.restricted(model.between))

    # Direct effects ---------------------------------------------------------------------------------------

    def _with_direct_effects(self, nears: Sequence[StructuralFit]) -> Direct:
        """Direct effects of covariates on items, one at a time, the largest score test first, while each pays."""
        n, q = len(self.model.measurement.observed), len(self.model.covariates)
        cost = self.path_penalty + self.penalty * math.log(max(q * n, 1))
        first = Direct(tuple(nears), -0.5 * sum(s.n * fit.discrepancy for s, fit in zip(self.samples, nears)))
        if not q or not self.model.n_groups:
            return first
        counter = Counter()

        def one_more(here: Direct) -> Proposal[Direct] | None:
            model = here.nears[0].model
            candidates = [(c, j) for c in range(q) for j in range(n) if (c, j) not in model.direct]
            parts = [near.problem.sample.n * near.direct_tests(self.paths, candidates) for near in here.nears]
            tests = np.sum(parts, axis=0)
            best = int(np.argmax(tests))
            if 0.5 * tests[best] <= cost:
                return None
            c, j = candidates[best]
            same = np.flatnonzero(tests >= (1.0 - BUDGET.same_test) * tests[best]).tolist()
            equals = [candidates[k] for k in same if k != best and candidates[k][0] == c]
            instead = tuple(model.measurement.observed[k] for _, k in equals)
            names = model.covariates[c], model.measurement.observed[j]
            effect = DirectEffect(*names, float(tests[best]), len(self.samples), instead)
            larger = model.with_direct(c, j)
            fits = tuple(
                StructuralFit.of(larger, s, self.paths, near, self.n_threads, self.clock.check)
                for s, near in zip(self.samples, here.nears, strict=True)
            )
            counter.n_fitted += 1
            gain = sum(0.5 * s.n * (a.discrepancy - b.discrepancy) for s, a, b in zip(self.samples, here.nears, fits))
            reason = f"log-likelihood {gain:+.2f}, one effect of {q * n} at {cost:.2f}"
            to = Direct(fits, here.value + gain - cost, (*here.found, effect))
            return Proposal(f"{names[0]} → {names[1]}", to, reason, n_bounded=len(candidates) - 1)

        log = Log(Recorder(self.steps, counter), "Direct effects")
        return climb(first, [one_more], least_rise=0.0, check=self.clock.check, log=log, keeps_when_stopped=True)

    # Answers ----------------------------------------------------------------------------------------------

    def class_of(self, arcs: Marks, measured: CPDAG, names: Sequence[str], decided: Paths) -> CPDAG:
        """The class of a graph over the nodes, variables in this order; ``decided``: what knowledge says of edges."""
        model = self.model
        latents = measured.latents
        of = [*measured.latent_groups, *((x,) for x in model.covariates), *((x,) for x in model.outcomes)]
        variables = Variables.of((*latents, *names), latents, model.covariates, model.outcomes)
        variables = variables.with_pairs(measured.pairs)
        A = np.zeros((len(variables), len(variables)), dtype=np.uint8)
        place = variables.index
        items = [place(x) for x in measured.observed]
        # Items as they were found; without latents there may be edges among them.
        sources = [place(x) for x in measured.names]
        A[np.ix_(sources, items)] = measured.member().adjacency[
            :, [measured.variables.index(x) for x in measured.observed]
        ]
        given = set(model.covariate_nodes)
        for a, b in np.argwhere(arcs).tolist():
            if not (a in given and b in given):  # that covariates covary is no edge
                A[np.ix_([place(x) for x in of[a]], [place(x) for x in of[b]])] = 1
        for c, j in model.direct:
            A[place(model.covariates[c]), place(model.measurement.observed[j])] = 1
        graph = class_over_groups(DAG(variables, A), measured.latent_groups)
        known = [
            (of[a][0], of[b][0])
            for a, b in np.argwhere(arcs).tolist()
            if decided.forbidden[b, a] and not (a in given or b in given)
        ]
        return graph.restricted(known) if known else graph

    def runners_up(
        self, n_runners: int, measured: CPDAG, names: Sequence[str], decided: Paths, dimension: int
    ) -> tuple[RunnerUp, ...]:
        """The graphs over the nodes that came closest, with the measurement model that was found."""
        if not n_runners or self.likelihood is None or self.best is None:
            return ()
        n, chosen = self.n, self.best.model
        entries = [
            (self.best.value - n * value + self.path_penalty * model.n_paths, model)
            for model, value in self.likelihood.visited.items()
            if isinstance(model, FactorModel) and model != chosen
        ]
        runners = []
        for difference, model in sorted(entries, key=lambda entry: entry[0])[:n_runners]:
            marks = self.paths.restricted(model.between)
            if marks is not None and difference < BUDGET.rival:
                graph = self.class_of(extension(marks), measured, names, decided)
                more = model.n_paths - chosen.n_paths
                runners.append(RunnerUp(graph, self.best.value - difference, difference, dimension + more))
        return tuple(runners)
