"""A batch of fits in two compiled calls: starts, then Fisher scoring.

numba keeps machine code on disk and looks only at the file of a function to see whether it is still fresh; the
functions it calls may have changed in theirs. So the sources of all of them make up a ``version`` that these
functions close over, and what a function closes over is part of what it is looked up by.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.kernels import likelihood as kernels
from unmeasured.kernels import start
from unmeasured.kernels.likelihood import compiled, fisher_scoring, inner
from unmeasured.kernels.start import least_variances, scale_fixed, start_values


def _version() -> int:
    """A checksum of everything the functions below are compiled from."""
    files = (kernels.__file__, start.__file__, __file__)
    return zlib.crc32(b"".join(Path(file).read_bytes() for file in files))


@inner
def unpacked(
    size: Ints, ints: Ints, floats: Floats, at_int: int, at_float: int
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Floats, Floats]:
    """The arrays of one problem, which lie end to end: those of whole numbers, then the fixed values."""
    _, n, _, n_edges, n_covs = size
    edges, covs = at_int + n, at_int + n + 3 * n_edges
    return (
        ints[at_int:edges],
        ints[edges : edges + n_edges],
        ints[edges + n_edges : edges + 2 * n_edges],
        ints[edges + 2 * n_edges : covs],
        ints[covs : covs + n_covs],
        ints[covs + n_covs : covs + 2 * n_covs],
        ints[covs + 2 * n_covs : covs + 3 * n_covs],
        floats[at_float : at_float + n_edges],
        floats[at_float + n_edges : at_float + n_edges + n_covs],
    )


def _build_start(version: int) -> Callable[..., None]:
    def start_batch(
        S: Floats, scale: Floats, sizes: Ints, ints: Ints, floats: Floats, x: Floats, lower: Floats, noise: Floats
    ) -> None:
        """Scale fixed values, and make starts and bounds that are not numbers from the data (see fit_batch)."""
        if version < 0:  # never: named here so that the sources are part of this function's identity
            return
        at_int, at_float, at_x = 0, 0, 0
        for b in range(sizes.shape[0]):
            d, n, p, n_edges, n_covs = sizes[b]
            observed, source, target, slot, first, second, slot2, fixed, fixed2 = unpacked(
                sizes[b], ints, floats, at_int, at_float
            )
            scale_fixed(scale, d, observed, source, target, fixed, first, second, fixed2)
            if p > 0 and np.isnan(lower[at_x]):
                least_variances(noise, d, observed, source, slot, fixed, first, second, slot2, lower[at_x : at_x + p])
            if p > 0 and np.isnan(x[at_x]):
                start_values(
                    S, noise, d, observed, source, target, slot, fixed, first, second, slot2, fixed2, x[at_x : at_x + p]
                )
            at_int += n + 3 * (n_edges + n_covs)
            at_float += n_edges + n_covs
            at_x += p

    return compiled(start_batch)


def _build_score(version: int) -> Callable[..., None]:
    def score_batch(
        S: Floats, sizes: Ints, ints: Ints, floats: Floats, x: Floats, lower: Floats, max_steps: int, tolerance: float,
        values: Floats, steps: Ints, ends: Ints, paces: Floats, history: Floats,
    ) -> None:  # fmt: skip
        """Fisher scoring of every problem from its start (see fit_batch)."""
        if version < 0:  # never: as above
            return
        at_int, at_float, at_x = 0, 0, 0
        for b in range(sizes.shape[0]):
            d, n, p, n_edges, n_covs = sizes[b]
            observed, source, target, slot, first, second, slot2, fixed, fixed2 = unpacked(
                sizes[b], ints, floats, at_int, at_float
            )
            values[b], steps[b], ends[b] = fisher_scoring(
                S, d, observed, source, target, slot, fixed, first, second, slot2, fixed2,
                x[at_x : at_x + p], lower[at_x : at_x + p], max_steps, tolerance, history[b], paces[b],
            )  # fmt: skip
            at_int += n + 3 * (n_edges + n_covs)
            at_float += n_edges + n_covs
            at_x += p

    return compiled(score_batch)


# Two functions, so that two processes can compile them at once (unmeasured.search.warm).
start_batch = _build_start(_version())
score_batch = _build_score(_version())


def fit_batch(
    S: Floats, scale: Floats, sizes: Ints, ints: Ints, floats: Floats, x: Floats, lower: Floats, noise: Floats,
    max_steps: int, tolerance: float, values: Floats, steps: Ints, ends: Ints, paces: Floats, history: Floats,
) -> None:  # fmt: skip
    """Fit many problems on one covariance; their arrays lie end to end in ``ints``, ``floats``, ``x``.

    A start or bounds that are not numbers are made from the data. ``scale`` (n,) are the standard deviations that
    were divided out of S, ``noise`` (n,) is what each variable shares with no other; ``floats`` is changed.
    """
    start_batch(S, scale, sizes, ints, floats, x, lower, noise)
    score_batch(S, sizes, ints, floats, x, lower, max_steps, tolerance, values, steps, ends, paces, history)
