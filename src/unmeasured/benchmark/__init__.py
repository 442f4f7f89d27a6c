"""Benchmarks: what we claim, measured anew by one command each."""
