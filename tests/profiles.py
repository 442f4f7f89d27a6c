"""How many examples a property test draws."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fixed")
TIMES = 10 if PROFILE == "random" else 1


def examples(n: int) -> int:
    """That many, or ten times as many in the random, longer suite."""
    return n * TIMES
