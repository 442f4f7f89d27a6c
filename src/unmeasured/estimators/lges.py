"""LGES: the estimator. Its options and their checks; what they lead to is in :mod:`unmeasured.search.pipeline`."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast, get_args

import pandas as pd
from threadpoolctl import ThreadpoolController

from unmeasured.constraints import (
    FLAG,
    NAMES,
    SECONDS,
    THREADS,
    Rule,
    instance_of,
    one_of,
    positive,
    whole,
)
from unmeasured.data.moments.missing import Missing
from unmeasured.data.observed_roles import Roles, checked_names
from unmeasured.data.sample import Cor, Sample
from unmeasured.errors import UnmeasuredError
from unmeasured.estimators.base import Search
from unmeasured.graphs import CPDAG
from unmeasured.knowledge.known import Knowledge
from unmeasured.models.estimate import split_rows_by_group
from unmeasured.models.estimators import tested_together
from unmeasured.models.fit import Fit
from unmeasured.search import options
from unmeasured.search.budget import BUDGET
from unmeasured.search.clock import Clock, checked_time_limit, fit_under_way, present_timing
from unmeasured.search.close_fit.tolerance import TOLERANCE
from unmeasured.search.discovery import (
    Discovery,
    RunnerUp,
)
from unmeasured.search.measurement.moves import OwnMove
from unmeasured.search.options import Criterion, Options
from unmeasured.search.pipeline import discover
from unmeasured.search.roles.covariates import checked_roles
from unmeasured.search.score import default_delta
from unmeasured.search.trace import Trace
from unmeasured.search.warm import are_on_disk, compile_kernels

if TYPE_CHECKING:
    from unmeasured.results.invariance import Invariance
    from unmeasured.results.result import Result


KNOWLEDGE = instance_of(
    "a um.Knowledge",
    Knowledge,
    hint="Read a file with um.Knowledge.read, model text with um.Knowledge.from_lavaan.",
).or_none()


class LGES(Search):
    """Latent variable Greedy Equivalence Search.

    Parameters
    ----------
    criterion : "bic" or "delta"
        "bic": maximise the log-likelihood minus ``0.5 penalty log(N)`` for each generic dimension. "delta", the paper's
        rule: accept a deletion if the log-likelihood per sample decreases by at most ``delta``.
    delta : float, optional
        The threshold of that rule; by default ``0.25 log(N) / N``.
    penalty : float
        Penalty of a dimension, as a multiple of that of BIC; a larger penalty gives sparser graphs.
    tolerance : "auto" or float
        Misfit to tolerate, as an RMSEA. 0: the exact criterion. "auto": the exact criterion if a factor model fits; if
        every factor model is rejected, .05, and the latents that are found again in replicates of the data are reported
        first (``docs/questionnaires.md``). With ``knowledge`` or ``moves``, "auto" is the exact criterion.
    residual_covariances : bool
        Whether a model that is rejected may get residual covariances of items with similar wording or method, if they
        improve an extended criterion (``result_.local_dependence``). There are none with ``tolerance=0``.
    max_group_size : int, optional
        Largest number of latents that may share all their indicators; None: as many as the variables allow.
    hierarchy : bool
        Whether to search for higher-order latents: a common cause of three or more latents is kept if it explains them
        better than edges between them do (``docs/hierarchy.md``). Not used with ``criterion="delta"``.
    covariates : sequence of str
        Observed causes, such as age or a treatment. They may cause latents and outcomes, and nothing causes them. The
        search is conditioned on them, so their distribution is arbitrary (``docs/covariates.md``).
    outcomes : sequence of str
        Observed effects that measure no latent: caused by latents, covariates and other outcomes.
    knowledge : Knowledge, optional
        Prior knowledge: indicators of latents, numbers of latents, required and forbidden paths. The result always
        agrees with it; a remark reports how much it changes BIC (``docs/knowledge.md``).
    n_latents : int, optional
        The number of latents, if it is known: short for ``knowledge=Knowledge(n_latents=...)``. It is combined with
        other knowledge.
    compare_without_knowledge : bool, optional
        Whether to search a second time without knowledge, to report how much it changes BIC; None: if that is fast.
    prune : bool
        Whether to reject candidates by a closed-form bound without fitting them; the result is the same.
    cor : "auto", "pearson", "polychoric" or "spearman-normal"
        Kind of correlations; see :func:`unmeasured.as_sample`.
    missing : "ml", "listwise" or "pairwise"
        Treatment of missing values.
    n_jobs : int
        Number of threads for fits; -1 for all cores, or as set by ``joblib.parallel_config``. It does not change the
        result.
    random_state : int
        Seed of the replicates of the data, which are drawn if misfit may be tolerated: they tell how well partitions
        of the items are reproduced and whether a model is rejected. Starting points of fits have seeds of their own.
        The same seed and the same rows, in any order, give the same result.
    verbose : bool
        Whether to show each step and the estimated remaining time.
    moves : sequence of functions or moves
        Your own moves for "bic": each function takes a measurement model and returns others to try. See
        ``examples/your_own_move.py``. A ``unmeasured.search.measurement.moves.Move`` is accepted too, which may
        predict its gain by closed forms.
    time_limit : float, optional
        Seconds after which the search stops and returns the best model so far (see ``stopped_``), from the call of
        ``fit``: the correlations of the rows are included (in the main thread, which alone can be interrupted). The
        time for compiling code in the first run on a machine does not count, nor do tables of ``result_``, which are
        made when they are asked for. If there is no model yet, :class:`~unmeasured.SearchStopped` is raised. Ctrl-C
        stops a search in the same way.

    Attributes
    ----------
    graph_ : CPDAG
        The class of graphs that fit equally well, over groups of latents.
    latent_groups_ : tuple of tuples of str
        The groups of latents.
    sem_ : Fit
        The fit of one member of the class.
    result_ : Result
        The result: ``summary()``, tables, names for latents, exports.
    sample_ : Sample
        Names, covariance matrix and N as used in the search.
    trace_ : Trace
        One record per step.
    runners_up_ : list of RunnerUp
        With "bic", the classes with scores close to the best, best first; ``result_`` has them as a table.
    tolerance_ : float
        The tolerance that was used.
    stopped_ : str
        Why the search was stopped by Ctrl-C or the time limit, in words; empty if it was not. If it was stopped, all
        other attributes describe the best model so far.
    remarks_ : tuple of str
        Remarks for the user, in words.
    n_features_in_ : int
        Number of observed variables.
    feature_names_in_ : array of str
        Their names, if the data have names.

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

    _rules: ClassVar[Mapping[str, Rule]] = {
        "criterion": one_of(*get_args(Criterion)),
        "delta": positive("Leave it out to use 0.25·log(n)/n.").or_none(),
        "penalty": positive("1 is BIC's."),
        "tolerance": TOLERANCE,
        "residual_covariances": FLAG,
        "max_group_size": whole(1).or_none(),
        "hierarchy": FLAG,
        "covariates": NAMES,
        "outcomes": NAMES,
        "knowledge": KNOWLEDGE,
        "n_latents": whole(1).or_none(),
        "compare_without_knowledge": FLAG.or_none(),
        "prune": FLAG,
        "cor": one_of(*get_args(Cor)),
        "missing": one_of(*get_args(Missing)),
        "n_jobs": THREADS,
        "random_state": whole(0),
        "time_limit": SECONDS,
        "moves": Rule("a list of functions", options.are_moves),
        "verbose": FLAG,
    }

    def __init__(
        self,
        *,
        criterion: Criterion = "bic",
        delta: float | None = None,
        penalty: float = 1.0,
        tolerance: float | Literal["auto"] = "auto",
        residual_covariances: bool = True,
        max_group_size: int | None = 3,
        hierarchy: bool = True,
        covariates: Sequence[str] = (),
        outcomes: Sequence[str] = (),
        knowledge: Knowledge | None = None,
        n_latents: int | None = None,
        compare_without_knowledge: bool | None = None,
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
        self.residual_covariances = residual_covariances
        self.max_group_size = max_group_size
        self.hierarchy = hierarchy
        self.covariates = covariates
        self.outcomes = outcomes
        self.knowledge = knowledge
        self.n_latents = n_latents
        self.compare_without_knowledge = compare_without_knowledge
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
        known = self.knowledge
        KNOWLEDGE.check("knowledge", known)
        covariates, outcomes = (
            tuple(dict.fromkeys((*checked_names(key, getattr(self, key)), *getattr(known, key, ()))))
            for key in ("covariates", "outcomes")
        )
        return Roles(covariates, outcomes)

    def fit(self, X: Any, y: object = None, *, groups: Any = None) -> Self:
        """Search the structure of rows of data.

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
        >>> search.latent_groups_, list(search.group_results_)
        ((('L1',), ('L2',)), ['x', 'y'])
        """
        if groups is None:
            return super().fit(X, y)
        self.check_options()

        def sample_and_rows() -> tuple[Sample, pd.DataFrame]:
            table, labels = split_rows_by_group(X, groups)
            roles = self._roles
            return Sample.from_rows(
                table, cor=self.cor, missing=self.missing, covariates=roles.covariates, outcomes=roles.outcomes,
                groups=labels,
            ), table  # fmt: skip

        with fit_under_way():
            return self._fit(*self._in_time(sample_and_rows))

    @property
    def group_results_(self) -> dict[str, Result]:
        """The result with the estimates of each group of people, if ``fit`` was given groups.

        A latent has the same sign in all of them: its strongest own item in all rows has a positive loading.
        """
        fits, known = self._fits_of_groups(), self.result_
        sign_indicators = known.leading_items
        return {
            label: replace(
                known,
                sem=fit,
                sign_indicators=sign_indicators,
                findings=(),
                runners=(),
                of_groups={},
                robust=None,
                acov=None,
            )
            for label, fit in fits.items()
        }

    def _of_groups(self) -> dict[str, float]:
        fits = getattr(self, "_by_group", None)
        if not fits:
            return {}
        chi2, df, p = tested_together(fits.values())
        return {"chi2": chi2, "df": float(df), "pvalue": p}

    def _fits_of_groups(self) -> dict[str, Fit]:
        if not getattr(self, "_by_group", None):
            raise AttributeError("There are no groups of people: fit(rows, groups=...) searches several at once.")
        return self._by_group

    @property
    def invariance_(self) -> Invariance:
        """Measurement invariance across the groups of people: :func:`unmeasured.invariance` of the result."""
        self._fits_of_groups()
        if "invariance" not in self._made:
            # A look to the right, as for result_: the search knows nothing of what is done with its answer.
            rows = pd.DataFrame(self.sample_.rows, columns=list(self.sample_.names))
            invariance = import_module("unmeasured.results.invariance").invariance
            self._made["invariance"] = invariance(self, rows, groups=list(self.sample_.groups))
        return cast("Invariance", self._made["invariance"])

    def _search(self, sample: Sample) -> None:
        found = self.discover(sample, n_runners=BUDGET.n_runners)
        self.graph_, self.sem_, self.runners_up_ = found.cpdag, found.fit, list(found.runners_up)
        self.trace_, self.remarks_, self._named_latents = found.trace, found.remarks, found.named_latents
        self.stopped_, self.tolerance_ = found.stopped, found.tolerance
        self._item_partitions, self._selected_partition = found.partitions, found.selected_partition
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
        self.check_options()
        known = _with_count(self.knowledge, self.n_latents)
        self._refuse_what_means_nothing(sample, known)
        asked = Options(
            criterion=self.criterion,
            delta=default_delta(sample.n) if self.delta is None else float(self.delta),
            penalty=float(self.penalty),
            tolerance=None if isinstance(self.tolerance, str) else float(self.tolerance),
            residual_covariances=bool(self.residual_covariances),
            max_group_size=None if self.max_group_size is None else int(self.max_group_size),
            hierarchy=bool(self.hierarchy),
            roles=checked_roles(sample, self.covariates, self.outcomes, known),
            knowledge=known,
            compare_without_knowledge=None
            if self.compare_without_knowledge is None
            else bool(self.compare_without_knowledge),
            prune=bool(self.prune),
            missing=self.missing,
            n_threads=self._n_threads,
            seed=int(self.random_state),
            time_limit=checked_time_limit(self.time_limit),
            moves=tuple(self.moves),
            verbose=bool(self.verbose),
        )
        if asked.roles or sample.groups:
            _refuse_without_penalty(self.criterion, sample)
        return asked

    def _refuse_what_means_nothing(self, sample: Sample, known: Knowledge | None) -> None:
        """Refuse options that the others leave without a meaning, so that none is ignored."""
        if self.criterion == "delta":
            if len(self.moves):
                raise UnmeasuredError('moves are for criterion="bic"; the paper\'s rule has its own. Leave them out.')
            if self.penalty != 1:
                raise UnmeasuredError(
                    f'penalty={self.penalty!r} is for criterion="bic"; the paper\'s rule has delta. Leave penalty out.'
                )
            if self.tolerance not in ("auto", 0):
                raise UnmeasuredError(
                    f'tolerance={self.tolerance!r} is for criterion="bic"; the paper\'s rule tolerates no misfit. '
                    "Leave tolerance out."
                )
        elif self.delta is not None and not math.isinf(sample.n):  # a population is searched by the paper's rule
            raise UnmeasuredError(
                f'delta={self.delta!r} is for criterion="delta"; BIC has penalty. Leave delta out, or add '
                'criterion="delta".'
            )
        if self.compare_without_knowledge is not None and known is None:
            raise UnmeasuredError(
                f"compare_without_knowledge={self.compare_without_knowledge!r} is about knowledge, and none is given. "
                "Leave it out, or give knowledge or n_latents."
            )

    def _clock(self) -> Clock:
        """The clock of this fit; compiling the kernels, which the first run on a machine does, is not counted."""
        timing = present_timing()
        began = timing.began
        if checked_time_limit(self.time_limit) is not None and not are_on_disk():
            before = time.monotonic()
            compile_kernels()
            began += time.monotonic() - before
        return Clock(self.time_limit, began, timing.reserved)


@cache
def _libraries() -> ThreadpoolController:
    """Those loaded by now, looked for once: BLAS is loaded with numpy."""
    return ThreadpoolController()


def _with_count(known: Knowledge | None, n_latents: Any) -> Knowledge | None:
    """The knowledge with the number of latents that ``n_latents`` says; the two must not disagree."""
    if n_latents is None:
        return known
    count = int(n_latents)
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
