"""The server refuses what does not come from its own page, and what comes from it cannot leave its place."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import socket
import zipfile
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

import unmeasured as um

pytest.importorskip("starlette", reason="the application needs its extra: pip install 'unmeasured[app]'")
pytest.importorskip("uvicorn", reason="the application needs its extra: pip install 'unmeasured[app]'")

from unmeasured.app import server as web


class Quiet:
    """A worker that does nothing: no test here needs another process."""

    is_alive = True

    def __init__(self, listener):
        self.tasks = []

    def run(self, task):
        self.tasks.append(task)

    def stop(self):
        pass

    def kill(self):
        pass


@pytest.fixture(scope="module")
def served():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(web, "Worker", Quiet)
        running = web.Server(0)
        running.start()
        yield running
        running.stop()


def send(served, method, path, body=None, *, token=None, headers=None, own=True):
    """A request as it is written, not as a well-behaved client would."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    host = f"127.0.0.1:{served.port}"
    sent = {"Host": host, **({"Origin": f"http://{host}"} if own else {}), **(headers or {})}
    target = f"/{served.token if token is None else token}{path}"
    connection.request(method, target, body, sent)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def ask(served, method, path, record=None, **more):
    answer, content = send(served, method, path, None if record is None else json.dumps(record), **more)
    return answer.status, json.loads(content)


@pytest.fixture
def project(served):
    return ask(served, "POST", "/api/project", {})[1]["project"]


def test_the_page_and_its_files_come_with_a_strict_policy(served):
    for path in ("/", "/static/app.js", "/static/diagram.js", "/static/cytoscape.min.js", "/static/page.css"):
        answer, content = send(served, "GET", path)
        assert answer.status == 200, path
        policy = answer.getheader("Content-Security-Policy")
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.getheader("X-Content-Type-Options") == "nosniff"
        assert answer.getheader("Access-Control-Allow-Origin") is None
        assert content
    page = send(served, "GET", "/")[1].decode()
    assert "<script>" not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("cytoscape.min.js", "081591ab735b2b6a3b31a3c60f8f3a3e2fee8c92939e0c7820ad1208571b6cd8"),
        ("cytoscape.LICENSE.txt", "eb319c6e6f233607f71e8e2f450391751883cfc0eeb3ca7ef574c13d1d9c2203"),
    ],
)
def test_what_others_wrote_is_as_they_wrote_it(name, digest):
    # Of the npm package cytoscape 3.34.4: dist/cytoscape.min.js and LICENSE, 18 November 2026.
    content = (files("unmeasured") / "app" / "static" / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == digest


def test_it_listens_on_the_loopback_address_only(served):
    assert served.url.startswith("http://127.0.0.1:")
    assert served._socket.getsockname()[0] == "127.0.0.1"
    assert len(served.token) >= 32


REFUSED = {
    "a foreign host": ("GET", "/", {"Host": "evil.example"}, None),
    "a host that was made to point here": ("POST", "/api/project", {"Host": "evil.example:80"}, None),
    "another port of this machine": ("GET", "/", {"Host": "127.0.0.1:1"}, None),
    "a foreign origin": ("POST", "/api/project", {"Origin": "http://evil.example"}, None),
    "an origin without a name": ("POST", "/api/project", {"Origin": "null"}, None),
    "another page of this machine": ("POST", "/api/project", {"Origin": "http://127.0.0.1:1"}, None),
    "a link from elsewhere": ("GET", "/api/about", {"Sec-Fetch-Site": "cross-site"}, None),
    "a preflight": ("OPTIONS", "/api/project", {"Origin": "http://evil.example"}, None),
    "a wrong token": ("GET", "/", {}, "x" * 32),
    "an empty token": ("GET", "/", {}, ""),
    "half a token": ("GET", "/", {}, "half"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_request_of_somebody_else_is_refused(served, case):
    method, path, headers, token = REFUSED[case]
    if token == "half":
        token = served.token[:16]
    answer, content = send(served, method, path, b"{}", token=token, headers=headers)
    assert answer.status == 403, case
    assert b"token" in content or b"page" in content or b"address" in content


def test_a_request_without_an_origin_changes_nothing(served):
    assert send(served, "POST", "/api/project", b"{}", own=False)[0].status == 403
    assert send(served, "GET", "/api/about", own=False)[0].status == 200


def test_two_hosts_are_refused(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as raw:
        line = f"GET /{served.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nHost: evil.example\r\n\r\n"
        raw.sendall(line.encode())
        assert raw.recv(200).split()[1] in (b"400", b"403")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e/%2e%2e/pyproject.toml",
        "/static//etc/passwd",
        "/api/../../etc/passwd",
        "/api/..%2f..%2f/state",
        "/static/index.html",
    ],
)
def test_no_path_leads_out_of_what_there_is(served, path):
    answer, content = send(served, "GET", path)
    assert answer.status in (403, 404)
    assert b"root:" not in content
    assert b"import" not in content


def test_an_upload_that_is_too_large_is_refused_before_it_is_read(served, project, monkeypatch):
    answer, _ = send(served, "POST", f"/api/{project}/file?name=a.csv", b"", headers={"Content-Length": str(10**13)})
    assert answer.status == 413
    monkeypatch.setattr(web, "MOST_BYTES", 1000)

    def parts():
        yield from [b"x" * 600] * 5

    answer, content = send(served, "POST", f"/api/{project}/file?name=a.csv", parts())  # its size is not said
    assert answer.status == 413
    assert b"limit" in content


def test_a_name_of_a_file_is_never_a_path(served, project):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=list("abc")).to_csv(index=False)
    name = "..%2F..%2F..%2Ftmp%2Fevil.csv"
    assert ask(served, "POST", f"/api/{project}/file?name={name}")[0] == 400  # there is nothing in it
    answer, content = send(served, "POST", f"/api/{project}/file?name={name}", rows)
    assert answer.status == 200
    assert json.loads(content)["name"] == "evil.csv"
    session = served._sessions.open[project]
    assert session.project.file.parent == session.project.folder
    assert session.project.file.name == "data.csv"


def test_pasted_text_is_never_taken_for_a_file(served, project):
    status, answer = ask(served, "POST", f"/api/{project}/matrix", {"text": "/etc/passwd", "n": 100})
    assert status == 400
    assert "root" not in answer["error"]


def archive(**parts):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in parts.items():
            made.writestr(name.replace("__", "/").replace("dot", "."), content)
    return out.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"no archive",
        archive(**{"dotdot__evil": "x"}),
        archive(projectdotjson="{}"),
        archive(projectdotjson="[" * 100_000),
        archive(data="0" * (1 << 21), projectdotjson='{"kind": "project", "format": 1}'),
    ],
)
def test_a_project_that_is_none_is_refused_with_a_sentence(served, project, content):
    answer, body = send(served, "POST", f"/api/{project}/file?name=a.unmeasured", content)
    assert answer.status == 400
    assert "project" in json.loads(body)["error"]
    assert list(served._sessions.open[project].project.folder.parent.rglob("*evil*")) == []


@pytest.mark.parametrize(
    ("path", "record"),
    [
        ("columns", {"columns": [{"name": "nobody"}]}),
        ("columns", {"columns": "x", "options": 3}),
        ("columns", {"columns": [], "options": {"cor": "__import__('os')"}}),
        ("known", {"groups": {"a": ["nobody"]}}),
        ("known", {"groups": 5}),
        ("edit", {"kind": "add"}),
        ("stability", {"replicates": 10**9}),
        ("dataset", {"name": "../../etc/passwd"}),
        ("matrix", {"text": "1", "n": "many"}),
        ("search", {}),
        ("sheet", {"sheet": "../../etc/passwd"}),
        ("columns/many", {"pattern": "nobody*", "role": "item"}),
    ],
)
def test_nonsense_is_answered_with_a_sentence(served, project, path, record):
    status, answer = ask(served, "POST", f"/api/{project}/{path}", record)
    assert status == 400
    assert answer["error"].endswith((".", ")", "?"))
    assert "Traceback" not in answer["error"]


def test_parts_and_files_there_are_not_are_sentences(served, project):
    ask(served, "POST", f"/api/{project}/dataset", {"name": "multitasking"})
    for path in ("part/passwd", "part/loadings", "diagram", "report", "export/exe", "export/report"):
        status, answer = ask(served, "GET", f"/api/{project}/{path}")
        assert status == 400
        assert "There is no" in answer["error"]
    assert send(served, "GET", f"/api/{project}/export/..%2f..%2fresult.json")[0].status == 404


def test_the_oldest_project_that_no_page_shows_makes_way(served, monkeypatch):
    monkeypatch.setattr(web, "_MOST_PROJECTS", len(served._sessions.open) + 1)
    first = next(iter(served._sessions.open), None) or ask(served, "POST", "/api/project", {})[1]["project"]
    names = [ask(served, "POST", "/api/project", {})[1]["project"] for _ in range(3)]
    assert first not in served._sessions.open
    assert names[-1] in served._sessions.open
    for session in served._sessions.open.values():
        monkeypatch.setattr(session, "job", {"status": "running"})
    assert ask(served, "POST", "/api/project", {})[0] == 429


def test_bodies_that_are_no_json_are_refused(served, project):
    for body in (b"\xff", b"[]", b"[" * 200_000):
        answer, content = send(served, "POST", f"/api/{project}/columns", body)
        assert answer.status == 400
        assert "JSON" in json.loads(content)["error"]
    assert send(served, "DELETE", f"/api/{project}/columns", b"{}")[0].status == 405


def test_a_project_is_known_by_its_own_name_only(served, project):
    ask(served, "POST", f"/api/{project}/dataset", {"name": "multitasking"})
    other = ask(served, "POST", "/api/project", {})[1]["project"]
    assert other != project
    assert ask(served, "GET", f"/api/{other}/state")[1]["columns"] == []
    assert len(ask(served, "GET", f"/api/{project}/state")[1]["columns"]) == 9
    assert ask(served, "GET", "/api/nobody/state")[0] == 404


def test_the_folder_goes_with_the_server(monkeypatch):
    monkeypatch.setattr(web, "Worker", Quiet)
    running = web.Server(0)
    folder = running._folder.name
    running.start()
    ask(running, "POST", "/api/project", {})
    running.stop()
    with pytest.raises(FileNotFoundError):
        zipfile.os.listdir(folder)


def test_a_port_that_is_taken_is_a_sentence(served):
    with pytest.raises(um.UnmeasuredError, match=f"Port {served.port} cannot be used"):
        web.Server(served.port)
    with pytest.raises(um.UnmeasuredError, match="from 0 to 65535"):
        web.Server(70000)
