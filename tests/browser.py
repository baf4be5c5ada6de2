"""Opens a page in headless Chromium and lists its problems.

Chromium is driven through `--remote-debugging-pipe`: the DevTools protocol as NUL-terminated JSON
over two file descriptors. So neither a driver nor a websocket library is needed. The protocol sets
the width of a phone, since a headless window cannot be as narrow as 390 pixels.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
    "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
)  # fmt: skip
# Chromium reads commands from descriptor 3 and answers on 4. A tiny child puts ours there:
# `preexec_fn` could deadlock in a process in which JAX has started threads.
_LAUNCHER = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4);"
    "os.execv(sys.argv[3], sys.argv[3:])"
)
_FINDINGS = """(() => {
  const root = document.documentElement;
  const name = element => element.tagName.toLowerCase()
    + (element.id ? '#' + element.id : element.className ? '.' + element.className : '');
  const scrollsInside = element => {
    for (let up = element.parentElement; up && up !== document.body; up = up.parentElement)
      if (getComputedStyle(up).overflowX !== 'visible') return true;
    return false;
  };
  const sticksOut = element =>
    element.getBoundingClientRect().right > root.clientWidth + .5 && !scrollsInside(element);
  const all = selector => [...document.querySelectorAll(selector)];
  const source = image => image.getAttribute('src');
  const ids = all('[id]').map(element => element.id);
  return JSON.stringify({
    client: root.clientWidth,
    scroll: root.scrollWidth,
    wide: all('body *').filter(sticksOut).map(name),
    images: all('img').filter(image => !image.complete || !image.naturalWidth).map(source),
    unnamed: all('img').filter(image => !image.alt).map(source),
    repeated: ids.filter((id, index) => ids.indexOf(id) !== index),
    anchors: all('a[href^="#"]').map(link => link.getAttribute('href'))
      .filter(href => !document.getElementById(decodeURIComponent(href.slice(1)))),
    files: all('a[href]:not([href^="#"])').map(link => link.href)
  });
})()"""

# Images out of sight may not be loaded yet. Failed images are found afterwards.
_LOAD_IMAGES = """Promise.all([...document.images].map(image => {
  image.loading = 'eager';
  return image.decode().catch(() => {});
})).then(() => true)"""


def find_chromium() -> str | None:
    """The path of an installed Chromium or Chrome, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


needs_chromium = pytest.mark.skipif(
    find_chromium() is None, reason="Chromium is not installed (apt-get install chromium)"
)


def check_page(path: str | Path, width: int) -> list[str]:
    """Open a file at a viewport of `width` CSS pixels, and list its problems.

    Looks for script and console errors, requests that fail or leave the disk, images that do
    not load or have no text, links that lead nowhere, repeated ids, and sideways scroll.
    """
    with opened(path, width) as tab:
        tab.evaluate(_LOAD_IMAGES)
        findings = json.loads(tab.evaluate(_FINDINGS))
        return _page_problems(findings, width) + _event_problems(tab.events)


def _page_problems(found: dict, width: int) -> list[str]:
    problems = []
    if found["client"] != width:
        problems.append(f"the viewport is {found['client']} px wide, not {width}")
    if found["scroll"] > width:
        widest = ", ".join(found["wide"][:3]) or "unknown"
        problems.append(f"sideways scroll: {found['scroll']} px at {width} px (by {widest})")
    problems += [f"image does not load: {source}" for source in found["images"]]
    problems += [f"image without alt text: {source}" for source in found["unnamed"]]
    problems += [f"id occurs twice: {name}" for name in found["repeated"]]
    problems += [f"link to no anchor: {href}" for href in found["anchors"]]
    for href in dict.fromkeys(found["files"]):
        parts = urlsplit(href)
        if parts.scheme == "file" and not Path(unquote(parts.path)).exists():
            problems.append(f"link to no file: {href}")
    return problems


def _event_problems(events: list[dict]) -> list[str]:
    problems = []
    for event in events:
        method, values = event["method"], event["params"]
        if method == "Runtime.exceptionThrown":
            problems.append(f"script error: {values['exceptionDetails']['text']}")
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "assert"):
            problems.append(f"console error: {values['args'][0].get('value')}")
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            problems.append(f"console error: {values['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            url = values["request"]["url"]
            if urlsplit(url).scheme not in ("file", "data", "about"):
                problems.append(f"request that leaves the disk: {url}")
    return problems


@contextmanager
def opened(path: str | Path, width: int, fragment: str = "") -> Iterator[Tab]:
    """A tab that has loaded the file at a viewport of `width` CSS pixels, at an address that ends
    with `fragment`."""
    binary = find_chromium()
    if binary is None:
        raise FileNotFoundError(f"none of {', '.join(NAMES)} is installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        tab = Tab(binary, profile)
        try:
            tab.open(Path(path).resolve().as_uri() + fragment, width)
            yield tab
        finally:
            tab.close()


class Tab:
    """A Chromium process with one page, driven by the DevTools protocol."""

    def __init__(self, binary: str, profile: str, *, timeout: float = 60.0):
        self.events: list[dict] = []
        self._timeout = timeout
        self._count = 0
        self._buffer = b""
        self._session: str | None = None
        commands, self._write = _pipe()
        self._read, answers = _pipe()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", _LAUNCHER, str(commands), str(answers)),
                *(binary, *FLAGS, f"--user-data-dir={profile}"),
            ],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(commands)
        os.close(answers)

    def open(self, url: str, width: int) -> None:
        """Load a page and wait until all its requests have arrived or failed."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=844,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Page.navigate", url=url)
        self._until(lambda message: message.get("method") == "Page.loadEventFired")

    def call(self, method: str, **values) -> dict:
        """Send one command and return its result."""
        self._count += 1
        number = self._count
        message = {"id": number, "method": method, "params": values}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda message: message.get("id") == number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def evaluate(self, expression: str):
        """The value of a JavaScript expression in the page. A promise is awaited."""
        options = {"returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", expression=expression, **options)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return answer["result"]["value"]

    def print_pdf(self) -> bytes:
        """The page as it would be printed on A4, as pdf."""
        answer = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)
        return base64.b64decode(answer["data"])

    def close(self) -> None:
        """End Chromium with all its helpers."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def _until(self, wanted) -> dict:
        deadline = time.monotonic() + self._timeout
        while True:
            message = self._next(deadline)
            if "method" in message:
                self.events.append(message)
            if wanted(message):
                return message

    def _next(self, deadline: float) -> dict:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], deadline - time.monotonic())
            chunk = os.read(self._read, 1 << 16) if ready else b""
            if not chunk:
                raise TimeoutError(f"Chromium ended or said nothing for {self._timeout:g} s")
            self._buffer += chunk
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are not the descriptors 3 and 4, which Chromium uses."""
    ends = []
    for low in os.pipe():
        ends.append(fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 10))
        os.close(low)
    return ends[0], ends[1]
