"""Figures of studies that have no table: kept in one file, with the command and the state of the code behind them.

``python -m benchmarks population --keep`` and its like write here; the README's figures are read from here. Files of
another kind are refused and left as they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.attempt import installed_version, machine, today
from benchmarks.state import state_of
from unmeasured.errors import UnmeasuredError
from unmeasured.files import write_folder

FILE = Path("benchmarks") / "records" / "studies.json"


@dataclass(frozen=True)
class Study:
    """What one command measured.

    Attributes
    ----------
    command
        What was typed.
    figures
        Numbers by name.
    method
        The method whose code decides whether they still stand.
    code
        The state of that code, "" where it is not known any more.
    """

    command: str
    figures: Mapping[str, Any]
    method: str
    code: str
    version: str
    machine: str
    date: str

    @property
    def is_of_today(self) -> bool:
        """Whether the code behind the figures is still what it was."""
        return state_of(self.method) in ("", self.code)


def read_studies(path: Path) -> dict[str, Study]:
    """All studies of a file by name; none where there is no file."""
    try:
        content = json.loads(path.read_bytes())
        return {name: Study(**study) for name, study in content["studies"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UnmeasuredError(
            f"{str(path)!r} is not a file of studies; it is left as it is. Choose another one."
        ) from None


def keep_study(path: Path, name: str, command: str, figures: Mapping[str, Any], method: str = "LGES") -> None:
    """Put the figures of a study in the place of those it had before."""
    wrong = [key for key, value in figures.items() if isinstance(value, float) and not math.isfinite(value)]
    if wrong:
        raise UnmeasuredError(f"The study {name!r} is not kept: {wrong[0]} is no number.")
    kept = read_studies(path)
    kept[name] = Study(command, dict(figures), method, state_of(method), installed_version(), machine(), today())
    content = {"studies": {key: asdict(kept[key]) for key in sorted(kept)}}
    text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    write_folder(path.parent, {path.name: text})
