"""What is not an indicator: covariates and outcomes in the graph over latents, and groups of people that share it.

:mod:`.covariates` goes from items to the graph over covariates, latents and outcomes, :mod:`.multigroup` does so for
several groups of people at once; :mod:`.structural` is the model over these nodes, with its fit and its score.
"""
