"""How many examples a property test draws."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fixed")


def examples(n: int, times: int = 10) -> int:
    """That many, or several times as many in the random, longer suite."""
    return n * times if PROFILE == "random" else n
