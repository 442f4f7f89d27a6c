"""Every case of the golden record gives what the record has; CONTRIBUTING.md says how changes are accepted."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.golden import record
from benchmarks.golden.cases import CASES
from benchmarks.golden.compare import differences, report
from benchmarks.golden.run import run_case

stored = cache(record.read)


@pytest.mark.parametrize("name", CASES)
def test_a_case_gives_what_the_record_has(name):
    case = CASES[name]
    if not case.is_runnable:
        pytest.skip("data or libraries of this case are not here")
    found = differences(name, stored().get(name), run_case(case))
    gating = [difference for difference in found if difference.gates]
    assert not gating, f"\n{report(gating, 1)}\npython -m benchmarks golden --accept {name!r} --because '...'"


def test_the_record_has_no_entry_without_a_case():
    assert set(stored()) <= set(CASES)


def test_rows_that_are_not_ours_are_not_stored():
    """Of shared data the record has figures: every list of numbers in it is shorter than a row of answers or matrix."""
    shared = [entry for name, entry in stored().items() if CASES[name].files]
    assert shared
    assert max(len(row) for entry in shared for row in entry["numbers"].values()) < 8
