"""Measurement models: how many latents, and which observed variables measure them.

``proposals`` makes starts from closed forms, ``refine`` climbs by the moves of ``moves/``, ``relocate`` scores other
parents of variables, ``local_clusters`` and ``subproblems`` take many variables in pieces. Read ``refine`` first.
"""
