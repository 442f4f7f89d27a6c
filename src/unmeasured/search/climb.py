"""The one loop of every search by score: take a move that improves, begin again, until no move improves.

::

    here ──► first move that improves ──► written down ──► here
      │
      └ none ──► a local optimum: the answer

What is climbed over differs, the loop does not:

=============================  ============================================  =========================================
models                         moves, in this order                          in
=============================  ============================================  =========================================
measurement models             other parents; other groups                   :mod:`unmeasured.search.measurement.refine`
the same, many variables       other parents by EM; work on pieces           ``search/measurement/subproblems.py``
latent graphs by fits          delete, add or reverse an edge                :mod:`unmeasured.search.latent_graph.edges`
latent graphs in closed form   add, delete or reverse an arc; delete in the  :mod:`unmeasured.search.latent_graph.edges`
                               class
common causes of latents       a latent to or from a block, blocks merged    :mod:`unmeasured.search.hierarchy.blocks`
covariates and outcomes        a direct effect; an edge between nodes        :mod:`unmeasured.search.roles`
groups of people               other parents; latents merged                 :mod:`unmeasured.search.roles.multigroup`
=============================  ============================================  =========================================

A move looks at where the climb is and proposes the best it finds, or nothing. Whether that is an improvement is decided
here and nowhere else, and here it is written into the trace; so the scores of a trace rise by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

from unmeasured.errors import Stopped
from unmeasured.models.solve import Check, never
from unmeasured.search.trace import Recorder


class Scored(Protocol):
    """Whatever has a score."""

    @property
    def value(self) -> float:
        """Larger is better."""
        ...


S = TypeVar("S", bound=Scored)


@dataclass(frozen=True)
class Proposal(Generic[S]):
    """Where a move would lead, in words and as a value."""

    what: str
    to: S
    reason: str = ""  # the numbers that decide; left out: by how much the score rises
    n_bounded: int = 0  # candidates refused by a closed form, without a fit


Improve = Callable[[S], Proposal[S] | None]


@dataclass(frozen=True)
class Log:
    """Where the steps of a climb are written down, and under which heading."""

    recorder: Recorder
    phase: str


def climb(
    here: S,
    moves: Sequence[Improve[S]],
    *,
    least_rise: float,
    check: Check = never,
    log: Log | None = None,
    most: int | None = None,
    keeps_when_stopped: bool = False,
) -> S:
    """The local optimum that the moves lead to: always the first of them that improves.

    Parameters
    ----------
    here : scored
        Where to begin.
    moves : sequence of functions
        Each from a scored model to the best proposal it finds, or None.
    least_rise : float
        A proposal is taken if the score rises by more.
    check : function
        Called before every step; raises :class:`~unmeasured.errors.Stopped` where the time is over.
    log : Log, optional
        Where steps are written down.
    most : int, optional
        Steps at most.
    keeps_when_stopped : bool
        Whether the climb ends where it is once the time is over, or hands the end on to its caller.

    Examples
    --------
    >>> class Number(int):
    ...     value = property(lambda self: -abs(self - 7))
    >>> def more(k):
    ...     return lambda x: Proposal(f"{k} more", Number(x + k))
    >>> climb(Number(0), [more(3), more(1)], least_rise=0.0)
    7
    """
    if log is not None:
        show(here, log.recorder.score)
    try:
        for _ in count() if most is None else range(most):
            check()
            proposal = _first_that_improves(here, moves, least_rise)
            if proposal is None:
                break
            if log is not None:
                before, after = here.value, proposal.to.value
                reason = proposal.reason or f"the score rises by {after - before:.2f}, more than {least_rise:g}"
                log.recorder.write(
                    log.phase, proposal.what, before, after, reason, tolerance=least_rise, n_bounded=proposal.n_bounded
                )
                show(proposal.to, log.recorder.score)
            here = proposal.to
    except Stopped:
        if not keeps_when_stopped:
            raise
    return here


def _first_that_improves(here: S, moves: Sequence[Improve[S]], least_rise: float) -> Proposal[S] | None:
    for move in moves:
        proposal = move(here)
        if proposal is not None and proposal.to.value > here.value + least_rise:
            return proposal
    return None


# Watching from outside ------------------------------------------------------------------------------------------

# Takes a model and the score it was judged by: values of the same score can be compared.
Watcher = Callable[[Any, object], None]
_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(by: Watcher) -> Iterator[None]:
    """Every model that a climb inside comes to is shown to ``by``; the search is the same as without.

    >>> seen = []
    >>> with watched(lambda model, score: seen.append(model)):
    ...     show("a model", None)
    >>> show("nobody looks at this", None)
    >>> seen
    ['a model']
    """
    before = _WATCHER.set(by)
    try:
        yield
    finally:
        _WATCHER.reset(before)


def show(model: Any, score: object) -> None:
    """Show a model to whoever watches."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(model, score)
