"""LGES itself: states, operators, phases, exact search."""
