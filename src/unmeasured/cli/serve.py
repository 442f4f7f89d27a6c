"""The command that starts the application; part of the command line."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

import unmeasured as um
from unmeasured.cli import commands as cli


@cli.app.command("serve")
def serve(
    port: Annotated[int, typer.Option(help="A port of this machine; 0 for any that is free.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address without opening a browser.")] = False,
) -> None:
    """Run the application in your browser: open data, search, edit, export.

    Example: unmeasured serve --port 0
    """
    try:
        from unmeasured.app.server import Server
    except ImportError as error:
        missing = error.name or ""
        if missing.split(".")[0] not in ("starlette", "uvicorn", "anyio"):
            raise
        raise um.UnmeasuredError(
            f"The application needs {missing}, which is not installed: pip install 'unmeasured[app]'"
        ) from None
    server = Server(port)
    typer.echo(f"unmeasured is at {server.url} (Ctrl-C ends it)")
    if not no_open:
        webbrowser.open(server.url)
    server.run()
