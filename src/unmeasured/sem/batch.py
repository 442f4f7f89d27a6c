"""A batch of fits in one compiled call.

numba keeps machine code on disk and looks only at the file of a function to see whether it is still fresh; the
functions it calls may have changed in theirs. So the sources of all of them make up a ``version`` that this
function closes over, and what a function closes over is part of what it is looked up by.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.sem import kernels, start
from unmeasured.sem.kernels import compiled, fisher_scoring
from unmeasured.sem.start import least_variances, scale_fixed, start_values


def _version() -> int:
    """A checksum of everything :func:`fit_batch` is compiled from."""
    files = (kernels.__file__, start.__file__, __file__)
    return zlib.crc32(b"".join(Path(file).read_bytes() for file in files))


def _build(version: int) -> Callable[..., None]:
    def fit_batch(
        S: Floats,
        scale: Floats,
        sizes: Ints,
        ints: Ints,
        floats: Floats,
        x: Floats,
        lower: Floats,
        noise: Floats,
        max_steps: int,
        tolerance: float,
        values: Floats,
        steps: Ints,
        ends: Ints,
        promised: Floats,
        history: Floats,
    ) -> None:
        """Fit many problems on one covariance; their arrays lie end to end in ``ints``, ``floats``, ``x``.

        A start or bounds that are not numbers are made from the data. ``scale`` (n,) are the standard deviations that
        were divided out of S, ``noise`` (n,) is what each variable shares with no other; ``floats`` is changed.
        """
        if version < 0:  # never: named here so that the sources are part of this function's identity
            return
        at_int = 0
        at_float = 0
        at_x = 0
        for b in range(sizes.shape[0]):
            d, n, p, n_edges, n_covs = sizes[b]
            observed = ints[at_int : at_int + n]
            at_int += n
            source = ints[at_int : at_int + n_edges]
            at_int += n_edges
            target = ints[at_int : at_int + n_edges]
            at_int += n_edges
            slot = ints[at_int : at_int + n_edges]
            at_int += n_edges
            first = ints[at_int : at_int + n_covs]
            at_int += n_covs
            second = ints[at_int : at_int + n_covs]
            at_int += n_covs
            slot2 = ints[at_int : at_int + n_covs]
            at_int += n_covs
            fixed = floats[at_float : at_float + n_edges]
            at_float += n_edges
            fixed2 = floats[at_float : at_float + n_covs]
            at_float += n_covs
            scale_fixed(scale, d, observed, source, target, fixed, first, second, fixed2)
            if p > 0 and np.isnan(lower[at_x]):
                least_variances(noise, d, observed, source, slot, fixed, first, second, slot2, lower[at_x : at_x + p])
            if p > 0 and np.isnan(x[at_x]):
                start_values(
                    S, noise, d, observed, source, target, slot, fixed, first, second, slot2, fixed2, x[at_x : at_x + p]
                )
            values[b], steps[b], ends[b], promised[b] = fisher_scoring(
                S, d, observed, source, target, slot, fixed, first, second, slot2, fixed2,
                x[at_x : at_x + p], lower[at_x : at_x + p], max_steps, tolerance, history[b],
            )  # fmt: skip
            at_x += p

    return compiled(fit_batch)


fit_batch = _build(_version())
