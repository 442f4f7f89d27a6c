"""Data in which no factor model holds exactly: partitions of the items that are reproduced in replicates.

``expected_misfit`` tests fit against the chi-square of a true model, ``replicability`` finds partitions that replicates
share, ``tolerance`` searches models that fit closely, ``local_dependence`` adds residual covariances,
``partition_agreement`` tells how well the partition of an answer is reproduced.
"""
