"""The command ``unmeasured``, up to where the package is loaded.

That takes seconds, and Ctrl-C may come before they are over. A module inside the package could not say a sentence
about it: the package is loaded before any of its modules.
"""

from __future__ import annotations

import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Load the package and hand over to it."""
    try:
        from unmeasured.cli.commands import main as run
    except KeyboardInterrupt:
        print(
            "unmeasured: stopped by Ctrl-C while the package was loading. Nothing was read or written.", file=sys.stderr
        )
        sys.exit(130)
    try:
        run()
    finally:  # Python takes a moment to end; a Ctrl-C in it has nothing left to stop
        signal.signal(signal.SIGINT, signal.SIG_IGN)
