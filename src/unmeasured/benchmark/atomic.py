"""Writing a file as a whole or not at all: under a temporary name first, then renamed over the old one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from unmeasured.errors import UnmeasuredError


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file so that a failure, or a kill, leaves the old one as it was.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "page.md"), "# Benchmarks")
    ...     os.listdir(folder)
    ['page.md']
    """
    data = content.encode() if isinstance(content, str) else content
    path = path.resolve()  # a link stays a link: what it points to is replaced
    temporary = None
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is None:
            os.umask(mask := os.umask(0))
            mode = 0o666 & ~mask
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except OSError as error:
        raise UnmeasuredError(f"{str(path)!r} cannot be written: {error.strerror}.") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
