"""Seconds and memory of reading many rows: python benchmarks/many_rows.py [FOLDER for the files, about 500 MB].

Each case is a process of its own, whose processor time and largest memory are measured from its start to its end.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CASES = (
    (1_000_000, "one.parquet", {}),
    (1_000_000, "one.csv", {}),
    (1_000_000, "one.parquet", {"blocks": False}),
    (10_000_000, "ten.parquet", {}),
)


def block(rng: np.random.Generator, n: int) -> object:
    """Answers from 1 to 5 to fifty items of ten latents, 5% missing."""
    import pyarrow as pa

    latent = rng.normal(size=(n, 10)).astype(np.float32)
    latent[:, 1:] = 0.4 * latent[:, :1] + 0.9 * latent[:, 1:]
    values = 0.8 * np.repeat(latent, 5, axis=1) + 0.6 * rng.normal(size=(n, 50)).astype(np.float32)
    codes = (np.digitize(values, [-1.2, -0.3, 0.5, 1.3]) + 1).astype(np.int8)
    missing = rng.random((n, 50), dtype=np.float32) < 0.05
    return pa.table({f"q{j + 1}": pa.array(codes[:, j], mask=missing[:, j]) for j in range(50)})


def write(path: Path, n: int, seed: int) -> None:
    """A file of so many rows, 100,000 at a time."""
    import pyarrow.csv
    import pyarrow.parquet

    rng, writer = np.random.default_rng(seed), None
    for _ in range(0, n, 100_000):
        table = block(rng, 100_000)
        if writer is None:
            kind = pyarrow.csv.CSVWriter if path.suffix == ".csv" else pyarrow.parquet.ParquetWriter
            writer = kind(path, table.schema)
        writer.write_table(table)
    writer.close()


def measure(path: Path, options: dict[str, object]) -> None:
    """What one process takes, as JSON."""
    import unmeasured as um

    sample = um.as_sample(um.read(path, **options), cor="auto")
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = time.process_time()
    print(json.dumps({"rows": sample.n_rows, "seconds": seconds, "MiB": used.ru_maxrss / 1024}))


def main(folder: Path) -> None:
    """Every case in a process of its own."""
    for n, name, options in CASES:
        path = folder / name
        if not path.exists():
            write(path, n, 0 if n == 1_000_000 else 2)
        done = subprocess.run(
            [sys.executable, __file__, "--measure", str(path), json.dumps(options)], capture_output=True, check=True
        )
        found = json.loads(done.stdout)
        print(
            f"| {found['rows']:,} | {name} {options or ''} | {found['seconds']:.1f} | {found['MiB']:.0f} |", flush=True
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]), json.loads(sys.argv[3]))
    elif len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
