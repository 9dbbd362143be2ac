"""A headless Chromium, controlled by the DevTools protocol."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from rig import wait_for
from websockets.sync.client import ClientConnection, connect

TIMEOUT_S = 20.0


def command(
    browser: str = "Chromium",
    names: tuple[str, ...] = ("chromium", "chromium-browser", "google-chrome"),
) -> str:
    """The browser's command; without one the test is skipped."""
    for name in names:
        if (found := shutil.which(name)) is not None:
            return found
    pytest.skip(f"no {browser} here (Debian: {names[0]})")


def announced(
    process: subprocess.Popen[bytes], said: Path, pattern: str, browser: str, timeout_s: float
) -> str:
    """Wait until a browser writes where it takes commands; the group of the pattern."""

    def place() -> re.Match[str] | None:
        assert process.poll() is None, f"{browser} ended:\n{said.read_text()}"
        return re.search(pattern, said.read_text())

    wait_for(place, browser, timeout_s)
    found = place()
    assert found is not None
    return found[1]


def end(process: subprocess.Popen[bytes]) -> None:
    """End a browser, whether or not it responds."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Browser:
    """One window. Cookies live as long as it does; ``flags`` are more of the command's."""

    def __init__(self, folder: Path, *flags: str) -> None:
        folder.mkdir(exist_ok=True)
        said = folder / "stderr"
        with said.open("w") as stderr:
            self._process = subprocess.Popen(
                [command(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                 "--disable-background-networking", "--remote-debugging-port=0", *flags,
                 f"--user-data-dir={folder / 'profile'}", "about:blank"],
                stdout=subprocess.DEVNULL, stderr=stderr,
            )  # fmt: skip
        self._exit = ExitStack()
        self._page: ClientConnection | None = None
        self._said = self._loads = 0
        self.loaded: list[tuple[str, int]] = []
        """Paths that were fetched since the last `open`, and their statuses."""
        try:
            self._attach(said)
        except BaseException:
            self.close()
            raise

    def _attach(self, said: Path) -> None:
        pattern = r"DevTools listening on ws://([^/]+)/"
        host = announced(self._process, said, pattern, "Chromium", TIMEOUT_S)
        # `/json/new` is asked by PUT since version 111.
        with urlopen(Request(f"http://{host}/json/new", method="PUT"), timeout=20) as answer:
            page = json.load(answer)["webSocketDebuggerUrl"]
        self._page = self._exit.enter_context(connect(page, max_size=None))
        for domain in ("Page", "Network", "DOM"):
            self._call(f"{domain}.enable")

    def close(self) -> None:
        """End it."""
        self._exit.close()
        end(self._process)

    def open(self, url: str) -> None:
        """Go somewhere and wait until all of it is there."""
        loads = self._begin()
        self._call("Page.navigate", url=url)
        self._await_load(loads)

    def run(self, script: str) -> Any:
        """The value of a script's expression; of a promise, when it is kept."""
        made = self._call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in made, made
        return made["result"].get("value")

    def fill(self, name: str, text: str) -> None:
        """Type into the field of a form."""
        self.run(f"document.querySelector('[name={name}]').focus()")
        self._call("Input.insertText", text=text)

    def choose_file(self, name: str, path: Path) -> None:
        """Give a file to a form."""
        root = self._call("DOM.getDocument")["root"]["nodeId"]
        selector = f"[name={name}]"
        node = self._call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self._call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def press(self, selector: str) -> None:
        """Click on what leads to another page, and wait for that."""
        loads = self._begin()
        self.run(f"document.querySelector({selector!r}).click()")
        self._await_load(loads)

    @property
    def text(self) -> str:
        """What there is to be read."""
        return self.run("document.body.innerText")

    @property
    def cookies(self) -> set[tuple[str, bool]]:
        """Names, and whether they are hidden from scripts."""
        found = self._call("Network.getCookies")["cookies"]
        return {(cookie["name"], cookie["httpOnly"]) for cookie in found}

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        assert self._page is not None
        self._said += 1
        self._page.send(json.dumps({"id": self._said, "method": method, "params": parameters}))
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            message = self._hear(deadline, method)
            if message.get("id") == self._said:
                assert "error" not in message, message
                return message["result"]

    def _begin(self) -> int:
        self.loaded.clear()
        return self._loads

    def _await_load(self, loads: int) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while self._loads == loads:
            self._hear(deadline, "the page")

    def _hear(self, deadline: float, what: str) -> dict[str, Any]:
        assert self._page is not None
        try:
            message = json.loads(self._page.recv(timeout=max(0.1, deadline - time.monotonic())))
        except TimeoutError:
            raise AssertionError(f"waited {TIMEOUT_S} s in vain for {what}") from None
        if message.get("method") == "Page.loadEventFired":
            self._loads += 1
        if message.get("method") == "Network.responseReceived":
            response = message["params"]["response"]
            path = "/" + response["url"].split("/", 3)[-1].split("?")[0]
            if path != "/favicon.ico":  # asked for once, whenever it likes
                self.loaded.append((path, response["status"]))
        return message
