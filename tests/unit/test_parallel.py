"""Processes: none outlives the one that started it, and Ctrl-C leaves no litter and no warning."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from unmeasured.parallel import as_finished

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and process groups of POSIX")

# What a search does in a worker, as far as processes go: a bar that nobody sees, and work.
SCRIPT = """
    import signal, sys, time
    from unmeasured.parallel import as_finished

    def work(seconds):
        from tqdm import tqdm
        bar = tqdm(disable=True)
        bar.set_lock(bar.get_lock())
        time.sleep(seconds)
        return seconds

    if __name__ == "__main__":
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
        try:
            for done in as_finished(work, [0.1, 0.1, 60, 60, 60], n_jobs=2):
                print("done", done, flush=True)
        except KeyboardInterrupt:
            print("stopped", flush=True)
            sys.exit(130)
"""


def family(session: int) -> list[str]:
    listed = subprocess.run(["ps", "-eo", "sid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 2) for line in listed.splitlines()]
    return [parts[2] for parts in lines if int(parts[0]) == session and not parts[1].startswith("Z")]


@pytest.fixture
def begun(tmp_path):
    """A process with two workers, both at work."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    child = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "done 0.1\n"
    assert child.stdout.readline() == "done 0.1\n"
    assert len(family(child.pid)) >= 3
    yield child
    if family(child.pid):
        os.killpg(child.pid, signal.SIGKILL)


def gone(session: int, seconds: float = 15.0) -> bool:
    end = time.monotonic() + seconds
    while family(session) and time.monotonic() < end:
        time.sleep(0.1)
    return not family(session)


def test_a_killed_process_leaves_no_workers_behind(begun):
    begun.kill()
    begun.communicate(timeout=180)
    assert gone(begun.pid), family(begun.pid)


def test_an_interrupted_process_ends_its_workers_without_a_warning(begun):
    os.killpg(begun.pid, signal.SIGINT)  # as a terminal does: to all of them
    out, err = begun.communicate(timeout=180)
    assert begun.returncode == 130
    assert out == "stopped\n"
    assert err == ""
    assert gone(begun.pid), family(begun.pid)


@pytest.mark.parametrize("later", [0.0, 0.05])
def test_ctrl_c_while_the_workers_load_is_no_trace(tmp_path, later):
    """A worker that fails while it starts has its trace printed by loky: such an attempt is made again."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    for _ in range(3):
        out, err = interrupted_while_workers_load(script, later)
        if "failed with traceback" not in out:
            break
    assert out.splitlines()[-1:] == ["stopped"], out
    assert not re.search("KeyboardInterrupt|tracker|[Ww]arning", err), err


def interrupted_while_workers_load(script, later):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, str(script)], start_new_session=True, **pipes)
    try:
        end = time.monotonic() + 60
        while sum(" -m joblib" in line for line in family(child.pid)) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(later)
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
        assert child.returncode == 130
        assert "stopped" in out.splitlines()
        assert gone(child.pid), family(child.pid)
        return out, err
    finally:
        if family(child.pid):
            os.killpg(child.pid, signal.SIGKILL)


def test_results_come_as_they_are_done_and_stopping_early_is_allowed():
    done = as_finished(abs, [-1, -2, -3], n_jobs=1)
    assert next(done) in (1, 2, 3)
    done.close()
