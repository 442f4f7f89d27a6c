"""A real Chromium for tests, driven through its DevTools protocol: as little of it as they need.

One page per browser. Errors of scripts, messages of the console and every request are kept, so that a test can say
that there were none.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """The path of a browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A headless browser with one page; use it in a ``with`` statement."""

    def __init__(self, width=1280, height=900):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.downloads = Path(self.folder.name) / "downloads"
        self.downloads.mkdir()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        options += ["--remote-debugging-port=0", "--remote-allow-origins=*", f"--window-size={width},{height}"]
        # The report of the application is a frame in a sandbox, which the protocol reaches in the same process only.
        options += ["--disable-features=IsolateSandboxedIframes", "--disable-site-isolation-trials"]
        options += ["--hide-scrollbars", f"--user-data-dir={self.folder.name}/profile"]
        self.process = subprocess.Popen(
            [find(), *options, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.events = []
        self.count = 0
        self.socket = websocket.create_connection(self._page_address(), timeout=60)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=20)
        self.folder.cleanup()

    def _page_address(self):
        port_file = Path(self.folder.name) / "profile" / "DevToolsActivePort"
        wait_for(lambda: port_file.exists() and len(port_file.read_text().split()) == 2, seconds=60)
        port = port_file.read_text().split()[0]

        def pages():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=10) as answer:
                return [page for page in json.load(answer) if page["type"] == "page"]

        return wait_for(pages)[0]["webSocketDebuggerUrl"]

    def call(self, method, **parameters):
        """Call a method of the protocol and return its answer; events on the way are kept."""
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.count:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, path):
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        wait_for(lambda: self.run("document.readyState") == "complete")

    def visit(self, url):
        """Open an address and wait until the page says that it is ready."""
        self.call("Page.navigate", url=url)
        wait_for(lambda: self.run("document.body && document.body.dataset.ready"))

    def reload(self):
        """Load the page again and wait until it says that it is ready."""
        self.run("window.isOld = true")
        self.call("Page.reload")
        wait_for(lambda: self.run("!window.isOld && document.body && document.body.dataset.ready"))

    def scheme(self, name, media=""):
        """Emulate a light or dark screen, or paper."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def key(self, name, code=0, text="", modifiers=0):
        """Press and release a key; ``modifiers``: 2 for Ctrl, 8 for Shift, 10 for both."""
        about = {"key": name, "code": name, "windowsVirtualKeyCode": code, **({"text": text} if text else {})}
        about |= {"modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=code)

    def give_file(self, selector, path):
        """Choose a file in a file input."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def mouse(self, kind, x, y, held=False):
        pressed = {"button": "left", "buttons": 1, "clickCount": 1} if held or kind != "mouseMoved" else {}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)

    def centre(self, selector):
        """The middle of an element on the screen, after scrolling to it."""
        box = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{box}.scrollIntoView({{block: 'center'}})")
        return self.run(
            f"(() => {{ const b = {box}.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
        )

    def hover(self, selector):
        self.mouse("mouseMoved", *self.centre(selector))

    def click(self, selector):
        x, y = self.centre(selector)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def drag(self, selector, dx, dy):
        x, y = self.centre(selector)
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y)
        for part in (0.5, 1.0):
            self.mouse("mouseMoved", x + part * dx, y + part * dy, held=True)
        self.mouse("mouseReleased", x + dx, y + dy)

    def troubles(self):
        """Errors of scripts, and messages of the console and the log that are more than information."""
        bad = []
        for event in self.events:
            what, about = event.get("method"), event.get("params", {})
            error = what == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert")
            error |= what == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning")
            if what == "Runtime.exceptionThrown" or error:
                bad.append(event)
        return bad

    def requests(self):
        """Addresses that were asked for, apart from what a page carries inside itself."""
        sent = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith(("data:", "blob:", "about:"))]

    def screenshot(self, path, whole=True):
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        Path(path).write_bytes(base64.b64decode(answer["data"]))

    def _clip(self, whole):
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}


def wait_for(condition, seconds=60.0):
    """What a condition gives as soon as it gives something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds} s in vain")
