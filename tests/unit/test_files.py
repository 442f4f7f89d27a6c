"""Files are written whole or not at all, and tables are safe in a spreadsheet."""

from __future__ import annotations

import csv
import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unmeasured as um
from unmeasured import files
from unmeasured.files import (
    check_folder,
    csv_text,
    escaped,
    unescaped,
    write_bytes,
    write_csv,
    write_folder,
    write_text,
)

EVIL = "=cmd|' /C calc'!A0"


@pytest.fixture(scope="module")
def search():
    data = um.datasets.load("multitasking")
    return um.LGES().fit_cov(data.frame(), data.n_samples)


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")
    monkeypatch.setattr(files.os, "fsync", full_disk)
    with pytest.raises(um.UnmeasuredError, match="No space left on device"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_report_that_meets_a_full_disk_halfway_leaves_the_old_one_whole(search, tmp_path, monkeypatch):
    um.write_report(search, tmp_path, title="old")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    calls, put = [], files._put

    def fails_at_the_fifth(path, content):
        calls.append(path)
        if len(calls) == 5:
            path.write_bytes(content[: len(content) // 2])
            full_disk()
        put(path, content)

    monkeypatch.setattr(files, "_put", fails_at_the_fifth)
    with pytest.raises(um.UnmeasuredError, match="No space left"):
        um.write_report(search, tmp_path, title="new")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_report_on_a_disk_that_is_really_full(search, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        (disk / "result.json").write_text("old")
        (disk / "ballast").write_bytes(b"x" * 300_000)
        with pytest.raises(um.UnmeasuredError, match="No space left"):
            um.write_report(search, disk)
        assert sorted(p.name for p in disk.iterdir()) == ["ballast", "result.json"]
        assert (disk / "result.json").read_text() == "old"
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_kill_in_the_middle_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    code = """
        import sys, time
        from pathlib import Path
        from unmeasured import files
        def slow(path, content):
            path.write_bytes(content[:100])
            print("half", flush=True)
            time.sleep(60)
        files._put = slow
        files.write_text(sys.argv[1], "new" * 1000)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == "half\n"
        child.send_signal(signal.SIGKILL)
        child.wait(20)
    assert path.read_text() == "old"
    write_text(path, "new")  # what the killed process left is in nobody's way
    assert path.read_text() == "new\n"


def test_permissions_are_kept_and_new_files_have_the_usual_ones(tmp_path):
    old, new, usual = tmp_path / "old", tmp_path / "new", tmp_path / "usual"
    old.write_text("")
    old.chmod(0o640)
    write_text(old, "a")
    write_text(new, "a")
    usual.write_text("")
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert new.stat().st_mode == usual.stat().st_mode


def test_links_and_devices_stay_what_they_are(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new\n"
    write_text(os.devnull, "nothing")
    assert not Path(os.devnull).is_file()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(um.UnmeasuredError, match="could not be written"):
        write_text(tmp_path / "a", "b")
    tmp_path.chmod(0o700)


def test_a_read_only_folder_is_a_sentence_for_whoever_runs_this(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(files.os, "open", refused)
    for write in (lambda: write_text(tmp_path / "a", "b"), lambda: write_folder(tmp_path, {"a": "b"})):
        with pytest.raises(um.UnmeasuredError, match="Permission denied"):
            write()
    assert (tmp_path / "a").read_text() == "old"


@pytest.mark.parametrize("path", ["", "a\0b", "a" * 300])
def test_names_that_no_file_can_have(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(um.UnmeasuredError):
        write_text(path, "a")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_written_over(tmp_path):
    with pytest.raises(um.UnmeasuredError, match="it is a folder"):
        write_bytes(tmp_path, b"")


@given(st.text(alphabet="'=+-@\t\r\nab") | st.text())
def test_what_is_escaped_comes_back_and_is_no_formula(text):
    assert unescaped(escaped(text)) == text
    assert not escaped(text).startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


def test_tables_hold_no_formula_and_our_reader_maps_them_back(tmp_path):
    names = [EVIL, "+a", "-b", "@c", "'=d", "plain"]
    rows = pd.DataFrame({name: [1.5, -2.0, 3.25] for name in names})
    write_csv(tmp_path / "rows.csv", rows)
    with (tmp_path / "rows.csv").open(newline="") as file:
        assert not [cell for cell in next(csv.reader(file)) if cell.startswith(("=", "+", "-", "@"))]
    assert um.read(tmp_path / "rows.csv").equals(rows)


def test_reports_hold_no_formula(tmp_path):
    data = um.datasets.load("multitasking")
    names = [EVIL, *data.names[1:]]
    search = um.LGES().fit_cov(data.frame().to_numpy(), data.n_samples, names=names)
    stable = um.stability(search, 1)
    um.write_report(search, tmp_path, stability=stable)
    um.penalty_path(search.sample_, [1.0]).write(tmp_path / "path")
    tables = sorted(tmp_path.rglob("*.csv"))
    assert [path.name for path in tables] == ["loadings.csv", "edges.csv", "path.csv", "paths.csv", "stability.csv"]
    n = 0
    for path in tables:
        with path.open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        n += cells.count("'" + EVIL)
        assert EVIL not in cells
    assert n >= 3  # in loadings.csv, stability.csv and edges.csv


def test_text_of_numbers_is_not_touched():
    assert csv_text(pd.DataFrame({"a": [-1.0]})) == "a\n-1.0\n"


def test_a_folder_is_refused_before_long_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("old")
    check_folder(tmp_path / "new" / "deep")
    for path in (tmp_path / "file", tmp_path / "file" / "x"):
        with pytest.raises(um.UnmeasuredError, match="is a file"):
            check_folder(path)
    with pytest.raises(um.UnmeasuredError, match="NUL"):
        check_folder("a\0b")
    monkeypatch.setattr(files.os, "access", lambda *_: False)
    with pytest.raises(um.UnmeasuredError, match="Permission denied"):
        check_folder(tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
