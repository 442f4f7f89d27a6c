"""The rows behind lavaan's stored answers: drawn for the tests, or real ones that are not part of the repository."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
ROBUST = json.loads((ROOT / "tests" / "oracle" / "lavaan_robust.json").read_text("utf-8"))
DRAWN = {name: pd.DataFrame(columns) for name, columns in ROBUST["rows"].items()}


def rows_of(name: str) -> pd.DataFrame:
    """The rows that the R script calls so; the test is skipped where they are not at hand."""
    if name in DRAWN:
        return DRAWN[name]
    file, *change = name.split(" ", 1)
    if not (DATA / file).is_file():
        pytest.skip(f"the rows of {file} are not part of the repository")
    rows = pd.read_csv(DATA / file)
    if change == ["first 2000"]:
        rows = rows[(rows != 0).any(axis=1)][:2000]
    elif change == ["rounded"]:
        rows = np.floor(rows + 0.5)
    elif change == ["gaps"]:
        for j in range(1, 10):
            rows.loc[(np.arange(1, len(rows) + 1) * j) % 11 == 3, f"x{j}"] = np.nan
    return rows.assign(half=np.where(np.arange(1, len(rows) + 1) % 2 == 1, "odd", "even"))
