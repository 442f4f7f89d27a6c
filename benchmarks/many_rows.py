"""Seconds and memory of reading many rows: ``python -m benchmarks many-rows [FOLDER]``.

Each case is a process of its own, whose processor time and largest memory are measured from its start to its end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import unmeasured as um

CASES: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (1_000_000, "one.parquet", {}),
    (1_000_000, "one.csv", {}),
    (1_000_000, "one.parquet", {"blocks": False}),
    (10_000_000, "ten.parquet", {}),
)


def block(rng: np.random.Generator, n: int) -> Any:
    """Answers from 1 to 5 to fifty items of ten latents, 5% missing."""
    import pyarrow as pa  # type: ignore[import-untyped]

    latent = rng.normal(size=(n, 10)).astype(np.float32)
    latent[:, 1:] = 0.4 * latent[:, :1] + 0.9 * latent[:, 1:]
    values = 0.8 * np.repeat(latent, 5, axis=1) + 0.6 * rng.normal(size=(n, 50)).astype(np.float32)
    codes = (np.digitize(values, [-1.2, -0.3, 0.5, 1.3]) + 1).astype(np.int8)
    missing = rng.random((n, 50), dtype=np.float32) < 0.05
    return pa.table({f"q{j + 1}": pa.array(codes[:, j], mask=missing[:, j]) for j in range(50)})


def write(path: Path, n: int, seed: int) -> None:
    """A file of so many rows, 100,000 at a time."""
    from pyarrow.csv import CSVWriter  # type: ignore[import-untyped]
    from pyarrow.parquet import ParquetWriter  # type: ignore[import-untyped]

    rng = np.random.default_rng(seed)
    first = block(rng, 100_000)
    with (CSVWriter if path.suffix == ".csv" else ParquetWriter)(path, first.schema) as writer:
        writer.write_table(first)
        for _ in range(100_000, n, 100_000):
            writer.write_table(block(rng, 100_000))


def measure(path: Path, options: dict[str, Any]) -> None:
    """What one process takes, as JSON."""
    import resource

    sample = um.as_sample(um.read(path, **options), cor="auto")
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = time.process_time()
    print(json.dumps({"rows": sample.n_rows, "seconds": seconds, "MiB": used.ru_maxrss / 1024}))


def main(folder: Path | None = None) -> None:
    """Every case in a process of its own; files that are there are not written again."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return main(Path(temporary))
    if not folder.is_dir():
        raise um.UnmeasuredError(f"{folder} is no folder. Make it first, or leave it out for a temporary one.")
    for n, name, options in CASES:
        path = folder / name
        if not path.exists():
            write(path, n, 0 if n == 1_000_000 else 2)
        done = subprocess.run(
            [sys.executable, "-m", __name__, str(path), json.dumps(options)], capture_output=True, check=True
        )
        found = json.loads(done.stdout)
        print(
            f"| {found['rows']:,} | {name} {options or ''} | {found['seconds']:.1f} | {found['MiB']:.0f} |", flush=True
        )


if __name__ == "__main__":
    measure(Path(sys.argv[1]), json.loads(sys.argv[2]))
