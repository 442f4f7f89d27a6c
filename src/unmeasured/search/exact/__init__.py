"""Exact search: every class of factor models counted, listed, bounded, and the best proven."""

from unmeasured.search.exact.branch import ExactSearch
from unmeasured.search.exact.enumerate import count_gnfm

__all__ = ["ExactSearch", "count_gnfm"]
