"""Prior knowledge: statements of the user, the models they allow, and whether they can all hold.

Takes what a user knows (scales, forbidden and required edges, order in time); gives
:class:`~unmeasured.knowledge.known.Knowledge`, which the search asks through :mod:`~unmeasured.knowledge.rules`.

Read first: :mod:`~unmeasured.knowledge.statements`, then :mod:`~unmeasured.knowledge.known` and
:mod:`~unmeasured.knowledge.satisfy` (contradictions).
"""
