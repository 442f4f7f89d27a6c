"""Records of replicates: a file that is not ours is refused and not a byte of it changes."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import unmeasured as um
from unmeasured.validation.replicates.records import Records, Replicate

ABOUT = {"data": "abc", "observed": ["a", "b"], "seed": 0}
RECORD = Replicate(0, None, 0.1, "it failed").line(ABOUT)

FOREIGN = {
    "JSON": b'{"my":"thesis"}',
    "JSON with a newline": b'{"my":"thesis"}\n',
    "text": b"chapter one\nchapter two",
    "text with a newline": b"chapter one\n",
    "CSV without a last newline": b"a,b\n1,2\n3,4",
    "binary": bytes(range(256)) * 40,
    "a newline": b"\n",
    "brackets": b"[" * 200_000,
    "brackets and a newline": b"[" * 200_000 + b"\n",
    "a brace": b"{",
    "a number": b"5",
    "a record of ours, then text": RECORD.encode() + b"\nthesis",
    "a record of ours, then a line": RECORD.encode() + b"\nthesis\n",
    "a record of something else": Replicate(0, None, 0.1, "x").line({**ABOUT, "seed": 1}).encode() + b"\n",
    "a negative number": RECORD.replace('"replicate": 0', '"replicate": -1').encode() + b"\n",
    "an absurd mark": json.dumps(
        {"replicate": 0, "latent_groups": [[1, [0, 1]]], "between": [[300]], "seconds": 1, "failure": "", **ABOUT}
    ).encode()
    + b"\n",
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_file_that_is_not_ours_is_refused_and_unchanged(content, tmp_path):
    path = tmp_path / "precious"
    path.write_bytes(content)
    before = path.stat()
    for _ in range(2):
        with pytest.raises(um.UnmeasuredError, match="precious"):
            Records(path, ABOUT)
    assert path.read_bytes() == content
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_huge_file_is_refused_without_being_read(tmp_path):
    path = tmp_path / "precious"
    with path.open("wb") as file:
        file.truncate(20 * 2**30)  # a hole: it takes no space
    with pytest.raises(um.UnmeasuredError, match="Line 1"):
        Records(path, ABOUT)
    assert path.stat().st_size == 20 * 2**30


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(um.UnmeasuredError, match="it is a folder"):
        Records(tmp_path, ABOUT)


def test_a_link_to_a_foreign_file_is_refused_and_both_stay(tmp_path):
    target, link = tmp_path / "thesis", tmp_path / "link"
    target.write_bytes(b"words")
    link.symlink_to(target)
    with pytest.raises(um.UnmeasuredError, match="Line 1"):
        Records(link, ABOUT)
    assert link.is_symlink()
    assert target.read_bytes() == b"words"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_refused_and_nobody_waits_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(um.UnmeasuredError, match="not a regular file"):
        Records(tmp_path / "pipe", ABOUT)


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_paths_that_are_none(path):
    with pytest.raises(um.UnmeasuredError, match="cannot be written"):
        Records(path, ABOUT)


def test_an_empty_file_and_a_link_to_one_are_taken(tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    records = Records(tmp_path / "link", ABOUT)
    records.add(Replicate(3, None, 0.1, "it failed"))
    assert list(Records(tmp_path / "empty", ABOUT).done) == [3]


@pytest.mark.parametrize("cut", range(1, len(RECORD) + 1))
def test_a_run_killed_while_writing_goes_on(cut, tmp_path):
    """Whatever part of the last line reached the disk, the lines before it are kept and the file can be added to."""
    path = tmp_path / "records"
    path.write_text(f"{RECORD}\n" + RECORD.replace('"replicate": 0', '"replicate": 1')[:cut])
    records = Records(path, ABOUT)
    assert list(records.done) == ([0] if cut < len(RECORD) else [0, 1])
    records.add(Replicate(2, None, 0.1, "it failed"))
    assert list(Records(path, ABOUT).done) == [*records.done]


def test_arguments_of_stability_that_are_none():
    rows = np.random.default_rng(0).normal(size=(60, 1)) + np.random.default_rng(1).normal(size=(60, 4))
    search = um.LGES().fit(rows)
    for wrong in (
        {"records": 5},
        {"n_jobs": 0},
        {"n_jobs": "two"},
        {"n_jobs": 1.5},
        {"n_replicates": True},
        {"n_replicates": 2.0},
        {"random_state": -1},
        {"method": "magic"},
    ):
        with pytest.raises(um.UnmeasuredError):
            um.stability(search, **{"n_replicates": 1, **wrong})
    assert len(um.stability(search, 1, n_jobs=10**400).replicates) == 1
