"""``LGES`` and ``ExactSearch``: scikit-learn's interface around the search and its result.

Takes rows or a matrix; gives ``graph_``, ``sem_``, ``result_``, ``trace_``. Read first:
:mod:`~unmeasured.estimators.base` (what all searches share, peers too), then :mod:`~unmeasured.estimators.lges`.
"""
