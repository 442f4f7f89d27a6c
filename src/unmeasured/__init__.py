"""unmeasured: finds the causes nobody measured.

This is the menu: public names and nothing else.
"""

from unmeasured import metrics, simulate
from unmeasured.answer.compare import ModelComparison, compare_models
from unmeasured.answer.result import Result
from unmeasured.confirmation import Confirmation, confirm, split_rows
from unmeasured.data import datasets
from unmeasured.data.files import read, read_matrix
from unmeasured.data.sample import Sample, as_sample
from unmeasured.errors import DataError, GraphError, ModelError, SearchStopped, UnmeasuredError, UnmeasuredWarning
from unmeasured.graphs import CPDAG, DAG, LatentGroups, Variables, is_gnfm, is_one_factor
from unmeasured.invariance import Invariance, invariance
from unmeasured.knowledge.known import Knowledge
from unmeasured.ladder import PenaltyPath, penalty_path
from unmeasured.peers.ega import EGA
from unmeasured.peers.factor_analysis import FactorAnalysis
from unmeasured.peers.fofc import FOFC
from unmeasured.peers.ges import GES
from unmeasured.peers.gin import GIN
from unmeasured.peers.rank_clusters import RankClusters
from unmeasured.peers.rlcd import RLCD
from unmeasured.peers.two_stage import TwoStage
from unmeasured.precheck import Check, check
from unmeasured.replicates.result import Stability
from unmeasured.replicates.run import stability
from unmeasured.report.write import write_report
from unmeasured.search.cost import Cost, estimate_cost
from unmeasured.search.enumerate import count_gnfm
from unmeasured.search.exact import ExactSearch
from unmeasured.search.lges import LGES
from unmeasured.sem.device import use_device
from unmeasured.sem.dimension import dimension
from unmeasured.sem.estimators import OrdinalFit
from unmeasured.sem.fit import Fit, fit, fit_many
from unmeasured.sem.groups import GroupFit, MeanFit
from unmeasured.sem.parameters import Model, Parameter

__version__ = "0.1.0"

__all__ = [
    "CPDAG",
    "DAG",
    "EGA",
    "FOFC",
    "GES",
    "GIN",
    "LGES",
    "RLCD",
    "Check",
    "Confirmation",
    "Cost",
    "DataError",
    "ExactSearch",
    "FactorAnalysis",
    "Fit",
    "GraphError",
    "GroupFit",
    "Invariance",
    "Knowledge",
    "LatentGroups",
    "MeanFit",
    "Model",
    "ModelComparison",
    "ModelError",
    "OrdinalFit",
    "Parameter",
    "PenaltyPath",
    "RankClusters",
    "Result",
    "Sample",
    "SearchStopped",
    "Stability",
    "TwoStage",
    "UnmeasuredError",
    "UnmeasuredWarning",
    "Variables",
    "as_sample",
    "check",
    "compare_models",
    "confirm",
    "count_gnfm",
    "datasets",
    "dimension",
    "estimate_cost",
    "fit",
    "fit_many",
    "invariance",
    "is_gnfm",
    "is_one_factor",
    "metrics",
    "penalty_path",
    "read",
    "read_matrix",
    "simulate",
    "split_rows",
    "stability",
    "use_device",
    "write_report",
]
