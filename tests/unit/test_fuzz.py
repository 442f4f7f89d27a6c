"""The fuzz command: a few inputs for each entry point, and proof that it would see a failure."""

from __future__ import annotations

import time
import warnings

import pytest

import unmeasured as um
from benchmarks import fuzz
from unmeasured.app.project import Project
from unmeasured.cli.commands import main


@pytest.mark.parametrize("entry", fuzz.ENTRIES)
def test_malformed_input_is_answered_or_refused(entry):
    tally = fuzz.fuzz(entry, 25, command=main, project=Project)
    assert tally.ok, str(tally)
    assert sum(tally.outcomes.values()) == 25
    assert tally.outcomes["answered"] > 0  # else refusing everything would pass


def fails_with_a_foreign_exception(*_):
    raise KeyError("lost")


def fails_with_a_warning(*_):
    warnings.warn("divide by zero", RuntimeWarning, stacklevel=1)


def says_nothing(*_):
    raise um.UnmeasuredError("no")


def hangs(*_):
    time.sleep(30)


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (fails_with_a_foreign_exception, "foreign exception"),
        (fails_with_a_warning, "warning"),
        (says_nothing, "no sentence"),
        (hangs, "hang"),
    ],
)
def test_failures_are_seen(broken, kind, monkeypatch):
    monkeypatch.setitem(fuzz.ENTRIES, "rows", broken)
    tally = fuzz.fuzz("rows", 2, limit=0.05)
    assert not tally.ok
    assert tally.outcomes == {kind: 2}
    assert kind in str(tally)


def test_a_record_that_is_changed_though_refused_is_seen(monkeypatch):
    class Careless(fuzz.Records):
        def __init__(self, path, about):
            path.write_bytes(b"")
            raise um.UnmeasuredError("This file is refused, but it is gone.")

    monkeypatch.setattr(fuzz, "Records", Careless)
    assert fuzz.fuzz("records", 20).outcomes["changed"] > 0


def test_the_same_number_makes_the_same_input():
    assert str(fuzz.fuzz("matrix", 10, seed=3)) == str(fuzz.fuzz("matrix", 10, seed=3))


@pytest.mark.parametrize("wrong", [{"entry": "doors"}, {"inputs": 0}, {"seed": -1}, {"limit": 0.0}])
def test_what_cannot_be_asked(wrong):
    with pytest.raises(um.UnmeasuredError):
        fuzz.fuzz(**{"entry": "rows", "inputs": 1, **wrong})
