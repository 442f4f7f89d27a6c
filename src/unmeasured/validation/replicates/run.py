"""The search on many replicates, in parallel, resumable, the same whatever runs it.

Every replicate has its own seed, made of ``random_state`` and its number, so that neither the number of workers nor the
order in which they finish changes anything. The work goes through joblib: another backend puts it on a cluster
(``docs/cluster.md``).
"""

from __future__ import annotations

import contextlib
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from unmeasured.constraints import FLAG, PATH, WORKERS, check, one_of, whole
from unmeasured.errors import UnmeasuredError
from unmeasured.estimators.base import Search
from unmeasured.estimators.lges import LGES
from unmeasured.graphs import CPDAG
from unmeasured.graphs.outline import Outline
from unmeasured.parallel import as_finished
from unmeasured.search.item_partitions import ItemPartition, strongest_partition
from unmeasured.validation.replicates.records import Records, Replicate
from unmeasured.validation.replicates.resample import Method, Resampling
from unmeasured.validation.replicates.result import Stability

# Options of a search that change nothing in its answer.
_IDLE = ("n_jobs", "verbose")
RULES = {
    "n_replicates": whole(1),
    "method": one_of(*get_args(Method)),
    "n_jobs": WORKERS,
    "random_state": whole(0),
    "records": PATH.or_none(),
    "warm_start": FLAG,
    "verbose": FLAG,
}


def stability(
    found: Any,
    n_replicates: int = 200,
    *,
    method: Method = "bootstrap",
    n_jobs: int | None = None,
    random_state: int = 0,
    records: str | Path | None = None,
    warm_start: bool = True,
    verbose: bool = False,
) -> Stability:
    """Search replicates of the data and count how often edges, items and groups are found.

    Parameters
    ----------
    found : fitted search, DataFrame, array or Sample
        A search that was fitted; or data, which ``LGES()`` then searches first.
    n_replicates : int
        How many replicates.
    method : "bootstrap", "subsample" or "parametric"
        Rows drawn with replacement, half of the rows without, or a covariance drawn around the one of the data
        (Wishart). Where only a matrix was given, "bootstrap" is "parametric".
    n_jobs : int, optional
        Replicates at once, each in a process of its own; -1 for one per core. None: 1, or what
        ``joblib.parallel_config`` says. The result does not depend on it.
    random_state : int
        The seed. Replicate i is the same for every number of replicates and workers.
    records : path, optional
        A file that every replicate is written to when it is done. Called again with the same file, only what is missing
        is made; with other data or settings the file is refused.
    warm_start : bool
        Let LGES climb from the graph found and from the best proposal of the replicate, instead of from four
        proposals: several times faster (``docs/stability.md`` says what it costs).
    verbose : bool
        Show a bar with the time left.

    Examples
    --------
    >>> import unmeasured as um
    >>> data = um.datasets.load("multitasking")
    >>> search = um.LGES().fit_cov(data.frame(), data.n_samples)
    >>> stable = um.stability(search, 6)
    >>> stable.n_latents.round(2).to_dict()
    {3: 0.83, 4: 0.17}
    >>> stable.edges.loc[0, ["source", "target"]].to_list(), float(stable.edges.loc[0, "frequency"])
    (['L1', 'Speed_Number'], 1.0)
    """
    check(RULES, locals())
    search = _fitted(found)
    work = Work.of(search, Resampling.of(search.sample_, method, search.missing), random_state, warm_start)
    kept = Records(records, work.about)
    _make(work, kept, n_replicates, n_jobs, verbose)
    return Stability(
        search.graph_,
        search.sample_.names,
        work.draw.method,
        tuple(kept.done[i] for i in range(n_replicates)),
    )


@dataclass(frozen=True, eq=False)
class Work:
    """One replicate, made anywhere: everything a worker needs to know."""

    search: Search
    draw: Resampling
    seed: int
    start: CPDAG
    warm: bool

    @classmethod
    def of(cls, search: Search, draw: Resampling, seed: int, warm: bool) -> Work:
        """The work on replicates of a fitted search; its fits use one thread, since there are many of them at once."""
        bare = clone(search)
        options = bare.get_params()
        # Replicates are searched with the tolerance of the answer, not asked anew whether a model holds.
        asked = {"n_jobs": 1, "verbose": False, "tolerance": getattr(search, "tolerance_", 0.0)}
        bare.set_params(**{key: value for key, value in asked.items() if key in options})
        return cls(bare, draw, int(seed), search.graph_, warm and isinstance(search, LGES))

    @property
    def about(self) -> dict[str, Any]:
        """What a record of this work belongs to."""
        from unmeasured import __version__

        options = {
            k: v if isinstance(v, int | float | str | None) else repr(v) for k, v in self.search.get_params().items()
        }
        return {
            "data": self.draw.digest,
            "observed": list(self.draw.sample.names),
            "method": self.draw.method,
            "seed": self.seed,
            "search": type(self.search).__name__,
            # A seed of zero is left out, as records had it that were made when a search had no seed.
            "options": {k: v for k, v in options.items() if k not in _IDLE and (k, v) != ("random_state", 0)},
            "warm": self.warm,
            "start": Outline.of(self.start, self.draw.sample.names).to_record(),
            "version": __version__,
        }

    def __call__(self, index: int) -> Replicate:
        """Make a replicate. A search that fails is a value with a sentence."""
        began = time.perf_counter()
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(index,)))
        outline, failure = None, ""
        selected_partition: tuple[int, ...] = ()
        # As many threads of numeric libraries as there are workers would stand in each other's way.
        with threadpool_limits(1):
            try:
                graph, level = self._found(rng)
                outline = Outline.of(graph, self.draw.sample.names)
                latent = dict(zip(level.items, level.latents, strict=True))
                numbers = {name: k for k, name in enumerate(dict.fromkeys(filter(None, level.latents)))}
                selected_partition = tuple(numbers.get(latent.get(name, ""), -1) for name in self.draw.sample.names)
            except UnmeasuredError as error:
                failure = str(error)
        return Replicate(index, outline, time.perf_counter() - began, failure, selected_partition)

    def _found(self, rng: np.random.Generator) -> tuple[CPDAG, ItemPartition]:
        """Return the graph of a replicate and its selected partition."""
        sample = self.draw(rng)
        if not isinstance(self.search, LGES):
            found = clone(self.search).fit(sample)
            return found.graph_, strongest_partition(found.graph_, found.sem_)
        answer = self.search.discover(sample, self._starts)
        if answer.interrupted:
            raise KeyboardInterrupt  # the best so far is no replicate
        level = (
            answer.partitions[answer.selected_partition]
            if answer.partitions
            else strongest_partition(answer.cpdag, answer.fit)
        )
        return answer.cpdag, level

    @cached_property
    def _starts(self) -> tuple[CPDAG, ...]:
        return (self.start,) if self.warm else ()


def _fitted(found: Any) -> Search:
    if not isinstance(found, Search):
        return LGES().fit(found)
    if not hasattr(found, "graph_"):
        raise UnmeasuredError("The search was not fitted yet, so there is nothing to judge. Call its fit first.")
    return found


def _make(work: Work, kept: Records, n_replicates: int, n_jobs: int | None, verbose: bool) -> None:
    """Make the replicates that are missing, and keep each as soon as it is done."""
    left = [i for i in range(n_replicates) if i not in kept.done]
    with (
        tqdm(total=n_replicates, initial=n_replicates - len(left), unit="replicate", disable=not verbose) as bar,
        contextlib.closing(as_finished(work, left, n_jobs)) as done,
    ):
        try:
            for replicate in done:
                kept.add(replicate)
                bar.update()
        except BrokenProcessPool as error:
            raise UnmeasuredError(
                f"A process that was making replicates died ({str(error).split('.')[0]}). With records= those before "
                "it are kept, and the same call goes on from there; fewer n_jobs help if memory ran out."
            ) from None
