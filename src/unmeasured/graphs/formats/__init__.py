"""Graphs in the formats of other programs: lavaan, DOT, dagitty, GraphML, JSON, networkx, causal-learn, Tetrad.

``writers`` and ``readers`` hold one function a format, ``convert`` is the table of all of them, ``exports`` the methods
that a DAG and a CPDAG share, ``lavaan_text`` the text for lavaan and semopy.
"""
