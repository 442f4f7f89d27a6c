"""What a graph is: variables and their roles, DAGs, equivalence classes over latent groups, separation."""

from unmeasured.graphs.convert import (
    from_adjacency,
    from_causallearn,
    from_dagitty,
    from_json,
    from_networkx,
    from_tetrad,
)
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
from unmeasured.graphs.groups import Failure, LatentGroups, Verdict, is_gnfm, is_hierarchical, is_one_factor
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
