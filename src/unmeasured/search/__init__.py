"""Models whose structure is sought: LGES from a sample to a class of graphs. Functions only, no estimators.

Takes a :class:`~unmeasured.data.sample.Sample` and :class:`~unmeasured.search.options.Options`; gives a
:class:`~unmeasured.search.discovery.Discovery` (class, fit, trace, remarks, runners-up).

Read first: :mod:`~unmeasured.search.pipeline` (all stages, from top to bottom), :mod:`~unmeasured.search.model` (the
one type of model) and :mod:`~unmeasured.search.climb` (hill climbing). ``measurement/`` finds latents and their
indicators, ``latent_graph/`` the edges between latents, ``hierarchy/`` latents above latents, ``roles/`` treats
covariates, outcomes and groups of people, ``close_fit/`` data in which no factor model holds; ``paper/`` has
Algorithms 1 and 2 of the paper, ``exact/`` the exhaustive search.
"""
