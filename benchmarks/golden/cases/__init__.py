"""The table of cases: ``family/name`` and a function without arguments that returns what the package gave.

A case is independent of all others, takes a few seconds at most, and is the same on every machine: data come from seeds
or from files, and nothing depends on the clock. What has flat directions (a model that is not identified, a tie of
scores) gives numbers that depend on rounding; such a model is left out, or what is returned of it is the part that the
data determine.
"""

from __future__ import annotations

from benchmarks.golden.cases import after, exports, models, peers, searches
from benchmarks.golden.cases.table import Case

CASES: dict[str, Case] = {
    case.name: case for module in (searches, models, peers, after, exports) for case in module.TABLE.cases
}

__all__ = ["CASES", "Case"]
