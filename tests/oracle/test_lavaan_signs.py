"""Does the text that a result exports have the signs of the result, in lavaan and in our own fit?

``lavaan_signs.json`` holds the text exported for each bundled data set on 2026-11-19 and what lavaan 0.6-14 under R
4.2.2 said of it, latents scaled by their variance and by the first item; run this file as a script to make it anew.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import unmeasured as um

HERE = Path(__file__).parent
STORED = HERE / "lavaan_signs.json"
NAMES = um.datasets.available()
KEY = ["lhs", "op", "rhs"]


@cache
def found(name: str) -> um.Result:
    data = um.datasets.load(name)
    return um.LGES().fit_cov(data.frame(), data.n_samples).result_


@cache
def stored() -> dict[str, dict]:
    return json.loads(STORED.read_text("utf-8"))


def loadings_and_paths(table: pd.DataFrame) -> pd.Series:
    return table[table["op"].isin(["=~", "~"])].set_index(KEY)["std"].astype(float).sort_index()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", ["variance", "first-indicator"])
def test_lavaan_and_we_give_the_exported_text_the_signs_of_the_result(name: str, scale: str) -> None:
    result, theirs = found(name), stored()[name]
    assert result.to_lavaan() == theirs["text"]
    ours = loadings_and_paths(result.parameters)
    lavaan = pd.DataFrame(theirs[scale], columns=[*KEY, "std"]).set_index(KEY)["std"].sort_index()
    assert list(lavaan.index) == list(ours.index)
    assert lavaan.to_numpy() == pytest.approx(ours.to_numpy(), abs=2e-5)
    data = um.datasets.load(name)
    again = um.fit(theirs["text"], cov=data.frame(), n_samples=data.n_samples, scale_latents=scale)
    assert loadings_and_paths(again.parameters).to_numpy() == pytest.approx(ours.to_numpy(), abs=1e-5)


def main() -> None:
    """Fit every text in lavaan and store what it says."""
    answers = {}
    for name in NAMES:
        data, text = um.datasets.load(name), found(name).to_lavaan()
        with tempfile.TemporaryDirectory() as folder:
            model, cov, out = (Path(folder) / file for file in ("model.txt", "cov.csv", "out.csv"))
            model.write_text(text, "utf-8")
            data.frame().to_csv(cov)
            script = [str(HERE / "lavaan_signs.R"), str(model), str(cov), str(data.n_samples), str(out)]
            subprocess.run(["Rscript", *script], check=True)
            table = pd.read_csv(out, keep_default_na=False)
        version = table.loc[table["scale"] == "version", "lhs"].iloc[0]
        answers[name] = {"lavaan": version, "text": text}
        for scale, rows in table[table["scale"] != "version"].groupby("scale"):
            answers[name][scale] = [[*row[:3], float(row[3])] for row in rows[[*KEY, "std"]].to_numpy().tolist()]
    lines = [f" {json.dumps(name)}: {json.dumps(answer, ensure_ascii=False)}" for name, answer in answers.items()]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
