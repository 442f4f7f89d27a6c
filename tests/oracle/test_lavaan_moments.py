"""Polychoric, polyserial and maximum-likelihood moments: lavaan's answers.

The large answers need rows that are not part of the repository; the small one, with rows drawn for it, is kept here
with program, script and date.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.data.sample import as_sample

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
SMALL = json.loads((ROOT / "tests" / "oracle" / "lavaan_polyserial.json").read_text("utf-8"))
needs_rows = pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="the rows are not part of the repository")


def small(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    stored = SMALL[name]
    return pd.DataFrame(dict(zip(stored["names"], stored["columns"])), dtype=float), np.array(stored["corr"])


def oracle(name: str) -> dict:
    return json.loads((SHARED / "oracle" / name).read_text("utf-8"))


@pytest.mark.parametrize("name", ["mixed", "fourfold"])
def test_polyserial_and_polychoric_equal_lavaans(name: str) -> None:
    rows, expected = small(name)
    assert np.allclose(as_sample(rows, cor="auto").corr, expected, atol=1e-6)


def test_with_holes_every_pair_with_an_item_equals_lavaans() -> None:
    rows, expected = small("holes")
    difference = np.abs(as_sample(rows, cor="auto").corr - expected)
    # The pair of continuous variables: lavaan keeps the variances of all rows, Pearson's has those of the pair.
    assert 1e-4 < difference[0, 1] < 2e-3
    difference[0, 1] = difference[1, 0] = 0.0
    assert difference.max() < 1e-6


@needs_rows
def test_polychoric_correlations_of_25_items() -> None:
    rows = pd.read_csv(SHARED / "data" / "big5_25items.csv.gz")
    rows = rows[(rows != 0).any(axis=1)][:2000]
    start = time.process_time()  # of this process: what else the machine does must not decide
    sample = as_sample(rows, cor="auto")
    assert time.process_time() - start < 3.0
    assert set(sample.pairs["kind"]) == {"polychoric"}
    assert np.abs(sample.corr - np.array(oracle("lavaan_polychoric.json")["polychoric"])).max() < 1e-6


@needs_rows
def test_moments_of_rows_with_holes() -> None:
    rows = pd.read_csv(SHARED / "data" / "teacher_burnout_10pct_missing.csv")
    expected = oracle("lavaan_missing.json")
    cov = np.array(expected["cov"])
    sd = np.sqrt(np.diag(cov))
    start = time.process_time()
    sample = as_sample(rows)
    assert time.process_time() - start < 1.0
    assert np.abs((sample.mean - np.array(expected["mean"])) / sd).max() < 1e-5
    assert np.abs((sample.cov - cov) / np.outer(sd, sd)).max() < 1e-5


@needs_rows
def test_counting_the_rows_per_pair_brings_chi_square_near_full_information() -> None:
    # Full information likelihood of the model itself knows what the holes cost; moments with N = 599 would not.
    sample = as_sample(pd.read_csv(SHARED / "data" / "teacher_burnout_10pct_missing.csv"))
    published = um.datasets.load("teacher_burnout").models["byrne2010_final_correlated"]
    fit = um.fit(published.text, sample)
    expected = oracle("lavaan_missing.json")["fiml_fit_of_byrne2010_final_correlated"]
    assert fit.df == expected["df"]
    assert fit.chi2 == pytest.approx(expected["chisq"], rel=0.03)
    assert fit.chi2 / sample.n * 599 > 1.2 * expected["chisq"]
    assert fit.cfi == pytest.approx(expected["cfi"], abs=0.006)
    assert fit.rmsea == pytest.approx(expected["rmsea"], abs=0.006)
