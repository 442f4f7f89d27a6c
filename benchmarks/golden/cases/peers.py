"""Every method to compare with, on data for which it finds something."""

from __future__ import annotations

from functools import partial
from typing import Any

import unmeasured as um
from benchmarks.golden import describe
from benchmarks.golden.cases import inputs
from benchmarks.golden.cases.table import Table

TABLE = Table()


def _peer(method: Any, data: Any) -> Any:
    return method.fit(data())


def _matrix() -> Any:
    return inputs.bundled("holzinger_swineford")


def _burnout() -> Any:
    return inputs.bundled("big_five")


def _rows() -> Any:
    return inputs.questionnaire_rows(600, 3, 4, 11)


def _few_rows() -> Any:
    return inputs.questionnaire_rows(200, 2, 3, 13)


_CAUSAL, _STATS, _IGRAPH = ["causallearn"], ["statsmodels"], ["igraph"]
for _label, _method, _data, _libraries in (
    ("FOFC", um.peers.FOFC(), _rows, []),
    ("FOFC, rules of Tetrad", um.peers.FOFC(rules="tetrad", latent_edges=False), _burnout, []),
    ("rank clusters", um.peers.RankClusters(), _rows, []),
    ("rank clusters, big five", um.peers.RankClusters(alpha=0.05), _burnout, []),
    ("two stages", um.peers.TwoStage(), _matrix, _STATS),
    ("two stages, big five", um.peers.TwoStage(cut=0.3), _burnout, _STATS),
    ("factor analysis", um.peers.FactorAnalysis(), _matrix, _STATS),
    ("factor analysis, five factors", um.peers.FactorAnalysis(n_factors=5, eigenvalues="factors"), _burnout, _STATS),
    ("EGA", um.peers.EGA(), _matrix, _IGRAPH),
    ("EGA, big five", um.peers.EGA(latent_edges=False), _burnout, _IGRAPH),
    ("GES", um.peers.GES(), _matrix, _CAUSAL),
    ("GIN", um.peers.GIN(test="hsic"), _few_rows, _CAUSAL),
):
    TABLE.add(f"peers/{_label}", partial(_peer, _method, _data), cost=5.0, libraries=_libraries)


@TABLE.case("peers/RLCD", libraries=_CAUSAL)
def _() -> Any:
    """Return who shares a latent: edges and order of latents of causal-learn's RLCD depend on Python's hash seed."""
    return describe.shared_items(um.peers.RLCD().fit(_rows()))
