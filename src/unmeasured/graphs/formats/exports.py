"""The ``to_...`` methods a DAG and a CPDAG share; what they mean is in :mod:`unmeasured.graphs.formats.convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from unmeasured.graphs.formats import lavaan_text, writers
from unmeasured.graphs.protocols import Writable

if TYPE_CHECKING:
    import networkx as nx


class Exports:
    """Ways to take a graph to other programs."""

    def to_networkx(self) -> nx.DiGraph[str]:
        """As a networkx ``DiGraph``; see :func:`unmeasured.graphs.formats.convert.to_networkx`."""
        return writers.to_networkx(self._graph())

    def to_lavaan(self) -> str:
        """As lavaan model text; see :func:`unmeasured.graphs.formats.convert.to_lavaan`."""
        return lavaan_text.to_lavaan(self._graph())

    def to_dot(self) -> str:
        """As Graphviz text; see :func:`unmeasured.graphs.formats.convert.to_dot`."""
        return writers.to_dot(self._graph())

    def to_dagitty(self) -> str:
        """As dagitty text; see :func:`unmeasured.graphs.formats.convert.to_dagitty`."""
        return writers.to_dagitty(self._graph())

    def to_graphml(self) -> str:
        """As GraphML text; see :func:`unmeasured.graphs.formats.convert.to_graphml`."""
        return writers.to_graphml(self._graph())

    def to_gml(self) -> str:
        """As GML text; see :func:`unmeasured.graphs.formats.convert.to_gml`."""
        return writers.to_gml(self._graph())

    def to_tetrad(self) -> str:
        """As Tetrad's graph text; see :func:`unmeasured.graphs.formats.convert.to_tetrad`."""
        return writers.to_tetrad(self._graph())

    def to_semopy(self) -> str:
        """As semopy model text; see :func:`unmeasured.graphs.formats.convert.to_semopy`."""
        return lavaan_text.to_semopy(self._graph())

    def to_json(self) -> str:
        """As JSON text; see :func:`unmeasured.graphs.formats.convert.to_json`."""
        return writers.to_json(self._graph())

    def to_causallearn(self) -> Any:
        """As a causal-learn graph; see :func:`unmeasured.graphs.formats.convert.to_causallearn`."""
        return writers.to_causallearn(self._graph())

    def _graph(self) -> Writable:
        return cast("Writable", self)
