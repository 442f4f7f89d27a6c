"""GIN (Xie et al. 2020): clusters and their causal order from generalized independent noise, run by causal-learn.

For non-Gaussian data. A set Y of indicators and a set Z satisfy the condition if some combination of Y that is
uncorrelated with Z is independent of it; causal-learn tests that combination against the members of Z one by one.

**The column it looks at.** As released (up to 0.1.4.8 at least) it runs over ``range(len(Z))`` and takes *that* column
of the data, not the member of Z: of variables 0 to 14 with Y = {0, 1}, it tests columns 0 to 12 where it should test 2
to 14. The combination contains Y itself, so dependence is found where there is none, and some members of Z are never
looked at. ``mended=True`` runs the same code and hands it the column it means; nothing else differs. Tables name the
two rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args
from unittest import mock

import numpy as np

from unmeasured.arrays import Floats, Marks
from unmeasured.data.sample import Sample
from unmeasured.errors import UnmeasuredError
from unmeasured.peers.base import Peer, checked_alpha, class_of_marks, complete_rows, imported, quiet

Independence = Literal["kci", "hsic"]


class GIN(Peer):
    """Generalized independent noise, by causal-learn; needs rows, and noise that is not Gaussian.

    Parameters
    ----------
    mended : bool
        Test the columns that are meant; False is causal-learn as released. See the top of this module.
    test : "kci" or "hsic"
        causal-learn's test of independence.
    alpha : float
        Significance level.

    Notes
    -----
    causal-learn gives one latent to every cluster, also to one that needed several, and directs all latents along the
    causal order it finds: a complete graph, whose class has no directed edge between latents.
    """

    def __init__(self, *, mended: bool = True, test: Independence = "kci", alpha: float = 0.05) -> None:
        self.mended = mended
        self.test = test
        self.alpha = alpha

    def __sklearn_tags__(self) -> Any:
        """Rows have to be complete."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

    def _search(self, sample: Sample) -> None:
        alpha = checked_alpha(self.alpha)
        if not isinstance(self.mended, bool):
            raise UnmeasuredError(f"mended is True or False; got {self.mended!r}.")
        if self.test not in get_args(Independence):
            raise UnmeasuredError(f"test is 'kci' or 'hsic'; got {self.test!r}.")
        rows = complete_rows(sample, "GIN", "a covariance does not tell noise that is not Gaussian")
        library = imported("causallearn.search.HiddenCausal.GIN.GIN", "causal-learn", "GIN")
        standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        with quiet():
            graph, _ = (
                _run_mended(library, standard, self.test, alpha)
                if self.mended
                else library.GIN(standard, self.test, alpha)
            )
        self._keep(sample, *class_of_marks(_marks(graph, len(sample.names)), sample.names, "causal-learn's GIN"))


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


def _run_mended(library: Any, rows: Floats, test: Independence, alpha: float) -> Any:
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
