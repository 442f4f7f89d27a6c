"""Edges between latents: hill climbing in closed form and by fits; likelihoods with the measurement fixed."""
