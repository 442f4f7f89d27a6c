"""Models whose structure is given: parameters, estimation, tests and indices, scores, effects, reliability.

Takes a graph or lavaan text, and a sample; gives a :class:`~unmeasured.models.fit.Fit`.

Read first: :mod:`~unmeasured.models.parameters` (which parameters a model has), :mod:`~unmeasured.models.solve` (the
optimum), :mod:`~unmeasured.models.fit` (what a user gets). :mod:`~unmeasured.models.lavaan` reads model text,
:mod:`~unmeasured.models.estimators` has robust and ordinal estimators, :mod:`~unmeasured.models.multigroup` models of
several groups of people.
"""
