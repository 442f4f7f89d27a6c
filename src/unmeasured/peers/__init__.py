"""Other methods, with the interface of :class:`unmeasured.LGES`, to compare with: ``um.peers.FOFC().fit(rows)``.

=================== =============================================== =======================
name                method                                          package that it needs
=================== =============================================== =======================
``EGA``             exploratory graph analysis                      igraph
``FactorAnalysis``  factor analysis with parallel analysis          statsmodels
``FOFC``            pure clusters by vanishing tetrads              none
``GES``             greedy search over the observed variables       causal-learn
``GIN``             generalized independent noise                   causal-learn
``RankClusters``    clusters by ranks of covariances                none
``RLCD``            rank-based latent causal discovery              causal-learn
``TwoStage``        factor analysis, then a search over factors     statsmodels
=================== =============================================== =======================

``print(um.peers.__doc__)`` shows this table; ``pip install 'unmeasured[peers]'`` installs the packages, and
``docs/peers.md`` has settings and references.

Read first: :mod:`~unmeasured.peers.base`. Each method has a file of its own, which is loaded when the method is first
asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmeasured.peers.ega import EGA as EGA
    from unmeasured.peers.factor_analysis import FactorAnalysis as FactorAnalysis
    from unmeasured.peers.fofc import FOFC as FOFC
    from unmeasured.peers.ges import GES as GES
    from unmeasured.peers.gin import GIN as GIN
    from unmeasured.peers.rank_clusters import RankClusters as RankClusters
    from unmeasured.peers.rlcd import RLCD as RLCD
    from unmeasured.peers.two_stage import TwoStage as TwoStage

# Where each method is; the same as above, for Python.
_MODULE_OF = {
    "EGA": "ega",
    "FactorAnalysis": "factor_analysis",
    "FOFC": "fofc",
    "GES": "ges",
    "GIN": "gin",
    "RankClusters": "rank_clusters",
    "RLCD": "rlcd",
    "TwoStage": "two_stage",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Load a method, once."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
