"""Draw the rows of lavaan_missing.R into a folder: python lavaan_missing.py FOLDER

Two factors of four items each, a fifth of the values missing; which ones depends on the first item of each half, which
is complete (missing at random).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

NAMES = [f"y{j}" for j in range(1, 9)]
LOADINGS = np.kron(np.eye(2), np.array([[0.8, 0.7, 0.7, 0.6]]))


def with_holes(values: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """Holes in all items but the first of each factor, more of them where that one is large."""
    rows = pd.DataFrame(np.asarray(values, dtype=float), columns=NAMES).round(3)
    for half in (NAMES[:4], NAMES[4:]):
        high = rows[half[0]] > rows[half[0]].mean()
        for name in half[1:]:
            rows.loc[rng.random(len(rows)) < np.where(high, 0.35, 0.15), name] = np.nan
    return rows


def main(folder: Path) -> None:
    """Write the five files."""
    rng = np.random.default_rng(2027)

    def items(n: int, latents: np.ndarray | None = None) -> np.ndarray:
        f = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], n) if latents is None else latents
        return f @ LOADINGS + rng.normal(size=(n, 8)) * np.sqrt(1.0 - (LOADINGS**2).sum(axis=0))

    with_holes(3.0 + items(250), rng).to_csv(folder / "normal.csv", index=False)
    spread = np.sqrt(4.0 / rng.chisquare(6.0, size=(300, 1)))
    with_holes(3.0 + spread * items(300), rng).to_csv(folder / "heavy.csv", index=False)
    age = rng.normal(40.0, 12.0, 300).round(1)
    f = 0.03 * age + rng.normal(size=300)
    h = 0.4 * f - 0.02 * age + rng.normal(size=300)
    with_holes(items(300, np.column_stack([f, h])), rng).assign(age=age).to_csv(folder / "covariate.csv", index=False)
    likert = np.digitize(items(400), [-1.2, -0.4, 0.5, 1.3])
    with_holes(likert, rng).to_csv(folder / "likert.csv", index=False)
    with_holes(items(500) > np.linspace(-0.5, 0.9, 8), rng).to_csv(folder / "binary.csv", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
