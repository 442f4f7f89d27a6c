"""The command ``python -m benchmarks NAME``, from the root of the repository."""

from __future__ import annotations

from typing import NoReturn

from benchmarks.commands import bench
from unmeasured.cli.commands import run


def main() -> NoReturn:
    """Run the study that is named first."""
    run(bench, "python -m benchmarks")


if __name__ == "__main__":
    main()
