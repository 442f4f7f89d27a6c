"""Exact search: every class of factor models counted, listed and bounded; read ``branch`` first."""
