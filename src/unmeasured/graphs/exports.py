"""The ``to_...`` methods a DAG and a CPDAG share; what they mean is in :mod:`unmeasured.graphs.convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import networkx as nx

    from unmeasured.graphs.cpdag import CPDAG
    from unmeasured.graphs.dag import DAG

# convert needs DAG and CPDAG, which need these methods: hence the imports inside them.


class Exports:
    """Ways to take a graph to other programs."""

    def to_networkx(self) -> nx.DiGraph[str]:
        """As a networkx ``DiGraph``; see :func:`unmeasured.graphs.convert.to_networkx`."""
        from unmeasured.graphs import convert

        return convert.to_networkx(self._graph())

    def to_lavaan(self) -> str:
        """As lavaan model text; see :func:`unmeasured.graphs.convert.to_lavaan`."""
        from unmeasured.graphs import convert

        return convert.to_lavaan(self._graph())

    def to_dot(self) -> str:
        """As Graphviz text; see :func:`unmeasured.graphs.convert.to_dot`."""
        from unmeasured.graphs import convert

        return convert.to_dot(self._graph())

    def to_dagitty(self) -> str:
        """As dagitty text; see :func:`unmeasured.graphs.convert.to_dagitty`."""
        from unmeasured.graphs import convert

        return convert.to_dagitty(self._graph())

    def to_graphml(self) -> str:
        """As GraphML text; see :func:`unmeasured.graphs.convert.to_graphml`."""
        from unmeasured.graphs import convert

        return convert.to_graphml(self._graph())

    def to_gml(self) -> str:
        """As GML text; see :func:`unmeasured.graphs.convert.to_gml`."""
        from unmeasured.graphs import convert

        return convert.to_gml(self._graph())

    def to_tetrad(self) -> str:
        """As Tetrad's graph text; see :func:`unmeasured.graphs.convert.to_tetrad`."""
        from unmeasured.graphs import convert

        return convert.to_tetrad(self._graph())

    def to_semopy(self) -> str:
        """As semopy model text; see :func:`unmeasured.graphs.convert.to_semopy`."""
        from unmeasured.graphs import convert

        return convert.to_semopy(self._graph())

    def to_json(self) -> str:
        """As JSON text; see :func:`unmeasured.graphs.convert.to_json`."""
        from unmeasured.graphs import convert

        return convert.to_json(self._graph())

    def to_causallearn(self) -> Any:
        """As a causal-learn graph; see :func:`unmeasured.graphs.convert.to_causallearn`."""
        from unmeasured.graphs import convert

        return convert.to_causallearn(self._graph())

    def _graph(self) -> DAG | CPDAG:
        return cast("DAG | CPDAG", self)
