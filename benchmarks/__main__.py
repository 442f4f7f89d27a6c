"""The command ``python -m benchmarks NAME``, from the root of the repository."""

from __future__ import annotations

import sys
from typing import NoReturn

from benchmarks import study_commands  # noqa: F401  (registers its commands)
from benchmarks.commands import bench
from benchmarks.golden.__main__ import main as golden
from unmeasured.cli.commands import run


def main() -> NoReturn:
    """Run the study that is named first; ``golden`` reads its own options."""
    if sys.argv[1:2] == ["golden"]:
        sys.exit(golden(sys.argv[2:]))
    run(bench, "python -m benchmarks")


if __name__ == "__main__":
    main()
