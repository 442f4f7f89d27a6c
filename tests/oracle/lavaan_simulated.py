"""Rows that are drawn for the tests, and models of them that lavaan is asked about; run as a script to ask anew.

``lavaan_simulated.json.gz`` holds the rows and lavaan's answers (program and date stand in it), so that no test of an
estimator needs other rows.

    three       nine skewed items of three latents in two schools that differ in loadings and means
    holed       the same with values missing in one school, the more the larger the item before; the other is complete
    panel       growth over four occasions, and a latent that is measured twice by the same items
    likert      ten items in two to five categories
    covariates  two latents and an outcome with a covariate of mean 40, and a binary one
    gaps        the same with values missing in items and outcome
"""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
STORED = HERE / "lavaan_simulated.json.gz"

THREE = "visual =~ x1 + x2 + x3\ntextual =~ x4 + x5 + x6\nspeed =~ x7 + x8 + x9"
PATHS = f"{THREE}\nspeed ~ visual + textual\nx1 ~~ x7"
PARTIAL = "visual =~ c(a, a)*x1 + x2 + c(b, b)*x3\ntextual =~ x4 + x5 + x6\nx1 ~ c(m, m)*1\nx4 ~~ c(0.5, NA)*x4"
LABELLED = (
    "early =~ a*y1 + b*y2 + c*y3 + d*y4\nlate =~ a*z1 + b*z2 + c*z3 + d*z4\nlate ~ early\n"
    "y1 ~~ v*y1\nz1 ~~ v*z1\ny1 ~~ z1"
)
AGAIN = "early =~ y1 + y2 + y3 + y4\nlate =~ z1 + z2 + z3 + z4\nlate ~ early\ny1 ~~ z1\ny2 ~~ z2\ny3 ~~ z3\ny4 ~~ z4"
GROWTH = (
    "i =~ 1*t1 + 1*t2 + 1*t3 + 1*t4\ns =~ 0*t1 + 1*t2 + 2*t3 + 3*t4\ni ~~ NA*i\ns ~~ NA*s\n"
    "t1 + t2 + t3 + t4 ~ 0*1\ni + s ~ 1"
)
ITEMS = "f =~ o1 + o2 + o3 + o4 + o5\nh =~ o6 + o7 + o8 + o9 + o10"
REGRESSION = f"{ITEMS} + o1\nh ~ f\no2 ~~ o7"
CAUSES = "f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6\nf ~ age + female\nh ~ f + age\npay ~ h + age"
OBSERVED = "y1 ~ age + female\npay ~ y1 + age"
STEPS = ["", "loadings", "loadings intercepts", "loadings intercepts residuals"]


def draw() -> dict[str, pd.DataFrame]:
    """The rows, by name."""
    rng = np.random.default_rng(2026)
    rows = {"three": three(rng)}
    rows["holed"] = holed(rows["three"], rng)
    rows |= {"panel": panel(rng), "likert": likert(rng), "covariates": covariates(rng)}
    gaps = rows["covariates"].copy()
    # Missing at random, given the covariates, which have no holes: those older miss more.
    lost = rng.random(gaps.shape) < np.clip((gaps["age"].to_numpy()[:, None] - 15) / 150, 0.02, 0.4)
    rows["gaps"] = gaps.mask(lost & ~gaps.columns.isin(["age", "female"]))
    return rows


def skewed(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draws of a chi-square distribution with five degrees of freedom, with mean 0 and variance 1."""
    return (rng.chisquare(5, shape) - 5) / np.sqrt(10)


def three(rng: np.random.Generator) -> pd.DataFrame:
    """Three latents in two schools; a fourth behind two items of each of two makes the model a little wrong."""
    n, school = 260, np.repeat([0, 1], [140, 120])
    latents = skewed(rng, n, 3) @ np.linalg.cholesky([[1, 0.5, 0.3], [0.5, 1, 0.2], [0.3, 0.2, 1]]).T
    latents += school[:, None] * [0.3, -0.4, 0.0]
    loadings = np.tile([0.9, 0.7, 0.6], 3) + 0.15 * np.outer(school, [0, 1, 0, 0, 0, -1, 0, 1, 0])
    values = np.repeat(latents, 3, axis=1) * loadings + 0.7 * skewed(rng, n, 9) + [5, 5, 4, 3, 4, 2, 4, 5, 5]
    values += 0.35 * np.outer(skewed(rng, n), [0, 1, 1, 0, 1, 0, 0, 1, 0])
    rows = pd.DataFrame(values.round(2), columns=[f"x{j + 1}" for j in range(9)])
    return rows.assign(school=np.array(["East", "West"])[school])


def holed(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Missing at random in the first school: whether x2 to x9 are seen depends on x1, which always is."""
    values = rows.drop(columns="school")
    share = np.where(rows["school"] == "East", np.where(values["x1"] > 5, 0.35, 0.1), 0.0)
    lost = rng.random(values.shape) < share[:, None]
    lost[:, 0] = False
    return values.mask(lost).assign(school=rows["school"])


def panel(rng: np.random.Generator) -> pd.DataFrame:
    """Items at two times with what is special to each, and growth with a mean slope of one half."""
    n = 150
    early = rng.normal(size=n)
    late = 0.7 * early + 0.7 * rng.normal(size=n)
    special, loading = 0.4 * rng.normal(size=(n, 4)), np.array([0.9, 0.8, 0.7, 0.6])
    both = [np.outer(f, loading) + special + 0.6 * skewed(rng, n, 4) for f in (early, late)]
    start, slope = 2 + rng.normal(size=n), 0.5 + 0.4 * rng.normal(size=n)
    growth = start[:, None] + np.outer(slope, np.arange(4)) + 0.5 * rng.normal(size=(n, 4))
    names = [f"{k}{j}" for k in "yzt" for j in (1, 2, 3, 4)]
    return pd.DataFrame(np.hstack([*both, growth]).round(2), columns=names)


def likert(rng: np.random.Generator) -> pd.DataFrame:
    """Two latents behind items in categories."""
    latents = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], 350)
    loadings = np.tile([0.8, 0.7, 0.6, 0.7, 0.5], 2)
    values = np.repeat(latents, 5, axis=1) * loadings + rng.normal(size=(350, 10)) * np.sqrt(1 - loadings**2)
    values[:, [2, 3, 8]] += 0.4 * rng.normal(size=(350, 1))  # which the model knows nothing of
    cuts = [[-1, -0.2, 0.5, 1.2], [0.3], [-0.8, 0.6], [-1.2, -0.4, 0.4, 1.1], [-0.5, 0, 0.9]] * 2
    return pd.DataFrame({f"o{j + 1}": np.searchsorted(cut, values[:, j]) for j, cut in enumerate(cuts)})


def covariates(rng: np.random.Generator) -> pd.DataFrame:
    """Two latents and an outcome that depend on age, of mean 40 and skewed, and on a binary variable."""
    n = 280
    age = (18 + rng.gamma(2.2, 10.0, n)).round()
    female = (rng.random(n) < 0.3 + 0.005 * (age - 18)).astype(float)
    f = 0.03 * (age - 40) + 0.4 * female + 0.8 * skewed(rng, n)
    h = 0.5 * f - 0.02 * (age - 40) + 0.7 * skewed(rng, n)
    values = np.outer(f, [1, 0.8, 0.7, 0, 0, 0]) + np.outer(h, [0, 0, 0, 1, 0.9, 0.6]) + 0.6 * skewed(rng, n, 6) + 3
    values[:, 3] += 0.5 * female
    pay = 10 + 0.1 * age + 0.8 * h + skewed(rng, n)
    rows = pd.DataFrame(values.round(2), columns=[f"y{j + 1}" for j in range(6)])
    return rows.assign(pay=pay.round(2), age=age, female=female)


def asked(rows: str, model: str, estimator: str = "ML", **other: Any) -> dict[str, Any]:
    """A model to ask about; ``score``: its score tests, ``compare``: the steps of invariance too."""
    default = {"missing": "listwise", "group": "", "equal": "", "std": True, "fixed": False, "score": False}
    return {"rows": rows, "model": model, "estimator": estimator, **default, "compare": False, **other}


def models() -> list[dict[str, Any]]:
    """All that lavaan is asked."""
    out = [asked("three", text, estimator) for text in (THREE, PATHS) for estimator in ("ML", "MLM", "MLR")]
    out += [asked("panel", AGAIN, estimator) for estimator in ("ML", "MLM", "MLR")]
    out += [asked("panel", GROWTH), asked("panel", LABELLED)]
    out += [asked("holed", text, estimator, missing="ml") for text in (THREE, PATHS) for estimator in ("ML", "MLR")]
    out += [asked("likert", text, "WLSMV") for text in (ITEMS, REGRESSION)]
    for equal in [*STEPS, STEPS[-1] + " means", STEPS[-1] + " lv.variances lv.covariances"]:
        out.append(asked("three", THREE, group="school", equal=equal, score=bool(equal), compare=not equal))
    for estimator in ("MLM", "MLR"):
        out += [asked("three", THREE, estimator, group="school", equal=e, compare=not e) for e in STEPS[:3]]
    out += [asked("three", THREE, group="school", equal=equal, std=False) for equal in STEPS[:3]]
    out += [asked("three", PATHS, group="school", equal=STEPS[2] + " regressions residual.covariances")]
    out += [asked("three", PARTIAL, group="school")]
    out += [asked("holed", THREE, group="school", equal=equal, missing="ml") for equal in STEPS[:3]]
    out += [asked("holed", THREE, "MLR", group="school", equal=e, missing="ml", compare=not e) for e in STEPS[:3]]
    out += [asked("covariates", text, fixed=True) for text in (CAUSES, OBSERVED)]
    return out


def with_covariates() -> list[dict[str, Any]]:
    """Robust statistics and full information with covariates."""
    out = [asked("covariates", text, e, fixed=True) for text in (CAUSES, OBSERVED) for e in ("MLM", "MLR")]
    return [*out, *(asked("gaps", CAUSES, e, fixed=True, missing="ml") for e in ("ML", "MLR"))]


def ask(rows: dict[str, pd.DataFrame], those: list[dict[str, Any]]) -> dict[str, Any]:
    """Return lavaan's answers."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for key, table in rows.items():
            table.to_csv(folder / f"{key}.csv", index=False, na_rep="NA")
        pd.DataFrame(those).replace({True: "TRUE", False: "FALSE"}).to_csv(folder / "models.csv", index=False)
        subprocess.run(["Rscript", str(HERE / "lavaan_simulated.R"), name], check=True)
        return json.loads((folder / "answers.json").read_text("utf-8"))


def main() -> None:
    """Draw, ask and store."""
    rows = draw()
    columns = {key: json.loads(table.to_json(orient="columns", index=True)) for key, table in rows.items()}
    columns = {key: {name: list(values.values()) for name, values in table.items()} for key, table in columns.items()}
    record = {"rows": columns, **ask(rows, [*models(), *with_covariates()])}
    STORED.write_bytes(gzip.compress(json.dumps(record).encode(), mtime=0))


if __name__ == "__main__":
    main()
