"""The one loop: the first move that improves, until none does; it decides, writes down, and ends in time."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from unmeasured.errors import Stopped
from unmeasured.search.climb import Log, Proposal, climb
from unmeasured.search.trace import Recorder


@dataclass(frozen=True)
class At:
    """A place on a line whose score is highest at ten."""

    x: float

    @property
    def value(self) -> float:
        return -((self.x - 10.0) ** 2)


class Counts:
    n_fitted, n_cached = 0, 0


def by(step, tried=None):
    def move(here):
        if tried is not None:
            tried.append((step, here.x))
        return Proposal(f"{step:+g}", At(here.x + step))

    return move


def test_it_ends_where_no_move_improves():
    assert climb(At(0.0), [by(4.0), by(1.0)], least_rise=0.0) == At(10.0)
    assert climb(At(0.0), [by(4.0)], least_rise=0.0) == At(8.0)  # 12 is as good, and no better
    assert climb(At(0.0), [], least_rise=0.0) == At(0.0)
    assert climb(At(0.0), [lambda here: None], least_rise=0.0) == At(0.0)


def test_after_every_step_it_begins_with_the_first_move_again():
    tried = []
    climb(At(5.0), [by(4.0, tried), by(1.0, tried)], least_rise=0.0)
    assert tried == [(4.0, 5.0), (4.0, 9.0), (1.0, 9.0), (4.0, 10.0), (1.0, 10.0)]


def test_a_rise_has_to_be_larger_than_the_least():
    assert climb(At(9.0), [by(1.0)], least_rise=1.0) == At(9.0)  # exactly 1 is not more than 1
    assert climb(At(9.0), [by(1.0)], least_rise=0.99) == At(10.0)
    assert climb(At(10.0), [by(0.0)], least_rise=0.0) == At(10.0)  # nothing gained: it ends


def test_what_is_taken_is_written_down_with_the_numbers_that_decided():
    steps = []
    climb(At(0.0), [by(8.0), by(1.0)], least_rise=0.5, log=Log(Recorder(steps, Counts()), "here"))
    assert [(step.what, step.score_before, step.score_after) for step in steps] == [
        ("+8", -100.0, -4.0),
        ("+1", -4.0, -1.0),
        ("+1", -1.0, 0.0),
    ]
    assert {(step.phase, step.tolerance, step.accepted) for step in steps} == {("here", 0.5, True)}
    assert steps[0].reason == "the score rises by 96.00, more than 0.5"
    steps.clear()
    climb(
        At(9.0),
        [lambda here: Proposal("one", At(10.0), "because")],
        least_rise=0.0,
        log=Log(Recorder(steps, Counts()), "p"),
    )
    assert [step.reason for step in steps] == ["because"]


def test_so_many_steps_at_most():
    assert climb(At(0.0), [by(1.0)], least_rise=0.0, most=3) == At(3.0)
    assert climb(At(0.0), [by(1.0)], least_rise=0.0, most=0) == At(0.0)


def test_the_end_of_the_time_is_handed_on_or_ends_it_here():
    def clock(n):
        left = iter(range(n))

        def check():
            if next(left, None) is None:
                raise Stopped

        return check

    with pytest.raises(Stopped):
        climb(At(0.0), [by(1.0)], least_rise=0.0, check=clock(4))
    assert climb(At(0.0), [by(1.0)], least_rise=0.0, check=clock(4), keeps_when_stopped=True) == At(4.0)
