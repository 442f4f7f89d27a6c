"""The command ``python -m benchmarks NAME``."""

from __future__ import annotations

import sys
from importlib import import_module

# Each name and the module whose ``main(arguments)`` runs it.
COMMANDS = {"golden": "benchmarks.golden.__main__"}


def main(arguments: list[str]) -> int:
    """Run the benchmark named by the first argument; return the exit status."""
    if not arguments or arguments[0] not in COMMANDS:
        print(f"Usage: python -m benchmarks NAME [options]. Names: {', '.join(COMMANDS)}.", file=sys.stderr)
        return 2
    status: int = import_module(COMMANDS[arguments[0]]).main(arguments[1:])
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
