"""What all peers share: the interface of a search, libraries that may be absent and must be silent, marks into classes.

A peer is a :class:`~unmeasured.estimators.base.Search`: ``fit``, ``fit_cov`` where it can do without rows,
``graph_``, the same errors. One that needs a library imports it when it is fitted; where the library is absent the
error says how to get it, and in a benchmark that sentence is the row.
"""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from unmeasured.arrays import Floats, Marks
from unmeasured.data.sample import Sample
from unmeasured.errors import DataError, UnmeasuredError
from unmeasured.estimators.base import Search
from unmeasured.graphs import CPDAG, DAG, Variables, class_over_groups, consistent_extension
from unmeasured.models.fit import fit_many
from unmeasured.search.model import latent_names
from unmeasured.search.trace import Trace


class Peer(Search):
    """A method that is not ours, used like those that are."""

    n_jobs = 1  # peers run on one core, so that seconds compare

    def _keep(self, sample: Sample, graph: CPDAG, remarks: Sequence[str] = ()) -> None:
        """Take a graph as the answer: fit a member of it, and leave the rest to :class:`Search`."""
        self.graph_, self.trace_, self.remarks_ = graph, Trace(), tuple(remarks)
        (self.sem_,) = fit_many([graph], sample, n_threads=1)


def imported(module: str, package: str, who: str) -> Any:
    """A module of a library that is an extra, or the sentence that says how to get it."""
    try:
        with quiet():
            return import_module(module)
    except ImportError:
        raise UnmeasuredError(
            f"{who} needs the package {package}, which is not installed. Run: pip install 'unmeasured[peers]'"
        ) from None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what libraries print, and warn of, to themselves: an answer carries its own remarks."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def complete_rows(sample: Sample, who: str, why: str) -> Floats:
    """The rows of a sample, for methods that no covariance can serve."""
    if sample.rows is None:
        raise DataError(f"{who} needs rows: {why}. Call fit with a data frame or an array instead of fit_cov.")
    holes = int(np.isnan(sample.rows).any(axis=1).sum())
    if holes:
        raise DataError(f"{who} needs complete rows; {holes} of {len(sample.rows)} have missing values. Drop them.")
    return sample.rows


def rows_with_moments(sample: Sample) -> Floats:
    """Complete rows as they came or, where there are none, rows made up to have exactly the covariance (N rounded).

    For methods that look at second moments only, and ask for rows all the same.

    >>> rows = rows_with_moments(Sample.from_cov([[1.0, 0.5], [0.5, 1.0]], 10))
    >>> rows.shape, np.cov(rows.T).round(6).tolist()
    ((10, 2), [[1.0, 0.5], [0.5, 1.0]])
    """
    if sample.rows is not None and not np.isnan(sample.rows).any():
        return sample.rows
    if math.isinf(sample.n):
        raise DataError("This method tests at a sample size and has none for a population; pass a finite n_samples.")
    n = max(round(sample.n), len(sample.names) + 1)
    draws = np.random.default_rng(0).standard_normal((n, len(sample.names)))
    Q = np.linalg.qr(draws - draws.mean(axis=0))[0]
    return np.asarray(math.sqrt(n) * Q @ np.linalg.cholesky(sample.cov).T)


def class_of_marks(marks: Marks, observed: Sequence[str], who: str) -> tuple[CPDAG, tuple[str, ...]]:
    """The class of a graph in which ``marks[i, j]`` is i → j, or i – j where ``marks[j, i]`` is set too; and remarks.

    The observed variables come first, then latents, which get names. Peers return all sorts of half-directed graphs;
    the class is that of a DAG which agrees with the edges and, where there is one, adds no v-structure. Edges of a
    cycle are reversed along an order, which the remark says: the skeleton stays as it was found. Latents that share all
    their edges, and have an observed child, are a group (Def. 2).

    >>> graph, _ = class_of_marks(np.array([[0, 0, 0], [0, 0, 0], [1, 1, 0]], dtype=np.uint8), ["a", "b"], "It")
    >>> print(graph)
    L1 → a, b
    """
    n, d = len(observed), len(marks)
    latents = latent_names(observed, d - n)
    arcs, n_turned = consistent_extension(marks), 0
    if arcs is None:
        arcs, n_turned = _along_an_order(marks)
    order = [*range(n, d), *range(n)]
    dag = DAG(Variables.of((*latents, *observed), latents), arcs[np.ix_(order, order)])
    remark = f"{who} returned a cycle of directed edges; {n_turned} of them were reversed to have a class."
    return class_over_groups(dag, alike_latents(dag)), (remark,) if n_turned else ()


def _along_an_order(marks: Marks) -> tuple[Marks, int]:
    """All edges along one order, which turns as few directed ones as a greedy choice can; and how many it reversed."""
    directed = marks & ~marks.T
    left, order = list(range(len(marks))), []
    while left:
        first = min(left, key=lambda i: (int(directed[left, i].sum()), -i))  # latents, which come last, first
        order.append(first)
        left.remove(first)
    rank = np.argsort(order)
    skeleton = marks | marks.T
    arcs = np.where(rank[:, None] < rank[None, :], skeleton, 0).astype(np.uint8)
    return arcs, int((directed & arcs.T).sum())


def alike_latents(dag: DAG) -> tuple[tuple[str, ...], ...]:
    """Latents that share all their edges and have an observed child, together; the others each alone."""
    hidden = np.array(dag.variables.latent, dtype=bool)
    together: dict[object, list[str]] = {}
    for name in dag.latents:
        i = dag.variables.index(name)
        alike = (dag.adjacency[i].tobytes(), dag.adjacency[:, i].tobytes())
        together.setdefault(alike if dag.adjacency[i, ~hidden].any() else name, []).append(name)
    return tuple(tuple(group) for group in together.values())
