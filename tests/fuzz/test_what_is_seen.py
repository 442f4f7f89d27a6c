"""Failures that malformed input could show are seen, and what is right is answered."""

from __future__ import annotations

import time
import warnings

import pytest

import unmeasured as um
from malformed import answered
from unmeasured.validation.replicates.result import Stability


def raise_a_foreign_exception():
    raise KeyError("lost")


def warn():
    warnings.warn("divide by zero", RuntimeWarning, stacklevel=1)


def say_nothing():
    raise um.UnmeasuredError("no")


def work_on():
    try:
        while True:
            pass
    except Exception:  # what a handler of the package would take
        return


def wait():
    time.sleep(30)


@pytest.mark.parametrize(
    ("broken", "seen"),
    [
        (raise_a_foreign_exception, KeyError),
        (warn, RuntimeWarning),
        (say_nothing, AssertionError),
        (work_on, AssertionError),
        (wait, AssertionError),
    ],
)
def test_failures_are_seen(broken, seen):
    with pytest.raises(seen):
        answered(broken, seconds=0.05)


def test_an_answer_and_a_sentence_are_told_apart(folder, rows):
    assert answered(lambda: um.as_sample(rows))
    assert not answered(lambda: um.read(folder / "none.csv"))


def test_what_the_inputs_start_from_is_answered(folder, rows, results, stable, search):
    rows.to_csv(folder / "right.csv", index=False)
    assert answered(lambda: um.LGES().fit(um.read(folder / "right.csv")).result_.summary())
    assert answered(lambda: [um.Result.from_json(text).summary() for text in results])
    assert answered(lambda: Stability.from_json(stable.to_json()).summary())
    assert answered(lambda: um.fit("f =~ a + b + c\ng =~ d + e\nf ~~ g", rows).summary())
    known = um.Knowledge(groups={"f": ["a", "b"], "g": ["c", "d"]})
    assert answered(lambda: um.LGES(knowledge=known).fit(search.sample_).result_.summary())
