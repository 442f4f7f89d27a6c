"""Compiled code: Fisher scoring, starts, batches, savings along graphs, climbs over arcs.

Takes and gives plain arrays. Read first: :mod:`~unmeasured.kernels.likelihood` (the objective, its gradient and its
expected Hessian), then :mod:`~unmeasured.kernels.start` (starting values) and :mod:`~unmeasured.kernels.batch` (many
fits in one call).
"""
