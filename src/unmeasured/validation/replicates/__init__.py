"""How sure a graph is: replicates of the data, the search on each, and what comes back."""
