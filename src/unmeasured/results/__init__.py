"""Results of a search: the result itself, effects over the class, names, summary, comparison, invariance.

Takes a class of graphs, its fit and the sample; gives a :class:`~unmeasured.results.result.Result` with tables,
sentences, pictures and files. Read first: :mod:`~unmeasured.results.result`, then :mod:`~unmeasured.results.summary`,
:mod:`~unmeasured.results.interpretation` (sentences) and :mod:`~unmeasured.results.records` (``result.json``).
"""
