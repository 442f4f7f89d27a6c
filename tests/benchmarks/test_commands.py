"""``python -m benchmarks``: every study has a name, and a mistake is a sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.commands import bench

ROOT = Path(__file__).parents[2]
NAMES = {command.name for command in bench.registered_commands}


def called(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_help_names_every_study():
    shown = called("--help")
    assert shown.returncode == 0
    listed = {line.split()[0] for line in shown.stdout.split("Commands:")[1].splitlines() if line[2:3].strip()}
    assert listed == NAMES - {"run"}
    assert {"golden", "fits", "many-rows", "normal-scores", "true-models", "worth", "table4", "docs"} <= listed


def test_the_golden_record_reads_its_own_options():
    listed = called("golden", "--list")
    assert listed.returncode == 0
    assert "bundled/multitasking" in listed.stdout
    wrong = called("golden", "nonsense")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    "words", [("true-models", "nonsense"), ("many-rows", "no/such/folder"), ("fits", "--nonsense")]
)
def test_a_mistake_is_a_sentence(words):
    wrong = called(*words)
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr
    assert wrong.stderr.strip()


def test_no_study_is_a_script_beside_the_command():
    """What can be run by itself is the command, the golden record behind it, and what it starts as processes."""
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if '__name__ == "__main__"' in path.read_text()}
    assert scripts <= {"__main__", "many_rows", "gpu"}
