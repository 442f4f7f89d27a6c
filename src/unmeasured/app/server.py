"""The server of the application: for this machine only, for whoever has the address with its token, and nobody else.

What guards it, in the order of a request: it listens on the loopback address; the Host it is asked for must be that
address (a foreign name that was made to point here is refused); a request that comes from another page says so in its
Origin and is refused; every address begins with a random token; bodies are limited; and no text of a request ever
becomes part of the name of a file. Uploads are kept in a temporary folder that goes with the process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

import unmeasured as um
from unmeasured.app.exports import KINDS, export
from unmeasured.app.jobs import Message, Worker
from unmeasured.app.project import FILES, PROJECT, Project, spelled
from unmeasured.app.results import panel
from unmeasured.app.sketch import sketch
from unmeasured.app.words import in_the_page
from unmeasured.validation.replicates.result import Stability

HOST = "127.0.0.1"
MOST_BYTES = 200 * 1024 * 1024  # of an uploaded file
_MOST_TEXT = 4 * 1024 * 1024  # of any other body
_MOST_PROJECTS = 24
_MOST_REPLICATES = 1000
_ALIVE = 15.0  # seconds between signs of life on a stream without events

_PAGES = {
    "app.js": ("app", "static", "text/javascript"),
    "edit.js": ("app", "static", "text/javascript"),
    "known.js": ("app", "static", "text/javascript"),
    "result.js": ("app", "static", "text/javascript"),
    "columns.js": ("app", "static", "text/javascript"),
    "app.css": ("app", "static", "text/css"),
    "cytoscape.css": ("app", "static", "text/css"),
    "cytoscape.min.js": ("app", "static", "text/javascript"),
    "cytoscape.LICENSE.txt": ("app", "static", "text/plain"),
    "diagram.js": ("output.report", "page", "text/javascript"),
    "page.css": ("output.report", "page", "text/css"),
}
_STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
# The report is one page with its own script and style inside; it gets no access to anything else, nor to this page.
_REPORT = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; "
    "form-action 'none'; frame-ancestors 'self'; base-uri 'none'; sandbox allow-scripts allow-downloads allow-modals"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Session:
    """A project, the process that works for it, and the pages that listen."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.project = Project(folder)
        self.job: dict[str, Any] = {"status": "idle", "task": "", "text": "", "sketch": None, "sentence": ""}
        self._worker: Worker | None = None
        self._loop = loop
        self._queues: set[asyncio.Queue[dict[str, Any] | None]] = set()

    def warm(self) -> None:
        """Have a process ready: it takes seconds to start."""
        if self._worker is None or not self._worker.is_alive:
            self._worker = Worker(self._hear)
            self._worker.run({"task": "prepare"})

    def begin(self, task: Message) -> None:
        if self.job["status"] == "running":
            raise um.UnmeasuredError("Something is running already. Stop it first.")
        self.warm()
        self._tell(status="running", task=task["task"], text="starting", sketch=None, sentence="")
        assert self._worker is not None
        self._worker.run(task)

    def stop(self) -> None:
        if self._worker is not None and self.job["status"] == "running":
            self._tell(text="stopping; what was found so far is kept")
            self._worker.stop()

    @property
    def is_idle(self) -> bool:
        """Whether no page listens and nothing runs."""
        return not self._queues and self.job["status"] != "running"

    def close(self) -> None:
        """End the process and the streams of pages that listen."""
        for queue in list(self._queues):
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(queue.put_nowait, None)
        if self._worker is not None:
            self._worker.kill()

    def _hear(self, message: Message) -> None:
        """A message of the process; in a thread of its own."""
        kind = message["kind"]
        if kind == "text":
            self._tell(text=message["text"])
        elif kind == "model":
            self._tell(sketch=sketch(message["items"], message["sizes"], message["edges"]))
        elif kind == "failed":
            self._tell(status="failed", sentence=message["sentence"])
        elif kind == "gone" and self.job["status"] == "running":
            self._tell(status="failed", sentence="The process that searched has ended; perhaps memory ran out.")
        elif kind == "done":
            try:
                self._keep(message)
            except um.UnmeasuredError as error:
                self._tell(status="failed", sentence=str(error))
            else:
                self._tell(status="done", sketch=None)

    def _keep(self, message: Message) -> None:
        project = self.project
        with project.lock:
            if message["task"] == "search":
                project.found(message["run"], message["people"])
            else:
                project.stability = Stability.from_json(message["stability"])

    def _tell(self, **changes: Any) -> None:
        self.job = {**self.job, **changes}
        event = self.job
        for queue in list(self._queues):
            with suppress(RuntimeError):  # the loop may be gone
                self._loop.call_soon_threadsafe(queue.put_nowait, event)

    async def events(self) -> AsyncIterator[str]:
        """The state of the job now, and whenever it changes."""
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._queues.add(queue)
        try:
            yield _event(self.job)
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), _ALIVE)
                except TimeoutError:
                    yield ": here\n\n"
                    continue
                while event is not None and not queue.empty():  # only the newest matters
                    event = queue.get_nowait()
                if event is None:
                    return
                yield _event(event)
        finally:
            self._queues.discard(queue)


def _event(job: dict[str, Any]) -> str:
    return f"data: {json.dumps(spelled(job), ensure_ascii=False)}\n\n"


class Sessions:
    """All projects of a server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open: dict[str, Session] = {}

    def new(self) -> str:
        """A new project; beyond the most there can be, the oldest that no page shows is closed."""
        if len(self.open) >= _MOST_PROJECTS:
            idle = next((name for name, session in self.open.items() if session.is_idle), None)
            if idle is None:
                raise um.UnmeasuredError("There are too many projects at once. Close pages that you do not need.")
            self.open.pop(idle).close()
        name = secrets.token_urlsafe(18)
        place = self.folder / secrets.token_hex(8)
        place.mkdir()
        self.open[name] = Session(place, asyncio.get_running_loop())
        return name

    def close(self) -> None:
        for session in self.open.values():
            session.close()


# Requests ---------------------------------------------------------------------------------------------------


class Guard:
    """Refuses what does not come from the page of this server."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http" and (reason := self._refusal(scope)):
            await Response(reason, 403, _HEADERS, "text/plain")(scope, receive, send)
        elif scope["type"] == "http":
            inner = dict(scope)
            inner["path"] = scope["path"][len(self.token) + 1 :]
            inner["raw_path"] = inner["path"].encode()
            await self.app(inner, receive, send)

    def _refusal(self, scope: Scope) -> str:
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        host, origin = headers.get("host", []), headers.get("origin", [])
        if len(host) != 1 or host[0] not in self.hosts:
            return "This server answers to its own address only."
        if any(value not in self.origins for value in origin) or len(origin) > 1:
            return "This request comes from another page."
        if scope["method"] not in ("GET", "HEAD") and not origin:
            return "A request that changes something has to say where it comes from."
        if headers.get("sec-fetch-site", ["none"])[0] not in ("same-origin", "none"):
            return "This request comes from another page."
        parts = scope["path"].split("/")
        if len(parts) < 3 or not secrets.compare_digest(parts[1].encode(), self.token.encode()):
            return "The address lacks its token. Use the one that was printed when the server started."
        return ""


async def _body(request: Request, most: int) -> bytes:
    """The body, refused as soon as it is known to be too large."""
    limit = f"{most // (1024 * 1024)} MB"
    said = request.headers.get("content-length", "0")
    if not said.isdigit() or int(said) > most:
        raise _TooLarge(f"This is larger than {limit}, which is the limit here.")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _TooLarge(f"This is larger than {limit}, which is the limit here.")
        parts.append(part)
    return b"".join(parts)


class _TooLarge(um.UnmeasuredError):
    """A body beyond the limit."""


async def _json(request: Request) -> dict[str, Any]:
    try:
        record = json.loads(await _body(request, _MOST_TEXT))
    except (ValueError, RecursionError):
        raise um.UnmeasuredError("The request is not JSON.") from None
    if not isinstance(record, dict):
        raise um.UnmeasuredError("The request is not a JSON object.")
    return record


Handler = Callable[[Request, Session], Awaitable[Response]]


def create_app(folder: Path, port: int, token: str) -> tuple[ASGIApp, Sessions]:
    """The application, guarded, and what it looks after; ``folder`` is for uploads."""
    sessions = Sessions(folder)

    def in_a_session(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            session = sessions.open.get(request.path_params["project"])
            if session is None:
                return _sentence("There is no such project here. Reload the page to begin a new one.", 404)
            try:
                return await handler(request, session)
            except _TooLarge as error:
                return _sentence(str(error), 413)
            except um.UnmeasuredError as error:
                return _sentence(in_the_page(str(error)), 400)
            except (TypeError, ValueError, AttributeError, KeyError, LookupError) as error:
                # What the page never sends.
                return _sentence(f"The request cannot be understood ({type(error).__name__}).", 400)
            except Exception:
                logging.getLogger("unmeasured").exception("a request failed")
                return _sentence("Something failed that should not have; the terminal has the details.", 500)

        return answer

    async def index(request: Request) -> Response:
        return _page(_text("app", "static", "index.html"), "text/html", _STRICT)

    async def static(request: Request) -> Response:
        entry = _PAGES.get(request.path_params["name"])
        if entry is None:
            return _sentence("There is no such file.", 404)
        package, sub, kind = entry
        return _page(_text(package, sub, request.path_params["name"]), kind, _STRICT)

    async def begin(request: Request) -> Response:
        try:
            return _answer({"project": sessions.new()})
        except um.UnmeasuredError as error:
            return _sentence(str(error), 429)

    async def about(request: Request) -> Response:
        sets = {name: um.datasets.load(name).title for name in um.datasets.available()}
        return _answer({"datasets": sets, "files": [*FILES, PROJECT], "exports": KINDS, "version": um.__version__})

    routes = [
        Route("/", index),
        Route("/static/{name}", static),
        Route("/api/about", about),
        Route("/api/project", begin, methods=["POST"]),
        *(
            Route(f"/api/{{project}}/{path}", in_a_session(handler), methods=[method])
            for method, path, handler in _HANDLERS
        ),
    ]
    return Guard(Starlette(routes=routes), port, token), sessions


def _text(package: str, sub: str, name: str) -> str:
    return files(f"unmeasured.{package}").joinpath(sub, name).read_text("utf-8")


def _page(text: str, kind: str, policy: str) -> Response:
    return Response(text, media_type=kind, headers={**_HEADERS, "Content-Security-Policy": policy})


def _answer(record: Any) -> Response:
    return JSONResponse(spelled(record), headers={**_HEADERS, "Content-Security-Policy": _STRICT})


def _sentence(text: str, status: int) -> Response:
    return JSONResponse({"error": text}, status, headers={**_HEADERS, "Content-Security-Policy": _STRICT})


async def _changed(session: Session, change: Callable[[], None]) -> Response:
    """Do something to a project, away from the loop, and answer with its state."""

    def work() -> dict[str, Any]:
        with session.project.lock:
            change()
            return session.project.state()

    state = await run_in_threadpool(work)
    return _answer({**state, "job": session.job})


async def _state(request: Request, session: Session) -> Response:
    return await _changed(session, lambda: None)


async def _upload(request: Request, session: Session) -> Response:
    # Only what people call it: no part of it names a file here.
    name = Path(request.query_params.get("name", "").replace("\\", "/")).name[:120] or "data"
    content = await _body(request, MOST_BYTES)
    _refuse_while_running(session)
    session.warm()
    has_header = request.query_params.get("header", "yes") != "no"
    return await _changed(session, lambda: session.project.open_file(name, content, has_header=has_header))


async def _sheet(request: Request, session: Session) -> Response:
    sheet = str((await _json(request)).get("sheet", ""))
    _refuse_while_running(session)
    return await _changed(session, lambda: session.project.open_sheet(sheet))


async def _matrix(request: Request, session: Session) -> Response:
    record = await _json(request)
    _refuse_while_running(session)
    session.warm()
    text, n = str(record.get("text", "")), record.get("n")
    return await _changed(session, lambda: session.project.open_matrix(text, n))  # type: ignore[arg-type]


async def _dataset(request: Request, session: Session) -> Response:
    name = str((await _json(request)).get("name", ""))
    _refuse_while_running(session)
    session.warm()
    return await _changed(session, lambda: session.project.open_dataset(name))


async def _columns(request: Request, session: Session) -> Response:
    record = await _json(request)
    _refuse_while_running(session)
    return await _changed(session, lambda: session.project.choose(record.get("columns", []), record.get("options", {})))


async def _many_columns(request: Request, session: Session) -> Response:
    record = await _json(request)
    _refuse_while_running(session)
    given: dict[str, Any] = {key: record[key] for key in ("role", "kind", "codes", "is_reversed") if key in record}
    return await _changed(session, lambda: session.project.choose_many(str(record.get("pattern", "")), given))


async def _check(request: Request, session: Session) -> Response:
    return await _read(session, session.project.check)


async def _known(request: Request, session: Session) -> Response:
    record = await _json(request)
    _refuse_while_running(session)
    return await _changed(session, lambda: session.project.know(record))


async def _search(request: Request, session: Session) -> Response:
    def work() -> Message:
        with session.project.lock:
            project = session.project
            return {"sample": project.sample(), "options": project.search_options(), "about": project.about()}

    task = await run_in_threadpool(work)
    session.begin({"task": "search", **task})
    return await _state(request, session)


async def _stability(request: Request, session: Session) -> Response:
    record = await _json(request)
    count = int(record.get("replicates", 50))
    if not 2 <= count <= _MOST_REPLICATES:
        raise um.UnmeasuredError(f"Replicates are a number from 2 to {_MOST_REPLICATES}.")

    def work() -> Message:
        with session.project.lock:
            project = session.project
            found = {"sample": project.sample(), "options": project.search_options()}
            return {**found, "latents": project.result.graph.latents, "replicates": count}

    task = await run_in_threadpool(work)
    session.begin({"task": "stability", **task})
    return await _state(request, session)


async def _stop(request: Request, session: Session) -> Response:
    session.stop()
    return await _state(request, session)


async def _events(request: Request, session: Session) -> Response:
    headers = {**_HEADERS, "Content-Security-Policy": _STRICT, "X-Accel-Buffering": "no"}
    return StreamingResponse(session.events(), media_type="text/event-stream", headers=headers)


async def _edit(request: Request, session: Session) -> Response:
    record = await _json(request)
    return await _changed(session, lambda: session.project.edit(record))


async def _undo(request: Request, session: Session) -> Response:
    return await _changed(session, lambda: session.project.move(-1))


async def _redo(request: Request, session: Session) -> Response:
    return await _changed(session, lambda: session.project.move(1))


async def _report(request: Request, session: Session) -> Response:
    def work() -> str:
        with session.project.lock:
            return session.project.report()

    return _page(await run_in_threadpool(work), "text/html", _REPORT)


async def _diagram(request: Request, session: Session) -> Response:
    return await _read(session, session.project.diagram)


async def _panel(request: Request, session: Session) -> Response:
    name = request.path_params["name"]
    return await _read(session, lambda: panel(session.project, name))


async def _read(session: Session, make: Callable[[], dict[str, Any]]) -> Response:
    """Something of a project that takes a while to make, away from the loop."""

    def work() -> dict[str, Any]:
        with session.project.lock:
            return make()

    return _answer(await run_in_threadpool(work))


async def _export(request: Request, session: Session) -> Response:
    kind = request.path_params["kind"]

    def work() -> tuple[str, str, bytes]:
        with session.project.lock:
            return export(session.project, kind)

    name, media, content = await run_in_threadpool(work)
    headers = {**_HEADERS, "Content-Disposition": f'attachment; filename="{name}"', "Content-Security-Policy": _STRICT}
    return Response(content, media_type=media, headers=headers)


def _refuse_while_running(session: Session) -> None:
    if session.job["status"] == "running":
        raise um.UnmeasuredError("A search is running. Stop it before you change what it is made of.")


_HANDLERS: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "state", _state),
    ("POST", "file", _upload),
    ("POST", "sheet", _sheet),
    ("POST", "matrix", _matrix),
    ("POST", "dataset", _dataset),
    ("POST", "columns", _columns),
    ("POST", "columns/many", _many_columns),
    ("GET", "check", _check),
    ("POST", "known", _known),
    ("POST", "search", _search),
    ("POST", "stability", _stability),
    ("POST", "stop", _stop),
    ("GET", "events", _events),
    ("POST", "edit", _edit),
    ("POST", "undo", _undo),
    ("POST", "redo", _redo),
    ("GET", "report", _report),
    ("GET", "diagram", _diagram),
    ("GET", "part/{name}", _panel),
    ("GET", "export/{kind}", _export),
)


# Running ----------------------------------------------------------------------------------------------------


class Server:
    """The application on a port of this machine.

    Parameters
    ----------
    port
        0: any that is free.
    """

    def __init__(self, port: int = 0) -> None:
        if not 0 <= port <= 65535:
            raise um.UnmeasuredError(f"A port is a number from 0 to 65535; got {port}.")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
            self._socket.listen(64)  # whoever asks before the server is up waits a moment
        except OSError as error:
            self._socket.close()
            raise um.UnmeasuredError(
                f"Port {port} cannot be used: {error.strerror}. Give another, or 0 for any that is free."
            ) from None
        self.port = int(self._socket.getsockname()[1])
        self.token = secrets.token_urlsafe(24)
        self._folder = tempfile.TemporaryDirectory(prefix="unmeasured-", ignore_cleanup_errors=True)
        app, self._sessions = create_app(Path(self._folder.name), self.port, self.token)
        config = uvicorn.Config(app, log_level="critical", lifespan="off", access_log=False, server_header=False)
        self._uvicorn = uvicorn.Server(config)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def run(self) -> None:
        """Serve until interrupted."""
        try:
            self._uvicorn.run(sockets=[self._socket])
        finally:
            self.close()

    def start(self) -> None:
        """Serve in a thread."""
        threading.Thread(target=self._uvicorn.run, kwargs={"sockets": [self._socket]}, daemon=True).start()

    def stop(self) -> None:
        """End a server that was started in a thread."""
        self._uvicorn.should_exit = True
        self._uvicorn.force_exit = True
        self.close()

    def close(self) -> None:
        """End its processes and take its folder away."""
        self._sessions.close()
        self._folder.cleanup()
