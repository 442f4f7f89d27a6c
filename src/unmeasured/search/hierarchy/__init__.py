"""Common causes of latents: are latents explained better by a latent above them than by edges between them?

::

    covariance of the latents ──► blocks of three and more, one after the other     :mod:`.blocks`: rank constraints,
                                     │                                              then small fits
                                     ├─► one latent to or from a block, blocks merged or dissolved, while the predicted
                                     ▼   score rises: all top nodes connected, less what the best graph will save
                                  the best few ──► fits of the whole model          :mod:`.levels`, over :mod:`.model`
                                     │
                                     ▼
                                  kept if its score is better than that of the graph without; then the next level

The score is the one of edges between latents, so a common cause is kept where it explains latents better than edges do.
Two latents and a common cause are two latents with an edge, three and nothing else are three with all edges: a common
cause has at least three latents below it, and another neighbour (``docs/hierarchy.md``).
"""

from unmeasured.search.hierarchy.levels import raise_levels, raise_population, raised_as_known
from unmeasured.search.hierarchy.model import RaisedClass

__all__ = ["RaisedClass", "raise_levels", "raise_population", "raised_as_known"]
