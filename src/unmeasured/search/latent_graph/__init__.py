"""Edges between latents: hill climbing in closed form and by fits (``edges``), likelihoods with the measurement held."""
