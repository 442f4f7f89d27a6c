"""Graphs with latent variables: roles, DAGs, equivalence classes, separation.

Takes names, roles and adjacency matrices; gives :class:`DAG`, :class:`CPDAG` (a class of graphs over latent groups)
and :class:`LatentGroups`. Nothing here knows data or estimates.

Read first: :mod:`~unmeasured.graphs.cpdag`, then :mod:`~unmeasured.graphs.latent_groups` (the conditions of a factor
model) and :mod:`~unmeasured.graphs.orientation` (which directions are compelled). :mod:`~unmeasured.graphs.formats`
reads and writes graphs of other programs.
"""

from unmeasured.graphs.cpdag import (
    CPDAG,
    DAG,
    class_over_groups,
    consistent_extension,
    cpdag_of,
    is_markov_equivalent,
    markov_class,
    markov_members,
    textbook_cpdag_adjacency,
)
from unmeasured.graphs.formats.convert import (
    from_adjacency,
    from_causallearn,
    from_dagitty,
    from_json,
    from_networkx,
    from_tetrad,
)
from unmeasured.graphs.latent_groups import Failure, LatentGroups, Verdict, is_gnfm, is_hierarchical, is_one_factor
from unmeasured.graphs.separation import generic_rank, is_d_separated
from unmeasured.graphs.variables import Variables

__all__ = [
    "CPDAG",
    "DAG",
    "Failure",
    "LatentGroups",
    "Variables",
    "Verdict",
    "class_over_groups",
    "consistent_extension",
    "cpdag_of",
    "from_adjacency",
    "from_causallearn",
    "from_dagitty",
    "from_json",
    "from_networkx",
    "from_tetrad",
    "generic_rank",
    "is_d_separated",
    "is_gnfm",
    "is_hierarchical",
    "is_markov_equivalent",
    "is_one_factor",
    "markov_class",
    "markov_members",
    "textbook_cpdag_adjacency",
]
