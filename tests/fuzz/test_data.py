"""Damaged files of rows and of matrices, and rows that are right and odd, through a search to the end of its answer.

Tables and matrices from Python are in ``tests/property/test_malformed_data.py``.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

import unmeasured as um
from malformed import answered, damaged_bytes, damaged_text, fuzzed, one_in, usually
from unmeasured.output.report.run import run_of
from unmeasured.output.report.screen import screen


def searched(sample, is_whole):
    """The check of the data; one in a few goes through a search to the last word of the answer."""
    str(um.check(sample))
    if is_whole and 2 <= len(sample.names) <= 8:
        result = um.LGES(max_group_size=2).fit(sample).result_
        screen(result), result.summary(), result._repr_html_()


@fuzzed(100)
@given(st.data())
def test_files_of_rows(folder, rows, data):
    items = rows if data.draw(st.booleans()) else (2 * rows + 3).round().clip(1, 5)
    text = items.to_csv(index=data.draw(one_in(3)), sep=data.draw(st.sampled_from(",,;\t ")))
    endings = usually(".csv", ".txt", ".tsv", ".csv.gz", ".sav", ".dta", ".xlsx", ".parquet", ".xyz", "")
    path = folder / f"rows{data.draw(endings)}"
    path.write_bytes(content := data.draw(damaged_bytes(damaged_text(text))))
    reading = {
        "columns": data.draw(usually(None, ["a", "b"], ["z"], "a", [])),
        "separator": data.draw(usually(None, ",", "", "ab", "(")),
        "encoding": data.draw(usually("utf-8", "latin-1", "utf-16", "hex", "nonsense", "")),
        "header": data.draw(usually(None, True, False)),
    }
    cor = data.draw(usually("auto", "pearson", "spearman-normal", "polychoric", "x", None))
    missing = data.draw(usually("ml", "listwise", "pairwise", 3, ""))
    is_whole = data.draw(one_in(4))
    answered(lambda: searched(um.as_sample(um.read(path, **reading), cor=cor, missing=missing), is_whole))
    assert path.read_bytes() == content


@st.composite
def odd_samples(draw):
    """Rows that are right and odd: totals and copies among items, rare answers, outliers, missing values, few rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    p, n, k = draw(st.integers(4, 8)), draw(st.sampled_from([8, 15, 30, 60, 150])), draw(st.integers(1, 3))
    loadings = rng.normal(size=(k, p)) * (rng.random((k, p)) < 0.6) * draw(st.sampled_from([0.3, 1.0, 3.0]))
    rows = rng.normal(size=(n, k)) @ loadings + rng.normal(size=(n, p)) * draw(st.sampled_from([0.2, 1.0]))
    noise = rng.normal(size=n) * draw(st.sampled_from([0.0, 1e-9, 1e-3, 0.1]))
    changes = {
        "total": lambda x, others: others.sum(axis=1) + noise,
        "copy": lambda x, others: draw(st.sampled_from([1, -1])) * others[:, 0] + noise,
        "rare": lambda x, others: x > np.quantile(x, draw(st.sampled_from([0.5, 0.9, 0.97]))),
        "skewed": lambda x, others: np.exp(np.clip(2.0 * x, -50.0, 50.0)),
        "rounded": lambda x, others: x.round(),
        "scaled": lambda x, others: x * 10.0 ** draw(st.integers(-8, 8)),
        "outlier": lambda x, others: x + 1e4 * (np.arange(n) == 0),
        "missing": lambda x, others: np.where(rng.random(n) < draw(st.sampled_from([0.5, 0.9])), x, math.nan),
    }
    for kind in draw(st.lists(st.sampled_from(sorted(changes)), max_size=3)):
        j = draw(st.integers(0, p - 1))
        rows[:, j] = changes[kind](rows[:, j], np.delete(rows, j, axis=1))
    if draw(st.booleans()):
        scale, most = draw(st.sampled_from([0.5, 1.0, 2.0])), draw(st.sampled_from([2, 3, 5, 7]))
        rows = np.clip((rows * scale + 3.0).round(), 1, most)
    if draw(one_in(3)):
        rows[rng.random(rows.shape) < 0.15] = math.nan
    return pd.DataFrame(rows).add_prefix("q")


OPTIONS = st.sampled_from([{}, {}, {"tolerance": 0}, {"max_group_size": 1}, {"criterion": "delta"}])


@fuzzed(50, 500)
@given(odd_samples(), OPTIONS)
def test_rows_that_are_right_and_odd(sample, options):
    def run():
        run = run_of(um.LGES(**options).fit(sample))
        screen(run.result), run.result.summary(), run.to_json(), run.result.fit.modification_indices()

    answered(run)


@fuzzed(100)
@given(st.data())
def test_files_and_texts_of_matrices(folder, rows, data):
    cov = rows.corr().round(2)
    cells = (" ".join(f"{value:.2f}" for value in cov.iloc[i, : i + 1]) for i in range(5))
    printed = "\n".join(f"{i + 1}. {name} {line}" for i, (name, line) in enumerate(zip("abcde", cells, strict=True)))
    text = damaged_text(data.draw(st.sampled_from([printed, cov.to_csv()])))
    if data.draw(st.booleans()):
        source = data.draw(text) + "\n"
    else:
        source = folder / "matrix.csv"
        source.write_bytes(data.draw(damaged_bytes(text)))
    reading = {
        "names": data.draw(usually(None, list("abcde"), ["a"], "abcde", [1, 2, 3, 4, 5])),
        "diagonal": not data.draw(one_in(12)),
        "separator": data.draw(usually(None, ",", " ", ";", "", 3)),
    }
    given = {
        "n_samples": data.draw(usually(60, 60.5, math.inf, 3, 0, -1, "x", None, math.nan, 10**400, True)),
        "sd": data.draw(usually(None, [1, 2, 3, 4, 5], [1, 2], [0] * 5, "x", 1.0, [math.nan] * 5, [1e200] * 5)),
        "repair": data.draw(st.booleans()),
    }
    is_whole = data.draw(one_in(4))
    answered(lambda: searched(um.as_sample(cov=um.read_matrix(source, **reading), **given), is_whole))
