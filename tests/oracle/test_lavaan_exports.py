"""Does the text we export mean the same in lavaan? Its chi-square, df and standardised solution, stored and live.

``lavaan_exports.json`` holds what lavaan 0.6-14 under R 4.2.2 said on 2026-11-15 of our text; run this file as a script
to make it anew. Where R and lavaan are installed, today's text goes through them once more.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from graphs_zoo import group_collider, latent_chain, measured, shared_child, two_group_chain, two_group_chain_reversed

HERE = Path(__file__).parent
STORED = HERE / "lavaan_exports.json"


def _x(first: int, last: int) -> list[str]:
    return [f"x{i}" for i in range(first, last + 1)]


#    {A1, A2} ─► {B1, B2}             two groups that may rotate, and a child of both
#      ╱ … ╲  ↘  ↙ ╱ … ╲
#     x1 … x5  x10  x6 … x9
two_pairs = um.DAG.from_edges(
    [
        *measured(["A1", "A2"], ["B1", "B2", *_x(1, 5), "x10"]),
        *measured(["B1", "B2"], _x(6, 10)),
    ],
    latents=["A1", "A2", "B1", "B2"],
)

#    M ─► {A, B, C}                   three zeros are needed
three_together = um.DAG.from_edges(
    [*measured(["M"], ["A", "B", "C", "m1", "m2", "m3"]), *measured("ABC", _x(1, 8))], latents=["M", "A", "B", "C"]
)

#    L1     L2        x7              two indicators of a lone latent cannot tell its loadings,
#   ╱  ╲  ╱ … ╲                       and one variable has no cause at all
#  x1  x2 x3 … x6
lone_pair = um.DAG.from_edges(
    [*measured(["L1"], _x(1, 2)), *measured(["L2"], _x(3, 6))], latents=["L1", "L2"], names=["L1", "L2", *_x(1, 7)]
)

#   {L1, L2}    L3                    nor can four of a lone group of two
lone_group = um.DAG.from_edges(
    [*measured(["L1", "L2"], _x(1, 4)), *measured(["L3"], _x(5, 8))], latents=["L1", "L2", "L3"]
)

CASES = {
    "latent_chain": latent_chain,
    "shared_child": shared_child,
    "two_group_chain": two_group_chain,
    "two_group_chain_reversed": two_group_chain_reversed,
    "group_collider": group_collider,
    "two_pairs": two_pairs,
    "three_together": three_together,
    "lone_pair": lone_pair,
    "lone_group": lone_group,
}
HAS_LAVAAN = (
    bool(shutil.which("Rscript"))
    and not subprocess.run(["Rscript", "-e", "library(lavaan)"], capture_output=True).returncode
)


def stored(name: str) -> dict:
    return json.loads(STORED.read_text())[name]


@cache
def answer(name: str) -> um.Result:
    case, dag = stored(name), CASES[name]
    cov = pd.DataFrame(case["cov"], index=case["names"], columns=case["names"])
    return um.Result(dag.cpdag(), um.fit(dag, cov=cov, n_samples=case["n_samples"]))


def ask_lavaan(text: str, cov: pd.DataFrame, n: int, folder: Path) -> pd.DataFrame:
    (folder / "model.txt").write_text(text + "\n")
    cov.to_csv(folder / "cov.csv")
    files = [str(folder / "model.txt"), str(folder / "cov.csv"), str(n), str(folder / "out.csv")]
    subprocess.run(["Rscript", str(HERE / "lavaan_exports.R"), *files], check=True, capture_output=True)
    return pd.read_csv(folder / "out.csv", keep_default_na=False)


@pytest.mark.parametrize("name", CASES)
def test_chi_square_df_and_standardised_solution_are_lavaans(name: str) -> None:
    case, result = stored(name), answer(name)
    assert result.fit.chi2 == pytest.approx(case["chi2"], abs=1e-5)
    assert result.fit.df == result.sem.df == case["df"]
    rows = result.parameters.set_index(["lhs", "op", "rhs"])
    compared = 0
    for lhs, op, rhs, std, se in case["solution"]:
        if (lhs, op, rhs) in rows.index:
            # The sign of a latent is free, so signs may differ. An estimate lavaan holds fixed has other errors.
            assert abs(rows.loc[(lhs, op, rhs), "std"]) == pytest.approx(abs(std), abs=2e-5)
            if not np.isnan(rows.loc[(lhs, op, rhs), "std_se"]):
                assert rows.loc[(lhs, op, rhs), "std_se"] == pytest.approx(se, abs=2e-5)
                compared += 1
    assert compared > 5


@pytest.mark.parametrize("name", CASES)
def test_our_own_reader_takes_the_text_for_the_same_model(name: str) -> None:
    case, result = stored(name), answer(name)
    cov = pd.DataFrame(case["cov"], index=case["names"], columns=case["names"])
    for text in (result.to_lavaan(), result.graph.to_lavaan()):
        fit = um.fit(text, cov=cov, n_samples=case["n_samples"], correlate_outcomes=True)
        assert fit.chi2 == pytest.approx(case["chi2"], abs=1e-5)
        assert fit.df == case["df"]
    counted = um.fit(result.to_lavaan(), cov=cov, n_samples=case["n_samples"], count="parameters")
    assert counted.df == case["df"]


@pytest.mark.skipif(not HAS_LAVAAN, reason="needs R with lavaan; the stored answers are tested anyway")
@pytest.mark.parametrize("name", CASES)
def test_lavaan_still_says_the_same_of_todays_text(name: str, tmp_path: Path) -> None:
    case = stored(name)
    cov = pd.DataFrame(case["cov"], index=case["names"], columns=case["names"])
    out = ask_lavaan(answer(name).to_lavaan(), cov, case["n_samples"], tmp_path)
    assert float(out["std"][0]) == pytest.approx(case["chi2"], abs=1e-5)
    assert int(out["se"][0]) == case["df"]


def test_what_the_data_do_not_determine_is_held_and_said() -> None:
    text = answer("lone_pair").to_lavaan()
    assert "# Not determined by the data, so fixed at an estimate, at no cost in fit: L1 -> x" in text
    assert text.count("*") == 2  # that loading, and the covariance of the latents at zero
    assert "Not determined" not in answer("latent_chain").to_lavaan()


def test_a_heywood_case_says_how_lavaan_comes_to_the_same() -> None:
    rows = um.simulate.sample(um.simulate.realistic_parameters(two_group_chain, rng=3), 300, rng=5)
    result = um.Result(two_group_chain.cpdag(), um.fit(two_group_chain, rows))
    assert not result.fit.admissible
    assert '# lavaan comes to the same only with bounds = "pos.var", if at all.' in result.to_lavaan()
    # lavaan 0.6-14 with these bounds; without them it reports 3.8928 and a negative variance.
    assert result.fit.chi2 == pytest.approx(4.019176, abs=1e-5)


def _store() -> None:
    """Make the stored answers anew."""
    from tempfile import TemporaryDirectory

    record = {}
    for name, dag in CASES.items():
        draw = um.simulate.realistic_parameters if um.graphs.is_gnfm(dag) else um.simulate.paper_parameters
        cov = um.simulate.sample(draw(dag, rng=3), 400, rng=5).cov().round(6)
        result = um.Result(dag.cpdag(), um.fit(dag, cov=cov, n_samples=400))
        with TemporaryDirectory() as folder:
            out = ask_lavaan(result.to_lavaan(), cov, 400, Path(folder))
        head, rows = out.iloc[0], out.iloc[1:]
        record[name] = {
            "lavaan": head["rhs"],
            "text": result.to_lavaan(),
            "n_samples": 400,
            "names": list(cov.columns),
            "cov": cov.to_numpy().tolist(),
            "chi2": float(head["std"]),
            "df": int(head["se"]),
            "solution": [[*row[:3], float(row[3]), float(row[4])] for row in rows.to_numpy().tolist()],
        }
    STORED.write_text(json.dumps(record, indent=None).replace('}, "', '},\n"') + "\n")


if __name__ == "__main__":
    _store()
