"""Rank likelihoods on a GPU, for those who have one: the same figures, tens of times sooner in large batches.

Only batches of rank likelihoods gain (``docs/scaling.md`` has the figures): fits of a search start from one another, a
dozen at a time, and a GPU wants thousands. Needs PyTorch with CUDA (``pip install 'unmeasured[gpu]'``).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

import numpy as np

from unmeasured.arrays import Floats, Ints
from unmeasured.errors import UnmeasuredError

Device = Literal["cpu", "cuda"]

# Smaller batches are sooner done than sent.
LEAST_BATCH = 5_000
_PART = 20_000  # subsets at a time, so that memory stays small

_torch: Any = None  # where the GPU is in use


def use_device(device: Device) -> None:
    """Where large batches of rank likelihoods are computed from now on: "cpu", or "cuda".

    >>> use_device("cpu")
    >>> use_device("abacus")
    Traceback (most recent call last):
    ...
    unmeasured.errors.UnmeasuredError: device is 'cpu' or 'cuda'; got 'abacus'.
    """
    global _torch
    if device not in ("cpu", "cuda"):
        raise UnmeasuredError(f"device is 'cpu' or 'cuda'; got {device!r}.")
    _torch = None if device == "cpu" else _torch_with_cuda()


def _torch_with_cuda() -> Any:
    try:
        torch = import_module("torch")
    except ImportError:
        raise UnmeasuredError("A GPU needs PyTorch: pip install 'unmeasured[gpu]'.") from None
    if not torch.cuda.is_available():
        raise UnmeasuredError("PyTorch sees no CUDA device on this machine; leave use_device out, or say 'cpu'.")
    return torch


def takes(n_subsets: int) -> bool:
    """Whether a batch is one for the GPU in use."""
    return _torch is not None and n_subsets >= LEAST_BATCH


def smallest_roots(S: Floats, P: Floats, subsets: Ints, n_roots: int) -> Floats:
    """As :func:`unmeasured.models.rank.smallest_roots`, on the GPU, in double precision."""
    torch = _torch
    S_there, P_there = (torch.tensor(np.ascontiguousarray(matrix), device="cuda") for matrix in (S, P))
    out = []
    for part in torch.tensor(subsets, device="cuda").split(_PART):
        rows, columns = part[:, :, None], part[:, None, :]
        L = torch.linalg.cholesky(S_there[rows, columns])
        roots = torch.linalg.eigvalsh(L.mT @ P_there[rows, columns] @ L)
        out.append(0.5 * roots[:, :n_roots].clamp(min=1.0).log().sum(1))
    return np.asarray(torch.cat(out).cpu().numpy(), dtype=float)
