"""Algorithms 1 and 2 of the paper, their operators and their states, to be laid beside it."""
