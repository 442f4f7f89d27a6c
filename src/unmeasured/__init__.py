"""unmeasured: causal discovery with latent variables.

Public names and nothing else. Each is loaded when it is first asked for, so that ``import unmeasured`` takes no time
and ``unmeasured --help`` does not wait for libraries that it does not use.

Other methods are in :mod:`unmeasured.peers`, roles and conditions of graphs in :mod:`unmeasured.graphs`. Types that
only functions make, such as the fit that :func:`fit` returns, are not listed here; the reference has each of them
after the function that returns it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmeasured import graphs as graphs
    from unmeasured import metrics as metrics
    from unmeasured import peers as peers
    from unmeasured import simulate as simulate
    from unmeasured.data import datasets as datasets
    from unmeasured.data.files.reading import read as read
    from unmeasured.data.files.reading import read_matrix as read_matrix
    from unmeasured.data.sample import Sample as Sample
    from unmeasured.data.sample import as_sample as as_sample
    from unmeasured.data.tables import Table as Table
    from unmeasured.errors import DataError as DataError
    from unmeasured.errors import GraphError as GraphError
    from unmeasured.errors import ModelError as ModelError
    from unmeasured.errors import SearchStopped as SearchStopped
    from unmeasured.errors import UnmeasuredError as UnmeasuredError
    from unmeasured.errors import UnmeasuredWarning as UnmeasuredWarning
    from unmeasured.estimators.exact import ExactSearch as ExactSearch
    from unmeasured.estimators.lges import LGES as LGES
    from unmeasured.graphs import CPDAG as CPDAG
    from unmeasured.graphs import DAG as DAG
    from unmeasured.knowledge.known import Knowledge as Knowledge
    from unmeasured.models.device import use_device as use_device
    from unmeasured.models.dimension import dimension as dimension
    from unmeasured.models.fit import fit as fit
    from unmeasured.models.fit import fit_many as fit_many
    from unmeasured.output.publish.publication import publication as publication
    from unmeasured.output.report.write import write_report as write_report
    from unmeasured.results.compare import compare_models as compare_models
    from unmeasured.results.invariance import invariance as invariance
    from unmeasured.results.result import Result as Result
    from unmeasured.search.cost import estimate_cost as estimate_cost
    from unmeasured.search.data_check import check as check
    from unmeasured.search.exact.enumerate import count_gnfm as count_gnfm
    from unmeasured.validation.confirmation import confirm as confirm
    from unmeasured.validation.confirmation import split_rows as split_rows
    from unmeasured.validation.penalty_path import penalty_path as penalty_path
    from unmeasured.validation.replicates.run import stability as stability

__version__ = "0.2.0"

# Where each public name is; the same as above, for Python.
_PLACES = {
    "data.files.reading": ("read", "read_matrix"),
    "data.sample": ("Sample", "as_sample"),
    "data.tables": ("Table",),
    "errors": ("DataError", "GraphError", "ModelError", "SearchStopped", "UnmeasuredError", "UnmeasuredWarning"),
    "estimators.exact": ("ExactSearch",),
    "estimators.lges": ("LGES",),
    "graphs": (
        "CPDAG",
        "DAG",
    ),
    "knowledge.known": ("Knowledge",),
    "models.device": ("use_device",),
    "models.dimension": ("dimension",),
    "models.fit": ("fit", "fit_many"),
    "output.publish.publication": ("publication",),
    "output.report.write": ("write_report",),
    "results.compare": ("compare_models",),
    "results.invariance": ("invariance",),
    "results.result": ("Result",),
    "search.cost": ("estimate_cost",),
    "search.data_check": ("check",),
    "search.exact.enumerate": ("count_gnfm",),
    "validation.confirmation": ("confirm", "split_rows"),
    "validation.penalty_path": ("penalty_path",),
    "validation.replicates.run": ("stability",),
}
_PACKAGES = (
    "data",
    "diagram",
    "errors",
    "estimators",
    "knowledge",
    "models",
    "output",
    "results",
    "search",
    "validation",
)
_MODULES = {
    "datasets": "data.datasets",
    "graphs": "graphs",
    "metrics": "metrics",
    "peers": "peers",
    "simulate": "simulate",
}
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
    return ["__version__", *__all__]
