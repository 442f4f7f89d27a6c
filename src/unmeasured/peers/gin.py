"""GIN (Xie et al. 2020): clusters and their causal order from generalized independent noise, run by causal-learn.

For non-Gaussian data. A set Y of indicators and a set Z satisfy the condition if some combination of Y that is
uncorrelated with Z is independent of it; causal-learn tests that combination against the members of Z one by one.

**The column it looks at.** As released (up to 0.1.4.8 at least) it runs over ``range(len(Z))`` and takes *that* column
of the data, not the member of Z: of variables 0 to 14 with Y = {0, 1}, it tests columns 0 to 12 where it should test 2
to 14. The combination contains Y itself, so dependence is found where there is none, and some members of Z are never
looked at. ``corrected=True`` runs the same code and hands it the column it means; nothing else differs. Tables name the
two rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal, get_args
from unittest import mock

import numpy as np
from scipy import stats

from unmeasured.arrays import Floats, Marks
from unmeasured.constraints import ALPHA, FLAG, Rule, one_of
from unmeasured.data.moments.normality import mardia
from unmeasured.data.sample import Sample
from unmeasured.peers.base import Peer, class_of_marks, complete_rows, imported, quiet
from unmeasured.remarks import Remark, distrust

Independence = Literal["kci", "hsic"]
# Below this p-value of Mardia's skewness or kurtosis rows differ from normal ones.
_NOT_NORMAL = 0.01


class GIN(Peer):
    """Generalized independent noise, by causal-learn; needs rows, and noise that is not Gaussian.

    Parameters
    ----------
    corrected : bool
        Test the columns that are meant; False is causal-learn as released. See the top of this module.
    test : "kci" or "hsic"
        causal-learn's test of independence.
    alpha : float
        Significance level.
    cache_kernels : bool
        Keep what "kci" works out of each column, N² numbers for every variable, instead of working it out for each of
        thousands of pairs: the same answers many times faster. causal-learn does not.

    Notes
    -----
    Of normal rows nothing can be learned in this way; ``remarks_`` says so where rows do not differ from normal ones
    (Mardia's skewness and kurtosis, p > .01).

    causal-learn gives one latent to every cluster, also to one that needed several, and directs all latents along the
    causal order it finds: a complete graph, whose class has no directed edge between latents.
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "corrected": FLAG,
        "test": one_of(*get_args(Independence)),
        "alpha": ALPHA,
        "cache_kernels": FLAG,
    }

    def __init__(
        self, *, corrected: bool = True, test: Independence = "kci", alpha: float = 0.05, cache_kernels: bool = False
    ) -> None:
        self.corrected = corrected
        self.test = test
        self.alpha = alpha
        self.cache_kernels = cache_kernels

    def __sklearn_tags__(self) -> Any:
        """Rows have to be complete."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

    def _search(self, sample: Sample) -> None:
        alpha = float(self.alpha)
        rows = complete_rows(sample, "GIN", "a covariance does not tell noise that is not Gaussian")
        library = imported("causallearn.search.HiddenCausal.GIN.GIN", "causal-learn", "GIN")
        standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        with quiet(), _kernels_kept(library, rows.shape[1], self.cache_kernels):
            graph, _ = (
                _run_corrected(library, standard, self.test, alpha)
                if self.corrected
                else library.GIN(standard, self.test, alpha)
            )
        found, remarks = class_of_marks(_marks(graph, len(sample.names)), sample.names, "causal-learn's GIN")
        self._keep(sample, found, (*remarks, *_normality_in_words(rows)))


def _normality_in_words(rows: Floats) -> tuple[Remark, ...]:
    """What to think of the answer where rows do not differ from normal ones; empty where they clearly do."""
    tests = mardia(rows)
    if min(tests.skewness_pvalue, tests.kurtosis_pvalue) < _NOT_NORMAL:
        return ()
    return (
        distrust(
            "GIN needs noise that is not normal, and these rows do not differ from a normal distribution (Mardia's "
            f"skewness p = {tests.skewness_pvalue:.2f}, kurtosis p = {tests.kurtosis_pvalue:.2f}): do not rely on this "
            "answer. Use a method for covariances, such as um.LGES."
        ),
    )


def _kernels_kept(library: Any, n_columns: int, keep: bool) -> AbstractContextManager[Any]:
    if not keep:
        return nullcontext()
    # The library makes one test a run, without arguments.
    return mock.patch.object(library, "KCI_UInd", partial(keeping(library.KCI_UInd), n_columns))


@dataclass(frozen=True, eq=False)
class _Kernel:
    """What the test needs of one column: its centred kernel matrix as a vector, the trace, the sum of squares."""

    centred: Floats
    trace: float
    squares: float


def keeping(base: Any) -> Any:
    """causal-learn's test by kernels, with the kernels of the columns it saw last; p-values are the same."""

    class Keeping(base):  # type: ignore[misc]
        def __init__(self, n_columns: int) -> None:
            super().__init__()
            # Columns come back all the time, a combination of them while its partners are gone through.
            self._kernel = lru_cache(maxsize=n_columns + 2)(self._made)

        def compute_pvalue(self, data_x: Floats, data_y: Floats) -> tuple[float, float]:
            x, y = self._kernel(data_x.tobytes()), self._kernel(data_y.tobytes())
            n = len(data_x)
            statistic = float(x.centred @ y.centred)
            mean, variance = x.trace * y.trace / n, 2.0 * x.squares * y.squares / n**2
            return float(1.0 - stats.gamma.cdf(statistic, mean**2 / variance, 0, variance / mean)), statistic

        def _made(self, column: bytes) -> _Kernel:
            data = np.frombuffer(column)[:, None]
            # The partner is as small as can be: only the kernel of the column is asked for.
            K = self.HSIC_V_statistic(*[self.kernel_matrix(data, np.array([[0.0], [1.0]]))[0]] * 2)[1]
            return _Kernel(K.ravel(), float(np.trace(K)), float((K**2).sum()))

    return Keeping


class _Meant(np.ndarray):
    """Rows in which ``rows[:, [z]]`` is the column of the z-th member of Z, the set the library asked about last.

    Its other look at the rows, ``rows[:, Y]``, always has two columns or more.
    """

    Z: Sequence[int] = ()

    def __getitem__(self, key: Any) -> Any:
        rows = self.view(np.ndarray)
        if isinstance(key, tuple) and isinstance(key[1], list) and len(key[1]) == 1:
            return rows[key[0], [self.Z[key[1][0]]]]
        return rows[key]


def _run_corrected(library: Any, rows: Floats, test: Independence, alpha: float) -> Any:
    meant = rows.view(_Meant)
    released = library.cal_e_with_gin

    def remember(data: Any, cov: Floats, Y: list[int], Z: list[int]) -> Any:
        meant.Z = Z
        return released(data, cov, Y, Z)

    with mock.patch.object(library, "cal_e_with_gin", remember):
        return library.GIN(meant, test, alpha)


def _marks(graph: Any, n_observed: int) -> Marks:
    """Our marks, observed variables first; causal-learn calls them X1, X2, ... and leaves the order to chance."""
    names = [node.get_name() for node in graph.get_nodes()]
    latents = [node.get_name() for node in graph.get_nodes() if node.get_node_type().name == "LATENT"]
    order = [f"X{j + 1}" for j in range(n_observed)] + latents
    marks = np.zeros((len(order), len(order)), dtype=np.uint8)
    position = [order.index(name) for name in names]
    marks[np.ix_(position, position)] = (np.asarray(graph.graph) == -1).astype(np.uint8)
    return marks
