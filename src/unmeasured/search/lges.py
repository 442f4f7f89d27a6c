"""LGES: the estimator. Its options and their checks; what they lead to is in :mod:`unmeasured.search.pipeline`."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

import pandas as pd
from threadpoolctl import ThreadpoolController

from unmeasured.data.given import Roles, checked_names
from unmeasured.data.missing import Missing
from unmeasured.data.sample import Cor, Sample
from unmeasured.errors import UnmeasuredError
from unmeasured.graphs import CPDAG
from unmeasured.knowledge.known import Knowledge
from unmeasured.search import options
from unmeasured.search.base import Search
from unmeasured.search.budget import BUDGET
from unmeasured.search.clock import Clock, checked_time_limit
from unmeasured.search.discovery import (
    Discovery,
    RunnerUp,
)
from unmeasured.search.moves import OwnMove
from unmeasured.search.options import Criterion, Options
from unmeasured.search.pipeline import discover
from unmeasured.search.roles.covariates import checked_roles
from unmeasured.search.score import default_delta
from unmeasured.search.tolerance import checked_tolerance
from unmeasured.search.trace import Trace
from unmeasured.search.warm import are_on_disk, compile_kernels
from unmeasured.sem.estimate import split_rows_by_group
from unmeasured.sem.fit import Fit

if TYPE_CHECKING:
    from unmeasured.answer.result import Result
    from unmeasured.measurement_invariance import Invariance


class LGES(Search):
    """Latent variable Greedy Equivalence Search.

    Parameters
    ----------
    criterion : "bic" or "delta"
        "bic": the log-likelihood less ``0.5 penalty log(N)`` for each generic dimension decides. "delta", the
        paper's rule: a deletion is kept if the log-likelihood per sample drops by at most ``delta``.
    delta : float, optional
        That tolerance; by default ``0.25 log(N) / N``.
    penalty : float
        What a dimension costs, in units of BIC's penalty; larger gives sparser graphs.
    tolerance : "auto" or float
        How far the population may lie off the model, in units of RMSEA. 0: the exact criterion. "auto": exact where a
        factor model holds; where every one is rejected .05, and the answer is led by the latents that are found again
        in replicates of the data (``docs/questionnaires.md``). With ``knowledge`` or ``moves``, "auto" is exact.
    residual_pairs : bool
        Whether a model that is rejected gets covariances between the residuals of items with similar wording or method,
        where they pay at an extended penalty (``result_.local_dependence``); not with ``tolerance=0``.
    max_group_size : int, optional
        Largest number of latents that may share all their indicators; None: as many as the variables allow.
    hierarchy : bool
        Whether latents may stand above latents: a common cause of three or more is kept where it explains them better
        than edges between them do (``docs/hierarchy.md``). The paper's rule ("delta") knows none.
    covariates : sequence of str
        Observed causes, such as age or a treatment: they may cause latents and outcomes, and nothing causes them. The
        search is conditioned on them, so nothing is assumed of their distribution (``docs/covariates.md``).
    outcomes : sequence of str
        Observed effects that measure no latent: caused by latents, covariates and one another.
    knowledge : Knowledge, optional
        What is known before the search: who measures what, how many latents there are, which paths there are. It is
        never violated; what it costs is in the remarks (``docs/knowledge.md``).
    n_latents : int, optional
        The number of latents, where it is known: short for ``knowledge=Knowledge(n_latents=...)``, and joined to other
        knowledge.
    price_knowledge : bool, optional
        Whether to search a second time, without knowledge, to tell what it costs; None: where that is cheap.
    prune : bool
        Refuse candidates by the closed-form bound without fitting them; the result is the same.
    cor : "auto", "pearson", "polychoric" or "spearman-normal"
        What to make of rows; see :func:`unmeasured.as_sample`.
    missing : "ml", "listwise" or "pairwise"
        What to do about missing values in rows.
    n_jobs : int
        Threads for fits, -1 for all cores, or for where ``joblib.parallel_config`` says; the result does not depend on
        it.
    random_state : int
        Kept for the interface of an estimator: the search draws nothing at random, and runs repeat.
    verbose : bool
        Show each step as it is taken, and about how long the search will take.
    moves : sequence of functions or moves
        Moves of your own for "bic": each takes a measurement model and gives others, which are tried beside ours. See
        ``examples/your_own_move.py``. A ``unmeasured.search.moves.Move`` is taken too, which may predict
        what it gains by closed forms, as ours do.
    time_limit : float, optional
        Seconds within which the best model so far is returned, and said to be that (``stopped_``); from the beginning
        of ``fit``, but for compiling the kernels in the first run on a machine. Where there is no model yet,
        :class:`~unmeasured.SearchStopped` is raised. Ctrl-C ends a search in the same way.

    Attributes
    ----------
    graph_ : CPDAG
        What data can tell: the class over latent groups.
    groups_ : tuple of tuples of str
    sem_ : Fit
        A member of the class, fitted.
    result_ : Result
        The answer to read: ``summary()``, tables, names for latents, exports.
    sample_ : Sample
        Names, covariance and N as used in the search.
    trace_ : Trace
        One record per step.
    runners_up_ : list of RunnerUp
        With "bic", the classes that came closest, best first; ``result_`` has them as a table.
    tolerance_ : float
        The tolerance that the answer was found with.
    stopped_ : str
        Why the search did not come to its end, in words, where Ctrl-C or the time limit ended it: then all else is of
        the best model so far, and this is the first of the remarks. Empty: it came to its end.
    remarks_ : tuple of str
        What the user should know, in words.
    n_features_in_ : int
        Number of observed variables.
    feature_names_in_ : array of str
        Their names, where the data had names.

    Examples
    --------
    >>> import math, numpy as np, unmeasured as um
    >>> truth = um.simulate.random_gnfm(n_latents=2, n_observed=6, rng=1)
    >>> parameters = um.simulate.realistic_parameters(truth, np.random.default_rng(1))
    >>> model = um.LGES(criterion="delta").fit_cov(parameters.cov(), math.inf, names=parameters.observed)
    >>> um.metrics.compare(truth, model.graph_).shd
    0
    """

    trace_: Trace
    runners_up_: list[RunnerUp]

    def __init__(
        self,
        *,
        criterion: Criterion = "bic",
        delta: float | None = None,
        penalty: float = 1.0,
        tolerance: float | Literal["auto"] = "auto",
        residual_pairs: bool = True,
        max_group_size: int | None = 3,
        hierarchy: bool = True,
        covariates: Sequence[str] = (),
        outcomes: Sequence[str] = (),
        knowledge: Knowledge | None = None,
        n_latents: int | None = None,
        price_knowledge: bool | None = None,
        prune: bool = True,
        cor: Cor = "auto",
        missing: Missing = "ml",
        n_jobs: int = 1,
        random_state: int = 0,
        time_limit: float | None = None,
        moves: Sequence[OwnMove] = (),
        verbose: bool = False,
    ) -> None:
        self.criterion = criterion
        self.delta = delta
        self.penalty = penalty
        self.tolerance = tolerance
        self.residual_pairs = residual_pairs
        self.max_group_size = max_group_size
        self.hierarchy = hierarchy
        self.covariates = covariates
        self.outcomes = outcomes
        self.knowledge = knowledge
        self.n_latents = n_latents
        self.price_knowledge = price_knowledge
        self.prune = prune
        self.cor = cor
        self.missing = missing
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.time_limit = time_limit
        self.moves = moves
        self.verbose = verbose

    @property
    def _roles(self) -> Roles:
        """Covariates and outcomes, as named by options and knowledge."""
        known = _checked_knowledge(self.knowledge)
        covariates, outcomes = (
            tuple(dict.fromkeys((*checked_names(key, getattr(self, key)), *getattr(known, key, ()))))
            for key in ("covariates", "outcomes")
        )
        return Roles(covariates, outcomes)

    def fit(self, X: Any, y: object = None, *, groups: Any = None) -> Self:
        """Search the structure behind rows.

        Parameters
        ----------
        X : DataFrame, array or Sample
            One row per sample; a missing value is NaN. Options ``cor`` and ``missing`` say what to make of them.
        y
            Not used; scikit-learn's pipelines pass it.
        groups : name of a column, or a value for each row, optional
            Groups of people: one structure for all, parameters of each group its own (``docs/groups.md``).

        Examples
        --------
        >>> import numpy as np, pandas as pd, unmeasured as um
        >>> rng = np.random.default_rng(0)
        >>> f = rng.normal(size=(600, 2)) @ np.array([[1.0, 0.5], [0.0, 0.8]])
        >>> items = np.repeat(f, 3, axis=1) + rng.normal(size=(600, 6))
        >>> rows = pd.DataFrame(items, columns=["a1", "a2", "a3", "b1", "b2", "b3"])
        >>> search = um.LGES().fit(rows.assign(country=np.repeat(["x", "y"], 300)), groups="country")
        >>> search.groups_, list(search.group_results_)
        ((('L1',), ('L2',)), ['x', 'y'])
        """
        if groups is None:
            return super().fit(X, y)
        self._begin()
        table, labels = split_rows_by_group(X, groups)
        roles = self._roles
        sample = Sample.from_rows(
            table, cor=self.cor, missing=self.missing, covariates=roles.covariates, outcomes=roles.outcomes,
            groups=labels,
        )  # fmt: skip
        return self._fit(sample, table)

    @property
    def group_results_(self) -> dict[str, Result]:
        """The answer with the estimates of each group of people, where ``fit`` was given groups.

        A latent points the same way in all of them: that of its strongest indicator in all rows.
        """
        fits, known = self._fits_of_groups(), self.result_
        strongest = known.loadings.assign(size=known.loadings["std"].abs()).sort_values("size")
        heads = {**dict(zip(strongest["latent"], strongest["indicator"], strict=True)), **known.heads}
        return {
            label: replace(known, sem=fit, heads=heads, findings=(), runners=(), robust=None)
            for label, fit in fits.items()
        }

    def _fits_of_groups(self) -> dict[str, Fit]:
        if not getattr(self, "_by_group", None):
            raise AttributeError("There are no groups of people: fit(rows, groups=...) searches several at once.")
        return self._by_group

    @property
    def invariance_(self) -> Invariance:
        """What the groups of people share and what differs: :func:`unmeasured.invariance` of the answer."""
        self._fits_of_groups()
        if "invariance" not in self._made:
            # A look to the right, as for result_: the search knows nothing of what is done with its answer.
            rows = pd.DataFrame(self.sample_.rows, columns=list(self.sample_.names))
            invariance = import_module("unmeasured.measurement_invariance").invariance
            self._made["invariance"] = invariance(self, rows, groups=list(self.sample_.groups))
        return cast("Invariance", self._made["invariance"])

    def _search(self, sample: Sample) -> None:
        found = self.discover(sample, n_runners=BUDGET.n_runners)
        self.graph_, self.sem_, self.runners_up_ = found.cpdag, found.fit, list(found.runners_up)
        self.trace_, self.remarks_, self._named = found.trace, found.remarks, found.named
        self.stopped_, self.tolerance_ = found.stopped, found.tolerance
        self._levels, self._headline = found.levels, found.headline
        self._by_group = dict(found.by_group)

    def discover(self, sample: Sample, starts: Sequence[CPDAG] = (), n_runners: int = 0) -> Discovery:
        """The search with these options on a sample, nothing kept; ``starts``: answers to similar data."""
        asked = replace(self._checked(sample), starts=starts, n_runners=n_runners)
        clock = self._clock()
        # Threads of BLAS round differently from run to run, which can lead a search elsewhere; the matrices are small.
        with _libraries().limit(limits=1, user_api="blas"):
            return discover(sample, asked, clock)

    def _checked(self, sample: Sample) -> Options:
        """The options, checked, for a sample."""
        options.one_of("cor", self.cor, get_args(Cor))
        options.one_of("missing", self.missing, get_args(Missing))
        options.seed("random_state", self.random_state)
        options.one_of("criterion", self.criterion, get_args(Criterion))
        moves = options.functions("moves", self.moves)
        if moves and self.criterion == "delta":
            raise UnmeasuredError('moves are for criterion="bic"; the paper\'s rule has its own. Leave them out.')
        known = _with_count(_checked_knowledge(self.knowledge), self.n_latents)
        asked = Options(
            criterion=self.criterion,
            delta=_checked_delta(self.delta, sample.n),
            penalty=options.positive("penalty", self.penalty, "1 is BIC's."),
            tolerance=checked_tolerance(self.tolerance),
            residual_pairs=options.flag("residual_pairs", self.residual_pairs),
            max_group_size=options.whole("max_group_size", self.max_group_size, or_none=True),
            hierarchy=options.flag("hierarchy", self.hierarchy),
            roles=checked_roles(sample, self.covariates, self.outcomes, known),
            knowledge=known,
            price_knowledge=options.flag_or_none("price_knowledge", self.price_knowledge),
            prune=options.flag("prune", self.prune),
            missing=self.missing,
            n_threads=self._n_threads,
            time_limit=checked_time_limit(self.time_limit),
            moves=moves,
            verbose=options.flag("verbose", self.verbose),
        )
        if asked.roles or sample.groups:
            _refuse_without_penalty(self.criterion, sample)
        return asked

    def _clock(self) -> Clock:
        """The clock of this fit; compiling the kernels, which the first run on a machine does, is not counted."""
        began = time.monotonic() if self._began is None else self._began
        if checked_time_limit(self.time_limit) is not None and not are_on_disk():
            before = time.monotonic()
            compile_kernels()
            began += time.monotonic() - before
        return Clock(self.time_limit, began, self._reserved)


@cache
def _libraries() -> ThreadpoolController:
    """Those loaded by now, looked for once: BLAS is loaded with numpy."""
    return ThreadpoolController()


def _with_count(known: Knowledge | None, n_latents: Any) -> Knowledge | None:
    """The knowledge with the number of latents that ``n_latents`` says; the two must not disagree."""
    count = options.whole("n_latents", n_latents, or_none=True)
    if count is None:
        return known
    if known is not None and known.n_latents is not None and known.n_latents != count:
        raise UnmeasuredError(
            f"n_latents is {count}, but the knowledge says {known.n_latents!r} latents. Leave one of the two out."
        )
    return replace(known or Knowledge(), n_latents=count)


def _refuse_without_penalty(criterion: str, sample: Sample) -> None:
    """Covariates and outcomes are searched by BIC, which needs a number of samples."""
    if criterion == "delta":
        raise UnmeasuredError(
            'Covariates and outcomes are for criterion="bic": the paper\'s rule knows only indicators. Leave them '
            "out, or leave criterion out."
        )
    if math.isinf(sample.n):
        raise UnmeasuredError(
            "Covariates and outcomes need a number of samples, since each path is weighed against it; this is a "
            "population. Give a large n_samples, such as 1e6."
        )


def _checked_knowledge(knowledge: Knowledge | None) -> Knowledge | None:
    if knowledge is None or isinstance(knowledge, Knowledge):
        return knowledge
    raise UnmeasuredError(
        f"knowledge is a um.Knowledge; got {knowledge!r}. Read a file with um.Knowledge.read, model text with "
        "um.Knowledge.from_lavaan."
    )


def _checked_delta(delta: float | None, n_samples: float) -> float:
    default = default_delta(n_samples)
    hint = f"Leave it out to use 0.25·log(n)/n, here {default:.3g}."
    return default if delta is None else options.positive("delta", delta, hint)
