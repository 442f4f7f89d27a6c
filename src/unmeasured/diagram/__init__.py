"""Path diagrams: layers, orders with few crossings, places, colours, drawings.

Takes nodes and edges with labels; gives places and pictures. Read first: :mod:`~unmeasured.diagram.picture` (what is
drawn), then :mod:`~unmeasured.diagram.layout` (where) and :mod:`~unmeasured.diagram.draw` (SVG, PDF, PNG).
"""
