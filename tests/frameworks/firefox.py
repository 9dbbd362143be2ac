"""A headless Firefox, controlled by WebDriver BiDi."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from browser import announced, command, end
from websockets.sync.client import ClientConnection, connect

TIMEOUT_S = 60.0
PREFERENCES = {
    # The viewer of JSON has another origin than the page.
    "devtools.jsonview.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "app.update.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
}


class Firefox:
    """One window, that trusts every certificate for pages; for WebTransport it does not."""

    def __init__(self, folder: Path) -> None:
        profile = folder / "profile"
        profile.mkdir(parents=True)
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in PREFERENCES.items()]
        (profile / "user.js").write_text("\n".join(lines))
        said = folder / "stderr"
        with said.open("w") as stderr:
            self._process = subprocess.Popen(
                [command("Firefox", ("firefox-esr", "firefox")), "--headless", "--no-remote",
                 "--remote-debugging-port=0", "--profile", str(profile), "about:blank"],
                stdout=subprocess.DEVNULL, stderr=stderr,
                env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "MOZ_HEADLESS": "1"},
            )  # fmt: skip
        self._exit = ExitStack()
        self._socket: ClientConnection | None = None
        self._said = 0
        try:
            self._attach(said)
        except BaseException:
            self.close()
            raise

    def _attach(self, said: Path) -> None:
        pattern = r"WebDriver BiDi listening on (ws://\S+)"
        url = announced(self._process, said, pattern, "Firefox", TIMEOUT_S)
        self._socket = self._exit.enter_context(connect(f"{url}/session", max_size=None))
        self._call("session.new", capabilities={"alwaysMatch": {"acceptInsecureCerts": True}})
        (window,) = self._call("browsingContext.getTree")["contexts"]
        self._window = window["context"]

    def close(self) -> None:
        """End it."""
        self._exit.close()
        end(self._process)

    def open(self, url: str) -> None:
        """Go somewhere and wait until all of it is there."""
        self._call("browsingContext.navigate", context=self._window, url=url, wait="complete")

    def run(self, script: str) -> Any:
        """The value of a script's expression; of a promise, when it is kept."""
        made = self._call(
            "script.evaluate",
            expression=f"Promise.resolve({script}).then((it) => JSON.stringify(it ?? null))",
            target={"context": self._window},
            awaitPromise=True,
        )
        assert made["type"] == "success", made
        return json.loads(made["result"]["value"])

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        assert self._socket is not None
        self._said += 1
        self._socket.send(json.dumps({"id": self._said, "method": method, "params": parameters}))
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                text = self._socket.recv(timeout=max(0.1, deadline - time.monotonic()))
            except TimeoutError:
                raise AssertionError(f"waited {TIMEOUT_S} s in vain for {method}") from None
            message = json.loads(text)
            if message.get("id") == self._said:
                assert message["type"] == "success", message
                return message["result"]
