"""Compiling ahead of a search: in two processes at once, where nothing is on disk yet.

numba compiles on one core, one function after another. What a search needs falls into two halves that take about the
same time: while this process compiles one, a second compiles the other into the cache on disk that both read. Where
that does not work, this process compiles all of it.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.data.sample import Sample, as_sample
from unmeasured.kernels import batch
from unmeasured.kernels.likelihood import is_ready
from unmeasured.kernels.savings import covariance_along, effects_along
from unmeasured.models.dimension import jacobian_rank
from unmeasured.models.exploratory import quartimin
from unmeasured.models.parameters import pattern_of
from unmeasured.models.rank import rank_shortfall
from unmeasured.models.solve import Problem, compilation_announced, n_cores
from unmeasured.search.measurement.relocate import latents_of, predicted_rise, relocated, stepwise_relocations
from unmeasured.search.model import FactorModel
from unmeasured.search.score import GroupBic


def compile_kernels() -> None:
    """Have the kernels of a search ready, from disk or newly compiled.

    >>> compile_kernels()
    >>> len(batch.score_batch.signatures) > 0
    True
    """
    helper = _helper() if n_cores() > 1 and not are_on_disk() else None
    try:
        with compilation_announced():
            compile_scores()
            if helper is not None:
                helper.wait()
            compile_starts()
    finally:
        if helper is not None:
            helper.terminate()


def compile_starts() -> None:
    """The half that makes starting values, with rotations and other parents.

    No problems are handed over where the types of the arrays are enough.
    """
    sample, (sizes, ints, floats) = _sample(), _no_problems()
    batch.start_batch(sample.corr, sample.sd, sizes, ints, floats, floats, floats, sample.unexplained)
    model = _model(sample)
    Phi, loading = np.ones((1, 1)), np.full((1, len(sample.names)), 0.5)
    fit, masks = (loading, Phi, np.ones(len(sample.names))), np.array([0, 1])
    allowed, now = latents_of(masks, model.sizes), np.searchsorted(masks, model.parents)
    relocated(sample.corr, *fit, masks, allowed)
    predicted_rise(sample.corr, *fit, allowed, np.zeros(2), now, sample.n)
    quartimin(np.eye(4, 2))
    current = np.ones((len(sample.names), 1), dtype=bool)
    stepwise_relocations(sample.corr, *fit, np.array([0, 1]), current, np.zeros(3), sample.n)


def compile_scores() -> None:
    """The other half: Fisher scoring, derivatives, rank likelihood, and graphs over latents."""
    sample, (sizes, ints, floats) = _sample(), _no_problems()
    history, paces = np.empty((0, 1)), np.empty((0, 4))
    batch.score_batch(
        sample.corr, sizes, ints, floats, floats, floats, 1, 1.0, floats, ints, ints, paces, history
    )  # fmt: skip
    model = _model(sample)
    pattern = pattern_of(model.member)
    Problem.of(pattern, sample).derivatives(np.ones(pattern.n_free))
    jacobian_rank(FactorModel(sample.names, (2,), (1,) * len(sample.names)).pattern)  # deficient: told exactly
    rank_shortfall(sample.corr, [0, 1], 1)
    Phi, loading = np.empty((1, 1)), np.full((1, len(sample.names)), 0.5)
    covariance_along(np.concatenate([[[0.0]], loading], axis=1), Phi)
    GroupBic(Phi, model.sizes, sample.n, 1.0).predicted()
    effects = np.concatenate([[[0.0]], loading], axis=1)
    effects_along(effects, Phi, np.zeros((1, 1), dtype=np.uint8), effects.copy())


def _helper() -> subprocess.Popen[bytes] | None:
    code = f"from {__name__} import compile_starts; compile_starts()"
    nowhere = subprocess.DEVNULL
    try:
        return subprocess.Popen([sys.executable, "-P", "-c", code], stdin=nowhere, stdout=nowhere, stderr=nowhere)
    except OSError:
        return None


def are_on_disk() -> bool:
    """Whether the kernels were compiled before, or cannot be kept."""
    cannot_be_kept = batch.start_batch.stats.cache_path is None  # type: ignore[attr-defined]
    return cannot_be_kept or (is_ready(batch.start_batch) and is_ready(batch.score_batch))


def _sample() -> Sample:
    return as_sample(cov=np.full((4, 4), 0.5) + 0.5 * np.eye(4), n_samples=100)


def _model(sample: Sample) -> FactorModel:
    return FactorModel(sample.names, (1,), (1,) * len(sample.names))


def _no_problems() -> tuple[Ints, Ints, Floats]:
    return np.empty((0, 5), dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
