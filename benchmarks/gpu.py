"""Would a GPU pay? Batches of rank likelihoods and of fits, on whatever this machine has.

    python benchmarks/gpu.py

On a machine with our kernels (numba) it times them on two threads; on one with PyTorch and a CUDA device it times the
same work there, in double precision, transfers left out. Both parts draw the same matrices. The figures and what we
made of them are in ``docs/scaling.md``.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable

import numpy as np

REPEATS = 5
RANK_CASES = (
    (100, 2, 100_000),
    (300, 4, 100_000),
    (300, 8, 100_000),
    (300, 12, 20_000),
    (1000, 4, 100_000),
    (1000, 8, 100_000),
)  # variables, |A|, subsets
FIT_CASES = ((15, 5, 1000), (50, 10, 200), (200, 40, 20))  # observed, latents, models
ROUNDS = 200  # of expectation and maximisation, about what a fit takes


def correlations(n: int, rng: np.random.Generator) -> np.ndarray:
    """A correlation matrix of n variables with n / 5 factors."""
    loadings = np.zeros((n // 5, n))
    loadings[np.arange(n) % (n // 5), np.arange(n)] = rng.uniform(0.5, 0.9, n)
    rows = rng.normal(size=(4 * n, n // 5)) @ loadings + 0.6 * rng.normal(size=(4 * n, n))
    return np.corrcoef(rows.T)


def subsets_of(n: int, size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    return np.argsort(rng.random((count, n)), axis=1)[:, :size].copy()


def best_of(work: Callable[[], None]) -> float:
    work()  # compile, allocate
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def patterns(n: int, m: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """(count, m, n) who measures whom: pure indicators in turn, and one variable in ten with a second latent."""
    loads = np.zeros((count, m, n), dtype=bool)
    loads[:, np.arange(n) % m, np.arange(n)] = True
    for b in range(count):
        for j in rng.choice(n, n // 10, replace=False):
            loads[b, rng.integers(m), j] = True
    return loads


def on_two_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    from unmeasured.models.factors import Factors, fit_factors
    from unmeasured.models.rank import rank_shortfalls

    pool = ThreadPoolExecutor(2)
    for n, size, count in RANK_CASES:
        rng = np.random.default_rng(n + size)
        S, A = correlations(n, rng), subsets_of(n, size, count, rng)
        P = np.linalg.inv(S)
        seconds = best_of(
            lambda A=A, S=S, P=P: list(pool.map(lambda a: rank_shortfalls(S, a, 1, P=P), (A[::2], A[1::2])))
        )
        print(f"two threads: rank likelihood, n={n}, |A|={size}: {1e6 * seconds / count:.2f} microseconds each")
    for n, m, count in FIT_CASES:
        rng = np.random.default_rng(n + m)
        S, loads = correlations(n, rng), patterns(n, m, count, rng)

        def one(mask: np.ndarray, S: np.ndarray = S, m: int = m, n: int = n) -> float:
            return fit_factors(S, mask, Factors(0.6 * mask, 0.7 * np.eye(m) + 0.3, np.full(n, 0.5)), tolerance=1e-6)[1]

        seconds = best_of(lambda loads=loads, one=one: list(pool.map(one, loads)))
        print(f"two threads: fit by EM, {n} observed, {m} latents: {1e3 * seconds / count:.2f} ms each")


def on_the_gpu() -> None:
    import torch

    device = torch.device("cuda")
    print(torch.cuda.get_device_name())
    for n, size, count in RANK_CASES:
        rng = np.random.default_rng(n + size)
        S0, A0 = correlations(n, rng), subsets_of(n, size, count, rng)
        S, A = torch.tensor(S0, device=device), torch.tensor(A0, device=device)
        P = torch.linalg.inv(S)

        def ranks(S: torch.Tensor = S, P: torch.Tensor = P, A: torch.Tensor = A) -> None:
            for part in A.split(20_000):
                rows, columns = part[:, :, None], part[:, None, :]
                L = torch.linalg.cholesky(S[rows, columns])
                roots = torch.linalg.eigvalsh(L.mT @ P[rows, columns] @ L)
                0.5 * roots[:, :-1].clamp(min=1.0).log().sum(1)
            torch.cuda.synchronize()

        print(f"GPU: rank likelihood, n={n}, |A|={size}: {1e6 * best_of(ranks) / count:.2f} microseconds each")
    for n, m, count in FIT_CASES:
        rng = np.random.default_rng(n + m)
        S = torch.tensor(correlations(n, rng), device=device)
        loads = torch.tensor(patterns(n, m, count, rng), device=device)

        def fits(S: torch.Tensor = S, loads: torch.Tensor = loads, m: int = m, n: int = n) -> None:
            L, eye = 0.6 * loads.double(), torch.eye(m, device=device, dtype=torch.float64)
            Phi, psi = (
                (0.7 * eye + 0.3).expand(len(loads), m, m),
                torch.full((len(loads), n), 0.5, device=device).double(),
            )
            # Latents that are no parents of a variable are cut out of its regression by ones on the diagonal.
            keep = loads.mT[:, :, :, None] & loads.mT[:, :, None, :]
            for _ in range(ROUNDS):
                M = L / psi[:, None, :]
                rest = torch.linalg.inv(torch.linalg.inv(Phi) + M @ L.mT)
                B = rest @ M
                BS = B @ S
                C = BS @ B.mT + rest
                systems = torch.where(keep, C[:, None], eye)
                b = torch.linalg.solve(systems, (BS * loads).mT.unsqueeze(-1)).squeeze(-1)
                L, psi = b.mT * loads, (S.diagonal() - (b.mT * BS * loads).sum(1)).clamp(min=1e-5)
                unit = C.diagonal(dim1=1, dim2=2).sqrt()
                Phi, L = C / unit[:, :, None] / unit[:, None, :], L * unit[:, :, None]
            torch.cuda.synchronize()

        print(f"GPU: {ROUNDS} rounds of EM, {n} observed, {m} latents: {1e3 * best_of(fits) / count:.2f} ms each")


if __name__ == "__main__":
    if importlib.util.find_spec("numba"):
        on_two_threads()
    if importlib.util.find_spec("torch"):
        on_the_gpu()
