"""What follows a fit, beside lavaan: modification indices, residuals, factor scores, defined parameters.

``lavaan_after.json`` holds what lavaan 0.6-14 under R 4.2.2 said on 2026-11-16 (``lavaan_after.R``; of ``three`` on
2026-11-20); run this file as a script, with the rows in ../shared/data, to make it anew. Rows of real data are not part
of the repository: of these only the scores of the first rows are stored, and the tests that need the rows are skipped
where they are not. Nothing that they test is left out: ``structural`` and ``three`` are drawn.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import time
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.models.fit import Fit
from unmeasured.models.local_fit import residual_errors

HERE = Path(__file__).parent
STORED = HERE / "lavaan_after.json"
ROWS = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_rows = pytest.mark.skipif(not ROWS.is_dir(), reason="the rows are not part of the repository")

# Two latents with a shared indicator, a predictor, an outcome, a residual covariance: all that model text can say.
STRUCTURAL = """
    f =~ a1 + a2 + a3 + a4
    g =~ b1 + b2 + b3 + 0.3*a4
    g ~ b*f
    f ~ c*z
    y ~ d*g + e*z
    a1 ~~ b1
    through := c*b*d
    total := c*b*d + e
    ratio := through / total
"""
DEMOCRACY = """
    ind60 =~ x1 + x2 + x3
    dem60 =~ y1 + y2 + y3 + y4
    dem65 =~ y5 + y6 + y7 + y8
    dem60 ~ a*ind60
    dem65 ~ b*ind60 + c*dem60
    y1 ~~ y5
    y2 ~~ y4 + y6
    y3 ~~ y7
    y4 ~~ y8
    y6 ~~ y8
    indirect := a*c
    total := b + a*c
"""
THREE = "visual =~ x1 + x2 + x3\ntextual =~ x4 + x5 + x6\nspeed =~ x7 + x8 + x9"
BUNDLED = {"holzinger_swineford": THREE, "political_democracy": DEMOCRACY}
CASES = ["structural", "three", "holzinger_swineford", "political_democracy", "multitasking", "teacher_burnout"]


@cache
def stored() -> dict:
    return json.loads(STORED.read_text("utf-8"))


def structural_rows() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    n = 150
    z = rng.normal(1.0, 1.0, n)
    f = 0.6 * z + rng.normal(size=n)
    g = 0.7 * f + rng.normal(size=n)
    noise = rng.normal(size=(n, 8)) * 0.8
    noise[:, 4] += 0.5 * noise[:, 0]
    columns = {f"a{k + 1}": 2.0 + w * f + noise[:, k] for k, w in enumerate((1.0, 0.8, 1.2, 0.6))}
    columns["a4"] = columns["a4"] + 0.3 * g
    columns |= {f"b{k + 1}": -1.0 + w * g + noise[:, 4 + k] for k, w in enumerate((0.9, 1.1, 0.7))}
    return pd.DataFrame(columns | {"y": 0.5 * g + 0.3 * z + noise[:, 7], "z": z}).round(6)


def three_rows() -> pd.DataFrame:
    """Skewed rows of three latents, drawn by ``lavaan_simulated.py``."""
    record = json.loads(gzip.decompress((HERE / "lavaan_simulated.json.gz").read_bytes()))
    return pd.DataFrame(record["rows"]["three"]).drop(columns="school")


def with_missing(rows: pd.DataFrame) -> pd.DataFrame:
    """A fifth of the values missing, and one row that shows a single variable."""
    rng = np.random.default_rng(11)
    holed = rows.mask(rng.random(rows.shape) < 0.2)
    holed.iloc[0] = np.nan
    holed.iloc[0, 1] = rows.iloc[0, 1]
    return holed


def model_and_cov(name: str) -> tuple[str, pd.DataFrame, int]:
    if name == "structural":
        rows = structural_rows()
        return STRUCTURAL, rows.cov(), len(rows)
    if name == "three":
        rows = three_rows()
        return THREE, rows.cov(), len(rows)
    data = um.datasets.load(name)
    text = (
        BUNDLED.get(name)
        or data.models["byrne2010_final_correlated" if name == "teacher_burnout" else "himi_three_factor"].text
    )
    return text, data.frame(), data.n_samples


@cache
def fitted(name: str) -> Fit:
    text, cov, n = model_and_cov(name)
    return um.fit(text, cov=cov, n_samples=n)


def table(name: str, key: str) -> pd.DataFrame:
    return pd.read_csv(StringIO(stored()[name][key]), keep_default_na=False, na_values=["NA", "NaN"])


def oriented(fit: Fit, name: str) -> dict[str, float]:
    """For each latent whether lavaan's points the same way: 1 or -1."""
    ours = fit.parameters[fit.parameters["op"] == "=~"]
    theirs = table(name, "parameters").set_index(["lhs", "op", "rhs"])["est"]
    return {
        latent: float(np.sign(rows["est"].iloc[0] * theirs[latent, "=~", rows["rhs"].iloc[0]]))
        for latent, rows in ours.groupby("lhs")
    }


# Local fit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_modification_indices_are_lavaans(name: str) -> None:
    fit = fitted(name)
    ours = {_unordered(row[:3]): row[3:] for row in fit.modification_indices().itertuples(index=False)}
    theirs = table(name, "indices")
    sign = oriented(fit, name)
    assert len(theirs) > 20
    missing, worst = [], np.zeros(3)
    for lhs, op, rhs, mi, epc, sepc in theirs.itertuples(index=False):
        if _unordered((lhs, op, rhs)) not in ours:
            missing.append((lhs, op, rhs, mi))
            continue
        our_mi, our_epc, our_sepc = ours.pop(_unordered((lhs, op, rhs)))
        way = sign.get(lhs, 1.0) * sign.get(rhs, 1.0)
        scale = max(1.0, abs(epc))
        worst = np.maximum(worst, [abs(our_mi - mi) / max(1.0, mi), abs(our_epc * way - epc) / scale, 0.0])
        # Of a variance lavaan standardises the estimate, not its change.
        if np.isfinite(sepc) and lhs != rhs:
            worst[2] = max(worst[2], abs(our_sepc * way - sepc) / max(1.0, abs(sepc)))
    assert not missing
    assert worst.max() < 1e-6, worst
    # What lavaan does not list, we do not either: here lavaan has a row for every candidate.
    assert not ours


def _unordered(row: tuple) -> tuple:
    lhs, op, rhs = row
    return (op, *sorted((lhs, rhs))) if op == "~~" else (op, lhs, rhs)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("kind", "key"), [("raw", "residuals"), ("correlation", "correlation"), ("standardised", "z")])
def test_residuals_are_lavaans(name: str, kind: str, key: str) -> None:
    theirs = table(name, key)
    ours = fitted(name).residuals(kind).loc[list(theirs.columns), list(theirs.columns)]
    difference = np.abs(ours.to_numpy() - theirs.to_numpy())
    if kind == "standardised":
        # Where a residual is zero by construction, lavaan divides rounding by rounding, or gives nothing.
        known = np.isfinite(ours.to_numpy()) & np.isfinite(theirs.to_numpy())
        # lavaan 0.6-14 does not divide residuals below 1e-4 at all.
        known &= np.abs(table(name, "correlation").to_numpy()) > 1e-4
        assert known.sum() >= 2 * len(theirs)
        assert np.median(difference[known]) < 1e-7
        # A residual that is nearly zero by construction has a tiny standard error, which makes rounding large.
        order = [fitted(name).sample.names.index(x) for x in theirs.columns]
        weight = np.minimum(100 * residual_errors(fitted(name))[np.ix_(order, order)], 1.0)
        difference = np.where(known, difference * weight, 0.0)
    assert difference.max() < 1e-6


def test_the_list_is_quick_and_can_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = fitted("teacher_burnout")
    start = time.process_time()
    every = fit.modification_indices()
    fit.residuals("standardised")
    assert time.process_time() - start < 1.0
    assert len(every) > 900
    large = fit.modification_indices(10.0)
    assert 0 < len(large) < 100
    assert large.equals(every[every["mi"] >= 10.0])
    monkeypatch.setattr("unmeasured.models.local_fit._ENTRIES", 20_000)  # made in parts
    np.testing.assert_allclose(fit.modification_indices(10.0)["mi"], large["mi"], rtol=1e-8)


# Defined parameters -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["structural", "political_democracy"])
def test_defined_parameters_are_lavaans(name: str) -> None:
    theirs = table(name, "parameters").set_index(["lhs", "op", "rhs"])
    ours = fitted(name).parameters.set_index(["lhs", "op", "rhs"])
    defined = [key for key in theirs.index if key[1] == ":="]
    assert len(defined) >= 2
    for key in defined:
        for ours_column, theirs_column in (("est", "est"), ("se", "se"), ("std", "std.all")):
            assert ours.loc[key, ours_column] == pytest.approx(theirs.loc[key, theirs_column], rel=5e-5)


# Factor scores ------------------------------------------------------------------------------------------------


DRAWN = {"structural": structural_rows, "three": three_rows}


@cache
def rows_of(name: str) -> pd.DataFrame:
    if name in DRAWN:
        return DRAWN[name]()
    return pd.read_csv(ROWS / f"{name}.csv")[list(um.datasets.load(name).names)]


@pytest.mark.parametrize("method", ["regression", "bartlett"])
@pytest.mark.parametrize("part", ["rows", "missing"])
@pytest.mark.parametrize(
    "name",
    [*DRAWN, *(pytest.param(x, marks=needs_rows) for x in ("holzinger_swineford", "political_democracy"))],
)
def test_scores_are_lavaans(name: str, part: str, method: str) -> None:
    rows = rows_of(name)
    fit = um.fit(model_and_cov(name)[0], rows)
    asked = rows if part == "rows" else with_missing(rows)
    theirs, errors = (table(name, f"{key}_{method}_{part}") for key in ("scores", "errors"))
    ours = fit.scores(asked, method, standard_errors=True).iloc[: len(theirs)]
    names = list(theirs.columns)
    sign = np.array([oriented(fit, name)[x] for x in names])
    # lavaan's latents have the mean their predictors give them, ours zero.
    mean = np.array([_mean_of(fit, x) for x in names])
    difference = np.abs(ours[names].to_numpy() * sign + mean - theirs.to_numpy())
    difference = np.hstack([difference, np.abs(ours[[f"{x}_se" for x in names]].to_numpy() - errors.to_numpy())])
    if name == "structural" and method == "bartlett":
        # Where the predictor is missing, lavaan's Bartlett scores take a generalised inverse of what is not determined.
        difference = difference[asked["z"].notna()[: len(theirs)].to_numpy()]
    assert np.nanmax(difference) < 1e-6
    assert np.isnan(ours[names].to_numpy()).sum() == theirs.isna().to_numpy().sum()
    assert np.isfinite(difference).mean() > 0.95


def _mean_of(fit: Fit, latent: str) -> float:
    place = {name: k for k, name in enumerate(fit.causal_order)}
    total = np.linalg.inv(np.eye(len(fit.F)) - fit.F)
    sources = [x for x in fit.model.observed if (fit.F[place[x]] != 0).any()]
    means = dict(zip(fit.sample.names, fit.sample.mean))
    return sum(float(total[place[x], place[latent]] * means[x]) for x in sources)


# Making the stored answers ------------------------------------------------------------------------------------


def ask_lavaan(text: str, cov: pd.DataFrame, n: int, rows: pd.DataFrame | None) -> dict[str, str]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.txt").write_text(text + "\n")
        (folder / "options.txt").write_text(f"{n}\n")
        cov.to_csv(folder / "cov.csv")
        if rows is not None:
            rows.to_csv(folder / "rows.csv", index=False)
            with_missing(rows).to_csv(folder / "missing.csv", index=False, na_rep="NA")
        subprocess.run(["Rscript", str(HERE / "lavaan_after.R"), str(folder)], check=True)
        keys = {"indices": "indices", "residuals": "residuals", "correlation": "correlation", "z": "standardised"}
        record = {key: (folder / f"{file}.csv").read_text() for key, file in keys.items()}
        record["parameters"] = (folder / "parameters.csv").read_text()
        for path in sorted(folder.glob("scores_*.csv")) + sorted(folder.glob("errors_*.csv")):
            # Of real data a few rows are enough.
            record[path.stem] = "".join(path.read_text().splitlines(keepends=True)[:41])
        record["version"] = (folder / "version.txt").read_text().strip()
        return record


def _store() -> None:
    record = {}
    for name in CASES:
        text, cov, n = model_and_cov(name)
        rows = rows_of(name) if name in DRAWN else None
        if name in ("holzinger_swineford", "political_democracy"):
            rows = pd.read_csv(ROWS / f"{name}.csv")[list(cov.columns)]
        record[name] = ask_lavaan(text, cov, n, rows)
    STORED.write_text(json.dumps(record, indent=0) + "\n")


if __name__ == "__main__":
    _store()
