"""``ExactSearch``: the best classes of factor models by branch and bound, with scikit-learn's interface."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, get_args

from tqdm.auto import tqdm

from unmeasured.constraints import FLAG, SECONDS, THREADS, Rule, one_of, positive, whole
from unmeasured.data.moments.missing import Missing
from unmeasured.data.sample import Cor, Sample
from unmeasured.errors import DataError, SearchStopped, Stopped, UnmeasuredError, UnmeasuredWarning
from unmeasured.estimators.base import Search
from unmeasured.remarks import distrust
from unmeasured.search.clock import Clock, present_timing
from unmeasured.search.discovery import RunnerUp
from unmeasured.search.exact.branch import FITS, MOST_OBSERVED, TIE, BranchAndBound, Criterion, ExactStep
from unmeasured.search.exact.enumerate import checked_group_size, count_gnfm


class ExactSearch(Search):
    """Score every class of generalized N factor models (Def. 2), or prove that it cannot be the best.

    Parameters
    ----------
    criterion : "bic"
        Log-likelihood less ``penalty / 2 * log(N)`` for each dimension; for a population the smallest
        dimension among the classes that fit (Corollary 1).
    penalty : float
        Multiplies the charge for a dimension.
    max_group_size : int, optional
        Largest number of latents that may share all their indicators; left out: no limit.
    time_limit : float, optional
        Seconds after which the best so far is returned, with ``proven_ = False``. Listing the measurement models is not
        cut short: a second for 9 variables, a quarter of a minute for 10.
    n_best : int
        How many of the best classes to find, the best one included. All of them are proven, so more take longer.
    cor : "auto", "pearson", "polychoric" or "spearman-normal"
        What to make of rows; see :func:`unmeasured.as_sample`.
    missing : "ml", "listwise" or "pairwise"
        What to do about missing values in rows.
    n_jobs : int
        Threads for fits, -1 for all cores; the result does not depend on it.
    verbose : bool
        Show a progress bar: the part of the measurement models that is decided.

    Attributes
    ----------
    graph_ : CPDAG
        The best class over latent groups.
    latent_groups_ : tuple of tuples of str
        Its latent groups.
    sem_ : Fit
        A member of the class, fitted.
    result_ : Result
        The answer to read: ``summary()``, tables, names for latents, exports.
    sample_ : Sample
        The data as they were used.
    n_features_in_, feature_names_in_ : int, array of str
        Number of observed variables, and their names where the data had names.
    score_ : float
        The score of the best class.
    runners_up_ : list of RunnerUp
        The next best ones, with their distance to the best; 0 up to rounding is a tie. No two classes tie in a
        population (see :mod:`unmeasured.search.exact.enumerate`); in a sample they do where the optimum of both
        lies on a border they share.
    proven_ : bool
        Whether all classes were either fitted or bounded.
    n_classes_, n_fitted_, n_bounded_ : int
        Classes there are, classes fitted, and classes ruled out by the bound without a fit.
    trace_ : tuple of ExactStep
        How the best class changed.
    remarks_ : tuple of str
        What the user should know, in words.

    Notes
    -----
    An interrupt from the keyboard ends the search like ``time_limit`` does: the best so far is kept.

    Examples
    --------
    >>> import unmeasured as um
    >>> truth = um.simulate.random_gnfm(group_sizes=(1, 1), n_observed=5, shape="chain", rng=1)
    >>> parameters = um.simulate.realistic_parameters(truth, rng=1)
    >>> search = ExactSearch().fit_cov(parameters.cov(), math.inf, names=parameters.observed)
    >>> um.metrics.compare(truth, search.graph_).shd, search.proven_, search.n_classes_
    (0, True, 52)
    """

    score_: float
    runners_up_: list[RunnerUp]
    proven_: bool
    n_classes_: int
    n_fitted_: int
    n_bounded_: int
    trace_: tuple[ExactStep, ...]

    _rules: ClassVar[Mapping[str, Rule]] = {
        "criterion": one_of("bic"),
        "penalty": positive("The ordinary BIC has 1."),
        "max_group_size": whole(1).or_none(),
        "time_limit": SECONDS,
        "n_best": whole(1),
        "cor": one_of(*get_args(Cor)),
        "missing": one_of(*get_args(Missing)),
        "n_jobs": THREADS,
        "verbose": FLAG,
    }
    _bounding = True  # tests switch it off to see that nothing is lost

    def __init__(
        self,
        *,
        criterion: Literal["bic"] = "bic",
        penalty: float = 1.0,
        max_group_size: int | None = None,
        time_limit: float | None = None,
        n_best: int = 10,
        cor: Cor = "auto",
        missing: Missing = "ml",
        n_jobs: int = 1,
        verbose: bool = False,
    ) -> None:
        self.criterion = criterion
        self.penalty = penalty
        self.max_group_size = max_group_size
        self.time_limit = time_limit
        self.n_best = n_best
        self.cor = cor
        self.missing = missing
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _search(self, sample: Sample) -> None:
        n = _checked_size(sample)
        started = present_timing().began
        clock = Clock(self.time_limit, started)
        try:
            search = BranchAndBound(
                sample,
                Criterion.of(sample, self.penalty),
                largest=checked_group_size(self.max_group_size, n),
                n_best=self.n_best,
                n_threads=self._n_threads,
                bounding=self._bounding,
                check=clock.check_first_model,
            )
        except Stopped:
            raise SearchStopped(
                f"{clock.stopped}, before a first model was fitted: the bounds of all models of {n} variables come "
                "first. Give the search more time, or use LGES."
            ) from None
        trace, why = self._run(search, started)
        self.n_classes_ = count_gnfm(n, self.max_group_size).n_classes
        self._keep(search, trace, why)

    def _run(self, search: BranchAndBound, started: float) -> tuple[list[ExactStep], str]:
        """Step until all is decided; the reason if it is not."""
        deadline = math.inf if self.time_limit is None else started + self.time_limit
        trace: list[ExactStep] = []
        with tqdm(total=search.n_models, disable=not self.verbose, unit="model", desc="exact search") as bar:
            try:
                search.start()
                _record(trace, search, time.monotonic() - started)
                while not search.is_complete:
                    search.step(deadline)
                    _record(trace, search, time.monotonic() - started)
                    if self.verbose:
                        bar.set_postfix(best=f"{search.best[0].score:.2f}", fitted=search.n_fitted, refresh=False)
                        bar.update(search.n_models - search.open_models() - bar.n)
                    if time.monotonic() > deadline and not search.is_complete:
                        return trace, f"the time limit of {self.time_limit:g} s was reached"
            except KeyboardInterrupt:
                if not search.best:
                    raise  # nothing to return yet
                return trace, "it was interrupted"
        return trace, ""

    def _keep(self, search: BranchAndBound, trace: list[ExactStep], why: str) -> None:
        """Make attributes of what was found."""
        best = search.best[0]
        self.graph_ = best.model.cpdag
        self.sem_ = best.fit
        self.score_ = best.score
        self.runners_up_ = [
            RunnerUp(c.model.cpdag, c.score, best.score - c.score, c.dimension) for c in search.best[1:]
        ]
        self.proven_ = not why
        self.n_fitted_ = search.n_fitted
        n_open = 0 if self.proven_ else search.open_classes()
        self.n_bounded_ = self.n_classes_ - self.n_fitted_ - n_open
        self.trace_ = tuple(trace)
        self.remarks_ = tuple(self._remarks(search, n_open, why))
        if why:
            warnings.warn(self.remarks_[0], UnmeasuredWarning, stacklevel=5)

    def _remarks(self, search: BranchAndBound, n_open: int, why: str) -> Iterator[str]:
        if why:
            ahead = search.ceiling - self.score_
            could = f"could score up to {ahead:.2f} higher" if ahead > 0 else "cannot beat it, but could be runners-up"
            yield distrust(
                f"The search is not complete: {why}. The best class so far is returned; {n_open} of "
                f"{self.n_classes_} classes are left and {could}."
            )
        tied = sum(runner.difference < TIE for runner in self.runners_up_)
        if tied:
            yield f"{tied} other classes score as high as the best one; see runners_up_."
        if not (self.sem_.converged and self.sem_.admissible):
            yield distrust(f"The fit of the best class is not a proper one: {self.sem_.status}.")
        if math.isinf(search.sample.n) and 0.5 * self.sem_.solution.discrepancy > FITS:
            yield distrust("No class fits this population; the one returned comes closest.")
        if self.sem_.df == 0:
            yield distrust(
                "The class found is saturated: it fits any data, so its fit is no evidence for it. Measure more "
                "indicators."
            )


def _checked_size(sample: Sample) -> int:
    n = len(sample.names)
    if n < 2:
        raise DataError(
            f"A latent variable needs two observed variables that measure it (Def. 2); got {n}. Add variables."
        )
    if n > MOST_OBSERVED:
        known = (
            f"{n} observed variables have {count_gnfm(n).n_classes:.1e} classes" if n <= 21 else f"Got {n} variables"
        )
        raise UnmeasuredError(
            f"{known}, too many to go through; exact search takes {MOST_OBSERVED} variables at most. Use LGES, "
            "or search a subset of the variables."
        )
    return n


def _record(trace: list[ExactStep], search: BranchAndBound, seconds: float) -> None:
    """Note it when the best class has changed, and when the search ends."""
    score = search.best[0].score
    if not trace or score > trace[-1].score:
        what = "a better class" if trace else "the first classes"
    elif search.is_complete:
        what = "all classes decided"
    else:
        return
    trace.append(ExactStep(seconds, what, score, search.open_models(), search.n_fitted))
