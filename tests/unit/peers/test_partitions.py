"""EGA and factor analysis: partitions of items, on models whose answer is known and on questionnaires."""

from __future__ import annotations

import gzip
import json
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import unmeasured as um
from unmeasured.peers.ega import extended_bic, network
from unmeasured.peers.factor_analysis import extracted

igraph = pytest.importorskip("igraph")
pytest.importorskip("statsmodels")
SHARED = Path(__file__).parents[4] / "shared" / "data" / "questionnaires.json.gz"


def simple_structure(n_factors: int = 3, n_items: int = 5, loading: float = 0.7, between: float = 0.3) -> np.ndarray:
    L = np.kron(np.eye(n_factors), np.full((n_items, 1), loading))
    Phi = np.full((n_factors, n_factors), between) + (1 - between) * np.eye(n_factors)
    R = L @ Phi @ L.T
    np.fill_diagonal(R, 1.0)
    return R


@pytest.mark.parametrize(
    "method", [um.peers.EGA(), um.peers.EGA(lambda_min_ratio=0.01), um.peers.FactorAnalysis()], ids=repr
)
def test_simple_structure_is_found(method):
    R = simple_structure()
    found = method.fit_cov(R, 500, names=[f"x{i}" for i in range(15)])
    parents = [found.graph_.member().parents(f"x{i}") for i in range(15)]
    assert adjusted_rand_score(np.arange(15) // 5, [p[0] for p in parents]) == 1.0
    assert len(found.graph_.latents) == 3


def test_one_factor_is_one_community_only_with_the_check():
    R = simple_structure(1, 10)
    assert set(um.peers.EGA().fit_cov(R, 500).communities_.values()) == {0}


def test_independent_variables_have_no_latents():
    R = np.corrcoef(np.random.default_rng(0).normal(size=(300, 6)).T)
    assert um.peers.FactorAnalysis().fit_cov(R, 300).graph_.latents == ()


def test_the_network_minimises_extended_bic_over_the_path_and_gamma_sparsifies():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 8)) + rng.normal(size=(200, 1)) * [1, 1, 1, 1, 0, 0, 0, 0]
    R = np.corrcoef(rows.T)
    sparse, dense = network(R, 200, gamma=1.0), network(R, 200, gamma=0.0)
    assert (sparse != 0).sum() <= (dense != 0).sum()
    assert (network(R, 200, gamma=0.0, ratio=0.01) != 0).sum() >= (dense != 0).sum()
    K = np.eye(3)
    assert extended_bic(K, np.eye(3), 100, 0.5) == pytest.approx(300.0)  # no edges: minus twice -n/2 · trace
    K[0, 1] = K[1, 0] = 0.1
    expected = -100 * (math.log(1 - 0.01) - 3.0) + math.log(100) + 2 * math.log(3)
    assert extended_bic(K, np.eye(3), 100, 0.5) == pytest.approx(expected)


def test_minres_residuals_cannot_be_made_smaller():
    """A brute-force check of the optimum: no small change of the loadings lowers the residual correlations."""
    rng = np.random.default_rng(2)
    R = np.corrcoef((rng.normal(size=(150, 2)) @ rng.normal(size=(2, 8)) + rng.normal(size=(150, 8))).T)

    def residual(L: np.ndarray) -> float:
        E = R - L @ L.T
        return float((E[~np.eye(8, dtype=bool)] ** 2).sum())

    L = extracted(R, 2, "minres")
    assert all(residual(L + 0.01 * rng.normal(size=L.shape)) >= residual(L) - 1e-9 for _ in range(200))


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_maximum_likelihood_is_that_of_r(tmp_path):
    rng = np.random.default_rng(3)
    R = np.corrcoef((rng.normal(size=(300, 2)) @ rng.normal(size=(2, 9)) + rng.normal(size=(300, 9))).T)
    np.savetxt(tmp_path / "R.csv", R, delimiter=",")
    code = 'f <- factanal(covmat=as.matrix(read.csv("R.csv", header=FALSE)), factors=2, n.obs=300, rotation="none")'
    code += '; cat(f$uniquenesses, sep="\\n")'
    done = subprocess.run(["Rscript", "-e", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    theirs = np.array(done.stdout.split(), dtype=float)
    assert 1 - (extracted(R, 2, "ml") ** 2).sum(axis=1) == pytest.approx(theirs, abs=2e-3)


@pytest.mark.skipif(not SHARED.exists(), reason="the questionnaires are not in this copy")
@pytest.mark.parametrize(
    ("name", "ega", "ega_dense", "told"),
    [
        ("grit12", 1.0, 1.0, 1.0),
        ("gcbs15", 0.51, 0.40, 0.81),
    ],  # the others are in `python -m benchmarks questionnaires`
)
def test_agreement_with_the_scales_of_questionnaires(name, ega, ega_dense, told):
    data = json.loads(gzip.decompress(SHARED.read_bytes()))[name]
    scale = {item: scale for scale, items in data["scales"].items() for item in items}

    def agreement(partition):
        labels = [item if partition[item] is None else str(partition[item]) for item in data["names"]]
        return adjusted_rand_score([scale[item] for item in data["names"]], labels)

    def fitted(method):
        return method.fit_cov(np.array(data["corr"]), data["n"], names=data["names"])

    assert agreement(fitted(um.peers.EGA(latent_edges=False)).communities_) == pytest.approx(ega, abs=0.006)
    dense = fitted(um.peers.EGA(lambda_min_ratio=0.01, latent_edges=False))
    assert agreement(dense.communities_) == pytest.approx(ega_dense, abs=0.006)
    n = len(data["scales"])
    found = fitted(um.peers.FactorAnalysis(n_factors=n, latent_edges=False))
    assert agreement(found.strongest_) == pytest.approx(told, abs=0.006)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (um.peers.EGA(gamma=-1), "gamma must be a number from 0 to 1; got -1"),
        (um.peers.EGA(lambda_min_ratio=0), "lambda_min_ratio must be a number between 0 and 1; got 0"),
        (um.peers.EGA(unidimensional="x"), "unidimensional must be True or False"),
        (um.peers.FactorAnalysis(n_factors=0), "n_factors must be a whole number from 1 or None; got 0"),
        (um.peers.FactorAnalysis(n_factors=11), "15 variables allow 10 factors at most; got n_factors=11"),
        (um.peers.FactorAnalysis(extraction="pca"), "extraction must be one of 'minres', 'ml'"),
        (um.peers.FactorAnalysis(eigenvalues="x"), "eigenvalues must be one of 'components', 'factors'"),
    ],
    ids=repr,
)  # fmt: skip
def test_mistakes_are_sentences(method, words):
    with pytest.raises(um.UnmeasuredError, match=words):
        method.fit_cov(simple_structure(), 500)


def test_ega_has_nothing_to_say_of_a_population():
    with pytest.raises(um.DataError, match="pass a finite n_samples"):
        um.peers.EGA().fit_cov(simple_structure(), math.inf)
