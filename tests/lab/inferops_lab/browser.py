"""Chromium without a screen, spoken to over a pipe (Chrome DevTools Protocol): no driver, no port, no profile left behind."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars")


def executable() -> str | None:
    """Return the browser of this machine, None when there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One browser process; ``open`` loads a local file into a page of its own."""

    def __init__(self) -> None:
        program = executable()
        if program is None:
            raise SystemExit(f"no browser: none of {', '.join(NAMES)} is installed; on Debian apt-get install chromium")
        self._profile = tempfile.TemporaryDirectory(prefix="inferops-browser-", ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The protocol wants exactly the descriptors 3 and 4: ours must be others while the shell moves them there.
        theirs = [fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (to_browser, from_browser)]
        command = f'exec "$0" "$@" 3<&{theirs[0]} 4>&{theirs[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}"],
            pass_fds=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for each in (to_browser, from_browser, *theirs):
            os.close(each)
        self._buffer, self._number = b"", 0
        self._events: list[str] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *dummy: object) -> None:
        os.close(self._write)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        self._profile.cleanup()

    def open(self, file: Path, *, width: int, scheme: str) -> Page:
        """Load a file at a width [CSS px] with the person's colour scheme, "light" or "dark"."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        page.call("Page.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.call("Page.navigate", url=file.resolve().as_uri())
        self.wait_for("Page.loadEventFired")
        return page

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Return what the browser answers, or raise with its own words."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def wait_for(self, event: str) -> None:
        """Wait for an event, which may have come while something else was asked."""
        while event not in self._events:
            self._next()
        self._events.remove(event)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._buffer += part
        part, dummy, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(part)
        if "method" in message:
            self._events.append(message["method"])
        return message


class Page:
    """A loaded page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def value(self, expression: str) -> Any:
        """Return what a JavaScript expression evaluates to."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    @property
    def overflow(self) -> int:
        """How many px the page is wider than its window."""
        return self.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def picture(self, *, below: str | None = None, height: int | None = None, scale: float = 1.0) -> bytes:
        """Return a PNG of the page, or of ``height`` px from its top or from the heading with the text ``below``."""
        heading = f"[...document.querySelectorAll('h2,h3')].find(each => each.textContent === {json.dumps(below)})"
        top = 0 if below is None else self.value(f"Math.max(0, {heading}.getBoundingClientRect().top + scrollY - 16)")
        if top is None:
            raise SystemExit(f"the page has no heading {below!r}")
        width, whole = self.value("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": top, "width": width, "height": min(height or whole, whole - top), "scale": scale}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"])
