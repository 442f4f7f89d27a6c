"""The comparison of the golden record sees what it must: each kind of difference, and nothing below a tolerance."""

from __future__ import annotations

import copy
import doctest
import math

import pytest

import unmeasured as um
from benchmarks.golden import __main__ as command
from benchmarks.golden import changelog, compare, record
from benchmarks.golden.cases import CASES, Case
from benchmarks.golden.counts import counted
from benchmarks.golden.describe import Description, Text, describe
from benchmarks.golden.run import run_case


@pytest.fixture(scope="module")
def entry():
    return run_case(CASES["bundled/multitasking"])


def changed(entry, part, key, value):
    other = copy.deepcopy(entry)
    other[part][key] = value
    return other


def kinds(before, after):
    return [difference.kind for difference in compare.differences("a case", before, after)]


def test_a_case_equals_itself(entry):
    assert kinds(entry, run_case(CASES["bundled/multitasking"])) == []


@pytest.mark.parametrize(
    ("part", "key", "value", "kind"),
    [
        ("structure", "graph", ["L1 -> x"], "structure"),
        ("structure", "df", 1, "structure"),
        ("structure", "partition reported first", 1, "structure"),
        ("numbers", "indices: BIC", [4900.0], "numbers"),
        ("numbers", "a new table: row", [1.0], "numbers"),
        ("numbers", "runners-up: 0123456789", [0.5, 20.0], "numbers"),
        ("numbers", "runners-up: 0123456789", [5.0, 20.0], "trace"),
        ("sentences", "remarks", ["(3) Another sentence."], "sentences"),
        ("trace", "accepted steps", [], "trace"),
        ("counts", "fits", 100_000, "slower"),
        ("counts", "fits", 1, "counts"),
    ],
)
def test_each_kind_of_difference_is_reported(entry, part, key, value, kind):
    assert kinds(entry, changed(entry, part, key, value)) == [kind]
    assert key in compare.report(compare.differences("a case", entry, changed(entry, part, key, value)), 1)


def test_numbers_differ_beyond_their_tolerance_alone(entry):
    key = next(key for key in entry["numbers"] if key.startswith("estimates: L1 =~"))
    row = entry["numbers"][key]
    for times, expected in ((1 + 1e-6, []), (1 + 1e-2, ["numbers"])):
        assert kinds(entry, changed(entry, "numbers", key, [row[0] * times, *row[1:]])) == expected
    assert kinds(entry, changed(entry, "numbers", key, [row[0], None, *row[2:]])) == ["numbers"]
    (found,) = compare.differences("a case", entry, changed(entry, "numbers", key, [2.0 * row[0], *row[1:]]))
    assert found.lines[0].startswith("estimate ")


def test_an_entry_that_is_new_or_gone_gates(entry):
    assert kinds(None, entry) == kinds(entry, None) == ["structure"]
    assert kinds(None, None) == []


def test_a_record_is_read_as_it_was_written(entry, tmp_path):
    entries = {"one/case": entry, "two/case": entry}
    record.write(entries, tmp_path)
    assert record.read(tmp_path) == entries
    record.write({"two/case": entry}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["two.json"]


def test_numbers_without_a_value_are_stored_as_words():
    made = Description(numbers={"a: b": [math.nan, math.inf, -0.0, 1.23456789]})
    assert record.as_stored(made, {})["numbers"]["a: b"] == [None, "infinite", 0.0, 1.23457]


def test_texts_for_programs_are_split_into_lines_and_numbers():
    made = describe(Text("f =~ 0.25*x1 + x2\n"))
    assert made.structure["lines"] == ["f =~ #*x1 + x2"]
    assert made.numbers["numbers: in the text"] == [0.25]


def test_an_error_is_a_difference_and_ends_no_run():
    def broken():
        raise ValueError("no")

    made = run_case(Case("broken", broken))
    assert made["structure"] == {"error": "ValueError"}


def test_counts_leave_the_package_as_it_was():
    from unmeasured.search import climb, pipeline

    before = pipeline.discover_items, climb.climb
    data = um.datasets.load("multitasking")
    with counted() as counts:
        um.LGES().fit_cov(data.frame(), data.n_samples)
    assert counts["searches"] == 1
    assert counts["iterations"] > counts["fits"] > 0
    assert (pipeline.discover_items, climb.climb) == before


def test_accepting_stores_entries_and_writes_the_reason(tmp_path, monkeypatch, capsys):
    """The command as a whole, with a record and a changelog of its own."""
    monkeypatch.setattr(record.write, "__defaults__", (tmp_path,))
    monkeypatch.setattr(record.read, "__defaults__", (tmp_path,))
    log = tmp_path / "CHANGELOG.md"
    log.write_text("# Changelog\n\n## 1.0\n\n### Numbers that moved\n\n- One.\n")
    monkeypatch.setattr(changelog.add, "__defaults__", (log,))
    name = "fits/ML"
    assert command.main([name, "--jobs", "1"]) == 1
    assert command.main(["--accept", name, "--because", "A first entry", "--jobs", "1"]) == 0
    assert "- One.\n" in log.read_text()
    assert "first entry" not in log.read_text()  # nothing that was known has moved
    assert command.main([name, "--jobs", "1"]) == 0
    entries = record.read(tmp_path)
    entries[name]["numbers"]["indices: chi-square"] = [1.0]
    record.write(entries, tmp_path)
    assert command.main([name, "--jobs", "1"]) == 1
    assert "chi-square: 1 →" in capsys.readouterr().out
    assert command.main(["--accept", name, "--because", "A reason", "--jobs", "1"]) == 0
    assert log.read_text().endswith("- One.\n- A reason. (Golden record: `fits/ML`.)\n")
    assert command.main([name, "--jobs", "1"]) == 0


@pytest.mark.parametrize("arguments", [["--accept", "fits/ML"], ["--because", "no"], ["no such case"]])
def test_wrong_arguments_are_refused_in_a_sentence(arguments, capsys):
    assert command.main(arguments) == 2
    assert capsys.readouterr().err.endswith(".\n")


@pytest.mark.parametrize("module", [changelog, compare])
def test_examples(module):
    assert doctest.testmod(module).failed == 0
