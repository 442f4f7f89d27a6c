"""The command of the application: its address, an end that leaves nothing, a sentence where it cannot run."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request

import pytest
from typer.testing import CliRunner

import unmeasured as um
from unmeasured.cli.commands import app


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent otherwise on Windows")
def test_it_prints_its_address_serves_and_ends_with_nothing_left(tmp_path, monkeypatch):
    pytest.importorskip("uvicorn", reason="the application needs its extra: pip install 'unmeasured[app]'")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, "-m", "unmeasured", "serve", "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1) as process:
        line = process.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+/\S+/", line)[0]
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert b"<title>unmeasured</title>" in answer.read()
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith("unmeasured-")]
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode in (0, 130)
    assert rest == ""
    assert "Traceback" not in errors
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("unmeasured-")]


def test_without_its_libraries_it_says_how_to_get_them():
    """In a process of its own, where they were never imported."""
    script = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = ['unmeasured', 'serve', '--no-open'];"
        "from unmeasured.cli.commands import main; main()"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 2
    assert "pip install 'unmeasured[app]'" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_port_that_is_none_is_a_sentence():
    pytest.importorskip("uvicorn", reason="the application needs its extra: pip install 'unmeasured[app]'")
    answer = CliRunner().invoke(app, ["serve", "--port", "70000", "--no-open"])
    assert isinstance(answer.exception, um.UnmeasuredError)
    assert "from 0 to 65535" in str(answer.exception)
