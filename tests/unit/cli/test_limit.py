"""A time limit covers the whole command, and what is said of it is true; Ctrl-C is a sentence at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.errors import Stopped
from unmeasured.search.clock import finished_by

COMMAND = "from unmeasured_command import main; main()"


@pytest.fixture(scope="module")
def many() -> pd.DataFrame:
    """Rows whose polychoric correlations take seconds."""
    rng = np.random.default_rng(0)
    factors = np.repeat(rng.normal(size=(400_000, 4)), 5, axis=1)
    answers = np.clip(np.rint(0.7 * factors + 0.7 * rng.normal(size=factors.shape) + 3), 1, 5)
    answers[rng.random(answers.shape) < 0.02] = np.nan
    return pd.DataFrame(answers, columns=[f"q{j}" for j in range(20)])


@pytest.fixture(scope="module")
def file(many, tmp_path_factory):
    path = tmp_path_factory.mktemp("limit") / "rows.csv"
    many[:200_000].to_csv(path, index=False, float_format="%.0f")
    return path


def run(*arguments, environment=None):
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, arguments)],
        capture_output=True, text=True, check=False, env=environment, timeout=300,
    )  # fmt: skip


def test_work_without_checks_is_ended():
    began = time.monotonic()
    with pytest.raises(Stopped):
        finished_by(began + 0.1, lambda: time.sleep(20))
    assert time.monotonic() - began < 15


def test_work_that_is_done_in_time_is_left_alone():
    for _ in range(200):  # some end just when the time is over: nothing but Stopped comes out, and nothing later
        with suppress(Stopped):
            finished_by(time.monotonic() + 0.002, lambda: time.sleep(0.002))
    assert finished_by(None, lambda: time.sleep(0.01) or 1) == 1


def test_ctrl_c_is_not_taken_for_the_end_of_the_time():
    with pytest.raises(KeyboardInterrupt):
        finished_by(time.monotonic() + 60, lambda: signal.raise_signal(signal.SIGINT))


def test_other_threads_are_not_interrupted():
    ended = []

    def work():
        finished_by(time.monotonic() - 1, lambda: ended.append(True))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [True]


def test_the_limit_of_a_search_covers_its_correlations(many):
    began = time.process_time()
    search = um.LGES(time_limit=0.2)
    with pytest.raises(
        um.SearchStopped, match=r"limit of 0\.2 s was over after .* correlations .* nothing was searched"
    ):
        search.fit(many)
    assert time.process_time() - began < 3
    assert search.set_params(time_limit=None).fit(many[:300]).stopped_ == ""  # the next one begins anew


def test_a_limit_that_is_too_short_to_read_says_how_long_that_would_take(file):
    done = run("discover", file, "--time-limit", 0.2)
    assert done.returncode == 130
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "nothing was searched. Reading and correlations would take about" in line
    assert "Give --time-limit more" in line


def test_where_the_time_went_is_said(file):
    done = run("discover", file, "--columns", "q0:q5", "--time-limit", 600)
    assert done.returncode == 0
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("Time: ")]
    assert "with a limit of 600 s: loading libraries" in line
    seconds = [float(part.split()[-2]) for part in line.removesuffix(".").split(": ", 2)[2].split("; ")]
    assert sum(seconds) == pytest.approx(float(line.split()[1]), abs=0.3)
    assert len(seconds) == 4


def module(tmp_path, name, text):
    (tmp_path / f"{name}.py").write_text(text)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}


def test_ctrl_c_while_the_module_loads_is_one_sentence(tmp_path):
    stop = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)"
    done = subprocess.run(
        [sys.executable, "-m", "unmeasured", "discover", "rows.csv"],
        capture_output=True, text=True, check=False, env=module(tmp_path, "typer", stop),
    )  # fmt: skip
    assert done.returncode == 130
    assert done.stderr.startswith("unmeasured: stopped by Ctrl-C while the package was loading.")
    assert len(done.stderr.splitlines()) == 1


def test_ctrl_c_that_a_library_takes_for_a_failed_import_is_one_sentence(tmp_path):
    text = (
        "import os, signal, time\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT); time.sleep(9)\n"
        "except BaseException as error:\n    raise ImportError('its extension is broken') from error\n"
    )
    done = run("datasets", environment=module(tmp_path, "pandas", text))
    assert done.returncode == 130
    assert done.stderr.startswith("unmeasured: datasets was stopped by Ctrl-C before it was done.")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent otherwise there")
@pytest.mark.parametrize("after", [0.4, 0.9, 1.6, 2.5])
def test_ctrl_c_is_no_trace_at_any_moment(file, after):
    for attempt in range(3):  # Python itself drops a Ctrl-C in a few places, for instance while it frees memory
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "discover", str(file)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(after + 0.05 * attempt)
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=120)
        assert "Traceback" not in complained
        if process.returncode:
            break
    assert process.returncode == 130
    # A search that had a model by then says in its answer that it was stopped.
    assert "Ctrl-C" in complained or "interrupted" in (said + complained).lower()
