"""Methods to compare with, by the interface of our own: FOFC, GIN, RLCD, EGA, factor analysis, GES and others.

Read first: :mod:`~unmeasured.peers.base`; each method has a file of its own, and ``docs/peers.md`` says how it was run.
"""
