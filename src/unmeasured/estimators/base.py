"""What all searches share: scikit-learn's conventions on the way in, one answer on the way out.

A search says in ``_search`` how it goes from a :class:`~unmeasured.data.sample.Sample` to a graph, a fit, a trace
and remarks. Everything else is here, so that every search is used in the same way::

    rows ──► fit ─────┐
                      ├──► Sample ──► _search ──► graph_, sem_, trace_, remarks_ ──► result_
    matrix ──► fit_cov┘

Options are only stored by ``__init__`` and looked at by ``fit``, as scikit-learn asks: that is what lets ``clone``,
``set_params`` and grid searches work.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from unmeasured.constraints import THREADS, Rule, check
from unmeasured.data.moments.missing import Missing
from unmeasured.data.observed_roles import Roles
from unmeasured.data.rows import as_rows
from unmeasured.data.sample import Cor, Sample, as_sample
from unmeasured.errors import DataError, SearchStopped, Stopped
from unmeasured.graphs import CPDAG
from unmeasured.models.fit import Fit
from unmeasured.models.full import NOT_DONE, calls_for_it, with_full_information
from unmeasured.models.signs import with_signs
from unmeasured.remarks import by_consequence, distrust
from unmeasured.search.budget import BUDGET
from unmeasured.search.clock import checked_time_limit, data_time_check, finished_by, fit_under_way, present_timing
from unmeasured.search.discovery import RunnerUp, remarks_on_fit
from unmeasured.search.item_partitions import ItemPartition

if TYPE_CHECKING:
    from unmeasured.results.result import Result

T = TypeVar("T")
_MOST_THREADS = 1024  # more would have nothing to do
# How Python writes a function; where it lies in memory is nothing to keep.
_FUNCTION = re.compile(r"<function (?:\S+\.)?(\w+) at 0x[0-9a-f]+>")


class Search(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The interface of every search; see :class:`unmeasured.LGES` for what its attributes are."""

    n_jobs: int
    cor: Cor = "pearson"  # for methods that offer no choice
    missing: Missing = "ml"

    _rules: ClassVar[Mapping[str, Rule]] = {}  # of all options

    graph_: CPDAG
    latent_groups_: tuple[tuple[str, ...], ...]
    sem_: Fit
    sample_: Sample
    trace_: tuple[Any, ...]
    remarks_: tuple[str, ...]
    runners_up_: list[RunnerUp] = []  # noqa: RUF012 (for searches that have none)
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    stopped_: str = ""  # why the search did not come to its end, where it did not
    _named_latents: tuple[str, ...] = ()  # latents whose names were given
    _item_partitions: tuple[ItemPartition, ...] = ()  # where a search measured them
    _selected_partition: int = 0

    def fit(self, X: Any, y: object = None) -> Self:
        """Search the structure of rows of data.

        Parameters
        ----------
        X : DataFrame, array or Sample
            One row per sample; a missing value is NaN. Options ``cor`` and ``missing`` say what to make of them.
        y
            Not used; scikit-learn's pipelines pass it.
        """
        self.check_options()
        with fit_under_way():
            return self._fit(self._in_time(lambda: self.make_sample(X)), X)

    def make_sample(self, X: Any) -> Sample:
        """Return the sample that ``fit`` would make of rows and search, by the options ``cor`` and ``missing``."""
        _refuse_other_tables(X)
        roles = self._roles
        return as_sample(
            X,
            cor=self.cor,
            missing=self.missing,
            covariates=roles.covariates,
            outcomes=roles.outcomes,
            check=data_time_check(getattr(self, "time_limit", None), present_timing()),
        )

    @property
    def _roles(self) -> Roles:
        """Variables that are no indicators, for searches that know of such."""
        return Roles()

    def check_options(self) -> None:
        """Refuse options that are not allowed, as ``fit`` does first: for whoever has long work before a fit.

        Raises
        ------
        UnmeasuredError
            Naming the option, what it must be and what it is.
        """
        check(self._rules, self.get_params())

    def _in_time(self, work: Callable[[], T]) -> T:
        """Do to the rows what comes before the search, within the time limit and the moment that a first model has."""
        limit, timing = checked_time_limit(getattr(self, "time_limit", None)), present_timing()
        try:
            # Threads of BLAS wait for one another where other programs have the cores, and round differently each time.
            with threadpool_limits(limits=1, user_api="blas"):
                return finished_by(None if limit is None else timing.began + limit + BUDGET.for_first_model, work)
        except Stopped:
            raise SearchStopped(
                f"The time limit of {limit:g} s was over after {timing.spent:.1f} s, while the correlations of the "
                "rows were being computed: nothing was searched. Give time_limit more, or use fewer rows or columns."
            ) from None

    def fit_cov(self, cov: Any, n_samples: float, names: Sequence[str] | None = None) -> Self:
        """Search the structure behind a covariance or correlation matrix.

        Parameters
        ----------
        cov : DataFrame or array
            With divisor N - 1, as usual.
        n_samples : float
            How many samples it was made from; ``math.inf``: a population.
        names : sequence of str, optional
            The variables, where the matrix does not name them.
        """
        self.check_options()
        causes, effects = self._roles.covariates, self._roles.outcomes
        with fit_under_way():
            sample = as_sample(cov=cov, n_samples=n_samples, names=names, covariates=causes, outcomes=effects)
            return self._fit(sample, cov)

    def transform(self, X: Any) -> Any:
        """Factor scores of rows on every latent found: ``result_.fit.scores(X)``.

        The expectation of the latents given a row, with what is missing left out, as an array (N, latents); after
        scikit-learn's ``set_output(transform="pandas")`` as a data frame with the index of the rows. The columns must
        be those of the search, in their order; ``result_.fit.scores`` finds them by name among others.

        Examples
        --------
        >>> import unmeasured as um
        >>> rows = um.simulate.sample(um.simulate.random_gnfm(n_latents=3, n_observed=9, rng=0), 500, rng=1)
        >>> search = um.LGES().set_output(transform="pandas").fit(rows)
        >>> list(search.transform(rows[:5])), search.fit_transform(rows).shape
        (['L1', 'L2', 'L3'], (500, 3))
        """
        check_is_fitted(self, "result_")
        if len(getattr(X, "shape", (0, 0))) == 1:  # the words are scikit-learn's
            raise DataError("Scores are of a table of rows; got one dimension. Reshape your data: X.reshape(1, -1).")
        try:
            validate_data(self, X, reset=False, skip_check_array=True)
        except ValueError as error:
            raise DataError(str(error)) from None
        _refuse_other_tables(X, least=1)
        if not self.graph_.latents:
            return np.zeros((len(X), 0))
        names = list(self.sample_.names)
        rows = X if isinstance(X, pd.DataFrame) else pd.DataFrame(as_rows(X, names).values, columns=names)
        return self.result_.fit.scores(rows).to_numpy()

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The latents, in the order of the columns of :meth:`transform`."""
        check_is_fitted(self, "result_")
        return np.asarray(self.result_.fit.model.latents, dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Missing values are welcome: their moments are estimated."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @abstractmethod
    def _search(self, sample: Sample) -> None:
        """Check the options, then set ``graph_``, ``sem_``, ``trace_``, ``remarks_`` and whatever else there is."""

    def _fit(self, sample: Sample, source: Any) -> Self:
        self._search(sample)
        self._fit_to_rows()
        # That the search was stopped comes before all else; it is among the remarks of the search, too.
        stopped = [distrust(self.stopped_)] if self.stopped_ else []
        self.remarks_ = by_consequence((*stopped, *sample.remarks, *self.remarks_))
        self.sem_ = with_signs(self.sem_)
        variables = self.graph_.variables
        self.sample_ = replace(sample, covariates=variables.covariates, outcomes=variables.outcomes)
        self.latent_groups_ = self.graph_.latent_groups
        self.n_features_in_ = len(sample.names)
        self._keep_feature_names(source)
        # scikit-learn writes an estimator with the options that are not at their default.
        method = _FUNCTION.sub(r"\1", " ".join(repr(self).split()))
        self._answer = {
            "graph": self.graph_,
            "sem": self.sem_,
            "remarks": self.remarks_,
            "method": method,
            "options": self._options(),
            "named_latents": self._named_latents,
            "runners": tuple(self.runners_up_),
            "stopped": self.stopped_,
            "stored_partitions": self._item_partitions,
            "selected_partition": self._selected_partition,
            "of_groups": self._of_groups(),
        }
        self._made: dict[str, Any] = {}
        return self

    def _fit_to_rows(self) -> None:
        """Full information for what is reported, where the search took the moments of rows with missing values."""
        found = self.sem_
        self.sem_ = with_full_information(found, self._last_fit_check())
        if self.sem_.full is not None:
            told = {str(remark) for remark in remarks_on_fit(found)}
            if any(str(remark) in told for remark in self.remarks_):
                others = (remark for remark in self.remarks_ if str(remark) not in told)
                self.remarks_ = (*others, *remarks_on_fit(self.sem_))
            n, worth = self.sem_.full.n, found.sample.n
            self.remarks_ = (
                *self.remarks_,
                f"What is reported is a fit to the {n:.0f} rows themselves (full information), not to the covariance "
                f"that the search used with N = {worth:.1f}.",
            )
        elif calls_for_it(found.sample):
            self.remarks_ = (*self.remarks_, distrust(NOT_DONE))

    def _last_fit_check(self) -> Callable[[], None]:
        """Return a check that raises Stopped if the time limit is over, less the seconds reserved for later work."""
        limit, timing = checked_time_limit(getattr(self, "time_limit", None)), present_timing()

        def check_time() -> None:
            if limit is not None and timing.spent > limit - timing.reserved:
                raise Stopped

        return check_time

    @property
    def result_(self) -> Result:
        """The answer to read, made when it is asked for: the search itself knows nothing of how it is shown."""
        if not hasattr(self, "_answer"):
            raise AttributeError(f"{type(self).__name__} was not fitted yet, so it has no result_. Call its fit first.")
        if "result" not in self._made:  # a place of its own: scikit-learn wants attributes unchanged after fit
            # The only look to the right: what an answer is belongs to a package that builds on this one.
            self._made["result"] = import_module("unmeasured.results.result").Result(**self._answer)
        return cast("Result", self._made["result"])

    def _of_groups(self) -> dict[str, float]:
        """The test of the structure with parameters of its own in each group of people; empty if there are none."""
        return {}

    def _options(self) -> dict[str, Any]:
        """The options as a result keeps them: functions by their names."""
        moves = getattr(self, "moves", ())
        named = [str(getattr(move, "__name__", getattr(move, "name", move))) for move in moves]
        return {**self.get_params(), "moves": named} if named else self.get_params()

    def _keep_feature_names(self, source: Any) -> None:
        """scikit-learn's rule: the attribute is there exactly if the data came with names that are strings."""
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        is_polars = type(source).__module__.startswith("polars")
        if isinstance(source, pd.DataFrame) or is_polars:
            names = list(source.columns)
            if all(isinstance(name, str) for name in names):
                self.feature_names_in_ = np.asarray(names, dtype=object)

    @property
    def _n_threads(self) -> int | None:
        """Threads for fits; None is one for each core."""
        THREADS.check("n_jobs", self.n_jobs)
        return None if self.n_jobs == -1 else min(int(self.n_jobs), _MOST_THREADS)

    def _html_repr(self) -> str:
        """What a notebook shows: the answer of a fitted search, the options of one that is not."""
        return self.result_._repr_html_() if hasattr(self, "result_") else str(super()._html_repr())


def _refuse_other_tables(X: Any, least: int = 2) -> None:
    """Stop what ``numpy`` would make something else of without a word, and tables too small for any search."""
    if hasattr(X, "toarray"):
        raise DataError("The data are a sparse matrix; covariances are dense. Pass X.toarray().")
    dtypes = list(X.dtypes) if isinstance(X, pd.DataFrame) else [getattr(X, "dtype", None)]
    if any(getattr(dtype, "kind", "") == "c" for dtype in dtypes):
        raise DataError("Complex data not supported: variables are real numbers. Pass their real and imaginary parts.")
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) != 2 or not all(isinstance(k, Integral) for k in shape):
        return  # who reads it says what a table is; a Dask data frame does not know its rows yet
    # The words of these two are scikit-learn's, which its users know and its checks look for.
    if shape[0] < least:
        rows = "a table without rows" if shape[0] == 0 else "one row"
        raise DataError(f"n_samples = {shape[0]}, while a minimum of {least} is required: {rows} has no covariance.")
    if shape[1] < 2:
        raise DataError(
            f"{shape[1]} feature(s) (shape={tuple(shape)}) while a minimum of 2 is required: a latent variable needs "
            "at least two observed variables that measure it (Def. 2)."
        )
