"""unmeasured: causal discovery with latent variables.

Public names and nothing else. Each is loaded when it is first asked for, so that ``import unmeasured`` takes no time
and ``unmeasured --help`` does not wait for libraries that it does not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmeasured import metrics as metrics
    from unmeasured import simulate as simulate
    from unmeasured.answer.compare import ModelComparison as ModelComparison
    from unmeasured.answer.compare import compare_models as compare_models
    from unmeasured.answer.result import Result as Result
    from unmeasured.confirmation import Confirmation as Confirmation
    from unmeasured.confirmation import confirm as confirm
    from unmeasured.confirmation import split_rows as split_rows
    from unmeasured.data import datasets as datasets
    from unmeasured.data.files import read as read
    from unmeasured.data.files import read_matrix as read_matrix
    from unmeasured.data.sample import Sample as Sample
    from unmeasured.data.sample import as_sample as as_sample
    from unmeasured.data.tables import Table as Table
    from unmeasured.errors import DataError as DataError
    from unmeasured.errors import GraphError as GraphError
    from unmeasured.errors import ModelError as ModelError
    from unmeasured.errors import SearchStopped as SearchStopped
    from unmeasured.errors import UnmeasuredError as UnmeasuredError
    from unmeasured.errors import UnmeasuredWarning as UnmeasuredWarning
    from unmeasured.graphs import CPDAG as CPDAG
    from unmeasured.graphs import DAG as DAG
    from unmeasured.graphs import LatentGroups as LatentGroups
    from unmeasured.graphs import Variables as Variables
    from unmeasured.graphs import is_gnfm as is_gnfm
    from unmeasured.graphs import is_hierarchical as is_hierarchical
    from unmeasured.graphs import is_one_factor as is_one_factor
    from unmeasured.knowledge.known import Knowledge as Knowledge
    from unmeasured.measurement_invariance import Invariance as Invariance
    from unmeasured.measurement_invariance import invariance as invariance
    from unmeasured.peers.ega import EGA as EGA
    from unmeasured.peers.factor_analysis import FactorAnalysis as FactorAnalysis
    from unmeasured.peers.fofc import FOFC as FOFC
    from unmeasured.peers.ges import GES as GES
    from unmeasured.peers.gin import GIN as GIN
    from unmeasured.peers.rank_clusters import RankClusters as RankClusters
    from unmeasured.peers.rlcd import RLCD as RLCD
    from unmeasured.peers.two_stage import TwoStage as TwoStage
    from unmeasured.penalties import PenaltyPath as PenaltyPath
    from unmeasured.penalties import penalty_path as penalty_path
    from unmeasured.precheck import Check as Check
    from unmeasured.precheck import check as check
    from unmeasured.publish.publication import Publication as Publication
    from unmeasured.publish.publication import publication as publication
    from unmeasured.replicates.result import Stability as Stability
    from unmeasured.replicates.run import stability as stability
    from unmeasured.report.write import write_report as write_report
    from unmeasured.search.cost import Cost as Cost
    from unmeasured.search.cost import estimate_cost as estimate_cost
    from unmeasured.search.exact import ExactSearch as ExactSearch
    from unmeasured.search.exact import count_gnfm as count_gnfm
    from unmeasured.search.lges import LGES as LGES
    from unmeasured.sem.device import use_device as use_device
    from unmeasured.sem.dimension import dimension as dimension
    from unmeasured.sem.estimators import OrdinalFit as OrdinalFit
    from unmeasured.sem.fit import Fit as Fit
    from unmeasured.sem.fit import fit as fit
    from unmeasured.sem.fit import fit_many as fit_many
    from unmeasured.sem.groups import GroupFit as GroupFit
    from unmeasured.sem.groups import MeanFit as MeanFit
    from unmeasured.sem.parameters import Model as Model
    from unmeasured.sem.parameters import Parameter as Parameter

__version__ = "0.2.0"

# Where each public name is; the same as above, for Python.
_PLACES = {
    "answer.compare": ("ModelComparison", "compare_models"),
    "answer.result": ("Result",),
    "confirmation": ("Confirmation", "confirm", "split_rows"),
    "data.files": ("read", "read_matrix"),
    "data.sample": ("Sample", "as_sample"),
    "data.tables": ("Table",),
    "errors": ("DataError", "GraphError", "ModelError", "SearchStopped", "UnmeasuredError", "UnmeasuredWarning"),
    "graphs": ("CPDAG", "DAG", "LatentGroups", "Variables", "is_gnfm", "is_hierarchical", "is_one_factor"),
    "measurement_invariance": ("Invariance", "invariance"),
    "knowledge.known": ("Knowledge",),
    "penalties": ("PenaltyPath", "penalty_path"),
    "peers.ega": ("EGA",),
    "peers.factor_analysis": ("FactorAnalysis",),
    "peers.fofc": ("FOFC",),
    "peers.ges": ("GES",),
    "peers.gin": ("GIN",),
    "peers.rank_clusters": ("RankClusters",),
    "peers.rlcd": ("RLCD",),
    "peers.two_stage": ("TwoStage",),
    "precheck": ("Check", "check"),
    "publish.publication": ("Publication", "publication"),
    "replicates.result": ("Stability",),
    "replicates.run": ("stability",),
    "report.write": ("write_report",),
    "search.cost": ("Cost", "estimate_cost"),
    "search.exact": ("ExactSearch", "count_gnfm"),
    "search.lges": ("LGES",),
    "sem.device": ("use_device",),
    "sem.dimension": ("dimension",),
    "sem.estimators": ("OrdinalFit",),
    "sem.fit": ("Fit", "fit", "fit_many"),
    "sem.groups": ("GroupFit", "MeanFit"),
    "sem.parameters": ("Model", "Parameter"),
}
_PACKAGES = (
    "answer",
    "data",
    "diagram",
    "errors",
    "graphs",
    "knowledge",
    "peers",
    "publish",
    "replicates",
    "report",
    "search",
    "sem",
)
_MODULES = {"datasets": "data.datasets", "metrics": "metrics", "simulate": "simulate"}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = sorted([*_PLACE_OF, *_MODULES])


def __getattr__(name: str) -> Any:
    """Load a public name, once."""
    if name in _MODULES:
        value: Any = import_module(f"unmeasured.{_MODULES[name]}")
    elif name in _PACKAGES:
        value = import_module(f"unmeasured.{name}")
    elif name in _PLACE_OF:
        value = getattr(import_module(f"unmeasured.{_PLACE_OF[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
