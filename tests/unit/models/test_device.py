"""Rank likelihoods on a GPU are those of the CPU; skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import unmeasured as um
from unmeasured.models import device
from unmeasured.models.rank import rank_shortfalls


@pytest.fixture
def gpu() -> Iterator[None]:
    try:
        um.use_device("cuda")
    except um.UnmeasuredError as error:
        pytest.skip(f"no GPU here: {error}")
    yield
    um.use_device("cpu")


def batch(n: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    S = np.corrcoef(rng.normal(size=(n, 4 * n)) + rng.normal(size=4 * n))
    return S, np.argsort(rng.random((6000, n)), axis=1)[:, :size].copy()


@pytest.mark.parametrize(("n", "size", "k"), [(30, 2, 1), (60, 4, 2), (60, 7, 3)])
def test_the_gpu_gives_the_figures_of_the_cpu(gpu: None, n: int, size: int, k: int) -> None:
    S, subsets = batch(n, size)
    assert device.takes(len(subsets))
    there = rank_shortfalls(S, subsets, k)
    um.use_device("cpu")
    np.testing.assert_allclose(there, rank_shortfalls(S, subsets, k), rtol=1e-9, atol=1e-12)


def test_small_batches_stay_at_home(gpu: None) -> None:
    assert not device.takes(device.LEAST_BATCH - 1)


def test_a_machine_without_a_gpu_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(device, "import_module", absent)
    with pytest.raises(um.UnmeasuredError, match="needs PyTorch"):
        um.use_device("cuda")
    assert not device.takes(10**6)
